"""Covariances: as given, corrected by a measurement, and tested with chi-square statistics."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack

from modurob.checks import real_array
from modurob.errors import StateError

NEGATIVE = 1e-9  # of the largest eigenvalue: rounding in a covariance that has a zero one
HALF = np.array(0.5)  # converting a Python number takes longer than halving a small matrix
Rows = np.ndarray | slice  # of the state that are measured
_factor, _inverse = lapack.dpotrf, lapack.dtrtri  # pyright: ignore[reportAttributeAccessIssue]


def covariance(name: str, value: ArrayLike, size: int) -> np.ndarray:
    """(size, size) from one variance, (size,) variances or a matrix, or a `StateError`."""
    array = real_array(name, value)
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
    W = np.eye(size) if shape is None else real_array(shape_name, shape)
    if W.ndim != 2 or len(W) != size:
        raise StateError(f"{shape_name} has {size} rows, got shape {W.shape}")
    Q = covariance(name, value, W.shape[1])
    return Q, W, W @ Q @ W.T


# -- correction ------------------------------------------------------------------------------------


def rows_of(indices: Any) -> Rows:
    """Indices, as a slice where they follow each other: that makes views instead of copies."""
    rows = np.asarray(indices, dtype=int)
    first = int(rows[0]) if len(rows) else 0
    if np.array_equal(rows, np.arange(first, first + len(rows))):
        return slice(first, first + len(rows))
    return rows


def gained(
    P: np.ndarray, S: np.ndarray, rows: Rows, residual: np.ndarray
) -> tuple[np.ndarray, float]:
    """Gain ``K = P H^T S^-1`` (2nv, m), and ``residual^T S^-1 residual``."""
    U, wrong = _factor(S)
    if not wrong:
        inverse, wrong = _inverse(U, overwrite_c=True)  # faster than solving with U twice
        white = residual.dot(inverse)
        return P[:, rows].dot(inverse).dot(inverse.T), float(white.dot(white))
    try:  # S is singular or has been made so by rounding
        right = np.linalg.solve(S, np.vstack([P[:, rows], residual]).T).T
    except np.linalg.LinAlgError:
        raise StateError(
            "the covariance S of the measurements is singular: give R a positive variance, or "
            "P, for everything that is measured"
        ) from None
    return right[:-1], float(residual.dot(right[-1]))


def joseph(P: np.ndarray, K: np.ndarray, rows: Rows, noise: np.ndarray) -> np.ndarray:
    """``(I - K H) P (I - K H)^T + K R K^T``: stays symmetric and positive.

    H only picks rows and columns, so neither ``I - K H`` nor products with its ones and zeros
    are formed.
    """
    half = P - K.dot(P[rows])
    half -= (half[:, rows] - K.dot(noise)).dot(K.T)
    return symmetric(half)


def symmetric(P: np.ndarray) -> np.ndarray:
    """The symmetric part, which rounding has left."""
    both = P + P.T
    both *= HALF
    return both


# -- consistency -----------------------------------------------------------------------------------


class Consistency(NamedTuple):
    """Result of `consistency`.

    Attributes:
        mean: Of the values.
        lower, upper: Between which the mean of a consistent filter lies.
        consistent: Whether it does.
    """

    mean: float
    lower: float
    upper: float
    consistent: bool

    def __str__(self) -> str:
        if self.consistent:
            word = "consistent"
        else:
            word = "overconfident" if self.mean > self.upper else "too cautious"
        return f"{word}: mean {self.mean:.4g}, expected {self.lower:.4g} to {self.upper:.4g}"


def chi_square(probability: float, dof: float) -> float:
    """The value that a chi-square variable stays below with a probability."""
    from scipy.special import gammaincinv  # scipy.stats takes a second to load

    return float(2.0 * gammaincinv(dof / 2, probability))


def consistency(values: ArrayLike, dof: int, level: float = 0.95) -> Consistency:
    """Compare NEES or NIS values with the covariances of a filter.

    Args:
        values: Independent ones: NEES at one time over many runs, or NIS along one.
        dof: Size of the error: 2 nv for NEES, number of measurements for NIS.
        level: Probability with which a consistent filter passes.
    """
    x = np.asarray(values, dtype=float).ravel()
    if not len(x) or dof < 1 or not 0 < level < 1:
        raise StateError(
            f"consistency needs values, dof of 1 or more and a level between 0 and 1; "
            f"got {len(x)} values, dof = {dof}, level = {level}"
        )
    tail, mean = (1 - level) / 2, float(x.mean())
    lower, upper = (chi_square(p, len(x) * dof) / len(x) for p in (tail, 1 - tail))
    return Consistency(mean, lower, upper, lower <= mean <= upper)
