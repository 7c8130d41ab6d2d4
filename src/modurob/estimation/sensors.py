"""A filter designed from the noise of the sensors alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import not_negative, positive
from modurob.estimation.ekf import Ekf
from modurob.model import Model

ACCELERATION = 5.0  # [rad/s^2, m/s^2] that the model does not explain, held for a sample
LEAST_NOISE = 1e-6  # [rad, m] standard deviation: a filter cannot believe in none at all


def ekf_for_sensors(
    model: Model,
    dt: float,
    sigma: float,
    *,
    q: ArrayLike | None = None,
    v: ArrayLike | None = None,
    **given: Any,
) -> Ekf:
    """An `Ekf` of joint positions that are measured with noise.

    Errors of the model (masses, friction, drives) count as an unknown acceleration of some rad/s^2,
    independent in each sample.

    Args:
        dt: Seconds between samples.
        sigma: Standard deviation of a measured position. [rad, m]
        q, v: Where it starts; in the neutral pose, at rest, by default.
        given: Other arguments of `Ekf`, such as Q, in place of those that follow from sigma.
    """
    sigma = max(not_negative("sigma", sigma, "rad or m"), LEAST_NOISE)
    dt = positive("dt", dt, "seconds")
    moved, faster = ACCELERATION * dt**2 / 2, ACCELERATION * dt
    usual = {
        "Q": np.repeat([moved**2, faster**2], model.nv),
        "R": sigma**2,
        "P": np.repeat([sigma**2, faster**2], model.nv),
    }
    return Ekf(model, dt, q=q, v=v, **(usual | given))
