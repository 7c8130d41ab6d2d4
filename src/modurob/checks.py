"""Checks of numbers, arrays and addresses that users give, made once at the public boundary.

NumPy is imported where arrays are checked: processes of modules use the rest and run without it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeAlias

from modurob.errors import SizeError, StateError, UnknownNameError, choices

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

Numbers: TypeAlias = "ArrayLike | Mapping[str, float]"  # for joints: one, (n,), or by name

LARGEST_BYTES = 8_000_000_000  # arrays of one call; more is refused before it is allocated

LARGEST_DATA = 1e12  # [kg, m, N m ...] of a robot: its equations of motion are far from overflow


def is_number(value: object) -> bool:
    """A finite real number that is not a truth value."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond what a float can hold
        return False


def positive(name: str, value: Any, unit: str) -> float:
    """A positive finite number, or a `StateError`."""
    if not is_number(value) or value <= 0:
        raise StateError(f"{name} must be a positive number of {unit}, got {value!r}")
    return float(value)


def not_negative(name: str, value: Any, unit: str = "") -> float:
    """A finite number that is zero or more, or a `StateError`."""
    if not is_number(value) or value < 0:
        number = f"number of {unit}" if unit else "number"
        raise StateError(f"{name} must be zero or a positive {number}, got {value!r}")
    return float(value)


def inside(name: str, value: Any, low: float, high: float, unit: str) -> float:
    """A number from low to high, or a `StateError`."""
    if not is_number(value) or not low <= value <= high:
        raise StateError(
            f"{name} must be a number from {low:g} to {high:g} ({unit}), got {value!r}"
        )
    return float(value)


def takes(function: object, *arguments: object) -> bool:
    """Return True for a function that can be called with these arguments."""
    import inspect  # slow to load, for the processes of modules

    try:
        inspect.signature(function).bind(*arguments)  # pyright: ignore[reportArgumentType]
    except TypeError:
        return False
    except ValueError:  # built-in functions may have no signature
        return True
    return True


def is_whole(value: object) -> bool:
    """Return True for a whole number of Python or NumPy, but not for ``True``."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def whole(name: str, value: Any, low: int, high: int | None = None) -> int:
    """A whole number from low to high, or a `StateError`."""
    if not is_whole(value) or value < low or (high is not None and value > high):
        bounds = f"of {low} or more" if high is None else f"from {low} to {high}"
        raise StateError(f"{name} must be a whole number {bounds}, got {value!r}")
    return int(value)


def generator(
    rng: Any, purpose: str = "a random choice", seed: int | None = None
) -> np.random.Generator:
    """`rng` itself if it is a generator of random numbers, or a `StateError`.

    Args:
        rng: What was given.
        purpose: What the random numbers are for.
        seed: Of the generator that is made where none was given; an error without it.
    """
    import numpy as np

    if rng is None and seed is not None:
        return np.random.default_rng(seed)
    if not isinstance(rng, np.random.Generator):
        raise StateError(
            f"{purpose} needs rng=numpy.random.default_rng(...), a numpy.random.Generator, "
            f"got {type(rng).__name__}"
        )
    return rng


def real_array(name: str, value: Any, infinite: bool = False) -> np.ndarray:
    """A new array of real numbers, finite unless `infinite` is set, or a `StateError`."""
    return _array(name, value, "iufO", float, infinite)


def as_floats(value: Any) -> np.ndarray:
    """An array of floats; one NaN in place of what holds no numbers."""
    import numpy as np

    try:
        if np.iscomplexobj(value):
            raise TypeError("complex")
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        return np.array(np.nan)


def gravity_vector(gravity: Any) -> np.ndarray:
    """(3,) gravity as finite floats, or a `StateError`. [m/s^2]"""
    import numpy as np

    g = as_floats(gravity)
    if g.shape != (3,) or not np.isfinite(g).all():
        raise StateError(f"gravity must be three finite numbers [m/s^2], got {gravity!r}")
    return g


def complex_array(name: str, value: Any) -> np.ndarray:
    """A new array of finite numbers, real or complex, or a `StateError`."""
    return _array(name, value, "iufcO", complex, False)


def _array(name: str, value: Any, kinds: str, dtype: type, infinite: bool) -> np.ndarray:
    import numpy as np

    try:
        given = np.asarray(value)
        kind = given.dtype.kind
        # NumPy would also convert text and truth values in an array of objects
        if kind in kinds and not (
            kind == "O" and any(isinstance(x, str | bool) for x in given.flat)
        ):
            array = given.astype(dtype)
            if np.isfinite(array).all() or (infinite and not np.isnan(array).any()):
                return array
    except (TypeError, ValueError, OverflowError):
        pass
    word = "finite numbers" if dtype is complex else "finite real numbers"
    raise StateError(f"{name} must hold {word}, got {str(value)[:60]!r}")


def per_joint(
    name: str,
    value: Numbers,
    joints: Sequence[str],
    *,
    least: float = -math.inf,
    infinite: bool = False,
    otherwise: float = 0.0,
) -> np.ndarray:
    """(n,) read-only numbers, one for each joint, or an error.

    Args:
        name: Of the argument, for errors.
        value: One number for all joints, (n,), or numbers by joint name.
        joints: Names of the n joints.
        least: Smallest number allowed.
        infinite: Whether infinite numbers are allowed.
        otherwise: For joints that are not named in a mapping.
    """
    import numpy as np

    if isinstance(value, Mapping):
        unknown = [joint for joint in value if joint not in joints]
        if unknown:
            raise UnknownNameError(f"{name}: no joint {unknown[0]!r}: joints are {choices(joints)}")
        value = [value.get(joint, otherwise) for joint in joints]
    array = real_array(name, value, infinite)
    if array.shape not in ((), (len(joints),)):
        raise StateError(
            f"{name} has shape {array.shape}, expected one number or ({len(joints)},), one for "
            f"each of the joints {choices(joints)}"
        )
    if np.any(array < least):
        raise StateError(f"{name} must be at least {least:g}, got {value!r}")
    result = np.array(np.broadcast_to(array, (len(joints),)))
    result.setflags(write=False)
    return result


def refuse_over(what: str, nbytes: float, advice: str) -> None:
    """Raise a `SizeError` before arrays of more than 8 GB are allocated.

    Args:
        what: The arrays, such as ``recording 10^9 states``.
        nbytes: Their size. [bytes]
        advice: What to do instead, in the imperative.
    """
    if nbytes > LARGEST_BYTES:
        size = nbytes / 1e9
        needed = f"{size:,.0f}" if 100 <= size < 1e9 else f"{size:.3g}"
        raise SizeError(
            f"{what} would need {needed} GB of memory; the limit is {LARGEST_BYTES / 1e9:g} GB: "
            f"{advice}"
        )


def refuse_states(what: str, states: int, numbers: int) -> None:
    """As `refuse_over`, for so many states with so many double precision numbers each."""
    refuse_over(f"{what} of {states} states", 8 * states * numbers, "give fewer states at once")


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
