"""A bus within one process, in reproducible rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from modurob.checks import positive
from modurob.distributed.agent import Message
from modurob.distributed.bus import messages as msg
from modurob.distributed.bus.bus import BASE, Bus, BusModule
from modurob.distributed.bus.coordinator import CoordinatorState
from modurob.distributed.bus.node import NodeState
from modurob.distributed.plant import Plant
from modurob.distributed.transports import End, network
from modurob.errors import StateError

ROUND_S = 1e-3  # that a message takes from neighbor to neighbor
LINKS_IN_PERIOD = 10  # that a message passes in a period of the clocked loop
SAME = 1e-9  # relative, by which two times may differ
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
        world: The plant; None without one.
    """

    def __init__(
        self,
        law: str = "ComputedTorque",
        *,
        transport: str = "in_process",
        faults: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(law, **settings)
        if not (faults is None or isinstance(faults, Mapping)):
            raise StateError(
                f'faults is a dict such as {{"loss": 0.3, "rng": rng}}, got {faults!r}'
            )
        self.transport = network(transport, **(faults or {}))
        self._root_state = self._root.start(SPREAD)
        self.states: dict[str, NodeState] = {}
        self._signals: dict[str, list[Message]] = {BASE: []}
        self._boots = 1
        self.rounds = self._ticks = 0
        self.world = None if self.plant is None else Plant(self.plant)
        self._round_s = self.period / LINKS_IN_PERIOD if self.clocked else ROUND_S

    @property
    def now(self) -> float:
        return self.rounds * self._round_s

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
        self._check_condition(until)
        end = self.rounds + round(positive("seconds", seconds, "seconds") / self._round_s)
        while not until():
            if self.rounds >= end:
                return False
            self.round()
        return True

    def round(self) -> None:
        """Let every module and the coordinator step once, then move messages on."""
        self.rounds += 1
        world, now = self.world, self.now
        if world is not None and now - world.t >= world.options.step * (1 - SAME):
            world.advance(now)
        for name, state in list(self.states.items()):
            inbox = self._signals[name] + self.transport.receive(name)
            self._signals[name] = []
            if not inbox and now < state.wake:
                continue
            reading = None if world is None else world.reading(name)
            node = self.modules[name].node
            self.states[name], outbox = node.step(state, inbox, now, reading)
            self._send(name, outbox)
        inbox = self._signals[BASE] + self.transport.receive(BASE)
        self._root_state, outbox = self._root.step(self._root_state, inbox, now)
        self._send(BASE, outbox)
        self._signals[BASE] = []
        if world is None:
            self._signals[BASE] = self.builder.update(self._root_state, now)
        else:
            self._loop(now)
        self.transport.tick()

    def _loop(self, now: float) -> None:
        """The coordinator's part of the clocked loop."""
        if self.builder.rebuild(self._root_state):
            gains = self.operation.hold_gains().items()
            self._signals[BASE] = [msg.own(msg.HoldGains(m, values)) for m, values in gains]
        if now >= self._ticks * self.period:
            self._ticks += 1
            self._root_state, outbox = self._cycle(self._root_state, now)
            self._send(BASE, outbox)

    def _send(self, name: str, outbox: list[Message]) -> None:
        for signal in msg.own_signals(outbox):
            if isinstance(signal, msg.Stored):
                self._stored(name, signal.record)
            else:
                self._driven(name, signal.values)
                if self.world is not None:
                    self.world.command(name, signal.values)
        self.transport.send(name, [message for message in outbox if message.port != msg.OWN])

    def _plant(self, event: dict[str, Any]) -> None:
        if self.world is not None:
            self.world.handle(event)

    def _launch(self, module: BusModule) -> None:
        self._boots += 1
        self.states[module.name] = module.node.start(self._boots * SPREAD % 2**32)
        self._signals[module.name] = []

    def _connect(self, one: End, other: End) -> None:
        if one not in dict(self.transport.links()) and other not in dict(self.transport.links()):
            self.transport.plug(one, other)
        self.transport.revive(one[0])

    def _disconnect(self, one: End, other: End) -> None:
        self.transport.unplug(one, other)

    def _signal(self, name: str, signal: msg.Signal | msg.BusMessage) -> None:
        self._signals[name].append(msg.own(signal))
