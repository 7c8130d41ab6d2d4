"""One sample of a 1 kHz control loop: an EKF's correction, computed torque, an EKF's prediction.

The same loop is written with modurob, and with Pinocchio's dynamics and derivatives and filterpy's
filter. Both integrate with Runge and Kutta's fourth-order step and its exact Jacobian, and correct
in Joseph form. They start alike and see the same measurements; before anything is timed, their
estimates and torques are compared after all samples. In the timed rounds they take turns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
from filterpy.kalman import ExtendedKalmanFilter

from benchmarks.bodies import grid_tree
from benchmarks.peers import depth_first, pinocchio_model
from benchmarks.simulation import fastest
from modurob import Model, examples
from modurob.control import ComputedTorque
from modurob.estimation import Ekf
from modurob.reference import Reference

SAMPLES, STEP = 40, 1e-3  # of a timed run: short enough that some are not disturbed; [s]
ROUNDS, QUICK_ROUNDS = 500, 60
SIGMA, Q_VARIANCES, P_FIRST = 1e-3, (1e-10, 1e-6), 1e-4
K0, K1 = 100.0, 20.0  # [1/s^2, 1/s]
SAME = 1e-9  # of the largest number: rounding of forty samples


class Task:
    """What the joints shall do, and what sensors say meanwhile."""

    def __init__(self, model: Model) -> None:
        rng, n = np.random.default_rng(0), model.nv
        swing, phase = 0.3 * rng.uniform(-1, 1, n), rng.uniform(0, 6, n)
        self.aims = [
            Reference(
                swing * np.sin(3 * t + phase),
                3 * swing * np.cos(3 * t + phase),
                -9 * swing * np.sin(3 * t + phase),
            )
            for t in STEP * np.arange(SAMPLES)
        ]
        self.q, self.v = self.aims[0].q, self.aims[0].v
        self.y = [aim.q + SIGMA * rng.standard_normal(n) for aim in self.aims]


class Ours:
    """The loop in modurob."""

    def __init__(self, model: Model, task: Task) -> None:
        self.task, n = task, model.nv
        self.law = ComputedTorque(model, K0, K1)
        self.ekf = Ekf(model, STEP, np.repeat(Q_VARIANCES, n), SIGMA**2, P=P_FIRST)
        self.P = self.ekf.P

    def run(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(2nv,) state, (2nv, 2nv) covariance and (nv,) torque in the end."""
        ekf, law, task = self.ekf, self.law, self.task
        ekf.q, ekf.v, ekf.P, tau = task.q, task.v, self.P, task.q
        for k, (aim, y) in enumerate(zip(task.aims, task.y, strict=True)):
            ekf.correct(y)
            tau = law.command(k * STEP, ekf.q, ekf.v, aim)
            ekf.predict(tau)
        return np.append(ekf.q, ekf.v), ekf.P, tau


class Filter(ExtendedKalmanFilter):
    """filterpy's filter, with a step of Runge and Kutta on Pinocchio's accelerations."""

    def __init__(self, model: pin.Model) -> None:
        n = self.n = model.nv
        super().__init__(2 * n, n)
        self.model, self.data = model, model.createData()
        self.Q, self.R = np.diag(np.repeat(Q_VARIANCES, n)), SIGMA**2 * np.eye(n)
        self.H, self.stage, self.unit = np.eye(n, 2 * n), np.zeros((2 * n, 2 * n)), np.eye(2 * n)
        self.stage[:n, n:] = np.eye(n)

    def rates(self, x: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """dx/dt and its derivative by x; the matrix is overwritten by the next call."""
        n, data = self.n, self.data
        pin.computeABADerivatives(self.model, data, x[:n], x[n:], tau)
        self.stage[n:, :n], self.stage[n:, n:] = data.ddq_dq, data.ddq_dv
        return np.concatenate([x[n:], data.ddq]), self.stage

    def predict_x(self, u: Any = 0) -> None:
        """State and F one step ahead under the torque u."""
        x = self.x
        dx, F = self.rates(x, u)
        dS = F.copy()
        total, slopes = dx.copy(), dS.copy()
        for share, weight in ((0.5, 2.0), (0.5, 2.0), (1.0, 1.0)):
            dx, F = self.rates(x + (share * STEP) * dx, u)
            dS = F + (share * STEP) * F.dot(dS)
            total += weight * dx
            slopes += weight * dS
        self.x = x + (STEP / 6) * total
        self.F = self.unit + (STEP / 6) * slopes


class Theirs:
    """The loop with Pinocchio and filterpy, joints in Pinocchio's order."""

    def __init__(self, model: Model, task: Task) -> None:
        self.order = depth_first(model)
        self.model = pinocchio_model(model, self.order)
        self.data = self.model.createData()
        self.filter, n = Filter(self.model), model.nv
        self.aims = [Reference(*(part[self.order] for part in aim)) for aim in task.aims]
        self.y = [y[self.order] for y in task.y]
        self.x = np.append(self.aims[0].q, self.aims[0].v)
        self.back = np.argsort(self.order)
        self.P = P_FIRST * np.eye(2 * n)

    def run(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(2nv,) state, (2nv, 2nv) covariance and (nv,) torque in the end."""
        ekf, n, H = self.filter, self.filter.n, self.filter.H
        ekf.x, ekf.P, tau = self.x, self.P, self.x
        for aim, y in zip(self.aims, self.y, strict=True):
            ekf.update(y, lambda x: H, lambda x: x[:n])
            q, v = ekf.x[:n], ekf.x[n:]
            a = aim.a + K0 * (aim.q - q) + K1 * (aim.v - v)
            tau = pin.rnea(self.model, self.data, q, v, a)
            ekf.predict(tau)
        both = np.append(self.back, n + self.back)
        return ekf.x[both], ekf.P[np.ix_(both, both)], tau[self.back]


def compared(model: Model, quick: bool) -> dict[str, Any]:
    """Microseconds of a sample, side by side."""
    task = Task(model)
    loops = {
        "modurob": Ours(model, task),
        "modurob, compiled": Ours(model.compile(), task),
        "Pinocchio and filterpy": Theirs(model, task),
    }
    *ours, theirs = (loop.run() for loop in loops.values())
    for found in ours:
        for mine, other in zip(found, theirs, strict=True):
            assert np.abs(mine - other).max() < SAME * np.abs(other).max()
    work: dict[str, Callable[[], Any]] = {name: loop.run for name, loop in loops.items()}
    found = fastest(work, QUICK_ROUNDS if quick else ROUNDS)
    us = {name: 1e6 * seconds / SAMPLES for name, seconds in found.items()}
    peer = us["Pinocchio and filterpy"]
    return {
        "microseconds": us,
        "times_faster": {name: peer / us[name] for name in us if "modurob" in name},
    }


def run(quick: bool) -> dict[str, Any]:
    """Measure and print."""
    results = {}
    for name, model in {"crab": examples.crab().model(), "grid 20": grid_tree(20).model()}.items():
        results[f"{name}, {model.nv} joints"] = row = compared(model, quick)
        for loop, us in row["microseconds"].items():
            times = row["times_faster"].get(loop)
            ratio = "" if times is None else f"  {times:.1f}x"
            where = f"{name:<8} {model.nv:>3} joints: {loop:<24}"
            print(f"{where} {us:7.1f} us a sample{ratio}", flush=True)
    return results
