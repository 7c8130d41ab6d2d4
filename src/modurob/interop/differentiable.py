"""Differentiable functions of a model for frameworks with automatic differentiation.

One table holds the value and the exact Jacobian of each function; `torch`, `jax` and `casadi` hand
them to their frameworks. Every function takes rows (..., n) of one batch shape.

A free base's seven numbers in q are a position and a quaternion. The functions divide that
quaternion by its norm, so gradients and Jacobians are those by all seven numbers, as plain
differences find them: no step in q has to stay on the unit sphere.
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from modurob.checks import positive
from modurob.compiler.routine import thread_count
from modurob.compiler.tiers import FusedTier
from modurob.dynamics import cpu_model
from modurob.errors import ModurobError, StateError, UnknownNameError, choices
from modurob.model import Model
from modurob.spatial import so3

Shape = tuple[int, ...]
# Framework: oldest version that is known to work, the first one that is not known, and its name.
VERSIONS = {
    "torch": ((2, 11), (3,), "PyTorch"),
    "jax": ((0, 8), (1,), "JAX"),
    "casadi": ((3, 6, 7), (4,), "CasADi"),
}
DTYPES = ("float64", "float32")
REVERSED = ("inverse_dynamics", "forward_dynamics")  # whose gradients a compiled model has code for
# of a function, where PyTorch or JAX ask for more
ONCE = "can be differentiated once: modurob.interop.casadi.graph has derivatives of any order"


def framework(name: str) -> Any:
    """A framework's module, or an error with the way to install a version that is known."""
    least, beyond, title = VERSIONS[name]
    install = f"pip install 'modurob[{name}]'"
    try:
        module = importlib.import_module(name)
    except ImportError:
        raise StateError(f"modurob.interop.{name} needs {title}: {install}") from None
    numbers = tuple(int(part) for part in re.findall(r"\d+", module.__version__)[:3])
    if not least <= numbers < beyond:
        least, beyond = (".".join(map(str, each)) for each in (least, beyond))
        raise StateError(
            f"modurob.interop.{name} works with {title} from {least} to below {beyond}, "
            f"found {module.__version__}: {install}"
        )
    return module


class Entry(NamedTuple):
    """A function of the table.

    Attributes:
        inputs: Names of the arrays: q has nq numbers, all others have nv.
        outputs: Shapes by name; "nq" and "nv" stand for numbers of the model.
        value: ``value(model, *arrays, **options)`` gives a tuple, one array for each output.
        jacobians: Likewise, for each output a tuple with one (..., numbers, nv) for each input;
            q is in the tangent space, as in `Model.integrate`, before and after.
        options: What else it takes, with the check of each.
    """

    inputs: tuple[str, ...]
    outputs: dict[str, tuple[int | str, ...]]
    value: Callable[..., tuple[np.ndarray, ...]]
    jacobians: Callable[..., tuple[tuple[np.ndarray, ...], ...]]
    options: Mapping[str, Callable[[Model, Any], Any]] = {}


def _body_pose(model: Model, q: np.ndarray, body: int) -> tuple[np.ndarray]:
    return (model.forward_kinematics(q)[..., body, :, :],)


def _body_pose_jacobians(model: Model, q: np.ndarray, body: int) -> Any:
    """T by q: ``dT = T hat(J dq)`` with the Jacobian in the body's frame."""
    R, J = _body_pose(model, q, body)[0][..., :3, :3], model.jacobian(q, body)
    found = np.zeros((*J.shape[:-2], 4, 4, model.nv))
    turned = R[..., None, :, :] @ so3.hat(np.swapaxes(J[..., 3:, :], -1, -2))
    found[..., :3, :3, :] = np.moveaxis(turned, -3, -1)
    found[..., :3, 3, :] = R @ J[..., :3, :]
    return ((found.reshape(*J.shape[:-2], 16, model.nv),),)


def _matrix_slopes(model: Model, q: np.ndarray) -> np.ndarray:
    """(..., 6, nv, nv) derivatives of the centroidal momentum matrix by q, which come last.

    They are its rates under one unit velocity after the other.
    """
    rates = model.centroidal_momentum_matrix_rate(q[..., None, :], np.eye(model.nv))
    return np.moveaxis(rates, -3, -1)


def _matrix_jacobians(model: Model, q: np.ndarray) -> Any:
    slopes = _matrix_slopes(model, q)
    return ((slopes.reshape(*q.shape[:-1], 6 * model.nv, model.nv),),)


def _momentum(model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray]:
    return ((model.centroidal_momentum_matrix(q) @ v[..., None])[..., 0],)


