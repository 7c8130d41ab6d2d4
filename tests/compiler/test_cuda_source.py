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
from modurob.dynamics import best_target
from modurob.equations.quantities import QUANTITIES
from modurob.interop.differentiable import DifferentiableFunction
from modurob.model.reference import reference

COMPILER = shutil.which("g++") or shutil.which("clang++")
DOUBLE = 1e-12  # relative: another order of additions, fused or not
SINGLE = 2e-4  # relative: float32 has 6e-8, and some hundred operations a joint
STATES = 7

SHIM = """
#include <cmath>
#define __global__
#define __device__
#define __restrict__
struct Index { long long x; };
extern "C" { Index blockIdx = {0}, blockDim = {1}, threadIdx = {0}; }
static void sincos(float a, float* s, float* c) { *s = std::sin(a); *c = std::cos(a); }
using std::sqrt;
"""
LOOP = """
extern "C" void all_{0}(long long n, const real* q, const real* v, const real* x, real* y) {{
  for (blockIdx.x = 0; blockIdx.x < n; blockIdx.x++) {0}(n, q, v, x, y);
}}
"""

C_TYPES = {np.int32: ctypes.c_int, np.int64: ctypes.c_longlong, np.float64: ctypes.c_double}

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on this machine")


def as_cpp(model: mr.Model, dtype: str, folder):
    """Functions of all quantities: one source, since most of g++'s time goes into headers."""
    traces = {n: Trace(each, model) for n, each in QUANTITIES.items() if each.straight_line}
    kernels = [
        cuda.source(trace, dtype).replace("modurob_kernel", name) + LOOP.format(name)
        for name, trace in traces.items()
    ]
    (folder / "kernels.cpp").write_text(SHIM + "".join(kernels), encoding="utf-8")
    command = [COMPILER, "-O0", "-shared", "-fPIC", "-o", "kernels.so", "kernels.cpp"]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "kernels.so"))

    def run(name, q, v, x):
        arrays = [np.ascontiguousarray(part, dtype=dtype) for part in (q, v, x)]
        y = np.zeros((len(q), *traces[name].shape), dtype=dtype)
        pointers = [ctypes.c_void_p(part.ctypes.data) for part in (*arrays, y)]
        library[f"all_{name}"](ctypes.c_longlong(len(q)), *pointers)
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
    given, run = {"q": q, "v": v, "a": a, "tau": tau}, as_cpp(model, dtype, tmp_path)
    for name, quantity in QUANTITIES.items():
        if not quantity.straight_line:
            continue
        inputs = [given[each] for each in quantity.inputs]
        arguments, wanted = [*inputs, v, v][:3], reference(model, name, *inputs)
        found = run(name, *arguments)
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
            path.write_text(SHIM + text, encoding="utf-8")
            library = path.with_suffix(".so")
            command = [COMPILER, "-O0", "-shared", "-fPIC", "-o", str(library), str(path)]
            subprocess.run(command, check=True)
            loaded = ctypes.CDLL(str(library))
            self._run = getattr(loaded, name)
            self._state = ctypes.c_longlong.in_dll(loaded, "blockIdx")

        def compile(self):
            fake.compiled += 1

        def __call__(self, grid, block, arguments):
            arrays = [each for each in arguments if isinstance(each, np.ndarray)]
            fake.launched = [each.ctypes.data for each in arrays]
            given = [
                ctypes.c_void_p(each.ctypes.data) if isinstance(each, np.ndarray)
                else C_TYPES[type(each)](each)
                for each in arguments
            ]  # fmt: skip
            for self._state.value in range(int(arguments[0])):
                self._run(*given)

    names = ("asarray", "ascontiguousarray", "broadcast_to", "zeros", "empty")
    fake = SimpleNamespace(RawKernel=Kernel, **{name: getattr(np, name) for name in names})
    fake.ndarray, fake.from_dlpack, fake.compiled = GpuArray, lambda array: array.array, 0
    fake.asarray = lambda *given, **options: np.asarray(*given, **options).view(GpuArray)
    fake.empty, fake.zeros = (
        lambda shape, dtype, value=value: np.full(shape, value, dtype).view(GpuArray)
        for value in (np.nan, 0.0)  # memory may hold anything
    )
    monkeypatch.setattr(cuda, "cupy", lambda: fake)
    return fake


class GpuArray(np.ndarray):
    """In CuPy's place: a class of its own, so that arrays of NumPy are told apart."""


class Foreign:
    """An array of another library: only DLPack leads to its memory."""

    def __init__(self, array, device=2, refuse=False):
        self.array, self.device, self.refuse = array, device, refuse

    def __dlpack_device__(self):
        if self.refuse:
            raise BufferError("this tensor requires a gradient")
        return self.device, 0

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)


