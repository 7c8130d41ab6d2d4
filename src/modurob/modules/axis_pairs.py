"""Lines in space by their common normal, the geometry behind Denavit and Hartenberg's parameters.

Two lines and a frame on each, z along the line, are related by

    T = Rz(before) Tz(-p) Tx(a) Rx(alpha) Tz(n) Rz(after)

with x along the common normal. docs/theory/denavit_hartenberg.md has the special cases and what
near-parallel axes cost.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from modurob.spatial import se3, so3

PARALLEL = 1.5e-8
"""Sine of the angle below which axes count as parallel: the root of float64's epsilon. Taking axes
for parallel moves them by up to the sine, keeping them apart costs epsilon over the sine."""

TOUCHING = 1e-12
"""Distance below which parallel axes overlap and others intersect: above the rounding errors of a
body of meters, below the 1e-12 of a round trip. [m]"""


class AxisPair(NamedTuple):
    """Two z axes by their common normal: T = Rz(before) Tz(-p) Tx(a) Rx(alpha) Tz(n) Rz(after).

    Attributes:
        a: Along the normal; negative where ``z1 x z0`` points back to the first axis. [m]
        alpha: From the first axis to the second, about the normal; in [-pi, 0], or pi. [rad]
        p, n: z of the frames' origins, counted from the feet of the normal on their axes. [m]
        before, after: Turns from the first frame to the normal, and from there to the second. [rad]
        case: ``skew``, ``intersecting``, ``parallel`` or ``overlapping``.
    """

    a: float
    alpha: float
    p: float
    n: float
    before: float
    after: float
    case: str

    @property
    def transform(self) -> np.ndarray:
        """(4, 4) the second frame in the first."""
        return turn_z(self.before) @ link_transform(*self[:4]) @ turn_z(self.after)


def axis_pair(T: np.ndarray) -> AxisPair:
    """The common normal of the z axes of two frames, T (4, 4) the second in the first.

    Where the normal is not unique: intersecting axes take ``z1 x z0``, as skew ones do; parallel
    axes the normal through the second origin; overlapping axes the x of the second frame.
    """
    R, (x, y, z) = T[:3, :3].tolist(), T[:3, 3].tolist()
    zx, zy, zz = R[0][2], R[1][2], R[2][2]
    sine = math.hypot(zx, zy)
    if sine <= PARALLEL:
        return _parallel_pair(R, x, y, z)
    # giusti2015, case iii: x along z1 x z0 = (zy, -zx, 0); all angles by atan2 (erratum 14)
    before = math.atan2(0.0 - zx, zy)
    c, s = zy / sine, -zx / sine
    a, n = x * c + y * s, (y * c - x * s) / sine
    case = "intersecting" if abs(a) <= TOUCHING else "skew"
    after = math.atan2(0.0 - R[2][0], 0.0 - R[2][1])
    alpha = math.atan2(-sine, zz)
    return AxisPair(a + 0.0, alpha, n * zz - z + 0.0, n + 0.0, before + 0.0, after + 0.0, case)


def _parallel_pair(R: list[list[float]], x: float, y: float, z: float) -> AxisPair:
    """giusti2015, cases i and ii: the foot on the second axis is its origin, so n = 0."""
    along = 1.0 if R[2][2] > 0 else -1.0
    alpha = 0.0 if along > 0 else math.pi
    turned = math.atan2(R[1][0], R[0][0])
    distance = math.hypot(x, y)
    if distance <= TOUCHING:
        return AxisPair(0.0, alpha, 0.0 - z, 0.0, turned + 0.0, 0.0, "overlapping")
    before = math.atan2(y, x)
    # R = Rz(before) Rx(alpha) Rz(after), and Rx(pi) turns the last one round
    after = wrapped(along * (turned - before))
    return AxisPair(distance, alpha, 0.0 - z, 0.0, before + 0.0, after, "parallel")


def link_transform(a: float, alpha: float, p: float, n: float) -> np.ndarray:
    """(4, 4) Tz(-p) Tx(a) Rx(alpha) Tz(n); giusti2015 (4) without its turn."""
    c, s = _cos_sin(alpha)
    return np.array(
        [
            [1.0, 0.0, 0.0, a],
            [0.0, c, -s, -n * s],
            [0.0, s, c, n * c - p],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )


def turn_z(angle: float) -> np.ndarray:
    """(4, 4) Rz. [rad]"""
    c, s = _cos_sin(angle)
    return np.array([[c, -s, 0.0, 0.0], [s, c, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0, 0, 0, 1.0]])


def lift_z(distance: float) -> np.ndarray:
    """(4, 4) Tz. [m]"""
    T = np.eye(4)
    T[2, 3] = distance
    return T


def inverse(T: np.ndarray) -> np.ndarray:
    """(4, 4) inverse of a pose of floats; `se3.inverse` takes any scalar, at ten times the cost."""
    result = np.eye(4)
    result[:3, :3] = T[:3, :3].T
    result[:3, 3] = -(T[:3, :3].T @ T[:3, 3])
    return result


def wrapped(angle: float) -> float:
    """The same angle in (-pi, pi]. [rad]"""
    angle = math.remainder(angle, 2 * math.pi)
    return math.pi if angle <= -math.pi else angle + 0.0


def _cos_sin(angle: float) -> tuple[float, float]:
    """Exact at whole quarter turns, of which modules are full."""
    quarters = angle / (math.pi / 2)
    if quarters == round(quarters):
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[round(quarters) % 4]
    return math.cos(angle), math.sin(angle)


def axis_frame(before: np.ndarray, screw: np.ndarray) -> np.ndarray:
    """(4, 4) frame of a joint with z along its screw: `before` itself where that holds already."""
    axis = screw[3:] if np.any(screw[3:]) else screw[:3]
    if axis[2] > 0 and not axis[:2].any():
        return before
    z = np.array([0.0, 0.0, 1.0])
    # the shortest turn from z to the axis; half a turn about x where they oppose
    turn = np.cross(z, axis)
    sine = float(np.linalg.norm(turn))
    direction = turn / sine if sine > 0 else np.array([1.0, 0.0, 0.0])
    R = so3.rotation(direction, math.atan2(sine, axis[2]))
    R[:, 2] = axis  # to the last bit: this column is what the parameters are about
    return before @ se3.pose(R, np.zeros(3))
