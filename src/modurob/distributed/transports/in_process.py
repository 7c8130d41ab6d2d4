"""Messages within one process, in rounds, as unreliable as one likes and always the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from modurob.checks import is_number
from modurob.distributed.agent import Message
from modurob.distributed.transports.counts import Counts
from modurob.errors import DockingError, StateError

End = tuple[str, str]  # (module, port)


class _Flight(NamedTuple):
    start: End
    end: End
    payload: bytes


class InProcess:
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
        if random and rng is None:
            raise StateError("a network with chance in it needs rng, a numpy random generator")
        self._rng = rng
        self._links: dict[End, End] = {}
        self._dead: set[str] = set()
        self._round = 0
        self._flights: dict[int, list[_Flight]] = {}  # by the round in which they arrive
        self._inboxes: dict[str, list[Message]] = {}
        self.counts = Counts()
        for a, b in links:
            self.plug(a, b)

    # -- cables --------------------------------------------------------------------------------

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

    def unplug(self, a: End | str, b: End | str | None = None) -> None:
        """Let go; what is under way on the link is lost.

        Args:
            a: An end (module, port), or a module: all its links.
            b: Only links with this end or module.
        """
        found = [
            (one, other)
            for one, other in self._links.items()
            if _matches(one, a) and (b is None or _matches(other, b))
        ]
        if not found:
            raise DockingError(f"{a} is not plugged" + ("" if b is None else f" into {b}"))
        for one, other in found:
            self._links.pop(one, None)
            self._links.pop(other, None)

    def links(self) -> list[tuple[End, End]]:
        """Every link once, in the order of plugging."""
        seen: set[End] = set()
        result = []
        for one, other in self._links.items():
            if other not in seen:
                seen.add(one)
                result.append((one, other))
        return result

    def kill(self, module: str) -> None:
        """From now on the module neither sends nor receives; its inbox is lost."""
        self._dead.add(module)
        self.counts.lost += len(self._inboxes.pop(module, ()))

    def revive(self, module: str) -> None:
        """The module is back, with an empty inbox."""
        self._dead.discard(module)

    # -- messages ------------------------------------------------------------------------------

    def send(self, module: str, messages: Sequence[Message]) -> None:
        """Send from the ports that the messages name."""
        for port, payload in messages:
            self.counts.sent += 1
            self.counts.bytes += len(payload)
            start = (module, port)
            end = self._links.get(start)
            if end is None or module in self._dead or self._happens(self.loss):
                self.counts.lost += 1
                continue
            flight = _Flight(start, end, payload)
            self._depart(flight)
            if self._happens(self.duplication):
                self.counts.duplicated += 1
                self._depart(flight)

    def receive(self, module: str) -> list[Message]:
        """What has arrived since the last call, by the port where it came in."""
        return self._inboxes.pop(module, [])

    def tick(self) -> None:
        """One round on: deliver what arrives in it."""
        self._round += 1
        for start, end, payload in self._flights.pop(self._round, ()):
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

    def _depart(self, flight: _Flight) -> None:
        least, most = self.delay
        extra = least if least == most else int(self._rng.integers(least, most + 1))
        self._flights.setdefault(self._round + 1 + extra, []).append(flight)

    def _happens(self, chance: float) -> bool:
        return chance > 0 and bool(self._rng.random() < chance)


def chance(name: str, value: float) -> float:
    """A chance, or a `StateError`."""
    if not is_number(value) or not 0 <= value <= 1:
        raise StateError(f"{name} must be a chance between 0 and 1, got {value!r}")
    return float(value)


def _delay(value: Any) -> tuple[int, int]:
    try:
        least, most = value
    except (TypeError, ValueError, OverflowError):
        least = most = -1
    if not (isinstance(least, int) and isinstance(most, int) and 0 <= least <= most):
        raise StateError(f"delay is (least, most) in whole rounds from 0 on, got {value!r}")
    return least, most


def _end(value: Any) -> End:
    if isinstance(value, tuple) and len(value) == 2 and all(isinstance(x, str) for x in value):
        return value
    raise StateError(f"an end is (module, port) in two texts like ('m0', 'out'), got {value!r}")


def _matches(end: End, wanted: End | str) -> bool:
    return end[0] == wanted if isinstance(wanted, str) else end == tuple(wanted)
