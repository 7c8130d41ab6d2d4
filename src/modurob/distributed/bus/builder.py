"""Builder of the robot on the bus: model, controller and torques for every new survey."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from modurob.checks import gravity_vector
from modurob.control import Controller, law_class
from modurob.distributed.agent import Message
from modurob.distributed.bus import messages as msg
from modurob.distributed.bus.assembly import assemble
from modurob.distributed.bus.coordinator import CoordinatorState
from modurob.distributed.bus.messages import Address
from modurob.distributed.bus.operation import Operation
from modurob.distributed.bus.robot import BusRobot
from modurob.distributed.bus.survey import BusEntry, Survey
from modurob.distributed.reliable import following
from modurob.errors import ModurobError, StateError, choices
from modurob.model import Model
from modurob.organism import Organism

SETTLING_S = 0.5  # of errors in the clocked loop, if nothing else is asked for
GRAVITY = (0.0, 0.0, -9.81)  # [m/s^2]
Torques = dict[Address, tuple[float, ...]]


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
        operation: What the robot does.
        built: Count of robots.
    """

    def __init__(self, law: str = "ComputedTorque", *, gravity: Any = GRAVITY, **settings: Any):
        self.law, self.gravity = law_class(law), gravity_vector(gravity)
        self.settings = _with_gains(self.law, settings)
        self.operation = Operation(self.settings.get("sample_time", 0.0))
        self.robot, self.built = BusRobot(), 0
        self._building = threading.Lock()  # a law is changed between two bodies
        self._last: Controller | None = None
        self._usable: dict[Address, BusEntry] = {}  # with the last good reading of each module
        self._bad: dict[Address, str] = {}  # faults of those that are not good now
        self._survey: Survey | None = None
        self._records: tuple[bytes | None, ...] = ()
        self._table: Mapping[Address, BusEntry] | None = None
        self._sent: dict[Address, tuple[int, tuple[float, ...]]] = {}  # after which report, what
        self._number = 0

    def warm_up(self) -> None:
        """Build a small robot, so that the first real one needs no compilation."""
        model = Organism.start("giusti_b").model("physical", gravity=self.gravity)
        plain = all(np.ndim(value) == 0 for value in self.settings.values())
        controller = self.law(model, **(self.settings if plain else {}))  # gains of other joints
        controller.command(0.0, model.neutral(), np.zeros(model.nv))
        controller.certificate()

    def change_law(self, law: str, **settings: Any) -> None:
        """Control with another law or other gains from now on; an error leaves all as it is."""
        kind = law_class(law)
        if self.operation.has_own_law:
            raise StateError("a coordinator in C keeps its law and gains: take the one in Python")
        if "sample_time" in self.settings:
            settings = {"sample_time": self.settings["sample_time"], **settings}
        settings = _with_gains(kind, settings)
        with self._building:
            model = self.operation.robot.model
            if model is None or not model.nv:
                raise StateError("a law needs a robot with joints: plug modules together first")
            controller = kind(model, **settings)
            certificate = controller.certificate()
            self.law, self.settings, self._last = kind, settings, controller
            body = replace(self.operation.robot, controller=controller, certificate=certificate)
            self.operation.adopt(body)
            self.robot = replace(body, assembly=self.robot.assembly)

    def rebuild(self, state: CoordinatorState) -> bool:
        """Build the robot of a new survey; whether there was one."""
        survey = state.survey
        records = tuple(state.table[m].record for m in survey.modules if m in state.table)
        if not state.ready or (survey is self._survey and records == self._records):
            return False
        with self._building:
            robot = self._made(survey, state.table)
            self._adopt(robot)
            self._survey, self._records = survey, records
            self.built += 1
            if robot.controller is not None and robot.certificate is None:
                self._adopt(_certified(robot))  # which takes a while: joints are held meanwhile
        return True

    def _adopt(self, robot: BusRobot) -> None:
        self.operation.adopt(robot)
        self.robot = robot

    def commands(self, state: CoordinatorState, t: float) -> Torques:
        """Torques of all motors, for the controller's time t; none lets a module's motors go."""
        robot = self.operation.robot
        wanted, faults = self._answer(robot, state, t)
        # motors that were driven and have no torque now are let go
        wanted |= {m: () for m in self._sent if m in state.survey.modules and m not in wanted}
        if faults != self.robot.assembly.faults or self.robot.model is not robot.model:
            assembly = robot.assembly._replace(faults=faults)
            self.robot = replace(robot, assembly=assembly, released=frozenset(self._bad))
        self._table = state.table
        entries = ((m, state.table.get(m, BusEntry()), tau) for m, tau in wanted.items())
        self._sent = {m: (entry.reported.number, tau) for m, entry, tau in entries}
        return wanted

    def update(self, state: CoordinatorState, t: float) -> list[Message]:
        """Return commands for the modules whose torques change, for the controller's time t. [s]

        This is the loop without a clock: it answers when something has changed.
        """
        if not state.ready:
            return []
        self.rebuild(state)
        before = self._sent
        wanted = self.commands(state, t)
        changed = {m: tau for m, tau in wanted.items() if before.get(m) != self._sent[m]}
        if not changed:
            return []
        self._number = following(self._number)
        return [msg.own(msg.Torque(m, self._number, tau)) for m, tau in changed.items()]

    def _answer(
        self, body: BusRobot, state: CoordinatorState, t: float
    ) -> tuple[Torques, tuple[str, ...]]:
        """Return torques for the modules' readings, and all faults."""
        table = state.table
        bad = body.bad_readings(table)
        # the first bad reading is named until a good one comes, not each of a stream
        self._bad = {module: self._bad.get(module, fault) for module, fault in bad.items()}
        last = {m: _at_rest(self._usable.get(m, BusEntry())) for m in bad}
        everyone = (*body.assembly.names, *body.assembly.silent)
        self._usable = {m: table.get(m, BusEntry()) for m in everyone} | last
        faults = (*body.assembly.faults, *self._bad.values())
        try:
            torques = self.operation.torques(self._usable, t, following(state.cycle))
        except Exception as error:
            return {}, (*faults, f"no torques, all motors are let go: {_line(error)}")
        return {m: tau for m, tau in torques.items() if m not in bad}, faults

    def is_built(self, state: CoordinatorState) -> bool:
        """Return whether the robot follows from the coordinator's survey."""
        return state.ready and state.survey is self._survey

    def is_current(self, state: CoordinatorState) -> bool:
        """Return whether robot and torques follow from the coordinator's state."""
        return self.is_built(state) and state.table is self._table

    def take_torques(self, torques: Torques) -> None:
        """Take the torques that a coordinator in another process has sent."""
        self._sent = {module: (0, tau) for module, tau in torques.items()}

    def commanded(self) -> Torques:
        """The newest torques. [N m, N]"""
        return {module: tau for module, (_, tau) in self._sent.items() if tau}

    def _made(self, survey: Survey, table: Mapping[Address, BusEntry]) -> BusRobot:
        robot = BusRobot()
        try:
            robot = BusRobot(assemble(survey, table))
            if robot.assembly.organism is None:
                return robot
            old = self.operation.robot
            if old.model is not None and _same_body(old, robot):
                return replace(old, assembly=robot.assembly)
            _refuse_springs(robot.assembly.organism)
            model = robot.assembly.organism.model("physical", gravity=self.gravity)
            robot = replace(robot, model=model)
            if not model.joint_names:
                return robot
            return replace(robot, controller=self._controller(model))
        except Exception as error:
            return _faulty(robot, error)

    def _controller(self, model: Model) -> Controller:
        if self._last is None or not isinstance(self._last, self.law):
            self._last = self.law(model, **self.settings)
        else:
            self._last = self._last.rebuilt(model)
        return self._last


