"""Table kernels as C99, for the runtime with which a robot models itself.

The same kernels as those of the dyad tier, with two differences that keep them small: one kernel
inward serves all variants, so links begin their accumulators in a kernel of their own, and the walk
is a loop in C that is written by hand (`firmware/src/dynamics.c`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from modurob.compiler.emit_llvm import Slot
from modurob.compiler.kernels import PATTERNS, ROTOR, ROW, JointSeat, Kernel, Tracer
from modurob.compiler.layout import carried_places, places_of, scratch_size, state_size
from modurob.compiler.statements import KernelText
from modurob.equations.passes import Quantity
from modurob.equations.quantities import QUANTITIES

FUNCTIONS = (
    "inverse_dynamics",
    "forward_dynamics",
    "mass_matrix",
    "inverse_dynamics_derivatives",
    "forward_kinematics",
    "center_of_mass",
)
SEATS = [JointSeat(k, s, ROTOR) for s in (False, True) for k in range(PATTERNS)]
POINTERS = {"row": "const mr_real *row", "self": "mr_real *self", "parent": "mr_real *parent",
            "record": "mr_real *record", "out": "mr_real *out"}  # fmt: skip
ONCE = ("base", "turn", "friction", "output")
TEXT = KernelText("mr_real", lambda value: f"MR_C({value!r})", "mr_sqrt")


class RuntimeKernels(NamedTuple):
    """Text of ``modurob/kernels.h`` and ``kernels.c``."""

    header: str
    source: str


@cache
def runtime_kernels() -> RuntimeKernels:
    """The kernels of all `FUNCTIONS` on a fixed base."""
    chosen = {name: QUANTITIES[name] for name in FUNCTIONS}
    sizes = [state_size(quantity, False) for quantity in chosen.values()]
    carried = [scratch_size(quantity, False)[1] for quantity in chosen.values()]
    lines = [
        "/* Made by modurob export --runtime: numbers of the generated kernels. */",
        "#ifndef MODUROB_KERNELS_H",
        "#define MODUROB_KERNELS_H",
        "",
        f"#define MR_ROW_SIZE {ROW} /* numbers of a row of the table */",
        f"#define MR_STATE_SIZE {max(sizes)} /* largest state of a link */",
        f"#define MR_CARRIED_SIZE {max([1, *carried])} /* largest value walked to the base */",
        "",
        "#endif",
    ]
    parts = [
        "/* Made by modurob export --runtime: one function for each pass and seat of a joint. */\n"
        '#include "modurob/dynamics.h"\n'
    ]
    parts += [_quantity(name, quantity) for name, quantity in chosen.items()]
    return RuntimeKernels("\n".join(lines) + "\n", "\n".join(parts))


def _quantity(name: str, quantity: Quantity) -> str:
    """The functions of one quantity, and the table of them."""
    passes, tracer = quantity.passes, Tracer(quantity, False, places_of(quantity, False))
    parts, entries = [], [f".state = {state_size(quantity, False)}"]
    for step in ("outward", "inward", "back", "carry"):
        if getattr(passes, step):
            names = [f"{name}_{step}_{seat.pattern}{int(seat.prismatic)}" for seat in SEATS]
            for function, seat in zip(names, SEATS, strict=True):
                parts.append(_function(function, getattr(tracer, step)(seat)))
            entries.append(f".{step} = {{{', '.join(names)}}}")
    once = {step: getattr(tracer, step)() for step in ONCE if getattr(passes, step)}
    if tracer.accumulators:
        once["begin"] = tracer.begin()
    for step, kernel in once.items():
        parts.append(_function(f"{name}_{step}", kernel))
        entries.append(f".{step} = {name}_{step}")
    if passes.friction:
        entries.append(f".friction_first = {int(passes.friction == 'x')}")
    if passes.pair:
        parts.append(_pair(f"{name}_pair", tracer.pair()))
        entries += [f".pair = {name}_pair", f".matrices = {passes.matrices}"]
    if passes.carry:
        parts.append(_lift(f"{name}_lift", carried_places(quantity, False)))
        entries.append(f".lift = {name}_lift")
    fields = ",\n".join(f"    {entry}" for entry in entries)
    return "\n".join([*parts, f"const mr_passes mr_{name}_passes = {{\n{fields}}};\n"])


def _lift(name: str, places: Iterable[int]) -> str:
    """Copy the carried value of a state."""
    lines = [f"  out[{k}] = self[{place}];" for k, place in enumerate(places)]
    return _text(name, "const mr_real *self, mr_real *out", lines)


def _function(name: str, kernel: Kernel) -> str:
    lines, used = _body(kernel, {})
    unused = [f"  (void){each};" for each in (*POINTERS, "stride") if each not in used]
    return _text(name, ", ".join([*POINTERS.values(), "int stride"]), unused + lines)


def _pair(name: str, kernel: Kernel) -> str:
    """Entries (i, j) and (j, i) of each matrix; the kernel has `row` in the place of `ji`."""
    arguments = {"self": "const mr_real *self", "parent": "const mr_real *parent",
                 "record": "const mr_real *record", "ij": "mr_real *ij", "ji": "mr_real *ji",
                 "stride": "int stride"}  # fmt: skip
    lines, used = _body(kernel, {"row": "ji", "out": "ij"})
    unused = [f"  (void){each};" for each in arguments if each not in used]
    return _text(name, ", ".join(arguments.values()), unused + lines)


def _text(name: str, arguments: str, lines: Sequence[str]) -> str:
    return f"static void {name}({arguments})\n{{\n" + "\n".join(lines) + "\n}\n"


def _body(kernel: Kernel, renamed: dict[str, str]) -> tuple[list[str], set[str]]:
    """Statements of a kernel, and the names that they use."""
    used: set[str] = set()

    def place(slot: Slot) -> str:
        pointer = slot.pointer.removeprefix("%")
        pointer = renamed.get(pointer, pointer)
        terms = [str(slot.offset)] if slot.offset or not slot.times else []
        for factor_name, factor in slot.times:
            if factor:
                used.add(factor_name.removeprefix("%"))
                terms.append(f"{factor} * {factor_name.removeprefix('%')}")
        used.add(pointer)
        return f"{pointer}[{' + '.join(terms) or '0'}]"

    return TEXT.statements(kernel, place), used
