"""Functions of a model in PyTorch, with exact gradients.

    step = modurob.interop.torch.function(model, "step", dt=0.01)
    q, v = step(q, v, tau)            # tensors (..., n), which may require gradients
    loss(q).backward()

Contiguous float64 tensors in main memory are read where they are; float32 tensors are converted,
because code for the CPU has double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from modurob.errors import StateError
from modurob.interop.differentiable import DifferentiableFunction, demand_rows, framework
from modurob.model import Model


def function(model: Model, name: str, **options: Any) -> Callable[..., Any]:
    """A function of a model that takes and returns tensors, with gradients.

    Args:
        model: On the CPU.
        name: One of `modurob.interop.differentiable.FUNCTIONS`, such as ``inverse_dynamics``.
        options: ``body`` of ``forward_kinematics``, ``dt`` of ``step``. [s]

    Returns:
        A callable on tensors (..., n) whose batch shapes broadcast. It returns a tensor, or
        (q, v) for ``step``. It can be differentiated once.
    """
    torch = framework("torch")
    bound = DifferentiableFunction(model, name, options)
    autograd = _autograd()

    def call(*tensors: Any) -> Any:
        for each, tensor in zip(bound.entry.inputs, tensors, strict=False):
            if not isinstance(tensor, torch.Tensor):
                raise StateError(f"{each} of {name} must be a tensor, got {type(tensor).__name__}")
            if tensor.device.type != "cpu":
                raise StateError(
                    f"{each} of {name} is on {tensor.device}, the model on the CPU: "
                    "move the tensor with .cpu(), or give model.compile('cuda')"
                )
        demand_rows(name, bound.entry.inputs, bound.sizes, tensors)
        batch = torch.broadcast_shapes(*(tensor.shape[:-1] for tensor in tensors))
        rows = [tensor.expand(*batch, tensor.shape[-1]) for tensor in tensors]
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
        def forward(bound: DifferentiableFunction, *tensors: Any) -> tuple[Any, ...]:
            arrays, count = [_array(tensor) for tensor in tensors], len(bound.sizes)
            found = bound.pullback(arrays[:count], arrays[count:])
            return tuple(_tensor(each, tensors[0].dtype) for each in found)

        @staticmethod
        def setup_context(context: Any, inputs: Any, output: Any) -> None:
            context.name = inputs[0].name

        @staticmethod
        def backward(context: Any, *weights: Any) -> Any:
            raise StateError(
                f"{context.name} can be differentiated once: modurob.interop.casadi.graph has "
                "derivatives of any order"
            )

    class ModelFunction(torch.autograd.Function):
        """A `DifferentiableFunction` as a node of PyTorch's graph."""

        @staticmethod
        def forward(bound: DifferentiableFunction, *tensors: Any) -> tuple[Any, ...]:
            found = bound.value(*(_array(tensor) for tensor in tensors))
            return tuple(_tensor(each, tensors[0].dtype) for each in found)

        @staticmethod
        def setup_context(context: Any, inputs: Any, output: Any) -> None:
            context.bound = inputs[0]
            context.save_for_backward(*inputs[1:])

        @staticmethod
        def backward(context: Any, *weights: Any) -> tuple[Any, ...]:
            return (None, *ModelGradient.apply(context.bound, *context.saved_tensors, *weights))

    def _tensor(array: np.ndarray, dtype: Any) -> Any:
        return torch.from_numpy(array).to(dtype)

    return ModelFunction


def _array(tensor: Any) -> np.ndarray:
    """The numbers of a tensor as float64, on the same memory if it has these."""
    return np.asarray(tensor.detach().numpy(), dtype=float)
