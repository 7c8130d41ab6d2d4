"""Impedance: a body answers external forces as a mass with a spring and a damper would.

Without an inertia of its own choice the law keeps the body's, ``M (v_d - v)' + C (v_d - v) +
D e' + K e = -f``, and needs no force sensor; it is passive against everything passive. With one,
``M_d e'' + D e' + K e = -f``: then the wrench must be measured and given to `command`. In both
cases a constant wrench displaces the body by K^-1 times it.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import real_array
from modurob.control import gains
from modurob.control.laws import register
from modurob.control.link_law import LinkLaw
from modurob.errors import StateError
from modurob.model import Model
from modurob.model.joint_map import JointMap
from modurob.reference import Reference
from modurob.spatial.scalars import matvec


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
            raise StateError("give stiffness and damping, or settling_time, or none of them")
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
            if inertia is None or not self._null_space:  # else stability depends on the pose
                self._demand_stable()
            return
        self.settling_time = time
        if self.inertia is not None:
            self.stiffness, self.damping = (k * self.inertia for k in self._gains)

    @abstractmethod
    def _directions(self) -> int:
        """Number of directions in which the law has an impedance."""

    def _pull(self, own: np.ndarray, e: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """(..., k) force of spring and damper; `own` is the inertia (..., k, k) there."""
        if self.stiffness is None or self.damping is None:
            return matvec(own, self._gains[0] * e + self._gains[1] * rate)
        return e @ self.stiffness.T + rate @ self.damping.T

    def _settings(self, joints: JointMap) -> dict[str, Any]:
        return super()._settings(joints) | {"settling_time": self._settling_time}

    def _driven_mass(self, q: np.ndarray) -> np.ndarray:
        """(..., m, m) mass matrix of the driven joints, the other coordinates free."""
        M, (d, u) = self._mass(q), (self._driven, self._idle)
        own, rows = M[..., d[:, None], d], u[:, None]
        if not len(u):
            return own
        return own - M[..., d[:, None], u] @ np.linalg.solve(M[..., rows, u], M[..., rows, d])

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
        own, motors = np.zeros((*q.shape[:-1], e.shape[-1], e.shape[-1])), self._driven - skip
        own[..., motors[:, None], motors] = self._driven_mass(q)
        pull = self._pull(own, e, rate)
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
        moved, joints = np.zeros(push.shape), self._felt(q, push)[..., self._skip :]
        moved[..., self._skip :] = np.linalg.solve(self.inertia, joints[..., None])[..., 0]
        moved[..., self._idle] = 0.0
        return super()._loaded(q, tau, push - matvec(self._mass(q), moved))


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
