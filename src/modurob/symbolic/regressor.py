"""The equations as a linear map of the inertial parameters, and which of those can be told apart.

``tau = Y(q, dq, ddq) theta`` with ten parameters a link. Not all of them act on the joint forces,
and some only together; the base parameters pi are the fewest combinations with the same forces,
``Y theta = Y_b pi``. They follow from exact elimination: every entry of Y is a sum of independent
functions of the motion, so columns depend on each other exactly if their coefficients do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import sympy
from sympy.polys.matrices import DomainMatrix

from modurob.symbolic.exact import Exact
from modurob.symbolic.forms import Writer, exact_number
from modurob.symbolic.trigonometric import Trig
from modurob.symbolic.vocabulary import Vocabulary

MOVING = ("q", "dq", "ddq", "V", "dV", "e")  # letters of what changes during a motion


class Regressor(NamedTuple):
    """``tau = Y theta = Y_base pi``, friction aside.

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


def regressor(exact: Exact, words: Vocabulary, writer: Writer) -> Regressor:
    """Take the inverse dynamics apart; `exact` has whole links as parameters."""
    letters = [quantity.letter for quantity in words.quantities]
    first = 0 if exact.offset else 1
    theta = [
        k
        for k, quantity in enumerate(words.quantities)
        if quantity.letter[0] in "mhJ" and int(quantity.marks[0]) >= first
    ]
    rows = [tau.linear_in(theta)[0] for tau in exact.forces()]
    moving = {k for k, letter in enumerate(letters) if letter in MOVING}
    kept, mixing = _independent(rows, len(theta), moving, words)
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
    rows: Sequence[Sequence[Trig]], columns: int, moving: set[int], words: Vocabulary
) -> tuple[list[int], list[list[tuple[int, Any]]]]:
    """Columns that carry all others, and for each the combination of columns it stands for."""
    table: dict[Any, dict[int, Any]] = defaultdict(dict)
    for number, row in enumerate(rows):
        for column, entry in enumerate(row):
            for term in entry.terms():
                motion = tuple(pair for pair in term.powers if pair[0] in moving)
                fixed = (pair for pair in term.powers if pair[0] not in moving)
                factor = exact_number(term.coefficient) * sympy.Mul(
                    *(words.symbols[variable] ** power for variable, power in fixed)
                )
                key = number, term.sine, term.angles, motion
                table[key][column] = table[key].get(column, 0) + factor
    distinct = {tuple(sorted(line.items())) for line in table.values()}
    if not distinct:
        return [], []
    lines = [dict(line) for line in distinct]
    matrix = sympy.SparseMatrix(
        len(lines), columns, {(i, j): x for i, line in enumerate(lines) for j, x in line.items()}
    )
    reduced, pivots = DomainMatrix.from_Matrix(matrix).to_field().rref()
    listed = reduced.to_Matrix()
    combinations = [
        [(j, listed[i, j]) for j in range(columns) if listed[i, j] != 0] for i in range(len(pivots))
    ]
    return list(pivots), combinations
