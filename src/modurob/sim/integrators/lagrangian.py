"""Derivatives of a body's Lagrangian from the compiled kernels, one state at a time."""

from __future__ import annotations

import dataclasses

import numpy as np

from modurob import friction
from modurob.sim.motion import Motion


class Lagrangian:
    """M(q), d(M v)/dq and dL/dq with the forces that act from outside."""

    def __init__(self, motion: Motion) -> None:
        self.motion, model = motion, motion.model
        self._bare = dataclasses.replace(
            model,
            gravity=np.zeros(3),
            viscous=np.zeros_like(model.viscous),
            coulomb=np.zeros_like(model.coulomb),
        )
        self._rest = np.zeros(model.nv)
        self._routine = self._bare.dynamics.tier.routine("inverse_dynamics_derivatives")
        self._out = self._routine.empty()
        self._weight = model.prepare("inverse_dynamics")
        self._rough = bool(model.viscous.any() or model.coulomb.any())
        self._driven = motion.drive is not None or motion.stops is not None
        self.mass = self._bare.prepare("mass_matrix")

    def slopes(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """M(q), and D = d(M v)/dq at constant v; the next call overwrites both.

        Without gravity and at rest, inverse dynamics is M a: its derivatives by a and by q are
        these, with v in the place of a.
        """
        if self._routine.single(q, self._rest, v, self._out) is None:
            self._out[:] = self._bare.inverse_dynamics_derivatives(q, self._rest, v)
        return self._out[2], self._out[0]

    @property
    def is_driven(self) -> bool:
        """Whether forces depend on more than the joints and the base's rotation."""
        return self._driven

    @property
    def is_kinked(self) -> bool:
        """Whether forces may bend sharply: dry friction, stops, whatever a drive does."""
        return self._driven or bool(self.motion.model.coulomb.any())

    def bias(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(nv,) what an acceleration of zero takes: D v - dL/dq less the forces from outside.

        On a fixed base only; the next call may overwrite it.
        """
        if self.motion.external:
            pushed = self.motion.wrenches(t)
            found = self.motion.model.inverse_dynamics(q, v, self._rest, pushed)
        else:
            found = self._weight(q, v, self._rest)
        if self._driven:
            found -= self.motion.force(t, q, v)
        return found

    def forces(
        self, t: float, q: np.ndarray, v: np.ndarray, D: np.ndarray, seen: np.ndarray | None = None
    ) -> np.ndarray:
        """(nv,) dL/dq = v^T D/2 - gravity, with the forces from outside.

        Args:
            seen: Velocity that the drive sees; v by default.
        """
        G = np.dot(v, D)
        G *= 0.5
        if self.motion.external:
            pushed = self.motion.wrenches(t)
            G -= self.motion.model.inverse_dynamics(q, self._rest, self._rest, pushed)
        else:
            G -= self._weight(q, self._rest, self._rest)
        if self._driven:
            G += self.motion.force(t, q, v if seen is None else seen)
        if self._rough:
            G -= friction.force(self.motion.model, v)
        return G

    def drag(self, v: np.ndarray, slope: np.ndarray, half: float) -> None:
        """Add what friction adds to the derivative of a step: near rest it is stiff."""
        if self._rough:
            slope.flat[:: len(slope) + 1] += half * friction.slope(self.motion.model, v)
