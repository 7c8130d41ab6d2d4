"""Robots on several feet: they stand, are pushed, step; modules agree with a central solution."""

from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import modurob as mr
from modurob.cli import cli
from modurob.distributed import Fault, Impulse, InProcess, StandingNetwork, stand
from modurob.distributed.balancing.on_ground import StandingModules
from modurob.distributed.balancing.stance import SHARE, Step, feet_of, stance
from modurob.distributed.balancing.standing import (
    BASE,
    CENTER,
    CONTACT_DIGITS,
    FASTEST_JOINT,
    FLOOR,
    HOME_RATE,
    SHIFT_SPEED,
    SLIP_M,
    SLIP_RAD,
    TASK_RATE,
    TURN_LENGTH,
    StandingAgent,
    _within_slip,
    ground_region,
)
from modurob.distributed.balancing.standing_processes import StandingProcesses
from modurob.distributed.balancing.support import stability_region, support_polygon
from modurob.spatial import so3
from modurob.stepping.contact import Touching

ROUNDING = 1e-9  # [m] of places that are computed in another order
DIFFERENCES = 1e-6  # relative: the central solution moves the center by finite differences
DECAYED = 0.02  # of the weight: forces of the ground while the last swings decay
SWAYS = 0.05  # of the weight: mean force of the ground over half a second in which it comes to rest
GRAVITY = 9.81


@pytest.fixture(scope="module")
def walker():
    """A robot with three legs, and a posture."""
    rng = np.random.default_rng(2)
    tree = mr.examples.superbot_walker(3, 2, rng)
    return tree, stance(tree, feet_of(tree), rng)


@pytest.fixture(scope="module")
def four_legs():
    rng = np.random.default_rng(1)
    tree = mr.examples.superbot_walker(4, 2, rng)
    return tree, stance(tree, feet_of(tree), rng)


def test_a_posture_has_flat_soles_and_nothing_else_on_the_ground(four_legs):
    tree, q = four_legs
    model = tree.model("physical", base="free")
    T = model.forward_kinematics(q)
    feet = {foot.module: tree.kind(foot.module).port(foot.port) for foot in feet_of(tree)}
    for name, port in feet.items():
        sole = T[model.body_index(f"{name}.{port.body}")] @ port.pose
        assert abs(sole[2, 3]) < 2e-3
        assert sole[2, 2] < -0.999  # downwards
    others = [k for k, name in enumerate(model.body_names) if name.split(".")[0] not in feet]
    assert T[others, 2, 3].min() > 0.03


def test_a_robot_that_is_pushed_on_a_slope_stays(walker):
    tree, _ = walker
    mass = tree.model("physical").mass.sum()
    run = stand(
        tree, ground=mr.Ground(slope=(0.0, 0.07)), push=Impulse(0.4, (0.3 * mass, 0.0, 0.0)),
        rng=np.random.default_rng(2), duration=1.0, record=0.1,
    )  # fmt: skip
    assert run.fallen is None
    assert np.linalg.norm(run.center[5, :2] - run.center[3, :2]) > 1e-3  # it was felt
    force = run.channels["contact"][-1].sum(axis=0)
    np.testing.assert_allclose(force, [0, 0, mass * GRAVITY], atol=DECAYED * mass * GRAVITY)


def test_a_robot_that_is_pushed_too_hard_counts_as_fallen(walker):
    tree, q = walker
    push = Impulse(0.02, (0.0, 8.0 * tree.model("physical").mass.sum(), 0.0))
    run = stand(tree, q0=q, push=push, duration=0.5, record=0.02)
    assert run.fallen is not None


