"""Base classes of transports: links between ports, counts, sockets with secured datagrams."""

from __future__ import annotations

import contextlib
import os
import select
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from modurob.checks import is_number
from modurob.distributed.agent import Message
from modurob.distributed.codec import Sized
from modurob.distributed.transports.secure import OVERHEAD_BYTES, SecureLink, checked_key
from modurob.errors import DockingError, StateError

LARGEST_LABEL = 64  # [bytes]
LARGEST_PAYLOAD = 4096  # [bytes]
PAYLOAD = Sized()
LARGEST_CONTENT = len(PAYLOAD.pack(bytes(LARGEST_PAYLOAD)))  # [bytes] of all payloads in a datagram
LARGEST = 1 + LARGEST_LABEL + LARGEST_CONTENT + OVERHEAD_BYTES
MOST_AT_ONCE = 256  # datagrams read in one go, so that a flood does not stop the rest
MOST_PER_S = 20_000  # payloads from one neighbor; as many may come at once after a pause
MOST_WAITING = 16  # payloads that wait for the handshake of their link
HANDSHAKE_TRIES = 4  # of a network within one process; afterwards whoever sends goes on trying
HANDSHAKE_TIMEOUT_S = 1e-3  # of each of them
RANDOM_KEY_BYTES = 32

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
        self._counts = Counts()
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

    @property
    def counts(self) -> Counts:
        """Counts of the messages sent, delivered and lost until now."""
        return self._counts

    def close(self) -> None:
        """Unplug everything, and release sockets."""
        self._links.clear()


class _Plug:
    """A plugged port: the neighbor's address, the label of its port on the wire, the link."""

    def __init__(self, address: Any, label: bytes, link: SecureLink) -> None:
        self.address, self.label, self.link = address, label, link
        self.waiting: deque[bytes] = deque()  # payloads, until the link is up
        self._left, self._at = float(MOST_PER_S), time.monotonic()

    def within_rate(self, payloads: int) -> int:
        """Return how many of so many payloads may come in now: a token bucket."""
        now = time.monotonic()
        self._left = min(MOST_PER_S, self._left + MOST_PER_S * (now - self._at))
        self._at = now
        taken = min(payloads, int(self._left))
        self._left -= taken
        return taken


class Endpoint(ABC):
    """The datagram socket of one module; a transport between processes is a class of these.

    A datagram is the label of the port it enters (one byte length, then UTF-8), then what a
    `SecureLink` makes of its content: payloads, each after its length. Payloads that are handed
    over together share datagrams, so that a busy module sends fewer. A datagram is accepted only
    if it comes from the socket that is plugged into that port, and was made there with the same
    key, and once. Both sides have to `receive` for that: they have a handshake when they are
    plugged.

    Args:
        key: At least 16 secret bytes, the same for all modules.
        sock: A socket that is bound and does not block; a new one by default.
        loss: Chance that an incoming datagram is dropped, for trials.
        rng: Needed with `loss`; something with ``random()``.

    Attributes:
        address: Of the socket, as the neighbors have it.
        refused: Datagrams that were dropped, by reason: oversized, garbage, stranger (not plugged
            into that port), forged (not made with the key for this link), replayed; and payloads
            beyond the rate of `MOST_PER_S`.
    """

    def __init__(
        self, *, key: bytes | None = None, loss: float = 0.0, rng: Any = None, sock: Any = None
    ) -> None:
        if chance("loss", loss) and not hasattr(rng, "random"):
            raise StateError(f"loss needs rng, a random generator, got {rng!r:.60}")
        self._key = checked_key(key)
        self.loss, self._rng = loss, rng
        self._socket = self.open() if sock is None else sock
        self.address = self._socket.getsockname()
        self.counts = Counts()
        self.refused: Counter[str] = Counter()
        self._plugs: dict[str, _Plug] = {}
        self._inbox: list[Message] = []

    @abstractmethod
    def open(self) -> Any:
        """Open a datagram socket that is bound and does not block.

        Anything with `sendto`, `recvfrom`, `getsockname`, `fileno` and `close` will do.
        """

    def plug(self, port: str, address: Any, their_port: str) -> None:
        """Connect a port with a port of another endpoint."""
        label = their_port.encode()
        if not 1 <= len(label) <= LARGEST_LABEL:
            raise StateError(f"a port's label has 1 to {LARGEST_LABEL} bytes, got {their_port!r}")
        address = tuple(address) if isinstance(address, list) else address  # a list after JSON
        self.unplug(port)
        link = SecureLink(self._key, (self.address, port), (address, their_port))
        self._plugs[port] = plug = _Plug(address, bytes([len(label)]) + label, link)
        self._put(plug, link.request())

    def unplug(self, port: str) -> None:
        if port in self._plugs:
            self.counts.lost += len(self._plugs.pop(port).waiting)

    def is_up(self, port: str) -> bool:
        """Return whether the neighbor at a port has completed the handshake."""
        return port in self._plugs and self._plugs[port].link.is_up

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, messages: Sequence[Message]) -> None:
        """Send from the ports that the messages name; lost where nothing is plugged.

        Before the handshake, the newest `MOST_WAITING` of a port wait for it.
        """
        handed: dict[str, list[bytes]] = {}
        for port, payload in messages:
            handed.setdefault(port, []).append(payload)
        for port, payloads in handed.items():
            self.counts.sent += len(payloads)
            self.counts.bytes += sum(map(len, payloads))
            plug = self._plugs.get(port)
            if plug is None:
                self.counts.lost += len(payloads)
            elif plug.link.is_up:
                self._send(plug, payloads)
            else:
                plug.waiting += payloads
                while len(plug.waiting) > MOST_WAITING:
                    plug.waiting.popleft()
                    self.counts.lost += 1
                self._put(plug, plug.link.request())

    def _send(self, plug: _Plug, payloads: Iterable[bytes]) -> None:
        for content, count in _contents(payloads):
            if not self._put(plug, plug.link.seal(content)):
                self.counts.lost += count

    def _put(self, plug: _Plug, data: bytes) -> bool:
        try:
            self._socket.sendto(plug.label + data, plug.address)
        except OSError:  # that socket is closed, or there is no room: datagrams may get lost
            return False
        return True

    def receive(self) -> list[Message]:
        """Messages that have arrived, without waiting."""
        self.read()
        messages, self._inbox = self._inbox, []
        return messages

    def read(self) -> None:
        """Read datagrams that have arrived, and keep their messages for `receive`."""
        for _ in range(MOST_AT_ONCE):
            try:
                data, source = self._socket.recvfrom(LARGEST + 1)
            except BlockingIOError:
                break
            except OSError:  # some systems report here that an earlier datagram did not arrive
                continue
            messages, reason = self._opened(data, source)
            if reason:
                self.refused[reason] += 1
            elif messages and self.loss and self._rng.random() < self.loss:
                self.counts.lost += len(messages)
            else:
                self.counts.delivered += len(messages)
                self._inbox += messages

    def _opened(self, data: bytes, source: Any) -> tuple[list[Message], str]:
        """The messages in a datagram, or the reason why it is refused."""
        if len(data) > LARGEST:
            return [], "oversized"
        if not data or not 1 <= data[0] <= min(LARGEST_LABEL, len(data) - 1):
            return [], "garbage"
        size = 1 + data[0]
        port = data[1:size].decode("utf-8", "replace")
        plug = self._plugs.get(port)
        if plug is None or plug.address != source:
            return [], "stranger"
        content, answer, reason = plug.link.open(data[size:])
        if answer is not None:
            self._put(plug, answer)
        if plug.waiting and plug.link.is_up:
            self._send(plug, plug.waiting)
            plug.waiting.clear()
        if content is None:
            return [], reason
        try:
            payloads = _payloads(content)
        except ValueError:
            return [], "garbage"
        taken = plug.within_rate(len(payloads))
        if taken < len(payloads):
            self.refused["rate"] += len(payloads) - taken
        return [Message(port, payload) for payload in payloads[:taken]], ""

    def close(self) -> None:
        self._socket.close()


