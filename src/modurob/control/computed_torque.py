"""Computed torque: the error of each joint follows a chosen linear equation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.control import gains
from modurob.control.designed import DesignedLaw
from modurob.control.laws import register
from modurob.control.linearizing import Linearizing
from modurob.model import Model
from modurob.reference import Reference


@register(
    "computed-torque",
    "linear error dynamics; for motions, with a good model",
    k0="1/s^2",
    k1="1/s",
    settling_time="s",
    damping="",
)
class ComputedTorque(DesignedLaw, Linearizing):
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
        chosen = self._choose_gains({"k0": k0, "k1": k1}, settling_time, damping=damping)
        self.k0, self.k1 = gains.gain("k0", chosen[0], model), gains.gain("k1", chosen[1], model)

    def _acceleration(self, t: float, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        e, rate = self._errors(q, v, aim)
        return aim.a + gains.applied(self.k0, e) + gains.applied(self.k1, rate)

    def _gains(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        k0, k1 = gains.as_matrix(self.k0), gains.as_matrix(self.k1)
        return -k0, -k1, np.zeros((len(k0), 0))

    def error_matrix(self) -> np.ndarray:
        """(2n, 2n) A of ``d(e, e')/dt = A (e, e')``."""
        n, (by_e, by_rate, _) = len(self.k0), self._gains()
        return np.block([[np.zeros((n, n)), np.eye(n)], [by_e, by_rate]])
