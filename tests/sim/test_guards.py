"""Small parts of a run on their own: effects and guards that whole runs hide."""

import dataclasses
import itertools
import sys

import numpy as np
import pytest

from modurob import Dock, Ground, StateError, Undock, examples, simulate
from modurob.sim import Noise, SimulationError
from modurob.sim.actuation import Actuation
from modurob.sim.body_trajectory import _from_states
from modurob.sim.reconfiguration import carry
from modurob.sim.reconfiguration.events import EventReport
from modurob.sim.reconfiguration.impact import Masses, Pose, closest_joints, gap_size
from modurob.sim.recorder import Recorder, Rows, intervals, record_times
from modurob.sim.simulate import Progress
from modurob.spatial import se3, so3
from modurob.stepping import EquationOfMotion, FixedStep, StepSettings
from modurob.stepping.contact import GroundContact
from oracles import complains

ROUNDING = 1e-12


@pytest.fixture(scope="module")
def model():
    return examples.double_pendulum().model("physical")


# -- clock -----------------------------------------------------------------------------------------


def test_a_run_without_a_clock_is_one_stretch():
    assert list(intervals(0.5, 2.0, None, None)) == [(0.5, 2.0, False, False)]


def test_stretches_are_cut_at_ticks_and_records_once_where_they_meet():
    found = list(intervals(0.0, 0.4, 0.1, np.array([0.0, 0.15, 0.3, 0.4])))
    ends = [stretch.end for stretch in found]
    np.testing.assert_allclose(ends, [0.1, 0.15, 0.2, 0.3, 0.4], atol=ROUNDING)
    assert [stretch.sample for stretch in found] == [True, True, False, True, True]
    assert [stretch.record for stretch in found] == [False, True, False, True, True]
    assert all(one.end == other.begin for one, other in itertools.pairwise(found))


def test_ticks_are_multiples_of_the_period_whenever_a_body_begins():
    found = list(intervals(0.25, 0.5, 0.1, None))
    np.testing.assert_allclose([s.begin for s in found], [0.25, 0.3, 0.4], atol=ROUNDING)
    assert [stretch.sample for stretch in found] == [False, True, True]
    begun = list(intervals(0.3, 0.5, 0.1, None))  # 0.3 is 3 * 0.1 but for rounding
    assert [stretch.sample for stretch in begun] == [True, True]


@pytest.mark.parametrize("period", [1e-6, 1.0, 1e6])
def test_ticks_and_records_are_one_time_within_a_billionth_of_the_period(period):
    for apart, count in ((0.5e-9, 4), (2e-9, 5)):
        record = period * np.array([0.0, 1.0, 2.0 + apart, 4.0])
        found = list(intervals(0.0, 4 * period, period, record))
        assert len(found) == count
        assert sum(stretch.sample for stretch in found) == 4
        assert sum(stretch.record for stretch in found) == 3


def test_records_are_unique_sorted_and_hold_both_ends():
    np.testing.assert_array_equal(record_times([0.5, 0.2, 0.5], 1.0), [0.0, 0.2, 0.5, 1.0])
    np.testing.assert_allclose(record_times(0.1, 0.3), [0, 0.1, 0.2, 0.3], atol=ROUNDING)
    assert len(record_times(0.1, 0.3)) == 4  # 3 * 0.1 is the end
    assert record_times(None, 1.0) is None
    close = [0.2, 0.2 + 1e-9, 0.3 - 1e-11, 0.3]  # a billionth of 0.1 s is one time
    np.testing.assert_array_equal(record_times(close, 1.0), [0.0, 0.2, 0.2 + 1e-9, 0.3, 1.0])


@pytest.mark.parametrize("bad", [[-0.1], [1.1], [np.nan], ["soon"]])
def test_records_outside_of_the_run_are_refused(bad):
    with complains(StateError, "between 0 and 1 s"):
        record_times(bad, 1.0)


# -- controllers -----------------------------------------------------------------------------------


