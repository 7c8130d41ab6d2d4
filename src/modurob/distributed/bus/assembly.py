"""Organism from the tree that modules reported; faults for what was left out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from modurob.checks import LARGEST_DATA, is_number
from modurob.distributed.bus.messages import Address
from modurob.distributed.bus.survey import BusEntry, Edge, Survey
from modurob.errors import DockingError, FileError, UnknownNameError
from modurob.modules import ModuleType
from modurob.modules.record import decode, id_text
from modurob.organism import Organism
from modurob.organism.organism import NAME


class BusAssembly(NamedTuple):
    """Organism of a survey."""

    organism: Organism | None = None  # None where there is no base, or a loop
    names: Mapping[Address, str] = MappingProxyType({})  # of the modules in it, base first
    faults: tuple[str, ...] = ()  # one line for everything that was left out
    silent: Mapping[Address, str] = MappingProxyType({})  # modules in it that do not answer


def assemble(survey: Survey, table: Mapping[Address, BusEntry]) -> BusAssembly:
    """Dock the modules of a survey as they reported, base first."""
    build = _Build(survey, table)
    if not survey.loops:
        for module, edge in zip(survey.modules, (None, *survey.edges), strict=False):
            build.add(module, edge)
        live = dict(build.names)
        for edge in survey.lost:
            build.add(edge.child, edge if edge.parent.uid else None)  # the coordinator has id 0
        silent = {m: name for m, name in build.names.items() if m not in live}
        return BusAssembly(build.organism, live, tuple(build.faults), silent)
    return BusAssembly(faults=tuple(build.faults))


class _Build:
    def __init__(self, survey: Survey, table: Mapping[Address, BusEntry]) -> None:
        self.survey, self.table = survey, table
        self.organism: Organism | None = None
        self.names: dict[Address, str] = {}
        self.called = _names(survey, table)
        self.faults = [
            *(
                f"loop: {self.end(edge)} closes a ring of modules "
                f"({' - '.join(map(self.call, ring))}); an organism is a tree, unplug one of these "
                "dockings"
                for edge, ring in survey.loops
            ),
            *(
                f"id {id_text(first.uid)} is there twice: '{self.call(first)}' is used, "
                f"'{self.call(second)}' and all beyond it are left out"
                for first, second in survey.twins
            ),
            *(
                f"turn: the two sides of {self.end(edge)} report different turns; it is left out"
                for edge in survey.skewed
            ),
            *(
                f"no answer from module {id_text(module.uid)}; it is left out"
                for module in survey.unreported
            ),
            *(
                f"no answer at port {port} of '{self.call(module)}'; it is left out"
                for module, port in survey.unheard
            ),
            *(
                f"silent: module {id_text(gone.uid)} at port {port} of '{self.call(module)}'; what "
                "is known of it and beyond stays in the model, where it was last"
                for module, port, gone in survey.silent
            ),
        ]

    def add(self, module: Address, edge: Edge | None) -> None:
        """Put one module into the organism, or add a fault."""
        name = self.call(module)
        try:
            if edge is not None and edge.parent not in self.names:
                raise DockingError(f"it is reached over '{self.call(edge.parent)}'")
            kind = self._kind(module)
            if edge is None:
                self.organism = Organism.start(kind, name)
            else:
                self._dock(edge, name, kind)
        except (DockingError, FileError, UnknownNameError) as error:
            self.faults.append(f"'{name}' is left out: {error}")
        else:
            self.names[module] = name

    def _dock(self, edge: Edge, name: str, kind: ModuleType) -> None:
        assert self.organism is not None
        parent = self.names[edge.parent]
        port = _label(parent, self.organism.kind(parent), edge.port)
        child_port = _label(name, kind, edge.child_port)
        self.organism = self.organism.dock(
            parent, port, name, child_port, kind=kind, turn=edge.turn
        )

    def _kind(self, module: Address) -> ModuleType:
        data = self.table[module].record
        if data is None:
            raise FileError(f"module {id_text(module.uid)} has not sent its record")
        try:
            record = decode(data)
        except FileError as error:
            if id_text(module.uid) in str(error):
                raise
            raise FileError(f"record of module {id_text(module.uid)}: {error}") from None
        if record.uid != module.uid:
            raise FileError(
                f"module {id_text(module.uid)} carries the record of module {id_text(record.uid)}"
            )
        if flaw := overflow(record.kind):
            raise FileError(f"record of module {id_text(module.uid)}: {flaw}")
        return record.kind

    def call(self, module: Address) -> str:
        return self.called.get(module, "coordinator" if module.uid == 0 else id_text(module.uid))

    def end(self, edge: Edge) -> str:
        return f"{self.call(edge.parent)}.{edge.port} - {self.call(edge.child)}.{edge.child_port}"


@lru_cache
def overflow(kind: ModuleType) -> str:
    """Return the number with which equations of motion may overflow, in words, or nothing."""
    rest: list[tuple[str, Any]] = [*kind.model_dump().items()]
    while rest:
        where, value = rest.pop(0)
        if isinstance(value, dict | list | tuple):
            parts = value.items() if isinstance(value, dict) else enumerate(value)
            rest += [(f"{where}.{key}", part) for key, part in parts]
        elif is_number(value) and abs(value) > LARGEST_DATA:
            return f"{where} is {value:g}, the largest number on a bus {LARGEST_DATA:g}"
    return ""


def _names(survey: Survey, table: Mapping[Address, BusEntry]) -> dict[Address, str]:
    """Modules' own names where they may be used and are not taken, else names from their ids."""
    names: dict[Address, str] = {}
    taken: set[str] = set()
    others = (*(second for _, second in survey.twins), *(edge.child for edge in survey.lost))
    for module in (*survey.modules, *others):
        report = table[module].report
        name = "" if report is None else report.name
        if not NAME.fullmatch(name) or name in taken:
            name = f"m_{module.uid:x}"
        if name in taken:  # a twin
            name = f"m_{module.uid:x}_{module.boot:08x}"
        taken.add(name)
        names[module] = name
    return names


def _label(name: str, kind: ModuleType, text: str) -> int | str:
    """The datasheet's label for a port that the bus calls by a text."""
    for port in kind.ports:
        if str(port.label) == text:
            return port.label
    raise UnknownNameError(f"'{name}' reports port {text}, which a {kind.name} does not have")
