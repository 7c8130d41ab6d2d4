"""What a datasheet is made of: bodies, joints, ports and shapes.

All frames are right-handed, SI units, radians; docking turns are whole degrees. The frame of the
first body is the frame of the module.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    ValidationError,
    model_validator,
)

from modurob.errors import DatasheetError
from modurob.spatial import inertia as spatial_inertia
from modurob.spatial import se3, so3

PERPENDICULAR = 1e-9  # |cos| between a port's normal and reference; datasheets are typed by hand
UNIT_LENGTH = 1e-15  # a direction this close to length 1 stays as it is, so that files round-trip
MOST_FINDINGS = 5  # a message is for reading

Vector = tuple[FiniteFloat, FiniteFloat, FiniteFloat]
NonNegative = Annotated[FiniteFloat, Field(ge=0)]
Name = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z_][\w\-]*$")]


def _unit(vector: Vector) -> Vector:
    length = math.hypot(*vector)
    if length == 0:
        raise ValueError("a direction cannot be the zero vector")
    if abs(length - 1) <= UNIT_LENGTH:
        return vector
    return (vector[0] / length, vector[1] / length, vector[2] / length)


def _matrix(value: Any) -> Any:
    """Three principal moments are short for a diagonal inertia matrix."""
    if isinstance(value, list | tuple) and len(value) == 3:
        if all(isinstance(entry, int | float) for entry in value):
            return tuple(tuple(value[i] if i == j else 0.0 for j in range(3)) for i in range(3))
        return value
    if isinstance(value, np.ndarray):
        return _matrix(value.tolist())
    return value


Direction = Annotated[Vector, AfterValidator(_unit)]
Matrix = tuple[Vector, Vector, Vector]
Inertia = Annotated[Matrix, BeforeValidator(_matrix, json_schema_input_type=Matrix | Vector)]


def describe(error: ValidationError) -> str:
    """Pydantic's findings as one line that names each field: ``bodies[0].mass: ...``."""
    findings, errors = [], error.errors(include_url=False)
    for finding in errors[:MOST_FINDINGS]:
        path = "".join(
            f"[{part}]" if isinstance(part, int) else f".{part}" for part in finding["loc"]
        ).lstrip(".")
        inner = finding.get("ctx", {}).get("error")
        if isinstance(inner, DatasheetError):  # a nested part already named its own field
            findings.append(f"{path}.{inner}")
            continue
        message = finding["msg"].removeprefix("Value error, ")
        message = message[:1].lower() + message[1:]
        given = finding["input"]
        shown = "" if isinstance(given, dict | BaseModel) else f" (given {_short(given)})"
        findings.append(f"{path}: {message}{shown}" if path else f"{message}{shown}")
    if len(errors) > MOST_FINDINGS:
        findings.append(f"and {len(errors) - MOST_FINDINGS} more")
    return "; ".join(findings)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class Part(BaseModel):
    """A frozen piece of a datasheet that reports bad data as `DatasheetError`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise DatasheetError(describe(error)) from None


class Body(Part):
    """A rigid body of a module.

    Attributes:
        name: Unique in the module.
        mass: [kg]
        center_of_mass: In the body frame. [m]
        inertia: About the center of mass, in the body frame; three numbers mean a diagonal
            matrix. [kg m^2]
    """

    name: Name
    mass: NonNegative = 0.0
    center_of_mass: Vector = (0.0, 0.0, 0.0)
    inertia: Inertia = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))

    @model_validator(mode="after")
    def _possible(self) -> Body:
        flaw = spatial_inertia.inertia_flaw(self.mass, np.array(self.inertia))
        if flaw:
            raise ValueError(f"body '{self.name}': {flaw}")
        return self


class Joint(Part):
    """A joint between two bodies: ``T_parent_child(q) = T(position, rpy) exp(axis q)``.

    Attributes:
        kind: ``revolute`` [rad], ``prismatic`` [m], or ``fixed``.
        parent, child: Body names. The child's frame is the joint frame.
        position, rpy: Of the joint frame in the parent's frame; rpy as in URDF. [m, rad]
        axis: In the joint frame; normalised.
        lower, upper: Limits; null means unlimited. [rad, m]
        viscous: Friction per velocity. [N m s/rad, N s/m]
        coulomb: Dry friction. [N m, N]
    """

    name: Name
    kind: Literal["revolute", "prismatic", "fixed"]
    parent: Name
    child: Name
    position: Vector = (0.0, 0.0, 0.0)
    rpy: Vector = (0.0, 0.0, 0.0)
    axis: Direction = (0.0, 0.0, 1.0)
    lower: FiniteFloat | None = None
    upper: FiniteFloat | None = None
    viscous: NonNegative = 0.0
    coulomb: NonNegative = 0.0

    @model_validator(mode="after")
    def _ordered(self) -> Joint:
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise ValueError(
                f"joint '{self.name}': lower limit {self.lower} is above upper limit {self.upper}"
            )
        return self

    @property
    def pose(self) -> np.ndarray:
        """(4, 4) joint frame in the parent's frame at q = 0."""
        return se3.pose(so3.from_rpy(*self.rpy), np.array(self.position))

    @property
    def screw(self) -> np.ndarray:
        """(6,) unit screw in the joint frame, linear part first; zero for a fixed joint."""
        axis, zero = np.array(self.axis), np.zeros(3)
        if self.kind == "revolute":
            return np.concatenate([zero, axis])
        if self.kind == "prismatic":
            return np.concatenate([axis, zero])
        return np.zeros(6)


