"""Two Coriolis matrices: one with dM/dt - 2 C skew, and that of the documents.

Both are sums over the links, C = sum of J^T (I dJ/dt + B J), in world axes about the base; they
differ in B and in the rate of a free base's columns.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from modurob.equations.derivatives import CompositeMotion, Frame, ScrewColumn, WorldAxes
from modurob.equations.links import RigidLink
from modurob.equations.mass_matrix import inertia_times
from modurob.equations.passes import LATER, Entries, Inward, JointState
from modurob.equations.vectors import Vec, Wrench


class CoriolisTerms(NamedTuple):
    """2 B^T S (angular only), I S and B S + I dS/dt of joint i with everything beyond it."""

    a: Vec
    b: Wrench
    e: Wrench


class CoriolisLink(NamedTuple):
    """State of a link in `CoriolisMatrix`."""

    frame: Frame
    body: CompositeMotion
    column: ScrewColumn = LATER
    carried: CoriolisTerms = LATER


class CoriolisMatrix(WorldAxes):
    """C with C v the velocity forces and dM/dt - 2 C skew (Echeandia and Wensing 2021)."""

    State = CoriolisLink
    matrices = 1

    @staticmethod
    def terms(column: ScrewColumn, moved: CompositeMotion) -> CoriolisTerms:
        S, p, K = column.S, moved.momentum, moved.K
        inertia = partial(inertia_times, moved.body)
        half = Wrench(S.w.cross(p), (K @ S.w) * 0.5)
        a = p.cross(S.v) * 2 + K.T @ S.w
        return CoriolisTerms(a, inertia(S), half.plus(inertia(column.S_rate)))

    @staticmethod
    def pair(carried: CoriolisTerms, column: ScrewColumn) -> Entries:
        i, j = carried, column
        return ((i.a.dot(j.S.w) * 0.5 + j.S_rate.power(i.b), j.S.power(i.e)),)


class ClosedForm(NamedTuple):
    """M(q) a + C(q, v) v + N(q) = tau, friction aside: (..., nv, nv), (..., nv, nv), (..., nv)."""

    M: np.ndarray
    C: np.ndarray
    N: np.ndarray


class ClosedFormTerms(NamedTuple):
    """I S, B S and B S + I dS/dt of joint i with everything beyond it."""

    b: Wrench
    d: Wrench
    e: Wrench


class ClosedFormLink(NamedTuple):
    """State of a link in `ClosedFormMatrices`."""

    frame: Frame
    body: CompositeMotion
    column: ScrewColumn = LATER
    carried: ClosedFormTerms = LATER


class ClosedFormMatrices(WorldAxes):
    """M and C as in the documents (meister2013 (29)-(33), docs/theory/dynamics.md).

    Their C = S^T T^T (M T adS + adV M) T S is, in world axes about any origin,

        C_jk = sum over the links of S_j^T (-I_l ad(V_l - V_p) - ad(V_l)^T I_l) S_k

    with p the parent of the link whose joint is k: dS/dt is V_p x S, and B = V x* I - I V x has the
    blocks [[0, -hat(p)], [hat(p), (K + K^T) / 2]] of the momentum p and of K in `derivatives`.
    dM/dt - 2 C is not skew with it.
    """

    State = ClosedFormLink
    matrices = 2

    @staticmethod
    def terms(column: ScrewColumn, moved: CompositeMotion) -> ClosedFormTerms:
        S, p, K = column.S, moved.momentum, moved.K
        d = Wrench(S.w.cross(p), p.cross(S.v) + (K @ S.w + K.T @ S.w) * 0.5)
        e = d.plus(inertia_times(moved.body, column.psi_rate))
        return ClosedFormTerms(inertia_times(moved.body, S), d, e)

    @classmethod
    def inward(cls, link: RigidLink, joint: JointState, own: Any, parent: Any) -> Inward:
        (M, C), own, parent = super().inward(link, joint, own, parent)
        return (M + link.armature, C), own, parent

    @staticmethod
    def pair(carried: ClosedFormTerms, column: ScrewColumn) -> Entries:
        i, j = carried, column
        M_ij: Any = j.S.power(i.b)
        return (M_ij, M_ij), (j.psi_rate.power(i.b) + j.S.power(i.d), j.S.power(i.e))
