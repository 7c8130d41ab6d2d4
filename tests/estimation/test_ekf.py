"""The EKF against filters written for linear systems, differences, and statistics."""

import copy
import pickle

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import solve_discrete_are

from modurob import StateError, UnknownNameError, examples
from modurob.control import ComputedTorque, PdGravity
from modurob.control.references import Quintic
from modurob.estimation import Ekf, chi_square, consistency
from modurob.estimation.prediction import STEPS
from oracles import complains
from oracles.differences import columns

ROUNDING = 1e-12
DIFFERENCES = 1e-8  # of the largest entry
STEADY = 1e-9  # of a covariance after some hundred samples
MEISTER = {"Q": np.diag([0.1, 0.1, 0.1, 1e-4, 1e-4, 1e-4]), "R": np.eye(3), "W": np.eye(6)}


def wagon():
    """Two masses on rails, one on the other: linear, without gravity."""
    arm = examples.arm("cc").with_parameters(viscous=0.0)
    return arm.model("physical", gravity=(0, 0, 0))


# -- linear: an ordinary Kalman filter -------------------------------------------------------------


class Kalman:
    """Kalman's filter in its first form, for a chain of double integrators."""

    def __init__(self, M, dt, Q, R, x, P, euler):
        n = len(M)
        inverse = np.linalg.inv(M)
        self.A = np.block([[np.eye(n), dt * np.eye(n)], [np.zeros((n, n)), np.eye(n)]])
        self.B = np.vstack([(1.0 if euler else 0.5) * dt * dt * inverse, dt * inverse])
        self.H = np.hstack([np.eye(n), np.zeros((n, n))])
        self.Q, self.R, self.x, self.P = Q, R, x, P

    def step(self, u, y):
        self.x = self.A @ self.x + self.B @ u
        self.P = self.A @ self.P @ self.A.T + self.Q
        S = self.H @ self.P @ self.H.T + self.R
        K = self.P @ self.H.T @ np.linalg.inv(S)
        self.x = self.x + K @ (y - self.H @ self.x)
        self.P = (np.eye(len(self.x)) - K @ self.H) @ self.P


@pytest.mark.parametrize("integrator", ["rk4", "step"])
def test_on_a_linear_body_it_is_the_kalman_filter(integrator):
    model, rng, dt = wagon(), np.random.default_rng(1), 0.02
    Q, R = np.diag([1e-6, 2e-6, 3e-4, 4e-4]), np.array([[1e-3, 2e-4], [2e-4, 2e-3]])
    x0, P0 = 0.1 * rng.standard_normal(4), np.diag([0.01, 0.02, 0.03, 0.04])
    ekf = Ekf(model, dt, Q, R, q=x0[:2], v=x0[2:], P=P0, integrator=integrator)
    kalman = Kalman(model.mass_matrix(np.zeros(2)), dt, Q, R, x0, P0, integrator == "step")
    for _ in range(200):
        u, y = rng.standard_normal(2), 0.3 * rng.standard_normal(2)
        ekf.predict(u)
        ekf.correct(y)
        kalman.step(u, y)
        np.testing.assert_allclose(np.append(ekf.q, ekf.v), kalman.x, rtol=0, atol=ROUNDING)
        np.testing.assert_allclose(ekf.P, kalman.P, rtol=0, atol=ROUNDING)


def test_its_covariance_settles_at_the_solution_of_the_riccati_equation():
    model, dt, Q, R = wagon(), 0.02, np.diag([1e-6, 2e-6, 3e-4, 4e-4]), 1e-3 * np.eye(2)
    ekf = Ekf(model, dt, Q, R)
    for _ in range(600):
        ekf.correct(np.zeros(2))
        ekf.predict(np.zeros(2))
    A = np.block([[np.eye(2), dt * np.eye(2)], [np.zeros((2, 2)), np.eye(2)]])
    H = np.hstack([np.eye(2), np.zeros((2, 2))])
    np.testing.assert_allclose(ekf.P, solve_discrete_are(A.T, H.T, Q, R), rtol=0, atol=STEADY)


def test_a_spectral_density_gives_the_textbook_covariance_of_a_double_integrator():
    """White acceleration noise of density s: [[dt^3/3, dt^2/2], [dt^2/2, dt]] s."""
    model, dt, s = wagon(), 0.5, 0.7
    noise = np.diag([0, 0, s, s])
    ekf = Ekf(model, dt, noise, 1.0, P=0.0, density=True, substeps=200)
    ekf.predict(np.zeros(2))
    eye = np.eye(2)
    expected = s * np.block([[dt**3 / 3 * eye, dt**2 / 2 * eye], [dt**2 / 2 * eye, dt * eye]])
    np.testing.assert_allclose(ekf.P, expected, rtol=0, atol=1e-6)  # trapezoid of 200 substeps


