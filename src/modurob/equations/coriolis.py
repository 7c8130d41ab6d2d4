"""Sums over all links about one point: Coriolis matrices, momentum, energy.

With the screws S_k of all velocities in world axes, link l moves with V_l, the sum of S_k v_k over
the columns k that carry it. A sum over the links of S_j^T X_l S_k takes only those that both
columns carry; in a tree these are the links beyond the outer one of the two. So the X_l are summed
once for each column, and memory grows with nv^2 for a state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from modurob.spatial import se3, so3
from modurob.spatial.inertia import moved
from modurob.spatial.scalars import Array, block, matvec, transpose


class Stacked(NamedTuple):
    """The links that move, and the velocities that move them.

    Attributes:
        screw: (nv, 6) screw of each velocity in the frame of the link it is the joint of.
        owner: (nv,) that link.
        before: (nv,) its parent, -1 for the fixed world.
        carries: (links, nv) 1 where a velocity moves a link, else 0.
        M: (links, 6, 6) inertias in the link frames, linear part first.
    """

    screw: Array
    owner: Array
    before: Array
    carries: Array
    M: Array


def stacked(parent: Sequence[int], owner: Sequence[int], screw: Array, M: Array) -> Stacked:
    """The links of a tree, each after its parent; -1 is the fixed world.

    Args:
        parent: (links,) of the links.
        owner, screw, M: As in `Stacked`.
    """
    links = np.asarray(owner, dtype=np.intp)
    carries = (np.arange(len(parent))[:, None] == links).astype(float)
    for i, above in enumerate(parent):
        if above >= 0:
            carries[i] += carries[above]
    return Stacked(screw, links, np.asarray(parent, dtype=np.intp)[links], carries, M)


def columns(tree: Stacked, T_w: Array) -> Array:
    """(..., nv, 6) screws of all velocities in world axes about the origin."""
    return se3.transform_twist(T_w[..., tree.owner, :, :], tree.screw)


def world_jacobians(tree: Stacked, T_w: Array) -> Array:
    """(..., links, 6, nv) Jacobians of all links in world axes about the origin."""
    return tree.carries[:, None, :] * transpose(columns(tree, T_w))[..., None, :, :]


def twists(tree: Stacked, S: Array, v: Array) -> Array:
    """(..., links, 6) of the links in world axes about the origin, from the columns S."""
    return tree.carries @ (S * v[..., None])


def beyond(tree: Stacked, each: Array) -> Array:
    """(..., nv, 6, 6) sums of (..., links, 6, 6) over the links that each column carries."""
    flat = each.reshape(*each.shape[:-2], 36)
    return (tree.carries.T @ flat).reshape(*flat.shape[:-2], -1, 6, 6)


def products(tree: Stacked, S: Array, inertia: Array, B: Array, rate: Array) -> Array:
    """(..., nv, nv) sum over the links of S_j^T (I_l rate_k + B_l S_k).

    Args:
        S: (..., nv, 6) columns.
        inertia, B: (..., nv, 6, 6) sums beyond each column.
        rate: (..., nv, 6) a rate of each column.
    """
    inside = tree.carries[tree.owner].T  # (j, k): 1 where j lies between k and the base, or is k
    found = inside * (S @ transpose(matvec(inertia, rate) + matvec(B, S)))
    other = matvec(inertia, S) @ transpose(rate) + matvec(transpose(B), S) @ transpose(S)
    return found + (1 - inside) * inside.T * other


def skew_coriolis(tree: Stacked, T_w: Array, v: Array) -> Array:
    """(..., nv, nv) C with C v the velocity forces and dM/dt - 2 C skew.

    C = sum over the links of J^T (I dJ/dt + B J), 2 B = V x* I - I V x + (I V) x-bar*
    (Echeandia and Wensing 2021).

    Args:
        T_w: (..., links, 4, 4) poses of the links, about any origin.
        v: (..., nv) velocities.
    """
    S, inertia = columns(tree, T_w), moved(T_w, tree.M)
    V = twists(tree, S, v)
    I_ad = inertia @ se3.ad(V)
    # a joint's screw moves with the link that carries it
    rate = se3.bracket(V[..., tree.owner, :], S)
    B = 0.5 * (_bar(matvec(inertia, V)) - transpose(I_ad) - I_ad)
    return products(tree, S, beyond(tree, inertia), beyond(tree, B), rate)


def _bar(F: Array) -> Array:
    """The matrix with _bar(F) V = -ad(V)^T F."""
    f, n = so3.hat(F[..., :3]), so3.hat(F[..., 3:])
    return block([[np.zeros_like(f), -f], [-f, -n]])


class Moving(NamedTuple):
    """Twists and momenta (..., links, 6) of the links in their own frames, T_iw their inverses."""

    V: Array
    h: Array
    T_iw: Array


def moving(tree: Stacked, T_w: Array, v: Array) -> Moving:
    """How the links move."""
    T_iw = se3.inverse(T_w)
    V = se3.transform_twist(T_iw, twists(tree, columns(tree, T_w), v))
    return Moving(V, matvec(tree.M, V), T_iw)


def momenta(tree: Stacked, T_w: Array, v: Array) -> Array:
    """(..., links, 6) linear and angular momentum of each link about the origin. [N s, N m s]"""
    _, h, T_iw = moving(tree, T_w, v)
    return se3.transform_wrench(T_iw, h)


def kinetic_energy(tree: Stacked, T_w: Array, v: Array) -> Array:
    """(...) sum of V^T I V / 2. [J]"""
    V, h, _ = moving(tree, T_w, v)
    return 0.5 * np.sum(V * h, axis=(-2, -1))
