"""The guided first run: the crab in six clicks, then a gait of its joints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nicegui import ui

from modurob.studio.guide import COUNT, KIND, Advice, advice
from modurob.studio.panels.panel import Redrawn, test_id

if TYPE_CHECKING:
    from modurob.studio.page import Page


class Tour:
    """A card over the stage that leads from click to click."""

    def __init__(self, page: Page) -> None:
        self.page, self.running = page, False
        self.root = ui.element("div").classes("tour").props('role=region aria-label="Guide"')
        self.root.set_visibility(False)
        with self.root:
            self.card_part = Redrawn(self._card, lambda: (self._advice, page.mode))

    @property
    def _advice(self) -> Advice:
        return advice(self.page.session.organism)

    def start(self) -> None:
        """Begin, in an empty project."""
        if self.page.session.organism is not None:
            self.page.session.change("start the guide", None)
        self.page.show("build")
        self.page.choose(KIND)
        self.running = True
        self.refresh()

    def stop(self) -> None:
        """End the guide."""
        self.running = False
        self.page.view.plan.run_method("set_hint", None)
        self.refresh()

    def run_started(self) -> None:
        """The last step was taken, by the card's button or under Move."""
        if self.running and self._advice.done == COUNT:
            self.stop()

    def refresh(self) -> None:
        """Another body or mode: on to the next click."""
        self.root.set_visibility(self.running)
        if not self.running:
            return
        self.page.welcome.refresh()
        self.card_part.refresh()
        now, hint = self._advice, None
        if now.cell is not None:
            hint: dict[str, Any] | None = {"x": now.cell[0], "y": now.cell[1], "wish": now.wish}
        self.page.view.plan.run_method("set_hint", hint)

    def _card(self) -> None:
        now = self._advice
        if now.done == COUNT:
            ui.label("Your crab stands").classes("title")
            ui.label(
                "Understand shows its matrices and equations. The button computes and plays a "
                "run: a wave runs through its joints, followed by computed torque. The base is "
                "fixed, and there is no ground to walk on."
            )
            run = ui.button("Play a gait (joints only, no ground)", icon="play_arrow", color=None)
            run.on_click(self._play).props("unelevated no-caps").classes("primary")
            test_id(run, "tour-play")
        else:
            ui.label(f"Step {now.done + 1} of {COUNT}").classes("title")
            here = self.page.mode == "build"
            text = now.text if here else "The guide goes on under Build (Alt+1)."
            test_id(ui.label(text), "tour-text")
        ui.button("End the guide", on_click=self.stop).props("flat dense no-caps size=sm")

    def _play(self) -> None:
        self.page.show("move")
        self.page.move_panel.start_run()
