"""Tuning of gaits by CMA-ES: a population is one batch of compiled code."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import FiniteFloat

from modurob.checks import not_negative, whole
from modurob.control import Controller
from modurob.errors import FileError, StateError
from modurob.gaits import gait_class
from modurob.model import Model
from modurob.modules.files import checked_target, read_document, write_document
from modurob.reference import Reference
from modurob.scenario.gait_files import GaitRecord
from modurob.scenario.scenario import Scenario
from modurob.scenario.settings import NONE, FrozenRecord
from modurob.sim import SimulationError, simulate

FORMAT, VERSION = "modurob-tuning", 1
POPULATION = 32  # whole vectors of compiled code; CMA-ES alone would take some 12
EFFORT = 0.02  # weight of power over weight against speed
SPREAD = 0.25  # of the ranges: first standard deviation of the search
# ranges of the search: faster gaits bounce, and go as the contact law has it, not as the body does
AMPLITUDES, FREQUENCIES = (0.0, 0.5), (0.2, 0.5)  # [Hz]
OFFSET_SHARE = 0.5  # of the way from the middle to a limit
OFFSET = 0.5  # [rad, m] where there is no limit
BEGIN = 0.25  # of the duration: the way is measured from here on, or falling over would count
FAILED = -1e3  # [m/s] score of a run that diverged
MISSING = "tuning needs the package cma, which is not installed: pip install 'modurob[evolve]'"

Progress = Callable[[int, int, float], Any]  # generation, of how many, best score


class TunedGait(NamedTuple):
    """Result of `tune`.

    Attributes:
        gait: The best gait, which `save` writes to a file.
        score: Of it. [m/s]
        best: (generations,) best score up to each generation. [m/s]
        evaluations: Runs that were compared.
    """

    gait: GaitRecord
    score: float
    best: np.ndarray
    evaluations: int


class TuningRecord(FrozenRecord):
    """A checkpoint: the scores of all generations, from which the search is repeated exactly."""

    format: Literal["modurob-tuning"] = FORMAT
    version: Literal[1] = VERSION
    scenario: dict[str, Any]
    seed: int
    population: int
    effort: FiniteFloat
    scores: tuple[tuple[FiniteFloat, ...], ...] = ()
    best: GaitRecord | None = None


class Dimension(NamedTuple):
    """A number of a gait that is tuned; of one joint where it has one."""

    name: str
    joint: str
    low: float
    high: float
    start: float


def tune(
    scenario: Scenario,
    evaluations: int,
    *,
    seed: int = 0,
    effort: float = EFFORT,
    population: int = POPULATION,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> TunedGait:
    """Tune the gait of a walk by CMA-ES.

    The score is ``speed - effort * power / weight`` in m/s: speed is the horizontal way of the
    center of mass in the last three quarters of the run over their duration, power the mean of
    ``sum |tau_i v_i|``.
    Numbers that are tuned: amplitude (up to half the way to the limits), frequency (0.2 to 0.5 Hz),
    lag, and phase and offset of each joint, as far as the kind of gait has them. Results depend on
    the seed alone.

    Args:
        scenario: A walk, as `modurob.walking.started` makes it; its gait is where the search
            begins.
        evaluations: Runs to compare, in whole generations.
        seed: Of the search.
        effort: Weight of the power.
        population: Runs of a generation; they are one batch.
        checkpoint: File that is written after each generation. One that is there is continued;
            the result is the same as without an interruption.
        progress: Called after each generation with its number, how many there are, and the best
            score.

    Raises:
        FileError: The checkpoint is of another body, of other settings or of no tuning.
    """
    try:
        import cma
    except ImportError:
        raise StateError(MISSING) from None
    whole("evaluations", evaluations, 1)
    whole("seed", seed, 0)
    whole("population", population, 4)
    if not (progress is None or callable(progress)):
        raise StateError(f"progress is a function, or None, got {progress!r}")
    _refuse(scenario)
    model = scenario.model()
    space = search_space(scenario, model)
    record = TuningRecord(
        scenario=_data(scenario), seed=seed, population=population,
        effort=not_negative("effort", effort, "(a weight)"),
    )  # fmt: skip
    if checkpoint is not None and os.path.exists(checked_target(checkpoint)):
        record = _continued(record, checkpoint)
    rng = np.random.default_rng(seed)
    low, width = (np.array(x) for x in zip(*((d.low, d.high - d.low) for d in space), strict=True))
    first = (np.array([d.start for d in space]) - low) / width
    search = cma.CMAEvolutionStrategy(
        first, SPREAD,
        {
            "bounds": [0.0, 1.0], "popsize": population, "verbose": -9, "verb_log": 0,
            # random numbers of our own: those of NumPy at large belong to the user
            "seed": math.nan, "randn": lambda *shape: rng.standard_normal(shape),
        },
    )  # fmt: skip
    known, scores = record.scores, list(record.scores)
    total = max(math.ceil(evaluations / population), len(known))
    best, best_score, course = record.best, -math.inf, []
    for k in range(total):
        if k and search.stop():
            break
        points = search.ask()
        gaits = [_fields(scenario, space, low + width * np.asarray(x)) for x in points]
        if k == len(scores):
            scores.append(tuple(evaluate(scenario, gaits, effort).tolist()))
        search.tell(points, [-score for score in scores[k]])
        leader = int(np.argmax(scores[k]))
        if scores[k][leader] > best_score:
            best_score, best = scores[k][leader], GaitRecord.of(scenario.edited(**gaits[leader]))
        course.append(best_score)
        if k + 1 == len(known) and best != record.best:
            raise FileError(
                f"{checkpoint}: the search does not come to the same gait again: the file was "
                "changed, or made with another version of cma or NumPy; start anew with another"
            )
        if checkpoint is not None and k >= len(known):
            record = record.model_copy(update={"scores": tuple(scores), "best": best})
            write_document(checkpoint, record.model_dump(mode="json"))
        if progress is not None:
            progress(k + 1, total, best_score)
    assert best is not None
    return TunedGait(best, best_score, np.array(course), population * len(course))


def search_space(scenario: Scenario, model: Model) -> list[Dimension]:
    """The numbers of a gait that are tuned, with their ranges and where the search begins."""
    known, given, turn = gait_class(scenario.motion).parameters(), scenario.gait, math.pi
    found = [Dimension("amplitude", "", *AMPLITUDES, scenario.amplitude)]
    if "frequency" in known:
        found.append(Dimension("frequency", "", *FREQUENCIES, scenario.frequency))
    if "lag" in known:
        lag: Any = given.get("lag", known["lag"])
        found.append(Dimension("lag", "", -turn, turn, lag))
    limited = np.isfinite(model.lower) & np.isfinite(model.upper)
    middle = np.where(limited, model.lower, 0.0) / 2 + np.where(limited, model.upper, 0.0) / 2
    room = np.minimum(middle - model.lower, model.upper - middle)
    reach = np.where(np.isfinite(room), OFFSET_SHARE * room, OFFSET)
    for name, center, half in (
        ("phase", 0.0 * middle, 0.0 * middle + turn),
        ("offset", middle, reach),
    ):
        if name not in known:
            continue
        own: Any = given.get(name, {} if name == "offset" else known[name])
        for joint, m, r in zip(model.joint_names, center.tolist(), half.tolist(), strict=True):
            start = own.get(joint, m) if isinstance(own, dict) else own
            if r > 0:
                found.append(Dimension(name, joint, m - r, m + r, start))
    clipped = (d._replace(start=min(max(d.start, d.low), d.high)) for d in found)
    return list(clipped)


def _fields(scenario: Scenario, space: Sequence[Dimension], x: np.ndarray) -> dict[str, Any]:
    """Fields of a scenario with the numbers of a point of the search."""
    fields: dict[str, Any] = {"gait": dict(scenario.gait)}
    for dimension, value in zip(space, x.tolist(), strict=True):
        value = min(max(value, dimension.low), dimension.high)
        if dimension.joint:
            own = fields["gait"].get(dimension.name)
            fields["gait"][dimension.name] = {
                **(own if isinstance(own, dict) else {}), dimension.joint: value,
            }  # fmt: skip
        elif dimension.name == "lag":
            fields["gait"]["lag"] = value
        else:
            fields[dimension.name] = value
    return fields


# -- evaluation ------------------------------------------------------------------------------------


class GaitPopulation:
    """One law for a batch of states, each with a gait of its own; adds up the work.

    Args:
        law: For one state.
        references: Motion of each state, as a function of times.
        duration: [s]
    """

    def __init__(
        self, law: Controller, references: Sequence[Callable[..., Reference]], duration: float
    ) -> None:
        assert law.sample_time is not None
        self.sample_time, self._joints = law.sample_time, law.model.joint_slice_v
        times = self.sample_time * np.arange(math.ceil(duration / self.sample_time) + 2)
        aims = [reference(times) for reference in references]
        self._q = np.stack([aim.q for aim in aims], axis=1)
        self._v, self._a = (
            np.stack([np.broadcast_to(x, aim.q.shape) for aim, x in pairs], axis=1)
            for pairs in ([(aim, aim.v) for aim in aims], [(aim, aim.a) for aim in aims])
        )
        self._law = law.batched(len(aims))
        self.work = np.zeros(len(aims))  # [J]

    def reset(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Begin a run."""
        self._law.reset(t, q, v)

    def first(self) -> tuple[np.ndarray, np.ndarray]:
        """(gaits, n) positions and velocities at the start. [rad, m, rad/s, m/s]"""
        return self._q[0], self._v[0]

    def command(self, t: float, q: np.ndarray, v: np.ndarray, reference: Any = None) -> np.ndarray:
        """(gaits, nv) generalized forces. [N m, N]"""
        k = round(t / self.sample_time)
        tau = self._law.command(t, q, v, Reference(self._q[k], self._v[k], self._a[k]))
        power = np.abs(tau[:, self._joints] * v[:, self._joints]).sum(axis=1)
        self.work += self.sample_time * power
        return tau


