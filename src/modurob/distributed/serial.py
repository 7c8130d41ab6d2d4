"""Numbers of messages: 32 bits that wrap around, compared as in RFC 1982.

A larger number is newer by convention only, so a damaged or forged one could make every later
message look old. Messages do not travel for long: one that looks old is refused only for a while
after the newest was taken.
"""

from __future__ import annotations

NUMBERS = 2**32


def following(number: int) -> int:
    """Return the number after `number`."""
    return (number + 1) % NUMBERS


def is_newer(number: int, than: int) -> bool:
    """Return whether a number follows another one by less than half of all numbers."""
    return 0 < (number - than) % NUMBERS < NUMBERS // 2


def is_outdated(number: int, newest: int, elapsed: float, lifetime: float) -> bool:
    """Return whether a message was overtaken by a newer one.

    Args:
        number: Of the message.
        newest: The newest number taken so far.
        elapsed: Time since that one was taken. [s]
        lifetime: Longest time that a message travels. [s]
    """
    return elapsed < lifetime and not is_newer(number, newest)
