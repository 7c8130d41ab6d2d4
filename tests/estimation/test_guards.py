"""Guards and effects of estimators that whole runs hide."""

import numpy as np
import pytest

from modurob import StateError, UnknownNameError, examples
from modurob.estimation import Ekf, chi_square, consistency, ekf_for_sensors
from modurob.estimation import ekf as ekf_module
from modurob.estimation.covariance import covariance, gained, joseph, rows_of, symmetric
from modurob.estimation.sensors import ACCELERATION, LEAST_NOISE
from oracles import complains

ROUNDING = 1e-12


def test_a_measurement_without_any_uncertainty_is_refused_in_one_line():
    ekf = Ekf(examples.crab().model(), 0.01, R=0.0, P=0.0)
    with complains(StateError, "S of the measurements is singular", "give R"):
        ekf.correct(np.zeros(3))


def test_a_gain_is_found_where_rounding_spoils_the_factors():
    """An S that is not positive definite by a rounding error, and yet can be inverted."""
    P, S = np.eye(3), np.array([[1.0, 1.0], [1.0, 1.0 - 1e-12]])
    K, nis = gained(P, S, slice(0, 2), np.array([1.0, 3.0]))
    np.testing.assert_allclose(K @ S, P[:, :2], atol=1e-3)
    assert nis == pytest.approx(np.array([1, 3]) @ np.linalg.solve(S, [1, 3]))


def test_the_covariance_after_a_measurement_is_that_of_the_information_filter():
    rng = np.random.default_rng(0)
    B = rng.standard_normal((5, 5))
    P, R, rows = B @ B.T, np.diag([0.1, 0.2]), np.array([3, 0])
    H = np.eye(5)[rows]
    K, _ = gained(P, H @ P @ H.T + R, rows, np.zeros(2))
    expected = np.linalg.inv(np.linalg.inv(P) + H.T @ np.linalg.inv(R) @ H)
    np.testing.assert_allclose(joseph(P, K, rows, R), expected, atol=1e-9)


def test_the_covariance_after_a_measurement_is_right_for_any_gain():
    rng = np.random.default_rng(1)
    B, K = rng.standard_normal((5, 5)), rng.standard_normal((5, 2))
    P, R, rows = B @ B.T, np.diag([0.1, 0.2]), np.array([3, 0])
    left = np.eye(5) - K @ np.eye(5)[rows]
    expected = left @ P @ left.T + K @ R @ K.T
    np.testing.assert_allclose(joseph(P, K, rows, R), expected, atol=1e-12)


def test_rows_in_a_row_are_a_slice():
    assert rows_of([2, 3, 4]) == slice(2, 5)
    assert rows_of([]) == slice(0, 0)
    np.testing.assert_array_equal(rows_of([4, 3]), [4, 3])


def test_the_symmetric_part_is_the_mean_with_the_transpose():
    np.testing.assert_array_equal(symmetric(np.array([[1.0, 2], [4, 5]])), [[1, 3], [3, 5]])


def test_a_covariance_may_be_negative_by_rounding_only():
    B = np.array([[1.0, 1.0], [1.0, 1.0 - 1e-11]])
    np.testing.assert_array_equal(covariance("P", B, 2), B)
    with complains(StateError, "P is a covariance", "negative"):
        covariance("P", np.diag([1.0, -1e-6]), 2)
    for negative in (np.diag([1e-6, -1e-11]), [[-1e-300]]):
        with complains(StateError, "P", "negative"):
            covariance("P", negative, len(negative))


@pytest.mark.parametrize("bad", [[[0.0, "x"]], {"a": 1}, None, [1, np.inf]])
def test_a_covariance_holds_finite_numbers(bad):
    with complains(StateError, "R must hold finite real numbers"):
        covariance("R", bad, 2)


