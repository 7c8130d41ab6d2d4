"""Sums of products for SymPy, put together the way SymPy itself would.

`sympy.Add` and `sympy.Mul` look for terms and factors that belong together and sort them by
comparing trees. In a normal form nothing belongs together, and all products consist of the same few
factors. So those are compared once, and terms are sorted by the numbers they got.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key
from typing import Any

import sympy
from sympy.core.basic import Basic

_BY_TREE = cmp_to_key(Basic.compare)


class CanonicalSums:
    """Makes sums of products of factors that it has ranked."""

    def __init__(self) -> None:
        self._ranks: dict[sympy.Expr, int] = {}
        self._classes: dict[type, int] = {}

    def sum_of(self, terms: Sequence[Sequence[sympy.Expr]]) -> Any:
        """The sum of products, each given by its factors: a number, if any, first.

        No two products may have the same factors apart from the number, and no factor may be a sum
        or a product.
        """
        if not terms:
            return sympy.S.Zero
        self._learn({factor for factors in terms for factor in factors})
        keyed = [self._product(factors) for factors in terms]
        keyed.sort(key=lambda pair: pair[0])
        products = [product for _, product in keyed]
        numbers = [product for product in products if product.is_Number]
        ordered = numbers + [product for product in products if not product.is_Number]
        return ordered[0] if len(ordered) == 1 else sympy.Add._from_args(tuple(ordered))

    def _product(self, factors: Sequence[sympy.Expr]) -> tuple[Any, Any]:
        """A product and its place among others: by class, number of factors, then the factors."""
        ranks = self._ranks
        if len(factors) == 1:
            (only,) = factors
            return (self._classes[type(only)], 1, (ranks[only],)), only
        start = 1 if factors[0].is_Number else 0
        ordered = [*factors[:start], *sorted(factors[start:], key=ranks.__getitem__)]
        place = self._classes[sympy.Mul], len(ordered), tuple(ranks[f] for f in ordered)
        return place, sympy.Mul._from_args(tuple(ordered))

    def _learn(self, factors: set[sympy.Expr]) -> None:
        """Rank factors, and classes of terms, in SymPy's order."""
        new = factors - self._ranks.keys()
        if not new:
            return
        ordered = sorted([*self._ranks, *new], key=_BY_TREE)  # the known ones come sorted
        self._ranks = {factor: rank for rank, factor in enumerate(ordered)}
        examples = {type(factor): factor for factor in ordered}
        examples[sympy.Mul] = sympy.Symbol("x") * sympy.Symbol("y")
        classes = sorted(examples.values(), key=_BY_TREE)
        self._classes = {type(example): rank for rank, example in enumerate(classes)}
