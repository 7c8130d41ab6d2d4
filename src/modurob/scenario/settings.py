"""Settings of a run: everything but the body and its start, checked, as files hold them."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import (
    BeforeValidator,
    FailFast,
    Field,
    FiniteFloat,
    ValidationInfo,
    field_validator,
    model_validator,
)

from modurob.control import CONTROLLERS, gains
from modurob.control.laws import law_class, law_keys
from modurob.distributed.balancing.faults import KINDS as FAULTS
from modurob.distributed.balancing.plant import GearedDrive
from modurob.errors import StateError, choices
from modurob.gaits import GAITS
from modurob.modules.datasheet import CheckedRecord
from modurob.sim import ENGINES, INTEGRATORS
from modurob.stepping import FixedStep, Ground, Integrator, integrator_class

NONE = "none"  # no motion, controller or estimator
BALANCE = "balance"  # by messages between modules
POINTS = ("step", "quintic")  # motions to a target: at once, or smoothly
SMOOTH = ("zero", "quintic")  # motions with a time of their own
# motions through points, and their kinds in `modurob.distributed.bus.motions`
PATHS = {"steps": "steps", "spline": "spline", "recorded": "csv"}
TIME = "time"  # name of the times among the columns of points
GAIT_FIELDS = ("amplitude", "frequency", "ramp", "gait")
BALANCE_FIELDS = ("balancing_law", "loss", "delay", "drive_friction", "stuck")
LAW_FIELDS = (
    "settling_time", "poles", "gains", "torque_limit", "torque_delay", "sample_time", "feedforward",
    "passive", "outputs", "yielding", "wrench_sensors",
)  # fmt: skip
METHOD_FIELDS = (
    "integrator", "rtol", "dt", "analytic", "stops", "masses", "payload", "pushes", "rates",
    "locked", "ground", "engine",
)  # fmt: skip
# A gait on the ground. The law is a servo of the joints (on a free base no gravity is compensated),
# fast enough to carry the body and asked often enough for links as light as those of SuperBots.
WALKING = {
    "base": "free", "ground": True, "controller": "PdGravity", "settling_time": 0.1,
    "sample_time": 2e-3, "dt": 1e-3, "ramp": 0.5,
}  # fmt: skip
GROUND_FIELDS = ("slope", "ground_friction")
NOISE_FIELDS = ("estimator", "ekf", "noise_q", "noise_v", "noise_tau")

Name = Annotated[str, Field(max_length=64)]
NotNegative = Annotated[FiniteFloat, Field(ge=0)]
Positive = Annotated[FiniteFloat, Field(gt=0)]
Row = tuple[FiniteFloat, ...]


def _finite(value: Any) -> Any:
    """A value as it is, or one finding in place of one for each shape that it might have."""
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        array = np.zeros(0)
    if not array.size or array.ndim > 2 or not np.isfinite(array).all():
        raise ValueError("takes finite numbers: one, one for each joint, or the rows of a matrix")
    return value


# one for all, one for each, or a matrix
Numbers = Annotated[FiniteFloat | Row | tuple[Row, ...], BeforeValidator(_finite)]


def _three(value: Any) -> Any:
    if not isinstance(value, tuple | list) or len(value) != 3:
        raise ValueError("takes three numbers, for x, y and z")
    return value


Vector = Annotated[Row, BeforeValidator(_three)]


def known(field: str) -> tuple[str, ...]:
    """Values that a field of `RunSettings` may have; tables may grow."""
    if field == "controller":
        return NONE, *CONTROLLERS
    if field == "motion":
        return NONE, "hold", "zero", *POINTS, *PATHS, BALANCE, *GAITS
    return ENGINES if field == "engine" else tuple(INTEGRATORS)


class FrozenRecord(CheckedRecord):
    """A value of a file."""

    mistake = StateError

    def edited(self, **changes: Any) -> Self:
        """A copy with other values, or a `StateError` that names the field."""
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return type(self)(**(given | changes))


class EventRecord(FrozenRecord):
    """An event during a run.

    Attributes:
        what: ``undock`` lets `module` go; ``dock`` brings a new module of `kind` to it; ``freeze``,
            ``die`` and ``reboot`` are faults of a module that balances by messages.
        time: [s]
    """

    what: Literal["dock", "undock", "freeze", "die", "reboot"]
    time: NotNegative
    module: Name
    port: int | Name | None = None
    kind: Name | None = None
    child: Name | None = None
    child_port: int | Name | None = None

    @property
    def is_fault(self) -> bool:
        """True if it is a fault of a module, not a change of the body."""
        return self.what in FAULTS


class PushRecord(FrozenRecord):
    """A wrench from outside on a body: constant, a pulse, or a sine.

    No law expects it; with `RunSettings.wrench_sensors` the law has it as it acts.

    Attributes:
        body: A body or a module of the model; force and moment are in its frame.
        force, moment: About the origin of the frame. [N], [N m]
        begin, length: When, and for how long; to the end of the run by default. [s]
        frequency: Of a sine that starts with the push; 0 for a constant wrench. [Hz]
    """

    body: Name
    force: Vector = (0.0, 0.0, 0.0)
    moment: Vector = (0.0, 0.0, 0.0)
    begin: NotNegative = 0.0
    length: Positive | None = None
    frequency: NotNegative = 0.0

    @model_validator(mode="after")
    def _acts(self) -> Self:
        if not any((*self.force, *self.moment)):
            raise ValueError("has neither a force nor a moment: give one of them")
        return self

    def at(self, t: float) -> tuple[float, ...]:
        """(6,) force and moment at a time. [N, N m]"""
        since = t - self.begin
        on = since >= 0 and (self.length is None or since < self.length)
        scale = math.sin(2 * math.pi * self.frequency * since) if self.frequency else 1.0
        return tuple(scale * on * x for x in (*self.force, *self.moment))

    @property
    def longest_step(self) -> float:
        """The longest step of an adaptive method that cannot miss it. [s]"""
        tenth = 0.1 / self.frequency if self.frequency else math.inf
        return min(tenth, math.inf if self.length is None else self.length / 2)


class PayloadRecord(FrozenRecord):
    """A point mass on a body.

    Attributes:
        body: A body or a module of the model.
        mass: [kg]
        center: In the frame of the body. [m]
        known: Whether the law and the estimator have it in their model.
    """

    body: Name
    mass: Positive
    center: Vector = (0.0, 0.0, 0.0)
    known: bool = False


class RunSettings(FrozenRecord):
    """Everything about a run but the body and its start.

    Attributes:
        hinges: ``dyad`` or ``physical``.
        base: ``fixed``, ``free``, or virtual joints with commas.
        gravity: Downwards. [m/s^2]
        locked: Joints that are held, by name; see `Organism.model`. [rad, m]
        ground: Whether there is ground. A free body that starts below it is lifted onto it; under
            any other base the ground lies below the body.
        slope: Rise of the ground along x and y. [m/m]
        ground_friction: Coefficient of friction on the ground.
        duration: [s]
        engine: ``modurob`` or ``mujoco``, which has an integrator of its own.
        integrator, rtol, dt: As for `simulate`; None for the default.
        analytic: Whether accelerations come from the closed forms, as formulas.
        motion: Motion of the joints: ``none``, ``hold`` the pose, go to ``zero``, ``step`` or
            ``quintic`` to the target, ``steps``, ``spline`` or ``recorded`` through points,
            ``balance`` by messages, or a gait.
        amplitude: Of a gait, as a part of what the limits allow; frequency [Hz]; ramp [s].
        gait: Its other parameters by name, such as lag, coupling, r or phase, one number for all
            joints or numbers by joint; units as in `modurob.gaits`.
        target: End of ``step`` and ``quintic`` by joint; zero for joints not named. [rad, m]
        move_time: Of ``quintic``; None for half of the run. [s]
        points: Of a motion through points: ``time`` [s] and each joint that moves, by name, with as
            many numbers. [rad, m]
        feedforward: Whether the law also has the velocity and acceleration of the motion.
        controller: Name of a law, or ``none``.
        settling_time: Of the law. [s]
        poles: Of `PolePlacement` in place of a settling time: two, or two for each joint. [1/s]
        gains: Of the law in place of a settling time, by the names of its arguments.
        torque_limit: Of all joints, or of each; 0 for none. [N m, N]
        passive: Joints without a motor.
        outputs: Joints that `PartialLinearization` controls, as many as have a motor.
        yielding: Body or module that `CartesianImpedance` lets yield; empty for the last one.
        torque_delay: Until a torque takes effect, in whole samples. [s]
        sample_time: 0 for a law that acts continuously. [s]
        masses: True masses, as a factor on those that the controller assumes.
        payload: A mass on a body.
        pushes: Wrenches from outside.
        wrench_sensors: Whether the law and the estimator have pushes and contact forces, as sensors
            measure them.
        estimator: ``Ekf`` or ``none``.
        ekf: Its Q, R, W, V, P and first estimate q, v, by the names of `Ekf`'s arguments; what is
            left out follows from the noise of the sensors.
        noise_q, noise_v, noise_tau: Standard deviations. [rad or m, per second, N m or N]
        balancing_law: Rule by which joints choose torques when they balance by messages.
        loss: Probability that a message is lost.
        delay: Further milliseconds that a message takes for each docking.
        drive_friction: Of the drives when they balance. [N m s/rad]
        stuck: Joints that do not move when the others balance.
        seed: For noise, lost messages, and random gaits.
        stops: Whether joints meet stops at their limits.
        rates: Joint velocities at the start. [rad/s, m/s]
        events: Dockings, undockings and faults during the run.
    """

    hinges: Literal["dyad", "physical"] = "dyad"
    base: Name = "fixed"
    gravity: FiniteFloat = 9.81
    locked: dict[str, FiniteFloat] = Field(default_factory=dict)
    ground: bool = False
    slope: Annotated[Row, Field(min_length=2, max_length=2)] = (0.0, 0.0)
    ground_friction: NotNegative = Ground.friction
    duration: Positive = 5.0
    engine: Name = "modurob"
    integrator: Name | None = None
    rtol: Annotated[FiniteFloat, Field(gt=0, lt=1)] = 1e-8
    dt: Positive | None = None
    analytic: bool = False
    motion: Name = NONE
    amplitude: Annotated[FiniteFloat, Field(ge=0, le=1)] = 0.5
    frequency: Positive = 1.0
    ramp: NotNegative = 0.0
    gait: dict[str, int | FiniteFloat | dict[str, FiniteFloat]] = Field(default_factory=dict)
    target: dict[str, FiniteFloat] = Field(default_factory=dict)
    move_time: Positive | None = None
    points: dict[Name, Row] = Field(default_factory=dict)
    feedforward: bool = True
    controller: Name = NONE
    settling_time: Positive = gains.SETTLING_TIME
    poles: tuple[complex, ...] = ()
    gains: dict[Name, Numbers] = Field(default_factory=dict)
    torque_limit: NotNegative | tuple[NotNegative, ...] = 0.0
    passive: tuple[Name, ...] = ()
    outputs: tuple[Name, ...] = ()
    yielding: Name = ""
    torque_delay: NotNegative = 0.0
    sample_time: NotNegative = 0.0
    masses: Positive = 1.0
    payload: PayloadRecord | None = None
    pushes: Annotated[tuple[PushRecord, ...], FailFast()] = ()
    wrench_sensors: bool = False
    estimator: Literal["none", "Ekf"] = "none"
    ekf: dict[Literal["Q", "R", "W", "V", "P", "q", "v"], Numbers] = Field(default_factory=dict)
    noise_q: NotNegative = 0.0
    noise_v: NotNegative = 0.0
    noise_tau: NotNegative = 0.0
    balancing_law: Literal["shared", "momentum", "distance", "default"] = "shared"
    loss: Annotated[FiniteFloat, Field(ge=0, lt=1)] = 0.0
    delay: Annotated[int, Field(ge=0, le=1000)] = 0
    drive_friction: NotNegative = GearedDrive.friction
    stuck: tuple[Name, ...] = ()
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    stops: bool = False
    rates: dict[str, FiniteFloat] = Field(default_factory=dict)
    events: Annotated[tuple[EventRecord, ...], FailFast()] = ()

    @field_validator("controller", "motion", "integrator", "engine")
    @classmethod
    def _known(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None:
            return None
        names = known(info.field_name or "")
        if info.field_name == "controller" and value in law_keys():
            return law_class(value).__name__
        if value not in names:
            raise ValueError(f"must be one of {choices(names)}")
        return value

    @field_validator("points")
    @classmethod
    def _table(cls, value: dict[str, Row]) -> dict[str, Row]:
        if value and (TIME not in value or len({len(row) for row in value.values()}) != 1):
            raise ValueError(f"are rows of equal lengths by joint, and one for '{TIME}'")
        return value

    @property
    def noisy(self) -> bool:
        """True if sensors or drives have noise."""
        return bool(self.noise_q or self.noise_v or self.noise_tau)

    @property
    def method(self) -> type[Integrator]:
        """The integrator of a run with our engine."""
        return integrator_class(self.integrator, self.ground)

    @property
    def fixed_step(self) -> bool:
        """True if the integrator takes equal steps."""
        return self.engine == "mujoco" or issubclass(self.method, FixedStep)

    @property
    def random(self) -> bool:
        """True if the run draws random numbers."""
        if self.motion == BALANCE:
            return bool(self.loss)
        return self.noisy or (self.motion in GAITS and GAITS[self.motion].random)

    @property
    def summary(self) -> str:
        """A run in a few words."""
        if self.motion == BALANCE:
            words = ["balance by messages", f"{self.balancing_law} law"]
            if self.loss:
                words.append(f"{100 * self.loss:.3g} % lost")
        else:
            law = "no controller" if self.controller == NONE else CONTROLLERS[self.controller].name
            words = [law, "free motion" if self.motion == NONE else self.motion]
            words += ["EKF"] * (self.estimator != NONE) + ["formulas"] * self.analytic
            words += ["on the ground"] * self.ground
        count = len(self.events)
        return ", ".join([*words, f"{count} event{'s'[: count != 1]}"] if count else words)

    def without_effect(self) -> dict[str, str]:
        """Fields that this run does not use, each with the reason."""
        found: dict[str, str] = {}

        def unused(fields: tuple[str, ...], reason: str) -> None:
            found.update(dict.fromkeys(fields, reason))

        if self.motion == BALANCE:
            unused(("controller", *LAW_FIELDS, *METHOD_FIELDS, *NOISE_FIELDS), "of a balancing run")
            found.pop("dt")
        else:
            unused(BALANCE_FIELDS, f"with motion '{self.motion}', only with '{BALANCE}'")
            if self.controller == NONE:
                unused((*LAW_FIELDS, "motion"), "without a controller")
            elif self.poles or self.gains:
                unused(("settling_time",), "with poles or gains")
            elif "settling_time" not in CONTROLLERS[self.controller].parameters:
                unused(("settling_time",), f"for {self.controller}")
            if self.engine == "mujoco":
                unused(("integrator", "rtol", "analytic"), "with engine 'mujoco'")
            elif self.fixed_step:
                unused(("rtol",), f"for {self.method.name}, which takes equal steps")
        if not self.ground or self.motion == BALANCE:
            unused(GROUND_FIELDS, "without ground")
        if self.motion not in GAITS or self.controller == NONE:
            unused(GAIT_FIELDS, "without a gait")
        if self.motion not in POINTS:
            unused(("target",), f"with motion '{self.motion}'")
        if self.motion not in PATHS:
            unused(("points",), f"with motion '{self.motion}'")
        if self.motion not in SMOOTH:
            unused(("move_time",), f"with motion '{self.motion}'")
        if not self.pushes and not self.ground:
            found.setdefault("wrench_sensors", "without a push or ground")
        if self.estimator == NONE:
            unused(("ekf",), "without an estimator")
        if not self.random:
            unused(("seed",), "when nothing is random: neither noise, nor a gait, nor messages")
        for name in ("motion", "controller"):
            if getattr(self, name) == NONE:
                found.pop(name, None)
        return found


class RunRecord(FrozenRecord):
    """A run that was done.

    Attributes:
        number: From 1 on; its files have this name.
        title: In words.
        status: ``finished`` or ``stopped`` (then `message` says why).
        seconds: Simulated. [s]
        took: Wall time. [s]
        settings: Of the run.
        removed: True if it was removed and can be brought back.
    """

    number: Annotated[int, Field(ge=1, lt=10**6)]
    title: Annotated[str, Field(min_length=1, max_length=200)]
    status: Literal["finished", "stopped"]
    message: Annotated[str, Field(max_length=2000)] = ""
    seconds: NotNegative
    took: NotNegative
    settings: RunSettings
    removed: bool = False
