"""Places of a link's state in memory, from the lifetimes of its scalars.

A state's scalars share places when their lifetimes allow it: a smaller state stays in a faster
cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from modurob.compiler.emit_llvm import Slot
from modurob.compiler.kernels import GENERAL, ROTOR, JointSeat, Kernel, Tracer
from modurob.compiler.packing import fields, size
from modurob.equations.passes import Quantity

GENERAL_SEATS = (JointSeat(GENERAL, False, ROTOR), JointSeat(GENERAL, True, ROTOR))
OWN_INWARD = 4
PAIRS = 7  # the last event of a state; see `places_of`


@cache
def places_of(quantity: Quantity, free_base: bool) -> tuple[int | None, ...]:
    """The place of each scalar of a state; None for one that is never read.

    A link's state is written and read in this order: by its own way outward (0), by its children on
    theirs (1), by an external wrench or points (2), by the children on their way inward (3), by its
    own (4), by its own way back (5), by its children's (6), and by pairs and bodies (7). Scalars
    share a place when one is read for the last time before the other is written, or in the same
    kernel of the link.
    """
    tracer, passes = Tracer(quantity, free_base), quantity.passes
    events: list[tuple[Kernel, Mapping[str, int]]] = [(tracer.base(), {"self": 0})]
    for way in GENERAL_SEATS:
        events.append((tracer.outward(way), {"self": 0, "parent": 1}))
        if passes.inward:
            events.append((tracer.inward(way), {"self": 4, "parent": 3}))
        if passes.back:
            events.append((tracer.back(way), {"self": 5, "parent": 6}))
    once = {"external": 2, "survey": 2, "touch": 2, "settle": 2, "turn": 4, "base_block": PAIRS}
    for each, when in once.items():
        if getattr(passes, each) and (each != "base_block" or free_base):
            events.append((getattr(tracer, each)(), {"self": when}))
    if passes.active:
        events.append((active_kernel(tracer), {"self": 2}))
    if passes.pair:
        events.append((tracer.pair(), {"self": PAIRS, "parent": PAIRS}))
    if passes.pair and free_base:
        events.append((tracer.base_pairs(), {"self": PAIRS}))
    if passes.output:
        events.append((tracer.output(), {"self": PAIRS}))
    dies: dict[int, int] = {}
    if passes.carry:  # copied before pairs are formed
        dies = dict.fromkeys(range(*span(passes.State, "carried")), PAIRS)
    before = -1
    while len(dies) > before:  # more may be live than was thought
        before = len(dies)
        for kernel, when in events:
            for of, k in kernel.reads(dies.keys()):
                dies[k] = max(dies.get(k, 0), when[of])
    born = dict.fromkeys(dies, PAIRS)
    for kernel, when in events:
        for of, event in when.items():
            for k in kernel.written.get(of, {}):
                if k in born:
                    born[k] = min(born[k], event)
                    dies[k] = max(dies[k], event + 1)  # no store may overwrite another scalar
    for name in tracer.accumulators:
        if any(dies.get(k, 0) > OWN_INWARD for k in range(*span(passes.State, name))):
            raise TypeError(
                f"{passes.__name__}: the accumulator '{name}' is read after the way inward; keep "
                "what is needed in a field of its own"
            )
    return allocated(size(passes.State), born, dies)


def active_kernel(tracer: Tracer) -> Kernel:
    """The kernel of `active`, its number stored."""
    kernel, number = tracer.active()
    kernel.put(Slot("%out", 0), number)
    return kernel


@cache
def point_places(quantity: Quantity, free_base: bool) -> tuple[int | None, ...]:
    """Places of the scalars that the points of a link read or write; None for all others.

    For code that keeps the other scalars in registers.
    """
    tracer = Tracer(quantity, free_base)
    kernels = (tracer.survey(), tracer.settle(), active_kernel(tracer))
    changed = {k for kernel in kernels for k in kernel.written.get("self", ())}
    used = changed | {k for kernel in kernels for _, k in kernel.reads(changed)}
    order = {k: place for place, k in enumerate(sorted(used))}
    return tuple(order.get(k) for k in range(size(quantity.passes.State)))


def span(kind: type, name: str) -> tuple[int, int]:
    """First and one past the last scalar of a field."""
    start = 0
    for field, each in fields(kind):
        if field == name:
            return start, start + size(each)
        start += size(each)
    raise KeyError(name)


def allocated(
    count: int, born: Mapping[int, int], dies: Mapping[int, int]
) -> tuple[int | None, ...]:
    """Places by lifetime, first come first served."""
    ends: list[int] = []  # the last reading of each place
    places: list[int | None] = [None] * count
    for k in sorted(born, key=lambda k: (born[k], k)):
        shared = born[k] in (4, 5)  # one kernel of the link reads before it writes
        free = [p for p, end in enumerate(ends) if end < born[k] or (shared and end == born[k])]
        if not free:
            free, ends = [len(ends)], [*ends, 0]
        places[k] = free[0]
        ends[free[0]] = dies[k]
    return tuple(places)


def vectors(places: Sequence[int | None]) -> int:
    """Vectors of a state with these places."""
    return 1 + max((place for place in places if place is not None), default=-1)


def state_size(quantity: Quantity, free_base: bool) -> int:
    """Vectors of a link's state."""
    return vectors(places_of(quantity, free_base))


@cache
def scratch_size(quantity: Quantity, free_base: bool) -> tuple[int, int]:
    """Vectors for the columns of a free base, and for a carried value."""
    tracer, passes = Tracer(quantity, free_base), quantity.passes
    columns = len(tracer.base_columns().kept) if free_base and passes.base_columns else 0
    return columns, size(tracer.carried_kind) if passes.carry else 0


def carried_places(quantity: Quantity, free_base: bool) -> list[int]:
    """The places of the carried value in a state."""
    start, end = span(quantity.passes.State, "carried")
    return [place for place in places_of(quantity, free_base)[start:end] if place is not None]
