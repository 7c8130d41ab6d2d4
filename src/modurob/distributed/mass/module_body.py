"""Geometry of a module: bodies, joints and connectors, and their effect on the center of mass."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modurob.distributed.mass.properties import moved
from modurob.modules import ModuleType
from modurob.modules.module_type import JointCrossing
from modurob.spatial import se3
from modurob.spatial.inertia import pseudo_inertia

LIGHTEST = 1e-12  # [kg m^2, kg] a joint that moves less than this has no share


class Posture(NamedTuple):
    """A module (or a batch of them) in its own frame, at given joint displacements."""

    ports: np.ndarray  # (..., ports, 4, 4) connector frames [m]
    bodies: np.ndarray  # (..., bodies, 4, 4) sets of mass
    own: np.ndarray  # (..., 4, 4) their sum
    axis: np.ndarray  # (..., joints, 3) directions of the child's turn or slide
    point: np.ndarray  # (..., joints, 3) a point of each joint's axis [m]


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
        rest: (joints,) positions of joints that were not measured: zero, or the only one within
            their limits. [rad, m]
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
        self._sets = pseudo_inertia(
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
        """True for each body on the child's side, for each moving joint."""
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


class Levers(NamedTuple):
    """The joints of a module (or of a batch) in the world, the ground's side held still."""

    axis: np.ndarray  # (..., joints, 3) direction about or along which the far side moves with q
    point: np.ndarray  # (..., joints, 3) a point of the axis [m]
    mass: np.ndarray  # (..., joints) m2 of the far side [kg]
    center: np.ndarray  # (..., joints, 3) p2, its center of mass [m]
    moment: np.ndarray  # (..., joints, 3) of its first moment: m2 u x (p2 - point), or m2 u [kg m]
    inertia: np.ndarray  # (..., joints) of the far side about the axis, or its mass [kg m^2, kg]


class Sides(NamedTuple):
    """Parts of a module that its joints move when the ground's side is held still."""

    far: np.ndarray  # (..., joints, bodies + ports) 1 for what moves, 0 for what stays
    sign: np.ndarray  # (..., joints) -1 where that is the parent's side, which turns the other way


def sides(body: ModuleBody, ground: ArrayLike) -> Sides:
    """Moving sides; `ground` (...) is the body on the ground, or beyond which the leader is."""
    child = np.concatenate([body.child_bodies, body.child_ports], axis=1)
    outward = ~np.moveaxis(body.child_bodies[:, np.asarray(ground)], 0, -1)
    far = np.where(outward[..., None], child, ~child)
    return Sides(far.astype(float), np.where(outward, 1.0, -1.0))


def levers(
    body: ModuleBody, sides: Sides, posture: Posture, ports: np.ndarray, T_wm: np.ndarray
) -> Levers:
    """Levers of the joints of a module at T_wm (..., 4, 4) in the world.

    `ports` (..., ports, 4, 4) is what lies beyond each connector, in the module's frame.
    """
    batch, joints = T_wm.shape[:-2], len(body.joint_names)
    parts = np.concatenate([posture.bodies, ports], axis=-3).reshape(*batch, -1, 16)
    # sums of the far side's parts, never differences of totals: nothing cancels
    far = (sides.far @ parts).reshape(*batch, joints, 4, 4)
    m, h, S = far[..., 3, 3], far[..., :3, 3], far[..., :3, :3]
    u, p = sides.sign[..., None] * posture.axis, posture.point
    first = h - m[..., None] * p  # of the far side, about the joint
    pu, hp = _dot(p, u), _dot(h, p)
    trace = S[..., 0, 0] + S[..., 1, 1] + S[..., 2, 2]
    along = _dot(u, (S @ u[..., None])[..., 0]) - 2 * _dot(h, u) * pu + m * pu * pu
    spin = trace - 2 * hp + m * _dot(p, p) - along
    R, origin = np.swapaxes(T_wm[..., :3, :3], -1, -2), T_wm[..., None, :3, 3]
    axis, point, first = np.split(np.concatenate([u, p, first], axis=-2) @ R, 3, axis=-2)
    point = point + origin
    center = point + first / np.where(m > 0, m, 1.0)[..., None]
    turned = _cross(axis, first)
    slide = body.prismatic
    moment = np.where(slide[:, None], m[..., None] * axis, turned) if slide.any() else turned
    return Levers(axis, point, m, center, moment, np.where(slide, m, spin))


def shared_sums(found: Levers, v: np.ndarray, free: np.ndarray) -> np.ndarray:
    """(..., 5) the module's own part of `Update.sums`.

    Args:
        v: (..., joints) velocities. [rad/s, m/s]
        free: (..., joints) whether a joint can move; a stuck one or one at its limit cannot.
    """
    moves = free & (found.inertia > LIGHTEST)
    weight = moves / np.maximum(found.inertia, LIGHTEST)
    x, y = found.moment[..., 0], found.moment[..., 1]
    wx, wy = weight * x, weight * y
    return np.stack([wx * x, wx * y, wy * y, x * v, y * v], axis=-1).sum(axis=-2)


def _dot(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x * y).sum(axis=-1)


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """As `numpy.cross`, which takes several times longer for a few vectors."""
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=-1)
