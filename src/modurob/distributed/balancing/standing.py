"""The program of a module of a robot that stands on several feet, and steps.

All joints move together, as with the shared law of `balance`: with a_j the effect of joint j on the
tasks (the center of mass above the ground, the twist of each foot, height and attitude of the
base), e the rates that the tasks ask for, and b_j the rate with which the joint alone would go back
to its first position,

    rate_j = b_j + a_j . y,   (sum a a^T) y = e - sum a b

are the rates closest to b that do all tasks, but for damping where a task is out of reach. The
matrix and the right side are sums over all joints, which the network adds up like the masses;
places of feet and the twists that they ask for are in the same sums, since all but one module add
zero. The ground's side of a joint is that of the leader.

A neighbor that is silent for too long is lost as a program, and not as a body: its mass counts as
last heard, its feet and its joints do not. The center then goes above the feet that are left. The
joints of a leg whose foot is lost do nothing but go back to their first positions; modules that
have lost the base hold still.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from modurob import quintic
from modurob.checks import not_negative, positive
from modurob.distributed.agent import Message
from modurob.distributed.balancing.support import Region, support_polygon
from modurob.distributed.mass.agent import MassAgent
from modurob.distributed.mass.module_body import Levers, Posture, Sides
from modurob.distributed.mass.properties import centers_in_world
from modurob.distributed.mass.state import MassState, MassView, Update, moved_contacts
from modurob.model import Model
from modurob.modules import ModuleType
from modurob.organism import Organism
from modurob.spatial import so3

if TYPE_CHECKING:
    from modurob.stepping.contact import Touching  # slow to load, for each module's process

TASK_RATE = 4.0  # [1/s] at which errors of tasks decay
SLIP_M, SLIP_RAD = 0.005, 0.1  # from which on a foot takes its new place for its own
HOME_RATE = 0.2  # [1/s] at which a joint alone would go back
FASTEST = 0.15  # [m/s] of feet
SHIFT_SPEED = 0.05  # [m/s] of the center: messages cross the robot within 0.1 s
FASTEST_JOINT = 3.0  # [rad/s, m/s]
TURN_LENGTH = 0.05  # [m] by which turns of a foot count as distances
CENTER = 5.0  # weight of the center: a joint moves it much less than a foot
BASE = 0.3 * np.array([0.0, 0.0, 1.0, 1.0, 1.0, 1.0])  # weights of the base's twist: feet first
FLOOR = 0.02  # of the mean of the matrix' diagonal: below it, a task counts as out of reach
AT_LIMIT = 0.01  # [rad, m] from a limit at which a joint does not move towards it
CENTERED = 0.012  # [m] from its target inside of the region of the feet that stay: a foot may lift
CONTACT_DIGITS = 4  # contacts are rounded to 0.1 mm: then none is there twice
TOUCHES = 0.02  # of the weight: normal force from which on a module counts as touching
READY_S = 0.5  # after the start, when all modules know the whole and the body has settled
UNLOADING_S = 0.3  # at least, so that all modules know which feet stay
SWING_S = 2.4  # of a foot in the air
RISE = 0.04  # [m]
LOWERING = 0.04  # [m/s] of a foot that has not met the ground in time
STAND, UNLOAD, LIFT, SWING = "stand", "unload", "lift", "swing"


class TaskSums:
    """Layout of the sums of a network: matrix, right side, places of frames, steps done.

    Frames are the soles of all feet, and the base.
    """

    def __init__(self, frames: int) -> None:
        self.frames, self.rows = frames, 2 + 6 * frames
        self._upper = np.triu_indices(self.rows)
        self._ends = np.cumsum([len(self._upper[0]), self.rows, 3 * frames])
        self.size = int(self._ends[-1]) + 1

    def places(self, sums: np.ndarray) -> np.ndarray:
        """(frames, 3) in the world; zero where unknown. [m]"""
        return sums[self._ends[1] : self._ends[2]].reshape(-1, 3)

    def done(self, sums: np.ndarray) -> int:
        """Number of steps of all feet that are done."""
        return round(sums[-1])

    def pack(self, A: np.ndarray, e: np.ndarray, places: np.ndarray, done: int) -> np.ndarray:
        return np.concatenate([A[self._upper], e, places.ravel(), [done]])

    def system(self, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(rows, rows) the matrix, and (rows,) the right side."""
        end, A = self._ends[0], np.zeros((self.rows, self.rows))
        A[self._upper] = A.T[self._upper] = sums[:end]
        return A, sums[end : self._ends[1]].copy()


