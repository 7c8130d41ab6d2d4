"""Functions of a model in JAX, with exact derivatives.

    step = modurob.interop.jax.function(model, "step", dt=0.01)
    q, v = step(q, v, tau)            # under jit, vmap, grad, jvp, scan

Functions run on the CPU, within the program that JAX has compiled: they read and write its buffers
where these are, through XLA's foreign function interface. float32 arrays are converted, because
code for the CPU has double precision. A state that is not finite gives NaN. From a program on a GPU
they are called back, with copies to main memory and back.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from modurob.errors import StateError
from modurob.interop.differentiable import ONCE, DifferentiableFunction, demand_rows, framework
from modurob.model import Model

API_VERSION = (0, 1)  # of XLA's foreign function interface: the structures below
METADATA, EXECUTE = 1, 3  # its numbers of an extension, and of the stage in which code runs
INTERNAL = 13  # its number of errors that are not the user's
CREATE_ERROR = 48  # bytes before that function in its table: sizes, version, a pointer
TYPES = {11: np.dtype(np.float32), 12: np.dtype(np.float64)}  # its numbers of element types

Compute = Callable[..., Sequence[np.ndarray]]

_targets = count()
_handlers: list[Any] = []  # XLA may call them as long as the process lives


def _structure(name: str, *fields: tuple[str, Any]) -> type[ctypes.Structure]:
    """A structure of the interface, with the size and the extensions that each begins with."""
    head = [("struct_size", ctypes.c_size_t), ("extension", ctypes.c_void_p)]
    return type(name, (ctypes.Structure,), {"_fields_": [*head, *fields]})


_BUFFER = _structure(
    "Buffer",
    ("dtype", ctypes.c_int),
    ("data", ctypes.c_void_p),
    ("rank", ctypes.c_int64),
    ("dims", ctypes.POINTER(ctypes.c_int64)),
)
_BUFFERS = _structure(
    "Buffers",
    ("size", ctypes.c_int64),
    ("types", ctypes.c_void_p),
    ("items", ctypes.POINTER(ctypes.POINTER(_BUFFER))),
)
_CALL = _structure(
    "Call",
    ("api", ctypes.c_void_p),
    ("context", ctypes.c_void_p),
    ("stage", ctypes.c_int),
    ("arguments", _BUFFERS),
    ("results", _BUFFERS),
)
_ERROR = _structure("Error", ("message", ctypes.c_char_p), ("code", ctypes.c_int))
_VERSION = _structure("Version", ("major", ctypes.c_int), ("minor", ctypes.c_int))


class _Metadata(ctypes.Structure):
    _fields_ = (("struct_size", ctypes.c_size_t), ("version", _VERSION))


class _MetadataRequest(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("kind", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("metadata", ctypes.POINTER(_Metadata)),
    )


def _arrays(buffers: Any) -> list[np.ndarray]:
    """Arrays on the memory of XLA's buffers."""
    found = []
    for k in range(buffers.size):
        buffer = buffers.items[k].contents
        shape, dtype = tuple(buffer.dims[: buffer.rank]), TYPES[buffer.dtype]
        size = int(np.prod(shape)) * dtype.itemsize
        memory = (ctypes.c_char * size).from_address(buffer.data) if size else b""
        found.append(np.frombuffer(memory, dtype=dtype).reshape(shape))
    return found


def _fill(results: Sequence[np.ndarray], compute: Compute, arrays: Sequence[Any]) -> None:
    """Compute results into their memory."""
    found = compute(*(np.asarray(x, dtype=float) for x in arrays))
    for result, value in zip(results, found, strict=True):
        result[...] = value


def _error(api: int, message: str) -> int:
    """An error of XLA, which JAX raises."""
    function: Any = ctypes.c_void_p.from_address(api + CREATE_ERROR).value
    create = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_ERROR))(function)
    return create(_ERROR(ctypes.sizeof(_ERROR), None, message.encode(), INTERNAL))


def _target(compute: Compute) -> str:
    """Register a function of arrays with XLA; the name by which programs call it."""
    jax = framework("jax")

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_CALL))
    def handler(call: Any) -> int | None:
        frame = call.contents
        if frame.extension:
            request = _MetadataRequest.from_address(frame.extension)
            if request.kind == METADATA:  # XLA asks when the function is registered
                version = request.metadata.contents.version
                version.major, version.minor = API_VERSION
                return None
        if frame.stage != EXECUTE:
            return None
        try:
            return _fill(_arrays(frame.results), compute, _arrays(frame.arguments))
        except BaseException as error:  # must not leave: XLA would take any number for an error
            return _error(frame.api, f"{type(error).__name__}: {error}")

    name = f"modurob_{next(_targets)}"
    _handlers.append(handler)
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler), platform="cpu")
    return name


def function(model: Model, name: str, **options: Any) -> Callable[..., Any]:
    """A function of a model that takes and returns arrays of JAX, with derivatives.

    Args:
        model: On the CPU.
        name: One of `modurob.interop.differentiable.FUNCTIONS`, such as ``inverse_dynamics``.
        options: ``body`` of ``forward_kinematics``, ``dt`` of ``step``. [s]

    Returns:
        A callable on arrays (..., n) whose batch shapes broadcast. It returns an array, or
        (q, v) for ``step``. It can be differentiated once, forward and in reverse.
    """
    jax = framework("jax")
    jnp = jax.numpy
    bound = DifferentiableFunction(model, name, options)
    inputs, outputs = len(bound.sizes), len(bound.shapes)
    blocks = [(int(np.prod(shape)), size) for shape in bound.shapes for size in bound.sizes]

    def called(compute: Compute, shapes: Sequence[tuple[int, ...]]) -> Callable[..., Any]:
        """Compiled code as an operation of JAX, on rows of one batch shape."""
        target, batched = _target(compute), {"vmap_method": "broadcast_all"}

        def back(*arrays: Any) -> list[np.ndarray]:
            batch, dtype = arrays[0].shape[:-1], arrays[0].dtype
            results = [np.empty((*batch, *shape), dtype) for shape in shapes]
            _fill(results, compute, arrays)
            return results

        def call(*arrays: Any) -> Any:
            batch, dtype = arrays[0].shape[:-1], arrays[0].dtype
            results = [jax.ShapeDtypeStruct((*batch, *shape), dtype) for shape in shapes]
            return jax.lax.platform_dependent(
                *arrays,
                cpu=jax.ffi.ffi_call(target, results, **batched),
                default=lambda *given: jax.pure_callback(back, results, *given, **batched),
            )

        return call

    evaluate = jax.custom_jvp(called(bound.value_or_nan, bound.shapes))
    jacobians = jax.custom_jvp(called(bound.jacobians_or_nan, blocks))

    @jacobians.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        raise StateError(f"{name} {ONCE}")

    @evaluate.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        J, changes = jacobians(*primals), []
        for k, shape in enumerate(bound.shapes):
            pairs = zip(J[k * inputs : (k + 1) * inputs], tangents, strict=True)
            parts = [jnp.einsum("...ij,...j->...i", block, change) for block, change in pairs]
            total: Any = sum(parts)
            changes.append(total.reshape(*primals[0].shape[:-1], *shape))
        return evaluate(*primals), changes

    def call(*arrays: Any) -> Any:
        given = [jnp.asarray(array) for array in arrays]
        _, batch = demand_rows(name, bound.entry.inputs, bound.sizes, given)
        rows = (jnp.broadcast_to(array, (*batch, array.shape[-1])) for array in given)
        found = evaluate(*rows)
        return found[0] if outputs == 1 else tuple(found)

    return call
