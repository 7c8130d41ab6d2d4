"""Undo and redo over values that never change."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from modurob import Organism
from modurob.organism.files import to_document

DEPTH = 200  # steps that can be undone


@dataclass(frozen=True, eq=False)
class Step:
    """A body, and the words for the edit that leads away from it (past) or to it (future)."""

    label: str
    organism: Organism | None

    @cached_property
    def document(self) -> dict[str, Any] | None:
        """The body as a file holds it."""
        return None if self.organism is None else to_document(self.organism)


@dataclass
class History:
    """What was, what is, and what was taken back.

    Attributes:
        now: The body as it is.
        past: Oldest first.
        future: Next one to redo last.
    """

    now: Step = field(default_factory=lambda: Step("", None))
    past: list[Step] = field(default_factory=list)
    future: list[Step] = field(default_factory=list)

    def change(self, label: str, organism: Organism | None) -> None:
        """A new body; what was taken back is forgotten."""
        self.past.append(Step(label, self.now.organism))
        del self.past[:-DEPTH]
        self.future.clear()
        self.now = Step("", organism)

    def undo(self) -> str | None:
        """Go back; returns what was taken back, None at the beginning."""
        if not self.past:
            return None
        step = self.past.pop()
        self.future.append(Step(step.label, self.now.organism))
        self.now = Step("", step.organism)
        return step.label

    def redo(self) -> str | None:
        """Go forward again."""
        if not self.future:
            return None
        step = self.future.pop()
        self.past.append(Step(step.label, self.now.organism))
        self.now = Step("", step.organism)
        return step.label
