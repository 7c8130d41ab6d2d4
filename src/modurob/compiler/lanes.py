"""The table for populations: every lane of a vector is another body.

Kernels are those of the table for a joint in any direction, with rows that are vectors. A group of
as many bodies as a vector has lanes walks over one tree; a link whose parents differ between the
lanes works on a copy of its parents' states, gathered lane by lane. No operation depends on the
other lanes, so a body's numbers do not depend on its group.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache

import numpy as np

from modurob.compiler import driver, walks
from modurob.compiler.driver import Arguments, Driver, argument
from modurob.compiler.emit_llvm import Carry, FunctionWriter, Slot, Vector, splat
from modurob.compiler.jit import Library, compile_ir, host
from modurob.compiler.kernels import GENERAL, ROTOR, ROW, JointSeat, Tracer, servo_kernel
from modurob.compiler.layout import places_of, scratch_size, state_size
from modurob.compiler.packing import size
from modurob.compiler.sincos import write_sincos
from modurob.compiler.walks import CALLS, STEPS, Walker
from modurob.equations.contact import LARGEST_TURN
from modurob.equations.passes import Quantity
from modurob.equations.servo import Servo

FIELDS = ctypes.sizeof(Arguments) // 8  # numbers of a group
SERVO = size(Servo)
SEATS = [JointSeat(GENERAL, slides, rotor) for rotor in (0, ROTOR) for slides in (False, True)]
BASE_KERNELS = ("base", "turn", "external", "survey", "touch", "settle", "move", "friction")
HEAD = "define void @{}(ptr %groups, i64 %begin, i64 %end, ptr %workspace) {{\nentry:\n"
GROUP = "define internal void @{}(ptr %arguments, ptr %workspace, ptr %place) {{\nentry:\n"


@cache
def library(quantity: Quantity, free_base: bool) -> Library:
    """Compiled code for groups: ``run``, and ``march`` of a quantity that takes steps."""
    tracer = Tracer(quantity, free_base, places_of(quantity, free_base), lanes=True)
    parts = [driver.declarations(host().width)]
    table = []
    for number, seat in enumerate(SEATS):
        for step in STEPS:
            exists = getattr(quantity.passes, step) is not None
            if exists:
                name = f"{step}_{number}"
                parts.append(getattr(tracer, step)(seat).ir(name, quantity.per))
            table.append(f"ptr @{step}_{number}" if exists else "ptr null")
    for each in BASE_KERNELS:
        if getattr(quantity.passes, each) and (each != "move" or free_base):
            parts.append(getattr(tracer, each)().ir(each, quantity.per))
    parts.append(walks.walk(LaneWalker(quantity, free_base)))
    parts.append(LaneDriver(host().width, quantity, free_base).write_run())
    if quantity.passes.move:
        parts.append(LaneDriver(host().width, quantity, free_base).write_march())
    parts.append(f"@table = constant [{len(table)} x ptr] [{', '.join(table)}]\n")
    return compile_ir("\n".join(parts))


@cache
def functions(quantity: Quantity, free_base: bool) -> np.ndarray:
    """(rotor or not, slides or not, steps) addresses of the kernels of a joint."""
    address = library(quantity, free_base).address("table")
    found = (ctypes.c_int64 * (len(SEATS) * len(STEPS))).from_address(address)
    return np.array(found, dtype=np.int64).reshape(2, 2, len(STEPS))


def workspace_vectors(quantity: Quantity, joints: int, free_base: bool) -> int:
    """Vectors that a group needs besides its records: results, states, and gathered parents."""
    nv = joints + (6 if free_base else 0)
    states = state_size(quantity, free_base) * (joints + 2)
    return nv + sum(scratch_size(quantity, free_base)) + states


def state_bytes(quantity: Quantity, free_base: bool) -> int:
    """Bytes of the states of one link in a group: the unit of `lane_parents`."""
    return 8 * host().width * state_size(quantity, free_base)


class LaneWalker(Walker):
    """Writes the walk over the links of a group."""

    lanes = True

    def __init__(self, quantity: Quantity, free_base: bool) -> None:
        super().__init__(quantity, free_base)
        self.parents = argument(self, "lane_parents")
        links = self.value(f"add i64 {self.joints}, 1")
        self.gathered = self.state(links)

    def row(self, i: str) -> str:
        return self.offset(self.rows, self.value(f"mul i64 {i}, {ROW}"))

    def visit(self, j: str, step: str, parent: str | None = None) -> None:
        """Call the kernel of joint j, on gathered states where the parents differ."""
        above = self.parent(j)
        differ = self.value(f"icmp slt i64 {above}, 0")
        places = parent_places(self.quantity, self.free_base, step)
        with self.when(differ):
            self._each_lane(j, places, scatter=False)
        own = self.state(above)
        on = self.value(f"select i1 {differ}, ptr {self.gathered}, ptr {own}")
        super().visit(j, step, on)
        if step == "inward":
            with self.when(differ):
                self._each_lane(j, places, scatter=True)

    def _each_lane(self, j: str, places: Sequence[int], scatter: bool) -> None:
        """Copy numbers of the parents' states to `gathered`, or back."""
        row = self.offset(self.parents, self.value(f"mul i64 {j}, {self.width}"), "i64")
        starts = []
        for lane in range(self.width):
            moved = self.value(f"load i64, ptr {self.offset(row, lane, 'i64')}")
            starts.append(self.offset(self.states, moved, "i8"))
        for place in places:
            here = Slot(self.gathered, place)
            vector = self.load(here) if scatter else "poison"
            for lane, start in enumerate(starts):
                there = self.offset(start, place * self.width + lane, "double")
                if scatter:
                    value = self.value(f"extractelement {self.vector} {vector}, i64 {lane}")
                    self.do(f"store double {value}, ptr {there}, align 8")
                else:
                    value = self.value(f"load double, ptr {there}, align 8")
                    added = f"insertelement {self.vector} {vector}, double {value}, i64 {lane}"
                    vector = self.value(added)
            if not scatter:
                self.store(here, vector)


