"""Panels without a browser: what they show, send and do. The pages themselves are tested in one."""

import asyncio
import gc
import json
import re
import weakref
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from modurob import ModuleType, Organism, StateError, catalog, examples
from modurob.scenario.bodies import EXAMPLES
from modurob.scenario.fields import FIELDS
from modurob.scenario.presets import PRESETS, PresetFinding
from modurob.scenario.settings import RunRecord
from modurob.studio import edits, exports, formulas, guard, imports, keyframes, live, live_session
from modurob.studio import project as projects
from modurob.studio.folder import Folder
from modurob.studio.project import NEW_SETTINGS, History, SavedBody
from modurob.studio.studio import Studio
from modurob.walking.zoo import ZOO

pytest.importorskip("nicegui")

from nicegui import Client, core, ui
from nicegui.element import Element
from nicegui.events import GenericEventArguments, handle_event
from nicegui.outbox import Outbox

from modurob.distributed.bus.simulated import SimulatedBus
from modurob.distributed.plant import PlantOptions
from modurob.studio import page as page_module
from modurob.studio import server, view, view_data
from modurob.studio.jobs import JobCanceled, Worker
from modurob.studio.live import LiveOptions, LiveRobot
from modurob.studio.live_session import Live
from modurob.studio.page import PANEL_DELAY_S, Page
from modurob.studio.panels import files as files_panel
from modurob.studio.panels import keyframes as keyframes_panel
from modurob.studio.panels import live as live_panel
from modurob.studio.panels import papers as papers_panel
from modurob.studio.panels import projects as project_panel
from modurob.studio.panels import runs as runs_panel
from modurob.studio.panels import understand as understand_panel
from modurob.studio.panels.bar import Bar
from modurob.studio.panels.build import uploader
from modurob.studio.panels.live import MOST_AHEAD, SLOWEST_S
from modurob.studio.panels.panel import moving
from modurob.studio.panels.papers import compute
from modurob.studio.panels.start import Tour
from modurob.verification import lagrange

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

    def items(self, text):
        """Entries of menus with a text."""
        found = [e for e in self.page.client.elements.values() if isinstance(e, ui.menu_item)]
        return [
            e
            for e in found
            if text in [getattr(x, "text", "") for x in e.descendants(include_self=True)]
        ]

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


@pytest.mark.parametrize(("motion", "balances"), [("balance", True), ("hold", False)])
def test_a_page_opens_with_the_fields_of_its_motion(on_page, motion, balances):
    async def work(desk):
        panel = desk.page.move_panel
        assert panel.balancing.visible == balances
        assert {part.visible for part in panel.declared} == {not balances}
        assert desk["set-controller"].enabled is not balances

    on_page(work, examples.crab(), motion=motion)


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
        for module, shown in (("m0", 1.0), ("m1", -1.0)):  # what was typed stays if it is refused
            page.select(module)
            await desk.settled()
            fields = [e for e in page.move_panel.events._box.descendants() if hasattr(e, "value")]
            assert (fields[0].value, fields[1].value) == (module, shown)
            fields[1].value = -1.0
            desk.click("event-undock")
            assert desk.session.settings.events == (event,)
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
        assert desk.texts(desk["plot-q"]) == ["q"]
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


def test_the_theme_goes_round_and_shows_its_picture(on_page, monkeypatch):
    async def work(desk):
        bar, seen, kept = desk.page.bar, [], []
        monkeypatch.setattr(ui, "run_javascript", kept.append)
        for _ in range(3):
            desk.click("light")
            seen.append((bar.dark.value, bar.theme.props["icon"]))
        assert seen == [(False, "light_mode"), (True, "dark_mode"), (None, "brightness_auto")]
        assert kept == [f"localStorage.setItem('modurob-theme', '{dark}')" for dark, _ in seen]
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
        desk.session.dock("scout")
        await desk.settled()
        hint = desk.sent("set_hint")[0]
        assert (hint["x"], hint["y"]) == (0, 1)  # at side 3, which looks along y
        assert (hint["click"]["module"], hint["click"]["port"]) == ("m0", 3)
        assert "Step 2 of 6" in desk.texts(page.tour.root)
        page.show("move")
        assert desk["tour-text"].text == "The guide goes on under Build (Alt+1)."
        started: list[str] = []
        page.move_panel.start_run = lambda: started.append(page.session.settings.motion)
        desk.session.change("the crab", examples.crab())
        await desk.settled()
        assert "The crab is complete" in desk.texts(page.tour.root)
        desk.click("tour-play")
        assert (page.mode, started.pop()) == ("move", "wave")
        page.show("build")
        await desk.settled()
        desk.click("tour-walk")  # with the gait that was tuned for it
        assert (page.mode, started) == ("move", ["sine"])
        page.refresh("run")
        assert "Walk set hinges from dyad to physical" in desk["run-state"].text
        page.tour.run_started()
        assert not page.tour.running
        assert not page.tour.root.visible
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
        monkeypatch.setattr(tables, "MOST_MODULES", 2)
        desk.click("part-matrices")
        assert desk.all("aim")
        monkeypatch.setattr(tables, "MOST_MODULES", 1)
        desk.click("part-matrices")
        assert not desk.all("aim")
        words = "The matrices of 2 modules are too large for the page;"
        assert desk.texts(panel.content_part._box)[0].startswith(words)
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


@pytest.mark.parametrize(("modules", "typed"), [(3, False), (13, False), (14, True)])
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
        for most, shown in ((modules - 1, 1), (modules - 2, 0)):  # a joint less than modules
            monkeypatch.setattr(understand_panel, "MOST_COLORED", most)
            desk.click("part-equations")
            await turns()
            assert len(desk.all("entries")) == shown

    on_page(work, examples.snake(modules))


# -- Live ------------------------------------------------------------------------------------------

REST_S = 0.5  # [s] of the bus, in which a motion of 0.2 s ends
NEAR = 0.01  # [rad] some time after a motion, with torques of 5 ms each


def simulated(organism, options):
    bus = SimulatedBus(options.law, plant=PlantOptions(), period=0.005)
    return LiveRobot(organism, bus, bus.run, lambda: bus.now)


def live_page(on_page, monkeypatch, work, body):
    """A page with a robot on a bus in simulated rounds, whose browser answers no frame."""

    async def started(desk):
        session, panel = desk.session, desk.page.panels["live"]
        session.live = Live(session, simulated)
        desk.page.show("live")
        panel.timer.deactivate()
        desk.click("live-start")
        await done(lambda: session.live.robot is not None and not session.live._starting)
        await desk.settled()
        panel.timer.deactivate()  # a test says when a frame is due
        assert panel.state.text == "starting…"
        desk.page.client.outbox.stop()  # there is no browser to send them to
        monkeypatch.setattr(Client, "has_socket_connection", property(lambda self: True))
        panel._show_words()
        try:
            await work(desk, panel, session.live.robot)
        finally:
            session.live.close()

    on_page(started, body)


async def done(condition):
    """Until work in another thread has its effect."""
    async with asyncio.timeout(LONG_S):
        while not condition():
            await asyncio.sleep(0.002)
    await turns()


def test_live_moves_holds_and_records_a_robot_with_words_on_it(on_page, monkeypatch):
    async def work(desk, panel, robot):
        session = desk.session
        assert session.live.options == LiveOptions(gravity=session.settings.gravity)
        assert (panel.off.visible, panel.running.visible) == (False, True)
        buttons = panel.start, panel.end, panel.record
        assert [each.visible for each in buttons] == [False, True, True]
        (joints,) = desk.sent("set_joints")
        assert [joint["name"] for joint in joints] == ["m0.hinge", "m1.hinge"]

        def states():
            panel._show_words()
            found = panel.go, panel.follow, panel.relax, panel.record, panel.stop, panel.hold
            return [each.enabled for each in found]

        assert states() == [True] * 4 + [False, True]
        assert [name for name, _ in desk.told].count("set_joints") == 1  # while they are the same
        assert (panel.mode.text, panel.clock.text) == ("Holds", "")
        monkeypatch.setattr(robot, "clock_line", lambda: "200 cycles/s")
        panel._show_words()
        assert panel.clock.text == "200 cycles/s"
        assert not panel.progress.visible
        assert "no reading has come back" in panel.certificate.text
        robot.bus.run(lambda: False, 0.1)
        panel._show_words()
        assert panel.certificate.text.startswith("computed torque: guaranteed")
        assert panel.reason.text == panel.problem.text == ""

        desk.event(panel.sliders, "pose", {"m0.hinge": 0.3})
        desk["live-seconds"].value = 0.2
        desk.click("live-go")
        await done(lambda: robot.status().mode == "move")
        robot.bus.run(lambda: False, 0.1)
        assert states() == [True] * 5 + [False]
        assert panel.mode.text == f"Moves: {robot.status().motion}"
        assert panel.progress.visible
        assert panel.progress.value == pytest.approx(0.5, abs=0.05)
        robot.bus.run(lambda: False, REST_S)
        assert robot.status().set_point.tolist() == pytest.approx([0.3, 0.0], abs=NEAR)

        desk.click("live-measured")
        goals = desk.sent("set_values")[0]
        assert goals == pytest.approx({"m0.hinge": 0.3, "m1.hinge": 0.0}, abs=NEAR)
        desk.click("live-zero")
        assert desk.sent("set_values") == ({"m0.hinge": 0.0, "m1.hinge": 0.0},)
        desk.click("live-go")
        await done(lambda: robot.status().mode == "move")
        desk.click("live-stop")
        assert robot.status().mode == "hold"
        assert desk.sent("set_values")[0]["m0.hinge"] > 0.1  # goals are where it was stopped

        desk.click("live-record")
        assert robot.recording == 0.0
        panel._show_words()
        assert (panel.record.text, panel.state.text) == ("Keep as a run", "recording, 0 s")
        desk["live-gait"].value = "wave"
        desk.click("live-follow")
        await done(lambda: robot.status().motion == "gait wave")
        robot.bus.run(lambda: False, 0.1)
        desk.click("live-relax")
        assert states() == [True] * 4 + [False, True]
        assert panel.mode.text == "Relaxed"
        desk.page.run_shown, desk.page.run_other = 7, 8
        desk.click("live-record")
        await done(lambda: session.runs)
        assert desk.notes[-1] == "Kept as run 1: See plays it"
        assert desk.page.run_shown is desk.page.run_other is None
        panel._show_words()
        assert (panel.record.text, panel.state.text) == ("Record", "")
        assert not panel.state.visible

        session.dock("backbone", "m2", 3)
        panel._show_words()
        assert panel.reason.text.startswith("The body was changed since the start")
        await desk.settled()
        panel._tick()
        drawn = len(desk.told)
        panel.problem.set_text("m1 was lost")
        desk.click("live-end")
        await done(lambda: not session.live.on and not panel.running.visible)
        assert (panel.off.visible, panel.start.visible, panel.end.visible) == (True, True, False)
        assert "set_state" in [name for name, _ in desk.told[drawn:]]  # the project's own body
        assert (panel._goals, panel.problem.text) == ({}, "")
        drawn = len(desk.told)
        panel.refresh("live")
        assert "set_state" not in [name for name, _ in desk.told[drawn:]]  # it is there already
        assert not desk.all("live-m0")
        desk.click("live-go")  # of no robot: nothing happens
        desk.click("live-zero")

    live_page(on_page, monkeypatch, work, examples.snake(3))


