"""`MassNetwork`: the agents of all modules of an organism on a transport, round by round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from modurob.checks import positive
from modurob.distributed.agent import Message
from modurob.distributed.mass.base import Network
from modurob.distributed.mass.state import MassEstimate, MassState, MassView, decode
from modurob.distributed.transports import End, network
from modurob.errors import DockingError
from modurob.organism import Organism

PERIOD = 1e-3  # [s] of a round


class MassNetwork(Network):
    """Modules that find out together how heavy they are, where their center is, who leads.

    In a round every module sends what is new, the messages travel, and every module takes in what
    has arrived. With perfect links every module knows the exact totals after as many rounds as the
    longest path has dockings.

    Args:
        organism: Who is docked to whom; each module knows its own neighbors only.
        transport: Name of a transport, or anything with ``send``, ``receive`` and ``tick``, such
            as `InProcess`; perfect links by default. One without any links gets those of the
            organism.
        rng: For boot numbers and tickets.
        period: Seconds of a round.
        resend, give_up, heartbeat, tickets: See `MassAgent`.

    Attributes:
        agents, states: By module.
        rounds: How many have passed.
        news, confirmations, bytes: Messages with news, those without, and bytes, all sent so far.
    """

    def __init__(
        self,
        organism: Organism,
        transport: Any = None,
        *,
        rng: np.random.Generator | None = None,
        period: float = PERIOD,
        **options: Any,
    ) -> None:
        super().__init__(organism, **options)
        transport = "in_process" if transport is None else transport
        self.transport = network(transport) if isinstance(transport, str) else transport
        if hasattr(self.transport, "links"):
            self._plug_all()
        self.period = positive("period", period, "seconds")
        self._rng = np.random.default_rng(0) if rng is None else rng
        self._turns = turns_of(organism)
        self.states: dict[str, MassState] = {}
        self.rounds = self.news = self.confirmations = self.bytes = 0
        self._asleep: set[str] = set()
        self._outboxes: dict[str, list[Message]] = {}
        for name, agent in self.agents.items():
            self.states[name] = agent.started(self._turns[name], self._rng)

    def _plug_all(self) -> None:
        if not self.transport.links():
            for a, b in links_of(self.organism):
                self.transport.plug(a, b)
        check_tree(self.transport.links())

    # -- what modules sense ----------------------------------------------------------------------

    def _event(self, module: str, event: Mapping[str, Any]) -> None:
        self.states[module] = self.agents[module].after(self.states[module], event)

    # -- faults ----------------------------------------------------------------------------------

    def freeze(self, module: str) -> None:
        """The module's program stops; its memory stays."""
        self._agent(module)
        self._asleep.add(module)

    def kill(self, module: str) -> None:
        """The module dies: it neither computes, sends nor receives."""
        self.freeze(module)
        if hasattr(self.transport, "kill"):
            self.transport.kill(module)

    def wake(self, module: str) -> None:
        """A frozen module goes on where it was."""
        self._agent(module)
        self._asleep.discard(module)

    def reboot(self, module: str) -> None:
        """The module starts anew: all it knew is lost, what it senses stays."""
        agent, old = self._agent(module), self.states[module]
        new = agent.started(self._turns[module], self._rng)
        new = agent.sensed(new, old.q, old.v, old.free)
        if old.pose is not None:
            new = agent.in_contact(new, old.contacts, old.pose, old.contact_body)
        self.states[module] = new
        if hasattr(self.transport, "revive"):
            self.transport.revive(module)
        self._outboxes.pop(module, None)
        self._asleep.discard(module)

    # -- rounds ----------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return self.rounds * self.period

    def round(self, count: int = 1) -> int:
        """Let `count` rounds pass; returns how many messages were sent in them."""
        sent = 0
        for _ in range(count):
            if self.rounds == 0:
                self._step_all()  # nobody has heard anything yet
            for name, outbox in self._outboxes.items():
                self._count(outbox)
                sent += len(outbox)
                self.transport.send(name, outbox)
            self._outboxes = {}
            self.transport.tick()
            self.rounds += 1
            self._step_all()
        return sent

    def settle(self, most: int = 10_000) -> int:
        """Rounds until nobody has anything to say; at most `most`."""
        for count in range(most):
            if self.rounds and self.quiet:
                return count
            self.round()
        return most

    @property
    def quiet(self) -> bool:
        """Whether nobody is about to send anything, or waits for an answer."""
        awake = [state for name, state in self.states.items() if name not in self._asleep]
        waiting = any(
            link.waiting and not link.gone for state in awake for link in state.links.values()
        )
        told = all(state.announced for state in awake)
        return told and not waiting and not any(self._outboxes.values())

    def _step_all(self) -> None:
        for name, agent in self.agents.items():
            if name in self._asleep:
                continue
            inbox = self.transport.receive(name)
            self.states[name], outbox = agent.step(self.states[name], inbox, self.now)
            self._outboxes[name] = outbox

    def _count(self, outbox: Sequence[Message]) -> None:
        for message in outbox:
            packet = decode(message.payload)
            self.bytes += len(message.payload)
            if packet is not None and packet.update:
                self.news += 1
            else:
                self.confirmations += 1

    # -- what modules know -----------------------------------------------------------------------

    def view(self, module: str) -> MassView:
        """Everything a module makes of what it knows."""
        return self._agent(module).view(self.states[module])

    def knowledge(self, module: str) -> MassEstimate:
        return self.view(module)

    def _speaking(self) -> list[str]:
        return [name for name in self.agents if name not in self._asleep]


def links_of(organism: Organism) -> list[tuple[End, End]]:
    """The dockings of an organism as pairs of ends."""
    return [
        ((entry.parent, str(entry.port)), (entry.child, str(entry.child_port)))
        for entry in organism.dockings
    ]


def turns_of(organism: Organism) -> dict[str, dict[str, int]]:
    """For each module, the turn of the docking at each connector that holds one. [deg]"""
    turns: dict[str, dict[str, int]] = {name: {} for name in organism.modules}
    for entry in organism.dockings:
        turns[entry.parent][str(entry.port)] = entry.turn
        turns[entry.child][str(entry.child_port)] = entry.turn
    return turns


def check_tree(links: Iterable[tuple[End, End]]) -> None:
    """Links that close a loop are an error that names it: sums would count modules twice."""
    neighbors: dict[str, list[str]] = {}
    for (a, port_a), (b, port_b) in links:
        path = _path(neighbors, a, b)
        if path is not None:
            raise DockingError(
                f"the link from port {port_a} of '{a}' to port {port_b} of '{b}' closes the loop "
                f"{' - '.join([*path, a])}; the mass network needs a tree: undock one of them"
            )
        neighbors.setdefault(a, []).append(b)
        neighbors.setdefault(b, []).append(a)


def _path(neighbors: dict[str, list[str]], start: str, end: str) -> list[str] | None:
    """Modules from one to another, or None."""
    before, queue = {start: ""}, [start]
    for module in queue:  # grows while it is walked
        for neighbor in neighbors.get(module, ()):
            if neighbor not in before:
                before[neighbor] = module
                queue.append(neighbor)
    path = [end] if end in before else []
    while path and path[-1] != start:
        path.append(before[path[-1]])
    return path[::-1] or None
