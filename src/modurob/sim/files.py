"""Trajectories as files: arrays and a JSON header in one NPZ, written whole or not at all."""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from modurob.errors import FileError, ModurobError, WriteError
from modurob.model import Model
from modurob.model.model import frozen
from modurob.modules.files import write_file
from modurob.organism import Organism
from modurob.organism import load as load_organism
from modurob.sim.events import Audit
from modurob.sim.part import Part
from modurob.sim.trajectory import Trajectory

FORMAT, VERSION = "modurob-trajectory", 1
ARRAYS = (
    "parent", "placement", "screw", "prismatic", "lower", "upper", "viscous", "coulomb", "mass",
    "center", "inertia", "body_link", "body_placement", "base_pose", "gravity",
)  # fmt: skip
AUDIT_NUMBERS = ("time", "energy_before", "energy_after", "energy_lost", "latch_work")


def save(trajectory: Trajectory, path: str | os.PathLike[str]) -> None:
    """See `Trajectory.save`."""
    arrays: dict[str, np.ndarray] = {}
    try:
        parts = [_put(part, f"{k}.", arrays) for k, part in enumerate(trajectory.parts)]
    except WriteError as error:
        raise WriteError(f"{path}: {_why(error)}") from None
    header = {
        "format": FORMAT,
        "version": VERSION,
        "status": trajectory.status,
        "message": trajectory.message,
        "integrator": trajectory.integrator,
        "parts": parts,
        "audit": [_audit_data(entry) for entry in trajectory.audit],
    }
    text = json.dumps(header, allow_nan=False, ensure_ascii=False).encode("utf-8")
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
    for name in ARRAYS:
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
        "organism": None if part.organism is None else _organism_data(part.organism),
    }


def _organism_data(organism: Organism) -> Any:
    """The document of `Organism.save`."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "organism.json"
        organism.save(file)
        return json.loads(file.read_text(encoding="utf-8"))


def _why(error: FileError) -> str:
    """The message without the name of a file that the user never saw."""
    return str(error).partition(": ")[2]


def _organism(data: Any) -> Organism:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "organism.json"
        file.write_text(json.dumps(data), encoding="utf-8")
        try:
            return load_organism(file)
        except FileError as error:
            raise ValueError(f"its organism: {_why(error)}") from None


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
    try:
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
        header = json.loads(arrays["header"].tobytes().decode("utf-8"))
        _check(path, header)
        return _restored(header, arrays)
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (zipfile.BadZipFile, EOFError, AttributeError, UnicodeDecodeError) as error:
        raise FileError(f"{path}: not a {FORMAT} file ({type(error).__name__})") from None
    except (KeyError, ValueError, TypeError, IndexError, ModurobError) as error:
        raise FileError(f"{path}: not a {FORMAT} file: {_one_line(error)}") from None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _check(path: str | os.PathLike[str], header: Any) -> None:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise FileError(f"{path}: not a {FORMAT} file")
    version = header.get("version")
    if not isinstance(version, int) or version < 1:
        raise FileError(f"{path}: version must be {VERSION}, got {version!r}")
    if version > VERSION:
        raise FileError(
            f"{path}: version {version} was written by a newer modurob; this one reads up to "
            f"version {VERSION}. Update modurob to open it."
        )


def _restored(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Trajectory:
    for array in arrays.values():
        array.setflags(write=False)
    audit = [
        Audit(
            **{name: entry[name] for name in (*AUDIT_NUMBERS, "what", "grounded")},
            momentum_before=np.array(entry["momentum_before"]),
            momentum_after=np.array(entry["momentum_after"]),
            gap=tuple(entry["gap"]),
        )
        for entry in header["audit"]
    ]
    parts = [_part(data, f"{k}.", arrays) for k, data in enumerate(header["parts"])]
    return Trajectory(
        tuple(parts), tuple(audit), header["status"], header["message"], header["integrator"]
    )


def _part(data: dict[str, Any], prefix: str, arrays: dict[str, np.ndarray]) -> Part:
    names = data["model"]
    model = frozen(
        Model(
            **{name: arrays[f"{prefix}model.{name}"] for name in ARRAYS},
            joint_names=tuple(names["joint_names"]),
            locked=MappingProxyType(names["locked"]),
            body_names=tuple(names["body_names"]),
            modules=MappingProxyType(names["modules"]),
            free_base=names["free_base"],
        )
    )
    t, q, v, a = (arrays[prefix + name] for name in ("t", "q", "v", "a"))
    if q.shape[-1] != model.nq or v.shape != a.shape or len(t) != len(q):
        raise ValueError("its arrays do not fit together")
    rest = np.broadcast_to(np.zeros(()), v.shape)
    return Part(
        name=data["name"],
        model=model,
        organism=None if data["organism"] is None else _organism(data["organism"]),
        t=t,
        q=q,
        v=v,
        tau=arrays[f"{prefix}tau"] if data["driven"] else rest,
        channels=MappingProxyType(
            {name: arrays[f"{prefix}channel.{name}"] for name in data["channels"]}
        ),
        _accelerations=lambda: a,
    )
