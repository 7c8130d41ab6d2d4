"""The closed form of the documents (meister2013 (29)-(33), docs/theory/dynamics.md).

Everything here is stacked over the links: S (screws), M (inertias) and the transmission matrix T
with blocks Ad(T_ij^-1) for every ancestor j of i and the identity on the diagonal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from modurob.spatial import se3
from modurob.spatial.scalars import Array, common, transpose


class Stacked(NamedTuple):
    """A tree at one configuration.

    Attributes:
        parent: (links,) parent of each link that moves, -1 behind the fixed world.
        S: (links, 6, nv) screws; row i has nonzeros only in its own columns.
        M: (links, 6, 6) inertias in the link frames, linear part first.
        T_w: (..., links, 4, 4) poses in the world.
    """

    parent: Sequence[int]
    S: Array
    M: Array
    T_w: Array


class ClosedForm(NamedTuple):
    """M(q) a + C(q, v) v + N(q) = tau, friction aside."""

    M: Array
    C: Array
    N: Array


def transmission(tree: Stacked) -> Array:
    """(..., 6 links, 6 links) T."""
    links = len(tree.parent)
    T = np.zeros((*tree.T_w.shape[:-3], links, 6, links, 6), dtype=tree.T_w.dtype)
    for i in range(links):
        T_iw = se3.inverse(tree.T_w[..., i, :, :])
        j = i
        while j >= 0:
            T[..., i, :, j, :] = se3.Ad(T_iw @ tree.T_w[..., j, :, :])
            j = tree.parent[j]
    return T.reshape(*tree.T_w.shape[:-3], 6 * links, 6 * links)


def block_diagonal(blocks: Array) -> Array:
    """(..., 6 k, 6 k) from (..., k, 6, 6)."""
    k = blocks.shape[-3]
    result = np.zeros((*blocks.shape[:-3], k, 6, k, 6), dtype=blocks.dtype)
    for i in range(k):
        result[..., i, :, i, :] = blocks[..., i, :, :]
    return result.reshape(*blocks.shape[:-3], 6 * k, 6 * k)


def closed_form(tree: Stacked, v: Array, gravity: Array) -> ClosedForm:
    """M, C and N exactly as in the documents.

    C is theirs: dM/dt - 2 C is not skew with it; `coriolis.skew_coriolis` is for that.

    Args:
        v: (..., nv) velocities.
        gravity: (3,) in the world frame.
    """
    S_i, M_i, v, T_w = common(tree.S, tree.M, v, tree.T_w)
    T = transmission(tree)
    links, nv = len(tree.parent), S_i.shape[-1]
    S = S_i.reshape(6 * links, nv)
    M = block_diagonal(M_i)
    Sv = (S_i @ v[..., None, :, None])[..., 0]  # s_i dq_i of each link
    V = (T @ S @ v[..., None]).reshape(*v.shape[:-1], links, 6)
    adS = block_diagonal(-se3.ad(Sv))
    adV = block_diagonal(-transpose(se3.ad(V)))
    ST = transpose(S) @ transpose(T)
    upward = np.concatenate([-np.asarray(gravity), np.zeros(3)])
    T_0 = se3.Ad(se3.inverse(T_w)).reshape(*T_w.shape[:-3], 6 * links, 6)
    return ClosedForm(
        M=ST @ M @ T @ S,
        C=ST @ (M @ T @ adS + adV @ M) @ T @ S,
        N=(ST @ M @ T_0 @ upward[:, None])[..., 0],
    )
