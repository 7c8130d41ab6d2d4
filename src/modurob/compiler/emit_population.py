"""Many different bodies on a GPU: the table kernels of an algorithm as CUDA text, with its loops.

One thread takes one body. Links are ordered depth first (`population.device` does that), so that
the first child of a link is the next one: what a link hands to it stays in registers, and only what
the other children need is kept in the thread's memory, in a slot of the fork. All arithmetic comes
from the declared passes; the text here is the walk over the links and the law of the joints.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

from modurob.compiler import driver
from modurob.compiler.emit_llvm import Slot
from modurob.compiler.kernels import (
    GENERAL,
    ROTOR,
    ROW,
    JointSeat,
    Kernel,
    Tracer,
    own_numbers,
    servo_kernel,
)
from modurob.compiler.layout import OWN_INWARD, active_kernel, allocated, span, vectors
from modurob.compiler.packing import size
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


class KernelShape(NamedTuple):
    """Properties of a population that its CUDA text depends on.

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
    seats = [JointSeat(GENERAL, slides, ROTOR) for slides in (False, True)]
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


def fork_numbers(lives: Lifetimes) -> int:
    """Numbers that a fork keeps for its children."""
    return max(len(lives.down), len(lives.up), len(lives.back))


class PopulationText:
    """Writes the CUDA text of one algorithm on a population."""

    def __init__(self, quantity: Quantity, shape: KernelShape) -> None:
        self.quantity, self.passes, self.shape = quantity, quantity.passes, shape
        self.tracer = Tracer(quantity, shape.free_base, lanes=True)
        self.lives = lifetimes(quantity, shape.free_base)
        tiny = float(np.finfo(shape.dtype).tiny)
        self.text = KernelText("real", lambda x: _literal(x, tiny), "sqrt")

    # -- functions of the passes -------------------------------------------------------------------

    def functions(self) -> list[str]:
        """One function for each kernel, and for each set of scalars that is kept."""
        passes, parts = self.passes, []
        for step in ("outward", "inward", "back"):
            if getattr(passes, step):
                for slides in (False, True)[: 1 + self.shape.prismatic]:
                    seat = JointSeat(GENERAL, slides, ROTOR * self.shape.rotor)
                    kernel = getattr(self.tracer, step)(seat)
                    parts.append(self._function(f"{step}_{int(slides)}", kernel))
                parts.append(self._choice(step))
        for step in ("base", "begin", "turn", "friction")[: 3 + self.shape.friction]:
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
        return parts + self._copies()

    def _copies(self) -> list[str]:
        """Functions that keep scalars of a state in memory, take them from there, or hand them on.

        Those of forks lie in order, those of links at their places.
        """
        lives, parts = self.lives, []
        outward = sorted({*lives.inward, *lives.after} - {*lives.made})
        places = dict(enumerate(lives.places))
        kept = (("keep", "outward", outward), ("take", "inward", lives.inward),
                ("keep", "made", lives.made), ("take", "after", lives.after),
                ("take", "sums", lives.sums))  # fmt: skip
        for way, name, scalars in kept:
            parts.append(_copy(f"{way}_{name}", [(k, places[k]) for k in scalars], way == "keep"))
        for name in ("down", "up", "back") if self.passes.back else ("down", "up"):
            scalars = getattr(lives, name)
            pairs = [(k, place) for place, k in enumerate(scalars)]
            parts += [_copy(f"{way}_fork_{name}", pairs, way == "keep") for way in ("keep", "take")]
            lines = [f"  to[{k}] = from[{k}];" for k in scalars]
            parts.append(_definition(f"hand_{name}", "const real* from, real* to", lines))
        return parts

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
        steps = passes.move is not None
        values: dict[str, object] = {
            "STEPS": int(steps), "KERNEL": KERNEL, "INPUTS": len(self.quantity.inputs),
            "POINTS": int(shape.masks > 0), "FREE_BASE": int(shape.free_base),
            "HAS_BACK": int(passes.back is not None),
            "SINGLE": int(shape.dtype == "float32"),
            "FRICTION_IN": int(shape.friction and passes.friction == "x"),
            "FRICTION_OUT": int(shape.friction and passes.friction == "y"),
            "LINKS": shape.links, "KEPT": vectors(lives.places), "FORKS": max(shape.forks, 1),
            "FORK_SIZE": fork_numbers(lives),
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
            values |= {
                "MASKS": shape.masks, "MASK_BITS": MASK_BITS, "CORNER": own + 1,
                "MEMORY": memory_numbers(self.quantity), "GROUND": size(passes.Point) - own,
                "HELD": span(passes.Memory, "held")[0],
            }  # fmt: skip
        return [f"#define {name} {value}" for name, value in values.items()]

    def source(self) -> str:
        """All of it: numbers, functions of the passes, and the walk."""
        head = f"typedef {TYPES[self.shape.dtype]} real;"
        inline = "#define INLINE static __device__ __forceinline__"
        walk = resources.files("modurob.compiler").joinpath("population.cu").read_text("utf-8")
        return "\n".join([*self.constants(), head, inline, *self.functions(), walk])


def shared_numbers(quantity: Quantity, free_base: bool, links: Any, forks: Any) -> Any:
    """Numbers of bodies with so many links and forks that threads of a block keep side by side.

    One more than a multiple of 32, the banks of that memory: threads that take the same number of
    their bodies do not wait for each other.
    """
    lives = lifetimes(quantity, free_base)
    used = links * (vectors(lives.places) + 4) + forks * fork_numbers(lives)
    return -(-used // 32) * 32 + 1


@cache
def population_source(quantity: Quantity, shape: KernelShape) -> str:
    """CUDA text of the kernel of a quantity: steps in time if it can take them, else one state.

    The compiler is told the THREADS of a block, for how many BLOCKS registers have to suffice, and
    whether the numbers of bodies are SHARED: kept in the memory of a block, not of a thread.
    """
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


def _copy(name: str, pairs: Iterable[tuple[int, int | None]], keep: bool) -> str:
    """Copy scalars of a state to their places in memory, or from there."""
    arguments = "const real* state, real* at" if keep else "const real* at, real* state"
    texts = [(f"at[{place}]", f"state[{k}]") for k, place in pairs]
    lines = [f"  {to} = {of};" if keep else f"  {of} = {to};" for to, of in texts]
    return _definition(name, arguments, lines)
