"""The dyad tier: one kernel for each way a joint can sit on its parent, walked by a table.

A joint turns or slides (2), along x, y or z of its parent or in any other direction (4): eight
kernels for each pass of an algorithm, compiled once for all organisms. Masses, lengths, inertias and
friction are table data; docking a module or editing a number makes a new table and compiles nothing.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from modurob.compiler import driver
from modurob.compiler.driver import Driver, Shape
from modurob.compiler.emit_llvm import Slot, Writer, emit, splat
from modurob.compiler.jit import Library, compile_ir, host
from modurob.compiler.trace import Graph, Traced, lifted
from modurob.equations import forward_dynamics as aba
from modurob.equations import inverse_dynamics as rnea
from modurob.equations import mass_matrix as crba
from modurob.equations.inverse_dynamics import Load, Motion
from modurob.equations.links import Link, friction, joint_pose
from modurob.equations.vectors import Mat, Vec

PATTERNS, KINDS = 4, 2
CYCLES = ((0, 1, 2), (1, 2, 0), (2, 0, 1))  # where x, y, z of the joint point in the parent

# columns of a table row; for the base, POSITION holds gravity
POSITION, MASS, MOMENT, SECOND, SIGN, VISCOUS, COULOMB, ROTATION = 0, 3, 4, 7, 13, 14, 15, 16
SLIDING, TURNING, ROW = 25, 26, 28  # the sign again, in the one that says how the joint moves
SYMMETRIC = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
CALLS = 4  # entries of a link in the call table: parent, then one function for each pass


class Field(NamedTuple):
    """A group of vectors in a link's state."""

    start: int
    size: int


class SignedAngle:
    """A joint angle that may be read backwards; its sine and cosine come from the record."""

    def __init__(self, cosine: Traced, sine: Traced) -> None:
        self._cos, self._sin = cosine, sine

    def cos(self) -> Traced:
        return self._cos

    def sin(self) -> Traced:
        return self._sin


class Kernel:
    """One function of the table being traced: its inputs, and what it writes where."""

    def __init__(self, pattern: int, prismatic: bool) -> None:
        self.graph = Graph()
        self.slots: dict[str, Slot] = {}
        self.stores: list[tuple[Slot, Traced]] = []
        self.link = self._link(pattern, prismatic)

    def _read(self, name: str, slot: Slot) -> Traced:
        self.slots[name] = slot
        return self.graph.input(name)

    def row(self, column: int, count: int) -> list[Traced]:
        """Numbers of the table row."""
        return [
            self._read(f"row{k}", Slot("%row", k, broadcast=True))
            for k in range(column, column + count)
        ]

    def state(self, field: Field, of: str = "self") -> list[Traced]:
        """Vectors of the link's or its parent's state."""
        return [
            self._read(f"{of}{field.start + k}", Slot(f"%{of}", field.start + k))
            for k in range(field.size)
        ]

    def record(self, slot: int) -> Traced:
        """A vector of the joint's record."""
        return self._read(f"record{slot}", Slot("%record", slot))

    def put(self, field: Field, values: Sequence[Any], of: str = "self") -> None:
        for k, value in enumerate(lifted(self.graph, values)):
            self.stores.append((Slot(f"%{of}", field.start + k), value))

    def put_record(self, slot: int, value: Any) -> None:
        self.stores.append((Slot("%record", slot), lifted(self.graph, [value])[0]))

    def _link(self, pattern: int, prismatic: bool) -> Link:
        if pattern < 3:
            cycle = CYCLES[pattern]
            R = Mat([[1 if cycle[j] == i else 0 for j in range(3)] for i in range(3)])
        else:
            entries = self.row(ROTATION, 9)
            R = Mat([entries[3 * i : 3 * i + 3] for i in range(3)])
        second = symmetric_of(self.row(SECOND, 6))
        mass = self.row(MASS, 1)[0]
        p, h = Vec(self.row(POSITION, 3)), Vec(self.row(MOMENT, 3))
        return Link(0, R, p, prismatic, mass, h, second, 0, 0)

    @property
    def sign(self) -> Traced:
        return self.row(SIGN, 1)[0]

    def pose(self) -> tuple[Mat, Vec]:
        """(R, p) of the link at its joint's displacement."""
        if self.link.prismatic:
            return joint_pose(self.link, self.record(driver.Q) * self.sign)
        angle = SignedAngle(self.record(driver.COS), self.record(driver.SIN) * self.sign)
        return joint_pose(self.link, angle)

    def ir(self, name: str) -> str:
        """The function as LLVM IR."""
        writer = Writer(host().width)
        values = emit(writer, self.graph, [value for _, value in self.stores], self.slots)
        for (slot, _), value in zip(self.stores, values, strict=True):
            writer.store(slot, value)
        head = f"define internal void @{name}(ptr %row, ptr %self, ptr %parent, ptr %record) {{\nentry:\n"
        return head + "\n".join(writer.lines) + "\n  ret void\n}\n"


