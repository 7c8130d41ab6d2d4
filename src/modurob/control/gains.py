"""Gains of laws: from poles, from a settling time, or as given.

The settling time is the one of textbooks: an error of 1 at rest stays within 2 % from then on. It
is computed from the exact response, not from the rule of thumb 4 / (damping * frequency). Sample
time and delay are part of the design, and inertias of all poses where gains make torques.
"""

from __future__ import annotations

import math
import reprlib
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

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
APART = 1e-6  # of the squared frequency: poles that coincide are moved so far apart
DELAY_ANGLE = 0.3  # pole times delay at most: from 2 - sqrt(2) on, poles of the delay are slower
SAMPLE_ANGLE = 4.0  # pole times sample time at most: faster ones are gone within a sample
POSES = 32  # sampled for the worst inertia
LEAST_SHARE = 1e-6  # of the worst inertia: lighter motions are those of a singular model
COUPLED = math.log(0.3 * SETTLED) / math.log(SETTLED)  # for steps of 30 % beside larger ones
UNIFORM = 0.99  # least share of the worst inertia with which all poses are alike
WITH_INTEGRAL = 1.2  # times the rate: the integral slows the slowest error down to 0.7 of it
LEAST_FACTOR, MOST_FACTOR = 4.0, 16.0  # of damping by rate and inertia, of joints by themselves
ROOM = 0.7  # of the fastest sampled damping: all of it is deadbeat, and unstable one sample late
NO_INERTIA = (
    "the mass matrix is singular: some joints move no mass, or the same mass in the same way; give "
    "the modules between them an inertia"
)


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
    settling_time: float = SETTLING_TIME, damping: float = DAMPING
) -> tuple[float, float]:
    """K0, K1 of ``e'' + K1 e' + K0 e = 0`` that settles in a given time. [1/s^2, 1/s]

    Args:
        settling_time: Until an error of 1 at rest stays within 2 %. [s]
        damping: 1 for no overshoot, 0.7 for a quick response with 5 %.
    """
    time = positive("settling_time", settling_time, "seconds")
    frequency = settling_factor(positive("damping", damping, "(no unit)")) / time
    return float(frequency**2), float(2 * damping * frequency)


def pid_from_settling_time(
    settling_time: float = SETTLING_TIME, damping: float = DAMPING
) -> tuple[float, float, float]:
    """Kp, Ki, Kd of ``e'' + Kd e' + Kp e + Ki int(e) = 0``. [1/s^2, 1/s^3, 1/s]

    Two poles are those of `from_settling_time`, the third is the integral's; a step of the
    reference does not excite it, see `Pid`.
    """
    k0, k1 = from_settling_time(settling_time, damping)
    slow = float(np.sqrt(k0))
    return k0 + k1 * slow, k0 * slow, k1 + slow


def for_samples(
    time: float, damping: float, sample_time: float | None, late: int, integral: bool = False
) -> Design:
    """K0 and K1 of a double integrator whose input is held for a sample, and may come late.

    Its poles are those of `from_settling_time` for what the delay leaves of the time; those that
    the delay adds are faster. A delay that is too long for that makes it slower than asked for.

    Args:
        time: [s]
        damping: See `from_settling_time`.
        sample_time: None for a law that acts continuously. [s]
        late: Samples of delay.
        integral: Return kp, ki, kd of a `Pid` and its share, in place of k0 and k1.
    """
    time, dead = positive("settling_time", time, "seconds"), late * (sample_time or 0.0)
    factor = settling_factor(positive("damping", damping, "(no unit)"))
    left = max(time - dead, factor * dead / DELAY_ANGLE, factor * (sample_time or 0) / SAMPLE_ANGLE)
    if sample_time is None:
        return Design(from_settling_time(left, damping), time)
    apart = np.sqrt(complex(damping * damping - 1) or APART)
    poles = -factor / left * np.array([damping + apart, damping - apart, 1.0])
    if not integral:
        return Design(tuple(_placed(poles[:2], sample_time, late).tolist()), left + dead)
    kp, kd, ki = _placed(poles, sample_time, late).tolist()
    z = math.exp(poles[2].real * sample_time)  # the integral's own pole
    return Design((kp, ki, kd, kp + ki * sample_time * z / (z - 1)), left + dead)


def _placed(poles: np.ndarray, dt: float, late: int) -> np.ndarray:
    """(k,) gains of e, e' and the sum of e with which a sampled double integrator has poles.

    G(z) are their responses to the input; at each pole ``1 + K G(z) z^-late = 0``.
    """
    z, less = np.exp(poles * dt), np.expm1(poles * dt)
    position = dt * dt / 2 * (z + 1) / less**2
    G = np.stack([position, dt / less, dt * z / less * position], axis=1)[:, : len(poles)]
    return np.linalg.solve(G, -(z**late)).real


class Design(NamedTuple):
    """Gains, and the time in which they settle: longer than asked for where samples are too slow.

    Attributes:
        gains: In the order of the law's arguments.
        time: [s]
    """

    gains: tuple[Any, ...]
    time: float


