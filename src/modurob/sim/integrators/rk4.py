"""The classical Runge-Kutta method of order four."""

from __future__ import annotations

import numpy as np

from modurob.sim import manifold
from modurob.sim.integrators.base import FixedStep, Settings
from modurob.sim.motion import Motion


class RK4(FixedStep):
    """Four accelerations a step; a free base moves along the exponential (Munthe-Kaas 1998)."""

    name = "RK4"
    order = 4
    batches = True

    def __init__(self, motion: Motion, settings: Settings) -> None:
        super().__init__(motion, settings)
        shape = (*motion.batch, motion.model.nv)
        self._k, self._sum, self._part = (np.empty(shape) for _ in range(3))
        self._q, self._v = np.empty(shape), np.empty(shape)

    def advance(
        self, t: float, h: float, count: int, q: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        step = self._curved if self.motion.model.free_base else self._straight
        for k in range(count):
            q, v = step(t + k * h, h, q, v)
        return q, v

    def _straight(
        self, t: float, h: float, q: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """q is a vector: every sum in place, for batches memory traffic is what counts.

        With v2 = v + h/2 k1 and so on, the positions need no stages of their own:
        q + h/6 (v + 2 v2 + 2 v3 + v4) = q + h v + h^2/6 (k1 + k2 + k3).
        """
        a, part, trial_q, trial_v = self.motion.acceleration, self._part, self._q, self._v
        total = self._sum
        k1 = a(t, q, v)
        np.copyto(total, k1)
        np.multiply(v, h / 2, out=part)
        np.add(q, part, out=trial_q)
        np.multiply(k1, h / 2, out=part)
        np.add(v, part, out=trial_v)
        k2 = a(t + h / 2, trial_q, trial_v)
        np.copyto(self._k, k2)
        total += k2  # k1 + k2
        np.multiply(trial_v, h / 2, out=part)
        np.add(q, part, out=trial_q)
        np.multiply(self._k, h / 2, out=part)
        np.add(v, part, out=trial_v)
        k3 = a(t + h / 2, trial_q, trial_v)
        self._k += k3  # k2 + k3
        total += k3  # k1 + k2 + k3
        np.multiply(trial_v, h, out=part)
        np.add(q, part, out=trial_q)
        np.multiply(k3, h, out=part)
        np.add(v, part, out=trial_v)
        k4 = a(t + h, trial_q, trial_v)
        np.multiply(total, h * h / 6, out=part)
        q += part
        np.multiply(v, h, out=part)
        q += part
        total += self._k
        total += k4  # k1 + 2 k2 + 2 k3 + k4
        total *= h / 6
        v += total
        return q, v

    def _curved(
        self, t: float, h: float, q: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The same in the coordinates x of q exp(x), which start at zero in every step."""
        a, moved, bent = self.motion.acceleration, manifold.moved, manifold.bent
        k1 = a(t, q, v).copy()
        v2, x2 = v + h / 2 * k1, h / 2 * v
        k2, r2 = a(t + h / 2, moved(q, x2), v2).copy(), bent(x2, v2)
        v3, x3 = v + h / 2 * k2, h / 2 * r2
        k3, r3 = a(t + h / 2, moved(q, x3), v3).copy(), bent(x3, v3)
        v4, x4 = v + h * k3, h * r3
        k4, r4 = a(t + h, moved(q, x4), v4), bent(x4, v4)
        q = moved(q, h / 6 * (v + 2 * (r2 + r3) + r4))
        return q, v + h / 6 * (k1 + 2 * (k2 + k3) + k4)
