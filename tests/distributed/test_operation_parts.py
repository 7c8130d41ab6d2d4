"""The operation tick by tick: readings, ages, motions and gains, without a bus."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from modurob import Organism, StateError, catalog, examples
from modurob.distributed.bus import operation as operations
from modurob.distributed.bus.assembly import BusAssembly
from modurob.distributed.bus.messages import Address
from modurob.distributed.bus.operation import Operation
from modurob.distributed.bus.robot import BusRobot
from modurob.distributed.bus.survey import BusEntry
from modurob.distributed.reliable import NUMBERS, Newest
from modurob.reference import Reference
from oracles import complains

ONE, TWO = Address(1, 1), Address(2, 1)
ARM = examples.arm("ba")
MODEL = ARM.model("physical")
PERIOD = 0.01


class Law:
    """A law that keeps what it is asked for, and gives the same torques."""

    sample_time = PERIOD

    def __init__(self):
        self.asked = []

    def command(self, t, q, v, aim):
        self.asked.append((t, q, v, aim))
        return np.array([1.5, -2.5])


class Loop:
    """An operation of an arm of two joints, and its loop."""

    def __init__(self, period=PERIOD, model=MODEL):
        self.operation, self.law, self.now, self.cycle = Operation(period), Law(), 0.0, 10
        self.names = dict(zip((ONE, TWO), ARM.modules, strict=True))
        self.robot = BusRobot(BusAssembly(ARM, self.names), model, self.law)
        self.operation.adopt(self.robot)
        self.q, self.v, self.unmeasured, self.behind = [0.1, -0.2], [0.3, 0.4], (), [1, 1]
        self.sensed_at = None

    def tick(self, count=1, step=PERIOD):
        for _ in range(count):
            self.now += step
            self.cycle += 1
            table = {}
            for k, module in enumerate((ONE, TWO)):
                at = self.now if self.sensed_at is None else self.sensed_at
                measured = module not in self.unmeasured
                table[module] = BusEntry(
                    values=(self.q[k], self.v[k]) if measured else (),
                    sensed=Newest(1, at) if measured else Newest(),
                    cycle=(self.cycle - self.behind[k]) % NUMBERS,
                )
            torques = self.operation.torques(table, self.now, self.cycle)
        return torques

    @property
    def aim(self):
        return self.law.asked[-1][3]


def test_joints_are_held_where_they_were_found_within_their_limits():
    model = replace(MODEL, lower=np.array([-1.0, -0.15]), upper=np.array([0.05, 1.0]),
                    organism=None, options=None)  # fmt: skip
    loop = Loop(model=model)
    assert loop.tick() == {ONE: (1.5,), TWO: (-2.5,)}
    t, q, v, aim = loop.law.asked[0]
    assert t == PERIOD
    np.testing.assert_array_equal(q, [0.1, -0.2])
    np.testing.assert_array_equal(v, [0.3, 0.4])
    np.testing.assert_array_equal(aim.q, [0.05, -0.15])
    assert not np.any([aim.v, aim.a])
    loop.q = [0.9, 0.9]
    loop.tick(3)
    np.testing.assert_array_equal(loop.aim.q, [0.05, -0.15])
    status = loop.operation.status()
    assert (status.mode, status.motion, status.progress, status.reason) == ("hold", "", 0.0, "")
    np.testing.assert_array_equal(status.q, [0.9, 0.9])
    loop.operation.hold()
    loop.tick()
    np.testing.assert_array_equal(loop.aim.q, [0.05, 0.9])
    assert Operation().torques({}, 0.0) == {}
    assert Operation().status().mode == "idle"


def test_joints_that_were_never_measured_get_no_torque():
    loop = Loop()
    loop.unmeasured = (TWO,)
    assert loop.tick() == {ONE: (1.5,)}
    np.testing.assert_array_equal(loop.operation.status().q, [0.1, np.nan])
    for call in (loop.operation.hold, lambda: loop.operation.goto([0, 0], 1.0)):
        with complains(StateError, "not all joints have been measured yet"):
            call()
    assert loop.operation.missing()[-1] == "a measured pose of all joints"
    loop.unmeasured = ()
    assert loop.tick() == {ONE: (1.5,), TWO: (-2.5,)}
    np.testing.assert_array_equal(loop.aim.q, [0.1, -0.2])


@pytest.mark.parametrize(("period", "stale"), [(0.001, 0.1), (0.01, 0.5), (0.0, math.inf)])
def test_readings_are_late_after_a_tenth_of_a_second_or_50_periods(period, stale):
    loop = Loop(period)
    loop.tick()
    loop.sensed_at = loop.now
    loop.tick(step=min(stale, 1e6) * 0.99)
    assert loop.operation._late == []
    loop.now, loop.sensed_at = 0.0, -stale if stale < math.inf else -1e6
    loop.tick(step=0.0)
    assert loop.operation._late == []  # exactly so old
    loop.now, loop.sensed_at = min(stale, 1e6) * 0.99, 0.0
    loop.tick(step=min(stale, 1e6) * 0.02)
    assert loop.operation._late == ([] if stale == math.inf else ["m0", "m1"])


def test_ages_count_from_the_cycle_that_a_reading_answers():
    loop = Loop()
    assert math.isnan(loop.operation.oldest_reading()[0])
    assert loop.operation.oldest_reading()[1] == ""
    assert loop.operation.longest_delay == 0.02
    loop.tick()
    assert math.isnan(loop.operation.oldest_reading()[0])  # no cycle before it
    loop.behind = [1, 2]
    loop.tick()
    assert loop.operation.oldest_reading() == (pytest.approx(0.01), "m1")  # as old as the loop
    loop.tick()
    assert loop.operation.oldest_reading() == (pytest.approx(0.02), "m1")
    assert not [*loop.operation._lateness()]
    loop.tick(step=0.05)
    loop.tick()
    assert loop.operation.oldest_reading() == (pytest.approx(0.06), "m1")
    (late,) = loop.operation._lateness()
    assert late == (
        "readings at most 2 periods (20 ms) old: in 2 of the last 4 cycles they were older, "
        "up to 60 ms ('m1')"
    )
    loop.behind = [3, 0]  # of a cycle that has not begun: as the last one
    loop.cycle = NUMBERS - 1
    loop.tick()
    assert loop.operation._ages[-1] == (pytest.approx(0.07), "m0")
    loop.behind = [1, 1]
    loop.tick(600)
    assert len(loop.operation._ages) == 500
    assert loop.operation.oldest_reading()[0] == pytest.approx(0.01)


def test_a_reading_a_thousandth_older_than_two_periods_is_late():
    loop = Loop()
    loop.behind = [2, 2]
    loop.tick(3)
    assert not [*loop.operation._lateness()]
    loop.tick(step=1.002 * PERIOD)
    (late,) = loop.operation._lateness()
    assert late.endswith("up to 20.02 ms ('m0')")


def test_relaxed_motors_are_let_go_until_the_next_command():
    loop = Loop()
    loop.tick()
    asked = len(loop.law.asked)
    loop.operation.relax()
    loop.q = [0.4, 0.5]
    assert loop.tick() == {ONE: (), TWO: ()}
    assert len(loop.law.asked) == asked
    assert loop.operation.status().mode == "relax"
    loop.operation.hold()
    assert loop.operation.status().mode == "hold"
    loop.tick()
    np.testing.assert_array_equal(loop.aim.q, [0.4, 0.5])
    with complains(StateError, "there is no robot"):
        Operation().relax()


def smooth(s):
    s = np.clip(s, 0.0, 1.0)
    return 10 * s**3 - 15 * s**4 + 6 * s**5


def test_a_goto_goes_from_the_set_point_with_minimum_jerk_and_ends_there():
    loop = Loop()
    loop.tick()
    goal = np.array([0.5, 0.2])
    loop.operation.goto(goal, 0.4)
    begin = loop.now
    for _ in range(39):
        loop.tick()
        share = smooth((loop.now - begin) / 0.4)
        np.testing.assert_allclose(loop.aim.q, [0.1 + 0.4 * share, -0.2 + 0.4 * share], atol=1e-12)
    status = loop.operation.status()
    assert (status.mode, status.motion) == ("move", "goto in 0.4 s")
    assert status.progress == pytest.approx(0.975)
    loop.tick(2)
    status = loop.operation.status()
    assert (status.mode, status.motion, status.progress) == ("hold", "", 0.0)
    np.testing.assert_allclose(loop.aim.q, goal)
    assert not np.any([loop.aim.v, loop.aim.a])
    for wrong in ([0.1], [0.1, np.nan], [0.1, 0.2, 0.3]):
        with complains(StateError, "goto takes 2 finite numbers", "m0.joint, m1.joint"):
            loop.operation.goto(wrong, 1.0)
    for seconds in (1e-7, 2e6):
        with complains(StateError, "seconds"):
            loop.operation.goto([0.1, 0.2], seconds)


def test_a_motion_is_over_at_its_last_moment():
    loop = Loop(period=0.25)
    loop.tick(step=0.25)
    loop.operation.goto([0.5, 0.2], 0.5)
    loop.tick(step=0.25)
    assert loop.operation.status().mode == "move"
    loop.tick(step=0.25)
    assert loop.operation.status().mode == "hold"
    np.testing.assert_allclose(loop.aim.q, [0.5, 0.2])


def line(t):
    """A motion along a line, ahead of where the joints are."""
    return Reference(np.array([0.4 + 0.1 * t, 0.3]), np.array([0.1, 0.0]), np.zeros(2))


def test_a_motion_that_begins_elsewhere_is_approached_for_half_a_second_and_waits():
    loop = Loop()
    loop.tick()
    loop.operation.follow(line, 2.0, "line")
    loop.tick()
    first = loop.aim
    assert np.abs(first.q - [0.1, -0.2]).max() < 1e-3
    loop.tick(48)
    assert loop.operation.status().progress == 0.0
    loop.tick(11)
    np.testing.assert_allclose(loop.aim.q, line(0.1).q, atol=1e-9)
    np.testing.assert_allclose(loop.aim.v, line(0.1).v, atol=1e-9)
    assert loop.operation.status().progress == pytest.approx(0.05)
    # a module dies: the set point stays
    silent = loop.robot.assembly._replace(names={ONE: "m0"}, silent={TWO: "m1"})
    loop.operation.adopt(replace(loop.robot, assembly=silent))
    held = line(0.1).q
    for _ in range(3):
        loop.tick()
        np.testing.assert_allclose(loop.aim.q, held, atol=1e-9)
        assert not loop.aim.v.any()
    status = loop.operation.status()
    assert (status.mode, status.motion, status.reason) == (
        "wait", "line", "waits for an answer of m1"
    )  # fmt: skip
    assert status.progress == pytest.approx(0.05)
    # it is back, somewhere else: the rest is approached from there
    loop.operation.adopt(loop.robot)
    loop.q = [0.0, 0.0]
    loop.tick()
    assert loop.operation.status().mode == "move"
    np.testing.assert_allclose(loop.aim.q, [0.0, 0.0])
    loop.tick(50)
    np.testing.assert_allclose(loop.aim.q, line(0.1).q, atol=1e-6)
    loop.tick(10)
    np.testing.assert_allclose(loop.aim.q, line(0.2).q, atol=1e-9)
    loop.tick(200)
    np.testing.assert_allclose(loop.aim.q, line(2.0).q, atol=1e-2)
    assert not loop.aim.v.any()
    assert loop.operation.status().mode == "hold"


def test_a_motion_that_begins_where_the_joints_are_needs_no_approach():
    loop = Loop()
    loop.q = [0.4, 0.3]
    loop.tick()

    def slow(t):
        return Reference(np.array([0.4 + 5e-7 * (t == 0), 0.3 + t]), np.zeros(2), np.zeros(2))

    loop.operation.follow(slow)
    loop.tick()
    np.testing.assert_allclose(loop.aim.q, [0.4, 0.3 + PERIOD])
    status = loop.operation.status()
    assert (status.mode, status.motion, status.progress) == ("move", "follow", 0.0)  # without end
    loop.operation.stop()
    assert loop.operation.status().mode == "hold"
    with complains(StateError, "seconds"):
        loop.operation.follow(slow, 0.0)


def test_a_motion_that_fails_ends_with_the_reason_where_it_was():
    loop = Loop()
    loop.q = [0.4, 0.3]
    loop.tick()

    def failing(t):
        if 0.105 < t < 1.0:
            raise KeyError("t")
        return Reference(np.array([0.4 + t, 0.3]), np.array([1.0, 0.0]), np.zeros(2))

    with complains(StateError, "raised KeyError"):
        loop.operation.follow(lambda t: {}["q"])
    monitor = loop.operation
    monitor._refuse_excess = lambda *given: None  # which would find it before
    monitor.follow(failing, 3.0, "bad")
    loop.tick(50)  # the approach: it begins with another velocity
    loop.tick(10)
    before = loop.aim.q
    loop.tick(3)
    status = monitor.status()
    assert status.mode == "hold"
    assert status.reason.startswith("bad ended: a motion is a function of time")
    np.testing.assert_allclose(before, [0.5, 0.3])  # a tenth of a second on its way
    np.testing.assert_allclose(loop.aim.q, before)
    assert not loop.aim.v.any()
    monitor.hold()
    assert monitor.status().reason == ""


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((np.zeros(3), np.zeros(2), np.zeros(2)), "have shapes (2,), (3,), the robot has 2"),
        ((np.zeros(2), np.full(2, np.nan), np.zeros(2)), "not finite at 0.5 s"),
    ],
)
def test_what_a_function_gives_is_checked_at_each_time(parts, words):
    good = Reference(*np.zeros((3, 2)))
    checked = operations._checked(lambda t: good if t < 0.5 else Reference(*parts), MODEL)
    assert checked(0.2).q.tolist() == [0.0, 0.0]
    with complains(StateError, words):
        checked(0.5)


def test_limits_of_joints_are_checked_on_the_way_after_a_minute():
    model = replace(MODEL, lower=np.full(2, -1.0), upper=np.full(2, 1.0), organism=None,
                    options=None)  # fmt: skip
    q = [0.0, 1.0 + 2e-6]
    checked = operations._checked(lambda t: Reference(np.array(q), *np.zeros((2, 2))), model)
    checked(60.0)
    with complains(StateError, "m1.joint would go to 1 at 60.1 s, beyond its limits -1 and 1"):
        checked(60.1)
    q[:] = [-1.5, 0.0]
    with complains(StateError, "m0.joint would go to -1.5"):
        checked(61.0)
    q[:] = [-1.0 - 5e-7, 1.0]
    checked(61.0)


def test_what_a_guarantee_lacks_is_named(monkeypatch):
    checked, failed = [], []
    monkeypatch.setattr(
        operations, "_failures", lambda law, at: checked.append(at.tolist()) or (*failed,)
    )
    loop = Loop()
    assert Operation().missing() == ("there is no controller",)
    good = loop.robot
    loop.tick()
    assert loop.operation.missing() == ("measured delays: no reading has come back so far",)
    loop.tick(5)
    assert loop.operation.missing() == ()
    loop.operation.relax()
    assert loop.operation.missing() == ("a set point that stays: mode relax",)
    assert checked == [[0.1, -0.2]]  # once for a set point
    loop.q = [0.3, -0.2]
    failed.append("gains: too high")
    loop.tick()
    loop.operation.hold()
    assert loop.operation.missing() == ("gains: too high",)
    assert checked == [[0.1, -0.2], [0.3, -0.2]]
    failed.clear()
    loop.operation._checked = None, ()
    silent = good.assembly._replace(names={ONE: "m0"}, silent={TWO: "m1"})
    loop.operation.adopt(replace(good, assembly=silent, released=frozenset([ONE])))
    assert loop.operation.missing() == ("motors of m1, m0",)
    loop.operation.adopt(good)
    loop.sensed_at = loop.now
    loop.tick(step=0.51)
    found = loop.operation.missing()
    assert found[0] == "new readings of m0, m1"
    assert found[1].startswith("readings at most 2 periods")


def test_errors_have_to_decay_with_torques_that_come_one_and_two_periods_late(monkeypatch):
    law = Law()
    law.certificate = lambda at: SimpleNamespace(failures=())
    rates = {1: 5.0, 2: -3.0}
    monkeypatch.setattr(
        operations, "linearized", lambda law, at, late: SimpleNamespace(rate=rates[late])
    )
    (words,) = operations._failures(law, np.array([0.1, -0.2]))
    assert words.startswith("errors decay with torques 20 ms late: slowest rate -3 1/s")
    rates[1] = -4.0
    (words,) = operations._failures(law, np.array([0.1, -0.2]))
    assert words.startswith("errors decay with torques 10 ms late")
    rates |= {1: 5.0, 2: 3.0}
    assert operations._failures(law, np.array([0.1, -0.2])) == ()
    rates |= {1: -5.0, 2: -3.0}
    law.sample_time = None  # no loop with a clock
    assert operations._failures(law, np.array([0.1, -0.2])) == ()
    law.sample_time = PERIOD
    flaw = SimpleNamespace(assumption="gains", why="too high")
    law.certificate = lambda at: SimpleNamespace(failures=(flaw,))
    assert operations._failures(law, np.array([0.1, -0.2])) == ("gains: too high",)  # enough


def test_modules_hold_alone_with_a_critically_damped_joint():
    """Beside its own friction: m q'' = -(100 m + 10 f) q - 20 m q', twice at 10 rad/s for f = 0."""
    loop = Loop()

    def is_for(q):
        gains, inertia = loop.operation.hold_gains(), np.diagonal(MODEL.mass_matrix(q))
        return all(
            gains[module] == pytest.approx((10 * (10 * m + f), 20 * m, f))
            for module, m, f in zip((ONE, TWO), inertia, MODEL.viscous, strict=True)
        )

    assert is_for([0.0, 0.0])  # nothing was measured yet
    loop.unmeasured = (TWO,)
    loop.tick()
    assert is_for([0.1, 0.0])
    loop.unmeasured = ()
    loop.tick()
    assert is_for([0.1, -0.2])
    assert not is_for([0.1, -0.1])
    assert Operation().hold_gains() == {}