def test_a_module_that_is_chosen_under_live_is_disturbed_by_its_buttons(on_page, monkeypatch):
    async def work(desk, panel, robot):
        asked = []
        names = "unplug", "plug", "kill", "restart", "push", "payload", "fault"
        for name in names:
            command = getattr(robot, name)

            def told(*args, name=name, command=command):
                command(*args)
                asked.append((name, *args))

            monkeypatch.setattr(robot, name, told)

        async def click(name, *wanted):
            desk.click(name)
            await done(lambda: asked and asked[-1] == wanted)
            panel._show_words()

        texts = desk.texts(panel.module._box)
        assert texts[0].startswith("Choose a module here")
        desk.click("live-m1")
        assert desk.page.selected == "m1"
        await desk.settled()
        assert desk["live-m1"].props["aria-pressed"] == "true"
        assert desk["live-m0"].props["aria-pressed"] == "false"
        assert desk.texts(panel.module._box) == ["m1 (backbone)"]
        assert panel.drive.text.startswith("hinge 0.0°")
        assert desk["live-joint"].value == "m1.hinge"
        desk["live-torque"].value = 2.5
        await click("live-push", "push", "m1.hinge", 2.5)
        desk["live-joint"].value = "y"
        await click("live-push", "push", "m1", [0.0, 2.5, 0.0])
        desk["live-torque"].value = None
        await click("live-push", "push", "m1", [0.0, 0.0, 0.0])
        assert desk["live-payload"].value == 0.0
        steps = [desk[f"live-{name}"].props["step"] for name in ("payload", "torque")]
        assert steps == [0.1, 0.5]
        desk["live-payload"].value = 0.75
        await click("live-load", "payload", "m1", 0.75)
        assert desk["live-payload"].value == 0.75
        with desk.page.client:
            desk["live-drives"].value = "stuck"
        await done(lambda: asked[-1] == ("fault", "m1", "stuck"))
        panel._show_words()
        assert desk["live-drives"].value == "stuck"
        count = len(desk.all("live-plug"))
        await click("live-unplug", "unplug", "m1")
        assert len(desk.all("live-plug")) == count + 1
        assert desk.texts(desk["live-m1"]) == ["m1 · unplugged"]
        assert "module-unplugged" in desk["live-m1"].classes
        await click("live-plug", "plug", "m1")
        await click("live-kill", "kill", "m1")
        assert desk.texts(desk["live-m1"]) == ["m1 · dead"]
        await click("live-restart", "restart", "m1")
        desk.click("live-m1")  # again: none is chosen
        assert desk.page.selected is None
        panel._show_words()
        assert panel.drive.text == ""

    live_page(on_page, monkeypatch, work, examples.snake(3))


def test_frames_of_a_live_robot_wait_for_a_browser_that_is_behind(on_page, monkeypatch):
    async def work(desk, panel, robot):
        def count(method):
            return sum(name == method for name, _ in desk.told)

        desk.page.show("build")
        desk.page.show("live")
        panel.timer.deactivate()
        words, before = [], count("set_live")
        monkeypatch.setattr(panel, "_show_words", lambda: words.append(panel._frames))
        for _ in range(7):
            panel._tick()
            await turns()
        assert count("set_live") == before + 1  # the scene stays as it is
        assert count("live_frame") == MOST_AHEAD  # none is answered
        panel._ahead = 0
        for _ in range(MOST_AHEAD):
            panel._tick()
            await turns()
        assert count("live_frame") == 2 * MOST_AHEAD
        assert words == [6]  # words change less often
        robot.unplug("m2")
        robot.bus.run(lambda: robot.scene().missing == ("m2",))
        panel._ahead = 0
        panel._tick()
        assert count("set_live") == before + 2
        desk.page.show("build")
        panel.timer.active = True
        panel._tick()
        assert not panel.timer.active  # until it is shown again
        desk.page.show("live")
        assert panel.timer.active

        async def drawn(*frame, **limit):
            assert limit == {"timeout": SLOWEST_S}

        panel._ahead = 1
        monkeypatch.setattr(desk.page.stage, "run_method", drawn)
        await panel._draw({})
        assert panel._ahead == 1  # one more was on its way, and has been drawn
        desk.page.leave()
        assert not panel.timer.active

    live_page(on_page, monkeypatch, work, examples.snake(3))


def test_fields_of_live_are_the_options_of_the_robot(on_page):
    async def work(desk):
        started = []

        async def start(options):
            started.append(options)

        desk.session.live.start = start
        desk.page.show("live")
        desk.click("live-start")
        await turns()
        for name, value in (("period", 8), ("noise_q", 0.01), ("noise_v", 0.02), ("loss", 0.1)):
            desk[f"live-{name}"].value = value
        desk["live-law"].value = "PdGravity"
        desk.click("live-start")
        await turns()
        assert started == [
            LiveOptions("ComputedTorque", 0.005, 0.0, 0.0, 0.0, 3.7),
            LiveOptions("PdGravity", 0.008, 0.01, 0.02, 0.1, 3.7),
        ]
        for name in ("period", "noise_q", "noise_v", "loss", "law"):
            desk[f"live-{name}"].value = None  # cleared
        desk.click("live-start")
        await turns()
        assert started[-1] == LiveOptions(period=0.0, gravity=3.7)

        def drawn():
            return sum(name == "set_state" for name, _ in desk.told)

        before = drawn()
        for mode, more in (("live", 0), ("build", 1), ("move", 1), ("live", 1), ("see", 2)):
            desk.page.show(mode)
            assert drawn() == before + more  # the project's own body, when Live is left

    on_page(work, examples.snake(2), gravity=3.7)


def test_without_a_body_nothing_is_live(on_page):
    async def work(desk):
        panel = desk.page.panels["live"]
        desk.page.show("live")
        assert panel.state.text == "There is no module yet: place one under Build."
        understand = desk.page.panels["understand"]
        desk.page.show("understand")
        for part in understand.tabs:
            desk.click(f"part-{part}")
            assert desk.texts(understand.content_part._box) == [panel.state.text]
        desk.page.show("live")
        desk.click("live-start")
        await turns()
        assert not desk.session.live.on
        assert desk.notes

    on_page(work)


# -- several modules, files, dialogs ---------------------------------------------------------------


def test_what_is_copied_is_pasted_repeated_and_mirrored_by_keys(on_page):
    async def work(desk):
        page = desk.page

        def press(what):
            desk.event(page.stage, "command", what)

        def crab_with(*names):
            return desk.session.organism.modules == (*examples.crab().modules, *names)

        press("paste")
        assert desk.notes[-1] == "Nothing is copied yet: choose a module and press Ctrl+C."
        for what in ("copy", "repeat", "mirror"):
            press(what)
            assert desk.notes[-1] == "Choose a module first: click it."
        desk.event(page.stage, "pick", {"modules": ["m2"]})
        press("copy")
        assert desk.notes[-1].startswith("Copied 2 modules: ")
        page.select()
        press("paste")
        assert desk.notes[-1] == "Choose a module first: click it."
        page.select("m0")
        press("paste")
        assert crab_with("m6", "m7")
        assert page.selected == "m6"  # the first one of the copy
        assert desk.sent("say") == ("m6 docked",)
        press("undo")
        page.select("m3")
        press("repeat")
        assert crab_with("m6")
        assert page.selected == "m6"
        press("undo")
        page.select("m2")
        press("mirror")  # there is no room: the second leg is there
        assert crab_with()
        assert "mirror image" in desk.notes[-1]

    on_page(work, examples.crab())


def test_several_modules_are_chosen_with_a_key_and_removed_together(on_page):
    async def work(desk):
        page, session = desk.page, desk.session

        def pick(*modules, more):
            desk.event(page.stage, "pick", {"modules": [*modules], "more": more})
            return page.chosen_modules

        assert pick("m1", "m3", more=False) == ["m1", "m3"]
        assert page.selected == "m3"
        assert desk.sent("select") == (["m1", "m3"],)  # of the tree, the last that is told
        assert pick("m1", "m5", more=True) == ["m3", "m5"]  # one that was chosen is so no longer
        assert pick("m5", more=False) == ["m5"]
        assert pick("m3", more=True) == ["m5", "m3"]
        await desk.settled()
        texts = desk.texts(page.build_panel.module_part._box)
        assert texts[1].startswith("2 modules chosen; the last: 1 kg, 0.1 m; side 2 to side 3")
        desk.event(page.stage, "remove", {"module": "m3"})
        await desk.settled()
        assert session.organism.modules == ("m0", "m1", "m2", "m4")
        assert page.chosen_modules == []
        session.undo()
        page.select("m5")
        desk.event(page.stage, "remove", {"module": "m3"})  # another one than the chosen
        assert "m5" in session.organism
        assert "m3" not in session.organism

    on_page(work, examples.crab())


def test_events_of_plan_and_tree_edit_the_body(on_page):
    async def work(desk):
        page, session, panel = desk.page, desk.session, desk.page.build_panel
        assert (panel.plan.visible, panel.tree.visible) == (True, False)
        assert desk.sent("set_tree") is None  # hidden
        desk.click("view-tree")
        assert (panel.plan.visible, panel.tree.visible) == (False, True)
        assert panel.views["tree"].props["aria-selected"] == "true"
        assert panel.views["plan"].props["aria-selected"] == "false"
        assert '"name":"m2"' in desk.sent("set_tree")[0].replace(" ", "")
        assert '"hidden":3' in desk.sent("set_plan")[0].replace(" ", "")
        desk.event(panel.tree, "rename", {"module": "m2", "name": "tail"})
        assert (page.selected, session.organism.modules) == ("tail", ("m0", "m1", "tail"))
        before = session.organism.docking("tail")
        desk.event(panel.tree, "shift", {"name": "tail", "step": 1})
        assert session.organism.docking("tail") != before
        desk.event(panel.tree, "rebase", {"module": "m1"})
        assert session.organism.base == "m1"
        desk.event(panel.tree, "rebase", {"module": "m1"})
        assert desk.notes[-1] == "'m1' is the base already"
        desk.event(panel.plan, "rebase", {"module": "m1"})
        assert desk.sent("explain") == ("'m1' is the base already",)
        desk.event(panel.tree, "dock", {"module": "tail", "port": 99})
        assert "99" in desk.notes[-1]
        desk.event(panel.tree, "pick", {"modules": ["m0"], "more": True})
        assert page.chosen_modules == ["tail", "m0"]
        desk.event(panel.plan, "pick", {"module": "m1"})
        assert page.chosen_modules == ["m1"]
        desk.event(panel.tree, "remove", {"module": "tail"})
        assert "tail" not in session.organism
        desk.event(panel.plan, "move", {"name": "m0", "module": "m1", "port": 3, "child_port": 5})
        held = session.organism.docking("m0")
        assert (held.parent, held.port, held.child_port) == ("m1", 3, 5)
        desk.event(panel.plan, "turn", {"module": "m0"})
        assert session.organism.docking("m0").child_port != 5
        desk.event(panel.plan, "remove", {"module": "m0"})
        assert session.organism.modules == ("m1",)

    on_page(work, examples.snake(3))


def test_superbots_are_a_tree_and_dock_with_a_turn_that_is_chosen(on_page):
    async def work(desk):
        page, panel = desk.page, desk.page.build_panel
        assert (panel.plan.visible, panel.tree.visible) == (False, True)
        choices = [
            e for e in panel.palette_part._box.descendants() if isinstance(e, ui.select)
        ]  # fmt: skip
        turn = next(e for e in choices if e.props["label"] == "Turned by")
        assert turn.options == {"auto": "no turn", 90: "90°", 180: "180°", 270: "270°"}
        assert {"dense", "outlined", "options-dense"} <= {*turn.props}
        with page.client:
            turn.value = 180
        assert page.turn == 180
        desk.event(page.stage, "dock", {"module": "m0", "port": 3})
        assert desk.session.organism.docking("m1").turn == 180
        desk.event(page.stage, "dock", {"module": "m0", "port": 1, "turn": 90, "child_port": 2})
        held = desk.session.organism.docking("m2")
        assert (held.turn, held.child_port) == (90, 2)
        # R goes through all ways to dock at a site
        desk.event(panel.tree, "turn", {"module": None, "site": ["m2", 3]})
        first = page.child_port, page.turn
        desk.event(panel.tree, "turn", {"module": None, "site": ["m2", 3]})
        assert (page.child_port, page.turn) != first
        page.choose("scout")
        assert (page.child_port, page.turn) == (None, None)

    on_page(work, Organism.start("superbot"))


