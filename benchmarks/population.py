"""Many different bodies on the ground against MuJoCo, on all cores.

Bodies of 4 to 12 Backbones with a free base, joints that follow sines by PD control within limits,
steps of 1 ms. Both have the same shapes, masses, gains, limits and friction; contacts are each
engine's own, between bodies and ground only. MuJoCo has one native rollout for each body, as many
at a time as there are cores, of a sample of the bodies. Seconds are those of the wall clock, and of
all cores together, which other work on the machine disturbs less.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mujoco
import mujoco.rollout
import numpy as np

from benchmarks.bodies import FEWEST, FRICTION, KD, KP, MOST, STEP, TORQUE
from benchmarks.on_ground import OnGround, Sines, on_ground
from benchmarks.timing import interleaved
from modurob import Ground, JointWaves, Organism, Population
from modurob.compiler.pool import cores

BODIES, QUICK_BODIES, THEIRS = 10_000, 1_000, 48
SIZES = (1, 64, 1_000)
DURATION = 1.0  # [s]
BUDGET_S, QUICK_BUDGET_S = 60.0, 10.0


def bodies(count: int, seed: int = 0) -> list[Organism]:
    """Random bodies with joints."""
    rng, found = np.random.default_rng(seed), []
    while len(found) < count:
        body = Organism.random("backbone", int(rng.integers(FEWEST, MOST + 1)), rng)
        if body.model().joint_names:
            found.append(body)
    return found


class Rival:
    """One body in MuJoCo with its start and its commands."""

    def __init__(
        self, population: Population, waves: JointWaves, k: int, start: np.ndarray
    ) -> None:
        model, n = population.model(k), int(population.joints[k])
        law = Sines(model, waves.phase[k, :n], KP, KD, TORQUE)
        self.body: OnGround = on_ground(population.organism(k), "dyad", law)
        peer, data = self.body
        peer.opt.timestep = STEP
        data.qpos[:3], data.qpos[3:7] = start[:3], start[[6, 3, 4, 5]]
        self.start = np.concatenate([[0.0], data.qpos, data.qvel])[None]
        times = STEP * np.arange(round(DURATION / STEP))[:, None]
        rate = 2 * np.pi * waves.frequency[k]
        angle, A = rate * times + waves.phase[k, :n], waves.amplitude[k, :n]
        # kp (command - q) - kd v is the same law as here
        self.command = (A * np.sin(angle) + KD / KP * A * rate * np.cos(angle))[None]

    def run(self) -> float:
        """Height of the base at the end. [m]"""
        states, _ = mujoco.rollout.rollout(*self.body, self.start, self.command)
        return float(states[0, -1, 3])


def run(quick: bool) -> dict[str, Any]:
    """Body-steps a second of both, and their ratio."""
    count = QUICK_BODIES if quick else BODIES
    begin = time.perf_counter()
    population = Population(bodies(count))
    packed = time.perf_counter() - begin
    rng, shape = np.random.default_rng(1), (count, int(population.joints.max()))
    waves = JointWaves(rng.uniform(0.2, 0.6, shape), rng.uniform(0, 2 * np.pi, shape))
    ground = Ground(friction=FRICTION)

    def ours(population: Population, waves: JointWaves) -> Callable[[], Any]:
        return lambda: population.rollout(DURATION, STEP, waves, ground, KP, KD, TORQUE)

    first = ours(population, waves)()
    rivals = [
        Rival(population, waves, k, first.start_pose[k]) for k in range(0, count, count // THEIRS)
    ]
    threads = ThreadPoolExecutor(cores())
    work = {
        "modurob": ours(population, waves),
        "MuJoCo": lambda: list(threads.map(Rival.run, rivals)),
    }
    for size in SIZES:
        some = np.arange(size)
        part = population.tables.part(some, population.tables.row.shape[1])
        small = Population.from_tables(part, population.organism)
        work[f"modurob, {size} bodies"] = ours(
            small, JointWaves(waves.amplitude[some], waves.phase[some])
        )
    number = {"modurob": count, "MuJoCo": len(rivals)}
    number |= {f"modurob, {size} bodies": size for size in SIZES}
    clocks = {"wall": time.perf_counter, "cpu": time.process_time}
    rates: dict[str, dict[str, float]] = {}
    for clock, function in clocks.items():
        budget = (QUICK_BUDGET_S if quick else BUDGET_S) / len(clocks)
        found = interleaved(work, budget, function)
        rates[clock] = {n: number[n] * DURATION / STEP / s for n, s in found.items()}
        for name, rate in rates[clock].items():
            times = rate / rates[clock]["MuJoCo"]
            print(f"{name:<22} {rate / 1e6:8.4f} million body-steps per second of {clock} time, "
                  f"{times:6.1f}x", flush=True)  # fmt: skip
    ratios = {clock: each["modurob"] / each["MuJoCo"] for clock, each in rates.items()}
    return {
        "bodies": count, "mujoco_bodies": len(rivals), "cores": cores(), "step_s": STEP,
        "failed": int(np.count_nonzero(first.failed)), "seconds_to_build": packed,
        "body_steps_a_second": rates, "times_faster_than_mujoco": ratios,
    }  # fmt: skip
