"""The bytes of the bus: frames between neighbors, messages inside them, signals within a module.

docs/guide/bus.md has the tables. Only the standard library is needed, as in a module's firmware.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Any, NamedTuple

from modurob.distributed.agent import Message
from modurob.distributed.codec import U16, U32, U64, Counted, Layout, Number, Rest, Sized, Text
from modurob.distributed.codec import read as read_all

MAGIC = b"MB"
VERSION = 2
HEADER = struct.Struct("<2sBBII")  # magic, version, kind, link of the sender, of the receiver
CRC = struct.Struct("<I")
LARGEST_FRAME = 4096  # [bytes]
CHUNK = 1024  # bytes of a record in one message
LARGEST_RECORD = 1 << 20  # [bytes]
MOST_PORTS = 16  # what fits into one report
MOST_MODULES = 4096  # that a coordinator and a router remember
OWN = ""  # the port of a module's own sensors and motors


class FrameKind(IntEnum):
    HELLO = 1
    DATA = 2  # one message, repeated until acknowledged
    ACK = 3
    BATCH = 4  # messages of one cycle of a clocked loop; the next cycle makes up for a lost one


class Kind(IntEnum):
    """Of a message: 0x1_ goes to the coordinator, 0x2_ comes from it, 0x3_ stays in a module."""

    REPORT = 0x10
    RECORD = 0x11
    SENSE = 0x12
    ASK = 0x20
    TORQUE = 0x21
    HOLD = 0x22
    WRITE = 0x23
    PLUGGED = 0x30
    UNPLUGGED = 0x31
    SENSED = 0x32
    DRIVE = 0x33
    STORED = 0x34


class Wanted(IntEnum):
    """Subject of a request of the coordinator."""

    REPORT = 1
    RECORD = 2


class Status(IntEnum):
    """Of a neighbor whose connector is closed."""

    HEARD = 0
    EXPECTED = 1  # not heard yet
    SILENT = 2  # heard before


class Address(NamedTuple):
    """A module's id, and a number drawn when it was switched on: ids may be there twice."""

    uid: int
    boot: int


UNKNOWN = Address(0, 0)  # a neighbor that has not been heard yet


class Hello(NamedTuple):
    """Presence of a neighbor, and of its way to the coordinator."""

    address: Address  # of the sender
    number: int  # of hellos on this link, to leave out older ones
    beat: int  # the coordinator's newest beat at the sender; 0 without a way to it
    epoch: int  # count of ways that the sender has found; messages before may be lost
    child: bool  # whether the sender's way leads over the receiver
    port: str  # the sender's


class Neighbor(NamedTuple):
    """A docking as one side reports it."""

    port: str
    address: Address  # of the other side, as far as it was heard
    their_port: str
    turn: int  # [deg] about the port's normal
    status: Status


class ModuleReport(NamedTuple):
    """A module's name and neighbors; a larger number is newer."""

    origin: Address
    number: int
    name: str
    neighbors: tuple[Neighbor, ...]


class Piece(NamedTuple):
    """A piece of a module's record."""

    origin: Address
    total: int
    offset: int
    data: bytes


class Sense(NamedTuple):
    """Positions and velocities of a module's joints: q, v, q, v ... [rad, m, rad/s, m/s]"""

    origin: Address
    number: int
    cycle: int  # of the clocked loop, the newest that the module had; 0 before the first
    values: tuple[float, ...]


class Ask(NamedTuple):
    """Request for a report or a record."""

    target: Address
    wanted: Wanted


class Torque(NamedTuple):
    """Command for a module's motors; no values at all: let go. [N m, N]"""

    target: Address
    number: int
    values: tuple[float, ...]


class HoldGains(NamedTuple):
    """Gains with which a module holds its joints alone when torques do not come any more."""

    target: Address
    values: tuple[float, ...]  # stiffness, damping, friction of each [N m/rad, N m s/rad twice]


class Write(NamedTuple):
    """A piece of a new record for a module's memory."""

    target: Address
    total: int
    offset: int
    data: bytes


class Plugged(NamedTuple):
    """Signal of a connector that has closed. [turn in deg]"""

    port: str
    turn: int


class Unplugged(NamedTuple):
    """Signal of a connector that has opened."""

    port: str


class Sensed(NamedTuple):
    """Signal of a module's joints: q, v, q, v ... [rad, m, rad/s, m/s]"""

    values: tuple[float, ...]


class DriveSignal(NamedTuple):
    """Torques for the module's own motors; none: let go. [N m, N]"""

    values: tuple[float, ...]


class Stored(NamedTuple):
    """Signal of a new record in a module's memory."""

    record: bytes


class CycleBatch(NamedTuple):
    """Messages of one cycle: torques on their way out, readings on their way back."""

    number: int  # of the cycle
    complete: bool  # whether no more of this cycle come over this link
    messages: tuple[bytes, ...]


BusMessage = ModuleReport | Piece | Sense | Ask | Torque | HoldGains | Write
Signal = Plugged | Unplugged | Sensed | DriveSignal | Stored

