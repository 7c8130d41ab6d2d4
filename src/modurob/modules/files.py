"""Reading and writing files: every reader and writer of the package goes through here.

A reader takes regular files of a limited size and refuses all else in one line; a writer puts a
whole file in its place or changes nothing.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import reprlib
import stat
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from modurob.errors import FileError, WriteError

LARGEST_FILE_BYTES = 16 * 2**20  # a 10,000-module organism needs 2 MB
LARGEST_TOML_BYTES = 2**18  # a datasheet needs 5 kB, and tomllib is slow
DEEPEST = 50  # levels of a document; ours have eight
MOST_FIELDS = 100_000  # of one object of a document
MOST_PARTS = 1_000_000  # objects and lists of a document; a 10,000-module organism has 20,000
LARGEST_INTEGER = 2**64 - 1  # in a document
TOO_LONG = "a whole number of more than 64 bits"
# a key of over 32 parts: tomllib's time grows with the square of their number
LONG_KEY = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){32}""")
SPECIAL = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


# -- reading ---------------------------------------------------------------------------------------


def checked_path(path: str | os.PathLike[str]) -> Path:
    """`path` as a path that can name a file or a folder, or a `FileError`."""
    try:
        text = os.fspath(path)
        os.fsencode(text)
    except (TypeError, UnicodeEncodeError):  # no path, or half a character
        text = b""
    if not isinstance(text, str) or not text or "\0" in text:
        raise FileError(f"a file is given by its path, got {reprlib.repr(path)}")
    return Path(text)


@contextlib.contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn the system's errors of the block into a `FileError` that names the path."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None


def check_regular(path: Path, largest: int) -> None:
    """Refuse what is no regular file (opening a pipe may wait forever) or is too large."""
    with reading(path):
        found = path.stat()
        _refuse_special(found.st_mode)
    if found.st_size > largest:
        raise FileError(f"{path}: {found.st_size:,} bytes; at most {largest:,} bytes are read")


def _refuse_special(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder, not a file")
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, f"it is {SPECIAL.get(stat.S_IFMT(mode), 'no')}, not a file")


def read_bytes(path: str | os.PathLike[str], largest: int = LARGEST_FILE_BYTES) -> bytes:
    """The content of a regular file of at most so many bytes."""
    path = checked_path(path)
    check_regular(path, largest)
    with reading(path), path.open("rb") as stream:
        content = stream.read(largest + 1)  # a file may grow meanwhile
    if len(content) > largest:
        raise FileError(f"{path}: more than {largest:,} bytes")
    return content


def read_text(path: str | os.PathLike[str], largest: int = LARGEST_FILE_BYTES) -> str:
    """The content of a UTF-8 file."""
    content = read_bytes(path, largest)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: not a text file (byte {error.start} is not UTF-8)") from None


def parse_json(text: str, where: object, finite: bool = True) -> Any:
    """The content of a JSON text; any fault is a `FileError` that starts with `where`.

    ``NaN`` and ``Infinity``, which JSON does not have, are faults if `finite`.
    """
    if text.count("{") + text.count("[") > MOST_PARTS:
        raise FileError(f"{where}: more than {MOST_PARTS:,} objects and lists")
    return _parsed(lambda: json.loads(text, object_pairs_hook=_object), where, finite)


def _parsed(parse: Callable[[], Any], where: object, finite: bool) -> Any:
    try:
        data = parse()
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise FileError(f"{where}: not valid JSON at {place}: {error.msg}") from None
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"{where}: not valid TOML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise FileError(f"{where}: nested more than {DEEPEST} deep") from None
    except FileError as error:
        raise FileError(f"{where}: {error}") from None
    except ValueError:  # Python converts 4300 digits at most
        raise FileError(f"{where}: {TOO_LONG}") from None
    _check_values({"": data}, where, finite)
    return data


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise FileError(f"field {ascii(twice)[:60]} is there twice in one object")
    return found


def _check_values(
    parent: dict[str, Any] | list[Any], where: object, finite: bool, place: str = "", depth: int = 1
) -> None:
    """Refuse values that can be parsed, but neither calculated with nor written again."""
    for key, value in parent.items() if isinstance(parent, dict) else enumerate(parent):
        kind, flaw = type(value), ""
        if kind is float:
            if finite and not math.isfinite(value):
                flaw = f"a number must be finite, got {value}"
        elif kind is int:
            if abs(value) > LARGEST_INTEGER:
                flaw = TOO_LONG
        elif kind is str:
            if not _is_text(value):
                flaw = "text with half a character (a lone surrogate)"
        elif kind is dict or kind is list:
            if depth > DEEPEST:
                flaw = f"nested more than {DEEPEST} deep"
            elif kind is dict and len(value) > MOST_FIELDS:
                flaw = f"{len(value):,} fields; at most {MOST_FIELDS:,}"
            elif kind is dict and not all(map(_is_text, value)):
                flaw = "a field's name with half a character (a lone surrogate)"
            else:
                here = f"{place}[{key}]" if isinstance(key, int) else f"{place}.{key}"
                _check_values(value, where, finite, here, depth + 1)
        if flaw:
            here = f"{place}[{key}]" if isinstance(key, int) else f"{place}.{key}"
            shown = ascii(here.lstrip("."))[1:-1][:200]
            raise FileError(f"{where}: {f'{shown}: ' if shown else ''}{flaw}")


