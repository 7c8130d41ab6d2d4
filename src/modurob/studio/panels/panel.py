"""Parts that all panels share: redrawn pieces, headings, notes, buttons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from nicegui import ui

from modurob import Model

if TYPE_CHECKING:
    from modurob.studio.page import Page
    from modurob.studio.session import Session

SMALL = "outline dense no-caps size=sm"  # properties of a small button
NO_BODY = "There is no module yet: place one under Build."


class ModePanel:
    """One mode's panel, on the left.

    Attributes:
        root: Everything in it.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.root = ui.element("div").classes("scroll")

    @property
    def session(self) -> Session:
        """The project that it shows."""
        return self.page.session

    @property
    def visible(self) -> bool:
        """True if it is the open one."""
        return self.root.visible

    def open(self) -> None:
        """Fill it when it is shown."""

    def refresh(self, topic: str) -> None:
        """Follow a change of body, pose, settings, runs, kinds or selected."""

    def close(self) -> None:
        """End its work when the tab is gone."""


class Redrawn:
    """A piece of the page that is drawn anew when its content has changed.

    Args:
        shows: The values it is drawn from. While they are equal nothing is drawn anew: a button
            that is replaced while it is pressed does not receive the click.
    """

    def __init__(self, draw: Callable[[], None], shows: Callable[[], Any] | None = None) -> None:
        self._draw, self._shows, self._shown = draw, shows, None
        self._box = ui.element("div").classes("contents")
        self.refresh()

    def refresh(self) -> None:
        """Draw it anew."""
        if self._shows is not None:
            before, self._shown = self._shown, self._shows()
            if before == self._shown:
                return
        self._box.clear()
        with self._box:
            self._draw()


def test_id(element: Any, name: str) -> Any:
    """Name an element for tests."""
    element._props["data-testid"] = name
    return element


def title(text: str) -> ui.label:
    """The heading of a part of a panel."""
    return ui.label(text).classes("title").props("role=heading aria-level=2")


def note(text: str = "") -> ui.label:
    """A line of small text."""
    return ui.label(text).classes("note")


def problem_line(name: str = "problem") -> ui.label:
    """A line for an error, empty at first."""
    return ui.label().classes("bad-note").props(f"role=alert data-testid={name}")


def button(
    text: str, action: Callable[..., Any], name: str = "", look: str = SMALL, **options: Any
) -> ui.button:
    """A button with its properties, and perhaps a name for tests."""
    made = ui.button(text, on_click=action, **options).props(look)
    return test_id(made, name) if name else made


def primary(text: str, action: Callable[..., Any], name: str, icon: str | None = None) -> ui.button:
    """The button that leads on."""
    made = button(text, action, name, "unelevated no-caps", icon=icon, color=None)
    return made.classes("primary")


def icon_button(icon: str, label: str, action: Callable[..., Any], look: str = "") -> ui.button:
    """A small picture to click, with a name for screen readers."""
    made = ui.button(icon=icon, on_click=action).props(f"flat dense size=sm {look}")
    made._props["aria-label"] = label
    return made


def plain_button(
    text: str, action: Callable[[], Any], name: str, css: str = "", **props: str
) -> ui.element:
    """A button without a look of its own."""
    made = ui.element("button").classes(css).props("type=button")
    made._props.update({key.replace("_", "-"): value for key, value in props.items()})
    made.on("click", lambda _: action())
    with test_id(made, name):
        ui.label(text)
    return made


def chip(text: str, on: bool, action: Callable[[], Any], name: str, **props: str) -> ui.element:
    """A choice that is on or off."""
    return plain_button(text, action, name, "chip on" if on else "chip", **props)


def mark(chips: Mapping[str, ui.element], chosen: tuple[str, ...], state: str) -> None:
    """Mark those that are chosen, in place: a button that is replaced loses its click."""
    for name, made in chips.items():
        on = name in chosen
        made._props[state] = "true" if on else "false"
        made.classes(add="on" if on else "", remove="" if on else "on")
        made.update()


def moving(model: Model) -> str:
    """Number of joints that move, in words."""
    move, locked = len(model.joint_names), len(model.locked)
    return (
        f"{move} joint{'s'[: move != 1]} move{'s'[: move == 1]}, "
        f"{locked} {'is' if locked == 1 else 'are'} locked"
    )
