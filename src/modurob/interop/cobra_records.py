"""CoBRA's files: JSON, checked field by field so that an error names the field."""

from __future__ import annotations

import json
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
    ValidationInfo,
    model_validator,
)
from pydantic.alias_generators import to_camel

from modurob.checks import as_floats
from modurob.interop.conventions import LARGEST_NUMBER, Repairs
from modurob.modules.datasheet import ONE_LINE, validated
from modurob.modules.datasheet import Number as AnyNumber
from modurob.modules.files import parse_json, read_text, write_file

MOST_MODULES = 100_000
MOST_PARTS = 1000  # bodies, connectors, ... of one module: checking a datasheet takes the square
NO_MASS = {"mass": 0.0, "inertia": [[0.0] * 3] * 3, "r_com": [0.0] * 3}
UNIT = np.eye(4)
UNIT.setflags(write=False)


# -- types of the fields ---------------------------------------------------------------------------


def _limit(value: float | None) -> float | None:
    """Infinite, missing and not a number are all no limit."""
    return value if value is not None and math.isfinite(value) else None


def _as_pose(rows: Any) -> np.ndarray:
    T = as_floats(rows)
    fits = T.shape == (4, 4) and np.abs(T).max() <= LARGEST_NUMBER  # a NaN is no less than that
    if not fits or np.abs(T[3] - UNIT[3]).max() > 1e-9:
        raise ValueError("a pose is a 4x4 matrix of numbers whose last row is 0, 0, 0, 1")
    return T


# a single entry may be given instead of a list of one
Listed = BeforeValidator(lambda value: [value] if isinstance(value, dict) else value)
# module and connector; Timor appends the number of the pose
FirstTwo = BeforeValidator(lambda value: value[:2] if isinstance(value, list) else value)
SizeList = BeforeValidator(lambda v: () if v is None else [v] if isinstance(v, int | float) else v)
Id = Annotated[str, Field(max_length=200, pattern=ONE_LINE)]
Number = Annotated[AnyNumber, Field(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)]
Vector = tuple[Number, Number, Number]
Index = Annotated[int, Strict()]
Pose = Annotated[np.ndarray, PlainValidator(_as_pose)]
Limit = Annotated[Annotated[float, Strict()] | None, AfterValidator(_limit)]
Friction = Annotated[Number, Field(ge=0)]


# -- records ---------------------------------------------------------------------------------------


class CobraRecord(BaseModel):
    """Part of a file; fields that modurob does not use are ignored."""

    model_config = ConfigDict(
        extra="ignore",
        arbitrary_types_allowed=True,
        populate_by_name=True,
        alias_generator=to_camel,
    )


class Header(CobraRecord):
    """Identity of a module."""

    id: Id = Field(alias="ID")
    name: str = ""
    affiliation: Any = ()


class ConnectorRecord(CobraRecord):
    """A place where another module docks: z outward."""

    id: Id = Field(alias="ID")
    pose: Pose = UNIT
    gender: Literal["f", "female", "m", "male", "h", "hermaphroditic"] = "h"
    type: str = ""
    size: Annotated[tuple[Annotated[Number, Field(ge=0)], ...], SizeList] = ()


class GeometryRecord(CobraRecord):
    """A solid; the parameters depend on the type."""

    type: str
    parameters: dict[str, Any] = {}
    pose: Pose = UNIT


class BodyRecord(CobraRecord):
    """A rigid body; the inertia is about the center of mass."""

    id: Id = Field(alias="ID")
    mass: Number
    inertia: tuple[Vector, Vector, Vector]
    r_com: Vector = Field(alias="r_com")
    connectors: Annotated[list[ConnectorRecord], FailFast(), Listed] = []
    visual: Annotated[list[GeometryRecord], FailFast(), Listed] = []
    collision: Annotated[list[GeometryRecord], FailFast(), Listed] = []

    @model_validator(mode="before")
    @classmethod
    def _unfolded(cls, data: Any, info: ValidationInfo) -> Any:
        """Mass, inertia and r_com may be together under ``inertia``."""
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
    """Of a joint; missing ones are infinite."""

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
    pose_parent: Pose = UNIT
    pose_child: Pose = UNIT
    limits: LimitsRecord = Field(default_factory=lambda: LimitsRecord.model_validate({}))
    coulomb: Friction = Field(
        0.0, validation_alias=AliasChoices("frictionCoulomb", "coulombFriction")
    )
    viscous: Friction = Field(
        0.0, validation_alias=AliasChoices("frictionViscous", "viscousFriction")
    )
    motor_inertia: Friction = 0.0
    gear_ratio: Annotated[Number, Field(gt=0)] = 1.0


class CobraModule(CobraRecord):
    """A module."""

    header: Header
    bodies: Annotated[list[BodyRecord], Field(min_length=1, max_length=MOST_PARTS), Listed]
    joints: Annotated[list[JointRecord], Field(max_length=MOST_PARTS), Listed] = []

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
        list[CobraModule], Field(min_length=1, max_length=MOST_MODULES), FailFast(), Listed
    ]

    @model_validator(mode="before")
    @classmethod
    def _wrapped(cls, data: Any) -> Any:
        if isinstance(data, list) or (isinstance(data, dict) and "header" in data):
            return {"modules": data}
        return data


class AssemblyRecord(CobraRecord):
    """Connections between modules, and the place of the base."""

    module_order: Annotated[list[Id], Field(min_length=1, max_length=MOST_MODULES), FailFast()]
    module_connection: Annotated[list[tuple[Index, Id, Index, Id]], Field(max_length=MOST_MODULES)]
    base_connection: list[Annotated[tuple[Index, Id], FirstTwo]] = []
    base_pose: Annotated[list[Pose], FailFast()] = []


# -- files -----------------------------------------------------------------------------------------

AnyRecord = TypeVar("AnyRecord", bound=CobraRecord)


def read_record(
    model: type[AnyRecord], path: Path, repairs: Repairs | None = None
) -> tuple[AnyRecord, Any]:
    """The content of a file, checked and as it is, or an error that names the field."""
    # Infinity and NaN are numbers here, as Timor writes them
    data = parse_json(read_text(path), path, finite=False)
    return validated(model, data, path, repairs), data


def write_json(path: Path, data: Any) -> None:
    """JSON with one line for each vector; unlimited is ``Infinity``, as Timor reads it."""
    write_file(path, (_laid_out(data, 0) + "\n").encode("utf-8"))


def _laid_out(value: Any, depth: int) -> str:
    flat = json.dumps(value, ensure_ascii=False)
    nested = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list) or not any(isinstance(v, dict | list) for v in nested):
        return flat
    margin = "\n" + " " * (depth + 1)
    if isinstance(value, dict):
        entries = [f"{json.dumps(key)}: {_laid_out(v, depth + 1)}" for key, v in value.items()]
    else:
        entries = [_laid_out(entry, depth + 1) for entry in value]
    ends = "{}" if isinstance(value, dict) else "[]"
    return ends[0] + ",".join(margin + entry for entry in entries) + margin[:-1] + ends[1]
