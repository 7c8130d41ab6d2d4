"""Regions for the center of mass: support polygon, stability region with friction; waypoints.

At rest the forces at the contacts carry the weight: with forces in units of it,

    sum f_k = z,   sum p_k x f_k = c x z,   f_k in its friction cone

Gravity is vertical, so the height of c does not matter: its place on the ground is a linear
function of the forces, and the places that some forces allow form a convex region. Its corners come
from linear programs, one for each direction, as in Bretl and Lall (2006).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob import quintic
from modurob.checks import as_floats, is_number, not_negative
from modurob.errors import StateError

CONE_SIDES = 16  # of the pyramid inside of a friction cone
CLOSE = 1e-6  # of the region's size: distance of a corner from the line of its neighbors
MOST_CORNERS = 64
FARTHEST = 100.0  # [m] from the contacts: a region that reaches so far counts as unbounded

Goal = Callable[[float, np.ndarray], np.ndarray]
Target = ArrayLike | Callable[[float, np.ndarray], ArrayLike]


@dataclass(frozen=True, eq=False)
class Region:
    """A convex part of the ground.

    Attributes:
        corners: (k, 2) counter-clockwise; one is a point, two are a segment, none is empty. [m]
        middle: (2,) mean of the contacts: where to go when nowhere is stable. [m]
    """

    corners: np.ndarray
    middle: np.ndarray

    @property
    def feasible(self) -> bool:
        """True if there is any place where the contacts can carry the weight."""
        return len(self.corners) > 0

    def contains(self, point: ArrayLike, margin: float = 0.0) -> bool:
        """Return whether a point (2,) lies inside, at least `margin` from the border. [m]"""
        if not self.feasible:
            return False
        point = np.asarray(point, dtype=float)
        if len(self.corners) < 3:
            return bool(np.linalg.norm(self.nearest(point) - point) <= -margin)
        normals, offsets = _half_planes(self.corners)
        return bool(np.all(normals @ point <= offsets - margin))

    def margin(self, point: ArrayLike) -> float:
        """Distance of a point (2,) from the border: positive inside, negative outside. [m]"""
        point = np.asarray(point, dtype=float)
        if len(self.corners) > 2:
            normals, offsets = _half_planes(self.corners)
            inside = float((offsets - normals @ point).min())
            if inside >= 0:
                return inside
        return -float(np.linalg.norm(self.nearest(point) - point))

    def shrunk(self, margin: float) -> Region:
        """The points at least `margin` from the border; its deepest point if there are none. [m]"""
        margin = not_negative("margin", margin, "meters")
        if len(self.corners) < 3 or margin == 0:
            return self
        normals, offsets = _half_planes(self.corners)
        left = self.corners
        for normal, offset in zip(normals, offsets - margin, strict=True):
            left = _cut(left, normal, offset)
        if not len(left):
            return Region(_deepest(normals, offsets)[None], self.middle)
        # as wide as two margins: the sides of what is left lie on each other
        distinct = dict.fromkeys(map(tuple, left.tolist()))
        return Region(np.array(list(distinct)), self.middle)

    def nearest(self, points: ArrayLike, margin: float = 0.0) -> np.ndarray:
        """(..., 2) the points themselves where they are inside, else the closest ones there.

        Where no place is stable, the middle of the contacts: the best guess there is.
        """
        points = np.asarray(points, dtype=float)[..., :2]
        corners = self.shrunk(margin).corners
        if not len(corners):
            return np.broadcast_to(self.middle, points.shape)
        start, end = corners, np.roll(corners, -1, axis=0)
        along = end - start
        length = np.maximum((along**2).sum(axis=-1), np.finfo(float).tiny)
        share = ((points[..., None, :] - start) * along).sum(axis=-1) / length
        feet = start + np.clip(share, 0.0, 1.0)[..., None] * along
        apart = np.linalg.norm(points[..., None, :] - feet, axis=-1)
        best = np.take_along_axis(feet, apart.argmin(axis=-1)[..., None, None], axis=-2)[..., 0, :]
        if len(corners) < 3:
            return best
        normals, offsets = _half_planes(corners)
        inside = np.all((normals * points[..., None, :]).sum(axis=-1) <= offsets, axis=-1)
        return np.where(inside[..., None], points, best)

    def keep_inside(self, margin: float = 0.0) -> Any:
        """A target for `balance`: the nearest point that is `margin` inside. [m]"""
        inner = self.shrunk(margin)
        return lambda t, center: inner.nearest(center)


def support_polygon(contacts: ArrayLike) -> Region:
    """The convex hull of contacts (k, 3 or more) seen from above: level ground."""
    points = _checked(contacts, 3)[:, :2]
    return Region(_hull(points), points.mean(axis=0))


def stability_region(contacts: ArrayLike, sides: int = CONE_SIDES) -> Region:
    """Region of the center of mass in which the robot can rest on rough ground.

    Args:
        contacts: (k, 7) positions, unit normals out of the ground, coefficients of friction.
        sides: Of the pyramids inside of the friction cones.

    Raises:
        StateError: A row is no contact, or the region has no end (a robot clamped between walls).
    """
    contacts = _checked(contacts, 7)
    forces, place = pyramids(contacts, sides)
    middle = contacts[:, :2].mean(axis=0)
    corners = [_corner(forces, place, d) for d in np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])]
    if corners[0] is None:
        return Region(np.zeros((0, 2)), middle)
    found = np.array([c for c in corners if c is not None])
    reach = np.abs(found - middle).max()
    if reach > FARTHEST:
        raise StateError(
            f"the contacts hold a center of mass {reach:.3g} m away: they clamp the robot, and "
            "nothing limits the forces; leave out a contact or lower its friction"
        )
    return Region(_refined(found, forces, place), middle)


def _refined(found: np.ndarray, forces: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Corners until no edge can be pushed further out."""
    done: set[tuple[float, float]] = set()
    while len(found) < MOST_CORNERS:
        hull = _hull(found)
        size = max(float(np.ptp(hull, axis=0).max()), 1e-9)
        if len(hull) < 2:
            return hull
        pushed = False
        for a, b in zip(hull, np.roll(hull, -1, axis=0), strict=True):
            normal = np.array([b[1] - a[1], a[0] - b[0]]) / np.linalg.norm(b - a)
            key = tuple(np.round(normal, 9).tolist())
            if key in done:
                continue
            done.add(key)
            corner = _corner(forces, place, normal)
            if corner is not None and normal @ (corner - a) > CLOSE * size:
                found, pushed = np.vstack([found, corner]), True
        if not pushed:
            break
    return _hull(found)


