"""Ground under a body: its surface, and the corners of the body that can touch it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import as_floats, not_negative, positive
from modurob.equations.contact import UPRIGHT, HeightField, surface
from modurob.errors import StateError
from modurob.model import Model
from modurob.model.shapes import placed_shapes
from modurob.organism import Organism

CORNERS = np.array(list(product((-0.5, 0.5), repeat=3)))
CHAMFER = 0.01  # of a cylinder's radius or half its length: the edge that is cut off
SAMPLES = 16  # points of a rim that tell whether it is inside the hull of a body
CACHED_HULLS = 4096
STEEPEST = 100.0  # [m/m] a slope of 89.4 degrees: on a steeper one nothing is near the ground


@dataclass(frozen=True, eq=False)
class Ground:
    """Ground that a body stands, slides and falls on: a plane, a slope or a field of heights.

    Its surface is ``z = slope . (x, y) + height(x, y)``. Bodies touch it with the corners of
    their boxes, the lowest points of their rims and balls; `docs/theory/contact.md` has the law.

    Attributes:
        friction: Coefficient of Coulomb friction; 0 is ice.
        slope: Rise along x and y. [m/m]
        height: Of the plane at the world's origin, 0 by default; or (nx, ny) heights on a grid of
            squares around the origin, bilinear in between; those at its edge go on outside. [m]
        cell: Width of the squares. [m]
        stiffness: Under one corner. By default the stiffest whose oscillations the step resolves.
            [N/m]
        damping: Share of the normal force that an approach at one unit of speed adds. By default 10
            s/m, and more on ground harder than the default one at steps of 1 ms: impacts become
            more plastic as the step shrinks. [s/m]
        lift: Whether a free body that starts below the ground is put on top of it.
    """

    friction: float = 0.8
    slope: tuple[float, float] = (0.0, 0.0)
    height: float | ArrayLike | None = None
    cell: float = 0.05
    stiffness: float | None = None
    damping: float | None = None
    lift: bool = False

    def __post_init__(self) -> None:
        not_negative("the ground's friction", self.friction)
        positive("the ground's cell", self.cell, "m")
        if self.damping is not None:
            not_negative("the ground's damping", self.damping, "s/m")
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
        """True for a plane, level or not."""
        return np.asarray(self.height).ndim == 0

    @property
    def kind(self) -> str:
        """The kind of ground: "field", "level" or "slope"."""
        return "field" if not self.is_plane else "slope" if any(self.slope) else "level"

    @property
    def field(self) -> HeightField:
        """Numbers of a field of heights."""
        nx, ny = np.asarray(self.height).shape
        return HeightField(*self.slope, 1 / self.cell, nx, ny, (nx + 1) / 2, (ny + 1) / 2)

    @property
    def upward(self) -> np.ndarray:
        """(3,) normal of the slope, not of length 1."""
        return np.array([-self.slope[0], -self.slope[1], 1.0])

    @property
    def below(self) -> tuple[float, ...]:
        """Numbers of the ground in a corner's row: see `equations.contact.Corner` and others."""
        if not self.is_plane:
            return self.field
        a, b = self.slope
        n_z = 1 / np.sqrt(1 + a * a + b * b)
        normal = () if self.kind == "level" else (-a * n_z, -b * n_z, n_z)
        return (*normal, n_z * float(np.asarray(self.height)))

    @cached_property
    def cells(self) -> np.ndarray:
        """((nx + 1) (ny + 1), 4) the cells of a field; see `equations.contact.surface`. [m]"""
        z = np.pad(np.asarray(self.height), 1, mode="edge")
        h, h_x, h_y = z[:-1, :-1], z[1:, :-1] - z[:-1, :-1], z[:-1, 1:] - z[:-1, :-1]
        found = np.stack([h, h_x, h_y, z[1:, 1:] - z[:-1, 1:] - h_x], axis=-1).reshape(-1, 4)
        found.setflags(write=False)
        return found

    def surface(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, Any, Any]:
        """(...) height of the ground at places, and its rise along x and y. [m, m/m]"""
        a, b = self.slope
        if self.is_plane:
            return a * x + b * y + np.asarray(self.height), a, b
        return surface(self.field, x, y, lambda row, column: self.cells[row.astype(int), column])


def _heights(height: ArrayLike) -> np.ndarray:
    if isinstance(height, np.ma.MaskedArray):  # what is masked would have some number
        height = np.ma.filled(height.astype(float), np.nan)
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


