"""Understand: matrices, joints, Denavit-Hartenberg table and equations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from nicegui import ui

from modurob import Model, ModurobError
from modurob.scenario.bodies import EXAMPLES
from modurob.studio import exports, formulas, tables
from modurob.studio.jobs import JobCanceled, Worker
from modurob.studio.panels.panel import (
    NO_BODY,
    ModePanel,
    Redrawn,
    button,
    chip,
    mark,
    moving,
    note,
    test_id,
    title,
)
from modurob.verification import lagrange

if TYPE_CHECKING:
    from modurob.studio.page import Page

PARTS = {
    "matrices": "Matrices", "joints": "Joints", "dh": "D-H table", "equations": "Equations",
    "lagrange": "Lagrange",
}  # fmt: skip
REFERENCES = ("double_pendulum", "crane")  # examples with equations in the literature
SYMBOLS = {"all": "symbols", "none": "numbers"}
MOST_COLORED = 60  # rows of a matrix that is shown
MOST_BUTTONS = 12  # rows of a matrix of buttons; beyond, an entry can be typed, too


class UnderstandPanel(ModePanel):
    """Matrices, joints and equations of the body."""

    def __init__(self, page: Page) -> None:
        super().__init__(page)
        self.worker = Worker()
        self.part = "matrices"
        self.matrix, self.symbols, self.entry = "M", "all", "M[1,1]"
        self._stale = True
        self.root.props('tabindex=0 aria-label="Matrices and equations"')
        with self.root:
            with ui.element("div").classes("row").props('role=tablist aria-label="Parts"'):
                self.tabs = {}
                for part, text in PARTS.items():
                    choose = partial(self._choose, part)
                    self.tabs[part] = chip(text, False, choose, f"part-{part}", role="tab")
            self.content_part = Redrawn(self._content)

    def _choose(self, part: str) -> None:
        self.part, self._stale = part, True
        self.open()

    def open(self) -> None:
        mark(self.tabs, (self.part,), "aria-selected")
        if self._stale:
            self._stale = False
            self.content_part.refresh()
            if self.part == "equations" and self.session.organism is not None:
                self._compute()

    def refresh(self, topic: str) -> None:
        if topic in ("body", "settings", "pose"):
            self._stale = self._stale or topic != "pose" or self.part == "lagrange"
            if self.visible and self.page.ready:
                self.open()

    def close(self) -> None:
        self.worker.close()

    def _content(self) -> None:
        organism = self.session.organism
        if organism is None:
            note(NO_BODY)
            return
        try:
            if self.part == "matrices":
                self._matrices()
            elif self.part == "joints":
                model = self.session.model()
                note(
                    f"{moving(model)} (hinges: {self.session.settings.hinges}). Hover a row to see "
                    "it in 3D."
                )
                _html(tables.joints(model), "joints")
            elif self.part == "dh":
                note("Every joint of every module, the base fixed (physical).")
                _html(tables.denavit_hartenberg(organism), "dh")
            elif self.part == "lagrange":
                self._lagrange()
            else:
                self._equations()
        except ModurobError as error:
            ui.label(str(error)).classes("bad-note").props("role=alert")

    def _matrices(self) -> None:
        organism = self.session.body()
        if len(organism) < 2:
            note("Dock a second module: the matrices describe dockings.")
            return
        if len(organism) > tables.MOST_MODULES:
            note(
                f"The matrices of {len(organism)} modules are too large for the page; the report "
                "under Export has them."
            )
        else:
            title("Assembly incidence matrix")
            _html(tables.aim(organism), "aim")
            title("Accessibility")
            _html(tables.accessibility(organism), "accessibility")
        title("Direct transforms, dyad classes")
        _html(tables.direct(organism), "dtl")
        if len(organism.indirect_transforms()):
            title("Indirect transforms")
            _html(tables.indirect(organism), "idtl")

    def _lagrange(self) -> None:
        model, session = self.session.model(), self.session
        found = lagrange.printed(session.body(), model)
        if found is None:
            note(
                "Equations by Lagrange's method are in the literature for the double pendulum and "
                "the crane, with physical hinges, a fixed base and no friction. Open one of them:"
            )
            with ui.element("div").classes("row"):
                for name in REFERENCES:
                    open_ = partial(self._open_example, name)
                    button(EXAMPLES[name].title, open_, f"reference-{name}")
            return
        title(found.title)
        for line in found.lines:
            ui.label(line).classes("formula printed")
        note(found.symbols)
        title("Accelerations in the pose of the sliders")
        scenario = session.scenario()
        _html(tables.lagrange(model, found, *scenario.start(model)), "lagrange")
        note("A run without controller has the solution of these equations in its plots, dashed.")

    def _open_example(self, name: str) -> None:
        self.page.go(self.page.studio.new_from_example(name))

    # -- equations -------------------------------------------------------------------------------

    def _equations(self) -> None:
        model = self.session.model()
        ui.html(
            '<math display="block"><mi>M</mi><mover accent="true"><mi>q</mi><mo>¨</mo></mover>'
            '<mo>+</mo><mi>C</mi><mover accent="true"><mi>q</mi><mo>˙</mo></mover><mo>+</mo>'
            "<mi>N</mi><mo>=</mo><mi>τ</mi></math>",
            sanitize=False,
        ).classes("formula").style("padding: 10px 4px 2px")
        if not model.nv:
            note("No joint can move, so there are no equations of motion.")
            return
        with ui.element("div").classes("row"):
            self.options = {
                **{name: self._option(name, name) for name in "MCN"},
                **{name: self._option(name, text) for name, text in SYMBOLS.items()},
            }
        mark(self.options, (self.matrix, self.symbols), "aria-pressed")
        self.entries_part = Redrawn(lambda: self._entries(model))
        with ui.element("div").classes("row"):
            _button("Copy LaTeX", "content_copy", lambda: self.page.run(self._copy()))
            _button("Export C", "memory", lambda: self.page.run(self._export_c()))
            self.stop = _button("Cancel", "close", self.worker.cancel)
            test_id(self.stop, "cancel-formula").set_visibility(False)
            self.words = note().props("role=status data-testid=formula-state")
        self.formula = ui.html("", sanitize=False).classes("formula")
        test_id(self.formula, "formula")
        self.names = ui.html("", sanitize=False)

    def _entries(self, model: Model) -> None:
        """One button for each entry, colored by its size; small ones where there are many."""
        if model.nv <= MOST_COLORED:
            self._buttons(self._values(model))
            words = "Color: size of the entry in the pose of the sliders"
            note(f"{words}, all velocities 1." if self.matrix == "C" else f"{words}.")
        if model.nv > MOST_BUTTONS:
            field = ui.input("Entry", value=self.entry, placeholder="M[1,2]")
            field.props("dense outlined").on("keydown.enter", lambda: self._ask(field.value or ""))

    def _values(self, model: Model) -> np.ndarray:
        """(nv, nv) or (nv, 1) numbers of the matrix that is chosen."""
        q = self.session.configuration(model)
        M, C, N = model.closed_form(q, np.ones(model.nv))
        return {"M": M, "C": C, "N": N[:, None]}[self.matrix]

    def _buttons(self, values: np.ndarray) -> None:
        """All in one element: a body of 40 joints has 1600 entries."""
        table = ui.html(tables.entries(self.matrix, values, self.entry), sanitize=False)
        pick = "(e) => { const b = e.target.closest('button'); if (b) emit(b.dataset.entry); }"
        table.on("click", lambda e: self._ask(e.args), js_handler=pick)
        test_id(table, "entries")

    def _option(self, name: str, text: str) -> ui.element:
        return chip(text, False, partial(self._choose_formula, name), f"formula-{name}")

    def _choose_formula(self, name: str) -> None:
        """Show another matrix, or numbers in place of symbols."""
        if name in SYMBOLS:
            self.symbols = name
        else:
            self.matrix, self.entry = name, "N[1]" if name == "N" else f"{name}[1,1]"
        mark(self.options, (self.matrix, self.symbols), "aria-pressed")
        self._ask(self.entry)

    def _ask(self, entry: str) -> None:
        self.entry = entry
        self.entries_part.refresh()
        self._compute()

    def _request(self) -> formulas.EntryRequest:
        return formulas.EntryRequest(self.page.export_request(), self.symbols, self.entry)

    def _compute(self) -> None:
        model = self.page.act(self.session.model)
        if self.part == "equations" and model is not None and model.nv:
            self.worker.cancel()
            self.page.run(self._show_entry())

    async def _show_entry(self) -> None:
        self.words.set_text("computing…")
        self.stop.set_visibility(True)
        asked = self.entry
        try:
            found = await self.worker.run(formulas.entry, self._request())
        except ModurobError as error:
            self.words.set_text(str(error))
            return
        except JobCanceled:
            if not self.worker.busy and self.part == "equations":  # no other entry was asked for
                self.words.set_text("canceled")
            return
        finally:
            if self.part == "equations":  # else its button is gone
                self.stop.set_visibility(self.worker.busy)
        if asked != self.entry or self.part != "equations":
            return
        self.formula.set_content(found["mathml"])
        self.names.set_content(tables.symbols(found["symbols"]))
        terms, shown = found["terms"], found["shown"]
        count = "zero" if not terms else f"{terms} term{'s'[: terms != 1]}"
        more = f", the first {shown} shown; LaTeX has all" if shown < terms else ""
        self.words.set_text(f"{asked}: {count}{more}")

    async def _copy(self) -> None:
        text = await self.worker.run(formulas.latex, self._request())
        ui.clipboard.write(text)
        ui.notify(f"LaTeX of {self.entry} copied", position="bottom")

    async def _export_c(self) -> None:
        data = await self.worker.run(exports.make, "c", self.page.export_request())
        file = f"{self.session.name}.zip"
        ui.download.content(data, file)
        ui.notify(f"{file}: header, source and test of all equations", position="bottom")


def _button(text: str, icon: str, action: Callable[[], Any]) -> ui.button:
    name, look = text.lower().replace(" ", "-"), 'outline no-caps size=sm padding="4px 10px"'
    return button(text, action, name, look, icon=icon)


def _html(content: str, name: str) -> None:
    test_id(ui.html(content, sanitize=False), name)
