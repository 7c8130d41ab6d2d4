"""Times and states that a run records: when, and in arrays that grow as needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import as_floats, is_number, positive, refuse_over
from modurob.errors import StateError
from modurob.sim.actuation import Actuation
from modurob.sim.mujoco_engine import MujocoPlant
from modurob.stepping import GroundContact

ADVICE = "keep fewer with record=0.01 (seconds between two)"
FIRST = 256  # rows to begin with when the number is unknown
SAME = 1e-9  # of the smallest spacing: times this close are one time
SAMPLE, RECORD = 1, 2
CUT_BYTES = 64  # that each time at which a run is cut takes on the way


# -- times -----------------------------------------------------------------------------------------


class Interval(NamedTuple):
    """Piece of time without samples and records inside."""

    begin: float
    end: float
    sample: bool  # whether the controller's clock ticks at its begin
    record: bool  # whether its end is a time to write down


def record_times(
    record: float | ArrayLike | None, duration: float, row_bytes: int = CUT_BYTES
) -> np.ndarray | None:
    """Return the times to record, both ends among them, if there is memory; None for every step."""
    if record is None:
        return None
    if is_number(record):
        spacing = positive("record", record, "seconds")
        count = np.floor(duration / spacing * (1 + SAME))
        what = f"a record every {spacing:g} s of {duration:g} s ({count:.3g} times)"
        refuse_over(what, count * max(row_bytes, CUT_BYTES), "give a larger record=")
        times = spacing * np.arange(int(count) + 1)
    else:
        times = as_floats(record).ravel()
        if not np.isfinite(times).all() or np.any(times < 0) or np.any(times > duration):
            raise StateError(
                f"record is a spacing in seconds or times between 0 and {duration:g} s, "
                f"got {record!r}"
            )
    times = np.unique(np.concatenate([[0.0], times, [duration]]))
    apart = np.diff(times) > SAME * max(np.median(np.diff(times)), 1e-300)
    return np.concatenate([times[:-1][apart], times[-1:]])


def check_ticks(what: str, period: float, duration: float) -> None:
    """Raise a `SizeError` when samples of a period alone would fill the memory."""
    count = duration / period
    ticks = f"{what} = {period:g} s ({count:.3g} of them in {duration:g} s)"
    refuse_over(ticks, count * CUT_BYTES, f"give a larger {what}=")


def intervals(
    begin: float, end: float, sample_time: float | None, record: np.ndarray | None
) -> Iterator[Interval]:
    """Cut [begin, end] at the samples of the controller and at times to record."""
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
        yield Interval(
            float(t[k]), float(t[k + 1]), bool(flag[k] & SAMPLE), bool(flag[k + 1] & RECORD)
        )


# -- arrays ----------------------------------------------------------------------------------------


def row_bytes(states: int, nq: int, nv: int) -> int:
    """Bytes of one time: the time itself, and q, v and tau of all states."""
    return 8 * (1 + states * (nq + 2 * nv))


class Rows:
    """An array with one row for each time, which doubles when it is full."""

    def __init__(self, shape: tuple[int, ...], expected: int) -> None:
        self._data, self.count = np.empty((max(expected, 1), *shape)), 0

    def add(self, row: Any) -> None:
        if self.count == len(self._data):
            more = np.empty((2 * len(self._data), *self._data.shape[1:]))
            more[: self.count] = self._data
            self._data = more
        self._data[self.count] = row
        self.count += 1

    @property
    def growth(self) -> int:
        """Bytes that the next row asks for: none while there is room."""
        return 2 * self._data.nbytes if self.count == len(self._data) else 0

    def amend(self, row: Any) -> None:
        """Replace the last row."""
        self._data[self.count - 1] = row

    @property
    def last(self) -> Any:
        """The last row."""
        return self._data[self.count - 1]

    def array(self) -> np.ndarray:
        """(rows, ...) read-only."""
        found = self._data[: self.count]
        if self.count < len(self._data):
            found = found.copy()
        found.setflags(write=False)
        return found


class Recorder:
    """States, torques and channels of one body; the number of times may be `expected`."""

    def __init__(
        self,
        batch: tuple[int, ...],
        nq: int,
        nv: int,
        drive: Actuation | None,
        expected: int | None,
        ground: GroundContact | MujocoPlant | None = None,
        external: Callable[[float], dict[str, np.ndarray]] = lambda t: {},
    ) -> None:
        self._drive, self._ground, self._batch, self._external = drive, ground, batch, external
        rows, states = expected or FIRST, math.prod(batch)
        size = row_bytes(states, nq, nv) + 8 * states * (0 if ground is None else ground.recorded)
        refuse_over(f"{rows:,} times of {states:,} states", rows * size, ADVICE)
        self.t = Rows((), rows)
        self.q, self.v = Rows((*batch, nq), rows), Rows((*batch, nv), rows)
        self.tau = None if drive is None else Rows((*batch, nv), rows)
        self._pushes = None if ground is None else Rows((*batch, nv), rows)
        self._rest = np.zeros((*batch, nv))
        self._channels: dict[str, Rows] = {}
        self.pieces: list[tuple[float, float, Callable[[np.ndarray], Any]]] = []

    def add(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Record a state with its torque and channels."""
        tau, channels = None, self._external(t)
        if self._drive is not None:  # first: when it fails, no row is recorded by halves
            tau, seen = self._drive.observed(t, q, v)
            channels = channels | seen
        if self._ground is not None:
            channels = channels | self._ground.observed(q, v)
        kept = (self.t, self.q, self.v, self.tau, self._pushes, *self._channels.values())
        size = sum(rows.growth for rows in kept if rows is not None)
        if size:
            refuse_over(f"more than {self.t.count:,} times", size, ADVICE)
        self.t.add(t)
        self.q.add(q)
        self.v.add(v)
        if self.tau is not None:
            self.tau.add(tau)
        if self._ground is not None:
            assert self._pushes is not None  # there are those of a ground
            self._pushes.add(self._ground.force(q, v))
        self._put(channels)

    def amend(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Put the new torque to a state that was recorded before the controller was sampled."""
        if self._drive is None or self.tau is None or self.t.last != t:
            return
        tau, channels = self._drive.observed(t, q, v)
        self.tau.amend(tau)
        if isinstance(self._ground, MujocoPlant):
            assert self._pushes is not None
            self._pushes.amend(self._ground.force(q, v))  # constraints respond to the torque
            channels = channels | self._ground.observed(q, v)
        self._put(channels)

    def _put(self, channels: dict[str, Any]) -> None:
        """Numbers of the channels at the last time."""
        for name, value in channels.items():
            if name not in self._channels:
                self._channels[name] = Rows(np.shape(value), FIRST)
            rows = self._channels[name]
            self._fill(rows, self.t.count - 1)
            if rows.count == self.t.count:
                rows.amend(value)
            else:
                rows.add(value)

    @staticmethod
    def _fill(rows: Rows, count: int) -> None:
        """A channel that a controller left out for a while has gaps, not shifted numbers."""
        while rows.count < count:
            rows.add(np.nan)

    def torques(self) -> np.ndarray:
        """(N, ..., nv); without a drive a view of one row of zeros."""
        return self._forces(self.tau)

    def pushes(self) -> np.ndarray:
        """(N, ..., nv) forces of the ground; without one a view of one row of zeros."""
        return self._forces(self._pushes)

    def _forces(self, rows: Rows | None) -> np.ndarray:
        if rows is not None:
            return rows.array()
        return np.broadcast_to(self._rest, (self.t.count, *self._rest.shape))

    def channels(self) -> dict[str, np.ndarray]:
        """Numbers that the controller recorded, by name."""
        for rows in self._channels.values():
            self._fill(rows, self.t.count)
        return {name: rows.array() for name, rows in self._channels.items()}
