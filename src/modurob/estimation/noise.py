"""Covariances as people give them: one variance, a diagonal, a matrix, or shaped by another."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.errors import StateError

NEGATIVE = 1e-9  # of the largest eigenvalue: rounding in a covariance that has a zero one


def covariance(name: str, value: ArrayLike, size: int) -> np.ndarray:
    """(size, size) from one variance, (size,) variances or a matrix, or a `StateError`."""
    array = _array(name, value)
    if array.shape in ((), (size,)):
        array = np.diag(np.broadcast_to(array, (size,))).copy()
    if array.shape != (size, size):
        raise StateError(
            f"{name} is one variance, {size} of them or a ({size}, {size}) matrix, "
            f"got shape {array.shape}"
        )
    if not np.allclose(array, array.T):
        raise StateError(f"{name} is a covariance: it must be symmetric")
    values = np.linalg.eigvalsh(array) if size else np.zeros(1)
    if values[0] < -NEGATIVE * max(values[-1], 0.0) or values[-1] < 0:
        raise StateError(f"{name} is a covariance: its eigenvalue {values[0]:.3g} is negative")
    return (array + array.T) / 2


def shaped(
    name: str, value: ArrayLike, shape_name: str, shape: ArrayLike | None, size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Q, W and ``W Q W^T`` (size, size)."""
    W = np.eye(size) if shape is None else _array(shape_name, shape)
    if W.ndim != 2 or len(W) != size:
        raise StateError(f"{shape_name} has {size} rows, got shape {W.shape}")
    Q = covariance(name, value, W.shape[1])
    return Q, W, W @ Q @ W.T


def _array(name: str, value: Any) -> np.ndarray:
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        array = np.array(np.nan)
    if not np.isfinite(array).all():
        raise StateError(f"{name} must hold finite real numbers, got {str(value)[:60]!r}")
    return array
