"""Exact derivatives of inverse dynamics, O(n depth) (Singh, Russell and Wensing 2022).

Everything is written in world axes about the base, so composites only add; about a far point,
squares of its distance would cost digits. With twists and wrenches as (linear, angular) pairs, the
velocity matrix of a rigid body,
2 B = V x* I - I V x + (I V) x-bar*, has only two blocks that are not zero:

    2 B = [[0, -2 hat(p)], [0, K]],    p the linear momentum.

For a joint i and a joint j between it and the base (or i itself):

    d tau_i / d q_j = a_i . Psi'_j + b_i . Psi''_j       d tau_j / d q_i = S_j . c_i
    d tau_i / d v_j = a_i . S_j + b_i . (Psi'_j + S'_j)  d tau_j / d v_i = S_j . d_i
    d tau_i / d a_j = b_i . S_j
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from modurob.equations.links import RigidLink, base_screws, friction_slope, joint_pose, screw
from modurob.equations.mass_matrix import Composite, composite, inertia_times, to_parent
from modurob.equations.mass_matrix import added as added_composites
from modurob.equations.passes import LATER, Base, Entries, Inward, JointState, Matrices, Passes
from modurob.equations.vectors import (
    EYE,
    ZERO,
    ZERO_MATRIX,
    Mat,
    Twist,
    Vec,
    Wrench,
    hat,
    outer,
    symmetric,
)


class Frame(NamedTuple):
    """Pose of a link from the base in world axes, and its motion.

    `V` and `A` are its twist and the twist's rate about the base, gravity in A.
    """

    R: Mat
    p: Vec
    V: Twist
    A: Twist


class ScrewColumn(NamedTuple):
    """A joint's screw S in the world, V_parent x S, A_parent x S + V_parent x (V_parent x S), its
    own rate V x S, and the sum of both rates."""

    S: Twist
    psi_rate: Twist
    psi_second: Twist
    S_rate: Twist
    rates: Twist


class CompositeMotion(NamedTuple):
    """A link with everything beyond it, about the base: composites only add.

    momentum and K: the blocks of 2 B; load: the inertial wrench.
    """

    body: Composite
    momentum: Vec
    K: Mat
    load: Wrench


class JointTerms(NamedTuple):
    """The vectors a (angular only), b, c, d of joint i above."""

    a: Vec
    b: Wrench
    c: Wrench
    d: Wrench


def outward(link: RigidLink, parent: Frame, joint: JointState) -> tuple[Frame, ScrewColumn]:
    """Frame of a link from its parent's, and the column of its joint as users read it."""
    R_in, p_in = joint_pose(link, joint.q)
    R, p = parent.R @ R_in, parent.p + parent.R @ p_in
    S = screw(link, R, p)
    rate = parent.V.cross(S)  # of a joint with one screw also V x S
    second = parent.A.cross(S).plus(parent.V.cross(rate))
    V = parent.V.plus(S.times(joint.v))
    A = parent.A.plus(S.times(joint.x).plus(rate.times(joint.v)))
    S, rate, second = (x.times(link.sign) for x in (S, rate, second))
    return Frame(R, p, V, A), ScrewColumn(S, rate, second, rate, rate.plus(rate))


def alone(link: RigidLink, frame: Frame) -> CompositeMotion:
    """A single link about the base."""
    R, p, V, A = frame
    body = to_parent(R, p, composite(link))
    momentum = inertia_times(body, V)
    load = inertia_times(body, A).plus(V.cross_wrench(momentum))
    v, w = V
    # K = w^ J - J w^ - v^ h^ - h^ v^ - l^, with J = tr(S) E - S; symmetric part and l^
    turned, swept = hat(w) @ body.second, outer(v, body.moment)
    reach = 2 * v.dot(body.moment)
    even = symmetric(
        lambda i, j: (
            (reach if i == j else 0) - swept[i, j] - swept[j, i] - turned[i, j] - turned[j, i]
        )
    )
    return CompositeMotion(body, momentum.f, even - hat(momentum.n), load)


def added(one: CompositeMotion, other: CompositeMotion) -> CompositeMotion:
    """Two bodies that move as one."""
    return CompositeMotion(
        added_composites(one.body, other.body),
        one.momentum + other.momentum,
        one.K + other.K,
        one.load.plus(other.load),
    )


MASSLESS = CompositeMotion(Composite(0, ZERO, ZERO_MATRIX), ZERO, ZERO_MATRIX, Wrench())


def terms(column: ScrewColumn, moved: CompositeMotion) -> JointTerms:
    """The vectors that a joint's pairs are made of."""
    S, rate, second, _, rates = column
    p, K = moved.momentum, moved.K
    inertia = partial(inertia_times, moved.body)

    def twice_B(U: Twist) -> Wrench:
        return Wrench(U.w.cross(p) * 2, K @ U.w)

    a = p.cross(S.v) * 2 + K.T @ S.w
    c = twice_B(rate).plus(inertia(second)).plus(S.cross_wrench(moved.load))
    d = twice_B(S).plus(inertia(rates))
    return JointTerms(a, inertia(S), c, d)


