"""Sessions: edits, undo, autosave; no browser needed."""

import json
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from modurob import (
    DockingError,
    FileError,
    ModuleType,
    Organism,
    StateError,
    UnknownNameError,
    WriteError,
    catalog,
    examples,
    load,
)
from modurob.organism.examples import _from_rows
from modurob.scenario.gait_files import gait_fields
from modurob.scenario.settings import RunRecord
from modurob.studio import edits
from modurob.studio import project as project_module
from modurob.studio import saver as saver_module
from modurob.studio import session as session_module
from modurob.studio import studio as studio_module
from modurob.studio.folder import Folder
from modurob.studio.guard import LARGEST_BODY
from modurob.studio.project import NEW_SETTINGS, Project, to_bytes
from modurob.studio.saver import Saver
from modurob.studio.session import Session
from modurob.studio.studio import Studio
from modurob.walking.zoo import gait_file

CRAB = [("m0", 3, 4), ("m1", 2, 5), ("m2", 3, 2), ("m1", 5, 2), ("m4", 3, 5)]


@pytest.fixture
def session(tmp_path):
    return Session(Folder(tmp_path), "crab", Project())


def build_crab(session):
    session.dock("scout")
    for parent, port, child_port in CRAB:
        session.dock("scout", parent, port, child_port)


def test_docking_step_by_step_gives_the_crab(session):
    build_crab(session)
    assert session.organism == examples.crab()
    assert session.organism.modules == examples.crab().modules


def test_a_crab_walks_with_the_gait_that_was_tuned_for_it_unless_another_is_chosen(session):
    build_crab(session)
    new = session.settings
    session.prepare_walk()
    tuned = session.settings
    assert (tuned.base, tuned.ground, tuned.hinges, tuned.motion) == (
        "free",
        True,
        "physical",
        "sine",
    )
    assert tuned.gait == gait_fields(gait_file("crab"))["gait"]
    session.edit_settings(motion="sine", gait={}, base=new.base)
    session.prepare_walk()
    assert (session.settings.base, session.settings.motion) == ("free", "sine")
    assert session.settings.gait == {}
    session.remove("m5")  # no crab any more: the gait of a new project
    session.edit_settings(motion=new.motion)
    session.prepare_walk()
    assert (session.settings.motion, session.settings.gait) == (new.motion, {})


def test_a_run_reaches_the_pose_of_the_sliders_from_zero(session):
    build_crab(session)
    with pytest.raises(StateError, match="all joints are at zero"):
        session.reach_pose()
    joint = session.model().joint_names[-1]
    session.set_pose(**{joint: 0.4})
    session.reach_pose()
    assert session.project.pose == {}
    reference = session.scenario().reference(session.model())
    duration = session.settings.duration
    assert np.allclose([reference(t).q[-1] for t in (0.0, duration)], [0.0, 0.4])


def test_undo_and_redo_walk_through_all_steps_and_a_new_edit_forgets_the_future(session):
    session.dock("backbone")
    bodies = [None, session.organism]
    for k in range(25):
        session.dock("backbone", f"m{k}", 3)
        bodies.append(session.organism)
    for body in reversed(bodies[:-1]):
        assert session.undo()
        assert session.organism is body
    assert session.undo() is None
    for body in bodies[1:]:
        assert session.redo()
        assert session.organism is body
    assert session.redo() is None
    session.undo()
    session.remove("m24")
    assert session.redo() is None


def test_an_edit_that_fails_leaves_everything_as_it_was(session):
    build_crab(session)
    before, steps = session.organism, len(session.project.history.past)
    with pytest.raises(DockingError, match="already holds"):
        session.dock("scout", "m0", 3)
    with pytest.raises(DockingError, match="base"):
        session.remove("m0")
    with pytest.raises(StateError, match="no module kind 'gripper'"):
        session.dock("gripper", "m0", 2)
    assert session.organism is before
    assert len(session.project.history.past) == steps


def test_a_project_is_the_same_after_it_was_read_again(session, tmp_path):
    build_crab(session)
    session.set_pose(**{"m1.hinge": 0.25})
    session.edit_settings(duration=3.0, motion="sine", events=[
        {"what": "undock", "time": 1.0, "module": "m5"}
    ])  # fmt: skip
    own = catalog["backbone"].with_parameters(mass=2.0).model_copy(update={"name": "heavy"})
    session.add_kind(own)
    session.undo()
    session.save()
    again = Studio(Folder(tmp_path)).session("crab")
    assert again.organism == session.organism
    assert again.organism.modules == session.organism.modules
    assert again.settings == session.settings == NEW_SETTINGS
    assert again.project.pose == {"m1.hinge": 0.25}
    assert again.kinds()["heavy"] == own
    assert again.redo() == "set 3 fields"
    assert (again.settings.duration, again.settings.motion) == (3.0, "sine")
    assert [again.undo() for _ in range(3)] == ["set 3 fields", "pose of m1.hinge", "dock m5"]
    assert again.project.pose == {}
    for _ in range(5):
        again.undo()
    assert again.organism is None


def test_a_step_with_long_words_leaves_a_project_that_can_be_read_again(session, tmp_path):
    """All numbers of a module with the longest name at once have a label of 201 letters."""
    numbers = {
        "mass": 1.5, "size": 0.11, "inertia": 1e-3, "viscous": 0.1, "coulomb": 0.1,
        "rotor_inertia": 1e-4, "gear_ratio": 2, "stiffness": 5, "damping": 0.1, "max_effort": 3,
        "max_velocity": 3, "max_force": 5, "max_torque": 5,
    }  # fmt: skip
    session.dock("scout")
    session.rename_module("m0", "n" * 64)
    session.edit_parameters(["n" * 64], **numbers)
    session.save()
    again = Studio(Folder(tmp_path)).session("crab")
    label = f"{', '.join(numbers)} of {'n' * 64}"
    assert (len(label), again.undo()) == (201, label[:200])
    path = session.folder.file("crab")
    path.write_bytes(path.read_bytes().replace(b'"place m0"', b'"' + b"x" * 201 + b'"'))
    with pytest.raises(FileError, match="label: string should have at most 200 characters"):
        Studio(Folder(tmp_path)).session("crab")


