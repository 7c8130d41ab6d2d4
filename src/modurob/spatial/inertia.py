"""Mass, center of mass and inertia of rigid bodies.

An inertia (..., 3, 3) is about the center of mass unless said otherwise, in the axes of the frame
in which the center (..., 3) is given. Numeric, SymPy and traced elements share every formula.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from modurob.spatial import so3
from modurob.spatial.scalars import Array, Scalars, block, common, entry, quotient, stack, transpose
from modurob.spatial.se3 import Ad, inverse

INERTIA_TOLERANCE = 1e-6
"""Share of the largest moment that `inertia_flaw` forgives: files often keep only 6-7 digits."""


def spatial_inertia(mass: Scalars, center: Scalars, inertia: Scalars) -> Array:
    """M (..., 6, 6) = [[m I, -m hat(c)], [m hat(c), J]] about the frame origin; see `at_origin`."""
    mass, center, inertia = common(mass, center, inertia)
    (identity, _) = common(np.eye(3), mass)
    m_hat_c = so3.hat(mass[..., None] * center)
    J = at_origin(mass, center, inertia)
    return block([[mass[..., None, None] * identity, -m_hat_c], [m_hat_c, J]])


def at_origin(mass: Scalars, center: Scalars, inertia: Scalars) -> Array:
    """J (..., 3, 3) = I + m (|c|^2 E - c c^T) about the frame origin (parallel axes).

    Args:
        mass: (...). [kg]
        center: (..., 3) center of mass in the frame. [m]
        inertia: (..., 3, 3) about the center of mass. [kg m^2]
    """
    mass, center, inertia = common(mass, center, inertia)
    return inertia + _point_mass(mass, center)


def at_center(mass: Scalars, center: Scalars, inertia: Scalars) -> Array:
    """(..., 3, 3) about the center of mass, of one about the frame origin; inverts `at_origin`."""
    mass, center, inertia = common(mass, center, inertia)
    return inertia - _point_mass(mass, center)


def moved(T_ab: Scalars, M_b: Scalars) -> Array:
    """Spatial inertia M_a (..., 6, 6) = Ad(T_ba)^T M_b Ad(T_ba), of one in frame b."""
    T_ab, M_b = common(T_ab, M_b)
    X_ba = Ad(inverse(T_ab))
    return transpose(X_ba) @ M_b @ X_ba


def union(mass: Scalars, center: Scalars, inertia: Scalars) -> tuple[Array, Array, Array]:
    """Mass properties of k bodies taken as one (erratum 13 of moll2006).

    Args:
        mass: (..., k). [kg] A negative mass takes a body away (with its inertia negated too).
        center: (..., k, 3) centers of mass in one frame. [m]
        inertia: (..., k, 3, 3) about each body's own center of mass. [kg m^2]

    Returns:
        Total mass (...), center of mass (..., 3) and inertia (..., 3, 3) about it. A total mass of
        zero puts the center at the origin.
    """
    mass, center, inertia = common(mass, center, inertia)
    m = mass.sum(axis=-1)
    c = quotient((mass[..., None] * center).sum(axis=-2), np.asarray(m)[..., None], 0)
    about_c = at_origin(mass, center - c[..., None, :], inertia)
    return m, c, about_c.sum(axis=-3)


def pseudo_inertia(mass: ArrayLike, center: ArrayLike, inertia: ArrayLike) -> np.ndarray:
    """P (..., 4, 4) = [[S, m c], [m c^T, m]]: the integral of r r^T dm, r = (x, y, z, 1).

    Masses in one frame add as these matrices do; in another frame it is ``T P T^T``.

    Args:
        mass: (...). [kg]
        center: (..., 3) center of mass. [m]
        inertia: (..., 3, 3) about the center of mass. [kg m^2]
    """
    m, c, I = (np.asarray(x, dtype=float) for x in (mass, center, inertia))  # noqa: E741
    P, h = np.empty((*m.shape, 4, 4)), m[..., None] * c
    half = 0.5 * np.trace(I, axis1=-2, axis2=-1)[..., None, None]
    P[..., :3, :3] = half * np.eye(3) - I + h[..., :, None] * c[..., None, :]
    P[..., :3, 3] = P[..., 3, :3] = h
    P[..., 3, 3] = m
    return P


def from_pseudo_inertia(P: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mass, center and inertia about it of P (..., 4, 4); without mass the center is the origin."""
    m, h = P[..., 3, 3], P[..., :3, 3]
    c = quotient(h, m[..., None], 0.0)
    S = P[..., :3, :3] - h[..., :, None] * c[..., None, :]
    S = (S + transpose(S)) / 2  # rounding has left it a little off
    return m, c, np.trace(S, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - S


def inertia_flaw(mass: float, inertia: Scalars) -> str | None:
    """Reason why no rigid body has this mass and inertia, or None.

    Args:
        mass: one number. [kg]
        inertia: (3, 3) numbers, about the center of mass. [kg m^2]

    Returns:
        A sentence that says what is wrong, or None. Point masses, thin rods and massless frames
        are fine.
    """
    I = np.asarray(inertia, np.float64)  # noqa: E741
    if not (np.isfinite(mass) and np.isfinite(I).all()):
        return f"mass ({mass:g} kg) and inertia must be finite numbers, got {I.tolist()}"
    if mass < 0:
        return f"the mass is {mass:g} kg but must not be negative"
    slack = INERTIA_TOLERANCE * np.abs(I).max()
    if np.abs(I - I.T).max() > slack:
        return f"the inertia must be symmetric, got {I.tolist()}"
    a, b, c = (float(moment) for moment in np.linalg.eigvalsh(I / 2 + I.T / 2))
    moments = f"its principal moments are {a:g}, {b:g}, {c:g} kg m^2"
    if a < -slack:
        return f"the inertia must not be negative: {moments}"
    if a + b < c - slack:
        return f"no moment may exceed the sum of the other two (triangle inequality): {moments}"
    if mass == 0 and slack > 0:
        return f"a body without mass must not have inertia: {moments}"
    return None


def nearest_possible(inertia: Scalars) -> np.ndarray:
    """Symmetric (3, 3) inertia that a rigid body can have, nearest to the given one.

    Nearest in the Frobenius norm of the second moments S = tr(I) / 2 E - I of the mass: a body can
    have them if and only if no eigenvalue is negative, which is the triangle inequality.

    Args:
        inertia: (3, 3) numbers, about the center of mass. [kg m^2]
    """
    I = np.asarray(inertia, np.float64)  # noqa: E741
    I = I / 2 + I.T / 2  # noqa: E741
    moments, axes = np.linalg.eigh(np.trace(I) / 2 * np.eye(3) - I)
    S = (axes * np.maximum(moments, 0.0)) @ axes.T
    return np.trace(S) * np.eye(3) - (S + S.T) / 2


def _point_mass(mass: Array, center: Array) -> Array:
    """Inertia m (|c|^2 E - c c^T) of a point mass at c about the origin."""
    x, y, z = (entry(center, k) for k in range(3))
    return mass[..., None, None] * stack(
        [
            [y * y + z * z, -x * y, -x * z],
            [-x * y, z * z + x * x, -y * z],
            [-x * z, -y * z, x * x + y * y],
        ],
        like=center,
    )
