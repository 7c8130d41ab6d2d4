"""One sample ahead: the state under a held torque, with the exact Jacobians of the step taken."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from modurob import friction
from modurob.dynamics import step_jacobians, step_slopes, stepped_state, stepped_velocity
from modurob.errors import StateError
from modurob.friction import MOST_RATE_STEP, needs_implicit_step
from modurob.model import Model

SHARES = (0.5, 0.5, 1.0)  # of a step, from each stage of Runge and Kutta to the next
MOST = {"rk4": 32, "step": 8}  # steps of a sample by default: some two milliseconds of computing
FINE = {"rk4": 1.0, "step": 0.25}  # friction's rate times a step: decays are right to 1 and 3 %


class Predicted(NamedTuple):
    """A state one step ahead.

    Attributes:
        q, v: (nq,), (nv,) the state.
        A: (2nv, 2nv) by the state before, in the tangent space of a free base.
        B: (2nv, nv) by the torque; None unless it was asked for.
    """

    q: np.ndarray
    v: np.ndarray
    A: np.ndarray
    B: np.ndarray | None


class SemiImplicit:
    """The model's own step of h seconds: first order, any base, any friction."""

    def __init__(self, model: Model, h: float) -> None:
        self._model, self._h = model, h
        if not needs_implicit_step(model, h):  # quicker than the functions below, and the same
            self._forward = model.prepare("forward_dynamics")
            self._slopes = model.prepare("forward_dynamics_derivatives")

    def __call__(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, torque: bool = True
    ) -> Predicted:
        model, h = self._model, self._h
        if needs_implicit_step(model, h):
            after = stepped_velocity(model, q, v, tau, h)
            slopes = step_slopes(model, q, v, tau, after, h)
        else:
            after = v + h * self._forward(q, v, tau)
            slopes = self._slopes(q, v, tau)
        A, B = step_jacobians(model, v, after, slopes, h)
        if not model.free_base:  # quicker
            return Predicted(q + h * after, after, A, B)
        return Predicted(*stepped_state(model, q, v, after, h), A, B)


