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

from modurob.checks import as_floats
from modurob.errors import DockingError, StateError, choices
from modurob.modules import Joint
from modurob.modules.dh import (
    FLIP,
    PartMass,
    TwoPart,
    axis_frame,
    axis_pair,
    carried,
    link_transform,
    moments,
    part_mass,
    turn_z,
    wrapped,
)
from modurob.organism.matrices import aligned
from modurob.organism.organism import Organism, checked_pose
from modurob.spatial import se3

TURN = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])  # unit screws along z, linear part first
SLIDE = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
WORLD = -1  # in place of the axis before the first ones


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

        At displacements q (..., joints). [rad, m]
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
        array, n = as_floats(x), len(self.links)
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
        return aligned(lines, str.ljust)


class Axis(NamedTuple):
    """A joint with the frame on its axis: (4, 4) in the frame of the axis before, q = 0."""

    name: str
    joint: Joint
    before: int
    placement: np.ndarray


Tip = tuple[str, np.ndarray]  # a port at the end of a link: (4, 4) in the frame of the link's axis
Places = dict[tuple[str, str], tuple[int, np.ndarray]]  # body -> axis that moves it, frame there


def _synthesized(
    axes: Sequence[Axis],
    tips: Mapping[int, Tip],
    masses: Sequence[np.ndarray],
    base_pose: np.ndarray,
) -> DhTable:
    """The table of axes, each after the one before it.

    Args:
        tips: For each axis that no other follows.
        masses: (4, 4) pseudo-inertia of each axis' link, in the frame of the axis.
        base_pose: (4, 4) frame of the base in the world.
    """
    pairs = [axis_pair(axis.placement) for axis in axes]
    beyond: list[list[int]] = [[] for _ in axes]
    rows: list[DhRow] = []
    links: list[DhLink] = []
    ending: dict[int, int] = {}  # the row that ends at an axis
    for k, axis in enumerate(axes):
        if axis.before != WORLD:
            beyond[axis.before].append(k)
    for k, axis in enumerate(axes):
        first, previous = len(rows), ending.get(k, WORLD)
        ends = [(axes[other].name, pairs[other]) for other in beyond[k]]
        ending |= {other: first + number for number, other in enumerate(beyond[k])}
        if not ends:
            name, placement = tips[k]
            ends = [(name, axis_pair(placement))]
        # d = n_{i-1} - p_i; the first axis counts from its joint's connection point
        n = 0.0 if previous == WORLD else rows[previous].n
        for name, (a, alpha, p, n_next, before, after, case) in ends:
            # giusti2015: gamma_i = phi'_i + delta_j - phi_{i-1}; `before` holds the first two, and
            # phi turns from the datasheet's x to the table's, so it is minus the pair's `after`
            theta, kind = wrapped(pairs[k].after + before), axis.joint.kind
            numbers = (a, alpha, n - p, theta, n_next, p)
            rows.append(DhRow(*numbers, kind, axis.name, name, previous, after, case))
        T = se3.inverse(rows[first].rest) @ turn_z(pairs[k].after)
        links.append(DhLink(axis.name, first, part_mass(carried(T, masses[k])), axis.joint))
    roots = {
        axis.name: base_pose @ axis.placement @ turn_z(-pair.after)
        for axis, pair in zip(axes, pairs, strict=True)
        if axis.before == WORLD
    }
    return _table(tuple(rows), tuple(links), roots)


def _table(
    rows: tuple[DhRow, ...], links: tuple[DhLink, ...], roots: dict[str, np.ndarray]
) -> DhTable:
    for T in roots.values():
        T.setflags(write=False)
    return DhTable(rows, links, MappingProxyType(roots))


# -- from an organism ------------------------------------------------------------------------------


def dh_table(organism: Organism) -> DhTable:
    """See `Organism.dh_table`; the frame of the base module is the first in-connector."""
    axes: list[Axis] = []
    masses: list[np.ndarray] = []
    # the world's frame is the base module's
    root = organism.base, organism.kind(organism.base).bodies[0].name
    places: Places = {root: (WORLD, np.eye(4))}
    _walk(organism, organism.base, 0, axes, masses, places)
    for entry in organism.dockings:
        here = organism.kind(entry.parent).port(entry.port)
        kind = organism.kind(entry.child)
        there = kind.port(entry.child_port)
        axis, T = places[entry.parent, here.body]
        # the out-connector, turned, is the in-connector of the next module
        T_out_in = turn_z(np.deg2rad(entry.turn))
        T = T @ here.pose @ T_out_in @ se3.inverse(there.pose @ FLIP)
        places[entry.child, there.body] = axis, T
        _walk(organism, entry.child, kind.body_index(there.body), axes, masses, places)
    tips = _tips(organism, axes, places)
    return _synthesized(axes, tips, masses, organism.base_pose)


