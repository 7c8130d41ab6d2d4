"""See: plots linked with the stage, runs side by side, traces; and the list of runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from nicegui import ui

from modurob.studio.panels.panel import ModePanel, Redrawn, chip, icon_button, test_id, title
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
        self.plots.run_method("draw")

    def refresh(self, topic: str) -> None:
        if topic in ("runs", "shown"):
            self.list.refresh()


class RunList(Redrawn):
    """The runs of a project, the latest first: show one, compare it with another, delete it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        super().__init__(self._list)

    def _list(self) -> None:
        page = self.page
        if not page.session.runs:
            return
        title("Runs")
        with ui.element("div").style("display: grid; gap: 4px"):
            for run in reversed(page.session.runs):
                number, stopped = run.number, " (stopped)" if run.status == "stopped" else ""
                text = f"{number}: {run.title}, {run.seconds:.3g} s{stopped}"
                with ui.element("div").classes("rowbar"):
                    shown = number == page.run_shown
                    show = chip(text, shown, partial(page.show_run, number), f"run-{number}")
                    show.style("flex: 1; min-width: 0; text-align: left")
                    color = "color=primary" if page.run_other == number else "color=grey"
                    label = f"Compare run {number} with the one shown"
                    compare = partial(self._compare, number)
                    test_id(
                        icon_button("compare_arrows", label, compare, color), f"compare-{number}"
                    )
                    forget = partial(self._forget, number)
                    icon_button("close", f"Forget run {number}", forget, "color=grey")

    def _compare(self, number: int) -> None:
        page = self.page
        if page.run_shown is None or page.run_shown == number:
            page.show_error("Show one run first, then compare another one with it.")
            return
        other = None if page.run_other == number else number
        page.show_run(page.run_shown, other, play=False)

    def _forget(self, number: int) -> None:
        page = self.page
        if page.run_shown == number:
            page.run_shown = page.run_other = None
            page.player.run_method("unload")
        page.session.remove_run(number)
