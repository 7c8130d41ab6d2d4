"""Kernels of the table: one link's part of each pass, traced for each seat of a joint.

A kernel reads numbers of its table row, vectors of its own and its parent's state and its joint's
record; it writes vectors of the states and of the result. All of it is derived from the declaration
of an algorithm in `equations`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from modurob.compiler import driver
from modurob.compiler.emit_llvm import LOOKUP_ROWS, FunctionWriter, Slot, emit
from modurob.compiler.jit import host
from modurob.compiler.packing import fields, flat, size, unflat
from modurob.compiler.trace import INPUT, Graph, Traced, lifted
from modurob.equations.links import RigidLink, base_link, friction
from modurob.equations.passes import Base, JointState, Passes, Quantity, as_entries
from modurob.equations.servo import Servo, servo_torque
from modurob.equations.vectors import ZERO, Mat, Symmetric, Twist, Vec, Wrench

PATTERNS, KINDS = 4, 2
# bits of a variant: nothing beyond the link; first to reach its parent; a rotor inertia
TIP, FIRST, ROTOR = 1, 2, 4
CYCLES = ((0, 1, 2), (1, 2, 0), (2, 0, 1))  # where x, y, z of the joint point in the parent
GENERAL = len(CYCLES)  # the pattern of all other directions
POINTERS = ("%row", "%self", "%parent", "%record", "%out")


class Row(NamedTuple):
    """A link in the table; the row of the base holds gravity in the place of `p`."""

    p: Vec
    mass: Any
    moment: Vec
    second: Symmetric
    sign: Any
    travel: Any
    viscous: Any
    coulomb: Any
    armature: Any
    stiffness: Any
    R: Mat


class BodyRow(NamedTuple):
    """The place of a body in its link."""

    R: Mat
    p: Vec


ROW, BODY_ROW = size(Row), size(BodyRow)


class SignedAngle:
    """A joint angle along +x of its frame; its sine and cosine come from the record."""

    def __init__(self, cosine: Traced, sine: Traced, angle: Traced) -> None:
        self._cos, self._sin, self.angle = cosine, sine, angle

    def cos(self) -> Traced:
        return self._cos

    def sin(self) -> Traced:
        return self._sin


class Kernel:
    """One function of the table being traced: its inputs, and what it writes where.

    Args:
        lanes: Whether each state of a vector has rows of its own, because its body is another one.
    """

    def __init__(
        self, kind: type, places: Sequence[int | None] | None = None, lanes: bool = False
    ) -> None:
        self.kind, self.graph, self.lanes = kind, Graph(), lanes
        self.places = range(size(kind)) if places is None else places
        self.slots: dict[str, Slot] = {}
        self.stores: list[tuple[Slot, Traced]] = []
        self.written: dict[str, dict[int, Traced]] = {}  # state -> scalar -> value

    def read(self, name: str, slot: Slot) -> Traced:
        self.slots[name] = slot
        return self.graph.input(name)

    def vectors(self, pointer: str, start: int, count: int) -> list[Traced]:
        return [
            self.read(f"{pointer}{k}", Slot(f"%{pointer}", k)) for k in range(start, start + count)
        ]

    def row(self) -> Row:
        """The table row."""
        return unflat(Row, self.row_numbers(ROW))

    def row_numbers(self, count: int) -> list[Traced]:
        return [
            self.read(f"row{k}", Slot("%row", k, broadcast=not self.lanes)) for k in range(count)
        ]

    def state(self, of: str) -> Any:
        """The state of the link ("self") or of its parent."""
        scalars = [
            self.read(f"{of}.{k}", Slot(f"%{of}", -1 if place is None else place))
            for k, place in enumerate(self.places)
        ]
        return unflat(self.kind, scalars)

    def put_state(self, of: str, state: Any) -> None:
        """Write what has changed of a state."""
        changed = self.written.setdefault(of, {})
        for k, value in enumerate(flat(self.kind, state)):
            if value is None:
                continue
            traced = lifted(self.graph, [value])[0]
            if self.graph.nodes[traced.number][:2] != (INPUT, f"{of}.{k}"):
                changed[k] = traced

    def put(self, slot: Slot, value: Any) -> None:
        self.stores.append((slot, lifted(self.graph, [value])[0]))

    def put_result(self, entries: Sequence[Any], numbers: Sequence[int] | None = None) -> None:
        """Write a joint's or body's numbers, `%stride` apart."""
        for k, value in zip(numbers or range(len(entries)), entries, strict=True):
            self.put(Slot("%out", 0, times=(("%stride", k),)), value)

    def reads(self, live: Set[int]) -> Iterator[tuple[str, int]]:
        """Scalars of states on which results depend, or what is written to live scalars."""
        values = [value for _, value in self.stores]
        for changed in self.written.values():
            values += [value for k, value in changed.items() if k in live]
        for number in self.graph.needed(values):
            op, name, _ = self.graph.nodes[number]
            if op == INPUT and name.startswith(("self.", "parent.")):
                of, k = name.split(".")
                yield of, int(k)

    def all_stores(self) -> list[tuple[Slot, Traced]]:
        """Results, and scalars of states that are read later."""
        stores = list(self.stores)
        for of, changed in self.written.items():
            for k, value in changed.items():
                place = self.places[k]
                if place is not None:
                    stores.append((Slot(f"%{of}", place), value))
        return stores

    def loaded(self, writer: FunctionWriter, pointer: str, name: str) -> dict[int, str]:
        """Load what the kernel reads behind a pointer, which has a name, for calls of `write`."""
        found = {}
        for number in self.graph.needed([value for _, value in self.all_stores()]):
            op, a, _ = self.graph.nodes[number]
            if op == INPUT and self.slots[a].pointer == pointer:
                found[number] = writer.load(self.slots[a]._replace(pointer=name))
        return found

    def write(
        self,
        writer: FunctionWriter,
        names: Mapping[str, str],
        result: Traced | None = None,
        loaded: Mapping[int, str] | None = None,
    ) -> str:
        """Write loads, arithmetic and stores, with other names for pointers and integers.

        Returns the name of a result that is not stored.

        Args:
            loaded: What need not be loaded.
        """

        def renamed(slot: Slot) -> Slot:
            times = tuple((names.get(name, name), factor) for name, factor in slot.times)
            return slot._replace(pointer=names.get(slot.pointer, slot.pointer), times=times)

        stores = self.all_stores()
        slots = {name: renamed(slot) for name, slot in self.slots.items()}
        wanted = [value for _, value in stores] + ([] if result is None else [result])
        values = emit(writer, self.graph, wanted, slots, dict(loaded or {}))
        for (slot, _), value in zip(stores, values, strict=False):
            writer.store(renamed(slot), value)
        return "" if result is None else values[-1]

    def ir(self, name: str, per: str, width: int | None = None) -> str:
        """The function as LLVM IR, for a quantity of each joint, pair, body, or the whole."""
        writer = FunctionWriter(width or host().width)
        cells = writer.value("mul i64 %nv, %nv")
        self.write(writer, {"%stride": {"pair": cells, "joint": "%nv"}.get(per, "1")})
        pointers = ", ".join(f"ptr {each}" for each in POINTERS)
        head = f"define internal void @{name}({pointers}, i64 %nv) {{\nentry:\n"
        return head + "\n".join(writer.lines) + "\n  ret void\n}\n"


class JointSeat(NamedTuple):
    """Seat of a joint: axis along x, y, z of the parent or any other, kind, variant."""

    pattern: int
    prismatic: bool
    variant: int = 0


class Tracer:
    """Traces the kernels of one quantity.

    Args:
        places: Of a state's scalars: see `layout.places_of`.
        lanes: See `Kernel`.
    """

    def __init__(
        self,
        quantity: Quantity,
        free_base: bool,
        places: Sequence[int | None] | None = None,
        lanes: bool = False,
    ) -> None:
        self.quantity, self.passes = quantity, quantity.passes
        self.free_base, self.places, self.lanes = free_base, places, lanes
        self.accumulators = _accumulators(self.passes.State)

    def _kernel(self) -> Kernel:
        return Kernel(self.passes.State, self.places, self.lanes)

    def _link(self, k: Kernel, way: JointSeat) -> RigidLink:
        row = k.row()
        R = row.R
        if way.pattern != GENERAL:
            cycle = CYCLES[way.pattern]
            R = Mat([[1 if cycle[j] == i else 0 for j in range(3)] for i in range(3)])
        return RigidLink(
            0, R, row.p, way.prismatic, row.mass, row.moment, row.second,
            row.viscous, row.coulomb, row.sign, row.travel, row.armature, row.stiffness,
        )  # fmt: skip

    def _joint(self, k: Kernel, link: RigidLink) -> JointState:
        q, c, s, v, x = k.vectors("record", 0, driver.JOINT_RECORD)
        place = q * link.travel
        place = place if link.prismatic else SignedAngle(c, s * link.sign, place)
        return JointState(place, v * link.sign, x * link.sign)

    def _base(self, k: Kernel) -> tuple[RigidLink, Base]:
        row = k.row()
        link = base_link(row.mass, row.moment, row.second)
        if not self.free_base:
            return link, Base(row.p)
        return link, driver.moving_base(row.p, k.vectors("record", 0, driver.BASE_RECORD))

    def base(self) -> Kernel:
        k = self._kernel()
        link, base = self._base(k)
        state = self.passes.base(link, base)
        k.put_state("self", state)
        if self.free_base and self.passes.base_columns:
            for number, value in enumerate(self.columns(k, base, state).kept):
                k.put(Slot("%parent", number), value)
        return k

    def begin(self) -> Kernel:
        """The first values of what children add to."""
        k = self._kernel()
        blank = self.passes.State(*[None] * len(self.passes.State._fields))
        k.put_state("self", blank._replace(**self.accumulators))
        return k

    def columns(self, k: Kernel, base: Base, state: Any) -> BaseColumns:
        """The columns of a free base: constants stay, the others are kept in the scratch."""
        columns = self.passes.base_columns(base, state)
        kind = type(columns[0])
        known: dict[int, int] = {}
        kept, recipe = [], []
        for column in columns:
            for value in lifted(k.graph, flat(kind, column)):
                if value.value is not None:
                    recipe.append(value.value)
                    continue
                if value.number not in known:
                    known[value.number] = len(kept)
                    kept.append(value)
                recipe.append((known[value.number],))
        return BaseColumns(kind, kept, recipe)

    def _columns(self, k: Kernel) -> list[Any]:
        """The columns of a free base as the other kernels read them, at `parent`."""
        if not self.passes.base_columns:
            return []
        plan = self.base_columns()
        scalars = [
            k.read(f"column{x[0]}", Slot("%parent", x[0]))
            if isinstance(x, tuple)
            else k.graph.constant(x)
            for x in plan.recipe
        ]
        each = size(plan.kind)
        return [unflat(plan.kind, scalars[i * each : (i + 1) * each]) for i in range(6)]

    def base_columns(self) -> BaseColumns:
        k = self._kernel()
        link, base = self._base(k)
        return self.columns(k, base, self.passes.base(link, base))

    def outward(self, way: JointSeat) -> Kernel:
        k = self._kernel()
        link = self._link(k, way)
        state = self.passes.outward(link, self._joint(k, link), k.state("parent"))
        if not self.lanes:  # variants of the way inward begin the accumulators
            state = state._replace(**dict.fromkeys(self.accumulators))
        k.put_state("self", state)
        return k

    def inward(self, way: JointSeat) -> Kernel:
        k = self._kernel()
        link = self._link(k, way)
        own, parent = k.state("self"), k.state("parent")
        if self.accumulators and not way.variant & ROTOR:
            link = link._replace(armature=0)  # zeros along the joint save a tenth of the operations
        if way.variant & TIP:
            own = own._replace(**self.accumulators)
        if way.variant & FIRST:
            parent = parent._replace(**self.accumulators)
        result, own, parent = self.passes.inward(link, self._joint(k, link), own, parent)
        if way.variant & TIP:
            own = own._replace(**dict.fromkeys(self.accumulators))
        k.put_state("self", own)
        k.put_state("parent", parent)
        if result is not None:
            self._put_joint(k, link, result)
        return k

    def turn(self) -> Kernel:
        k = self._kernel()
        link, base = self._base(k)
        result, own = self.passes.turn(link, base, k.state("self"))
        k.put_state("self", own)
        if result is None or not (self.free_base or self.quantity.per == "whole"):
            return k
        if self.quantity.per == "whole":
            for i, value in enumerate(self.quantity.checked(result)):
                k.put(Slot("%out", i), value)
            return k
        for i, column in enumerate(result):
            for entry, value in enumerate(self.quantity.checked(as_entries(column))):
                k.put(Slot("%out", i, times=(("%stride", entry),)), value)
        return k

    def back(self, way: JointSeat) -> Kernel:
        k = self._kernel()
        link = self._link(k, way)
        joint = self._joint(k, link)
        result, own = self.passes.back(link, joint, k.state("self"), k.state("parent"))
        k.put_state("self", own)
        self._put_joint(k, link, result)
        return k

    def _put_joint(self, k: Kernel, link: RigidLink, result: Any) -> None:
        if self.quantity.per == "pair":  # the diagonal, which has sign * sign
            k.put_result(result, self.passes.filled())
        else:
            entries = self.quantity.checked(as_entries(result))
            k.put_result([x * link.sign for x in entries])

    def carry(self, way: JointSeat) -> Kernel:
        """Carried value into the parent's frame; it is stored at `parent`."""
        kind = self.carried_kind
        k = Kernel(kind)
        link = self._link(k, way)
        k.put_state("parent", self.passes.carry(link, self._joint(k, link), k.state("parent")))
        return k

    @property
    def carried_kind(self) -> Any:
        return dict(fields(self.passes.State))["carried"]

    def external(self) -> Kernel:
        k = self._kernel()
        wrench = k.vectors("record", 0, driver.EXTERNAL)
        state = self.passes.external(k.state("self"), Wrench(Vec(wrench[:3]), Vec(wrench[3:])))
        k.put_state("self", state)
        return k

    def _touched(self, k: Kernel) -> tuple[Any, Any, Any]:
        """State, numbers and memory of a point; rows to look up are in the place of the parent.

        With lanes a row has the numbers of the point alone and its weight, `out` the others.
        """
        kind, passes = self.passes.Point, self.passes
        own = own_numbers(passes) if self.lanes else size(kind)
        numbers = [*k.row_numbers(own), *k.vectors("out", 0, size(kind) - own)]
        memory = unflat(passes.Memory, k.vectors("record", 0, size(passes.Memory)))
        k.slots[LOOKUP_ROWS] = Slot("%parent", 0)
        point = unflat(kind, numbers)
        if self.lanes:
            point = passes.weighted(point, k.read("weight", Slot("%row", own)))
        return k.state("self"), point, memory

    def survey(self) -> Kernel:
        k = self._kernel()
        k.put_state("self", self.passes.survey(*self._touched(k)[:2]))
        return k

    def active(self) -> tuple[Kernel, Traced]:
        """A kernel that stores nothing, and its result."""
        k = self._kernel()
        return k, self.passes.active(*self._touched(k))

    def touch(self) -> Kernel:
        k = self._kernel()
        k.put_state("self", self.passes.touch(*self._touched(k)))
        return k

    def settle(self) -> Kernel:
        """The memory after a change, and `touch` with it."""
        k = self._kernel()
        memory, own = self.passes.settle(*self._touched(k))
        for i, value in enumerate(flat(self.passes.Memory, memory)):
            k.put(Slot("%record", i), value)
        k.put_state("self", own)
        return k

    def move(self) -> Kernel:
        """A free base after a step: its duration is in `row`, the acceleration in `out`."""
        k = self._kernel()
        h = k.read("row0", Slot("%row", 0, broadcast=True))
        record, a = k.vectors("record", 0, driver.BASE_RECORD), k.vectors("out", 0, 6)
        rate = Twist(Vec(a[:3]), Vec(a[3:]))
        position, quaternion, (v, w) = self.passes.move(driver.moving_base(ZERO, record), rate, h)
        for i, value in enumerate((*position, *quaternion, *v, *w)):
            k.put(Slot("%record", i), value)
        return k

    def friction(self) -> Kernel:
        """Friction and springs, added to the result or taken from the third input."""
        k = self._kernel()
        row, (q, _, _, v, x) = k.row(), k.vectors("record", 0, driver.JOINT_RECORD)
        force = friction(row.viscous, row.coulomb, v) + row.stiffness * q
        if self.passes.friction == "x":
            k.put(Slot("%record", driver.X), x - force)
        else:
            found = k.read("out", Slot("%out", 0))
            k.put(Slot("%out", 0), found + force)
        return k

    def output(self) -> Kernel:
        """Numbers of a body, whose place in its link is in `row`."""
        k = self._kernel()
        placed = unflat(BodyRow, k.row_numbers(BODY_ROW))
        found = self.passes.output(k.state("self"), placed.R, placed.p)
        k.put_result(self.quantity.checked(found))
        return k

    def _carried(self, k: Kernel) -> Any:
        if self.passes.carry:  # on its own, in the scratch
            kind = self.carried_kind
            return unflat(kind, k.vectors("record", 0, size(kind)))
        return k.state("self").carried

    def pair(self) -> Kernel:
        """Entries (i, j) go to `out`, (j, i) to `row`; a carried value is stored at `record`."""
        k = self._kernel()
        entries = self.passes.pair(self._carried(k), k.state("parent").column)
        for matrix, (ij, ji) in zip(self.passes.filled(), entries, strict=True):
            k.put(Slot("%out", 0, times=(("%stride", matrix),)), ij)
            k.put(Slot("%row", 0, times=(("%stride", matrix),)), ji)
        return k

    def base_pairs(self) -> Kernel:
        k = self._kernel()
        found = self.passes.base_pairs(self._carried(k), self._columns(k))
        for column, entries in enumerate(found):
            for matrix, (ij, ji) in zip(self.passes.filled(), entries, strict=True):
                k.put(Slot("%out", column, times=(("%stride", matrix),)), ij)
                times = (("%stride", matrix), ("%nv", column))
                k.put(Slot("%row", 0, times=times), ji)
        return k

    def base_block(self) -> Kernel:
        k = self._kernel()
        found = self.passes.base_block(k.state("self"), self._columns(k))
        for matrix, rows in zip(self.passes.filled(), found, strict=True):
            for i, line in enumerate(rows):
                for j, value in enumerate(line):
                    k.put(Slot("%out", j, times=(("%stride", matrix), ("%nv", i))), value)
        return k


def servo_kernel() -> tuple[Kernel, Traced]:
    """Put the torque of a `Servo` at `row` into a joint's record; its power, never negative.

    Sine and cosine of the servo's angle are at `out`.
    """
    k = Kernel(Servo, lanes=True)
    servo = unflat(Servo, k.row_numbers(size(Servo)))
    q, _, _, v, _ = k.vectors("record", 0, driver.JOINT_RECORD)
    sine, cosine = k.vectors("out", 0, 2)
    tau = servo_torque(servo, SignedAngle(cosine, sine, sine), q, v)
    k.put(Slot("%record", driver.X), tau)
    power = tau * v
    return k, power.maximum(-power)


def own_numbers(passes: type[Passes]) -> int:
    """Numbers of a point that are not those of all points of a body."""
    return sum(size(kind) for name, kind in fields(passes.Point) if name in passes.own)


class BaseColumns(NamedTuple):
    """Columns of a free base: the values that are kept, and how to put the columns together."""

    kind: Any
    kept: list[Traced]
    recipe: list[float | tuple[int]]


def _accumulators(kind: type) -> dict[str, Any]:
    """Fields of a state that begin with a value of their own."""
    return {name: value for name, value in kind._field_defaults.items() if value is not None}
