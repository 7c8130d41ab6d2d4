"""A body changes: laws, references and estimators go on, without a bump."""

import copy

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import brentq

from modurob import Organism, StateError, examples
from modurob.control import (
    CONTROLLERS,
    ComputedTorque,
    IndependentPid,
    Lqr,
    OutputFeedback,
    PdGravity,
    PidLinearized,
    PolePlacement,
    Reference,
    TrackingController,
    gains,
    transient,
)
from modurob.control.pid import Pid
from modurob.control.references import Quintic, SetPoint
from modurob.estimation import Ekf
from modurob.model.joint_map import JointMap
from modurob.reference import no_reference
from oracles import complains

ROUNDING = 1e-10
DT = 1e-2


def models(before=4, after=6, base="fixed"):
    return tuple(examples.snake(n).model("physical", base=base) for n in (before, after))


# -- gains -----------------------------------------------------------------------------------------


def test_surviving_joints_keep_their_gains_and_new_ones_get_the_median():
    old, new = models()
    law = ComputedTorque(old, k0=[10.0, 20.0, 60.0], k1=[5.0, 6.0, 9.0]).rebuilt(new)
    assert law.k0.tolist() == [10, 20, 60, 20, 20]
    assert law.k1.tolist() == [5, 6, 9, 6, 6]


def test_coupled_gains_keep_their_block():
    old, new = models()
    K = np.array([[10.0, 1, 2], [3, 20, 4], [5, 6, 30]])
    grown = ComputedTorque(old, k0=K, k1=K + np.eye(3)).rebuilt(new)
    np.testing.assert_array_equal(grown.k0[:3, :3], K)
    np.testing.assert_array_equal(grown.k0[3:, 3:], 20 * np.eye(2))
    assert not grown.k0[:3, 3:].any()


def test_one_number_for_all_joints_stays_one_for_all():
    old, new = models()
    assert PolePlacement(old, poles=[-2, -3]).rebuilt(new).k0.tolist() == pytest.approx([6.0] * 5)
    assert PdGravity(old, kp=3.0, kd=0.4).rebuilt(new).kp.tolist() == [3.0] * 5
    alone = Organism.start("backbone").model("physical")  # without joints, so far
    grown = PolePlacement(alone, poles=[-2, -3]).rebuilt(new)
    np.testing.assert_allclose([grown.k0, grown.k1], [[6] * 5, [5] * 5])
    mixed = PolePlacement(old, k0=6.0, k1=[5.0, 7.0, 5.0]).rebuilt(new)
    np.testing.assert_allclose([mixed.k0, mixed.k1], [[6] * 5, [5, 7, 5, 5, 5]])
    each = PolePlacement(old, poles=[[-1, -2], [-3, -4], [-2 + 1j, -2 - 1j]]).rebuilt(new)
    np.testing.assert_allclose(each.k0, [2, 12, 5, 5, 5])


def test_gains_of_torque_are_carried_per_inertia():
    old, new = models()
    m_old, m_new = gains.joint_inertia(old), gains.joint_inertia(new)
    law = PdGravity(old, kp=30 * m_old, kd=10 * m_old).rebuilt(new)
    np.testing.assert_allclose(law.kp[:3], 30 * m_old)
    np.testing.assert_allclose(law.kp[3:], 30 * m_new[3:])


def test_gains_and_limits_of_independent_pids_are_carried_per_inertia():
    old, new = models()
    m_old, m_new = gains.joint_inertia(old), gains.joint_inertia(new)
    law = IndependentPid(old, *(k * m_old for k in (30, 0.1, 30)), integral_limit=5 * m_old)
    pid = law.rebuilt(new).pid
    for found, share in ((pid.kp, 30), (pid.ki, 0.1), (pid.kd, 30), (pid.integral_limit, 5)):
        np.testing.assert_allclose(found, share * np.append(m_old, m_new[3:]))


