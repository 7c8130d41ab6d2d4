"""Parts of a datasheet: bodies, joints, ports, shapes and meshes.

All frames are right-handed, SI units, radians; docking turns are whole degrees. The frame of the
first body is the frame of the module.
"""

from __future__ import annotations

import math
import re
import reprlib
from functools import lru_cache
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, get_args

import numpy as np
from pydantic import (
    AfterValidator,
    AllowInfNan,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    Strict,
    ValidationError,
    model_validator,
)

from modurob.errors import DatasheetError, FileError, choices
from modurob.spatial import inertia as spatial_inertia
from modurob.spatial import se3, so3

PERPENDICULAR = 1e-9  # |cos| between a port's normal and reference; datasheets are typed by hand
UNIT_LENGTH = 1e-15  # a direction this close to length 1 stays as it is, so that files round-trip
MOST_FINDINGS = 5  # a message is for reading
AnyModel = TypeVar("AnyModel", bound=BaseModel)
MOST_FIELDS = 24  # more than any part has
CACHED_POSES = 4096
SHORT = reprlib.Repr()  # of a given value, without reading all of a long list
SHORT.maxstring = SHORT.maxother = SHORT.maxlong = 60
SHORT.maxlist = SHORT.maxtuple = SHORT.maxdict = 20

NAME, COLOR, VISIBLE = r"^[A-Za-z_][\w\-]*$", r"^#[0-9a-fA-F]{6}$", r"^\S+$"
ONE_LINE = r"^[^\x00-\x1f\x7f]+$"
IN_WORDS = {
    NAME: "a name starts with a letter or '_' and goes on with letters, digits, '_' or '-'",
    COLOR: "a color is #rrggbb, such as #3b6ea5",
    VISIBLE: "a symbol is one visible character",
    ONE_LINE: "at least one character, and no control characters",
}


def _plain(value: Any) -> Any:
    """NumPy's and other libraries' numbers as Python's own; all else stays what it is.

    A minus zero becomes zero: equal datasheets must be equal after a file too, which leaves out
    what equals its default.
    """
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Real) and not isinstance(value, bool):
        return int(value) if isinstance(value, Integral) else float(value) + 0.0
    return value


# strict: a text or a truth value in a number's place is a slip, not a number
Plain = BeforeValidator(_plain)
Finite = Annotated[float, Strict(), AllowInfNan(False)]
Number = Annotated[Finite, Plain]
Positive = Annotated[Finite, Field(gt=0), Plain]
NonNegative = Annotated[Finite, Field(ge=0), Plain]
Side = Annotated[int, Strict(), Field(ge=1), Plain]
Turn = Annotated[int, Strict(), Field(ge=0, lt=360), Plain]
Flag = Annotated[bool, Strict()]
Vector = Annotated[tuple[Number, Number, Number], Plain]
Name = Annotated[str, Field(min_length=1, max_length=64, pattern=NAME)]


def _unit(vector: Vector) -> Vector:
    length = math.hypot(*vector)
    if length == 0:
        raise ValueError("a direction cannot be the zero vector")
    if abs(length - 1) <= UNIT_LENGTH:
        return vector
    return (vector[0] / length, vector[1] / length, vector[2] / length)


def _matrix(value: Any) -> Any:
    """Three principal moments are short for a diagonal inertia matrix."""
    value = _plain(value)
    if not (isinstance(value, list | tuple) and len(value) == 3):
        return value
    if not all(isinstance(entry, Real) for entry in value):
        return value
    return tuple(tuple(value[i] if i == j else 0.0 for j in range(3)) for i in range(3))


Direction = Annotated[Vector, AfterValidator(_unit)]
Matrix = tuple[Vector, Vector, Vector]
Inertia = Annotated[Matrix, BeforeValidator(_matrix, json_schema_input_type=Matrix | Vector)]


def _label(value: Any) -> Any:
    value = _plain(value)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("a label is a whole number or a name")
    if isinstance(value, str) and not re.fullmatch(NAME, value):
        raise ValueError(f"a label is a whole number or a name; {IN_WORDS[NAME]}")
    return value


Label = Annotated[int | Name, BeforeValidator(_label)]


def describe(error: ValidationError, model: type[BaseModel]) -> str:
    """Pydantic's findings about a `model` as one line that names each field: ``bodies[0].mass``."""
    errors: list[Any] = error.errors(include_url=False)
    # a list is not too short because an entry of it is wrong
    places = {finding["loc"][:end] for finding in errors for end in range(len(finding["loc"]))}
    errors = [e for e in errors if not (e["type"] == "too_short" and e["loc"] in places)]
    findings = []
    for finding in errors[:MOST_FINDINGS]:
        path = "".join(
            f"[{part}]" if isinstance(part, int) else f".{part}" for part in finding["loc"]
        ).lstrip(".")
        given = SHORT.repr(finding["input"])
        given = given if len(given) <= 60 else given[:57] + "..."
        shown = "" if isinstance(finding["input"], dict | BaseModel) else f" (given {given})"
        findings.append(f"{path}{': ' if path else ''}{_message(finding, model)}{shown}")
    if len(errors) > MOST_FINDINGS:
        findings.append(f"and {len(errors) - MOST_FINDINGS} more")
    return "; ".join(findings)


