"""Walks over the table: which kernel is called when, as LLVM IR."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from modurob.compiler import driver
from modurob.compiler.emit_llvm import Slot, Writer
from modurob.compiler.jit import host
from modurob.compiler.kernels import (
    BASE_CELLS,
    BASE_COLUMNS,
    CALLS,
    DIAGONAL,
    FOUND,
    OWN,
    ROW,
    SCRATCH,
    SLIDING,
    TURNING,
    UNIT_LOAD,
    Field,
    Passes,
)


class Walker(Writer):
    """Writes the walk over the table for one block of states."""

    def __init__(self, algorithm: Passes, states: str) -> None:
        super().__init__(host().width)
        self.size, self.states = algorithm.size, states
        self.joints, self.calls, self.rows, self.rough, self.external = (
            driver.argument(self, name)
            for name in ("joints", "calls", "rows", "friction", "external")
        )
        self.records = self.offset("%io", driver.BASE_RECORD)

    def record(self, j: str) -> str:
        return self.offset(self.records, self.value(f"mul i64 {j}, {driver.JOINT_RECORD}"))

    def row(self, i: str) -> str:
        return self.offset(self.rows, self.value(f"mul i64 {i}, {ROW}"), "double")

    def state(self, i: str) -> str:
        return self.offset(self.states, self.value(f"mul i64 {i}, {self.size}"))

    def parent(self, j: str) -> str:
        entry = self.offset(self.calls, self.value(f"mul i64 {j}, {CALLS}"), "i64")
        return self.value(f"load i64, ptr {entry}")

    def visit(self, j: str, step: int, parent: str | None = None) -> None:
        """Call the kernel of joint j; `parent` replaces the parent's state."""
        entry = self.offset(self.calls, self.value(f"mul i64 {j}, {CALLS}"), "i64")
        function = self.value(f"load ptr, ptr {self.offset(entry, 1 + step, 'i64')}")
        i = self.value(f"add i64 {j}, 1")
        on = self.state(self.parent(j)) if parent is None else parent
        pointers = f"ptr {self.row(i)}, ptr {self.state(i)}, ptr {on}, ptr {self.record(j)}"
        self.do(f"call void {function}({pointers})")

    def outward(self, step: int) -> None:
        with self.loop("0", self.joints) as j:
            self.visit(j, step)

    def inward(self, step: int) -> None:
        last = self.value(f"sub i64 {self.joints}, 1")
        with self.loop("0", self.joints) as j:
            self.visit(self.value(f"sub i64 {last}, {j}"), step)

    def rub(self) -> None:
        with (
            self.when(self.value(f"icmp ne i64 {self.rough}, 0")),
            self.loop("0", self.joints) as j,
        ):
            i = self.value(f"add i64 {j}, 1")
            self.do(f"call void @rub(ptr {self.row(i)}, ptr null, ptr null, ptr {self.record(j)})")

    def push(self, field: Field) -> None:
        """Subtract the external wrenches."""
        with self.when(self.value(f"icmp ne ptr {self.external}, null")):
            links = self.value(f"add i64 {self.joints}, 1")
            with self.loop("0", links) as i:
                push = self.offset("%external", self.value(f"mul i64 {i}, {driver.EXTERNAL}"))
                for k in range(driver.EXTERNAL):
                    slot = Slot(self.state(i), field.start + k)
                    held, pushed = self.load(slot), self.load(Slot(push, k))
                    self.store(slot, self.value(f"fsub {self.vector} {held}, {pushed}"))

    @contextmanager
    def chain(self, joint: str) -> Iterator[tuple[str, str]]:
        """Walk from a joint to the base; yields (joint, parent link) while the parent has a joint.

        Afterwards `chain_end` is the joint that hangs on the base.
        """
        self._count += 1
        name, entered = f"chain{self._count}", self._block
        self.do(f"br label %{name}.head")
        self.label(f"{name}.head")
        self.do(f"%{name}.j = phi i64 [ {joint}, %{entered} ], [ %{name}.next, %{name}.latch ]")
        above = self.parent(f"%{name}.j")
        more = self.value(f"icmp sgt i64 {above}, 0")
        self.do(f"br i1 {more}, label %{name}.body, label %{name}.exit")
        self.label(f"{name}.body")
        yield f"%{name}.j", above
        self.do(f"br label %{name}.latch")
        self.label(f"{name}.latch")
        self.do(f"%{name}.next = sub i64 {above}, 1")
        self.do(f"br label %{name}.head")
        self.label(f"{name}.exit")
        self.chain_end = f"%{name}.j"

    def along(self, link: str, load: str) -> str:
        """The component of a wrench along a link's joint, read the way the joint is read."""
        row = self.row(link)
        force, torque = self.load(Slot(load, 0)), self.load(Slot(load, 3))
        sliding = self.load(Slot(row, SLIDING, broadcast=True))
        turning = self.load(Slot(row, TURNING, broadcast=True))
        part = self.value(f"fmul {self.vector} {sliding}, {force}")
        other = self.value(f"fmul {self.vector} {turning}, {torque}")
        return self.value(f"fadd {self.vector} {part}, {other}")

    def function(self) -> str:
        self.do("ret void")
        head = (
            "define internal void @body(ptr %io, ptr %states, ptr %external, ptr %arguments) {\n"
            "entry:\n"
        )
        return head + "\n".join(self.lines) + "\n}\n"


