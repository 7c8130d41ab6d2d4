"""Derivatives of forward dynamics: those of inverse dynamics, solved for the accelerations.

``M X = -R`` for R = (d tau/dq, d tau/dv, -E), as in `equations.mass_matrix.solved`: rows are
eliminated from the tips inward, which fills nothing in, and X is found from the base outward.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from modurob.compiler.emit_llvm import splat
from modurob.compiler.kernels import Passes
from modurob.compiler.walks import PairWalker, write_derivatives

BY_Q, BY_V, RESPONSE, MASS = range(4)  # matrices; the mass matrix is no result and lies behind them
RIGHT = (BY_Q, BY_V, RESPONSE)


class Eliminator(PairWalker):
    """Rows of matrices, combined along the way from a column to the base."""

    @contextmanager
    def above(self, column: str) -> Iterator[str]:
        """Walk over the columns between a column and the base; those of a free base come last."""
        self._count += 1
        name, first = f"above{self._count}", self._next(column)
        entered = self._block
        self.do(f"br label %{name}.head")
        self.label(f"{name}.head")
        self.do(f"%{name}.c = phi i64 [ {first}, %{entered} ], [ %{name}.next, %{name}.latch ]")
        more = self.value(f"icmp sge i64 %{name}.c, 0")
        self.do(f"br i1 {more}, label %{name}.body, label %{name}.exit")
        self.label(f"{name}.body")
        yield f"%{name}.c"
        following = self._next(f"%{name}.c")
        self.do(f"br label %{name}.latch")
        self.label(f"{name}.latch")
        self.do(f"%{name}.next = add i64 {following}, 0")
        self.do(f"br label %{name}.head")
        self.label(f"{name}.exit")

    def _next(self, column: str) -> str:
        """The column before this one on the way to the base; -1 at its end."""
        joint = self.value(f"sub i64 {column}, {self.base}")
        if not self.base:
            return self.value(f"sub i64 {self.parent(joint)}, 1")
        jointed = self.value(f"icmp sge i64 {joint}, 0")
        link = self.parent(self.value(f"select i1 {jointed}, i64 {joint}, i64 0"))
        there = self.value(f"add i64 {link}, {self.base - 1}")
        before = self.value(f"sub i64 {column}, 1")
        return self.value(f"select i1 {jointed}, i64 {there}, i64 {before}")

    def add_row(self, target: str, factor: str, source: str) -> None:
        """Add a multiple of a row of the right-hand sides to another."""
        V = self.vector
        for matrix in RIGHT:
            with self.loop("0", self.nv) as j:
                to, of = self.cell(target, j, matrix), self.cell(source, j, matrix)
                product = self.value(f"fmul contract {V} {factor}, {self.load(of)}")
                self.store(to, self.value(f"fadd contract {V} {self.load(to)}, {product}"))

    def quotient(self, above: str, below: str) -> str:
        """-above / below."""
        negative = self.value(f"fneg {self.vector} {above}")
        return self.value(f"fdiv {self.vector} {negative}, {below}")


def forward_derivatives(algorithm: Passes, free_base: bool) -> str:
    """The derivatives of accelerations by q, v and tau."""
    w = Eliminator(algorithm, free_base)
    V, zero, one = w.vector, splat(0.0, w.width), splat(1.0, w.width)
    with w.loop("0", w.nv) as i:  # the block before has filled them
        for matrix in RIGHT:
            with w.loop("0", w.nv) as j:
                w.store(w.cell(i, j, matrix), zero)
        w.store(w.cell(i, i, RESPONSE), splat(-1.0, w.width))
    write_derivatives(w, free_base, (BY_Q, BY_V, MASS))
    last = w.value(f"sub i64 {w.nv}, 1")
    with w.loop("0", w.nv) as k:
        tip = w.value(f"sub i64 {last}, {k}")
        pivot = w.load(w.cell(tip, tip, MASS))
        with w.above(tip) as i:
            factor = w.quotient(w.load(w.cell(i, tip, MASS)), pivot)
            for_itself = w.value(f"fmul contract {V} {factor}, {w.load(w.cell(tip, i, MASS))}")
            own = w.cell(i, i, MASS)
            w.store(own, w.value(f"fadd contract {V} {w.load(own)}, {for_itself}"))
            with w.above(i) as j:
                product = w.value(f"fmul contract {V} {factor}, {w.load(w.cell(tip, j, MASS))}")
                held = w.load(w.cell(i, j, MASS))
                w.both(i, j, w.value(f"fadd contract {V} {held}, {product}"), MASS)
            w.add_row(i, factor, tip)
    with w.loop("0", w.nv) as i:
        with w.above(i) as k:
            w.add_row(i, w.load(w.cell(i, k, MASS)), k)
        scale = w.quotient(one, w.load(w.cell(i, i, MASS)))
        for matrix in RIGHT:
            with w.loop("0", w.nv) as j:
                cell = w.cell(i, j, matrix)
                w.store(cell, w.value(f"fmul contract {V} {w.load(cell)}, {scale}"))
    return w.function()
