"""See: plots linked with the stage, runs side by side, traces."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from nicegui import ui

from modurob.studio.panels.panel import ModePanel, Redrawn, chip, test_id, title
from modurob.studio.panels.runs import Comparison, RunList
from modurob.studio.view import Plots

if TYPE_CHECKING:
    from modurob.studio.page import Page

FIRST = ("q", "tau", "error", "estimate", "known", "sent")  # shown at the beginning


class SeePanel(ModePanel):
    """Quantities, runs and traces to show."""

    def __init__(self, page: Page) -> None:
        super().__init__(page)
        self._panels: list[dict[str, str]] = []
        self._chosen = set(FIRST)
        self.root.props('tabindex=0 aria-label="Plots"')
        with self.root:
            self.shown = Redrawn(self._runs)
            with ui.element("div").classes("row").props('role=group aria-label="Quantities"'):
                self.chips_part = Redrawn(self._chips)
            self.plots = Plots()
            self.plots.on("panels", self._known)
            self.comparison = Comparison(page)
            self.list = RunList(page)
            self.traces = ui.select([], multiple=True, label="Trace modules in 3D", value=[])
            self.traces.props("dense outlined options-dense use-chips clearable")
            self.traces.on_value_change(lambda e: self._trace(e.value or []))
            test_id(self.traces, "traces")

    def _runs(self) -> None:
        """The run that is plotted, and the one beside it, to be chosen above the plots."""
        page = self.page
        titles = {run.number: f"{run.number}: {run.title}" for run in reversed(page.session.runs)}
        if len(titles) < 2:
            return
        with ui.element("div").classes("fields"):
            shown = ui.select(titles, label="Run", value=_among(page.run_shown, titles))
            shown.on_value_change(lambda e: page.show_run(e.value, play=False))
            others = {None: "no other run", **titles}
            others.pop(page.run_shown, None)
            other = ui.select(others, label="Beside it", value=_among(page.run_other, titles))
            other.on_value_change(lambda e: page.show_run(page.run_shown or 0, e.value, play=False))
            other.set_enabled(page.run_shown is not None)
            for field, name in ((shown, "see-run"), (other, "see-other")):
                test_id(field.props("dense outlined options-dense"), name)

    def _chips(self) -> None:
        if not self._panels:
            title("Plots")
        for panel in self._panels:
            key, text = panel["key"], panel["title"].split(":")[0].split(",")[0]
            on = key in self._chosen
            pressed = "true" if on else "false"
            chip(text, on, partial(self._toggle, key), f"plot-{key}", aria_pressed=pressed)

    def _known(self, event: Any) -> None:
        """Take the quantities of the run that the browser has loaded."""
        self._panels = event.args["panels"]
        self.traces.set_options(event.args["modules"])
        self.chips_part.refresh()
        self._send()

    def _toggle(self, key: str) -> None:
        self._chosen ^= {key}
        self.chips_part.refresh()
        self._send()

    def _send(self) -> None:
        known = [panel["key"] for panel in self._panels]
        self.plots.run_method("set_chosen", [key for key in known if key in self._chosen])

    def _trace(self, names: list[str]) -> None:
        self.page.player.run_method("set_traces", names)

    def open(self) -> None:
        runs = self.session.runs
        if self.page.run_shown is None and runs:
            self.page.show_run(runs[-1].number, play=False)
        else:
            self.page.player.run_method("wake")
        self.plots.run_method("draw")

    def refresh(self, topic: str) -> None:
        if topic == "runs":
            self._forget_removed()
        if topic in ("runs", "shown"):
            self.shown.refresh()
            self.list.refresh()
            self.comparison.refresh()

    def _forget_removed(self) -> None:
        """Stop showing a run that was removed, here or in another tab."""
        page, numbers = self.page, [run.number for run in self.session.runs]
        if page.run_shown is not None and page.run_shown not in numbers:
            page.run_shown = page.run_other = None
            page.player.run_method("unload")
        elif page.run_other is not None and page.run_other not in numbers:
            page.show_run(page.run_shown or 0, play=False)


def _among(number: int | None, known: Mapping[int, Any]) -> int | None:
    return number if number in known else None
