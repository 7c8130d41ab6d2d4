"""Edits of an organism by a click: dock, move, turn, remove; or the reason against it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from modurob import DockingError, ModuleType, Organism

CACHED = 4096  # kinds and ports that were asked for lately
MOST_SITES = 400  # free ports that are checked ahead; the others are checked by the click


class Site(NamedTuple):
    """A port where the chosen kind could dock.

    Attributes:
        module, port: Of the organism.
        child_port, turn: Of the new module. [turn: deg]
        why: Reason why it cannot dock; empty when it can.
    """

    module: str
    port: int | str
    child_port: int | str
    turn: int
    why: str


def next_name(organism: Organism | None) -> str:
    """The first free name of m0, m1, ..."""
    number = 0 if organism is None else len(organism)
    while organism is not None and f"m{number}" in organism:
        number += 1
    return f"m{number}"


@lru_cache(maxsize=CACHED)
def heading(kind: ModuleType, port: int | str) -> int:
    """Direction of a side of a cube, in quarter turns from +x."""
    normal = kind.port_pose(port)[:3, 2]
    return round(np.arctan2(normal[1], normal[0]) / (np.pi / 2)) % 4


@lru_cache(maxsize=CACHED)
def mating_ports(parent: ModuleType, port: int | str, kind: ModuleType) -> tuple[int | str, ...]:
    """The ports of a kind that mate with a port."""
    here = parent.port(port)
    return tuple(p.label for p in kind.ports if here.mates_with(p))


@lru_cache(maxsize=CACHED)
def usual_port(parent: ModuleType, port: int | str, kind: ModuleType) -> int | str:
    """The default port to dock with: a cube keeps its neighbor's heading."""
    mating = mating_ports(parent, port, kind)
    if parent.grid and kind.grid:
        facing = (heading(parent, port) + 2) % 4
        mating = tuple(label for label in mating if heading(kind, label) == facing) or mating
    return mating[0] if mating else kind.docks[0]


@lru_cache(maxsize=CACHED)
def usual_way(
    parent: ModuleType, port: int | str, kind: ModuleType, child_port: int | str | None,
    turn: int | None,
) -> tuple[int | str, int]:  # fmt: skip
    """The given port of a kind, or the usual one, and the turn to dock it with. [deg]

    The turn is the given one if the ports allow it, else the first they allow.
    """
    mine = usual_port(parent, port, kind) if child_port is None else child_port
    there = kind.port(mine).turns
    allowed = [each for each in parent.port(port).turns if each in there]
    if turn is not None and (turn in allowed or not allowed):
        return mine, turn
    return mine, allowed[0] if allowed else 0


def refusal(docking: Callable[..., Organism], *how: Any, **options: Any) -> str:
    """The reason against a docking; empty when it can be done."""
    try:
        docking(*how, **options)
    except DockingError as error:
        return str(error)
    return ""


def dock(
    organism: Organism | None,
    parent: str | None,
    port: int | str | None,
    kind: ModuleType,
    child_port: int | str | None = None,
    turn: int | None = None,
) -> Organism:
    """The organism with one more module; the first one is the base.

    Args:
        parent, port: Where to; None for the first module.
        child_port, turn: None for the usual ones.
    """
    if organism is None:
        return Organism.start(kind, next_name(None))
    if parent is None or port is None:
        raise DockingError("click a free side of a module: a new module docks to one that is there")
    mine, angle = usual_way(organism.kind(parent), port, kind, child_port, turn)
    return organism.dock(parent, port, next_name(organism), mine, kind=kind, turn=angle)


def remove(organism: Organism, name: str) -> Organism | None:
    """Without a module and all beyond it; None when nothing is left."""
    if name == organism.base and len(organism) == 1:
        return None
    if name == organism.base:
        raise DockingError(
            f"'{name}' is the base: all other modules are docked to it. Make another module the "
            "base first, or start a new project."
        )
    return organism.undock(name)[0]


