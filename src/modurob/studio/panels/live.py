"""Live: modules as processes, found and driven over the bus; unplug, kill, push, record."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from nicegui import ui

from modurob.control import CONTROLLERS
from modurob.gaits import GAITS
from modurob.studio import view_data
from modurob.studio.live import DEAD, PERIOD_S, LiveOptions, LiveRobot, LiveScene
from modurob.studio.panels.panel import (
    NO_BODY,
    ModePanel,
    Redrawn,
    button,
    chip,
    note,
    primary,
    problem_line,
    test_id,
    title,
)
from modurob.studio.view import Sliders

if TYPE_CHECKING:
    from modurob.studio.page import Page

FRAME_S = 1 / 30
MOST_AHEAD = 4  # frames on the way: an answer of a busy browser takes longer than a frame
WORDS = 6  # frames between two updates of texts
SLOWEST_S = 5.0  # that a browser may take for a frame
LOOK = "dense outlined debounce=250"
INTRODUCTION = (
    "Start switches on one process for each module. A coordinator discovers them as they are "
    "plugged in, builds model and controller, and drives a simulated robot over their messages."
)
MODES = {
    "idle": "No joints yet", "hold": "Holds", "move": "Moves", "wait": "Waits", "relax": "Relaxed",
}  # fmt: skip
CHANGED = "The body was changed since the start: End and Start let the new one live."
AXES = ("x", "y", "z")
DRIVES = {"none": "works", "stuck": "stuck", "limp": "limp"}


class LivePanel(ModePanel):
    """Everything about a live robot."""

    def __init__(self, page: Page) -> None:
        super().__init__(page)
        self._scene: LiveScene | None = None  # as the stage has it
        self._model: Any = None  # whose joints the sliders have
        self._goals: dict[str, float] = {}
        self._frames, self._shown = 0, False
        self._ahead = 0  # frames that the browser has not drawn yet
        self.root.style("padding: 0; gap: 0")
        with self.root:
            with ui.element("div").classes("scroll").props('tabindex=0 aria-label="Live robot"'):
                with ui.element("div").classes("live-part") as self.off:
                    self._settings()
                with ui.element("div").classes("live-part") as self.running:
                    self._status()
                    self._motion()
                    title("Modules")
                    self.modules = Redrawn(self._modules, self._module_states)
                    self.module = Redrawn(self._module, self._module_facts)
                    self.drive = note().props("data-testid=live-drive")
            self._foot()
        self.timer = ui.timer(FRAME_S, self._tick, active=False)
        self._show_state()

    # -- parts -----------------------------------------------------------------------------------

    def _settings(self) -> None:
        title("A robot of processes")
        note(INTRODUCTION)
        with ui.element("div").classes("fields"):
            laws = {name: law.name for name, law in CONTROLLERS.items()}
            self.law = ui.select(laws, value=LiveOptions().law, label="Controller")
            test_id(self.law.props("dense outlined options-dense"), "live-law")
            self.period = _number("Period [ms]", 1000 * PERIOD_S, "live-period", 1)
            self.noise_q = _number("Position σ [rad, m]", 0, "live-noise_q", 0.001)
            self.noise_v = _number("Velocity σ [rad/s, m/s]", 0, "live-noise_v", 0.001)
            self.loss = _number("Messages lost [0 to 1]", 0, "live-loss", 0.05)

    def _status(self) -> None:
        with ui.element("div").classes("card live-status"):
            with ui.element("div").classes("rowbar"):
                self.mode = (
                    ui.label().classes("live-mode").props("role=status data-testid=live-mode")
                )
                self.clock = note().props("data-testid=live-clock")
            self.progress = ui.linear_progress(0.0, show_value=False).props(
                'instant-feedback aria-label="Progress of the motion"'
            )
            self.reason = note().props("data-testid=live-reason")
            self.certificate = note().props("data-testid=live-certificate")
            self.faults = problem_line("live-faults")

    def _motion(self) -> None:
        with ui.element("div").classes("rowbar"):
            title("Goals")
            with ui.element("div").classes("row"):
                look = "flat dense no-caps size=sm"
                button("All to zero", partial(self._set_goals, True), "live-zero", look)
                button("As measured", partial(self._set_goals, False), "live-measured", look)
        self.sliders = Sliders()
        self.sliders._props["goals"] = True
        self.sliders.on("pose", lambda e: self._goals.update(e.args))
        with ui.element("div").classes("row"):
            self.go = primary("Go", self._go, "live-go", "play_arrow")
            self.seconds = _number("in [s]", 2, "live-seconds", 0.5).style("width: 84px")
            look = "outline no-caps"
            self.stop = button("Stop", self._hold, "live-stop", look)
            self.hold = button("Hold", self._hold, "live-hold", look)
            self.relax = button("Relax", self._relax, "live-relax", look)
        with ui.element("div").classes("row").style("flex-wrap: nowrap"):
            self.gait = ui.select(
                {key: gait.name for key, gait in GAITS.items()}, value="sine", label="Gait"
            )
            test_id(self.gait.props("dense outlined options-dense"), "live-gait").style("flex: 1")
            self.follow = button("Follow the gait", self._follow, "live-follow", look)

    def _foot(self) -> None:
        with ui.element("div").classes("live-foot"):
            self.problem = problem_line("live-problem")
            with ui.element("div").classes("row").style("flex-wrap: nowrap"):
                self.start = primary("Start", self._start, "live-start", "power_settings_new")
                self.end = button("End", self._end, "live-end", "outline no-caps", icon="power_off")
                look = "outline no-caps"
                self.record = button(
                    "Record", self._record, "live-record", look, icon="fiber_manual_record"
                )
                self.state = note().props("data-testid=live-state")

    # -- the chosen module -----------------------------------------------------------------------

    @property
    def robot(self) -> LiveRobot | None:
        """The live robot; None while it is off."""
        return self.session.live.robot

    def _module_states(self) -> Any:
        return None if self.robot is None else (self.robot.states(), self.page.selected)

    def _modules(self) -> None:
        if self.robot is None:
            return
        with ui.element("div").classes("palette").props('role=group aria-label="Modules"'):
            for name, state in self.robot.states().items():
                text = name if state == "found" else f"{name} · {state}"
                chosen = name == self.page.selected
                pressed = "true" if chosen else "false"
                choose = partial(self.page.select, *(() if chosen else (name,)))
                made = chip(text, chosen, choose, f"live-{name}", aria_pressed=pressed)
                made.classes(f"module-{state.replace(' ', '-')}")

    def _module_facts(self) -> Any:
        robot, name = self.robot, self.page.selected
        if robot is None or name is None or not robot.has(name):
            return robot is None
        facts = robot.states()[name] == DEAD, robot.is_plugged(name)
        return name, *facts, robot.faults.get(name), robot.payloads.get(name)

    def _module(self) -> None:
        robot, name = self.robot, self.page.selected
        if robot is None:
            return
        if name is None or not robot.has(name):
            note("Choose a module here or in the view, then unplug, kill, push or load it.")
            return
        dead, plugged = robot.states()[name] == DEAD, robot.is_plugged(name)
        with ui.element("div").classes("card").style("display: grid; gap: 8px"):
            with ui.element("div").classes("row"):
                ui.label(f"{name} ({robot.organism.kind(name).name})").classes("strong")
                act = partial(self._act, name)
                if plugged:
                    button("Unplug", partial(act, robot.unplug), "live-unplug")
                else:
                    button("Plug back", partial(act, robot.plug), "live-plug")
                if dead:
                    button("Restart", partial(act, robot.restart), "live-restart")
                else:
                    button("Kill", partial(act, robot.kill), "live-kill")
            self._disturbances(robot, name)

    def _disturbances(self, robot: LiveRobot, name: str) -> None:
        joints = robot.joints_of(name)
        with ui.element("div").classes("row").style("flex-wrap: nowrap"):
            mass = _number("Payload [kg]", robot.payloads.get(name, 0.0), "live-payload", 0.1)
            button("Load", lambda: self._do(robot.payload, name, mass.value or 0.0), "live-load")
            if joints:
                drive = ui.select(DRIVES, value=robot.faults.get(name, "none"), label="Drives")
                test_id(drive.props("dense outlined options-dense"), "live-drives")
                drive.style("min-width: 96px; flex: 1")
                drive.on_value_change(lambda e: self._do(robot.fault, name, e.value))
        with ui.element("div").classes("row").style("flex-wrap: nowrap"):
            names = {joint: joint.partition(".")[2] for joint in joints}
            names |= {axis: f"force along {axis}" for axis in AXES}
            where = ui.select(names, value=next(iter(names)), label="Joint, or force")
            test_id(where.props("dense outlined options-dense"), "live-joint").style("flex: 1")
            effort = _number("Effort [N m, N]", 1, "live-torque", 0.5).style("width: 116px")

            def push() -> None:
                given = effort.value or 0.0
                force = [given * (axis == where.value) for axis in AXES]
                if where.value in AXES:
                    self._do(robot.push, name, force)
                else:
                    self._do(robot.push, where.value, given)

            button("Push for 0.1 s", push, "live-push")

    # -- doing things ----------------------------------------------------------------------------

    def _start(self) -> None:
        if not self.page.has_body():
            return
        options = LiveOptions(
            self.law.value or LiveOptions().law,
            (self.period.value or 0.0) / 1000,
            self.noise_q.value or 0.0,
            self.noise_v.value or 0.0,
            self.loss.value or 0.0,
            self.session.settings.gravity,
        )
        self.page.run(self.session.live.start(options))

    def _end(self) -> None:
        self.page.run(self.session.live.end())

    def _do(self, action: Callable[..., Any], *args: Any) -> None:
        """Something that may wait for processes, beside everything else."""
        self.page.run(asyncio.to_thread(action, *args))

    def _act(self, name: str, action: Callable[[str], None]) -> None:
        self._do(action, name)

    def _hold(self) -> None:
        if self.robot is not None:
            self.page.act(self.robot.hold)
            self._set_goals(zero=False)

    def _relax(self) -> None:
        if self.robot is not None:
            self.page.act(self.robot.relax)

    def _go(self) -> None:
        if self.robot is not None:
            self._do(self.robot.goto, dict(self._goals), self.seconds.value or 0.0)

    def _follow(self) -> None:
        if self.robot is not None:
            self._do(self.robot.follow, self.gait.value)

    def _set_goals(self, zero: bool) -> None:
        """All sliders to zero, or to where the joints are."""
        if self.robot is not None:
            status = self.robot.status()
            q = zip(status.joints, status.q.tolist(), strict=True)
            self._goals = {name: 0.0 if zero else at for name, at in q}
            self.sliders.run_method("set_values", self._goals)

    def _record(self) -> None:
        robot = self.robot
        if robot is None:
            return
        if robot.recording is None:
            robot.record()
        else:
            self.page.run(self._keep())

    async def _keep(self) -> None:
        number = await self.session.live.keep()
        self.page.run_shown = self.page.run_other = None  # See opens with the last run
        ui.notify(f"Kept as run {number}: See plays it", position="bottom")

    # -- following -------------------------------------------------------------------------------

    def open(self) -> None:
        self._scene = None
        self._show_state()

    def close(self) -> None:
        self.timer.deactivate()

    def refresh(self, topic: str) -> None:
        if topic in ("body", "settings", "kinds", "live"):
            self._scene = None  # the stage may show the project's body again
        if topic in ("live", "body"):
            self._show_state()
        if topic == "selected" and self.visible:
            self._show_words()

    def _show_state(self) -> None:
        """Off, starting, or on."""
        live = self.session.live
        self.off.set_visibility(not live.on)
        self.running.set_visibility(live.on)
        self.start.set_visibility(not live.on)
        self.end.set_visibility(live.on)
        self.record.set_visibility(live.on)
        starting = "starting…" if live.on else ""
        self.state.set_text(NO_BODY if self.session.organism is None else starting)
        self.problem.set_text("")
        self.timer.active = self.visible and live.on
        if self._shown and not live.on:
            self._shown, self._model, self._goals = False, None, {}
            if self.visible:
                self.page.view.body()
        self.modules.refresh()
        self.module.refresh()

    def _tick(self) -> None:
        """A frame, unless the browser is behind."""
        robot = self.robot
        if not self.visible or not self.session.live.on:
            self.timer.deactivate()
            return
        if robot is None or self._ahead >= MOST_AHEAD or not self.page.client.has_socket_connection:
            return
        scene = robot.scene()
        if scene.differs(self._scene):
            self._scene, self._shown = scene, True
            self.page.stage.run_method("set_live", scene.data())
        self._frames += 1
        if self._frames % WORDS == 0:
            self._show_words()
        self.page.run(self._draw(robot.frame(scene)))

    async def _draw(self, frame: dict[str, Any]) -> None:
        """Send a frame, and wait until the browser has drawn it."""
        self._ahead += 1
        try:
            with contextlib.suppress(TimeoutError):
                await self.page.stage.run_method("live_frame", frame, timeout=SLOWEST_S)
        finally:
            self._ahead -= 1

    def _show_words(self) -> None:
        """Everything but the view."""
        robot = self.robot
        if robot is None:
            return
        status, model = robot.status(), robot.model
        if model is not None and model is not self._model:
            self._model = model
            at = zip(status.joints, map(float, status.set_point), strict=True)
            self._goals = {name: self._goals.get(name, place) for name, place in at}
            self.sliders.run_method("set_joints", view_data.sliders(model, self._goals))
        _say(self.mode, f"{MODES[status.mode]}{': ' * bool(status.motion)}{status.motion}")
        self.progress.set_visibility(bool(status.motion))
        self.progress.set_value(round(status.progress, 2))
        _say(self.reason, status.reason or CHANGED * (robot.organism != self.session.organism))
        _say(self.clock, robot.clock_line())
        _say(self.certificate, robot.certificate())
        _say(self.faults, "\n".join(robot.faults_found()))
        _say(self.problem, robot.look())
        starting, recording = robot.state, robot.recording
        _say(self.state, starting or ("" if recording is None else f"recording, {recording:.0f} s"))
        self.record.set_text("Record" if recording is None else "Keep as a run")
        ready = bool(status.joints) and not starting
        for control in (self.go, self.follow, self.relax, self.record):
            control.set_enabled(ready)
        self.stop.set_enabled(status.mode in ("move", "wait"))
        self.hold.set_enabled(ready and status.mode in ("hold", "relax"))
        self.modules.refresh()
        self.module.refresh()
        chosen = self.page.selected
        _say(self.drive, robot.drive_line(chosen) if chosen and robot.has(chosen) else "")


def _number(label: str, value: float, name: str, step: float) -> ui.number:
    field = ui.number(label, value=value, step=step, format="%.6g").props(LOOK)
    return test_id(field, name)


def _say(label: ui.label, text: str) -> None:
    """Set a text, and show it while there is one."""
    if label.text != text:
        label.set_text(text)
        label.set_visibility(bool(text))