def test_a_law_that_works_in_place_does_not_move_the_body(model):
    def rude(t, q, v):
        q += 1.0
        v -= 1.0
        return np.zeros(2)

    q, v = np.array([0.1, 0.2]), np.array([0.3, 0.4])
    drive = Actuation(model, (), rude)
    drive(0.0, q, v)
    np.testing.assert_array_equal([q, v], [[0.1, 0.2], [0.3, 0.4]])


def test_reset_gets_copies(model):
    class Rude:
        def reset(self, t, q, v):
            q += 1.0
            v += 1.0

        def command(self, t, q, v, reference):
            return np.zeros(2)

    q, v = np.zeros(2), np.zeros(2)
    Actuation(model, (), Rude()).reset(0.0, q, v)
    assert not q.any()
    assert not v.any()


def test_the_sample_time_that_is_passed_goes_before_the_controllers_own(model):
    class Sampled:
        sample_time = 0.02

        def command(self, t, q, v, reference):
            return np.zeros(2)

    assert Actuation(model, (), Sampled()).sample_time == 0.02
    assert Actuation(model, (), Sampled(), sample_time=0.05).sample_time == 0.05


def test_noise_on_torques_spares_a_free_base_unless_it_is_named():
    free = examples.snake(3).model("physical", base="free")
    rng = np.random.default_rng(0)
    rest, q = np.zeros(free.nv), free.neutral()
    for tau, pushed in ((0.3, False), (np.full(free.nv, 0.3), True)):
        drive = Actuation(free, (), lambda t, q, v: rest, None, 0.01, Noise(tau=tau), rng)
        drive.sample(0.0, q, rest)
        torque = drive(0.0, q, rest)
        assert torque[:6].any() == pushed
        assert torque[6:].all()


def test_noise_has_the_standard_deviation_it_says(model):
    rng, shape = np.random.default_rng(0), (4000, 2)
    noise = Noise(q=[0.1, 0.2], v=0.3, tau=[0.4, 0.5])
    drive = Actuation(model, (4000,), lambda t, q, v: np.ones(shape), None, 0.01, noise, rng)
    drive.sample(0.0, np.full(shape, 2.0), np.full(shape, -1.0))
    torque, seen = drive.observed(0.0, np.zeros(shape), np.zeros(shape))
    for found, mean, sigma in (
        (seen["measured_q"], 2.0, [0.1, 0.2]),
        (seen["measured_v"], -1.0, [0.3, 0.3]),
        (torque, 1.0, [0.4, 0.5]),
    ):
        np.testing.assert_allclose(found.mean(axis=0), mean, atol=0.03)
        np.testing.assert_allclose(found.std(axis=0), sigma, rtol=0.05)
    np.testing.assert_array_equal(seen["command"], 1.0)


@pytest.mark.parametrize("noise", [None, Noise(q=0.5)])
def test_sensors_of_wrenches_measure_the_true_state(model, noise):
    class Law:
        def command(self, t, q, v, reference, external):
            self.seen = external, q
            return np.zeros(2)

    def sensors(t, q, v):
        return t, q.copy(), v.copy()

    law, rng = Law(), np.random.default_rng(0)
    q, v = np.array([0.1, 0.2]), np.array([0.3, 0.4])
    drive = Actuation(model, (), law, None, 0.01, noise, rng, sensors)
    drive.sample(0.7, q, v)
    (t, *state), measured = law.seen
    assert t == 0.7
    np.testing.assert_array_equal(state, [q, v])
    assert np.array_equal(measured, q) == (noise is None)
    with complains(StateError, "wrench_sensors need a controller with command(t, q, v, reference"):
        Actuation(model, (), lambda t, q, v: q, None, 0.01, None, None, sensors)


@pytest.mark.parametrize("name", ["q", "v", "tau"])
def test_noise_of_another_size_is_refused(model, name):
    with complains(StateError, f"the noise of {name} is one number or (2,)", "(3,)"):
        Actuation(
            model, (), lambda t, q, v: q, None, 0.01, Noise(**{name: [0.1] * 3}),
            np.random.default_rng(0),
        )  # fmt: skip


