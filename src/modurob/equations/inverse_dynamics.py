"""Inverse dynamics: the two-step recursion (meister2013 (17)-(22)).

The documents carry twists V and their rates. Written for the material point r of a link, the same
recursion carries w, alpha and the acceleration a of the origin; the velocity of the origin drops
out, and M dV - ad(V)^T M V becomes one product of A = hat(alpha) + hat(w)^2 with the moments of
mass. docs/theory/dynamics.md has the steps between the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from modurob.equations.links import Link, Links, friction, joint_pose
from modurob.equations.vectors import ZERO, Mat, Vec


class Motion(NamedTuple):
    """How a link moves, in its own frame: w, alpha, A = hat(alpha) + hat(w)^2, a of the origin."""

    w: Vec
    alpha: Vec
    A: Mat
    a: Vec


class Load(NamedTuple):
    """A wrench on a link, in its own frame: force and torque about the origin."""

    f: Vec
    n: Vec


def motion(w: Vec, alpha: Vec, a: Vec) -> Motion:
    """A motion with its acceleration matrix, each product formed once."""
    x, y, z = w
    ax, ay, az = alpha
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    A = Mat(
        [
            [-(yy + zz), xy - az, xz + ay],
            [xy + az, -(xx + zz), yz - ax],
            [xz - ay, yz + ax, -(xx + yy)],
        ]
    )
    return Motion(w, alpha, A, a)


def outward(link: Link, parent: Motion, R: Mat, p: Vec, v: Any, a: Any) -> Motion:
    """Motion of a link from its parent's and its joint's velocity and acceleration."""
    R_T = R.T
    w, alpha = R_T @ parent.w, R_T @ parent.alpha
    a_origin = R_T @ (parent.a + parent.A @ p)
    # w x e_x = (0, w_z, -w_y)
    if link.prismatic:
        sweep = 2 * v
        slide = Vec([a, w[2] * sweep, -(w[1] * sweep)])
        return motion(w, alpha, a_origin + slide)
    alpha = Vec([alpha[0] + a, alpha[1] + w[2] * v, alpha[2] - w[1] * v])
    return motion(Vec([w[0] + v, w[1], w[2]]), alpha, a_origin)


def inertial(link: Link, motion: Motion) -> Load:
    """The wrench that makes a link move so: f = m a + A h, n = skew part of A S + h x a."""
    A, S, h, a = motion.A, link.second, link.moment, motion.a

    def AS(i: int, j: int) -> Any:
        return A.row(i).dot(S.column(j))

    n = Vec([AS(2, 1) - AS(1, 2), AS(0, 2) - AS(2, 0), AS(1, 0) - AS(0, 1)])
    return Load(link.mass * a + A @ h, n + h.cross(a))


def inward(R: Mat, p: Vec, load: Load) -> Load:
    """The wrench a link passes on to its parent, in the parent's frame."""
    f = R @ load.f
    return Load(f, R @ load.n + p.cross(f))


def base_motion(v: Sequence[Any], a: Sequence[Any], gravity: Vec) -> Motion:
    """Motion of a free base from its twist and the twist's rate; gravity in the base's frame."""
    linear, w = Vec(v[:3]), Vec(v[3:6])
    return motion(w, Vec(a[3:6]), Vec(a[:3]) + w.cross(linear) - gravity)


def base_rotation(quaternion: Sequence[Any]) -> Mat:
    """R of a base with unit quaternion (x, y, z, w)."""
    x, y, z, w = quaternion
    return Mat(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def in_base(quaternion: Sequence[Any], u: Vec) -> Vec:
    """A vector of the world in the frame of a base with unit quaternion (x, y, z, w): R^T u."""
    axis, w = Vec(quaternion[:3]), quaternion[3]
    t = u.cross(axis) * 2
    return u + t * w + t.cross(axis)


def resting_base(gravity: Vec) -> Motion:
    """A base that stands still accelerates upward with -gravity."""
    return motion(ZERO, ZERO, -gravity)


def inverse_dynamics(
    links: Links,
    q: Sequence[Any],
    v: Sequence[Any],
    a: Sequence[Any],
    base: Motion,
    external: Sequence[Load | None] | None = None,
) -> tuple[list[Any], Load]:
    """Joint forces, friction included, and the wrench that the base needs.

    Args:
        links: The base first.
        q, v, a: One scalar for each joint.
        base: Motion of link 0; gravity enters as its acceleration.
        external: Wrench on each link, in its frame.
    """
    motions: list[Motion] = [base]
    poses: list[tuple[Mat, Vec]] = []
    for link, qi, vi, ai in zip(links[1:], q, v, a, strict=True):
        R, p = joint_pose(link, qi)
        poses.append((R, p))
        motions.append(outward(link, motions[link.parent], R, p, vi, ai))
    loads = [inertial(link, moved) for link, moved in zip(links, motions, strict=True)]
    if external is not None:
        loads = [
            load if push is None else Load(load.f - push.f, load.n - push.n)
            for load, push in zip(loads, external, strict=True)
        ]
    tau: list[Any] = [0] * len(poses)
    for i in range(len(links) - 1, 0, -1):
        link, load = links[i], loads[i]
        tau[i - 1] = (load.f if link.prismatic else load.n)[0] + friction(link, v[i - 1])
        R, p = poses[i - 1]
        passed = inward(R, p, load)
        held = loads[link.parent]
        loads[link.parent] = Load(held.f + passed.f, held.n + passed.n)
    return tau, loads[0]
