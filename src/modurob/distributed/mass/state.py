"""What a module of the mass network remembers, and what it makes of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from modurob.distributed.mass.joints import Levers
from modurob.distributed.mass.module_body import Posture
from modurob.distributed.mass.news import (
    CONTACT_NUMBERS,
    NO_CONTACTS,
    NOTHING_YET,
    Contest,
    News,
    Receipt,
)


@dataclass(frozen=True)
class Link:
    """A connector that holds a neighbor.

    Attributes:
        T_here_there: (4, 4) the neighbor's connector frame in this one: the turn of the docking.
        heard: What lies beyond, in this connector's frame; None until told, or given up.
        last: The last message that was taken.
        last_at: When. [s]
        told: The news that the neighbor should know.
        number: Its number.
        confirmed: Whether the neighbor has confirmed it.
        owes: Whether a confirmation is due.
        sent_at: When news was last sent. [s]
        heard_at: When the neighbor was last heard, or first owed a confirmation. [s]
        gone: Whether it has not answered for too long; what it said does not count then.
    """

    T_here_there: np.ndarray
    heard: News | None = None
    last: Receipt = NOTHING_YET
    last_at: float = -np.inf
    told: bytes = b""
    number: int = 0
    confirmed: bool = True
    owes: bool = False
    sent_at: float = -np.inf
    heard_at: float = -np.inf
    gone: bool = False


@dataclass(frozen=True)
class Module:
    """State of a module: what it senses, and what its neighbors told.

    Attributes:
        boot: Drawn when it started.
        q, v: (joints,) its own joints. [rad, m, and per second]
        free: (joints,) which of them can move.
        contacts: (k, 7) where it touches the ground: position and normal in its own frame,
            coefficient of friction.
        contact_body: The body that touches.
        pose: (4, 4) itself in the world, if it can sense that; needed where it is in contact.
        ticket: (draw, number) in the contest for the leader; (0, 0) if it does not take part.
        links: By connector.
        spoken: Whether the neighbors were told what follows from all this.
    """

    boot: int
    q: np.ndarray
    v: np.ndarray
    free: np.ndarray
    contacts: np.ndarray = field(default_factory=lambda: NO_CONTACTS)
    contact_body: int = 0
    pose: np.ndarray | None = None
    ticket: tuple[int, int] = (0, 0)
    links: Mapping[str, Link] = field(default_factory=dict)
    spoken: bool = False


@dataclass(frozen=True)
class View:
    """What a module makes of its state. All sets and poses are in its own frame.

    Attributes:
        posture: Its bodies and connectors.
        beyond: By connector, what lies there.
        own: What the module itself adds to that.
        total: (4, 4) pseudo-inertia of everything it knows of.
        contest: The best ticket of all.
        contacts: (k, 7) all points of contact.
        leads: Whether it is the leader.
        leader_port: The connector towards the leader; None if it leads, or nobody does.
        T_wm: (4, 4) itself in the world, or None.
        levers: What its joints do to the center of mass, or None while the world is unknown.
        sums: (5,) over all joints it knows of; see `News.sums`.
    """

    posture: Posture
    beyond: Mapping[str, News]
    own: News
    total: np.ndarray
    contest: Contest
    contacts: np.ndarray
    leads: bool
    leader_port: str | None
    T_wm: np.ndarray | None
    levers: Levers | None
    sums: np.ndarray


@dataclass(frozen=True)
class Knowledge:
    """What a module knows of the whole, in its own frame: the part of a `View` that others ask for.

    Attributes:
        total: (4, 4) pseudo-inertia of everything it knows of.
        beyond: By connector, that of what lies there.
        contacts: (k, 7) all points of contact.
        leads: Whether it is the leader.
        leader_port: The connector towards the leader; None if it leads, or nobody does.
        T_wm: (4, 4) itself in the world, or None.
    """

    total: np.ndarray
    beyond: Mapping[str, np.ndarray]
    contacts: np.ndarray
    leads: bool
    leader_port: str | None
    T_wm: np.ndarray | None

    @classmethod
    def of(cls, view: View) -> Knowledge:
        beyond = {port: news.mass for port, news in view.beyond.items()}
        return cls(view.total, beyond, view.contacts, view.leads, view.leader_port, view.T_wm)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON; nothing is rounded."""
        return {
            "total": self.total.tolist(),
            "beyond": {port: P.tolist() for port, P in self.beyond.items()},
            "contacts": self.contacts.tolist(),
            "leads": self.leads,
            "leader_port": self.leader_port,
            "T_wm": None if self.T_wm is None else self.T_wm.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Knowledge:
        return cls(
            total=np.array(data["total"]),
            beyond={port: np.array(P) for port, P in data["beyond"].items()},
            contacts=np.array(data["contacts"]).reshape(-1, CONTACT_NUMBERS),
            leads=data["leads"],
            leader_port=data["leader_port"],
            T_wm=None if data["T_wm"] is None else np.array(data["T_wm"]),
        )
