"""Scenarios: a body and its settings as one value that runs, and that a file keeps."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, FiniteFloat, PlainSerializer, PlainValidator, model_validator

from modurob.control import (
    Controller,
    OutputFeedback,
    TrackingController,
    law_class,
    with_scaled_masses,
)
from modurob.control.references import Quintic, SetPoint
from modurob.distributed.balancing import Balanced, Fault, GearedDrive, balance
from modurob.errors import FileError, ModurobError, StateError, choices
from modurob.estimation import ekf_for_sensors
from modurob.gaits import gait_class
from modurob.model import Model
from modurob.modules import ModuleType
from modurob.modules.files import read_document, write_document
from modurob.organism import Organism
from modurob.organism.files import from_document, to_document
from modurob.scenario.bodies import base_of, example
from modurob.scenario.settings import (
    BALANCE,
    GAIT_FIELDS,
    NONE,
    POINTS,
    EventRecord,
    Positive,
    RunSettings,
)
from modurob.sim import Dock, Noise, SimulationError, Trajectory, Undock, simulate

FORMAT, VERSION = "modurob-scenario", 1
SAMPLE_S = 0.005  # between commands, where an estimator or noise needs a clock
LEAST_RTOL = 100 * np.finfo(float).eps  # of SciPy's methods
MOVING = 0.5  # of the run: time of a smooth motion
KNOWN, SENT = "known", "sent"  # channels of a balancing run: errors of the modules, their messages


def _read_organism(value: Any) -> Organism:
    """An organism, from its document or the name of an example if need be."""
    if isinstance(value, Organism):
        return value
    try:
        if isinstance(value, str):
            return example(value).make()
        if isinstance(value, dict):
            return from_document(value, "the organism")
    except ModurobError as error:
        raise ValueError(str(error)) from None
    raise ValueError("must be an Organism, its document, or the name of an example")


if TYPE_CHECKING:
    OrganismField = Organism
else:  # pydantic cannot look into an organism
    OrganismField = Annotated[Any, PlainValidator(_read_organism), PlainSerializer(to_document)]


class Mark(NamedTuple):
    """An event on the timeline of a run. [s]"""

    time: float
    what: str


class RunResult(NamedTuple):
    """The result of a scenario.

    Attributes:
        trajectory: States, torques and recorded channels.
        marks: Events during the run.
        law: The controller; None without one.
        reference: The motion that the joints should have followed; None without one.
        balanced: The balancing run, with its distances and messages; None for other motions.
    """

    trajectory: Trajectory
    marks: Sequence[Mark] = ()
    law: Controller | None = None
    reference: Any = None
    balanced: Balanced | None = None


class Scenario(RunSettings):
    """A run as one value: body, start, motion, controller, events, method.

    It also has the fields of `modurob.scenario.settings.RunSettings`: hinges, base, gravity,
    duration, motion, controller and so on. A field without effect in this run is refused.

    Attributes:
        organism: The body; its document or the name of an example will do.
        name: Of the body, for titles.
        pose: Joint displacements at the start, by joint; zero for joints not named. [rad, m]
        kinds: Module types that events dock, beside those of the catalog.
        record: Seconds between the states that are kept; None for every step. [s]
    """

    format: Literal["modurob-scenario"] = FORMAT
    version: Literal[1] = VERSION
    organism: OrganismField
    name: Annotated[str, Field(max_length=200)] = "organism"
    pose: dict[str, FiniteFloat] = Field(default_factory=dict)
    kinds: tuple[ModuleType, ...] = ()
    record: Positive | None = None

    @model_validator(mode="after")
    def _refuse_fields_without_effect(self) -> Self:
        for field, reason in self.without_effect().items():
            if field in self.model_fields_set:
                raise ValueError(f"{field}: has no effect {reason}; leave it out")
        if self.rtol < LEAST_RTOL:
            raise ValueError(
                f"rtol: {self.rtol:g} is below the rounding errors of a step; the least is "
                f"{LEAST_RTOL:g}"
            )
        return self

    # -- files -----------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a JSON file, with the organism and its datasheets."""
        unused = set(self.without_effect()) | {"format", "version"}
        data = self.model_dump(mode="json", exclude=unused, exclude_defaults=True)
        write_document(path, {"format": FORMAT, "version": VERSION, **data})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Scenario:
        """Read a scenario that `save` wrote."""
        try:
            return cls(**read_document(path, FORMAT, VERSION))
        except StateError as error:
            raise FileError(f"{path}: {error}") from None

    # -- parts of the run ------------------------------------------------------------------------

    def model(self) -> Model:
        """The equations of the body, with the masses that the controller assumes."""
        return model_of(self.organism, self)

    def start(self, model: Model) -> tuple[np.ndarray, np.ndarray]:
        """(nq,), (nv,) the initial state. [rad, m, rad/s, m/s]"""
        q, v, n = model.neutral(), np.zeros(model.nv), len(model.joint_names)
        q[model.nq - n :] = joint_values(model, self.pose)
        v[model.nv - n :] = joint_values(model, self.rates)
        return q, v

    def reference(self, model: Model) -> Callable[[float], Any] | None:
        """The motion that the joints shall follow, as a function of time."""
        joints = joint_values(model, self.pose)
        if self.motion in (NONE, BALANCE):
            return None
        if self.motion == "hold":
            return SetPoint(joints)
        goal = joint_values(model, self.target)
        if self.motion == "step":
            return SetPoint(goal)
        if self.motion in ("zero", "quintic"):
            return Quintic(joints, goal, MOVING * self.duration)
        return self._gait(model)

    def _gait(self, model: Model) -> Any:
        kind = gait_class(self.motion)
        known = kind.parameters()
        given: dict[str, Any] = {"frequency": self.frequency, "ramp": self.ramp}
        given = {name: value for name, value in given.items() if name in known}
        for name in self.gait:
            if name not in known or name in GAIT_FIELDS:
                own = [each for each in known if each not in GAIT_FIELDS]
                raise StateError(f"gait: no {name!r} in {self.motion}: it has {choices(own)} there")
        given |= self.gait

        def gait(amplitude: Any = None) -> Any:
            if kind.random:
                given["rng"] = np.random.default_rng(self.seed)
            return kind.for_model(model, amplitude=amplitude, **given)

        # the default swings half the way to the limits: amplitude is a part of the whole way
        return gait(np.asarray(gait().amplitude) * 2 * self.amplitude)

    def law(self, model: Model) -> Controller | None:
        """The controller of the joints; None lets the body move by itself."""
        if self.controller == NONE:
            return None
        kind = law_class(self.controller)
        for field in ("poles", *self.gains):
            if field not in kind.parameters and (field != "poles" or self.poles):
                raise StateError(
                    f"{field}: {self.controller} takes {choices(kind.parameters)} in place of it"
                )
        options: dict[str, Any] = {"delay": self.torque_delay, **self.gains}
        if self.poles:
            pairs = len(self.poles) > 2 and len(self.poles) % 2 == 0
            options["poles"] = np.reshape(self.poles, (-1, 2)) if pairs else self.poles
        elif "settling_time" in kind.parameters and not self.gains:
            options["settling_time"] = self.settling_time
        if "set_point" in kind.parameters and self.motion in POINTS:
            options["set_point"] = joint_values(model, self.target)
        if self.torque_limit:
            options["torque_limit"] = self.torque_limit
        if self.clock:
            options["sample_time"] = self.clock
        return kind(model, **options)

    @property
    def clock(self) -> float:
        """Seconds between commands; 0 for a law that acts continuously. [s]"""
        return self.sample_time or (SAMPLE_S if self.estimator != NONE or self.noisy else 0.0)

    def _dockings(self) -> list[Dock | Undock]:
        kinds = {kind.name: kind for kind in self.kinds}
        for record in self.events:
            if record.is_fault:
                raise StateError(
                    f"'{record.what} {record.module}' is for bodies that balance by messages: "
                    "choose this motion, or remove the event"
                )
        if self.events and self.masses != 1:
            raise StateError("masses: a body that events change has the masses of its datasheets")
        return [_docking(record, kinds) for record in self.events]

    # -- running ---------------------------------------------------------------------------------

    def run(self, *, partial: bool = False, progress: Any = False) -> RunResult:
        """Simulate it.

        Args:
            partial: Whether a run that stops early is returned as far as it came, with the status
                ``stopped``, in place of a `SimulationError`.
            progress: True for a bar on standard error, or a function of the fraction done.
        """
        model = self.model()
        if not model.nv:
            raise StateError(
                "this body has no joint that can move: every one is locked. Choose other hinges, "
                "or see the reasons in model.locked"
            )
        if self.motion == BALANCE:
            return self._balanced(model, progress)
        return self._simulated(model, partial, progress)

    def _simulated(self, model: Model, partial: bool, progress: Any) -> RunResult:
        if self.controller == NONE and self.estimator != NONE:
            raise StateError("an estimator works with a controller: choose one, or no estimator")
        if self.controller == NONE and self.noisy:
            raise StateError("noise acts on what a controller sees and does: choose a controller")
        q, v = self.start(model)
        reference, law = self.reference(model), self.law(model)
        rng = np.random.default_rng(self.seed) if self.random else None
        loop: Any = law
        if law is not None and self.estimator != NONE:
            first = q.copy()
            if self.noise_q and rng is not None:  # the filter starts with a first measurement
                n = len(model.joint_names)
                first[model.nq - n :] += self.noise_q * rng.standard_normal(n)
            filter_ = ekf_for_sensors(model, self.clock, self.noise_q, q=first, v=v)
            loop = OutputFeedback(law, filter_)
        if law is not None and reference is not None:
            loop = TrackingController(loop, reference)
        plant: Any = model if self.masses == 1 else with_scaled_masses(model, self.masses)
        if self.analytic:
            if self.masses != 1:
                raise StateError("masses: formulas have those of the datasheets; leave masses out")
            plant = self.organism.equations(*model_options(self), symbols="none")
        try:
            trajectory = simulate(
                plant,
                q,
                v,
                self.duration,
                controller=loop,
                integrator=self.integrator,
                rtol=self.rtol,
                dt=self.dt,
                events=self._dockings(),
                rng=rng if self.noisy else None,
                noise=Noise(self.noise_q, self.noise_v, self.noise_tau) if self.noisy else None,
                stops=self.stops,
                record=self.record,
                organism=self.organism,
                progress=progress,
            )
        except SimulationError as error:
            if not partial:
                raise
            trajectory = error.trajectory
        marks = [Mark(entry.time, entry.what) for entry in trajectory.audit]
        return RunResult(trajectory, marks, law, reference if law is not None else None)

    def _balanced(self, model: Model, progress: Any) -> RunResult:
        if self.hinges != "physical" or self.base != "fixed":
            raise StateError("balancing is for physical hinges on a fixed base: choose both")
        if not all(record.is_fault for record in self.events):
            raise StateError("balancing has no dockings during the run: remove these events")
        faults = [Fault(record.time, record.module, record.what) for record in self.events]
        run = balance(
            self.organism,
            self.balancing_law,
            q0=self.start(model)[0],
            duration=self.duration,
            drive=GearedDrive(friction=self.drive_friction),
            loss=self.loss,
            delay=self.delay,
            faults=faults,
            stuck=self.stuck,
            gravity=self.gravity,
            rng=np.random.default_rng(self.seed),
            progress=progress or None,
            **({} if self.record is None else {"record": self.record}),
        )
        channels = {**run.channels, KNOWN: run.estimate_errors, SENT: run.sent}
        part = replace(run.parts[0], channels=channels)
        marks = [Mark(fault.time, f"{fault.kind} {fault.module}") for fault in faults]
        run = replace(run, parts=(part,))
        return RunResult(run, marks, balanced=run)


def model_options(settings: RunSettings) -> tuple[Any, ...]:
    """Hinges, base, gravity and locks as `Organism.model` and `Organism.equations` take them."""
    down = (0.0, 0.0, -settings.gravity)
    return settings.hinges, base_of(settings.base), down, settings.locked


def model_of(organism: Organism, settings: RunSettings) -> Model:
    """The equations that the settings ask for."""
    return organism.model(*model_options(settings))


def joint_values(model: Model, values: dict[str, float]) -> np.ndarray:
    """(n,) numbers by joint in the order of the model; zero for joints not named."""
    numbers = np.zeros(len(model.joint_names))
    for joint, value in values.items():
        numbers[model.joint_index(joint)] = value
    return numbers


def _docking(record: EventRecord, kinds: dict[str, ModuleType]) -> Dock | Undock:
    if record.what == "undock":
        return Undock(record.time, record.module)
    if record.port is None or record.child is None or record.child_port is None:
        raise StateError("a docking needs a port, a name for the new module, and its port")
    kind: Any = record.kind and kinds.get(record.kind, record.kind)
    return Dock(record.time, record.module, record.port, record.child, record.child_port, kind=kind)
