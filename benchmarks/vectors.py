"""Vectors of 2, 4 and 8 doubles on one machine: what AVX2 and AVX-512 bring.

Each width is a process of its own (`MODUROB_VECTOR_WIDTH`), in which Pinocchio runs beside, so that
the ratios to it can be compared. A width that the CPU does not have is split by the compiler: on a
CPU with AVX2, 8 doubles are two vectors. On a CPU with AVX-512, code for 4 doubles has its 32
registers, which AVX2 alone has not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from benchmarks.bodies import grid_tree
from benchmarks.contest import VECTORS, Contest
from benchmarks.dynamics import report, timed
from modurob.compiler.jit import WIDTH_VARIABLE, WIDTHS

STATES = 10_000  # of a batch
BUDGET, QUICK_BUDGET = 1.5, 0.3  # [s] for each comparison
JOINTS = (6, 20, 60)


def measured(budget: float) -> dict[str, Any]:
    """Batches of each body with the vectors of this process."""
    found: dict[str, Any] = {}
    for joints in JOINTS:
        contest = Contest(grid_tree(joints).model(), STATES, optional=False)
        contest.agree()
        for name in VECTORS:
            seconds = timed(contest.batched(name, STATES), 1, budget)
            found[f"grid {joints}, {name}"] = report(f"{joints}, {name}", seconds, STATES)
    return found


def run(quick: bool) -> dict[str, Any]:
    """Results of each width."""
    budget, results = QUICK_BUDGET if quick else BUDGET, {}
    script = f"import json; from benchmarks.vectors import measured; found = measured({budget})"
    for width in WIDTHS:
        done = subprocess.run(
            [sys.executable, "-c", f"{script}; print(json.dumps(found))"],
            env=os.environ | {WIDTH_VARIABLE: width}, stdout=subprocess.PIPE, text=True, check=True,
        )  # fmt: skip
        *said, last = done.stdout.splitlines()
        print(f"vectors of {width}", *said, sep="\n", flush=True)
        results[width] = json.loads(last)
    return results
