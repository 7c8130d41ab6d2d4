"""Computed torque: the error of each joint follows a chosen linear equation.

``tau = M(q) a + C v + N + friction`` makes every joint a double integrator. With joints that have
no motor (or a free base) the others are linearized and the rest follows its own equations: the zero
dynamics. Its acceleration comes from the rows u that have no torque,
``M_uz a_z = -(M_uo a_o + C v + N + friction)_u``, with outputs o, those with a motor, and z = u;
see `partial` for others.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import complex_array
from modurob.control import gains
from modurob.control.controller import Controller, Slopes
from modurob.control.gains import DesignedLaw
from modurob.control.laws import register
from modurob.dynamics import cpu_model
from modurob.equations.links import friction, friction_slope
from modurob.errors import StateError
from modurob.model import Model
from modurob.model.joint_map import JointMap
from modurob.reference import Reference

LEAST_STIFFNESS = 1e-4  # below, the share of a sample is 1/2 to rounding


class Linearizing(Controller):
    """Base of laws that compute accelerations."""

    scope = "global"

    @abstractmethod
    def _acceleration(self, t: float, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        """(..., n) accelerations for the joints. [rad/s^2, m/s^2]"""

    @abstractmethod
    def _gains(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(n, n), (n, n), (n, k) derivatives of that acceleration by q, v and the memory."""

    def _torque(self, t: float, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        a = self._acceleration(t, q, v, aim)
        return self._forces(self._pose_ahead(q, v), v, a)

    def _forces(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """(..., nv) torque for accelerations of the joints that have a motor."""
        idle, joints = self._idle, np.s_[..., self._skip :]
        full = self._completed(q, v, a) if len(idle) else a
        tau = self._inverse(q, v, full)
        if self._looks_ahead:
            tau = tau.copy()
            tau[joints] += self._friction_ahead(v[joints], full[joints])
        if len(idle):
            tau = tau.copy()
            tau[..., idle] = 0.0
        return tau

    @property
    def _eliminated(self) -> tuple[np.ndarray, np.ndarray]:
        return self._idle, self._resulting

    @cached_property
    def _ahead(self) -> np.ndarray:
        """(2, n) time after which viscous and dry friction have their mean of a sample. [s]

        While the torque is held, friction that is stiff for the sample time, ``x = slope dt / m``,
        lets a velocity gain only ``(1 - e^-x) / x`` of what inertia would allow. Friction is
        canceled at the velocity after a share ``1 / (1 - e^-x) - 1 / x`` of the sample: exact for
        one joint; half a sample for small x, a whole one for large x.
        """
        dt, model = self.sample_time, self.model
        if dt is None or not (model.viscous.any() or model.coulomb.any()):
            return np.zeros((2, len(model.viscous)))
        slopes = np.stack([model.viscous, friction_slope(0.0, model.coulomb, 0.0)])
        x = np.maximum(slopes * dt / gains.joint_inertia(model), LEAST_STIFFNESS)
        return np.where(slopes > 0, dt * (-1 / np.expm1(-x) - 1 / x), 0.0)

    @cached_property
    def _looks_ahead(self) -> bool:
        return bool(self._ahead.any())

    def _friction_ahead(self, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """(..., n) growth of friction until those times. [N m, N]"""
        (drag, dry), model = self._ahead, self.model
        later, now = (friction(0.0, model.coulomb, x) for x in (v + dry * a, v))
        return model.viscous * drag * a + later - now

    def _completed(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """(..., nv) accelerations: as computed for the outputs, resulting for the rest."""
        full, idle = np.zeros(v.shape), self._idle
        full[..., self._outputs] = a[..., self._outputs - self._skip]
        missing = self._inverse(q, v, full)[..., idle, None]
        M_uz = self._mass(q)[..., idle[:, None], self._resulting]
        full[..., self._resulting] = -np.linalg.solve(M_uz, missing)[..., 0]
        return full

    def slopes(self, q: ArrayLike, v: ArrayLike, reference: Any = None) -> Slopes:
        """Exact derivatives of the torque by the state; see `Controller.slopes`."""
        q, v = self._state(q, v)
        aim = self._aim(reference, q)
        idle, z = self._idle, self._resulting
        a, q = self._steady(q, v, aim), self._pose_ahead(q, v)
        full = self._completed(q, v, a) if len(idle) else a
        by = self.model.inverse_dynamics_derivatives(q, v, full)
        by_a, by_v = by.da.copy(), by.dv + self._half * by.dq
        a_q, a_v, a_m = self._joint_slopes(*self._gains())
        for wanted, direct in ((a_q, by.dq), (a_v, by_v), (a_m, np.zeros_like(a_m))):
            wanted[z] = 0.0
            if len(idle):  # rows without a torque stay zero: M_uz da_z = -(d tau)_u
                rest = (direct + by.da @ wanted)[idle]
                wanted[z] = -np.linalg.solve(by.da[np.ix_(idle, z)], rest)
        if self._looks_ahead:
            (drag, dry), rate, model = self._ahead, v[self._skip :], self.model
            soon = rate + dry * full[self._skip :]
            later, now = (friction_slope(0.0, model.coulomb, x) for x in (soon, rate))
            joints = np.arange(self._skip, model.nv)
            by_a[joints, joints] += model.viscous * drag + later * dry
            by_v[joints, joints] += later - now
        return self._driven_only(by.dq + by_a @ a_q, by_v + by_a @ a_v, by_a @ a_m)

    def _steady(self, q: np.ndarray, v: np.ndarray, aim: Reference) -> np.ndarray:
        """(n,) acceleration of the law with its memory held."""
        return self._acceleration(0.0, q, v, aim)


@register(
    "computed-torque", "follows motions, with a good model", k0="1/s^2", k1="1/s", settling_time="s"
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
        self._demand_stable()

    def _designed(self, time: float, **shape: float) -> gains.Design:
        return gains.for_samples(time, shape["damping"], self.sample_time, self._late.count)

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


@register("pole-placement", "computed torque with given poles", poles="1/s", settling_time="s")
class PolePlacement(ComputedTorque):
    """Two poles for each joint: ``K0 = p1 p2``, ``K1 = -(p1 + p2)`` (thesis 6.36, corrected).

    Args:
        model: The body.
        poles: (2,) for all joints or (n, 2), real or conjugate pairs, in the left half-plane. [1/s]
        settling_time, damping: Instead of poles; see `ComputedTorque`. [s]
        options: See `Controller`.
    """

    name = "pole placement"

    def __init__(
        self,
        model: Model,
        poles: ArrayLike | None = None,
        *,
        settling_time: float | None = None,
        damping: float = gains.DAMPING,
        **options: Any,
    ) -> None:
        if poles is None:
            super().__init__(model, settling_time=settling_time, damping=damping, **options)
            return
        if settling_time is not None:
            raise StateError("give poles or a settling_time, not both")
        n = len(cpu_model("a controller", model).joint_names)
        given = complex_array("poles", poles)
        if given.shape not in ((2,), (n, 2)):
            raise StateError(
                f"poles are two numbers, or two for each of {n} joints, got shape {given.shape}"
            )
        pair = gains.from_poles(given.tolist())
        if pair[0].ndim == 0:  # the same for all joints, also for those still to come
            pair = float(pair[0]), float(pair[1])
        super().__init__(model, *pair, **options)

    @property
    def poles(self) -> np.ndarray:
        """(n, 2) complex. [1/s]"""
        return _poles(self.k0, self.k1)

    def _settings(self, joints: JointMap) -> dict[str, Any]:
        settings = super()._settings(joints)
        if self.settling_time is not None:
            return settings
        k0, k1 = settings.pop("k0"), settings.pop("k1")
        for_all = self._given_for_all
        if {"k0", "k1"} <= for_all.keys():  # one pair for all joints
            k0, k1 = for_all["k0"], for_all["k1"]
        return settings | {"poles": _poles(k0, k1)}


def _poles(k0: ArrayLike, k1: ArrayLike) -> np.ndarray:
    """(..., 2) roots of s^2 + k1 s + k0."""
    half = np.asarray(k1, dtype=float) / 2
    root = np.sqrt((half**2 - np.asarray(k0, dtype=float)).astype(complex))
    return np.stack([-half + root, -half - root], axis=-1)
