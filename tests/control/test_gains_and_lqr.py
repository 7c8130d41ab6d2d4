"""Gains against responses computed in another way; LQR against its equations."""

import dataclasses

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.optimize import brentq

from modurob import Organism, StateError, examples, simulate
from modurob.control import ComputedTorque, IndependentPid, Lqr, PdGravity, gains
from modurob.control.closed_loop import linearized
from modurob.control.lqr import _weight
from oracles import complains

ROUNDING = 1e-9
RICCATI = 1e-8  # residual of a Riccati equation, of its largest term


def test_settling_of_a_critically_damped_error_solves_its_equation():
    expected = brentq(lambda x: (1 + x) * np.exp(-x) - 0.02, 1, 20, xtol=1e-12)
    assert gains.settling_factor(1.0) == pytest.approx(expected, abs=ROUNDING)


def test_a_pid_adds_a_pole_to_those_of_the_settling_time():
    kp, ki, kd = gains.pid_from_settling_time(2.0, 0.7)
    k0, k1 = gains.from_settling_time(2.0, 0.7)
    expected = np.append(np.roots([1, k1, k0]), -np.sqrt(k0))
    found = np.roots([1, kd, kp, ki])
    np.testing.assert_allclose(np.sort_complex(found), np.sort_complex(expected), rtol=1e-6)


@pytest.mark.parametrize("integral", [False, True])
@pytest.mark.parametrize(("dt", "late"), [(1e-3, 0), (0.02, 0), (0.02, 2), (0.1, 0), (0.01, 12)])
def test_a_sampled_double_integrator_settles_in_time_without_overshoot(dt, late, integral):
    """The loop itself, sample by sample; a delay that leaves too little time is said."""
    design = gains.for_samples(1.0, 1.0, dt, late, integral)
    kp, ki, kd, share = design.gains if integral else (design.gains[0], 0.0, design.gains[1], 0.0)
    e, v, total, queue, errors = 1.0, 0.0, -share, [0.0] * late, []
    for _ in range(round(4 * design.time / dt)):
        errors.append(e)
        total += ki * dt * e
        queue.append(-(kp * e + total + kd * v))
        u = queue.pop(0)
        e, v = e + dt * v + dt * dt / 2 * u, v + dt * u
    t = dt * np.arange(len(errors))
    last = t[np.flatnonzero(np.abs(errors) > 0.02)[-1]]
    assert 0.95 * design.time - dt <= last <= 1.1 * design.time
    assert min(errors) > -1e-3
    assert (design.time == pytest.approx(1.0)) == (late * dt < 0.05)


def test_a_double_integrator_with_fast_samples_gets_the_continuous_gains_of_any_damping():
    for damping in (0.5, 0.7, 1.0, 1.5):
        found = gains.for_samples(1.0, damping, 1e-4, 0).gains
        assert found == pytest.approx(gains.from_settling_time(1.0, damping), rel=5e-3)


@pytest.mark.parametrize(("dt", "late"), [(0.02, 2), (0.01, 12), (0.1, 5)])
def test_poles_that_a_delay_adds_are_faster_than_those_asked_for(dt, late):
    """Eigenvalues of e, e' and the inputs under way."""
    design = gains.for_samples(1.0, 1.0, dt, late)
    A = np.zeros((2 + late, 2 + late))
    A[:2, :2], A[:2, 2] = [[1, dt], [0, 1]], [dt * dt / 2, dt]
    A[2:-1, 3:] = np.eye(late - 1)
    A[-1, :2] = -np.array(design.gains)
    modulus = np.sort(np.abs(np.linalg.eigvals(A)))[::-1]
    asked = np.exp(-gains.settling_factor(1.0) / (design.time - late * dt) * dt)
    np.testing.assert_allclose(modulus[:2], asked, rtol=2e-3)
    assert modulus[2] < 0.98 * asked


