"""The table's kernels: one link's part of each pass, traced for each way a joint can sit.

A kernel reads numbers of its table row, vectors of its own and its parent's state, and its joint's
record; it writes vectors back. The equations are those of `equations`, one step at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from modurob.compiler import driver
from modurob.compiler.driver import Shape
from modurob.compiler.emit_llvm import Slot, Writer, emit
from modurob.compiler.jit import host
from modurob.compiler.trace import Graph, Traced, lifted
from modurob.equations import derivatives as slopes
from modurob.equations import forward_dynamics as aba
from modurob.equations import inverse_dynamics as rnea
from modurob.equations import mass_matrix as crba
from modurob.equations.inverse_dynamics import Load, Motion
from modurob.equations.links import Link, friction, inertia, joint_pose
from modurob.equations.vectors import EYE, Mat, Vec, hat

PATTERNS, KINDS = 4, 2
TIP, FIRST = 1, 2  # bits of a variant: nothing beyond the link; first to reach its parent
CYCLES = ((0, 1, 2), (1, 2, 0), (2, 0, 1))  # where x, y, z of the joint point in the parent

# columns of a table row; for the base, POSITION holds gravity
POSITION, MASS, MOMENT, SECOND, SIGN, VISCOUS, COULOMB, ROTATION = 0, 3, 4, 7, 13, 14, 15, 16
# the sign again: in the one that says how the joint moves, and where a displacement matters
SLIDING, TURNING, TRAVEL, ROW = 25, 26, 27, 28
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

    def __init__(self, pattern: int, prismatic: bool, variant: int = 0) -> None:
        self.tip, self.first = bool(variant & TIP), bool(variant & FIRST)
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

    def displacement(self) -> Any:
        """The joint's angle or path, read the way the joint is read."""
        if self.link.prismatic:
            return self.record(driver.Q) * self.row(TRAVEL, 1)[0]
        return SignedAngle(self.record(driver.COS), self.record(driver.SIN) * self.sign)

    def pose(self) -> tuple[Mat, Vec]:
        """(R, p) of the link at its joint's displacement."""
        return joint_pose(self.link, self.displacement())

    def ir(self, name: str) -> str:
        """The function as LLVM IR."""
        writer = Writer(host().width)
        values = emit(writer, self.graph, [value for _, value in self.stores], self.slots)
        for (slot, _), value in zip(self.stores, values, strict=True):
            writer.store(slot, value)
        pointers = ", ".join(f"ptr %{each}" for each in ("row", "self", "parent", "record"))
        head = f"define internal void @{name}({pointers}) {{\nentry:\n"
        return head + "\n".join(writer.lines) + "\n  ret void\n}\n"


Trace = Callable[[Kernel], None]


