"""Drives: how the program of a module reads its joints and moves its motors.

Hardware needs one class with `read` and `write`. Only the standard library is needed, as in a
module's firmware.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import time
import zlib
from typing import Protocol

from modurob.errors import FileError, StateError

STALE_S = 0.1  # without a new reading, joints count as not measured
MOST_JOINTS = 8  # of one module
Values = tuple[float, ...]


class Drive(Protocol):
    """The joints of one module."""

    def read(self) -> Values:
        """q, v, q, v ... of its joints; nothing while not measured. [rad, m, rad/s, m/s]"""
        ...

    def write(self, torques: Values) -> None:
        """Set the torques of its motors; nothing lets them go. [N m, N]"""
        ...


class RecordedDrive:
    """A drive that plays readings from a file, and logs what is written to it.

    Args:
        path: Of lines of JSON ``[t, [q, v, q, v ...]]``, times rising from the first read on. [s]
        log: File for lines of JSON with the torques.
    """

    def __init__(self, path: str, log: str) -> None:
        self._rows = _readings(path)
        self._log = open(log, "a", buffering=1, encoding="utf-8")  # noqa: SIM115
        self._begin: float | None = None

    def read(self) -> Values:
        now = time.monotonic()
        self._begin = now if self._begin is None else self._begin
        past = [values for t, values in self._rows if t <= now - self._begin]
        return tuple(past[-1]) if past else ()

    def write(self, torques: Values) -> None:
        print(json.dumps(torques), file=self._log)


def _readings(path: str) -> list[tuple[float, Values]]:
    """Times and readings of a file, or a `FileError`; opening a pipe would wait for its writer."""
    if not os.path.isfile(path):
        raise FileError(f"{path}: cannot be read: no file is there")
    rows: list[tuple[float, Values]] = []
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                t, values = json.loads(line)
                rows.append((float(t), tuple(map(float, values))))
    except (ValueError, TypeError, OverflowError, RecursionError):
        line = f"line {len(rows) + 1} is no reading"
        raise FileError(f"{path}: {line}: [t, [q, v, ...]] is expected") from None
    return rows


class Mailbox:
    """Numbers in memory that two processes share: one writes, the other reads the newest.

    A number and a checksum tell a reader that the writer was in the middle.
    """

    LAYOUT = struct.Struct(f"<IIQ{2 * MOST_JOINTS}d")  # checksum, count of values, number, values
    SIZE, NUMBER = LAYOUT.size, struct.Struct("<Q")

    def __init__(self, memory: mmap.mmap, offset: int) -> None:
        self._memory, self._offset = memory, offset
        self._number = 0  # of the last write, or read

    def write(self, values: Values) -> None:
        self._number += 1
        padding = (0.0,) * (2 * MOST_JOINTS - len(values))
        data = self.LAYOUT.pack(0, len(values), self._number, *values, *padding)
        self._memory[self._offset : self._offset + self.SIZE] = (
            zlib.crc32(data).to_bytes(4, "little") + data[4:]
        )

    def read_new(self) -> Values | None:
        """Values of the last write; None if they were read already or are not whole yet."""
        for _ in range(3):
            (number,) = self.NUMBER.unpack_from(self._memory, self._offset + 8)
            if number == self._number:
                return None
            data = self._memory[self._offset : self._offset + self.SIZE]
            checksum, count, number, *values = self.LAYOUT.unpack(data)
            if checksum == zlib.crc32(bytes(4) + data[4:]) and count <= len(values):
                self._number = number
                return tuple(values[:count])
        return None


class SharedMemory:
    """A file in memory with three mailboxes for each module: readings, commands, contacts.

    Args:
        path: Of the file.
        modules: Slots to make; None to open a file that is there.
    """

    def __init__(self, path: str, modules: int | None = None) -> None:
        self.path = path
        flags = os.O_RDWR | (os.O_CREAT if modules is not None else 0)
        file = os.open(path, flags, 0o600)
        try:
            if modules is not None:
                # zeros take room now: without it, a process would be killed at its first write
                data = memoryview(bytes(modules * 3 * Mailbox.SIZE))
                while data:
                    data = data[os.write(file, data) :]
            self._memory = mmap.mmap(file, 0)
        finally:
            os.close(file)

    def readings(self, slot: int) -> Mailbox:
        """The mailbox of a module's measurements."""
        return Mailbox(self._memory, 3 * slot * Mailbox.SIZE)

    def torques(self, slot: int) -> Mailbox:
        """The mailbox of a module's torques, or of the goals of its servos."""
        return Mailbox(self._memory, (3 * slot + 1) * Mailbox.SIZE)

    def contacts(self, slot: int) -> Mailbox:
        """The mailbox of a module's contact sensor."""
        return Mailbox(self._memory, (3 * slot + 2) * Mailbox.SIZE)

    def close(self) -> None:
        self._memory.close()


class SharedDrive:
    """A drive of a plant in another process.

    Args:
        path: Of the plant's `SharedMemory`.
        slot: Of this module.
    """

    def __init__(self, path: str, slot: int) -> None:
        memory = SharedMemory(path)
        self._readings, self._torques = memory.readings(slot), memory.torques(slot)
        self._contacts, self._felt = memory.contacts(slot), Values()
        self._last: Values = ()
        self._changed_at = time.monotonic()

    def read(self) -> Values:
        found, now = self._readings.read_new(), time.monotonic()
        if found is not None:
            self._last, self._changed_at = found, now
        return self._last if now - self._changed_at < STALE_S else ()

    def feel(self) -> Values:
        """The newest reading of the contact sensor; nothing while the module does not touch."""
        found = self._contacts.read_new()
        self._felt = self._felt if found is None else found
        return self._felt

    def write(self, torques: Values) -> None:
        if len(torques) > 2 * MOST_JOINTS:
            raise StateError(f"a module has up to {MOST_JOINTS} motors, got {len(torques)} torques")
        self._torques.write(torques)
