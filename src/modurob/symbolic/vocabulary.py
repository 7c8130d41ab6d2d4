"""Names, meanings and values of the symbols in an organism's equations, and their substitution."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from numbers import Rational
from typing import Any, NamedTuple

import numpy as np
import sympy

from modurob.checks import is_number
from modurob.errors import StateError, choices
from modurob.symbolic.trigonometric import Trig, exactly

GROUPS = ("mass", "length", "inertia", "gravity", "friction", "stiffness")
LATIN_END = "\u0180"  # the letters before it are in every TeX font
_NUMBERED, _NAME = re.compile(r"m(\d+)"), re.compile(r"[A-Za-z]\w{0,63}")
NEAR = 1e-12  # from a multiple of pi/2: its sine and cosine are whole numbers


class NamedSymbol(NamedTuple):
    """A symbol.

    Attributes:
        letter, marks: ``m`` and ``("1",)`` make the name ``m1``.
        meaning, unit: For the list of symbols below the equations.
        value: The organism's own number; None for what the motion decides.
    """

    letter: str
    marks: tuple[str, ...]
    meaning: str
    unit: str
    value: float | None

    @property
    def name(self) -> str:
        """As in ``m1``, ``J1_x``, ``m_arm``."""
        tail = "_".join(self.marks)
        return f"{self.letter}_{tail}" if tail and not tail[0].isdigit() else self.letter + tail

    @property
    def latex(self) -> str:
        """As in ``m_{1}``, ``\\dot q_{2}``."""
        letter = {"dq": r"\dot q", "ddq": r"\ddot q", "tau": r"\tau"}.get(self.letter, self.letter)
        marks = [
            mark if re.fullmatch(r"\d+|[A-Za-z]", mark) else rf"\text{{{latex_text(mark)}}}"
            for mark in self.marks
        ]
        return f"{letter}_{{{','.join(marks)}}}" if marks else letter


class Vocabulary:
    """The symbols of one organism in the order they were introduced.

    Quantities of other groups than `groups` enter with their numbers.
    """

    def __init__(self, groups: Collection[str]) -> None:
        self.groups = frozenset(groups)
        self.quantities: list[NamedSymbol] = []

    def new(
        self,
        letter: str,
        marks: tuple[str, ...],
        meaning: str,
        unit: str,
        value: float | None = None,
    ) -> int:
        """Add a symbol; returns the number of its variable."""
        self.quantities.append(NamedSymbol(letter, marks, meaning, unit, value))
        return len(self.quantities) - 1

    def variable(self, letter: str, marks: tuple[str, ...], meaning: str, unit: str) -> Trig:
        """Add a symbol without a value of its own."""
        return Trig.variable(self.new(letter, marks, meaning, unit))

    def family(self, letter: str, marks: str, meaning: str, unit: str) -> list[int]:
        """Add one symbol for each mark; returns the numbers of their variables."""
        return [self.new(letter, (mark,), meaning, unit) for mark in marks]

    def copy(self) -> Vocabulary:
        """The same symbols, to which others can be added."""
        other = Vocabulary(self.groups)
        other.quantities.extend(self.quantities)
        return other

    def parameter(
        self, group: str, letter: str, marks: tuple[str, ...], meaning: str, unit: str, value: Any
    ) -> Any:
        """A number of the organism, or a symbol for its size if its group is among `groups`."""
        sign, size = -1 if value < 0 else 1, abs(float(value))
        if size == 0:
            return 0
        if group not in self.groups:
            return sign * exactly(size)
        return sign * Trig.variable(self.new(letter, marks, meaning, unit, size))

    @property
    def symbols(self) -> list[sympy.Symbol]:
        """Plain SymPy symbols, without assumptions, in the order of the variables."""
        return [sympy.Symbol(quantity.name) for quantity in self.quantities]

    def index(self, name: str, replaced: Collection[int] = ()) -> int:
        """The variable with a name, unless it was replaced."""
        names = [quantity.name for quantity in self.quantities]
        if name in names and (found := names.index(name)) not in replaced:
            return found
        shown = choices([each for k, each in enumerate(names) if k not in replaced])
        why = "was replaced by substitute()" if name in names else "is not in these equations"
        raise StateError(f"symbol {name!r} {why}: symbols are {shown}")


def chosen(symbols: str | Collection[str]) -> frozenset[str]:
    """The groups that are symbols, checked."""
    if isinstance(symbols, str):
        if symbols in ("all", "none"):
            return frozenset(GROUPS if symbols == "all" else ())
        symbols = (symbols,)
    wrong = [group for group in symbols if group not in GROUPS]
    if wrong:
        raise StateError(
            f"symbols must be 'all', 'none' or a selection of {choices(GROUPS)}, got {wrong[0]!r}"
        )
    return frozenset(symbols)


def label(module: str) -> str:
    """Mark in the names of a module's symbols: ``1`` for m1, else its name."""
    numbered = _NUMBERED.fullmatch(module)
    return numbered[1] if numbered else module


def latex_text(text: str) -> str:
    """Text for LaTeX: commands are escaped, and every letter is in TeX's fonts."""
    special = {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
    return "".join(
        special.get(c) or (rf"\{c}" if c in "_%&#${}" else c if c < LATIN_END else f"u{ord(c):04X}")
        for c in text
    )


# -- substitution ---------------------------------------------------------------------------------


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
    slides: Sequence[bool] | np.ndarray,
    replaced: Collection[int] = (),
) -> Given:
    """A user's mapping, checked; new symbols are added to `words`.

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
            variables[index] = _number(key, value)  # in springs
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
        return words.variable(name, (), f"in place of {old.name}", old.unit)
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
