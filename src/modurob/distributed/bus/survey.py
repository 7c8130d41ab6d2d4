"""The tree as modules reported it: dockings, and what is missing or cannot be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from modurob.distributed.bus.messages import Address, ModuleReport, Neighbor, Status
from modurob.distributed.reliable import Newest


class ModuleEntry(NamedTuple):
    """What a module has told.

    Attributes:
        report: The newest one.
        record: Its memory's content; None until all of it is there.
        pieces: Of the record, by offset.
        values: q, v, q, v ... of its joints. [rad, m, rad/s, m/s]
        reported, sensed: Numbers and times of report and values.
        heard_at: When it was last heard. [s]
    """

    report: ModuleReport | None = None
    record: bytes | None = None
    pieces: tuple[tuple[int, bytes], ...] = ()
    values: tuple[float, ...] = ()
    reported: Newest = Newest()
    sensed: Newest = Newest()
    heard_at: float = -math.inf

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
    """The tree as far as it is known.

    Attributes:
        modules: Base first, each after its parent.
        edges: One for each module but the base.
        unreported, unread: Modules whose report or record is not here yet.
        unheard: (module, port) where something is plugged that has not been heard.
        silent: (module, port, neighbor) that was heard before.
        loops: Dockings that close one, each with the modules around it.
        twins: (first, second) modules with one id; the second and all beyond it are left out.
        skewed: Dockings whose two sides report different turns; left out with all beyond.
    """

    modules: tuple[Address, ...] = ()
    edges: tuple[Edge, ...] = ()
    unreported: tuple[Address, ...] = ()
    unread: tuple[Address, ...] = ()
    unheard: tuple[tuple[Address, str], ...] = ()
    silent: tuple[tuple[Address, str, Address], ...] = ()
    loops: tuple[tuple[Edge, tuple[Address, ...]], ...] = ()
    twins: tuple[tuple[Address, Address], ...] = ()
    skewed: tuple[Edge, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether everything that somebody spoke of has spoken for itself."""
        return not (self.unreported or self.unread or self.unheard)


def survey(own: Address, base: Neighbor | None, table: Mapping[Address, ModuleEntry]) -> Survey:
    """Walk the tree breadth first, ports in order, so that equal trees give equal surveys.

    Args:
        own: The coordinator's address.
        base: What is plugged into it.
        table: What modules have told.
    """
    walk = _Walk(own, table)
    if base is not None:
        walk.follow(own, base)
    for module in walk.modules:  # grows while it is walked
        for neighbor in walk.report(module).neighbors:
            if (module, neighbor.port) not in walk.known:
                walk.follow(module, neighbor)
    return walk.result()


class _Walk:
    def __init__(self, own: Address, table: Mapping[Address, ModuleEntry]) -> None:
        self.own, self.table = own, table
        self.modules: list[Address] = []
        self.known: set[tuple[Address, str]] = set()  # ends of dockings that were followed
        self.parents: dict[Address, Edge] = {}
        self.uids: dict[int, Address] = {}
        self.unreported: list[Address] = []
        self.unheard: list[tuple[Address, str]] = []
        self.silent: list[tuple[Address, str, Address]] = []
        self.loops: list[tuple[Edge, tuple[Address, ...]]] = []
        self.twins: list[tuple[Address, Address]] = []
        self.skewed: list[Edge] = []

    def report(self, module: Address) -> ModuleReport:
        report = self.table[module].report
        assert report is not None
        return report

    def follow(self, module: Address, neighbor: Neighbor) -> None:
        """One docking, seen from the side of the base."""
        port, there, their_port, turn, status = neighbor
        if status is Status.SILENT:
            self.silent.append((module, port, there))
            return
        if status is Status.EXPECTED:
            self.unheard.append((module, port))
            return
        edge = Edge(module, port, there, their_port, turn)
        if there == self.own or there in self.parents:
            self._close(edge)
            return
        back = self._back(edge)
        if back is None:
            self.unreported.append(there)
        elif back.turn != turn:
            self.skewed.append(edge)
        elif there.uid in self.uids:
            self.twins.append((self.uids[there.uid], there))
        else:
            self.uids[there.uid] = there
            self.parents[there] = edge
            self.modules.append(there)
            self.known |= {(module, port), (there, their_port)}

    def _back(self, edge: Edge) -> Neighbor | None:
        """The same docking in the report of its other side, if that has seen it too."""
        report = self.table.get(edge.child, ModuleEntry()).report
        for neighbor in report.neighbors if report else ():
            same = (neighbor.port, neighbor.address, neighbor.their_port)
            if same == (edge.child_port, edge.parent, edge.port):
                return neighbor if neighbor.status is Status.HEARD else None
        return None

    def _close(self, edge: Edge) -> None:
        """A docking back into the tree, unless the other side knows nothing of it (any more)."""
        if edge.child != self.own and self._back(edge) is None:
            self.unreported.append(edge.child)
            return
        self.known |= {(edge.parent, edge.port), (edge.child, edge.child_port)}
        one, other = self._way(edge.parent), self._way(edge.child)
        while one and other and one[-1] == other[-1]:
            meeting = one.pop()
            other.pop()
            if not (one and other and one[-1] == other[-1]):
                one.append(meeting)
                break
        self.loops.append((edge, (*one, *reversed(other))))

    def _way(self, module: Address) -> list[Address]:
        """From a module to the base."""
        way = []
        while module in self.parents:
            way.append(module)
            module = self.parents[module].parent
        return way

    def result(self) -> Survey:
        unread = [m for m in self.modules if self.table[m].record is None]
        return Survey(
            modules=tuple(self.modules),
            edges=tuple(self.parents[m] for m in self.modules[1:]),
            unreported=tuple(self.unreported),
            unread=tuple(unread),
            unheard=tuple(self.unheard),
            silent=tuple(self.silent),
            loops=tuple(self.loops),
            twins=tuple(self.twins),
            skewed=tuple(self.skewed),
        )
