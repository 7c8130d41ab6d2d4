"""Gains of laws: from poles, from a settling time, or as given.

The settling time is the one of textbooks: an error of 1 at rest stays within 2 % from then on. It
is computed from the exact response, not from the rule of thumb 4 / (damping * frequency).
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import positive, real_array
from modurob.control.controller import Controller
from modurob.errors import StateError
from modurob.model import Model
from modurob.model.joint_map import JointMap

SETTLED = 0.02  # of the first error: the customary band
SETTLING_TIME = 1.0  # [s] of default gains
DAMPING = 1.0  # of default gains: no overshoot
HORIZON = 12.0  # slowest time constants to look ahead: e^-12 times a cubic is far within the band
GRID = 4096  # points over the horizon; an oscillation of damping 0.01 has 20 of them a period
MOTOR_SHARE = 0.1  # of the damping stays with the motor: friction in datasheets is not exact
PI_FACTOR = 5.3  # slow pole times settling time of (1 - x) e^-x, the limit of much drag, is 5.39
FASTEST = 0.79  # damping at which an error settles soonest without leaving the 2 % band again


def from_poles(poles: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """K0, K1 (each (...)) of ``e'' + K1 e' + K0 e = 0`` with two poles. [1/s^2, 1/s]

    Args:
        poles: (..., 2) in the left half-plane: two real ones, or a conjugate pair. [1/s]
    """
    try:
        p = np.asarray(poles, dtype=complex)
    except (TypeError, ValueError, OverflowError):
        p = np.empty(0, dtype=complex)
    if p.ndim == 0 or p.shape[-1] != 2 or not np.isfinite(p).all():
        raise StateError(f"poles are two finite numbers for each joint, got {poles!r}")
    k0, k1 = p[..., 0] * p[..., 1], -(p[..., 0] + p[..., 1])
    rounding = 1e-12 * (1 + np.abs(k0) + np.abs(k1))
    if np.any(np.abs(np.imag(k0)) > rounding) or np.any(np.abs(np.imag(k1)) > rounding):
        raise StateError(f"complex poles come in conjugate pairs, got {poles!r}")
    if np.any(np.real(p) >= 0):
        raise StateError(f"poles must lie left of the imaginary axis, got {poles!r}")
    return np.real(k0), np.real(k1)


def from_settling_time(
    settling_time: float = SETTLING_TIME, damping: float = DAMPING, drag: float = 0.0
) -> tuple[float, float]:
    """K0, K1 of ``e'' + (K1 + drag) e' + K0 e = 0`` that settles in a given time. [1/s^2, 1/s]

    Args:
        settling_time: Until an error of 1 at rest stays within 2 %. [s]
        damping: 1 for no overshoot, 0.7 for a quick response with 5 %. More drag than that needs
            leads to more damping and a larger K0; the settling time stays.
        drag: Viscous friction per inertia, which the law does not cancel. [1/s]
    """
    time = positive("settling_time", settling_time, "seconds")
    frequency = settling_factor(positive("damping", damping, "(no unit)")) / time
    k0, wanted = float(frequency**2), float(2 * damping * frequency)
    k1, total = _shared(wanted, drag)
    if total > wanted:
        quickest = (total / (2 * FASTEST)) ** 2
        k0 = _root(lambda k: _error(time, k, total) - SETTLED, 0.0, quickest)
    return k0, k1


def pid_from_settling_time(
    settling_time: float = SETTLING_TIME, drag: float = 0.0
) -> tuple[float, float, float]:
    """Kp, Ki, Kd of ``e'' + (Kd + drag) e' + Kp e + Ki int(e) = 0``. [1/s^2, 1/s^3, 1/s]

    A triple pole; with more drag than that needs, a double pole and a faster one.

    Args:
        settling_time: Until an error of 1 at rest stays within 2 %. It overshoots by 14 to 25 % on
            the way: what the integral gathered must be given back. [s]
        drag: Viscous friction per inertia, which the law does not cancel. [1/s]
    """
    time = positive("settling_time", settling_time, "seconds")
    rate = _settling_time(3.0, 3.0, 1.0) / time
    kd, total = _shared(3 * rate, drag)
    if total > 3 * rate:

        def left(slow: float) -> float:  # the error returns to the band from below
            return _error(time, *_double_pole(slow, total)) + SETTLED

        rate = _root(left, PI_FACTOR / time, rate)
    kp, _, ki = _double_pole(rate, total)
    return kp, ki, kd


def for_joints(
    design: Callable[..., tuple[float, ...]], inertia: np.ndarray, viscous: np.ndarray
) -> tuple[np.ndarray, ...]:
    """(n,) gains of each kind, in torques, for joints that move alone.

    Args:
        design: Gains per inertia from `drag`, as of `from_settling_time`. [1/s]
        inertia: (n,) inertia or mass that each joint moves. [kg m^2, kg]
        viscous: (n,) friction that the law does not cancel. [N m s/rad, N s/m]
    """
    drag = np.divide(viscous, inertia, out=np.zeros(len(inertia)), where=inertia > 0)
    some, which = np.unique([0.0, *drag], return_inverse=True)  # joints of equal drag are alike
    each = np.array([design(drag=float(x)) for x in some])[which[1:]]
    return tuple(each.T * inertia)


def _shared(wanted: float, drag: float) -> tuple[float, float]:
    """Damping of the motor, and that of motor and drag together. [1/s]"""
    motor = max(wanted - drag, MOTOR_SHARE * wanted) if drag > 0 else wanted
    return motor, motor + drag


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    from scipy.optimize import root_scalar

    return float(root_scalar(function, bracket=(low, high)).root)


def _double_pole(slow: float, total: float) -> tuple[float, float, float]:
    """K0, K1, Ki of ``(s + slow)^2 (s + total - 2 slow)``."""
    fast = total - 2 * slow
    return slow * slow + 2 * slow * fast, total, slow * slow * fast


def _error(t: float, k0: float, k1: float, ki: float = 0.0) -> float:
    """Error at a time that was 1 at rest, of ``e'' + k1 e' + k0 e + ki int(e) = 0``."""
    from scipy.linalg import expm

    return float(expm(_error_matrix(k0, k1, ki) * t)[0, 0])


