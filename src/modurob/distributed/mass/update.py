"""Updates that a module sends to a neighbor, and their bytes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from modurob.distributed.codec import U32, U64, Counted, Flagged, Layout, Rest, read
from modurob.distributed.mass.properties import NUMBERS as MASS_NUMBERS
from modurob.distributed.mass.properties import from_numbers, to_numbers
from modurob.distributed.reliable import NUMBERS

CONTACT_NUMBERS = 7  # position, normal, coefficient of friction
SUM_NUMBERS = 5  # see `Update.sums`
MOST_CONTACTS = 255  # one byte counts them; more are not sent, and the support looks smaller


class Election(NamedTuple):
    """The best ticket of a set of modules: later draws beat earlier ones, then numbers decide.

    Attributes:
        draw: Count of draws of its holder; 0 if no module of the set is a candidate.
        number: Drawn number.
        holders: Count of modules with this ticket; at most what 32 bits hold.
    """

    draw: int
    number: int
    holders: int

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
    """Everything on the sender's side of a connector, in the sender's connector frame.

    Attributes:
        mass: (4, 4) pseudo-inertia of all modules there.
        election: The best ticket there.
        contacts: (k, 7) points of contact there: position, normal, coefficient of friction.
        sums: (5,) of all joints there, in world axes: xx, xy, yy of ``j j^T / i`` and x, y of the
            momentum ``j v``, with j = m2 u x (p2 - q) the first moment that a joint moves, i its
            composite inertia and v its velocity. Zero while the world is unknown.
        pose: (4, 4) of the connector in the world, or None if the leader is not on that side.
    """

    mass: np.ndarray
    election: Election = NO_CANDIDATE
    contacts: np.ndarray = NO_CONTACTS
    sums: np.ndarray = NO_SUMS
    pose: np.ndarray | None = None


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
_UPDATE = Flagged(
    mass=(0, _Numbers(MASS_NUMBERS)),
    election=(2, Layout(Election, U32, U64, U32)),
    contacts=(2, Counted(_Numbers(CONTACT_NUMBERS))),
    pose=(4, _Numbers(12)),
    sums=(8, _Numbers(SUM_NUMBERS)),
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
    return _UPDATE.pack(parts)


def decode_update(data: bytes) -> Update | None:
    """The update in some bytes; None if they are damaged or not those of a body."""
    try:
        parts = read(_UPDATE, data)
    except ValueError:
        return None
    parts["mass"] = from_numbers(parts["mass"])
    if parts["mass"][3, 3] < 0:
        return None
    if "contacts" in parts:
        parts["contacts"] = np.array(parts["contacts"]).reshape(-1, CONTACT_NUMBERS)
    if "pose" in parts:
        parts["pose"] = np.vstack([parts["pose"].reshape(3, 4), [0.0, 0.0, 0.0, 1.0]])
    return Update(**parts)
