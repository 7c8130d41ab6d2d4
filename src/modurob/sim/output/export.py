"""Trajectories for other programs: CSV for spreadsheets, a compact binary for the player."""

from __future__ import annotations

import csv
import io
import json
import os
import struct
from typing import Any, NamedTuple

import numpy as np

from modurob.errors import FileError, StateError
from modurob.model import Model
from modurob.modules.files import write_file
from modurob.sim.body_trajectory import BodyTrajectory
from modurob.sim.trajectory import Trajectory
from modurob.spatial import se3

MAGIC, VERSION = b"MRTJ", 1
HEAD = struct.Struct("<4sHHI")  # magic, version, reserved, bytes of the header
ALIGNMENT = 8  # bytes: a browser can lay typed arrays over the data


def refuse_batch(part: BodyTrajectory, what: str) -> None:
    """Refuse a batch, where one motion is meant."""
    if part.batch:
        raise StateError(
            f"{what} shows one motion; choose one of the batch of {part.batch}: "
            "trajectory.member(0)"
        )


# -- labels ----------------------------------------------------------------------------------------


class ColumnLabel(NamedTuple):
    """One line of a plot, one column of a table."""

    name: str
    unit: str


def _labels(*groups: tuple[str, str, str]) -> tuple[ColumnLabel, ...]:
    """Labels of groups (prefix, letters, unit)."""
    return tuple(ColumnLabel(head + x, unit) for head, letters, unit in groups for x in letters)


MOMENTUM = _labels(("p", "xyz", "N s"), ("L", "xyz", "N m s"))
QUANTITIES = {"q": "position", "v": "velocity", "a": "acceleration", "tau": "torque"}
UNITS = {"q": ("rad", "m"), "v": ("rad/s", "m/s"), "a": ("rad/s²", "m/s²"), "tau": ("N m", "N")}
BASES = {
    "q": _labels(("base ", "xyz", "m"), ("base q", "xyzw", "1")),
    "v": _labels(("base v", "xyz", "m/s"), ("base w", "xyz", "rad/s")),
    "a": _labels(("base a", "xyz", "m/s²"), ("base w", "xyz", "rad/s²")),
    "tau": _labels(("base f", "xyz", "N"), ("base n", "xyz", "N m")),
}


def columns(model: Model, quantity: str) -> list[ColumnLabel]:
    """Names and units of q, v, a or tau."""
    turning, sliding = UNITS[quantity]
    joints = [
        ColumnLabel(name, sliding if slides else turning)
        for name, slides in zip(model.joint_names, model.prismatic.tolist(), strict=True)
    ]
    return [*(BASES[quantity] if model.free_base else ()), *joints]


def channel_columns(model: Model, name: str, array: np.ndarray) -> list[ColumnLabel]:
    """Names of a channel's columns: the joints', where it has as many."""
    count = int(np.prod(array.shape[1:], dtype=int))
    if count == 1:
        return [ColumnLabel(name, "")]
    for quantity, size in (("v", model.nv), ("q", model.nq)):
        if array.shape[1:] == (size,):
            return [ColumnLabel(c.name, "") for c in columns(model, quantity)]
    return [ColumnLabel(f"{name}[{k}]", "") for k in range(count)]


# -- CSV -------------------------------------------------------------------------------------------


def table(part: BodyTrajectory) -> tuple[list[str], np.ndarray]:
    """Head and (N, columns) numbers of one part, without its times."""
    head: list[str] = []
    blocks: list[np.ndarray] = []
    for quantity in QUANTITIES:
        head += [f"{quantity} {name} [{unit}]" for name, unit in columns(part.model, quantity)]
        blocks.append(getattr(part, quantity))
    head += ["kinetic energy [J]", "potential energy [J]"]
    blocks += [part.kinetic_energy[:, None], part.potential_energy[:, None]]
    head += [f"{name} [{unit}]" for name, unit in MOMENTUM]
    blocks.append(part.momentum)
    for channel, values in part.channels.items():
        names = channel_columns(part.model, channel, values)
        head += [channel if c.name == channel else f"{channel} {c.name}" for c in names]
        blocks.append(values.reshape(len(part.t), -1))
    return head, np.concatenate(blocks, axis=1)


