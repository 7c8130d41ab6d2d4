"""Joint limits as stops: springs that a joint meets at its limit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from modurob.checks import not_negative, positive
from modurob.model import Model


@dataclass(frozen=True)
class Stops:
    """Smooth stops, as hard as suits the inertia behind each joint.

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


@dataclass(frozen=True)
class LinearStops:
    """Linear spring and damper beyond a limit; the semi-implicit Euler step takes them implicitly.

    Attributes:
        stiffness: [N m/rad, N/m]
        damping: [N m s/rad, N s/m]
    """

    stiffness: float
    damping: float = 0.0

    def __post_init__(self) -> None:
        positive("the stops' stiffness", self.stiffness, "N m/rad or N/m")
        not_negative("the stops' damping", self.damping, "N m s/rad or N s/m")


class StopForces:
    """Stops of one model.

    Attributes:
        rate: Fastest oscillation with all joints that have limits on their stops. [rad/s]
        is_linear: Whether their force is linear beyond the limits.

    Args:
        q: (..., nq) a configuration; the diagonal of its mass matrix sets the springs' scale.
    """

    def __init__(self, stops: Stops | LinearStops, model: Model, q: np.ndarray) -> None:
        n = len(model.joint_names)
        self._base, self._skip = model.nv - n, model.nq - n
        self._lower, self._upper = model.lower, model.upper
        M = model.mass_matrix(q[(0,) * (q.ndim - 1)])
        self._stops, self.is_linear = stops, isinstance(stops, LinearStops)
        limited = np.isfinite(model.lower) | np.isfinite(model.upper)
        if isinstance(stops, LinearStops):
            self._k, self._rounding = stops.stiffness * limited, 0.0
        else:
            self._k = (2 * np.pi * stops.frequency) ** 2 * np.diagonal(M)[self._base :] * limited
            self._rounding = stops.rounding
        self.rate = _fastest(M, self._base, self._k)

    def beyond(self, q: np.ndarray) -> np.ndarray:
        """(..., n) displacements beyond a limit; negative below the lower one."""
        joints = q[..., self._skip :]
        return joints - np.minimum(np.maximum(joints, self._lower), self._upper)  # a fast clip

    def __call__(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(..., nv) forces of the stops. [N m, N]"""
        beyond, result = self.beyond(q), np.zeros(v.shape)
        if beyond.any():
            side = np.sign(beyond)
            push, *_ = self._law(np.abs(beyond), side * v[..., self._base :])
            result[..., self._base :] = -side * push
        return result

    def derivatives(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(..., nv) derivatives of each joint's force by its own position and velocity."""
        beyond = self.beyond(q)
        speed = np.sign(beyond) * v[..., self._base :]
        dq, dv = np.zeros(v.shape), np.zeros(v.shape)
        _, by_x, by_speed = self._law(np.abs(beyond), speed)
        dq[..., self._base :], dv[..., self._base :] = -by_x, -by_speed
        return dq, dv

    def energy(self, q: np.ndarray) -> np.ndarray:
        """(...) energy of all springs. [J]"""
        x, w = np.abs(self.beyond(q)), self._rounding
        each = x * x / 2
        if w:
            each += w * w * np.log1p(x / w) - w * x
        return np.sum(self._k * each, axis=-1)

    def _law(self, x: np.ndarray, speed: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(..., n) force at penetrations x that grow at a speed; its derivatives by x and speed."""
        k, w, damping = self._k, self._rounding, self._stops.damping
        if self.is_linear:
            force, on = k * x + damping * speed, x > 0
            return np.where(on, force, 0.0), np.where(on, k, 0.0), np.where(on, damping, 0.0)
        spring, factor = k * x * x / (x + w), 1 + damping * speed
        pushes = np.maximum(0.0, factor)
        steep = k * x * (x + 2 * w) / (x + w) ** 2
        return spring * pushes, steep * pushes, spring * damping * (factor > 0)


def _fastest(M: np.ndarray, base: int, stiffness: np.ndarray) -> float:
    """Root of the largest eigenvalue of M^-1 K; 0 where M is singular."""
    try:
        inverse, root = np.linalg.inv(M)[base:, base:], np.sqrt(stiffness)
    except np.linalg.LinAlgError:  # forward dynamics says what is wrong there
        return 0.0
    values = np.linalg.eigvalsh(root[:, None] * inverse * root)
    return float(np.sqrt(max(values.max(initial=0.0), 0.0)))
