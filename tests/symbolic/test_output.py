"""Equations on paper: what is printed can be read, compiled and parsed, and is the same formula."""

import re
import shutil
import subprocess
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import sympy
from sympy.parsing.sympy_parser import parse_expr

from modurob import Organism, SizeError, StateError, UnknownNameError, examples
from modurob.compiler.emit_c import c_sources
from modurob.symbolic.output import EquationPrinter
from modurob.symbolic.size import READABLE, terms_of_matrix
from oracles.complaints import complains

PENDULUM = examples.double_pendulum(l1=1.5, l2=2.0, m1=3.0, m2=4.0).equations("physical")
ORGANISMS = {
    "pendulum of six": (examples.snake(7), "physical", "all"),
    "crab": (examples.crab(), "physical", "all"),
    "crab in numbers": (examples.crab(), "physical", "none"),
    "arm": (examples.arm("bac"), "physical", "all"),
    "odd names": (
        Organism.start("backbone", "left_arm").dock("left_arm", 3, "Größe-中", 4, kind="backbone"),
        "physical",
        "all",
    ),
}


def test_latex_is_what_people_write():
    assert PENDULUM.latex("M[1,2]") == r"l_{2} m_{2} \left(l_{1} \cos q_{2} + l_{2}\right)"
    assert r"\sin(q_{1} + q_{2})" in PENDULUM.latex("N[2]")
    assert r"\dot q_{2}" in PENDULUM.latex("C[1,1]")


def test_text_is_plain():
    text = PENDULUM.text()
    assert "M[1,2] = l2 m2 (l1 cos(q2) + l2)\n" in text
    assert re.search(r"^  l1 +offset from m0 to m1 \[m\] = 1.5$", text, re.MULTILINE)
    assert "M is symmetric." in text
    assert "m0" not in text.partition("where")[2].replace("m0.hinge", "").replace("from m0", "")


def test_every_symbol_is_explained_and_no_other():
    equations = examples.crab().equations("physical")
    used = {
        str(s) for entry in (*equations.M, *equations.C, *equations.N) for s in entry.free_symbols
    }
    listed = {line.split()[0] for line in equations.text().partition("where\n")[2].splitlines()}
    assert listed == used


def test_markdown_has_formulas_and_a_table():
    text = PENDULUM.markdown()
    assert text.startswith("$$\n\\begin{aligned}\n")
    assert "| $l_{1}$ | offset from m0 to m1 | m | 1.5 |" in text


@pytest.mark.parametrize("name", ORGANISMS)
def test_mathml_is_well_formed_and_dotted(name):
    organism, hinges, symbols = ORGANISMS[name]
    equations = organism.equations(hinges, symbols=symbols)
    text = equations.mathml().replace("&InvisibleTimes;", "\u2062").replace("&#x2062;", "\u2062")
    root = ET.fromstring(f"<all>{text}</all>")
    shown = [e for e in equations.entries() if e.matrix != "M" or e.row <= e.column]
    assert len(root) == sum(equations.entry(entry.name) != 0 for entry in shown)
    if name == "pendulum of six":
        dots = root.findall(".//{http://www.w3.org/1998/Math/MathML}mover")
        assert dots


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no pdflatex here")
@pytest.mark.parametrize("name", ORGANISMS)
def test_documents_compile_with_pdflatex_and_fit_the_page(name, tmp_path):
    organism, hinges, symbols = ORGANISMS[name]
    text = organism.equations(hinges, symbols=symbols).latex(document=True)
    (tmp_path / "model.tex").write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "model.tex"],
        cwd=tmp_path, capture_output=True, text=True, errors="replace",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout


def test_documents_have_balanced_braces_and_environments():
    """What pdflatex would find first, for machines that have none."""
    for organism, hinges, symbols in ORGANISMS.values():
        text = organism.equations(hinges, symbols=symbols).latex(document=True)
        assert text.count("{") == text.count("}")
        assert text.count(r"\left(") == text.count(r"\right)")
        assert re.findall(r"\\begin\{(.*?)\}", text)[0] == "document"
        for name in ("document", "align*", "itemize"):
            assert text.count(rf"\begin{{{name}}}") == text.count(rf"\end{{{name}}}") == 1


def test_formulas_on_several_lines_are_the_formula_on_one():
    equations = examples.snake(4).equations("physical")
    printer = EquationPrinter(equations._writer, equations.quantities)
    value = equations.exact_entry(next(e for e in equations.entries() if e.name == "N[1]"))
    terms = sympy.Add(*printer.writer.summands(value))
    for width in (10, 20, 40):
        lines = printer.latex_lines(value, width)
        assert len(lines) > 1
        assert " ".join(lines).split() == printer._latex.doprint(terms).split()


