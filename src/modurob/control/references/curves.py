"""Curves through waypoints and through what was recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.control.references.shapes import knots
from modurob.errors import StateError
from modurob.reference import Reference

ROUNDING = 1e-9  # of its length: a time this close to the end is the end


class Spline:
    """A smooth curve (C4, order five) through waypoints, at rest at both ends.

    Args:
        times: (k,) rising. [s]
        q: (k, n) [rad, m]
    """

    def __init__(self, times: ArrayLike, q: ArrayLike) -> None:
        from scipy.interpolate import make_interp_spline

        self.times, self.q = knots(times, q, least=2)
        still = [(1, np.zeros(self.q.shape[1])), (2, np.zeros(self.q.shape[1]))]
        curve = make_interp_spline(self.times, self.q, k=5, bc_type=(still, still))
        self._curves = curve, curve.derivative(1), curve.derivative(2)

    def __call__(self, t: float) -> Reference:
        inside = min(max(t, self.times[0]), self.times[-1])
        return Reference(*(np.asarray(curve(inside)) for curve in self._curves))


class Recorded:
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

        self.times, self.q = knots(times, q, least=2)
        if v is None:
            curve: Any = CubicSpline(self.times, self.q)
        else:
            curve = CubicHermiteSpline(self.times, self.q, knots(times, v, least=2)[1])
        self._curves = curve, curve.derivative(1), curve.derivative(2)
        self.hold = hold

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
        if not (self.hold or first - slack <= t <= last + slack):
            raise StateError(
                f"the recorded reference lasts from {first:g} to {last:g} s and was asked for "
                f"{t:g} s: end the run there, record longer, or pass hold=True to stay at its ends"
            )
        q = np.asarray(self._curves[0](min(max(t, first), last)))
        if not first - slack <= t <= last + slack:
            return Reference(q, np.zeros(len(q)), np.zeros(len(q)))
        t = min(max(t, first), last)
        return Reference(q, np.asarray(self._curves[1](t)), np.asarray(self._curves[2](t)))
