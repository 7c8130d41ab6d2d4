"""A variational integrator: symplectic in (q, p), for long runs.

The discrete Lagrangian is the midpoint's, L_d(q0, q1) = h L((q0 + q1)/2, (q1 - q0)/h); with
v = (q1 - q0)/h its discrete Euler-Lagrange equations in position-momentum form are

    p0 = M v - h/2 G,   p1 = M v + h/2 G,   G = dL/dq + forces, at ((q0 + q1)/2, v)

(Marsden and West 2001, 1.5 and 3.2). The first one is solved for v by Newton's method. `free_base`
has what changes for a base that turns.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from modurob.stepping.base import FixedStep, StepSettings
from modurob.stepping.lagrangian import Floating, Lagrangian
from modurob.stepping.motion import EquationOfMotion, Stopped

LOST = "the variational step has no solution nearby; take a smaller dt or softer forces"
MOST_ROUNDS = 60
SLOW = 3e-3  # shrinking a round above which it pays to learn from the rounds
LEARNED = 1e-9  # of the velocity: corrections below this teach rounding errors
SETTLED = 1e-13  # of the velocity: the error that is left, predicted from how corrections shrink
STALLED = 1e-9  # of the velocity: corrections that stop shrinking below this are rounding errors
SLOWEST, FASTEST = 0.5, 1e-3  # shrinking a round: believed before any was seen, and at best
# the polynomial through the last velocities, one step further; more points are wild in wild motion
POINTS = 7
PREDICTOR = [
    np.array([(-1.0) ** (n - 1 - k) * math.comb(n, k) for k in range(n)])
    for n in range(1, POINTS + 1)
]


class Anchored:
    """The equation of one step for z = v, when q is a vector."""

    def __init__(self, lagrangian: Lagrangian) -> None:
        self._of = lagrangian
        nv = lagrangian.motion.model.nv
        self._slope, self._A, self._D = (np.empty((nv, nv)) for _ in range(3))
        self._side, self._bias = np.empty(nv), np.empty(nv)

    def begin(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Momenta and unknowns of a state."""
        return self._of.mass(q) @ v, v

    def velocity(self, q: np.ndarray, p: np.ndarray) -> np.ndarray:
        """(nv,) the velocity that belongs to momenta."""
        return _solved(self._of.mass(q), p)

    def equation(
        self, t: float, h: float, q: np.ndarray, p: np.ndarray, z: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Derivative (without second derivatives of M) and the residual.

        With G = D z - bias, M z - h/2 G is (M - h/2 D) z + h/2 bias.
        """
        half, slope, A, D_half = h / 2, self._slope, self._A, self._D
        q_m = half * z
        q_m += q
        M, D = self._of.derivatives(q_m, z)
        np.multiply(D, half, out=D_half)
        np.subtract(M, D_half, out=A)
        np.add(A.T, D_half, out=slope)
        self._of.drag(z, slope, half)
        self._bias = bias = half * self._of.bias(t + half, q_m, z)
        missing = p - bias
        missing -= np.dot(A, z, out=self._side)
        return slope, missing

    def finish(
        self, h: float, q: np.ndarray, p: np.ndarray, z: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Configuration and momenta after the step."""
        return q + h * z, p + 2.0 * (np.dot(self._D, z) - self._bias)


class Variational(FixedStep):
    """Order two; energy errors stay bounded, momenta of symmetries are exact. One state only."""

    order = 2

    def __init__(self, motion: EquationOfMotion, settings: StepSettings) -> None:
        super().__init__(motion, settings)
        lagrangian = Lagrangian(motion)
        self.scheme = Floating(lagrangian) if motion.model.free_base else Anchored(lagrangian)
        self._kinked = lagrangian.is_kinked
        self._last, self._unknown = np.empty((0, 0)), np.empty((0, 0))
        self._known, self._shrinks = 0, SLOWEST
        self._end = (np.empty(0), np.empty(0), np.empty(0))

    def advance(
        self, t: float, h: float, count: int, q: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        reached_q, reached_v, p = self._end
        if not (np.array_equal(q, reached_q) and np.array_equal(v, reached_v)):
            p, z = self.scheme.begin(q, v)
            self.forget(z)
        for k in range(count):
            q, p = self.step(t + k * h, h, q, p)
        v = self.scheme.velocity(q, p)
        self._end = q.copy(), v.copy(), p  # going on from here needs no way through v
        return q, v

    def forget(self, z: np.ndarray) -> None:
        """Start from new unknowns, without the last steps."""
        self._last, self._known = np.tile(z, (POINTS, 1)), 1
        self._unknown, self._shrinks = np.zeros((len(z), len(z))), SLOWEST

    def step(
        self, t: float, h: float, q: np.ndarray, p: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The map (q, p) -> (q, p) of one step."""
        z = PREDICTOR[self._known - 1] @ self._last[-self._known :]
        if not self._solve(t, h, q, p, z):  # the guess may have led astray
            z = self._last[-1].copy()
            self.forget(z)
            if not self._solve(t, h, q, p, z):
                raise Stopped(t, LOST)
        self._last[:-1] = self._last[1:]
        self._last[-1] = z
        self._known = min(self._known + 1, POINTS)
        return self.scheme.finish(h, q, p, z)

    def _solve(self, t: float, h: float, q: np.ndarray, p: np.ndarray, z: np.ndarray) -> bool:
        """Move z to the solution by Newton's method; False when it finds none."""
        before, scale, change, left, most = np.inf, _largest(z), z, z, np.inf
        for _ in range(MOST_ROUNDS):
            slope, missing = self.scheme.equation(t, h, q, p, z)
            if self._kinked:
                error = _largest(missing)
                if error > most and before > STALLED * (1 + scale):  # too far
                    change = change / 2
                    z -= change
                    before /= 2
                    continue
                most = error
            slope += self._unknown
            if self._shrinks > SLOW and LEARNED * scale < before < np.inf:
                self._learn(slope, change, left - missing)
            change, left = _solved(slope, missing), missing
            z += change
            size = _largest(change)
            if size < before < np.inf:
                self._shrinks = min(SLOWEST, max(FASTEST, size / before))
            if size * self._shrinks <= SETTLED * scale:
                return True
            if 2 * size >= before and size <= STALLED * (1 + scale):
                self._shrinks = SLOWEST
                return True
            if not size < np.inf:
                return False
            before = size
        return False

    def _learn(self, slope: np.ndarray, change: np.ndarray, response: np.ndarray) -> None:
        """The secant through the last two rounds (Broyden 1965) finds what slope leaves out.

        That is second derivatives of M, and how gravity and the drive change.
        """
        response -= np.dot(slope, change)
        response /= np.dot(change, change)
        lesson = response[:, None] * change
        self._unknown += lesson
        slope += lesson


def _largest(x: np.ndarray) -> float:
    return max(map(abs, x.tolist()))  # faster than NumPy for a few numbers


def _solved(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A^-1 b of a few unknowns, without NumPy's overhead."""
    *_, x, info = _gesv()(A, b)
    return x if info == 0 else np.full(len(b), np.nan)


@cache
def _gesv() -> Any:
    """LAPACK's solver, imported when it is first used."""
    from scipy.linalg import lapack

    return lapack.dgesv  # pyright: ignore[reportAttributeAccessIssue]
