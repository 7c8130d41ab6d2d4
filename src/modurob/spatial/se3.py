"""Poses T_ab (..., 4, 4) = [R p; 0 1] of frame b in frame a, twists and wrenches.

Twists V = (v; w) and wrenches F = (f; n) put the linear part first. The formulas are those
of docs/theory/conventions.md; numeric, SymPy and traced elements share them.
"""

from __future__ import annotations

import numpy as np

from modurob.spatial import so3
from modurob.spatial.scalars import (
    Array,
    Scalars,
    block,
    common,
    matvec,
    product,
    sin,
    transpose,
    versine,
)


def pose(R_ab: Scalars, p_ab: Scalars) -> Array:
    """Pose T_ab (..., 4, 4) of a rotation (..., 3, 3) and the origin of b in a (..., 3). [m]"""
    R, p = common(R_ab, p_ab)
    return block([[R, p[..., None]], [np.zeros((1, 3)), np.ones((1, 1))]])


def rotation_of(T_ab: Scalars) -> Array:
    """R_ab (..., 3, 3) of a pose (..., 4, 4)."""
    (T,) = common(T_ab)
    return T[..., :3, :3]


def position_of(T_ab: Scalars) -> Array:
    """p_ab (..., 3) of a pose (..., 4, 4): the origin of b in a. [m]"""
    (T,) = common(T_ab)
    return T[..., :3, 3]


def composed(T_ab: np.ndarray, T_bc: np.ndarray) -> np.ndarray:
    """T_ac (4, 4) of two poses of numbers: the sums of `product`, faster for a single one."""
    (x0, x1, x2, x3), (y0, y1, y2, y3), (z0, z1, z2, z3), _ = T_bc.tolist()
    rows = [
        (
            a * x0 + b * y0 + c * z0,
            a * x1 + b * y1 + c * z1,
            a * x2 + b * y2 + c * z2,
            a * x3 + b * y3 + c * z3 + d,
        )
        for a, b, c, d in T_ab.tolist()[:3]
    ]
    return np.array([*rows, (0.0, 0.0, 0.0, 1.0)])


def inverse(T_ab: Scalars) -> Array:
    """T_ba (..., 4, 4) of T_ab, in closed form."""
    T = T_ab if getattr(T_ab, "dtype", None) == np.float64 else common(T_ab)[0]
    R_ba, T_ba = transpose(T[..., :3, :3]), np.zeros_like(T)
    T_ba[..., :3, :3], T_ba[..., :3, 3:] = R_ba, -product(R_ba, T[..., :3, 3:])
    T_ba[..., 3, 3] = 1
    return T_ba


def to_position_and_quaternion(T_ab: Scalars) -> Array:
    """(..., 7) position and unit quaternion (x, y, z, w) of a pose (..., 4, 4)."""
    (T,) = common(T_ab)
    return np.concatenate([T[..., :3, 3], so3.to_quaternion(T[..., :3, :3])], axis=-1)


def hat(V: Scalars) -> Array:
    """4x4 matrix (..., 4, 4) of a twist (..., 6): [hat(w) v; 0 0]."""
    v, w = _parts(V)
    return block([[so3.hat(w), v[..., None]], [np.zeros((1, 4))]])


def vee(X: Scalars) -> Array:
    """Twist (..., 6) of its 4x4 matrix (..., 4, 4): the inverse of `hat`."""
    (X,) = common(X)
    return _join(X[..., :3, 3], so3.vee(X[..., :3, :3]))


def exp(V: Scalars) -> Array:
    """Pose (..., 4, 4) reached by a constant twist (..., 6) = (v; w) in unit time. [m, rad]

    Symbolic and traced forms divide by |w|.
    """
    v, w = _parts(V)
    return pose(so3.exp(w), matvec(so3.left_jacobian(w), v))


def log(T: Scalars) -> Array:
    """Twist (..., 6) with exp(V) = T (..., 4, 4) and |w| <= pi; see `so3.log`. [m, rad]"""
    w = so3.log(rotation_of(T))
    return _join(matvec(so3.left_jacobian_inverse(w), position_of(T)), w)


def screw_motion(s: Scalars, q: Scalars) -> Array:
    """exp(s q) (..., 4, 4): the motion of a joint with a constant unit screw, without any division.

    Args:
        s: (..., 6) = (v; w) with |w| = 1, or w = 0 for a prismatic joint.
        q: (...) joint displacement; its shape broadcasts with that of s before. [rad, m]
    """
    s, q = common(s, q)
    v, w = _parts(s)
    q_ = q[..., None]
    wv = so3.cross(w, v)
    wwv = so3.cross(w, wv)
    # docs/theory/conventions.md, twists: p = (I q + (1 - cos q) hat(w) + (q - sin q) hat(w)^2) v,
    # sorted by q so that zero pitch (v + wwv = 0) leaves no q and a prismatic joint
    # (wv = wwv = 0) leaves only q.
    p = (v + wwv) * q_ + wv * versine(q_) - wwv * sin(q_)
    return pose(so3.rotation(w, q), p)


def Ad(T_ab: Scalars) -> Array:
    """Adjoint (..., 6, 6) of a pose (..., 4, 4): V_a = Ad(T_ab) V_b, F_b = Ad(T_ab)^T F_a."""
    R, p = rotation_of(T_ab), position_of(T_ab)
    return block([[R, so3.hat(p) @ R], [np.zeros((3, 3)), R]])


def ad(V: Scalars) -> Array:
    """Lie bracket matrix (..., 6, 6) of a twist (..., 6): ad(V1) V2."""
    v, w = _parts(V)
    w_hat = so3.hat(w)
    return block([[w_hat, so3.hat(v)], [np.zeros((3, 3)), w_hat]])


def bracket(V1: Scalars, V2: Scalars) -> Array:
    """Lie bracket ad(V1) V2 of twists (..., 6)."""
    V1, V2 = common(V1, V2)
    (v1, w1), (v2, w2) = _parts(V1), _parts(V2)
    return _join(so3.cross(w1, v2) + so3.cross(v1, w2), so3.cross(w1, w2))


def transform_twist(T_ab: Scalars, V_b: Scalars) -> Array:
    """V_a (..., 6) = Ad(T_ab) V_b: in frame a the same twist as V_b (..., 6). [m/s, rad/s]"""
    T, V = common(T_ab, V_b)
    R, p = rotation_of(T), position_of(T)
    v_b, w_b = _parts(V)
    w_a = matvec(R, w_b)
    return _join(matvec(R, v_b) + so3.cross(p, w_a), w_a)


def transform_wrench(T_ab: Scalars, F_a: Scalars) -> Array:
    """F_b (..., 6) = Ad(T_ab)^T F_a: in frame b the same wrench as F_a (..., 6). [N, N m]"""
    T, F = common(T_ab, F_a)
    R_ba, p = transpose(rotation_of(T)), position_of(T)
    f_a, n_a = _parts(F)
    return _join(matvec(R_ba, f_a), matvec(R_ba, n_a - so3.cross(p, f_a)))


def _parts(V: Scalars) -> tuple[Array, Array]:
    (V,) = common(V)
    return V[..., :3], V[..., 3:]


def _join(linear: Array, angular: Array) -> Array:
    return np.concatenate(np.broadcast_arrays(linear, angular), axis=-1)
