"""The tree of modules as they reported it: dockings, and what is missing or contradictory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from modurob.distributed.bus.messages import Address, ModuleReport, Neighbor, Status
from modurob.distributed.reliable import Newest


class BusEntry(NamedTuple):
    """Newest data from a module."""

    report: ModuleReport | None = None
    record: bytes | None = None  # content of its memory; None until all of it is there
    pieces: tuple[tuple[int, bytes], ...] = ()  # of the record, by offset
    values: tuple[float, ...] = ()  # q, v, q, v ... of its joints [rad, m, rad/s, m/s]
    reported: Newest = Newest()  # number and time of the report
    sensed: Newest = Newest()  # number and time of the values
    cycle: int = 0  # of the clocked loop that the values answer
    heard_at: float = -math.inf  # [s] time of its last message

    @property
    def has_reading(self) -> bool:
        """True for a module that has measured its joints."""
        return self.sensed.at > -math.inf


class Edge(NamedTuple):
    """A docking, seen from the coordinator. [turn in deg]"""

    parent: Address
    port: str
    child: Address
    child_port: str
    turn: int


class Survey(NamedTuple):
    """The tree as far as it was reported."""

    modules: tuple[Address, ...] = ()  # base first, each after its parent
    edges: tuple[Edge, ...] = ()  # one for each module but the base
    unreported: tuple[Address, ...] = ()  # without a report so far
    unread: tuple[Address, ...] = ()  # without a record so far
    unheard: tuple[tuple[Address, str], ...] = ()  # (module, port) of a neighbor not heard so far
    silent: tuple[tuple[Address, str, Address], ...] = ()  # (module, port, neighbor heard before)
    lost: tuple[Edge, ...] = ()  # dockings of silent modules and beyond, as last reported
    loops: tuple[tuple[Edge, tuple[Address, ...]], ...] = ()  # each with the modules around it
    twins: tuple[tuple[Address, Address], ...] = ()  # with one id; the second is left out
    skewed: tuple[Edge, ...] = ()  # whose two sides report different turns; left out

    @property
    def complete(self) -> bool:
        """True when every module that was mentioned has reported itself."""
        return not (self.unreported or self.unread or self.unheard)


def survey(own: Address, base: Neighbor | None, table: Mapping[Address, BusEntry]) -> Survey:
    """Walk the tree from the docking at the coordinator's own address.

    Breadth first, ports in order, so that equal trees give equal surveys.
    """
    walk = _Walk(own, table)
    if base is not None:
        walk.follow(own, base)
    for module in (modules := walk.found["modules"]):  # grows while it is walked
        report = table[module].report
        for neighbor in report.neighbors if report else ():
            if (module, neighbor.port) not in walk.known:
                walk.follow(module, neighbor)
    for module, port, there in walk.found["silent"]:
        walk.lose(module, port, there)
    walk.found["edges"] = [walk.parents[module] for module in modules[1:]]
    walk.found["unread"] = [module for module in modules if table[module].record is None]
    return Survey(**{name: tuple(items) for name, items in walk.found.items()})


class _Walk:
    def __init__(self, own: Address, table: Mapping[Address, BusEntry]) -> None:
        self.own, self.table = own, table
        self.found: dict[str, list[Any]] = {name: [] for name in Survey._fields}
        self.known: set[tuple[Address, str]] = set()  # ends of dockings that were followed
        self.parents: dict[Address, Edge] = {}
        self.uids: dict[int, Address] = {}

    def follow(self, module: Address, neighbor: Neighbor) -> None:
        """One docking, seen from the side of the base."""
        port, there, their_port, turn, status = neighbor
        if status is Status.SILENT:
            self.found["silent"].append((module, port, there))
            return
        if status is Status.EXPECTED:
            self.found["unheard"].append((module, port))
            return
        edge = Edge(module, port, there, their_port, turn)
        back = self._back(edge)
        if there == self.own or (there in self.parents and back is not None):
            self.known |= {(module, port), (there, their_port)}
            self.found["loops"].append((edge, self._ring(edge)))
        elif back is None:
            self.found["unreported"].append(there)
        elif back.turn != turn:
            self.found["skewed"].append(edge)
        elif there.uid in self.uids:
            self.found["twins"].append((self.uids[there.uid], there))
        else:
            self.uids[there.uid] = there
            self.parents[there] = edge
            self.found["modules"].append(there)
            self.known |= {(module, port), (there, their_port)}

    def lose(self, parent: Address, port: str, child: Address) -> None:
        """A docking to a silent module and all beyond: their connectors are still closed."""
        report = self.table.get(child, BusEntry()).report
        if report is None or child.uid in self.uids:
            return
        # by id: a parent that has started again is known there before it is known here
        end = parent.uid, port
        near = next((n for n in report.neighbors if (n.address.uid, n.their_port) == end), None)
        if near is None:
            return
        self.uids[child.uid] = child
        self.found["lost"].append(Edge(parent, port, child, near.port, near.turn))
        for neighbor in report.neighbors:
            if neighbor is not near:
                self.lose(child, neighbor.port, neighbor.address)

    def _back(self, edge: Edge) -> Neighbor | None:
        """The same docking in the report of its other side, if that has seen it too."""
        report = self.table.get(edge.child, BusEntry()).report
        for neighbor in report.neighbors if report else ():
            same = (neighbor.port, neighbor.address, neighbor.their_port)
            if same == (edge.child_port, edge.parent, edge.port):
                return neighbor if neighbor.status is Status.HEARD else None
        return None

    def _ring(self, edge: Edge) -> tuple[Address, ...]:
        """Modules around the loop that a docking back into the tree closes."""
        one, other = self._path(edge.parent), self._path(edge.child)
        meeting = next((module for module in one if module in other), None)
        if meeting is None:
            return (*one, *reversed(other))
        return (*one[: one.index(meeting) + 1], *reversed(other[: other.index(meeting)]))

    def _path(self, module: Address) -> list[Address]:
        """From a module to the base."""
        path = []
        while module in self.parents:
            path.append(module)
            module = self.parents[module].parent
        return path
