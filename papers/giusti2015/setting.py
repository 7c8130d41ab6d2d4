"""The experiment of section IV: arm, motion, gains and noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from modurob.control.references import Quintic
from modurob.scenario import presets

WORD = presets.ARM_WORD
SCENARIO = presets.arm_motion(presets.ARM_PD)  # of Fig. 7, as `modurob run --preset` has it
FINAL = np.array(list(SCENARIO.target.values()))  # [rad, m]
DURATION = SCENARIO.duration  # [s]
KP, KD = (float(np.max(SCENARIO.gains[name])) for name in ("kp", "kd"))
MEASURED, DISTURBED = SCENARIO.noise_q, SCENARIO.noise_tau  # [rad, m, rad/s, m/s], [N m, N]
FRICTION = 3.0  # [N m s, N s/m] of each joint, Tab. III

# Not printed. The lightest motion of the straight arm has an inertia of 1e-3 kg m^2, on which
# Kd = 30 must not act longer than 2 m / Kd = 67 us at a time, or the PD law swings up.
SAMPLE = SCENARIO.sample_time  # [s]
KEEP = SCENARIO.record or 0.0  # [s] between the errors that are looked at

MOTION = Quintic(np.zeros(len(FINAL)), FINAL, DURATION)


def rounded(values: ArrayLike) -> np.ndarray:
    """Numbers as they stand in ``expected.json``, with twelve digits after the point."""
    return np.round(np.asarray(values, dtype=float), 12)
