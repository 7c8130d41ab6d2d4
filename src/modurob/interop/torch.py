"""Functions of a model in PyTorch, with exact gradients.

    step = modurob.interop.torch.function(model, "step", dt=0.01)
    q, v = step(q, v, tau)            # tensors (..., n), which may require gradients
    loss(q).backward()

Contiguous float64 tensors in main memory are read where they are; float32 tensors are converted,
because code for the CPU has double precision. A model that was compiled for ``cuda`` takes tensors
on the GPU, of its own precision, where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from modurob import friction
from modurob.compiler.cuda import CudaTier, cupy
from modurob.dynamics import CudaDynamics
from modurob.errors import StateError
from modurob.interop.differentiable import (
    ONCE,
    DifferentiableFunction,
    checked,
    demand_rows,
    framework,
)
from modurob.model import Model


def function(model: Model, name: str, **options: Any) -> Callable[..., Any]:
    """A function of a model that takes and returns tensors, with gradients.

    Args:
        model: On the CPU, or compiled for ``cuda``.
        name: One of `modurob.interop.differentiable.FUNCTIONS`, such as ``inverse_dynamics``.
        options: ``body`` of ``forward_kinematics``, ``dt`` of ``step``. [s]

    Returns:
        A callable on tensors (..., n) whose batch shapes broadcast. It returns a tensor, or
        (q, v) for ``step``. It can be differentiated once.
    """
    torch = framework("torch")
    entry, options = checked(model, name, options)
    dynamics: Any = model.dynamics
    tier = dynamics.tier if isinstance(dynamics, CudaDynamics) else None
    if tier is None:
        compute = _node(DifferentiableFunction(model, name, options))
    else:
        compute = _on_cuda(model, tier, name, options)
    sizes = [model.nq if each == "q" else model.nv for each in entry.inputs]

    def call(*tensors: Any) -> Any:
        return compute(*_rows(torch, name, entry.inputs, sizes, tier, tensors))

    return call


def _rows(
    torch: Any,
    name: str,
    inputs: Sequence[str],
    sizes: Sequence[int],
    tier: CudaTier | None,
    tensors: Sequence[Any],
) -> list[Any]:
    """Tensors of one batch shape, or an error for what does not fit the model."""
    place = "cpu" if tier is None else "cuda"
    for each, tensor in zip(inputs, tensors, strict=False):
        if not isinstance(tensor, torch.Tensor):
            raise StateError(f"{each} of {name} must be a tensor, got {type(tensor).__name__}")
        if tensor.device.type != place:
            raise StateError(
                f"{each} of {name} is on {tensor.device}, the model on {place}: move the tensor "
                f"with .to('{place}'), or compile the model for the tensor's device"
            )
        if tensor.layout != torch.strided or tensor.is_nested:
            layout = "nested" if tensor.is_nested else tensor.layout
            raise StateError(
                f"{each} of {name} has the layout {layout}: give a dense tensor, such as "
                "tensor.to_dense()"
            )
    dtype, batch = demand_rows(name, inputs, sizes, tensors)
    if tier is not None and dtype != tier.dtype.name:
        raise StateError(
            f"{name} of a model compiled with dtype {tier.dtype.name} takes such tensors, got "
            f"{dtype}: convert them, or compile the model with dtype='{dtype}'"
        )
    return [tensor.expand(*batch, tensor.shape[-1]) for tensor in tensors]


def _node(bound: DifferentiableFunction | CudaFunction) -> Callable[..., Any]:
    """A function as a node of PyTorch's graph."""
    autograd = _autograd()

    def call(*rows: Any) -> Any:
        found = autograd.apply(bound, *rows)
        return found[0] if len(found) == 1 else found

    return call


