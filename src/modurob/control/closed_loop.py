"""Closed loop of a law and its model: linear about a set point, and rehearsed from a state."""

from __future__ import annotations

import copy
import dataclasses
import math
from typing import NamedTuple

import numpy as np

from modurob.blas import single_threaded
from modurob.control.controller import Controller
from modurob.control.gains import settling_factor
from modurob.errors import StateError
from modurob.friction import MOST_RATE_STEP
from modurob.stepping import RK4, EquationOfMotion, SemiImplicitEuler, StepSettings
from modurob.stepping.contact import rounded_down
from modurob.stepping.motion import Stopped

POINTS = 800  # steps of a rehearsal of a law without a clock: 100 a time constant
SLOWEST, ANGLES = 1e-4, 2000  # [rad a sample] least angle on the unit circle, and how many
BISECTIONS = 40  # to rounding, from one cell
EDGE = 1e-9  # of a delay: this close it is at the edge of stability
MOST_PARTS = 8  # of a step that friction makes stiff, in a rehearsal
MOST_LOOP_PARTS = 400  # of one that a continuous law makes stiff
ROUNDING = 1e-9  # of the fastest pole, in slow ones
GROWTH = 1e-3  # [1/s] slower growth is not refused: marginal loops scatter by rounding
MOST_HALVED = 4096  # parts of a sample time, below which gains are unstable in themselves
MOST = 20000  # steps of a rehearsal at most; a longer one is cut
MOST_STATES = 2000  # of a linear loop, late torques included: eigenvalues take seconds
LOST = 1e6  # [rad/s, m/s] faster than this a rehearsal has diverged


class Linear(NamedTuple):
    """Small deviations (q, v, memory, late torques) of the closed loop from a set point."""

    A: np.ndarray  # of ``dx/dt = A x``, or of ``x+ = A x`` with a sample time
    eigenvalues: np.ndarray  # of A
    rate: float  # slowest decay, negative when deviations grow. [1/s]


@single_threaded()
def linearized(law: Controller, at: np.ndarray, late: int = 0) -> Linear:
    """The closed loop close to a set point (nq,), from exact derivatives; joints only.

    Args:
        law, at: Law and set point.
        late: Samples by which torques come later than with the law's own delay.
    """
    if law.sample_time is None:
        A, B, K, _ = _parts(law, at)
        closed = A + B @ K
        values = np.linalg.eigvals(closed)
        return Linear(closed, values, float(-values.real.max(initial=-np.inf)))
    closed = _Held(law, at, law.sample_time).closed(round(law.delay / law.sample_time) + late)
    values = np.linalg.eigvals(closed)
    return Linear(closed, values, _decay(values, law.sample_time))


def settling_time(law: Controller, at: np.ndarray) -> float:
    """Time in which small errors settle, infinite where they do not decay. [s]

    Of the slowest pole; but not less than a loop with all poles at 0 (deadbeat) needs, which is
    one sample for each state of a joint.
    """
    near, clock = linearized(law, at), law.sample_time or 0.0
    if near.rate <= 0:
        return np.inf
    states = len(near.A) / len(law.model.joint_names)
    return max(settling_factor(1.0) / near.rate, states * clock)


def zero_dynamics(law: Controller, at: np.ndarray) -> np.ndarray:
    """(2m, 2m) A of what moves by itself while the outputs are held: (z, z')' = A (z, z').

    Small deviations of the m coordinates beside the outputs, from a set point (nq,) of rest. The
    outputs are the joints with a motor, or those of `PartialLinearization`.
    """
    rest, pick = np.zeros(law.model.nv), np.ix_(law._idle, law._resulting)
    by, m = law.model.inverse_dynamics_derivatives(at, rest, rest), len(law._idle)
    A = np.zeros((2 * m, 2 * m))
    A[:m, m:] = np.eye(m)
    A[m:] = -np.linalg.solve(by.da[pick], np.hstack([by.dq[pick], by.dv[pick]]))
    return A


def delay_margin(law: Controller, at: np.ndarray) -> float | None:
    """The longest delay with which small deviations from a set point (nq,) still decay. [s]

    Whole samples; infinite when every delay will do, None when they do not decay even without one.
    """
    if law.sample_time is None:
        raise StateError("a delay is counted in samples: give the law a sample_time")
    loop = _Held(law, at, law.sample_time)
    if _decay(np.linalg.eigvals(loop.closed(0)), law.sample_time) <= 0:
        return None
    edge = loop.critical_delay()  # where deviations stay as they are
    return np.inf if np.isinf(edge) else law.sample_time * (math.ceil(edge * (1 - EDGE)) - 1)


