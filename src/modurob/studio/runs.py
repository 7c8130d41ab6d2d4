"""Runs: from the settings of the Move panel to a trajectory, in a process of its own."""

from __future__ import annotations

import inspect
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from modurob import Model, ModuleType, Organism, StateError, Trajectory, simulate
from modurob.control import CONTROLLERS, Following, OutputFeedback
from modurob.control.references import SetPoint, minimum_jerk
from modurob.distributed import balance
from modurob.errors import choices
from modurob.estimation import Ekf
from modurob.gaits import GAITS, gait_class
from modurob.modules.files import write_file
from modurob.organism.files import from_document
from modurob.sim import Dock, Noise, Part, SimulationError, Undock
from modurob.studio import looks, signals
from modurob.studio.settings import NONE, EventRecord, RunRecord, Settings

FRAME = 0.01  # [s] between recorded states
MOST_FRAMES = 4000  # of a run; longer runs are recorded more coarsely
SAMPLE = 0.005  # [s] between commands, where an estimator or noise needs a clock
LEAST_NOISE = 1e-4  # standard deviation that an estimator assumes at least [rad, m]
WAY = 0.5  # of the run: time to go to the zero pose
BALANCE = "balance"  # by messages between modules
MOTIONS = ("hold", "zero", BALANCE, *GAITS)
LAWS = {name: law.name for name, law in CONTROLLERS.items()}


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
    if settings.motion == BALANCE:
        return "balance by messages"
    law = "no controller" if settings.controller == NONE else LAWS[settings.controller]
    words = [law, "free motion" if settings.motion == NONE else settings.motion]
    if settings.estimator != NONE:
        words.append("EKF")
    if settings.events:
        words.append(f"{len(settings.events)} event{'s'[: len(settings.events) != 1]}")
    return ", ".join(words)


def model_of(organism: Organism, settings: Settings) -> Model:
    """The equations that the settings ask for."""
    base = settings.base
    chosen = base if base in ("fixed", "free") else base.split(",")
    return organism.model(settings.hinges, chosen, (0.0, 0.0, -settings.gravity))


def start(model: Model, pose: dict[str, float], settings: Settings) -> tuple[Any, Any]:
    """(nq,), (nv,) state at the start."""
    q, v = model.neutral(), np.zeros(model.nv)
    n = len(model.joint_names)
    joints = [pose.get(name, 0.0) for name in model.joint_names]
    q[model.nq - n :] = np.clip(joints, model.lower, model.upper)
    v[model.nv - n :] = [settings.rates.get(name, 0.0) for name in model.joint_names]
    return q, v


def reference_of(model: Model, q: np.ndarray, settings: Settings) -> Callable[[float], Any] | None:
    """What the joints shall follow."""
    motion, joints = settings.motion, model.joints_of(q)
    if motion == NONE:
        return None
    if motion == "hold":
        return SetPoint(joints)
    if motion == "zero":
        return minimum_jerk(joints, np.zeros(len(joints)), WAY * settings.duration)
    if motion not in GAITS:
        raise StateError(f"no motion '{motion}': motions are {choices((NONE, *MOTIONS))}")
    kind = gait_class(motion)
    full = kind.for_model(model, **_gait_settings(kind, settings))
    # the default swings half the way to the limits: amplitude is a part of the whole way
    swing = np.asarray(full.amplitude) * 2 * settings.amplitude
    return kind.for_model(model, amplitude=swing, **_gait_settings(kind, settings))


def _gait_settings(kind: Any, settings: Settings) -> dict[str, Any]:
    known = inspect.signature(kind).parameters
    wanted = {
        "frequency": settings.frequency,
        "ramp": settings.ramp,
        "rng": np.random.default_rng(settings.seed),
    }
    return {name: value for name, value in wanted.items() if name in known}


def controller_of(model: Model, q: np.ndarray, v: np.ndarray, settings: Settings) -> Any:
    """The law with its estimator; None lets the body move by itself."""
    if settings.controller == NONE:
        if settings.estimator != NONE:
            raise StateError("an estimator works with a controller: choose one, or no estimator")
        return None
    if settings.controller not in CONTROLLERS:
        raise StateError(f"no controller '{settings.controller}': {choices(CONTROLLERS)}")
    kind = CONTROLLERS[settings.controller]
    options: dict[str, Any] = {}
    known = {
        name for cls in kind.__mro__ if "__init__" in vars(cls)
        for name in inspect.signature(cls.__init__).parameters
    }  # fmt: skip
    if "settling_time" in known:
        options["settling_time"] = settings.settling_time
    if settings.torque_limit:
        options["torque_limit"] = settings.torque_limit
    clock = sample_time(settings)
    if clock:
        options["sample_time"] = clock
    law = kind(model, **options)
    if settings.estimator == NONE:
        return law
    sigma = max(settings.noise_q, LEAST_NOISE)
    sure = max(settings.noise_tau, 1e-3)
    noise = np.concatenate([np.full(model.nv, 1e-10), np.full(model.nv, (sure * clock * 50) ** 2)])
    return OutputFeedback(law, Ekf(model, clock, Q=noise, R=sigma**2, q=q, v=v, P=sigma**2))


def sample_time(settings: Settings) -> float:
    """Seconds between commands; 0 for a law without a clock."""
    noisy = settings.noise_q or settings.noise_v or settings.noise_tau
    if settings.sample_time:
        return settings.sample_time
    return SAMPLE if settings.estimator != NONE or noisy else 0.0


