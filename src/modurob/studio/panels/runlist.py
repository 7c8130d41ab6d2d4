"""The runs of a project: show one, compare it with another, forget it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from nicegui import ui

from modurob.studio.panels.panel import Redrawn, test_id, title

if TYPE_CHECKING:
    from modurob.studio.page import Page


class RunList:
    """A line for each run, the latest first."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.list_part = Redrawn(self._list)

    def _list(self) -> None:
        runs = self.page.session.runs
        if not runs:
            return
        title("Runs")
        with ui.element("div").style("display: grid; gap: 4px"):
            for run in reversed(runs):
                shown = run.number == self.page.run_shown
                with ui.element("div").classes("rowbar"):
                    button = ui.element("button").classes("chip" + (" on" if shown else ""))
                    button.props("type=button").style("flex: 1; min-width: 0; text-align: left")
                    button.on("click", lambda _, n=run.number: self.page.show_run(n))
                    test_id(button, f"run-{run.number}")
                    with button:
                        words = f"{run.number}: {run.title}, {run.seconds:.3g} s"
                        ui.label(words + (" (stopped)" if run.status == "stopped" else ""))
                    other = self.page.run_other == run.number
                    compare = ui.button(icon="compare_arrows").props("flat dense size=sm")
                    compare.on_click(partial(self._compare, run.number))
                    compare._props["aria-label"] = f"Compare run {run.number} with the one shown"
                    compare.props("color=primary" if other else "color=grey")
                    test_id(compare, f"compare-{run.number}")
                    forget = ui.button(icon="close").props("flat dense size=sm color=grey")
                    forget.on_click(partial(self._forget, run.number))
                    forget._props["aria-label"] = f"Forget run {run.number}"

    def _compare(self, number: int) -> None:
        page = self.page
        if page.run_shown in (None, number):
            page.tell("Show one run first, then compare another one with it.")
            return
        other = None if page.run_other == number else number
        assert page.run_shown is not None
        page.show_run(page.run_shown, other, play=False)

    def _forget(self, number: int) -> None:
        page = self.page
        if page.run_shown == number:
            page.run_shown = page.run_other = None
            page.player.run_method("unload")
        page.session.remove_run(number)

    def refresh(self) -> None:
        """Runs came or went."""
        self.list_part.refresh()
