"""Traced graphs as CUDA C: one thread a state, one statement an operation."""

from __future__ import annotations

from modurob.compiler import driver
from modurob.compiler.fused import ALGORITHMS, Trace
from modurob.compiler.trace import CONST, INPUT

TYPES = {"float32": "float", "float64": "double"}
SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
KERNEL = "modurob_kernel"


def source(name: str, trace: Trace, dtype: str) -> str:
    """The kernel ``(count, q, v, x, y)`` of a traced algorithm; rows are states, as on the CPU."""
    shape, real = ALGORITHMS[name][0], TYPES[dtype]
    joints = len(trace.links) - 1
    nq, nv = (joints + 7, joints + 6) if trace.free_base else (joints, joints)
    lines: list[str] = []
    known: dict[int, str] = {}
    turned: set[int] = set()
    for number in trace.graph.needed([value for _, value in trace.outputs]):
        op, a, b = trace.graph.nodes[number]
        if op == CONST:
            known[number] = f"({real}){a!r}"
            continue
        if op == INPUT:
            known[number] = _input(trace.slots[a].offset, trace.free_base, turned, lines)
            continue
        known[number] = f"t{number}"
        if op == "neg":
            text = f"-{known[a]}"
        elif op == "sqrt":
            text = f"sqrt({known[a]})"
        else:
            text = f"{known[a]} {SYMBOLS[op]} {known[b]}"
        lines.append(f"const real t{number} = {text};")
    for slot, value in trace.outputs:
        place = _output(slot.offset, slot.pointer, trace.free_base)
        lines.append(f"y[{place}] = {known[value.number]};")
    body = "\n  ".join(lines)
    results = nv * nv * shape.matrices if shape.matrices else nv
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


def _input(offset: int, free_base: bool, turned: set[int], lines: list[str]) -> str:
    """Where a traced input stands in the user's rows."""
    if offset < driver.BASE_RECORD:
        for array, start in (("x", driver.BASE_X), ("v", driver.BASE_V), ("q", driver.BASE_Q)):
            if offset >= start:
                return f"{array}[{offset - start}]"
    joint, field = divmod(offset - driver.BASE_RECORD, driver.JOINT_RECORD)
    in_q, in_v = (joint + 7, joint + 6) if free_base else (joint, joint)
    if field in (driver.COS, driver.SIN) and joint not in turned:
        turned.add(joint)
        lines.append(f"real s{joint}, c{joint}; sincos(q[{in_q}], &s{joint}, &c{joint});")
    return {
        driver.Q: f"q[{in_q}]",
        driver.COS: f"c{joint}",
        driver.SIN: f"s{joint}",
        driver.V: f"v[{in_v}]",
        driver.X: f"x[{in_v}]",
    }[field]


def _output(offset: int, pointer: str, free_base: bool) -> int:
    """Where a result goes in the user's row."""
    if pointer == "%states":
        return offset
    if offset < driver.BASE_RECORD:
        return offset - driver.BASE_Y
    joint = (offset - driver.BASE_RECORD) // driver.JOINT_RECORD
    return joint + (6 if free_base else 0)
