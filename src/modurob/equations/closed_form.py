"""The closed form of the documents (meister2013 (29)-(33), docs/theory/dynamics.md)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modurob.equations.coriolis import Stacked, beyond, columns, products, twists
from modurob.spatial import se3
from modurob.spatial.inertia import moved
from modurob.spatial.scalars import Array, transpose


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
    it; `coriolis.skew_coriolis` is for that.

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
