"""Runs, plots, exports and formulas without a browser."""

import asyncio
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

from modurob import (
    DockingError,
    Ground,
    Organism,
    Scenario,
    StateError,
    Trajectory,
    catalog,
    examples,
)
from modurob.scenario.scenario import RunResult
from modurob.scenario.settings import RunRecord, RunSettings
from modurob.sim import BodyTrajectory
from modurob.sim.output.export import from_bytes
from modurob.spatial import se3, so3
from modurob.studio import exports, formulas, jobs, project, runs, tables, view_data
from modurob.studio.folder import Folder
from modurob.studio.jobs import JobCanceled, Worker
from modurob.studio.project import NEW_SETTINGS, History, SavedBody
from modurob.studio.studio import Studio

SINGLE = 1e-6  # the player's numbers have single precision


def perform(folder, organism, pose=None, number=1, **changes):
    settings = NEW_SETTINGS.edited(**{"duration": 0.5, "ramp": 0.2, **changes})
    scenario = runs.scenario_of(organism, settings, pose or {})
    request = runs.RunRequest(scenario, settings, folder, number)
    heard = []
    record = runs.perform(request, heard.append)
    return record, heard


def given(**changes):
    """A request to export the crab."""
    plain = exports.ExportRequest("my crab", "my_crab", examples.crab(), NEW_SETTINGS)
    return replace(plain, **changes)


def browser_data(folder, number=1):
    return json.loads((folder / f"{number}.json").read_text())


def panel(data, key):
    return next(p for p in data["panels"] if p["key"] == key)


def test_a_run_leaves_the_same_motion_in_all_its_files(tmp_path):
    record, heard = perform(tmp_path, examples.crab())
    assert record.status == "finished"
    assert heard == sorted(heard)
    assert heard[-1] == 1.0
    trajectory = Trajectory.load(tmp_path / "1.npz")
    played = from_bytes((tmp_path / "1.bin").read_bytes())["parts"][0]
    data = browser_data(tmp_path)
    assert np.allclose(played["q"], trajectory.q, atol=SINGLE)
    assert data["casts"][0]["bodies"] == played["bodies"] == list(trajectory.model.body_names)
    for key in ("q", "v", "a", "tau"):
        for k, line in enumerate(panel(data, key)["lines"]):
            assert line["joint"] == trajectory.model.joint_names[k]
            shown = np.interp(trajectory.t, line["t"], line["y"])
            assert np.allclose(shown, getattr(trajectory, key)[:, k], rtol=1e-5, atol=SINGLE)
    mass = trajectory.model.center_of_mass(trajectory.q)
    assert np.allclose(data["mass"]["xyz"], mass, atol=SINGLE)


def test_computed_torque_follows_the_gait_and_the_error_panel_says_so(tmp_path):
    perform(tmp_path, examples.crab(), motion="wave")
    lines = panel(browser_data(tmp_path), "error")["lines"]
    moved = panel(browser_data(tmp_path), "q")["lines"]
    assert max(np.ptp(line["y"]) for line in moved) > 0.05
    assert max(np.abs(line["y"]).max() for line in lines) < 1e-4


def test_estimates_stay_in_their_band_as_often_as_three_sigma_promise(tmp_path):
    perform(
        tmp_path, examples.crab(), estimator="Ekf", noise_q=0.01, duration=1.5, motion="hold",
        pose={"m1.hinge": 0.3},
    )  # fmt: skip
    inside, count = 0, 0
    for line in panel(browser_data(tmp_path), "estimate")["lines"]:
        y, low, high = (np.array(line[key]) for key in ("y", "low", "high"))
        assert np.all(low < high)
        inside += int(np.sum((y >= low) & (y <= high)))
        count += len(y)
    assert inside / count > 0.97


def test_a_run_starts_with_the_pose_and_the_velocities_that_were_set(tmp_path):
    perform(tmp_path, examples.crab(), {"m1.hinge": 0.3}, rates={"m3.hinge": -0.7}, motion="hold")
    trajectory = Trajectory.load(tmp_path / "1.npz")
    assert trajectory.q[0].tolist() == [0.3, 0.0, 0.0]
    assert trajectory.v[0].tolist() == [0.0, -0.7, 0.0]


