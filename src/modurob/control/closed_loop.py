"""The closed loop of a law and its model: linear about a set point, and rehearsed from a state."""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np

from modurob.control.controller import Controller

POINTS = 800  # steps of a rehearsal of a law without a clock: 100 a time constant
MOST = 20000  # steps of a rehearsal at most; a longer one is cut


class Linear(NamedTuple):
    """Small deviations (q, v, memory, late torques) of the closed loop from a set point.

    Attributes:
        A: Of ``dx/dt = A x``, or of ``x+ = A x`` with a sample time.
        eigenvalues: Of A.
        rate: Slowest decay, negative when deviations grow. [1/s]
    """

    A: np.ndarray
    eigenvalues: np.ndarray
    rate: float


def linearized(law: Controller, at: np.ndarray) -> Linear:
    """The closed loop close to a set point (nq,), from exact derivatives; joints only."""
    model, n, skip = law.model, len(law.model.joint_names), law._skip
    rest = np.zeros(model.nv)
    by = model.forward_dynamics_derivatives(at, rest, law._holding(at))
    k = law.slopes(at, rest, at)
    A = np.zeros((2 * n, 2 * n))
    A[:n, n:] = np.eye(n)
    A[n:] = np.hstack([by.dq[skip:, skip:], by.dv[skip:, skip:]])
    B = np.vstack([np.zeros((n, n)), by.dtau[skip:, skip:]])
    K = np.hstack([k.dq[skip:, skip:], k.dv[skip:, skip:]])
    if law.sample_time is None:
        closed = A + B @ K
        values = np.linalg.eigvals(closed)
        return Linear(closed, values, float(-values.real.max(initial=-np.inf)))
    F, G = law.memory(law.sample_time)
    closed = _sampled(A, B, K, k.dmemory[skip:], F, G, law.sample_time, law.delay)
    values = np.linalg.eigvals(closed)
    with np.errstate(divide="ignore"):  # a deadbeat loop has eigenvalues 0
        rate = -np.log(np.abs(values).max(initial=0.0)) / law.sample_time
    return Linear(closed, values, float(rate))


def _sampled(
    A: np.ndarray,
    B: np.ndarray,
    K: np.ndarray,
    K_m: np.ndarray,
    F: np.ndarray,
    G: np.ndarray,
    dt: float,
    delay: bool,
) -> np.ndarray:
    """The torque is held between samples; with a delay, the one before is."""
    from scipy.linalg import expm

    n, k = B.shape[1], len(F)
    both = np.zeros((3 * n, 3 * n))
    both[: 2 * n] = np.hstack([A, B])
    held = expm(both * dt)[: 2 * n]
    size = 2 * n + k
    closed = np.zeros((size + (n if delay else 0),) * 2)
    closed[: 2 * n, : 2 * n] = held[:, : 2 * n]
    closed[2 * n : size, :size] = np.hstack([G, F])
    torque = np.hstack([K + K_m @ G, K_m @ F])
    if delay:
        closed[: 2 * n, size:] = held[:, 2 * n :]
        closed[size:, :size] = torque
    else:
        closed[: 2 * n, :size] += held[:, 2 * n :] @ torque
    return closed


class Rehearsal(NamedTuple):
    """What would happen without torque limits.

    Attributes:
        t: (N,) [s]
        q, v: (N, nq), (N, nv)
        tau: (N, nv) as wanted. [N m, N]
        diverged: Whether a number ran away, and where it was cut.
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    diverged: bool


def rehearsed(
    law: Controller, at: np.ndarray, q: np.ndarray, v: np.ndarray, duration: float
) -> Rehearsal:
    """Run a copy of a law without limits from a state to a set point (nq,)."""
    twin = copy.copy(law)
    twin._limited, twin._carried = False, False
    twin.reset(0.0, q, v)
    clock = law.sample_time
    dt = duration / POINTS if clock is None else clock
    steps = min(MOST, max(1, round(duration / dt)))
    rows: list[tuple[float, np.ndarray, np.ndarray, np.ndarray]] = []
    q, v, t = q.copy(), v.copy(), 0.0
    for k in range(steps + 1):
        tau = twin.command(t, q, v, at)
        rows.append((t, q, v, tau))
        q, v = _step(twin, at, t, q, v, dt, tau if clock is not None else None)
        t = (k + 1) * dt
        if not (np.isfinite(q).all() and np.abs(v).max(initial=0.0) < 1e6):  # [rad/s] lost
            return _rehearsal(rows, diverged=True)
    return _rehearsal(rows, diverged=False)


def _rehearsal(
    rows: list[tuple[float, np.ndarray, np.ndarray, np.ndarray]], diverged: bool
) -> Rehearsal:
    t, q, v, tau = (np.array(column) for column in zip(*rows, strict=True))
    return Rehearsal(t, q, v, tau, diverged)


def _step(
    law: Controller,
    at: np.ndarray,
    t: float,
    q: np.ndarray,
    v: np.ndarray,
    dt: float,
    tau: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Runge-Kutta's fourth-order step; a free base moves on its manifold to the same order.

    Munthe-Kaas would need one more commutator for order four; without it the base's pose is second
    order, and torques depend on it through gravity only, which a free base does not feel.
    """
    model = law.model

    def rates(x: np.ndarray, y: np.ndarray, s: float) -> np.ndarray:
        force = law.command(s, x, y, at) if tau is None else tau
        return model.forward_dynamics(x, y, force)

    a1 = rates(q, v, t)
    v2 = v + dt / 2 * a1
    a2 = rates(model.integrate(q, dt / 2 * v), v2, t + dt / 2)
    v3 = v + dt / 2 * a2
    a3 = rates(model.integrate(q, dt / 2 * v2), v3, t + dt / 2)
    v4 = v + dt * a3
    a4 = rates(model.integrate(q, dt * v3), v4, t + dt)
    moved = dt / 6 * (v + 2 * v2 + 2 * v3 + v4)
    return model.integrate(q, moved), v + dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
