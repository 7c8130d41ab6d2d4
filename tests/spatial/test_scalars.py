"""The elementary functions against 50-digit arithmetic, and the building of arrays."""

import math

import mpmath
import numpy as np
import pytest
import sympy

from modurob.spatial import scalars

FEW_ULP = 4 * np.finfo(float).eps  # sin, a division and 1 - 1/6 of cancellation: under 4 roundings
STEP = 1e-200  # a complex step has no cancellation, so it may be this small
DIGITS = 50

EXACT = {
    scalars.sinc: lambda x: mpmath.sin(x) / x,
    scalars.cosc: lambda x: (1 - mpmath.cos(x)) / x**2,
    scalars.sincc: lambda x: (x - mpmath.sin(x)) / x**3,
}
LIMITS = {scalars.sinc: 1, scalars.cosc: 1 / 2, scalars.sincc: 1 / 6}
NEAR_AND_FAR = [1e-12, 1e-8, 1e-4, 0.1, 0.5, 0.999, 1.0, 1.001, 2.0, 3.1, 6.2, 6.2831853, 7.5, 50.0]


@pytest.mark.parametrize("function", EXACT)
def test_entire_functions_are_exact_to_a_few_ulp(function):
    x = np.array(NEAR_AND_FAR)
    with mpmath.workdps(DIGITS):
        exact = np.array([float(EXACT[function](mpmath.mpf(float(v)))) for v in x])
    np.testing.assert_allclose(function(x), exact, rtol=FEW_ULP)
    np.testing.assert_array_equal(function(-x), function(x))


@pytest.mark.parametrize("function", EXACT)
def test_entire_functions_take_their_limit_at_zero(function):
    x = [0.0, 1e-300, -1e-300, 5e-324]
    np.testing.assert_array_equal(function(x), np.full(4, LIMITS[function]))
    assert np.ndim(function(0.0)) == 0
    symbolic = function(sympy.Integer(0))
    assert isinstance(symbolic, sympy.Rational)
    assert float(symbolic) == LIMITS[function]


@pytest.mark.parametrize("function", EXACT)
@pytest.mark.parametrize("x", NEAR_AND_FAR[:-1])
def test_complex_step_gives_the_exact_derivative(function, x):
    with mpmath.workdps(DIGITS):
        exact = float(mpmath.diff(EXACT[function], mpmath.mpf(x)))
    np.testing.assert_allclose(function(x + 1j * STEP).imag / STEP, exact, rtol=0, atol=FEW_ULP)


@pytest.mark.parametrize("function", EXACT)
def test_huge_arguments_raise_no_warning(function):
    assert np.isfinite(function(np.array([1e20, 1e100]))).all()


def test_versine_keeps_its_digits_near_zero():
    assert scalars.versine(1e-9) == pytest.approx(5e-19, rel=FEW_ULP)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1.0, 2.0, np.pi, -3.0, -np.pi / 2])
def test_complex_atan2_continues_the_real_one(angle):
    y, x = 2 * np.sin(angle), 2 * np.cos(angle)
    dy, dx = 0.3, -0.7
    result = scalars.atan2(y + 1j * STEP * dy, x + 1j * STEP * dx)
    assert result.real == pytest.approx(np.arctan2(y, x), abs=FEW_ULP)
    assert result.imag / STEP == pytest.approx((x * dy - y * dx) / 4, rel=1e-14)
    for y_step, x_step in ((dy, 0), (0, dx)):  # one of them real
        result = scalars.atan2(
            y + 1j * STEP * y_step if y_step else y, x + 1j * STEP * x_step if x_step else x
        )
        assert result.imag / STEP == pytest.approx((x * y_step - y * x_step) / 4, rel=1e-14)
    z = scalars.atan2(0.3 + 0.2j, 0.5 - 0.1j)
    assert np.sin(z) / np.cos(z) == pytest.approx((0.3 + 0.2j) / (0.5 - 0.1j), rel=FEW_ULP)


def test_functions_accept_lists_scalars_and_symbols():
    x = sympy.Symbol("x")
    assert scalars.sin(x) == sympy.sin(x)
    assert scalars.sqrt(x) == sympy.sqrt(x)
    assert scalars.atan2(x, 1) == sympy.atan2(x, 1)
    assert scalars.atan2(1, x) == sympy.atan2(1, x)
    assert list(scalars.cos([x, 0])) == [sympy.cos(x), 1.0]
    np.testing.assert_array_equal(scalars.cos([0, 0]), [1.0, 1.0])
    assert scalars.sinc(x) == sympy.sin(x) / x
    assert scalars.cosc(x) == (1 - sympy.cos(x)) / x**2
    y, half = np.array([x, 2.0], object), pytest.approx
    assert list(scalars.sinc(y)) == [sympy.sin(x) / x, half(np.sin(2) / 2)]
    assert list(scalars.atan2(y, np.array([1, 3.0], object))) == [
        sympy.atan2(x, 1),
        half(np.arctan2(2, 3)),
    ]
    assert scalars.atan2(0j, 0j) == 0


