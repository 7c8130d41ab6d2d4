"""Inverse dynamics of a pendulum of modules in C that SymPy generates, in batches of 4,096 states.

SymPy derives Kane's equations (`benchmarks.symbolic`), eliminates common subexpressions and writes
C, which gcc compiles with `-O3 -march=native` and a loop in C calls. The last size is the first for
which SymPy takes more than 5 s. All contenders run in one process, interleaved, on one thread; the
fastest round counts. All is CPU time, but for gcc's. Before timing, the forces are compared.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy
from sympy.physics import mechanics
from sympy.utilities.codegen import C99CodeGen, codegen

from benchmarks.c_code import FOLDER, NoPeer, built
from benchmarks.symbolic import SAME, kane_method, parameters, pendulum, seconds
from benchmarks.timing import interleaved

SIZES, QUICK_SIZES = range(1, 13), (1, 2, 3)
PATIENCE = 5.0  # [s]; the next size takes SymPy twice as long
STATES, BUDGET = 4096, 0.5  # of a batch; [s] of its comparison
LOOP = """
void batch(double *q, double *u, double *a, double *tau, long n, long states) {
  for (long k = 0; k < states; ++k) forces(q + k * n, u + k * n, a + k * n, tau + k * n);
}
"""


def generated(n: int) -> tuple[dict[str, float], Callable[..., None]]:
    """Seconds to derive the forces, to write C and to compile it; a call for a batch."""
    q, u, a, out = (sympy.MatrixSymbol(name, n, 1) for name in ("q", "u", "a", "tau"))
    spent: dict[str, float] = {}
    spent["derive"], method = seconds(lambda: kane_method(n), time.process_time)
    values = parameters(n)
    for k in range(n):
        values[mechanics.dynamicsymbols(f"q{k + 1}")] = q[k, 0]
        values[mechanics.dynamicsymbols(f"u{k + 1}")] = u[k, 0]
    tau = method.mass_matrix * sympy.Matrix(a) - method.forcing
    equation = sympy.Eq(out, sympy.ImmutableMatrix(tau.xreplace(values)))
    spent["write C"], [(_, text), _] = seconds(
        lambda: codegen(
            ("forces", equation), code_gen=C99CodeGen(cse=True), header=False,
            argument_sequence=(q, u, a, out),
        ),
        time.process_time,
    )  # fmt: skip
    source = FOLDER / f"sympy_{n}.c"
    text = text.partition("\n")[2]  # without the include of a header file
    source.write_text(f"#include <math.h>\n{text}{LOOP}", encoding="utf-8")
    spent["compile"], library = seconds(lambda: built(source, "-lm"))
    batch = ctypes.CDLL(str(library)).batch
    batch.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_long] * 2
    batch.restype = None
    return spent, batch


def measured(n: int) -> dict[str, Any]:
    """Seconds that SymPy and gcc take, and microseconds a state."""
    spent, batch = generated(n)
    model, rng = pendulum(n).model("physical"), np.random.default_rng(n)
    fused = model.compile()
    q, u, a = rng.uniform(-1, 1, (3, STATES, n))
    tau = np.empty((STATES, n))
    given = [x.ctypes.data for x in (q, u, a, tau)]
    work: dict[str, Callable[[], Any]] = {
        "sympy": lambda: batch(*given, n, STATES),
        "dyads": lambda: model.inverse_dynamics(q, u, a, threads=1),
        "fused": lambda: fused.inverse_dynamics(q, u, a, threads=1),
    }
    work["sympy"]()
    wanted = model.inverse_dynamics(q, u, a)
    assert np.abs(tau - wanted).max() < SAME * np.abs(wanted).max()
    best = interleaved(work, BUDGET, clock=time.process_time)
    micros = {name: 1e6 * value / STATES for name, value in best.items()}
    return {"seconds": spent, "microseconds": micros}


def run(quick: bool) -> dict[str, Any]:
    """Measure and print each size."""
    rows: dict[str, Any] = {}
    kane_method(1)  # the first call fills caches
    for n in QUICK_SIZES if quick else SIZES:
        try:
            found = rows[str(n)] = measured(n)
        except NoPeer as reason:
            return {"skipped": str(reason)}
        spent, us = (
            ", ".join(f"{name} {value:.3f}" for name, value in found[key].items())
            for key in ("seconds", "microseconds")
        )
        print(f"{n} joints: {spent} s; {us} us a state", flush=True)
        if found["seconds"]["derive"] + found["seconds"]["write C"] > PATIENCE:
            break
    return rows
