"""A bus within one process, in reproducible rounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from modurob.distributed.agent import Message
from modurob.distributed.bus import messages as msg
from modurob.distributed.bus.bus import BASE, Bus, BusModule
from modurob.distributed.bus.coordinator import Coordinator, CoordinatorState
from modurob.distributed.bus.node import NodeState
from modurob.distributed.transports import End, network

ROUND_S = 1e-3  # that a message takes from neighbor to neighbor
SPREAD = 2654435769  # boot numbers far apart: 2^32 / golden ratio


class SimulatedBus(Bus):
    """Modules as agents of one process.

    Args:
        law, settings: See `Bus`.
        transport: Name of a transport.
        faults: Its options: loss, delay, duplication, reordering, rng of `InProcess`.

    Attributes:
        now: Time of the simulated clock. [s]
        rounds: Count so far.
    """

    def __init__(
        self,
        law: str = "ComputedTorque",
        *,
        transport: str = "in_process",
        faults: dict[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(law, **settings)
        self.transport = network(transport, **(faults or {}))
        self._root = Coordinator(self.heartbeat)
        self._root_state = self._root.start(SPREAD)
        self.states: dict[str, NodeState] = {}
        self._signals: dict[str, list[Message]] = {BASE: []}
        self._boots = 1
        self.rounds = 0

    @property
    def now(self) -> float:
        return self.rounds * ROUND_S

    @property
    def coordinator(self) -> CoordinatorState:
        return self._root_state

    def kill(self, name: str) -> None:
        self.module(name)
        self.transport.kill(name)
        self.states.pop(name, None)
        self.torques.pop(name, None)

    def close(self) -> None:
        self.transport.close()

    def run(self, until: Callable[[], bool], seconds: float = 30.0) -> bool:
        """Run until a condition holds; False if it does not within so many simulated seconds."""
        end = self.rounds + round(seconds / ROUND_S)
        while not until():
            if self.rounds >= end:
                return False
            self.round()
        return True

    def round(self) -> None:
        """Let every module and the coordinator step once, then move messages on."""
        self.rounds += 1
        for name in list(self.states):
            agent = self.modules[name].node
            inbox = self._signals[name] + self.transport.receive(name)
            self._signals[name] = []
            self.states[name], outbox = agent.step(self.states[name], inbox, self.now)
            if outbox:
                self._send(name, outbox)
        inbox = self._signals[BASE] + self.transport.receive(BASE)
        self._root_state, outbox = self._root.step(self._root_state, inbox, self.now)
        self._send(BASE, outbox)
        self._signals[BASE] = self.builder.update(self._root_state, self.now)
        self.transport.tick()

    def _send(self, name: str, outbox: list[Message]) -> None:
        for torques in msg.own_torques(outbox):
            self._driven(name, torques)
        self.transport.send(name, [message for message in outbox if message.port != msg.OWN])

    def _launch(self, module: BusModule) -> None:
        self._boots += 1
        self.states[module.name] = module.node.start(self._boots * SPREAD % 2**32)
        self._signals[module.name] = []

    def _connect(self, one: End, other: End) -> None:
        self.transport.plug(one, other)

    def _disconnect(self, one: End, other: End) -> None:
        self.transport.unplug(one, other)

    def _signal(self, name: str, signal: msg.Signal) -> None:
        self._signals[name].append(msg.own(signal))
