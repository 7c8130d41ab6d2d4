"""Equation of motion of one body with everything that acts on it: the input of integrators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.dynamics import external_forces, link_wrenches
from modurob.errors import StateError
from modurob.model import Model
from modurob.spatial import se3
from modurob.stepping import manifold
from modurob.stepping.contact import GroundContact
from modurob.stepping.stops import StopForces

DIFFERENCE = 1e-7  # [rad, m, rad/s, m/s] forward differences of laws: seven digits
Wrench = ArrayLike | Callable[[float], ArrayLike]
External = Mapping[str, Wrench]
Law = Callable[[float, np.ndarray, np.ndarray], np.ndarray]


class Stopped(Exception):
    """End of a run from inside; `simulate` turns it into a `SimulationError`."""

    def __init__(self, time: float, reason: str) -> None:
        super().__init__(reason)
        self.time, self.reason = time, reason


def called(time: float, what: str, function: Callable[..., Any], *given: Any) -> Any:
    """Call a user's function; its exceptions end the run as `Stopped`."""
    try:
        return function(*given)
    except Stopped:
        raise
    except Exception as error:
        raise Stopped(time, f"{what} raised {type(error).__name__}: {error}") from error


def contact_wrenches(channels: Mapping[str, np.ndarray]) -> np.ndarray:
    """(..., bodies, 6) wrenches of contacts about the world's origin, from their channels."""
    parts = (
        np.concatenate([channels[name], channels[f"{name}_torque"]], axis=-1)
        for name in ("contact", "self_contact")
        if name in channels
    )
    return sum(parts, np.zeros(6))


