"""What all panels have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nicegui import ui

from modurob import Model

if TYPE_CHECKING:
    from modurob.studio.page import Page
    from modurob.studio.session import Session


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
        """What it shows."""
        return self.page.session

    @property
    def visible(self) -> bool:
        """Whether it is the one that is open."""
        return self.root.visible

    def open(self) -> None:
        """It is shown from now on."""

    def refresh(self, topic: str) -> None:
        """Something changed: body, pose, settings, runs, kinds or selected."""

    def close(self) -> None:
        """The tab is gone."""


def title(text: str) -> ui.label:
    """The heading of a part of a panel."""
    return ui.label(text).classes("title").props("role=heading aria-level=2")


def moving(model: Model) -> str:
    """How many joints move, in words."""
    move, locked = len(model.joint_names), len(model.locked)
    return (
        f"{move} joint{'s'[: move != 1]} move{'s'[: move == 1]}, "
        f"{locked} {'is' if locked == 1 else 'are'} locked"
    )


def test_id(element: ui.element, name: str) -> ui.element:
    """A name by which tests find an element."""
    element._props["data-testid"] = name
    return element


class Redrawn:
    """A piece of the page that is drawn anew when what it shows has changed.

    Args:
        shows: What it is drawn from. While that is the same nothing is drawn anew: a button that
            is replaced while somebody presses it does not hear of it.
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