def test_a_project_file_is_text_as_it_is_typed_and_steps_are_values(session):
    session.dock("scout")
    session.change("größer", None)
    text = to_bytes(session.project)
    assert '"label": "größer"'.encode() in text
    known = json.loads(text)["past"][-1]["settings"]
    assert {*known} == NEW_SETTINGS.model_fields_set  # what is as usual is left out
    step = session.project.history.past[-1]
    with pytest.raises(AttributeError):
        step.label = "another"
    assert len({step, replace(step)}) == 2


def test_what_is_no_number_is_not_written(session):
    session.dock("scout")
    for broken in (float("nan"), float("inf")):
        session.project.pose["m0.hinge"] = broken
        with pytest.raises(ValueError, match="Out of range float values"):
            to_bytes(session.project)
        session.project.history.remember("pose", dict(session.project.pose))
        session.project.pose.clear()
        with pytest.raises(ValueError, match="Out of range float values"):
            to_bytes(session.project)
        session.project.history.past.pop()


def test_a_new_project_has_settings_with_which_a_wave_can_be_seen():
    """Documented in the guide of the studio, or chosen so that a run is quick."""
    changed = {name: getattr(NEW_SETTINGS, name) for name in NEW_SETTINGS.model_fields_set}
    assert changed == {
        "motion": "wave", "controller": "ComputedTorque", "settling_time": 0.5, "frequency": 0.5,
        "ramp": 1.0, "rtol": 1e-6, "dt": 1e-3,
    }  # fmt: skip


