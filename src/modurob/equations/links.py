"""The tree of links as the recursions see it.

Joint frames are chosen so that every joint acts along its own x axis, as in the documents
(s = (0,0,0,1,0,0)), and mass enters through its moments: m, h = m c and the second moment
S = integral of r r^T dm about the frame's origin. The material point r of a link accelerates with
``a + A r``, A = hat(alpha) + hat(w)^2; so the force and torque it takes are linear in A and a.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from modurob.equations.vectors import Mat, Vec
from modurob.spatial.scalars import cos, sin, sqrt

SLIP = 1e-3  # velocity that rounds off dry friction. [rad/s, m/s]


class Link(NamedTuple):
    """One link: how its joint sits on the parent, and its mass.

    Attributes:
        parent: Index of the parent link; -1 for the base.
        R, p: Joint frame in the parent's frame at q = 0. [m]
        prismatic: Whether the joint slides along x instead of turning about it.
        mass, moment, second: m [kg], h = m c [kg m], S about the origin [kg m^2].
        viscous, coulomb: Friction of the joint.
    """

    parent: int
    R: Mat
    p: Vec
    prismatic: bool
    mass: Any
    moment: Vec
    second: Mat
    viscous: Any
    coulomb: Any


Links = Sequence[Link]  # the base first, each link after its parent


def joint_pose(link: Link, q: Any) -> tuple[Mat, Vec]:
    """(R, p) of the link in its parent's frame after the displacement q."""
    if link.prismatic:
        return link.R, link.p + link.R.column(0) * q
    c, s = cos(q), sin(q)
    return link.R @ Mat([[1, 0, 0], [0, c, -s], [0, s, c]]), link.p


def inertia(link: Link) -> Mat:
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


def friction(link: Link, v: Any) -> Any:
    """Viscous plus rounded dry friction: d v + c v / sqrt(v^2 + SLIP^2).

    Within one percent of the dry law c sign(v) from |v| = 7 SLIP on, and smooth through rest.
    """
    drag = link.viscous * v
    if isinstance(link.coulomb, int | float) and link.coulomb == 0:
        return drag
    return drag + link.coulomb * v / sqrt(v * v + SLIP * SLIP)
