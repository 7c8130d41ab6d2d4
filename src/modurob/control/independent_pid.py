"""Independent PIDs: no model at all, for comparison."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.control.controller import Slopes
from modurob.control.laws import register
from modurob.control.pid import PidLaw
from modurob.reference import Reference


@register(
    "independent-pid",
    "a PID for each joint, without a model",
    kp="N m/rad",
    ki="N m/(rad s)",
    kd="N m s/rad",
    settling_time="s",
)
class IndependentPid(PidLaw):
    """``tau = Kp e + Ki int(e) + Kd e'`` for each joint by itself, ``e = q_d - q``.

    Args:
        model: The body; used for the default gains only.
        kp, ki, kd: One number or one for each joint. [N m/rad, N m/(rad s), N m s/rad]
        settling_time: Instead of gains, for the inertia and viscous friction of each joint in the
            neutral pose with the others held. 1 s if nothing is given. [s]
        filter_time: Time constant of a low-pass on the velocity error; 0 for none. [s]
        integral_limit: Largest torque that the integral may ask for. [N m, N]
        sample_time: Seconds between commands. [s]
        options: See `Controller`.
    """

    name = "independent PID"
    claim = "errors vanish, constant loads included"
    _gains_make_torques = True

    def _torque(self, t: float, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        tau = np.zeros(v.shape)
        tau[..., self._skip :] = self.pid.output(t, *self._errors(q, v, aim))
        tau[..., self._idle] = 0.0
        if self._limited:
            self.pid.hold(self._saturation(tau, self._bound)[..., self._skip :])
        return tau

    def slopes(self, q: ArrayLike, v: ArrayLike, reference: Any = None) -> Slopes:
        """Exact derivatives of the torque by the state; see `Controller.slopes`."""
        return self._driven_only(*self._joint_slopes(*self.pid.slopes()))

    def _settle_in(self, t: float, q: np.ndarray) -> None:
        super()._settle_in(t, q)
        new = self._added[self.pid.ki[self._added] > 0]
        self.pid.integral[new] = self._holding(q)[self._skip + new]  # the load it has to carry