def test_stack_broadcasts_batches_and_promotes_integers():
    a = np.arange(4).reshape(4, 1)
    b = np.arange(3.0)
    array = scalars.stack([[a, 0], [1, b], [b, 2]])
    assert array.shape == (4, 3, 3, 2)
    assert array.dtype == np.float64
    assert scalars.stack([1, 2]).dtype == np.float64
    assert scalars.stack([[[7], [8]]]).tolist() == [[[7], [8]]]
    np.testing.assert_array_equal(array[3, 2], [[3, 0], [1, 2], [2, 2]])


def test_products_and_blocks_of_any_shape():
    rng = np.random.default_rng(0)
    A, B, C = rng.normal(size=(5, 2, 3)), rng.normal(size=(3, 4)), rng.normal(size=(2, 1))
    np.testing.assert_allclose(scalars.product(A, B), A @ B, rtol=1e-14)
    np.testing.assert_allclose(scalars.matvec(A, B[:, 1]), (A @ B)[..., 1], rtol=1e-14)
    D = rng.normal(size=(4, 4))
    found = scalars.block([[A, C], [D]])
    assert found.shape == (5, 6, 4)
    for k in range(5):
        np.testing.assert_array_equal(found[k], np.block([[A[k], C], [D]]))
    np.testing.assert_array_equal(scalars.block([[B, D[:3]]]), np.hstack([B, D[:3]]))


def test_extremes_and_whole_parts_of_numbers():
    a, b = np.array([1.5, -2.5, 3.0]), np.array([-1.0, -2.0, 3.5])
    np.testing.assert_array_equal(scalars.maximum(a, b), [1.5, -2.0, 3.5])
    np.testing.assert_array_equal(scalars.minimum(a, b), [-1.0, -2.5, 3.0])
    np.testing.assert_array_equal(scalars.trunc(a), [1, -2, 3])


def test_stack_of_symbols_keeps_whole_numbers_exact():
    x = sympy.Symbol("x")
    array = scalars.stack([x, 1.0, 0.5, 0])
    assert array.dtype == object
    assert [type(entry) for entry in array[1:]] == [int, float, int]


def test_stack_raises_if_ragged():
    for ragged in ([[1, 2], [3]], [[1, 2], 3], [[1, 2], np.ones(2)]):
        with pytest.raises(ValueError, match="equal length"):
            scalars.stack(ragged)
    with pytest.raises(ValueError, match="one depth"):
        scalars.stack([1, [2]])


def test_quotient_is_silent_at_zero():
    np.testing.assert_array_equal(scalars.quotient([1.0, 1.0], [2.0, 0.0], 7), [0.5, 7.0])
    x = sympy.Symbol("x")
    assert list(scalars.quotient([x, x], [x, sympy.Integer(0)], 7)) == [1, 7]


def test_only_what_is_zero_for_certain_counts_as_zero():
    x = sympy.Symbol("x")
    np.testing.assert_array_equal(scalars.quotient(1.0, [0.0, 2.0**-900], 7), [7, 2.0**900])
    found = scalars.quotient(1, np.array([x, x - x, 0, 0.5], object), 7)
    assert list(found) == [1 / x, 7, 7, 2]


def test_whole_floats_are_exact_integers_as_far_as_they_name_one():
    """2^53 is also what 2^53 + 1 is rounded to."""
    largest = 2.0**53
    given = np.array([3.0, -2.0, 0.5, largest - 1, 1 - largest, largest, -largest, np.inf])
    found = scalars._exact_objects(given)
    whole = [isinstance(x, int) for x in found]
    assert whole == [True, True, False, True, True, False, False, False]
    assert found.tolist() == given.tolist()
    unknown, two = scalars._exact_objects(np.array([np.nan, 2.0]))
    assert np.isnan(unknown)
    assert type(two) is int


def test_numbers_in_one_formula_are_floating_point():
    for given in ([[1, 2], [3]], [[True, False], [0.5]], [np.int8(3), 1 + 2j], [2.0, 3.0]):
        arrays = scalars.common(*given)
        assert {x.dtype.kind for x in arrays} <= {"f", "c"}
        for found, value in zip(arrays, given, strict=True):
            np.testing.assert_array_equal(found, value)


def test_series_end_below_rounding_where_closed_forms_begin_to_be_exact():
    """The first term that is left out, and the digits that x - sin x loses."""
    radius, terms = scalars._SERIES_RADIUS, scalars._SERIES_TERMS
    for first in (1, 2, 3):
        assert radius ** (2 * terms) / math.factorial(first + 2 * terms) < 1e-20
    assert np.log2(radius / (radius - np.sin(radius))) < 3  # bits
