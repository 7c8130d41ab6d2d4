"""Coupled phase oscillators: one for each joint, pulled along by its neighbors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import not_negative
from modurob.gaits.base import Synchronizing, register
from modurob.gaits.body import neighbors
from modurob.gaits.checks import (
    Edges,
    Numbers,
    checked_edges,
    checked_times,
    generator,
    per_joint,
)
from modurob.gaits.kuramoto import Track
from modurob.gaits.quintic import Motion
from modurob.gaits.sine import checked_frequency
from modurob.model import Model


@register
class Oscillators(Synchronizing):
    """``q_i = offset_i + amplitude_i sin(theta_i)``, with phases that pull at each other.

    ``theta_i' = 2 pi frequency_i + coupling sum_j sin(theta_j - theta_i - (phase_j - phase_i))``,
    summed over the neighbors j. If the coupling is strong enough for the differences of
    frequencies, all run at the mean frequency in the end, at the wanted phases or near them.

    The equation is solved once, step by step as far as it is asked for; from the time they lock,
    the phases grow evenly.

    Args:
        joints: Names of the joints.
        amplitude, offset: One number, (n,), or numbers by joint. [rad, m]
        edges: Pairs of joints that are coupled; `for_model` takes those that meet at a link.
        frequency: One number, (n,), or numbers by joint (1 for joints not named). [Hz]
        coupling: Strength of the pull. [rad/s]
        phase: Wanted phases; only their differences matter. [rad]
        start: Phases at t = 0; by default anywhere on the circle. [rad]
        rng: Chooses `start`; a fixed seed by default.
        ramp: Seconds from rest to full swing.
    """

    name = "oscillators"
    random = True

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
        super().__init__(joints, amplitude, offset=offset, ramp=ramp)
        self.edges = checked_edges(edges, self.joints)
        self.frequency = checked_frequency(frequency, self.joints)
        self.coupling = not_negative("coupling", coupling, "rad/s")
        self.phase = per_joint("phase", phase, self.joints)
        if start is None:
            start = generator(rng).uniform(-np.pi, np.pi, len(self.joints))
        self.start = per_joint("start", start, self.joints)

    @classmethod
    def body_settings(cls, model: Model) -> dict[str, Any]:
        return {"edges": neighbors(model)}

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
        theta = self._phases(times.reshape(-1)).w
        return theta.reshape(*times.shape, len(self.joints))

    def order(self, t: ArrayLike) -> np.ndarray:
        """(...) order parameter at times t: 1 when all are at their wanted phases, 0 for none."""
        if not self.joints:
            return np.ones(np.shape(t))
        return np.abs(np.mean(np.exp(1j * (self.phases(t) - self.phase)), axis=-1))

    def synchrony(self, t: ArrayLike) -> dict[str, np.ndarray]:
        return {"order parameter": self.order(t)}

    def swing(self, t: np.ndarray) -> Motion:
        theta, speed, change = self._phases(t)
        w, c = np.sin(theta), np.cos(theta)
        return Motion(w, c * speed, c * change - w * speed**2)

    def _phases(self, t: np.ndarray) -> Motion:
        y, dy, ddy = self._track(t)
        return Motion(self.phase + self.speed * t[:, None] + y, self.speed + dy, ddy)

    @cached_property
    def _track(self) -> Track:
        excess = 2 * np.pi * self.frequency - self.speed
        return Track(self.edges, excess, self.coupling, self.start - self.phase)
