"""Laws that drive ``s = v - v_r`` to zero: robust ones here, adaptive ones in `adaptive`.

With ``v_r = v_d - rate e``, ``e = q - q_d``, errors vanish with s: ``e' = -rate e + s``. The torque
``M (dv_r/dt - rate s) + C v_r + N`` gives ``M (s' + rate s) + C s = (what is wrong in the model)``,
and ``V = s^T M s / 2`` falls with ``dV/dt = -2 rate V + s^T (what is wrong)``, since dM/dt - 2 C is
skew (Slotine and Li 1987).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import inside, is_number, per_joint, positive
from modurob.control import gains
from modurob.control.laws import register
from modurob.control.link_law import LinkLaw
from modurob.control.pseudo_inertia import PoseDerivatives
from modurob.errors import StateError
from modurob.model import Model
from modurob.model.joint_map import JointMap
from modurob.reference import Reference

MASS_ERROR = 0.2  # of the masses, by default
STIFFER = 10.0  # times the rate: what the robust term adds near s = 0, by default
STATES = 100  # random configurations in which typical torques and inertias are looked up
REACH = 0.1  # [rad, m] error whose correction counts as a typical acceleration
LEFT_OVER = ((math.sqrt(5) - 1) / 2) ** 2.5  # the largest x - x^2 / sqrt(x^2 + 1)
LEAST_LAYER_W = 1e-9
NORMS = 2.0  # of a 4 x 4 matrix: the sum of its singular values is at most twice Frobenius' norm


class SlidingLaw(LinkLaw):
    """Base of laws on ``s = v - v_r``.

    Args:
        model: The body.
        rate: Of the errors' decay, twice for each joint. [1/s]
        settling_time: Instead of it; 1 s if neither is given. [s]
        options: See `Controller`.
    """

    scope = "global"

    def __init__(
        self,
        model: Model,
        rate: float | None = None,
        *,
        settling_time: float | None = None,
        **options: Any,
    ) -> None:
        super().__init__(model, **options)
        if rate is not None and settling_time is not None:
            raise StateError("give rate or a settling_time, not both")
        if rate is None:
            self.settling_time = gains.SETTLING_TIME if settling_time is None else settling_time
            rate = math.sqrt(gains.from_settling_time(self.settling_time)[0])
        self.rate = positive("rate", rate, "1/s")

    def _settings(self, joints: JointMap) -> dict[str, Any]:
        time = self.settling_time
        asked = {"rate": self.rate} if time is None else {"settling_time": time}
        return super()._settings(joints) | asked

    def _sliding(
        self, q: np.ndarray, v: np.ndarray, aim: Reference, known: np.ndarray | float = 0.0
    ) -> Sliding:
        """The variable s, 0 for joints without a motor, and the motion that makes it vanish.

        A known part (..., n) that decays with the rate is moved from s to v_r.
        """
        (e, e_rate), skip = self._errors(q, v, aim), self._skip
        s, a = np.zeros(v.shape), np.zeros(v.shape)
        s[..., skip:] = -e_rate - self.rate * e
        a[..., skip:] = aim.a + self.rate * e_rate - self.rate * s[..., skip:]
        s[..., skip:] -= known
        s[..., self._idle] = 0.0
        return Sliding(s, self._motions(self._pose_ahead(q, v), v, v - s, a))

    def _smooth(self, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        return self._sliding(q, v, aim).motions.forces(self._pseudo_inertias())

    def _typical(self) -> tuple[np.ndarray, PoseDerivatives]:
        """(count, nv, nv) M^-1 and motions in random configurations.

        At rest, on the way back from an error of `REACH`.
        """
        model, rng = self.model, np.random.default_rng(0)
        q = np.array([model.random_configuration(rng) for _ in range(STATES)])
        rest = np.zeros((STATES, model.nv))
        back = self.rate**2 * REACH * np.sign(rng.standard_normal(rest.shape))
        return np.linalg.inv(model.mass_matrix(q)), self._links.motions(q, rest, rest, back)


class Sliding(NamedTuple):
    """The sliding variable (..., nv) and the motion that the law asks for."""

    s: np.ndarray
    motions: PoseDerivatives


@register(
    "robust", "follows motions, masses wrong within a bound",
    rate="1/s", mass_error="", layer="W", settling_time="s",
)  # fmt: skip
class Robust(SlidingLaw):
    """Sliding mode with a smooth boundary layer, for masses that are wrong within a bound.

    ``tau = M (dv_r/dt - rate s) + C v_r + N + friction - rho u / sqrt(u^2 + layer^2)``, with
    ``u = rho s`` for each joint, and rho the largest force there that wrong inertias can make in
    the present motion. Then ``dV/dt <= -2 rate V + 0.3003 sum(layer)``: errors end within `bound`,
    and never leave it from a start at the reference.

    Args:
        model: The body.
        rate: Of the errors' decay, twice for each joint. [1/s]
        mass_error: Largest error of each link's mass, first and second moments, as a part of them,
            in all directions: (1 - mass_error) P <= true P <= (1 + mass_error) P.
        layer: Power at which the robust term of a joint saturates; one number or one for each
            joint. A thin layer is stiff: by default the term adds ten times `rate` to the damping
            of each joint at most. [W]
        settling_time: Instead of rate; 1 s if neither is given. [s]
        options: See `Controller`.
    """

    name = "robust sliding mode"
    claim = "errors end within law.bound, and vanish for exact masses"

    def __init__(
        self,
        model: Model,
        rate: float | None = None,
        mass_error: float = MASS_ERROR,
        layer: ArrayLike | None = None,
        *,
        settling_time: float | None = None,
        **options: Any,
    ) -> None:
        super().__init__(model, rate, settling_time=settling_time, **options)
        self.mass_error = inside("mass_error", mass_error, 0.0, 0.99, "part of the masses")
        inverse, motions = self._typical()
        light = np.diagonal(inverse, axis1=-2, axis2=-1)[:, self._skip :]
        rho = self._roughness(motions)[:, self._skip :]
        with_motor = np.isin(np.arange(len(self.torque_limit)), self._driven - self._skip)
        if layer is None:
            thick = (rho**2 * light / (STIFFER * self.rate)).max(axis=0)
            self.layer = np.where(with_motor, np.maximum(thick, np.finfo(float).tiny), 0.0)
        else:
            self.layer = per_joint("layer", layer, model.joint_names, least=LEAST_LAYER_W)
        self._given_layer = layer
        power = LEFT_OVER * float(self.layer[with_motor].sum()) / (1 - self.mass_error)
        self.bound: np.ndarray = np.sqrt(power / self.rate * light.max(axis=0)) / self.rate
        """(n,) errors in the end, with the inertias of 100 random configurations. [rad, m]"""
        self._demand_stable()

    @property
    def mass_range(self) -> tuple[float, float]:
        """See `Controller.mass_range`."""
        return 1 - self.mass_error, 1 + self.mass_error

    def _roughness(self, motions: PoseDerivatives) -> np.ndarray:
        """(..., nv) rho: the largest forces that wrong inertias can make in a motion. [N m, N]"""
        return NORMS * self.mass_error * motions.scales(self._root)

    def _settings(self, joints: JointMap) -> dict[str, Any]:
        layer = self._given_layer
        if layer is not None and not is_number(layer):
            layer = joints.carry(self.layer)
        return super()._settings(joints) | {"mass_error": self.mass_error, "layer": layer}

    def _smooth(self, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        s, motions = self._sliding(q, v, aim)
        tau, rho = motions.forces(self._pseudo_inertias()), self._roughness(motions)
        rho, power = rho[..., self._driven], (rho * s)[..., self._driven]
        layer = self.layer[self._driven - self._skip]
        tau[..., self._driven] -= rho * power / np.hypot(power, layer)
        return tau