def test_soles_that_slide_slip_though_they_leave_the_ground(tmp_path):
    """Above the friction angle all soles go downhill, and some are knocked off the ground."""
    walker = mr.examples.superbot_walker(3, 2, np.random.default_rng(2))
    steep = mr.Ground(slope=(1.0, 0.0))
    run = stand(walker, ground=steep, duration=0.9, rng=np.random.default_rng(2), record=0.02)
    assert run._flights
    first = np.searchsorted(run.t, 0.4)  # it has settled
    way = np.linalg.norm(run.soles[first:, :, :2] - run.soles[first, :, :2], axis=2)
    np.testing.assert_allclose(run.slip, way.max(axis=0))
    assert run.slip.min() > 0.1
    walker.save(tmp_path / "walker.json")
    arguments = ["balance", str(tmp_path / "walker.json"), "--ground", "--slope", "45"]
    said = CliRunner().invoke(cli, [*arguments, "--duration", "0.7"]).output
    assert "It does not fall, but slides; 0 of 0 steps" in said


@pytest.fixture(scope="module")
def stepped(four_legs):
    """A run with one step of the second foot, by 3 cm; three of ten messages are lost."""
    tree, _ = four_legs
    steps, rng = [(feet_of(tree)[1].module, (0.03, 0.0))], np.random.default_rng(1)
    return stand(tree, steps=steps, rng=rng, duration=3.4, record=0.05, loss=0.3)


def test_a_robot_steps(stepped):
    assert stepped.fallen is None
    assert stepped.steps_done == 1
    assert stepped.slip.max() < 0.01
    moved = stepped.soles[-1] - stepped.soles[8]
    np.testing.assert_allclose(moved[1, :2], [0.03, 0.0], atol=0.012)
    assert np.linalg.norm(np.delete(moved, 1, axis=0)[:, :2], axis=1).max() < 0.01
    assert stepped.soles[:, 1, 2].max() > 0.02  # through the air
    foot = stepped.feet[1].module
    contact = stepped.channels["contact"][:, :, 2]
    own = [k for k, name in enumerate(stepped.model.body_names) if name.startswith(f"{foot}.")]
    assert contact[:, own].sum(axis=1).min() == 0
    assert contact[-1, own].sum() > 0


def test_steps_that_were_not_made_as_asked_do_not_count(stepped):
    (step,) = stepped.steps
    other = stepped.feet[0].module
    for asked in (
        [step._replace(shift=(0.06, 0.0, 0.0))], [step._replace(foot=other)],
        [step._replace(foot=other), step],
    ):  # fmt: skip
        assert replace(stepped, steps=tuple(asked)).steps_done == 0
    assert replace(stepped, steps=(step, step)).steps_done == 1


def test_a_foot_that_lies_on_another_side_than_its_sole_counts_as_fallen(stepped):
    part = stepped.parts[0]
    contact = part.channels["contact"].copy()
    foot = stepped.feet[0]
    sole = part.organism.kind(foot.module).port(foot.port).body
    names = stepped.model.body_names
    body = next(
        n for n in names if n.startswith(f"{foot.module}.") and n != f"{foot.module}.{sole}"
    )
    contact[5, names.index(body), 2] = 1.0
    fallen = replace(
        stepped, parts=(replace(part, channels={**part.channels, "contact": contact}),)
    )
    assert fallen.fallen is not None
    assert body in fallen.fallen


def test_a_first_posture_carries_the_robot_without_the_feet_that_step(four_legs):
    tree, _ = four_legs
    feet = feet_of(tree)
    steps = [Step(foot.module, (0.03, 0.02, 0.0)) for foot in feet[:2]]
    q = stance(tree, feet, np.random.default_rng(3), steps)
    model = tree.model("physical", base="free")
    ports = [tree.kind(foot.module).port(foot.port) for foot in feet]
    soles = [
        (model.forward_kinematics(q)[model.body_index(f"{f.module}.{p.body}")] @ p.pose)[:3, 3]
        for f, p in zip(feet, ports, strict=True)
    ]
    for k in range(2):
        place = np.array([*soles[:k], *soles[k + 1 :]])
        if k == 1:
            place[0] += steps[0].shift
        loads = np.linalg.solve(
            np.vstack([place[:, :2].T, np.ones(3)]), [*model.center_of_mass(q)[:2], 1.0]
        )
        assert loads.min() > SHARE - 0.03


