"""Reverse differentiation of traced code: products of weights with the Jacobian of a quantity."""

from __future__ import annotations

import math

from modurob.compiler.emit_llvm import Slot
from modurob.compiler.fused import Trace
from modurob.compiler.statements import place_of
from modurob.compiler.trace import CONST, INPUT, Traced
from modurob.equations.passes import Passes


class Weighted(Passes):
    """Stands for the passes of a gradient: it reads the array of external wrenches."""

    external = True


class Adjoint(Trace):
    """The gradient of the weighted sum of a quantity's numbers, as a trace of its own.

    The weights are read where a trace reads external wrenches. The result holds the derivatives by
    the entries of q, then v, then the third input, as many as the quantity has; a free base's
    quaternion counts as four independent numbers, in the code's polynomials.

    Attributes:
        wrenches: Number of weights; the other attributes are as in `Trace`.
    """

    def __init__(self, trace: Trace) -> None:
        self.graph, self.free_base, self.joints = trace.graph, trace.free_base, trace.joints
        self.kept = []
        self.slots, self.wrenches = dict(trace.slots), math.prod(trace.shape)
        nq, nv = (self.joints + 7, self.joints + 6) if self.free_base else [self.joints] * 2
        first = {"q": 0, "v": nq, "x": nq + nv}
        self.shape = (nq + nv * (len(trace.quantity.inputs) - 1),)
        self.quantity = trace.quantity._replace(result=self.shape, passes=Weighted)
        gradient = [self.graph.constant(0.0)] * self.shape[0]
        places = {name: place_of(slot, self.free_base) for name, slot in trace.slots.items()}
        names = {place: name for name, place in places.items()}
        for name, slope in self._slopes(trace).items():
            place = places[name]
            if place.function == "sin":  # an input of its own, computed from the entry
                slope = slope * self.graph.input(names[place._replace(function="cos")])
            elif place.function == "cos":
                slope = -slope * self.graph.input(names[place._replace(function="sin")])
            gradient[first[place.array] + place.entry] += slope
        self.outputs = list(enumerate(gradient))

    def _slopes(self, trace: Trace) -> dict[str, Traced]:
        """Derivative by each input, from the results backward."""
        graph, slopes = self.graph, {}

        def add(number: int, slope: Traced) -> None:
            slopes[number] = slopes[number] + slope if number in slopes else slope

        for index, value in trace.outputs:
            name = f"weight{index}"
            self.slots[name] = Slot("%external", index)
            add(value.number, graph.input(name))
        found = {}
        for number in reversed(graph.needed([value for _, value in trace.outputs])):
            op, a, b = graph.nodes[number]
            slope = slopes.get(number)
            if op == CONST or slope is None:
                continue
            if op == INPUT:
                found[a] = slope
                continue
            own, left = self._node(number), self._node(a)
            if op == "neg":
                add(a, -slope)
            elif op == "sqrt":
                add(a, slope * 0.5 / own)
            elif op == "div":
                quotient = slope / self._node(b)
                add(a, quotient)
                add(b, -(quotient * own))
            elif op == "mul":
                add(a, slope * self._node(b))
                add(b, slope * left)
            else:
                assert op in ("add", "sub"), op  # quantities without points have no others
                add(a, slope)
                add(b, slope if op == "add" else -slope)
        return found

    def _node(self, number: int) -> Traced:
        op, a, _ = self.graph.nodes[number]
        return Traced(self.graph, number, a if op == CONST else None)
