"""Tracing: scalars that record the operations on them.

The graph folds constants, shares common subexpressions and normalizes signs while it grows, so a
recursion full of zeros and ones leaves only the arithmetic that depends on its inputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

CONST, INPUT = "const", "input"


class Graph:
    """A growing list of nodes ``(op, a, b)``; a and b are node numbers, names or values."""

    def __init__(self) -> None:
        self.nodes: list[tuple[str, Any, Any]] = []
        self._known: dict[tuple[str, Any, Any], int] = {}

    def node(self, op: str, a: Any, b: Any = None) -> int:
        """The number of this node, new or known."""
        key = (op, a, b)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self.nodes)
            self.nodes.append(key)
        return found

    def input(self, name: str) -> Traced:
        """A value known only when the code runs."""
        return Traced(self, self.node(INPUT, name))

    def inputs(self, name: str, count: int) -> list[Traced]:
        """Several of them: name0, name1, ..."""
        return [self.input(f"{name}{k}") for k in range(count)]

    def constant(self, value: float) -> Traced:
        """A number, as a traced scalar."""
        return Traced(self, self.node(CONST, float(value)), float(value))

    def needed(self, outputs: Iterable[Traced]) -> list[int]:
        """The nodes that the outputs depend on, in order: everything else is dead."""
        alive = [False] * len(self.nodes)
        for output in outputs:
            alive[output.number] = True
        for number in range(len(self.nodes) - 1, -1, -1):
            if alive[number]:
                op, a, b = self.nodes[number]
                if op not in (CONST, INPUT):
                    alive[a] = True
                    if b is not None:
                        alive[b] = True
        return [number for number, used in enumerate(alive) if used]

    def operations(self, outputs: Iterable[Traced]) -> dict[str, int]:
        """Number of times that each operation is needed."""
        counts: dict[str, int] = {}
        for number in self.needed(outputs):
            op = self.nodes[number][0]
            if op not in (CONST, INPUT):
                counts[op] = counts.get(op, 0) + 1
        return counts


class Traced:
    """A scalar in a graph; `value` is its number when it is a constant."""

    __slots__ = ("graph", "number", "value")

    def __init__(self, graph: Graph, number: int, value: float | None = None) -> None:
        self.graph, self.number, self.value = graph, number, value

    def _lift(self, other: Any) -> Traced | None:
        if isinstance(other, Traced):
            return other
        if isinstance(other, int | float | np.floating | np.integer):
            return self.graph.constant(float(other))
        return None  # an array: its own operator calls this one for each element

    def _make(self, op: str, a: Traced, b: Traced | None = None) -> Traced:
        return Traced(self.graph, self.graph.node(op, a.number, None if b is None else b.number))

    def _negated(self) -> Traced | None:
        """The operand, if this is a negation."""
        op, a, _ = self.graph.nodes[self.number]
        return Traced(self.graph, a) if op == "neg" else None

    def __add__(self, other: Any) -> Any:
        b = self._lift(other)
        if b is None:
            return NotImplemented
        if self.value is not None and b.value is not None:
            return self.graph.constant(self.value + b.value)
        if self.value == 0:
            return b
        if b.value == 0:
            return self
        if (plus := b._negated()) is not None:
            return self - plus
        if (plus := self._negated()) is not None:
            return b - plus
        first, second = (self, b) if self.number <= b.number else (b, self)
        return self._make("add", first, second)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        b = self._lift(other)
        if b is None:
            return NotImplemented
        if self.value is not None and b.value is not None:
            return self.graph.constant(self.value - b.value)
        if b.value == 0:
            return self
        if self.value == 0:
            return -b
        if self.number == b.number:
            return self.graph.constant(0.0)
        if (plus := b._negated()) is not None:
            return self + plus
        if (plus := self._negated()) is not None:
            return -(plus + b)
        return self._make("sub", self, b)

    def __rsub__(self, other: Any) -> Any:
        a = self._lift(other)
        return NotImplemented if a is None else a - self

    def __neg__(self) -> Traced:
        if self.value is not None:
            return self.graph.constant(-self.value)
        op, a, b = self.graph.nodes[self.number]
        if op == "neg":
            return Traced(self.graph, a)
        if op == "sub":
            return Traced(self.graph, self.graph.node("sub", b, a))
        return self._make("neg", self)

    def __mul__(self, other: Any) -> Any:
        b = self._lift(other)
        if b is None:
            return NotImplemented
        a = self
        if a.value is not None and b.value is not None:
            return self.graph.constant(a.value * b.value)
        if a.value is not None:
            a, b = b, a
        if b.value is not None:
            if b.value == 0:
                return b
            if b.value == 1:
                return a
            if b.value == -1:
                return -a
        if (plus := a._negated()) is not None:
            return -(plus * b)
        if (plus := b._negated()) is not None:
            return -(a * plus)
        first, second = (a, b) if a.number <= b.number else (b, a)
        return self._make("mul", first, second)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        b = self._lift(other)
        if b is None:
            return NotImplemented
        if b.value is not None:
            return self * (1.0 / b.value)
        if self.value == 0:
            return self
        return self._make("div", self, b)

    def __rtruediv__(self, other: Any) -> Any:
        a = self._lift(other)
        return NotImplemented if a is None else a / self

    def _extreme(self, op: str, function: Any, other: Any) -> Traced:
        b = self._lift(other)
        if b is None:
            raise TypeError(f"the {op} of a traced scalar and {type(other).__name__}")
        if self.value is not None and b.value is not None:
            return self.graph.constant(function(self.value, b.value))
        return self._make(op, self, b)

    def maximum(self, other: Any) -> Traced:
        return self._extreme("max", max, other)

    def minimum(self, other: Any) -> Traced:
        return self._extreme("min", min, other)

    def _unary(self, op: str, function: Any) -> Traced:
        if self.value is not None:
            return self.graph.constant(function(self.value))
        return self._make(op, self)

    def trunc(self) -> Traced:
        """The whole part; compiled code has it within the range of int32."""
        return self._unary("trunc", math.trunc)

    def lookup(self, column: int) -> Traced:
        """The number in a column of the row that this scalar chooses, of those of its kernel."""
        return self._make("lookup", self, self.graph.constant(column))

    def sqrt(self) -> Traced:
        return self._unary("sqrt", math.sqrt)

    def sin(self) -> Traced:
        return self._unary("sin", math.sin)

    def cos(self) -> Traced:
        return self._unary("cos", math.cos)


def lifted(graph: Graph, values: Sequence[Any]) -> list[Traced]:
    """Numbers among traced results, as traced constants."""
    return [v if isinstance(v, Traced) else graph.constant(float(v)) for v in values]
