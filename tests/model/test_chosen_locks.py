"""Joints that the user locks at a position."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

import modurob as mr
from modurob.cli import cli
from modurob.model.joint_map import JointMap
from modurob.verification import verify
from oracles import complains

ROUNDING = 1e-12  # of the largest entry: sums over a dozen joints
SHORT_S = 0.02  # [s] of a run that only has to pass an event


def superbots(modules: int = 3) -> mr.Organism:
    """A chain of SuperBots."""
    organism = mr.Organism.start("superbot")
    for k in range(1, modules):
        organism = organism.dock(f"m{k - 1}", 4, f"m{k}", 1, turn=90)
    return organism


def assert_close(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=ROUNDING * np.abs(theirs).max())


def test_a_locked_joint_is_named_with_its_position():
    model = superbots().model(locked={"m1.roll": 0.5})
    assert dict(model.locked) == {"m1.roll": "held at 0.5 rad by `locked`"}
    with complains(mr.UnknownNameError, "'m1.roll' is locked", "0.5 rad"):
        model.joint_index("m1.roll")


def test_equations_with_a_locked_joint_are_those_of_the_model():
    organism, rng = superbots(2), np.random.default_rng(0)
    locked = {"m0.roll": 0.5, "m0.pitch": -1.1, "m1.pitch": 0.3}
    model = organism.model(locked=locked)
    equations = organism.equations(locked=locked, symbols=["mass"])
    q, v = model.random_configuration(rng), rng.standard_normal(model.nv)
    for ours, numbers in zip(equations.evaluate(q, v), model.closed_form(q, v), strict=True):
        assert_close(ours, numbers)


def test_a_lock_of_a_virtual_joint_holds_the_base():
    model = superbots(1).model(base=["px", "rz"], locked={"world.px": 0.3})
    assert model.joint_names == ("world.rz", "m0.pitch", "m0.roll", "m0.yaw")
    assert model.forward_kinematics(model.neutral())[0, 0, 3] == 0.3


@pytest.mark.parametrize(
    ("locked", "kind", "pieces"),
    [
        ({"m1.rol": 0.0}, mr.UnknownNameError, ("'m1.rol'", "joints are m0.pitch")),
        ({"m9.roll": 0.0}, mr.UnknownNameError, ("'m9.roll'", "joints are m0.pitch")),
        ({"m1.roll": 2.4}, mr.StateError, ("'m1.roll'", "2.4 rad", "limits are -2.35619 to")),
        ({"m1.roll": "half"}, mr.StateError, ("'m1.roll': 0.5", "half")),
        ({"m1.roll": np.nan}, mr.StateError, ("'m1.roll': 0.5", "nan")),
        (["m1.roll"], mr.StateError, ("'m1.roll': 0.5", "['m1.roll']")),
    ],
)
def test_a_lock_that_cannot_be_is_refused(locked, kind, pieces):
    with complains(kind, *pieces):
        superbots().model(locked=locked)


@pytest.mark.parametrize("position", [-0.5, 0.75])
def test_a_joint_may_be_locked_at_the_end_of_its_range_and_not_beyond(position):
    organism = superbots(2).with_parameters("m1", limits=(-0.5, 0.75))
    model = organism.model(locked={"m1.roll": position})
    assert model.locked["m1.roll"] == f"held at {position} rad by `locked`"
    with complains(mr.StateError, "its limits are -0.5 to 0.75"):
        organism.model(locked={"m1.roll": 1.001 * position})


def test_a_dyad_that_cannot_bend_cannot_be_locked_elsewhere():
    with complains(mr.StateError, "'m2.hinge'", "0.1 rad", "DS dyad"):
        mr.examples.crab().model(locked={"m2.hinge": 0.1})


def test_locks_go_with_their_modules_through_events_and_files(tmp_path):
    organism = superbots()
    model = organism.model(locked={"m0.roll": 0.2, "m2.roll": 0.5}, gravity=(0, 0, 0))
    events = [
        mr.Undock(SHORT_S / 4, "m2"),
        mr.Dock(SHORT_S / 2, "m1", 4, "m2", 1, turn=90),
    ]
    run = mr.simulate(model, model.neutral(), np.zeros(model.nv), SHORT_S, events=events)
    run.save(tmp_path / "run.npz")
    for trajectory in (run, mr.Trajectory.load(tmp_path / "run.npz")):
        locked = [set(part.model.locked) for part in trajectory.parts]
        assert locked == [{"m0.roll", "m2.roll"}, {"m0.roll"}, {"m2.roll"}, {"m0.roll", "m2.roll"}]
        last = trajectory.parts[-1].model
        assert last.options == model.options
        np.testing.assert_array_equal(last.placement, model.placement)


def test_a_joint_map_pairs_the_joints_that_stay():
    organism = superbots(2)
    both = JointMap(organism.model(), organism.model(locked={"m0.roll": 0.5}))
    assert both.kept_old.tolist() == [0, 2, 3, 4, 5]
    assert not len(both.added)


@pytest.mark.parametrize(("robot", "cosine"), [("conro", 0.0), ("m-tran", 1.0)])
def test_superbots_emulate_conro_and_m_tran(robot, cosine):
    """CONRO's two axes are perpendicular, M-TRAN's are parallel."""
    organism = superbots(2)
    model = organism.model(locked=mr.examples.emulation(organism, robot))
    assert model.joint_names == ("m0.pitch", "m0.yaw", "m1.pitch", "m1.yaw")
    axes = model.dynamics.quantity("joint_screws", model.neutral())[3:]
    for pitch, yaw in ((0, 1), (2, 3)):
        assert axes[:, pitch] @ axes[:, yaw] == pytest.approx(cosine, abs=ROUNDING)


def test_emulation_needs_superbots_and_a_known_robot():
    with complains(mr.StateError, "no module", "SuperBot", "conro"):
        mr.examples.emulation(mr.examples.crab(), "conro")
    with complains(mr.UnknownNameError, "conro, m-tran", "'atron'"):
        mr.examples.emulation(superbots(), "atron")


def test_a_scenario_file_keeps_locks(tmp_path):
    organism = superbots(2)
    scenario = mr.Scenario(organism=organism, locked={"m1.roll": 0.5}, duration=SHORT_S)
    scenario.save(tmp_path / "run.json")
    again = mr.Scenario.load(tmp_path / "run.json")
    assert "m1.roll" in again.run().trajectory.parts[0].model.locked
    with complains(mr.StateError, "locked: has no effect of a balancing run"):
        mr.Scenario(organism=organism, motion="balance", locked={"m1.roll": 0.5})


def test_verification_goes_through_with_locks():
    names = verify(superbots(2), locked={"m0.roll": 0.5, "m1.pitch": 0.3}, states=2)
    assert names.passed, names.checks


@pytest.mark.parametrize("command", ["simulate", "equations", "verify", "control", "export --c"])
def test_every_command_about_a_body_takes_locks(command, tmp_path):
    file = tmp_path / "two.json"
    superbots(2).save(file)
    given = [*command.split(), str(file), "--lock", "m0.roll=10", "--lock", "m1.roll=200"]
    result = CliRunner().invoke(cli, given)
    assert result.exit_code == 2
    assert "joint 'm1.roll' cannot be locked at 3.49066 rad: its limits are" in result.output
    result = CliRunner().invoke(cli, [*given, "--lock", "m-tran"])
    assert result.exit_code == 2
    assert "--lock has m0.roll twice: give it once" in result.output
    result = CliRunner().invoke(cli, [*given[:-1], "m1"])
    assert result.exit_code == 2
    assert "--lock takes JOINT=POSITION, such as m1.roll=45, or conro, m-tran" in result.output
