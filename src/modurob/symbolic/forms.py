"""Trigonometric polynomials as SymPy expressions: the normal form, and a shorter one to read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache, cmp_to_key
from math import gcd, lcm
from typing import Any

import sympy
from sympy.core.basic import Basic

from modurob.symbolic.trigonometric import Term, Trig

SIMPLE = 64  # largest denominator that is shown as a fraction; other numbers are decimals
DIGITS = 15  # of those decimals
BY_TREE = cmp_to_key(Basic.compare)

Powers = tuple[tuple[int, int], ...]
Wave = tuple[bool, tuple[tuple[int, int], ...]]


class ExpressionWriter:
    """Writes polynomials with the symbols of one organism.

    Args:
        symbols: Of the variables.
        angles: Of the joints.
        inertial, moving: Variables that are masses and inertias, and velocities and the like; the
            short form collects them.
    """

    def __init__(
        self,
        symbols: Sequence[sympy.Symbol],
        angles: Sequence[sympy.Symbol],
        inertial: Iterable[int],
        moving: Iterable[int],
    ) -> None:
        self.symbols, self.angles = symbols, angles
        self._inertial, self._moving = frozenset(inertial), frozenset(moving)
        self._product, self._wave = cache(self._new_product), cache(self._new_wave)
        self._power = cache(lambda variable, power: symbols[variable] ** power)
        self._number = cache(exact_number)
        self._sums = CanonicalSums()

    def expanded(self, value: Trig) -> sympy.Expr:
        """The normal form: a sum of terms, each rational * monomial * wave."""
        return self._sums.sum_of([self._factors(term) for term in value.terms()])

    def _factors(self, term: Term) -> list[sympy.Expr]:
        factors, number = [self._power(*pair) for pair in term.powers], term.coefficient
        if term.angles:
            wave = self._wave((term.sine, term.angles))
            if wave.is_Mul:  # SymPy may write sin(a - b) as -sin(b - a)
                number, wave = -number, -wave
            factors.append(wave)
        return [self._number(number), *factors] if number != 1 or not factors else factors

    def short(self, value: Trig) -> sympy.Expr:
        """The same, with common factors taken out and masses and velocities collected."""
        terms = list(value.terms())
        common = _common(terms)
        left = [term._replace(powers=_without(term.powers, common)) for term in terms]
        pieces = self._pieces(left)
        return sympy.Mul(self._product(common), sympy.Add(*pieces))

    def summands(self, value: Trig) -> list[sympy.Expr]:
        """The short form as a list of what it adds, no factor taken out of the whole."""
        return self._pieces(list(value.terms()))

    def _pieces(self, terms: list[Term]) -> list[sympy.Expr]:
        """One product for each wave, path and sum of masses."""
        tables: dict[tuple[Wave, Powers], Any] = defaultdict(lambda: defaultdict(dict))
        for term in terms:
            masses, speeds, rest = self._sorted(term.powers)
            tables[(term.sine, term.angles), rest][speeds][masses] = term.coefficient
        pieces = []
        for (wave, rest), by_speed in tables.items():
            sums: dict[Any, dict[Powers, Fraction]] = defaultdict(dict)
            for speeds, masses in by_speed.items():
                content, sum_ = _primitive(masses)
                sums[sum_][speeds] = content
            for sum_, speeds in sums.items():
                content, primitive = _primitive(speeds)
                pieces.append(
                    sympy.Mul(
                        display_number(content),
                        self._product(rest),
                        self._sum(primitive),
                        self._sum(sum_),
                        self._wave(wave),
                    )
                )
        return pieces

    def _sorted(self, powers: Powers) -> tuple[Powers, Powers, Powers]:
        masses = tuple(pair for pair in powers if pair[0] in self._inertial)
        speeds = tuple(pair for pair in powers if pair[0] in self._moving)
        rest = tuple(
            pair for pair in powers if pair[0] not in self._inertial and pair[0] not in self._moving
        )
        return masses, speeds, rest

    def _sum(self, terms: Iterable[tuple[Powers, Fraction]]) -> sympy.Expr:
        return sympy.Add(
            *(sympy.Mul(display_number(factor), self._product(powers)) for powers, factor in terms)
        )

    def _new_product(self, powers: Powers) -> sympy.Expr:
        return sympy.Mul(*(self._power(*pair) for pair in powers))

    def _new_wave(self, wave: Wave) -> sympy.Expr:
        sine, angles = wave
        total = sympy.Add(*(factor * self.angles[joint] for joint, factor in angles))
        function: Callable[[Any], Any] = sympy.sin if sine else sympy.cos
        return function(total)


def exact_number(value: Fraction) -> sympy.Expr:
    """A rational for SymPy."""
    return sympy.Rational(value.numerator, value.denominator)


def display_number(value: Fraction) -> sympy.Expr:
    """A number for people: a short fraction, or a decimal."""
    if value.denominator <= SIMPLE:
        return exact_number(value)
    return sympy.Float(float(value), DIGITS)


def _common(terms: Sequence[Term]) -> Powers:
    """The monomial that divides all terms."""
    if not terms:
        return ()
    least = dict(terms[0].powers)
    for term in terms[1:]:
        powers = dict(term.powers)
        least = {v: min(p, powers[v]) for v, p in least.items() if v in powers}
    return tuple(sorted(least.items()))


def _without(powers: Powers, common: Powers) -> Powers:
    taken = dict(common)
    left = ((v, p - taken.get(v, 0)) for v, p in powers)
    return tuple((v, p) for v, p in left if p)


def _primitive(
    terms: Mapping[Powers, Fraction],
) -> tuple[Fraction, tuple[tuple[Powers, Fraction], ...]]:
    """A sum as content times a sum with whole coprime factors, the first one positive."""
    ordered = sorted(terms.items())
    scale = lcm(*(factor.denominator for _, factor in ordered))
    whole = [int(factor * scale) for _, factor in ordered]
    common = gcd(*whole) * (-1 if whole[0] < 0 else 1)
    content = Fraction(common, scale)
    return content, tuple((powers, factor / content) for powers, factor in ordered)


class CanonicalSums:
    """Sums of products for SymPy, put together the way SymPy itself would.

    `sympy.Add` and `sympy.Mul` look for terms and factors that belong together and sort them by
    comparing trees. In a normal form nothing belongs together, and all products consist of the same
    few factors. So those are compared once, and terms are sorted by the numbers they got.
    """

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
        self._rank({factor for factors in terms for factor in factors})
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

    def _rank(self, factors: set[sympy.Expr]) -> None:
        """Rank factors, and classes of terms, in SymPy's order."""
        new = factors - self._ranks.keys()
        if not new:
            return
        ordered = sorted([*self._ranks, *new], key=BY_TREE)  # the known ones come sorted
        self._ranks = {factor: rank for rank, factor in enumerate(ordered)}
        examples = {type(factor): factor for factor in ordered}
        examples[sympy.Mul] = sympy.Symbol("x") * sympy.Symbol("y")
        classes = sorted(examples.values(), key=BY_TREE)
        self._classes = {type(example): rank for rank, example in enumerate(classes)}
