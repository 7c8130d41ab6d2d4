"""The tree of links of the recursions.

Joint frames are chosen so that every joint acts along its own x axis, as in the documents
(s = (0,0,0,1,0,0)), and mass enters through its moments: m, h = m c and the second moment
S = integral of r r^T dm about the frame's origin. The material point r of a link accelerates with
``a + A r``, A = hat(alpha) + hat(w)^2; so the force and torque it takes are linear in A and a.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from modurob.equations.vectors import EYE, ZERO, ZERO_MATRIX, Mat, Symmetric, Twist, Vec, Wrench
from modurob.spatial.scalars import cos, sin, sqrt

SLIP_SPEED = 1e-3  # that rounds off dry friction near rest. [rad/s, m/s]


class RigidLink(NamedTuple):
    """One link: the seat of its joint on the parent, and its mass.

    Attributes:
        parent: Index of the parent link; -1 for the base.
        R, p: Joint frame in the parent's frame at q = 0. [m]
        prismatic: True for a joint that slides along x, False for one that turns about it.
        mass, moment, second: m [kg], h = m c [kg m], S about the origin [kg m^2].
        viscous, coulomb: Friction of the joint.
        sign: 1, or -1 for a joint that users read along -x.
        travel: Factor of q: `sign`, or 0 for a joint whose displacement moves the whole robot and
            changes nothing within it.
        armature: Inertia of the motor's rotor as the joint feels it. [kg m^2, kg]
        stiffness: Of a spring in the joint, at rest at zero. [N m/rad, N/m]
    """

    parent: int
    R: Mat
    p: Vec
    prismatic: bool
    mass: Any
    moment: Vec
    second: Symmetric
    viscous: Any = 0
    coulomb: Any = 0
    sign: Any = 1
    travel: Any = 1
    armature: Any = 0
    stiffness: Any = 0


class Placement(NamedTuple):
    """The place of a body in its link."""

    link: int
    R: Mat
    p: Vec


Links = Sequence[RigidLink]  # the base first, each link after its parent


def base_link(mass: Any = 0, moment: Vec = ZERO, second: Symmetric = ZERO_MATRIX) -> RigidLink:
    """The base, which no joint moves; the mass of a fixed one does not count."""
    return RigidLink(-1, EYE, ZERO, False, mass, moment, second)


def joint_pose(link: RigidLink, q: Any) -> tuple[Mat, Vec]:
    """(R, p) of the link in its parent's frame after the displacement q."""
    if link.prismatic:
        return link.R, link.p + link.R.column(0) * q
    c, s = cos(q), sin(q)
    return link.R @ Mat([[1, 0, 0], [0, c, -s], [0, s, c]]), link.p


def to_parent(R: Mat, p: Vec, F: Wrench) -> Wrench:
    """The wrench that a link at (R, p) passes on to its parent, in the parent's frame."""
    f = R @ F.f
    return Wrench(f, R @ F.n + p.cross(f))


def from_parent(R: Mat, p: Vec, V: Twist) -> Twist:
    """A parent's twist in the frame of a link at (R, p): X = Ad(T^-1)."""
    R_T = R.T
    return Twist(R_T @ (V.v + V.w.cross(p)), R_T @ V.w)


def unit_screw(link: RigidLink, scale: Any = 1) -> Twist:
    """A joint's own screw, along x of its link."""
    axis = Vec([scale, 0, 0])
    return Twist(axis, ZERO) if link.prismatic else Twist(ZERO, axis)


def screw(link: RigidLink, R: Mat, p: Vec) -> Twist:
    """The joint's unit screw about the origin of the frame in which its link is at (R, p)."""
    x = R.column(0)
    return Twist(x, ZERO) if link.prismatic else Twist(p.cross(x), x)


def base_screws(R: Mat, p: Vec = ZERO) -> list[Twist]:
    """The six unit twists of a free base at (R, p), which are given in its own frame."""
    axes = [R.column(k) for k in range(3)]
    return [Twist(x, ZERO) for x in axes] + [Twist(p.cross(x), x) for x in axes]


def along(link: RigidLink, F: Wrench) -> Any:
    """The component of a wrench that the joint of `link` carries."""
    return (F.f if link.prismatic else F.n)[0]


def inertia(link: RigidLink) -> Mat:
    """Inertia about the origin: J = tr(S) E - S."""
    S = link.second
    xx, yy, zz = S[0, 0], S[1, 1], S[2, 2]
    return Mat(
        [
            [yy + zz, -S[0, 1], -S[0, 2]],
            [-S[1, 0], xx + zz, -S[1, 2]],
            [-S[2, 0], -S[2, 1], xx + yy],
        ]
    )


def displacement(q: Any) -> Any:
    """A joint's displacement as a number; angles may come as sine and cosine beside it."""
    return getattr(q, "angle", q)


def passive_force(link: RigidLink, q: Any, v: Any) -> Any:
    """Friction and spring of a joint, against its motion and displacement."""
    force = friction(link.viscous, link.coulomb, v)
    if isinstance(link.stiffness, int | float) and link.stiffness == 0:
        return force
    return force + link.stiffness * displacement(q)


def friction(viscous: Any, coulomb: Any, v: Any) -> Any:
    """Viscous plus Coulomb (dry) friction, rounded near rest: d v + c v / sqrt(v^2 + s^2).

    Within one percent of the dry law c sign(v) from |v| = 7 s on, s = `SLIP_SPEED`.
    """
    drag = viscous * v
    if isinstance(coulomb, int | float) and coulomb == 0:
        return drag
    return drag + coulomb * v / sqrt(v * v + SLIP_SPEED * SLIP_SPEED)


def friction_slope(viscous: Any, coulomb: Any, v: Any) -> Any:
    """d friction / d v: d + c s^2 / (v^2 + s^2)^(3/2); steepest at rest, d + c / s."""
    square = v * v + SLIP_SPEED * SLIP_SPEED
    return viscous + coulomb * (SLIP_SPEED * SLIP_SPEED) / (square * sqrt(square))
