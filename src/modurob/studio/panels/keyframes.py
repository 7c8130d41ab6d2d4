"""Keyframes on a timeline: keep a pose at a time, draw a path, show, run."""

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
MOST_LABELS = 10  # that have room beside each other


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
            note("Pose the body, keep the pose at a time, and so on; or draw a path. Then run.")
        times = [frame.time for frame in found]
        end = max([self.page.session.settings.duration, *times])
        if found:
            with ui.element("div").classes("keyframes").props('role=group aria-label="Keyframes"'):
                for time in times:
                    self._mark(time, time / end, len(times) <= MOST_LABELS)
        with ui.element("div").classes("row"):
            chosen = self._chosen in times
            given = self._chosen if chosen else times[-1] + STEP_S if times else 0.0
            field = ui.number("Time [s]", value=given, min=0, step=0.1)
            test_id(field.props("dense outlined").style("width: 92px"), "keyframe-time")
            keep = partial(self._keep, field)
            button("Keep this pose", keep, "keyframe-keep", icon="add_location")
            if chosen:
                button("Remove", partial(self._remove, self._chosen), "keyframe-remove")
            drawing = button("Draw a path", self._draw_path, "draw-path", icon="gesture")
            drawing._props["title"] = "Drag a body in the 3D view along the path it shall follow"
            run = button("Run them", self._start, "keyframe-run", icon="play_arrow")
            run.set_enabled(len(found) >= NEEDED)

    def _mark(self, time: float, share: float, labeled: bool) -> None:
        show, text = partial(self._show, time), f"{time:g}" if labeled else ""
        css = f"keyframe{'' if labeled else ' dot'}{' on' * (time == self._chosen)}"
        label = f"Show the pose at {time:g} s"
        mark = plain_button(text, show, f"keyframe-{time:g}", css, aria_label=label)
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

    def _draw_path(self) -> None:
        """The next drag of a body draws the path that it shall follow."""
        if self.page.has_body():
            self.page.stage.run_method("draw_path")

    def _start(self) -> None:
        """Run from the first keyframe."""
        self._show(keyframes.frames(self.page.session.settings.points)[0].time)
        self._run()
