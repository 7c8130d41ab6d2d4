"""The bus drives a robot: it holds, moves, and survives what happens to it. Simulated time."""

import threading
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import root

from modurob import StateError, examples, simulate
from modurob.control import ComputedTorque, PdGravity
from modurob.control.references import Quintic, Spline
from modurob.distributed import PlantOptions, SimulatedBus
from modurob.distributed.bus import motions, operation
from modurob.distributed.bus.operation import APPROACH_S
from modurob.errors import FileError, UnknownNameError
from modurob.reference import Reference
from oracles import complains

GOAL = np.array([0.2, 0.4, 0.6, 0.8, 0.1])
PERIOD_S, COARSE_S = 0.002, 0.005  # of the loop; the second costs less to simulate
STILL = 1e-3  # [rad/s, m/s] errors decay eight times a second: the way left is a tenth of this


def attached(word, law="computed-torque", faults=None, options=None, **plant):
    """An arm on the bus that holds the pose in which it was found."""
    options = {"period": COARSE_S} | (options or {})
    bus = SimulatedBus(law, plant=PlantOptions(**plant), faults=faults, **options)
    names = [bus.start(f"giusti_{letter}") for letter in word]
    for one, other in pairwise(names):
        bus.plug(f"{one}.out", f"{other}.in")
    bus.plug("base.out", "m0.in")
    assert bus.run(lambda: bus.settled(len(word)))
    return bus


def passed(bus, seconds):
    bus.run(lambda: False, seconds)
    return bus.world.state.q.copy()


def rests(bus, q, within, seconds):
    """Whether the robot comes to rest at a pose, in a time."""

    def is_there():
        state = bus.world.state
        return np.abs(state.v).max() < STILL and np.abs(state.q - q).max() < within

    return bus.run(is_there, seconds)


def at(bus, q):
    """The same bus, at rest in a pose."""
    bus.operation.goto(q, 0.3)
    assert bus.run(lambda: is_done(bus), 0.5)
    assert rests(bus, q, 1e-3, 1.0)
    return bus


def is_done(bus):
    return not bus.operation.status().motion


@pytest.fixture(scope="module")
def law_model():
    return examples.arm("babac").model("physical")


# -- holding and moving ----------------------------------------------------------------------------


def test_tracking_is_no_worse_than_that_of_simulate_with_one_sample_of_delay(law_model):
    bus = at(attached("babac", options={"period": PERIOD_S}), np.zeros(5))
    bus.operation.record()
    bus.operation.goto(GOAL, 2.0)
    passed(bus, 2.5)
    record = bus.operation.recorded()
    error = np.abs(record.q - record.channels["set_point"]).max(axis=0)
    path = Quintic(np.zeros(5), GOAL, 2.0)
    law = ComputedTorque(law_model, settling_time=0.5, sample_time=PERIOD_S, delay=PERIOD_S)
    still = np.zeros(5)
    twin = simulate(law_model, still, still, 2.5, controller=law, reference=path, dt=1e-3,
                    integrator="RK4")  # fmt: skip
    expected = np.abs(twin.q - [path(t).q for t in twin.t]).max(axis=0)
    assert 0.005 < expected.max() < 0.1
    assert (error <= 1.02 * expected + 2e-5).all()
    assert bus.world.state.q == pytest.approx(GOAL, abs=2e-3)
    assert record.t[0] == 0.0


def test_a_robot_that_is_pushed_comes_back_to_the_pose_in_which_it_was_found():
    bus = attached("bac")
    passed(bus, 1.0)
    held = bus.operation.status().set_point
    bus.push("m1.joint", 2.0, 0.1)
    away = np.abs(passed(bus, 0.15) - held).max()
    assert away > 0.1
    assert rests(bus, held, 1e-3, 1.35)


