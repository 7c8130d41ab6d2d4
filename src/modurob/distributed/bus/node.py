"""The program of a module: reports itself, finds the coordinator, passes messages on."""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from modurob.distributed.agent import Message
from modurob.distributed.bus import messages as msg
from modurob.distributed.bus.links import HELLOS, LinkTable
from modurob.distributed.bus.messages import OWN, Address, Hello, Kind, Wanted
from modurob.distributed.codec import LARGEST_TEXT
from modurob.distributed.reliable import Newest, following
from modurob.errors import StateError

HEARTBEAT_S = 0.25
# Heartbeats without a new beat until a way counts as lost. A module that loses the coordinator
# reports that at once; this is for ways in a circle. Over many links with loss, beats are uneven.
STALE = 20.0
LEAP = STALE * HELLOS  # beats within that time: a larger step is refused
LIFETIME = 8.0  # heartbeats that a message may travel, repeated on every link until it arrives
REFRESH = 20.0  # heartbeats after which report and reading are sent again
ROUTER, END_DEVICE, LOOSE = "router", "end device", "loose"


class NodeState:
    """State of a module."""

    def __init__(self, links: LinkTable) -> None:
        self.links = links
        self.parent: str | None = None  # the port towards the coordinator, if there is a way
        self.parent_epoch = 0
        self.beat, self.beat_at = 0, 0.0  # the coordinator's newest beat
        self.left_at = -math.inf  # [s] when the last way was lost
        self.epoch = 0  # count of ways found
        self.reported = -1  # links.changes at the last report
        self.reports = self.senses = 0  # numbers of the last ones
        self.refresh = 0.0  # [s] when to send report and reading again
        self.record_sent = False
        self.routes: dict[Address, str] = {}  # ports towards modules further out, newest last
        self.values: tuple[float, ...] | None = None  # q, v of its joints, once measured
        self.torques: tuple[float, ...] | None = None  # [N m, N] of its motors, if commanded
        self.newest_torque = Newest()
        self.wake = 0.0

    def copy(self) -> NodeState:
        twin = copy.copy(self)
        twin.links, twin.routes = self.links.copy(), dict(self.routes)
        return twin

    @property
    def role(self) -> str:
        """router, end device, or loose without a way to the coordinator."""
        if self.parent is None:
            return LOOSE
        others = (link for port, link in self.links.ports.items() if port != self.parent)
        return ROUTER if any(link.child for link in others) else END_DEVICE