@cache
def _autograd() -> Any:
    """The class that PyTorch calls for values; that for gradients is its `backward`."""
    torch = framework("torch")

    class ModelGradient(torch.autograd.Function):
        """Gradients of a `DifferentiableFunction`, which have no gradients themselves."""

        @staticmethod
        def forward(bound: DifferentiableFunction | CudaFunction, *tensors: Any) -> tuple[Any, ...]:
            arrays, count = [_array(tensor) for tensor in tensors], len(bound.sizes)
            found = bound.pullback(arrays[:count], arrays[count:])
            return tuple(_tensor(each, tensors[0].dtype) for each in found)

        @staticmethod
        def setup_context(context: Any, inputs: Any, output: Any) -> None:
            context.name = inputs[0].name

        @staticmethod
        def backward(context: Any, *weights: Any) -> Any:
            raise StateError(f"{context.name} {ONCE}")

        @staticmethod
        def vmap(info: Any, in_dims: Any, *given: Any) -> Any:
            return _mapped(ModelGradient, info, in_dims, *given)

    class ModelFunction(torch.autograd.Function):
        """A `DifferentiableFunction` as a node of PyTorch's graph."""

        @staticmethod
        def forward(bound: DifferentiableFunction | CudaFunction, *tensors: Any) -> tuple[Any, ...]:
            found = bound.value(*(_array(tensor) for tensor in tensors))
            return tuple(_tensor(each, tensors[0].dtype) for each in found)

        @staticmethod
        def setup_context(context: Any, inputs: Any, output: Any) -> None:
            context.bound = inputs[0]
            context.save_for_backward(*inputs[1:])

        @staticmethod
        def backward(context: Any, *weights: Any) -> tuple[Any, ...]:
            given = (context.bound, *context.saved_tensors, *weights)
            asked_again = torch.is_grad_enabled()  # for derivatives of what is returned here
            gradient = ModelGradient.apply if asked_again else ModelGradient.forward
            return (None, *gradient(*given))

        @staticmethod
        def jvp(context: Any, *changes: Any) -> Any:
            raise StateError(
                f"{context.bound.name} is differentiated in reverse, once: take torch.func.jacrev "
                "or backward(); modurob.interop.jax has forward derivatives"
            )

        @staticmethod
        def vmap(info: Any, in_dims: Any, *given: Any) -> Any:
            return _mapped(ModelFunction, info, in_dims, *given)

    def _tensor(array: Any, dtype: Any) -> Any:
        on_cpu = isinstance(array, np.ndarray)
        return torch.from_numpy(array).to(dtype) if on_cpu else torch.from_dlpack(array)

    return ModelFunction


