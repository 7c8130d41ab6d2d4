"""Text for terminals that do not have all characters."""

from __future__ import annotations

import codecs
import io
import os
import sys

import click

ASCII = {
    **dict.fromkeys("┌┐└┘├┤┬┴┼╔╗╚╝", "+"),
    **dict.fromkeys("─━╌╴╶╸╺", "-"),
    **dict.fromkeys("│┃╎║", "|"),
    **{"═": "=", "·": ".", "◦": "o", "→": ">", "↓": "v", "…": "~"},
    **{"≥": ">=", "≤": "<=", "±": "+-", "°": " deg", "×": "x", "²": "^2"},
    **dict(zip("▁▂▃▄▅▆▇█", "_.-:=+*#", strict=True)),
}  # for terminals that have no more
HANDLER = "modurob"  # of characters that an encoding does not have
NARROW_LOCALES = ("C", "POSIX")


def forgive_narrow_encodings() -> None:
    """Let standard output and error show what looks alike in place of what they do not have.

    In the locales C and POSIX that is all but ASCII, although Python writes UTF-8 there.
    """
    codecs.register_error(HANDLER, plain_characters)
    named = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_CTYPE", "LANG"))), "")
    chosen = os.environ.get("PYTHONIOENCODING") or os.environ.get("PYTHONUTF8")
    encoding = "ascii" if named in NARROW_LOCALES and not chosen else None
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=encoding, errors=HANDLER)


def plain_characters(error: UnicodeError) -> tuple[str, int]:
    """Error handler of a codec: what looks alike in ASCII, and escapes of all other characters."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    shown = [ASCII.get(c) or c.encode("ascii", "backslashreplace").decode() for c in missing]
    return "".join(shown), error.end


def echo(text: str, err: bool = False, nl: bool = True) -> None:
    """Print in the encoding of the stream; left alone, Click takes UTF-8 in place of ASCII."""
    click.echo(text, file=sys.stderr if err else sys.stdout, nl=nl)