def test_a_project_is_renamed_copied_and_shared(on_page, monkeypatch):
    went, files = [], []
    monkeypatch.setattr(ui.navigate, "to", went.append)
    monkeypatch.setattr(ui.download, "content", lambda *args: files.append(args))

    async def work(desk):
        page, studio = desk.page, desk.page.studio
        studio.new("crab", projects.Project())
        desk.click("project")
        desk["new-name"].value = "crab"
        desk.click("rename-ok")
        (problem,) = desk.all("name-problem")
        assert problem.text == "there is a project 'crab' already; choose another name"
        desk["new-name"].value = " lobster "
        desk.event(desk["new-name"], "keydown.enter")
        assert desk.session.name == "lobster"
        assert went == ["/project/lobster"]
        desk.click("project")
        desk["new-name"].value = "my snake"
        elements = page.client.elements.values()
        button = [e for e in elements if getattr(e, "text", "") == "Save a copy"][-1]
        said: list[str] = []
        monkeypatch.setattr(ui, "run_javascript", said.append)
        desk.event(button)
        assert said == ["window.modurob.leaving = true"]  # nothing is lost: no warning
        assert went[-1] == "/project/my%20snake"
        assert studio.session("my snake").organism == desk.session.organism

        desk.click("export")
        assert [bool(desk.all(f"export-{name}")) for name in ("archive", "csv")] == [False, False]
        desk.click("export-project")
        data, name, kind = files.pop()
        assert (name, kind) == ("lobster.modurob.json", "application/json")
        assert data == projects.to_bytes(desk.session.project)
        desk.session.add_run(record(1))
        desk.session.add_run(record(2))
        desk.click("export")
        assert desk.all("export-csv")
        desk.click("export-archive")
        data, name, kind = files.pop()
        assert (name, kind) == ("lobster.modurob.zip", "application/zip")
        assert desk.notes[-1] == "The latest 0 of 2 runs fit into one file."  # they have no files
        desk.notes.clear()
        monkeypatch.setattr(imports, "archive", lambda *_: (b"", 2))
        desk.click("export-archive")
        assert desk.notes == []

    on_page(work, examples.snake(3))


def test_a_file_is_made_beside_everything_else_with_its_progress(on_page, monkeypatch):
    files, asked, answers = [], [], []
    monkeypatch.setattr(ui.download, "content", lambda *args: files.append(args))

    async def made(worker, task, name, request, progress):
        asked.append((task, name, request.record and request.record.number))
        progress(0.5)
        answers.append(asyncio.get_running_loop().create_future())
        return await answers[-1]

    monkeypatch.setattr(Worker, "run", made)

    async def work(desk):
        desk.page.run_shown = 1
        desk.click("export")
        state = desk["export-state"]

        def shown():
            bars = desk.page.client.elements.values()
            bar = [e for e in bars if e.props.get("aria-label") == "Progress of the export"][-1]
            cancel = [
                e for e in desk.page.client.elements.values() if getattr(e, "text", "") == "Cancel"
            ]
            return bar.visible, bar.value, cancel[-1].enabled

        assert shown() == (False, 0.0, False)
        desk.click("export-csv")
        await turns()
        assert asked == [(exports.make, "csv", 1)]
        assert shown() == (True, 0.5, True)
        assert state.text == f"making {exports.FORMATS['csv'].title}…"
        answers[-1].set_result(b"x" * 1500)
        await turns()
        file = f"robot{exports.FORMATS['csv'].ending}"
        assert files == [(b"x" * 1500, file)]
        assert state.text == f"{file}: 1,500 bytes"
        assert shown() == (False, 0.5, False)
        for end, words in ((StateError("no room"), "no room"), (JobCanceled(), "canceled")):
            desk.click("export-csv")
            await turns()
            answers[-1].set_exception(end)
            await turns()
            assert state.text == words
            assert shown()[::2] == (False, False)
        assert len(files) == 1
        desk.event(desk.items("Export…")[0])  # of the second run, the latest
        assert "2: a fall" in desk.texts(desk.page.client.layout)

    on_page(work, examples.snake(3), [record(1), record(2)])


def test_projects_are_searched_duplicated_and_deleted_after_a_question(on_page, monkeypatch):
    went = []
    monkeypatch.setattr(ui.navigate, "to", went.append)

    async def work(desk):
        folder = desk.page.studio.folder
        for name in ("red crab", "blue crab", "snail"):
            folder.write(name, projects.to_bytes(projects.Project()))
        desk.session.save()
        desk.click("open")
        problem = desk["open-problem"]

        def listed():
            names = ("red crab", "blue crab", "snail", "blue crab copy", "robot")
            shown = {e.props.get("data-testid") for e in desk.page.client.elements.values()}
            return [name for name in names if f"open-{name}" in shown]

        assert listed() == ["red crab", "blue crab", "snail", "robot"]
        with desk.page.client:
            desk["search-projects"].value = " CRAB "
        assert listed() == ["red crab", "blue crab"]
        desk.click("copy-blue crab")
        assert listed() == ["red crab", "blue crab", "blue crab copy"]
        desk.click("delete-red crab")
        assert problem.text == "Deleted projects are moved to the folder 'deleted'."
        assert folder.has("red crab")
        desk.click("delete-red crab-ok")
        assert (listed(), problem.text) == (["blue crab", "blue crab copy"], "")
        assert not folder.has("red crab")
        with desk.page.client:
            desk["search-projects"].value = "lobster"
        assert "No project has this in its name." in desk.texts(desk.page.client.layout)
        with desk.page.client:
            desk["search-projects"].value = "robot"
        desk.click("delete-robot")
        desk.click("delete-robot-ok")
        assert problem.text.startswith("'robot' is open in a tab")
        desk.click("open-robot")
        assert went == ["/project/robot"]
        monkeypatch.setattr(project_panel, "MOST_PROJECTS", 2)
        with desk.page.client:
            desk["search-projects"].value = ""
        assert len(listed()) == 2
        assert "The latest 2 of 4; search to find others." in desk.texts(desk.page.client.layout)
        monkeypatch.setattr(project_panel, "MOST_PROJECTS", 4)
        with desk.page.client:
            desk["search-projects"].value = " "
        assert len(listed()) == 4
        assert "The latest" not in " ".join(desk.texts(desk.page.client.layout))

    on_page(work, examples.snake(3))


def test_a_run_is_renamed_and_removed_runs_are_deleted_after_a_question(on_page):
    async def work(desk):
        session = desk.session

        def press(text):
            found = [e for e in desk.page.client.elements.values() if isinstance(e, ui.button)]
            desk.event([e for e in found if e.text == text][-1])

        desk.event(desk.items("Rename…")[-1])  # the last row is that of the first run
        assert desk["run-name"].value == "a fall"
        desk["run-name"].value = "  "
        desk.click("run-name-ok")
        assert "title" in desk["run-name-problem"].text
        desk["run-name"].value = " slow walk "
        desk.event(desk["run-name"], "keydown.enter")
        assert [run.title for run in session.runs] == ["slow walk", "a fall", "a fall"]
        await desk.settled()
        for _ in range(2):
            desk.event(desk.items("Remove")[-1])
            await desk.settled()
        assert [run.number for run in session.runs] == [3]
        press("Delete for good")
        assert "The files of 2 removed runs cannot be brought back." in desk.texts(
            desk.page.client.layout
        )
        assert len(session.project.runs) == 3
        desk.click("delete-runs-ok")
        assert [run.number for run in session.project.runs] == [3]

    on_page(work, examples.crab(), [record(1), record(2), record(3)])


def test_runs_are_chosen_above_their_plots_and_forgotten_when_they_are_removed(on_page):
    async def work(desk):
        page = desk.page
        page.show("see")
        assert desk.sent("load_run") == ("/api/runs/robot/3", None, False)  # the last
        assert desk.sent("stop_run") is None
        assert desk["see-run"].value == 3
        assert desk["see-other"].options == {None: "no other run", 2: "2: a fall", 1: "1: a fall"}
        with page.client:
            desk["see-other"].value = 1
        assert desk.sent("load_run") == ("/api/runs/robot/3", "/api/runs/robot/1", False)
        assert desk["see-other"].value == 1
        desk.session.edit_run(1, removed=True)
        await desk.settled()
        assert desk.sent("load_run") == ("/api/runs/robot/3", None, False)
        with page.client:
            desk["see-run"].value = 2
        assert page.run_shown == 2
        page.show("build")
        assert desk.sent("stop_run") == ()
        told = len(desk.told)
        page.show("see")
        assert [name for name, _ in desk.told[told:] if name in ("load_run", "wake", "draw")] == [
            "wake", "draw",
        ]  # fmt: skip
        desk.session.edit_run(3, removed=True)
        await desk.settled()
        assert page.run_shown == 2
        assert not [e for e in desk.all("see-run") if e.parent_slot]

    on_page(work, examples.crab(), [record(1), record(2), record(3)])


def test_a_path_that_was_drawn_tells_how_near_the_joints_come(on_page):
    async def work(desk):
        page, tip = desk.page, "m6.distal"
        model = desk.session.model()
        T = model.forward_kinematics(desk.session.configuration(model))
        start = T[model.body_index(tip), :3, 3]
        for end, words in (([0.3, 0.1, -0.1], "all along"), ([0.0, 0.0, 5.0], "within ")):
            drawn = {"body": tip, "point": [0.0, 0.0, 0.0]}
            drawn["path"] = [start.tolist(), (start + end).tolist()]
            desk.event(page.stage, "path", drawn)
            assert desk.notes[-1].startswith(f"The joints can follow the path {words}")
        off = int(desk.notes[-1].split("within ")[1].split(" mm")[0])
        assert off == pytest.approx(5000, abs=10)  # stretched: it cannot come any nearer
        count = len(desk.notes)
        desk.event(page.stage, "path", {**drawn, "path": [start.tolist()]})
        assert "too short" in desk.notes[count]
        assert len(desk.notes) == count + 1
        for off, words in ((5e-4, "all along"), (6e-4, "within 1 mm")):
            desk.session.draw_path = lambda off=off: off
            page._draw_path()
            assert f"follow the path {words}: " in desk.notes[-1]
        desk.event(page.stage, "pose", {"m1.joint": 0.4})
        assert desk.session.project.pose["m1.joint"] == 0.4
        desk.event(page.stage, "carry", {"module": "m6", "step": 0})
        assert desk.sent("set_carry")[0]["names"] == ("m6",)

    on_page(work, examples.arm("bababab"), hinges="physical")


def test_a_file_that_is_dropped_is_a_project_of_its_own_or_modules_for_the_palette(
    on_page, monkeypatch, tmp_path
):
    went = []
    monkeypatch.setattr(ui.navigate, "to", went.append)

    async def work(desk):
        page = desk.page
        page.show("see")
        own = catalog["scout"].model_copy(update={"name": "heavy"})
        page.drop("heavy.json", json.dumps(own.document()).encode())
        assert (page.mode, page.kind) == ("build", "heavy")
        assert "heavy" in desk.session.kinds()
        page.drop("crab.json", b"{")
        assert desk.notes[-1].startswith("This file cannot be opened. crab.json: not valid JSON")
        assert went == []
        examples.snake(2).save(tmp_path / "worm.json")
        page.drop("worm.json", (tmp_path / "worm.json").read_bytes())
        assert went == ["/project/worm"]
        assert page.studio.sessions["worm"].organism == examples.snake(2)

    on_page(work, examples.crab())


def test_the_help_lists_keys_and_starts_the_guide_again(on_page):
    async def work(desk):
        page = desk.page
        desk.click("help")
        button = [e for e in page.client.elements.values() if isinstance(e, ui.button)]
        desk.event(next(e for e in button if e.text == "Guide me through the crab"))
        assert page.tour.running
        assert desk.session.organism is None
        assert desk.session.undo() == "start the guide"

    on_page(work, examples.snake(2))


def test_a_timeline_has_labels_until_they_have_no_room(on_page, monkeypatch):
    monkeypatch.setattr(keyframes_panel, "MOST_LABELS", 2)

    async def work(desk):
        page = desk.page
        page.show("move")
        for time in (0.0, 1.5):
            desk.session.keep_keyframe(time)
        await desk.settled()
        marks = [desk[f"keyframe-{time}"] for time in ("0", "1.5")]
        assert [mark.style["left"] for mark in marks] == ["0.0%", "75.0%"]  # of a run of 2 s
        assert [desk.texts(mark) for mark in marks] == [["0"], ["1.5"]]
        assert desk["keyframe-run"].enabled  # two are a motion
        desk.click("keyframe-1.5")
        assert "on" in desk["keyframe-1.5"].classes
        assert "on" not in desk["keyframe-0"].classes
        desk.session.keep_keyframe(4.0)
        await desk.settled()
        marks = [desk[f"keyframe-{time}"] for time in ("0", "1.5", "4")]
        assert [mark.style["left"] for mark in marks] == ["0.0%", "37.5%", "100.0%"]
        assert [desk.texts(mark) for mark in marks] == [[""], [""], [""]]
        assert all("dot" in mark.classes for mark in marks)
        (ghosts,) = desk.sent("set_keyframes")
        model = desk.session.model()
        assert np.shape(ghosts) == (3, model.nbodies, 7)
        desk.session.edit_settings(motion="hold")
        assert desk.sent("set_keyframes") == ([],)
        desk.click("draw-path")
        assert desk.sent("draw_path") == ()

    on_page(work, examples.snake(3), duration=2.0)


