"""CoBRA's files field by field, so that a mistake is answered with the field that holds it."""

from __future__ import annotations

import math
import reprlib
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    PlainValidator,
    Strict,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from modurob.errors import FileError
from modurob.interop.conventions import LARGEST_NUMBER, Repairs
from modurob.modules.datasheet import ONE_LINE, describe
from modurob.modules.datasheet import Number as AnyNumber

MOST_MODULES = 100_000
NO_MASS = {"mass": 0.0, "inertia": [[0.0] * 3] * 3, "r_com": [0.0] * 3}
LAST_ROW = np.array([0.0, 0.0, 0.0, 1.0])
MOST_PARTS = 1000  # bodies, connectors, ... of one module: checking a datasheet takes the square


def _listed(value: Any) -> Any:
    """A single entry may stand for a list of one."""
    return [value] if isinstance(value, dict) else value


def _limit(value: float | None) -> float | None:
    """Infinite, missing and not a number all mean that there is no limit."""
    return value if value is not None and math.isfinite(value) else None


def _as_pose(rows: Any) -> np.ndarray:
    try:
        T = np.array(rows, dtype=float)
    except (TypeError, ValueError, OverflowError):
        T = np.empty(0)
    fits = T.shape == (4, 4) and np.abs(T).max() <= LARGEST_NUMBER  # a NaN is no less than that
    if not fits or np.abs(T[3] - LAST_ROW).max() > 1e-9:
        raise ValueError("a pose is a 4x4 matrix of numbers whose last row is 0, 0, 0, 1")
    return T


def _unit() -> np.ndarray:
    return np.eye(4)


def _first_two(value: Any) -> Any:
    """Module and connector; Timor puts the number of the pose behind."""
    return value[:2] if isinstance(value, list) else value


Id = Annotated[str, Field(max_length=200, pattern=ONE_LINE)]
Number = Annotated[AnyNumber, Field(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)]
Vector = tuple[Number, Number, Number]
Index = Annotated[int, Strict()]
Pose = Annotated[np.ndarray, PlainValidator(_as_pose)]
Limit = Annotated[Annotated[float, Strict()] | None, AfterValidator(_limit)]
Friction = Annotated[Number, Field(ge=0)]


class CobraRecord(BaseModel):
    """Part of a file; fields that modurob has no use for are passed over."""

    model_config = ConfigDict(extra="ignore", arbitrary_types_allowed=True, populate_by_name=True)


class Header(CobraRecord):
    """Who and what a module is."""

    id: Id = Field(alias="ID")
    name: str = ""
    author: Any = ()
    affiliation: Any = ()


class ConnectorRecord(CobraRecord):
    """A place where another module docks: z outward."""

    id: Id = Field(alias="ID")
    pose: Pose = Field(default_factory=_unit)
    gender: Literal["f", "female", "m", "male", "h", "hermaphroditic"] = "h"
    type: str = ""
    size: Annotated[
        tuple[Annotated[Number, Field(ge=0)], ...],
        BeforeValidator(lambda v: () if v is None else [v] if isinstance(v, int | float) else v),
    ] = ()


class GeometryRecord(CobraRecord):
    """A solid; the parameters depend on the type."""

    type: str
    parameters: dict[str, Any] = {}
    pose: Pose = Field(default_factory=_unit)


Connectors = Annotated[list[ConnectorRecord], FailFast(), BeforeValidator(_listed)]
Geometries = Annotated[list[GeometryRecord], FailFast(), BeforeValidator(_listed)]


class BodyRecord(CobraRecord):
    """A rigid body; the inertia is about the center of mass."""

    id: Id = Field(alias="ID")
    mass: Number
    inertia: tuple[Vector, Vector, Vector]
    r_com: Vector
    connectors: Connectors = []
    visual: Geometries = []
    collision: Geometries = []

    @model_validator(mode="before")
    @classmethod
    def _unfolded(cls, data: Any, info: ValidationInfo) -> Any:
        """Mass, inertia and r_com may stand together under ``inertia``."""
        if not isinstance(data, dict):
            return data
        if isinstance(data.get("inertia"), dict) and "inertia" in data["inertia"]:
            data = {**data, **data["inertia"]}
        if isinstance(info.context, Repairs) and not info.context.strict:
            for key in [key for key in NO_MASS if key not in data]:
                info.context(f"body {reprlib.repr(data.get('ID'))} has no {key}", "it is zero")
                data = {**data, key: NO_MASS[key]}
        return data


