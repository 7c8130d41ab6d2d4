"""Closed loops against linear differential equations that know nothing of robots."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from modurob import StateError, UnknownNameError, examples, simulate
from modurob.control import ComputedTorque, IndependentPid, PdGravity, PidLinearized, PolePlacement
from modurob.control.references import Quintic, Recorded, SetPoint
from modurob.estimation import Ekf
from modurob.sim import SimulationError
from oracles import complains

TIGHT = 1e-11  # tolerance of the plant's integration
AGREED = 1e-8  # [rad, m] of a second of it: some hundred steps, gains of 50
SAMPLED = 5e-3  # of unit steps: a PID at 1 ms holds its torque, the linear equation does not
ROUNDING = 1e-12
THESIS = {"kp": 10.0, "ki": 1.0, "kd": 4.0}


def pendulum():
    return examples.double_pendulum().model("physical")


def arm():
    return examples.arm("babac").model("physical")


def moved(model, law, reference, q0, v0, times, method="DOP853", tight=TIGHT):
    """States of the plant at times, integrated by SciPy."""

    def rates(t, x):
        q, v = x[: model.nv].copy(), x[model.nv :].copy()
        return np.concatenate([v, model.forward_dynamics(q, v, law.command(t, q, v, reference(t)))])

    x0 = np.concatenate([q0, v0])
    found = solve_ivp(rates, (0, times[-1]), x0, method, times, rtol=tight, atol=tight)
    return found.y.T


def linear_error(k0, k1, e0, times):
    """(e, e') of e'' + K1 e' + K0 e = 0."""
    n = len(k0)
    A = np.block([[np.zeros((n, n)), np.eye(n)], [-k0, -k1]])
    return np.array([expm(A * t) @ e0 for t in times])


MATRIX = np.array([[40.0, 3.0, 0, 0, 1], [-2, 50, 0, 0, 0], [0, 0, 30, 5, 0], [0, 0, 1, 60, 0],
                   [0, 0, 0, 0, 45]])  # fmt: skip


@pytest.mark.parametrize("kind", ["same", "each", "matrices"])
def test_computed_torque_turns_the_arm_into_its_linear_error_equation(kind):
    model, n = arm(), 5
    k0, k1 = {
        "same": (50.0, 15.0),
        "each": (np.linspace(20, 60, n), np.linspace(9, 17, n)),
        "matrices": (MATRIX, 15 * np.eye(n) + 0.1 * MATRIX),
    }[kind]
    law = ComputedTorque(model, k0=k0, k1=k1)
    reference = Quintic(np.zeros(n), [0.2, 0.4, 0.6, 0.8, 0.1], 1.0)
    rng = np.random.default_rng(1)
    e0 = np.concatenate([0.3 * rng.standard_normal(n), 0.5 * rng.standard_normal(n)])
    times = np.linspace(0, 1, 11)
    states = moved(model, law, reference, e0[:n], e0[n:], times)
    errors = states - [np.concatenate(reference(t)[:2]) for t in times]
    full = [k * np.eye(n) if np.ndim(k) == 0 else np.diag(k) if np.ndim(k) == 1 else k
            for k in (k0, k1)]  # fmt: skip
    np.testing.assert_allclose(errors, linear_error(*full, e0, times), rtol=0, atol=AGREED)
    assert np.abs(errors[0]).max() > 0.1


def test_pole_placement_gives_the_thesis_gains_and_its_poles():
    law = PolePlacement(pendulum(), poles=[[-2, -3], [-5, -10]])
    np.testing.assert_allclose(law.k0, [6, 50], rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(law.k1, [5, 15], rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(np.sort(law.poles, axis=1), [[-3, -2], [-10, -5]], atol=ROUNDING)


def test_pole_placement_decays_with_the_poles_of_each_joint():
    model, times = pendulum(), np.linspace(0, 2, 9)
    law = PolePlacement(model, poles=[[-2, -3], [-5, -10]])
    states = moved(model, law, SetPoint([0, 0]), [1.0, -0.7], [0, 0], times)
    for k, (p, r, e0) in enumerate([(-2, -3, 1.0), (-5, -10, -0.7)]):
        expected = e0 * (r * np.exp(p * times) - p * np.exp(r * times)) / (r - p)
        np.testing.assert_allclose(states[:, k], expected, rtol=0, atol=AGREED)


def test_a_conjugate_pair_of_poles_swings():
    law = PolePlacement(pendulum(), poles=[-2 + 3j, -2 - 3j])
    np.testing.assert_allclose((law.k0, law.k1), [[13, 13], [4, 4]], atol=ROUNDING)


def measured_poles(e, spacing):
    """(2,) of one joint from its positions alone: e[k + 2] = (z1 + z2) e[k + 1] - z1 z2 e[k]."""
    a, b = np.linalg.lstsq(np.stack([e[1:-1], e[:-2]], axis=1), e[2:], rcond=None)[0]
    return np.sort_complex(np.log(np.roots([1, -a, -b]).astype(complex)) / spacing)


@pytest.mark.parametrize(
    ("body", "poles"),
    [
        ("pendulum", [[-2, -3], [-5, -10]]),
        ("pendulum", [[-2 + 3j, -2 - 3j], [-4, -9]]),
        ("arm", [[-2, -3], [-4, -6], [-3 + 2j, -3 - 2j], [-5, -10], [-6, -7]]),
    ],
)
def test_poles_measured_from_the_response_are_those_requested(body, poles):
    model = pendulum() if body == "pendulum" else arm()
    n, times = model.nv, np.linspace(0, 1.2, 25)
    law = PolePlacement(model, poles=poles)
    states = moved(model, law, SetPoint(np.zeros(n)), 0.3 * np.ones(n), np.zeros(n), times)
    for k in range(n):
        found = measured_poles(states[:, k], times[1])
        np.testing.assert_allclose(found, np.sort_complex(poles[k]), rtol=0.01)


def continuous_pid(law, goal, times):
    """The law itself in continuous time: its integral is part of what is integrated.

    Asked again and again for one time it integrates nothing by itself.
    """
    model, n = law.model, len(goal)

    def rates(t, x):
        q, v = x[:n].copy(), x[n : 2 * n].copy()
        law.pid.integral = law.pid.ki * x[2 * n :]
        a = model.forward_dynamics(q, v, law.command(0.0, q, v, goal))
        return np.concatenate([v, a, goal - q])

    return solve_ivp(rates, (0, times[-1]), np.zeros(3 * n), "DOP853", times, rtol=TIGHT,
                     atol=TIGHT).y[:n].T  # fmt: skip


@pytest.mark.parametrize("goal", [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
def test_unit_steps_of_the_thesis_pid_do_not_couple(goal):
    times, goal = np.linspace(0, 10, 41), np.array(goal)
    found = continuous_pid(PidLinearized(pendulum(), **THESIS, sample_time=1e-9), goal, times)
    A = np.array([[0, 1, 0], [-10, -4, -1], [1, 0, 0.0]])  # (e, e', int e), e = 1 - q
    alone = np.array([1 - (expm(A * t) @ [1.0, 0, 0])[0] for t in times])
    np.testing.assert_allclose(found, np.outer(alone, goal), rtol=0, atol=AGREED)


def test_without_the_model_the_same_pid_couples():
    times = np.linspace(0, 3, 13)
    law = IndependentPid(pendulum(), kp=100.0, ki=10.0, kd=40.0)
    found = continuous_pid(law, np.array([1.0, 0.0]), times)
    assert np.abs(found[:, 1]).max() > 1e-2


def sampled(model, law, reference, q, v, duration, dt):
    """Plant under a sampled law: RK4 between samples."""
    rows = []
    for k in range(round(duration / dt)):
        t = k * dt
        rows.append(np.concatenate([q, v]))
        tau = law.command(t, q, v, reference(t))
        k1 = model.forward_dynamics(q, v, tau)
        k2 = model.forward_dynamics(q + dt / 2 * v, v + dt / 2 * k1, tau)
        k3 = model.forward_dynamics(q + dt / 2 * (v + dt / 2 * k1), v + dt / 2 * k2, tau)
        k4 = model.forward_dynamics(q + dt * (v + dt / 2 * k2), v + dt * k3, tau)
        q = q + dt * v + dt * dt / 6 * (k1 + k2 + k3)
        v = v + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return np.array(rows)


def test_the_thesis_pid_follows_its_third_order_equation_for_unit_steps():
    model = pendulum()
    law = PidLinearized(model, **THESIS)
    states = sampled(model, law, SetPoint([1, 1]), np.zeros(2), np.zeros(2), 3.0, 1e-3)
    A = np.array([[0, 1, 0], [-10, -4, -1], [1, 0, 0.0]])  # (e, e', int e), e = q_d - q
    step, x, expected = expm(A * 1e-3), np.array([1.0, 0, 0]), []
    for _ in range(len(states)):
        expected.append(1 - x[0])
        x = step @ x
    np.testing.assert_allclose(
        states[:, :2], np.array([expected, expected]).T, rtol=0, atol=SAMPLED
    )


def test_sampled_pid_comes_closer_to_its_equation_with_the_sample_time():
    model, ends = pendulum(), []
    for dt in (4e-3, 2e-3, 1e-3):
        law = PidLinearized(model, **THESIS, sample_time=dt)
        states = sampled(model, law, SetPoint([1, 1]), np.zeros(2), np.zeros(2), 0.8 + dt, dt)
        ends.append(states[-1][:2])
    steps = np.abs(np.diff(ends, axis=0)).max(axis=1)
    assert steps[1] < 0.7 * steps[0]


def test_the_integral_removes_what_a_wrong_model_leaves():
    """A load that the controller does not know: PD type laws stay away from the set point."""
    true = examples.double_pendulum(m2=1.3).model("physical")
    goal, z = np.array([0.8, 0.4]), np.zeros(2)
    with_integral = PidLinearized(pendulum(), settling_time=1.0)
    without = ComputedTorque(pendulum(), settling_time=1.0, sample_time=1e-3)
    errors = [
        np.abs(sampled(true, law, SetPoint(goal), z, z, 5.0, 1e-3)[-1][:2] - goal).max()
        for law in (with_integral, without)
    ]
    assert errors[0] < 1e-4
    assert errors[1] > 1e-2


def test_anti_windup_shortens_the_overshoot_at_the_limit():
    model, z, goal = pendulum(), np.zeros(2), np.array([0.5, 0.0])

    def overshoot(law):
        states = sampled(model, law, SetPoint(goal), z, z, 4.0, 2e-3)
        return states[:, 0].max() - goal[0]

    options = {"kp": [60, 60], "ki": [150, 150], "kd": [12, 12], "sample_time": 2e-3}
    limit = 1.05 * np.abs(model.gravity_torque([0.5, 0.0])) + 0.5
    careful = PidLinearized(model, **options, torque_limit=limit)
    careless = PidLinearized(model, **options, torque_limit=limit)
    careless.pid.hold = lambda saturated: None
    assert overshoot(careful) < 0.5 * overshoot(careless)


def test_a_saturated_integral_stands_still_and_comes_back_at_once():
    model = examples.crane().model("physical")
    law = IndependentPid(
        model, kp=1.0, ki=10.0, kd=0.0, passive=["m1.hinge"], torque_limit=2.0, sample_time=0.1
    )
    far, z = np.array([5.0, 0.0]), np.zeros(2)
    for k in range(50):
        law.command(0.1 * k, z, z, far)
    assert law.pid.integral[0] < 3.0 + 5.0  # one step of 0.1 * 10 * 5 at most
    assert law.command(5.0, np.array([6.0, 0.0]), z, far)[0] < 2.0


def test_the_integral_has_a_limit_of_its_own():
    model = examples.crane().model("physical")
    law = IndependentPid(
        model, kp=1.0, ki=10.0, kd=0.0, passive=["m1.hinge"], integral_limit=0.7, sample_time=0.1
    )
    z = np.zeros(2)
    for k in range(20):
        law.command(0.1 * k, z, z, np.array([5.0, 0.0]))
    assert law.pid.integral[0] == 0.7


def test_the_derivative_filter_is_a_first_order_lag():
    model = examples.crane().model("physical")
    law = IndependentPid(model, kp=0.0, ki=0.0, kd=1.0, filter_time=0.05, sample_time=1e-4)
    z, v, out = np.zeros(2), np.array([-1.0, 0.0]), []
    law.command(0.0, z, z, z)
    for k in range(1, 2001):
        out.append(law.command(k * 1e-4, z, v, z)[0])
    expected = 1 - np.exp(-np.arange(1, 2001) * 1e-4 / 0.05)
    np.testing.assert_allclose(out, expected, rtol=0, atol=2e-3)  # implicit Euler of 500 a constant


def test_asked_twice_for_one_time_a_pid_integrates_once():
    law, z = PidLinearized(pendulum(), **THESIS), np.zeros(2)
    law.command(0.0, z, z, np.ones(2))
    one = law.command(0.1, z, z, np.ones(2))
    np.testing.assert_array_equal(law.command(0.1, z, z, np.ones(2)), one)
    np.testing.assert_allclose(law.record()["integral"], [0.1, 0.1], atol=ROUNDING)
    law.reset(0.0, z, z)
    assert not law.record()["integral"].any()


def test_partial_linearisation_keeps_the_wagon_on_its_equation_while_the_load_swings():
    model, times = examples.crane().model("physical"), np.linspace(0, 2, 5)
    law = ComputedTorque(model, k0=6.0, k1=5.0, passive=["m1.hinge"])
    states = moved(model, law, SetPoint([0, 0]), [1.0, 0.6], [0, 0], times)
    expected = 3 * np.exp(-2 * times) - 2 * np.exp(-3 * times)
    np.testing.assert_allclose(states[:, 0], expected, rtol=0, atol=AGREED)
    assert np.abs(states[1:, 1] - 0.6).max() > 0.1


def test_a_free_body_bends_its_joints_as_told_and_keeps_its_momentum():
    model = examples.snake(3).model("physical", base="free", gravity=(0, 0, 0))
    law = ComputedTorque(model, k0=6.0, k1=5.0)
    q, v, dt = model.neutral(), np.zeros(model.nv), 1e-3
    q[7:] = 0.5
    for k in range(1000):
        a = model.forward_dynamics(q, v, law.command(k * dt, q, v, np.zeros(2)))
        if k == 0:
            np.testing.assert_allclose(a[6:], -6.0 * 0.5, atol=1e-9)
        v = v + dt * a
        q = model.integrate(q, dt * v)
    expected = 0.5 * (3 * np.exp(-2) - 2 * np.exp(-3))
    np.testing.assert_allclose(q[7:], expected, rtol=0, atol=2e-3)  # Euler at 1 ms
    assert np.abs(model.momentum(q, v)).max() < 1e-3


def test_computed_torque_beats_pd_with_gravity_on_a_motion():
    """giusti2015: the arm b-a-b-a-c on its quintic motion."""
    model = arm()
    reference = Quintic(np.zeros(5), [0.2, 0.4, 0.6, 0.8, 0.1], 1.0)
    times, worst = np.linspace(0, 1, 21), {}
    for law in (ComputedTorque(model, 250, 30), PdGravity(model, 250, 30)):
        rest = np.zeros(5)  # kd / inertia is 10^4 1/s at the wrist: stiff
        states = moved(model, law, reference, rest, rest, times, "LSODA", 1e-8)
        errors = states[:, :5] - [reference(t).q for t in times]
        worst[law.name] = np.linalg.norm(errors, axis=1).max()
    assert worst["computed torque"] < 1e-6
    assert worst["PD with gravity compensation"] > 1e-3


def test_energy_falls_along_the_motion_of_pd_with_gravity():
    model = examples.crab().model()
    law, goal = (
        PdGravity(model, kp=[3.0, 0.2, 0.2], kd=[0.1, 0.01, 0.01]),
        np.array([0.5, -0.4, 0.3]),
    )
    times = np.linspace(0, 3, 61)
    states = moved(model, law, SetPoint(goal), [-0.5, 0.8, 0.2], [2.0, -3.0, 4.0], times)
    values = [law.lyapunov(x[:3], x[3:], goal) for x in states]
    V, rate = np.array(values).T
    assert np.all(np.diff(V) < 0)
    assert np.all(rate <= 0)
    # its rate is that of the motion: the change of V is the integral of dV/dt
    fine = np.linspace(0, 0.3, 301)
    near = moved(model, law, SetPoint(goal), [-0.5, 0.8, 0.2], [2.0, -3.0, 4.0], fine)
    V, rate = np.array([law.lyapunov(x[:3], x[3:], goal) for x in near]).T
    total = np.sum((rate[:-2:2] + 4 * rate[1:-1:2] + rate[2::2]) / 3 * 1e-3)
    assert V[-1] - V[0] == pytest.approx(total, rel=1e-6)


@pytest.mark.parametrize(
    ("make", "pieces"),
    [
        (lambda m: ComputedTorque(m, k0=1.0), ["k0 and k1"]),
        (lambda m: ComputedTorque(m, 1, 1, settling_time=1), ["k0 and k1, or settling_time"]),
        (lambda m: ComputedTorque(m, [1, 2, 3], 1), ["k0", "2 joints", "(3,)"]),
        (lambda m: ComputedTorque(m, "much", 1), ["k0", "numbers"]),
        (lambda m: ComputedTorque(m, 1, np.eye(3)), ["k1", "(2, 2) matrix", "shape (3, 3)"]),
        (lambda m: ComputedTorque(m, -1, 2), ["k0 must be positive, got -1"]),
        (lambda m: ComputedTorque(m, 1, 0), ["k1 must be positive, got 0"]),
        (lambda m: ComputedTorque(m, [1, 0], 1), ["k0 must be positive", "[1, 0]"]),
        (lambda m: PdGravity(m, 1, -0.5), ["kd must be positive", "-0.5"]),
        (lambda m: IndependentPid(m, 1, -1, 1), ["ki must be at least 0"]),
        (lambda m: PolePlacement(m, poles=[0, -1]), ["left of the imaginary axis"]),
        (lambda m: PolePlacement(m, poles=[[-1, -2], [-1 + 1j, -1 + 1j]]), ["conjugate"]),
        (lambda m: PidLinearized(m, kp=1.0), ["kp, ki and kd"]),
        (lambda m: PidLinearized(m, sample_time=None), ["sample_time"]),
        (lambda m: PidLinearized(m, filter_time=-1), ["filter_time"]),
        (lambda m: PidLinearized(m, -1, 0, 0), ["kp must be at least 0"]),
        (lambda m: PolePlacement(m, poles=[-1]), ["shape (1,)"]),
        (lambda m: PolePlacement(m, poles=[-1, 2]), ["left of the imaginary axis"]),
        (lambda m: PolePlacement(m, poles=[-1 + 1j, -2]), ["conjugate"]),
        (lambda m: PolePlacement(m, poles=[-1, -2], settling_time=1), ["not both"]),
        (lambda m: PdGravity(m, settling_time=0), ["settling_time must be a positive"]),
        (lambda m: PdGravity(m, damping=float("nan")), ["damping"]),
    ],
)  # fmt: skip
def test_wrong_gains_are_named(make, pieces):
    with complains(StateError, *pieces):
        make(pendulum())


@pytest.mark.parametrize(
    "poles",
    [
        ["-1", "-2"],
        "-1",
        [None, -1],
        [np.nan, -1],
        [-1, -np.inf],
        [complex(-1, np.nan), -1],
        [[-1, -2], [-3]],
        np.array([-1, "-2"], dtype=object),
        {-1, -2},
        [-1, [-2]],
    ],
)
def test_poles_that_are_not_numbers_are_refused_in_one_line(poles):
    with complains(StateError, "poles must hold finite numbers"):
        PolePlacement(pendulum(), poles=poles)


def test_poles_may_be_any_sequence_of_numbers():
    expected = PolePlacement(pendulum(), poles=[-2, -3]).k0
    for poles in ((-2, -3), np.array([-2.0, -3.0]), [Fraction(-2), -3], [-2 + 0j, -3]):
        np.testing.assert_array_equal(PolePlacement(pendulum(), poles=poles).k0, expected)
    with complains(StateError, "finite real numbers"):
        ComputedTorque(pendulum(), [True, True], 1.0)


def test_a_reference_of_the_wrong_size_is_named_before_anything_moves():
    for wrong in (np.zeros(3), SetPoint([1.0, 2.0, 3.0])):
        with complains(StateError, "reference.q has shape (3,), expected (2,)", "m0.hinge"):
            simulate(pendulum(), None, None, 1.0, ComputedTorque(pendulum()), reference=wrong)


def test_a_recorded_reference_that_ends_before_the_simulation_is_named():
    t = np.linspace(0, 0.5, 51)
    q = np.stack([0.1 * np.sin(t), 0.2 * t], axis=1)
    law = ComputedTorque(pendulum(), sample_time=0.01)
    with complains(SimulationError, "lasts from 0 to 0.5 s", "got t = 0.51 s", "hold=True"):
        simulate(pendulum(), None, None, 0.8, law, "RK4", dt=0.01, reference=Recorded(t, q))
    whole = simulate(pendulum(), None, None, 0.5, law, "RK4", dt=0.01, reference=Recorded(t, q))
    assert whole.t[-1] == 0.5
    held = Recorded(t, q, hold=True)
    longer = simulate(pendulum(), None, None, 3.0, law, "RK4", dt=0.01, reference=held)
    np.testing.assert_allclose(longer.q[-1], q[-1], rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("joint", "pieces"),
    [("m2.hinge", ["'m2.hinge' is locked", "DS dyad"]), ("m7.hinge", ["no joint", "m1.hinge"])],
)
def test_measuring_a_locked_or_unknown_joint_is_named(joint, pieces):
    with complains(UnknownNameError, *pieces):
        Ekf(examples.crab().model(), 0.01, measured=["m1.hinge", joint])


def test_many_wrong_gains_are_refused_in_one_line():
    model = examples.snake(9).model("physical")
    kp = np.full(len(model.joint_names), 1.23456789e17)
    kp[-1] = 0.0
    with pytest.raises(StateError, match="kp must be positive") as caught:
        PdGravity(model, kp=kp, kd=1.0)
    assert "\n" not in str(caught.value)
