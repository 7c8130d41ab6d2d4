"""Travelling waves: the phase falls with the distance from the base."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from modurob.gaits.base import register
from modurob.gaits.body import depths
from modurob.gaits.checks import Numbers, checked_joints, inside, per_joint
from modurob.gaits.sine import Sine
from modurob.model import Model

STEEPEST = np.pi  # [rad] between neighbors: steeper waves look like shallower ones the other way


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
