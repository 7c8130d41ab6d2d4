"""Updates between modules and their bytes; state of a module, and its estimate of the whole."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np

from modurob.distributed.codec import U32, U64, Counted, Flagged, Layout, Rest, read
from modurob.distributed.mass.module_body import Levers, Posture
from modurob.distributed.mass.properties import NUMBERS as MASS_NUMBERS
from modurob.distributed.mass.properties import from_numbers, moved, to_numbers
from modurob.distributed.reliable import NUMBERS, Channel
from modurob.spatial import se3

CONTACT_NUMBERS = 7  # position, normal, coefficient of friction
SUM_NUMBERS = 5  # see `Update.sums`
MOST_CONTACTS = 255  # one byte counts them; more are not sent, and the support looks smaller


class Election(NamedTuple):
    """The best ticket of a set of modules: later draws beat earlier ones, then numbers decide."""

    draw: int  # count of draws of its holder; 0 if no module of the set is a candidate
    number: int  # that it drew
    holders: int  # count of modules with this ticket; at most what 32 bits hold

    def merged(self, other: Election) -> Election:
        """The best ticket of both sets."""
        mine, theirs = self[:2], other[:2]
        if mine == theirs:
            return Election(*mine, min(self.holders + other.holders, NUMBERS - 1))
        return max(self, other)


NO_CANDIDATE = Election(0, 0, 0)
NO_CONTACTS = np.zeros((0, CONTACT_NUMBERS))
NO_SUMS = np.zeros(SUM_NUMBERS)


class Update(NamedTuple):
    """Everything on the sender's side of a docking, in the receiver's connector frame.

    Attributes:
        mass: (4, 4) pseudo-inertia of all modules there.
        election: The best ticket there.
        contacts: (k, 7) points of contact there: position, normal, coefficient of friction.
        sums: (5,) of all joints there, in world axes: xx, xy, yy of ``j j^T / i`` and x, y of the
            momentum ``j v``, with j = m2 u x (p2 - q) the first moment that a joint moves, i its
            composite inertia and v its velocity; `TaskSums` where the robot stands on feet. Zero
            while the world is unknown.
        pose: (4, 4) of the connector in the world, or None if the leader is not on that side.
    """

    mass: np.ndarray
    election: Election = NO_CANDIDATE
    contacts: np.ndarray = NO_CONTACTS
    sums: np.ndarray = NO_SUMS
    pose: np.ndarray | None = None

    def moved(self, T_ab: np.ndarray) -> Update:
        """The same, given in frame b, in frame a."""
        contacts = moved_contacts(T_ab, self.contacts)
        pose = None if self.pose is None else self.pose @ se3.inverse(T_ab)
        return self._replace(mass=moved(T_ab, self.mass), contacts=contacts, pose=pose)

    @classmethod
    def union(cls, parts: Sequence[Update]) -> Update:
        """Everything in several updates of one frame, added from the left: equal bits."""
        return cls(
            mass=reduce(np.add, (part.mass for part in parts)),
            election=reduce(Election.merged, (part.election for part in parts)),
            contacts=np.concatenate([part.contacts for part in parts]),
            sums=reduce(np.add, (part.sums for part in parts)),
        )


def moved_contacts(T: np.ndarray, contacts: np.ndarray) -> np.ndarray:
    """Contacts (k, 7) given in frame b in frame a, T = T_ab."""
    if not len(contacts):
        return NO_CONTACTS
    R, p = T[:3, :3], T[:3, 3]
    place, normal = contacts[:, :3] @ R.T + p, contacts[:, 3:6] @ R.T
    return np.concatenate([place, normal, contacts[:, 6:]], axis=1)


class Receipt(NamedTuple):
    """Number of a message, and boot number of its sender, which is new after a restart."""

    boot: int
    number: int


class Packet(NamedTuple):
    """A message: its own number, the last one received from the neighbor, and an update or none."""

    sent: Receipt
    received: Receipt
    update: bytes = b""


class _Numbers:
    """A field of finite f64 numbers."""

    def __init__(self, count: int) -> None:
        self._count = count

    def pack(self, value: np.ndarray) -> bytes:
        return value.tobytes()

    def unpack(self, data: bytes, at: int) -> tuple[np.ndarray, int]:
        found = np.frombuffer(data, "<f8", self._count, at).astype(float)
        if not np.isfinite(found).all():
            raise ValueError("a number is not finite")
        return found, at + 8 * self._count


_RECEIPT = Layout(Receipt, U64, U32)
_PACKET = Flagged(sent=(0, _RECEIPT), received=(0, _RECEIPT), update=(1, Rest()))


@lru_cache
def _update_layout(sums: int) -> Flagged:
    return Flagged(
        mass=(0, _Numbers(MASS_NUMBERS)),
        election=(2, Layout(Election, U32, U64, U32)),
        contacts=(2, Counted(_Numbers(CONTACT_NUMBERS))),
        pose=(4, _Numbers(12)),
        sums=(8, _Numbers(sums)),
    )


def encode(packet: Packet) -> bytes:
    """The bytes of a message."""
    parts = packet._asdict()
    return _PACKET.pack(parts if packet.update else {k: parts[k] for k in ("sent", "received")})


def decode(payload: bytes) -> Packet | None:
    """The message of some bytes, or None if they are none."""
    try:
        parts = read(_PACKET, payload)
    except ValueError:
        return None
    return None if parts.get("update") == b"" else Packet(**parts)


def encode_update(update: Update) -> bytes:
    """The parts that are there: a network without contacts sends masses alone."""
    parts: dict[str, Any] = {"mass": to_numbers(update.mass)}
    if update.election != NO_CANDIDATE:
        parts |= {"election": update.election, "contacts": update.contacts[:MOST_CONTACTS]}
    if update.pose is not None:
        parts["pose"] = update.pose[:3]
    if update.sums.any():
        parts["sums"] = update.sums
    return _update_layout(len(update.sums)).pack(parts)


def decode_update(data: bytes, sums: int = SUM_NUMBERS) -> Update | None:
    """The update, with a number of sums, in some bytes; None if they are damaged or no body's."""
    try:
        parts = read(_update_layout(sums), data)
    except ValueError:
        return None
    parts["mass"] = from_numbers(parts["mass"])
    if parts["mass"][3, 3] < 0:
        return None
    if "contacts" in parts:
        parts["contacts"] = np.array(parts["contacts"]).reshape(-1, CONTACT_NUMBERS)
    if "pose" in parts:
        parts["pose"] = np.vstack([parts["pose"].reshape(3, 4), [0.0, 0.0, 0.0, 1.0]])
    return Update(**({"sums": np.zeros(sums)} | parts))


