"""Methods of equal steps for one state or many: Runge-Kutta, and semi-implicit Euler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from modurob import friction
from modurob.dynamics import implicit_step_velocity
from modurob.equations.contact import LARGEST_TURN
from modurob.stepping import manifold
from modurob.stepping.base import FixedStep, StepSettings
from modurob.stepping.motion import EquationOfMotion, Stopped


class RK4(FixedStep):
    """Four accelerations a step; a free base moves along the exponential (Munthe-Kaas 1998)."""

    order = 4
    batches = True

    def __init__(self, motion: EquationOfMotion, settings: StepSettings) -> None:
        super().__init__(motion, settings)
        shape = (*motion.batch, motion.model.nv)
        self._k, self._sum, self._part = (np.empty(shape) for _ in range(3))
        self._q, self._v = np.empty(shape), np.empty(shape)

    def advance(
        self, t: float, h: float, count: int, q: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        step = self._curved if self.motion.model.free_base else self._straight
        for k in range(count):
            q, v = step(t + k * h, h, q, v)
        return q, v

    def _straight(
        self, t: float, h: float, q: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Step of a vector q: every sum in place, because batches are limited by memory traffic.

        With v2 = v + h/2 k1 and so on, the positions need no stages of their own:
        q + h/6 (v + 2 v2 + 2 v3 + v4) = q + h v + h^2/6 (k1 + k2 + k3).
        """
        a, part, trial_q, trial_v = self.motion.acceleration, self._part, self._q, self._v
        total = self._sum
        k1 = a(t, q, v)
        np.copyto(total, k1)
        np.multiply(v, h / 2, out=part)
        np.add(q, part, out=trial_q)
        np.multiply(k1, h / 2, out=part)
        np.add(v, part, out=trial_v)
        k2 = a(t + h / 2, trial_q, trial_v)
        np.copyto(self._k, k2)
        total += k2  # k1 + k2
        np.multiply(trial_v, h / 2, out=part)
        np.add(q, part, out=trial_q)
        np.multiply(self._k, h / 2, out=part)
        np.add(v, part, out=trial_v)
        k3 = a(t + h / 2, trial_q, trial_v)
        self._k += k3  # k2 + k3
        total += k3  # k1 + k2 + k3
        np.multiply(trial_v, h, out=part)
        np.add(q, part, out=trial_q)
        np.multiply(k3, h, out=part)
        np.add(v, part, out=trial_v)
        k4 = a(t + h, trial_q, trial_v)
        np.multiply(total, h * h / 6, out=part)
        q += part
        np.multiply(v, h, out=part)
        q += part
        total += self._k
        total += k4  # k1 + 2 k2 + 2 k3 + k4
        total *= h / 6
        v += total
        return q, v

    def _curved(
        self, t: float, h: float, q: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Step in the coordinates x of q exp(x), which start at zero in every step."""
        a, moved, dexp_inv = self.motion.acceleration, manifold.moved, manifold.dexp_inv
        k1 = a(t, q, v).copy()
        v2, x2 = v + h / 2 * k1, h / 2 * v
        k2, r2 = a(t + h / 2, moved(q, x2), v2).copy(), dexp_inv(x2, v2)
        v3, x3 = v + h / 2 * k2, h / 2 * r2
        k3, r3 = a(t + h / 2, moved(q, x3), v3).copy(), dexp_inv(x3, v3)
        v4, x4 = v + h * k3, h * r3
        k4, r4 = a(t + h, moved(q, x4), v4), dexp_inv(x4, v4)
        q = moved(q, h / 6 * (v + 2 * (r2 + r3) + r4))
        return q, v + h / 6 * (k1 + 2 * (k2 + k3) + k4)


class SemiImplicitEuler(FixedStep):
    """First the velocity, then the position with it: one acceleration a step, of order one.

    The same step as `Model.step`; friction that is stiff and linear stops act at its end.
    """

    order = 1
    batches = True
    is_implicit = True

    def __init__(self, motion: EquationOfMotion, settings: StepSettings) -> None:
        super().__init__(motion, settings)
        model = motion.model
        self._rest = np.zeros(model.nv)
        stops = motion.stops
        self._linear_stops = stops if stops is not None and stops.is_linear else None
        self._mass: Callable[..., Any] = model.mass_matrix
        self._bias: Callable[..., Any] = model.inverse_dynamics
        if not (motion.batch or motion.external):
            self._mass = model.prepare("mass_matrix")
            self._bias = model.prepare("inverse_dynamics")

    def advance(
        self, t: float, h: float, count: int, q: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        motion, free = self.motion, self.motion.model.free_base
        implicit = self._is_implicit(h)
        for k in range(count):
            if implicit:
                after = self._implicit(t + k * h, h, q, v)
            else:
                after = v + h * motion.acceleration(t + k * h, q, v)
            if free:
                q, v = manifold.stepped(q, v, after, h)
            else:
                v = after
                q += h * v
        return q, v

    def _advance(
        self, t: float, h: float, count: int, q: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """On the ground, steps under forces that are held are one call of compiled code."""
        motion, ground = self.motion, self.motion.ground
        implicit = self._is_implicit(h)
        if ground is None or implicit:
            return super()._advance(t, h, count, q, v)
        some = count if motion.is_held else 1
        for k in range(0, count, some):
            at = t + k * h
            q, v = ground.march(q, v, motion.joint_force(at, q, v), h, some, motion.wrenches(at))
            if motion.model.free_base:
                _check_turn(at + some * h, h, v)
        return q, v

    def _is_implicit(self, h: float) -> bool:
        return self._linear_stops is not None or friction.needs_implicit_step(self.motion.model, h)

    def _implicit(self, t: float, h: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(..., nv) velocity after a step with the friction, and linear stops, of its end."""
        motion, wrenches = self.motion, self.motion.wrenches(t)
        stops, slopes = self._linear_stops, None
        if stops is not None and stops.beyond(q).any():
            slopes = stops.derivatives(q, v)
        given = () if wrenches is None else (wrenches,)
        bias = self._bias(q, v, self._rest, *given)
        force, M = motion.force(t, q, v), self._mass(q)
        return implicit_step_velocity(motion.model, q, v, force, h, M, bias, wrenches, slopes)


def _check_turn(t: float, h: float, v: np.ndarray) -> None:
    """End a run whose free base turns too far in a step of h seconds; v is (..., nv)."""
    fastest = np.sqrt(np.sum(v[..., 3:6] ** 2, axis=-1)).max(initial=0.0)
    if fastest * h > LARGEST_TURN:
        raise Stopped(
            t, f"the base turns at {fastest:.3g} rad/s, by more than a radian in a step of {h:g} s:"
            f" give dt = {LARGEST_TURN / fastest:.1g} s or less",
        )  # fmt: skip
