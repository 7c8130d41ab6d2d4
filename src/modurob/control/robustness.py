"""Robustness of a law: many steps with wrong masses, delay, noise and torque limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import LARGEST_BYTES, not_negative, per_joint, positive, refuse_over, whole
from modurob.control import gains
from modurob.control.closed_loop import settling_time
from modurob.control.controller import Controller
from modurob.control.plants import side_by_side
from modurob.control.response import LAST, step_response
from modurob.errors import StateError
from modurob.executors import Executor, LocalExecutor
from modurob.friction import substeps
from modurob.stepping import RK4, EquationOfMotion, StepSettings
from modurob.stepping.motion import Stopped

BODIES = 50  # of different masses, each with its share of the runs
PATHS, SET_POINTS = 8, 8  # arrays of their size that are needed at once
BLOCK_RUNS = 1000  # at most are computed at once: more need longer for each
MEMORY_SHARE = 1 / 8  # of the largest arrays: what runs take that are computed at once
LOST = 1e3  # [rad/s, m/s] faster than this a run has diverged
SETTLING_TIMES = 3.0  # of a step by default
LEAST_STEP = 0.3  # of the largest: overshoot is a part of the step, which must not vanish
SLOWEST, LEAST_LENGTH_S = 4.0, 0.01  # [s] default durations of a step, which are whole 10 ms
TORQUE_SHARE = 0.7  # of the largest torque as designed: the default limit


class RobustnessCase(NamedTuple):
    """One row: what differs from the design, and what became of the steps.

    Attributes:
        name: What differs.
        runs: How many steps.
        settled: Share of runs in which every joint ends within the band.
        settling: Median time until then, of the runs that did; NaN when none did. [s]
        overshoot: Worst of all joints and runs that did not diverge, as a part of the step.
        error: Root mean square over joints, runs and the last tenth of the time. [rad, m]
        saturated: Share of samples in which some motor is at its limit.
        diverged: Share of runs that ran away.
    """

    name: str
    runs: int
    settled: float
    settling: float
    overshoot: float
    error: float
    saturated: float
    diverged: float


@dataclass(frozen=True)
class Robustness:
    """Robustness of a law.

    Attributes:
        law: Its name.
        duration: Of a step. [s]
        band: Half width of the band in which a joint has settled, as a part of the step.
        cases: One for each condition alone, and all together.
    """

    law: str
    duration: float
    band: float
    cases: tuple[RobustnessCase, ...]

    def __str__(self) -> str:
        names = ("settled", "time", "overshoot", "error", "saturated", "diverged")
        lines = [f"{self.law}, {self.duration:g} s", _row("", names)]
        for case in self.cases:
            cells = (
                f"{case.settled:.1%}", f"{case.settling:.3f} s", f"{case.overshoot:.1%}",
                f"{case.error:.1e}", f"{case.saturated:.1%}", f"{case.diverged:.1%}",
            )  # fmt: skip
            lines.append(_row(case.name, ["-" if "nan" in cell else cell for cell in cells]))
        return "\n".join(lines)


def _row(name: str, cells: Sequence[str]) -> str:
    pairs = zip(cells, (9, 9, 11, 10, 11, 10), strict=True)
    return f"{name:24}" + "".join(f"{cell:>{width}}" for cell, width in pairs)


def robustness(
    law: Controller,
    step: ArrayLike = 0.35,
    *,
    masses: float = 0.1,
    delay: float = 0.02,
    noise: float = 0.03,
    torque_limit: ArrayLike | None = None,
    runs: int = 1000,
    duration: float | None = None,
    band: float = gains.SETTLED,
    rng: np.random.Generator | None = None,
    progress: Callable[[float], object] | None = None,
    executor: Executor | None = None,
) -> Robustness:
    """Steps from the neutral pose to random set points, as designed and with each condition.

    The law keeps the model it was made with. Wrong masses are those of 50 bodies, which share the
    runs: mass and inertia of each link are multiplied by a factor of its own. A thousand runs of a
    condition are computed at once, or as many as fit into a gigabyte; these blocks are the items of
    the executor. A condition of 0 is left out.

    Args:
        law: With a `sample_time`, on a fixed base, or on virtual joints.
        step: Largest step of all joints, or of each; each run draws 30 to 100 % of it, either way.
            [rad, m]
        masses: Largest error of each link's mass, as a part of it; uniform.
        delay: Until a torque takes effect, rounded to whole samples. [s]
        noise: Standard deviation of what is measured, new at each sample. [rad, m; rad/s, m/s]
        torque_limit: Of all joints or of each; by default 70 % of the largest torque that each
            joint gets as designed, which is enough to rest. [N m, N]
        runs: For each of the conditions.
        duration: Of each run; 3 settling times by default, 4 s at most. [s]
        band: In which a joint has settled, as a part of its step.
        rng: For set points, masses and noise.
        progress: Called with the fraction done.
        executor: Of the runs: processes or a cluster, which change no number of the table. By
            default this process computes them.
    """
    study = _Study(law, step, runs, duration, band, rng or np.random.default_rng(0))
    sigma, off = not_negative("noise", noise, "rad"), not_negative("masses", masses)
    if off >= 1:
        raise StateError(f"masses is an error below 1, for example 0.1 for 10 %, got {masses!r}")
    study.demand_memory(off)
    late = not_negative("delay", delay, "seconds")
    late = max(1, round(late / study.dt)) * study.dt if late else 0.0  # whole samples
    plan: list[tuple[str, dict[str, Any]]] = [("as designed", {})]
    plan += [(f"masses ±{100 * off:g} %", {"masses": off})] if off else []
    plan += [(f"delay {1000 * late:g} ms", {"delay": late})] if late else []
    plan += [(f"noise {sigma:g}", {"noise": sigma})] if sigma else []
    joints, limit = law.model.joint_names, None
    if torque_limit is not None:
        limit = per_joint("torque_limit", torque_limit, joints, least=0.0, infinite=True)
    together = {key: value for _, options in plan for key, value in options.items()}
    limited: list[tuple[str, dict[str, Any]]] = [("torque limits", {})]
    limited += [("all at once", together)] if together else []
    executor, share = executor or LocalExecutor(1), len(plan) / (len(plan) + len(limited))
    report = progress or (lambda done: None)
    found = study.cases(plan, executor, lambda done: report(share * done))
    if limit is None:
        limit = np.maximum(TORQUE_SHARE * found[0][1], study.load())
    limited = [(name, options | {"limit": limit}) for name, options in limited]
    found += study.cases(limited, executor, lambda done: report(share + (1 - share) * done))
    return Robustness(law.name, study.duration, study.band, tuple(case for case, _ in found))


class _Study:
    """Settings that all cases share: the law, the set points of the steps, their duration."""

    def __init__(
        self,
        law: Controller,
        step: ArrayLike,
        runs: int,
        duration: float | None,
        band: float,
        rng: np.random.Generator,
    ) -> None:
        if law.sample_time is None:
            raise StateError("robustness needs a law with a sample_time, for example 0.002")
        if law.model.free_base:
            raise StateError("robustness is about set points, which a free base cannot hold")
        if not law.model.joint_names:
            raise StateError("the body has no joint to move")
        self.law, self.dt, self.band, self.rng = law, law.sample_time, band, rng
        model = law.model
        reach = per_joint("step", step, model.joint_names, least=0.0)
        if not np.all(reach > 0):
            raise StateError(f"step must be positive, got {step!r}")
        shape = whole("runs", runs, 1), len(reach)
        refuse_over(
            f"set points of {runs} runs", 8 * SET_POINTS * math.prod(shape), "give fewer runs"
        )
        around = reach * rng.uniform(LEAST_STEP, 1.0, shape) * rng.choice([-1.0, 1.0], shape)
        self.start = np.clip(model.neutral(), model.lower, model.upper)
        self.goals = np.clip(self.start + around, model.lower, model.upper)
        self.duration = self._length() if duration is None else positive("duration", duration, "s")
        self.steps = max(2, round(self.duration / self.dt))

    def _length(self) -> float:
        wanted = SETTLING_TIMES * settling_time(self.law, self.start)
        return max(LEAST_LENGTH_S, round(min(SLOWEST, wanted), 2))

    def load(self) -> np.ndarray:
        """(n,) the largest torque that any of the set points needs for resting. [N m, N]"""
        return np.abs(self.law.model.gravity_torque(self.goals)).max(axis=0)

    def cases(
        self,
        plan: Sequence[tuple[str, dict[str, Any]]],
        executor: Executor,
        progress: Callable[[float], object],
    ) -> list[tuple[RobustnessCase, np.ndarray]]:
        """For each name and its conditions a row, and (n,) the largest torques. [N m, N]"""
        blocks = [self.blocks(**options) for _, options in plan]
        done = iter(executor.map(_outcomes, [x for each in blocks for x in each], progress))
        found = []
        for (name, _), each in zip(plan, blocks, strict=True):
            outcomes, torques = zip(*(next(done) for _ in each), strict=True)
            case = _case(name, np.concatenate(outcomes, axis=1))
            found.append((case, np.maximum.reduce(torques)))
        return found

    def blocks(
        self,
        masses: float = 0.0,
        delay: float = 0.0,
        noise: float = 0.0,
        limit: np.ndarray | None = None,
    ) -> list[_Block]:
        """The runs of a row, in parts that do not depend on what computes them."""
        options: dict[str, Any] = {"delay": self.law.delay + delay}
        if limit is not None:
            options["torque_limit"] = np.minimum(limit, self.law.torque_limit)
        law, bodies = self.law.changed(**options), self._bodies(masses)
        seed = int(self.rng.integers(2**63))
        return [
            _Block(
                law, bodies, noise, self.goals[rows], (seed, k), self.start, self.steps, self.band
            )
            for k, rows in enumerate(self._blocks(len(bodies)))
        ]

    def demand_memory(self, masses: float) -> None:
        """Refuse runs so long that not even one for each body fits into memory."""
        bodies = self._count(masses)
        what = f"{bodies} run(s) of {self.steps} samples"
        advice = "give a shorter duration or a longer sample_time"
        refuse_over(what, bodies * self._run_bytes(), advice)

    def _run_bytes(self) -> int:
        return 8 * PATHS * (self.steps + 1) * len(self.start)

    def _blocks(self, bodies: int) -> Iterator[slice]:
        """Which runs are computed at once: as many for each body, in a part of the memory."""
        fit = int(MEMORY_SHARE * LARGEST_BYTES // self._run_bytes())
        rows = min(fit, BLOCK_RUNS) // bodies
        size = bodies * max(1, rows)
        return (slice(first, first + size) for first in range(0, len(self.goals), size))

    def _count(self, masses: float) -> int:
        return min(BODIES, len(self.goals)) if masses else 1

    def _bodies(self, masses: float) -> np.ndarray:
        """(bodies, links) factors on the masses."""
        shape = self._count(masses), len(self.law.model.mass)
        return self.rng.uniform(1 - masses, 1 + masses, shape)


def _case(name: str, outcomes: np.ndarray) -> RobustnessCase:
    """One row from all its runs."""
    slowest, overshoot, error, lost, saturated = outcomes
    kept, done = lost == 0, np.isfinite(slowest)
    return RobustnessCase(
        name,
        len(lost),
        float(done.mean()),
        float(np.median(slowest[done])) if done.any() else np.nan,
        float(overshoot[kept].max()) if kept.any() else np.nan,
        float(np.sqrt(error[kept].mean())) if kept.any() else np.nan,
        float(saturated.mean()),
        float(lost.mean()),
    )


@dataclass(frozen=True, eq=False)
class _Block:
    """Runs that are computed at once, in any process; run k has body k modulo their number."""

    law: Controller
    factors: np.ndarray  # (bodies, links) on the masses
    noise: float
    goals: np.ndarray  # (runs, n)
    seed: tuple[int, int]  # of the noise: of the row, and the number of the block
    start: np.ndarray  # (n,)
    steps: int
    band: float

    @property
    def dt(self) -> float:
        """[s]"""
        assert self.law.sample_time is not None
        return self.law.sample_time

    def substeps(self) -> int:
        """Parts of a sample with which Runge and Kutta follow the friction of all bodies.

        Bodies whose links have at least a part f of the model's mass decay at most 1/f as fast.
        """
        fastest = self.law.model.friction_rate
        rate, advice = fastest.rate / self.factors.min(), "give the joint less friction"
        return substeps(rate, fastest.cause, self.dt, "robustness", advice)


def _outcomes(block: _Block) -> tuple[np.ndarray, np.ndarray]:
    """(5, runs) settling time [s], overshoot, mean square error, 1 if lost, share saturated.

    And (n,) the largest torques. [N m, N]
    """
    runs, goals = _simulated(block), block.goals
    q, lost = runs.q, runs.lost
    settling, overshoot, error = np.full((3, len(lost)), np.nan)
    if not lost.all():
        q, goals, t = q[:, ~lost], goals[~lost], block.dt * np.arange(len(q))
        found = step_response(t, q, goals, band=block.band)
        late = t >= (1 - LAST) * t[-1]
        settling[~lost] = found.settling.max(axis=-1)
        overshoot[~lost] = found.overshoot.max(axis=-1)
        error[~lost] = np.mean((q[late] - goals) ** 2, axis=(0, 2))
    saturated = np.full(len(lost), runs.saturated)
    return np.stack([settling, overshoot, error, lost, saturated]), runs.torque


class _MonteCarloRuns(NamedTuple):
    """Many runs."""

    q: np.ndarray  # (N, runs, n) true positions
    lost: np.ndarray  # (runs,) which diverged
    torque: np.ndarray  # (n,) largest
    saturated: float  # share of samples with a motor at its limit


def _simulated(block: _Block) -> _MonteCarloRuns:
    """Runs of a block; one that diverges goes back to its start and is marked."""
    law, factors, dt, start = block.law, block.factors, block.dt, block.start
    runs, steps, rng = len(block.goals), block.steps, np.random.default_rng(block.seed)
    rows = -(-runs // len(factors))
    full = rows * len(factors)  # as many for each body; what is too many is dropped in the end
    goals = block.goals[np.arange(full) % runs]
    push = np.zeros((rows, len(factors) * law.model.nv))
    motion = EquationOfMotion(side_by_side(law.model, factors), (rows,), lambda t, q, v: push)
    stepper = RK4(motion, StepSettings(0.0, 0.0, dt, block.substeps()))
    q, v = np.tile(start, (full, 1)), np.zeros((full, law.model.nv))
    many = law.batched(full)
    many.reset(0.0, q, v)
    path = np.empty((steps + 1, full, len(start)))
    path[0] = q
    lost, at_limit, torque = np.zeros(full, dtype=bool), 0.0, np.zeros(len(start))
    for k in range(steps):
        blur = block.noise * rng.standard_normal((2, *q.shape)) if block.noise else (0.0, 0.0)
        tau = many.command(k * dt, q + blur[0], v + blur[1], goals)
        size = np.abs(tau)
        at_limit += float(np.any(size >= law.torque_limit, axis=1)[:runs].mean())
        torque = np.maximum(torque, size[~lost].max(axis=0, initial=0.0))
        push, *state = (x.reshape(rows, -1) for x in (tau, q, v))
        try:
            q, v = (x.reshape(full, -1) for x in stepper.sample(k * dt, *state))
        except Stopped as stopped:
            raise StateError(f"robustness stopped at t = {stopped.time:g} s: {stopped}") from None
        wild = ~(np.abs(v).max(axis=1) < LOST)
        if wild.any():
            lost |= wild
            q[wild], v[wild] = start, 0.0
        path[k + 1] = q
    return _MonteCarloRuns(path[:, :runs], lost[:runs], torque, at_limit / steps)