def _momentum_jacobians(model: Model, q: np.ndarray, v: np.ndarray) -> Any:
    slopes = np.einsum("...ijk,...j->...ik", _matrix_slopes(model, q), v)
    return ((slopes, model.centroidal_momentum_matrix(q)),)


def _center_jacobians(model: Model, q: np.ndarray) -> Any:
    return ((model.centroidal_momentum_matrix(q)[..., :3, :] / model.mass.sum(),),)


def _step(
    model: Model, q: np.ndarray, v: np.ndarray, tau: np.ndarray, dt: float
) -> tuple[np.ndarray, np.ndarray]:
    """`Model.step` with the quaternion, of the two for one rotation, next to that before."""
    q_next, v_next = model.step(q, v, tau, dt)
    if model.free_base:
        turned = np.sum(q[..., 3:7] * q_next[..., 3:7], axis=-1, keepdims=True) < 0
        q_next[..., 3:7] = np.where(turned, -q_next[..., 3:7], q_next[..., 3:7])
    return q_next, v_next


def _step_jacobians(model: Model, q: np.ndarray, v: np.ndarray, tau: np.ndarray, dt: float) -> Any:
    (A, B), nv = model.step_derivatives(q, v, tau, dt), model.nv
    rows = (slice(nv), slice(nv, None))
    return tuple((A[..., row, :nv], A[..., row, nv:], B[..., row, :]) for row in rows)


FUNCTIONS: dict[str, Entry] = {
    "inverse_dynamics": Entry(
        ("q", "v", "a"),
        {"tau": ("nv",)},
        lambda model, *state: (model.inverse_dynamics(*state),),
        lambda model, *state: (tuple(model.inverse_dynamics_derivatives(*state)),),
    ),
    "forward_dynamics": Entry(
        ("q", "v", "tau"),
        {"a": ("nv",)},
        lambda model, *state: (model.forward_dynamics(*state),),
        lambda model, *state: (tuple(model.forward_dynamics_derivatives(*state)),),
    ),
    "forward_kinematics": Entry(
        ("q",), {"T": (4, 4)}, _body_pose, _body_pose_jacobians, {"body": Model.body_index}
    ),
    "center_of_mass": Entry(
        ("q",), {"c": (3,)}, lambda model, q: (model.center_of_mass(q),), _center_jacobians
    ),
    "centroidal_momentum_matrix": Entry(
        ("q",),
        {"A": (6, "nv")},
        lambda model, q: (model.centroidal_momentum_matrix(q),),
        _matrix_jacobians,
    ),
    "centroidal_momentum": Entry(("q", "v"), {"h": (6,)}, _momentum, _momentum_jacobians),
    "step": Entry(
        ("q", "v", "tau"),
        {"q": ("nq",), "v": ("nv",)},
        _step,
        _step_jacobians,
        {"dt": lambda model, dt: positive("dt", dt, "seconds")},
    ),
}


