"""Dialogs about files: open, rename, export, help."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from nicegui import ui

from modurob import ModurobError
from modurob.scenario.exports import ExportFormat
from modurob.sim.output import video
from modurob.studio import exports, imports
from modurob.studio.guard import LARGEST_BODY
from modurob.studio.jobs import JobCanceled, Worker
from modurob.studio.panels.build import uploader
from modurob.studio.panels.panel import NO_BODY, button, note, primary, problem_line, test_id, title
from modurob.studio.panels.papers import figure_chips
from modurob.studio.panels.projects import ProjectList
from modurob.studio.panels.start import gallery, walker_chips
from modurob.studio.project import to_bytes

if TYPE_CHECKING:
    from modurob.studio.page import Page
    from modurob.studio.session import Session


def open_dialog(page: Page) -> None:
    """Projects of the folder, a file from elsewhere, or an example."""
    with page.dialog("Open", 640) as dialog:
        problem = problem_line("open-problem")
        ProjectList(page, partial(_go, page, problem, page.studio.session), problem.set_text)
        title("A file of yours")
        upload = partial(_go, page, problem, page.studio.upload)
        uploader(upload, problem.set_text, "project")
        note("A project, an organism, URDF or CoBRA; it can be dropped anywhere on the page, too.")
        title("Examples")
        gallery(page)
        walker_chips(page)
        figure_chips(page)
        button("Close", dialog.close, look="flat no-caps")


def _go(page: Page, problem: ui.label, found: Callable[..., Session], *args: Any) -> None:
    """Show the session that a function finds, or the reason why it finds none."""
    try:
        page.go(found(*args))
    except ModurobError as error:
        problem.set_text(str(error))


def rename(page: Page) -> None:
    """Another name for the project, or a copy under it."""
    with page.dialog("Name of the project", 420) as dialog:
        field = ui.input("Name", value=page.session.name).props("outlined dense autofocus")
        field.classes("whole")
        test_id(field, "new-name")
        problem = problem_line("name-problem")

        def wanted() -> str:
            return (field.value or "").strip()

        def renamed() -> None:
            try:
                page.studio.rename(page.session, wanted())
            except ModurobError as error:
                problem.set_text(str(error))
                return
            dialog.close()  # all tabs that show it go to its new address

        def copied() -> None:
            ui.run_javascript("window.modurob.leaving = true")  # nothing is lost: no warning
            _go(page, problem, page.studio.copy, page.session, wanted())

        field.on("keydown.enter", renamed)
        with ui.element("div").classes("row"):
            primary("Rename", renamed, "rename-ok")
            button("Save a copy", copied, look="outline no-caps")
            button("Close", dialog.close, look="flat no-caps")


def share(page: Page) -> None:
    """The project as a file."""
    data = to_bytes(page.session.project)
    ui.download.content(data, f"{page.session.name}.modurob.json", "application/json")


def share_runs(page: Page) -> None:
    """The project with its runs as one file, small enough to be opened again."""
    session = page.session
    folder = session.folder.runs(session.name)
    data, count = imports.archive(session.project, folder, LARGEST_BODY)
    ui.download.content(data, f"{session.name}.modurob.zip", "application/zip")
    if count < len(session.runs):
        ui.notify(
            f"The latest {count} of {len(session.runs)} runs fit into one file.", position="bottom"
        )


def export_dialog(page: Page, run: int | None = None) -> None:
    """Every format that leaves the studio, of a run or of the one that is shown."""
    worker = Worker()
    with page.dialog("Export and share", 780, after=worker.close) as dialog:
        ExportRows(page, worker, run or page.run_shown, dialog.close)


class ExportRows:
    """Makes files beside everything else, with progress, one at a time."""

    def __init__(
        self, page: Page, worker: Worker, run: int | None, close: Callable[[], Any]
    ) -> None:
        self.page, self.worker, self.run = page, worker, run
        session = page.session
        if session.organism is None:
            note(NO_BODY)
            return
        with ui.element("div").classes("columns"):
            with ui.element("div").classes("column-of-rows"):
                title("Body")
                _row("Picture, PNG", "The 3D view as it is", self._png, "export-png")
                for name, form in exports.FORMATS.items():
                    if not form.needs_run:
                        self._format(name, form)
            with ui.element("div").classes("column-of-rows"):
                title("Share")
                _row(
                    "Project",
                    "Body, history, settings, own modules",
                    partial(share, page),
                    "export-project",
                )
                if session.runs:
                    words, act = "The same with the runs, as one file", partial(share_runs, page)
                    _row("Project with runs", words, act, "export-archive")
                title("Run")
                if not session.runs:
                    note("There is no run yet: press Run under Move.")
                else:
                    record = session.export_request(run).record
                    note("" if record is None else f"{record.number}: {record.title}")
                    for name, form in exports.FORMATS.items():
                        if form.needs_run:
                            self._format(name, form)
        self.progress = ui.linear_progress(0.0, show_value=False).props(
            'instant-feedback aria-label="Progress of the export"'
        )
        with ui.element("div").classes("row"):
            self.cancel = button("Cancel", self.worker.cancel, look="outline no-caps")
            button("Close", close, look="outline no-caps")
            self.state = note().props("role=status data-testid=export-state")
        self._busy(False)

    def _format(self, name: str, form: ExportFormat) -> None:
        if name == "mp4" and not video.ffmpeg():
            note("Film, MP4: pip install imageio-ffmpeg to have it.")
            return
        _row(form.title, form.detail, lambda: self._start(name), f"export-{name}")

    def _busy(self, on: bool) -> None:
        self.progress.set_visibility(on)
        self.cancel.set_enabled(on)

    def _start(self, name: str) -> None:
        if not self.worker.busy:
            self.page.run(self._make(name))

    async def _make(self, name: str) -> None:
        self._busy(True)
        self.state.set_text(f"making {exports.FORMATS[name].title}…")
        try:
            data = await self.worker.run(
                exports.make,
                name,
                self.page.session.export_request(self.run),
                progress=self.progress.set_value,
            )
        except ModurobError as error:
            self.state.set_text(str(error))
            return
        except JobCanceled:
            self.state.set_text("canceled")
            return
        finally:
            self._busy(False)
        file = f"{self.page.session.name}{exports.FORMATS[name].ending}"
        ui.download.content(data, file)
        self.state.set_text(f"{file}: {len(data):,} bytes")

    async def _png(self) -> None:
        url = await self.page.stage.run_method("png", timeout=20)
        ui.download.content(base64.b64decode(url.split(",")[1]), f"{self.page.session.name}.png")


def _row(text: str, detail: str, action: Any, name: str) -> None:
    with ui.element("div").classes("rowbar whole"):
        with ui.element("div"):
            ui.label(text).classes("strong")
            note(detail)
        button("Export", action, name)._props["aria-label"] = f"Export {text}"


KEYS = (
    ("Alt+1 … Alt+5", "Build, Understand, Move, See, Live"),
    ("Ctrl+Z, Ctrl+Y", "undo, redo"),
    ("Ctrl+S", "save"),
    ("Ctrl+C, Ctrl+V, Ctrl+D, Ctrl+M", "copy, paste, repeat, mirror the chosen module"),
    ("Arrows, Enter", "in the plan and the tree: move, dock or choose"),
    ("R, B, Delete", "in the plan and the tree: turn, make it the base, remove; R also in 3D"),
    ("F2, Alt+↑, Alt+↓", "in the tree: rename, move to another side"),
    ("F, T, N, A, C", "in the 3D view: show all, from above, names, axes, what the camera follows"),
    (
        "Shift, Alt, Escape",
        "in the 3D view: choose several, turn the camera over a body, end a drag",
    ),
    ("Space, ←, →", "in the player: play or pause, step"),
    (
        "Fingers",
        "tap: click; hold: remove; drag: move a body, or turn the view; two: zoom and move it",
    ),
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
            button("Guide me through the crab", guide, look="outline no-caps", icon="school")
            button("Close", dialog.close, look="flat no-caps")
