"""The program of a module in the mass network: UpdateMass and RecomputeMass of moll2006.

A module keeps what lies beyond each of its connectors, as last heard, and tells each neighbor what
lies on its own side: itself and everything beyond its *other* connectors. What goes out of a
connector does not depend on what came in there, so on a tree the news runs outward and dies at the
leaves; a module that has nothing new to say is silent.

Messages may be lost, late, doubled or out of order. Each carries a number and the number of the
last one received; news is repeated until the neighbor has confirmed the newest, and older news is
not taken within `give_up` seconds of the newest: none travels longer. A module that restarts draws
a new boot number, so that its neighbors forget its past. A neighbor that confirms nothing for
`give_up` seconds counts as gone, until it is heard again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from modurob.checks import positive
from modurob.distributed.agent import Message
from modurob.distributed.mass.joints import levers, shared_sums, sides
from modurob.distributed.mass.module_body import body_of
from modurob.distributed.mass.news import (
    NO_CONTACTS,
    NO_SUMS,
    NOBODY,
    Contest,
    News,
    Packet,
    Receipt,
    decode,
    encode,
    moved_contacts,
    news_from_bytes,
    news_to_bytes,
)
from modurob.distributed.mass.properties import inverse_pose, moved
from modurob.distributed.mass.state import Link, Module, View
from modurob.distributed.serial import following, is_outdated
from modurob.modules import ModuleType
from modurob.organism.docking import mated_pose

RESEND, GIVE_UP = 0.01, 0.25  # [s]
TICKETS = 2**63
BOOTS = 2**63


class MassAgent:
    """The program for one kind of module. It is pure: all memory is in the state.

    Args:
        kind: The module's own datasheet.
        resend: Seconds until news that was not confirmed is sent again.
        give_up: Seconds without confirmation after which a neighbor counts as gone.
        heartbeat: Seconds after which a silent module repeats its news, so that a dead neighbor is
            noticed even when nothing moves; None for silence.
        tickets: How many different numbers there are to draw.
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

    def started(self, turns: Mapping[str, int], rng: np.random.Generator) -> Module:
        """A module that was just switched on.

        Args:
            turns: For each connector that holds a neighbor, the turn of the docking. [deg]
            rng: For its boot number, from which its tickets follow; modules need no names.
        """
        joints = len(self.body.joint_names)
        boot = int(rng.integers(1, BOOTS))
        state = Module(boot, self.body.rest, np.zeros(joints), np.ones(joints, dtype=bool))
        for port, turn in turns.items():
            state = self.plugged(state, port, turn)
        return state

    def plugged(self, state: Module, port: str, turn: int) -> Module:
        """The module with a neighbor at a connector."""
        link = Link(mated_pose(np.eye(4), np.eye(4), turn))
        order = self.body.labels.index
        links = {**state.links, port: link}
        links = dict(sorted(links.items(), key=lambda item: order(item[0])))
        return replace(state, links=links, spoken=False)

    def unplugged(self, state: Module, port: str) -> Module:
        """The module without the neighbor at a connector."""
        links = {p: link for p, link in state.links.items() if p != port}
        return replace(state, links=links, spoken=False)

    def sensed(
        self, state: Module, q: np.ndarray, v: np.ndarray, free: np.ndarray | None = None
    ) -> Module:
        """The module with new readings of its joints."""
        free = state.free if free is None else free
        pairs = ((q, state.q), (v, state.v), (free, state.free))
        if all(np.array_equal(new, old) for new, old in pairs):
            return state
        return replace(state, q=q, v=v, free=free, spoken=False)

    def in_contact(
        self, state: Module, contacts: np.ndarray, pose: np.ndarray, body: int = 0
    ) -> Module:
        """The module on the ground: it takes part in the contest for the leader."""
        ticket = state.ticket if state.ticket[0] else (1, self._number(state.boot, 1))
        return replace(
            state, contacts=contacts, pose=pose, contact_body=body, ticket=ticket, spoken=False
        )

    def lifted(self, state: Module) -> Module:
        """The module off the ground."""
        return replace(state, contacts=NO_CONTACTS, pose=None, ticket=(0, 0), spoken=False)

    def _number(self, boot: int, draw: int) -> int:
        return int(np.random.default_rng([boot, draw]).integers(self._tickets))

    # -- one step ------------------------------------------------------------------------------

    def step(
        self, state: Module, inbox: Sequence[Message], now: float
    ) -> tuple[Module, list[Message]]:
        """Take in what came, recompute, tell neighbors what changed."""
        links = dict(state.links)
        for message in inbox:
            if message.port in links:
                links[message.port] = self._taken(state, links[message.port], message, now)
        links = {port: self._judged(link, now) for port, link in links.items()}
        same = all(_unchanged(links[port], link) for port, link in state.links.items())
        state = self._redrawn(replace(state, links=links, spoken=state.spoken and same))
        if state.spoken:
            news = {port: link.told for port, link in links.items()}
        else:
            view = self.view(state)
            news = {port: self._news_for(view, port) for port in links}
        outbox = []
        for port, link in links.items():
            links[port], packet = self._speak(state, link, news[port], now)
            if packet is not None:
                outbox.append(Message(port, encode(packet)))
        return replace(state, links=links, spoken=True), outbox

    def wake(self, state: Module) -> float:
        """When the next step is due if nothing comes in; infinite if none is. [s]"""
        times = [math.inf if state.spoken else -math.inf]
        for link in state.links.values():
            if not link.confirmed and not link.gone:
                times += [link.sent_at + self.resend, link.heard_at + self.give_up]
            elif not link.confirmed:
                times.append(link.sent_at + self.give_up)
            if self.heartbeat is not None:
                times.append(link.sent_at + self.heartbeat)
        return min(times)

    def _taken(self, state: Module, link: Link, message: Message, now: float) -> Link:
        packet = decode(message.payload)
        if packet is None:
            return link
        # a neighbor that confirms another one forgot it, or has yet to hear of it
        confirmed = packet.received == (state.boot, link.number)
        link = replace(link, gone=False, heard_at=now, confirmed=confirmed or not link.told)
        if not packet.news:
            return link
        link = replace(link, owes=True)
        sent, last = packet.sent, link.last
        outdated = is_outdated(sent.number, last.number, now - link.last_at, self.give_up)
        if sent.boot == last.boot and outdated:
            return link
        news = news_from_bytes(packet.news)
        if news is None:
            return replace(link, owes=False)
        X = link.T_here_there
        contacts = moved_contacts(X, news.contacts)
        pose = None if news.pose is None else news.pose @ X  # X is its own inverse
        here = news._replace(mass=moved(X, news.mass), contacts=contacts, pose=pose)
        return replace(link, heard=here, last=packet.sent, last_at=now)

    def _judged(self, link: Link, now: float) -> Link:
        """A neighbor that does not confirm counts as gone."""
        waiting = not link.confirmed and now - link.heard_at >= self.give_up
        return replace(link, gone=True) if waiting else link

    def _redrawn(self, state: Module) -> Module:
        """A tie is broken by drawing again: all who hold the best ticket do."""
        if state.ticket == (0, 0):
            return state
        best = self._contest(state)
        if best[:2] == state.ticket and best.holders > 1:
            draw = state.ticket[0] + 1
            return replace(state, ticket=(draw, self._number(state.boot, draw)), spoken=False)
        return state

    def _contest(self, state: Module) -> Contest:
        best = Contest(*state.ticket, 1) if state.ticket[0] else NOBODY
        for link in state.links.values():
            if link.heard is not None and not link.gone:
                best = best.merged(link.heard.contest)
        return best

    def _speak(
        self, state: Module, link: Link, news: bytes, now: float
    ) -> tuple[Link, Packet | None]:
        changed = news != link.told
        number = following(link.number) if changed else link.number
        wait = self.give_up if link.gone else self.resend
        again = not link.confirmed and now - link.sent_at >= wait
        beat = self.heartbeat is not None and now - link.sent_at >= self.heartbeat
        if not (changed or again or beat or link.owes):
            return link, None
        speaks = changed or again or beat
        packet = Packet(Receipt(state.boot, number), link.last, news if speaks else b"")
        link = replace(link, told=news, number=number, owes=False)
        if speaks:
            since = now if link.confirmed else link.heard_at
            link = replace(link, confirmed=False, sent_at=now, heard_at=since)
        return link, packet

    # -- what it all means -------------------------------------------------------------------------

    def view(self, state: Module) -> View:
        """Everything that follows from a state."""
        posture = self.body.at(state.q)
        beyond, sets = {}, np.zeros((len(self.body.labels), 4, 4))
        for port, link in state.links.items():
            if link.heard is None or link.gone:
                continue
            k = self.body.labels.index(port)
            T = posture.ports[k]
            sets[k] = moved(T, link.heard.mass)
            contacts = moved_contacts(T, link.heard.contacts)
            pose = None if link.heard.pose is None else link.heard.pose @ inverse_pose(T)
            beyond[port] = link.heard._replace(mass=sets[k], contacts=contacts, pose=pose)
        contest = self._contest(state)
        leads = contest == (*state.ticket, 1) and state.pose is not None
        port = None if leads else _towards(contest, beyond)
        T_wm = state.pose if leads else None if port is None else beyond[port].pose
        found, sums = None, NO_SUMS
        if T_wm is not None:
            k = None if port is None else self.body.labels.index(port)
            ground = state.contact_body if k is None else int(self.body.port_bodies[k])
            found = levers(self.body, sides(self.body, ground), posture, sets, T_wm)
            sums = shared_sums(found, state.v, state.free)
        ticket = Contest(*state.ticket, 1) if state.ticket[0] else NOBODY
        own = News(posture.own, ticket, state.contacts, sums, T_wm)
        everything = [own, *beyond.values()]
        return View(
            posture=posture,
            beyond=beyond,
            own=own,
            total=_sum(news.mass for news in everything),
            contest=contest,
            contacts=np.concatenate([news.contacts for news in everything]),
            leads=leads,
            leader_port=port,
            T_wm=T_wm,
            levers=found,
            sums=_sum(news.sums for news in everything),
        )

    def _news_for(self, view: View, port: str) -> bytes:
        """What a neighbor should know: all but what came from it."""
        others = [view.own, *(news for p, news in view.beyond.items() if p != port)]
        T = view.posture.ports[self.body.labels.index(port)]
        back = inverse_pose(T)
        contest = NOBODY
        for news in others:
            contest = contest.merged(news.contest)
        knows = view.T_wm is not None and port != view.leader_port
        contacts = np.concatenate([news.contacts for news in others])
        return news_to_bytes(
            News(
                mass=moved(back, _sum(news.mass for news in others)),
                contest=contest,
                contacts=moved_contacts(back, contacts),
                sums=_sum(news.sums for news in others),
                pose=view.T_wm @ T if knows and view.T_wm is not None else None,
            )
        )


def _sum(parts: Iterable[np.ndarray]) -> np.ndarray:
    """One after the other, from the left: equal parts give equal bits."""
    return reduce(np.add, parts)


def _unchanged(new: Link, old: Link) -> bool:
    """Whether what counts as heard is the same."""
    return new.heard is old.heard and new.gone == old.gone


def _towards(contest: Contest, beyond: Mapping[str, News]) -> str | None:
    """The connector beyond which the leader is, if there is one."""
    if contest.draw == 0 or contest.holders != 1:
        return None
    return next((p for p, news in beyond.items() if news.contest == contest), None)
