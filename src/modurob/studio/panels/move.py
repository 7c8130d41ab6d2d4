"""Move: pose, model, parameters, motion and control, and the runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from nicegui import ui

from modurob import ModurobError
from modurob.control import CONTROLLERS
from modurob.distributed.balancing.laws import LAWS as BALANCING
from modurob.organism.examples import EMULATED
from modurob.scenario.fields import PARTS
from modurob.scenario.settings import BALANCE, NONE, known
from modurob.sim import INTEGRATORS
from modurob.studio import view_data
from modurob.studio.panels.forms import EventsEditor, ModuleNumbers, SettingFields
from modurob.studio.panels.keyframes import KeyframeEditor
from modurob.studio.panels.panel import (
    NO_BODY,
    ModePanel,
    Redrawn,
    button,
    chip,
    moving,
    note,
    primary,
    test_id,
    title,
)
from modurob.studio.panels.runs import RunList
from modurob.studio.view import Sliders

if TYPE_CHECKING:
    from modurob.studio.page import Page

MOTIONS = {
    NONE: "none",
    "hold": "hold the pose",
    "zero": "go to zero",
    "step": "step to the target",
    "quintic": "smoothly to the target",
    "steps": "steps through points",
    "spline": "spline through points",
    "recorded": "recorded points",
    BALANCE: "balance by messages",
    "chaotic": "chaotic maps",
}
PART_ICONS = ("landscape", "route", "tune", "fitness_center", "grain")  # of the parts of `PARTS`


class MovePanel(ModePanel):
    """Everything about a run, and the button."""

    def __init__(self, page: Page) -> None:
        super().__init__(page)
        self._awaited = page.session.runner.busy  # this page shows the run when it is done
        self._switched = ""  # by the walk, said with its run
        self.root.style("padding: 0; gap: 0")
        self.fields = fields = SettingFields(page)
        with self.root:
            with ui.element("div").classes("scroll").props('tabindex=0 aria-label="Settings"'):
                with ui.element("div").classes("rowbar"):
                    title("Pose at the start")
                    look = "flat dense no-caps size=sm"
                    button("All to zero", lambda: self.session.reset_pose(), look=look)
                note("Or in the 3D view: drag a body, or click one and turn its ring.")
                self.sliders = Sliders()
                self.sliders.on("pose", lambda e: self._pose(e.args))
                self.sliders.on("rate", lambda e: self._rate(**e.args))
                self.sliders.on("lock", lambda e: page.act(self.session.lock, e.args))
                self.locks = Redrawn(self._locks, lambda: self.session.settings.locked)
                self.joints_note = note()
                with _part("Motion by hand: keyframes, a path", "timeline"):
                    self.keyframes = KeyframeEditor(page, self.start_run)
                self._model(fields)
                with _part("Mass, length, springs, connectors of modules", "tune"):
                    self.parameters = ModuleNumbers(page)
                self._control(fields)
                self._method(fields)
                with _part("Events during the run", "call_split"):
                    self.events = EventsEditor(page)
                self.list = RunList(page)
            self._foot()

    def _model(self, fields: SettingFields) -> None:
        with ui.element("div").classes("fields"):
            fields.choice(
                "hinges", "Hinges", {"dyad": "dyad (papers)", "physical": "physical"},
                "dyad: docked cubes bend about the hinge of the outer one; physical: every joint",
            )  # fmt: skip
            fields.text(
                "base", "Base",
                "fixed, free (it falls, or onto the ground), or virtual joints such as px,pz,ry",
            )  # fmt: skip
            fields.declared("locked")
        with ui.element("div").classes("row") as self.emulations:
            note("Lock the roll joints of all SuperBots as in")
            for robot in EMULATED:
                emulate = partial(self.page.act, self.session.emulate, robot)
                button(robot.upper(), emulate, f"emulate-{robot}")

    def _locks(self) -> None:
        """A chip for each joint that is locked; a click unlocks it."""
        locked = self.session.settings.locked
        if not locked:
            return
        with ui.element("div").classes("row").props('role=group aria-label="Locked joints"'):
            note("Locked; click to unlock:")
            for joint in locked:
                unlock = partial(self.page.act, self.session.unlock, joint)
                chip(joint, True, unlock, f"unlock-{joint}", aria_label=f"Unlock {joint}")

    def _control(self, fields: SettingFields) -> None:
        with ui.element("div").classes("fields"):
            fields.choice("motion", "Motion", _motions())
            laws = {NONE: "none", **{name: law.name for name, law in CONTROLLERS.items()}}
            fields.choice("controller", "Controller", laws)
            fields.number("duration", "Duration [s]")
            fields.choice("estimator", "Estimator", {NONE: "none", "Ekf": "EKF"})
        self.declared: list[ui.expansion] = []
        for (words, names), icon in zip(PARTS.items(), PART_ICONS, strict=True):
            self.declared.append(_part(words, icon))
            with self.declared[-1]:
                with ui.element("div").classes("fields"):
                    for name in names:
                        fields.declared(name)
                if "points" in names:
                    take = partial(self.page.act, self.session.take_points)
                    button("Follow the last run", take, "take-points")
        self.balancing = _part("Balancing by messages", "hub")
        with self.balancing, ui.element("div").classes("fields"):
            fields.choice("balancing_law", "Law", {name: name for name in reversed(BALANCING)})
            fields.number("loss", "Messages lost [0 to 1]", step=0.05)
            fields.number("delay", "Delay for each docking [ms]", step=1)
            fields.number("drive_friction", "Friction of drives [N m s/rad]", step=0.1)

    def _method(self, fields: SettingFields) -> None:
        with (
            _part("Gravity, integrator, seed, formulas", "functions"),
            ui.element("div").classes("fields"),
        ):
            fields.number("gravity", "Gravity [m/s²]")
            fields.declared("engine")
            methods = {None: "Default", **{name: name for name in INTEGRATORS}}
            fields.choice("integrator", "Integrator", methods)
            fields.number("rtol", "Tolerance (adaptive)")
            fields.number("dt", "Step [s] (fixed-step)")
            fields.number("seed", "Seed of random numbers", step=1)
            fields.switch("stops", "Stops at the limits")
            fields.declared("analytic")

    def _foot(self) -> None:
        with ui.element("div").style(
            "padding: 10px 14px; border-top: 1px solid var(--line); display: grid; gap: 8px"
        ):
            self.progress = ui.linear_progress(0.0, show_value=False).props(
                'instant-feedback aria-label="Progress of the run"'
            )
            test_id(self.progress, "progress")
            with ui.element("div").classes("row"):
                self.run_button = primary("Run", self.start_run, "run", "play_arrow")
                look = "outline no-caps"
                self.walk_button = button("Walk", self.walk, "walk", look, icon="directions_walk")
                self.walk_button._props["title"] = "Set a free base, ground and a gait, and run it"
                reach = button("Reach", self._reach, "reach", look, icon="my_location")
                reach._props["title"] = "Run from all joints at zero smoothly to this pose"
                self.reach_button = reach
                cancel = self.session.runner.worker.cancel
                self.cancel = button("Cancel", cancel, "cancel", look)
            self.state = note().props("role=status data-testid=run-state")
            self.state.style("white-space: pre-line")

    # -- running ---------------------------------------------------------------------------------

    def start_run(self) -> None:
        """Compute a run beside everything else."""
        if self.fields.problem:
            self.page.show_error(self.fields.problem)
        elif self.page.has_body() and not self.session.runner.busy:
            self.page.tour.run_started()
            self._switched = ""
            self.page.run(self._run())

    def _reach(self) -> None:
        """A run from all at zero to the pose of the sliders."""
        before = self.session.settings
        self.page.act(self.session.reach_pose)
        if self.session.settings is not before:
            self.start_run()

    def walk(self) -> None:
        """A gait on the ground, with all that it needs."""
        if self.page.has_body():
            before = self.session.settings.hinges
            self.page.act(self.session.prepare_walk)
            self.start_run()
            if (now := self.session.settings.hinges) != before:
                self._switched = (
                    f"\nWalk set hinges from {before} to {now}: other joints have sliders."
                )

    async def _run(self) -> None:
        self._awaited = True
        try:
            await self.session.runner.run()
        finally:
            self.page.studio.close(self.session)  # if this page is gone, and no other one came

    def show_state(self) -> None:
        """The run that is being computed; when it is done, in the player."""
        runner = self.session.runner
        for start in (self.run_button, self.walk_button):
            start.set_enabled(not runner.busy)
        self.reach_button.set_visibility(not runner.busy)  # its place is that of the other
        self.cancel.set_visibility(runner.busy)
        self.progress.set_visibility(runner.busy)
        self.progress.set_value(runner.progress or 0.0)
        self.state.set_text(runner.state + self._switched)
        if runner.busy or not self._awaited:
            return
        self._awaited = False
        if runner.problem:
            self.page.show_error(runner.problem)
        if runner.done is not None and self.page.mode in ("move", "see"):
            self.page.show_run(runner.done, runner.twin)

    # -- following -------------------------------------------------------------------------------

    def _pose(self, joints: dict[str, float]) -> None:
        self.page.act(self.session.set_pose, **joints)

    def _rate(self, name: str, value: float) -> None:
        rates = {**self.session.settings.rates, name: value}
        self.page.act(self.session.edit_settings, rates={k: v for k, v in rates.items() if v})

    def open(self) -> None:
        self.session.runner.worker.prepare()
        self._send_joints()
        self.parameters.refresh()
        self.events.refresh()

    def refresh(self, topic: str) -> None:
        if topic == "settings":
            self.fields.fill()
            balances = self.session.settings.motion == BALANCE
            self.balancing.set_visibility(balances)
            self.fields.enable(not balances, "controller", "estimator")
            for part in self.declared:
                part.set_visibility(not balances)
        if topic == "pose":
            self.sliders.run_method("set_values", self.session.project.pose)
        if topic == "body":
            self.fields.fill()
        if topic in ("body", "settings"):
            self.locks.refresh()
            kinds = () if (body := self.session.organism) is None else map(body.kind, body.modules)
            self.emulations.set_visibility(any(k.name.startswith("superbot") for k in kinds))
        if self.visible and topic in ("body", "settings"):
            self._send_joints()
        if self.visible and topic in ("body", "selected"):
            self.parameters.refresh()
        if self.visible and topic in ("body", "settings", "kinds", "selected"):
            self.events.refresh()
        if topic == "settings":
            self.keyframes.refresh()
        if topic in ("runs", "shown"):
            self.list.refresh()

    def _send_joints(self) -> None:
        if self.session.organism is None:
            self.sliders.run_method("set_joints", [])
            self.joints_note.set_text(NO_BODY)
            return
        try:
            model = self.session.model()
        except ModurobError as error:
            self.sliders.run_method("set_joints", [])
            self.joints_note.set_text(str(error))
            return
        pose, rates = self.session.project.pose, self.session.settings.rates
        joints = view_data.sliders(model, pose, rates)
        self.sliders.run_method("set_joints", joints)
        words = moving(model) if model.locked else ""
        if not joints:
            words = "No joint can move: Understand says why, or choose other hinges below."
        self.joints_note.set_text(words)


def _part(text: str, icon: str) -> ui.expansion:
    """A part of the settings that opens when needed."""
    part = ui.expansion(text, icon=icon).props("dense dense-toggle")
    return part.classes("part whole")


def _motions() -> dict[str, str]:
    return {name: MOTIONS.get(name, name) for name in known("motion")}
