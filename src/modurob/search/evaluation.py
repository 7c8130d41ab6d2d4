"""Evaluation of genotypes: one population and one rollout for each chunk of fixed size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from modurob.errors import StateError, UnknownNameError, choices
from modurob.executors import Executor
from modurob.population import JointWaves, Population, Rollout
from modurob.population.rollout import task_of as rollout_task
from modurob.search.genotype import Genotype, joint_waves
from modurob.search.tasks import SERVO_RAD_S, STEP_S, Objective, SearchTask, task_of

# bodies of one population: fixed, so that results do not depend on workers
CHUNKS = {"cpu": 64, "cuda": 2**17}
DTYPES = {"cpu": "float64", "cuda": "float32"}
DIVERGED, NOT_FINITE = "the state diverged", "the objective is not finite"
MEETS = "modules meet in the gait"
TOO_FAST = f"a step of {STEP_S:g} s is too long for its joints or the ground"


class Evaluation(NamedTuple):
    """Result of one genotype.

    Attributes:
        score: By the objective of the task; NaN for a body that is kept out.
        reason: For keeping it out; empty otherwise.
        measures: (m,) by the functions that were asked for.
    """

    score: float
    reason: str = ""
    measures: tuple[float, ...] = ()


def evaluate(
    genotypes: Sequence[Genotype],
    task: str | SearchTask,
    measures: Sequence[Objective] = (),
    executor: Executor | None = None,
    target: str = "cpu",
) -> list[Evaluation]:
    """Evaluate genotypes by a task, in their order.

    Args:
        genotypes: Bodies with gaits.
        task: By name, or a `SearchTask` of your own.
        measures: Further functions of a rollout and its population, (bodies,) numbers each.
        executor: For processes or a cluster; None for this process and its threads. Results do not
            depend on it.
        target: ``cpu``, or ``cuda`` in single precision.
    """
    chunk = checked_chunks(target)
    chunks = [genotypes[k : k + chunk] for k in range(0, len(genotypes), chunk)]
    function = partial(evaluate_chunk, task=task_of(task), measures=tuple(measures), target=target)
    found = map(function, chunks) if executor is None else executor.map(function, chunks)
    return [evaluation for chunk in found for evaluation in chunk]


def checked_chunks(target: str) -> int:
    """Bodies of one population on a target, or an error that lists the targets."""
    if not (isinstance(target, str) and target in CHUNKS):
        raise UnknownNameError(f"no target {target!r}: target is {choices(CHUNKS)}")
    return CHUNKS[target]


def evaluate_chunk(
    genotypes: Sequence[Genotype], task: SearchTask, measures: Sequence[Objective], target: str
) -> list[Evaluation]:
    """Evaluate genotypes in one rollout."""
    if task.payload:
        organisms = [task.loaded(genotype.organism()) for genotype in genotypes]
        population = Population(organisms, genotypes[0].space.hinges)
    else:
        population = Population.from_genotypes(genotypes)
    rollout, too_fast = roll_out(population, genotypes, task, target)
    found = judged(rollout, population, task, measures)
    for k in np.flatnonzero(too_fast).tolist():
        found[k] = Evaluation(np.nan, TOO_FAST)
    return found


def roll_out(
    population: Population, genotypes: Sequence[Genotype], task: SearchTask, target: str
) -> tuple[Rollout, np.ndarray]:
    """The rollout that a task asks for, and (bodies,) True where steps are too long for a body."""
    waves = joint_waves(genotypes, population)
    start = on_waves(population, waves) if task.start == "gait" else None
    job = rollout_task(
        population.tables, task.duration, STEP_S, waves, replace(task.ground, lift=True), None,
        None, task.torque, start, task.every, "auto", DTYPES[target], task.begin_time, SERVO_RAD_S,
        strict=False,
    )  # fmt: skip
    return population.run(job, target), job.too_fast


def on_waves(population: Population, waves: JointWaves) -> tuple[np.ndarray, np.ndarray]:
    """(bodies, most nq), (bodies, most nv) bases at their places, joints in motion at time zero."""
    bodies, joints = waves.amplitude.shape
    q, v = np.zeros((bodies, 7 + joints)), np.zeros((bodies, 6 + joints))
    q[:, :7] = population.tables.base_pose
    q[:, 7:] = waves.offset + waves.amplitude * np.sin(waves.phase)
    v[:, 6:] = 2 * np.pi * waves.frequency[:, None] * waves.amplitude * np.cos(waves.phase)
    return q, v


def judged(
    rollout: Rollout, population: Population, task: SearchTask, measures: Sequence[Objective] = ()
) -> list[Evaluation]:
    """Scores and measures of the bodies of a rollout; reasons for those that are kept out."""
    scores = _numbers("objective", task.objective, rollout, population).astype(float)
    columns = [_numbers("measure", function, rollout, population) for function in measures]
    valid = {
        name: np.nan_to_num(_numbers(f"constraint {name}", function, rollout, population)) != 0
        for name, function in task.constraints.items()
    }
    found = []
    for k, score in enumerate(scores.tolist()):
        row = tuple(float(column[k]) for column in columns)
        reason = next((f"constraint {name}" for name in valid if not valid[name][k]), "")
        if not np.isfinite([score, *row]).all():
            reason = NOT_FINITE
        if rollout.failed[k]:
            reason = DIVERGED
        found.append(Evaluation(np.nan, reason) if reason else Evaluation(score, "", row))
    return found


def _numbers(
    name: str, function: Objective, rollout: Rollout, population: Population
) -> np.ndarray:
    """(bodies,) numbers of a function of a rollout, or an error that says what came."""
    given, bodies = function(rollout, population), len(population)
    try:
        found = np.asarray(given)
    except ValueError:  # rows of different lengths
        found = np.asarray(None)
    if found.shape != (bodies,) or found.dtype.kind not in "biuf":
        raise StateError(
            f"{name}: a function of a rollout of {bodies} bodies returns ({bodies},) numbers, got "
            f"shape {found.shape} of {found.dtype}"
        )
    return found
