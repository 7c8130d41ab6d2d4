"""Numbers and addresses that users give, checked once at the public boundary."""

from __future__ import annotations

import math
from ipaddress import ip_address
from numbers import Real
from typing import Any

from modurob.errors import StateError


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


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
