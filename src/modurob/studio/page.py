"""The page: one frame around the stage, a panel for each mode, and what they share."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from nicegui import Client, background_tasks, ui

from modurob import ModurobError
from modurob.scenario.exports import ExportRequest
from modurob.studio import imports, subtrees
from modurob.studio.jobs import JobCanceled, Worker
from modurob.studio.panels.bar import Bar
from modurob.studio.panels.build import BuildPanel, uploader
from modurob.studio.panels.live import LivePanel
from modurob.studio.panels.move import MovePanel
from modurob.studio.panels.panel import ModePanel
from modurob.studio.panels.see import SeePanel
from modurob.studio.panels.start import Tour, Welcome
from modurob.studio.panels.understand import UnderstandPanel
from modurob.studio.session import Session
from modurob.studio.studio import Studio
from modurob.studio.view import BodyView, Divider, DropPlace, Player, Stage

MODES = {
    "build": "Build", "understand": "Understand", "move": "Move", "see": "See", "live": "Live",
}  # fmt: skip
MODE_KEYS = {f"Digit{k + 1}": mode for k, mode in enumerate(MODES)}
ERROR_NOTE: dict[str, Any] = {
    "type": "negative", "position": "bottom", "multi_line": True, "close_button": "OK",
    "classes": "error-note",
}  # fmt: skip
NOTHING_CHOSEN = "Choose a module first: click it."
OFF_PATH_M = 5e-4  # from a path that was drawn: less is none
PANEL_DELAY_S = 0.05  # after the stage, the panels are redrawn
WIDTHS_PX = {"build": 430, "understand": 520, "move": 400, "see": 560, "live": 430}  # of the panels


class Page:
    """One tab: its view of a session, and what is chosen in it.

    Attributes:
        selected: The module that is chosen, the last of several.
        chosen_modules: All that are chosen.
        kind, child_port, turn: Of the module that a click docks; None for the usual port and turn.
        mode: The panel that is open.
        figures: Process that computes figures of the papers, kept for the next one.
    """

    def __init__(self, studio: Studio, session: Session, client: Client) -> None:
        self.studio, self.session, self.client = studio, session, client
        self.selected: str | None = None
        self.chosen_modules: list[str] = []
        self.kind = self._first_kind()
        # a reload shows the run or the robot again
        self.mode = "move" if session.runner.busy else "live" if session.live.on else "build"
        self.child_port: int | str | None = None
        self.turn: int | None = None
        self.run_shown: int | None = None
        self.run_other: int | None = None
        self.ready, self.figures = False, Worker()
        self._waiting: list[str] = []  # topics that the panels have not heard of yet
        self._end = session.listen(self.refresh)

    def _first_kind(self) -> str:
        organism = self.session.organism
        kinds = self.session.kinds()
        last = organism.kind(organism.modules[-1]).name if organism is not None else "scout"
        return last if last in kinds else "backbone"

    # -- building the page -----------------------------------------------------------------------

    def build(self) -> None:
        """Put everything on the page."""
        ui.link("Skip to the panel", "#panel").classes("skip")
        with ui.element("div").classes("frame") as self.frame:
            self.bar = Bar(self)
            with ui.element("main").classes("side").props('id=panel aria-label="Panel"'):
                self.build_panel, self.move_panel = BuildPanel(self), MovePanel(self)
                self.panels: dict[str, ModePanel] = {
                    "build": self.build_panel,
                    "understand": UnderstandPanel(self),
                    "move": self.move_panel,
                    "see": SeePanel(self),
                    "live": LivePanel(self),
                }
            Divider()
            with ui.element("section").classes("main").props('aria-label="Stage"'):
                with ui.element("div").classes("stage-box") as self.stage_box:
                    self.stage = Stage()
                    self.stage.on("dock", lambda e: self.dock(e.args, self.stage))
                    self.stage.on("pick", lambda e: self.pick(**e.args))
                    self.stage.on("remove", lambda e: self.remove(e.args["module"], self.stage))
                    self.stage.on("turn", lambda e: self.build_panel.turn(e.args, self.stage))
                    self.stage.on("move", lambda e: self.build_panel.move(e.args, self.stage))
                    self.stage.on("carry", lambda e: self.act(self.view.carry, **e.args))
                    self.stage.on("drag", lambda e: self.act(self.session.drag, **e.args))
                    self.stage.on("path", lambda e: self._draw_path(**e.args))
                    self.stage.on("pose", lambda e: self.act(self.session.set_pose, **e.args))
                    self.stage.on("command", lambda e: self._command(e.args))
                    self.welcome = Welcome(self)
                    self.tour = Tour(self)
                    self.welcome.refresh()  # hidden at once, it loads no pictures of examples
                self.player = Player()
            with DropPlace():
                uploader(self.drop, self.show_error, "file")
        self.view = BodyView(self, self.stage, self.build_panel.plan, self.build_panel.tree)
        self.show(self.mode)

    def start(self) -> None:
        """Fill it, when the browser is there; from now on it follows the session."""
        self.ready = True
        self.view.palette()
        self.refresh("body", fit=True)
        for panel in self.panels.values():
            panel.refresh("settings")
        self.move_panel.show_state()
        self.panels[self.mode].open()
        notes, self.session.notes = self.session.notes, ()
        if notes:
            self.show_error("The file was repaired. " + " ".join(notes))

    def leave(self) -> None:
        """The tab is gone for good; one that only lost its connection comes back."""
        self._end()
        self.figures.close()
        for panel in self.panels.values():
            panel.close()
        self.studio.close(self.session)

    def show(self, mode: str) -> None:
        """Open a panel."""
        before, self.mode = self.mode, mode
        for name, panel in self.panels.items():
            panel.root.set_visibility(name == mode)
        self.frame.style(f"--side: {WIDTHS_PX[mode]}px")
        self.stage.set_mode(mode)
        self.stage.update()
        self.player.set_visibility(mode in ("move", "see"))
        self.bar.show(mode)
        if self.ready:
            self.tour.refresh()
            if before == "live" != mode:
                self.view.body()  # the project's own again
            if mode not in ("move", "see"):  # no player is there
                self.stage.run_method("stop_run")
            self.panels[mode].open()

    # -- following the session -------------------------------------------------------------------

    def refresh(self, topic: str, fit: bool = False) -> None:
        """Show what changed."""
        if not self.ready:
            return
        with self.client:
            if topic == "name":
                self.go(self.session)
                return
            if topic == "run":
                self.move_panel.show_state()
                return
            self.bar.look()  # with the new body: the page never shows more than it says is saved
            self.view.follow(topic, fit)
            if topic == "body":
                organism = self.session.organism
                there = () if organism is None else organism.modules
                self.select(*(name for name in self.chosen_modules if name in there))
        self._later(topic)

    def _later(self, topic: str) -> None:
        self._waiting.append(topic)
        if len(self._waiting) == 1:
            self.run(self._refresh_panels())

    async def _refresh_panels(self) -> None:
        """Refresh the panels after a short delay, so that the 3D view is updated first."""
        await asyncio.sleep(PANEL_DELAY_S)
        topics, self._waiting = list(dict.fromkeys(self._waiting)), []
        with self.client:
            self.bar.look()
            for topic in topics:
                for panel in self.panels.values():
                    self.act(panel.refresh, topic)
                self.bar.refresh(topic)
            self.welcome.refresh()
            self.tour.refresh()

    def show_run(self, number: int, other: int | None = None, play: bool = True) -> None:
        """A run in the player, and another one beside it."""
        stem = f"/api/runs/{quote(self.session.name)}"
        second = None if other is None else f"{stem}/{other}"
        self.player.run_method("load_run", f"{stem}/{number}", second, play)
        self.run_shown, self.run_other = number, other
        for panel in self.panels.values():
            panel.refresh("shown")

    def export_request(self) -> ExportRequest:
        """The body as it is, with the run that is shown, or the last one."""
        return self.session.export_request(self.run_shown)

    def choose(self, kind: str) -> None:
        """Choose the module kind that the next click docks."""
        self.kind, self.child_port, self.turn = kind, None, None
        self.chosen()

    def chosen(self) -> None:
        """Another kind, port or turn: show other ghosts."""
        self.view.palette()
        self.view.body()
        self.build_panel.refresh("kinds")

    def pick(self, modules: list[str], more: bool = False) -> None:
        """Choose modules; with `more`, besides those that are, or no longer."""
        before = self.chosen_modules
        kept = [name for name in before if name not in modules] if more else []
        self.select(*kept, *(name for name in modules if not (more and name in before)))

    def select(self, *names: str) -> None:
        """Choose modules, here, in the plan and in the tree; the last one is what panels show."""
        if names == tuple(self.chosen_modules):
            return
        self.chosen_modules = [*names]
        self.selected = names[-1] if names else None
        self.view.select(self.selected, self.chosen_modules)
        self._later("selected")

    # -- doing things ----------------------------------------------------------------------------

    def act(self, action: Callable[..., Any], *args: Any, where: Any = None, **named: Any) -> Any:
        """Do something; if it fails, show the reason where it was clicked, and return None."""
        try:
            return action(*args, **named)
        except ModurobError as error:
            self.show_error(str(error), where)
            return None

    def run(self, work: Awaitable[Any]) -> None:
        """Run an awaitable in the background and report its errors."""

        async def guarded() -> None:
            with self.client:
                try:
                    await work
                except JobCanceled:
                    ui.notify("Canceled", position="bottom")
                except ModurobError as error:
                    self.show_error(str(error))
                except Exception as error:
                    traceback.print_exception(error)
                    unforeseen(error)

        background_tasks.create(guarded())

    def show_error(self, text: str, where: Any = None) -> None:
        """Show an error: in place, or below."""
        text = text[:1].upper() + text[1:]
        self.say(text)
        if where is not None:
            where.run_method("explain", text)
            return
        with self.client:
            ui.notify(text, timeout=9000, **ERROR_NOTE)

    def say(self, text: str) -> None:
        """Announce a text to screen readers."""
        self.stage.run_method("say", text)

    def dock(self, click: dict[str, Any], where: Any) -> None:
        """A click on a free port, or on an empty grid."""
        chosen = (click.get(key, getattr(self, key)) for key in ("kind", "child_port", "turn"))
        kind, *how = chosen
        name = self.act(self.session.dock, kind, click["module"], click["port"], *how, where=where)
        if name:
            self.say(f"{name} docked")

    def remove(self, name: str | None, where: Any = None) -> None:
        """A right-click or Delete."""
        if name is None:
            self.show_error(NOTHING_CHOSEN)
            return
        several = self.chosen_modules if name in self.chosen_modules else [name]
        self.act(self.session.remove, *several, where=where)

    def copy(self) -> None:
        """Ctrl+C: the chosen module with all beyond it, for any project of this studio."""
        if self._has_chosen():
            self.studio.clip = subtrees.copied(self.session.body(), str(self.selected))
            count = len(self.studio.clip.organism)
            ui.notify(
                f"Copied {count} module{'s'[: count != 1]}: choose a module and paste (Ctrl+V)"
            )

    def paste(self) -> None:
        """Ctrl+V: what was copied, docked to the chosen module."""
        if self.studio.clip is None:
            self.show_error("Nothing is copied yet: choose a module and press Ctrl+C.")
        elif self._has_chosen():
            self._select_new(self.session.paste, self.studio.clip)

    def repeat(self) -> None:
        """Ctrl+D: the chosen module with all beyond it once more, docked to its end."""
        if self._has_chosen():
            self._select_new(self.session.repeat)

    def mirror(self) -> None:
        """Ctrl+M: the chosen module with all beyond it, mirrored to the other side."""
        if self._has_chosen():
            self._select_new(self.session.mirror)

    def _has_chosen(self) -> bool:
        if self.selected is None:
            self.show_error(NOTHING_CHOSEN)
        return self.selected is not None

    def _select_new(self, action: Callable[..., str], *args: Any) -> None:
        """Choose the module that an edit of the chosen one has added."""
        name = self.act(action, *args, str(self.selected))
        if name:
            self.select(name)
            self.say(f"{name} docked")

    def undo(self) -> None:
        """Ctrl+Z."""
        label = self.act(self.session.undo)
        self.say(f"Undone: {label}" if label else "Nothing to undo")

    def redo(self) -> None:
        """Ctrl+Y or Ctrl+Shift+Z."""
        label = self.act(self.session.redo)
        self.say(f"Done again: {label}" if label else "Nothing to redo")

    def save(self) -> None:
        """Ctrl+S."""
        path = self.act(self.session.save)
        if path is not None:
            ui.notify(f"Saved: {path}", position="bottom")

    def go(self, session: Session) -> None:
        """Show another project in this tab."""
        ui.navigate.to(f"/project/{quote(session.name)}")

    def drop(self, name: str, content: bytes) -> None:
        """A file that was dropped on the page: modules for the palette, or a project of its own."""
        try:
            found = imports.read(name, content)
        except ModurobError as error:
            self.show_error(f"This file cannot be opened. {error}")
            return
        if found.project is None and found.kinds:
            self.show("build")
            self.act(self.build_panel.add_kinds, found.kinds)
        else:
            self.go(self.studio.new_from_import(name, found))

    def _draw_path(self, **drawn: Any) -> None:
        """A path was drawn for a body: its poses are the motion of the next run."""
        off = self.act(self.session.draw_path, **drawn)
        if off is not None:
            near = f"within {1000 * off:.0f} mm" if off > OFF_PATH_M else "all along"
            ui.notify(f"The joints can follow the path {near}: Run them", position="bottom")

    def _command(self, what: str) -> None:
        """Do what a key means."""
        if what in MODE_KEYS:
            self.show(MODE_KEYS[what])
        elif what in ("undo", "redo", "save"):
            getattr(self, what)()
        elif self.mode == "build" and what == "remove" and self.selected:
            self.remove(self.selected)
        elif self.mode == "build" and what in ("copy", "paste", "repeat", "mirror"):
            getattr(self, what)()

    @contextmanager
    def dialog(
        self, label: str, width: int, after: Callable[[], Any] | None = None
    ) -> Iterator[ui.dialog]:
        """A window over the page; when it closes, it is gone.

        Args:
            width: [px]
            after: Called when it closes.
        """
        look = f"width: {width}px; max-width: 94vw; gap: 10px"
        with (
            self.client.content,
            ui.dialog().props(f'aria-label="{label}"') as dialog,
            ui.card().style(look),
        ):
            ui.label(label).classes("heading")
            yield dialog

        def closed() -> None:
            if after is not None:
                after()
            dialog.delete()

        dialog.on("hide", closed)
        dialog.open()

    def has_body(self) -> bool:
        """True if there is a body; otherwise show what to do."""
        return self.act(self.session.body) is not None


def unforeseen(error: Exception) -> None:
    """Show an error that was not expected; what was shown as saved is on the disk."""
    ui.notify(
        f"Something went wrong ({type(error).__name__}). What the bar shows as saved is safe; "
        "reload the page to go on, and please report what you did.",
        timeout=12000,
        **ERROR_NOTE,
    )
