"""Model, controller and torques of the body that the coordinator has found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from modurob.control import Certificate, Controller, law_class
from modurob.distributed.agent import Message
from modurob.distributed.bus import messages as msg
from modurob.distributed.bus.assembly import BusAssembly, assemble
from modurob.distributed.bus.coordinator import CoordinatorState
from modurob.distributed.bus.messages import Address
from modurob.distributed.bus.survey import BusEntry, Survey
from modurob.distributed.reliable import following
from modurob.errors import ModurobError
from modurob.model import Model
from modurob.modules import ModuleType
from modurob.organism import Organism

GRAVITY = (0.0, 0.0, -9.81)  # [m/s^2]
LARGEST_READING = 1e6  # [rad, m, rad/s, m/s] 160,000 turns; the equations are far from overflow


@dataclass(frozen=True)
class BusRobot:
    """The robot on the bus as it is now."""

    assembly: BusAssembly = field(default_factory=BusAssembly)  # organism, names, faults
    model: Model | None = None  # None without an organism
    controller: Controller | None = None  # None without joints
    certificate: Certificate | None = None  # of the controller for a constant set point
    released: frozenset[Address] = frozenset()  # modules whose last readings cannot be used

    def bad_readings(self, table: Mapping[Address, BusEntry]) -> dict[Address, str]:
        """Return one line for each module whose last reading cannot be used."""
        if self.model is None:
            return {}
        faults = {}
        for module, joints in self._joints().items():
            entry = table[module]
            why = _complaint(entry.values, 2 * len(joints)) if entry.has_reading else ""
            if why:
                faults[module] = (
                    f"reading of '{self.assembly.names[module]}': {list(entry.values)!r:.80} "
                    f"{why}; its motors are let go until a good one comes"
                )
        return faults

    def state(self, table: Mapping[Address, BusEntry]) -> tuple[np.ndarray, np.ndarray]:
        """q, v (n,) of all joints as measured; zero where they were not."""
        assert self.model is not None
        q, v = self.model.neutral(), np.zeros(self.model.nv)
        for module, joints in self._joints().items():
            values = table[module].values
            for k, j in enumerate(joints if values else ()):
                if j is not None:
                    q[j], v[j] = values[2 * k : 2 * k + 2]
        return q, v

    def torques(
        self, table: Mapping[Address, BusEntry], t: float, reference: Any = None
    ) -> dict[Address, tuple[float, ...]]:
        """Torque for every joint of every module with joints, at time t [s]. [N m, N]

        The reference is that of `Controller.command`; by default every joint keeps its position.
        """
        if self.controller is None:
            return {}
        q, v = self.state(table)
        tau = self.controller.command(t, q, v, q if reference is None else reference)
        return {
            module: tuple(0.0 if j is None else float(tau[j]) for j in joints)
            for module, joints in self._joints().items()
            if joints
        }

    def _joints(self) -> dict[Address, list[int | None]]:
        """Indices in q of each module's own joints; None for one that is locked."""
        assert self.model is not None
        assert self.assembly.organism is not None
        place = {name: j for j, name in enumerate(self.model.joint_names)}
        return {
            module: [
                place.get(f"{name}.{joint}")
                for joint in moving_joints(self.assembly.organism.kind(name))
            ]
            for module, name in self.assembly.names.items()
        }


