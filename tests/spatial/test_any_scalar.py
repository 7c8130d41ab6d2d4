"""SymPy and traced elements give the formulas that numbers give."""

from __future__ import annotations

import math
import operator
import subprocess
import sys

import numpy as np
import pytest
import sympy

from modurob.spatial import inertia, scalars, se3, so3

ROUNDING = 1e-13  # the same formula in another order of operations, entries up to about 10
RNG = np.random.default_rng(4)
X = sympy.symbols("x:20", real=True)


class Traced:
    """Remembers how it was computed; knows only the arithmetic that the package promises to use."""

    __slots__ = ("evaluate",)

    def __init__(self, evaluate):
        self.evaluate = evaluate

    @staticmethod
    def value(x, env):
        return x.evaluate(env) if isinstance(x, Traced) else x

    def _binary(self, other, op):
        return Traced(lambda env: op(self.evaluate(env), Traced.value(other, env)))

    def __add__(self, other):
        return self._binary(other, operator.add)

    def __sub__(self, other):
        return self._binary(other, operator.sub)

    def __mul__(self, other):
        return self._binary(other, operator.mul)

    def __truediv__(self, other):
        return self._binary(other, operator.truediv)

    def __rsub__(self, other):
        return self._binary(other, lambda a, b: b - a)

    def __rtruediv__(self, other):
        return self._binary(other, lambda a, b: b / a)

    def __neg__(self):
        return self._binary(-1, operator.mul)

    __radd__ = __add__
    __rmul__ = __mul__

    def sin(self):
        return Traced(lambda env: math.sin(self.evaluate(env)))

    def cos(self):
        return Traced(lambda env: math.cos(self.evaluate(env)))

    def sqrt(self):
        return Traced(lambda env: math.sqrt(self.evaluate(env)))

    def atan2(self, x):
        return Traced(lambda env: math.atan2(self.evaluate(env), Traced.value(x, env)))


def traced_inputs(number):
    return [Traced(lambda env, k=k: env[k]) for k in range(number)]


def evaluate_traced(array, values):
    return np.vectorize(lambda x: float(Traced.value(x, values)), otypes=[float])(array)


def evaluate_symbolic(array, values):
    array = np.asarray(array)
    f = sympy.lambdify(X, [sympy.sympify(x) for x in array.ravel()], "math")
    padded = list(values) + [0.0] * (len(X) - len(values))
    return np.array(f(*padded), float).reshape(array.shape)


def a_pose(x):
    """A pose from 6 scalars of any type."""
    return se3.screw_motion(np.array([0, 1, 0, 0, 0, 1.0]), x[0]) @ se3.exp(x[:6])


SCREWS = np.array([[0.2, -0.1, 0.5, 0, 0.6, 0.8], [0, 0.6, 0.8, 0, 0, 0], [0, 0, 0, 1, 0, 0]])

FORMULAS = {
    "so3.hat": lambda x: so3.hat(x[:3]),
    "so3.rotation": lambda x: so3.rotation([0, 0.6, 0.8], x[0]),
    "so3.rotation of symbolic axis": lambda x: so3.rotation(x[:3], x[3]),
    "so3.rotation, one axis": lambda x: so3.rotation(x[:3], x[3:9].reshape(2, 3)),
    "so3.rotation, one angle": lambda x: so3.rotation(x[:6].reshape(2, 3), x[6]),
    "so3.cross, one left": lambda x: so3.cross(x[:3], x[3:9].reshape(2, 3)),
    "so3.exp": lambda x: so3.exp(x[:3]),
    "so3.log": lambda x: so3.log(so3.rotation([0, 0.6, 0.8], x[0])),
    "so3.to_quaternion": lambda x: so3.to_quaternion(so3.rotation([0, 0.6, 0.8], x[0])),
    "so3.from_quaternion": lambda x: so3.from_quaternion(x[:4]),
    "so3.from_rpy": lambda x: so3.from_rpy(x[0], x[1], x[2]),
    "so3.left_jacobian": lambda x: so3.left_jacobian(x[:3]),
    "so3.left_jacobian_inverse": lambda x: so3.left_jacobian_inverse(x[:3]),
    "se3.exp": lambda x: se3.exp(x[:6]),
    "se3.log": lambda x: se3.log(se3.screw_motion(SCREWS[0], x[0])),
    "se3.screw_motion": lambda x: se3.screw_motion(SCREWS, x[:3]),
    "se3.screw_motion batch": lambda x: se3.screw_motion(SCREWS, x[:6].reshape(2, 3)),
    "se3.inverse": lambda x: se3.inverse(a_pose(x)),
    "se3.Ad": lambda x: se3.Ad(se3.screw_motion(SCREWS[0], x[0])),
    "se3.ad": lambda x: se3.ad(x[:6]),
    "se3.bracket": lambda x: se3.bracket(x[:6], x[6:12]),
    "se3.transform_twist": lambda x: se3.transform_twist(
        se3.screw_motion(SCREWS[0], x[0]), x[6:12]
    ),
    "se3.transform_wrench": lambda x: se3.transform_wrench(np.eye(4), x[6:12]),
    "se3.vee": lambda x: se3.vee(se3.hat(x[:6])),
    "spatial_inertia": lambda x: inertia.spatial_inertia(x[0], x[1:4], np.eye(3)),
    "moved": lambda x: inertia.moved(
        se3.screw_motion(SCREWS[0], x[0]), inertia.spatial_inertia(1.5, x[1:4], np.eye(3))
    ),
    "at_center": lambda x: inertia.at_center(x[0], x[1:4], np.eye(3)),
    "union mass": lambda x: inertia.union(x[:2], x[2:8].reshape(2, 3), np.zeros((2, 3, 3)))[0],
    "union center": lambda x: inertia.union(x[:2], x[2:8].reshape(2, 3), np.zeros((2, 3, 3)))[1],
    "union inertia": lambda x: inertia.union(x[:2], x[2:8].reshape(2, 3), np.zeros((2, 3, 3)))[2],
}


