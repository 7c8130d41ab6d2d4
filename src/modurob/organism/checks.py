"""Checks of what users pass to builders and examples."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from modurob.errors import StateError


def is_whole(value: object) -> bool:
    """Whether this is a whole number of Python or NumPy; ``True`` is not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def checked_generator(rng: np.random.Generator) -> np.random.Generator:
    """`rng` itself, if random numbers can be drawn from it."""
    if not isinstance(rng, np.random.Generator):
        raise StateError(f"rng must be a numpy.random.Generator, got {type(rng).__name__}")
    return rng