def symmetric_of(entries: Sequence[Any]) -> Mat:
    """A symmetric matrix from xx, yy, zz, xy, xz, yz."""
    at = {pair: entry for pair, entry in zip(SYMMETRIC, entries, strict=True)}
    return Mat([[at[min(i, j), max(i, j)] for j in range(3)] for i in range(3)])


def symmetric_entries(M: Mat) -> list[Any]:
    """xx, yy, zz, xy, xz, yz of a symmetric matrix."""
    return [M[pair] for pair in SYMMETRIC]


def entries(M: Mat) -> list[Any]:
    """All nine entries, row by row."""
    return [M[i, j] for i in range(3) for j in range(3)]


class Passes(NamedTuple):
    """An algorithm as passes over the links.

    Attributes:
        outward, inward, back: Trace one link's part of a pass; `back` may be missing.
        root, root_end: Trace the base's part of the first pass, and after the inward one.
        size: Vectors of a link's state.
        push: Where external wrenches are subtracted from: a field of six, or None.
        friction: Which record slot friction is added to, and with which sign, or None.
        friction_first: Whether that happens before the passes.
    """

    shape: Shape
    outward: Callable[[Kernel], None]
    inward: Callable[[Kernel], None]
    back: Callable[[Kernel], None] | None
    root: Callable[[Kernel, bool], None]
    root_end: Callable[[Kernel, bool], None]
    size: int
    push: Field | None
    friction: tuple[int, int] | None
    friction_first: bool


# -- inverse dynamics ------------------------------------------------------------------------------

MOTION, LOAD = Field(0, 18), Field(18, 6)


def _motion(values: Sequence[Any]) -> Motion:
    A = Mat([values[6 + 3 * i : 9 + 3 * i] for i in range(3)])
    return Motion(Vec(values[:3]), Vec(values[3:6]), A, Vec(values[15:18]))


def _flat(motion: Motion) -> list[Any]:
    return [*motion.w, *motion.alpha, *entries(motion.A), *motion.a]


def _load(values: Sequence[Any]) -> Load:
    return Load(Vec(values[:3]), Vec(values[3:6]))


def _rnea_outward(k: Kernel) -> None:
    R, p = k.pose()
    v, a = k.record(driver.V) * k.sign, k.record(driver.X) * k.sign
    moved = rnea.outward(k.link, _motion(k.state(MOTION, "parent")), R, p, v, a)
    load = rnea.inertial(k.link, moved)
    k.put(MOTION, _flat(moved))
    k.put(LOAD, [*load.f, *load.n])


def _rnea_inward(k: Kernel) -> None:
    load = _load(k.state(LOAD))
    k.put_record(driver.Y, crba.along(k.link, load) * k.sign)
    passed = rnea.inward(*k.pose(), load)
    held = k.state(LOAD, "parent")
    k.put(LOAD, [a + b for a, b in zip(held, (*passed.f, *passed.n), strict=True)], "parent")


def _base_slots(k: Kernel, start: int, count: int) -> list[Traced]:
    return [k.record(start + i) for i in range(count)]


def _gravity(k: Kernel, free: bool) -> Vec:
    gravity = Vec(k.row(POSITION, 3))
    if not free:
        return gravity
    return rnea.in_base(_base_slots(k, driver.BASE_Q + 3, 4), gravity)


def _rnea_root(k: Kernel, free: bool) -> None:
    gravity = _gravity(k, free)
    if not free:
        k.put(MOTION, _flat(rnea.resting_base(gravity)))
        k.put(LOAD, [0] * 6)
        return
    twist, rate = _base_slots(k, driver.BASE_V, 6), _base_slots(k, driver.BASE_X, 6)
    moved = rnea.base_motion(twist, rate, gravity)
    load = rnea.inertial(k.link, moved)
    k.put(MOTION, _flat(moved))
    k.put(LOAD, [*load.f, *load.n])


def _rnea_root_end(k: Kernel, free: bool) -> None:
    if free:
        for i, value in enumerate(k.state(LOAD)):
            k.put_record(driver.BASE_Y + i, value)


# -- forward dynamics ------------------------------------------------------------------------------

SPIN, DRIFT, BODY, HINGE = Field(0, 3), Field(3, 6), Field(9, 27), Field(36, 8)
BIAS, ACCELERATION = Field(30, 6), Field(44, 6)


