"""Derivatives by central differences of order eight."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# f'(0) = sum of w_k (f(k h) - f(-k h)) / h; the error is h^8/630 times the ninth derivative
WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
STEP = 1e-2  # truncation and rounding meet near 1e-13 for motions of unit size


def slope(function: Callable[[float], np.ndarray], step: float = STEP) -> np.ndarray:
    """f'(0) of a function of time."""
    pairs = (
        weight * (np.asarray(function(k * step)) - np.asarray(function(-k * step)))
        for k, weight in enumerate(WEIGHTS, start=1)
    )
    return sum(pairs) / step


def columns(function: Callable[[np.ndarray], np.ndarray], size: int, step: float = STEP):
    """(..., size) derivatives by each component of an argument, at zero."""
    units = np.eye(size)
    return np.stack([slope(lambda t, e=e: function(t * e), step) for e in units], axis=-1)
