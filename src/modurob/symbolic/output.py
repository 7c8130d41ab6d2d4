"""Equations on paper and on screen: LaTeX, Markdown, MathML and plain text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import sympy
from sympy.printing.latex import LatexPrinter
from sympy.printing.mathml import MathMLPresentationPrinter

from modurob.symbolic.forms import ExpressionWriter
from modurob.symbolic.trigonometric import Trig
from modurob.symbolic.vocabulary import NamedSymbol, latex_text

if TYPE_CHECKING:
    from modurob.symbolic.equations import Equations, MatrixEntry

LINE = 64  # visible characters of a formula that fit on a line of an A4 page
FORMATS = ("text", "markdown", "latex", "mathml")
PREAMBLE = r"""\documentclass[10pt,a4paper]{article}
\usepackage{amsmath}
\usepackage[margin=20mm]{geometry}
\allowdisplaybreaks
\begin{document}
"""


class Latex(LatexPrinter):
    """SymPy's printer with the brackets that people write: cos q_1, cos(q_1 + q_2)."""

    def _print_sin(self, expr: Any, exp: Any = None) -> str:
        return self._wave(r"\sin", expr, exp)

    def _print_cos(self, expr: Any, exp: Any = None) -> str:
        return self._wave(r"\cos", expr, exp)

    def _wave(self, name: str, expr: Any, exp: Any) -> str:
        argument, power = expr.args[0], f"^{{{exp}}}" if exp else ""
        inside = self._print(argument)
        return f"{name}{power} {inside}" if argument.is_Symbol else f"{name}{power}({inside})"


FUNCTIONS = ("sin", "cos")
THIN = "0.17em"  # before a function, as in TeX


class MathMl(MathMLPresentationPrinter):
    """SymPy's printer with our subscripts, dots for rates, and signs and spaces as in print."""

    def __init__(self, quantities: Sequence[NamedSymbol]) -> None:
        super().__init__({})
        self._quantities = {q.name: q for q in quantities}

    def _print_Symbol(self, sym: Any, style: str = "plain") -> Any:
        quantity = self._quantities.get(sym.name)
        if quantity is None:
            return super()._print_Symbol(sym, style)
        dots = {"dq": "\u02d9", "ddq": "\u00a8", "dV": "\u02d9"}.get(quantity.letter)
        letter = self._element("mi", quantity.letter.lstrip("d") if dots else quantity.letter)
        if dots:
            over = self.dom.createElement("mover")
            over.appendChild(letter)
            over.appendChild(self._element("mo", dots))
            letter = over
        if not quantity.marks:
            return letter
        whole = self.dom.createElement("msub")
        whole.appendChild(letter)
        whole.appendChild(self._element("mi", ",".join(quantity.marks)))
        return whole

    def _print_Mul(self, expr: Any) -> Any:
        row: Any = super()._print_Mul(expr)
        for factor in row.childNodes[1:]:
            times, first = factor.previousSibling, factor
            while first.tagName in ("mrow", "msup"):
                first = first.firstChild
            if (
                times.tagName == "mo"
                and first.tagName == "mi"
                and first.firstChild.data in FUNCTIONS
            ):
                times.setAttribute("rspace", THIN)
        return row

    def _print_Function(self, e: Any) -> Any:
        row: Any = super()._print_Function(e)
        for bracket in (row.lastChild.firstChild, row.lastChild.lastChild):
            bracket.setAttribute("stretchy", "false")
        return row

    def doprint(self, expr: Any) -> str:
        return super().doprint(expr).replace(">-</mo>", ">&#8722;</mo>")  # no hyphen

    def _print_Pow(self, e: Any) -> Any:
        """A power of a symbol with its exponent above the subscript, not above all of it."""
        made: Any = super()._print_Pow(e)
        if made.tagName != "msup" or made.firstChild.tagName != "msub":
            return made
        base: Any = made.firstChild
        base.tagName = base.nodeName = "msubsup"
        base.appendChild(made.lastChild)
        return base

    def _element(self, kind: str, text: str) -> Any:
        element = self.dom.createElement(kind)
        element.appendChild(self.dom.createTextNode(text))
        return element


