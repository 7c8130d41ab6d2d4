"""Many different bodies on a GPU: the table kernels of an algorithm as CUDA text, with its loops.

One thread takes one body. Links are ordered depth first (`population.device` does that), so that
the first child of a link is the next one: what a link hands to it stays in registers, and only what
the other children need is kept in the thread's memory, in a slot of the fork. All arithmetic comes
from the declared passes; the text here is the walk over the links and the law of the joints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple

import numpy as np

from modurob.compiler import driver
from modurob.compiler.emit_llvm import Slot
from modurob.compiler.kernels import ROTOR, ROW, JointSeat, Kernel, Tracer, own_numbers, servo_kernel
from modurob.compiler.layout import OWN_INWARD, active_kernel, allocated, span, vectors
from modurob.compiler.packing import fields, size
from modurob.compiler.statements import KernelText
from modurob.compiler.trace import Traced
from modurob.equations.contact import LARGEST_TURN
from modurob.equations.passes import Quantity
from modurob.equations.servo import Servo

CHAINED, FORK, FIRST, PRISMATIC = 1, 2, 4, 8  # flags of a link, see `LINK_WORD`
# bits of a link's word where its row, flags, slot, its parent's slot and its parent begin
LINK_WORD = {"row": 0, "flags": 24, "slot": 32, "above": 40, "parent": 48}
PACK = 4  # numbers of a row are read in packs of 16 bytes, rows padded to whole packs
MASK_BITS = 32  # points of a link that one mask holds
TYPES = {"float32": "float", "float64": "double"}
KERNEL = "modurob_population"
ARGUMENTS = "const real* row, real* self, real* parent, real* record, real* out"
POINT_ARGUMENTS = ARGUMENTS.replace("real* parent", "const real* parent")  # cells of a field
HEAD = """
#ifndef THREADS
#define THREADS 64
#endif
#ifndef BLOCKS
#define BLOCKS 1
#endif
#ifndef SHARED
#define SHARED 0
#endif
#define STRIDE (SHARED ? THREADS : 1)
#define INLINE static __device__ __forceinline__
"""
# numbers of 16 bytes -> how they are moved together
PACKS = {
    4: """
template <int N> INLINE void load(const real* __restrict__ from, real* to) {
#pragma unroll
  for (int k = 0; k < N; k += 4) {
    const float4 p = __ldg((const float4*)(from + k));
    to[k] = p.x, to[k + 1] = p.y, to[k + 2] = p.z, to[k + 3] = p.w;
  }
}
template <int N> INLINE void load_changing(const real* from, real* to) {
#pragma unroll
  for (int k = 0; k < N; k += 4) {
    const float4 p = *(const float4*)(from + k);
    to[k] = p.x, to[k + 1] = p.y, to[k + 2] = p.z, to[k + 3] = p.w;
  }
}
template <int N> INLINE void store(const real* from, real* to) {
#pragma unroll
  for (int k = 0; k < N; k += 4)
    *(float4*)(to + k) = make_float4(from[k], from[k + 1], from[k + 2], from[k + 3]);
}
""",
    2: """