def _message(finding: Any, model: type[BaseModel]) -> str:
    if finding["type"] == "extra_forbidden":
        for part in finding["loc"][:-1]:  # to the part of the model that has the field
            if part in model.model_fields:
                model = _model_in(model.model_fields[str(part)].annotation) or model
        return f"no such field; fields are {choices(model.model_fields, MOST_FIELDS)}"
    if finding["type"] == "string_pattern_mismatch":
        pattern = finding["ctx"]["pattern"]
        return IN_WORDS.get(pattern, f"must match {pattern}")
    message = finding["msg"].removeprefix("Value error, ").replace("Input should", "must", 1)
    return message[:1].lower() + message[1:]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)


def validated(model: type[AnyModel], data: Any, where: object, context: Any = None) -> AnyModel:
    """The content of a file, checked, or a `FileError` that starts with `where`."""
    try:
        return model.model_validate(data, context=context)
    except ValidationError as error:
        raise FileError(f"{where}: {describe(error, model)}") from None


class CheckedRecord(BaseModel):
    """A frozen value that reports bad data in one line that names each field."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mistake: ClassVar[type[Exception]]  # that it raises

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise self.mistake(describe(error, type(self))) from None

    # records inside records are validated without this constructor: errors hold the whole path
    __init__.__pydantic_base_init__ = True  # pyright: ignore[reportFunctionMemberAccess]


class DatasheetPart(CheckedRecord):
    """A piece of a datasheet."""

    mistake = DatasheetError

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """As pydantic's, with our error."""
        try:
            return super().model_validate(obj, **options)
        except ValidationError as error:
            raise DatasheetError(describe(error, cls)) from None


class Body(DatasheetPart):
    """A rigid body of a module.

    Attributes:
        name: Unique in the module.
        mass: [kg]
        center_of_mass: In the body frame. [m]
        inertia: About the center of mass, in the body frame; three numbers are a diagonal
            matrix. [kg m^2]
        imu: Whether it has an inertial measurement unit, in the body frame.
    """

    name: Name
    mass: NonNegative = 0.0
    center_of_mass: Vector = (0.0, 0.0, 0.0)
    inertia: Inertia = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    imu: bool = False

    @model_validator(mode="after")
    def _possible(self) -> Body:
        flaw = spatial_inertia.inertia_flaw(self.mass, np.array(self.inertia))
        if flaw:
            raise ValueError(f"body '{self.name}': {flaw}")
        return self


@lru_cache(maxsize=CACHED_POSES)
def _pose(position: tuple[float, float, float], rpy: tuple[float, float, float]) -> np.ndarray:
    """(4, 4) read-only pose; few are distinct."""
    T = se3.pose(so3.from_rpy(*rpy), np.array(position))
    T.setflags(write=False)
    return T


class Joint(DatasheetPart):
    """A joint between two bodies: ``T_parent_child(q) = T(position, rpy) exp(axis q)``.

    Attributes:
        kind: ``revolute`` [rad], ``prismatic`` [m], or ``fixed``.
        parent, child: Body names. The child's frame is the joint frame.
        position, rpy: Of the joint frame in the parent's frame; rpy as in URDF. [m, rad]
        axis: In the joint frame; normalized.
        lower, upper: Limits; null is unlimited. [rad, m]
        viscous: Friction per velocity. [N m s/rad, N s/m]
        coulomb: Dry friction. [N m, N]
        rotor_inertia: Of the motor, about its own axis. [kg m^2; kg of a linear motor]
        gear_ratio: Displacement of the motor for a displacement of the joint.
        stiffness: Of a spring between gear and child; null is rigid. [N m/rad, N/m]
        damping: Friction of that spring per velocity. [N m s/rad, N s/m]
        max_effort, max_velocity: Of the motor, at the joint; null is unlimited. Files for other
            programs have them; simulations do not. [N m, N; rad/s, m/s]
    """

    name: Name
    kind: Literal["revolute", "prismatic", "fixed"]
    parent: Name
    child: Name
    position: Vector = (0.0, 0.0, 0.0)
    rpy: Vector = (0.0, 0.0, 0.0)
    axis: Direction = (0.0, 0.0, 1.0)
    lower: Number | None = None
    upper: Number | None = None
    viscous: NonNegative = 0.0
    coulomb: NonNegative = 0.0
    rotor_inertia: NonNegative = 0.0
    gear_ratio: Positive = 1.0
    stiffness: Positive | None = None
    damping: NonNegative = 0.0
    max_effort: Positive | None = None
    max_velocity: Positive | None = None

    @model_validator(mode="after")
    def _possible_drive(self) -> Joint:
        if self.rotor_inertia == 0 and (self.stiffness is not None or self.gear_ratio != 1):
            field = "gear_ratio" if self.stiffness is None else "stiffness"
            raise ValueError(f"joint '{self.name}': a {field} needs a rotor_inertia above 0")
        if self.damping and self.stiffness is None:
            raise ValueError(f"joint '{self.name}': damping is that of a spring: give a stiffness")
        return self

    @model_validator(mode="after")
    def _ordered(self) -> Joint:
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise ValueError(
                f"joint '{self.name}': lower limit {self.lower} is above upper limit {self.upper}"
            )
        return self

    @property
    def armature(self) -> float:
        """Inertia of the rotor as the joint feels it. [kg m^2, kg]"""
        return self.gear_ratio * self.gear_ratio * self.rotor_inertia  # as firmware multiplies

    @property
    def pose(self) -> np.ndarray:
        """(4, 4) joint frame in the parent's frame at q = 0."""
        return _pose(self.position, self.rpy)

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
    """In a file, the side of a numbered port may be left out."""
    schema["required"].remove("side")


