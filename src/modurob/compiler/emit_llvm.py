"""Traced graphs as LLVM IR: every scalar a vector of states."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from modurob.compiler.trace import CONST, INPUT, Graph, Traced

EXTREMES = {"max": "ogt", "min": "olt"}
LOOKUP_ROWS = "lookup_rows"  # the input whose pointer `Traced.lookup` reads from
LOOKUP_ROW = "[4 x double]"
ARITHMETIC = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}


def literal(value: float) -> str:
    """A double as LLVM reads it without rounding."""
    return "0x" + struct.pack(">d", value).hex().upper()


def splat(value: float, width: int) -> str:
    """A constant vector."""
    return "<" + ", ".join([f"double {literal(value)}"] * width) + ">"


class Slot(NamedTuple):
    """A place in memory: `offset` vectors (doubles for a broadcast) behind a pointer.

    Attributes:
        times: (name, factor) of integers known at run time, whose products are added to the offset.
    """

    pointer: str
    offset: int
    broadcast: bool = False
    times: tuple[tuple[str, int], ...] = ()


class Vector:
    """A vector of states in a function being written; arithmetic writes instructions."""

    def __init__(self, writer: FunctionWriter, name: str) -> None:
        self.writer, self.name = writer, name

    def _binary(self, op: str, other: Any, reversed_: bool = False) -> Vector:
        w = self.writer
        name = other.name if isinstance(other, Vector) else splat(float(other), w.width)
        a, b = (name, self.name) if reversed_ else (self.name, name)
        return Vector(w, w.value(f"{ARITHMETIC[op]} contract {w.vector} {a}, {b}"))

    def __add__(self, other: Any) -> Vector:
        return self._binary("add", other)

    def __mul__(self, other: Any) -> Vector:
        return self._binary("mul", other)

    def __truediv__(self, other: Any) -> Vector:
        return self._binary("div", other)

    def __rtruediv__(self, other: Any) -> Vector:
        return self._binary("div", other, reversed_=True)

    def __neg__(self) -> Vector:
        w = self.writer
        return Vector(w, w.value(f"fneg {w.vector} {self.name}"))


class Carry:
    """A vector that loops hand on from one round to the next."""

    def __init__(self, value: str) -> None:
        self.value = value


class FunctionWriter:
    """Collects the lines of one function body."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.vector = f"<{width} x double>"
        self.lines: list[str] = []
        self._count = 0
        self._block = "entry"

    def value(self, text: str) -> str:
        """A new SSA value."""
        self._count += 1
        name = f"%x{self._count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def load(self, slot: Slot) -> str:
        if slot.broadcast:
            address = self.offset(slot.pointer, slot.offset, "double")
            return self.broadcast(self.value(f"load double, ptr {address}, align 8"))
        return self.value(f"load {self.vector}, ptr {self.place(slot)}, align {8 * self.width}")

    def place(self, slot: Slot) -> str:
        """The address of a vector."""
        pointer = slot.pointer
        for name, factor in slot.times:
            if factor:
                steps = name if factor == 1 else self.value(f"mul i64 {name}, {factor}")
                pointer = self.offset(pointer, steps)
        return self.offset(pointer, slot.offset)

    def store(self, slot: Slot, value: str) -> None:
        address = self.place(slot)
        self.do(f"store {self.vector} {value}, ptr {address}, align {8 * self.width}")

    @contextmanager
    def loop(
        self, begin: str, end: str, step: int = 1, carry: Carry | None = None
    ) -> Iterator[str]:
        """A counting loop ``for i = begin; i < end; i += step``; yields i."""
        self._count += 1
        name, entered = f"loop{self._count}", self._block
        i, latch = f"%{name}.i", f"{name}.latch"
        self.do(f"br label %{name}.head")
        self.label(f"{name}.head")
        self.do(f"{i} = phi i64 [ {begin}, %{entered} ], [ {i}.next, %{latch} ]")
        held = f"%{name}.held"
        if carry is not None:
            started = carry.value
            self.do(
                f"{held} = phi {self.vector} [ {started}, %{entered} ], [ {held}.next, %{latch} ]"
            )
            carry.value = held
        more = self.value(f"icmp slt i64 {i}, {end}")
        self.do(f"br i1 {more}, label %{name}.body, label %{name}.exit")
        self.label(f"{name}.body")
        yield i
        if carry is not None:
            self.do(f"{held}.next = freeze {self.vector} {carry.value}")
            carry.value = held
        self.do(f"br label %{latch}")
        self.label(latch)
        self.do(f"{i}.next = add i64 {i}, {step}")
        self.do(f"br label %{name}.head")
        self.label(f"{name}.exit")

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Lines that run only if an i1 is true."""
        self._count += 1
        name = f"if{self._count}"
        self.do(f"br i1 {condition}, label %{name}.then, label %{name}.done")
        self.label(f"{name}.then")
        yield
        self.do(f"br label %{name}.done")
        self.label(f"{name}.done")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self._block = name

    def offset(self, pointer: str, count: str | int, unit: str | None = None) -> str:
        """`pointer` moved by `count` units (vectors by default)."""
        return self.value(f"getelementptr {unit or self.vector}, ptr {pointer}, i64 {count}")

    def shuffle(self, a: str, b: str, lanes: Sequence[int], width: int) -> str:
        """The chosen lanes of two vectors of `width` lanes, those of b counted after a's."""
        kind = f"<{width} x double>"
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        return self.value(f"shufflevector {kind} {a}, {kind} {b}, <{len(lanes)} x i32> <{mask}>")

    def lookup(self, pointer: str, row: str, column: int) -> str:
        """A number of each lane's row, loaded lane by lane: not every CPU can gather."""
        rows, vector = f"<{self.width} x i64>", "poison"
        chosen = self.value(f"fptosi {self.vector} {row} to {rows}")
        for lane in range(self.width):
            start = self.value(f"extractelement {rows} {chosen}, i64 {lane}")
            start = self.offset(pointer, start, LOOKUP_ROW)
            scalar = self.value(f"load double, ptr {self.offset(start, column, 'double')}, align 8")
            vector = self.value(
                f"insertelement {self.vector} {vector}, double {scalar}, i64 {lane}"
            )
        return vector

    def broadcast(self, scalar: str) -> str:
        first = self.value(f"insertelement {self.vector} poison, double {scalar}, i64 0")
        mask = f"<{self.width} x i32> zeroinitializer"
        return self.value(f"shufflevector {self.vector} {first}, {self.vector} poison, {mask}")


