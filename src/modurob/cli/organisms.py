"""Finding the organism that a command speaks of."""

from __future__ import annotations

import math
import os.path
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np

from modurob import (
    FileError,
    ModuleType,
    Organism,
    StateError,
    UnknownNameError,
    catalog,
    examples,
)
from modurob.drawing.terminal import shorten
from modurob.errors import choices

MOST_MODULES = 100_000
SNAKE = 6  # modules of a snake nobody gave a length


HINGES = ("dyad", "physical")


class Example(NamedTuple):
    """A built-in organism: how to make it, which settings it takes, and its usual hinges."""

    make: Callable[..., Organism]
    settings: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()  # settings given as --set name=value
    hinges: str = "dyad"


EXAMPLES: Mapping[str, Example] = {
    "arm": Example(lambda modules="babac": examples.arm(modules), ("modules",)),
    "crab": Example(examples.crab),
    "crane": Example(examples.crane, numbers=("m1", "m2", "l"), hinges="physical"),
    "double_pendulum": Example(
        examples.double_pendulum, numbers=("l1", "l2", "m1", "m2"), hinges="physical"
    ),
    "nine": Example(examples.nine),
    "snake": Example(
        lambda modules=SNAKE, kind="backbone": examples.snake(_whole("--modules", modules), kind),
        ("modules", "kind"),
    ),
    "superbot_tree": Example(
        lambda seed=0, kind="superbot_light", branches=4, length=5: examples.superbot_tree(
            _whole("branches", branches),
            _whole("length", length),
            np.random.default_rng(seed),
            kind,
        ),
        ("seed", "kind"),
        ("branches", "length"),
    ),
}


hinges_option = click.option(
    "--hinges",
    type=click.Choice(HINGES),
    help="Which joints the model has.  [default: dyad; physical for "
    + " and ".join(name for name, example in EXAMPLES.items() if example.hinges != "dyad")
    + "]",
)


def hinges_of(name: str, given: str | None) -> str:
    """The hinges that the user named, or else those for which the example or file is meant."""
    return given or (EXAMPLES[name].hinges if name in EXAMPLES else "dyad")


def base_of(text: str) -> str | list[str]:
    """A base as typed: fixed, free, or virtual joints with commas."""
    return text if text in ("fixed", "free") else text.split(",")


def find(name: str) -> tuple[str, Organism]:
    """Title and organism of an example or a file; an example's name wins over a file's."""
    if name in EXAMPLES:
        return name, EXAMPLES[name].make()
    if not os.path.exists(name):
        given = shorten(name, 60)
        raise UnknownNameError(
            f"'{given}' is neither a file nor an example: examples are {choices(EXAMPLES)}"
        )
    if name.lower().endswith(".urdf"):
        given = shorten(name, 60)
        raise FileError(f"{given}: make an organism of it first: modurob new --urdf {given}")
    return Path(name).stem, Organism.from_file(name)


def kind(name: str) -> ModuleType:
    """A module of the catalog, or one from a datasheet file; the catalog's names win."""
    if name in catalog or not os.path.exists(name):
        return catalog[name]
    return ModuleType.from_file(name)


def make(name: str, settings: Mapping[str, object], numbers: Mapping[str, float]) -> Organism:
    """An example with settings; one that it does not take is an error."""
    if name not in EXAMPLES:
        raise UnknownNameError(
            f"no example '{shorten(name, 60)}': examples are {choices(EXAMPLES)}"
        )
    example = EXAMPLES[name]
    for given in settings:
        if given not in example.settings:
            takes = choices(f"--{setting}" for setting in example.settings)
            raise StateError(f"--{given} means nothing for '{name}'; it takes {takes}")
    for given in numbers:
        if given not in example.numbers:
            raise StateError(
                f"'{name}' has no number '{given}' to set; it has {choices(example.numbers)}"
            )
    return example.make(**settings, **numbers)


def _whole(what: str, value: object) -> int:
    """A whole number out of what was typed; not so large that building takes minutes."""
    try:
        number = float(str(value))
    except ValueError:
        number = math.nan
    if not (number.is_integer() and abs(number) <= MOST_MODULES):
        raise StateError(f"{what} must be a whole number up to {MOST_MODULES:,}, got {value}")
    return int(number)
