"""The projects of the folder: pictures, search, open, duplicate, delete."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from nicegui import ui

from modurob import ModurobError
from modurob.studio.folder import ProjectEntry
from modurob.studio.panels.panel import Redrawn, button, icon_button, note, test_id, title

if TYPE_CHECKING:
    from modurob.studio.page import Page

MOST_PROJECTS = 60  # shown in the list; a search finds the others


class ProjectList:
    """The projects of the folder, the latest first."""

    def __init__(self, page: Page, go: Callable[[str], Any], tell: Callable[[str], Any]) -> None:
        self.page, self._go, self._tell = page, go, tell
        self._wanted, self._sure = "", ""
        with ui.element("div").classes("rowbar whole"):
            title("Your projects")
            search = ui.input(placeholder="Search", on_change=self._search)
            search.props('dense outlined clearable aria-label="Search projects"')
            test_id(search, "search-projects")
        note(str(page.studio.folder.path))
        self._rows = Redrawn(self._draw)

    def _search(self, event: Any) -> None:
        self._wanted = (event.value or "").strip().lower()
        self._rows.refresh()

    def _draw(self) -> None:
        found = [e for e in self.page.studio.folder.entries() if self._wanted in e.name.lower()]
        if not found:
            words = "No project has this in its name." if self._wanted else (
                "None yet: every change you make is kept here."
            )  # fmt: skip
            note(words)
        with ui.element("div").classes("projects"):
            for entry in found[:MOST_PROJECTS]:
                self._row(entry)
        if len(found) > MOST_PROJECTS:
            note(f"The latest {MOST_PROJECTS} of {len(found)}; search to find others.")

    def _row(self, entry: ProjectEntry) -> None:
        name = entry.name
        with ui.element("div").classes("rowbar"):
            row = ui.element("button").classes("project-row").props("type=button")
            row.on("click", lambda _: self._go(name))
            with test_id(row, f"open-{name}"):
                address = f"/api/projects/{quote(name)}.png?{entry.changed}"
                picture = {"src": address, "alt": "", "loading": "lazy"}
                ui.element("img")._props.update(picture)
                with ui.element("div"):
                    ui.label(name)
                    note(datetime.fromtimestamp(entry.changed).strftime("%d %b %Y, %H:%M"))
            if self._sure == name:
                act = partial(self._act, self.page.studio.delete, name)
                button("Delete", act, f"delete-{name}-ok", color=None).classes("danger")
                button("Keep", partial(self._ask, ""))
                return
            copy = partial(self._act, self.page.studio.duplicate, name)
            test_id(
                icon_button("content_copy", f"Duplicate {name}", copy, "color=grey"), f"copy-{name}"
            )
            ask = partial(self._ask, name)
            delete = icon_button("delete_outline", f"Delete {name}", ask, "color=grey")
            test_id(delete, f"delete-{name}")

    def _ask(self, name: str) -> None:
        """Ask before a project is deleted; an empty name takes the question back."""
        self._sure = name
        self._tell("" if not name else "Deleted projects are moved to the folder 'deleted'.")
        self._rows.refresh()

    def _act(self, action: Callable[[str], Any], name: str) -> None:
        self._sure = ""
        try:
            action(name)
            self._tell("")
        except ModurobError as error:
            self._tell(str(error))
        self._rows.refresh()
