"""Dockings and undockings during a run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from nicegui import ui

from modurob.studio import edits
from modurob.studio.panels.panel import Part, test_id

if TYPE_CHECKING:
    from modurob.studio.page import Page


class EventsEditor:
    """A list of events, and two ways to add one."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.form_part = Part(self._form)

    def refresh(self) -> None:
        """Another body or other settings."""
        self.form_part.refresh()

    def _form(self) -> None:
        session = self.page.session
        organism, events = session.organism, session.settings.events
        for k, event in enumerate(events):
            with ui.element("div").classes("rowbar"):
                what = f"dock {event.child} ({event.kind}) to {event.module}, side {event.port}"
                words = f"undock {event.module}" if event.what == "undock" else what
                ui.label(f"{event.time:g} s: {words}").classes("note")
                drop = ui.button(icon="close", on_click=partial(self._drop, k))
                drop.props(f'flat dense size=sm aria-label="Remove event {k + 1}"')
        if organism is None or len(organism) < 2:
            ui.label("Dock a second module first.").classes("note")
            return
        chosen = self.page.selected if self.page.selected in organism else organism.modules[-1]
        with ui.element("div").classes("fields"):
            module = ui.select(list(organism.modules), value=chosen, label="Module")
            module.props("dense outlined options-dense")
            time = ui.number("At [s]", value=round(session.settings.duration / 2, 2))
            time.props("dense outlined")
        with ui.element("div").classes("row"):
            undock = ui.button("Undock it", on_click=lambda: self._undock(module.value, time.value))
            undock.props("outline dense no-caps size=sm")
            test_id(undock, "event-undock")
            kind = self.page.kind
            dock = ui.button(
                f"Dock a new {kind} to it", on_click=lambda: self._dock(module.value, time.value)
            ).props("outline dense no-caps size=sm")
            test_id(dock, "event-dock")

    def _add(self, **event: Any) -> None:
        session = self.page.session
        known = [each.model_dump() for each in session.settings.events]
        wanted = sorted([*known, event], key=lambda each: each["time"] or 0.0)
        self.page.act(session.edit_settings, events=wanted)

    def _undock(self, module: str, time: float | None) -> None:
        self._add(what="undock", time=time, module=module)

    def _dock(self, module: str, time: float | None) -> None:
        session = self.page.session
        organism, kind = session.body(), session.kind(self.page.kind)
        near = organism.kind(module)
        taken = {e.child for e in session.settings.events}
        for port in organism.free_ports(module):
            mating = edits.mating_ports(near, port, kind)
            if mating:
                number = len(organism)
                while f"m{number}" in organism or f"m{number}" in taken:
                    number += 1
                self._add(
                    what="dock", time=time, module=module, port=port, kind=kind.name,
                    child=f"m{number}", child_port=edits.usual_port(near, port, kind),
                )  # fmt: skip
                return
        self.page.tell(f"'{module}' has no free port that mates with a {kind.name}.")

    def _drop(self, k: int) -> None:
        session = self.page.session
        rest = [e.model_dump() for i, e in enumerate(session.settings.events) if i != k]
        self.page.act(session.edit_settings, events=rest)
