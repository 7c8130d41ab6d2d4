"""The CUDA source, compiled as plain C++ with one 'thread' after the other, equals the model.

This needs no GPU: only `sincos`, the thread numbers and the `__global__` words are CUDA's.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import modurob as mr
from modurob.compiler import cuda
from modurob.compiler.fused import Trace
from modurob.equations.quantities import QUANTITIES
from modurob.model.reference import reference

COMPILER = shutil.which("g++") or shutil.which("clang++")
DOUBLE = 1e-12  # relative: another order of additions, fused or not
SINGLE = 2e-4  # relative: float32 has 6e-8, and some hundred operations a joint
STATES = 7

SHIM = """
#include <cmath>
#define __global__
#define __restrict__
struct Index { long long x; };
static Index blockIdx = {0}, blockDim = {1}, threadIdx = {0};
static void sincos(float a, float* s, float* c) { *s = std::sin(a); *c = std::cos(a); }
using std::sqrt;
"""
LOOP = """
extern "C" void all(long long n, const real* q, const real* v, const real* x, real* y) {
  for (blockIdx.x = 0; blockIdx.x < n; blockIdx.x++) modurob_kernel(n, q, v, x, y);
}
"""

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on this machine")


def as_cpp(name: str, model: mr.Model, dtype: str, folder):
    trace = Trace(QUANTITIES[name], model)
    text = SHIM + cuda.source(trace, dtype) + LOOP
    (folder / "kernel.cpp").write_text(text, encoding="utf-8")
    library = folder / f"{name}_{dtype}_{model.nv}.so"
    command = [COMPILER, "-O0", "-shared", "-fPIC", "-o", str(library), "kernel.cpp"]
    subprocess.run(command, cwd=folder, check=True)
    function = ctypes.CDLL(str(library)).all

    def run(q, v, x):
        arrays = [np.ascontiguousarray(part, dtype=dtype) for part in (q, v, x)]
        y = np.zeros((len(q), *trace.shape), dtype=dtype)
        pointers = [ctypes.c_void_p(part.ctypes.data) for part in (*arrays, y)]
        function(ctypes.c_longlong(len(q)), *pointers)
        return y

    return run


@pytest.mark.parametrize(
    ("organism", "base", "dtype"),
    [(mr.examples.crab(), "free", "float64"), (mr.examples.nine(), "fixed", "float32"),
     (mr.examples.arm(), "fixed", "float64")],
    ids=["free crab", "nine", "arm"],
)  # fmt: skip
def test_cuda_source_computes_what_the_model_computes(organism, base, dtype, tmp_path):
    rng = np.random.default_rng(0)
    model = organism.model("physical", base=base)
    q = np.array([model.random_configuration(rng) for _ in range(STATES)])
    v, a = rng.standard_normal((2, STATES, model.nv))
    tau = model.inverse_dynamics(q, v, a)
    speed = np.abs(v).max() * np.abs(model.mass_matrix(q)).max()
    given = {"q": q, "v": v, "a": a, "tau": tau}
    for name, quantity in QUANTITIES.items():
        if not quantity.straight_line:
            continue
        inputs = [given[each] for each in quantity.inputs]
        arguments, wanted = [*inputs, v, v][:3], reference(model, name, *inputs)
        found = as_cpp(name, model, dtype, tmp_path)(*arguments)
        scale = np.abs(wanted).max()
        if name == "coriolis_matrix":
            scale = max(scale, speed)  # its terms cancel, to zero in some bodies
        allowed = DOUBLE if dtype == "float64" else SINGLE
        if name == "forward_dynamics":  # solving loses what the mass matrix's condition says
            allowed *= np.linalg.cond(model.mass_matrix(q)).max()
        assert np.abs(found - wanted).max() <= allowed * scale, name


@pytest.fixture
def cuda_in_cpp(monkeypatch, tmp_path):
    """NumPy in CuPy's place; kernels are compiled as C++ and run one 'thread' after the other."""

    class Kernel:
        def __init__(self, text, name):
            path = tmp_path / f"{len(list(tmp_path.iterdir()))}.cpp"
            count = text[: text.index("{")].count("const real*")
            names = ", ".join(f"p{k}" for k in range(count))
            given = ", ".join(f"const real* p{k}" for k in range(count))
            loop = f"for (blockIdx.x = 0; blockIdx.x < n; blockIdx.x++) {name}(n, {names}, y);"
            text += f'extern "C" void all(long long n, {given}, real* y) {{ {loop} }}'
            path.write_text(SHIM + text, encoding="utf-8")
            library = path.with_suffix(".so")
            command = [COMPILER, "-O0", "-shared", "-fPIC", "-o", str(library), str(path)]
            subprocess.run(command, check=True)
            self._run = ctypes.CDLL(str(library)).all

        def __call__(self, grid, block, arguments):
            count, *arrays = arguments
            pointers = [ctypes.c_void_p(each.ctypes.data) for each in arrays]
            self._run(ctypes.c_longlong(int(count)), *pointers)

    names = ("asarray", "ascontiguousarray", "broadcast_to", "zeros", "empty")
    fake = SimpleNamespace(RawKernel=Kernel, **{name: getattr(np, name) for name in names})
    monkeypatch.setattr(cuda, "cupy", lambda: fake)