@pytest.fixture
def pendulum():
    """Model, the same on the GPU, q, v and x."""
    model, rng = mr.examples.snake(3).model("physical"), np.random.default_rng(3)
    arrays = [x.copy().view(GpuArray) for x in rng.standard_normal((3, STATES, model.nv))]
    return model, model.compile(target="cuda"), arrays


def test_a_prepared_call_reads_and_writes_in_place(cuda_in_cpp, pendulum):
    """Addresses that reach the kernel are those of the caller, and it sees changed numbers."""
    model, on_cuda, (q, v, a) = pendulum
    out = np.full((STATES, model.nv), np.nan).view(GpuArray)
    call = on_cuda.prepare("inverse_dynamics", STATES, out=Foreign(out))
    assert cuda_in_cpp.compiled == 1  # not in the first call
    assert np.all(out == 0)
    for given in ((q, v, a), (Foreign(q), Foreign(v), a), (v, q, a)):
        arrays = [getattr(each, "array", each) for each in given]
        for _ in range(2):
            found = call(*given)
            assert cuda_in_cpp.launched == [each.ctypes.data for each in (*arrays, out)]
            wanted = model.inverse_dynamics(*map(np.asarray, arrays))
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
            a += 1.0  # the caller's numbers change, not the array
    alone = on_cuda.prepare("mass_matrix")
    np.testing.assert_allclose(alone(q[0]), model.mass_matrix(np.asarray(q[0])), rtol=1e-12)
    assert alone(q[0]) is alone(q[1])


@pytest.mark.usefixtures("cuda_in_cpp")
def test_cells_of_joints_on_different_branches_are_zero():
    model = mr.examples.crab().model("physical")
    q = np.full((2, model.nq), 0.1).view(GpuArray)
    wanted = model.mass_matrix(np.asarray(q))
    assert (wanted == 0).any()
    on_cuda = model.compile(target="cuda")
    for found in (on_cuda.mass_matrix(q), on_cuda.prepare("mass_matrix", 2)(q)):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("cuda_in_cpp")
def test_arrays_of_other_sizes_are_refused_by_name(pendulum):
    _, on_cuda, (q, _, a) = pendulum
    for wrong, shape in ((1.0, r"\(\)"), (q[:, :1], rf"\({STATES}, 1\)")):
        with pytest.raises(mr.StateError, match=rf"v has shape {shape}, expected \(..., 2\)"):
            on_cuda.inverse_dynamics(q, wrong, a)


@pytest.mark.usefixtures("cuda_in_cpp")
def test_a_prepared_call_refuses_what_it_would_have_to_copy(pendulum):
    model, on_cuda, (q, v, a) = pendulum
    call = on_cuda.prepare("inverse_dynamics", STATES)
    with pytest.raises(mr.StateError, match="q must be"):
        call(None, None, None)
    for wrong in (
        np.asarray(v), v.astype(np.float32), v[:-1], np.asfortranarray(v), v.tolist(),
        Foreign(np.asarray(v), device=1),
    ):  # fmt: skip
        with pytest.raises(mr.StateError, match=r"v must be a contiguous float64 array .* copies"):
            call(q, wrong, a)
        with pytest.raises(mr.StateError, match="out must be a contiguous"):
            on_cuda.prepare("inverse_dynamics", STATES, out=wrong)
    call(q, v, a)
    with pytest.raises(mr.StateError, match="v must be"):
        call(a, None, a)
    found = call(a, v, a)  # not the arrays of the call before the refused one
    wanted = model.inverse_dynamics(*map(np.asarray, (a, v, a)))
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("cuda_in_cpp")
def test_a_prepared_call_names_wrong_arguments(pendulum):
    model, on_cuda, (q, v, a) = pendulum
    call = on_cuda.prepare("inverse_dynamics", STATES)
    for wrong in ((), (q, v), (q, v, a, a)):
        with pytest.raises(TypeError, match=f"takes q, v, a, got {len(wrong)} arrays"):
            call(*wrong)
    with pytest.raises(mr.StateError, match=r"q .Foreign. gives no DLPack: this tensor requires"):
        call(Foreign(q, refuse=True), v, a)
    with pytest.raises(mr.UnknownNameError, match="cannot prepare 'closed_form_matrices'"):
        on_cuda.prepare("closed_form_matrices")
    with pytest.raises(mr.StateError, match="out is for target 'cuda'"):
        model.prepare("mass_matrix", out=np.zeros((3, 3)))


def test_arrays_with_dlpack_are_read_where_they_are(cuda_in_cpp, pendulum):
    model, on_cuda, (q, v, a) = pendulum
    wanted = model.inverse_dynamics(*map(np.asarray, (q, v, a)))
    found = on_cuda.inverse_dynamics(Foreign(q), Foreign(v), Foreign(np.asarray(a), device=1))
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    assert cuda_in_cpp.launched[:2] == [q.ctypes.data, v.ctypes.data]


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