def _refuse_springs(organism: Organism) -> None:
    """Refuse elastic joints: a module measures and drives one side of the spring only."""
    kinds = ((name, organism.kind(name)) for name in organism.modules)
    springs = [f"{name}.{j.name}" for name, kind in kinds for j in kind.joints if j.stiffness]
    if springs:
        raise StateError(
            f"elastic joints are not driven on the bus: {choices(springs)}; give these modules "
            "records without a stiffness"
        )


def _certified(robot: BusRobot) -> BusRobot:
    """A robot with the certificate of its controller; without a controller if that has none."""
    try:
        assert robot.controller is not None
        return replace(robot, certificate=robot.controller.certificate())
    except Exception as error:
        return _faulty(replace(robot, controller=None), error)


def _faulty(robot: BusRobot, error: Exception) -> BusRobot:
    faults = (*robot.assembly.faults, f"no controller: {_line(error)}")
    return replace(robot, assembly=robot.assembly._replace(faults=faults))


def _with_gains(law: type[Controller], settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of a law; a sampled one without gains settles fast enough to hold a robot."""
    makers = [kind.__init__ for kind in law.__mro__ if "__init__" in vars(kind)]
    known = {name for maker in makers for name in inspect.signature(maker).parameters}
    known -= {"self", "model", "args", "kwargs", "options"}
    if unknown := settings.keys() - known:
        raise StateError(
            f"{law.key} takes {choices(sorted(known))}, got {choices(sorted(unknown))}"
        )
    given = settings.keys() & law.parameters.keys()
    if "sample_time" in settings and "settling_time" in law.parameters and not given:
        return {**settings, "settling_time": SETTLING_S}
    return settings


def _same_body(old: BusRobot, new: BusRobot) -> bool:
    """Return whether only the modules that answer differ."""
    a, b = old.assembly.organism, new.assembly.organism
    if a is None or b is None or old.controller is None:
        return False
    return a.modules == b.modules and a == b


def _at_rest(entry: BusEntry) -> BusEntry:
    """Return an entry with its positions and no velocities."""
    return entry._replace(values=tuple(x for q in entry.values[::2] for x in (q, 0.0)))


def _line(error: Exception) -> str:
    """One line on an error; with its class if it is not one of ours."""
    return str(error) if isinstance(error, ModurobError) else f"{type(error).__name__}: {error}"