def for_torques(
    model: Model, time: float, damping: float, sample_time: float | None, late: int
) -> Design:
    """Stiffness and damping (n, n) of torques, for the worst inertia of all poses.

    With ``Kp = c (Kd + B)``, B the viscous friction and ``Kd + B >= 4 c damping^2 M`` in every
    pose, no small motion has less damping than asked for, and none is slower than c.

    Args:
        model: The body.
        time: [s]
        damping: Of every motion, at least.
        sample_time, late: Of the law: they bound the damping of the lightest motion. [s]
    """
    time, shape = positive("settling_time", time, "seconds"), 4 * damping * damping
    positive("damping", damping, "(no unit)")
    if not len(model.viscous):
        return Design((np.zeros(0),) * 2, time)
    M, viscous = _pose_inertias(model, _poses(model)), np.diag(model.viscous)
    worst = _upper_bound(M)
    share = LEAST_SHARE if viscous.any() else _shares(M, worst).min()
    least = max(float(share), LEAST_SHARE)
    rate = max(settling_time(shape / x, shape / x) for x in (1.0, least)) / time
    rate *= 1.0 if least > UNIFORM else COUPLED
    kd, slower = _motor_damping(shape * rate * worst, model.viscous), 1.0
    if sample_time is not None:
        fastest = max(_shares(kd, M + sample_time / 2 * viscous).max(), rate)
        slower = max(1.0, fastest / _fastest_sampled(sample_time, late))
    kd = _motor_damping(shape * rate / slower * worst, model.viscous)
    return Design((rate / slower * (kd + viscous), kd), time * slower)


def for_joints(model: Model, time: float, sample_time: float, late: int) -> Design:
    """kp, ki, kd of a `Pid` for each joint, and its share: coupling and gravity are disturbances.

    With c the rate and D a diagonal that exceeds M in every pose, ``Kd + B = f c D``, B the viscous
    friction: with f of 4 or more no motion oscillates, and the more, the less do joints disturb
    each other, since errors then decay with c in every direction. Sampling bounds f: beyond 4 it
    leaves room for one more sample of delay. Where gravity
    is a stiffness between -g D and h D, ``Kp = 2 c (Kd + B) + g D`` and ``Ki = c^2 (Kd + B)``
    leave ``s^2 + (2 c + x) s + c^2 = 0`` with x up to ``(g + h) / (f c)``: c is such that the slow
    root is fast enough.

    Args:
        model: The body.
        time: [s]
        sample_time, late: Of the law. [s]
    """
    time = positive("settling_time", time, "seconds")
    if not len(model.viscous):
        return Design((np.zeros(0),) * 4, time)
    poses = _poses(model)
    M, B = _pose_inertias(model, poses), model.viscous
    D = _diagonal_bound(M)
    falling, rising = _gravity_stiffness(model, poses, np.diag(D))
    wanted = -WITH_INTEGRAL * math.log(SETTLED) / time
    light = _shares(np.diag(D), M + sample_time / 2 * np.diag(B)).max()
    room = _fastest_sampled(sample_time, late) / max(light, 1.0)  # of factor times rate

    def factor(rate: float) -> float:
        return min(MOST_FACTOR, max(ROOM * room / rate, LEAST_FACTOR))

    def missing(rate: float) -> float:
        x = (falling + rising) / (rate * factor(rate))
        return wanted - (rate + x / 2 - math.sqrt(x * (rate + x / 4)))

    most = wanted
    while missing(most) > 0:
        most *= 2
    rate = min(_root(missing, wanted, most) if most > wanted else wanted, room / LEAST_FACTOR)
    wanted_damping = factor(rate) * rate * D
    kd = np.maximum(wanted_damping - B, MOTOR_SHARE * wanted_damping)
    share = rate * (kd + B)
    gains = 2 * share + falling * D, rate * share, kd, share
    return Design(gains, time * max(1.0, wanted / rate))


def _fastest_sampled(sample_time: float, late: int) -> float:
    """Damping of a mass up to which ``v+ = v - x v(late)`` has real poles. [1/s]"""
    return 1 / (sample_time * (late + 1) * (1 + 1 / max(late, 1)) ** late)


def _poses(model: Model) -> np.ndarray:
    """(poses, nq) the neutral pose, and random ones within the joint limits."""
    rng = np.random.default_rng(0)
    return np.array([model.neutral(), *(model.random_configuration(rng) for _ in range(POSES - 1))])


def _pose_inertias(model: Model, poses: np.ndarray) -> np.ndarray:
    """(poses, n, n) mass matrices of the joints; of what they move while a free base gives way."""
    M, base = model.mass_matrix(poses), model.joint_slice_v.start
    if not np.isfinite(M).all():
        raise StateError("the mass matrix is not finite: these displacements are too large")
    if not base:
        return M
    across = M[:, :base, base:]
    try:
        return M[:, base:, base:] - across.mT @ np.linalg.solve(M[:, :base, :base], across)
    except np.linalg.LinAlgError:
        raise StateError(
            "gains follow from the inertia of the whole body on its free base, and it has none "
            "about some axis: give its modules an inertia, or give the gains"
        ) from None


