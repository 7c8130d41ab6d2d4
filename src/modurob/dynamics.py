"""Dynamics of a model, for users: checked input, any batch shape, the fastest tier at hand."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from modurob import friction
from modurob.checks import is_number, positive, refuse_states
from modurob.compiler.cuda import CudaTier, cupy
from modurob.compiler.routine import Routine, thread_count
from modurob.compiler.tiers import DyadTier, FusedTier
from modurob.equations.quantities import QUANTITIES
from modurob.errors import StateError, UnknownNameError, choices
from modurob.model import Model
from modurob.model.validation import common_batch
from modurob.spatial import se3, so3

External = Mapping[str, ArrayLike]
DTYPES = {"cpu": ("float64",), "cuda": ("float64", "float32")}  # of each target


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


class StepDerivatives(NamedTuple):
    """Derivatives of one discrete step of x = (q, v): A by x, B by tau.

    (..., 2 nv, 2 nv) and (..., 2 nv, nv); q in the tangent space, before and after.
    """

    A: np.ndarray
    B: np.ndarray


class StateSpace(NamedTuple):
    """``d(x, dx)/dt = A (x, dx) + B u`` for small deviations from a state.

    (..., 2 nv, 2 nv) and (..., 2 nv, nv); x in the tangent space of a free base.
    """

    A: np.ndarray
    B: np.ndarray


class Dynamics:
    """The dynamics of one model on one tier."""

    compile_options: tuple[str, str, bool] | None = None  # of `Model.compile`; None for the table

    def __init__(self, model: Model, tier: DyadTier | FusedTier | None = None) -> None:
        self.model = model
        self.tier = tier or DyadTier(model)

    def quantity(
        self, name: str, *arrays: Any, external: External | None = None, threads: int | str = "auto"
    ) -> np.ndarray:
        """Any quantity of `equations.quantities`, for arrays (..., n) of its inputs."""
        if name not in QUANTITIES:
            raise UnknownNameError(f"no quantity {name!r}: choose from {choices(QUANTITIES, 20)}")
        if external is not None:
            _demand_external(name)
        if external is None and arrays and getattr(arrays[0], "ndim", 0) == 1:
            routine = self.tier.routine(name, states=1)
            done = routine.single(*arrays, np.empty(routine.result))
            if done is not None:
                return done
        _demand_arrays(name, arrays)
        model = self.model
        shape = QUANTITIES[name].shape(len(model.parent), model.free_base, model.nbodies)
        state = CallArrays(model, name, arrays, math.prod(shape), external)
        one = 1 if len(state.q) == 1 else None
        routine = self.tier.routine(name, external is not None, states=one)
        return self._batch(routine, state, threads)

    def _batch(self, routine: Routine, state: CallArrays, threads: int | str) -> np.ndarray:
        """Run a routine on states of any batch shape."""
        count = thread_count(threads, len(state.q) * self.model.nv)
        found = routine.batch(state.q, state.v, state.x, state.external, count)
        if found is None:
            state.demand_finite()
            raise StateError(_why_not_finite(self.model, state.q))
        return found.reshape(*state.batch, *found.shape[1:])

    def prepare(
        self, name: str, states: int | None, out: Any, external: bool
    ) -> Callable[..., Any]:
        """See `Model.prepare`."""
        _demand_prepared(name, list(QUANTITIES), states)
        if out is not None:
            raise StateError(
                "out is for target 'cuda': a prepared call on the CPU has its own array"
            )
        if external:
            raise StateError(
                f"external is for target 'cuda': on the CPU give wrenches to model.{name}"
            )
        if name == "forward_dynamics_derivatives":
            return self._prepare_derivatives(states)
        routine = self.tier.ready(name, states=int(states or 1))
        out = answer = routine.empty(*([] if states is None else [int(states)]))
        method: Callable[..., Any] = partial(self.quantity, name)
        if name == "inverse_dynamics_derivatives":
            answer = InverseDerivatives(*(out[..., k, :, :] for k in range(3)))
            method = self.model.inverse_dynamics_derivatives
        return routine.prepared(states, out, answer, method)

    def _prepare_derivatives(self, states: int | None) -> Callable[..., ForwardDerivatives]:
        forward, a = self.bound("forward_dynamics", states)
        respond, out = self.bound("forward_dynamics_derivatives", states)
        found = ForwardDerivatives(*(out[..., k, :, :] for k in range(3)))
        method = self.model.forward_dynamics_derivatives

        def call(q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> ForwardDerivatives:
            if forward(q, v, tau, a) is None or respond(q, v, a, out) is None:
                return method(q, v, tau)
            return found

        return call

    def bound(
        self, name: str, states: int | None = None, external: np.ndarray | None = None
    ) -> tuple[Callable[..., Any], np.ndarray]:
        """The compiled code for one state or for rows of several, and an array for its results.

        Args:
            external: (links, 6) wrenches in joint frames on one state, read at each call.
        """
        routine = self.tier.ready(name, external is not None, states=int(states or 1))
        if external is not None:
            return routine.pushed(external), routine.empty()
        if states is None:
            return routine.single, routine.empty()
        return routine.several(int(states)), routine.empty(int(states))


def _demand_arrays(name: str, arrays: Sequence[Any]) -> None:
    names = QUANTITIES[name].inputs
    if len(arrays) != len(names):
        raise TypeError(f"{name} takes {len(names)} arrays ({', '.join(names)}), got {len(arrays)}")


def _demand_prepared(name: str, ready: Sequence[str], states: Any) -> None:
    if name not in ready:
        raise UnknownNameError(f"cannot prepare {name!r}: choose from {choices(ready, 20)}")
    if states is not None and (not is_number(states) or states < 1 or states != int(states)):
        raise StateError(f"states must be a whole number of 1 or more, got {states!r}")


def _demand_external(name: str) -> None:
    if not QUANTITIES[name].passes.external:
        raise StateError(f"{name} does not depend on external wrenches: leave external out")


class CudaDynamics:
    """The dynamics of one model on a GPU; arrays come and go as CuPy arrays.

    `source` is the model that was compiled, whose routines run on the CPU.
    """

    compile_options: tuple[str, str, bool] | None = None

    def __init__(self, model: Model, dtype: str) -> None:
        self.tier, self.source = CudaTier(model, dtype), model

    def quantity(
        self, name: str, *arrays: Any, external: External | None = None, threads: int | str = "auto"
    ) -> Any:
        """Any quantity of `equations.quantities` that has straight-line code."""
        if not QUANTITIES[name].straight_line:
            raise _not_on_cuda(name)
        _demand_arrays(name, arrays)
        if external is None:
            return self.tier.run(name, *arrays)
        _demand_external(name)
        return self.tier.run(name, *arrays, external=self._wrenches(external))

    def _wrenches(self, external: External) -> list[tuple[int, Any]]:
        return [(self.source.body_index(body), F) for body, F in external.items()]

    def prepare(
        self, name: str, states: int | None, out: Any, external: bool
    ) -> Callable[..., Any]:
        """See `Model.prepare`."""
        _demand_prepared(name, [each for each, q in QUANTITIES.items() if q.straight_line], states)
        if external:
            _demand_external(name)
        return self.tier.prepare(name, states, out, external)

    def rollout(
        self, q: Any, v: Any, tau: Any, dt: float, external: External | None
    ) -> tuple[Any, Any]:
        """See `Model.rollout`."""
        if friction.needs_implicit_step(self.source, dt):
            raise StateError(
                f"dt = {dt:g} s is too long for the friction of the joints on target 'cuda': take "
                f"{friction.EXPLICIT / self.source.friction_rate.rate:.3g} s or less"
            )
        wrenches = None if external is None else self._wrenches(external)
        return self.tier.rollout(q, v, tau, dt, wrenches)


def best_target() -> str:
    """``cuda`` where this process has CuPy and an NVIDIA GPU, else ``cpu``."""
    try:
        cupy()
    except StateError:
        return "cpu"
    return "cuda"


def _not_on_cuda(name: str) -> StateError:
    there = choices([each for each, q in QUANTITIES.items() if q.straight_line], 20)
    return StateError(
        f"{name} is not there on target 'cuda'; it has {there}. "
        "Call it on the model that was compiled."
    )


def compiled(model: Model, target: str, dtype: str, background: bool) -> Model:
    """See `Model.compile`."""
    if target not in DTYPES:
        raise StateError(f"target must be one of {choices(DTYPES)}, got {target!r}")
    if dtype not in DTYPES[target]:
        raise StateError(
            f"dtype on target {target!r} must be one of {choices(DTYPES[target])}, got {dtype!r}"
        )
    twin = dataclasses.replace(model)
    if target == "cuda":
        made = CudaDynamics(model, dtype)
    else:
        made = Dynamics(twin, FusedTier(model, background))
    made.compile_options = (target, dtype, background)
    twin.__dict__["dynamics"] = made
    return twin


def _plain_rows(model: Model, *arrays: Any) -> tuple[np.ndarray, ...] | None:
    """(N, n) of contiguous (..., n) float64 arrays of one shape: common, and quick to check."""
    if model.free_base or not model.nv:  # the quaternion must be checked
        return None
    for array in arrays:
        if not (
            type(array) is np.ndarray
            and array.dtype == np.float64
            and array.shape == arrays[0].shape
            and array.shape[-1:] == (model.nv,)
            and array.flags.c_contiguous
        ):
            return None
    return tuple([array.reshape(-1, model.nv) for array in arrays])


class CallArrays:
    """Arrays of a call, checked for size, broadcast to one batch shape, as contiguous rows.

    Kernels check that all numbers are finite; `demand_finite` names one that is not.

    Args:
        numbers: Of the result for one state.
    """

    def __init__(
        self,
        model: Model,
        quantity: str,
        arrays: Sequence[ArrayLike],
        numbers: int,
        external: External | None = None,
    ) -> None:
        self._model, self._quantity, self._numbers = model, quantity, numbers
        names = QUANTITIES[quantity].inputs
        self._given = dict(zip(names, arrays, strict=True))
        self.v = self.x = self.external = None
        if external is None:
            plain = _plain_rows(model, *arrays)
            if plain is not None:
                self.q, (self.v, self.x) = plain[0], (*plain[1:], None, None)[:2]
                self.batch = np.shape(arrays[0])[:-1]
                self._demand_memory()
                return
        checked = self._checked(finite=False)
        wrenches = None if external is None else link_wrenches(model, external)
        shapes = [array.shape[:-1] for array in checked]
        shapes += [] if wrenches is None else [wrenches.shape[:-2]]
        whose = [*names, *([] if external is None else ["external wrenches"])]
        self.batch = common_batch(shapes, ", ".join(whose))
        self._demand_memory()
        rows = [self._rows(array, array.shape[-1:]) for array in checked]
        self.q, (self.v, self.x) = rows[0], (*rows[1:], None, None)[:2]
        if wrenches is not None:
            self.external = self._rows(wrenches, wrenches.shape[-2:])

    def _demand_memory(self) -> None:
        what = self._quantity.replace("_", " ")
        refuse_states(f"the {what}", math.prod(self.batch), self._numbers)

    def _checked(self, finite: bool) -> list[np.ndarray]:
        model = self._model
        return [
            model.check_configuration(array, finite=finite)
            if name == "q"
            else model.check_velocity(array, name, finite=finite)
            for name, array in self._given.items()
        ]

    def _rows(self, array: np.ndarray, tail: tuple[int, ...]) -> np.ndarray:
        full = np.broadcast_to(array, (*self.batch, *tail))
        return np.ascontiguousarray(full.reshape(math.prod(self.batch), *tail))

    def demand_finite(self) -> None:
        """Raise a `StateError` that names the first number that is not finite."""
        self._checked(finite=True)


def _wrench(body: str, wrench: ArrayLike) -> np.ndarray:
    """(..., 6) an external wrench, or a `StateError` with the reason."""
    try:
        array = np.asarray(wrench, dtype=float)
        if array.ndim and array.shape[-1] == 6:
            finite = np.isfinite(array)
            if finite.all():
                return array
            where = tuple(np.argwhere(~finite)[0].tolist())
            got = f"{array[where]} at {list(where)}"
        else:
            got = f"shape {array.shape}"
    except (TypeError, ValueError, OverflowError):
        got = repr(wrench)[:60]
    raise StateError(
        f"the external wrench on {body!r} is six finite numbers (force, then torque, in the "
        f"body's frame), got {got}"
    )


def link_wrenches(model: Model, external: External) -> np.ndarray:
    """(..., links, 6) wrenches in joint frames, from wrenches on bodies in their own frames."""
    if not isinstance(external, Mapping):
        raise StateError(
            f"external is a mapping from body names to wrenches, got {type(external).__name__}"
        )
    given = [(model.body_index(body), _wrench(body, w)) for body, w in external.items()]
    return model._on_links(given)


def external_forces(model: Model, q: ArrayLike, external: External) -> np.ndarray:
    """(..., nv) generalized forces J^T F of external wrenches on bodies. [N m, N]"""
    rest = np.zeros(model.nv)
    return model.gravity_torque(q) - model.inverse_dynamics(q, rest, rest, external)


def external_slopes(model: Model, q: np.ndarray, external: External) -> np.ndarray:
    """(nv, nv) derivative of `external_forces` by q at one state.

    A column of a body's Jacobian changes with the joints between it and the body:
    ``dJ_i / dq_k = ad(J_i) J_k`` for i before k, in the body's frame.
    """
    found = np.zeros((model.nv, model.nv))
    for body, wrench in external.items():
        J = model.jacobian(q, body)
        found += np.triu(_wrench(body, wrench) @ se3.ad(J.T) @ J, 1)
    found[:, : model.joint_slice_v.start] = 0.0  # a base carries its body along
    return found


def _why_not_finite(model: Model, q: np.ndarray) -> str:
    """Reason why finite states have no finite result: a joint that moves nothing, or size."""
    if not np.sum(model.mass) > 0:
        return "the organism has no mass"
    M = model.mass_matrix(q)
    if not np.isfinite(M).all():
        return "the numbers are too large: products of these displacements overflow"
    rest = np.zeros((len(q), model.nv))
    forward = model.dynamics.tier.routine("forward_dynamics")
    if forward.batch(q, rest, rest, None, 1) is not None:  # at rest and without forces it is finite
        return "the numbers are too large: products of these velocities or forces overflow"
    joints = np.diagonal(M, axis1=-2, axis2=-1)[..., model.joint_slice_v]
    empty = np.flatnonzero(np.min(np.abs(joints), axis=0) == 0)
    if len(empty):
        names = choices(model.joint_names[k] for k in empty)
        return (
            f"forward dynamics is singular: all mass beyond {names} lies on the joint's axis and "
            "has no inertia about it; build the model with hinges='physical' if it has dyad "
            "hinges, or give that module an inertia"
        )
    return (
        "forward dynamics is singular: some joints move the same mass in the same way; "
        "give the modules between them an inertia"
    )


def cpu_model(user: str, model: Any) -> Model:
    """`model` itself if it runs on the CPU, or an error that names what takes it, the `user`."""
    if not isinstance(model, Model):
        given = type(model).__name__
        raise StateError(f"{user} takes a model such as organism.model(), got {given}")
    if isinstance(model.dynamics, CudaDynamics):
        raise StateError(f"{user} runs on the CPU; pass the model that was compiled for 'cuda'")
    return model


class BoundToModel:
    """Base of objects that prepare compiled code of their model: a copy makes it anew.

    Copies have a memory of their own; the model, which never changes, is shared.
    """

    BOUND: ClassVar[tuple[str, ...]]  # attributes that `_bind` makes

    def _bind(self) -> None:
        raise NotImplementedError

    def __copy__(self) -> Self:
        twin = object.__new__(type(self))
        kept = self.__getstate__().items()
        twin.__setstate__({k: x if k == "model" else copy.copy(x) for k, x in kept})
        return twin

    def __deepcopy__(self, memo: Any) -> Self:
        return self.__copy__()

    def __getstate__(self) -> dict[str, Any]:
        return {k: x for k, x in vars(self).items() if k not in self.BOUND}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._bind()


# -- discrete time -------------------------------------------------------------------------------


def step(
    model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike, dt: float
) -> tuple[np.ndarray, np.ndarray]:
    """See `Model.step`."""
    if isinstance(model.dynamics, CudaDynamics):
        raise _not_on_cuda("step")
    after = stepped_velocity(model, q, v, tau, positive("dt", dt, "seconds"))
    return stepped_state(model, q, v, after, dt)


def rollout(
    model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike, dt: float,
    external: External | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """See `Model.rollout`."""
    h = positive("dt", dt, "seconds")
    if isinstance(model.dynamics, CudaDynamics):
        return model.dynamics.rollout(q, v, tau, h, external)
    tau = model.check_velocity(tau, "tau")
    if tau.ndim < 2 or not len(tau):
        raise StateError(f"tau has shape {tau.shape}, expected (steps, ..., {model.nv})")
    path = []
    for each in tau:
        q, v = stepped_state(model, q, v, stepped_velocity(model, q, v, each, h, external), h)
        path.append((q, v))
    return np.stack([q for q, _ in path]), np.stack([v for _, v in path])


def stepped_state(
    model: Model, q: ArrayLike, v: ArrayLike, after: np.ndarray, dt: float
) -> tuple[np.ndarray, np.ndarray]:
    """(q, v) after a step from the state (q, v), whose velocity `after` is in its first frame.

    The origin of a free base keeps its velocity in the world while the base turns; see
    docs/theory/contact.md.
    """
    if not model.free_base:
        return model.integrate(q, dt * after), after
    slide, turn = np.zeros_like(after), dt * after
    slide[..., :3] = dt * _world_velocity(model.check_velocity(v), after, dt)
    turn[..., :3] = 0.0
    result = after.copy()
    result[..., :3] = (so3.exp(-turn[..., 3:6]) @ slide[..., :3, None])[..., 0] / dt
    return model.integrate(model.integrate(q, slide), turn), result


def _world_velocity(v: np.ndarray, after: np.ndarray, dt: float) -> np.ndarray:
    """(..., 3) velocity v + dt (dv/dt + w x v) of a free base's origin, in the frame of v."""
    return after[..., :3] + dt * np.cross(v[..., 3:6], v[..., :3])


