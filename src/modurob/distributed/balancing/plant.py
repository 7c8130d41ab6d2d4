"""The simulated body: rigid-body dynamics, geared drives and stops, one millisecond at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from modurob import friction
from modurob.checks import not_negative, positive
from modurob.errors import StateError
from modurob.model import Model

STOP_STIFFNESS, STOP_DAMPING = 20.0, 0.1  # [N m/rad], [N m s/rad] beyond a joint's limit


@dataclass(frozen=True)
class Drive:
    """A geared motor, the same in all joints.

    moll2006 does not tell the friction of its drives; the PID gains alone damp next to nothing.

    Attributes:
        friction: Viscous friction of motor and gear. [N m s/rad, N s/m]
        torque: The most it can give. [N m, N]
    """

    friction: float = 0.3
    torque: float = 6.0

    def __post_init__(self) -> None:
        not_negative("the drives' friction", self.friction, "N m s/rad")
        positive("the drives' torque", self.torque, "N m")


class Plant:
    """A model that moves by semi-implicit Euler steps, friction and stops taken implicitly.

    The friction of a geared drive stops a light module within microseconds; taken explicitly it
    would need steps as short.

    Args:
        model: With a fixed base.
        drive: Of each joint.
        stuck: (joints,) joints that do not move whatever happens.
    """

    def __init__(self, model: Model, drive: Drive, stuck: np.ndarray) -> None:
        if model.free_base:
            raise StateError("balancing needs a fixed base: the root stands on the ground")
        self.model, self.drive, self._stuck = model, drive, stuck
        # not compile(): a second or two for each tree, to save microseconds of a step
        self._mass_matrix = model.prepare("mass_matrix")
        self._inverse_dynamics = model.prepare("inverse_dynamics")
        self._rest = np.zeros(model.nv)
        self.friction = drive.friction + np.zeros(model.nv)

    def step(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, dt: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """The state after a step under drive torques `tau`."""
        model = self.model
        beyond = q - np.clip(q, model.lower, model.upper)
        bias = self._inverse_dynamics(q, v, self._rest) - friction.force(model, v)
        A = self._mass_matrix(q).copy()
        right = A @ v + dt * (tau - STOP_STIFFNESS * beyond - bias)
        implicit = dt * (self.friction + model.viscous)
        implicit += np.where(beyond != 0, dt * STOP_DAMPING + dt * dt * STOP_STIFFNESS, 0.0)
        implicit += np.where(self._stuck, 1e6, 0.0)
        A.flat[:: len(q) + 1] += implicit
        v = friction.velocity(A, right, dt * model.coulomb)
        if not np.isfinite(v).all():
            raise StateError("the motion diverged: lower the gains or take more friction")
        return q + dt * v, v