def central_rates(tree, feet, q, home, goal, leader, twists, target):
    """Rates of all joints from Jacobians of the whole body, whose leader's foot does as it asks."""
    model = tree.model("physical", base="free")
    T = model.forward_kinematics(q)

    def point(body, place):
        J = model.jacobian(q, body, "aligned")
        arm = np.cross(J[3:].T, place - T[body][:3, 3])
        return np.vstack([J[:3] + arm.T, J[3:]])

    rows = []
    for foot in feet:
        port = tree.kind(foot.module).port(foot.port)
        body = model.body_index(f"{foot.module}.{port.body}")
        rows.append(point(body, (T[body] @ port.pose)[:3, 3]))
    base = model.modules[tree.base]
    rows.append(point(base, T[base][:3, 3]))
    scale = np.array([1, 1, 1, TURN_LENGTH, TURN_LENGTH, TURN_LENGTH])
    move = np.eye(model.nv)[:, 6:]  # velocities of base and joints, by joint
    move[:6] = -np.linalg.solve(rows[leader][:, :6], rows[leader][:, 6:])
    carried = np.zeros((model.nv, 1))  # by the leader's foot, all joints at rest
    carried[:6, 0] = np.linalg.solve(rows[leader][:, :6], twists[leader] / scale)
    move = np.hstack([move, carried])
    step = 1e-6
    centers = [model.center_of_mass(model.integrate(q, s * move.T)) for s in (step, -step)]
    com = ((centers[0] - centers[1]) / (2 * step))[:, :2].T  # (2, joints + 1)
    rows = [scale[:, None] * J @ move for J in rows]
    rows[-1] = BASE[:, None] * rows[-1]
    *a, carried = np.vstack([CENTER * com, *rows]).T
    a = np.array(a)
    b = HOME_RATE * (home - goal)
    e = np.concatenate([
        CENTER * TASK_RATE * (target - model.center_of_mass(q)[:2]), *twists
    ]) - carried - a.T @ b  # fmt: skip
    A = a.T @ a
    floor = FLOOR * np.trace(A) / len(A) + 1e-12
    return b + a @ np.linalg.solve(A + floor * np.eye(len(A)), e)


@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_modules_have_region_center_and_rates_of_a_central_solution(four_legs, monkeypatch, loss):
    tree, q = four_legs
    monkeypatch.setattr(StandingAgent, "_decided", lambda self, state, view, now: state)
    feet, margin = feet_of(tree), 0.0
    lossy = InProcess(loss=loss, rng=np.random.default_rng(3))
    network = StandingNetwork(tree, feet, margin=margin, transport=lossy)
    model = network.model
    T = model.forward_kinematics(q)
    soles = [(foot, tree.kind(foot.module).port(foot.port)) for foot in feet]
    bodies = [model.body_index(f"{foot.module}.{port.body}") for foot, port in soles]
    up = np.tile([0.0, 0.0, 1.0], (3, 1))
    place = np.array([port.pose[:3, 3] for _, port in soles[:3]])  # the last foot is in the air
    network.connect_ground(lambda: Touching(np.array(bodies[:3]), place, up, 10 * up))
    rng = np.random.default_rng(0)
    home = q[7:] + 0.1 * rng.standard_normal(len(q) - 7)
    network.measure(home, model=model)
    network.measure(q[7:], model=model)
    network.sense_contacts(q)
    twists = [*(0.02 * rng.standard_normal((4, 6))), np.zeros(6)]
    for name, state in network.states.items():
        network.states[name] = replace(state, goal=state.q, complete=True)
    for foot, twist in zip(feet, twists, strict=False):
        network.states[foot.module] = replace(network.states[foot.module], twist=twist)
    network.settle()
    assert (lossy.counts.lost > 0) == (loss > 0)

    contacts = (T[bodies[:3], :3, :3] @ place[..., None])[..., 0] + T[bodies[:3], :3, 3]
    region = support_polygon(np.round(contacts, CONTACT_DIGITS))  # as modules do
    center = model.center_of_mass(q)
    target = region.shrunk(margin).nearest(center)
    assert 0 < TASK_RATE * np.linalg.norm(target - center[:2]) < SHIFT_SPEED
    leader = [foot.module for foot in feet].index(network.leader)
    wanted = central_rates(tree, feet, q, home, q[7:], leader, twists, target)
    found = {}
    for name, agent in network.agents.items():
        view = network.view(name)
        own = ground_region(view.T_wm, view.contacts, 0.0)
        np.testing.assert_allclose(own.corners, region.corners, atol=ROUNDING)
        np.testing.assert_allclose(network.total_in_world(name).center, center, atol=ROUNDING)
        rates = agent.rates(network.states[name], view)
        found |= {f"{name}.{j}": r for j, r in zip(agent.body.joint_names, rates, strict=True)}
    rates = np.array([found[name] for name in model.joint_names])
    assert 0.1 < np.abs(rates).max() < FASTEST_JOINT
    np.testing.assert_allclose(rates, wanted, atol=DIFFERENCES * np.abs(wanted).max())


