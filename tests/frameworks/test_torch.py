"""PyTorch: gradients, memory and errors."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import modurob as mr
from frameworks import cases
from modurob.compiler.routine import Routine
from modurob.interop import torch as bridge
from oracles import complains

torch = pytest.importorskip("torch")

SINGLE = 1e-4  # relative: float32 has 6e-8, and inputs are rounded before they are differentiated
SAME = 1e-12  # relative: the same formulas in another order
CUDA = torch.cuda.is_available()


def tensors(name: str, base: str, dtype=torch.float64, device: str = "cpu") -> list:
    arrays = cases.states(name, base)
    return [torch.tensor(x, dtype=dtype, device=device, requires_grad=True) for x in arrays]


def gradients(function, given: list) -> list[np.ndarray]:
    """Values, then gradients of a weighted sum of all of them."""
    found = function(*given)
    found = [found] if torch.is_tensor(found) else list(found)
    weights = [torch.linspace(-1, 1, x.numel()).reshape(x.shape).to(x) for x in found]
    total = sum((x * w).sum() for x, w in zip(found, weights, strict=True))
    results = [*found, *torch.autograd.grad(total, given)]
    return [x.detach().cpu().double().numpy() for x in results]


@pytest.mark.parametrize("base", cases.BASES)
@pytest.mark.parametrize("name", cases.NAMES)
def test_gradients_equal_differences(name, base):
    function = bridge.function(cases.model(base), name, **cases.options(name, base))
    assert torch.autograd.gradcheck(
        function,
        tensors(name, base),
        eps=cases.STEP,
        atol=cases.DIFFERENCES,
        rtol=cases.DIFFERENCES,
    )


@pytest.mark.parametrize("base", cases.BASES)
def test_batches_broadcast_and_single_precision_is_taken(base):
    function = bridge.function(cases.model(base), "inverse_dynamics")
    double, single = (
        gradients(function, tensors("inverse_dynamics", base, dtype))
        for dtype in (torch.float64, torch.float32)
    )
    for a, b in zip(double, single, strict=True):
        assert np.abs(a - b).max() < SINGLE * (1 + np.abs(a).max())
    q, v, a = tensors("inverse_dynamics", base)
    shared = a[0].detach().requires_grad_()
    whole = a[:1].detach().repeat(cases.STATES, 1).requires_grad_()
    function(q, v, shared).sum().backward()
    function(q, v, whole).sum().backward()
    np.testing.assert_allclose(shared.grad.numpy(), whole.grad.sum(0).numpy(), rtol=SAME, atol=SAME)
    assert function(q, v, a.double()).dtype == torch.float64
    assert function(q.float(), v.float(), a.float()).dtype == torch.float32


@pytest.mark.parametrize("base", cases.BASES)
def test_mapped_functions_are_those_of_batches(base):
    given = [torch.tensor(array) for array in cases.states("forward_dynamics", base)]
    function = bridge.function(cases.model(base), "forward_dynamics")
    q, v, tau = given
    found = torch.func.vmap(function, in_dims=(1, 0, None))(q.T, v, tau[0])
    assert torch.equal(found, function(q, v, tau[0]))
    slopes = torch.func.vmap(torch.func.jacrev(function))(q, v, tau)
    states = zip(q, v, tau, strict=True)
    alone = [torch.autograd.functional.jacobian(function, state)[0] for state in states]
    torch.testing.assert_close(slopes, torch.stack(alone), rtol=SAME, atol=SAME)


@pytest.mark.parametrize("base", cases.BASES)
def test_compiled_code_reads_and_writes_the_memory_of_tensors(base, monkeypatch):
    q, v, a = (x.detach() for x in tensors("inverse_dynamics", base))
    if base == "free":
        q[:, 3:7] /= q[:, 3:7].norm(dim=-1, keepdim=True)
    seen, run = [], Routine.batch

    def batch(self, *arrays):
        found = run(self, *arrays)
        seen.append([x.ctypes.data for x in (*arrays[:3], found)])
        return found

    monkeypatch.setattr(Routine, "batch", batch)
    tau = bridge.function(cases.model(base), "inverse_dynamics")(q, v, a)
    assert seen == [[x.data_ptr() for x in (q, v, a, tau)]]


@pytest.mark.parametrize("base", cases.BASES)
def test_the_step_of_the_gpu_is_the_step_of_the_cpu(base):
    model = cases.model(base)
    forward = bridge.function(model, "forward_dynamics")
    dt = min(cases.DT, 0.5 / (model.friction_rate.rate + 1e-9))
    own = bridge._step(torch, model, forward, dt)
    given = tensors("step", base)
    expected = gradients(bridge.function(model, "step", dt=dt), given)
    for a, b in zip(expected, gradients(own, given), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=SAME * (1 + np.abs(a).max()))


def test_friction_too_stiff_for_a_step_on_the_gpu_is_refused():
    with pytest.raises(mr.StateError, match=r"the friction of 'm.*' allows up to dt = "):
        bridge._step(torch, cases.model("fixed"), abs, cases.DT)


def test_mistakes_have_one_clear_line():
    model = cases.model("fixed")
    function = bridge.function(model, "inverse_dynamics")
    zero = torch.zeros(model.nv, dtype=torch.float64)
    with pytest.raises(mr.StateError, match="v of inverse_dynamics must be a tensor, got list"):
        function(zero, [0.0], zero)
    with pytest.raises(mr.StateError, match="q of inverse_dynamics is on meta"):
        function(zero.to("meta"), zero, zero)
    with pytest.raises(mr.StateError, match=r"all float64 or all float32, got .* a float16"):
        function(zero, zero, zero.half())
    with pytest.raises(mr.StateError, match=r"layout torch.sparse_coo: give a dense tensor"):
        function(zero.to_sparse(), zero, zero)
    with pytest.raises(mr.StateError, match="layout nested: give a dense tensor"):
        function(torch.nested.nested_tensor([zero], layout=torch.jagged), zero, zero)
    negated = (1j * torch.ones_like(zero)).conj().imag  # a view with a bit for the sign
    assert torch.equal(function(negated, zero, zero), function(-torch.ones_like(zero), zero, zero))
    q = zero.clone().requires_grad_()
    (slope,) = torch.autograd.grad(function(q, zero, zero).sum(), q, create_graph=True)
    with pytest.raises(mr.StateError, match="inverse_dynamics can be differentiated once"):
        slope.sum().backward()
    with pytest.raises(mr.StateError, match=r"q\[0\] is nan"):
        function(zero * np.nan, zero, zero)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch.func.jacfwd asks it
def test_derivatives_forward_are_refused():
    model = cases.model("fixed")
    zero = torch.zeros(model.nq, dtype=torch.float64)
    with pytest.raises(mr.StateError, match="center_of_mass is differentiated in reverse, once"):
        torch.func.jacfwd(bridge.function(model, "center_of_mass"))(zero)


def test_a_model_for_cuda_refuses_tensors_in_main_memory():
    zero, tier = torch.zeros(3), SimpleNamespace(dtype=np.dtype("float32"))
    text = "q of step is on cpu, the model on cuda: move the tensor with .to('cuda')"
    with complains(mr.StateError, text):
        bridge._rows(torch, "step", ("q", "v", "tau"), (3, 3, 3), tier, [zero] * 3)


# -- on a GPU --------------------------------------------------------------------------------------


@pytest.mark.skipif(not CUDA, reason="no NVIDIA GPU here")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("base", cases.BASES)
@pytest.mark.parametrize("name", cases.NAMES)
def test_a_gpu_gives_the_values_and_gradients_of_the_cpu(name, base, dtype):
    model, options = cases.model(base), cases.options(name, base)
    if name == "step":
        options = {"dt": min(cases.DT, 0.5 / (model.friction_rate.rate + 1e-9))}
    expected = gradients(bridge.function(model, name, **options), tensors(name, base))
    given = tensors(name, base, getattr(torch, dtype), "cuda")
    found = gradients(bridge.function(model.compile("cuda", dtype), name, **options), given)
    tolerance = 1e-9 if dtype == "float64" else 1e-3
    for a, b in zip(expected, found, strict=True):
        assert np.abs(a - b).max() < tolerance * (1 + np.abs(a).max())


@pytest.mark.skipif(not CUDA, reason="no NVIDIA GPU here")
def test_a_gpu_reads_the_memory_of_tensors_and_refuses_those_of_others(monkeypatch):
    from modurob.compiler.cuda import CudaTier

    model = cases.model("fixed").compile("cuda", "float64")
    function = bridge.function(model, "inverse_dynamics")
    given = [x.detach() for x in tensors("inverse_dynamics", "fixed", device="cuda")]
    seen, run = [], CudaTier.run

    def spy(self, name, *arrays):
        found = run(self, name, *arrays)
        seen.append([x.data.ptr for x in (*arrays, found)])
        return found

    monkeypatch.setattr(CudaTier, "run", spy)
    tau = function(*given)
    assert seen == [[x.data_ptr() for x in (*given, tau)]]
    with pytest.raises(mr.StateError, match="q of inverse_dynamics is on cpu, the model on cuda"):
        function(*(x.cpu() for x in given))
    with pytest.raises(mr.StateError, match="compiled with dtype float64 takes such tensors"):
        function(*(x.float() for x in given))
    with pytest.raises(mr.StateError, match="is on cuda:0, the model on cpu"):
        bridge.function(cases.model("fixed"), "inverse_dynamics")(*given)
