"""Traced graphs as CUDA C: one thread a state, one statement an operation."""

from __future__ import annotations

import math

from modurob.compiler.fused import Trace
from modurob.compiler.statements import InputPlace, StatementPrinter

TYPES = {"float32": "float", "float64": "double"}
KERNEL = "modurob_kernel"


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
    """The kernel ``(count, q, v, x, y)`` of a traced algorithm; rows are states, as on the CPU."""
    real = TYPES[dtype]
    joints = trace.joints
    nq, nv = (joints + 7, joints + 6) if trace.free_base else (joints, joints)
    printer = CudaPrinter(trace, real)
    printer.run()
    body = "\n  ".join(printer.lines)
    results = math.prod(trace.shape)
    return f"""typedef {real} real;
extern "C" __global__ void {KERNEL}(
    const long long count, const real* __restrict__ q_all, const real* __restrict__ v_all,
    const real* __restrict__ x_all, real* __restrict__ y_all) {{
  const long long state = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (state >= count) return;
  const real* q = q_all + state * {nq};
  const real* v = v_all + state * {nv};
  const real* x = x_all + state * {nv};
  real* y = y_all + state * {results};
  {body}
}}
"""