class WorldAxes(Passes):
    """Passes in world axes about the base: frames and columns outward, composites inward.

    `terms(column, composite)` are the vectors of a joint that `pair` needs.
    """

    State: Any
    terms: Any

    @classmethod
    def base(cls, link: RigidLink, base: Base) -> Any:
        upward = Twist(-base.gravity, ZERO)
        if not base.free:
            return cls.State(Frame(EYE, ZERO, Twist(), upward), MASSLESS)
        R, (v, w) = base.rotation(), base.twist
        rate = Twist(R @ Vec(base.x[:3]), R @ Vec(base.x[3:]))
        frame = Frame(R, ZERO, Twist(R @ v, R @ w), rate.plus(upward))
        return cls.State(frame, alone(link, frame))

    @classmethod
    def outward(cls, link: RigidLink, joint: JointState, parent: Any) -> Any:
        frame, column = outward(link, parent.frame, joint)
        return cls.State(frame, alone(link, frame), column)

    @classmethod
    def inward(cls, link: RigidLink, joint: JointState, own: Any, parent: Any) -> Inward:
        found = cls.terms(own.column, own.body)
        diagonal = tuple(ij for ij, _ in cls.pair(found, own.column))
        passed = parent._replace(body=added(parent.body, own.body))
        return diagonal, own._replace(carried=found), passed

    @staticmethod
    def base_columns(base: Base, own: Any) -> list[ScrewColumn]:
        """The columns of a free base, whose twist is given in its own frame."""
        upward = Twist(-base.gravity, ZERO)
        found = []
        for S in base_screws(own.frame.R):
            rate = own.frame.V.cross(S)
            found.append(ScrewColumn(S, Twist(), upward.cross(S), rate, rate))
        return found

    @classmethod
    def base_pairs(cls, carried: Any, columns: Sequence[ScrewColumn]) -> list[Entries]:
        return [cls.pair(carried, column) for column in columns]

    @classmethod
    def base_block(cls, own: Any, columns: Sequence[ScrewColumn]) -> list[list[list[Any]]]:
        rows = [cls.terms(i, own.body) for i in columns]
        found = [[cls.pair(i, j) for j in columns] for i in rows]
        return [[[pair[k][0] for pair in row] for row in found] for k in range(len(found[0][0]))]


class DerivativeLink(NamedTuple):
    """State of a link in the derivatives of the dynamics."""

    frame: Frame
    body: CompositeMotion
    column: ScrewColumn = LATER
    carried: JointTerms = LATER


class InverseDynamicsDerivatives(WorldAxes):
    """d tau by q, v and a; the columns of a free base come first."""

    State = DerivativeLink
    matrices = 3
    terms = staticmethod(terms)

    @classmethod
    def inward(cls, link: RigidLink, joint: JointState, own: Any, parent: Any) -> Inward:
        (dq, dv, da), own, parent = super().inward(link, joint, own, parent)
        slope = friction_slope(link.viscous, link.coulomb, joint.v)
        return (dq + link.stiffness, dv + slope, da + link.armature), own, parent

    @staticmethod
    def pair(carried: JointTerms, column: ScrewColumn) -> Entries:
        i, j = carried, column
        da = j.S.power(i.b)
        return (
            (i.a.dot(j.psi_rate.w) + j.psi_second.power(i.b), j.S.power(i.c)),
            (i.a.dot(j.S.w) + j.rates.power(i.b), j.S.power(i.d)),
            (da, da),
        )


class ForwardDynamicsDerivatives(InverseDynamicsDerivatives):
    """d a by q, v and tau: those of inverse dynamics at that acceleration, solved for it.

    ``M X = -R`` for R = (d tau/dq, d tau/dv, -E). Eliminated from the tips inward, M fills nothing
    in: cells that are zero because two joints lie on different branches stay zero (Featherstone
    2005). X then follows from the base outward.
    """

    RESPONSE, MASS = 2, 3
    matrices = 4
    places = (0, 1, MASS)
    results = 3

    @staticmethod
    def finish(m: Matrices) -> None:
        response, mass = ForwardDynamicsDerivatives.RESPONSE, ForwardDynamicsDerivatives.MASS
        right = range(ForwardDynamicsDerivatives.results)
        m.each(lambda i: m.put(response, i, i, -1))

        def add_row(target: Any, factor: Any, source: Any) -> None:
            for k in right:
                m.each(
                    lambda j, k=k: m.put(
                        k, target, j, m.get(k, target, j) + factor * m.get(k, source, j)
                    )
                )

        def eliminate(tip: Any) -> None:
            pivot = m.get(mass, tip, tip)

            def update(i: Any) -> None:
                factor = -m.get(mass, i, tip) / pivot

                def both(j: Any) -> None:
                    value = m.get(mass, i, j) + factor * m.get(mass, tip, j)
                    m.put(mass, i, j, value)
                    m.put(mass, j, i, value)

                both(i)
                m.each_above(i, both)
                add_row(i, factor, tip)

            m.each_above(tip, update)

        def substitute(i: Any) -> None:
            m.each_above(i, lambda k: add_row(i, m.get(mass, i, k), k))
            scale = -1 / m.get(mass, i, i)
            for k in right:
                m.each(lambda j, k=k: m.put(k, i, j, m.get(k, i, j) * scale))

        m.each_inward(eliminate)
        m.each(substitute)
