"""Base class of mass networks: measurements of modules, and their estimates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from modurob.distributed.mass.agent import MassAgent
from modurob.distributed.mass.properties import MassProperties, unpacked
from modurob.distributed.mass.state import (
    CONTACT_NUMBERS,
    MOST_CONTACTS,
    MassEstimate,
    moved_contacts,
)
from modurob.distributed.transports import End
from modurob.errors import DockingError, StateError, UnknownNameError, choices
from modurob.model import Model
from modurob.organism import Organism
from modurob.organism.docking import Docking


class Network(ABC):
    """Modules of an organism that estimate the mass properties of the whole.

    Args:
        organism: The modules and their dockings.
        options: See `MassAgent`.

    Attributes:
        agents: By module.
    """

    agent_class: ClassVar[type[MassAgent]] = MassAgent

    def __init__(self, organism: Organism, **options: Any) -> None:
        if not isinstance(organism, Organism):
            raise StateError(f"a network takes an Organism, got {type(organism).__name__}")
        self.organism = organism
        self.agents = {
            name: self.agent_class(organism.kind(name), **self._settings(name, options))
            for name in organism
        }

    def _settings(self, module: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Settings of a module's agent."""
        return options

    @property
    def joint_names(self) -> tuple[str, ...]:
        """All joints, module by module: ``m3.pitch``."""
        return tuple(
            f"{name}.{joint}"
            for name, agent in self.agents.items()
            for joint in agent.body.joint_names
        )

    def measure(self, q: Any, v: Any = None, *, model: Model | None = None) -> None:
        """Set the measured joints of all modules.

        Args:
            q: By joint name, or an array in the order of `joint_names` or of `model`. [rad, m]
            v: Likewise, the velocities; at rest by default.
            model: In whose order the arrays are. Joints that it does not have are locked: at zero,
                or at the only position within their limits.
        """
        names = self.joint_names if model is None else model.joint_names
        q, v = _by_name("q", q, names, self.joint_names), _by_name("v", v, names, self.joint_names)
        for name, agent in self.agents.items():
            own = [f"{name}.{joint}" for joint in agent.body.joint_names]
            rest = dict(zip(own, agent.body.rest.tolist(), strict=True))
            here = [q.get(joint, rest[joint]) for joint in own]
            self._event(name, {"q": here, "v": [v.get(joint, 0.0) for joint in own]})

    def touch(
        self,
        module: str,
        contacts: Any,
        pose: Any,
        *,
        friction: float = 1.0,
        body: str | None = None,
    ) -> None:
        """Put a module in contact with the ground.

        Args:
            contacts: (k, 3) points in the module's frame, the normal being up; or (k, 7) with
                normals in the module's frame and coefficients of friction. [m]
            pose: (4, 4) the module in the world, sensed where it is in contact.
            friction: Coefficient of all contacts, where they have none of their own.
            body: The body that touches; the module's first by default.
        """
        agent, pose = self._agent(module), np.asarray(pose, dtype=float)
        points = np.atleast_2d(np.asarray(contacts, dtype=float))
        if points.shape[1] == 3:
            up = np.broadcast_to(pose[2, :3], points.shape)
            points = np.column_stack([points, up, np.full(len(points), friction)])
        if points.shape[1] != CONTACT_NUMBERS or not 1 <= len(points) <= MOST_CONTACTS:
            raise StateError(
                f"contacts are 1 to {MOST_CONTACTS} rows of 3 or 7 numbers, got {points.shape}"
            )
        index = 0 if body is None else agent.body.kind.body_index(body)
        self._event(module, {"contacts": points, "pose": pose, "body": index})

    def lift(self, module: str) -> None:
        """Take a module off the ground."""
        self._agent(module)
        self._event(module, {"lift": True})

    @abstractmethod
    def knowledge(self, module: str) -> MassEstimate:
        """Estimate of the whole by a module."""

    def total(self, module: str) -> MassProperties:
        """The whole as one module estimates it, in its own frame."""
        return unpacked(self.knowledge(module).total)

    def beyond(self, module: str, port: int | str) -> MassProperties:
        """Everything beyond a connector, in the module's frame; nothing if it is free."""
        agent = self._agent(module)
        if str(port) not in agent.body.labels:
            labels = choices(agent.body.labels)
            raise UnknownNameError(f"no port {port!r} on '{module}': ports are {labels}")
        found = self.knowledge(module).beyond.get(str(port))
        return unpacked(np.zeros((4, 4)) if found is None else found)

    def total_in_world(self, module: str) -> MassProperties:
        """The whole as one module estimates it, in the world."""
        known = self.knowledge(module)
        return unpacked(known.total).moved(_world_pose(module, known))

    def contacts_in_world(self, module: str) -> np.ndarray:
        """(k, 7) all points of contact at one module: position, normal, friction."""
        known = self.knowledge(module)
        return moved_contacts(_world_pose(module, known), known.contacts)

    def world_pose(self, module: str) -> np.ndarray:
        """(4, 4) a module in the world, as it estimates it."""
        return _world_pose(module, self.knowledge(module))

    @property
    def leader(self) -> str | None:
        """The module that leads; None while there is none, or several."""
        leading = [n for n in self._running() if self.knowledge(n).leads]
        return leading[0] if len(leading) == 1 else None

    def _agent(self, module: str) -> MassAgent:
        if module not in self.agents:
            raise UnknownNameError(f"no module {module!r}: modules are {choices(self.agents)}")
        return self.agents[module]

    @abstractmethod
    def _event(self, module: str, event: Mapping[str, Any]) -> None:
        """Change the measurements of a module; see `MassAgent.after`."""

    @abstractmethod
    def _running(self) -> list[str]:
        """Modules whose programs run."""


