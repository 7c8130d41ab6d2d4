"""Keyframes on a timeline: keep the pose of the sliders at a time, move, show, run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from nicegui import ui

from modurob.studio import keyframes
from modurob.studio.panels.panel import Redrawn, button, note, plain_button, test_id

if TYPE_CHECKING:
    from modurob.studio.page import Page

STEP_S = 1.0  # from the last keyframe to the next
NEEDED = 2  # keyframes of a motion


class KeyframeEditor(Redrawn):
    """The timeline of a motion by hand."""

    def __init__(self, page: Page, run: Callable[[], Any]) -> None:
        self.page, self._run, self._chosen = page, run, -1.0
        session = page.session
        super().__init__(
            self._draw, lambda: (session.settings.points, session.settings.duration, self._chosen)
        )

    def _draw(self) -> None:
        found = keyframes.frames(self.page.session.settings.points)
        if not found:
            note("Pose the body with the sliders, keep the pose at a time, and so on; then run.")
        times = [frame.time for frame in found]
        end = max([self.page.session.settings.duration, *times])
        if found:
            with ui.element("div").classes("keyframes").props('role=group aria-label="Keyframes"'):
                for time in times:
                    self._mark(time, time / end)
        with ui.element("div").classes("row"):
            chosen = self._chosen in times
            given = self._chosen if chosen else times[-1] + STEP_S if times else 0.0
            field = ui.number("Time [s]", value=given, min=0, step=0.1)
            test_id(field.props("dense outlined").style("width: 92px"), "keyframe-time")
            keep = partial(self._keep, field)
            button("Keep this pose", keep, "keyframe-keep", icon="add_location")
            if chosen:
                button("Remove", partial(self._remove, self._chosen), "keyframe-remove")
            run = button("Run them", self._start, "keyframe-run", icon="play_arrow")
            run.set_enabled(len(found) >= NEEDED)

    def _mark(self, time: float, share: float) -> None:
        show = partial(self._show, time)
        css = "keyframe on" if time == self._chosen else "keyframe"
        label = f"Show the pose at {time:g} s"
        mark = plain_button(f"{time:g}", show, f"keyframe-{time:g}", css, aria_label=label)
        mark.style(f"left: {100 * share:.1f}%")

    def _keep(self, field: ui.number) -> None:
        self._chosen = -1.0
        self.page.act(self.page.session.keep_keyframe, field.value)
        self.refresh()

    def _remove(self, time: float) -> None:
        self.page.act(self.page.session.remove_keyframe, time)
        self.refresh()

    def _show(self, time: float) -> None:
        self._chosen = time
        self.page.act(self.page.session.show_keyframe, time)
        self.refresh()

    def _start(self) -> None:
        """Run from the first keyframe."""
        self._show(keyframes.frames(self.page.session.settings.points)[0].time)
        self._run()
