"""One sample ahead: the state under a held torque, with the exact Jacobians of the step taken."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modurob.model import Model


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


def semi_implicit(
    model: Model, q: np.ndarray, v: np.ndarray, tau: np.ndarray, h: float
) -> Predicted:
    """The model's own step: first order, any base."""
    A, B = model.step_derivatives(q, v, tau, h)
    return Predicted(*model.step(q, v, tau, h), A, B)


def runge_kutta(model: Model, q: np.ndarray, v: np.ndarray, tau: np.ndarray, h: float) -> Predicted:
    """Runge-Kutta's fourth-order step on a fixed base.

    Its Jacobian is that of the step itself: the variational equation ``dS/dt = F S + G`` taken
    through the same four stages is the derivative of those stages.
    """
    nv = model.nv
    x, S = np.concatenate([q, v]), np.hstack([np.eye(2 * nv), np.zeros((2 * nv, nv))])
    dx, dS = _rates(model, x, S, tau)
    total_x, total_S = dx, dS
    for share, weight in ((0.5, 2.0), (0.5, 2.0), (1.0, 1.0)):
        dx, dS = _rates(model, x + share * h * dx, S + share * h * dS, tau)
        total_x, total_S = total_x + weight * dx, total_S + weight * dS
    x, S = x + h / 6 * total_x, S + h / 6 * total_S
    return Predicted(x[:nv], x[nv:], S[:, : 2 * nv], S[:, 2 * nv :])


def _rates(
    model: Model, x: np.ndarray, S: np.ndarray, tau: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """dx/dt, and dS/dt of its derivatives by the first state and by the torque."""
    nv = model.nv
    q, v = x[:nv], x[nv:]
    a = model.forward_dynamics(q, v, tau)
    by = model.inverse_dynamics_derivatives(q, v, a)
    # M da = d tau - (d tau/dq) dq - (d tau/dv) dv
    right = -by.dq @ S[:nv] - by.dv @ S[nv:]
    right[:, 2 * nv :] += np.eye(nv)
    return np.concatenate([v, a]), np.vstack([S[nv:], np.linalg.solve(by.da, right)])


STEPS = {"rk4": runge_kutta, "step": semi_implicit}
