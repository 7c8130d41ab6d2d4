"""Trigonometric polynomials: the canonical normal form of the equations of motion.

Every entry of M, C and N is a sum of products of parameters, velocities, paths, and sines and
cosines of joint angles. Products of sines and cosines are sums of them, so each entry is

    sum of   rational * monomial * cos or sin of (k1 q1 + k2 q2 + ...)

with whole k. Written so, it is unique: two equal expressions have the same terms. `Trig` computes
in this form, exactly, and the recursions of `modurob.equations` run on it as they do on floats.

Monomials and angle sums are packed into whole numbers, so that multiplying them is one addition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from math import gcd, lcm
from typing import Any, NamedTuple

import numpy as np

EXPONENT_BITS = 8  # of a variable in a monomial: powers up to 255
FACTOR_BITS = 8  # of a joint in an angle sum: factors from -127 to 127
CONSTANT = 0  # the wave cos(0)
UNPACKED = 2**16  # monomials and angle sums that are remembered: each appears in many entries

Polynomial = dict[int, int]  # packed monomial -> coefficient
Waves = dict[int, Polynomial]  # packed wave -> coefficient: twice the angle sum, plus 1 for a sine


class Term(NamedTuple):
    """One term: ``coefficient * product of variable^power * cos or sin of the angle sum``.

    Attributes:
        coefficient: Exact.
        powers: (variable, power) pairs, in the order of the variables.
        sine: Whether the wave is a sine.
        angles: (joint, factor) pairs in the order of the joints, the first factor positive.
    """

    coefficient: Fraction
    powers: tuple[tuple[int, int], ...]
    sine: bool
    angles: tuple[tuple[int, int], ...]


class Trig:
    """An exact trigonometric polynomial: the sum of its waves over `scale`."""

    __slots__ = ("scale", "waves")

    def __init__(self, waves: Waves, scale: int = 1) -> None:
        self.waves, self.scale = waves, scale

    @staticmethod
    def variable(index: int) -> Trig:
        """A parameter, a velocity or a path."""
        return Trig({CONSTANT: {1 << (EXPONENT_BITS * index): 1}})

    @staticmethod
    def number(value: Any) -> Trig:
        """A constant."""
        exact = exactly(value)
        return Trig({CONSTANT: {0: exact.numerator}} if exact else {}, exact.denominator)

    # -- arithmetic ------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Trig:
        if not isinstance(other, Trig):
            if not _is_number(other):
                return NotImplemented
            if other == 0:
                return self
            other = Trig.number(other)
        scale = lcm(self.scale, other.scale)
        waves = _scaled(self.waves, scale // self.scale)
        up = scale // other.scale
        for wave, polynomial in other.waves.items():
            _add(waves, wave, polynomial, up)
        return Trig(waves, scale)

    __radd__ = __add__

    def __neg__(self) -> Trig:
        return Trig(_scaled(self.waves, -1), self.scale)

    def __sub__(self, other: Any) -> Trig:
        return self + (-other)

    def __rsub__(self, other: Any) -> Trig:
        return (-self) + other

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, Trig):
            return self._times_number(other) if _is_number(other) else NotImplemented
        waves: Waves = {}
        plain = not (self.waves.keys() - {CONSTANT} and other.waves.keys() - {CONSTANT})
        for one, p in self.waves.items():
            for two, r in other.waves.items():
                product = _times(p, r)
                if plain:
                    _add(waves, one + two, product, 1)
                else:
                    _add_product(waves, one, two, product)
        return _reduced(waves, self.scale * other.scale * (1 if plain else 2))

    __rmul__ = __mul__

    def _times_number(self, value: Any) -> Any:
        if value == 0:
            return 0
        if value == 1:
            return self
        exact = exactly(value)
        return _reduced(_scaled(self.waves, exact.numerator), self.scale * exact.denominator)

    def __truediv__(self, other: Any) -> Any:
        return self._times_number(1 / exactly(other)) if _is_number(other) else NotImplemented

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trig):
            if not _is_number(other):
                return NotImplemented
            other = Trig.number(other)
        return not (self - other).waves

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"<Trig of {len(self)} terms>"

    def __len__(self) -> int:
        return sum(len(polynomial) for polynomial in self.waves.values())

    # -- calculus --------------------------------------------------------------------------------

    def derivative(self, variable: int) -> Trig:
        """By a variable of the monomials."""
        shift = EXPONENT_BITS * variable
        waves: Waves = {}
        for wave, polynomial in self.waves.items():
            found = {
                monomial - (1 << shift): power * factor
                for monomial, factor in polynomial.items()
                if (power := monomial >> shift & ((1 << EXPONENT_BITS) - 1))
            }
            if found:
                waves[wave] = found
        return _reduced(waves, self.scale)

    def angle_derivative(self, joint: int) -> Trig:
        """By a joint angle."""
        waves: Waves = {}
        for wave, polynomial in self.waves.items():
            factor = dict(_unpacked_angles(wave >> 1)).get(joint, 0)
            if factor:  # cos -> -sin, sin -> cos
                sign = factor if wave & 1 else -factor
                waves[wave ^ 1] = {m: sign * coefficient for m, coefficient in polynomial.items()}
        return _reduced(waves, self.scale)

    def linear_in(self, variables: Sequence[int]) -> tuple[list[Trig], Trig]:
        """The factors of variables that enter linearly, and the rest without them."""
        place = {variable: k for k, variable in enumerate(variables)}
        parts: list[Waves] = [{} for _ in variables]
        rest: Waves = {}
        for wave, polynomial in self.waves.items():
            for monomial, coefficient in polynomial.items():
                found = [(v, power) for v, power in _unpacked_powers(monomial) if v in place]
                if not found:
                    rest.setdefault(wave, {})[monomial] = coefficient
                    continue
                if found != [(found[0][0], 1)]:
                    raise ValueError("not linear in the given variables")
                left = monomial - (1 << (EXPONENT_BITS * found[0][0]))
                parts[place[found[0][0]]].setdefault(wave, {})[left] = coefficient
        return [_reduced(part, self.scale) for part in parts], _reduced(rest, self.scale)

    def substituted(
        self, variables: Mapping[int, Any], angles: Mapping[int, tuple[Any, Any]]
    ) -> Trig:
        """With scalars in place of variables, and (cos, sin) in place of joint angles."""
        total: Any = 0
        for wave, polynomial in self.waves.items():
            cosine, sine = _split_wave(wave >> 1, angles)
            factor: Any = 0
            for monomial, coefficient in polynomial.items():
                product: Any = Fraction(coefficient, self.scale)
                for variable, power in _unpacked_powers(monomial):
                    value = variables.get(variable)
                    one = Trig.variable(variable) if value is None else value
                    for _ in range(power):
                        product = one * product
                factor = product + factor
            total = factor * (sine if wave & 1 else cosine) + total
        return trig(total)

    def with_coefficients(self, change: Callable[[Fraction], Fraction]) -> Trig:
        """Each coefficient changed; terms whose coefficient becomes zero disappear."""
        changed = {
            wave: {
                m: exact
                for m, c in polynomial.items()
                if (exact := change(Fraction(c, self.scale)))
            }
            for wave, polynomial in self.waves.items()
        }
        scale = lcm(*(exact.denominator for each in changed.values() for exact in each.values()))
        waves = {
            wave: {monomial: int(exact * scale) for monomial, exact in each.items()}
            for wave, each in changed.items()
            if each
        }
        return Trig(waves, scale)

    # -- terms -----------------------------------------------------------------------------------

    def terms(self) -> Iterator[Term]:
        """The terms, constants first, then by their angles, then by their monomials."""
        found = []
        for wave, polynomial in self.waves.items():
            angles, sine = _unpacked_angles(wave >> 1), bool(wave & 1)
            flip = bool(angles) and angles[0][1] < 0
            if flip:
                angles = tuple((joint, -factor) for joint, factor in angles)
            for monomial, coefficient in polynomial.items():
                exact = Fraction(-coefficient if flip and sine else coefficient, self.scale)
                found.append(Term(exact, _unpacked_powers(monomial), sine, angles))
        yield from sorted(found, key=_place)

    def variables(self) -> set[int]:
        """The variables of its monomials."""
        monomials = {monomial for polynomial in self.waves.values() for monomial in polynomial}
        return {variable for monomial in monomials for variable, _ in _unpacked_powers(monomial)}

    def evaluate(self, variables: Mapping[int, Any], angles: Mapping[int, Any]) -> Any:
        """The value for numbers or arrays in place of the variables and joint angles."""
        total: Any = 0.0
        for wave, polynomial in self.waves.items():
            factor: Any = 0.0
            for monomial, coefficient in polynomial.items():
                product: Any = coefficient / self.scale
                for variable, power in _unpacked_powers(monomial):
                    product = product * variables[variable] ** power
                factor = factor + product
            angle = sum(k * angles[joint] for joint, k in _unpacked_angles(wave >> 1))
            total = total + factor * (np.sin(angle) if wave & 1 else np.cos(angle))
        return total


class Angle:
    """A joint angle: enters the equations by its cosine and sine, in springs as itself."""

    def __init__(self, joint: int, backwards: bool = False, angle: Trig | None = None) -> None:
        self._wave = 2 << (FACTOR_BITS * joint)
        self._sign = -1 if backwards else 1
        self.angle = angle

    def cos(self) -> Trig:
        return Trig({self._wave: {0: 1}})

    def sin(self) -> Trig:
        return Trig({self._wave | 1: {0: self._sign}})


def exactly(value: Any) -> Fraction:
    """A rational; a float is the shortest decimal that it prints as, so 0.1 is one tenth."""
    return (
        Fraction(repr(float(value))) if isinstance(value, float | np.floating) else Fraction(value)
    )


def trig(value: Any) -> Trig:
    """A result of the recursions, which may have become a plain number, as a Trig."""
    return value if isinstance(value, Trig) else Trig.number(value)


def _place(term: Term) -> tuple[Any, ...]:
    return len(term.angles), term.angles, term.powers, term.sine


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Fraction | np.floating | np.integer)


def _times(p: Polynomial, r: Polynomial) -> Polynomial:
    if len(p) > len(r):
        p, r = r, p
    product: Polynomial = {}
    for one, a in p.items():
        for two, b in r.items():
            monomial = one + two
            product[monomial] = product.get(monomial, 0) + a * b
    return product


def _add(waves: Waves, wave: int, polynomial: Polynomial, factor: int) -> None:
    """Add factor * polynomial to a wave in place; what cancels disappears."""
    held = waves.get(wave)
    if held is None:
        held = waves[wave] = {}
    for monomial, coefficient in polynomial.items():
        total = held.get(monomial, 0) + factor * coefficient
        if total:
            held[monomial] = total
        else:
            held.pop(monomial, None)
    if not held:
        del waves[wave]


def _add_product(waves: Waves, one: int, two: int, product: Polynomial) -> None:
    """Add twice the product of two waves with the coefficient `product`."""
    if one == CONSTANT or two == CONSTANT:
        _add(waves, one + two, product, 2)
        return
    a, b, sine_a, sine_b = one >> 1, two >> 1, one & 1, two & 1
    plus, minus, turned = a + b, a - b, 1  # packed angle sums are positive
    if minus < 0:
        minus, turned = -minus, -1
    if sine_a == sine_b:  # 2 cos cos = cos- + cos+,  2 sin sin = cos- - cos+
        _add(waves, minus << 1, product, 1)
        _add(waves, plus << 1, product, -1 if sine_a else 1)
    else:  # 2 sin a cos b = sin+ + sin-,  2 cos a sin b = sin+ - sin-
        _add(waves, plus << 1 | 1, product, 1)
        if minus:
            _add(waves, minus << 1 | 1, product, turned if sine_a else -turned)


def _scaled(waves: Waves, factor: int) -> Waves:
    if factor == 1:
        return {wave: dict(polynomial) for wave, polynomial in waves.items()}
    return {
        wave: {monomial: factor * coefficient for monomial, coefficient in polynomial.items()}
        for wave, polynomial in waves.items()
    }


def _reduced(waves: Waves, scale: int) -> Trig:
    """In lowest terms."""
    if scale != 1:
        common = scale
        for polynomial in waves.values():
            common = gcd(common, *polynomial.values())
            if common == 1:
                return Trig(waves, scale)
        waves = {
            wave: {monomial: coefficient // common for monomial, coefficient in polynomial.items()}
            for wave, polynomial in waves.items()
        }
        scale //= common
    return Trig(waves, scale)


def _split_wave(packed: int, angles: Mapping[int, tuple[Any, Any]]) -> tuple[Any, Any]:
    """cos and sin of an angle sum, some of whose joints have a given (cos, sin)."""
    cosine: Any = 1
    sine: Any = 0
    for joint, factor in _unpacked_angles(packed):
        sign = -1 if factor < 0 else 1
        c, s = angles.get(joint) or (Angle(joint).cos(), Angle(joint).sin())
        for _ in range(abs(factor)):
            cosine, sine = cosine * c - sine * s * sign, sine * c + cosine * s * sign
    return cosine, sine


@lru_cache(maxsize=UNPACKED)
def _unpacked_powers(monomial: int) -> tuple[tuple[int, int], ...]:
    powers, variable = [], 0
    while monomial:
        power = monomial & ((1 << EXPONENT_BITS) - 1)
        if power:
            powers.append((variable, power))
        monomial, variable = monomial >> EXPONENT_BITS, variable + 1
    return tuple(powers)


@lru_cache(maxsize=UNPACKED)
def _unpacked_angles(packed: int) -> tuple[tuple[int, int], ...]:
    """(joint, factor) pairs of an angle sum; digits above half the base are negative ones."""
    found, joint, base = [], 0, 1 << FACTOR_BITS
    while packed:
        factor = packed & (base - 1)
        if factor >= base >> 1:
            factor -= base
        if factor:
            found.append((joint, factor))
        packed, joint = (packed - factor) >> FACTOR_BITS, joint + 1
    return tuple(found)
