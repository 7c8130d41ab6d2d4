"""Fused code on a GPU, through CuPy: one thread a state, one statement an operation.

Arrays stay where they are: CuPy arrays, or arrays of others through DLPack, in; CuPy out.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from operator import is_
from typing import Any, NamedTuple

import numpy as np

from modurob.compiler import driver
from modurob.compiler.adjoint import Adjoint
from modurob.compiler.fused import Trace
from modurob.compiler.kernels import Tracer
from modurob.compiler.statements import InputPlace, KernelText, StatementPrinter
from modurob.equations.contact import GROUNDED_DYNAMICS
from modurob.equations.quantities import QUANTITIES
from modurob.errors import StateError
from modurob.model import Model

NQ_BASE, NV_BASE = driver.BASE_V, driver.BASE_X - driver.BASE_V  # numbers of a free base
THREADS = 128  # of a block: few, because straight-line code needs many registers
TYPES = {"float32": "float", "float64": "double"}
KERNEL = "modurob_kernel"
# index of a body and wrench (..., 6) on it, in its frame, of each
Wrenches = Sequence[tuple[int, Any]]
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


def _grid(count: int) -> tuple[int]:
    return (-(-count // THREADS),)


def _batch(arrays: Sequence[Any]) -> tuple[int, ...]:
    """Common batch shape of arrays (..., n)."""
    shapes = {array.shape[:-1] for array in arrays}
    return shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)


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

    def kernel(self, name: str, external: bool, steps: bool = False) -> Any:
        """The compiled kernel of an algorithm, with or without wrenches on bodies.

        Args:
            steps: For the kernel that takes steps in time with the accelerations.
        """
        key = (name, external, steps)
        if key not in self._kernels:
            placed = self.model._frames.placements() if external else ()
            trace = self._trace(name, external=placed)
            text = (rollout_source if steps else source)(trace, self.dtype.name)
            self._kernels[key] = self.cp.RawKernel(text, KERNEL)
        return self._kernels[key]

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
            kernel(_grid(count), (THREADS,), (np.int64(count), *given))
        ends = np.cumsum(sizes)
        return [y[..., end - size : end] for end, size in zip(ends, sizes, strict=True)]

    def run(
        self,
        name: str,
        q: Any,
        v: Any = None,
        x: Any = None,
        external: Wrenches | None = None,
    ) -> Any:
        """Result of a quantity on the GPU, for arrays (..., n) of its inputs; see `imported`."""
        arrays = {"q": (q, self.model.nq), "v": (v, self.model.nv), "x": (x, self.model.nv)}
        ready = {
            key: self._ready(key, array, size)
            for key, (array, size) in arrays.items()
            if array is not None
        }
        pushes = self._pushes(external)
        batch = _batch([*ready.values(), *(F for _, F in pushes)])
        rows = {key: self._rows(array, batch) for key, array in ready.items()}
        given = [rows.get(key, rows["q"]) for key in ("q", "v", "x")]
        given += [] if external is None else [self._summed(pushes, batch)]
        y, count = self._empty(name, batch), math.prod(batch)
        if count:
            kernel = self.kernel(name, external is not None)
            kernel(_grid(count), (THREADS,), (np.int64(count), *given, y))
        return y

    def rollout(
        self, q: Any, v: Any, tau: Any, dt: float, external: Wrenches | None = None
    ) -> tuple[Any, Any]:
        """See `Model.rollout`: all steps in one launch."""
        model = self.model
        q, v = self._ready("q", q, model.nq), self._ready("v", v, model.nv)
        tau, pushes = self._ready("tau", tau, model.nv), self._pushes(external)
        if tau.ndim < 2 or not len(tau):
            raise StateError(f"tau has shape {tau.shape}, expected (steps, ..., {model.nv})")
        steps = len(tau)
        batch = _batch([q, v, tau[0], *(F for _, F in pushes)])
        given = [self._rows(q, batch), self._rows(v, batch), self._rows(tau, (steps, *batch))]
        given += [] if external is None else [self._summed(pushes, batch)]
        paths = [self.cp.empty((steps, *batch, n), dtype=self.dtype) for n in (model.nq, model.nv)]
        if count := math.prod(batch):
            kernel = self.kernel("forward_dynamics", external is not None, steps=True)
            times = (np.int32(steps), np.float64(dt))
            kernel(_grid(count), (THREADS,), (np.int64(count), *times, *given, *paths))
        return paths[0], paths[1]

    def _pushes(self, external: Wrenches | None) -> Wrenches:
        return [(k, self._ready("an external wrench", F, 6)) for k, F in external or ()]

    def _summed(self, pushes: Wrenches, batch: tuple[int, ...]) -> Any:
        """(..., bodies, 6) wrenches on all bodies."""
        found = self.cp.zeros((*batch, self.model.nbodies, 6), dtype=self.dtype)
        for body, F in pushes:
            found[..., body, :] += F
        return found

    def _rows(self, array: Any, batch: tuple[int, ...]) -> Any:
        if array.shape[:-1] != batch:
            array = self.cp.broadcast_to(array, (*batch, array.shape[-1]))
        return self.cp.ascontiguousarray(array)

    def prepare(
        self, name: str, states: int | None, out: Any, external: bool
    ) -> Callable[..., Any]:
        """A call on arrays of one size on the GPU, which copies and allocates nothing.

        Arrays that are given again are not checked again.

        Args:
            external: For a call whose last array has the wrenches on all bodies.
        """
        batch = () if states is None else (int(states),)
        y = self._empty(name, batch)
        if out is not None:
            y = self._in_place("out", out, y.shape)
            y.fill(0)  # as in `_empty`
        kernel, count = self.kernel(name, external), int(states or 1)
        grid, block = _grid(count), (THREADS,)
        inputs, sizes = QUANTITIES[name].inputs, (self.model.nq, self.model.nv, self.model.nv)
        shapes = [(*batch, size) for size in sizes[: len(inputs)]]
        unused = 3 - len(inputs)
        if external:
            inputs, shapes = (*inputs, "external"), [*shapes, (*batch, self.model.nbodies, 6)]
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
                fill, last = given[:1] * unused, len(given) - external
                known = state
                arguments = (np.int64(count), *given[:last], *fill, *given[last:], y)
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


class KernelParts(NamedTuple):
    """Texts of a kernel: its arrays as parameters, the rows of a state, and the statements.

    `sizes` are the numbers in a row of each array.
    """

    sizes: dict[str, int]
    parameters: str
    rows: str
    body: str


def _parts(trace: Trace, real: str, name: str = "{}") -> KernelParts:
    """Parts of a kernel; `name` is the name of a row of q, v or x."""
    joints, free = trace.joints, trace.free_base
    sizes = {"q": joints + 7 * free, "v": joints + 6 * free, "x": joints + 6 * free}
    names = {each: name.format(each) for each in sizes}
    if trace.wrenches:
        sizes["external"], names["external"] = trace.wrenches, "external"
    rows = [f"const real* {names[k]} = {k}_all + state * {size};" for k, size in sizes.items()]
    parameters = ", ".join(f"const real* __restrict__ {each}_all" for each in sizes)
    printer = CudaPrinter(trace, real)
    printer.run()
    return KernelParts(sizes, parameters, "\n  ".join(rows), "\n  ".join(printer.lines))


def source(trace: Trace, dtype: str) -> str:
    """The kernel ``(count, q, v, x, y)`` of a traced algorithm; rows are states, as on the CPU.

    With wrenches on bodies it is ``(count, q, v, x, external, y)``.
    """
    _, parameters, rows, body = _parts(trace, TYPES[dtype])
    return f"""typedef {TYPES[dtype]} real;
