"""Feedback linearization: the torque for the accelerations that a law asks for.

``tau = M(q) a + C v + N + friction`` makes every joint a double integrator. With joints that have
no motor (or a free base) the others are linearized and the rest follows its own equations: the zero
dynamics. Their acceleration comes from the rows that have no torque,
``M_uu a_u = -(M_ua a_a + C v + N + friction)_u``.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.control.controller import Controller, Slopes
from modurob.reference import Reference


class Linearizing(Controller):
    """Base of all laws that ask for accelerations."""

    scope = "global"

    @abstractmethod
    def _acceleration(self, t: float, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        """(..., n) what the joints shall do. [rad/s^2, m/s^2]"""

    @abstractmethod
    def _gains(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(n, n), (n, n), (n, k) derivatives of that acceleration by q, v and the memory."""

    def _torque(self, t: float, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        return self._forces(q, v, self._acceleration(t, q, v, aim))

    def _forces(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """(..., nv) torque for accelerations of the joints that have a motor."""
        idle = self._idle
        if not len(idle):
            return self._inverse(q, v, a)
        tau = self._inverse(q, v, self._completed(q, v, a)).copy()
        tau[..., idle] = 0.0
        return tau

    def _completed(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """(..., nv) accelerations: of the joints as wanted, of the rest as it follows."""
        full, idle = np.zeros(v.shape), self._idle
        full[..., self._driven] = a[..., self._driven - self._skip]
        missing = self._inverse(q, v, full)[..., idle, None]
        M_uu = self._mass(q)[..., idle[:, None], idle]
        full[..., idle] = -np.linalg.solve(M_uu, missing)[..., 0]
        return full

    def slopes(self, q: ArrayLike, v: ArrayLike, reference: Any = None) -> Slopes:
        """Exact derivatives of the torque by the state; see `Controller.slopes`."""
        q, v = self._state(q, v)
        aim = self._aim(reference, q)
        idle = self._idle
        a = self._steady(q, v, aim)
        full = self._completed(q, v, a) if len(idle) else a
        by = self.model.inverse_dynamics_derivatives(q, v, full)
        a_q, a_v, a_m = self._joint_slopes(*self._gains())
        for wanted, direct in ((a_q, by.dq), (a_v, by.dv), (a_m, np.zeros_like(a_m))):
            wanted[idle] = 0.0
            if len(idle):  # rows without a torque stay zero: M_uu da_u = -(d tau)_u
                rest = (direct + by.da @ wanted)[idle]
                wanted[idle] = -np.linalg.solve(by.da[np.ix_(idle, idle)], rest)
        return self._driven_only(by.dq + by.da @ a_q, by.dv + by.da @ a_v, by.da @ a_m)

    def _steady(self, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        """(n,) wanted acceleration with the memory as it is."""
        return self._acceleration(0.0, q, v, aim)
