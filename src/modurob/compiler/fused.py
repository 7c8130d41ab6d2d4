"""The fused tier: the whole recursion of one organism as straight-line code.

Every number of the organism is a constant, so zeros and ones vanish and common products are shared
across links. It is faster than the table and has to be compiled for each body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from modurob.compiler import driver
from modurob.compiler.driver import Driver, Shape
from modurob.compiler.emit_llvm import Slot, Writer, emit
from modurob.compiler.jit import host
from modurob.compiler.kernels import SignedAngle
from modurob.compiler.trace import Graph, Traced, lifted
from modurob.equations import forward_dynamics as aba
from modurob.equations import inverse_dynamics as rnea
from modurob.equations import mass_matrix as crba
from modurob.equations.links import Link
from modurob.equations.vectors import Vec, vec


class Trace:
    """One algorithm traced for one organism."""

    def __init__(
        self, links: Sequence[Link], sign: np.ndarray, gravity: np.ndarray, free_base: bool
    ) -> None:
        self.graph = Graph()
        self.links, self.free_base = links, free_base
        self.sign, self.world_gravity = sign.tolist(), gravity
        self.slots: dict[str, Slot] = {}
        self.outputs: list[tuple[Slot, Traced]] = []

    def _read(self, name: str, slot: int) -> Traced:
        self.slots[name] = Slot("%io", slot)
        return self.graph.input(name)

    def _joint(self, k: int, field: int) -> Traced:
        return self._read(f"joint{k}.{field}", _place(k, field))

    def joints(self, field: int) -> list[Traced]:
        return [self._joint(k, field) * sign for k, sign in enumerate(self.sign)]

    def displacements(self) -> list[Any]:
        return [
            self._joint(k, driver.Q) * sign
            if self.links[k + 1].prismatic
            else SignedAngle(self._joint(k, driver.COS), self._joint(k, driver.SIN) * sign)
            for k, sign in enumerate(self.sign)
        ]

    def base(self, start: int, count: int) -> list[Traced]:
        return [self._read(f"base{start + k}", start + k) for k in range(count)]

    def gravity(self) -> Vec:
        if not self.free_base:
            return vec(self.world_gravity)
        return rnea.in_base(self.base(driver.BASE_Q + 3, 4), vec(self.world_gravity))

    def give(self, joints: Sequence[Any], base: Sequence[Any]) -> None:
        for k, (value, sign) in enumerate(zip(joints, self.sign, strict=True)):
            result = lifted(self.graph, [value * sign])[0]
            self.outputs.append((Slot("%io", _place(k, driver.Y)), result))
        if self.free_base:
            for k, value in enumerate(lifted(self.graph, base)):
                self.outputs.append((Slot("%io", driver.BASE_Y + k), value))

    def give_matrix(self, rows: Sequence[Sequence[Any]]) -> None:
        sign = [1] * (6 if self.free_base else 0) + self.sign
        for i, row in enumerate(rows):
            for j, value in enumerate(row):
                result = lifted(self.graph, [value * (sign[i] * sign[j])])[0]
                if result.value != 0:  # the driver has cleared the matrix
                    self.outputs.append((Slot("%states", i * len(rows) + j), result))

    def operations(self) -> dict[str, int]:
        """How much arithmetic is left."""
        return self.graph.operations([value for _, value in self.outputs])


def _place(joint: int, field: int) -> int:
    return driver.BASE_RECORD + driver.JOINT_RECORD * joint + field


def _inverse_dynamics(t: Trace) -> None:
    v, a = t.joints(driver.V), t.joints(driver.X)
    if t.free_base:
        twist, rate = t.base(driver.BASE_V, 6), t.base(driver.BASE_X, 6)
        base = rnea.base_motion(twist, rate, t.gravity())
    else:
        base = rnea.resting_base(t.gravity())
    tau, wrench = rnea.inverse_dynamics(t.links, t.displacements(), v, a, base)
    t.give(tau, [*wrench.f, *wrench.n])


def _forward_dynamics(t: Trace) -> None:
    twist = t.base(driver.BASE_V, 6) if t.free_base else None
    wrench = t.base(driver.BASE_X, 6) if t.free_base else None
    v, tau = t.joints(driver.V), t.joints(driver.X)
    a, rate = aba.forward_dynamics(t.links, t.displacements(), v, tau, t.gravity(), twist, wrench)
    t.give(a, rate)


def _mass_matrix(t: Trace) -> None:
    t.give_matrix(crba.mass_matrix(t.links, t.displacements(), t.free_base))


ALGORITHMS: dict[str, tuple[Shape, Callable[[Trace], None]]] = {
    "inverse_dynamics": (Shape(v=True, x=True), _inverse_dynamics),
    "forward_dynamics": (Shape(v=True, x=True), _forward_dynamics),
    "mass_matrix": (Shape(v=False, x=False, matrices=1), _mass_matrix),
}


def traced(
    name: str, links: Sequence[Link], sign: np.ndarray, gravity: np.ndarray, free_base: bool
) -> Trace:
    """Run an algorithm's equations on traced scalars."""
    trace = Trace(links, sign, gravity, free_base)
    ALGORITHMS[name][1](trace)
    return trace


def module_ir(
    name: str, links: Sequence[Link], sign: np.ndarray, gravity: np.ndarray, free_base: bool
) -> str:
    """The whole module: kernel, driver, and the entry for single states."""
    trace, width = traced(name, links, sign, gravity, free_base), host().width
    writer = Writer(width)
    values = emit(writer, trace.graph, [value for _, value in trace.outputs], trace.slots)
    for (slot, _), value in zip(trace.outputs, values, strict=True):
        writer.store(slot, value)
    body = (
        "define internal void @body(ptr noalias %io, ptr noalias %states, ptr %external, "
        + "ptr %arguments) {\nentry:\n"
        + "\n".join(writer.lines)
        + "\n  ret void\n}\n"
    )
    shape = ALGORITHMS[name][0]
    return "\n".join(
        [
            driver.declarations(width),
            body,
            Driver(width, shape, free_base).write("@body"),
            *(driver.entry_ir(shape, several) for several in (False, True)),
        ]
    )


def workspace_vectors(name: str, joints: int, free_base: bool) -> int:
    """Vectors of workspace that a fused driver needs."""
    nv = joints + (6 if free_base else 0)
    io = driver.BASE_RECORD + driver.JOINT_RECORD * joints + driver.EXTERNAL * (joints + 1)
    return io + ALGORITHMS[name][0].matrices * nv * nv