def test_poses_and_settings_are_taken_back_a_drag_as_one_step(session, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(session_module.time, "monotonic", lambda: now[0])
    build_crab(session)
    for k in range(1, 20):  # a slider that is dragged
        now[0] += 0.04
        session.set_pose(**{"m1.hinge": k / 100})
    now[0] += 5.0
    session.set_pose(**{"m1.hinge": 0.5})
    session.edit_settings(duration=2.0)
    session.edit_settings(duration=2.0)  # the same again is no step
    session.reset_pose()
    assert session.undo() == "all to zero"
    assert session.project.pose == {"m1.hinge": 0.5}
    assert session.undo() == "set duration"
    assert session.settings.duration == NEW_SETTINGS.duration
    assert session.undo() == "pose of m1.hinge"
    assert session.project.pose == {"m1.hinge": 0.19}
    assert session.undo() == "pose of m1.hinge"
    assert session.project.pose == {}
    assert session.undo() == "dock m5"
    for _ in range(5):
        session.redo()
    assert (session.project.pose, session.settings.duration) == ({}, 2.0)
    session.undo()
    assert session.project.pose == {"m1.hinge": 0.5}
    now[0], steps = 100.0, len(session.project.history.past)
    for pause, more in ((0.0, 1), (1.0, 1), (1.1, 2)):  # up to a second later it is the same edit
        now[0] += pause
        session.set_pose(**{"m1.hinge": 0.1 * more})
        assert len(session.project.history.past) == steps + more


def test_a_module_moves_with_all_beyond_it(session):
    build_crab(session)
    session.move("m2", "m0", 2)
    organism = session.organism
    assert organism.parent("m2") == "m0"
    assert organism.parent("m3") == "m2"
    assert len(organism) == 6
    with pytest.raises(DockingError, match="docked beyond it"):
        session.move("m1", "m5", 2)


def test_turning_goes_through_all_ways_to_dock_and_comes_back(session):
    session.dock("backbone")
    session.dock("backbone", "m0", 3)
    seen = []
    for _ in range(4):
        seen.append(session.organism.docking("m1").child_port)
        session.turn("m1")
    assert sorted(seen) == [2, 3, 4, 5]
    assert session.organism.docking("m1").child_port == seen[0]


def test_the_usual_side_keeps_the_heading_of_the_neighbor(session):
    session.dock("backbone")
    for port in catalog["backbone"].docks:
        session.dock("scout", "m0", port)
    assert {session.organism.place(name).quarter for name in session.organism.modules} == {0}


def test_sites_say_why_a_kind_cannot_dock():
    square = _from_rows("backbone", [(0, 1, 3, 4), (1, 2, 2, 5), (2, 3, 4, 3)])
    found = edits.sites(square, catalog["scout"], None, None)
    whys = {(site.module, site.port): site.why for site in found}
    assert "would take the cell" in whys["m0", 2]
    assert whys["m0", 4] == ""
    superbot = [*edits.sites(square, catalog["superbot"], None, None)]
    assert all("does not mate" in site.why for site in superbot)
    for (module, port), why in whys.items():  # what is told ahead is what happens
        if why:
            with pytest.raises(DockingError):
                edits.dock(square, module, port, catalog["scout"])
        else:
            assert len(edits.dock(square, module, port, catalog["scout"])) == 5


def test_manipulator_modules_dock_with_the_port_that_mates():
    organism = edits.dock(None, None, None, catalog["giusti_b"])
    organism = edits.dock(organism, "m0", "out", catalog["giusti_a"])
    assert organism.docking("m1").child_port == "in"


def test_parameters_are_edited_as_one_step(session):
    build_crab(session)
    session.edit_parameters(["m2", "m3"], mass=0.5)
    assert [session.organism.kind(m).mass for m in session.organism.modules] == [
        1,
        1,
        0.5,
        0.5,
        1,
        1,
    ]
    assert session.undo() == "mass of 2 modules"
    assert session.organism == examples.crab()


def test_bad_settings_name_the_field_and_change_nothing(session):
    before = session.settings
    with pytest.raises(StateError, match="duration"):
        session.edit_settings(duration=-1.0)
    with pytest.raises(StateError, match="no such field"):
        session.edit_settings(speed=1.0)
    assert session.settings is before


def test_own_modules_must_not_hide_those_of_the_catalog(session):
    with pytest.raises(StateError, match="give yours another name"):
        session.add_kind(catalog["scout"])


def test_every_change_is_told_to_all_listeners(session):
    heard = []
    stop = session.listen(heard.append)
    session.dock("backbone")
    session.set_pose(x=1.0)
    stop()
    session.undo()
    assert heard == ["body", "pose"]


def test_another_base_is_one_step_that_is_taken_back_and_done_again(session):
    """The same body in the same pose, seen from another module."""
    build_crab(session)
    session.edit_settings(hinges="physical")
    pose = {"m1.hinge": 0.3, "m2.hinge": -0.4, "m5.hinge": 0.2}
    session.set_pose(**pose)
    before, shape = session.organism, places(session)
    with pytest.raises(DockingError, match="'m0' is the base already"):
        session.rebase("m0")
    assert session.organism is before
    session.rebase("m5")
    after = session.organism
    assert (before.base, after.base) == ("m0", "m5")
    assert np.allclose(places(session), shape, atol=1e-12)
    assert session.undo() == "make m5 the base"
    assert session.organism is before
    assert np.array_equal(places(session), shape)
    assert session.redo() == "make m5 the base"
    assert session.organism is after
    assert [session.undo() for _ in range(4)] == [
        *("make m5 the base", "pose", "set hinges", "dock m5")
    ]
    assert session.organism == before.undock("m5")[0]


def places(session):
    """(modules, 4, 4) poses of the crab's modules, seen from m0."""
    model = session.model()
    T = model.forward_kinematics(session.configuration(model))
    found = T[[model.modules[f"m{k}"] for k in range(6)]]
    return np.linalg.inv(found[0]) @ found


def test_a_session_without_a_module_says_what_to_do(session):
    with pytest.raises(StateError, match="no module yet: place one in Build, or open an example"):
        session.body()


def test_the_palette_has_what_can_dock_and_the_users_own_at_its_end(session):
    own = catalog["scout"].model_copy(update={"name": "heavy"})
    session.add_kind(own)
    names = [*session.kinds()]
    assert names[:4] == ["backbone", "scout", "superbot", "superbot_light"]
    assert names[-1] == "heavy"
    assert not any(kind.virtual for kind in session.kinds().values())
    assert len(names) == len(set(names))
    assert session.kind("heavy") is own
    assert session.kind("virtual_px").virtual  # of a body that was opened
    with pytest.raises(StateError, match=r"no module kind 'gripper': kinds are .*heavy"):
        session.kind("gripper")


def test_listeners_may_leave_twice_and_while_others_are_told(session):
    heard = []

    def once(topic):
        heard.append(topic)
        leave()
        leave()

    assert not session.watched
    leave, stay = session.listen(once), session.listen(lambda topic: heard.append(f"2 {topic}"))
    assert session.watched
    session.dock("backbone")
    session.notify("run")
    assert heard == ["body", "2 body", "2 run"]
    stay()
    assert not session.watched


def test_progress_is_told_and_nothing_is_written(session):
    session.notify("run")
    assert session.saver.idle
    assert not session.folder.has("crab")


def test_what_is_written_is_the_project_at_that_moment(session):
    """The bytes are made later, in another thread: edits of the meantime are not among them."""
    kept = []
    session.saver.submit = kept.append
    session.dock("backbone")
    session.set_pose(x=1.0)
    then = to_bytes(session.project)
    make = kept[-1]
    session.dock("backbone", "m0", 3)
    session.undo()
    session.set_pose(x=2.0)
    session.add_kind(catalog["scout"].model_copy(update={"name": "heavy"}))
    session.add_run(record(1))
    assert make() == then
    assert kept[-1]() == to_bytes(session.project)


def record(number):
    return RunRecord(
        number=number, title="x", status="finished", seconds=1, took=1, settings=NEW_SETTINGS
    )


def test_runs_are_renamed_removed_and_brought_back_and_numbers_are_never_given_twice(session):
    folder = session.folder.runs("crab")
    folder.mkdir()
    for name in ("1.npz", "1.bin", "1.json", "11.npz", "2.npz"):
        (folder / name).touch()
    assert [session.next_run() for _ in range(2)] == [1, 2]
    for number in (1, 2, 11):
        session.add_run(record(number))
    session.edit_run(1, removed=True)
    assert [run.number for run in session.runs] == [2, 11]
    assert (folder / "1.npz").exists()
    session.edit_run(1, removed=False)  # it comes back, with its files
    assert [run.number for run in session.runs] == [1, 2, 11]
    session.edit_run(1, removed=True)
    session.delete_removed_runs()
    assert sorted(file.name for file in folder.iterdir()) == ["11.npz", "2.npz"]
    with pytest.raises(StateError, match="there is no run 1 in this project"):
        session.edit_run(1, removed=False)
    assert session.next_run() == 12
    session.edit_run(11, removed=True)
    assert session.next_run() == 13  # a number of a removed run stays its own
    session.edit_run(2, title="slow walk")
    assert session.runs[0].title == "slow walk"
    with pytest.raises(StateError, match="title"):
        session.edit_run(2, title="")
    session.save()
    kept = session.folder.read("crab").runs
    assert [(run.number, run.title, run.removed) for run in kept] == [
        (2, "slow walk", False),
        (11, "x", True),
    ]


def test_labels_of_steps_say_what_they_take_back(session):
    build_crab(session)
    session.remove("m4")
    session.turn("m3")
    session.move("m3", "m0", 2)
    labels = [step.label for step in session.project.history.past]
    assert labels[:2] == ["place m0", "dock m1"]
    assert labels[-3:] == ["remove 2 modules", "turn m3", "move m3"]
    session.remove("m3")
    assert session.undo() == "remove m3"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "1", None, True])
