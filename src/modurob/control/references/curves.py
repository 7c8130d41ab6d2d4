"""Curves through waypoints and through what was recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.control.references.shapes import knots
from modurob.reference import Reference


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
    """A trajectory that was recorded: cubic between samples, at rest before and after.

    Args:
        times: (k,) rising. [s]
        q, v: (k, n) positions and velocities; without v a smooth curve is laid through q. [rad, m]
    """

    def __init__(self, times: ArrayLike, q: ArrayLike, v: ArrayLike | None = None) -> None:
        from scipy.interpolate import CubicHermiteSpline, CubicSpline

        self.times, self.q = knots(times, q, least=2)
        if v is None:
            curve: Any = CubicSpline(self.times, self.q)
        else:
            curve = CubicHermiteSpline(self.times, self.q, knots(times, v, least=2)[1])
        self._curves = curve, curve.derivative(1), curve.derivative(2)

    @classmethod
    def of(cls, trajectory: Any) -> Recorded:
        """Of anything with t, q and v, such as the result of a simulation; joints only."""
        q, v = np.asarray(trajectory.q), np.asarray(trajectory.v)
        base = q.shape[-1] > v.shape[-1]  # a free base has 7 coordinates and 6 velocities
        return cls(trajectory.t, q[:, 7 if base else 0 :], v[:, 6 if base else 0 :])

    def __call__(self, t: float) -> Reference:
        first, last = self.times[0], self.times[-1]
        q = np.asarray(self._curves[0](min(max(t, first), last)))
        if not first <= t <= last:
            return Reference(q, np.zeros(len(q)), np.zeros(len(q)))
        return Reference(q, np.asarray(self._curves[1](t)), np.asarray(self._curves[2](t)))
