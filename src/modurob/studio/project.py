"""Projects and their files: the body, undo and redo, the user's own modules, settings and runs."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    FailFast,
    Field,
    FiniteFloat,
)

from modurob import DatasheetError, FileError, ModuleType, Organism, StateError
from modurob.modules.datasheet import validated
from modurob.modules.files import parse_json, read_document, read_text
from modurob.organism.files import FORMAT as ORGANISM
from modurob.organism.files import from_document, to_document
from modurob.scenario.settings import RunRecord, RunSettings

FORMAT, VERSION = "modurob-project", 1
DEPTH = 200  # steps that can be undone
KEPT = 50  # steps of undo and of redo that a file holds
NEW_SETTINGS = RunSettings(
    motion="wave",
    controller="ComputedTorque",
    settling_time=0.5,
    frequency=0.5,
    ramp=1.0,
    rtol=1e-6,
    dt=1e-3,
)
LONGEST_S = 600.0  # of a run
LONGEST_LABEL = 200  # characters of a step of the history
LONGEST_HISTORY = 4 * 2**20  # characters of either: a shared file must be small enough to open


class SavedBody:
    """An organism, or none, and its text in a file; each is made of the other when it is needed."""

    def __init__(self, organism: Organism | None) -> None:
        self._make = lambda: organism
        self._held: dict[str, Any] | None = None

    @classmethod
    def read(cls, document: dict[str, Any], where: str) -> SavedBody:
        """A body of a file, read when it is needed: a history may be long."""
        body = cls(None)
        body._make, body._held = (lambda: from_document(document, where)), document
        return body

    @cached_property
    def organism(self) -> Organism | None:
        """The body; a `FileError` if the file holds none."""
        return self._make()

    @cached_property
    def text(self) -> str:
        """As a file holds it."""
        held = self._held
        if held is None and self.organism is not None:
            held = to_document(self.organism)
        return json.dumps(held, allow_nan=False, ensure_ascii=False)


@dataclass(frozen=True, eq=False)
class HistoryStep:
    """A body, and the words for the edit that leads away from it (past) or to it (future).

    Attributes:
        pose, settings: Those it had; None in files of older versions.
    """

    label: str
    body: SavedBody
    pose: Mapping[str, float] | None = None
    settings: RunSettings | None = None

    @cached_property
    def text(self) -> str:
        """As a file holds it."""
        own: dict[str, Any] = {"label": self.label}
        if self.pose is not None:
            own["pose"] = dict(self.pose)
        if self.settings is not None:
            own["settings"] = self.settings.model_dump(mode="json", exclude_unset=True)
        head = json.dumps(own, allow_nan=False, ensure_ascii=False)
        return f'{head[:-1]}, "organism": {self.body.text}}}'


@dataclass
class History:
    """The body now, those before, and those taken back.

    Attributes:
        now: The body as it is.
        past: Oldest first.
        future: Next one to redo last.
    """

    now: SavedBody = field(default_factory=lambda: SavedBody(None))
    past: list[HistoryStep] = field(default_factory=list)
    future: list[HistoryStep] = field(default_factory=list)

    def remember(
        self,
        label: str,
        pose: Mapping[str, float] | None = None,
        settings: RunSettings | None = None,
    ) -> None:
        """Keep the body, pose and settings before an edit; what was taken back is forgotten."""
        self.past.append(HistoryStep(label[:LONGEST_LABEL], self.now, pose, settings))
        del self.past[:-DEPTH]
        self.future.clear()

    def change(
        self,
        label: str,
        organism: Organism | None,
        pose: Mapping[str, float] | None = None,
        settings: RunSettings | None = None,
    ) -> None:
        """A new body; pose and settings are those before."""
        self.remember(label, pose, settings)
        self.now = SavedBody(organism)

    def undo(self, pose: Mapping[str, float], settings: RunSettings) -> HistoryStep | None:
        """Go back from a pose and settings; returns where to, None at the beginning."""
        return self._go(self.past, self.future, pose, settings)

    def redo(self, pose: Mapping[str, float], settings: RunSettings) -> HistoryStep | None:
        """Go forward again."""
        return self._go(self.future, self.past, pose, settings)

    def _go(
        self,
        source: list[HistoryStep],
        target: list[HistoryStep],
        pose: Mapping[str, float],
        settings: RunSettings,
    ) -> HistoryStep | None:
        if not source:
            return None
        step = source[-1]
        _ = step.body.organism  # complains before anything has changed
        source.pop()
        target.append(HistoryStep(step.label, self.now, dict(pose), settings))
        self.now = step.body
        return step


# -- files -----------------------------------------------------------------------------------------


def short_enough(settings: RunSettings) -> RunSettings:
    """Settings of a run that is not too long for the studio, or a `StateError`."""
    if settings.duration > LONGEST_S:
        raise StateError(f"duration: at most {LONGEST_S:g} s, got {settings.duration:g}")
    return settings


class StepRecord(BaseModel):
    """A body of the history."""

    model_config = ConfigDict(extra="forbid")

    label: Annotated[str, Field(max_length=LONGEST_LABEL)]
    organism: dict[str, Any] | None
    pose: dict[str, FiniteFloat] | None = None
    settings: Annotated[RunSettings, AfterValidator(short_enough)] | None = None


class ProjectFile(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid")

    format: Literal["modurob-project"]
    version: Literal[1]
    organism: dict[str, Any] | None = None
    past: Annotated[list[StepRecord], FailFast()] = Field(default_factory=list, max_length=KEPT)
    future: Annotated[list[StepRecord], FailFast()] = Field(default_factory=list, max_length=KEPT)
    kinds: list[dict[str, Any]] = Field(default_factory=list)
    pose: dict[str, FiniteFloat] = Field(default_factory=dict)
    settings: Annotated[RunSettings, AfterValidator(short_enough)] = NEW_SETTINGS
    runs: Annotated[list[RunRecord], FailFast()] = Field(default_factory=list)
    source: str | None = None


@dataclass
class Project:
    """The content of a project.

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
    settings: RunSettings = NEW_SETTINGS
    runs: Annotated[list[RunRecord], FailFast()] = field(default_factory=list)
    source: str | None = None

    @property
    def organism(self) -> Organism | None:
        """The body as it is."""
        return self.history.now.organism


