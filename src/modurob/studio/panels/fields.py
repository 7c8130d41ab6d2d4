"""Fields that edit one setting each, and follow it when another tab edits it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nicegui import ui
from nicegui.elements.mixins.validation_element import ValidationElement

from modurob import ModurobError
from modurob.studio.panels.panel import test_id

if TYPE_CHECKING:
    from modurob.studio.page import Page


class Fields:
    """The fields of a panel, by the setting they edit."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._fields: dict[str, Any] = {}
        self._filling = False

    def number(self, name: str, label: str, *, step: float | None = None, tip: str = "") -> None:
        """A number."""
        value = getattr(self._page.session.settings, name)
        field = ui.number(label, value=value, step=step, format="%.6g")
        self._add(name, field, tip)

    def choice(self, name: str, label: str, options: Mapping[Any, str], tip: str = "") -> None:
        """One of several."""
        value = getattr(self._page.session.settings, name)
        field = ui.select(dict(options), value=value if value in options else None, label=label)
        field.props("options-dense")
        self._add(name, field, tip)

    def text(self, name: str, label: str, tip: str = "") -> None:
        """A word."""
        self._add(name, ui.input(label, value=getattr(self._page.session.settings, name)), tip)

    def switch(self, name: str, label: str, tip: str = "") -> None:
        """Yes or no."""
        field = ui.switch(label, value=getattr(self._page.session.settings, name))
        self._add(name, field, tip, outlined=False)

    def _add(self, name: str, field: Any, tip: str, outlined: bool = True) -> None:
        if outlined:
            field.props("dense outlined debounce=250")
        if tip:
            with field:
                ui.tooltip(tip)
        test_id(field, f"set-{name}")
        field.on_value_change(lambda event: self._edit(name, event.value))
        self._fields[name] = field

    def _edit(self, name: str, value: Any) -> None:
        session = self._page.session
        if self._filling or value is None:
            return
        if value == getattr(session.settings, name):
            self._mark(name, None)
            return
        try:
            session.edit_settings(**{name: value})
        except ModurobError as error:
            self._mark(name, str(error).partition(": ")[2][:90])
            self._page.tell(str(error))
            return
        self._mark(name, None)

    def _mark(self, name: str, problem: str | None) -> None:
        """Say at a field what is wrong with it; None when nothing is."""
        field = self._fields[name]
        if isinstance(field, ValidationElement):
            field.error = problem

    def enable(self, on: bool, *names: str) -> None:
        """Whether some fields matter now."""
        for name in names:
            self._fields[name].set_enabled(on)

    def fill(self) -> None:
        """Show the settings as they are."""
        self._filling = True
        for name, field in self._fields.items():
            value = getattr(self._page.session.settings, name)
            if field.value != value:
                field.value = value
                self._mark(name, None)
        self._filling = False