@pytest.mark.parametrize("damping", [0.1, 0.5, 0.7, 0.9, 1.0, 1.5, 3.0])
@pytest.mark.parametrize("time", [0.2, 1.0, 5.0])
def test_errors_are_settled_after_the_settling_time_and_not_before(damping, time):
    k0, k1 = gains.from_settling_time(time, damping)
    found = solve_ivp(lambda t, x: [x[1], -k0 * x[0] - k1 * x[1]], (0, 4 * time), [1.0, 0.0],
                      "DOP853", rtol=1e-11, atol=1e-12, dense_output=True)  # fmt: skip
    after = np.abs(found.sol(np.linspace(time * (1 + 1e-6), 4 * time, 4000))[0])
    assert after.max() <= 0.02 * (1 + 1e-4)
    assert abs(found.sol(time)[0]) == pytest.approx(0.02, rel=1e-4)
    assert k1 / (2 * np.sqrt(k0)) == pytest.approx(damping)


def test_an_unstable_error_never_settles():
    assert gains.settling_time(-1.0, 1.0) == np.inf
    assert gains.settling_time(1.0, 1.0, 2.0) == np.inf  # Routh: kp kd > ki
    assert gains.settling_time(0.0, 1.0) == np.inf


def test_poles_give_the_thesis_gains():
    k0, k1 = gains.from_poles([[-2, -3], [-5, -10]])
    np.testing.assert_allclose(k0, [6, 50])
    np.testing.assert_allclose(k1, [5, 15])


def test_a_pair_of_poles_is_conjugate_up_to_rounding():
    gains.from_poles([-1 + 1j, -1 - (1 + 1e-14) * 1j])
    # in the last two only the sum, and only the product, is real
    for wrong in ([-1 + 1j, -1 - 1.001j], [-1 + 1j, -2 - 1j], [-1 + 1j, -2 - 2j]):
        with complains(StateError, "conjugate pairs"):
            gains.from_poles(wrong)


@pytest.mark.parametrize("poles", ["fast", [-1], -1, [[-1, -2, -3]], [-1, np.nan], [-1, "x"], None])
def test_poles_are_two_numbers_for_each_joint(poles):
    with complains(StateError, "two finite numbers for each joint"):
        gains.from_poles(poles)


def test_default_gains_settle_in_a_second():
    model = examples.double_pendulum().model("physical")
    law = ComputedTorque(model)
    assert gains.settling_time(law.k0[0], law.k1[0]) == pytest.approx(1.0)


def test_pd_gains_damp_every_pose_as_asked_for():
    """Poles of the double pendulum: in all its poses they are real, but for sampling 32 poses."""
    model = examples.double_pendulum().model("physical")
    law = PdGravity(model, settling_time=0.5)
    rate = law.kp[0, 0] / law.kd[0, 0]
    np.testing.assert_allclose(law.kp, rate * law.kd, rtol=ROUNDING)
    for angle in np.linspace(0, np.pi / 2, 50):  # its limit
        M = model.mass_matrix([0.0, angle])
        poles = np.linalg.eigvals(
            np.block([[np.zeros((2, 2)), np.eye(2)],
                      [-np.linalg.solve(M, law.kp), -np.linalg.solve(M, law.kd)]])
        )  # fmt: skip
        assert (-poles.real / np.abs(poles)).min() > 0.98  # damping; 32 poses are sampled
        assert -poles.real.max() > 0.98 * rate


@pytest.mark.parametrize("viscous", [0.0, 0.5, 20.0, 3e3])
def test_friction_takes_over_damping_and_the_settling_time_stays(viscous):
    model = examples.arm("a").with_parameters(viscous=viscous).model("physical")
    law, inertia = PdGravity(model, settling_time=0.7), model.mass_matrix(np.zeros(1)).item()
    kp, kd = law.kp.item(), law.kd.item()
    assert kd > 0
    time = gains.settling_time(kp / inertia, (kd + viscous) / inertia)
    assert 0.6 * 0.7 < time <= 0.7 * (1 + 1e-6)
    assert kd + viscous >= 2 * np.sqrt(kp * inertia) * (1 - 1e-6)  # no overshoot
    # beside friction, 0.6 % are left of an error: 2 % of a step of 30 % of the largest
    rate = kp / (kd + viscous)
    expected = -np.log(0.3 * 0.02) if viscous else gains.settling_factor(1.0) / 2
    assert rate * 0.7 == pytest.approx(expected, rel=1e-4)
    # a tenth of what would be wanted without friction is the motor's in any case
    wanted = 4 * kp / (kd + viscous) * inertia
    assert kd == pytest.approx(max(wanted - viscous, 0.1 * wanted), rel=1e-5)