def symmetric_of(entries: Sequence[Any]) -> Mat:
    """A symmetric matrix from xx, yy, zz, xy, xz, yz."""
    at = dict(zip(SYMMETRIC, entries, strict=True))
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
        others: Further kernels that are the same for all joints, by name.
        push: Where external wrenches are subtracted from: a field of six, or None.
        rub_first: Whether friction acts on the forces before the passes, or on them after.
        scratch: Vectors between the matrices and the links' states.
        spare: Further (nv, nv) matrices that are no results.
        variants: 4 where the inward kernel differs for tips and for the first to reach a parent.
    """

    shape: Shape
    outward: Trace
    inward: Trace
    back: Trace | None
    root: Callable[[Kernel, bool], None]
    root_end: Callable[[Kernel, bool], None]
    size: int
    others: Mapping[str, Trace]
    push: Field | None = None
    rub_first: bool = False
    scratch: int = 0
    spare: int = 0
    variants: int = 1


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

SPIN, DRIFT, BIAS, BEYOND = Field(0, 3), Field(3, 6), Field(9, 6), Field(15, 27)
# in the place of what is spent by then: 20 links of 42 vectors fit into the fastest cache
HINGE, ACCELERATION = Field(15, 8), Field(9, 6)


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
    bias = aba.alone(k.link, w).bias
    k.put(BIAS, [*bias.f, *bias.n])


def _own_body(k: Kernel) -> aba.Articulated:
    """The link alone, its inertia straight from the table."""
    link = k.link
    return aba.Articulated(link.mass * EYE, hat(-link.moment), inertia(link), _load(k.state(BIAS)))


def _aba_inward(k: Kernel) -> None:
    body = _own_body(k)
    if not k.tip:
        body = aba.added(body, _body(k.state(BEYOND)))
    joint = aba.hinge(k.link, body, k.record(driver.X) * k.sign)
    felt = aba.handed_on(k.link, body, joint, _load(k.state(DRIFT)))
    k.put(HINGE, [*joint.U.f, *joint.U.n, joint.inverse, joint.u])
    passed = aba.to_parent(*k.pose(), felt)
    if not k.first:
        passed = aba.added(_body(k.state(BEYOND, "parent")), passed)
    k.put(BEYOND, _flat_body(passed), "parent")


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
    bias = aba.alone(k.link, w).bias
    k.put(BIAS, [*bias.f, *bias.n])
    k.put(BEYOND, [0] * BEYOND.size)


def _aba_root_end(k: Kernel, free: bool) -> None:
    gravity = _gravity(k, free)
    if not free:
        k.put(ACCELERATION, [*(-gravity), 0, 0, 0])
        return
    twist, wrench = _base_slots(k, driver.BASE_V, 6), _base_slots(k, driver.BASE_X, 6)
    body = aba.added(_own_body(k), _body(k.state(BEYOND)))
    moved, rate = aba.free_base(body, twist, wrench, gravity)
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
    k.put(
        COMPOSITE,
        _flat_composite(crba.added(_composite(k.state(COMPOSITE, "parent")), passed)),
        "parent",
    )


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


# -- derivatives of inverse dynamics ---------------------------------------------------------------

FRAME, COLUMN, BUNDLE, REACH, OWN = (
    Field(0, 24), Field(24, 18), Field(42, 28), Field(70, 21), Field(91, 3)
)  # fmt: skip
FOUND, BASE_COLUMNS, BASE_CELLS = Field(0, 5), Field(5, 144), Field(149, 108)  # of the scratch


def _pair(values: Sequence[Any]) -> Load:
    return Load(Vec(values[:3]), Vec(values[3:6]))


def _flat_pairs(*pairs: Load) -> list[Any]:
    return [x for pair in pairs for x in (*pair.f, *pair.n)]


def _frame(values: Sequence[Any]) -> slopes.Frame:
    R = Mat([values[3 * i : 3 * i + 3] for i in range(3)])
    return slopes.Frame(R, Vec(values[9:12]), _pair(values[12:18]), _pair(values[18:24]))


def _flat_frame(frame: slopes.Frame) -> list[Any]:
    return [*entries(frame.R), *frame.p, *_flat_pairs(frame.V, frame.A)]


def _column(values: Sequence[Any]) -> slopes.Column:
    S, rate, second = (_pair(values[6 * k : 6 * k + 6]) for k in range(3))
    return slopes.Column(S, rate, second, rate)


def _bundle(values: Sequence[Any]) -> slopes.Bundle:
    K = Mat([values[13 + 3 * i : 16 + 3 * i] for i in range(3)])
    return slopes.Bundle(
        values[0], Vec(values[1:4]), symmetric_of(values[4:10]), Vec(values[10:13]), K,
        _pair(values[22:28]),
    )  # fmt: skip


def _flat_bundle(body: slopes.Bundle) -> list[Any]:
    return [
        body.mass,
        *body.moment,
        *symmetric_entries(body.second),
        *body.momentum,
        *entries(body.K),
        *_flat_pairs(body.load),
    ]


def _slopes_outward(k: Kernel) -> None:
    v, a = k.record(driver.V) * k.sign, k.record(driver.X) * k.sign
    frame, column = slopes.outward(k.link, _frame(k.state(FRAME, "parent")), k.displacement(), v, a)
    signed = [slopes.times(part, k.sign) for part in column[:3]]
    k.put(FRAME, _flat_frame(frame))
    k.put(COLUMN, _flat_pairs(*signed))
    k.put(BUNDLE, _flat_bundle(slopes.bundle(k.link, frame)))


def _slopes_inward(k: Kernel) -> None:
    body, column = _bundle(k.state(BUNDLE)), _column(k.state(COLUMN))
    found = slopes.reach(column, body)
    k.put(REACH, [*found.a, *_flat_pairs(found.b, found.c, found.d)])
    viscous, coulomb = k.row(VISCOUS, 1)[0], k.row(COULOMB, 1)[0]
    rough = k.link._replace(viscous=viscous, coulomb=coulomb)
    dq, dv, da = slopes.own(found, column)
    k.put(OWN, [dq, dv + slopes.friction_slope(rough, k.record(driver.V)), da])
    held = _bundle(k.state(BUNDLE, "parent"))
    k.put(BUNDLE, _flat_bundle(slopes.added(held, body)), "parent")


def _reach(values: Sequence[Any]) -> slopes.Reach:
    b, c, d = (_pair(values[3 + 6 * k : 9 + 6 * k]) for k in range(3))
    return slopes.Reach(Vec(values[:3]), b, c, d)


def _slopes_pair(k: Kernel) -> None:
    """Joint `self` with joint `parent` on its way; the record is the scratch."""
    found = slopes.pair(_reach(k.state(REACH)), _column(k.state(COLUMN, "parent")))
    for slot, value in enumerate(found):
        k.put_record(slot, value)


def _slopes_base_pair(k: Kernel) -> None:
    """Joint `self` with a column of the base at `parent`."""
    column = slopes.Column(*(_pair(k.state(Field(6 * i, 6), "parent")) for i in range(4)))
    for slot, value in enumerate(slopes.pair(_reach(k.state(REACH)), column)):
        k.put_record(slot, value)


def _slopes_root(k: Kernel, free: bool) -> None:
    gravity = Vec(k.row(POSITION, 3))
    if not free:
        k.put(FRAME, _flat_frame(slopes.standing_frame(gravity)))
        k.put(BUNDLE, [0] * BUNDLE.size)
        return
    R = rnea.base_rotation(_base_slots(k, driver.BASE_Q + 3, 4))
    twist, rate = _base_slots(k, driver.BASE_V, 6), _base_slots(k, driver.BASE_X, 6)
    frame = slopes.base_frame(R, twist, rate, gravity)
    k.put(FRAME, _flat_frame(frame))
    k.put(BUNDLE, _flat_bundle(slopes.bundle(k.link, frame)))
    for i, column in enumerate(slopes.base_columns(frame, gravity)):
        k.put(Field(BASE_COLUMNS.start + 24 * i, 24), _flat_pairs(*column), "parent")


def _slopes_root_end(k: Kernel, free: bool) -> None:
    if not free:
        return
    body = _bundle(k.state(BUNDLE))
    columns = [
        slopes.Column(
            *(
                _pair(k.state(Field(BASE_COLUMNS.start + 24 * i + 6 * part, 6), "parent"))
                for part in range(4)
            )
        )
        for i in range(6)
    ]
    cells: list[list[Any]] = [[], [], []]
    for column in columns:
        found = slopes.reach(column, body)
        for other in columns:
            for matrix, value in zip(cells, slopes.own(found, other), strict=True):
                matrix.append(value)
    k.put(BASE_CELLS, [x for matrix in cells for x in matrix], "parent")


# -- friction --------------------------------------------------------------------------------------


def rub(slot: int, sign: int) -> Trace:
    """A kernel that adds a joint's friction to a slot of its record."""

    def trace(k: Kernel) -> None:
        viscous, coulomb = k.row(VISCOUS, 1)[0], k.row(COULOMB, 1)[0]
        rough = k.link._replace(viscous=viscous, coulomb=coulomb)
        k.put_record(slot, k.record(slot) + sign * friction(rough, k.record(driver.V)))

    return trace


