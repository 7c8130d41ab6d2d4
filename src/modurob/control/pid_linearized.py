"""Feedback linearisation with one PID for each joint: also constant disturbances vanish."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.control import checks
from modurob.control.controller import Controller
from modurob.control.linearizing import Linearizing
from modurob.control.pid import SAMPLE_TIME, PidLaw
from modurob.control.reference import Reference
from modurob.model import Model


class PidLinearized(PidLaw, Linearizing):
    """``tau = M (a_d + Kp e + Ki int(e) + Kd e') + C v + N + friction`` with ``e = q_d - q``.

    The error follows ``e''' + Kd e'' + Kp e' + Ki e = 0``. The integral of a joint stands still
    while its motor is at the limit.

    Args:
        model: The body.
        kp, ki, kd: One number or one for each joint. [1/s^2, 1/s^3, 1/s]
        settling_time: Instead of gains: a triple pole. 1 s if nothing is given. [s]
        filter_time: Time constant of a low-pass on the velocity error; 0 for none. [s]
        integral_limit: Largest acceleration that the integral may ask for. [rad/s^2, m/s^2]
        sample_time: Seconds between commands. [s]
        options: See `Controller`.
    """

    name = "feedback linearisation with PID"
    claim = "the error follows e''' + Kd e'' + Kp e' + Ki e = 0 and goes to zero"

    def __init__(
        self,
        model: Model,
        kp: ArrayLike | None = None,
        ki: ArrayLike | None = None,
        kd: ArrayLike | None = None,
        *,
        settling_time: float | None = None,
        filter_time: float = 0.0,
        integral_limit: ArrayLike | None = None,
        sample_time: float | None = SAMPLE_TIME,
        **options: Any,
    ) -> None:
        super().__init__(model, sample_time=sample_time, **options)
        ones = np.ones(len(model.joint_names))
        self._make_pid((kp, ki, kd), settling_time, filter_time, integral_limit, ones)

    def _torque(self, t: float, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        tau = super()._torque(t, q, v, aim)
        if self._limited:
            self.pid.hold(self._saturation(tau, self._bound)[self._skip :])
        return tau

    def _acceleration(self, t: float, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        return aim.a + self.pid.output(t, aim.q - q[self._skip_q :], aim.v - v[self._skip :])

    def _steady(self, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        return aim.a + self.pid.frozen(aim.q - q[self._skip_q :], aim.v - v[self._skip :])

    def _gains(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.pid.slopes()

    def error_matrix(self) -> np.ndarray:
        """(3n, 3n) A of ``d(e, e', i)/dt = A (e, e', i)``, i the integral's acceleration."""
        n, pid = len(self.pid.kp), self.pid
        A = np.zeros((3 * n, 3 * n))
        A[:n, n : 2 * n] = np.eye(n)
        A[n : 2 * n] = np.hstack([-np.diag(pid.kp), -np.diag(pid.kd), -np.eye(n)])
        A[2 * n :, :n] = np.diag(pid.ki)
        return A

    def reset(self, t: float, q: ArrayLike, v: ArrayLike) -> None:
        """Forget the integral, unless it was just taken over."""
        if not self._carried:
            self.pid.clear()
        super().reset(t, q, v)

    def record(self) -> dict[str, np.ndarray]:
        """The integral's part of the acceleration."""
        return {"integral": self.pid.integral}

    def _settings(self, model: Model) -> dict[str, Any]:
        return super()._settings(model) | self._pid_settings(model, None)

    def _take_over(self, old: Controller) -> None:
        super()._take_over(old)
        if isinstance(old, PidLinearized):
            self.pid.take_over(old.pid, *checks.survivors(old.model, self.model))
