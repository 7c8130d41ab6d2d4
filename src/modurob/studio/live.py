"""Live: the body of a project as processes on a bus, with a simulated robot behind them."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from modurob import Model, ModurobError, Organism, StateError
from modurob.distributed.bus import motions
from modurob.distributed.bus.bus import BASE, PORT, Bus
from modurob.distributed.bus.processes import LoopClock, ProcessBus
from modurob.distributed.bus.robot import moving_joints
from modurob.distributed.plant import PlantOptions
from modurob.scenario.scenario import Mark, RunResult
from modurob.sim import BodyTrajectory
from modurob.studio import runs, view_data
from modurob.studio.jobs import JobCanceled

if TYPE_CHECKING:
    from modurob.distributed.bus.operation import OperationStatus

PERIOD_S = 5e-3  # slower than a bus by itself: the page is drawn on the same machine
FOUND_S = 10.0  # in which a module is discovered once it is plugged in
PUSH_S = 0.1
CLOCK_S = 1.0  # over which cycles are counted
FOUND, SILENT, DEAD, UNPLUGGED, UNKNOWN = "found", "silent", "dead", "unplugged", "not found"


class LiveOptions(NamedTuple):
    """Properties of a live robot.

    Attributes:
        law: Of the coordinator.
        period: Of its clock. [s]
        noise_q, noise_v: Standard deviations of the sensors. [rad, m, rad/s, m/s]
        loss: Chance that a message is lost.
        gravity: Downwards. [m/s^2]
    """

    law: str = "ComputedTorque"
    period: float = PERIOD_S
    noise_q: float = 0.0
    noise_v: float = 0.0
    loss: float = 0.0
    gravity: float = 9.81


class LiveRobot:
    """The modules of an organism on a bus, plugged together as in the organism.

    Its methods may be called from any thread; those that reach modules may wait for them.

    Args:
        organism: The body to plug together.
        bus: With a plant.
        wait: (condition, seconds) waits on this bus until the condition holds.
        now: Time of the bus. [s]
        clock: Of the bus, if it runs in real time.

    Attributes:
        state: The progress of the start in words; empty when it is done.
        problem: The last error of the bus.
        faults, payloads: Of drives, and on modules [kg], as they were set.
    """

    def __init__(
        self,
        organism: Organism,
        bus: Bus,
        wait: Callable[[Callable[[], bool], float], bool],
        now: Callable[[], float] = time.monotonic,
        clock: LoopClock | None = None,
    ) -> None:
        self.organism, self.bus, self.clock = organism, bus, clock
        self._wait, self._now = wait, now
        self._lock, self._open = threading.RLock(), True
        self._whole = organism.model("physical", gravity=bus.builder.gravity, elastic=False)
        self._ways = ways(organism)
        self._dead: set[str] = set()
        self._q: dict[str, float] = {}  # measured last, also of modules that are gone [rad, m]
        self._marks: list[Mark] = []
        self._recorded_at = self._drawn_at = -math.inf
        self._ticks: list[tuple[float, int]] = []
        self.state = self.problem = ""
        self.faults: dict[str, str] = {}
        self.payloads: dict[str, float] = {}

    # -- start and end -----------------------------------------------------------------------------

    def power_up(self) -> None:
        """Switch on all modules, then plug in one after the other, each when the last is found."""
        for name in self.organism.modules:
            self.state = f"starting {name}"
            with self._changing(f"start {name}"):
                self.bus.start(self.organism.kind(name), name)
        if isinstance(self.bus, ProcessBus):
            self.state = "compiling"
            self.bus.wait_until_warm()
        for count, name in enumerate(self.organism.modules, start=1):
            self.state = f"plugging in {name}"
            self.plug(name)
            if not self._until(lambda n=count: not self._open or self.bus.settled(n)):
                self.problem = self.problem or f"'{name}' was not found within {FOUND_S:g} s"
        self.state = ""

    def close(self) -> None:
        """End all processes; further commands are refused."""
        self._open = False
        with self._lock:
            self.bus.close()

    @contextmanager
    def _changing(self, what: str) -> Iterator[None]:
        """Let one thread at a time change the robot while it is on; mark the change."""
        with self._lock:
            if not self._open:
                raise JobCanceled
            yield
            self._mark(what)

    # -- modules -----------------------------------------------------------------------------------

    def plug(self, name: str) -> None:
        """Dock a module as it is docked in the organism."""
        with self._changing(f"dock {name}"):
            self.bus.plug(*self._ways[name])

    def unplug(self, name: str) -> None:
        """Undock a module, with all that is docked to it."""
        with self._changing(f"undock {name}"):
            self.bus.unplug(self._ways[name][1])

    def kill(self, name: str) -> None:
        """End the process of a module; it stays docked and is silent."""
        with self._changing(f"die {name}"):
            self.bus.kill(name)
            self._dead.add(name)

    def restart(self, name: str) -> None:
        """Start the process of a module that was killed."""
        with self._changing(f"reboot {name}"):
            self.bus.restart(name)
            self._dead.discard(name)

    def push(self, what: str, effort: float | Sequence[float]) -> None:
        """Push a joint [N m, N] or, with a force (3,) in the world [N], a module for 0.1 s."""
        if what not in (*self.status().joints, *self.bus.robot.assembly.names.values()):
            raise StateError(f"'{what}' cannot be pushed: it is locked, or not in the robot now")
        with self._changing(f"push {what}"):
            self.bus.push(what, effort, PUSH_S)

    def payload(self, name: str, mass: float) -> None:
        """Put a load on a module, which no model knows of. [kg]"""
        with self._changing(f"load {name}"):
            self.bus.payload(name, mass)
            self.payloads[name] = mass

    def fault(self, name: str, kind: Any) -> None:
        """Let the drives of a module be ``stuck`` or ``limp``, or whole again with ``none``."""
        with self._changing(f"{kind} {name}" if kind != "none" else f"repair {name}"):
            self.bus.fault(name, kind)
            self.faults[name] = kind

    def has(self, name: str) -> bool:
        """Return whether a module has been switched on."""
        return name in self.bus.modules

    def joints_of(self, name: str) -> list[str]:
        """Names of a module's joints that can move."""
        return [f"{name}.{joint}" for joint in moving_joints(self.organism.kind(name))]

    def is_plugged(self, name: str) -> bool:
        """Return whether a module is docked to what it is docked to in the organism."""
        return self.bus.end(self._ways[name][1]) in self.bus.docked

    def states(self) -> dict[str, str]:
        """Each module: found, silent, dead, unplugged, or not found though it is docked."""
        assembly = self.bus.robot.assembly
        found, silent = set(assembly.names.values()), set(assembly.silent.values())

        def state(name: str) -> str:
            if name in self._dead:
                return DEAD
            if not self.has(name) or not self.is_plugged(name):
                return UNPLUGGED
            return FOUND if name in found else SILENT if name in silent else UNKNOWN

        return {name: state(name) for name in self.organism.modules}

    # -- motion ------------------------------------------------------------------------------------

    def goto(self, goals: Mapping[str, float], seconds: float) -> None:
        """Move joints to places, by name; others stay at their set points. [rad, m]"""
        now = self.status()
        pairs = zip(now.joints, now.set_point, strict=True)
        self.bus.operation.goto([goals.get(name, at) for name, at in pairs], seconds)
        self._mark("goto")

    def follow(self, gait: str) -> None:
        """Follow a gait until another command."""
        if self.model is None:
            raise StateError("there is no robot yet")
        reference, seconds = motions.read("gait", gait, self.model)
        self.bus.operation.follow(reference, seconds, f"gait {gait}")
        self._mark(f"gait {gait}")

    def hold(self) -> None:
        """Hold the joints where they are; ends a motion."""
        self.bus.operation.hold()

    def relax(self) -> None:
        """Let all motors go."""
        self.bus.operation.relax()
        self._mark("relax")

    def status(self) -> OperationStatus:
        """The operation as it is now."""
        return self.bus.operation.status()

    @property
    def model(self) -> Model | None:
        """The equations of the robot as it is discovered; None before that."""
        return self.bus.operation.robot.model

    # -- what is shown -----------------------------------------------------------------------------

    def scene(self) -> LiveScene:
        """The robot as it is discovered, and the rest of the organism as ghosts."""
        robot, states = self.bus.operation.robot, self.states()
        known = set() if robot.assembly.organism is None else set(robot.assembly.organism.modules)
        missing = tuple(name for name in states if name not in known)
        lost = tuple((n, s) for n, s in states.items() if n in known and s in (SILENT, DEAD))
        return LiveScene(
            robot.assembly.organism, robot.model, self.organism, self._whole, missing, lost
        )

    def frame(self, scene: LiveScene) -> dict[str, Any]:
        """Poses of a scene, measured joints, and which modules were heard since the last frame."""
        table, assembly = self.bus.coordinator.table, self.bus.robot.assembly
        since, self._drawn_at = self._drawn_at, self._now()
        known = {name: table[m] for m, name in assembly.names.items() if m in table}
        heard = []
        for name, entry in known.items():
            joints = self.joints_of(name)
            self._q |= dict(zip(joints, entry.values[::2], strict=False))
            if entry.sensed.at > since or not joints:  # without joints there is nothing to read
                heard.append(name)
        return {**scene.poses(self._q), "q": dict(self._q), "heard": heard}

    def faults_found(self) -> tuple[str, ...]:
        """One line for each fault of the robot."""
        return self.bus.robot.assembly.faults

    def certificate(self) -> str:
        """Guarantee of the controller, or a condition it lacks; empty without a controller."""
        found = self.bus.robot.certificate
        if found is None:
            return ""
        if missing := self.bus.operation.missing():
            return f"{found.law}: not guaranteed; missing: {missing[0]}"
        delay = 1e3 * self.bus.operation.longest_delay
        return (
            f"{found.law}: guaranteed for the body of the records and readings up to {delay:g} ms "
            f"old: {found.claim}"
        )

    def drive_line(self, name: str) -> str:
        """Measured positions and commanded torques of a module in words."""
        address = next((m for m, n in self.bus.robot.assembly.names.items() if n == name), None)
        if address is None or address not in self.bus.coordinator.table:
            return ""
        joints = [joint for joint in self.organism.kind(name).joints if joint.kind != "fixed"]
        values = self.bus.coordinator.table[address].values[::2]
        torques = self.bus.builder.commanded().get(address, ())
        words = []
        for k, (joint, q) in enumerate(zip(joints, values, strict=False)):
            slides = joint.kind == "prismatic"
            shown = round(1000 * q if slides else math.degrees(q), 1) + 0.0
            at = f"{shown:.1f}{' mm' if slides else '°'}"
            unit = "N" if slides else "N m"
            tau = f", {round(torques[k], 2) + 0.0:.2f} {unit}" if k < len(torques) else ""
            words.append(f"{joint.name} {at}{tau}")
        return "; ".join(words)

    def clock_line(self) -> str:
        """The clock of the loop in words: cycles a second, those left out, lateness."""
        clock, now = self.clock, time.monotonic()
        if clock is None:
            return ""
        recent = [x for x in self._ticks if now - x[0] < CLOCK_S]
        self._ticks = [*(recent or self._ticks[-1:]), (now, clock.ticks)]
        (begin, first), (end, last) = self._ticks[0], self._ticks[-1]
        if end <= begin:
            return ""
        late = list(clock.late)[-max(1, last - first) :]
        return (
            f"{(last - first) / (end - begin):.0f} cycles/s of {1 / clock.period:.0f}, "
            f"{clock.missed} left out, {1000 * max(late):.1f} ms late at most"
        )

    def look(self) -> str:
        """The last error that the bus met by itself; empty without one."""
        self._until(lambda: True)
        return self.problem

    def _until(self, condition: Callable[[], bool]) -> bool:
        """Wait for a condition; an error of the bus, which goes on, is kept in `problem`."""
        try:
            return self._wait(condition, FOUND_S)
        except ModurobError as error:
            self.problem = str(error)
        except Exception as error:
            self.problem = f"{type(error).__name__}: {error}"
        return False

    # -- the record --------------------------------------------------------------------------------

    def record(self) -> None:
        """Record from now on."""
        self._marks, self._recorded_at = [], self._now()
        self.bus.operation.record()

    @property
    def recording(self) -> float | None:
        """Seconds since the record began; None without one."""
        return self._now() - self._recorded_at if self.bus.operation.is_recording else None

    def recorded(self) -> RunResult:
        """End the record; its time begins at zero."""
        found = self.bus.operation.recorded()
        begin = self._recorded_at
        marks = [Mark(max(0.0, mark.time - begin), mark.what) for mark in self._marks]
        return RunResult(replace(found, parts=joined(found.parts)), marks)

    def _mark(self, what: str) -> None:
        self._marks.append(Mark(self._now(), what))


