"""Reading and writing files of other programs: small, safe, and with clear errors."""

from __future__ import annotations

import json
import reprlib
from pathlib import Path
from typing import Any, Never
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from modurob.errors import FileError
from modurob.modules.files import parse_json, read_bytes, read_text, write_file

LARGEST_XML = 4 * 2**20  # bytes; a robot of 100 links has some 100 kB
DEEPEST = 100  # levels of XML; a robot description has six
MOST_ELEMENTS = 200_000  # of XML; a robot of 1,000 links has 20,000


def read_json(path: Path) -> Any:
    """The content of a JSON file; ``Infinity`` and ``NaN`` are numbers, as Timor writes them."""
    return parse_json(read_text(path), path, finite=False)


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
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(read_bytes(path, LARGEST_XML), True)
        return builder.close()
    except expat.ExpatError as error:
        reason = expat.errors.messages.get(error.code, "malformed")
        raise FileError(
            f"{path}: not valid XML at line {error.lineno}, column {error.offset + 1}: {reason}"
        ) from None
    except FileError:
        raise
    except (LookupError, ValueError) as error:  # an encoding that expat does not know
        raise FileError(f"{path}: not readable as XML: {ascii(str(error))[1:-1][:200]}") from None


def write_json(path: Path, data: Any) -> None:
    """JSON with one line for each vector; unlimited is ``Infinity``, as Timor reads it."""
    write_file(path, (_laid_out(data, 0) + "\n").encode("utf-8"))


def _laid_out(value: Any, depth: int) -> str:
    flat = json.dumps(value, ensure_ascii=False)
    nested = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list) or not any(isinstance(v, dict | list) for v in nested):
        return flat
    margin = "\n" + " " * (depth + 1)
    if isinstance(value, dict):
        entries = [f"{json.dumps(key)}: {_laid_out(v, depth + 1)}" for key, v in value.items()]
    else:
        entries = [_laid_out(entry, depth + 1) for entry in value]
    ends = "{}" if isinstance(value, dict) else "[]"
    return ends[0] + ",".join(margin + entry for entry in entries) + margin[:-1] + ends[1]
