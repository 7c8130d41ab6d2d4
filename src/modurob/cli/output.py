"""Output of commands: drawings, tables that fit the terminal, JSON."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from modurob import FileError, Organism
from modurob.cli.characters import echo
from modurob.drawing.terminal import draw
from modurob.modules.files import finite

LARGEST_DRAWING = 200  # modules
BETWEEN = 2  # characters between the columns of a table
BLOCKS = "▁▂▃▄▅▆▇█"


def console(stderr: bool = False) -> Console:
    """Standard output: colors and its width on a terminal, plain text in 80 columns elsewhere.

    Text is shown as it is: names of modules and files may look like Rich's markup.
    """
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=False)


@contextlib.contextmanager
def bar(title: str, wanted: bool) -> Iterator[Callable[..., None]]:
    """A bar on standard error, if that is a terminal; yields a function of the share done.

    Its second argument, if there is one, is another title.
    """
    screen = console(stderr=True)
    if not wanted or not screen.is_terminal:
        yield lambda done, text=title: None
        return
    # takes a moment, and is rarely needed
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    name = TextColumn("{task.description}", markup=False)
    with Progress(name, BarColumn(), TaskProgressColumn(), console=screen, transient=True) as shown:
        task = shown.add_task(title, total=1.0)
        yield lambda done, text=title: shown.update(task, completed=done, description=text)


def sparkline(values: Sequence[float], width: int = 24) -> str:
    """Numbers as a line of blocks, some of them where there is no room for all."""
    valid = [x for x in values if np.isfinite(x)]
    if not valid:
        return ""
    places = np.linspace(0, len(valid) - 1, min(len(valid), width)).round().astype(int)
    shown = [valid[k] for k in places.tolist()]
    low, high = min(shown), max(shown)
    scale = (len(BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(BLOCKS[round((x - low) * scale)] for x in shown)


def check_path(option: str, path: str | None) -> None:
    """Refuse an empty name, a script's unset variable, and an option in its place."""
    if path is not None and (path == "" or path.startswith("--")):
        raise FileError(f"{option} needs the name of a file, got '{path}'")


def refuse_to_overwrite(paths: Iterable[str | os.PathLike[str]], force: bool) -> None:
    """Refuse to overwrite files that are there, unless forced."""
    for path in paths:
        if os.path.exists(path) and not force:
            raise FileError(f"{path} already exists; --force overwrites it")


def print_json(data: Any) -> None:
    """JSON and nothing else; null for numbers that JSON does not have."""
    narrow = not (sys.stdout.encoding or "").lower().startswith("utf")
    echo(json.dumps(finite(data), indent=1, ensure_ascii=narrow, allow_nan=False))


