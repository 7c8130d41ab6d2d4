"""Simulated body of a balancing run: geared drives, stops, joints that are stuck."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from modurob.checks import not_negative, positive
from modurob.errors import StateError
from modurob.model import Model
from modurob.stepping import LinearStops

STOPS = LinearStops(stiffness=20.0, damping=0.1)
STUCK_FRICTION = 1e9  # [N m s/rad, N s/m] of a joint that does not move whatever happens


@dataclass(frozen=True)
class GearedDrive:
    """A geared motor, the same in all joints.

    moll2006 does not state the friction of its drives; the PID gains alone damp next to nothing.

    Attributes:
        friction: Viscous friction of motor and gear. [N m s/rad, N s/m]
        torque: Largest torque; infinite for any. [N m, N]
    """

    friction: float = 0.3
    torque: float = 6.0

    def servo(
        self, stiffness: float, goal: np.ndarray, rate: np.ndarray, q: np.ndarray
    ) -> np.ndarray:
        """(joints,) torques that hold joints at q at a goal that moves at a rate. [N m, N]"""
        wanted = stiffness * (goal - q) + self.friction * rate
        return np.minimum(np.maximum(wanted, -self.torque), self.torque)  # faster than np.clip

    def __post_init__(self) -> None:
        not_negative("the drives' friction", self.friction, "N m s/rad")
        if not (isinstance(self.torque, float) and self.torque == math.inf):
            positive("the drives' torque", self.torque, "N m")


def with_drives(model: Model, drive: GearedDrive, stuck: np.ndarray) -> Model:
    """Return a model with the friction of its drives.

    Args:
        stuck: (joints,) which joints do not move.
    """
    if not isinstance(drive, GearedDrive):
        raise StateError(f"drive is a GearedDrive, got {drive!r}")
    viscous = model.viscous + drive.friction + np.where(stuck, STUCK_FRICTION, 0.0)
    return replace(model, viscous=viscous, organism=None, options=None)