ALGORITHMS = {
    "inverse_dynamics": Passes(
        Shape(v=True, x=True), _rnea_outward, _rnea_inward, None, _rnea_root, _rnea_root_end,
        size=24, others={"rub": rub(driver.Y, 1)}, push=LOAD,
    ),
    "forward_dynamics": Passes(
        Shape(v=True, x=True), _aba_outward, _aba_inward, _aba_back, _aba_root, _aba_root_end,
        size=42, others={"rub": rub(driver.X, -1)}, push=BIAS, rub_first=True, variants=4,
    ),
    "mass_matrix": Passes(
        Shape(v=False, x=False, matrices=1), _crba_outward, _crba_inward, _crba_carry,
        _crba_root, _crba_root_end, size=17, others={}, scratch=SCRATCH + BASE_BLOCK,
    ),
    "inverse_dynamics_derivatives": Passes(
        Shape(v=True, x=True, matrices=3), _slopes_outward, _slopes_inward, None,
        _slopes_root, _slopes_root_end, size=94,
        others={"pair": _slopes_pair, "base_pair": _slopes_base_pair}, scratch=257,
    ),
}  # fmt: skip
# its third array holds the accelerations that forward dynamics has found
ALGORITHMS["forward_dynamics_derivatives"] = ALGORITHMS["inverse_dynamics_derivatives"]._replace(
    spare=1
)
