"""Numbers of step responses against the formulas of textbooks."""

import numpy as np
import pytest
from scipy.optimize import brentq

from modurob import StateError
from modurob.control import gains, step_response
from oracles import complains

TIMES = np.arange(0.0, 12.0, 1e-3)
ROUNDING = 1e-12  # NumPy sums strided arrays in another order


def second_order(damping, t, frequency=1.0):
    """Unit step response of w^2 / (s^2 + 2 d w s + w^2), underdamped."""
    root = np.sqrt(1 - damping**2)
    angle = frequency * root * t
    fade = np.exp(-damping * frequency * t)
    return 1 - fade * (np.cos(angle) + damping / root * np.sin(angle))


@pytest.mark.parametrize("damping", [0.2, 0.5, 0.7, 0.9])
def test_the_underdamped_response_has_the_numbers_of_the_textbook(damping):
    t = np.arange(0.0, 40.0, 1e-3)
    y = second_order(damping, t)
    found = step_response(t, y[:, None], [1.0])
    expected = np.exp(-np.pi * damping / np.sqrt(1 - damping**2))
    assert found.overshoot[0] == pytest.approx(expected, abs=1e-6)
    assert found.settling[0] == pytest.approx(gains.settling_factor(damping), abs=1e-4)
    rise = [
        brentq(lambda x, level=level: second_order(damping, x) - level, 0, 4)
        for level in (0.1, 0.9)
    ]
    assert found.rise[0] == pytest.approx(rise[1] - rise[0], abs=1e-5)
    assert found.steady_error[0] == pytest.approx(0.0, abs=1e-3)


def test_a_first_order_lag_rises_in_the_logarithm_of_nine():
    t = np.arange(0.0, 20.0, 1e-3)
    found = step_response(t, (3 - 3 * np.exp(-t))[:, None], [3.0])
    assert found.rise[0] == pytest.approx(np.log(9), abs=1e-5)
    assert found.settling[0] == pytest.approx(np.log(50), abs=1e-5)
    assert found.overshoot[0] == 0


def test_direction_size_and_begin_of_the_step_do_not_matter():
    y = second_order(0.4, TIMES)
    one = step_response(TIMES, y[:, None], [1.0])
    shifted = np.stack([0.3 - 0.8 * y, -2 + 0.05 * y], axis=1)
    other = step_response(TIMES + 7, shifted, [-0.5, -1.95])
    for name in ("rise", "overshoot", "settling"):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name)[[0, 0]], rtol=1e-9)


def test_a_slower_response_has_the_same_numbers_in_longer_times():
    y = 1 - np.exp(-TIMES) * np.cos(3 * TIMES)
    one, other = (step_response(k * TIMES, y[:, None], [1.0]) for k in (1, 10))
    scales = {"overshoot": 1, "steady_error": 1, "ripple": 1, "rise": 10, "settling": 10}
    for name, scale in scales.items():
        np.testing.assert_allclose(getattr(other, name), scale * getattr(one, name), rtol=1e-9)


def test_runs_of_a_batch_are_judged_one_by_one():
    dampings = np.array([[0.3, 0.5], [0.6, 0.8], [0.9, 0.45]])  # 3 runs of 2 joints
    q = np.stack([second_order(d, TIMES) for d in dampings.ravel()], axis=1).reshape(-1, 3, 2)
    goals = np.array([[1.0, 1], [2, 2], [3, -3]])
    many = step_response(TIMES, q * goals, goals)
    for k in range(3):
        one = step_response(TIMES, (q * goals)[:, k], goals[k])
        for name in ("rise", "overshoot", "settling", "steady_error", "ripple"):
            found, expected = getattr(many, name)[k], getattr(one, name)
            np.testing.assert_allclose(found, expected, rtol=ROUNDING, atol=ROUNDING)


def test_runs_of_a_batch_may_share_a_target():
    y = second_order(0.6, TIMES)
    q = np.stack([np.stack([y, 2 * y], axis=1), np.stack([1.1 * y, 1.9 * y], axis=1)], axis=1)
    shared, each = (step_response(TIMES, q, goal) for goal in ([1.0, 2.0], [[1.0, 2.0]] * 2))
    for name in ("rise", "overshoot", "settling", "steady_error", "ripple"):
        np.testing.assert_array_equal(getattr(shared, name), getattr(each, name))


