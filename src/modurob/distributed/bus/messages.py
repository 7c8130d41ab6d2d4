"""The bytes of the bus: frames between neighbours, messages inside them, signals within a module.

docs/guide/bus.md has the tables. Only the standard library is needed, as in a module's firmware.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple, TypeVar

MAGIC = b"MB"
VERSION = 1
HEADER = struct.Struct("<2sBBII")  # magic, version, kind, link of the sender, of the receiver
CRC = struct.Struct("<I")
LARGEST_FRAME = 4096  # [bytes]
CHUNK = 1024  # bytes of a record in one message
LARGEST_RECORD = 1 << 20  # [bytes]
LARGEST_TEXT = 64  # bytes of a name or a port's label
MOST_PORTS = 16  # what fits into one report
T = TypeVar("T")
OWN = ""  # the port of a module's own sensors and motors


class FrameKind(IntEnum):
    HELLO = 1
    DATA = 2
    ACK = 3


class Kind(IntEnum):
    """Of a message: 0x1_ goes to the coordinator, 0x2_ comes from it, 0x3_ stays in a module."""

    REPORT = 0x10
    RECORD = 0x11
    SENSE = 0x12
    ASK = 0x20
    TORQUE = 0x21
    PLUGGED = 0x30
    UNPLUGGED = 0x31
    SENSED = 0x32
    DRIVE = 0x33


class Wanted(IntEnum):
    """What the coordinator asks for."""

    REPORT = 1
    RECORD = 2


class Status(IntEnum):
    """Of a neighbour whose connector is closed."""

    HEARD = 0
    EXPECTED = 1  # not heard yet
    SILENT = 2  # heard before


class Address(NamedTuple):
    """A module's id, and a number drawn when it was switched on: ids may be there twice."""

    uid: int
    boot: int


NOBODY = Address(0, 0)  # a neighbour that has not been heard yet


class Hello(NamedTuple):
    """Says that a neighbour is there, and whether it has a way to the coordinator.

    Attributes:
        address: Of the sender.
        number: Of hellos on this link, to leave out older ones.
        beat: The coordinator's newest beat known to the sender; 0 without a way to it.
        epoch: How often the sender has found a way: what was under way before may be lost.
        child: Whether the sender's way leads over the receiver.
        port: The sender's.
    """

    address: Address
    number: int
    beat: int
    epoch: int
    child: bool
    port: str


class Neighbour(NamedTuple):
    """A docking as one side knows it.

    Attributes:
        address, their_port: Of the other side, as far as it was heard.
        turn: About the port's normal. [deg]
    """

    port: str
    address: Address
    their_port: str
    turn: int
    status: Status


class Report(NamedTuple):
    """What a module tells of itself; a larger number is newer."""

    origin: Address
    number: int
    name: str
    neighbours: tuple[Neighbour, ...]


class Piece(NamedTuple):
    """A piece of a module's record."""

    origin: Address
    total: int
    offset: int
    data: bytes


class Sense(NamedTuple):
    """Positions and velocities of a module's joints. [rad, m, rad/s, m/s]"""

    origin: Address
    number: int
    values: tuple[float, ...]  # q, v, q, v ...


class Ask(NamedTuple):
    target: Address
    wanted: Wanted


class Torque(NamedTuple):
    """What a module's motors shall do; no values at all: let go. [N m, N]"""

    target: Address
    number: int
    values: tuple[float, ...]


# -- frames ----------------------------------------------------------------------------------------


def pack_frame(kind: FrameKind, here: int, there: int, body: bytes) -> bytes:
    data = HEADER.pack(MAGIC, VERSION, kind, here, there) + body
    return data + CRC.pack(zlib.crc32(data))


def unpack_frame(data: bytes) -> tuple[FrameKind, int, int, bytes]:
    """Kind, link of the sender, link of the receiver, body; ValueError for anything else."""
    if not HEADER.size + CRC.size <= len(data) <= LARGEST_FRAME:
        raise ValueError(f"a frame of {len(data)} bytes")
    magic, version, kind, here, there = HEADER.unpack_from(data)
    if magic != MAGIC or version != VERSION:
        raise ValueError("not a frame of this bus")
    if zlib.crc32(data[: -CRC.size]) != CRC.unpack(data[-CRC.size :])[0]:
        raise ValueError("a damaged frame")
    return FrameKind(kind), here, there, data[HEADER.size : -CRC.size]


def pack_hello(hello: Hello) -> bytes:
    head = struct.pack("<IQIB", hello.number, hello.beat, hello.epoch, hello.child)
    return _address(hello.address) + head + _text(hello.port)


def unpack_hello(body: bytes) -> Hello:
    reader = _Reader(body)
    address = reader.address()
    number, beat, epoch, child = reader.take("<IQIB")
    return reader.last(Hello(address, number, beat, epoch, bool(child), reader.text()))


def pack_numbers(numbers: Sequence[int]) -> bytes:
    """The body of an ACK."""
    return struct.pack(f"<{len(numbers)}I", *numbers)


def unpack_numbers(body: bytes) -> tuple[int, ...]:
    if len(body) % 4:
        raise ValueError("half a number")
    return struct.unpack(f"<{len(body) // 4}I", body)


# -- messages --------------------------------------------------------------------------------------