class LiveScene(NamedTuple):
    """Everything that is drawn of a live robot."""

    organism: Organism | None
    model: Model | None
    planned: Organism
    planned_model: Model
    missing: tuple[str, ...]
    lost: tuple[tuple[str, str], ...]

    def differs(self, other: LiveScene | None) -> bool:
        """Return whether something else than poses has changed."""
        return other is None or self.model is not other.model or self[4:] != other[4:]

    def data(self) -> dict[str, Any]:
        """The scene for the browser."""
        cast, links = None, []
        if self.organism is not None and self.model is not None:
            cast = view_data.scene_data(self.organism, self.model)
            links = [[entry.parent, entry.child] for entry in self.organism.dockings]
        ghost = view_data.scene_data(self.planned, self.planned_model)
        drawn = [k for k, m in enumerate(ghost["modules"]) if m["name"] in self.missing]
        ghost["solids"] = [solid for solid in ghost["solids"] if solid["module"] in drawn]
        return {"cast": cast, "ghost": ghost, "links": links, "lost": dict(self.lost)}

    def poses(self, q: Mapping[str, float]) -> dict[str, Any]:
        """Poses of both parts, for measured joints by name. [rad, m]"""
        found = {}
        for key, model in (("poses", self.model), ("ghosts", self.planned_model)):
            if model is not None and (key == "poses" or self.missing):
                at = np.array([q.get(name, 0.0) for name in model.joint_names])
                found[key] = view_data.poses(model, at)
        return found