def _parts(
    law: Controller, at: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A and B of the joints close to a set point, and the torque's slopes by state and memory."""
    model, n, skip = law.model, len(law.model.joint_names), law._skip
    rest = np.zeros(model.nv)
    by = model.forward_dynamics_derivatives(at, rest, law._holding(at))
    k = law.slopes(at, rest, at)
    A = np.zeros((2 * n, 2 * n))
    A[:n, n:] = np.eye(n)
    A[n:] = np.hstack([by.dq[skip:, skip:], by.dv[skip:, skip:]])
    B = np.vstack([np.zeros((n, n)), by.dtau[skip:, skip:]])
    K = np.hstack([k.dq[skip:, skip:], k.dv[skip:, skip:]])
    return A, B, K, k.dmemory[skip:]


def _decay(values: np.ndarray, dt: float) -> float:
    """Slowest decay of a sampled loop with these eigenvalues. [1/s]"""
    with np.errstate(divide="ignore"):  # a deadbeat loop has eigenvalues 0
        return float(-np.log(np.abs(values).max(initial=0.0)) / dt)


def demand_stable(law: Controller) -> None:
    """Raise an error if small errors grow, without delay in the neutral pose.

    Without gravity, unless the law cancels it. The error names the pole, or the longest sample time
    with which errors decay.
    """
    if len(law._idle) > law._skip:  # what has no motor moves by itself
        return
    twin, at = copy.copy(law), law.model.neutral()
    if not law.cancels_gravity:
        none = np.zeros(3)
        twin.model = dataclasses.replace(law.model, gravity=none, organism=None, options=None)
        twin._bind()
    clock = law.sample_time
    if not np.isfinite(_parts(twin, at)[2]).all():  # gains beyond all numbers are seen in torques
        return
    if clock is None:
        values, vectors = np.linalg.eig(linearized(twin, at).A)
        rate = -np.real(values)
    else:
        good, bad = _longest(twin, at, clock)
        if good == clock:
            return
        if good:
            raise StateError(
                f"sample_time of {clock:g} s is too long for these gains: errors grow from sample "
                f"to sample; take {rounded_down(good)} s or less, or lower gains"
            )
        values, vectors = np.linalg.eig(_Held(twin, at, bad).closed(0))
        with np.errstate(divide="ignore", invalid="ignore"):  # a pole 0, or a time near 0
            rate, values = -np.log(np.abs(values)) / bad, np.log(values + 0j) / bad
    if rate.min(initial=np.inf) > -max(GROWTH, ROUNDING * np.abs(values).max(initial=0.0)):
        return
    k, n = int(rate.argmin()), len(law.model.joint_names)
    joint = law.model.joint_names[int(np.abs(vectors[:n, k]).argmax())]
    pole = f"{values[k].real:.3g}" + (f" ± {abs(values[k].imag):.3g}j" if values[k].imag else "")
    raise StateError(f"these gains are unstable: pole {pole} 1/s at '{joint}' grows; change them")


def _longest(law: Controller, at: np.ndarray, clock: float) -> tuple[float, float]:
    """Sample times: the longest up to `clock` with which errors decay (or 0), a longer one."""

    def decays(dt: float) -> bool:
        return _decay(np.linalg.eigvals(_Held(law, at, dt).closed(0)), dt) > -GROWTH

    good = clock
    while not decays(good):
        good /= 2
        if good < clock / MOST_HALVED:
            return 0.0, good
    bad = min(2 * good, clock)
    for _ in range(BISECTIONS if good < clock else 0):
        middle = (good + bad) / 2
        good, bad = (middle, bad) if decays(middle) else (good, middle)
    return good, bad


class _Held:
    """A sampled loop: the torque is held between samples, and may come some samples late."""

    def __init__(self, law: Controller, at: np.ndarray, dt: float) -> None:
        from scipy.linalg import expm

        (A, B, K, K_m), (F, G) = _parts(law, at), law.memory(dt, at)
        n = B.shape[1]
        both = np.zeros((3 * n, 3 * n))
        both[: 2 * n] = np.hstack([A, B])
        held = expm(both * dt)[: 2 * n]
        self._n, self._plant, self._push = n, held[:, : 2 * n], held[:, 2 * n :]
        self._memory = np.hstack([G, F])
        self._torque = np.hstack([K + K_m @ G, K_m @ F])

    def closed(self, late: int) -> np.ndarray:
        """One sample of (q, v, memory, late torques, the newest first)."""
        n, size = self._n, 2 * self._n + len(self._memory)
        if size + n * late > MOST_STATES:
            raise StateError(
                f"a loop of {n} joints with torques {late} samples late has {size + n * late:,} "
                f"eigenvalues, {MOST_STATES:,} are the most: take longer samples, or less delay"
            )
        closed = np.zeros((size + n * late,) * 2)
        closed[: 2 * n, : 2 * n] = self._plant
        closed[2 * n : size, :size] = self._memory
        if not late:
            closed[: 2 * n, :size] += self._push @ self._torque
            return closed
        closed[: 2 * n, size + n * (late - 1) :] = self._push
        closed[size : size + n, :size] = self._torque
        older, newer = np.arange(size + n, size + n * late), np.arange(size, size + n * (late - 1))
        closed[older, newer] = 1.0
        return closed

    def critical_delay(self) -> float:
        """The least delay, in samples, that puts an eigenvalue on the unit circle.

        There ``z^d`` is an eigenvalue of ``K (z - A)^-1 B``, whose moduli in order of size are
        continuous along the circle: where one passes 1, its angle over that of z is the delay.
        """
        size = 2 * self._n + len(self._memory)
        A, B = np.zeros((size, size)), np.zeros((size, self._n))
        A[: 2 * self._n, : 2 * self._n], B[: 2 * self._n] = self._plant, self._push
        A[2 * self._n :] = self._memory

        def gains(angle: np.ndarray) -> np.ndarray:
            """(..., n) eigenvalues in order of their moduli."""
            z = np.exp(1j * angle)[..., None, None]
            loop = self._torque @ np.linalg.solve(z * np.eye(size) - A, B + 0j)
            values = np.linalg.eigvals(loop)
            return np.take_along_axis(values, np.abs(values).argsort(axis=-1), axis=-1)

        angles, found = np.geomspace(SLOWEST, np.pi, ANGLES), np.inf
        large = np.abs(gains(angles)) > 1
        for k, rank in np.argwhere(large[1:] != large[:-1]):
            low, high = angles[k], angles[k + 1]
            for _ in range(BISECTIONS):
                middle = (low + high) / 2
                same = (np.abs(gains(middle)[rank]) > 1) == large[k, rank]
                low, high = (middle, high) if same else (low, middle)
            found = min(found, float(np.angle(gains(low)[rank]) % (2 * np.pi) / low))
        return found


class Rehearsal(NamedTuple):
    """Motion from a state, or from a batch of them."""

    t: np.ndarray  # (N,) [s]
    q: np.ndarray  # (N, ..., nq)
    v: np.ndarray  # (N, ..., nv)
    tau: np.ndarray  # (N, ..., nv) as commanded. [N m, N]
    diverged: bool  # whether a number ran away; the arrays end there


def rehearsed(
    law: Controller,
    at: np.ndarray,
    q: np.ndarray,
    v: np.ndarray,
    duration: float,
    limited: bool = False,
) -> Rehearsal:
    """Run a copy of a law from a state to a set point (nq,); or from (..., nq) to (..., n).

    Runge-Kutta while `MOST_PARTS` parts of a sample follow friction, else semi-implicit Euler.

    Args:
        law: For one state.
        at, q, v: Set point and state.
        duration: [s]
        limited: Whether the torque limits hold.
    """
    twin, clock = copy.copy(law) if q.ndim == 1 else law.batched(len(q)), law.sample_time
    twin._limited, twin._carried = law._limited and limited, False
    twin.reset(0.0, q, v)
    dt = duration / POINTS if clock is None else clock
    tau = np.zeros(v.shape)

    def drive(s: float, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return twin.command(s, x, y, at) if clock is None else tau

    parts = math.ceil(law.model.friction_rate.rate * dt / MOST_RATE_STEP)
    method = RK4 if parts <= MOST_PARTS else SemiImplicitEuler
    parts = max(1, min(parts, MOST_PARTS))
    if clock is None and method is RK4:
        fastest = max(
            np.abs(linearized(law, pose).eigenvalues).max(initial=0.0) for pose in np.atleast_2d(q)
        )
        parts = max(parts, min(MOST_LOOP_PARTS, math.ceil(fastest * dt / MOST_RATE_STEP)))
    settings = StepSettings(0.0, 0.0, dt, parts)
    stepper = method(EquationOfMotion(law.model, q.shape[:-1], drive=drive), settings)
    rows: list[tuple[float, np.ndarray, np.ndarray, np.ndarray]] = []
    diverged = False
    for k in range(min(MOST, max(1, round(duration / dt))) + 1):
        try:
            tau = twin.command(k * dt, q, v, at)
            rows.append((k * dt, q, v, tau))
            q, v = stepper.sample(k * dt, q.copy(), v.copy())
            diverged = not (np.isfinite(q).all() and np.abs(v).max(initial=0.0) < LOST)
        except (Stopped, StateError):
            diverged = True
        if diverged:
            break
    t, q, v, tau = (np.array(column) for column in zip(*rows, strict=True))
    return Rehearsal(t, q, v, tau, diverged)
