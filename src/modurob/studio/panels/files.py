"""Dialogs about files: open, rename, export, help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicegui import ui

from modurob import ModurobError
from modurob.studio.jobs import Worker
from modurob.studio.panels.build import uploader
from modurob.studio.panels.export import Export
from modurob.studio.panels.panel import test_id, title
from modurob.studio.panels.welcome import gallery
from modurob.studio.project import to_bytes

if TYPE_CHECKING:
    from modurob.studio.page import Page

MOST_PROJECTS = 60  # shown in the list


def open_dialog(page: Page) -> None:
    """Projects of the folder, a file from elsewhere, or an example."""
    from modurob.studio.panels.bar import when

    with page.dialog("Open", 640) as dialog:
        problem = ui.label().classes("bad-note").props("role=alert data-testid=open-problem")
        entries = page.studio.folder.entries()[:MOST_PROJECTS]
        title("Your projects")
        ui.label(str(page.studio.folder.path)).classes("note")
        with ui.element("div").classes("list w-full").style("max-height: 190px; overflow-y: auto"):
            for entry in entries:
                row = ui.element("button").props("type=button")
                row.on("click", lambda _, name=entry.name: _open(page, name, problem))
                test_id(row, f"open-{entry.name}")
                with row:
                    ui.label(entry.name)
                    ui.label(when(entry.changed)).classes("note")
        if not entries:
            ui.label("None yet: every change you make is kept here.").classes("note")
        title("A file of yours")
        uploader(lambda name, data: _upload(page, name, data, problem), problem, "project")
        title("Examples")
        gallery(page)
        ui.button("Close", on_click=dialog.close).props("flat no-caps")


def _open(page: Page, name: str, problem: ui.label) -> None:
    try:
        page.go(page.studio.session(name))
    except ModurobError as error:
        problem.set_text(str(error))


def _upload(page: Page, name: str, data: bytes, problem: ui.label) -> None:
    try:
        page.go(page.studio.upload(name, data))
    except ModurobError as error:
        problem.set_text(str(error))


def rename(page: Page) -> None:
    """Another name for the project, or a copy under it."""
    with page.dialog("Name of the project", 420) as dialog:
        field = ui.input("Name", value=page.session.name).props("outlined dense autofocus")
        field.classes("w-full")
        test_id(field, "new-name")
        problem = ui.label().classes("bad-note").props("role=alert data-testid=name-problem")

        def wish() -> str:
            return (field.value or "").strip()

        def renamed() -> None:
            try:
                page.studio.rename(page.session, wish())
            except ModurobError as error:
                problem.set_text(str(error))
                return
            dialog.close()  # all tabs that show it go to its new address

        def copied() -> None:
            try:
                page.go(page.studio.copy(page.session, wish()))
            except ModurobError as error:
                problem.set_text(str(error))

        field.on("keydown.enter", renamed)
        with ui.element("div").classes("row"):
            ok = (
                ui.button("Rename", on_click=renamed, color=None)
                .props("unelevated no-caps")
                .classes("primary")
            )
            test_id(ok, "rename-ok")
            ui.button("Save a copy", on_click=copied).props("outline no-caps")
            ui.button("Close", on_click=dialog.close).props("flat no-caps")


def share(page: Page) -> None:
    """The project as a file."""
    data = to_bytes(page.session.project)
    ui.download.content(data, f"{page.session.name}.modurob.json", "application/json")


def export_dialog(page: Page) -> None:
    """Every format that leaves the studio."""
    worker = Worker()
    with page.dialog("Export and share", 780, after=worker.close) as dialog:
        Export(page, worker, lambda: share(page), dialog.close)


KEYS = (
    ("Alt+1 … Alt+4", "Build, Understand, Move, See"),
    ("Ctrl+Z, Ctrl+Y", "undo, redo"),
    ("Ctrl+S", "save"),
    ("Arrows, Enter", "in the plan: move the cursor, dock or choose"),
    ("R, B, Delete", "in the plan: turn, make it the base, remove"),
    ("F, T, N, A, C", "in the 3D view: show all, from above, names, axes, follow the robot"),
    ("Space, ←, →", "in the player: play or pause, step"),
)


def help_dialog(page: Page) -> None:
    """Keys, and the guide again."""
    with page.dialog("Help", 520) as dialog:
        rows = "".join(
            f'<tr><td class="left"><b>{key}</b></td><td class="left">{what}</td></tr>'
            for key, what in KEYS
        )
        ui.html(f'<table class="table">{rows}</table>', sanitize=False)

        def guide() -> None:
            dialog.close()
            page.tour.start()

        with ui.element("div").classes("row"):
            ui.button("Guide me through the crab", icon="school", on_click=guide).props(
                "outline no-caps"
            )
            ui.button("Close", on_click=dialog.close).props("flat no-caps")
