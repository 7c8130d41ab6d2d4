"""Base class of buses: modules, their dockings, and the coordinator's robot builder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from modurob.checks import is_number, positive
from modurob.distributed.bus import messages as msg
from modurob.distributed.bus.coordinator import PORT, CoordinatorState
from modurob.distributed.bus.node import HEARTBEAT_S, Node
from modurob.distributed.bus.robot import BusRobot, RobotBuilder, moving_joints
from modurob.distributed.transports import End
from modurob.errors import DockingError, StateError, UnknownNameError, choices
from modurob.modules import ModuleType, catalog
from modurob.modules.record import encode

BASE = "base"  # the coordinator; the first module is plugged into base.out
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
        gravity: (3,) in the base's frame. [m/s^2]
        settings: Of the law.
    """

    def __init__(
        self, law: str = "ComputedTorque", *, heartbeat: float = HEARTBEAT_S, **settings: Any
    ) -> None:
        self.heartbeat = positive("heartbeat", heartbeat, "seconds")
        self.builder = RobotBuilder(law, **settings)
        self.modules: dict[str, BusModule] = {}
        self.docked: dict[End, tuple[End, int]] = {}  # other end and turn [deg]
        self.torques: dict[str, tuple[float, ...]] = {}  # of motors now [N m, N]

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
        if name is None:
            number = len(self.modules)
            while (name := f"m{number}") in self.modules:
                number += 1
        if name in self.modules or name == BASE:
            raise StateError(f"there is a '{name}' already: give another name")
        if uid is None:
            used = [module.node.uid for module in self.modules.values()]
            uid = max([FIRST_UID, *used]) + 1
        node = Node(
            uid,
            encode(kind, uid) if record is None else record,
            name=name,
            ports=[str(label) for label in kind.docks],
            heartbeat=self.heartbeat,
        )
        self.modules[name] = module = BusModule(name, kind, node)
        self._launch(module)
        return name

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
        for name, port in (one, other):
            self._signal(name, msg.Plugged(port, turn))

    def unplug(self, what: str) -> None:
        """Disconnect a port such as ``m1.in``, or all ports of a module."""
        whole = what in self.modules or what == BASE
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
            for name, port in (end, other):
                self._signal(name, msg.Unplugged(port))

    def sense(self, name: str, q: Sequence[float], v: Sequence[float] | None = None) -> None:
        """Set the measured state of a module's joints.

        Args:
            name: Of the module.
            q, v: One number for each joint that moves; at rest by default. [rad, m, rad/s, m/s]
        """
        joints = moving_joints(self.module(name).kind)
        v = [0.0] * len(q) if v is None else v
        if not (len(q) == len(v) == len(joints) and all(map(is_number, (*q, *v)))):
            raise StateError(
                f"'{name}' has {len(joints)} joints ({choices(joints)}), got {list(q)}"
            )
        values = tuple(float(x) for pair in zip(q, v, strict=True) for x in pair)
        self._signal(name, msg.Sensed(values))

    @abstractmethod
    def kill(self, name: str) -> None:
        """Stop a module where it is: from now on it is silent."""

    @abstractmethod
    def close(self) -> None:
        """Switch everything off."""

    @property
    def robot(self) -> BusRobot:
        """Organism, model and controller as they are now."""
        return self.builder.robot

    @property
    @abstractmethod
    def coordinator(self) -> CoordinatorState:
        """State of the coordinator."""

    def settled(self, modules: int) -> bool:
        """Return whether the robot has so many modules and its motors their newest torques."""
        if not self.builder.is_current(self.coordinator):
            return False
        names = self.robot.assembly.names
        if len(names) != modules:
            return False
        wanted = self.builder.commanded()
        return all(self.torques.get(name) == wanted.get(m) for m, name in names.items())

    def module(self, name: str) -> BusModule:
        if name not in self.modules:
            raise UnknownNameError(f"no module '{name}': there are {choices(self.modules)}")
        return self.modules[name]

    def end(self, text: str) -> End:
        """(module, port) of a text such as ``m0.out``."""
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
    def _signal(self, name: str, signal: msg.Signal) -> None: ...

    def _driven(self, name: str, values: tuple[float, ...]) -> None:
        if values:
            self.torques[name] = values
        else:
            self.torques.pop(name, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()