def _without_required_side(schema: dict[str, Any]) -> None:
    """In a file, a numbered port need not say its side."""
    schema["required"].remove("side")


class Port(Part):
    """A place where another module docks.

    Attributes:
        label: What the user calls it: a side number or a word.
        body: The body it belongs to.
        position: In the body's frame. [m]
        normal: Outward direction: z of the port frame.
        reference: x of the port frame, perpendicular to the normal.
        turns: Allowed docking turns about the normal. [deg]
        connector: What kind of connector this is.
        mates: The kinds of connectors it mates with.
        side: The number written into the assembly incidence matrix; by default the label.
    """

    model_config = ConfigDict(json_schema_extra=_without_required_side)

    label: int | Name
    body: Name
    position: Vector
    normal: Direction
    reference: Direction
    turns: Annotated[tuple[Annotated[int, Field(ge=0, lt=360)], ...], Field(min_length=1)] = (0,)
    connector: Name
    mates: Annotated[tuple[Name, ...], Field(min_length=1)]
    side: Annotated[int, Field(ge=1)]

    @model_validator(mode="before")
    @classmethod
    def _side_is_its_number(cls, data: Any) -> Any:
        if isinstance(data, dict) and "side" not in data and isinstance(data.get("label"), int):
            return {**data, "side": data["label"]}
        return data

    @model_validator(mode="after")
    def _square(self) -> Port:
        if abs(float(np.dot(self.normal, self.reference))) > PERPENDICULAR:
            raise ValueError(
                f"port {self.label}: reference {self.reference} is not perpendicular "
                f"to normal {self.normal}"
            )
        return self

    @property
    def pose(self) -> np.ndarray:
        """(4, 4) port frame in the body's frame: z outward, x along the reference."""
        x, z = np.array(self.reference), np.array(self.normal)
        return se3.pose(np.stack([x, np.cross(z, x), z], axis=-1), np.array(self.position))

    def mates_with(self, other: Port) -> bool:
        """Whether both connectors accept each other."""
        return other.connector in self.mates and self.connector in other.mates


class Shape(Part):
    """A solid for drawing, fixed to a body.

    Attributes:
        form: ``box`` (size x, y, z), ``cylinder`` (radius, length along z) or ``sphere`` (radius).
        position, rpy: Of the solid's center in the body's frame. [m, rad]
        color: A Matplotlib color name or ``#rrggbb``.
    """

    body: Name
    form: Literal["box", "cylinder", "sphere"]
    size: tuple[Annotated[FiniteFloat, Field(gt=0)], ...]
    position: Vector = (0.0, 0.0, 0.0)
    rpy: Vector = (0.0, 0.0, 0.0)
    color: Annotated[str, Field(pattern=r"^(#[0-9a-fA-F]{6}|[a-zA-Z:]+)$")] = "#8aa0b8"

    @model_validator(mode="after")
    def _dimensions(self) -> Shape:
        needed = {"box": 3, "cylinder": 2, "sphere": 1}[self.form]
        if len(self.size) != needed:
            raise ValueError(f"a {self.form} needs {needed} sizes, got {len(self.size)}")
        return self

    @property
    def pose(self) -> np.ndarray:
        """(4, 4) center of the solid in the body's frame."""
        return se3.pose(so3.from_rpy(*self.rpy), np.array(self.position))
