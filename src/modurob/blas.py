"""Linear algebra without threads.

A threaded BLAS routine waits for all of its threads. On a machine with other work, each of them
waits for a core: eigenvalues of 120 x 120 matrices then take seconds instead of milliseconds.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterator
from functools import cache

PREFIXES, SUFFIXES = ("scipy_openblas", "openblas"), ("64_", "")  # of builds of OpenBLAS
_lock = threading.Lock()  # the number of threads is one for the whole process


@contextlib.contextmanager
def single_threaded() -> Iterator[None]:
    """Compute with one thread inside the block, where NumPy and SciPy use OpenBLAS."""
    with _lock:
        before = [count() for count, _ in _libraries()]
        try:
            for _, set_count in _libraries():
                set_count(1)
            yield
        finally:
            for (_, set_count), threads in zip(_libraries(), before, strict=True):
                set_count(threads)


@cache
def _libraries() -> tuple[tuple[Callable[[], int], Callable[[int], None]], ...]:
    """Functions of each library that return and set its number of threads."""
    from numpy.linalg import _umath_linalg
    from scipy.linalg import cython_blas  # pyright: ignore[reportAttributeAccessIssue]

    found = []
    for module in (_umath_linalg, cython_blas):
        library = ctypes.CDLL(module.__file__)  # looks symbols up in what it is linked with, too
        names = [(f"{p}_get_num_threads{s}", f"{p}_set_num_threads{s}")
                 for p in PREFIXES for s in SUFFIXES]  # fmt: skip
        pair = next((pair for pair in names if hasattr(library, pair[0])), None)
        if pair is not None:
            found.append((getattr(library, pair[0]), getattr(library, pair[1])))
    return tuple(found)