def emit(
    writer: FunctionWriter,
    graph: Graph,
    outputs: Sequence[Traced],
    inputs: Mapping[str, Slot],
    names: dict[int, str] | None = None,
) -> list[str]:
    """Write the arithmetic of a graph; returns the SSA names of the outputs.

    Sines and cosines must have become inputs named ``sin(name)`` and ``cos(name)``.

    Args:
        names: Of the nodes that are already written; new ones are added.
    """
    V, nodes, names = writer.vector, graph.nodes, {} if names is None else names
    for number in graph.needed(outputs):
        op, a, b = nodes[number]
        if number in names:
            continue
        if op == CONST:
            names[number] = splat(a, writer.width)
        elif op == INPUT:
            names[number] = writer.load(inputs[a])
        elif op in ("sin", "cos"):
            names[number] = writer.load(inputs[f"{op}({nodes[a][1]})"])
        elif op == "neg":
            names[number] = writer.value(f"fneg {V} {names[a]}")
        elif op == "sqrt":
            function = f"@llvm.sqrt.v{writer.width}f64"
            names[number] = writer.value(f"call {V} {function}({V} {names[a]})")
        elif op == "trunc":
            whole = f"<{writer.width} x i32>"
            found = writer.value(f"fptosi {V} {names[a]} to {whole}")
            names[number] = writer.value(f"sitofp {whole} {found} to {V}")
        elif op == "lookup":
            names[number] = writer.lookup(inputs[LOOKUP_ROWS].pointer, names[a], int(nodes[b][1]))
        elif op in EXTREMES:
            chosen = writer.value(f"fcmp {EXTREMES[op]} {V} {names[a]}, {names[b]}")
            mask = f"<{writer.width} x i1> {chosen}"
            names[number] = writer.value(f"select {mask}, {V} {names[a]}, {V} {names[b]}")
        else:
            text = f"{ARITHMETIC[op]} contract {V} {names[a]}, {names[b]}"
            names[number] = writer.value(text)
    return [names[output.number] for output in outputs]