class DifferentiableFunction:
    """A function of the table for one model: values, Jacobians and their products with weights.

    Args:
        name: One of `FUNCTIONS`.
        options: Those of the function: ``body`` of forward kinematics, ``dt`` of a step. [s]

    Attributes:
        sizes: Numbers of each input.
        shapes: Of each output for one state.
    """

    def __init__(self, model: Model, name: str, options: Mapping[str, Any]) -> None:
        self.entry, self.options = checked(model, name, options)
        self.name, self.model = name, cpu_model(f"{name}()", model)
        known = {"nq": model.nq, "nv": model.nv}
        self.sizes = [model.nq if each == "q" else model.nv for each in self.entry.inputs]
        self.shapes: list[Shape] = [
            tuple(known[n] if isinstance(n, str) else n for n in shape)
            for shape in self.entry.outputs.values()
        ]
        self._value = partial(self.entry.value, self.model, **self.options)
        self._jacobians = partial(self.entry.jacobians, self.model, **self.options)
        self._regular = False  # whether forward dynamics is known not to be singular

    def value(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """Outputs for rows (..., n); float64 arrays are read where they are."""
        return self._value(*self._unit(arrays))

    def jacobians(self, *arrays: np.ndarray) -> list[list[np.ndarray]]:
        """(..., numbers of the output, numbers of the input) for each output and input."""
        outputs = self._value(*self._unit(arrays)) if "q" in self.entry.outputs else None
        found = []
        for k, row in enumerate(self._jacobians(*self._unit(arrays))):
            blocks = list(row)
            if outputs is not None and list(self.entry.outputs)[k] == "q":
                lifted = self._to_tangent(outputs[k], np.eye(self.model.nq))
                blocks = [lifted @ block for block in blocks]
            blocks[0] = self._by_entries(arrays[0], blocks[0])
            found.append(blocks)
        return found

    def value_or_nan(self, *arrays: np.ndarray) -> Sequence[np.ndarray]:
        """As `value`, with NaN for states that are refused, such as infinite ones.

        A body whose forward dynamics is singular is an error.
        """
        return self._or_nan(self.value, self.shapes, arrays)

    def jacobians_or_nan(self, *arrays: np.ndarray) -> Sequence[np.ndarray]:
        """As `jacobians`, in one list, with NaN for states that are refused."""

        def flat(*rows: np.ndarray) -> list[np.ndarray]:
            return [block for row in self.jacobians(*rows) for block in row]

        blocks = [(math.prod(shape), size) for shape in self.shapes for size in self.sizes]
        return self._or_nan(flat, blocks, arrays)

    def pullback(
        self, arrays: Sequence[np.ndarray], weights: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """Gradients by the inputs of the sum of all outputs times their weights.

        A compiled model has code of its own for those of its dynamics.
        """
        tier = self.model.dynamics.tier
        if self.name in REVERSED and isinstance(tier, FusedTier):
            found = self._reversed(tier, arrays, weights[0])
            if found is not None:
                return found
        batch, total = arrays[0].shape[:-1], [np.zeros(1)] * len(arrays)
        for weight, row in zip(weights, self.jacobians(*arrays), strict=True):
            flat = weight.reshape(*batch, 1, row[0].shape[-2])
            total = [before + flat @ block for before, block in zip(total, row, strict=True)]
        return [each[..., 0, :] for each in total]

    def _reversed(
        self, tier: FusedTier, arrays: Sequence[np.ndarray], weights: np.ndarray
    ) -> list[np.ndarray] | None:
        """Gradients by reverse differentiation; None where a number is not finite."""
        routine, model, batch = tier.gradient(self.name), self.model, arrays[0].shape[:-1]
        if routine is None:
            return None
        unit = self._unit(arrays)
        states = math.prod(batch)
        q, v, x = (np.ascontiguousarray(x.reshape(states, x.shape[-1])) for x in unit)
        given = np.zeros((states, 6 * len(model.mass)))  # in the place of external wrenches
        given[:, : model.nv] = weights.reshape(states, model.nv)
        found = routine.batch(q, v, x, given, thread_count("auto", len(q) * model.nv))
        if found is None:
            return None
        if model.free_base:  # the quaternion counts as four independent numbers there
            u, norm = q[:, 3:7], np.linalg.norm(arrays[0][..., 3:7], axis=-1).reshape(-1, 1)
            slope = found[:, 3:7]
            found[:, 3:7] = (slope - u * np.sum(u * slope, axis=-1, keepdims=True)) / norm
        parts = np.split(found, np.cumsum(self.sizes)[:-1], axis=-1)
        return [part.reshape(*batch, part.shape[-1]) for part in parts]

    def _or_nan(
        self,
        compute: Callable[..., Sequence[np.ndarray]],
        shapes: Sequence[Shape],
        arrays: Sequence[np.ndarray],
    ) -> Sequence[np.ndarray]:
        """Results for rows (..., n), of one shape for each state; NaN for states it refuses."""
        with suppress(ModurobError):
            return compute(*arrays)
        batch = arrays[0].shape[:-1]
        rows = [x.reshape(math.prod(batch), x.shape[-1]) for x in arrays]
        results = [np.full((len(rows[0]), *shape), np.nan) for shape in shapes]
        finite = np.all([np.isfinite(x).all(axis=1) for x in rows], axis=0)
        groups = [np.flatnonzero(finite)]
        while groups:  # halves, until each group is computed or one state
            group, found = groups.pop(), None
            with suppress(ModurobError):
                found = compute(*(x[group] for x in rows))
            if found is None:
                self._demand_inertia()
                groups += np.array_split(group, 2) if len(group) > 1 else []
                continue
            for result, value in zip(results, found, strict=True):
                result[group] = value
        return [x.reshape(*batch, *x.shape[1:]) for x in results]

    def _demand_inertia(self) -> None:
        """Refuse a body whose forward dynamics is singular in all configurations."""
        if "tau" in self.entry.inputs and not self._regular:
            rest = np.zeros(self.model.nv)
            q = self.model.random_configuration(np.random.default_rng(0))
            self.model.forward_dynamics(q, rest, rest)
            self._regular = True

    def _unit(self, arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """The arrays, with a free base's quaternion at norm 1."""
        q = arrays[0]
        if not self.model.free_base or so3.is_unit(q[..., 3:7]):
            return arrays
        norm = np.linalg.norm(q[..., 3:7], axis=-1, keepdims=True)
        if not np.all(norm > 0):
            raise StateError("q[..., 3:7] is the base's quaternion: zeros or NaN are no rotation")
        unit = q[..., 3:7] / norm
        return (np.concatenate([q[..., :3], unit, q[..., 7:]], axis=-1), *arrays[1:])

    def _by_entries(self, q: np.ndarray, J: np.ndarray) -> np.ndarray:
        """(..., m, nq) Jacobian by the entries of q from that (..., m, nv) in the tangent space.

        The twist of a change of the entries: R^T dp and 2 Q^T d(quaternion), see `_turning`.
        """
        if not self.model.free_base:
            return J
        norm = np.linalg.norm(q[..., 3:7], axis=-1)[..., None, None]
        R, Q = _turning(q[..., 3:7] / norm[..., 0])
        parts = [J[..., :3] @ np.swapaxes(R, -1, -2)]
        parts += [2 / norm * J[..., 3:6] @ np.swapaxes(Q, -1, -2), J[..., 6:]]
        return np.concatenate(parts, axis=-1)

    def _to_tangent(self, q: np.ndarray, W: np.ndarray) -> np.ndarray:
        """(..., m, nv) weights on the tangent space at q from those (m, nq) on its entries."""
        if not self.model.free_base:
            return W
        R, Q = _turning(q[..., 3:7])
        joints = np.broadcast_to(W[..., 7:], (*q.shape[:-1], *W[..., 7:].shape))
        return np.concatenate([W[..., :3] @ R, W[..., 3:7] @ Q / 2, joints], axis=-1)


def _turning(quaternion: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(..., 3, 3) R, and (..., 4, 3) Q: a quaternion changes by ``Q w / 2`` under a velocity w."""
    axis, w = quaternion[..., :3], quaternion[..., 3]
    upper = so3.hat(axis) + w[..., None, None] * np.eye(3)
    Q = np.concatenate([upper, -axis[..., None, :]], axis=-2)
    return so3.from_quaternion(quaternion), Q


def checked(model: Model, name: str, options: Mapping[str, Any]) -> tuple[Entry, dict[str, Any]]:
    """An entry of the table and its options, or an error that says which there are."""
    if name not in FUNCTIONS:
        raise UnknownNameError(f"no function {name!r}: choose from {choices(FUNCTIONS)}")
    if not isinstance(model, Model):
        given = type(model).__name__
        raise StateError(f"{name} takes a model such as organism.model(), got {given}")
    entry = FUNCTIONS[name]
    for each in options:
        if each not in entry.options:
            takes = choices(entry.options) if entry.options else "no options"
            raise StateError(
                f"{name} takes {takes}, got {each!r}: ground, joint stops and external wrenches "
                "have no derivatives here; modurob.simulate and Model have them without"
            )
    missing = [each for each in entry.options if each not in options]
    if missing:
        raise StateError(f"{name} needs {choices(missing)}: give it as a keyword")
    return entry, {each: check(model, options[each]) for each, check in entry.options.items()}


def demand_rows(
    name: str, inputs: Sequence[str], sizes: Sequence[int], arrays: Sequence[Any]
) -> tuple[str, Shape]:
    """Type of the numbers and batch shape of all arrays, or an error for what does not fit.

    Args:
        arrays: Arrays or tensors of any framework, with ``shape`` and ``dtype``.
    """
    if len(arrays) != len(inputs):
        takes = ", ".join(inputs)
        raise StateError(f"{name} takes {len(inputs)} arrays, {takes}, got {len(arrays)}")
    types = [str(array.dtype).removeprefix("torch.") for array in arrays]
    if types[0] not in DTYPES or types.count(types[0]) < len(types):
        got = ", ".join(f"{each} {kind}" for each, kind in zip(inputs, types, strict=True))
        raise StateError(f"{name} takes arrays that are all {' or all '.join(DTYPES)}, got {got}")
    shapes = [tuple(array.shape) for array in arrays]
    for each, size, shape in zip(inputs, sizes, shapes, strict=True):
        if not shape or shape[-1] != size:
            raise StateError(f"{each} of {name} has shape {shape}, expected (..., {size})")
    batches = {shape[:-1] for shape in shapes}
    try:
        return types[0], batches.pop() if len(batches) == 1 else np.broadcast_shapes(*batches)
    except ValueError:
        got = ", ".join(map(str, shapes))
        raise StateError(f"the batch shapes of {name} do not fit together: {got}") from None