def evaluate(
    scenario: Scenario, gaits: Sequence[dict[str, Any]], effort: float = EFFORT
) -> np.ndarray:
    """(gaits,) scores of gaits, each given as fields of the scenario; see `tune`. [m/s]"""
    plant, model, duration = scenario.plant(), scenario.model(), scenario.duration
    references: list[Any] = [scenario.edited(**gait).reference(model) for gait in gaits]
    law = scenario.law(model)
    assert law is not None
    loop = GaitPopulation(law, references, duration)
    q, v = np.tile(plant.neutral(), (len(gaits), 1)), np.zeros((len(gaits), plant.nv))
    q[:, plant.joint_slice_q], v[:, plant.joint_slice_v] = loop.first()
    ground = scenario.on_ground(plant, q[0])[0]
    assert ground is not None
    try:
        run = simulate(
            plant, q, v, duration, loop, scenario.integrator, dt=scenario.dt, stops=scenario.stops,
            ground=replace(ground, lift=True), record=[BEGIN * duration, duration],
            organism=scenario.organism,
        )  # fmt: skip
    except SimulationError:
        if len(gaits) == 1:
            return np.array([FAILED])
        half = len(gaits) // 2  # one that diverges ends the batch: find it
        parts = (gaits[:half], gaits[half:])
        return np.concatenate([evaluate(scenario, part, effort) for part in parts])
    center = plant.center_of_mass(run.q[[-2, -1]])[..., :2]
    weight = np.sum(plant.mass) * np.linalg.norm(plant.gravity)
    power = loop.work / duration
    speed = np.linalg.norm(center[-1] - center[0], axis=-1) / ((1 - BEGIN) * duration)
    return speed - effort * power / max(float(weight), np.finfo(float).tiny)


