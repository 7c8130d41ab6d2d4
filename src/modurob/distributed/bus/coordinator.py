"""The program at the base: collects reports, asks for missing ones, sends torques."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

from modurob.distributed.agent import Message
from modurob.distributed.bus import messages as msg
from modurob.distributed.bus.links import LinkTable
from modurob.distributed.bus.messages import OWN, Address, Wanted
from modurob.distributed.bus.node import HEARTBEAT_S, LIFETIME, REFRESH
from modurob.distributed.bus.survey import BusEntry, Survey, survey
from modurob.distributed.reliable import Newest, following

PORT = "out"  # of the base module
PATIENCE = 3.0  # heartbeats until a module that does not answer is left out
EXPIRY = 3 * REFRESH  # heartbeats until a silent module out of the tree is dropped
LARGEST_MEMORY = 1 << 26  # [bytes] of all records and their pieces


class CoordinatorState:
    """State of the coordinator."""

    def __init__(self, links: LinkTable, beat: int) -> None:
        self.links, self.beat = links, beat
        self.table: dict[Address, BusEntry] = {}  # data of each module
        self.survey = Survey()  # the tree that follows from it
        self.ready = False  # the tree is complete, or the wait for the rest is over
        self.waiting_since = 0.0
        self.asks: dict[tuple[Address, Wanted], float] = {}  # when to ask next
        self.asked = 0  # count of repeated requests
        self.cycle = self.answered = 0  # numbers of the last cycle begun, and of the last one ended
        self.revision = 0  # count of changes of reports and records
        self.wake = 0.0

    def copy(self) -> CoordinatorState:
        twin = copy.copy(self)
        twin.links = self.links.copy()
        return twin


class Coordinator:
    """The root of the tree, with the heartbeat of the modules. [s]"""

    def __init__(self, heartbeat: float = HEARTBEAT_S) -> None:
        self.heartbeat = heartbeat

    def start(self, boot: int, beat: int = 1) -> CoordinatorState:
        """The first state: `boot` is a random number of 32 bits, `beat` is above all before it."""
        return CoordinatorState(LinkTable(Address(0, boot), self.heartbeat), beat)

    def step(
        self, state: CoordinatorState, inbox: Sequence[Message], now: float
    ) -> tuple[CoordinatorState, list[Message]]:
        """See `Agent`. At the port `OWN`, plugging comes in, and packed `Torque`s to be sent."""
        if not inbox and now < state.wake:
            return state, []
        state = state.copy()
        links, changes, revision = state.links, state.links.changes, state.revision
        for port, payload in inbox:
            if port == OWN:
                self._signal(state, payload, now)
                continue
            heard, arrived = links.take(port, payload, now)
            if isinstance(heard, msg.CycleBatch):
                arrived = heard.messages
                state.answered = heard.number if heard.complete else state.answered
            elif heard is not None and (heard.number == 1 or links.ports[port].hellos == 0):
                links.send_hello(port, state.beat, 1, False)
            for message in arrived:
                self._file(state, message, now)
        if links.is_pulse(now):
            state.beat += 1
            for port in links.ports:
                links.send_hello(port, state.beat, 1, False)
            self._expire(state, now)
        links.retry(now)
        if state.revision != revision or links.changes != changes:
            self._update_survey(state, now)
        self._ask_missing(state, now)
        state.wake = min([links.wake(), *state.asks.values()])
        if not state.ready:
            state.wake = min(state.wake, state.waiting_since + PATIENCE * self.heartbeat)
        return state, links.outbox

    def _signal(self, state: CoordinatorState, payload: bytes, now: float) -> None:
        signal = msg.unpack_signal(payload)
        if isinstance(signal, msg.Plugged):
            state.links.plug(signal.port, signal.turn)
            state.links.send_hello(PORT, state.beat, 1, False)
        elif isinstance(signal, msg.Unplugged):
            state.links.unplug(signal.port)
        else:
            self._down(state, payload, now)

    def cycle(
        self, state: CoordinatorState, torques: Mapping[Address, tuple[float, ...]], now: float
    ) -> tuple[CoordinatorState, list[Message]]:
        """Begin a cycle of a clocked loop: torques go out, readings come back.

        Args:
            torques: Of each module; none at all let its motors go. [N m, N]
        """
        state = state.copy()
        state.cycle = following(state.cycle)
        commands = [msg.pack(msg.Torque(m, state.cycle, tau)) for m, tau in torques.items()]
        if PORT in state.links.ports:
            state.links.send_batches(PORT, state.cycle, commands)
        return state, state.links.outbox

    def _down(self, state: CoordinatorState, message: bytes, now: float) -> None:
        if PORT in state.links.ports:
            state.links.post(PORT, message, now)

    def _file(self, state: CoordinatorState, message: bytes, now: float) -> None:
        try:
            received = msg.unpack(message)
        except ValueError:
            state.links.ignored += 1
            return
        if isinstance(received, msg.Ask | msg.Torque | msg.HoldGains | msg.Write):
            state.links.ignored += 1
            return
        old = state.table.get(received.origin)
        if old is None:
            if len(state.table) >= msg.MOST_MODULES:
                state.links.ignored += 1
                return
            old = BusEntry()
        new, lifetime = old, LIFETIME * self.heartbeat
        if isinstance(received, msg.ModuleReport):
            if not old.reported.refuses(received.number, now, lifetime):
                new = old._replace(report=received, reported=Newest(received.number, now))
        elif isinstance(received, msg.Sense):
            if not old.sensed.refuses(received.number, now, lifetime):
                sensed = Newest(received.number, now)
                new = old._replace(values=received.values, sensed=sensed, cycle=received.cycle)
        elif _memory(state.table) + msg.CHUNK <= LARGEST_MEMORY:
            pieces, record = msg.joined(old.pieces, received)
            if record is not None or pieces != old.pieces:
                new = old._replace(pieces=pieces, record=old.record if record is None else record)
        if new is not old:
            state.table = {**state.table, received.origin: new._replace(heard_at=now)}
            state.revision += new.values is old.values  # a reading does not change the tree

    def _expire(self, state: CoordinatorState, now: float) -> None:
        """Drop modules that are neither in the tree nor heard."""
        limit = now - EXPIRY * self.heartbeat
        gone = [module for module, entry in state.table.items() if entry.heard_at < limit]
        attached = (edge.child for edge in state.survey.lost)
        if gone := set(gone).difference(state.survey.modules, attached):
            state.table = {m: entry for m, entry in state.table.items() if m not in gone}

    def _update_survey(self, state: CoordinatorState, now: float) -> None:
        base = next(iter(state.links.neighbors()), None)
        found = survey(state.links.address, base, state.table)
        if found != state.survey:
            # a module that comes back reports anew: until then its dockings are not known
            gone = {*state.survey.modules}.difference(found.modules, (e.child for e in found.lost))
            gone &= state.table.keys()
            unknown = {m: state.table[m]._replace(report=None) for m in gone}
            state.table = {**state.table, **unknown}
            state.survey, state.ready, state.waiting_since = found, False, now

    def _ask_missing(self, state: CoordinatorState, now: float) -> None:
        missing = [(module, Wanted.REPORT) for module in state.survey.unreported]
        missing += [(module, Wanted.RECORD) for module in state.survey.unread]
        first = now + self.heartbeat
        state.asks = {request: state.asks.get(request, first) for request in missing}
        for (module, wanted), due in state.asks.items():
            if now >= due:
                self._down(state, msg.pack(msg.Ask(module, wanted)), now)
                state.asks[module, wanted] = now + self.heartbeat
                state.asked += 1
        if not state.ready:
            over = now - state.waiting_since >= PATIENCE * self.heartbeat
            state.ready = state.survey.complete or over


def _memory(table: Mapping[Address, BusEntry]) -> int:
    """Bytes of all records, as far as they are there."""
    return sum(len(entry.record or b"") + msg.CHUNK * len(entry.pieces) for entry in table.values())