def to_csv(trajectory: Trajectory, path: str | os.PathLike[str]) -> None:
    """See `Trajectory.to_csv`."""
    for part in trajectory.parts:
        refuse_batch(part, "a CSV file")
    tables = [table(part) for part in trajectory.parts]
    several = len(tables) > 1
    head = list(dict.fromkeys(name for names, _ in tables for name in names))
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow([*(["part"] if several else []), "time [s]", *head])
    for part, (names, numbers) in zip(trajectory.parts, tables, strict=True):
        where = [head.index(name) for name in names]
        for t, row in zip(part.t.tolist(), numbers.tolist(), strict=True):
            cells: list[Any] = [""] * len(head)
            for k, value in zip(where, row, strict=True):
                cells[k] = repr(value)
            writer.writerow([*([part.name] if several else []), repr(t), *cells])
    write_file(path, stream.getvalue().encode("utf-8"))


# -- the player's binary ---------------------------------------------------------------------------


def to_bytes(trajectory: Trajectory) -> bytes:
    """See `Trajectory.to_bytes`."""
    blobs: list[bytes] = []
    size = 0

    def put(array: np.ndarray) -> dict[str, Any]:
        nonlocal size
        data = np.ascontiguousarray(array, dtype="<f4").tobytes()
        data += b"\0" * (-len(data) % ALIGNMENT)
        entry = {"offset": size, "shape": list(array.shape)}
        blobs.append(data)
        size += len(data)
        return entry

    parts = []
    for part in trajectory.parts:
        refuse_batch(part, "the player")
        bodies = part.model.forward_kinematics(part.q)
        parts.append(
            {
                "name": part.name,
                "joints": list(part.model.joint_names),
                "bodies": list(part.model.body_names),
                "free_base": part.model.free_base,
                "t": put(part.t),
                "q": put(part.q),
                "v": put(part.v),
                "tau": put(part.tau),
                "energy": put(np.stack([part.kinetic_energy, part.potential_energy], axis=-1)),
                "poses": put(se3.to_position_and_quaternion(bodies)),  # (N, bodies, 7)
                "channels": {name: put(values) for name, values in part.channels.items()},
            }
        )
    header = {
        "status": trajectory.status,
        "integrator": trajectory.integrator,
        "events": [{"time": e.time, "what": e.what} for e in trajectory.audit],
        "parts": parts,
    }
    text = json.dumps(header, allow_nan=False, ensure_ascii=False).encode("utf-8")
    text += b" " * (-(HEAD.size + len(text)) % ALIGNMENT)
    return b"".join([HEAD.pack(MAGIC, VERSION, 0, len(text)), text, *blobs])


def from_bytes(data: bytes) -> dict[str, Any]:
    """The header of a player's binary, with arrays in the place of their offsets."""
    if len(data) < HEAD.size or data[:4] != MAGIC:
        raise FileError("not a trajectory for the player: it does not begin with MRTJ")
    _, version, _, length = HEAD.unpack_from(data)
    if version > VERSION:
        raise FileError(f"version {version} was written by a newer modurob; reads up to {VERSION}")
    start = HEAD.size + length

    def filled(value: Any) -> Any:
        if isinstance(value, dict) and value.keys() == {"offset", "shape"}:
            count = int(np.prod(value["shape"], dtype=int))
            flat = np.frombuffer(data, "<f4", count, start + value["offset"])
            return flat.reshape(value["shape"])
        if isinstance(value, dict):
            return {key: filled(each) for key, each in value.items()}
        return [filled(each) for each in value] if isinstance(value, list) else value

    try:
        return filled(json.loads(data[HEAD.size : start]))
    except (ValueError, TypeError):
        raise FileError("not a trajectory for the player: it is cut off or damaged") from None
