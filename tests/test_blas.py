"""Linear algebra without threads."""

import contextlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy

from modurob.blas import _libraries, single_threaded


def counts():
    return [count() for count, _ in _libraries()]


def test_openblas_is_found_where_numpy_and_scipy_were_built_with_it():
    built = [x.show_config(mode="dicts")["Build Dependencies"]["blas"] for x in (np, scipy)]
    assert len(_libraries()) == sum("openblas" in each["name"] for each in built)


@pytest.mark.skipif(not _libraries(), reason="NumPy and SciPy use another library than OpenBLAS")
def test_the_number_of_threads_is_one_inside_and_as_before_outside():
    before = counts()
    for _, set_count in _libraries():
        set_count(3)
    try:
        with contextlib.suppress(ZeroDivisionError), single_threaded():
            assert set(counts()) == {1}
            raise ZeroDivisionError
        assert set(counts()) == {3}

        @single_threaded()
        def values(seed):
            assert set(counts()) == {1}
            return np.linalg.eigvals(np.random.default_rng(seed).standard_normal((40, 40)))

        with ThreadPoolExecutor(4) as pool:  # several threads of a program: none sees the other
            list(pool.map(values, range(20)))
        assert set(counts()) == {3}
    finally:
        for (_, set_count), threads in zip(_libraries(), before, strict=True):
            set_count(threads)
