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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from modurob.checks import positive
from modurob.distributed.agent import Message
from modurob.distributed.mass.module_body import body_of, levers, shared_sums, sides
from modurob.distributed.mass.properties import inverse_pose, moved
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
    moved_contacts,
)
from modurob.distributed.reliable import Newest, Retry, Waiting
from modurob.modules import ModuleType
from modurob.organism.docking import docked

RESEND, GIVE_UP = 0.01, 0.25  # [s]
TICKETS = 2**63
BOOTS = 2**63


class MassAgent:
    """The program for one kind of module. It is pure: all memory is in the state.

    Args:
        kind: The module's own datasheet.
        resend: Seconds until an update that was not acknowledged is sent again.
        give_up: Seconds without confirmation after which a neighbor counts as gone.
        heartbeat: Seconds after which a silent module repeats its update, so that a dead neighbor
            is noticed even when nothing moves; None for silence.
        tickets: Count of different numbers to draw.
    """

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

    # -- sensing -------------------------------------------------------------------------------

    def started(self, turns: Mapping[str, int], rng: np.random.Generator) -> MassState:
        """A module that was just switched on.

        Args:
            turns: For each connector that holds a neighbor, the turn of the docking. [deg]
            rng: For its boot number, from which its tickets follow; modules need no names.
        """
        joints = len(self.body.joint_names)
        boot = int(rng.integers(1, BOOTS))
        state = MassState(boot, self.body.rest, np.zeros(joints), np.ones(joints, dtype=bool))
        for port, turn in turns.items():
            state = self.plugged(state, port, turn)
        return state

    def plugged(self, state: MassState, port: str, turn: int) -> MassState:
        """The module with a neighbor at a connector."""
        link = MassLink(state.boot, docked(np.eye(4), np.eye(4), turn))
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
        self, state: MassState, contacts: np.ndarray, pose: np.ndarray, body: int = 0
    ) -> MassState:
        """The module on the ground: it takes part in the election of the leader."""
        ticket = state.ticket if state.ticket[0] else (1, self._number(state.boot, 1))
        return replace(
            state, contacts=contacts, pose=pose, contact_body=body, ticket=ticket, announced=False
        )

    def lifted(self, state: MassState) -> MassState:
        """The module off the ground."""
        return replace(state, contacts=NO_CONTACTS, pose=None, ticket=(0, 0), announced=False)

    def after(self, state: MassState, event: Mapping[str, Any]) -> MassState:
        """The module after an event, whose arrays may be nested lists.

        Args:
            state: Before.
            event: With the keys q and v; contacts, pose and body; or lift.
        """
        if "q" in event:
            return self.sensed(state, np.array(event["q"]), np.array(event["v"]))
        if "contacts" in event:
            contacts, pose = np.array(event["contacts"]), np.array(event["pose"])
            return self.in_contact(state, contacts, pose, event["body"])
        return self.lifted(state) if "lift" in event else state

    def _number(self, boot: int, draw: int) -> int:
        return int(np.random.default_rng([boot, draw]).integers(self._tickets))

    # -- one step ------------------------------------------------------------------------------

    def step(
        self, state: MassState, inbox: Sequence[Message], now: float
    ) -> tuple[MassState, list[Message]]:
        """Take in what came, recompute, tell neighbors what changed."""
        links = {port: link.copy() for port, link in state.links.items()}
        for port, payload in inbox:
            if port in links:
                self._receive(links[port], payload, now)
        for link in links.values():
            link.gone |= bool(link.waiting) and now >= link.heard_at + self.give_up
        same = all(_unchanged(links[port], link) for port, link in state.links.items())
        state = self._redrawn(replace(state, links=links, announced=state.announced and same))
        view = None if state.announced else self.view(state)
        outbox = []
        for port, link in links.items():
            update = link.told if view is None else self._update_for(view, port)
            packet = self._send(link, update, now)
            if packet is not None:
                outbox.append(Message(port, encode(packet)))
        return replace(state, announced=True), outbox

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
        elif link.told:  # the neighbor has restarted, or has yet to receive it
            link.waiting.setdefault(link.number, Waiting(link.told, 1, link.sent_at))
        if not packet.update:
            return
        (boot, number), link.ack_pending = packet.sent, True
        if boot == link.there and link.newest.refuses(number, now, self.give_up):
            return
        update = decode_update(packet.update)
        if update is None:
            link.ack_pending = False
            return
        X = link.T_here_there
        contacts = moved_contacts(X, update.contacts)
        pose = None if update.pose is None else update.pose @ X  # X is its own inverse
        link.heard = update._replace(mass=moved(X, update.mass), contacts=contacts, pose=pose)
        link.there, link.newest = boot, Newest(number, now)

    def _send(self, link: MassLink, update: bytes, now: float) -> Packet | None:
        idle = not link.waiting
        beat = self.heartbeat is not None and now >= link.sent_at + self.heartbeat
        if update != link.told:
            link.post(update, now, latest=True)
        elif beat:
            link.waiting[link.number] = Waiting(update, 1, now)
        elif not list(link.due(now, self._retry(link))):
            if not link.ack_pending:
                return None
            update = b""
        if update:
            link.told, link.sent_at = update, now
            link.heard_at = now if idle else link.heard_at
        link.ack_pending = False
        received = Receipt(link.there, link.newest.number)
        return Packet(Receipt(link.here, link.number), received, update)

    def _redrawn(self, state: MassState) -> MassState:
        """A tie is broken by drawing again: all who hold the best ticket do."""
        if state.ticket == (0, 0):
            return state
        best = self._election(state)
        if best[:2] == state.ticket and best.holders > 1:
            draw = state.ticket[0] + 1
            return replace(state, ticket=(draw, self._number(state.boot, draw)), announced=False)
        return state

    def _election(self, state: MassState) -> Election:
        best = Election(*state.ticket, 1) if state.ticket[0] else NO_CANDIDATE
        for link in state.links.values():
            if link.heard is not None and not link.gone:
                best = best.merged(link.heard.election)
        return best

    # -- what it all means -------------------------------------------------------------------------

    def view(self, state: MassState) -> MassView:
        """Everything that follows from a state."""
        posture = self.body.at(state.q)
        received, sets = {}, np.zeros((len(self.body.labels), 4, 4))
        for port, link in state.links.items():
            if link.heard is None or link.gone:
                continue
            k = self.body.labels.index(port)
            T = posture.ports[k]
            sets[k] = moved(T, link.heard.mass)
            contacts = moved_contacts(T, link.heard.contacts)
            pose = None if link.heard.pose is None else link.heard.pose @ inverse_pose(T)
            received[port] = link.heard._replace(mass=sets[k], contacts=contacts, pose=pose)
        election = self._election(state)
        leads = election == (*state.ticket, 1) and state.pose is not None
        port = None if leads else _towards(election, received)
        T_wm = state.pose if leads else None if port is None else received[port].pose
        sums = NO_SUMS
        if T_wm is not None:
            k = None if port is None else self.body.labels.index(port)
            ground = state.contact_body if k is None else int(self.body.port_bodies[k])
            found = levers(self.body, sides(self.body, ground), posture, sets, T_wm)
            sums = shared_sums(found, state.v, state.free)
        ticket = Election(*state.ticket, 1) if state.ticket[0] else NO_CANDIDATE
        own = Update(posture.own, ticket, state.contacts, sums, T_wm)
        everything = [own, *received.values()]
        return MassView(
            total=_sum(update.mass for update in everything),
            beyond={port: update.mass for port, update in received.items()},
            contacts=np.concatenate([update.contacts for update in everything]),
            leads=leads,
            leader_port=port,
            T_wm=T_wm,
            posture=posture,
            received=received,
            own=own,
            sums=_sum(update.sums for update in everything),
        )

    def _update_for(self, view: MassView, port: str) -> bytes:
        """What a neighbor should know: all but what came from it."""
        others = [view.own, *(update for p, update in view.received.items() if p != port)]
        T = view.posture.ports[self.body.labels.index(port)]
        back = inverse_pose(T)
        election = NO_CANDIDATE
        for update in others:
            election = election.merged(update.election)
        knows = view.T_wm is not None and port != view.leader_port
        contacts = np.concatenate([update.contacts for update in others])
        return encode_update(
            Update(
                mass=moved(back, _sum(update.mass for update in others)),
                election=election,
                contacts=moved_contacts(back, contacts),
                sums=_sum(update.sums for update in others),
                pose=view.T_wm @ T if knows and view.T_wm is not None else None,
            )
        )


def _sum(parts: Iterable[np.ndarray]) -> np.ndarray:
    """One after the other, from the left: equal parts give equal bits."""
    return reduce(np.add, parts)


def _unchanged(new: MassLink, old: MassLink) -> bool:
    """Whether what counts as heard is the same."""
    return new.heard is old.heard and new.gone == old.gone


def _towards(election: Election, beyond: Mapping[str, Update]) -> str | None:
    """The connector beyond which the leader is, if there is one."""
    if election.draw == 0 or election.holders != 1:
        return None
    return next((p for p, update in beyond.items() if update.election == election), None)
