"""Inputs of the balancing laws: each joint's lever, and its module's estimate of the whole."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modurob.distributed.mass.lockstep import LockStep
from modurob.distributed.mass.module_body import Levers
from modurob.distributed.mass.properties import centers_in_world


class JointInputs(NamedTuple):
    """One entry for each joint; estimates of a module are repeated for each of its joints."""

    levers: Levers
    total: np.ndarray  # (joints,) mass of the whole [kg]
    center: np.ndarray  # (joints, 3) center of mass of the whole in the world [m]
    effort: np.ndarray  # (joints, 2, 2) sum over all joints of ``j j^T / i`` in the ground plane
    momentum: np.ndarray  # (joints, 2) of the whole in the ground plane [N s]
    knows: np.ndarray  # (joints,) whether the module has the world's frame
    prismatic: np.ndarray  # (joints,) which joints slide


def inputs_of(
    levers: Levers, total: np.ndarray, T_wm: np.ndarray, sums: np.ndarray, knows: np.ndarray,
    owner: np.ndarray, prismatic: np.ndarray,
) -> JointInputs:  # fmt: skip
    """Inputs of joints from the estimates of their modules; `owner` is each joint's module."""
    xx, xy, yy = sums[owner, :3].T
    return JointInputs(
        levers=levers,
        total=total[owner, 3, 3],
        center=centers_in_world(total, T_wm)[owner],
        effort=np.stack([xx, xy, xy, yy], axis=-1).reshape(-1, 2, 2),
        momentum=sums[owner, 3:],
        knows=knows[owner],
        prismatic=prismatic,
    )


class InputReader:
    """Reader of the `JointInputs` of a network in lock step."""

    def __init__(self, network: LockStep) -> None:
        self._network = network
        groups, joints = network.wiring.groups, len(network.joint_names)
        self._owner = np.zeros(joints, dtype=int)
        self._prismatic = np.zeros(joints, dtype=bool)
        for group in groups:
            self._owner[group.columns] = group.modules[:, None]
            self._prismatic[group.columns] = group.body.prismatic
        self._order = np.argsort(np.concatenate([g.columns.ravel() for g in groups]))

    def read(self) -> JointInputs:
        """Return the inputs now."""
        network = self._network
        parts = [_flat(found) for found in network.levers]
        if len(parts) > 1:
            joined = (np.concatenate(x)[self._order] for x in zip(*parts, strict=True))
            parts = [Levers(*joined)]
        return inputs_of(
            parts[0], network.total, network.T_wm, network.sums, network.knows,
            self._owner, self._prismatic,
        )  # fmt: skip


def _flat(found: Levers) -> Levers:
    """(modules, joints, ...) as (all joints, ...)."""
    return Levers(*(x.reshape(-1, *x.shape[2:]) for x in found))