def test_offsets_of_a_module_are_numbered_in_their_order():
    quantities = examples.arm("ba").equations("physical").quantities
    assert [q.name for q in quantities if q.name[0] == "l"] == ["l0", "l1_1", "l1_2"]


def test_data_for_machines_parses_back():
    data = PENDULUM.data()
    names = {entry["name"]: sympy.Symbol(entry["name"]) for entry in data["symbols"]}
    for name, text in data["entries"].items():
        assert sympy.expand(parse_expr(text, names) - PENDULUM.entry(name)) == 0
    assert data["joints"] == ["m0.hinge", "m1.hinge"]


def test_mathml_of_a_rate_is_its_letter_below_dots():
    from modurob.symbolic.output import MathMl
    from modurob.symbolic.vocabulary import NamedSymbol

    quantities = [
        NamedSymbol(letter, marks, "", "", 0.0)
        for letter, marks in (("q", ("1",)), ("dq", ("1",)), ("ddq", ("2",)), ("d", ()), ("dV", ()))
    ]
    printer = MathMl(quantities)
    shown = [printer.doprint(sympy.Symbol(q.name)) for q in quantities]
    assert shown == [
        "<msub><mi>q</mi><mi>1</mi></msub>",
        "<msub><mover><mi>q</mi><mo>&#729;</mo></mover><mi>1</mi></msub>",
        "<msub><mover><mi>q</mi><mo>&#168;</mo></mover><mi>2</mi></msub>",
        "<mi>d</mi>",
        "<mover><mi>V</mi><mo>&#729;</mo></mover>",
    ]
    squared = printer.doprint(sympy.Symbol(quantities[0].name) ** 2)
    assert squared == "<msubsup><mi>q</mi><mi>1</mi><mn>2</mn></msubsup>"


def test_mathml_has_minus_signs_and_a_thin_space_before_functions():
    text = PENDULUM.mathml("C[1,2]")
    assert "<mo>-</mo>" not in text
    assert "<mo>&#8722;</mo>" in text
    space, brackets = '<mo rspace="0.17em">&InvisibleTimes;</mo>', '<mo stretchy="false">(</mo>'
    assert f"{space}<mrow><mi>sin</mi><mrow>{brackets}" in text


# -- substitution ----------------------------------------------------------------------------------


def test_substitution_takes_numbers_and_symbols():
    m, l2, q2, g = sympy.symbols("m l2 q2 g")
    equations = PENDULUM.substitute(m1="m", m2=m, l1=1).substitute({"q1": 0})
    assert equations.M[0, 0] == sympy.expand(2 * m + l2**2 * m + 2 * l2 * m * sympy.cos(q2))
    assert equations.N[1] == g * l2 * m * sympy.sin(q2)
    assert {"m1", "m2", "l1", "q1"}.isdisjoint(equations.symbols)
    assert "m" in equations.symbols
    assert PENDULUM.M.has(sympy.Symbol("m1"))  # the original is as it was


def test_quarter_turns_are_exact():
    equations = PENDULUM.substitute(q1=sympy.pi / 2, q2=0)
    assert sympy.sstr(list(equations.N)) == "[g*l1*m1 + g*l1*m2 + g*l2*m2, g*l2*m2]"
    turned = PENDULUM.substitute(q1=3 * sympy.pi / 2, q2=sympy.pi)
    assert sympy.sstr(list(turned.N)) == "[-g*l1*m1 - g*l1*m2 + g*l2*m2, g*l2*m2]"
    assert sympy.sstr(turned.M[0, 1]) == "-l1*l2*m2 + l2**2*m2"


def test_all_own_numbers_at_once():
    equations = PENDULUM.substitute(PENDULUM.values)
    assert not equations.values
    assert equations.M[1, 1] == 16


def test_a_symbol_that_was_replaced_cannot_be_given_again():
    equations = PENDULUM.substitute(l1=1, m1="m2")
    at = [0.1, 0.2], [0.0, 0.0]
    with complains(StateError, "'l1' was replaced", "symbols are q1", "l2"):
        equations.evaluate(*at, {"l1": 5})
    with complains(StateError, "'l1' was replaced"):
        equations.substitute(l1=2)
    with complains(StateError, "'m1' was replaced"):
        equations.substitute(m2="m1")
    assert equations.substitute(m2="m3").evaluate(*at, {"m3": 2}).M[1, 1] == 2 * 2.0**2
    found = equations.evaluate(*at, {sympy.Symbol("l2"): 3}).M
    assert found[1, 1] == 4 * 3.0**2


