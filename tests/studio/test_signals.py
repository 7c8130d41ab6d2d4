"""Lines of the studio's plots: they are the numbers of the run, with names, units and bands."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from modurob import Organism, Scenario, Trajectory, Undock, examples, simulate
from modurob.sim import BodyTrajectory
from modurob.spatial import so3
from modurob.stepping.ground import corner_depths
from modurob.studio import signals

WIDTH = 0.1  # [m] of a module
LAGRANGE = 1e-6  # relative and [rad, m]: lines have 7 digits, the run has errors of 1e-8 a step
SHOWN = 5e-3  # the end of a scale has 3 digits


class Law:
    """A law that pushes a little, and records what an estimator and a network would."""

    def __init__(self, modules):
        self.modules = modules

    def command(self, t, q, v, reference):
        self.t, self.q = t, q
        return np.full(len(v), 0.25)

    def record(self):
        k = np.arange(self.modules)
        return {
            "estimate_q": self.q + 0.01 * np.arange(1, len(self.q) + 1),
            "sigma": np.concatenate([0.02 * np.ones(len(self.q)), np.ones(len(self.q))]),
            "known": np.where(k == 2, np.nan, 0.03 * k),
            "sent": 10 * self.t * k,
        }


@pytest.fixture(scope="module")
def run():
    organism = examples.snake(4)
    return simulate(
        organism.model("physical"), [0.1, 0.2, 0.3], None, 0.1, Law(4), "RK4", dt=0.01,
        organism=organism,
    )  # fmt: skip


@pytest.fixture(scope="module")
def panels(run):
    def reference(t):
        return SimpleNamespace(q=[1.0, 2.0, 3 * t])

    return {panel["key"]: panel for panel in signals.panels(run, reference)}


def test_each_quantity_has_its_panel(panels):
    assert [(p["key"], p["title"], p["unit"], len(p["lines"])) for p in panels.values()] == [
        ("q", "Position", "rad", 3),
        ("v", "Velocity", "rad/s", 3),
        ("a", "Acceleration", "rad/s²", 3),
        ("tau", "Torque", "N m", 3),
        ("energy", "Energy", "J", 3),
        ("error", "Tracking error", "rad", 3),
        ("estimate", "Estimate minus truth, 3σ band", "rad", 3),
        ("mass", "Center of mass: horizontal distance from the base", "m", 1),
        ("known", "Center of mass as modules estimate it: error", "m", 4),
        ("sent", "Messages that modules send", "1/s", 4),
    ]
    assert all(panel["left_out"] == 0 for panel in panels.values())


def close(line, expected):
    np.testing.assert_allclose(line["y"], expected, rtol=1e-6, atol=1e-12)


def test_lines_of_joints_are_the_columns_of_the_run(run, panels):
    joints = list(run.model.joint_names)
    for key in ("q", "v", "a", "tau"):
        for k, line in enumerate(panels[key]["lines"]):
            assert line["name"] == line["joint"] == joints[k]
            np.testing.assert_allclose(line["t"], run.t)
            close(line, getattr(run, key)[:, k])


def test_errors_are_position_minus_reference_and_estimate_minus_truth(run, panels):
    wanted = np.stack([np.ones(11), np.full(11, 2.0), 3 * run.t], axis=1)
    for k in range(3):
        close(panels["error"]["lines"][k], run.q[:, k] - wanted[:, k])
        line = panels["estimate"]["lines"][k]
        close(line, np.full(11, 0.01 * (k + 1)))
        assert line["low"] == pytest.approx([-0.06] * 11)  # three sigmas
        assert line["high"] == pytest.approx([0.06] * 11)


def test_energies_and_the_distance_of_the_center_are_those_of_the_model(run, panels):
    names = [line["name"] for line in panels["energy"]["lines"]]
    assert names == ["kinetic", "potential", "sum"]
    kinetic, potential, total = (line["y"] for line in panels["energy"]["lines"])
    np.testing.assert_allclose(np.add(kinetic, potential), total, atol=1e-5)
    close(panels["energy"]["lines"][2], run.energy)
    (line,) = panels["mass"]["lines"]
    close(line, np.linalg.norm(run.model.center_of_mass(run.q)[:, :2], axis=1))  # base at 0


def test_modules_have_a_line_each_and_messages_are_rates(panels):
    assert [line["name"] for line in panels["known"]["lines"]] == ["m0", "m1", "m2", "m3"]
    close(panels["known"]["lines"][1], np.full(11, 0.03))
    for k, line in enumerate(panels["sent"]["lines"]):
        close(line, np.full(11, 10.0 * k))


def test_modules_are_tinted_by_errors_and_messages(run):
    errors, rates = signals.tints(run)
    assert (errors["key"], errors["unit"], errors["most"]) == ("known", "m", WIDTH)
    assert errors["levels"][0] == pytest.approx([0, 0.3, 1, 0.9])  # unknown counts as a width
    assert (rates["key"], rates["unit"], rates["most"]) == ("sent", "1/s", 30)
    assert rates["levels"][5] == pytest.approx([0, 1 / 3, 2 / 3, 1], abs=1e-3)
    assert errors["modules"] == rates["modules"] == ["m0", "m1", "m2", "m3"]
    assert len(errors["levels"]) == len(errors["t"]) == 11


def test_numbers_of_lines_have_seven_digits_and_colors_three():
    assert signals._plain([2 / 3, -12345678.0, 1e-9]) == [0.6666667, -12345680.0, 1e-9]
    values = np.array([[1.0, 7.0], [2.0, -1.0]])
    tint = signals._tint("key", "", "m", np.array([0.0, 1.0]), ["a", "b"], values, 3.0)
    assert tint["levels"] == [[0.333, 1.0], [0.667, 0.0]]
    still = signals._tint("key", "", "m", np.array([0.0, 1.0]), ["a", "b"], 0 * values, 0.0)
    assert still["levels"] == [[0.0, 0.0], [0.0, 0.0]]


def test_the_way_of_the_center_is_that_of_the_model(run):
    way = signals.center_of_mass(run)
    np.testing.assert_allclose(way["xyz"], run.model.center_of_mass(run.q), atol=1e-7)
    np.testing.assert_allclose(way["t"], run.t)


def test_a_run_without_torques_references_or_channels_has_fewer_panels():
    model = examples.crane().model("physical")
    found = simulate(model, [0, 0.5], None, 0.05, None, "RK4", dt=0.01)
    panels = {panel["key"]: panel for panel in signals.panels(found, None)}
    assert set(panels) == {"q", "v", "a", "energy", "mass"}
    assert panels["q"]["unit"] == "m or rad"
    assert signals.tints(found) == []


def test_parts_of_a_run_are_named():
    organism = examples.snake(3)
    model = organism.model("physical", base="free", gravity=(0, 0, 0))
    found = simulate(model, None, np.full(8, 0.1), 0.1, None, "RK4", dt=0.01,
                     events=[Undock(0.05, "m2")], organism=organism)  # fmt: skip
    panels = {panel["key"]: panel for panel in signals.panels(found, None)}
    names = [line["name"] for line in panels["energy"]["lines"]]
    assert names[:3] == ["kinetic of m0", "potential of m0", "sum of m0"]
    assert names[-1] == "sum of m2"
    assert {line["name"] for line in panels["mass"]["lines"]} == {"of m0", "of m2"}
    first = next(line for line in panels["q"]["lines"] if line["name"] == "m0.hinge")
    close(first, found.parts[0].q[:, 7])  # behind the pose of the base


def test_panels_of_many_joints_say_how_many_they_leave_out():
    model = examples.snake(65).model("physical")
    found = simulate(model, None, None, 0.002, None, "RK4", dt=0.001)
    panel = signals.panels(found, None)[0]
    assert (len(panel["lines"]), panel["left_out"]) == (60, 4)


# -- ground, connectors, Lagrange ------------------------------------------------------------------

G = 9.81
RESTING = {"base": "free", "ground": True, "integrator": "SemiImplicitEuler", "duration": 0.6}


def test_ground_forces_carry_the_weight_and_a_block_stands_on_its_four_corners():
    block = Organism.start("backbone")
    found = signals.ground(Scenario(organism=block, **RESTING, record=0.1).run())
    mass, (part,) = block.kind("m0").mass, found["parts"]
    assert found["weight"] == pytest.approx(mass * G)
    x, y, z, *force = part["forces"][-1][0]
    np.testing.assert_allclose(force, [0, 0, mass * G], atol=1e-3 * mass * G)
    np.testing.assert_allclose([x, y], 0, atol=1e-6)
    assert -1e-3 < z < 0  # below the middle, a little in the ground
    reach = block.kind("m0").size / 2
    corners = np.array(part["support"][-1])
    assert len(corners) == 4
    np.testing.assert_allclose(np.abs(corners[:, 1]), reach, atol=0.02 * reach)
    assert part["inside"][-1]
    assert len(part["t"]) == len(part["forces"]) == len(part["support"]) == len(part["inside"])


def test_a_block_that_tips_over_an_edge_has_its_center_outside_of_the_support():
    tilted = np.eye(4)
    tilted[:3, :3] = so3.exp(np.array([0.3, 0.0, 0.0]))
    block = Organism.start("backbone").with_base_pose(tilted)
    (part,) = signals.ground(Scenario(organism=block, **{**RESTING, "duration": 0.01}).run())[
        "parts"
    ]
    assert len(part["support"][-1]) == 2
    assert not part["inside"][-1]
    assert signals.ground(Scenario(organism=block, duration=0.01, base="free").run()) is None


def test_connectors_are_colored_by_their_load_of_the_limit_and_by_torque_without_one():
    arm = Organism.start("backbone").dock("m0", 3, "m1", 4, kind="backbone")
    held = {"hinges": "physical", "motion": "hold", "controller": "ComputedTorque"}
    plain = Scenario(organism=arm, **held, duration=0.1).run().trajectory
    size, mass = arm.kind("m1").size, arm.kind("m1").mass
    torque = mass * G * size / 2  # of the weight of m1 about its docking
    (tint,) = signals.tints(plain, signals.part_loads(plain))
    assert (tint["title"], tint["unit"], tint["quiet"]) == ("Torque on connectors", "N m", True)
    assert tint["most"] == pytest.approx(torque, rel=SHOWN)
    assert tint["modules"] == ["m1"]
    strong = arm.with_parameters(max_torque=2 * torque)
    run = Scenario(organism=strong, **held, duration=0.1).run().trajectory
    loads = signals.part_loads(run)
    (tint,) = signals.tints(run, loads)
    assert (tint["unit"], tint["most"], tint["quiet"]) == ("% of the limit", 100.0, False)
    assert tint["levels"][-1] == pytest.approx([0.5], abs=1e-3)
    assert signals.overloads(loads) == []
    weak = Scenario(organism=arm.with_parameters(max_torque=torque / 2), **held, duration=0.1)
    (mark,) = signals.overloads(signals.part_loads(weak.run().trajectory))
    assert mark == (0.0, "overload m0.3-m1.4")


def test_loads_are_left_out_where_masses_are_not_those_of_the_modules():
    fields = {"organism": "snake", "duration": 0.01, "masses": 1.1}
    assert signals.part_loads(Scenario(**fields).run().trajectory) == []


@pytest.mark.parametrize(
    ("name", "start"), [("double_pendulum", "m0.hinge"), ("crane", "m1.hinge")]
)
def test_a_free_run_is_drawn_beside_the_solution_of_lagranges_equations(name, start):
    scenario = Scenario(organism=name, hinges="physical", pose={start: 1.0}, duration=1.0)
    assert scenario.free
    found = scenario.run().trajectory
    for panel in signals.panels(found, None, free=True)[:3]:
        ours, theirs = panel["lines"][:2], panel["lines"][2:]
        for line, other in zip(ours, theirs, strict=True):
            assert other["dashed"]
            assert other["name"] == f"{line['name']} (Lagrange)"
            np.testing.assert_allclose(line["y"], other["y"], rtol=LAGRANGE, atol=LAGRANGE)
    assert all(len(panel["lines"]) == 2 for panel in signals.panels(found, None)[:3])
    for changed in ({"stops": True}, {"pushes": [{"body": "m2", "force": (1, 0, 0)}]}):
        assert not scenario.edited(**changed).free


def test_the_distance_of_the_center_is_horizontal_and_from_the_base():
    tower = examples.arm("bab")
    model = tower.model("physical", base="free", gravity=(0, 0, 0))
    q = model.neutral()
    q[:3], q[7:] = [0.3, -0.2, 0.5], [0.2, 0.7, -0.4]
    found = simulate(model, q, None, 0.02, None, "RK4", dt=0.01, organism=tower)
    (panel,) = (p for p in signals.panels(found, None) if p["key"] == "mass")
    apart = model.center_of_mass(q) - q[:3]
    assert abs(apart[2]) > 0.1
    assert panel["lines"][0]["y"][0] == pytest.approx(np.hypot(*apart[:2]), rel=1e-5)


def test_forces_without_a_corner_in_the_ground_act_at_the_deepest_one():
    """Bristles hold a body that has risen a little."""
    block = Organism.start("backbone")
    result = Scenario(organism=block, **{**RESTING, "duration": 0.02}, record=0.01).run()
    part = result.trajectory.parts[0]
    q = part.q.copy()
    q[:, 2] = 0.06
    q[:, 3:7] = Rotation.from_euler("xy", [0.05, -0.03]).as_quat()
    forces = np.zeros_like(part.channels["contact"])
    forces[:, 0] = [0.0, 0.5, 3.0]
    raised = replace(part, q=q, channels={**part.channels, "contact": forces})
    run = replace(result.trajectory, parts=(raised,))
    (found,) = signals.ground(result._replace(trajectory=run))["parts"]
    x, y, z, *force = found["forces"][0][0]
    assert force == [0.0, 0.5, 3.0]
    half = block.kind("m0").size / 2
    corners = half * np.array([[a, b, -1.0] for a in (-1, 1) for b in (-1, 1)])
    places = Rotation.from_quat(q[0, 3:7]).apply(corners) + q[0, :3]
    deepest = places[places[:, 2].argmin()]
    assert 0 < deepest[2] < 0.06
    np.testing.assert_allclose([x, y, z], deepest, atol=0.03 * half)  # edges have a bevel
    assert found["support"][0] == []
    assert not found["inside"][0]
    q[:, 2] -= deepest[2] + 4e-3  # now two of its corners are in the ground: the lever rule
    (found,) = signals.ground(result._replace(trajectory=run))["parts"]
    _, places, depths = corner_depths(result.ground, part.organism, part.model, q[:1])
    depth = np.maximum(depths[0], 0.0)
    assert 1 < np.count_nonzero(depth) < 4
    np.testing.assert_allclose(found["forces"][0][0][:3], depth @ places[0] / depth.sum(), 1e-6)


def test_the_way_of_the_center_is_of_what_hangs_together_with_the_first_base():
    organism = examples.snake(3)
    model = organism.model("physical", base="free", gravity=(0, 0, 0))
    found = simulate(model, None, np.full(8, 0.1), 0.1, None, "RK4", dt=0.01,
                     events=[Undock(0.05, "m2")], organism=organism)  # fmt: skip
    first, second, lost = found.parts
    assert (first.name, second.name, lost.name) == ("m0", "m0", "m2")
    way = signals.center_of_mass(found)
    own = [part.model.center_of_mass(part.q) for part in (first, second)]
    np.testing.assert_allclose(way["xyz"], np.concatenate(own), atol=1e-6)
    assert len(way["t"]) == len(first.t) + len(second.t)


@pytest.mark.parametrize(("count", "most", "rows"), [(5, 5, 5), (6, 5, 5), (3, 5, 3)])
def test_rows_that_are_drawn_keep_the_first_and_the_last(count, most, rows):
    found = signals.chosen(count, most)
    assert len(found) == rows
    assert (found[0], found[-1]) == (0, count - 1)
    assert np.ptp(np.diff(found)) <= 1


def test_large_bodies_have_arrows_at_fewer_moments(monkeypatch):
    pair = {"organism": examples.snake(2), "hinges": "physical", **RESTING, "duration": 0.06}
    result = Scenario(**pair, record=0.01).run()
    assert result.trajectory.model.nbodies == 4
    for most, moments in ((28, 7), (12, 3), (2, 2)):
        monkeypatch.setattr(signals, "MOST_FORCES", most)
        (part,) = signals.ground(result)["parts"]
        assert [len(part[key]) for key in ("t", "forces", "support", "inside")] == [moments] * 4
        assert (part["t"][0], part["t"][-1]) == (0.0, pytest.approx(0.06))


def test_what_has_no_mass_has_no_center_and_no_messages_no_color():
    """Joints in the world alone, as they carry a base: all their bodies are without mass."""
    organism = Organism.start("virtual_px")
    model, t = organism.model("physical"), np.linspace(0.0, 1.0, 3)
    q = np.zeros((3, model.nq))
    part = BodyTrajectory("m0", model, organism, t, q, q, q)
    run = Trajectory((part,))
    assert signals.center_of_mass(run) is None
    assert signals._distance(run)["lines"] == []
    light = Organism.start("superbot_light")  # 50 g
    model, q = light.model("physical"), np.zeros((3, 3))
    other = Trajectory((BodyTrajectory("m0", model, light, t, q, q, q),))
    assert signals.center_of_mass(other) is not None
    assert len(signals._distance(other)["lines"]) == 1
    silent = replace(part, channels={"sent": np.zeros((3, 1), int)})
    (tint,) = signals.tints(Trajectory((silent,)))
    assert (tint["most"], tint["levels"]) == (0.0, [[0.0]] * 3)


def test_bodies_that_are_in_no_book_and_runs_of_several_parts_have_no_other_solution():
    crab = examples.crab()
    bodies = [(crab, 1), (examples.double_pendulum(), 1), (examples.double_pendulum(), 2)]
    counts = []
    for organism, parts in bodies:
        model, t = organism.model("physical"), np.linspace(0.0, 0.1, 3)
        q = np.zeros((3, model.nq))
        part = BodyTrajectory("m0", model, organism, t, q, q, q)
        run = Trajectory((part,) * parts)
        first = signals.panels(run, None, free=True)[0]["lines"]
        counts.append(sum("Lagrange" in line["name"] for line in first))
    assert counts == [0, 2, 0]