@pytest.mark.parametrize("name", FORMULAS)
def test_symbolic_and_traced_elements_agree_with_numbers(name):
    values = RNG.uniform(0.2, 1.2, 12)
    numeric = np.asarray(FORMULAS[name](values))
    symbolic = np.asarray(FORMULAS[name](np.array(X[:12], object)))
    traced = np.asarray(FORMULAS[name](np.array(traced_inputs(12), object)))
    assert numeric.dtype == np.float64
    assert symbolic.dtype == traced.dtype == object
    assert symbolic.shape == traced.shape == numeric.shape
    np.testing.assert_allclose(evaluate_symbolic(symbolic, values), numeric, atol=ROUNDING)
    np.testing.assert_allclose(evaluate_traced(traced, values), numeric, atol=ROUNDING)


def test_an_angle_may_come_from_a_number_and_a_traced_scalar():
    x = traced_inputs(1)[0]
    for y, other in ((0.4, x), (x, 0.4), (x, x)):
        numbers = [Traced.value(each, [-0.7]) for each in (y, other)]
        assert Traced.value(scalars.atan2(y, other), [-0.7]) == math.atan2(*numbers)


def test_one_traced_axis_or_angle_serves_a_row_of_the_others():
    """Also a row of three, which is as long as an axis."""
    values = RNG.uniform(0.2, 1.2, 15)

    def formulas(x):
        axis, others = x[:3], x[6:].reshape(3, 3)
        found = so3.rotation(axis, x[3:6]), so3.rotation(others, x[3]), so3.rotation(axis, x[3])
        return *found, so3.cross(axis, others), so3.cross(others, axis)

    for traced, right in zip(
        formulas(np.array(traced_inputs(15), object)), formulas(values), strict=True
    ):
        np.testing.assert_allclose(evaluate_traced(traced, values), right, atol=ROUNDING)


def test_symbolic_rodrigues_equals_the_exponential_on_a_unit_axis():
    q = X[0]
    axis = [sympy.Rational(2, 3), sympy.Rational(-1, 3), sympy.Rational(2, 3)]
    R = sympy.Matrix(so3.rotation(axis, q))
    W = sympy.Matrix(so3.hat(axis))
    # The exponential is the only solution of R' = W R with R(0) = I.
    assert (R.diff(q) - W * R).applyfunc(sympy.simplify) == sympy.zeros(3)
    assert R.subs(q, 0) == sympy.eye(3)


def test_symbolic_screw_motion_equals_the_exponential():
    q, h, a, b = X[:4]
    s = [a, b, h, 0, 0, 1]
    T = sympy.Matrix(se3.screw_motion(s, q))
    assert (T.diff(q) - sympy.Matrix(se3.hat(s)) * T).applyfunc(sympy.simplify) == sympy.zeros(4)
    assert T.subs(q, 0) == sympy.eye(4)


def test_symbolic_forms_stay_in_plain_sin_and_cos():
    q = X[0]
    s, c = sympy.sin(q), sympy.cos(q)
    np.testing.assert_array_equal(
        so3.rotation(np.array([0.0, 0.0, 1.0]), q), [[c, -s, 0], [s, c, 0], [0, 0, 1]]
    )
    offset = se3.screw_motion(np.array([0, -2.0, 0, 0, 0, 1]), q)  # about z through (2, 0, 0)
    assert list(se3.position_of(offset)) == [2 - 2 * c, -2 * s, 0]
    assert not sympy.Matrix(offset).has(sympy.Float)


def test_numbers_among_symbols_stay_exact():
    """Whole arrays of ints inside a symbolic pose do not turn into floats on the way."""
    T = se3.pose(np.eye(3), np.array([1, 2, X[0] - X[0] + 3], object))
    J = inertia.at_origin(1.0, np.array([1, 2, 3], object), np.zeros((3, 3)))
    for array in (se3.inverse(T), se3.Ad(T), se3.transform_twist(T, [0, 0, 0, 0, 0, 2.0]), J):
        assert array.dtype == object
        assert not any(isinstance(number, float) for number in array.ravel())


def test_exp_of_a_symbolic_zero_is_the_identity():
    zero = np.array([sympy.Integer(0)] * 6, object)
    assert (se3.exp(zero) == np.eye(4, dtype=int)).all()
    assert (se3.log(se3.exp(zero)) == 0).all()


def test_poses_compose_with_the_matrix_product_for_every_scalar():
    symbolic = se3.screw_motion(SCREWS[2], X[0]) @ se3.screw_motion(SCREWS[2], X[1])
    total = evaluate_symbolic(symbolic, [0.3, 0.4])
    np.testing.assert_allclose(total, se3.screw_motion(SCREWS[2], 0.7), atol=ROUNDING)


def test_import_does_not_load_sympy():
    check = "import sys, modurob.spatial.se3; assert 'sympy' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], check=True)
