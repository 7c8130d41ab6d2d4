"""ZIP archives whose writer is not trusted: every size is checked before memory is asked for."""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from modurob.errors import FileError

LARGEST_INDEX = 8 * 2**20  # bytes; zipfile reads the whole list of members, some 60 bytes each
END, END_64 = struct.Struct("<4s4H2IH"), struct.Struct("<4sQ2H2I4Q")  # of a ZIP archive
LOCATOR_SIZE = 20  # bytes between the two


@contextmanager
def reading_archive(stream: BinaryIO) -> Iterator[zipfile.ZipFile]:
    """An open archive; a fault of it, here or in the block, is a `FileError` or an `OSError`."""
    try:
        _check_index(stream)
        with zipfile.ZipFile(stream) as archive:
            yield archive
    except (OSError, FileError):
        raise
    except Exception as error:  # zipfile and zlib have a dozen kinds, and promise none
        raise FileError(ascii(str(error) or type(error).__name__)[1:-1][:200]) from None


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """The content of a member, of which no more than its declared size is ever unpacked."""
    if member.flag_bits & 1 or member.compress_type not in (
        zipfile.ZIP_STORED,
        zipfile.ZIP_DEFLATED,  # others unpack all that they have read, whatever is asked for
    ):
        raise FileError("is encrypted or packed unusually")
    with archive.open(member) as stream:
        return stream.read(member.file_size)  # without a number, a lie would be unpacked whole


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
