"""When and why trajectories part: docs/theory/chaos.md explains what is drawn here."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from modurob import Model, Organism, simulate
from papers import figures

DURATION = 12.0  # [s]
APART = 1e-10  # [rad] of each joint at the start
TOLERANCES = (1e-4, 1e-8, 1e-12)
FINEST = 1e-13
SEED = 5
GROWING = (1e-9, 1e-2)  # [rad] between rounding and saturation: where the growth is measured
SMOOTH = 1.0  # [s] of the running maximum: two trajectories may cross for a moment


class Growth(NamedTuple):
    """How fast two neighbors part.

    Attributes:
        t: (N,) [s]
        q: (N, nq) the first of them. [rad]
        apart: (N,) largest difference of an angle. [rad]
        rate: Lyapunov exponent, fitted. [1/s]
    """

    t: np.ndarray
    q: np.ndarray
    apart: np.ndarray
    rate: float


def growth(organism: Organism) -> Growth:
    """Two crabs that start `APART`, both integrated far more accurately than that."""
    model, q = _start(organism)
    t, one = _fallen(model, q, FINEST)
    _, other = _fallen(model, q + APART, FINEST)
    apart = np.abs(one - other).max(axis=1)
    small = (apart > GROWING[0]) & (apart < GROWING[1])
    rate = np.polyfit(t[small], np.log(apart[small]), 1)[0]
    return Growth(t, one, apart, float(rate))


def draw(path: Path, organism: Organism) -> Growth:
    """Neighbors, and the same crab at several tolerances."""
    found = growth(organism)
    model, q = _start(organism)
    t = found.t
    drawn, axes = figures.figure(1, size=(8.4, 4.2))
    plane = axes[0, 0]
    for k, tolerance in enumerate(TOLERANCES):
        apart = np.abs(_fallen(model, q, tolerance)[1] - found.q).max(axis=1)
        plane.semilogy(t, _running(t, apart), color=figures.PALETTE[k], lw=1.5,
                       label=f"tolerance {tolerance:.0e}")  # fmt: skip
    plane.semilogy(found.t, _running(found.t, found.apart), color=figures.SPOT, lw=2.2,
                   label=f"start {APART:.0e} rad apart")  # fmt: skip
    first = np.argmax(found.apart > GROWING[0])
    line = found.apart[first] * np.exp(found.rate * (found.t - found.t[first]))
    plane.semilogy(found.t, line, color=figures.INK, lw=1.0, ls=(0, (4, 4)),
                   label=f"exp({found.rate:.1f} t): e-fold in {1 / found.rate:.2f} s")  # fmt: skip
    plane.set(xlim=(0, DURATION), ylim=(1e-14, 1e2))
    plane.set_xlabel("time [s]", color=figures.INK)
    plane.set_ylabel("angles apart [rad]", color=figures.INK)
    figures.legend(plane, loc="lower right")
    figures.title(drawn, "The crab falls: when trajectories part")
    figures.save(drawn, path)
    return found


def _start(organism: Organism) -> tuple[Model, np.ndarray]:
    model = organism.model("physical")
    return model, 0.3 * np.random.default_rng(SEED).standard_normal(model.nq)


def _fallen(model: Model, q: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """(N,) times and (N, nq) angles."""
    found = simulate(
        model, q, None, DURATION, None, "DOP853", rtol=tolerance, atol=tolerance, record=0.02
    )
    return found.t, found.q


def _running(t: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Largest value of the last `SMOOTH` seconds."""
    return np.array([values[(t <= now) & (t > now - SMOOTH)].max() for now in t])
