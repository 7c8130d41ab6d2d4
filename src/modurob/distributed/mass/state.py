"""State of a module in the mass network, and the quantities that follow from it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from modurob.distributed.mass.joints import Levers
from modurob.distributed.mass.module_body import Posture
from modurob.distributed.mass.update import CONTACT_NUMBERS, NO_CONTACTS, Election, Update
from modurob.distributed.reliable import Channel


class MassLink(Channel):
    """A connector that holds a neighbor.

    Attributes:
        T_here_there: (4, 4) the neighbor's connector frame in this one: the turn of the docking.
        heard: Everything beyond, in this connector's frame; None until it was received.
        told: The last update posted to the neighbor.
        sent_at: Time when an update was last sent. [s]
        ack_pending: Whether an acknowledgement is to be sent.
        heard_at: Time when the neighbor was last heard, or an acknowledgement first missing. [s]
        gone: Whether it has not answered for too long; what it sent does not count then.
    """

    def __init__(self, here: int, T_here_there: np.ndarray) -> None:
        super().__init__(here)
        self.T_here_there = T_here_there
        self.heard: Update | None = None
        self.told = b""
        self.sent_at = self.heard_at = -math.inf
        self.ack_pending = self.gone = False


@dataclass(frozen=True)
class MassState:
    """State of a module: its measurements, and its links.

    Attributes:
        boot: Drawn when it started.
        q, v: (joints,) its own joints. [rad, m, and per second]
        free: (joints,) which of them can move.
        contacts: (k, 7) where it touches the ground: position and normal in its own frame,
            coefficient of friction.
        contact_body: The body that touches.
        pose: (4, 4) itself in the world, if it can sense that; needed where it is in contact.
        ticket: (draw, number) in the election of the leader; (0, 0) if it does not take part.
        links: By connector.
        announced: Whether the neighbors were sent what follows from all this.
    """

    boot: int
    q: np.ndarray
    v: np.ndarray
    free: np.ndarray
    contacts: np.ndarray = field(default_factory=lambda: NO_CONTACTS)
    contact_body: int = 0
    pose: np.ndarray | None = None
    ticket: tuple[int, int] = (0, 0)
    links: Mapping[str, MassLink] = field(default_factory=dict)
    announced: bool = False


class MassEstimate(NamedTuple):
    """Estimate of the whole by one module, in its own frame.

    Attributes:
        total: (4, 4) pseudo-inertia of everything in its reach.
        beyond: By connector, that of what lies there.
        contacts: (k, 7) all points of contact.
        leads: Whether it is the leader.
        leader_port: The connector towards the leader; None if it leads, or there is none.
        T_wm: (4, 4) itself in the world, or None.
    """

    total: np.ndarray
    beyond: Mapping[str, np.ndarray]
    contacts: np.ndarray
    leads: bool
    leader_port: str | None
    T_wm: np.ndarray | None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MassEstimate:
        """The estimate from the plain numbers of ``_asdict()``."""
        return cls(
            total=np.array(data["total"]),
            beyond={port: np.array(P) for port, P in data["beyond"].items()},
            contacts=np.array(data["contacts"]).reshape(-1, CONTACT_NUMBERS),
            leads=data["leads"],
            leader_port=data["leader_port"],
            T_wm=None if data["T_wm"] is None else np.array(data["T_wm"]),
        )


@dataclass(frozen=True)
class MassView:
    """Everything that follows from a module's state. All sets and poses are in its own frame.

    Attributes:
        posture: Its bodies and connectors.
        beyond: By connector, what lies there.
        own: The module's own part of that.
        total, contacts, leads, leader_port, T_wm: See `MassEstimate`.
        election: The best ticket of all.
        levers: Effect of its joints on the center of mass, or None while the world is unknown.
        sums: (5,) over all joints in its reach; see `Update.sums`.
    """

    posture: Posture
    beyond: Mapping[str, Update]
    own: Update
    total: np.ndarray
    election: Election
    contacts: np.ndarray
    leads: bool
    leader_port: str | None
    T_wm: np.ndarray | None
    levers: Levers | None
    sums: np.ndarray

    def estimate(self) -> MassEstimate:
        """The part that others ask for."""
        beyond = {port: update.mass for port, update in self.beyond.items()}
        return MassEstimate(
            self.total, beyond, self.contacts, self.leads, self.leader_port, self.T_wm
        )
