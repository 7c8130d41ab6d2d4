"""Rotations R_ab (..., 3, 3): axes of frame b as columns in frame a.

Rotation vectors are w = axis * angle. Numeric, SymPy and traced elements share every formula.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from modurob.spatial.scalars import (
    Array,
    Scalars,
    atan2,
    common,
    cos,
    cosc,
    entry,
    product,
    quotient,
    sin,
    sinc,
    sincc,
    sqrt,
    stack,
    transpose,
    versine,
)

ROTATION_TOLERANCE = 1e-9
"""Default largest entry of |R^T R - I|: passes matrices written with ten decimals."""

SNAP_TOLERANCE = 1e-15
"""Entries of `from_rpy` this close to 0 are rounding errors of multiples of 90 degrees."""

UNIT_TOLERANCE = 1e-14
"""Deviation of a quaternion's squared norm from 1 that its normalization leaves: about 1e-15."""


def hat(w: Scalars) -> Array:
    """Skew matrix (..., 3, 3) of a vector w (..., 3): hat(w) u = w x u."""
    x, y, z = _components(w)
    return stack([[0, -z, y], [z, 0, -x], [-y, x, 0]], like=w)


def vee(W: Scalars) -> Array:
    """Vector (..., 3) of a skew matrix (..., 3, 3): the inverse of `hat`."""
    (W,) = common(W)
    return stack([entry(W, 2, 1), entry(W, 0, 2), entry(W, 1, 0)], like=W)


def cross(a: Scalars, b: Scalars) -> Array:
    """Cross product of vectors (..., 3)."""
    a, b = common(a, b)
    if a.shape != b.shape:
        a, b = np.broadcast_arrays(a, b)
    (ax, ay, az), (bx, by, bz) = _components(a), _components(b)
    return stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], like=a)


def rotation(axis: Scalars, angle: Scalars) -> Array:
    """R (..., 3, 3) = I + sin q hat(a) + (1 - cos q) hat(a)^2 (Rodrigues), without any division.

    Args:
        axis: (..., 3) unit vector, or zero for the identity.
        angle: (...). [rad]
    """
    axis, angle = common(axis, angle)
    if axis.shape[:-1] != angle.shape:
        axis = np.broadcast_arrays(axis, angle[..., None])[0]
    x, y, z = _components(axis)
    s, c, versed = sin(angle), cos(angle), versine(angle)
    # 1 - (1 - c) k, arranged so that k = 0 and k = 1 leave plain 1 and c in symbolic forms.
    diagonal = [(1 - k) + k * c for k in (y * y + z * z, z * z + x * x, x * x + y * y)]
    return _assemble(
        axis,
        diagonal,
        symmetric=[(y * z) * versed, (z * x) * versed, (x * y) * versed],
        skew=[x * s, y * s, z * s],
    )


def exp(w: Scalars) -> Array:
    """Rotation (..., 3, 3) of a rotation vector w (..., 3), axis * angle. [rad]

    Symbolic and traced forms divide by |w|.
    """
    (w,) = common(w)
    angle = _norm(w)
    return _polynomial(w, sinc(angle), cosc(angle))


def log(R: Scalars) -> Array:
    """Rotation vector w (..., 3) of R (..., 3, 3), to rounding at every angle from 0 to pi. [rad]

    |w| <= pi; at pi either sign of the axis is right. Symbolic and traced forms hold for angles
    strictly between 0 and pi.
    """
    q = _scaled_quaternion(R)
    v, w = q[..., :3], entry(q, 3)
    n = _norm(v)
    factor = quotient(2 * atan2(n, w), n, 0.5)  # 2/w at n = 0, where the row of w is (0, 0, 0, 4)
    return np.asarray(factor)[..., None] * v


def to_quaternion(R: Scalars) -> Array:
    """Unit quaternion (..., 4) of R (..., 3, 3), in the order x, y, z, w, with w >= 0.

    Symbolic forms hold for angles below pi.
    """
    q = _scaled_quaternion(R)
    return q / np.asarray(_norm(q))[..., None]


def from_quaternion(q: Scalars) -> Array:
    """Rotation (..., 3, 3) of a unit quaternion (..., 4) in the order x, y, z, w."""
    (q,) = common(q)
    return _polynomial(q[..., :3], 2 * entry(q, 3), 2)


def squared_norm(q: np.ndarray) -> Any:
    """Sum of squares (...) of quaternions (..., 4).

    The products are added in one fixed order, so one quaternion and a row of many, a strided view
    and a contiguous one give the same bits on every machine; a library's sum need not.
    """
    if q.ndim == 1:
        x, y, z, w = q.tolist()
        return x * x + y * y + z * z + w * w
    x, y, z, w = (q[..., k] for k in range(4))
    with np.errstate(over="ignore"):
        return x * x + y * y + z * z + w * w


def is_unit(q: np.ndarray) -> bool:
    """Return whether all quaternions (..., 4) have norm 1 up to rounding; see `unit_quaternion`."""
    close = abs(squared_norm(q) - 1) < UNIT_TOLERANCE
    return close if q.ndim == 1 else bool(close.all())


