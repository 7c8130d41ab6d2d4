"""The closed form of the documents (meister2013 (29)-(33), docs/theory/dynamics.md).

With the screws S_k of all velocities in world axes, link l moves with V_l, the sum of S_k v_k over
the columns k that carry it. A sum over the links of S_j^T X_l S_k takes only those that both
columns carry; in a tree these are the links beyond the outer one of the two. So the X_l are summed
once for each column, and memory grows with nv^2 for a state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from modurob.spatial import se3
from modurob.spatial.inertia import moved
from modurob.spatial.scalars import Array, matvec, transpose


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
    return (tree.carries.T @ flat).reshape(*flat.shape[:-2], len(tree.owner), 6, 6)


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


class ClosedForm(NamedTuple):
    """M(q) a + C(q, v) v + N(q) = tau, friction aside."""

    M: Array
    C: Array
    N: Array


def closed_form(tree: Stacked, T_w: Array, v: Array, gravity: Array) -> ClosedForm:
    """M, C and N exactly as in the documents.

    Their stacked matrices are sums over the links: with T S the Jacobians of all links,
    C = S^T T^T (M T adS + adV M) T S becomes, in world axes about any origin,

        C_jk = sum over the links of S_j^T (-I_l ad(V_l - V_p) - ad(V_l)^T I_l) S_k

    with p the parent of the link whose joint is k. This C is theirs: dM/dt - 2 C is not skew with
    it; `derivatives.CoriolisMatrix` is for that.

    Args:
        T_w: (..., links, 4, 4) poses of the links.
        v: (..., nv) velocities.
        gravity: (3,) in the world frame.
    """
    S, each = columns(tree, T_w), moved(T_w, tree.M)
    V = twists(tree, S, v)
    I_ad = each @ se3.ad(V)
    inertia, B = beyond(tree, each), beyond(tree, -I_ad - transpose(I_ad))
    V_p = np.where((tree.before >= 0)[:, None], V[..., tree.before, :], 0.0)
    return ClosedForm(
        M=products(tree, S, inertia, np.zeros((6, 6)), S),
        C=products(tree, S, inertia, B, se3.bracket(V_p, S)),
        N=np.sum(S * (inertia[..., :3] @ -np.asarray(gravity)), axis=-1),
    )
