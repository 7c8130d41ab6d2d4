"""What is told about arrays on a GPU without one."""

from types import SimpleNamespace

import numpy as np
import pytest

from modurob.compiler.cuda import _batch, _grid, on_gpu


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