def test_a_heavier_body_rests_where_the_law_predicts_and_does_not_drift():
    bus = attached("bac", mass_factor=1.1)
    bus.operation.goto([0.3, 0.5, 0.05], 1.0)
    q = passed(bus, 4.0)
    assert np.abs(passed(bus, 1.0) - q).max() < 1e-6
    model, aim = bus.robot.model, np.array([0.3, 0.5, 0.05])
    law = bus.robot.controller

    def balance(x):  # M K0 (aim - x) + g(x) against the true weight
        a = law.k0 * (aim - x)  # and what stiff friction would take of it within a sample
        pull = model.mass_matrix(x) @ a + model.viscous * law._ahead[0] * a
        return pull + model.gravity_torque(x) - 1.1 * model.gravity_torque(x)

    expected = root(balance, aim, tol=1e-12).x
    assert np.abs(expected - aim).max() > 0.005  # the error is there
    assert q == pytest.approx(expected, abs=1e-6)
    heavier = replace(
        model, mass=1.1 * model.mass, inertia=1.1 * model.inertia, organism=None, options=None
    )
    assert bus.operation.rest(heavier) == pytest.approx(expected, abs=1e-9)


def test_an_integral_rests_at_the_set_point():
    bus = attached("bac", "pid-linearized", mass_factor=1.1)
    bus.operation.goto([0.3, 0.5, 0.05], 1.0)
    assert rests(bus, [0.3, 0.5, 0.05], 2e-3, 5.0)
    heavier = replace(bus.robot.model, mass=1.1 * bus.robot.model.mass, organism=None, options=None)
    assert bus.operation.rest(heavier) == pytest.approx([0.3, 0.5, 0.05], abs=1e-12)


def test_relax_lets_the_joints_fall_and_hold_catches_them():
    bus = at(attached("bac"), np.array([0.0, 0.5, 0.0]))
    bus.operation.record()
    bus.operation.relax()
    fallen = passed(bus, 0.5)
    assert abs(fallen[1] - 0.5) > 0.02
    record = bus.operation.recorded()
    assert np.diff(record.t).max() < 1.5 * COARSE_S
    assert record.q[-1] == pytest.approx(fallen, abs=0.02)
    assert not record.tau.any()
    assert bus.operation.status().mode == "relax"
    assert all(tau == () for tau in bus.builder.commands(bus.coordinator, bus.now).values())
    bus.operation.hold()
    there = bus.operation.status().set_point
    assert rests(bus, there, 1e-3, 2.0)


def test_the_noise_of_a_record_is_not_followed(law_model, tmp_path):
    wanted, rng, path = (
        Quintic(np.zeros(5), GOAL, 1.0),
        np.random.default_rng(3),
        tmp_path / "run.csv",
    )
    times = np.arange(0.0, 1.2, PERIOD_S) + rng.uniform(0.0, 0.5 * PERIOD_S, 600)
    rows = [[t, *wanted(t).q + 0.01 * rng.standard_normal(5)] for t in times]
    names = [f"q {name}" for name in law_model.joint_names]
    np.savetxt(path, rows, delimiter=",", header=",".join(["time", *names]), comments="")
    followed, seconds = motions.read("csv", str(path), law_model)
    assert seconds == pytest.approx(times[-1] - times[0])
    for t in np.linspace(0.0, 1.1, 50):
        found = followed(t)
        assert found.q == pytest.approx(wanted(t).q, abs=0.015)  # [rad, m]
        assert np.abs(found.a).max() < 100.0  # [rad/s^2, m/s^2]; through all rows 10,000


@pytest.mark.parametrize(("times", "words"), [((0, 0), "increase"), ((1, 0), "increase")])
def test_bad_tables_are_named(times, words, law_model, tmp_path):
    path = tmp_path / "table.csv"
    for kind in ("steps", "quintic", "spline", "csv"):
        path.write_text("".join(f"{t},0,0,0,0,0\n" for t in times), encoding="utf-8")
        with complains(FileError, "table.csv", words):
            motions.read(kind, str(path), law_model)
        path.write_text("0,0,0,0,0,0\n1,9,9,9,9,0.1\n", encoding="utf-8-sig")  # a spreadsheet's
        assert motions.read(kind, str(path), law_model)[1] == 1.0
    bus = attached("b")
    with complains(StateError, "refused", "rate", "beyond"):
        bus.operation.follow(Quintic([0.0], [1.0], 1e-9), 1e-9)


