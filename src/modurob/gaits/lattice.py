"""Logistic maps on the nodes of a graph, coupled along its edges, and when they synchronize.

``x_i(k+1) = (1 - eps) f(x_i) + eps / deg_i sum_j f(x_j)``, ``f(x) = r x (1 - x)``. Where all maps
agree, a small difference along mode k of the graph grows by ``|1 - eps l_k| |f'(x)|`` a step, with
the eigenvalues ``l_k`` of the normalized Laplacian. So the maps stay together if and only if
``lyapunov + log|1 - eps l_k| < 0`` for all modes but the common one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

STARTS, STEPS, WARM_UP = 1000, 3000, 1000  # orbits and their lengths behind a Lyapunov exponent


class Range(NamedTuple):
    """Couplings between which maps synchronize."""

    low: float
    high: float


def logistic(x: np.ndarray, r: float) -> np.ndarray:
    """``r x (1 - x)``."""
    return r * x * (1 - x)


def invariant(r: float) -> tuple[float, float]:
    """The interval that the map keeps to itself for 2 <= r <= 4: from f(f(1/2)) to f(1/2).

    Coupled values are means of values of the map, so the lattice keeps to it as well.
    """
    return r * r / 4 * (1 - r / 4), r / 4


def coupling_matrix(edges: np.ndarray, n: int, eps: float) -> np.ndarray:
    """(n, n) rows that mix each map with its neighbors; those without any stay by themselves."""
    A = _adjacency(edges, n)
    degree = A.sum(axis=1)
    share = np.where(degree > 0, eps, 0.0)
    return np.diag(1 - share) + (share / np.maximum(degree, 1.0))[:, None] * A


def laplacian_eigenvalues(edges: np.ndarray, n: int) -> np.ndarray:
    """(n,) eigenvalues of the normalized Laplacian, rising from 0 to at most 2."""
    A = _adjacency(edges, n)
    degree = A.sum(axis=1)
    # the symmetric matrix that is similar to 1 - A / degree
    root = np.sqrt(np.maximum(degree, 1.0))
    symmetric = np.diag((degree > 0).astype(float)) - A / np.outer(root, root)
    return np.clip(np.linalg.eigvalsh(symmetric), 0.0, 2.0)


def _adjacency(edges: np.ndarray, n: int) -> np.ndarray:
    A = np.zeros((n, n))
    A[edges[:, 0], edges[:, 1]] = A[edges[:, 1], edges[:, 0]] = 1.0
    return A


@lru_cache(maxsize=64)
def lyapunov_exponent(r: float) -> float:
    """Mean of log|f'(x)| along orbits of one map: above zero for chaos. [1/step]"""
    low, high = invariant(r)
    # many orbits for a short time: as good as one for long, and a thousand times faster
    x = np.linspace(low, high, STARTS + 2)[1:-1]
    total = 0.0
    for k in range(STEPS):
        if k >= WARM_UP:
            total += float(np.mean(np.log(np.maximum(np.abs(r * (1 - 2 * x)), 1e-300))))
        x = logistic(x, r)
    return total / (STEPS - WARM_UP)


def transverse_exponents(edges: np.ndarray, n: int, r: float, eps: float) -> np.ndarray:
    """(n - 1,) growth of differences between joints for each mode of the graph. [1/step]"""
    with np.errstate(divide="ignore"):
        damping = np.log(np.abs(1 - eps * laplacian_eigenvalues(edges, n)[1:]))
    return lyapunov_exponent(r) + damping


def synchronization_range(edges: np.ndarray, n: int, r: float) -> Range | None:
    """The couplings eps for which all transverse exponents are negative; None if there are none."""
    modes = laplacian_eigenvalues(edges, n)[1:]
    left = np.exp(-lyapunov_exponent(r))  # what damping must leave less than
    if not len(modes):
        return Range(0.0, 1.0)
    if modes[0] < 1e-12:  # the graph has parts that are not connected
        return Range(0.0, 1.0) if left > 1 else None
    low, high = max((1 - left) / modes[0], 0.0), min((1 + left) / modes[-1], 1.0)
    return Range(float(low), float(high)) if low < high else None
