"""The walk over the table for one block of states, as LLVM IR: which kernel is called when."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from modurob.compiler import driver
from modurob.compiler.emit_llvm import FunctionWriter, Slot, Vector, splat
from modurob.compiler.jit import host
from modurob.compiler.kernels import BODY_ROW, POINTERS, ROW, Tracer, own_numbers
from modurob.compiler.layout import carried_places, places_of, scratch_size, state_size
from modurob.compiler.packing import size
from modurob.equations.passes import Quantity

CALLS = 5  # entries of a link in the call table: parent, then one function for each step
STEPS = ("outward", "inward", "back", "carry")
WITH_RESULT = ("inward", "back")


def walk(w: Walker) -> str:
    """``void body(io, results, external, memory, arguments)`` of a quantity."""
    quantity, free_base, passes = w.quantity, w.free_base, w.quantity.passes
    if passes.friction == "x":
        w.friction()
    w.call("base", w.rows, w.states, w.scratch, "%io", "%results")
    w.outward("outward")
    if passes.external:
        w.external()
    if passes.touch:
        places = places_of(quantity, free_base)
        write_points(w, quantity, free_base, places, w.state, w.lanes)
    if passes.inward:
        w.inward("inward")
    if passes.turn:
        w.call("turn", w.rows, w.states, "null", "%io", "%results")
    if passes.back:
        w.outward("back")
    if passes.friction == "y":
        w.friction()
    if quantity.per == "pair":
        w.pairs()
    if passes.finish:
        passes.finish(w)
    if passes.output:
        w.outputs()
    w.do("ret void")
    return driver.BODY + "\n".join(w.lines) + "\n}\n"


def write_points(
    w: FunctionWriter,
    quantity: Quantity,
    free_base: bool,
    places: Sequence[int | None],
    state: Callable[[str], str],
    lanes: bool = False,
) -> None:
    """Lines that visit every point at which something happens for a state of the block.

    Args:
        places: Of the scalars in the state of a link, which is at `state(link)`.
        lanes: See `kernels.Kernel`.
    """
    passes = quantity.passes
    count, rows, links, lookup, settles, law = (
        driver.argument(w, name)
        for name in ("points", "point_rows", "point_links", "lookup_rows", "settles", "point_law")
    )
    numbers, unit = (own_numbers(passes) + 1, None) if lanes else (size(passes.Point), "double")
    settles = w.value(f"icmp ne i64 {settles}, 0")
    touch = w.value(f"select i1 {settles}, ptr @settle, ptr @touch")
    with w.loop("0", count) as k:
        row = w.offset(rows, w.value(f"mul i64 {k}, {numbers}"), unit)
        code = w.value(f"load i64, ptr {w.offset(links, k, 'i64')}")
        own = state(w.value(f"lshr i64 {code}, 1"))
        with w.when(w.value(f"trunc i64 {code} to i1")):
            call(w, "@survey", "0", row, own, "null", "null", law)
        memory = w.offset("%memory", w.value(f"mul i64 {k}, {size(passes.Memory)}"))
        pointers = (row, own, lookup, memory, law)
        names: dict[str, str] = dict(zip(POINTERS, pointers, strict=True))
        kernel, number = Tracer(quantity, free_base, places, lanes).active()
        number = kernel.write(w, names, number)
        active = w.value(f"fcmp ogt {w.vector} {number}, {splat(0.0, w.width)}")
        bits = w.value(f"bitcast <{w.width} x i1> {active} to i{w.width}")
        with w.when(w.value(f"icmp ne i{w.width} {bits}, 0")):
            call(w, touch, "0", *pointers)


def call(w: FunctionWriter, function: str, nv: str, *pointers: str) -> None:
    """A line that calls a kernel."""
    given = ", ".join(f"ptr {each}" for each in pointers)
    w.do(f"call void {function}({given}, i64 {nv})")


class Walker(FunctionWriter):
    """Writes the walk; for `Passes.finish` it has the methods of `equations.passes.Matrices`."""

    lanes = False  # see `kernels.Kernel`

    def __init__(self, quantity: Quantity, free_base: bool, width: int | None = None) -> None:
        super().__init__(width or host().width)
        self.quantity, self.free_base = quantity, free_base
        self.base = 6 if free_base else 0
        self.size = state_size(quantity, free_base)
        self.joints, self.nv, self.calls, self.rows, self.has_friction, self.pushes = (
            driver.argument(self, name)
            for name in ("joints", "nv", "calls", "rows", "friction", "external")
        )
        self.cells = self.value(f"mul i64 {self.nv}, {self.nv}")
        self.records = self.offset("%io", driver.BASE_RECORD)
        columns, carried = scratch_size(quantity, free_base)
        self.scratch = self.offset("%results", driver.argument(self, "results"))
        self.carried = self.offset(self.scratch, columns)
        self.states = self.offset(self.scratch, columns + carried)

    # -- places ----------------------------------------------------------------------------------

    def record(self, j: str) -> str:
        return self.offset(self.records, self.value(f"mul i64 {j}, {driver.JOINT_RECORD}"))

    def row(self, i: str) -> str:
        return self.offset(self.rows, self.value(f"mul i64 {i}, {ROW}"), "double")

    def state(self, i: str) -> str:
        return self.offset(self.states, self.value(f"mul i64 {i}, {self.size}"))

    def parent(self, j: str) -> str:
        entry = self.offset(self.calls, self.value(f"mul i64 {j}, {CALLS}"), "i64")
        return self.value(f"load i64, ptr {entry}")

    def column_of(self, j: str) -> str:
        return self.value(f"add i64 {j}, {self.base}") if self.base else j

    def out(self, j: str) -> str:
        """The place of a joint's numbers: on the diagonal, or in a column."""
        if self.quantity.per == "pair":
            column = self.column_of(j)
            return self.cell(column, column)
        if self.quantity.per == "joint":
            return self.offset("%results", self.column_of(j))
        return "null"

    def cell(self, i: str | int, j: str | int, matrix: int = 0) -> str:
        place = self.value(f"add i64 {self.value(f'mul i64 {i}, {self.nv}')}, {j}")
        if matrix:
            place = self.value(f"add i64 {place}, {self.value(f'mul i64 {self.cells}, {matrix}')}")
        return self.offset("%results", place)

    # -- calls -----------------------------------------------------------------------------------

    def call(self, function: str, *pointers: str) -> None:
        name = function if function.startswith("%") else f"@{function}"
        call(self, name, self.nv, *pointers)

    def visit(self, j: str, step: str, parent: str | None = None) -> None:
        """Call the kernel of joint j; `parent` replaces the parent's state."""
        entry = self.offset(self.calls, self.value(f"mul i64 {j}, {CALLS}"), "i64")
        place = self.offset(entry, 1 + STEPS.index(step), "i64")
        function = self.value(f"load ptr, ptr {place}")
        i = self.value(f"add i64 {j}, 1")
        on = self.state(self.parent(j)) if parent is None else parent
        out = self.out(j) if step in WITH_RESULT else "null"
        self.call(function, self.row(i), self.state(i), on, self.record(j), out)

    def outward(self, step: str) -> None:
        with self.loop("0", self.joints) as j:
            self.visit(j, step)

    def inward(self, step: str) -> None:
        last = self.value(f"sub i64 {self.joints}, 1")
        with self.loop("0", self.joints) as j:
            self.visit(self.value(f"sub i64 {last}, {j}"), step)

    def friction(self) -> None:
        has_friction = self.value(f"icmp ne i64 {self.has_friction}, 0")
        with self.when(has_friction), self.loop("0", self.joints) as j:
            row = self.row(self.value(f"add i64 {j}, 1"))
            self.call("friction", row, "null", "null", self.record(j), self.out(j))

    def external(self) -> None:
        with self.when(self.value(f"icmp ne ptr {self.pushes}, null")):
            links = self.value(f"add i64 {self.joints}, 1")
            with self.loop("0", links) as i:
                push = self.offset("%external", self.value(f"mul i64 {i}, {driver.EXTERNAL}"))
                self.call("external", "null", self.state(i), "null", push, "null")

    def outputs(self) -> None:
        """Numbers of every body."""
        rows, links = (driver.argument(self, name) for name in ("body_rows", "body_links"))
        with self.loop("0", driver.argument(self, "bodies")) as k:
            row = self.offset(rows, self.value(f"mul i64 {k}, {BODY_ROW}"), "double")
            link = self.value(f"load i64, ptr {self.offset(links, k, 'i64')}")
            out = self.offset("%results", self.value(f"mul i64 {k}, {self.quantity.entries}"))
            self.call("output", row, self.state(link), "null", "null", out)

    # -- pairs -----------------------------------------------------------------------------------

    def pairs(self) -> None:
        """Every joint with every joint on its way to the base, and with a free base."""
        passes = self.quantity.passes
        # in place: a call takes as many instructions as the pair of a mass matrix
        places = places_of(self.quantity, self.free_base)
        pair = Tracer(self.quantity, self.free_base, places).pair()
        with self.loop("0", self.joints) as j:
            row, own = self.column_of(j), self.state(self.value(f"add i64 {j}, 1"))
            if passes.carry:
                for k, place in enumerate(carried_places(self.quantity, self.free_base)):
                    self.store(Slot(self.carried, k), self.load(Slot(own, place)))

            def above(at: str) -> str:
                return self.value(f"sub i64 {self.parent(at)}, 1")

            # what does not change on the way is loaded once
            loaded = pair.loaded(self, "%self", own)
            with self._chain(j, above) as (at, over):
                if passes.carry:
                    self.visit(at, "carry", self.carried)
                column, parent = self.column_of(over), self.value(f"add i64 {over}, 1")
                ij, ji = self.cell(row, column), self.cell(column, row)
                pointers = (ji, own, self.state(parent), self.carried, ij)
                names = dict(zip(POINTERS, pointers, strict=True))
                pair.write(self, {**names, "%stride": self.cells}, loaded=loaded)
            if self.free_base:
                if passes.carry:
                    self.visit(at, "carry", self.carried)
                ij, ji = self.cell(row, 0), self.cell(0, row)
                self.call("base_pairs", ji, own, self.scratch, self.carried, ij)
        if self.free_base:
            self.call("base_block", "null", self.states, self.scratch, "null", "%results")

    @contextmanager
    def _chain(self, first: str, following: Callable[[str], str]) -> Iterator[tuple[str, str]]:
        """``i = first; while (n := following(i)) >= 0: ...; i = n``; yields i and n.

        At the end i is known, the first one that nothing follows.
        """
        self._count += 1
        name, entered = f"chain{self._count}", self._block
        i = f"%{name}.i"
        self.do(f"br label %{name}.head")
        self.label(f"{name}.head")
        self.do(f"{i} = phi i64 [ {first}, %{entered} ], [ {i}.next, %{name}.latch ]")
        after = following(i)
        more = self.value(f"icmp sge i64 {after}, 0")
        self.do(f"br i1 {more}, label %{name}.body, label %{name}.exit")
        self.label(f"{name}.body")
        yield i, after
        self.do(f"br label %{name}.latch")
        self.label(f"{name}.latch")
        self.do(f"{i}.next = add i64 {after}, 0")
        self.do(f"br label %{name}.head")
        self.label(f"{name}.exit")

    # -- matrices --------------------------------------------------------------------------------

    def get(self, matrix: int, i: str, j: str) -> Vector:
        return Vector(self, self.load(Slot(self.cell(i, j, matrix), 0)))

    def put(self, matrix: int, i: str, j: str, value: Any) -> None:
        name = value.name if isinstance(value, Vector) else splat(float(value), self.width)
        self.store(Slot(self.cell(i, j, matrix), 0), name)

    def each(self, action: Callable[[str], None]) -> None:
        with self.loop("0", self.nv) as k:
            action(k)

    def each_inward(self, action: Callable[[str], None]) -> None:
        last = self.value(f"sub i64 {self.nv}, 1")
        with self.loop("0", self.nv) as k:
            action(self.value(f"sub i64 {last}, {k}"))

    def each_above(self, column: str, action: Callable[[str], None]) -> None:
        with self._chain(column, self._above) as (_, over):
            action(over)

    def _above(self, column: str) -> str:
        """The next column on the way to the base, those of a free base last; -1 at its end."""
        joint = self.value(f"sub i64 {column}, {self.base}")
        if not self.base:
            return self.value(f"sub i64 {self.parent(joint)}, 1")
        jointed = self.value(f"icmp sge i64 {joint}, 0")
        link = self.parent(self.value(f"select i1 {jointed}, i64 {joint}, i64 0"))
        there = self.value(f"add i64 {link}, {self.base - 1}")
        before = self.value(f"sub i64 {column}, 1")
        return self.value(f"select i1 {jointed}, i64 {there}, i64 {before}")
