"""Populations of different bodies on a GPU, beside one body in JAX and in frax.

Runs where CuPy finds an NVIDIA GPU; elsewhere it says so and measures nothing. Bodies are those of
`benchmarks.population`, packed from genotypes. Steps are timed by GPU events around the launches;
a whole rollout of a second by the wall clock: with its arrays on the way to the GPU and back, and
with the laws of its joints and its ground, which are set up on the CPU. Errors are those of all
bodies after 100 steps, in positions, by the largest position of a body: against the rollout on the
CPU in double precision, which is that of every single model (`tests/population`).

JAX (the textbook recursion of `benchmarks.gpu`) and frax, where they are installed, run inverse
dynamics of one body with a fixed base, on as many states as the population has bodies: neither
takes different bodies in one call.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bodies import FRICTION, KD, KP, STEP, TORQUE, population_of, waves_of
from benchmarks.gpu import in_jax, on_host_clock, timed
from modurob import Ground, Organism, Population, StateError
from modurob.interop import write_urdf
from modurob.population.cuda import CudaExecutor, CupyLauncher
from modurob.population.rollout import task_of

SIZES, QUICK_SIZES = (1, 64, 4_096, 131_072), (1, 64, 4_096)
LARGE, LARGE_MODULES = 10_000, (6, 40)
STEPS = 1_000  # of a rollout
SETTLED = 200  # steps after which bodies lie on the ground
COMPARED = 100  # steps after which numbers are compared with those of the CPU
ALLOWED = {"float32": 1e-4, "float64": 1e-10}  # of their differences


class EventLauncher(CupyLauncher):
    """Adds up the seconds that kernels take on the GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds, self.attributes = 0.0, {}

    def kernel(self, source: str, name: str, options: Any = ()) -> Any:
        compiled, cuda = super().kernel(source, name, options), self.xp.cuda
        self.attributes = compiled.attributes

        def launch(*arguments: Any, **options: Any) -> None:
            begin, end = cuda.Event(), cuda.Event()
            begin.record()
            compiled(*arguments, **options)
            end.record()
            end.synchronize()
            self.seconds += 1e-3 * cuda.get_elapsed_time(begin, end)

        return launch


def equal_bodies(population: Population) -> Population:
    """As many bodies, all equal to one whose number of links is the mean, rounded."""
    count = population.tables.count
    nearest = int(np.argmin(np.abs(count - round(count.mean()))))
    some, links = np.full(len(population), nearest), int(count[nearest])
    return Population.from_tables(population.tables.part(some, links), population.organism)


def rollout_rates(population: Population, cp: Any) -> Iterator[tuple[str, dict[str, float]]]:
    """Million body-steps a second of a rollout on the ground and of its parts, by dtype."""
    tables, waves = population.tables, waves_of(population)
    law = (Ground(friction=FRICTION), KP, KD, TORQUE)
    begin = time.perf_counter()
    task = task_of(tables, STEPS * STEP, STEP, waves, *law, None, None, "auto", "float64")
    set_up = time.perf_counter() - begin
    done = 1e-6 * len(population) * STEPS
    for dtype in ("float32", "float64"):
        launcher = EventLauncher()
        executor = CudaExecutor(tables, launcher)
        task = task._replace(dtype=dtype)
        settled = executor.rollout(task._replace(steps=SETTLED, record=SETTLED))  # compiles, too
        on_ground, best = task._replace(q=settled.q, v=settled.v), [np.inf, np.inf]
        for _ in range(3):
            launcher.seconds, begin = 0.0, time.perf_counter()
            found = executor.rollout(on_ground)
            seconds = (launcher.seconds, time.perf_counter() - begin)
            best = list(map(min, best, seconds))
        cp.get_default_memory_pool().free_all_blocks()
        yield (
            dtype,
            {
                "steps [million body-steps/s]": done / best[0],
                "rollout [million body-steps/s]": done / best[1],
                "rollout with set-up [million body-steps/s]": done / (best[1] + set_up),
                "microseconds of a step": 1e6 * best[0] / STEPS,
                "registers": launcher.attributes["num_regs"],
                "local_bytes_of_a_body": launcher.attributes["local_size_bytes"],
                "failed": int(np.count_nonzero(~np.isfinite(found.q).all(axis=1))),
            },
        )


