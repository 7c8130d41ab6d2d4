"""A gait as a sequence of places for the center of mass."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from modurob.errors import StateError


def waypoints(
    times: Sequence[float], places: ArrayLike
) -> Callable[[float, np.ndarray], np.ndarray]:
    """A target for `balance` that goes from place to place, at rest in each.

    Args:
        times: When it is at each place; increasing. [s]
        places: (k, 2) on the ground. [m]
    """
    when, where = np.asarray(times, dtype=float), np.asarray(places, dtype=float)
    if when.ndim != 1 or where.shape != (len(when), 2) or not len(when):
        raise StateError(f"k times need (k, 2) places, got {when.shape} and {where.shape}")
    if not (np.isfinite(when).all() and np.isfinite(where).all() and (np.diff(when) > 0).all()):
        raise StateError("times must increase, and all numbers must be finite")

    def target(t: float, center: np.ndarray) -> np.ndarray:
        k = int(np.clip(np.searchsorted(when, t) - 1, 0, max(len(when) - 2, 0)))
        if len(when) == 1:
            here = where[0]
        else:
            s = np.clip((t - when[k]) / (when[k + 1] - when[k]), 0.0, 1.0)
            here = where[k] + (where[k + 1] - where[k]) * s**3 * (10 - 15 * s + 6 * s * s)
        return np.broadcast_to(here, (*center.shape[:-1], 2))

    return target