def test_a_joint_without_a_step_is_judged_by_the_step_of_the_others():
    bump = 0.12 * np.exp(-TIMES) * np.sin(3 * TIMES)
    y = second_order(0.8, TIMES)
    found = step_response(TIMES, np.stack([2 * y, bump], axis=1), [2.0, 0.0])
    assert np.isnan(found.rise[1])
    assert found.overshoot[1] == pytest.approx(np.abs(bump).max() / 2)
    last = np.flatnonzero(np.abs(bump) > 0.04)[-1]
    assert found.settling[1] == pytest.approx(TIMES[last], abs=2e-3)
    still = step_response(TIMES, np.stack([2 * y, 0 * bump], axis=1), [2.0, 0.0])
    assert (still.settling[1], still.overshoot[1], still.ripple[1]) == (0, 0, 0)


def test_what_never_arrives_is_said_so():
    t = np.linspace(0, 1, 101)
    short = step_response(t, (0.5 * t)[:, None], [1.0])
    assert short.settling[0] == np.inf
    assert np.isnan(short.rise[0])
    resting = np.where(t < 0.5, 0.0, 0.95) + 0.001 * (-1) ** np.arange(101)
    off = step_response(t, resting[:, None] - 0.001, [1.0])
    assert off.settling[0] == np.inf
    assert off.steady_error[0] == pytest.approx(-0.051, abs=2e-4)
    assert off.ripple[0] == pytest.approx(0.001, rel=0.01)
    assert step_response(t, resting[:, None] - 0.001, [1.0], band=0.06).settling[0] <= 0.5


def test_the_steady_error_is_that_of_the_last_tenth_of_the_time():
    t = np.linspace(3.0, 5.0, 20001)
    found = step_response(t, np.stack([t, 10 - t], axis=1), [7.0, 1.0])
    np.testing.assert_allclose(found.steady_error, [4.9 - 7, 10 - 4.9 - 1], atol=1e-3)
    np.testing.assert_allclose(found.ripple, 0.2 / np.sqrt(12), rtol=1e-3)
    whole = step_response(np.arange(11), np.arange(11)[:, None], [20])  # its first sample counts
    assert (whole.steady_error[0], whole.ripple[0]) == (-10.5, 0.5)


def test_between_two_samples_the_response_is_a_straight_line():
    first = step_response([3.0, 4.0, 5.0], [[0.0], [1.0], [1.0]], [1.0])
    assert (first.rise[0], first.settling[0]) == pytest.approx((0.8, 0.98))
    last = step_response([3.0, 4.0, 5.0], [[0.0], [0.5], [1.0]], [1.0])
    assert (last.rise[0], last.settling[0]) == pytest.approx((1.6, 1.96))
    assert (first.overshoot[0], last.overshoot[0]) == (0, 0)


@pytest.mark.parametrize(
    ("arguments", "pieces"),
    [
        (([0], [[1]], [1]), ["two or more", "(1,)"]),
        (([0, 0], [[0], [1]], [1]), ["rising times"]),
        (([[0], [1]], [[0], [1]], [1]), ["rising times", "(2, 1)"]),
        (([0, 1], [0, 1], [1]), ["column for each joint", "(2,)"]),
        (([0, 1, 2], [[0], [1]], [1]), ["3 times", "(2, 1)"]),
        (([0, 1], [[0], [1]], [1, 2]), ["target has shape (2,)", "(1,)"]),
        (([0, 1], [[1], [2]], [1]), ["there is no step"]),
        (([0, 1], [[0], [np.nan]], [1]), ["q must hold finite"]),
    ],
)  # fmt: skip
def test_wrong_recordings_are_named(arguments, pieces):
    with complains(StateError, *pieces):
        step_response(*arguments)


def test_a_band_is_a_part_of_the_step():
    for band in (2, 1, 0):
        with complains(StateError, "band", "0.02", str(band)):
            step_response([0, 1], [[0], [1]], [1], band=band)
