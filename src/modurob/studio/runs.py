"""Runs: from the settings of the Move panel to a trajectory, in a process of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from modurob import Model, ModuleType, Organism, StateError, Trajectory, simulate
from modurob.control import CONTROLLERS, TrackingController
from modurob.distributed import balance
from modurob.distributed.balancing import Drive
from modurob.organism.files import from_document
from modurob.sim import Noise, Part, SimulationError
from modurob.studio import ingredients, recording, signals
from modurob.studio.recording import Mark
from modurob.studio.settings import BALANCE, NONE, RunRecord, Settings

FRAME = 0.01  # [s] between recorded states
MOST_FRAMES = 4000  # of a run; longer runs are recorded more coarsely
FIXED_STEP = ("RK4", "SemiImplicitEuler", "Variational")


class Request(NamedTuple):
    """What a process needs to run: plain data, so that it can travel.

    Attributes:
        organism: Its document.
        kinds: Documents of the user's own modules.
        pose: Where the joints start. [rad, m]
        folder: For the run's files.
    """

    organism: dict[str, Any]
    kinds: list[dict[str, Any]]
    pose: dict[str, float]
    settings: Settings
    folder: Path
    number: int
    title: str


def title(settings: Settings) -> str:
    """A run in a few words."""
    words = ["balance by messages", f"{settings.balancing_law} law"]
    if settings.loss:
        words.append(f"{100 * settings.loss:.3g} % lost")
    if settings.motion == BALANCE:
        return _titled(words, settings)
    law = "no controller" if settings.controller == NONE else CONTROLLERS[settings.controller].name
    words = [law, "free motion" if settings.motion == NONE else settings.motion]
    if settings.estimator != NONE:
        words.append("EKF")
    return _titled(words, settings)


def _titled(words: list[str], settings: Settings) -> str:
    count = len(settings.events)
    return ", ".join([*words, f"{count} event{'s'[: count != 1]}"] if count else words)


class Outcome(NamedTuple):
    """What came out.

    Attributes:
        marks: What happened on the way, for the timeline.
        reference: What the joints should have followed; None for nothing.
        message: Why it stopped early; empty when it did not.
    """

    trajectory: Trajectory
    marks: Sequence[Mark]
    reference: Any = None
    message: str = ""


def perform(request: Request, progress: Callable[[float], Any]) -> RunRecord:
    """Simulate, and write the files of the run.

    A run that stops early is a run too: its record says why.
    """
    begin = time.perf_counter()
    organism = from_document(request.organism, "the organism")
    model = ingredients.model_of(organism, request.settings)
    if not model.nv:
        raise StateError(
            "this body has no joint that can move: every one is locked. Look under Understand for "
            "the reasons, or choose other hinges."
        )
    compute = balanced if request.settings.motion == BALANCE else simulated
    found = compute(request, organism, model, lambda done: progress(0.9 * done))
    recording.write(request.folder, request.number, found.trajectory, found.reference, found.marks)
    progress(1.0)
    return RunRecord(
        number=request.number,
        title=request.title,
        status="stopped" if found.message else "finished",
        message=found.message[:2000],
        seconds=max(float(part.t[-1]) for part in found.trajectory.parts),
        took=time.perf_counter() - begin,
        settings=request.settings,
    )


def simulated(
    request: Request, organism: Organism, model: Model, progress: Callable[[float], Any]
) -> Outcome:
    """A body with or without a controller."""
    settings = request.settings
    q = ingredients.configuration(model, request.pose)
    v = ingredients.velocities(model, settings)
    reference = ingredients.reference_of(model, q, settings)
    law = ingredients.controller_of(model, q, v, settings)
    if law is not None and reference is not None:
        law = TrackingController(law, reference)
    if settings.noisy and law is None:
        raise StateError("noise acts on what a controller sees and does: choose a controller")
    noise = Noise(settings.noise_q, settings.noise_v, settings.noise_tau)
    kinds = {kind.name: kind for kind in (ModuleType(**data) for data in request.kinds)}
    message = ""
    try:
        trajectory = simulate(
            model,
            q,
            v,
            settings.duration,
            controller=law,
            integrator=settings.integrator,
            rtol=settings.rtol,
            dt=settings.dt if settings.integrator in FIXED_STEP else None,
            events=ingredients.dockings(settings, kinds),
            rng=np.random.default_rng(settings.seed) if settings.noisy else None,
            noise=noise if settings.noisy else None,
            stops=settings.stops,
            record=_record_step(settings),
            organism=organism,
            progress=progress,
        )
    except SimulationError as error:
        trajectory = error.trajectory
        message = f"{error}. {advice(str(error))}"
    marks = [Mark(entry.time, entry.what) for entry in trajectory.audit]
    return Outcome(trajectory, marks, reference if law is not None else None, message)


def balanced(
    request: Request, organism: Organism, model: Model, progress: Callable[[float], Any]
) -> Outcome:
    """Modules that balance by messages; what each knows and sends is recorded beside it."""
    settings = request.settings
    if settings.hinges != "physical" or settings.base != "fixed":
        raise StateError("balancing is for physical hinges on a fixed base: choose both above")
    faults = ingredients.faults(settings)
    run = balance(
        organism,
        settings.balancing_law,
        q0=ingredients.configuration(model, request.pose),
        duration=settings.duration,
        drive=Drive(friction=settings.drive_friction),
        loss=settings.loss,
        delay=settings.delay,
        faults=faults,
        gravity=settings.gravity,
        record=_record_step(settings),
        rng=np.random.default_rng(settings.seed),
        progress=progress,
    )
    part = Part(
        name=organism.base,
        model=run.model,
        organism=organism,
        t=run.t,
        q=run.q,
        v=run.v,
        tau=run.tau,
        channels={signals.KNOWN: run.estimate_errors, signals.SENT: run.sent},
        _accelerations=lambda: np.gradient(run.v, run.t, axis=0),
    )
    marks = [Mark(fault.time, f"{fault.kind} {fault.module}") for fault in faults]
    return Outcome(Trajectory((part,), integrator="balance"), marks)


def _record_step(settings: Settings) -> float:
    return max(FRAME, settings.duration / MOST_FRAMES)


def advice(reason: str) -> str:
    """What to try when a run stopped."""
    if "diverged" in reason or "finite" in reason or "step" in reason:
        return (
            "Try a smaller step or tolerance, a longer settling time, or a torque limit; what was "
            "computed until then is kept."
        )
    return "What was computed until then is kept."
