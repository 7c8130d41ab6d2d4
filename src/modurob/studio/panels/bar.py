"""The bar above all: project, undo, modes, files, theme."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from nicegui import ui

from modurob.studio.panels import files
from modurob.studio.panels.panel import plain_button, test_id
from modurob.studio.view import Saved

if TYPE_CHECKING:
    from modurob.studio.page import Page

LOGO = """<svg viewBox="0 0 24 24" aria-hidden="true"><g fill="var(--accent)">
<rect x="2" y="9" width="7" height="7" rx="1.6"/>
<rect x="10" y="9" width="7" height="7" rx="1.6" opacity=".75"/>
<rect x="10" y="1" width="7" height="7" rx="1.6" opacity=".5"/>
<rect x="10" y="17" width="7" height="6" rx="1.6" opacity=".35"/></g></svg>"""
ACCENT = "#1f5fbf"
SAVE_CHECK_S = 0.25  # between two checks that everything is written
RETRY = 20  # checks until a write that failed is tried again
THEMES = {None: "brightness_auto", False: "light_mode", True: "dark_mode"}


class Bar:
    """Project name, undo and redo, modes, open, save, export."""

    def __init__(self, page: Page) -> None:
        self.page, session = page, page.session
        self._shown: str | None = None
        self._checks = 0
        with ui.element("header").classes("bar"):
            with ui.element("div").classes("brand"):
                ui.html(LOGO, sanitize=False)
                ui.label("modurob studio")
            rename = partial(files.rename, page)
            name = plain_button(session.name, rename, "project", "project", title="Rename")
            self.name: Any = name.default_slot.children[0]
            self.undo = self._button("undo", "Undo", page.undo)
            self.redo = self._button("redo", "Redo", page.redo)
            self.saved = Saved()
            ui.element("div").classes("grow")
            self._modes()
            ui.element("div").classes("grow")
            self._button("note_add", "New project", lambda: page.go(page.studio.new()))
            self._button("folder_open", "Open, examples", lambda: files.open_dialog(page))
            self._button("save", "Save (Ctrl+S)", page.save)
            self._button("ios_share", "Export and share", lambda: files.export_dialog(page))
            self._button("help_outline", "Help and keys", lambda: files.help_dialog(page))
            self.dark = ui.dark_mode(None)
            ui.colors(primary=ACCENT)
            self.theme = self._button("brightness_auto", "Light or dark", self._turn_theme)
        ui.timer(SAVE_CHECK_S, self.look)
        self.refresh("body")

    def _button(self, icon: str, label: str, action: Callable[[], Any]) -> ui.button:
        button = ui.button(icon=icon, on_click=action, color=None)
        with button.props(f'flat dense aria-label="{label}"'):
            ui.tooltip(label)
        return test_id(button, label.split(" ")[0].lower().strip(","))

    def _modes(self) -> None:
        from modurob.studio.page import MODES

        self.modes = {}
        with ui.element("div").classes("modes").props('role=tablist aria-label="Modes"'):
            for mode, text in MODES.items():
                show, props = partial(self.page.show, mode), {"role": "tab"}
                props["aria_controls"] = "panel"
                self.modes[mode] = plain_button(text, show, f"mode-{mode}", **props)

    def show(self, mode: str) -> None:
        """Mark the mode that is open."""
        for name, tab in self.modes.items():
            tab._props["aria-selected"] = "true" if name == mode else "false"
            tab.update()

    def _turn_theme(self) -> None:
        order = [None, False, True]
        self.dark.value = order[(order.index(self.dark.value) + 1) % 3]
        self.theme.props(f"icon={THEMES[self.dark.value]}")
        ui.run_javascript(f"localStorage.setItem('modurob-theme', '{self.dark.value}')")

    def set_theme(self, dark: bool | None) -> None:
        """Set the theme that the user chose before."""
        self.dark.value = dark
        self.theme.props(f"icon={THEMES[dark]}")

    def refresh(self, topic: str) -> None:
        """Names and what can be undone."""
        history = self.page.session.project.history
        for button, steps, word in (
            (self.undo, history.past, "Undo"),
            (self.redo, history.future, "Redo"),
        ):
            button.set_enabled(bool(steps))
            label = f"{word}: {steps[-1].label}" if steps else word
            if button._props["aria-label"] != label:  # else each pose of a drag redraws the page
                button._props["aria-label"] = label
                button.default_slot.children[0].set_text(label)  # pyright: ignore[reportAttributeAccessIssue]
        self.name.set_text(self.page.session.name)

    def look(self) -> None:
        """Show whether everything is written."""
        state = self.page.session.save_state()
        if state.words != self._shown:
            self._shown = state.words
            reason = state.reason or "Everything is on the disk."
            self.saved.run_method("show_saved", state.words, reason)
            if state.words.startswith("Not"):
                self.page.show_error(state.reason)
        self._checks += 1
        if self._checks % RETRY == 0:
            self.page.session.saver.retry()
