"""The documents' closed form entry by entry: the same numbers as `closed_form`, without stacking.

Column j of C = S^T T^T (M T adS + adV* M) T S is a walk outward and one inward:

    x_i = X_i x_p + (s_j if i = j)             column j of T S
    u_i = X_i u_p - ad(s_i dq_i) x_i           column j of T adS T S
    F_i = M_i u_i - ad(V_i)^T M_i x_i + sum over children of X_k^T F_k
    C_ij = s_i^T F_i
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from modurob.equations.links import Links, RigidLink, along, from_parent, to_parent, unit_screw
from modurob.equations.mass_matrix import inertia_times
from modurob.equations.vectors import Mat, Twist, Vec, Wrench

Pose = tuple[Mat, Vec]


def base_screw(k: int) -> Twist:
    """The k-th of the six velocities of a free base."""
    return Twist(*(Vec([int(3 * part + i == k) for i in range(3)]) for part in range(2)))


def twists(links: Links, poses: Sequence[Pose], v: Sequence[Any], base: Twist) -> list[Twist]:
    """V_i of all links, each in its own frame."""
    found = [base]
    for link, (R, p), speed in zip(links[1:], poses, v, strict=True):
        found.append(from_parent(R, p, found[link.parent]).plus(unit_screw(link, speed)))
    return found


def coriolis_column(
    links: Links, poses: Sequence[Pose], v: Sequence[Any], V: Sequence[Twist], column: int
) -> tuple[list[Any], Wrench]:
    """Column of C for the joint of link `column` (from 1), or of the base for -1 to -6.

    Args:
        poses: (R, p) of each link in its parent.
        v: Joint velocities.
        V: Twists of the links.

    Returns:
        The joints' entries and the base's wrench.
    """
    x, u = [Twist()], [Twist()]
    if column < 0:  # a free base is a joint with six screws, so s dq is its twist
        x = [base_screw(-1 - column)]
        u = [Twist().minus(V[0].cross(x[0]))]
    reached = [column < 0]
    for i, (link, (R, p), speed) in enumerate(zip(links[1:], poses, v, strict=True), start=1):
        reached.append(reached[link.parent] or i == column)
        if not reached[i]:
            x.append(Twist())
            u.append(Twist())
            continue
        own = unit_screw(link) if i == column else Twist()
        x.append(from_parent(R, p, x[link.parent]).plus(own))
        u.append(from_parent(R, p, u[link.parent]).minus(unit_screw(link, speed).cross(x[i])))
    loads = [Wrench()] * len(links)
    entries: list[Any] = [0] * len(poses)
    for i in range(len(links) - 1, -1, -1):
        link = links[i]
        if reached[i]:
            loads[i] = loads[i].plus(_own_load(link, x[i], u[i], V[i]))
        if i:
            entries[i - 1] = along(link, loads[i])
            loads[link.parent] = loads[link.parent].plus(to_parent(*poses[i - 1], loads[i]))
    return entries, loads[0]


def _own_load(link: RigidLink, x: Twist, u: Twist, V: Twist) -> Wrench:
    """M u - ad(V)^T M x of one link."""
    momentum = inertia_times(link, x)
    return inertia_times(link, u).plus(V.cross_wrench(momentum))
