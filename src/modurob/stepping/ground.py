"""Ground under a body: its surface, and the corners of the body that can touch it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import as_floats, not_negative, positive
from modurob.errors import StateError
from modurob.model import Model
from modurob.model.shapes import placed_shapes
from modurob.organism import Organism

CORNERS = np.array(list(product((-0.5, 0.5), repeat=3)))
STEEPEST = 100.0  # [m/m] a slope of 89.4 degrees: on a steeper one nothing is near the ground


@dataclass(frozen=True, eq=False)
class Ground:
    """Ground that a body stands, slides and falls on: a plane, a slope or a field of heights.

    Its surface is ``z = slope . (x, y) + height(x, y)``. Bodies touch it with the corners of the
    boxes around their shapes; see `docs/theory/contact.md` for the law.

    Attributes:
        friction: Coefficient of Coulomb friction; 0 is ice.
        slope: Rise along x and y. [m/m]
        height: Of the plane at the world's origin, 0 by default; or (nx, ny) heights on a grid of
            squares around the origin, bilinear in between; those at its edge go on outside. [m]
        cell: Width of the squares. [m]
        stiffness: Under one corner. By default the stiffest whose oscillations the step resolves.
            [N/m]
        damping: Share of the normal force that an approach at one unit of speed adds. [s/m]
        lift: Whether a free body that starts below the ground is put on top of it.
    """

    friction: float = 0.8
    slope: tuple[float, float] = (0.0, 0.0)
    height: float | ArrayLike | None = None
    cell: float = 0.05
    stiffness: float | None = None
    damping: float = 10.0
    lift: bool = False

    def __post_init__(self) -> None:
        not_negative("the ground's friction", self.friction, "(a coefficient)")
        not_negative("the ground's damping", self.damping, "s/m")
        positive("the ground's cell", self.cell, "m")
        if self.stiffness is not None:
            positive("the ground's stiffness", self.stiffness, "N/m")
        if not isinstance(self.lift, bool):
            raise StateError(f"the ground's lift is True or False, got {self.lift!r}")
        slope = as_floats(self.slope)
        if slope.shape != (2,) or not (np.abs(slope) <= STEEPEST).all():  # NaN is refused, too
            raise StateError(
                f"the ground's slope is its rise along x and y (two numbers within ±{STEEPEST:g}, "
                f"in m/m), got {self.slope!r}"
            )
        object.__setattr__(self, "slope", tuple(slope.tolist()))
        object.__setattr__(self, "height", _heights(0.0 if self.height is None else self.height))

    @property
    def is_plane(self) -> bool:
        """True for a plane, level or not, which compiled code knows."""
        return np.asarray(self.height).ndim == 0

    def surface(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, Any, Any]:
        """(...) height of the ground at places, and its rise along x and y. [m, m/m]"""
        a, b = self.slope
        level, z = a * x + b * y, np.asarray(self.height)
        if self.is_plane:
            return level + z, a, b
        i, s, inside_x = _cells(x / self.cell, len(z))
        j, t, inside_y = _cells(y / self.cell, z.shape[1])
        low, high = z[i, j] + t * (z[i, j + 1] - z[i, j]), z[i + 1, j]
        high = high + t * (z[i + 1, j + 1] - high)
        left = z[i, j] + s * (z[i + 1, j] - z[i, j])
        right = z[i, j + 1] + s * (z[i + 1, j + 1] - z[i, j + 1])
        rise_x, rise_y = (high - low) / self.cell * inside_x, (right - left) / self.cell * inside_y
        return level + low + s * (high - low), a + rise_x, b + rise_y


def _heights(height: ArrayLike) -> np.ndarray:
    z = np.array(as_floats(height))
    holes = np.argwhere(~np.isfinite(z))
    if z.ndim not in (0, 2) or min(z.shape, default=2) < 2 or (z.ndim == 0 and len(holes)):
        given = f"shape {z.shape}" if z.ndim else repr(height)[:60]
        raise StateError(
            "the ground's height is a finite number, or an array (nx, ny) with two numbers or more "
            f"each way, got {given}"
        )
    if len(holes):
        i, j = holes[0].tolist()
        raise StateError(
            f"the ground's height has a hole: {z[i, j]} at [{i}, {j}] ({len(holes)} in all); fill "
            "it with a finite height in m"
        )
    z.setflags(write=False)
    return z


def _cells(u: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cell, place in it from 0 to 1, and whether it is inside, of a grid around 0."""
    u = u + (count - 1) / 2
    inside = np.clip(u, 0, count - 1)
    k = np.minimum(inside.astype(int), count - 2)
    return k, inside - k, u == inside


class Corners(NamedTuple):
    """Points of a model that can touch the ground.

    Attributes:
        body: (k,) body of each.
        place: (k, 3) in the body's frame. [m]
    """

    body: np.ndarray
    place: np.ndarray


def corners(organism: Organism, model: Model) -> Corners:
    """Corners of the convex hull of the boxes around the shapes of each body.

    A module without shapes is a cube of its size; virtual ones touch nothing.
    """
    found: dict[int, list[np.ndarray]] = {}
    for name in organism.modules:
        kind = organism.kind(name)
        if kind.virtual:
            continue
        for body, T, shape in placed_shapes(organism, model, name, kind.shapes):
            first, *rest = shape.size
            form = {"box": shape.size, "cylinder": (2 * first, 2 * first, *rest)}
            edges = np.array(form.get(shape.form, (2 * first,) * 3))
            found.setdefault(body, []).append(CORNERS * edges @ T[:3, :3].T + T[:3, 3])
        if not kind.shapes:
            found[model.modules[name]] = [CORNERS * kind.size]
    hulls = {body: _hull(np.concatenate(points)) for body, points in sorted(found.items())}
    if not hulls:
        raise StateError("no module of the organism can touch the ground: all are virtual")
    body = np.repeat(list(hulls), [len(points) for points in hulls.values()])
    return Corners(body, np.concatenate(list(hulls.values())))


def corner_depths(
    ground: Ground, organism: Organism, model: Model, q: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Body of each corner, and of (..., nq) configurations (..., k, 3) places and (..., k) depths.

    Depths are vertical, and negative above the ground. [m]
    """
    body, place = corners(organism, model)
    T = model.forward_kinematics(q)[..., body, :, :]
    x = (T[..., :3, :3] @ place[..., None])[..., 0] + T[..., :3, 3]
    return body, x, ground.surface(x[..., 0], x[..., 1])[0] - x[..., 2]


def _hull(points: np.ndarray) -> np.ndarray:
    if len(points) == len(CORNERS):
        return points
    from scipy.spatial import ConvexHull

    return points[np.sort(ConvexHull(points).vertices)]
