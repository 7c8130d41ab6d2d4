"""How the fields of a record are written: the layouts of docs/guide/records.md, and no more.

A layout lists the entries of one field in order; a codec writes and reads one entry. Newer writers
may append entries to a field, never insert them, so a reader takes what it knows and leaves the
rest.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

LARGEST_COUNT = 2**64 - 1  # what firmware can hold
ZERO = struct.pack("<d", 0.0)  # minus zero has another sign bit and is written out
KINDS = ("fixed", "revolute", "prismatic")
FORMS = ("box", "cylinder", "sphere")
FLAGS = ("nominal", "grid", "virtual")
LIMITS = ("lower", "upper")


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
    PAIR = 0x20


NEEDED = 0x80


class Reader:
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
    """How one entry is written and read."""

    write: Callable[[Any], bytes]
    read: Callable[[Reader], Any]


# -- numbers and texts -----------------------------------------------------------------------------


def write_count(value: int) -> bytes:
    """Unsigned LEB128: seven bits a byte, low ones first, the top bit says that more follow."""
    if not 0 <= value <= LARGEST_COUNT:
        raise ValueError(f"{value} does not fit into 64 bits")
    result = bytearray()
    while value > 0x7F:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*result, value])


def read_count(reader: Reader) -> int:
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


def read_text(reader: Reader) -> str:
    return reader.take(read_count(reader)).decode("utf-8")


def read_float(reader: Reader) -> float:
    return struct.unpack("<d", reader.take(8))[0]


def floats(count: int) -> Codec:
    """`count` numbers: a mask, low bits first, of those that are not zero, then these."""
    width = (count + 7) // 8

    def write(values: Sequence[float]) -> bytes:
        packed = [struct.pack("<d", value) for value in values]
        mask = sum(1 << k for k, data in enumerate(packed) if data != ZERO)
        return mask.to_bytes(width, "little") + b"".join(data for data in packed if data != ZERO)

    def read(reader: Reader) -> tuple[float, ...]:
        mask = int.from_bytes(reader.take(width), "little")
        if mask >> count:
            raise ValueError(f"a mask names more than {count} numbers")
        return tuple(read_float(reader) if mask >> k & 1 else 0.0 for k in range(count))

    return Codec(write, read)


def word(words: Sequence[str]) -> Codec:
    """One of some words: a byte, its place in the list."""

    def read(reader: Reader) -> str:
        (place,) = reader.take(1)
        if place >= len(words):
            raise ValueError(f"byte {place} stands for none of {', '.join(words)}")
        return words[place]

    return Codec(lambda value: bytes([words.index(value)]), read)


def several(codec: Codec) -> Codec:
    """A count, then so many entries."""

    def write(values: Sequence[Any]) -> bytes:
        return write_count(len(values)) + b"".join(map(codec.write, values))

    def read(reader: Reader) -> tuple[Any, ...]:
        many = read_count(reader)
        if many > reader.left:
            raise ValueError(f"a list of {many} entries in {reader.left} bytes")
        return tuple(codec.read(reader) for _ in range(many))

    return Codec(write, read)


# -- entries with a form of their own --------------------------------------------------------------


def _write_flags(flags: Mapping[str, bool]) -> bytes:
    return bytes([sum(1 << k for k, name in enumerate(FLAGS) if flags[name])])


def _read_flags(reader: Reader) -> dict[str, bool]:
    (bits,) = reader.take(1)  # higher bits belong to newer writers
    return {name: bool(bits >> k & 1) for k, name in enumerate(FLAGS)}


def _write_limits(limits: Mapping[str, float | None]) -> bytes:
    there = [value for name in LIMITS if (value := limits[name]) is not None]
    mask = sum(1 << k for k, name in enumerate(LIMITS) if limits[name] is not None)
    return bytes([mask]) + struct.pack(f"<{len(there)}d", *there)


def _read_limits(reader: Reader) -> dict[str, float | None]:
    (mask,) = reader.take(1)
    return {name: read_float(reader) if mask >> k & 1 else None for k, name in enumerate(LIMITS)}


def _write_label(label: int | str) -> bytes:
    if isinstance(label, str):
        return b"\x01" + write_text(label)
    # zigzag: 0, -1, 1, -2 ... become 0, 1, 2, 3 ...
    return b"\x00" + write_count(2 * label if label >= 0 else -2 * label - 1)


def _read_label(reader: Reader) -> int | str:
    if word(("number", "name")).read(reader) == "name":
        return read_text(reader)
    coded = read_count(reader)
    return -(coded + 1) // 2 if coded & 1 else coded // 2


COUNT = Codec(write_count, read_count)
TEXT = Codec(write_text, read_text)
F64 = Codec(lambda value: struct.pack("<d", value), read_float)
VECTOR = floats(3)
LAYOUTS: dict[Tag, dict[str, Codec]] = {
    Tag.KIND: {
        "name": TEXT,
        "symbol": TEXT,
        "size": F64,
        "flags": Codec(_write_flags, _read_flags),
        "dyad_joint": TEXT,
    },
    Tag.TITLE: {"title": TEXT},
    Tag.SOURCE: {"source": TEXT},
    Tag.BODY: {"name": TEXT, "mass": F64, "center_of_mass": VECTOR, "inertia": floats(9)},
    Tag.JOINT: {
        "name": TEXT,
        "kind": word(KINDS),
        "parent": COUNT,
        "child": COUNT,
        "position": VECTOR,
        "rpy": VECTOR,
        "axis": VECTOR,
        "limits": Codec(_write_limits, _read_limits),
        "friction": floats(2),
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
    },
    Tag.SHAPE: {
        "body": COUNT,
        "form": word(FORMS),
        "size": several(F64),
        "position": VECTOR,
        "rpy": VECTOR,
        "color": TEXT,
    },
    Tag.MESH: {"body": COUNT, "file": TEXT, "scale": VECTOR, "position": VECTOR, "rpy": VECTOR},
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
    payload = b"".join(codec.write(entries[name]) for name, codec in LAYOUTS[tag].items())
    return bytes([tag]) + write_count(len(payload)) + payload


def split_fields(data: bytes) -> list[tuple[int, bytes]]:
    """(tag, payload) of all fields, known or not, in order."""
    reader, fields = Reader(data), []
    while reader.left:
        (tag,) = reader.take(1)
        fields.append((tag, reader.take(read_count(reader))))
    return fields


def read_field(tag: Tag, payload: bytes) -> dict[str, Any]:
    """The entries of a field by name; what a newer writer appended stays unread."""
    reader = Reader(payload)
    return {name: codec.read(reader) for name, codec in LAYOUTS[tag].items()}