# -- limits ----------------------------------------------------------------------------------------


def test_limits_of_the_page_are_those_of_the_guide():
    guide = Path(__file__).parents[2] / "docs" / "guide" / "studio.md"
    text = " ".join(guide.read_text("utf-8").split())
    for sentence in (
        f"also for bodies with up to {understand_panel.MOST_COLORED} joints",
        f"where there are more than {understand_panel.MOST_BUTTONS}, an entry can be typed, too",
        f"the first {formulas.UNFOLDED} terms are shown, and up to {formulas.MOST_TERMS} when",
        f"translucent copies of the poses (at most {view.MOST_GHOSTS})",
        f"inverse kinematics finds {keyframes.ON_PATH} poses",
        f"or the module with a force, for {live.PUSH_S:g} s",
        f"up to {live_session.MOST_MODULES} modules",
        f"fit into the {guard.LARGEST_BODY // 2**20} MB that can be opened again",
    ):
        assert sentence in text


PANELS = [
    (keyframes_panel, {"MOST_LABELS": 10}),
    (live_panel, {"MOST_AHEAD": 4}),
    (page_module, {"OFF_PATH_M": 5e-4}),
    (project_panel, {"MOST_PROJECTS": 60}),
    (runs_panel, {"SORTED_FROM": 3}),
    (server, {"MOST_PAGES": 100, "MOST_DRAWN": 150}),
]  # fmt: skip


@pytest.mark.parametrize(("module", "documented"), PANELS, ids=lambda x: getattr(x, "__name__", ""))
def test_limits_of_panels_are_those_that_are_written_here_on_purpose(module, documented):
    assert {name: getattr(module, name) for name in documented} == documented


# -- more of the panels ----------------------------------------------------------------------------


def test_an_entry_of_the_equations_is_told_canceled_copied_and_exported(on_page, monkeypatch):
    ends, copied, files = [], [], []
    monkeypatch.setattr(ui.clipboard, "write", copied.append)
    monkeypatch.setattr(ui.download, "content", lambda *args: files.append(args))

    async def work(desk):
        page, panel = desk.page, desk.page.panels["understand"]

        async def answer(function, *request):
            if function is formulas.entry:
                assert (panel.words.text, panel.stop.visible) == ("computing…", True)
            end = ends.pop(0)
            if isinstance(end, BaseException):
                raise end
            return end if isinstance(end, str | bytes) else {"mathml": "", "symbols": [], **end}

        monkeypatch.setattr(panel.worker, "run", answer)
        page.show("understand")
        entries = (
            ({"terms": 1, "shown": 1}, "M[1,1]: 1 term"),
            ({"terms": 0, "shown": 0}, "M[1,1]: zero"),
            ({"terms": 3, "shown": 3}, "M[1,1]: 3 terms"),
            (StateError("it is too long"), "it is too long"),
            (JobCanceled(), "canceled"),
        )
        for end, words in entries:
            ends.append(end)
            desk.click("part-equations")
            await turns()
            assert panel.words.text == words
            assert not panel.stop.visible
        ends.append("M_{1,1} = m")
        desk.click("copy-latex")
        await turns()
        assert (copied, desk.notes[-1]) == (["M_{1,1} = m"], "LaTeX of M[1,1] copied")
        ends.append(b"packed")
        desk.click("export-c")
        await turns()
        assert files == [(b"packed", "robot.zip")]

        # colors are of the pose of the sliders, those of C with all velocities 1
        desk.session.set_pose(**{"m1.hinge": 0.4, "m2.hinge": -0.7})
        model = desk.session.model()
        found = model.closed_form(desk.session.configuration(model), np.ones(model.nv))
        for name, values in zip("MCN", (found[0], found[1], found[2][:, None]), strict=True):
            ends.append({"terms": 1, "shown": 1})
            desk.click(f"formula-{name}")
            await turns()
            index = f"{name}[2]" if name == "N" else f"{name}[2,1]"
            assert f'title="{index} = {values[1, 0]:.4g}"' in desk["entries"].content
            assert ("all velocities 1" in " ".join(desk.texts(panel.root))) == (name == "C")

    on_page(work, examples.snake(4), hinges="physical")


def test_a_body_whose_joints_are_locked_has_no_equations(on_page):
    async def work(desk):
        desk.page.show("understand")
        desk.click("part-equations")
        await turns()
        texts = desk.texts(desk.page.panels["understand"].root)
        assert "No joint can move, so there are no equations of motion." in texts
        desk.click("part-joints")
        texts = desk.texts(desk.page.panels["understand"].root)
        assert any(text.startswith("0 joints move, ") for text in texts)

    on_page(work, Organism.start("scout"))


def test_the_picture_beside_the_palette_shows_which_sides_meet(on_page):
    async def work(desk):
        page = desk.page
        page.choose("scout")
        words = "The new module (right) docks with its side "
        picture = desk["dock-picture"]
        assert picture.props["aria-label"] == f"{words}5"
        assert picture.props["title"] == f"{words}5, so that it is not turned"
        assert re.findall('<rect x="(.*?)" y="(.*?)"', picture.content) == [("1", "1"), ("38", "1")]
        for place in ('x="30" y="19">2<', 'x="8" y="19">5<', 'x="19" y="7">3<', 'x="19" y="31">4<'):
            assert place in picture.content  # the neighbor
        for place in (
            'x="45" y="19">5<',
            'x="67" y="19">2<',
            'x="56" y="7">3<',
            'x="56" y="31">4<',
        ):
            assert place in picture.content
        with page.client:
            desk["dock-with"].value = 3
        picture = desk["dock-picture"]
        assert picture.props["title"] == f"{words}3"
        for place in (
            'x="45" y="19">3<',
            'x="67" y="19">4<',
            'x="56" y="7">2<',
            'x="56" y="31">5<',
        ):
            assert place in picture.content  # turned by a quarter
        page.choose("giusti_a")
        assert desk["dock-picture"].props["aria-label"].startswith(f"{words[:-5]}port ")
        data = catalog["scout"].model_dump()
        ports = [{**port, "label": port["label"] - 2} for port in data["ports"]]
        page.build_panel.add_kinds((ModuleType(**{**data, "name": "own", "ports": ports}),))
        with page.client:
            desk["dock-with"].value = 0  # of the sides 0 to 3
        assert desk["dock-with"].value == 0
        assert desk["dock-picture"].props["title"] == f"{words}0"
        assert '="45" y="19">0<' in desk["dock-picture"].content
        desk.event(page.stage, "turn", {"module": None, "site": ["m0", 2]})
        assert page.child_port == 1
        rest = [port for port in ports if port["side"] != 5]  # none on the left: the first one
        page.build_panel.add_kinds((ModuleType(**{**data, "name": "three", "ports": rest}),))
        assert desk["dock-picture"].props["aria-label"] == f"{words}{rest[0]['label']}"

    on_page(work, examples.snake(2))


def test_an_own_module_comes_into_the_palette_or_its_file_is_refused(on_page):
    async def work(desk):
        page, closed = desk.page, []
        desk.click("own-module")
        problem, dialog = desk.all("problem")[-1], SimpleNamespace(close=lambda: closed.append(1))
        page.build_panel._add("x.toml", b"x = ", problem, dialog)
        assert problem.text.startswith("x.toml: ")
        assert not closed
        own = catalog["scout"].model_copy(update={"name": "heavy"})
        data = json.dumps(own.document()).encode()
        page.build_panel._add("heavy.json", data, problem, dialog)
        assert (page.kind, closed) == ("heavy", [1])
        assert desk["kind-heavy"].props["aria-pressed"] == "true"

    on_page(work, examples.snake(2))


def test_a_text_that_means_the_same_setting_stays_as_it_was_typed(on_page):
    async def work(desk):
        field = desk["set-locked"]
        with desk.page.client:
            field.value = "m1.hinge=45.00"
        await desk.settled()
        assert desk.session.settings.locked == pytest.approx({"m1.hinge": np.pi / 4})
        assert field.value == "m1.hinge=45.00"
        desk.session.edit_settings(locked={"m2.hinge": 0.0})
        await desk.settled()
        assert field.value == "m2.hinge=0"
        with desk.page.client:
            desk["set-duration"].value = None  # being typed
        assert desk.session.settings.duration == NEW_SETTINGS.duration
        assert desk["set-duration"].error is None
        with desk.page.client:
            field.value = "m9.hinge=45"
        assert field.error.startswith("joints are m0.hinge")
        desk.page.show("move")
        desk.click("run")
        assert "m9.hinge" in desk.notes[-1]  # nothing runs while a field is wrong
        assert not desk.session.runner.busy

    on_page(work, examples.snake(4), hinges="physical")


def test_numbers_of_modules_that_cannot_be_are_told_at_their_fields(on_page):
    async def work(desk):
        desk.page.show("move")
        before = desk.session.organism
        desk["parameter-mass"].value = -2.0
        desk.click("apply-parameters")
        assert desk.session.organism is before
        assert "mass" in desk["parameter-mass"].error
        assert desk["parameter-size"].error is None
        assert desk.notes[-1].startswith("Mass must be a finite number")

    on_page(work, examples.snake(2))


def test_errors_at_fields_are_short_and_without_the_name_of_the_field(on_page, monkeypatch):
    async def work(desk):
        desk.page.show("move")

        def refuse(*names, **changes):
            raise StateError(words)

        monkeypatch.setattr(desk.session, "edit_settings", refuse)
        monkeypatch.setattr(desk.session, "edit_parameters", refuse)
        with desk.page.client:
            for k, words in enumerate(("Duration: " + "y" * 91, "z" * 91)):
                desk["set-duration"].value = 7 + k
                assert desk["set-duration"].error == words[-1] * 90
        desk["parameter-mass"].value = 3.0
        desk.click("apply-parameters")
        assert desk["parameter-mass"].error == "z" * 90
        assert desk.notes[-1] == "Z" + "z" * 90  # all of it below

    on_page(work, examples.snake(2))


def test_events_need_a_second_module_and_a_port_that_mates(on_page):
    async def work(desk):
        page, editor = desk.page, desk.page.move_panel.events._box
        page.show("move")
        assert desk.texts(editor) == ["Dock a second module first."]
        desk.session.dock("backbone", "m0", 3)
        await desk.settled()
        page.choose("superbot")
        await desk.settled()
        desk.click("event-dock")
        assert desk.notes[-1] == "'m1' has no free port that mates with a superbot."
        assert not desk.session.settings.events

    on_page(work, Organism.start("backbone"))


def test_work_beside_the_page_ends_with_words_on_what_went_wrong(on_page, capsys):
    async def work(desk):
        async def fails(error):
            raise error

        for error, words in (
            (StateError("no room"), "No room"),
            (JobCanceled(), "Canceled"),
            (KeyError("x"), "Something went wrong (KeyError). "),
        ):
            desk.page.run(fails(error))
            await turns()
            assert desk.notes[-1].startswith(words)
        assert "KeyError" in capsys.readouterr().err

    on_page(work, examples.snake(2))


def test_a_dialog_is_gone_when_it_closes_and_tells_so(on_page):
    async def work(desk):
        page, told = desk.page, []
        for after in (None, lambda: told.append("closed")):
            with page.dialog("A question", 320, after=after) as dialog:
                pass
            assert dialog.value
            desk.event(dialog, "hide")
            assert dialog.is_deleted
        assert told == ["closed"]

    on_page(work, examples.snake(2))


