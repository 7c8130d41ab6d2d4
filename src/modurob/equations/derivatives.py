"""Exact derivatives of inverse dynamics, O(n depth) (Singh, Russell and Wensing 2022).

Everything is written in world axes about one point, so composites only add. That point is the base:
about a far one, squares of its distance would cost the digits. With twists and
wrenches as (linear, angular) pairs, the velocity matrix of a rigid body,
2 B = V x* I - I V x + (I V) x-bar*, has only two blocks that are not zero:

    2 B = [[0, -2 hat(p)], [0, K]],    p the linear momentum.

For a joint i and a joint j between it and the base (or i itself):

    d tau_i / d q_j = a_i . Psi'_j + b_i . Psi''_j       d tau_j / d q_i = S_j . c_i
    d tau_i / d v_j = a_i . S_j + b_i . (Psi'_j + S'_j)  d tau_j / d v_i = S_j . d_i
    d tau_i / d a_j = b_i . S_j
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from modurob.equations.inverse_dynamics import Load
from modurob.equations.links import SLIP, Link, Links, joint_pose
from modurob.equations.vectors import EYE, ZERO, Mat, Vec, hat, outer, symmetric, turned_symmetric
from modurob.spatial.scalars import sqrt

Pair = Load  # (linear, angular)


class Frame(NamedTuple):
    """Where a link is and how it moves, in world axes from the base.

    `V` and `A` are its twist and the twist's rate about the base, gravity in A.
    """

    R: Mat
    p: Vec
    V: Pair
    A: Pair


class Column(NamedTuple):
    """A joint's screw S in the world, V_parent x S, A_parent x S + V_parent x (V_parent x S), and
    its own rate V x S."""

    S: Pair
    psi_rate: Pair
    psi_second: Pair
    S_rate: Pair


class Bundle(NamedTuple):
    """A link with everything beyond it, about the base: it only adds.

    mass, moment, second: of mass; momentum and K: the blocks of 2 B; load: the inertial wrench.
    """

    mass: Any
    moment: Vec
    second: Mat
    momentum: Vec
    K: Mat
    load: Pair


class Reach(NamedTuple):
    """What joint i needs for its pairs: a (angular only), b, c, d above."""

    a: Vec
    b: Pair
    c: Pair
    d: Pair


def bracket(V: Pair, U: Pair) -> Pair:
    """V x U for twists."""
    return Pair(V.n.cross(U.f) + V.f.cross(U.n), V.n.cross(U.n))


def dual_bracket(V: Pair, F: Pair) -> Pair:
    """V x* F for a twist and a wrench."""
    return Pair(V.n.cross(F.f), V.f.cross(F.f) + V.n.cross(F.n))


def plus(one: Pair, other: Pair) -> Pair:
    return Pair(one.f + other.f, one.n + other.n)


def times(one: Pair, scalar: Any) -> Pair:
    return Pair(one.f * scalar, one.n * scalar)


def paired(one: Pair, other: Pair) -> Any:
    return one.f.dot(other.f) + one.n.dot(other.n)


def screw(link: Link, R: Mat, p: Vec) -> Pair:
    """The joint's unit screw in world axes: it acts along the link's x axis."""
    x = R.column(0)
    return Pair(x, ZERO) if link.prismatic else Pair(p.cross(x), x)


def outward(link: Link, parent: Frame, q: Any, v: Any, a: Any) -> tuple[Frame, Column]:
    """Frame and column of a link from its parent's frame."""
    R_in, p_in = joint_pose(link, q)
    R, p = parent.R @ R_in, parent.p + parent.R @ p_in
    S = screw(link, R, p)
    rate = bracket(parent.V, S)  # of a joint with one screw also V x S
    second = plus(bracket(parent.A, S), bracket(parent.V, rate))
    V = plus(parent.V, times(S, v))
    A = plus(parent.A, plus(times(S, a), times(rate, v)))
    return Frame(R, p, V, A), Column(S, rate, second, rate)


def inertia_times(mass: Any, moment: Vec, second: Mat, U: Pair) -> Pair:
    """I U: linear m v + w x h, angular h x v + J w with J = tr(S) E - S."""
    trace = second[0, 0] + second[1, 1] + second[2, 2]
    turned = U.n * trace - second @ U.n
    return Pair(U.f * mass + U.n.cross(moment), moment.cross(U.f) + turned)


def bundle(link: Link, frame: Frame) -> Bundle:
    """A single link about the base."""
    R, p, V, A = frame
    h = R @ link.moment
    S = turned_symmetric(R, link.second)
    moment = h + p * link.mass
    second = symmetric(lambda i, j: S[i, j] + h[i] * p[j] + p[i] * moment[j])
    momentum = inertia_times(link.mass, moment, second, V)
    load = plus(inertia_times(link.mass, moment, second, A), dual_bracket(V, momentum))
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
    return Bundle(link.mass, moment, second, momentum.f, even - hat(momentum.n), load)


def added(one: Bundle, other: Bundle) -> Bundle:
    """Two bundles on the same link."""
    return Bundle(
        one.mass + other.mass,
        one.moment + other.moment,
        symmetric(lambda i, j: one.second[i, j] + other.second[i, j]),
        one.momentum + other.momentum,
        one.K + other.K,
        plus(one.load, other.load),
    )


