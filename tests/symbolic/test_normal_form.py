"""Trigonometric polynomials: a ring, exact, with one form for each function."""

from fractions import Fraction

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from modurob.symbolic.trigonometric import Angle, Trig, exactly, trig

JOINTS, VARIABLES = 3, 3
ROUNDING = 1e-9  # of products of a dozen numbers up to 100
x, y, z = (Trig.variable(k) for k in range(VARIABLES))
a, b, c = (Angle(k) for k in range(JOINTS))


def atoms():
    angles = [Angle(k, backwards) for k in range(JOINTS) for backwards in (False, True)]
    waves = [f() for angle in angles for f in (angle.cos, angle.sin)]
    numbers = [Trig.number(value) for value in (1, -2, Fraction(1, 3), 0.1, 0)]
    return st.sampled_from([x, y, z, *waves, *numbers])


def polynomials():
    return st.recursive(
        atoms(),
        lambda inner: st.one_of(
            st.builds(lambda p, q: p + q, inner, inner),
            st.builds(lambda p, q: p - q, inner, inner),
            st.builds(lambda p, q: p * q, inner, inner),
        ).map(trig),
        max_leaves=8,
    )


def at(p, seed=0):
    rng = np.random.default_rng(seed)
    values, angles = rng.uniform(-2, 2, VARIABLES), rng.uniform(-3, 3, JOINTS)
    return p.evaluate(dict(enumerate(values)), dict(enumerate(angles)))


@given(polynomials(), polynomials(), polynomials())
def test_they_form_a_commutative_ring(p, q, r):
    assert p + q == q + p
    assert p * q == q * p
    assert p * (q + r) == p * q + p * r
    assert p * (q * r) == (p * q) * r
    assert p - p == 0


@given(polynomials(), polynomials())
def test_arithmetic_is_that_of_the_functions(p, q):
    for seed in range(3):
        u, v = at(p, seed), at(q, seed)
        assert at(trig(p * q), seed) == pytest.approx(u * v, abs=ROUNDING * (1 + abs(u * v)))
        assert at(p + q, seed) == pytest.approx(u + v, abs=ROUNDING * (1 + abs(u) + abs(v)))


@given(polynomials(), polynomials())
def test_equal_expressions_have_equal_terms(p, q):
    left = list(trig((p + q) * (p - q)).terms())
    right = list(trig(p * p - q * q).terms())
    assert left == right


@given(polynomials())
def test_derivatives_are_those_of_sympy(p):
    symbols, angles = sympy.symbols("x y z"), sympy.symbols("a b c")

    def formula(value):
        return sympy.Add(
            *(
                sympy.Rational(t.coefficient.numerator, t.coefficient.denominator)
                * sympy.Mul(*(symbols[v] ** n for v, n in t.powers))
                * (sympy.sin if t.sine else sympy.cos)(sum(k * angles[j] for j, k in t.angles))
                for t in value.terms()
            )
        )

    for k in range(3):
        assert sympy.expand(formula(p.derivative(k)) - formula(p).diff(symbols[k])) == 0
        assert sympy.expand(formula(p.angle_derivative(k)) - formula(p).diff(angles[k])) == 0


def test_identities_hold_without_simplification():
    assert a.sin() * a.sin() + a.cos() * a.cos() == 1
    assert a.sin() * a.cos() * 2 == Trig({(2 << 1) | 1: {0: 1}})  # sin 2a
    turned = Angle(0, backwards=True)
    assert turned.sin() + a.sin() == 0
    assert turned.cos() == a.cos()


def test_angle_sums_show_their_first_factor_positive():
    (term,) = trig(b.sin() * a.cos() - b.cos() * a.sin()).terms()
    assert (term.sine, term.angles, term.coefficient) == (True, ((0, 1), (1, -1)), -1)


