"""Section 4.2: equations as formulas, or numbers at every call."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import sympy

from modurob import Organism, examples
from modurob.compiler.emit_c import c_sources
from modurob.compiler.emit_llvm import literal
from modurob.compiler.jit import CACHE_VARIABLE, compile_ir
from papers import figures
from papers.claims import Claims

SIZES = range(1, 7)  # modules, as in Fig. 4.2
REPEATS, ROUNDS = 10, 3
THESIS = 480.0  # [s] and more: the symbolic way at 6 modules, in MATLAB, 2012


class Row(NamedTuple):
    """One size: seconds until an equation can be evaluated, seconds and operations of one call.

    Formulas and recursions are both compiled by LLVM. Seconds are of the processor.
    """

    symbolic: float
    numeric: float
    symbolic_call: float
    numeric_call: float
    interpreted_call: float  # formulas by NumPy, as MATLAB had them
    symbolic_operations: int  # for M, C and N, without solving for the acceleration
    numeric_operations: int  # for the acceleration
    deviation: float


def reproduce(claims: Claims) -> None:
    """Measure both ways for pendulums of 1 to 6 modules."""
    with patch.dict(os.environ, {CACHE_VARIABLE: ""}):  # code of an earlier run takes no time
        _measured(examples.snake(2).with_parameters(mass=2.0))  # the first one fills caches
        rows = []
        for n in SIZES:
            claims.working_on(f"formulas against numbers, {n} modules")
            rows.append(_measured(examples.snake(n + 1)))
    last = rows[-1]
    claims.check("same_ode", max(row.deviation for row in rows))
    claims.check("creation", last.symbolic / last.numeric)
    claims.check("symbolic_seconds", last.symbolic)
    fewer = [row.numeric_operations < row.symbolic_operations for row in rows]
    claims.check("crossover", SIZES[fewer.index(True)])
    claims.check("evaluation", last.symbolic_operations / last.numeric_operations)
    claims.check("compiled", last.interpreted_call / last.symbolic_call)
    _draw(claims, rows)


def _measured(organism: Organism) -> Row:
    n = len(organism) - 1
    state = np.random.default_rng(n).uniform(-1, 1, (2, n))
    symbolic, (formulas, operations, interpreted) = _timed(lambda: _formulas(organism, n))
    numeric, recursion = _timed(lambda: _recursion(organism, n))
    ways = (
        lambda: _solved(formulas(state), state[1]),
        lambda: recursion(state[0], state[1], np.zeros(n)),
        lambda: _solved(interpreted(*state.flat), state[1]),
    )
    expected = ways[1]().copy()
    deviation = max(np.abs(way() - expected).max() for way in ways)
    counts = c_sources(organism.model("physical"), "x").operations["forward_dynamics"]
    calls = (_each(way) for way in ways)
    return Row(symbolic, numeric, *calls, operations, sum(counts.values()), float(deviation))


def _solved(matrices: Any, v: np.ndarray) -> np.ndarray:
    M, C, N = matrices
    return np.linalg.solve(M, -C @ v - np.ravel(N))


def _recursion(organism: Organism, n: int) -> Callable[..., np.ndarray]:
    """The numeric way, compiled for this body."""
    recursion = organism.model("physical").compile().prepare("forward_dynamics")
    recursion(*np.zeros((3, n)))
    return recursion


def _formulas(organism: Organism, n: int) -> tuple[Callable[..., Any], int, Callable[..., Any]]:
    """The symbolic way: formulas of M, C and N, compiled; and by NumPy, a file of the thesis."""
    equations = organism.equations("physical", symbols="none", limit=np.inf)
    motion = [sympy.Symbol(f"{x}{k + 1}") for x in ("q", "dq") for k in range(n)]
    matrices = equations.M, equations.C, equations.N
    entries = [entry for matrix in matrices for entry in matrix]
    compiled, operations = compiled_formulas(motion, entries)

    def called(state: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        found = compiled(state)
        return found[: n * n].reshape(n, n), found[n * n : -n].reshape(n, n), found[-n:]

    return called, operations, sympy.lambdify(motion, matrices, "numpy", cse=True)


def compiled_formulas(
    inputs: Sequence[sympy.Symbol], outputs: Sequence[sympy.Expr]
) -> tuple[Callable[[np.ndarray], np.ndarray], int]:
    """A function (k,) -> (m,) of formulas, compiled by LLVM, and its number of operations.

    Common subexpressions are computed once.
    """
    common, results = sympy.cse(outputs)
    lines: list[str] = []

    def value(text: str) -> str:
        lines.append(f"  %v{len(lines)} = {text}")
        return f"%v{len(lines) - 1}"

    def place(array: str, k: int) -> str:
        return value(f"getelementptr double, ptr {array}, i64 {k}")

    known = {x: value(f"load double, ptr {place('%x', k)}") for k, x in enumerate(inputs)}

    def written(e: Any) -> str:
        if e in known:
            return known[e]
        if e.is_number:
            return literal(float(e))
        if e.func in (sympy.sin, sympy.cos):
            return value(f"call double @llvm.{e.func.__name__}.f64(double {written(e.args[0])})")
        if e.is_Pow:  # whole powers of sines and cosines
            parts, op = [written(e.base)] * int(e.exp), "fmul"
        else:
            parts, op = [written(part) for part in e.args], "fadd" if e.is_Add else "fmul"
        return reduce(lambda a, b: value(f"{op} contract double {a}, {b}"), parts)

    for name, formula in common:
        known[name] = written(formula)
    for k, formula in enumerate(results):
        found = written(formula)
        lines.append(f"  store double {found}, ptr {place('%y', k)}")
    declared = "".join(f"declare double @llvm.{f}.f64(double)\n" for f in ("sin", "cos"))
    body = "\n".join(lines)
    library = compile_ir(f"{declared}define void @f(ptr %x, ptr %y) {{\n{body}\n  ret void\n}}\n")
    function, y = library.function("f", ctypes.c_void_p, ctypes.c_void_p), np.empty(len(outputs))

    def call(x: np.ndarray) -> np.ndarray:
        function(x.ctypes.data, y.ctypes.data)
        return y

    arithmetic = sum(int(sympy.count_ops(e)) for e in [*results, *(e for _, e in common)])
    return call, arithmetic


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.process_time()
    result = work()
    return time.process_time() - begin, result


def _each(work: Callable[[], Any]) -> float:
    """Seconds of one call, the best of some rounds."""
    return min(_timed(lambda: [work() for _ in range(REPEATS)])[0] for _ in range(ROUNDS)) / REPEATS


def _draw(claims: Claims, rows: list[Row]) -> None:
    drawn, axes = figures.figure(1, 3, size=(11.4, 3.9))
    made, called, counted = axes[0]
    x, colors = list(SIZES), figures.PALETTE
    lines = (
        (made, "symbolic", "formulas, compiled", colors[1]),
        (made, "numeric", "recursion, compiled", colors[0]),
        (called, "interpreted_call", "formulas, by NumPy", colors[3]),
        (called, "symbolic_call", "formulas, compiled", colors[1]),
        (called, "numeric_call", "recursion, compiled", colors[0]),
        (counted, "symbolic_operations", "formulas, compiled", colors[1]),
        (counted, "numeric_operations", "recursion, compiled", colors[0]),
    )
    for plane, key, name, color in lines:
        y = [getattr(row, key) for row in rows]
        plane.semilogy(x, y, color=color, lw=1.8, marker="o", ms=5, label=name)
    ended = {"ms": 8, "ls": "none", "marker": "x"}
    made.plot([6], [THESIS], color=colors[1], label="thesis: over 8 min", **ended)
    made.plot([6], [0.011], color=colors[0], label="thesis: 0.011 s", **ended)
    titles = "until it can be evaluated [s]", "one evaluation [s]", "operations of an evaluation"
    for plane, label in zip(axes[0], titles, strict=True):
        plane.set_xlabel("modules", color=figures.INK)
        plane.set_title(label, color=figures.INK, fontsize=10, loc="left")
    found = dict(zip(*made.get_legend_handles_labels()[::-1], strict=True))
    found |= dict(zip(*called.get_legend_handles_labels()[::-1], strict=True))
    drawn.legend(found.values(), found.keys(), loc="outside lower center", ncols=5,
                 frameon=False, fontsize=9, labelcolor=figures.INK)  # fmt: skip
    figures.title(drawn, "Pendulum of modules: accelerations by formulas or by a recursion")
    figures.save(drawn, claims.picture("fig_4_2_symbolic_numeric.png"))