def reach(column: Column, body: Bundle) -> Reach:
    """The vectors that a joint's pairs are made of."""
    S, rate, second, S_rate = column
    p, K = body.momentum, body.K

    def inertia(U: Pair) -> Pair:
        return inertia_times(body.mass, body.moment, body.second, U)

    def twice_B(U: Pair) -> Pair:
        return Pair(U.n.cross(p) * 2, K @ U.n)

    a = p.cross(S.f) * 2 + K.T @ S.n
    c = plus(plus(twice_B(rate), inertia(second)), dual_bracket(S, body.load))
    d = plus(twice_B(S), inertia(plus(rate, S_rate)))
    return Reach(a, inertia(S), c, d)


class PairDerivatives(NamedTuple):
    """Entries (i, j) and (j, i) of the three matrices, j between i and the base."""

    q_ij: Any
    q_ji: Any
    v_ij: Any
    v_ji: Any
    a_ij: Any


def pair(i: Reach, j: Column) -> PairDerivatives:
    """Joint i seen with a joint j on its way to the base."""
    return PairDerivatives(
        i.a.dot(j.psi_rate.n) + paired(i.b, j.psi_second),
        paired(j.S, i.c),
        i.a.dot(j.S.n) + paired(i.b, plus(j.psi_rate, j.S_rate)),
        paired(j.S, i.d),
        paired(i.b, j.S),
    )


def own(i: Reach, j: Column) -> tuple[Any, Any, Any]:
    """Joint i with itself (or two columns of the base): entries of the three matrices."""
    found = pair(i, j)
    return found.q_ij, found.v_ij, found.a_ij


def base_columns(base: Frame, gravity: Vec) -> list[Column]:
    """The six columns of a free base."""
    upward = Pair(-gravity, ZERO)
    axes = [base.R.column(k) for k in range(3)]
    screws = [Pair(x, ZERO) for x in axes] + [Pair(ZERO, x) for x in axes]
    nothing = Pair(ZERO, ZERO)
    return [Column(S, nothing, bracket(upward, S), bracket(base.V, S)) for S in screws]


def base_frame(R: Mat, twist: Sequence[Any], rate: Sequence[Any], gravity: Vec) -> Frame:
    """Frame of a free base from its twist and its rate, both in the base's frame.

    The origin is at the base: far from it, squares of the distance would cost the digits.
    """
    V, A = (Pair(R @ Vec(x[:3]), R @ Vec(x[3:6])) for x in (twist, rate))
    return Frame(R, ZERO, V, plus(A, Pair(-gravity, ZERO)))


def standing_frame(gravity: Vec) -> Frame:
    """Frame of a fixed base: the world's, accelerating upward."""
    return Frame(EYE, ZERO, Pair(ZERO, ZERO), Pair(-gravity, ZERO))


def friction_slope(link: Link, v: Any) -> Any:
    """d friction / d v: d + c SLIP^2 / (v^2 + SLIP^2)^(3/2)."""
    square = v * v + SLIP * SLIP
    return link.viscous + link.coulomb * (SLIP * SLIP) / (square * sqrt(square))


def inverse_dynamics_derivatives(
    links: Links,
    q: Sequence[Any],
    v: Sequence[Any],
    a: Sequence[Any],
    base: Frame,
    columns: Sequence[Column] = (),
) -> tuple[list[list[Any]], list[list[Any]], list[list[Any]]]:
    """d tau by q, v and a; `columns` are those of a free base, which come first."""
    frames, joints = [base], []
    for link, qi, vi, ai in zip(links[1:], q, v, a, strict=True):
        frame, column = outward(link, frames[link.parent], qi, vi, ai)
        frames.append(frame)
        joints.append(column)
    bodies = [bundle(link, frame) for link, frame in zip(links, frames, strict=True)]
    for i in range(len(links) - 1, 0, -1):
        bodies[links[i].parent] = added(bodies[links[i].parent], bodies[i])
    offset = len(columns)
    nv = offset + len(joints)
    dq, dv, da = ([[0] * nv for _ in range(nv)] for _ in range(3))

    def put(i: int, j: int, found: PairDerivatives) -> None:
        dq[i][j], dq[j][i] = found.q_ij, found.q_ji
        dv[i][j], dv[j][i] = found.v_ij, found.v_ji
        da[i][j] = da[j][i] = found.a_ij

    for k, column in enumerate(joints):
        i, at = reach(column, bodies[k + 1]), offset + k
        dq[at][at], dv[at][at], da[at][at] = own(i, column)
        dv[at][at] = dv[at][at] + friction_slope(links[k + 1], v[k])
        above = links[k + 1].parent
        while above > 0:
            put(at, offset + above - 1, pair(i, joints[above - 1]))
            above = links[above].parent
        for j, other in enumerate(columns):
            put(at, j, pair(i, other))
    for k, column in enumerate(columns):
        i = reach(column, bodies[0])
        for j, other in enumerate(columns):
            dq[k][j], dv[k][j], da[k][j] = own(i, other)
    return dq, dv, da
