"""Forward dynamics: articulated bodies, O(n) (Featherstone), over any scalar.

Wrench of a link with everything beyond it: ``(f; n) = I (a; alpha) + bias`` with
``I = [[A, B], [B^T, D]]``. As in inverse dynamics, accelerations are those of the origin, so no
linear velocity is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from modurob.equations.links import RigidLink, inertia, joint_pose
from modurob.equations.links import to_parent as wrench_to_parent
from modurob.equations.passes import LATER, Base, Inward, JointState, Passes
from modurob.equations.vectors import (
    EYE,
    ZERO,
    ZERO_MATRIX,
    Mat,
    Symmetric,
    Twist,
    Vec,
    Wrench,
    hat,
    symmetric,
    turned_symmetric,
)
from modurob.spatial.scalars import sqrt


class Articulated(NamedTuple):
    """Inertia blocks and bias wrench of a link with all beyond it."""

    A: Symmetric
    B: Mat
    D: Symmetric
    bias: Wrench


MASSLESS = Articulated(ZERO_MATRIX, ZERO_MATRIX, ZERO_MATRIX, Wrench())


class ProjectedBody(NamedTuple):
    """An articulated body seen from its joint: U = I s, 1/(s^T I s), u = tau - s^T bias."""

    U: Wrench
    inverse: Any
    u: Any


def swing(w: Vec) -> Mat:
    """hat(w)^2, each product formed once."""
    x, y, z = w
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    return Mat([[-(yy + zz), xy, xz], [xy, -(xx + zz), yz], [xz, yz, -(xx + yy)]])


def outward(link: RigidLink, w_parent: Vec, R: Mat, p: Vec, v: Any) -> tuple[Vec, Twist]:
    """Angular velocity of a link, and its acceleration that depends on velocities only."""
    R_T = R.T
    w = R_T @ w_parent
    linear = R_T @ (swing(w_parent) @ p)
    if link.prismatic:
        sweep = 2 * v
        return w, Twist(linear + Vec([0, w[2] * sweep, -(w[1] * sweep)]), ZERO)
    return Vec([w[0] + v, w[1], w[2]]), Twist(linear, Vec([0, w[2] * v, -(w[1] * v)]))


def swing_wrench(link: RigidLink, w: Vec) -> Wrench:
    """The wrench that keeps a link turning with w about its origin."""
    return Wrench(swing(w) @ link.moment, w.cross(inertia(link) @ w))


def alone(link: RigidLink, bias: Wrench) -> Articulated:
    """A single link."""
    return Articulated(link.mass * EYE, hat(-link.moment), inertia(link), bias)


def projected(link: RigidLink, body: Articulated, tau: Any) -> ProjectedBody:
    """Project onto the joint; `tau` is without friction."""
    if link.prismatic:
        U = Wrench(body.A.column(0), body.B.row(0))
        return ProjectedBody(U, 1 / (U.f[0] + link.armature), tau - body.bias.f[0])
    U = Wrench(body.B.column(0), body.D.column(0))
    return ProjectedBody(U, 1 / (U.n[0] + link.armature), tau - body.bias.n[0])


def reduced(link: RigidLink, body: Articulated, joint: ProjectedBody, c: Twist) -> Articulated:
    """Articulated body that acts on the parent through the joint, in the link's frame."""
    (U_f, U_n), inv = joint.U, joint.inverse
    K_f, K_n = U_f * inv, U_n * inv
    # along the joint itself nothing acts but the rotor: zero without one, not round-off
    slides, turns = (0, None) if link.prismatic else (None, 0)
    rotor_f, rotor_n = K_f * link.armature, K_n * link.armature

    A = symmetric(
        lambda i, j: rotor_f[i + j] if slides in (i, j) else body.A[i, j] - U_f[i] * K_f[j]
    )
    D = symmetric(
        lambda i, j: rotor_n[i + j] if turns in (i, j) else body.D[i, j] - U_n[i] * K_n[j]
    )

    def coupling(i: int, j: int) -> Any:
        if i == slides:
            return rotor_n[j]
        return rotor_f[i] if j == turns else body.B[i, j] - U_f[i] * K_n[j]

    B = Mat([[coupling(i, j) for j in range(3)] for i in range(3)])
    f = body.bias.f + A @ c.v + B @ c.w + K_f * joint.u
    n = body.bias.n + B.T @ c.v + D @ c.w + K_n * joint.u
    return Articulated(A, B, D, Wrench(f, n))


def to_parent(R: Mat, p: Vec, body: Articulated) -> Articulated:
    """The same articulated body about the parent's origin, in the parent's frame."""
    A, D = turned_symmetric(R, body.A), turned_symmetric(R, body.D)
    B = R @ body.B @ R.T
    P = hat(p)
    AP = A @ P
    B_moved = B - AP
    PB, PB_moved = P @ B, P @ B_moved
    D = symmetric(lambda i, j: D[i, j] + PB_moved[i, j] + PB[j, i])
    return Articulated(A, B_moved, D, wrench_to_parent(R, p, body.bias))


