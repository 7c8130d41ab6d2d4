"""Names, values and numbers in equations, as they are printed and substituted."""

import re
from fractions import Fraction

import numpy as np
import pytest
import sympy

from modurob import examples
from modurob.symbolic.feedback import _vanishes
from modurob.symbolic.forms import ExpressionWriter, display_number
from modurob.symbolic.links import _inertia, _rational, _snapped, _unit_pair
from modurob.symbolic.output import THIN, EquationPrinter, Latex, MathMl, _aligned
from modurob.symbolic.trigonometric import Angle, Trig, exactly
from modurob.symbolic.vocabulary import NamedSymbol, Vocabulary, _cosine_and_sine, latex_text

PENDULUM = examples.double_pendulum(l1=1.5, l2=2.0, m1=3.0, m2=4.0).equations("physical")


@pytest.mark.parametrize(
    ("letter", "marks", "name", "latex"),
    [
        ("g", (), "g", "g"),
        ("m", ("1",), "m1", "m_{1}"),
        ("c", ("12", "x"), "c12_x", "c_{12,x}"),
        ("m", ("arm",), "m_arm", r"m_{\text{arm}}"),
        ("J", ("left_arm", "xy"), "J_left_arm_xy", r"J_{\text{left\_arm},\text{xy}}"),
        ("dq", ("2",), "dq2", r"\dot q_{2}"),
        ("ddq", ("2",), "ddq2", r"\ddot q_{2}"),
    ],
)
def test_symbols_are_named_by_their_marks(letter, marks, name, latex):
    symbol = NamedSymbol(letter, marks, "", "", None)
    assert (symbol.name, symbol.latex) == (name, latex)


def test_text_in_latex_has_no_commands():
    assert latex_text(r"a_b 5% & #1 ${x}") == r"a\_b 5\% \& \#1 \$\{x\}"
    assert latex_text("\\x^y~z") == r"\textbackslash{}x\textasciicircum{}y\textasciitilde{}z"
    assert latex_text("Größe ſ") == "Größe ſ"  # the last letter of every font
    assert latex_text("\u0180 中") == "u0180 u4E2D"


def test_a_number_of_the_organism_is_a_symbol_with_its_size_if_its_group_is_chosen():
    words = Vocabulary({"mass", "length"})
    assert words.parameter("mass", "m", ("1",), "mass", "kg", 0.0) == 0
    assert words.parameter("gravity", "g", (), "gravity", "m/s^2", -9.81) == Fraction(-981, 100)
    assert words.quantities == []
    minus = words.parameter("length", "l", ("1",), "offset", "m", -0.5)
    plus = words.parameter("length", "l", ("2",), "offset", "m", 0.25)
    assert [q.value for q in words.quantities] == [0.5, 0.25]
    assert minus + Trig.variable(0) == 0
    assert plus == Trig.variable(1)
    other = words.copy()
    other.new("a", (), "", "")
    assert [q.name for q in words.quantities] == ["l1", "l2"]
    assert [q.name for q in other.quantities] == ["l1", "l2", "a"]
    assert other.groups == words.groups


def test_short_fractions_are_shown_as_they_are_and_others_as_decimals():
    assert display_number(Fraction(-5, 64)) == sympy.Rational(-5, 64)
    shown = display_number(Fraction(1, 65))
    assert isinstance(shown, sympy.Float)
    assert sympy.sstr(shown) == "0.0153846153846154"  # 15 digits


def test_common_factors_are_taken_out_of_the_short_form():
    x, y, m, v = sympy.symbols("x y m v")
    writer = ExpressionWriter([x, y, m, v], [sympy.Symbol("q")], inertial=[2], moving=[3])
    X, Y, M, V = (Trig.variable(k) for k in range(4))
    wave = Angle(0).sin()
    cases = [
        (X * X * Y * 6 + X * Y * Y * 4, x * y * (4 * y + 6 * x), "x*y*(6*x + 4*y)"),
        (X * M * 2 - X * M * V * wave, None, "m*x*(-v*sin(q) + 2)"),
        (X * 3, 3 * x, "3*x"),
        (Trig.number(0), 0, "0"),
        (Trig.number(-2), -2, "-2"),
    ]
    for value, right, text in cases:
        short = writer.short(value)
        assert sympy.sstr(short) == text
        assert sympy.expand(short - writer.expanded(value)) == 0
        assert right is None or sympy.expand(short - right) == 0