def test_a_filter_for_sensors_assumes_what_it_says():
    model, dt = examples.crab().model(), 0.02
    ekf = ekf_for_sensors(model, dt, 0.03, q=[0.1, 0.2, 0.3], v=[1, 2, 3])
    np.testing.assert_allclose(ekf.R, 0.03**2 * np.eye(3))
    faster = (ACCELERATION * dt) ** 2
    np.testing.assert_allclose(np.diagonal(ekf.Q)[3:], faster)
    np.testing.assert_allclose(np.diagonal(ekf.Q)[:3], faster * dt**2 / 4)
    np.testing.assert_allclose(np.diagonal(ekf.P), [0.03**2] * 3 + [faster] * 3)
    np.testing.assert_array_equal([ekf.q, ekf.v], [[0.1, 0.2, 0.3], [1, 2, 3]])
    assert ekf_for_sensors(model, dt, 0.0).R[0, 0] == LEAST_NOISE**2


def test_consistency_is_two_sided():
    assert str(consistency([3.0] * 50, 3)).startswith("consistent")
    assert str(consistency([6.0] * 50, 3)).startswith("overconfident")
    assert str(consistency([1.0] * 50, 3)).startswith("too cautious")


def test_a_mean_exactly_at_a_border_is_consistent():
    _, lower, upper, _ = consistency([1.0], 3)
    for mean in (lower, upper):
        assert consistency([mean], 3).consistent
    for mean in (np.nextafter(lower, 0), np.nextafter(upper, 99)):
        assert not consistency([mean], 3).consistent


def test_one_degree_of_freedom_is_enough_to_judge():
    found = consistency([0.5, 1.5], 1)
    assert (found.mean, found.consistent) == (1.0, True)


def test_a_filter_assumes_encoders_of_half_a_degree_unless_told():
    ekf = Ekf(examples.crab().model(), 0.01)
    np.testing.assert_allclose(np.degrees(np.sqrt(np.diagonal(ekf.R))), 0.573, atol=1e-3)
    np.testing.assert_allclose(np.degrees(np.sqrt(np.diagonal(ekf.P))), 5.73, atol=1e-2)
    np.testing.assert_array_equal(np.diagonal(ekf.Q), [1e-8] * 3 + [1e-4] * 3)
    sensed = ekf_for_sensors(ekf.model, 0.01, 0.0)
    assert np.sqrt(sensed.R[0, 0]) == pytest.approx(1e-6)  # [rad] sharper than any encoder
    assert np.sqrt(sensed.Q[3, 3]) == pytest.approx(0.05)  # 5 rad/s^2 for a sample


@pytest.mark.parametrize(
    "given", [([], 3, 0.95), ([1.0], 0, 0.95), ([1.0], 3, 0.0), ([1.0], 3, 1.0)]
)
def test_consistency_needs_numbers_to_judge(given):
    with complains(StateError, "consistency needs values"):
        consistency(*given)


def test_chi_square_has_its_tabulated_quantiles():
    for probability, dof, table in ((0.95, 1, 3.841), (0.95, 6, 12.592), (0.99, 3, 11.345)):
        assert chi_square(probability, dof) == pytest.approx(table, abs=1e-3)


def test_the_gate_is_the_quantile_of_what_was_measured():
    model = examples.crab().model()
    for count in (1, 3):
        y = np.full(3, np.nan)
        edge = np.sqrt(chi_square(0.99, count) * 2 / count)  # P and R of 1 each
        for factor, accepted in ((0.999, True), (1.001, False)):
            ekf = Ekf(model, 0.01, P=1.0, R=1.0, gate=0.99)
            y[:count] = factor * edge
            assert ekf.correct(y).accepted is accepted


def test_a_measurement_exactly_at_the_gate_is_let_in(monkeypatch):
    model = examples.crab().model()
    nis = Ekf(model, 0.01).correct([0.1, 0.2, 0.3]).nis
    for quantile, accepted in ((nis, True), (np.nextafter(nis, 0), False)):
        monkeypatch.setattr(ekf_module, "chi_square", lambda *_, x=quantile: x)
        assert Ekf(model, 0.01, gate=0.9).correct([0.1, 0.2, 0.3]).accepted is accepted


