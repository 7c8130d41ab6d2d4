"""PD with gravity compensation: robust, and stable by an energy argument."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.control import checks, gains
from modurob.control.controller import Controller, Slopes
from modurob.errors import StateError
from modurob.model import Model
from modurob.reference import Reference


class PdGravity(Controller):
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
        given = kp is not None, kd is not None
        if given[0] != given[1] or (given[0] and settling_time is not None):
            raise StateError("give kp and kd, or a settling_time, or nothing")
        self._design: tuple[float, float] | None = None
        if kp is None or kd is None:
            time = gains.SETTLING_TIME if settling_time is None else settling_time
            kp, kd = gains.for_joints(
                partial(gains.from_settling_time, time, damping),
                gains.joint_inertia(model),
                model.viscous,
            )
            self._design = (time, damping)
        self._typical |= {"kp": checks.typical(kp), "kd": checks.typical(kd)}
        self.kp, self.kd = checks.gain("kp", kp, model), checks.gain("kd", kd, model)

    def _torque(self, t: float, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        tau = self._gravity(q)
        error, rate = self._errors(q, v, aim)
        tau[..., self._skip :] += checks.applied(self.kp, error)
        tau[..., self._skip :] += checks.applied(self.kd, rate)
        if len(self._idle):
            tau[..., self._idle] = 0.0
        return tau

    def slopes(self, q: ArrayLike, v: ArrayLike, reference: Any = None) -> Slopes:
        """Exact derivatives of the torque by the state; see `Controller.slopes`."""
        q, v = self._state(q, v)
        nv, rest = self.model.nv, np.zeros(self.model.nv)
        dq, dv = np.zeros((nv, nv)), np.zeros((nv, nv))
        if not self.model.free_base:
            dq += self.model.inverse_dynamics_derivatives(q, rest, rest).dq
        dq[self._skip :, self._skip :] -= checks.as_matrix(self.kp)
        dv[self._skip :, self._skip :] -= checks.as_matrix(self.kd)
        dq[self._idle], dv[self._idle] = 0.0, 0.0
        return Slopes(dq, dv, np.zeros((nv, 0)))

    def lyapunov(self, q: ArrayLike, v: ArrayLike, set_point: ArrayLike) -> tuple[float, float]:
        """V and dV/dt of the closed loop without limits at a state. [J, W]

        The rate is that of the equations of motion, not the formula it is compared with.
        """
        q, v = self._state(q, v)
        aim, model = self._aim(set_point, q), self.model
        e = q[self._skip_q :] - aim.q
        M, C = model.mass_matrix(q), model.coriolis_matrix(q, v)
        a = model.forward_dynamics(q, v, self._torque(0.0, q, v, aim).copy())
        pull = checks.applied(self.kp, e)
        value = 0.5 * v @ M @ v + 0.5 * e @ pull
        rate = v @ M @ a + v @ C @ v + v[self._skip :] @ pull  # v^T (dM/dt) v / 2 = v^T C v
        return float(value), float(rate)

    def _settings(self, model: Model) -> dict[str, Any]:
        common = super()._settings(model)
        if self._design is not None:
            return common | dict(zip(("settling_time", "damping"), self._design, strict=True))
        scale = gains.joint_inertia(self.model), gains.joint_inertia(model)
        return common | {
            name: checks.carried(getattr(self, name), self.model, model, self._typical[name], scale)
            for name in ("kp", "kd")
        }
