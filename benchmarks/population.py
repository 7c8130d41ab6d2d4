"""Many different bodies on the ground against MuJoCo, on all cores.

Bodies of 4 to 12 Backbones with a free base, joints that follow sines by PD control within limits,
rollouts of one second in steps of 1 ms. Both have the same shapes, masses, gains, limits and
friction; contacts are each engine's own, between bodies and ground only. MuJoCo takes a sample of
the bodies: in native rollouts, as many at a time as there are cores; and in a loop of Python for
each body, whose brain computes the commands before each step, in the style of revolve2 and ARIEL,
whose own code is not run here. They run one process on each core and here one loop follows the
other, so compare processor time, that of all cores together, which other work on the machine
disturbs less, too. The set-up of a rollout counts. The largest population is rolled out once, for
a tenth of a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mujoco
import mujoco.rollout
import numpy as np

from benchmarks.bodies import FRICTION, KD, KP, STEP, TORQUE, population_of, waves_of
from benchmarks.on_ground import OnGround, Sines, on_ground
from benchmarks.timing import interleaved
from modurob import Ground, JointWaves, Population
from modurob.compiler.pool import cores

BODIES, QUICK_BODIES, THEIRS = 10_000, 1_000, 48
SIZES, QUICK_SIZES = (1, 64, 4_096), (1, 64)
LARGEST, SHORT_S = 131_072, 0.1
DURATION = 1.0  # [s]
BUDGET_S, QUICK_BUDGET_S = 60.0, 10.0


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
        self.rate = 2 * np.pi * waves.frequency[k]
        self.phase, self.amplitude = waves.phase[k, :n], waves.amplitude[k, :n]
        self.command = self.brain(STEP * np.arange(round(DURATION / STEP))[:, None])[None]

    def brain(self, time: Any) -> np.ndarray:
        """(..., joints) commands; kp (command - q) - kd v is the same law as here. [rad]"""
        angle = self.rate * time + self.phase
        return self.amplitude * (np.sin(angle) + KD / KP * self.rate * np.cos(angle))

    def run(self) -> float:
        """Height of the base at the end. [m]"""
        states, _ = mujoco.rollout.rollout(*self.body, self.start, self.command)
        return float(states[0, -1, 3])

    def run_in_python(self) -> float:
        """The same in a loop of Python, with a brain that is asked before each step. [m]"""
        model, data = self.body
        mujoco.mj_setState(model, data, self.start[0], mujoco.mjtState.mjSTATE_FULLPHYSICS)
        for _ in range(self.command.shape[1]):
            data.ctrl[:] = self.brain(data.time)
            mujoco.mj_step(model, data)
        return float(data.qpos[2])


def run(quick: bool) -> dict[str, Any]:
    """Body-steps a second of both, and their ratio."""
    count = QUICK_BODIES if quick else BODIES
    begin = time.perf_counter()
    population = population_of(count)
    packed = time.perf_counter() - begin
    waves, ground = waves_of(population), Ground(friction=FRICTION)

    def ours(
        population: Population, waves: JointWaves, duration: float = DURATION
    ) -> Callable[[], Any]:
        return lambda: population.rollout(duration, STEP, waves, ground, KP, KD, TORQUE)

    first = ours(population, waves)()
    rivals = [
        Rival(population, waves, k, first.start_pose[k]) for k in range(0, count, count // THEIRS)
    ]
    threads = ThreadPoolExecutor(cores())
    work = {
        "modurob": ours(population, waves),
        "MuJoCo": lambda: list(threads.map(Rival.run, rivals)),
        "MuJoCo in Python": lambda: list(map(Rival.run_in_python, rivals)),
    }
    sizes = QUICK_SIZES if quick else SIZES
    for size in sizes:
        some = np.arange(size)
        part = population.tables.part(some, population.tables.row.shape[1])
        small = Population.from_tables(part, population.organism)
        work[f"modurob, {size} bodies"] = ours(
            small, JointWaves(waves.amplitude[some], waves.phase[some])
        )
    number = {"modurob": count, "MuJoCo": len(rivals), "MuJoCo in Python": len(rivals)}
    number |= {f"modurob, {size} bodies": size for size in sizes}
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
    if not quick:
        many = population_of(LARGEST)
        rollout, begin = ours(many, waves_of(many), SHORT_S), time.process_time()
        rollout()
        rate = LARGEST * SHORT_S / STEP / (time.process_time() - begin)
        rates["cpu"][f"modurob, {LARGEST} bodies"] = rate
        print(f"modurob, {LARGEST} bodies {rate / 1e6:8.4f} million, {SHORT_S} s each", flush=True)
    ratios = {clock: each["modurob"] / each["MuJoCo"] for clock, each in rates.items()}
    return {
        "bodies": count, "mujoco_bodies": len(rivals), "cores": cores(), "step_s": STEP,
        "failed": int(np.count_nonzero(first.failed)), "seconds_to_build": packed,
        "body_steps_a_second": rates, "times_faster_than_mujoco": ratios,
    }  # fmt: skip