def test_on_a_free_base_there_is_one_integrator():
    with complains(StateError, "on a free base the integrator is 'step'"):
        Ekf(examples.snake(2).model("physical", "free"), 0.01, integrator="rk4")
    assert Ekf(examples.snake(2).model("physical", "free"), 0.01).integrator == "step"


@pytest.mark.parametrize("bad", [0, 1, -0.1, 2.0])
def test_a_gate_is_a_probability(bad):
    with complains(StateError, "gate is a probability"):
        Ekf(examples.crab().model(), 0.01, gate=bad)


def test_an_infinite_measurement_is_named():
    ekf = Ekf(examples.crab().model(), 0.01)
    with complains(StateError, "y[1] is inf"):
        ekf.correct([0.0, np.inf, 0.0])
    assert ekf.correct([1e15, np.nan, np.nan]).accepted  # as large as a displacement may be
    with complains(StateError, "y[0] is 1e+15: give numbers up to 1e+15, NaN for what is missing"):
        ekf.correct([np.nextafter(1e15, 2e15), np.nan, np.nan])
    for wrong in ("angles", np.array(["a", "b", "c"]), np.array([1j, 0, 0])):
        with complains(StateError, "expected (3,) real numbers", "m1.hinge"):
            ekf.correct(wrong)


def test_a_joint_is_measured_once():
    with complains(StateError, "measured names a joint twice"):
        Ekf(examples.crab().model(), 0.01, measured=["m1.hinge", "m1.hinge"])
    both = Ekf(examples.crab().model(), 0.01, measured="m1.hinge", measured_rates="m1.hinge")
    assert both.measured == both.measured_rates == ("m1.hinge",)


def test_only_new_joints_can_be_known_from_docking():
    old, new = examples.snake(3).model("physical"), examples.snake(4).model("physical")
    for name in (old.joint_names[0], "nobody"):
        with complains(UnknownNameError, f"no new joint {name!r}", new.joint_names[-1]):
            Ekf(old, 0.01).rebuilt(new, known={name: 0.0})


@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf])
def test_the_spread_of_new_rates_is_positive(bad):
    old, new = examples.snake(3).model("physical"), examples.snake(4).model("physical")
    with complains(StateError, "rate_sigma must be a positive number", repr(bad)):
        Ekf(old, 0.01).rebuilt(new, rate_sigma=bad)


def test_the_error_of_a_free_base_is_a_twist_in_its_own_frame():
    model, rng = examples.snake(3).model("physical", "free"), np.random.default_rng(1)
    q, v, step = model.random_configuration(rng), *0.3 * rng.standard_normal((2, model.nv))
    ekf = Ekf(model, 0.01, q=q, v=v)
    error = ekf.error(model.integrate(q, step), v + 0.1)
    np.testing.assert_allclose(error, np.append(step, np.full(model.nv, 0.1)), atol=ROUNDING)


def test_overflow_is_not_called_singular():
    model = examples.arm("babac").model("physical")
    q = np.array([0.1, 0.2, 0.3, 0.4, 1e12])
    with complains(StateError, "the numbers are too large"):
        model.forward_dynamics(q, np.full(5, 1e160), np.zeros(5))


def test_whole_numbers_are_taken_as_well():
    model = examples.crab().model()
    whole, real = (Ekf(model, 0.01) for _ in range(2))
    for ekf, kind in ((whole, np.int64), (real, np.float64)):
        ekf.predict(np.array([1, -2, 3], dtype=kind))
        ekf.correct(np.array([0, 1, 0], dtype=kind))
        ekf.q = np.array([1, 0, 2], dtype=kind)
        ekf.predict(np.zeros(3))
    np.testing.assert_array_equal([whole.q, whole.v], [real.q, real.v])
    np.testing.assert_array_equal(whole.P, real.P)
    for wrong in (np.array(["a", "b", "c"]), np.array([1j, 0, 0]), np.array([None] * 3)):
        with complains(StateError, "tau"):
            whole.predict(wrong)
