"""Joint limits as smooth stops: springs that a joint meets at its limit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from modurob.checks import not_negative, positive
from modurob.model import Model


@dataclass(frozen=True)
class Stops:
    """How hard joints meet their limits.

    Beyond a limit by x, a joint is pushed back with
    ``k x^2/(x + rounding) max(0, 1 + damping x')``: nothing inside the limits, smooth at the limit,
    a spring further out. The factor with x' (Hunt and Crossley 1975) takes energy out and never
    pulls.

    Attributes:
        frequency: Of the joint on its stop; k = (2 pi frequency)^2 times the joint's inertia. [Hz]
        damping: Share of the force that a speed of one unit adds. [s/rad, s/m]
        rounding: Penetration over which the spring sets in. [rad, m]
    """

    frequency: float = 10.0
    damping: float = 0.5
    rounding: float = 0.01

    def __post_init__(self) -> None:
        positive("the stops' frequency", self.frequency, "Hz")
        positive("the stops' rounding", self.rounding, "rad or m")
        not_negative("the stops' damping", self.damping, "s/rad or s/m")


class StopForces:
    """The stops of one model.

    Attributes:
        rate: Fastest oscillation with all joints on their stops. [rad/s]

    Args:
        q: (..., nq) a configuration; the diagonal of its mass matrix sets the springs' scale.
    """

    def __init__(self, stops: Stops, model: Model, q: np.ndarray) -> None:
        n = len(model.joint_names)
        self._base = model.nv - n
        self._skip = model.nq - n
        self._lower, self._upper = model.lower, model.upper
        self._damping, self._rounding = stops.damping, stops.rounding
        M = model.mass_matrix(q[(0,) * (q.ndim - 1)])
        inertia = np.diagonal(M)[self._base :]
        self._stiffness = (2 * np.pi * stops.frequency) ** 2 * inertia
        self.rate = _fastest(M, self._base, self._stiffness)

    def beyond(self, q: np.ndarray) -> np.ndarray:
        """(..., n) how far joints are beyond a limit; negative below the lower one."""
        joints = q[..., self._skip :]
        return joints - np.clip(joints, self._lower, self._upper)

    def __call__(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(..., nv) forces of the stops. [N m, N]"""
        beyond = self.beyond(q)
        x = np.abs(beyond)
        outward = np.sign(beyond) * v[..., self._base :]
        spring = self._stiffness * x * x / (x + self._rounding)
        push = np.sign(beyond) * spring * np.maximum(0.0, 1 + self._damping * outward)
        result = np.zeros(v.shape)
        result[..., self._base :] = -push
        return result

    def slopes(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(..., nv) derivatives of each joint's force by its own position and velocity."""
        beyond = self.beyond(q)
        x, w = np.abs(beyond), self._rounding
        factor = 1 + self._damping * np.sign(beyond) * v[..., self._base :]
        spring = self._stiffness * x * x / (x + w)
        steep = self._stiffness * x * (x + 2 * w) / (x + w) ** 2
        dq, dv = np.zeros(v.shape), np.zeros(v.shape)
        dq[..., self._base :] = -steep * np.maximum(0.0, factor)
        dv[..., self._base :] = -spring * self._damping * (factor > 0)
        return dq, dv

    def energy(self, q: np.ndarray) -> np.ndarray:
        """(...) what the springs hold. [J]"""
        x, w = np.abs(self.beyond(q)), self._rounding
        return np.sum(self._stiffness * (x * x / 2 - w * x + w * w * np.log1p(x / w)), axis=-1)


def _fastest(M: np.ndarray, base: int, stiffness: np.ndarray) -> float:
    """Root of the largest eigenvalue of M^-1 K; 0 where M is singular."""
    try:
        inverse, root = np.linalg.inv(M)[base:, base:], np.sqrt(stiffness)
    except np.linalg.LinAlgError:  # forward dynamics says what is wrong there
        return 0.0
    values = np.linalg.eigvalsh(root[:, None] * inverse * root)
    return float(np.sqrt(max(values.max(initial=0.0), 0.0)))
