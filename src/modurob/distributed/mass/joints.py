"""What a module's joints can do to the center of mass, from what the module knows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modurob.distributed.mass.module_body import ModuleBody, Posture

LIGHTEST = 1e-12  # [kg m^2, kg] a joint that moves less than this has no say


class Levers(NamedTuple):
    """The joints of a module (or of a batch) in the world, the ground's side held still.

    Attributes:
        axis: (..., joints, 3) direction about or along which the far side moves as q grows.
        point: (..., joints, 3) a point of the axis. [m]
        mass: (..., joints) m2 of the far side. [kg]
        center: (..., joints, 3) p2, its center of mass. [m]
        moment: (..., joints, 3) change of the first moment: m2 u x (p2 - point), or m2 u. [kg m]
        inertia: (..., joints) of the far side about the axis, or its mass. [kg m^2, kg]
    """

    axis: np.ndarray
    point: np.ndarray
    mass: np.ndarray
    center: np.ndarray
    moment: np.ndarray
    inertia: np.ndarray


class Sides(NamedTuple):
    """Which parts of a module the joints move when the ground's side is held still.

    Attributes:
        far: (..., joints, bodies + ports) 1 for what moves, 0 for what stays.
        sign: (..., joints) -1 where that is the parent's side, which turns the other way.
    """

    far: np.ndarray
    sign: np.ndarray


def sides(body: ModuleBody, ground: ArrayLike) -> Sides:
    """The moving sides.

    Args:
        ground: (...) the body that stands on the ground, or beyond which the leader is.
    """
    child = np.concatenate([body.child_bodies, body.child_ports], axis=1)
    outward = ~np.moveaxis(body.child_bodies[:, np.asarray(ground)], 0, -1)
    far = np.where(outward[..., None], child, ~child)
    return Sides(far.astype(float), np.where(outward, 1.0, -1.0))


def levers(
    body: ModuleBody, sides: Sides, posture: Posture, ports: np.ndarray, T_wm: np.ndarray
) -> Levers:
    """What each joint moves.

    Args:
        ports: (..., ports, 4, 4) what lies beyond each connector, in the module's frame.
        T_wm: (..., 4, 4) the module in the world.
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
