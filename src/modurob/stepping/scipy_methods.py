"""SciPy's adaptive methods: RK45, DOP853, LSODA, Radau, BDF."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from modurob.errors import StateError
from modurob.spatial import so3
from modurob.stepping import manifold
from modurob.stepping.base import Integrator, IntegratorStep
from modurob.stepping.motion import LARGEST, Stopped, diverged

TOO_FAST = 1e15  # a rate that no step of LSODA, which does not look for NaN, can accept


class ScipyMethod(Integrator):
    """A solver of SciPy on y = (q, v), quaternions normalized wherever they are read.

    Trial states out of range, or without an acceleration, are answered with `outside`: the solver
    then tries a shorter step.
    """

    solver: ClassVar[str]  # its name in SciPy
    implicit: ClassVar[bool] = False
    outside: ClassVar[float] = np.nan
    _rejected: Stopped | None = None

    def steps(
        self, t0: float, t1: float, q: np.ndarray, v: np.ndarray, stride: int = 1
    ) -> Iterator[IntegratorStep]:
        from scipy import integrate  # a good part of a second, which not every user of steps needs

        rtol, atol, dt, _ = self.settings
        solver = getattr(integrate, self.solver)
        options: dict[str, Any] = {"jac": self._jacobian} if self.implicit else {}
        with np.errstate(all="ignore"):
            run = solver(
                self._rates, t0, np.concatenate([q, v]), t1,
                rtol=rtol, atol=atol, max_step=dt, **options,
            )  # fmt: skip
        while run.status == "running":
            self._rejected = None
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")  # LSODA repeats its message as a warning
                message = run.step()
            if run.status == "failed":
                gave_up = Stopped(float(run.t), f"{self.name} gave up: {message or 'no step fits'}")
                raise self._rejected or gave_up
            q, v = manifold.split(self.motion.model, run.y)
            self.motion.accepted(q, v)
            yield IntegratorStep(float(run.t), q, v, run.dense_output())

    def _rates(self, t: float, y: np.ndarray) -> np.ndarray:
        model, result = self.motion.model, np.full(len(y), self.outside)
        if not np.abs(y).max() < LARGEST:
            # the first of a step: NaN in later stages comes from it
            self._rejected = self._rejected or diverged(model, t, y[: model.nq], y[model.nq :])
            return result
        q, v = manifold.split(model, y)
        try:
            result[model.nq :] = self.motion.acceleration(t, q, v)
        except StateError as error:
            self._rejected = Stopped(t, str(error))
            return result
        result[: model.nq] = manifold.rate(q, v) if model.free_base else v
        if model.free_base:  # y's quaternion may be a little longer or shorter: so is its rate
            result[3:7] *= np.sqrt(so3.squared_norm(y[3:7]))
        return result

    def _jacobian(self, t: float, y: np.ndarray) -> np.ndarray:
        """(nq + nv, nq + nv) of `_rates`; zero where that has none."""
        model, result = self.motion.model, np.zeros((len(y), len(y)))
        if not np.abs(y).max() < LARGEST:
            return result
        q, v = manifold.split(model, y)
        try:
            dq, dv = self.motion.derivatives(t, q, v)
        except StateError:
            return result
        nq = model.nq
        if model.free_base:
            dq = dq @ _base_jacobian(y, v, result)
        else:
            result[:nq, nq:] = np.eye(nq)
        result[nq:, :nq], result[nq:, nq:] = dq, dv
        return result


def _base_jacobian(y: np.ndarray, v: np.ndarray, result: np.ndarray) -> np.ndarray:
    """(nv, nq) tangent of q by SciPy's coordinates; writes the rows of dq/dt into `result`.

    A quaternion b that changes by db turns the base by 2 vec(conj(b) db) / |b|^2.
    """
    nv = len(v)
    nq, length = nv + 1, np.sqrt(y[3:7] @ y[3:7])
    R, u, w = so3.from_quaternion(y[3:7] / length), v[:3], v[3:6]
    x, y_, z, s = y[3:7]
    left = np.array([[s, -z, y_], [z, s, -x], [-y_, x, s], [-x, -y_, -z]])  # b (e, 0)
    tangent = np.zeros((nv, nq))
    tangent[:3, :3], tangent[3:6, 3:7] = R.T, 2 / length**2 * left.T
    tangent[6:, 7:] = np.eye(nv - 6)
    result[:3, 3:7] = -R @ so3.hat(u) @ tangent[3:6, 3:7]
    a, b, c = w / 2
    result[3:7, 3:7] = [[0, c, -b, a], [-c, 0, a, b], [b, -a, 0, c], [-a, -b, -c, 0]]
    result[:3, nq : nq + 3], result[3:7, nq + 3 : nq + 6] = R, left / 2
    result[7:nq, nq + 6 :] = np.eye(nv - 6)
    return tangent


class RK45(ScipyMethod):
    """Dormand and Prince 5(4)."""

    solver = "RK45"
    order = 5


class DOP853(ScipyMethod):
    """Dormand and Prince 8(5,3): for tight tolerances."""

    solver = "DOP853"
    order = 8


class LSODA(ScipyMethod):
    """Adams and BDF of varying order, switched by stiffness."""

    solver = "LSODA"
    implicit = True
    outside = TOO_FAST


class Radau(ScipyMethod):
    """Implicit Runge-Kutta of order five, for stiff systems."""

    solver = "Radau"
    order = 5
    implicit = True


class BDF(ScipyMethod):
    """Implicit multistep of varying order, for stiff systems."""

    solver = "BDF"
    implicit = True
