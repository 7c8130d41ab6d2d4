"""Figures of the papers: one click computes one, and shows it beside the paper's statement."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from nicegui import ui

from modurob import ModurobError
from modurob.scenario.preset_figures import image
from modurob.scenario.presets import PRESETS, PresetFinding, preset
from modurob.studio.jobs import JobCanceled
from modurob.studio.panels.panel import button, chip, note, primary, test_id, title

if TYPE_CHECKING:
    from modurob.studio.page import Page

MARKS = {True: " ✓ holds", False: " ✗ does not hold", None: ""}


def figure_chips(page: Page) -> None:
    """A chip for each preset."""
    title("Figures of the papers")
    with ui.element("div").classes("row").props('role=group aria-label="Figures of the papers"'):
        for name, each in PRESETS.items():
            show = partial(PresetDialog, page, name)
            with chip(each.title, False, show, f"preset-{name}"):
                ui.label(each.source).classes("run-tags")


def compute(name: str, progress: Callable[[float], Any]) -> tuple[bytes, list[PresetFinding]]:
    """Figure and findings of a preset; a task of a `Worker`."""
    chosen = preset(name)
    results = chosen.run(progress)
    findings = chosen.judge(results)
    return image(chosen, results, findings), findings


class PresetDialog:
    """A preset that is being computed, then its figure and its findings."""

    def __init__(self, page: Page, name: str) -> None:
        self.page, self.name, self.worker, chosen = page, name, page.figures, PRESETS[name]
        with page.dialog(
            f"{chosen.source}: {chosen.title}", 1120, after=self.worker.cancel
        ) as self.dialog:
            note(f"The paper states: {chosen.statement}")
            self.progress = ui.linear_progress(0.0, show_value=False).props(
                'instant-feedback aria-label="Progress of the figure"'
            )
            self.figure = ui.element("div").classes("whole")
            self.state = note("computing…").props("role=status data-testid=preset-state")
            with ui.element("div").classes("row"):
                open_ = lambda: page.go(page.studio.new_from_preset(name))  # noqa: E731
                primary("Open as a project", open_, "preset-open", "open_in_new")
                button("Close", self.dialog.close, "preset-close", "flat no-caps")
        page.run(self._fill())

    async def _fill(self) -> None:
        try:
            png, findings = await self.worker.run(
                compute, self.name, progress=self.progress.set_value
            )
        except ModurobError as error:
            self.state.set_text(str(error))
            return
        except JobCanceled:
            return
        self.progress.set_visibility(False)
        with self.figure:
            source = f"data:image/png;base64,{base64.b64encode(png).decode()}"
            picture = ui.element("img").style("width: 100%; background: white; border-radius: 8px")
            words = f"{PRESETS[self.name].source}, computed here"
            picture._props.update({"src": source, "alt": words})
            test_id(picture, "preset-figure")
        verdicts = [
            f"{each.what}: {each.found}".rstrip(": ") + MARKS[each.holds] for each in findings
        ]
        self.state.set_text("; ".join(verdicts))
