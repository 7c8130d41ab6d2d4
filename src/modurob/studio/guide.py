"""The guided first build: progress of a body towards the crab, and the next click."""

from __future__ import annotations

from typing import Any, NamedTuple

from modurob import ModuleType, Organism, catalog
from modurob.studio.edits import heading

KIND = "scout"
DIRECTIONS = ((1, 0), (0, 1), (-1, 0), (0, -1))  # of the headings 0, 1, 2, 3
TAKE_BACK = "Undo it with Ctrl+Z"
CLICK = "Click the marked cell: "


class GuideStep(NamedTuple):
    """A docking of the crab.

    Attributes:
        parent: Index of a module that is there already; 0 is the first one.
        port, child_port: Sides that meet.
        text: Words for the user after `CLICK`; ``{parent}`` is the name of the parent.
    """

    parent: int
    port: int
    child_port: int
    text: str


CRAB = (
    GuideStep(0, 3, 4, "a second Scout docks with its side 4 to side 3 of {parent}."),
    GuideStep(1, 2, 5, "the first leg starts at side 2 of {parent}."),
    GuideStep(2, 3, 2, "its foot is turned: side 2 docks, so the hinge points elsewhere."),
    GuideStep(1, 5, 2, "the second leg, at side 5 of {parent}."),
    GuideStep(4, 3, 5, "its foot. That makes a crab of six Scouts."),
)
COUNT = len(CRAB) + 1  # modules of the crab


class Advice(NamedTuple):
    """The next thing to do.

    Attributes:
        done: Modules that are as in the crab, out of `COUNT`.
        text: Words for the user.
        cell: Cell of the plan to mark.
        click: Docking that a click on the cell does; None where something else must be done first.
    """

    done: int
    text: str
    cell: tuple[int, int] | None = None
    click: dict[str, Any] | None = None


def advice(organism: Organism | None) -> Advice:
    """The next step from a body to the crab, in whatever order and way it was built."""
    if organism is None:
        click = {"kind": KIND, "module": None, "port": None, "child_port": None}
        return Advice(0, f"{CLICK}the first module is the base.", (0, 0), click)
    scouts = [name for name in organism.modules if organism.kind(name).name == KIND]
    if not scouts:
        return Advice(0, f"The crab is made of Scouts. {TAKE_BACK}.")
    links = _links(organism)
    found = max((_matched(organism, links, name) for name in scouts), key=_count)
    done = _count(found)
    missing = next((k for k, name in enumerate(found) if name is None), None)
    if missing is None:
        return Advice(done, "")
    step = CRAB[missing - 1]
    parent = found[step.parent]
    assert parent is not None  # a module that is missing comes after its parent
    return _next(organism, links, done, step, parent)


Links = dict[tuple[str, int | str], tuple[str, int | str]]


def _links(organism: Organism) -> Links:
    """The module and port at the other side of each port that is docked."""
    links: Links = {}
    for entry in organism.dockings:
        links[entry.parent, entry.port] = entry.child, entry.child_port
        links[entry.child, entry.child_port] = entry.parent, entry.port
    return links


def _matched(organism: Organism, links: Links, first: str) -> list[str | None]:
    """(COUNT,) the modules that stand for those of the crab if `first` is its first one."""
    found: list[str | None] = [first]
    for step in CRAB:
        parent = found[step.parent]
        child, port = links.get((parent or "", step.port), (None, None))
        fits = child and port == step.child_port and organism.kind(child).name == KIND
        found.append(child if fits else None)
    return found


def _count(found: list[str | None]) -> int:
    return sum(name is not None for name in found)


def _next(organism: Organism, links: Links, done: int, step: GuideStep, parent: str) -> Advice:
    """The docking that is missing, or what is in its way."""
    kind: ModuleType = catalog[KIND]
    place = organism.place(parent)
    assert place is not None  # Scouts stand on a grid
    dx, dy = DIRECTIONS[(heading(kind, step.port) + place.quarter) % 4]
    cell = place.x + dx, place.y + dy
    if (parent, step.port) in links:
        other, side = links[parent, step.port]
        text = (
            f"'{other}' is docked to side {step.port} of '{parent}' with its side {side}; the crab "
            f"has side {step.child_port} of a Scout there. {TAKE_BACK}, or press R on it until it "
            "fits."
        )
        return Advice(done, text, cell)
    for name in organism.modules:
        there = organism.place(name)
        if there is not None and there.grid == place.grid and (there.x, there.y) == cell:
            text = f"Right-click '{name}' to remove it: it occupies the marked cell."
            return Advice(done, text, cell)
    click = {"kind": KIND, "module": parent, "port": step.port, "child_port": step.child_port}
    return Advice(done, CLICK + step.text.format(parent=parent), cell, click)
