"""See: plots linked with the stage, runs side by side, traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nicegui import ui

from modurob.studio.elements import Plots
from modurob.studio.panels.panel import ModePanel, Redrawn, test_id, title
from modurob.studio.panels.runlist import RunList

if TYPE_CHECKING:
    from modurob.studio.page import Page

FIRST = ("q", "tau", "error", "estimate", "known", "sent")  # shown at the beginning


class SeePanel(ModePanel):
    """Which quantities, which run, which traces."""

    def __init__(self, page: Page) -> None:
        super().__init__(page)
        self._panels: list[dict[str, str]] = []
        self._chosen = set(FIRST)
        self.root.props('tabindex=0 aria-label="Plots"')
        with self.root:
            self.list = RunList(page)
            with ui.element("div").classes("row").props('role=group aria-label="Quantities"'):
                self.chips_part = Redrawn(self._chips)
            self.traces = ui.select([], multiple=True, label="Trace modules in 3D", value=[])
            self.traces.props("dense outlined options-dense use-chips clearable")
            self.traces.on_value_change(lambda e: self._trace(e.value or []))
            test_id(self.traces, "traces")
            self.plots = Plots()
            self.plots.on("panels", self._known)

    def _chips(self) -> None:
        if not self._panels:
            title("Plots")
        for panel in self._panels:
            on = panel["key"] in self._chosen
            chip = ui.element("button").classes("chip" + (" on" if on else ""))
            chip.props(f"type=button aria-pressed={'true' if on else 'false'}")
            chip.on("click", lambda _, key=panel["key"]: self._toggle(key))
            test_id(chip, f"plot-{panel['key']}")
            with chip:
                ui.label(panel["title"].split(":")[0].split(",")[0])

    def _known(self, event: Any) -> None:
        """The browser has a run: these are its quantities."""
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
        self.plots.run_method("draw")

    def refresh(self, topic: str) -> None:
        if topic in ("runs", "shown"):
            self.list.refresh()
