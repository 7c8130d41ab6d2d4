"""Messages as UDP datagrams on this machine: one socket for each module.

A datagram is the label of the port it enters (one byte length, then UTF-8), then the payload. It
is believed only if it comes from the socket that is plugged into that port.
"""

from __future__ import annotations

import contextlib
import select
import socket
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from modurob.checks import is_loopback
from modurob.distributed.agent import Message
from modurob.distributed.transports.counts import Counts
from modurob.distributed.transports.in_process import End, chance
from modurob.errors import DockingError, StateError

LOOPBACK = "127.0.0.1"
LARGEST_LABEL = 64  # [bytes]
LARGEST_PAYLOAD = 4096  # [bytes]
LARGEST = 1 + LARGEST_LABEL + LARGEST_PAYLOAD
BUFFER = 1 << 20  # [bytes] asked of the system
MOST_AT_ONCE = 256  # datagrams read in one go, so that a flood does not stop the rest

Socket = tuple[str, int]  # (host, port)


class Endpoint:
    """The socket of one module.

    Args:
        host: Where to listen: this machine's loopback unless `foreign`.
        foreign: Whether to listen elsewhere and to believe other machines.
        loss: Chance that an incoming datagram is thrown away, for trials.
        rng: Needed with `loss`; something with ``random()``.
        sock: A socket of one's own.

    Attributes:
        address: (host, port) of the socket.
        refused: Datagrams that were thrown away, by reason: oversized, garbage, foreign (not from
            this machine), stranger (not plugged into that port).
    """

    def __init__(
        self,
        host: str = LOOPBACK,
        *,
        foreign: bool = False,
        loss: float = 0.0,
        rng: Any = None,
        sock: Any = None,
    ) -> None:
        if not foreign and not is_loopback(host):
            raise StateError(
                f"host {host} can be reached from other machines; foreign=True allows that"
            )
        if chance("loss", loss) and rng is None:
            raise StateError("loss needs rng, a random generator")
        self.foreign, self.loss, self._rng = foreign, loss, rng
        if sock is None:
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
            sock.setblocking(False)
            sock.bind((host, 0))
        self._socket = sock
        self.address: Socket = sock.getsockname()
        self.counts = Counts()
        self.refused: Counter[str] = Counter()
        self._peers: dict[str, tuple[Socket, bytes]] = {}  # address, label on the wire

    def plug(self, port: str, address: Socket, their_port: str) -> None:
        """Connect a port with a port of another endpoint."""
        label = their_port.encode()
        if not 1 <= len(label) <= LARGEST_LABEL:
            raise StateError(f"a port's label has 1 to {LARGEST_LABEL} bytes, got {their_port!r}")
        self._peers[port] = address, bytes([len(label)]) + label

    def unplug(self, port: str) -> None:
        self._peers.pop(port, None)

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, messages: Sequence[Message]) -> None:
        """Send from the ports that the messages name; into the void where nothing is plugged."""
        for port, payload in messages:
            self.counts.sent += 1
            self.counts.bytes += len(payload)
            if port not in self._peers:
                self.counts.lost += 1
                continue
            address, label = self._peers[port]
            try:
                self._socket.sendto(label + payload, address)
            except OSError:  # nobody listens there any more, or no room: datagrams may get lost
                self.counts.lost += 1

    def receive(self) -> list[Message]:
        """What has arrived, without waiting."""
        messages = []
        for _ in range(MOST_AT_ONCE):
            try:
                data, source = self._socket.recvfrom(LARGEST + 1)
            except BlockingIOError:
                break
            except OSError:  # some systems report here that an earlier datagram did not arrive
                continue
            message = self._checked(data, source)
            if message is None:
                continue
            if self.loss and self._rng.random() < self.loss:
                self.counts.lost += 1
                continue
            self.counts.delivered += 1
            messages.append(message)
        return messages

    def _checked(self, data: bytes, source: Socket) -> Message | None:
        reason, message = "", None
        if not self.foreign and not is_loopback(source[0]):
            reason = "foreign"
        elif len(data) > LARGEST:
            reason = "oversized"
        elif not data or not 1 <= data[0] <= min(LARGEST_LABEL, len(data) - 1):
            reason = "garbage"
        else:
            size = 1 + data[0]
            message = Message(data[1:size].decode("utf-8", "replace"), data[size:])
            if self._peers.get(message.port, (None,))[0] != source:
                reason = "stranger"
        if reason:
            self.refused[reason] += 1
            return None
        return message

    def close(self) -> None:
        self._socket.close()


class Udp:
    """Endpoints of several modules in one process, with the interface of all transports.

    Args:
        links: Pairs of ends ((module, port), (module, port)) that are plugged together.
        loss, rng: See `Endpoint`.
    """

    def __init__(
        self, links: Iterable[tuple[End, End]] = (), *, loss: float = 0.0, rng: Any = None
    ) -> None:
        self._options = {"loss": loss, "rng": rng}
        self._endpoints: dict[str, Endpoint] = {}
        self._links: dict[End, End] = {}
        self._dead: set[str] = set()
        for a, b in links:
            self.plug(a, b)

    def endpoint(self, module: str) -> Endpoint:
        """The socket of a module, opened when first needed."""
        if module not in self._endpoints:
            self._endpoints[module] = Endpoint(**self._options)
        return self._endpoints[module]

    def plug(self, a: End, b: End) -> None:
        for end in (a, b):
            if end in self._links or a == b:
                raise DockingError(f"port {end[1]} of '{end[0]}' is taken")
        self._links[a], self._links[b] = b, a
        for (module, port), (other, their_port) in ((a, b), (b, a)):
            self.endpoint(module).plug(port, self.endpoint(other).address, their_port)

    def unplug(self, a: End | str, b: End | str | None = None) -> None:
        found = [
            (one, other)
            for one, other in self._links.items()
            if a in (one, one[0]) and (b is None or b in (other, other[0]))
        ]
        if not found:
            raise DockingError(f"{a} is not plugged" + ("" if b is None else f" into {b}"))
        for end in (end for link in found for end in link):
            self._links.pop(end, None)
            self.endpoint(end[0]).unplug(end[1])

    def kill(self, module: str) -> None:
        self._dead.add(module)

    def revive(self, module: str) -> None:
        self.endpoint(module).receive()  # what came meanwhile
        self._dead.discard(module)

    def send(self, module: str, messages: Sequence[Message]) -> None:
        if module not in self._dead:
            self.endpoint(module).send(messages)

    def receive(self, module: str) -> list[Message]:
        return [] if module in self._dead else self.endpoint(module).receive()

    def tick(self, seconds: float = 0.01) -> None:
        """Wait until a datagram is there, at most so long."""
        select.select(
            [e for m, e in self._endpoints.items() if m not in self._dead], [], [], seconds
        )

    @property
    def counts(self) -> Counts:
        total = Counts()
        for endpoint in self._endpoints.values():
            for name, value in vars(endpoint.counts).items():
                setattr(total, name, getattr(total, name) + value)
        return total

    def close(self) -> None:
        for endpoint in self._endpoints.values():
            with contextlib.suppress(OSError):
                endpoint.close()
