"""What the coordinator makes of a body: its organism, model, controller and torques."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from modurob.control import Certificate, Controller, law_class
from modurob.distributed.agent import Message
from modurob.distributed.bus.assembly import Assembly, assemble
from modurob.distributed.bus.coordinator import CoordinatorState, torque_messages
from modurob.distributed.bus.messages import Address
from modurob.distributed.bus.survey import Entry, Survey
from modurob.distributed.serial import following
from modurob.errors import ModurobError
from modurob.model import Model
from modurob.modules import ModuleType
from modurob.organism import Organism

GRAVITY = (0.0, 0.0, -9.81)  # [m/s^2]
# [rad, m, rad/s, m/s] 160,000 turns: no joint is there, and the equations are far from overflow
LARGEST_READING = 1e6


@dataclass(frozen=True)
class Robot:
    """The body as it is now.

    Attributes:
        assembly: Organism, names, and what is wrong.
        model: None without an organism.
        controller: None without joints.
        certificate: What the controller guarantees for a set point that stays where it is.
        released: Modules whose motors are let go because their last readings cannot be used.
    """

    assembly: Assembly = field(default_factory=Assembly)
    model: Model | None = None
    controller: Controller | None = None
    certificate: Certificate | None = None
    released: frozenset[Address] = frozenset()

    def bad_readings(self, table: Mapping[Address, Entry]) -> dict[Address, str]:
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

    def state(self, table: Mapping[Address, Entry]) -> tuple[np.ndarray, np.ndarray]:
        """q, v (n,) of all joints as modules measured them; zero where they have not."""
        assert self.model is not None
        q, v = self.model.neutral(), np.zeros(self.model.nv)
        for module, joints in self._joints().items():
            values = table[module].values
            for k, j in enumerate(joints if values else ()):
                if j is not None:
                    q[j], v[j] = values[2 * k : 2 * k + 2]
        return q, v

    def torques(
        self, table: Mapping[Address, Entry], t: float, reference: Any = None
    ) -> dict[Address, tuple[float, ...]]:
        """A torque for every joint of every module with joints. [N m, N]

        Args:
            table: Holds what modules measured.
            t: [s]
            reference: As for `Controller.command`; by default every joint stays where it is.
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
        """Where each module's own joints stand in q; None for one that is locked."""
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


class Mind:
    """Makes a `Robot` of every new survey; a controller takes over from the one before.

    What goes wrong in an update becomes a fault of the robot, and motors that no torque is known
    for are let go; the next update starts anew.

    Args:
        law: Key or class name of a law of `modurob.control`.
        gravity: (3,) in the base's frame. [m/s^2]
        settings: Of the law.

    Attributes:
        robot: The newest one.
        built: How many there were.
    """

    def __init__(self, law: str = "ComputedTorque", *, gravity: Any = GRAVITY, **settings: Any):
        self.law, self.gravity, self.settings = law_class(law), gravity, settings
        self.robot, self.built = Robot(), 0
        self._last: Controller | None = None
        self._body = Robot()  # as it was made, before any reading
        self._usable: dict[Address, Entry] = {}  # with the last good reading of each module
        self._bad: dict[Address, str] = {}  # faults of those that are not good now
        self._survey: Survey | None = None
        self._table: Mapping[Address, Entry] | None = None
        self._sent: dict[Address, tuple[int, tuple[float, ...]]] = {}  # after which report, what
        self._number = 0

    def warm_up(self) -> None:
        """Make a small robot and forget it: the first real one then needs no compilation."""
        model = Organism.start("giusti_b").model("physical", gravity=self.gravity)
        controller = self.law(model, **self.settings)
        controller.command(0.0, model.neutral(), np.zeros(model.nv))
        controller.certificate()

    def update(self, state: CoordinatorState, t: float) -> list[Message]:
        """Look at what the coordinator knows; commands for those whose torques change.

        Args:
            state: Of the coordinator.
            t: For the controller. [s]
        """
        if not state.ready:
            return []
        if state.survey is not self._survey:
            self._body = self._made(state.survey, state.table)
            self.built += 1
        wanted, faults = self._answer(state.table, t)
        # motors that were driven and have no torque now are let go
        wanted |= {m: () for m in self._sent if m in state.survey.modules and m not in wanted}
        commands = {m: (_report_number(state.table[m]), tau) for m, tau in wanted.items()}
        changed = {m: c for m, c in commands.items() if self._sent.get(m) != c}
        if state.survey is not self._survey or faults != self.robot.assembly.faults:
            assembly = self._body.assembly._replace(faults=faults)
            self.robot = replace(self._body, assembly=assembly, released=frozenset(self._bad))
        self._sent, self._table, self._survey = commands, state.table, state.survey
        if not changed:
            return []
        self._number = following(self._number)
        return torque_messages({m: tau for m, (_, tau) in changed.items()}, self._number)

    def _answer(
        self, table: Mapping[Address, Entry], t: float
    ) -> tuple[dict[Address, tuple[float, ...]], tuple[str, ...]]:
        """Return torques for the modules' readings, and all faults."""
        body = self._body
        bad = body.bad_readings(table)
        # the first bad reading is named until a good one comes, not each of a stream
        self._bad = {module: self._bad.get(module, fault) for module, fault in bad.items()}
        last = {m: _at_rest(self._usable.get(m, Entry())) for m in bad}
        self._usable = {m: table[m] for m in body.assembly.names} | last
        faults = (*body.assembly.faults, *self._bad.values())
        try:
            torques = body.torques(self._usable, t)
        except Exception as error:
            return {}, (*faults, f"no torques, all motors are let go: {_line(error)}")
        return {m: tau for m, tau in torques.items() if m not in bad}, faults

    def is_current(self, state: CoordinatorState) -> bool:
        """Whether robot and torques follow from what the coordinator knows."""
        return state.ready and state.survey is self._survey and state.table is self._table

    def commanded(self) -> dict[Address, tuple[float, ...]]:
        """The newest torques. [N m, N]"""
        return {module: tau for module, (_, tau) in self._sent.items() if tau}

    def _made(self, survey: Survey, table: Mapping[Address, Entry]) -> Robot:
        robot = Robot()
        try:
            robot = Robot(assemble(survey, table))
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
    """Say why a reading cannot be used; nothing if it can."""
    if len(values) != expected:
        return f"has {len(values)} numbers, expected {expected}: q and v of each joint"
    if not all(map(math.isfinite, values)):
        return "is not finite"
    if any(abs(value) > LARGEST_READING for value in values):
        return f"is beyond {LARGEST_READING:g} rad, m, rad/s or m/s"
    return ""


def _at_rest(entry: Entry) -> Entry:
    """Return an entry with positions as they were measured and no velocities."""
    return entry._replace(values=tuple(x for q in entry.values[::2] for x in (q, 0.0)))


def _line(error: Exception) -> str:
    """One line on an error; those of others with their kind."""
    return str(error) if isinstance(error, ModurobError) else f"{type(error).__name__}: {error}"


def _report_number(entry: Entry) -> int:
    return 0 if entry.report is None else entry.report.number


def moving_joints(kind: ModuleType) -> tuple[str, ...]:
    """Names of a module's joints that move, in the order of its measurements and torques."""
    return tuple(joint.name for joint in kind.joints if joint.kind != "fixed")
