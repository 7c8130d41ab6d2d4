"""Winners of a search as scenarios: runs of their own, and the same in MuJoCo."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from modurob.errors import ModurobError
from modurob.population import Population, Rollout
from modurob.scenario.scenario import Scenario
from modurob.search.evaluation import Evaluation, judged
from modurob.search.genotype import Genotype
from modurob.search.tasks import SERVO_RAD_S, STEP_S, SearchTask
from modurob.sim import Trajectory, simulate

RECORD_S = 0.02  # between the states of a run that is filmed


def scenario_of(genotype: Genotype, task: SearchTask, name: str = "organism") -> Scenario:
    """The run of a genotype in a search, as one value that `modurob run` repeats.

    Heights of the ground are no part of a scenario: it has the slope of the task alone.
    """
    organism = task.loaded(genotype.organism())
    model, waves = organism.model(genotype.space.hinges, "free"), genotype.waves()
    gait = {
        key: dict(zip(model.joint_names, getattr(waves, key)[0].tolist(), strict=True))
        for key in ("amplitude", "phase", "offset")
    }
    fields: dict[str, Any] = {
        "organism": organism, "name": name, "hinges": genotype.space.hinges, "base": "free",
        "ground": True, "ground_friction": task.ground.friction, "slope": task.ground.slope,
        "motion": "sine", "frequency": genotype.frequency, "gait": gait, "ramp": 0.0,
        "controller": "PdGravity", "torque_limit": task.torque, "sample_time": STEP_S, "dt": STEP_S,
        "duration": task.duration, "record": RECORD_S,
    }  # fmt: skip
    start = Scenario(**fields)
    if task.start == "gait":
        start = start.on_motion()
    # the gains of the search: by the inertia that a joint feels at the start
    felt = 1 / np.diagonal(np.linalg.inv(model.mass_matrix(start.start(model)[0])))[6:]
    gains = {"kp": SERVO_RAD_S**2 * felt, "kd": 2 * SERVO_RAD_S * felt}
    return start.edited(gains={key: tuple(x.tolist()) for key, x in gains.items()})


def replay(scenario: Scenario, task: SearchTask, engine: str = "modurob") -> Trajectory:
    """The run of a scenario on the ground of its task, by modurob or MuJoCo."""
    model = scenario.model()
    q, v = scenario.start(model)
    return simulate(
        model, q, v, task.duration, scenario.law(model), dt=STEP_S,
        reference=scenario.reference(model), ground=replace(task.ground, lift=True),
        record=_times(task), organism=scenario.organism, engine=engine,
    )  # fmt: skip


def _times(task: SearchTask) -> np.ndarray:
    """Times that are recorded, the one at which ways begin to count among them. [s]"""
    each = task.every or RECORD_S
    times = each * np.arange(round(task.duration / each) + 1)
    return np.unique(np.round([*times[times < task.duration], task.begin_time, task.duration], 9))


def evaluated_run(trajectory: Trajectory, scenario: Scenario, task: SearchTask) -> Evaluation:
    """The score that a recorded run has by the objective of a task, or the reason for none."""
    run, model = trajectory.parts[0], trajectory.model
    first = int(np.searchsorted(run.t, task.begin_time - STEP_S / 2))
    center = model.center_of_mass(run.q[[first, -1]])
    power = np.abs(run.tau[:, 6:] * run.v[:, 6:]).sum(axis=1)
    rollout = Rollout(
        q=run.q[-1:], v=run.v[-1:], base_pose=run.q[-1:, :7], start_pose=run.q[[first], :7],
        center=center[1:], start_center=center[:1], work=np.trapezoid(power, run.t, axis=0)[None],
        failed=np.array([False]), times=run.t, trace=run.q[:, None, :7],
    )  # fmt: skip
    population = Population([scenario.organism], scenario.hinges)
    return judged(rollout, population, task)[0]


def mujoco_score(scenario: Scenario, task: SearchTask) -> tuple[float, str]:
    """The score in MuJoCo, and the reason where there is none."""
    try:
        run = evaluated_run(replay(scenario, task, "mujoco"), scenario, task)
        return run.score, run.reason
    except ModurobError as error:  # bodies that overlap, no MuJoCo, a run that diverged
        return np.nan, str(error)