def test_new_gains_without_an_integral_leave_nothing_behind_and_others_make_no_bump():
    old, new = models()
    joints = JointMap(old, new)
    before, after = (
        Pid(*(np.array(k[:n]) for k in gains_), 0.0, np.full(n, 9.0), np.zeros(n))
        for n, gains_ in (
            (old.nv, ([8.0] * 3, [0.0, 2.0, 2.0], [1.0] * 3)),
            (new.nv, ([5.0] * 5, [0.0, 2.0, 0.0, 2.0, 0.0], [2.0] * 5)),
        )
    )
    error, rate = np.array([0.1, 0.2, 0.3]), np.array([0.5, 0.25, 0.125])
    before.output(0.0, error, rate, no_reference(error.shape))
    after.take_over(before, joints)
    assert joints.kept_new.tolist() == [0, 1, 2]
    bump = 3.0 * error - 1.0 * rate  # of the parts of kp and kd
    np.testing.assert_allclose(after.integral, [0, bump[1], 0, 0, 0], atol=ROUNDING)
    assert after.error.tolist() == [*error, 0, 0]  # nothing is known of added joints
    assert after.rate.tolist() == [*rate, 0, 0]


def test_an_added_joint_without_an_integral_gets_none():
    old, new = models()
    inertia = gains.joint_inertia(old)
    law = IndependentPid(old, 36.0 * inertia, 0.0, 12.0 * inertia)
    law.reset(0.0, np.zeros(3), np.zeros(3))
    grown, place = law.rebuilt(new), np.array([0.3, -0.2, 0.1, 0.4, 0.5])
    grown.reset(0.0, place, np.zeros(5))
    assert new.gravity_torque(place).all()
    assert not grown.record()["integral"].any()


def test_gains_from_a_settling_time_are_made_for_the_new_body():
    old, new = models()
    grown = PdGravity(old, settling_time=0.5).rebuilt(new)
    np.testing.assert_allclose(grown.kp, PdGravity(new, settling_time=0.5).kp)
    np.testing.assert_allclose(
        IndependentPid(old, settling_time=0.5).rebuilt(new).pid.kp,
        IndependentPid(new, settling_time=0.5).pid.kp,
    )


def test_limits_clock_delay_and_motors_are_kept():
    old, new = models()
    law = ComputedTorque(
        old, torque_limit=[1.0, 2.0, 9.0], sample_time=0.01, delay=True, passive=["m1.hinge"]
    ).rebuilt(new)
    assert law.torque_limit.tolist() == [1, 2, 9, 2, 2]
    assert (law.sample_time, law.delay, law.passive) == (0.01, 0.01, ("m1.hinge",))


def test_lqr_is_solved_again():
    old, new = models()
    law = Lqr(old, [0.1, 0.2, 0.3], R=0.5).rebuilt(new)
    assert law.set_point.tolist() == [0.1, 0.2, 0.3, 0.0, 0.0]
    np.testing.assert_allclose(law.K, Lqr(new, law.set_point, R=0.5).K, atol=ROUNDING)


@pytest.mark.parametrize("law", CONTROLLERS.values(), ids=CONTROLLERS)
@pytest.mark.parametrize("base", ["fixed", "free"])
def test_bodies_grow_shrink_and_come_loose(law, base):
    small, large = models(3, 5)
    loose = examples.snake(4).model("physical", base=base)
    one = law(small)
    for model in (large, loose, small):
        one = one.rebuilt(model)
        q, v = model.neutral(), np.zeros(model.nv)
        one.reset(0.0, q, v)
        assert np.isfinite(one.command(0.0, q, v)).all()


def test_a_designed_independent_pid_begins_with_the_load_and_a_given_one_with_nothing():
    model, q = examples.snake(3).model("physical", gravity=(0, 9.81, 0)), np.array([0.2, -0.4])
    load = model.gravity_torque(q)
    assert np.abs(load).min() > 0.1
    designed, given = IndependentPid(model), IndependentPid(model, 3.0, [5.0, 0.0], 1.0)
    for law, expected in ((designed, load), (given, np.zeros(2))):
        law.reset(0.0, q, np.zeros(2))
        np.testing.assert_allclose(law.record()["integral"], expected, atol=1e-12)


# -- no bump ---------------------------------------------------------------------------------------