class EquationOfMotion:
    """One body under its drive, its stops, external wrenches and the ground.

    Args:
        drive: tau(t, q, v) (..., nv); None for no torque.
        stops: Forces at the joint limits.
        external: Wrench (6,) or (..., 6) on each body, in its frame, or a function of time.
        ground: Forces of the ground; integrators call `accepted` after every step.
    """

    def __init__(
        self,
        model: Model,
        batch: tuple[int, ...] = (),
        drive: Law | None = None,
        stops: StopForces | None = None,
        external: External | None = None,
        ground: GroundContact | None = None,
    ) -> None:
        self.model, self.batch, self.ground = model, batch, ground
        self.drive, self.stops, self.external = drive, stops, dict(external or {})
        self._rest = np.zeros((*batch, model.nv))
        self._varying = any(map(callable, self.external.values()))
        if batch:
            self._forward = model.forward_dynamics
        elif not self.external:
            self._forward = model.prepare("forward_dynamics")
        else:
            self._wrenches, self._are_stale = np.zeros((len(model.mass), 6)), True
            bound = model.dynamics.bound("forward_dynamics", external=self._wrenches)
            self._pushed, self._accelerations = bound

    def torque(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(..., nv) what the drive gives."""
        return self._rest if self.drive is None else self.drive(t, q, v)

    def joint_force(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(..., nv) drive and stops."""
        tau = self.torque(t, q, v)
        return tau if self.stops is None else tau + self.stops(q, v)

    def force(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(..., nv) drive, stops and ground."""
        tau = self.joint_force(t, q, v)
        return tau if self.ground is None else tau + self.ground.force(q, v)

    @property
    def is_held(self) -> bool:
        """True if neither the drive nor stops nor external wrenches change between samples."""
        held = self.drive is None or getattr(self.drive, "sample_time", None) is not None
        return held and self.stops is None and not self._varying

    def accepted(self, q: np.ndarray, v: np.ndarray) -> None:
        """Tell the ground the state after a step."""
        if self.ground is not None:
            self.ground.accepted(q, v)

    def fastest_rate(self, implicit: bool) -> tuple[float, str]:
        """Fastest decay or oscillation that a method must follow, and its cause. [1/s]

        If it is `implicit`, that is neither friction nor linear stops.
        """
        known = [(0.0, "")]
        if not implicit:
            known.append((self.model.friction_rate.rate, self.model.friction_rate.cause))
        if self.stops is not None and not (implicit and self.stops.is_linear):
            known.append((self.stops.rate, "the stops"))
        return max(known)

    def wrenches(self, t: float) -> dict[str, Any] | None:
        """The external wrenches at a time."""
        if not self.external:
            return None
        return {
            body: called(t, f"the external wrench on '{body}'", w, t) if callable(w) else w
            for body, w in self.external.items()
        }

    def observed(self, t: float) -> dict[str, np.ndarray]:
        """Channel: (..., bodies, 6) external wrenches in the frames of the bodies. [N, N m]"""
        given = self.wrenches(t)
        if given is None:
            return {}
        found = np.zeros((*self.batch, self.model.nbodies, 6))
        for body, wrench in given.items():
            found[..., self.model.body_index(body), :] += wrench
        return {"external": found}

    def contacts(self, q: np.ndarray, v: np.ndarray) -> dict[str, np.ndarray]:
        """Channels of contact at a state; see `GroundContact.observed`."""
        return {} if self.ground is None else self.ground.observed(q, v)

    def measured(self, t: float, q: np.ndarray, v: np.ndarray) -> dict[str, Any] | None:
        """Wrenches on bodies as sensors in them measure: external ones, and those of contacts."""
        given, contacts = self.wrenches(t), self.contacts(q, v)
        if not contacts:
            return given
        T, found = self.model.forward_kinematics(q), dict(given or {})
        total = se3.transform_wrench(T, contact_wrenches(contacts))
        for k, body in enumerate(self.model.body_names):
            if total[..., k, :].any():
                found[body] = total[..., k, :] + found.get(body, 0.0)
        return found or None

    def acceleration(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(..., nv) at a state; the array may be overwritten by the next call."""
        force = self.force(t, q, v)
        try:
            return self._forward_dynamics(t, q, v, force)
        except StateError:
            error = diverged(self.model, t, q, v)
            if error is not None:
                raise error from None
            raise

    def _forward_dynamics(
        self, t: float, q: np.ndarray, v: np.ndarray, force: np.ndarray
    ) -> np.ndarray:
        """(..., nv) acceleration; checks only what compiled code has refused."""
        if not self.external:
            return self._forward(q, v, force)
        if not self.batch:
            if self._are_stale:
                self._wrenches[:] = link_wrenches(self.model, self.wrenches(t) or {})
                self._are_stale = self._varying
            found = self._pushed(q, v, force, self._accelerations)
            if found is not None:
                return found
        return self.model.forward_dynamics(q, v, force, self.wrenches(t))

    def derivatives(self, t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(nv, nv) derivatives of `acceleration` at one state, q in the tangent space.

        Exact for the body, its friction, its stops and a torque that is held; what a continuous
        controller, external wrenches and the ground do is differenced.
        """
        model, rest = self.model, np.zeros(self.model.nv)
        tau = self.force(t, q, v)
        dq, dv = (rest, rest) if self.stops is None else self.stops.derivatives(q, v)
        dq, dv = np.diag(dq), np.diag(dv)
        wrenches = self.wrenches(t)

        def given(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            found = self.torque(t, x, y)
            if self.ground is not None:
                found = found + self.ground.force(x, y)
            if wrenches is None:
                return found
            return found + external_forces(model, x, wrenches)

        continuous = getattr(self.drive, "sample_time", None) is None and self.drive is not None
        continuous = continuous or self.ground is not None
        if wrenches is not None or continuous:
            now = given(q, v)
            for k, e in enumerate(DIFFERENCE * np.eye(model.nv)):
                moved = manifold.moved(q, e) if model.free_base else q + e
                dq[:, k] += (given(moved, v) - now) / DIFFERENCE
                if continuous:
                    dv[:, k] += (given(q, v + e) - now) / DIFFERENCE
        if wrenches is not None:  # as a force on the joints
            tau = model.inverse_dynamics(q, v, model.forward_dynamics(q, v, tau, wrenches))
        by = model.forward_dynamics_derivatives(q, v, tau)
        return by.dq + by.dtau @ dq, by.dv + by.dtau @ dv

    def accelerations(
        self, t: np.ndarray, q: np.ndarray, v: np.ndarray, tau: np.ndarray, ground: np.ndarray
    ) -> np.ndarray:
        """(N, ..., nv) at N states, with the torques and forces of the ground recorded there."""
        force = tau + ground if self.stops is None else tau + ground + self.stops(q, v)
        external = None
        if self.external:
            each = [self.wrenches(float(time)) or {} for time in t]
            external = {
                body: np.array([np.broadcast_to(w[body], (*self.batch, 6)) for w in each])
                for body in self.external
            }
        return self.model.forward_dynamics(q, v, force, external)


LARGEST = 1e10  # [rad/s, m/s, rad, m] beyond every robot; sines of such angles have lost six digits


def diverged(model: Model, t: float, q: np.ndarray, v: np.ndarray) -> Stopped | None:
    """A `Stopped` that names the joint that ran away, if one did."""
    for what, x in (("velocity", v), ("position", q)):
        outside = ~(np.abs(x) < LARGEST)  # so that NaN counts as outside
        if outside.any():
            where, value = first_of(model, x, outside)
            return Stopped(t, f"it diverged: the {what} of {where} is {value:.3g}")
    return None


def first_of(model: Model, x: np.ndarray, bad: np.ndarray) -> tuple[str, float]:
    """Name (joint or base, and state of a batch) and value of the first bad entry of (..., nv)."""
    *state, column = (int(k) for k in np.argwhere(bad)[0])
    joint = column - (x.shape[-1] - len(model.joint_names))
    name = f"joint '{model.joint_names[joint]}'" if joint >= 0 else "the base"
    whose = f" of state {state[0] if len(state) == 1 else state}" if state else ""
    return name + whose, x[(*state, column)]
