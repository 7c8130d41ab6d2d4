"""Joint forces as a linear map of the bodies' mass, for identification and adaptation.

A body with the pseudo-inertia ``P = integral of r r^T dm``, r = (x, y, z, 1) in its frame, takes
``tau_i = integral of u_i(r) . a(r) dm = tr(Z_i^T B P)``: u_i = Z_i r is the velocity of its points
per velocity of joint i, and a = B r their acceleration (principle of virtual power).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from modurob.model import Model
from modurob.spatial import so3

# (6, 12) upper rows of the matrices of the six unit twists; one product is quicker than `so3.hat`
UNIT_TWISTS = np.concatenate([so3.hat(np.eye(6)[:, 3:]), np.eye(6)[:, :3, None]], axis=-1).reshape(
    6, 12
)
PARAMETERS = ("m", "hx", "hy", "hz", "Jxx", "Jxy", "Jxz", "Jyy", "Jyz", "Jzz")
"""Mass, first moment and inertia about the origin of a body's frame. [kg, kg m, kg m^2]"""


def _basis() -> np.ndarray:
    """(10, 4, 4) pseudo-inertia of each parameter: second moments S = tr(J) / 2 E - J."""
    P = np.zeros((10, 4, 4))
    P[0, 3, 3] = 1.0
    for k in range(3):
        P[1 + k, k, 3] = P[1 + k, 3, k] = 1.0
    pairs = [(i, j) for i in range(3) for j in range(i, 3)]
    for k, (i, j) in enumerate(pairs, start=4):
        if i == j:
            P[k, :3, :3] = np.eye(3) / 2
            P[k, i, i] = -0.5
        else:
            P[k, i, j] = P[k, j, i] = -1.0
    return P


BASIS = _basis()


def parameters(P: np.ndarray) -> np.ndarray:
    """(..., 10) numbers named in `PARAMETERS` of pseudo-inertias (..., 4, 4)."""
    S = P[..., :3, :3]
    J = np.trace(S, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - S
    return np.concatenate([P[..., 3, 3:], P[..., 3, :3], J[..., *np.triu_indices(3)]], axis=-1)


def regressor(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> np.ndarray:
    """(..., nv, nbodies, 4, 4) symmetric Y with ``tau_i = sum_b tr(Y_ib P_b)``, friction aside.

    Args:
        q, v, a: (..., nq), (..., nv), (..., nv) state and acceleration.
    """
    v, a = (model.check_velocity(x, name) for name, x in (("v", v), ("a", a)))
    near, q = model._near_base(model.check_configuration(q))
    moves = near._moving_columns[near.body_link][:, None, :].astype(float)
    Z, B = pose_derivatives(near, near.forward_kinematics(q), moves, q, v, v, a)
    Y = np.moveaxis(np.swapaxes(Z, -1, -2) @ B[..., None, :, :], -3, -4)
    return (Y + np.swapaxes(Y, -1, -2)) / 2


def pose_derivatives(
    model: Model, T: np.ndarray, moves: np.ndarray,
    q: np.ndarray, v: np.ndarray, w: np.ndarray, a: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """(..., bodies, nv, 3, 4) dT/dq_k and (..., bodies, 3, 4) ddT less gravity, upper rows.

    Args:
        T: (..., bodies, 4, 4) poses at q.
        moves: (bodies, 1, nv) 1 where a velocity moves a body, else 0.
        v, w, a: (..., nv) velocity, reference velocity and acceleration: ddT = dT/dq a +
            d2T/dq2 (v, w).
    """
    screws = model.dynamics.quantity("joint_screws", q)
    rates = model.dynamics.quantity("joint_screw_rates", q, v)
    J = screws[..., None, :, :] * moves
    velocities = np.stack([v, w, a], axis=-1)[..., None, :, :]
    V, W, dW = np.moveaxis(J @ velocities, -1, 0)
    dW = dW + ((rates[..., None, :, :] * moves) @ w[..., None, :, None])[..., 0]
    ddT = (_hat(dW) + _hat(W)[..., :3] @ _hat(V)) @ T
    ddT[..., :3, 3] -= model.gravity
    return _hat(np.swapaxes(J, -1, -2)) @ T[..., None, :, :], ddT


def _hat(V: np.ndarray) -> np.ndarray:
    """(..., 3, 4) upper rows of the matrices of twists."""
    return (V @ UNIT_TWISTS).reshape(*V.shape[:-1], 3, 4)
