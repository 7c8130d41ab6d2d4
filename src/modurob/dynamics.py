"""Dynamics of a model, for users: checked input, any batch shape, the fastest tier at hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from modurob import kinematics
from modurob.compiler.routine import Routine, thread_count
from modurob.compiler.tiers import DyadTier, FusedTier
from modurob.equations import closed_form as stacked
from modurob.equations import coriolis
from modurob.equations.closed_form import ClosedForm, Stacked
from modurob.errors import StateError, UnknownNameError, choices
from modurob.model import Model
from modurob.spatial import inertia, se3

External = Mapping[str, ArrayLike]
UNIT = 1e-14  # of the squared norm: rounding errors of a normalised quaternion
TARGETS, DTYPES = ("cpu",), ("float64",)
PREPARED = ("inverse_dynamics", "forward_dynamics", "mass_matrix")


class InverseDerivatives(NamedTuple):
    """(..., nv, nv) derivatives of the forces; dq in the tangent space of a free base."""

    dq: np.ndarray
    dv: np.ndarray
    da: np.ndarray


class ForwardDerivatives(NamedTuple):
    """(..., nv, nv) derivatives of the acceleration; dtau is the inverse mass matrix."""

    dq: np.ndarray
    dv: np.ndarray
    dtau: np.ndarray


class Tier(Protocol):
    """Where compiled routines come from."""

    name: str

    def routine(self, name: str) -> Routine: ...

    def pushed(self, name: str) -> Routine: ...


class Dynamics:
    """The dynamics of one model on one tier."""

    def __init__(self, model: Model, tier: Tier | None = None) -> None:
        self.model = model
        self.tier = tier or DyadTier(model.frames, model.gravity, model.free_base)

    def inverse_dynamics(
        self, q: Any, v: Any, a: Any, external: External | None, threads: int | str
    ) -> np.ndarray:
        """See `Model.inverse_dynamics`."""
        return self._run("inverse_dynamics", "a", q, v, a, external, threads)

    def forward_dynamics(
        self, q: Any, v: Any, tau: Any, external: External | None, threads: int | str
    ) -> np.ndarray:
        """See `Model.forward_dynamics`."""
        return self._run("forward_dynamics", "tau", q, v, tau, external, threads)

    def mass_matrix(self, q: Any, threads: int | str) -> np.ndarray:
        """See `Model.mass_matrix`."""
        routine = self.tier.routine("mass_matrix")
        done = routine.single(q, routine.empty())
        if done is not None and (not self.model.free_base or _is_unit(q)):
            return done
        checked = self.model.check_configuration(q)
        batch = checked.shape[:-1]
        states = _rows(checked)
        count = thread_count(threads, len(states) * self.model.nv)
        M = routine.batch(states, None, None, None, count)
        assert M is not None  # finite in, finite out: no division
        return M.reshape(*batch, self.model.nv, self.model.nv)

    def _run(
        self,
        name: str,
        label: str,
        q: Any,
        v: Any,
        x: Any,
        external: External | None,
        threads: int | str,
    ) -> np.ndarray:
        routine = self.tier.routine(name)
        if external is None:
            done = routine.single(q, v, x, routine.empty())
            if done is not None and (not self.model.free_base or _is_unit(q)):
                return done
        return self._long_way(name, label, q, v, x, external, threads)

    def _long_way(
        self,
        name: str,
        label: str,
        q: ArrayLike,
        v: ArrayLike,
        x: ArrayLike,
        external: External | None,
        threads: int | str,
    ) -> np.ndarray:
        """Check everything, make it contiguous, run it as a batch."""
        model = self.model
        q, v, x, wrenches = checked(model, q, v, x, label, external)
        batch = v.shape[:-1]
        routine = self.tier.routine(name) if external is None else self.tier.pushed(name)
        states = [_rows(part) for part in (q, v, x)]
        pushes = None if wrenches is None else wrenches.reshape(len(states[0]), -1).copy()
        count = thread_count(threads, len(states[0]) * model.nv)
        y = routine.batch(*states, pushes, count)
        if y is None:  # finite in, not finite out
            raise StateError(_why_singular(model, q.reshape(-1, model.nq)))
        return y.reshape(*batch, model.nv)

    def inverse_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, threads: int | str
    ) -> InverseDerivatives:
        """See `Model.inverse_dynamics_derivatives`."""
        found = self._matrices("inverse_dynamics_derivatives", q, v, a, "a", threads)
        return InverseDerivatives(*(found[..., k, :, :] for k in range(3)))

    def forward_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, threads: int | str
    ) -> ForwardDerivatives:
        """See `Model.forward_dynamics_derivatives`."""
        a = self.forward_dynamics(q, v, tau, None, threads)
        slopes = self.inverse_dynamics_derivatives(q, v, a, threads)
        # d tau = 0 along the motion: M da = -(d tau/dq) dq - (d tau/dv) dv + d tau
        response = np.linalg.inv(slopes.da)
        return ForwardDerivatives(-response @ slopes.dq, -response @ slopes.dv, response)

    def _matrices(
        self, name: str, q: ArrayLike, v: ArrayLike, x: ArrayLike, label: str, threads: int | str
    ) -> np.ndarray:
        q, v, x, _ = checked(self.model, q, v, x, label, None)
        routine = self.tier.routine(name)
        states = [_rows(part) for part in (q, v, x)]
        count = thread_count(threads, len(states[0]) * self.model.nv)
        found = routine.batch(*states, None, count)
        assert found is not None  # finite in, finite out: no division
        return found.reshape(*v.shape[:-1], *found.shape[1:])

    def prepare(self, name: str) -> Callable[..., np.ndarray]:
        """See `Model.prepare`."""
        if name not in PREPARED:
            raise UnknownNameError(f"cannot prepare {name!r}: choose from {choices(PREPARED)}")
        single = self.tier.routine(name).single
        method = getattr(self.model, name)

        def call(*state: np.ndarray) -> np.ndarray:
            done = single(*state)
            return method(*state) if done is None else done

        return call


def _is_unit(q: np.ndarray) -> bool:
    """Whether the base's quaternion is one: kernels take it as it is, the long way mends or refuses."""
    return abs(q[3:7] @ q[3:7] - 1) < UNIT


