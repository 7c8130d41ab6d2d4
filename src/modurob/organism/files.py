"""Organisms as files: versioned JSON that carries its own datasheets."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    FiniteFloat,
    model_validator,
)

from modurob.errors import FileError, ModurobError
from modurob.modules import ModuleType
from modurob.modules.datasheet import validated
from modurob.modules.files import publish, read_document, without_schema, write_document
from modurob.organism.docking import Docking
from modurob.organism.organism import Member, Organism, assemble, checked_pose

FORMAT = "modurob-organism"
VERSION = 1
MOST_KINDS = 10_000  # all are checked before the first fault is reported


class _FileModel(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class ModuleEntry(_FileModel):
    """One module: its name and the datasheet it has."""

    name: str
    kind: str


class DockingEntry(_FileModel):
    """One docking, parent first."""

    parent: str
    port: int | str
    child: str
    child_port: int | str
    turn: int = 0


ABOUT = (
    "Modules docked into a tree, with the datasheets of their kinds. Rows of the matrices "
    "follow `modules`, columns follow `dockings`. SI units; docking turns are whole degrees."
)


def _limited(kinds: Any) -> Any:
    if isinstance(kinds, dict) and len(kinds) > MOST_KINDS:
        raise ValueError(f"{len(kinds):,} kinds; at most {MOST_KINDS:,}")
    return kinds


class OrganismFile(_FileModel):
    """The whole file. Rows of the matrices follow `modules`, columns follow `dockings`."""

    model_config = ConfigDict(
        json_schema_extra=lambda schema: publish(schema, "modurob organism", ABOUT)
    )

    format: Literal["modurob-organism"]
    version: Literal[1]
    base: str
    base_pose: Annotated[
        list[Annotated[list[FiniteFloat], Field(min_length=4, max_length=4)]],
        Field(min_length=4, max_length=4),
    ]
    kinds: Annotated[dict[str, ModuleType], BeforeValidator(_limited)]
    modules: Annotated[list[ModuleEntry], Field(min_length=1), FailFast()]
    dockings: Annotated[list[DockingEntry], FailFast()]

    @model_validator(mode="before")
    @classmethod
    def _without_schema(cls, data: Any) -> Any:
        return without_schema(data)


def save(organism: Organism, path: str | os.PathLike[str]) -> None:
    """See `Organism.save`."""
    write_document(path, to_document(organism))


def to_document(organism: Organism) -> dict[str, Any]:
    """Content of an organism's file."""
    keys: dict[ModuleType, str] = {}
    for name in organism.modules:
        kind = organism.kind(name)
        if kind not in keys:
            same = sum(other.name == kind.name for other in keys)
            keys[kind] = f"{kind.name}-{same + 1}" if same else kind.name
    return {
        "format": FORMAT,
        "version": VERSION,
        "base": organism.base,
        "base_pose": organism.base_pose.tolist(),
        "kinds": {key: kind.document() for kind, key in keys.items()},
        "modules": [{"name": name, "kind": keys[organism.kind(name)]} for name in organism.modules],
        "dockings": [
            {name: value for name, value in entry._asdict().items() if name != "column"}
            for entry in sorted(organism.dockings, key=lambda entry: entry.column)
        ],
    }


def read(path: str | os.PathLike[str]) -> Organism:
    """See `Organism.from_file`."""
    return from_document(read_document(path, FORMAT, VERSION), str(path))


def from_document(data: dict[str, Any], where: str) -> Organism:
    """The organism of a file's content; `where` is the file's name for error messages."""
    record = validated(OrganismFile, data, where)
    try:
        return _rebuild(record)
    except ModurobError as error:
        raise FileError(f"{where}: {error}") from None


def _rebuild(record: OrganismFile) -> Organism:
    members: dict[str, Member] = {}
    for row, module in enumerate(record.modules):
        if module.kind not in record.kinds:
            raise FileError(f"module '{module.name}' has kind '{module.kind}', which is not there")
        if module.name in members:
            raise FileError(f"module '{module.name}' is there twice")
        members[module.name] = Member(record.kinds[module.kind], row, None)
    held: set[str] = {record.base}
    for entry in record.dockings:
        for name in (entry.parent, entry.child):
            if name not in members:
                raise FileError(f"a docking names '{name}', which is not among the modules")
        if entry.child in held:
            raise FileError(f"'{entry.child}' is docked twice or is the base: that closes a loop")
        held.add(entry.child)
    if record.base not in members:
        raise FileError(f"the base '{record.base}' is not among the modules")
    dockings = [Docking(**dict(e), column=k) for k, e in enumerate(record.dockings, start=1)]
    organism = assemble(record.base, checked_pose(record.base_pose), members, dockings)
    if len(organism) < len(members):
        loose = sorted(set(members) - set(organism.modules))
        raise FileError(f"not connected to the base: {', '.join(loose[:10])}")
    return organism