def test_a_motion_after_relax_begins_where_the_joints_are():
    bus = at(attached("bac"), np.array([0.0, 0.5, 0.0]))
    bus.operation.relax()
    fallen = passed(bus, 0.5)
    assert abs(fallen[1] - 0.5) > 0.02
    bus.operation.goto([0.0, 0.5, 0.0], 1.0)
    assert bus.operation.status().set_point == pytest.approx(fallen, abs=0.02)
    assert rests(bus, [0.0, 0.5, 0.0], 2e-3, 3.0)


def test_a_motion_can_be_replaced_and_stopped_without_a_jump():
    bus = at(attached("bac"), np.zeros(3))
    bus.operation.record()
    bus.operation.goto([0.5, 0.5, 0.05], 1.0)
    passed(bus, 0.5)
    bus.operation.goto([-0.2, 0.1, 0.0], 1.0)  # begins with the velocity of now
    assert bus.run(lambda: is_done(bus), 1.1)
    bus.operation.stop()
    record = bus.operation.recorded()
    steps = np.diff(record.channels["set_point"], axis=0)
    most = np.abs(np.diff(steps[:-1], axis=0)).max() / COARSE_S**2
    assert most < 10.0  # [rad/s^2]; a jump of the velocity would be 100 and more
    assert bus.operation.status().mode == "hold"


def test_a_motion_that_begins_elsewhere_is_approached():
    bus = at(attached("bac"), np.zeros(3))
    path = Spline([0.0, 0.5, 1.0], [[0.4, 0.2, 0.0], [0.6, 0.3, 0.05], [0.4, 0.2, 0.0]])
    bus.operation.follow(path, 1.0, "loop")
    passed(bus, 0.25)
    status = bus.operation.status()
    assert (status.mode, status.motion, status.progress) == ("move", "loop", 0.0)
    passed(bus, APPROACH_S)
    assert bus.operation.status().set_point == pytest.approx(path(0.25).q, abs=0.01)
    assert bus.run(lambda: is_done(bus), 1.0)
    assert rests(bus, [0.4, 0.2, 0.0], 5e-3, 2.0)


def test_what_cannot_be_done_is_refused_in_one_line():
    bus = SimulatedBus(plant=PlantOptions())
    with complains(StateError, "no robot with joints", "plug"):
        bus.operation.goto([0.1], 1.0)
    bus = attached("ba")
    for goal in ([0.1], [0.1, np.nan], [0.1, 0.2, 0.3], "far", None):
        with complains(StateError, "2 finite numbers", "m0.joint"):
            bus.operation.goto(goal, 1.0)
    with complains(StateError, "seconds"):
        bus.operation.goto([0.1, 0.2], 0.0)
    with complains(StateError, "(3,)", "robot has 2 joints"):
        bus.operation.follow(Quintic([0, 0, 0], [1, 1, 1], 1.0), 1.0)
    with complains(StateError, "nothing is being recorded"):
        bus.operation.recorded()
    with complains(UnknownNameError, "no module 'm7'"):
        bus.payload("m7", 1.0)
    with complains(UnknownNameError, "no fault 'tired'", "stuck"):
        bus.fault("m0", "tired")
    with complains(StateError, "three numbers"):
        bus.push("m0", [1.0, 2.0], 0.1)
    with complains(StateError, "drives measure"):
        bus.sense("m0", [0.1])
    with complains(StateError, "no plant"):
        loose = SimulatedBus()
        loose.start("giusti_b")
        loose.push("m0.joint", 1.0, 0.1)
    assert bus.operation.status().mode == "hold"


