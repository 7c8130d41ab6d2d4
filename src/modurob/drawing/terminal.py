"""Organisms as text: boxes on the grid where there is a grid, a tree elsewhere."""

from __future__ import annotations

import numpy as np

from modurob.modules import ModuleType
from modurob.organism.builders import ARROWS
from modurob.organism.organism import HEADINGS, GridPlace, Organism

INSIDE = 11  # characters between the left and right border of a box
WIDTH, HEIGHT = INSIDE + 2, 5  # of a box, borders included
GAP_X, GAP_Y = 2, 1  # between boxes; a character is about twice as high as wide
STEP_X, STEP_Y = WIDTH + GAP_X, HEIGHT + GAP_Y
CENTER_X, CENTER_Y = WIDTH // 2, HEIGHT // 2
NAME = INSIDE - 2
PLAIN, DOUBLE = "┌─┐│└┘", "╔═╗║╚╝"
AXES = ("╌", "╎")  # a hinge axis along x, along y
UPRIGHT = "◦"  # a hinge axis that points at the reader


def draw(organism: Organism, width: int | None = None) -> str:
    """The organism as plain text, without color codes.

    A planar organism of cubes is seen from above (x right, y up): one box for each module with its
    name, the letter of its kind, an arrow for where side 3 points, a dashed line for the hinge
    axis, and the numbers of the two sides where modules are docked. The base has a double border.
    Every other organism is drawn as a tree.

    Args:
        width: Columns there are. Boxes that do not fit give way to the compact form of
            `Organism.to_grid`, and that to the tree.
    """
    spots = _planar(organism)
    if spots is None:
        return _tree(organism)
    if width is None or _columns(spots) * STEP_X - GAP_X <= width:
        return _boxes(organism, spots)
    compact = organism.to_grid()
    return compact if max(map(len, compact.splitlines())) <= width else _tree(organism)


def shorten(name: str, room: int) -> str:
    """The name, or its beginning and end around an ellipsis: names often differ at the end."""
    if len(name) <= room:
        return name
    tail = (room - 1) // 2
    return name[: room - 1 - tail] + "…" + name[len(name) - tail :]


# -- boxes -----------------------------------------------------------------------------------------


def _planar(organism: Organism) -> dict[str, GridPlace] | None:
    """The cell of each module if all share one grid."""
    places = {name: organism.place(name) for name in organism.modules}
    spots = {name: place for name, place in places.items() if place is not None}
    one_grid = len({place.grid for place in spots.values()}) == 1
    return spots if one_grid and len(spots) == len(places) else None


def _columns(spots: dict[str, GridPlace]) -> int:
    xs = [place.x for place in spots.values()]
    return max(xs) - min(xs) + 1


def _boxes(organism: Organism, spots: dict[str, GridPlace]) -> str:
    left, top = min(p.x for p in spots.values()), max(p.y for p in spots.values())
    rows = top - min(p.y for p in spots.values()) + 1
    canvas = [[" "] * (_columns(spots) * STEP_X) for _ in range(rows * STEP_Y)]
    corners = {
        name: (STEP_Y * (top - place.y), STEP_X * (place.x - left)) for name, place in spots.items()
    }
    for name, (line, column) in corners.items():
        for k, text in enumerate(_box(organism, name, spots[name])):
            canvas[line + k][column : column + WIDTH] = text
    for entry in organism.dockings:
        here, there = spots[entry.parent], spots[entry.child]
        heading = HEADINGS.index((there.x - here.x, there.y - here.y))
        _join(canvas, corners[entry.parent], heading, str(entry.port))
        _join(canvas, corners[entry.child], (heading + 2) % 4, str(entry.child_port))
    lines = ["".join(line).rstrip() for line in canvas]
    return "\n".join([*lines[:-GAP_Y], "", _legend(organism)])


def _box(organism: Organism, name: str, place: GridPlace) -> list[str]:
    kind, is_base = organism.kind(name), name == organism.base
    tl, across, tr, down, bl, br = DOUBLE if is_base else PLAIN
    axis = _axis(kind, place.quarter)
    middle = AXES[0] * 7 if axis == AXES[0] else axis
    mark = f" {kind.symbol}{ARROWS[place.quarter]}"
    lower = f"{mark:<5}{axis if axis == AXES[1] else ' '}{'base' if is_base else '':<5}"
    return [
        tl + across * INSIDE + tr,
        f"{down} {shorten(name, NAME):<{NAME}} {down}",
        down + middle.center(INSIDE) + down,
        down + lower + down,
        bl + across * INSIDE + br,
    ]


def _axis(kind: ModuleType, quarter: int) -> str:
    """The glyph for the hinge axis after some quarter turns; a space without a hinge."""
    if kind.dyad_screw is None:
        return " "
    along = int(np.argmax(np.abs(kind.dyad_screw[3:])))
    return UPRIGHT if along == 2 else AXES[(along + quarter) % 2]


def _join(canvas: list[list[str]], corner: tuple[int, int], heading: int, label: str) -> None:
    """Write a side's number into the border and draw the way to the neighbor beyond it."""
    line, column = corner
    if heading % 2:  # up or down
        row = line if heading == 1 else line + HEIGHT - 1
        gap = row - 1 if heading == 1 else row + 1
        room = shorten(label, INSIDE)
        start = column + CENTER_X - (len(room) - 1) // 2
        canvas[row][start : start + len(room)] = room
        canvas[gap][column + CENTER_X] = "┃"
    else:
        edge = column + WIDTH - 1 if heading == 0 else column
        gap = edge + 1 if heading == 0 else edge - GAP_X
        room = label[:3]  # a word would hide the hinge
        start = edge - len(room) + 1 if heading == 0 else edge
        canvas[line + CENTER_Y][start : start + len(room)] = room
        canvas[line + CENTER_Y][gap : gap + GAP_X] = "━" * GAP_X


def _legend(organism: Organism) -> str:
    kinds = {organism.kind(name).symbol: organism.kind(name).name for name in organism.modules}
    letters = ", ".join(f"{symbol} {name}" for symbol, name in kinds.items())
    return f"{letters}   ^<v> side 3   ╌ hinge axis   ━ docked sides   ═ base"


# -- tree ------------------------------------------------------------------------------------------


def _tree(organism: Organism) -> str:
    """One line a module; an only child is right below its parent, so that chains stay narrow."""
    lines = []
    stack = [(organism.base, "", "")]  # module, text before it, text before its children
    while stack:
        name, lead, indent = stack.pop()
        lines.append(lead + _line(organism, name))
        children = organism.children(name)
        if len(children) == 1:
            stack.append((children[0], indent + "↓ ", indent))
            continue
        for child in reversed(children):
            last = child == children[-1]
            stack.append(
                (child, indent + ("└─ " if last else "├─ "), indent + ("   " if last else "│  "))
            )
    return "\n".join(lines)


def _line(organism: Organism, name: str) -> str:
    entry, kind = organism.docking(name), organism.kind(name).name
    if entry is None:
        return f"{name} {kind} (base)"
    turn = f" turn {entry.turn}" if entry.turn else ""
    return f"{entry.port}→{entry.child_port}{turn}  {name} {kind}"