@pytest.mark.usefixtures("cuda_in_cpp")
def test_external_wrenches_act_on_cuda_as_on_the_cpu():
    model, rng = mr.examples.snake(3).model("physical", base="free"), np.random.default_rng(3)
    on_cuda = model.compile(target="cuda")
    q = np.array([model.random_configuration(rng) for _ in range(STATES)])
    v, x = rng.standard_normal((2, STATES, model.nv))
    external = {"m2": rng.standard_normal((STATES, 6)), "m1": np.ones(6), 0: np.arange(6.0)}
    for given in (external, {}, None):
        wanted = model.forward_dynamics(q, v, x, given)
        found = on_cuda.forward_dynamics(q, v, x, given)
        assert np.abs(found - wanted).max() <= 1e-10 * np.abs(wanted).max()
    with pytest.raises(mr.StateError, match=r"external wrench has shape \(3,\), expected"):
        on_cuda.inverse_dynamics(q, v, x, {"m2": np.ones(3)})
    with pytest.raises(mr.StateError, match="leave external out"):
        on_cuda.dynamics.quantity("mass_matrix", q, external=external)


def test_cuda_without_cupy_or_gpu_says_what_is_missing():
    try:
        import cupy  # noqa: F401
    except ImportError:
        with pytest.raises(mr.StateError, match=r"modurob\[cuda\]"):
            mr.examples.crab().model().compile(target="cuda")
    else:
        pytest.skip("CuPy is installed")


def test_cupy_is_used_only_where_there_is_a_gpu(monkeypatch):
    class NoGpu(Exception):
        pass

    def count():
        if not gpus:
            raise NoGpu("no CUDA-capable device is detected")
        return len(gpus)

    gpus = ["H200"]
    runtime = SimpleNamespace(getDeviceCount=count, CUDARuntimeError=NoGpu)
    fake = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))
    monkeypatch.setitem(sys.modules, "cupy", fake)
    assert cuda.cupy() is fake
    gpus.clear()
    with pytest.raises(mr.StateError, match="needs an NVIDIA GPU: no CUDA-capable device"):
        cuda.cupy()


@pytest.mark.parametrize(("target", "dtype"), [("tpu", "float64"), ("cpu", "float32")])
def test_unknown_target_or_dtype_lists_the_choices(target, dtype):
    with pytest.raises(mr.StateError, match="must be one of"):
        mr.examples.crab().model().compile(target=target, dtype=dtype)


@pytest.fixture
def on_cuda(monkeypatch):
    """A model compiled for a GPU that is not there: nothing may run on it."""
    monkeypatch.setattr(cuda, "cupy", lambda: np)
    return mr.examples.crab().model("physical").compile(target="cuda")


def test_jacobians_and_the_closed_form_of_a_model_on_cuda_come_from_the_cpu(on_cuda):
    model, rng = mr.examples.crab().model("physical"), np.random.default_rng(0)
    q, v = rng.standard_normal((2, 4, model.nv))
    for frame in ("body", "world", "aligned"):
        np.testing.assert_array_equal(
            on_cuda.jacobian(q, "m5", frame), model.jacobian(q, "m5", frame)
        )
        np.testing.assert_array_equal(
            on_cuda.jacobian_rate(q, v, "m5", frame), model.jacobian_rate(q, v, "m5", frame)
        )
    np.testing.assert_array_equal(on_cuda.closed_form(q, v).C, model.closed_form(q, v).C)


@pytest.mark.parametrize(
    "call",
    [
        lambda m, q: m.inverse_dynamics_derivatives(q, q, q),
        lambda m, q: m.step(q, q, q, 0.1),
        lambda m, q: m.prepare("mass_matrix"),
    ],
)
def test_what_is_not_on_cuda_is_refused_in_one_line(on_cuda, call):
    with pytest.raises(mr.StateError, match=r"not there on target 'cuda'; it has .*mass_matrix"):
        call(on_cuda, np.zeros(on_cuda.nv))
