"""Filters on 50 random bodies with friction up to 10 N m s/rad at 1, 2 and 5 ms: some minutes.

    python tools/ekf_campaign.py [bodies] [runs] [samples]

Prints one line for each body and sample time, and ends with status 1 when a filter diverges or is
not consistent. `tests/estimation/test_stiff.py` takes a sample of it.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from modurob.estimation import consistency  # noqa: E402
from oracles import filter_runs  # noqa: E402

PERIODS = (1e-3, 2e-3, 5e-3)  # [s]
LEVEL = 1 - 1e-4  # of each band: one false alarm in some hundred campaigns


def main(bodies: int = 50, runs: int = 8, samples: int = 25) -> int:
    """Run the campaign; the number of filters that fail."""
    failed, all_values, begin = 0, {period: [] for period in PERIODS}, time.monotonic()
    for seed in range(bodies):
        model = filter_runs.body(seed)
        for period in PERIODS:
            found = filter_runs.runs(model, period, runs, samples, seed)
            verdict = consistency(found.nees, found.dof, LEVEL)
            failed += not verdict.consistent
            all_values[period].append((found.nees.sum(), found.dof * len(found.nees)))
            base = "free" if model.free_base else "fixed"
            print(
                f"{seed:3} {base:5} {model.nv:3} nv {1e3 * period:g} ms, decay {found.decay:8.3g}, "
                f"{found.chosen[0]} x {found.chosen[1]}: {verdict}",
                flush=True,
            )
    for period, values in all_values.items():
        total, dof = np.sum(values, axis=0)
        verdict = consistency([total], int(dof), LEVEL)
        print(f"all at {1e3 * period:g} ms: NEES / degrees of freedom {total / dof:.4f}, {verdict}")
        failed += not verdict.consistent
    print(f"{failed} of {3 * bodies + 3} bands missed, {time.monotonic() - begin:.0f} s")
    return failed


if __name__ == "__main__":
    sys.exit(1 if main(*(int(x) for x in sys.argv[1:])) else 0)
