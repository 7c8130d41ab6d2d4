"""Results of a check, and the states it uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modurob.model import Model, ModelOptions
from modurob.organism import Organism

PASSED, FAILED, LEFT_OUT = "passed", "FAILED", "left out"
TINY = 1e-300  # keeps a relative error of nothing but zeros at zero


class LeftOut(Exception):
    """A check that cannot be made; the text gives the reason."""


class CheckValue(NamedTuple):
    """A number and its limit, an upper one unless `at_least` is set."""

    found: float
    limit: float
    note: str
    at_least: bool = False

    @property
    def holds(self) -> bool:
        """Return whether the number keeps its limit; NaN never does."""
        return bool(self.found >= self.limit if self.at_least else self.found <= self.limit)


@dataclass(frozen=True)
class Check:
    """One line of the report.

    Attributes:
        found, limit: None when the check was left out.
        relation: ``<=`` or ``>=``, between the two.
        verdict: ``passed``, ``FAILED`` or ``left out``.
        note: What was compared, or why it was not.
    """

    name: str
    verdict: str
    note: str
    found: float | None = None
    relation: str = "<="
    limit: float | None = None


@dataclass(frozen=True)
class VerificationReport:
    """All checks of one model.

    Attributes:
        title: One line about the model.
        checks: In the order in which they were made.
    """

    title: str
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """True if no check failed; those left out do not count."""
        return not self.count(FAILED)

    def count(self, verdict: str) -> int:
        """Number of checks with this verdict."""
        return sum(check.verdict == verdict for check in self.checks)


class CheckCase(NamedTuple):
    """A model and states of it.

    Attributes:
        options: That the model was built with.
        q, v, a: (states, nq), (states, nv), (states, nv).
        rng: For whatever else a check needs at random.
    """

    organism: Organism
    options: ModelOptions
    model: Model
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    rng: np.random.Generator

    @property
    def slow(self) -> np.ndarray:
        """(states, nv) velocities that turn the whole organism by about 1 rad/s.

        A chain adds up the speeds of its joints, and differences over some hundredths of a second
        need tips that hardly move.
        """
        return self.v / max(1.0, np.sqrt(self.model.nv))


def relative(found: ArrayLike, expected: ArrayLike, scale: float = 0.0) -> float:
    """Largest deviation over the largest number, or over `scale` if that is larger."""
    found, expected = np.asarray(found), np.asarray(expected)
    size = max(float(np.abs(expected).max(initial=0.0)), scale, TINY)
    return float(np.abs(found - expected).max(initial=0.0) / size)
