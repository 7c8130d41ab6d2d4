"""Equations for the page, entry by entry, computed in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from modurob.scenario.exports import ExportRequest
from modurob.scenario.scenario import model_options
from modurob.symbolic import Equations

MOST_TERMS = 120  # shown of one entry: a page with thousands of terms is too slow
UNFOLDED = 16  # terms of one entry that are seen at once
DIGITS = 5  # of numbers
MATHML = "http://www.w3.org/1998/Math/MathML"
TIMES = "&InvisibleTimes;"


class EntryRequest(NamedTuple):
    """An entry of the equations of a body."""

    body: ExportRequest
    symbols: str  # ``all``, or ``none`` for the organism's own numbers
    entry: str  # such as ``M[1,2]``


_held: tuple[Any, Equations] | None = None  # the last ones, for the next entry


def _equations(request: EntryRequest) -> Equations:
    global _held
    key = request.body.organism, model_options(request.body.settings), request.symbols
    if _held is None or _held[0] != key:
        _held = (key, request.body.equations(request.symbols))
    return _held[1]


def entry(request: EntryRequest, progress: Callable[[float], Any]) -> dict[str, Any]:
    """MathML of an entry, its symbols, and how much of it is shown."""
    equations = _equations(request)
    progress(0.3)
    parsed = equations.parse_entry(request.entry)
    value = equations.exact_entry(parsed)
    terms = len(value)
    progress(0.6)
    expression = equations.entry(request.entry, short=terms <= MOST_TERMS)
    return {
        "entry": parsed.name,
        "mathml": _mathml(equations, parsed, expression, terms),
        "terms": terms,
        "shown": min(terms, MOST_TERMS),
        "symbols": symbols(equations, equations.names_in(value)),
    }


def symbols(equations: Equations, names: set[str]) -> list[dict[str, Any]]:
    """The symbols with these names, for `tables.symbols`."""
    return [
        {"name": q.name, "meaning": q.meaning, "unit": q.unit, "value": q.value}
        for q in equations.quantities
        if q.name in names
    ]


def latex(request: EntryRequest, progress: Callable[[float], Any]) -> str:
    """All of an entry as LaTeX."""
    equations = _equations(request)
    progress(0.3)
    return (
        f"{request.entry.replace('[', '_{').replace(']', '}')} = {equations.latex(request.entry)}"
    )


def _mathml(equations: Equations, entry: Any, expression: Any, terms: int) -> str:
    """One ``math`` for each term, so that lines break between them; many terms are folded."""
    printer = _printer(equations)
    index = f"{entry.row},{entry.column}" if entry.column else f"{entry.row}"
    left = f"<msub><mi>{entry.matrix}</mi><mn>{index}</mn></msub><mo>=</mo>"
    pieces = [
        f"{_sign(term, k)}{printer.doprint(_unsigned(term)).replace(TIMES, '&#x2062;')}"
        for k, term in enumerate(_terms(_rounded(expression)))
    ]
    if terms > MOST_TERMS:
        pieces.append("<mo>+</mo><mo>⋯</mo>")
    pieces[0] = left + pieces[0]
    shown = [f'<math xmlns="{MATHML}"><mrow>{piece}</mrow></math>' for piece in pieces]
    text = " ".join(shown[:UNFOLDED])
    if len(shown) > UNFOLDED:
        rest = len(shown) - UNFOLDED
        text += (
            f"<details><summary>{rest} more terms</summary>{' '.join(shown[UNFOLDED:])}</details>"
        )
    return f'<div class="terms">{text}</div>'


def _terms(expression: Any) -> list[Any]:
    """The terms of a sum, as many as are shown."""
    return expression.as_ordered_terms()[:MOST_TERMS] if expression.is_Add else [expression]


def _sign(term: Any, index: int) -> str:
    negative = term.could_extract_minus_sign()
    if not (negative or index):
        return ""
    form = ' form="infix"' if index else ""  # with its spaces, also at the beginning of a line
    return f"<mo{form}>{'−' if negative else '+'}</mo>"


def _unsigned(term: Any) -> Any:
    """A term without its sign."""
    return -term if term.could_extract_minus_sign() else term


def _rounded(expression: Any) -> Any:
    """Its numbers with a few digits: LaTeX and C have all of them."""
    from sympy import Float

    return expression.xreplace({x: Float(x, DIGITS) for x in expression.atoms(Float)})


def _printer(equations: Equations) -> Any:
    """A printer whose symbols say which joint or module they belong to."""
    from modurob.symbolic.output import MathMl
    from modurob.symbolic.vocabulary import label

    joints = equations.model.joint_names
    modules = {label(name): name for name in equations.model.modules}
    quantities = {q.name: q for q in equations.quantities}

    class Linked(MathMl):
        def _print_Symbol(self, sym: Any, style: str = "plain") -> Any:
            element = super()._print_Symbol(sym, style)
            quantity = quantities.get(sym.name)
            if quantity is None or not quantity.marks:
                return element
            mark = quantity.marks[0]
            if quantity.letter in ("q", "dq", "ddq") and mark.isdigit():
                element.setAttribute("data-joint", joints[int(mark) - 1])
            elif quantity.letter in ("m", "J") and mark in modules:
                element.setAttribute("data-module", modules[mark])
            return element

    return Linked(equations.quantities)