def test_a_pose_is_made_of_numbers(session, value):
    with pytest.raises(StateError, match="position of 'm1' must be a number"):
        session.set_pose(m0=1.0, m1=value)
    assert session.project.pose == {}
    session.set_pose(m0=1.0)
    session.reset_pose()
    assert session.project.pose == {}


def test_undo_with_nothing_to_undo_tells_nobody(session):
    heard = []
    session.listen(heard.append)
    assert session.undo() is None
    assert session.redo() is None
    assert heard == []


# -- the saver -------------------------------------------------------------------------------------

SOON = 5.0  # [s] that a flush may take: a saver that never answers fails its test, and no other


@pytest.fixture(autouse=True)
def limit(monkeypatch):
    monkeypatch.setattr(saver_module, "FLUSH_S", SOON)


def flushed(saver):
    """Flush, and see that nothing but the write was waited for."""
    begin = time.monotonic()
    saver.flush()
    assert time.monotonic() - begin < SOON / 2
    assert saver.idle


class Disk:
    """Writes when it is told to; a test that forgets it goes on after a while."""

    def __init__(self):
        self.gate, self.begun, self.written = threading.Event(), threading.Event(), []

    def write(self, content):
        self.begun.set()
        assert self.gate.wait(SOON)
        self.written.append(content)


def test_saver_survives_whatever_happens_when_it_writes(session):
    def fail(_):
        raise KeyError("x")

    saver = Saver(fail)
    saver.submit(lambda: b"")
    flushed(saver)
    assert "could not be written (KeyError" in saver.error
    saver._write = lambda _: None
    saver.submit(lambda: b"")
    flushed(saver)
    assert saver.error == ""


def test_saver_writes_the_last_document_and_skips_those_in_between():
    disk = Disk()
    saver = Saver(disk.write)
    for n in range(50):
        saver.submit(lambda n=n: n)
    assert not saver.idle
    writers = [each for each in threading.enumerate() if each.name == "studio-saver"]
    assert all(each.daemon for each in writers)  # a disk that hangs does not keep the program
    disk.gate.set()
    flushed(saver)
    assert disk.written[-1] == 49
    assert len(disk.written) <= 3
    assert saver.idle


def test_saver_does_not_wait_for_ever_for_a_disk_and_recovers(monkeypatch):
    monkeypatch.setattr(saver_module, "FLUSH_S", 0.05)
    disk = Disk()
    saver = Saver(disk.write)
    saver.submit(lambda: b"x")
    assert disk.begun.wait(SOON)
    saver.flush()
    assert saver.error == "not written within 0.05 s: the disk does not answer"
    assert not saver.idle
    disk.gate.set()
    monkeypatch.setattr(saver_module, "FLUSH_S", SOON)
    flushed(saver)
    assert saver.error == ""
    assert disk.written == [b"x"]


def test_saver_tries_again_only_what_failed():
    disk = Disk()
    disk.gate.set()
    saver = Saver(disk.write)
    saver.retry()
    assert saver.idle
    saver.submit(lambda: b"x")
    flushed(saver)
    saver.retry()
    flushed(saver)
    assert disk.written == [b"x"]


def test_saver_pauses_between_two_writes_but_not_before_a_flush(monkeypatch):
    """Without a flush the second write comes after the pause; the flush ends the pause."""
    monkeypatch.setattr(saver_module, "PAUSE_S", 60.0)
    disk = Disk()
    disk.gate.set()
    saver = Saver(disk.write)
    saver.submit(lambda: b"1")
    assert disk.begun.wait(SOON)
    while saver._writing:
        time.sleep(0.001)
    saver.submit(lambda: b"2")
    assert not saver.idle
    assert disk.written == [b"1"]
    flushed(saver)
    assert disk.written == [b"1", b"2"]
    monkeypatch.setattr(saver_module, "LATER_S", 60.0)
    saver.submit(lambda: b"3")  # is not hurried by the flush before
    time.sleep(0.02)
    assert disk.written == [b"1", b"2"]
    flushed(saver)
    assert disk.written == [b"1", b"2", b"3"]


def test_saver_tells_why_it_could_not_write_and_recovers(tmp_path):
    folder = Folder(tmp_path / "projects")
    session = Session(folder, "a", Project())
    session.dock("backbone")
    session.saver.flush()
    folder.path.rename(tmp_path / "gone")
    session.dock("backbone", "m0", 3)
    session.saver.flush()
    assert "cannot be written" in session.saver.error
    with pytest.raises(WriteError, match="cannot be written"):
        session.save()
    (tmp_path / "gone").rename(folder.path)
    session.saver.retry()
    session.saver.flush()
    assert session.saver.error == ""
    assert len(folder.read("a").organism) == 2
    assert session.save() == folder.file("a")