def driven(law, model, q, v, goal, samples=40):
    dt = law.sample_time
    for k in range(samples):
        q, v = model.step(q, v, law.command(k * dt, q, v, goal), dt)
    return q, v, samples * dt


@pytest.mark.parametrize("law", [ComputedTorque, PolePlacement, PidLinearized])
def test_linearising_laws_want_the_same_acceleration_before_and_after(law):
    """The torque changes, because the body does; what it does to surviving joints does not."""
    old, new = models()
    goal = np.array([0.5, -0.3, 0.2])
    one = law(old, sample_time=DT)
    q, v, t = driven(one, old, np.zeros(3), np.zeros(3), goal)
    # torques are made for the pose in the middle of a sample
    before = old.forward_dynamics(q + DT / 2 * v, v, copy.copy(one).command(t, q, v, goal))
    grown = one.rebuilt(new)
    q_new, v_new = np.append(q, [0.3, -0.2]), np.append(v, [0.0, 0.0])
    grown.reset(t, q_new, v_new)
    tau = grown.command(t, q_new, v_new, np.append(goal, [0.3, -0.2]))
    after = new.forward_dynamics(q_new + DT / 2 * v_new, v_new, tau)
    np.testing.assert_allclose(after[:3], before, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(after[3:], 0, rtol=0, atol=ROUNDING)


def test_the_torque_of_independent_pids_does_not_jump_though_their_gains_do():
    old, new = models()
    goal, one = np.array([0.5, -0.3, 0.2]), IndependentPid(old, settling_time=1.0)
    q, v, t = driven(one, old, np.zeros(3), np.zeros(3), goal)
    last = one.command(t, q, v, goal)
    grown = one.rebuilt(new)
    assert np.all(np.abs(grown.pid.kp[:3] / one.pid.kp - 1) > 0.1)
    q_new, v_new = np.append(q, [0.3, -0.2]), np.append(v, [0.0, 0.0])
    grown.reset(t, q_new, v_new)
    tau = grown.command(t, q_new, v_new, np.append(goal, [0.3, -0.2]))
    np.testing.assert_allclose(tau[:3], last, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(tau[3:], new.gravity_torque(q_new)[3:], rtol=0, atol=ROUNDING)


def test_what_was_taken_over_is_kept_for_one_reset_only():
    old, new = models()
    one, z = PidLinearized(old), np.zeros(3)
    for k in range(3):
        one.command(0.1 * k, z, z, np.ones(3))
    grown = one.rebuilt(new)
    grown.reset(0.2, np.zeros(5), np.zeros(5))
    assert grown.pid.integral[:3].all()
    grown.reset(0.0, np.zeros(5), np.zeros(5))
    assert not grown.pid.integral.any()


def test_without_a_reference_survivors_stay_at_their_place_and_new_joints_at_theirs():
    old, new = models()
    one = ComputedTorque(old)
    one.reset(0.0, np.array([0.1, 0.2, 0.3]), np.zeros(3))
    grown = one.rebuilt(new)
    now = np.array([0.15, 0.25, 0.35, 0.4, 0.5])
    grown.reset(0.0, now, np.zeros(5))
    a = new.forward_dynamics(now, np.zeros(5), grown.command(0.0, now, np.zeros(5)))
    np.testing.assert_allclose(a, grown.k0 * [-0.05, -0.05, -0.05, 0, 0], atol=1e-9)


# -- with references and estimators ----------------------------------------------------------------


def test_following_takes_its_reference_along():
    old, new = models()
    motion = Quintic(np.zeros(3), [0.5, 0.4, -0.3], 2.0)
    both = TrackingController(ComputedTorque(old), motion).rebuilt(new).rebuilt(new)
    q, v = np.append(motion(1.0).q, [0.3, -0.2]), np.append(motion(1.0).v, [0.0, 0.0])
    both.reset(1.0, q, v)
    a = new.forward_dynamics(q, v, both.command(1.0, q, v))
    np.testing.assert_allclose(a, np.append(motion(1.0).a, [0, 0]), rtol=0, atol=ROUNDING)
    later = both.reference(1.5)
    np.testing.assert_allclose(later.q, np.append(motion(1.5).q, [0.3, -0.2]), atol=ROUNDING)
    with complains(StateError, "function of time"):
        TrackingController(ComputedTorque(old), np.zeros(3))


def test_new_joints_stay_where_the_run_with_the_new_body_begins():
    old, new = models()
    both = TrackingController(ComputedTorque(old), SetPoint([0.1, 0.2, 0.3])).rebuilt(new)
    begin, later = np.array([0.1, 0.2, 0.3, 0.4, -0.5]), np.zeros(5)
    both.reset(1.0, begin, np.zeros(5))
    both.command(1.0, later, np.zeros(5))
    np.testing.assert_array_equal(both.reference(1.0).q, begin)
    other = np.array([0.3, 0.2, 0.1, 0.0, 0.1])
    given = both.command(1.0, later, np.zeros(5), other)
    np.testing.assert_array_equal(given, both.law.command(1.0, later, np.zeros(5), other))


def test_output_feedback_without_a_reference_stays_at_its_first_estimate():
    model = examples.snake(3).model("physical")
    loop = OutputFeedback(PidLinearized(model, sample_time=DT), Ekf(model, DT, R=1e-4, P=3e-4))
    for begin in (np.array([0.4, -0.2]), np.array([0.1, 0.3])):  # a second run begins anew
        loop.reset(0.0, np.zeros(2), np.zeros(2))
        for k in range(3):
            loop.command(k * DT, begin, np.zeros(2))
            if k == 0:
                np.testing.assert_allclose(loop.estimator.q, 0.75 * begin, atol=1e-2)
        np.testing.assert_allclose(loop.law._hold, 0.75 * begin, atol=1e-12)
    found = loop.record()
    assert found.keys() == {"estimate_q", "estimate_v", "sigma", "nis", "integral"}
    assert found["sigma"].shape == (4,)
    np.testing.assert_array_equal(found["integral"], loop.law.pid.integral)


def test_output_feedback_begins_with_its_first_command_where_no_run_begins_it():
    model, q = examples.snake(3).model("physical", gravity=(0, 9.81, 0)), np.array([0.3, -0.2])
    loop = OutputFeedback(IndependentPid(model), Ekf(model, 1e-3, q=q))
    loop.command(0.0, q, np.zeros(2))
    np.testing.assert_allclose(loop.record()["integral"], model.gravity_torque(q), rtol=1e-9)


def test_output_feedback_reaches_the_set_point_from_noisy_angles_alone():
    model = examples.crab().model()
    rng, goal = np.random.default_rng(5), np.array([0.4, -0.3, 0.2])
    ekf = Ekf(model, DT, Q=np.repeat([1e-8, 1e-6], 3), R=1e-4, P=1e-4)
    loop = OutputFeedback(ComputedTorque(model), ekf)
    q, v = np.zeros(3), np.zeros(3)
    loop.reset(0.0, q, v)
    errors = []
    for k in range(400):
        noisy, hidden = q + 1e-2 * rng.standard_normal(3), np.full(3, 77.0)
        tau = loop.command(k * DT, noisy, hidden, goal)
        for _ in range(10):
            q, v = model.step(q, v, tau, DT / 10)
        errors.append(np.abs(q - goal).max())
    assert max(errors[-50:]) < 2e-2
    assert set(loop.record()) == {"estimate_q", "estimate_v", "sigma", "nis"}
    assert loop.sample_time == DT


def test_output_feedback_goes_on_with_another_body():
    old, new = models()
    rng, goal = np.random.default_rng(6), np.array([0.4, -0.3, 0.2])
    loop = OutputFeedback(PidLinearized(old, sample_time=DT), Ekf(old, DT, R=1e-6))
    q, v = np.zeros(3), np.zeros(3)
    loop.reset(0.0, q, v)
    for k in range(100):
        tau = loop.command(k * DT, q + 1e-3 * rng.standard_normal(3), v, goal)
        q, v = old.step(q, v, tau, DT)
    P, estimate = loop.estimator.P.copy(), loop.estimator.q.copy()
    grown = loop.rebuilt(new)
    grown.reset(1.0, np.zeros(5), np.zeros(5))  # the true state is not looked at
    np.testing.assert_array_equal(grown.estimator.q[:3], estimate)
    np.testing.assert_allclose(grown.estimator.P[:3, :3], P[:3, :3], atol=1e-15)
    q, v, goal = np.append(q, [0.2, -0.1]), np.append(v, [0.0, 0.0]), np.append(goal, [0.0, 0.0])
    for k in range(100, 400):
        tau = grown.command(k * DT, q + 1e-3 * rng.standard_normal(5), v, goal)
        for _ in range(5):
            q, v = new.step(q, v, tau, DT / 5)
    np.testing.assert_allclose(q, goal, rtol=0, atol=1e-2)
    again = loop
    again.reset(0.0, np.zeros(3), np.zeros(3))
    assert not again.estimator.q.any()


# -- transients ------------------------------------------------------------------------------------


def test_a_transient_is_the_response_of_the_error_equation():
    _, new = models()
    law = ComputedTorque(new, k0=20.0, k1=4.0)
    rng = np.random.default_rng(3)
    q, v = 0.1 * rng.standard_normal(5), rng.standard_normal(5)
    report = transient(law, q, v, np.zeros(5))
    A = np.array([[0, 1], [-20.0, -4]])
    times = np.linspace(0, 6, 6001)
    step, x, rows = expm(A * 1e-3), np.array([q, v]), []
    for _ in times:
        rows.append(np.abs(x[0]))
        x = step @ x
    rows = np.array(rows)
    np.testing.assert_allclose(report.peak, rows.max(axis=0), rtol=1e-3)
    outside = np.flatnonzero((rows > 0.02 * rows.max()).any(axis=1))[-1]
    assert report.settled == pytest.approx(times[outside], abs=0.02)
    assert report.bound >= report.peak.max()
    assert report.decay == pytest.approx(2.0)
    gain = max(np.linalg.norm(expm(A * t)[0]) for t in times[:2000:5])
    assert report.bound == pytest.approx(gain * np.linalg.norm([q, v]), rel=1e-4)
    fast = transient(ComputedTorque(new, k0=20.0, k1=4.0, sample_time=1e-4), q, v, np.zeros(5))
    np.testing.assert_allclose(fast.peak, report.peak, rtol=1e-3)
    assert fast.settled == pytest.approx(report.settled, abs=0.02)
    assert str(report) == (
        f"errors up to {report.peak.max():.3g} (bound {report.bound:.3g}) rad or m, torques "
        f"{report.torque.max():.3g} N m or N beyond the reference's, settled after "
        f"{report.settled:.3g} s, slowest rate 2 1/s"
    )
    np.testing.assert_array_equal([report.error, report.rate], [q, v])


def test_small_errors_settle_as_late_as_large_ones_and_slow_laws_are_followed_to_the_end():
    _, new = models()
    law = ComputedTorque(new, k0=20.0, k1=4.0)
    q, v, goal = np.full(5, 0.5), np.zeros(5), np.zeros(5)
    report, small = transient(law, q, v, goal), transient(law, 1e-3 * q, v, goal)
    assert small.settled == report.settled > 1.0
    np.testing.assert_allclose(small.peak, 1e-3 * report.peak, rtol=1e-9)
    slow = transient(ComputedTorque(new, k0=0.2, k1=0.4), q, v, goal)  # the same, ten times slower
    assert slow.settled == pytest.approx(10 * report.settled, rel=0.02)
    assert "slowest rate 0.2 1/s" in str(slow)


@pytest.mark.parametrize("law", CONTROLLERS.values(), ids=CONTROLLERS)
def test_no_motion_after_a_change_leaves_its_bound(law):
    """The whole body, not its linearisation, for a small impact."""
    _, new = models(3, 4)
    goal = np.array([0.2, -0.1, 0.15])
    one = law(new)
    rng = np.random.default_rng(1)
    q, v = goal + 0.01 * rng.standard_normal(3), 0.05 * rng.standard_normal(3)
    report = transient(one, q, v, goal)
    if isinstance(one, IndependentPid):
        one.pid.integral = new.gravity_torque(goal)
    worst = 0.0
    for k in range(1500):
        worst = max(worst, np.abs(q - goal).max())
        q, v = new.step(q, v, one.command(k * 1e-3, q, v, goal), 1e-3)
    assert worst <= report.bound
    assert worst == pytest.approx(report.peak.max(), rel=0.05)


def test_a_transient_of_one_joint_is_that_of_two_poles():
    """e = 3 exp(-2 t) - 2 exp(-3 t), looked at a thousand times in twelve time constants."""
    rail = examples.arm("c").with_parameters(viscous=0.0).model("physical")
    begin, rest, step = np.array([0.5]), np.zeros(1), 12 / 2 / 1000
    found = transient(ComputedTorque(rail, 6.0, 5.0), begin, rest, [0.0])
    settles = brentq(lambda t: 3 * np.exp(-2 * t) - 2 * np.exp(-3 * t) - 0.02, 0.5, 9)
    assert found.settled == pytest.approx(np.ceil(settles / step) * step, abs=1e-9)
    assert found.peak.item() == 0.5
    mass = rail.mass_matrix([0.0]).item()  # the torque is the largest at the start
    assert found.torque.item() == pytest.approx(mass * 6 * 0.5)
    moving = Reference(np.array([0.2]), np.array([-0.3]), rest)
    found = transient(ComputedTorque(rail, 6.0, 5.0), begin, np.array([0.1]), moving)
    np.testing.assert_allclose([found.error, found.rate], [[0.3], [0.4]])
    nothing = transient(ComputedTorque(rail, 6.0, 5.0), rest, rest, [0.0])
    assert (nothing.settled, nothing.bound, nothing.peak.item(), nothing.torque.item()) == (0,) * 4


@pytest.mark.parametrize(("dt", "apart"), [(0.1, 1), (7e-4, 8)])
def test_a_transient_of_a_sampled_law_is_counted_in_samples(dt, apart):
    """Of a double integrator whose input is held; of fast samples about a thousand are seen."""
    rail = examples.arm("c").with_parameters(viscous=0.0).model("physical")
    law = ComputedTorque(rail, 6.0, 5.0, sample_time=dt)
    A = np.array([[1, dt], [0, 1]]) - np.outer([dt * dt / 2, dt], [6.0, 5.0])
    rate = -np.log(np.abs(np.linalg.eigvals(A)).max()) / dt
    samples = apart * np.arange(int(12 / rate / dt / apart))
    path = np.array([np.linalg.matrix_power(A, k) @ [0.5, -1.0] for k in samples])
    found = transient(law, [0.5], [-1.0], [0.0])
    last = samples[np.abs(path[:, 0]) > 0.01].max()
    assert found.settled == pytest.approx((last + apart) * dt)
    assert found.decay == pytest.approx(rate)
    force = rail.mass_matrix([0.0]).item() * np.abs(path @ [6.0, 5.0]).max()
    assert found.torque.item() == pytest.approx(force)


def test_an_unstable_loop_has_no_bound():
    _, new = models()
    unstable = ComputedTorque(new, k0=1.0, k1=1.0)
    unstable.k0 = -np.eye(5)
    report = transient(unstable, np.ones(5), np.zeros(5), np.zeros(5))
    assert report.bound == report.settled == np.inf
    assert np.isinf([report.peak, report.torque]).all()
    assert report.decay == pytest.approx((1 - np.sqrt(5)) / 2)  # s^2 + s - 1
    assert "not bounded" in str(report)
    rail = examples.arm("c").with_parameters(viscous=0.0).model("physical")
    stays = ComputedTorque(rail, np.zeros((1, 1)), np.full((1, 1), 4.0))  # wherever it stops
    report = transient(stays, np.ones(1), np.zeros(1), np.zeros(1))
    assert (report.decay, report.bound, report.settled) == (0, np.inf, np.inf)
    assert "not bounded" in str(report)


def test_set_points_are_references_too():
    old, _ = models()
    law = TrackingController(PdGravity(old), SetPoint([0.1, 0.2, 0.3]))
    assert law.sample_time is None
    assert law.record() == {}
    assert np.isfinite(law.command(0.0, np.zeros(3), np.zeros(3))).all()
