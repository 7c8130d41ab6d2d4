"""Boxes in any attitude."""

import numpy as np
from scipy.optimize import linprog

from modurob.spatial import se3, so3
from modurob.spatial.boxes import Boxes, box_widths, overlaps

NEAR = 1e-3  # [m] closer to contact than this, either answer is right


def pair(rng):
    """Two boxes whose distance is about that of their sizes; some flat, some parallel."""
    turns = [so3.exp(rng.uniform(-3, 3, 3)), so3.exp(rng.uniform(-3, 3, 3) * rng.choice([0, 1]))]
    half = rng.uniform(0.1, 1.0, (2, 3)) * rng.choice([0.05, 1.0], (2, 3))
    place = rng.uniform(-0.6, 0.6, (2, 3))
    return Boxes(np.array(turns), place, half)


def grown(a, b, more):
    """Return whether the second box, grown by `more`, has a point in common with the first."""
    # A point x of the first and y of the second, in their own frames, at one place in the world.
    equal = np.hstack([a.rotation, -b.rotation])
    bounds = [(-h, h) for h in [*a.half, *np.maximum(b.half + more, 0)]]
    found = linprog(np.zeros(6), A_eq=equal, b_eq=b.center - a.center, bounds=bounds)
    return found.status == 0


def test_boxes_overlap_where_they_have_a_point_in_common():
    rng, seen = np.random.default_rng(0), []
    for _ in range(120):
        both = pair(rng)
        a, b = (Boxes(*(part[k] for part in both)) for k in (0, 1))
        found = overlaps(a, b)
        assert overlaps(b, a) == found
        if grown(a, b, -NEAR) == grown(a, b, NEAR):
            assert found == grown(a, b, 0.0)
            seen.append(bool(found))
    assert 20 < sum(seen) < len(seen) - 20


def test_boxes_that_touch_overlap_and_a_gap_of_a_nanometer_keeps_them_apart():
    half, place = np.array([0.25, 0.5, 1.0]), np.array([1.0, -2.0, 0.5])
    here = Boxes(np.eye(3), place, half)
    upright = np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]])  # x down, z along x
    for R, reach in ((np.eye(3), 2 * half), (upright, half + half[::-1])):
        for axis in range(3):
            for away, touches in ((0.0, True), (1e-9, False)):
                there = Boxes(R, place + (reach[axis] + away) * np.eye(3)[axis], half)
                assert overlaps(here, there) == overlaps(there, here) == touches


def test_edges_across_each_other_touch_at_the_sum_of_their_heights():
    """Two rods, each turned about its length: only the product of their axes separates them."""
    a_half, b_half, slope = np.array([2, 0.1, 0.2]), np.array([0.3, 3, 0.15]), 0.6
    a_turned, b_turned = so3.rotation([1, 0, 0], slope), so3.rotation([0, 1, 0], slope)
    height = (0.1 + 0.3) * np.sin(slope) + (0.2 + 0.15) * np.cos(slope)
    middle = np.array([-0.4, 1.1, 0.9])
    cycles = [[0, 1, 2], [1, 2, 0], [2, 0, 1]]  # names of the axes
    for i, j in ((i, j) for i in cycles for j in cycles):
        a = Boxes(a_turned[:, i], middle, a_half[i])
        for side in (-1, 1):
            for away, touches in ((-1e-9, True), (1e-9, False)):
                place = np.array([0.5, -0.7, side * (height + away)])
                b = Boxes(b_turned[:, j], middle + place, b_half[j])
                assert overlaps(a, b) == overlaps(b, a) == touches


def test_many_boxes_are_compared_at_once_as_one_by_one():
    rng = np.random.default_rng(1)
    some = [pair(rng) for _ in range(12)]
    a, b = (Boxes(*(np.stack([two[part][k] for two in some]) for part in range(3))) for k in (0, 1))
    found = overlaps(a, b)
    single = [[Boxes(*(x[i] for x in each)) for each in (a, b)] for i in range(12)]
    assert found.tolist() == [bool(overlaps(*both)) for both in single]
    first = overlaps(single[0][0], b)  # one with many
    assert first.tolist() == [bool(overlaps(single[0][0], two)) for _, two in single]


def test_boxes_move_with_their_body():
    rng = np.random.default_rng(2)
    boxes = Boxes(so3.exp(rng.normal(size=(2, 3))), rng.normal(size=(2, 3)), rng.random((2, 3)))
    T = se3.exp(rng.normal(size=6))
    moved = boxes.moved(T)
    for k in range(2):
        placed = T @ se3.pose(boxes.rotation[k], boxes.center[k])
        np.testing.assert_allclose(se3.pose(moved.rotation[k], moved.center[k]), placed, atol=1e-14)
    np.testing.assert_array_equal(moved.half, boxes.half)


def test_the_box_around_a_shape_has_its_widths():
    """Sizes as in a datasheet: widths; radius; radius and length along z."""
    assert box_widths("box", (0.1, 0.2, 0.3)) == (0.1, 0.2, 0.3)
    assert box_widths("sphere", (0.3,)) == (0.6, 0.6, 0.6)
    assert box_widths("cylinder", (0.3, 0.8)) == (0.6, 0.6, 0.8)
