"""CasADi: Jacobians, Hessians, memory and errors."""

from __future__ import annotations

import numpy as np
import pytest

import modurob as mr
from frameworks import cases
from modurob.interop import casadi as bridge
from modurob.interop.differentiable import DifferentiableFunction

casadi = pytest.importorskip("casadi")

ROUNDING = 1e-11  # relative: some hundred operations in another order


def columns(array: np.ndarray) -> np.ndarray:
    """Arrays of states (states, n) or (states, rows, columns) as CasADi has them."""
    if array.ndim == 2:
        return array.T
    return np.concatenate(list(array), axis=1)


@pytest.mark.parametrize("base", cases.BASES)
@pytest.mark.parametrize("name", cases.NAMES)
def test_values_are_the_models_and_jacobians_equal_differences(name, base):
    model, options = cases.model(base), cases.options(name, base)
    arrays = cases.states(name, base)
    function = bridge.function(model, name, states=cases.STATES, **options)
    given = [columns(x) for x in arrays]
    found = function.call([casadi.DM(x) for x in given])
    for a, b in zip(
        found, DifferentiableFunction(model, name, options).value(*arrays), strict=True
    ):
        np.testing.assert_array_equal(np.array(a), columns(b))
    jacobians = function.jacobian().call([casadi.DM(x) for x in given] + found)
    blocks = np.array_split(np.arange(len(jacobians)), len(found))
    for k, array in enumerate(given):
        for entry in range(array.size):
            change = np.zeros(array.size)
            change[entry] = cases.STEP
            change = change.reshape(array.shape, order="F")
            above, below = (
                function.call([*given[:k], array + sign * change, *given[k + 1 :]])
                for sign in (1, -1)
            )
            for row, a, b in zip(blocks, above, below, strict=True):
                J = np.array(casadi.DM(jacobians[row[k]]))
                slope = np.array(casadi.vec(a - b)).ravel() / (2 * cases.STEP)
                off = np.abs(J[:, entry] - slope).max()
                assert off < cases.DIFFERENCES * (1 + np.abs(J).max()), (k, entry)


@pytest.mark.parametrize("base", cases.BASES)
@pytest.mark.parametrize("name", bridge.GRAPHS)
def test_a_graph_equals_the_compiled_function_in_values_and_jacobians(name, base):
    model, options = cases.model(base), cases.options(name, base)
    given = [casadi.DM(x[1]) for x in cases.states(name, base)]
    compiled, graph = (make(model, name, **options) for make in (bridge.function, bridge.graph))
    results = compiled.call(given)
    pairs = zip(results, graph.call(given), strict=True)
    jacobians = (f.jacobian().call(given + results) for f in (compiled, graph))
    for a, b in (*pairs, *zip(*jacobians, strict=True)):
        a, b = np.array(casadi.DM(a)), np.array(casadi.DM(b))
        np.testing.assert_allclose(a, b, rtol=0, atol=ROUNDING * (1 + np.abs(a).max()))


def test_second_derivatives_of_a_graph_equal_differences_of_first_ones():
    graph = bridge.graph(cases.model("free"), "forward_dynamics")
    q, v, tau = (x[1] for x in cases.states("forward_dynamics", "free"))
    x = casadi.SX.sym("q", len(q))
    total = casadi.sum1(graph(x, v, tau) ** 2)
    H, g = casadi.hessian(total, x)
    hessian, slope = casadi.Function("H", [x], [H]), casadi.Function("g", [x], [g])
    H = np.array(hessian(q))
    for k, change in enumerate(cases.STEP * np.eye(len(q))):
        expected = np.array(slope(q + change) - slope(q - change)).ravel() / (2 * cases.STEP)
        assert np.abs(H[k] - expected).max() < cases.DIFFERENCES * np.abs(H).max()


def test_compiled_code_reads_the_memory_of_casadi(monkeypatch):
    seen, value = [], DifferentiableFunction.value

    def spy(self, *arrays):
        seen.append([x.ctypes.data for x in arrays])
        return value(self, *arrays)

    monkeypatch.setattr(DifferentiableFunction, "value", spy)
    function = bridge.function(cases.model("fixed"), "inverse_dynamics")
    buffer, evaluate = function.buffer()
    given = [np.ascontiguousarray(x[0]) for x in cases.states("inverse_dynamics", "fixed")]
    for k, array in enumerate(given):
        buffer.set_arg(k, memoryview(array))
    tau = np.zeros(len(given[1]))
    buffer.set_res(0, memoryview(tau))
    evaluate()
    assert seen == [[x.ctypes.data for x in given]]
    np.testing.assert_array_equal(tau, cases.model("fixed").inverse_dynamics(*given))


def test_inputs_that_casadi_leaves_out_are_zeros():
    model = cases.model("fixed")
    function = bridge.function(model, "inverse_dynamics")
    buffer, evaluate = function.buffer()
    tau = np.zeros(model.nv)
    buffer.set_res(0, memoryview(tau))
    evaluate()
    np.testing.assert_array_equal(tau, model.gravity_torque(np.zeros(model.nq)))
    rigid = bridge.function(mr.Organism.start("backbone").model(), "center_of_mass")
    assert np.array(rigid(casadi.DM(0, 1))).shape == (3, 1)  # q of a body without joints


def test_functions_outlive_the_names_that_they_had():
    def gravity(q):
        model = cases.model("fixed")
        zero = np.zeros(model.nv)
        return bridge.function(model, "inverse_dynamics")(q, zero, zero)

    q = casadi.MX.sym("q", cases.model("fixed").nq)
    found = casadi.Function("gravity", [q], [casadi.jacobian(gravity(q), q)])
    assert np.isfinite(np.array(found(0.1))).all()


def test_mistakes_have_one_clear_line():
    model = cases.model("fixed")
    with pytest.raises(mr.StateError, match="states must be a whole number of 1 or more, got 0"):
        bridge.function(model, "inverse_dynamics", states=0)
    with pytest.raises(mr.StateError, match="step is not there as a graph"):
        bridge.graph(model, "step", dt=0.1)
    with pytest.raises(mr.StateError, match="forward dynamics is singular"):
        bridge.graph(mr.examples.crane().model(), "forward_dynamics")
    function = bridge.function(model, "inverse_dynamics")
    assert np.isnan(np.array(function(np.nan, 0, 0))).all()
    q = np.zeros((model.nq, 2))
    q[:, 1] = np.nan
    found = np.array(bridge.function(model, "inverse_dynamics", states=2)(q, 0, 0))
    assert (found[:, :1] == np.array(function(0, 0, 0))).all()
    assert np.isnan(found[:, 1]).all()
    q = casadi.MX.sym("q", model.nq)
    with pytest.raises(RuntimeError, match=r"inverse_dynamics can be differentiated once: .*IPOPT"):
        casadi.hessian(casadi.sumsqr(function(q, 0, 0)), q)
