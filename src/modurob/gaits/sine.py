"""Sines: every joint swings by itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modurob.errors import StateError
from modurob.gaits.base import Gait, register
from modurob.gaits.checks import Numbers, per_joint
from modurob.gaits.quintic import Motion


@register
class Sine(Gait):
    """``q_i = offset_i + amplitude_i sin(2 pi frequency_i t + phase_i)``.

    Args:
        joints: Names of the joints.
        amplitude, offset: One number, (n,), or numbers by joint. [rad, m]
        frequency: Likewise; 1 for joints that are not named. [Hz]
        phase: Likewise. [rad]
        ramp: Seconds from rest to full swing.
    """

    name = "sine"

    def __init__(
        self,
        joints: Sequence[str],
        amplitude: Numbers,
        *,
        offset: Numbers = 0.0,
        frequency: Numbers = 1.0,
        phase: Numbers = 0.0,
        ramp: float = 0.0,
    ) -> None:
        super().__init__(joints, amplitude, offset=offset, ramp=ramp)
        self.frequency = checked_frequency(frequency, self.joints)
        self.phase = per_joint("phase", phase, self.joints)

    @property
    def period(self) -> float | None:
        """Seconds of one swing; None if the joints that move have different frequencies."""
        used = np.unique(self.frequency[self.amplitude != 0])
        return 1 / float(used[0]) if len(used) == 1 else None

    def swing(self, t: np.ndarray) -> Motion:
        # whole turns are dropped first, so that late times are as exact as early ones
        angle = 2 * np.pi * np.mod(self.frequency * t[:, None], 1.0) + self.phase
        rate = 2 * np.pi * self.frequency
        w = np.sin(angle)
        return Motion(w, rate * np.cos(angle), -(rate**2) * w)


def checked_frequency(frequency: Numbers, joints: Sequence[str]) -> np.ndarray:
    """(n,) positive frequencies. [Hz]"""
    found = per_joint("frequency", frequency, joints, otherwise=1.0)
    if (found <= 0).any():
        k = int(np.flatnonzero(found <= 0)[0])
        raise StateError(f"frequencies are positive, got {found[k]:g} Hz for joint '{joints[k]}'")
    return found