# -- recording -------------------------------------------------------------------------------------


@pytest.mark.parametrize("integrator", ["RK4", "RK45"])
def test_samples_between_times_to_record_are_not_recorded(model, integrator):
    found = simulate(
        model, [0.3, 0.1], None, 0.05, lambda t, q, v: -q, integrator, sample_time=0.01,
        record=[0.025],
    )  # fmt: skip
    np.testing.assert_allclose(found.t, [0.0, 0.025, 0.05])


def test_a_bar_is_drawn_only_for_true():
    assert [Progress(1.0, x, None)._with_bar for x in (True, False, print)] == [True, False, False]


def test_rows_grow_and_keep_what_they_hold():
    rows = Rows((2,), 1)
    for k in range(5):
        rows.add([k, -k])
    rows.amend([9, 9])
    np.testing.assert_array_equal(rows.array(), [[0, 0], [1, -1], [2, -2], [3, -3], [9, 9]])
    assert not rows.array().flags.writeable
    assert rows.last.tolist() == [9, 9]


def test_a_channel_that_is_left_out_has_gaps():
    channels = [{"x": 1.0}, {}, {"x": 3.0, "y": 4.0}, {}]

    class Now:
        def observed(self, t, q, v):
            return np.zeros(1), channels[int(t)]

    recorder = Recorder((), 1, 1, Now(), None)
    for t in range(4):
        recorder.add(float(t), np.zeros(1), np.zeros(1))
    found = recorder.channels()
    np.testing.assert_array_equal(found["x"], [1.0, np.nan, 3.0, np.nan])
    np.testing.assert_array_equal(found["y"], [np.nan, np.nan, 4.0, np.nan])


def test_only_the_last_time_is_amended():
    class Now:
        tau = 1.0

        def observed(self, t, q, v):
            return np.array([self.tau]), {"x": self.tau}

    drive = Now()
    recorder = Recorder((), 1, 1, drive, None)
    recorder.add(0.0, np.zeros(1), np.zeros(1))
    drive.tau = 2.0
    recorder.amend(0.5, np.zeros(1), np.zeros(1))
    np.testing.assert_array_equal(recorder.torques(), [[1.0]])
    recorder.amend(0.0, np.zeros(1), np.zeros(1))
    np.testing.assert_array_equal(recorder.torques(), [[2.0]])
    np.testing.assert_array_equal(recorder.channels()["x"], [2.0])


# -- events, impacts -------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [0.1, (0.1,), (0.1, 0.1, 0.1), (np.nan, 0.1), (0.1, "a"), None])
def test_a_reach_is_a_distance_and_an_angle(bad):
    with complains(StateError, "reach is a distance and an angle"):
        Dock(0.5, "m0", 3, "n", 4, reach=bad)


@pytest.mark.parametrize("bad", [(np.nan, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, np.inf), [[0] * 6]])
def test_an_approach_is_finite(bad):
    with complains(StateError, "approach is a twist of six finite numbers"):
        Dock(0.5, "m0", 3, "n", 4, approach=bad)


def test_an_audit_says_what_the_ground_and_the_latch_did():
    still, moved = np.zeros(6), np.array([1.0, 0, 0, 0, 0, 2.0])
    undocked = EventReport(0.5, "undock", still, still, 3.0, 3.0)
    lost = (undocked.energy_lost, undocked.latch_work, undocked.gap, undocked.grounded)
    assert lost == (0, 0, (0, 0), False)
    assert Dock(0.5, "m0", 3, "n", 4).approach == (0,) * 6
    assert Dock(0.5, "m0", 3, "n", 4).reach == (0.005, 0.1)
    plain = str(EventReport(0.5, "dock", still, moved, 3.0, 2.0, energy_lost=1.0))
    assert "changed by 1.0e+00 N s and 2.0e+00 N m s; energy lost 1 J" in plain
    assert "latch" not in plain
    told = str(
        EventReport(0.5, "dock", still, moved, 3.0, 2.0, 1.0, 0.25, (1e-3, 0.0), grounded=True)
    )
    assert "(taken by the ground)" in told
    assert "latch work 0.25 J" in told


