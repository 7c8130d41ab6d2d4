"""PD with gravity compensation: robust, and stable by an energy argument."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.control import gains
from modurob.control.controller import Slopes
from modurob.control.designed import DesignedLaw
from modurob.control.laws import register
from modurob.model import Model
from modurob.reference import Reference


@register(
    "pd-gravity",
    "stable by an energy argument; for set points, with a rough model",
    kp="N m/rad",
    kd="N m s/rad",
    settling_time="s",
    damping="",
)
class PdGravity(DesignedLaw):
    """``tau = Kp (q_d - q) + Kd (v_d - v) + N(q)``.

    With ``V = v^T M v / 2 + e^T Kp e / 2`` and a Coriolis matrix for which ``dM/dt - 2 C`` is skew,
    ``dV/dt = -v^T Kd v - v^T friction``: it comes to rest at every set point. For motions the error
    stays bounded but does not vanish; computed torque follows them.

    Args:
        model: The body.
        kp, kd: One number, one for each joint, or (n, n). [N m/rad, N m s/rad; N/m, N s/m]
        settling_time, damping: Instead of gains, for the inertia and viscous friction of each joint
            in the neutral pose with the others held. 1 s and 1 if nothing is given. [s]
        options: See `Controller`.
    """

    name = "PD with gravity compensation"
    claim = "the joints come to rest at the set point"
    scope = "global"
    _gains_make_torques = True

    def __init__(
        self,
        model: Model,
        kp: ArrayLike | None = None,
        kd: ArrayLike | None = None,
        *,
        settling_time: float | None = None,
        damping: float = gains.DAMPING,
        **options: Any,
    ) -> None:
        super().__init__(model, **options)
        chosen = self._choose_gains({"kp": kp, "kd": kd}, settling_time, damping=damping)
        self.kp, self.kd = gains.gain("kp", chosen[0], model), gains.gain("kd", chosen[1], model)

    def _torque(self, t: float, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        tau = self._gravity(q)
        error, rate = self._errors(q, v, aim)
        tau[..., self._skip :] += gains.applied(self.kp, error)
        tau[..., self._skip :] += gains.applied(self.kd, rate)
        if len(self._idle):
            tau[..., self._idle] = 0.0
        return tau

    def slopes(self, q: ArrayLike, v: ArrayLike, reference: Any = None) -> Slopes:
        """Exact derivatives of the torque by the state; see `Controller.slopes`."""
        q, v = self._state(q, v)
        rest, none = np.zeros(self.model.nv), np.zeros((len(self.torque_limit), 0))
        slopes = self._joint_slopes(-gains.as_matrix(self.kp), -gains.as_matrix(self.kd), none)
        if not self.model.free_base:
            slopes.dq[:] += self.model.inverse_dynamics_derivatives(q, rest, rest).dq
        return self._driven_only(*slopes)

    def lyapunov(self, q: ArrayLike, v: ArrayLike, set_point: ArrayLike) -> tuple[float, float]:
        """V and dV/dt of the closed loop without limits at a state. [J, W]

        The rate is that of the equations of motion, not the formula it is compared with.
        """
        q, v = self._state(q, v)
        aim, model = self._aim(set_point, q), self.model
        e = q[self._skip_q :] - aim.q
        M, C = model.mass_matrix(q), model.coriolis_matrix(q, v)
        a = model.forward_dynamics(q, v, self._torque(0.0, q, v, aim).copy())
        pull = gains.applied(self.kp, e)
        value = 0.5 * v @ M @ v + 0.5 * e @ pull
        rate = v @ M @ a + v @ C @ v + v[self._skip :] @ pull  # v^T (dM/dt) v / 2 = v^T C v
        return float(value), float(rate)