def pack_report(report: Report) -> bytes:
    parts = [struct.pack("<I", report.number), _text(report.name)]
    parts.append(bytes([len(report.neighbours)]))
    for port, address, their_port, turn, status in report.neighbours:
        parts += [_text(port), _address(address), _text(their_port)]
        parts.append(struct.pack("<HB", turn, status))
    return _head(Kind.REPORT, report.origin) + b"".join(parts)


def pack_piece(piece: Piece) -> bytes:
    head = _head(Kind.RECORD, piece.origin)
    return head + struct.pack("<II", piece.total, piece.offset) + piece.data


def pack_sense(sense: Sense) -> bytes:
    return _head(Kind.SENSE, sense.origin) + struct.pack("<I", sense.number) + _floats(sense.values)


def pack_ask(ask: Ask) -> bytes:
    return _head(Kind.ASK, ask.target) + bytes([ask.wanted])


def pack_torque(torque: Torque) -> bytes:
    head = _head(Kind.TORQUE, torque.target)
    return head + struct.pack("<I", torque.number) + _floats(torque.values)


def unpack_address(message: bytes) -> tuple[Kind, Address]:
    """Kind of a message, and the module it comes from or goes to: all that a router reads."""
    reader = _Reader(message)
    return Kind(reader.take("<B")[0]), reader.address()


def unpack(message: bytes) -> Report | Piece | Sense | Ask | Torque:
    """A message in full; ValueError if it is none."""
    reader = _Reader(message)
    kind, address = Kind(reader.take("<B")[0]), reader.address()
    if kind is Kind.REPORT:
        (number,), name, (count,) = reader.take("<I"), reader.text(), reader.take("<B")
        neighbours = tuple(reader.neighbour() for _ in range(count))
        return reader.last(Report(address, number, name, neighbours))
    if kind is Kind.RECORD:
        total, offset = reader.take("<II")
        return Piece(address, total, offset, reader.rest())
    if kind is Kind.ASK:
        return reader.last(Ask(address, Wanted(reader.take("<B")[0])))
    if kind in (Kind.SENSE, Kind.TORQUE):
        (number,) = reader.take("<I")
        form = Sense if kind is Kind.SENSE else Torque
        return form(address, number, reader.floats())
    raise ValueError(f"kind {kind:#x} never leaves a module")


# -- signals within a module -----------------------------------------------------------------------


def plugged(port: str, turn: int) -> bytes:
    """The connector at `port` has closed with this turn. [deg]"""
    return bytes([Kind.PLUGGED]) + _text(port) + struct.pack("<H", turn)


def unplugged(port: str) -> bytes:
    return bytes([Kind.UNPLUGGED]) + _text(port)


def sensed(values: Sequence[float]) -> bytes:
    """q, v, q, v ... of the module's joints. [rad, m, rad/s, m/s]"""
    return bytes([Kind.SENSED]) + _floats(values)


def drive(values: Sequence[float]) -> bytes:
    """Torques for the module's motors; none: let go. [N m, N]"""
    return bytes([Kind.DRIVE]) + _floats(values)


def unpack_plugged(signal: bytes) -> tuple[str, int]:
    reader = _Reader(signal[1:])
    return reader.text(), reader.take("<H")[0]


def unpack_unplugged(signal: bytes) -> str:
    return _Reader(signal[1:]).text()


def unpack_floats(signal: bytes) -> tuple[float, ...]:
    """The values of a `sensed` or `drive` signal."""
    return _Reader(signal[1:]).floats()


# -- pieces ----------------------------------------------------------------------------------------


def _head(kind: Kind, address: Address) -> bytes:
    return bytes([kind]) + _address(address)


def _address(address: Address) -> bytes:
    return address.uid.to_bytes(16, "big") + struct.pack("<I", address.boot)


def _text(value: str) -> bytes:
    data = value.encode("utf-8")
    if len(data) > LARGEST_TEXT:
        raise ValueError(f"{value!r:.80} is longer than {LARGEST_TEXT} bytes")
    return bytes([len(data)]) + data


def _floats(values: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(values)}d", *values)


class _Reader:
    """Takes values from the front of some bytes; ValueError where they end too early."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, layout: str) -> tuple:
        try:
            values = struct.unpack_from(layout, self.data, self.at)
        except struct.error:
            raise ValueError("it ends too early") from None
        self.at += struct.calcsize(layout)
        return values

    def address(self) -> Address:
        uid, boot = self.take("<16sI")
        return Address(int.from_bytes(uid, "big"), boot)

    def text(self) -> str:
        (size,) = self.take("<B")
        if size > LARGEST_TEXT:
            raise ValueError(f"a text of {size} bytes")
        return self.take(f"<{size}s")[0].decode("utf-8")

    def neighbour(self) -> Neighbour:
        port, address, their_port = self.text(), self.address(), self.text()
        turn, status = self.take("<HB")
        return Neighbour(port, address, their_port, turn, Status(status))

    def floats(self) -> tuple[float, ...]:
        data = self.rest()
        if len(data) % 8:
            raise ValueError("half a number")
        return struct.unpack(f"<{len(data) // 8}d", data)

    def rest(self) -> bytes:
        data, self.at = self.data[self.at :], len(self.data)
        return data

    def last(self, value: T) -> T:
        if self.at != len(self.data):
            raise ValueError(f"{len(self.data) - self.at} bytes too many")
        return value
