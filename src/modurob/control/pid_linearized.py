"""Feedback linearization with one PID for each joint: also constant disturbances vanish."""

from __future__ import annotations

import numpy as np

from modurob.control.computed_torque import Linearizing
from modurob.control.laws import register
from modurob.control.pid import PidLaw
from modurob.reference import Reference


@register(
    "pid-linearized", "for constant loads", kp="1/s^2", ki="1/s^3", kd="1/s", settling_time="s"
)
class PidLinearized(PidLaw, Linearizing):
    """``tau = M (a_d + Kp e + Ki int(e) + Kd e') + C v + N + friction`` with ``e = q_d - q``.

    The error follows ``e''' + Kd e'' + Kp e' + Ki e = 0``. The integral of a joint is held
    while its motor is at the limit.

    Args:
        model: The body.
        kp, ki, kd: One number or one for each joint. [1/s^2, 1/s^3, 1/s]
        settling_time: Instead of gains: a triple pole. 1 s if nothing is given. [s]
        filter_time: Time constant of a low-pass on the velocity error; 0 for none. [s]
        integral_limit: Largest acceleration of the integral. [rad/s^2, m/s^2]
        sample_time: Seconds between commands. [s]
        options: See `Controller`.
    """

    name = "feedback linearization with PID"
    claim = "the error follows e''' + Kd e'' + Kp e' + Ki e = 0 and goes to zero"

    def _torque(self, t: float, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        tau = super()._torque(t, q, v, aim)
        if self._limited:
            self.pid.hold(self._saturation(tau, self._bound)[..., self._skip :])
        return tau

    def _acceleration(self, t: float, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        return aim.a + self.pid.output(t, *self._errors(q, v, aim))

    def _steady(self, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        return aim.a + self.pid.frozen(*self._errors(q, v, aim))

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