class MassLink(Channel):
    """A connector that holds a neighbor; T_here_there (4, 4) is the neighbor's connector in it."""

    def __init__(self, here: int, T_here_there: np.ndarray) -> None:
        super().__init__(here)
        self.T_here_there = T_here_there
        self.heard: Update | None = None  # in this connector's frame
        self.posted = b""  # the last update posted
        self.sent_at = -math.inf  # [s] when it was last sent
        self.heard_at = -math.inf  # [s] last sign of the neighbor, or first missing acknowledgement
        self.ack_pending = False  # an acknowledgement is to be sent
        self.gone = False  # no answer for too long: `heard` does not count


@dataclass(frozen=True, eq=False)
class MassState:
    """State of a module: its measurements, and its links by connector."""

    boot: int  # drawn when it started
    q: np.ndarray  # (joints,) its own joints [rad, m]
    v: np.ndarray  # (joints,) [rad/s, m/s]
    free: np.ndarray  # (joints,) which of them can move
    contacts: np.ndarray = field(default_factory=lambda: NO_CONTACTS)  # (k, 7) in its own frame
    contact_body: int = 0
    pose: np.ndarray | None = None  # (4, 4) itself in the world, needed where it is in contact
    ticket: tuple[int, int] = (0, 0)  # (draw, number) in the election; (0, 0) for no candidate
    sums: np.ndarray = field(default_factory=lambda: NO_SUMS)  # its own part, as last computed
    links: Mapping[str, MassLink] = field(default_factory=dict)
    announced: bool = False  # the neighbors were sent what follows from all this


@dataclass(frozen=True, eq=False)
class MassEstimate:
    """Estimate of the whole by one module, in its own frame.

    Attributes:
        total: (4, 4) pseudo-inertia of everything in its reach.
        beyond: By connector, that of what lies there.
        contacts: (k, 7) all points of contact.
        leads: Whether it is the leader.
        leader_port: The connector towards the leader; None if it leads, or there is none.
        T_wm: (4, 4) itself in the world, or None.
    """

    total: np.ndarray
    beyond: Mapping[str, np.ndarray]
    contacts: np.ndarray
    leads: bool
    leader_port: str | None
    T_wm: np.ndarray | None

    def to_dict(self) -> dict[str, Any]:
        """Its fields by name, without those of a subclass."""
        return {f.name: getattr(self, f.name) for f in fields(MassEstimate)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MassEstimate:
        """The estimate whose fields are nested lists of numbers."""
        return cls(
            total=np.array(data["total"]),
            beyond={port: np.array(P) for port, P in data["beyond"].items()},
            contacts=np.array(data["contacts"]).reshape(-1, CONTACT_NUMBERS),
            leads=data["leads"],
            leader_port=data["leader_port"],
            T_wm=None if data["T_wm"] is None else np.array(data["T_wm"]),
        )


@dataclass(frozen=True, eq=False)
class MassView(MassEstimate):
    """Everything that follows from a module's state, in its own frame."""

    posture: Posture
    received: Mapping[str, Update]  # by connector, what lies beyond
    own: Update  # the module's own part
    levers: Levers | None  # effect of its joints, where it was computed
    sums: np.ndarray  # (5,) over all joints in its reach; see `Update.sums`