def test_a_project_that_another_studio_changed_is_not_overwritten(tmp_path):
    ours, theirs = Studio(Folder(tmp_path)), Studio(Folder(tmp_path))
    ours.new("crab", Project()).save()
    one, other = ours.session("crab"), theirs.session("crab")
    other.dock("backbone")
    other.save()
    one.dock("scout")
    with pytest.raises(WriteError, match=r"changed by another studio.*save a copy"):
        one.save()
    with pytest.raises(WriteError, match="save a copy"):
        ours.rename(one, "mine")
    copy = ours.copy(one, "mine")
    assert Folder(tmp_path).read("crab").organism == Organism.start("backbone")
    assert Folder(tmp_path).read("mine").organism == copy.organism == Organism.start("scout")


# -- the folder and its projects -------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["../evil", "..", "a/b", "a\\b", "", " a", "a\0b", "con.json", "x" * 80, "/etc/passwd"]
)
def test_names_cannot_lead_out_of_the_folder(tmp_path, name):
    folder = Folder(tmp_path / "in")
    with pytest.raises(FileError, match="no name for a project"):
        folder.write(name, {})
    assert [*tmp_path.rglob("*")] == [tmp_path / "in"]


def test_two_new_projects_never_share_a_name(tmp_path):
    studio = Studio(Folder(tmp_path))
    names = [studio.new().name for _ in range(3)]
    assert len(set(names)) == 3


def test_names_of_open_projects_are_taken_even_if_they_are_empty(tmp_path):
    studio = Studio(Folder(tmp_path))
    full, empty = studio.new("full", Project()), studio.new("empty")
    for act in (studio.rename, studio.copy):
        with pytest.raises(FileError, match="'empty' already"):
            act(full, "empty")
    promised = studio.reserve()
    assert studio.reserve() != promised
    assert studio.open(promised).name == promised
    assert studio.open(promised) is studio.sessions[promised]
    assert studio.copy(empty, "second").organism is None


def test_a_project_is_not_renamed_under_a_run(tmp_path):
    studio = Studio(Folder(tmp_path))
    session = studio.new("crab", Project())
    session.runner.progress = 0.5
    with pytest.raises(StateError, match="wait for it or cancel it"):
        studio.rename(session, "lobster")


def test_renaming_takes_the_runs_along(tmp_path):
    studio = Studio(Folder(tmp_path))
    session = studio.new("crab", Project())
    runs = studio.folder.runs("crab")
    runs.mkdir()
    (runs / "1.bin").write_bytes(b"x")
    session.saver.flush()
    studio.rename(session, "lobster")
    session.saver.flush()
    assert [entry.name for entry in studio.folder.entries()] == ["lobster"]
    assert (studio.folder.runs("lobster") / "1.bin").exists()
    studio.new("other", Project()).saver.flush()
    with pytest.raises(FileError, match="already"):
        studio.rename(session, "other")
    assert session.name == "lobster"


@pytest.mark.parametrize("name", ["snake", "snake v2", "snake(2)", "_snake", "x" * 60, "x+y z"])
def test_a_file_opened_again_brings_back_what_was_not_saved_to_it(tmp_path, name):
    file = tmp_path / f"{name}.json"
    examples.snake(3).save(file)
    session = Studio(Folder(tmp_path / "p")).open_file(file)
    session.remove("m2")
    session.saver.flush()  # and the server dies
    studio = Studio(Folder(tmp_path / "p"))
    again = studio.open_file(file)
    assert len(again.organism) == 2
    assert again.save() == file
    from modurob import load

    assert load(file) == examples.snake(2)
    examples.snake(5).save(file)  # somebody else changes the file: it wins
    assert len(Studio(Folder(tmp_path / "p")).open_file(file).organism) == 5


def test_a_project_file_of_the_command_line_stays_a_project(tmp_path):
    first = Studio(Folder(tmp_path / "p")).new("snake", Project())
    first.dock("backbone")
    first.edit_settings(duration=3.0)
    file = tmp_path / "mine.json"
    file.write_bytes(first.save().read_bytes())
    (tmp_path / "q").mkdir()
    (tmp_path / "q" / "mine 2.modurob.json").write_text("{")  # a broken neighbor is not ours
    session = Studio(Folder(tmp_path / "q")).open_file(file)
    session.dock("backbone", "m0", 3)
    assert session.save() == file
    again = Studio(Folder(tmp_path / "r")).open_file(file)
    assert len(again.organism) == 2
    assert again.settings.duration == 3.0
    assert again.undo() == "dock m1"


def test_a_broken_step_of_the_history_is_told_when_it_is_wanted(tmp_path):
    folder = Folder(tmp_path)
    session = Session(folder, "a", Project())
    session.dock("backbone")
    session.dock("backbone", "m0", 3)
    data = json.loads(session.save().read_text())
    data["past"][1]["organism"]["modules"] = "none"
    folder.write("a", json.dumps(data).encode())
    again = Studio(folder).session("a")
    with pytest.raises(FileError, match="modules"):
        again.undo()
    assert len(again.organism) == 2
    again.change("go on", None)
    assert again.undo() == "go on"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not valid JSON at line 1"),
        (b"\xff\xfe", "not a text file"),
        (b"[]", 'no "format" field'),
        (b'{"format": "modurob-project", "version": 2}', "newer modurob.*Update"),
        (b'{"format": "modurob-project", "version": 1, "colour": 1}', "colour: no such field"),
        (b'{"format": "modurob-project", "version": 1, "organism": {"x": 1}}', "format"),
        (b'{"format": "modurob-module", "version": 1}', "name: field required"),
        (b'{"format":"modurob-project","version":1,"settings":{"duration":1e9}}', "duration"),
        (b'{"format":"modurob-project","version":1,"settings":{"motion":"dance"}}', "motion"),
        (
            b'{"format":"modurob-project","version":1,"source":"\\ud800"}',
            "source: text with half a character",
        ),
        (b'{"format":"modurob-project","version":1,"runs":[{"number":0}]}', "runs"),
    ],
)
def test_broken_projects_are_refused_by_one_line_that_names_file_and_field(
    tmp_path, content, message
):
    studio = Studio(Folder(tmp_path))
    with pytest.raises(FileError, match=message) as caught:
        studio.upload("mine.json", content)
    assert "mine.json" in str(caught.value)
    assert str(tmp_path) not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not studio.sessions


