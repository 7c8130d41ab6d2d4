"""Fused code on a GPU, through CuPy: one thread a state, one statement an operation.

Arrays stay where they are: CuPy arrays, or arrays of others through DLPack, in; CuPy out.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from operator import is_
from typing import Any

import numpy as np

from modurob.compiler.adjoint import Adjoint
from modurob.compiler.fused import Trace
from modurob.compiler.statements import InputPlace, StatementPrinter
from modurob.equations.quantities import QUANTITIES
from modurob.errors import StateError
from modurob.model import Model

THREADS = 128  # of a block: few, because straight-line code needs many registers
TYPES = {"float32": "float", "float64": "double"}
KERNEL = "modurob_kernel"
ON_GPU = (2, 13)  # DLPack's numbers for memory of CUDA devices, and for managed memory


def cupy() -> Any:
    """CuPy, or an error with the way to install it."""
    try:
        cp = importlib.import_module("cupy")
    except ImportError:
        raise StateError("target 'cuda' needs CuPy: pip install 'modurob[cuda]'") from None
    try:
        cp.cuda.runtime.getDeviceCount()
    except cp.cuda.runtime.CUDARuntimeError as error:
        raise StateError(f"target 'cuda' needs an NVIDIA GPU: {error}") from None
    return cp


def on_gpu(value: Any) -> bool:
    """True if an array of any library with DLPack lies on an NVIDIA GPU."""
    device = getattr(value, "__dlpack_device__", None)
    return device is not None and device()[0] in ON_GPU


class CudaTier:
    """Kernels of one model on the GPU."""

    name = "cuda"

    def __init__(self, model: Model, dtype: str) -> None:
        self.cp, self.dtype, self.model = cupy(), np.dtype(dtype), model
        self._kernels: dict[tuple[Any, ...], Any] = {}

    def kernel(self, name: str, external: bool) -> Any:
        """The compiled kernel of an algorithm, with or without wrenches on bodies."""
        if (name, external) not in self._kernels:
            placed = self.model._frames.placements() if external else ()
            text = source(self._trace(name, external=placed), self.dtype.name)
            self._kernels[name, external] = self.cp.RawKernel(text, KERNEL)
        return self._kernels[name, external]

    def _trace(self, name: str, **options: Any) -> Trace:
        try:
            return Trace(QUANTITIES[name], self.model, **options)
        except ZeroDivisionError:
            raise StateError(
                f"{name} is singular: a joint has nothing to accelerate. The model that was "
                "compiled says which one."
            ) from None

    def gradient(
        self, name: str, arrays: Sequence[Any], weights: Any, body: int | None = None
    ) -> list[Any]:
        """Gradients by the inputs of the sum of a quantity's numbers times weights; see `Adjoint`.

        Args:
            arrays: Contiguous CuPy arrays (..., n) of the inputs, of one batch shape.
            weights: Likewise, in the shape of the result.
            body: Only the result of this one, where there is one for each.
        """
        if (name, "gradient", body) not in self._kernels:
            trace = Adjoint(self._trace(name, bodies=None if body is None else [body]))
            kernel = self.cp.RawKernel(source(trace, self.dtype.name), KERNEL)
            self._kernels[name, "gradient", body] = kernel
        batch, sizes = arrays[0].shape[:-1], [array.shape[-1] for array in arrays]
        y = self.cp.empty((*batch, sum(sizes)), dtype=self.dtype)
        if count := math.prod(batch):
            unused = [arrays[0]] * (3 - len(arrays))
            given = [*arrays, *unused, weights, y]
            kernel = self._kernels[name, "gradient", body]
            kernel((-(-count // THREADS),), (THREADS,), (np.int64(count), *given))
        ends = np.cumsum(sizes)
        return [y[..., end - size : end] for end, size in zip(ends, sizes, strict=True)]

    def run(
        self,
        name: str,
        q: Any,
        v: Any = None,
        x: Any = None,
        external: Sequence[tuple[int, Any]] | None = None,
    ) -> Any:
        """Result of a quantity on the GPU, for arrays (..., n) of its inputs; see `imported`.

        Args:
            external: Index of a body and wrench (..., 6) on it, in its frame, of each.
        """
        cp = self.cp
        arrays = {"q": (q, self.model.nq), "v": (v, self.model.nv), "x": (x, self.model.nv)}
        ready = {
            key: self._ready(key, array, size)
            for key, (array, size) in arrays.items()
            if array is not None
        }
        pushes = [(k, self._ready("an external wrench", F, 6)) for k, F in external or ()]
        every = [*ready.values(), *(F for _, F in pushes)]
        batches = {array.shape[:-1] for array in every}
        batch = batches.pop() if len(batches) == 1 else np.broadcast_shapes(*batches)
        rows = {
            key: cp.ascontiguousarray(
                array
                if array.shape[:-1] == batch
                else cp.broadcast_to(array, (*batch, array.shape[-1]))
            )
            for key, array in ready.items()
        }
        model = self.model
        if external is not None:
            ready["external"] = cp.zeros((*batch, model.nbodies, 6), dtype=self.dtype)
            for body, F in pushes:
                ready["external"][..., body, :] += F
        y, count = self._empty(name, batch), math.prod(batch)
        if count:
            blocks = -(-count // THREADS)
            given = [rows.get(key, rows["q"]) for key in ("q", "v", "x")]
            given += [] if external is None else [ready["external"]]
            kernel = self.kernel(name, external is not None)
            kernel((blocks,), (THREADS,), (np.int64(count), *given, y))
        return y

    def prepare(self, name: str, states: int | None, out: Any = None) -> Callable[..., Any]:
        """A call on arrays of one size on the GPU, which copies and allocates nothing.

        Arrays that are given again are not checked again.
        """
        batch = () if states is None else (int(states),)
        y = self._empty(name, batch)
        if out is not None:
            y = self._in_place("out", out, y.shape)
            y.fill(0)  # as in `_empty`
        kernel, count = self.kernel(name, False), int(states or 1)
        grid, block = (-(-count // THREADS),), (THREADS,)
        inputs, sizes = QUANTITIES[name].inputs, (self.model.nq, self.model.nv, self.model.nv)
        shapes = [(*batch, size) for size in sizes[: len(inputs)]]
        known: tuple[Any, ...] = (self,) * len(inputs)  # no array yet
        given: list[Any] = []
        arguments: tuple[Any, ...] = ()

        def call(*state: Any) -> Any:
            nonlocal known, given, arguments
            if len(state) != len(inputs):
                raise TypeError(f"{name} takes {', '.join(inputs)}, got {len(state)} arrays")
            if not all(map(is_, state, known)):
                given = [
                    given[k] if array is known[k] else self._in_place(inputs[k], array, shapes[k])
                    for k, array in enumerate(state)
                ]
                unused = given[:1] * (3 - len(given))
                known, arguments = state, (np.int64(count), *given, *unused, y)
            kernel(grid, block, arguments)
            return y

        kernel.compile()
        return call

    def _empty(self, name: str, batch: tuple[int, ...]) -> Any:
        """An array for results; cells of joints on different branches are never written."""
        quantity, model = QUANTITIES[name], self.model
        result = quantity.shape(len(model.parent), model.free_base, model.nbodies)
        make = self.cp.zeros if quantity.per == "pair" else self.cp.empty
        return make((*batch, *result), dtype=self.dtype)

    def _in_place(self, name: str, array: Any, shape: tuple[int, ...]) -> Any:
        """The array itself as a CuPy array, or an error if it would have to be copied."""
        found = array if type(array) is self.cp.ndarray else imported(self.cp, name, array)
        if (
            type(found) is not self.cp.ndarray
            or found.dtype != self.dtype
            or found.shape != shape
            or not found.flags.c_contiguous
        ):
            raise StateError(
                f"{name} must be a contiguous {self.dtype} array of shape {shape} on the GPU: a "
                f"prepared call copies nothing; got {type(array).__name__} of "
                f"{getattr(found, 'dtype', 'no dtype')}, shape {getattr(found, 'shape', ())}"
            )
        return found

    def _ready(self, name: str, array: Any, size: int) -> Any:
        moved = self.cp.asarray(imported(self.cp, name, array), dtype=self.dtype)
        if moved.ndim == 0 or moved.shape[-1] != size:
            raise StateError(f"{name} has shape {moved.shape}, expected (..., {size})")
        return moved


def imported(cp: Any, name: str, array: Any) -> Any:
    """An array of another library as a CuPy array on the same memory, through DLPack.

    Arrays of CuPy and NumPy, lists and numbers are returned as they are.
    """
    if isinstance(array, cp.ndarray | np.ndarray) or not hasattr(array, "__dlpack__"):
        return array
    try:
        return cp.from_dlpack(array) if on_gpu(array) else np.from_dlpack(array)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise StateError(f"{name} ({type(array).__name__}) gives no DLPack: {error}") from None


class CudaPrinter(StatementPrinter):
    """Prints every value as a constant; the CUDA compiler assigns registers."""

    def __init__(self, trace: Trace, real: str) -> None:
        super().__init__(trace)
        self._real = real
        self._turned: set[int] = set()

    def literal(self, value: float) -> str:
        return f"({self._real}){value!r}"

    def read(self, place: InputPlace) -> str:
        k = place.entry
        if place.function is None:
            return f"{place.array}[{k}]"
        if k not in self._turned:
            self._turned.add(k)
            self.lines.append(f"real sin{k}, cos{k}; sincos(q[{k}], &sin{k}, &cos{k});")
        return f"{place.function}{k}"

    def define(self, number: int, text: str) -> str:
        self.lines.append(f"const real t{number} = {text};")
        return f"t{number}"

    def store(self, index: int, text: str) -> None:
        self.lines.append(f"y[{index}] = {text};")


def source(trace: Trace, dtype: str) -> str:
    """The kernel ``(count, q, v, x, y)`` of a traced algorithm; rows are states, as on the CPU.

    With wrenches on bodies it is ``(count, q, v, x, external, y)``.
    """
    real = TYPES[dtype]
    joints = trace.joints
    nq, nv = (joints + 7, joints + 6) if trace.free_base else (joints, joints)
    rows = {"q": nq, "v": nv, "x": nv} | ({"external": trace.wrenches} if trace.wrenches else {})
    parameters = ", ".join(f"const real* __restrict__ {each}_all" for each in rows)
    states = "\n  ".join(
        f"const real* {each} = {each}_all + state * {size};" for each, size in rows.items()
    )
    printer = CudaPrinter(trace, real)
    printer.run()
    body = "\n  ".join(printer.lines)
    results = math.prod(trace.shape)
    return f"""typedef {real} real;
extern "C" __global__ void {KERNEL}(
    const long long count, {parameters}, real* __restrict__ y_all) {{
  const long long state = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (state >= count) return;
  {states}
  real* y = y_all + state * {results};
  {body}
}}
"""
