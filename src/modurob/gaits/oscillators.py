"""Coupled phase oscillators: one for each joint, synchronized with its neighbors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import Numbers, not_negative, per_joint
from modurob.errors import StateError
from modurob.gaits.base import Synchronizing, checked_times, register
from modurob.gaits.body import Edges
from modurob.gaits.sine import checked_frequency
from modurob.quintic import Curve, between

FINE = 0.2  # of the fastest time constant: a step of RK4, with errors near 1e-6 rad
LONGEST_STEP = 0.05  # [s]
CHUNK = 500  # steps integrated at once, at least
PATIENCE = 30_000  # steps after which oscillators count as never locking; about a second of work
MOST_STEPS = 1_000_000
LOCKED = 1e-10  # [rad/s] difference of speeds below which they are locked for good


@register
class Oscillators(Synchronizing):
    """``q_i = offset_i + amplitude_i sin(theta_i)``, with phases that pull at each other.

    ``theta_i' = 2 pi frequency_i + coupling sum_j sin(theta_j - theta_i - (phase_j - phase_i))``,
    summed over the neighbors j. If the coupling is strong enough for the differences of
    frequencies, all run at the mean frequency in the end, at the desired phases or near them.

    The equation is solved once, step by step as far as needed; from the time they lock,
    the phases grow evenly.

    Args:
        joints: Names of the joints.
        amplitude, offset: One number, (n,), or numbers by joint. [rad, m]
        edges: Pairs of joints that are coupled; `for_model` takes those that meet at a link.
        frequency: One number, (n,), or numbers by joint (1 for joints not named). [Hz]
        coupling: Strength of the pull. [rad/s]
        phase: Desired phases; only their differences matter. [rad]
        start: Phases at t = 0; by default anywhere on the circle. [rad]
        rng: Chooses `start`; a fixed seed by default.
        ramp: Seconds from rest to full swing.
    """

    name = "oscillators"
    reach = np.pi  # [rad]

    def __init__(
        self,
        joints: Sequence[str],
        amplitude: Numbers,
        *,
        edges: Edges,
        offset: Numbers = 0.0,
        frequency: Numbers = 1.0,
        coupling: float = 4.0,
        phase: Numbers = 0.0,
        start: Numbers | None = None,
        rng: np.random.Generator | None = None,
        ramp: float = 0.0,
    ) -> None:
        super().__init__(
            joints, amplitude, edges=edges, offset=offset, start=start, rng=rng, ramp=ramp
        )
        self.frequency = checked_frequency(frequency, self.joints)
        self.coupling = not_negative("coupling", coupling, "rad/s")
        self.phase = per_joint("phase", phase, self.joints)

    @cached_property
    def speed(self) -> float:
        """Mean of the frequencies, at which locked oscillators run. [rad/s]"""
        return 2 * np.pi * float(np.mean(self.frequency)) if len(self.frequency) else 0.0

    @property
    def locked(self) -> float | None:
        """Time from which on all phases grow evenly; None if that does not happen. [s]"""
        return self._track.settle()

    @property
    def period(self) -> float | None:
        return None if self.locked is None or not self.speed else 2 * np.pi / self.speed

    @property
    def settled(self) -> float:
        return max(self.ramp, self.locked or 0.0)

    def phases(self, t: ArrayLike) -> np.ndarray:
        """(..., n) phases theta at times t (...). [rad]"""
        times = checked_times(t)
        theta = self._phases(times.reshape(-1)).x
        return theta.reshape(*times.shape, len(self.joints))

    def order(self, t: ArrayLike) -> np.ndarray:
        """(...) order parameter at times t: 1 when all are at their desired phases."""
        if not self.joints:
            return np.ones(np.shape(t))
        return np.abs(np.mean(np.exp(1j * (self.phases(t) - self.phase)), axis=-1))

    def synchrony(self, t: ArrayLike) -> dict[str, np.ndarray]:
        return {"order parameter": self.order(t)}

    def swing(self, t: np.ndarray) -> Curve:
        theta, speed, change = self._phases(t)
        w, c = np.sin(theta), np.cos(theta)
        return Curve(w, c * speed, c * change - w * speed**2)

    def _phases(self, t: np.ndarray) -> Curve:
        y, dy, ddy = self._track(t)
        return Curve(self.phase + self.speed * t[:, None] + y, self.speed + dy, ddy)

    @cached_property
    def _track(self) -> PhaseTrack:
        excess = 2 * np.pi * self.frequency - self.speed
        return PhaseTrack(self.edges, excess, self.coupling, self.start - self.phase)


class PhaseTrack:
    """Phases y(t) relative to a phase that grows at the mean speed (Kuramoto's equation).

    ``y_i' = excess_i + coupling sum_j sin(y_j - y_i)``, by the classical Runge-Kutta method in
    equal steps, so that results do not depend on earlier calls; quintics between.

    Attributes:
        locked: When all speeds became equal; None as long as they are not. [s]

    Args:
        edges: (m, 2) pairs of oscillators.
        excess: (n,) speeds of their own, less the mean. [rad/s]
        coupling: [rad/s]
        start: (n,) phases at t = 0. [rad]
    """

    def __init__(
        self, edges: np.ndarray, excess: np.ndarray, coupling: float, start: np.ndarray
    ) -> None:
        self._excess, self._coupling = excess, coupling
        self._D = np.zeros((len(edges), len(excess)))  # D y: differences along the edges
        rows = np.arange(len(edges))
        self._D[rows, edges[:, 0]], self._D[rows, edges[:, 1]] = -1.0, 1.0
        most = np.abs(self._D).sum(axis=0).max(initial=0.0)
        fastest = 2 * coupling * most + 2 * np.abs(excess).max(initial=0.0)
        self._h = min(LONGEST_STEP, FINE / fastest) if fastest else LONGEST_STEP
        self.locked: float | None = None
        self._nodes = self._ended(self._rates(start[None]))

    def __call__(self, t: np.ndarray) -> Curve:
        """y and its derivatives, (m, n) each, at times t (m,) from 0 on."""
        self.extend(t.max(initial=0.0) / self._h)
        nodes = self._nodes
        end = len(nodes.x) - 1
        if end == 0:
            return Curve(*(np.repeat(part, len(t), axis=0) for part in nodes))
        # after the last node nothing changes
        place = np.minimum(t / self._h, end)
        k = np.minimum(place.astype(int), end - 1)
        start, stop = (Curve(*(part[k + i] for part in nodes)) for i in (0, 1))
        return between((place - k)[:, None], self._h, start, stop)

    def extend(self, steps: float) -> None:
        """Integrate beyond `steps` steps, unless the oscillators lock before."""
        if steps > MOST_STEPS and self.settle() is None:
            raise StateError(
                f"oscillators that do not lock are followed for {MOST_STEPS * self._h:.0f} s; "
                "give earlier times, or couple them more strongly"
            )
        while self.locked is None and len(self._nodes.x) - 1 <= steps:
            nodes = self._nodes
            y, path = nodes.x[-1], []
            # growing shares: what is there already is copied few times
            for _ in range(max(CHUNK, len(nodes.x) // 4)):
                y = self._step(y)
                path.append(y)
            added = self._rates(np.array(path))
            self._nodes = self._ended(
                Curve(*(np.concatenate(pair) for pair in zip(nodes, added, strict=True)))
            )

    def settle(self) -> float | None:
        """Time at which the oscillators lock; None if they do not within `PATIENCE` steps. [s]"""
        self.extend(PATIENCE)
        return self.locked

    def _ended(self, nodes: Curve) -> Curve:
        """The nodes up to where all speeds are equal, which are made exactly so there."""
        moving = np.flatnonzero(np.abs(nodes.dx).max(axis=1, initial=0.0) >= LOCKED)
        first = int(moving[-1]) + 1 if len(moving) else 0
        if first == len(nodes.x):
            return nodes
        y, dy, ddy = (part[: first + 1].copy() for part in nodes)
        dy[-1] = ddy[-1] = 0.0
        self.locked = first * self._h
        return Curve(y, dy, ddy)

    def _slope(self, y: np.ndarray) -> np.ndarray:
        return self._excess - self._coupling * (np.sin(self._D @ y) @ self._D)

    def _step(self, y: np.ndarray) -> np.ndarray:
        h = self._h
        k1 = self._slope(y)
        k2 = self._slope(y + h / 2 * k1)
        k3 = self._slope(y + h / 2 * k2)
        k4 = self._slope(y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def _rates(self, y: np.ndarray) -> Curve:
        """y (m, n) with its exact first and second derivatives."""
        d = y @ self._D.T
        dy = self._excess - self._coupling * (np.sin(d) @ self._D)
        ddy = -self._coupling * ((np.cos(d) * (dy @ self._D.T)) @ self._D)
        return Curve(y, dy, ddy)