@dataclass(frozen=True, eq=False)
class StandingState(MassState):
    """State of a module of a robot that stands.

    Attributes:
        goal: (joints,) where the servos hold the joints. [rad, m]
        rate: (joints,) at which the goal moves. [rad/s, m/s]
        home: (joints,) where the joints were at first, and after each step; None before. [rad, m]
        phase: Of its foot: ``stand``, ``unload``, ``lift`` or ``swing``.
        since: When the phase began. [s]
        start: (4, 4) where the sole shall lie, or left the ground; the base at first.
        step: Number of its own steps that are done.
        known: Number of steps of all feet that it knows to be done.
        complete: Whether it has once known the places of all feet and of the base.
        touching: Whether it measures a contact; one that unloads does not tell the others.
        twist: (6,) that its foot asks for.
    """

    goal: np.ndarray = field(kw_only=True)
    rate: np.ndarray = field(kw_only=True)
    home: np.ndarray | None = None
    phase: str = STAND
    since: float = 0.0
    start: np.ndarray | None = None
    step: int = 0
    known: int = 0
    complete: bool = False
    touching: bool = False
    twist: np.ndarray = field(default_factory=lambda: np.zeros(6))


class StandingAgent(MassAgent):
    """The program for one module of a robot that stands.

    Args:
        kind: Its datasheet.
        frames: Count of feet of the robot, and one for the base.
        frame: Number of its own foot among them, and the connector that is its sole; that of the
            base is the last one, without a connector. None for other modules.
        steps: Of its own foot: how many steps of all feet come before, and the shift (3,). [m]
        margin: Least distance of the center from the border of the region of support. [m]
        period: Of its clock. [s]
        options: See `MassAgent`.
    """

    def __init__(
        self,
        kind: ModuleType,
        frames: int,
        frame: tuple[int, str | None] | None = None,
        steps: Sequence[tuple[int, ArrayLike]] = (),
        *,
        margin: float = 0.0,
        period: float,
        **options: Any,
    ) -> None:
        super().__init__(kind, **options)
        self.sums = TaskSums(frames)
        self.no_sums = np.zeros(self.sums.size)
        self._slot, port = (None, None) if frame is None else frame
        self._sole, self._steps = None if port is None else self.body.labels.index(port), steps
        self._margin = not_negative("margin", margin, "meters")
        self._period = positive("period", period, "seconds")

    def started(self, turns: Any, rng: np.random.Generator) -> StandingState:
        state, rest = super().started(turns, rng), self.body.rest
        values = {f.name: getattr(state, f.name) for f in fields(state)}
        return StandingState(**values, goal=rest, rate=np.zeros(len(rest)))

    def sensed(
        self, state: Any, q: np.ndarray, v: np.ndarray, free: np.ndarray | None = None
    ) -> StandingState:
        """The module at the next tick of its clock; where it wakes up is where it stays."""
        if state.home is None:
            state = replace(state, home=q, goal=q)
        return replace(state, q=q, v=v, announced=False)

    def in_contact(
        self, state: Any, contacts: np.ndarray, pose: np.ndarray, body: int = 0
    ) -> StandingState:
        """The module on the ground; one that is about to lift does not count as support.

        A foot tells the middle of its sole, whichever of its corners touch.
        """
        state = replace(state, touching=True)
        if self._sole is not None:
            middle = self.body.at(state.q).ports[self._sole][:3, 3]
            contacts = np.concatenate([middle, contacts[0, 3:]])[None]
        if state.phase == STAND:
            return super().in_contact(state, contacts, pose, body)
        return super().lifted(state)

    def felt(self, state: StandingState, reading: Sequence[float]) -> StandingState:
        """The module after a reading of its contact sensor; see `contact_readings`."""
        if not len(reading):
            return self.lifted(state)
        position, turn, row, body = np.split(np.array(reading), [3, 7, 14])
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = so3.from_quaternion(turn), position
        return self.in_contact(state, row[None], pose, int(body[0]))

    def lifted(self, state: Any) -> StandingState:
        return super().lifted(replace(state, touching=False))

    def driven(self, state: StandingState) -> tuple[StandingState, np.ndarray]:
        """The module, and goal and rate of each of its servos from this tick to the next."""
        here = state.goal - self._period * state.rate
        return state, np.column_stack([here, state.rate]).ravel()

    def step(
        self, state: Any, inbox: Sequence[Message], now: float
    ) -> tuple[StandingState, list[Message]]:
        """Take in messages, send neighbors what changed, decide how the joints go on."""
        state, outbox, view = self._exchange(state, inbox, now)
        if view is not None:
            state = self._decided(state, view, now)
        return state, outbox

    def _lost(self, update: Update) -> Update | None:
        return Update(update.mass, sums=self.no_sums)

    # -- tasks -------------------------------------------------------------------------------------

    def _own_sums(
        self, state: Any, found: Levers, split: Sides, posture: Posture,
        received: Mapping[str, Update], T_wm: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        parts = [self.sums.places(update.sums) for update in received.values()]
        places = sum(parts, np.zeros((self.sums.frames, 3)))
        own, twist, k = np.zeros_like(places), np.zeros(self.sums.rows), self._slot
        if k is not None:
            own[k] = self._frame(T_wm, posture)[:3, 3]
            twist[2 + 6 * k : 8 + 6 * k] = state.twist
        a = self._effects(state, found, split, places + own, received, posture)
        A, ab = a.T @ a, a.T @ self._home_rate(state)
        return self.sums.pack(A, twist - ab, own, state.step)

    def _frame(self, T_wm: np.ndarray, posture: Posture) -> np.ndarray:
        """(4, 4) the sole in the world, or the module itself."""
        return T_wm if self._sole is None else T_wm @ posture.ports[self._sole]

    def _effects(
        self, state: StandingState, found: Levers, split: Sides, places: np.ndarray,
        received: Mapping[str, Update], posture: Posture,
    ) -> np.ndarray:  # fmt: skip
        """(joints, rows) effect of the joints on the center and on the frames."""
        joints, bodies = len(self.body.joint_names), len(self.body.kind.bodies)
        total = posture.own[3, 3] + sum(update.mass[3, 3] for update in received.values())
        a = np.zeros((joints, self.sums.rows))
        a[:, :2] = CENTER * found.moment[:, :2] / total
        # column of `split.far` for each frame: the own body, or the connector beyond which it is
        column = np.full(len(places), -1)
        for port, update in received.items():
            there = self.sums.places(update.sums).any(axis=1)
            column[there] = bodies + self.body.labels.index(port)
        if self._slot is not None:
            column[self._slot] = 0 if self._sole is None else self.body.port_bodies[self._sole]
        far = np.where(column >= 0, split.far[:, column], 0.0)[..., None]  # (joints, frames, 1)
        turns = ~self.body.prismatic[:, None, None]
        u = np.broadcast_to(found.axis[:, None], (joints, len(places), 3))
        v = np.where(turns, np.cross(u, places - found.point[:, None]), u)
        twists = far * np.concatenate([v, TURN_LENGTH * turns * u], axis=-1)
        twists[:, -1] *= BASE
        a[:, 2:] = twists.reshape(joints, -1)
        moves = state.free & (far.any(axis=(1, 2)) | (column >= 0).all())  # not those of a lost leg
        return a * moves[:, None]

    def _home_rate(self, state: StandingState) -> np.ndarray:
        home = state.goal if state.home is None else state.home
        return HOME_RATE * (home - state.goal)

    def rates(self, state: StandingState, view: MassView) -> np.ndarray:
        """(joints,) at which the joints shall move; at rest while the whole is unknown."""
        places, (center, target) = self.sums.places(view.sums), self._center(view)
        there = np.linalg.norm(places, axis=1) > 0
        if view.levers is None or target is None or not (state.complete and there[-1]):
            return np.zeros(len(state.goal))
        A, e = self.sums.system(view.sums)
        e[:2] += CENTER * _limited(TASK_RATE * (target - center[:2]), SHIFT_SPEED)
        still = there[:-1] & ~A.diagonal()[2:-6].reshape(-1, 6).any(axis=1)
        if still.any():
            _hold_still(int(np.argmax(still)), e, places, center)
        floor = FLOOR * np.trace(A) / len(A) + 1e-12
        y = np.linalg.solve(A + floor * np.eye(len(A)), e)
        split = self._sides(state, view.leader_port)
        a = self._effects(state, view.levers, split, places, view.received, view.posture)
        rate = self._home_rate(state) + a @ y
        return rate / max(1.0, float(np.abs(rate).max(initial=0.0)) / FASTEST_JOINT)

    def _center(self, view: MassView) -> tuple[np.ndarray, np.ndarray | None]:
        """(3,) the center of mass, and its target (2,) on the ground; None while unknown. [m]"""
        if view.T_wm is None or not len(view.contacts):
            return np.zeros(3), None
        region = ground_region(view.T_wm, view.contacts, self._margin)
        center = centers_in_world(view.total, view.T_wm)
        return center, region.nearest(center)

    # -- decisions ---------------------------------------------------------------------------------

    def _decided(self, state: StandingState, view: MassView, now: float) -> StandingState:
        done = self.sums.done(view.sums)
        if not state.complete and self.sums.places(view.sums).any(axis=1).all():
            state = replace(state, complete=True)
        if done > state.known:  # the first positions would pull the feet back
            state = replace(state, known=done, home=state.goal)
        rate = self.rates(state, view)
        goal = np.clip(state.goal + self._period * rate, self.body.lower, self.body.upper)
        state = replace(state, goal=goal, rate=(goal - state.goal) / self._period)
        outward = (goal > self.body.upper - AT_LIMIT) & (rate > 0)
        state = replace(state, free=~(outward | (goal < self.body.lower + AT_LIMIT) & (rate < 0)))
        if self._slot is None or view.T_wm is None:
            return state
        sole = self._frame(view.T_wm, view.posture)
        start = sole if state.start is None else state.start
        state = replace(state, start=start)
        if self._sole is None:
            return replace(state, twist=BASE * _twist(start, sole, np.zeros(3)))
        if state.phase in (STAND, UNLOAD):
            if state.touching:  # after a slip, friction would hold it against its servos
                start = _within_slip(start, sole)
                state = replace(state, start=start)
            twist = _twist(start, sole, np.zeros(3))
            if not state.touching:  # a foot that lost the ground goes down to it
                twist[2] = min(twist[2], -LOWERING)
            state = replace(state, twist=_limited(twist, FASTEST))
        if state.step == len(self._steps):
            return state
        return self._stepping(state, view, sole, now)

    def _stepping(
        self, state: StandingState, view: MassView, sole: np.ndarray, now: float
    ) -> StandingState:
        """A foot that has a step to do, in its next phase and with the twist that it asks for."""
        order, given = self._steps[state.step]
        shift = np.asarray(given)
        waited, start = now - state.since, state.start
        assert start is not None
        if state.phase == STAND and self.sums.done(view.sums) >= order and waited > READY_S:
            return replace(state, phase=UNLOAD, since=now)
        if state.phase == UNLOAD and waited > UNLOADING_S:
            center, target = self._center(view)
            if target is not None and np.linalg.norm(target - center[:2]) < CENTERED:
                return replace(state, phase=LIFT, since=now, start=_above(start, sole))
        if state.phase in (LIFT, SWING):
            if state.phase == LIFT and not state.touching:
                state = replace(state, phase=SWING)
            if state.phase == SWING and state.touching and waited > SWING_S / 2:
                landed, step = _above(start, sole), state.step + 1
                landed[2, 3] += shift[2]
                return replace(state, phase=STAND, since=now, start=landed, step=step)
            here, ahead = (_path(shift, waited + dt) for dt in (0.0, self._period))
            twist = _twist(start, sole, here)
            twist[:3] += (ahead - here) / self._period
            return replace(state, twist=_limited(twist, FASTEST))
        return state


def contact_readings(
    organism: Organism, model: Model, q: np.ndarray, touching: Touching, friction: float
) -> dict[str, tuple[float, ...]]:
    """Readings of the contact sensors of the modules that touch the ground; others have none.

    A module feels where it is in the world (position, quaternion), and in its own frame the middle
    of the forces that push it, the normal there, the friction, and which of its bodies touches. It
    counts as touching from `TOUCHES` of the weight on.
    """
    T, normal = model.forward_kinematics(q), np.sum(touching.force * touching.normal, axis=-1)
    least = TOUCHES * float(np.linalg.norm(model.gravity)) * float(model.mass.sum())
    owner = np.array([name.partition(".")[0] for name in model.body_names])[touching.body]
    readings = {}
    for name in dict.fromkeys(owner.tolist()):
        own = np.flatnonzero(owner == name)
        share = normal[own] / normal[own].sum()
        if normal[own].sum() <= least:
            continue
        pose, bodies = T[model.modules[name]], T[touching.body[own]]
        places = (bodies[:, :3, :3] @ touching.place[own, :, None])[..., 0] + bodies[:, :3, 3]
        body = model.body_names[touching.body[own[np.argmax(share)]]].partition(".")[2]
        readings[name] = (
            *pose[:3, 3], *so3.to_quaternion(pose[:3, :3]),
            *((share @ places - pose[:3, 3]) @ pose[:3, :3]),
            *(touching.normal[own[0]] @ pose[:3, :3]), friction,
            organism.kind(name).body_index(body),
        )  # fmt: skip
    return readings


def ground_region(T_wm: np.ndarray, contacts: np.ndarray, margin: float) -> Region:
    """The polygon of contacts (k, 7) in a module's frame, less a margin. [m]

    The ground is known to be a plane whose friction holds; contacts of other feet are as old as
    their messages, and need not lie on one.
    """
    rows = np.round(moved_contacts(T_wm, contacts)[:, :3], CONTACT_DIGITS) + 0.0  # no -0
    return _polygon(np.unique(rows, axis=0).tobytes(), margin)


@lru_cache(maxsize=64)
def _polygon(data: bytes, margin: float) -> Region:
    return support_polygon(np.frombuffer(data).reshape(-1, 3)).shrunk(margin)


def _twist(start: np.ndarray, now: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """(6,) towards a pose shifted by (3,), turns as distances. [m/s]"""
    turn = so3.log(start[:3, :3] @ now[:3, :3].T)
    return TASK_RATE * np.concatenate([start[:3, 3] + shift - now[:3, 3], TURN_LENGTH * turn])


def _above(start: np.ndarray, sole: np.ndarray) -> np.ndarray:
    """(4, 4) the start, moved level to where the sole is."""
    moved = start.copy()
    moved[:2, 3] = sole[:2, 3]
    return moved


def _within_slip(start: np.ndarray, sole: np.ndarray) -> np.ndarray:
    """(4, 4) the start, level and about the vertical no farther from the sole than `SLIP_M`."""
    moved, turn = start.copy(), so3.log(start[:3, :3] @ sole[:3, :3].T)[2]
    moved[:2, 3] = sole[:2, 3] + _limited((start - sole)[:2, 3], SLIP_M)
    back = np.clip(turn, -SLIP_RAD, SLIP_RAD) - turn
    moved[:3, :3] = so3.exp(np.array([0.0, 0.0, back])) @ start[:3, :3]
    return moved


def _hold_still(leader: int, e: np.ndarray, places: np.ndarray, center: np.ndarray) -> None:
    """Subtract the twist that the leader's sole asks for: the joints' effects hold it still.

    Args:
        leader: Number of its foot.
        e: (rows,) rates of all tasks; changed.
        places: (frames, 3) of soles and base. [m]
        center: (3,) of mass. [m]
    """
    twists = e[2:].reshape(-1, 6)
    v, turn = twists[leader, :3].copy(), twists[leader, 3:].copy()
    v = v + np.cross(turn / TURN_LENGTH, np.vstack([places, center]) - places[leader])
    twists[:-1] -= np.column_stack([v[:-2], np.tile(turn, (len(v) - 2, 1))])
    twists[-1] -= BASE * np.concatenate([v[-2], turn])
    e[:2] -= CENTER * v[-1, :2]


def _path(shift: np.ndarray, t: float) -> np.ndarray:
    """(3,) way of a foot, t seconds after it left: up, across and down, until it touches. [m]"""
    third = SWING_S / 3

    def blend(begin: float, length: float) -> float:
        return float(quintic.blend(np.asarray(t - begin), length).x)

    up = RISE * (blend(0.0, third) - blend(2 * third, third))
    late = LOWERING * max(t - SWING_S, 0.0)
    return blend(third / 2, 2 * third) * shift + np.array([0.0, 0.0, up - late])


def _limited(x: np.ndarray, most: float) -> np.ndarray:
    return x / max(1.0, float(np.linalg.norm(x)) / most)