def test_with_lost_messages_a_robot_on_four_legs_goes_above_three_when_a_foot_dies(four_legs):
    tree, q = four_legs
    dead = feet_of(tree)[0].module
    fault, rng = Fault(0.2, dead, "die"), np.random.default_rng(4)
    run = stand(tree, q0=q, faults=[fault], loss=0.3, duration=1.6, record=0.1, rng=rng)
    assert run.fallen is None
    assert run.lost == {dead}
    left = support_polygon(run.soles[-1, 1:])
    assert left.margin(run.center[0, :2]) < left.margin(run.center[-1, :2])
    assert left.contains(run.center[-1, :2])


def resting(tree, q, rounds, raised=None, dead=None):
    """The modules after some rounds of a robot at rest; one foot is up, or dies in the middle."""
    feet = feet_of(tree)
    network = StandingNetwork(tree, feet)
    model = network.model
    soles = [(f, tree.kind(f.module).port(f.port)) for f in feet if f.module != raised]
    bodies = np.array([model.body_index(f"{foot.module}.{port.body}") for foot, port in soles])
    place, up = np.array([p.pose[:3, 3] for _, p in soles]), np.tile([0, 0, 1.0], (len(soles), 1))
    network.connect_ground(lambda: Touching(bodies, place, up, 10 * up))
    for k in range(rounds):
        if k == rounds // 2 and dead is not None:
            network.kill(dead)
        network.measure(q[7:], model=model)
        network.sense_contacts(q)
        network.round()
    return network


def test_the_mass_of_a_dead_module_counts_and_its_leg_does_nothing_for_the_others(four_legs):
    tree, q = four_legs
    feet = feet_of(tree)
    network = resting(tree, q, 40, dead=feet[0].module)
    model = network.model
    assert network.total("m0").mass == pytest.approx(model.mass.sum(), rel=ROUNDING)
    np.testing.assert_allclose(
        network.total_in_world("m0").center, model.center_of_mass(q), atol=ROUNDING
    )
    assert len(network.contacts_in_world("m0")) == 3
    alone = []
    for foot in feet[:2]:
        state = network.states[tree.docking(foot.module).parent]
        before = state.goal - 0.02 * state.rate
        alone.append(np.allclose(state.rate, HOME_RATE * (state.home - before), atol=1e-9))
    assert alone == [True, False]


