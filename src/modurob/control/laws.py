"""Table of control laws: the command line, the studio and the bus offer what is listed here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

from modurob.control.controller import Controller
from modurob.errors import UnknownNameError, choices

Law = TypeVar("Law", bound=type[Controller])


@dataclass(frozen=True)
class LawEntry:
    """Entry of the table of control laws.

    Attributes:
        name: As typed after ``--law``.
        law: The class.
        summary: One line for lists.
        parameters: Arguments that set its gains, each with its unit; empty text for none.
    """

    name: str
    law: type[Controller]
    summary: str
    parameters: Mapping[str, str]


LAWS: dict[str, LawEntry] = {}


def register(name: str, summary: str, **parameters: str) -> Callable[[Law], Law]:
    """List a class as a control law; a decorator.

    Args:
        name: As typed after ``--law``, such as ``computed-torque``.
        summary: One line for lists.
        parameters: Arguments that set its gains, each with its unit.
    """

    def listed(law: Law) -> Law:
        LAWS[name] = LawEntry(name, law, summary, MappingProxyType(parameters))
        return law

    return listed


def find_law(name: object) -> LawEntry:
    """Return the entry of a law by its name in the table or by the name of its class."""
    for entry in LAWS.values():
        if name in (entry.name, entry.law.__name__):
            return entry
    raise UnknownNameError(f"no control law {name!r}: laws are {choices(LAWS)}")
