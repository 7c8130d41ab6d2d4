"""Set points, steps, motions from point to point, and curves through points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import is_number, positive, real_array
from modurob.errors import StateError, choices
from modurob.model import Model
from modurob.quintic import Curve, coefficients
from modurob.reference import Reference

# Minimum jerk from rest to rest, s = 10 x^3 - 15 x^4 + 6 x^5: largest s' and s''.
MOST_SPEED = 15 / 8
MOST_ACCELERATION = 10 / np.sqrt(3)
SLACK = 1e-9  # excess over a limit that is rounding
ROUNDING = 1e-9  # of its length: a time this close to the end of a record is the end
UNFIT = (
    "no smooth curve of finite numbers goes through these places: give times that are more evenly "
    "apart, and places that are closer"
)


class SetPoint:
    """Stay at a place q (n,). [rad, m]"""

    def __init__(self, q: ArrayLike) -> None:
        self.q = _row("q", q)
        self._now = Reference(self.q, np.zeros(len(self.q)), np.zeros(len(self.q)))

    def __call__(self, t: float) -> Reference:
        return self._now


class Steps:
    """Set points one after the other: ``Steps([0, 2], [[0, 0], [1, 1]])``.

    Args:
        times: (k,) rising; the first place also holds before the first time. [s]
        q: (k, n) [rad, m]
    """

    def __init__(self, times: ArrayLike, q: ArrayLike) -> None:
        self.times, self.q = _knots(times, q, least=1)
        self._rest = np.zeros(self.q.shape[1])

    def __call__(self, t: float) -> Reference:
        k = int(np.searchsorted(self.times, t, side="right")) - 1
        return Reference(self.q[max(k, 0)], self._rest, self._rest)


class Quintic:
    """A polynomial of fifth order between two states; rest before, and after with its last state.

    Args:
        q0, q1: (n,) first and last place. [rad, m]
        duration: [s]
        v0, v1, a0, a1: (n,) velocities and accelerations at the ends; zero by default, which is
            the motion of minimum jerk.
        begin: When it starts. [s]
    """

    def __init__(
        self,
        q0: ArrayLike,
        q1: ArrayLike,
        duration: float,
        *,
        v0: ArrayLike = 0.0,
        v1: ArrayLike = 0.0,
        a0: ArrayLike = 0.0,
        a1: ArrayLike = 0.0,
        begin: float = 0.0,
    ) -> None:
        first, last = _row("q0", q0), _row("q1", q1)
        if first.shape != last.shape:
            raise StateError(f"q0 and q1 have {len(first)} and {len(last)} joints")
        if not is_number(begin):
            raise StateError(f"begin must be a number of seconds, got {begin!r}")
        self.duration, self.begin = positive("duration", duration, "seconds"), float(begin)
        T, ends = self.duration, []
        for name, value in (("v0", v0), ("v1", v1), ("a0", a0), ("a1", a1)):
            array = real_array(name, value)
            if array.shape not in ((), first.shape):
                raise StateError(f"{name} is one number or {len(first)}, got shape {array.shape}")
            ends.append(np.broadcast_to(array, first.shape))
        v0, v1, a0, a1 = ends
        with np.errstate(all="ignore"):
            c = np.array(coefficients(T, Curve(first, v0, a0), Curve(last, v1, a1)))
            D = np.diag(np.arange(1.0, 6.0), 1) / T  # D c: coefficients of the derivative
            self._c = np.hstack([c, D @ c, D @ D @ c])
        _check_finite(self._c)

    def __call__(self, t: float) -> Reference:
        x = min(max((t - self.begin) / self.duration, 0.0), 1.0)
        powers = np.array([1.0, x, x * x, x**3, x**4, x**5])
        q, v, a = (powers @ self._c).reshape(3, -1)
        if not 0.0 <= t - self.begin <= self.duration:
            v = a = np.zeros(len(q))
        return Reference(q, v, a)


class Spline:
    """A smooth curve (C4, order five) through waypoints, at rest at both ends.

    Args:
        times: (k,) rising. [s]
        q: (k, n) [rad, m]
    """

    def __init__(self, times: ArrayLike, q: ArrayLike) -> None:
        from scipy.interpolate import make_interp_spline

        self.times, self.q = _knots(times, q, least=2)
        still = [(1, np.zeros(self.q.shape[1])), (2, np.zeros(self.q.shape[1]))]
        self._lay(lambda: make_interp_spline(self.times, self.q, k=5, bc_type=(still, still)))

    def _lay(self, fit: Callable[[], Any]) -> None:
        """Take a curve of SciPy's with its derivatives; refuse one that its knots do not fix."""
        with np.errstate(all="ignore"):
            try:
                curve = fit()
                self._curves = curve, curve.derivative(1), curve.derivative(2)
            except (ValueError, np.linalg.LinAlgError):  # singular, or infinite on the way there
                raise StateError(UNFIT) from None
        _check_finite(*(each.c for each in self._curves))

    def __call__(self, t: float) -> Reference:
        inside = min(max(t, self.times[0]), self.times[-1])
        return Reference(*(np.asarray(curve(inside)) for curve in self._curves))