def test_an_uploaded_organism_becomes_a_project(tmp_path):
    examples.nine().save(tmp_path / "nine.json")
    studio = Studio(Folder(tmp_path / "p"))
    session = studio.upload("nine.json", (tmp_path / "nine.json").read_bytes())
    assert session.organism == examples.nine()
    assert session.name == "nine"


def test_history_of_200_steps_keeps_the_latest_50_in_the_file(session, tmp_path):
    session.dock("backbone")
    heavy = Organism.start("scout")
    light = Organism.start("backbone")
    for k in range(250):
        session.change(f"step {k}", heavy if k % 2 else light)
    assert len(session.project.history.past) == 200
    session.save()
    past = Folder(tmp_path).read("crab").history.past
    assert [step.label for step in past] == [f"step {k}" for k in range(200, 250)]
    assert [step.body.organism for step in past[-2:]] == [heavy, light]


def test_a_long_history_of_a_large_body_leaves_a_file_that_can_be_shared(session):
    body = examples.snake(2000)
    for k in range(60):
        session.change(f"step {k}", body)
    content = to_bytes(session.project)
    assert len(content) < LARGEST_BODY
    assert json.loads(content)["past"][-1]["label"] == "step 59"


def test_a_file_has_as_many_steps_as_fit(session, monkeypatch):
    session.dock("scout")
    session.change("none", None)
    session.change("none again", None)
    lengths = [len(step.text) for step in session.project.history.past]
    for room, kept in ((sum(lengths), 3), (sum(lengths) - 1, 2), (lengths[-1], 1), (0, 0)):
        monkeypatch.setattr(project_module, "LONGEST_HISTORY", room)
        past = json.loads(to_bytes(session.project))["past"]
        labels = [step.label for step in session.project.history.past]
        assert [step["label"] for step in past] == labels[3 - kept :]


def test_datasheets_of_users_are_read_from_bytes():
    from modurob.studio.imports import kinds

    with pytest.raises(FileError, match=r"gripper\.toml"):
        kinds("gripper.toml", b"x = ")
    data = catalog["scout"].model_dump_json().encode()
    assert isinstance(kinds("scout.json", data)[0], ModuleType)


# -- locked joints ---------------------------------------------------------------------------------


def test_a_joint_is_locked_where_its_slider_is_and_unlocked(tmp_path):
    session = Studio(Folder(tmp_path)).new_from_example("superbot_tree")
    count = len(session.model().joint_names)
    session.set_pose(**{"m1.roll": 0.5})
    session.lock("m1.roll")
    assert session.settings.locked == {"m1.roll": 0.5}
    assert "held at 0.5 rad" in session.model().locked["m1.roll"]
    session.unlock("m1.roll")
    assert len(session.model().joint_names) == count
    session.emulate("m-tran")
    rolls = {name: at for name, at in session.settings.locked.items() if name.endswith(".roll")}
    assert rolls == session.settings.locked
    assert set(rolls.values()) == {-np.pi / 2}
    assert len(rolls) == len(session.body())
    with pytest.raises(StateError, match="its limits are"):
        session.edit_settings(locked={"m1.roll": 9.0})
    with pytest.raises(UnknownNameError, match=r"no joint 'm1\.role'"):
        session.edit_settings(locked={"m1.role": 0.1})
    assert session.settings.locked == rolls


def test_locks_go_with_the_joints_that_they_hold(tmp_path):
    session = Studio(Folder(tmp_path)).new_from_example("crab")
    session.lock("m3.hinge")
    session.lock("m5.hinge")
    with pytest.raises(UnknownNameError, match=r"joint 'm5\.hinge' is locked"):
        session.lock("m5.hinge")
    session.remove("m5")
    assert set(session.settings.locked) == {"m3.hinge"}
    session.undo()
    assert set(session.settings.locked) == {"m3.hinge", "m5.hinge"}  # as it was
    session.undo()
    assert "m5.hinge" in session.model().joint_names
    session.edit_settings(base="nowhere")  # told when it is used; locks stay
    assert set(session.settings.locked) == {"m3.hinge"}
    session.edit_settings(base="fixed", hinges="physical")
    assert {*session.settings.locked} <= {*session.model().locked}


def test_the_saved_state_is_true_whatever_happens_to_the_files(tmp_path):
    def states(session):
        session.saver.flush()
        return session.save_state().words

    studio = Studio(Folder(tmp_path / "projects"))
    session = studio.new("crab")
    assert states(session) == ""  # nothing to lose
    session.dock("scout")
    assert session.save_state().words == "Saving…"
    assert states(session) == "Saved"
    file = studio.folder.file("crab")
    content = file.read_bytes()
    file.unlink()
    assert session.save_state().words == "Not saved!"
    assert "was removed" in session.save_state().reason
    session.save()
    assert states(session) == "Saved"
    file.write_bytes(content + b" ")  # another studio
    assert "changed by another studio" in session.save_state().reason
    studio.copy(session, "mine")
    assert states(studio.session("mine")) == "Saved"

    # a file that was opened by its name is behind until Ctrl+S
    own = tmp_path / "snake.json"
    examples.snake(2).save(own)
    opened = studio.open_file(own)
    assert states(opened) == "Saved"
    opened.dock("backbone", "m1", 3)
    assert states(opened) == "Saved, not yet in snake.json"
    studio.end()
    again = Studio(Folder(tmp_path / "projects")).open_file(own)  # also after a restart
    assert again.save_state().words == "Saved, not yet in snake.json"
    again.save()
    assert (states(again), len(load(own))) == ("Saved", 3)


