"""Adaptive control: the inertias of the links are learned while the body follows a motion."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import is_number, positive
from modurob.control.controller import Controller, Slopes
from modurob.control.laws import register
from modurob.control.pid import SAMPLE_TIME
from modurob.control.sliding import Sliding, SlidingLaw
from modurob.errors import StateError
from modurob.model import Model
from modurob.model.joint_map import JointMap
from modurob.reference import Reference, no_reference

LEAST_SHARE = 0.03  # of the power of all links: a link with less is learned no faster
LEARNING = 1.0  # of `rate`: how fast the masses are learned in a typical motion, by default
LEAST_MODE = 1e-9  # of the fastest: slower ones are rounding
SPREAD = 2.0  # largest factor between true and given inertias, by default


@register(
    "adaptive", "follows motions, learns the masses",
    rate="1/s", adaptation="1/J", spread="", settling_time="s",
)  # fmt: skip
class Adaptive(SlidingLaw):
    """Slotine and Li's law on the pseudo-inertias P of the links, kept physically consistent.

    ``tau = Y(q, v, v_r, dv_r/dt - rate s) P + friction``, and with ``P = R X R``, R the root of the
    datasheet's P, ``dX/dt = -adaptation (derivative of s^T Y P by X)``, projected onto
    ``1 / spread <= X <= spread``: masses stay positive, P positive definite, and all bounded. With
    ``V = s^T M s / 2 + |X - true X|^2 / (2 adaptation)`` is ``dV/dt <= -rate s^T M s``, if the true
    X lies within those bounds: errors vanish. Parameters need not become the true ones. While a
    motor is at its limit, nothing is learned.

    Errors at the start and after a jump of the reference say nothing about the inertias: what they
    make of s decays with the rate and is added to v_r, so that nothing is learned from it.

    Args:
        model: The body as the datasheets have it.
        rate: Of the errors' decay, twice for each joint. [1/s]
        adaptation: Gain of the learning; by default such that the masses of the whole body are
            learned within some settling times of a typical motion, or slower where samples and
            delay do not allow it. [1/J]
        spread: Largest factor between the true and the given inertia of a link, and its inverse
            the smallest, in all directions. Inertias that a datasheet gives as zero stay zero.
        settling_time: Instead of rate; 1 s if neither is given. [s]
        sample_time: Seconds between commands. [s]
        options: See `Controller`.
    """

    name = "adaptive control"
    claim = "errors vanish and parameters stay bounded, for true inertias within law.spread"

    def __init__(
        self,
        model: Model,
        rate: float | None = None,
        adaptation: float | None = None,
        spread: float = SPREAD,
        *,
        settling_time: float | None = None,
        sample_time: float | None = SAMPLE_TIME,
        **options: Any,
    ) -> None:
        super().__init__(
            model, rate, settling_time=settling_time, sample_time=sample_time, **options
        )
        if self.sample_time is None:
            raise StateError("a law that learns needs sample_time, for example 0.001")
        if not is_number(spread) or spread < 1:
            raise StateError(f"spread is a factor of 1 or more, got {spread!r}")
        self.spread = float(spread)
        self.factors = np.tile(np.eye(4), (len(model.mass), 1, 1))
        self._time: float | None = None
        self._forget()
        self._at_limit = np.array(False)  # (...,) whether the last torque was cut
        self._given_adaptation = adaptation
        if adaptation is None:
            power = self._typical_power()
            least = LEAST_SHARE * (float(power.sum()) or 1.0)
            self.adaptation = LEARNING * self.rate**2 / np.maximum(power, least)
            fastest = self.rate / (2 * (self.sample_time + self.delay))
            self.adaptation *= min(1.0, fastest / (self._learning_speed() or 1.0))
        else:
            self.adaptation = np.full(len(model.mass), positive("adaptation", adaptation, "1/J"))
        self._demand_stable()

    def _typical_power(self) -> np.ndarray:
        """(links,) mean ``tau^T M^-1 tau`` of each link's tau in typical motions. [J/s^2]"""
        inverse, motions = self._typical()
        loads = motions.acceleration @ self._pseudo_inertias()
        tau = np.einsum("slkab,slab->slk", motions.slopes, loads)
        return np.einsum("slj,sjk,slk->l", tau, inverse, tau) / len(tau)

    def _learning_speed(self) -> float:
        """L of ``s'' + rate s' + L s = 0``: the largest in typical motions. [1/s^2]"""
        if not self.model.nv:
            return 0.0
        inverse, motions = self._typical()
        Y = np.stack([motions.powers(self._root, e) for e in np.eye(self.model.nv)], axis=1)
        Y = (Y * np.sqrt(self.adaptation)[:, None, None]).reshape(*Y.shape[:2], -1)
        Y[:, self._idle] = 0.0
        return float(np.linalg.eigvals(inverse @ Y @ Y.mT).real.max(initial=0.0))

    def _smooth(self, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        return self._sliding(q, v, aim, self._known).motions.forces(self._pseudo_inertias())

    def _pseudo_inertias(self) -> np.ndarray:
        return self._root @ self.factors @ self._root

    def _torque(self, t: float, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        now = self._beside_known(t, q, v, aim)
        self._learn(t, now)
        if len(self._idle):  # what results for them follows from what was learned
            now = self._sliding(q, v, aim, self._known)
        return self._with_friction(now.motions.forces(self._pseudo_inertias()), v)

    def _notice_limits(self, beyond: np.ndarray) -> None:
        self._at_limit = beyond.any(axis=-1)

    def _beside_known(self, t: float, q: np.ndarray, v: np.ndarray, aim: Reference) -> Sliding:
        """s without the part that jumps of the reference explain."""
        if not math.isfinite(t):
            raise StateError(f"t must be a finite number of seconds, got {t!r}")
        dt = 0.0 if self._time is None else max(0.0, t - self._time)
        seen, jump = -np.stack(self._errors(q, v, aim)), aim.jump(self._last, dt)
        e, e_rate = self._expected
        a = -self.rate * (2 * e_rate + self.rate * e)  # held since the last command
        expected = np.stack([e + dt * e_rate + dt * dt / 2 * a - jump, e_rate + dt * a])
        began = np.isnan(jump) | np.asarray(self._at_limit)[..., None]
        self._expected = np.where(began, seen, expected)
        self._last = aim.spread(jump.shape)
        return self._sliding(q, v, aim, self._known)

    def _forget(self) -> None:
        """No errors (q, v) are expected from jumps, and no reference came before."""
        self._expected = np.zeros((2, *self._hold.shape))
        self._last = no_reference(self._hold.shape)

    @property
    def _known(self) -> np.ndarray:
        """(..., n) part of s that decays by itself."""
        return self._expected[1] + self.rate * self._expected[0]

    def _learn(self, t: float, now: Sliding) -> None:
        """Go on from the last command; a second one for the same time learns nothing.

        Nothing is learned from a motion whose torque was cut: its errors are expected, and s is 0.
        """
        last, self._time = self._time, t
        if last is not None and t > last:
            slope = now.motions.powers(self._root, now.s)
            step = (t - last) * self.adaptation[:, None, None] * slope
            self.factors = self._projected(self.factors - step)

    def _projected(self, X: np.ndarray) -> np.ndarray:
        """The nearest matrices with eigenvalues within the spread."""
        if not np.isfinite(X).all():
            return self.factors  # `command` names the number that is not finite
        values, axes = np.linalg.eigh(X)
        kept = np.clip(values, 1 / self.spread, self.spread)
        return (
            X
            if np.array_equal(kept, values)
            else (axes * kept[..., None, :]) @ np.swapaxes(axes, -1, -2)
        )

    def slopes(self, q: ArrayLike, v: ArrayLike, reference: Any = None) -> Slopes:
        """Derivatives of the torque by the state and what was learned; see `Controller.slopes`."""
        modes, _ = self._modes(self.model.check_configuration(q))
        return super().slopes(q, v, reference)._replace(dmemory=modes)

    def memory(self, dt: float, at: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """See `Controller.memory`: the torques at rest that learning can change."""
        modes, speed = self._modes(self.model.neutral() if at is None else at)
        by_s = -dt * speed[:, None] * modes[self._skip :].T
        return np.eye(len(speed)), np.hstack([self.rate * by_s, by_s])

    def _modes(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(nv, k), (k,) torques at rest that can be learned, and how fast s changes them."""
        rest = np.zeros(self.model.nv)
        powers = self._links.motions(q, rest, rest, rest)
        Y = np.array([powers.powers(self._root, e).ravel() for e in np.eye(self.model.nv)])
        Y = Y.reshape(self.model.nv, len(self.model.mass) * 16)
        Y[self._idle] = 0.0
        speed, modes = np.linalg.eigh(Y * np.repeat(self.adaptation, 16) @ Y.T)
        learned = speed > LEAST_MODE * speed.max(initial=0.0)
        return modes[:, learned], speed[learned]

    @property
    def mass_range(self) -> tuple[float, float]:
        """See `Controller.mass_range`."""
        return 1 / self.spread, self.spread

    @property
    def masses(self) -> np.ndarray:
        """(..., links) as learned so far, base first. [kg]"""
        return self._pseudo_inertias()[..., 3, 3]

    def record(self) -> dict[str, np.ndarray]:
        """The masses as learned so far."""
        return {"mass": self.masses}

    def reset(self, t: float, q: ArrayLike, v: ArrayLike) -> None:
        """Begin with the inertias of the datasheets, unless others were just taken over."""
        if not self._carried:
            self.factors = np.broadcast_to(np.eye(4), self.factors.shape).copy()
            self._time, self._at_limit = None, np.array(False)
            self._forget()
        super().reset(t, q, v)

    def _spread(self, count: int) -> None:
        super()._spread(count)
        self.factors = np.tile(self.factors, (count, 1, 1, 1))
        self._expected = np.tile(self._expected[:, None], (1, count, 1))
        self._last = self._last.spread(self._sizes[0])

    def changed(self, **options: Any) -> Controller:
        """See `Controller.changed`; the gain of the learning stays as it is."""
        twin = super().changed(**options)
        assert isinstance(twin, Adaptive)
        if "adaptation" not in options:
            twin.adaptation = self.adaptation
        return twin

    def _settings(self, joints: JointMap) -> dict[str, Any]:
        own = {"adaptation": self._given_adaptation, "spread": self.spread}
        return super()._settings(joints) | own

    def _take_over(self, old: Controller, joints: JointMap) -> None:
        super()._take_over(old, joints)
        if isinstance(old, Adaptive):
            self.factors[1 + joints.kept_new] = old.factors[1 + joints.kept_old]
            self._time, self._at_limit = old._time, old._at_limit
            self._expected = np.stack([joints.carry(x, 0.0) for x in old._expected])
            self._last = Reference(*(joints.carry(x, np.nan) for x in old._last))