def test_a_body_without_drive_keeps_its_energy(tmp_path):
    perform(
        tmp_path, examples.double_pendulum(), {"m0.hinge": 1.0}, hinges="physical",
        controller="none", motion="none", rtol=1e-9,
    )  # fmt: skip
    lines = {
        line["name"]: np.array(line["y"])
        for line in panel(browser_data(tmp_path), "energy")["lines"]
    }
    assert np.ptp(lines["kinetic"]) > 0.1
    assert np.ptp(lines["sum"]) < 1e-5


def test_events_cut_a_run_into_parts_that_each_know_their_body(tmp_path):
    record, _ = perform(
        tmp_path, examples.snake(4), hinges="physical", motion="hold",
        events=[{"what": "undock", "time": 0.2, "module": "m3"}],
    )  # fmt: skip
    data = browser_data(tmp_path)
    assert [len(cast["modules"]) for cast in data["casts"]] == [4, 3, 1]
    assert data["events"] == [{"time": 0.2, "what": "undock m3"}]
    assert "1 event" in record.title


def test_a_run_that_diverges_keeps_what_there_was_and_says_what_to_try(tmp_path):
    record, _ = perform(
        tmp_path, examples.crab(), integrator="RK4", dt=0.05, settling_time=0.001, motion="zero",
        pose={"m1.hinge": 1.0},
    )  # fmt: skip
    assert record.status == "stopped"
    assert "diverged" in record.message
    assert "Try a smaller step" in record.message
    assert 0 < record.seconds < 0.5
    browser_data(tmp_path)  # holds no NaN: it is JSON


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"controller": "none", "estimator": "Ekf"}, "works with a controller"),
        ({"controller": "none", "noise_q": 0.1}, "choose a controller"),
        ({"motion": "dance"}, "motion: must be one of none, hold"),
        ({"controller": "magic"}, "controller: must be one of none, ComputedTorque"),
        ({"motion": "balance"}, "physical hinges"),
        ({"base": "px,qq"}, "qq"),
    ],
)
def test_settings_that_do_not_fit_together_are_explained(tmp_path, changes, message):
    with pytest.raises((StateError, KeyError), match=message):
        perform(tmp_path, examples.crab(), **changes)


def test_modules_that_balance_by_messages_bring_the_center_back_and_know_it_in_the_end(tmp_path):
    tree = examples.superbot_tree(4, 3, np.random.default_rng(3))
    record, heard = perform(tmp_path, tree, motion="balance", hinges="physical", duration=1.5)
    assert record.title == "balance by messages, shared law"
    assert heard == sorted(heard)
    data = browser_data(tmp_path)
    distance = panel(data, "mass")["lines"][0]["y"]
    assert distance[-1] < 0.3 * distance[0]
    known, sent = data["tints"]
    assert known["modules"] == sent["modules"] == list(tree.modules)
    assert max(known["levels"][0]) == 1.0  # at first hardly anybody knows
    assert max(known["levels"][-1]) < 0.2
    neighbors = [sum(m in (d.parent, d.child) for d in tree.dockings) for m in tree.modules]
    assert sent["most"] == 1000 * max(neighbors)  # to each neighbor once a millisecond
    assert sent["levels"][50] == [round(n / max(neighbors), 3) for n in neighbors]
    errors = {line["name"]: line["y"] for line in panel(data, "known")["lines"]}
    assert max(values[-1] for values in errors.values()) < 0.2 * tree.kind(tree.base).size
    rates = {line["name"]: line["y"] for line in panel(data, "sent")["lines"]}
    assert [max(rates[m]) for m in tree.modules] == pytest.approx([1000 * n for n in neighbors])


def test_faults_of_modules_that_balance_are_on_the_timeline_and_silence_them(tmp_path):
    tree = examples.superbot_tree(3, 2, np.random.default_rng(3))
    wish = {"motion": "balance", "hinges": "physical", "duration": 0.6, "loss": 0.2}
    faults = [{"what": "die", "time": 0.2, "module": "m3"}]
    record, _ = perform(tmp_path, tree, events=faults, balancing_law="momentum", **wish)
    assert record.title == "balance by messages, momentum law, 20 % lost, 1 event"
    data = browser_data(tmp_path)
    assert data["events"] == [{"time": 0.2, "what": "die m3"}]
    sent = data["tints"][1]
    last = dict(zip(sent["modules"], sent["levels"][-10], strict=True))
    assert last.pop("m3") == 0
    assert all(last.values())
    with pytest.raises(StateError, match="remove these events"):
        perform(tmp_path, tree, events=[{"what": "undock", "time": 0.2, "module": "m3"}], **wish)
    with pytest.raises(StateError, match="'die m3' is for bodies that balance"):
        perform(tmp_path, tree, events=faults, hinges="physical")


