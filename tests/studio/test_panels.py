"""Panels without a browser: what they show, send and do. The pages themselves are tested in one."""

import asyncio
import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from modurob import Organism, catalog, examples
from modurob.scenario.presets import PRESETS, PresetFinding
from modurob.scenario.settings import RunRecord
from modurob.studio import project as projects
from modurob.studio.folder import Folder
from modurob.studio.project import NEW_SETTINGS, History, SavedBody
from modurob.studio.studio import Studio

pytest.importorskip("nicegui")

from nicegui import Client, core, ui
from nicegui.element import Element
from nicegui.events import GenericEventArguments, handle_event
from nicegui.outbox import Outbox

from modurob.studio.jobs import Worker
from modurob.studio.page import PANEL_DELAY_S, Page
from modurob.studio.panels.build import uploader
from modurob.studio.panels.papers import compute

LONG_S = 45.0  # that anything may take: the machine may be busy with other tests
TURNS = 50  # of the loop of events: more than any chain of tasks here has


class Desk:
    """A page, and everything that it tells the browser and the user."""

    def __init__(self, page, told, notes):
        self.page, self.session, self.told, self.notes = page, page.session, told, notes

    def all(self, name):
        return [e for e in self.page.client.elements.values() if e.props.get("data-testid") == name]

    def __getitem__(self, name):
        """The newest element of that name."""
        return self.all(name)[-1]

    def event(self, element, kind="click", args=None):
        for listener in list(element._event_listeners.values()):
            if listener.type == kind:
                told = GenericEventArguments(sender=element, client=self.page.client, args=args)
                with self.page.client:
                    handle_event(listener.handler, told)

    def click(self, name):
        self.event(self[name])

    def press(self, label):
        """A button of the open panel by its text, or by its name for screen readers."""
        panel = self.page.panels[self.page.mode].root
        buttons = (e for e in panel.descendants() if isinstance(e, ui.button))
        found = [e for e in buttons if label in (e.text, e.props.get("aria-label"))]
        self.event(found[-1])

    def texts(self, within):
        """All lines of text below an element."""
        return [e.text for e in within.descendants() if isinstance(e, ui.label) and e.visible]

    def sent(self, method):
        """The last arguments of a method of the browser."""
        return next((args for name, args in reversed(self.told) if name == method), None)

    async def settled(self):
        while self.page._waiting:
            await asyncio.sleep(PANEL_DELAY_S / 5)
        await asyncio.sleep(0)


