"""Undo and redo over values that never change."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from modurob import Organism
from modurob.organism.files import from_document, to_document

DEPTH = 200  # steps that can be undone


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
    """A body, and the words for the edit that leads away from it (past) or to it (future)."""

    label: str
    body: SavedBody

    @cached_property
    def text(self) -> str:
        """As a file holds it."""
        return f'{{"label": {json.dumps(self.label)}, "organism": {self.body.text}}}'


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

    def change(self, label: str, organism: Organism | None) -> None:
        """A new body; what was taken back is forgotten."""
        self.past.append(HistoryStep(label, self.now))
        del self.past[:-DEPTH]
        self.future.clear()
        self.now = SavedBody(organism)

    def undo(self) -> str | None:
        """Go back; returns what was taken back, None at the beginning."""
        return self._go(self.past, self.future)

    def redo(self) -> str | None:
        """Go forward again."""
        return self._go(self.future, self.past)

    def _go(self, source: list[HistoryStep], target: list[HistoryStep]) -> str | None:
        if not source:
            return None
        step = source[-1]
        _ = step.body.organism  # complains before anything has changed
        source.pop()
        target.append(HistoryStep(step.label, self.now))
        self.now = step.body
        return step.label
