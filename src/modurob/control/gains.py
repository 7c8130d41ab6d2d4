"""Gains from poles, or from a settling time: starting values that a person can argue about.

The settling time is the one of textbooks: an error of 1 at rest stays within 2 % from then on. It
is computed from the exact response, not from the rule of thumb 4 / (damping * frequency).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import positive
from modurob.errors import StateError
from modurob.model import Model

SETTLED = 0.02  # of the first error: the customary band
SETTLING_TIME = 1.0  # [s] of default gains
DAMPING = 1.0  # of default gains: no overshoot
HORIZON = 12.0  # slowest time constants to look ahead: e^-12 times a cubic is far within the band
GRID = 4096  # points over the horizon; an oscillation of damping 0.01 has 20 of them a period
BISECTIONS = 40  # to rounding, from one cell of the grid


def from_poles(poles: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """K0, K1 (each (...)) of ``e'' + K1 e' + K0 e = 0`` with two poles. [1/s^2, 1/s]

    Args:
        poles: (..., 2) in the left half-plane: two real ones, or a conjugate pair. [1/s]
    """
    try:
        p = np.asarray(poles, dtype=complex)
    except (TypeError, ValueError):
        p = np.empty(0, dtype=complex)
    if p.ndim == 0 or p.shape[-1] != 2 or not np.isfinite(p).all():
        raise StateError(f"poles are two finite numbers for each joint, got {poles!r}")
    k0, k1 = p[..., 0] * p[..., 1], -(p[..., 0] + p[..., 1])
    rounding = 1e-12 * (1 + np.abs(k0) + np.abs(k1))
    if np.any(np.abs(np.imag(k0)) > rounding) or np.any(np.abs(np.imag(k1)) > rounding):
        raise StateError(f"complex poles come in conjugate pairs, got {poles!r}")
    if np.any(np.real(p) >= 0):
        raise StateError(f"poles must lie left of the imaginary axis, got {poles!r}")
    return np.real(k0), np.real(k1)


def from_settling_time(
    settling_time: float = SETTLING_TIME, damping: float = DAMPING
) -> tuple[float, float]:
    """K0, K1 of ``e'' + K1 e' + K0 e = 0`` that settles in a given time. [1/s^2, 1/s]

    Args:
        settling_time: Until an error of 1 at rest stays within 2 %. [s]
        damping: 1 for no overshoot, 0.7 for a quick response with 5 %.
    """
    time = positive("settling_time", settling_time, "seconds")
    frequency = settling_factor(positive("damping", damping, "(no unit)")) / time
    return float(frequency**2), float(2 * damping * frequency)


def pid_from_settling_time(settling_time: float = SETTLING_TIME) -> tuple[float, float, float]:
    """Kp, Ki, Kd of ``e'' + Kd e' + Kp e + Ki int(e) = 0`` with a triple pole. [1/s^2, 1/s^3, 1/s]

    Args:
        settling_time: Until an error of 1 at rest stays within 2 %. [s]
    """
    rate = _triple_factor() / positive("settling_time", settling_time, "seconds")
    return float(3 * rate**2), float(rate**3), float(3 * rate)


def settling_factor(damping: float) -> float:
    """Natural frequency times settling time of ``e'' + 2 damping w e' + w^2 e = 0``."""
    return settling_time(1.0, 2 * damping)


def settling_time(k0: float, k1: float, ki: float = 0.0) -> float:
    """Until an error of 1 at rest stays within 2 %; infinite when it never does. [s]

    Args:
        k0, k1: Of ``e'' + k1 e' + k0 e + ki int(e) = 0``. [1/s^2, 1/s]
        ki: [1/s^3]
    """
    return _settling_time(float(k0), float(k1), float(ki))


@lru_cache(maxsize=256)
def _settling_time(k0: float, k1: float, ki: float) -> float:
    from scipy.linalg import expm

    A = np.array([[0.0, 1.0, 0.0], [-k0, -k1, -ki], [1.0, 0.0, 0.0]])  # (e, e', int e)
    if ki == 0:
        A = A[:2, :2]
    rates = np.linalg.eigvals(A).real
    if rates.max() >= 0:
        return float("inf")
    h = HORIZON / -rates.max() / GRID
    step, x = expm(A * h), np.eye(len(A))[0]
    last, before = 0, x
    for k in range(GRID):
        after = step @ x
        if abs(x[0]) > SETTLED:
            last, before = k, x
        x = after
    low, high = 0.0, h  # the response leaves the band for the last time within this cell
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        outside = abs((expm(A * middle) @ before)[0]) > SETTLED
        low, high = (middle, high) if outside else (low, middle)
    return float(last * h + (low + high) / 2)


@lru_cache(maxsize=1)
def _triple_factor() -> float:
    """Pole times settling time of (s + 1)^3."""
    return settling_time(3.0, 3.0, 1.0)


def joint_inertia(model: Model, q: ArrayLike | None = None) -> np.ndarray:
    """(n,) inertia or mass that each joint moves when the others are held. [kg m^2, kg]

    Args:
        q: (nq,) where; the neutral pose by default.
    """
    M = model.mass_matrix(model.neutral() if q is None else q)
    return np.diagonal(M)[model.nv - len(model.joint_names) :].copy()
