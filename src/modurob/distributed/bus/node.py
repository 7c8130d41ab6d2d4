"""The program of a module: reports itself, finds the coordinator, passes messages on."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from modurob.distributed.agent import Message
from modurob.distributed.bus import messages as msg
from modurob.distributed.bus.links import HELLOS, LinkTable
from modurob.distributed.bus.messages import OWN, Address, CycleBatch, Hello, Kind, Wanted
from modurob.distributed.child import loaded
from modurob.distributed.codec import LARGEST_TEXT
from modurob.distributed.drive import MOST_JOINTS, Drive
from modurob.distributed.reliable import NUMBERS, Newest, following
from modurob.errors import StateError

HEARTBEAT_S = 0.25
# Heartbeats without a new beat until a way counts as lost. A module that loses the coordinator
# reports that at once; this is for ways in a circle. Over many links with loss, beats are uneven.
STALE = 20.0
LEAP = STALE * HELLOS  # beats within that time: a larger step is refused
LIFETIME = 8.0  # heartbeats that a message may travel, repeated on every link until it arrives
REFRESH = 20.0  # heartbeats after which report and reading are sent again
GATHER = 0.4  # heartbeats after finding a way in which messages wait for those from further out
LATE_S = 0.1  # without a cycle of a clocked loop until a module holds its joints by itself, ...
LATE_PERIODS = 50  # ... and the same in periods of that loop
PATIENCE = 1.5  # periods of the loop without an answer until a module sends what it has
HOLD_STEP_S = 2e-3  # between its own torques then
FROM_COORDINATOR = (Kind.ASK, Kind.TORQUE, Kind.HOLD, Kind.WRITE)
ROUTER, END_DEVICE, LOOSE = "router", "end device", "loose"


class NodeState:
    """State of a module."""

    def __init__(self, links: LinkTable, record: bytes = b"") -> None:
        self.links, self.record = links, record
        self.written: tuple[tuple[int, bytes], ...] = ()  # pieces of a new record, by offset
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
        self.cycle = Newest()  # of the coordinator's clocked loop
        self.period = math.inf  # [s] of that loop, as it comes in
        self.answered_at = -math.inf  # [s] when readings were sent last
        self.readings: dict[Address, bytes] = {}  # of this cycle, to be sent on
        self.awaited: frozenset[str] = frozenset()  # ports whose readings are not complete
        self.gathered: tuple[bytes, ...] = ()  # messages to the coordinator, to be sent together
        self.gather_from: frozenset[str] = frozenset()  # ports from which some are still to come
        self.gather_until = -math.inf  # [s]
        self.hold_gains: tuple[float, ...] = ()  # see `HoldGains`; empty if it may not hold
        self.held: tuple[float, ...] = ()  # q of its joints while it holds them by itself
        self.hold_at = math.inf  # [s] next step of that
        self.wake = 0.0

    def copy(self) -> NodeState:
        twin = object.__new__(NodeState)  # many times faster than copy.copy
        twin.__dict__.update(self.__dict__)
        twin.links, twin.routes = self.links.copy(), dict(self.routes)
        twin.readings = dict(self.readings)
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
        return NodeState(LinkTable(Address(self.uid, boot), self.heartbeat), self.record)

    def step(
        self,
        state: NodeState,
        inbox: Sequence[Message],
        now: float,
        reading: tuple[float, ...] | None = None,
    ) -> tuple[NodeState, list[Message]]:
        """See `Agent`. Messages at the port `OWN` are those of its own sensors and motors.

        Args:
            reading: q, v of its joints now, for the next cycle; None without a drive.
        """
        if not inbox and now < state.wake:
            return state, []
        state = state.copy()
        links = state.links
        if reading is not None:
            state.values = reading or None
        cycles: dict[
            str, list[CycleBatch]
        ] = {}  # the newest of each port: a late module skips others
        for port, payload in inbox:
            if port == OWN:
                self._signal(state, payload, now)
                continue
            heard, arrived = links.take(port, payload, now)
            self._drop_lost(state, now)
            if isinstance(heard, Hello):
                self._hear(state, port, heard, now)
            elif heard is not None:
                known = cycles.get(port, [])
                cycles[port] = [x for x in known if x.number == heard.number] + [heard]
            for message in arrived:
                self._route(state, port, message, now)
        for port, parts in cycles.items():
            for batch in parts:
                self._cycle(state, port, batch, now)
        if links.is_pulse(now):
            self._drop_lost(state, now)
            if state.parent is not None and now - state.beat_at > STALE * self.heartbeat:
                self._leave(state, now)
            self._hellos(state)
            if state.parent is not None and now >= state.refresh:
                self._send_all(state, now)
        self._send_gathered(state, now)
        links.retry(now)
        if state.parent is not None and state.reported != links.changes:
            self._report(state, now)
        self._hold(state, now)
        due = state.answered_at + PATIENCE * state.period
        if due <= now < _late(state):  # a cycle or an answer to it was lost
            self._answer(state, now)
            due = now + PATIENCE * state.period
        gathered_at = state.gather_until if state.gathered else math.inf
        state.wake = min(links.wake(), state.hold_at, gathered_at, due if due > now else math.inf)
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
                state.links.pulse_with_neighbor(now)
        elif hello.beat and not hello.child:  # its messages take another way
            state.gather_from -= {port}
        # an older beat may come from beyond here, until all that held it have let go of it
        fresh = hello.beat > state.beat or now - state.left_at > STALE * self.heartbeat
        if state.parent is None and hello.beat and fresh and not hello.child:
            self._join(state, port, hello, now)

    def _join(self, state: NodeState, port: str, hello: Hello, now: float) -> None:
        state.parent, state.parent_epoch = port, hello.epoch
        state.beat, state.beat_at = hello.beat, now
        state.epoch = following(state.epoch)
        state.newest_torque = state.newest_torque._replace(at=-math.inf)
        state.cycle = state.cycle._replace(at=-math.inf)
        others = state.links.ports.items()
        state.gather_from = frozenset(p for p, link in others if link.peer and p != port)
        state.gather_until = now + GATHER * self.heartbeat
        self._hellos(state)
        self._send_all(state, now)
        if not state.record_sent:
            state.record_sent = True
            self._send_record(state, now)

    def _leave(self, state: NodeState, now: float) -> None:
        """Give up the way to the coordinator, and inform the neighbors.

        The motors hold the joints if they can do so alone; else, and when the connector has opened,
        they let go.
        """
        opened = state.parent not in state.links.ports
        state.parent, state.left_at = None, now
        state.routes.clear()
        state.readings, state.awaited = {}, frozenset()
        state.gathered = ()
        if state.torques is not None and (opened or not state.hold_gains):
            self._let_go(state)
        self._hellos(state)

    def _let_go(self, state: NodeState) -> None:
        state.torques, state.held, state.hold_at = None, (), math.inf
        self._drive(state, ())

    def _hold(self, state: NodeState, now: float) -> None:
        """Hold the joints when torques that came in every cycle do not come any more."""
        if state.torques is None or not state.hold_gains or state.values is None:
            state.hold_at = math.inf
            return
        late = _late(state)
        unclocked = state.parent is not None and late == -math.inf and not state.held
        if now < late or unclocked:
            state.hold_at = math.inf if unclocked else late
            return
        q, v = state.values[::2], state.values[1::2]
        stiffness, damping, friction = (state.hold_gains[k::3] for k in range(3))
        if not state.held:  # from now on at rest: no torque against friction
            state.held = q
            terms = zip(state.torques, friction, v, strict=False)
            state.torques = tuple(tau - b * y for tau, b, y in terms)
            state.hold_at = now
        if now >= state.hold_at:
            terms = zip(state.torques, stiffness, state.held, q, damping, v, strict=False)
            self._drive(state, tuple(tau + k * (q0 - x) - d * y for tau, k, q0, x, d, y in terms))
            state.hold_at = now + HOLD_STEP_S

    def _drop_lost(self, state: NodeState, now: float) -> None:
        """Drop the ways over neighbors that are gone."""
        for port in state.links.lost:
            state.gather_from -= {port}
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
                self._up(state, self._sense(state, state.values), now)
        self._drop_lost(state, now)

    def _up(self, state: NodeState, message: msg.BusMessage, now: float) -> None:
        self._post_up(state, msg.pack(message), now)

    def _post_up(self, state: NodeState, message: bytes, now: float) -> None:
        """Send to the coordinator; soon after finding a way, together with what is to come."""
        if state.gather_from and now < state.gather_until:
            state.gathered += (message,)
        elif state.parent is not None:
            state.links.post(state.parent, message, now)

    def _send_gathered(self, state: NodeState, now: float) -> None:
        """Send what has waited for the modules further out, so that it fills few datagrams."""
        if state.parent is None or (state.gather_from and now < state.gather_until):
            return
        for message in state.gathered:
            state.links.post(state.parent, message, now)
        state.gathered = ()

    def _send_all(self, state: NodeState, now: float) -> None:
        """Send report and reading."""
        state.refresh = now + REFRESH * self.heartbeat
        self._report(state, now)
        if state.values is not None:
            self._up(state, self._sense(state, state.values), now)

    def _report(self, state: NodeState, now: float) -> None:
        state.reported = state.links.changes
        state.reports = following(state.reports)
        address, neighbors = state.links.address, state.links.neighbors()
        self._up(state, msg.ModuleReport(address, state.reports, self.name, neighbors), now)

    def _send_record(self, state: NodeState, now: float) -> None:
        for total, offset, data in msg.pieces(state.record):
            self._up(state, msg.Piece(state.links.address, total, offset, data), now)

    def _sense(self, state: NodeState, values: tuple[float, ...]) -> msg.Sense:
        state.senses = following(state.senses)
        return msg.Sense(state.links.address, state.senses, state.cycle.number, values)

    def _cycle(self, state: NodeState, port: str, batch: CycleBatch, now: float) -> None:
        """Take this module's torque from a batch and pass on the rest; collect readings back."""
        try:
            addressed = [(*msg.unpack_address(data), data) for data in batch.messages]
        except ValueError:
            state.links.ignored += 1
            return
        if port == state.parent:
            steps = (batch.number - state.cycle.number) % NUMBERS
            if steps and state.cycle.refuses(batch.number, now, LIFETIME * self.heartbeat):
                return
            if steps:
                state.period = (now - state.cycle.at) / steps  # infinite after a pause
            state.cycle = Newest(batch.number, now)
            self._send_out(state, [x for x in addressed if x[0] is Kind.TORQUE], now)
        elif state.parent is not None and port in state.links.ports:
            for kind, address, data in addressed:
                if kind is Kind.SENSE and len(state.readings) < msg.MOST_MODULES:
                    state.readings[address] = data
                    self._learn(state, address, port)
            if batch.complete and batch.number == state.cycle.number:
                state.awaited -= {port}
        if not state.awaited:
            self._answer(state, now)

    def _answer(self, state: NodeState, now: float) -> None:
        """Send the readings of this module and of those further out towards the coordinator."""
        if state.parent is None:
            return
        if state.values is not None:
            reading = self._sense(state, state.values)
            state.readings[state.links.address] = msg.pack(reading)
        messages, state.readings = state.readings.values(), {}
        state.links.send_batches(state.parent, state.cycle.number, messages)
        state.answered_at = now

    def _send_out(
        self, state: NodeState, torques: list[tuple[Kind, Address, bytes]], now: float
    ) -> None:
        """Take this module's torque and send the others on, to all modules further out."""
        ports = [p for p, link in state.links.ports.items() if link.child and p != state.parent]
        onward: dict[str, list[bytes]] = {port: [] for port in ports}
        for _, address, data in torques:
            if address == state.links.address:
                self._handle(state, data, now)
            elif state.routes.get(address) in onward:
                onward[state.routes[address]].append(data)
        for port, messages in onward.items():
            state.links.send_batches(port, state.cycle.number, messages)
        state.awaited = frozenset(ports)

    def _learn(self, state: NodeState, address: Address, port: str) -> None:
        """Remember the port towards a module further out."""
        state.routes.pop(address, None)
        state.routes[address] = port
        if len(state.routes) > msg.MOST_MODULES:  # modules that are on send again and again
            del state.routes[next(iter(state.routes))]

    def _route(self, state: NodeState, port: str, message: bytes, now: float) -> None:
        """Pass a message on: to the coordinator, or from there to the module that it names."""
        try:
            kind, address = msg.unpack_address(message)
            from_coordinator = kind in FROM_COORDINATOR
            if state.parent is None or from_coordinator != (port == state.parent):
                return
        except ValueError:
            state.links.ignored += 1
            return
        if from_coordinator and address == state.links.address:
            self._handle(state, message, now)
        elif not from_coordinator:
            self._learn(state, address, port)
            self._post_up(state, message, now)
            state.gather_from -= {port}  # it has sent all that it gathered
        elif address in state.routes:
            state.links.post(state.routes[address], message, now)

    def _handle(self, state: NodeState, data: bytes, now: float) -> None:
        try:
            message = msg.unpack(data)
            _check_count(message)
        except ValueError:
            state.links.ignored += 1
            return
        if isinstance(message, msg.Ask):
            if message.wanted is Wanted.REPORT:
                self._report(state, now)
            else:
                self._send_record(state, now)
        elif isinstance(message, msg.Torque):
            if state.newest_torque.refuses(message.number, now, LIFETIME * self.heartbeat):
                return
            state.newest_torque = Newest(message.number, now)
            state.torques, state.held = message.values or None, ()
            self._drive(state, message.values)
        elif isinstance(message, msg.HoldGains):
            state.hold_gains = message.values
        elif isinstance(message, msg.Write):
            self._write(state, message, now)

    def _write(self, state: NodeState, message: msg.Write, now: float) -> None:
        """Take in a piece of a new record; once it is whole it replaces the old one."""
        state.written, record = msg.joined(state.written, message)
        if record is not None:
            state.record = record
            state.links.outbox.append(msg.own(msg.Stored(record)))
            self._send_record(state, now)

    def _drive(self, state: NodeState, values: tuple[float, ...]) -> None:
        state.links.outbox.append(msg.own(msg.DriveSignal(values)))


