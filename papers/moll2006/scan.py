"""Fig. 4 for many frictions and units: which laws converge, and what they leave.

``python -m papers.moll2006.scan`` computes ``scan.json`` anew, in about three minutes of one core.
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from modurob.distributed import Balanced, balance
from modurob.distributed.balancing import GearedDrive
from modurob.distributed.balancing.laws import GREEDY, Greedy
from papers.moll2006.setting import PAPERS_LAWS, PERIOD, Tree, trees

FILE = Path(__file__).with_name("scan.json")
FRICTIONS = (0.03, 0.3, 1.0, 2.0)  # [N m s/rad] of each drive
UNITS = {"widths": None, "m": 1.0, "cm": 0.01}  # [m] of the lengths in the gains
DURATION = 1.0  # [s] of a run
STEP = 2e-4  # [s] of the integration: with 1 ms the swings of light modules are not resolved
REST = 0.3  # [s] at the end of a run, over which the rest error is averaged


class Outcome(NamedTuple):
    """The end of a run.

    Attributes:
        settled: From when on the distance stays below a tenth of the first; None for never. [s]
        rest: Mean distance over the last 0.3 s, as a share of the first.
        speed: Of the fastest joint; it is 5 rad/s or so in a run that converges. [rad/s]
    """

    settled: float | None
    rest: float
    speed: float


def outcome(run: Balanced) -> Outcome:
    """Judge a run by its end, not by a first crossing."""
    share = run.distance / run.distance[0]
    rest = float(share[run.t > run.t[-1] - REST].mean())
    return Outcome(run.reached, rest, float(np.abs(run.v).max()))


def run(tree: Tree, law: str, unit: float | None, friction: float) -> Outcome:
    """One tree under one law of the document."""
    width = tree.organism.kind(tree.organism.base).size
    chosen = Greedy(*GREEDY[law], width if unit is None else unit)
    drive = GearedDrive(friction=friction)
    return outcome(
        balance(tree.organism, chosen, duration=DURATION, drive=drive, dt=STEP, record=10 * PERIOD)
    )


def main() -> None:
    """All of them, into the file."""
    rows: list[dict[str, Any]] = []
    for unit, length in UNITS.items():
        laws = PAPERS_LAWS if unit == "widths" else PAPERS_LAWS[1:]  # default has no lengths
        for friction, law in product(FRICTIONS, laws):
            found = [run(tree, law, length, friction) for tree in trees()]
            columns = {key: [getattr(x, key) for x in found] for key in Outcome._fields}
            rows.append(_rounded({"friction": friction, "unit": unit, "law": law, **columns}))
            print(json.dumps(rows[-1]), flush=True)
    text = ",\n ".join(json.dumps(row) for row in rows)
    FILE.write_text(f"[\n {text}\n]\n", encoding="utf-8")


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.3g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main()
