"""What all buses share: modules, what is plugged into what, and the mind of the coordinator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from modurob.checks import is_number, positive
from modurob.distributed.bus.coordinator import PORT, CoordinatorState
from modurob.distributed.bus.mind import Mind, Robot, moving_joints
from modurob.distributed.bus.node import HEARTBEAT, Node
from modurob.distributed.transports.in_process import End
from modurob.errors import DockingError, StateError, UnknownNameError, choices
from modurob.modules import ModuleType, catalog
from modurob.modules.record import encode

BASE = "base"  # the coordinator; the first module is plugged into base.out
FIRST_UID = 0x0242AC110000  # of modules that nobody gave an id: a locally administered MAC address


class Module(NamedTuple):
    """A module that is there, plugged in or not."""

    name: str
    kind: ModuleType
    node: Node


class Bus(ABC):
    """Modules that carry their own data, and a coordinator that finds out what they are.

    Args:
        law: Key or class name of the coordinator's law, see `modurob.control`.
        heartbeat: Time in which a module is heard, several times. [s]
        gravity: (3,) in the base's frame. [m/s^2]
        settings: Of the law.
    """

    def __init__(
        self, law: str = "ComputedTorque", *, heartbeat: float = HEARTBEAT, **settings: Any
    ) -> None:
        self.heartbeat = positive("heartbeat", heartbeat, "seconds")
        self.mind = Mind(law, **settings)
        self.modules: dict[str, Module] = {}
        self.docked: dict[End, tuple[End, int]] = {}  # what holds what, with which turn [deg]
        self.torques: dict[str, tuple[float, ...]] = {}  # what motors do now [N m, N]

    # -- what a user does ----------------------------------------------------------------------

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
            record: What its memory holds, if not its kind's record.
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
        self.modules[name] = module = Module(name, kind, node)
        self._launch(module)
        return name

    def plug(self, a: str, b: str, turn: int = 0) -> None:
        """Dock two ports such as ``m0.out`` and ``m1.in``; the base is ``base.out``.

        Whether the connectors fit is found out by the coordinator.

        Args:
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
        self._plugged(one, other, turn)

    def unplug(self, what: str) -> None:
        """Let go of a port such as ``m1.in``, or of all ports of a module."""
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
            self._unplugged(end, other)

    def sense(self, name: str, q: Sequence[float], v: Sequence[float] | None = None) -> None:
        """Let a module's joints be here.

        Args:
            q, v: One number for each joint that moves; at rest by default. [rad, m, rad/s, m/s]
        """
        joints = moving_joints(self.module(name).kind)
        v = [0.0] * len(q) if v is None else v
        if not (len(q) == len(v) == len(joints) and all(map(is_number, (*q, *v)))):
            raise StateError(
                f"'{name}' has {len(joints)} joints ({choices(joints)}), got {list(q)}"
            )
        values = [float(x) for pair in zip(q, v, strict=True) for x in pair]
        self._measured(name, values)

    @abstractmethod
    def kill(self, name: str) -> None:
        """Let a module die where it is: from now on it is silent."""

    @abstractmethod
    def close(self) -> None:
        """Switch everything off."""

    # -- what there is to see ------------------------------------------------------------------

    @property
    def robot(self) -> Robot:
        """Organism, model and controller as they are now."""
        return self.mind.robot

    @property
    @abstractmethod
    def coordinator(self) -> CoordinatorState:
        """What the coordinator knows."""

    def settled(self, modules: int) -> bool:
        """Whether the robot has so many modules, is up to date, and its motors obey.

        Motors that the coordinator has no torque for (see `Robot.released`) are let go then.
        """
        if not self.mind.is_current(self.coordinator):
            return False
        names = self.robot.assembly.names
        if len(names) != modules:
            return False
        wanted = self.mind.commanded()
        return all(self.torques.get(name) == wanted.get(m) for m, name in names.items())

    def module(self, name: str) -> Module:
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

    # -- what each kind of bus does in its own way ---------------------------------------------

    @abstractmethod
    def _launch(self, module: Module) -> None: ...

    @abstractmethod
    def _plugged(self, one: End, other: End, turn: int) -> None: ...

    @abstractmethod
    def _unplugged(self, one: End, other: End) -> None: ...

    @abstractmethod
    def _measured(self, name: str, values: Sequence[float]) -> None: ...

    def _driven(self, name: str, values: tuple[float, ...]) -> None:
        if values:
            self.torques[name] = values
        else:
            self.torques.pop(name, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()
