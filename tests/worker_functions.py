"""Functions that tests run in worker processes, which cannot import the tests themselves."""

import os
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from modurob import StateError, examples


class Seed(NamedTuple):
    """An item: its seed, and a file that is made before the process ends, only once."""

    seed: int
    fatal: Path | None = None


def accelerations(item: Seed) -> bytes:
    """Joint accelerations of random states; the first process that gets a fatal item ends."""
    if item.fatal is not None and not item.fatal.exists():
        item.fatal.touch()
        os.kill(os.getpid(), 9)
    model, rng = examples.crab().model("physical"), np.random.default_rng(item.seed)
    q, v, tau = rng.standard_normal((3, 5, model.nv))
    time.sleep(0.01)  # so that all workers get some
    return model.forward_dynamics(q, v, tau).tobytes()


def fail_from_three(k: int) -> int:
    """Raise an error for items from 3 on, later ones sooner."""
    if k == 3:
        time.sleep(0.05)
    if k >= 3:
        raise (StateError if k == 3 else KeyError)(f"item {k} is wrong")
    return k


def end_at_two(k: int) -> int:
    """End the process for item 2."""
    if k == 2:
        os._exit(7)
    return k


def divided(k: int) -> float:
    """Divide by the item."""
    return 1 / k


def without_pickle(k: int):
    """Return something that cannot be pickled."""
    return lambda: k
