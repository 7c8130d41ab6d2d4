"""Independent PIDs: no model at all, for comparison."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.control import checks, gains
from modurob.control.controller import Controller, Slopes
from modurob.control.pid import SAMPLE_TIME, PidLaw
from modurob.control.reference import Reference
from modurob.model import Model


class IndependentPid(PidLaw, Controller):
    """``tau = Kp e + Ki int(e) + Kd e'`` for each joint by itself, ``e = q_d - q``.

    Args:
        model: The body; used for the sizes of default gains only.
        kp, ki, kd: One number or one for each joint. [N m/rad, N m/(rad s), N m s/rad]
        settling_time: Instead of gains, for the inertia of each joint in the neutral pose with the
            others held. 1 s if nothing is given. [s]
        filter_time: Time constant of a low-pass on the velocity error; 0 for none. [s]
        integral_limit: Largest torque that the integral may ask for. [N m, N]
        sample_time: Seconds between commands. [s]
        options: See `Controller`.
    """

    name = "independent PID"
    claim = "errors vanish, constant loads included"

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
        inertia = gains.joint_inertia(model)
        self._make_pid((kp, ki, kd), settling_time, filter_time, integral_limit, inertia)

    def _torque(self, t: float, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        tau = np.zeros(self.model.nv)
        tau[self._skip :] = self.pid.output(t, aim.q - q[self._skip_q :], aim.v - v[self._skip :])
        tau[self._idle] = 0.0
        if self._limited:
            self.pid.hold(self._saturation(tau, self._bound)[self._skip :])
        return tau

    def slopes(self, q: ArrayLike, v: ArrayLike, reference: Any = None) -> Slopes:
        """Exact derivatives of the torque by the state; see `Controller.slopes`."""
        nv, skip = self.model.nv, self._skip
        by_q, by_v, by_m = self.pid.slopes()
        dq, dv, dm = np.zeros((nv, nv)), np.zeros((nv, nv)), np.zeros((nv, by_m.shape[1]))
        dq[skip:, skip:], dv[skip:, skip:], dm[skip:] = by_q, by_v, by_m
        for slope in (dq, dv, dm):
            slope[self._idle] = 0.0
        return Slopes(dq, dv, dm)

    def reset(self, t: float, q: ArrayLike, v: ArrayLike) -> None:
        """Forget the integral, unless it was just taken over."""
        if not self._carried:
            self.pid.clear()
        super().reset(t, q, v)

    def record(self) -> dict[str, np.ndarray]:
        """The integral's part of the torque."""
        return {"integral": self.pid.integral}

    def _settings(self, model: Model) -> dict[str, Any]:
        scale = gains.joint_inertia(self.model), gains.joint_inertia(model)
        return super()._settings(model) | self._pid_settings(model, scale)

    def _take_over(self, old: Controller) -> None:
        super()._take_over(old)
        if isinstance(old, IndependentPid):
            self.pid.take_over(old.pid, *checks.survivors(old.model, self.model))

    def _settle_in(self, t: float, q: np.ndarray) -> None:
        super()._settle_in(t, q)
        load = self._holding(q)[self._skip :]  # a new joint starts with the load it has to carry
        self.pid.integral = np.where(self._fresh & (self.pid.ki > 0), load, self.pid.integral)
