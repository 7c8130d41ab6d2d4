"""Base classes of transports: links between ports, counts, sockets with checked sources."""

from __future__ import annotations

import contextlib
import select
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from modurob.checks import is_number
from modurob.distributed.agent import Message
from modurob.errors import DockingError, StateError

LARGEST_LABEL = 64  # [bytes]
LARGEST_PAYLOAD = 4096  # [bytes]
LARGEST = 1 + LARGEST_LABEL + LARGEST_PAYLOAD
MOST_AT_ONCE = 256  # datagrams read in one go, so that a flood does not stop the rest

End = tuple[str, str]  # (module, port)


@dataclass
class Counts:
    """Messages so far.

    When nothing is under way, ``sent + duplicated == delivered + lost``.

    Attributes:
        sent: Handed over by modules.
        delivered: Laid into inboxes, copies included.
        lost: Dropped on the way, sent into an open port, or to or from a dead module.
        duplicated: Copies that the transport made.
        bytes: Of payloads sent.
    """

    sent: int = 0
    delivered: int = 0
    lost: int = 0
    duplicated: int = 0
    bytes: int = 0


class Transport(ABC):
    """Messages between modules of one process whose ports are plugged together.

    Args:
        links: Pairs of ends ((module, port), (module, port)) that are plugged together.
    """

    def __init__(self, links: Iterable[tuple[End, End]] = ()) -> None:
        self._links: dict[End, End] = {}
        self._dead: set[str] = set()
        for a, b in links:
            self.plug(a, b)

    def plug(self, a: End, b: End) -> None:
        """Connect two ports."""
        a, b = _end(a), _end(b)
        if a == b:
            raise DockingError(f"port {a[1]} of '{a[0]}' cannot be plugged into itself")
        for end in (a, b):
            if end in self._links:
                module, port = self._links[end]
                raise DockingError(
                    f"port {end[1]} of '{end[0]}' already holds port {port} of '{module}'"
                )
        self._links[a], self._links[b] = b, a

    def unplug(self, a: End | str, b: End | str | None = None) -> list[End]:
        """Disconnect; messages under way on the link are lost. Returns the ends.

        Args:
            a: An end (module, port), or a module: all its links.
            b: Only links with this end or module.
        """
        found = [
            (one, other)
            for one, other in self._links.items()
            if a in (one, one[0]) and (b is None or b in (other, other[0]))
        ]
        if not found:
            raise DockingError(f"{a} is not plugged" + ("" if b is None else f" into {b}"))
        ends = [end for link in found for end in link]
        for end in ends:
            self._links.pop(end, None)
        return ends

    def links(self) -> list[tuple[End, End]]:
        """Every link once, in the order of plugging."""
        return list(self._links.items())[::2]  # both ends of a link follow each other

    def kill(self, module: str) -> None:
        """Let a module neither send nor receive from now on."""
        self._dead.add(module)

    def revive(self, module: str) -> None:
        """Let a module send and receive again, with an empty inbox."""
        self._dead.discard(module)

    @abstractmethod
    def send(self, module: str, messages: Sequence[Message]) -> None:
        """Send from the ports that the messages name."""

    @abstractmethod
    def receive(self, module: str) -> list[Message]:
        """Messages that have arrived since the last call, by the port where they came in."""

    @abstractmethod
    def tick(self) -> None:
        """Let messages travel."""

    def close(self) -> None:
        """Unplug everything, and release sockets."""
        self._links.clear()