class RungeKutta:
    """Runge-Kutta's fourth-order step of h seconds on a fixed base.

    Its Jacobian is that of the step itself. The derivative of a stage's acceleration by the first
    state is ``D = F S``: F is by the stage's own state, and S, of that state by the first one, is a
    constant and two earlier D. In rows with h/2 as the unit of time, where the stages are 0, 1, 1
    and 2 ahead, S is their sum. All stages are linearized in one call, once their states are known.

    Memory and views of it are made once: for a few joints everything else takes longer than the
    arithmetic.
    """

    def __init__(self, model: Model, h: float) -> None:
        n, unit = model.nv, h / 2
        self._model, self._forward = model, model.dynamics.bound("forward_dynamics")[0]
        self._linearize, self._linear = model.dynamics.bound("forward_dynamics_derivatives", 4)
        self._rows, self._slopes = np.zeros((3, 4, n)), self._linear.transpose(1, 0, 2, 3)
        growth = h / 6 * np.array([[h, h, h, 0.0], [1.0, 2.0, 2.0, 1.0]])  # by accelerations
        self._bind_stages(n, h, growth)
        self._growth, self._unit = growth / unit**2, unit**2
        self._F, self._scale = np.zeros((4, n, 2 * n)), np.full((4, n, 2 * n), unit**2)
        self._scale[1:, :, n:] = unit
        self._scale[3] *= 2  # S of the last stage is halved, for the two before it are not doubled
        one, zero = np.eye(n), np.zeros((n, n))
        self._kept = np.block([[one, h * one], [zero, one]])
        near, far = (
            np.block([[share * one, unit * one], [zero, share * unit * one]]) for share in (1, 0.5)
        )
        S, D = np.zeros((2 * n, 2 * n)), np.zeros((5, n, 2 * n))  # the first D is zero
        self._D, self._S = D[1:], S
        self._links = [
            (F, D[k : k + 2].reshape(2 * n, 2 * n), constant, D[k + 2])
            for k, (F, constant) in enumerate(zip(self._F[1:], (near, near, far), strict=True))
        ]

    def _bind_stages(self, n: int, h: float, growth: np.ndarray) -> None:
        """Memory of q, v and a in the stages, and each state as a sum of rows before it."""
        memory = np.zeros((4, 3, n))
        self._start, self._parts = memory[0], memory.transpose(1, 0, 2)
        self._stages, flat = [], memory.reshape(12, n)
        for k in range(4):
            sums = np.zeros((2, k + 1, 3))
            sums[0, 0, 0] = sums[1, 0, 1] = 1.0
            if k < 3:
                sums[0, k, 1] += h * SHARES[k]
                sums[1, k, 2] = h * SHARES[k]
            else:
                sums[0, 0, 1] = h
                sums[:, :, 2] = growth
            rows, after = 3 * k + 3, memory[k + 1, :2] if k < 3 else None
            self._stages.append((*memory[k], sums.reshape(2, rows), flat[:rows], after))

    def __call__(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, torque: bool = True
    ) -> Predicted:
        forward, dot, x = self._forward, np.dot, self._start
        self._start[0], self._start[1] = q, v
        for here, speed, a, sums, rows, after in self._stages:
            if forward(here, speed, tau, a) is None:
                a[:] = self._model.forward_dynamics(here, speed, tau)
            x = dot(sums, rows, after)
        rows = self._rows
        rows[:] = self._parts
        if self._linearize(*rows, self._linear) is None:
            self._slopes[:] = self._model.forward_dynamics_derivatives(rows[0], rows[1], tau)
        return Predicted(x[0], x[1], self._by_state(), self._by_torque() if torque else None)

    def _by_state(self) -> np.ndarray:
        """(2nv, 2nv) derivative of the step by the state before."""
        F, D, n = self._F, self._D, self._slopes.shape[-1]
        F[:, :, :n], F[:, :, n:], _ = self._slopes
        F *= self._scale
        D[0] = F[0]
        for F_k, before, constant, after in self._links:
            np.add(before, constant, self._S)
            np.dot(F_k, self._S, after)
        A = self._growth.dot(D.reshape(4, 2 * n * n)).reshape(2 * n, 2 * n)
        A += self._kept
        return A

    def _by_torque(self) -> np.ndarray:
        """(2nv, nv) derivative of the step by the torque, once that by the state is known."""
        n = self._slopes.shape[-1]
        D = np.zeros((5, n, n))
        D[1:] = self._slopes[2] * self._unit
        for k, F in enumerate(self._F[1:]):
            D[k + 2] += F.dot(D[k : k + 2].reshape(2 * n, n))
        return self._growth.dot(D[1:].reshape(4, n * n)).reshape(2 * n, n)


STEPS = {"rk4": RungeKutta, "step": SemiImplicit}


class Choice(NamedTuple):
    """Prediction of a sample: a name of `STEPS`, and the number of its steps."""

    integrator: str
    substeps: int


def chosen(model: Model, dt: float, integrator: str | None, substeps: int | None) -> Choice:
    """Return the given integrator and substeps, or ones that follow the friction of the body.

    Steps of Runge and Kutta no longer than the time in which friction acts, if not too many are
    needed; else some steps with friction taken implicitly.
    """
    rate = model.friction_rate.rate
    decay, cause = rate * dt, model.friction_rate.cause
    if integrator is None:
        near = decay <= (MOST["rk4"] if substeps is None else MOST_RATE_STEP * substeps)
        integrator = "rk4" if near and not model.free_base else "step"
    if substeps is None:
        fine = max(1, min(MOST[integrator], math.ceil(decay / FINE[integrator])))
        if integrator == "rk4":
            advice = "give integrator='step'"
            fine = max(fine, friction.substeps(rate, cause, dt, integrator, advice))
        return Choice(integrator, fine)
    if integrator == "rk4" and decay > MOST_RATE_STEP * substeps:
        raise StateError(
            f"rk4 with substeps = {substeps} is unstable for {cause}, whose fastest rate is "
            f"{rate:.3g} 1/s: give substeps = {math.ceil(decay / MOST_RATE_STEP)} or more, or "
            "integrator='step', or neither"
        )
    return Choice(integrator, int(substeps))