def test_evaluating_names_the_symbols_that_have_no_value():
    at = [0.1, 0.2], [0.3, 0.4]
    named = PENDULUM.substitute(m1="m", m2="m")
    with complains(StateError, "no value for m:", "evaluate(q, v, {'m': 1.0})"):
        named.evaluate(*at)
    own = PENDULUM.evaluate(*at, {"m1": 1, "m2": 1})
    np.testing.assert_allclose(named.evaluate(*at, {"m": 1}).M, own.M, rtol=1e-14)
    pushed = examples.double_pendulum().equations("physical", external=["m2"])
    with complains(StateError, "no value for F2_y, F2_z, n2_x:"):
        pushed.evaluate(*at)
    with complains(StateError, "no value for F2_z, n2_x:"):
        pushed.evaluate(*at, {"F2_y": 0})
    for wrong in ("1", None, float("nan"), True):
        with complains(StateError, "F2_y takes a finite number"):
            pushed.evaluate(*at, {"F2_y": wrong})


def test_a_joint_angle_takes_no_name():
    for name in ("a", sympy.Symbol("q2")):
        with complains(StateError, "joint angle q1 takes a finite number", repr(str(name))):
            PENDULUM.substitute(q1=name)
    crane = examples.crane().equations("physical")
    assert "x" in crane.substitute(q1="x").symbols  # a slide is a length like others


# -- bad input -------------------------------------------------------------------------------------


def test_too_large_organisms_are_refused_with_an_estimate_and_ways_out():
    equations = examples.superbot_tree().equations("physical")
    asked = [lambda: equations.M, lambda: equations.C, lambda: equations.N, equations.latex]
    for ask in [*asked, equations.text, equations.data]:
        with complains(
            SizeError, "terms", "limit of 100,000", "one entry at a time", "symbols none"
        ):
            ask()
    assert equations.entry("M[60,60]") != 0


def test_the_ways_out_are_those_that_help():
    """One entry is no way out for one entry, nor numbers where numbers stand already."""
    equations = examples.superbot_tree().equations("physical")
    asked = [lambda: equations.entry("N[1]"), equations.linearize, equations.regressor]
    asked += [equations.feedback_linearization]
    asked += [lambda: equations.V("m19"), lambda: equations.T("m0", "m19")]
    asked += [lambda: equations.J("m19"), lambda: equations.T("m19", "m0")]
    for ask in asked:
        with complains(SizeError, "terms", "ask for", "C code (export)") as caught:
            ask()
        assert "one entry" not in caught.message
    numbers = examples.superbot_tree().equations("physical", symbols="none")
    with complains(SizeError, "ask for C code (export), or use the numeric model"):
        numbers.entry("N[1]")
    with complains(SizeError, "ask for one entry at a time (such as M[1,2]), for C code (export)"):
        numbers.M  # noqa: B018


def test_a_limit_of_the_users_own():
    with complains(SizeError, "over the limit of 10"):
        examples.snake(7).equations("physical", limit=10).M  # noqa: B018
    assert examples.snake(14).equations("physical", symbols="none", limit=1e6).M.shape == (13, 13)
    with complains(SizeError, "over the limit of 8,000"):  # gravity on the base, above all
        examples.crab().equations("physical", "free", limit=8000).N  # noqa: B018


@pytest.mark.parametrize("symbols", ["all", "none"])
def test_the_estimate_is_an_upper_bound_of_the_right_order(symbols):
    for organism in (examples.arm("babac"), examples.snake(11), Organism.start("superbot")):
        equations = organism.equations("physical", symbols=symbols)
        told = terms_of_matrix(equations.model, equations._words.groups)
        actual = sum(len(equations.exact_entry(entry)) for entry in equations.entries("C"))
        assert 0.3 * actual < told < 30 * actual
    assert READABLE == 100_000


def test_the_estimate_knows_a_free_base():
    for organism in (examples.snake(4), examples.arm("ba"), Organism.start("superbot")):
        equations = organism.equations("physical", "free", symbols="none")
        told = terms_of_matrix(equations.model, equations._words.groups)
        actual = sum(len(equations.exact_entry(entry)) for entry in equations.entries("C"))
        assert 0.1 * actual < told < 30 * actual


