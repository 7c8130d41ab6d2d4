"""Datasheets as compact binary records, for the memory of the module they describe.

A record is a header with the module's own id, tagged fields, and a checksum. Numbers keep every
bit: ``decode(encode(kind, uid)).kind == kind``. docs/guide/records.md has the bytes.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections import Counter
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from modurob.errors import DatasheetError, FileError, choices
from modurob.modules.dh import PartMass, Segment, TwoPart, connector_pairs, frozen
from modurob.modules.files import check_version, read_document, write_document
from modurob.modules.module_type import ModuleType
from modurob.modules.record_fields import (
    NEEDED,
    Tag,
    read_field,
    split_fields,
    write_count,
    write_field,
)

MAGIC = b"MROB"
VERSION = 1
FORMAT = "modurob-record"  # of the JSON twin
HEADER = struct.Struct("<4sHI16s")  # magic, version, length of the record, id; then its checksum
CRC = struct.Struct("<I")
CONTENT = slice(HEADER.size + CRC.size, -CRC.size)
SMALLEST = HEADER.size + 2 * CRC.size
LARGEST_ID = 2**128 - 1
CACHE_SIZE = 4096  # contents of records
AGREE = 1e-9  # between Tab. I and II and the geometry beside them. [m, kg, kg m^2, and of a matrix]
TRIANGLE = (0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)  # rows and columns of an inertia's entries
LISTS = {
    Tag.BODY: "bodies",
    Tag.JOINT: "joints",
    Tag.PORT: "ports",
    Tag.SHAPE: "shapes",
    Tag.MESH: "meshes",
}
BODY_NAMES = ("parent", "child", "body")  # entries that are the number of a body in a record


class Record(NamedTuple):
    """Content of a module's memory.

    Attributes:
        uid: The module's own number, of up to 128 bits: a MAC address, an EUI-64 or a UUID.
        kind: Its datasheet.
        pairs: Extended Denavit-Hartenberg parameters (giusti2015, Tab. I and II) for pairs of
            docks, as the record has them.
        version: Of the record's layout.
        skipped: Tags of unknown fields, written by newer versions.
    """

    uid: int
    kind: ModuleType
    pairs: tuple[TwoPart, ...] = ()
    version: int = VERSION
    skipped: tuple[int, ...] = ()


# -- writing ---------------------------------------------------------------------------------------


def encode(kind: ModuleType, uid: int | bytes) -> bytes:
    """The record of one module.

    Args:
        kind: Its datasheet.
        uid: Its own number, 0 to 2^128 - 1, or up to 16 bytes, most significant first.
    """
    number = _checked_id(uid)
    try:
        with np.errstate(all="ignore"):  # overflows are found afterwards
            body = b"".join(write_field(tag, entries) for tag, entries in _fields(kind))
    except ValueError as error:
        raise DatasheetError(f"a {kind.name} does not fit into a record: {error}") from None
    header = HEADER.pack(MAGIC, VERSION, SMALLEST + len(body), number.to_bytes(16, "big"))
    data = header + CRC.pack(zlib.crc32(header)) + body
    return data + CRC.pack(zlib.crc32(data))


def _checked_id(uid: int | bytes) -> int:
    if isinstance(uid, bytes | bytearray) and 1 <= len(uid) <= 16:
        return int.from_bytes(uid, "big")
    if isinstance(uid, int) and not isinstance(uid, bool) and 0 <= uid <= LARGEST_ID:
        return uid
    raise DatasheetError(f"an id is a number of up to 128 bits or up to 16 bytes, got {uid!r:.60}")


def _fields(kind: ModuleType) -> list[tuple[Tag, dict[str, Any]]]:
    data = kind.model_dump()
    fields = [(Tag.KIND, data)]
    fields += [(tag, data) for tag in (Tag.TITLE, Tag.SOURCE) if data[tag.name.lower()]]
    for tag, name in LISTS.items():
        for entry in data[name]:
            entry |= {role: kind.body_index(entry[role]) for role in BODY_NAMES if role in entry}
            if tag is Tag.BODY:
                entry["inertia"] = np.ravel(entry["inertia"]).tolist()
            fields.append((tag, entry))
    for number, entry in enumerate(data["joints"]):
        if entry["max_effort"] or entry["max_velocity"]:
            fields.append((Tag.MOTOR, {**entry, "joint": number}))
    fields += [(Tag.IMU, {"body": k}) for k, body in enumerate(kind.bodies) if body.imu]
    labels, joints = [port.label for port in kind.ports], [None, *kind.joints]
    for pair in connector_pairs(kind):
        entries = {
            "input": labels.index(pair.input.label),
            "output": labels.index(pair.output.label),
            "joint": joints.index(pair.joint),
            "kinematics": (*pair.proximal, *pair.distal, pair.delta_j),
            "proximal": _numbers(pair.proximal_mass),
            "distal": _numbers(pair.distal_mass),
        }
        if not _finite(entries):
            raise ValueError("its lengths or masses are too large to calculate with")
        fields.append((Tag.PAIR, entries))
    return fields


def _finite(entries: dict[str, Any]) -> bool:
    return all(np.isfinite(entries[name]).all() for name in ("kinematics", "proximal", "distal"))


def _numbers(part: PartMass) -> list[float]:
    return [part.mass, *part.center.tolist(), *part.inertia[TRIANGLE].tolist()]


# -- reading ---------------------------------------------------------------------------------------


def decode(data: bytes) -> Record:
    """Read a record.

    Raises:
        FileError: Not a record, damaged, cut off, from a newer version, or of an impossible module.
            The message has the module's id wherever the header that holds it is whole.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise FileError(f"a record is bytes, got {type(data).__name__}")
    data = bytes(data)
    uid, version = _header(data)
    try:
        if zlib.crc32(data[: -CRC.size]) != CRC.unpack(data[-CRC.size :])[0]:
            raise ValueError("its checksum does not match: some of its bytes are damaged")
        kind, pairs, skipped = _content(data[CONTENT])
    except ValueError as error:  # DatasheetError and bad UTF-8 are ValueErrors too
        raise FileError(f"record of module {id_text(uid)}: {error}") from None
    return Record(uid, kind, pairs, version, skipped)


