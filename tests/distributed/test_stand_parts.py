"""Parts of standing robots by themselves: sums, phases of a step, sensors, the judge of a run."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import modurob as mr
from modurob.distributed import Fault, GearedDrive, Impulse, StandingNetwork
from modurob.distributed.balancing import on_ground, standing
from modurob.distributed.balancing.on_ground import Stood, _on_slope, _step, _wrench, stand
from modurob.distributed.balancing.stance import Foot, Step, _loads, _Posture, feet_of
from modurob.distributed.balancing.stance import stance as stance_of
from modurob.distributed.balancing.standing import (
    BASE,
    CENTER,
    LIFT,
    STAND,
    SWING,
    TURN_LENGTH,
    UNLOAD,
    StandingAgent,
    TaskSums,
)
from modurob.distributed.mass.module_body import levers
from modurob.sim.body_trajectory import BodyTrajectory
from modurob.spatial import so3
from modurob.stepping.contact import Touching
from modurob.stepping.ground import corners
from oracles import complains

SUPERBOT = mr.catalog["superbot"]
ROUNDING = 1e-12  # of lengths of a meter and less


def pose(turn, place):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = so3.exp(np.array(turn, dtype=float)), place
    return T


# -- sums and geometry -----------------------------------------------------------------------------


@pytest.mark.parametrize(("frames", "size"), [(2, 126), (5, 576)])  # four feet: 4.6 kB
def test_sums_hold_matrix_right_side_places_and_steps(frames, size):
    rng, sums = np.random.default_rng(0), TaskSums(frames)
    rows = 2 + 6 * frames
    A = rng.standard_normal((rows, rows))
    A, e, places = A + A.T, rng.standard_normal(rows), rng.standard_normal((frames, 3))
    packed = sums.pack(A, e, places, 3)
    assert packed.shape == (sums.size,) == (size,)
    found = sums.system(packed)
    np.testing.assert_array_equal(found[0], A)
    np.testing.assert_array_equal(found[1], e)
    np.testing.assert_array_equal(sums.places(packed), places)
    assert sums.done(packed) == 3
    found[1][:] = 0.0  # a copy: it is changed later
    np.testing.assert_array_equal(sums.system(packed)[1], e)
    np.testing.assert_array_equal(sums.system(2 * packed)[0], 2 * A)  # they add up


def test_a_foot_goes_up_across_and_down_and_on_until_it_meets_the_ground():
    def smooth(t, begin, seconds):
        s = min(max((t - begin) / seconds, 0.0), 1.0)
        return 10 * s**3 - 15 * s**4 + 6 * s**5

    shift = np.array([0.03, -0.02, 0.005])
    for t in (-1.0, 0.0, 0.3, 0.7, 0.8, 1.3, 1.9, 2.2, 2.4, 2.9):
        height = 0.04 * (smooth(t, 0.0, 0.8) - smooth(t, 1.6, 0.8)) - 0.04 * max(t - 2.4, 0.0)
        wanted = smooth(t, 0.4, 1.6) * shift + [0.0, 0.0, height]
        np.testing.assert_allclose(standing._path(shift, t), wanted, atol=1e-15)


def test_a_twist_leads_back_with_four_times_the_error_a_second():
    now = pose([0.0, 0.0, 0.4], [0.1, 0.2, 0.3])
    start = pose([0.0, 0.0, 0.4], [0.0, 0.0, 0.0])
    start[:3, :3] = so3.exp(np.array([0.2, 0.0, 0.0])) @ now[:3, :3]
    start[:3, 3] = [0.11, 0.18, 0.33]
    found = standing._twist(start, now, np.array([0.01, 0.02, -0.03]))
    np.testing.assert_allclose(found, [0.08, 0.0, 0.0, 4 * 0.05 * 0.2, 0.0, 0.0], atol=1e-12)
    x = np.array([3.0, 4.0])
    np.testing.assert_allclose(standing._limited(x, 2.5), [1.5, 2.0])
    np.testing.assert_array_equal(standing._limited(x, 5.1), x)


def test_a_sole_that_landed_keeps_height_and_turn_of_its_start():
    start, sole = pose([0.1, 0.2, 0.3], [1.0, 2.0, 3.0]), pose([0.5, 0.0, 0.0], [4.0, 5.0, 6.0])
    found = standing._above(start, sole)
    np.testing.assert_array_equal(found[:3, 3], [4.0, 5.0, 3.0])
    np.testing.assert_array_equal(found[:3, :3], start[:3, :3])
    assert start[0, 3] == 1.0


def test_what_the_leaders_sole_asks_for_moves_all_else_the_other_way():
    """The whole robot turns about the sole as one body; that is subtracted from all tasks."""
    rng = np.random.default_rng(1)
    places, center, leader = rng.standard_normal((4, 3)), rng.standard_normal(3), 1
    e = rng.standard_normal(2 + 6 * 4)
    before = e.copy()
    v, turn = e[8:11].copy(), e[11:14] / TURN_LENGTH
    standing._hold_still(leader, e, places, center)
    lost = before - e

    def carried(place):
        return v + np.cross(turn, place - places[leader])

    np.testing.assert_allclose(lost[:2], CENTER * carried(center)[:2])
    for k in range(4):
        moved = np.concatenate([carried(places[k]), TURN_LENGTH * turn])
        weight = BASE if k == 3 else 1.0
        np.testing.assert_allclose(lost[2 + 6 * k : 8 + 6 * k], weight * moved)
    np.testing.assert_allclose(e[8:14], 0.0, atol=1e-15)
    np.testing.assert_allclose(BASE, [0.0, 0.0, 0.3, 0.3, 0.3, 0.3])


def test_contacts_a_tenth_of_a_millimeter_apart_are_one_and_regions_have_their_margin():
    T = pose([0.0, 0.0, np.pi / 2], [1.0, 0.0, 0.0])  # (x, y) in the module: (1 - y, x)
    here = np.array([[0, 0], [0.4, 0], [0.4, 0.4], [0.40002, 0.40002], [0, 0.4]])
    rows = np.column_stack([here, np.zeros(5), np.tile([0, 0, 1, 0.5], (5, 1))])
    region = standing.ground_region(T, rows, 0.1)
    corners = {tuple(corner) for corner in np.round(region.corners, 9)}
    assert corners == {(0.9, 0.1), (0.9, 0.3), (0.7, 0.3), (0.7, 0.1)}
    assert standing.ground_region(T, -rows * 0.0, 0.1).corners.tolist() == [[1.0, 0.0]]
    plain, below = (standing.ground_region(np.eye(4), rows - e, 0.1) for e in (0.0, 1e-9))
    assert below is plain  # zero and what is next to nothing below it are the same place


# -- contact sensors -------------------------------------------------------------------------------


def test_modules_that_carry_enough_of_the_weight_feel_pose_place_normal_and_body():
    organism = mr.Organism.start("superbot").dock("m0", 4, "m1", 1).dock("m1", 4, "m2", 1)
    model = organism.model("physical", base="free")
    rng = np.random.default_rng(2)
    q = np.concatenate([rng.standard_normal(3), so3.to_quaternion(so3.exp(rng.uniform(-1, 1, 3))),
                        rng.uniform(-0.5, 0.5, len(model.joint_names))])  # fmt: skip
    T = model.forward_kinematics(q)
    names = organism.kind("m2").bodies
    bodies = [model.body_index(f"m2.{names[1].name}"), model.body_index(f"m2.{names[3].name}")]
    light = model.body_index(f"m1.{names[0].name}")
    weight = 9.81 * model.mass.sum()
    normal = np.array([0.0, 0.6, 0.8])
    push = np.array([0.3, 0.5, 0.0199])  # of the weight, along the normal
    force = weight * push[:, None] * normal + [[1.0, 0.0, 0.0]] * 3  # friction does not count
    place = rng.standard_normal((3, 3))
    touching = Touching(np.array([*bodies, light]), place, np.tile(normal, (3, 1)), force)
    found = standing.contact_readings(organism, model, q, touching, 0.7)
    assert found.keys() == {"m2"}  # 2 % of the weight are needed
    reading = np.array(found["m2"])
    own = T[model.modules["m2"]]
    np.testing.assert_allclose(reading[:3], own[:3, 3])
    np.testing.assert_allclose(so3.from_quaternion(reading[3:7]), own[:3, :3], atol=1e-12)
    points = [(T[b] @ [*p, 1.0])[:3] for b, p in zip(bodies, place, strict=False)]
    middle = (0.3 * points[0] + 0.5 * points[1]) / 0.8
    np.testing.assert_allclose(own @ [*reading[7:10], 1.0], [*middle, 1.0])
    np.testing.assert_allclose(own[:3, :3] @ reading[10:13], normal, atol=1e-12)
    assert reading[13:].tolist() == [0.7, 3.0]  # the body with the larger share
    touching = touching._replace(force=force * [[1], [1], [1.02]])
    assert standing.contact_readings(organism, model, q, touching, 0.7).keys() == {"m1", "m2"}
    least = 0.02 * float(np.linalg.norm(model.gravity)) * float(model.mass.sum())
    for push, count in ((least, 0), (np.nextafter(least, 9.0), 1)):
        one = Touching(np.array([light]), place[:1], np.eye(3)[2:], push * np.eye(3)[2:])
        assert len(standing.contact_readings(organism, model, q, one, 0.7)) == count


# -- a module --------------------------------------------------------------------------------------

NOW, PERIOD = 50.0, 0.02


def foot(**options):
    return StandingAgent(SUPERBOT, 3, (0, "4"), period=PERIOD, **options)


def started(agent, **changes):
    state = agent.started({}, np.random.default_rng(0))
    return replace(state, **changes)


def test_a_module_stays_where_it_wakes_up_and_its_servos_follow_its_rate():
    agent = foot()
    state = started(agent)
    assert state.home is None
    assert not agent._home_rate(state).any()
    q, later = np.array([0.1, -0.2, 0.3]), np.array([0.5, 0.6, 0.7])
    state = agent.sensed(agent.sensed(state, q, 0 * q), later, q)
    for value in (state.home, state.goal):
        np.testing.assert_array_equal(value, q)
    np.testing.assert_array_equal(state.q, later)
    np.testing.assert_array_equal(state.v, q)
    assert not state.announced
    state = replace(state, rate=np.array([1.0, 2.0, -3.0]))
    _, commands = agent.driven(state)
    goals, rates = commands.reshape(-1, 2).T
    np.testing.assert_allclose(goals, [0.1 - 0.02, -0.2 - 0.04, 0.3 + 0.06])  # a period ago
    np.testing.assert_array_equal(rates, state.rate)
    np.testing.assert_allclose(agent._home_rate(replace(state, goal=later)), 0.2 * (q - later))


def test_a_foot_tells_the_middle_of_its_sole_and_one_that_lifts_tells_nothing():
    agent = foot()
    state = agent.sensed(started(agent), np.array([0.3, 0.2, -0.1]), np.zeros(3))
    T = pose([0.3, 0.1, -0.4], [0.5, 0.6, 0.7])
    reading = [
        *T[:3, 3], *so3.to_quaternion(T[:3, :3]), 9.0, 8.0, 7.0, 0.0, 0.6, 0.8, 0.55, 2.0
    ]  # fmt: skip
    felt = agent.felt(state, reading)
    sole = agent.body.at(state.q).ports[agent.body.labels.index("4")][:3, 3]
    np.testing.assert_allclose(felt.contacts, [[*sole, 0.0, 0.6, 0.8, 0.55]])
    np.testing.assert_allclose(felt.pose, T)
    assert felt.contact_body == 2
    assert felt.touching
    assert felt.ticket[0] == 1
    assert not agent.felt(felt, ()).touching
    assert len(agent.felt(felt, ()).contacts) == 0
    lifting = agent.felt(replace(felt, phase=UNLOAD), reading)
    assert lifting.touching
    assert (len(lifting.contacts), lifting.pose, lifting.ticket) == (0, None, (0, 0))
    other = StandingAgent(SUPERBOT, 3, period=PERIOD)  # no foot: where it is pushed
    np.testing.assert_allclose(
        other.felt(started(other), reading).contacts, [[9.0, 8.0, 7.0, 0.0, 0.6, 0.8, 0.55]]
    )


def view(agent, *, done=0, T_wm=None, center=(0.0, 0.0), places=None):
    """What a module knows: a large square of contacts, and where the center of mass is."""
    frames = agent.sums.frames
    places = np.ones((frames, 3)) if places is None else places
    rows = agent.sums.rows
    square = np.array([[x, y, 0.0, 0, 0, 1, 0.5] for x in (-0.1, 0.1) for y in (-0.1, 0.1)])
    total = np.eye(4)
    total[:2, 3] = total[3, :2] = center
    return SimpleNamespace(
        sums=agent.sums.pack(np.zeros((rows, rows)), np.zeros(rows), places, done), levers=None,
        T_wm=np.eye(4) if T_wm is None else T_wm, contacts=square, total=total,
        posture=agent.body.at(np.zeros(3)), leader_port=None, received={},
    )  # fmt: skip


SHIFT = (0.03, 0.02, 0.004)


def stepping(agent, state, *, now=NOW, sole=None, **known):
    sole = pose([0, 0, 0], [0.5, 0.4, 0.3]) if sole is None else sole
    return agent._stepping(state, view(agent, **known), sole, now)


def test_a_foot_unloads_after_the_steps_before_and_half_a_second():
    agent = foot(steps=[(0, (0, 0, 0)), (2, SHIFT)])
    state = started(agent, step=1, since=NOW - 0.51, start=np.eye(4), touching=True)
    after = stepping(agent, state, done=2)
    assert (after.phase, after.since) == (UNLOAD, NOW)
    assert stepping(agent, state, done=3).phase == UNLOAD
    assert stepping(agent, state, done=1).phase == STAND
    assert stepping(agent, replace(state, since=NOW - 0.49), done=2).phase == STAND


def test_a_foot_lifts_when_the_center_is_safe():
    agent = foot(steps=[(0, SHIFT)], margin=0.02)  # the region ends at 0.08
    start = pose([0.1, 0.0, 0.0], [1.0, 2.0, 3.0])
    state = started(agent, phase=UNLOAD, since=NOW - 0.31, start=start, touching=True)
    sole = pose([0, 0, 0.2], [0.5, 0.4, 0.3])
    after = stepping(agent, state, center=(0.091, 0.0), sole=sole)
    assert (after.phase, after.since) == (LIFT, NOW)
    np.testing.assert_array_equal(after.start, standing._above(start, sole))
    for changed, known in (
        (state, {"center": (0.093, 0.0)}),  # by 13 mm
        (replace(state, since=NOW - 0.29), {"center": (0.0, 0.0)}),
    ):
        same = stepping(agent, changed, **known)
        assert (same.phase, same.since) == (UNLOAD, changed.since)
    assert agent._center(SimpleNamespace(T_wm=None, contacts=[1]))[1] is None
    assert agent._center(SimpleNamespace(T_wm=np.eye(4), contacts=[]))[1] is None


def test_phases_end_after_their_times_and_not_at_them():
    agent, off = foot(steps=[(0, SHIFT)]), [0.0]
    agent._center = lambda view: (np.array([off[0], 0.0, 0.0]), np.zeros(2))

    def phase(before, now):
        state = started(agent, phase=before, since=0.0, start=np.eye(4), touching=True)
        return stepping(agent, state, now=now).phase

    for before, seconds, after in ((STAND, 0.5, UNLOAD), (UNLOAD, 0.3, LIFT), (SWING, 1.2, STAND)):
        assert phase(before, seconds) == before
        assert phase(before, np.nextafter(seconds, 2.0)) == after
    off[0] = 0.012
    assert phase(UNLOAD, 0.4) == UNLOAD
    off[0] = np.nextafter(0.012, 0.0)
    assert phase(UNLOAD, 0.4) == LIFT


def test_a_foot_in_the_air_follows_its_path_and_lands_in_the_second_half():
    agent = foot(steps=[(0, SHIFT)])
    start, sole = np.eye(4), pose([0, 0, 0], [0.01, 0.02, 0.03])
    lifting = started(agent, phase=LIFT, since=NOW - 0.1, start=start, touching=True)
    assert stepping(agent, lifting, sole=sole).phase == LIFT  # it has not left the ground yet
    flying = stepping(agent, replace(lifting, touching=False, since=NOW - 1.0), sole=sole)
    assert flying.phase == SWING
    here, ahead = (standing._path(np.array(SHIFT), t) for t in (1.0, 1.0 + PERIOD))
    wanted = 4.0 * np.concatenate([here - sole[:3, 3], np.zeros(3)])
    wanted[:3] += (ahead - here) / PERIOD
    wanted *= min(1.0, 0.15 / np.linalg.norm(wanted))
    np.testing.assert_allclose(flying.twist, wanted)
    early = replace(flying, touching=True, since=NOW - 1.19)
    assert stepping(agent, early, sole=sole).phase == SWING
    late = replace(flying, touching=True, since=NOW - 1.21)
    landed = stepping(agent, late, sole=sole)
    assert (landed.phase, landed.since, landed.step) == (STAND, NOW, 1)
    np.testing.assert_allclose(landed.start[:3, 3], [0.01, 0.02, 0.004])  # higher, on a slope
    assert stepping(agent, replace(lifting, since=NOW - 2.0)).phase == LIFT


def decided(agent, state, rate, **known):
    agent.rates = lambda *given: np.array(rate, dtype=float)
    return agent._decided(state, view(agent, **known), NOW)


def test_goals_move_within_limits_and_joints_at_them_have_no_part():
    agent = foot()
    lower, upper = agent.body.lower, agent.body.upper
    goal = np.array([0.1, upper[1] - 0.012, lower[2] + 0.012])
    state = started(agent, goal=goal, home=goal, q=goal, start=np.eye(4), touching=True)
    after = decided(agent, state, [0.5, 0.5, -0.5])
    np.testing.assert_allclose(after.goal, goal + PERIOD * np.array([0.5, 0.5, -0.5]))
    np.testing.assert_allclose(after.rate, [0.5, 0.5, -0.5])
    assert after.free.tolist() == [True, False, False]  # closer than 1 cm, and outward
    assert decided(agent, after, [0.5, -0.1, 0.1]).free.all()  # inward
    far = decided(agent, state, [0.0, 2.0, -2.0])
    np.testing.assert_allclose(far.goal[1:], [upper[1], lower[2]])
    np.testing.assert_allclose(far.rate, [0.0, 0.012 / PERIOD, -0.012 / PERIOD])
    almost = decided(agent, replace(state, goal=goal * [1, 0, 0]), [0.5, 0.5, -0.5])
    assert almost.free.all()
    little, edge = np.array([0.0, 1e-30, -1e-30]), np.array([0.0, upper[1] - 0.01, lower[2] + 0.01])
    assert decided(agent, replace(state, goal=edge), little).free.all()  # exactly so close
    ends = np.array([0.0, upper[1], lower[2]])
    assert decided(agent, replace(state, goal=ends), [0, 0, 0]).free.all()  # at rest
    assert decided(agent, replace(state, goal=ends), little).free.tolist() == [True, False, False]


def test_where_joints_are_is_home_after_each_step_and_all_is_known_once():
    agent = foot()
    state = started(agent, goal=np.full(3, 0.1), home=np.zeros(3), start=np.eye(4), known=1)
    same = decided(agent, state, [0, 0, 0], done=1)
    assert (same.known, same.home.tolist()) == (1, [0.0] * 3)
    next_ = decided(agent, state, [0, 0, 0], done=2)
    assert (next_.known, next_.home.tolist()) == (2, [0.1] * 3)
    assert next_.complete
    missing = np.array([[1.0, 1, 1], [0, 0, 0], [1, 1, 1]])
    assert not decided(agent, state, [0, 0, 0], places=missing).complete
    assert decided(agent, replace(state, complete=True), [0, 0, 0], places=missing).complete


def test_feet_stay_where_they_slipped_to_and_go_down_where_they_lost_the_ground():
    agent = foot()
    sole = agent.body.at(np.zeros(3)).ports[agent.body.labels.index("4")]
    here = pose([0, 0, 0], [0.2, 0.1, 0.0])
    first = decided(agent, started(agent, touching=True), [0, 0, 0], T_wm=here)
    np.testing.assert_allclose(first.start, here @ sole)  # where it is first known
    np.testing.assert_allclose(first.twist, 0.0, atol=1e-12)
    moved = pose([0, 0, 0], [0.202, 0.1, 0.0])
    after = decided(agent, first, [0, 0, 0], T_wm=moved)
    np.testing.assert_allclose(after.start, first.start, atol=1e-12)
    np.testing.assert_allclose(after.twist, [-0.008, 0, 0, 0, 0, 0], atol=1e-12)
    slipped = decided(agent, first, [0, 0, 0], T_wm=pose([0, 0, 0], [0.23, 0.1, 0.0]))
    np.testing.assert_allclose(slipped.twist, [-4 * 0.005, 0, 0, 0, 0, 0], atol=1e-12)
    lost = decided(agent, replace(first, touching=False), [0, 0, 0], T_wm=moved)
    np.testing.assert_allclose(lost.twist, [-0.008, 0, -0.04, 0, 0, 0], atol=1e-12)
    high = decided(agent, replace(first, touching=False), [0, 0, 0],
                   T_wm=pose([0, 0, 0], [0.2, 0.1, 0.03]))  # fmt: skip
    np.testing.assert_allclose(high.twist, [0, 0, -0.12, 0, 0, 0], atol=1e-12)
    fast = decided(agent, replace(first, touching=False), [0, 0, 0],
                   T_wm=pose([0, 0, 0], [1.2, 0.1, 0.0]))  # fmt: skip
    assert np.linalg.norm(fast.twist) == pytest.approx(0.15)


def test_the_base_keeps_height_and_attitude_and_other_modules_ask_for_nothing():
    base = StandingAgent(SUPERBOT, 3, (2, None), period=PERIOD)
    start = pose([0.1, 0, 0], [0.0, 0.0, 0.5])
    state = decided(base, started(base), [0, 0, 0], T_wm=start)
    np.testing.assert_allclose(state.start, start)
    now = pose([0.2, 0, 0], [0.3, 0.1, 0.4])
    after = decided(base, state, [0, 0, 0], T_wm=now)
    np.testing.assert_allclose(after.twist, BASE * standing._twist(start, now, np.zeros(3)))
    other = StandingAgent(SUPERBOT, 3, period=PERIOD)
    asked = decided(other, started(other), [0.1, 0, 0], T_wm=now)
    assert asked.start is None
    assert not asked.twist.any()


def test_joints_rest_while_the_whole_is_unknown():
    agent = foot()
    state = started(agent, goal=np.full(3, 0.1), home=np.zeros(3), complete=True)
    assert not agent.rates(state, view(agent)).any()  # no levers
    known = view(agent)
    known.levers = standing.Levers(*np.zeros((6, 3, 3)))
    for changed, seen in (
        (replace(state, complete=False), known),
        (state, SimpleNamespace(**vars(known) | {"contacts": []})),
        (state, SimpleNamespace(**vars(known) | vars(
            view(agent, places=np.diag([1.0, 1, 0]))) | {"levers": known.levers})),
    ):  # fmt: skip
        assert not agent.rates(changed, seen).any()


def test_the_center_goes_by_5_cm_a_second_and_joints_by_3_rad_a_second_at_most(monkeypatch):
    agent = foot()
    rows = agent.sums.rows
    effect = np.zeros((3, rows))
    effect[0, 0], effect[1, 1] = 1.0, 1.0
    monkeypatch.setattr(agent, "_effects", lambda *given: effect)
    state = started(agent, goal=np.zeros(3), home=np.array([0.0, 0.0, 0.5]), complete=True)
    share = 1 + 0.02 * 2 / rows  # damping: 2 % of the mean of the diagonal, which is 1, 1, 0 ...

    def rates(center, asked=0.0):
        known = view(agent, center=center)
        known.levers = standing.Levers(*np.zeros((6, 3, 3)))
        e = np.zeros(rows)
        e[1] = asked
        known.sums = agent.sums.pack(effect.T @ effect, e, np.ones((3, 3)), 0)
        return agent.rates(state, known)

    near = 5.0 * 4.0 * 0.004 / share  # the center counts five times, errors decay with 4/s
    np.testing.assert_allclose(rates((0.104, 0.0)), [-near, 0.0, 0.2 * 0.5])
    np.testing.assert_allclose(rates((0.15, 0.0)), [-5.0 * 0.05 / share, 0.0, 0.1])
    asked = 30.0 * share  # ten times as fast as allowed: all joints are slowed down
    np.testing.assert_allclose(rates((0.15, 0.0), asked), [-0.025 / share, 3.0, 0.01])


@pytest.mark.parametrize(
    ("moved", "lost", "leader"),
    [((0,), (), 1), ((1,), (), 0), ((0, 1), (), None), ((0,), (1,), None), ((1,), (0,), None)],
)
def test_the_leaders_sole_is_the_one_that_is_there_and_that_no_joint_moves(
    monkeypatch, moved, lost, leader
):
    agent, leaders = foot(), []
    monkeypatch.setattr(standing, "_hold_still", lambda number, *given: leaders.append(number))
    places, A = np.ones((3, 3)), np.eye(agent.sums.rows)
    for k in {0, 1} - {*moved}:
        A[2 + 6 * k : 8 + 6 * k] = 0.0
    places[[*lost]] = 0.0
    known = view(agent)
    known.levers = standing.Levers(*np.zeros((6, 3, 3)))
    known.sums = agent.sums.pack(A, np.zeros(len(A)), places, 0)
    agent.rates(started(agent, goal=np.zeros(3), complete=True), known)
    assert leaders == ([] if leader is None else [leader])


@pytest.mark.parametrize(
    ("frame", "port"), [((2, None), "4"), ((2, None), "6"), ((0, "4"), "1"), ((1, "3"), "5")]
)
def test_joints_move_the_own_frame_as_the_leaders_side_stays(frame, port):
    agent = StandingAgent(SUPERBOT, 3, frame, period=PERIOD)
    slot, sole = frame
    q, T_wm = np.array([0.3, -0.5, 0.4]), pose([0.2, -0.1, 0.6], [0.3, 0.1, 0.5])
    state, posture = started(agent, q=q, free=np.ones(3, dtype=bool)), agent.body.at(q)
    labels = agent.body.labels
    held = T_wm @ posture.ports[labels.index(port)]

    def own(q):
        ports = agent.body.at(q).ports
        T = held @ np.linalg.inv(ports[labels.index(port)])
        return T if sole is None else T @ ports[labels.index(sole)]

    split = agent._sides(state, port)
    found = levers(agent.body, split, posture, np.zeros((len(labels), 4, 4)), T_wm)
    places = np.ones((3, 3))
    places[slot] = own(q)[:3, 3]
    rows = agent._effects(state, found, split, places, {}, posture)
    weight = BASE if slot == 2 else np.ones(6)
    for row, e in zip(rows, 1e-6 * np.eye(3), strict=True):
        before, after = own(q - e), own(q + e)
        turn = so3.log(after[:3, :3] @ before[:3, :3].T)
        twist = np.concatenate([after[:3, 3] - before[:3, 3], TURN_LENGTH * turn]) / 2e-6
        np.testing.assert_allclose(row[2 + 6 * slot : 8 + 6 * slot], weight * twist, atol=1e-8)
    assert (np.abs(rows[:, 2 + 6 * slot :]).max(axis=1) > 1e-3).all()
    assert not np.delete(rows[:, 2:].reshape(3, 3, 6), slot, axis=1).any()  # seen by no neighbor
    # what the frame asks for, and where it is, are in the sums at its own place
    asks = replace(state, goal=q, home=q, twist=np.arange(1.0, 7.0), step=2)
    sums = agent._own_sums(asks, found, split, posture, {}, T_wm)
    wanted = np.zeros(agent.sums.rows)
    wanted[2 + 6 * slot : 8 + 6 * slot] = asks.twist
    np.testing.assert_allclose(agent.sums.system(sums)[1], wanted, atol=1e-15)
    wanted = np.zeros((3, 3))
    wanted[slot] = places[slot]
    np.testing.assert_allclose(agent.sums.places(sums), wanted)
    assert agent.sums.done(sums) == 2


def test_joints_move_a_foot_beyond_a_neighbor_and_the_center_of_all():
    agent = StandingAgent(SUPERBOT, 3, period=PERIOD)
    q, T_wm = np.array([0.3, -0.5, 0.4]), pose([0.2, -0.1, 0.6], [0.3, 0.1, 0.5])
    state, posture = started(agent, q=q, free=np.array([True, True, True])), agent.body.at(q)
    one, four = (agent.body.labels.index(label) for label in "14")
    held, attached = T_wm @ posture.ports[one], pose([0.4, 0.1, -0.3], [0.05, 0.2, -0.1])

    def there(q):
        ports = agent.body.at(q).ports
        return held @ np.linalg.inv(ports[one]) @ ports[four] @ attached

    places = np.zeros((3, 3))
    places[1] = there(q)[:3, 3]
    rows = agent.sums.rows
    told = agent.sums.pack(np.zeros((rows, rows)), np.zeros(rows), places, 0)
    received = {"4": standing.Update(np.diag([1.0, 1.0, 1.0, 2.5]), sums=told)}
    split = agent._sides(state, "1")
    found = levers(agent.body, split, posture, np.zeros((len(agent.body.labels), 4, 4)), T_wm)
    a = agent._effects(state, found, split, places, received, posture)
    np.testing.assert_allclose(a[:, :2], 5.0 * found.moment[:, :2] / (SUPERBOT.mass + 2.5))
    for row, e in zip(a[:, 2:].reshape(3, 3, 6), 1e-6 * np.eye(3), strict=True):
        before, after = there(q - e), there(q + e)
        turn = so3.log(after[:3, :3] @ before[:3, :3].T)
        twist = np.concatenate([after[:3, 3] - before[:3, 3], TURN_LENGTH * turn]) / 2e-6
        np.testing.assert_allclose(row[1], twist, atol=1e-8)
        assert not row[[0, 2]].any()
    stuck = replace(state, free=np.array([True, False, True]))
    assert not agent._effects(stuck, found, split, places, received, posture)[1].any()
    lost = agent._effects(state, found, split, 0 * places, {}, posture)
    assert not lost.any()  # joints of a leg whose foot is lost


def test_a_lost_neighbor_counts_as_a_mass():
    agent = foot()
    gone = standing.Update(np.diag([1.0, 2, 3, 4]), sums=np.ones(agent.sums.size))
    left = agent._lost(gone)
    np.testing.assert_array_equal(left.mass, gone.mass)
    assert not left.sums.any()
    assert left.sums.shape == (agent.sums.size,)
    assert len(left.contacts) == 0


# -- the network -----------------------------------------------------------------------------------


def test_servos_of_a_network_hold_goals_that_move_between_rounds():
    organism = mr.Organism.start("superbot").dock("m0", 4, "m1", 1)
    drive = GearedDrive(friction=0.4, torque=3.0)
    network = StandingNetwork(organism, [Foot("m1", 4)], drive=drive, stiffness=5.0)
    ticks = []
    network._tick = lambda q, v: ticks.append(network._samples)
    network._goal, network._rate = np.arange(6) / 10, np.arange(6) / 5
    network._limp = np.arange(6) == 2
    q = np.concatenate([np.zeros(7), np.full(6, 0.1)])
    for k in range(45):
        tau = network.command(0.0, q, np.zeros(12), None)
        goal = np.arange(6) / 10 + 1e-3 * (k % 20) * np.arange(6) / 5
        wanted = np.clip(5.0 * (goal - 0.1) + 0.4 * np.arange(6) / 5, -3.0, 3.0)
        np.testing.assert_allclose(tau, [0.0] * 6 + [*np.where(np.arange(6) == 2, 0, wanted)])
    assert ticks == [0, 20, 40]
    assert network.period == pytest.approx(0.02)
    agents = network.agents
    assert agents["m1"]._slot == 0
    assert agents["m1"].body.labels[agents["m1"]._sole] == "4"
    assert (agents["m0"]._slot, agents["m0"]._sole) == (1, None)  # the base is the last frame
    assert agents["m0"].heartbeat == 0.1
    assert agents["m0"].resend == pytest.approx(0.04)


def test_servos_of_a_module_that_dies_let_go_and_those_of_a_frozen_one_hold():
    organism = mr.Organism.start("superbot").dock("m0", 4, "m1", 1)
    faults = [Fault(0.0, "m1", "die"), Fault(0.02, "m1", "reboot"), Fault(0.04, "m0", "freeze")]
    network = StandingNetwork(organism, [Foot("m1", 4)], faults=faults)
    nothing = np.zeros((0, 3))
    network.connect_ground(lambda: Touching(np.zeros(0, dtype=int), nothing, nothing, nothing))
    q, limp = np.concatenate([network.model.neutral()[:7], np.full(6, 0.1)]), []
    owner = [name.partition(".")[0] for name in network.model.joint_names]
    for _ in range(3):
        network._tick(q, np.zeros(12))
        limp.append({name for name, x in zip(owner, network._limp, strict=True) if x})
    assert limp == [{"m1"}, set(), set()]
    assert {tuple(state.q) for state in network.states.values()} == {(0.1, 0.1, 0.1)}  # measured
    assert network._asleep == {"m0"}
    assert not network._rate[[name == "m0" for name in owner]].any()


def test_a_push_lasts_50_ms_along_axes_of_the_base_as_it_stands():
    q = np.concatenate([np.zeros(3), so3.to_quaternion(so3.exp(np.array([0.1, 0.7, -0.4])))])
    wrench = _wrench(Impulse(0.3, (0.2, -0.1, 0.05)), q)
    force = so3.exp(np.array([0.1, 0.7, -0.4])).T @ [4.0, -2.0, 1.0]
    np.testing.assert_allclose(wrench(0.3), [*force, 0, 0, 0])
    np.testing.assert_allclose(wrench(0.349), [*force, 0, 0, 0])
    assert not wrench(0.2999).any()
    assert not wrench(0.3 + 0.05).any()
    with complains(mr.StateError, "time", "-0.1"):
        _wrench(Impulse(-0.1, (1, 0, 0)), q)


def test_a_robot_from_level_ground_stands_as_flat_on_a_slope():
    ground = mr.Ground(slope=(0.3, -0.2), height=0.4)
    T = pose([0.2, 0.1, -0.5], [0.1, 0.2, 0.3])
    q = np.concatenate([T[:3, 3], so3.to_quaternion(T[:3, :3]), [0.7]])
    found = _on_slope(q, ground)
    now = np.eye(4)
    now[:3, :3], now[:3, 3] = so3.from_quaternion(found[3:7]), found[:3]
    carried = now @ np.linalg.inv(T)  # of the whole body
    for x, y in ((0.0, 0.0), (1.0, 0.0), (0.3, -0.8)):  # level points come to the slope
        a, b, z, _ = carried @ [x, y, 0.0, 1.0]
        assert z == pytest.approx(0.3 * a - 0.2 * b + 0.4)
    assert so3.log(carried[:3, :3])[2] == pytest.approx(0.0, abs=1e-12)  # it does not turn round
    assert carried[2, 2] > 0
    assert found[7] == 0.7
    np.testing.assert_allclose(_on_slope(q, mr.Ground()), q, atol=1e-15)


def test_steps_climb_with_the_ground():
    step = _step(("m2", (0.04, -0.01)), [Foot("m1", 4), Foot("m2", 4)], mr.Ground(slope=(0.1, 0.3)))
    assert step == Step("m2", (0.04, -0.01, pytest.approx(0.001)))


@pytest.mark.parametrize("shift", [(0.04, np.nan), (0.04, np.inf), (0.04, 0.0, 0.0), 0.04, "east"])
def test_a_shift_is_two_finite_numbers(shift):
    with complains(mr.StateError, "the shift of a step is (x, y) in meters", repr(shift)):
        _step(("m1", shift), [Foot("m1", 4)], mr.Ground())


def test_soles_are_where_their_connectors_are():
    organism = mr.Organism.start("superbot").dock("m0", 4, "m1", 1)
    model = organism.model("physical", "free")
    q = np.array([model.random_configuration(np.random.default_rng(k)) for k in range(3)])
    feet = (Foot("m1", 4), Foot("m0", 2))
    run = made(feet=feet, q=q, model=model, parts=[SimpleNamespace(organism=organism)])
    bodies, poses = Stood._sole_bodies.func(run)
    run.__dict__["_sole_bodies"] = bodies, poses
    for k, foot in enumerate(feet):
        port = organism.kind(foot.module).port(foot.port)
        body = model.body_names.index(f"{foot.module}.{port.body}")
        for state, soles in zip(q, Stood.soles.func(run), strict=True):
            T = model.forward_kinematics(state)[body] @ port.pose
            np.testing.assert_allclose(soles[k], T[:3, 3], atol=ROUNDING)


# -- a run -----------------------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch):
    """What `stand` asks the simulation for, in place of a run."""
    calls = []

    def simulated(plant, q, v, length, controller, integrator, **options):
        calls.append({**options, "q": q, "v": v, "length": length, "controller": controller})
        organism, n = options["organism"], 12 + len(plant.joint_names)
        assert integrator == "SemiImplicitEuler"
        part = BodyTrajectory(
            organism.base, controller.model, organism, np.zeros(1), q[None],
            *np.zeros((2, 1, n - 6)), {"contact": np.ones((1, 4, 3))},
        )  # fmt: skip
        return SimpleNamespace(parts=(part,))

    def posture(organism, feet, rng, steps):
        model = organism.model("physical", "free")
        calls.append({"feet": feet, "steps": steps, "drawn": rng.random()})
        q = np.zeros(model.nq)
        q[2], q[6] = 0.2, 1.0
        return q

    monkeypatch.setattr(on_ground, "simulate", simulated)
    monkeypatch.setattr(on_ground, "stance", posture)
    return calls


def tripod():
    organism = mr.Organism.start("superbot")
    for k, port in enumerate((1, 4, 6), 1):
        organism = organism.dock("m0", port, f"m{k}", 4)
    return organism


def test_a_robot_stands_for_a_second_and_five_for_each_step_from_a_posture_for_them(asked):
    organism, ground = tripod(), mr.Ground(slope=(0.2, -0.1), height=0.3, friction=0.6)
    run = stand(organism, ground=ground, steps=[("m1", (0.02, 0.01)), ("m2", (0.0, 0.03))])
    found, call = asked
    assert [foot.module for foot in found["feet"]] == ["m1", "m2", "m3"]
    assert run.feet == found["feet"]
    shifts = [("m1", (0.02, 0.01, 0.003)), ("m2", (0.0, 0.03, -0.003))]
    assert [(s.foot, pytest.approx(s.shift)) for s in found["steps"]] == shifts
    assert list(run.steps) == found["steps"]
    assert found["drawn"] == np.random.default_rng(0).random()
    assert (call["length"], call["dt"], call["record"]) == (11.0, 1e-3, 0.02)
    assert (call["v"], call["external"], call["progress"]) == (None, {}, False)
    assert call["ground"].lift  # feet come off
    assert (call["ground"].slope, call["ground"].friction) == ((0.2, -0.1), 0.6)
    level = np.zeros(len(call["q"]))
    level[2], level[6] = 0.2, 1.0
    np.testing.assert_allclose(call["q"], _on_slope(level, ground))
    network = call["controller"]
    assert (network._friction, network._stiffness) == (0.6, 60.0)
    assert [agent._margin for agent in network.agents.values()] == [0.015] * 4
    np.testing.assert_allclose(network.model.gravity, [0, 0, -9.81])
    assert network.transport.loss == 0.0
    np.testing.assert_allclose(run.center, network.model.center_of_mass(call["q"])[None])
    assert run.channels["contact"].shape == (1, 4, 3)
    assert (run.lost, run.ground.slope) == (frozenset(), (0.2, -0.1))


def test_a_robot_stands_as_it_is_told_to(asked):
    organism = tripod()
    q0 = np.zeros(len(organism.model("physical", "free").joint_names) + 7)
    q0[6], q0[8] = 1.0, 0.4
    faults = [Fault(0.1, "m1", "die"), Fault(0.2, "m2", "freeze"), Fault(0.3, "m2", "reboot")]
    told = []
    run = stand(
        organism, q0=q0, ground=mr.Ground(slope=(0.2, 0.0)), duration=0.7, record=0.1, loss=0.2,
        rng=np.random.default_rng(3), push=Impulse(0.3, (1.0, 0.0, 0.0)), faults=faults,
        drive=GearedDrive(0.4, 2.0), stiffness=30.0, margin=0.02, gravity=3.7, progress=told.append,
        feet={"m1": 1, "m2": 1, "m3": 2},
    )  # fmt: skip
    (call,) = asked
    np.testing.assert_array_equal(call["q"], q0)  # as given, also on a slope
    assert call["q"] is not q0
    assert (call["length"], call["record"], call["progress"]) == (0.7, 0.1, told.append)
    assert call["external"].keys() == {"m0"}
    np.testing.assert_allclose(call["external"]["m0"](0.31), [20, 0, 0, 0, 0, 0])
    network = call["controller"]
    assert (network.transport.loss, network._stiffness) == (0.2, 30.0)
    assert network.drive == GearedDrive(0.4, 2.0)
    assert [agent._margin for agent in network.agents.values()] == [0.02] * 4
    np.testing.assert_allclose(network.model.gravity, [0, 0, -3.7])
    assert network._faults == faults
    assert run.lost == {"m1"}
    assert [*run.feet] == [("m1", 1), ("m2", 1), ("m3", 2)]


# -- postures --------------------------------------------------------------------------------------


def test_feet_are_the_ends_of_the_tree_and_their_farthest_connectors():
    organism = mr.Organism.start("superbot").dock("m0", 4, "m1", 1).dock("m0", 1, "m2", 4)
    organism = organism.dock("m1", 4, "m3", 1)
    found = dict(feet_of(organism))
    assert found.keys() == {"m2", "m3"}
    for name, docked in (("m2", 4), ("m3", 1)):
        kind = organism.kind(name)
        place = {p.label: kind.port_pose(p.label)[:3, 3] for p in kind.ports}
        assert found[name] == max(
            place, key=lambda label: np.linalg.norm(place[label] - place[docked])
        )
    assert feet_of(organism, {"m1": 3}) == (Foot("m1", 3),)


def test_feet_that_step_do_not_carry_and_stand_elsewhere_afterwards():
    loads = _loads(["a", "b", "c"], [Step("b", (0.1, 0.2, 0.9)), Step("a", (0.3, 0.4, 0.9)),
                                     Step("b", (0.5, 0.6, 0.9))])  # fmt: skip
    assert loads.on.tolist() == [
        [True, True, True], [True, False, True], [False, True, True], [True, False, True]
    ]  # fmt: skip
    moved = np.zeros((4, 3, 2))
    moved[2:, 1] += [0.1, 0.2]
    moved[3:, 0] += [0.3, 0.4]
    np.testing.assert_allclose(loads.moved, moved)


# -- how a run is judged ---------------------------------------------------------------------------


class Made(Stood):
    """A run from numbers that the test makes up."""

    t = q = channels = model = parts = soles = _sole_bodies = None


def made(**values):
    run = object.__new__(Made)
    run.__dict__.update({"steps": (), "ground": mr.Ground(), "lost": frozenset(), **values})
    return run


T = np.arange(0.0, 5.01, 0.1)
FEET = (Foot("a", 1), Foot("b", 1), Foot("c", 1))


def walked(moves, flights, steps=()):
    """A run of three feet: `moves` (foot, time, shift), `flights` (foot, first, last, height)."""
    soles = np.zeros((len(T), 3, 3))
    soles[:, :, 0] = [0.0, 1.0, 2.0]
    force = np.zeros((len(T), 4, 3))
    force[:, [0, 2, 3], 1] = 5.0  # in any direction; body 1 has no sole
    body = [3, 0, 2]
    for k, at, shift in moves:
        soles[at - 1e-9 < T, k, :2] += shift
    for k, first, last, height in flights:
        there = (first - 1e-9 < T) & (last + 1e-9 > T)
        soles[there, k, 2] += height
        force[there, body[k]] = 0.0
    return made(
        t=T, soles=soles, channels={"contact": force}, _sole_bodies=(body, None), feet=FEET,
        steps=tuple(Step(*step) for step in steps),
    )  # fmt: skip


def test_a_flight_is_a_foot_that_is_not_pushed_and_comes_above_a_centimeter():
    run = walked([], [(1, 1.0, 1.4, 0.011), (0, 2.0, 2.2, 0.009), (2, 1.2, 1.3, 0.02),
                      (0, 4.5, 9.0, 0.02)])  # fmt: skip
    assert run._flights == [(11, 14, 2), (9, 15, 1), (44, 50, 0)]  # in the order of landing
    assert walked([], [(0, 2.0, 2.2, 0.01)])._flights == []  # exactly so high
    assert walked([], [(1, 0.0, 1.0, 0.02)])._flights == [(0, 11, 1)]
    slope = walked([], [(1, 1.0, 1.4, 0.02)])
    slope.__dict__["ground"] = mr.Ground(slope=(0.015, 0.0))  # 15 mm below the second foot
    assert slope._flights == []


STEP = ("b", (0.04, 0.03, 0.0))
FLIGHT = (1, 1.0, 1.4, 0.03)


@pytest.mark.parametrize(
    ("moves", "flights", "steps", "done"),
    [
        ([(1, 1.2, (0.04, 0.03))], [FLIGHT], [STEP], 1),
        ([(1, 1.2, (0.04, 0.044))], [FLIGHT], [STEP], 1),  # by 14 mm
        ([(1, 1.2, (0.04, 0.046))], [FLIGHT], [STEP], 0),
        ([(1, 1.2, (0.04, 0.03)), (0, 1.3, (0.016, 0.0))], [FLIGHT], [STEP], 0),  # another slips
        ([(1, 1.2, (0.04, 0.03)), (0, 1.3, (0.014, 0.0))], [FLIGHT], [STEP], 1),
        ([(1, 1.2, (0.04, 0.03)), (0, 0.2, (0.9, 0.0))], [FLIGHT], [STEP], 1),  # while it settled
        ([(1, 1.2, (0.04, 0.03)), (0, 0.5, (0.9, 0.0))], [FLIGHT], [STEP], 0),
        ([(1, 1.2, (0.04, 0.03))], [], [STEP], 0),  # it slid there
        ([(1, 1.2, (0.04, 0.03))], [FLIGHT], [STEP, STEP], 1),
        ([(1, 1.2, (0.04, 0.03))], [FLIGHT], [("a", (0.04, 0.03, 0.0)), STEP], 0),
        ([(1, 1.2, (0.04, 0.03)), (1, 2.5, (0.04, 0.03))], [FLIGHT, (1, 2.0, 3.0, 0.03)],
         [STEP, STEP], 2),
        ([(1, 1.2, (0.04, 0.03)), (0, 2.5, (0.1, 0.0))], [FLIGHT, (0, 2.0, 3.0, 0.03)],
         [STEP, ("a", (0.1, 0.0, 0.5))], 2),
    ],
)  # fmt: skip
def test_steps_count_as_asked_and_in_order(moves, flights, steps, done):
    assert walked(moves, flights, steps).steps_done == done


def test_slip_is_the_farthest_way_of_a_sole_from_where_it_stood_or_landed():
    quiet = [(0, 0.2, (0.5, 0.0)), (0, 1.2, (0.003, 0.004)), (0, 2.2, (-0.003, -0.004))]
    step = (1, 1.2, (0.04, 0.03))
    run = walked([*quiet, step, (1, 3.0, (0.006, 0.008))], [FLIGHT], [STEP])
    np.testing.assert_allclose(run.slip, [0.005, 0.01, 0.0], atol=1e-15)
    # a foot that was not asked to step counts in the air too
    run = walked([step], [FLIGHT])
    np.testing.assert_allclose(run.slip, [0.0, 0.05, 0.0], atol=1e-15)
    # one that steps later counts until the step before has landed
    flights, steps = [FLIGHT, (2, 3.0, 3.5, 0.03)], [STEP, ("c", (0.1, 0.0, 0.0))]
    moves = [step, (2, 1.2, (0.0, 0.02)), (2, 2.0, (0.3, 0.0)), (2, 3.2, (0.1, 0.0))]
    np.testing.assert_allclose(walked(moves, flights, steps).slip, [0.0, 0.0, 0.02], atol=1e-15)
    flights = [FLIGHT, (2, 1.6, 2.0, 0.03)]  # it leaves the ground when the other one lands
    moves = [step, (2, 1.2, (0.0, 0.02)), (2, 1.8, (0.1, 0.0))]
    np.testing.assert_allclose(walked(moves, flights, steps).slip, [0.0, 0.0, 0.02], atol=1e-15)


def test_of_a_run_that_ends_before_soles_have_settled_the_last_sample_counts():
    run = walked([(0, 0.2, (0.5, 0.0))], [(1, 0.1, 0.2, 0.03)], [STEP])
    last = run.t[:4]  # 0.3 s
    run.__dict__.update(t=last, soles=run.soles[:4], channels={
        "contact": run.channels["contact"][:4]
    })  # fmt: skip
    assert run.steps_done == 0
    assert run.slip[[0, 2]].tolist() == [0.0, 0.0]


def test_height_is_above_the_ground_and_tilt_is_from_the_start():
    ground = mr.Ground(slope=(0.1, 0.2), height=0.05)
    center = np.array([[1.0, 2.0, 1.0], [0.0, 0.0, 0.3]])
    start = so3.exp(np.array([0.3, 0.1, 0.2]))
    turns = [[0.25, 0.0, 0.0], [0.0, 0.0, 0.9], [0.0, -0.6, 0.0]]
    R = [start, *(so3.exp(np.array(turn)) @ start for turn in turns)]
    q = np.array([[0, 0, 0, *so3.to_quaternion(each), 0.4] for each in R])
    run = made(ground=ground, channels={"center": center}, q=q)
    np.testing.assert_allclose(run.height, [1.0 - 0.55, 0.25])
    np.testing.assert_allclose(run.tilt[1:], [0.25, 0.0, 0.6], atol=1e-7)


def fallen(*, tilt=0.0, heights=(1.0, 0.6), touches=(), lost=()):
    organism = mr.Organism.start("superbot", "a").dock("a", 4, "b", 1).dock("b", 4, "c", 1)
    names = ("a.x", "b.x", "b.sole", "c.x")
    force = np.zeros((3, 4, 3))
    for name, sample in touches:
        force[sample, names.index(name), 0] = 1e-3
    turn = [so3.to_quaternion(so3.exp(np.array([x, 0, 0]))) for x in (0, tilt, 0)]
    return made(
        t=np.array([0.0, 0.5, 1.25]), parts=[SimpleNamespace(organism=organism)],
        model=SimpleNamespace(body_names=names), _sole_bodies=([2], None), lost=frozenset(lost),
        q=np.array([[0, 0, 0, *each] for each in turn]),
        channels={"contact": force, "center": np.array([[0, 0, heights[0]], [0, 0, heights[1]],
                                                        [0, 0, heights[0]]])},
    ).fallen  # fmt: skip


def test_a_robot_has_fallen_that_touches_tilts_or_sinks():
    assert fallen() is None
    assert fallen(touches=[("b.sole", 1)]) is None
    assert fallen(touches=[("b.x", 2), ("b.x", 1)]) == "'b.x' touches the ground at 0.50 s"
    assert fallen(touches=[("c.x", 2)]) == "'c.x' touches the ground at 1.25 s"
    assert fallen(touches=[("c.x", 2), ("b.x", 1)], lost=["b"]) is None  # it died, and all beyond
    assert fallen(touches=[("a.x", 0)], lost=["b"]) is not None
    assert fallen(tilt=0.51) is None
    assert fallen(tilt=-0.54) == "the base tilts by 31 degrees"
    assert fallen(heights=(1.0, 0.51)) is None
    assert fallen(heights=(1.0, 0.49)) == "the center sinks to 0.490 m"
    assert fallen(heights=(0.4, 0.21)) is None
    assert fallen(heights=(0.4, 0.19)) == "the center sinks to 0.190 m"


# -- the first posture -----------------------------------------------------------------------------


def test_residuals_of_a_posture_are_its_errors_in_units_that_matter():
    """Foot by foot and body by body, from the poses of the model."""
    organism = mr.examples.superbot_walker(3, 2, np.random.default_rng(2))
    model, feet = organism.model("physical", base="free"), feet_of(organism)
    shift = np.array([0.03, -0.02])
    steps = [Step(feet[1].module, (*shift, 0.0)), Step(feet[0].module, (0.01, 0.05, 0.0))]
    posture = _Posture(organism, model, feet, steps)
    rng, n = np.random.default_rng(3), len(model.joint_names)
    shares = rng.uniform(0.1, 0.6, 7)  # three feet, then two of them, twice
    assert posture.loaded == 7
    for height in (0.02, 0.2):
        joints = rng.uniform(-1.5, 1.5, n)
        x = np.array([height, *joints, *shares])
        q = np.concatenate([[0, 0, height, 0, 0, 0, 1], joints])
        np.testing.assert_array_equal(posture.q(x), q)
        T = model.forward_kinematics(q)
        ports = [organism.kind(foot.module).port(foot.port) for foot in feet]
        own = [model.body_index(f"{f.module}.{p.body}") for f, p in zip(feet, ports, strict=True)]
        soles = np.array([T[b] @ p.pose for b, p in zip(own, ports, strict=True)])
        place, normal = soles[:, :3, 3], soles[:, :3, 2]
        np.testing.assert_allclose(posture.soles(x)[0], place)
        center, middle = model.center_of_mass(q)[:2], place[:, :2].mean(axis=0)
        stays, after = shares[:3] @ place[:, :2], shares[3:5] @ place[[0, 2], :2]
        last = shares[5:] @ (place[[1, 2], :2] + [shift, 0 * shift])  # where it has stepped to
        body, points, *_ = corners(organism, model).outline()
        low = [(T[b] @ [*p, 1.0])[2] for b, p in zip(body, points, strict=True) if b not in own]
        side = 2 * 0.16 * np.sin(np.pi / 3)
        pairs = [np.linalg.norm((place[i] - place[j])[:2]) for i, j in ((0, 1), (0, 2), (1, 2))]
        room = np.minimum(joints - model.lower, model.upper - joints)
        wanted = [
            *(place[:, 2] / 0.002),
            *(normal[:, 0] / 0.01), *(normal[:, 1] / 0.01), *((1 + normal[:, 2]) / 0.01),
            *((stays - center) / 0.003), *((after - center) / 0.003), *((last - center) / 0.003),
            *((part.sum() - 1) / 0.02 for part in (shares[:3], shares[3:5], shares[5:])),
            *((np.linalg.norm(place[:, :2] - middle, axis=1) - 0.16) / 0.05),
            *((middle - center) / 0.1),
            *(min(pair - 0.9 * side, 0) / 0.03 for pair in pairs),
            *(min(z - 0.03, 0) / 0.01 for z in low),
            *(np.minimum(room - 0.5, 0) / 0.15), *(0.3 * joints),
        ]  # fmt: skip
        np.testing.assert_allclose(posture.residuals(x), wanted, atol=1e-9)
        np.testing.assert_array_equal(posture.residuals(np.stack([x, x]))[1], posture.residuals(x))
        step = rng.standard_normal(len(x))
        moved = [posture.residuals(x + s * 1e-6 * step) for s in (1, -1)]
        slope = (moved[0] - moved[1]) / 2e-6
        np.testing.assert_allclose(posture.rates(x) @ step, slope, atol=1e-3)


def test_a_posture_of_three_feet_or_more_is_searched_for_from_some_starts(monkeypatch):
    organism = mr.examples.superbot_walker(3, 2, np.random.default_rng(2))
    feet, model = feet_of(organism), organism.model("physical", base="free")
    with complains(mr.StateError, "3 feet or more, got 2"):
        stance_of(organism, feet[:2], np.random.default_rng(0))
    started = []

    def fit(residuals, x0, rates, bounds, max_nfev):
        low, high = bounds
        assert ((low <= x0) & (x0 <= high)).all()
        room = slice(1, len(x0) - 3)
        np.testing.assert_allclose(low[room], 0.8 * np.maximum(model.lower, -np.pi))
        np.testing.assert_allclose(high[room], 0.8 * np.minimum(model.upper, np.pi))
        assert (low[0], high[0], *low[-3:], *high[-3:]) == (0, 1, 0.15, 0.15, 0.15, 1, 1, 1)
        started.append(x0)
        return SimpleNamespace(x=x0, cost=1e9)

    monkeypatch.setattr("scipy.optimize.least_squares", fit)
    with complains(mr.StateError, "no posture of 4 tried has", feet[0].module):
        stance_of(organism, feet, np.random.default_rng(0), starts=4)
    assert len(started) == 4
    assert len({tuple(x) for x in started}) == 4
    assert len(started[0]) == 1 + len(model.joint_names) + 3
    np.testing.assert_allclose(started[0][-3:], 1 / 3)


@pytest.mark.parametrize(
    ("fits", "best", "count"),
    [
        ([(0.0, 7.0, 0), (1e-3, 6.0, 0), (1e-3, 6.5, 0)], 1, 3),  # the cheapest
        ([(3e-3, 5.5, 0), (1.9e-3, 9.0, 0), (2.1e-3, 6.0, 0)], 1, 3),  # of those on the ground
        ([(-3e-3, 5.5, 0), (0.0, 9.0, 1.9e-3), (0.0, 6.0, 2.1e-3)], 1, 3),  # and flat
        ([(0.0, 7.0, 0), (0.0, 4.9, 0), (0.0, 0.1, 0)], 1, 2),  # that is good enough
        ([(9e-3, 4.9, 0), (0.0, 5.1, 0), (0.0, 6.0, 0)], 1, 3),
    ],
)
def test_of_all_starts_the_best_posture_on_the_ground_is_taken(monkeypatch, fits, best, count):
    organism = mr.examples.superbot_walker(3, 2, np.random.default_rng(2))
    done = []

    def fit(residuals, x0, rates, bounds, max_nfev):
        done.append(len(done))
        return SimpleNamespace(x=done[-1], cost=fits[done[-1]][1])

    def soles(self, x):
        height, _, tilt = fits[x]
        normal = np.tile([0.0, 0.0, -1.0], (3, 1))
        normal[1, x % 2] = tilt
        return np.array([[0, 0, 0], [1, 0, height], [0, 1, 0]]), normal

    monkeypatch.setattr("scipy.optimize.least_squares", fit)
    monkeypatch.setattr(_Posture, "soles", soles)
    monkeypatch.setattr(_Posture, "q", lambda self, x: x)
    feet = feet_of(organism)
    assert stance_of(organism, feet, np.random.default_rng(0), starts=3) == best
    assert len(done) == count
