"""Numbers of a step response: rise, overshoot, settling, steady error."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import is_number, real_array
from modurob.control.gains import SETTLED
from modurob.errors import StateError

LOW, HIGH = 0.1, 0.9  # of the step: between them it rises
LAST = 0.1  # of the time: what is there then is called steady


class StepResponse(NamedTuple):
    """Motion of joints from where they were to a target.

    Each array is (..., n): a batch of runs if there was one, then the joints. A joint whose target
    is where it was already has no rise, and is judged by the largest step of the other joints.

    Attributes:
        rise: From 10 to 90 % of the step; NaN where it never comes so far, or has no step. [s]
        overshoot: Farthest beyond the target, as a part of the step; 0 for none.
        settling: From when on the error stays in the band; infinite when it ends outside. [s]
        steady_error: Mean of position minus target over the last tenth of the time. [rad, m]
        ripple: Root mean square of the error about that mean, over the same time. [rad, m]
        band: Half width of the band, as a part of the step.
    """

    rise: np.ndarray
    overshoot: np.ndarray
    settling: np.ndarray
    steady_error: np.ndarray
    ripple: np.ndarray
    band: float


def step_response(
    t: ArrayLike, q: ArrayLike, target: ArrayLike, *, band: float = SETTLED
) -> StepResponse:
    """Rise, overshoot and settling of recorded positions, between samples on a straight line.

    Args:
        t: (N,) times from the step on, rising. [s]
        q: (N, ..., n) positions; the first is where the step begins. [rad, m]
        target: (n,) or (..., n) where they shall go. [rad, m]
        band: Half width of the band in which an error counts as settled, as a part of the step.
    """
    times, places = real_array("t", t), real_array("q", q)
    if times.ndim != 1 or len(times) < 2 or np.any(np.diff(times) <= 0):
        raise StateError(f"t is two or more rising times, got shape {times.shape}")
    if places.ndim < 2 or len(places) != len(times):
        raise StateError(
            f"q has a row for each of {len(times)} times and a column for each joint, "
            f"got shape {places.shape}"
        )
    if not is_number(band) or not 0 < band < 1:
        raise StateError(f"band is a part of the step between 0 and 1, such as 0.02, got {band!r}")
    goal = real_array("target", target)
    if goal.shape not in (places.shape[-1:], places.shape[1:]):
        raise StateError(f"target has shape {goal.shape}, expected {places.shape[-1:]}")
    step = goal - places[0]
    size = np.abs(step)
    largest = size.max(axis=-1, keepdims=True, initial=0.0)
    if not np.all(largest > 0):
        raise StateError("there is no step: the target is where the joints are already")
    moves = size > 0
    scale = np.where(moves, size, largest)
    # 0 where the joint starts, 1 at the target; a joint without a step begins and ends at 1
    done = 1 + (places - goal) / np.where(moves, step, scale)
    beyond = np.where(moves, done - 1, np.abs(done - 1)).max(axis=0)
    late = times >= times[-1] - LAST * (times[-1] - times[0])
    error = places[late] - goal
    mean = error.mean(axis=0)
    return StepResponse(
        rise=_first(times, done, HIGH) - _first(times, done, LOW),
        overshoot=np.maximum(beyond, 0.0),
        settling=_settled(times, np.abs(places - goal) / scale, band),
        steady_error=mean,
        ripple=np.sqrt(np.mean((error - mean) ** 2, axis=0)),
        band=float(band),
    )


def _first(t: np.ndarray, y: np.ndarray, level: float) -> np.ndarray:
    """(...) time at which y first rises to a level; NaN where it never does, or begins there."""
    above = y >= level
    before = np.maximum(above.argmax(axis=0) - 1, 0)
    return np.where(above.any(axis=0) & ~above[0], _crossing(t, y, before, level), np.nan)


def _settled(t: np.ndarray, error: np.ndarray, band: float) -> np.ndarray:
    """(...) time from the first row on which an error stays within the band."""
    outside = error > band
    last = len(t) - 1 - outside[::-1].argmax(axis=0)  # the last time outside, if there is one
    found = _crossing(t, error, np.minimum(last, len(t) - 2), band) - t[0]
    return np.where(outside.any(axis=0), np.where(outside[-1], np.inf, found), 0.0)


def _crossing(t: np.ndarray, y: np.ndarray, k: np.ndarray, level: float) -> np.ndarray:
    """(...) when the straight line from row k to row k + 1 meets a level; any number if never."""
    y0, y1 = (np.take_along_axis(y, row[None], axis=0)[0] for row in (k, k + 1))
    with np.errstate(all="ignore"):
        return t[k] + (level - y0) / (y1 - y0) * (t[k + 1] - t[k])
