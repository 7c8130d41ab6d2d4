"""Functions of a model in CasADi: compiled code with exact Jacobians, or CasADi's own operations.

    step = modurob.interop.casadi.function(model, "step", dt=0.01)
    q_next, v_next = step(q, v, tau)       # columns of MX, SX of numbers or DM

`function` calls modurob's compiled code and has first derivatives. `graph` writes the operations
out for CasADi, which differentiates them to any order and can generate code from them; it is the
choice for small bodies and for solvers that use exact Hessians.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from modurob.checks import is_number
from modurob.compiler.fused import Trace
from modurob.compiler.statements import place_of
from modurob.compiler.trace import CONST, INPUT
from modurob.dynamics import cpu_model
from modurob.equations.quantities import QUANTITIES
from modurob.errors import StateError, choices
from modurob.interop.differentiable import (
    FUNCTIONS,
    ONCE,
    DifferentiableFunction,
    checked,
    framework,
)
from modurob.model import Model

OPERATIONS = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "neg": operator.neg,
}
GRAPHS = tuple(name for name in FUNCTIONS if name in QUANTITIES)  # that `graph` has

_callbacks: list[Any] = []  # CasADi's expressions do not keep them alive


def function(model: Model, name: str, states: int = 1, **options: Any) -> Any:
    """A ``casadi.Function`` of a model that runs compiled code, with its exact Jacobian.

    CasADi's arrays are read where they are. A state with numbers that are not finite gives NaN,
    so that solvers can take a shorter step.

    Args:
        model: On the CPU.
        name: One of `modurob.interop.differentiable.FUNCTIONS`, such as ``inverse_dynamics``.
        states: Number of states in one call, each a column; matrices stand side by side.
        options: ``body`` of ``forward_kinematics``, ``dt`` of ``step``. [s]
    """
    casadi = framework("casadi")
    bound = DifferentiableFunction(model, name, options)
    if not is_number(states) or states != int(states) or states < 1:
        raise StateError(f"states must be a whole number of 1 or more, got {states!r}")
    states = int(states)
    shapes = [(*shape, 1)[:2] for shape in bound.shapes]
    inputs = [casadi.Sparsity.dense(size, states) for size in bound.sizes]
    outputs = [casadi.Sparsity.dense(rows, columns * states) for rows, columns in shapes]
    blocks = [
        [_diagonal(casadi, rows * columns, size, states) for size in bound.sizes]
        for rows, columns in shapes
    ]

    def value(*arrays: np.ndarray) -> list[np.ndarray]:
        found = zip(bound.value_or_nan(*arrays), shapes, strict=True)
        return [_columns(array.reshape(states, *shape)) for array, shape in found]

    def jacobians(*arrays: np.ndarray) -> list[np.ndarray]:
        found, kinds = [], [shape for shape in shapes for _ in inputs]
        for block, (rows, columns) in zip(bound.jacobians_or_nan(*arrays), kinds, strict=True):
            by_entry = block.reshape(states, rows, columns, -1).swapaxes(1, 2)
            found.append(_columns(by_entry.reshape(states, rows * columns, -1)))  # down columns
        return found

    class Compiled(casadi.Callback):
        """Compiled code as a function of CasADi."""

        def __init__(
            self, label: str, compute: Any, given: Sequence[Any], results: Sequence[Any],
            names: tuple[Sequence[str], Sequence[str]], options: Any,
        ) -> None:  # fmt: skip
            casadi.Callback.__init__(self)
            self.compute, self.given, self.results, self.names = compute, given, results, names
            _callbacks.append(self)
            self.construct(label, options)

        def get_n_in(self) -> int:
            return len(self.given)

        def get_n_out(self) -> int:
            return len(self.results)

        def get_name_in(self, i: int) -> str:
            return self.names[0][i]

        def get_name_out(self, i: int) -> str:
            return self.names[1][i]

        def get_sparsity_in(self, i: int) -> Any:
            return self.given[i]

        def get_sparsity_out(self, i: int) -> Any:
            return self.results[i]

        def has_eval_buffer(self) -> bool:
            return True

        def eval_buffer(self, given: Sequence[Any], results: Sequence[Any]) -> int:
            arrays = [
                np.zeros((states, size))  # CasADi's sign for zeros, and for no numbers
                if memory is None
                else np.frombuffer(memory).reshape(states, size)
                for memory, size in zip(given, bound.sizes, strict=False)
            ]
            for memory, array in zip(results, self.compute(*arrays), strict=True):
                if memory is not None:
                    np.frombuffer(memory)[:] = array
            return 0

    class Jacobian(Compiled):
        """Compiled Jacobians, which have no derivatives themselves."""

        def has_jacobian(self) -> bool:
            return True

        def get_jacobian(self, label: str, given: Any, results: Any, options: Any) -> Any:
            raise StateError(
                f"{name} {ONCE}; IPOPT needs none with hessian_approximation='limited-memory'"
            )

    class Differentiable(Compiled):
        """Compiled code whose Jacobian is compiled, too."""

        def has_jacobian(self) -> bool:
            return True

        def get_jacobian(self, label: str, given: Any, results: Any, options: Any) -> Any:
            flat = [block for row in blocks for block in row]
            return Jacobian(label, jacobians, inputs + outputs, flat, (given, results), options)

        def has_jac_sparsity(self, output: int, given: int) -> bool:
            return True

        def get_jac_sparsity(self, output: int, given: int, symmetric: bool) -> Any:
            return blocks[output][given]

    before = list(bound.entry.inputs)
    after = [f"{each}_next" if each in before else each for each in bound.entry.outputs]
    return Differentiable(name, value, inputs, outputs, (before, after), {})


def _diagonal(casadi: Any, rows: int, columns: int, states: int) -> Any:
    """Sparsity of a Jacobian: states do not depend on each other."""
    return casadi.diagcat(*[casadi.Sparsity.dense(rows, columns)] * states)


def _columns(array: np.ndarray) -> np.ndarray:
    """Numbers of matrices (states, rows, columns) in CasADi's order."""
    return array.swapaxes(-1, -2).reshape(-1)


