"""XML as text: writing it as deep as the longest chain, and reading attributes."""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Iterable
from xml.etree.ElementTree import Element
from xml.sax.saxutils import quoteattr

from modurob.errors import DatasheetError
from modurob.interop.conventions import LARGEST_NUMBER

NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?)", re.IGNORECASE
)
DEEPEST_MARGIN = 24  # a snake of thousands would be mostly margin otherwise


class XmlText:
    """XML under construction.

    Not `ElementTree`, whose serializer calls itself for every level and gives up at a thousand.
    """

    def __init__(self) -> None:
        self._lines = ['<?xml version="1.0" encoding="utf-8"?>']
        self._open: list[str] = []

    def open(self, tag: str, **attributes: str) -> None:
        """Start an element that holds others."""
        self._line(f"<{tag}{_attributes(attributes)}>")
        self._open.append(tag)

    def leaf(self, tag: str, **attributes: str) -> None:
        """An element that holds nothing."""
        self._line(f"<{tag}{_attributes(attributes)}/>")

    def close(self) -> None:
        """End the innermost element that is open."""
        tag = self._open.pop()
        self._line(f"</{tag}>")

    def _line(self, text: str) -> None:
        self._lines.append(" " * min(len(self._open), DEEPEST_MARGIN) + text)

    def __str__(self) -> str:
        assert not self._open
        return "\n".join(self._lines) + "\n"


def numbers(values: Iterable[float]) -> str:
    """Numbers with all their digits, so that reading gives the same ones."""
    return " ".join(repr(float(value) + 0.0) for value in values)  # + 0.0: no minus zeros


def _attributes(attributes: dict[str, str]) -> str:
    return "".join(f" {key}={quoteattr(value)}" for key, value in attributes.items())


def read_text(element: Element, key: str, what: str) -> str:
    """An attribute that has to be there and to say something."""
    value = element.get(key, "").strip()
    if not value:
        raise DatasheetError(f'{what}: <{shown(element.tag)}> needs {key}="..."')
    return value


def read_number(
    element: Element, key: str, what: str, default: float | None = None, finite: bool = True
) -> float:
    """An attribute that is one number."""
    given = None if default is None else repr(default)
    return read_numbers(element, key, what, 1, given, finite)[0]


def read_numbers(
    element: Element,
    key: str,
    what: str,
    count: int,
    default: str | None = None,
    finite: bool = True,
) -> tuple[float, ...]:
    """An attribute that is `count` numbers; without a default it has to be there."""
    text = element.get(key, default)
    if text is None:
        raise DatasheetError(f'{what}: <{element.tag}> needs {key}="..."')
    pieces = text.split()
    if len(pieces) == count and all(map(NUMBER.fullmatch, pieces)):
        values = tuple(map(float, pieces))
        if all(abs(x) <= LARGEST_NUMBER or (math.isinf(x) and not finite) for x in values):
            return values
    wanted = "a number" if count == 1 else f"{count} numbers"
    hint = " (a decimal point, no comma)" if "," in text else ""
    raise DatasheetError(
        f"{what}: {key} of <{element.tag}> is {wanted} of up to {LARGEST_NUMBER:g}{hint}, got "
        f"'{shown(text)}'"
    )


def shown(text: str) -> str:
    """The start of a text, for an error message."""
    return reprlib.repr(text)[1:-1]
