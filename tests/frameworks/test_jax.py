"""JAX: derivatives, transformations, memory and errors."""

from __future__ import annotations

import numpy as np
import pytest

import modurob as mr
from frameworks import cases
from modurob.interop import jax as bridge
from modurob.interop.differentiable import DifferentiableFunction

jax = pytest.importorskip("jax")
jnp = jax.numpy

SINGLE = 1e-4  # relative: float32 has 6e-8, and inputs are rounded before they are differentiated


@pytest.fixture(autouse=True)
def double_precision():
    """On the CPU, where there is a GPU, too."""
    with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
        yield


@pytest.mark.parametrize("base", cases.BASES)
@pytest.mark.parametrize("name", cases.NAMES)
def test_derivatives_equal_differences_forward_and_in_reverse(name, base):
    from jax.test_util import check_grads

    function = bridge.function(cases.model(base), name, **cases.options(name, base))
    arrays = [jnp.asarray(x) for x in cases.states(name, base)]
    bound = DifferentiableFunction(cases.model(base), name, cases.options(name, base))
    values = jax.tree.leaves(jax.jit(function)(*arrays))
    for found, expected in zip(values, bound.value(*map(np.asarray, arrays)), strict=True):
        np.testing.assert_array_equal(found, expected)
    check_grads(function, arrays, 1, eps=cases.STEP, atol=cases.DIFFERENCES, rtol=cases.DIFFERENCES)


def test_jit_vmap_grad_and_scan_fit_together():
    model = cases.model("free")
    step = bridge.function(model, "step", dt=cases.DT)
    q, v, tau = (jnp.asarray(x) for x in cases.states("step", "free"))

    def loss(tau, q, v):
        (q, v), _ = jax.lax.scan(lambda x, _: (step(*x, tau), None), (q, v), length=3)
        return jnp.sum(q**2) + jnp.sum(v**2)

    each = jax.jit(jax.vmap(jax.grad(loss)))(tau, q, v)
    for k in range(cases.STATES):
        np.testing.assert_allclose(each[k], jax.grad(loss)(tau[k], q[k], v[k]), rtol=1e-9)


def test_single_precision_is_taken():
    function = bridge.function(cases.model("fixed"), "forward_dynamics")
    arrays = cases.states("forward_dynamics", "fixed")
    double, single = (
        jax.grad(lambda q, *rest: function(q, *rest).sum())(
            *(jnp.asarray(x, dtype) for x in arrays)
        )
        for dtype in (jnp.float64, jnp.float32)
    )
    assert single.dtype == jnp.float32
    assert np.abs(double - single).max() < SINGLE * (1 + np.abs(double).max())


def test_compiled_code_reads_the_buffers_of_arrays(monkeypatch):
    seen, value = [], DifferentiableFunction.value

    def spy(self, *arrays):
        seen.append([x.ctypes.data for x in arrays])
        return value(self, *arrays)

    monkeypatch.setattr(DifferentiableFunction, "value", spy)
    function = jax.jit(bridge.function(cases.model("fixed"), "inverse_dynamics"))
    arrays = [jnp.asarray(x) for x in cases.states("inverse_dynamics", "fixed")]
    function(*arrays).block_until_ready()
    assert seen == [[x.unsafe_buffer_pointer() for x in arrays]]


def test_programs_on_other_devices_call_back(monkeypatch):
    """The branch of GPUs, taken on the CPU where there is none."""
    model, arrays = cases.model("free"), cases.states("step", "free")
    gpus = [each for each in jax.devices() if each.platform != "cpu"]
    if not gpus:
        branch = jax.lax.platform_dependent

        def elsewhere(*given, cpu, default):
            return branch(*given, default=default)

        monkeypatch.setattr(jax.lax, "platform_dependent", elsewhere)
    step = bridge.function(model, "step", dt=cases.DT)
    with jax.default_device((gpus or jax.devices())[0]):
        given = [jnp.asarray(x) for x in arrays]
        found = jax.jit(jax.grad(lambda *x: step(*x)[0].sum() + step(*x)[1].sum()))(*given)
    bound = DifferentiableFunction(model, "step", {"dt": cases.DT})
    weights = [np.ones_like(x) for x in bound.value(*arrays)]
    expected = bound.pullback(arrays, weights)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_an_error_of_ours_is_raised_by_jax(monkeypatch):
    def fails(self, *arrays):
        raise RuntimeError("a defect")

    monkeypatch.setattr(DifferentiableFunction, "value", fails)
    function = bridge.function(cases.model("fixed"), "center_of_mass")
    with pytest.raises(Exception, match="RuntimeError: a defect"):
        function(jnp.zeros(cases.model("fixed").nq)).block_until_ready()


def test_mistakes_have_one_clear_line():
    model = cases.model("fixed")
    function = bridge.function(model, "inverse_dynamics")
    zero = jnp.zeros(model.nv)
    with pytest.raises(mr.StateError, match="all float64 or all float32, got q int"):
        function(jnp.zeros(model.nv, int), zero, zero)
    with pytest.raises(mr.StateError, match=r"v of inverse_dynamics has shape \(2,\)"):
        function(zero, jnp.zeros(2), zero)
    with pytest.raises(mr.StateError, match="inverse_dynamics can be differentiated once"):
        jax.hessian(lambda q: function(q, zero, zero).sum())(zero)
    assert np.isnan(function(zero * np.nan, zero, zero)).all()
    rows = jax.vmap(function, (0, None, None))(jnp.stack([zero * np.nan, zero]), zero, zero)
    assert np.isnan(rows[0]).all()
    assert (rows[1] == function(zero, zero, zero)).all()
    with pytest.raises(mr.StateError, match="takes a model such as"):
        bridge.function(mr.examples.crab(), "inverse_dynamics")  # pyright: ignore
