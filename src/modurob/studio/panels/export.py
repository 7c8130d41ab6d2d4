"""The rows of the export dialog."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nicegui import ui

from modurob import ModurobError
from modurob.scenario.exports import ExportFormat
from modurob.sim.output import video
from modurob.studio import exports
from modurob.studio.jobs import Cancelled, Worker
from modurob.studio.panels.panel import test_id, title

if TYPE_CHECKING:
    from modurob.studio.page import Page


class Export:
    """Makes files beside everything else, with progress, one at a time."""

    def __init__(
        self, page: Page, worker: Worker, share: Callable[[], Any], close: Callable[[], Any]
    ) -> None:
        self.page, self.worker = page, worker
        session = page.session
        if session.organism is None:
            ui.label("There is no module yet: place one under Build.").classes("note")
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
                _row("Project", "Body, history, settings, own modules", share, "export-project")
                title("Run")
                if not session.runs:
                    ui.label("There is no run yet: press Run under Move.").classes("note")
                else:
                    for name, form in exports.FORMATS.items():
                        if form.needs_run:
                            self._format(name, form)
        self.progress = ui.linear_progress(0.0, show_value=False).props(
            'instant-feedback aria-label="Progress of the export"'
        )
        with ui.element("div").classes("row"):
            self.cancel = ui.button("Cancel", on_click=self.worker.cancel).props("outline no-caps")
            ui.button("Close", on_click=close).props("outline no-caps")
            self.state = ui.label().classes("note").props("role=status data-testid=export-state")
        self._busy(False)

    def _format(self, name: str, form: ExportFormat) -> None:
        if name == "mp4" and not video.ffmpeg():
            ui.label("Film, MP4: pip install imageio-ffmpeg to have it.").classes("note")
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
                exports.make, name, self.page.export_request(), progress=self.progress.set_value
            )
        except ModurobError as error:
            self.state.set_text(str(error))
            return
        except Cancelled:
            self.state.set_text("cancelled")
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
    with ui.element("div").classes("rowbar w-full"):
        with ui.element("div"):
            ui.label(text).classes("font-medium")
            ui.label(detail).classes("note")
        button = ui.button("Export", on_click=action).props("outline dense no-caps size=sm")
        button._props["aria-label"] = f"Export {text}"
        test_id(button, name)