def test_joints_that_are_locked_are_measured_and_get_no_torque():
    locked = catalog["giusti_a"].with_parameters(limits=(0.2, 0.2))
    organism = Organism.start("giusti_b", "m0").dock("m0", "out", "m1", "in", kind=locked)
    names, law = {ONE: "m0", TWO: "m1"}, Law()
    law.command = lambda t, q, v, aim: np.array([1.5])
    robot = BusRobot(BusAssembly(organism, names), organism.model("physical"), law)
    operation = Operation(PERIOD)
    operation.adopt(robot)
    table = {m: BusEntry(values=(0.1, 0.3), sensed=Newest(1, 0.0)) for m in names}
    assert robot.joints() == {ONE: [0], TWO: [None]}
    assert robot.bad_readings(table) == {}
    assert operation.torques(table, 0.0) == {ONE: (1.5,), TWO: (0.0,)}
    np.testing.assert_array_equal(operation.status().q, [0.1])
    gains = operation.hold_gains()
    assert len(gains[ONE]) == 3
    assert gains[TWO] == (0.0, 0.0, 0.0)


def test_a_record_has_what_was_measured_commanded_and_wanted(monkeypatch):
    monkeypatch.setattr(operations, "MOST_RECORDED", 3)
    loop = Loop()
    loop.tick(2)
    loop.operation.record()
    for k in range(5):
        loop.q = [0.1 * k, 0.2]
        loop.tick(step=0.0 if k == 1 else PERIOD)  # the clock does not go on in the second
    run = loop.operation.recorded()
    np.testing.assert_allclose(run.t, [0.0, PERIOD, 2 * PERIOD])
    np.testing.assert_allclose(run.q, [[0.0, 0.2], [0.2, 0.2], [0.3, 0.2]])
    np.testing.assert_allclose(run.v, [[0.3, 0.4]] * 3)
    np.testing.assert_allclose(run.tau, [[1.5, -2.5]] * 3)
    np.testing.assert_allclose(run.channels["set_point"], [[0.1, -0.2]] * 3)
    assert run.integrator == "bus"
    loop.operation.record()
    loop.operation.relax()
    loop.tick()
    np.testing.assert_array_equal(loop.operation.recorded().tau, [[0.0, 0.0]])