def _body(values: Sequence[Any]) -> aba.Articulated:
    B = Mat([values[6 + 3 * i : 9 + 3 * i] for i in range(3)])
    return aba.Articulated(
        symmetric_of(values[:6]), B, symmetric_of(values[15:21]), _load(values[21:27])
    )


def _flat_body(body: aba.Articulated) -> list[Any]:
    return [
        *symmetric_entries(body.A),
        *entries(body.B),
        *symmetric_entries(body.D),
        *body.bias.f,
        *body.bias.n,
    ]


def _aba_outward(k: Kernel) -> None:
    v = k.record(driver.V) * k.sign
    w, drift = aba.outward(k.link, Vec(k.state(SPIN, "parent")), *k.pose(), v)
    k.put(SPIN, [*w])
    k.put(DRIFT, [*drift.f, *drift.n])
    k.put(BODY, _flat_body(aba.alone(k.link, w)))


def _aba_inward(k: Kernel) -> None:
    body = _body(k.state(BODY))
    joint = aba.hinge(k.link, body, k.record(driver.X) * k.sign)
    felt = aba.handed_on(k.link, body, joint, _load(k.state(DRIFT)))
    k.put(HINGE, [*joint.U.f, *joint.U.n, joint.inverse, joint.u])
    passed = aba.to_parent(*k.pose(), felt)
    held = _body(k.state(BODY, "parent"))
    k.put(BODY, _flat_body(aba.added(held, passed)), "parent")


def _aba_back(k: Kernel) -> None:
    stored = k.state(HINGE)
    joint = aba.Hinged(_load(stored[:6]), stored[6], stored[7])
    parent, drift = _load(k.state(ACCELERATION, "parent")), _load(k.state(DRIFT))
    a, moved = aba.accelerated(k.link, joint, *k.pose(), parent, drift)
    k.put_record(driver.Y, a * k.sign)
    k.put(ACCELERATION, [*moved.f, *moved.n])


def _aba_root(k: Kernel, free: bool) -> None:
    w = Vec(_base_slots(k, driver.BASE_V + 3, 3)) if free else Vec([0, 0, 0])
    k.put(SPIN, [*w])
    k.put(BODY, _flat_body(aba.alone(k.link, w)))


def _aba_root_end(k: Kernel, free: bool) -> None:
    gravity = _gravity(k, free)
    if not free:
        k.put(ACCELERATION, [*(-gravity), 0, 0, 0])
        return
    twist, wrench = _base_slots(k, driver.BASE_V, 6), _base_slots(k, driver.BASE_X, 6)
    moved, rate = aba.free_base(_body(k.state(BODY)), twist, wrench, gravity)
    k.put(ACCELERATION, [*moved.f, *moved.n])
    for i, value in enumerate(rate):
        k.put_record(driver.BASE_Y + i, value)


# -- mass matrix -----------------------------------------------------------------------------------

COMPOSITE, UNIT_LOAD, DIAGONAL = Field(0, 10), Field(10, 6), Field(16, 1)
SCRATCH = 7  # vectors for the wrench that walks inward: six, and its component along the joint
BASE_BLOCK = 36


def _composite(values: Sequence[Any]) -> crba.Composite:
    return crba.Composite(values[0], Vec(values[1:4]), symmetric_of(values[4:10]))


def _flat_composite(body: crba.Composite) -> list[Any]:
    return [body.mass, *body.moment, *symmetric_entries(body.second)]


def _crba_outward(k: Kernel) -> None:
    link = k.link
    k.put(COMPOSITE, _flat_composite(crba.Composite(link.mass, link.moment, link.second)))


def _crba_inward(k: Kernel) -> None:
    body = _composite(k.state(COMPOSITE))
    load = crba.unit_load(k.link, body)
    k.put(UNIT_LOAD, [x * k.sign for x in (*load.f, *load.n)])
    k.put(DIAGONAL, [crba.along(k.link, load)])
    passed = crba.to_parent(*k.pose(), body)
    k.put(COMPOSITE, _flat_composite(crba.added(_composite(k.state(COMPOSITE, "parent")), passed)), "parent")


def _crba_carry(k: Kernel) -> None:
    """Move the wrench in the scratch to the parent; `parent` is the scratch here."""
    passed = rnea.inward(*k.pose(), _load(k.state(Field(0, 6), "parent")))
    k.put(Field(0, 6), [*passed.f, *passed.n], "parent")


def _crba_root(k: Kernel, free: bool) -> None:
    _crba_outward(k)


