"""Numbers and addresses that users give, checked once at the public boundary."""

from __future__ import annotations

import math
from ipaddress import ip_address
from numbers import Real
from typing import Any

from modurob.errors import SizeError, StateError

LARGEST_BYTES = 8_000_000_000  # arrays of one call; more is refused before it is asked for


def is_number(value: object) -> bool:
    """A finite real number that is not a truth value."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond what a float can hold
        return False


def positive(name: str, value: Any, unit: str) -> float:
    """A positive finite number, or a `StateError`."""
    if not is_number(value) or value <= 0:
        raise StateError(f"{name} must be a positive number of {unit}, got {value!r}")
    return float(value)


def not_negative(name: str, value: Any, unit: str) -> float:
    """A finite number that is zero or more, or a `StateError`."""
    if not is_number(value) or value < 0:
        raise StateError(f"{name} must be zero or a positive number of {unit}, got {value!r}")
    return float(value)


def refuse_over(what: str, nbytes: float, advice: str) -> None:
    """Raise a `SizeError` before arrays of more than 8 GB are asked for.

    Args:
        what: The arrays that were asked for, such as ``recording 10^9 states``.
        nbytes: Their size. [bytes]
        advice: What to do instead, in the imperative.
    """
    if nbytes > LARGEST_BYTES:
        size = nbytes / 1e9
        needed = f"{size:,.0f}" if 100 <= size < 1e9 else f"{size:.3g}"
        raise SizeError(
            f"{what} would need {needed} GB of memory; the limit is {LARGEST_BYTES / 1e9:g} GB: "
            f"{advice}"
        )


def refuse_states(what: str, states: int, numbers: int) -> None:
    """As `refuse_over`, for so many states with so many double precision numbers each."""
    refuse_over(f"{what} of {states} states", 8 * states * numbers, "give fewer states at once")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
