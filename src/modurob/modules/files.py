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
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Never

from modurob.errors import FileError, WriteError

LARGEST_FILE = 16 * 2**20  # bytes; a 10,000-module organism needs 2 MB
LARGEST_TOML = 2**18  # bytes; a datasheet needs 5 kB, and tomllib is slow
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
    except TypeError:
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
        raise IsADirectoryError(errno.EISDIR, "it is a folder, not a file (Is a directory)")
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, f"it is {SPECIAL.get(stat.S_IFMT(mode), 'no')}, not a file")


def read_bytes(path: str | os.PathLike[str], largest: int = LARGEST_FILE) -> bytes:
    """The content of a regular file of at most so many bytes."""
    path = checked_path(path)
    check_regular(path, largest)
    with reading(path), path.open("rb") as stream:
        content = stream.read(largest + 1)  # a file may be longer than it says
    if len(content) > largest:
        raise FileError(f"{path}: more than {largest:,} bytes")
    return content


def read_text(path: str | os.PathLike[str], largest: int = LARGEST_FILE) -> str:
    """The content of a UTF-8 file."""
    content = read_bytes(path, largest)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: not a text file (byte {error.start} is not UTF-8)") from None


def parse_json(text: str, where: object, finite: bool = True) -> Any:
    """The content of a JSON text; any fault is a `FileError` that starts with `where`.

    Args:
        finite: Whether to refuse ``NaN`` and ``Infinity``, which JSON does not have.
    """
    if text.count("{") + text.count("[") > MOST_PARTS:
        raise FileError(f"{where}: more than {MOST_PARTS:,} objects and lists")
    try:
        data = json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise FileError(
            f"{where}: not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None
    except RecursionError:
        raise FileError(f"{where}: nested more than {DEEPEST} deep") from None
    except FileError as error:
        raise FileError(f"{where}: {error}") from None
    except ValueError:  # Python converts 4300 digits at most
        raise FileError(f"{where}: {TOO_LONG}") from None
    _check_values(data, where, finite)
    return data


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names: set[str] = set()
        twice = next(name for name, _ in pairs if name in names or names.add(name))
        raise FileError(f"field {ascii(twice)[:60]} is there twice in one object")
    return found


def _parse_toml(text: str, where: object) -> Any:
    if LONG_KEY.search(text):
        raise FileError(f"{where}: a TOML key of more than 32 parts")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"{where}: not valid TOML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise FileError(f"{where}: nested more than {DEEPEST} deep") from None
    except ValueError:
        raise FileError(f"{where}: {TOO_LONG}") from None
    _check_values(data, where, finite=True)
    return data


def _check_values(data: Any, where: object, finite: bool) -> None:
    """Refuse values that can be parsed, but neither calculated with nor written again."""
    open_: list[Iterator[tuple[Any, Any]]] = [iter([("", data)])]
    keys: list[Any] = []

    def refuse(key: Any, what: str) -> Never:
        place = "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in (*keys[1:], key))
        place = ascii(place.lstrip("."))[1:-1][:200]
        raise FileError(f"{where}: {f'{place}: ' if place else ''}{what}")

    while open_:
        for key, value in open_[-1]:
            kind = type(value)
            if kind is float:
                if finite and not math.isfinite(value):
                    refuse(key, f"a number must be finite, got {value}")
            elif kind is int:
                if abs(value) > LARGEST_INTEGER:
                    refuse(key, TOO_LONG)
            elif kind is str:
                if not (value.isascii() or _is_text(value)):
                    refuse(key, "text with half a character (a lone surrogate)")
            elif kind is dict or kind is list:
                if len(open_) > DEEPEST:
                    refuse(key, f"nested more than {DEEPEST} deep")
                if kind is dict and len(value) > MOST_FIELDS:
                    refuse(key, f"{len(value):,} fields; at most {MOST_FIELDS:,}")
                if kind is dict and not all(k.isascii() or _is_text(k) for k in value):
                    refuse(key, "a field's name with half a character (a lone surrogate)")
                if value:
                    open_.append(iter(value.items() if kind is dict else enumerate(value)))
                    keys.append(key)
                    break
        else:
            open_.pop()
            if keys:
                keys.pop()


def _is_text(value: str) -> bool:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


# -- our documents ---------------------------------------------------------------------------------


def read_document(path: str | os.PathLike[str], format: str, version: int) -> dict[str, Any]:
    """The content of one of our files, after checking that it is ours and not too new.

    Args:
        path: A ``.toml`` file, or JSON with any other ending.
        format: The word the file's ``format`` field must hold.
        version: The newest version this program reads.
    """
    path = checked_path(path)
    if path.suffix == ".toml":
        data = _parse_toml(read_text(path, LARGEST_TOML), path)
    else:
        data = parse_json(read_text(path), path)
    check_document(data, path, format, version)
    return data


def check_document(data: Any, where: object, format: str, version: int) -> None:
    """Refuse the content of a file that is not ours or too new."""
    if not isinstance(data, dict) or "format" not in data:
        raise FileError(f'{where}: not a {format} file: it has no "format" field')
    if data["format"] != format:
        given = reprlib.repr(data["format"])
        raise FileError(f"{where}: this is a {given} file, expected {format!r}")
    found = data.get("version")
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        known = "1" if version == 1 else f"a whole number from 1 to {version}"
        raise FileError(f"{where}: version must be {known}, got {reprlib.repr(found)}")
    if found > version:
        raise FileError(
            f"{where}: version {found} was written by a newer modurob; "
            f"this one reads up to version {version}. Update modurob to open it."
        )


def without_schema(data: Any) -> Any:
    """The fields without ``$schema``, which tells editors how to check a file and us nothing."""
    if isinstance(data, dict):
        return {key: value for key, value in data.items() if key != "$schema"}
    return data


def publish(schema: dict[str, Any], title: str, description: str) -> None:
    """Make a JSON schema say what a whole file is, rather than how a program may construct it."""
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
    """A path that a file can be written to, as far as can be told before the work."""
    path = checked_path(path)
    with writing(path):
        if not path.parent.is_dir():
            raise OSError(errno.ENOENT, f"there is no folder {path.parent}")
        with contextlib.suppress(FileNotFoundError):
            _refuse_special(path.stat().st_mode)
    return path


def write_document(path: str | os.PathLike[str], data: dict[str, Any]) -> None:
    """Write JSON so that a crash leaves either the old file or the new one, never half of it."""
    path = checked_path(path)
    if path.suffix == ".toml":
        raise FileError(f"{path}: modurob writes JSON; let the file's name end in .json")
    text = json.dumps(data, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    write_file(path, text.encode("utf-8"))


def write_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Put a whole new file in the place of an old one, or say why not and change nothing."""
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
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
