"""Vectors and matrices of three, over any scalar.

Elements are floats, NumPy arrays (one entry for each state of a batch), SymPy expressions or traced
scalars; so one formula serves the reference, the symbolic forms and the compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np


class Vec:
    """Three scalars."""

    __slots__ = ("_e",)
    __array_ufunc__ = None  # array * Vec must come to Vec, not broadcast over its elements

    def __init__(self, elements: Sequence[Any]) -> None:
        self._e = tuple(elements)

    def __getitem__(self, k: int) -> Any:
        return self._e[k]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._e)

    def __len__(self) -> int:
        return 3

    def __add__(self, other: Vec) -> Vec:
        return Vec([a + b for a, b in zip(self._e, other._e, strict=True)])

    def __sub__(self, other: Vec) -> Vec:
        return Vec([a - b for a, b in zip(self._e, other._e, strict=True)])

    def __neg__(self) -> Vec:
        return Vec([-a for a in self._e])

    def __mul__(self, scalar: Any) -> Vec:
        return Vec([a * scalar for a in self._e])

    __rmul__ = __mul__

    def dot(self, other: Vec) -> Any:
        (a, b, c), (x, y, z) = self._e, other._e
        return a * x + b * y + c * z

    def cross(self, other: Vec) -> Vec:
        (a, b, c), (x, y, z) = self._e, other._e
        return Vec([b * z - c * y, c * x - a * z, a * y - b * x])


class Mat:
    """Three rows of three scalars."""

    __slots__ = ("_r",)
    __array_ufunc__ = None

    def __init__(self, rows: Sequence[Sequence[Any]]) -> None:
        self._r = tuple(tuple(row) for row in rows)

    def __getitem__(self, ij: tuple[int, int]) -> Any:
        return self._r[ij[0]][ij[1]]

    def column(self, j: int) -> Vec:
        return Vec([row[j] for row in self._r])

    def row(self, i: int) -> Vec:
        return Vec(self._r[i])

    @property
    def T(self) -> Mat:
        return Mat(list(zip(*self._r, strict=True)))

    def __add__(self, other: Mat) -> Mat:
        return Mat([[a + b for a, b in zip(r, s, strict=True)] for r, s in self._pairs(other)])

    def __sub__(self, other: Mat) -> Mat:
        return Mat([[a - b for a, b in zip(r, s, strict=True)] for r, s in self._pairs(other)])

    def __mul__(self, scalar: Any) -> Mat:
        return Mat([[a * scalar for a in row] for row in self._r])

    __rmul__ = __mul__

    def _pairs(self, other: Mat) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
        return zip(self._r, other._r, strict=True)

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, Vec):
            return Vec(
                [row[0] * other[0] + row[1] * other[1] + row[2] * other[2] for row in self._r]
            )
        columns = list(zip(*other._r, strict=True))
        return Mat([[a * x + b * y + c * z for x, y, z in columns] for a, b, c in self._r])


ZERO = Vec([0, 0, 0])
EYE = Mat([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
ZERO_MATRIX = Mat([[0] * 3] * 3)
Symmetric = Annotated[Mat, "symmetric"]  # six numbers are enough to keep one


Pair = TypeVar("Pair", "Twist", "Wrench")


def _plus(one: Pair, other: Pair) -> Pair:
    return type(one)(one[0] + other[0], one[1] + other[1])


def _minus(one: Pair, other: Pair) -> Pair:
    return type(one)(one[0] - other[0], one[1] - other[1])


def _times(one: Pair, scalar: Any) -> Pair:
    return type(one)(one[0] * scalar, one[1] * scalar)


class Twist(NamedTuple):
    """Linear and angular velocity (or acceleration) about the origin of a frame."""

    v: Vec = ZERO
    w: Vec = ZERO

    plus, minus, times = _plus, _minus, _times

    def cross(self, other: Twist) -> Twist:
        """V x U, the rate of a twist U that moves along with V."""
        return Twist(self.w.cross(other.v) + self.v.cross(other.w), self.w.cross(other.w))

    def cross_wrench(self, F: Wrench) -> Wrench:
        """V x* F, the rate of a wrench that moves along with V."""
        return Wrench(self.w.cross(F.f), self.v.cross(F.f) + self.w.cross(F.n))

    def power(self, F: Wrench) -> Any:
        """V . F"""
        return self.v.dot(F.f) + self.w.dot(F.n)


class Wrench(NamedTuple):
    """Force and torque about the origin of a frame."""

    f: Vec = ZERO
    n: Vec = ZERO

    plus, minus, times = _plus, _minus, _times


def hat(w: Vec) -> Mat:
    """Skew matrix: hat(w) u = w x u."""
    x, y, z = w
    return Mat([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def outer(a: Vec, b: Vec) -> Mat:
    """a b^T."""
    return Mat([[x * y for y in b] for x in a])


def symmetric(function: Callable[[int, int], Any]) -> Mat:
    """The symmetric matrix of `function(i, j)`, each pair computed once."""
    upper = {(i, j): function(i, j) for i in range(3) for j in range(i, 3)}
    return Mat([[upper[min(i, j), max(i, j)] for j in range(3)] for i in range(3)])


def turned_symmetric(R: Mat, S: Mat) -> Mat:
    """R S R^T of a symmetric S, each pair computed once."""
    half = R @ S
    return symmetric(lambda i, j: half.row(i).dot(R.row(j)))


def vec(array: Any) -> Vec:
    """A Vec from an array (..., 3): floats without batch, arrays (...) with one."""
    return Vec([_scalar(array[..., k]) for k in range(3)])


def mat(array: Any) -> Mat:
    """A Mat from an array (..., 3, 3)."""
    return Mat([[_scalar(array[..., i, j]) for j in range(3)] for i in range(3)])


def _scalar(value: Any) -> Any:
    return value.item() if isinstance(value, np.ndarray | np.generic) and value.ndim == 0 else value


def unpacked(x: np.ndarray) -> list[Any]:
    """The last axis as scalars: floats without batch, arrays with one."""
    return x.tolist() if x.ndim == 1 else [x[..., k] for k in range(x.shape[-1])]


def packed(scalars: Sequence[Any], like: np.ndarray) -> np.ndarray:
    """(..., k) array of k scalars, with the batch shape of `like` (...)."""
    result = np.empty((*like.shape, len(scalars)), dtype=np.result_type(like, float))
    for k, scalar in enumerate(scalars):
        result[..., k] = scalar
    return result
