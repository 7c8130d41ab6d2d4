"""The examples of the gallery, with pictures drawn when first asked for."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from modurob import Organism, UnknownNameError, examples
from modurob.drawing import picture
from modurob.errors import choices


class Example(NamedTuple):
    """An organism to start from: what it is called, and how it is made.

    Attributes:
        hinges: The model in which it is meant to move.
    """

    title: str
    make: Callable[[], Organism]
    hinges: str = "dyad"


def _superbot_tree() -> Organism:
    """A tree whose branches stay clear of each other, at rest and in the gait of a new project."""
    return examples.superbot_tree(3, 3, np.random.default_rng(299))


EXAMPLES: Mapping[str, Example] = {
    "crab": Example("Crab", examples.crab),
    "nine": Example("Nine Backbones", examples.nine),
    "snake": Example("Snake", lambda: examples.snake(6)),
    "double_pendulum": Example("Double pendulum", examples.double_pendulum, "physical"),
    "crane": Example("Crane", examples.crane, "physical"),
    "arm": Example("Arm babac", lambda: examples.arm("babac"), "physical"),
    "superbot_tree": Example("SuperBot tree", _superbot_tree, "physical"),
}


def example(name: str) -> Example:
    """An example by its name."""
    if name not in EXAMPLES:
        raise UnknownNameError(f"no example '{name[:40]}': examples are {choices(EXAMPLES)}")
    return EXAMPLES[name]


@lru_cache(maxsize=32)
def thumbnail(name: str) -> bytes:
    """A small PNG of an example."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "example.png"
        picture(example(name).make(), path, labels=False, axes=False, size=240)
        return path.read_bytes()
