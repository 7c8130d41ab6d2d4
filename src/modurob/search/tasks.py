"""Tasks of a search: ground, duration, and objective and constraints as plain functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import inside, not_negative, positive
from modurob.errors import StateError, UnknownNameError, choices
from modurob.organism import Organism
from modurob.population import Population, Rollout
from modurob.stepping import Ground

# (bodies,) numbers of a rollout and its population
Objective = Callable[[Rollout, Population], ArrayLike]

STEP_S = 1e-3  # of rollouts
# of a joint, critically damped; with 30 rad/s joints that carry a body sag by up to 1.8 rad
SERVO_RAD_S = 80.0
SLOPE = 0.15  # [m/m] 8.5 degrees, below the friction that all bodies stand by
PAYLOAD_KG = 1.0  # of a cube
TORQUE_NM = 10.0  # a joint lifts five cubes in a row
TARGET = (0.3, 0.0, 0.3)  # [m] above what a body that lies on the ground has
BEGIN = 0.25  # as in tuning
KEPT_S = 1.0  # for which a height is kept
TRACE_S = 0.02  # between two recorded poses


@dataclass(frozen=True)
class SearchTask:
    """A task for bodies and gaits.

    Attributes:
        name: For reports and checkpoints.
        objective: Function of a rollout and its population: (bodies,) scores; larger is better. A
            score that is not finite keeps its body out of the search.
        unit: Of the scores.
        ground: That the bodies are on.
        duration: Of a rollout. [s]
        begin: Share of the duration after which ways count: `Rollout.start_center` and `start_pose`
            are those at this time, or falling over would be a way.
        constraints: By name, functions of a rollout and its population: (bodies,) True for bodies
            that are valid; all others are kept out of the search.
        payload: Mass that is added to the base module. [kg]
        torque: Largest torque of a joint. [N m, N]
        start: ``gait`` for joints that begin in the motion of their waves, ``rest`` for joints that
            begin at zero and at rest.
        clear: Whether bodies are left out whose modules would meet in the motion of their waves;
            rollouts have no contacts between modules.
        every: Seconds between the poses in `Rollout.trace`; None for start and end alone. [s]
    """

    name: str
    objective: Objective
    unit: str = "m"
    ground: Ground = field(default_factory=Ground)
    duration: float = 10.0
    begin: float = 0.0
    constraints: Mapping[str, Objective] = field(default_factory=dict)
    payload: float = 0.0
    torque: float = TORQUE_NM
    start: Literal["gait", "rest"] = "gait"
    clear: bool = True
    every: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("name", self.name), ("unit", self.unit)):
            if not isinstance(value, str):
                raise StateError(f"the {name} of a task is a text, got {value!r}")
        if not isinstance(self.constraints, Mapping):
            raise StateError(
                "constraints of a task are functions by name, such as {'upright': upright}, got "
                f"{self.constraints!r}"
            )
        for name, function in {"objective": self.objective, **self.constraints}.items():
            if not callable(function):
                raise StateError(
                    f"{name} is a function of a rollout and its population, got {function!r}"
                )
        if not isinstance(self.ground, Ground):
            raise StateError(f"the ground of a task is a Ground, got {self.ground!r}")
        positive("the duration of a task", self.duration, "seconds")
        if inside("begin of a task", self.begin, 0.0, 1.0, "a share") == 1:
            raise StateError("begin of a task is a share of its duration below 1, got 1")
        not_negative("the payload of a task", self.payload, "kg")
        positive("the torque of a task", self.torque, "N m")
        if self.start not in ("gait", "rest"):
            raise StateError(f"the start of a task is 'gait' or 'rest', got {self.start!r}")

    @property
    def begin_time(self) -> float:
        """Time from which on ways count, in whole steps. [s]"""
        return STEP_S * round(self.begin * self.duration / STEP_S)

    def loaded(self, organism: Organism) -> Organism:
        """The body as it does the task: with the payload in its base module."""
        if not self.payload:
            return organism
        mass = organism.kind(organism.base).mass + self.payload
        return organism.with_parameters(organism.base, mass=mass)

    def settings(self) -> dict[str, Any]:
        """Values that tell tasks apart, for checkpoints."""
        heights = np.asarray(self.ground.height)
        return {
            "task": self.name,
            "objective": _function_name(self.objective),
            "constraints": {name: _function_name(f) for name, f in self.constraints.items()},
            "duration": self.duration,
            "begin": self.begin,
            "payload": self.payload,
            "torque": self.torque,
            "start": self.start,
            "clear": self.clear,
            "every": self.every,
            "friction": self.ground.friction,
            "slope": list(self.ground.slope),
            "heights": heights.tolist(),
            "cell": None if self.ground.is_plane else self.ground.cell,
            "stiffness": self.ground.stiffness,
            "damping": self.ground.damping,
        }


def _function_name(function: Any) -> str:
    """Module and name of a function, with the arguments of a partial one."""
    if isinstance(function, partial):
        return f"{_function_name(function.func)} {function.args} {function.keywords}"
    return f"{function.__module__}.{getattr(function, '__qualname__', type(function).__name__)}"


# -- objectives ------------------------------------------------------------------------------------


def distance(rollout: Rollout, population: Population) -> np.ndarray:
    """(bodies,) horizontal way of the center of mass. [m]"""
    return rollout.distance


def way_along(
    rollout: Rollout, population: Population, direction: tuple[float, float] = (1.0, 0.0)
) -> np.ndarray:
    """(bodies,) way of the center of mass along a horizontal direction of length 1. [m]"""
    return (rollout.center - rollout.start_center)[:, :2] @ np.array(direction)


def height_kept(rollout: Rollout, population: Population, seconds: float = KEPT_S) -> np.ndarray:
    """(bodies,) height that the center of mass gained, less what the base rose at last. [m]

    The base counts as risen by its height at the end above its lowest one during the last seconds:
    a jump or a swing at the end is no gain.
    """
    heights = rollout.trace[rollout.times >= rollout.times[-1] - seconds, :, 2]
    risen = np.maximum(rollout.base_pose[:, 2] - heights.min(axis=0), 0.0)
    return rollout.center[:, 2] - rollout.start_center[:, 2] - risen


def closeness(
    rollout: Rollout, population: Population, target: tuple[float, float, float] = TARGET
) -> np.ndarray:
    """(bodies,) negative distance of the nearest module from a place at the end. [m]"""
    found = np.full(len(population), np.nan)
    for k in np.flatnonzero(~rollout.failed).tolist():
        model = population.model(k)
        places = model.forward_kinematics(rollout.q[k, : model.nq])[:, :3, 3]
        found[k] = -np.linalg.norm(places - np.array(target), axis=1).min()
    return found


TASKS: dict[str, SearchTask] = {
    task.name: task
    for task in (
        SearchTask("walk", distance, begin=BEGIN),
        SearchTask("climb", way_along, begin=BEGIN, ground=Ground(slope=(SLOPE, 0.0))),
        SearchTask("carry", distance, begin=BEGIN, payload=PAYLOAD_KG),
        SearchTask("stand-up", height_kept, duration=4.0, start="rest", every=TRACE_S),
        SearchTask("reach", closeness, duration=4.0, start="rest"),
    )
}


def task_of(task: str | SearchTask) -> SearchTask:
    """A task by its name, or an error that lists the names; a `SearchTask` as it is."""
    if isinstance(task, SearchTask):
        return task
    if isinstance(task, str) and task in TASKS:
        return TASKS[task]
    raise UnknownNameError(
        f"no task {task!r}: tasks are {choices(TASKS)}, or in Python a SearchTask"
    )
