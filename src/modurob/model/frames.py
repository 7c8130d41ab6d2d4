"""The model in joint frames: every joint acts along +x of its link, as in the documents.

A link's frame may be turned about its joint's axis without changing any equation, and a joint may
be read backwards (q -> -q). Used well, that freedom leaves three ways a joint can sit on a cube:
its axis along x, y or z of the parent. The compiler has one kernel for each, and one for all other
directions.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from modurob.equations.links import Placement, RigidLink
from modurob.equations.vectors import mat, vec
from modurob.model.model import Model, frozen
from modurob.spatial.scalars import product

ALIGNED = 1e-12  # entries of an axis this close to 0 and 1 are rounding errors of 90-degree turns
CYCLIC = np.stack([np.roll(np.eye(3), k, axis=0) for k in range(3)])  # first column x, y, z
NOISE = 1e-15  # of the largest entry: what turning a frame leaves of a zero
UPRIGHT = np.eye(3)
GENERAL = 3  # the pattern of all other directions
CACHED_TURNS = 4096
SEAT_AXIS, SEAT = 8 * 9, 8 * 12  # bytes of the rotation in front of a joint, with its axis


@dataclasses.dataclass(frozen=True, eq=False)
class JointFrames:
    """Flat arrays in joint frames; entry k of a joint array belongs to link k + 1.

    Attributes:
        parent: (n,)
        rotation, position: (n, 3, 3), (n, 3) of the joint frames in the parents'. [m]
        pattern: (n,) 0, 1, 2 when the axis lies along x, y, z of the parent, else 3.
        sign: (n,) -1 where the joint is read backwards.
        travel: (n,) the sign of a displacement; 0 where it moves everything along, see `near_base`.
        prismatic: (n,)
        mass, moment, second: (n + 1,), (n + 1, 3), (n + 1, 3, 3): m, m c, integral of r r^T dm.
        viscous, coulomb, armature, stiffness: (n,)
        turn: (n + 1, 3, 3) joint frames in the model's link frames.
        body_link, body_placement: (bodies,), (bodies, 4, 4) of the bodies, as in the model.
    """

    parent: np.ndarray
    rotation: np.ndarray
    position: np.ndarray
    pattern: np.ndarray
    sign: np.ndarray
    travel: np.ndarray
    prismatic: np.ndarray
    mass: np.ndarray
    moment: np.ndarray
    second: np.ndarray
    viscous: np.ndarray
    coulomb: np.ndarray
    armature: np.ndarray
    stiffness: np.ndarray
    turn: np.ndarray
    body_link: np.ndarray
    body_placement: np.ndarray

    @cached_property
    def body_rotation(self) -> np.ndarray:
        """(bodies, 3, 3) of the bodies in joint frames."""
        return _whole(product(self._to_body, self.body_placement[:, :3, :3]))

    @cached_property
    def body_position(self) -> np.ndarray:
        """(bodies, 3) of the bodies in joint frames. [m]"""
        place = product(self._to_body, self.body_placement[:, :3, 3:])[..., 0]
        reach = np.zeros(len(self.mass))  # of the bodies in a link: it depends on no other link
        np.maximum.at(reach, self.body_link, np.abs(place).max(axis=-1))
        return _snapped(place, reach[self.body_link][:, None])

    @property
    def _to_body(self) -> np.ndarray:
        return np.swapaxes(self.turn, -1, -2)[self.body_link]

    def placements(self) -> list[Placement]:
        """The bodies as the recursions take them."""
        return [
            Placement(link, mat(R), vec(p))
            for link, R, p in zip(
                self.body_link.tolist(), self.body_rotation, self.body_position, strict=True
            )
        ]

    def links(self) -> list[RigidLink]:
        """The same as the recursions take it: one `RigidLink` after the other, floats inside."""
        nothing = (-1, UPRIGHT, np.zeros(3), False, 0.0, 0.0)  # no joint holds the base
        joints = zip(
            self.parent.tolist(),
            self.rotation,
            self.position,
            self.prismatic.tolist(),
            self.viscous.tolist(),
            self.coulomb.tolist(),
            self.sign.tolist(),
            self.travel.tolist(),
            self.armature.tolist(),
            self.stiffness.tolist(),
            strict=True,
        )
        masses = zip(self.mass.tolist(), self.moment, self.second, strict=True)
        return [
            RigidLink(parent, mat(R), vec(p), slides, m, vec(h), mat(S), *numbers)
            for (parent, R, p, slides, *numbers), (m, h, S) in zip(
                (nothing, *joints), masses, strict=True
            )
        ]


class NearBase(NamedTuple):
    """A model with the same equations of motion, and the entries of q that they depend on.

    Attributes:
        model: Links that cannot turn have their frames at the base module.
        counts: (nq,) 1, and 0 for a position of the whole robot.
        place: (3,) its origin in the world at q = 0. [m]
    """

    model: Model
    counts: np.ndarray
    place: np.ndarray


def near_base(model: Model) -> NearBase:
    """Move the origin to the base module: squares of a large distance would cost the digits.

    No equation depends on where a robot stands: neither on its base's pose, nor on the position of
    a free base, nor on slides between the world and the first joint that turns.
    """
    counts = np.ones(model.nq)
    if model.free_base:
        counts[:3] = 0.0
        return NearBase(model, counts, np.zeros(3))
    level = {0: np.eye(4)}  # links that cannot turn, and their poses at q = 0
    for k in np.flatnonzero(model.prismatic).tolist():
        if model.parent[k] in level and not model.stiffness[k]:  # a spring feels where it is
            level[k + 1] = product(level[model.parent[k]], model.placement[k])
            counts[k] = 0.0
    base, T_w = int(model.body_link[0]), model.body_placement[0]
    while base not in level:
        base, T_w = int(model.parent[base - 1]), product(model.placement[base - 1], T_w)
    place = product(level[base], T_w)[:3, 3]
    if not place.any() and len(level) == 1:
        return NearBase(model, counts, place)
    placement, center = model.placement.copy(), model.center.copy()
    bodies = model.body_placement.copy()
    for link, T_wl in level.items():
        origin = product(T_wl[:3, :3].T, (place - T_wl[:3, 3])[:, None])[:, 0]
        placement[model.parent == link, :3, 3] -= origin
        bodies[model.body_link == link, :3, 3] -= origin
        center[link] -= origin
    placement[[link - 1 for link in level if link], :3, 3] = 0.0
    moved = dataclasses.replace(model, placement=placement, center=center, body_placement=bodies)
    return NearBase(frozen(moved), counts, place)


def joint_frames(near: NearBase) -> JointFrames:
    """Choose the joint frames of a model."""
    model, counts, _ = near
    n = len(model.joint_names)
    axes = np.where(model.prismatic[:, None], model.screw[:, :3], model.screw[:, 3:])
    seats = np.concatenate([model.placement[:, :3, :3].reshape(n, 9), axes], axis=1).tobytes()
    frames, distinct, known = {}, [BASE], {}  # numbers and list of the distinct ones
    number = [0]  # of each link's
    for k, parent in enumerate(model.parent.tolist()):
        # few seats are distinct: known ones need no multiplication
        key = (number[parent], seats[SEAT * k : SEAT * (k + 1)])
        found = known.get(key)
        if found is None:
            before, seat = distinct[number[parent]].turn.tobytes(), key[1]
            frame = turned(before, seat[:SEAT_AXIS], seat[SEAT_AXIS:])
            found = known[key] = frames.setdefault(id(frame), len(distinct))
            if found == len(distinct):
                distinct.append(frame)
        number.append(found)
    links = np.array(number)
    joints = links[1:]
    pattern, sign, rotation, turn = (np.array(each) for each in zip(*distinct, strict=True))
    pattern, sign, rotation, turn = pattern[joints], sign[joints], rotation[joints], turn[links]
    to_parent = np.swapaxes(turn[model.parent], -1, -2)
    to_link = np.swapaxes(turn, -1, -2)
    h = product(to_link, (model.mass[:, None] * model.center)[..., None])[..., 0]
    # about the center S = tr(I)/2 E - I; moving the origin adds m c c^T
    half = 0.5 * (model.inertia[:, 0, 0] + model.inertia[:, 1, 1] + model.inertia[:, 2, 2])
    second = half[:, None, None] * np.eye(3) - model.inertia
    second += (model.mass[:, None] * model.center)[:, :, None] * model.center[:, None, :]
    spread = np.trace(second, axis1=-2, axis2=-1)
    position = product(to_parent, model.placement[:, :3, 3, None])[..., 0]
    return JointFrames(
        parent=model.parent,
        rotation=rotation,
        position=_snapped(position, np.abs(position).max(axis=-1)[:, None]),
        pattern=pattern,
        sign=sign,
        travel=sign * counts[model.joint_slice_q],
        prismatic=model.prismatic,
        mass=model.mass,
        moment=_snapped(h, np.sqrt(model.mass * spread)[:, None]),
        second=_snapped(product(product(to_link, second), turn), spread[:, None, None]),
        viscous=model.viscous,
        coulomb=model.coulomb,
        armature=model.armature,
        stiffness=model.stiffness,
        turn=turn,
        body_link=model.body_link,
        body_placement=model.body_placement,
    )


def _whole(R: np.ndarray) -> np.ndarray:
    """Without the rounding errors of quarter turns, so that zeros and ones vanish from code."""
    nearest = np.round(R)
    return np.where(np.abs(R - nearest) <= NOISE, nearest + 0.0, R)  # + 0.0: no minus zeros


def _snapped(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Without the rounding errors of turning: a mass on an axis has exactly no inertia about it."""
    return np.where(np.abs(x) <= NOISE * scale, 0.0, x)


