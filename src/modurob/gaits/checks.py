"""What gaits are given, checked once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import is_number
from modurob.errors import StateError, UnknownNameError, choices

Numbers: TypeAlias = ArrayLike | Mapping[str, float]  # for joints: one, (n,), or by name
Edges: TypeAlias = Iterable[tuple[str, str]]


def checked_joints(joints: Sequence[str]) -> tuple[str, ...]:
    """Names of joints, none of them twice."""
    if isinstance(joints, str) or not all(isinstance(name, str) for name in joints):
        raise StateError(f"joints are given by their names, such as model.joint_names: {joints!r}")
    if len(set(joints)) < len(joints):
        twice = sorted({name for name in joints if list(joints).count(name) > 1})
        raise StateError(f"joints are there twice: {choices(twice)}")
    return tuple(joints)


def per_joint(
    what: str, value: Numbers, joints: Sequence[str], otherwise: float = 0.0
) -> np.ndarray:
    """(n,) read-only numbers, one for each joint.

    Args:
        what: For the error message.
        value: One number for all, (n,), or numbers by joint.
        otherwise: For joints that are not named.
    """
    given: Any = value
    if isinstance(value, Mapping):
        unknown = [name for name in value if name not in joints]
        if unknown:
            raise UnknownNameError(
                f"{what} names no joint with {unknown[0]!r}: joints are {choices(joints)}"
            )
        given = [value.get(name, otherwise) for name in joints]
    try:
        numbers = np.asarray(given)
        real = numbers.dtype.kind in "iuf" or numbers.size == 0
        numbers = numbers.astype(float) if real else numbers
    except (TypeError, ValueError, OverflowError):
        real, numbers = False, np.empty(0)
    if not real or not np.isfinite(numbers).all():
        raise StateError(f"{what} must hold finite numbers, got {given!r}"[:300])
    if numbers.shape not in ((), (len(joints),)):
        raise StateError(
            f"{what} has shape {numbers.shape}, expected one number or ({len(joints)},): "
            f"{choices(joints)}"
        )
    result = np.array(np.broadcast_to(numbers, (len(joints),)), dtype=float)
    result.setflags(write=False)
    return result


def checked_edges(edges: Edges, joints: Sequence[str]) -> np.ndarray:
    """(m, 2) indices of the joints that each edge connects."""
    index = {name: k for k, name in enumerate(joints)}
    pairs: list[tuple[int, int]] = []
    for edge in edges:
        if isinstance(edge, str) or not isinstance(edge, Sequence) or len(edge) != 2:
            raise StateError(f"an edge is a pair of joint names, got {edge!r}")
        unknown = [name for name in edge if name not in index]
        if unknown:
            raise UnknownNameError(
                f"an edge names no joint with {unknown[0]!r}: joints are {choices(joints)}"
            )
        i, j = sorted(index[name] for name in edge)
        if i == j or (i, j) in pairs:
            why = "leads back to itself" if i == j else "is there twice"
            raise StateError(f"the edge between '{edge[0]}' and '{edge[1]}' {why}")
        pairs.append((i, j))
    return np.array(pairs, dtype=np.intp).reshape(-1, 2)


def whole(what: str, value: Any, low: int, high: int) -> int:
    """A whole number from low to high."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= int(value) <= high:
        raise StateError(f"{what} is a whole number from {low} to {high}, got {value!r}")
    return int(value)


def inside(what: str, value: Any, low: float, high: float, why: str) -> float:
    """A number from low to high."""
    if not is_number(value) or not low <= value <= high:
        raise StateError(f"{what} is a number from {low:g} to {high:g} ({why}), got {value!r}")
    return float(value)


def checked_times(t: ArrayLike, resting: bool = False) -> np.ndarray:
    """(...) finite times; from 0 on unless the gait rests before."""
    try:
        times = np.asarray(t)
        if times.dtype.kind not in "iuf":
            raise TypeError
        times = times.astype(float, copy=False)
    except (TypeError, ValueError, OverflowError):
        raise StateError(f"t must hold times in seconds, got {t!r}"[:300]) from None
    if times.size and not np.isfinite(times).all():
        raise StateError("all times must be finite, got nan or inf in t")
    if not resting and times.size and times.min() < 0:
        raise StateError(
            f"the gait begins at t = 0 and was asked for t = {times.min():g}; "
            "with a ramp it rests before"
        )
    return times


def generator(rng: np.random.Generator | None) -> np.random.Generator:
    """`rng`, or one with a fixed seed."""
    if rng is None:
        return np.random.default_rng(0)
    if not isinstance(rng, np.random.Generator):
        raise StateError(f"rng must be a numpy.random.Generator, got {type(rng).__name__}")
    return rng