class Corners(NamedTuple):
    """Points of a model that can touch the ground: corners, and the lowest points of circles.

    Attributes:
        body: (k,) body of each.
        place: (k, 3) of a corner, or of the center of a circle or ball, in the body's frame. [m]
        axis: (k, 3) of a circle, of length 1; 0 for corners and balls.
        radius: (k,) of a circle or ball; 0 for corners. [m]
    """

    body: np.ndarray
    place: np.ndarray
    axis: np.ndarray
    radius: np.ndarray

    def lowest(self, ground: Ground, T: np.ndarray) -> np.ndarray:
        """(..., k, 3) the points, lowest above the plane that the ground has below their centers.

        Args:
            T: (..., k, 4, 4) poses of their bodies.
        """
        # sums of columns: a product of small matrices takes three times as long
        r, T = self.place, T[..., :3, :]
        x = sum((T[..., k] * r[:, k, None] for k in range(3)), T[..., 3])
        which = np.flatnonzero(self.radius)
        if len(which):
            center = x[..., which, :]
            _, a, b = ground.surface(center[..., 0], center[..., 1])
            n = np.stack(np.broadcast_arrays(-a, -b, np.ones(center.shape[:-1])), axis=-1)
            axis = (T[..., which, :, :3] @ self.axis[which, :, None])[..., 0]
            across = n - axis * np.sum(axis * n, axis=-1, keepdims=True)
            length = np.maximum(np.linalg.norm(across, axis=-1, keepdims=True), UPRIGHT)
            x[..., which, :] = center - self.radius[which, None] * across / length
        return x

    def outline(self) -> Corners:
        """Corners alone: circles and balls as points on them, in the directions of their axes."""
        fixed = self.radius == 0
        parts = [Corners(*(x[fixed] for x in self))]
        for body, center, axis, radius in zip(*(x[~fixed] for x in self), strict=True):
            points = center + radius * _directions(axis, 4)
            none = np.zeros(len(points))
            parts.append(Corners(np.full(len(points), body), points, 0 * points, none))
        return Corners(*map(np.concatenate, zip(*parts, strict=True)))


def corners(organism: Organism, model: Model) -> Corners:
    """Points of each body that the convex hull of its shapes has.

    A box has eight corners. A cylinder has the circles around it near its ends, and four corners on
    each end, inside of its edge. A module without shapes is a cube of its size; virtual ones touch
    nothing.
    """
    found: dict[int, list[Corners]] = {}
    for name in organism.modules:
        kind = organism.kind(name)
        if kind.virtual:
            continue
        for body, T, shape in placed_shapes(organism, model, name, kind.shapes):
            found.setdefault(body, []).append(_shape_points(body, T, shape.form, shape.size))
        if not kind.shapes:
            body = model.modules[name]
            found[body] = [_shape_points(body, np.eye(4), "box", (kind.size,) * 3)]
    if not found:
        raise StateError("no module of the organism can touch the ground: all are virtual")
    hulls = [_hull(points) for _, points in sorted(found.items())]
    return Corners(*map(np.concatenate, zip(*hulls, strict=True)))


def _shape_points(body: int, T: np.ndarray, form: str, size: tuple[float, ...]) -> Corners:
    """Points of one shape with the pose T in a body."""
    if form == "box":
        place, axis, radius = CORNERS * size, np.zeros((8, 3)), np.zeros(8)
    elif form == "sphere":
        place, axis, radius = np.zeros((1, 3)), np.zeros((1, 3)), np.array(size)
    else:
        r, half = size[0], size[1] / 2
        inset = CHAMFER * min(r, half)
        square = (r - inset) / np.sqrt(2)
        place, axis, radius = np.zeros((10, 3)), np.zeros((10, 3)), np.zeros(10)
        place[:8] = CORNERS * (2 * square, 2 * square, 2 * half)
        place[8:, 2], axis[8:, 2], radius[8:] = (inset - half, half - inset), 1.0, r
    R = T[:3, :3]
    return Corners(np.full(len(place), body), place @ R.T + T[:3, 3], axis @ R.T, radius)


def corner_depths(
    ground: Ground, organism: Organism, model: Model, q: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Body of each corner, and of (..., nq) configurations (..., k, 3) places and (..., k) depths.

    Depths are vertical, and negative above the ground. [m]
    """
    points = corners(organism, model)
    x = points.lowest(ground, model.forward_kinematics(q)[..., points.body, :, :])
    return points.body, x, ground.surface(x[..., 0], x[..., 1])[0] - x[..., 2]


def _directions(axis: np.ndarray, count: int) -> np.ndarray:
    """(n, 3) of length 1: `count` around an axis, or of a ball around all three."""
    if not axis.any():
        return np.concatenate([_directions(e, count) for e in np.eye(3)])
    first = np.eye(3)[np.argmin(np.abs(axis))]
    u = np.cross(axis, first)
    u /= np.linalg.norm(u)
    angle = 2 * np.pi / count * np.arange(count)[:, None]
    return np.cos(angle) * u + np.sin(angle) * np.cross(axis, u)


def _hull(parts: list[Corners]) -> Corners:
    """Those that are not inside the convex hull of all."""
    points = Corners(*map(np.concatenate, zip(*parts, strict=True)))
    if len(parts) == 1:
        return points
    numbers = np.column_stack([points.place, points.axis, points.radius])
    kept = list(_outer(numbers.tobytes()))
    return Corners(*(x[kept] for x in points))


@lru_cache(maxsize=CACHED_HULLS)
def _outer(numbers: bytes) -> tuple[int, ...]:
    """Numbers of the points on the hull: the modules of an organism are mostly of few kinds."""
    from scipy.spatial import ConvexHull

    points = np.frombuffer(numbers).reshape(-1, 7)
    outer = [
        x[:3] + x[6] * (_directions(x[3:6], SAMPLES) if x[6] else np.zeros((1, 3))) for x in points
    ]
    owner = np.repeat(np.arange(len(outer)), [len(own) for own in outer])
    return tuple(np.unique(owner[ConvexHull(np.concatenate(outer)).vertices]).tolist())