async def turns():
    """Every task that awaits nothing but others goes on to its end: no time needs to pass."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


@pytest.fixture
def on_page(tmp_path, monkeypatch):
    """Runs a coroutine with a page of a project."""
    told, notes = [], []
    call = Element.run_method

    def run_method(self, name, *args, **options):
        told.append((name, args))
        return call(self, name, *args, **options)

    monkeypatch.setattr(Element, "run_method", run_method)
    monkeypatch.setattr(ui, "notify", lambda text, **options: notes.append(text))

    def run(work, body=None, runs=(), **settings):
        async def main():
            monkeypatch.setattr(core, "loop", asyncio.get_running_loop())
            project = projects.Project(History(SavedBody(body)))
            project.settings, project.runs = NEW_SETTINGS.edited(**settings), list(runs)
            Folder(tmp_path).write("robot", projects.to_bytes(project))
            studio = Studio(Folder(tmp_path))
            client = Client(ui.page("/robot"), request=None)
            with client:
                page = Page(studio, studio.open("robot"), client)
                page.build()
                page.start()
            desk = Desk(page, told, notes)
            await desk.settled()
            try:
                await work(desk)
            finally:
                page.leave()
                studio.end()
                client.delete()

        with ThreadPoolExecutor(1) as other:  # a browser's loop may run in this thread
            other.submit(asyncio.run, main()).result()

    return run


def record(number, **changed):
    facts = {"title": "a fall", "status": "finished", "seconds": 0.1, "took": 1.0}
    return RunRecord(number=number, **{**facts, "settings": NEW_SETTINGS, **changed})


# -- Move ------------------------------------------------------------------------------------------


def test_fields_of_balancing_take_the_place_of_those_of_control(on_page):
    async def work(desk):
        panel = desk.page.move_panel
        for motion, balances in (("balance", True), ("hold", False)):
            desk.session.edit_settings(motion=motion)
            await desk.settled()
            assert desk["set-motion"].value == motion
            assert panel.balancing.visible == balances
            assert {part.visible for part in panel.declared} == {not balances}
            assert desk["set-controller"].enabled == desk["set-estimator"].enabled == (not balances)

    on_page(work, examples.crab())


def test_a_field_edits_its_setting_and_says_at_itself_what_is_wrong(on_page):
    async def work(desk):
        field = desk["set-duration"]
        with desk.page.client:
            field.value = -3
        assert "Duration" in desk.notes[-1]
        assert "greater than 0" in field.error
        assert desk.session.settings.duration == NEW_SETTINGS.duration
        with desk.page.client:
            field.value = 7
        assert desk.session.settings.duration == 7
        assert field.error is None
        with desk.page.client:
            field.value = -1
        desk.session.edit_settings(duration=9)  # in another tab
        await desk.settled()
        assert (field.value, field.error) == (9, None)
        assert desk.session.settings.duration == 9

    on_page(work, examples.crab())


def test_joints_are_sent_when_the_panel_is_open_with_words_on_those_that_are_locked(on_page):
    async def work(desk):
        page, panel = desk.page, desk.page.move_panel
        page.show("move")
        (joints,) = desk.sent("set_joints")
        assert [joint["name"] for joint in joints] == list(desk.session.model().joint_names)
        assert panel.joints_note.text == "3 joints move, 2 are locked"
        desk.session.edit_settings(base="nonsense")
        await desk.settled()
        assert desk.sent("set_joints") == ([],)
        assert "nonsense" in panel.joints_note.text
        desk.session.edit_settings(base="fixed", hinges="physical")
        await desk.settled()
        assert len(desk.sent("set_joints")[0]) == desk.session.model().nv
        desk.event(panel.sliders, "pose", {"m1.hinge": 0.5})
        await desk.settled()
        assert desk.session.project.pose == {"m1.hinge": 0.5}
        assert desk.sent("set_values") == ({"m1.hinge": 0.5},)
        desk.press("All to zero")
        await desk.settled()
        assert not desk.session.project.pose
        for value, kept in ((0.3, {"m1.hinge": 0.3}), (0.0, {})):
            desk.event(panel.sliders, "rate", {"name": "m1.hinge", "value": value})
            assert desk.session.settings.rates == kept

    on_page(work, examples.crab())


def test_without_a_body_nothing_moves_and_runs(on_page):
    async def work(desk):
        desk.page.show("move")
        assert desk.sent("set_joints") == ([],)
        assert desk.page.move_panel.joints_note.text.startswith("There is no module yet")
        desk.click("run")
        assert not desk.session.runner.busy
        assert desk.notes

    on_page(work)


def test_numbers_of_modules_are_of_the_chosen_one_or_of_all(on_page):
    async def work(desk):
        page = desk.page
        page.show("move")
        assert desk["parameter-mass"].value == 1.0
        page.select("m1")
        await desk.settled()
        scout = catalog["scout"]
        assert desk["parameter-mass"].value == scout.mass
        assert desk["parameter-inertia"].value == pytest.approx(scout.bodies[0].inertia[0][0])
        assert desk["parameter-viscous"].value == scout.joints[0].viscous
        before = desk.session.organism
        desk.click("apply-parameters")
        assert desk.session.organism is before
        desk["parameter-mass"].value = 2.5
        desk.click("apply-parameters")
        body = desk.session.organism
        assert [body.kind(name).mass for name in body.modules] == [1.0, 2.5]
        page.select()
        await desk.settled()
        assert desk["parameter-mass"].value is None
        assert desk["parameter-size"].value == scout.size
        desk["parameter-mass"].value = 2.0
        desk.click("apply-parameters")
        body = desk.session.organism
        assert [body.kind(name).mass for name in body.modules] == [2.0, 2.0]

    on_page(work, Organism.start("backbone").dock("m0", 3, "m1", 2, kind="scout"))


def test_events_are_added_in_the_order_of_time_and_dropped(on_page):
    async def work(desk):
        page = desk.page
        page.show("move")
        desk.click("event-undock")
        (event,) = desk.session.settings.events
        assert (event.what, event.module, event.time) == ("undock", "m2", 1.0)
        page.select("m1")
        await desk.settled()
        fields = [e for e in page.move_panel.events._box.descendants() if hasattr(e, "value")]
        fields[1].value = 0.25
        desk.click("event-dock")
        await desk.settled()
        dock, undock = desk.session.settings.events
        assert (dock.what, dock.module, dock.time, dock.child) == ("dock", "m1", 0.25, "m3")
        assert undock == event
        assert f"0.25 s: dock m3 (backbone) to m1, side {dock.port}" in desk.texts(
            page.move_panel.events._box
        )
        desk.click("event-dock")
        await desk.settled()
        first, second = (e for e in desk.session.settings.events if e.what == "dock")
        assert {first.child, second.child} == {"m3", "m4"}
        assert first.port != second.port
        desk.press("Remove event 2")
        assert all(e.what == "dock" for e in desk.session.settings.events)
        desk.session.edit_settings(events=[], motion="balance")
        await desk.settled()
        desk.click("event-freeze")
        assert desk.session.settings.events[0].what == "freeze"

    on_page(work, examples.snake(3), duration=2.0)


def test_keyframes_are_kept_on_the_timeline_shown_and_run_from_the_first(on_page, monkeypatch):
    async def work(desk):
        page, started = desk.page, []
        page.show("move")
        editor = page.move_panel.keyframes
        monkeypatch.setattr(editor, "_run", lambda: started.append(desk.session.project.pose))
        assert not desk["keyframe-run"].enabled
        joint = desk.session.model().joint_names[0]
        desk.click("keyframe-keep")
        desk.session.set_pose(**{joint: 0.3})
        await desk.settled()
        assert desk["keyframe-time"].value == 1.0
        desk.click("keyframe-keep")
        await desk.settled()
        desk.click("keyframe-0")
        assert desk.session.project.pose[joint] == 0.0
        desk.click("keyframe-1")
        assert (desk["keyframe-time"].value, desk.session.project.pose[joint]) == (1.0, 0.3)
        desk.click("keyframe-run")
        assert started[0][joint] == 0.0
        desk.click("keyframe-remove")  # of the first one, which is shown
        await desk.settled()
        assert not desk.all("keyframe-0")
        assert not desk["keyframe-run"].enabled

    on_page(work, examples.snake(3))


# -- runs ------------------------------------------------------------------------------------------


def test_a_run_is_shown_compared_removed_and_brought_back(on_page):
    async def work(desk):
        page = desk.page
        assert desk.texts(page.move_panel.list._box)[1:] == [
            "2: a fall, 0.1 s (stopped)", "1: a fall, 0.1 s"
        ]  # fmt: skip
        desk.click("compare-1")
        assert desk.notes == ["Show one run first, then compare another one with it."]
        desk.click("run-2")
        assert desk.sent("load_run") == ("/api/runs/robot/2", None, True)
        assert [("on" in desk[f"run-{k}"].classes) for k in (1, 2)] == [False, True]
        desk.click("compare-2")
        assert len(desk.notes) == 2
        desk.click("compare-1")
        assert desk.sent("load_run") == ("/api/runs/robot/2", "/api/runs/robot/1", False)
        assert [desk[f"compare-{k}"].props["color"] for k in (1, 2)] == ["primary", "grey"]
        desk.click("compare-1")
        assert desk.sent("load_run") == ("/api/runs/robot/2", None, False)
        assert desk["compare-1"].props["color"] == "grey"
        page.show("move")
        desk.session.edit_run(1, removed=True)
        await desk.settled()
        assert page.run_shown == 2
        assert desk.sent("unload") is None
        desk.session.edit_run(2, removed=True)
        await desk.settled()
        assert (page.run_shown, desk.sent("unload")) == (None, ())
        assert not desk.session.runs
        desk.click("restore-1")
        await desk.settled()
        assert [run.number for run in desk.session.runs] == [1]

    on_page(work, examples.crab(), [record(1), record(2, status="stopped")])


def test_plots_are_those_that_are_chosen_in_their_order(on_page):
    async def work(desk):
        panel = desk.page.panels["see"]
        desk.page.show("see")
        assert "Plots" in desk.texts(panel.root)  # a heading until the names of the plots are there
        assert desk.sent("load_run") == ("/api/runs/robot/1", None, False)
        keys = [{"key": key, "title": f"{key}: of joints"} for key in ("energy", "q", "tau")]
        desk.event(panel.plots, "panels", {"panels": keys, "modules": ["m0", "m1"]})
        assert desk.sent("set_chosen") == (["q", "tau"],)
        assert "Plots" not in desk.texts(panel.root)
        assert desk["plot-q"].props["aria-pressed"] == "true"
        desk.click("plot-energy")
        desk.click("plot-q")
        assert desk.sent("set_chosen") == (["energy", "tau"],)
        assert desk["plot-q"].props["aria-pressed"] == "false"
        panel.traces.value = ["m1"]
        assert desk.sent("set_traces") == (["m1"],)

    on_page(work, examples.crab(), [record(1)])


def test_a_run_that_is_computed_shows_its_progress_and_then_itself(on_page, monkeypatch):
    async def work(desk):
        page, panel, runner = desk.page, desk.page.move_panel, desk.session.runner
        runs = type(runner)
        monkeypatch.setattr(runs, "busy", property(lambda self: True))
        runner.progress, runner.state = 0.25, "0.1 s of 0.4 s"
        panel._awaited = True
        page.refresh("run")
        assert not panel.run_button.enabled
        assert not panel.walk_button.enabled
        assert (panel.cancel.visible, panel.reach_button.visible) == (True, False)
        assert (panel.progress.visible, panel.progress.value) == (True, 0.25)
        assert panel.state.text == "0.1 s of 0.4 s"
        monkeypatch.setattr(runs, "busy", property(lambda self: False))
        runner.problem, runner.done = "It diverged", 1
        page.refresh("run")
        assert page.run_shown is None  # under Build it would be in the way
        assert desk.notes == ["It diverged"]
        page.show("move")
        panel._awaited = True
        page.refresh("run")
        assert page.run_shown == 1
        assert panel.run_button.enabled
        assert (panel.cancel.visible, panel.reach_button.visible) == (False, True)
        assert not panel.progress.visible
        page.run_shown = None
        page.refresh("run")  # not awaited again
        assert page.run_shown is None

    on_page(work, examples.crab(), [record(1)])


def test_a_walk_is_set_up_by_one_click_and_joints_are_locked_and_unlocked(on_page):
    async def work(desk):
        page, session, started = desk.page, desk.session, []
        page.show("move")
        page.move_panel.start_run = lambda: started.append(session.settings)
        session.set_pose(**{"m1.hinge": 0.25})
        desk.event(page.move_panel.sliders, "lock", "m1.hinge")
        await desk.settled()
        assert session.settings.locked == {"m1.hinge": 0.25}
        assert desk["set-locked"].value == f"m1.hinge={np.rad2deg(0.25):.6g}"
        assert "m1.hinge" not in [joint["name"] for joint in desk.sent("set_joints")[0]]
        desk.click("unlock-m1.hinge")
        await desk.settled()
        assert not session.settings.locked
        desk.click("walk")
        (settings,) = started
        assert (settings.base, settings.ground, settings.motion) == ("free", True, "sine")
        assert not page.move_panel.emulations.visible
        desk["set-slope"].value = "90"
        assert "below 80 degrees" in desk["set-slope"].error

    on_page(work, examples.crab(), motion="sine")


# -- the bar and the page --------------------------------------------------------------------------


def test_the_theme_goes_round_and_shows_its_picture(on_page):
    async def work(desk):
        bar, seen = desk.page.bar, []
        for _ in range(3):
            desk.click("light")
            seen.append((bar.dark.value, bar.theme.props["icon"]))
        assert seen == [(False, "light_mode"), (True, "dark_mode"), (None, "brightness_auto")]
        bar.set_theme(True)
        assert bar.theme.props["icon"] == "dark_mode"

    on_page(work, examples.crab())


def test_undo_and_redo_say_what_they_do_and_are_off_where_there_is_nothing(on_page):
    async def work(desk):
        assert not desk["undo"].enabled
        assert not desk["redo"].enabled
        desk.event(desk.page.stage, "dock", {"module": "m0", "port": 2})
        assert desk.sent("say") == ("m3 docked",)
        await desk.settled()
        assert (desk["undo"].enabled, desk["redo"].enabled) == (True, False)
        assert desk["undo"].props["aria-label"].startswith("Undo: ")
        desk.event(desk.page.stage, "command", "undo")
        assert desk.sent("say")[0].startswith("Undone: ")
        await desk.settled()
        assert len(desk.session.organism) == 3
        assert (desk["undo"].enabled, desk["redo"].enabled) == (False, True)
        desk.event(desk.page.stage, "command", "redo")
        assert desk.sent("say")[0].startswith("Done again: ")
        desk.click("redo")
        assert desk.sent("say") == ("Nothing to redo",)

    on_page(work, examples.snake(3))


def test_what_is_written_is_said_once_and_failures_are_tried_again(on_page, monkeypatch):
    async def work(desk):
        bar, saver, tried = desk.page.bar, desk.session.saver, []
        while not saver.idle:
            await asyncio.sleep(0.01)
        bar.look()
        assert desk.sent("show_saved") == ("Saved", "Everything is on the disk.")
        told = SimpleNamespace(idle=False, error="", retry=lambda: tried.append(bar._checks))
        monkeypatch.setattr(desk.session, "saver", told)
        bar.look()
        assert desk.sent("show_saved")[0] == "Saving…"
        told.error = "the disk is full"
        for _ in range(3):
            bar.look()
        assert desk.sent("show_saved") == ("Not saved!", "the disk is full")
        assert desk.notes == ["The disk is full"]
        bar._checks = 18
        bar.look()
        assert not tried
        bar.look()
        assert tried == [20]
        monkeypatch.setattr(desk.session, "saver", saver)

    on_page(work, examples.crab())


def test_keys_open_panels_and_remove_the_chosen_module_under_build_only(on_page):
    async def work(desk):
        page = desk.page
        page.select("m2")
        desk.event(page.stage, "command", "Digit3")
        assert page.mode == "move"
        assert [name for name, panel in page.panels.items() if panel.root.visible] == ["move"]
        assert (desk["mode-move"].props["aria-selected"], page.player.visible) == ("true", True)
        assert desk["mode-build"].props["aria-selected"] == "false"
        assert page.stage.props["mode"] != "build"
        for key in ("remove", "repeat", "mirror", "copy"):
            desk.event(page.stage, "command", key)
        assert len(desk.session.organism) == 3
        assert page.studio.clip is None
        desk.event(page.stage, "command", "Digit1")
        assert page.stage.props["mode"] == "build"
        assert not page.player.visible
        desk.event(page.stage, "command", "copy")
        assert desk.notes == ["Copied 1 module: choose a module and paste (Ctrl+V)"]
        desk.event(page.stage, "command", "remove")
        await desk.settled()
        assert desk.session.organism.modules == ("m0", "m1")
        assert page.selected is None
        desk.event(page.stage, "remove", {"module": None})
        assert desk.notes[-1] == "Choose a module first: click it."
        desk.event(page.stage, "command", "save")
        assert desk.notes[-1].startswith("Saved: ")

    on_page(work, examples.snake(3))


def test_the_dialog_to_open_lists_the_projects_by_their_names(on_page):
    async def work(desk):
        desk.click("open")
        assert desk.texts(desk["open-robot"])[0] == "robot"

    on_page(work, examples.crab())


def test_words_of_live_follow_the_chosen_module_while_they_are_shown(on_page, monkeypatch):
    async def work(desk):
        panel, shown = desk.page.panels["live"], []
        monkeypatch.setattr(panel, "_show_words", lambda: shown.append(desk.page.selected))
        desk.page.select("m1")
        desk.page.show("live")
        await desk.settled()
        shown.clear()
        desk.page.select("m2")
        await desk.settled()
        panel.refresh("pose")
        assert shown == ["m2"]

    on_page(work, examples.crab())


def test_a_mistake_is_explained_where_it_was_clicked(on_page):
    async def work(desk):
        desk.event(desk.page.stage, "dock", {"module": "m0", "port": 99})
        (text,) = desk.sent("explain")
        assert "99" in text
        assert text[0].isupper()
        assert desk.sent("say") == (text,)
        assert not desk.notes

    on_page(work, examples.snake(2))


def test_the_body_is_sent_again_when_what_is_drawn_has_changed(on_page):
    async def work(desk):
        def count(method):
            return sum(name == method for name, _ in desk.told)

        drawn, posed = count("set_state"), count("set_poses")
        desk.session.edit_settings(duration=3.0)
        await desk.settled()
        assert (count("set_state"), count("set_poses")) == (drawn, posed)
        desk.session.edit_settings(hinges="physical")
        await desk.settled()
        assert (count("set_state"), count("set_poses")) == (drawn + 1, posed)
        desk.session.set_pose(**{"m1.hinge": 0.3})
        await desk.settled()
        assert (count("set_state"), count("set_poses")) == (drawn + 1, posed + 1)
        model = desk.session.model()
        expected = model.forward_kinematics(desk.session.configuration(model))
        assert np.shape(desk.sent("set_poses")[0])[0] == len(expected)

    on_page(work, examples.crab())


def test_a_drag_redraws_nothing_of_the_page_but_the_body(on_page, monkeypatch):
    """An element that is updated has the browser render all elements anew."""

    async def work(desk):
        desk.session.set_pose(**{"m1.hinge": 0.1})  # what can be undone is another thing now
        await desk.settled()
        updated = []
        monkeypatch.setattr(Outbox, "enqueue_update", lambda self, element: updated.append(element))
        for angle in (0.2, 0.3):
            desk.session.set_pose(**{"m1.hinge": angle})
            await desk.settled()
        assert updated == []

    on_page(work, examples.crab())


# -- the start -------------------------------------------------------------------------------------


def test_the_kind_of_the_last_module_is_the_one_that_docks_next(on_page):
    async def work(desk):
        assert desk.page.kind == "superbot"

    on_page(work, Organism.start("superbot"))


def test_an_empty_project_offers_ways_to_start_and_the_guide_leads_to_the_crab(on_page):
    async def work(desk):
        page = desk.page
        assert page.welcome.root.visible
        assert not page.tour.root.visible
        desk.click("guide")
        assert page.tour.running
        assert page.kind == "scout"
        assert page.tour.root.visible
        assert not page.welcome.root.visible
        assert "Step 1 of 6" in desk.texts(page.tour.root)
        hint = desk.sent("set_hint")[0]
        assert {"x", "y", "click"} == hint.keys()
        page.show("move")
        assert desk["tour-text"].text == "The guide goes on under Build (Alt+1)."
        desk.session.change("the crab", examples.crab())
        await desk.settled()
        assert "The crab is complete" in desk.texts(page.tour.root)
        started: list[str] = []
        page.move_panel.start_run = lambda: started.append(page.session.settings.motion)
        desk.click("tour-walk")  # with the gait that was tuned for it
        assert (page.mode, started) == ("move", ["sine"])
        page.refresh("run")
        assert "Walk set hinges from dyad to physical" in desk["run-state"].text
        page.tour.run_started()
        assert not page.tour.running
        assert desk.sent("set_hint") == (None,)

    on_page(work)


def test_an_empty_grid_hides_the_ways_to_start(on_page):
    async def work(desk):
        desk.click("blank")
        assert not desk.page.welcome.root.visible
        desk.page.tour.run_started()  # of no guide

    on_page(work)


@pytest.mark.parametrize("name", PRESETS)
def test_a_figure_of_the_papers_is_shown_with_its_statement_and_its_verdicts(
    on_page, monkeypatch, name
):
    findings = [
        PresetFinding("overshoot", "3 %", True),
        PresetFinding("settles", "never", False),
        PresetFinding("largest error", "0.1 rad"),
    ]

    async def computed(worker, task, *arguments, progress):
        assert (task, arguments) == (compute, (name,))
        return b"bytes of a picture", findings

    monkeypatch.setattr(Worker, "run", computed)

    async def work(desk):
        desk.click(f"preset-{name}")
        async with asyncio.timeout(LONG_S):
            while not desk.all("preset-figure"):
                await asyncio.sleep(0)
        verdicts = "overshoot: 3 % ✓ holds; settles: never ✗ does not hold; largest error: 0.1 rad"
        texts = desk.texts(desk.page.client.layout)
        assert {verdicts, f"The paper states: {PRESETS[name].statement}"} <= {*texts}
        assert desk["preset-figure"].props["src"].startswith("data:image/png;base64,")

    on_page(work)


# -- Build -----------------------------------------------------------------------------------------


def test_a_place_for_files_that_is_deleted_holds_no_page(on_page):
    async def work(desk):
        def told(*words):
            pass

        with desk.page.client:
            place = uploader(told, told, "file")
        held = weakref.ref(told)
        del told
        place.delete()
        gc.collect()
        assert held() is None

    on_page(work)


def test_the_palette_chooses_kind_and_side_of_the_next_module(on_page):
    async def work(desk):
        page = desk.page
        desk.click("kind-scout")
        assert page.kind == "scout"
        assert desk["kind-scout"].props["aria-pressed"] == "true"
        assert desk["kind-backbone"].props["aria-pressed"] == "false"
        docks = catalog["scout"].docks
        for k in (*range(len(docks)), 0):
            desk.event(page.build_panel.plan, "turn", {"module": None})
            assert page.child_port == docks[k]
        assert desk["dock-with"].value == docks[0]
        with page.client:
            desk["dock-with"].value = "auto"
        assert page.child_port is None

    on_page(work, examples.snake(2))


def test_r_turns_the_module_under_the_cursor_else_the_next_one_at_a_site_else_the_chosen(on_page):
    async def work(desk):
        page, turned = desk.page, []
        desk.session.turn = turned.append
        page.select("m1")
        plan = page.build_panel.plan
        desk.event(plan, "turn", {"module": None, "site": ["m2", 3]})
        assert (turned, page.child_port is None) == ([], False)
        desk.event(plan, "turn", {"module": "m2"})
        desk.event(plan, "turn", {"module": None})
        assert turned == ["m2", "m1"]

    on_page(work, examples.snake(3))


def test_the_chosen_module_is_described_and_the_base_cannot_be_turned(on_page):
    async def work(desk):
        page, part = desk.page, desk.page.build_panel.module_part._box

        def enabled():
            found = (e for e in part.descendants() if isinstance(e, ui.button))
            return {e.text: e.enabled for e in found}

        assert "Chosen module" in desk.texts(part)
        page.select("m0")
        await desk.settled()
        assert desk.texts(part)[1].endswith("; the base")
        copying = {"Copy": True, "Paste here": True, "Repeat": False, "Mirror": False}
        assert enabled() == {"Make it the base": False, "Turn": False, "Remove": True, **copying}
        page.select("m1")
        await desk.settled()
        held = desk.session.organism.docking("m1")
        assert f"side {held.child_port} to side {held.port} of m0" in desk.texts(part)[1]
        assert "base" not in desk.texts(part)[1]
        desk.press("Make it the base")
        await desk.settled()
        assert desk.session.organism.base == "m1"
        assert enabled()["Turn"] is False
        page.select("m0")
        await desk.settled()
        desk.click("remove-module")
        await desk.settled()
        assert desk.session.organism.modules == ("m1",)

    on_page(work, examples.snake(2))


# -- Understand ------------------------------------------------------------------------------------


def test_the_parts_of_understand_are_drawn_when_they_are_open(on_page):
    async def work(desk):
        page, panel = desk.page, desk.page.panels["understand"]
        page.show("understand")
        marked = {part: tab.props["aria-selected"] for part, tab in panel.tabs.items()}
        assert marked == {
            "matrices": "true",
            "joints": "false",
            "dh": "false",
            "equations": "false",
            "lagrange": "false",
        }
        assert [len(desk.all(name)) for name in ("aim", "accessibility", "dtl", "idtl")] == [1] * 4
        desk.click("part-joints")
        assert not desk.all("aim")
        assert "on" in panel.tabs["joints"].classes
        assert "on" not in panel.tabs["matrices"].classes
        drawn = desk["joints"]
        page.show("build")
        desk.session.edit_settings(hinges="physical")
        await desk.settled()
        assert desk["joints"] is drawn  # not yet
        page.show("understand")
        assert desk["joints"] is not drawn
        desk.click("part-dh")
        assert desk.all("dh")
        desk.click("part-lagrange")
        assert desk.all("reference-crane")  # the crab is in no book

    on_page(work, examples.crab())


def test_lagranges_equations_are_compared_in_the_pose_of_the_sliders(on_page):
    async def work(desk):
        desk.page.show("understand")
        desk.click("part-lagrange")
        assert any("l₂ φ̈₂" in text for text in desk.texts(desk.page.panels["understand"].root))
        assert "-0.0" not in desk["lagrange"].content
        desk.session.set_pose(**{"m0.hinge": 0.5})
        await desk.settled()
        # both masses on one line: a pendulum of which each part falls as by itself
        assert f"{-9.81 * np.sin(0.5):.6g}" in desk["lagrange"].content

    on_page(work, examples.double_pendulum(), hinges="physical", controller="none", motion="none")


def test_matrices_need_two_modules_and_have_a_largest_size(on_page, monkeypatch):
    async def work(desk):
        from modurob.studio import tables

        panel = desk.page.panels["understand"]
        desk.page.show("understand")
        assert "Dock a second module" in desk.texts(panel.content_part._box)[0]
        desk.session.change("a snake", examples.snake(2))
        await desk.settled()
        assert desk.all("aim")
        assert not desk.all("idtl")
        monkeypatch.setattr(tables, "MOST_MODULES", 1)
        desk.click("part-matrices")
        assert not desk.all("aim")
        assert desk.all("dtl")

    on_page(work, Organism.start("backbone"))


def test_equations_are_asked_for_entry_by_entry(on_page, monkeypatch):
    async def work(desk):
        panel, asked = desk.page.panels["understand"], []

        async def answer(function, request):
            asked.append((panel.symbols, panel.entry))
            return {"mathml": f"<math>{panel.entry}</math>", "symbols": [], "terms": 7, "shown": 5}

        monkeypatch.setattr(panel.worker, "run", answer)
        desk.page.show("understand")

        async def click(name):
            desk.click(name) if desk.all(name) else panel._ask(name)
            await turns()
            assert panel.formula.content == f"<math>{panel.entry}</math>"
            assert not panel.stop.visible

        await click("part-equations")
        assert panel.words.text == "M[1,1]: 7 terms, the first 5 shown; LaTeX has all"
        await click("M[1,2]")
        await click("formula-N")
        await click("formula-none")
        assert asked == [("all", "M[1,1]"), ("all", "M[1,2]"), ("all", "N[1]"), ("none", "N[1]")]
        pressed = [name for name, e in panel.options.items() if e.props["aria-pressed"] == "true"]
        assert pressed == ["N", "none"]
        assert desk["entries"].content.count("data-entry=") == 3

    on_page(work, examples.crab())


@pytest.mark.parametrize(("modules", "typed"), [(3, False), (14, True)])
def test_entries_of_a_large_matrix_can_be_typed(on_page, monkeypatch, modules, typed):
    async def work(desk):
        panel, asked = desk.page.panels["understand"], []

        async def answer(function, request):
            asked.append(panel.entry)
            return {"mathml": "<math/>", "symbols": [], "terms": 1, "shown": 1}

        monkeypatch.setattr(panel.worker, "run", answer)
        desk.page.show("understand")
        desk.click("part-equations")
        await turns()
        fields = [e for e in panel.root.descendants() if isinstance(e, ui.input)]
        found = [e for e in fields if e.props.get("label") == "Entry"]
        assert len(found) == typed
        for field in found:
            field.value = "M[13,2]"
            desk.event(field, "keydown.enter")
            await turns()
            assert asked[-1] == "M[13,2]"

    on_page(work, examples.snake(modules))
