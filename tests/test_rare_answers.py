"""Answers that are rarely met: refusals and fallbacks that no larger test comes by."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

import modurob.distributed as distributed
from modurob import (
    DatasheetError,
    DockingError,
    FileError,
    ModuleType,
    Organism,
    Scenario,
    StateError,
    Trajectory,
    Undock,
    UnknownNameError,
    catalog,
    examples,
    simulate,
)
from modurob.checks import is_loopback
from modurob.compiler import emit_c
from modurob.control import ComputedTorque
from modurob.distributed import LockStep, MassNetwork, codec
from modurob.estimation import Ekf
from modurob.manipulator import table_of
from modurob.modules import record
from modurob.modules.dh import characterize
from modurob.organism.dh_table import chain_table
from modurob.sim.output import export, plots
from modurob.studio import signals, view_data
from oracles import complains

SNAKE = examples.snake(3)
MODEL = SNAKE.model("physical")
ALONE = Organism.start("backbone").model("physical")  # no joints


def by_hand(model):
    """The same arrays, made by no organism."""
    return dataclasses.replace(model, organism=None, options=None)


def docked_with_a_turn():
    """Two modules whose ports mate by a quarter turn only."""
    fields = catalog["giusti_a"].model_dump()
    ports = [{**port, "turns": [90]} for port in fields["ports"]]
    return chain_table([characterize(ModuleType(**{**fields, "ports": ports}))] * 2, None)


REFUSALS = [
    (StateError, "a reference has q, v and a, or is a set point; call a function of time first",
     lambda: ComputedTorque(MODEL).command(0.0, np.zeros(2), np.zeros(2), lambda t: None)),
    (StateError, "a reference has q, v and a, or is a set point; call a function of time first",
     lambda: ComputedTorque(MODEL).command(
         0.0, np.zeros(2), np.zeros(2), SimpleNamespace(q=np.zeros(2)))),
    (StateError, "no C function is named: choose from inverse_dynamics",
     lambda: emit_c.c_sources(MODEL, functions=[])),
    (UnknownNameError, "no C function 'gravity': choose from inverse_dynamics",
     lambda: emit_c.c_sources(MODEL, functions=["gravity"])),
    (StateError, "on a free base the integrator is 'step'",
     lambda: Ekf(SNAKE.model("physical", "free"), 0.01, integrator="rk4")),
    (StateError, "a filter has one state: q has shape (3, 2)",
     lambda: Ekf(MODEL, 0.01, q=np.zeros((3, 2)))),
    (StateError, "events change an organism, and this model was not built from one",
     lambda: simulate(by_hand(MODEL), None, None, 1.0, events=[Undock(0.5, "m2")])),
    (StateError, "masses: a body that events change has the masses of its datasheets",
     lambda: Scenario(organism=SNAKE, masses=1.1, controller="ComputedTorque", motion="step",
                      target={"m1.hinge": 0.1},
                      events=[{"what": "undock", "time": 0.5, "module": "m2"}]).run()),
    (StateError, "there is nothing to plot: the body has no joints",
     lambda: simulate(ALONE, None, None, 0.1, None, "RK4").plot("q")),
    (DockingError, "m0 and m1 cannot dock without a turn; use the organism's dh_table()",
     docked_with_a_turn),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "ask"), REFUSALS, ids=range(len(REFUSALS)))
def test_what_cannot_be_done_is_refused_in_one_line(kind, text, ask):
    with complains(kind, text):
        ask()


def test_an_unknown_name_of_the_package_of_distributed_programs_is_named():
    with pytest.raises(AttributeError, match=r"module 'modurob.distributed' has no attribute 'x'"):
        distributed.x  # noqa: B018
    assert {"MassNetwork", "InProcess", "TRANSPORTS"} <= set(dir(distributed))


@pytest.mark.parametrize(
    ("host", "local"),
    [("localhost", True), ("127.0.0.1", True), ("::1", True), ("127.8.8.8", True),
     ("0.0.0.0", False), ("192.168.0.1", False), ("example.org", False), ("", False)],
)  # fmt: skip
def test_only_addresses_of_this_machine_are_local(host, local):
    assert is_loopback(host) is local


def test_limits_in_a_header_may_be_open_at_either_end():
    assert emit_c._limits(-1.0, 2.0) == ", -1 to 2"
    assert emit_c._limits(-1.0, np.inf) == ", from -1"
    assert emit_c._limits(-np.inf, 2.0) == ", up to 2"
    assert emit_c._limits(-np.inf, np.inf) == ""


def test_messages_that_end_too_early_are_refused():
    text, numbers = codec.Text(), codec.Rest("d")
    assert text.unpack(text.pack("über"), 0) == ("über", 6)
    with pytest.raises(ValueError, match="ends too early"):
        text.unpack(text.pack("abc")[:-1], 0)
    data = numbers.pack((1.5, -2.0))
    assert numbers.unpack(data, 0) == ((1.5, -2.0), 16)
    with pytest.raises(ValueError, match="half a number"):
        numbers.unpack(data[:-1], 0)


def test_a_record_of_a_module_with_several_pairs_stands_for_its_datasheet():
    one = record.decode(record.encode(catalog["giusti_a"], 1))
    assert str(table_of([one, one])) == str(table_of([catalog["giusti_a"]] * 2))
    several = record.decode(record.encode(catalog["backbone"], 1))
    with complains(UnknownNameError, "give the input and output ports of a backbone"):
        table_of([several])
    # one pair is taken as the module tells it, not worked out again
    other = one._replace(pairs=(characterize(catalog["giusti_b"]),))
    assert str(table_of([other])) == str(table_of([catalog["giusti_b"]]))
    with complains(DatasheetError, "modules are datasheets, records or parameters, got str"):
        table_of(["giusti_a"])


def test_channels_are_named_by_joints_or_numbered():
    free = SNAKE.model("physical", "free")
    names = [c.name for c in export.channel_columns(free, "x", np.zeros((5, free.nv)))]
    assert names == [f"base {c}{x}" for c in "vw" for x in "xyz"] + list(free.joint_names)
    names = [c.name for c in export.channel_columns(free, "x", np.zeros((5, free.nq)))]
    assert names[:7] == ["base x", "base y", "base z", *(f"base q{x}" for x in "xyzw")]
    assert [c.name for c in export.channel_columns(MODEL, "x", np.zeros(5))] == ["x"]
    names = [c.name for c in export.channel_columns(MODEL, "x", np.zeros((5, 1, 3)))]
    assert names == ["x[0]", "x[1]", "x[2]"]


def test_files_without_a_header_are_refused(tmp_path):
    path = tmp_path / "it.npz"
    for header, text in (
        (None, "not a modurob-trajectory file: it has no header"),
        (np.zeros(3), "not a modurob-trajectory file: it has no header"),
        (np.zeros((2, 2), dtype=np.uint8), "it has no header"),
        (np.frombuffer(b"ab\xff", dtype=np.uint8), "byte 2 of its header is not UTF-8"),
    ):
        np.savez(path, **({} if header is None else {"header": header}), x=np.zeros(1))
        with complains(FileError, text):
            Trajectory.load(path)


def test_a_trajectory_without_mass_or_organism_has_no_center():
    run = simulate(by_hand(MODEL), None, None, 0.01, None, "RK4", dt=0.01)
    assert signals.tints(run) == []
    assert "mass" not in {panel["key"] for panel in signals.panels(run, None)}
    assert plots._default(run) == ("q", "v", "energy")


def test_an_upright_hinge_has_no_direction_in_a_plan():
    upright = SimpleNamespace(dyad_screw=np.array([0, 0, 0, 0, 0, 1.0]))
    along = SimpleNamespace(dyad_screw=np.array([0, 0, 0, 0, -1.0, 0]))
    across = SimpleNamespace(dyad_screw=np.array([0, 0, 0, 1.0, 0, 0]))
    assert [view_data._hinge(kind, 0) for kind in (upright, along, across)] == [None, 1, 0]
    assert [view_data._hinge(kind, 1) for kind in (upright, along, across)] == [None, 0, 1]
    assert view_data._hinge(SimpleNamespace(dyad_screw=None), 0) is None


# -- mass networks ---------------------------------------------------------------------------------


def test_modules_that_come_loose_know_their_own_half():
    network = MassNetwork(SNAKE)
    network.settle()
    agent = network.agents["m0"]
    cut = agent.after(network.states["m0"], {"unplug": "3"})
    assert "3" not in cut.links
    assert agent.view(cut).total[3, 3] == pytest.approx(1)
    again = agent.after(cut, {"plug": "3", "turn": 0})
    assert set(again.links) == set(network.states["m0"].links)
    assert not again.announced


def test_a_rebooted_module_on_the_ground_leads_again():
    network = MassNetwork(SNAKE)
    network.touch("m0", [[0, 0, 0]], np.eye(4))
    network.settle()
    assert network.leader == "m0"
    network.reboot("m0")
    network.settle()
    assert network.leader == "m0"


def test_networks_in_lock_step_count_and_forget():
    network = LockStep(SNAKE)
    network.measure(np.zeros(len(network.joint_names)))
    sent = sum(network.round() for _ in range(4))
    assert network.news == sent > 0
    np.testing.assert_allclose(network.totals().mass, 3)
    assert network.beyond("m0", 3)[3, 3] == pytest.approx(2)
    assert network.beyond("m1", "4")[3, 3] == pytest.approx(1)