class Port(DatasheetPart):
    """A place where another module docks.

    Attributes:
        label: Name for users: a side number or a word.
        body: The body it belongs to.
        position: In the body's frame. [m]
        normal: Outward direction: z of the port frame.
        reference: x of the port frame, perpendicular to the normal.
        turns: Allowed docking turns about the normal. [deg]
        connector: Kind of this connector.
        mates: The kinds of connectors it mates with.
        side: The number written into the assembly incidence matrix; by default the label.
        max_force, max_torque: That the connector holds; null is unlimited. [N, N m]
    """

    model_config = ConfigDict(json_schema_extra=_without_required_side)

    label: Label
    body: Name
    position: Vector
    normal: Direction
    reference: Direction
    turns: Annotated[tuple[Turn, ...], Field(min_length=1), FailFast()] = (0,)
    connector: Name
    mates: Annotated[tuple[Name, ...], Field(min_length=1), FailFast()]
    side: Side
    max_force: Positive | None = None
    max_torque: Positive | None = None

    @model_validator(mode="before")
    @classmethod
    def _side_is_its_number(cls, data: Any) -> Any:
        if isinstance(data, dict) and "side" not in data:
            label = data.get("label")
            return {**data, "side": int(label)} if isinstance(label, Integral) else data
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
        return se3.pose(np.stack([x, so3.cross(z, x), z], axis=-1), np.array(self.position))

    def mates_with(self, other: Port) -> bool:
        """Return whether both connectors accept each other."""
        return other.connector in self.mates and self.connector in other.mates


class Shape(DatasheetPart):
    """A solid for drawing, fixed to a body.

    Attributes:
        form: ``box`` (size x, y, z), ``cylinder`` (radius, length along z) or ``sphere`` (radius).
        position, rpy: Of the solid's center in the body's frame. [m, rad]
        color: ``#rrggbb``.
    """

    body: Name
    form: Literal["box", "cylinder", "sphere"]
    size: Annotated[tuple[Positive, ...], FailFast(), Plain]
    position: Vector = (0.0, 0.0, 0.0)
    rpy: Vector = (0.0, 0.0, 0.0)
    color: Annotated[str, Field(pattern=COLOR)] = "#8aa0b8"

    @model_validator(mode="after")
    def _dimensions(self) -> Shape:
        needed = {"box": 3, "cylinder": 2, "sphere": 1}[self.form]
        if len(self.size) != needed:
            raise ValueError(f"a {self.form} needs {needed} sizes, got {len(self.size)}")
        return self

    @property
    def pose(self) -> np.ndarray:
        """(4, 4) center of the solid in the body's frame."""
        return _pose(self.position, self.rpy)


class Mesh(DatasheetPart):
    """A surface for drawing in a file of its own, fixed to a body; kept for other programs.

    modurob neither reads nor draws it.

    Attributes:
        file: Its path or address, such as ``package://arm/meshes/link.stl``, as it was given.
        scale: Factors along x, y and z of the file's numbers; negative ones mirror.
        position, rpy: Of the mesh's frame in the body's frame. [m, rad]
    """

    body: Name
    file: Annotated[str, Field(max_length=1000, pattern=ONE_LINE)]
    scale: Vector = (1.0, 1.0, 1.0)
    position: Vector = (0.0, 0.0, 0.0)
    rpy: Vector = (0.0, 0.0, 0.0)

    @property
    def pose(self) -> np.ndarray:
        """(4, 4) frame of the mesh in the body's frame."""
        return _pose(self.position, self.rpy)