def _gravity_stiffness(model: Model, poses: np.ndarray, inertia: np.ndarray) -> tuple[float, float]:
    """Bounds of gravity's stiffness in all poses, as parts of an inertia: falling, and rising."""
    if model.free_base:
        return 0.0, 0.0
    rest = np.zeros((len(poses), model.nv))
    slope = model.inverse_dynamics_derivatives(poses, rest, rest).dq
    found = _shares((slope + slope.mT) / 2, inertia)
    return max(0.0, -float(found.min())), max(0.0, float(found.max()))


def _diagonal_bound(M: np.ndarray) -> np.ndarray:
    """(n,) inertias of joints by themselves with no less energy than each of (poses, n, n)."""
    each = np.diagonal(M, axis1=1, axis2=2).max(axis=0)
    each = each + LEAST_SHARE * each.max()
    root = each**-0.5
    return each * float(np.linalg.eigvalsh(root[:, None] * M * root).max())


def _upper_bound(M: np.ndarray) -> np.ndarray:
    """(n, n) with no less kinetic energy than each of (poses, n, n), for any velocity."""
    bound = M[0] + LEAST_SHARE * M.max() * np.eye(len(M[0]))  # the largest is on a diagonal
    for one in M[1:]:
        root = np.linalg.cholesky(bound)
        half = np.linalg.inv(root)
        values, vectors = np.linalg.eigh(half @ one @ half.T)
        root = root @ vectors
        bound = (root * np.maximum(values, 1.0)) @ root.T
    return bound


def _shares(M: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """(..., n) generalized eigenvalues of symmetric matrices by positive definite ones."""
    try:
        half = np.linalg.inv(np.linalg.cholesky(bound))
    except np.linalg.LinAlgError:
        raise StateError(NO_INERTIA) from None
    return np.linalg.eigvalsh(half @ M @ half.mT)


def inverse_inertia(M: np.ndarray) -> np.ndarray:
    """(..., n, n) inverses of mass matrices, or an error about joints that move no mass."""
    try:
        return np.linalg.inv(M)
    except np.linalg.LinAlgError:
        raise StateError(NO_INERTIA) from None


def _motor_damping(wanted: np.ndarray, viscous: np.ndarray) -> np.ndarray:
    """(n, n) damping that motors add to friction; they always add a part of what is wanted."""
    root = np.linalg.cholesky(wanted)
    half = np.linalg.inv(root)
    values, vectors = np.linalg.eigh((half * viscous) @ half.T)
    root = root @ vectors
    return (root * np.maximum(1 - values, MOTOR_SHARE)) @ root.T


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    from scipy.optimize import root_scalar

    return float(root_scalar(function, bracket=(low, high)).root)


def _error(t: float, k0: float, k1: float, ki: float) -> float:
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
    """Base of laws with gains that are given, or follow from a settling time."""

    _gains_make_torques: ClassVar[bool] = False

    @abstractmethod
    def _designed(self, time: float, **shape: float) -> Design:
        """Gains for a settling time; of the law's own model, sample time and delay."""

    def _inertias(self, model: Model) -> np.ndarray:
        """(n,) factors from accelerations of the joints to what the gains make of errors."""
        n = len(model.joint_names)
        return joint_inertia(model) if self._gains_make_torques else np.ones(n)

    def _choose_gains(
        self, given: Mapping[str, ArrayLike | None], settling_time: float | None, **shape: float
    ) -> list[Any]:
        """Return gains as given, or designed ones.

        Args:
            given: By name; all of them, or none.
            settling_time: Instead of them. [s]
            shape: Further arguments of the design.
        """
        *first, last = given
        some = [value is not None for value in given.values()]
        if any(some) and (not all(some) or settling_time is not None):
            raise StateError(
                f"give {', '.join(first)} and {last}, or settling_time, or none of them"
            )
        self._gain_names, self._shape = tuple(given), shape
        self._remember(**given)
        if any(some):
            return list(given.values())
        self.settling_time = SETTLING_TIME if settling_time is None else settling_time
        design = self._designed(self.settling_time, **shape)
        self.attainable = design.time
        return list(design.gains)

    def changed(self, **options: Any) -> Controller:
        """See `Controller.changed`; gains stay as they are, also those that were designed."""
        twin = super().changed(**options)
        assert isinstance(twin, DesignedLaw)
        twin._take_gains(self)
        return twin

    def _take_gains(self, old: DesignedLaw) -> None:
        """Take the gains of the same law for the same body."""
        vars(self).update({name: old._gain(name) for name in self._gain_names})

    def _gain(self, name: str) -> np.ndarray:
        return getattr(self, name)

    def _settings(self, joints: JointMap) -> dict[str, Any]:
        common = super()._settings(joints)
        if self.settling_time is not None:
            return common | {"settling_time": self.settling_time, **self._shape}
        return common | {
            name: self._carry(name, self._gain(name), joints) for name in self._gain_names
        }

    def _carry(self, name: str, values: np.ndarray, joints: JointMap) -> np.ndarray:
        """Numbers in the unit of the gains' output for a new body."""
        sizes = self._inertias(joints.old), self._inertias(joints.new)
        return joints.carry(values, self._given_for_all.get(name), sizes)
