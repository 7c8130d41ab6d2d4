"""Messages as UDP datagrams: one socket for each module."""

from __future__ import annotations

import socket
from typing import Any

from modurob.checks import is_loopback
from modurob.distributed.transports.base import Endpoint
from modurob.errors import StateError

LOOPBACK = "127.0.0.1"
EVERYWHERE = "0.0.0.0"
BUFFER_BYTES = 1 << 20  # asked of the system


class Udp(Endpoint):
    """The UDP socket of one module.

    Args:
        host: Address of this machine to listen at: the loopback, or that of one interface, by which
            the modules on other machines know it.
        options: key, loss, rng, sock of `Endpoint`.
    """

    def __init__(self, host: str = LOOPBACK, **options: Any) -> None:
        self.host = host
        super().__init__(**options)

    def open(self) -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
            sock.setblocking(False)
            sock.bind((self.host, 0))
            if sock.getsockname()[0] == EVERYWHERE:
                raise OSError("it stands for all interfaces")
        except (OSError, UnicodeError) as error:
            sock.close()
            reason = getattr(error, "strerror", None) or error
            raise StateError(
                f"host {self.host!r}: {reason}; expected the address of one "
                f"interface of this machine, such as {LOOPBACK}"
            ) from None
        return sock

    def plug(self, port: str, address: Any, their_port: str) -> None:
        if is_loopback(self.address[0]) and not is_loopback(address[0]):
            raise StateError(
                f"{address[0]} is another machine, and this socket listens at {self.address[0]}: "
                "open it with host=, the address of an interface"
            )
        super().plug(port, address, their_port)
