"""How contenders are timed: in turns, in one process, the fastest round counts."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

FEWEST = 4  # rounds


def interleaved(work: dict[str, Callable[[], Any]], budget: float) -> dict[str, float]:
    """Shortest seconds of each contender; they take turns until the budget [s] is spent."""
    best = dict.fromkeys(work, np.inf)
    until, rounds = time.perf_counter() + budget, 0
    while rounds < FEWEST or time.perf_counter() < until:
        rounds += 1
        for name, run in work.items():
            begin = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - begin)
    return best