@pytest.mark.parametrize("late", [0, 1, 2, 5])
def test_the_fastest_sampled_damping_is_where_poles_meet(late):
    """v+ = v - x v(late): z^(late + 1) - z^late + x has a double pole there."""
    x = 0.02 * gains._fastest_sampled(0.02, late)
    if not late:
        assert x == 1.0  # deadbeat
        return
    z = late / (late + 1)
    assert z ** (late + 1) - z**late + x == pytest.approx(0, abs=1e-15)
    assert (late + 1) * z**late - late * z ** (late - 1) == pytest.approx(0, abs=1e-15)


def test_friction_within_half_a_sample_lets_a_sampled_joint_be_damped_more():
    """v+ = v - dt Kd v / (M + dt B / 2): deadbeat at most, else slower than asked for."""
    body = examples.arm("b").with_parameters(viscous=0.0)
    inertia = body.model("physical").mass_matrix([0.0]).item()
    time, dt, viscous = 0.2, 0.05, 10 * inertia
    model = body.with_parameters(viscous=viscous).model("physical")
    rate = -np.log(0.3 * 0.02) / time
    kd = 4 * rate * inertia - viscous
    slower = kd * dt / (inertia + dt / 2 * viscous)
    law = PdGravity(model, settling_time=time, sample_time=dt)
    assert law.attainable == pytest.approx(slower * time, rel=1e-4)
    assert slower > 2
    expected = 4 * rate / slower * inertia - viscous
    assert law.kd.item() == pytest.approx(max(expected, 0.4 * rate / slower * inertia), rel=1e-4)


@pytest.mark.parametrize("kind", [ComputedTorque, PdGravity, IndependentPid])
def test_with_fast_samples_the_time_asked_for_is_attainable(kind):
    model = examples.double_pendulum().model("physical")
    assert kind(model, settling_time=0.7, sample_time=1e-4).attainable == pytest.approx(0.7)


def test_pids_on_a_free_base_have_the_rate_that_was_asked_for():
    """Nothing falls relative to it: gravity does not slow them down."""
    model = examples.snake(4).model("physical", base="free")
    pid = IndependentPid(model, settling_time=0.8, sample_time=1e-5).pid
    np.testing.assert_allclose(pid.ki / pid.share, -1.2 * np.log(0.02) / 0.8, rtol=1e-9)


def test_without_gravity_pids_have_the_rate_that_was_asked_for_and_a_double_root():
    """kp = 2 c (kd + B) and ki = c^2 (kd + B), B the friction."""
    model = examples.snake(4).with_parameters(viscous=0.01).model("physical", gravity=(0, 0, 0))
    pid, c = IndependentPid(model, settling_time=0.8, sample_time=1e-5).pid, 1.2 * np.log(50) / 0.8
    np.testing.assert_allclose(pid.kp, 2 * c * (pid.kd + 0.01), rtol=1e-9)
    np.testing.assert_allclose(pid.ki, c**2 * (pid.kd + 0.01), rtol=1e-9)


def test_a_body_without_joints_has_gains_of_no_joints():
    block = Organism.start("backbone").model("physical")
    for design, count in (
        (gains.for_torques(block, 0.5, 1.0, 0.01, 0), 2),
        (gains.for_joints(block, 0.5, 0.01, 0), 4),
    ):
        assert [len(gain) for gain in design.gains] == [0] * count
        assert design.time == 0.5


def test_a_long_sample_time_slows_torques_down_instead_of_making_them_unstable():
    model = examples.snake(4).model("physical")
    for dt, late in ((0.05, 0), (0.01, 4)):
        law = PdGravity(model, sample_time=dt, delay=late * dt)
        assert law.attainable > 2
        assert linearized(law, model.neutral()).rate > 1 / law.attainable


# -- samples and friction --------------------------------------------------------------------------