@pytest.mark.parametrize("quarter", range(-5, 6))
def test_sines_and_cosines_of_quarter_turns_are_whole(quarter):
    cosine, sine = [(1, 0), (0, 1), (-1, 0), (0, -1)][quarter % 4]
    assert _cosine_and_sine("q1", quarter * np.pi / 2) == (cosine, sine)


def test_angles_near_a_quarter_turn_are_not_taken_for_it():
    for angle in (0.05, np.pi / 2 + 1e-6, -np.pi / 2, 3.0):
        found = PENDULUM.substitute(PENDULUM.values).substitute(q2=angle).M[0, 0]
        expected = 1.5**2 * 7 + 2.0**2 * 4 + 2 * 1.5 * 2 * 4 * np.cos(angle)
        assert float(found) == pytest.approx(expected, rel=1e-12)
    turned = PENDULUM.substitute(q2=-np.pi / 2).N[1]
    g, l2, m2, q1 = sympy.symbols("g l2 m2 q1")
    assert turned == -g * l2 * m2 * sympy.cos(q1)  # exactly


@pytest.mark.parametrize(
    ("width", "terms"),
    [(44, [15]), (43, [14, 1]), (20, [7, 6, 2]), (19, [6, 6, 3]), (2, [1] * 15)],
)
def test_lines_are_filled_up_to_their_width(width, terms):
    """Fifteen terms of two characters, and signs between them."""
    value = sum((Trig.variable(k) * (-1) ** k for k in range(15)), Trig.number(0))
    quantities = [NamedSymbol("a", (c,), "", "", None) for c in "bcdefghijklmnop"]
    writer = ExpressionWriter([sympy.Symbol(q.name) for q in quantities], [], [], [])
    lines = EquationPrinter(writer, quantities).latex_lines(value, width)
    assert [line.count("a") for line in lines] == terms
    text = " ".join(lines).replace("+ ", "+").replace("- ", "-").split()
    signs = [f"{'+-'[k % 2]}a_{{{q.marks[0]}}}" for k, q in enumerate(quantities)]
    assert text == ["a_{b}", *signs[1:]]


def test_a_formula_that_fits_exactly_keeps_its_common_factors():
    """l2 m2 (l1 cos q2 + l2) has sixteen characters; sums are only broken where they must be."""
    printer = EquationPrinter(PENDULUM._writer, PENDULUM.quantities)
    value = PENDULUM.exact_entry(PENDULUM.parse_entry("M[1,2]"))
    whole, seen = printer.latex(value), len("l2m2(l1cosq2+l2)")
    assert printer.latex_lines(value, seen) == [whole]
    assert len(printer.latex_lines(value, seen - 1)) == 2


def test_formulas_are_broken_after_sixty_four_characters_as_an_a4_page_has_room_for():
    value = sum((Trig.variable(k) for k in range(30)), Trig.number(0))
    quantities = [NamedSymbol("a", (chr(ord("A") + k),), "", "", None) for k in range(30)]
    writer = ExpressionWriter([sympy.Symbol(q.name) for q in quantities], [], [], [])
    entry = PENDULUM.parse_entry("N[1]")
    text = _aligned("align*", {entry: value}, EquationPrinter(writer, quantities))
    lines = text.splitlines()[1:-1]
    assert [line.count("a_") for line in lines] == [21, 9]  # 2 + 20 * 3 characters


def test_an_entry_is_short_unless_its_normal_form_is_asked_for():
    l1, l2, m2, q2 = sympy.symbols("l1 l2 m2 q2")
    assert sympy.sstr(PENDULUM.entry("M[1,2]")) == "l2*m2*(l1*cos(q2) + l2)"
    assert PENDULUM.entry("M[1,2]", short=False) == l1 * l2 * m2 * sympy.cos(q2) + l2**2 * m2


def test_the_list_of_symbols_has_values_and_units():
    text, latex = PENDULUM.text("M[1,1]"), PENDULUM.latex()
    names = [line.split()[0] for line in text.partition("where\n")[2].splitlines()]
    assert "  m1  mass of m1 [kg] = 3" in text
    assert {"q2", "l1", "m2"} < set(names)
    assert r"\item $l_{1}$: offset from m0 to m1, 1.5 m" in latex
    assert r"\item $g$: gravity, 9.81 m/s$^2$" in latex
    assert r"\item $q_{2}$: displacement of m1.hinge [rad]" in latex
    assert "M is symmetric." in latex
    assert "All other entries are zero." not in latex
    assert "M is symmetric." not in text
    still = PENDULUM.substitute(dq1=0).text()
    assert "M is symmetric. All other entries are zero.\n" in still


