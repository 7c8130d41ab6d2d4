"""Semi-implicit Euler: first the velocity, then the position with it."""

from __future__ import annotations

import numpy as np

from modurob.dynamics import stepped_velocity
from modurob.friction import is_implicit
from modurob.sim import manifold
from modurob.sim.integrators.base import FixedStep


class SemiImplicitEuler(FixedStep):
    """One acceleration a step: the cheapest, of order one. The same step as `Model.step`."""

    name = "SemiImplicitEuler"
    order = 1
    batches = True
    implicit_friction = True

    def advance(
        self, t: float, h: float, count: int, q: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        motion, free = self.motion, self.motion.model.free_base
        implicit = is_implicit(motion.model, h)
        for k in range(count):
            if implicit:
                now = t + k * h
                push = motion.force(now, q, v)
                v = stepped_velocity(motion.model, q, v, push, h, motion.wrenches(now))
            else:
                v += h * motion.acceleration(t + k * h, q, v)
            if free:
                q = manifold.moved(q, h * v)
            else:
                q += h * v
        return q, v