class EquationPrinter:
    """Prints entries of one set of equations."""

    def __init__(self, writer: ExpressionWriter, quantities: Sequence[NamedSymbol]) -> None:
        self.writer = writer
        names = {sympy.Symbol(q.name): q.latex for q in quantities}
        self._latex = Latex({"symbol_names": names})
        self._mathml = MathMl(quantities)

    def text(self, value: Trig) -> str:
        return sympy.sstr(self.writer.short(value)).replace("**", "^").replace("*", " ")

    def latex(self, value: Trig) -> str:
        """On one line."""
        return self._latex.doprint(self.writer.short(value))

    def latex_lines(self, value: Trig, width: int) -> list[str]:
        """On as many lines as it takes; only sums are broken."""
        whole = self.latex(value)
        if _visible(whole) <= width:
            return [whole]
        lines, line = [], ""
        for piece in sympy.Add(*self.writer.summands(value)).as_ordered_terms():
            text = self._latex.doprint(piece)
            joined = text if not line and not lines else _signed(text)
            if line and _visible(line) + _visible(joined) > width:
                lines.append(line)
                line = ""
            line = f"{line} {joined}" if line else joined
        return [*lines, line]

    def mathml(self, value: Trig, name: str) -> str:
        """One equation as a <math> element."""
        left = f"<mrow><msub><mi>{name[0]}</mi><mn>{name[2:-1]}</mn></msub><mo>=</mo></mrow>"
        body = self._mathml.doprint(self.writer.short(value))
        return (
            '<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">'
            f"<mrow>{left}{body}</mrow></math>"
        )


def written(
    equations: Equations, form: str, entries: Sequence[MatrixEntry], printer: EquationPrinter
) -> str:
    """Entries in one of the `FORMATS`, without those that are zero, and a list of the symbols."""
    values = {entry: equations.exact_entry(entry) for entry in entries}
    shown = {e: v for e, v in values.items() if len(v) or len(entries) == 1}
    if form == "mathml":
        return "\n".join(printer.mathml(value, e.name) for e, value in shown.items()) + "\n"
    names = set[str]().union(*map(equations.names_in, shown.values()))
    words = [quantity for quantity in equations.quantities if quantity.name in names]
    remark = "M is symmetric." if len(values) > 1 else ""
    if len(shown) < len(values):
        remark = f"{remark} All other entries are zero."
    if form == "text":
        lines = [f"{entry.name} = {printer.text(value)}" for entry, value in shown.items()]
        width = max((len(q.name) for q in words), default=0)
        where = [f"  {q.name:<{width}}  {q.meaning} [{q.unit}] {_value(q)}".rstrip() for q in words]
        lines += [*([remark] if remark else []), "where", *where]
    elif form == "markdown":
        table = ["| symbol | meaning | unit | value |", "| --- | --- | --- | --- |"]
        table += [f"| ${q.latex}$ | {q.meaning} | {q.unit} | {_value(q)[2:]} |" for q in words]
        formulas = ["$$", _aligned("aligned", shown, printer), "$$", ""]
        lines = [*formulas, *([remark, ""] if remark else []), *table]
    else:
        items = [rf"\item ${q.latex}$: {latex_text(q.meaning)}{_latex_value(q)}" for q in words]
        where = [rf"\noindent {remark} Here", r"\begin{itemize}", *items, r"\end{itemize}"]
        lines = [_aligned("align*", shown, printer), *(where if words else [])]
    return "\n".join(lines) + "\n"


def document(body: str, title: str) -> str:
    """A file that pdflatex takes as it is."""
    heading = rf"\section*{{{latex_text(title)}}}"
    meaning = r"\[ M(q)\, \ddot q + C(q, \dot q)\, \dot q + N(q) = \tau \]"
    return f"{PREAMBLE}{heading}\n{meaning}\n{body}\\end{{document}}\n"


def _aligned(environment: str, shown: dict[MatrixEntry, Trig], printer: EquationPrinter) -> str:
    rows = []
    for entry, value in shown.items():
        lines = printer.latex_lines(value, LINE)
        rows.append(f"{entry.matrix}_{{{entry.name[2:-1]}}} &= {lines[0]}")
        rows += [rf"&\quad {line}" for line in lines[1:]]
    return f"\\begin{{{environment}}}\n" + " \\\\\n".join(rows) + f"\n\\end{{{environment}}}"


def _value(quantity: NamedSymbol) -> str:
    return "" if quantity.value is None else f"= {quantity.value:g}"


def _latex_value(quantity: NamedSymbol) -> str:
    unit = re.sub(r"\^(\d)", r"$^\1$", quantity.unit)
    return f" [{unit}]" if quantity.value is None else f", {quantity.value:g} {unit}"


def _signed(text: str) -> str:
    return f"- {text[1:].lstrip()}" if text.startswith("-") else f"+ {text}"


def _visible(latex: str) -> int:
    """About how many characters of a formula are seen."""
    return len(re.sub(r"\\(left|right|dot|ddot|text|,)|[{}_^ ]|\\", "", latex))
