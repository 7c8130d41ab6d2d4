"""Commands that take effect some samples later, as on a bus."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from modurob.checks import not_negative
from modurob.errors import StateError

WHOLE = 1e-6  # of a sample: a delay this close to whole samples is meant to be whole
MOST = 10_000  # samples


def samples_late(delay: Any, sample_time: float | None) -> int:
    """Return the number of samples of a delay [s]: whole ones, or True for one; else raise."""
    if delay is False or (delay is not True and not_negative("delay", delay, "seconds") == 0):
        return 0
    if sample_time is None:
        raise StateError("a delay needs sample_time, for example 0.001: it is counted in samples")
    count = 1.0 if delay is True else delay / sample_time
    if abs(count - round(count)) > WHOLE or round(count) < 1:
        raise StateError(
            f"delay must be whole samples of {sample_time:g} s, got {delay:g} s: "
            f"take {max(1, round(count)) * sample_time:g} s or another sample_time"
        )
    if count > MOST:
        raise StateError(f"a delay of {delay:g} s is {count:.3g} samples; {MOST:,} are the most")
    return round(count)


class DelayLine:
    """Torques on their way for `count` samples each, oldest first."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.under_way: list[np.ndarray] = []

    def passed(self, tau: np.ndarray) -> np.ndarray:
        """Send `tau`; return the torque that arrives."""
        self.under_way.append(tau)
        return self.under_way.pop(0)

    def fill(self, tau: np.ndarray) -> None:
        """Fill the line with a torque."""
        self.under_way = [tau.copy() for _ in range(self.count)]

    def clear(self) -> None:
        """Empty the line."""
        self.under_way = []

    __copy__ = copy.deepcopy
