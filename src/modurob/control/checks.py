"""What controllers are given, checked once; and numbers per joint carried to another body."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import is_number
from modurob.dynamics import CudaDynamics
from modurob.errors import StateError
from modurob.model import Model


def checked_model(model: Any) -> Model:
    """A model that runs on the CPU, or a `StateError`."""
    if not isinstance(model, Model):
        given = type(model).__name__
        raise StateError(f"a controller takes a model such as organism.model(), got {given}")
    if isinstance(model.dynamics, CudaDynamics):
        raise StateError("controllers run on the CPU; pass the model that was compiled for 'cuda'")
    return model


def real_array(name: str, value: Any, infinite: bool = False) -> np.ndarray:
    """Real numbers as an array of our own, finite unless told, or a `StateError`."""
    array = _array(value, "iufO", float)
    if array is None or np.isnan(array).any() or not (infinite or np.isfinite(array).all()):
        raise StateError(f"{name} must hold finite real numbers, got {str(value)[:60]!r}")
    return array


def complex_array(name: str, value: Any) -> np.ndarray:
    """Finite numbers, real or complex, as an array of our own, or a `StateError`."""
    array = _array(value, "iufcO", complex)
    if array is None or not np.isfinite(array).all():
        raise StateError(f"{name} must hold finite numbers, got {str(value)[:60]!r}")
    return array


def _array(value: Any, kinds: str, dtype: type) -> np.ndarray | None:
    """None if these are no numbers; text and truth values are none, although NumPy takes them."""
    try:
        given = np.asarray(value)
        if given.dtype.kind not in kinds or any(isinstance(x, str | bool) for x in given.flat):
            return None
        return given.astype(dtype)
    except (TypeError, ValueError, OverflowError):
        return None


def per_joint(
    name: str, value: ArrayLike, model: Model, least: float = 0.0, infinite: bool = False
) -> np.ndarray:
    """(n,) one number per joint, from one for all or from n, none below `least`."""
    n, array = len(model.joint_names), real_array(name, value, infinite)
    if array.shape not in ((), (n,)):
        raise StateError(
            f"{name} is one number or one for each of {n} joints, got shape {array.shape}"
        )
    if np.any(array < least):
        raise StateError(f"{name} must be at least {least:g}, got {value!r}")
    return np.array(np.broadcast_to(array, (n,)))


def gain(name: str, value: ArrayLike, model: Model) -> np.ndarray:
    """(n,) or (n, n) gains: positive, one for all joints or for each; or any matrix.

    Whether a matrix makes a stable loop is not seen from its entries: certificates tell.
    """
    n, array = len(model.joint_names), real_array(name, value)
    if array.ndim == 2 and array.shape == (n, n):
        return array
    if array.shape not in ((), (n,)):
        raise StateError(
            f"{name} is one number, one for each of {n} joints, or a ({n}, {n}) matrix, "
            f"got shape {array.shape}"
        )
    if np.any(array <= 0):
        raise StateError(f"{name} must be positive, got {value!r}: the joints would be pushed away")
    return np.array(np.broadcast_to(array, (n,)))


def as_matrix(values: np.ndarray) -> np.ndarray:
    """(n, n) of a gain."""
    return np.diag(values) if values.ndim == 1 else values


def applied(values: np.ndarray, error: np.ndarray) -> np.ndarray:
    """(..., n) gain times error."""
    return values * error if values.ndim == 1 else error @ values.T


def survivors(old: Model, new: Model) -> tuple[np.ndarray, np.ndarray]:
    """Where the joints that both bodies have stand: in the old one, and in the new one."""
    place = {name: k for k, name in enumerate(old.joint_names)}
    pairs = [(place[name], k) for k, name in enumerate(new.joint_names) if name in place]
    index = np.array(pairs, dtype=int).reshape(-1, 2)
    return index[:, 0], index[:, 1]


def carried(
    values: np.ndarray,
    old: Model,
    new: Model,
    typical: float | None = None,
    scale: tuple[np.ndarray, np.ndarray] | None = None,
) -> np.ndarray:
    """Numbers per joint for a new body: surviving joints keep theirs, new ones get a typical one.

    Args:
        values: (n,) or (n, n) of the old body; new joints are not coupled with others.
        old, new: The two bodies.
        typical: For new joints; the median of the old ones by default.
        scale: (n,) sizes of the old and of the new body's joints; the median is then that of
            values per size, so that a heavy joint does not get the gain of a light one.
    """
    there, here = survivors(old, new)
    n = len(new.joint_names)
    sizes = (np.ones(len(old.joint_names)), np.ones(n)) if scale is None else scale
    diagonal = values if values.ndim == 1 else np.diagonal(values)
    middle = float(np.median(diagonal / sizes[0])) if len(diagonal) else 0.0
    result = middle * sizes[1] if typical is None else np.full(n, float(typical))
    result[here] = diagonal[there]
    if values.ndim == 1:
        return result
    matrix = np.diag(result)
    matrix[np.ix_(here, here)] = values[np.ix_(there, there)]
    return matrix


def typical(value: Any) -> float | None:
    """A number that was given for all joints, and so also holds for those still to come."""
    return float(value) if is_number(value) else None


def joint_names(what: str, names: Iterable[str] | str, model: Model) -> tuple[str, ...]:
    """Names of active joints in the model's order, or an `UnknownNameError`."""
    chosen = {names} if isinstance(names, str) else set(names)
    for name in chosen:
        model.joint_index(name)
    if isinstance(names, tuple | list) and len(chosen) != len(names):
        raise StateError(f"{what} names a joint twice: {names!r}")
    return tuple(name for name in model.joint_names if name in chosen)