class Node:
    """A module on the bus.

    Args:
        uid: Its id.
        record: The content of its memory; the coordinator reads it, a node does not.
        name: For people; up to 64 bytes.
        ports: Labels of its ports, as texts.
        heartbeat: Time in which a module is heard, several times. [s]
    """

    def __init__(
        self,
        uid: int,
        record: bytes,
        *,
        name: str = "",
        ports: Sequence[str] = ("in", "out"),
        heartbeat: float = HEARTBEAT_S,
    ) -> None:
        if not 1 <= len(ports) <= msg.MOST_PORTS:
            raise StateError(f"a node has 1 to {msg.MOST_PORTS} ports, got {len(ports)}")
        for text in (name, *ports):
            if len(text.encode()) > LARGEST_TEXT:
                raise StateError(
                    f"names and ports have up to {LARGEST_TEXT} bytes, got {text!r:.80}"
                )
        if len(record) > msg.LARGEST_RECORD:
            raise StateError(
                f"a record has up to {msg.LARGEST_RECORD} bytes, '{name}' has {len(record)}"
            )
        self.uid, self.record, self.name, self.ports = uid, record, name, tuple(ports)
        self.heartbeat = heartbeat

    def start(self, boot: int) -> NodeState:
        """The first state; `boot` is a random number of 32 bits."""
        return NodeState(LinkTable(Address(self.uid, boot), self.heartbeat))

    def step(
        self, state: NodeState, inbox: Sequence[Message], now: float
    ) -> tuple[NodeState, list[Message]]:
        """See `Agent`. Messages at the port `OWN` are those of its own sensors and motors."""
        if not inbox and now < state.wake:
            return state, []
        state = state.copy()
        links = state.links
        for port, payload in inbox:
            if port == OWN:
                self._signal(state, payload, now)
                continue
            hello, arrived = links.take(port, payload, now)
            self._drop_lost(state, now)
            if hello is not None:
                self._hear(state, port, hello, now)
            for message in arrived:
                self._route(state, port, message, now)
        if links.is_pulse(now):
            self._drop_lost(state, now)
            if state.parent is not None and now - state.beat_at > STALE * self.heartbeat:
                self._leave(state, now)
            self._hellos(state)
            if state.parent is not None and now >= state.refresh:
                self._send_all(state, now)
        links.retry(now)
        if state.parent is not None and state.reported != links.changes:
            self._report(state, now)
        state.wake = links.wake()
        return state, links.outbox

    def _hellos(self, state: NodeState) -> None:
        for port in state.links.ports:
            self._send_hello(state, port)

    def _send_hello(self, state: NodeState, port: str) -> None:
        beat = 0 if state.parent is None else state.beat
        state.links.send_hello(port, beat, state.epoch, port == state.parent)

    def _hear(self, state: NodeState, port: str, hello: Hello, now: float) -> None:
        if hello.number == 1 or state.links.ports[port].hellos == 0:
            self._send_hello(state, port)  # a new neighbor should not wait for the next pulse
        if port == state.parent:
            if hello.beat == 0 or hello.child or hello.epoch != state.parent_epoch:
                self._leave(state, now)
            elif 0 < hello.beat - state.beat <= LEAP:
                state.beat, state.beat_at = hello.beat, now
        # an older beat may come from beyond here, until all that held it have let go of it
        fresh = hello.beat > state.beat or now - state.left_at > STALE * self.heartbeat
        if state.parent is None and hello.beat and fresh and not hello.child:
            self._join(state, port, hello, now)

    def _join(self, state: NodeState, port: str, hello: Hello, now: float) -> None:
        state.parent, state.parent_epoch = port, hello.epoch
        state.beat, state.beat_at = hello.beat, now
        state.epoch = following(state.epoch)
        state.newest_torque = state.newest_torque._replace(at=-math.inf)
        self._hellos(state)
        self._send_all(state, now)
        if not state.record_sent:
            state.record_sent = True
            self._send_record(state, now)

    def _leave(self, state: NodeState, now: float) -> None:
        """Give up the way to the coordinator: release the motors, and inform the neighbors."""
        state.parent, state.left_at = None, now
        state.routes.clear()
        if state.torques is not None:
            state.torques = None
            self._drive(state, ())
        self._hellos(state)

    def _drop_lost(self, state: NodeState, now: float) -> None:
        """Drop the ways over neighbors that are gone."""
        for port in state.links.lost:
            state.routes = {there: way for there, way in state.routes.items() if way != port}
            if port == state.parent:
                self._leave(state, now)
        state.links.lost.clear()

    def _signal(self, state: NodeState, payload: bytes, now: float) -> None:
        signal = msg.unpack_signal(payload)
        if isinstance(signal, msg.Plugged):
            state.links.plug(signal.port, signal.turn)
            self._send_hello(state, signal.port)
        elif isinstance(signal, msg.Unplugged):
            state.links.unplug(signal.port)
        elif isinstance(signal, msg.Sensed):
            state.values = signal.values
            if state.parent is not None:
                self._sense(state, state.values, now)
        self._drop_lost(state, now)

    def _up(self, state: NodeState, message: msg.BusMessage, now: float) -> None:
        if state.parent is not None:
            state.links.post(state.parent, msg.pack(message), now)

    def _send_all(self, state: NodeState, now: float) -> None:
        """Send report and reading."""
        state.refresh = now + REFRESH * self.heartbeat
        self._report(state, now)
        if state.values is not None:
            self._sense(state, state.values, now)

    def _report(self, state: NodeState, now: float) -> None:
        state.reported = state.links.changes
        state.reports = following(state.reports)
        address, neighbors = state.links.address, state.links.neighbors()
        self._up(state, msg.ModuleReport(address, state.reports, self.name, neighbors), now)

    def _send_record(self, state: NodeState, now: float) -> None:
        for offset in range(0, max(1, len(self.record)), msg.CHUNK):
            data = self.record[offset : offset + msg.CHUNK]
            self._up(state, msg.Piece(state.links.address, len(self.record), offset, data), now)

    def _sense(self, state: NodeState, values: tuple[float, ...], now: float) -> None:
        state.senses = following(state.senses)
        self._up(state, msg.Sense(state.links.address, state.senses, values), now)

    def _route(self, state: NodeState, port: str, message: bytes, now: float) -> None:
        """Pass a message on: to the coordinator, or from there to the module that it names."""
        try:
            kind, address = msg.unpack_address(message)
            from_coordinator = kind in (Kind.ASK, Kind.TORQUE)
            if state.parent is None or from_coordinator != (port == state.parent):
                return
            if from_coordinator and address == state.links.address:
                self._handle(state, msg.unpack(message), now)
                return
        except ValueError:
            state.links.ignored += 1
            return
        if not from_coordinator:
            state.routes.pop(address, None)
            state.routes[address] = port
            if len(state.routes) > msg.MOST_MODULES:  # modules that are on send again and again
                del state.routes[next(iter(state.routes))]
            state.links.post(state.parent, message, now)
        elif address in state.routes:
            state.links.post(state.routes[address], message, now)

    def _handle(self, state: NodeState, message: msg.BusMessage, now: float) -> None:
        if isinstance(message, msg.Ask):
            if message.wanted is Wanted.REPORT:
                self._report(state, now)
            else:
                self._send_record(state, now)
        elif isinstance(message, msg.Torque):
            if state.newest_torque.refuses(message.number, now, LIFETIME * self.heartbeat):
                return
            state.newest_torque = Newest(message.number, now)
            state.torques = message.values or None
            self._drive(state, message.values)

    def _drive(self, state: NodeState, values: tuple[float, ...]) -> None:
        state.links.outbox.append(msg.own(msg.DriveSignal(values)))


class NodeProgram:
    """The `Program` of a node's process. Its answers are torques for the motors."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        record = bytes.fromhex(settings["record"])
        options = {key: settings[key] for key in ("name", "ports", "heartbeat")}
        self._node = Node(settings["uid"], record, **options)
        self._state = self._node.start(int.from_bytes(os.urandom(4), "big"))

    @property
    def wake(self) -> float:
        return self._state.wake

    def step(
        self, inbox: list[Message], events: list[dict[str, Any]], now: float
    ) -> tuple[list[Message], list[dict[str, Any]]]:
        signals = [bytes.fromhex(event["signal"]) for event in events if "signal" in event]
        inbox = inbox + [Message(OWN, signal) for signal in signals]
        self._state, outbox = self._node.step(self._state, inbox, now)
        answers = [{"drive": torques} for torques in msg.own_torques(outbox)]
        return [message for message in outbox if message.port != OWN], answers