def bodies(rng, count=3):
    B = rng.standard_normal((count, 3, 3))
    names = tuple(f"b{k}" for k in range(count))
    inertia = B @ np.swapaxes(B, 1, 2) + np.eye(3)
    p, u, w = rng.standard_normal((3, count, 3))
    return Masses(names, rng.uniform(1, 2, count), p, inertia, u, w)


def test_a_rigid_motion_can_give_bodies_any_momentum():
    rng = np.random.default_rng(1)
    some, wanted = bodies(rng), rng.standard_normal(6)
    found = some.with_momentum(wanted)
    np.testing.assert_allclose(found.momenta().sum(axis=0), wanted, atol=ROUNDING)
    np.testing.assert_array_equal(found.center, some.center)
    change, spin = found.u - some.u, found.w - some.w
    np.testing.assert_allclose(spin, np.broadcast_to(spin[0], spin.shape), atol=ROUNDING)
    arm = some.center - some.center[0]
    np.testing.assert_allclose(change - change[0], np.cross(spin[0], arm), atol=ROUNDING)


def test_displaced_bodies_keep_velocities_and_energy_of_their_own_turning():
    rng = np.random.default_rng(2)
    some = bodies(rng)
    G = se3.exp(rng.standard_normal(6))
    found = some.displaced(G)
    np.testing.assert_array_equal(found.u, some.u)
    np.testing.assert_array_equal(found.w, some.w)
    np.testing.assert_allclose(found.center, some.center @ G[:3, :3].T + G[:3, 3], atol=ROUNDING)
    for one, other in zip(found.inertia, some.inertia, strict=True):
        np.testing.assert_allclose(one, G[:3, :3] @ other @ G[:3, :3].T, atol=ROUNDING)


def test_bodies_are_found_by_name():
    some = bodies(np.random.default_rng(3))
    found = some.only(("b2", "b0"))
    assert found.names == ("b2", "b0")
    np.testing.assert_array_equal(found.mass, some.mass[[2, 0]])
    np.testing.assert_array_equal(found.u, some.u[[2, 0]])


def test_energies_and_middle_are_those_of_textbooks():
    some, g = bodies(np.random.default_rng(4)), np.array([0.1, 0.2, -9.0])
    kinetic = sum(
        m * u @ u / 2 + w @ J @ w / 2
        for m, u, w, J in zip(some.mass, some.u, some.w, some.inertia, strict=True)
    )
    assert some.kinetic_energy() == pytest.approx(kinetic)
    potential = -sum(m * c @ g for m, c in zip(some.mass, some.center, strict=True))
    assert some.potential_energy(g) == pytest.approx(potential)
    np.testing.assert_allclose(some.middle, some.mass @ some.center / some.mass.sum())


def test_an_impact_of_a_body_on_itself_changes_nothing():
    organism, rng = examples.snake(4), np.random.default_rng(5)
    for base in ("fixed", "free"):
        model = organism.model("physical", base)
        v = rng.standard_normal(model.nv)
        pose = Pose(model, model.random_configuration(rng))
        np.testing.assert_allclose(pose.impact(pose.masses(organism, v)), v, atol=1e-9)


def test_a_gap_is_a_distance_and_an_angle():
    G = np.eye(4)
    G[:3, :3], G[:3, 3] = so3.exp(np.array([0.0, 0.3, 0.0])), [0.0, 0.03, 0.04]
    assert gap_size(G) == pytest.approx((0.05, 0.3))


def test_fresh_joints_move_to_the_pose_and_others_stay():
    organism, rng = examples.snake(4), np.random.default_rng(6)
    model = organism.model("physical")
    wanted = 0.4 * rng.standard_normal(3)
    T = model.forward_kinematics(wanted)[model.modules["m3"]]
    start = np.array([wanted[0], 0.0, 0.0])
    q, left = closest_joints(model, start, [1, 2], "m3", T, 0.1)
    np.testing.assert_allclose(q, wanted, atol=1e-9)
    assert max(gap_size(left)) < 1e-9
    kept, left = closest_joints(model, start, [], "m3", T, 0.1)
    np.testing.assert_array_equal(kept, start)
    assert max(gap_size(left)) > 0.01


