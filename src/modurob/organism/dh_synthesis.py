"""From modules to their Denavit-Hartenberg table: an organism's geometry, or datasheets alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from modurob.errors import DockingError, choices
from modurob.modules import ModuleType
from modurob.modules.axis_pairs import axis_frame, inverse, turn_z
from modurob.modules.dh import FLIP, TwoPart, carried, moments
from modurob.organism.dh_table import WORLD, Axis, DhTable, Tip, synthesized
from modurob.organism.organism import Organism, _checked_pose

# -- from an organism ------------------------------------------------------------------------------


def dh_table(organism: Organism) -> DhTable:
    """See `Organism.dh_table`; the frame of the base module is the first in-connector."""
    axes: list[Axis] = []
    masses: list[np.ndarray] = []
    # each body: the axis that moves it, and its frame there; the world's is the base module's
    places: dict[tuple[str, str], tuple[int, np.ndarray]] = {}
    places[organism.base, organism.kind(organism.base).bodies[0].name] = (WORLD, np.eye(4))
    _walk(organism, organism.base, 0, axes, masses, places)
    for entry in organism.dockings:
        here = organism.kind(entry.parent).port(entry.port)
        kind = organism.kind(entry.child)
        there = kind.port(entry.child_port)
        axis, T = places[entry.parent, here.body]
        # the out-connector, turned, is the in-connector of the next module
        T_out_in = turn_z(np.deg2rad(entry.turn))
        T = T @ here.pose @ T_out_in @ inverse(there.pose @ FLIP)
        places[entry.child, there.body] = axis, T
        _walk(organism, entry.child, kind.body_index(there.body), axes, masses, places)
    tips = _tips(organism, axes, places)
    return synthesized(axes, tips, masses, organism.base_pose)


def _tips(
    organism: Organism, axes: Sequence[Axis], places: dict[tuple[str, str], tuple[int, np.ndarray]]
) -> dict[int, Tip]:
    """Where the links that carry no further joint end: a free port of their outermost module."""
    ends = set(range(len(axes))) - {axis.before for axis in axes}
    # without a free port a link ends in the middle of its joint
    tips = {axis: Tip(f"{axes[axis].name}:end", np.eye(4)) for axis in ends}
    chosen: dict[int, tuple[str, int | str]] = {}
    for name in organism.modules:
        for label in reversed(organism.free_ports(name)):
            chosen[places[name, organism.kind(name).port(label).body][0]] = name, label
    for axis in ends & chosen.keys():
        name, label = chosen[axis]
        port = organism.kind(name).port(label)
        tips[axis] = Tip(f"{name}.{label}", places[name, port.body][1] @ port.pose)
    return tips


def _walk(
    organism: Organism,
    module: str,
    entry: int,
    axes: list[Axis],
    masses: list[np.ndarray],
    places: dict[tuple[str, str], tuple[int, np.ndarray]],
) -> None:
    """Place all bodies of a module whose first one, `entry`, has its place."""
    kind = organism.kind(module)
    _weigh(kind, entry, *places[module, kind.bodies[entry].name], masses)
    for step in kind.outward(entry):
        axis, T = places[module, kind.bodies[step.previous].name]
        joint, T = kind.joints[step.joint], T @ step.before
        if joint.kind == "fixed":
            T = T @ step.after
        else:
            axes.append(Axis(f"{module}.{joint.name}", joint, axis, axis_frame(T, step.screw)))
            masses.append(np.zeros((4, 4)))
            axis, T = len(axes) - 1, inverse(axis_frame(np.eye(4), step.screw)) @ step.after
        places[module, kind.bodies[step.body].name] = axis, T
        _weigh(kind, step.body, axis, T, masses)


def _weigh(
    kind: ModuleType, index: int, axis: int, T: np.ndarray, masses: list[np.ndarray]
) -> None:
    if axis != WORLD:
        masses[axis] += carried(T, moments(kind.bodies[index]))


# -- from datasheets alone -------------------------------------------------------------------------


def chain_table(modules: Sequence[TwoPart], base_pose: ArrayLike | None = None) -> DhTable:
    """The table of modules docked in a row, from their parameters alone (giusti2015 (2)-(4)).

    Args:
        modules: Base first; each one's out-connector holds the next one's in-connector. Module k
            is called ``mk``. Links without a joint are welcome.
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
        tips[len(axes) - 1] = Tip(f"m{k}.{module.output.label}", T)
    return synthesized(axes, tips, masses, _checked_pose(base_pose))


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
