"""Organisms from matrices and drawings, and random ones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import generator, is_whole
from modurob.errors import DockingError, MatrixError, StateError, choices
from modurob.modules import ModuleType, catalog
from modurob.organism.docking import Docking, edges_outward
from modurob.organism.matrices import Aim
from modurob.organism.organism import HEADINGS, Organism, resolve_kind

ARROWS = "^<v>"  # side 3 after 0, 1, 2, 3 quarter turns
CELL_WIDTH, CELL_HEIGHT = 4, 2  # characters and lines of a cell in a drawing
TOKEN = re.compile(r"(?P<kind>[A-Za-z])(?P<arrow>[\^<v>])(?P<base>\*?)")
LARGEST_SIDE = 10**6  # a number on a module, not a measurement
TRIES = 200  # random dockings into taken cells before giving up; dense patches need a few


# -- assembly incidence matrix ---------------------------------------------------------------------


Kinds = Sequence[str | ModuleType]


def from_aim(matrix: ArrayLike | Aim, kinds: Kinds | None = None) -> Organism:
    """See `Organism.from_aim`."""
    turns: Sequence[int] | None = None
    if isinstance(matrix, Aim):
        kinds, turns, matrix = matrix.types if kinds is None else kinds, matrix.turns, matrix.matrix
    sides = _checked_matrix(matrix)
    types = _checked_kinds(kinds, len(sides))
    joints = [_joint(column, index) for index, column in enumerate(sides.T)]
    organism = Organism.start(types[0], "m0")
    for column, row, beyond in edges_outward(joints, 0):
        if f"m{beyond}" in organism:
            raise MatrixError(
                f"AIM column {column + 1} closes a loop: v{row} and v{beyond} are already "
                "connected; an organism is a tree"
            )
        new = Docking(
            f"m{row}",
            _port(types[row], sides[row, column], row, column),
            f"m{beyond}",
            _port(types[beyond], sides[beyond, column], beyond, column),
            turns[column] if turns is not None else 0,
            column + 1,
        )
        try:
            organism = organism._docked(new, types[beyond], row=beyond)
        except DockingError as error:
            raise MatrixError(f"AIM column {column + 1}: {error}") from None
    if len(organism) < len(types):
        missing = [f"v{row}" for row in range(len(types)) if f"m{row}" not in organism]
        raise MatrixError(f"the AIM is disconnected: {choices(missing)} cannot be reached from v0")
    return organism


def _checked_matrix(matrix: ArrayLike) -> np.ndarray:
    try:
        sides = np.array(matrix)
    except ValueError:
        raise MatrixError("the AIM's rows have different lengths") from None
    if sides.ndim != 2 or sides.shape[0] < 1:
        raise MatrixError(f"an AIM has two dimensions (modules, joints), got shape {sides.shape}")
    whole = sides.dtype.kind in "iuf" and np.all(
        (np.abs(sides) <= LARGEST_SIDE) & (np.floor(sides) == sides)
    )
    if sides.size and not whole:
        raise MatrixError("an AIM holds whole side numbers (0 where a joint touches nothing)")
    rows, columns = sides.shape
    if columns != rows - 1:
        raise MatrixError(
            f"an AIM has one column fewer than rows (a tree): {rows} rows need {rows - 1}, "
            f"got {columns}"
        )
    return sides.astype(int)


def _checked_kinds(kinds: Kinds | None, rows: int) -> list[ModuleType]:
    needed = f"the AIM has {rows} rows and needs as many kinds"
    if kinds is None:
        raise MatrixError(f"{needed}, got none")
    if not isinstance(kinds, Sequence | np.ndarray):
        raise MatrixError(f"{needed}, in a list, got {kinds!r}")
    if isinstance(kinds, str) and (len(kinds) != rows or kinds in catalog):
        raise MatrixError(
            f"{needed}, got {len(kinds)}: the string {kinds!r} is read letter by letter; "
            "full names go into a list, one for each row"
        )
    if len(kinds) != rows:
        raise MatrixError(f"{needed}, got {len(kinds)}")
    return [
        catalog.by_symbol(kind) if isinstance(kind, str) and len(kind) == 1 else resolve_kind(kind)
        for kind in kinds
    ]


def _joint(column: np.ndarray, index: int) -> tuple[int, int]:
    ends = np.flatnonzero(column)
    if len(ends) != 2:
        raise MatrixError(
            f"AIM column {index + 1} must touch exactly two modules, it touches {len(ends)}"
        )
    return int(ends[0]), int(ends[1])


def _port(kind: ModuleType, side: int, row: int, column: int) -> int | str:
    for port in kind.ports:
        if port.side == side:
            return port.label
    sides = choices(kind.port(label).side for label in kind.docks)
    raise MatrixError(
        f"AIM row v{row}, column {column + 1}: no side {side} on a {kind.name}: sides are {sides}"
    )


# -- drawings --------------------------------------------------------------------------------------


def from_grid(drawing: str, kinds: Mapping[str, str | ModuleType] | None = None) -> Organism:
    """See `Organism.from_grid`."""
    if not isinstance(drawing, str):
        raise MatrixError(f"a drawing is text such as 'B^--B^', got {drawing!r}")
    lines = drawing.expandtabs().splitlines()
    lines = [line for k, line in enumerate(lines) if line.strip() or any(map(str.strip, lines[:k]))]
    margin = min((found.start() for found in map(TOKEN.search, lines) if found), default=0)
    for row, line in enumerate(lines):
        if line[:margin].strip():
            raise MatrixError(
                f"line {row + 1} of the drawing has {line[:margin].strip()[:10]!r} left of all "
                "modules; it docks nothing"
            )
    lines = [line[margin:] for line in lines]
    cells, base = _cells(lines)
    _check_strokes(lines, cells)
    types: dict[str, ModuleType] = {}
    for letter in {letter: None for letter, _ in cells.values()}:
        own = (kinds or {}).get(letter)
        types[letter] = catalog.by_symbol(letter) if own is None else resolve_kind(own)
        if not types[letter].grid:
            name = types[letter].name
            raise MatrixError(f"'{letter}' ({name}) is no grid cube; a drawing shows cubes only")

    quarter = {cell: ARROWS.index(arrow) for cell, (_, arrow) in cells.items()}
    order = [base] + [cell for cell in cells if cell != base]
    names = {cell: f"m{number}" for number, cell in enumerate(order)}
    organism, reached = Organism.start(types[cells[base][0]], "m0"), [base]
    for here in reached:
        for heading, (dx, dy) in enumerate(HEADINGS):
            there = (here[0] + dx, here[1] + dy)
            if there not in cells or not _strokes(lines, here, there):
                continue
            if organism.parent(names[here]) == names[there]:
                continue
            if names[there] in organism:
                raise MatrixError(
                    f"the drawing closes a loop at {''.join(cells[there])} {there}; "
                    "an organism is a tree: leave out one of the strokes"
                )
            kind = types[cells[there][0]]
            new = Docking(
                names[here],
                _side(organism.kind(names[here]), heading - quarter[here]),
                names[there],
                _side(kind, heading + 2 - quarter[there]),
                0,
                organism._next,
            )
            try:
                organism = organism._docked(new, kind, row=order.index(there))
            except DockingError as error:
                raise MatrixError(f"the drawing: {error}") from None
            reached.append(there)
    if len(reached) < len(cells):
        lost = choices(
            f"{cells[cell][0]}{cells[cell][1]} at {cell}" for cell in order if cell not in reached
        )
        raise MatrixError(f"the drawing falls apart: not connected to the base: {lost}")
    return organism


def _cells(lines: Sequence[str]) -> tuple[dict[tuple[int, int], tuple[str, str]], tuple[int, int]]:
    """Letter and arrow of each cell (x right, y up), and the base's cell."""
    cells: dict[tuple[int, int], tuple[str, str]] = {}
    bases = []
    for row, line in enumerate(lines):
        rest = re.sub(r"[-|\s]", "", TOKEN.sub("", line))
        if rest:
            raise MatrixError(
                f"line {row + 1} of the drawing has {rest[:10]!r}; "
                "use a letter and one of ^ < v > for a module, * for the base, - and | to dock"
            )
        for token in TOKEN.finditer(line):
            if token.start() % CELL_WIDTH or row % CELL_HEIGHT:
                raise MatrixError(
                    f"'{token.group()}' is at line {row + 1}, character {token.start() + 1}; "
                    f"modules are every {CELL_WIDTH} characters and every {CELL_HEIGHT} lines"
                )
            cell = (token.start() // CELL_WIDTH, -(row // CELL_HEIGHT))
            cells[cell] = (token["kind"], token["arrow"])
            if token["base"]:
                bases.append(cell)
    if not cells:
        raise MatrixError("the drawing has no module; the smallest one is 'B^'")
    if len(bases) > 1:
        raise MatrixError(f"the drawing has {len(bases)} bases (*); one is needed")
    return cells, bases[0] if bases else next(iter(cells))


def _strokes(
    lines: Sequence[str], here: tuple[int, int], there: tuple[int, int]
) -> set[tuple[int, int]]:
    """(line, character) of the strokes between two neighboring cells."""
    column, row = CELL_WIDTH * min(here[0], there[0]), -CELL_HEIGHT * max(here[1], there[1])
    if here[1] == there[1]:
        stroke, first, last = "-", column + 2, column + CELL_WIDTH
    else:
        stroke, first, last, row = "|", column, column + CELL_WIDTH - 1, row + 1
    return {(row, first + k) for k, sign in enumerate(lines[row][first:last]) if sign == stroke}


def _check_strokes(lines: Sequence[str], cells: Mapping[tuple[int, int], tuple[str, str]]) -> None:
    """Refuse a stroke that docks nothing: a module is missing or misplaced."""
    used: set[tuple[int, int]] = set()
    for x, y in cells:
        for there in ((x + 1, y), (x, y - 1)):
            if there in cells:
                used |= _strokes(lines, (x, y), there)
    for row, line in enumerate(lines):
        for column, sign in enumerate(line):
            if sign in "-|" and (row, column) not in used:
                raise MatrixError(
                    f"'{sign}' at line {row + 1}, character {column + 1} of the drawing docks "
                    "nothing; - goes between modules side by side, | below the letter of one "
                    "above another"
                )


def _side(kind: ModuleType, heading: int) -> int | str:
    """The dock whose normal points to `heading` (quarter turns from x) in the module's frame."""
    for label in kind.docks:
        normal = kind.port_pose(label)[:2, 2]
        if np.allclose(normal, HEADINGS[heading % 4]):
            return label
    raise MatrixError(f"a {kind.name} has no dock towards {HEADINGS[heading % 4]}")


def to_grid(organism: Organism) -> str:
    """See `Organism.to_grid`."""
    places = {name: organism.place(name) for name in organism.modules}
    spots = {name: place for name, place in places.items() if place is not None}
    if len(spots) < len(places):
        off = choices(name for name in places if name not in spots)
        raise MatrixError(f"only a planar organism of cubes has a grid drawing; no cubes: {off}")
    left, top = min(p.x for p in spots.values()), max(p.y for p in spots.values())
    width = max(p.x for p in spots.values()) - left + 1
    height = top - min(p.y for p in spots.values()) + 1
    canvas = [[" "] * (CELL_WIDTH * width) for _ in range(CELL_HEIGHT * height - 1)]
    for name, place in spots.items():
        token = organism.kind(name).symbol + ARROWS[place.quarter]
        token += "*" if name == organism.base else ""
        line, column = CELL_HEIGHT * (top - place.y), CELL_WIDTH * (place.x - left)
        canvas[line][column : column + len(token)] = token
        parent = organism.parent(name)
        if parent is None:
            continue
        towards = spots[parent]
        if towards.y != place.y:
            canvas[CELL_HEIGHT * (top - max(towards.y, place.y)) + 1][column] = "|"
        else:
            canvas[line][CELL_WIDTH * (min(towards.x, place.x) - left) + 3] = "-"
    return "\n".join("".join(line).rstrip() for line in canvas)


# -- random ----------------------------------------------------------------------------------------


def random(kind: str | ModuleType | Kinds, modules: int, rng: np.random.Generator) -> Organism:
    """See `Organism.random`."""
    generator(rng, "a random organism")
    if not is_whole(modules) or modules < 1:
        raise StateError(f"modules must be a whole number of at least 1, got {modules!r}")
    given = [kind] if isinstance(kind, str | ModuleType) else list(kind)
    kinds = [kind for kind in map(resolve_kind, given) if not kind.virtual]
    if not kinds:
        got = choices(map(repr, given))
        raise StateError(f"a random organism needs at least one kind that docks, got {got}")
    organism = Organism.start(kinds[rng.integers(len(kinds))], "m0")
    free = [("m0", label) for label in organism.free_ports("m0")]
    tries = 0
    while len(organism) < modules:
        if not free or tries > TRIES:
            raise DockingError(
                f"no way to dock module {len(organism) + 1} of {modules}: "
                f"{len(free)} free ports left, none accepts a {choices(k.name for k in kinds)}"
            )
        pick = int(rng.integers(len(free)))
        parent, port = free[pick]
        new_kind = kinds[rng.integers(len(kinds))]
        here = organism.kind(parent).port(port)
        fitting = [
            p for p in new_kind.ports if here.mates_with(p) and set(here.turns) & set(p.turns)
        ]
        tries += 1
        if not fitting:
            continue
        there = fitting[rng.integers(len(fitting))]
        turns = [turn for turn in here.turns if turn in there.turns]
        name = f"m{len(organism)}"
        try:
            organism = organism.dock(
                parent, port, name, there.label, kind=new_kind, turn=turns[rng.integers(len(turns))]
            )
            tries, added = 0, organism.free_ports(name)
        except DockingError:  # the cell is taken, whatever side faces it
            added = ()
        free[pick] = free[-1]
        free.pop()
        free.extend((name, label) for label in added)
    return organism