def test_limits_are_kept():
    bus = SimulatedBus(plant=PlantOptions(gravity=(0, 0, 0)))
    bus.start("superbot_light")
    bus.plug("base.out", "m0.1")
    assert bus.run(lambda: bus.settled(1))
    upper = bus.robot.model.upper[0]
    with complains(StateError, "refused", "position", "beyond"):
        bus.operation.goto(np.full(3, upper + 0.01), 1.0)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda t: 1 / 0, "raised ZeroDivisionError: division by zero"),
        (lambda t: None, "'NoneType' object has no attribute 'q'"),
        (lambda t: Reference(*np.zeros((3, 3))), "have shapes (3,), the robot has 1 joints"),
        (lambda t: Reference(*np.full((3, 1), np.nan)), "not finite at"),
        (lambda t: Reference(*np.full((3, 1), 9.0)), "m0.turn would go to 9 at"),
    ],
)
def test_a_motion_that_fails_on_its_way_ends_with_the_reason_and_the_robot_holds(
    wrong, words, monkeypatch
):
    monkeypatch.setattr(operation, "CHECKED_S", 0.1)  # of a motion before it begins
    bus = SimulatedBus(plant=PlantOptions(), period=COARSE_S)
    bus.plug("base.out", f"{bus.start('chen_revolute')}.1")
    assert bus.run(lambda: bus.settled(1))
    good = Quintic([0.0], [0.1], 0.4)
    bus.operation.follow(lambda t: good(t) if t <= 0.2 else wrong(t), what="loop")
    passed(bus, 0.5)
    status = bus.operation.status()
    assert status.mode == "hold"
    assert status.reason.startswith("loop ended: ")
    assert words in status.reason
    assert status.set_point == pytest.approx(good(0.2).q, abs=1e-3)
    bus.operation.goto([0.0], 0.1)
    assert bus.run(lambda: is_done(bus), 0.5)


# -- changes and faults ----------------------------------------------------------------------------


def test_a_joint_that_rests_on_its_stop_can_be_moved():
    bus = SimulatedBus(plant=PlantOptions(), period=0.005)
    bus.plug("base.out", f"{bus.start('chen_prismatic')}.1")
    assert bus.run(lambda: bus.settled(1) and bus.operation.status().q[0] < 0)  # its stop is soft
    assert bus.operation.status().set_point == [0.0]
    bus.operation.goto([0.02], 0.2)
    assert bus.run(lambda: not bus.operation.status().motion, 1.0)
    for noisy in (bus.operation.hold, bus.operation.relax):
        bus.operation._q[:] = -1e-3
        noisy()
        bus.operation.goto([0.02], 0.2)


def test_a_module_that_dies_in_a_motion_is_waited_for_and_the_motion_is_finished():
    bus = at(attached("babac", options={"period": PERIOD_S}), np.zeros(5))
    bus.operation.goto(GOAL, 2.0)
    before = passed(bus, 1.0)
    bus.kill("m2")
    assert bus.run(lambda: bool(bus.robot.assembly.silent), 1.0)
    status = bus.operation.status()
    assert status.mode == "wait"
    assert "m2" in status.reason
    here = bus.operation.status().set_point
    after = passed(bus, 1.0)
    assert bus.operation.status().set_point.tolist() == here.tolist()  # the rest holds
    assert np.abs(after - before)[:2].max() < 0.1
    assert np.abs(after - before)[3:].max() < 0.1  # also those beyond it, by themselves
    assert bus.world.state.v[3:] == pytest.approx([0, 0], abs=0.05)
    bus.restart("m2")
    assert bus.run(lambda: bus.settled(5), 3.0)
    assert bus.run(lambda: is_done(bus), 4.0)
    assert rests(bus, GOAL, 5e-3, 1.0)


