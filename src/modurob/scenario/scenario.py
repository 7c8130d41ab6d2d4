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
    with_payload,
    with_scaled_masses,
)
from modurob.control.references import Quintic, SetPoint
from modurob.distributed.balancing.faults import Fault
from modurob.distributed.balancing.plant import GearedDrive
from modurob.distributed.balancing.result import Balanced
from modurob.distributed.balancing.run import balance
from modurob.distributed.bus import motions
from modurob.errors import FileError, ModurobError, StateError, choices
from modurob.estimation import ekf_for_sensors
from modurob.gaits import gait_class
from modurob.model import Model
from modurob.modules import ModuleType
from modurob.modules.files import read_document, write_document
from modurob.organism import Organism
from modurob.organism.files import from_document, to_document
from modurob.reference import Reference
from modurob.scenario.bodies import base_of, example
from modurob.scenario.settings import (
    BALANCE,
    GAIT_FIELDS,
    NONE,
    PATHS,
    POINTS,
    SMOOTH,
    TIME,
    EventRecord,
    Positive,
    PushRecord,
    RunSettings,
)
from modurob.sim import Dock, Noise, SimulationError, Trajectory, Undock, simulate
from modurob.sim.simulate import DEFAULT_DT_S
from modurob.stepping import Ground
from modurob.stepping.ground import corner_depths

