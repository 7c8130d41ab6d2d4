"""The Denavit-Hartenberg table of an assembled robot (giusti2015, III-A and III-B).

Every joint has an axis; from each axis a rigid way leads to the axes beyond it, or to a tip. One
row describes one such way. A chain has one row for each joint; where a link branches, several rows
belong to one joint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modurob.errors import StateError, choices
from modurob.modules import Joint
from modurob.modules.axis_pairs import (
    AxisPair,
    axis_pair,
    inverse,
    link_transform,
    turn_z,
    wrapped,
)
from modurob.modules.dh import PartMass, carried, part_mass
from modurob.spatial import se3

TURN = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])  # unit screws along z, linear part first
SLIDE = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
WORLD = -1  # stands for the axis before the first ones


class DhRow(NamedTuple):
    """One way from a joint axis to the next, all displacements zero.

    ``A(q) = Rz(theta + q) Tz(-p) Tx(a) Rx(alpha) Tz(n)`` leads from the frame on the joint's axis
    to the one on the next; a prismatic joint adds q to the lift along z instead.

    Attributes:
        a, alpha, d, theta: Denavit and Hartenberg's four. [m, rad, m, rad]
        n, p: z of the joints' connection points, counted from the feet of the common normal on the
            next axis and on this one: ``d = n of the row before - p``. [m]
        kind: ``revolute`` or ``prismatic``; which of theta and d the displacement adds to.
        joint: The joint on this axis, ``m2.joint``.
        next: The joint on the next axis, or the free port ``m4.out`` at a tip.
        previous: Row that ends at this axis; -1 for the first.
        turn: From x of the table to x of the datasheet, on the next axis. [rad]
        case: Of the two axes: ``skew``, ``intersecting``, ``parallel``, ``overlapping``.
    """

    a: float
    alpha: float
    d: float
    theta: float
    n: float
    p: float
    kind: str
    joint: str
    next: str
    previous: int
    turn: float
    case: str

    @property
    def rest(self) -> np.ndarray:
        """(4, 4) A(0)."""
        return turn_z(self.theta) @ link_transform(self.a, self.alpha, self.p, self.n)


class DhLink(NamedTuple):
    """The link that one joint moves, everything rigidly docked to it included.

    Attributes:
        joint: ``m2.joint``.
        row: The first row of this joint: the frame at its end is the link's (D of giusti2015).
        solid: Its mass, center of mass and inertia (about the origin) in that frame.
        datasheet: Limits and friction of the joint.
    """

    joint: str
    row: int
    solid: PartMass
    datasheet: Joint


class DhTable(NamedTuple):
    """The table of a robot; joints in the order of q are ``joint_names``.

    Attributes:
        rows: One for each way between axes, in the order of their joints.
        links: One for each joint.
        roots: For each first axis, by its joint, (4, 4) the table's frame on it in the world.
    """

    rows: tuple[DhRow, ...]
    links: tuple[DhLink, ...]
    roots: Mapping[str, np.ndarray]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles and copies carry a plain mapping of the roots."""
        return _table, (self.rows, self.links, dict(self.roots))

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The joints in the order of q; unlike in a `Model`, none is locked."""
        return tuple(link.joint for link in self.links)

    @property
    def parameters(self) -> np.ndarray:
        """(rows, 4) a, alpha, d, theta at q = 0. [m, rad, m, rad]"""
        return np.array([row[:4] for row in self.rows]).reshape(-1, 4)

    def frames(self, q: ArrayLike) -> np.ndarray:
        """(..., rows, 4, 4) frames in the world at the ends of the rows, x as in the table.

        Args:
            q: (..., joints) displacements. [rad, m]
        """
        q = self.checked(q)
        column = {name: k for k, name in enumerate(self.joint_names)}
        rests = np.array([row.rest for row in self.rows]).reshape(-1, 4, 4)
        screws = [SLIDE if row.kind == "prismatic" else TURN for row in self.rows]
        moved = q[..., [column[row.joint] for row in self.rows]]
        T = se3.screw_motion(np.array(screws).reshape(-1, 6), moved) @ rests
        for k, row in enumerate(self.rows):
            at = self.roots[row.joint] if row.previous < 0 else T[..., row.previous, :, :]
            T[..., k, :, :] = at @ T[..., k, :, :]
        return T

    def poses(self, q: ArrayLike) -> np.ndarray:
        """(..., rows, 4, 4) the same frames as the datasheets have them.

        At a tip, the pose of the port; on an axis, the frame of the joint in its parent body with z
        turned to its axis.
        """
        turns = np.array([turn_z(row.turn) for row in self.rows]).reshape(-1, 4, 4)
        return self.frames(q) @ turns

    def checked(self, x: ArrayLike, name: str = "q") -> np.ndarray:
        """`x` as finite floats (..., joints)."""
        try:
            array = np.asarray(x, dtype=float)
        except (TypeError, ValueError, OverflowError):
            array = np.array(np.nan)
        n = len(self.links)
        if array.shape[-1:] != (n,) or not np.isfinite(array).all():
            raise StateError(
                f"{name} must be finite numbers of shape (..., {n}), one for each of "
                f"{choices(self.joint_names)}; got shape {array.shape}"
            )
        return array

    def __str__(self) -> str:
        head = ("joint", "next", "a", "alpha", "d", "theta", "n", "p", "axes")
        lines: list[tuple[str, ...]] = [head]
        for row in self.rows:
            d = f"{row.d:.6g}" + (" + q" if row.kind == "prismatic" else "")
            theta = f"{row.theta:.6g}" + (" + q" if row.kind == "revolute" else "")
            a, alpha, n, p = (f"{value:.6g}" for value in (row.a, row.alpha, row.n, row.p))
            lines.append((row.joint, row.next, a, alpha, d, theta, n, p, row.case))
        widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
        texts = (
            "  ".join(word.ljust(w) for word, w in zip(line, widths, strict=True)) for line in lines
        )
        return "\n".join(text.rstrip() for text in texts)


# -- what both ways lead to ------------------------------------------------------------------------


class Axis(NamedTuple):
    """A joint with the frame on its axis: (4, 4) in the frame of the axis before, q = 0."""

    name: str
    joint: Joint
    before: int
    placement: np.ndarray


class Tip(NamedTuple):
    """A port at the end of a link: (4, 4) in the frame of the link's axis."""

    name: str
    placement: np.ndarray


