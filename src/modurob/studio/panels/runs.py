"""The runs of a project: show, compare, rename, export, remove and bring back."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from nicegui import ui

from modurob import ModurobError
from modurob.scenario.settings import RunRecord
from modurob.studio import run_table
from modurob.studio.panels import files
from modurob.studio.panels.panel import (
    Redrawn,
    button,
    chip,
    icon_button,
    note,
    primary,
    problem_line,
    test_id,
    title,
)

if TYPE_CHECKING:
    from modurob.studio.page import Page

SORTED_FROM = 3  # runs on, an order can be chosen


class RunList(Redrawn):
    """The runs of a project, with the settings that tell them apart."""

    def __init__(self, page: Page) -> None:
        self.page, self.order = page, "latest"
        super().__init__(self._list)

    def _list(self) -> None:
        session = self.page.session
        runs, removed = session.runs, session.removed_runs
        if not runs and not removed:
            return
        with ui.element("div").classes("rowbar"):
            title("Runs")
            if len(runs) >= SORTED_FROM:
                orders = {key: words for key, (words, _) in run_table.ORDERS.items()}
                chosen = ui.select(orders, value=self.order, on_change=self._sort)
                chosen.props('dense outlined options-dense aria-label="Order of runs"')
                test_id(chosen, "run-order")
        words = run_table.tags(runs)
        with ui.element("div").style("display: grid; gap: 4px"):
            for run in sorted(runs, key=run_table.ORDERS[self.order][1]):
                self._row(run, words.get(run.number, ""))
        if removed:
            self._removed(removed)

    def _row(self, run: RunRecord, words: str) -> None:
        page, number = self.page, run.number
        with ui.element("div").classes("rowbar"):
            show = partial(page.show_run, number)
            shown = chip(_words(run), number == page.run_shown, show, f"run-{number}")
            shown.classes("run")
            if words:
                with shown:
                    test_id(ui.label(words).classes("run-tags"), f"tags-{number}")
            color = "color=primary" if page.run_other == number else "color=grey"
            label = f"Compare run {number} with the one shown"
            compare = icon_button("compare_arrows", label, partial(self._compare, number), color)
            test_id(compare, f"compare-{number}")
            more = icon_button("more_vert", f"More of run {number}", lambda: None, "color=grey")
            with test_id(more, f"more-{number}"), ui.menu():
                ui.menu_item("Rename…", partial(self._rename, run))
                ui.menu_item("Export…", partial(files.export_dialog, page, number))
                ui.menu_item("Remove", partial(self._remove, number))

    def _removed(self, removed: list[RunRecord]) -> None:
        """Chips that bring runs back."""
        with ui.element("div").classes("row").props('role=group aria-label="Removed runs"'):
            note("Removed; click to bring back:")
            for run in removed:
                back = partial(self.page.act, self.page.session.edit_run, run.number, removed=False)
                chip(_words(run), False, back, f"restore-{run.number}")
            button("Delete for good", self._delete, "delete-runs", "flat dense no-caps size=sm")

    def _sort(self, event: ui.select | object) -> None:
        self.order = event.value  # pyright: ignore[reportAttributeAccessIssue]
        self.refresh()

    def _compare(self, number: int) -> None:
        page = self.page
        if page.run_shown is None or page.run_shown == number:
            page.show_error("Show one run first, then compare another one with it.")
            return
        other = None if page.run_other == number else number
        page.show_run(page.run_shown, other, play=False)

    def _rename(self, run: RunRecord) -> None:
        page = self.page
        with page.dialog(f"Name of run {run.number}", 420) as dialog:
            field = ui.input("Name", value=run.title).props("outlined dense autofocus")
            test_id(field.classes("whole"), "run-name")
            problem = problem_line("run-name-problem")

            def renamed() -> None:
                try:
                    page.session.edit_run(run.number, title=(field.value or "").strip())
                except ModurobError as error:
                    problem.set_text(str(error))
                    return
                dialog.close()

            field.on("keydown.enter", renamed)
            with ui.element("div").classes("row"):
                primary("Rename", renamed, "run-name-ok")
                button("Close", dialog.close, look="flat no-caps")

    def _remove(self, number: int) -> None:
        self.page.act(self.page.session.edit_run, number, removed=True)

    def _delete(self) -> None:
        page, count = self.page, len(self.page.session.removed_runs)
        with page.dialog("Delete removed runs", 420) as dialog:
            note(f"The files of {count} removed run{'s'[: count != 1]} cannot be brought back.")

            def delete() -> None:
                page.act(page.session.delete_removed_runs)
                dialog.close()

            with ui.element("div").classes("row"):
                primary("Delete", delete, "delete-runs-ok")
                button("Keep them", dialog.close, look="flat no-caps")


class Comparison(Redrawn):
    """The run that is shown and the one compared with it, in numbers."""

    def __init__(self, page: Page) -> None:
        self.page = page
        super().__init__(self._table)

    def _table(self) -> None:
        session = self.page.session
        runs = {run.number: run for run in session.runs}
        one, other = runs.get(self.page.run_shown or 0), runs.get(self.page.run_other or 0)
        if one is None or other is None:
            return
        title(f"Run {one.number} beside run {other.number}")
        try:
            found = run_table.comparison(session.folder.runs(session.name), one, other)
        except ModurobError as error:
            note(str(error))
            return
        test_id(ui.html(found, sanitize=False), "comparison")


def _words(run: RunRecord) -> str:
    stopped = " (stopped)" if run.status == "stopped" else ""
    return f"{run.number}: {run.title}, {run.seconds:.3g} s{stopped}"
