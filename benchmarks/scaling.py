"""How the time from docking to poses grows with the number of modules.

Long, slightly branched random organisms of Backbones: docked module by module, turned into a model
(both kinds of hinges), and asked for all poses. Each step should cost the same per module, whether
there are 100 modules or 10,000: the fitted exponent of the total time should be close to 1.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from modurob import DockingError, Organism

SIZES = (10, 30, 100, 300, 1000, 3000, 10_000)
QUICK_SIZES = (10, 30, 100, 300, 1000)
FIT_FROM = 100  # modules; below, fixed costs hide the slope
MILESTONE = 1000  # modules; the total time that the README may quote
BRANCHING = 0.1  # chance that a module docks to any free port instead of the newest module's
REPETITIONS, QUICK_REPETITIONS = 5, 2  # the fastest counts: others were disturbed
SIDES = (2, 3, 4, 5)
HINGES = ("dyad", "physical")

Plan = list[tuple[str, int, str, int]]


def chain_like(modules: int, rng: np.random.Generator) -> Plan:
    """Dockings (parent, side, child, side) of a long random organism, in order."""
    organism, plan = Organism.start("backbone"), []
    free = [("m0", side) for side in SIDES]
    while len(organism) < modules:
        newest = len(free) - int(rng.integers(1, min(len(free), 3) + 1))
        pick = int(rng.integers(len(free))) if rng.random() < BRANCHING else newest
        parent, side = free.pop(pick)
        child, child_side = f"m{len(organism)}", int(rng.choice(SIDES))
        try:
            organism = organism.dock(parent, side, child, child_side)
        except DockingError:  # the cell is taken
            continue
        plan.append((parent, side, child, child_side))
        free.extend((child, side) for side in SIDES if side != child_side)
    return plan


def grow(plan: Plan) -> Organism:
    """The organism of a plan, docked one by one."""
    organism = Organism.start("backbone")
    for parent, side, child, child_side in plan:
        organism = organism.dock(parent, side, child, child_side)
    return organism


def fastest(work: Callable[[], Any], repetitions: int) -> tuple[float, Any]:
    """Shortest duration in seconds, and the last result."""
    best, result = np.inf, None
    for _ in range(repetitions):
        gc.collect()
        begin = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - begin)
    return best, result


def measure(modules: int, repetitions: int, rng: np.random.Generator) -> dict[str, float]:
    """Seconds of each step for one size."""
    plan = chain_like(modules, rng)
    seconds, organism = fastest(lambda: grow(plan), repetitions)
    row: dict[str, float] = {"modules": modules, "dock": seconds}
    for hinges in HINGES:
        seconds, model = fastest(lambda hinges=hinges: organism.model(hinges), repetitions)
        row[f"{hinges} model"] = seconds
        q = model.random_configuration(rng)
        seconds, _ = fastest(lambda model=model, q=q: model.forward_kinematics(q), repetitions)
        row[f"{hinges} poses"] = seconds
    row["total"] = sum(value for key, value in row.items() if key != "modules")
    return row


def exponent(rows: list[dict[str, float]], step: str) -> float:
    """Slope of log(time) over log(modules) from `FIT_FROM` modules up."""
    large = [row for row in rows if row["modules"] >= FIT_FROM]
    slope, _ = np.polyfit(
        np.log([row["modules"] for row in large]), np.log([row[step] for row in large]), 1
    )
    return float(slope)


def run(quick: bool) -> dict[str, Any]:
    """Measure, print a table in milliseconds, and return the numbers in seconds."""
    rng = np.random.default_rng(0)
    repetitions = QUICK_REPETITIONS if quick else REPETITIONS
    measure(30, 1, rng)  # fill the caches of datasheets and dyads: a session does so once
    rows: list[dict[str, float]] = []
    steps: list[str] = []
    for modules in QUICK_SIZES if quick else SIZES:
        rows.append(measure(modules, repetitions, rng))
        if not steps:
            steps = [key for key in rows[0] if key != "modules"]
            print("modules  " + "".join(f"{step:>16}" for step in steps) + "   [ms]")
        print(f"{modules:>7}  " + "".join(f"{1e3 * rows[-1][step]:>16.3f}" for step in steps))
    exponents = {step: exponent(rows, step) for step in steps}
    print("exponent " + "".join(f"{exponents[step]:>16.2f}" for step in steps))
    milestone = next(row["total"] for row in rows if row["modules"] == MILESTONE)
    print(f"{MILESTONE} modules, docked, both models and their poses: {1e3 * milestone:.0f} ms")
    return {"rows": rows, "exponents": exponents, f"total_{MILESTONE}": milestone}
