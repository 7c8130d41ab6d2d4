"""Arrays of an NPZ archive whose writer is not trusted: every size is checked before it is used."""

from __future__ import annotations

import math
import os
import re
import zipfile

import numpy as np

from modurob.errors import FileError
from modurob.modules.archives import read_member, reading_archive
from modurob.modules.files import check_regular, checked_path, reading

LARGEST_ARCHIVE = 8 * 10**9  # bytes on disk, and in memory
LARGEST_UNPACKED = 256 * 2**20  # bytes of arrays that were compressed to less
MOST_DIMENSIONS = 16
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
            with reading_archive(stream) as archive:
                return _members(archive, os.fstat(stream.fileno()).st_size)
        except FileError as error:
            raise FileError(f"{path}: not a {what} file: {error}") from None


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
        try:
            arrays[name] = _array(read_member(archive, info))
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