def _crba_root_end(k: Kernel, free: bool) -> None:
    if free:
        rows = crba.base_inertia(_composite(k.state(COMPOSITE)))
        k.put(Field(0, BASE_BLOCK), [x for row in rows for x in row], "parent")


ALGORITHMS = {
    "inverse_dynamics": Passes(
        Shape(v=True, x=True), _rnea_outward, _rnea_inward, None, _rnea_root, _rnea_root_end,
        size=24, push=LOAD, friction=(driver.Y, 1), friction_first=False,
    ),
    "forward_dynamics": Passes(
        Shape(v=True, x=True), _aba_outward, _aba_inward, _aba_back, _aba_root, _aba_root_end,
        size=50, push=BIAS, friction=(driver.X, -1), friction_first=True,
    ),
    "mass_matrix": Passes(
        Shape(v=False, x=False, square=True), _crba_outward, _crba_inward, _crba_carry,
        _crba_root, _crba_root_end, size=17, push=None, friction=None, friction_first=False,
    ),
}  # fmt: skip


# -- from kernels to a library ---------------------------------------------------------------------


@cache
def library(name: str, free_base: bool) -> Library:
    """The compiled table kernels of an algorithm."""
    algorithm = ALGORITHMS[name]
    parts = [driver.declarations(host().width)]
    table = []
    for prismatic in (False, True):
        for pattern in range(PATTERNS):
            for step in ("outward", "inward", "back"):
                trace = getattr(algorithm, step)
                function = f"{step}_{pattern}_{int(prismatic)}"
                if trace is not None:
                    kernel = Kernel(pattern, prismatic)
                    trace(kernel)
                    parts.append(kernel.ir(function))
                table.append(f"ptr @{function}" if trace is not None else "ptr null")
    for end in ("root", "root_end"):
        kernel = Kernel(0, False)
        getattr(algorithm, end)(kernel, free_base)
        parts.append(kernel.ir(end))
    if algorithm.friction is not None:
        parts.append(_friction_ir(*algorithm.friction))
    parts.append(_walk_ir(algorithm) if not algorithm.shape.square else _pairs_ir(algorithm, free_base))
    parts.append(Driver(host().width, algorithm.shape, free_base).write("@body"))
    parts.append(driver.single_ir(algorithm.shape))
    size = len(table)
    parts.append(f"@table = constant [{size} x ptr] [{', '.join(table)}]\n")
    return compile_ir("\n".join(parts))


def _friction_ir(slot: int, sign: int) -> str:
    """Adds a joint's friction to a slot of its record."""
    kernel = Kernel(0, False)
    viscous, coulomb = kernel.row(VISCOUS, 1)[0], kernel.row(COULOMB, 1)[0]
    rough = kernel.link._replace(viscous=viscous, coulomb=coulomb)
    force = friction(rough, kernel.record(driver.V))
    kernel.put_record(slot, kernel.record(slot) + sign * force)
    return kernel.ir("rub")


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
        with self.when(self.value(f"icmp ne i64 {self.rough}, 0")), self.loop("0", self.joints) as j:
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
    def chain(self, joint: str, parent: Callable[[str], str]) -> Iterator[tuple[str, str]]:
        """Walk from a joint to the base; yields (joint, parent link) while the parent has a joint.

        Afterwards `chain_end` is the joint that hangs on the base.
        """
        self._count += 1
        name, entered = f"chain{self._count}", self._block
        self.do(f"br label %{name}.head")
        self.label(f"{name}.head")
        self.do(f"%{name}.j = phi i64 [ {joint}, %{entered} ], [ %{name}.next, %{name}.latch ]")
        above = parent(f"%{name}.j")
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


def _walk_ir(algorithm: Passes) -> str:
    """Outward, inward, and perhaps back out."""
    w = Walker(algorithm, "%states")
    if algorithm.friction_first:
        w.rub()
    w.do(f"call void @root(ptr {w.rows}, ptr %states, ptr null, ptr %io)")
    w.outward(0)
    if algorithm.push is not None:
        w.push(algorithm.push)
    w.inward(1)
    w.do(f"call void @root_end(ptr {w.rows}, ptr %states, ptr null, ptr %io)")
    if algorithm.back is not None:
        w.outward(2)
    if not algorithm.friction_first:
        w.rub()
    return w.function()


