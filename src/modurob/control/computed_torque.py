"""Computed torque: each joint's error follows a linear equation of one's choice."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.control import checks, gains
from modurob.control.linearizing import Linearizing
from modurob.errors import StateError
from modurob.model import Model
from modurob.reference import Reference


class ComputedTorque(Linearizing):
    """``tau = M (a_d - K0 e - K1 e') + C v + N + friction`` with ``e = q - q_d``.

    The error follows ``e'' + K1 e' + K0 e = 0``.

    Args:
        model: The body.
        k0, k1: One number, one for each joint, or (n, n) matrices. [1/s^2, 1/s]
        settling_time, damping: Instead of gains; see `gains.from_settling_time`. 1 s and 1 if
            nothing is given. [s]
        options: See `Controller`.
    """

    name = "computed torque"
    claim = "the error follows e'' + K1 e' + K0 e = 0 and goes to zero"

    def __init__(
        self,
        model: Model,
        k0: ArrayLike | None = None,
        k1: ArrayLike | None = None,
        *,
        settling_time: float | None = None,
        damping: float = gains.DAMPING,
        **options: Any,
    ) -> None:
        super().__init__(model, **options)
        given = k0 is not None, k1 is not None
        if given[0] != given[1] or (given[0] and settling_time is not None):
            raise StateError("give k0 and k1, or a settling_time, or nothing")
        self._design: tuple[float, float] | None = None
        if k0 is None or k1 is None:
            time = gains.SETTLING_TIME if settling_time is None else settling_time
            k0, k1 = gains.from_settling_time(time, damping)
            self._design = (time, damping)
        self._typical |= {"k0": checks.typical(k0), "k1": checks.typical(k1)}
        self.k0, self.k1 = checks.gain("k0", k0, model), checks.gain("k1", k1, model)

    def _acceleration(self, t: float, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        e, rate = self._errors(q, v, aim)
        return aim.a + checks.applied(self.k0, e) + checks.applied(self.k1, rate)

    def _gains(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        k0, k1 = checks.as_matrix(self.k0), checks.as_matrix(self.k1)
        return -k0, -k1, np.zeros((len(k0), 0))

    def error_matrix(self) -> np.ndarray:
        """(2n, 2n) A of ``d(e, e')/dt = A (e, e')``."""
        n = len(self.k0)
        upper = np.hstack([np.zeros((n, n)), np.eye(n)])
        return np.vstack([upper, np.hstack([-checks.as_matrix(k) for k in (self.k0, self.k1)])])

    def _settings(self, model: Model) -> dict[str, Any]:
        common = super()._settings(model)
        if self._design is not None:
            return common | dict(zip(("settling_time", "damping"), self._design, strict=True))
        return common | {
            name: checks.carried(getattr(self, name), self.model, model, self._typical[name])
            for name in ("k0", "k1")
        }