def test_shaped_noise_is_the_noise_it_makes():
    model, rng = wagon(), np.random.default_rng(2)
    W, V = rng.standard_normal((4, 3)), rng.standard_normal((2, 5))
    one = Ekf(model, 0.1, Q=[1, 2, 3], R=0.5, W=W, V=V)
    two = Ekf(model, 0.1, Q=W @ np.diag([1, 2, 3]) @ W.T, R=0.5 * V @ V.T)
    for ekf in (one, two):
        ekf.predict([0.3, 0.1])
        ekf.correct([0.1, 0.2])
    np.testing.assert_allclose(one.P, two.P, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(one.q, two.q, rtol=0, atol=ROUNDING)


# -- Jacobians -------------------------------------------------------------------------------------


@pytest.mark.parametrize("integrator", STEPS)
@pytest.mark.parametrize("body", ["crab", "arm", "free"])
def test_jacobians_are_those_of_the_step(integrator, body):
    model = {
        "crab": lambda: examples.crab().model(),
        "arm": lambda: examples.arm("bac").with_parameters(viscous=0.05).model("physical"),
        "free": lambda: examples.snake(3).model("physical", base="free"),
    }[body]()
    if model.free_base and integrator == "rk4":
        pytest.skip("rk4 is for a fixed base")
    rng, h = np.random.default_rng(3), 0.02
    step = STEPS[integrator](model, h)
    q, v, tau = model.random_configuration(rng), rng.standard_normal(model.nv), np.zeros(model.nv)
    tau[-2:] = [0.1, -0.2]
    now = step(q, v, tau)
    base = Ekf(model, h, q=now.q, v=now.v)

    def moved(q, v, tau):
        if integrator == "step":
            return base.error(*model.step(q, v, tau, h))
        return base.error(*step(q, v, tau)[:2])

    def after(dx):
        return moved(model.integrate(q, dx[: model.nv]), v + dx[model.nv :], tau)

    def pushed(du):
        return moved(q, v, tau + du)

    for found, expected in (
        (now.A, columns(after, 2 * model.nv)),
        (now.B, columns(pushed, model.nv)),
    ):
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=0, atol=DIFFERENCES * scale)


