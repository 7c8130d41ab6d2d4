"""Reliable messages over links that lose, delay, double and reorder them.

Both ends of a link have a number that is drawn anew when they start, so that a restarted neighbor
differs from its old self. Messages have numbers of 32 bits that wrap around, compared as in RFC
1982. They are sent again until the neighbor acknowledges them; it takes each of them once, or only
the newest of a stream. A larger number is newer by convention only, so that a damaged or forged one
could make every later message look old: one that looks old is refused only for the time that a
message may travel. Only the standard library is needed, as in a module's firmware.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple, Self

NUMBERS = 2**32
MOST_DOUBLINGS = 64  # of an interval: beyond any longest one, and no overflow
WINDOW = 2**16  # numbers beyond the first missing one that are taken


def following(number: int) -> int:
    """Return the number after `number`."""
    return (number + 1) % NUMBERS


def is_newer(number: int, than: int) -> bool:
    """Return whether a number follows another one by less than half of all numbers."""
    return 0 < (number - than) % NUMBERS < NUMBERS // 2


class Newest(NamedTuple):
    """Number of the newest message taken from a stream, and when that was. [s]"""

    number: int = 0
    at: float = -math.inf

    def refuses(self, number: int, now: float, lifetime: float) -> bool:
        """Return whether a message was overtaken; none travels longer than its lifetime. [s]"""
        return now - self.at < lifetime and not is_newer(number, self.number)


class Retry(NamedTuple):
    """Times between repetitions of a message that is not acknowledged."""

    first: float  # [s] before the first repetition
    longest: float  # [s] intervals double up to this one
    constant: int = 0  # repetitions before they do

    def interval(self, tries: int) -> float:
        """Return the time between a message's last try so far and the next one. [s]"""
        doublings = tries - 1 - self.constant
        if doublings <= 0:
            return self.first
        return min(self.longest, self.first * 2.0 ** min(doublings, MOST_DOUBLINGS))


class Waiting(NamedTuple):
    """A message that was not acknowledged yet."""

    message: bytes
    tries: int
    sent_at: float


class Channel:
    """One end of a link."""

    def __init__(self, here: int) -> None:
        self.here, self.there = here, 0  # numbers of both ends, 0 while unknown
        self.number = 0  # of the last message posted
        self.waiting: dict[int, Waiting] = {}  # to be acknowledged, by number
        self.newest = Newest()  # of the stream of which only the newest counts
        self.low = 0  # the numbers up to here have been taken, ...
        self.beyond: frozenset[int] = frozenset()  # ... and these

    def copy(self) -> Self:
        """Return a channel that can be changed independently."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.waiting = dict(self.waiting)
        return twin

    def post(self, message: bytes, now: float, *, latest: bool = False) -> int:
        """Number a message and keep it until acknowledged; `latest` replaces all before it."""
        self.number = following(self.number)
        if latest:
            self.waiting.clear()
        self.waiting[self.number] = Waiting(message, 1, now)
        return self.number

    def acknowledge(self, number: int) -> None:
        """Stop sending a message."""
        self.waiting.pop(number, None)

    def due(self, now: float, retry: Retry) -> Iterator[tuple[int, bytes]]:
        """Yield number and content of messages to be sent again now."""
        for number, (message, tries, sent_at) in list(self.waiting.items()):
            if now >= sent_at + retry.interval(tries):
                self.waiting[number] = Waiting(message, tries + 1, now)
                yield number, message

    def wake(self, retry: Retry) -> float:
        """Return the time when the next repetition is due; infinite without one. [s]"""
        times = [w.sent_at + retry.interval(w.tries) for w in self.waiting.values()]
        return min(times, default=math.inf)

    def is_far_ahead(self, number: int) -> bool:
        """Return whether a number is beyond all that can be under way."""
        return WINDOW < (number - self.low) % NUMBERS < NUMBERS // 2

    def take(self, number: int) -> bool:
        """Return whether a number comes in for the first time, and record it."""
        if (self.low - number) % NUMBERS < NUMBERS // 2 or number in self.beyond:
            return False
        seen = self.beyond | {number}
        while following(self.low) in seen:
            self.low = following(self.low)
            seen -= {self.low}
        self.beyond = seen
        return True
