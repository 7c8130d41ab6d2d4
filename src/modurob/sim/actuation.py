"""Controllers in a simulation: sampling, noise, and the torques that reach the joints.

A controller has ``command(t, q, v, reference) -> tau``; a plain function ``f(t, q, v)`` will do.
Further attributes are optional:

* ``sample_time``: asked at multiples of it only [s]; the torque is held in between. A controller
  with a memory (an integral, a filter) needs one: without it, it is asked several times a step, at
  trial states, and must not remember.
* ``reset(t, q, v)``: called when a run begins.
* ``record() -> {name: numbers}``: numbers for `Trajectory.channels`, as of its last
  command.
* ``rebuilt(model, organism) -> controller``: for the body after `Dock` or `Undock`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import positive
from modurob.errors import StateError
from modurob.model import Model
from modurob.organism import Organism
from modurob.stepping import manifold
from modurob.stepping.motion import Stopped, called


@dataclass(frozen=True)
class Noise:
    """Standard deviations of Gaussian noise, new at each sample of the controller.

    Attributes:
        q: On the measured configuration, one number or (nv,); a free base is moved by a twist.
            [rad, m]
        v: On the measured velocity. [rad/s, m/s]
        tau: Added to the torque on its way to the joints; a free base feels none. [N m, N]
    """

    q: ArrayLike = 0.0
    v: ArrayLike = 0.0
    tau: ArrayLike = 0.0

    def __post_init__(self) -> None:
        for name in ("q", "v", "tau"):
            try:
                value = np.asarray(getattr(self, name), dtype=float)
                good = bool(np.all(np.isfinite(value) & (value >= 0)))
            except (TypeError, ValueError, OverflowError):
                good = False
            if not good:
                raise StateError(
                    f"the noise of {name} is a standard deviation of 0 or more, "
                    f"got {getattr(self, name)!r}"
                )


class PerBody:
    """A controller made anew for each body: ``PerBody(lambda model, organism: MyLaw(model))``.

    Args:
        make: From (model, organism) to a controller, or None for no torque. In a run without
            events the organism may be None.
    """

    def __init__(self, make: Callable[[Model, Organism | None], Any]) -> None:
        self.make = make

    def rebuilt(self, model: Model, organism: Organism | None) -> Any:
        """The controller of a body."""
        return self.make(model, organism)


def can_follow(controller: Any) -> bool:
    """Return whether a controller can be rebuilt when the body changes."""
    return controller is None or hasattr(controller, "rebuilt")


class Actuation:
    """Torques that reach the joints of one body: controller, clock and noise.

    Attributes:
        sample_time: Seconds between commands; None for a controller that acts continuously.
    """

    def __init__(
        self,
        model: Model,
        batch: tuple[int, ...],
        controller: Any,
        reference: Any = None,
        sample_time: float | None = None,
        noise: Noise | None = None,
        rng: np.random.Generator | None = None,
    ) -> None:
        self._model, self._shape = model, (*batch, model.nv)
        self.controller = controller
        self._reference = reference if callable(reference) else lambda _: reference
        self._law = _law(controller)
        own = getattr(controller, "sample_time", None)
        chosen = own if sample_time is None else sample_time
        self.sample_time = None if chosen is None else positive("sample_time", chosen, "seconds")
        if noise is not None and self.sample_time is None:
            raise StateError(
                "noise needs a controller with a clock: pass sample_time=0.01, or give the "
                "controller an attribute sample_time"
            )
        self._noise = None if noise is None else _Noisy(noise, model, self._shape)
        self._rng = rng
        self._held = np.zeros(self._shape)
        self._seen: dict[str, Any] = {}  # what noise made of the last sample

    def reset(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Call the controller's `reset` at the begin of a run."""
        if hasattr(self.controller, "reset"):
            called(t, "the controller", self.controller.reset, t, q.copy(), v.copy())

    def sample(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Ask a controller that has a clock, and hold its answer."""
        if self._noise is None or self._rng is None:
            self._held = self._asked(t, q, v)
            return
        seen_q, seen_v = self._noise.seen(q, v, self._rng)
        wanted = self._asked(t, seen_q, seen_v)
        self._held = self._noise.disturbed(wanted, self._rng)
        self._seen = {"measured_q": seen_q, "measured_v": seen_v, "command": wanted}

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(..., nv) torque at a state."""
        return self._asked(t, q, v) if self.sample_time is None else self._held

    def observed(self, t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
        """Torque and channels to write down."""
        tau = self._asked(t, q, v) if self.sample_time is None else self._held
        return tau, {**self._seen, **self._channels(t)}

    def _asked(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        # copies: a controller that works in place must not move the robot
        reference = called(t, "the reference", self._reference, t)
        answer = called(t, "the controller", self._law, t, q.copy(), v.copy(), reference)
        try:
            tau = np.asarray(answer, dtype=float)
            if tau.shape != self._shape:
                tau = np.array(np.broadcast_to(tau, self._shape)) if tau.ndim else tau
        except (TypeError, ValueError, OverflowError):
            tau = np.empty(0)
        if tau.shape != self._shape:
            raise Stopped(
                t,
                f"the controller returned {_described(answer)}, expected {self._shape} numbers, "
                "one torque for each entry of v",
            )
        if not np.isfinite(tau).all():
            raise Stopped(t, _not_finite(self._model, tau))
        return tau

    def _channels(self, t: float) -> dict[str, Any]:
        if not hasattr(self.controller, "record"):
            return {}
        return called(t, "the controller's record()", self._recorded_by_controller)

    def _recorded_by_controller(self) -> dict[str, Any]:
        recorded: Mapping[str, ArrayLike] = self.controller.record()
        return {name: np.array(value, dtype=float) for name, value in recorded.items()}


def _law(controller: Any) -> Callable[..., Any]:
    command = getattr(controller, "command", None)
    if callable(command):
        return command
    if callable(controller):
        return lambda t, q, v, _: controller(t, q, v)
    raise StateError(
        "a controller is a function f(t, q, v) or has a method command(t, q, v, reference), "
        f"got {type(controller).__name__}"
    )


def _described(answer: Any) -> str:
    return f"an array of shape {answer.shape}" if isinstance(answer, np.ndarray) else repr(answer)


def _not_finite(model: Model, tau: np.ndarray) -> str:
    *state, column = (int(k) for k in np.argwhere(~np.isfinite(tau))[0])
    skip = model.joint_slice_v.start
    where = f"joint '{model.joint_names[column - skip]}'" if column >= skip else "the base"
    whose = f" of state {state[0] if len(state) == 1 else state}" if state else ""
    return f"the controller returned {tau[(*state, column)]} for {where}{whose}"


class _Noisy:
    """Noise for one model."""

    def __init__(self, noise: Noise, model: Model, shape: tuple[int, ...]) -> None:
        self._free, self._shape = model.free_base, shape
        for name in ("q", "v", "tau"):
            size = np.shape(getattr(noise, name))
            if size not in ((), (model.nv,)):
                raise StateError(
                    f"the noise of {name} is one number or ({model.nv},), got shape {size}"
                )
        self._q, self._v, tau = (np.asarray(x, dtype=float) for x in (noise.q, noise.v, noise.tau))
        self._tau = np.array(np.broadcast_to(tau, (model.nv,)))
        if tau.ndim == 0:
            self._tau[: model.joint_slice_v.start] = 0.0  # motors push joints

    def seen(
        self, q: np.ndarray, v: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        shift = self._q * rng.standard_normal(self._shape)
        seen_q = manifold.moved(q, shift) if self._free else q + shift
        return seen_q, v + self._v * rng.standard_normal(self._shape)

    def disturbed(self, tau: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return tau + self._tau * rng.standard_normal(self._shape)