def test_joints_far_from_a_pose_that_move_nearly_alike_reach_it():
    model = examples.snake(7).model("physical")
    wanted = np.linspace(0.2, -0.1, model.nq)
    T = model.forward_kinematics(wanted)[model.modules["m6"]]
    start = wanted + 0.02 * np.array([1.0, -2.0, 0.0, 0.0, 0.0, 0.0])
    q, left = closest_joints(model, start, [0, 1], "m6", T, 0.1)
    np.testing.assert_allclose(q, wanted, atol=1e-9)
    assert max(gap_size(left)) < 1e-9


@pytest.mark.parametrize(
    ("reach", "holds"), [((1, 3), True), ((1, 1e-3), False), ((1e-3, 3), False)]
)
def test_a_latch_has_to_reach_both_the_distance_and_the_angle(reach, holds):
    model = examples.snake(3).model("physical", "free", gravity=(0, 0, 0))
    v = np.linspace(-2.0, 3.2, model.nv)
    events = [Undock(0.01, "m2"), Dock(0.1, "m1", 3, "m2", 4, reach=reach)]
    options = {"integrator": "RK4", "dt": 5e-3, "events": events}
    if holds:
        gap = simulate(model, None, v, 0.11, **options).audit[1].gap
        assert gap[0] > 1e-3
        assert gap[1] > 1e-3
    else:
        with complains(SimulationError, "misses: the ports are"):
            simulate(model, None, v, 0.11, **options)


def test_a_part_that_cannot_take_the_pose_it_had_is_refused():
    """As when joints lock; here the bodies have become longer."""
    organism = examples.snake(2)
    model = organism.model("physical", "free")
    state = carry.BodyState(organism, model, model.neutral(), np.zeros(model.nv))
    carry.undocked(state, organism, model)
    for size in (0.2, 0.1001):
        longer = organism.with_parameters("m0", "m1", size=size)
        with complains(StateError, "the body of 'm0' cannot take the pose it had", "give the mod"):
            carry.undocked(state, longer, longer.model("physical", "free"))


def test_progress_goes_on_through_bodies_one_after_the_other(monkeypatch):
    monkeypatch.setattr(sys.modules["modurob.sim.simulate"], "REPORT_PERIOD_S", 0.0)
    told = []
    simulate(
        examples.snake(3).model("physical", "free"), None, None, 0.2, integrator="RK4", dt=0.01,
        events=[Undock(0.1, "m2")], progress=told.append, organism=examples.snake(3),
    )  # fmt: skip
    expected = np.concatenate([0.05 * np.arange(1, 11), 0.5 + 0.025 * np.arange(1, 21)])
    np.testing.assert_allclose(told, expected)


def test_hinges_that_were_never_there_are_at_zero_when_a_module_docks():
    model = examples.snake(2).model("dyad", "free", gravity=(0, 0, 0))
    found = simulate(
        model, None, None, 0.02, organism=examples.snake(2), integrator="RK4",
        events=[Dock(0.01, "m1", 3, "new", 4)],
    )  # fmt: skip
    part = found.parts[-1]
    assert len(part.model.joint_names) == 2
    np.testing.assert_allclose(part.q[0, 7:], 0.0, atol=ROUNDING)
    np.testing.assert_allclose(part.v[0], 0.0, atol=ROUNDING)


def test_two_events_at_one_time_take_no_time_between():
    organism = examples.snake(4)
    model = organism.model("physical", "free", gravity=(0, 0, 0))
    found = simulate(
        model, None, None, 0.2, organism=organism, record=0.05,
        events=[Undock(0.1, "m3"), Undock(0.1, "m2")],
    )  # fmt: skip
    assert [part.t[-1] for part in found.parts].count(0.2) == 3
    assert all(np.all(np.diff(part.t) > 0) for part in found.parts)


