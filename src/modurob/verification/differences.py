"""Derivatives by central differences of order eight: slow, and nothing of the exact ones in it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# f'(0) = sum of w_k (f(k h) - f(-k h)) / h; the error is h^8/630 times the ninth derivative
WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
STEP = 2e-3  # accelerations of light links turn sharply; rounding still leaves eleven digits


def slope(function: Callable[[float], np.ndarray], step: float = STEP) -> np.ndarray:
    """f'(0) of a function of time."""
    pairs = (
        weight * (np.asarray(function(k * step)) - np.asarray(function(-k * step)))
        for k, weight in enumerate(WEIGHTS, start=1)
    )
    return np.asarray(sum(pairs)) / step


def columns(function: Callable[[np.ndarray], np.ndarray], size: int) -> np.ndarray:
    """(n, size) derivatives of an n-vector by each component of its argument, at zero.

    Args:
        function: Takes (size, size) arguments, one a row, and returns (size, n).
    """
    return slope(lambda t: function(t * np.eye(size))).T
