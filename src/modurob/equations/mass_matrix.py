"""Mass matrix: composite bodies, then one wrench walked inward for each joint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from modurob.equations.links import Links, RigidLink, along, joint_pose
from modurob.equations.links import to_parent as wrench_to_parent
from modurob.equations.passes import LATER, Base, Entries, Inward, JointState, Passes
from modurob.equations.vectors import (
    Mat,
    Symmetric,
    Twist,
    Vec,
    Wrench,
    hat,
    symmetric,
    turned_symmetric,
)


class Composite(NamedTuple):
    """Moments of a link with everything beyond it."""

    mass: Any
    moment: Vec
    second: Symmetric


def to_parent(R: Mat, p: Vec, body: Composite) -> Composite:
    """The moments about the parent's origin: r -> R r + p."""
    m, h, S = body.mass, R @ body.moment, turned_symmetric(R, body.second)
    g = h + p * m  # first moment about the new origin

    def moved(i: int, j: int) -> Any:
        return S[i, j] + h[i] * p[j] + p[i] * g[j]

    return Composite(m, g, symmetric(moved))


def added(one: Composite, other: Composite) -> Composite:
    """Two bodies moving as one."""
    second = symmetric(lambda i, j: one.second[i, j] + other.second[i, j])
    return Composite(one.mass + other.mass, one.moment + other.moment, second)


def composite(link: RigidLink) -> Composite:
    """A single link."""
    return Composite(link.mass, link.moment, link.second)


def inertia_times(body: RigidLink | Composite, U: Twist) -> Wrench:
    """I U: linear m v + w x h, angular h x v + J w with J = tr(S) E - S."""
    moment, second = body.moment, body.second
    trace = second[0, 0] + second[1, 1] + second[2, 2]
    turned = U.w * trace - second @ U.w
    return Wrench(U.v * body.mass + U.w.cross(moment), moment.cross(U.v) + turned)


def unit_load(link: RigidLink, body: Composite) -> Wrench:
    """The wrench that accelerates everything beyond a joint by one unit along it."""
    h, S = body.moment, body.second
    if link.prismatic:
        return Wrench(Vec([body.mass, 0, 0]), Vec([0, h[2], -h[1]]))
    return Wrench(Vec([0, -h[2], h[1]]), Vec([S[1, 1] + S[2, 2], -S[0, 1], -S[0, 2]]))


def mass_column(
    links: Links, poses: Sequence[tuple[Mat, Vec]], i: int, body: Composite
) -> tuple[dict[int, Any], Wrench]:
    """Entries of M for the joint of link i, by link: its own and those on the way to the base.

    Args:
        body: RigidLink i with everything beyond it.

    Returns:
        The entries, innermost last, and the wrench on that last link.
    """
    load = unit_load(links[i], body)
    entries = {i: along(links[i], load)}
    while links[i].parent > 0:
        load, i = wrench_to_parent(*poses[i - 1], load), links[i].parent
        entries[i] = along(links[i], load)
    return entries, load


def base_inertia(body: Composite) -> list[list[Any]]:
    """6x6 inertia of the whole organism about the base, linear part first."""
    m, S = body.mass, body.second
    H = hat(body.moment)
    trace = S[0, 0] + S[1, 1] + S[2, 2]
    rows = [
        [*(m if i == j else 0 for j in range(3)), *(-H[i, j] for j in range(3))] for i in range(3)
    ]
    for i in range(3):
        turning = (trace - S[i, i] if i == j else -S[i, j] for j in range(3))
        rows.append([*(H[i, j] for j in range(3)), *turning])
    return rows


class JointAxis(NamedTuple):
    """Component of a unit velocity along x: of a joint that slides, of one that turns."""

    slides: Any
    turns: Any


class SummedLink(NamedTuple):
    """State of a link in `MassMatrix`."""

    body: Composite
    column: JointAxis = LATER
    carried: Wrench = LATER


class MassMatrix(Passes):
    """M(q); the six velocities of a free base come first."""

    State = SummedLink

    matrices = 1

    @staticmethod
    def base(link: RigidLink, base: Base) -> SummedLink:
        return SummedLink(composite(link))

    @staticmethod
    def outward(link: RigidLink, joint: JointState, parent: SummedLink) -> SummedLink:
        return SummedLink(composite(link))

    @staticmethod
    def inward(link: RigidLink, joint: JointState, own: SummedLink, parent: SummedLink) -> Inward:
        load = unit_load(link, own.body)
        axis = JointAxis(link.sign, 0) if link.prismatic else JointAxis(0, link.sign)
        passed = added(parent.body, to_parent(*joint_pose(link, joint.q), own.body))
        return (
            (along(link, load) + link.armature,),
            own._replace(column=axis, carried=load.times(link.sign)),
            parent._replace(body=passed),
        )

    @staticmethod
    def carry(link: RigidLink, joint: JointState, carried: Wrench) -> Wrench:
        return wrench_to_parent(*joint_pose(link, joint.q), carried)

    @staticmethod
    def pair(carried: Wrench, column: JointAxis) -> Entries:
        found = carried.f[0] * column.slides + carried.n[0] * column.turns
        return ((found, found),)

    @staticmethod
    def base_pairs(carried: Wrench, columns: Sequence[Any]) -> list[Entries]:
        return [((x, x),) for x in (*carried.f, *carried.n)]

    @staticmethod
    def base_block(own: SummedLink, columns: Sequence[Any]) -> list[list[list[Any]]]:
        return [base_inertia(own.body)]
