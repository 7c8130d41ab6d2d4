"""How contenders are timed: in turns, in one process, the fastest round counts."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

FEWEST = 4  # rounds


def interleaved(
    work: dict[str, Callable[[], Any]],
    budget: float,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Shortest seconds of each contender; they take turns until the budget [s] is spent.

    Args:
        clock: `time.process_time` for work on one core of a machine that others use, too.
    """
    best = dict.fromkeys(work, np.inf)
    until, rounds = time.perf_counter() + budget, 0
    while rounds < FEWEST or time.perf_counter() < until:
        rounds += 1
        for name, run in work.items():
            begin = clock()
            run()
            best[name] = min(best[name], clock() - begin)
    return best