def stepped_velocity(
    model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike, dt: float,
    external: External | None = None,
) -> np.ndarray:  # fmt: skip
    """(..., nv) velocity after a semi-implicit Euler step; friction that is stiff is implicit."""
    v = model.check_velocity(v)
    if not friction.needs_implicit_step(model, dt):
        return v + dt * model.forward_dynamics(q, v, tau, external)
    tau = model.check_velocity(tau, "tau")
    bias = model.inverse_dynamics(q, v, np.zeros(model.nv), external)
    return implicit_step_velocity(model, q, v, tau, dt, model.mass_matrix(q), bias, external)


def implicit_step_velocity(
    model: Model, q: ArrayLike, v: np.ndarray, tau: np.ndarray, dt: float,
    M: np.ndarray, bias: np.ndarray, external: External | None = None,
    slopes: tuple[np.ndarray, np.ndarray] | None = None,
) -> np.ndarray:  # fmt: skip
    """(..., nv) velocity after a step with the friction of its end; an error if there is none.

    Args:
        M: (..., nv, nv) mass matrix at q.
        bias: (..., nv) inverse dynamics without acceleration, friction included.
        slopes: (..., nv) derivatives by q and by v of forces in `tau` that act at the end, too.
    """
    push = tau - (bias - friction.force(model, v))
    if slopes is not None:
        # M (v+ - v) = dt (push + dF/dq dt v+ + dF/dv (v+ - v)), solved for v+ - v
        dq, dv = slopes
        M = M - (dt * dv + dt * dt * dq)[..., None] * np.eye(model.nv)
        push += dt * dq * v
    after = friction.implicit_velocity(model, M, v, push, dt)
    if not np.isfinite(after).all():
        model.forward_dynamics(q, v, tau, external)  # raises the reason if it finds one
        raise StateError("the step has no finite velocity: the numbers are too large")
    return after