def event_of(record: EventRecord, kinds: dict[str, ModuleType]) -> Any:
    """A docking or an undocking for `simulate`."""
    if record.what == "undock":
        return Undock(record.time, record.module)
    if record.port is None or record.child is None or record.child_port is None:
        raise StateError("a docking needs a port, a name for the new module, and its port")
    kind: Any = record.kind and kinds.get(record.kind, record.kind)
    return Dock(record.time, record.module, record.port, record.child, record.child_port, kind=kind)


def perform(request: Request, progress: Callable[[float], Any]) -> RunRecord:
    """Simulate, and write ``N.npz`` (everything), ``N.bin`` and ``N.json`` (for the browser).

    A run that stops early is a run too: its record says why.
    """
    settings, begin = request.settings, time.perf_counter()
    organism = from_document(request.organism, "the organism")
    if settings.motion == BALANCE:
        trajectory = balanced(organism, request.pose, settings, lambda done: progress(0.9 * done))
        write(request, trajectory, None)
        progress(1.0)
        return _record(request, trajectory, "finished", "", time.perf_counter() - begin)
    model = model_of(organism, settings)
    if not model.nv:
        raise StateError(
            "this body has no joint that can move: every one is locked. Look under Understand for "
            "the reasons, or choose other hinges."
        )
    q, v = start(model, request.pose, settings)
    reference = reference_of(model, q, settings)
    law = controller_of(model, q, v, settings)
    if law is not None and reference is not None:
        law = Following(law, reference)
    noise = Noise(settings.noise_q, settings.noise_v, settings.noise_tau)
    noisy = bool(settings.noise_q or settings.noise_v or settings.noise_tau)
    if noisy and law is None:
        raise StateError("noise acts on what a controller sees and does: choose a controller")
    kinds = {kind.name: kind for kind in (ModuleType(**data) for data in request.kinds)}
    fixed = settings.integrator in ("RK4", "SemiImplicitEuler", "Variational")
    status, message = "finished", ""
    try:
        trajectory = simulate(
            model,
            q,
            v,
            settings.duration,
            controller=law,
            integrator=settings.integrator,
            rtol=settings.rtol,
            dt=settings.dt if fixed else None,
            events=[event_of(record, kinds) for record in settings.events],
            rng=np.random.default_rng(settings.seed) if noisy else None,
            noise=noise if noisy else None,
            stops=settings.stops,
            record=max(FRAME, settings.duration / MOST_FRAMES),
            organism=organism,
            progress=lambda done: progress(0.9 * done),
        )
    except SimulationError as error:
        trajectory, status = error.trajectory, "stopped"
        message = f"{error}. {advice(str(error))}"
    write(request, trajectory, reference if law is not None else None)
    progress(1.0)
    return _record(request, trajectory, status, message, time.perf_counter() - begin)


def _record(
    request: Request, trajectory: Trajectory, status: str, message: str, took: float
) -> RunRecord:
    return RunRecord(
        number=request.number,
        title=request.title,
        status=status,  # pyright: ignore[reportArgumentType]
        message=message[:2000],
        seconds=max(float(part.t[-1]) for part in trajectory.parts),
        took=took,
        settings=request.settings,
    )


def balanced(
    organism: Organism, pose: dict[str, float], settings: Settings, progress: Callable[[float], Any]
) -> Trajectory:
    """Modules that balance by messages; what each takes for the center is recorded beside it."""
    if settings.hinges != "physical" or settings.base != "fixed":
        raise StateError("balancing is for physical hinges on a fixed base: choose both above")
    if settings.events:
        raise StateError("balancing has no dockings during the run: remove the events")
    model = model_of(organism, settings)
    run = balance(
        organism,
        q0=start(model, pose, settings)[0],
        duration=settings.duration,
        gravity=settings.gravity,
        record=max(FRAME, settings.duration / MOST_FRAMES),
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
    return Trajectory((part,), integrator="balance")


def advice(reason: str) -> str:
    """What to try when a run stopped."""
    if "diverged" in reason or "finite" in reason or "step" in reason:
        return (
            "Try a smaller step or tolerance, a longer settling time, or a torque limit; what was "
            "computed until then is kept."
        )
    return "What was computed until then is kept."


def write(request: Request, trajectory: Trajectory, reference: Any) -> None:
    """The files of a run."""
    request.folder.mkdir(parents=True, exist_ok=True)
    stem = request.folder / str(request.number)
    trajectory.save(stem.with_suffix(".npz"))
    write_file(stem.with_suffix(".bin"), trajectory.to_bytes())
    write_file(stem.with_suffix(".json"), _browser_data(trajectory, reference))


def _browser_data(trajectory: Trajectory, reference: Any) -> bytes:
    casts = []
    for part in trajectory.parts:
        assert part.organism is not None
        casts.append(looks.cast(part.organism, part.model))
    data = {
        "casts": casts,
        "panels": signals.panels(trajectory, reference),
        "mass": signals.center_of_mass(trajectory),
        "known": signals.knowledge(trajectory),
        "events": [{"time": each.time, "what": each.what} for each in trajectory.audit],
    }
    return json.dumps(_finite(data), allow_nan=False, separators=(",", ":")).encode()


def _finite(value: Any) -> Any:
    """Numbers that JSON has; what is not finite becomes a gap in a line."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
