"""`Balanced`: what a balancing run gives back."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from modurob.model import Model
from modurob.organism import Organism

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REACHED = 0.1  # share of the first distance below which the center counts as balanced
STAYS = 0.2  # [s] it must be so at the end: a center that swings may be there by chance


@dataclass(frozen=True, eq=False, repr=False)
class Balanced:
    """A balancing run.

    Attributes:
        organism, model, law: What was simulated.
        width: Of a module, the unit of `distance`. [m]
        t: (N,) times. [s]
        q, v, tau: (N, nq), (N, nv), (N, nv) states, and torques that the drives were told.
        center: (N, 3) the true center of mass. [m]
        target: (N, 2) what it should be above. [m]
        estimates: (N, modules, 3) the center as each module knows it; nan while it does not. [m]
        sent: (N, modules) messages with news that each module has sent until then.
        lost: How many of them got lost.
        seconds: Of processor time that the run took.
    """

    organism: Organism
    model: Model
    law: str
    width: float
    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    center: np.ndarray
    target: np.ndarray
    estimates: np.ndarray
    sent: np.ndarray
    lost: int
    seconds: float

    @property
    def messages(self) -> int:
        """How many were sent with news."""
        return int(self.sent[-1].sum())

    @property
    def distance(self) -> np.ndarray:
        """(N,) of the true center from the line above its target, in widths of a module."""
        return np.linalg.norm(self.center[:, :2] - self.target, axis=-1) / self.width

    @property
    def estimate_errors(self) -> np.ndarray:
        """(N, modules) distance of what each module takes for the center from the true one. [m]"""
        return np.linalg.norm(self.estimates - self.center[:, None], axis=-1)

    @property
    def first_reached(self) -> float | None:
        """When the distance first was below a tenth of what it was at the start. [s]"""
        below = np.flatnonzero(self.distance < REACHED * self.distance[0])
        return float(self.t[below[0]]) if len(below) else None

    @property
    def reached(self) -> float | None:
        """From when on it was below a tenth of the first distance. [s]

        None if it is not yet, or has been so for less than 0.2 s when the run ends.
        """
        above = np.flatnonzero(self.distance >= REACHED * self.distance[0])
        if not len(above):
            return float(self.t[0])
        if self.t[above[-1]] > self.t[-1] - STAYS:
            return None
        return float(self.t[above[-1] + 1])

    @property
    def real_time(self) -> float:
        """Simulated seconds for each second of processor time."""
        return float(self.t[-1]) / self.seconds

    def __repr__(self) -> str:
        when = "not reached" if self.reached is None else f"reached at {self.reached:.2f} s"
        return (
            f"<Balanced: {len(self.organism)} modules, {self.law}, distance {self.distance[0]:.3f} "
            f"to {self.distance[-1]:.3f} widths, {when}>"
        )

    def plot(self, path: str | os.PathLike[str] | None = None, *, title: str = "") -> Figure:
        """Distance over time, the center's path from above, and how far off the modules were.

        Args:
            path: Where to write it, ending with ``.png``, ``.svg`` or ``.pdf``.
        """
        from modurob.distributed.balancing.plots import plot

        return plot(self, path, title)
