"""Names, meanings and values of the symbols in an organism's equations."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, NamedTuple

import sympy

from modurob.errors import StateError, choices
from modurob.symbolic.trigonometric import Trig, exactly

GROUPS = ("mass", "length", "inertia", "gravity", "friction")
LATIN_END = "\u0180"  # the letters before it are in every TeX font
_NUMBERED = re.compile(r"m(\d+)")


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
            mark if mark.isdigit() or _is_letter(mark) else rf"\text{{{latex_text(mark)}}}"
            for mark in self.marks
        ]
        return f"{letter}_{{{','.join(marks)}}}" if marks else letter


class Vocabulary:
    """The symbols of one organism in the order they were introduced.

    Args:
        groups: Which quantities are symbols; the others enter with their numbers.
    """

    def __init__(self, groups: Collection[str]) -> None:
        self.groups = frozenset(groups)
        self.quantities: list[NamedSymbol] = []

    def variable(
        self, letter: str, marks: tuple[str, ...], meaning: str, unit: str, value: float | None
    ) -> Trig:
        """A new symbol."""
        return self.add(NamedSymbol(letter, marks, meaning, unit, value))

    def add(self, quantity: NamedSymbol) -> Trig:
        """A new symbol."""
        self.quantities.append(quantity)
        return Trig.variable(len(self.quantities) - 1)

    def copy(self) -> Vocabulary:
        """The same symbols, to which others can be added."""
        other = Vocabulary(self.groups)
        other.quantities.extend(self.quantities)
        return other

    def parameter(
        self,
        group: str,
        letter: str,
        marks: tuple[str, ...],
        meaning: str,
        unit: str,
        value: float,
    ) -> Any:
        """A number of the organism: a symbol if its group is one, zero if it is zero."""
        if value == 0:
            return 0
        if group not in self.groups:
            return exactly(value)
        return self.variable(letter, marks, meaning, unit, value)

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
    """The groups that a user wants as symbols."""
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
    """What stands behind the letters of a module's symbols: ``1`` for m1, else its name."""
    numbered = _NUMBERED.fullmatch(module)
    return numbered[1] if numbered else module


def latex_text(text: str) -> str:
    """Text for LaTeX: nothing in it is a command, and pdflatex knows every letter."""
    special = {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
    return "".join(
        special.get(c) or (rf"\{c}" if c in "_%&#${}" else c if c < LATIN_END else f"u{ord(c):04X}")
        for c in text
    )


def _is_letter(mark: str) -> bool:
    return len(mark) == 1 and mark.isascii() and mark.isalpha()
