"""From the settings of the Move panel to what a simulation takes: model, start, law, events."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from modurob import Model, ModuleType, Organism, StateError
from modurob.control import CONTROLLERS, OutputFeedback
from modurob.control.references import SetPoint, minimum_jerk
from modurob.distributed.balancing import Fault
from modurob.estimation import ekf_for_sensors
from modurob.gaits import gait_class
from modurob.sim import Dock, Undock
from modurob.studio.settings import NONE, EventRecord, Settings

SAMPLE = 0.005  # [s] between commands, where an estimator or noise needs a clock
WAY = 0.5  # of the run: time to go to the zero pose


def model_options(settings: Settings) -> tuple[str, Any, tuple[float, float, float]]:
    """Hinges, base and gravity as `Organism.model` and `Organism.equations` take them."""
    base = settings.base if settings.base in ("fixed", "free") else settings.base.split(",")
    return settings.hinges, base, (0.0, 0.0, -settings.gravity)


def model_of(organism: Organism, settings: Settings) -> Model:
    """The equations that the settings ask for."""
    return organism.model(*model_options(settings))


def configuration(model: Model, pose: dict[str, float]) -> np.ndarray:
    """(nq,) the pose of the sliders, as far as the model has these joints."""
    q = model.neutral()
    joints = [pose.get(name, 0.0) for name in model.joint_names]
    q[model.nq - len(joints) :] = np.clip(joints, model.lower, model.upper)
    return q


def velocities(model: Model, settings: Settings) -> np.ndarray:
    """(nv,) at the start."""
    v = np.zeros(model.nv)
    v[model.nv - len(model.joint_names) :] = [settings.rates.get(n, 0.0) for n in model.joint_names]
    return v


def reference_of(model: Model, q: np.ndarray, settings: Settings) -> Callable[[float], Any] | None:
    """What the joints shall follow."""
    motion, joints = settings.motion, model.joints_of(q)
    if motion == NONE:
        return None
    if motion == "hold":
        return SetPoint(joints)
    if motion == "zero":
        return minimum_jerk(joints, np.zeros(len(joints)), WAY * settings.duration)
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
    kind = CONTROLLERS[settings.controller]
    options: dict[str, Any] = {}
    if "settling_time" in kind.parameters:
        options["settling_time"] = settings.settling_time
    if settings.torque_limit:
        options["torque_limit"] = settings.torque_limit
    clock = sample_time(settings)
    if clock:
        options["sample_time"] = clock
    law = kind(model, **options)
    if settings.estimator == NONE:
        return law
    return OutputFeedback(law, ekf_for_sensors(model, clock, settings.noise_q, q=q, v=v))


def sample_time(settings: Settings) -> float:
    """Seconds between commands; 0 for a law without a clock."""
    if settings.sample_time:
        return settings.sample_time
    return SAMPLE if settings.estimator != NONE or settings.noisy else 0.0


def dockings(settings: Settings, kinds: dict[str, ModuleType]) -> list[Dock | Undock]:
    """What `simulate` does to the body."""
    found = []
    for record in settings.events:
        if record.is_fault:
            raise StateError(
                f"'{record.what} {record.module}' is for bodies that balance by messages: choose "
                "this motion, or remove the event"
            )
        found.append(_docking(record, kinds))
    return found


def _docking(record: EventRecord, kinds: dict[str, ModuleType]) -> Dock | Undock:
    if record.what == "undock":
        return Undock(record.time, record.module)
    if record.port is None or record.child is None or record.child_port is None:
        raise StateError("a docking needs a port, a name for the new module, and its port")
    kind: Any = record.kind and kinds.get(record.kind, record.kind)
    return Dock(record.time, record.module, record.port, record.child, record.child_port, kind=kind)


def faults(settings: Settings) -> list[Fault]:
    """What happens to modules that balance."""
    if not all(record.is_fault for record in settings.events):
        raise StateError("balancing has no dockings during the run: remove these events")
    return [Fault(record.time, record.module, record.what) for record in settings.events]
