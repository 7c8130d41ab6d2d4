"""Forward dynamics: articulated bodies, O(n) (Featherstone), over any scalar.

Wrench of a link with everything beyond it: ``(f; n) = I (a; alpha) + bias`` with
``I = [[A, B], [B^T, D]]``. As in inverse dynamics, accelerations are those of the origin, so no
linear velocity is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from modurob.equations.inverse_dynamics import Load, inward
from modurob.equations.links import Link, Links, friction, inertia, joint_pose
from modurob.equations.vectors import EYE, ZERO, Mat, Vec, hat, symmetric, turned_symmetric
from modurob.spatial.scalars import sqrt


class Articulated(NamedTuple):
    """Inertia blocks and bias wrench of a link with all beyond it."""

    A: Mat
    B: Mat
    D: Mat
    bias: Load


class Hinged(NamedTuple):
    """What the way inward leaves for the way back out: I s, 1/(s^T I s), s^T (tau - bias)."""

    U: Load
    inverse: Any
    u: Any


def swing(w: Vec) -> Mat:
    """hat(w)^2, each product formed once."""
    x, y, z = w
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    return Mat([[-(yy + zz), xy, xz], [xy, -(xx + zz), yz], [xz, yz, -(xx + yy)]])


def outward(link: Link, w_parent: Vec, R: Mat, p: Vec, v: Any) -> tuple[Vec, Load]:
    """Angular velocity of a link and its velocity-dependent acceleration (linear, angular)."""
    R_T = R.T
    w = R_T @ w_parent
    linear = R_T @ (swing(w_parent) @ p)
    if link.prismatic:
        sweep = 2 * v
        return w, Load(linear + Vec([0, w[2] * sweep, -(w[1] * sweep)]), ZERO)
    return Vec([w[0] + v, w[1], w[2]]), Load(linear, Vec([0, w[2] * v, -(w[1] * v)]))


def alone(link: Link, w: Vec) -> Articulated:
    """A single link: its inertia and the wrench of its swing."""
    J = inertia(link)
    bias = Load(swing(w) @ link.moment, w.cross(J @ w))
    return Articulated(link.mass * EYE, hat(-link.moment), J, bias)


def hinge(link: Link, body: Articulated, tau: Any) -> Hinged:
    """Project onto the joint; `tau` is without friction."""
    if link.prismatic:
        U = Load(body.A.column(0), body.B.row(0))
        return Hinged(U, 1 / U.f[0], tau - body.bias.f[0])
    U = Load(body.B.column(0), body.D.column(0))
    return Hinged(U, 1 / U.n[0], tau - body.bias.n[0])


def handed_on(link: Link, body: Articulated, joint: Hinged, c: Load) -> Articulated:
    """What the parent feels through a joint that gives way, in the link's frame."""
    (U_f, U_n), inv = joint.U, joint.inverse
    K_f, K_n = U_f * inv, U_n * inv
    # nothing is felt along the joint itself: those rows and columns are zero, not round-off
    slides, turns = (0, None) if link.prismatic else (None, 0)

    def less(value: Any, felt: Any, gone: bool) -> Any:
        return 0 if gone else value - felt

    A = symmetric(lambda i, j: less(body.A[i, j], U_f[i] * K_f[j], slides in (i, j)))
    D = symmetric(lambda i, j: less(body.D[i, j], U_n[i] * K_n[j], turns in (i, j)))
    B = Mat(
        [
            [less(body.B[i, j], U_f[i] * K_n[j], i == slides or j == turns) for j in range(3)]
            for i in range(3)
        ]
    )
    f = body.bias.f + A @ c.f + B @ c.n + K_f * joint.u
    n = body.bias.n + B.T @ c.f + D @ c.n + K_n * joint.u
    return Articulated(A, B, D, Load(f, n))


def to_parent(R: Mat, p: Vec, body: Articulated) -> Articulated:
    """The same articulated body about the parent's origin, in the parent's frame."""
    A, D = turned_symmetric(R, body.A), turned_symmetric(R, body.D)
    B = R @ body.B @ R.T
    P = hat(p)
    AP = A @ P
    B_moved = B - AP
    PB, PB_moved = P @ B, P @ B_moved
    D = symmetric(lambda i, j: D[i, j] + PB_moved[i, j] + PB[j, i])
    return Articulated(A, B_moved, D, inward(R, p, body.bias))


def added(one: Articulated, other: Articulated) -> Articulated:
    """Two articulated bodies on the same link."""

    def total(M: Mat, N: Mat) -> Mat:
        return symmetric(lambda i, j: M[i, j] + N[i, j])

    bias = Load(one.bias.f + other.bias.f, one.bias.n + other.bias.n)
    return Articulated(total(one.A, other.A), one.B + other.B, total(one.D, other.D), bias)