def test_a_page_that_is_left_follows_nothing_and_ends_its_processes(on_page):
    async def work(desk):
        page, ended = desk.page, []
        for name, panel in page.panels.items():
            panel.close = partial(ended.append, name)
        page.figures.close = partial(ended.append, "figures")
        page.studio.close = lambda session: ended.append((session, session.watched))
        assert desk.session.watched
        page.leave()
        assert ended == ["figures", *page.panels, (desk.session, False)]
        panel = page.panels["understand"]
        panel.worker.close = partial(ended.append, "equations")
        type(panel).close(panel)
        assert ended[-1] == "equations"

    on_page(work, examples.snake(2))


def test_a_page_opens_with_what_is_going_on_and_notes_on_its_file(on_page, monkeypatch):
    async def work(desk):
        page, session = desk.page, desk.session

        def opened():
            other = Page(page.studio, session, page.client)
            other._end()
            return other.mode, other.kind

        links = [e for e in page.client.elements.values() if isinstance(e, ui.link)]
        assert links[0].props["href"] == "#panel"  # the keyboard skips the bar
        assert opened() == ("build", "backbone")
        session.live._starting = True
        assert opened()[0] == "live"
        session.runner.progress = 0.5
        assert opened()[0] == "move"
        session.runner.progress, session.live._starting = None, False
        session.change("none", None)
        assert opened() == ("build", "scout")
        session.change("on a slide", Organism.start("virtual_px"))
        assert opened() == ("build", "backbone")  # nothing docks to it by a click
        session.notes = ("One.", "Two.")
        page.start()
        assert "The file was repaired. One. Two." in desk.notes
        assert session.notes == ()

    on_page(work, examples.snake(2))


def test_reach_runs_from_zero_to_the_pose_of_the_sliders(on_page):
    async def work(desk):
        page, session, started = desk.page, desk.session, []
        page.show("move")
        page.move_panel.start_run = lambda: started.append(session.settings)
        desk.click("reach")
        assert desk.notes[-1].startswith("All joints are at zero")
        assert started == []
        session.set_pose(**{"m1.hinge": 0.4})
        desk.click("reach")
        (settings,) = started
        assert (settings.motion, settings.target) == ("quintic", {"m1.hinge": 0.4})
        assert session.project.pose == {}

    on_page(work, examples.snake(3))


def test_one_run_is_computed_at_a_time_and_the_project_is_let_go_after_it(on_page):
    async def work(desk):
        page, session, runs, closed = desk.page, desk.session, [], []
        runner = session.runner

        async def run():
            runs.append(asyncio.get_running_loop().create_future())
            runner.progress = 0.0
            await runs[-1]
            runner.progress = None

        runner.run = run
        page.studio.close = closed.append
        page.show("move")
        for _ in range(2):
            desk.click("run")
            await turns()
        assert (len(runs), closed) == (1, [])
        runs[0].set_result(None)
        await turns()
        assert closed == [session]
        desk.click("run")
        await turns()
        assert len(runs) == 2
        runs[1].set_exception(StateError("no room"))
        await turns()
        assert (closed, desk.notes[-1]) == ([session] * 2, "No room")
        runner.progress = None

    on_page(work, examples.snake(3))


def test_superbots_are_held_as_the_modules_of_other_robots(on_page):
    async def work(desk):
        desk.page.show("move")
        assert desk.page.move_panel.emulations.visible
        desk.click("emulate-m-tran")
        locked = desk.session.settings.locked
        assert {name.partition(".")[2] for name in locked} == {"roll"}
        await desk.settled()
        chips = [desk[f"unlock-{joint}"] for joint in locked]
        assert [chip.props["aria-label"] for chip in chips] == [f"Unlock {x}" for x in locked]
        desk.session.change("a cube", Organism.start("scout"))
        desk.session.edit_settings(hinges="dyad", locked={})
        await desk.settled()
        assert not desk.page.move_panel.emulations.visible
        words = desk.page.move_panel.joints_note.text
        assert words == "No joint can move: Understand says why, or choose other hinges below."

    on_page(work, examples.superbot_tree(1, 2), hinges="physical")


def test_an_uploaded_file_is_used_by_its_name_and_one_that_is_refused_is_told(on_page):
    async def work(desk):
        used, told = [], []
        with desk.page.client:
            place = uploader(lambda *file: used.append(file), told.append, "data sheet")
        assert desk["upload-data-sheet"] is place
        assert place.props["max-file-size"] == 16 * 2**20

        async def read():
            return b"content"

        (received,) = place._upload_handlers
        await received(SimpleNamespace(file=SimpleNamespace(name="a.json", read=read)))
        assert used == [("a.json", b"content")]
        assert desk.sent("reset") == ()
        desk.event(place, "rejected")
        assert told[0].startswith("At most 16 MB can be uploaded, and files end with .json, ")

    on_page(work)


def test_fields_and_views_follow_another_body(on_page):
    async def work(desk):
        panel = desk.page.build_panel
        desk.session.rename_module("m1", "middle")  # and its lock
        await desk.settled()
        assert desk["set-locked"].value == "middle.hinge=0"
        assert (panel.plan.visible, panel.tree.visible) == (True, False)
        desk.session.change("a tree", Organism.start("superbot"))
        await desk.settled()
        assert (panel.plan.visible, panel.tree.visible) == (False, True)
        desk.session.undo()
        await desk.settled()
        assert (panel.plan.visible, panel.tree.visible) == (True, False)

    on_page(work, examples.snake(3), hinges="physical", locked={"m1.hinge": 0.0})


# -- names for keyboards and screen readers --------------------------------------------------------

HEADINGS = {
    "build": ["Modules", "Chosen module"],
    "understand": [
        "Assembly incidence matrix", "Accessibility", "Direct transforms, dyad classes",
        "Indirect transforms",
    ],
    "move": ["Pose at the start", "Runs"],
    "see": ["Plots", "Runs"],
    "live": ["A robot of processes", "Goals", "Modules"],
}  # fmt: skip
BUTTONS = {
    "move": [
        "All to zero", "Keep this pose", "Draw a path", "Run them", "Apply", "Follow the last run",
        "Undock it", "Run", "Walk", "Reach", "Cancel",
    ],
    "live": [
        "All to zero", "As measured", "Go", "Stop", "Hold", "Relax", "Follow the gait", "Start",
        "End", "Record",
    ],
}  # fmt: skip
DIALOGS = {
    "open": (
        ["Your projects", "A file of yours", "Examples", "Walkers", "Figures of the papers"],
        ["Duplicate robot", "Delete robot", "Close"],
    ),
    "project": ([], ["Rename", "Save a copy", "Close"]),
    "export": (["Body", "Share", "Run"], ["Cancel", "Close"]),
    "help": ([], ["Guide me through the crab", "Close"]),
}
# settings without a field: sliders and a form of their own; joints that do not balance, in files
ELSEWHERE = {"rates", "events", "stuck"}


def test_panels_and_dialogs_have_headings_and_buttons_with_names(on_page):
    async def work(desk):
        page = desk.page

        def headings(elements):
            return [e.text for e in elements if e.props.get("role") == "heading"]

        def buttons(elements):
            found = (e for e in elements if isinstance(e, ui.button))
            return [e.text or e.props.get("aria-label") for e in found]

        for mode, panel in page.panels.items():
            page.show(mode)
            await turns()
            inside = [*panel.root.descendants()]
            assert headings(inside) == HEADINGS[mode]
            names = buttons(inside)
            assert all(names)
            assert [name for name in names if name in BUTTONS.get(mode, ())] == BUTTONS.get(
                mode, []
            )
        for name, (wanted, named) in DIALOGS.items():
            before = {*page.client.elements}
            desk.click(name)
            new = [e for key, e in page.client.elements.items() if key not in before]
            assert headings(new) == wanted
            assert [x for x in buttons(new) if x != "Export"] == named
        places = [
            e.props.get("aria-label")
            for e in page.client.elements.values()
            if e.tag in ("main", "section")
        ]
        assert places == ["Panel", "Stage"]

    on_page(work, examples.crab(), [record(1)])


def test_every_setting_of_a_run_has_a_field(on_page):
    async def work(desk):
        shown = {e.props.get("data-testid") for e in desk.page.client.elements.values()}
        wanted = {*type(NEW_SETTINGS).model_fields} - ELSEWHERE
        assert {name for name in wanted if f"set-{name}" not in shown} == set()

    on_page(work, examples.crab())


# -- what the views are sent -----------------------------------------------------------------------


def test_the_stage_is_framed_when_a_page_opens_and_is_empty_without_a_body(on_page):
    async def work(desk):
        def last(method):
            return json.loads(desk.sent(method)[0])

        first = json.loads(next(args[0] for name, args in desk.told if name == "set_state"))
        assert first["rest"] == {"fit": True}
        assert [len(piece["new"]) for piece in first["lists"]["modules"]] == [2]
        desk.session.dock("backbone", "m1", 3)
        assert last("set_state")["rest"] == {"fit": False}
        assert last("set_state")["lists"]["modules"][0] == {"old": [0, 2]}
        assert last("set_plan")["rest"] == {"hidden": 0}
        desk.session.change("nothing", None)
        for method, rest in (("set_state", {"fit": False}), ("set_plan", {"hidden": 0})):
            assert last(method)["rest"] == rest
            assert not any(last(method)["lists"].values())
        assert last("set_tree")["rest"] == {"kind": ""}
        desk.session.set_pose(x=1.0)  # of no body
        assert desk.sent("set_poses") is None

    on_page(work, examples.snake(2))


def test_a_module_that_is_carried_is_sent_with_its_ports_and_where_they_fit(on_page):
    async def work(desk):
        desk.event(desk.page.stage, "carry", {"module": "m2", "step": 1})
        (sent,) = desk.sent("set_carry")
        body = desk.session.organism
        sites = [*edits.moves(body, "m2", 1)]
        assert (sent["module"], sent["names"]) == ("m2", body.subtree("m2"))
        keys = ("module", "port", "child_port", "turn", "why")
        assert [tuple(site[key] for key in keys) for site in sent["sites"]] == [*map(tuple, sites)]
        assert [*sent["ports"]] == [*body.kind("m2").docks]
        model = desk.session.model()
        for port, found in sent["ports"].items():
            assert found == view_data.port_place(body, model, "m2", port)
        desk.event(desk.page.stage, "carry", {"module": "m0", "step": 0})
        assert desk.notes[-1].startswith("'m0' is the base")

    on_page(work, examples.crab())


def test_a_body_whose_settings_do_not_fit_is_drawn_on_a_fixed_base(on_page):
    async def work(desk):
        drawn = len(desk.told)
        desk.session.edit_settings(base="nonsense", hinges="physical")
        sent = [json.loads(args[0]) for name, args in desk.told[drawn:] if name == "set_state"]
        assert len(sent) == 1
        await desk.settled()
        desk.session.set_pose(**{"m1.hinge": 0.3})
        model = desk.session.organism.model("physical")
        q = desk.session.configuration(model)
        assert desk.sent("set_poses")[0] == view_data.poses(model, q)
        assert desk.sent("set_poses")[1] == q.tolist()

    on_page(work, examples.crab())


@pytest.mark.parametrize(
    ("move", "locked", "words"),
    [
        (1, 1, "1 joint moves, 1 is locked"),
        (2, 0, "2 joints move, 0 are locked"),
        (0, 2, "0 joints move, 2 are locked"),
    ],
)
def test_joints_are_counted_in_words(move, locked, words):
    joints: Any = SimpleNamespace(joint_names=range(move), locked=range(locked))
    assert moving(joints) == words


# -- looks and first values ------------------------------------------------------------------------


def all_open(desk):
    """Every panel filled and every dialog open, with three runs and a removed one."""
    page, opened = desk.page, {}
    usual = page.dialog

    def dialog(label, width, after=None):
        opened[label] = width
        return usual(label, width, after)

    async def computed(*arguments, **options):
        raise JobCanceled

    page.dialog, page.figures.run = dialog, computed
    for mode in page.panels:
        page.show(mode)
    names = "open", "project", "export", "help", "own-module", "delete-runs"
    for name in (*names, "preset-giusti2015-fig7"):
        desk.click(name)
    desk.event(desk.items("Rename…")[-1])
    return opened


