"""What references are made of, checked once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.control.checks import real_array
from modurob.errors import StateError

Function = Callable[[float], Any]  # of time, to something with q, v and a


def parts(reference: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v and a as arrays."""
    return np.asarray(reference.q), np.asarray(reference.v), np.asarray(reference.a)


def row(name: str, value: ArrayLike) -> np.ndarray:
    """(n,) numbers, or a `StateError`."""
    array = real_array(name, value)
    if array.ndim != 1:
        raise StateError(f"{name} is one number for each joint, got shape {array.shape}")
    return array


def knots(times: ArrayLike, q: ArrayLike, least: int) -> tuple[np.ndarray, np.ndarray]:
    """(k,) rising times and (k, n) places, k at least `least`, or a `StateError`."""
    t, places = real_array("times", times), real_array("q", q)
    if t.ndim != 1 or places.ndim != 2 or len(t) != len(places) or len(t) < least:
        raise StateError(
            f"times (k,) and places (k, n) belong together, k at least {least}; "
            f"got shapes {t.shape} and {places.shape}"
        )
    if np.any(np.diff(t) <= 0):
        raise StateError("times must rise")
    return t, places
