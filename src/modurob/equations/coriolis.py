"""What sums over all links in the world frame: Coriolis matrix, momentum, energy."""

from __future__ import annotations

import numpy as np

from modurob.equations.closed_form import Stacked
from modurob.spatial import se3, so3
from modurob.spatial.inertia import moved
from modurob.spatial.scalars import Array, block, matvec, transpose


def world_jacobians(tree: Stacked) -> tuple[Array, Array]:
    """(..., links, 6, nv) Jacobians of all links in the world frame, and (links, nv) owners.

    Owner (i, k) is true when link i carries joint column k itself.
    """
    own = np.any(tree.S != 0, axis=-2)
    reach = own.copy()
    for i, parent in enumerate(tree.parent):
        if parent >= 0:
            reach[i] |= reach[parent]
    columns = np.sum(se3.Ad(tree.T_w) @ tree.S, axis=-3)
    return np.where(reach[:, None, :], columns[..., None, :, :], 0.0), own


def world_inertias(tree: Stacked) -> Array:
    """(..., links, 6, 6) inertias in the world frame."""
    return moved(tree.T_w, tree.M)


def skew_coriolis(tree: Stacked, v: Array) -> Array:
    """(..., nv, nv) C with C v the velocity forces and dM/dt - 2 C skew.

    C = sum over the links of J^T (I dJ/dt + B J), 2 B = V x* I - I V x + (I V) x-bar*
    (Echeandia and Wensing 2021), all in the world frame.
    """
    J, own = world_jacobians(tree)
    inertia = world_inertias(tree)
    V = matvec(J, v[..., None, :])
    ad_V = se3.ad(V)
    # a joint's screw moves with the link that carries it
    S_rate = np.sum(np.where(own[:, None, :], ad_V @ J, 0.0), axis=-3)
    J_rate = np.where(np.any(J != 0, axis=-2, keepdims=True), S_rate[..., None, :, :], 0.0)
    B = 0.5 * (-transpose(ad_V) @ inertia - inertia @ ad_V + _bar(matvec(inertia, V)))
    return np.sum(transpose(J) @ (inertia @ J_rate + B @ J), axis=-3)


def _bar(F: Array) -> Array:
    """The matrix with _bar(F) V = -ad(V)^T F."""
    f, n = so3.hat(F[..., :3]), so3.hat(F[..., 3:])
    return block([[np.zeros_like(f), -f], [-f, -n]])


def momentum(tree: Stacked, v: Array) -> Array:
    """(..., 6) linear momentum and angular momentum about the world's origin. [N s, N m s]"""
    J, _ = world_jacobians(tree)
    V = matvec(J, v[..., None, :])
    return np.sum(matvec(world_inertias(tree), V), axis=-2)


def kinetic_energy(tree: Stacked, v: Array) -> Array:
    """(...) sum of V^T I V / 2. [J]"""
    J, _ = world_jacobians(tree)
    V = matvec(J, v[..., None, :])
    return 0.5 * np.sum(V * matvec(world_inertias(tree), V), axis=(-2, -1))


def potential_energy(mass: Array, center: Array, T_w: Array, gravity: Array) -> Array:
    """(...) -sum of m g . c over the links, zero at the world's origin. [J]"""
    centers = matvec(T_w[..., :3, :3], center) + T_w[..., :3, 3]
    return -np.sum(mass * (centers @ gravity), axis=-1)
