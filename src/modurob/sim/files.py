"""Trajectories as files: arrays and a JSON header in one NPZ, written whole or not at all."""

from __future__ import annotations

import io
import json
import os
from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, FailFast, Field, FiniteFloat, ValidationError

from modurob.errors import FileError, ModurobError, StateError, WriteError
from modurob.model import Model
from modurob.model.checks import DTYPES, SHAPES
from modurob.model.model import frozen
from modurob.modules.datasheet import describe
from modurob.modules.files import check_document, checked_target, parse_json, write_file
from modurob.organism.files import from_document, to_document
from modurob.sim.events import Audit
from modurob.sim.npz import read_arrays
from modurob.sim.part import Part
from modurob.sim.trajectory import Trajectory

FORMAT, VERSION = "modurob-trajectory", 1
AUDIT_NUMBERS = ("time", "energy_before", "energy_after", "energy_lost", "latch_work")


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class ModelRecord(_Record):
    """Names of a model; its arrays stand beside the header."""

    joint_names: Annotated[list[str], FailFast()]
    locked: dict[str, str]
    body_names: Annotated[list[str], FailFast()]
    modules: dict[str, int]
    free_base: bool


class PartRecord(_Record):
    """One part of the run, without its arrays."""

    name: str
    driven: bool
    channels: Annotated[list[str], FailFast()]
    model: ModelRecord
    organism: dict[str, Any] | None


class AuditRecord(_Record):
    """What an event did."""

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


class TrajectoryHeader(_Record):
    """The header of a file."""

    format: Literal["modurob-trajectory"]
    version: Literal[1]
    status: Literal["finished", "canceled", "stopped"]
    message: str
    integrator: str
    parts: Annotated[list[PartRecord], Field(min_length=1), FailFast()]
    audit: Annotated[list[AuditRecord], FailFast()]


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
        "audit": [_audit_data(entry) for entry in trajectory.audit],
    }
    try:
        text = json.dumps(header, allow_nan=False, ensure_ascii=False).encode("utf-8")
    except ValueError as error:  # an energy that is not finite, a name that is no text
        raise WriteError(f"{path}: cannot be written: {error}") from None
    stream = io.BytesIO()
    np.savez(stream, header=np.frombuffer(text, dtype=np.uint8), **arrays)  # pyright: ignore[reportArgumentType]
    write_file(path, stream.getvalue())


def _put(part: Part, prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Collect the arrays of a part; returns what stands in the header."""
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
        "model": {
            "joint_names": list(model.joint_names),
            "locked": dict(model.locked),
            "body_names": list(model.body_names),
            "modules": dict(model.modules),
            "free_base": model.free_base,
        },
        "organism": None if part.organism is None else to_document(part.organism),
    }


def _audit_data(entry: Audit) -> dict[str, Any]:
    return {
        **{name: float(getattr(entry, name)) for name in AUDIT_NUMBERS},
        "what": entry.what,
        "momentum_before": entry.momentum_before.tolist(),
        "momentum_after": entry.momentum_after.tolist(),
        "gap": list(entry.gap),
        "grounded": entry.grounded,
    }


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
    try:
        return _restored(TrajectoryHeader.model_validate(data), arrays)
    except ValidationError as error:
        raise FileError(f"{path}: {describe(error, TrajectoryHeader)}") from None
    except ModurobError as error:
        raise FileError(f"{path}: {error}") from None


def _restored(header: TrajectoryHeader, arrays: dict[str, np.ndarray]) -> Trajectory:
    audit = [
        Audit(
            **{name: getattr(entry, name) for name in (*AUDIT_NUMBERS, "what", "grounded")},
            momentum_before=np.array(entry.momentum_before),
            momentum_after=np.array(entry.momentum_after),
            gap=(entry.gap[0], entry.gap[1]),
        )
        for entry in header.audit
    ]
    parts = [_part(data, f"{k}.", arrays) for k, data in enumerate(header.parts)]
    if arrays:
        raise FileError(f"array {ascii(next(iter(arrays)))[:60]} belongs to no part of the run")
    return Trajectory(tuple(parts), tuple(audit), header.status, header.message, header.integrator)


def _part(data: PartRecord, prefix: str, arrays: dict[str, np.ndarray]) -> Part:
    def taken(name: str, dtype: Any = float) -> np.ndarray:
        """An array with the machine's order of bytes, read-only."""
        array = arrays.pop(prefix + name, None)
        if array is None:
            raise FileError(f"there is no array {ascii(prefix + name)[:60]}")
        if dtype is not None and (array.dtype.kind, array.dtype.itemsize) != (
            np.dtype(dtype).kind,
            np.dtype(dtype).itemsize,
        ):
            raise FileError(f"{prefix}{name} must hold {np.dtype(dtype)}, got {array.dtype}")
        return np.require(array, array.dtype.newbyteorder("="), ["C", "A"])

    names = data.model
    model = frozen(
        Model(
            **{name: taken(f"model.{name}", DTYPES.get(name, float)) for name in SHAPES},
            joint_names=tuple(names.joint_names),
            locked=MappingProxyType(names.locked),
            body_names=tuple(names.body_names),
            modules=MappingProxyType(names.modules),
            free_base=names.free_base,
        )
    )
    t, q, v, a = (taken(name) for name in ("t", "q", "v", "a"))
    tau = taken("tau") if data.driven else np.broadcast_to(np.zeros(()), v.shape)
    channels = {name: taken(f"channel.{name}", None) for name in dict.fromkeys(data.channels)}
    _check_states(prefix, model, t, q, v, a, tau)
    for name, values in channels.items():
        if values.shape[:1] != t.shape:
            raise FileError(f"{prefix}channel.{name} has shape {values.shape}, expected {len(t)}")
    organism = None if data.organism is None else from_document(data.organism, "its organism")
    if organism is not None and set(organism.modules) != set(model.modules):
        raise FileError(f"part {prefix}organism has other modules than its model")
    for array in (t, q, v, a, tau, *channels.values()):
        array.setflags(write=False)
    return Part(
        name=data.name,
        model=model,
        organism=organism,
        t=t,
        q=q,
        v=v,
        tau=tau,
        channels=MappingProxyType(channels),
        _accelerations=lambda: a,
    )


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
