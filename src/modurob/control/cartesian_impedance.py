"""Cartesian impedance: one body yields to forces, the other joints keep their posture."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from modurob.control import gains
from modurob.control.impedance import Impedance
from modurob.control.laws import register
from modurob.dynamics import cpu_model
from modurob.model import Model
from modurob.model.joint_map import JointMap
from modurob.reference import Reference
from modurob.spatial import so3
from modurob.spatial.scalars import matvec

SINGULAR = 1e-9  # of the mean compliance of a body: what counts as none
SOFT = 1e-2  # the same for default gains: directions that hardly move are left to the null space


class Task(NamedTuple):
    """A body in one state, in world axes: linear parts first, driven joints only.

    Attributes:
        J: (..., 6, m) Jacobian.
        inverse: (..., m, m) inverse mass matrix, the other coordinates free.
        e, rate: (..., 6) reference minus pose, and minus velocity. [m, rad; m/s, rad/s]
        a_d: (..., 6) acceleration of the reference.
    """

    J: np.ndarray
    inverse: np.ndarray
    e: np.ndarray
    rate: np.ndarray
    a_d: np.ndarray


@register(
    "cartesian-impedance", "one body yields to forces",
    body="", stiffness="N/m", damping="N s/m", inertia="kg", settling_time="s",
)  # fmt: skip
class CartesianImpedance(Impedance):
    """``M a_d + C v_d + N + friction + J^T (K e + D e')`` for one body, plus null space control.

    The reference is one of the joints; the body's pose there is the one that it is drawn to.
    Motions of the joints that the body does not feel (null space) go to the reference as well.

    Args:
        model: The body.
        body: The body that yields; the last one of the model by default.
        stiffness, damping, inertia: In world axes at the body's origin, translation first: one
            number, (6,) or (6, 6); see `Impedance`. [N/m, N s/m, kg; N m/rad, N m s/rad, kg m^2]
        settling_time: Of the null space, and of the body without stiffness and damping. [s]
        options: See `Controller`.
    """

    name = "Cartesian impedance"
    claim = "the body comes to rest at the set point, displaced by K^-1 times a constant wrench"
    _null_space = True

    def __init__(self, model: Model, body: str | None = None, *args: Any, **options: Any) -> None:
        names = cpu_model("a controller", model).body_names
        self._body = model.body_index(names[-1] if body is None else body)
        self._given_body = body
        super().__init__(model, *args, **options)

    @property
    def body(self) -> str:
        """Name of the body that yields."""
        return self.model.body_names[self._body]

    def _directions(self) -> int:
        return 6

    def _settings(self, joints: JointMap) -> dict[str, Any]:
        kept = self._given_body if self.body in joints.new.body_names else None
        return super()._settings(joints) | self._given | {"body": kept}

    def _task(self, q: np.ndarray, v: np.ndarray, aim: Reference) -> Task:
        model, body, motors = self.model, self._body, self._driven
        at, (v_d, a_d) = q.copy(), self._reference(aim, v.shape)
        at[..., self._skip_q :] = aim.q
        T, T_d = (model.forward_kinematics(x)[..., body, :, :] for x in (q, at))
        R = T[..., :3, :3]
        turn = so3.log(np.swapaxes(R, -1, -2) @ T_d[..., :3, :3])
        e = np.concatenate([T_d[..., :3, 3] - T[..., :3, 3], matvec(R, turn)], -1)
        J = model.jacobian(q, body, "aligned")[..., motors]
        rate, a_x = -matvec(J, v[..., motors]), np.zeros(6)
        if v_d.any() or a_d.any():
            J_d = model.jacobian(at, body, "aligned")[..., motors]
            rate = rate + matvec(J_d, v_d[..., motors])
            J_d_rate = model.jacobian_rate(at, v_d, body, "aligned")[..., motors]
            a_x = matvec(J_d, a_d[..., motors]) + matvec(J_d_rate, v_d[..., motors])
        return Task(J, gains.inverse_inertia(self._driven_mass(q)), e, rate, a_x)

    def _smooth(self, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        task, motors = self._task(q, v, aim), self._driven
        J_T = np.swapaxes(task.J, -1, -2)
        own = _task_inertia(task.J, task.inverse, SOFT if self.stiffness is None else SINGULAR)
        pinv, pull = task.inverse @ J_T @ own, self._pull(own, task.e, task.rate)
        v_d, a_d = self._reference(aim, v.shape)
        e, rate = self._errors(q, v, aim)
        free = (self._gains[0] * e + self._gains[1] * rate)[..., motors - self._skip]
        if self.inertia is not None:
            free = free + a_d[..., motors]
            old = self.model.jacobian_rate(q, v, self._body, "aligned")[..., motors]
            wanted = task.a_d + np.linalg.solve(self.inertia, pull[..., None])[..., 0]
            wanted = wanted - matvec(old, v[..., motors]) - matvec(task.J, free)
            a = np.zeros(v.shape)
            a[..., motors] = free + matvec(pinv, wanted)
            return self._motions(q, v, v, a).forces(self._pseudo_inertias())
        tau = self._motions(q, v, v_d, a_d).forces(self._pseudo_inertias())
        free = free - matvec(pinv, matvec(task.J, free))
        tau[..., motors] += matvec(J_T, pull) + matvec(self._driven_mass(q), free)
        return tau

    def _loaded(self, q: np.ndarray, tau: np.ndarray, push: np.ndarray) -> np.ndarray:
        if self.inertia is None:
            return tau
        motors = self._driven
        J = self.model.jacobian(q, self._body, "aligned")[..., motors]
        inverse = gains.inverse_inertia(self._driven_mass(q))
        own, wanted = _task_inertia(J, inverse, SINGULAR), self._felt(q, push).copy()
        f = matvec(own, matvec(J @ inverse, wanted[..., motors]))  # of the body, in world axes
        moved = np.linalg.solve(self.inertia, f[..., None])[..., 0]
        wanted[..., motors] -= matvec(np.swapaxes(J, -1, -2), matvec(own, moved))
        return super()._loaded(q, tau, wanted)


def _task_inertia(J: np.ndarray, inverse: np.ndarray, share: float) -> np.ndarray:
    """(..., 6, 6) inertia that a body shows, damped by a share of its mean compliance."""
    compliance = J @ inverse @ np.swapaxes(J, -1, -2)
    mean = np.trace(compliance, axis1=-2, axis2=-1)[..., None, None] / 6
    return np.linalg.inv(compliance + np.where(mean > 0, share * mean, 1.0) * np.eye(6))
