"""Tasks of environments: starts, goals, observations and rewards of many bodies at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from modurob.checks import inside, not_negative
from modurob.errors import DockingError, StateError, UnknownNameError, choices
from modurob.model.shapes import body_place
from modurob.organism import Organism
from modurob.population import Population, poses
from modurob.sim.reconfiguration.events import LATCH_REACH
from modurob.spatial import so3
from modurob.stepping.ground import Ground

ENERGY_COST = 0.05  # of a step's reward, for a power of 1 W per newton of weight
PUSH_M_S = 0.2  # speed of a body at the start of the task balance
LARGEST_TILT_RAD = 0.7  # of a body that still stands
LEAST_HEIGHT = 0.7  # of the center of mass, over that at the start
TOLERANCE_M = 0.01  # distance of a tip that has reached its target


class Snapshot(NamedTuple):
    """All bodies at one time.

    Attributes:
        q, v: (bodies, most nq), (bodies, most nv) states.
        R, p: (bodies, most links, 3, 3), (bodies, most links, 3) poses of the links.
        center: (bodies, 3) centers of mass. [m]
        work: (bodies,) of the motors since the start. [J]
    """

    q: np.ndarray
    v: np.ndarray
    R: np.ndarray
    p: np.ndarray
    center: np.ndarray
    work: np.ndarray


class Outcome(NamedTuple):
    """Result of a step: (bodies,) each.

    Attributes:
        reward: Of the step.
        terminated: True if the task has ended, by success or failure.
        info: Measures by name.
    """

    reward: np.ndarray
    terminated: np.ndarray
    info: Mapping[str, np.ndarray]


class EnvironmentTask:
    """Task of the bodies of an environment.

    Args:
        population: The bodies.
        ground: That they stand on; None for none.
        low, high: (bodies, most joints) range of the joints' references. [rad, m]

    Attributes:
        base: Of the bodies, if none is chosen: ``free`` or ``fixed``.
        numbers: Numbers that the task adds to an observation.
    """

    base: ClassVar[str] = "free"
    numbers: ClassVar[int] = 0

    def __init__(
        self, population: Population, ground: Ground | None, low: np.ndarray, high: np.ndarray
    ) -> None:
        self.population, self.ground, self._range = population, ground, (low, high)
        weight = population.tables.mass * np.linalg.norm(
            population.tables.of_links("p")[:, 0], axis=1
        )
        self._weight = np.where(weight > 0, weight, np.inf)

    def begin(
        self, bodies: np.ndarray, rngs: Sequence[np.random.Generator], q: np.ndarray, v: np.ndarray
    ) -> None:
        """Draw goals of bodies that start anew, and change their first states.

        Args:
            bodies: Numbers of these bodies.
            rngs: Random numbers of each body.
            q, v: (bodies, most nq), (bodies, most nv) states, which may be written to.
        """

    def started(self, bodies: np.ndarray, now: Snapshot) -> None:
        """Keep measures of bodies that start anew, which stand on the ground by now."""

    def observation(self, now: Snapshot) -> np.ndarray:
        """(bodies, numbers) that the task adds to an observation."""
        return np.zeros((len(now.q), 0))

    def outcome(self, before: Snapshot, now: Snapshot, period: float) -> Outcome:
        """Reward of a step of `period` seconds, and whether the task has ended."""
        raise NotImplementedError

    def _power(self, before: Snapshot, now: Snapshot, period: float) -> np.ndarray:
        """(bodies,) power of the motors over the weight. [m/s]"""
        return (now.work - before.work) / (period * self._weight)


class WalkTask(EnvironmentTask):
    """Walk along x: the speed of the center of mass less the power of the motors over the weight.

    Args:
        energy_cost: Meters a second that a power of 1 W per newton of weight costs.
        heading: Direction to walk in, from x towards y. [rad]
    """

    def __init__(
        self, *bodies: Any, energy_cost: float = ENERGY_COST, heading: float = 0.0
    ) -> None:
        super().__init__(*bodies)
        angle = inside("heading", heading, -2 * np.pi, 2 * np.pi, "rad")
        self._heading = np.array([np.cos(angle), np.sin(angle)])
        self._cost = not_negative("energy_cost", energy_cost, "m/s")

    def outcome(self, before: Snapshot, now: Snapshot, period: float) -> Outcome:
        speed = (now.center - before.center)[:, :2] @ self._heading / period
        power = self._power(before, now, period)
        info = {"speed": speed, "power": power}
        return Outcome(speed - self._cost * power, np.zeros(len(speed), dtype=bool), info)


class BalanceTask(EnvironmentTask):
    """Stand after a push: the cosine of the tilt, less the power of the motors over the weight.

    The task ends when the base is tilted too far from its first attitude, or the center of mass has
    come down too far.

    Args:
        energy_cost: As for `WalkTask`.
        push: Largest horizontal speed of the base at the start. [m/s]
        largest_tilt: That is no fall yet. [rad]
    """

    def __init__(
        self, *bodies: Any, energy_cost: float = ENERGY_COST, push: float = PUSH_M_S,
        largest_tilt: float = LARGEST_TILT_RAD,
    ) -> None:  # fmt: skip
        super().__init__(*bodies)
        if not self.population.tables.free_base:
            raise StateError("the task balance is for bodies with a free base, got fixed ones")
        self._cost = not_negative("energy_cost", energy_cost, "m/s")
        self._push = not_negative("push", push, "m/s")
        self._tilt = inside("largest_tilt", largest_tilt, 0.0, np.pi, "rad")
        self._up = np.zeros((len(self.population), 3))  # the vertical in the first base frame
        self._height = np.ones(len(self.population))

    def begin(
        self, bodies: np.ndarray, rngs: Sequence[np.random.Generator], q: np.ndarray, v: np.ndarray
    ) -> None:
        for k in bodies.tolist():
            speed, angle = rngs[k].uniform((0.0, 0.0), (self._push, 2 * np.pi))
            push = speed * np.array([np.cos(angle), np.sin(angle), 0.0])
            v[k, :3] += so3.from_quaternion(q[k, 3:7]).T @ push

    def started(self, bodies: np.ndarray, now: Snapshot) -> None:
        self._up[bodies], self._height[bodies] = now.R[bodies, 0, 2], self._above(now)[bodies]

    def _above(self, now: Snapshot) -> np.ndarray:
        """(bodies,) height of the center of mass above the ground. [m]"""
        x, y, z = now.center.T
        assert self.ground is not None  # free bodies have one
        return z - self.ground.surface(x, y)[0]

    def outcome(self, before: Snapshot, now: Snapshot, period: float) -> Outcome:
        upright = np.sum(self._up * now.R[:, 0, 2], axis=1)
        fallen = upright < np.cos(self._tilt)
        fallen |= self._above(now) < LEAST_HEIGHT * self._height
        power = self._power(before, now, period)
        info = {"tilt": np.arccos(np.clip(upright, -1.0, 1.0)), "power": power}
        return Outcome(upright - self._cost * power, fallen, info)


class ReachTask(EnvironmentTask):
    """Bring the tip to a point: minus the distance.

    The point is where the tip is in a random posture, so that it can be reached. The tip is a port.

    Args:
        tip: Module and port; by default the first free port of the module that was docked last.
        tolerance: Distance that counts as success. [m]
    """

    base = "fixed"
    numbers = 6

    def __init__(
        self, *bodies: Any, tip: tuple[str, int | str] | None = None,
        tolerance: float = TOLERANCE_M,
    ) -> None:  # fmt: skip
        super().__init__(*bodies)
        self._tolerance = not_negative("tolerance", tolerance, "m")
        places: dict[int, Tip] = {}
        tips = []
        for k in range(len(self.population)):
            organism = self.population.organism(k)
            if id(organism) not in places:
                places[id(organism)] = _tip(self.population, k, organism, tip)
            tips.append(places[id(organism)])
        self.tips = tuple(tips)
        self._link = np.array([each.link for each in tips])
        self._T = np.stack([each.T for each in tips])
        self.target = np.tile(np.eye(4), (len(tips), 1, 1))
        # the first link of a fixed body is the world, that of a free one its base
        held = [self.population.organism(k).base_pose for k in range(len(tips))]
        free = self.population.tables.free_base
        self._T_base = np.tile(np.eye(4), (len(tips), 1, 1)) if free else np.stack(held)

    def tip_poses(self, R: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(bodies, 3, 3), (bodies, 3) poses of the tips, from those of all links."""
        at = np.arange(len(R)), self._link
        R, p, T = R[at], p[at], self._T
        return R @ T[:, :3, :3], (R @ T[:, :3, 3:])[..., 0] + p

    def begin(
        self, bodies: np.ndarray, rngs: Sequence[np.random.Generator], q: np.ndarray, v: np.ndarray
    ) -> None:
        goal, joints, first = q.copy(), self.population.joints, q.shape[1] - self._range[0].shape[1]
        for k in bodies.tolist():
            n = joints[k]
            low, high = (x[k, :n] for x in self._range)
            goal[k, first : first + n] = rngs[k].uniform(low, high)
        R, p = self.tip_poses(*poses.link_poses(self.population.tables, goal))
        self.target[bodies, :3, :3], self.target[bodies, :3, 3] = R[bodies], p[bodies]

    def _errors(self, now: Snapshot) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rotations and positions of the tips, and ways to their targets, in the world."""
        R, p = self.tip_poses(now.R, now.p)
        return R, p, self.target[:, :3, 3] - p

    def observation(self, now: Snapshot) -> np.ndarray:
        _, p, way = self._errors(now)
        R, T = now.R[:, 0], self._T_base
        p_base = now.p[:, 0] + (R @ T[:, :3, 3:])[..., 0]
        of_base = np.swapaxes(R @ T[:, :3, :3], 1, 2)
        parts = (of_base @ x[..., None] for x in (p - p_base, way))
        return np.concatenate([part[..., 0] for part in parts], axis=1)

    def outcome(self, before: Snapshot, now: Snapshot, period: float) -> Outcome:
        distance = np.linalg.norm(self._errors(now)[2], axis=1)
        info = {"distance": distance, "is_success": distance <= self._tolerance}
        return Outcome(-distance, np.zeros(len(distance), dtype=bool), info)


class DockTask(ReachTask):
    """Bring a port to the pose in which it docks: minus the distance and the angle times a length.

    The pose is that of the port in a random posture, with the port of a module before it that waits
    to be docked. The task ends when the latch closes. The length is the size of the module.

    Args:
        tip: As for `ReachTask`.
        reach: Distance and angle that the latch closes, as of `modurob.Dock`. [m, rad]
    """

    numbers = 9

    def __init__(
        self, *bodies: Any, tip: tuple[str, int | str] | None = None,
        reach: tuple[float, float] = LATCH_REACH,
    ) -> None:  # fmt: skip
        super().__init__(*bodies, tip=tip)
        if not (isinstance(reach, Sequence) and len(reach) == 2):
            raise StateError(f"reach is a distance and an angle in m and rad, got {reach!r}")
        self._tolerance = not_negative("reach[0]", reach[0], "m")
        self._angle = not_negative("reach[1]", reach[1], "rad")
        self._length = np.array([each.length for each in self.tips])

    def _turns(self, R: np.ndarray) -> np.ndarray:
        """(bodies, 3) rotation vectors from the tips to their targets, in the tips. [rad]"""
        return so3.log(np.swapaxes(R, 1, 2) @ self.target[:, :3, :3])

    def observation(self, now: Snapshot) -> np.ndarray:
        return np.concatenate([super().observation(now), self._turns(self._errors(now)[0])], axis=1)

    def outcome(self, before: Snapshot, now: Snapshot, period: float) -> Outcome:
        R, _, way = self._errors(now)
        distance, angle = np.linalg.norm(way, axis=1), np.linalg.norm(self._turns(R), axis=1)
        docked = (distance <= self._tolerance) & (angle <= self._angle)
        info = {"distance": distance, "angle": angle, "is_success": docked}
        return Outcome(-distance - self._length * angle, docked, info)


TASKS: Mapping[str, type[EnvironmentTask]] = {
    "walk": WalkTask,
    "balance": BalanceTask,
    "reach": ReachTask,
    "dock": DockTask,
}


class Tip(NamedTuple):
    """A port of a body.

    Attributes:
        module, port: Its name.
        link: Number of the link in the tables of a population.
        T: (4, 4) frame of the port in the link.
        length: Size of its module. [m]
    """

    module: str
    port: int | str
    link: int
    T: np.ndarray
    length: float


def _tip(
    population: Population, k: int, organism: Organism, given: tuple[str, int | str] | None
) -> Tip:
    """The port of a body that was asked for, or the default one."""
    if given is None:
        free = [(name, port) for name in organism.modules for port in organism.free_ports(name)]
        if not free:
            raise DockingError(f"body {k} has no free port for a tip: give tip=(module, port)")
        last = free[-1][0]
        given = next(each for each in free if each[0] == last)
    if not (isinstance(given, tuple | list) and len(given) == 2):
        raise StateError(f"tip is a module and a port such as ('m3', 2), got {given!r}")
    module, label = given
    if module not in organism:
        raise UnknownNameError(
            f"no module {module!r} for a tip in body {k}: modules are {choices(organism.modules)}"
        )
    kind, model = organism.kind(module), population.model(k)
    port, frames = kind.port(label), model._placed_frames
    body, T_body = body_place(model, organism, module, port.body)
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = frames.body_rotation[body], frames.body_position[body]
    return Tip(module, label, int(frames.body_link[body]), T @ T_body @ port.pose, kind.size)
