"""Reverse differentiation of traced code equals the exact derivatives of the recursions."""

from __future__ import annotations

import dataclasses
import math
import operator

import numpy as np
import pytest

import modurob as mr
from modurob.compiler.adjoint import Adjoint
from modurob.compiler.cuda import source
from modurob.compiler.fused import Trace
from modurob.compiler.statements import place_of
from modurob.compiler.trace import CONST, INPUT
from modurob.equations.quantities import QUANTITIES
from modurob.model.reference import reference
from modurob.spatial import so3

ROUNDING = 1e-11  # relative: some hundred operations in another order
OPERATIONS = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "neg": operator.neg,
    "sqrt": math.sqrt,
}


def evaluated(trace: Trace, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """The outputs of a trace, node by node."""
    values = {}
    for number in trace.graph.needed([value for _, value in trace.outputs]):
        op, a, b = trace.graph.nodes[number]
        if op == CONST:
            values[number] = a
        elif op == INPUT:
            place = place_of(trace.slots[a], trace.free_base)
            entry = arrays[place.array][place.entry]
            values[number] = getattr(math, place.function)(entry) if place.function else entry
        else:
            values[number] = OPERATIONS[op](*(values[k] for k in (a, b) if k is not None))
    found = np.zeros(trace.shape)
    for index, value in trace.outputs:
        found[index] = values[value.number]
    return found


def rough(base: str) -> mr.Model:
    """A body with springs and both kinds of friction; one that is fixed has a slide."""
    body = mr.examples.crab() if base == "free" else mr.examples.crane(l=0.5)
    model = body.model("physical", base=base)
    n = len(model.joint_names)
    arrays = {"viscous": np.full(n, 0.3), "coulomb": np.full(n, 0.2), "stiffness": np.full(n, 2.0)}
    fields = {"organism": None, "options": None, **arrays}
    return dataclasses.replace(model, **fields)


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_adjoint_equals_the_exact_derivatives(name, base):
    model, rng = rough(base), np.random.default_rng(3)
    q, (v, x, weights) = model.random_configuration(rng), rng.standard_normal((3, model.nv))
    arrays = {"q": q, "v": v, "x": x, "external": weights}
    adjoint = Adjoint(Trace(QUANTITIES[name], model))
    by_q, *others = np.split(evaluated(adjoint, arrays), [model.nq, model.nq + model.nv])
    if model.free_base:  # entries of q move the base by R and by quaternion products with w / 2
        axis, w = q[3:6], q[6]
        turn = np.vstack([so3.hat(axis) + w * np.eye(3), -axis]) / 2
        by_q = np.concatenate([by_q[:3] @ so3.from_quaternion(q[3:7]), by_q[3:7] @ turn, by_q[7:]])
    third = x if name == "inverse_dynamics" else reference(model, name, q, v, x)
    expected = weights @ reference(model, f"{name}_derivatives", q, v, third)
    tolerance = ROUNDING * np.abs(expected).max()
    np.testing.assert_allclose([by_q, *others], expected, rtol=0, atol=tolerance)


def test_the_gradient_of_inverse_dynamics_takes_at_most_four_times_its_operations():
    """The bound of reverse differentiation (Griewank and Walther 2008, section 3.3)."""
    trace = Trace(QUANTITIES["inverse_dynamics"], mr.examples.snake(10).model())
    operations = sum(trace.operations().values())
    assert sum(Adjoint(trace).operations().values()) <= 4 * operations


def test_the_cuda_text_reads_weights_and_writes_all_gradients():
    model = mr.examples.crab().model(base="free")
    text = source(Adjoint(Trace(QUANTITIES["inverse_dynamics"], model)), "float32")
    assert "external_all + state * 9" in text  # nv weights
    assert all(f"y[{k}] = " in text for k in range(10 + 9 + 9))
