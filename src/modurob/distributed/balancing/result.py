"""`Balanced`: the trajectory of a balancing run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from modurob.drawing.charts import DATELESS
from modurob.organism import Organism
from modurob.sim import Trajectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REACHED = 0.1  # share of the first distance below which the center counts as balanced
STAYS = 0.2  # [s] it must be so at the end: a center that swings may be there by chance


@dataclass(frozen=True, eq=False, repr=False)
class Balanced(Trajectory):
    """A balancing run: a `Trajectory` with the estimates of the modules as channels.

    `tau` is the torque of the drives, whose friction is part of `model`; `a` is the mean over the
    control period that begins then.

    Attributes:
        law: Name of the law.
        width: Of a module, the unit of `distance`. [m]
        lost: Number of messages that got lost.
        seconds: Of processor time that the run took.
    """

    law: str = ""
    width: float = 1.0
    lost: int = 0
    seconds: float = 0.0

    @property
    def organism(self) -> Organism | None:
        """The body."""
        return self.parts[0].organism

    @property
    def center(self) -> np.ndarray:
        """(N, 3) the true center of mass. [m]"""
        return self.channels["center"]

    @property
    def target(self) -> np.ndarray:
        """(N, 2) what the center should be above. [m]"""
        return self.channels["target"]

    @property
    def estimates(self) -> np.ndarray:
        """(N, modules, 3) the center as each module estimates it; nan while it cannot. [m]"""
        return self.channels["estimates"]

    @property
    def sent(self) -> np.ndarray:
        """(N, modules) messages with news that each module has sent until then."""
        return self.channels["sent"].astype(int)

    @property
    def messages(self) -> int:
        """Number of messages with news."""
        return int(self.sent[-1].sum())

    @property
    def distance(self) -> np.ndarray:
        """(N,) of the true center from the line above its target, in widths of a module."""
        return np.linalg.norm(self.center[:, :2] - self.target, axis=-1) / self.width

    @property
    def estimate_errors(self) -> np.ndarray:
        """(N, modules) distance of each module's estimate from the true center. [m]"""
        return np.linalg.norm(self.estimates - self.center[:, None], axis=-1)

    @property
    def first_reached(self) -> float | None:
        """First time at which the distance was below a tenth of the first one, or None. [s]"""
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
            f"<Balanced: {self.sent.shape[1]} modules, {self.law}, distance {self.distance[0]:.3f} "
            f"to {self.distance[-1]:.3f} widths, {when}>"
        )

    def plot(
        self,
        *quantities: str,
        path: str | os.PathLike[str] | None = None,
        title: str = "",
        **options: Any,
    ) -> Figure:
        """Draw the distance, the center's path from above and the modules' errors; or quantities.

        Args:
            quantities: As in `Trajectory.plot`; none for the picture of the balancing run. One
                with the ending of a picture is taken as `path`.
            path: Where to write it, ending with ``.png``, ``.svg`` or ``.pdf``.
            options: `joints` and `degrees` as in `Trajectory.plot`.
        """
        from modurob.distributed.balancing.plots import plot

        if len(quantities) == 1 and Path(quantities[0]).suffix.lower() in DATELESS:
            quantities, path = (), quantities[0]
        if quantities:
            return super().plot(*quantities, path=path, title=title, **options)
        return plot(self, path, title)
