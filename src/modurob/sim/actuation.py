"""Controllers in a simulation: sampling, noise, and the torques that reach the joints.

A controller has ``command(t, q, v, reference) -> tau``; a plain function ``f(t, q, v)`` will do.
Further attributes are optional:

* ``sample_time``: asked at multiples of it only [s]; the torque is held in between. A controller
  with a memory (an integral, a filter) needs one: without it, it is asked several times a step, at
  trial states, and must not remember.
* ``reset(t, q, v)``: called when a run begins.
* ``connect_ground(sensor)``: called before that in a run on the ground; ``sensor()`` gives the
  `Touching` corners at the time of a sample.
* ``record() -> {name: numbers}``: numbers for `Trajectory.channels`, as of its last
  command.
* ``command(t, q, v, reference, external)``: with ``wrench_sensors`` it also has the wrenches on
  bodies, external ones and those of contacts.
* ``rebuilt(model, organism) -> controller``: for the body after `Dock` or `Undock`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import as_floats, positive
from modurob.errors import StateError
from modurob.model import Model
from modurob.organism import Organism
from modurob.stepping import manifold
from modurob.stepping.motion import Stopped, called, first_of


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
            value = as_floats(getattr(self, name))
            if not np.all(np.isfinite(value) & (value >= 0)):
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


class Actuation:
    """Torques that reach the joints of one body: controller, clock and noise.

    Its `sample_time` [s] is None for a controller that acts continuously.
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
        sensors: Callable[[float, np.ndarray, np.ndarray], Any] | None = None,
    ) -> None:
        self._model, self._shape = model, (*batch, model.nv)
        self.controller = controller
        self._reference = reference
        self._law, self._sensors = _law(controller, sensors is not None), sensors
        own = getattr(controller, "sample_time", None)
        chosen = own if sample_time is None else sample_time
        self.sample_time = None if chosen is None else positive("sample_time", chosen, "seconds")
        if noise is not None and self.sample_time is None:
            raise StateError(
                "noise needs a controller with a clock: pass sample_time=0.01, or give the "
                "controller an attribute sample_time"
            )
        self._noise = None if noise is None else _deviations(noise, model)
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
        (by_q, by_v, by_tau), normal, shape = self._noise, self._rng.standard_normal, self._shape
        shift = by_q * normal(shape)
        seen_q = manifold.moved(q, shift) if self._model.free_base else q + shift
        seen_v = v + by_v * normal(shape)
        command = self._asked(t, seen_q, seen_v, (q, v))
        self._held = command + by_tau * normal(shape)
        self._seen = {"measured_q": seen_q, "measured_v": seen_v, "command": command}

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(..., nv) torque at a state."""
        return self._asked(t, q, v) if self.sample_time is None else self._held

    def observed(self, t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
        """Torque and channels to record."""
        tau = self._asked(t, q, v) if self.sample_time is None else self._held
        return tau, {**self._seen, **self._channels(t)}

    def _asked(
        self, t: float, q: np.ndarray, v: np.ndarray, true: tuple[np.ndarray, ...] | None = None
    ) -> np.ndarray:
        """Torque for a state as it is measured; wrenches are those of the true state."""
        given = () if self._sensors is None else (self._sensors(t, *(true or (q, v))),)
        # copies: a controller that works in place must not move the robot
        reference = self._reference
        if callable(reference):
            reference = called(t, "the reference", reference, t)
        answer = called(t, "the controller", self._law, t, q.copy(), v.copy(), reference, *given)
        try:
            tau = np.asarray(answer, dtype=float)
            if tau.shape != self._shape:
                one_each = tau.shape[-1:] == self._shape[-1:]
                tau = np.array(np.broadcast_to(tau, self._shape)) if one_each else tau
        except (TypeError, ValueError, OverflowError):
            tau = np.empty(0)
        if tau.shape != self._shape:
            is_array = isinstance(answer, np.ndarray)
            given = f"an array of shape {answer.shape}" if is_array else repr(answer)
            raise Stopped(
                t,
                f"the controller returned {given}, expected {self._shape} numbers, "
                "one torque for each entry of v",
            )
        if not np.isfinite(tau).all():
            where, value = first_of(self._model, tau, ~np.isfinite(tau))
            raise Stopped(t, f"the controller returned {value} for {where}")
        return tau

    def _channels(self, t: float) -> dict[str, Any]:
        def recorded() -> dict[str, Any]:
            return {k: np.array(x, dtype=float) for k, x in self.controller.record().items()}

        if not hasattr(self.controller, "record"):
            return {}
        return called(t, "the controller's record()", recorded)


def _law(controller: Any, with_wrenches: bool) -> Callable[..., Any]:
    """The command of a controller, with the argument `external` if sensors give it wrenches."""
    command = getattr(controller, "command", None)
    if with_wrenches:
        if not callable(command) or "external" not in inspect.signature(command).parameters:
            raise StateError(
                "wrench_sensors need a controller with command(t, q, v, reference, external), got "
                f"{type(controller).__name__}: choose a law of modurob.control, or leave them out"
            )
        return lambda t, q, v, aim, external: command(t, q, v, aim, external=external)
    if callable(command):
        return command
    if callable(controller):
        return lambda t, q, v, _: controller(t, q, v)
    raise StateError(
        "a controller is a function f(t, q, v) or has a method command(t, q, v, reference), "
        f"got {type(controller).__name__}"
    )


def _deviations(noise: Noise, model: Model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Standard deviations of q, v and tau; one number of torque acts on the joints only."""
    for name in ("q", "v", "tau"):
        size = np.shape(getattr(noise, name))
        if size not in ((), (model.nv,)):
            raise StateError(
                f"the noise of {name} is one number or ({model.nv},), got shape {size}"
            )
    tau = np.array(np.broadcast_to(np.asarray(noise.tau, dtype=float), (model.nv,)))
    if np.ndim(noise.tau) == 0:
        tau[: model.joint_slice_v.start] = 0.0
    return np.asarray(noise.q, dtype=float), np.asarray(noise.v, dtype=float), tau