def test_a_body_whose_joints_are_all_locked_is_explained(tmp_path):
    with pytest.raises(StateError, match="no joint that can move"):
        perform(tmp_path, examples.snake(1))


# -- what the browser draws ------------------------------------------------------------------------


@pytest.mark.parametrize("hinges", ["dyad", "physical"])
@pytest.mark.parametrize("make", [examples.crab, examples.arm, examples.superbot_tree])
def test_solids_are_drawn_where_forward_kinematics_puts_them(make, hinges):
    """The body's pose times the solid's, against the scene that pictures are drawn from."""
    from modurob.drawing import scene

    organism = make()
    model = organism.model(hinges)
    q = 0.3 * model.random_configuration(np.random.default_rng(1))
    cast, poses = view_data.scene_data(organism, model), view_data.poses(model, q)
    drawn = scene.build(organism, model, q)

    assert same_places(cast["solids"], poses, drawn)


@pytest.mark.parametrize("kind", [k for k in catalog.values() if k.shapes and not k.virtual])
def test_ghosts_look_like_the_module_that_a_click_docks(kind):
    from modurob.drawing import scene

    organism = Organism.start(kind)
    model = organism.model("physical")
    drawn = scene.build(organism, model, model.neutral())
    assert same_places(view_data.kind_data(kind)["solids"], [[0, 0, 0, 0, 0, 0, 1]], drawn)


def same_places(solids, poses, drawn):
    """Whether solids on posed bodies stand where a scene has them, one after the other."""
    first, same = 0, True
    for solid in solids:
        surfaces = {"box": 6, "cylinder": 3, "sphere": 1}[solid["form"]]
        facets = [f for f in drawn.facets if first <= f.surface < first + surfaces]
        first += surfaces
        center = np.mean(np.concatenate([f.corners for f in facets]), axis=0)
        where = (matrix(poses[solid["body"]]) @ matrix(solid["pose"]))[:3, 3]
        same = same and np.allclose(where, center, atol=1e-5)
    return same and first == len(drawn.colors)


def matrix(numbers):
    """(4, 4) of a position and a quaternion."""
    return se3.pose(so3.from_quaternion(np.array(numbers[3:], dtype=float)), np.array(numbers[:3]))


def test_joint_axes_are_those_of_the_model():
    """Moving one joint moves everything beyond it about the drawn axis: points on it stay."""
    organism = examples.crab()
    model = organism.model()
    cast = view_data.scene_data(organism, model)
    q = np.array([0.2, -0.3, 0.4])
    for k, joint in enumerate(cast["joints"]):
        other = q.copy()
        other[k] += 0.5
        ends = []
        for state in (q, other):
            T = model.forward_kinematics(state)[joint["body"]]
            point, along = np.array(joint["point"]), np.array(joint["direction"])
            ends.append(T[:3, :3] @ (point + np.outer([-1, 1], along))[..., None] + T[:3, 3:])
        assert np.allclose(ends[0], ends[1], atol=1e-5)


# -- tables and formulas ---------------------------------------------------------------------------