FOUR_RUNS = [record(1), record(2), record(3), record(4, removed=True)]
EXPLAINED = {  # what the notes of panels and dialogs begin with
    "R over a free place turns the new module", "Or in the 3D view: drag a body",
    "Pose the body, keep the pose at a time", "Numbers of all 3 modules; choose a module",
    "Removed; click to bring back:", "Start switches on one process for each module.",
    "Click a module to choose it, with Shift several.", "A project, an organism, URDF or CoBRA;",
    "On the ground, with a gait tuned for the body;", "Choose a datasheet: a JSON or TOML file",
    "Click a cell of the plan to place the first module",
}  # fmt: skip
STEPS = {  # of the arrows of number fields
    1: {"live-period", "set-delay", "set-seed"},
    0.5: {"live-seconds", "set-ramp"},
    0.1: {
        "keyframe-time", "set-ground_friction", "set-move_time", "set-amplitude", "set-frequency",
        "set-settling_time", "set-drive_friction",
    },
    0.05: {"live-loss", "set-loss", "set-masses"},
    0.01: {"set-noise_tau"},
    0.001: {
        "live-noise_q", "live-noise_v", "set-noise_q", "set-noise_v", "set-sample_time",
        "set-torque_delay",
    },
}  # fmt: skip


def test_fields_of_panels_and_dialogs_look_alike_and_have_steps_that_fit(on_page):
    async def work(desk):
        all_open(desk)
        elements = [*desk.page.client.elements.values()]
        steps: dict[Any, set[str]] = {}
        for field in elements:
            if isinstance(field, ui.number | ui.select | ui.input | ui.textarea):
                wanted = {"dense", "outlined"}
                if isinstance(field, ui.select):
                    wanted |= {"options-dense"}
                assert wanted <= {*field.props}, field.props
                if field.props.get("step") is not None:
                    steps.setdefault(field.props["step"], set()).add(field.props["data-testid"])
        assert steps == STEPS
        assert (desk["keyframe-time"].props["min"], desk["live-seconds"].value) == (0, 2)

    on_page(work, examples.snake(3), FOUR_RUNS)


def test_widths_of_panels_and_dialogs_are_on_a_grid_of_ten_pixels(on_page):
    async def work(desk):
        widths, shown = all_open(desk), PRESETS["giusti2015-fig7"]
        assert {*widths} == {
            "Open", "Name of the project", "Export and share", "Help", "Your own module",
            "Delete removed runs", "Name of run 1", f"{shown.source}: {shown.title}",
        }  # fmt: skip
        assert {*page_module.WIDTHS_PX} == {*desk.page.panels}
        assert {width % 10 for width in (*widths.values(), *page_module.WIDTHS_PX.values())} == {0}

    on_page(work, examples.snake(3), FOUR_RUNS)


def test_panels_and_dialogs_explain_themselves(on_page):
    async def work(desk):
        all_open(desk)
        elements = [*desk.page.client.elements.values()]
        texts = [e.text for e in elements if isinstance(e, ui.label)]
        assert {x for x in EXPLAINED if not any(text.startswith(x) for text in texts)} == set()
        assert str(desk.page.studio.folder.path) in texts  # where projects are kept
        rows = {e.text for e in elements if isinstance(e, ui.label) and "strong" in e.classes}
        named = [e.props["aria-label"] for e in elements if isinstance(e, ui.button) and
                 e.text == "Export"]  # fmt: skip
        assert {f"Export {row}" for row in rows} == {*named}

    on_page(work, examples.snake(3), FOUR_RUNS)


def test_what_scrolls_can_be_reached_by_keys_and_has_a_name(on_page):
    async def work(desk):
        elements = desk.page.client.elements.values()
        named = [e.props["aria-label"] for e in elements if "tabindex" in e.props]
        assert {"Matrices and equations", "Plots", "Settings", "Live robot"} <= {*named}

    on_page(work, examples.snake(3))


def test_bars_of_progress_are_empty_until_there_is_some_and_have_no_number(on_page):
    async def work(desk):
        all_open(desk)
        bars = [e for e in desk.page.client.elements.values() if isinstance(e, ui.linear_progress)]
        assert [bar.value for bar in bars] == [0.0] * 4
        assert not any(e.default_slot.children for e in bars)

    on_page(work, examples.snake(3), FOUR_RUNS)


def test_kinds_of_modules_have_the_color_and_symbol_of_the_stage(on_page):
    async def work(desk):
        for name in ("backbone", "scout", "superbot"):
            kind = catalog[name]
            swatch, label = desk[f"kind-{name}"].default_slot.children
            assert swatch.style["background"] == view_data.main_color(kind)
            assert (swatch.text, label.text) == (kind.symbol, view_data.label(kind))
            assert desk[f"kind-{name}"].props["title"] == kind.title
        with desk.page.client:
            place = uploader(print, print, "file")
        assert place.props["auto-upload"] is True

    on_page(work, examples.snake(3))


def test_tables_and_formulas_keep_their_marks_and_nothing_is_chosen_at_first(on_page):
    """A sanitizer of the browser would take MathML and the names of modules from HTML of ours."""

    async def work(desk):
        all_open(desk)
        for part in ("joints", "dh", "lagrange", "equations", "matrices"):
            desk.click(f"part-{part}")
            elements = [*desk.page.client.elements.values()]
            shown = [e for e in elements if isinstance(e, ui.html)]
            assert len(shown) >= 4
            assert not any(e.props["sanitize"] for e in shown)
        names = ("walker-", "preset-", "restore-")
        chips = [e for e in elements if str(e.props.get("data-testid")).startswith(names)]
        chips = [e for e in chips if "chip" in e.classes]
        assert {e.props["data-testid"].split("-")[0] + "-" for e in chips} == {*names}
        assert not any("on" in e.classes for e in chips)

    on_page(work, examples.snake(3), FOUR_RUNS, hinges="physical")


def test_a_change_does_not_move_the_camera_and_the_first_look_does(on_page):
    async def work(desk):
        sent = [json.loads(args[0])["rest"] for name, args in desk.told if name == "set_state"]
        assert [each["fit"] for each in sent] == [True]
        desk.session.dock("backbone", "m2", 3)
        desk.page.choose("scout")
        sent = [json.loads(args[0])["rest"] for name, args in desk.told if name == "set_state"]
        assert [each["fit"] for each in sent[1:]] == [False, False]

    on_page(work, examples.snake(3))


def test_symbols_of_lagranges_equations_are_explained(on_page):
    async def work(desk):
        desk.page.show("understand")
        desk.click("part-lagrange")
        session = desk.session
        found = lagrange.printed(session.body(), session.model())
        texts = desk.texts(desk.page.panels["understand"].root)
        assert {found.symbols, *found.lines} <= {*texts}
        assert texts[-1].startswith("A run without controller has the solution")

    on_page(work, examples.crane(), hinges="physical", controller="none", motion="none")


def test_the_list_of_runs_under_move_follows_them_and_its_process_is_prepared(on_page):
    async def work(desk):
        page, ready = desk.page, []
        desk.session.runner.worker.prepare = lambda: ready.append(page.mode)
        page.show("move")
        assert ready == ["move"]
        box = page.move_panel.list._box

        def marked():
            return [
                e.props["data-testid"]
                for e in box.descendants()
                if "run" in e.classes and "on" in e.classes
            ]

        assert marked() == []
        page.show_run(2)
        assert marked() == ["run-2"]
        desk.session.edit_run(2, removed=True)
        await desk.settled()
        assert desk.texts(box) == [
            "Runs", "1: a fall, 0.1 s", "Removed; click to bring back:", "2: a fall, 0.1 s"
        ]  # fmt: skip

    on_page(work, examples.snake(3), [record(1), record(2)])


def test_runs_whose_files_are_gone_cannot_be_compared_and_say_so(on_page):
    async def work(desk):
        desk.page.show("see")
        desk.page.show_run(1, 2)
        texts = desk.texts(desk.page.panels["see"].comparison._box)
        assert texts == ["Run 1 beside run 2", "the files of run 1 are gone; run it again"]

    on_page(work, examples.snake(3), [record(1), record(2)])


def test_examples_and_projects_are_shown_by_pictures_that_load_when_they_are_seen(on_page):
    async def work(desk):
        desk.session.save()
        desk.click("open")
        entry = desk.page.studio.folder.entries()[0]
        for name, source in (
            ("example-crab", "/api/examples/crab.png"),
            ("open-robot", f"/api/projects/robot.png?{entry.changed}"),
        ):
            picture = desk[name].default_slot.children[0]
            told = {key: picture.props[key] for key in ("src", "alt", "loading")}
            assert told == {"src": source, "alt": "", "loading": "lazy"}

    on_page(work, examples.snake(2))


def test_runs_are_ordered_as_it_is_chosen_from_three_on(on_page):
    async def work(desk):
        panel = desk.page.move_panel

        def rows():
            found = (e for e in panel.list._box.descendants() if "run" in e.classes)
            return [e.props["data-testid"] for e in found]

        desk.page.show("move")
        orders = [e for e in panel.list._box.descendants() if isinstance(e, ui.select)]
        assert rows() == ["run-3", "run-2", "run-1"]
        with desk.page.client:
            orders[0].value = "seconds"
        assert rows() == ["run-1", "run-3", "run-2"]
        desk.session.edit_run(3, removed=True)
        await desk.settled()
        assert not [e for e in panel.list._box.descendants() if isinstance(e, ui.select)]
        assert rows() == ["run-1", "run-2"]  # still the longest first

    runs = [record(1, seconds=9.0), record(2, seconds=1.0), record(3, seconds=3.0)]
    on_page(work, examples.snake(3), runs)


def test_errors_stay_longer_than_a_glance_in_several_lines_and_can_be_closed(on_page, monkeypatch):
    async def work(desk):
        shown = []
        monkeypatch.setattr(ui, "notify", lambda text, **look: shown.append(look))
        desk.page.show_error("no room")
        page_module.unforeseen(ValueError("x"))
        assert [look["timeout"] for look in shown] == [9000, 12000]  # [ms]
        for look in shown:
            assert (look["multi_line"], look["close_button"]) == (True, "OK")

    on_page(work)


def test_the_frame_of_a_page_has_a_logo_a_link_to_the_panel_and_a_border_to_drag(on_page):
    async def work(desk):
        page = desk.page
        elements = [*page.client.elements.values()]
        logo = next(e for e in elements if isinstance(e, ui.html) and "<svg" in e.content)
        assert logo.parent_slot.parent.classes[0] == "brand"
        assert [e.text for e in elements if isinstance(e, ui.link)] == ["Skip to the panel"]
        assert all("skip" in e.classes for e in elements if isinstance(e, ui.link))
        assert sum(isinstance(e, view.Divider) for e in elements) == 1
        timer = page.panels["live"].timer
        assert (timer.active, timer.interval) == (
            False,
            1 / 30,
        )  # until there is a robot
        assert PANEL_DELAY_S <= 0.1  # a drag is not followed later than eyes notice
        for mode in page.panels:
            page.show(mode)
            assert page.stage.props["mode"] == mode
            marked = [
                m for m, tab in page.bar.modes.items() if tab.props["aria-selected"] == "true"
            ]
            assert marked == [mode]
            inner = [e for e in page.panels[mode].root.descendants() if "scroll" in e.classes]
            padding = page.panels[mode].root.style.get("padding")
            assert padding == ("0" if inner or mode == "build" else None)
        with page.client:
            bar, tour = Bar(page), Tour(page)
        assert not tour.root.visible  # until it is started
        assert (bar.undo.enabled, bar.redo.enabled) == (False, False)  # nothing is done yet

    on_page(work, examples.snake(2))


def test_another_kind_shows_where_it_could_dock(on_page):
    async def work(desk):
        def count(method):
            return sum(name == method for name, _ in desk.told)

        drawn, shown = count("set_state"), count("set_palette")
        desk.page.choose("superbot")
        assert (count("set_state"), count("set_palette")) == (drawn + 1, shown + 2)
        kind = view_data.kind_data(catalog["superbot"])
        assert desk.sent("set_palette") == (kind,)

    on_page(work, examples.snake(2))