def test_expressions_count_as_zero_where_they_vanish_everywhere():
    x, y = sympy.symbols("x y")
    assert _vanishes(sympy.sin(x) ** 2 + sympy.cos(x) ** 2 - 1)
    assert _vanishes((x + y) ** 2 - x**2 - 2 * x * y - y**2)
    for small in (1e-4 * x, x * y - 1e-3, sympy.Integer(1), 1e-6 * sympy.sin(x - y)):
        assert not _vanishes(sympy.sympify(small))


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_sines_of_differences_keep_their_sign(names):
    """SymPy may write sin(a - b) as -sin(b - a), by the order of the names."""
    x, y = (sympy.Symbol(name) for name in names)
    writer = ExpressionWriter([], [x, y], [], [])
    a, b = Angle(0), Angle(1)
    for sign in (1, -1):
        value = (a.sin() * b.cos() - a.cos() * b.sin()) * (3 * sign)
        for form in (writer.expanded, writer.short):
            assert form(value) == 3 * sign * sympy.sin(x - y)


def test_powers_of_waves_are_written_beside_their_names():
    x, y = sympy.symbols("x y")
    printer = Latex({})
    assert printer.doprint(sympy.sin(x) ** 2) == r"\sin^{2} x"
    assert printer.doprint(sympy.cos(x + y) ** 3) == r"\cos^{3}(x + y)"


def test_powers_in_mathml_stand_above_symbols_with_and_without_marks():
    printer = MathMl([NamedSymbol("g", (), "", "", 9.81), NamedSymbol("m", ("1",), "", "", 1.0)])
    g, m1, other = sympy.symbols("g m1 z")
    assert printer.doprint(g**2) == "<msup><mi>g</mi><mn>2</mn></msup>"
    assert printer.doprint(m1**2) == "<msubsup><mi>m</mi><mi>1</mi><mn>2</mn></msubsup>"
    assert printer.doprint(1 / g).startswith("<mfrac>")
    assert printer.doprint(other) == "<mi>z</mi>"


@pytest.mark.parametrize(("entry", "waves"), [("M[1,2]", 1), ("C[2,1]", 1), ("N[1]", 2)])
def test_only_functions_have_a_space_before_them(entry, waves):
    text = PENDULUM.mathml(entry)
    assert text.count(f'rspace="{THIN}"') == waves == len(re.findall("<mi>(?:sin|cos)</mi>", text))


def test_a_minus_sign_before_a_function_has_a_space_after_it():
    """As in TeX, where the sign of a single term is no operator."""
    x, y = sympy.symbols("x y")
    assert MathMl([]).doprint(-sympy.sin(x)).startswith(f'<mrow><mo rspace="{THIN}">&#8722;</mo>')
    assert THIN not in MathMl([]).doprint(-x * y)


def test_remarks_and_lists_appear_where_there_is_something_to_say():
    markdown = PENDULUM.markdown()
    assert "\nM is symmetric.\n" in markdown
    assert "symmetric" not in PENDULUM.markdown("N[2]")
    numbers = PENDULUM.substitute(PENDULUM.values)
    assert "itemize" not in numbers.written("latex", "M[2,2]")
    assert r"\item $q_{2}$" in numbers.written("latex", "M[1,1]")


def test_numbers_of_joints_and_inertias_are_named_after_them():
    organism = examples.snake(3).with_parameters(viscous=0.1, coulomb=0.2, inertia=0.003)
    values = {str(k): x for k, x in organism.equations("physical").values.items()}
    assert {name: values[name] for name in values if name[0] in "df"} == {
        "d1": 0.1, "d2": 0.1, "f1": 0.2, "f2": 0.2
    }  # fmt: skip
    # the same about all axes: one symbol
    named = {name for name in values if name[0] == "J"}
    assert {len(name.split("_")) for name in named} == {1}
    uneven = examples.arm("ab").equations("physical").symbols
    assert any(name.endswith("_x") for name in uneven if name[0] == "J")