class Recorded(Spline):
    """A trajectory that was recorded: cubic between samples.

    Args:
        times: (k,) rising. [s]
        q, v: (k, n) positions and velocities; without v a smooth curve is laid through q. [rad, m]
        hold: Whether joints stay at the first place before the first time, and at the last one
            after the last; without it, other times are an error.
    """

    def __init__(
        self, times: ArrayLike, q: ArrayLike, v: ArrayLike | None = None, *, hold: bool = False
    ) -> None:
        from scipy.interpolate import CubicHermiteSpline, CubicSpline

        self.times, self.q = _knots(times, q, least=2)
        self.hold = hold
        if v is None:
            self._lay(lambda: CubicSpline(self.times, self.q))
        else:
            slopes = _knots(times, v, least=2)[1]
            self._lay(lambda: CubicHermiteSpline(self.times, self.q, slopes))

    @classmethod
    def of(cls, trajectory: Any, *, hold: bool = False) -> Recorded:
        """Of anything with t, q and v, such as the result of a simulation; joints only."""
        q, v = np.asarray(trajectory.q), np.asarray(trajectory.v)
        base = q.shape[-1] > v.shape[-1]  # a free base has 7 coordinates and 6 velocities
        joints = q[:, 7 if base else 0 :], v[:, 6 if base else 0 :]
        return cls(trajectory.t, *joints, hold=hold)

    def __call__(self, t: float) -> Reference:
        first, last = self.times[0], self.times[-1]
        slack = ROUNDING * (last - first)
        inside = first - slack <= t <= last + slack
        if not (self.hold or inside):
            raise StateError(
                f"the recorded reference lasts from {first:g} to {last:g} s, got t = {t:g} s: "
                "end the run there, record longer, or pass hold=True to stay at its ends"
            )
        q, v, a = super().__call__(t)
        return Reference(q, v * inside, a * inside)


def minimum_jerk(
    q0: ArrayLike,
    q1: ArrayLike,
    duration: float | None = None,
    *,
    model: Model | None = None,
    rate: ArrayLike | None = None,
    acceleration: ArrayLike | None = None,
    begin: float = 0.0,
) -> Quintic:
    """From rest to rest with the least jerk; as fast as limits allow when no duration is given.

    Args:
        q0, q1: (n,) first and last place. [rad, m]
        duration: [s]
        model: Whose joint limits are to be kept.
        rate, acceleration: Largest ones of all joints, or of each. [rad/s, m/s, rad/s^2, m/s^2]
        begin: When it starts. [s]
    """
    first, last = _row("q0", q0), _row("q1", q1)
    if model is not None:  # between the ends it is monotonic
        for name, q in (("q0", first), ("q1", last)):
            _check_place(name, q, model)
    least = 0.0
    for name, limit in (("rate", rate), ("acceleration", acceleration)):
        if limit is None:
            continue
        most = np.broadcast_to(real_array(name, limit), first.shape)
        if np.any(most <= 0):
            raise StateError(f"{name} must be positive, got {limit!r}")
        way = np.abs(last - first) / most
        times = MOST_SPEED * way if name == "rate" else np.sqrt(MOST_ACCELERATION * way)
        least = max(least, float(times.max(initial=0.0)))
    if duration is None:
        if rate is None and acceleration is None:
            raise StateError("give a duration, or a largest rate or acceleration")
        duration = least or 1.0  # nothing to do takes any time
    elif duration < least * (1 - SLACK):
        raise StateError(f"{duration:g} s are too short for these limits: at least {least:.6g} s")
    return Quintic(first, last, duration, begin=begin)


def _check_place(name: str, q: np.ndarray, model: Model) -> None:
    if q.shape != (len(model.joint_names),):
        raise StateError(f"{name} has {len(q)} joints, the model {len(model.joint_names)}")
    out = (q < model.lower - SLACK) | (q > model.upper + SLACK)
    if out.any():
        names = choices(np.array(model.joint_names)[out])
        raise StateError(f"{name} is beyond the joint limits of {names}")


def _row(name: str, value: ArrayLike) -> np.ndarray:
    """(n,) numbers, or a `StateError`."""
    array = real_array(name, value)
    if array.ndim != 1:
        raise StateError(f"{name} is one number for each joint, got shape {array.shape}")
    return array


def _check_finite(*coefficients: np.ndarray) -> None:
    if not all(np.isfinite(each).all() for each in coefficients):
        raise StateError(UNFIT)


def _knots(times: ArrayLike, q: ArrayLike, least: int) -> tuple[np.ndarray, np.ndarray]:
    """(k,) rising times and (k, n) places, k at least `least`, or a `StateError`."""
    t, places = real_array("times", times), real_array("q", q)
    if t.ndim != 1 or places.ndim != 2 or len(t) != len(places) or len(t) < least:
        raise StateError(
            f"times (k,) and places (k, n) belong together, k at least {least}; "
            f"got shapes {t.shape} and {places.shape}"
        )
    if np.any(np.diff(t) <= 0):
        raise StateError("times must increase")
    return t, places
