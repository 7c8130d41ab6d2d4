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

from modurob.equations.links import Link, base_screws, friction_slope, joint_pose, screw
from modurob.equations.mass_matrix import inertia_times
from modurob.equations.passes import LATER, Base, Entries, Joint, Matrices, Passes
from modurob.equations.vectors import (
    EYE,
    ZERO,
    Mat,
    Symmetric,
    Twist,
    Vec,
    Wrench,
    hat,
    outer,
    symmetric,
    turned_symmetric,
)


class Frame(NamedTuple):
    """Pose of a link from the base in world axes, and its motion.

    `V` and `A` are its twist and the twist's rate about the base, gravity in A.
    """

    R: Mat
    p: Vec
    V: Twist
    A: Twist


class Column(NamedTuple):
    """A joint's screw S in the world, V_parent x S, A_parent x S + V_parent x (V_parent x S), and
    its own rate V x S."""

    S: Twist
    psi_rate: Twist
    psi_second: Twist
    S_rate: Twist


class CompositeMotion(NamedTuple):
    """A link with everything beyond it, about the base: composites only add.

    mass, moment, second: of mass; momentum and K: the blocks of 2 B; load: the inertial wrench.
    """

    mass: Any
    moment: Vec
    second: Symmetric
    momentum: Vec
    K: Mat
    load: Wrench


class JointTerms(NamedTuple):
    """The vectors a (angular only), b, c, d of joint i above."""

    a: Vec
    b: Wrench
    c: Wrench
    d: Wrench


def outward(link: Link, parent: Frame, joint: Joint) -> tuple[Frame, Column]:
    """Frame of a link from its parent's, and the column of its joint as users read it."""
    R_in, p_in = joint_pose(link, joint.q)
    R, p = parent.R @ R_in, parent.p + parent.R @ p_in
    S = screw(link, R, p)
    rate = parent.V.cross(S)  # of a joint with one screw also V x S
    second = parent.A.cross(S).plus(parent.V.cross(rate))
    V = parent.V.plus(S.times(joint.v))
    A = parent.A.plus(S.times(joint.x).plus(rate.times(joint.v)))
    S, rate, second = (x.times(link.sign) for x in (S, rate, second))
    return Frame(R, p, V, A), Column(S, rate, second, rate)


def alone(link: Link, frame: Frame) -> CompositeMotion:
    """A single link about the base."""
    R, p, V, A = frame
    h = R @ link.moment
    S = turned_symmetric(R, link.second)
    moment = h + p * link.mass
    second = symmetric(lambda i, j: S[i, j] + h[i] * p[j] + p[i] * moment[j])
    momentum = inertia_times(link.mass, moment, second, V)
    load = inertia_times(link.mass, moment, second, A).plus(V.cross_wrench(momentum))
    v, w = V
    # K = w^ J - J w^ - v^ h^ - h^ v^ - l^, with J = tr(S) E - S; symmetric part and l^
    turned = hat(w) @ second
    swept = outer(v, moment)
    reach = 2 * v.dot(moment)
    even = symmetric(
        lambda i, j: (
            (reach if i == j else 0) - swept[i, j] - swept[j, i] - turned[i, j] - turned[j, i]
        )
    )
    return CompositeMotion(link.mass, moment, second, momentum.f, even - hat(momentum.n), load)


def added(one: CompositeMotion, other: CompositeMotion) -> CompositeMotion:
    """Two bodies that move as one."""
    return CompositeMotion(
        one.mass + other.mass,
        one.moment + other.moment,
        symmetric(lambda i, j: one.second[i, j] + other.second[i, j]),
        one.momentum + other.momentum,
        one.K + other.K,
        one.load.plus(other.load),
    )


def terms(column: Column, body: CompositeMotion) -> JointTerms:
    """The vectors that a joint's pairs are made of."""
    S, rate, second, S_rate = column
    p, K = body.momentum, body.K

    inertia = partial(inertia_times, body.mass, body.moment, body.second)

    def twice_B(U: Twist) -> Wrench:
        return Wrench(U.w.cross(p) * 2, K @ U.w)

    a = p.cross(S.v) * 2 + K.T @ S.w
    c = twice_B(rate).plus(inertia(second)).plus(S.cross_wrench(body.load))
    d = twice_B(S).plus(inertia(rate.plus(S_rate)))
    return JointTerms(a, inertia(S), c, d)