def added(one: Articulated, other: Articulated) -> Articulated:
    """Two articulated bodies on the same link."""

    def total(M: Mat, N: Mat) -> Mat:
        return symmetric(lambda i, j: M[i, j] + N[i, j])

    bias = one.bias.plus(other.bias)
    return Articulated(total(one.A, other.A), one.B + other.B, total(one.D, other.D), bias)


def accelerated(
    link: RigidLink, joint: ProjectedBody, R: Mat, p: Vec, parent: Twist, c: Twist
) -> tuple[Any, Twist]:
    """Acceleration of a joint, and of its link."""
    R_T = R.T
    linear = R_T @ (parent.v + parent.w.cross(p)) + c.v
    angular = R_T @ parent.w + c.w
    a = joint.inverse * (joint.u - joint.U.f.dot(linear) - joint.U.n.dot(angular))
    if link.prismatic:
        return a, Twist(Vec([linear[0] + a, linear[1], linear[2]]), angular)
    return a, Twist(linear, Vec([angular[0] + a, angular[1], angular[2]]))


def free_base(body: Articulated, base: Base) -> tuple[Twist, list[Any]]:
    """Acceleration of a free base less gravity, and the rate of its twist."""
    A, B, D, bias = body
    M = [[*(A[i, j] for j in range(3)), *(B[i, j] for j in range(3))] for i in range(3)]
    M += [[*(B[j, i] for j in range(3)), *(D[i, j] for j in range(3))] for i in range(3)]
    right = [
        *(base.x[i] - bias.f[i] for i in range(3)),
        *(base.x[3 + i] - bias.n[i] for i in range(3)),
    ]
    x = solve(M, right)
    moved = Twist(Vec(x[:3]), Vec(x[3:]))
    turning = base.twist.w.cross(base.twist.v)
    return moved, [*(moved.v - turning + base.own_gravity()), *moved.w]


def solve(M: Sequence[Sequence[Any]], right: Sequence[Any]) -> list[Any]:
    """M x = right for a symmetric positive definite M, by Cholesky without pivoting."""
    n = len(right)
    L: list[list[Any]] = [[None] * n for _ in range(n)]
    for j in range(n):
        for i in range(j, n):
            rest = M[i][j]
            for k in range(j):
                rest = rest - L[i][k] * L[j][k]
            L[i][j] = sqrt(rest) if i == j else rest / L[j][j]
    y: list[Any] = []
    for i in range(n):
        rest = right[i]
        for k in range(i):
            rest = rest - L[i][k] * y[k]
        y.append(rest / L[i][i])
    x: list[Any] = [None] * n
    for i in range(n - 1, -1, -1):
        rest = y[i]
        for k in range(i + 1, n):
            rest = rest - L[k][i] * x[k]
        x[i] = rest / L[i][i]
    return x


class BiasedLink(NamedTuple):
    """State of a link in `ForwardDynamics`."""

    spin: Vec
    drift: Twist
    bias: Wrench
    beyond: Articulated = MASSLESS
    joint: ProjectedBody = LATER
    acceleration: Twist = LATER


class ForwardDynamics(Passes):
    """Joint accelerations, and the rate of a free base's twist."""

    State = BiasedLink

    friction = "x"

    @staticmethod
    def base(link: RigidLink, base: Base) -> BiasedLink:
        w = base.twist.w
        return BiasedLink(w, LATER, swing_wrench(link, w))

    @staticmethod
    def outward(link: RigidLink, joint: JointState, parent: BiasedLink) -> BiasedLink:
        w, drift = outward(link, parent.spin, *joint_pose(link, joint.q), joint.v)
        return BiasedLink(w, drift, swing_wrench(link, w))

    @staticmethod
    def external(own: BiasedLink, wrench: Wrench) -> BiasedLink:
        return own._replace(bias=own.bias.minus(wrench))

    @staticmethod
    def inward(link: RigidLink, joint: JointState, own: BiasedLink, parent: BiasedLink) -> Inward:
        body = added(alone(link, own.bias), own.beyond)
        seen = projected(link, body, joint.x)
        felt = to_parent(*joint_pose(link, joint.q), reduced(link, body, seen, own.drift))
        return None, own._replace(joint=seen), parent._replace(beyond=added(parent.beyond, felt))

    @staticmethod
    def turn(link: RigidLink, base: Base, own: BiasedLink) -> tuple[Any, BiasedLink]:
        if not base.free:
            return None, own._replace(acceleration=Twist(-base.gravity, ZERO))
        moved, rate = free_base(added(alone(link, own.bias), own.beyond), base)
        return rate, own._replace(acceleration=moved)

    @staticmethod
    def back(
        link: RigidLink, joint: JointState, own: BiasedLink, parent: BiasedLink
    ) -> tuple[Any, BiasedLink]:
        R, p = joint_pose(link, joint.q)
        a, moved = accelerated(link, own.joint, R, p, parent.acceleration, own.drift)
        return a, own._replace(acceleration=moved)