def compiled(model: Model, target: str, dtype: str, background: bool) -> Model:
    """See `Model.compile`."""
    if target not in TARGETS:
        raise StateError(f"target must be one of {choices(TARGETS)}, got {target!r}")
    if dtype not in DTYPES:
        raise StateError(f"dtype must be one of {choices(DTYPES)}, got {dtype!r}")
    copy = dataclasses.replace(model)
    tier = FusedTier(model.frames, model.gravity, model.free_base, background)
    copy.__dict__["dynamics"] = Dynamics(copy, tier)
    return copy


def _rows(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x.reshape(-1, x.shape[-1]))


def checked(
    model: Model, q: ArrayLike, v: ArrayLike, x: ArrayLike, label: str, external: External | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """State, third array and wrenches, broadcast to one batch shape; or a `StateError`."""
    q = model.check_configuration(q)
    v, x = model.check_velocity(v), model.check_velocity(x, label)
    wrenches = None if external is None else link_wrenches(model, external)
    shapes = [q.shape[:-1], v.shape[:-1], x.shape[:-1]]
    shapes += [] if wrenches is None else [wrenches.shape[:-2]]
    try:
        batch = np.broadcast_shapes(*shapes)
    except ValueError:
        raise StateError(
            f"q, v, {label} and external wrenches have batch shapes {choices(shapes)}, "
            "which do not fit together"
        ) from None
    q, v, x = (np.broadcast_to(part, (*batch, part.shape[-1])) for part in (q, v, x))
    if wrenches is not None:
        wrenches = np.broadcast_to(wrenches, (*batch, *wrenches.shape[-2:]))
    return q, v, x, wrenches


def link_wrenches(model: Model, external: External) -> np.ndarray:
    """(..., links, 6) wrenches in joint frames, from wrenches on bodies in their own frames."""
    given: list[tuple[int, np.ndarray]] = []
    for body, wrench in external.items():
        index = model.body_index(body)
        array = np.asarray(wrench, dtype=float)
        if array.ndim == 0 or array.shape[-1] != 6 or not np.isfinite(array).all():
            raise StateError(
                f"the external wrench on {body!r} is six finite numbers (force, then torque, in "
                f"the body's frame), got shape {array.shape}"
            )
        given.append((index, array))
    batch = np.broadcast_shapes(*(array.shape[:-1] for _, array in given))
    result = np.zeros((*batch, len(model.mass), 6))
    for index, F_body in given:
        link = model.body_link[index]
        F = se3.transform_wrench(se3.inverse(model.body_placement[index]), F_body)
        turn = model.frames.turn[link]
        result[..., link, :3] += F[..., :3] @ turn
        result[..., link, 3:] += F[..., 3:] @ turn
    return result


def _why_singular(model: Model, q: np.ndarray) -> str:
    """The joint that has nothing to accelerate."""
    M = model.mass_matrix(q)
    joints = np.diagonal(M, axis1=-2, axis2=-1)[..., model.nv - len(model.joint_names) :]
    empty = np.flatnonzero(np.min(np.abs(joints), axis=0) == 0)
    if len(empty):
        names = choices(model.joint_names[k] for k in empty)
        return (
            f"forward dynamics is singular: all mass beyond {names} lies on the joint's axis and "
            "has no inertia about it; give that module an inertia, or lock the joint"
        )
    return (
        "forward dynamics is singular: some joints move the same mass in the same way; "
        "give the modules between them an inertia"
    )


# -- sums over all links ---------------------------------------------------------------------------


def stacked_tree(model: Model, q: np.ndarray) -> Stacked:
    """The links that move, for the closed form and its relatives."""
    T_w = kinematics.link_poses(model, q)
    M = inertia.spatial_inertia(model.mass, model.center, model.inertia)
    n, nv = len(model.joint_names), model.nv
    if model.free_base:
        S = np.zeros((n + 1, 6, nv))
        S[0, :, :6] = np.eye(6)
        for k in range(n):
            S[k + 1, :, 6 + k] = model.screw[k]
        return Stacked([-1, *model.parent.tolist()], S, M, T_w)
    S = np.zeros((n, 6, nv))
    S[np.arange(n), :, np.arange(n)] = model.screw
    return Stacked((model.parent - 1).tolist(), S, M[1:], T_w[..., 1:, :, :])


def _state(model: Model, q: ArrayLike, v: ArrayLike) -> tuple[Stacked, np.ndarray]:
    q, v, _, _ = checked(model, q, v, np.zeros(model.nv), "a", None)
    return stacked_tree(model, q), v


def closed_form(model: Model, q: ArrayLike, v: ArrayLike) -> ClosedForm:
    """See `Model.closed_form`."""
    return stacked.closed_form(*_state(model, q, v), model.gravity)


def coriolis_matrix(model: Model, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """See `Model.coriolis_matrix`."""
    return coriolis.skew_coriolis(*_state(model, q, v))


def momentum(model: Model, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """See `Model.momentum`."""
    return coriolis.momentum(*_state(model, q, v))


def kinetic_energy(model: Model, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """See `Model.kinetic_energy`."""
    return coriolis.kinetic_energy(*_state(model, q, v))


def potential_energy(model: Model, q: ArrayLike) -> np.ndarray:
    """See `Model.potential_energy`."""
    T_w = kinematics.link_poses(model, model.check_configuration(q))
    return coriolis.potential_energy(model.mass, model.center, T_w, model.gravity)