def step_derivatives(
    model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike, dt: float
) -> StepDerivatives:
    """See `Model.step_derivatives`."""
    if isinstance(model.dynamics, CudaDynamics):
        raise _not_on_cuda("step_derivatives")
    v = model.check_velocity(v)
    after = stepped_velocity(model, q, v, tau, positive("dt", dt, "seconds"))
    return step_jacobians(model, v, after, step_slopes(model, q, v, tau, after, dt), dt)


def step_slopes(
    model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike, after: np.ndarray, dt: float
) -> ForwardDerivatives:
    """Derivatives of ``(after - v) / dt``, the mean acceleration of a step.

    With friction taken implicitly they are those of ``M a + bias + friction(v + dt a) = tau``.
    """
    if not friction.needs_implicit_step(model, dt):
        return model.forward_dynamics_derivatives(q, v, tau)
    v = model.check_velocity(v)
    by = model.inverse_dynamics_derivatives(q, v, (after - v) / dt)
    unit = np.eye(model.nv)
    before, behind = (friction.slope(model, x)[..., None] * unit for x in (v, after))
    dtau = np.linalg.inv(by.da + dt * behind)
    return ForwardDerivatives(-dtau @ by.dq, dtau @ (before - by.dv - behind), dtau)


def step_jacobians(
    model: Model, v: np.ndarray, after: np.ndarray, slopes: ForwardDerivatives, dt: float
) -> StepDerivatives:
    """Jacobians of a step from v to `after` (see `stepped_state`), from its mean slopes."""
    unit = np.eye(model.nv)
    v_q, v_v, v_tau = dt * slopes.dq, unit + dt * slopes.dv, dt * slopes.dtau
    kept = moved = turned = unit  # of q before; of `after` on q and on v
    if model.free_base:
        linear, angular = np.split(v[..., :6], 2, axis=-1)
        v_v[..., :3, :6] += dt * np.concatenate([so3.hat(angular), -so3.hat(linear)], axis=-1)
        kept, moved, turned = _base_transport(model, _world_velocity(v, after, dt), after, dt)
    A = np.concatenate(
        [
            np.concatenate([kept + dt * moved @ v_q, dt * moved @ v_v], axis=-1),
            np.concatenate([turned @ v_q, turned @ v_v], axis=-1),
        ],
        axis=-2,
    )
    return StepDerivatives(A, np.concatenate([dt * moved @ v_tau, turned @ v_tau], axis=-2))