def _error_matrix(k0: float, k1: float, ki: float) -> np.ndarray:
    """(3, 3), or (2, 2) without an integral, of (e, e', int e)."""
    A = np.array([[0.0, 1.0, 0.0], [-k0, -k1, -ki], [1.0, 0.0, 0.0]])
    return A if ki else A[:2, :2]


def settling_factor(damping: float) -> float:
    """Natural frequency times settling time of ``e'' + 2 damping w e' + w^2 e = 0``."""
    return settling_time(1.0, 2 * damping)


def settling_time(k0: float, k1: float, ki: float = 0.0) -> float:
    """Until an error of 1 at rest stays within 2 %; infinite when it never does. [s]

    Of ``e'' + k1 e' + k0 e + ki int(e) = 0``. [1/s, 1/s^2, 1/s^3]
    """
    return _settling_time(float(k0), float(k1), float(ki))


@lru_cache(maxsize=256)
def _settling_time(k0: float, k1: float, ki: float) -> float:
    from scipy.linalg import expm

    A = _error_matrix(k0, k1, ki)
    rates = np.linalg.eigvals(A).real
    if rates.max() >= 0:
        return float("inf")
    h = HORIZON / -rates.max() / GRID
    step, x, last = expm(A * h), np.eye(len(A))[0], 0
    for k in range(GRID):
        last = k if abs(x[0]) > SETTLED else last
        x = step @ x
    # the response leaves the band for the last time within this cell
    return _root(lambda t: abs(_error(t, k0, k1, ki)) - SETTLED, last * h, (last + 1) * h)


def joint_inertia(model: Model, q: ArrayLike | None = None) -> np.ndarray:
    """(n,) inertia or mass that each joint moves when the others are held. [kg m^2, kg]

    At q (nq,), or in the neutral pose.
    """
    M = model.mass_matrix(model.neutral() if q is None else q)
    return np.diagonal(M)[model.joint_slice_v].copy()


def gain(name: str, value: ArrayLike, model: Model) -> np.ndarray:
    """(n,) or (n, n) gains: positive, one for all joints or for each; or any matrix.

    The entries of a matrix do not show whether the loop is stable: its certificate does.
    """
    n, array = len(model.joint_names), real_array(name, value)
    if array.ndim == 2 and array.shape == (n, n):
        return array
    if array.shape not in ((), (n,)):
        raise StateError(
            f"{name} is one number, one for each of {n} joints, or a ({n}, {n}) matrix, "
            f"got shape {array.shape}"
        )
    if np.any(array <= 0):
        given = reprlib.repr(value.tolist() if isinstance(value, np.ndarray) else value)
        raise StateError(f"{name} must be positive, got {given}: the joints would be pushed away")
    return np.array(np.broadcast_to(array, (n,)))


def as_matrix(values: np.ndarray) -> np.ndarray:
    """(n, n) of a gain."""
    return np.diag(values) if values.ndim == 1 else values


def applied(values: np.ndarray, error: np.ndarray) -> np.ndarray:
    """(..., n) gain times error."""
    return values * error if values.ndim == 1 else error @ values.T


class DesignedLaw(Controller):
    """Base of laws with gains that are given, or follow from a settling time.

    Gains make accelerations of errors, for a law that cancels inertia and friction; or torques.
    """

    _gains_make_torques: ClassVar[bool] = False
    _design: ClassVar[Callable[..., tuple[float, ...]]] = staticmethod(from_settling_time)

    def _inertias(self, model: Model) -> np.ndarray:
        """(n,) factors from accelerations of the joints to what the gains make of errors."""
        n = len(model.joint_names)
        return joint_inertia(model) if self._gains_make_torques else np.ones(n)

    def _choose_gains(
        self, given: Mapping[str, ArrayLike | None], settling_time: float | None, **shape: float
    ) -> list[Any]:
        """Return gains as given, or (n,) each, designed for the joints' inertia and friction.

        Args:
            given: By name; all of them, or none.
            settling_time: Instead of them. [s]
            shape: Further arguments of the design.
        """
        *first, last = given
        some = [value is not None for value in given.values()]
        if any(some) and (not all(some) or settling_time is not None):
            raise StateError(f"give {', '.join(first)} and {last}, or a settling_time, or nothing")
        self._gain_names, self._designed_for = tuple(given), None
        self._remember(**given)
        if any(some):
            return list(given.values())
        time = SETTLING_TIME if settling_time is None else settling_time
        self._designed_for = {"settling_time": time, **shape}
        design = partial(self._design, time, **shape)
        inertia = self._inertias(self.model)
        friction = self.model.viscous if self._gains_make_torques else np.zeros(len(inertia))
        return list(for_joints(design, inertia, friction))

    def _gain(self, name: str) -> np.ndarray:
        return getattr(self, name)

    def _settings(self, joints: JointMap) -> dict[str, Any]:
        common = super()._settings(joints)
        if self._designed_for is not None:
            return common | self._designed_for
        return common | {
            name: self._carry(name, self._gain(name), joints) for name in self._gain_names
        }

    def _carry(self, name: str, values: np.ndarray, joints: JointMap) -> np.ndarray:
        """Numbers in the unit of the gains' output for a new body."""
        sizes = self._inertias(joints.old), self._inertias(joints.new)
        return joints.carry(values, self._given_for_all.get(name), sizes)