def walk(algorithm: Passes) -> str:
    """Outward, inward, and perhaps back out."""
    w = Walker(algorithm, "%states")
    if algorithm.rub_first:
        w.rub()
    w.do(f"call void @root(ptr {w.rows}, ptr %states, ptr null, ptr %io)")
    w.outward(0)
    if algorithm.push is not None:
        w.push(algorithm.push)
    w.inward(1)
    w.do(f"call void @root_end(ptr {w.rows}, ptr %states, ptr null, ptr %io)")
    if algorithm.back is not None:
        w.outward(2)
    if not algorithm.rub_first:
        w.rub()
    return w.function()


class PairWalker(Walker):
    """A walk that fills (nv, nv) matrices, pair of joints by pair of joints."""

    def __init__(self, algorithm: Passes, free_base: bool) -> None:
        super().__init__(algorithm, "%links")
        self.base = 6 if free_base else 0
        self.nv = driver.argument(self, "nv")
        self.cells = self.value(f"mul i64 {self.nv}, {self.nv}")
        count = algorithm.shape.matrices + algorithm.spare
        matrices = self.value(f"mul i64 {self.cells}, {count}")
        self.scratch = self.offset("%states", matrices)
        self.do(
            f"%links = getelementptr {self.vector}, ptr {self.scratch}, i64 {algorithm.scratch}"
        )

    def cell(self, i: str | int, j: str | int, matrix: int = 0) -> Slot:
        row = self.value(f"mul i64 {i}, {self.nv}")
        place = self.value(f"add i64 {row}, {j}")
        skip = self.value(f"mul i64 {self.cells}, {matrix}")
        return Slot(self.offset("%states", self.value(f"add i64 {skip}, {place}")), 0)

    def both(self, i: str, j: str | int, value: str, matrix: int = 0) -> None:
        self.store(self.cell(i, j, matrix), value)
        self.store(self.cell(j, i, matrix), value)

    def column_of(self, joint: str) -> str:
        return self.value(f"add i64 {joint}, {self.base}")


def mass_matrix(algorithm: Passes, free_base: bool) -> str:
    """Composite bodies, then one wrench walked inward for each joint."""
    w = PairWalker(algorithm, free_base)
    scratch, base = w.scratch, w.offset(w.scratch, SCRATCH)
    w.do(f"call void @root(ptr {w.rows}, ptr %links, ptr null, ptr %io)")
    w.outward(0)
    w.inward(1)
    with w.loop("0", w.joints) as j:
        row, own = w.column_of(j), w.state(w.value(f"add i64 {j}, 1"))
        w.store(w.cell(row, row), w.load(Slot(own, DIAGONAL.start)))
        for k in range(6):
            w.store(Slot(scratch, k), w.load(Slot(own, UNIT_LOAD.start + k)))
        with w.chain(j) as (at, parent):
            w.visit(at, 2, scratch)
            above = w.value(f"sub i64 {parent}, 1")
            w.both(row, w.column_of(above), w.along(parent, scratch))
        if free_base:
            w.visit(w.chain_end, 2, scratch)
            for k in range(6):
                w.both(row, k, w.load(Slot(scratch, k)))
    if free_base:
        w.do(f"call void @root_end(ptr {w.rows}, ptr %links, ptr {base}, ptr %io)")
        for i in range(6):
            for j in range(6):
                w.store(w.cell(i, j), w.load(Slot(base, 6 * i + j)))
    return w.function()


def derivatives(algorithm: Passes, free_base: bool) -> str:
    """The three matrices of inverse dynamics."""
    w = PairWalker(algorithm, free_base)
    write_derivatives(w, free_base, (0, 1, 2))
    return w.function()


def write_derivatives(w: PairWalker, free_base: bool, places: tuple[int, int, int]) -> None:
    """Bundles inward, then every joint with every joint on its way to the base.

    Args:
        places: Which matrices the derivatives by q, v and a go to.
    """
    scratch, (by_q, by_v, by_a) = w.scratch, places
    w.do(f"call void @root(ptr {w.rows}, ptr %links, ptr {scratch}, ptr %io)")
    w.outward(0)
    w.inward(1)

    def put(i: str, j: str | int) -> None:
        q_ij, q_ji, v_ij, v_ji, a_ij = (w.load(Slot(scratch, k)) for k in range(FOUND.size))
        w.store(w.cell(i, j, by_q), q_ij)
        w.store(w.cell(j, i, by_q), q_ji)
        w.store(w.cell(i, j, by_v), v_ij)
        w.store(w.cell(j, i, by_v), v_ji)
        w.both(i, j, a_ij, by_a)

    with w.loop("0", w.joints) as j:
        row, own = w.column_of(j), w.state(w.value(f"add i64 {j}, 1"))
        for k, place in enumerate(places):
            w.store(w.cell(row, row, place), w.load(Slot(own, OWN.start + k)))
        with w.chain(j) as (_, parent):
            pointers = f"ptr null, ptr {own}, ptr {w.state(parent)}, ptr {scratch}"
            w.do(f"call void @pair({pointers})")
            put(row, w.column_of(w.value(f"sub i64 {parent}, 1")))
        if free_base:
            for k in range(6):
                column = w.offset(scratch, BASE_COLUMNS.start + 24 * k)
                w.do(f"call void @base_pair(ptr null, ptr {own}, ptr {column}, ptr {scratch})")
                put(row, k)
    if free_base:
        w.do(f"call void @root_end(ptr {w.rows}, ptr %links, ptr {scratch}, ptr %io)")
        for k, place in enumerate(places):
            for i in range(6):
                for j in range(6):
                    found = w.load(Slot(scratch, BASE_CELLS.start + 36 * k + 6 * i + j))
                    w.store(w.cell(i, j, place), found)
