"""`simulate`: one entry for every run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import positive
from modurob.errors import SizeError, StateError, UnknownNameError, choices
from modurob.model import Model
from modurob.organism import Organism
from modurob.sim.checks import generator, initial_state
from modurob.sim.clock import record_times
from modurob.sim.command import Noise, can_follow
from modurob.sim.events import Event
from modurob.sim.failure import SimulationError, Stopped
from modurob.sim.integrators import FixedStep, Integrator, Settings, integrator_class
from modurob.sim.motion import External
from modurob.sim.recipe import origin
from modurob.sim.reconfigure import Colony
from modurob.sim.recorder import row_bytes
from modurob.sim.run import Run, Setup
from modurob.sim.stops import Stops
from modurob.sim.trajectory import Trajectory
from modurob.sim.watch import Canceled, Watch

MOST_STEPS = 1e9  # some hours of the smallest body; more is a mistake in dt or in the duration
DT = 1e-3  # [s] step of fixed-step methods unless told: some hundred steps a swing of a cube


def simulate(
    model: Model,
    q0: ArrayLike | None,
    v0: ArrayLike | None,
    duration: float,
    controller: Any = None,
    integrator: str = "RK45",
    rtol: float = 1e-8,
    atol: float = 1e-10,
    dt: float | None = None,
    events: Sequence[Event] = (),
    rng: np.random.Generator | None = None,
    progress: Any = False,
    *,
    reference: Any = None,
    sample_time: float | None = None,
    noise: Noise | None = None,
    external: External | None = None,
    stops: bool | Stops = False,
    record: float | ArrayLike | None = None,
    organism: Organism | None = None,
    cancel: Any = None,
) -> Trajectory:
    """Let a body move.

    Args:
        model: Its equations; `Model.compile` it first when many states or long runs are ahead.
        q0, v0: (..., nq), (..., nv) initial state or states; None is the neutral pose, and rest.
            RK4 and SemiImplicitEuler take any batch shape.
        duration: [s]
        controller: ``f(t, q, v) -> tau (..., nv)``, an object with ``command(t, q, v, reference)``
            (see `modurob.sim.command`), or None.
        integrator: RK45, DOP853, LSODA, Radau and BDF are SciPy's, with dense output; RK4,
            SemiImplicitEuler and Variational take equal steps.
        rtol, atol: Errors that adaptive methods allow in each step.
        dt: Step of the others (1 ms by default), and the largest step of adaptive ones. [s]
        events: `Dock` and `Undock`; the model must be one of an `Organism`.
        rng: For `noise`.
        progress: True for a bar on standard error, or a function of the fraction done.
        reference: Handed to the controller: a function of time, or anything else as it is.
        sample_time: Ask the controller only so often, and hold its torque. [s]
        noise: On what the controller sees and does; new at each sample.
        external: Wrenches (6,) on bodies, in the bodies' frames, or functions of time.
        stops: Whether joints meet smooth stops at their limits, or which.
        record: Seconds between the states that are kept, or the times; every step by default.
        organism: The body that `model` belongs to; by default the one it was built from.
        cancel: A function or `threading.Event`; when true, the run ends with what it has.

    Raises:
        SimulationError: The run diverged, the controller raised or a docking was missed; the
            error holds the time and the trajectory until then.
        SizeError: What would be recorded does not fit into memory.
    """
    method = integrator_class(integrator)
    q, v = initial_state(model, q0, v0)
    length = positive("duration", duration, "seconds")
    settings = _settings(method, rtol, atol, dt, length)
    if q.ndim > 1 and not method.batches:
        some = "RK4 or SemiImplicitEuler"
        raise StateError(f"{method.name} takes one state; for a batch of {q.shape[:-1]} use {some}")
    if noise is not None and not isinstance(noise, Noise):
        raise StateError(f"noise is a modurob.sim.Noise, got {type(noise).__name__}")
    if not isinstance(stops, bool | Stops):
        raise StateError(f"stops is True, False or a modurob.sim.Stops, got {stops!r}")
    size = row_bytes(math.prod(q.shape[:-1]), model.nq, model.nv)
    setup = Setup(
        method=method,
        settings=settings,
        duration=length,
        record=record_times(record, length, size),
        reference=reference,
        sample_time=sample_time,
        noise=noise,
        rng=None if noise is None else generator(rng, "noise"),
        stops=Stops() if stops is True else stops or None,
        external=dict(external or {}),
    )
    organism = origin(model, organism)
    if events:
        _check_events(model, events, controller, length, q.ndim > 1)
    law = controller
    if not hasattr(law, "command") and hasattr(law, "rebuilt"):
        law = law.rebuilt(model, organism)
    first = Run(setup, model, law, 0.0, q, v, organism)
    colony = Colony(setup, first, controller, tuple(events))
    _check_bodies(setup.external, colony)
    return _finished(colony, Watch(length, progress, cancel), method.name)


def _finished(colony: Colony, watch: Watch, name: str) -> Trajectory:
    """Run to the end, or as far as it goes."""
    try:
        colony.begin()
    except Stopped as stopped:
        raise StateError(f"at t = 0 s {stopped.reason}") from stopped.__cause__
    try:
        with watch:
            colony.go(watch)
    except Canceled:
        reason = f"canceled at t = {colony.t:.6g} s"
        return Trajectory(colony.parts(), colony.audit(), "canceled", reason, name)
    except (Stopped, StateError, SizeError) as error:
        time = error.time if isinstance(error, Stopped) else colony.t
        reason = f"the simulation stopped at t = {time:.6g} s: {error}"
        kept = Trajectory(colony.parts(), colony.audit(), "stopped", reason, name)
        raise SimulationError(reason, time, kept) from error.__cause__ or error
    return Trajectory(colony.parts(), colony.audit(), integrator=name)


def _settings(method: type[Integrator], rtol: Any, atol: Any, dt: Any, duration: float) -> Settings:
    positive("rtol", rtol, "units (an error relative to the state)")
    positive("atol", atol, "units (an absolute error of the state)")
    if dt is None:
        step = min(DT, duration) if issubclass(method, FixedStep) else np.inf
    else:
        step = positive("dt", dt, "seconds")
        if step > duration:
            raise StateError(f"dt = {dt:g} s is longer than the duration of {duration:g} s")
    if duration / step > MOST_STEPS:
        raise StateError(
            f"{duration:g} s in steps of dt = {step:g} s are {duration / step:.3g} steps; the most "
            f"is {MOST_STEPS:g}: give dt = {duration / MOST_STEPS:.2g} s or more"
        )
    return Settings(float(rtol), float(atol), step)


def _check_events(
    model: Model, events: Sequence[Event], controller: Any, duration: float, batched: bool
) -> None:
    if model.options is None:
        raise StateError(
            "events change an organism, and this model was not built from one: use "
            "Organism.model(...), without changing its arrays"
        )
    for event in events:
        if not isinstance(event, Event):
            raise StateError(f"events are Dock(...) and Undock(...), got {event!r}")
        if not 0 < event.time < duration:
            raise StateError(
                f"an event at {event.time:g} s lies outside of the run (0 to {duration:g} s)"
            )
    if batched:
        raise StateError("events change one body; they cannot be in a run of many states")
    if not can_follow(controller):
        raise StateError(
            "after an event the body is another one: give the controller a method "
            "rebuilt(model, organism), or pass modurob.sim.PerBody(make)"
        )


def _check_bodies(external: External, colony: Colony) -> None:
    known = colony.body_names()
    for body in external:
        if body not in known:
            raise UnknownNameError(f"no body {body!r} to push: bodies are {choices(sorted(known))}")