@pytest.mark.usefixtures("cuda_in_cpp")
def test_a_prepared_call_takes_wrenches_on_all_bodies():
    model, rng = mr.examples.snake(3).model("physical"), np.random.default_rng(3)
    on_cuda = model.compile(target="cuda")
    q, v, x = (x.view(GpuArray) for x in rng.standard_normal((3, STATES, model.nv)))
    wrenches = rng.standard_normal((STATES, model.nbodies, 6)).view(GpuArray)
    call = on_cuda.prepare("forward_dynamics", STATES, external=True)
    for _ in range(2):
        external = {k: np.asarray(wrenches[:, k]) for k in range(model.nbodies)}
        wanted = model.forward_dynamics(*map(np.asarray, (q, v, x)), external)
        np.testing.assert_allclose(call(q, v, x, wrenches), wanted, rtol=1e-10, atol=1e-10)
        wrenches *= 2.0  # the caller's numbers change, not the array
    with pytest.raises(
        mr.StateError, match=rf"external must be .* \({STATES}, {model.nbodies}, 6\)"
    ):
        call(q, v, x, wrenches[:, 1:])
    with pytest.raises(TypeError, match="takes q, v, tau, external, got 3 arrays"):
        call(q, v, x)
    with pytest.raises(mr.StateError, match="leave external out"):
        on_cuda.prepare("mass_matrix", external=True)
    with pytest.raises(mr.StateError, match=r"give wrenches to model\.forward"):
        model.prepare("forward_dynamics", external=True)


@pytest.mark.usefixtures("cuda_in_cpp")
@pytest.mark.parametrize("base", ["free", "fixed"])
def test_a_rollout_takes_the_steps_of_the_model(base):
    body, rng = mr.examples.snake(3).with_parameters(viscous=0.01), np.random.default_rng(3)
    model = body.model("physical", base=base)
    on_cuda, steps, dt = model.compile(target="cuda"), 5, 1e-3
    q = np.array([model.random_configuration(rng) for _ in range(STATES)])
    v, tau = rng.standard_normal((STATES, model.nv)), rng.standard_normal((steps, 1, model.nv))
    for external in (None, {"m2": rng.standard_normal((STATES, 6))}):
        found, expected = (each.rollout(q, v, tau, dt, external) for each in (on_cuda, model))
        assert found[0].shape == (steps, STATES, model.nq)
        # a quaternion and its negative are one orientation
        assert np.abs(model.difference(expected[0], np.asarray(found[0]))).max() < 1e-10
        np.testing.assert_allclose(found[1], expected[1], rtol=0, atol=1e-10)
    at, speed = q, v
    for each in tau:
        at, speed = model.step(at, speed, each, dt)
    np.testing.assert_array_equal(model.rollout(q, v, tau, dt)[0][-1], at)
    alone = on_cuda.rollout(q[0], v[0], tau[:, 0], dt)
    for path, one in zip(on_cuda.rollout(q, v, tau, dt), alone, strict=True):
        np.testing.assert_allclose(one, path[:, 0], rtol=0, atol=1e-12)
    for where in (model, on_cuda):
        for wrong in (tau[0, 0], tau[:0]):
            with pytest.raises(mr.StateError, match=r"expected \(steps, ..., "):
                where.rollout(q, v, wrong, dt)
    with pytest.raises(mr.StateError, match="too long for the friction of the joints"):
        on_cuda.rollout(q, v, tau, 10.0)


def test_gradients_on_cuda_are_those_of_the_cpu(cuda_in_cpp, pendulum):
    model, on_cuda, (q, v, a) = pendulum
    rng, body = np.random.default_rng(4), model.body_index("m2")
    for name, options, arrays in (
        ("inverse_dynamics", {}, [q, v, a]),
        ("forward_kinematics", {"body": body}, [q]),
    ):
        function = DifferentiableFunction(model, name, options)
        weights = rng.standard_normal((STATES, *function.shapes[0]))
        wanted = function.pullback([np.asarray(x) for x in arrays], [weights])
        numbers = np.ascontiguousarray(weights[..., :3, :]) if options else weights  # rows [R | p]
        found = on_cuda.dynamics.tier.gradient(name, arrays, numbers, **options)
        assert cuda_in_cpp.launched[0] == q.ctypes.data
        for x, y in zip(found, wanted, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


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

    gpus = ["a GPU"]
    runtime = SimpleNamespace(getDeviceCount=count, CUDARuntimeError=NoGpu)
    fake = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))
    monkeypatch.setitem(sys.modules, "cupy", fake)
    assert cuda.cupy() is fake
    assert best_target() == "cuda"
    gpus.clear()
    assert best_target() == "cpu"
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
    ],
)
def test_what_is_not_on_cuda_is_refused_in_one_line(on_cuda, call):
    with pytest.raises(mr.StateError, match=r"not there on target 'cuda'; it has .*mass_matrix"):
        call(on_cuda, np.zeros(on_cuda.nv))