def ways(organism: Organism) -> dict[str, tuple[str, str, int]]:
    """The docking that holds each module: the other port, its own, and the turn [deg].

    The base is held by the coordinator at its first free port.
    """
    used = {(e.parent, e.port) for e in organism.dockings}
    used |= {(e.child, e.child_port) for e in organism.dockings}
    base = organism.base
    free = [port for port in organism.kind(base).docks if (base, port) not in used]
    if not free:
        raise StateError(
            f"the base '{base}' has no free port for the coordinator: remove a module there, or "
            "make another module the base in Build"
        )
    found = {base: (f"{BASE}.{PORT}", f"{base}.{free[0]}", 0)}
    for e in organism.dockings:
        found[e.child] = f"{e.parent}.{e.port}", f"{e.child}.{e.child_port}", e.turn
    return found


def joined(parts: tuple[BodyTrajectory, ...]) -> tuple[BodyTrajectory, ...]:
    """Parts of a record, each until the next begins, with few enough states."""
    step = math.ceil(sum(len(part.t) for part in parts) / runs.MOST_FRAMES)
    ends = [*(part.t[0] for part in parts[1:]), None]
    found = []
    for part, end in zip(parts, ends, strict=True):
        rows = np.unique([*range(0, len(part.t), step), len(part.t) - 1])
        t = part.t[rows]
        if end is not None:  # the body was there until it changed
            rows, t = np.append(rows, rows[-1]), np.append(t, end)
        channels = {name: values[rows] for name, values in part.channels.items()}
        found.append(
            replace(
                part, t=t, q=part.q[rows], v=part.v[rows], tau=part.tau[rows],
                channels=MappingProxyType(channels),
            )
        )  # fmt: skip
    return tuple(found)


def on_processes(organism: Organism, options: LiveOptions) -> LiveRobot:
    """A robot whose modules are processes of this machine."""
    if os.name == "nt":
        raise StateError(
            "Live starts a process for each module, which needs Linux or macOS; under Move the "
            "same body runs in a simulation"
        )
    down = (0.0, 0.0, -options.gravity)
    plant = PlantOptions(gravity=down, noise_q=options.noise_q, noise_v=options.noise_v)
    bus = ProcessBus(
        options.law, plant=plant, period=options.period, loss=options.loss, gravity=down
    )
    try:
        return LiveRobot(organism, bus, bus.wait, clock=bus.clock)
    except BaseException:
        bus.close()
        raise
