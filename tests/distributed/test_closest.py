"""Closest point of a circle and a line: against dense searches, and where formulas break down."""

import numpy as np
import pytest

from modurob.distributed.balancing.closest import Circles, circle_of, slides, turns

ENOUGH = 1e-9  # of the scale
COUNT = 100_000
UP = np.array([0.0, 0.0, 1.0])


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def distance(circles, theta, point, direction):
    apart = circles.at(theta) - point
    return np.linalg.norm(np.cross(apart, direction), axis=-1)


def searched(circles, point, direction, lower, upper, samples=90, shrinks=11):
    """The least distance, by looking everywhere and then ever closer around the best."""
    low, high = np.broadcast_to(lower, point.shape[:-1]), np.broadcast_to(upper, point.shape[:-1])
    best, step = low, (high - low) / samples
    least = distance(circles, best, point, direction)
    for k in range(1, samples + 1):
        theta = low + k * step
        d = distance(circles, theta, point, direction)
        best, least = np.where(d < least, theta, best), np.minimum(d, least)
    for _ in range(shrinks):
        center, step = best, step / 4
        for k in range(-5, 6):
            theta = np.clip(center + k * step, low, high)
            d = distance(circles, theta, point, direction)
            best, least = np.where(d < least, theta, best), np.minimum(d, least)
    return least


def random_case(rng, count):
    """Circles and lines of all sizes; a good part of them nearly special."""

    def almost(x, share):
        zero = rng.random((count, 1)) < share
        return np.where(zero, x * 10.0 ** rng.uniform(-16, -6, (count, 1)), x)

    direction = unit(rng.standard_normal((count, 3)))
    axis = unit(direction + almost(3 * rng.standard_normal((count, 3)), 0.2))
    radius = np.exp(rng.uniform(-3, 3, (count, 1)))
    through = rng.standard_normal((count, 3))
    point = through + almost(radius * rng.standard_normal((count, 3)), 0.1)
    near = through + axis * np.sum(axis * (point - through), axis=-1, keepdims=True)
    line = near + almost(rng.standard_normal((count, 3)), 0.3)
    return circle_of(axis, through, point), line, direction


def scale(circles, line):
    """The largest of the numbers given: what is smaller than their round-off has no meaning."""
    return np.linalg.norm([circles.center, line, circles.cosine], axis=-1).max(axis=0)


