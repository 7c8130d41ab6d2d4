"""One sample ahead: the state under a held torque, with the exact Jacobians of the step taken."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from modurob import friction
from modurob.dynamics import step_jacobians, step_slopes, stepped_state, stepped_velocity
from modurob.errors import StateError
from modurob.friction import MOST_RATE_STEP, is_implicit
from modurob.model import Model

SHARES = (0.5, 0.5, 1.0)  # of a step, from each stage of Runge and Kutta to the next
MOST = {"rk4": 32, "step": 8}  # steps of a sample by default: some two milliseconds of computing
FINE = {"rk4": 1.0, "step": 0.25}  # friction's rate times a step: decays are right to 1 and 3 %
WEIGHTS = np.array([1.0, 2.0, 2.0, 1.0]) / 6


class Predicted(NamedTuple):
    """A state one step ahead.

    Attributes:
        q, v: (nq,), (nv,) the state.
        A: (2nv, 2nv) by the state before, in the tangent space of a free base.
        B: (2nv, nv) by the torque.
    """

    q: np.ndarray
    v: np.ndarray
    A: np.ndarray
    B: np.ndarray


class SemiImplicit:
    """The model's own step of h seconds: first order, any base, any friction."""

    def __init__(self, model: Model, h: float) -> None:
        self._model, self._h = model, h
        if not is_implicit(model, h):  # quicker than the functions below, and the same
            self._forward = model.prepare("forward_dynamics")
            self._slopes = model.prepare("forward_dynamics_derivatives")

    def __call__(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> Predicted:
        model, h = self._model, self._h
        if is_implicit(model, h):
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

    Its Jacobian is that of the step itself: the variational equation ``dS/dt = F S + G`` taken
    through the same four stages is the derivative of those stages. All stages are linearized in
    one call, once their states are known.

    Memory and views of it are made once, and arithmetic is on flat arrays: for a few joints
    everything else takes longer than the arithmetic.
    """

    def __init__(self, model: Model, h: float) -> None:
        n = self._nv = model.nv
        self._forward = model.prepare("forward_dynamics")
        self._slopes = model.prepare("forward_dynamics_derivatives", states=4)
        stages = np.zeros((4, 3 * n))  # q, v, a: a state, and overlapping it, its rate
        parts = stages.reshape(4, 3, n)
        self._start, self._rates = stages[0, : 2 * n], stages[:, n:]
        self._last = tuple(parts[3])
        self._change = np.empty(2 * n)
        self._stages = [
            (*parts[k], np.array(share * h), stages[k, n:], stages[k + 1, : 2 * n])
            for k, share in enumerate(SHARES)
        ]
        self._parts, self._rows = parts.transpose(1, 0, 2), np.zeros((4, 4, n))  # and tau
        self._weights = h * WEIGHTS
        memory = np.zeros((7, 2 * n, 3 * n))
        FG, rates = memory[3::-1], memory[3:]  # [F, G] and dS/dt of each stage: alike in the first
        FG[:, :n, n : 2 * n] = np.eye(n)
        self._slots = [FG[:, n:, k * n : (k + 1) * n] for k in range(3)]
        self._S_rates, self._shape = rates.reshape(4, -1), (2 * n, 3 * n)
        self._links = [
            (FG[k + 1, :, : 2 * n], rates[k], rates[k + 1], self._S_rates[k + 1],
             np.array(share * h), FG[k + 1].ravel())
            for k, share in enumerate(SHARES)
        ]  # fmt: skip
        self._unit = np.eye(2 * n, 3 * n).ravel()

    def __call__(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> Predicted:
        n, start, change, forward = self._nv, self._start, self._change, self._forward
        start[:n], start[n:] = q, v
        for here, speed, a, share, rate, after in self._stages:
            a[:] = forward(here, speed, tau)
            np.multiply(rate, share, change)
            np.add(start, change, after)
        here, speed, a = self._last
        a[:] = forward(here, speed, tau)
        x = self._weights.dot(self._rates)
        x += start
        S = self._sensitivity(tau)
        return Predicted(x[:n], x[n:], S[:, : 2 * n], S[:, 2 * n :])

    def _sensitivity(self, tau: np.ndarray) -> np.ndarray:
        """(2nv, 3nv) [A, B], from the slopes of the accelerations in each stage."""
        rows = self._rows
        rows[:3], rows[3] = self._parts, tau
        for slot, slope in zip(self._slots, self._slopes(rows[0], rows[1], rows[3]), strict=True):
            slot[:] = slope
        for F, rate, after, flat, share, FG in self._links:  # F (S + share dS/dt) + G
            np.dot(F, rate, after)
            np.multiply(flat, share, flat)
            np.add(flat, FG, flat)
        S = self._weights.dot(self._S_rates)
        S += self._unit
        return S.reshape(self._shape)


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
