"""The first steps in a new project: ways to start, and the guide to the crab."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from nicegui import ui

from modurob.scenario.bodies import EXAMPLES
from modurob.studio.guide import COUNT, KIND, Advice, advice
from modurob.studio.panels.panel import Redrawn, button, chip, note, primary, test_id, title
from modurob.studio.panels.papers import figure_chips
from modurob.walking.zoo import ZOO

if TYPE_CHECKING:
    from modurob.studio.page import Page


class Welcome:
    """A card over the empty stage, until there is a module."""

    def __init__(self, page: Page) -> None:
        self.page, self.closed = page, False
        with (
            ui.element("div").classes("welcome") as self.root,
            ui.element("div").classes("welcome-card"),
        ):
            ui.html("<h2>Build a modular robot</h2>", sanitize=False)
            note(
                "Click a cell of the plan to place the first module, follow the guide, or start "
                "from an example. Everything you do is saved as you go."
            )
            with ui.element("div").classes("row"):
                start = lambda: page.tour.start()  # noqa: E731 (the tour comes later)
                primary("Guide me: the crab in six clicks", start, "guide", "school")
                button("Start with an empty grid", self.close, "blank", "outline no-caps")
            gallery(page)
            walker_chips(page)
            figure_chips(page)

    def close(self) -> None:
        """Hide it."""
        self.closed = True
        self.refresh()

    def refresh(self) -> None:
        """Show it in an empty project only."""
        empty = self.page.session.organism is None
        self.root.set_visibility(empty and not self.closed and not self.page.tour.running)


def gallery(page: Page) -> None:
    """The examples with pictures; a click opens one as a new project, in this tab."""
    with ui.element("div").classes("gallery").props('role=group aria-label="Examples"'):
        for name, example in EXAMPLES.items():
            card = ui.element("button").classes("example").props("type=button")
            card.on("click", lambda _, name=name: page.go(page.studio.new_from_example(name)))
            with test_id(card, f"example-{name}"):
                source = {"src": f"/api/examples/{name}.png", "alt": "", "loading": "lazy"}
                ui.element("img")._props.update(source)
                ui.label(example.title).classes("caption")


def walker_chips(page: Page) -> None:
    """A chip for each body of the zoo: a new project that walks when it is run."""
    title("Walkers")
    note("On the ground, with a gait tuned for the body; the base of an example above is held.")
    with ui.element("div").classes("row").props('role=group aria-label="Walkers"'):
        for name, walker in ZOO.items():
            chip(walker.title, False, partial(_open_walker, page, name), f"walker-{name}")


def _open_walker(page: Page, name: str) -> None:
    if (session := page.act(page.studio.new_from_walker, name)) is not None:
        page.go(session)


class Tour:
    """The guided first run: the crab in six clicks, then a gait of its joints."""

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
        """End it after its last step, taken by the card's button or under Move."""
        if self.running and self._advice.done == COUNT:
            self.stop()

    def refresh(self) -> None:
        """Go on to the next click, with another body or mode."""
        self.root.set_visibility(self.running)
        if not self.running:
            return
        self.page.welcome.refresh()
        self.card_part.refresh()
        now, hint = self._advice, None
        if now.cell is not None:
            hint: dict[str, Any] | None = {"x": now.cell[0], "y": now.cell[1], "click": now.click}
        self.page.view.plan.run_method("set_hint", hint)

    def _card(self) -> None:
        now = self._advice
        if now.done == COUNT:
            ui.label("The crab is complete").classes("title")
            ui.label(
                "Let it walk on the ground, or let a wave run through its joints while the base "
                "is held. Understand shows its matrices and equations."
            )
            panel = self.page.move_panel
            walk, play = partial(self._play, panel.walk), partial(self._play, panel.start_run)
            primary("Walk on the ground", walk, "tour-walk", "directions_walk")
            button("Play a gait (fixed base)", play, "tour-play", icon="play_arrow")
        else:
            ui.label(f"Step {now.done + 1} of {COUNT}").classes("title")
            here = self.page.mode == "build"
            text = now.text if here else "The guide goes on under Build (Alt+1)."
            test_id(ui.label(text), "tour-text")
        button("End the guide", self.stop, look="flat dense no-caps size=sm")

    def _play(self, run: Callable[[], None]) -> None:
        self.page.show("move")
        run()