def test_joints_of_another_body_keep_their_set_points():
    loop = Loop()
    loop.tick()
    loop.operation.record()
    loop.tick(2)
    longer = examples.arm("bac")
    model = longer.model("physical")
    third = Address(3, 1)
    names = {**loop.names, third: "m2"}
    loop.operation.adopt(BusRobot(BusAssembly(longer, names), model, loop.law))
    status = loop.operation.status()
    np.testing.assert_array_equal(status.q, [0.1, -0.2, np.nan])
    np.testing.assert_array_equal(status.set_point, [0.1, -0.2, 0.0])
    assert not loop.operation._ages
    entries = {
        module: BusEntry(values=(0.5 + k, 0.0), sensed=Newest(1, 1.0))
        for k, module in enumerate(names)
    }
    loop.law.command = lambda t, q, v, aim: loop.law.asked.append((t, q, v, aim)) or np.arange(3.0)
    assert loop.operation.torques(entries, 1.0) == {ONE: (0.0,), TWO: (1.0,), third: (2.0,)}
    assert math.isnan(loop.operation.oldest_reading()[0])  # of cycles with this body
    np.testing.assert_array_equal(loop.aim.q, [0.1, -0.2, 2.5 if model.upper[2] > 2.5 else
                                               model.upper[2]])  # fmt: skip
    run = loop.operation.recorded()
    assert [len(part.t) for part in run.parts] == [2, 1]
    assert run.parts[0].t[0] == 0.0
    assert run.parts[1].t[0] == pytest.approx(1.0 - 2 * PERIOD)
    loop.operation.adopt(BusRobot())
    status = loop.operation.status()
    assert (status.mode, status.set_point.shape, status.q.shape) == ("idle", (0,), (0,))


