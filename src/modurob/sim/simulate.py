"""`simulate`: the entry of every run."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import generator, positive
from modurob.dynamics import common_batch, cpu_model
from modurob.errors import SizeError, StateError, UnknownNameError, choices
from modurob.model import Model
from modurob.model.validation import same_numbers
from modurob.organism import Organism
from modurob.sim.actuation import Noise
from modurob.sim.mujoco_engine import MujocoStep, mujoco_method
from modurob.sim.reconfiguration.events import Event
from modurob.sim.reconfiguration.multi_body_run import MultiBodyRun
from modurob.sim.recorder import record_times, row_bytes
from modurob.sim.run import Run, Setup
from modurob.sim.trajectory import SimulationError, Trajectory
from modurob.stepping import (
    INTEGRATORS,
    FixedStep,
    Ground,
    Integrator,
    StepSettings,
    integrator_class,
)
from modurob.stepping.base import check_step_count
from modurob.stepping.motion import External, Stopped
from modurob.stepping.stops import LinearStops, Stops

if TYPE_CHECKING:
    from modurob.symbolic import Equations

ENGINES = ("modurob", "mujoco")
DEFAULT_DT_S = 1e-3  # step of fixed-step methods: some hundred steps a swing of a cube
REPORT_PERIOD_S = 0.05  # between two reports of progress; a bar need not be smoother


def simulate(
    model: Model | Equations,
    q0: ArrayLike | None,
    v0: ArrayLike | None,
    duration: float,
    controller: Any = None,
    integrator: str | type[Integrator] | None = None,
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
    wrench_sensors: bool = False,
    stops: bool | Stops | LinearStops = False,
    ground: Ground | None = None,
    record: float | ArrayLike | None = None,
    organism: Organism | None = None,
    cancel: Any = None,
    engine: str = "modurob",
) -> Trajectory:
    """Simulate the motion of a body.

    Args:
        model: Its equations; `Model.compile` it first when many states or long runs are ahead. With
            `Organism.equations` the accelerations come from the closed forms.
        q0, v0: (..., nq), (..., nv) initial state or states; None is the neutral pose, and rest.
            Integrators with `batches` (RK4, SemiImplicitEuler) take any batch shape.
        duration: [s]
        controller: ``f(t, q, v) -> tau (..., nv)``, an object with ``command(t, q, v, reference)``
            (see `modurob.sim.actuation`), or None.
        integrator: RK45 (the default), DOP853, LSODA, Radau and BDF are SciPy's, with dense output;
            RK4, SemiImplicitEuler (the default on the ground) and Variational take equal steps. Or
            a class of your own. With MuJoCo one of its own: implicitfast (the default), implicit,
            Euler or RK4.
        rtol, atol: Errors that adaptive methods allow in each step.
        dt: Step of the others (1 ms by default), and the largest step of adaptive ones. [s]
        events: `Dock` and `Undock`; the model must be one of an `Organism`.
        rng: For `noise`.
        progress: True for a bar on standard error, or a function of the fraction done.
        reference: Handed to the controller: a function of time, or anything else as it is.
        sample_time: Ask the controller only so often, and hold its torque. [s]
        noise: On measurements and torques of the controller; new at each sample.
        external: Wrenches (6,) on bodies, in the bodies' frames, or functions of time.
        wrench_sensors: Whether the controller has these wrenches and those of contacts, as its
            argument `external`.
        stops: True for smooth stops at the joint limits, or `Stops` or `LinearStops`.
        ground: That bodies stand and slide on; its forces are in the channel "contact".
        record: Seconds between the states that are kept, or the times; every step by default.
        organism: The body that `model` belongs to; by default the one it was built from.
        cancel: A function or `threading.Event`; when true, the run ends with what it has.
        engine: ``modurob``, or ``mujoco`` for its contacts, also between the bodies of an organism.

    Raises:
        SimulationError: The run diverged, the controller raised or a docking was missed; the
            error holds the time and the trajectory until then.
        SizeError: What would be recorded does not fit into memory.
    """
    if not isinstance(stops, bool | Stops | LinearStops):
        raise StateError(f"stops is True, False or a modurob.sim.Stops, got {stops!r}")
    if not (ground is None or isinstance(ground, Ground)):
        raise StateError(f"ground is a modurob.Ground, got {type(ground).__name__}")
    if engine not in ENGINES:
        raise UnknownNameError(f"no engine {engine!r}: engines are {choices(ENGINES)}")
    if engine == "mujoco":
        method = mujoco_method(integrator, stops, ground)
    else:
        method = integrator_class(integrator, ground is not None)
    model = _numeric(model, method, events, ground)
    q, v = _initial_state(model, q0, v0)
    length = positive("duration", duration, "seconds")
    settings = _settings(method, rtol, atol, dt, length)
    if q.ndim > 1 and not method.batches:
        some = " or ".join(name for name, each in INTEGRATORS.items() if each.batches)
        raise StateError(f"{method.name} takes one state; for a batch of {q.shape[:-1]} use {some}")
    if noise is not None and not isinstance(noise, Noise):
        raise StateError(f"noise is a modurob.sim.Noise, got {type(noise).__name__}")
    if noise is not None:
        generator(rng, "noise")
    if not isinstance(wrench_sensors, bool):
        raise StateError(f"wrench_sensors is True or False, got {wrench_sensors!r}")
    size = row_bytes(math.prod(q.shape[:-1]), model.nq, model.nv)
    setup = Setup(
        method=method,
        settings=settings,
        duration=length,
        record=record_times(record, length, size),
        reference=reference,
        sample_time=sample_time,
        noise=noise,
        rng=rng,
        stops=Stops() if stops is True else stops or None,
        external=dict(external or {}),
        wrench_sensors=wrench_sensors,
        ground=ground,
    )
    organism = _origin(model, organism)
    if events:
        _check_events(model, events, controller, length, q.ndim > 1)
    law = controller
    if not hasattr(law, "command") and hasattr(law, "rebuilt"):
        law = law.rebuilt(model, organism)
    first = Run(setup, model, law, 0.0, q, v, organism)
    bodies = MultiBodyRun(setup, first, controller, tuple(events))
    for body in setup.external:
        if body not in bodies.body_names:
            known = choices(sorted(bodies.body_names))
            raise UnknownNameError(f"no body {body!r} to push: bodies are {known}")
    return _finished(bodies, Progress(length, progress, cancel), method.name)


def _numeric(
    given: Any, method: type[Integrator], events: Sequence[Event], ground: Ground | None
) -> Model:
    """The model itself, or that of a run with closed forms."""
    if not hasattr(given, "as_model"):
        return cpu_model("simulate", given)
    if events:
        raise StateError("events change the body and its equations: give a model, not equations")
    if ground is not None:
        raise StateError("formulas have no ground: give a model, not equations")
    if issubclass(method, MujocoStep):
        raise StateError("engine 'mujoco' has equations of its own: give it a model, not equations")
    if method.name == "Variational":
        raise StateError("Variational steps from M and its derivatives: give it a model")
    return given.as_model()


def _finished(bodies: MultiBodyRun, progress: Progress, name: str) -> Trajectory:
    """Run to the end, or as far as it goes."""
    try:
        bodies.begin()
    except Stopped as stopped:
        raise StateError(f"at t = 0 s {stopped.reason}") from stopped.__cause__
    try:
        with progress:
            bodies.go(progress)
    except RunCanceled:
        reason = f"canceled at t = {bodies.t:.6g} s"
        return Trajectory(bodies.parts(), tuple(bodies.reports), "canceled", reason, name)
    except (Stopped, StateError, SizeError) as error:
        time = error.time if isinstance(error, Stopped) else bodies.t
        reason = f"the simulation stopped at t = {time:.6g} s: {error}"
        kept = Trajectory(bodies.parts(), tuple(bodies.reports), "stopped", reason, name)
        raise SimulationError(reason, time, kept) from error.__cause__ or error
    return Trajectory(bodies.parts(), tuple(bodies.reports), integrator=name)


def _settings(
    method: type[Integrator], rtol: Any, atol: Any, dt: Any, duration: float
) -> StepSettings:
    positive("rtol", rtol, "units (an error relative to the state)")
    positive("atol", atol, "units (an absolute error of the state)")
    if dt is None:
        step = min(DEFAULT_DT_S, duration) if issubclass(method, FixedStep) else np.inf
    else:
        step = positive("dt", dt, "seconds")
        if step > duration:
            raise StateError(f"dt = {dt:g} s is longer than the duration of {duration:g} s")
    check_step_count(duration, step)
    return StepSettings(float(rtol), float(atol), step)


def _origin(model: Model, given: Organism | None) -> Organism | None:
    """The organism of a model: the given one, if it fits, else the one it was built from."""
    if given is None or given is model.organism:
        return model.organism
    if not isinstance(given, Organism):
        raise StateError(f"organism must be an Organism, got {type(given).__name__}")
    fits = set(given.modules) == set(model.modules)
    if fits and model.options is not None:
        fits = same_numbers(model.options.build(given), model)
    if not fits:
        raise StateError("organism is not the one that the model was built from")
    return given


def _check_events(
    model: Model, events: Sequence[Event], controller: Any, duration: float, batched: bool
) -> None:
    if model.options is None:
        raise StateError(
            "events change an organism, and this model was not built from one: use "
            "Organism.model(...), without changing its arrays"
        )
    if not isinstance(events, Sequence):
        raise StateError(f"events is a list of Dock(...) and Undock(...), got {events!r}")
    for event in events:
        if not isinstance(event, Event):
            raise StateError(f"events are Dock(...) and Undock(...), got {event!r}")
        if not 0 < event.time < duration:
            raise StateError(
                f"an event at {event.time:g} s lies outside of the run (0 to {duration:g} s)"
            )
    if batched:
        raise StateError("events change one body; they cannot be in a run of many states")
    if not (controller is None or hasattr(controller, "rebuilt")):
        raise StateError(
            "after an event the body is another one: give the controller a method "
            "rebuilt(model, organism), or pass modurob.sim.PerBody(make)"
        )


def _initial_state(
    model: Model, q0: ArrayLike | None, v0: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray]:
    """q (..., nq) and v (..., nv) of one batch shape, as contiguous arrays of our own."""
    q = model.check_configuration(model.neutral() if q0 is None else q0)
    v = model.check_velocity(np.zeros(model.nv) if v0 is None else v0, "v0")
    batch = common_batch([q.shape[:-1], v.shape[:-1]], "q0 and v0")
    q, v = (np.array(np.broadcast_to(x, (*batch, x.shape[-1]))) for x in (q, v))
    return q, v


class RunCanceled(Exception):
    """End of a run on request."""


class Progress:
    """Progress monitor of a run, which also asks whether to go on.

    Args:
        duration: Of the run. [s]
        progress: True for a bar on standard error, or a function of the fraction that is done.
        cancel: A function without arguments, or a `threading.Event`; True ends the run.
    """

    def __init__(self, duration: float, progress: Any, cancel: Any) -> None:
        if not (isinstance(progress, bool) or callable(progress)):
            raise StateError(f"progress is True, False or a function, got {progress!r}")
        asked = getattr(cancel, "is_set", cancel)
        if not (asked is None or callable(asked)):
            raise StateError(f"cancel is a function or a threading.Event, got {cancel!r}")
        self._duration, self._cancel, self._next = duration, asked, 0.0
        self._report: Callable[[float], Any] | None = progress if callable(progress) else None
        self._with_bar, self._open = progress is True, ExitStack()

    def __enter__(self) -> Progress:
        if self._with_bar:
            self._report = self._bar()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def __call__(self, t: float) -> None:
        """Report a time after a step; raises `RunCanceled`."""
        if self._cancel is not None and self._cancel():
            raise RunCanceled
        if self._report is not None:
            now = time.monotonic()
            if now >= self._next or t >= self._duration:
                self._next = now + REPORT_PERIOD_S
                self._report(min(1.0, t / self._duration))

    def _bar(self) -> Callable[[float], Any]:
        """Open a bar with the simulated time on standard error; it vanishes at the end."""
        from rich import progress
        from rich.console import Console

        console, text = Console(stderr=True), progress.TextColumn
        columns = (
            text("simulating"), progress.BarColumn(),
            text("{task.completed:.2f} of {task.total:g} s"), progress.TimeRemainingColumn(),
        )  # fmt: skip
        # nothing in a log file
        bar = progress.Progress(
            *columns, console=console, transient=True, disable=not console.is_terminal
        )
        task = self._open.enter_context(bar).add_task("simulating", total=self._duration)
        return lambda done: bar.update(task, completed=done * self._duration)
