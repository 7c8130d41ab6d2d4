"""What happens to modules during a run: dockings, undockings, faults."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from nicegui import ui

from modurob.scenario.settings import BALANCE
from modurob.studio import edits
from modurob.studio.panels.panel import Redrawn, test_id

if TYPE_CHECKING:
    from modurob.studio.page import Page

FAULT_BUTTONS = {"die": "It dies", "freeze": "It freezes", "reboot": "It reboots"}


class EventsEditor:
    """A list of events, and ways to add one."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.form_part = Redrawn(self._form, self._shows)

    def refresh(self) -> None:
        """Another body or other settings."""
        self.form_part.refresh()

    def _shows(self) -> tuple[Any, ...]:
        page, settings = self.page, self.page.session.settings
        body = page.session.organism, page.selected, page.kind
        return *body, settings.events, settings.motion, settings.duration

    def _form(self) -> None:
        session = self.page.session
        organism, events = session.organism, session.settings.events
        for k, event in enumerate(events):
            with ui.element("div").classes("rowbar"):
                whom = event.module
                if event.what == "dock":
                    whom = f"{event.child} ({event.kind}) to {event.module}, side {event.port}"
                ui.label(f"{event.time:g} s: {event.what} {whom}").classes("note")
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
            if session.settings.motion == BALANCE:
                for what, text in FAULT_BUTTONS.items():
                    self._button(what, text, lambda what=what: self._add(what, time, module))
                return
            self._button("undock", "Undock it", lambda: self._add("undock", time, module))
            text = f"Dock a new {self.page.kind} to it"
            self._button("dock", text, lambda: self._dock(time, module))

    def _button(self, what: str, text: str, action: Callable[[], Any]) -> None:
        button = ui.button(text, on_click=action).props("outline dense no-caps size=sm")
        test_id(button, f"event-{what}")

    def _add(self, what: str, time: ui.number, module: ui.select, **more: Any) -> None:
        session = self.page.session
        known = [each.model_dump() for each in session.settings.events]
        event = {"what": what, "time": time.value, "module": module.value, **more}
        wanted = sorted([*known, event], key=lambda each: each["time"] or 0.0)
        self.page.act(session.edit_settings, events=wanted)

    def _dock(self, time: ui.number, module: ui.select) -> None:
        session = self.page.session
        organism, kind = session.body(), session.kind(self.page.kind)
        near = organism.kind(module.value)
        events = session.settings.events
        taken = {e.child for e in events}
        used = {e.port for e in events if e.what == "dock" and e.module == module.value}
        for port in organism.free_ports(module.value):
            if port not in used and edits.mating_ports(near, port, kind):
                number = len(organism)
                while f"m{number}" in organism or f"m{number}" in taken:
                    number += 1
                self._add(
                    "dock", time, module, port=port, kind=kind.name, child=f"m{number}",
                    child_port=edits.usual_port(near, port, kind),
                )  # fmt: skip
                return
        self.page.tell(f"'{module.value}' has no free port that mates with a {kind.name}.")

    def _drop(self, k: int) -> None:
        session = self.page.session
        rest = [e.model_dump() for i, e in enumerate(session.settings.events) if i != k]
        self.page.act(session.edit_settings, events=rest)