def test_factors_up_to_127_and_powers_up_to_255_are_kept():
    wave = a.cos()
    for _ in range(6):
        wave = wave * wave * 2 - 1  # of the double angle
    assert [term.angles for term in wave.terms()] == [((0, 64),)]
    both = trig(wave * b.sin())
    assert {term.angles for term in both.terms()} == {((0, 64), (1, 1)), ((0, 64), (1, -1))}
    most = Trig({2 * 127: {255 << 8: 3}})  # 3 y^255 cos 127 a
    (term,) = most.terms()
    assert (term.powers, term.angles) == (((1, 255),), ((0, 127),))
    assert most.angle_derivative(0) == Trig({2 * 127 + 1: {255 << 8: -3 * 127}})
    assert most.derivative(1) == Trig({2 * 127: {254 << 8: 3 * 255}})


def test_floats_are_the_decimals_they_print_as():
    assert exactly(0.1) == Fraction(1, 10)
    assert exactly(np.float64(1e-3)) == Fraction(1, 1000)


@given(polynomials(), st.floats(-3, 3), st.floats(-2, 2))
def test_substitution_is_evaluation_in_part(p, angle, value):
    cosine, sine = exactly(float(np.cos(angle))), exactly(float(np.sin(angle)))
    part = p.substituted({1: exactly(value)}, {2: (cosine, sine)})
    for term in part.terms():
        assert 1 not in dict(term.powers)
        assert 2 not in dict(term.angles)
    whole = p.evaluate({0: 0.7, 1: value, 2: -1.1}, {0: 0.3, 1: 2.0, 2: angle})
    found = part.evaluate({0: 0.7, 2: -1.1}, {0: 0.3, 1: 2.0})
    assert found == pytest.approx(whole, abs=ROUNDING * (1 + abs(whole)))


def test_linear_parts_come_apart():
    (by_x, by_y), rest = (x * a.sin() + y * y * 0 + y * z + 3).linear_in([0, 1])
    assert by_x == a.sin()
    assert by_y == z
    assert rest == 3
    with pytest.raises(ValueError, match="not linear"):
        (x * y).linear_in([0, 1])


def test_polynomials_do_not_mix_with_what_is_no_number():
    x = Trig.variable(0)
    for wrong in ("1", None, [1]):
        for operation in (lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a / b):
            with pytest.raises(TypeError):
                operation(x, wrong)
        assert x != wrong
    assert (x / 4) * 4 == x
    assert x / 0.5 == x + x
    assert Trig.number(0.1) == Fraction(1, 10)
    assert x - x == 0
    assert (3 - x) + x == 3
    assert x * 0 == 0


def test_coefficients_are_changed_one_by_one():
    x, y = Trig.variable(0), Trig.variable(1)
    p = x * Fraction(1, 3) + y * Fraction(1, 1000) + Angle(0).cos() * Fraction(2, 7)
    found = p.with_coefficients(lambda c: c if c > Fraction(1, 100) else Fraction(0))
    assert found == x * Fraction(1, 3) + Angle(0).cos() * Fraction(2, 7)
    assert found.waves.keys() == p.waves.keys()
    assert p.with_coefficients(lambda c: Fraction(0)) == 0
    assert p.with_coefficients(lambda c: 2 * c) == p + p
    assert p.variables() == {0, 1}
    assert found.variables() == {0}
    assert Angle(0).sin().variables() == set()


@pytest.mark.parametrize(
    ("coefficients", "scale", "expected"),
    [
        ((4,), 6, {2}),
        ((4, 6), 8, {2, 3}),
        ((3, 4), 6, {3, 4}),
        ((5,), 1, {5}),
        ((7,), 7, {1}),
        ((6,), 2, {3}),
    ],
)
def test_fractions_are_in_lowest_terms(coefficients, scale, expected):
    from modurob.symbolic.trigonometric import _reduced

    waves = {0: {1 << k: value for k, value in enumerate(coefficients)}}
    found = _reduced(waves, scale)
    numerators = set(found.waves[0].values())
    assert numerators == expected
    assert found.scale * max(coefficients) == scale * max(numerators)
