"""The driver of code for one state at a time: scalars in the place of vectors of states.

What does not depend on the order of joints is done for several joints at once: sines and cosines,
and the check that all numbers are finite.
"""

from __future__ import annotations

from collections.abc import Callable

from modurob.compiler.driver import (
    BASE_PLACES,
    COS,
    EXTERNAL,
    JOINT_RECORD,
    OVER_RANGE,
    RECORD,
    SIN,
    Driver,
    Q,
    place,
)
from modurob.compiler.sincos import write_sincos

NARROW = 1  # the width of its code
PACK = 4  # joints that are done at once


class NarrowDriver(Driver):
    """Writes ``void run(Arguments*, begin, end, workspace)`` for one algorithm, state by state."""

    def write(self) -> str:
        """The driver's IR and its helpers."""
        at, arrays = self._begin()
        results, total = at["place"], self._total(at["nv"])
        finish = self.quantity.passes.finish
        if self.matrices and not finish:  # cells of joints on different branches stay zero
            self._clear(results, at["results"])
        with self.loop("%begin", "%end") as row:
            if finish:  # it fills all cells
                self._clear(results, at["results"])
            sums = []
            for name, length, skip in arrays:
                start = self._starts(at[name], [row], length)[0]
                if skip:
                    sums.append(self._packed("copy", start, BASE_PLACES[name], str(skip)))
                there = self.offset(at["records"], 0 if name == "q" else RECORD[name])
                start = self.offset(start, skip, "double")
                sums.append(
                    self._packed("angles" if name == "q" else "spread", start, there, at["joints"])
                )
            if self.quantity.passes.external:
                pushes = self.value(f"mul i64 {at['links']}, {EXTERNAL}")
                at["wrenches"] = self._starts(at["external"], [row], pushes)[0]
            self._call(at, "null")
            out = self._starts(at["y"], [row], total)[0]
            found = self._packed("copy", results, out, total)
            if not self.matrices:
                sums.append(found)
            self._report_sum(sums)
        intrinsic = (
            "declare <4 x double> @llvm.fma.v4f64(<4 x double>, <4 x double>, <4 x double>)\n"
        )
        return "\n".join([intrinsic, self._run(), *_helpers(self)])

    def _packed(self, name: str, start: str, there: str | int, count: str) -> str:
        """Call a helper; its result is not a number if a number is not finite."""
        to = self.offset("%workspace", there) if isinstance(there, int) else there
        return self.value(f"call double @{name}(ptr {start}, ptr {to}, i64 {count})")

    def _report_sum(self, terms: list[str]) -> None:
        total = terms[0]
        for term in terms[1:]:
            total = self.value(f"fadd double {total}, {term}")
        with self.when(self.value(f"fcmp uno double {total}, {total}")):
            self.do(f"store i64 1, ptr {place(self, 'not_finite')}")


def _helpers(of: Driver) -> list[str]:
    """Functions ``double name(from, to, count)`` that write numbers to their places."""

    def angles(w: Driver, value: str, records: list[str]) -> None:
        sine, cosine = write_sincos(w, value)
        for slot, each in ((Q, value), (SIN, sine), (COS, cosine)):
            w._spread(each, records, slot)

    def spread(w: Driver, value: str, records: list[str]) -> None:
        w._spread(value, records, 0)

    return [
        _helper(of, "angles", JOINT_RECORD, OVER_RANGE, angles),
        _helper(of, "spread", JOINT_RECORD, 1.0, spread),
        _helper(of, "copy", 1, 1.0, spread),
    ]


def _helper(
    of: Driver,
    name: str,
    stride: int,
    scale: float,
    put: Callable[[Driver, str, list[str]], None],
) -> str:
    """One of them; the last few numbers are taken several times where they do not fill a vector."""
    w = Driver(PACK, of.quantity, of.free_base)
    whole = w.value(f"and i64 %count, {-PACK}")
    with w.loop("0", whole, PACK, w.check) as k:
        start = w.offset("%from", k, "double")
        value = w.value(f"load {w.vector}, ptr {start}, align 8")
        w._checked([value], scale)
        there = w.offset("%to", w.value(f"mul i64 {k}, {stride}"), "double")
        if stride == 1:
            w.do(f"store {w.vector} {value}, ptr {there}, align 8")
        else:
            put(w, value, [w.offset(there, stride * lane, "double") for lane in range(PACK)])
    last = w.value("sub i64 %count, 1")
    with w.loop(whole, "%count", PACK, w.check) as k:
        lanes = w._rows(k, last)
        value = w._gather([w.offset("%from", lane, "double") for lane in lanes], 0)
        w._checked([value], scale)
        put(w, value, w._starts("%to", lanes, str(stride)))
    total = None
    for lane in range(PACK):
        each = w.value(f"extractelement {w.vector} {w.check.value}, i64 {lane}")
        total = each if total is None else w.value(f"fadd double {total}, {each}")
    w.do(f"ret double {total}")
    head = f"define internal double @{name}(ptr %from, ptr %to, i64 %count) {{\nentry:\n"
    return head + "\n".join(w.lines) + "\n}\n"