@cache
def parent_places(quantity: Quantity, free_base: bool, step: str) -> list[int]:
    """Places of a parent's state that a joint reads or writes."""
    places = places_of(quantity, free_base)
    used: set[int] = set()
    for seat in SEATS:
        kernel = getattr(Tracer(quantity, free_base, places, lanes=True), step)(seat)
        used |= {k for of, k in kernel.reads(range(len(places))) if of == "parent"}
        used |= kernel.written.get("parent", {}).keys()
    return sorted(place for k in used if (place := places[k]) is not None)


class LaneDriver(Driver):
    """Writes the loops over groups; the records of a group stay in its own memory, `q`."""

    def write_run(self) -> str:
        """``void run(groups, begin, end, workspace)``: results of all bodies, at `y`."""
        at = self._begin_group()
        self._call(at, "null")
        with self.loop("0", at["results"]) as k:
            value = self.load(Slot(self.offset("%place", k), 0))
            self.store(Slot(self.offset(at["y"], k), 0), value)
        return self._ended("run")

    def write_march(self) -> str:
        """``void march(groups, begin, end, workspace)``: steps of all bodies.

        Joints follow the servos at `x`; the sum of their power is added up at `y`.
        """
        at = self._begin_group()
        power = Carry(self.load(Slot(at["y"], 0)))
        step = self.load(Slot(driver.place(self, "duration"), 0, broadcast=True))
        with self.loop("0", at["steps"], carry=power) as k:
            number = self.value(f"add i64 {at['first_step']}, {k}")
            t = self.broadcast(self.value(f"sitofp i64 {number} to double"))
            t = Vector(self, t) * Vector(self, step)
            with self.loop("0", at["joints"], carry=power) as j:
                added = self._servo(at, j, t)
                power.value = (Vector(self, power.value) + added).name
            self._call(at, at["memory"])
            self._move(at)
            if self.free_base:
                self._check_turn(Vector(self, step))
        self.store(Slot(at["y"], 0), power.value)
        return self._ended("march")

    def _begin_group(self) -> dict[str, str]:
        at = {name: argument(self, name) for name in driver.NAMES}
        at |= {"place": "%place", "wrenches": "null"}
        at["records"] = self.offset("%workspace", driver.BASE_RECORD)
        with self.loop("0", at["joints"]) as j:
            record = self.record(at, j)
            self._put_angle(record, self.load(Slot(record, driver.Q)))
        return at

    def _ended(self, name: str) -> str:
        """The function of a group, and the one that calls it for all."""
        self.do("ret void")
        text = GROUP.format(f"{name}_group") + "\n".join(self.lines) + "\n}\n"
        w = FunctionWriter(self.width)
        with w.loop("%begin", "%end", self.width) as first:
            number = w.value(f"udiv i64 {first}, {self.width}")
            group = w.offset("%groups", w.value(f"mul i64 {number}, {FIELDS}"), "i64")
            records = argument(w, "q", group)
            w.do(f"call void @{name}_group(ptr {group}, ptr {records}, ptr %workspace)")
        w.do("ret void")
        return text + HEAD.format(name) + "\n".join(w.lines) + "\n}\n"

    def _servo(self, at: dict[str, str], j: str, t: Vector) -> Vector:
        """Put the torque of a joint into its record; its power, never negative."""
        kernel, power = servo_kernel()
        row = self.offset(at["x"], self.value(f"mul i64 {j}, {SERVO}"))
        rate, phase = (
            Vector(self, self.load(Slot(row, Servo._fields.index(name))))
            for name in ("rate", "phase")
        )
        # results are not in use yet
        for k, value in enumerate(write_sincos(self, (rate * t + phase).name)):
            self.store(Slot("%place", k), value)
        names = {"%row": row, "%record": self.record(at, j), "%out": "%place"}
        return Vector(self, kernel.write(self, names, power))

    def _check_turn(self, step: Vector) -> None:
        """Make the state of a body that turns too far in a step a NaN."""
        w = (Vector(self, self.load(Slot("%workspace", driver.BASE_V + k))) for k in (3, 4, 5))
        x, y, z = (e * step for e in w)
        square = x * x + y * y + z * z
        limit = splat(LARGEST_TURN**2, self.width)
        within = self.value(f"fcmp ole {self.vector} {square.name}, {limit}")
        at = Slot("%workspace", driver.BASE_Q)
        nan, mask = splat(float("nan"), self.width), f"<{self.width} x i1> {within}"
        kept = f"select {mask}, {self.vector} {self.load(at)}, {self.vector} {nan}"
        self.store(at, self.value(kept))


def call_rows(
    quantity: Quantity, free_base: bool, parent: np.ndarray, slides: np.ndarray, rotor: np.ndarray
) -> np.ndarray:
    """(..., joints, CALLS) calls of joints: their parent, -1 where it differs, and functions."""
    found = functions(quantity, free_base)[rotor.astype(int)[..., None], slides.astype(int)]
    calls = np.empty((*parent.shape, CALLS), dtype=np.int64)
    calls[..., 0], calls[..., 1:] = parent, found
    return calls
