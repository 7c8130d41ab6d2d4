"""Laws that move the center of mass: three of moll2006, and one that shares the work.

A law has each joint's `JointInputs` and nothing else; one object serves all joints of a module, or
of all modules at once: no joint's result depends on the others that are computed with it. A joint
whose module has lost the world's frame goes on with its last decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from modurob.distributed.balancing.closest import Circles, circle_of, slides, turns
from modurob.distributed.balancing.knowledge import JointInputs
from modurob.errors import UnknownNameError, choices

KP, KI, KD = 10.0, 0.1, 1e-4  # moll2006, section V
AT_LIMIT = 1e-3  # [rad, m] from a limit at which a joint that moves towards it counts as stuck
UP = np.array([0.0, 0.0, 1.0])


class Joints(NamedTuple):
    """The joints as their drives measure them, each (joints,)."""

    q: np.ndarray  # [rad, m]
    v: np.ndarray  # [rad/s, m/s]
    lower: np.ndarray  # limits [rad, m]
    upper: np.ndarray
    friction: np.ndarray  # viscous friction of the drives [N m s/rad, N s/m]


class Law(Protocol):
    """Choice of torques."""

    def reset(self, joints: int) -> None:
        """Start anew; called when a run begins."""
        ...

    def decide(self, known: JointInputs, here: Joints, target: np.ndarray) -> None:
        """Choose goals for a `target` (joints, 2) of the center, one for each joint. [m]"""
        ...

    def torque(self, here: Joints, dt: float) -> np.ndarray:
        """(joints,) forces for the next `dt` seconds. [N m, N]"""
        ...

    def free(self, here: Joints) -> np.ndarray:
        """(joints,) whether a joint can move as decided."""
        ...


@dataclass
class Greedy:
    """moll2006: every joint goes where it alone would bring the center closest to the line.

    The displacement feeds the joint's PID; its gains are scaled by ``c0 + c1 k``.

    Args:
        scaled_by: ``nothing``, the center's ``distance`` from the line, or the ``momentum``
            |m2 u x (p2 - q)|; lengths in widths of a module.
        c0, c1: Constants.
        width: Of a module. [m]
    """

    scaled_by: str
    c0: float
    c1: float
    width: float

    def reset(self, joints: int) -> None:
        self._goal, self._scale, self._integral = np.full(joints, np.nan), *np.zeros((2, joints))

    def decide(self, known: JointInputs, here: Joints, target: np.ndarray) -> None:
        move = displacements(known, here, target)
        self._goal = np.where(known.knows, here.q + move, self._goal)
        if self.scaled_by == "distance":
            k = np.linalg.norm(known.center[:, :2] - target, axis=-1) / self.width
        elif self.scaled_by == "momentum":
            k = np.linalg.norm(known.levers.moment, axis=-1) / self.width
        else:
            k = np.zeros(len(move))
        self._scale = np.where(known.knows, self.c0 + self.c1 * k, self._scale)

    def torque(self, here: Joints, dt: float) -> np.ndarray:
        error = np.where(np.isnan(self._goal), 0.0, self._goal - here.q)
        self._integral = self._integral + dt * error
        return self._scale * (KP * error + KI * self._integral - KD * here.v)

    def free(self, here: Joints) -> np.ndarray:
        return np.ones(len(here.q), dtype=bool)


@dataclass
class Shared:
    """All joints together: each takes the share that costs the least motion, and holds its load.

    With j the first moment that a joint moves, i the inertia it moves, m the total mass and e the
    way the center has to go, the shares ``(j / m i) . S^-1 e``, S the sum of ``j j^T / m^2 i``, add
    up to e, and have the least sum of ``i share^2`` of all that do. S is a 2x2 matrix that the mass
    network adds up like the masses, and so is the momentum, which shortens e: without that the
    modules, which pull each other along, shoot past the line. A joint then accelerates with
    ``rate^2 share - 2 rate v``, carries the weight beyond it, and makes up for its friction.

    Args:
        rate: Of the approach. [1/s]
        gravity: [m/s^2]
        braking: Look-ahead in units of 1 / rate: e counts from the center's predicted position.
        damping: Share of S below which a direction counts as unreachable.
    """

    rate: float
    gravity: float
    braking: float = 0.5
    damping: float = 1e-3

    def reset(self, joints: int) -> None:
        self._share = self._inertia = self._load = np.zeros(joints)

    def decide(self, known: JointInputs, here: Joints, target: np.ndarray) -> None:
        j = known.levers.moment[:, :2] / known.total[:, None]
        S = known.effort / known.total[:, None, None] ** 2
        # where the joints cannot move the center in some direction, do not try
        floor = self.damping * np.trace(S, axis1=-2, axis2=-1)[:, None, None] + 1e-12
        speed = known.momentum / known.total[:, None]
        error = target - known.center[:, :2] - self.braking / self.rate * speed
        pull = np.linalg.solve(S + floor * np.eye(2), error[..., None])[..., 0]
        share = np.sum(j * pull, axis=-1) / np.maximum(known.levers.inertia, 1e-9)
        self._share = np.where(known.knows, share, 0.0)
        self._inertia = np.where(known.knows, known.levers.inertia, self._inertia)
        load = self.gravity * known.levers.moment[:, 2]
        self._load = np.where(known.knows, load, self._load)

    def torque(self, here: Joints, dt: float) -> np.ndarray:
        share = np.where(self.free(here), self._share, 0.0)
        pull = self.rate**2 * share - 2 * self.rate * here.v
        return self._load + self._inertia * pull + here.friction * here.v

    def free(self, here: Joints) -> np.ndarray:
        blocked = (here.q >= here.upper - AT_LIMIT) & (self._share > 0)
        return ~(blocked | (here.q <= here.lower + AT_LIMIT) & (self._share < 0))


def displacements(known: JointInputs, here: Joints, target: np.ndarray) -> np.ndarray:
    """(joints,) displacement with which a joint alone brings the center closest to the line."""
    levers, share = known.levers, (known.levers.mass / known.total)[:, None]
    line = np.concatenate([target, np.zeros((len(target), 1))], axis=-1)
    low, high = np.minimum(here.lower - here.q, 0.0), np.maximum(here.upper - here.q, 0.0)
    far = circle_of(levers.axis, levers.point, levers.center)
    still = known.center - share * levers.center
    whole = Circles(still + share * far.center, share * far.cosine, share * far.sine)
    found = turns(whole, line, UP, low, high)
    if known.prismatic.any():
        slid = slides(share * levers.axis, known.center, line, UP, low, high)
        found = np.where(known.prismatic, slid, found)
    return found


GREEDY = {
    "default": ("nothing", 1.0, 0.0),
    "distance": ("distance", 0.0, 0.1),
    "momentum": ("momentum", 0.0, 1.0),
}  # constants of moll2006
LAWS = (*GREEDY, "shared")


def law_named(name: str, width: float, gravity: float, rate: float) -> Law:
    """A law by its name."""
    if name in GREEDY:
        return Greedy(*GREEDY[name], width)
    if name == "shared":
        return Shared(rate, gravity)
    raise UnknownNameError(f"no law {name!r}: laws are {choices(LAWS)}")
