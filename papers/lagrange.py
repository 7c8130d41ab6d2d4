"""The two benchmarks of the documents, double pendulum and crane, by modurob and by Lagrange."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modurob import Organism, Trajectory, examples, simulate
from modurob.verification import lagrange

TOLERANCE = 1e-12  # of our runs; the reference is solved as tightly
STEP = 0.02  # [s] at most, so that the curves are smooth


class Comparison(NamedTuple):
    """Our run and Lagrange's solution at the same times.

    Attributes:
        t: (N,) [s]
        ours, theirs: (3, N, 2) positions, velocities, accelerations.
    """

    trajectory: Trajectory
    t: np.ndarray
    ours: np.ndarray
    theirs: np.ndarray

    @property
    def deviations(self) -> list[float]:
        """Of positions, velocities and accelerations over the whole run."""
        return np.abs(self.ours - self.theirs).max(axis=(1, 2)).tolist()


def pendulum(l1: float, l2: float, angles: tuple[float, float], duration: float) -> Comparison:
    """The pendulum from rest at absolute angles, compared in absolute angles."""
    first, second = angles
    found = _compared(examples.double_pendulum(l1=l1, l2=l2), (first, second - first), duration)
    ours, theirs = (np.cumsum(x, axis=-1) for x in (found.ours, found.theirs))
    return found._replace(ours=ours, theirs=theirs)


def crane(m1: float, m2: float, length: float, angle: float, duration: float) -> Comparison:
    """The crane from rest."""
    return _compared(examples.crane(m1=m1, m2=m2, l=length), (0.0, angle), duration)


def _compared(organism: Organism, q0: tuple[float, float], duration: float) -> Comparison:
    model = organism.model("physical")
    equations = lagrange.printed(organism, model)
    assert equations is not None
    found = simulate(
        model, q0, [0, 0], duration, None, "DOP853", rtol=TOLERANCE, atol=TOLERANCE, dt=STEP
    )
    theirs = equations.solution(np.array(q0), np.zeros(2), found.t)
    return Comparison(found, found.t, np.stack([found.q, found.v, found.a]), theirs)
