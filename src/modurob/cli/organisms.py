"""The organism and the model options that a command names."""

from __future__ import annotations

import inspect
import os.path
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from modurob import FileError, ModuleType, Organism, StateError, UnknownNameError, catalog
from modurob.drawing.terminal import shorten
from modurob.errors import choices
from modurob.scenario.bodies import EXAMPLES, base_of, example
from modurob.scenario.fields import joint_locks

HINGES = ("dyad", "physical")

hinges_option = click.option(
    "--hinges",
    type=click.Choice(HINGES),
    help="Joints: those of the papers (dyad) or of the hardware (physical).  [default: dyad; "
    "physical for "
    + choices(name for name, body in EXAMPLES.items() if body.hinges != "dyad")
    + "]",
)
base_option = click.option(
    "--base",
    default="fixed",
    show_default=True,
    metavar="BASE",
    help="fixed, free, or virtual joints such as px,pz,ry.",
)
lock_option = click.option(
    "--lock",
    "locked",
    multiple=True,
    metavar="JOINT=POSITION",
    help="Hold a joint, such as m1.roll=45, or conro or m-tran for the roll joints of all "
    "SuperBots; may be repeated. [deg, m]",
)
NAMES = "NAME_OR_FILE is a file that `modurob new` wrote, or a built-in organism: "


def body_command(name: str, example: str, required: bool = True) -> Callable[..., click.Command]:
    """A command about the organism that its first argument names."""

    def made(function: Callable[..., None]) -> click.Command:
        function.__doc__ = (
            f"{inspect.cleandoc(function.__doc__ or '')}\n\n{NAMES}{choices(EXAMPLES)}."
        )
        argument = click.argument("name", metavar="NAME_OR_FILE", required=required)
        return click.command(name, epilog=example)(argument(function))

    return made


def chosen(
    name: str, hinges: str | None, base: str = "fixed", locked: Sequence[str] = ()
) -> tuple[str, Organism, dict[str, Any]]:
    """Title and organism of a name, and the options of its model as typed."""
    title, organism = find(name)
    options = {"hinges": hinges_of(name, hinges), "base": base_of(base)}
    return title, organism, {**options, "locked": locked_of(organism, locked)}


def hinges_of(name: str, given: str | None) -> Any:
    """The hinges that the user named, or else those for which the example or file is meant."""
    return given or (EXAMPLES[name].hinges if name in EXAMPLES else "dyad")


def locked_of(organism: Organism, given: Sequence[str]) -> dict[str, float]:
    """Positions of the joints that --lock names, one or a whole robot's. [rad, m]"""
    return joint_locks("--lock", given, organism)


def find(name: str, more: Iterable[str] = ()) -> tuple[str, Organism]:
    """Title and organism of an example or a file; an example's name wins over a file's.

    Args:
        more: Further names that the command knows, for the error message.
    """
    if name in EXAMPLES:
        return name, EXAMPLES[name].make()
    given = shorten(name, 60)
    if not os.path.exists(name):
        known = ", ".join(dict.fromkeys([*more, *EXAMPLES]))
        raise UnknownNameError(f"'{given}' is neither a file nor an example: examples are {known}")
    if name.lower().endswith(".urdf"):
        raise FileError(f"{given}: make an organism of it first: modurob new --urdf {given}")
    return Path(name).stem, Organism.from_file(name)


def kind(name: str) -> ModuleType:
    """A module of the catalog, or one from a datasheet file; the catalog's names win."""
    if name in catalog or not os.path.exists(name):
        return catalog[name]
    return ModuleType.from_file(name)


def make(name: str, settings: Mapping[str, object], numbers: Mapping[str, float]) -> Organism:
    """An example with settings; one that it does not take is an error."""
    body = example(name)
    for given in settings:
        if given not in body.settings:
            takes = choices(f"--{setting}" for setting in body.settings)
            raise StateError(f"--{given} does not apply to '{name}': its options are {takes}")
    for given in numbers:
        if given not in body.numbers:
            raise StateError(
                f"'{name}' has no parameter '{given}': it takes {choices(body.numbers)}"
            )
    return body.build(**settings, **numbers)
