"""The functions of an exported C file: their signatures, and their bodies from traces."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from modurob.compiler.fused import Trace
from modurob.compiler.statements import InputPlace, StatementPrinter
from modurob.compiler.trace import CONST, INPUT
from modurob.equations.quantities import QUANTITIES
from modurob.errors import StateError
from modurob.model import Model

COUNTED = ("add", "mul", "div", "sqrt", "sin", "cos", "neg")  # add counts subtractions too
NAMES_A_LINE = 12


class Real(NamedTuple):
    """A floating point type of C: its name, the suffix of its literals and functions, its size."""

    name: str
    suffix: str
    bytes: int

    def literal(self, value: float) -> str:
        """The shortest decimal that the C compiler reads as this number."""
        if self.suffix == "":
            return repr(value)
        with np.errstate(over="ignore"):
            rounded = np.float32(value)
        if not np.isfinite(rounded):
            raise StateError(f"the number {value:g} is too large for a float; export as double")
        return f"{rounded!s}{self.suffix}"


REALS = {"float64": Real("double", "", 8), "float32": Real("float", "f", 4)}


class Function(NamedTuple):
    """A C function of a quantity.

    Attributes:
        quantity: Its name in the table of quantities.
        inputs: Its parameters by the traced arrays (q, v, x, external), in order.
        result: The parameter it writes to.
        sizes: The result's dimensions: numbers, or the names of macros.
        meaning: For the comment in the header.
    """

    quantity: str
    inputs: Mapping[str, str]
    result: str
    sizes: tuple[str, ...]
    meaning: str

    def shape(self, model: Model) -> tuple[int, ...]:
        """The result's dimensions as numbers."""
        known = {"NV": model.nv, "MODULES": len(model.modules)}
        return tuple(known[size] if size in known else int(size) for size in self.sizes)

    def trace(self, model: Model) -> Trace:
        """The quantity on traced scalars; of the bodies those that carry a module's frame."""
        bodies, quantity = list(model.modules.values()), QUANTITIES[self.quantity]
        placed = model._frames.placements() if "external" in self.inputs else []
        return Trace(quantity, model, bodies, [placed[body] for body in bodies if placed])


MACROS = {"nv": "NV", "bodies": "MODULES"}
RENAMED = {"forward_kinematics": "kinematics"}  # in C, where only modules have a pose
PUSHED = "F holds six numbers for each module: force, then torque on it, in its frame. [N, N m]"
USUAL = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "kinematics", "center_of_mass")


def c_functions() -> dict[str, Function]:
    """The functions that can be exported: all quantities with code without loops, by name."""
    found = {
        RENAMED.get(name, name): Function(
            name,
            dict(zip("qvx", each.inputs, strict=False)),
            each.symbol,
            tuple(MACROS.get(str(size), str(size)) for size in each.result),
            each.meaning.replace("body", "module"),
        )
        for name, each in QUANTITIES.items()
        if each.straight_line
    }
    pushed = {
        f"{name}_external": each._replace(
            inputs={**each.inputs, "external": "F"}, meaning=f"{each.meaning} {PUSHED}"
        )
        for name, each in found.items()
        if QUANTITIES[each.quantity].passes.external
    }
    return found | pushed


class Printed(NamedTuple):
    """A function with its body, the number of operations, and of values held at once."""

    function: Function
    lines: list[str]
    operations: dict[str, int]
    held: int


class CPrinter(StatementPrinter):
    """Names are reused once a value is spent: little stack is enough, even without optimizing.

    Vectors are stored at the very end, so that a result may take the place of an input.
    """

    def __init__(self, trace: Trace, function: Function, model: Model, real: Real) -> None:
        super().__init__(trace)
        self.root = f"sqrt{real.suffix}"
        self.store_early = len(function.sizes) > 1
        self.used: set[str] = set()  # inputs that were read
        self.turned: dict[str, str] = {}  # sines and cosines: their names, what they are of
        self.temporaries = 0
        self._function, self._shape, self._real = function, function.shape(model), real
        self._left = dict.fromkeys(range(math.prod(self._shape)))  # results still to store
        self._slots: dict[int, int] = {}
        self._free: list[int] = []
        self._ending = self._last_uses()

    def _last_uses(self) -> dict[int, list[int]]:
        """For each node the nodes that are read for the last time there."""
        outputs = [value for _, value in self.trace.outputs]
        last: dict[int, int] = {}
        for number in self.trace.graph.needed(outputs):
            op, a, b = self.trace.graph.nodes[number]
            last[number] = number
            if op not in (CONST, INPUT):
                last.update({a: number} if b is None else {a: number, b: number})
        if not self.store_early:
            for value in outputs:
                last.pop(value.number, None)
        ending: dict[int, list[int]] = {}
        for number, where in last.items():
            ending.setdefault(where, []).append(number)
        return ending

    def literal(self, value: float) -> str:
        return self._real.literal(value)

    def read(self, place: InputPlace) -> str:
        parameter = self._function.inputs[place.array]
        self.used.add(parameter)
        text = f"{parameter}[{place.entry}]"
        if place.function is None:
            return text
        name = f"{place.function}{place.entry}"
        self.turned[name] = f"{place.function}{self._real.suffix}({text})"
        return name

    def define(self, number: int, text: str) -> str:
        ending = self._ending.get(number, [])
        self._release(other for other in ending if other != number)
        if self._free:
            slot = heapq.heappop(self._free)
        else:
            slot, self.temporaries = self.temporaries, self.temporaries + 1
        self._slots[number] = slot
        if number in ending:  # only a result: stored before anything else is computed
            self._release([number])
        self.lines.append(f"t{slot} = {text};")
        return f"t{slot}"

    def _release(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if number in self._slots:
                heapq.heappush(self._free, self._slots[number])

    def store(self, index: int, text: str) -> None:
        del self._left[index]
        place = "".join(f"[{k}]" for k in np.unravel_index(index, self._shape))
        self.lines.append(f"{self._function.result}{place} = {text};")

    def run(self) -> None:
        super().run()
        for index in list(self._left):  # traces leave zeros out
            self.store(index, self._real.literal(0.0))


def printed(function: Function, model: Model, real: Real, real_name: str) -> Printed:
    """The body of a function; `real_name` is the type that its header declares."""
    try:
        trace = function.trace(model)
    except ZeroDivisionError:
        # a joint moves nothing: forward dynamics raises an error with its name
        rest = np.zeros(model.nv)
        model.forward_dynamics(model.neutral(), rest, rest)
        what = function.quantity
        raise StateError(f"{what} is singular: a joint has nothing to accelerate") from None
    printer = CPrinter(trace, function, model, real)
    printer.run()
    unused = [each for each in function.inputs.values() if each not in printer.used]
    lines = [f"const {real_name} {each} = {text};" for each, text in printer.turned.items()]
    lines += _declared(real_name, printer.temporaries)
    lines += [f"(void){each};" for each in unused]
    done = trace.operations()
    counts = {op: done.get(op, 0) for op in COUNTED}
    counts["add"] += done.get("sub", 0)
    for each in ("sin", "cos"):
        counts[each] = sum(turned.startswith(each) for turned in printer.turned)
    held = printer.temporaries + len(printer.turned)
    return Printed(function, lines + printer.lines, counts, held)


def _declared(real_name: str, count: int) -> list[str]:
    """Declarations of the temporaries, as many in a line as are easy to read."""
    names = [f"t{k}" for k in range(count)]
    return [
        f"{real_name} {', '.join(names[k : k + NAMES_A_LINE])};"
        for k in range(0, count, NAMES_A_LINE)
    ]
