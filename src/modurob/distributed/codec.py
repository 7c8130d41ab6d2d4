"""Byte layouts of messages, declared as tables of fields.

A field has ``pack(value) -> bytes`` and ``unpack(data, at) -> (value, end)``; a `Layout` is one of
named tuples. Bytes that do not fit raise ValueError. Only the standard library is needed, as in a
module's firmware.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from typing import Any, Generic, TypeVar

LARGEST_TEXT = 64  # [bytes]
T = TypeVar("T")


class Number:
    """A value in a format of `struct`, little endian, or made of several by `read` and `write`."""

    def __init__(self, code: str, read: Any = None, write: Any = None) -> None:
        self._struct, self._read = struct.Struct(f"<{code}"), read
        pack = self._struct.pack
        self.pack: Callable[[Any], bytes] = pack if write is None else lambda x: pack(*write(x))

    def unpack(self, data: bytes, at: int) -> tuple[Any, int]:
        try:
            values = self._struct.unpack_from(data, at)
        except struct.error:
            raise ValueError("the message ends too early") from None
        return values[0] if self._read is None else self._read(*values), at + self._struct.size


U8, U16, U32, U64 = Number("B"), Number("H"), Number("I"), Number("Q")


class Text:
    """A byte with the length, then UTF-8."""

    def pack(self, value: str) -> bytes:
        data = value.encode("utf-8")
        if len(data) > LARGEST_TEXT:
            raise ValueError(f"{value!r:.80} is longer than {LARGEST_TEXT} bytes")
        return U8.pack(len(data)) + data

    def unpack(self, data: bytes, at: int) -> tuple[str, int]:
        size, start = U8.unpack(data, at)
        if size > LARGEST_TEXT:
            raise ValueError(f"a text of {size} bytes")
        if len(data) < start + size:
            raise ValueError("the message ends too early")
        return data[start : start + size].decode("utf-8"), start + size


class Rest:
    """All bytes up to the end; with a code of `struct`, a tuple of such numbers."""

    def __init__(self, code: str = "") -> None:
        self._code, self._size = code, struct.calcsize(f"<{code}")

    def pack(self, value: Any) -> bytes:
        return struct.pack(f"<{len(value)}{self._code}", *value) if self._code else value

    def unpack(self, data: bytes, at: int) -> tuple[Any, int]:
        if not self._code:
            return data[at:], len(data)
        count, half = divmod(len(data) - at, self._size)
        if half:
            raise ValueError("half a number at the end of the message")
        return struct.unpack_from(f"<{count}{self._code}", data, at), len(data)


class Sized:
    """Two bytes with the length, then so many bytes."""

    def pack(self, value: bytes) -> bytes:
        return U16.pack(len(value)) + value

    def unpack(self, data: bytes, at: int) -> tuple[bytes, int]:
        size, at = U16.unpack(data, at)
        if len(data) < at + size:
            raise ValueError("the message ends too early")
        return data[at : at + size], at + size


class Counted:
    """A byte with the count, then so many items."""

    def __init__(self, item: Any) -> None:
        self._item = item

    def pack(self, value: Any) -> bytes:
        return bytes([len(value)]) + b"".join(map(self._item.pack, value))

    def unpack(self, data: bytes, at: int) -> tuple[tuple[Any, ...], int]:
        count, at = U8.unpack(data, at)
        items = []
        for _ in range(count):
            item, at = self._item.unpack(data, at)
            items.append(item)
        return tuple(items), at


class Layout(Generic[T]):
    """A named tuple as the bytes of its fields, in their order."""

    def __init__(self, form: Callable[..., T], *fields: Any) -> None:
        self.form, self._fields = form, fields

    def pack(self, value: Any) -> bytes:
        return b"".join([f.pack(part) for f, part in zip(self._fields, value, strict=True)])

    def unpack(self, data: bytes, at: int = 0) -> tuple[T, int]:
        values = []
        for field in self._fields:
            value, at = field.unpack(data, at)
            values.append(value)
        return self.form(*values), at


class Flagged:
    """A byte of flags, then the parts (flag, field) whose flag is set; flag 0 is always there."""

    def __init__(self, **parts: tuple[int, Any]) -> None:
        self.parts = parts
        self._known = reduce(or_, (flag for flag, _ in parts.values()))

    def pack(self, value: Mapping[str, Any]) -> bytes:
        flags, data = 0, []
        for name, (flag, field) in self.parts.items():
            if name in value:
                flags |= flag
                data.append(field.pack(value[name]))
        return bytes([flags]) + b"".join(data)

    def unpack(self, data: bytes, at: int = 0) -> tuple[dict[str, Any], int]:
        flags, at = U8.unpack(data, at)
        if flags & ~self._known:
            raise ValueError(f"unknown flags {flags:#x}")
        found = {}
        for name, (flag, field) in self.parts.items():
            if not flag or flags & flag:
                found[name], at = field.unpack(data, at)
        return found, at


def read(field: Any, data: bytes, at: int = 0) -> Any:
    """Return the value of all bytes from `at` on; ValueError if they are not exactly one value."""
    value, end = field.unpack(data, at)
    if end != len(data):
        raise ValueError(f"{len(data) - end} bytes too many")
    return value