def test_a_keyframe_is_chosen_by_a_click_and_not_by_keeping_it(on_page):
    async def work(desk):
        desk.page.show("move")
        assert desk.all("keyframe-1")
        assert not desk.all("keyframe-remove")
        desk.click("keyframe-1")
        assert "on" in desk["keyframe-1"].classes
        assert desk.all("keyframe-remove")
        desk["keyframe-time"].value = 1.0
        desk.click("keyframe-keep")
        await desk.settled()
        assert "on" not in desk["keyframe-1"].classes
        assert desk["keyframe-time"].value == 2.0  # for the next one
        desk.session.keep_keyframe(3.0)  # in another tab
        await desk.settled()
        assert desk["keyframe-time"].value == 4.0

    frames = [
        keyframes.KeyFrame(0.0, {"m1.hinge": 0.0}),
        keyframes.KeyFrame(1.0, {"m1.hinge": 0.5}),
    ]
    points = keyframes.rows(frames)
    on_page(work, examples.snake(3), motion="spline", points=points)


TITLES = {
    "module-copy": "With all beyond it (Ctrl+C)", "module-paste": "With all beyond it (Ctrl+V)",
    "module-repeat": "With all beyond it (Ctrl+D)", "module-mirror": "With all beyond it (Ctrl+M)",
    "walk": "Set a free base, ground and a gait, and run it",
    "reach": "Run from all joints at zero smoothly to this pose",
    "draw-path": "Drag a body in the 3D view along the path it shall follow",
}  # fmt: skip


def test_buttons_say_what_they_do_and_those_that_remove_warn(on_page):
    async def work(desk):
        desk.page.select("m1")
        desk.page.show("move")
        await desk.settled()
        assert {name: desk[name].props["title"] for name in TITLES} == TITLES
        assert desk["run-state"].style["white-space"] == "pre-line"  # what a walk set, below
        desk.click("take-points")
        assert "no run" in desk.notes[-1]
        desk.session.save()
        desk.click("open")
        desk.click("delete-robot")
        for name in ("remove-module", "delete-robot-ok"):
            assert "danger" in desk[name].classes
        desk.click("export")
        cancel = [e for e in desk.page.client.elements.values() if isinstance(e, ui.button)]
        assert not next(e for e in reversed(cancel) if e.text == "Cancel").enabled
        with desk.page.client:
            place = uploader(print, print, "file")
        assert place.props["accept"].split(",") == [*imports.ENDINGS]

    on_page(work, examples.snake(3))


def test_what_is_marked_is_sent_to_the_browser(on_page, monkeypatch):
    async def work(desk):
        page, updated = desk.page, []
        monkeypatch.setattr(Outbox, "enqueue_update", lambda self, element: updated.append(element))
        page.show("understand")
        assert {*page.bar.modes.values(), page.stage} <= {*updated}
        for name, marked in (
            ("part-joints", page.panels["understand"].tabs),
            ("view-tree", page.build_panel.views),
        ):
            updated.clear()
            desk.click(name)
            assert {*marked.values()} <= {*updated}

    on_page(work, examples.snake(2))


def test_an_empty_project_offers_all_examples_walkers_and_figures(on_page):
    async def work(desk):
        offered = [f"example-{name}" for name in EXAMPLES]
        offered += [f"walker-{name}" for name in ZOO] + [f"preset-{name}" for name in PRESETS]
        assert {name: len(desk.all(name)) for name in offered} == dict.fromkeys(offered, 1)
        desk.click("open")
        assert {name: len(desk.all(name)) for name in offered} == dict.fromkeys(offered, 2)
        html = [e.content for e in desk.page.client.elements.values() if isinstance(e, ui.html)]
        assert "<h2>Build a modular robot</h2>" in html
        brand = next(e for e in desk.page.client.elements.values() if "brand" in e.classes)
        assert desk.texts(brand) == ["modurob studio"]
        desk.click("export")
        assert "There is no module yet: place one under Build." in desk.texts(
            desk.page.client.layout
        )
        desk.session.change("the crab", examples.crab())
        page, tour = desk.page, desk.page.tour
        tour.running = True
        tour.refresh()
        words = "Let it walk on the ground, or let a wave run through its joints"
        assert any(text.startswith(words) for text in desk.texts(tour.root))
        assert page.panels["live"].sliders.props["goals"] is True
        assert "goals" not in page.move_panel.sliders.props

    on_page(work)


def test_dialogs_say_what_is_exported_and_which_keys_there_are(on_page, monkeypatch):
    async def work(desk):
        monkeypatch.setattr(files_panel.video, "ffmpeg", lambda: None)
        desk.click("export")
        texts = desk.texts(desk.page.client.layout)
        assert {"1: a fall", "Film, MP4: pip install imageio-ffmpeg to have it."} <= {*texts}
        assert not desk.all("export-mp4")
        desk.click("help")
        html = [e.content for e in desk.page.client.elements.values() if isinstance(e, ui.html)]
        (keys,) = (content for content in html if "Ctrl+Z" in content)
        for key, what in files_panel.KEYS:
            assert f"<b>{key}</b></td>" in keys
            assert f">{what}</td>" in keys
        desk.session.save()
        desk.click("open")
        changed = desk.page.studio.folder.entries()[0].changed
        day = datetime.fromtimestamp(changed).strftime("%d %b %Y, %H:%M")
        assert desk.texts(desk["open-robot"]) == ["robot", day]
        desk.click("delete-robot")
        keep = [e for e in desk.page.client.elements.values() if isinstance(e, ui.button)]
        desk.event(next(e for e in reversed(keep) if e.text == "Keep"))
        assert desk["open-problem"].text == ""
        assert desk["delete-robot"].props["aria-label"] == "Delete robot"
        desk.session.edit_run(1, removed=True)
        desk.click("export")
        words = "There is no run yet: press Run under Move."
        assert words in desk.texts(desk.page.client.layout)

    on_page(work, examples.snake(2), [record(1)])


def test_parts_of_understand_begin_with_words(on_page):
    async def work(desk):
        panel = desk.page.panels["understand"]
        desk.page.show("understand")
        for part, words in (
            ("joints", f"{moving(desk.session.model())} (hinges: physical). Hover a row to see"),
            ("dh", "Every joint of every module, the base fixed (physical)."),
        ):
            desk.click(f"part-{part}")
            assert any(text.startswith(words) for text in desk.texts(panel.root))
        desk.click("part-equations")
        assert "Color: size of the entry in the pose of the sliders." in desk.texts(panel.root)
        html = [e.content for e in panel.root.descendants() if isinstance(e, ui.html)]
        assert html[0].startswith('<math display="block"><mi>M</mi>')
        assert not desk["cancel-formula"].visible
        for name in ("target", "gains", "pushes"):  # what may be typed
            tips = [e.text for e in desk[f"set-{name}"].descendants() if isinstance(e, ui.tooltip)]
            assert tips == [FIELDS[name].help]

    on_page(work, examples.snake(3), hinges="physical")


# -- what goes with an action ----------------------------------------------------------------------


def test_ways_to_start_are_shown_while_a_project_is_empty(on_page):
    async def work(desk):
        page, welcome = desk.page, desk.page.welcome.root
        assert not welcome.visible
        desk.session.change("nothing", None)
        await desk.settled()
        assert welcome.visible
        desk.session.undo()
        await desk.settled()
        assert not welcome.visible
        with page.client:
            other = Page(page.studio, desk.session, page.client)
            other._end()
            other.build()
        assert not other.welcome.root.visible  # at once: it loads no pictures of examples
        assert [name for name, panel in other.panels.items() if panel.root.visible] == ["build"]

    on_page(work, examples.snake(2))


def test_the_guide_begins_under_build_with_its_kind_and_ends_with_the_last_step(on_page):
    async def work(desk):
        page = desk.page
        page.show("move")
        page.tour.start()
        assert (page.mode, page.kind, desk.session.organism) == ("build", "scout", None)
        page.tour.run_started()  # before the first step
        assert page.tour.running
        asked = []
        page.tour.run_started = lambda: asked.append(page.mode)
        desk.session.change("a snake", examples.snake(2))

        async def run():
            asked.append("run")

        desk.session.runner.run = run
        page.show("move")
        desk.click("run")
        await turns()
        assert asked == ["move", "run"]

    on_page(work, examples.snake(2))


def test_the_bar_says_what_is_saved_before_the_stage_shows_a_change(on_page, monkeypatch):
    async def work(desk):
        page, told, timers = desk.page, [], []
        with page.client, monkeypatch.context() as patch:
            patch.setattr(ui, "timer", lambda *how: timers.append(how))
            bar = Bar(page)
        assert timers == [(0.25, bar.look)]  # four times a second
        page.bar.look = lambda: told.append("look")
        page.view.follow = lambda topic, fit: told.append(topic)
        page.refresh("pose")
        assert told == ["look", "pose"]
        await desk.settled()
        assert told == ["look", "pose", "look"]
        assert page.frame.style["--side"] == f"{page_module.WIDTHS_PX['build']}px"
        assert not desk["cancel"].visible  # nothing runs

    on_page(work, examples.snake(2))


def test_tips_of_undo_and_redo_are_their_names(on_page):
    async def work(desk):
        def tip(name):
            (found,) = (e for e in desk[name].descendants() if isinstance(e, ui.tooltip))
            return found.text

        desk.session.dock("backbone", "m1", 3)
        await desk.settled()
        assert (tip("undo"), tip("redo")) == ("Undo: dock m2", "Redo")
        desk.session.undo()
        await desk.settled()
        assert (tip("undo"), tip("redo")) == ("Undo", "Redo: dock m2")

    on_page(work, examples.snake(2))


def test_a_name_that_cannot_be_given_chooses_no_module(on_page):
    async def work(desk):
        page = desk.page
        page.select("m1")
        desk.event(page.build_panel.tree, "rename", {"module": "m9", "name": "tail"})
        assert "m9" in desk.notes[-1]
        assert page.chosen_modules == ["m1"]
        await desk.settled()
        assert desk.texts(page.build_panel.module_part._box)[1].startswith("1 kg, 0.1 m; ")

        def drawn():
            return sum(name == "set_state" for name, _ in desk.told)

        before = drawn()
        desk.session.dock("backbone", "m1", 3)
        await desk.settled()
        assert drawn() == before + 1  # plan and tree are where they were

    on_page(work, examples.snake(2))


def test_a_keyframe_that_is_refused_leaves_none_chosen_and_one_removed_is_gone_at_once(on_page):
    async def work(desk):
        desk.page.show("move")
        desk.click("keyframe-1")
        desk["keyframe-time"].value = -1.0
        desk.click("keyframe-keep")
        assert "must be 0 or more" in desk.notes[-1]
        assert not desk.all("keyframe-remove")
        desk.click("keyframe-1")
        desk.click("keyframe-remove")
        assert not desk.all("keyframe-1")
        assert desk.all("keyframe-0")

    frames = [keyframes.KeyFrame(time, {"m1.hinge": time}) for time in (0.0, 1.0)]
    on_page(work, examples.snake(3), motion="spline", points=keyframes.rows(frames))


def test_a_run_is_beside_another_one_only_when_one_is_shown(on_page):
    async def work(desk):
        page, panel = desk.page, desk.page.panels["see"]

        def loaded():
            return sum(name == "load_run" for name, _ in desk.told)

        assert not desk["see-other"].enabled
        desk.event(panel.plots, "panels", {"panels": [], "modules": ["m0", "m1"]})
        assert panel.traces.options == ["m0", "m1"]
        page.show_run(2)
        assert desk["see-other"].enabled
        assert desk.texts(panel.comparison._box) == []
        before = loaded()
        desk.session.edit_run(3, removed=True)  # another one
        await desk.settled()
        assert loaded() == before

    on_page(work, examples.snake(2), [record(1), record(2), record(3)])


def test_dialogs_close_when_what_they_ask_for_is_done(on_page, monkeypatch):
    monkeypatch.setattr(ui.navigate, "to", lambda address: None)

    async def work(desk):
        def last():
            return [e for e in desk.page.client.elements.values() if isinstance(e, ui.dialog)][-1]

        def press(text):
            found = [e for e in desk.page.client.elements.values() if isinstance(e, ui.button)]
            desk.event([e for e in found if e.text == text][-1])
            return last().value

        desk.event(desk.items("Rename…")[-1])
        desk["run-name"].value = ""
        assert press("Rename")  # it still asks
        desk["run-name"].value = "slow"
        assert not press("Rename")
        desk.page.studio.new("crab", projects.Project())
        desk.click("project")
        desk["new-name"].value = "crab"
        assert press("Save a copy")
        assert desk["name-problem"].text.startswith("there is a project 'crab' already")
        desk["new-name"].value = "lobster"
        assert not press("Rename")
        desk.session.edit_run(1, removed=True)
        await desk.settled()
        assert desk.page.bar.name.text == "lobster"
        desk.click("delete-runs")
        assert not press("Delete")
        desk.click("help")
        assert not press("Guide me through the crab")

    on_page(work, examples.snake(2), [record(1)])