@pytest.mark.parametrize("viscous", [0.01, 0.3, 3.0, 50.0])
def test_a_joint_gets_the_acceleration_asked_for_over_a_sample(viscous):
    """M v' = tau - b v with a held torque, in closed form."""
    model = examples.arm("b").with_parameters(viscous=viscous).model("physical")
    M, dt, v = model.mass_matrix(np.zeros(1)).item(), 5e-3, 0.4
    law = ComputedTorque(model, k0=9.0, k1=6.0, sample_time=dt)
    a = 9.0 * 0.7 - 6.0 * v
    tau = law.command(0.0, np.zeros(1), np.array([v]), np.array([0.7])).item()
    after = tau / viscous + (v - tau / viscous) * np.exp(-viscous / M * dt)
    assert after - v == pytest.approx(a * dt, rel=1e-9)


@pytest.mark.parametrize("law", [PdGravity, Lqr])
def test_default_gains_settle_the_arm_against_its_friction_in_a_second(law):
    model = examples.arm("babac").model("physical", gravity=(0, 0, 0))
    assert model.viscous.min() == 3.0
    controller = law(model)
    start = np.array([0.1, -0.1, 0.1, 0.1, 0.01])
    run = simulate(model, start, None, 2.0, controller, reference=np.zeros(5), integrator="Radau")
    late = run.t > 1.1
    assert np.abs(run.q[late] / start).max() < gains.SETTLED


# -- LQR -------------------------------------------------------------------------------------------


def crane(**options):
    return Lqr(examples.crane().model("physical"), passive=["m1.hinge"], **options)


def differences(model, q, tau, motors):
    """A and B about rest by central differences of the forward dynamics."""
    h, n = 1e-6, model.nv

    def rates(x, u):
        full = np.zeros(n)
        full[motors] = u
        return np.concatenate([x[n:], model.forward_dynamics(x[:n], x[n:], full)])

    x, u = np.concatenate([q, np.zeros(n)]), tau[motors]
    A = [(rates(x + h * e, u) - rates(x - h * e, u)) / (2 * h) for e in np.eye(2 * n)]
    B = [(rates(x, u + h * e) - rates(x, u - h * e)) / (2 * h) for e in np.eye(len(motors))]
    return np.array(A).T, np.array(B).T


def test_lqr_gain_is_optimal_for_the_linearised_crane():
    """Hamiltonian eigenvalues: the stable half are those of the optimal closed loop."""
    Q, R = np.diag([4.0, 1.0, 1.0, 2.0]), 0.5
    law = crane(Q=Q, R=R)
    A, B = differences(law.model, np.zeros(2), np.zeros(2), [0])
    ham = np.block([[A, -B @ B.T / R], [-Q, -A.T]])
    optimal = np.linalg.eigvals(ham)
    optimal = np.sort_complex(optimal[optimal.real < 0])
    found = np.sort_complex(np.linalg.eigvals(A - B @ law.K[[0]]))
    np.testing.assert_allclose(found, optimal, rtol=0, atol=1e-6)  # differences of 1e-6
    assert not law.K[1].any()


def test_discrete_lqr_solves_the_riccati_equation_of_the_sampled_crane():
    dt, Q, R = 0.05, np.diag([4.0, 1.0, 1.0, 2.0]), np.array([[0.5]])
    law = crane(Q=Q, R=R, sample_time=dt)
    A, B = law.linear()
    whole = expm(np.block([[A, B], [np.zeros((1, 5))]]) * dt)
    A, B, K = whole[:4, :4], whole[:4, 4:], law.K[[0]]
    P = Q.copy()
    for _ in range(20000):  # value iteration, to its fixed point
        P = Q + K.T @ R @ K + (A - B @ K).T @ P @ (A - B @ K)
    best = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)  # policy improvement finds nothing better
    np.testing.assert_allclose(best, K, rtol=0, atol=RICCATI * np.abs(K).max())


