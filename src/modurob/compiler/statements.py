"""Traced graphs as statements, for C and CUDA.

Kernels of the table read and write where their slots say. In fused code there are no records as in
`driver`: an input is read from the user's arrays q, v and x, and a result is written to its place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import NamedTuple

from modurob.compiler import driver
from modurob.compiler.emit_llvm import LOOKUP_ROWS, Slot
from modurob.compiler.fused import Trace
from modurob.compiler.kernels import Kernel
from modurob.compiler.trace import CONST, INPUT, Traced

SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
EXTREMES = {"max": "fmax", "min": "fmin"}
TRIGONOMETRY = {driver.COS: "cos", driver.SIN: "sin"}
LOOKUP_COLUMNS = 4


class InputPlace(NamedTuple):
    """Place of an input: an entry of q, v, x or external, or sine or cosine of an entry of q."""

    array: str
    entry: int
    function: str | None = None


def place_of(slot: Slot, free_base: bool) -> InputPlace:
    """Place of a traced input in the user's arrays."""
    offset = slot.offset
    if slot.pointer == "%external":
        return InputPlace("external", offset)
    if offset < driver.BASE_RECORD:
        for array, start in (("x", driver.BASE_X), ("v", driver.BASE_V), ("q", driver.BASE_Q)):
            if offset >= start:
                return InputPlace(array, offset - start)
    joint, field = divmod(offset - driver.BASE_RECORD, driver.JOINT_RECORD)
    in_q, in_v = (joint + 7, joint + 6) if free_base else (joint, joint)
    if field in (driver.V, driver.X):
        return InputPlace("v" if field == driver.V else "x", in_v)
    return InputPlace("q", in_q, TRIGONOMETRY.get(field))


class StatementPrinter(ABC):
    """Prints the body of one traced function into `lines`."""

    root = "sqrt"
    store_early = False  # True: a result is stored as soon as it is known; False: after all others

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.lines: list[str] = []
        self._texts: dict[int, str] = {}

    @abstractmethod
    def literal(self, value: float) -> str:
        """A number."""

    @abstractmethod
    def read(self, place: InputPlace) -> str:
        """An input; may write lines to get at it."""

    @abstractmethod
    def define(self, number: int, text: str) -> str:
        """Write the line that computes a node; the name it has from then on."""

    @abstractmethod
    def store(self, index: int, text: str) -> None:
        """Write the line that stores a result."""

    def run(self) -> None:
        """Print everything."""
        graph, free_base = self.trace.graph, self.trace.free_base
        waiting: dict[int, list[int]] = {}
        for index, value in self.trace.outputs:
            waiting.setdefault(value.number, []).append(index)
        for number in graph.needed([value for _, value in self.trace.outputs]):
            op, a, b = graph.nodes[number]
            if op == CONST:
                text = self.literal(a)
            elif op == INPUT:
                text = self.read(place_of(self.trace.slots[a], free_base))
            else:
                text = self.define(number, expression(op, self._texts, a, b, self.root))
            self._texts[number] = text
            if self.store_early:
                for index in waiting.pop(number, ()):
                    self.store(index, text)
        for number, indices in waiting.items():
            for index in indices:
                self.store(index, self._texts[number])


def expression(op: str, texts: Mapping[int, str], a: int, b: int | None, root: str) -> str:
    """An operation on nodes whose texts are known."""
    if op == "neg":
        return f"-{texts[a]}"
    if op == "sqrt":
        return f"{root}({texts[a]})"
    if op == "trunc":
        return f"trunc({texts[a]})"
    assert b is not None
    if op in EXTREMES:
        return f"{EXTREMES[op]}({texts[a]}, {texts[b]})"
    return f"{texts[a]} {SYMBOLS[op]} {texts[b]}"


class KernelText(NamedTuple):
    """Names of C or CUDA that the statements of a kernel are made of."""

    real: str
    literal: Callable[[float], str]
    root: str

    def statements(
        self, kernel: Kernel, place: Callable[[Slot], str], result: Traced | None = None
    ) -> list[str]:
        """Loads, then arithmetic, then stores: states may be read and written at one place.

        Args:
            place: The text of a place in memory.
            result: What the function returns.
        """
        stores, nodes = kernel.all_stores(), kernel.graph.nodes
        loads, lines, texts = [], [], {}
        wanted = [value for _, value in stores] + ([] if result is None else [result])
        for number in kernel.graph.needed(wanted):
            op, a, b = nodes[number]
            texts[number] = self.literal(a) if op == CONST else f"t{number}"
            if op == INPUT:
                loads.append(f"  const {self.real} t{number} = {place(kernel.slots[a])};")
            elif op == "lookup":
                rows = kernel.slots[LOOKUP_ROWS].pointer.removeprefix("%")
                row = f"{LOOKUP_COLUMNS} * (int){texts[a]} + {int(nodes[b][1])}"
                lines.append(f"  const {self.real} t{number} = {rows}[{row}];")
            elif op != CONST:
                text = expression(op, texts, a, b, self.root)
                lines.append(f"  const {self.real} t{number} = {text};")
        lines += [f"  {place(slot)} = {texts[value.number]};" for slot, value in stores]
        if result is not None:
            lines.append(f"  return {texts[result.number]};")
        return loads + lines
