"""Base class of buses: modules, their dockings, and the coordinator's robot builder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from numbers import Real
from typing import Any, NamedTuple, Self, get_args

import numpy as np

from modurob.checks import LARGEST_DATA, as_floats, inside, is_number, is_whole, positive, takes
from modurob.distributed.agent import Message
from modurob.distributed.bus import messages as msg
from modurob.distributed.bus.assembly import overflow
from modurob.distributed.bus.builder import RobotBuilder
from modurob.distributed.bus.coordinator import PORT, Coordinator, CoordinatorState
from modurob.distributed.bus.node import HEARTBEAT_S, Node
from modurob.distributed.bus.operation import Operation
from modurob.distributed.bus.robot import BusRobot, moving_joints
from modurob.distributed.drive import MOST_JOINTS
from modurob.distributed.plant import BASE, PLANT, DriveFault, PlantOptions
from modurob.distributed.transports import End
from modurob.errors import (
    DatasheetError,
    DockingError,
    StateError,
    UnknownNameError,
    choices,
)
from modurob.modules import ModuleType, catalog
from modurob.modules.record import encode
from modurob.organism.organism import checked_name

PERIOD_S = 2e-3  # of the coordinator's clock
PERIODS_S, HEARTBEATS_S = (1e-4, 1.0), (0.01, 3600.0)  # least and most that make sense
FIRST_UID = 0x0242AC110000  # of modules without an id: a locally administered MAC address


class BusModule(NamedTuple):
    """A module that is switched on, plugged in or not."""

    name: str
    kind: ModuleType
    node: Node


class Bus(ABC):
    """Modules that carry their own data, and a coordinator that collects it.

    Args:
        law: Key or class name of the coordinator's law, see `modurob.control`.
        heartbeat: Time in which a module is heard, several times. [s]
        plant: A simulated robot behind the modules, driven by a clocked loop; without one, `sense`
            sets the readings, and torques follow when they change.
        period: Of that clock. [s]
        gravity: (3,) in the base's frame. [m/s^2]
        settings: Of the law.

    Attributes:
        operation: What the robot does: it holds a pose, follows a motion, or lets go.
    """

    def __init__(
        self,
        law: str = "ComputedTorque",
        *,
        heartbeat: float = HEARTBEAT_S,
        plant: PlantOptions | None = None,
        period: float = PERIOD_S,
        **settings: Any,
    ) -> None:
        self.heartbeat = inside("heartbeat", heartbeat, *HEARTBEATS_S, "seconds")
        self.period = inside("period", period, *PERIODS_S, "seconds")
        if plant is not None and not isinstance(plant, PlantOptions):
            raise StateError(f"plant is PlantOptions(...) or None, got {plant!r}")
        self.plant = plant
        if "sample_time" in settings:
            raise StateError("laws of a bus are sampled with its period: give period instead")
        if self.clocked:  # so that certificates count with the sampling
            settings = {"sample_time": self.period, **settings}
        self.builder = RobotBuilder(law, **settings)
        self._root = Coordinator(self.heartbeat)
        self.modules: dict[str, BusModule] = {}
        self.docked: dict[End, tuple[End, int]] = {}  # other end and turn [deg]
        self.torques: dict[str, tuple[float, ...]] = {}  # of motors now [N m, N]
        self._replaced: set[msg.Address] = set()  # of modules before they were started again

    def start(
        self,
        kind: str | ModuleType,
        name: str | None = None,
        *,
        uid: int | None = None,
        record: bytes | None = None,
    ) -> str:
        """Switch a module on, plugged into nothing; its name.

        Args:
            kind: A catalog name or a datasheet.
            name: m0, m1 ... by default.
            uid: Its id; the next free one by default.
            record: Content of its memory, if not its kind's record.
        """
        kind = catalog[kind] if isinstance(kind, str) else kind
        if not isinstance(kind, ModuleType):
            raise StateError(f"a kind is a catalog name or a ModuleType, got {kind!r}")
        _refuse_overflow(kind)
        if (joints := len(moving_joints(kind))) > MOST_JOINTS:
            raise StateError(
                f"a module of the bus has up to {MOST_JOINTS} joints, {kind.name} has {joints}"
            )
        if name is None:
            number = len(self.modules)
            while (name := f"m{number}") in self.modules:
                number += 1
        if self.plant is not None:
            checked_name(name)
        if name in (*self.modules, BASE, PLANT):
            raise StateError(f"there is a '{name}' already: give another name")
        if not (record is None or isinstance(record, bytes)):
            raise StateError(f"a record is bytes, see modurob.modules.record, got {record!r:.80}")
        if is_whole(uid) and uid == 0:
            raise StateError("id 0 is that of the coordinator: give another one")
        if uid is None:
            used = [module.node.uid for module in self.modules.values()]
            uid = max([FIRST_UID, *used]) + 1
        if not is_whole(uid):
            raise StateError(f"uid is a whole number, got {uid!r:.60}")
        node = Node(
            uid,
            encode(kind, uid) if record is None else record,
            name=name,
            ports=[str(label) for label in kind.docks],
            heartbeat=self.heartbeat,
        )
        self.modules[name] = module = BusModule(name, kind, node)
        try:
            self._launch(module)
        except BaseException:
            del self.modules[name]
            raise
        if self.plant is not None:
            self._plant({"add": name, "kind": kind.model_dump(mode="json")})
        if not self.clocked and (joints := moving_joints(kind)):
            self._signal(name, msg.Sensed((0.0, 0.0) * len(joints)))
        return name

    def restart(self, name: str) -> None:
        """Switch a module on again after `kill`, docked as it is; its memory is kept."""
        module = self.module(name)
        self._replaced |= {m for m, n in self.robot.assembly.names.items() if n == name}
        self._launch(module)
        for end, (other, turn) in list(self.docked.items()):
            if end[0] == name:
                self._connect(end, other)
                self._signal(name, msg.Plugged(end[1], turn))

    def plug(self, a: str, b: str, turn: int = 0) -> None:
        """Dock two ports such as ``m0.out`` and ``m1.in``; the base is ``base.out``.

        The coordinator checks whether the connectors fit.

        Args:
            a, b: The ports.
            turn: About the port's normal. [deg]
        """
        one, other = self.end(a), self.end(b)
        if not (isinstance(turn, int) and 0 <= turn < 360):
            raise DockingError(f"turn is whole degrees from 0 to 359, got {turn!r}")
        for text, end in ((a, one), (b, other)):
            if end in self.docked or one == other:
                held, _ = self.docked.get(end, (end, 0))
                raise DockingError(f"{text} already holds {'.'.join(held)}")
        self.docked[one], self.docked[other] = (other, turn), (one, turn)
        self._connect(one, other)
        if self.plant is not None:
            self._plant({"dock": [one, other, turn]})
        for name, port in (one, other):
            self._signal(name, msg.Plugged(port, turn))

    def unplug(self, what: str) -> None:
        """Disconnect a port such as ``m1.in``, or all ports of a module."""
        whole = isinstance(what, str) and (what in self.modules or what == BASE)
        ends = [end for end in self.docked if what == end[0]] if whole else [self.end(what)]
        ends = [end for end in ends if end in self.docked]
        if not ends:
            raise DockingError(f"{what} is not plugged in")
        for end in ends:
            if end not in self.docked:  # both ends at one module
                continue
            other, _ = self.docked.pop(end)
            self.docked.pop(other)
            self._disconnect(end, other)
            if self.plant is not None:
                self._plant({"undock": [end, other]})
            for name, port in (end, other):
                self._signal(name, msg.Unplugged(port))

    def sense(self, name: str, q: Sequence[float], v: Sequence[float] | None = None) -> None:
        """Set the measured state of a module's joints.

        Args:
            name: Of the module.
            q, v: One number for each joint that moves; at rest by default. [rad, m, rad/s, m/s]
        """
        if self.clocked:
            raise StateError("drives measure the joints of this bus: move it with goto or push")
        joints = moving_joints(self.module(name).kind)
        values = as_floats([q, [0.0] * len(joints) if v is None else v])
        if values.shape != (2, len(joints)) or not np.isfinite(values).all():
            given = q if v is None else (q, v)
            raise StateError(f"'{name}' has {len(joints)} joints ({choices(joints)}), got {given}")
        self._signal(name, msg.Sensed(tuple(values.T.ravel().tolist())))

    # -- the plant ---------------------------------------------------------------------------------

    def push(self, what: str, effort: float | Sequence[float], seconds: float) -> None:
        """Push the plant's robot for some time.

        Args:
            what: A joint such as ``m1.joint``, or a module.
            effort: Torque on the joint [N m, N], or force (3,) on the module's origin [N].
            seconds: How long.
        """
        end = positive("seconds", seconds, "seconds")
        module = self.module(what.partition(".")[0] if isinstance(what, str) else what)
        if isinstance(effort, Real) and is_number(effort):
            joints = [f"{module.name}.{joint}" for joint in moving_joints(module.kind)]
            if what not in joints:
                raise UnknownNameError(f"no joint '{what}': joints are {choices(joints)}")
            self._world({"push": {"joint": what, "torque": float(effort)}, "seconds": end})
            return
        force = as_floats(effort)
        if force.shape != (3,) or not np.isfinite(force).all():
            raise StateError(f"a push is a torque or a force of three numbers, got {effort!r}")
        self._world(
            {"push": {"module": self.module(what).name, "force": force.tolist()}, "seconds": end}
        )

    def payload(self, name: str, mass: float) -> None:
        """Put a load on the far body of a module; no model knows of it. [kg]"""
        self.module(name)
        self._world({"payload": name, "mass": inside("mass", mass, 0.0, LARGEST_DATA, "kg")})

    def fault(self, name: str, kind: DriveFault) -> None:
        """Let the drives of a module be ``stuck`` or ``limp``, or whole again with ``none``."""
        self.module(name)
        if not isinstance(kind, str) or kind not in get_args(DriveFault):
            raise UnknownNameError(f"no fault '{kind}': faults are {choices(get_args(DriveFault))}")
        self._world({"fault": name, "as": kind})

    def _world(self, event: dict[str, Any]) -> None:
        if self.plant is None:
            raise StateError("this bus has no plant: there is nothing to push or to load")
        self._plant(event)

    # -- memory ------------------------------------------------------------------------------------

    def write(self, name: str, /, **parameters: Any) -> None:
        """Set data in a module's memory, kept when it restarts; the model follows.

        Args:
            name: A module of the robot.
            parameters: See `ModuleType.with_parameters`: mass, size, inertia, viscous, ...
        """
        module = self.module(name)
        address = next((a for a, n in self.robot.assembly.names.items() if n == name), None)
        if address is None:
            raise StateError(f"'{name}' is not in the robot: plug it in before writing to it")
        organism = self.robot.assembly.organism
        kind = module.kind if organism is None else organism.kind(name)
        kind = kind.with_parameters(**parameters)
        _refuse_overflow(kind)
        record = encode(kind, module.node.uid)
        for piece in msg.pieces(record):
            self._signal(BASE, msg.Write(address, *piece))

    def _stored(self, name: str, record: bytes) -> None:
        """Keep a module's memory for its next start."""
        self.modules[name].node.record = record

    @abstractmethod
    def kill(self, name: str) -> None:
        """Stop a module where it is: from now on it is silent."""

    @abstractmethod
    def close(self) -> None:
        """Switch everything off."""

    @property
    def clocked(self) -> bool:
        """True for a loop with a clock.

        A bus without drives has none: its torques are a function of the readings set last, whatever
        was lost or came late, so that trials of messages and of discovery compare them bit for bit.
        """
        return self.plant is not None

    @property
    def operation(self) -> Operation:
        return self.builder.operation

    @property
    def robot(self) -> BusRobot:
        """Organism, model and controller as they are now."""
        return self.builder.robot

    @property
    @abstractmethod
    def coordinator(self) -> CoordinatorState:
        """State of the coordinator."""

    @staticmethod
    def _check_condition(until: object) -> None:
        if not takes(until):
            raise StateError(
                "a condition is a function without arguments such as lambda: bus.settled(3), got "
                f"{until!r:.60}"
            )

    def settled(self, modules: int) -> bool:
        """Return whether the robot has so many modules and its motors their newest torques."""
        names = self.robot.assembly.names
        if self._replaced.intersection(names):  # a module that has started again is not found yet
            return False
        if self.clocked:
            measured = bool(np.isfinite(self.operation.status().q).all())
            return self.builder.is_built(self.coordinator) and len(names) == modules and measured
        if not self.builder.is_current(self.coordinator) or len(names) != modules:
            return False
        wanted = self.builder.commanded()
        return all(self.torques.get(name) == wanted.get(m) for m, name in names.items())

    def module(self, name: str) -> BusModule:
        if not isinstance(name, str) or name not in self.modules:
            raise UnknownNameError(f"no module {name!r}: there are {choices(self.modules)}")
        return self.modules[name]

    def end(self, text: str) -> End:
        """(module, port) of a text such as ``m0.out``."""
        if not isinstance(text, str):
            raise DockingError(f"a port is a text such as 'm0.out', got {text!r}")
        name, dot, port = text.partition(".")
        ports = (PORT,) if name == BASE else self.module(name).node.ports
        if not dot or port not in ports:
            raise UnknownNameError(
                f"no port '{text}': ports of '{name}' are {choices(f'{name}.{p}' for p in ports)}"
            )
        return name, port

    @abstractmethod
    def _launch(self, module: BusModule) -> None: ...

    @abstractmethod
    def _connect(self, one: End, other: End) -> None: ...

    @abstractmethod
    def _disconnect(self, one: End, other: End) -> None: ...

    @abstractmethod
    def _signal(self, name: str, signal: msg.Signal | msg.BusMessage) -> None: ...

    @abstractmethod
    def _plant(self, event: dict[str, Any]) -> None: ...

    def _cycle(self, state: CoordinatorState, now: float) -> tuple[CoordinatorState, list[Message]]:
        """Begin a cycle of the clocked loop; without a robot, only for motors to be let go."""
        torques = self.builder.commands(state, now)
        if not torques and self.robot.model is None:
            return state, []
        return self._root.cycle(state, torques, now)

    def _driven(self, name: str, values: tuple[float, ...]) -> None:
        if values:
            self.torques[name] = values
        else:
            self.torques.pop(name, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


def _refuse_overflow(kind: ModuleType) -> None:
    if flaw := overflow(kind):
        raise DatasheetError(f"{kind.name}: {flaw}")
