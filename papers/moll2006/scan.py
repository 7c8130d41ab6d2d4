"""Fig. 4 for many frictions and units: which laws converge, and what they leave.

``python -m papers.moll2006.scan`` computes ``scan.json`` anew, in about twenty minutes of one core.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from modurob.distributed import Balanced, balance
from modurob.distributed.balancing import GearedDrive
from modurob.distributed.balancing.laws import GREEDY, Greedy
from modurob.sim import SimulationError
from papers.moll2006.setting import PAPERS_LAWS, PERIOD, Tree, trees

FILE = Path(__file__).with_name("scan.json")
FRICTIONS = (0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0)  # [N m s/rad] of each drive
UNITS = {"widths": None, "m": 1.0, "cm": 0.01}  # [m] of the lengths in the gains
DURATION = 3.0  # [s] of a run
REST = 0.5  # [s] at the end of a run, over which the rest error is averaged


class Outcome(NamedTuple):
    """The end of a run.

    Attributes:
        settled: From when on the distance stays below a tenth of the first; None for never. [s]
        rest: Mean distance over the last half second, as a share of the first.
        largest: Distance at its largest, as a share of the first.
        diverged: Whether the run broke off.
    """

    settled: float | None
    rest: float | None
    largest: float
    diverged: bool


def outcome(run: Balanced) -> Outcome:
    """Judge a run by its end, not by a first crossing."""
    share = run.distance / run.distance[0]
    rest = float(share[run.t > run.t[-1] - REST].mean())
    return Outcome(run.reached, rest, float(share.max()), False)


def run(tree: Tree, law: str, unit: float | None, friction: float, duration: float) -> Outcome:
    """One tree under one law of the document."""
    width = tree.organism.kind(tree.organism.base).size
    chosen = Greedy(*GREEDY[law], width if unit is None else unit)
    drive = GearedDrive(friction=friction)
    try:
        return outcome(
            balance(tree.organism, chosen, duration=duration, drive=drive, record=10 * PERIOD)
        )
    except SimulationError as error:
        center = tree.model.center_of_mass(error.trajectory.q)[:, :2]
        away = np.linalg.norm(center, axis=1)
        return Outcome(None, None, float(np.nanmax(away) / away[0]), True)


def main() -> None:
    """All of them, into the file."""
    rows: list[dict[str, Any]] = []
    for friction in FRICTIONS:
        for unit, length in UNITS.items():
            for law in PAPERS_LAWS:
                if law == "default" and unit != "widths":  # its gains have no lengths
                    continue
                found = [run(tree, law, length, friction, DURATION) for tree in trees()]
                row = {"friction": friction, "unit": unit, "law": law}
                rows.append(
                    {**row, **{key: [getattr(x, key) for x in found] for key in Outcome._fields}}
                )
                print(json.dumps(rows[-1]), flush=True)
    text = ",\n ".join(json.dumps(_rounded(row)) for row in rows)
    FILE.write_text(f"[\n {text}\n]\n", encoding="utf-8")


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.3g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main()