def _header(data: bytes) -> tuple[int, int]:
    """Id and version; their place is the same in all versions."""
    if data[: len(MAGIC)] != MAGIC:
        raise FileError(f"not a module's record: it starts with {data[:4]!r} instead of {MAGIC!r}")
    if len(data) < HEADER.size + CRC.size:
        raise FileError(
            f"a record cut off inside its header: {len(data)} bytes, at least {SMALLEST}"
        )
    _, version, length, number = HEADER.unpack_from(data)
    if zlib.crc32(data[: HEADER.size]) != CRC.unpack_from(data, HEADER.size)[0]:
        raise FileError("a record with a damaged header, so its module's id is not known")
    uid = int.from_bytes(number, "big")
    check_version(version, f"record of module {id_text(uid)}", VERSION)
    if len(data) != length or length < SMALLEST:
        raise FileError(
            f"record of module {id_text(uid)}: {len(data)} bytes, but its header gives {length}"
        )
    return uid, version


@lru_cache(CACHE_SIZE)  # modules of one type differ in their ids only
@np.errstate(all="ignore")
def _content(body: bytes) -> tuple[ModuleType, tuple[TwoPart, ...], tuple[int, ...]]:
    """Datasheet, pairs and skipped fields."""
    found: dict[Tag, list[dict[str, Any]]] = {tag: [] for tag in Tag}
    skipped = []
    for tag, payload in split_fields(body):
        if tag in found:
            found[Tag(tag)].append(read_field(Tag(tag), payload))
        elif tag >= NEEDED:
            raise ValueError(f"field 0x{tag:02x} is needed and unknown here. Update modurob")
        else:
            skipped.append(tag)
    for tag in (Tag.KIND, Tag.TITLE, Tag.SOURCE):
        if len(found[tag]) > 1 or (tag is Tag.KIND and not found[tag]):
            raise ValueError(f"{len(found[tag])} {tag.name} fields where there should be one")
    kind = ModuleType(**_datasheet(found))
    possible = connector_pairs(kind) if found[Tag.PAIR] else []
    pairs = tuple(_pair(kind, possible, entries) for entries in found[Tag.PAIR])
    return kind, pairs, tuple(skipped)


