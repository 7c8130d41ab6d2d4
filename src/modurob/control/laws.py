"""Table of control laws: the command line, the studio and the bus offer what is listed here."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import TypeVar

from modurob.control.controller import Controller
from modurob.errors import UnknownNameError, choices

Law = TypeVar("Law", bound=type[Controller])

CONTROLLERS: dict[str, type[Controller]] = {}  # by the names of the classes


def register(key: str, summary: str, **parameters: str) -> Callable[[Law], Law]:
    """List a class as a control law; a decorator.

    The class is made from a model alone, with default gains; `tests/contracts` tests what is
    listed.

    Args:
        key: As typed after ``--law``, such as ``computed-torque``.
        summary: One line for lists.
        parameters: Arguments that set its gains, each with its unit; empty text for none.
    """

    def listed(law: Law) -> Law:
        law.key, law.summary, law.parameters = key, summary, MappingProxyType(parameters)
        CONTROLLERS[law.__name__] = law
        return law

    return listed


def law_keys() -> tuple[str, ...]:
    """Keys of all laws, as typed after ``--law``."""
    return tuple(law.key for law in CONTROLLERS.values())


def law_class(name: object) -> type[Controller]:
    """Return the law with this key or class name, or raise an error that lists the keys."""
    for law in CONTROLLERS.values():
        if isinstance(name, str) and name in (law.key, law.__name__):
            return law
    raise UnknownNameError(f"no control law {name!r}: laws are {choices(law_keys())}")
