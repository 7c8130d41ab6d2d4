"""A module's links to its neighbors: hellos, and messages that are repeated until they arrive.

Hellos go out several times a heartbeat. Everything else is numbered, acknowledged by the neighbor
and sent again until it is, so that a message crosses many hops even where each loses every third.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from modurob.distributed.agent import Message
from modurob.distributed.bus import messages as msg
from modurob.distributed.bus.messages import Address, CycleBatch, FrameKind, Hello, Neighbor, Status
from modurob.distributed.codec import U32, read
from modurob.distributed.reliable import NUMBERS, Channel, Newest, Retry, following

HELLOS = 5  # in a heartbeat
SILENCE = 2.5  # heartbeats without a hello until a neighbor counts as silent
RETRIES = 10  # in a heartbeat, of what was not acknowledged
EAGER = 4  # retries before they become rarer
MOST_WAITING = 1 << 14  # messages without an acknowledgment until a neighbor counts as silent


class Peer(NamedTuple):
    """The other side of a link."""

    address: Address
    port: str


class BusLink(Channel):
    """One closed connector; `newest` is the neighbor's last hello."""

    def __init__(self, here: int, turn: int, silent: Peer | None = None) -> None:
        super().__init__(here)
        self.turn = turn  # [deg]
        self.silent = silent  # the neighbor before
        self.hellos = 0  # number of the last one sent
        self.peer: Peer | None = None  # the neighbor, once heard
        self.child = False  # the neighbor's way to the coordinator leads over here


class LinkTable:
    """All links of a module. Steps work on a `copy`, which collects what to send in `outbox`."""

    def __init__(self, address: Address, heartbeat: float) -> None:
        self.address, self.heartbeat = address, heartbeat
        self.retries = Retry(heartbeat * (1 / RETRIES), heartbeat, EAGER)
        self.ports: dict[str, BusLink] = {}
        self.made = 0
        self.changes = 0  # of neighbors
        self.ignored = 0  # frames that were not understood
        self.pulse = 0.0  # [s] time of the next hello
        self.outbox: list[Message] = []
        self.lost: list[str] = []  # ports whose neighbor went or was replaced during this step

    def copy(self) -> LinkTable:
        twin = object.__new__(LinkTable)
        twin.__dict__.update(self.__dict__)
        twin.ports = {port: link.copy() for port, link in self.ports.items()}
        twin.outbox, twin.lost = [], []
        return twin

    def plug(self, port: str, turn: int) -> None:
        if port in self.ports:
            self.unplug(port)
        self.ports[port] = BusLink(self._number(), turn)
        self.changes += 1

    def unplug(self, port: str) -> None:
        if self.ports.pop(port, None) is not None:
            self.lost.append(port)
            self.changes += 1

    def neighbors(self) -> tuple[Neighbor, ...]:
        return tuple(_neighbor(port, link) for port, link in sorted(self.ports.items()))

    def _number(self) -> int:
        self.made += 1
        return (self.address.boot + self.made) % (NUMBERS - 1) + 1  # 0 is an unknown one

    def take(
        self, port: str, data: bytes, now: float
    ) -> tuple[Hello | CycleBatch | None, list[bytes]]:
        """The hello or batch in a frame, or its message if it comes in for the first time."""
        link = self.ports.get(port)
        try:
            kind, theirs, mine, body = msg.unpack_frame(data)
            if link is None or mine not in (0, link.here):
                return None, []  # for a link that is no more
            if kind is FrameKind.HELLO:
                return self._hello(port, link, theirs, read(msg.HELLO, body), now), []
            if link.peer is None or theirs != link.there or mine != link.here:
                return None, []
            if kind is FrameKind.ACK:
                for number in read(msg.NUMBERS, body):
                    link.acknowledge(number)
                return None, []
            if kind is FrameKind.BATCH:
                return read(msg.BATCH, body), []
            number, start = U32.unpack(body, 0)
            if link.is_far_ahead(number):
                raise ValueError("a number that is not due for long")
        except ValueError:
            self.ignored += 1
            return None, []
        self._frame(port, link, FrameKind.ACK, U32.pack(number))
        return None, [body[start:]] if link.take(number) else []

    def _hello(
        self, port: str, link: BusLink, theirs: int, hello: Hello, now: float
    ) -> Hello | None:
        peer = Peer(hello.address, hello.port)
        if link.peer is None:
            link.peer, link.there, link.silent = peer, theirs, None
            self.changes += 1
        elif (link.peer, link.there) != (peer, theirs):
            # both sides count from the start only if the other one hears of a new link here
            self._renew(port, link, None)
            return None
        elif link.newest.refuses(hello.number, now, self.heartbeat):
            return None
        link.newest, link.child = Newest(hello.number, now), hello.child
        return hello

    def post(self, port: str, message: bytes, now: float) -> None:
        """Send until the neighbor has it, or is gone."""
        link = self.ports[port]
        self._data(port, link, link.post(message, now), message)

    def send_batches(self, port: str, number: int, messages: Iterable[bytes]) -> None:
        """Send messages of a cycle once."""
        for batch in msg.batches(number, messages):
            self._frame(port, self.ports[port], FrameKind.BATCH, msg.BATCH.pack(batch))

    def send_hello(self, port: str, beat: int, epoch: int, child: bool) -> None:
        link = self.ports[port]
        link.hellos = following(link.hellos)
        hello = Hello(self.address, link.hellos, beat, epoch, child, port)
        self._frame(port, link, FrameKind.HELLO, msg.HELLO.pack(hello))

    def retry(self, now: float) -> None:
        """Send again what was not acknowledged in time."""
        for port, link in self.ports.items():
            for number, message in link.due(now, self.retries):
                self._data(port, link, number, message)

    def _data(self, port: str, link: BusLink, number: int, message: bytes) -> None:
        self._frame(port, link, FrameKind.DATA, U32.pack(number) + message)

    def _frame(self, port: str, link: BusLink, kind: FrameKind, body: bytes) -> None:
        self.outbox.append(Message(port, msg.pack_frame(kind, link.here, link.there, body)))

    def is_pulse(self, now: float) -> bool:
        """Return whether hellos are due; looks for silent neighbors then."""
        if now < self.pulse:
            return False
        self.pulse = now + self.heartbeat / HELLOS
        for port, link in self.ports.items():
            quiet = now - link.newest.at > SILENCE * self.heartbeat
            if link.peer is not None and (quiet or len(link.waiting) > MOST_WAITING):
                self._renew(port, link, link.peer)
        return True

    def pulse_with_neighbor(self, now: float) -> None:
        """Send hellos at once if they are due soon: a module wakes up once for both."""
        if self.pulse - now < self.heartbeat / HELLOS / 2:
            self.pulse = now

    def _renew(self, port: str, link: BusLink, silent: Peer | None) -> None:
        """Start anew with the next neighbor that is heard."""
        self.ports[port] = BusLink(self._number(), link.turn, silent)
        self.lost.append(port)
        self.changes += 1

    def wake(self) -> float:
        """Return the time when something is to be done even if nothing comes in. [s]"""
        return min([self.pulse, *(link.wake(self.retries) for link in self.ports.values())])


def _neighbor(port: str, link: BusLink) -> Neighbor:
    if link.peer is not None:
        return Neighbor(port, link.peer.address, link.peer.port, link.turn, Status.HEARD)
    if link.silent is not None:
        return Neighbor(port, link.silent.address, link.silent.port, link.turn, Status.SILENT)
    return Neighbor(port, msg.UNKNOWN, "", link.turn, Status.EXPECTED)
