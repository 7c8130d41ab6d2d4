"""Base of laws on the motions of links; their derivatives need no formula."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob import friction
from modurob.control.controller import Controller, Slopes
from modurob.control.pseudo_inertia import LinkKinematics, PoseDerivatives
from modurob.model import Model
from modurob.reference import Reference
from modurob.spatial.inertia import pseudo_inertia

# f'(0) = sum of w_k f(k h) / h; the error is h^8 / 630 times the ninth derivative
WEIGHTS = np.array([4 / 5, -1 / 5, 4 / 105, -1 / 280])
STEP = 1e-2  # [rad, m; rad/s, m/s] truncation and rounding meet near 1e-12


class LinkLaw(Controller):
    """A law that cancels friction: ``tau = smooth(q, v) + friction(v)``.

    Friction is differentiated exactly, because dry friction is steep; the rest by differences of
    order eight, in one call for a batch of states.
    """

    cancels_gravity = True

    def __init__(self, model: Model, **options: Any) -> None:
        super().__init__(model, **options)
        values, axes = np.linalg.eigh(pseudo_inertia(model.mass, model.center, model.inertia))
        self._root = (axes * np.sqrt(np.maximum(values, 0.0))[:, None]) @ np.swapaxes(axes, -1, -2)

    def _bind(self) -> None:
        super()._bind()
        self._links = LinkKinematics(self.model)

    @property
    def _eliminated(self) -> tuple[np.ndarray, np.ndarray]:
        return self._idle, self._idle

    @abstractmethod
    def _smooth(self, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        """(..., nv) torque without friction, the memory held."""

    def _torque(self, t: float, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        return self._with_friction(self._smooth(q, v, aim), v)

    def _with_friction(self, tau: np.ndarray, v: np.ndarray) -> np.ndarray:
        tau = tau + friction.force(self.model, v)
        tau[..., self._idle] = 0.0
        return tau

    def _pseudo_inertias(self) -> np.ndarray:
        """(..., links, 4, 4) that the law believes in."""
        return self._root @ self._root

    def _motions(
        self, q: np.ndarray, v: np.ndarray, w: np.ndarray, a: np.ndarray
    ) -> PoseDerivatives:
        """Motions with reference velocities w and accelerations a (..., nv) of joints with a motor.

        The others have their own velocity, and the acceleration that results.
        """
        idle = self._idle
        if len(idle):
            w, a = w.copy(), a.copy()
            w[..., idle], a[..., idle] = v[..., idle], 0.0
            load = self._links.motions(q, v, w, a).forces(self._pseudo_inertias())
            load = (load + friction.force(self.model, v))[..., idle, None]
            M_uu = self._mass(q)[..., idle[:, None], idle]
            a[..., idle] = -np.linalg.solve(M_uu, load)[..., 0]
        return self._links.motions(q, v, w, a)

    def slopes(self, q: ArrayLike, v: ArrayLike, reference: Any = None) -> Slopes:
        """Derivatives of the torque by the state, to ten digits; see `Controller.slopes`."""
        self._demand_one("a derivative")
        q, v = self._state(q, v)
        if not self.model.nv:
            return Slopes(*(np.zeros((0, 0)) for _ in range(3)))
        aim, nv = self._aim(reference, q), self.model.nv
        ways = STEP * np.concatenate([np.arange(1, 5), -np.arange(1, 5)])
        dx = (ways[:, None, None] * np.eye(2 * nv)).reshape(-1, 2 * nv)
        tau = self._smooth(self.model.integrate(q, dx[:, :nv]), v + dx[:, nv:], aim)
        weights = np.concatenate([WEIGHTS, -WEIGHTS]) / STEP
        found = np.einsum("w,wjk->kj", weights, tau.reshape(len(ways), -1, nv))
        dq, dv = found[:, :nv], found[:, nv:] + np.diag(friction.slope(self.model, v))
        return self._driven_only(dq, dv, np.zeros((nv, 0)))