def test_default_weights_of_a_slide_have_the_gains_of_the_riccati_equation_by_hand():
    """Of x'' = u with weights q0, q1 and r: sqrt(q0 / r), and sqrt(2 sqrt(q0 / r) + q1 / r).

    Errors weigh three times as much as the torque of a second's settling, and rates as much as
    errors that decay to 0.6 % in it.
    """
    rail = examples.arm("c").with_parameters(viscous=0.0).model("physical", gravity=(0, 0, 0))
    mass, k0 = rail.mass_matrix([0.0]).item(), gains.settling_factor(1.0) ** 2
    first = np.sqrt(3) * k0
    second = np.sqrt(2 * first + 3 * k0**2 / np.log(0.3 * 0.02) ** 2)
    np.testing.assert_allclose(Lqr(rail).K[0], [mass * first, mass * second], rtol=1e-9)
    assert 0.5 < gains.settling_time(first, second) < 1.0


def test_the_default_weight_of_a_torque_is_that_of_inertia_gravity_and_friction():
    """One pendulum: what turns it by a radian in a second, holds it and moves it in oil."""
    body = examples.snake(2).with_parameters(viscous=0.3)
    model = body.model("physical", gravity=(0, 9.81, 0))
    inertia, at = model.mass_matrix([0.0]).item(), 0.6
    load = model.gravity_torque([at]).item()
    slope = (model.gravity_torque([at + 1e-6]).item() - load) / 1e-6
    assert min(abs(load), abs(slope)) > 0.1
    needed = inertia * gains.settling_factor(1.0) ** 2 + abs(load) + abs(slope)
    needed += -np.log(0.3 * 0.02) * 0.3
    assert Lqr(model, [at]).R.item() == pytest.approx(needed**-2, rel=1e-5)


def test_lqr_calms_the_load_of_the_crane():
    law = crane(Q=[1, 10, 1, 1], R=0.01)
    model = law.model

    def rates(t, x):
        tau = law.command(t, x[:2].copy(), x[2:].copy(), np.zeros(2))
        return np.concatenate([x[2:], model.forward_dynamics(x[:2], x[2:], tau)])

    end = solve_ivp(rates, (0, 40), [0.5, 0.3, 0, 0], rtol=1e-8, atol=1e-10).y[:, -1]
    assert np.abs(end).max() < 1e-3


def test_lqr_balances_an_upright_pendulum_with_one_motor():
    upright, hanging = (
        examples.double_pendulum().model("physical", gravity=(0, 0, g)) for g in (9.81, -9.81)
    )
    law = Lqr(upright, passive=["m1.hinge"])
    assert law.certificate().guaranteed
    q, v, dt = np.array([0.02, -0.03]), np.zeros(2), 1e-3
    for k in range(4000):
        q, v = upright.step(q, v, law.command(k * dt, q, v, np.zeros(2)), dt)
    assert np.abs(q).max() < 1e-3
    weak = Lqr(hanging, passive=["m1.hinge"])  # a gain for the other gravity
    law.K = weak.K
    assert not law.certificate().guaranteed


def test_lqr_says_what_it_cannot_do():
    with complains(StateError, "m1.hinge", "no motor", "choose one at which it rests"):
        Lqr(examples.crane().model("physical"), [0.0, 0.5], passive=["m1.hinge"])
    with complains(StateError, "m1.hinge", "no motor"):
        Lqr(examples.crane().model("physical"), [0.0, 1e-5], passive=["m1.hinge"])
    Lqr(examples.crane().model("physical"), [0.0, 1e-9], passive=["m1.hinge"])
    with complains(StateError, "Q is a weight", "eigenvalue -0.05 is negative"):
        crane(Q=[1, 1, 1, -0.05])
    weightless = examples.crane().model("physical", gravity=(0, 0, 0))
    with complains(StateError, "cannot stabilize"):
        Lqr(weightless, passive=["m0.slide"], Q=np.zeros(4))
    with complains(StateError, "cannot stabilize"):
        Lqr(weightless, passive=["m0.slide"], Q=np.zeros(4), sample_time=0.01)
    with complains(StateError, "Q is", "(3,)"):
        crane(Q=[1, 2, 3])
    with complains(StateError, "R is", "(2,)"):
        crane(R=[1, 2])