class Turned(NamedTuple):
    """Pattern, sign, R of the joint frame in the parent's, and its turn in the link's frame."""

    pattern: int
    sign: float
    rotation: np.ndarray
    turn: np.ndarray


BASE = Turned(GENERAL, 1.0, UPRIGHT, UPRIGHT)


@lru_cache(maxsize=CACHED_TURNS)
def turned(before: bytes, placed: bytes, axis: bytes) -> Turned:
    """The joint frame of a link, of the turn of its parent's and its rotation in the parent."""
    turn, R_in_parent = (np.frombuffer(each).reshape(3, 3) for each in (before, placed))
    R = product(turn.T, R_in_parent)
    x = product(R, np.frombuffer(axis)[:, None])[:, 0] + 0.0  # + 0.0: no minus zeros
    along = int(np.argmax(np.abs(x)))
    off = np.delete(x, along)
    if np.all(np.abs(off) < ALIGNED):
        turn = product(R.T, CYCLIC[along]) + 0.0
        return Turned(along, float(np.sign(x[along])), CYCLIC[along], turn)
    # the first of equal entries, whatever their rounding: the same frame on every machine
    least = int(np.argmax(np.abs(x) < np.abs(x).min() + ALIGNED))
    y = np.cross(x, np.eye(3)[least])
    y /= np.sqrt(product(y[None], y[:, None])[0, 0])
    framed = np.stack([x, y, np.cross(x, y)], axis=-1)
    return Turned(GENERAL, 1.0, framed, product(R.T, framed))
