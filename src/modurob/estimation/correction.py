"""What a measurement of some states does to a covariance."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lapack

from modurob.errors import StateError

HALF = np.array(0.5)  # NumPy takes longer to look at a Python number than to halve a small matrix
Rows = np.ndarray | slice  # of the state that are measured


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
    right = np.empty((len(P) + 1, len(S)))
    right[:-1], right[-1] = P[:, rows], residual
    solve = lapack.dposv  # pyright: ignore[reportAttributeAccessIssue]
    *_, wrong = solve(S, right.T, overwrite_b=True)
    if wrong:  # S is singular or has been made so by rounding
        try:
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