def pyramids(contacts: np.ndarray, sides: int) -> tuple[np.ndarray, np.ndarray]:
    """(4, k sides) weight balance and turn about z of each edge of each pyramid; (2, k sides) c."""
    p, n, friction = contacts[:, :3], contacts[:, 3:6], contacts[:, 6]
    helper = np.where(np.abs(n[:, :1]) < 0.9, [[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]])
    t1 = np.cross(n, helper)
    t1 /= np.linalg.norm(t1, axis=-1, keepdims=True)
    t2 = np.cross(n, t1)
    angles = 2 * np.pi * np.arange(sides) / sides
    rim = np.cos(angles)[:, None, None] * t1 + np.sin(angles)[:, None, None] * t2
    f = (n + friction[:, None] * rim).reshape(-1, 3)
    moment = np.cross(np.broadcast_to(p, (sides, *p.shape)).reshape(-1, 3), f)
    return np.vstack([f.T, moment[:, 2]]), np.vstack([-moment[:, 1], moment[:, 0]])


def _corner(forces: np.ndarray, place: np.ndarray, direction: np.ndarray) -> np.ndarray | None:
    """(2,) the farthest place in a direction; None if the weight cannot be carried at all."""
    from scipy.optimize import linprog

    weight = np.array([0.0, 0.0, 1.0, 0.0])
    # a bound on the forces, in weights, keeps an endless region finite: it is noticed by its size
    bounds = (0.0, 1e4)
    result = linprog(-direction @ place, A_eq=forces, b_eq=weight, bounds=bounds, method="highs")
    return place @ result.x if result.status == 0 else None


