"""Datagrams between two plugged ports that can be neither forged nor replayed.

Each direction of a link has a key of its own, derived from the shared key and both ends (address
and port), so that a datagram is of no use on any other link, nor back to its sender. A datagram is

    number of the sender's side: u64, of the receiver's side: u64, counter: u64, payload, tag

with the first 16 bytes of the HMAC-SHA256 (RFC 2104) of everything before as its tag. A side's
number is random. It is offered to the neighbor in a handshake, which is a datagram with counter 0
and no payload, and is in use from the first datagram that bears it as the receiver's number: only
the holder of the key can have made that one, and only after the offer. An offer is used once, then
the next one is drawn. So datagrams of an earlier run of the neighbor, or of an earlier plugging,
never pass for a restart:

    A -> B  (a, 0)  the sides' numbers; B has seen no proof that this is no replay
    B -> A  (b, a)  proof for A, which uses (a, b) from now on
    A -> B  (a, b)  proof for B; the first payload does as well

Of the numbers in use, every counter passes once: the newest is kept, with a window of those before
it (RFC 6479). Only the standard library is needed, as in a module's firmware.
"""

from __future__ import annotations

import hmac
import os
import struct
from typing import Any, NamedTuple

from modurob.errors import StateError

LEAST_KEY_BYTES = 16
HEADER = struct.Struct("<QQQ")  # number of the sender's side, of the receiver's side, counter
TAG_BYTES = 16
OVERHEAD_BYTES = HEADER.size + TAG_BYTES
COUNTER_WINDOW = 1024  # the newest counters, each of which is taken once
_WINDOW_BITS = (1 << COUNTER_WINDOW) - 1


class Opened(NamedTuple):
    """Content of a datagram: its payload, a datagram to answer with, the reason of a refusal."""

    payload: bytes | None = None
    answer: bytes | None = None
    refused: str = ""


class SecureLink:
    """One side of a link.

    Args:
        key: Shared by both sides.
        here, there: The ends, for example (address, port), with equal `repr` on both sides.
    """

    def __init__(self, key: bytes, here: Any, there: Any) -> None:
        self._outward, self._inward = (
            hmac.digest(key, repr(ends).encode(), "sha256")
            for ends in ((here, there), (there, here))
        )
        self._offer = _random_number()
        self._here = self._there = 0  # numbers in use; 0 before the handshake
        self._sent = 0  # counter of the last datagram
        self._newest = self._seen = 0  # newest counter received, and bits of those before it

    @property
    def is_up(self) -> bool:
        """True once the neighbor has answered; before that there is nothing to `seal` with."""
        return self._there != 0

    def request(self) -> bytes:
        """Return a datagram that asks the neighbor for its number."""
        return self._datagram(self._offer, 0)

    def seal(self, payload: bytes) -> bytes:
        """Return the datagram of a payload."""
        self._sent += 1
        return self._datagram(self._here, self._there, self._sent, payload)

    def open(self, data: bytes) -> Opened:
        """Return the content of a datagram from the neighbor, or the reason why it has none."""
        body, tag = data[:-TAG_BYTES], data[-TAG_BYTES:]
        if len(body) < HEADER.size or not hmac.compare_digest(tag, _tag(self._inward, body)):
            return Opened(refused="forged")
        theirs, ours, counter = HEADER.unpack_from(body)
        if ours == self._offer:
            self._here, self._there, self._offer = ours, theirs, _random_number()
            self._newest = self._seen = 0
            if not counter:
                return Opened(answer=self._datagram(ours, theirs))
        is_current = (ours, theirs) == (self._here, self._there)
        if not counter:
            return Opened(answer=None if is_current else self._answer(theirs, ours))
        if not is_current:  # a replay, or the neighbor has missed that this side started anew
            return Opened(answer=self._datagram(self._offer, theirs), refused="replayed")
        if not self._is_first(counter):
            return Opened(refused="replayed")
        return Opened(body[HEADER.size :])

    def _answer(self, theirs: int, ours: int) -> bytes | None:
        """The answer to a handshake without proof; none if it is for numbers of the past.

        A replayed one changes nothing here, and the neighbor does not answer to this answer.
        """
        if ours not in (0, self._here):
            return None
        return self._datagram(self._here if theirs == self._there else self._offer, theirs)

    def _is_first(self, counter: int) -> bool:
        ahead = counter - self._newest
        if ahead <= -COUNTER_WINDOW:
            return False
        if ahead > 0:
            self._newest = counter
            self._seen = self._seen << min(ahead, COUNTER_WINDOW) & _WINDOW_BITS
        bit = 1 << self._newest - counter
        is_first = not self._seen & bit
        self._seen |= bit
        return is_first

    def _datagram(self, ours: int, theirs: int, counter: int = 0, payload: bytes = b"") -> bytes:
        body = HEADER.pack(ours, theirs, counter) + payload
        return body + _tag(self._outward, body)


def checked_key(key: Any) -> bytes:
    """A key, or a `StateError` that does not show it."""
    if isinstance(key, bytes) and len(key) >= LEAST_KEY_BYTES:
        return key
    kind = "none" if key is None else type(key).__name__
    given = f"{len(key)} bytes" if isinstance(key, bytes) else kind
    raise StateError(
        f"key is at least {LEAST_KEY_BYTES} secret bytes that all modules share, got {given}: "
        "secrets.token_bytes() draws one"
    )


def _tag(key: bytes, body: bytes) -> bytes:
    return hmac.digest(key, body, "sha256")[:TAG_BYTES]


def _random_number() -> int:
    return int.from_bytes(os.urandom(8), "little") or 1
