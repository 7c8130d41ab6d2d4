"""Messages as UDP datagrams on this machine: one socket for each module."""

from __future__ import annotations

import socket
from typing import Any

from modurob.checks import is_loopback
from modurob.distributed.transports.base import Endpoint
from modurob.errors import StateError

LOOPBACK = "127.0.0.1"
BUFFER_BYTES = 1 << 20  # asked of the system


class Udp(Endpoint):
    """The UDP socket of one module.

    Args:
        host: Address to listen at: this machine's loopback unless `foreign`.
        foreign: Whether to listen elsewhere and to accept datagrams of other machines.
        options: loss, rng, sock of `Endpoint`.
    """

    def __init__(self, host: str = LOOPBACK, *, foreign: bool = False, **options: Any) -> None:
        if not foreign and not is_loopback(host):
            raise StateError(
                f"host {host} can be reached from other machines; foreign=True allows that"
            )
        self.host, self.foreign = host, foreign
        super().__init__(**options)

    def open(self) -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        sock.setblocking(False)
        sock.bind((self.host, 0))
        return sock

    def is_local(self, source: tuple[str, int]) -> bool:
        return self.foreign or is_loopback(source[0])
