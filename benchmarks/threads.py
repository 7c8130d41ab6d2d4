"""What more threads bring on a batch: how many times faster than one."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.bodies import grid_tree
from benchmarks.timing import interleaved
from modurob.compiler.routine import cores

STATES = 10_000  # of a batch
BUDGET, QUICK_BUDGET = 4.0, 0.6  # [s] for each comparison


def run(quick: bool) -> dict[str, Any]:
    """Gains over one thread, for each body, function and number of threads."""
    budget = QUICK_BUDGET if quick else BUDGET
    numbers = [n for n in (1, 2, 4, 8) if n <= cores()]
    results: dict[str, Any] = {}
    for joints in (20, 60):
        model = grid_tree(joints).model()
        rng = np.random.default_rng(0)
        q = np.array([model.random_configuration(rng) for _ in range(STATES)])
        v, a = rng.standard_normal((2, STATES, model.nv))
        for name in ("inverse_dynamics", "forward_dynamics"):
            routine = getattr(model, name)
            found = interleaved(
                {str(n): partial(routine, q, v, a, threads=n) for n in numbers},
                budget * len(numbers) / 2,
            )
            gains = {n: found["1"] / seconds for n, seconds in found.items() if n != "1"}
            results[f"{name}, {joints} joints"] = gains
            said = ", ".join(f"{gain:.2f} with {n}" for n, gain in gains.items())
            print(f"{name}, {joints} joints: times one thread {said}", flush=True)
    return results
