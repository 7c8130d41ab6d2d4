"""Boxes in any attitude."""

import numpy as np
from scipy.optimize import linprog

from modurob.spatial import so3
from modurob.spatial.boxes import Boxes, overlaps

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