def _checked(contacts: ArrayLike, columns: int) -> np.ndarray:
    rows = np.asarray(contacts, dtype=float)
    if rows.ndim != 2 or rows.shape[1] < columns or not np.isfinite(rows).all():
        raise StateError(f"contacts are rows of {columns} finite numbers, got shape {rows.shape}")
    if not len(rows):
        raise StateError("no module is in contact with the ground, so nothing can carry the weight")
    if columns == 7:
        length = np.linalg.norm(rows[:, 3:6], axis=-1)
        if np.abs(length - 1).max() > 1e-6:
            raise StateError(f"normals of contacts have length 1, got {length.tolist()}")
        if not all(is_number(x) and x >= 0 for x in rows[:, 6].tolist()):
            raise StateError(
                f"coefficients of friction are not negative, got {rows[:, 6].tolist()}"
            )
    return rows


def goal_of(target: Target) -> Goal:
    """Goal for the center, as a function of the time and of the center."""
    if callable(target):
        ask = target
        return lambda t, center: np.asarray(ask(t, center), dtype=float)
    point = as_floats(target)
    if point.shape != (2,) or not np.isfinite(point).all():
        raise StateError(f"target is a point (x, y) of the ground or a function, got {target!r}")
    return lambda t, center: np.broadcast_to(point, (*center.shape[:-1], 2))


def waypoints(times: Sequence[float], places: ArrayLike) -> Goal:
    """A target for `balance` that goes from place to place, at rest in each.

    Args:
        times: Of arrival at each place; increasing. [s]
        places: (k, 2) on the ground. [m]
    """
    when, where = np.asarray(times, dtype=float), np.asarray(places, dtype=float)
    if when.ndim != 1 or where.shape != (len(when), 2) or not len(when):
        raise StateError(f"k times need (k, 2) places, got {when.shape} and {where.shape}")
    if not (np.isfinite(when).all() and np.isfinite(where).all() and (np.diff(when) > 0).all()):
        raise StateError("times must increase, and all numbers must be finite")
    steps = np.arange(len(when))

    def target(t: float, center: np.ndarray) -> np.ndarray:
        k, s = divmod(float(np.interp(t, when, steps)), 1.0)
        share = k + quintic.blend(np.asarray(s), 1.0).x
        here = [np.interp(share, steps, where[:, i]) for i in range(2)]
        return np.broadcast_to(here, (*center.shape[:-1], 2))

    return target


def _hull(points: np.ndarray) -> np.ndarray:
    """(k, 2) corners of the convex hull, counter-clockwise; points on its edges are left out."""
    from scipy.spatial import ConvexHull, QhullError

    ordered = np.unique(np.round(points, 12), axis=0)
    if len(ordered) < 3:
        return ordered
    try:
        return ordered[ConvexHull(ordered).vertices]
    except QhullError:  # they lie on a line, in order
        return ordered[[0, -1]]


def _half_planes(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Outward unit normals (k, 2) of the edges, and offsets (k,): inside is n x <= offset."""
    along = np.roll(corners, -1, axis=0) - corners
    normals = np.stack([along[:, 1], -along[:, 0]], axis=-1)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    return normals, (normals * corners).sum(axis=-1)


def _cut(corners: np.ndarray, normal: np.ndarray, offset: float) -> np.ndarray:
    """The part of a polygon on the inner side of a line."""
    kept: list[np.ndarray] = []
    depth = corners @ normal - offset
    for k, (a, b) in enumerate(zip(corners, np.roll(corners, -1, axis=0), strict=True)):
        da, db = depth[k], depth[(k + 1) % len(corners)]
        if da <= 0:
            kept.append(a)
        if da * db < 0:
            kept.append(a + (b - a) * da / (da - db))
    return np.array(kept).reshape(-1, 2)


def _deepest(normals: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """(2,) the point farthest from the border."""
    from scipy.optimize import linprog

    A = np.column_stack([normals, np.ones(len(normals))])
    result = linprog([0, 0, -1], A_ub=A, b_ub=offsets, bounds=[(None, None)] * 3, method="highs")
    return result.x[:2]