def _datasheet(found: dict[Tag, list[dict[str, Any]]]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    data.update(*found[Tag.KIND])
    data.update(*found[Tag.TITLE])
    data.update(*found[Tag.SOURCE])
    names = [body["name"] for body in found[Tag.BODY]]
    for entry in found[Tag.MOTOR]:
        _item(found[Tag.JOINT], entry.pop("joint"), "joint").update(entry)
    for entry in found[Tag.IMU]:
        _item(found[Tag.BODY], entry["body"], "body")["imu"] = True
    for tag, name in LISTS.items():
        for entry in found[tag]:
            entry |= {key: _item(names, entry[key], "body") for key in BODY_NAMES if key in entry}
            if tag is Tag.BODY:
                entry["inertia"] = np.reshape(entry["inertia"], (3, 3)).tolist()
        data[name] = tuple(found[tag])
    return data


def _item(values: Any, index: int, what: str) -> Any:
    if index >= len(values):
        raise ValueError(f"it names {what} number {index} of {len(values)}")
    return values[index]


def _pair(kind: ModuleType, possible: list[TwoPart], entries: dict[str, Any]) -> TwoPart:
    """Tab. I and II of a pair of docks, if they agree with the geometry."""
    there, back = (_item(kind.ports, entries[name], "port") for name in ("input", "output"))
    right = next((p for p in possible if (p.input, p.output) == (there, back)), None)
    name, numbers = f"ports {there.label} and {back.label}", entries["kinematics"]
    if right is None:
        raise ValueError(f"no parameters are possible between {name}")
    if not _finite(entries):
        raise ValueError(f"its parameters between {name} are not all finite numbers")
    pair = right._replace(
        proximal=Segment(*numbers[:5]),
        distal=Segment(*numbers[5:10]),
        delta_j=numbers[10],
        proximal_mass=_mass(entries["proximal"]),
        distal_mass=_mass(entries["distal"]),
    )
    joint = None if entries["joint"] == 0 else _item(kind.joints, entries["joint"] - 1, "joint")
    off = [np.abs(pair.transform(q) - right.transform(q)).max() for q in (0.0, 1.0)]
    for found, part in zip(pair[7:9], right[7:9], strict=True):
        off.append(np.abs(np.subtract(_numbers(found), _numbers(part))).max())
    if joint != right.joint or not max(off) <= AGREE:  # a comparison with NaN is false
        raise ValueError(f"its parameters between {name} contradict its geometry")
    return pair


def _mass(numbers: tuple[float, ...]) -> PartMass:
    inertia = np.empty((3, 3))
    inertia[TRIANGLE] = inertia.T[TRIANGLE] = numbers[4:]
    return frozen(numbers[0], np.array(numbers[1:4]), inertia)


# -- for people ------------------------------------------------------------------------------------


def id_text(uid: int) -> str:
    """An id as people write it: ``02:42:ac:11:00:02``."""
    return uid.to_bytes(max(6, (uid.bit_length() + 7) // 8), "big").hex(":")


def describe(record: Record | bytes) -> str:
    """A record's content, and how many bytes each kind of field takes."""
    if isinstance(record, Record):
        data = encode(record.kind, record.uid)
    else:
        data, record = bytes(record), decode(record)
    count, size = Counter(), Counter()
    for tag, payload in split_fields(data[CONTENT]):
        name = Tag(tag).name if tag in set(Tag) else f"0x{tag:02x} (skipped)"
        count[name] += 1
        size[name] += 1 + len(write_count(len(payload))) + len(payload)
    kind = record.kind
    lines = [
        f"module {id_text(record.uid)}: {kind.name}, {kind.mass:g} kg, joints "
        f"{choices(f'{joint.name} ({joint.kind})' for joint in kind.joints)}",
        f"version {record.version}, {len(data)} bytes, checksum {data[-4:][::-1].hex()}",
        f"  header and checksum {SMALLEST} bytes",
    ]
    return "\n".join([*lines, *(f"  {count[key]} {key} {size[key]} bytes" for key in count)])


def write_json(record: Record, path: str | os.PathLike[str]) -> None:
    """Write the record for people: a JSON file with the id, the datasheet and Tab. I."""
    pairs = [
        {
            "input": pair.input.label,
            "output": pair.output.label,
            "joint": None if pair.joint is None else pair.joint.name,
            "proximal": pair.proximal._asdict(),
            "distal": pair.distal._asdict(),
            "delta_j": pair.delta_j,
        }
        for pair in record.pairs
    ]
    document = {"format": FORMAT, "version": VERSION, "uid": id_text(record.uid)}
    write_document(
        path, document | {"datasheet": record.kind.model_dump(mode="json"), "pairs": pairs}
    )


def read_json(path: str | os.PathLike[str]) -> Record:
    """Read what `write_json` wrote; the parameters are recalculated from the geometry."""
    return from_document(read_document(path, FORMAT, VERSION), str(path))


def from_document(data: dict[str, Any], where: str) -> Record:
    """The record of a file's content; `where` is the file's name for error messages."""
    try:
        uid = _read_id(data.get("uid"))
        if not isinstance(data.get("datasheet"), dict):
            raise DatasheetError("there is no datasheet in it")
        kind = ModuleType(**data["datasheet"])
    except ValueError as error:
        raise FileError(f"{where}: {error}") from None
    return Record(uid, kind, tuple(connector_pairs(kind)))


def _read_id(text: Any) -> int:
    try:
        return _checked_id(bytes.fromhex(text.replace(":", "")))
    except (AttributeError, ValueError):
        raise DatasheetError(
            f"uid must be up to 16 bytes in hexadecimal like 02:42:ac:11:00:02, got {text!r:.60}"
        ) from None
