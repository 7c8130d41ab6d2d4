"""What is told about arrays on a GPU without one."""

from types import SimpleNamespace

import numpy as np
import pytest

from modurob.compiler.cuda import _batch, _grid, on_gpu
from modurob.compiler.emit_population import (
    CHAINED,
    FIRST,
    FORK,
    LINK_WORD,
    MASK_BITS,
    PRISMATIC,
    _literal,
    fork_numbers,
    lifetimes,
    memory_numbers,
    shared_numbers,
)
from modurob.compiler.layout import vectors
from modurob.compiler.packing import size
from modurob.equations.contact import GROUNDED_DYNAMICS, Bristle, RollingBristle
from modurob.equations.quantities import QUANTITIES
from modurob.population.device import DepthFirst, link_words


@pytest.mark.parametrize(
    ("device", "there"),
    [(1, False), (2, True), (3, False), (10, False), (13, True), (14, False)],
)
def test_arrays_on_nvidia_gpus_are_known_by_their_device(device, there):
    """DLPack: 1 is the CPU, 2 CUDA, 3 pinned memory of the CPU, 10 ROCm, 13 managed, 14 oneAPI."""
    array = SimpleNamespace(__dlpack_device__=lambda: (device, 0))
    assert on_gpu(array) is there


def test_other_arrays_are_not_on_a_gpu():
    assert not on_gpu(np.zeros(3))
    assert not on_gpu([1.0, 2.0])


def test_every_state_has_a_thread():
    for count, blocks in ((1, 1), (128, 1), (129, 2), (1280, 10)):
        assert _grid(count) == (blocks,)


def test_batches_of_one_shape_or_several_broadcast():
    assert _batch([np.zeros((4, 5, 3)), np.zeros((4, 5, 2))]) == (4, 5)
    assert _batch([np.zeros((4, 1, 3)), np.zeros(2), np.zeros((5, 2))]) == (4, 5)


@pytest.mark.parametrize("free", [False, True])
def test_numbers_of_neighboring_threads_lie_in_different_banks(free):
    """There are 32 banks; a joint's record has four numbers beside the link's own."""
    quantity = QUANTITIES["forward_dynamics"]
    lives = lifetimes(quantity, free)
    links, forks = np.meshgrid(np.arange(1, 20), np.arange(4))
    found = shared_numbers(quantity, free, links, forks)
    used = links * (vectors(lives.places) + 4) + forks * fork_numbers(lives)
    assert set(np.unique(found % 32)) == {1}
    assert ((found >= used) & (found <= used + 32)).all()


def test_the_memory_of_points_is_read_in_packs_of_four():
    for kind, memory, numbers in (("level", Bristle, 4), ("level", RollingBristle, 8)):
        quantity = GROUNDED_DYNAMICS[kind, memory is RollingBristle]
        assert quantity.passes.Memory is memory
        assert memory_numbers(quantity) == numbers >= size(memory)


def test_numbers_too_small_for_a_type_stay_beside_zero():
    tiny = float(np.finfo("float32").tiny)
    assert _literal(1e-200, tiny) == f"(real){tiny!r}"
    assert _literal(-1e-200, tiny) == f"(real)-{tiny!r}"
    for kept in (0.0, -0.0, 0.1, -3.0, tiny, -tiny):
        assert _literal(kept, tiny) == f"(real){kept!r}"


def test_a_links_word_has_room_for_the_largest_numbers():
    """24 bits for the row, 8 for flags and for each of two slots, the rest for the parent."""
    links = 257
    places, every = np.arange(links)[None], np.ones((1, links), dtype=bool)
    chain = DepthFirst(places, places - 1, np.minimum(places, 255), every)
    words = link_words(chain, np.full((1, links), 2**24 - 1), every)
    assert words.dtype == np.uint64
    word = int(words[0, -1])
    parts = [word & 0xFFFFFF, word >> 24 & 255, word >> 32 & 255, word >> 40 & 255, word >> 48]
    assert parts == [2**24 - 1, 1 + 2 + 4 + 8, 255, 255, 255]
    assert list(LINK_WORD) == ["row", "flags", "slot", "above", "parent"]
    assert sorted([CHAINED, FORK, FIRST, PRISMATIC]) == [1, 2, 4, 8]
    assert MASK_BITS == 32  # of an unsigned int
