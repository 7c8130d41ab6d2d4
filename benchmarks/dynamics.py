"""Dynamics against Pinocchio, CasADi, dynibo and MuJoCo: microseconds a state, and ratios.

All contenders of a row run in one process, interleaved, on one thread, on the same states; the
fastest of many rounds counts for each, in CPU time. Before timing, their results are compared. All
write into arrays that are made once, modurob by `Model.prepare`; only "plain" calls make new ones.
CasADi's C is generated from the operations that modurob has simplified (`interop.casadi.graph`, its
Jacobians for matrices), compiled by gcc with `-O3 -march=native` and called in a loop in C; single
calls go through its buffers, which are bound to fixed arrays. Pinocchio's batches run in C++:
`rneaInParallel`, `abaInParallel`, and loops of ours around `crba` and `computeRNEADerivatives`.
dynibo and MuJoCo have no batches and are called from Python with one state. MuJoCo computes more
than is asked.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

from benchmarks.bodies import grid_tree
from benchmarks.contest import FUSED_UP_TO, VECTORS, Contest, repeated
from benchmarks.timing import interleaved
from modurob import Model, examples

BUDGET, QUICK_BUDGET = 1.5, 0.3  # [s] for each comparison
STATES = 10_000  # of a large batch
SIZES = (1, 16, 256, 4096)  # of small batches
SIZES_OF = ("grid 6", "grid 20", "grid 60")  # bodies whose small batches are measured
ENOUGH = 1000  # states in one measurement, so that the clock does not matter


def bodies(quick: bool) -> dict[str, Model]:
    """The organisms that are measured."""
    found = {f"grid {n}": grid_tree(n).model() for n in (2, 6, 20, 60)}
    found["superbot 60"] = examples.superbot_tree(rng=np.random.default_rng(1)).model("physical")
    for n in () if quick else (300, 1000):
        found[f"grid {n}"] = grid_tree(n).model()
    return found


def report(label: str, seconds: dict[str, float], each: int) -> dict[str, Any]:
    """Print a row and return microseconds and ratios to Pinocchio."""
    micros = {name: 1e6 * value / each for name, value in seconds.items()}
    theirs = micros.get("pinocchio", np.nan)
    ratios = {name: theirs / us for name, us in micros.items() if name != "pinocchio"}
    cells = [f"{name} {micros[name]:.3f} us ({x:.1f}x)" for name, x in ratios.items()]
    print(f"{label:<42} pinocchio {theirs:.3f} us  {'  '.join(cells)}", flush=True)
    if "pinocchio" not in micros:
        return {"microseconds": micros}
    return {"microseconds": micros, "times_faster_than_pinocchio": ratios}


def timed(work: dict[str, Any], repetitions: int, budget: float) -> dict[str, float]:
    """Shortest CPU time of so many calls of each contender [s]."""
    return interleaved(repeated(work, repetitions), budget, clock=time.process_time)


def measure(label: str, contest: Contest, budget: float) -> dict[str, Any]:
    """All comparisons of one body."""
    row: dict[str, Any] = {"missing": contest.missing} if contest.missing else {}
    small = contest.model.nv <= FUSED_UP_TO
    for name in VECTORS + ("mass_matrix", "inverse_dynamics_derivatives") * small:
        count = contest.count(name)
        found = timed(contest.batched(name, count), 1, budget)
        row[name] = report(f"{label}: {name}", found, count)
        for size in (size for size in SIZES if label in SIZES_OF and size <= count):
            calls = -(-ENOUGH // size)
            found = timed(contest.batched(name, size), calls, budget / 3)
            row[f"{name}, batch of {size}"] = report(
                f"{label}: {name}, {size}", found, calls * size
            )
    for name in VECTORS * small:
        calls = 2000 // contest.model.nv + 50
        found = timed(contest.single(name), calls, budget)
        row[f"single {name}"] = report(f"{label}: one {name}", found, calls)
    return row


def redocking(budget: float) -> dict[str, float]:
    """From undocking one of 100 modules to the first torque of the new body."""
    organism = examples.snake(100)
    still = np.zeros(98)
    organism.model().inverse_dynamics(*np.zeros((3, 99)))

    def work() -> None:
        rest, _ = organism.undock("m99")
        rest.model().inverse_dynamics(still, still, still)

    best = interleaved({"undock": work}, budget, clock=time.process_time)
    print(f"undock 1 of 100 modules -> first torque: {1e3 * best['undock']:.2f} ms")
    return {"milliseconds": 1e3 * best["undock"]}


def compiling() -> dict[str, float]:
    """CPU seconds to fuse 20 joints, and to answer first in a new process with an empty cache."""
    from modurob.compiler import fused, jit
    from modurob.equations.quantities import QUANTITIES

    model, seconds = grid_tree(20, seed=7).model(), {}
    with tempfile.TemporaryDirectory() as folder:
        kept = os.environ.get(jit.CACHE_VARIABLE)
        os.environ[jit.CACHE_VARIABLE] = folder
        for name in ("inverse_dynamics", "forward_dynamics", "mass_matrix"):
            begin = time.process_time()
            jit.compile_ir(fused.module_ir(QUANTITIES[name], model))
            seconds[f"fuse {name}"] = time.process_time() - begin
        script = (
            "import time; b = time.process_time(); import modurob as mr, numpy as np; "
            "m = mr.examples.crab().model(); m.inverse_dynamics(*np.zeros((3, 3))); "
            "print(time.process_time() - b)"
        )
        for label in ("cold", "warm"):
            done = subprocess.run(
                [sys.executable, "-c", script], capture_output=True, text=True, check=True
            )
            seconds[f"import to first answer, {label} cache"] = float(done.stdout)
        if kept is None:
            del os.environ[jit.CACHE_VARIABLE]
        else:
            os.environ[jit.CACHE_VARIABLE] = kept
    for name, value in seconds.items():
        print(f"{name:<48} {value:.3f} s")
    return seconds


def growth(rows: dict[str, Any]) -> dict[str, float]:
    """Exponent of the cost over the number of modules, on the dyad tier."""
    exponents = {}
    for name in ("inverse_dynamics", "forward_dynamics"):
        sizes = [n for n in (20, 60, 300, 1000) if f"grid {n}" in rows]
        costs = [rows[f"grid {n}"][name]["microseconds"]["dyads"] for n in sizes]
        exponents[name] = float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])
        print(f"{name} on the dyad tier grows with modules^{exponents[name]:.2f}")
    return exponents


def run(quick: bool) -> dict[str, Any]:
    """Measure everything and print the table."""
    budget = QUICK_BUDGET if quick else BUDGET
    results: dict[str, Any] = {}
    for label, model in bodies(quick).items():
        contest = Contest(model, STATES if model.nv <= FUSED_UP_TO else 1000)
        contest.agree()
        results[label] = measure(label, contest, budget)
    results["redocking"] = redocking(budget)
    results["compiling"] = compiling()
    results["exponents"] = growth(results)
    return results
