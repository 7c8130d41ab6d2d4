"""Reading and writing the JSON and TOML files that modurob owns."""

from __future__ import annotations

import json
import os
import reprlib
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from modurob.errors import FileError, WriteError

LARGEST_FILE = 64 * 1024 * 1024  # bytes; a 10,000-module organism needs 2 MB


def read_document(path: str | os.PathLike[str], format: str, version: int) -> dict[str, Any]:
    """The content of one of our files, after checking that it is ours and not too new.

    Args:
        path: A ``.toml`` file, or JSON with any other ending.
        format: The word the file's ``format`` field must hold.
        version: The newest version this program reads.
    """
    path = _checked_path(path)
    data = _parse(path)
    if not isinstance(data, dict) or "format" not in data:
        raise FileError(f'{path}: not a {format} file: it has no "format" field')
    if data["format"] != format:
        given = reprlib.repr(data["format"])
        raise FileError(f"{path}: this is a {given} file, expected {format!r}")
    found = data.get("version")
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        known = "1" if version == 1 else f"a whole number from 1 to {version}"
        raise FileError(f"{path}: version must be {known}, got {reprlib.repr(found)}")
    if found > version:
        raise FileError(
            f"{path}: version {found} was written by a newer modurob; "
            f"this one reads up to version {version}. Update modurob to open it."
        )
    return data


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


def _checked_path(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(path)
    except TypeError:
        raise FileError(f"a file is given by its path, got {reprlib.repr(path)}") from None


def _parse(path: Path) -> Any:
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise FileError(f"{path}: {path.stat().st_size:,} bytes; at most {LARGEST_FILE:,}")
        text = path.read_bytes().decode("utf-8")
        data = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
        if "\\ud" in text.lower():  # half a character could be read, but never written again
            json.dumps(data, ensure_ascii=False, default=str).encode("utf-8")
        return data
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: not a text file (byte {error.start} is not UTF-8)") from None
    except json.JSONDecodeError as error:
        raise FileError(
            f"{path}: not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"{path}: not valid TOML: {error}") from None
    except (RecursionError, ValueError) as error:  # nesting bombs, absurd integers, half characters
        raise FileError(f"{path}: not a sensible document ({type(error).__name__})") from None


def write_document(path: str | os.PathLike[str], data: dict[str, Any]) -> None:
    """Write JSON so that a crash leaves either the old file or the new one, never half of it."""
    path = _checked_path(path)
    if path.suffix == ".toml":
        raise FileError(f"{path}: modurob writes JSON; let the file's name end in .json")
    text = json.dumps(data, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    write_file(path, text.encode("utf-8"))


def write_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Put a whole new file in the place of an old one, or say why not and change nothing."""
    path = _checked_path(path)
    try:
        replace_file(path, content)
    except OSError as error:
        raise WriteError(f"{path}: cannot be written: {error.strerror or error}") from None


def replace_file(path: Path, content: bytes) -> None:
    """Put a whole new file in the place of an old one, or change nothing."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
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