def test_a_dead_base_is_one_fault_and_the_motion_is_finished_when_it_is_back():
    bus = attached("bac")
    bus.operation.goto([0.1, 0.2, 0.05], 0.5)
    passed(bus, 0.2)
    bus.kill("m0")
    assert bus.run(lambda: bool(bus.robot.assembly.silent), 2.0)
    assert set(bus.robot.assembly.silent.values()) == {"m0", "m1", "m2"}
    (fault,) = bus.robot.assembly.faults
    assert "silent" in fault
    passed(bus, 0.02)
    assert bus.operation.status().reason == "waits for an answer of m0, m1, m2"
    bus.restart("m0")
    assert bus.run(lambda: bus.settled(3) and is_done(bus), 5.0)
    assert rests(bus, [0.1, 0.2, 0.05], 2e-3, 1.5)


def test_a_motion_waits_while_there_is_no_robot():
    bus = attached("b")
    bus.operation.goto([0.1], 0.2)
    passed(bus, 0.1)
    bus.unplug("base")
    bus.run(lambda: False, 0.1)
    status = bus.operation.status()
    assert (status.mode, status.reason) == ("wait", "waits for a robot")
    bus.plug("base.out", "m0.in")
    assert bus.run(lambda: bus.settled(1) and is_done(bus), 5.0)


def test_a_module_that_comes_back_without_its_neighbor_is_not_taken_with_it():
    bus, seen = attached("bac"), []
    bus.unplug("m1")  # from both sides
    assert bus.run(lambda: bus.settled(1))
    bus.plug("m0.out", "m1.in")

    def is_found():
        seen.append(len(bus.robot.assembly.names))
        return bus.settled(2)

    assert bus.run(is_found)
    assert set(seen) == {1, 2}


def test_the_joint_of_a_dead_module_falls_as_physics_demands():
    bus = attached("a")
    bus.operation.goto([1.0], 0.5)
    passed(bus, 1.0)
    bus.kill("m0")
    assert bus.run(lambda: bus.world._forces(bus.world.state)[0] == 0.0, 1.0)  # its watchdog
    passed(bus, 0.01)
    begin, t0 = bus.world.state, bus.world.t
    fallen = passed(bus, 0.3)
    free = simulate(examples.arm("a").model("physical"), begin.q, begin.v, bus.world.t - t0)
    assert abs(fallen[0] - begin.q[0]) > 0.01
    assert fallen == pytest.approx(free.q[-1], abs=1e-7)


@pytest.mark.parametrize("who", ["m2", "base"])
def test_a_process_that_stops_for_a_second_delays_the_motion_and_no_more(who, monkeypatch):
    bus = at(attached("babac"), np.zeros(5))
    bus.operation.goto(GOAL, 2.0)
    before = passed(bus, 1.0)
    if who == "base":
        with monkeypatch.context() as stopped:
            stopped.setattr(bus._root, "step", lambda state, inbox, now: (state, []))
            stopped.setattr(bus._root, "cycle", lambda state, torques, now: (state, []))
            stopped.setattr(bus.builder, "commands", lambda state, now: {})
            passed(bus, 1.0)
    else:
        frozen = bus.states.pop(who)
        passed(bus, 1.0)
        bus.states[who] = frozen
    others = [k for k in range(5) if f"m{k}" != who]
    assert np.abs(bus.world.state.q - before)[others].max() < 0.3
    assert bus.run(lambda: is_done(bus) and bus.settled(5), 8.0)
    assert rests(bus, GOAL, 5e-3, 1.0)


@pytest.mark.parametrize("seed", range(1))
def test_loss_and_noise_leave_the_motion_as_it_is(seed):
    rough = {"loss": 0.3, "rng": np.random.default_rng(seed)}
    bus = attached("babac", faults=rough, noise_q=0.03, noise_v=0.03, seed=seed)
    bus.operation.goto(np.zeros(5), 0.5)
    passed(bus, 1.5)
    bus.operation.goto(GOAL, 2.0)
    assert bus.run(lambda: is_done(bus), 6.0)
    assert passed(bus, 1.0) == pytest.approx(GOAL, abs=0.1)
    counts = bus.transport.counts
    assert counts.lost / counts.sent > 0.25


