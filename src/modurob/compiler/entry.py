"""All that is around ``@body``: the driver, and functions that Python calls with a few states."""

from __future__ import annotations

from modurob.compiler.driver import Driver, argument, declarations, place
from modurob.compiler.emit_llvm import FunctionWriter, literal
from modurob.compiler.narrow import NARROW, NarrowDriver
from modurob.equations.passes import Quantity
from modurob.spatial.so3 import UNIT_TOLERANCE

# NumPy's stable layout of an array object (64-bit CPython): type, data, dimensions, strides, dtype
TYPE, DATA, NDIM, DIMENSIONS, STRIDES, DTYPE = 8, 16, 24, 32, 40, 56


def driver_ir(width: int, quantity: Quantity, free_base: bool, keeps_input: bool) -> str:
    """Intrinsics, drivers, entries; see `Driver.write_steps`, which narrow code does not have."""
    kind = NarrowDriver if width == NARROW else Driver
    parts = [declarations(width), kind(width, quantity, free_base).write()]
    if quantity.passes.move and width != NARROW:
        parts.append(Driver(width, quantity, free_base).write_steps(keeps_input))
    parts += [_Entry(quantity, free_base, several).write() for several in (False, True)]
    return "\n".join(parts)


class _Entry(FunctionWriter):
    """Writes a Python builtin ``single(q, v, x, out)`` (METH_FASTCALL) for one state; returns out.

    ``several`` is the same for the number of states it was bound to, with rows for them.

    It looks into the arrays itself, because asking each one for its address from Python costs more
    than the dynamics of ten joints. It answers None unless every array is a plain contiguous array
    of float64 of the right size, all numbers are finite, and quaternions have norm 1; the caller
    then takes the slow path, which raises the error. `self` is an array that holds the arguments.

    A prepared call has no `out`: it writes where its arguments say, and returns their `answer` or
    what their `fallback`, a callable, makes of arrays that it refuses.
    """

    def __init__(self, quantity: Quantity, free_base: bool, several: bool) -> None:
        super().__init__(1)
        self.quantity, self.free_base, self.several = quantity, free_base, several

    def write(self) -> str:
        """The function's IR."""
        inputs = ("q", "v", "x")[: len(self.quantity.inputs)]
        at = self._field("%self", DATA, "ptr")
        answer = argument(self, "answer", at)
        missing = self.value(f"icmp eq ptr {answer}, null")
        given = self.value(f"select i1 {missing}, i64 {len(inputs) + 1}, i64 {len(inputs)}")
        self._demand(self.value(f"icmp eq i64 %count, {given}"))
        states = self.value(f"add i64 {argument(self, 'last', at)}, 1")
        nq, nv = argument(self, "nq", at), argument(self, "nv", at)
        known = {"nv": nv, "bodies": argument(self, "bodies", at)}
        result = [known.get(str(length), str(length)) for length in self.quantity.result]
        sizes = {"q": [nq], "v": [nv], "x": [nv], "y": result}
        if self.several:
            sizes = {name: [states, *each] for name, each in sizes.items()}
        for k, name in enumerate(inputs):
            self._take(at, k, name, sizes[name])
        if self.free_base:
            self._demand_units(argument(self, "q", at), nq, states)
        with self.when(missing):
            self._take(at, len(inputs), "y", sizes["y"])
        flag = place(self, "not_finite", at)
        self.do(f"store i64 0, ptr {flag}")
        workspace = argument(self, "workspace", at)
        self.do(f"call void @run(ptr {at}, i64 0, i64 {states}, ptr {workspace})")
        wrong = self.value(f"load i64, ptr {flag}")
        self._demand(self.value(f"icmp eq i64 {wrong}, 0"))
        self.do(f"br i1 {missing}, label %given_out, label %prepared")
        self.label("given_out")
        self._return(self._given(len(inputs)))
        self.label("prepared")
        self._return(answer)
        self.label("refused")
        at = self._field("%self", DATA, "ptr")
        fallback = argument(self, "fallback", at)
        alone = self.value(f"icmp eq ptr {fallback}, null")
        self.do(f"br i1 {alone}, label %none, label %handed_on")
        self.label("none")
        self._return(argument(self, "refused", at))
        self.label("handed_on")
        call = f"@PyObject_Vectorcall(ptr {fallback}, ptr %given, i64 %count, ptr null)"
        self.do(f"ret ptr {self.value(f'call ptr {call}')}")
        name = "several" if self.several else "single"
        head = f"define ptr @{name}(ptr %self, ptr %given, i64 %count) {{\nentry:\n"
        return head + "\n".join(self.lines) + "\n}\n"

    def _field(self, array: str, offset: int, kind: str) -> str:
        return self.value(f"load {kind}, ptr {self.offset(array, offset, 'i8')}")

    def _given(self, k: int) -> str:
        return self.value(f"load ptr, ptr {self.offset('%given', k, 'ptr')}")

    def _demand(self, condition: str) -> None:
        label = f"good{len(self.lines)}"
        self.do(f"br i1 {condition}, label %{label}, label %refused")
        self.label(label)

    def _take(self, at: str, k: int, name: str, sizes: list[str]) -> None:
        """Put the address of an array's numbers into the arguments, if it is as it should be."""
        array = self._given(k)
        kind, dtype = (argument(self, each, at) for each in ("array_type", "float64"))
        self._demand(self.value(f"icmp eq ptr {self._field(array, TYPE, 'ptr')}, {kind}"))
        self._demand(self.value(f"icmp eq ptr {self._field(array, DTYPE, 'ptr')}, {dtype}"))
        self._demand(self.value(f"icmp eq i32 {self._field(array, NDIM, 'i32')}, {len(sizes)}"))
        lengths, strides = (self._field(array, x, "ptr") for x in (DIMENSIONS, STRIDES))
        step = "8"
        for axis in range(len(sizes) - 1, -1, -1):  # row by row, without gaps
            length = self.value(f"load i64, ptr {self.offset(lengths, axis, 'i64')}")
            stride = self.value(f"load i64, ptr {self.offset(strides, axis, 'i64')}")
            self._demand(self.value(f"icmp eq i64 {length}, {sizes[axis]}"))
            self._demand(self.value(f"icmp eq i64 {stride}, {step}"))
            if axis:
                step = self.value(f"mul i64 {step}, {sizes[axis]}")
        self.do(f"store ptr {self._field(array, DATA, 'ptr')}, ptr {place(self, name, at)}")

    def _demand_units(self, q: str, nq: str, states: str) -> None:
        """Demand quaternions of norm 1, in the arithmetic of `so3.is_unit`."""
        with self.loop("0", states) as row:
            start = self.offset(q, self.value(f"mul i64 {row}, {nq}"), "double")
            square = None
            for k in range(3, 7):
                x = self.value(f"load double, ptr {self.offset(start, k, 'double')}, align 8")
                x = self.value(f"fmul double {x}, {x}")
                square = x if square is None else self.value(f"fadd double {square}, {x}")
            off = self.value(f"fsub double {square}, {literal(1.0)}")
            for sign in ("olt", "ogt"):
                limit = literal(UNIT_TOLERANCE if sign == "olt" else -UNIT_TOLERANCE)
                self._demand(self.value(f"fcmp {sign} double {off}, {limit}"))

    def _return(self, found: str) -> None:
        self.do(f"call void @Py_IncRef(ptr {found})")
        self.do(f"ret ptr {found}")
