"""Vectors, matrices and screws of any scalar against NumPy."""

import numpy as np
import pytest

from modurob.equations.vectors import (
    EYE,
    ZERO,
    ZERO_MATRIX,
    Mat,
    Twist,
    Vec,
    Wrench,
    hat,
    mat,
    outer,
    packed,
    symmetric,
    turned_symmetric,
    unpacked,
    vec,
)

ROUNDING = 1e-14  # of products of three numbers of size one
A, B = np.random.default_rng(0).normal(size=(2, 3, 3))
a, b, c, d = np.random.default_rng(1).normal(size=(4, 3))


def array(x):
    return np.array([[x[i, j] for j in range(3)] for i in range(3)] if isinstance(x, Mat) else [*x])


def close(found, expected):
    np.testing.assert_allclose(array(found), expected, rtol=0, atol=ROUNDING)


def test_vectors_and_matrices_have_the_operations_of_numpy():
    u, v, M, N = Vec(a), Vec(b), Mat(A), Mat(B)
    assert len(u) == 3
    assert u.dot(v) == pytest.approx(a @ b)
    for found, expected in (
        (u + v, a + b), (u - v, a - b), (-u, -a), (u * 2, 2 * a), (2 * u, 2 * a),
        (u.cross(v), np.cross(a, b)), (M @ u, A @ a), (M @ N, A @ B), (M.T, A.T), (M + N, A + B),
        (M - N, A - B), (M * 2, 2 * A), (2 * M, 2 * A), (M.column(1), A[:, 1]), (M.row(1), A[1]),
        (hat(u) @ v, np.cross(a, b)), (outer(u, v), np.outer(a, b)), (ZERO, np.zeros(3)),
        (EYE, np.eye(3)), (ZERO_MATRIX, np.zeros((3, 3))),
        (symmetric(lambda i, j: A[i, j] if i <= j else None), np.triu(A) + np.triu(A, 1).T),
        (turned_symmetric(M, Mat(B + B.T)), A @ (B + B.T) @ A.T),
    ):  # fmt: skip
        close(found, expected)


def test_arrays_of_numbers_times_a_vector_are_a_vector_of_arrays():
    scale = np.array([1.0, 2.0])
    for found in (scale * Vec(a), Vec(a) * scale):
        assert isinstance(found, Vec)
        close(found, np.outer(a, scale))
    assert isinstance(scale * Mat(A), Mat)


def test_twists_and_wrenches_move_along_with_a_twist():
    """By the matrices of the adjoint and of its transpose."""
    V, U, F = Twist(Vec(a), Vec(b)), Twist(Vec(c), Vec(d)), Wrench(Vec(c), Vec(d))
    v, w = array(hat(Vec(a))), array(hat(Vec(b)))
    ad = np.block([[w, v], [np.zeros((3, 3)), w]])
    u = np.concatenate([c, d])
    for found, expected in (
        (V.cross(U), ad @ u), (V.cross_wrench(F), -ad.T @ u), (V.plus(U), [*a + c, *b + d]),
        (V.minus(U), [*a - c, *b - d]), (F.times(3), 3 * u), (F.plus(F), 2 * u),
    ):  # fmt: skip
        np.testing.assert_allclose(np.concatenate([*map(array, found)]), expected, atol=ROUNDING)
    assert isinstance(V.cross_wrench(F), Wrench)
    assert V.power(F) == pytest.approx(a @ c + b @ d)


def test_the_last_axis_of_an_array_is_taken_apart_and_put_together():
    q = np.arange(6.0).reshape(2, 3)
    assert unpacked(q[0]) == [0, 1, 2]
    assert all(isinstance(x, float) for x in (*unpacked(q[0]), *vec(q[0]), mat(A)[1, 2]))
    np.testing.assert_array_equal(unpacked(q), q.T)
    np.testing.assert_array_equal(array(vec(q)), q.T)
    np.testing.assert_array_equal(array(mat(A)), A)
    np.testing.assert_array_equal(packed(unpacked(q), q[:, 0]), q)
    assert packed([1, 2], np.zeros((), dtype=int)).dtype == float
    assert packed([1j], np.zeros((), dtype=complex)).dtype == complex