def test_a_payload_that_no_model_knows_is_carried_with_the_error_of_its_weight():
    bus = at(attached("bac"), np.array([0.0, 0.5, 0.05]))
    bus.payload("m2", 0.5)
    q = passed(bus, 3.0)
    error = np.abs(q - [0.0, 0.5, 0.05])
    assert 0.01 < error.max() < 1.0
    assert np.abs(passed(bus, 1.0) - q).max() < 1e-6
    bus.payload("m2", 0.0)
    assert rests(bus, [0.0, 0.5, 0.05], 1e-3, 2.0)


def test_a_stuck_drive_stays_and_a_limp_one_falls():
    bus = at(attached("bac"), np.zeros(3))
    bus.fault("m0", "stuck")
    bus.operation.goto([0.5, 0.4, 0.0], 0.5)
    assert passed(bus, 1.5)[:2] == pytest.approx([0.0, 0.4], abs=2e-3)
    bus.fault("m1", "limp")
    assert abs(passed(bus, 0.5)[1] - 0.4) > 0.05
    for name in ("m0", "m1"):
        bus.fault(name, "none")
    assert rests(bus, [0.5, 0.4, 0.0], 2e-3, 2.0)


def test_what_is_left_of_a_motion_goes_on_when_the_tip_is_taken_off_and_put_back():
    bus = at(attached("bac"), np.zeros(3))
    bus.operation.goto([0.4, 0.3, 0.05], 2.0)
    passed(bus, 0.8)
    bus.unplug("m2")
    assert bus.run(lambda: bus.settled(2), 2.0)
    assert bus.operation.status().motion
    passed(bus, 0.2)
    bus.plug("m1.out", "m2.in")
    assert bus.run(lambda: bus.settled(3), 2.0)
    assert bus.run(lambda: is_done(bus), 4.0)
    assert rests(bus, [0.4, 0.3, 0.05], 3e-3, 1.5)


def test_a_motion_none_of_whose_joints_is_left_ends_with_the_reason():
    bus = at(attached("ba"), np.zeros(2))
    bus.operation.goto([0.4, 0.3], 2.0)
    passed(bus, 0.2)
    bus.unplug("base")
    assert bus.run(lambda: bus.robot.model is None, 2.0)
    bus.start("giusti_c", "other")
    bus.plug("base.out", "other.in")
    assert bus.run(lambda: bus.settled(1), 2.0)
    passed(bus, 0.1)
    status = bus.operation.status()
    assert (status.mode, status.motion) == ("hold", "")
    assert "none of its joints is left" in status.reason


def test_written_data_reach_the_model_and_survive_a_restart():
    bus = attached("ba")
    heavy = bus.robot.assembly.organism.kind("m1").with_parameters(mass=1.5)
    bus.write("m1", mass=1.5)
    expected = examples.arm("ba").with_parameters("m1", mass=1.5)
    assert bus.run(lambda: bus.robot.assembly.organism == expected, 3.0)
    assert bus.robot.assembly.organism.kind("m1").digest == heavy.digest
    bus.kill("m1")
    assert bus.run(lambda: bool(bus.robot.assembly.silent), 2.0)
    bus.restart("m1")
    assert bus.run(lambda: bus.settled(2), 3.0)
    assert bus.robot.assembly.organism == expected
    with complains(StateError, "not in the robot"):
        bus.write(bus.start("giusti_b"), mass=1.0)