def to_bytes(project: Project) -> bytes:
    """A project's file; steps long ago are left out where it would become too large to be shared.

    Only values that never change are looked at, and texts of bodies are made once: this runs while
    edits go on, after each of them.
    """
    history = project.history
    head = json.dumps(
        {
            "format": FORMAT,
            "version": VERSION,
            "kinds": [kind.document() for kind in project.kinds.values()],
            "pose": project.pose,
            "settings": project.settings.model_dump(mode="json"),
            "runs": [run.model_dump(mode="json") for run in project.runs],
            "source": project.source,
        },
        allow_nan=False,
        ensure_ascii=False,
    )
    past, future = _latest(history.past), _latest(history.future)
    text = (
        f'{head[:-1]}, "organism": {history.now.text}, '
        f'"past": [{", ".join(past)}], "future": [{", ".join(future)}]}}\n'
    )
    return text.encode("utf-8")


def _latest(steps: list[HistoryStep]) -> list[str]:
    """The texts of the last steps, as many as a file keeps."""
    texts: list[str] = []
    left = LONGEST_HISTORY
    for step in reversed(steps[-KEPT:]):
        left -= len(step.text)
        if left < 0:
            break
        texts.append(step.text)
    return texts[::-1]


def read(path: Path, where: str | None = None) -> Project:
    """A project from a project's or an organism's file, which errors call `where`."""
    where = str(path) if where is None else where
    try:
        if format_of(path) == ORGANISM:
            organism = from_document(read_document(path, ORGANISM, 1), where)
            return Project(history=History(SavedBody(organism)))
        data = read_document(path, FORMAT, VERSION)
    except FileError as error:
        raise FileError(str(error).replace(str(path), where)) from None
    record = validated(ProjectFile, data, where)
    now = SavedBody(None) if record.organism is None else SavedBody.read(record.organism, where)
    _ = now.organism  # raises here; steps of the history do when they are used
    history = History(
        now,
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


def format_of(path: Path) -> str:
    """The word in a file's ``format`` field; a project's, if it is unknown."""
    return ORGANISM if _field(path, "format") == ORGANISM else FORMAT


def source_of(path: Path) -> str | None:
    """The fingerprint of the file that a project was opened from; None if there is none."""
    found = _field(path, "source")
    return found if isinstance(found, str) else None


def _field(path: Path, name: str) -> Any:
    """One field of a file; None where the file cannot be read."""
    with contextlib.suppress(FileError):
        data = parse_json(read_text(path), path)
        return data.get(name) if isinstance(data, dict) else None
    return None


def _read_step(record: StepRecord, where: str) -> HistoryStep:
    body = SavedBody(None) if record.organism is None else SavedBody.read(record.organism, where)
    return HistoryStep(record.label, body, record.pose, record.settings)
