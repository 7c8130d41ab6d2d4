"""The experiment of section IV: arm, motion, gains and noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from modurob.control.references import Quintic

WORD = "babac"
FINAL = np.array([0.2, 0.4, 0.6, 0.8, 0.1])  # [rad, m]
DURATION = 1.0  # [s]
KP, KD = 250.0, 30.0
MEASURED, DISTURBED = 0.03, 0.3  # standard deviations: [rad, m, rad/s, m/s], [N m, N]
FRICTION = 3.0  # [N m s, N s/m] of each joint, Tab. III

# Not printed. The lightest motion of the straight arm has an inertia of 1e-3 kg m^2, on which
# Kd = 30 must not act longer than 2 m / Kd = 67 us at a time, or the PD law swings up.
SAMPLE = 5e-5  # [s]
KEEP = 1e-3  # [s] between the errors that are looked at

MOTION = Quintic(np.zeros(len(FINAL)), FINAL, DURATION)


def rounded(values: ArrayLike) -> np.ndarray:
    """Numbers as they stand in ``expected.json``, with twelve digits after the point."""
    return np.round(np.asarray(values, dtype=float), 12)