def _is_text(value: str) -> bool:
    try:
        return value.isascii() or bool(value.encode("utf-8"))
    except UnicodeEncodeError:
        return False


# -- our documents ---------------------------------------------------------------------------------


def read_document(
    path: str | os.PathLike[str], format: str, version: int, largest: int = LARGEST_FILE_BYTES
) -> dict[str, Any]:
    """The content of one of our files, after checking that it is ours and not too new.

    Args:
        path: A ``.toml`` file, or JSON with any other ending.
        format: The word the file's ``format`` field must hold.
        version: The newest version this program reads.
        largest: Bytes of JSON that are read.
    """
    data = parse_document(path, largest)
    check_document(data, path, format, version)
    return data


def parse_document(path: str | os.PathLike[str], largest: int = LARGEST_FILE_BYTES) -> Any:
    """The content of a ``.toml`` file, or of JSON with any other ending."""
    path = checked_path(path)
    if path.suffix != ".toml":
        return parse_json(read_text(path, largest), path)
    text = read_text(path, LARGEST_TOML_BYTES)
    if LONG_KEY.search(text):
        raise FileError(f"{path}: a TOML key of more than 32 parts")
    return _parsed(lambda: tomllib.loads(text), path, finite=True)


def check_document(data: Any, where: object, format: str, version: int) -> None:
    """Refuse the content of a file that is not ours or too new."""
    if not isinstance(data, dict) or "format" not in data:
        raise FileError(f'{where}: not a {format} file: it has no "format" field')
    if data["format"] != format:
        given = reprlib.repr(data["format"])
        raise FileError(f"{where}: its format is {given}, expected {format!r}")
    check_version(data.get("version"), where, version)


def check_version(found: Any, where: object, version: int) -> None:
    """Refuse the version of a file or record unless it is a whole number from 1 to `version`."""
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        known = "1" if version == 1 else f"a whole number from 1 to {version}"
        raise FileError(f"{where}: version must be {known}, got {reprlib.repr(found)}")
    if found > version:
        raise FileError(
            f"{where}: version {found} was written by a newer modurob; "
            f"this one reads up to version {version}. Update modurob to open it."
        )


def without_schema(data: Any) -> Any:
    """The fields without ``$schema``, which is for editors."""
    if isinstance(data, dict):
        return {key: value for key, value in data.items() if key != "$schema"}
    return data


def publish(schema: dict[str, Any], title: str, description: str) -> None:
    """Turn the JSON schema of a class into that of a whole file."""
    schema["title"], schema["description"] = title, description
    schema["properties"] = {"$schema": {"type": "string"}, **schema["properties"]}
    rest = [name for name in schema["required"] if name not in ("format", "version")]
    schema["required"] = ["format", "version", *rest]


# -- writing ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn the system's errors of the block into a `WriteError` that names the path."""
    try:
        yield
    except OSError as error:
        raise WriteError(f"{path}: cannot be written: {error.strerror or error}") from None


def checked_target(path: str | os.PathLike[str]) -> Path:
    """A path that a file can be written to, as far as can be checked before the work."""
    path = checked_path(path)
    with writing(path):
        if not path.parent.is_dir():
            raise OSError(errno.ENOENT, f"there is no folder {path.parent}")
        with contextlib.suppress(FileNotFoundError):
            _refuse_special(path.stat().st_mode)
    return path


def finite(data: Any) -> Any:
    """The same data with None in place of numbers that JSON does not have."""
    if isinstance(data, Mapping):
        return {key: finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def write_document(path: str | os.PathLike[str], data: dict[str, Any] | str) -> None:
    """Write JSON so that a crash leaves either the old file or the new one, never half of it.

    Args:
        path: File.
        data: The content, or its JSON text.
    """
    path = checked_path(path)
    if path.suffix == ".toml":
        raise FileError(f"{path}: modurob writes JSON; use a file name that ends in .json")
    if not isinstance(data, str):
        data = json.dumps(data, indent=1, allow_nan=False, ensure_ascii=False)
    write_file(path, f"{data}\n".encode())


def write_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Put a whole new file in the place of an old one, or raise a `WriteError`, nothing changed."""
    path = checked_target(path)
    with writing(path):
        replace_file(path, content)


def replace_file(path: Path, content: bytes) -> None:
    """Put a whole new file in the place of an old one, or change nothing."""
    handle, temporary = tempfile.mkstemp(prefix=".modurob-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.umask(mask := os.umask(0))  # the only way to read it is to set it
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