def move(
    organism: Organism,
    name: str,
    parent: str,
    port: int | str,
    child_port: int | str | None = None,
    turn: int | None = None,
) -> Organism:
    """A module, with all beyond it, docked elsewhere; by default with the port it has now."""
    if parent in organism.subtree(name):
        raise DockingError(f"'{name}' cannot dock to '{parent}', which is docked beyond it")
    held = organism.docking(name)
    rest, loose = organism.undock(name)
    mine = held.child_port if child_port is None and held is not None else child_port
    near, kind = rest.kind(parent), organism.kind(name)
    if mine not in mating_ports(near, port, kind):
        mine = None
    mine, angle = usual_way(near, port, kind, mine, turn)
    return rest.merge(parent, port, loose, name, mine, turn=angle)


def ways(parent: ModuleType, port: int | str, kind: ModuleType) -> list[tuple[int | str, int]]:
    """Every port of a kind that mates with a port, with every turn that both allow. [deg]"""
    allowed = parent.port(port).turns
    return [
        (mine, turn)
        for mine in mating_ports(parent, port, kind)
        for turn in allowed
        if turn in kind.port(mine).turns
    ]


def moves(organism: Organism, name: str, step: int = 0) -> Iterator[Site]:
    """Every port to which a module could move with all beyond it.

    Args:
        step: Of the ways to dock, this many after the one with the port it has now.
    """
    held, kind = organism.docking(name), organism.kind(name)
    if held is None:
        raise DockingError(f"'{name}' is the base: move a module that is docked")
    rest, loose = organism.undock(name)
    checks = MOST_SITES // len(loose)  # each docks all modules that are moved
    for module in rest.modules:
        near = rest.kind(module)
        for port in rest.free_ports(module):
            found = [way for way in ways(near, port, kind) if way[0] in loose.free_ports(name)]
            if not found:
                continue
            now = next((k for k, way in enumerate(found) if way[0] == held.child_port), 0)
            mine, turn = found[(now + step) % len(found)]
            checks -= 1
            how = (module, port, loose, name, mine)
            why = refusal(rest.merge, *how, turn=turn) if checks >= 0 else ""
            yield Site(module, port, mine, turn, why)


def turned(organism: Organism, name: str) -> Organism:
    """A module docked with its next free port, or by its next turn; else an error that says why."""
    held = organism.docking(name)
    if held is None:
        raise DockingError(f"'{name}' is the base; turn a module that is docked")
    parent, kind = organism.kind(held.parent), organism.kind(name)
    free = set(organism.free_ports(name)) | {held.child_port}
    found = [way for way in ways(parent, held.port, kind) if way[0] in free]
    now = found.index((held.child_port, held.turn))
    why = DockingError(f"'{name}' can be docked to '{held.parent}' in this way only")
    for port, turn in found[now + 1 :] + found[:now]:
        try:
            return move(organism, name, held.parent, held.port, port, turn)
        except DockingError as error:
            why = error
    raise why


def shifted(organism: Organism, name: str, step: int) -> Organism:
    """A module, with all beyond it, at the next port where it can dock; -1: the previous."""
    held = organism.docking(name)
    free = [site for site in moves(organism, name) if not site.why]
    assert held is not None  # else `moves` has refused: it is the base
    now = [(site.module, site.port) for site in free].index((held.parent, held.port))
    to = free[(now + step) % len(free)]
    return move(organism, name, to.module, to.port, to.child_port, to.turn)


def sites(
    organism: Organism, kind: ModuleType, child_port: int | str | None, turn: int | None
) -> Iterator[Site]:
    """Every free port with what the kind would do there."""
    name, count = next_name(organism), 0
    known: dict[tuple[int, int | str], tuple[int | str, int]] = {}  # hashing datasheets costs more
    for module in organism.modules:
        near = organism.kind(module)
        for port in organism.free_ports(module):
            way = known.get((id(near), port))
            if way is None:
                way = known[id(near), port] = usual_way(near, port, kind, child_port, turn)
            mine, angle = way
            count += 1
            how = (module, port, name, mine)
            why = refusal(organism.dock, *how, kind=kind, turn=angle) if count <= MOST_SITES else ""
            yield Site(module, port, mine, angle, why)