def _refuse(scenario: Scenario) -> None:
    """Refuse runs that a batch of walks cannot have."""
    if not isinstance(scenario, Scenario):
        raise StateError(f"tuning takes the Scenario of a walk, got {type(scenario).__name__}")
    if not scenario.clock or not scenario.fixed_step or scenario.engine != "modurob":
        raise StateError(
            "tuning needs a law with a sample_time, an integrator of equal steps and the engine "
            "modurob"
        )
    for name, has in (
        ("events", scenario.events), ("pushes", scenario.pushes), ("noise", scenario.noisy),
        ("estimator", scenario.estimator != NONE),
    ):  # fmt: skip
        if has:
            raise StateError(f"tuning has no {name}: tune without, walk with it")


# -- checkpoints -----------------------------------------------------------------------------------


def _data(scenario: Scenario) -> dict[str, Any]:
    unused = set(scenario.without_effect()) | {"format", "version", "name", "record"}
    return scenario.model_dump(mode="json", exclude=unused, exclude_defaults=True)


def _continued(ours: TuningRecord, path: str | os.PathLike[str]) -> TuningRecord:
    """The checkpoint in a file, if it is one of the same search."""
    try:
        found = TuningRecord(**read_document(path, FORMAT, VERSION))
    except StateError as error:
        raise FileError(f"{path}: {error}") from None
    if found.scenario.get("organism") != ours.scenario["organism"]:
        raise FileError(f"{path}: this tuning is of another body; give another file")
    theirs, mine = ({**r.scenario, **r.model_dump(exclude={"scenario"})} for r in (found, ours))
    for name in {*theirs, *mine} - {"scores", "best", "format", "version"}:
        if theirs.get(name) != mine.get(name):
            raise FileError(
                f"{path}: this tuning has another {name}: {str(theirs.get(name))[:80]}, not "
                f"{str(mine.get(name))[:80]}; give the same, or another file"
            )
    if any(len(row) != found.population for row in found.scores) or (
        (found.best is None) != (not found.scores)
    ):
        raise FileError(f"{path}: generations have {found.population} scores each, and a best gait")
    return found
