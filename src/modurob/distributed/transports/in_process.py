"""Messages within one process, in rounds, as unreliable as asked for and reproducible."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from modurob.checks import generator
from modurob.distributed.agent import Message
from modurob.distributed.transports.base import End, Transport, chance
from modurob.errors import StateError


class _InTransit(NamedTuple):
    start: End
    end: End
    payload: bytes


class InProcess(Transport):
    """A network in one process: what is sent in a round arrives in the next one.

    Everything random comes from `rng`, so equal seeds give equal runs.

    Args:
        links: Pairs of ends ((module, port), (module, port)) that are plugged together.
        loss: Chance that a message never arrives.
        delay: Least and most rounds that a message takes longer; each draws its own, so messages
            may overtake each other.
        duplication: Chance that a message arrives twice.
        reordering: Chance that a message takes a random place among those of its round.
        rng: Needed where something is left to chance.
    """

    def __init__(
        self,
        links: Iterable[tuple[End, End]] = (),
        *,
        loss: float = 0.0,
        delay: tuple[int, int] = (0, 0),
        duplication: float = 0.0,
        reordering: float = 0.0,
        rng: Any = None,
    ) -> None:
        self.loss = chance("loss", loss)
        self.duplication = chance("duplication", duplication)
        self.reordering = chance("reordering", reordering)
        self.delay = _delay(delay)
        random = loss or duplication or reordering or delay[0] != delay[1]
        self._rng = generator(rng, "a network with chance in it") if random else rng
        self._round = 0
        self._in_transit: dict[int, list[_InTransit]] = {}  # by the round in which they arrive
        self._inboxes: dict[str, list[Message]] = {}
        super().__init__(links)

    def kill(self, module: str) -> None:
        super().kill(module)
        self.counts.lost += len(self._inboxes.pop(module, ()))

    def send(self, module: str, messages: Sequence[Message]) -> None:
        for port, payload in messages:
            self.counts.sent += 1
            self.counts.bytes += len(payload)
            start = (module, port)
            end = self._links.get(start)
            if end is None or module in self._dead or self._happens(self.loss):
                self.counts.lost += 1
                continue
            message = _InTransit(start, end, payload)
            self._depart(message)
            if self._happens(self.duplication):
                self.counts.duplicated += 1
                self._depart(message)

    def receive(self, module: str) -> list[Message]:
        return self._inboxes.pop(module, [])

    def tick(self) -> None:
        """Begin the next round: deliver what arrives in it."""
        self._round += 1
        for start, end, payload in self._in_transit.pop(self._round, ()):
            if self._links.get(start) != end or end[0] in self._dead:
                self.counts.lost += 1
                continue
            self.counts.delivered += 1
            inbox = self._inboxes.setdefault(end[0], [])
            message = Message(end[1], payload)
            if self._happens(self.reordering):
                inbox.insert(int(self._rng.integers(len(inbox) + 1)), message)
            else:
                inbox.append(message)

    def _depart(self, message: _InTransit) -> None:
        least, most = self.delay
        extra = least if least == most else int(self._rng.integers(least, most + 1))
        self._in_transit.setdefault(self._round + 1 + extra, []).append(message)

    def _happens(self, chance: float) -> bool:
        return chance > 0 and bool(self._rng.random() < chance)


def _delay(value: Any) -> tuple[int, int]:
    try:
        least, most = value
    except (TypeError, ValueError, OverflowError):
        least = most = None
    if not (isinstance(least, int) and isinstance(most, int) and 0 <= least <= most):
        raise StateError(f"delay is (least, most) in whole rounds from 0 on, got {value!r}")
    return least, most
