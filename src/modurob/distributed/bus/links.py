"""A module's links to its neighbours: who is there, and nothing sent is lost on the way to them.

Hellos go out several times a heartbeat. Everything else is numbered, acknowledged by the neighbour
and sent again until it is, so that a message crosses many hops even where each loses every third.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from modurob.distributed.agent import Message
from modurob.distributed.bus.messages import (
    NOBODY,
    Address,
    FrameKind,
    Hello,
    Neighbour,
    Status,
    pack_frame,
    pack_hello,
    pack_numbers,
    unpack_frame,
    unpack_hello,
    unpack_numbers,
)
from modurob.distributed.serial import NUMBERS, following, is_outdated

HELLOS = 5  # in a heartbeat
SILENCE = 2.5  # heartbeats without a hello until a neighbour counts as silent
RETRIES = 10  # in a heartbeat, of what was not acknowledged
EAGER = 4  # retries before they become rarer
WINDOW = 2**16  # numbers beyond the first missing one that are taken


class Peer(NamedTuple):
    """The other side of a link."""

    address: Address
    port: str
    number: int  # of its side of the link


class Waiting(NamedTuple):
    """Something that was not acknowledged yet."""

    message: bytes
    tries: int
    due: float  # when to send it again


class Link:
    """One closed connector."""

    __slots__ = (
        "beyond", "child", "heard", "hellos", "low", "next", "number", "peer", "silent", "told",
        "turn", "waiting",
    )  # fmt: skip

    def __init__(self, number: int, turn: int, silent: Peer | None = None) -> None:
        self.number, self.turn = number, turn
        self.silent = silent  # who was here before
        self.hellos = 0  # sent
        self.peer: Peer | None = None
        self.child = False  # whether its way to the coordinator leads over here
        self.heard = 0.0
        self.told = 0  # count of its last hello
        self.next = 1
        self.waiting: dict[int, Waiting] = {}
        self.low = 0  # the numbers up to here have come in, ...
        self.beyond: frozenset[int] = frozenset()  # ... and these

    def copy(self) -> Link:
        twin = object.__new__(Link)
        for name in Link.__slots__:
            setattr(twin, name, getattr(self, name))
        twin.waiting = dict(self.waiting)
        return twin

    def is_new(self, number: int) -> bool:
        """Whether a number comes in for the first time; from now on it has."""
        if (self.low - number) % NUMBERS < NUMBERS // 2 or number in self.beyond:
            return False
        seen = self.beyond | {number}
        while following(self.low) in seen:
            self.low = following(self.low)
            seen -= {self.low}
        self.beyond = seen
        return True


class Links:
    """All links of a module. Steps work on a `copy`, which collects what to send in `outbox`."""

    def __init__(self, address: Address, heartbeat: float) -> None:
        self.address, self.heartbeat = address, heartbeat
        self.ports: dict[str, Link] = {}
        self.made = 0
        self.changes = 0  # of who is where
        self.ignored = 0  # frames that were not understood
        self.pulse = 0.0  # when to say hello next
        self.outbox: list[Message] = []
        self.lost: list[str] = []  # ports whose neighbour went or was replaced during this step

    def copy(self) -> Links:
        twin = object.__new__(Links)
        twin.__dict__.update(self.__dict__)
        twin.ports = {port: link.copy() for port, link in self.ports.items()}
        twin.outbox, twin.lost = [], []
        return twin

    # -- connectors ----------------------------------------------------------------------------

    def plug(self, port: str, turn: int) -> None:
        if port in self.ports:
            self.unplug(port)
        self.ports[port] = Link(self._number(), turn)
        self.changes += 1

    def unplug(self, port: str) -> None:
        if self.ports.pop(port, None) is not None:
            self.lost.append(port)
            self.changes += 1

    def neighbours(self) -> tuple[Neighbour, ...]:
        return tuple(self._neighbour(port, link) for port, link in sorted(self.ports.items()))

    def _neighbour(self, port: str, link: Link) -> Neighbour:
        peer, status = link.peer, Status.HEARD
        if peer is None:
            peer = link.silent
            status = Status.EXPECTED if peer is None else Status.SILENT
        if peer is None:
            return Neighbour(port, NOBODY, "", link.turn, status)
        return Neighbour(port, peer.address, peer.port, link.turn, status)

    def _number(self) -> int:
        self.made += 1
        return (self.address.boot + self.made) % (NUMBERS - 1) + 1  # 0 stands for an unknown one

    # -- coming in -----------------------------------------------------------------------------

    def take(self, port: str, data: bytes, now: float) -> tuple[Hello | None, list[bytes]]:
        """The hello in a frame, or its message if it comes in for the first time."""
        link = self.ports.get(port)
        try:
            kind, theirs, mine, body = unpack_frame(data)
            if link is None or mine not in (0, link.number):
                return None, []  # for a link that is no more
            if kind is FrameKind.HELLO:
                return self._hello(port, link, theirs, unpack_hello(body), now), []
            if link.peer is None or theirs != link.peer.number or mine != link.number:
                return None, []
            if kind is FrameKind.ACK:
                for number in unpack_numbers(body):
                    link.waiting.pop(number, None)
                return None, []
            (number,) = unpack_numbers(body[:4])
            if WINDOW < (number - link.low) % NUMBERS < NUMBERS // 2:
                raise ValueError("a number that is not due for long")
        except ValueError:
            self.ignored += 1
            return None, []
        self._frame(port, link, FrameKind.ACK, pack_numbers([number]))
        return None, [body[4:]] if link.is_new(number) else []

    def _hello(self, port: str, link: Link, theirs: int, hello: Hello, now: float) -> Hello | None:
        peer = Peer(hello.address, hello.port, theirs)
        if link.peer is None:
            link.peer, link.silent = peer, None
            self.changes += 1
        elif link.peer != peer:
            # both sides count from the start only if the other one hears of a new link here
            self._renew(port, link, None)
            return None
        elif is_outdated(hello.number, link.told, now - link.heard, self.heartbeat):
            return None
        link.heard, link.told, link.child = now, hello.number, hello.child
        return hello

    # -- going out -----------------------------------------------------------------------------

    def post(self, port: str, message: bytes, now: float) -> None:
        """Send until the neighbour has it, or is gone."""
        link = self.ports[port]
        number = link.next % NUMBERS
        link.next = number + 1
        self._send(port, link, number, Waiting(message, 0, now), now)

    def say_hello(self, port: str, beat: int, epoch: int, child: bool) -> None:
        link = self.ports[port]
        link.hellos = following(link.hellos)
        hello = Hello(self.address, link.hellos, beat, epoch, child, port)
        self._frame(port, link, FrameKind.HELLO, pack_hello(hello))

    def retry(self, now: float) -> None:
        """Send again what was not acknowledged in time."""
        for port, link in self.ports.items():
            for number, waiting in list(link.waiting.items()):
                if now >= waiting.due:
                    self._send(port, link, number, waiting, now)

    def _send(self, port: str, link: Link, number: int, waiting: Waiting, now: float) -> None:
        rarer = 2 ** max(0, waiting.tries - EAGER)
        due = now + self.heartbeat * min(1.0, rarer / RETRIES)
        link.waiting[number] = Waiting(waiting.message, waiting.tries + 1, due)
        self._frame(port, link, FrameKind.DATA, pack_numbers([number]) + waiting.message)

    def _frame(self, port: str, link: Link, kind: FrameKind, body: bytes) -> None:
        theirs = 0 if link.peer is None else link.peer.number
        self.outbox.append(Message(port, pack_frame(kind, link.number, theirs, body)))

    # -- time ----------------------------------------------------------------------------------

    def is_pulse(self, now: float) -> bool:
        """Whether it is time for hellos; looks for silent neighbours then."""
        if now < self.pulse:
            return False
        self.pulse = now + self.heartbeat / HELLOS
        for port, link in self.ports.items():
            if link.peer is not None and now - link.heard > SILENCE * self.heartbeat:
                self._renew(port, link, link.peer)
        return True

    def _renew(self, port: str, link: Link, silent: Peer | None) -> None:
        """Start anew with the next neighbour that is heard."""
        self.ports[port] = Link(self._number(), link.turn, silent)
        self.lost.append(port)
        self.changes += 1

    def wake(self) -> float:
        """When there is something to do even if nothing comes in."""
        return min([self.pulse, *(waiting.due for waiting in self._all_waiting())])

    def _all_waiting(self) -> Iterator[Waiting]:
        for link in self.ports.values():
            yield from link.waiting.values()
