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

from modurob.equations.derivatives import bracket, dual_bracket, inertia_times, plus
from modurob.equations.inverse_dynamics import Load, inward
from modurob.equations.links import Link, Links
from modurob.equations.mass_matrix import along
from modurob.equations.vectors import ZERO, Mat, Vec

Pose = tuple[Mat, Vec]
NOTHING = Load(ZERO, ZERO)


def into(R: Mat, p: Vec, twist: Load) -> Load:
    """A parent's twist in the frame of a link at (R, p): X = Ad(T^-1)."""
    R_T = R.T
    return Load(R_T @ (twist.f + twist.n.cross(p)), R_T @ twist.n)


def minus(one: Load, other: Load) -> Load:
    return Load(one.f - other.f, one.n - other.n)


def unit_screw(link: Link, scale: Any = 1) -> Load:
    """A joint's own screw, which lies along x of its link."""
    axis = Vec([scale, 0, 0])
    return Load(axis, ZERO) if link.prismatic else Load(ZERO, axis)


def base_screw(k: int) -> Load:
    """The k-th of the six velocities of a free base."""
    return Load(*(Vec([int(3 * part + i == k) for i in range(3)]) for part in range(2)))


def twists(links: Links, poses: Sequence[Pose], v: Sequence[Any], base: Load) -> list[Load]:
    """V_i of all links, each in its own frame."""
    found = [base]
    for link, (R, p), speed in zip(links[1:], poses, v, strict=True):
        found.append(plus(into(R, p, found[link.parent]), unit_screw(link, speed)))
    return found


def coriolis_column(
    links: Links, poses: Sequence[Pose], v: Sequence[Any], V: Sequence[Load], column: int
) -> tuple[list[Any], Load]:
    """Column of C for the joint of link `column` (from 1), or of the base for -1 to -6.

    Args:
        poses: (R, p) of each link in its parent.
        v: Joint velocities.
        V: Twists of the links.

    Returns:
        The joints' entries and the base's wrench.
    """
    x, u = [NOTHING], [NOTHING]
    if column < 0:  # a free base is a joint with six screws, so s dq is its twist
        x = [base_screw(-1 - column)]
        u = [minus(NOTHING, bracket(V[0], x[0]))]
    reached = [column < 0]
    for i, (link, (R, p), speed) in enumerate(zip(links[1:], poses, v, strict=True), start=1):
        reached.append(reached[link.parent] or i == column)
        if not reached[i]:
            x.append(NOTHING)
            u.append(NOTHING)
            continue
        own = unit_screw(link) if i == column else NOTHING
        x.append(plus(into(R, p, x[link.parent]), own))
        u.append(minus(into(R, p, u[link.parent]), bracket(unit_screw(link, speed), x[i])))
    loads = [NOTHING] * len(links)
    entries: list[Any] = [0] * len(poses)
    for i in range(len(links) - 1, -1, -1):
        link = links[i]
        if reached[i]:
            loads[i] = plus(loads[i], _own_load(link, x[i], u[i], V[i]))
        if i:
            entries[i - 1] = along(link, loads[i])
            loads[link.parent] = plus(loads[link.parent], inward(*poses[i - 1], loads[i]))
    return entries, loads[0]


def _own_load(link: Link, x: Load, u: Load, V: Load) -> Load:
    """M u - ad(V)^T M x of one link."""
    momentum = inertia_times(link.mass, link.moment, link.second, x)
    return plus(inertia_times(link.mass, link.moment, link.second, u), dual_bracket(V, momentum))