def _base_transport(
    model: Model, u: np.ndarray, after: np.ndarray, dt: float
) -> tuple[np.ndarray, ...]:
    """(..., nv, nv) derivatives of `stepped_state`: of q by q, of q (over dt) and v by (u, w)."""
    w = dt * after[..., 3:6]
    E, J = so3.exp(-w), so3.left_jacobian(-w)  # from the old frame to the new; right Jacobian
    kept, moved, turned = (
        np.broadcast_to(np.eye(model.nv), (*after.shape, model.nv)).copy() for _ in range(3)
    )
    kept[..., :3, :3] = kept[..., 3:6, 3:6] = moved[..., :3, :3] = turned[..., :3, :3] = E
    kept[..., :3, 3:6] = -dt * E @ so3.hat(u)
    moved[..., 3:6, 3:6] = J
    turned[..., :3, 3:6] = dt * so3.hat((E @ u[..., None])[..., 0]) @ J
    return kept, moved, turned


def linearize(model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> StateSpace:
    """See `Model.linearize`."""
    slopes = model.forward_dynamics_derivatives(q, v, tau)
    drift = np.zeros_like(slopes.dq)
    if model.free_base:  # a deviation in the base's frame turns with the base
        drift[..., :6, :6] = -se3.ad(model.check_velocity(v)[..., :6])
    unit = np.broadcast_to(np.eye(model.nv), drift.shape)
    above = np.concatenate([drift, unit], axis=-1)
    below = np.concatenate([slopes.dq, slopes.dv], axis=-1)
    still = np.zeros_like(slopes.dtau)
    return StateSpace(
        A=np.concatenate([above, below], axis=-2),
        B=np.concatenate([still, slopes.dtau], axis=-2),
    )
