"""The built-in organisms by name: titles, settings and usual hinges."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from modurob.errors import StateError, UnknownNameError, choices
from modurob.organism import Organism, examples

MOST_MODULES = 100_000
SNAKE_MODULES = 6  # of a snake without a given length


class ExampleBody(NamedTuple):
    """A built-in organism.

    Attributes:
        title: For people.
        build: Makes it from its settings.
        hinges: Of the model in which it is meant to move.
        settings: Names of the settings that are words or counts.
        numbers: Names of the settings that are numbers.
        shown: Settings with which the studio's gallery shows it.
    """

    title: str
    build: Callable[..., Organism]
    hinges: str = "dyad"
    settings: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    shown: Mapping[str, Any] = {}

    def make(self) -> Organism:
        """The organism with its default settings."""
        return self.build()

    def shown_body(self) -> Organism:
        """The organism of the gallery."""
        return self.build(**self.shown)


def _tree(
    seed: int = 0, kind: Any = "superbot_light", branches: float = 4, length: float = 5
) -> Organism:
    rng = np.random.default_rng(seed)
    return examples.superbot_tree(_whole("branches", branches), _whole("length", length), rng, kind)


def _snake(modules: object = SNAKE_MODULES, kind: Any = "backbone") -> Organism:
    return examples.snake(_whole("--modules", modules), kind)


# the tree of the gallery: its branches do not meet, at rest and in the gait of a new project
CLEAR_TREE = {"branches": 3, "length": 3, "seed": 299}

EXAMPLES: Mapping[str, ExampleBody] = {
    "crab": ExampleBody("Crab", examples.crab),
    "nine": ExampleBody("Nine Backbones", examples.nine),
    "snake": ExampleBody("Snake", _snake, settings=("modules", "kind")),
    "double_pendulum": ExampleBody(
        "Double pendulum", examples.double_pendulum, "physical", numbers=("l1", "l2", "m1", "m2")
    ),
    "crane": ExampleBody("Crane", examples.crane, "physical", numbers=("m1", "m2", "l")),
    "arm": ExampleBody("Arm babac", examples.arm, "physical", ("modules",)),
    "superbot_tree": ExampleBody(
        "SuperBot tree", _tree, "physical", ("seed", "kind"), ("branches", "length"), CLEAR_TREE
    ),
}


def example(name: str) -> ExampleBody:
    """An example by its name, or an error that lists them."""
    if name not in EXAMPLES:
        raise UnknownNameError(f"no example '{name[:40]}': examples are {choices(EXAMPLES)}")
    return EXAMPLES[name]


def base_of(text: str) -> str | list[str]:
    """A base as typed: fixed, free, or virtual joints with commas."""
    return text if text in ("fixed", "free") else text.split(",")


def _whole(what: str, value: object) -> int:
    """A whole number, not so large that building takes minutes."""
    try:
        number = float(str(value))
    except ValueError:
        number = math.nan
    if not (number.is_integer() and abs(number) <= MOST_MODULES):
        raise StateError(f"{what} must be a whole number up to {MOST_MODULES:,}, got {value}")
    return int(number)