def _tips(organism: Organism, axes: Sequence[Axis], places: Places) -> dict[int, Tip]:
    """Ends of the links that carry no further joint: a free port of their outermost module."""
    ends = set(range(len(axes))) - {axis.before for axis in axes}
    # without a free port a link ends in the middle of its joint
    tips = {axis: (f"{axes[axis].name}:end", np.eye(4)) for axis in ends}
    chosen: dict[int, tuple[str, int | str]] = {}
    for name in organism.modules:
        for label in reversed(organism.free_ports(name)):
            chosen[places[name, organism.kind(name).port(label).body][0]] = name, label
    for axis in ends & chosen.keys():
        name, label = chosen[axis]
        port = organism.kind(name).port(label)
        tips[axis] = f"{name}.{label}", places[name, port.body][1] @ port.pose
    return tips


def _walk(
    organism: Organism,
    module: str,
    entry: int,
    axes: list[Axis],
    masses: list[np.ndarray],
    places: Places,
) -> None:
    """Place the bodies of a module whose first one, `entry`, has its place; add their masses."""
    kind = organism.kind(module)
    for step in kind.outward(entry):
        axis, T = places[module, kind.bodies[step.previous].name]
        joint, T = kind.joints[step.joint], T @ step.before
        if joint.kind == "fixed":
            T = T @ step.after
        else:
            axes.append(Axis(f"{module}.{joint.name}", joint, axis, axis_frame(T, step.screw)))
            masses.append(np.zeros((4, 4)))
            axis, T = len(axes) - 1, se3.inverse(axis_frame(np.eye(4), step.screw)) @ step.after
        places[module, kind.bodies[step.body].name] = axis, T
    for body, mass in zip(kind.bodies, moments(kind), strict=True):
        axis, T = places[module, body.name]
        if axis != WORLD:
            masses[axis] += carried(T, mass)


# -- from datasheets alone -------------------------------------------------------------------------


def chain_table(modules: Sequence[TwoPart], base_pose: ArrayLike | None = None) -> DhTable:
    """The table of modules docked in a row, from their parameters alone (giusti2015 (2)-(4)).

    Args:
        modules: Base first; each one's out-connector holds the next one's in-connector. Module k
            is called ``mk``. Links without a joint are allowed.
        base_pose: (4, 4) in-connector of the first module in the world; the origin by default.

    Raises:
        DockingError: Two connectors do not mate, or a module moves in ways a chain does not show.
    """
    axes: list[Axis] = []
    masses: list[np.ndarray] = []
    tips: dict[int, Tip] = {}
    T = np.eye(4)  # the connector so far, in the frame of the last axis
    for k, module in enumerate(modules):
        _check_chain(k, module, modules[k - 1] if k else None)
        if axes:
            masses[-1] += carried(T, module.proximal_mass.moments)
        T = T @ turn_z(-module.proximal.delta) @ module.proximal.transform
        if module.joint is not None:
            # the frame on the axis has x along the proximal part's normal, so phi_0 = 0
            axes.append(Axis(f"m{k}.{module.joint.name}", module.joint, len(axes) - 1, T))
            T = np.eye(4)
        T = T @ turn_z(module.delta_j) @ module.distal.transform @ turn_z(module.distal.delta)
        if module.joint is not None:
            masses.append(carried(T, module.distal_mass.moments))
        tips[len(axes) - 1] = f"m{k}.{module.output.label}", T
    return _synthesized(axes, tips, masses, checked_pose(base_pose))


def _check_chain(k: int, module: TwoPart, before: TwoPart | None) -> None:
    if module.beside:
        raise DockingError(
            f"m{k} ({module.module}) also moves {choices(module.beside)}, beside the way from port "
            f"{module.input.label} to {module.output.label}; use the organism's dh_table()"
        )
    if before is None:
        return
    if not before.output.mates_with(module.input):
        raise DockingError(
            f"port {before.output.label} of m{k - 1} ({before.module}, {before.output.connector}) "
            f"does not mate with port {module.input.label} of m{k} ({module.module}, "
            f"{module.input.connector})"
        )
    if 0 not in before.output.turns or 0 not in module.input.turns:
        raise DockingError(
            f"m{k - 1} and m{k} cannot dock without a turn; use the organism's dh_table()"
        )