class LimitsRecord(CobraRecord):
    """Of a joint; what is missing is unlimited."""

    lower: Limit = Field(None, validation_alias=AliasChoices("positionLower", "lower"))
    upper: Limit = Field(None, validation_alias=AliasChoices("positionUpper", "upper"))

    @model_validator(mode="before")
    @classmethod
    def _pair(cls, data: Any) -> Any:
        pair = data.get("position") if isinstance(data, dict) else None
        if isinstance(pair, list) and len(pair) == 2:
            return {"lower": pair[0], "upper": pair[1], **data}
        return data


class JointRecord(CobraRecord):
    """T_parent_child(q) = poseParent exp(z q) poseChild."""

    id: Id = Field(alias="ID")
    type: Literal["revolute", "continuous", "prismatic", "fixed"]
    parent: Id
    child: Id
    pose_parent: Pose = Field(default_factory=_unit, alias="poseParent")
    pose_child: Pose = Field(default_factory=_unit, alias="poseChild")
    limits: LimitsRecord = Field(default_factory=lambda: LimitsRecord.model_validate({}))
    coulomb: Friction = Field(
        0.0, validation_alias=AliasChoices("frictionCoulomb", "coulombFriction")
    )
    viscous: Friction = Field(
        0.0, validation_alias=AliasChoices("frictionViscous", "viscousFriction")
    )
    motor_inertia: Friction = Field(0.0, alias="motorInertia")


class CobraModule(CobraRecord):
    """A module."""

    header: Header
    bodies: Annotated[
        list[BodyRecord], Field(min_length=1, max_length=MOST_PARTS), BeforeValidator(_listed)
    ]
    joints: Annotated[
        list[JointRecord], Field(max_length=MOST_PARTS), BeforeValidator(_listed)
    ] = []

    @model_validator(mode="after")
    def _not_too_many(self) -> CobraModule:
        for what in ("connectors", "visual", "collision"):
            count = sum(len(getattr(body, what)) for body in self.bodies)
            if count > MOST_PARTS:
                raise ValueError(f"{count} entries of {what}; a module has at most {MOST_PARTS}")
        return self


class ModuleSetRecord(CobraRecord):
    """A file of modules: a list of them, one alone, or a list under ``modules``."""

    modules: Annotated[
        list[CobraModule],
        Field(min_length=1, max_length=MOST_MODULES),
        FailFast(),
        BeforeValidator(_listed),
    ]

    @model_validator(mode="before")
    @classmethod
    def _wrapped(cls, data: Any) -> Any:
        if isinstance(data, list) or (isinstance(data, dict) and "header" in data):
            return {"modules": data}
        return data


class AssemblyRecord(CobraRecord):
    """Which modules are connected, and where they stand."""

    order: Annotated[list[Id], Field(min_length=1, max_length=MOST_MODULES), FailFast()] = Field(
        alias="moduleOrder"
    )
    connections: Annotated[list[tuple[Index, Id, Index, Id]], Field(max_length=MOST_MODULES)] = (
        Field(alias="moduleConnection")
    )
    base_connection: list[Annotated[tuple[Index, Id], BeforeValidator(_first_two)]] = Field(
        [], alias="baseConnection"
    )
    base_pose: Annotated[list[Pose], FailFast()] = Field([], alias="basePose")


AnyRecord = TypeVar("AnyRecord", bound=CobraRecord)


def validated(
    model: type[AnyRecord], data: Any, path: Path, repairs: Repairs | None = None
) -> AnyRecord:
    """The content of a file, or an error that names the field."""
    try:
        return model.model_validate(data, context=repairs)
    except ValidationError as error:
        raise FileError(f"{path}: {describe(error, model)}") from None
