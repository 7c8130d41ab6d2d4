"""Fig. 4 for other frictions and units: the region in which each sentence of section V holds.

``python -m papers.moll2006.scan`` computes ``scan.json`` anew, in about three minutes of one core;
``--jobs`` and ``--cluster`` spread the runs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from modurob.cli.executors import chosen_executor, executor_options
from modurob.distributed import balance
from modurob.distributed.balancing.laws import GREEDY, Greedy
from modurob.distributed.balancing.plant import GearedDrive
from modurob.scenario.presets import (
    TREE_LAWS,
    TREE_SEEDS,
    TreeOutcome,
    tree_outcome,
    tree_run,
    tree_sentences,
)
from papers import figures

FILE = Path(__file__).with_name("scan.json")
FRICTIONS = (0.03, 0.3, 1.0, 2.0)  # [N m s/rad] of each drive
UNITS = {"widths": None, "m": 1.0, "cm": 0.01}  # [m] of the lengths in the gains
COLORS = dict(zip(TREE_LAWS, (figures.PALETTE[k] for k in (1, 5, 0)), strict=True))


class Cell(NamedTuple):
    """A friction and a unit."""

    unit: str
    friction: float


def run(seed: int, law: str, cell: Cell) -> TreeOutcome:
    """One tree under one law of the document, with the steps of the preset."""
    known = tree_run(seed, law)
    length = UNITS[cell.unit] or known.organism.kind(known.organism.base).size
    found = balance(
        known.organism, Greedy(*GREEDY[law], length), duration=known.duration, dt=known.dt or 0.0,
        drive=GearedDrive(friction=cell.friction), record=10e-3,
    )  # fmt: skip
    return tree_outcome(found)


def _trees(row: tuple[str, float, str]) -> dict[str, Any]:
    """A row of the file: all trees with one unit, friction and law."""
    unit, friction, law = row
    found = [run(seed, law, Cell(unit, friction)) for seed in TREE_SEEDS]
    columns = {key: [_rounded(getattr(x, key)) for x in found] for key in TreeOutcome._fields}
    return {"friction": friction, "unit": unit, "law": law, **columns}


@click.command()
@executor_options
def main(jobs: int | None, cluster: str | None) -> None:
    """Compute all rows of scan.json."""
    items = [
        (unit, friction, law)
        for unit, friction, law in product(UNITS, FRICTIONS, TREE_LAWS)
        if law != "default" or unit == "widths"  # its gains have no lengths
    ]
    with chosen_executor(jobs, cluster) as executor:
        rows = executor.map(_trees, items, lambda done: print(f"{done:.0%}", flush=True))
    text = ",\n ".join(json.dumps(row) for row in rows)
    FILE.write_text(f"[\n {text}\n]\n", encoding="utf-8")


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.3g}")


# -- what it says ----------------------------------------------------------------------------------


def outcomes() -> dict[Cell, dict[str, list[TreeOutcome]]]:
    """Outcomes of the file by friction and unit, and by law."""
    found: dict[Cell, dict[str, list[TreeOutcome]]] = {}
    for row in json.loads(FILE.read_text(encoding="utf-8")):
        columns = zip(*(row[key] for key in TreeOutcome._fields), strict=True)
        each = [TreeOutcome(*values) for values in columns]
        cells = [Cell(row["unit"], row["friction"])]
        if row["law"] == "default":
            cells = [Cell(unit, row["friction"]) for unit in UNITS]
        for cell in cells:
            found.setdefault(cell, {})[row["law"]] = each
    return {cell: {law: found[cell][law] for law in TREE_LAWS} for cell in found}


def regions() -> dict[str, list[str]]:
    """For each sentence the frictions and units in which it holds."""
    held: dict[str, list[str]] = {}
    for cell, by_law in sorted(outcomes().items()):
        for sentence, holds in tree_sentences(by_law).items():
            held.setdefault(sentence, []).extend([f"{cell.friction:g} {cell.unit}"] * holds)
    return held


def draw(path: Path) -> None:
    """Rest errors over friction, a panel for each unit; numbers are trees that converge."""
    drawn, axes = figures.figure(1, len(UNITS), size=(11.4, 4.0), sharey=True)
    known = outcomes()
    for plane, unit in zip(axes[0], UNITS, strict=True):
        for k, law in enumerate(TREE_LAWS):
            each = [known[Cell(unit, friction)][law] for friction in FRICTIONS]
            rest = [100 * float(np.median([x.rest for x in trees])) for trees in each]
            plane.loglog(FRICTIONS, rest, color=COLORS[law], lw=1.8, marker="o", ms=5, label=law)
            for friction, height, trees in zip(FRICTIONS, rest, each, strict=True):
                beside = ((0, 7), (0, -13), (10, 0))[k]
                plane.annotate(
                    f"{_converged(trees)}", (friction, height), xytext=beside,
                    textcoords="offset points", ha="center", fontsize=8.5, color=COLORS[law],
                )  # fmt: skip
        plane.axhline(10, color=figures.FAINT, lw=1.0, ls=(0, (1, 2)))
        plane.set_xlabel("friction of the drives [N m s/rad]", color=figures.INK)
        plane.set_title(f"lengths in {unit}", color=figures.INK, fontsize=10, loc="left")
        plane.set_xticks(FRICTIONS, [f"{x:g}" for x in FRICTIONS], minor=False)
        plane.minorticks_off()
    axes[0, 0].set_ylabel("rest error, median [% of the start]", color=figures.INK)
    drawn.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3,
                 frameon=False, fontsize=9, labelcolor=figures.INK)  # fmt: skip
    figures.title(drawn, "Fig. 4 for other frictions and units; numbers: trees of 4 that converge")
    figures.save(drawn, path)


def _converged(trees: Sequence[TreeOutcome]) -> int:
    return sum(x.settled is not None for x in trees)


if __name__ == "__main__":
    main()
