"""Tables for doing something with all modules of an organism at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modurob.distributed.mass.joints import Sides, sides
from modurob.distributed.mass.module_body import ModuleBody, body_of
from modurob.organism import Organism
from modurob.organism.docking import mated_pose


class Group(NamedTuple):
    """The modules of one kind.

    Attributes:
        body: Their geometry.
        modules: (n,) which ones.
        slots: (n, ports) slot of each connector; the empty one where it is free.
        columns: (n, joints) where their joints stand among all.
        sides: What their joints move, the base's side held still.
    """

    body: ModuleBody
    modules: np.ndarray
    slots: np.ndarray
    columns: np.ndarray
    sides: Sides


class Wiring(NamedTuple):
    """A slot is a connector that holds a neighbor; slot number `slots` is the empty one.

    Attributes:
        modules, joints: Their names, in order.
        rest: (joints,) where joints stand that were not measured. [rad, m]
        slots: How many there are.
        owner: (slots,) the module of a slot.
        other: (slots,) the slot that it is plugged to.
        T_here_there: (slots, 4, 4) the other connector's frame in this one.
        held: (modules, most) the slots of each module in the order of its connectors.
        to_base: (modules - 1,) for each module but the base, its slot towards the base.
        groups: Modules by kind.
    """

    modules: tuple[str, ...]
    joints: tuple[str, ...]
    rest: np.ndarray
    slots: int
    owner: np.ndarray
    other: np.ndarray
    T_here_there: np.ndarray
    held: np.ndarray
    to_base: np.ndarray
    groups: tuple[Group, ...]


def wiring_of(organism: Organism) -> Wiring:
    """The tables of an organism."""
    names = organism.modules
    index = {name: i for i, name in enumerate(names)}
    bodies = [body_of(organism.kind(name)) for name in names]
    ends = [
        end
        for e in organism.dockings
        for end in ((index[e.parent], str(e.port)), (index[e.child], str(e.child_port)))
    ]
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
        other=np.arange(len(ends)) ^ 1,  # ends stand in pairs
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
