"""Impedance: a body answers external forces as a mass with a spring and a damper would.

Without an inertia of its own choice the law keeps the body's, ``M (v_d - v)' + C (v_d - v) +
D e' + K e = -f``, and needs no force sensor; it is passive against everything passive. With one,
``M_d e'' + D e' + K e = -f``: then the wrench must be measured and given to `command`. In both
cases a constant wrench displaces the body by K^-1 times it.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import real_array
from modurob.control import gains
from modurob.control.laws import register
from modurob.control.link_law import LinkLaw
from modurob.dynamics import cpu_model
from modurob.errors import StateError
from modurob.model import Model
from modurob.model.joint_map import JointMap
from modurob.reference import Reference
from modurob.spatial import so3

SINGULAR = 1e-9  # of the mean compliance of a body: what counts as none
SOFT = 1e-2  # the same for default gains: directions that hardly move are left to the null space


class Impedance(LinkLaw):
    """Base of impedance laws: stiffness, damping and inertia as given, or designed.

    Args:
        model: The body.
        stiffness, damping: Positive definite: one number, one for each direction, or a matrix.
        inertia: The same; None for the inertia that the body has.
        settling_time: Instead of stiffness and damping, which then are those of the body's inertia
            in its present pose; 1 s if nothing is given. [s]
        options: See `Controller`.
    """

    scope = "global"
    _null_space: ClassVar[bool] = False  # True: the settling time is also that of a null space

    def __init__(
        self,
        model: Model,
        stiffness: ArrayLike | None = None,
        damping: ArrayLike | None = None,
        inertia: ArrayLike | None = None,
        *,
        settling_time: float | None = None,
        **options: Any,
    ) -> None:
        super().__init__(model, **options)
        beside = stiffness is not None and settling_time is not None and not self._null_space
        if (stiffness is None) != (damping is None) or beside:
            raise StateError("give stiffness and damping, or a settling_time, or nothing")
        size = self._directions()
        time = gains.SETTLING_TIME if settling_time is None else settling_time
        self._gains = gains.from_settling_time(time)  # of the null space, and by default
        self._settling_time = settling_time
        self._given = {"stiffness": stiffness, "damping": damping, "inertia": inertia}
        self.inertia = None if inertia is None else _definite("inertia", inertia, size)
        self.stiffness = self.damping = None
        if stiffness is not None and damping is not None:
            self.stiffness = _definite("stiffness", stiffness, size)
            self.damping = _definite("damping", damping, size)
        elif self.inertia is not None:
            self.stiffness, self.damping = (k * self.inertia for k in self._gains)

    @abstractmethod
    def _directions(self) -> int:
        """Number of directions in which the law has an impedance."""

    def _pull(self, own: np.ndarray, e: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """(..., k) force of spring and damper; `own` is the inertia (..., k, k) there."""
        if self.stiffness is None or self.damping is None:
            return _times(own, self._gains[0] * e + self._gains[1] * rate)
        return e @ self.stiffness.T + rate @ self.damping.T

    def _settings(self, joints: JointMap) -> dict[str, Any]:
        return super()._settings(joints) | {"settling_time": self._settling_time}

    def _reference(self, aim: Reference, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """(..., nv), (..., nv) velocities and accelerations of the reference."""
        v_d, a_d = np.zeros(shape), np.zeros(shape)
        v_d[..., self._skip :], a_d[..., self._skip :] = aim.v, aim.a
        return v_d, a_d


@register(
    "joint-impedance", "yields to forces, joint by joint",
    stiffness="N m/rad", damping="N m s/rad", inertia="kg m^2", settling_time="s",
)  # fmt: skip
class JointImpedance(Impedance):
    """``M a_d + C v_d + N + friction + K e + D e'`` with ``e = q_d - q``, or with an inertia M_d
    ``M (a_d + M_d^-1 (K e + D e' + f)) + C v + N + friction - f``.

    Args:
        model: The body.
        stiffness, damping, inertia: One number, (n,) or (n, n); see `Impedance`.
            [N m/rad, N m s/rad, kg m^2; N/m, N s/m, kg]
        settling_time: Instead of stiffness and damping. [s]
        options: See `Controller`.
    """

    name = "joint impedance"
    claim = "the joints come to rest at the set point, displaced by K^-1 times a constant torque"

    def _directions(self) -> int:
        return len(self.torque_limit)

    def _settings(self, joints: JointMap) -> dict[str, Any]:
        carried = {
            name: joints.carry(_matrix(given, len(self.torque_limit)))
            for name, given in self._given.items()
            if given is not None
        }
        return super()._settings(joints) | carried

    def _smooth(self, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        (e, rate), skip = self._errors(q, v, aim), self._skip
        pull = self._pull(self._mass(q)[..., skip:, skip:], e, rate)
        v_d, a_d = self._reference(aim, v.shape)
        if self.inertia is not None:
            a_d[..., skip:] += np.linalg.solve(self.inertia, pull[..., None])[..., 0]
            return self._motions(q, v, v, a_d).forces(self._pseudo_inertias())
        tau = self._motions(q, v, v_d, a_d).forces(self._pseudo_inertias())
        tau[..., skip:] += pull
        return tau

    def _loaded(self, q: np.ndarray, tau: np.ndarray, push: np.ndarray) -> np.ndarray:
        if self.inertia is None:
            return tau
        joints = push[..., self._skip :, None]
        moved = self._mass(q)[..., self._skip :, self._skip :] @ np.linalg.solve(
            self.inertia, joints
        )
        wanted = push.copy()
        wanted[..., self._skip :] -= moved[..., 0]
        return super()._loaded(q, tau, wanted)


class Task(NamedTuple):
    """A body in one state, in world axes: linear parts first, driven joints only.

    Attributes:
        J: (..., 6, m) Jacobian.
        inverse: (..., m, m) inverse mass matrix, the other joints held.
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

    The reference is one of the joints; the body's pose there is the one that it is drawn to. What
    the body does not feel of the joints (null space) goes to the reference by itself.

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

    def _driven_inverse(self, q: np.ndarray) -> np.ndarray:
        """(..., m, m) inverse mass matrix of the driven joints, the others held."""
        return np.linalg.inv(self.model.mass_matrix(q)[..., self._driven[:, None], self._driven])

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
        e = np.concatenate([T_d[..., :3, 3] - T[..., :3, 3], (R @ turn[..., None])[..., 0]], -1)
        J = model.jacobian(q, body, "aligned")[..., motors]
        rate, a_x = -_times(J, v[..., motors]), np.zeros(6)
        if v_d.any() or a_d.any():
            J_d = model.jacobian(at, body, "aligned")[..., motors]
            rate = rate + _times(J_d, v_d[..., motors])
            J_d_rate = model.jacobian_rate(at, v_d, body, "aligned")[..., motors]
            a_x = _times(J_d, a_d[..., motors]) + _times(J_d_rate, v_d[..., motors])
        return Task(J, self._driven_inverse(q), e, rate, a_x)

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
            wanted = wanted - _times(old, v[..., motors]) - _times(task.J, free)
            a = np.zeros(v.shape)
            a[..., motors] = free + _times(pinv, wanted)
            return self._motions(q, v, v, a).forces(self._pseudo_inertias())
        tau = self._motions(q, v, v_d, a_d).forces(self._pseudo_inertias())
        free = free - _times(pinv, _times(task.J, free))
        M = self.model.mass_matrix(q)[..., motors[:, None], motors]
        tau[..., motors] += _times(J_T, pull) + _times(M, free)
        return tau

    def _loaded(self, q: np.ndarray, tau: np.ndarray, push: np.ndarray) -> np.ndarray:
        if self.inertia is None:
            return tau
        motors = self._driven
        J = self.model.jacobian(q, self._body, "aligned")[..., motors]
        inverse = self._driven_inverse(q)
        felt = _task_inertia(J, inverse, SINGULAR)
        f = _times(felt, _times(J @ inverse, push[..., motors]))  # of the body, in world axes
        moved = np.linalg.solve(self.inertia, f[..., None])[..., 0]
        wanted = push.copy()
        wanted[..., motors] -= _times(np.swapaxes(J, -1, -2), _times(felt, moved))
        return super()._loaded(q, tau, wanted)


def _task_inertia(J: np.ndarray, inverse: np.ndarray, share: float) -> np.ndarray:
    """(..., 6, 6) inertia that a body shows, damped by a share of its mean compliance."""
    compliance = J @ inverse @ np.swapaxes(J, -1, -2)
    mean = np.trace(compliance, axis1=-2, axis2=-1)[..., None, None] / 6
    return np.linalg.inv(compliance + np.where(mean > 0, share * mean, 1.0) * np.eye(6))


def _times(matrix: np.ndarray, x: np.ndarray) -> np.ndarray:
    return (matrix @ x[..., None])[..., 0]


def _matrix(value: ArrayLike, size: int) -> np.ndarray:
    array = np.asarray(value, dtype=float)
    return array if array.ndim == 2 else np.diag(np.broadcast_to(array, (size,)))


def _definite(name: str, value: ArrayLike, size: int) -> np.ndarray:
    """(size, size) symmetric and positive definite, from a number, a diagonal or a matrix."""
    array = real_array(name, value)
    if array.shape not in ((), (size,), (size, size)):
        raise StateError(
            f"{name} is one number, {size} numbers or a ({size}, {size}) matrix, got shape "
            f"{array.shape}"
        )
    matrix = _matrix(array, size)
    if not np.allclose(matrix, matrix.T) or np.linalg.eigvalsh(matrix).min(initial=1.0) <= 0:
        raise StateError(
            f"{name} must be symmetric and positive definite, got {array.tolist()!s:.60}"
        )
    return matrix
