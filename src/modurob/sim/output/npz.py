"""Arrays of an NPZ archive whose writer is not trusted: every size is checked before it is used."""

from __future__ import annotations

import math
import os
import re
import struct
import zipfile
from typing import BinaryIO

import numpy as np

from modurob.errors import FileError
from modurob.modules.files import check_regular, checked_path, reading

LARGEST_ARCHIVE = 8 * 10**9  # bytes on disk, and in memory
LARGEST_UNPACKED = 256 * 2**20  # bytes of arrays that were compressed to less
LARGEST_INDEX = 8 * 2**20  # bytes; zipfile reads the whole list of members, some 60 bytes each
MOST_DIMENSIONS = 16
END, END_64 = struct.Struct("<4s4H2IH"), struct.Struct("<4sQ2H2I4Q")  # of a ZIP archive
LOCATOR_SIZE = 20  # bytes between the two
# the literal that NumPy writes; kinds of numbers only, so no text, no objects, no records
HEADER = re.compile(
    rb"\{'descr': '([<>|=][fiub][1248])', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,18}, ?)*(?:\d{1,18})?)\), \} *\n"
)
LONGEST_HEADER = 1000  # bytes


def read_arrays(path: str | os.PathLike[str], what: str) -> dict[str, np.ndarray]:
    """The arrays of a file by their names, or a `FileError` that it is no `what`.

    Memory stays below the size of the file, or `LARGEST_UNPACKED` if it is compressed.
    """
    path = checked_path(path)
    check_regular(path, LARGEST_ARCHIVE)
    with reading(path), path.open("rb") as stream:
        try:
            _check_index(stream)
            with zipfile.ZipFile(stream) as archive:
                return _members(archive, os.fstat(stream.fileno()).st_size)
        except OSError:
            raise
        except FileError as error:
            raise FileError(f"{path}: not a {what} file: {error}") from None
        except Exception as error:  # zipfile and zlib have a dozen kinds, and promise none
            reason = ascii(str(error) or type(error).__name__)[1:-1][:200]
            raise FileError(f"{path}: not a {what} file: {reason}") from None


def _check_index(stream: BinaryIO) -> None:
    """Refuse an archive with an absurd number of members before all are listed."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - END.size - 2**16))
    tail = stream.read()
    stream.seek(0)
    place = tail.rfind(b"PK\5\6")
    if place < 0 or len(tail) < place + END.size:
        raise FileError("not a ZIP archive, or a truncated one")
    index = END.unpack_from(tail, place)[5]
    before = place - LOCATOR_SIZE - END_64.size
    if before >= 0 and tail[before : before + 4] == b"PK\6\6":
        index = max(END_64.unpack_from(tail, before)[8], index if index < 2**32 - 1 else 0)
    if index > LARGEST_INDEX:
        raise FileError(f"a list of members of {index:,} bytes; at most {LARGEST_INDEX:,}")


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, np.ndarray]:
    members = archive.infolist()
    total, most = sum(info.file_size for info in members), max(size, LARGEST_UNPACKED)
    if total > most:
        raise FileError(f"its arrays unpack to {total:,} bytes; at most {most:,}")
    arrays: dict[str, np.ndarray] = {}
    for info in members:
        name = info.filename.removesuffix(".npy")
        if name in arrays or name == info.filename:
            fault = "twice" if name in arrays else "no array"
            raise FileError(f"its member {ascii(info.filename)[:80]} is {fault}")
        if info.flag_bits & 1 or info.compress_type not in (
            zipfile.ZIP_STORED,
            zipfile.ZIP_DEFLATED,
        ):
            raise FileError(f"its array {ascii(name)[:80]} is encrypted or packed unusually")
        try:
            arrays[name] = _array(archive.read(info))
        except FileError as error:
            raise FileError(f"its array {ascii(name)[:80]} {error}") from None
    return arrays


def _array(content: bytes) -> np.ndarray:
    """One array in NumPy's format, read-only, or a `FileError`."""
    start = 10 if content[6:8] == b"\1\0" else 12
    if content[:6] != b"\x93NUMPY" or content[6:8] not in (b"\1\0", b"\2\0", b"\3\0"):
        raise FileError("does not start as NumPy's arrays do")
    length = int.from_bytes(content[8:start], "little")
    found = HEADER.fullmatch(content, start, start + min(length, LONGEST_HEADER))
    if found is None:
        raise FileError("has a header that is not NumPy's for an array of numbers")
    dtype = np.dtype(found[1].decode("ascii"))
    shape = tuple(int(x) for x in found[3].replace(b",", b" ").split())
    expected, there = math.prod(shape) * dtype.itemsize, len(content) - start - length
    if len(shape) > MOST_DIMENSIONS or there != expected:
        raise FileError(f"has {there:,} bytes where its header {shape} says {expected:,}")
    order = "F" if found[2] == b"True" else "C"
    return np.ndarray(shape, dtype, content, start + length, order=order)
