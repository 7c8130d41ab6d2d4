"""Gaits on the ground: one body with 256 gaits against MuJoCo's native rollout, on one core.

A chain of five cubes that is free to move, PD control along sines, a second at 1 ms. Both have the
same shapes, masses, gains and limits; contacts are each engine's own. MuJoCo evaluates the law in
C at every step; here it is a Python function, asked at every step, or every 10 ms and held, on the
table and on code for this body. All is CPU time. The second table is a body of 20 modules in real
time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.on_ground import FRICTION, Sines, on_ground
from benchmarks.timing import interleaved
from modurob import Ground, Model, Organism, examples, simulate

GAITS, THEIRS = 256, 32  # MuJoCo's cost for each gait is the same
DURATION, STEP, SAMPLE = 1.0, 1e-3, 1e-2  # [s]
HEIGHT = 0.051  # [m] of the base at the start
BUDGET_S, QUICK_BUDGET_S = 30.0, 8.0


def batch(quick: bool) -> dict[str, Any]:
    """Steps a second of each contender, and how many times faster than MuJoCo."""
    organism = examples.snake(5)
    model, rng = organism.model(base="free"), np.random.default_rng(0)
    fused = model.compile()
    phases = rng.uniform(0, 2 * np.pi, (GAITS, len(model.joint_names)))
    gait, some = Sines(model, phases), Sines(model, phases[:THEIRS])
    peer, ground = on_ground(organism, "dyad", gait), Ground(friction=FRICTION)
    start = np.tile(model.neutral(), (GAITS, 1))
    start[:, 2] = HEIGHT

    def ours(body: Model, sample: float | None) -> Callable[[], Any]:
        return lambda: simulate(
            body, start, None, DURATION, gait, "SemiImplicitEuler", dt=STEP, ground=ground,
            record=DURATION, sample_time=sample,
        )  # fmt: skip

    work = {
        "table, law at every step": ours(model, None),
        "fused, law at every step": ours(fused, None),
        f"table, law every {1e3 * SAMPLE:g} ms": ours(model, SAMPLE),
        f"fused, law every {1e3 * SAMPLE:g} ms": ours(fused, SAMPLE),
        "MuJoCo": lambda: peer.rollout(some, DURATION, STEP, HEIGHT),
    }
    found = interleaved(work, QUICK_BUDGET_S if quick else BUDGET_S, time.process_time)
    steps = DURATION / STEP
    rates = {n: (THEIRS if n == "MuJoCo" else GAITS) * steps / s for n, s in found.items()}
    ratios = {name: rate / rates["MuJoCo"] for name, rate in rates.items()}
    for name, rate in rates.items():
        print(f"{GAITS} gaits of 5 links: {name:<28} {rate / 1e6:7.3f} million steps/s, "
              f"{ratios[name]:5.1f}x", flush=True)  # fmt: skip
    return {"gaits": GAITS, "steps_a_second": rates, "times_faster_than_mujoco": ratios}


def single(quick: bool) -> dict[str, float]:
    """Share of a core that one body of 20 modules takes in real time, on each tier."""
    organism = Organism.random("backbone", 20, np.random.default_rng(1))
    model = organism.model(hinges="physical", base="free")
    gait = Sines(model, np.zeros(len(model.joint_names)))
    duration = 2.0

    def ours(body: Model) -> Callable[[], Any]:
        return lambda: simulate(
            body, None, None, duration, gait, "SemiImplicitEuler", dt=STEP, record=0.02,
            ground=Ground(lift=True), sample_time=SAMPLE,
        )  # fmt: skip

    work = {"table": ours(model), "fused": ours(model.compile())}
    found = interleaved(work, QUICK_BUDGET_S / 4 if quick else QUICK_BUDGET_S, time.process_time)
    shares = {tier: seconds / duration for tier, seconds in found.items()}
    for tier, share in shares.items():
        print(f"20 modules in real time, {tier}: {100 * share:.1f} % of a core", flush=True)
    return shares


def run(quick: bool) -> dict[str, Any]:
    return {"batch": batch(quick), "share_of_a_core": single(quick)}
