"""Byte layouts of the fields of a record: the table of docs/guide/records.md as code.

A layout lists the entries of one field in order; a codec writes and reads one entry. Newer writers
may append entries to a field, never insert them, so a reader takes the known ones and leaves
the rest.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

LARGEST_COUNT = 2**64 - 1  # the largest integer of firmware
KINDS = ("fixed", "revolute", "prismatic")
FORMS = ("box", "cylinder", "sphere")


class Tag(IntEnum):
    """Fields of version 1. A reader skips unknown tags below `NEEDED` and refuses those from it."""

    KIND = 0x01
    TITLE = 0x02
    SOURCE = 0x03
    BODY = 0x10
    JOINT = 0x11
    PORT = 0x12
    SHAPE = 0x13
    MESH = 0x14
    MOTOR = 0x15
    IMU = 0x16
    PAIR = 0x20


NEEDED = 0x80


class ByteReader:
    """Takes values from the front of some bytes; ValueError where they end too early."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        piece = self.data[self.at : self.at + size]
        if len(piece) < size:
            raise ValueError(f"it ends {size - len(piece)} bytes too early")
        self.at += size
        return piece

    @property
    def left(self) -> int:
        return len(self.data) - self.at


class Codec(NamedTuple):
    """Writer and reader of one entry."""

    write: Callable[[Any], bytes]
    read: Callable[[ByteReader], Any]


def write_count(value: int) -> bytes:
    """Unsigned LEB128: seven bits a byte, low ones first, top bit set when more follow."""
    if not 0 <= value <= LARGEST_COUNT:
        raise ValueError(f"{value} does not fit into 64 bits")
    result = bytearray()
    while value > 0x7F:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*result, value])


def read_count(reader: ByteReader) -> int:
    value = shift = 0
    while True:
        (byte,) = reader.take(1)
        value |= (byte & 0x7F) << shift
        if value > LARGEST_COUNT:
            raise ValueError("a number has more than 64 bits")
        if byte < 0x80:
            return value
        shift += 7


def write_text(value: str) -> bytes:
    data = value.encode("utf-8")
    return write_count(len(data)) + data


def read_text(reader: ByteReader) -> str:
    return reader.take(read_count(reader)).decode("utf-8")


COUNT, TEXT = Codec(write_count, read_count), Codec(write_text, read_text)
F64 = Codec(struct.Struct("<d").pack, lambda reader: struct.unpack("<d", reader.take(8))[0])


def optional(count: int, missing: float | None = None) -> Codec:
    """`count` numbers: a mask, low bits first, of those that are not `missing`, then these."""
    width = (count + 7) // 8
    # by its bits: minus zero equals zero and is written all the same
    absent = None if missing is None else F64.write(missing)

    def write(values: Sequence[float | None]) -> bytes:
        packed = [None if value is None else F64.write(value) for value in values]
        mask = sum(1 << k for k, data in enumerate(packed) if data != absent)
        return mask.to_bytes(width, "little") + b"".join(d for d in packed if d and d != absent)

    def read(reader: ByteReader) -> tuple[float | None, ...]:
        mask = int.from_bytes(reader.take(width), "little")
        if mask >> count:
            raise ValueError(f"a mask names more than {count} numbers")
        return tuple(F64.read(reader) if mask >> k & 1 else missing for k in range(count))

    return Codec(write, read)


def floats(count: int) -> Codec:
    """`count` numbers, those that are zero left out."""
    return optional(count, 0.0)


def word(words: Sequence[str]) -> Codec:
    """One of some words: a byte, its place in the list."""

    def read(reader: ByteReader) -> str:
        (place,) = reader.take(1)
        if place >= len(words):
            raise ValueError(f"byte {place} is none of {', '.join(words)}")
        return words[place]

    return Codec(lambda value: bytes([words.index(value)]), read)


def several(codec: Codec) -> Codec:
    """A count, then so many entries."""

    def write(values: Sequence[Any]) -> bytes:
        return write_count(len(values)) + b"".join(map(codec.write, values))

    def read(reader: ByteReader) -> tuple[Any, ...]:
        many = read_count(reader)
        if many > reader.left:
            raise ValueError(f"a list of {many} entries in {reader.left} bytes")
        return tuple(codec.read(reader) for _ in range(many))

    return Codec(write, read)