class Cells(HTMLParser):
    """The texts of a table, row by row, and every tag that was met."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.tags, self.sources, self._open = [[]], set(), [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.sources += [v for k, v in attrs if k in ("src", "href", "xlink:href") and v]
        if tag == "tr":
            self.rows.append([])
        self._open = tag in ("td", "th")

    def handle_endtag(self, tag):
        self._open = False

    def handle_data(self, data):
        if self._open:
            self.rows[-1].append(data)


def test_the_aim_on_the_page_is_that_of_the_organism():
    rows = Cells(tables.aim(examples.crab())).rows[1:]
    matrix = [[0 if text == "·" else int(text) for text in row[1:-1]] for row in rows[1:-1]]
    assert matrix == examples.crab().aim().matrix.tolist()
    assert rows[-1][1:] == ["DP", "DS", "DO", "DS", "DO"]


def test_names_are_escaped_wherever_they_are_shown():
    evil = '<script>alert(1)</script>"'
    html = tables.cell(evil, module=evil, joint=evil) + tables.symbols(
        [{"name": evil, "meaning": evil, "unit": evil, "value": None}]
    )
    assert "script" not in Cells(html).tags


def entry_request(organism, entry, **changes):
    body = given(organism=organism, settings=NEW_SETTINGS.edited(**changes))
    return formulas.EntryRequest(body, "all", entry)


def test_formulas_are_those_of_the_equations_and_know_their_joints():
    organism = examples.double_pendulum()
    found = formulas.entry(entry_request(organism, "M[1,2]", hinges="physical"), lambda _: None)
    math = ET.fromstring(found["mathml"])
    joints = {e.get("data-joint") for e in math.iter() if e.get("data-joint")}
    assert joints == {"m1.hinge"}
    names = {e.get("data-module") for e in math.iter() if e.get("data-module")}
    assert names == {"m2"}
    assert found["terms"] == found["shown"]
    text = formulas.latex(entry_request(organism, "M[1,2]", hinges="physical"), lambda _: None)
    assert text == "M_{1,2} = " + organism.equations("physical").latex("M[1,2]")


def test_formulas_with_numbers_follow_gravity():
    """The same process answers again, with other numbers: N of the pendulum is m g l times them."""
    for gravity in (9.81, 3.71):
        body = examples.double_pendulum()
        settings = NEW_SETTINGS.edited(hinges="physical", gravity=gravity)
        asked = formulas.EntryRequest(given(organism=body, settings=settings), "none", "N[2]")
        assert f"{gravity:g}" in formulas.latex(asked, lambda _: None)


def test_symbols_of_formulas_belong_to_joints_and_modules_and_gravity_to_none():
    body, settings = examples.double_pendulum(), NEW_SETTINGS.edited(hinges="physical")
    asked = formulas.EntryRequest(given(organism=body, settings=settings), "all", "N[2]")
    page = ET.fromstring(formulas.entry(asked, lambda _: None)["mathml"])
    owners = {"".join(e.itertext()): (e.get("data-joint"), e.get("data-module"))
              for e in page.iter()}  # fmt: skip
    expected = {"g": (None, None), "m2": (None, "m2"), "q1": ("m0.hinge", None)}
    assert {name: owners[name] for name in expected} == expected


def test_long_formulas_are_cut_for_the_page_and_told_so():
    found = formulas.entry(
        entry_request(examples.arm("babac"), "C[1,2]", hinges="physical"), lambda _: None
    )
    assert found["terms"] > formulas.MOST_TERMS == found["shown"]
    assert "⋯" in found["mathml"]
    assert len(found["mathml"]) < 200_000
    # one piece for each term, so that lines break between them; most are folded
    page = ET.fromstring(found["mathml"])
    pieces = [e for e in page.iter() if e.tag.endswith("math")]
    assert len(pieces) == formulas.MOST_TERMS + 1
    folded = page.find("details")
    assert len(pieces) - len([e for e in folded.iter() if e.tag.endswith("math")]) == 16
    assert folded.find("summary").text == f"{len(pieces) - 16} more terms"


def test_numbers_have_few_digits_their_signs_and_their_symbols():
    crab = given(organism=examples.crab(), settings=NEW_SETTINGS)
    found = formulas.entry(formulas.EntryRequest(crab, "none", "M[1,1]"), lambda _: None)
    assert re.findall(r"<mn>(\d*\.\d+)</mn>", found["mathml"]) == ["0.028333"]  # of 0.0283333...
    body, settings = examples.double_pendulum(), NEW_SETTINGS.edited(hinges="physical")
    asked = given(organism=body, settings=settings)
    found = formulas.entry(formulas.EntryRequest(asked, "none", "M[1,1]"), lambda _: None)
    assert [each["name"] for each in found["symbols"]] == ["q2"]
    equations = asked.equations("none")
    for name in ("C[1,2]", "N[1]"):
        value = equations.entry(name)
        terms = formulas._terms(value)
        signs = [-1 if "−" in formulas._sign(term, 1) else 1 for term in terms]
        whole = sum(s * formulas._unsigned(t) for s, t in zip(signs, terms, strict=True))
        assert (whole - value).expand() == 0


def test_entries_are_colored_by_their_size():
    values = np.array([[4.0, 0.0], [-1.0, 2.0]])
    html = tables.entries("M", values, "M[1,2]")
    shares = re.findall(r'data-entry="(.*?)".*?--share: (\d+)%', html)
    assert shares == [("M[1,1]", "100"), ("M[1,2]", "0"), ("M[2,1]", "50"), ("M[2,2]", "71")]
    assert re.findall(r'class="(.*?)" title="(.*?)"', html)[1] == ("on", "M[1,2] = 0")
    assert tables.entries("N", np.zeros((2, 1)), "").count("--share: 0%") == 2


# -- exports ---------------------------------------------------------------------------------------


def test_the_report_is_one_file_with_everything_in_it(tmp_path):
    """All other formats are opened where they are exported: in the browser."""
    record, _ = perform(tmp_path, examples.crab(), duration=0.15)
    asked = given(settings=record.settings, record=record, run_file=tmp_path / "1.npz")
    data = exports.make("report", asked, lambda _: None)
    found = Cells(data.decode())
    assert not {"script", "link", "iframe"} & found.tags
    assert {"math", "svg", "img", "table"} <= found.tags
    assert all(source.startswith(("data:", "#")) for source in found.sources)
    assert ["v0", "3", "·", "·", "·", "·", "S"] in found.rows
    assert "computed torque, wave" in data.decode()
    assert "changed after this run" not in data.decode()
    other = replace(asked, organism=examples.snake(3))
    text = exports.make("report", other, lambda _: None).decode()
    assert "The body was changed after this run,</b> which has 6 modules" in text


def test_exports_that_need_a_run_say_so():
    with pytest.raises(StateError, match="press Run"):
        exports.make("csv", given(), lambda _: None)


# -- processes -------------------------------------------------------------------------------------


def test_a_worker_that_is_killed_is_no_cancellation(awaited):
    async def story():
        worker = Worker()
        endless = given(organism=examples.snake(9), settings=RunSettings(hinges="physical"))
        task = asyncio.ensure_future(worker.run(exports.make, "latex", endless))
        await asyncio.sleep(0.2)
        worker._process.kill()
        with pytest.raises(StateError, match="out of memory"):
            await task
        assert not worker.busy

    awaited(story())


def test_workers_report_answer_fail_and_are_canceled(awaited):
    import math
    import operator

    async def story():
        worker = Worker()
        with pytest.raises(StateError, match="could not be computed"):
            await worker.run(operator.truediv, 1, 0)  # takes no progress: a slip in a task
        task = asyncio.ensure_future(worker.run(formulas.latex, None))
        with pytest.raises(StateError, match="could not be computed"):
            await task
        started = asyncio.Event()
        endless = given(organism=examples.snake(9), settings=RunSettings(hinges="physical"))
        task = asyncio.ensure_future(
            worker.run(exports.make, "latex", endless, progress=lambda _: started.set())
        )
        await asyncio.sleep(0.2)
        assert worker.busy
        with pytest.raises(StateError, match="something else"):
            await worker.run(math.sin, 1.0)
        worker.cancel()
        with pytest.raises(JobCanceled):
            await task
        assert not worker.busy
        worker.close()

    awaited(story())


class Flood:
    """A pipe with a word about progress whenever somebody looks."""

    def __init__(self):
        self.read = 0

    def poll(self):
        return True

    def recv(self):
        self.read += 1
        assert self.read < 1000, "nobody else has had a turn"
        return "progress", 0.5

    def close(self):
        pass


def test_a_flood_of_progress_leaves_time_for_everything_else(awaited):
    """Cancel is heard, however much there is to read."""

    async def story():
        worker, flood = Worker(), Flood()
        worker._pipe = worker._at_work = flood
        told = asyncio.Queue()
        task = asyncio.ensure_future(worker._answer(flood, told.put_nowait))
        assert await told.get() == 0.5
        worker.cancel()
        with pytest.raises(JobCanceled):
            await task
        assert told.empty()

    awaited(story())


def test_progress_is_told_no_more_often_than_it_is_read(monkeypatch):
    now, pipe = [0.0], []
    monkeypatch.setattr(jobs.time, "monotonic", lambda: now[0])
    tell = jobs._ProgressSender(SimpleNamespace(send=pipe.append))
    for k in range(1001):
        now[0] = k / 1000  # a second with a thousand steps
        tell(k / 1000)
    assert 1 / (len(pipe) - 1) > jobs.POLL_S
    assert pipe == sorted(pipe)
    assert pipe[0] == ("progress", 0.0)
    assert pipe[-1] == ("progress", 1.0)


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({}, "computed torque, wave"),
        ({"controller": "none", "motion": "none"}, "no controller, free motion"),
        ({"estimator": "Ekf", "motion": "hold"}, "computed torque, hold, EKF"),
        ({"motion": "balance", "loss": 0.125}, "balance by messages, shared law, 12.5 % lost"),
        ({"loss": 0.5}, "computed torque, wave"),
    ],
)
def test_titles_say_what_a_run_is(changes, title):
    settings = NEW_SETTINGS.edited(**changes)
    assert settings.summary == title
    event = {"what": "undock", "time": 1.0, "module": "m1"}
    assert settings.edited(events=[event]).summary == f"{title}, 1 event"
    assert settings.edited(events=[event] * 2).summary == f"{title}, 2 events"


def test_long_runs_are_recorded_more_coarsely():
    for duration, step in ((5.0, runs.FRAME_S), (400.0, 400.0 / runs.MOST_FRAMES)):
        settings = NEW_SETTINGS.edited(duration=duration)
        assert runs.scenario_of(examples.crab(), settings, {}).record == step


def test_advice_fits_the_reason():
    assert "smaller step" in runs.advice("it diverged at 1 s")
    assert runs.advice("'m3' is not there") == "What was computed until then is kept."


def test_a_run_without_a_law_has_no_reference_and_one_with_noise_needs_its_seed(tmp_path):
    quiet = {"hinges": "physical", "duration": 0.05}
    body = examples.double_pendulum()
    perform(tmp_path, body, controller="none", motion="hold", **quiet)
    assert not any(p["key"] == "error" for p in browser_data(tmp_path)["panels"])
    noisy = {**quiet, "motion": "hold", "noise_q": 0.01}
    for number, seed in enumerate((1, 1, 2), start=1):
        perform(tmp_path, body, number=number, seed=seed, **noisy)
    same, again, other = (Trajectory.load(tmp_path / f"{k}.npz").q for k in (1, 2, 3))
    assert np.array_equal(same, again)
    assert not np.array_equal(same, other)


def test_modules_of_the_users_own_dock_during_a_run(tmp_path):
    own = catalog["backbone"].with_parameters(mass=2.0).model_copy(update={"name": "heavy"})
    event = {
        "what": "dock", "time": 0.02, "module": "m1", "port": 3, "kind": "heavy", "child": "m2",
        "child_port": 4,
    }  # fmt: skip
    settings = NEW_SETTINGS.edited(hinges="physical", motion="hold", duration=0.04, events=[event])
    scenario = runs.scenario_of(examples.snake(2), settings, {}, [own, catalog["scout"]])
    assert scenario.kinds == (own,)
    scenario.save(tmp_path / "docks.json")
    assert Scenario.load(tmp_path / "docks.json") == scenario
    runs.perform(runs.RunRequest(scenario, settings, tmp_path, 1), lambda _: None)
    last = Trajectory.load(tmp_path / "1.npz").parts[-1]
    assert last.organism.kind("m2").mass == 2.0


# -- what leaves the studio ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("my crab", "my_crab"),
        ("2 legs", "robot_2_legs"),
        ("ä", "robot"),
        ("_x_", "x"),
        ("a1", "a1"),
    ],
)
def test_names_become_words_of_other_programs(name, word):
    assert exports.word(name) == word


def test_a_format_that_is_not_there_is_told_with_those_there_are():
    with pytest.raises(StateError, match="no format 'pdf': formats are report, viewer, organism"):
        exports.make("pdf", given(), lambda _: None)


def test_the_run_that_is_shown_is_exported_else_the_last_one(tmp_path):
    session = Studio(Folder(tmp_path)).new(
        "crab", project.Project(History(SavedBody(examples.crab())))
    )
    assert session.export_request().run_file is None
    for number in (1, 2):
        plain = {"title": "x", "status": "finished", "seconds": 1.0, "took": 1.0}
        session.add_run(RunRecord(number=number, settings=session.settings, **plain))
    assert session.export_request().run_file == session.folder.runs("crab") / "2.npz"
    shown = session.export_request(1)
    assert (shown.run_file, shown.record) == (
        session.folder.runs("crab") / "1.npz",
        session.runs[0],
    )
    assert (shown.title, shown.word, shown.organism) == ("crab", "crab", examples.crab())


# -- the process's side ----------------------------------------------------------------------------


class Pipe:
    """Tasks to do, and what was answered."""

    def __init__(self, *tasks):
        self.tasks, self.sent = [*tasks], []

    def recv(self):
        if not self.tasks:
            raise EOFError
        return self.tasks.pop(0)

    def send(self, message):
        self.sent.append(message)


def half(value, progress):
    progress(0.5)
    progress(1.0)
    return value / 2


def refuse(progress):
    raise DockingError("it does not fit")


def test_a_worker_answers_each_task_and_survives_those_that_fail(monkeypatch, capsys):
    monkeypatch.setattr(jobs.signal, "signal", lambda *_: None)
    monkeypatch.setattr(jobs, "LOADED", ())
    pipe = Pipe((refuse, ()), (half, ("x",)), (half, (3,)))
    jobs._serve(pipe)
    kinds = [kind for kind, _ in pipe.sent]
    assert kinds == ["error", "progress", "progress", "error", "progress", "progress", "done"]
    assert type(pipe.sent[0][1]) is StateError
    assert str(pipe.sent[0][1]) == "it does not fit"
    assert str(pipe.sent[3][1]).startswith("this could not be computed (TypeError: ")
    assert "Traceback" in capsys.readouterr().err
    assert pipe.sent[-1] == ("done", 1.5)


def test_cancelling_nothing_leaves_the_process_alone():
    worker = Worker()
    worker._process = process = SimpleNamespace(is_alive=lambda: True)
    worker.cancel()
    assert worker._process is process
    assert not worker.busy


@pytest.mark.parametrize("stubborn", [False, True])
def test_a_process_is_ended_and_if_need_be_killed(stubborn):
    told = []
    alive = [True]

    def terminate():
        told.append("terminate")
        alive[0] = stubborn

    worker = Worker()
    worker._process = SimpleNamespace(
        is_alive=lambda: alive[0], terminate=terminate, join=lambda limit: told.append(limit),
        kill=lambda: told.append("kill"),
    )  # fmt: skip
    worker._pipe = SimpleNamespace(close=lambda: told.append("close"))
    worker.close()
    assert told == ["terminate", jobs.END_S, *(["kill"] if stubborn else []), "close"]
    worker.close()
    assert told[-1] == "close"
    assert told.count("close") == 1


@pytest.mark.parametrize(
    ("base", "parts", "ground", "way"),
    [
        ("free", 1, Ground(), "It moved 0.3 m, 0.3 m/s. "),
        ("free", 2, Ground(), ""),
        ("fixed", 1, Ground(), ""),
        ("free", 1, None, ""),
    ],
)
def test_the_way_is_told_of_one_free_body_on_the_ground(base, parts, ground, way):
    body = examples.snake(2)
    model, t = body.model("physical", base=base), np.linspace(0.0, 1.0, 11)
    q, v = np.tile(model.neutral(), (11, 1)), np.zeros((11, model.nv))
    if base == "free":
        q[:, 0] = 0.3 * t
    part = BodyTrajectory("m0", model, body, t, q, v, v)
    result = RunResult(Trajectory((part,) * parts), [], ground=ground, note="A note.")
    assert runs._said(result) == f"{way}A note."


@pytest.mark.parametrize(
    ("changes", "step"),
    [({}, None), ({"integrator": "RK4"}, 0.004), ({"motion": "balance"}, 0.004)],
)
def test_a_step_of_fixed_length_is_for_methods_that_take_one_and_for_balancing(changes, step):
    settings = NEW_SETTINGS.edited(hinges="physical", dt=0.004, **changes)
    assert runs.scenario_of(examples.snake(3), settings, {}).dt == step


def test_a_run_has_velocities_of_the_joints_there_are():
    settings = NEW_SETTINGS.edited(rates={"m1.hinge": 0.5, "m9.hinge": 1.0})
    assert runs.scenario_of(examples.snake(3), settings, {}).rates == {"m1.hinge": 0.5}


@pytest.mark.parametrize("word", ["it diverged", "not finite", "the step is too small"])
def test_each_reason_of_a_method_that_fails_has_its_advice(word):
    assert runs.advice(word).startswith("Try a smaller step or tolerance")
