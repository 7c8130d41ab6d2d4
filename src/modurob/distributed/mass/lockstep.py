"""The mass network of all modules at once, in lock step: for simulation and large organisms.

It computes what the agents compute on perfect links, one message each way on every docking and
round, with array operations over all modules in place of a program for each. A test holds it equal
to the agents, bit for bit: it does the same operations in the same order.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from modurob.checks import whole
from modurob.distributed.mass.base import links_of
from modurob.distributed.mass.module_body import (
    Levers,
    ModuleBody,
    Sides,
    body_of,
    levers,
    shared_sums,
    sides,
)
from modurob.distributed.mass.properties import (
    MassProperties,
    centers_in_world,
    from_numbers,
    moved,
    to_numbers,
    unpacked,
)
from modurob.distributed.mass.state import SUM_NUMBERS
from modurob.organism import Organism
from modurob.organism.docking import mated_pose
from modurob.spatial import se3


class Group(NamedTuple):
    """The modules of one kind."""

    body: ModuleBody
    modules: np.ndarray  # (n,) indices
    slots: np.ndarray  # (n, ports) slot of each connector; the empty one where it is free
    columns: np.ndarray  # (n, joints) of their joints among all
    sides: Sides  # moved by their joints, the base's side held still


class Wiring(NamedTuple):
    """Tables of modules and slots: a slot is a connector with a neighbor, the last one is empty."""

    modules: tuple[str, ...]
    joints: tuple[str, ...]
    rest: np.ndarray  # (joints,) positions of joints that were not measured [rad, m]
    slots: int
    owner: np.ndarray  # (slots,) the module of a slot
    other: np.ndarray  # (slots,) the slot that it is plugged to
    T_here_there: np.ndarray  # (slots, 4, 4) the other connector's frame in this one
    held: np.ndarray  # (modules, most) the slots of each module in the order of its connectors
    to_base: np.ndarray  # (modules - 1,) for each module but the base, its slot towards the base
    groups: tuple[Group, ...]


def wiring_of(organism: Organism) -> Wiring:
    """The tables of an organism."""
    names = organism.modules
    index = {name: i for i, name in enumerate(names)}
    bodies = [body_of(organism.kind(name)) for name in names]
    ends = [(index[name], port) for link in links_of(organism) for name, port in link]
    slot = {end: k for k, end in enumerate(ends)}
    turns = {e.turn for e in organism.dockings}
    poses = {turn: mated_pose(np.eye(4), np.eye(4), turn) for turn in turns}
    T = [poses[e.turn] for e in organism.dockings for _ in range(2)]
    held = [
        [slot[i, label] for label in body.labels if (i, label) in slot]
        for i, body in enumerate(bodies)
    ]
    most = max(map(len, held))
    padded = [row + [len(ends)] * (most - len(row)) for row in held]
    to_base = {index[e.child]: str(e.child_port) for e in organism.dockings}
    starts = np.cumsum([0, *(len(body.joint_names) for body in bodies)])
    return Wiring(
        modules=names,
        joints=tuple(
            f"{name}.{joint}"
            for name, body in zip(names, bodies, strict=True)
            for joint in body.joint_names
        ),
        rest=np.concatenate([body.rest for body in bodies]),
        slots=len(ends),
        owner=np.array([i for i, _ in ends], dtype=int),
        other=np.arange(len(ends)) ^ 1,  # ends come in pairs
        T_here_there=np.array(T).reshape(-1, 4, 4),
        held=np.array(padded, dtype=int).reshape(len(names), most),
        to_base=np.array([slot[i, to_base[i]] for i in range(1, len(names))], dtype=int),
        groups=tuple(_group(body, bodies, slot, to_base, starts) for body in dict.fromkeys(bodies)),
    )


def _group(
    body: ModuleBody,
    bodies: list[ModuleBody],
    slot: dict[tuple[int, str], int],
    to_base: dict[int, str],
    starts: np.ndarray,
) -> Group:
    here = [i for i, other in enumerate(bodies) if other is body]
    joints = np.arange(len(body.joint_names))
    ground = [body.port_bodies[body.labels.index(to_base[i])] if i in to_base else 0 for i in here]
    slots = [[slot.get((i, label), len(slot)) for label in body.labels] for i in here]
    return Group(
        body=body,
        modules=np.array(here),
        slots=np.array(slots, dtype=int),
        columns=starts[here][:, None] + joints,
        sides=sides(body, np.array(ground, dtype=int)),
    )


class LockStep:
    """Modules of an organism whose base leads: it is on the ground at a known pose.

    Args:
        organism: The modules and their dockings.
        world: Whether the leader's frame and the sums for balancing travel too.
        delay: Additional rounds of every message.

    Attributes:
        own, total: (modules, 4, 4) pseudo-inertias of each module, and of all as each estimates
            it, in the modules' frames.
        T_wm: (modules, 4, 4) the modules in the world, as they estimate it.
        knows: (modules,) whether they have such an estimate.
        sums: (modules, 5) over all joints as each estimates them; see `Update.sums`.
        levers: Effect of the joints on the center of mass, kind by kind.
        rounds: Count so far.
        sent: (modules,) updates that each module has sent.
    """

    def __init__(self, organism: Organism, *, world: bool = True, delay: int = 0) -> None:
        self.wiring = w = wiring_of(organism)
        n, slots = len(w.modules), w.slots
        self._world = world
        self.own, self.total = np.zeros((n, 4, 4)), np.zeros((n, 4, 4))
        self.T_wm, self.knows = np.zeros((n, 4, 4)), np.zeros(n, dtype=bool)
        self.T_wm[0], self.knows[0] = organism.base_pose, True
        self.sums, self._own_sums = np.zeros((2, n, SUM_NUMBERS))
        self.levers: list[Levers] = []
        self._ports = np.zeros((slots, 4, 4))  # connector frames in their modules
        self._mates = np.zeros((slots, 4, 4))  # the neighbors' connector frames in the modules
        self._heard = np.zeros((slots, 4, 4))  # beyond, in the connector's frame
        self._inside = np.zeros((slots + 1, 4, 4))  # beyond, in the module's frame
        self._heard_sums = np.zeros((slots + 1, SUM_NUMBERS))
        self._heard_pose, self._heard_knows = np.zeros((slots, 4, 4)), np.zeros(slots, dtype=bool)
        self._outward = np.ones(slots, dtype=bool)  # not towards the leader
        self._outward[w.to_base] = False
        # where a slot adds up its module's other slots: its own place is the empty one
        self._others = np.where(
            w.held[w.owner] == np.arange(slots)[:, None], slots, w.held[w.owner]
        )
        self.rounds, self.sent = 0, np.zeros(len(self.wiring.modules), dtype=int)
        rounds = whole("delay", delay, 0) + 1
        self._under_way: deque[tuple[np.ndarray, ...]] = deque(maxlen=rounds)
        self._last_sent: tuple[np.ndarray, ...] | None = None
        self._out_sums, self._out_pose = self._heard_sums[:-1].copy(), self._heard_pose.copy()
        self._out_knows = self._heard_knows.copy()
        self.free = np.ones(len(w.joints), dtype=bool)
        self.measure(w.rest)
        self._recompute()

    @property
    def joint_names(self) -> tuple[str, ...]:
        """All joints, module by module."""
        return self.wiring.joints

    def measure(self, q: np.ndarray, v: np.ndarray | None = None) -> None:
        """Set the measured joints (joints,) of all modules. [rad, m, and per second]"""
        w = self.wiring
        self._v = np.zeros(len(w.joints)) if v is None else v
        self._postures = [group.body.at(q[group.columns]) for group in w.groups]
        for group, posture in zip(w.groups, self._postures, strict=True):
            self.own[group.modules] = posture.own
            used = group.slots < w.slots
            self._ports[group.slots[used]] = posture.ports[used]
        self._mates = self._ports @ w.T_here_there

    def round(
        self,
        arrives: np.ndarray | None = None,
        *,
        silent: np.ndarray | None = None,
        think: bool = True,
    ) -> int:
        """Let all modules send, messages travel, all recompute; returns the number of updates.

        Args:
            arrives: (slots,) whether what a slot is sent gets there; where it does not, its module
                goes on with what it last heard. All by default.
            silent: (modules,) those that send nothing. None by default.
            think: Whether the modules compute the effect of their joints anew; if not, `levers` and
                their own part of `sums` stay as they are.
        """
        w = self.wiring
        if self.rounds == 0:
            self._recompute()  # with the measurements so far
        news = (self._out, self._out_sums, self._out_pose)
        sends = np.ones(w.slots, dtype=bool)
        if self._last_sent is not None:
            changed = [
                (new != old).any(axis=tuple(range(1, new.ndim)))
                for new, old in zip(news, self._last_sent, strict=True)
            ]
            sends = np.logical_or.reduce(changed)
        if silent is not None:
            sends &= ~silent[w.owner]
        self._last_sent = news
        self._under_way.append((*news, self._out_knows))
        if len(self._under_way) == self._under_way.maxlen:
            to = slice(None) if arrives is None else arrives
            mass, sums, pose, knows = (x[w.other][to] for x in self._under_way[0])
            self._heard[to], self._heard_sums[:-1][to] = mass, sums
            self._heard_pose[to], self._heard_knows[to] = pose, knows
        self.rounds += 1
        self.sent += np.bincount(w.owner[sends], minlength=len(w.modules))
        self._recompute(think)
        return int(sends.sum())

    @property
    def news(self) -> int:
        """Messages with an update so far."""
        return int(self.sent.sum())

    def forget(self, slots: np.ndarray) -> None:
        """Discard what was received at these slots (slots,)."""
        self._heard[slots], self._heard_sums[:-1][slots] = 0.0, 0.0
        self._heard_knows[slots] = False

    def _recompute(self, think: bool = True) -> None:
        """RecomputeMass, and the update for each slot."""
        w = self.wiring
        self._inside[:-1] = moved(self._ports, self._heard)
        self.total = _summed(self.own, self._inside, w.held)
        out = moved(
            se3.inverse(self._mates), _summed(self.own[w.owner], self._inside, self._others)
        )
        self._out = from_numbers(to_numbers(out))  # as in a message
        if not self._world:
            return
        to_base = w.to_base
        self.T_wm[1:] = self._heard_pose[to_base] @ se3.inverse(self._ports[to_base])
        self.knows[1:] = self._heard_knows[to_base]
        if think:
            self._update_levers()
        self.sums = _summed(self._own_sums, self._heard_sums, w.held)
        self._out_sums = _summed(self._own_sums[w.owner], self._heard_sums, self._others)
        self._out_knows = self.knows[w.owner] & self._outward
        pose = self.T_wm[w.owner] @ self._mates
        self._out_pose = np.where(self._out_knows[:, None, None], pose, 0.0)

    def _update_levers(self) -> None:
        """Compute the effect of the joints on the center, as their modules estimate it."""
        self.levers = []
        for group, posture in zip(self.wiring.groups, self._postures, strict=True):
            m, columns = group.modules, group.columns
            beyond = self._inside[group.slots]
            found = levers(group.body, group.sides, posture, beyond, self.T_wm[m])
            self.levers.append(found)
            sums = shared_sums(found, self._v[columns], self.free[columns])
            self._own_sums[m] = np.where(self.knows[m, None], sums, 0.0)

    def beyond(self, module: str, port: int | str) -> np.ndarray:
        """(4, 4) what lies beyond a connector, in the module's frame."""
        index = self.wiring.modules.index(module)
        group = next(group for group in self.wiring.groups if index in group.modules)
        row = group.modules.tolist().index(index)
        return self._inside[group.slots[row, group.body.labels.index(str(port))]]

    def totals(self) -> MassProperties:
        """Of all, as each module estimates it, in the modules' frames."""
        return unpacked(self.total)

    def centers(self) -> np.ndarray:
        """(modules, 3) the center of mass in the world, as each module estimates it. [m]"""
        return centers_in_world(self.total, self.T_wm)


def _summed(first: np.ndarray, parts: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """One after the other, in the order in which an agent adds them: equal bits."""
    total = first
    for column in range(rows.shape[1]):
        total = total + parts[rows[:, column]]
    return total