def flags(count: int) -> Codec:
    """A byte with one bit for each truth value; higher bits belong to newer writers."""

    def read(reader: ByteReader) -> tuple[bool, ...]:
        (bits,) = reader.take(1)
        return tuple(bool(bits >> k & 1) for k in range(count))

    return Codec(lambda values: bytes([sum(bool(v) << k for k, v in enumerate(values))]), read)


def _write_label(label: int | str) -> bytes:
    if isinstance(label, str):
        return b"\x01" + write_text(label)
    # zigzag: 0, -1, 1, -2 ... become 0, 1, 2, 3 ...
    return b"\x00" + write_count(2 * label if label >= 0 else -2 * label - 1)


def _read_label(reader: ByteReader) -> int | str:
    if word(("number", "name")).read(reader) == "name":
        return read_text(reader)
    coded = read_count(reader)
    return -(coded + 1) // 2 if coded & 1 else coded // 2


VECTOR = floats(3)
PLACE = {"position": VECTOR, "rpy": VECTOR}
DRIVE = ("rotor_inertia", "gear_ratio", "stiffness", "damping")
LIMITS = ("max_force", "max_torque")
OPTIONAL = {DRIVE: ("rotor_inertia",), LIMITS: LIMITS}  # left out unless one of these is given
# by the name of a field of the datasheet, or by those of several that are written as one entry
Layout = Mapping[str | tuple[str, ...], Codec]
LAYOUTS: dict[Tag, Layout] = {
    Tag.KIND: {
        "name": TEXT,
        "symbol": TEXT,
        "size": F64,
        ("nominal", "grid", "virtual"): flags(3),
        "dyad_joint": Codec(lambda name: write_text(name or ""), lambda r: read_text(r) or None),
    },
    Tag.TITLE: {"title": TEXT},
    Tag.SOURCE: {"source": TEXT},
    Tag.BODY: {"name": TEXT, "mass": F64, "center_of_mass": VECTOR, "inertia": floats(9)},
    Tag.JOINT: {
        "name": TEXT,
        "kind": word(KINDS),
        "parent": COUNT,
        "child": COUNT,
        **PLACE,
        "axis": VECTOR,
        ("lower", "upper"): optional(2),
        ("viscous", "coulomb"): floats(2),
        DRIVE: optional(4),
    },
    Tag.PORT: {
        "label": Codec(_write_label, _read_label),
        "body": COUNT,
        "position": VECTOR,
        "normal": VECTOR,
        "reference": VECTOR,
        "turns": several(COUNT),
        "connector": TEXT,
        "mates": several(TEXT),
        "side": COUNT,
        LIMITS: optional(2),
    },
    Tag.SHAPE: {"body": COUNT, "form": word(FORMS), "size": several(F64), **PLACE, "color": TEXT},
    Tag.MESH: {"body": COUNT, "file": TEXT, "scale": VECTOR, **PLACE},
    Tag.MOTOR: {"joint": COUNT, ("max_effort", "max_velocity"): optional(2)},
    Tag.IMU: {"body": COUNT},
    Tag.PAIR: {
        "input": COUNT,
        "output": COUNT,
        "joint": COUNT,
        "kinematics": floats(11),
        "proximal": floats(10),
        "distal": floats(10),
    },
}


def write_field(tag: Tag, entries: Mapping[str, Any]) -> bytes:
    """One whole field: tag, length, entries."""
    payload = b"".join(
        codec.write(entries[name] if isinstance(name, str) else [entries[each] for each in name])
        for name, codec in LAYOUTS[tag].items()
        if name not in OPTIONAL or any(entries[each] for each in OPTIONAL[name])
    )
    return bytes([tag]) + write_count(len(payload)) + payload


def split_fields(data: bytes) -> list[tuple[int, bytes]]:
    """(tag, payload) of all fields, known or not, in order."""
    reader, fields = ByteReader(data), []
    while reader.left:
        (tag,) = reader.take(1)
        fields.append((tag, reader.take(read_count(reader))))
    return fields


def read_field(tag: Tag, payload: bytes) -> dict[str, Any]:
    """The entries of a field by name; what a newer writer appended stays unread."""
    reader, entries = ByteReader(payload), {}
    for name, codec in LAYOUTS[tag].items():
        if name in OPTIONAL and not reader.left:
            continue
        value = codec.read(reader)
        entries |= {name: value} if isinstance(name, str) else zip(name, value, strict=True)
    return entries
