"""PD with gravity compensation: robust, and stable by an energy argument."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.control import gains
from modurob.control.controller import Slopes
from modurob.control.gains import DesignedLaw
from modurob.control.laws import register
from modurob.equations.links import SLIP_SPEED, friction, friction_slope
from modurob.model import Model
from modurob.reference import Reference


@register(
    "pd-gravity",
    "for set points, with a rough model",
    kp="N m/rad",
    kd="N m s/rad",
    settling_time="s",
)
class PdGravity(DesignedLaw):
    """``tau = Kp (q_d - q) + Kd (v_d - v) + N(q)``, plus friction of the motion to come.

    With ``V = v^T M v / 2 + e^T Kp e / 2`` and a Coriolis matrix for which ``dM/dt - 2 C`` is skew,
    ``dV/dt = -v^T Kd v - v^T friction``: it comes to rest at every set point. For motions the error
    stays bounded but does not vanish; computed torque follows them.

    Where datasheets state it, viscous friction is added as it is at v_d, and dry friction as it
    will be at the velocity ``v_d + c (q_d - q)``, c the rate ``Kp / (Kd + viscous)`` of slow
    errors: smooth, and in V one more spring.

    Args:
        model: The body.
        kp, kd: One number, one for each joint, or (n, n). [N m/rad, N m s/rad; N/m, N s/m]
        settling_time, damping: Instead of gains; see `gains.for_torques`, which gives matrices. 1 s
            and 1 if nothing is given. [s]
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
        self._dry = bool(np.any(model.coulomb > 0))
        self._demand_stable()

    def _designed(self, time: float, **shape: float) -> gains.Design:
        late, damping = self._late.count, shape["damping"]
        return gains.for_torques(self.model, time, damping, self.sample_time, late)

    @property
    def _rate(self) -> np.ndarray:
        """(n,) rate at which slow errors decay. [1/s]"""
        kp, kd = (np.diagonal(gains.as_matrix(gain)) for gain in (self.kp, self.kd))
        return kp / (kd + self.model.viscous)

    def _torque(self, t: float, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        tau = self._gravity(q)
        error, rate = self._errors(q, v, aim)
        tau[..., self._skip :] += gains.applied(self.kp, error)
        tau[..., self._skip :] += gains.applied(self.kd, rate)
        tau[..., self._skip :] += self.model.viscous * aim.v
        if self._dry:
            tau[..., self._skip :] += friction(0.0, self.model.coulomb, aim.v + self._rate * error)
        if len(self._idle):
            tau[..., self._idle] = 0.0
        return tau

    def slopes(self, q: ArrayLike, v: ArrayLike, reference: Any = None) -> Slopes:
        """Exact derivatives of the torque by the state; see `Controller.slopes`."""
        q, v = self._state(q, v)
        rest, none = np.zeros(self.model.nv), np.zeros((len(self.torque_limit), 0))
        stiffness = gains.as_matrix(self.kp)
        if self._dry:
            aim, rate = self._aim(reference, q), self._rate
            slope = friction_slope(
                0.0, self.model.coulomb, aim.v + rate * self._errors(q, v, aim)[0]
            )
            stiffness = stiffness + np.diag(slope * rate)
        slopes = self._joint_slopes(-stiffness, -gains.as_matrix(self.kd), none)
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
        if self._dry:
            dry, fast = model.coulomb, self._rate * e
            pull = pull + friction(0.0, dry, fast)
            value += np.sum(dry / self._rate * (np.hypot(fast, SLIP_SPEED) - SLIP_SPEED))
        rate = v @ M @ a + v @ C @ v + v[self._skip :] @ pull  # v^T (dM/dt) v / 2 = v^T C v
        return float(value), float(rate)