FORMAT, VERSION = "modurob-scenario", 1
SAMPLE_S = 0.005  # between commands, where an estimator or noise needs a clock
LEAST_RTOL = 100 * np.finfo(float).eps  # of SciPy's methods
MOVING = 0.5  # of the run: time of a smooth motion without a given time
SLACK = 1e-9  # [rad, m] beyond a limit: rounding of degrees
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
        ground: That it was on; None without one.
        note: What the start was changed by, in a sentence; empty if it was not.
    """

    trajectory: Trajectory
    marks: Sequence[Mark] = ()
    law: Controller | None = None
    reference: Any = None
    balanced: Balanced | None = None
    ground: Ground | None = None
    note: str = ""


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
        model, load = model_of(self.organism, self), self.payload
        return self._loaded(model) if load is not None and load.known else model

    def plant(self) -> Model:
        """The equations of the body as it is."""
        model = model_of(self.organism, self)
        return self._loaded(model if self.masses == 1 else with_scaled_masses(model, self.masses))

    def _loaded(self, model: Model) -> Model:
        load = self.payload
        return model if load is None else with_payload(model, load.body, load.mass, load.center)

    def start(self, model: Model) -> tuple[np.ndarray, np.ndarray]:
        """(nq,), (nv,) the initial state. [rad, m, rad/s, m/s]"""
        q, v, n = model.neutral(), np.zeros(model.nv), len(model.joint_names)
        q[model.nq - n :] = joint_values(model, self.pose)
        v[model.nv - n :] = joint_values(model, self.rates)
        return q, v

    @property
    def free(self) -> bool:
        """True if nothing but gravity moves the body."""
        acted = self.controller != NONE or self.motion == BALANCE or self.pushes or self.events
        return not (acted or self.ground or self.stops)

    def on_ground(self, model: Model, q: np.ndarray) -> tuple[Ground | None, np.ndarray, str]:
        """The ground, (nq,) the start above it, and a sentence on what was moved for that.

        A free body that starts below the ground is lifted; below any other the ground is lowered.
        """
        if not self.ground:
            return None, q, ""
        ground = Ground(self.ground_friction, (self.slope[0], self.slope[1]))
        depth = float(corner_depths(ground, self.organism, model, q)[2].max())
        if depth <= SLACK:
            return ground, q, ""
        if model.free_base:
            q = q.copy()
            q[2] += depth
            return ground, q, f"Placed on the ground: raised by {depth:.3g} m."
        lower = replace(ground, height=-depth)
        return lower, q, f"The ground is {depth:.3g} m below the origin: the body reaches there."

    def on_motion(self) -> Scenario:
        """The same run, started on its motion."""
        model = self.model()
        reference = self.reference(model)
        if reference is None:
            raise StateError(f"motion '{self.motion}' has no start of its own: choose another one")
        pose, rates = (
            dict(zip(model.joint_names, x.tolist(), strict=True)) for x in reference(0.0)[:2]
        )
        return self.edited(pose=pose, rates=rates)

    def reference(self, model: Model) -> Callable[[float], Any] | None:
        """The motion that the joints shall follow, as a function of time."""
        motion = self._motion(model)
        if motion is None or self.feedforward:
            return motion
        rest = np.zeros(len(model.joint_names))
        return lambda t: Reference(motion(t).q, rest, rest)

    def _motion(self, model: Model) -> Callable[[float], Reference] | None:
        joints = joint_values(model, self.pose)
        if self.motion in (NONE, BALANCE):
            return None
        if self.motion == "hold":
            return SetPoint(joints)
        if self.motion in PATHS:
            return self._path(model, joints)
        goal = joint_values(model, self.target)
        if self.motion in POINTS:
            _check_limits("target", model, goal)
        if self.motion == "step":
            return SetPoint(goal)
        if self.motion in SMOOTH:
            return Quintic(joints, goal, self.move_time or MOVING * self.duration)
        return self._gait(model)

    def _path(self, model: Model, joints: np.ndarray) -> Callable[[float], Reference]:
        if TIME not in self.points:
            raise StateError(f"points: motion '{self.motion}' needs times and places; give them")
        times, places = np.array(self.points[TIME]), np.tile(joints, (len(self.points[TIME]), 1))
        for joint, row in self.points.items():
            if joint != TIME:
                places[:, model.joint_index(joint)] = row
        _check_limits("points", model, places)
        return motions.motion(PATHS[self.motion], times, places)

    def _gait(self, model: Model) -> Any:
        kind = gait_class(self.motion)
        known = kind.parameters()
        given: dict[str, Any] = {"frequency": self.frequency, "ramp": self.ramp}
        given = {name: value for name, value in given.items() if name in known}
        own = {name: value for name, value in self.gait.items() if name != "amplitude"}
        swing: Any = self.gait.get("amplitude")
        if not isinstance(swing, dict | None):
            raise StateError(
                f"gait: amplitude needs joints, such as {{'m1.hinge': 0.4}}, got {swing!r}: for "
                "all joints at once set the field amplitude, a share of their limits from 0 to 1"
            )
        for name in own:
            if name not in known or name in GAIT_FIELDS:
                fit = [each for each in known if each not in GAIT_FIELDS]
                fields = [each for each in GAIT_FIELDS if each == "amplitude" or each in known]
                raise StateError(
                    f"gait: {self.motion} has no parameter {name!r}: parameters are {choices(fit)}"
                    f"; {choices(fields)} are settings of their own"
                )
        given |= own

        def gait(amplitude: Any) -> Any:
            if kind.random:
                given["rng"] = np.random.default_rng(self.seed)
            return kind.for_model(model, amplitude=amplitude, **given)

        # the default swings half the way to the limits: amplitude is a part of the whole way
        return gait(np.asarray(gait(swing).amplitude) * 2 * self.amplitude)

    def law(self, model: Model) -> Controller | None:
        """The controller of the joints; None lets the body move by itself."""
        if self.controller == NONE:
            return None
        kind = law_class(self.controller)
        chosen = [name for name in ("poles", "outputs") if getattr(self, name)]
        if self.yielding and "body" not in kind.parameters:
            raise StateError(f"yielding: {self.controller} has no body that yields; leave it out")
        for field in (*chosen, *self.gains):
            if field not in kind.parameters:
                raise StateError(
                    f"{self.controller} has no {field}: it takes {choices(kind.parameters)}"
                )
        options: dict[str, Any] = {
            "delay": self.torque_delay, "passive": self.passive, **self.gains,
        }  # fmt: skip
        if self.outputs:
            options["outputs"] = self.outputs
        if self.yielding:
            options["body"] = self.yielding
        if self.poles:
            pairs = len(self.poles) > 2 and len(self.poles) % 2 == 0
            options["poles"] = np.reshape(self.poles, (-1, 2)) if pairs else self.poles
        elif "settling_time" in kind.parameters and not self.gains:
            options["settling_time"] = self.settling_time
        if "set_point" in kind.parameters and self.motion in POINTS:
            options["set_point"] = joint_values(model, self.target)
        if np.any(limit := np.array(self.torque_limit)):
            options["torque_limit"] = np.where(limit == 0, np.inf, limit)
        if self.clock:
            options["sample_time"] = self.clock
        return kind(model, **options)

    @property
    def clock(self) -> float:
        """Seconds between commands; 0 for a law that acts continuously. [s]"""
        return self.sample_time or (SAMPLE_S if self.estimator != NONE or self.noisy else 0.0)

    def _estimator(self, model: Model, q: np.ndarray, v: np.ndarray, rng: Any) -> Any:
        given: dict[str, Any] = {name: np.array(value) for name, value in self.ekf.items()}
        for name in {"W", "V"} & given.keys():
            if given[name].ndim == 1:
                given[name] = np.diag(given[name])
        if "q" not in given and self.noise_q and rng is not None:  # a first measurement
            n, first = len(model.joint_names), q.copy()
            first[model.nq - n :] += self.noise_q * rng.standard_normal(n)
            given["q"] = first
        return ekf_for_sensors(model, self.clock, self.noise_q, **({"q": q, "v": v} | given))

    def _wrenches(self, model: Model) -> dict[str, Callable[[float], np.ndarray]]:
        """External wrenches by body, as functions of time."""
        by_body: dict[str, list[PushRecord]] = {}
        for push in self.pushes:
            model.body_index(push.body)  # raises an error that lists the bodies
            by_body.setdefault(push.body, []).append(push)
        return {
            body: lambda t, pushes=pushes: np.sum([push.at(t) for push in pushes], axis=0)
            for body, pushes in by_body.items()
        }

    def _longest_step(self) -> float | None:
        """As given, or short enough for an adaptive method to see every push. [s]"""
        steps = [push.longest_step for push in self.pushes]
        if self.dt is not None or self.fixed_step or min(steps, default=np.inf) == np.inf:
            return self.dt
        return min(*steps, self.duration)

    def _demand_resolved(self, push: PushRecord) -> None:
        """Refuse a sine that steps of a given length would show with another frequency."""
        step = self.dt or (DEFAULT_DT_S if self.fixed_step else 0.0)
        if 2 * push.frequency * step > 1:
            raise StateError(
                f"pushes: {push.frequency:g} Hz on {push.body} is above {0.5 / step:g} Hz, half of "
                f"the step rate; take steps of {0.1 / push.frequency:.2g} s, or a lower frequency"
            )

    def _dockings(self) -> list[Dock | Undock]:
        kinds = {kind.name: kind for kind in self.kinds}
        for record in self.events:
            if record.is_fault:
                raise StateError(
                    f"'{record.what} {record.module}' is for bodies that balance by messages: "
                    "choose this motion, or remove the event"
                )
        if self.events and (self.masses != 1 or self.payload is not None):
            name = "masses" if self.masses != 1 else "payload"
            raise StateError(f"{name}: a body that events change has the masses of its datasheets")
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
        for push in self.pushes:
            if push.begin >= self.duration:
                raise StateError(
                    f"pushes: {push.body} is pushed from {push.begin:g} s on, but the run ends at "
                    f"{self.duration:g} s; push earlier or run longer"
                )
            self._demand_resolved(push)
        if self.motion in SMOOTH and (self.move_time or 0.0) > self.duration:
            raise StateError(
                f"move_time: the motion takes {self.move_time:g} s, but the run ends at "
                f"{self.duration:g} s; move faster or run longer"
            )
        q, v = self.start(model)
        ground, q, note = self.on_ground(model, q)
        outside = _beyond_limits(model, joint_values(model, self.pose))
        note = f"{note} The start of {outside}.".strip() if outside else note
        reference, law = self.reference(model), self.law(model)
        rng = np.random.default_rng(self.seed) if self.random else None
        loop: Any = law
        if law is not None and self.estimator != NONE:
            loop = OutputFeedback(law, self._estimator(model, q, v, rng))
        if law is not None and reference is not None:
            loop = TrackingController(loop, reference)
        plant: Any = self.plant()
        if self.analytic:
            if self.masses != 1 or self.payload is not None:
                raise StateError(
                    "analytic: formulas have the masses of the datasheets; leave masses and "
                    "payload out"
                )
            if ground is not None:
                raise StateError("analytic: formulas have no ground; leave one of the two out")
            plant = self.organism.equations(*model_options(self), symbols="none")
        try:
            trajectory = simulate(
                plant,
                q,
                v,
                self.duration,
                controller=loop,
                integrator=None if self.engine == "mujoco" else self.integrator,
                rtol=self.rtol,
                dt=self._longest_step(),
                external=self._wrenches(model),
                wrench_sensors=self.wrench_sensors and law is not None,
                events=self._dockings(),
                rng=rng if self.noisy else None,
                noise=Noise(self.noise_q, self.noise_v, self.noise_tau) if self.noisy else None,
                stops=self.stops,
                ground=ground,
                record=self.record,
                organism=self.organism,
                progress=progress,
                engine=self.engine,
            )
        except SimulationError as error:
            if not partial:
                raise
            trajectory = error.trajectory
        marks = [Mark(push.begin, f"push {push.body}") for push in self.pushes]
        marks += [Mark(entry.time, entry.what) for entry in trajectory.audit]
        followed = reference if law is not None else None
        return RunResult(trajectory, marks, law, followed, ground=ground, note=note)

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
            **{key: x for key, x in (("record", self.record), ("dt", self.dt)) if x is not None},
        )
        channels = {**run.channels, KNOWN: run.estimate_errors, SENT: run.sent}
        part = replace(run.parts[0], channels=channels)
        marks = [Mark(fault.time, f"{fault.kind} {fault.module}") for fault in faults]
        run = replace(run, parts=(part,))
        return RunResult(run, marks, balanced=run)


def largest_difference(one: Trajectory, other: Trajectory) -> float:
    """Largest difference of positions between two runs, at the times of the first. [rad, m]"""
    return float(np.abs(one.q - other.at(one.t)[0]).max(initial=0.0))


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


def _check_limits(field: str, model: Model, places: np.ndarray) -> None:
    """Refuse positions (..., n) beyond the limits of joints."""
    if outside := _beyond_limits(model, places):
        raise StateError(f"{field}: {outside}; choose a value between them")


def _beyond_limits(model: Model, places: np.ndarray) -> str:
    """Words for the first of positions (..., n) that is beyond the limits of a joint, or none."""
    out = (places < model.lower - SLACK) | (places > model.upper + SLACK)
    if not out.any():
        return ""
    *row, k = (int(x) for x in np.argwhere(out)[0])
    scale, unit = (1.0, " m") if model.prismatic[k] else (180 / np.pi, "°")
    value, low, high = (scale * x for x in (places[(*row, k)], model.lower[k], model.upper[k]))
    return (
        f"{model.joint_names[k]} at {value:.4g}{unit} is beyond its limits, {low:.4g} to "
        f"{high:.4g}{unit}"
    )


def _docking(record: EventRecord, kinds: dict[str, ModuleType]) -> Dock | Undock:
    if record.what == "undock":
        return Undock(record.time, record.module)
    if record.port is None or record.child is None or record.child_port is None:
        raise StateError("a docking needs a port, a name for the new module, and its port")
    kind: Any = record.kind and kinds.get(record.kind, record.kind)
    return Dock(record.time, record.module, record.port, record.child, record.child_port, kind=kind)
