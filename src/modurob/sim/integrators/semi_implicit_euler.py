"""Semi-implicit Euler: first the velocity, then the position with it."""

from __future__ import annotations

import numpy as np

from modurob.sim import manifold
from modurob.sim.integrators.base import FixedStep


class SemiImplicitEuler(FixedStep):
    """One acceleration a step: the cheapest, of order one. The same step as `Model.step`."""

    name = "SemiImplicitEuler"
    order = 1
    batches = True

    def advance(
        self, t: float, h: float, count: int, q: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        free = self.motion.model.free_base
        for k in range(count):
            v += h * self.motion.acceleration(t + k * h, q, v)
            if free:
                q = manifold.moved(q, h * v)
            else:
                q += h * v
        return q, v
