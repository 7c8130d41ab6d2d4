"""`PopulationStepper`: a rollout that goes on step by step, for controllers and learners."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import whole
from modurob.errors import StateError
from modurob.population.rollout import JointLaw, RolloutTask, padded, rises
from modurob.population.tables import BodyTables

if TYPE_CHECKING:
    from modurob.population.lanes import SteppingLanes


class PopulationStepper:
    """States of all bodies, and steps under references that change.

    Attributes:
        q, v: (bodies, most nq), (bodies, most nv) states, padded with 0; NaN for a body whose
            numbers are not finite any more. [m, rad, m/s, rad/s]
        work: (bodies,) sum of ``|tau v| dt`` over joints and steps since a body's start. [J]
        law: Gains and torque limits of the joints.
    """

    def __init__(
        self, tables: BodyTables, task: RolloutTask, lanes: Iterable[SteppingLanes]
    ) -> None:
        self.law: JointLaw = task.law
        self._tables, self._task, self._lanes = tables, task, list(lanes)
        self.q, self.v, self.work = task.q.copy(), task.v.copy(), np.zeros(len(task.q))

    def advance(self, references: ArrayLike, steps: int) -> None:
        """Take steps with constant references of the joints.

        Args:
            references: (bodies, most joints) positions. [rad, m]
            steps: Number of steps of dt.
        """
        offset = padded(self._tables, "references", references, 0)
        for lanes in self._lanes:
            lanes.follow(offset)
            lanes.march(0, whole("steps", steps, 1), self._task.threads)
            lanes.read(self.q, self.v, self.work)
        self.work *= self._task.step
        failed = ~np.isfinite(np.hstack([self.q, self.v])).all(axis=1)
        self.q[failed], self.v[failed] = np.nan, np.nan

    def restart(self, bodies: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
        """Put some bodies into new states; free ones are set down on the ground.

        Args:
            bodies: (bodies,) True for those that start anew.
            q, v: (bodies, most nq), (bodies, most nv) of which their rows are taken.
        """
        tables, which = self._tables, np.flatnonzero(bodies)
        self.q[which], self.v[which], self.work[which] = q[which], v[which], 0.0
        if not np.isfinite(np.hstack([self.q[which], self.v[which]])).all():
            raise StateError("a body starts anew in finite numbers; q or v has others")
        if self._task.ground is not None and tables.free_base and len(which):
            part = tables.part(which, tables.row.shape[1])
            self.q[which, 2] += rises(part, self._task.ground, self.q[which])
        for lanes in self._lanes:
            lanes.restart(bodies, self.q, self.v)
