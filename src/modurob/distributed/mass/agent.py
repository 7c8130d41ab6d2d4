"""The program of a module in the mass network: UpdateMass and RecomputeMass of moll2006.

A module keeps what lies beyond each of its connectors, as last received, and sends each neighbor
what lies on its own side: itself and everything beyond its *other* connectors. What goes out of a
connector does not depend on what came in there, so on a tree updates run outward and end at the
leaves; a module without a new update is silent.

Links are those of `reliable`: an update is repeated until the neighbor has acknowledged the newest,
and older ones are refused within `give_up` seconds of the newest: none travels longer. A neighbor
that acknowledges nothing for `give_up` seconds counts as gone, until it is heard again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, TypeVar

import numpy as np

from modurob.checks import positive
from modurob.distributed.agent import Message
from modurob.distributed.mass.module_body import (
    Levers,
    Posture,
    Sides,
    body_of,
    levers,
    shared_sums,
    sides,
)
from modurob.distributed.mass.state import (
    NO_CANDIDATE,
    NO_CONTACTS,
    NO_SUMS,
    Election,
    MassLink,
    MassState,
    MassView,
    Packet,
    Receipt,
    Update,
    decode,
    decode_update,
    encode,
    encode_update,
)
from modurob.distributed.reliable import Newest, Retry, Waiting
from modurob.modules import ModuleType
from modurob.organism.docking import mated_pose
from modurob.spatial import se3

RESEND, GIVE_UP = 0.01, 0.25  # [s]
TICKETS = 2**63
BOOTS = 2**63
MassStateT = TypeVar("MassStateT", bound=MassState)


class MassAgent:
    """The program for one kind of module. It is pure: all memory is in the state.

    Args:
        kind: The module's own datasheet.
        resend: Seconds until an update that was not acknowledged is sent again.
        give_up: Seconds without confirmation after which a neighbor counts as gone.
        heartbeat: Seconds after which a silent module repeats its update, so that a dead neighbor
            is noticed even when nothing moves; None for silence.
        tickets: Count of different numbers to draw.

    Attributes:
        no_sums: (n,) zeros: `Update.sums` of modules without a joint.
    """

    no_sums: np.ndarray = NO_SUMS

    def __init__(
        self,
        kind: ModuleType,
        *,
        resend: float = RESEND,
        give_up: float = GIVE_UP,
        heartbeat: float | None = None,
        tickets: int = TICKETS,
    ) -> None:
        self.body = body_of(kind)
        self.resend = positive("resend", resend, "seconds")
        self.give_up = positive("give_up", give_up, "seconds")
        self.heartbeat = None if heartbeat is None else positive("heartbeat", heartbeat, "seconds")
        self._tickets = tickets

    def started(self, turns: Mapping[str, int], rng: np.random.Generator) -> MassState:
        """A module that was just switched on.

        Args:
            turns: For each connector that holds a neighbor, the turn of the docking. [deg]
            rng: For its boot number, from which its tickets follow; modules need no names.
        """
        joints = len(self.body.joint_names)
        boot = int(rng.integers(1, BOOTS))
        free = np.ones(joints, dtype=bool)
        state = MassState(boot, self.body.rest, np.zeros(joints), free, sums=self.no_sums)
        for port, turn in turns.items():
            state = self.plugged(state, port, turn)
        return state

    def plugged(self, state: MassState, port: str, turn: int) -> MassState:
        """The module with a neighbor at a connector."""
        link = MassLink(state.boot, mated_pose(np.eye(4), np.eye(4), turn))
        order = self.body.labels.index
        links = {**state.links, port: link}
        links = dict(sorted(links.items(), key=lambda item: order(item[0])))
        return replace(state, links=links, announced=False)

    def unplugged(self, state: MassState, port: str) -> MassState:
        """The module without the neighbor at a connector."""
        links = {p: link for p, link in state.links.items() if p != port}
        return replace(state, links=links, announced=False)

    def sensed(
        self, state: MassState, q: np.ndarray, v: np.ndarray, free: np.ndarray | None = None
    ) -> MassState:
        """The module with new readings of its joints."""
        free = state.free if free is None else free
        pairs = ((q, state.q), (v, state.v), (free, state.free))
        if all(np.array_equal(new, old) for new, old in pairs):
            return state
        return replace(state, q=q, v=v, free=free, announced=False)

    def in_contact(
        self, state: MassStateT, contacts: np.ndarray, pose: np.ndarray, body: int = 0
    ) -> MassStateT:
        """The module on the ground: it takes part in the election of the leader."""
        ticket = state.ticket if state.ticket[0] else (1, self._number(state.boot, 1))
        return replace(
            state, contacts=contacts, pose=pose, contact_body=body, ticket=ticket, announced=False
        )

    def lifted(self, state: MassStateT) -> MassStateT:
        """The module off the ground."""
        return replace(state, contacts=NO_CONTACTS, pose=None, ticket=(0, 0), announced=False)

    def after(self, state: MassState, event: Mapping[str, Any]) -> MassState:
        """The module after an event (a key of it names which); arrays may be nested lists."""
        if "plug" in event:
            return self.plugged(state, event["plug"], event["turn"])
        if "unplug" in event:
            return self.unplugged(state, event["unplug"])
        if "q" in event:
            return self.sensed(state, np.array(event["q"]), np.array(event["v"]))
        if "contacts" in event:
            contacts, pose = np.array(event["contacts"]), np.array(event["pose"])
            return self.in_contact(state, contacts, pose, event["body"])
        return self.lifted(state) if "lift" in event else state

    def _number(self, boot: int, draw: int) -> int:
        return int(np.random.default_rng([boot, draw]).integers(self._tickets))

    def step(
        self, state: MassState, inbox: Sequence[Message], now: float
    ) -> tuple[MassState, list[Message]]:
        """Take in messages, recompute, send neighbors what changed."""
        state, outbox, _ = self._exchange(state, inbox, now)
        return state, outbox

    def _exchange(
        self, state: MassStateT, inbox: Sequence[Message], now: float, *, think: bool = True
    ) -> tuple[MassStateT, list[Message], MassView | None]:
        """A step, and everything that follows from the state unless it is as before."""
        links = {port: link.copy() for port, link in state.links.items()}
        for port, payload in inbox:
            if port in links:
                self._receive(links[port], payload, now)
        for link in links.values():
            link.gone |= bool(link.waiting) and now >= link.heard_at + self.give_up
        same = all(
            link.heard is old.heard and link.gone == old.gone
            for link, old in zip(links.values(), state.links.values(), strict=True)
        )
        state = self._redrawn(replace(state, links=links, announced=state.announced and same))
        view = None if state.announced else self.view(state, think=think)
        outbox = []
        for port, link in links.items():
            update = link.posted if view is None else self._update_for(view, port, link)
            packet = self._send(link, update, now)
            if packet is not None:
                outbox.append(Message(port, encode(packet)))
        sums = state.sums if view is None else view.own.sums
        return replace(state, sums=sums, announced=True), outbox, view

    def wake(self, state: MassState) -> float:
        """Return the time of the next step if nothing comes in; infinite if none is due. [s]"""
        times = [math.inf if state.announced else -math.inf]
        for link in state.links.values():
            times.append(link.wake(self._retry(link)))
            if link.waiting and not link.gone:
                times.append(link.heard_at + self.give_up)
            if self.heartbeat is not None:
                times.append(link.sent_at + self.heartbeat)
        return min(times)

    def _retry(self, link: MassLink) -> Retry:
        interval = self.give_up if link.gone else self.resend
        return Retry(interval, interval)

    def _receive(self, link: MassLink, payload: bytes, now: float) -> None:
        packet = decode(payload)
        if packet is None:
            return
        link.gone, link.heard_at = False, now
        if packet.received == (link.here, link.number):
            link.acknowledge(link.number)
        elif link.posted:  # the neighbor has restarted, or has yet to receive it
            link.waiting.setdefault(link.number, Waiting(link.posted, 1, link.sent_at))
        if not packet.update:
            return
        (boot, number), link.ack_pending = packet.sent, True
        if boot == link.there and link.newest.refuses(number, now, self.give_up):
            return
        update = decode_update(packet.update, len(self.no_sums))
        if update is None:
            link.ack_pending = False
            return
        link.heard, link.there, link.newest = update, boot, Newest(number, now)

    def _send(self, link: MassLink, update: bytes, now: float) -> Packet | None:
        idle = not link.waiting
        beat = self.heartbeat is not None and now >= link.sent_at + self.heartbeat
        if update != link.posted:
            link.post(update, now, latest=True)
        elif beat:
            link.waiting[link.number] = Waiting(update, 1, now)
        elif not list(link.due(now, self._retry(link))):
            if not link.ack_pending:
                return None
            update = b""
        if update:
            link.posted, link.sent_at = update, now
            link.heard_at = now if idle else link.heard_at
        link.ack_pending = False
        received = Receipt(link.there, link.newest.number)
        return Packet(Receipt(link.here, link.number), received, update)

    def _redrawn(self, state: MassStateT) -> MassStateT:
        """A tie is broken by drawing again: all who hold the best ticket do."""
        if state.ticket == (0, 0):
            return state
        best = self._election(state)
        if best[:2] == state.ticket and best.holders > 1:
            draw = state.ticket[0] + 1
            return replace(state, ticket=(draw, self._number(state.boot, draw)), announced=False)
        return state

    def _election(self, state: MassState) -> Election:
        heard = [link.heard for link in state.links.values() if not link.gone]
        return reduce(Election.merged, (x.election for x in heard if x), _own_ticket(state))

    def view(self, state: MassState, *, think: bool = True) -> MassView:
        """Everything that follows from a state.

        Args:
            think: Whether to compute the effect of the joints, and the own part of the sums, anew.
        """
        posture = self.body.at(state.q)
        received, sets = {}, np.zeros((len(self.body.labels), 4, 4))
        for port, link in state.links.items():
            heard = self._lost(link.heard) if link.gone and link.heard else link.heard
            if heard is not None:
                k = self.body.labels.index(port)
                received[port] = heard.moved(posture.ports[k])
                sets[k] = received[port].mass
        election, port = self._election(state), None
        leads = election == (*state.ticket, 1) and state.pose is not None
        if not leads and election.draw and election.holders == 1:  # towards the leader
            port = next((p for p, part in received.items() if part.election == election), None)
        T_wm = state.pose if leads else None if port is None else received[port].pose
        found, sums = None, self.no_sums if think else state.sums
        if think and T_wm is not None:
            split = self._sides(state, port)
            found = levers(self.body, split, posture, sets, T_wm)
            sums = self._own_sums(state, found, split, posture, received, T_wm)
        own = Update(posture.own, _own_ticket(state), state.contacts, sums, T_wm)
        whole = Update.union([own, *received.values()])
        return MassView(
            total=whole.mass,
            beyond={port: update.mass for port, update in received.items()},
            contacts=whole.contacts,
            leads=leads,
            leader_port=port,
            T_wm=T_wm,
            posture=posture,
            received=received,
            own=own,
            levers=found,
            sums=whole.sums,
        )

    def _lost(self, update: Update) -> Update | None:
        """Return the part of a gone neighbor's last update that still counts."""
        return None

    def _sides(self, state: MassState, leader_port: str | None) -> Sides:
        """Parts that the joints move while the leader's side is held still."""
        if leader_port is None:
            return sides(self.body, state.contact_body)
        return sides(self.body, int(self.body.port_bodies[self.body.labels.index(leader_port)]))

    def _own_sums(
        self, state: MassState, found: Levers, split: Sides, posture: Posture,
        received: Mapping[str, Update], T_wm: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """The module's own part of `Update.sums`."""
        return shared_sums(found, state.v, state.free)

    def _update_for(self, view: MassView, port: str, link: MassLink) -> bytes:
        """The update for a neighbor: everything but what came from it."""
        others = [view.own, *(update for p, update in view.received.items() if p != port)]
        T = view.posture.ports[self.body.labels.index(port)] @ link.T_here_there
        update = Update.union(others).moved(se3.inverse(T))
        if view.T_wm is not None and port != view.leader_port:
            update = update._replace(pose=view.T_wm @ T)
        return encode_update(update)


def _own_ticket(state: MassState) -> Election:
    return Election(*state.ticket, 1) if state.ticket[0] else NO_CANDIDATE