def test_a_foot_that_slipped_takes_its_new_place_for_its_own():
    start, sole = np.eye(4), np.eye(4)
    sole[:3, 3] = 0.003, 0.0, 0.01
    np.testing.assert_array_equal(_within_slip(start, sole), start)
    sole[:3, :3] = so3.exp(np.array([0.0, 0.0, 0.5])) @ so3.exp(np.array([0.1, 0.0, 0.0]))
    sole[0, 3] = 0.03
    new = _within_slip(start, sole)
    np.testing.assert_allclose(new[:3, 3], [0.03 - SLIP_M, 0.0, 0.0], atol=ROUNDING)
    np.testing.assert_allclose(new[2, :3], [0.0, 0.0, 1.0], atol=ROUNDING)  # as flat as before
    assert so3.log(sole[:3, :3] @ new[:3, :3].T)[2] == pytest.approx(SLIP_RAD, rel=0.01)


def test_processes_of_a_standing_robot_stay_when_it_is_pushed_and_one_dies(walker):
    tree, q = walker
    mass, dead = tree.model("physical").mass.sum(), feet_of(tree)[0].module
    run = stand(
        tree, q0=q, processes=True, loss=0.1, push=Impulse(0.3, (0.3 * mass, 0.0, 0.0)),
        faults=[Fault(0.5, dead, "die")], duration=0.9,
    )  # fmt: skip
    assert run.fallen is None
    assert run.t[-1] >= 0.9
    way = np.linalg.norm((run.center - run.center[0])[:, :2], axis=1)
    assert way[run.t < 0.3].max() < 1e-3 < way[run.t > 0.3].max()  # it was felt
    load = np.mean(run.channels["contact"][run.t > 0.5].sum(axis=1), axis=0)
    np.testing.assert_allclose(load, [0, 0, mass * GRAVITY], atol=SWAYS * mass * GRAVITY)


def test_processes_are_told_the_friction_of_the_ground_and_their_speed(walker, monkeypatch):
    class Begun(Exception):
        """Raised in place of starting processes."""

    def begin(self, organism, feet, steps, **options):
        assert options == {"friction": 0.3, "speed": 0.5, "seed": 7}
        raise Begun

    monkeypatch.setattr(StandingModules, "__init__", begin)
    tree, q = walker
    with pytest.raises(Begun):
        StandingProcesses(tree, (), ground=mr.Ground(friction=0.3), q0=q, speed=0.5, seed=7)


def test_contacts_on_a_slope_have_the_polygon_as_region():
    n = np.array([-0.1, 0.05, 1.0]) / np.linalg.norm([-0.1, 0.05, 1.0])
    xy = np.random.default_rng(0).uniform(-0.2, 0.2, (5, 2))
    rows = np.column_stack([xy, xy @ [0.1, -0.05], np.tile(n, (5, 1)), np.full(5, 0.8)])
    exact, polygon = stability_region(rows), support_polygon(rows)
    for corner in polygon.corners:
        assert np.abs(exact.corners - corner).sum(axis=1).min() < 1e-6
    assert len(exact.corners) == len(polygon.corners)


def test_bad_robots_feet_and_steps_are_refused(walker):
    tree, q = walker
    foot = feet_of(tree)[0]
    with pytest.raises(mr.StateError, match="3 feet or more"):
        stand(tree, feet={foot.module: foot.port})
    with pytest.raises(mr.UnknownNameError, match="no foot 'm0'"):
        stand(tree, q0=q, steps=[("m0", (0.1, 0.0))])
    with pytest.raises(mr.StateError, match="shift of a step"):
        stand(tree, q0=q, steps=[(foot.module, (0.1, np.nan))])
    with pytest.raises(mr.StateError, match="takes a plane"):
        stand(tree, q0=q, ground=mr.Ground(height=np.zeros((3, 3))))
    with pytest.raises(mr.StateError, match="takes an Organism"):
        stand("crab")
    with pytest.raises(mr.StateError, match="1 to 4 legs"):
        mr.examples.superbot_walker(7)
