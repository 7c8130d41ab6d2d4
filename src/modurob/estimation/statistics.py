"""Is a filter as sure as it says? Chi-square tests of NEES and NIS."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modurob.errors import StateError


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
            word = "too sure of itself" if self.mean > self.upper else "too careful"
        return f"{word}: mean {self.mean:.4g}, expected {self.lower:.4g} to {self.upper:.4g}"


def chi_square(probability: float, dof: float) -> float:
    """The value that a chi-square variable stays below with a probability."""
    from scipy.special import gammaincinv  # scipy.stats says the same, and takes a second to load

    return float(2.0 * gammaincinv(dof / 2, probability))


def consistency(values: ArrayLike, dof: int, level: float = 0.95) -> Consistency:
    """Whether NEES or NIS values fit the covariances a filter claims.

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
