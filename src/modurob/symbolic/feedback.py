"""Feedback linearization on paper: Lie derivatives, relative degree, zero dynamics.

Thesis gutenkunst2012, 6.1.1: for ``x' = f(x) + g(x) u``, ``y = h(x)`` with x = (q, dq) and u the
forces of the joints that have a motor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import sympy

from modurob.errors import SizeError, StateError, UnknownNameError, choices
from modurob.symbolic.linear import LARGEST_INVERSE

if TYPE_CHECKING:
    from modurob.symbolic.equations import Equations

PROBES = 3  # random points at which an expression must vanish to count as zero
VANISHED = 1e-9  # of an expression at numbers of size one, after some hundred operations


class FeedbackLinearization(NamedTuple):
    """Outputs differentiated until the inputs appear: ``y^(r) = A u + b`` (6.9), (6.18).

    Attributes:
        h: (m, 1) outputs.
        inputs: Joints with a motor, whose forces are u.
        relative_degree: (m,) r of each output.
        phi: (sum of r, 1) xi = Phi(x): each output and its derivatives up to r - 1 (6.16).
        A: (m, m) decoupling matrix, regular almost everywhere (6.9).
        b: (m, 1) what the outputs do without inputs (6.18); ``u = A^-1 (w - b)`` (6.20).
        zero_dynamics: (k, 1) expressions that are zero while the outputs rest, in the coordinates
            beside them; None for outputs that are not joints. With no rows the system is flat.
    """

    h: sympy.ImmutableMatrix
    inputs: tuple[str, ...]
    relative_degree: tuple[int, ...]
    phi: sympy.ImmutableMatrix
    A: sympy.ImmutableMatrix
    b: sympy.ImmutableMatrix
    zero_dynamics: sympy.ImmutableMatrix | None

    def __str__(self) -> str:
        inputs = ", ".join(self.inputs)
        lines = [f"inputs u: {inputs}"]
        for k, (y, r) in enumerate(zip(self.h.flat(), self.relative_degree, strict=True)):
            row = [f"({a}) u{j + 1}" for j, a in enumerate(self.A.row(k).flat()) if a != 0]
            lines.append(f"y{k + 1} = {y}: relative degree {r}")
            lines.append(f"  y{k + 1}^({r}) = {' + '.join([*row, str(self.b[k])])}")
        rest = None if self.zero_dynamics is None else self.zero_dynamics.flat()
        lines += [f"zero dynamics: 0 = {z}" for z in rest or ()]
        lines += ["no zero dynamics"] if rest == [] else []
        return "\n".join(lines)


def feedback_linearization(
    equations: Equations, outputs: Iterable[Any] | None, passive: Collection[str]
) -> FeedbackLinearization:
    """See `Equations.feedback_linearization`."""
    names, n = equations.model.joint_names, equations.model.nv
    _refuse(equations)
    driven = [k for k in range(n) if names[k] not in {*_listed(passive, names, "passive")}]
    q, dq = ([sympy.Symbol(f"{x}{k + 1}") for k in range(n)] for x in ("q", "dq"))
    if isinstance(outputs, str):
        outputs = [outputs]
    wanted = [names[k] for k in driven] if outputs is None else list(outputs)
    h = [_output(y, q, names) for y in wanted]
    if len(h) != len(driven):
        raise StateError(f"give {len(driven)} outputs, as many as there are motors, got {len(h)}")
    inverse = equations.M.inv(method="ADJ").applyfunc(sympy.factor) if n else equations.M
    v = sympy.Matrix(n, 1, dq)
    bias = equations.C * v + equations.N + equations.friction
    f, g = v.col_join(-inverse * bias), sympy.zeros(n, len(driven)).col_join(inverse[:, driven])
    x, phi, degrees, A, b = sympy.Matrix(2 * n, 1, q + dq), [], [], [], []
    for y in h:
        chain = [y]
        while True:
            slope = sympy.Matrix([chain[-1]]).jacobian(x)
            reach = slope * g
            after = (slope * f)[0]
            if any(not _vanishes(entry) for entry in reach):
                break
            chain.append(after)
            if len(chain) > 2 * n:
                raise StateError(f"no motor reaches the output {y}: it has no relative degree")
        phi += chain
        degrees.append(len(chain))
        A.append([sympy.factor(entry) for entry in reach])
        b.append(sympy.factor(after))
    decoupling = sympy.ImmutableMatrix(len(h), len(driven), [entry for row in A for entry in row])
    if h and _vanishes(decoupling.det()):
        raise StateError(
            f"the outputs {choices([str(y) for y in h])} have no relative degree together: motors "
            "reach them in the same way, A is singular everywhere"
        )
    return FeedbackLinearization(
        sympy.ImmutableMatrix(len(h), 1, h),
        tuple(names[k] for k in driven),
        tuple(degrees),
        sympy.ImmutableMatrix(len(phi), 1, phi),
        decoupling,
        sympy.ImmutableMatrix(len(h), 1, b),
        _zero_dynamics(equations, h, q, driven),
    )


def _zero_dynamics(
    equations: Equations, h: list[Any], q: list[sympy.Symbol], driven: list[int]
) -> sympy.ImmutableMatrix | None:
    """Rows without a motor, with the outputs at rest where they are."""
    if any(y not in q for y in h):
        return None
    held = {sympy.Symbol(f"{d}{q.index(y) + 1}"): 0 for y in h for d in ("dq", "ddq")}
    tau = equations.tau.subs(held).flat()
    rows = [sympy.factor(sympy.expand(tau[k])) for k in range(len(q)) if k not in driven]
    return sympy.ImmutableMatrix(len(rows), 1, rows)


def _refuse(equations: Equations) -> None:
    model = equations.model
    if model.free_base:
        raise StateError(
            "a free base is not linearized symbolically: give it virtual joints, such as "
            "base=['px', 'pz', 'ry'], or use control.PartialLinearization for numbers"
        )
    if model.nv > LARGEST_INVERSE:
        raise SizeError(
            f"the inverse of a symbolic {model.nv} x {model.nv} mass matrix is readable up to "
            f"{LARGEST_INVERSE}: use control.PartialLinearization for numbers"
        )


def _listed(names: Collection[str], known: tuple[str, ...], what: str) -> Collection[str]:
    listed = [names] if isinstance(names, str) else list(names)
    for name in listed:
        if name not in known:
            raise UnknownNameError(f"{what}: no joint {name!r}: joints are {choices(known)}")
    return listed


def _output(y: Any, q: list[sympy.Symbol], names: tuple[str, ...]) -> sympy.Expr:
    """An output: a joint's coordinate, or an expression; text is a name and is not evaluated."""
    if isinstance(y, str):
        return q[names.index(next(iter(_listed(y, names, "outputs"))))]
    if not isinstance(y, sympy.Expr) or not y.free_symbols & set(q):
        raise StateError(
            f"an output is a joint ({choices(names)}) or an expression of "
            f"{choices([str(x) for x in q])}, got {y}"
        )
    return y


def _vanishes(expression: Any) -> bool:
    """Return True if an expression is zero, at random numbers for its symbols."""
    rng, symbols = Random(0), sorted(expression.free_symbols, key=str)
    for _ in range(PROBES):
        numbers = {symbol: rng.uniform(0.5, 1.5) for symbol in symbols}
        if abs(complex(expression.evalf(subs=numbers))) > VANISHED:
            return False
    return True
