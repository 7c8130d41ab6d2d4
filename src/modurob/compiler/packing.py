"""Typed values as flat lists of scalars.

Sizes come from the types alone: a scalar takes one place, a Vec three, a Mat nine, a symmetric one
six, a NamedTuple the sum of its fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np

from modurob.equations.vectors import Mat, Vec

UPPER = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))  # entries of a symmetric matrix
UPPER_INDEX = np.transpose(UPPER)
ALL = tuple((i, j) for i in range(3) for j in range(3))


def _plain(kind: Any) -> tuple[Any, bool]:
    """A type without annotation, and whether it is a symmetric matrix."""
    if get_origin(kind) is Annotated:
        return get_args(kind)[0], "symmetric" in get_args(kind)[1:]
    return kind, False


@cache
def fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Names and types of a NamedTuple's fields."""
    return tuple(get_type_hints(kind, include_extras=True).items())


@cache
def size(kind: Any) -> int:
    """Number of scalars of a value of this type."""
    kind, is_symmetric = _plain(kind)
    if kind is Vec:
        return 3
    if kind is Mat:
        return 6 if is_symmetric else 9
    if isinstance(kind, type) and issubclass(kind, tuple):
        return sum(size(each) for _, each in fields(kind))
    return 1


def flat(kind: Any, value: Any) -> list[Any]:
    """The scalars of a value; None for each that is not set."""
    if value is None:
        return [None] * size(kind)
    kind, is_symmetric = _plain(kind)
    if kind is Vec:
        return list(value)
    if kind is Mat:
        return [value[place] for place in (UPPER if is_symmetric else ALL)]
    if isinstance(kind, type) and issubclass(kind, tuple):
        parts = zip(fields(kind), value, strict=True)
        return [scalar for (_, each), part in parts for scalar in flat(each, part)]
    return [value]


def columns(kind: Any, array: np.ndarray) -> np.ndarray:
    """(n, size) the scalars of n values of a type without fields, from an array of them."""
    plain, is_symmetric = _plain(kind)
    if plain is Mat and is_symmetric:
        array = array[:, *UPPER_INDEX]
    return array.reshape(len(array), size(kind))


def unflat(kind: Any, scalars: Sequence[Any]) -> Any:
    """The value that `flat` took apart."""
    return _taken(kind, iter(scalars))


def _taken(kind: Any, scalars: Iterator[Any]) -> Any:
    kind, is_symmetric = _plain(kind)
    if kind is Vec:
        return Vec([next(scalars) for _ in range(3)])
    if kind is Mat:
        at = {place: next(scalars) for place in (UPPER if is_symmetric else ALL)}
        if is_symmetric:
            at |= {(j, i): x for (i, j), x in at.items()}
        return Mat([[at[i, j] for j in range(3)] for i in range(3)])
    if isinstance(kind, type) and issubclass(kind, tuple):
        return kind(*(_taken(each, scalars) for _, each in fields(kind)))
    return next(scalars)