def test_a_module_that_has_docked_again_can_be_undocked_again():
    organism = examples.snake(3)
    events = [Undock(0.01, "m2"), Dock(0.011, "m1", 3, "m2", 4), Undock(0.02, "m2")]
    found = simulate(
        organism.model("physical", "free", gravity=(0, 0, 0)), None, None, 0.03,
        organism=organism, integrator="RK4", events=events,
    )  # fmt: skip
    assert [len(part.organism) for part in found.parts] == [3, 2, 1, 3, 2, 1]


@pytest.mark.parametrize("answer", ["push", None, [1.0, 2.0], [[1.0]] * 2, [1.0 + 1j]])
def test_what_is_no_torque_of_a_single_joint_is_refused(answer):
    one = examples.snake(2).model("physical")
    with complains(StateError, "the controller returned", "one torque for each entry of v"):
        simulate(one, None, None, 0.1, lambda t, q, v: answer)


def test_an_interpolated_pose_does_not_depend_on_the_sign_of_a_quaternion():
    model = examples.snake(2).model("physical", base="free", gravity=(0, 0, 0))
    found = simulate(model, None, np.full(model.nv, 0.5), 0.2, None, "RK4", dt=0.1)
    t, at = found.t[:2], np.array([0.02, 0.05, 0.07])
    rows = [x[:2] for x in (found.q, found.v, found.a)]
    q, v = _from_states(model, t, *rows, at)
    turned = rows[0].copy()
    turned[1, 3:7] *= -1  # the same rotation
    again, speed = _from_states(model, t, turned, *rows[1:], at)
    np.testing.assert_allclose(again, q, atol=ROUNDING)
    np.testing.assert_array_equal(speed, v)


def test_an_event_is_told_in_one_line():
    before, after = np.array([1.0, 2, 3, 4, 5, 6]), np.array([1.0, 5, 7, 4, 5 + 5e-3, 6 + 12e-3])
    event = EventReport(0.25, "dock n (m0, 2)", before, after, 4.0, 3.0, energy_lost=1.5)
    told = "0.2500 s  dock n (m0, 2): momentum (1, 2, 3, 4, 5, 6) -> (1, 5, 7, 4, 5.005, 6.012), "
    told += "changed by 5.0e+00 N s and 1.3e-02 N m s; energy lost 1.5 J"
    assert str(event) == told
    assert event.grounded is False
    held = dataclasses.replace(event, gap=(1e-3, 0.0), latch_work=0.125, grounded=True)
    assert str(held) == told.replace("N m s;", "N m s (taken by the ground);") + (
        ", latch work 0.125 J"
    )
    rounding = np.array([1e-17, -1.0, 0, 0, 0, -1e-17])
    assert "(0, -1, 0, 0, 0, 0)" in str(dataclasses.replace(event, momentum_after=rounding))


def test_between_two_states_positions_are_quintic_and_velocities_cubic(model):
    """Polynomials of these degrees are found again; a single state stays where it is."""
    t, at = np.array([0.5, 2.5]), np.array([0.5, 1.0, 1.7, 2.5])
    place = np.polynomial.Polynomial([1, -2, 0.5, 0.25, -0.1, 0.03])
    speed = np.polynomial.Polynomial([0.3, 1, -0.7, 0.2])

    def rows(function, times):
        return np.repeat(function(times)[:, None], 2, axis=1)

    q, _ = _from_states(
        model, t, rows(place, t), rows(place.deriv(), t), rows(place.deriv(2), t), at
    )
    np.testing.assert_allclose(q, rows(place, at), atol=ROUNDING)
    _, v = _from_states(model, t, rows(place, t), rows(speed, t), rows(speed.deriv(), t), at)
    np.testing.assert_allclose(v, rows(speed, at), atol=ROUNDING)
    one = [rows(function, t)[:1] for function in (place, speed, speed)]
    q, v = _from_states(model, t[:1], *one, at)
    np.testing.assert_array_equal(q, np.repeat(one[0], 4, axis=0))
    np.testing.assert_array_equal(v, np.repeat(one[1], 4, axis=0))


