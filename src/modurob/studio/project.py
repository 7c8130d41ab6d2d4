"""Projects as files: the body, its undo history, the user's own modules, settings and runs."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from modurob import DatasheetError, FileError, ModuleType, Organism
from modurob.modules.datasheet import describe
from modurob.modules.files import read_document
from modurob.organism.files import FORMAT as ORGANISM
from modurob.organism.files import from_document
from modurob.studio.history import History, Step
from modurob.studio.settings import RunRecord, Settings

FORMAT, VERSION = "modurob-project", 1
KEPT = 50  # steps of undo and of redo that a file holds


class StepRecord(BaseModel):
    """A body of the history."""

    model_config = ConfigDict(extra="forbid")

    label: Annotated[str, Field(max_length=200)]
    organism: dict[str, Any] | None


class ProjectFile(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid")

    format: Literal["modurob-project"]
    version: Literal[1]
    organism: dict[str, Any] | None = None
    past: list[StepRecord] = Field(default_factory=list, max_length=KEPT)
    future: list[StepRecord] = Field(default_factory=list, max_length=KEPT)
    kinds: list[dict[str, Any]] = Field(default_factory=list)
    pose: dict[str, FiniteFloat] = Field(default_factory=dict)
    settings: Settings = Field(default_factory=Settings)
    runs: list[RunRecord] = Field(default_factory=list)
    source: str | None = None


@dataclass
class Project:
    """What one tab works on.

    Attributes:
        history: The body with undo and redo.
        kinds: The user's own modules, by name.
        pose: Joint displacements by name. [rad, m]
        settings: Of the next run.
        runs: Those done.
        source: Fingerprint of the file it was opened from, as it was then.
    """

    history: History = field(default_factory=History)
    kinds: dict[str, ModuleType] = field(default_factory=dict)
    pose: dict[str, float] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)
    runs: list[RunRecord] = field(default_factory=list)
    source: str | None = None

    @property
    def organism(self) -> Organism | None:
        """The body as it is."""
        return self.history.now.organism


def to_document(project: Project) -> dict[str, Any]:
    """What a project's file holds; only values that never change are looked at."""
    history = project.history
    return {
        "format": FORMAT,
        "version": VERSION,
        "organism": history.now.document,
        "past": [_step(step) for step in history.past[-KEPT:]],
        "future": [_step(step) for step in history.future[-KEPT:]],
        "kinds": [
            {"format": kind.format, "version": kind.version}
            | kind.model_dump(mode="json", exclude_defaults=True)
            for kind in project.kinds.values()
        ],
        "pose": dict(project.pose),
        "settings": project.settings.model_dump(mode="json"),
        "runs": [run.model_dump(mode="json") for run in project.runs],
        "source": project.source,
    }


def _step(step: Step) -> dict[str, Any]:
    return {"label": step.label, "organism": step.document}


def read(path: Path, where: str | None = None) -> Project:
    """A project from a project's or an organism's file.

    Args:
        where: What to call the file in an error; its path by default.
    """
    where = str(path) if where is None else where
    try:
        if _format(path) == ORGANISM:
            organism = from_document(read_document(path, ORGANISM, 1), where)
            return Project(history=History(Step("", organism)))
        data = read_document(path, FORMAT, VERSION)
    except FileError as error:
        raise FileError(str(error).replace(str(path), where)) from None
    try:
        record = ProjectFile.model_validate(data)
    except ValidationError as error:
        raise FileError(f"{where}: {describe(error, ProjectFile)}") from None
    history = History(
        _read_step(StepRecord(label="", organism=record.organism), where),
        [_read_step(step, where) for step in record.past],
        [_read_step(step, where) for step in record.future],
    )
    try:
        kinds = [ModuleType(**data) for data in record.kinds]
    except (DatasheetError, TypeError) as error:
        raise FileError(f"{where}: {error}") from None
    return Project(
        history,
        {kind.name: kind for kind in kinds},
        dict(record.pose),
        record.settings,
        list(record.runs),
        record.source,
    )


def _format(path: Path) -> str:
    """The word in a file's ``format`` field; a project's, if it cannot be told."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        data = json.loads(path.read_bytes())
        if isinstance(data, dict) and data.get("format") == ORGANISM:
            return ORGANISM
    return FORMAT


def _read_step(record: StepRecord, where: str) -> Step:
    if record.organism is None:
        return Step(record.label, None)
    return Step(record.label, from_document(record.organism, where))


def write(document: dict[str, Any]) -> bytes:
    """A document as the bytes of a file."""
    return json.dumps(document, allow_nan=False, ensure_ascii=False).encode("utf-8") + b"\n"