@pytest.mark.parametrize("limited", [False, True])
def test_no_angle_is_better_than_the_one_found(limited):
    assert_best(COUNT // 2, limited)


@pytest.mark.parametrize("limited", [False, True])
def test_no_angle_is_better_for_a_few(limited):
    assert_best(1500, limited)


def assert_best(count, limited):
    rng = np.random.default_rng(24)
    circles, line, direction = random_case(rng, count)
    low = -rng.uniform(0, 4, count) if limited else -np.inf
    high = rng.uniform(0, 4, count) if limited else np.inf
    found = turns(circles, line, direction, low, high)
    assert np.isfinite(found).all()
    if limited:
        assert ((found >= low) & (found <= high)).all()
    else:
        assert np.abs(found).max() <= np.pi * (1 + 1e-15)
        low, high = -np.pi, np.pi
    excess = distance(circles, found, line, direction) - searched(
        circles, line, direction, low, high
    )
    assert (excess / scale(circles, line)).max() < ENOUGH


def one(axis, through, point):
    return circle_of(*(np.array([x], dtype=float) for x in (axis, through, point)))


def turn(circles, line=(0, 0, 0), **limits):
    return float(turns(circles, np.array([line], dtype=float), UP, **limits)[0])


def test_a_center_on_the_axis_stays():
    assert turn(one([0, 1, 0], [1, 0, 0], [1, 3, 0])) == 0


def test_a_center_on_the_axis_and_on_the_line_stays():
    assert turn(one([0, 1, 0], [0, 0, 0], [0, 0, 0])) == 0


def test_an_axis_on_the_line_stays():
    assert turn(one([0, 0, 1], [0, 0, 5], [1, 1, 0])) == 0


def test_about_a_parallel_axis_it_turns_towards_the_line():
    assert turn(one([0, 0, 1], [2, 0, 0], [2, 1, 0])) == pytest.approx(np.pi / 2)


def test_of_two_solutions_it_takes_the_lower_one():
    """The middle of the circle lies on the line, the axis across it: up or down are as good."""
    found = turn(one([0, 1, 0], [0, 0, 0], [1, 0, 0]))
    assert found == pytest.approx(np.pi / 2)  # about +y, +x turns to -z
    tilted = one([0, 1, 1] / np.sqrt(2), [0, 0, 0], [1, 0, 0])
    assert tilted.at(np.array([turn(tilted)]))[0, 2] < 0


def test_a_circle_seen_edge_on_meets_the_line_in_its_lower_point():
    circle = one([0, 1, 0], [0.5, 0, 0], [1.5, 0, 0])
    end = circle.at(np.array([turn(circle)]))[0]
    np.testing.assert_allclose(end, [0, 0, -np.sqrt(0.75)], atol=1e-12)


def test_the_upper_point_is_taken_where_a_limit_forbids_the_lower_one():
    circle = one([0, 1, 0], [0.5, 0, 0], [1.5, 0, 0])
    end = circle.at(np.array([turn(circle, lower=-3.0, upper=0.5)]))[0]
    np.testing.assert_allclose(end, [0, 0, np.sqrt(0.75)], atol=1e-12)


@pytest.mark.parametrize("size", [0.01, 1.0, 100.0])
def test_a_local_minimum_is_found_where_limits_forbid_the_best_turn(size):
    """Seen as an ellipse of half its width, the line inside, a fifth of the radius beside it."""
    middle, line = size * np.array([0.2, 0.2, 0.0]), np.zeros((1, 3))
    circle = one([0, np.sin(np.pi / 3), 0.5], middle, middle + size * np.eye(3)[0])
    best = turn(circle)
    low, high = best + 2.0, best + 2 * np.pi - 2.0
    found = turn(circle, lower=low, upper=high)
    assert low + 0.1 < found < high - 0.1
    least = searched(circle, line, UP, low, high)
    assert distance(circle, np.array([found]), line, UP) - least < ENOUGH * size


def test_between_limits_that_forbid_both_it_stops_at_the_better_one():
    circle = one([0, 1, 0], [0.5, 0, 0], [1.5, 0, 0])
    assert turn(circle, lower=-0.2, upper=0.5) == 0.5


def test_a_turn_the_long_way_round_is_taken_where_only_that_is_allowed():
    circle = one([0, 0, 1], [2, 0, 0], [2, 1, 0])
    assert turn(circle, lower=-5.0, upper=1.0) == pytest.approx(np.pi / 2 - 2 * np.pi)


def test_a_best_turn_at_a_limit_is_taken_and_not_the_long_way_round():
    for side in (1.0, -1.0):
        circle = one([0, 0, 1], [2, 0, 0], [2, side, 0])
        best = turn(circle)
        assert best == pytest.approx(side * np.pi / 2)
        limits = {"lower": -6.0, "upper": best} if side > 0 else {"lower": best, "upper": 6.0}
        assert turn(circle, **limits) == best


def test_a_circle_that_is_almost_a_segment_or_almost_round_is_no_trouble():
    for tilt in 10.0 ** np.arange(-17, 0):
        for axis in ([0, np.cos(tilt), np.sin(tilt)], [np.sin(tilt), 0, np.cos(tilt)]):
            circle = one(axis, [0.3, 0.1, 0], [1.3, 0.2, 0.1])
            line = np.zeros((1, 3))
            best = searched(circle, line, UP, -np.pi, np.pi)
            assert distance(circle, np.array([turn(circle)]), line, UP) - best < ENOUGH


def test_slides_bring_points_closest_too():
    rng = np.random.default_rng(3)
    direction, point, line = (rng.standard_normal((1000, 3)) for _ in range(3))
    line_direction = unit(rng.standard_normal((1000, 3)))
    found = slides(direction, point, line, line_direction, -0.7, 0.9)

    def apart(s):
        return np.linalg.norm(
            np.cross(point + s[:, None] * direction - line, line_direction), axis=-1
        )

    for s in np.linspace(-0.7, 0.9, 200):
        assert (apart(found) <= apart(np.full(1000, s)) + 1e-12).all()
    along = slides(UP[None], point[:1], line[:1], UP)
    assert along[0] == 0


def test_slides_that_move_a_point_little_are_as_much_longer():
    direction, point = np.array([[0.6, 0.3, 0.2]]), np.array([[0.4, -0.1, 0.3]])
    whole = slides(direction, point, np.zeros(3), UP)
    for share in (1e-3, 1e-8, 1e-11):
        np.testing.assert_allclose(slides(share * direction, point, np.zeros(3), UP), whole / share)


def test_what_a_slide_does_not_move_stays_and_what_it_hardly_moves_goes_as_far_as_needed():
    def slid(direction, **limits):
        return slides(np.array([direction]), np.array([[1e-3, 0, 0]]), np.zeros(3), UP, **limits)[0]

    assert slid([0.0, 0.0, 0.0]) == 0
    assert slid([0.0, 0.0, 0.0], lower=0.25) == 0.25
    assert slid([1e-7, 0.0, 1.0]) == pytest.approx(-1e4)


def test_of_two_limits_as_far_from_the_best_turn_the_nearer_one_is_taken():
    """The circle is level; the best turn, by 2.5, is half of the way between both limits."""
    circle = one([0, 0, 1], [2, 0, 0], [2 - np.cos(2.5), np.sin(2.5), 0])
    assert turn(circle) == pytest.approx(2.5)
    assert turn(circle, lower=3.5 - 2 * np.pi, upper=1.5) == 1.5
    mirrored = one([0, 0, 1], [2, 0, 0], [2 - np.cos(2.5), -np.sin(2.5), 0])
    assert turn(mirrored, lower=-1.5, upper=2 * np.pi - 3.5) == -1.5


def test_shapes_follow_the_input():
    circles = Circles(*(np.random.default_rng(0).standard_normal((3, 4, 5, 3))))
    assert turns(circles, np.zeros(3), UP).shape == (4, 5)
    axis, through, point = unit(np.random.default_rng(1).standard_normal((3, 4, 5, 3)))
    circles = circle_of(axis, through, point)
    slid = slides(axis, point, np.zeros(3), UP)
    for k in np.ndindex(4, 5):  # each by itself
        for many, alone in zip(circles, circle_of(axis[k], through[k], point[k]), strict=True):
            np.testing.assert_allclose(many[k], alone)
        assert slid[k] == pytest.approx(slides(axis[k], point[k], np.zeros(3), UP))
    angles = np.linspace(0.0, 3.0, 20).reshape(4, 5)
    apart = np.linalg.norm(circles.at(angles) - through, axis=-1)  # it stays on its sphere
    np.testing.assert_allclose(apart, np.linalg.norm(point - through, axis=-1))
