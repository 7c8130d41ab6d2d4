"""LQR on the model linearized about a set point: also for joints without a motor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import is_number, real_array
from modurob.control import gains
from modurob.control.controller import Controller, Slopes
from modurob.control.laws import register
from modurob.errors import StateError
from modurob.model import Model
from modurob.model.joint_map import JointMap
from modurob.reference import Reference

RATE = -gains.COUPLED * math.log(gains.SETTLED) / gains.SETTLING_TIME  # [1/s] of slow errors
WEIGHT = 3.0  # of errors: larger ones make light motions fast for the sample time
BALANCED = 1e-6  # [N m, N] force on a joint without a motor that still counts as rest
ROUNDING = 1e-9  # of the largest entry: a negative eigenvalue of a weight that is rounding


@register("lqr", "optimal near a set point, passive joints too", set_point="rad, m", Q="", R="")
class Lqr(Controller):
    """``tau = tau_d - K (x - x_d)``, K from SciPy's Riccati solvers, ``x = (q, v)`` of the joints.

    Minimizes the integral (sum, with a sample time) of ``x^T Q x + tau^T R tau`` for deviations
    from a set point, which must be one that motors can hold. ``tau_d`` is the torque that the
    reference itself needs, so that other set points are held as well; far from the one for which K
    was made, see the certificate.

    Args:
        model: The body.
        set_point: (n,) or (nq,) where it is linearized; the neutral pose by default.
        Q: Weight of the error: (2n,) or (2n, 2n). By default such that small errors of driven
            joints settle in one second.
        R: Weight of the torque: one number, (m,) or (m, m) for m motors. By default as large as
            suits a motion that settles in one second.
        options: See `Controller`. With `sample_time` the discrete problem is solved, its plant
            sampled exactly.
    """

    name = "LQR"
    claim = "errors vanish"
    uses_coupling = True

    def __init__(
        self,
        model: Model,
        set_point: ArrayLike | None = None,
        *,
        Q: ArrayLike | None = None,
        R: ArrayLike | None = None,
        **options: Any,
    ) -> None:
        super().__init__(model, **options)
        joints = model.neutral() if set_point is None else set_point
        at = model.neutral()
        at[self._skip_q :] = self._aim(real_array("set_point", joints), at).q
        self.set_point = at
        self._check_rest()
        n, m = len(self.torque_limit), len(self._driven)
        plant = self.linear()  # raises an error that names a singular joint
        natural = WEIGHT * np.repeat([1.0, RATE**-2], n)
        self.Q = _weight("Q", natural if Q is None else Q, 2 * n)
        self.R = _weight("R", self._stiffness() ** -2 if R is None else R, m)
        self._weights = Q, R
        self.settling_time = gains.SETTLING_TIME if Q is None and R is None else None
        self.K = np.zeros((model.nv, 2 * n))
        if m:
            self.K[self._driven] = self._solved(*plant)

    def _stiffness(self) -> np.ndarray:
        """(m,) torque per deviation that settles in a second, with friction and against gravity."""
        rest = np.zeros(self.model.nv)
        by = self.model.inverse_dynamics_derivatives(self.set_point, rest, rest)
        slope = np.abs(np.diagonal(by.dq)) + np.abs(self._gravity(self.set_point))  # here, and near
        stiffness = gains.from_settling_time()[0] * np.diagonal(by.da) + slope
        stiffness[self._skip :] += RATE * self.model.viscous
        return stiffness[self._driven]

    def linear(self) -> tuple[np.ndarray, np.ndarray]:
        """(2n, 2n), (2n, m) A and B of the joints' small deviations, motors only."""
        nv, at = self.model.nv, self.set_point
        A, B = self.model.linearize(at, np.zeros(nv), self._holding(at))
        rows = np.r_[self._skip : nv, nv + self._skip : 2 * nv]
        return A[np.ix_(rows, rows)], B[np.ix_(rows, self._driven)]

    def _solved(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """(m, 2n) the gain of the motors."""
        from scipy.linalg import expm, solve_continuous_are, solve_discrete_are

        Q, R = self.Q, self.R
        try:
            if self.sample_time is None:
                K = np.linalg.solve(R, B.T @ solve_continuous_are(A, B, Q, R))
                fading = np.linalg.eigvals(A - B @ K).real.max(initial=-np.inf) < 0
            else:
                both = np.zeros((A.shape[0] + B.shape[1],) * 2)
                both[: len(A)] = np.hstack([A, B])
                held = expm(both * self.sample_time)[: len(A)]  # zero-order hold
                A, B = held[:, : len(A)], held[:, len(A) :]
                P = solve_discrete_are(A, B, Q, R)
                K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
                fading = np.abs(np.linalg.eigvals(A - B @ K)).max(initial=0.0) < 1
        except (np.linalg.LinAlgError, ValueError):
            K, fading = np.zeros((len(R), len(A))), False
        if not fading:
            raise StateError(
                "no LQR at this set point: the motors cannot stabilize all joints, or the weights "
                "leave a motion free"
            )
        return K

    def _check_rest(self) -> None:
        if self.model.free_base or not self.passive:
            return
        load = self._gravity(self.set_point)[self._idle]
        worst = int(np.argmax(np.abs(load)))
        if abs(load[worst]) > BALANCED:
            name = self.model.joint_names[self._idle[worst]]
            raise StateError(
                f"joint '{name}' has no motor for its load of {load[worst]:.3g} N m at this set "
                "point: choose one at which it rests"
            )

    def _torque(self, t: float, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        n, (e, rate) = len(self.torque_limit), self._errors(q, v, aim)
        tau = gains.applied(self.K[:, :n], e) + gains.applied(self.K[:, n:], rate)
        if not self.model.free_base:  # what falls freely needs no torque to keep its shape
            tau[..., self._driven] += self._inverse(aim.q, aim.v, aim.a)[..., self._driven]
        return tau

    def slopes(self, q: ArrayLike, v: ArrayLike, reference: Any = None) -> Slopes:
        """Exact derivatives of the torque by the state; see `Controller.slopes`."""
        n, K = len(self.torque_limit), self.K[self._skip :]
        return self._joint_slopes(-K[:, :n], -K[:, n:], np.zeros((n, 0)))

    def _settings(self, joints: JointMap) -> dict[str, Any]:
        at = joints.carry(self.set_point[self._skip_q :], 0.0)
        common: dict[str, Any] = super()._settings(joints) | {"set_point": at}
        Q, R = self._weights
        if Q is not None:
            n = len(self.torque_limit)
            (aa, ab), (ba, bb) = (
                (self.Q[r, :n], self.Q[r, n:]) for r in (slice(n), slice(n, None))
            )
            across = [joints.carry(block, 0.0) for block in (ab, ba)]
            common["Q"] = np.block([[joints.carry(aa), across[0]], [across[1], joints.carry(bb)]])
        if is_number(R):
            common["R"] = R
        elif R is not None and len(self.R):
            common["R"] = self._carried_R(joints, common["passive"])
        return common

    def _carried_R(self, joints: JointMap, passive: list[str]) -> np.ndarray:
        """(m, m) weight of the new body's motors: the old one's, and the median for added ones."""
        motors = self._driven - self._skip
        full = np.zeros((len(self.torque_limit),) * 2)
        full[np.ix_(motors, motors)] = self.R
        full = joints.carry(full, float(np.median(np.diagonal(self.R))))
        left = [k for k, name in enumerate(joints.new.joint_names) if name not in passive]
        return full[np.ix_(left, left)]


def _weight(name: str, value: ArrayLike, size: int) -> np.ndarray:
    """(size, size) positive semidefinite weight from a number, a diagonal or a matrix."""
    array = real_array(name, value)
    if array.shape in ((), (size,)):
        array = np.diag(np.broadcast_to(array, (size,)))
    if array.shape != (size, size) or not np.allclose(array, array.T):
        raise StateError(
            f"{name} is one number, {size} numbers or a symmetric ({size}, {size}) matrix, "
            f"got shape {array.shape}"
        )
    least = float(np.linalg.eigvalsh(array).min(initial=0.0))
    if least < -ROUNDING * np.abs(array).max(initial=0.0):
        raise StateError(
            f"{name} is a weight, positive semidefinite: its eigenvalue {least:.3g} is negative"
        )
    return array
