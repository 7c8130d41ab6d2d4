"""Operation of the robot on the bus: it holds a pose, follows a motion, or lets go.

All methods may be called from any thread. Times are those of the coordinator's clock, in seconds.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import as_floats, inside, positive
from modurob.control import Controller
from modurob.control.certificate import is_decaying
from modurob.control.closed_loop import linearized
from modurob.control.references import Carried, Quintic, excesses
from modurob.distributed.bus.messages import Address
from modurob.distributed.bus.robot import LARGEST_READING, BusRobot
from modurob.distributed.bus.survey import BusEntry
from modurob.distributed.reliable import NUMBERS
from modurob.errors import ModurobError, StateError, choices
from modurob.model import Model
from modurob.model.joint_map import JointMap
from modurob.reference import Reference, no_reference
from modurob.sim.body_trajectory import BodyTrajectory
from modurob.sim.trajectory import Trajectory

STALE_S = 0.1  # age of a reading beyond which a motion waits, ...
STALE_PERIODS = 50  # ... and the same in periods of the loop
APPROACH_S = 0.5  # to a motion from where the joints are
NEAR = 1e-6  # [rad, m] of the beginning of a motion: no approach is needed; of a limit: within
HOLD_RATE = 10.0  # [rad/s] of joints that modules hold by themselves
MOTIONS_S = 1e-6, 1e6  # shortest and longest of goto
CHECKED_S = 60.0  # of a motion, against the joint limits before it begins
MOST_STEPS, RESTING = 50, 1e-12  # of Newton's method, and its last step [rad, m]
KEPT_CYCLES = 500  # of which the ages of readings are kept
# Age of readings with which certificates count, in periods: a period for the way out and back,
# and a period for a clock that is late.
MOST_LATE = 2
SAME = 1e-6  # relative, by which times may differ
MOST_RECORDED = 1_000_000  # states of one record

Function = Callable[[float], Reference]


class BusMotion(NamedTuple):
    """A reference that the robot follows."""

    what: str  # in words
    reference: Function  # of its own time, for the joints of `model`
    model: Model
    duration: float  # [s] infinite for one without end


@dataclass(frozen=True, eq=False)
class OperationStatus:
    """The operation in plain values.

    Attributes:
        mode: ``hold``, ``move``, ``wait`` (a motion that cannot go on), ``relax`` or ``idle``.
        motion: In words; empty without one.
        progress: Of the motion, from 0 to 1; 0 for one without end.
        reason: Why it waits, or why the last motion ended early.
        joints: Names, in the order of the arrays.
        set_point, q: (n,) wanted and measured. [rad, m]
    """

    mode: str
    motion: str
    progress: float
    reason: str
    joints: tuple[str, ...]
    set_point: np.ndarray
    q: np.ndarray


class Operation:
    """Commands to the robot, carried out across changes of its body.

    Args:
        period: Of the loop. [s]

    Attributes:
        robot: The body that is driven.
        period: Of the loop; 0 without a clock. [s]
        has_own_law: True where the coordinator is another program, with a law of its own.
    """

    has_own_law = False

    def __init__(self, period: float = 0.0) -> None:
        self.period = period
        # without a clock, readings come when they change
        self._stale_s = max(STALE_S, STALE_PERIODS * period) if period else math.inf
        self._lock = threading.RLock()
        self.robot = BusRobot()
        self._relaxed = False
        self._set_point = np.zeros(0)  # NaN where no pose was found yet
        self._motion: BusMotion | None = None
        self._path: Function | None = None  # the motion on this body, from `_clock` = 0 on
        self._reached = no_reference((0,))  # the path at `_clock`
        self._clock = self._done = 0.0  # times of the path and of the motion [s]
        self._lead = self._from = 0.0  # length of the approach, time of the motion after it [s]
        self._waits = self._reason = ""
        self._late: list[str] = []  # modules without a new reading
        self._ticks: deque[float] = deque(maxlen=KEPT_CYCLES)  # [s] of cycles with this body
        self._ages: deque[tuple[float, str]] = deque(maxlen=KEPT_CYCLES)  # see `oldest_reading`
        self._checked: tuple[Any, tuple[str, ...]] = None, ()  # law and set point, see `missing`
        self._last_t = -math.inf
        self._q = np.zeros(0)  # measured last, NaN where nothing was
        self._record: list[BodyTrajectory] | None = None
        self._record_begin = 0.0
        self._rows: list[tuple[float, np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []

    # -- commands ----------------------------------------------------------------------------------

    def hold(self) -> None:
        """Hold the joints where they are now; ends a motion."""
        with self._lock:
            self._demand_joints()
            self._end("")
            self._relaxed = False
            self._set_point = self._within_limits(self._q)

    def relax(self) -> None:
        """Let all motors go until the next command."""
        with self._lock:
            self._demand_robot()
            self._end("")
            self._relaxed = True

    def goto(self, q: ArrayLike, seconds: float) -> None:
        """Move all joints to a place, from rest or from the motion of now, and hold it.

        Args:
            q: (n,) from base to tip. [rad, m]
            seconds: Of the motion.
        """
        path, what = self._path_to(q, seconds)
        self.follow(path, seconds, what)

    def _path_to(self, q: ArrayLike, seconds: float) -> tuple[Quintic, str]:
        """Path of `goto`, and the motion in words."""
        with self._lock:
            model, now = self._demand_joints(), self._aim()
        goal = as_floats(q)
        if goal.shape != (model.nv,) or not np.isfinite(goal).all():
            raise StateError(
                f"goto takes {model.nv} finite numbers, one for each joint "
                f"({choices(model.joint_names)}), got {goal.size if goal.size != model.nv else q}"
            )
        path = Quintic(
            now.q, goal, inside("seconds", seconds, *MOTIONS_S, "seconds"), v0=now.v, a0=now.a
        )
        return path, f"goto in {seconds:g} s"

    def follow(
        self, reference: Callable[[float], Any], seconds: float = math.inf, what: str = "follow"
    ) -> None:
        """Follow a reference from its time 0 on; an approach of half a second leads to it.

        Args:
            reference: A function of time with q, v and a for all joints, such as a gait.
            seconds: After which its last place is held; without end by default.
            what: The motion in words.
        """
        with self._lock:
            model = self._demand_joints()
        if not (isinstance(seconds, float) and seconds == math.inf):
            positive("seconds", seconds, "seconds")
        reference = _checked(reference, model)
        self._refuse_excess(reference, model, seconds, what)
        with self._lock:
            checked, model = model, self._demand_joints()
            if model.joint_names != checked.joint_names:
                raise StateError(f"{what} is refused: the body has changed just now")
            now = self._aim()
            self._motion = BusMotion(what, reference, model, seconds)
            self._relaxed, self._reason, self._waits = False, "", ""
            self._begin(now, 0.0)

    @staticmethod
    def _refuse_excess(reference: Function, model: Model, seconds: float, what: str) -> None:
        """Refuse a motion beyond the limits; without the lock: the loop goes on meanwhile."""
        if beyond := excesses(reference, model, min(seconds, CHECKED_S), rate=LARGEST_READING):
            raise StateError(f"{what} is refused: {beyond[0]}")

    def stop(self) -> None:
        """End a motion and hold the joints where they are."""
        self.hold()

    def record(self) -> None:
        """Record measured states, torques and set points from now on."""
        with self._lock:
            self._record, self._rows = [], []

    def recorded(self) -> Trajectory:
        """End the record; one part for each body.

        States are measured, torques commanded; accelerations and energies are the model's for them.
        """
        with self._lock:
            if self._record is None:
                raise StateError("nothing is being recorded: begin with record")
            self._close_part()
            parts, self._record = tuple(self._record), None
            if not parts:
                raise StateError("the record is empty: no robot with joints was driven")
            return Trajectory(parts, integrator="bus")

    @property
    def is_recording(self) -> bool:
        return self._record is not None

    def status(self) -> OperationStatus:
        """The operation as it is now."""
        with self._lock:
            model, motion = self.robot.model, self._motion
            names = () if model is None else model.joint_names
            mode = "relax" if self._relaxed else "move" if motion else "hold" if names else "idle"
            waits = self._waits if names else "waits for a robot" * bool(motion)
            if waits:
                mode = "wait"
            progress = 0.0
            if motion is not None and math.isfinite(motion.duration):
                progress = min(1.0, self._done / motion.duration)
            set_point = self._aim().q if names else np.zeros(0)
            what = "" if motion is None else motion.what
            reason = waits or self._reason
            return OperationStatus(mode, what, progress, reason, names, set_point, self._q.copy())

    def missing(self) -> tuple[str, ...]:
        """Conditions missing for a guarantee that joints go to the set point; none if it holds.

        It holds for the body as its records describe it; `rest` tells what another body does.
        """
        with self._lock:
            status, robot = self.status(), self.robot
            law, at, late = robot.controller, self._set_point.copy(), self._late
        if law is None:
            return ("there is no controller",)
        found = [] if status.mode == "hold" else [f"a set point that stays: mode {status.mode}"]
        if not np.isfinite(at).all():
            return (*found, "a measured pose of all joints")
        idle = [*robot.assembly.silent.values(), *(robot.assembly.names[m] for m in robot.released)]
        if idle:
            found.append(f"motors of {choices(idle)}")
        if late:
            found.append(f"new readings of {choices(late)}")
        if self.period:
            found += self._lateness()
        key = law, at.tobytes()
        if key != self._checked[0]:  # it takes milliseconds
            self._checked = key, _failures(law, at)
        return (*found, *self._checked[1])

    @property
    def longest_delay(self) -> float:
        """Age of readings up to which a guarantee holds. [s]"""
        return MOST_LATE * self.period

    def oldest_reading(self) -> tuple[float, str]:
        """Age of the oldest reading in the last cycles, and its module; NaN before the first. [s]

        The age counts from the begin of the cycle that the reading answers: so long ago, or less,
        the torque of that cycle reached the module and its joints were measured.
        """
        with self._lock:
            return max(self._ages, default=(math.nan, ""))

    def _lateness(self) -> Iterator[str]:
        """Conditions on the delay of the loop that the last cycles did not meet."""
        with self._lock:
            ages = list(self._ages)
        most = self.longest_delay
        late = [x for x in ages if x[0] > most * (1 + SAME)]
        if not ages:
            yield "measured delays: no reading has come back so far"
        elif late:
            age, name = max(late)
            yield (
                f"readings at most {MOST_LATE} periods ({1e3 * most:g} ms) old: in {len(late)} of "
                f"the last {len(ages)} cycles they were older, up to {1e3 * age:.4g} ms ('{name}')"
            )

    def rest(self, model: Model) -> np.ndarray:
        """(n,) where the joints would come to rest if the body were another one. [rad, m]

        Args:
            model: The true body, with the joints of this robot.
        """
        with self._lock:
            law, at = self.robot.controller, self._set_point.copy()
        if law is None or not np.isfinite(at).all():
            raise StateError("there is no controller with a set point")
        joints = law.model.joint_names
        if not isinstance(model, Model) or model.free_base or model.joint_names != joints:
            raise StateError(
                f"rest takes a model on a fixed base with the joints {choices(joints)}, got "
                f"{model!r:.80}"
            )
        if len(law.memory(1.0)[0]):  # an integral does not rest before the error is gone
            return at
        law, q, still = law.changed(), at.copy(), np.zeros(len(at))
        for _ in range(MOST_STEPS):  # Newton's, for equal torques of law and gravity
            gap = law.command(0.0, q, still, at) - model.gravity_torque(q)
            weight = model.inverse_dynamics_derivatives(q, still, still).dq
            step = np.linalg.solve(law.slopes(q, still, at).dq - weight, gap)
            q = q - step
            if np.abs(step).max(initial=0.0) < RESTING:
                return q
        raise StateError("no pose of rest was found near the set point")

    # -- the body ----------------------------------------------------------------------------------

    def adopt(self, robot: BusRobot) -> None:
        """Go on with another body: joints that are left keep their set points and motions."""
        with self._lock:
            old, new = self.robot.model, robot.model
            if old is not new:
                self._close_part()
            self.robot = robot
            if new is None:
                self._set_point = self._q = np.zeros(0)
                return
            if old is new:
                return
            nothing = np.full(new.nv, np.nan)
            if old is None or not len(self._set_point):
                self._set_point, self._q = nothing, nothing.copy()
            else:
                joints = JointMap(old, new)
                self._set_point, self._q = (
                    joints.carry(x, nothing) for x in (self._set_point, self._q)
                )
            self._path = None  # laid anew from where the joints are found
            self._ticks.clear()
            self._ages.clear()

    def torques(
        self, table: Mapping[Address, BusEntry], t: float, cycle: int = 0
    ) -> dict[Address, tuple[float, ...]]:
        """Torques for every module with motors, at time t; none at all lets them go. [N m, N]

        Args:
            table: Newest data of each module.
            t: Now. [s]
            cycle: Number of the cycle that they begin.
        """
        with self._lock:
            robot = self.robot
            if robot.controller is None or robot.model is None:
                return {}
            q, v, known = robot.state(table)
            self._q = np.where(known, q, np.nan)
            fresh = np.isnan(self._set_point) & known
            self._set_point[fresh] = self._within_limits(q)[fresh]
            modules = robot.joints()
            self._late = [
                robot.assembly.names[m]
                for m, joints in modules.items()
                if joints and t - table[m].sensed.at > self._stale_s
            ]
            driven = (m for m, joints in modules.items() if joints)
            self._keep_age(t, {m: (cycle - table[m].cycle) % NUMBERS for m in driven})
            if self._relaxed:  # the next motion begins where the joints are then
                self._set_point, self._last_t = self._within_limits(self._q), t
                self._write(t, q, v, np.zeros(len(q)), q)
                return {m: () for m, joints in modules.items() if joints}
            self._waits = self._hindrance()
            aim = self._advanced(t)
            tau = robot.controller.command(t, q, v, aim)
            self._write(t, q, v, tau, aim.q)
            lost = np.isnan(self._set_point)  # no pose was found: no torque
            return {
                m: tuple(0.0 if j is None else float(tau[j]) for j in joints)
                for m, joints in modules.items()
                if joints and not any(j is not None and lost[j] for j in joints)
            }

    def hold_gains(self) -> dict[Address, tuple[float, ...]]:
        """Gains with which each module can hold its joints alone; see `messages.HoldGains`."""
        robot = self.robot
        if robot.model is None or robot.controller is None:
            return {}
        with self._lock:
            at = (
                np.where(np.isnan(self._q), 0.0, self._q) if len(self._q) else robot.model.neutral()
            )
        inertia, friction = np.diagonal(robot.model.mass_matrix(at)), robot.model.viscous
        stiffness = HOLD_RATE * (HOLD_RATE * inertia + friction)
        gains = np.stack([stiffness, 2 * HOLD_RATE * inertia, friction], axis=1).tolist()
        return {
            m: tuple(x for j in joints for x in ((0.0,) * 3 if j is None else gains[j]))
            for m, joints in robot.joints().items()
            if joints
        }

    def _keep_age(self, t: float, cycles: Mapping[Address, int]) -> None:
        """Keep the age of the oldest reading, of those that answer so many cycles before."""
        if self._ticks and cycles:
            module = max(cycles, key=lambda m: cycles[m])
            began = self._ticks[-max(1, min(cycles[module], len(self._ticks)))]
            self._ages.append((t - began, self.robot.assembly.names[module]))
        self._ticks.append(t)

    def _hindrance(self) -> str:
        """Why a motion cannot go on; empty if it can."""
        if self._motion is None:
            return ""
        assembly = self.robot.assembly
        if assembly.silent:
            return f"waits for an answer of {choices(assembly.silent.values())}"
        return f"waits for readings of {choices(self._late)}" if self._late else ""

    def _advanced(self, t: float) -> Reference:
        """The reference at time t."""
        step, self._last_t = max(0.0, t - self._last_t), t
        motion = self._motion
        if motion is None:
            return self._aim()
        if self._waits:
            if self._path is not None:
                self._set_point = self._aim().q
                self._path = None
            return self._aim()
        if self._path is None:
            try:
                self._lay()
            except ModurobError as error:
                self._end(f"{motion.what} ended: {error}")
                return self._aim()
        elif math.isfinite(step):
            try:
                self._reached = self._path(self._clock + step)
            except ModurobError as error:  # of a function that a user gave
                self._end(f"{motion.what} ended: {error}")
                return self._aim()
            self._clock += step
            if self._clock >= self._lead:
                self._done = self._from + self._clock - self._lead
        aim = self._aim()
        if self._done >= motion.duration:
            self._set_point = aim.q
            self._end("")
            return self._aim()
        return aim

    def _lay(self) -> None:
        """Lay the rest of the motion from where the joints are."""
        still = np.zeros(len(self._set_point))
        q = np.where(np.isnan(self._q), self._set_point, self._q)
        self._begin(Reference(q, still, still), self._done)

    def _begin(self, now: Reference, done: float) -> None:
        """Lay a path to the motion at its time `done`, and along it."""
        motion, model = self._motion, self._demand_joints()
        assert motion is not None
        joints = JointMap(motion.model, model)
        if not len(joints.kept_new):
            raise StateError("none of its joints is left")
        along: Function = motion.reference
        if motion.model is not model:
            along = Carried(motion.reference, motion.model, model, now.q)
        there = along(done)
        gap = max(float(np.abs(a - b).max(initial=0.0)) for a, b in zip(now, there, strict=True))
        self._lead = 0.0 if gap < NEAR else APPROACH_S
        if self._lead:
            lead = Quintic(now.q, there.q, APPROACH_S, v0=now.v, v1=there.v, a0=now.a, a1=there.a)
        else:
            lead = along
        ahead = self._lead
        self._path = lambda t: lead(t) if t < ahead else along(done + t - ahead)
        self._reached = now if ahead else there
        self._clock, self._done, self._from = 0.0, done, done

    def _aim(self) -> Reference:
        """The reference as it is now."""
        still = np.zeros(len(self._set_point))
        if self._motion is None or self._path is None:
            at = np.where(np.isnan(self._set_point), self._q, self._set_point)
            return Reference(np.where(np.isnan(at), 0.0, at), still, still)
        return self._reached

    def _end(self, reason: str) -> None:
        if self._motion is not None and self._path is not None:
            self._set_point = self._aim().q
        self._motion = self._path = None
        self._waits, self._reason = "", reason

    def _within_limits(self, q: np.ndarray) -> np.ndarray:
        """A measured pose as a set point: noise and soft stops lead beyond the limits."""
        assert self.robot.model is not None
        return np.clip(q, self.robot.model.lower, self.robot.model.upper)

    def _demand_robot(self) -> None:
        if self.robot.model is None:
            raise StateError("there is no robot: plug modules together first")

    def _demand_joints(self) -> Model:
        model = self.robot.model
        if model is None or self.robot.controller is None:
            raise StateError("there is no robot with joints: plug modules together first")
        if not len(self._q) or np.isnan(self._q).any():
            raise StateError("not all joints have been measured yet")
        return model

    # -- the record --------------------------------------------------------------------------------

    def _write(
        self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray, aim: np.ndarray
    ) -> None:
        later = not self._rows or t > self._rows[-1][0]
        if self._record is not None and len(self._rows) < MOST_RECORDED and later:
            self._rows.append((t, q.copy(), v.copy(), tau.copy(), aim.copy()))

    def _close_part(self) -> None:
        model, organism = self.robot.model, self.robot.assembly.organism
        if self._record is None or model is None or organism is None or not self._rows:
            return
        if not self._record:
            self._record_begin = self._rows[0][0]
        t, q, v, tau, aim = (np.array(x) for x in zip(*self._rows, strict=True))
        t = t - self._record_begin
        channels = MappingProxyType({"set_point": aim})
        part = BodyTrajectory(organism.base, model, organism, t, q, v, tau, channels)
        self._record.append(part)
        self._rows = []


def _failures(law: Controller, at: np.ndarray) -> tuple[str, ...]:
    """Assumptions of a law's certificate that do not hold at a set point, with delays of the loop.

    The certificate is for torques in time; those of a clocked loop come up to `MOST_LATE` late.
    """
    found = [f"{check.assumption}: {check.why}" for check in law.certificate(at).failures]
    dt = law.sample_time or 0.0
    for late in range(1, MOST_LATE + 1) if dt and not found else ():
        rate = linearized(law, at, late).rate
        if not is_decaying(rate):
            found.append(
                f"errors decay with torques {1e3 * late * dt:g} ms late: slowest rate "
                f"{rate:.4g} 1/s; lower the gains, or take a shorter period"
            )
            break
    return tuple(found)


def _checked(reference: Callable[[float], Any], model: Model) -> Function:
    """A user's function of time, with a `StateError` for all that can be wrong with it.

    Joint limits included, after the time for which they are checked before a motion begins.
    """
    joints = model.nv

    def at(t: float) -> Reference:
        try:
            given = reference(t)
            parts = [np.atleast_1d(np.asarray(x, float)) for x in (given.q, given.v, given.a)]
        except Exception as error:
            raise StateError(
                f"a motion is a function of time with q, v and a, such as a gait; at {t:g} s it "
                f"raised {type(error).__name__}: {error}"
            ) from error
        if any(x.shape != (joints,) for x in parts):
            shapes = choices(sorted({str(x.shape) for x in parts}))
            raise StateError(
                f"q, v and a of the motion have shapes {shapes}, the robot has {joints} joints"
            )
        if not np.isfinite(parts).all():
            raise StateError(f"q, v and a of the motion are not finite at {t:g} s")
        beyond = np.maximum(model.lower - parts[0], parts[0] - model.upper) > NEAR
        if t > CHECKED_S and beyond.any():
            worst = int(beyond.argmax())
            raise StateError(
                f"{model.joint_names[worst]} would go to {parts[0][worst]:.4g} at {t:g} s, beyond "
                f"its limits {model.lower[worst]:.4g} and {model.upper[worst]:.4g}"
            )
        return Reference(*parts)

    return at
