"""View of a coordinator in C from its parent process: its tree, its state, commands to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.distributed.bus.coordinator import CoordinatorState
from modurob.distributed.bus.messages import Address, ModuleReport
from modurob.distributed.bus.operation import Operation, OperationStatus
from modurob.distributed.bus.robot import BusRobot
from modurob.distributed.bus.survey import BusEntry, Edge, Survey
from modurob.distributed.reliable import Newest
from modurob.errors import StateError, choices
from modurob.sim.trajectory import Trajectory

# in the order of mr_finding_kind
KINDS = "modules", "unreported", "unread", "unheard", "silent", "lost", "loops", "twins", "skewed"
PYTHON = "take the coordinator in Python"
REFUSALS = {-19: "not all joints have been measured", -20: "it leaves the limits of a joint"}


def told_state(
    state: CoordinatorState, tree: Mapping[str, Any], record: Callable[[str], bytes | None]
) -> CoordinatorState:
    """State of a coordinator in C as it has told its tree.

    Args:
        state: The one before.
        tree: The findings of its survey.
        record: From a module's name to the content of its memory.
    """
    found: dict[str, list[Any]] = {name: [] for name in Survey._fields}
    table: dict[Address, BusEntry] = {}
    for kind, *parent, port, uid, boot, child_port, turn, name in tree["findings"]:
        above, child = Address(int(parent[0], 16), parent[1]), Address(int(uid, 16), boot)
        edge = Edge(above, _text(port), child, _text(child_port), turn)
        name = _text(name)
        report = ModuleReport(child, 0, name, ())
        table.setdefault(child, BusEntry(report=report, record=record(name)))
        match KINDS[kind]:
            case "modules":
                found["modules"].append(child)
                found["edges"] += [edge] if above.uid else []  # the coordinator has id 0
            case "unheard":
                found["unheard"].append((above, edge.port))
            case "silent":
                found["silent"].append((above, edge.port, child))
            case "loops":
                found["loops"].append((edge, (above, child)))
            case "twins":
                found["twins"].append((above, child))
            case "unreported" | "unread" as what:
                found[what].append(child)
            case what:
                found[what].append(edge)
    new = state.copy()
    new.survey, new.ready = Survey(**{name: tuple(items) for name, items in found.items()}), True
    values = {m: (entry.values, entry.sensed) for m, entry in state.table.items()}
    for module in table.keys() & values.keys():
        old, sensed = values[module]
        table[module] = table[module]._replace(values=old, sensed=sensed)
    new.table = table
    new.revision += 1
    return new


def with_readings(state: CoordinatorState, modules: list[Any]) -> CoordinatorState:
    """State with the readings of the modules as they were told."""
    new = state.copy()
    new.table = dict(state.table)
    for uid, boot, _, values, _ in modules:
        address = Address(int(uid, 16), boot)
        if values and address in new.table:
            new.table[address] = new.table[address]._replace(
                values=tuple(values), sensed=Newest(0, 0.0)
            )
    return new


def _text(digits: str) -> str:
    return bytes.fromhex(digits).decode(errors="replace")


class NativeOperation(Operation):
    """Commands to a robot whose coordinator runs in C; see `Operation`.

    Args:
        period: Of the loop. [s]
        send: Sends a command to the coordinator.
    """

    has_own_law = True

    def __init__(self, period: float, send: Callable[[dict[str, Any]], None]) -> None:
        super().__init__(period)
        self._send = send
        self._number, self._what = 0, ""  # of the last command
        self._ended = ""
        self._told: dict[str, Any] = {
            "command": 0, "refused": 0, "mode": "idle", "progress": 0.0, "set_point": [],
        }  # fmt: skip
        self._table: Mapping[Address, BusEntry] = {}

    def tell(self, state: dict[str, Any], table: Mapping[Address, BusEntry]) -> None:
        """Take the state of the robot, and the readings of its modules."""
        with self._lock:
            self._told, self._table = state, table
            if self.robot.model is not None and len(state["set_point"]) == self.robot.model.nv:
                self._set_point = np.array(state["set_point"], float)
                q, _, known = self.robot.state(table)
                self._q = np.where(known, q, np.nan)

    def end(self, reason: str) -> None:
        """Refuse commands from now on: the coordinator's process has ended."""
        with self._lock:
            self._ended = reason

    def check_alive(self) -> None:
        """Raise a StateError if the coordinator's process has ended."""
        if self._ended:
            raise StateError(self._ended)

    def adopt(self, robot: BusRobot) -> None:
        with self._lock:
            super().adopt(robot)
            self.tell(self._told, self._table)

    def hold(self) -> None:
        with self._lock:
            self._demand_joints()
        self._order({"hold": True}, "")

    def relax(self) -> None:
        self._demand_robot()
        self._order({"relax": True}, "")

    def goto(self, q: ArrayLike, seconds: float) -> None:
        path, what = self._path_to(q, seconds)
        self._refuse_excess(path, self._demand_joints(), seconds, what)
        self._order({"goto": path(math.inf).q.tolist(), "seconds": float(seconds)}, what)

    def follow(self, reference: Any, seconds: float = math.inf, what: str = "follow") -> None:
        raise StateError(f"a coordinator in C has goto, hold and relax: {PYTHON} to follow")

    def record(self) -> None:
        raise StateError(f"a coordinator in C records nothing: {PYTHON}")

    def recorded(self) -> Trajectory:
        raise StateError("nothing is being recorded: begin with record")

    def status(self) -> OperationStatus:
        with self._lock:
            told, model = self._told, self.robot.model
            mode, reason = told["mode"], ""
            if self._ended:
                mode, reason = "idle", self._ended
            elif left_out := self._left_out():
                reason = f"a coordinator in C has no room for {choices(left_out)}: {PYTHON}"
            elif told["command"] != self._number:  # not carried out yet
                mode = "move" if self._what else mode
            elif told["refused"]:
                reason = f"refused: {REFUSALS.get(told['refused'], 'wrong numbers')}"
            elif told.get("lost"):
                reason = f"{self._what} ended: none of its joints is left"
            if mode == "wait":
                silent = self.robot.assembly.silent.values()
                reason = f"waits for {f'an answer of {choices(silent)}' if silent else 'readings'}"
            motion = self._what if mode in ("move", "wait") else ""
            names = () if model is None else model.joint_names
            q, aims = self._q.copy(), self._set_point.copy()
            return OperationStatus(mode, motion, told["progress"], reason, names, aims, q)

    def _left_out(self) -> list[str]:
        """Modules of the robot here that the one in C does not have: they exceed its sizes."""
        held = {Address(int(uid, 16), boot) for uid, boot, *_ in self._told.get("modules", ())}
        return [name for module, name in self.robot.assembly.names.items() if module not in held]

    def missing(self) -> tuple[str, ...]:
        if self._ended:
            return (self._ended,)
        return (f"measured delays, which a coordinator in C does not tell: {PYTHON}",)

    def _order(self, command: dict[str, Any], what: str) -> None:
        self.check_alive()
        with self._lock:
            self._number += 1
            self._what = what
            self._send({"command": self._number, **command})