def test_a_dragged_point_is_reached_within_the_limits_and_a_free_base_stays(session):
    session.change("arm", examples.arm("bababab"))
    session.edit_settings(hinges="physical", base="free")
    point, target = [0.0, 0.0, 0.05], [0.35, 0.1, 0.6]
    session.drag("m6.distal", point, target)
    model = session.organism.model("physical")
    q = session.configuration(model)
    T = model.forward_kinematics(q)[model.body_index("m6.distal")]
    np.testing.assert_allclose(T[:3, :3] @ point + T[:3, 3], target, atol=1e-9)
    session.drag("m6.distal", point, [9.0, 0.0, 0.0])  # out of reach
    q = session.configuration(model)
    assert np.all((q >= model.lower) & (q <= model.upper))
    T = model.forward_kinematics(q)[model.body_index("m6.distal")]
    assert (T[:3, :3] @ point + T[:3, 3])[0] > target[0]
    with pytest.raises(UnknownNameError, match="no body 'm9'"):
        session.drag("m9", point, target)


def test_a_renamed_module_keeps_the_pose_the_locks_and_the_velocities_of_its_joints(session):
    build_crab(session)
    session.edit_settings(rates={"m1.hinge": 0.5})
    session.set_pose(**{"m1.hinge": 0.2, "m3.hinge": 0.3})
    session.lock("m3.hinge")
    session.rename_module("m1", "body")
    session.rename_module("m3", "foot")
    assert session.organism.modules == ("m0", "body", "m2", "foot", "m4", "m5")
    assert session.project.pose == {"body.hinge": 0.2, "foot.hinge": 0.3}
    assert session.settings.locked == {"foot.hinge": 0.3}
    assert session.settings.rates == {"body.hinge": 0.5}
    with pytest.raises(DockingError, match="two modules would be called"):
        session.rename_module("foot", "body")
    assert session.undo() == "rename m3 to foot"


# -- settings, points, the file it was opened from -------------------------------------------------


def test_undo_tells_of_the_body_with_its_pose_and_of_the_settings(session):
    session.dock("backbone")
    heard = []
    session.listen(heard.append)
    session.undo()
    assert heard == ["body", "settings"]