def _world_pose(module: str, known: MassEstimate) -> np.ndarray:
    if known.T_wm is None:
        raise StateError(
            f"'{module}' has no estimate of the world's frame: no module in contact leads yet; "
            "touch() one, and let some time pass"
        )
    return known.T_wm


def _by_name(
    what: str, values: Any, names: Sequence[str], known: Sequence[str]
) -> Mapping[str, float]:
    if values is None:
        return {}
    if isinstance(values, Mapping):
        unknown = [name for name in values if name not in known]
        if unknown:
            raise UnknownNameError(f"no joint '{unknown[0]}': joints are {choices(known)}")
        return values
    array = np.asarray(values, dtype=float)
    if array.shape != (len(names),):
        raise StateError(f"{what} has shape {array.shape}, expected ({len(names)},), a joint each")
    return dict(zip(names, array.tolist(), strict=True))


def ends_of(entry: Docking) -> tuple[End, End]:
    """The two connectors of a docking."""
    return (entry.parent, str(entry.port)), (entry.child, str(entry.child_port))


def links_of(organism: Organism) -> list[tuple[End, End]]:
    """The dockings of an organism as pairs of ends."""
    return [ends_of(entry) for entry in organism.dockings]


def check_tree(links: Iterable[tuple[End, End]]) -> None:
    """Raise an error that names a loop of links: sums would count modules twice."""
    neighbors: dict[str, list[str]] = {}
    for (a, port_a), (b, port_b) in links:
        path = _path(neighbors, a, b)
        if path is not None:
            raise DockingError(
                f"the link from port {port_a} of '{a}' to port {port_b} of '{b}' closes the loop "
                f"{' - '.join([*path, a])}; the mass network needs a tree: undock one of them"
            )
        neighbors.setdefault(a, []).append(b)
        neighbors.setdefault(b, []).append(a)


def _path(neighbors: dict[str, list[str]], start: str, end: str) -> list[str] | None:
    """Modules from one to another, or None."""
    before, queue = {start: ""}, [start]
    for module in queue:  # grows while it is walked
        for neighbor in neighbors.get(module, ()):
            if neighbor not in before:
                before[neighbor] = module
                queue.append(neighbor)
    path = [end] if end in before else []
    while path and path[-1] != start:
        path.append(before[path[-1]])
    return path[::-1] or None
