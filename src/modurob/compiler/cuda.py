"""Fused code on a GPU, through CuPy: one thread a state, one statement an operation.

Arrays stay where they are: CuPy in, CuPy out.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from modurob.compiler.fused import Trace
from modurob.compiler.statements import InputPlace, StatementPrinter
from modurob.equations.quantities import QUANTITIES
from modurob.errors import StateError
from modurob.model import Model

THREADS = 128  # of a block: few, because straight-line code needs many registers
TYPES = {"float32": "float", "float64": "double"}
KERNEL = "modurob_kernel"
CUDA_DEVICE = 2  # of DLPack


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
    """Whether an array of any library with DLPack lies on an NVIDIA GPU."""
    device = getattr(value, "__dlpack_device__", None)
    return device is not None and device()[0] == CUDA_DEVICE


class CudaTier:
    """Kernels of one model on the GPU."""

    name = "cuda"

    def __init__(self, model: Model, dtype: str) -> None:
        self.cp, self.dtype, self.model = cupy(), np.dtype(dtype), model
        self._kernels: dict[tuple[str, bool], Any] = {}

    def kernel(self, name: str, external: bool) -> Any:
        """The compiled kernel of an algorithm, with or without wrenches on bodies."""
        if (name, external) not in self._kernels:
            try:
                placed = self.model._frames.placements() if external else ()
                trace = Trace(QUANTITIES[name], self.model, external=placed)
            except ZeroDivisionError:
                raise StateError(
                    f"{name} is singular: a joint has nothing to accelerate. The model that was "
                    "compiled says which one."
                ) from None
            text = source(trace, self.dtype.name)
            self._kernels[name, external] = self.cp.RawKernel(text, KERNEL)
        return self._kernels[name, external]

    def run(
        self,
        name: str,
        q: Any,
        v: Any = None,
        x: Any = None,
        external: Sequence[tuple[int, Any]] | None = None,
    ) -> Any:
        """Result of a quantity on the GPU, for NumPy or CuPy arrays (..., n) of its inputs.

        Args:
            external: Index of a body and wrench (..., 6) on it, in its frame, of each.
        """
        cp, quantity = self.cp, QUANTITIES[name]
        arrays = {"q": (q, self.model.nq), "v": (v, self.model.nv), "x": (x, self.model.nv)}
        ready = {
            key: self._ready(key, array, size)
            for key, (array, size) in arrays.items()
            if array is not None
        }
        pushes = [(k, self._ready("an external wrench", F, 6)) for k, F in external or ()]
        every = [*ready.values(), *(F for _, F in pushes)]
        batch = np.broadcast_shapes(*(array.shape[:-1] for array in every))
        rows = {
            key: cp.ascontiguousarray(cp.broadcast_to(array, (*batch, array.shape[-1])))
            for key, array in ready.items()
        }
        model = self.model
        if external is not None:
            ready["external"] = cp.zeros((*batch, model.nbodies, 6), dtype=self.dtype)
            for body, F in pushes:
                ready["external"][..., body, :] += F
        result = quantity.shape(len(model.parent), model.free_base, model.nbodies)
        # cells of joints on different branches are never written
        y = (cp.zeros if quantity.per == "pair" else cp.empty)((*batch, *result), dtype=self.dtype)
        count = int(np.prod(batch))
        if count:
            blocks = -(-count // THREADS)
            given = [rows.get(key, rows["q"]) for key in ("q", "v", "x")]
            given += [] if external is None else [ready["external"]]
            kernel = self.kernel(name, external is not None)
            kernel((blocks,), (THREADS,), (np.int64(count), *given, y))
        return y

    def _ready(self, name: str, array: Any, size: int) -> Any:
        moved = self.cp.asarray(array, dtype=self.dtype)
        if moved.ndim == 0 or moved.shape[-1] != size:
            raise StateError(f"{name} has shape {moved.shape}, expected (..., {size})")
        return moved


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
