"""The program of a module that balances: the mass agent, and the law for its own joints.

At each tick of its own clock a module measures its joints, takes in and sends messages, and sets
its torques; at every few ticks it decides anew where its joints shall go. It has its own estimates,
and nothing of the other modules but their messages.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

from modurob.checks import not_negative, positive, whole
from modurob.distributed.agent import Message
from modurob.distributed.balancing.knowledge import JointInputs, inputs_of
from modurob.distributed.balancing.laws import Joints, Law, law_named
from modurob.distributed.balancing.support import (
    Region,
    Target,
    goal_of,
    stability_region,
    support_polygon,
)
from modurob.distributed.mass.agent import MassAgent
from modurob.distributed.mass.module_body import Levers
from modurob.distributed.mass.state import (
    CONTACT_NUMBERS,
    MassEstimate,
    MassState,
    MassView,
    moved_contacts,
)
from modurob.errors import StateError
from modurob.modules import ModuleType

PERIOD_S = 1e-3  # of the control loop
DECISION = 5  # control periods between two decisions where to go
RATE = 25.0  # [1/s] of the shared law
SAME_PLANE, SAME_NORMAL = 0.01, 0.05  # [m, 1] of contacts: soft ground gives way, messages lag
CONTACT_DIGITS = 9  # contacts are rounded to nanometers: then all modules have the same region


@dataclass(frozen=True)
class BalancingState(MassState):
    """State of a module that balances; the law is one with its memory, and is never changed."""

    law: Law = field(kw_only=True)
    tick: int = -1  # of its clock; -1 before the first measurement


class BalancingAgent(MassAgent):
    """The program for one kind of module; see `balance` for the settings of the law.

    Args:
        kind: The module's own datasheet.
        law: Name of the law.
        target: What the center shall be above, as for `balance`; by default the nearest place in
            the region of the contacts, as this module knows them. [m]
        margin: Least distance of that place from the region's border. [m]
        width: Unit of length of the gains; by default the size of this module. [m]
        friction: Viscous friction of its drives. [N m s/rad, N s/m]
        stuck: Its joints that do not move.
        period: Of its clock. [s]
        decision: Ticks from one decision to the next.
        options: See `MassAgent`.
    """

    def __init__(
        self,
        kind: ModuleType,
        law: str = "shared",
        *,
        target: Target | None = None,
        margin: float = 0.0,
        width: float | None = None,
        friction: float = 0.0,
        stuck: Collection[str] = (),
        rate: float = RATE,
        gravity: float = 9.81,
        period: float = PERIOD_S,
        decision: int = DECISION,
        **options: Any,
    ) -> None:
        super().__init__(kind, **options)
        joints = len(self.body.joint_names)
        self._law = law_named(law, width or kind.size, gravity, positive("rate", rate, "1/s"))
        self._law.reset(joints)
        self._goal = None if target is None else goal_of(target)
        self._margin = not_negative("margin", margin, "meters")
        self._moves = ~np.isin(self.body.joint_names, list(stuck))
        self._friction = np.full(joints, friction)
        self.period = positive("period", period, "seconds")
        self._decision = whole("decision", decision, 1)
        vectors, numbers = np.zeros((joints, 3)), np.zeros(joints)
        self._no_levers = Levers(vectors, vectors, numbers, vectors, vectors, numbers)

    def started(self, turns: Any, rng: np.random.Generator) -> BalancingState:
        state = super().started(turns, rng)
        values = {f.name: getattr(state, f.name) for f in fields(state)}
        return BalancingState(**values, law=self._law)

    def sensed(
        self, state: Any, q: np.ndarray, v: np.ndarray, free: np.ndarray | None = None
    ) -> BalancingState:
        """The module at the next tick of its clock, with new readings of its joints."""
        free = state.law.free(self._joints(q, v)) & self._moves
        return replace(state, q=q, v=v, free=free, tick=state.tick + 1, announced=False)

    def step(
        self, state: Any, inbox: Sequence[Message], now: float
    ) -> tuple[BalancingState, list[Message]]:
        """Take in messages, decide if it is time to, send neighbors what changed."""
        decides = state.tick % self._decision == 0
        state, outbox, view = self._exchange(state, inbox, now, think=decides)
        if decides and view is not None:
            law, known = copy(state.law), self._inputs(view)
            here = self._joints(state.q, state.v)
            law.decide(known, here, self._target(state, view, known.center))
            state = replace(state, law=law)
        return state, outbox

    def driven(self, state: BalancingState) -> tuple[BalancingState, np.ndarray]:
        """The module, and the torques (joints,) of its drives until the next tick. [N m, N]"""
        law = copy(state.law)
        torques = law.torque(self._joints(state.q, state.v), self.period)
        return replace(state, law=law), torques

    def _joints(self, q: np.ndarray, v: np.ndarray) -> Joints:
        return Joints(q, v, self.body.lower, self.body.upper, self._friction)

    def _inputs(self, view: MassView) -> JointInputs:
        T_wm = np.zeros((4, 4)) if view.T_wm is None else view.T_wm
        return inputs_of(
            view.levers or self._no_levers, view.total[None], T_wm[None], view.sums[None],
            np.array([view.T_wm is not None]), np.zeros(len(self._moves), dtype=int),
            self.body.prismatic,
        )  # fmt: skip

    def _target(self, state: BalancingState, view: MassView, center: np.ndarray) -> np.ndarray:
        """(joints, 2) what the center (joints, 3) shall be above. [m]"""
        if self._goal is not None:
            return self._goal(state.tick * self.period, center)
        region = region_of(view, self._margin)
        return center[:, :2] if region is None else region.nearest(center)

    def region(self, view: MassEstimate) -> Region | None:
        """Goal of a module for the center; see `region_of`."""
        return region_of(view, self._margin)


def region_of(view: MassEstimate, margin: float) -> Region | None:
    """Region of the contacts that a module knows, less the margin. [m]

    None where it does not know any contact in the world, or where they hold any center.
    """
    if view.T_wm is None or not len(view.contacts):
        return None
    rows = np.round(moved_contacts(view.T_wm, view.contacts), CONTACT_DIGITS) + 0.0  # no -0
    return _region(np.unique(rows, axis=0).tobytes(), margin)


@lru_cache(maxsize=64)
def _region(data: bytes, margin: float) -> Region | None:
    contacts = np.frombuffer(data).reshape(-1, CONTACT_NUMBERS)
    n, friction = contacts[0, 3:6], contacts[:, 6].min()
    one_plane = (
        (np.abs(contacts[:, 3:6] - n) < SAME_NORMAL).all()
        and np.ptp(contacts[:, :3] @ n) < SAME_PLANE
        and np.hypot(n[0], n[1]) <= friction * n[2]
    )  # then only forces along the normal turn the robot about an edge: the polygon is exact
    try:
        region = support_polygon(contacts) if one_plane else stability_region(contacts)
    except StateError:  # clamped between walls, or no contacts at all: nothing to keep inside of
        return None
    return region.shrunk(margin)