template <int N> INLINE void load(const real* __restrict__ from, real* to) {
#pragma unroll
  for (int k = 0; k < N; k += 2) {
    const double2 p = __ldg((const double2*)(from + k));
    to[k] = p.x, to[k + 1] = p.y;
  }
}
template <int N> INLINE void load_changing(const real* from, real* to) {
#pragma unroll
  for (int k = 0; k < N; k += 2) {
    const double2 p = *(const double2*)(from + k);
    to[k] = p.x, to[k + 1] = p.y;
  }
}
template <int N> INLINE void store(const real* from, real* to) {
#pragma unroll
  for (int k = 0; k < N; k += 2) *(double2*)(to + k) = make_double2(from[k], from[k + 1]);
}
""",
}


class Shape(NamedTuple):
    """What the text of a population depends on, beside the algorithm.

    Attributes:
        free_base: As of a model.
        dtype: "float32" or "float64".
        links: Most links of a body, the base among them.
        forks: Most forks on a way from the base to a tip.
        masks: Most masks of points of a body.
        prismatic, rotor, friction: True if a joint slides, has a rotor, or friction or a spring.
    """

    free_base: bool
    dtype: str
    links: int
    forks: int
    masks: int
    prismatic: bool
    rotor: bool
    friction: bool


def memory_numbers(quantity: Quantity) -> int:
    """Numbers of the memory of a point, padded to packs."""
    return -(-size(quantity.passes.Memory) // PACK) * PACK


class Lifetimes(NamedTuple):
    """Scalars of a state that are handed from one kernel to another.

    Attributes:
        places: In the memory of a link, of what its own kernels hand to each other.
        down, up, back: To children on the way outward, from them inward, to them on the way back.
        inward, after: Read by a link's own kernel inward, and on its way back.
        made: Written inward and read on the way back.
        sums: Those of `up` that begin with a value of the way outward.
    """

    places: tuple[int | None, ...]
    down: list[int]
    up: list[int]
    back: list[int]
    inward: list[int]
    after: list[int]
    made: list[int]
    sums: list[int]


@cache
def lifetimes(quantity: Quantity, free_base: bool) -> Lifetimes:
    """See `Lifetimes`; from the same kernels as `layout.places_of`."""
    tracer, passes = Tracer(quantity, free_base, lanes=True), quantity.passes
    seats = [JointSeat(3, slides, ROTOR) for slides in (False, True)]
    outward, inward, back = (
        [getattr(tracer, step)(seat) for seat in seats] if getattr(passes, step) else []
        for step in ("outward", "inward", "back")
    )
    at_base = [tracer.turn()] if passes.turn else []
    points = [tracer.survey(), tracer.settle(), active_kernel(tracer)] if passes.settle else []
    kernels = [tracer.base(), *outward, *points, *inward, *at_base, *back]
    live: set[int] = set()
    before = -1
    while len(live) > before:
        before = len(live)
        for kernel in kernels:
            live |= {k for _, k in kernel.reads(live)}

    def read(by: Sequence[Kernel], of: str) -> set[int]:
        return {k for kernel in by for each, k in kernel.reads(live) if each == of}

    up = read(inward, "parent")
    begun = {k for name in tracer.accumulators for k in range(*span(passes.State, name))}
    inside = (read(inward, "self") | read(at_base, "self")) - begun
    after = read(back, "self")
    made = {k for kernel in inward for k in kernel.written["self"]} & after
    born = dict.fromkeys(inside | after - made, 0) | dict.fromkeys(made, OWN_INWARD)
    dies = dict.fromkeys(inside, OWN_INWARD) | dict.fromkeys(after, OWN_INWARD + 1)
    places = allocated(size(passes.State), born, dies)
    down, handed = read(outward, "parent"), read(back, "parent")
    sets = (down, up, handed, inside, after, made, up - begun)
    return Lifetimes(places, *map(sorted, sets))


class PopulationText:
    """Writes the CUDA text of one algorithm on a population."""

    def __init__(self, quantity: Quantity, shape: Shape) -> None:
        self.quantity, self.passes, self.shape = quantity, quantity.passes, shape
        self.tracer = Tracer(quantity, shape.free_base, lanes=True)
        self.lives = lifetimes(quantity, shape.free_base)
        self.real = TYPES[shape.dtype]
        tiny = float(np.finfo(shape.dtype).tiny)
        self.text = KernelText("real", lambda x: _literal(x, tiny), "sqrt")

    # -- functions of the passes -------------------------------------------------------------------

    def functions(self) -> list[str]:
        """One function for each kernel, and for each set of scalars that is kept."""
        passes, lives = self.passes, self.lives
        parts = []
        for step in ("outward", "inward", "back"):
            if getattr(passes, step):
                for slides in (False, True)[: 1 + self.shape.prismatic]:
                    seat = JointSeat(3, slides, ROTOR * self.shape.rotor)
                    kernel = getattr(self.tracer, step)(seat)
                    parts.append(self._function(f"{step}_{int(slides)}", kernel))
                parts.append(self._choice(step))
        for step in ("base", "turn", "friction", "begin"):
            if step == "begin" or getattr(passes, step):
                parts.append(self._function(step, getattr(self.tracer, step)()))
        if self.shape.masks:
            for step in ("survey", "settle"):
                parts.append(self._function(step, getattr(self.tracer, step)()))
            parts.append(self._function("active", *self.tracer.active()))
        if passes.move:
            parts.append(self._function("servo", *servo_kernel()))
        if passes.move and self.shape.free_base:
            parts.append(self._function("move", self.tracer.move()))
        sets = {
            "outward": self._placed({*lives.inward, *lives.after} - {*lives.made}),
            "inward": self._placed(lives.inward),
            "made": self._placed(lives.made),
            "sums": self._placed(lives.sums),
            "after": self._placed(lives.after),
            "fork_down": dict(zip(lives.down, range(len(lives.down)), strict=True)),
            "fork_up": dict(zip(lives.up, range(len(lives.up)), strict=True)),
            "fork_back": dict(zip(lives.back, range(len(lives.back)), strict=True)),
        }
        for name, places in sets.items():
            parts += [_copy(f"keep_{name}", places, True), _copy(f"take_{name}", places, False)]
        for name, scalars in (("down", lives.down), ("up", lives.up), ("back", lives.back)):
            lines = [f"  to[{k}] = from[{k}];" for k in scalars]
            parts.append(_definition(f"hand_{name}", "const real* from, real* to", lines))
        return parts

    def _placed(self, scalars: Iterable[int]) -> dict[int, int]:
        return {k: place for k in sorted(scalars) if (place := self.lives.places[k]) is not None}

    def _function(self, name: str, kernel: Kernel, result: Traced | None = None) -> str:
        lines = self.text.statements(kernel, _place, result)
        arguments = POINT_ARGUMENTS if name in ("survey", "active", "settle") else ARGUMENTS
        return _definition(name, arguments, lines, "void" if result is None else "real")

    def _choice(self, step: str) -> str:
        """The kernel of a joint that turns or slides."""
        given = "row, self, parent, record, out"
        lines = [f"  {step}_0({given});"]
        if self.shape.prismatic:
            lines = [f"  if (slides) {step}_1({given});", f"  else {step}_0({given});"]
        return _definition(step, f"bool slides, {ARGUMENTS}", lines)

    # -- the walk ----------------------------------------------------------------------------------

    def constants(self) -> list[str]:
        """Numbers of the text."""
        shape, lives, passes = self.shape, self.lives, self.passes
        steps, whole = passes.move is not None, self.quantity.per == "whole"
        rates = self.quantity.entries if whole else 6 * shape.free_base
        values: dict[str, object] = {
            "STEPS": int(steps), "KERNEL": KERNEL, "INPUTS": len(self.quantity.inputs),
            "POINTS": int(shape.masks > 0), "FREE_BASE": int(shape.free_base),
            "HAS_INWARD": int(passes.inward is not None), "HAS_BACK": int(passes.back is not None),
            "HAS_TURN": int(passes.turn is not None), "RATES": rates,
            "RESULT_INWARD": int(not (steps or whole or passes.back)),
            "FRICTION_IN": int(shape.friction and passes.friction == "x"),
            "FRICTION_OUT": int(shape.friction and passes.friction == "y"),
            "LINKS": shape.links, "KEPT": vectors(lives.places), "FORKS": max(shape.forks, 1),
            "FORK_SIZE": max(len(lives.down), len(lives.up), len(lives.back), 1),
            "STATE": size(passes.State), "ROW": ROW,
            "NQ_BASE": 7 * shape.free_base, "NV_BASE": 6 * shape.free_base,
            "BASE_RECORD": driver.BASE_RECORD, "BASE_V": driver.BASE_V, "BASE_X": driver.BASE_X,
            "JOINT_RECORD": driver.JOINT_RECORD, "IS_CHAINED": CHAINED, "IS_FORK": FORK,
            "IS_FIRST": FIRST, "IS_PRISMATIC": PRISMATIC,
            "SERVO": size(Servo), "SERVO_PHASE": Servo._fields.index("phase"),
            "LARGEST_TURN": LARGEST_TURN,
            **{f"BIT_{name.upper()}": bit for name, bit in LINK_WORD.items()},
        }  # fmt: skip
        if shape.masks:
            own = own_numbers(passes)
            names = [name for name, _ in fields(passes.Memory)]
            before = fields(passes.Memory)[: names.index("held")]
            values |= {
                "MASKS": shape.masks, "MASK_BITS": MASK_BITS, "CORNER": own + 1, "MEMORY": memory_numbers(self.quantity),
                "GROUND": size(passes.Point) - own,
                "HELD": sum(size(kind) for _, kind in before),
            }  # fmt: skip
        return [f"#define {name} {value}" for name, value in values.items()]

    def source(self) -> str:
        """All of it: numbers, functions of the passes, and the walk."""
        per = 16 // np.dtype(self.shape.dtype).itemsize
        head = HEAD + PACKS[per]
        walk = resources.files("modurob.compiler").joinpath("population.cu").read_text("utf-8")
        return "\n".join([f"typedef {self.real} real;", *self.constants(), head, *self.functions(), walk])


@cache
def population_source(quantity: Quantity, shape: Shape) -> str:
    """CUDA text of the kernel ``rollout`` or ``evaluate`` of a quantity."""
    return PopulationText(quantity, shape).source()


def _literal(value: float, tiny: float) -> str:
    """A number; none becomes zero because it is too small for the type."""
    if value and abs(value) < tiny:
        value = tiny if value > 0 else -tiny
    return f"(real){value!r}"


def _place(slot: Slot) -> str:
    return f"{slot.pointer.removeprefix('%')}[{slot.offset}]"


def _definition(name: str, arguments: str, lines: Sequence[str], result: str = "void") -> str:
    return f"INLINE {result} {name}({arguments}) {{\n" + "\n".join(lines) + "\n}\n"


def _copy(name: str, places: Mapping[int, int], keep: bool) -> str:
    """Copy scalars of a state to their places in memory, or from there."""
    arguments = "const real* state, real* at" if keep else "const real* at, real* state"
    pairs = [(f"at[{place} * STRIDE]", f"state[{k}]") for k, place in places.items()]
    lines = [f"  {to} = {of};" if keep else f"  {of} = {to};" for to, of in pairs]
    return _definition(name, arguments, lines)
