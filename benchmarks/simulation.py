"""Simulation: many states at once against MuJoCo, single steps, long runs, events.

The crab in the dyad model (meister2013), 4,096 initial states, Runge-Kutta 4 at 1 ms for a second;
MuJoCo runs the same tree with contact off, the same method and step, state after state in C, on one
core and on all. Both end at the same states before anything is timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import mujoco
import mujoco.rollout
import numpy as np

from benchmarks.peers import depth_first, mujoco_model
from modurob import Dock, Model, Undock, examples, simulate
from modurob.compiler.routine import cores
from modurob.organism.examples import HANGING

STATES, QUICK_STATES = 4096, 1024
DURATION, STEP = 1.0, 1e-3  # [s]
THEIRS, QUICK_THEIRS = 64, 16  # states that MuJoCo runs; its cost for each is the same
ROUNDS, QUICK_ROUNDS = 3, 2
SAME = 1e-9  # [rad] at the end: the same method and step in two engines
LONG, QUICK_LONG = 1_000_000, 100_000  # steps of the pendulum
LONG_STEP, SWING = 8e-3, np.deg2rad(30.0)  # [s], [rad] of the first hinge at the start
EVENTS = 20


def fastest(work: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Shortest seconds of each contender; they take turns."""
    best = dict.fromkeys(work, np.inf)
    for _ in range(rounds):
        for name, run in work.items():
            begin = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - begin)
    return best