def unit_quaternion(q: np.ndarray) -> np.ndarray:
    """Quaternions (..., 4) at norm 1; those that have it up to rounding stay as they are.

    So normalizing twice is the same as once, bit for bit.
    """
    square = np.asarray(squared_norm(q))[..., None]
    return np.where(abs(square - 1) < UNIT_TOLERANCE, q, q / np.sqrt(square))


def from_rpy(roll: Scalars, pitch: Scalars, yaw: Scalars) -> Array:
    """R (..., 3, 3) of URDF's fixed-axis angles (...) each: Rz(yaw) Ry(pitch) Rx(roll). [rad]

    Multiples of 90 degrees give exact signed permutations.
    """
    R = product(rotation([0, 0, 1], yaw), rotation([0, 1, 0], pitch))
    R = product(R, rotation([1, 0, 0], roll))
    if R.dtype == object or np.iscomplexobj(R):
        return R
    return np.where(np.abs(R) < SNAP_TOLERANCE, 0.0, R)  # beside them +-1 is exact


def left_jacobian(w: Scalars) -> Array:
    """J (..., 3, 3) with d exp(w) exp(w)^T = hat(J dw), for w (..., 3). [rad]"""
    (w,) = common(w)
    angle = _norm(w)
    return _polynomial(w, cosc(angle), sincc(angle))


def left_jacobian_inverse(w: Scalars) -> Array:
    """Inverse (..., 3, 3) of `left_jacobian`, for w (..., 3) with |w| < 2 pi. [rad]"""
    (w,) = common(w)
    h = _norm(w / 2)
    # I - hat(w/2) + (1 - h cot h)/h^2 hat(w/2)^2, where sin h - h cos h = h^3 (cosc h - sincc h)
    # spares the cancellation.
    return _polynomial(w / 2, -1, (cosc(h) - sincc(h)) / sinc(h))


def is_rotation(R: Scalars, tolerance: float = ROTATION_TOLERANCE) -> Any:
    """(...) whether numeric matrices (..., 3, 3) are rotations: orthonormal and right-handed.

    Args:
        R: Real numbers; NaN and infinity are allowed and are no rotations.
        tolerance: the largest entry of |R^T R - I| to pass.
    """
    R = np.asarray(R, np.float64)
    R = np.where(np.isfinite(R).all(axis=(-1, -2), keepdims=True), R, 0.0)
    defect = np.abs(transpose(R) @ R - np.eye(3)).max(axis=(-1, -2))
    handedness = (R[..., 0, :] * cross(R[..., 1, :], R[..., 2, :])).sum(axis=-1)
    return (defect <= tolerance) & (handedness > 0)


def nearest_rotation(R: Scalars) -> Array:
    """The rotations nearest to numeric (..., 3, 3) that are almost ones: R = Q P, least |R - Q|."""
    U, _, Vt = np.linalg.svd(np.asarray(R, np.float64))
    return U @ Vt


def _components(w: Scalars) -> tuple[Any, Any, Any]:
    (w,) = common(w)
    return entry(w, 0), entry(w, 1), entry(w, 2)


def _norm(v: Array) -> Any:
    # The analytic norm: no complex conjugate, so a complex step passes through.
    return sqrt((v * v).sum(axis=-1))


def _assemble(like: Array, diagonal: list[Any], symmetric: list[Any], skew: list[Any]) -> Array:
    dx, dy, dz = diagonal
    yz, zx, xy = symmetric
    x, y, z = skew
    return stack([[dx, xy - z, zx + y], [xy + z, dy, yz - x], [zx - y, yz + x, dz]], like)


def _polynomial(w: Array, first: Any, second: Any) -> Array:
    """I + first hat(w) + second hat(w)^2."""
    x, y, z = _components(w)
    return _assemble(
        w,
        [1 - (y * y + z * z) * second, 1 - (z * z + x * x) * second, 1 - (x * x + y * y) * second],
        symmetric=[y * z * second, z * x * second, x * y * second],
        skew=[x * first, y * first, z * first],
    )


def _scaled_quaternion(R: Scalars) -> Array:
    """A positive multiple of the quaternion (x, y, z, w), with w >= 0.

    The rows of 4 q q^T are linear in R; the one with the largest diagonal is best conditioned
    (Shepperd 1978). Scalars that cannot be compared take the row of w.
    """
    (R,) = common(R)
    xx, yy, zz = (entry(R, i, i) for i in range(3))
    yz, zx, xy = (entry(R, j, i) + entry(R, i, j) for i, j in ((1, 2), (2, 0), (0, 1)))
    wx, wy, wz = (entry(R, j, i) - entry(R, i, j) for i, j in ((1, 2), (2, 0), (0, 1)))
    row_w = [wx, wy, wz, 1 + xx + yy + zz]
    if R.dtype == object:
        return stack(row_w, like=R)
    rows = stack(
        [
            [1 + xx - yy - zz, xy, zx, wx],
            [xy, 1 - xx + yy - zz, yz, wy],
            [zx, yz, 1 - xx - yy + zz, wz],
            row_w,
        ]
    )
    best = np.argmax(np.real(np.diagonal(rows, axis1=-2, axis2=-1)), axis=-1)
    row = np.take_along_axis(rows, best[..., None, None], axis=-2)[..., 0, :]
    return np.where(np.real(row[..., 3:]) < 0, -row, row)
