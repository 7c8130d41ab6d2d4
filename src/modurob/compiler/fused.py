"""The fused tier: the whole recursion of one organism as straight-line code.

Every number of the organism is a constant, so zeros and ones vanish and common products are shared
across links. It is faster than the table and has to be compiled for each body.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from modurob.compiler import driver
from modurob.compiler.driver import Driver
from modurob.compiler.emit_llvm import FunctionWriter, Slot, emit
from modurob.compiler.jit import host
from modurob.compiler.kernels import SignedAngle
from modurob.compiler.trace import Graph, Traced, lifted
from modurob.equations.links import RigidLink
from modurob.equations.passes import Base, JointState, run
from modurob.equations.quantities import QUANTITIES
from modurob.equations.vectors import Vec, vec
from modurob.model import Model


class Trace:
    """One quantity traced for one organism.

    Args:
        bodies: Those for which results are wanted; all by default.

    Attributes:
        shape: Of the result.
        outputs: Numbers of the result by their index; those that are always zero are left out.
        slots: The inputs' places in the records.
    """

    def __init__(
        self,
        name: str,
        model: Model,
        bodies: Sequence[int] | None = None,
    ) -> None:
        self.graph, self.slots = Graph(), {}
        self.free_base, self.quantity = model.free_base, QUANTITIES[name]
        frames = model._frames if self.quantity.near else model._placed_frames
        links, placed = frames.links(), frames.placements()
        chosen = placed if bodies is None else [placed[k] for k in bodies]
        joints = [self._joint(k, link) for k, link in enumerate(links[1:])]
        base = self._base(vec(model.gravity))
        found = run(self.quantity, links, joints, base, bodies=chosen)
        self.joints = len(joints)
        self.shape = self.quantity.shape(self.joints, self.free_base, len(chosen))
        values = enumerate(lifted(self.graph, found))
        self.outputs: list[tuple[int, Traced]] = [
            # the driver clears matrices
            (k, x)
            for k, x in values
            if x.value != 0 or self.quantity.per != "pair"
        ]

    def _read(self, name: str, slot: int) -> Traced:
        self.slots[name] = Slot("%io", slot)
        return self.graph.input(name)

    def _joint(self, k: int, link: RigidLink) -> JointState:
        place = driver.BASE_RECORD + driver.JOINT_RECORD * k

        def read(field: int) -> Traced:
            return self._read(f"joint{k}.{field}", place + field)

        q: Any = read(driver.Q) * link.travel
        if not link.prismatic:
            q = SignedAngle(read(driver.COS), read(driver.SIN) * link.sign, q)
        return JointState(q, read(driver.V) * link.sign, read(driver.X) * link.sign)

    def _base(self, gravity: Vec) -> Base:
        if not self.free_base:
            return Base(gravity)
        values = [self._read(f"base{k}", k) for k in range(driver.BASE_RECORD)]
        return driver.moving_base(gravity, values)

    def operations(self) -> dict[str, int]:
        """Number of operations of each kind."""
        return self.graph.operations([value for _, value in self.outputs])


def module_ir(name: str, model: Model) -> str:
    """The whole module: kernel, driver, and the entry for single states."""
    trace, width = Trace(name, model), host().width
    writer = FunctionWriter(width)
    values = emit(writer, trace.graph, [value for _, value in trace.outputs], trace.slots)
    for (index, _), value in zip(trace.outputs, values, strict=True):
        writer.store(Slot("%results", index), value)
    body = (
        "define internal void @body(ptr noalias %io, ptr noalias %results, ptr %external, "
        + "ptr %arguments) {\nentry:\n"
        + "\n".join(writer.lines)
        + "\n  ret void\n}\n"
    )
    quantity = trace.quantity
    return "\n".join(
        [
            driver.declarations(width),
            body,
            Driver(width, quantity, model.free_base).write("@body"),
            *(driver.entry_ir(quantity, several) for several in (False, True)),
        ]
    )
