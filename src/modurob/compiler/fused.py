"""The fused tier: the whole recursion of one organism as straight-line code.

Every number of the organism is a constant, so zeros and ones vanish and common products are shared
across links. It is faster than the table and has to be compiled for each body. Points of links are
visited in a loop as in the table, between the way outward and the way inward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from modurob.compiler import driver, entry
from modurob.compiler.emit_llvm import FunctionWriter, Slot, emit
from modurob.compiler.jit import host
from modurob.compiler.kernels import SignedAngle, Tracer
from modurob.compiler.layout import point_places, vectors
from modurob.compiler.packing import flat, unflat
from modurob.compiler.trace import Graph, Traced, lifted
from modurob.compiler.walks import write_points
from modurob.equations.links import Placement, RigidLink, to_parent
from modurob.equations.passes import Base, JointState, Quantity, run
from modurob.equations.vectors import EYE, ZERO, Vec, Wrench, vec
from modurob.model import Model

POINT_KERNELS = ("survey", "touch", "settle")


class Trace:
    """One quantity traced for one organism.

    Args:
        bodies: Those for which results are wanted; all by default.
        external: Frames in which external wrenches are given, six numbers each.

    Attributes:
        shape: Of the result.
        outputs: Numbers of the result by their index; those that are always zero are left out.
        slots: The inputs' places in the records.
        kept: Scalars of states that points read, with their places.
        wrenches: Numbers of the external wrenches.
    """

    def __init__(
        self,
        quantity: Quantity,
        model: Model,
        bodies: Sequence[int] | None = None,
        external: Sequence[Placement] = (),
    ) -> None:
        self.graph, self.slots = Graph(), {}
        self.free_base, self.quantity = model.free_base, quantity
        self.kept: list[tuple[Slot, Traced]] = []
        frames = model._frames if quantity.near else model._placed_frames
        links, placed = frames.links(), frames.placements()
        chosen = placed if bodies is None else [placed[k] for k in bodies]
        joints = [self._joint(k, link) for k, link in enumerate(links[1:])]
        base = self._base(vec(model.gravity))
        self.wrenches = driver.EXTERNAL * len(external)
        wrenches = self._wrenches(len(links), external)
        touched = self._touched if quantity.passes.touch else None
        found = run(quantity, links, joints, base, wrenches, chosen, touched)
        self.joints = len(joints)
        self.shape = quantity.shape(self.joints, self.free_base, len(chosen))
        values = enumerate(lifted(self.graph, found))
        self.outputs: list[tuple[int, Traced]] = [
            # the driver clears matrices
            (k, x)
            for k, x in values
            if x.value != 0 or quantity.per != "pair"
        ]

    def _read(self, name: str, slot: Slot) -> Traced:
        self.slots[name] = slot
        return self.graph.input(name)

    def _joint(self, k: int, link: RigidLink) -> JointState:
        place = driver.BASE_RECORD + driver.JOINT_RECORD * k

        def read(field: int) -> Traced:
            return self._read(f"joint{k}.{field}", Slot("%io", place + field))

        q: Any = read(driver.Q) * link.travel
        if not link.prismatic:
            q = SignedAngle(read(driver.COS), read(driver.SIN) * link.sign, q)
        return JointState(q, read(driver.V) * link.sign, read(driver.X) * link.sign)

    def _base(self, gravity: Vec) -> Base:
        if not self.free_base:
            return Base(gravity)
        values = [self._read(f"base{k}", Slot("%io", k)) for k in range(driver.BASE_RECORD)]
        return driver.moving_base(gravity, values)

    def _wrenches(self, links: int, external: Sequence[Placement]) -> list[Wrench | None]:
        """The wrench on each link."""
        total: list[Wrench | None] = [None] * links
        for i, (link, R, p) in enumerate(external):
            places = range(driver.EXTERNAL * i, driver.EXTERNAL * (i + 1))
            numbers = [self._read(f"external{k}", Slot("%external", k)) for k in places]
            F = to_parent(R, p, Wrench(Vec(numbers[:3]), Vec(numbers[3:])))
            before = total[link]
            total[link] = F if before is None else before.plus(F)
        return total

    def _touched(self, states: list[Any]) -> list[Any]:
        """States after a visit to all points, which finds and leaves scalars in memory."""
        kind, places = self.quantity.passes.State, point_places(self.quantity, self.free_base)
        changed = Tracer(self.quantity, self.free_base).touch().written["self"]
        after = []
        for i, state in enumerate(states):
            scalars = flat(kind, state)
            for k, place in enumerate(places):
                if place is None:
                    continue
                slot = Slot("%states", vectors(places) * i + place)
                if scalars[k] is not None:
                    self.kept.append((slot, lifted(self.graph, [scalars[k]])[0]))
                if k in changed:
                    scalars[k] = self._read(f"touched{i}.{k}", slot)
            after.append(unflat(kind, scalars))
        return after

    def operations(self) -> dict[str, int]:
        """Number of operations of each kind."""
        return self.graph.operations([value for _, value in self.outputs])


def module_ir(
    quantity: Quantity, model: Model, external: bool = False, width: int | None = None
) -> str:
    """The whole module: kernel, driver, and the entries from Python.

    Args:
        external: Whether wrenches act on the links, in their joint frames.
        width: States of a vector, the host's by default.
    """
    links = [Placement(i, EYE, ZERO) for i in range(len(model.mass))] if external else ()
    trace, free = Trace(quantity, model, external=links), model.free_base
    parts = [straight_ir(trace, width)]
    tracer = Tracer(quantity, free, point_places(quantity, free) if trace.kept else None)
    kernels = POINT_KERNELS if trace.kept else ()
    kernels += ("move",) if quantity.passes.move and free else ()
    parts += [getattr(tracer, each)().ir(each, quantity.per, width) for each in kernels]
    return "\n".join(parts)


def straight_ir(trace: Trace, width: int | None = None) -> str:
    """A trace and the driver around it."""
    width = width or host().width
    around = entry.driver_ir(width, trace.quantity, trace.free_base, keeps_input=True)
    return f"{around}\n{_body(trace, width)}"


def _body(trace: Trace, width: int) -> str:
    """The straight lines, in two parts if points are visited between them."""
    writer, quantity, names = FunctionWriter(width), trace.quantity, {}
    if trace.kept:
        results = driver.argument(writer, "results")
        writer.do(f"%states = getelementptr {writer.vector}, ptr %results, i64 {results}")
        places = point_places(quantity, trace.free_base)

        def state(link: str) -> str:
            return writer.offset("%states", writer.value(f"mul i64 {link}, {vectors(places)}"))

        _store(writer, trace, trace.kept, names)
        write_points(writer, quantity, trace.free_base, places, state)
    _store(writer, trace, [(Slot("%results", k), value) for k, value in trace.outputs], names)
    return driver.BODY + "\n".join(writer.lines) + "\n  ret void\n}\n"


def _store(
    writer: FunctionWriter,
    trace: Trace,
    stores: Sequence[tuple[Slot, Traced]],
    names: dict[int, str],
) -> None:
    values = emit(writer, trace.graph, [value for _, value in stores], trace.slots, names)
    for (slot, _), value in zip(stores, values, strict=True):
        writer.store(slot, value)


def workspace_vectors(quantity: Quantity, model: Model) -> int:
    """Vectors of workspace that the code needs besides records and results."""
    if not quantity.passes.touch:
        return 0
    return vectors(point_places(quantity, model.free_base)) * (len(model.parent) + 1)
