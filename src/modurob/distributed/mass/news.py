"""What a module tells a neighbor, and how it looks as bytes."""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from modurob.distributed.mass.properties import NUMBERS as MASS_NUMBERS
from modurob.distributed.mass.properties import from_numbers, to_numbers
from modurob.distributed.serial import NUMBERS

CONTACT_NUMBERS = 7  # position, normal, coefficient of friction
SUM_NUMBERS = 5  # see `News.sums`
MOST_CONTACTS = 255  # one byte counts them; more are not told, and the support looks smaller

_HEADER = struct.Struct("<BQIQI")  # flags; boot and number of this one; boot and number received
_CONTEST = struct.Struct("<IQI")
_HAS_NEWS, _HAS_CONTEST, _HAS_POSE, _HAS_SUMS = 1, 2, 4, 8


class Contest(NamedTuple):
    """The best ticket of a set of modules: later draws beat earlier ones, then numbers decide.

    Attributes:
        draw: How often its holder has drawn; 0 if nobody in the set wants to lead.
        number: What it drew.
        holders: How many hold this ticket; at most what 32 bits hold.
    """

    draw: int
    number: int
    holders: int

    def merged(self, other: Contest) -> Contest:
        """The best ticket of both sets."""
        mine, theirs = self[:2], other[:2]
        if mine == theirs:
            return Contest(*mine, min(self.holders + other.holders, NUMBERS - 1))
        return max(self, other)


NOBODY = Contest(0, 0, 0)
NO_CONTACTS = np.zeros((0, CONTACT_NUMBERS))
NO_SUMS = np.zeros(SUM_NUMBERS)


class News(NamedTuple):
    """Everything on the sender's side of a connector, in the sender's connector frame.

    Attributes:
        mass: (4, 4) pseudo-inertia of all modules there.
        contest: The best ticket there.
        contacts: (k, 7) points of contact there: position, normal, coefficient of friction.
        sums: (5,) of all joints there, in world axes: xx, xy, yy of ``j j^T / i`` and x, y of the
            momentum ``j v``, with j = m2 u x (p2 - q) the first moment that a joint moves, i its
            composite inertia and v its velocity. Zero while the world is unknown.
        pose: (4, 4) of the connector in the world, or None if the leader is not on that side.
    """

    mass: np.ndarray
    contest: Contest = NOBODY
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
    """Which message of which boot of a module; boots tell a restarted module from its old self."""

    boot: int
    number: int


NOTHING_YET = Receipt(0, 0)


class Packet(NamedTuple):
    """A message: its own number, the last one received from the neighbor, and news or none."""

    sent: Receipt
    received: Receipt
    news: bytes


def encode(packet: Packet) -> bytes:
    """The bytes of a message."""
    flags = _HAS_NEWS if packet.news else 0
    return _HEADER.pack(flags, *packet.sent, *packet.received) + packet.news


def decode(payload: bytes) -> Packet | None:
    """The message of some bytes, or None if they are none."""
    if len(payload) < _HEADER.size:
        return None
    flags, boot, number, their_boot, their_number = _HEADER.unpack_from(payload)
    news = payload[_HEADER.size :]
    if flags not in (0, _HAS_NEWS) or bool(flags) != bool(news):
        return None
    return Packet(Receipt(boot, number), Receipt(their_boot, their_number), news)


def news_to_bytes(news: News) -> bytes:
    """Only what there is to tell: a network without contacts sends masses alone."""
    flags, parts = 0, [to_numbers(news.mass).tobytes()]
    if news.contest != NOBODY:
        flags |= _HAS_CONTEST
        contacts = news.contacts[:MOST_CONTACTS]
        parts += [_CONTEST.pack(*news.contest), bytes([len(contacts)]), contacts.tobytes()]
    if news.pose is not None:
        flags |= _HAS_POSE
        parts.append(news.pose[:3].tobytes())
    if news.sums.any():
        flags |= _HAS_SUMS
        parts.append(news.sums.tobytes())
    return b"".join([bytes([flags]), *parts])


def news_from_bytes(data: bytes) -> News | None:
    """The news in some bytes; None if they are damaged or say what no body could be."""
    try:
        return _Reader(data).news()
    except (ValueError, struct.error, IndexError):
        return None


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 1

    def _numbers(self, count: int) -> np.ndarray:
        found = np.frombuffer(self._data, "<f8", count, self._at).astype(float)
        self._at += 8 * count
        if not np.isfinite(found).all():
            raise ValueError("not finite")
        return found

    def news(self) -> News:
        flags = self._data[0]
        mass = from_numbers(self._numbers(MASS_NUMBERS))
        if mass[3, 3] < 0:
            raise ValueError("negative mass")
        contest, contacts, pose, sums = NOBODY, NO_CONTACTS, None, NO_SUMS
        if flags & _HAS_CONTEST:
            contest = Contest(*_CONTEST.unpack_from(self._data, self._at))
            count = self._data[self._at + _CONTEST.size]
            self._at += _CONTEST.size + 1
            contacts = self._numbers(count * CONTACT_NUMBERS).reshape(count, CONTACT_NUMBERS)
        if flags & _HAS_POSE:
            pose = np.eye(4)
            pose[:3] = self._numbers(12).reshape(3, 4)
        if flags & _HAS_SUMS:
            sums = self._numbers(SUM_NUMBERS)
        if self._at != len(self._data):
            raise ValueError("too long")
        return News(mass, contest, contacts, sums, pose)
