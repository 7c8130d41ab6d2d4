"""What a check finds, and the states it looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modurob.equations.links import SLIP
from modurob.model import Model
from modurob.organism import Organism

PASSED, FAILED, LEFT_OUT = "passed", "FAILED", "left out"
TINY = 1e-300  # keeps a relative error of nothing but zeros at zero


class LeftOut(Exception):
    """A check that cannot be made; the text says why."""


class Finding(NamedTuple):
    """A number and what it may be at most, or at least.

    Attributes:
        limit: The number that `found` must not exceed, or must reach when `at_least` is set.
        note: What was compared, in a few words.
    """

    found: float
    limit: float
    note: str
    at_least: bool = False

    @property
    def holds(self) -> bool:
        """Whether the number is as it should be; NaN never is."""
        return bool(self.found >= self.limit if self.at_least else self.found <= self.limit)


@dataclass(frozen=True)
class Check:
    """One line of the verdict.

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
class Report:
    """All checks of one model.

    Attributes:
        title: One line about the model.
        checks: In the order in which they were made.
    """

    title: str
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether no check failed; those left out do not count."""
        return all(check.verdict != FAILED for check in self.checks)

    def count(self, verdict: str) -> int:
        """How many checks ended this way."""
        return sum(check.verdict == verdict for check in self.checks)


class Case(NamedTuple):
    """A model and the states to look at it.

    Attributes:
        q, v, a: (states, nq), (states, nv), (states, nv).
        rng: For whatever else a check needs at random.
    """

    organism: Organism
    hinges: str
    base: Any
    model: Model
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    rng: np.random.Generator

    @property
    def slow(self) -> np.ndarray:
        """(states, nv) velocities that turn the whole organism by about 1 rad/s.

        A chain adds up the speeds of its joints; differences over some hundredths of a second
        want tips that hardly move.
        """
        return self.v / max(1.0, np.sqrt(self.model.nv))


def friction(model: Model, v: np.ndarray) -> np.ndarray:
    """(..., nv) forces of viscous and rounded dry friction."""
    base = model.joint_slice_v.start
    joints, force = v[..., base:], np.zeros_like(v)
    dry = model.coulomb * joints / np.sqrt(joints**2 + SLIP**2)
    force[..., base:] = model.viscous * joints + dry
    return force


def relative(found: ArrayLike, expected: ArrayLike, scale: float = 0.0) -> float:
    """Largest deviation over the largest number, or over `scale` if that is larger."""
    found, expected = np.asarray(found), np.asarray(expected)
    size = max(float(np.abs(expected).max(initial=0.0)), scale, TINY)
    error = np.abs(found - expected).max(initial=0.0)
    return float(error / size)
