"""The loop around every kernel: gather W states, run the body, scatter the results.

States lie as users have them, one row a state. A block of W rows is turned into vectors, one lane a
state; past the end of a batch the last row is taken again, which computes and writes the same
numbers once more. All memory is in a workspace that the caller keeps.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from modurob.compiler.emit_llvm import Carry, FunctionWriter, Slot, Vector, splat
from modurob.compiler.packing import size
from modurob.compiler.sincos import write_sincos
from modurob.equations.passes import Base, Quantity
from modurob.equations.vectors import Vec
from modurob.model.model import LARGEST_DISPLACEMENT

BASE_Q, BASE_V, BASE_X, BASE_RECORD = 0, 7, 13, 19  # vectors of the base's record
Q, COS, SIN, V, X, JOINT_RECORD = 0, 1, 2, 3, 4, 5  # vectors of a joint's record
RECORD, BASE_PLACES = {"q": Q, "v": V, "x": X}, {"q": BASE_Q, "v": BASE_V, "x": BASE_X}
Arrays = list[tuple[str, str, int]]  # name, length of a row, place of the first joint
CACHE_LINE = 64  # bytes
LARGE_RESULT = 16 * 2**20  # bytes; more than a core's share of the last cache
STREAM_ALIGN = 32  # bytes
NEARER = "i32 0, i32 2, i32 1"  # prefetch into the second cache; the first has no room
OVER_RANGE = sys.float_info.max / LARGEST_DISPLACEMENT  # what is beyond it overflows, times this
EXTERNAL = 6  # vectors of a link's external wrench


class Arguments(ctypes.Structure):
    """Arguments of a driver; one for each call, shared by its threads."""

    _fields_ = (
        ("q", ctypes.c_void_p),
        ("v", ctypes.c_void_p),
        ("x", ctypes.c_void_p),
        ("y", ctypes.c_void_p),
        ("external", ctypes.c_void_p),
        ("calls", ctypes.c_void_p),
        ("rows", ctypes.c_void_p),
        ("joints", ctypes.c_int64),
        ("last", ctypes.c_int64),
        ("friction", ctypes.c_int64),
        ("not_finite", ctypes.c_int64),
        ("nq", ctypes.c_int64),
        ("nv", ctypes.c_int64),
        ("results", ctypes.c_int64),
        ("bodies", ctypes.c_int64),
        ("body_rows", ctypes.c_void_p),
        ("body_links", ctypes.c_void_p),
        ("points", ctypes.c_int64),
        ("point_rows", ctypes.c_void_p),
        ("point_links", ctypes.c_void_p),  # twice the link, and 1 more for its first point
        ("lookup_rows", ctypes.c_void_p),  # numbers that points choose by their state
        ("memory", ctypes.c_void_p),  # blocks of as many states as a vector holds
        ("settles", ctypes.c_int64),
        ("steps", ctypes.c_int64),
        ("duration", ctypes.c_double),  # of a step
        ("first_step", ctypes.c_int64),  # taken before
        ("lane_parents", ctypes.c_void_p),  # of joints whose parents differ, see `lanes`
        ("point_law", ctypes.c_void_p),  # numbers of all points of a body
        ("array_type", ctypes.c_void_p),
        ("float64", ctypes.c_void_p),
        ("workspace", ctypes.c_void_p),
        ("refused", ctypes.c_void_p),
        ("answer", ctypes.c_void_p),  # of a prepared call, see `entry`
        ("fallback", ctypes.c_void_p),
    )


NAMES = [field[0] for field in Arguments._fields_]
INTEGERS = (
    *("joints", "last", "friction", "not_finite", "nq", "nv", "results", "bodies"),
    *("points", "settles", "steps", "first_step"),
)


# of vectors that are put on the stack: without it, every other one of them lies in two cache lines
ALIGNED_STACK = '"stackrealign" alignstack(64)'
BODY = (
    "define internal void @body(ptr noalias %io, ptr noalias %results, ptr %external, "
    f"ptr %memory, ptr %arguments) {ALIGNED_STACK} {{\nentry:\n"
)


class Driver(FunctionWriter):
    """Writes ``void run(Arguments*, begin, end, workspace)`` for one algorithm."""

    def __init__(self, width: int, quantity: Quantity, free_base: bool) -> None:
        super().__init__(width)
        self.quantity, self.free_base = quantity, free_base
        self.matrices = quantity.per == "pair"
        # the sum of 0 * x: not a number as soon as one input or result is not finite
        self.check = Carry(splat(0.0, width))
        # of the next block in each array: address, numbers of a joint in all its rows
        self.ahead: list[tuple[str, int]] = []

    def write(self) -> str:
        """The driver's IR."""
        at, arrays = self._begin()
        results, total = at["place"], self._total(at["nv"])
        finish = self.quantity.passes.finish
        if self.matrices and not finish:  # cells of joints on different branches stay zero
            self._clear(results, at["results"])
        with self.loop("%begin", "%end", self.width, self.check) as first:
            if finish:  # it fills all cells
                self._clear(results, at["results"])
            rows = self._rows(first, at["last"])
            self._look_ahead(at, first, arrays)
            self._gather_states(at, rows, arrays)
            self._gather_external(at["wrenches"], at["external"], rows, at["links"])
            self._call(at, self._memory(at, first))
            self._scatter(results, at["y"], rows, total)
        self._report()
        return self._run()

    def _run(self) -> str:
        """The lines as a function."""
        self.do("ret void")
        head = "define void @run(ptr %arguments, i64 %begin, i64 %end, ptr %workspace)"
        return f"{head} {ALIGNED_STACK} {{\nentry:\n" + "\n".join(self.lines) + "\n}\n"

    def _begin(self) -> tuple[dict[str, str], Arrays]:
        """All arguments, and parts of the workspace: records, external wrenches, results."""
        at = {name: argument(self, name) for name in NAMES}
        at["records"] = self.offset("%workspace", BASE_RECORD)
        after_io = self.value(f"mul i64 {at['joints']}, {JOINT_RECORD}")
        at["wrenches"] = self.offset(at["records"], after_io)
        at["links"] = self.value(f"add i64 {at['joints']}, 1")
        after_external = self.value(f"mul i64 {at['links']}, {EXTERNAL}")
        at["place"] = self.offset(at["wrenches"], after_external)
        return at, self._arrays(at["nq"], at["nv"])

    def write_steps(self, keeps_input: bool) -> str:
        """``void march(Arguments*, begin, end, workspace)``: several steps, in place in q and v.

        Args:
            keeps_input: False where friction is taken from the third input in the records: it is
                read again in each step.
        """
        at, arrays = self._begin()
        with self.loop("%begin", "%end", self.width, self.check) as first:
            rows, memory = self._rows(first, at["last"]), self._memory(at, first)
            self._gather_states(at, rows, arrays if keeps_input else arrays[:2])
            self._gather_external(at["wrenches"], at["external"], rows, at["links"])
            with self.loop("0", at["steps"], carry=self.check):
                if not keeps_input:
                    self._gather_states(at, rows, arrays[2:])
                self._call(at, memory)
                self._move(at)
            self._scatter_states(at, rows, arrays[:2])
        self._report()
        self.do("ret void")
        head = "define void @march(ptr %arguments, i64 %begin, i64 %end, ptr %workspace) {\n"
        return head + "entry:\n" + "\n".join(self.lines) + "\n}\n"

    def _call(self, at: dict[str, str], memory: str) -> None:
        given = ("%workspace", at["place"], at["wrenches"], memory, "%arguments")
        self.do(f"call void @body({', '.join(f'ptr {each}' for each in given)})")

    def _move(self, at: dict[str, str]) -> None:
        """A step of the records, with the accelerations in the results."""
        duration, rates = place(self, "duration"), at["place"]
        step = Vector(self, self.load(Slot(duration, 0, broadcast=True)))
        if self.free_base:
            self.do(
                f"call void @move(ptr {duration}, ptr null, ptr null, ptr %workspace, "
                f"ptr {rates}, i64 {at['nv']})"
            )
            rates = self.offset(rates, 6)
        with self.loop("0", at["joints"]) as j:
            record = self.record(at, j)
            slots = (Slot(record, Q), Slot(record, V), Slot(self.offset(rates, j), 0))
            q, v, a = (Vector(self, self.load(slot)) for slot in slots)
            v = v + a * step
            self._put_angle(record, (q + v * step).name)
            self.store(Slot(record, V), v.name)

    def record(self, at: dict[str, str], j: str) -> str:
        return self.offset(at["records"], self.value(f"mul i64 {j}, {JOINT_RECORD}"))

    def _memory(self, at: dict[str, str], first: str) -> str:
        """The memory of the points for a block of states."""
        if not self.quantity.passes.touch:
            return "null"
        numbers = self.value(f"mul i64 {at['points']}, {size(self.quantity.passes.Memory)}")
        return self.offset(at["memory"], self.value(f"mul i64 {first}, {numbers}"), "double")

    def _clear(self, results: str, count: str) -> None:
        size = self.value(f"mul i64 {count}, {8 * self.width}")
        self.do(f"call void @llvm.memset.p0.i64(ptr {results}, i8 0, i64 {size}, i1 false)")

    def _look_ahead(self, at: dict[str, str], first: str, arrays: Arrays) -> None:
        """Find the rows of the next block, which `_prefetch` brings near while this one is read.

        The last block takes its own: addresses without memory are slow to look up.
        """
        after = self.value(f"add i64 {first}, {self.width}")
        inside = self.value(f"icmp slt i64 {after}, %end")
        block = self.value(f"select i1 {inside}, i64 {after}, i64 {first}")
        rows = [(name, length, 1) for name, length, _ in arrays]
        if self.quantity.per == "joint":
            rows.append(("y", self._total(at["nv"]), self.quantity.entries))
        for name, length, columns in rows:
            start = self.offset(at[name], self.value(f"mul i64 {block}, {length}"), "double")
            self.ahead.append((start, columns * self.width))

    def _prefetch(self, joint: str, count: int) -> None:
        """Prefetch the share of some joints in the next block: all at once would wait in line."""
        for start, numbers in self.ahead:
            part = self.offset(start, self.value(f"mul i64 {joint}, {numbers}"), "double")
            for line in range(0, 8 * count * numbers, CACHE_LINE):
                place = self.offset(part, line, "i8")
                self.do(f"call void @llvm.prefetch.p0(ptr {place}, {NEARER})")

    def _total(self, nv: str) -> str:
        """Number of entries in the result of a state."""
        total = str(self.quantity.entries)
        for length in self.quantity.result:
            if length == "nv":
                total = self.value(f"mul i64 {nv}, {total}")
            elif length == "bodies":
                total = self.value(f"mul i64 {argument(self, 'bodies')}, {total}")
        return total

    def _rows(self, first: str, last: str) -> list[str]:
        rows = []
        for lane in range(self.width):
            row = self.value(f"add i64 {first}, {lane}")
            inside = self.value(f"icmp slt i64 {row}, {last}")
            rows.append(self.value(f"select i1 {inside}, i64 {row}, i64 {last}"))
        return rows

    def _starts(self, array: str, rows: list[str], stride: str) -> list[str]:
        return [
            self.offset(array, self.value(f"mul i64 {row}, {stride}"), "double") for row in rows
        ]

    def _report(self) -> None:
        check = self.check.value
        wrong = self.value(f"fcmp uno {self.vector} {check}, {check}")
        bits = self.value(f"bitcast <{self.width} x i1> {wrong} to i{self.width}")
        with self.when(self.value(f"icmp ne i{self.width} {bits}, 0")):
            self.do(f"store i64 1, ptr {place(self, 'not_finite')}")

    def _checked(self, vectors: Sequence[str], scale: float = 1.0) -> None:
        """Note whether vectors, times a scale, are finite; their sum is short for long loops."""
        V, zero = self.vector, splat(0.0, self.width)
        if scale != 1:
            vectors = [self.value(f"fmul {V} {x}, {splat(scale, self.width)}") for x in vectors]
        # no fma intrinsic: where the CPU has none it is a slow call, and 0 * x rounds nothing
        terms = [self.value(f"fmul contract {V} {x}, {zero}") for x in vectors]
        while len(terms) > 1:
            terms = [
                self.value(f"fadd contract {V} {a}, {b}")
                for a, b in zip(terms[0::2], terms[1::2], strict=True)
            ]
        self.check.value = self.value(f"fadd contract {V} {terms[0]}, {self.check.value}")

    def _gather(self, starts: list[str], column: str | int) -> str:
        vector = "poison"
        for lane, start in enumerate(starts):
            scalar = self.value(f"load double, ptr {self.offset(start, column, 'double')}, align 8")
            vector = self.value(
                f"insertelement {self.vector} {vector}, double {scalar}, i64 {lane}"
            )
        return vector

    def _arrays(self, nq: str, nv: str) -> Arrays:
        """Name, length of a row and place of the first joint, of each array that is read."""
        q0, v0 = (7, 6) if self.free_base else (0, 0)
        return [("q", nq, q0), ("v", nv, v0), ("x", nv, v0)][: len(self.quantity.inputs)]

    def _gather_states(self, at: dict[str, str], rows: list[str], arrays: Arrays) -> None:
        self._gather_joints(at, rows, arrays)
        if self.free_base:
            self._gather_base(at, rows, arrays)

    def _gather_joints(self, at: dict[str, str], rows: list[str], arrays: Arrays) -> None:
        starts = {
            name: [self.offset(s, skip, "double") for s in self._starts(at[name], rows, stride)]
            for name, stride, skip in arrays
        }
        for name, places in starts.items():  # one by one: their addresses stay in registers
            for j, count in self._fours(at["joints"]):
                if name == "q":
                    self._prefetch(j, count)
                values = self._gather_four(places, j) if count == 4 else [self._gather(places, j)]
                self._checked(values, OVER_RANGE if name == "q" else 1.0)
                records = self.record(at, j)
                for k, value in enumerate(values):
                    record = self.offset(records, JOINT_RECORD * k)
                    if name == "q":
                        self._put_angle(record, value)
                    else:
                        self.store(Slot(record, RECORD[name]), value)

    def _fours(self, count: str) -> Iterator[tuple[str, int]]:
        """Loops over numbers, four at once while there are as many: the first, and how many."""
        whole = "0"
        if self.width % 4 == 0:
            whole = self.value(f"and i64 {count}, -4")
            with self.loop("0", whole, 4, self.check) as k:
                yield k, 4
        with self.loop(whole, count, carry=self.check) as k:
            yield k, 1

    def _put_angle(self, record: str, value: str) -> None:
        """Displacement of a joint, with its sine and cosine."""
        sine, cosine = write_sincos(self, value)
        for slot, each in ((Q, value), (SIN, sine), (COS, cosine)):
            self.store(Slot(record, slot), each)

    def _gather_base(self, at: dict[str, str], rows: list[str], arrays: Arrays) -> None:
        for name, stride, count in arrays:
            starts = self._starts(at[name], rows, stride)
            for k in range(count):
                value = self._gather(starts, k)
                self._checked([value])
                self.store(Slot("%workspace", BASE_PLACES[name] + k), value)

    def _scatter_states(self, at: dict[str, str], rows: list[str], arrays: Arrays) -> None:
        for name, stride, count in arrays:
            starts = self._starts(at[name], rows, stride)
            for k in range(count):
                value = self.load(Slot("%workspace", BASE_PLACES[name] + k))
                self._checked([value])
                self._spread(value, starts, k)
            starts = [self.offset(start, count, "double") for start in starts]
            with self.loop("0", at["joints"], carry=self.check) as j:
                value = self.load(Slot(self.record(at, j), RECORD[name]))
                self._checked([value])
                self._spread(value, starts, j)

    def _gather_external(self, place: str, array: str, rows: list[str], links: str) -> None:
        if not self.quantity.passes.external:
            return
        total = self.value(f"mul i64 {links}, {EXTERNAL}")
        given = self.value(f"icmp ne ptr {array}, null")
        with self.when(given):
            starts = self._starts(array, rows, total)
            with self.loop("0", total) as k:
                value = self._gather(starts, k)
                self.store(Slot(self.offset(place, k), 0), value)

    def _scatter(self, results: str, array: str, rows: list[str], total: str) -> None:
        starts = self._starts(array, rows, total)
        if self.matrices and self.width % 4 == 0:
            total = self._stream(results, array, starts, total)
        for k, count in self._fours(total):
            place = self.offset(results, k)
            values = [self.load(Slot(place, i)) for i in range(count)]
            if not self.matrices:
                self._checked(values)
            if count == 4:
                self._spread_four(values, starts, k)
            else:
                self._spread(values[0], starts, k)

    def _stream(self, results: str, array: str, starts: list[str], total: str) -> str:
        """Write the results past the caches where they are larger; the number that is left."""
        numbers = self.value(f"mul i64 {self.value('sub i64 %end, %begin')}, {total}")
        place = self.value(f"ptrtoint ptr {array} to i64")
        odd = self.value(f"and i64 {total}, 3"), self.value(f"and i64 {place}, {STREAM_ALIGN - 1}")
        whole = self.value(f"icmp eq i64 {self.value(f'or i64 {odd[0]}, {odd[1]}')}, 0")
        large = self.value(f"icmp sge i64 {numbers}, {LARGE_RESULT // 8}")
        streams = self.value(f"and i1 {whole}, {large}")
        with self.when(streams):
            with self.loop("0", total, 4) as k:
                values = [self.load(Slot(self.offset(results, k), i)) for i in range(4)]
                self._spread_four(values, starts, k, f"align {STREAM_ALIGN}, !nontemporal !0")
            self.do("fence seq_cst")  # such stores are in no order with others
        return self.value(f"select i1 {streams}, i64 0, i64 {total}")

    def _spread_four(
        self, vectors: list[str], starts: list[str], column: str, how: str = "align 8"
    ) -> None:
        """Four results at once: transposed in registers, each state gets them with one store."""
        for group in range(0, self.width, 4):
            lanes = [group + i for i in range(4)]
            parts = [self.shuffle(v, v, lanes, self.width) for v in vectors]
            for start, row in zip(starts[group:], self._transposed(parts), strict=False):
                place = self.offset(start, column, "double")
                self.do(f"store <4 x double> {row}, ptr {place}, {how}")

    def _gather_four(self, starts: list[str], column: str) -> list[str]:
        """Four columns of all states, loaded by rows and transposed in registers."""
        groups = []
        for group in range(0, self.width, 4):
            places = [self.offset(start, column, "double") for start in starts[group : group + 4]]
            rows = [self.value(f"load <4 x double>, ptr {each}, align 8") for each in places]
            groups.append(self._transposed(rows))
        if len(groups) == 1:
            return groups[0]
        return [self.shuffle(a, b, range(8), 4) for a, b in zip(*groups, strict=True)]

    def _transposed(self, rows: list[str]) -> list[str]:
        """The columns of four vectors of four."""
        pairs = [
            self.shuffle(rows[a], rows[a + 1], mask, 4)
            for a in (0, 2)
            for mask in ([0, 4, 2, 6], [1, 5, 3, 7])
        ]
        return [
            self.shuffle(a, b, mask, 4)
            for mask in ([0, 1, 4, 5], [2, 3, 6, 7])
            for a, b in zip(pairs[:2], pairs[2:], strict=True)
        ]

    def _spread(self, vector: str, starts: list[str], column: str | int) -> None:
        for lane, start in enumerate(starts):
            scalar = self.value(f"extractelement {self.vector} {vector}, i64 {lane}")
            self.do(f"store double {scalar}, ptr {self.offset(start, column, 'double')}, align 8")


