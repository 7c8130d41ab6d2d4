"""Chaotic gaits: coupled maps that reach a common rhythm, or none."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import Numbers, inside, positive, whole
from modurob.errors import StateError
from modurob.gaits import lattice
from modurob.gaits.base import Synchronizing, checked_times, register
from modurob.gaits.body import Edges
from modurob.quintic import Curve, between

PATIENCE = 4000  # steps within which a lattice becomes periodic, or counts as chaotic
LONGEST_CYCLE = 64  # steps
REPEATED = 1e-9  # of the range of the map: difference of a cycle from the one before
MOST_STEPS = 1_000_000
# Largest value that `through` reaches between samples of size 1: the sum of the weights' sizes at
# u = 1/2, where they are -1/16, 9/16, 9/16, -1/16.
REACH = 1.25
SMALLEST = 1e-17  # below any difference of two numbers in the map's range; for logarithms


@register
class ChaoticMaps(Synchronizing):
    """One logistic map for each joint, mixed with its neighbors, one step every `step` seconds.

    ``x_i(k+1) = (1 - coupling) f(x_i) + coupling / deg_i sum_j f(x_j)``, ``f(x) = r x (1 - x)``.
    The joints pass through the map's samples on a quintic spline; 0.8 of the amplitude belongs to
    the samples, the rest is room for the spline between them.

    Each map alone is chaotic for most r above 3.57. Coupled weakly (0.15), neighbors find a short
    common cycle on many bodies; within `synchronization_range` all joints come to move as one, in
    chaos; elsewhere they wander.

    Args:
        joints: Names of the joints.
        amplitude, offset: One number, (n,), or numbers by joint. [rad, m]
        edges: Pairs of joints that are coupled; `for_model` takes those that meet at a link.
        step: Seconds between samples.
        r: Of the logistic map, from 3 (below, it comes to rest) to 4 (above, it escapes).
        coupling: How much of a map's next value is its neighbors', from 0 to 1.
        start: First values, between -1 and 1, the ends of the map's range; by default anywhere.
        warm_up: Steps of the maps before t = 0; some hundred skip the way to the common rhythm.
        rng: Chooses `start`; a fixed seed by default.
        ramp: Seconds from rest to full swing.
    """

    name = "chaotic"
    logarithmic = True

    def __init__(
        self,
        joints: Sequence[str],
        amplitude: Numbers,
        *,
        edges: Edges,
        offset: Numbers = 0.0,
        step: float = 0.5,
        r: float = 3.9,
        coupling: float = 0.15,
        start: Numbers | None = None,
        warm_up: int = 0,
        rng: np.random.Generator | None = None,
        ramp: float = 0.0,
    ) -> None:
        super().__init__(
            joints, amplitude, edges=edges, offset=offset, start=start, rng=rng, ramp=ramp
        )
        self.step = positive("step", step, "seconds")
        self.r = inside("r", r, 3.0, 4.0, "the logistic map's")
        self.coupling = inside("coupling", coupling, 0.0, 1.0, "a share")
        if (np.abs(self.start) > 1).any():
            raise StateError("start must lie between -1 and 1, the ends of the map's range")
        self.warm_up = whole("warm_up", warm_up, 0, MOST_STEPS)
        low, high = lattice.invariant(self.r)
        self._middle, self._half = (high + low) / 2, (high - low) / 2
        self._found = self.start[None], self._middle + self._half * self.start[None]

    # -- the lattice ---------------------------------------------------------------------------

    def samples(self, steps: int) -> np.ndarray:
        """(steps + 1, n) the maps' values from t = 0 on, -1 and 1 being the ends of their range."""
        if steps > MOST_STEPS:
            raise StateError(
                f"a lattice is followed for {MOST_STEPS:,} steps, that is until "
                f"t = {MOST_STEPS * self.step:g} s; give earlier times or make steps longer"
            )
        (scaled, x), end = self._found, self.warm_up + steps + 1
        if len(x) < end:
            # growing shares: what is there already is copied few times
            x = np.concatenate([x, self._iterated(x[-1], max(end - len(x), len(x) // 4, 100))])
            scaled = np.clip((x - self._middle) / self._half, -1.0, 1.0)
            scaled.setflags(write=False)
            self._found = scaled, x
        return scaled[self.warm_up : end]

    def _iterated(self, x: np.ndarray, steps: int) -> np.ndarray:
        C = lattice.coupling_matrix(self.edges, len(self.joints), self.coupling)
        path = np.empty((steps, len(self.joints)))
        for k in range(steps):
            path[k] = x = C @ lattice.logistic(x, self.r)
        return path

    @cached_property
    def cycle(self) -> int | None:
        """Steps after which the lattice repeats itself; None for chaos, 1 for a standstill."""
        tail = self.samples(PATIENCE)[-2 * LONGEST_CYCLE :]
        for p in range(1, LONGEST_CYCLE + 1):
            if np.abs(tail[p:] - tail[:-p]).max(initial=0.0) < REPEATED:
                return p
        return None

    @property
    def period(self) -> float | None:
        return None if self.cycle is None else self.cycle * self.step

    @property
    def settled(self) -> float:
        if self.cycle is None:
            return self.ramp
        x, p = self.samples(PATIENCE), self.cycle
        unlike = np.flatnonzero(np.abs(x[p:] - x[:-p]).max(axis=1, initial=0.0) >= REPEATED)
        # the spline looks one sample back
        first = int(unlike[-1]) + 2 if len(unlike) else 1
        return max(self.ramp, first * self.step)

    # -- synchronization -----------------------------------------------------------------------

    @property
    def transverse_exponents(self) -> np.ndarray:
        """(n - 1,) growth of differences between joints that move as one, by mode. [1/step]"""
        return lattice.transverse_exponents(self.edges, len(self.joints), self.r, self.coupling)

    @property
    def synchronization_range(self) -> lattice.Range | None:
        """The couplings at which joints that move as one stay together; None if there are none."""
        return lattice.synchronization_range(self.edges, len(self.joints), self.r)

    def spread(self, steps: int) -> np.ndarray:
        """(steps + 1,) root mean square distance of the maps from their mean, at each step."""
        x = self.samples(steps)
        return np.std(x, axis=1) if len(self.joints) else np.zeros(len(x))

    def synchrony(self, t: ArrayLike) -> dict[str, np.ndarray]:
        """Differences between joints, as predicted if they vanish, and from cycle to cycle."""
        times = checked_times(t)
        last = int(times.max(initial=0.0) / self.step)
        found = {"between joints": self.spread(last)}
        slowest = np.max(self.transverse_exponents, initial=-np.inf)
        if -np.inf < slowest < 0:
            found["predicted"] = found["between joints"][0] * np.exp(slowest * np.arange(last + 1))
        if self.cycle is not None and self.joints:
            x = self.samples(last + self.cycle)
            change = np.sqrt(np.mean((x[self.cycle :] - x[: -self.cycle]) ** 2, axis=1))
            found[f"over {self.cycle} steps"] = change
        k = (times / self.step).astype(int)
        return {name: np.maximum(y, SMALLEST)[k] for name, y in found.items()}

    def swing(self, t: np.ndarray) -> Curve:
        place = t / self.step
        x = self.samples(int(place.max(initial=0.0)) + 2)
        k = place.astype(int)
        # before the first sample there is none; taking the second for it starts at rest
        before = np.where(k == 0, 1, k - 1)
        four = x[np.stack([before, k, k + 1, k + 2])] / REACH
        return through(four, (place - k)[:, None], self.step)


def through(samples: np.ndarray, u: np.ndarray, h: float) -> Curve:
    """A quintic spline through equidistant samples, between the two in the middle of four.

    Slope and curvature at a sample are the central differences with its neighbors, so the spline is
    local: nothing that comes later changes it. Between samples of size 1 it stays below `REACH`.

    Args:
        samples: (4, m, n) the two samples before and the two after each time.
        u: (m, 1) how far between the middle ones, from 0 to 1.
        h: Seconds between samples.
    """
    before, start, end, after = samples
    slopes = (end - before) / (2 * h), (after - start) / (2 * h)
    bends = (end - 2 * start + before) / h**2, (after - 2 * end + start) / h**2
    return between(u, h, Curve(start, slopes[0], bends[0]), Curve(end, slopes[1], bends[1]))