def rollout_errors(population: Population) -> Iterator[tuple[str, dict[str, float]]]:
    """Relative errors of all bodies after some steps on the ground, by ground and dtype."""
    for name, slope in (("level", (0.0, 0.0)), ("slope", (0.2, -0.1))):
        law = (waves_of(population), Ground(friction=FRICTION, slope=slope), KP, KD, TORQUE)
        wanted = population.rollout(COMPARED * STEP, STEP, *law).q
        for dtype, allowed in ALLOWED.items():
            options = {"target": "cuda", "dtype": dtype}
            found = population.rollout(COMPARED * STEP, STEP, *law, **options).q
            error = np.abs(found - wanted).max(axis=1) / np.abs(wanted).max(axis=1)
            median, most = np.quantile(error, [0.5, 0.999])
            yield (
                f"{name}, {dtype}",
                {
                    "median": median,
                    "99.9 %": most,
                    "largest": error.max(),
                    f"bodies above {allowed:g}": int(np.count_nonzero(~(error <= allowed))),
                },
            )


def in_frax(
    organism: Organism, dtype: str, arrays: list[np.ndarray], queued: int = 1
) -> float | None:
    """Seconds of a batch of inverse dynamics in frax, or None where it is not installed."""
    try:
        import frax
        import jax
        import jax.numpy as jnp
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)
    model = organism.model()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "body.urdf"
        write_urdf(organism, path)
        robot = frax.Robot(str(path), joint_ordering=list(model.joint_names))
    gravity = jnp.array([0, 0, 9.81, 0, 0, 0], dtype)  # of a base that accelerates upward
    run = jax.jit(jax.vmap(lambda q, v, a: robot.rnea(q, v, a, gravity, None)))
    given = [jnp.asarray(x.astype(dtype)) for x in arrays]
    found = np.asarray(run(*given).block_until_ready()[:64])
    wanted = model.inverse_dynamics(*(x[:64] for x in arrays))
    assert np.abs(found - wanted).max() < 1e-3 * np.abs(wanted).max()
    return on_host_clock(lambda: run(*given), lambda x: x.block_until_ready(), queued)


def inverse_dynamics_rates(population: Population, dtype: str, cp: Any) -> dict[str, float]:
    """Million inverse dynamics a second: of different bodies here, of one in JAX and frax."""
    order, count = np.argsort(population.joints, kind="stable"), len(population)
    organism = population.organism(int(order[count // 2]))
    model, rng = organism.model(), np.random.default_rng(2)
    shape = (count, int(population.nv.max()))
    q, v, a = rng.uniform(-1, 1, (3, *shape)).astype(dtype)
    q = np.concatenate([np.zeros((count, 1), dtype), q], axis=1)
    q[:, 3:7] = (0, 0, 0, 1)
    there = [cp.asarray(x) for x in (q, v, a)]
    options = {"target": "cuda", "dtype": dtype}
    seconds = timed(cp, lambda: population.inverse_dynamics(*there, **options))
    rates = {"different bodies, free base": 1e-6 * count / seconds}
    states = list(rng.uniform(-1, 1, (3, count, model.nv)))
    fused = model.compile(target="cuda", dtype=dtype)
    call = fused.prepare("inverse_dynamics", count)
    here = [cp.asarray(x.astype(dtype)) for x in states]
    rates["one body, fused"] = 1e-6 * count / timed(cp, lambda: call(*here))
    peers = {"JAX": in_jax(model, dtype, *states), "frax": in_frax(organism, dtype, states)}
    return rates | {
        f"one body, {name}": 1e-6 * count / found for name, found in peers.items() if found
    }


def run(quick: bool) -> dict[str, Any]:
    """Measure, print and return the rates of all sizes."""
    try:
        CupyLauncher()
    except StateError as error:
        print(error)
        return {"skipped": str(error)}
    import cupy as cp

    results: dict[str, Any] = {
        "device": cp.cuda.runtime.getDeviceProperties(0)["name"].decode(), "step_s": STEP,
    }  # fmt: skip

    def add(name: str, rates: dict[str, float]) -> None:
        results[name] = rates
        print(
            f"{name}: " + ", ".join(f"{key} {rate:.4g}" for key, rate in rates.items()), flush=True
        )

    sizes = QUICK_SIZES if quick else SIZES
    large = population_of(LARGE, LARGE_MODULES)
    populations = {f"{count} bodies": population_of(count) for count in sizes}
    populations |= {"large, different": large, "large, equal": equal_bodies(large)}
    for name, population in populations.items():
        for dtype, rates in rollout_rates(population, cp):
            add(f"{name}, {dtype}", rates)
    for name in (f"{sizes[-1]} bodies", "large, different"):
        for case, errors in rollout_errors(populations[name]):
            add(f"errors after {COMPARED} steps, {name}, {case}", errors)
    for count in sizes:
        population = populations[f"{count} bodies"]
        add(f"inverse dynamics, {count}", inverse_dynamics_rates(population, "float32", cp))
    return results
