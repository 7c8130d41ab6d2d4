"""Filters on random bodies with viscous friction, against a truth that SciPy integrates.

The truth is moved through each sample by LSODA on the accelerations of the model, then disturbed by
just the noise that the filter assumes; so the filter is consistent if its step follows the body.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

from modurob import Model
from modurob.estimation import ekf_for_sensors
from oracles.organisms import GROUPS, random_organism

SIGMA = 0.01  # [rad, m] of the sensors
FRICTION = 0.01, 10.0  # [N m s/rad, N s/m] least and most, evenly spread in its logarithm
SPEED, SWING = 1.0, 6.0  # [rad/s, m/s] at which torques hold against friction; [rad/s] of torques
TIGHT = {"method": "LSODA", "rtol": 1e-8, "atol": 1e-10}


class Result(NamedTuple):
    """Runs of one filter.

    Attributes:
        nees: (runs,) at the end of each run.
        dof: Of each of them.
        chosen: Integrator and substeps of the filter.
        decay: Fastest rate of friction times the sample.
    """

    nees: np.ndarray
    dof: int
    chosen: tuple[str, int]
    decay: float


def body(seed: int, most: int = 5) -> Model:
    """A random body of all kinds of modules in turn, every second one on a free base."""
    rng = np.random.default_rng(seed)
    kinds = tuple(GROUPS)[seed % len(GROUPS)]
    while True:
        organism = random_organism(kinds, int(rng.integers(2, most + 1)), int(rng.integers(2**31)))
        for name in organism.modules:
            friction = float(np.exp(rng.uniform(*np.log(FRICTION))))
            organism = organism.with_parameters(name, viscous=friction)
        base = "free" if (seed // len(GROUPS)) % 2 else "fixed"
        model = organism.model("physical", base)
        if model.joint_names:
            return model


def rates(model: Model, x: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """dx/dt of x = (q, v)."""
    q, v = x[: model.nq].copy(), x[model.nq :]
    if not model.free_base:
        return np.concatenate([v, model.forward_dynamics(q, v, tau)])
    q[3:7] /= np.linalg.norm(q[3:7])
    b, s = q[3:6], q[6]
    u = v[:3] + 2 * np.cross(b, np.cross(b, v[:3]) + s * v[:3])
    turning = [*(s * v[3:6] + np.cross(b, v[3:6])) / 2, -b @ v[3:6] / 2]
    return np.concatenate([u, turning, v[6:], model.forward_dynamics(q, v, tau)])


def moved(model: Model, q: np.ndarray, v: np.ndarray, tau: np.ndarray, dt: float):
    """The state after a sample under a held torque."""
    done = solve_ivp(lambda t, x: rates(model, x, tau), (0, dt), np.append(q, v), **TIGHT)
    assert done.success
    q, v = np.split(done.y[:, -1], [model.nq])
    if model.free_base:
        q[3:7] /= np.linalg.norm(q[3:7])
    return q, v


def runs(model: Model, dt: float, count: int, samples: int, seed: int) -> Result:
    """Filters that start with as much error as they say, and follow `samples` samples."""
    rng, nees, n = np.random.default_rng(seed), [], len(model.joint_names)
    friction = np.append(np.zeros(model.nv - n), model.viscous)
    for _ in range(count):
        q = model.integrate(model.neutral(), 0.3 * rng.standard_normal(model.nv))
        v = np.zeros(model.nv)
        ekf = ekf_for_sensors(model, dt, SIGMA)
        spread = np.sqrt(np.diagonal(ekf.P)) * rng.standard_normal(2 * model.nv)
        ekf.q, ekf.v = model.integrate(q, spread[: model.nv]), v + spread[model.nv :]
        for k in range(samples):
            tau = friction * SPEED * np.sin(SWING * k * dt + np.arange(model.nv) * np.pi)
            if not model.free_base:
                tau += model.gravity_torque(q)
            q, v = moved(model, q, v, tau, dt)
            noise = np.sqrt(np.diagonal(ekf.process)) * rng.standard_normal(2 * model.nv)
            q, v = model.integrate(q, noise[: model.nv]), v + noise[model.nv :]
            ekf.predict(tau)
            ekf.correct(ekf.measure(q, v) + SIGMA * rng.standard_normal(n))
        nees.append(ekf.nees(q, v))
    chosen = ekf.integrator, ekf.substeps
    return Result(np.array(nees), 2 * model.nv, chosen, dt * model.friction_rate.rate)