@pytest.mark.parametrize(("x", "y"), [(1, 1), (-1, 1), (2, -2), (-3, -3), (0, -5), (-4, 0), (3, 4)])
def test_directions_are_on_the_unit_circle_exactly(x, y):
    cosine, sine = _unit_pair(float(x), float(y))
    assert cosine**2 + sine**2 == 1
    np.testing.assert_allclose(
        [float(cosine), float(sine)], np.array([x, y]) / np.hypot(x, y), atol=1e-15
    )


@pytest.mark.parametrize(("off", "rounding"), [(0.9e-12, True), (1e-12, False)])
def test_numbers_are_rounding_errors_below_a_trillionth(off, rounding):
    """Of one: twice a number, beside a whole one; a product of inertia, beside the largest."""
    found = _snapped(np.array([off / 2, 0.25]))
    assert found.tolist() == [0 if rounding else exactly(off / 2), Fraction(1, 4)]
    assert _rational(off) == (0 if rounding else Fraction(1, 10**12))
    assert _unit_pair(0.0, off) == ((1, 0) if rounding else (0, 1))
    assert _cosine_and_sine("q1", off) == (1, 0 if rounding else exactly(off))
    inertia = np.array([[1.0, off, 0.0], [off, 1.0, 0.0], [0.0, 0.0, 1.0]])
    words = Vocabulary({"inertia"})
    _inertia(inertia, ("1",), "m1", words)
    names = [q.name for q in words.quantities]
    assert names == (["J1"] if rounding else ["J1_x", "J1_xy", "J1_y", "J1_z"])


@pytest.mark.parametrize("text", ["1.1", "-0.03", "2.049", "8.0001", "1/3", "-22/7", "1/65"])
def test_short_fractions_are_found_behind_their_floats(text):
    assert _rational(float(Fraction(text))) == Fraction(text)


def test_friction_acts_on_joints_and_not_on_a_free_base():
    organism = examples.double_pendulum().with_parameters(viscous=0.5)
    equations = organism.equations("physical", "free", symbols="none")
    v1, v2 = (equations.symbols[name] for name in ("dq1", "dq2"))
    assert list(equations.friction) == [0] * 6 + [v1 / 2, v2 / 2]


def test_symbols_tell_what_they_are_and_in_which_unit():
    """An arm that turns twice and slides at its end, under gravity along two axes."""
    organism = examples.arm("bac").with_parameters(viscous=0.1, coulomb=0.2, rotor_inertia=0.3)
    equations = organism.equations("physical", gravity=(1.0, 0.0, -9.0), external=["m2"])
    found = {q.name: (q.meaning, q.unit, q.value) for q in equations.quantities}
    assert {name: found[name] for name in SYMBOLS} == SYMBOLS
    assert len(found) == len(equations.quantities)
    free = organism.equations("physical", "free", symbols="none").quantities
    assert [(q.name, q.unit) for q in free[7:9]] == [("V1", "m/s, rad/s"), ("V2", "m/s, rad/s")]
    assert [q.name for q in free[:7]] == ["r_x", "r_y", "r_z", "e_x", "e_y", "e_z", "e_w"]


SYMBOLS = {
    "q1": ("displacement of m0.joint", "rad", None),
    "q3": ("displacement of m2.joint", "m", None),
    "dq1": ("velocity of m0.joint", "rad/s", None),
    "ddq3": ("acceleration of m2.joint", "m/s^2", None),
    "l0": ("offset in m0", "m", 0.1),
    "l1_1": ("offset from m0 to m1", "m", 0.1),
    "l1_2": ("offset in m1", "m", 0.1),
    "m0_distal": ("mass of m0.distal", "kg", 0.5),
    "c1_distal_y": ("center of mass of m1.distal, y", "m", 0.05),
    "J0_distal_z": ("inertia of m0.distal about its center, z", "kg m^2", 0.00065),
    "d1": ("viscous friction of m0.joint", "N m s/rad", 0.1),
    "d3": ("viscous friction of m2.joint", "N s/m", 0.1),
    "f1": ("dry friction of m0.joint", "N m", 0.2),
    "f3": ("dry friction of m2.joint", "N", 0.2),
    "B1": ("inertia of the rotor of m0.joint", "kg m^2", 0.3),
    "B3": ("inertia of the rotor of m2.joint", "kg", 0.3),
    "g_x": ("gravity", "m/s^2", 1.0),
    "g_z": ("gravity", "m/s^2", 9.0),
    "F2_x": ("external force on m2, in its frame", "N", None),
    "n2_z": ("external torque on m2, in its frame", "N m", None),
}
