"""What a new project shows: three ways to start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicegui import ui

from modurob.scenario.bodies import EXAMPLES
from modurob.studio.panels.panel import test_id

if TYPE_CHECKING:
    from modurob.studio.page import Page


class Welcome:
    """Over the empty stage, until there is a module."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.closed = False
        with (
            ui.element("div").classes("welcome") as self.root,
            ui.element("div").classes("welcome-card"),
        ):
            ui.html("<h2>Build a modular robot</h2>", sanitize=False)
            ui.label(
                "Click a cell of the plan to place the first module, follow the guide, or start "
                "from an example. Everything you do is saved as you go."
            ).classes("note")
            with ui.element("div").classes("row"):
                guide = ui.button("Guide me: the crab in six clicks", icon="school", color=None)
                guide.on_click(self._guide).props("unelevated no-caps").classes("primary")
                test_id(guide, "guide")
                blank = ui.button("Start with an empty grid", on_click=self.close)
                blank.props("outline no-caps")
                test_id(blank, "blank")
            gallery(page)

    def _guide(self) -> None:
        self.page.tour.start()

    def close(self) -> None:
        """Out of the way."""
        self.closed = True
        self.refresh()

    def refresh(self) -> None:
        """Only an empty project needs it."""
        empty = self.page.session.organism is None
        self.root.set_visibility(empty and not self.closed and not self.page.tour.running)


def gallery(page: Page) -> None:
    """The examples, with pictures."""
    with ui.element("div").classes("gallery").props('role=group aria-label="Examples"'):
        for name, example in EXAMPLES.items():
            card = ui.element("button").classes("example").props("type=button")
            card.on("click", lambda _, name=name: open_example(page, name))
            test_id(card, f"example-{name}")
            with card:
                picture = ui.element("img")
                picture._props.update({"src": f"/api/examples/{name}.png", "alt": ""})
                picture._props["loading"] = "lazy"
                ui.label(example.title).classes("caption")


def open_example(page: Page, name: str) -> None:
    """As a new project, in this tab."""
    page.go(page.studio.new_from_example(name))
