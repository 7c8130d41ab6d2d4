"""What a run is made of: the settings of the Move panel, checked, as a file holds them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    FailFast,
    Field,
    FiniteFloat,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from modurob import StateError
from modurob.control import CONTROLLERS
from modurob.distributed.balancing import Drive
from modurob.distributed.balancing.faults import KINDS as FAULTS
from modurob.errors import choices
from modurob.gaits import GAITS
from modurob.modules.datasheet import describe
from modurob.sim import INTEGRATORS

LONGEST = 600.0  # [s] of a run
NONE = "none"  # no gait, controller or estimator
BALANCE = "balance"  # by messages between modules
Name = Annotated[str, Field(max_length=64)]
Number = FiniteFloat
NotNegative = Annotated[FiniteFloat, Field(ge=0)]
Positive = Annotated[FiniteFloat, Field(gt=0)]


def known(field: str) -> tuple[str, ...]:
    """Values that a field of `Settings` may have; tables may grow."""
    if field == "controller":
        return NONE, *CONTROLLERS
    if field == "motion":
        return NONE, "hold", "zero", BALANCE, *GAITS
    return tuple(INTEGRATORS)


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class EventRecord(_Record):
    """What happens to a module during a run.

    Attributes:
        what: ``undock`` lets `module` go; ``dock`` brings a new module of `kind` to it; ``freeze``,
            ``die`` and ``reboot`` are faults of a module that balances by messages.
        time: [s]
    """

    what: Literal["dock", "undock", "freeze", "die", "reboot"]
    time: Positive
    module: Name
    port: int | Name | None = None
    kind: Name | None = None
    child: Name | None = None
    child_port: int | Name | None = None

    @property
    def is_fault(self) -> bool:
        """Whether it happens to a module, not to the body."""
        return self.what in FAULTS


class Settings(_Record):
    """Everything about a run but the body and its pose.

    Attributes:
        hinges: ``dyad`` or ``physical``.
        base: ``fixed``, ``free``, or virtual joints with commas.
        gravity: Downwards. [m/s^2]
        duration: [s]
        integrator, rtol, dt: As for `simulate`.
        motion: What the joints shall do: ``none``, ``hold`` the pose, go to ``zero``, or a gait.
        amplitude: Of a gait, as a part of what the limits allow; frequency [Hz]; ramp [s].
        controller: Name of a law, or ``none``.
        settling_time: Of the law. [s]
        torque_limit: 0 for none. [N m, N]
        sample_time: 0 for a law that acts continuously. [s]
        estimator: ``Ekf`` or ``none``.
        noise_q, noise_v, noise_tau: Standard deviations. [rad or m, per second, N m or N]
        balancing_law: How joints choose their torques when they balance by messages.
        loss: Chance that a message does not arrive.
        delay: Further milliseconds that a message takes for each docking.
        drive_friction: Of the drives when they balance. [N m s/rad]
        seed: For noise, messages that get lost, and random gaits.
        stops: Whether joints meet stops at their limits.
        rates: Joint velocities at the start. [rad/s, m/s]
        events: What happens during the run.
    """

    hinges: Literal["dyad", "physical"] = "dyad"
    base: Name = "fixed"
    gravity: Number = 9.81
    duration: Annotated[FiniteFloat, Field(gt=0, le=LONGEST)] = 5.0
    integrator: Name = "RK45"
    rtol: Annotated[FiniteFloat, Field(gt=0, lt=1)] = 1e-6
    dt: Positive = 1e-3
    motion: Name = "wave"
    amplitude: Annotated[FiniteFloat, Field(ge=0, le=1)] = 0.5
    frequency: Positive = 0.5
    ramp: NotNegative = 1.0
    controller: Name = "ComputedTorque"
    settling_time: Positive = 0.5
    torque_limit: NotNegative = 0.0
    sample_time: NotNegative = 0.0
    estimator: Literal["none", "Ekf"] = "none"
    noise_q: NotNegative = 0.0
    noise_v: NotNegative = 0.0
    noise_tau: NotNegative = 0.0
    balancing_law: Literal["shared", "momentum", "distance", "default"] = "shared"
    loss: Annotated[FiniteFloat, Field(ge=0, lt=1)] = 0.0
    delay: Annotated[int, Field(ge=0, le=1000)] = 0
    drive_friction: NotNegative = Drive.friction
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    stops: bool = False
    rates: dict[str, Number] = Field(default_factory=dict)
    events: Annotated[tuple[EventRecord, ...], FailFast()] = ()

    @property
    def noisy(self) -> bool:
        """Whether sensors or drives have noise."""
        return bool(self.noise_q or self.noise_v or self.noise_tau)

    @field_validator("controller", "motion", "integrator")
    @classmethod
    def _known(cls, value: str, info: ValidationInfo) -> str:
        names = known(info.field_name or "")
        if value not in names:
            raise ValueError(f"must be one of {choices(names)}")
        return value

    def edited(self, **changes: Any) -> Settings:
        """A copy with other values, or a `StateError` that names the field."""
        try:
            return Settings.model_validate(self.model_dump() | changes)
        except ValidationError as error:
            raise StateError(describe(error, Settings)) from None


class RunRecord(_Record):
    """A run that was done.

    Attributes:
        number: From 1 on; its files have this name.
        title: In words.
        status: ``finished`` or ``stopped`` (then `message` says why).
        seconds: Simulated. [s]
        took: Wall time. [s]
        settings: What it was made with.
    """

    number: Annotated[int, Field(ge=1, lt=10**6)]
    title: Annotated[str, Field(max_length=200)]
    status: Literal["finished", "stopped"]
    message: Annotated[str, Field(max_length=2000)] = ""
    seconds: NotNegative
    took: NotNegative
    settings: Settings