def test_weights_may_be_negative_by_rounding():
    np.testing.assert_array_equal(_weight("Q", [2.0, -1e-9], 2), np.diag([2.0, -1e-9]))
    with complains(StateError, "Q is a weight", "eigenvalue -3e-09 is negative"):
        _weight("Q", [2.0, -3e-9], 2)
    with complains(StateError, "eigenvalue -1e-11 is negative"):  # of the largest, however small
        _weight("Q", [1e-3, -1e-11], 2)


def test_lqr_of_a_singular_model_blames_the_joint_and_not_a_weight():
    with complains(StateError, "singular", "m2.hinge", "hinges='physical'"):
        Lqr(examples.double_pendulum().model())
    with complains(StateError, "singular", "m2.hinge"):
        Lqr(examples.double_pendulum().model(), sample_time=0.01)
    Lqr(examples.double_pendulum().model("physical"))


def test_inertias_of_joints_on_a_free_base_are_those_of_a_base_that_gives_way():
    model = examples.snake(4).model("physical", base="free")
    poses = gains._poses(model)
    expected = np.linalg.inv(np.linalg.inv(model.mass_matrix(poses))[:, 6:, 6:])
    np.testing.assert_allclose(gains._pose_inertias(model, poses), expected, rtol=1e-9)
    assert len(poses) == 32
    pid = IndependentPid(model).pid
    np.testing.assert_array_equal(pid.kp, 2 * pid.share)  # it falls: gravity is no stiffness
    np.testing.assert_array_equal(poses[0], model.neutral())


def test_a_pid_beside_gravity_has_the_slow_root_that_was_asked_for():
    """s^2 + (2 c + x) s + c^2 = 0, x the part of gravity in the damping, 16 c times inertia."""
    model = examples.snake(3).with_parameters(viscous=0.0).model("physical", gravity=(0, 9.81, 0))
    pid = IndependentPid(model, settling_time=0.8, sample_time=1e-5).pid
    c = pid.ki / pid.share
    np.testing.assert_allclose(c, c[0])
    D = pid.kd / (16 * c)
    falling, rising = gains._gravity_stiffness(model, gains._poses(model), np.diag(D))
    np.testing.assert_allclose(pid.kp, 2 * pid.share + falling * D)
    assert min(falling, rising) > 1
    x = (falling + rising) / (16 * c[0])
    slow = -np.roots([1, 2 * c[0] + x, c[0] ** 2]).max()
    assert slow == pytest.approx(-1.2 * np.log(0.02) / 0.8)


def test_slow_joints_by_themselves_are_damped_by_sixteen_times_rate_and_inertia():
    body = examples.arm("b").with_parameters(viscous=0.0)
    model = body.model("physical", gravity=(0.0, 0.0, 0.0))
    law, time = IndependentPid(model, settling_time=5.0), 5.0
    rate = -1.2 * np.log(gains.SETTLED) / time  # the integral slows the slowest error down
    damping = 16 * rate * model.mass_matrix([0.0]).item()
    found = law.pid.kp.item(), law.pid.kd.item()
    assert found == pytest.approx((2 * rate * damping, damping))
    shorter = IndependentPid(model, settling_time=5.0, sample_time=0.1).pid  # 70 % of deadbeat
    assert shorter.kd.item() == pytest.approx(0.7 * model.mass_matrix([0.0]).item() / 0.1, rel=1e-5)
    # long samples bound the damping, and the rate is a quarter of it over the inertia
    held = IndependentPid(model, settling_time=0.1, sample_time=0.5).pid
    assert held.kd.item() == pytest.approx(model.mass_matrix([0.0]).item() / 0.5, rel=1e-5)
    assert held.kp.item() / (2 * held.kd.item()) == pytest.approx(1 / (4 * 0.5), rel=1e-5)


def test_gains_of_a_body_whose_inertia_overflows_are_refused():
    """Squares of 1e158 m are beyond the largest double."""
    model = examples.snake(3).model("physical")
    placement = model.placement.copy()
    placement[-1, :3, 3] = 1e158
    far = dataclasses.replace(model, placement=placement)
    with pytest.raises(StateError, match="the mass matrix is not finite"):
        PdGravity(far)
    with pytest.raises(StateError, match="too large"):
        far.forward_dynamics(far.neutral(), np.zeros(far.nv), np.zeros(far.nv))