def graph(model: Model, name: str, **options: Any) -> Any:
    """A ``casadi.Function`` of one state, made of CasADi's own operations.

    CasADi differentiates it to any order. Its length grows with the body: forward dynamics of a
    snake with 20 joints has some 1,500 operations, and its Hessian many times that.

    Args:
        name: ``inverse_dynamics``, ``forward_dynamics``, ``forward_kinematics``,
            ``center_of_mass`` or ``centroidal_momentum_matrix``.
        options: ``body`` of ``forward_kinematics``.
    """
    casadi, model = framework("casadi"), cpu_model(f"{name}()", model)
    entry, options = checked(model, name, options)
    if name not in GRAPHS:
        raise StateError(
            f"{name} is not there as a graph, which {choices(GRAPHS)} are: take "
            "casadi.function, or write it with one of these"
        )
    sizes = {each: model.nq if each == "q" else model.nv for each in entry.inputs}
    symbols = [casadi.SX.sym(each, size) for each, size in sizes.items()]
    arrays: dict[str, Any] = dict(zip(("q", "v", "x"), symbols, strict=False))
    if model.free_base:
        q = arrays["q"]
        arrays["q"] = casadi.vertcat(q[:3], q[3:7] / casadi.norm_2(q[3:7]), q[7:])
    try:
        trace = Trace(QUANTITIES[name], model, list(options.values()) or None)
    except ZeroDivisionError:
        rest = np.zeros(model.nv)
        model.forward_dynamics(model.neutral(), rest, rest)  # raises the reason
        raise
    result = casadi.SX(*(trace.shape[-2:] if len(trace.shape) > 1 else (*trace.shape, 1)))
    for index, value in _evaluated(casadi, trace, arrays):
        result[divmod(index, result.shape[1])] = value
    if name == "forward_kinematics":
        result = casadi.vertcat(result, casadi.SX([[0, 0, 0, 1]]))
    return casadi.Function(name, symbols, [result], list(sizes), list(entry.outputs))


def _evaluated(casadi: Any, trace: Trace, arrays: dict[str, Any]) -> list[tuple[int, Any]]:
    """Index and expression of each result of a trace."""
    values: dict[int, Any] = {}
    for number in trace.graph.needed([value for _, value in trace.outputs]):
        op, a, b = trace.graph.nodes[number]
        if op == CONST:
            values[number] = a
        elif op == INPUT:
            place = place_of(trace.slots[a], trace.free_base)
            entry = arrays[place.array][place.entry]
            values[number] = getattr(casadi, place.function)(entry) if place.function else entry
        elif op == "sqrt":
            values[number] = casadi.sqrt(values[a])
        else:
            operands = (values[a],) if b is None else (values[a], values[b])
            values[number] = OPERATIONS[op](*operands)
    return [(index, values[value.number]) for index, value in trace.outputs]
