"""UDP sockets in the hands of an attacker, for `fuzz_bus`; modules' processes import this file.

A socket hands itself to the attacker, who can then send from it, and copies of all that it sends.
While the file of `MAD` exists, its module also sends damaged messages under its own key.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import struct
import zlib
from collections.abc import Sequence

from modurob.distributed.agent import Message
from modurob.distributed.transports.base import Endpoint
from modurob.distributed.transports.udp import Udp

TAP = "FUZZ_BUS_TAP"  # environment: path of the attacker's Unix socket
MAD = "FUZZ_BUS_MAD"  # environment: path of a file
ROUTE = struct.Struct("<HH")  # ports of the source and of the destination
MAD_COPIES = 3  # damaged copies of each message


class TappedUdp(Udp):
    """A socket that shares everything with the attacker."""

    def open(self) -> socket.socket:
        sock = super().open()
        self._tap = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._tap.connect(os.environ[TAP])
        socket.send_fds(self._tap, [b"socket"], [sock.fileno()])
        self._tap.setblocking(False)
        self._random = random.Random(sock.getsockname()[1])
        return sock

    def send(self, messages: Sequence[Message]) -> None:
        super().send(messages)
        if os.path.exists(os.environ[MAD]):
            super().send(
                [
                    Message(port, with_crc(damaged(payload, self._random)))
                    for port, payload in messages
                    for _ in range(MAD_COPIES)
                ]
            )

    def _put(self, plug, data: bytes) -> bool:
        route = ROUTE.pack(self.address[1], plug.address[1])
        with contextlib.suppress(OSError):  # the attacker is busy
            self._tap.send(route + plug.label + data)
        return super()._put(plug, data)

    def close(self) -> None:
        self._tap.close()
        Endpoint.close(self)


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Some bytes changed, inserted or cut out."""
    data = bytearray(data or b"\0")
    for _ in range(rng.choice((1, 1, 2, 5))):
        at, some = rng.randrange(len(data) + 1), rng.randbytes(rng.choice((1, 4, 40)))
        change = rng.randrange(4)
        if change == 0:
            data[at : at + len(some)] = some
        elif change == 1:
            data[at:at] = some
        elif change == 2:
            del data[at : at + len(some)]
        else:
            data[at : at + 4] = rng.choice((bytes(4), b"\xff" * 4))
    return bytes(data)


def with_crc(frame: bytes) -> bytes:
    """A frame of the bus with the right checksum; anything else as it is."""
    if frame[:2] != b"MB" or len(frame) < 16:
        return frame
    return frame[:-4] + struct.pack("<I", zlib.crc32(frame[:-4]))