def summary(title: str, organism: Organism) -> str:
    """One line: ``crab: 6 modules (6 scout), 5 dockings, 6 kg, base m0``."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in _kinds(organism).items())
    modules = "1 module" if len(organism) == 1 else f"{len(organism)} modules"
    dockings = "1 docking" if len(organism) == 2 else f"{len(organism) - 1} dockings"
    return (
        f"{title}: {modules} ({kinds}), {dockings}, {_mass(organism):.6g} kg, base {organism.base}"
    )


def summary_data(title: str, organism: Organism) -> dict[str, Any]:
    """The same for machines."""
    return {
        "title": title,
        "modules": len(organism),
        "kinds": _kinds(organism),
        "mass": _mass(organism),
        "base": organism.base,
    }


def _kinds(organism: Organism) -> dict[str, int]:
    return Counter(organism.kind(name).name for name in organism.modules)


def _mass(organism: Organism) -> float:
    return float(sum(organism.kind(name).mass for name in organism.modules))


def print_drawing(out: Console, organism: Organism) -> None:
    """The organism as text, if there are not too many modules for that."""
    if len(organism) > LARGEST_DRAWING:
        out.print(f"(no drawing of more than {LARGEST_DRAWING} modules)")
        return
    for line in draw(organism, out.width).splitlines():
        out.print(Text(line, no_wrap=True, overflow="ignore"), crop=False)
    out.print()


def plain_table(first: str | None = None, *numbers: str, header: bool = True) -> Table:
    """A light table: a line below the head; perhaps a bold first column and columns of numbers."""
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True,
        show_header=header,
    )  # fmt: skip
    if first is not None:
        table.add_column(first, style="bold", no_wrap=bool(first))
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def print_table(out: Console, title: str, table: Table) -> None:
    """A table below its title; where it is too wide, one cell a line with its heading."""
    out.print(Text(title, style="bold"))
    if _needed_width(table) <= out.width:
        out.print(table)
    else:
        _print_cells(out, table)
    out.print()


def _needed_width(table: Table) -> int:
    """Characters without which words or numbers would be cut."""
    widths = []
    for column in table.columns:
        texts = [str(cell) for cell in (column.header, *column.cells)]
        pieces = texts if column.no_wrap else [word for text in texts for word in text.split()]
        widths.append(max(map(cell_len, pieces), default=0))
    return sum(widths) + BETWEEN * (len(widths) - 1)


def _print_cells(out: Console, table: Table) -> None:
    headings = [str(column.header) for column in table.columns]
    for row in zip(*(column.cells for column in table.columns), strict=True):
        name, *cells = row
        out.print(Text(str(name), style="bold"))
        for heading, cell in zip(headings[1:], cells, strict=True):
            if str(cell):
                lead = f"  {heading}: " if heading else "  "
                out.print(Text.assemble(lead, cell), soft_wrap=True)


def print_matrix(
    out: Console,
    title: str,
    matrix: np.ndarray,
    columns: Sequence[str],
    rows: Sequence[str],
    *,
    last_column: Sequence[str] = (),
    last_row: Sequence[str] = (),
) -> None:
    """A matrix with headings, dots for zeros, in several tables if it is wider than the terminal.

    The last column is headed ``kind`` and repeated in each of the tables.
    """
    widths = [
        max(map(len, cells))
        for cells in zip(
            columns, *matrix.astype(str), *([last_row] if last_row else ()), strict=True
        )
    ]
    fixed = max(map(len, ("class" if last_row else "", *rows))) + (
        4 + BETWEEN if last_column else 0
    )
    for start, end in _blocks(widths, out.width - fixed):
        whole = (start, end) == (0, len(widths))
        part = title if whole else f"{title}, {columns[start]} to {columns[end - 1]}"
        table = plain_table("", *columns[start:end])
        if last_column:
            table.add_column("kind", style="cyan", no_wrap=True)
        for index, name in enumerate(rows):
            cells = [Text("·", style="dim") if n == 0 else str(n) for n in matrix[index, start:end]]
            extra = [last_column[index]] if last_column else []
            table.add_row(
                name, *cells, *extra, end_section=bool(last_row) and index == len(rows) - 1
            )
        if last_row:
            table.add_row("class", *(Text(text, style="cyan") for text in last_row[start:end]))
        print_table(out, part, table)


def _blocks(widths: Sequence[int], room: int) -> list[tuple[int, int]]:
    """Ranges of columns that fit side by side."""
    blocks, start, used = [], 0, 0
    for index, width in enumerate(widths):
        if used + width + BETWEEN > room and index > start:
            blocks.append((start, index))
            start, used = index, 0
        used += width + BETWEEN
    return [*blocks, (start, len(widths))]


def print_flow(out: Console, title: str, cells: Sequence[str]) -> None:
    """Short texts in as many columns as fit, filled from top to bottom."""
    out.print(Text(title, style="bold"))
    width = max(map(len, cells)) + 3
    columns = max(1, (out.width + 3) // width)
    lines = -(-len(cells) // columns)
    for line in range(lines):
        texts = [cell.ljust(width) for cell in cells[line::lines]]
        out.print("".join(texts).rstrip())
    out.print()