def test_zero_again_is_no_step_and_a_slider_after_it_is_one(session, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(session_module.time, "monotonic", lambda: now[0])
    session.dock("backbone")
    session.reset_pose()
    assert session.project.history.past[-1].label == "place m0"
    session.set_pose(m0=0.1, m1=0.2)
    session.reset_pose()
    session.set_pose(m0=0.3, m1=0.2)
    now[0] += 0.9
    session.set_pose(m0=0.4, m1=0.2)  # the same slider, soon after
    now[0] += 1.1
    session.set_pose(m0=0.5, m1=0.2)
    session.undo()
    session.set_pose(m0=0.6, m1=0.2)  # another edit than before the undo
    labels = [step.label for step in session.project.history.past]
    assert labels == ["place m0", "pose", "all to zero", "pose", "pose"]
    assert session.undo() == "pose"
    assert session.project.pose["m0"] == 0.4


def test_locks_are_kept_without_a_body_that_has_them(session):
    session.dock("giusti_b")
    session.edit_settings(hinges="physical")
    session.lock("m0.joint")
    session.remove("m0")
    assert session.settings.locked == {"m0.joint": 0.0}
    session.edit_settings(locked={"m1.joint": 0.5})  # of a body that will come
    assert session.settings.locked == {"m1.joint": 0.5}
    session.dock("giusti_b")
    assert session.settings.locked == {}


def test_the_joints_of_the_last_run_are_the_motion_of_the_next(session, monkeypatch):
    session.change("a snake", examples.snake(3))
    session.edit_settings(hinges="physical", base="free", gravity=0.0, duration=0.2)
    session.edit_settings(rates=dict.fromkeys(session.model().joint_names, 0.5))
    session.edit_settings(motion="none", controller="none")
    run = session.scenario().run()
    folder = session.folder.runs("crab")
    folder.mkdir()
    run.trajectory.save(folder / "1.npz")
    session.add_run(record(1))
    monkeypatch.setattr(session_module, "MOST_POINTS", 5)
    session.take_points()
    points, model = session.settings.points, session.model()
    assert session.settings.motion == "recorded"
    assert [*points] == ["time", *model.joint_names]
    assert points["time"] == pytest.approx(np.linspace(0.0, 0.2, 5), abs=0.01)
    q, _ = run.trajectory.at(np.array(points["time"]))
    for name, column in zip(model.joint_names, q[:, model.joint_slice_q].T, strict=True):
        assert points[name] == pytest.approx(column)
        assert points[name][-1] > 0.05
    session.remove("m2")
    with pytest.raises(StateError, match="the last run has other joints than this body"):
        session.take_points()


def test_a_run_of_several_bodies_is_no_motion(session):
    session.change("a snake", examples.snake(3))
    session.edit_settings(duration=0.1, events=[{"what": "undock", "time": 0.05, "module": "m2"}])
    session.edit_settings(motion="none", controller="none", hinges="physical", base="free")
    folder = session.folder.runs("crab")
    folder.mkdir()
    session.scenario().run().trajectory.save(folder / "1.npz")
    session.add_run(record(1))
    with pytest.raises(StateError, match="the last run has other joints than this body"):
        session.take_points()


def test_a_file_that_was_removed_is_written_again_and_one_that_was_changed_is_not(tmp_path):
    file = tmp_path / "snake.json"
    examples.snake(2).save(file)
    session = Studio(Folder(tmp_path / "p")).open_file(file)
    session.dock("backbone", "m1", 3)
    file.unlink()
    assert session.save() == file
    assert load(file) == session.organism
    assert session.save() == file  # what it wrote itself is no change
    examples.snake(5).save(file)
    with pytest.raises(WriteError, match="changed by another program since it was opened"):
        session.save()


def test_a_pose_is_that_of_the_joints_there_are_within_their_limits(session):
    session.change("a snake", examples.snake(3))
    session.edit_settings(hinges="physical", base="free")
    session.set_pose(**{"m0.hinge": 0.3, "m1.hinge": 9.0, "elsewhere": 1.0})
    model = session.model()
    q = session.configuration(model)
    assert q.tolist() == [0, 0, 0, 0, 0, 0, 1, 0.3, pytest.approx(np.pi / 2)]
    assert session.configuration(model, {"m0.hinge": -0.2})[7] == -0.2
    assert session.model() is model  # kept until the body or the settings change
    session.edit_settings(duration=3.0)
    assert session.model() is not model


def test_names_of_pages_are_promised_for_a_while_and_not_without_end(tmp_path, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(studio_module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(studio_module, "MOST_RESERVED", 2)
    studio = Studio(Folder(tmp_path))
    assert [studio.reserve() for _ in range(2)] == ["organism", "organism 2"]
    now[0] += 59.0
    assert studio.reserve() == "organism 3"
    now[0] += 2.0
    assert studio.reserve() == "organism"  # its page never came
    now[0] += 1.0
    assert studio.reserve() == "organism 2"
    assert studio.reserve() == "organism 3"  # the oldest promise is broken: two are remembered
    now[0] = 2000.0
    assert studio.reserve() == "organism"
    now[0] += 60.0
    assert studio.reserve() == "organism"


@pytest.mark.parametrize(("seconds", "fits"), [(600.0, True), (601.0, False)])
def test_a_run_of_ten_minutes_is_the_longest(session, seconds, fits):
    if fits:
        session.edit_settings(duration=seconds)
        assert session.settings.duration == seconds
    else:
        with pytest.raises(StateError, match="duration: at most 600 s, got 601"):
            session.edit_settings(duration=seconds)


def test_the_end_of_a_studio_writes_what_is_left_and_switches_robots_off(tmp_path, monkeypatch):
    monkeypatch.setattr(saver_module, "LATER_S", 60.0)
    studio, closed = Studio(Folder(tmp_path)), []
    session = studio.new("a", Project())
    session.dock("scout")
    monkeypatch.setattr(session.live, "close", lambda: closed.append(session.saver.idle))
    assert not studio.folder.has("a")
    studio.end()
    assert studio.folder.read("a").organism == session.organism
    assert closed == [True]


def test_a_project_is_written_before_it_gets_another_name(session, monkeypatch):
    monkeypatch.setattr(saver_module, "LATER_S", 60.0)
    there, rename = [], session.folder.rename

    def watched(old, new):
        there.append((session.folder.has(old), session.saver.idle))
        rename(old, new)

    monkeypatch.setattr(session.folder, "rename", watched)
    session.dock("scout")
    session.rename("lobster")
    session.saver.flush()
    assert there == [(True, True)]
    assert [entry.name for entry in session.folder.entries()] == ["lobster"]


def test_a_project_is_deleted_with_its_last_edit_and_does_not_come_back(tmp_path, monkeypatch):
    monkeypatch.setattr(saver_module, "LATER_S", 60.0)
    studio = Studio(Folder(tmp_path))
    session = studio.new("a", Project())
    session.dock("scout")
    (file,) = studio.delete("a").iterdir()
    session.saver.flush()
    assert not studio.folder.has("a")
    assert json.loads(file.read_text())["organism"] is not None


def test_a_project_that_is_shown_is_kept_and_another_one_is_let_go(tmp_path):
    studio = Studio(Folder(tmp_path))
    session = studio.new("crab", Project())
    leave = session.listen(lambda topic: None)
    studio.close(session)
    assert studio.sessions == {"crab": session}
    with pytest.raises(StateError, match="'crab' is open in a tab"):
        studio.delete("crab")
    leave()
    studio.close(session)
    assert studio.sessions == {}
    assert studio.session("crab") is not session
    file = tmp_path / "snake.json"
    examples.snake(2).save(file)
    opened = studio.open_file(file)
    studio.close(opened)
    assert studio.sessions["snake"] is opened  # it knows the file that it came from
    target = studio.delete("crab")
    assert (target / "crab.modurob.json").is_file()
    assert [*studio.sessions] == ["snake"]


def test_each_edit_of_a_setting_is_a_step_of_its_own(session):
    for duration in (2.0, 3.0):
        session.edit_settings(duration=duration)
    session.edit_settings(settling_time=0.25)
    assert session.undo() == "set settling time"
    assert session.undo() == "set duration"
    assert session.settings.duration == 2.0


def test_a_step_of_an_old_file_has_no_settings_and_locks_go_with_its_joints(session):
    session.change("two", examples.snake(2))
    session.project.history.change("three", examples.snake(3))
    session.edit_settings(locked={"m2.hinge": 0.1})
    session.project.history.past.pop()
    assert session.undo() == "three"
    assert session.settings.locked == {}
