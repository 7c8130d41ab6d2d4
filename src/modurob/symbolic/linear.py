"""The equations linearized about a state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import sympy

from modurob.errors import SizeError, StateError
from modurob.symbolic.exact import Exact

if TYPE_CHECKING:
    from modurob.symbolic.equations import Equations

LARGEST_INVERSE = 4  # joints; symbolic inverses of more fill pages for each entry


class Linearization(NamedTuple):
    """Small motions: ``M ddx + D dx + K x = u``, or ``d(x, dx)/dt = A (x, dx) + B u``.

    x is the deviation of q, u that of the joint forces from those that keep the motion.
    """

    M: sympy.ImmutableMatrix
    D: sympy.ImmutableMatrix
    K: sympy.ImmutableMatrix
    A: sympy.ImmutableMatrix
    B: sympy.ImmutableMatrix


def linearize(equations: Equations, exact: Exact, q: Any, v: Any, a: Any) -> Linearization:
    """See `Equations.linearize`; `exact` has its entries."""
    model = equations.model
    if model.free_base:
        raise StateError(
            "a free base is not linearized symbolically: give it virtual joints, such as "
            "base=['px', 'pz', 'ry'], or use model.linearize for numbers"
        )
    n = model.nv
    state = {
        f"{letter}{k + 1}": value
        for letter, values in (("q", q), ("dq", v), ("ddq", a))
        if values is not None
        for k, value in enumerate(_each(letter, values, n))
    }
    here = equations.substitute(state)
    forces, motion = exact.forces(), exact.tree.motion
    stiffness = [
        tau.derivative(place) + tau.angle_derivative(joint)
        for tau in forces
        for joint, place in enumerate(motion.places)
    ]
    damping = [tau.derivative(speed) for tau in forces for speed in motion.speeds]
    speeds = sympy.Matrix([sympy.Symbol(f"dq{k + 1}") for k in range(n)])
    slip = equations.friction.jacobian(speeds) if n else sympy.zeros(0)
    numbers = {sympy.Symbol(name): value for name, value in state.items()}
    M = here.M
    K, D = (
        sympy.ImmutableMatrix(n, n, [here.write(value) for value in values])
        for values in (stiffness, damping)
    )
    D += slip.subs(numbers)
    if n > LARGEST_INVERSE and M.free_symbols:
        raise SizeError(
            f"A and B need the inverse of a symbolic {n} x {n} mass matrix, readable up to "
            f"{LARGEST_INVERSE}: give numbers with symbols='none' and a configuration q, or use "
            "model.linearize"
        )
    inverse = M.inv(method="ADJ").applyfunc(sympy.factor) if n else M
    zero, eye = sympy.zeros(n, n), sympy.eye(n)
    lower = [(-inverse * each).applyfunc(sympy.factor) for each in (K, D)]
    A = sympy.Matrix([[zero, eye], lower]) if n else sympy.zeros(0, 0)
    B = sympy.Matrix([[zero], [inverse]]) if n else sympy.zeros(0, 0)
    return Linearization(M, sympy.ImmutableMatrix(D), K, A.as_immutable(), B.as_immutable())


def _each(letter: str, values: Any, n: int) -> Sequence[Any]:
    if isinstance(values, int | float):
        return [values] * n
    listed = list(values)
    if len(listed) != n:
        raise StateError(f"{letter} has {len(listed)} entries, the equations have {n} joints")
    return listed