class WorldAxes(Passes):
    """Passes in world axes about the base: frames and columns outward, composites inward."""

    State: Any

    @classmethod
    def base(cls, link: Link, base: Base) -> Any:
        upward = Twist(-base.gravity, ZERO)
        if not base.free:
            return cls.State(Frame(EYE, ZERO, Twist(), upward), NOTHING)
        R, (v, w) = base.rotation(), base.twist
        rate = Twist(R @ Vec(base.x[:3]), R @ Vec(base.x[3:6]))
        frame = Frame(R, ZERO, Twist(R @ v, R @ w), rate.plus(upward))
        return cls.State(frame, alone(link, frame))

    @classmethod
    def outward(cls, link: Link, joint: Joint, parent: Any) -> Any:
        frame, column = outward(link, parent.frame, joint)
        return cls.State(frame, alone(link, frame), column)

    @staticmethod
    def base_columns(base: Base, own: Any) -> list[Column]:
        """The columns of a free base, whose twist is given in its own frame."""
        upward = Twist(-base.gravity, ZERO)
        screws = base_screws(own.frame.R)
        return [Column(S, Twist(), upward.cross(S), own.frame.V.cross(S)) for S in screws]

    @classmethod
    def base_pairs(cls, carried: Any, columns: Sequence[Column]) -> list[Entries]:
        return [cls.pair(carried, column) for column in columns]


class InverseDynamicsDerivatives(WorldAxes):
    """d tau by q, v and a; the columns of a free base come first."""

    class State(NamedTuple):
        frame: Frame
        body: CompositeMotion
        column: Column = LATER
        carried: JointTerms = LATER

    matrices = 3

    @staticmethod
    def inward(link: Link, joint: Joint, own: State, parent: State) -> tuple[Any, State, State]:
        found = terms(own.column, own.body)
        dq, dv, da = (ij for ij, _ in InverseDynamicsDerivatives.pair(found, own.column))
        dv = dv + friction_slope(link, joint.v)
        passed = parent._replace(body=added(parent.body, own.body))
        return (dq, dv, da), own._replace(carried=found), passed

    @staticmethod
    def pair(carried: JointTerms, column: Column) -> Entries:
        i, j = carried, column
        da = j.S.power(i.b)
        return (
            (i.a.dot(j.psi_rate.w) + j.psi_second.power(i.b), j.S.power(i.c)),
            (i.a.dot(j.S.w) + j.psi_rate.plus(j.S_rate).power(i.b), j.S.power(i.d)),
            (da, da),
        )

    @staticmethod
    def base_block(own: State, columns: Sequence[Column]) -> list[list[list[Any]]]:
        pair = InverseDynamicsDerivatives.pair
        found = [[pair(terms(i, own.body), j) for j in columns] for i in columns]
        return [[[entries[k][0] for entries in row] for row in found] for k in range(3)]


class CoriolisTerms(NamedTuple):
    """2 B^T S (angular only), I S and B S + I dS/dt of joint i with everything beyond it."""

    a: Vec
    b: Wrench
    e: Wrench


class CoriolisMatrix(WorldAxes):
    """C with C v the velocity forces and dM/dt - 2 C skew (Echeandia and Wensing 2021).

    C = sum over the links of J^T (I dJ/dt + B J).
    """

    class State(NamedTuple):
        frame: Frame
        body: CompositeMotion
        column: Column = LATER
        carried: CoriolisTerms = LATER

    matrices = 1

    @staticmethod
    def inward(link: Link, joint: Joint, own: State, parent: State) -> tuple[Any, State, State]:
        found = coriolis_terms(own.column, own.body)
        diagonal = CoriolisMatrix.pair(found, own.column)[0][0]
        passed = parent._replace(body=added(parent.body, own.body))
        return (diagonal,), own._replace(carried=found), passed

    @staticmethod
    def pair(carried: CoriolisTerms, column: Column) -> Entries:
        i, j = carried, column
        return ((i.a.dot(j.S.w) * 0.5 + j.S_rate.power(i.b), j.S.power(i.e)),)

    @staticmethod
    def base_block(own: State, columns: Sequence[Column]) -> list[list[list[Any]]]:
        found = [coriolis_terms(i, own.body) for i in columns]
        return [[[CoriolisMatrix.pair(i, j)[0][0] for j in columns] for i in found]]


def coriolis_terms(column: Column, body: CompositeMotion) -> CoriolisTerms:
    """The vectors that a joint's pairs in the Coriolis matrix are made of."""
    S, p, K = column.S, body.momentum, body.K
    inertia = partial(inertia_times, body.mass, body.moment, body.second)
    half = Wrench(S.w.cross(p), (K @ S.w) * 0.5)
    a = p.cross(S.v) * 2 + K.T @ S.w
    return CoriolisTerms(a, inertia(S), half.plus(inertia(column.S_rate)))


NO_MATRIX = Mat([[0] * 3] * 3)
NOTHING = CompositeMotion(0, ZERO, NO_MATRIX, ZERO, NO_MATRIX, Wrench())


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
