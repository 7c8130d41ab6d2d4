"""SciPy's adaptive methods: RK45, DOP853, LSODA, Radau, BDF."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from scipy import integrate

from modurob.sim import manifold
from modurob.sim.failure import Stopped
from modurob.sim.integrators.base import Integrator, Step
from modurob.spatial import so3


class ScipyMethod(Integrator):
    """A SciPy solver on y = (q, v); a free base's quaternion is normalized wherever it is read."""

    solver: ClassVar[Any]

    def steps(
        self, t0: float, t1: float, q: np.ndarray, v: np.ndarray, stride: int = 1
    ) -> Iterator[Step]:
        rtol, atol, dt = self.settings
        run = self.solver(
            self._rates, t0, np.concatenate([q, v]), t1, rtol=rtol, atol=atol, max_step=dt
        )
        while run.status == "running":
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")  # LSODA repeats its message as a warning
                message = run.step()
            if run.status == "failed":
                raise Stopped(float(run.t), f"{self.name} gave up: {message or 'no step fits'}")
            yield Step(float(run.t), *self.split(run.y), run.dense_output())

    def split(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """q and v of SciPy's state."""
        nq = self.motion.model.nq
        q = y[:nq]
        return manifold.normalized(q) if self.motion.model.free_base else q, y[nq:]

    def _rates(self, t: float, y: np.ndarray) -> np.ndarray:
        model, result = self.motion.model, np.empty(len(y))
        q, v = self.split(y)
        result[: model.nq] = manifold.rate(q, v) if model.free_base else v
        if model.free_base:  # y's quaternion may be a little longer or shorter: so is its rate
            result[3:7] *= np.sqrt(so3.squared_norm(y[3:7]))
        result[model.nq :] = self.motion.acceleration(t, q, v)
        return result


class RK45(ScipyMethod):
    """Dormand and Prince 5(4)."""

    name = "RK45"
    order = 5
    solver = integrate.RK45


class DOP853(ScipyMethod):
    """Dormand and Prince 8(5,3): for tight tolerances."""

    name = "DOP853"
    order = 8
    solver = integrate.DOP853


class LSODA(ScipyMethod):
    """Adams and BDF of varying order, switched by stiffness."""

    name = "LSODA"
    solver = integrate.LSODA


class Radau(ScipyMethod):
    """Implicit Runge-Kutta of order five, for stiff systems."""

    name = "Radau"
    order = 5
    solver = integrate.Radau


class BDF(ScipyMethod):
    """Implicit multistep of varying order, for stiff systems."""

    name = "BDF"
    solver = integrate.BDF