def crab_states(model: Model, count: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return 0.3 * np.array([model.random_configuration(rng) for _ in range(count)])


class Mujoco:
    """The same tree in MuJoCo, RK4, contact off."""

    def __init__(self, model: Model) -> None:
        self.order = depth_first(model)
        self.model = mujoco_model(model, self.order)
        self.model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
        self.model.opt.timestep = STEP
        self.data = [mujoco.MjData(self.model) for _ in range(cores())]
        self.steps = round(DURATION / STEP)

    def one_core(self, q: np.ndarray) -> np.ndarray:
        """(states, nq) after the run, one state after the other."""
        found, data = np.empty_like(q), self.data[0]
        for k, each in enumerate(q):
            mujoco.mj_resetData(self.model, data)
            data.qpos[:] = each[self.order]
            mujoco.mj_step(self.model, data, self.steps)
            found[k, self.order] = data.qpos
        return found

    def all_cores(self, q: np.ndarray) -> None:
        """The same, shared between threads by MuJoCo itself."""
        rest = np.zeros((len(q), self.model.nv))
        start = np.concatenate([np.zeros((len(q), 1)), q[:, self.order], rest], axis=1)
        mujoco.rollout.rollout(self.model, self.data, start, nstep=self.steps)


def batches(quick: bool) -> dict[str, Any]:
    """Nanoseconds for a step of a state, and how many times faster than MuJoCo."""
    model = examples.crab().model()
    fused, theirs = model.compile(), Mujoco(model)
    q = crab_states(model, QUICK_STATES if quick else STATES)
    some = q[: QUICK_THEIRS if quick else THEIRS]

    def ours(which: Model) -> Callable[[], Any]:
        return lambda: simulate(which, q, None, DURATION, None, "RK4", dt=STEP, record=DURATION)

    for which in (model, fused):
        end = ours(which)().q[-1, : len(some)]
        assert np.abs(end - theirs.one_core(some)).max() < SAME
    work = {
        "modurob, table": ours(model),
        "modurob, compiled": ours(fused),
        "MuJoCo, one core": lambda: theirs.one_core(some),
        "MuJoCo, all cores": lambda: theirs.all_cores(some),
    }
    found = fastest(work, QUICK_ROUNDS if quick else ROUNDS)
    steps = DURATION / STEP
    counts = {name: len(some) if "MuJoCo" in name else len(q) for name in work}
    nanos = {name: 1e9 * found[name] / counts[name] / steps for name in work}
    peer = nanos["MuJoCo, all cores"]
    ratios = {name: peer / nanos[name] for name in work if "modurob" in name}
    for name, value in nanos.items():
        times = f"  {ratios[name]:.0f}x MuJoCo on all cores" if name in ratios else ""
        print(f"crab, {len(q)} states, RK4: {name:<20} {value:8.0f} ns a step{times}", flush=True)
    single = {f"{k}, one core": nanos["MuJoCo, one core"] / nanos[k] for k in ratios}
    seconds = found["modurob, compiled"]
    print(f"{len(q)} crabs for {DURATION:g} s in {seconds:.2f} s")
    return {
        "states": len(q),
        "nanoseconds_a_step": nanos,
        "times_faster": {**{f"{k}, all cores": v for k, v in ratios.items()}, **single},
    }


def steps(quick: bool) -> dict[str, float]:
    """Microseconds of a single step from Python."""
    model = examples.crab().model("physical").compile()
    q, found = np.full(model.nq, 0.2), {}
    count = 1000 if quick else 10_000
    for name in ("RK4", "SemiImplicitEuler", "Variational"):
        simulate(model, q, None, 0.05, None, name)
        begin = time.perf_counter()
        simulate(model, q, None, count * STEP, None, name, dt=STEP, record=count * STEP)
        found[name] = 1e6 * (time.perf_counter() - begin) / count
        print(f"physical crab, one state: {name:<18} {found[name]:6.1f} us a step", flush=True)
    for name in ("RK45", "DOP853", "LSODA"):
        simulate(model, q, None, 0.05, None, name)  # SciPy is imported by the first
        begin = time.perf_counter()
        simulate(model, q, None, 1.0, None, name)
        found[f"{name}, a second at 1e-8"] = 1e6 * (time.perf_counter() - begin)
        milliseconds = found[f"{name}, a second at 1e-8"] / 1e3
        print(f"physical crab, one second at 1e-8: {name:<9} {milliseconds:6.1f} ms", flush=True)
    return found


def long_run(quick: bool) -> dict[str, Any]:
    """Energy of a pendulum of six modules over many swings."""
    model = examples.snake(7).with_base_pose(HANGING).model("physical").compile()
    q, count = SWING * np.eye(model.nq)[0], QUICK_LONG if quick else LONG
    swing = float(model.potential_energy(q) - model.potential_energy(np.zeros(model.nq)))
    results: dict[str, Any] = {"steps": count, "step [s]": LONG_STEP, "swing [J]": swing}
    for name in ("Variational", "RK4"):
        begin = time.perf_counter()
        run = simulate(
            model, q, None, count * LONG_STEP, None, name, dt=LONG_STEP, record=100 * LONG_STEP
        )
        seconds = time.perf_counter() - begin
        error = (run.energy - run.energy[0]) / swing
        tenths = error[: len(error) // 10 * 10].reshape(10, -1).mean(axis=1)
        results[name] = {
            "microseconds_a_step": 1e6 * seconds / count,
            "largest_error": float(np.abs(error).max()),
            "mean_of_each_tenth": tenths.tolist(),
        }
        print(
            f"{count:,} steps of {1e3 * LONG_STEP:g} ms, {name:<11} {1e6 * seconds / count:5.1f} us"
            f" a step; energy error at most {np.abs(error).max():.1e} of the swing, mean of the "
            f"first tenth {tenths[0]:+.1e}, of the last {tenths[-1]:+.1e}",
            flush=True,
        )
    return results


def events() -> dict[str, float]:
    """Milliseconds to let go of a module and to dock it again, all equations included."""
    organism = examples.snake(20)
    model = organism.model("physical", base="free")
    v = np.zeros(model.nv)

    def run(count: int) -> float:
        pairs = [
            (Undock(0.01 * (k + 1), "m10"), Dock(0.01 * (k + 1), "m9", 3, "m10", 4))
            for k in range(count)
        ]
        changes = [event for pair in pairs for event in pair]
        begin = time.perf_counter()
        simulate(
            model, None, v, 0.01 * (count + 2), None, "RK4", dt=0.01, events=changes,
            organism=organism,
        )  # fmt: skip
        return time.perf_counter() - begin

    run(1)
    each = 1e3 * (run(EVENTS) - run(1)) / (2 * (EVENTS - 1))
    print(f"an event on a snake of 20 modules: {each:.1f} ms")
    return {"milliseconds": each}


def run(quick: bool) -> dict[str, Any]:
    """Measure everything and print the table."""
    return {
        "batches": batches(quick),
        "single": steps(quick),
        "long run": long_run(quick),
        "events": events(),
    }
