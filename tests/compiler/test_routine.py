"""Memory and threads of compiled routines."""

import os
from types import SimpleNamespace

import numpy as np
import pytest

from modurob import StateError
from modurob.compiler import pool, routine
from modurob.compiler.jit import host
from modurob.compiler.routine import aligned, memory_blocks, thread_count


@pytest.mark.parametrize(
    ("threads", "joint_states", "expected"),
    [("auto", 0, 1), ("auto", 39_999, 1), ("auto", 40_000, 2), ("auto", 100_000, 5),
     ("auto", 10**9, 8), (1, 10**9, 1), (3, 0, 3), (8, 0, 8), (100, 0, 8), (np.int64(2), 0, 2)],
)  # fmt: skip
def test_threads_are_as_many_as_are_asked_for_or_worth_it(
    monkeypatch, threads, joint_states, expected
):
    """A thread is worth it for 20000 states of a joint; there are no more than cores."""
    monkeypatch.setattr(routine, "cores", lambda: 8)
    assert thread_count(threads, joint_states) == expected


@pytest.mark.parametrize("threads", [0, -1, 1.0, True, "all", None])
def test_other_numbers_of_threads_are_refused(threads):
    with pytest.raises(StateError, match="threads must be 'auto' or a number from 1 up"):
        thread_count(threads, 10**9)


def test_cores_are_those_the_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 3, 5}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert pool.cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")  # as on macOS and Windows
    assert pool.cores() == 64
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert pool.cores() == 1


@pytest.mark.parametrize(
    ("triple", "pauses", "gives_way"),
    [("x86_64-unknown-linux-gnu", True, "sched_yield"), ("i686-pc-windows", True, "SwitchToThread"),
     ("aarch64-apple-darwin", False, "sched_yield"), ("arm64-windows", False, "SwitchToThread")],
)  # fmt: skip
def test_threads_wait_as_their_machine_does(monkeypatch, triple, pauses, gives_way):
    monkeypatch.setattr(pool, "host", lambda: SimpleNamespace(triple=triple))
    pause, yields = pool._waiting()
    assert (bool(pause), yields) == (pauses, gives_way)
    assert f"@{gives_way}()" in pool._ir()


@pytest.mark.parametrize("size", [1, 64, 1000])
def test_memory_for_vectors_is_aligned_and_empty(size):
    found = aligned(size)
    assert found.ctypes.data % 64 == 0
    assert found.shape == (size,)
    assert found.flags.writeable
    assert not found.any()


def test_the_memory_of_points_has_a_block_for_each_vector_of_states():
    width = host().width
    for states, blocks in ((1, 1), (width, 1), (width + 1, 2), (5 * width, 5)):
        found = memory_blocks(states, 3, 2)
        assert found.shape == (blocks, 3, 2, width)
        assert found.dtype == float
        assert found.ctypes.data % 64 == 0
        assert not found.any()
