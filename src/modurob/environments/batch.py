"""`TaskBatch`: bodies of a population with a task, stepped by actions."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import not_negative, positive, real_array
from modurob.environments.tasks import TASKS, Outcome, Snapshot
from modurob.errors import StateError, UnknownNameError, choices
from modurob.interop.conventions import motors_of
from modurob.organism import Organism
from modurob.population import Population, poses
from modurob.population.rollout import largest_step, rises
from modurob.stepping.ground import Ground

HINGE_SPAN_RAD, SLIDE_SPAN_M = math.pi / 2, 0.1  # of references, on both sides of the start
PERIOD_S, STEP_S = 0.02, 1e-3
SERVO_RATE = 100.0  # [rad/s] stiff enough to lift the own weight
ROUNDING = 1e-9  # of a number of steps, and of positions at a limit [rad, m]
START_NOISE = 0.02  # [rad, m] of joints
LARGEST = 1e3  # number of an observation, in any unit: the space has an end


class TaskBatch:
    """Bodies with a task.

    Actions are (bodies, most joints) numbers from -1 to 1: references of the joints' servos,
    between the ends of their ranges.

    Args:
        task: Name of a task.
        bodies: One organism, a list of them, or a `Population`.
        count: Number of bodies; one organism is taken so often.
        ground: That they stand on. By default free bodies have a level one, fixed ones none.
        hinges, base: As for `Organism.model`; the task chooses the base by default. A `Population`
            has its own.
        period: Seconds between actions.
        dt: Step of the simulation; by default 1 ms, or less where friction and servos need it. [s]
        servo_rate: Of the servos with the inertia that joints feel at the start; critically
            damped. [rad/s]
        kp, kd, torque: Gains in place of those, and largest torque, as for `Population.rollout`;
            by default the `max_effort` of the datasheets.
        start: (most nq,) or (bodies, most nq) configurations to start in; free bodies are set down
            on the ground. By default joints are at zero, or at the nearest limit. Within limits.
        start_noise: Largest deviation of the joints from it. [rad, m]
        span: Range of the references of hinges on both sides of the start, within the joints'
            limits. [rad]
        options: Of the task.
    """

    def __init__(
        self,
        task: str,
        bodies: Organism | Iterable[Organism] | Population,
        count: int,
        *,
        ground: Ground | None = None,
        hinges: str | None = None,
        base: str | None = None,
        period: float = PERIOD_S,
        dt: float | None = None,
        servo_rate: float = SERVO_RATE,
        kp: ArrayLike | None = None,
        kd: ArrayLike | None = None,
        torque: ArrayLike | None = None,
        start: ArrayLike | None = None,
        start_noise: float = START_NOISE,
        span: float = HINGE_SPAN_RAD,
        **options: Any,
    ) -> None:
        if task not in TASKS:
            raise UnknownNameError(f"no task {task!r}: tasks are {choices(TASKS)}")
        if not (ground is None or isinstance(ground, Ground)):
            raise StateError(f"ground is a modurob.Ground or None, got {type(ground).__name__}")
        servo_rate = positive("servo_rate", servo_rate, "rad/s")
        self.population = _population(bodies, count, hinges, base, TASKS[task].base)
        self.tables, free = self.population.tables, self.population.tables.free_base
        self.ground = Ground() if ground is None and free else ground
        self.joints = int(self.population.joints.max())
        self.present = self.tables.present[:, 1:]
        self.period = positive("period", period, "seconds")
        self._noise = not_negative("start_noise", start_noise, "rad or m")
        lower, upper, effort = self._limits()
        self._start = self._started(start, lower, upper)
        if dt is None:
            most = largest_step(self.tables, self._start, kp, kd, servo_rate)
            dt = self.period / math.ceil(self.period / min(most, STEP_S) - ROUNDING)
        self._steps = round(self.period / positive("dt", dt, "seconds"))
        if abs(self._steps * dt - self.period) > ROUNDING * self.period:
            raise StateError(f"period = {period:g} s is no multiple of dt = {dt:g} s: give one")
        middle = self._start[:, 7 if free else 0 :]
        half = np.where(self.tables.slides()[:, 1:], SLIDE_SPAN_M, positive("span", span, "rad"))
        self._low, self._high = np.maximum(lower, middle - half), np.minimum(upper, middle + half)
        rest = np.zeros((len(self.population), self.joints + (6 if free else 0)))
        self.stepper = self.population.stepper(
            dt, self.ground, kp, kd, effort if torque is None else torque,
            (self._set_down(self._start), rest), servo_rate=servo_rate,
        )  # fmt: skip
        known = list(inspect.signature(TASKS[task]).parameters)[1:]
        for name in options:
            if name not in known:
                raise UnknownNameError(
                    f"no option {name!r} of task {task}: it has {choices(known)}"
                )
        self.task = TASKS[task](self.population, self.ground, self._low, self._high, **options)
        self.action = np.zeros((count, self.joints))
        self.now = self._snapshot()

    @property
    def numbers(self) -> int:
        """Size of the observation of a body."""
        return (13 if self.tables.free_base else 0) + 3 * self.joints + self.task.numbers

    @cached_property
    def references(self) -> np.ndarray:
        """(bodies, most joints) latest references of the joints. [rad, m]"""
        return np.zeros(self.action.shape)

    def _limits(self) -> np.ndarray:
        """(3, bodies, most joints) lower and upper limits, and efforts; 0 behind the last joint."""
        found = np.zeros((3, len(self.population), self.joints))
        known: dict[int, np.ndarray] = {}
        for k in range(len(self.population)):
            key = id(self.population.organism(k))
            if key not in known:
                model, effort = self.population.model(k), np.zeros(self.population.joints[k])
                for motor in motors_of(model):
                    effort[motor.joint] = motor.effort
                known[key] = np.stack([model.lower, model.upper, effort])
            found[:, k, : known[key].shape[1]] = known[key]
        return found

    def _started(self, start: Any, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """(bodies, most nq) first configurations."""
        free = self.tables.free_base
        shape = (len(self.population), self.joints + (7 if free else 0))
        if start is None:
            base = self.tables.base_pose if free else np.zeros((shape[0], 0))
            return np.hstack([base, np.clip(0.0, lower, upper)])
        given = real_array("start", start)
        if given.shape not in (shape, shape[1:]):
            raise StateError(f"start has shape {given.shape}, expected {shape[1:]} or {shape}")
        given = np.array(np.broadcast_to(given, shape))
        joints = given[:, shape[1] - self.joints :]
        joints *= self.present
        for k, j in np.argwhere((joints < lower - ROUNDING) | (joints > upper + ROUNDING)):
            raise StateError(
                f"start of {self.population.model(k).joint_names[j]} of body {k} is "
                f"{joints[k, j]:g}, outside its limits {lower[k, j]:g} to {upper[k, j]:g}"
            )
        np.clip(joints, lower, upper, out=joints)
        return given

    def _set_down(self, q: np.ndarray) -> np.ndarray:
        """The same configurations on the ground."""
        if not self.tables.free_base:
            return q
        assert self.ground is not None  # free bodies have one
        q = q.copy()
        q[:, 2] += rises(self.tables, self.ground, q)
        return q

    def _snapshot(self) -> Snapshot:
        q, v = self.stepper.q.copy(), self.stepper.v.copy()
        failed = np.isnan(q).any(axis=1)  # seen at their start: a field of heights has no NaN
        q[failed], v[failed] = self._start[failed], 0.0
        R, p = poses.link_poses(self.tables, q)
        center = poses.centers_of_mass(self.tables, q, poses.LinkPoses(R, p))
        return Snapshot(q, v, R, p, center, self.stepper.work.copy())

    def restart(self, bodies: np.ndarray, rngs: Sequence[np.random.Generator]) -> None:
        """Start some bodies anew: (bodies,) True for those, and random numbers for each."""
        which = np.flatnonzero(bodies)
        q, v = self._start.copy(), np.zeros(self.stepper.v.shape)
        first = q.shape[1] - self.joints
        for k in which.tolist():
            n = self.population.joints[k]
            q[k, first : first + n] += rngs[k].uniform(-self._noise, self._noise, n)
        self.task.begin(which, rngs, q, v)
        self.stepper.restart(bodies, q, v)
        self.action[which] = 0.0
        self.now = self._snapshot()
        self.references[which] = self.now.q[which, first:]
        self.task.started(which, self.now)

    def step(self, action: np.ndarray) -> Outcome:
        """Take the steps of one period."""
        share = (np.clip(action, -1.0, 1.0) + 1) / 2
        self.references[:] = self._low + share * (self._high - self._low)
        self.stepper.advance(self.references, self._steps)
        before, self.now = self.now, self._snapshot()
        self.action[:] = np.clip(action, -1.0, 1.0) * self.present
        reward, terminated, info = self.task.outcome(before, self.now, self.period)
        failed: np.ndarray = np.any(np.isnan(self.stepper.q), axis=1)
        return Outcome(
            np.where(failed, 0.0, reward), terminated | failed, {**info, "failed": failed}
        )

    def observation(self) -> np.ndarray:
        """(bodies, numbers) float32; docs/guide/learning.md lists the numbers."""
        now, parts, free = self.now, [], self.tables.free_base
        if free:
            x, y, z = now.q[:, :3].T
            assert self.ground is not None  # free bodies have one
            ground = self.ground.surface(x, y)[0]
            axes = now.R[:, 0, 0], now.R[:, 0, 2]  # the world's x and z, seen from the base
            parts += [(z - ground)[:, None], *axes, now.v[:, :6]]
        parts += [now.q[:, 7 if free else 0 :], now.v[:, 6 if free else 0 :], self.action]
        parts.append(self.task.observation(now))
        return np.clip(np.concatenate(parts, axis=1), -LARGEST, LARGEST).astype(np.float32)


def _population(
    bodies: Any, count: int, hinges: str | None, base: str | None, default_base: str
) -> Population:
    """One body so often, or as many different ones."""
    if isinstance(bodies, Population):
        if hinges is not None or base is not None:
            raise StateError("a Population has its hinges and base already: leave them out")
        found = bodies
    else:
        listed = [bodies] * count if isinstance(bodies, Organism) else bodies
        found = Population(listed, hinges or "dyad", base or default_base)
    if len(found) != count:
        raise StateError(f"there are {len(found)} bodies: give num_envs={len(found)}, got {count}")
    return found