def _check_count(message: msg.BusMessage) -> None:
    """Raise ValueError for more numbers than the joints of a module can need."""
    if isinstance(message, msg.Torque | msg.HoldGains):
        most = MOST_JOINTS * (3 if isinstance(message, msg.HoldGains) else 2)
        if len(message.values) > most:
            raise ValueError(f"{len(message.values)} numbers, at most {most} are expected")


def _late(state: NodeState) -> float:
    """Time after which cycles do not come any more. [s]"""
    if math.isinf(state.period):  # after a pause
        return state.cycle.at + LATE_S
    return state.cycle.at + max(LATE_S, LATE_PERIODS * state.period)


class NodeProgram:
    """The `Program` of a node's process: it has the `Drive` that the settings name.

    Its answers are torques for the motors without a drive, and new contents of its memory.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        name, options_of_drive = settings.get("drive") or ("", {})
        self._drive: Drive | None = loaded(name)(**options_of_drive) if name else None
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
        reading = None if self._drive is None else self._drive.read()
        self._state, outbox = self._node.step(self._state, inbox, now, reading)
        answers: list[dict[str, Any]] = []
        for signal in msg.own_signals(outbox):
            if isinstance(signal, msg.Stored):
                answers.append({"stored": signal.record.hex()})
            elif self._drive is None:
                answers.append({"drive": signal.values})
            else:
                self._drive.write(signal.values)
        return [message for message in outbox if message.port != OWN], answers
