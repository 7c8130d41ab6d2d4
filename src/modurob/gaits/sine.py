"""Sines of each joint, and traveling waves with phases that fall with the distance to the base."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from modurob.checks import Numbers, inside, per_joint
from modurob.errors import StateError
from modurob.gaits.base import Gait, checked_joints, register
from modurob.gaits.body import depths
from modurob.model import Model
from modurob.quintic import Curve

STEEPEST = np.pi  # [rad] between neighbors: steeper waves look like shallower ones the other way


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

    def swing(self, t: np.ndarray) -> Curve:
        # whole turns are dropped first, so that late times are as exact as early ones
        angle = 2 * np.pi * np.mod(self.frequency * t[:, None], 1.0) + self.phase
        rate = 2 * np.pi * self.frequency
        w = np.sin(angle)
        return Curve(w, rate * np.cos(angle), -(rate**2) * w)


@register
class Wave(Sine):
    """``q_i = offset_i + amplitude_i sin(2 pi frequency t - lag depth_i + phase_i)``.

    A wave runs from the base outward along every chain, ``2 pi frequency / lag`` joints a second;
    a negative lag brings it back to the base.

    Args:
        joints: Names of the joints.
        amplitude, offset: One number, (n,), or numbers by joint. A negative amplitude mirrors a
            joint whose axis points the other way. [rad, m]
        frequency: One number for all. [Hz]
        lag: Phase between a joint and the next one outward, from -pi to pi; `2 pi / lag` joints
            make one wavelength. [rad]
        depth: How far out the joints are, counted in joints; by default the order they are named.
        phase: Added to the phases. [rad]
        ramp: Seconds from rest to full swing.
    """

    name = "wave"

    def __init__(
        self,
        joints: Sequence[str],
        amplitude: Numbers,
        *,
        offset: Numbers = 0.0,
        frequency: float = 1.0,
        lag: float = np.pi / 3,
        depth: Numbers | None = None,
        phase: Numbers = 0.0,
        ramp: float = 0.0,
    ) -> None:
        self.lag = inside("lag", lag, -STEEPEST, STEEPEST, "rad between neighbors")
        joints = checked_joints(joints)
        self.depth = per_joint("depth", range(len(joints)) if depth is None else depth, joints)
        shifted = per_joint("phase", phase, joints) - self.lag * self.depth
        super().__init__(
            joints, amplitude, offset=offset, frequency=frequency, phase=shifted, ramp=ramp
        )

    @classmethod
    def body_settings(cls, model: Model) -> dict[str, Any]:
        return {"depth": depths(model)}


def checked_frequency(frequency: Numbers, joints: Sequence[str]) -> np.ndarray:
    """(n,) positive frequencies. [Hz]"""
    found = per_joint("frequency", frequency, joints, otherwise=1.0)
    if (found <= 0).any():
        k = int(np.flatnonzero(found <= 0)[0])
        raise StateError(f"frequencies are positive, got {found[k]:g} Hz for joint '{joints[k]}'")
    return found
