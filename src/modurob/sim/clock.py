"""Times at which something happens, cut into stretches that an integrator runs through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import is_number, positive, refuse_over
from modurob.errors import StateError

SAME = 1e-9  # of the smallest spacing: times this close are one time
SAMPLE, RECORD = 1, 2
CUT_BYTES = 64  # that each time at which a run is cut takes on the way


class Stretch(NamedTuple):
    """A piece of time without surprises inside.

    Attributes:
        sample: Whether the controller's clock ticks at its begin.
        record: Whether its end is a time to write down.
    """

    begin: float
    end: float
    sample: bool
    record: bool


def record_times(
    record: float | ArrayLike | None, duration: float, row_bytes: int = 8
) -> np.ndarray | None:
    """The times to write down, both ends among them; None for every step.

    Args:
        row_bytes: Memory that the states of one time take.
    """
    if record is None:
        return None
    if is_number(record):
        spacing = positive("record", record, "seconds")
        count = np.floor(duration / spacing * (1 + SAME))
        what = f"a record every {spacing:g} s of {duration:g} s ({count:.3g} times)"
        refuse_over(what, count * max(row_bytes, CUT_BYTES), "give a larger record=")
        times = spacing * np.arange(int(count) + 1)
    else:
        try:
            times = np.array(record, dtype=float).ravel()
        except (TypeError, ValueError, OverflowError):
            times = np.array([np.nan])
        if not np.isfinite(times).all() or np.any(times < 0) or np.any(times > duration):
            raise StateError(
                f"record is a spacing in seconds or times between 0 and {duration:g} s, "
                f"got {record!r}"
            )
    times = np.unique(np.concatenate([[0.0], times, [duration]]))
    apart = np.diff(times) > SAME * max(np.median(np.diff(times)), 1e-300)
    return np.concatenate([times[:-1][apart], times[-1:]])


def check_ticks(what: str, period: float, duration: float) -> float:
    """The period, or a `SizeError` when its ticks alone would fill the memory."""
    count = duration / period
    ticks = f"{what} = {period:g} s ({count:.3g} of them in {duration:g} s)"
    refuse_over(ticks, count * CUT_BYTES, f"give a larger {what}=")
    return period


def stretches(
    begin: float, end: float, sample_time: float | None, record: np.ndarray | None
) -> Iterator[Stretch]:
    """Cut [begin, end] at the controller's ticks and at times to write down."""
    times, flags = [np.array([begin, end])], [np.zeros(2, dtype=int)]
    spacing = end - begin
    if sample_time is not None:
        first = int(np.ceil(begin / sample_time * (1 - SAME)))
        last = int(np.ceil(end / sample_time * (1 - SAME)))
        ticks = sample_time * np.arange(first, max(last, first))
        times.append(ticks)
        flags.append(np.full(len(ticks), SAMPLE))
        spacing = min(spacing, sample_time)
    if record is not None:
        kept = record[(record > begin) & (record <= end)]
        times.append(kept)
        flags.append(np.full(len(kept), RECORD))
        spacing = min(spacing, float(np.diff(record).min(initial=spacing)))
    t, flag = np.concatenate(times), np.concatenate(flags)
    order = np.argsort(t, kind="stable")
    t, flag = t[order], flag[order]
    starts = np.flatnonzero(np.diff(t, prepend=-np.inf) > SAME * spacing)
    flag = np.bitwise_or.reduceat(flag, starts)
    t = t[starts]
    t[0], t[-1] = begin, end
    for k in range(len(t) - 1):
        yield Stretch(
            float(t[k]), float(t[k + 1]), bool(flag[k] & SAMPLE), bool(flag[k + 1] & RECORD)
        )