def test_a_figure_that_fails_says_why_and_one_that_is_there_has_no_progress(on_page, monkeypatch):
    ends: list[Any] = [StateError("no room"), (b"a picture", [])]

    async def computed(worker, task, *arguments, progress):
        end = ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return end

    monkeypatch.setattr(Worker, "run", computed)
    name = next(iter(PRESETS))

    async def work(desk):
        for words, computing in (("no room", True), ("", False)):
            desk.click(f"preset-{name}")
            await turns()
            bars = [e for e in desk.page.client.elements.values() if "aria-label" in e.props]
            bars = [e for e in bars if e.props["aria-label"] == "Progress of the figure"]
            assert desk["preset-state"].text == words
            assert bars[-1].visible is computing

    on_page(work)


def test_the_picture_of_the_view_is_a_file_as_the_browser_has_drawn_it(on_page, monkeypatch):
    files = []
    monkeypatch.setattr(ui.download, "content", lambda *args: files.append(args))

    async def work(desk):
        async def drawn(method, **limit):
            assert method == "png"
            return "data:image/png;base64,cGljdHVyZQ=="  # RFC 4648 of the word "picture"

        monkeypatch.setattr(desk.page.stage, "run_method", drawn)
        monkeypatch.setattr(files_panel.video, "ffmpeg", lambda: None)
        desk.click("export")
        desk.click("export-png")
        await turns()
        assert files == [(b"picture", "robot.png")]
        assert desk.all("export-gif")  # which needs no program

    on_page(work, examples.snake(2), [record(1)])


def test_a_setting_that_is_mended_is_no_problem_any_more(on_page):
    async def work(desk):
        fields = desk.page.move_panel.fields
        for wrong, right in ((-3, 7), (-2, 7)):  # the second time it is the setting already
            with desk.page.client:
                desk["set-duration"].value = wrong
                assert fields.problem.startswith("duration: ")
                desk["set-duration"].value = right
            assert (fields.problem, desk["set-duration"].error) == ("", None)

    on_page(work, examples.snake(2))


def test_move_opens_with_the_numbers_and_events_of_the_module_chosen_before(on_page):
    async def work(desk):
        page = desk.page
        page.select("m1")
        await desk.settled()
        page.show("move")
        assert desk["parameter-mass"].value == catalog["scout"].mass
        fields = [e for e in page.move_panel.events._box.descendants() if hasattr(e, "value")]
        assert fields[0].value == "m1"

    on_page(work, Organism.start("backbone").dock("m0", 3, "m1", 2, kind="scout").dock(
        "m0", 4, "m2", 2, kind="backbone"))  # fmt: skip


def test_modules_dock_during_a_run_at_the_first_port_that_no_event_takes_there(on_page):
    async def work(desk):
        page, session = desk.page, desk.session
        page.show("move")
        for module in ("m1", "m2"):
            page.select(module)
            await desk.settled()
            desk.click("event-dock")
            await desk.settled()
        free = {module: session.organism.free_ports(module)[0] for module in ("m1", "m2")}
        assert {event.module: event.port for event in session.settings.events} == free

    snake = examples.snake(4)
    assert snake.free_ports("m1")[0] == snake.free_ports("m2")[0]
    on_page(work, snake)


def test_an_entry_that_is_asked_for_meanwhile_takes_the_place_of_the_one_before(
    on_page, monkeypatch
):
    async def work(desk):
        panel, ends, canceled = desk.page.panels["understand"], [], []
        asked = []

        async def answer(function, request):
            asked.append((request.symbols, request.entry, request.body.organism))
            ends.append(asyncio.get_running_loop().create_future())
            return await ends[-1]

        def found(name):
            return {"mathml": f"<math>{name}</math>", "symbols": [], "terms": 1, "shown": 1}

        monkeypatch.setattr(panel.worker, "run", answer)
        monkeypatch.setattr(panel.worker, "cancel", lambda: canceled.append(panel.entry))
        monkeypatch.setattr(Worker, "busy", property(lambda self: bool(ends) and len(ends) < 3))
        desk.page.show("understand")
        desk.click("part-equations")
        await turns()
        assert desk["formula-M"].props["aria-pressed"] == "true"
        panel._ask("M[1,2]")
        await turns()
        body = desk.session.organism
        assert asked == [("all", "M[1,1]", body), ("all", "M[1,2]", body)]
        assert canceled == ["M[1,1]", "M[1,2]"]  # whatever was computed before each
        ends[0].set_exception(JobCanceled())
        await turns()
        assert (panel.words.text, panel.stop.visible) == ("computing…", True)
        panel.entry = "M[2,2]"
        ends[1].set_result(found("M[1,2]"))
        await turns()
        assert panel.formula.content == ""  # it is asked for no more
        panel._ask("M[2,2]")
        await turns()
        formula = panel.formula
        desk.click("part-joints")
        ends[2].set_result(found("M[2,2]"))
        await turns()
        assert formula.content == ""

    on_page(work, examples.snake(3), hinges="physical")


def test_a_pose_redraws_what_depends_on_it_only(on_page):
    async def work(desk):
        desk.page.show("understand")
        desk.click("part-joints")
        drawn = desk["joints"]
        desk.session.set_pose(**{"m1.hinge": 0.2})
        await desk.settled()
        assert desk["joints"] is drawn

    on_page(work, examples.snake(3), hinges="physical")


def test_a_kind_of_another_tab_and_ghosts_of_another_body_are_sent(on_page):
    async def work(desk):
        def count(method):
            return sum(name == method for name, _ in desk.told)

        shown = count("set_palette")
        desk.session.add_kind(catalog["scout"].model_copy(update={"name": "heavy"}))
        assert count("set_palette") == shown + 2  # stage and plan
        (ghosts,) = desk.sent("set_keyframes")
        desk.session.change("nothing", None)
        assert desk.sent("set_keyframes") == ([],)
        desk.session.undo()
        assert desk.sent("set_keyframes") == (ghosts,)
        desk.session.edit_settings(motion="hold")
        assert desk.sent("set_keyframes") == ([],)

    frames = [keyframes.KeyFrame(time, {"m1.hinge": time}) for time in (0.0, 1.0)]
    on_page(work, examples.snake(3), motion="spline", points=keyframes.rows(frames))


def test_a_page_that_comes_back_to_a_run_prepares_for_the_next_one(on_page):
    async def work(desk):
        runner, ready = desk.session.runner, []
        runner.worker.prepare = lambda: ready.append(runner.busy)
        runner.progress = 0.5
        with desk.page.client:
            other = Page(desk.page.studio, desk.session, desk.page.client)
            other.build()
            assert ready == []
            other.start()
        other._end()
        runner.progress = None
        assert (other.mode, ready) == ("move", [True])

    on_page(work, examples.snake(2))


def test_examples_walkers_and_books_open_as_projects_in_this_tab(on_page, monkeypatch):
    went = []
    monkeypatch.setattr(ui.navigate, "to", went.append)

    async def computed(worker, task, *arguments, progress):
        raise JobCanceled

    monkeypatch.setattr(Worker, "run", computed)

    async def work(desk):
        studio, figure = desk.page.studio, "giusti2015-fig7"
        for name, address in (
            ("example-crab", "crab"),
            ("walker-crab", "crab%20walks"),
            ("reference-crane", "crane"),
            ("preset-open", figure),
        ):
            if name == "reference-crane":
                desk.page.show("understand")
                desk.click("part-lagrange")
            if name == "preset-open":
                desk.click(f"preset-{figure}")
            desk.click(name)
            assert went[-1] == f"/project/{address}"
        assert len(went) == 4
        assert studio.session("crab").organism == examples.crab()
        monkeypatch.setattr(studio, "new_from_walker", lambda name: studio.session("no such"))
        desk.click("walker-crab")
        assert len(went) == 4  # there is none to show
        assert "there is no project 'no such'" in desk.notes[-1].lower()

    on_page(work, examples.snake(2))


def test_runs_have_the_settings_that_tell_them_apart_and_are_compared_in_a_table(
    on_page, monkeypatch
):
    monkeypatch.setattr(
        runs_panel.run_table,
        "comparison",
        lambda folder, one, other: f"{one.number}-{other.number}",
    )

    async def work(desk):
        panel = desk.page.panels["see"]
        assert desk.texts(desk["tags-2"].parent_slot.parent)[1:] == ["frequency 2"]
        desk.page.show_run(1, 2)
        assert desk["comparison"].content == "1-2"
        assert desk.texts(panel.comparison._box) == ["Run 1 beside run 2"]

    runs = [record(k, settings=NEW_SETTINGS.edited(frequency=float(k))) for k in (1, 2)]
    on_page(work, examples.snake(2), runs)


def test_a_figure_is_made_of_the_results_of_its_preset_with_its_findings(monkeypatch):
    told: list[float] = []
    chosen = SimpleNamespace(
        run=lambda progress: progress(0.5) or ["result"],
        judge=lambda results: [PresetFinding("found", results[0])],
    )
    monkeypatch.setattr(papers_panel, "preset", {"fig": chosen}.get)
    monkeypatch.setattr(papers_panel, "image", lambda *made: made)
    picture, findings = compute("fig", told.append)
    assert findings == [PresetFinding("found", "result")]
    assert (picture, told) == ((chosen, ["result"], findings), [0.5])


def test_what_understand_cannot_show_is_told_there(on_page):
    async def work(desk):
        desk.page.show("understand")
        desk.click("part-joints")
        desk.session.edit_settings(base="nonsense")
        await desk.settled()
        (alert,) = [
            e
            for e in desk.page.panels["understand"].root.descendants()
            if e.props.get("role") == "alert"
        ]
        assert "nonsense" in alert.text

    on_page(work, examples.snake(2))


def test_a_leg_is_mirrored_and_chosen(on_page):
    async def work(desk):
        desk.page.select("m2")
        desk.event(desk.page.stage, "command", "mirror")
        assert desk.session.organism == examples.crab()
        assert desk.page.selected == "m4"
        assert desk.session.undo() == "mirror m2"

    on_page(work, examples.crab().undock("m4")[0])


def test_a_module_without_joints_is_pushed_as_a_whole(on_page, monkeypatch):
    async def work(desk, panel, robot):
        desk.click("live-m1")
        await desk.settled()
        assert not desk.all("live-drives")
        assert [*desk["live-joint"].options] == ["x", "y", "z"]
        assert desk["live-joint"].value == "x"

    body = Organism.start("chen_revolute", "m0").dock("m0", 1, "m1", 1, kind="chen_link")
    live_page(on_page, monkeypatch, work, body)


def test_a_module_that_cannot_dock_is_refused_and_is_not_in_the_palette(on_page):
    async def work(desk):
        page, session = desk.page, desk.session
        data = catalog["giusti_a"].model_dump()
        mount = {**data["ports"][0], "connector": "virtual-mount"}
        closed = ModuleType(**{**data, "name": "closed", "ports": [mount]})
        page.drop("closed.json", json.dumps(closed.document()).encode())
        assert desk.notes[-1].startswith("'closed' has no port to dock with")
        assert (page.kind, session.project.kinds) == ("backbone", {})
        session.project.kinds["closed"] = closed  # of a file
        session.change("closed", Organism.start(closed))
        await desk.settled()
        assert "closed" not in session.kinds()
        other = Page(page.studio, session, page.client)
        other._end()
        assert other.kind == "backbone"

    on_page(work, examples.snake(2))


def test_texts_of_settings_have_a_row_of_their_own_and_long_ones_grow(on_page):
    async def work(desk):
        for name, grows in (("points", True), ("pushes", True), ("target", False)):
            assert ("autogrow" in desk[f"set-{name}"].props) is grows
            assert desk[f"set-{name}"].style["grid-column"] == "1 / -1"

    on_page(work, examples.snake(2))
