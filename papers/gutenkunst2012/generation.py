"""Section 4.2: equations as formulas, or numbers at every call."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import sympy

from modurob import Organism, examples
from papers import figures
from papers.claims import Claims

SIZES = range(1, 7)  # modules, as in Fig. 4.2
REPEATS, ROUNDS = 10, 3
THESIS = 480.0  # [s] and more: the symbolic way at 6 modules, in MATLAB, 2012


class Row(NamedTuple):
    """One size: seconds until the equation can be evaluated, seconds of one evaluation."""

    symbolic: float
    numeric: float
    symbolic_call: float
    closed_call: float
    compiled_call: float
    deviation: float


def reproduce(claims: Claims) -> None:
    """Measure both ways for pendulums of 1 to 6 modules."""
    _measured(1)  # the first one imports and fills caches
    rows = []
    for n in SIZES:
        claims.working_on(f"formulas against numbers, {n} modules")
        rows.append(_measured(n))
    last = rows[-1]
    claims.check("same_ode", max(row.deviation for row in rows))
    claims.check("creation", last.symbolic / last.numeric)
    claims.check("symbolic_seconds", last.symbolic)
    claims.check("evaluation", last.symbolic_call / last.compiled_call)
    _draw(claims, rows)


def _measured(n: int) -> Row:
    organism, rest = examples.snake(n + 1), np.zeros(n)
    state = np.random.default_rng(n).uniform(-1, 1, (2, n))
    symbolic, formulas = _timed(lambda: _formulas(organism, n))
    numeric, call = _timed(lambda: organism.model("physical").prepare("forward_dynamics"))
    model = organism.model("physical")

    def by_formulas() -> np.ndarray:
        M, C, N = formulas(*state.flat)
        return np.linalg.solve(M, -C @ state[1] - N[:, 0])

    def by_closed_form() -> np.ndarray:
        M, C, N = model.closed_form(*state)
        return np.linalg.solve(M, -C @ state[1] - N)

    ways = (by_formulas, by_closed_form, lambda: call(state[0], state[1], rest))
    expected = ways[2]().copy()
    deviation = max(np.abs(way() - expected).max() for way in ways[:2])
    return Row(symbolic, numeric, *(_each(way) for way in ways), float(deviation))


def _formulas(organism: Organism, n: int) -> Callable[..., Any]:
    """M, C and N as formulas, then as a function: what the thesis stored as a file."""
    equations = organism.equations("physical", symbols="none", limit=np.inf)
    motion = [sympy.Symbol(f"{x}{k + 1}") for x in ("q", "dq") for k in range(n)]
    return sympy.lambdify(motion, [equations.M, equations.C, equations.N], "numpy", cse=True)


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


def _each(work: Callable[[], Any]) -> float:
    """Seconds of one call, the best of some rounds."""
    return min(_timed(lambda: [work() for _ in range(REPEATS)])[0] for _ in range(ROUNDS)) / REPEATS


def _draw(claims: Claims, rows: list[Row]) -> None:
    drawn, axes = figures.figure(1, 2, size=(9.6, 3.9))
    made, called = axes[0]
    x = list(SIZES)
    colors = figures.PALETTE
    lines = (
        (made, [row.symbolic for row in rows], "symbolic", colors[1]),
        (made, [row.numeric for row in rows], "numeric, compiled", colors[0]),
        (called, [row.symbolic_call for row in rows], "symbolic", colors[1]),
        (called, [row.closed_call for row in rows], "numeric, closed form", colors[2]),
        (called, [row.compiled_call for row in rows], "numeric, compiled", colors[0]),
    )
    for plane, y, name, color in lines:
        plane.semilogy(x, y, color=color, lw=1.8, marker="o", ms=5, label=name)
    ended = {"ms": 8, "ls": "none", "marker": "x"}
    made.plot([6], [THESIS], color=colors[1], label="thesis: over 8 min", **ended)
    made.plot([6], [0.011], color=colors[0], label="thesis: 0.011 s", **ended)
    for plane, label in ((made, "until it can be evaluated [s]"), (called, "one evaluation [s]")):
        plane.set_xlabel("modules", color=figures.INK)
        plane.set_title(label, color=figures.INK, fontsize=10, loc="left")
    found = dict(zip(*made.get_legend_handles_labels()[::-1], strict=True))
    found |= dict(zip(*called.get_legend_handles_labels()[::-1], strict=True))
    drawn.legend(found.values(), found.keys(), loc="outside lower center", ncols=5,
                 frameon=False, fontsize=9, labelcolor=figures.INK)  # fmt: skip
    figures.title(drawn, "Pendulum of modules: formulas or numbers")
    figures.save(drawn, claims.picture("fig_4_2_symbolic_numeric.png"))