# -- equal steps -----------------------------------------------------------------------------------


class Counted(FixedStep):
    """A method that keeps its calls and moves nothing."""

    def advance(self, t, h, count, q, v):
        self.calls.append((t, h, count))
        return q, v


def counted(model, end, dt, stride=1, substeps=1, begin=0.0):
    """Calls of `advance`, and the times that are reported."""
    stepper = Counted(EquationOfMotion(model), StepSettings(0.0, 0.0, dt, substeps))
    stepper.calls = []
    q = v = np.zeros(2)
    return stepper, [step.t for step in stepper.steps(begin, end, q, v, stride)]


@pytest.mark.parametrize(
    ("end", "dt", "count"),
    [(0.3, 0.1, 3), (0.3 * (1 + 1e-11), 0.1, 3), (0.3001, 0.1, 4), (0.05, 0.1, 1), (1e-9, 0.1, 1)],
)
def test_equal_steps_are_as_few_as_dt_allows(model, end, dt, count):
    stepper, times = counted(model, end, dt)
    assert len(times) == count
    assert times[-1] == end  # exactly
    np.testing.assert_allclose(np.diff([0.0, *times]), end / count, rtol=1e-12)
    for k, (t, h, parts) in enumerate(stepper.calls):
        assert (t, h, parts) == (pytest.approx(k * end / count), pytest.approx(end / count), 1)


def test_a_stride_reports_every_so_many_steps_and_the_last(model):
    stepper, times = counted(model, 1.7, 0.1, stride=3, substeps=4, begin=1.0)
    np.testing.assert_allclose(times, [1.3, 1.6, 1.7])
    assert [count for _, _, count in stepper.calls] == [12, 12, 4]
    np.testing.assert_allclose([h for _, h, _ in stepper.calls], 0.025)
    np.testing.assert_allclose([t for t, _, _ in stepper.calls], [1.0, 1.3, 1.6])


def test_a_sample_is_one_step_of_dt(model):
    stepper, _ = counted(model, 0.1, 0.1, substeps=5)
    stepper.calls.clear()
    stepper.sample(0.7, np.zeros(2), np.zeros(2))
    assert stepper.calls == [(0.7, pytest.approx(0.02), 5)]


def test_joints_that_cannot_reach_a_pose_weigh_distances_by_the_size_of_a_module():
    """A tenth of a radian and a hundredth of a meter count alike for modules of 0.1 m."""
    model = examples.snake(4).model("physical")
    start = np.array([0.1, 0.2, -0.3])
    T = model.forward_kinematics(start)[model.body_index("m3")]
    away = se3.exp(np.array([0.0, 0.004, 0.01, 0.08, 0.0, 0.03]))  # not in reach of one joint
    q, left = closest_joints(model, start, [2], "m3", T @ away, 0.1)

    def cost(angle):
        there = model.forward_kinematics([*start[:2], angle])[model.body_index("m3")]
        error = se3.log(se3.inverse(there) @ T @ away)
        return np.sum((error[:3] / 0.1) ** 2) + np.sum(error[3:] ** 2)

    angles = np.linspace(q[2] - 0.1, q[2] + 0.1, 2001)
    best = angles[np.argmin([cost(angle) for angle in angles])]
    assert q[2] == pytest.approx(best, abs=1e-3)  # the model of the error is linear
    assert max(gap_size(left)) > 0.01


def test_the_ground_has_no_force_for_a_state_that_is_not_finite():
    """The run then says in which joint it diverged, as it does without ground."""
    organism = examples.snake(2)
    model = organism.model("physical", base="free")
    contact = GroundContact(Ground(), model, organism, model.neutral(), 1e-3)
    still, lost = np.zeros(model.nv), np.full(model.nv, np.nan)
    for q, v in ((model.neutral(), lost), (np.full(model.nq, np.inf), still)):
        force = contact.force(q, v)
        assert force.shape == (model.nv,)
        assert np.isnan(force).all()