def test_a_motion_ends_with_the_last_of_its_joints():
    loop = Loop()
    loop.tick()
    loop.operation.follow(line, 2.0, "line")
    other = Organism.start("giusti_b", "x").dock("x", "out", "y", "in", kind="giusti_a")
    names = {ONE: "x", TWO: "y"}
    loop.operation.adopt(BusRobot(BusAssembly(other, names), other.model("physical"), loop.law))
    loop.tick()
    status = loop.operation.status()
    assert (status.mode, status.motion) == ("hold", "")
    assert status.reason == "line ended: none of its joints is left"
    np.testing.assert_array_equal(loop.aim.q, [0.1, -0.2])


def test_a_body_that_would_never_rest_is_named():
    loop = Loop()
    loop.tick()
    law, weight = loop.law, MODEL.gravity_torque
    law.model, law.changed, law.memory = MODEL, lambda: law, lambda dt: (np.zeros(0), None)
    law.command = lambda t, q, v, aim: weight(q) + 1.0  # never balanced
    slopes = MODEL.inverse_dynamics_derivatives
    law.slopes = lambda q, v, aim: SimpleNamespace(dq=slopes(q, v, v).dq + np.eye(2))
    with complains(StateError, "no pose of rest was found near the set point"):
        loop.operation.rest(MODEL)
    law.command = lambda t, q, v, aim: weight(q) + q - [0.3, 0.1]
    np.testing.assert_allclose(loop.operation.rest(MODEL), [0.3, 0.1])
    law.memory = lambda dt: (np.zeros(1), None)  # an integral
    np.testing.assert_array_equal(loop.operation.rest(MODEL), [0.1, -0.2])