class RobotBuilder:
    """Builder of a `BusRobot` for every new survey; a controller takes over from the one before.

    An error in an update becomes a fault of the robot, and motors without a torque are released;
    the next update starts anew.

    Args:
        law: Key or class name of a law of `modurob.control`.
        gravity: (3,) in the base's frame. [m/s^2]
        settings: Of the law.

    Attributes:
        robot: The newest one.
        built: Count of robots.
    """

    def __init__(self, law: str = "ComputedTorque", *, gravity: Any = GRAVITY, **settings: Any):
        self.law, self.gravity, self.settings = law_class(law), gravity, settings
        self.robot, self.built = BusRobot(), 0
        self._last: Controller | None = None
        self._body = BusRobot()  # as it was made, before any reading
        self._usable: dict[Address, BusEntry] = {}  # with the last good reading of each module
        self._bad: dict[Address, str] = {}  # faults of those that are not good now
        self._survey: Survey | None = None
        self._table: Mapping[Address, BusEntry] | None = None
        self._sent: dict[Address, tuple[int, tuple[float, ...]]] = {}  # after which report, what
        self._number = 0

    def warm_up(self) -> None:
        """Build a small robot, so that the first real one needs no compilation."""
        model = Organism.start("giusti_b").model("physical", gravity=self.gravity)
        controller = self.law(model, **self.settings)
        controller.command(0.0, model.neutral(), np.zeros(model.nv))
        controller.certificate()

    def update(self, state: CoordinatorState, t: float) -> list[Message]:
        """Return commands for the modules whose torques change, for the controller's time t. [s]"""
        if not state.ready:
            return []
        if state.survey is not self._survey:
            self._body = self._made(state.survey, state.table)
            self.built += 1
        wanted, faults = self._answer(state.table, t)
        # motors that were driven and have no torque now are let go
        wanted |= {m: () for m in self._sent if m in state.survey.modules and m not in wanted}
        commands = {m: (state.table[m].reported.number, tau) for m, tau in wanted.items()}
        changed = {m: c for m, c in commands.items() if self._sent.get(m) != c}
        if state.survey is not self._survey or faults != self.robot.assembly.faults:
            assembly = self._body.assembly._replace(faults=faults)
            self.robot = replace(self._body, assembly=assembly, released=frozenset(self._bad))
        self._sent, self._table, self._survey = commands, state.table, state.survey
        if not changed:
            return []
        self._number = following(self._number)
        return [msg.own(msg.Torque(m, self._number, tau)) for m, (_, tau) in changed.items()]

    def _answer(
        self, table: Mapping[Address, BusEntry], t: float
    ) -> tuple[dict[Address, tuple[float, ...]], tuple[str, ...]]:
        """Return torques for the modules' readings, and all faults."""
        body = self._body
        bad = body.bad_readings(table)
        # the first bad reading is named until a good one comes, not each of a stream
        self._bad = {module: self._bad.get(module, fault) for module, fault in bad.items()}
        last = {m: _at_rest(self._usable.get(m, BusEntry())) for m in bad}
        self._usable = {m: table[m] for m in body.assembly.names} | last
        faults = (*body.assembly.faults, *self._bad.values())
        try:
            torques = body.torques(self._usable, t)
        except Exception as error:
            return {}, (*faults, f"no torques, all motors are let go: {_line(error)}")
        return {m: tau for m, tau in torques.items() if m not in bad}, faults

    def is_current(self, state: CoordinatorState) -> bool:
        """Return whether robot and torques follow from the coordinator's state."""
        return state.ready and state.survey is self._survey and state.table is self._table

    def commanded(self) -> dict[Address, tuple[float, ...]]:
        """The newest torques. [N m, N]"""
        return {module: tau for module, (_, tau) in self._sent.items() if tau}

    def _made(self, survey: Survey, table: Mapping[Address, BusEntry]) -> BusRobot:
        robot = BusRobot()
        try:
            robot = BusRobot(assemble(survey, table))
            if robot.assembly.organism is None:
                return robot
            model = robot.assembly.organism.model("physical", gravity=self.gravity)
            robot = replace(robot, model=model)
            if not model.joint_names:
                return robot
            controller = self._controller(model)
            return replace(robot, controller=controller, certificate=controller.certificate())
        except Exception as error:
            faults = (*robot.assembly.faults, f"no controller: {_line(error)}")
            return replace(robot, assembly=robot.assembly._replace(faults=faults))

    def _controller(self, model: Model) -> Controller:
        if self._last is None:
            self._last = self.law(model, **self.settings)
        else:
            self._last = self._last.rebuilt(model)
        return self._last


def _complaint(values: tuple[float, ...], expected: int) -> str:
    """Return the reason why a reading cannot be used; nothing if it can."""
    if len(values) != expected:
        return f"has {len(values)} numbers, expected {expected}: q and v of each joint"
    if not all(map(math.isfinite, values)):
        return "is not finite"
    if any(abs(value) > LARGEST_READING for value in values):
        return f"is beyond {LARGEST_READING:g} rad, m, rad/s or m/s"
    return ""


def _at_rest(entry: BusEntry) -> BusEntry:
    """Return an entry with its positions and no velocities."""
    return entry._replace(values=tuple(x for q in entry.values[::2] for x in (q, 0.0)))


def _line(error: Exception) -> str:
    """One line on an error; with its class if it is not one of ours."""
    return str(error) if isinstance(error, ModurobError) else f"{type(error).__name__}: {error}"


def moving_joints(kind: ModuleType) -> tuple[str, ...]:
    """Names of a module's joints that move, in the order of its measurements and torques."""
    return tuple(joint.name for joint in kind.joints if joint.kind != "fixed")
