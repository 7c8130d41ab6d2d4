"""`MassNetwork`: the agents of all modules of an organism on a transport, round by round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from modurob.checks import positive
from modurob.distributed.agent import Message
from modurob.distributed.mass.base import Network, check_tree, ends_of, links_of
from modurob.distributed.mass.state import MassEstimate, MassState, MassView, decode
from modurob.distributed.transports import TRANSPORTS, network
from modurob.errors import StateError, choices
from modurob.organism import Organism

PERIOD_S = 1e-3  # of a round


class MassNetwork(Network):
    """Modules that compute total mass, center of mass and a leader by messages to neighbors.

    In a round every module sends what is new, the messages travel, and every module takes in what
    has arrived. With perfect links every module has the exact totals after as many rounds as the
    longest path has dockings.

    Args:
        organism: The modules and their dockings.
        transport: Name of a transport, or anything with ``send``, ``receive`` and ``tick``, such
            as `InProcess`; perfect links by default. One without any links gets those of the
            organism.
        rng: For boot numbers and tickets.
        period: Seconds of a round.
        resend, give_up, heartbeat, tickets: See `MassAgent`.

    Attributes:
        agents, states: By module.
        rounds: Count so far.
        news, confirmations, bytes: Messages with an update, those without, and bytes, all sent.
    """

    def __init__(
        self,
        organism: Organism,
        transport: Any = None,
        *,
        rng: np.random.Generator | None = None,
        period: float = PERIOD_S,
        **options: Any,
    ) -> None:
        super().__init__(organism, **options)
        transport = "in_process" if transport is None else transport
        self.transport = network(transport) if isinstance(transport, str) else transport
        if not all(hasattr(self.transport, name) for name in ("send", "receive", "tick")):
            raise StateError(
                f"transport is a name ({choices(TRANSPORTS)}) or has send, receive and tick, "
                f"got {transport!r}"
            )
        if hasattr(self.transport, "links"):
            self._plug_all()
        self.period = positive("period", period, "seconds")
        self._rng = np.random.default_rng(0) if rng is None else rng
        self._turns: dict[str, dict[str, int]] = {name: {} for name in organism}  # [deg]
        for entry in organism.dockings:
            for name, port in ends_of(entry):
                self._turns[name][port] = entry.turn
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

    def _event(self, module: str, event: Mapping[str, Any]) -> None:
        self.states[module] = self.agents[module].after(self.states[module], event)

    def freeze(self, module: str) -> None:
        """Stop a module's program; its memory stays, it sends nothing more."""
        self._agent(module)
        self._asleep.add(module)
        self._outboxes.pop(module, None)

    def kill(self, module: str) -> None:
        """Stop a module altogether: it neither computes, sends nor receives."""
        self.freeze(module)
        if hasattr(self.transport, "kill"):
            self.transport.kill(module)

    def wake(self, module: str) -> None:
        """Continue the program of a frozen module."""
        self._agent(module)
        self._asleep.discard(module)

    def reboot(self, module: str) -> None:
        """Restart a module: its memory is lost, its measurements stay."""
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

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return self.rounds * self.period

    def round(self, count: int = 1) -> int:
        """Run `count` rounds; returns the number of messages sent in them."""
        sent = 0
        for _ in range(count):
            if self.rounds == 0:
                self._step_all()  # with empty inboxes
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
        """Run until no module has anything to send; returns the rounds, at most `most`."""
        for count in range(most):
            if self.rounds and self.quiet:
                return count
            self.round()
        return most

    @property
    def quiet(self) -> bool:
        """True when no module is about to send anything, or waits for an answer."""
        awake = [state for name, state in self.states.items() if name not in self._asleep]
        waiting = any(
            link.waiting and not link.gone for state in awake for link in state.links.values()
        )
        announced = all(state.announced for state in awake)
        return announced and not waiting and not any(self._outboxes.values())

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

    def view(self, module: str) -> MassView:
        """Everything that follows from a module's state."""
        return self._agent(module).view(self.states[module])

    def knowledge(self, module: str) -> MassEstimate:
        return self.view(module)

    def _running(self) -> list[str]:
        return [name for name in self.agents if name not in self._asleep]