def test_prediction_with_rk4_is_the_motion_and_with_the_step_nearly():
    model = examples.crab().model()
    q, v, tau = np.array([0.3, -0.2, 0.5]), np.array([1.0, -2.0, 0.5]), np.array([1.5, 0.01, 0.0])

    def rates(t, x):
        return np.concatenate([x[3:], model.forward_dynamics(x[:3], x[3:], tau)])

    exact = solve_ivp(rates, (0, 0.02), np.append(q, v), "DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    errors = {}
    for name, substeps in (("rk4", 1), ("step", 1), ("step", 10)):
        ekf = Ekf(model, 0.02, q=q, v=v, integrator=name, substeps=substeps)
        ekf.predict(tau)
        errors[name, substeps] = np.abs(np.append(ekf.q, ekf.v) - exact).max()
    assert errors["rk4", 1] < 1e-6
    assert 5 < errors["step", 1] / errors["step", 10] < 20  # first order


def test_substeps_multiply_their_jacobians():
    model = examples.crab().model()
    whole = Ekf(model, 0.04, Q=0.0, q=[0.3, -0.2, 0.5], v=[1, -2, 0.5], P=0.1, substeps=4)
    parts = Ekf(model, 0.01, Q=0.0, q=[0.3, -0.2, 0.5], v=[1, -2, 0.5], P=0.1)
    whole.predict([1.5, 0.1, 0.0])
    for _ in range(4):
        parts.predict([1.5, 0.1, 0.0])
    np.testing.assert_allclose(whole.P, parts.P, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(whole.q, parts.q, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("substeps", [1, 3])
@pytest.mark.parametrize("law", [ComputedTorque, PdGravity])
def test_prediction_through_the_closed_loop_spreads_as_the_closed_loop_does(law, substeps):
    model, dt = examples.crab().model(), 0.01
    one, goal = law(model), np.array([0.5, 0.1, -0.4])
    q, v, P = np.array([0.3, -0.2, 0.5]), np.array([1.0, -2.0, 0.5]), np.diag([1.0, 2, 3, 4, 5, 6])
    ekf = Ekf(model, dt, Q=0.0, q=q, v=v, P=P, substeps=substeps)
    step = STEPS["rk4"](model, dt / substeps)

    def closed(dx):
        x, y = q + dx[:3], v + dx[3:]
        tau = one.command(0.0, x, y, goal)
        for _ in range(substeps):
            x, y = step(x, y, tau)[:2]
        return np.append(x, y)

    A = columns(closed, 6)
    tau = ekf.predict_closed_loop(one, 0.0, goal)
    np.testing.assert_allclose(tau, one.command(0.0, q, v, goal), atol=ROUNDING)
    np.testing.assert_allclose(ekf.P, A @ P @ A.T, rtol=0, atol=DIFFERENCES * np.abs(P).max())
    open_loop = Ekf(model, dt, Q=0.0, q=q, v=v, P=P, substeps=substeps)
    open_loop.predict(tau)
    np.testing.assert_allclose(open_loop.q, ekf.q, atol=ROUNDING)
    assert np.trace(ekf.P) < np.trace(open_loop.P)  # feedback pulls states together


# -- measurements ----------------------------------------------------------------------------------


def test_any_subset_of_joints_can_be_measured():
    model = examples.crab().model()
    ekf = Ekf(
        model, 0.01, measured=["m5.hinge", "m1.hinge"], measured_rates=["m3.hinge"], R=[1, 2, 3]
    )
    q, v = np.array([0.1, 0.2, 0.3]), np.array([4.0, 5.0, 6.0])
    np.testing.assert_array_equal(ekf.measure(q, v), [0.3, 0.1, 5.0])
    np.testing.assert_array_equal(ekf.H @ np.append(q, v), [0.3, 0.1, 5.0])
    P = ekf.P
    found = ekf.correct([0.4, 0.0, 1.0])
    S = ekf.H @ P @ ekf.H.T + np.diag([1, 2, 3])
    np.testing.assert_allclose(found.S, S, atol=ROUNDING)
    assert found.nis == pytest.approx(found.residual @ np.linalg.inv(S) @ found.residual)


def test_rates_of_joints_of_a_free_body_can_be_measured():
    model = examples.snake(3).model("physical", base="free")
    first, second = model.joint_names
    ekf = Ekf(model, 0.01, measured=[second], measured_rates=[second, first])
    v = np.arange(1.0, 9.0)
    q = model.integrate(model.neutral(), 0.1 * v)
    np.testing.assert_allclose(ekf.measure(q, v), [0.8, 8.0, 7.0])
    np.testing.assert_allclose(ekf.H @ np.append(0.1 * v, v), [0.8, 8.0, 7.0])


def test_what_is_missing_is_left_out():
    model = examples.crab().model()
    whole, part = Ekf(model, 0.01), Ekf(model, 0.01, measured=["m1.hinge", "m5.hinge"])
    whole.correct([0.1, np.nan, 0.3])
    part.correct([0.1, 0.3])
    np.testing.assert_allclose(whole.P, part.P, atol=ROUNDING)
    P = whole.P
    nothing = whole.correct([np.nan] * 3)
    assert (nothing.nis, nothing.accepted) == (0.0, False)
    np.testing.assert_array_equal(whole.P, P)


def test_outliers_do_not_pass_the_gate():
    model, rng = wagon(), np.random.default_rng(4)
    gated, open_ = (Ekf(model, 0.02, R=1e-4, P=1e-4, gate=g) for g in (0.999, None))
    refused = 0
    for k in range(200):
        y = 1e-2 * rng.standard_normal(2)
        if k % 10 == 9:
            y = y + 3.0
        for ekf in (gated, open_):
            ekf.predict(np.zeros(2))
            innovation = ekf.correct(y)
            if ekf is gated:
                refused += not innovation.accepted
    assert refused == 20
    assert np.abs(gated.q).max() < 0.01
    assert np.abs(open_.q).max() > 0.05


def test_joseph_form_stays_symmetric_and_positive_with_nearly_perfect_sensors():
    model = examples.crab().model()
    ekf = Ekf(model, 1e-3, Q=1e-12, R=1e-14, P=1e4)
    for _ in range(300):
        ekf.predict(np.zeros(3))
        ekf.correct(ekf.measure(ekf.q, ekf.v))
        np.testing.assert_array_equal(ekf.P, ekf.P.T)
    assert np.linalg.eigvalsh(ekf.P).min() > 0


def test_the_crab_of_meister2013_is_estimated_in_closed_loop():
    """Its Q, R, W, V; angles only, noise of unit variance; three active joints."""
    model, dt, rng = examples.crab().model(), 0.01, np.random.default_rng(7)
    ekf = Ekf(model, dt, **MEISTER, V=np.eye(3), P=1.0)
    law, motion = ComputedTorque(model), Quintic(np.zeros(3), [0.8, -0.5, 0.6], 2.0)
    q, v, raw, filtered = np.zeros(3), np.zeros(3), [], []
    for k in range(400):
        t = k * dt
        y = q + rng.standard_normal(3)
        ekf.correct(y)
        raw.append(y - q)
        filtered.append(ekf.q - q)
        q_next = model.step(q, v, law.command(t, q, v, motion(t)), dt)
        ekf.predict_closed_loop(law, t, motion(t))
        q, v = q_next
    raw, filtered = (np.sqrt(np.mean(np.square(x[100:]))) for x in (raw, filtered))
    assert filtered < 0.6 * raw


# -- free base -------------------------------------------------------------------------------------


def test_a_free_body_is_estimated_as_far_as_its_joints_tell():
    model, rng = examples.snake(3).model("physical", base="free"), np.random.default_rng(8)
    q, v = model.neutral(), 0.2 * rng.standard_normal(model.nv)
    ekf = Ekf(model, 0.01, Q=1e-8, R=1e-6, P=1e-4, q=q, v=v)
    ekf.v = v + 0.01 * rng.standard_normal(model.nv)
    first = np.abs(ekf.error(q, v))[-2:].max()
    for _ in range(40):
        ekf.predict(np.zeros(model.nv))
        q, v = model.step(q, v, np.zeros(model.nv), 0.01)
        ekf.correct(ekf.measure(q, v) + 1e-3 * rng.standard_normal(2))
    assert abs(np.linalg.norm(ekf.q[3:7]) - 1) < 1e-12
    assert np.abs(ekf.error(q, v))[-2:].max() < max(first, 5e-3)
    assert ekf.nees(q, v) < chi_square(0.9999, 2 * model.nv)


# -- values and mistakes ---------------------------------------------------------------------------


def test_copies_are_independent():
    ekf = Ekf(examples.crab().model(), 0.01)
    for way in (copy.copy, copy.deepcopy):
        twin = way(ekf)
        twin.predict(np.ones(3))
        twin.correct(np.ones(3))
        twin.P[0, 0] = 9
        assert not ekf.q.any()
        assert ekf.P[0, 0] == 1e-2
        assert twin.model is ekf.model


def test_what_fails_changes_nothing():
    ekf = Ekf(examples.crab().model(), 0.01, q=[0.1, 0.2, 0.3], substeps=2)
    before = ekf.q.copy(), ekf.v.copy(), ekf.P.copy()
    for mistake in (lambda: ekf.predict(np.array([0, 0, np.inf])), lambda: ekf.correct([1.0])):
        with pytest.raises(StateError):
            mistake()
    for now, then in zip((ekf.q, ekf.v, ekf.P), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_an_estimate_that_somebody_has_changed_is_looked_at():
    ekf, other = (Ekf(examples.crab().model(), 0.01) for _ in range(2))
    ekf.q, other.q = [0, 1, 0], np.array([0.0, 1.0, 0.0])
    for each in (ekf, other):
        each.predict(np.zeros(3))
    np.testing.assert_array_equal(ekf.q, other.q)
    for name, wrong in (("q", np.zeros(2)), ("v", "fast"), ("v", np.full(3, np.nan))):
        broken = copy.copy(other)
        setattr(broken, name, wrong)
        with complains(StateError, name):
            broken.predict(np.zeros(3))


def test_filters_are_pickled():
    ekf = Ekf(examples.crab().model(), 0.01, gate=0.99, substeps=2)
    twin = pickle.loads(pickle.dumps(ekf))
    for each in (ekf, twin):
        each.predict(np.ones(3))
        each.correct(np.zeros(3))
    np.testing.assert_allclose(twin.P, ekf.P, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(twin.q, ekf.q, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize(
    ("make", "kind", "pieces"),
    [
        (lambda m: Ekf(examples.crab(), 0.01), StateError, ["takes a model", "Organism"]),
        (lambda m: Ekf(m, 0), StateError, ["dt"]),
        (lambda m: Ekf(m, 0.01, Q=[1, 2]), StateError, ["Q is one variance", "6", "(2,)"]),
        (lambda m: Ekf(m, 0.01, Q=-1), StateError, ["Q", "eigenvalue -1", "negative"]),
        (lambda m: Ekf(m, 0.01, P=[1, 1, 1, 1, -0.25, 1]), StateError, ["P", "eigenvalue -0.25"]),
        (lambda m: Ekf(m, 0.01, R=[[1, 2, 0], [2, 1, 0], [0, 0, 1]]), StateError,
         ["R", "eigenvalue -1"]),
        (lambda m: Ekf(m, 0.01, P=np.eye(5)), StateError, ["P is one", "(6, 6)", "(5, 5)"]),
        (lambda m: Ekf(m, 0.01, V=np.eye(2)), StateError, ["V has 3 rows", "(2, 2)"]),
        (lambda m: Ekf(m, 0.01, v=[1, 2]), StateError, ["v has shape (2,)", "nv = 3"]),
        (lambda m: Ekf(m, 0.01, R=np.triu(np.ones((3, 3)))), StateError, ["R", "symmetric"]),
        (lambda m: Ekf(m, 0.01, W=np.eye(3)), StateError, ["W has 6 rows"]),
        (lambda m: Ekf(m, 0.01, W=np.ones(6)), StateError, ["W has 6 rows", "(6,)"]),
        (lambda m: Ekf(m, 0.01).correct([0, 0, 1e300]), StateError, ["y[2] is 1e+300", "NaN"]),
        (lambda m: Ekf(m, 0.01, R=float("nan")), StateError, ["R", "finite"]),
        (lambda m: Ekf(m, 0.01, measured=["m2.hinge"]), UnknownNameError,
         ["'m2.hinge' is locked", "m1 (side 2) and m2 (side 5)", "cannot bend"]),
        (lambda m: Ekf(m, 0.01, measured_rates=["m2.hinge"]), UnknownNameError, ["locked"]),
        (lambda m: Ekf(m, 0.01, measured=["m9.hinge"]), UnknownNameError,
         ["no joint 'm9.hinge'", "m1.hinge, m3.hinge, m5.hinge"]),
        (lambda m: Ekf(m, 0.01, measured=["m1.hinge"] * 2), StateError, ["twice"]),
        (lambda m: Ekf(m, 0.01, q=np.zeros((2, 3))), StateError, ["one state"]),
        (lambda m: Ekf(m, 0.01, gate=3), StateError, ["gate"]),
        (lambda m: Ekf(m, 0.01, integrator="rk5"), UnknownNameError, ["rk5", "rk4, step"]),
        (lambda m: Ekf(m, 0.01, substeps=0), StateError, ["substeps"]),
        (lambda m: Ekf(m, 0.01).correct([1, 2]), StateError, ["y has shape (2,)", "m1.hinge"]),
        (lambda m: Ekf(m, 0.01).correct("abc"), StateError, ["y"]),
        (lambda m: Ekf(m, 0.01).correct([0, np.inf, 0]), StateError, ["y[1] is inf", "NaN"]),
        (lambda m: Ekf(m, 0.01).predict([1, 2]), StateError, ["tau has shape (2,)"]),
        (lambda m: Ekf(m, 0.01).predict(np.zeros((2, 3))), StateError, ["one state", "(2, 3)"]),
        (lambda m: Ekf(m, 0.01).predict(np.array([0, np.nan, 0])), StateError, ["tau[1] is nan"]),
        (lambda m: consistency([], 3), StateError, ["0 values"]),
    ],
)  # fmt: skip
def test_mistakes_are_named(make, kind, pieces):
    with complains(kind, *pieces):
        make(examples.crab().model())


@pytest.mark.parametrize("integrator", ["rk4", "step"])
def test_a_closed_loop_in_substeps_has_the_derivative_of_all_of_them(integrator):
    """The torque is held for the sample, whatever its parts are."""
    model = examples.crab().model()
    law = ComputedTorque(model, 9.0, 6.0, sample_time=0.05)
    q, v = np.array([0.3, -0.2, 0.4]), np.array([0.5, -1.0, 0.2])
    aim, step = np.array([0.1, 0.2, 0.3]), STEPS[integrator](model, 0.05 / 3)

    def ahead(x):
        tau = law.command(0.0, q + x[:3], v + x[3:], aim)
        now = q + x[:3], v + x[3:]
        for _ in range(3):
            now = step(*now, tau)[:2]
        return np.concatenate(now).copy()

    F, first = columns(ahead, 6, 1e-3), np.diag([1.0, 2, 3, 4, 5, 6])
    ekf = Ekf(model, 0.05, q=q, v=v, P=first, Q=0.0, integrator=integrator, substeps=3)
    ekf.predict_closed_loop(law, 0.0, aim)
    np.testing.assert_allclose(np.append(ekf.q, ekf.v), ahead(np.zeros(6)), rtol=0, atol=1e-12)
    np.testing.assert_allclose(ekf.P, F @ first @ F.T, rtol=0, atol=1e-6)