extern "C" __global__ void {KERNEL}(
    const long long count, {parameters}, real* __restrict__ y_all) {{
  const long long state = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (state >= count) return;
  {rows}
  real* y = y_all + state * {math.prod(trace.shape)};
  {body}
}}
"""


def rollout_source(trace: Trace, dtype: str) -> str:
    """The kernel ``(count, steps, duration, q, v, x[, external], q_path, v_path)``.

    It takes steps of semi-implicit Euler with the accelerations of a traced algorithm. Rows of x
    and of the paths are those of all states in one step, then in the next.
    """
    sizes, parameters, rows, body = _parts(trace, TYPES[dtype], "{}_first")
    nq, nv, free = sizes["q"], sizes["v"], trace.free_base
    function, moved = _base_step() if free else ("", [])
    for k in range(trace.joints):
        in_q, in_v = k + 7 * free, k + 6 * free
        moved += [f"v[{in_v}] += h * y[{in_v}];", f"q[{in_q}] += h * v[{in_v}];"]
    advance = "\n    ".join(moved)
    return f"""typedef {TYPES[dtype]} real;
{function}
extern "C" __global__ void {KERNEL}(
    const long long count, const int steps, const double duration, {parameters},
    real* __restrict__ q_path, real* __restrict__ v_path) {{
  const long long state = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (state >= count) return;
  {rows}
  const real h = (real)duration;
  real q[{nq}], v[{nv}], y[{nv}];
  for (int k = 0; k < {nq}; k++) q[k] = q_first[k];
  for (int k = 0; k < {nv}; k++) v[k] = v_first[k];
  for (int step = 0; step < steps; step++) {{
    const long long before = step * count;
    const real* x = x_first + before * {nv};
    {{
  {body}
    }}
    {advance}
    for (int k = 0; k < {nq}; k++) q_path[(before + state) * {nq} + k] = q[k];
    for (int k = 0; k < {nv}; k++) v_path[(before + state) * {nv} + k] = v[k];
  }}
}}
"""


def _base_step() -> tuple[str, list[str]]:
    """The function that moves a free base, and the lines that call it."""
    kernel = Tracer(GROUNDED_DYNAMICS["level", False], free_base=True).move()
    text = KernelText("real", lambda value: f"(real){value!r}", "sqrt")
    lines = text.statements(kernel, lambda slot: f"{slot.pointer[1:]}[{slot.offset}]")
    head = "static __device__ void move(const real* row, real* record, const real* out) {"
    numbers = [f"q[{k}]" for k in range(NQ_BASE)] + [f"v[{k}]" for k in range(NV_BASE)]
    call = [f"real base[{driver.BASE_RECORD}] = {{{', '.join(numbers)}}};", "move(&h, base, y);"]
    call += [f"{number} = base[{k}];" for k, number in enumerate(numbers)]
    return "\n".join([head, *lines, "}"]), call
