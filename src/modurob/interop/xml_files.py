"""XML: reading it safely, its attributes, and writing it as deep as the longest chain."""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Never
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from modurob.errors import DatasheetError, FileError
from modurob.interop.conventions import LARGEST_NUMBER
from modurob.modules.files import read_bytes, write_file

LARGEST_XML_BYTES = 4 * 2**20  # a robot of 100 links has some 100 kB
DEEPEST = 100  # levels of XML; a robot description has six
MOST_ELEMENTS = 200_000  # of XML; a robot of 1,000 links has 20,000
NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?)", re.IGNORECASE
)
DEEPEST_MARGIN = 24  # a snake of thousands would be mostly margin otherwise


# -- writing ---------------------------------------------------------------------------------------


class XmlText:
    """XML under construction; attributes are texts, or numbers, written with all their digits.

    Not `ElementTree`, whose serializer calls itself for every level and gives up at a thousand.
    """

    def __init__(self) -> None:
        self._lines = ['<?xml version="1.0" encoding="utf-8"?>']
        self._open: list[str] = []

    def open(self, tag: str, **attributes: Any) -> XmlText:
        """Start an element that holds others; a ``with`` block ends it."""
        self._line(f"<{tag}{_attributes(attributes)}>")
        self._open.append(tag)
        return self

    def leaf(self, tag: str, **attributes: Any) -> None:
        """An element that holds nothing."""
        self._line(f"<{tag}{_attributes(attributes)}/>")

    def text(self, tag: str, content: str, **attributes: Any) -> None:
        """An element that holds a text."""
        self._line(f"<{tag}{_attributes(attributes)}>{escape(content)}</{tag}>")

    def close(self) -> None:
        """End the innermost element that is open."""
        tag = self._open.pop()
        self._line(f"</{tag}>")

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        self.close()

    def _line(self, text: str) -> None:
        self._lines.append(" " * min(len(self._open), DEEPEST_MARGIN) + text)

    def __str__(self) -> str:
        assert not self._open
        return "\n".join(self._lines) + "\n"

    def write(self, path: Path) -> None:
        """Write the file; an old one stays intact if that fails."""
        write_file(path, str(self).encode("utf-8"))


def _attributes(attributes: Mapping[str, Any]) -> str:
    texts = ((k, v if isinstance(v, str) else _numbers(v)) for k, v in attributes.items())
    return "".join(f" {key}={quoteattr(text)}" for key, text in texts)


def _numbers(values: Any) -> str:
    """Numbers with all their digits, so that reading gives the same ones."""
    return " ".join(repr(float(value) + 0.0) for value in np.ravel(values))  # + 0.0: no minus zeros


# -- reading ---------------------------------------------------------------------------------------


def read_xml(path: Path) -> Element:
    """The root element of an XML file.

    Entities are refused rather than expanded: a few lines of nested ones are gigabytes of text.
    """
    builder, parser = TreeBuilder(), expat.ParserCreate()
    depth = count = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth, count
        depth, count = depth + 1, count + 1
        if depth > DEEPEST:
            raise FileError(f"{path}: elements are nested more than {DEEPEST} deep")
        if count > MOST_ELEMENTS:
            raise FileError(f"{path}: more than {MOST_ELEMENTS:,} elements")
        builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    def refuse(*declared: object) -> Never:
        raise FileError(
            f"{path}: declares the XML entity {reprlib.repr(declared[0])}; modurob reads none, "
            "so write its text out"
        )

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.EntityDeclHandler = builder.data, refuse
    try:
        parser.Parse(read_bytes(path, LARGEST_XML_BYTES), True)
        return builder.close()
    except expat.ExpatError as error:
        reason = expat.errors.messages.get(error.code, "malformed")
        raise FileError(
            f"{path}: not valid XML at line {error.lineno}, column {error.offset + 1}: {reason}"
        ) from None
    except FileError:
        raise
    except (LookupError, ValueError) as error:  # an encoding that expat does not have
        raise FileError(f"{path}: not readable as XML: {ascii(str(error))[1:-1][:200]}") from None


def read_text(element: Element, key: str, what: str) -> str:
    """An attribute that must be there and not be empty."""
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
    """An attribute that is `count` numbers; without a default it must be there."""
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
