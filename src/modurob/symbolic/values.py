"""Values for symbols: numbers, or other symbols."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from numbers import Rational
from typing import Any, NamedTuple

import sympy

from modurob.checks import is_number
from modurob.errors import StateError
from modurob.symbolic.trigonometric import Trig, exactly
from modurob.symbolic.vocabulary import NamedSymbol, Vocabulary

_NAME = re.compile(r"[A-Za-z]\w{0,63}")
NEAR = 1e-12  # from a multiple of pi/2: its sine and cosine are whole numbers


class Given(NamedTuple):
    """One substitution.

    Attributes:
        variables: Scalars for variables.
        angles: (cos, sin) for joints.
        hidden: The variables that no longer appear.
        wanted: The user's mapping.
    """

    variables: dict[int, Any]
    angles: dict[int, tuple[Any, Any]]
    hidden: frozenset[int]
    wanted: Mapping[Any, Any]

    def into(self, value: Trig) -> Trig:
        """The polynomial with the values in place."""
        return value.substituted(self.variables, self.angles)


def given(
    wanted: Mapping[Any, Any],
    words: Vocabulary,
    places: Sequence[int],
    slides: Sequence[bool],
    replaced: Collection[int] = (),
) -> Given:
    """A user's mapping, checked; symbols that are new are introduced to `words`.

    Args:
        places: The variables of the joints' displacements.
        slides: Which of these joints are prismatic.
        replaced: Variables that an earlier substitution removed.
    """
    variables: dict[int, Any] = {}
    angles: dict[int, tuple[Any, Any]] = {}
    turning = {place: joint for joint, place in enumerate(places) if not slides[joint]}
    for key, value in wanted.items():
        index = words.index(str(key) if isinstance(key, sympy.Symbol) else key, replaced)
        if index in turning:
            angles[turning[index]] = _cosine_and_sine(key, value)
        else:
            variables[index] = _scalar(key, value, words, replaced)
    back = {places[joint] for joint in angles}
    kept = {k for v in variables.values() if isinstance(v, Trig) for k in v.variables()}
    return Given(variables, angles, frozenset((set(variables) | back) - kept), wanted)


def _scalar(key: object, value: Any, words: Vocabulary, replaced: Collection[int]) -> Any:
    if isinstance(value, sympy.Symbol | str):
        name = str(value)
        names = [quantity.name for quantity in words.quantities]
        if name in names:
            return Trig.variable(words.index(name, replaced))
        if not _NAME.fullmatch(name):
            raise StateError(
                f"{name!r} for {key} is no symbol: a name has a letter first, then letters, digits "
                "and _; formulas are not evaluated"
            )
        old = words.quantities[words.index(str(key))]
        return words.add(NamedSymbol(name, (), f"in place of {old.name}", old.unit, None))
    return _number(key, value)


def _number(key: object, value: Any) -> Fraction:
    if isinstance(value, sympy.Rational):
        value = Fraction(int(value.p), int(value.q))
    elif isinstance(value, sympy.Expr) and value.is_number and value.is_real:
        value = float(value)
    if isinstance(value, Rational) and not isinstance(value, bool):
        return Fraction(value)
    if is_number(value):
        return exactly(float(value))
    raise StateError(f"{key} takes a finite number or the name of a symbol, got {value!r}")


def _cosine_and_sine(key: object, value: Any) -> tuple[Any, Any]:
    if isinstance(value, sympy.Symbol | str):
        raise StateError(f"joint angle {key} takes a finite number, got the name {str(value)!r}")
    angle = float(_number(key, value))
    quarter = round(2 * angle / math.pi)
    if abs(angle - quarter * math.pi / 2) < NEAR:
        return ((1, 0), (0, 1), (-1, 0), (0, -1))[quarter % 4]
    return exactly(math.cos(angle)), exactly(math.sin(angle))