def test_bad_names_and_values_are_told():
    organism = examples.snake(3)
    with complains(StateError, "'weight'", "mass, length, inertia, gravity, friction"):
        organism.equations(symbols="weight")
    with complains(UnknownNameError, "['nobody']", "m0, m1, m2"):
        organism.equations(external=["nobody"])
    equations = organism.equations()
    for ask in (equations.V, equations.J, lambda name: equations.T(None, name),
                lambda name: equations.T(name, "m1")):  # fmt: skip
        with complains(UnknownNameError, "'m9'", "m0, m1, m2"):
            ask("m9")
    for name in ("M[0,1]", "M[3,1]", "N[7]", "C[1,99]"):
        with complains(StateError, name, "from 1 to 2"):
            organism.equations().entry(name)
    for name in ("M", "M[1]", "N[1,1]", "Q[1,1]", "M[1,2]; import os", "", None):
        with complains(StateError, "written like M[1,2]"):
            organism.equations().entry(name)
    with complains(StateError, "'html'", "latex"):
        organism.equations().written("html")


@pytest.mark.parametrize(
    "value",
    ["__import__('os').system('true')", "m1 + m2", "", "2*m1", float("nan"), None, [1], True],
)
def test_strings_are_names_and_never_evaluated(value):
    with complains(StateError):
        PENDULUM.substitute(m1=value)


def test_unknown_symbols_are_told():
    with complains(StateError, "'m7'", "l1"):
        PENDULUM.substitute(m7=1)


def test_c_code_has_the_organisms_own_numbers():
    with complains(StateError, "with_parameters"):
        PENDULUM.substitute(m1=2).to_c()


@pytest.mark.parametrize("symbols", ["all", "none", ("mass", "gravity")])
def test_matrices_are_put_together_as_sympy_would(symbols):
    """Equality in SymPy compares trees, so terms and factors have to stand in its own order."""
    organisms = [(examples.crab(), "physical"), (examples.arm("babac"), "physical")]
    organisms += [(examples.snake(5), "physical"), (examples.crane(), "physical")]
    for organism, hinges in organisms:
        equations = organism.equations(hinges, symbols=symbols)
        for entry in (*equations.M, *equations.N):
            rebuilt = sympy.Add(*(sympy.Mul(*term.args) if term.is_Mul else term
                                  for term in sympy.Add.make_args(entry)))  # fmt: skip
            assert entry == rebuilt
            assert entry.args == rebuilt.args


def test_one_entry_is_written_alone():
    assert PENDULUM.text("N[2]").splitlines()[0] == "N[2] = g l2 m2 sin(q1 + q2)"
    assert "C[1,1]" not in PENDULUM.text("N[2]")
    assert "sin" in PENDULUM.markdown("N[2]")
    still = PENDULUM.substitute(dq1=0)
    assert still.data("C[2,2]")["entries"] == {"C[2,2]": "0"}  # asked for
    assert still.text("C[2,2]").startswith("C[2,2] = 0\n")
    assert "C[2,2]" not in still.data()["entries"]
    assert "C[2,2]" in PENDULUM.data()["entries"]


def test_equations_say_what_they_are():
    assert repr(PENDULUM) == "<Equations: nv = 2, 6 parameters as symbols>"
    assert repr(PENDULUM.substitute(m0=1, g=10)) == "<Equations: nv = 2, 4 parameters as symbols>"
    assert PENDULUM.title == "Equations of motion: 3 modules, 2 joints"
    one = examples.snake(2).equations("physical")
    assert one.title == "Equations of motion: 2 modules, 1 joint"


def test_c_code_of_the_equations_is_that_of_the_model():
    found = PENDULUM.to_c("leg", "float32").files()
    assert found == c_sources(PENDULUM.model, "leg", "float32").files()
    assert found != PENDULUM.to_c("leg").files()


def test_formulas_are_evaluated_at_one_state():
    with complains(StateError, "one state", "(3, 2)"):
        PENDULUM.evaluate(np.zeros((3, 2)), np.zeros(2))
    with complains(StateError, "one state", "(3, 2)"):
        PENDULUM.evaluate(np.zeros(2), np.zeros((3, 2)))


def test_fractions_of_sympy_stay_exact():
    third = sympy.Rational(1, 3)
    assert (
        PENDULUM.substitute(l1=third, l2=1, m1=1, m2=1).M[1, 0].coeff(sympy.cos(sympy.Symbol("q2")))
        == third
    )
