"""What a module knows of itself: its bodies, joints and connectors at its own joint angles."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from modurob.distributed.mass.properties import moved, packed
from modurob.modules import ModuleType
from modurob.modules.module_type import JointCrossing
from modurob.spatial import se3


class Posture(NamedTuple):
    """A module (or a batch of them) in its own frame, at given joint displacements.

    Attributes:
        ports: (..., ports, 4, 4) connector frames. [m]
        bodies: (..., bodies, 4, 4) sets of mass, one for each body.
        own: (..., 4, 4) their sum.
        axis: (..., joints, 3) directions of the joints: of the child's turn or slide.
        point: (..., joints, 3) a point of each joint's axis. [m]
    """

    ports: np.ndarray
    bodies: np.ndarray
    own: np.ndarray
    axis: np.ndarray
    point: np.ndarray


class _Move(NamedTuple):
    """From one body to the next: ``constant + sin(q) first + (1 - cos(q)) second``, or ``+ q``."""

    body: int
    previous: int
    column: int | None
    slides: bool
    constant: np.ndarray
    first: np.ndarray
    second: np.ndarray

    @classmethod
    def of(cls, step: JointCrossing, column: int | None, kind: ModuleType) -> _Move:
        S = se3.hat(step.screw)  # a unit screw without pitch: S^3 = -S if it turns, S^2 = 0 if not
        return cls(
            step.body,
            step.previous,
            column,
            kind.joints[step.joint].kind == "prismatic",
            step.before @ step.after,
            step.before @ S @ step.after,
            step.before @ S @ S @ step.after,
        )

    def at(self, q: np.ndarray, sine: np.ndarray, versine: np.ndarray) -> np.ndarray:
        if self.column is None:
            return self.constant
        k = self.column
        if self.slides:
            return self.constant + q[..., k, None, None] * self.first
        turn = sine[..., k, None, None] * self.first + versine[..., k, None, None] * self.second
        return self.constant + turn


class ModuleBody:
    """The geometry of a kind of module, ready to be evaluated for many modules at once.

    Attributes:
        labels: The connectors, as texts.
        joint_names: The joints that move.
        prismatic: (joints,) which of them slide.
        lower, upper: (joints,) limits. [rad, m]
        rest: (joints,) where joints stand that were not measured: at zero, or where limits without
            room between them hold them. [rad, m]
        viscous: (joints,) friction. [N m s/rad, N s/m]
        child_bodies: (joints, bodies) whether a body lies on the child's side of a joint.
        child_ports: (joints, ports) whether a connector does.
        port_bodies: (ports,) body of each connector.
    """

    def __init__(self, kind: ModuleType) -> None:
        self.kind = kind
        moving = [j for j, joint in enumerate(kind.joints) if joint.kind != "fixed"]
        joints = [kind.joints[j] for j in moving]
        self.labels = tuple(str(port.label) for port in kind.ports)
        self.joint_names = tuple(joint.name for joint in joints)
        self.prismatic = np.array([joint.kind == "prismatic" for joint in joints], dtype=bool)
        self.lower = np.array([-np.inf if j.lower is None else j.lower for j in joints], float)
        self.upper = np.array([np.inf if j.upper is None else j.upper for j in joints], float)
        self.rest = np.where(self.lower == self.upper, self.lower, 0.0)
        self.viscous = np.array([joint.viscous for joint in joints], dtype=float)
        column = {j: k for k, j in enumerate(moving)}
        self._moves = [_Move.of(step, column.get(step.joint), kind) for step in kind.outward(0)]
        self._sets = packed(
            [body.mass for body in kind.bodies],
            [body.center_of_mass for body in kind.bodies],
            [np.array(body.inertia) for body in kind.bodies],
        )
        self.port_bodies = np.array([kind.body_index(port.body) for port in kind.ports])
        self._port_poses = np.array([port.pose for port in kind.ports])
        self._axes = np.array([joint.axis for joint in joints]).reshape(-1, 3)
        self._children = np.array([kind.body_index(joint.child) for joint in joints], dtype=int)
        self.child_bodies = self._sides(moving)
        self.child_ports = self.child_bodies[:, self.port_bodies]

    def _sides(self, moving: list[int]) -> np.ndarray:
        """Which bodies hang on the child's side of each moving joint."""
        kind = self.kind
        sides = np.zeros((len(moving), len(kind.bodies)), dtype=bool)
        for row, j in enumerate(moving):
            parent = kind.body_index(kind.joints[j].parent)
            beyond = set()
            for step in kind.outward(parent):  # every body after the one it is reached from
                if step.joint == j or step.previous in beyond:
                    beyond.add(step.body)
            sides[row, list(beyond)] = True
        return sides

    def at(self, q: np.ndarray) -> Posture:
        """The module at joint displacements q (..., joints). [rad, m]"""
        kind, batch = self.kind, q.shape[:-1]
        T = np.empty((*batch, len(kind.bodies), 4, 4))
        T[..., 0, :, :] = np.eye(4)
        sine, versine = np.sin(q), 1 - np.cos(q)
        for move in self._moves:
            T[..., move.body, :, :] = T[..., move.previous, :, :] @ move.at(q, sine, versine)
        bodies = moved(T, self._sets)
        child = T[..., self._children, :, :]
        return Posture(
            ports=T[..., self.port_bodies, :, :] @ self._port_poses,
            bodies=bodies,
            own=bodies.sum(axis=-3),
            axis=(child[..., :3, :3] @ self._axes[..., None])[..., 0],
            point=child[..., :3, 3],
        )


@lru_cache(maxsize=256)
def body_of(kind: ModuleType) -> ModuleBody:
    """The geometry of a kind, made once."""
    return ModuleBody(kind)
