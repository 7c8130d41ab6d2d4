"""Elementary functions and array building over any scalar type.

Every array of this package holds its object on the trailing axes. Its elements are numbers (float,
or complex for complex-step derivatives) or, with ``dtype=object``, SymPy expressions or traced
scalars: objects with ``+ - * /`` and the methods ``sin() cos() sqrt() atan2(x)``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import factorial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Scalars: TypeAlias = Any
"""A scalar of any type, an array of them, or nested lists of them."""

_NUMBER = (int, float, complex, np.number, np.bool_)
_PLAIN = {int, float, np.float64}
_WHOLE = "iub"  # kinds of dtypes that hold integers and truth values
_LARGEST_EXACT_INTEGER = 2.0**53  # beyond it a float no longer names one integer

# Below this |x| the series of sinc, cosc and sincc are used; their 11 terms reach 1e-20 there,
# and above it the closed forms lose less than three bits to cancellation.
_SERIES_RADIUS = 1.0
_SERIES_TERMS = 11


def sin(x: Scalars) -> Any:
    """Elementwise sine. [rad]"""
    return _unary("sin", x)


def cos(x: Scalars) -> Any:
    """Elementwise cosine. [rad]"""
    return _unary("cos", x)


def sqrt(x: Scalars) -> Any:
    """Elementwise principal square root."""
    return _unary("sqrt", x)


def maximum(x: Any, y: Any) -> Any:
    """Elementwise larger one of two numbers or traced scalars."""
    return x.maximum(y) if hasattr(x, "maximum") else np.maximum(x, y)


def minimum(x: Any, y: Any) -> Any:
    """Elementwise smaller one of two numbers or traced scalars."""
    return x.minimum(y) if hasattr(x, "minimum") else np.minimum(x, y)


def trunc(x: Any) -> Any:
    """Elementwise whole part of a number or traced scalar."""
    return x.trunc() if hasattr(x, "trunc") else np.trunc(x)


def atan2(y: Scalars, x: Scalars) -> Any:
    """Elementwise angle of the point (x, y), analytic in complex arguments. [rad]"""
    y, x = np.asarray(y), np.asarray(x)
    if y.dtype == object or x.dtype == object:
        return np.frompyfunc(_generic_atan2, 2, 1)(y, x)
    if np.iscomplexobj(y) or np.iscomplexobj(x):
        return _complex_atan2(y, x)
    return np.arctan2(y, x)


def versine(x: Scalars) -> Any:
    """Elementwise 1 - cos x, without cancellation for numbers. [rad]"""
    x = np.asarray(x)
    if x.dtype == object:
        return 1 - cos(x)
    half = np.sin(x / 2)
    return 2 * (half * half)  # not half**2: a single number would go through the library's pow


def sinc(x: Scalars) -> Any:
    """Elementwise sin(x)/x, 1 at x = 0. [rad]"""
    return _entire(x, lambda x: sin(x) / x, first=1)


def cosc(x: Scalars) -> Any:
    """Elementwise (1 - cos x)/x^2, 1/2 at x = 0. [rad]"""
    return _entire(x, lambda x: versine(x) / (x * x), first=2)


def sincc(x: Scalars) -> Any:
    """Elementwise (x - sin x)/x^3, 1/6 at x = 0. [rad]"""
    return _entire(x, lambda x: (x - sin(x)) / (x * x * x), first=3)


def quotient(numerator: Scalars, denominator: Scalars, limit: Scalars) -> Any:
    """Elementwise numerator/denominator, and `limit` where the denominator is zero for certain."""
    numerator, denominator, limit = common(numerator, denominator, limit)
    if denominator.dtype == object:
        return np.frompyfunc(_generic_quotient, 3, 1)(numerator, denominator, limit)
    zero = denominator == 0
    return np.where(zero, limit, numerator / np.where(zero, 1, denominator))[()]


def common(*values: Scalars) -> tuple[Array, ...]:
    """The values as arrays that can be mixed in one formula.

    Numeric arrays are floating point or complex. As soon as one value has object elements all get
    them, and whole floats become ints, so that SymPy keeps `sin(q)` instead of `1.0*sin(q)`.
    """
    arrays = tuple([np.asarray(value) for value in values])
    kinds = {array.dtype.kind for array in arrays}
    if "O" in kinds:
        return tuple([_exact_objects(array) for array in arrays])
    if kinds.isdisjoint(_WHOLE):
        return arrays
    return tuple([a.astype(np.float64) if a.dtype.kind in _WHOLE else a for a in arrays])


def stack(nested: Scalars, like: Scalars = 0) -> Array:
    """Builds an array (..., *shape) from nested lists of scalars or batch arrays.

    Args:
        nested: lists (or tuples) nested to the depth of `shape`; each leaf is a scalar or an array
            whose whole shape is batch. The batch shapes broadcast.
        like: where the leaves come from: object dtype there is kept even if all leaves are numbers.

    Returns:
        (..., *shape), of dtype object if any leaf is not a number, never of an integer dtype.
    """
    shape: list[int] = []
    level = nested
    while isinstance(level, list | tuple):
        shape.append(len(level))
        level = level[0]
    flat = _leaves(nested, shape)
    if _PLAIN.issuperset(map(type, flat)) and np.asarray(like).dtype != object:
        return np.array(flat, dtype=np.float64).reshape(shape)  # common, and quick to build
    leaves = common(*flat, like)[:-1]
    batch = np.broadcast_shapes(*{leaf.shape for leaf in leaves})
    array = np.empty((*batch, len(leaves)), np.result_type(*{leaf.dtype for leaf in leaves}))
    for k, leaf in enumerate(leaves):
        array[..., k] = leaf
    return array.reshape(*batch, *shape)


def block(rows: list[list[Scalars]]) -> Array:
    """Builds a matrix from blocks (..., m, n) laid out in rows; their batch shapes broadcast."""
    blocks = iter(common(*[part for row in rows for part in row]))
    table = [[next(blocks) for _ in row] for row in rows]
    parts = [part for row in table for part in row]
    batch = np.broadcast_shapes(*{part.shape[:-2] for part in parts})
    height, width = sum(row[0].shape[-2] for row in table), sum(b.shape[-1] for b in table[0])
    matrix = np.empty((*batch, height, width), np.result_type(*{part.dtype for part in parts}))
    top = 0
    for row in table:
        left, bottom = 0, top + row[0].shape[-2]
        for part in row:
            right = left + part.shape[-1]
            matrix[..., top:bottom, left:right] = part
            left = right
        top = bottom
    return matrix


def entry(array: Array, *index: int) -> Any:
    """Entry `index` of the trailing axes: a batch array (...), or the plain scalar without batch.

    Never a 0-d array: `scalar * 0-d array` would hand the array to the scalar's own `__mul__`.
    """
    return array[(..., *index)][()]


def matvec(matrix: Array, vector: Array) -> Array:
    """Matrix (..., m, n) times vector (..., n), giving (..., m)."""
    return (matrix @ vector[..., None])[..., 0]


def product(A: Array, B: Array) -> Array:
    """A (..., m, k) times B (..., k, n), summed from the first of k to the last on every machine.

    BLAS chooses an order of its own; what shall have the same bytes elsewhere is multiplied here.
    """
    total = A[..., :, :1] * B[..., :1, :]
    for k in range(1, A.shape[-1]):
        total += A[..., :, k : k + 1] * B[..., k : k + 1, :]
    return total


def transpose(matrix: Array) -> Array:
    """Swaps the last two axes."""
    return np.swapaxes(matrix, -1, -2)


def _unary(name: str, x: Scalars) -> Any:
    x = np.asarray(x)
    numeric = getattr(np, name)
    if x.dtype != object:
        return numeric(x)

    def generic(element: Any) -> Any:
        if isinstance(element, _NUMBER):
            return numeric(element).item()
        method = getattr(element, name, None)
        return method() if callable(method) else _sympy_function(name)(element)

    return np.frompyfunc(generic, 1, 1)(x)


def _sympy_function(name: str) -> Callable[..., Any]:
    import sympy

    return getattr(sympy, name)


def _generic_atan2(y: Any, x: Any) -> Any:
    if isinstance(y, _NUMBER) and isinstance(x, _NUMBER):
        return atan2(y, x).item()
    if hasattr(x, "atan2") and not hasattr(y, "atan2"):
        y = x * 0 + y  # lifts the number y to the type of x
    method = getattr(y, "atan2", None)
    return method(x) if callable(method) else _sympy_function("atan2")(y, x)


def _complex_atan2(y: Array, x: Array) -> Any:
    # Turned by its real angle the point lies on the real axis up to the imaginary parts, where
    # arctan keeps even a 1e-200 complex step.
    angle = np.arctan2(np.real(y), np.real(x))
    c, s = np.cos(angle), np.sin(angle)
    return angle + np.arctan(quotient(y * c - x * s, x * c + y * s, 0))


def _entire(x: Scalars, closed_form: Callable[[Any], Any], first: int) -> Any:
    """An even entire function 1/first! - x^2/(first + 2)! + x^4/(first + 4)! - ..."""
    x = np.asarray(x)
    if x.dtype == object:

        def generic(element: Any) -> Any:
            if isinstance(element, _NUMBER):
                return _entire(element, closed_form, first).item()
            if _generic_is_zero(element):
                return (element + 1) / factorial(first)  # exact, whatever type the zero has
            return closed_form(element)

        return np.frompyfunc(generic, 1, 1)(x)
    if x.size == 1 and x.dtype == np.float64:  # common, and quicker without arrays
        return np.reshape(_entire_number(x.reshape(())[()], closed_form, first), x.shape)[()]
    near = np.abs(x) < _SERIES_RADIUS
    small = np.where(near, x, 0)
    squared = small * small
    series = np.zeros_like(squared)
    for coefficient in _coefficients(first):
        series = coefficient + squared * series
    return np.where(near, series, closed_form(np.where(near, 1.0, x)))[()]


def _entire_number(x: np.float64, closed_form: Callable[[Any], Any], first: int) -> Any:
    if not abs(x) < _SERIES_RADIUS:
        return closed_form(x)
    number, series = float(x), 0.0
    for coefficient in _coefficients(first):
        series = coefficient + number * number * series
    return np.float64(series)


@cache
def _coefficients(first: int) -> tuple[float, ...]:
    """Of the series, from the highest power down."""
    return tuple((-1) ** k / factorial(first + 2 * k) for k in reversed(range(_SERIES_TERMS)))


def _generic_is_zero(element: Any) -> bool:
    if isinstance(element, _NUMBER):
        return bool(element == 0)
    return getattr(element, "is_zero", None) is True


def _generic_quotient(numerator: Any, denominator: Any, limit: Any) -> Any:
    return limit if _generic_is_zero(denominator) else numerator / denominator


def _exact_objects(array: Array) -> Array:
    if array.dtype == object:
        return array
    objects = array.astype(object)
    if array.dtype.kind != "f":
        return objects
    whole = (np.abs(array) < _LARGEST_EXACT_INTEGER) & (array == np.trunc(array))
    if whole.any():
        objects[whole] = array[whole].astype(np.int64).astype(object)
    return objects


def _leaves(nested: Scalars, shape: list[int]) -> list[Scalars]:
    parts = [nested]
    for length in shape:
        for part in parts:
            if not isinstance(part, (list, tuple)) or len(part) != length:
                raise ValueError(f"stack needs lists of equal length ({length} here), got {part!r}")
        parts = [each for part in parts for each in part]
    if any(isinstance(leaf, (list, tuple)) for leaf in parts):
        raise ValueError("stack needs lists nested to one depth; a leaf may be an array")
    return parts