class EndpointNetwork(Transport):
    """Endpoints of one class for several modules in one process, with options of that class.

    Their key is a random one unless it is given.
    """

    def __init__(
        self, kind: type[Endpoint], links: Iterable[tuple[End, End]] = (), **options: Any
    ) -> None:
        self._kind, self._options = kind, {"key": random_key(), **options}
        self._endpoints: dict[str, Endpoint] = {}
        super().__init__(links)

    def endpoint(self, module: str) -> Endpoint:
        """The endpoint of a module, opened when first needed."""
        if module not in self._endpoints:
            self._endpoints[module] = self._kind(**self._options)
        return self._endpoints[module]

    def plug(self, a: End, b: End) -> None:
        super().plug(a, b)
        ends = [(self.endpoint(module), port) for module, port in (a, b)]
        for (endpoint, port), (other, their_port) in (ends, ends[::-1]):
            endpoint.plug(port, other.address, their_port)
        for _ in range(HANDSHAKE_TRIES):
            if all(endpoint.is_up(port) for endpoint, port in ends):
                break
            for endpoint in _readable([endpoint for endpoint, _ in ends], HANDSHAKE_TIMEOUT_S):
                endpoint.read()

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
        _readable(alive, seconds)

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


def random_key() -> bytes:
    """Draw a key."""
    return os.urandom(RANDOM_KEY_BYTES)


def _contents(payloads: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
    """Contents of as few datagrams as payloads need, in their order, with the count in each."""
    content, count = b"", 0
    for payload in payloads:
        if len(payload) > LARGEST_PAYLOAD:
            raise StateError(f"a payload has up to {LARGEST_PAYLOAD} bytes, got {len(payload)}")
        data = PAYLOAD.pack(payload)
        if count and len(content) + len(data) > LARGEST_CONTENT:
            yield content, count
            content, count = b"", 0
        content, count = content + data, count + 1
    if count:
        yield content, count


def _payloads(content: bytes) -> list[bytes]:
    """Payloads in the content of a datagram; ValueError if it is something else."""
    found, at = [], 0
    while at < len(content):
        payload, at = PAYLOAD.unpack(content, at)
        found.append(payload)
    return found


def _readable(endpoints: list[Endpoint], seconds: float) -> list[Endpoint]:
    """Wait for a datagram, at most so long; the endpoints that have one."""
    return select.select(endpoints, [], [], seconds)[0]


def chance(name: str, value: float) -> float:
    """A probability, or a `StateError`."""
    if not is_number(value) or not 0 <= value <= 1:
        raise StateError(f"{name} must be a probability between 0 and 1, got {value!r}")
    return float(value)


def _end(value: Any) -> End:
    if isinstance(value, tuple) and len(value) == 2 and all(isinstance(x, str) for x in value):
        return value
    raise StateError(f"an end is (module, port) in two texts like ('m0', 'out'), got {value!r}")