_ADDRESS = Number(
    "16sI",
    lambda uid, boot: Address(int.from_bytes(uid, "big"), boot),
    lambda address: (address.uid.to_bytes(16, "big"), address.boot),
)
_HEAD = struct.Struct("<B16sI")  # kind and address, the begin of every message
_NEIGHBOR = Layout(Neighbor, Text(), _ADDRESS, Text(), U16, Number("B", Status))
HELLO = Layout(Hello, _ADDRESS, U32, U64, U32, Number("B", bool), Text())
MESSAGES: dict[Kind, Layout] = {
    Kind.REPORT: Layout(ModuleReport, _ADDRESS, U32, Text(), Counted(_NEIGHBOR)),
    Kind.RECORD: Layout(Piece, _ADDRESS, U32, U32, Rest()),
    Kind.SENSE: Layout(Sense, _ADDRESS, U32, U32, Rest("d")),
    Kind.ASK: Layout(Ask, _ADDRESS, Number("B", Wanted)),
    Kind.TORQUE: Layout(Torque, _ADDRESS, U32, Rest("d")),
    Kind.HOLD: Layout(HoldGains, _ADDRESS, Rest("d")),
    Kind.WRITE: Layout(Write, _ADDRESS, U32, U32, Rest()),
    Kind.PLUGGED: Layout(Plugged, Text(), U16),
    Kind.UNPLUGGED: Layout(Unplugged, Text()),
    Kind.SENSED: Layout(Sensed, Rest("d")),
    Kind.DRIVE: Layout(DriveSignal, Rest("d")),
    Kind.STORED: Layout(Stored, Rest()),
}
_KINDS = {layout.form: kind for kind, layout in MESSAGES.items()}
NUMBERS = Rest("I")  # the body of an ACK
BATCH = Layout(CycleBatch, U32, Number("B", bool), Counted(Sized()))
MOST_IN_BATCH = 255  # messages
LARGEST_BATCH = LARGEST_FRAME - HEADER.size - CRC.size  # [bytes]


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


def batches(number: int, messages: Iterable[bytes]) -> list[CycleBatch]:
    """Messages of a cycle in as many batches as frames need; the last one is complete."""
    found: list[list[bytes]] = [[]]
    room = LARGEST_BATCH
    for message in messages:
        size = 2 + len(message)
        if size > room - 6 or len(found[-1]) == MOST_IN_BATCH:
            found.append([])
            room = LARGEST_BATCH
        found[-1].append(message)
        room -= size
    last = len(found) - 1
    return [CycleBatch(number, k == last, tuple(part)) for k, part in enumerate(found)]


def pack(message: BusMessage | Signal) -> bytes:
    """Bytes of a message or of a signal within a module."""
    kind = _KINDS[type(message)]
    return bytes([kind]) + MESSAGES[kind].pack(message)


def own(signal: BusMessage | Signal) -> Message:
    """A signal as a message at the port of a module's own sensors and motors."""
    return Message(OWN, pack(signal))


def unpack(data: bytes) -> BusMessage:
    """A message in full; ValueError if it is none, or never leaves a module."""
    kind, _ = unpack_address(data)
    if kind >= Kind.PLUGGED:
        raise ValueError(f"kind {kind:#x} never leaves a module")
    return read_all(MESSAGES[kind], data, 1)


def unpack_signal(data: bytes) -> BusMessage | Signal:
    """A signal within a module, or a message that the coordinator is to send."""
    return read_all(MESSAGES[Kind(data[0])], data, 1)


def own_signals(outbox: Iterable[Message]) -> list[DriveSignal | Stored]:
    """Signals for a module's own motors and memory in what it sends."""
    signals = [unpack_signal(payload) for port, payload in outbox if port == OWN]
    return [signal for signal in signals if isinstance(signal, DriveSignal | Stored)]


def joined(found: tuple[tuple[int, bytes], ...], piece: Piece | Write) -> tuple[Any, bytes | None]:
    """Pieces with one more, by offset, and the record if it is whole now.

    Pieces of a record of another size are dropped.
    """
    end = piece.offset + len(piece.data)
    too_large = len(piece.data) > CHUNK or piece.total > LARGEST_RECORD
    if piece.offset % CHUNK or end > piece.total or too_large:
        return found, None
    parts = {k: data for k, data in found if k + len(data) <= piece.total}
    parts[piece.offset] = piece.data
    record = b"".join(data for _, data in sorted(parts.items()))
    if len(record) == piece.total:
        return (), record
    return tuple(sorted(parts.items())), None


def pieces(record: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Size, offset and data of each piece of a record."""
    for offset in range(0, max(1, len(record)), CHUNK):
        yield len(record), offset, record[offset : offset + CHUNK]


def unpack_address(data: bytes) -> tuple[Kind, Address]:
    """Kind of a message, and the module it comes from or goes to: all that a router reads."""
    if len(data) < _HEAD.size:
        raise ValueError("the message ends too early")
    code, uid, boot = _HEAD.unpack_from(data)
    return Kind(code), Address(int.from_bytes(uid, "big"), boot)