def accelerated(
    link: Link, joint: Hinged, R: Mat, p: Vec, parent: Load, c: Load
) -> tuple[Any, Load]:
    """Joint acceleration, and the accelerations (linear, angular) of the link."""
    R_T = R.T
    linear = R_T @ (parent.f + parent.n.cross(p)) + c.f
    angular = R_T @ parent.n + c.n
    a = joint.inverse * (joint.u - joint.U.f.dot(linear) - joint.U.n.dot(angular))
    if link.prismatic:
        return a, Load(Vec([linear[0] + a, linear[1], linear[2]]), angular)
    return a, Load(linear, Vec([angular[0] + a, angular[1], angular[2]]))


def forward_dynamics(
    links: Links,
    q: Sequence[Any],
    v: Sequence[Any],
    tau: Sequence[Any],
    gravity: Vec,
    base_twist: Sequence[Any] | None = None,
    base_wrench: Sequence[Any] | None = None,
    external: Sequence[Load | None] | None = None,
) -> tuple[list[Any], list[Any]]:
    """Joint accelerations, and the rate of the base's twist (empty for a fixed base).

    Args:
        gravity: In the base's frame.
        base_twist, base_wrench: Six scalars each for a free base.
        external: Wrench on each link, in its frame.
    """
    spins = [ZERO if base_twist is None else Vec(base_twist[3:6])]
    poses: list[tuple[Mat, Vec]] = []
    drifts: list[Load] = []
    for link, qi, vi in zip(links[1:], q, v, strict=True):
        R, p = joint_pose(link, qi)
        w, drift = outward(link, spins[link.parent], R, p, vi)
        poses.append((R, p))
        spins.append(w)
        drifts.append(drift)
    bodies = [alone(link, w) for link, w in zip(links, spins, strict=True)]
    if external is not None:
        for i, push in enumerate(external):
            if push is not None:
                f, n = bodies[i].bias
                bodies[i] = bodies[i]._replace(bias=Load(f - push.f, n - push.n))
    joints: list[Any] = [None] * len(links)
    for i in range(len(links) - 1, 0, -1):
        link = links[i]
        joints[i] = hinge(link, bodies[i], tau[i - 1] - friction(link, v[i - 1]))
        felt = handed_on(link, bodies[i], joints[i], drifts[i - 1])
        R, p = poses[i - 1]
        bodies[link.parent] = added(bodies[link.parent], to_parent(R, p, felt))
    if base_twist is None or base_wrench is None:
        accelerations, base_rate = [Load(-gravity, ZERO)], []
    else:
        base, base_rate = free_base(bodies[0], base_twist, base_wrench, gravity)
        accelerations = [base]
    result = []
    for i in range(1, len(links)):
        link = links[i]
        R, p = poses[i - 1]
        parent, drift = accelerations[link.parent], drifts[i - 1]
        a, moved = accelerated(link, joints[i], R, p, parent, drift)
        result.append(a)
        accelerations.append(moved)
    return result, base_rate


def free_base(
    body: Articulated, twist: Sequence[Any], wrench: Sequence[Any], gravity: Vec
) -> tuple[Load, list[Any]]:
    """Accelerations of a free base (gravity in), and the rate of its twist."""
    A, B, D, bias = body
    M = [[*(A[i, j] for j in range(3)), *(B[i, j] for j in range(3))] for i in range(3)]
    M += [[*(B[j, i] for j in range(3)), *(D[i, j] for j in range(3))] for i in range(3)]
    right = [
        *(wrench[i] - bias.f[i] for i in range(3)),
        *(wrench[3 + i] - bias.n[i] for i in range(3)),
    ]
    x = solve(M, right)
    moved = Load(Vec(x[:3]), Vec(x[3:]))
    turning = Vec(twist[3:6]).cross(Vec(twist[:3]))
    return moved, [*(moved.f - turning + gravity), *moved.n]


def solve(M: Sequence[Sequence[Any]], right: Sequence[Any]) -> list[Any]:
    """M x = right for a symmetric positive definite M, by Cholesky without pivoting."""
    n = len(right)
    L: list[list[Any]] = [[0] * n for _ in range(n)]
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
    x: list[Any] = [0] * n
    for i in range(n - 1, -1, -1):
        rest = y[i]
        for k in range(i + 1, n):
            rest = rest - L[k][i] * x[k]
        x[i] = rest / L[i][i]
    return x
