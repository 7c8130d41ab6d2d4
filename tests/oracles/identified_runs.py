"""Runs with known torques: a motion, the torques that another body needs for it, and noise."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from modurob import Model, Organism
from modurob.sim import BodyTrajectory
from oracles.pinocchio_tree import PinocchioTree

NOISE = 0.05  # of the root mean square torque of each joint
HARMONICS = 5


def motion(model: Model, duration: float, states: int, rng: np.random.Generator):
    """Times, and q, v, a of a random Fourier series, up to about 1 rad or 0.1 m."""
    t = np.linspace(0, duration, states)
    k = np.arange(1, HARMONICS + 1)
    rate = 2 * np.pi / duration * k
    size = np.where(model.prismatic, 0.05, 0.5) / k[:, None]
    A, B = rng.standard_normal((2, HARMONICS, len(model.joint_names))) * size
    s, c = np.sin(np.outer(t, rate)), np.cos(np.outer(t, rate))
    return t, s @ A + c @ B, (c * rate) @ A - (s * rate) @ B, -(s * rate**2) @ A - (c * rate**2) @ B


def pinocchio_torques(organism: Organism, model: Model, q, v, a) -> np.ndarray:
    """(N, n) inverse dynamics of a fixed organism by Pinocchio, with viscous friction."""
    tree = PinocchioTree(organism, "physical")
    at = [tree.model.joints[tree.joints[name]].idx_v for name in model.joint_names]
    rows = np.zeros((3, len(q), tree.model.nv))
    rows[:, :, at] = q, v, a
    torques = [pin.rnea(tree.model, tree.data, *state) for state in zip(*rows, strict=True)]
    return np.array(torques)[:, at] + model.viscous * v


def recorded(model: Model, t, q, v, a, tau) -> BodyTrajectory:
    """A run as if it had been recorded, accelerations included."""
    return BodyTrajectory("m0", model, model.organism, t, q, v, tau, _accelerations=lambda: a)


def noisy(tau: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Torques with noise, and its standard deviation."""
    sigma = NOISE * np.sqrt(np.mean(tau**2, axis=0))
    return tau + sigma * rng.standard_normal(tau.shape), sigma