class Endpoint(ABC):
    """The datagram socket of one module; a transport between processes is a class of these.

    A datagram is the label of the port it enters (one byte length, then UTF-8), then the payload.
    It is accepted only if it comes from the socket that is plugged into that port.

    Args:
        sock: A socket that is bound and does not block; a new one by default.
        loss: Chance that an incoming datagram is dropped, for trials.
        rng: Needed with `loss`; something with ``random()``.

    Attributes:
        address: Of the socket.
        refused: Datagrams that were dropped, by reason: oversized, garbage, foreign (see
            `is_local`), stranger (not plugged into that port).
    """

    def __init__(self, *, loss: float = 0.0, rng: Any = None, sock: Any = None) -> None:
        if chance("loss", loss) and rng is None:
            raise StateError("loss needs rng, a random generator")
        self.loss, self._rng = loss, rng
        self._socket = self.open() if sock is None else sock
        self.address = self._socket.getsockname()
        self.counts = Counts()
        self.refused: Counter[str] = Counter()
        self._peers: dict[str, tuple[Any, bytes]] = {}  # address, label on the wire

    @abstractmethod
    def open(self) -> Any:
        """Open a socket on this machine."""

    def is_local(self, source: Any) -> bool:
        """Return whether datagrams from an address may be accepted."""
        return True

    def plug(self, port: str, address: Any, their_port: str) -> None:
        """Connect a port with a port of another endpoint."""
        label = their_port.encode()
        if not 1 <= len(label) <= LARGEST_LABEL:
            raise StateError(f"a port's label has 1 to {LARGEST_LABEL} bytes, got {their_port!r}")
        address = tuple(address) if isinstance(address, list) else address  # a list after JSON
        self._peers[port] = address, bytes([len(label)]) + label

    def unplug(self, port: str) -> None:
        self._peers.pop(port, None)

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, messages: Sequence[Message]) -> None:
        """Send from the ports that the messages name; lost where nothing is plugged."""
        for port, payload in messages:
            self.counts.sent += 1
            self.counts.bytes += len(payload)
            if port not in self._peers:
                self.counts.lost += 1
                continue
            address, label = self._peers[port]
            try:
                self._socket.sendto(label + payload, address)
            except OSError:  # that socket is closed, or there is no room: datagrams may get lost
                self.counts.lost += 1

    def receive(self) -> list[Message]:
        """Messages that have arrived, without waiting."""
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

    def _checked(self, data: bytes, source: Any) -> Message | None:
        reason, message = "", None
        if not self.is_local(source):
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


class EndpointNetwork(Transport):
    """Endpoints of one class for several modules in one process, with options of that class."""

    def __init__(
        self, kind: type[Endpoint], links: Iterable[tuple[End, End]] = (), **options: Any
    ) -> None:
        self._kind, self._options = kind, options
        self._endpoints: dict[str, Endpoint] = {}
        super().__init__(links)

    def endpoint(self, module: str) -> Endpoint:
        """The endpoint of a module, opened when first needed."""
        if module not in self._endpoints:
            self._endpoints[module] = self._kind(**self._options)
        return self._endpoints[module]

    def plug(self, a: End, b: End) -> None:
        super().plug(a, b)
        for (module, port), (other, their_port) in ((a, b), (b, a)):
            self.endpoint(module).plug(port, self.endpoint(other).address, their_port)

    def unplug(self, a: End | str, b: End | str | None = None) -> list[End]:
        ends = super().unplug(a, b)
        for module, port in ends:
            self.endpoint(module).unplug(port)
        return ends

    def revive(self, module: str) -> None:
        self.endpoint(module).receive()  # discards datagrams that arrived while it was dead
        super().revive(module)

    def send(self, module: str, messages: Sequence[Message]) -> None:
        if module not in self._dead:
            self.endpoint(module).send(messages)

    def receive(self, module: str) -> list[Message]:
        return [] if module in self._dead else self.endpoint(module).receive()

    def tick(self, seconds: float = 0.01) -> None:
        """Wait for a datagram, at most so long."""
        alive = [e for m, e in self._endpoints.items() if m not in self._dead]
        select.select(alive, [], [], seconds)

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
        super().close()


def chance(name: str, value: float) -> float:
    """A chance, or a `StateError`."""
    if not is_number(value) or not 0 <= value <= 1:
        raise StateError(f"{name} must be a chance between 0 and 1, got {value!r}")
    return float(value)


def _end(value: Any) -> End:
    if isinstance(value, tuple) and len(value) == 2 and all(isinstance(x, str) for x in value):
        return value
    raise StateError(f"an end is (module, port) in two texts like ('m0', 'out'), got {value!r}")
