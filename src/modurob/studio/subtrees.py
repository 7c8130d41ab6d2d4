"""Edits of modules with all beyond them: copy, paste, repeat, mirror, remove several."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import NamedTuple

import numpy as np

from modurob import DockingError, ModuleType, Organism
from modurob.organism.docking import mated_pose
from modurob.studio import edits

SAME = 1e-6  # between entries of two poses that are the same place [m, rad]


class Clip(NamedTuple):
    """A copy of a module with all beyond it.

    Attributes:
        organism: The copy; the module is its base.
        port, child_port: By which it was docked; None of a copy of the whole body.
    """

    organism: Organism
    port: int | str | None
    child_port: int | str | None


def copied(organism: Organism, name: str) -> Clip:
    """A module with all beyond it; of the base, the whole body."""
    held = organism.docking(name)
    if held is None:
        return Clip(organism, None, None)
    return Clip(organism.undock(name)[1], held.port, held.child_port)


def pasted(
    organism: Organism, clip: Clip, parent: str, port: int | str | None = None
) -> tuple[Organism, str]:
    """The organism with a copy docked to a module, and the name of the copy's first module.

    Args:
        port: None for the first free one that takes it, the port it had before all others.
    """
    copy = clip.organism
    free = (name for k in count(len(organism)) if (name := f"m{k}") not in organism)
    names = dict(zip(copy.modules, free))  # noqa: B905 (the free names have no end)
    root, copy = names[copy.base], copy.rename(names)
    near, kind = organism.kind(parent), copy.kind(root)
    ports = organism.free_ports(parent) if port is None else (port,)
    why = DockingError(f"'{parent}' has no free port for the copy")
    for label in sorted(ports, key=lambda label: label != clip.port):
        found = [way for way in edits.ways(near, label, kind) if way[0] in copy.free_ports(root)]
        for mine, turn in sorted(found, key=lambda way: way[0] != clip.child_port):
            try:
                return organism.merge(parent, label, copy, root, mine, turn=turn), root
            except DockingError as error:
                why = error
    raise why


def repeated(organism: Organism, name: str) -> tuple[Organism, str]:
    """The organism with a copy of a module, and of all beyond it, docked to its own end."""
    clip, why = copied(organism, name), DockingError(f"'{name}' has no free port")
    if clip.port is None:
        raise DockingError(f"'{name}' is the base: repeat a module that is docked")
    for end in reversed(organism.subtree(name)):
        try:
            return pasted(organism, clip, end)
        except DockingError as error:
            why = error
    raise why


def mirrored(organism: Organism, name: str) -> tuple[Organism, str]:
    """The organism with the mirror image of a module and all beyond it, on the other side.

    The mirror goes through the middle of the module it is docked to.
    """
    held = organism.docking(name)
    if held is None:
        raise DockingError(f"'{name}' is the base: mirror a module that is docked")
    normal = organism.kind(held.parent).port_pose(held.port)[:3, 2]
    axis = int(np.argmax(np.abs(normal)))
    result, images = organism, {held.parent: (held.parent, _mirror(axis))}
    for old in organism.subtree(name):
        entry = organism.docking(old)
        assert entry is not None
        parent, M = images[entry.parent]
        new, T = edits.next_name(result), M @ organism.dyad(entry).transform
        result, own = _docked_at(result, parent, new, organism.kind(old), T, axis)
        images[old] = (new, own)
    return result, images[name][0]


def _mirror(axis: int) -> np.ndarray:
    """(4, 4) reflection along an axis of a module's frame."""
    M = np.eye(4)
    M[axis, axis] = -1.0
    return M


def _docked_at(
    organism: Organism, parent: str, name: str, kind: ModuleType, T: np.ndarray, axis: int
) -> tuple[Organism, np.ndarray]:
    """The organism with a module docked where its mirror image is, and its own reflection.

    Args:
        T: (4, 4) its frame in the parent's, reflected once; its own reflection makes it a pose.
        axis: Of its own reflection, if a port fits then.
    """
    near = organism.kind(parent)
    why = DockingError(f"no free port of '{parent}' is where the mirror image would be docked")
    for k in sorted(range(3), key=lambda k: k != axis):
        M = _mirror(k)
        for port in organism.free_ports(parent):
            for mine, turn in edits.ways(near, port, kind):
                there = mated_pose(near.port_pose(port), kind.port_pose(mine), turn)
                if np.abs(there - T @ M).max() < SAME:
                    try:
                        return organism.dock(parent, port, name, mine, kind=kind, turn=turn), M
                    except DockingError as error:
                        why = error
    raise why


def without(organism: Organism, names: Iterable[str]) -> Organism | None:
    """The organism without some modules and all beyond them; None when nothing is left."""
    rest: Organism | None = organism
    for name in names:
        if rest is not None and name in rest:
            rest = edits.remove(rest, name)
    return rest
