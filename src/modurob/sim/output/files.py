"""Trajectories as files: arrays and a JSON header in one NPZ, written whole or not at all."""

from __future__ import annotations

import dataclasses
import io
import json
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, FailFast, Field, FiniteFloat

from modurob.errors import FileError, ModurobError, StateError, WriteError
from modurob.model import Model, ModelOptions
from modurob.model.model import frozen
from modurob.model.validation import DTYPES, SHAPES
from modurob.modules.datasheet import validated
from modurob.modules.files import check_document, checked_target, parse_json, write_file
from modurob.organism.files import from_document, to_document
from modurob.sim.body_trajectory import BodyTrajectory
from modurob.sim.output.npz import read_arrays
from modurob.sim.reconfiguration.events import EventReport
from modurob.sim.trajectory import Trajectory

FORMAT, VERSION = "modurob-trajectory", 1


class _StrictRecord(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class OptionsRecord(_StrictRecord):
    """Options of a model that was built from the organism of its part."""

    hinges: str
    base: str | list[str]
    gravity: Annotated[list[FiniteFloat], Field(min_length=3, max_length=3)]
    locked: dict[str, FiniteFloat] = Field(default_factory=dict)
    elastic: bool = True


class ModelRecord(_StrictRecord):
    """Names of a model; its arrays are members of the archive."""

    joint_names: Annotated[list[str], FailFast()]
    locked: dict[str, str]
    body_names: Annotated[list[str], FailFast()]
    modules: dict[str, int]
    free_base: bool
    options: OptionsRecord | None = None


class BodyTrajectoryRecord(_StrictRecord):
    """One part of the run, without its arrays."""

    name: str
    driven: bool
    channels: Annotated[list[str], FailFast()]
    model: ModelRecord
    organism: dict[str, Any] | None


class EventReportRecord(_StrictRecord):
    """Report of an event."""

    time: FiniteFloat
    what: str
    momentum_before: Annotated[list[FiniteFloat], Field(min_length=6, max_length=6)]
    momentum_after: Annotated[list[FiniteFloat], Field(min_length=6, max_length=6)]
    energy_before: FiniteFloat
    energy_after: FiniteFloat
    energy_lost: FiniteFloat
    latch_work: FiniteFloat
    gap: Annotated[list[FiniteFloat], Field(min_length=2, max_length=2)]
    grounded: bool


class TrajectoryHeader(_StrictRecord):
    """The header of a file."""

    format: Literal["modurob-trajectory"]
    version: Literal[1]
    status: Literal["finished", "canceled", "stopped"]
    message: str
    integrator: str
    parts: Annotated[list[BodyTrajectoryRecord], Field(min_length=1), FailFast()]
    audit: Annotated[list[EventReportRecord], FailFast()]


def save(trajectory: Trajectory, path: str | os.PathLike[str]) -> None:
    """See `Trajectory.save`."""
    path = checked_target(path)
    arrays: dict[str, np.ndarray] = {}
    parts = [_put(part, f"{k}.", arrays) for k, part in enumerate(trajectory.parts)]
    header = {
        "format": FORMAT,
        "version": VERSION,
        "status": trajectory.status,
        "message": trajectory.message,
        "integrator": trajectory.integrator,
        "parts": parts,
        "audit": [vars(entry) for entry in trajectory.audit],
    }
    try:
        text = json.dumps(header, allow_nan=False, ensure_ascii=False, default=_plain).encode()
    except ValueError as error:  # an energy that is not finite, a name that is no text
        raise WriteError(f"{path}: cannot be written: {error}") from None
    stream = io.BytesIO()
    np.savez(stream, header=np.frombuffer(text, dtype=np.uint8), **arrays)  # pyright: ignore[reportArgumentType]
    write_file(path, stream.getvalue())


def _put(part: BodyTrajectory, prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Collect the arrays of a part; return its entry in the header."""
    model = part.model
    driven = bool(part.tau.any())
    for name in ("t", "q", "v", "a", *(("tau",) if driven else ())):
        arrays[prefix + name] = getattr(part, name)
    for name, values in part.channels.items():
        arrays[f"{prefix}channel.{name}"] = values
    for name in SHAPES:
        arrays[f"{prefix}model.{name}"] = getattr(model, name)
    return {
        "name": part.name,
        "driven": driven,
        "channels": list(part.channels),
        "model": {name: getattr(model, name) for name in ModelRecord.model_fields},
        "organism": None if part.organism is None else to_document(part.organism),
    }


def _plain(x: Any) -> Any:
    """Values that JSON does not have: mappings, options, and arrays and numbers of NumPy."""
    if isinstance(x, ModelOptions):
        return {**dataclasses.asdict(x), "locked": dict(x.locked)}
    return dict(x) if isinstance(x, Mapping) else x.tolist()


def load(path: str | os.PathLike[str]) -> Trajectory:
    """See `Trajectory.load`."""
    arrays = read_arrays(path, FORMAT)
    header = arrays.pop("header", None)
    if header is None or header.dtype != np.uint8 or header.ndim != 1:
        raise FileError(f"{path}: not a {FORMAT} file: it has no header")
    try:
        text = header.tobytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: byte {error.start} of its header is not UTF-8") from None
    data = parse_json(text, path)
    check_document(data, path, FORMAT, VERSION)
    checked = validated(TrajectoryHeader, data, path)
    try:
        return _restored(checked, arrays)
    except ModurobError as error:
        raise FileError(f"{path}: {error}") from None


def _restored(header: TrajectoryHeader, arrays: dict[str, np.ndarray]) -> Trajectory:
    arrays_of = {"momentum_before": np.array, "momentum_after": np.array, "gap": tuple}
    audit = [
        EventReport(**{name: arrays_of.get(name, lambda x: x)(x) for name, x in entry})
        for entry in header.audit
    ]
    parts = [_part(data, f"{k}.", arrays) for k, data in enumerate(header.parts)]
    if arrays:
        raise FileError(f"array {ascii(next(iter(arrays)))[:60]} belongs to no part of the run")
    return Trajectory(tuple(parts), tuple(audit), header.status, header.message, header.integrator)


def _part(data: BodyTrajectoryRecord, prefix: str, arrays: dict[str, np.ndarray]) -> BodyTrajectory:
    def taken(name: str, dtype: Any = float) -> np.ndarray:
        """An array with the machine's order of bytes, read-only."""
        array = arrays.pop(prefix + name, None)
        if array is None:
            raise FileError(f"there is no array {ascii(prefix + name)[:60]}")
        native = array.dtype.newbyteorder("=")
        if dtype is not None and native != np.dtype(dtype):
            raise FileError(f"{prefix}{name} must hold {np.dtype(dtype)}, got {array.dtype}")
        return np.require(array, native, ["C", "A"])

    names = data.model
    organism = None if data.organism is None else from_document(data.organism, "its organism")
    if organism is not None and set(organism.modules) != set(names.modules):
        raise FileError(f"part {prefix}organism has other modules than its model")
    if names.options is not None and organism is None:
        raise FileError(f"part {prefix}model has options, but its organism is missing")
    built = names.options is not None  # always None in files of earlier versions
    for name in ("armature", "stiffness"):  # they had no rotors and springs
        arrays.setdefault(f"{prefix}model.{name}", np.zeros(len(names.joint_names)))
    model = frozen(
        Model(
            **{name: taken(f"model.{name}", DTYPES.get(name, float)) for name in SHAPES},
            joint_names=tuple(names.joint_names),
            locked=MappingProxyType(names.locked),
            body_names=tuple(names.body_names),
            modules=MappingProxyType(names.modules),
            free_base=names.free_base,
            organism=organism if built else None,
            options=ModelOptions(**names.options.model_dump()) if names.options else None,
        )
    )
    t, q, v, a = (taken(name) for name in ("t", "q", "v", "a"))
    tau = taken("tau") if data.driven else np.broadcast_to(np.zeros(()), v.shape)
    channels = {name: taken(f"channel.{name}", None) for name in dict.fromkeys(data.channels)}
    _check_states(prefix, model, t, q, v, a, tau)
    for name, values in channels.items():
        if values.shape[:1] != t.shape:
            raise FileError(f"{prefix}channel.{name} has shape {values.shape}, expected {len(t)}")
    for array in (t, q, v, a, tau, *channels.values()):
        array.setflags(write=False)
    kept = MappingProxyType(channels)
    return BodyTrajectory(data.name, model, organism, t, q, v, tau, kept, lambda: a)


def _check_states(prefix: str, model: Model, t: Any, q: Any, v: Any, a: Any, tau: Any) -> None:
    """Refuse arrays that do not fit together or hold no states of the model."""
    if q.ndim < 2 or t.shape != q.shape[:1] or len(t) == 0 or 0 in q.shape[1:-1]:
        raise FileError(f"{prefix}t {t.shape} and {prefix}q {q.shape} do not fit together")
    expected = (*q.shape[:-1], model.nv)
    if not v.shape == a.shape == tau.shape == expected:
        shapes = f"v {v.shape}, a {a.shape}, tau {tau.shape}"
        raise FileError(f"{shapes} of part {prefix[:-1]} do not fit together: expected {expected}")
    if not (np.isfinite(t).all() and (np.diff(t) > 0).all()):
        raise FileError(f"{prefix}t must be finite times that increase")
    try:
        model.check_configuration(q)
        model.check_velocity(v)
    except StateError as error:
        raise FileError(f"part {prefix[:-1]}: {error}") from None