def _pairs_ir(algorithm: Passes, free_base: bool) -> str:
    """Composite bodies, then one wrench walked inward for each joint; fills an (nv, nv) matrix."""
    w = Walker(algorithm, "%links")
    nv = driver.argument(w, "nv")
    cells = w.value(f"mul i64 {nv}, {nv}")
    scratch = w.offset("%states", cells)
    base = w.offset(scratch, SCRATCH)
    w.do(f"%links = getelementptr {w.vector}, ptr {base}, i64 {BASE_BLOCK}")
    w.do(f"call void @root(ptr {w.rows}, ptr %links, ptr null, ptr %io)")
    w.outward(0)
    w.inward(1)
    offset = 6 if free_base else 0

    def cell(i: str, j: str) -> str:
        return w.offset("%states", w.value(f"add i64 {w.value(f'mul i64 {i}, {nv}')}, {j}"))

    def both(i: str, j: str, value: str) -> None:
        for a, b in ((i, j), (j, i)):
            w.store(Slot(cell(a, b), 0), value)

    with w.loop("0", cells) as k:
        w.store(Slot(w.offset("%states", k), 0), splat(0.0, w.width))
    with w.loop("0", w.joints) as j:
        link = w.value(f"add i64 {j}, 1")
        row = w.value(f"add i64 {j}, {offset}")
        own = w.state(link)
        w.store(Slot(cell(row, row), 0), w.load(Slot(own, DIAGONAL.start)))
        for k in range(6):
            w.store(Slot(scratch, k), w.load(Slot(own, UNIT_LOAD.start + k)))
        with w.chain(j, w.parent) as (at, parent):
            w.visit(at, 2, scratch)
            above = w.value(f"sub i64 {parent}, 1")
            column = w.value(f"add i64 {above}, {offset}")
            both(row, column, w.along(parent, scratch))
        if free_base:
            w.visit(w.chain_end, 2, scratch)
            for k in range(6):
                both(row, str(k), w.load(Slot(scratch, k)))
    if free_base:
        w.do(f"call void @root_end(ptr {w.rows}, ptr %links, ptr {base}, ptr %io)")
        for i in range(6):
            for j in range(6):
                w.store(Slot(cell(str(i), str(j)), 0), w.load(Slot(base, 6 * i + j)))
    return w.function()


def workspace_vectors(name: str, joints: int, free_base: bool) -> int:
    """Vectors of workspace that a table driver needs."""
    links, algorithm = joints + 1, ALGORITHMS[name]
    io = driver.BASE_RECORD + driver.JOINT_RECORD * joints + driver.EXTERNAL * links
    nv = joints + (6 if free_base else 0)
    matrix = nv * nv + SCRATCH + BASE_BLOCK if algorithm.shape.square else 0
    return io + matrix + algorithm.size * links


class Table(NamedTuple):
    """An organism as the kernels see it.

    Attributes:
        rows: (n + 1, ROW) numbers; the base's row holds gravity.
        pattern: (n,) which kernel each joint takes.
        parent: (n,)
    """

    rows: np.ndarray
    pattern: np.ndarray
    parent: np.ndarray


def table_rows(frames: Any, gravity: np.ndarray) -> Table:
    """The table of a model's joint frames."""
    n = len(frames.parent)
    rows = np.zeros((n + 1, ROW))
    rows[0, POSITION : POSITION + 3] = gravity
    rows[1:, POSITION : POSITION + 3] = frames.position
    rows[:, MASS] = frames.mass
    rows[:, MOMENT : MOMENT + 3] = frames.moment
    for k, (i, j) in enumerate(SYMMETRIC):
        rows[:, SECOND + k] = frames.second[:, i, j]
    rows[1:, SIGN] = frames.sign
    rows[1:, VISCOUS] = frames.viscous
    rows[1:, COULOMB] = frames.coulomb
    rows[1:, ROTATION : ROTATION + 9] = frames.rotation.reshape(n, 9)
    rows[1:, SLIDING] = np.where(frames.prismatic, frames.sign, 0.0)
    rows[1:, TURNING] = np.where(frames.prismatic, 0.0, frames.sign)
    return Table(rows, frames.pattern + PATTERNS * frames.prismatic, frames.parent)


@cache
def _functions(name: str, free_base: bool) -> np.ndarray:
    """(8, 3) addresses of the kernels: kind and pattern, pass."""
    count = KINDS * PATTERNS * 3
    found = (ctypes.c_int64 * count).from_address(library(name, free_base).constant("table"))
    return np.array(found, dtype=np.int64).reshape(-1, 3)


def call_table(name: str, free_base: bool, table: Table) -> np.ndarray:
    """(n, CALLS) parent and functions of each joint."""
    calls = np.empty((len(table.parent), CALLS), dtype=np.int64)
    calls[:, 0] = table.parent
    calls[:, 1:] = _functions(name, free_base)[table.pattern]
    return calls
