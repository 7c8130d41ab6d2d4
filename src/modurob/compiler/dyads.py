"""The dyad tier: one kernel for each way a joint can sit on its parent, walked by a table.

A joint turns or slides (2), along x, y or z of its parent or in any other direction (4): eight
kernels for each pass of an algorithm, compiled once for all organisms. Masses, lengths, inertias and
friction are table data; docking a module or editing a number makes a new table and compiles nothing.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from modurob.compiler import driver
from modurob.compiler.driver import Driver, Shape
from modurob.compiler.emit_llvm import Slot, Writer, emit
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
POSITION, MASS, MOMENT, SECOND, SIGN, VISCOUS, COULOMB, ROTATION, ROW = 0, 3, 4, 7, 13, 14, 15, 16, 26
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


class Algorithm(NamedTuple):
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
    push: Field
    friction: tuple[int, int]
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


ALGORITHMS = {
    "inverse_dynamics": Algorithm(
        Shape(v=True, x=True), _rnea_outward, _rnea_inward, None, _rnea_root, _rnea_root_end,
        size=24, push=LOAD, friction=(driver.Y, 1), friction_first=False,
    ),
    "forward_dynamics": Algorithm(
        Shape(v=True, x=True), _aba_outward, _aba_inward, _aba_back, _aba_root, _aba_root_end,
        size=50, push=BIAS, friction=(driver.X, -1), friction_first=True,
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
    parts.append(_friction_ir(*algorithm.friction))
    parts.append(_body_ir(algorithm))
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


def _body_ir(algorithm: Algorithm) -> str:
    """The walk over the table for one block of states."""
    w = Writer(host().width)
    joints, calls, rows, rough, external = (
        driver.argument(w, name) for name in ("joints", "calls", "rows", "friction", "external")
    )
    records = w.offset("%io", driver.BASE_RECORD)

    def record(j: str) -> str:
        return w.offset(records, w.value(f"mul i64 {j}, {driver.JOINT_RECORD}"))

    def row(i: str) -> str:
        return w.offset(rows, w.value(f"mul i64 {i}, {ROW}"), "double")

    def state(i: str) -> str:
        return w.offset("%states", w.value(f"mul i64 {i}, {algorithm.size}"))

    def visit(j: str, step: int) -> None:
        entry = w.offset(calls, w.value(f"mul i64 {j}, {CALLS}"), "i64")
        parent = w.value(f"load i64, ptr {entry}")
        function = w.value(f"load ptr, ptr {w.offset(entry, 1 + step, 'i64')}")
        i = w.value(f"add i64 {j}, 1")
        w.do(
            f"call void {function}(ptr {row(i)}, ptr {state(i)}, ptr {state(parent)}, ptr {record(j)})"
        )

    def rub() -> None:
        with w.when(w.value(f"icmp ne i64 {rough}, 0")), w.loop("0", joints) as j:
            i = w.value(f"add i64 {j}, 1")
            w.do(f"call void @rub(ptr {row(i)}, ptr null, ptr null, ptr {record(j)})")

    if algorithm.friction_first:
        rub()
    w.do(f"call void @root(ptr {rows}, ptr %states, ptr null, ptr %io)")
    with w.loop("0", joints) as j:
        visit(j, 0)
    with w.when(w.value(f"icmp ne ptr {external}, null")):
        links = w.value(f"add i64 {joints}, 1")
        with w.loop("0", links) as i:
            push = w.offset("%external", w.value(f"mul i64 {i}, {driver.EXTERNAL}"))
            for k in range(driver.EXTERNAL):
                slot = Slot(state(i), algorithm.push.start + k)
                rest = w.value(f"fsub {w.vector} {w.load(slot)}, {w.load(Slot(push, k))}")
                w.store(slot, rest)
    with w.loop("0", joints) as j:
        visit(w.value(f"sub i64 {w.value(f'sub i64 {joints}, 1')}, {j}"), 1)
    w.do(f"call void @root_end(ptr {rows}, ptr %states, ptr null, ptr %io)")
    if algorithm.back is not None:
        with w.loop("0", joints) as j:
            visit(j, 2)
    if not algorithm.friction_first:
        rub()
    w.do("ret void")
    head = "define internal void @body(ptr %io, ptr %states, ptr %external, ptr %arguments) {\nentry:\n"
    return head + "\n".join(w.lines) + "\n}\n"


def workspace_vectors(name: str, joints: int) -> int:
    """Vectors of workspace that a table driver needs."""
    links = joints + 1
    io = driver.BASE_RECORD + driver.JOINT_RECORD * joints + driver.EXTERNAL * links
    return io + ALGORITHMS[name].size * links


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
