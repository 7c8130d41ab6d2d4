"""Inverse dynamics: the two-step recursion (meister2013 (17)-(22)).

The documents carry twists V and their rates. Written for the material point r of a link, the same
recursion carries w, alpha and the acceleration a of the origin; the velocity of the origin drops
out, and M dV - ad(V)^T M V becomes one product of A = hat(alpha) + hat(w)^2 with the moments of
mass. docs/theory/dynamics.md has the steps between the two.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from modurob.equations.links import RigidLink, along, joint_pose, to_parent
from modurob.equations.passes import Base, Inward, JointState, Passes
from modurob.equations.vectors import ZERO, Mat, Vec, Wrench


class LinkMotion(NamedTuple):
    """Motion of a link, in its own frame: w, alpha, A = hat(alpha) + hat(w)^2, a of the origin."""

    w: Vec
    alpha: Vec
    A: Mat
    a: Vec


def motion(w: Vec, alpha: Vec, a: Vec) -> LinkMotion:
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
    return LinkMotion(w, alpha, A, a)


def outward(link: RigidLink, parent: LinkMotion, R: Mat, p: Vec, v: Any, a: Any) -> LinkMotion:
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


def inertial(link: RigidLink, motion: LinkMotion) -> Wrench:
    """Wrench of a link's motion: f = m a + A h, n = skew part of A S + h x a."""
    A, S, h, a = motion.A, link.second, link.moment, motion.a

    def AS(i: int, j: int) -> Any:
        return A.row(i).dot(S.column(j))

    n = Vec([AS(2, 1) - AS(1, 2), AS(0, 2) - AS(2, 0), AS(1, 0) - AS(0, 1)])
    return Wrench(link.mass * a + A @ h, n + h.cross(a))


def base_motion(base: Base) -> LinkMotion:
    """Motion of the base; a fixed one accelerates upward with -gravity."""
    if not base.free:
        return motion(ZERO, ZERO, -base.gravity)
    v, w = base.twist
    return motion(w, Vec(base.x[3:]), Vec(base.x[:3]) + w.cross(v) - base.own_gravity())


class LoadedLink(NamedTuple):
    """State of a link in `InverseDynamics`."""

    motion: LinkMotion
    load: Wrench


class InverseDynamics(Passes):
    """Joint forces, and the wrench that a free base needs."""

    State = LoadedLink

    friction = "y"

    @staticmethod
    def base(link: RigidLink, base: Base) -> LoadedLink:
        moved = base_motion(base)
        return LoadedLink(moved, inertial(link, moved) if base.free else Wrench())

    @staticmethod
    def outward(link: RigidLink, joint: JointState, parent: LoadedLink) -> LoadedLink:
        moved = outward(link, parent.motion, *joint_pose(link, joint.q), joint.v, joint.x)
        return LoadedLink(moved, inertial(link, moved))

    @staticmethod
    def external(own: LoadedLink, wrench: Wrench) -> LoadedLink:
        return own._replace(load=own.load.minus(wrench))

    @staticmethod
    def inward(link: RigidLink, joint: JointState, own: LoadedLink, parent: LoadedLink) -> Inward:
        passed = to_parent(*joint_pose(link, joint.q), own.load)
        force = along(link, own.load) + link.armature * joint.x
        return force, own, parent._replace(load=parent.load.plus(passed))

    @staticmethod
    def turn(link: RigidLink, base: Base, own: LoadedLink) -> tuple[Any, LoadedLink]:
        return (*own.load.f, *own.load.n), own
