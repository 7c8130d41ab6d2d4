"""Environments of Gymnasium: one body, or many that step together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv

from modurob.checks import whole
from modurob.environments.batch import LARGEST, PERIOD_S, TaskBatch
from modurob.environments.pictures import TrackingCamera
from modurob.errors import StateError, UnknownNameError, choices
from modurob.organism import Organism
from modurob.population import Population
from modurob.sim import BodyTrajectory, Trajectory

MODES = ("rgb_array",)


class OrganismEnv(gymnasium.Env):
    """One organism with a task.

    Args:
        task: ``walk``, ``balance``, ``reach`` or ``dock``.
        organism: The body.
        render_mode: ``rgb_array``, or None.
        options: As for `TaskBatch`.
    """

    metadata = {"render_modes": list(MODES), "render_fps": 1 / PERIOD_S}  # noqa: RUF012

    def __init__(
        self, task: str, organism: Organism, *, render_mode: str | None = None, **options: Any
    ) -> None:
        if not isinstance(organism, Organism):
            raise StateError(
                f"an environment takes an Organism, got {type(organism).__name__}; for many bodies "
                "use gymnasium.make_vec"
            )
        self.render_mode = _mode(render_mode)
        self.batch = TaskBatch(task, organism, 1, **options)
        self.metadata = {**self.metadata, "render_fps": 1 / self.batch.period}  # films in real time
        self.organism, self.model = organism, self.batch.population.model(0)
        self.observation_space, self.action_space = _spaces(self.batch)
        self._camera: TrackingCamera | None = None
        self._states: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start a new episode; see `gymnasium.Env.reset`. There are no options."""
        _demand_options(options)
        super().reset(seed=seed)
        self.batch.restart(np.ones(1, dtype=bool), [self.np_random])
        self._states = [self._state()]
        return self.batch.observation()[0], {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Act for one period; see `gymnasium.Env.step`."""
        if not self._states:
            raise StateError("an environment starts with reset()")
        reward, terminated, info = self.batch.step(_actions(action, self.action_space)[None])
        self._states.append(self._state())
        measures = {name: value[0].item() for name, value in info.items()}
        return self.batch.observation()[0], float(reward[0]), bool(terminated[0]), False, measures

    def _state(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        batch, (kp, kd, torque) = self.batch, (x[0] for x in self.batch.stepper.law)
        q, v = batch.now.q[0], batch.now.v[0]
        tau = np.zeros(len(v))
        wanted = kp * (batch.references[0] - q[-len(kp) :]) - kd * v[-len(kp) :]
        tau[-len(kp) :] = np.clip(wanted, -torque, torque)
        return q, v, tau

    def trajectory(self) -> Trajectory:
        """The episode so far, a state for each action: to be plotted, saved and viewed.

        Its torques are those at the ends of the periods, its accelerations differences of the
        recorded velocities.
        """
        if len(self._states) < 2:
            raise StateError("there is no trajectory yet: reset() and step(action) come first")
        q, v, tau = (np.array(x) for x in zip(*self._states, strict=True))
        t = self.batch.period * np.arange(len(q))
        part = BodyTrajectory(
            self.organism.base, self.model, self.organism, t, q, v, tau,
            _accelerations=lambda: np.gradient(v, t, axis=0),
        )  # fmt: skip
        return Trajectory((part,), integrator="SemiImplicitEuler")

    def render(self) -> np.ndarray | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """(height, width, 3) picture of the body, which the camera follows; bytes."""
        if self.render_mode is None:
            return None
        if self._camera is None:
            self._camera = TrackingCamera(self.batch)
        return self._camera.frame(0)


class OrganismVectorEnv(VectorEnv):
    """Many bodies with one task, which step together in compiled code.

    An episode that has ended starts anew in the next step, whose reward is 0
    (``AutoresetMode.NEXT_STEP``).

    Args:
        task: ``walk``, ``balance``, ``reach`` or ``dock``.
        organism: The body of all; or different ones, as a list or a `Population`.
        num_envs: Number of bodies.
        max_episode_steps: Actions of an episode; None for no end.
        render_mode: ``rgb_array``, or None.
        options: As for `TaskBatch`.
    """

    metadata = {**OrganismEnv.metadata, "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        task: str,
        organism: Organism | Iterable[Organism] | Population,
        num_envs: int = 1,
        max_episode_steps: int | None = None,
        *,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        self.render_mode, self.num_envs = _mode(render_mode), whole("num_envs", num_envs, 1)
        self.batch = TaskBatch(task, organism, num_envs, **options)
        self.metadata = {**self.metadata, "render_fps": 1 / self.batch.period}
        self.single_observation_space, self.single_action_space = _spaces(self.batch)
        batched = gymnasium.vector.utils.batch_space
        self.observation_space = batched(self.single_observation_space, num_envs)
        self.action_space = batched(self.single_action_space, num_envs)
        self._most = max_episode_steps
        if max_episode_steps is not None:
            whole("max_episode_steps", max_episode_steps, 1)
        self._count = np.zeros(num_envs, dtype=int)
        self._ended = np.zeros(num_envs, dtype=bool)
        self._rngs: list[np.random.Generator] = []
        self._camera: TrackingCamera | None = None

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start episodes; body k of seed s has the random numbers of seed s + k.

        Args:
            seed: As for `gymnasium.vector.VectorEnv.reset`.
            options: ``reset_mask``, (num_envs,) True for bodies to start anew; by default all.
        """
        which = self._mask(options)
        if isinstance(seed, int | np.integer):
            seed = [int(seed) + k for k in range(self.num_envs)]
        seeds = [None] * self.num_envs if seed is None else seed
        if not isinstance(seeds, list | tuple) or len(seeds) != self.num_envs:
            raise StateError(f"{self.num_envs} bodies take a whole number or as many, got {seed!r}")
        old = self._rngs or [None] * self.num_envs
        self._rngs = [
            rng if rng is not None and (each is None or not chosen) else seeding.np_random(each)[0]
            for each, rng, chosen in zip(seeds, old, which, strict=True)
        ]
        self._restart(which)
        return self.batch.observation(), {}

    def _mask(self, options: dict[str, Any] | None) -> np.ndarray:
        """(num_envs,) True for bodies that start anew."""
        _demand_options(options, "reset_mask")
        which = np.asarray((options or {}).get("reset_mask", np.ones(self.num_envs, dtype=bool)))
        if which.shape != (self.num_envs,) or which.dtype != bool:
            raise StateError(
                f"reset_mask is ({self.num_envs},) True or False, got shape {which.shape} of "
                f"{which.dtype}"
            )
        if not (self._rngs or which.all()):
            raise StateError("an environment starts with reset() of all bodies, without reset_mask")
        return which

    def _restart(self, which: np.ndarray) -> None:
        self.batch.restart(which, self._rngs)
        self._count[which], self._ended[which] = 0, False

    def step(
        self, actions: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Act for one period; see `gymnasium.vector.VectorEnv.step`."""
        if not self._rngs:
            raise StateError("an environment starts with reset()")
        reward, terminated, info = self.batch.step(_actions(actions, self.action_space))
        self._count += 1
        truncated = np.zeros(self.num_envs, dtype=bool)
        if self._most is not None:
            truncated = self._count >= self._most
        ended = self._ended.copy()
        reward = np.where(ended, 0.0, reward)
        terminated, truncated = terminated & ~ended, truncated & ~ended
        if ended.any():
            self._restart(ended)
        self._ended = terminated | truncated
        masks = {f"_{name}": ~ended for name in info}
        return self.batch.observation(), reward, terminated, truncated, {**info, **masks}

    def render(self) -> tuple[np.ndarray, ...] | None:
        """A picture of each body."""
        if self.render_mode is None:
            return None
        if self._camera is None:
            self._camera = TrackingCamera(self.batch)
        return tuple(self._camera.frame(k) for k in range(self.num_envs))


def _demand_options(given: dict[str, Any] | None, *known: str) -> None:
    """Refuse options of a reset that would do nothing."""
    for name in given or ():
        if name not in known:
            takes = choices(known) if known else "no options"
            raise UnknownNameError(f"reset() takes {takes}, got {name!r}")


def _mode(given: str | None) -> str | None:
    if given is not None and given not in MODES:
        raise UnknownNameError(f"no render mode {given!r}: it is 'rgb_array', or None")
    return given


def _spaces(batch: TaskBatch) -> tuple[spaces.Box, spaces.Box]:
    """Spaces of the observation and the action of one body."""
    return (
        spaces.Box(-LARGEST, LARGEST, (batch.numbers,), np.float32),
        spaces.Box(-1.0, 1.0, (batch.joints,), np.float32),
    )


def _actions(given: Any, space: spaces.Space) -> np.ndarray:
    try:
        action = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        action = np.array(np.nan)
    if action.shape != space.shape or not np.isfinite(action).all():
        text = " ".join(repr(given).split())
        raise StateError(f"an action is {space.shape} finite numbers, got {text:.60}")
    return action
