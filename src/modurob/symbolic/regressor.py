"""The equations as a linear map of the inertial parameters, and their base parameters.

``tau = Y(q, dq, ddq) theta`` with ten parameters a link. Not all of them act on the joint forces,
and some only together; the base parameters pi are the fewest combinations with the same forces,
``Y theta = Y_b pi``. They follow from exact elimination: every entry of Y is a sum of independent
functions of the motion, so columns depend on each other exactly if their coefficients do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from random import Random
from typing import Any, NamedTuple

import sympy
from sympy.polys.matrices import DomainMatrix

from modurob.symbolic.exact import Exact
from modurob.symbolic.forms import ExpressionWriter, Powers, exact_number
from modurob.symbolic.trigonometric import Trig
from modurob.symbolic.vocabulary import Given, Vocabulary

Line = dict[int, dict[Powers, Fraction]]  # by column, then by the powers of the symbols

PRIME = 2**61 - 1
MOVING = ("q", "dq", "ddq", "V", "dV", "e")  # letters of what changes during a motion


class Regressor(NamedTuple):
    """``tau = Y theta = Y_base pi``; friction, rotors, springs and external wrenches aside.

    Attributes:
        Y: (nv, 10 links) with the parameters in the order of `theta`.
        theta: (10 links, 1) mass, first moment, inertia about the origin of each link, in the
            model's link frames, link 0 (which moves only with a free base) left out if it is fixed.
        Y_base: (nv, b) the columns of Y that are kept.
        pi: (b, 1) the base parameters, as combinations of theta.
    """

    Y: sympy.ImmutableMatrix
    theta: sympy.ImmutableMatrix
    Y_base: sympy.ImmutableMatrix
    pi: sympy.ImmutableMatrix


def regressor(
    exact: Exact, words: Vocabulary, writer: ExpressionWriter, values: Sequence[Given]
) -> Regressor:
    """Take the inverse dynamics apart, with whole links as parameters and `values` substituted."""
    letters = [quantity.letter for quantity in words.quantities]
    first = 0 if exact.offset else 1
    theta = [
        k
        for k, quantity in enumerate(words.quantities)
        if quantity.letter[0] in "mhJ" and int(quantity.marks[0]) >= first
    ]
    rows = [tau.linear_in(theta)[0] for tau in exact.forces()]
    moving = {k for k, letter in enumerate(letters) if letter in MOVING}
    for each in values:
        rows = [[each.into(entry) for entry in row] for row in rows]
        renamed = [x for k, x in each.variables.items() if k in moving and isinstance(x, Trig)]
        moving |= set[int]().union(*(x.variables() for x in renamed))
    # inertias first, then first moments, then masses: see _independent
    order = sorted(range(len(theta)), key=lambda k: "Jhm".index(letters[theta[k]][0]))
    kept, mixing = _independent(rows, order, moving, words)
    symbols = [words.symbols[k] for k in theta]
    Y = [[writer.expanded(entry) for entry in row] for row in rows]
    pi = [sympy.Add(*(factor * symbols[k] for k, factor in combination)) for combination in mixing]
    return Regressor(
        Y=sympy.ImmutableMatrix(len(rows), len(theta), [x for row in Y for x in row]),
        theta=sympy.ImmutableMatrix(len(theta), 1, symbols),
        Y_base=sympy.ImmutableMatrix(len(rows), len(kept), [row[k] for row in Y for k in kept]),
        pi=sympy.ImmutableMatrix(len(pi), 1, pi),
    )


def _independent(
    rows: Sequence[Sequence[Trig]], order: Sequence[int], moving: set[int], words: Vocabulary
) -> tuple[list[int], list[list[tuple[int, Any]]]]:
    """Columns that carry all others, and for each its combination of columns.

    Columns are eliminated in the given order. With inertias before first moments before masses a
    pivot has no length in it, as a length only enters where a mass or a moment is moved by it, and
    nothing is divided by a polynomial.
    """
    table: dict[Any, Line] = defaultdict(dict)
    place = {column: k for k, column in enumerate(order)}
    for number, row in enumerate(rows):
        for column, entry in enumerate(row):
            for term in entry.terms():
                motion = tuple(pair for pair in term.powers if pair[0] in moving)
                fixed = tuple(pair for pair in term.powers if pair[0] not in moving)
                key = number, term.sine, term.angles, motion
                table[key].setdefault(place[column], {})[fixed] = term.coefficient
    lines = _spanning(list(table.values()))
    if not lines:
        return [], []

    def written(factors: dict[Powers, Fraction]) -> sympy.Expr:
        return sympy.Add(
            *(
                exact_number(number) * sympy.Mul(*(words.symbols[v] ** power for v, power in fixed))
                for fixed, number in factors.items()
            )
        )

    entries = {(i, k): written(x) for i, line in enumerate(lines) for k, x in line.items()}
    matrix = sympy.SparseMatrix(len(lines), len(order), entries)
    reduced, pivots = DomainMatrix.from_Matrix(matrix).to_field().rref()
    listed = reduced.to_Matrix()
    found = {
        order[pivot]: sorted(
            (order[k], listed[i, k]) for k in range(len(order)) if listed[i, k] != 0
        )
        for i, pivot in enumerate(pivots)
    }
    kept = sorted(found)
    return kept, [found[column] for column in kept]


def _spanning(lines: Sequence[Line]) -> list[Line]:
    """The shortest lines that span all: elimination with symbols costs more with every line.

    Lines are compared by their remainders modulo a large prime, for symbols drawn at random: what
    depends there and nowhere else has a chance of about 1e-16.
    """
    draw = Random(0)  # the same lines on every machine
    drawn: dict[int, int] = defaultdict(lambda: draw.randrange(1, PRIME))

    def remainder(factors: dict[Powers, Fraction]) -> int:
        total = 0
        for fixed, number in sorted(factors.items()):
            product = number.numerator * pow(number.denominator, -1, PRIME)
            for variable, power in fixed:
                product = product * pow(drawn[variable], power, PRIME) % PRIME
            total += product
        return total % PRIME

    kept: list[Line] = []
    reduced: dict[int, dict[int, int]] = {}  # by their first column, where they are one
    for line in sorted(lines, key=lambda line: (sum(map(len, line.values())), sorted(line))):
        left = {column: value for column, x in line.items() if (value := remainder(x))}
        while left and (first := min(left)) in reduced:
            factor = left[first]
            for column, value in reduced[first].items():
                left[column] = (left.get(column, 0) - factor * value) % PRIME
            left = {column: value for column, value in left.items() if value}
        if left:
            inverse = pow(left[min(left)], -1, PRIME)
            reduced[min(left)] = {column: value * inverse % PRIME for column, value in left.items()}
            kept.append(line)
    return kept