def test_another_law_and_other_gains_take_over_and_wrong_ones_change_nothing():
    bus = at(attached("bac"), np.array([0.0, 0.4, 0.0]))
    bus.builder.change_law("pd-gravity")
    assert passed(bus, 1.0) == pytest.approx([0.0, 0.4, 0.0], abs=5e-3)
    law = bus.robot.controller
    with complains(UnknownNameError, "no control law"):
        bus.builder.change_law("magic")
    with complains(StateError, "kp"):
        bus.builder.change_law("pd-gravity", kp=-1.0)
    passed(bus, 0.1)
    assert bus.robot.controller is law


def test_a_law_that_is_changed_while_the_body_changes_drives_the_new_body(monkeypatch):
    bus = attached("ba")
    bus.unplug("m1")
    change = threading.Thread(target=bus.run, args=(lambda: bus.settled(1), 5.0))
    made = PdGravity.certificate

    def slowly(self, *given):
        if not change.ident:
            change.start()
            change.join(0.3)  # the time in which the body would change
        return made(self, *given)

    monkeypatch.setattr(PdGravity, "certificate", slowly)
    bus.builder.change_law("pd-gravity")
    change.join()
    passed(bus, 0.1)
    assert bus.robot.controller.model is bus.robot.model
    assert bus.robot.model.nv == 1
    assert bus.robot.assembly.faults == ()


# -- promises --------------------------------------------------------------------------------------


def test_a_guarantee_needs_a_set_point_all_motors_and_the_assumptions_of_the_law(monkeypatch):
    monkeypatch.setattr("modurob.distributed.bus.operation.KEPT_CYCLES", 20)
    bus = at(attached("bac"), np.zeros(3))
    assert bus.operation.missing() == ()
    bus.operation.goto([0.1, 0.1, 0.0], 1.0)
    (text,) = bus.operation.missing()
    assert "set point that stays" in text
    assert bus.run(lambda: is_done(bus), 2.0)
    assert bus.operation.missing() == ()
    with complains(StateError, "sample_time of 0.005 s is too long for these gains"):
        bus.builder.change_law("pd-gravity", kp=1000.0, kd=1000.0)
    assert bus.operation.missing() == ()  # with the law before
    readings = bus.world.reading
    bus.world.reading = lambda name: () if name == "m1" else readings(name)  # its sensor fails
    passed(bus, 0.5)
    assert any("new readings of m1" in text for text in bus.operation.missing())
    bus.world.reading = readings
    passed(bus, 0.05)
    (text,) = bus.operation.missing()  # for as long as such ages are kept
    assert "readings at most 2 periods (10 ms) old" in text
    passed(bus, 20 * COARSE_S)
    assert bus.operation.missing() == ()
    bus.kill("m2")
    assert bus.run(lambda: bool(bus.robot.assembly.silent), 2.0)
    assert any("motors of m2" in text for text in bus.operation.missing())


def test_a_guarantee_needs_readings_of_the_age_with_which_it_counts():
    bus = attached("babab")  # five links out, five back: ten in a period
    assert bus.operation.missing() == ("measured delays: no reading has come back so far",)
    passed(bus, 0.1)
    assert bus.operation.oldest_reading()[0] == pytest.approx(COARSE_S)
    assert bus.operation.missing() == ()
    bus = attached("bababa")
    passed(bus, 0.1)
    assert bus.operation.oldest_reading()[0] == pytest.approx(2 * COARSE_S)
    assert bus.operation.missing() == ()
    bus = attached("babababab")
    passed(bus, 0.1)
    (text,) = bus.operation.missing()
    assert "readings at most 2 periods (10 ms) old: in " in text
    assert "up to 15 ms (" in text


def test_no_guarantee_for_gains_that_stand_no_delay_and_they_stand_none():
    bus = attached("bac", options={"k0": 150.0**2, "k1": 210.0})
    law = bus.robot.controller
    assert law.certificate().guaranteed  # if torques came in time
    passed(bus, 0.05)
    (text,) = bus.operation.missing()
    assert "errors decay with torques 5 ms late: slowest rate -" in text
    bus.push("m1.joint", 0.1, 0.02)
    with complains(StateError, "diverged"):
        passed(bus, 1.0)
