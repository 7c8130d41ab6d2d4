"""Estimated length of a closed form before it is computed.

An entry M_ij (j beyond i) is a sum over the links k beyond j, and each of those depends on the
angles between i and k. A joint whose axis is not parallel to its neighbors' multiplies the number
of waves by up to 5 (constant, two of the angle, two of its double); r parallel joints in a row
share their angle sums and multiply it by up to 2 r^2 + 2 r + 1. Poses, and gravity seen from a
link, are linear in each rotation: there the factors are 3 and 2 r + 1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from modurob.errors import SizeError
from modurob.model import Model

READABLE = 100_000  # terms; over a thousand pages
SPREADING = frozenset(("mass", "length", "inertia"))
BASE, TURNING = 6, 9  # velocities of a free base; entries that couple its three turns
PARALLEL = 1e-9  # deviation of the cosine between two axes


def terms_of_matrix(model: Model, groups: Collection[str]) -> float:
    """About how many terms M and C have, at most; `groups` are symbols, not numbers."""
    return _spread(groups) * sum(waves * entries for _, _, waves, entries in _paths(model))


def terms_of_entry(model: Model, groups: Collection[str], row: int, column: int) -> float:
    """About how many terms the entry of two joints has, from 0 on; lower ones are the base."""
    inner, outer = max(min(row, column) + 1, 0), max(max(row, column) + 1, 0)
    beyond = _beyond(model, outer)
    found = (waves for i, k, waves, _ in _paths(model) if i == inner and k in beyond)
    return _spread(groups) * sum(found)


def terms_of_gravity(model: Model, groups: Collection[str], rows: Collection[int]) -> float:
    """About how many terms rows of N have, counted from 0."""
    poses = terms_of_poses(model)
    links = [max(row + 1, 0) for row in rows]
    return _spread(groups) * sum(poses[k] for link in links for k in _beyond(model, link))


def terms_of_poses(model: Model) -> list[float]:
    """About how many terms an entry of the pose of each link has in the world."""
    parent, slides, straight = _shape(model)
    found = [1.0]
    for k in parent:
        waves, run, i = 1.0, 0, k
        while i > 0:
            run += not slides[i]
            if not straight[i]:
                waves, run = waves * (2 * run + 1), 0
            i = parent[i]
        found.append(waves)
    return found


def _spread(groups: Collection[str]) -> int:
    """Numbers add up to one factor of a wave; symbols stay apart."""
    return 1 + len(SPREADING.intersection(groups))


def check_size(
    terms: float, limit: float, what: str, groups: Collection[str], has_entries: bool = False
) -> None:
    """Refuse a closed form that is too long to read.

    Args:
        groups: Quantities that are symbols, not numbers.
        has_entries: Whether `what` consists of entries that can be computed one by one.
    """
    if terms > limit:
        count = f"{terms:,.0f}" if terms < 1e9 else f"{terms:.0e}"
        entries = "one entry at a time (such as M[1,2]), for " if has_entries else ""
        numbers = "numbers in place of symbols (symbols none), for " if _spread(groups) > 1 else ""
        raise SizeError(
            f"{what} would have up to about {count} terms, over the limit of {limit:,.0f}: ask for "
            f"{entries}{numbers}C code (export), or use the numeric model; a higher limit allows "
            "more"
        )


def _paths(model: Model) -> Iterator[tuple[int, int, float, int]]:
    """(i, k, waves between them, entries that link k gives to row i) for links k beyond i."""
    parent, slides, straight = _shape(model)
    poses = terms_of_poses(model)
    for k in parent:
        waves, run, i, depth = 1.0, 0, k, 0
        while i > 0:
            depth += 1
            yield i, k, waves * _waves(run), depth
            run += not slides[i]
            if not straight[i]:
                waves, run = waves * _waves(run), 0
            i = parent[i]
        if model.free_base:  # only turning against turning is quadratic in the rotations
            yield 0, k, waves, TURNING
            yield 0, k, poses[k], BASE * BASE - TURNING + 2 * BASE * depth


def _shape(model: Model) -> tuple[dict[int, Any], ...]:
    """Parents of links 1 to n, whether their joints slide, and are parallel to their parents'."""
    frames = model._frames
    parallel = np.abs(np.abs(frames.rotation[:, 0, 0]) - 1) < PARALLEL
    numbers = (frames.parent, frames.prismatic, parallel & (frames.parent > 0))
    return tuple(dict(enumerate(each.tolist(), start=1)) for each in numbers)


def _waves(parallel_joints: int) -> int:
    return 2 * parallel_joints**2 + 2 * parallel_joints + 1


def _beyond(model: Model, link: int) -> set[int]:
    found = {link}
    for k, parent in enumerate(model.parent.tolist(), start=1):
        if parent in found:
            found.add(k)
    return found