def moving_base(gravity: Vec, record: Sequence[Any]) -> Base:
    """A free base from its record."""
    q, v, x = record[:BASE_V], record[BASE_V:BASE_X], record[BASE_X:BASE_RECORD]
    return Base.moving(gravity, q, v, x)


def io_vectors(joints: int) -> int:
    """Vectors of the records and external wrenches, which precede the results."""
    return BASE_RECORD + JOINT_RECORD * joints + EXTERNAL * (joints + 1)


def place(writer: FunctionWriter, name: str, arguments: str = "%arguments") -> str:
    """Address of an argument."""
    return writer.offset(arguments, NAMES.index(name), "i64")


def argument(writer: FunctionWriter, name: str, arguments: str = "%arguments") -> str:
    """The value of an argument."""
    kind = "i64" if name in INTEGERS else "ptr"
    return writer.value(f"load {kind}, ptr {place(writer, name, arguments)}")


def declarations(width: int) -> str:
    """The intrinsics that kernels and drivers use."""
    V = f"<{width} x double>"
    return (
        f"declare {V} @llvm.sqrt.v{width}f64({V})\n"
        f"declare {V} @llvm.fma.v{width}f64({V}, {V}, {V})\n"
        "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)\n"
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"
        "declare void @Py_IncRef(ptr)\n"
        "declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)\n"
        "!0 = !{i32 1}\n"  # of stores past the caches
    )