def synthesized(
    axes: Sequence[Axis],
    tips: dict[int, Tip],
    masses: Sequence[np.ndarray],
    base_pose: np.ndarray,
) -> DhTable:
    """The table of axes, each after the one before it.

    Args:
        tips: For each axis that no other follows.
        masses: (4, 4) moments of each axis' link, in the frame of the axis.
        base_pose: (4, 4) frame of the base in the world.
    """
    pairs = [axis_pair(axis.placement) for axis in axes]
    beyond: list[list[int]] = [[] for _ in axes]
    for k, axis in enumerate(axes):
        if axis.before != WORLD:
            beyond[axis.before].append(k)
    rows: list[DhRow] = []
    first: list[int] = []
    ending: dict[int, int] = {}  # the row that ends at an axis
    for k, axis in enumerate(axes):
        first.append(len(rows))
        for other in beyond[k]:
            ending[other] = len(rows)
            rows.append(_row(axis, pairs[k].after, pairs[other], axes[other].name))
        if not beyond[k]:
            rows.append(_row(axis, pairs[k].after, axis_pair(tips[k].placement), tips[k].name))
    previous = [ending.get(k, WORLD) for k in range(len(axes)) for _ in beyond[k] or [k]]
    rows = [_joined(row, rows, at) for row, at in zip(rows, previous, strict=True)]
    roots = {
        axis.name: base_pose @ axis.placement @ turn_z(-pair.after)
        for axis, pair in zip(axes, pairs, strict=True)
        if axis.before == WORLD
    }
    links = (
        _link(axis, first[k], rows, carried(turn_z(pairs[k].after), masses[k]))
        for k, axis in enumerate(axes)
    )
    return _table(tuple(rows), tuple(links), roots)


def _table(
    rows: tuple[DhRow, ...], links: tuple[DhLink, ...], roots: dict[str, np.ndarray]
) -> DhTable:
    for T in roots.values():
        T.setflags(write=False)
    return DhTable(rows, links, MappingProxyType(roots))


def _row(axis: Axis, after: float, pair: AxisPair, name: str) -> DhRow:
    # giusti2015: gamma_i = phi'_i + delta_j - phi_{i-1}; `before` holds the first two, and phi
    # turns from the datasheet's x to the table's, so it is minus `after`
    theta, kind = wrapped(after + pair.before), axis.joint.kind
    a, alpha, p, n, _, turn, case = pair
    return DhRow(a, alpha, -p, theta, n, p, kind, axis.name, name, WORLD, turn, case)


def _joined(row: DhRow, rows: Sequence[DhRow], previous: int) -> DhRow:
    """With d = n_{i-1} - p_i; the first axis counts from its joint's connection point."""
    n = 0.0 if previous == WORLD else rows[previous].n
    return row._replace(previous=previous, d=n - row.p + 0.0)


def _link(axis: Axis, row: int, rows: Sequence[DhRow], mass: np.ndarray) -> DhLink:
    solid = part_mass(carried(inverse(rows[row].rest), mass))
    return DhLink(axis.name, row, solid, axis.joint)
