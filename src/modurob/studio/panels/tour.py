"""The guided first run: the crab in six clicks, then let it walk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nicegui import ui

from modurob.studio.panels.panel import Part, test_id

if TYPE_CHECKING:
    from modurob.studio.page import Page


class Click(NamedTuple):
    """A click of the guide: where, and what to say.

    Attributes:
        x, y: Cell of the plan.
        module, port, child_port: What it docks.
        text: What to read.
    """

    x: int
    y: int
    module: str | None
    port: int | None
    child_port: int | None
    text: str


CLICKS = (
    Click(0, 0, None, None, None, "Click the marked cell: the first module is the base."),
    Click(0, 1, "m0", 3, 4, "A second Scout docks with its side 4 to side 3 of the base."),
    Click(1, 1, "m1", 2, 5, "The first leg starts at side 2 of m1."),
    Click(1, 2, "m2", 3, 2, "Its foot is turned: side 2 docks, so the hinge points elsewhere."),
    Click(-1, 1, "m1", 5, 2, "The second leg, at side 5 of m1."),
    Click(-1, 2, "m4", 3, 5, "And its foot. That makes a crab of six Scouts."),
)


class Tour:
    """A card over the stage that leads from click to click."""

    def __init__(self, page: Page) -> None:
        self.page, self.running = page, False
        self.root = ui.element("div").classes("tour").props('role=region aria-label="Guide"')
        self.root.set_visibility(False)
        with self.root:
            self.card_part = Part(self._card)

    def start(self) -> None:
        """Begin, in an empty project."""
        if self.page.session.organism is not None:
            self.page.session.change("start the guide", None)
        self.page.show("build")
        self.page.choose("scout")
        self.running = True
        self.refresh()

    def stop(self) -> None:
        """Enough."""
        self.running = False
        self.page.view.plan.run_method("set_hint", None)
        self.refresh()

    @property
    def count(self) -> int:
        """How many modules there are."""
        organism = self.page.session.organism
        return 0 if organism is None else len(organism)

    def refresh(self) -> None:
        """The body changed: on to the next click."""
        self.root.set_visibility(self.running)
        if not self.running:
            return
        self.page.welcome.refresh()
        self.card_part.refresh()
        hint: dict[str, Any] | None = None
        if self.count < len(CLICKS):
            hint = {**CLICKS[self.count]._asdict(), "kind": "scout"}
        self.page.view.plan.run_method("set_hint", hint)

    def _card(self) -> None:
        count = self.count
        if count < len(CLICKS):
            ui.label(f"Step {count + 1} of {len(CLICKS)}").classes("title")
            ui.label(CLICKS[count].text)
        else:
            ui.label("Your crab stands").classes("title")
            ui.label(
                "Understand shows its matrices and equations. Now let it move: a wave runs "
                "through its joints, followed by computed torque."
            )
            run = ui.button("Let it walk", icon="play_arrow", on_click=self._walk, color=None)
            run.props("unelevated no-caps").classes("primary")
            test_id(run, "tour-walk")
        ui.button("End the guide", on_click=self.stop).props("flat dense no-caps size=sm")

    def _walk(self) -> None:
        self.stop()
        self.page.show("move")
        self.page.move_panel.start_run()