def _mapped(kind: Any, info: Any, in_dims: Any, bound: Any, *tensors: Any) -> tuple[Any, Any]:
    """Results of a function under `torch.vmap`, and their mapped dimension: one more of a batch."""
    rows = [
        tensor.expand(info.batch_size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
        for tensor, dim in zip(tensors, in_dims[1:], strict=True)
    ]
    return kind.apply(bound, *rows), 0


def _array(tensor: Any) -> Any:
    """The numbers of a tensor, on the same memory if that is contiguous.

    In main memory they become float64.
    """
    tensor = tensor.detach().resolve_neg()
    if tensor.is_cuda:
        return cupy().from_dlpack(tensor.contiguous())
    return np.asarray(tensor.numpy(), dtype=float)


# -- on a GPU --------------------------------------------------------------------------------------


class CudaStream(NamedTuple):
    """A stream of another library, by the protocol of CUDA streams."""

    pointer: int

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.pointer


class CudaFunction:
    """A quantity on the GPU with its gradient: as `DifferentiableFunction`, for CuPy arrays."""

    def __init__(self, tier: CudaTier, name: str, sizes: Sequence[int], body: int | None) -> None:
        self.name, self.sizes, self._tier, self._body = name, sizes, tier, body

    def value(self, *arrays: Any) -> tuple[Any]:
        """The quantity for contiguous rows (..., n)."""
        with self._stream():
            found = self._tier.run(self.name, *arrays)
        return (found if self._body is None else found[..., self._body, :, :],)

    def pullback(self, arrays: Sequence[Any], weights: Sequence[Any]) -> list[Any]:
        """Gradients by the inputs of the sum of the quantity times its weights."""
        with self._stream():
            return self._tier.gradient(self.name, arrays, weights[0], self._body)

    def _stream(self) -> Any:
        """The stream in which PyTorch computes, now also CuPy's."""
        stream = CudaStream(framework("torch").cuda.current_stream().cuda_stream)
        cuda = self._tier.cp.cuda
        if hasattr(cuda.Stream, "from_external"):
            return cuda.Stream.from_external(stream)
        return cuda.ExternalStream(stream.pointer)  # before CuPy 14


def _on_cuda(
    model: Model, tier: CudaTier, name: str, options: Mapping[str, Any]
) -> Callable[..., Any]:
    """A function on the GPU: kernels for what has them, and PyTorch's operations around them."""
    torch = framework("torch")

    def kernel(quantity: str, inputs: int) -> Callable[..., Any]:
        sizes = (model.nq, model.nv, model.nv)[:inputs]
        node = _node(CudaFunction(tier, quantity, sizes, options.get("body")))

        return lambda q, *rest: node(_unit(torch, q) if model.free_base else q, *rest)

    if name == "centroidal_momentum":
        matrix = kernel("centroidal_momentum_matrix", 1)
        return lambda q, v: (matrix(q) @ v[..., None])[..., 0]
    if name == "forward_kinematics":
        rows = kernel(name, 1)
        last = torch.tensor([[0.0, 0.0, 0.0, 1.0]], device="cuda")

        def pose(q: Any) -> Any:
            T = rows(q)
            return torch.cat([T, last.to(T).expand(*T.shape[:-2], 1, 4)], dim=-2)

        return pose
    if name == "step":
        return _step(torch, model, kernel("forward_dynamics", 3), options["dt"])
    return kernel(name, {"inverse_dynamics": 3, "forward_dynamics": 3}.get(name, 1))


def _step(torch: Any, model: Model, forward: Callable[..., Any], dt: float) -> Callable[..., Any]:
    """`Model.step` in PyTorch's operations, from the forward dynamics."""
    if friction.needs_implicit_step(model._on_cpu, dt):
        rate = model._on_cpu.friction_rate
        raise StateError(
            f"a step on the GPU takes friction at its start, which {rate.cause} allows up to "
            f"dt = {friction.EXPLICIT / rate.rate:.1e} s, got {dt:g}: take that, or a model on the "
            "CPU"
        )

    def turned(quaternion: Any, x: Any) -> Any:
        axis, w = quaternion[..., :3], quaternion[..., 3:]
        t = 2 * torch.linalg.cross(axis, x)
        return x + w * t + torch.linalg.cross(axis, t)

    def step(q: Any, v: Any, tau: Any) -> tuple[Any, Any]:
        after = v + dt * forward(q, v, tau)
        if not model.free_base:
            return q + dt * after, after
        q = _unit(torch, q)
        old, half = q[..., 3:7], 0.5 * dt * after[..., 3:6]
        u = after[..., :3] + dt * torch.linalg.cross(v[..., 3:6], v[..., :3])
        angle = torch.linalg.vector_norm(half, dim=-1, keepdim=True)
        axis, w = torch.sinc(angle / torch.pi) * half, torch.cos(angle)
        new = torch.cat(
            [
                old[..., 3:] * axis + w * old[..., :3] + torch.linalg.cross(old[..., :3], axis),
                old[..., 3:] * w - (old[..., :3] * axis).sum(-1, keepdim=True),
            ],
            dim=-1,
        )
        place, joints = q[..., :3] + dt * turned(old, u), q[..., 7:] + dt * after[..., 6:]
        twist = torch.cat([turned(torch.cat([-axis, w], -1), u), after[..., 3:]], dim=-1)
        return torch.cat([place, new, joints], dim=-1), twist

    return step


def _unit(torch: Any, q: Any) -> Any:
    """q with the quaternion of a free base at norm 1."""
    quaternion = q[..., 3:7]
    unit = quaternion / torch.linalg.vector_norm(quaternion, dim=-1, keepdim=True)
    return torch.cat([q[..., :3], unit, q[..., 7:]], dim=-1)
