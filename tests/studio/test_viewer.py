"""The viewer: one file that shows a body or a run in a browser without a network."""

import base64
import dataclasses
import gzip
import importlib.util
import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

import modurob as mr
from modurob import StateError, examples
from modurob.cli import cli
from modurob.scenario.exports import ExportRequest
from modurob.sim import BodyTrajectory
from modurob.studio import exports, runs, viewer
from modurob.studio.project import NEW_SETTINGS

LONG_S = 300.0  # that a run of a tenth of a second may take on a busy machine


@pytest.fixture(scope="module")
def walk():
    ground = mr.Ground(friction=0.8, lift=True)
    body = examples.crab()
    model = body.model(hinges="physical", base="free")
    run = mr.simulate(model, model.neutral(), np.zeros(model.nv), 0.4, ground=ground)
    return run, ground


def content(page):
    packed = re.search(r'id="content">([^<]*)<', page)[1]
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def unpacked(packed, rows):
    """Rows of numbers, as `viewer.js` reads them."""
    planes = np.frombuffer(base64.b64decode(packed["bytes"]), np.uint8).reshape(4, -1)
    whole = np.ascontiguousarray(planes.T).view("<u4").astype(np.int64)
    steps = (whole >> 1) ^ -(whole & 1)
    return np.cumsum(steps.reshape(-1, rows), axis=1).T * packed["unit"]


def test_runs_are_drawn_thirty_times_a_second_within_limits():
    (part,) = mr.simulate(examples.arm("b").model(), None, None, 0.02, None, "RK4", dt=0.02).parts
    for rows, frames in ((2501, 1200), (501, 301), (151, 120), (51, 51)):
        still = dataclasses.replace(part.rows(np.zeros(rows, int)), t=0.02 * np.arange(rows))
        assert len(viewer._thinned(still).t) == frames


def test_a_run_has_the_poses_of_its_bodies_and_its_contacts(walk):
    run, ground = walk
    data = content(run.view(ground=ground).html())["run"]
    (part,) = data["parts"]
    t, poses = np.array(part["t"]), unpacked(part["poses"], len(part["t"]))
    q, _ = run.at(t)
    T = run.model.forward_kinematics(q)
    np.testing.assert_allclose(poses.reshape(len(t), -1, 7)[..., :3], T[..., :3, 3], atol=1e-6)
    assert t[0] == 0
    assert t[-1] == run.t[-1]
    weight = run.model.mass.sum() * 9.81
    assert data["ground"]["weight"] == pytest.approx(weight, rel=1e-3)
    pushes = [
        np.sum([force[5] for force in row] or [0]) for row in data["ground"]["parts"][0]["forces"]
    ]
    assert max(pushes) > 0.5 * weight  # it has landed
    assert data["tints"][-1]["key"] == "load"  # of the connectors
    assert "ground" in data
    assert content(run.view().html())["run"]["ground"] is None


def test_packed_numbers_are_within_half_a_micrometer_also_far_away():
    rng = np.random.default_rng(0)
    near = np.cumsum(rng.normal(0.0, 0.01, (50, 4, 7)), axis=0)
    far = near + 20_000.0  # a minute of free fall
    swings = 20_000.0 * np.cos(np.pi * np.arange(50))[:, None, None] * np.ones((4, 7))
    for values, error in (
        (near, 0.5e-6), (far, 20e-6), (swings, 20e-6), (1e-6 * near, 0.5e-6), (0.0 * near, 0.0)
    ):  # fmt: skip
        found = unpacked(viewer._packed(values), 50)
        np.testing.assert_allclose(found, values.reshape(50, -1), rtol=0, atol=error + 1e-12)


def test_a_run_of_twenty_modules_and_twenty_seconds_is_below_two_megabytes():
    body = examples.snake(20)
    model = body.model(hinges="physical")
    t = np.linspace(0.0, 20.0, 2001)
    angle = 7.1 * t[:, None] + np.arange(model.nv)
    q, v = np.sin(angle), 7.1 * np.cos(angle)
    run = mr.Trajectory((BodyTrajectory("m0", model, body, t, q, v, np.cos(3.3 * q)),))
    assert len(run.view().html()) < 2e6


def test_the_page_asks_for_nothing_from_outside(walk):
    page = walk[0].view().html()
    outer = page.replace(re.search(r'id="content">([^<]*)<', page)[1], "")
    assert not re.search(r"(?:src|href)\s*=|@import|https?://", outer)


def test_the_same_view_is_the_same_file_at_any_time():
    """RFC 1952: bytes 4 to 7 of a gzip file are its time, 0 for none."""
    packed = re.search(r'id="content">([^<]*)<', examples.crab().view().html())[1]
    assert base64.b64decode(packed)[4:8] == bytes(4)


def test_a_notebook_shows_it_in_a_frame_of_its_own():
    view = examples.crab().view()
    text = view._repr_html_()
    assert text.startswith("<iframe srcdoc=")
    assert text.count("<script") == 0
    assert "height:420px" in text
    moving = viewer.View("a run", {"run": {}})
    assert "height:620px" in moving._repr_html_()  # with its player and plots
    assert "crab" not in repr(view)
    assert ".save(" in repr(view)


def test_mistakes_have_one_clear_line(walk, tmp_path, monkeypatch):
    run, ground = walk
    crab = examples.crab()
    model = crab.model()
    flight = mr.simulate(model, model.neutral(), np.zeros(model.nv), 0.02)
    with pytest.raises(StateError, match="was not on the ground"):
        flight.view(ground=ground)
    field = mr.Ground(height=np.zeros((4, 4)), cell=0.1)
    with pytest.raises(StateError, match="height field"):
        run.view(ground=field)
    batch = mr.simulate(
        model, np.zeros((2, model.nq)), np.zeros((2, model.nv)), 0.02, integrator="RK4"
    )
    with pytest.raises(StateError, match="choose one of the batch"):
        batch.view()
    with pytest.raises(mr.ModurobError, match=r"viewers are \.html"):
        crab.view().save(tmp_path / "crab.png")
    with pytest.raises(StateError, match="expected"):
        crab.view([1.0, 2.0])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(StateError, match=r"modurob\[studio\]"):
        crab.view().save(tmp_path / "crab.html")
    assert not list(tmp_path.iterdir())


def test_commands_write_it(tmp_path):
    def run(*arguments):
        return CliRunner().invoke(cli, [str(each) for each in arguments])

    shown, walked = tmp_path / "crab.html", tmp_path / "walk.html"
    result = run("show", "crab", "--html", shown, "--json")
    assert json.loads(result.stdout)["html"] == str(shown)
    assert len(content(shown.read_text())["state"]["cast"]["modules"]) == 6
    asked = ("walk", "crab", "--duration", 0.1, "--html", walked)
    assert run(*asked).exit_code == 0
    assert content(walked.read_text())["run"]["ground"]["slope"] == [0.0, 0.0]
    again = run(*asked)
    assert again.exit_code == 2
    assert "--force" in again.stderr
    assert run("walk", "crab", "--html", tmp_path / "walk.txt").exit_code == 2


def test_a_stored_run_is_exported_as_a_viewer_with_all_that_is_drawn_of_it(tmp_path):
    body, settings = examples.snake(2), NEW_SETTINGS.edited(duration=0.1)
    scenario = runs.scenario_of(body, settings, {})
    record = runs.perform(runs.RunRequest(scenario, settings, tmp_path, 1), lambda done: None)
    asked = ExportRequest("snake", "snake", body, settings, tmp_path / "1.npz", record)
    stored = json.loads((tmp_path / "1.json").read_text())
    assert mr.Scenario.load(tmp_path / "1.scenario.json") == scenario
    assert 0 < record.took < LONG_S
    assert (record.number, record.status, record.seconds) == (1, "finished", 0.1)
    assert "load" in [tint["key"] for tint in stored["tints"]]  # of the one docking
    shown = content(exports.make("viewer-run", asked, lambda done: None).decode())["run"]
    assert {key: shown[key] for key in stored} == stored  # plots with errors, events, colors
    assert [part["name"] for part in shown["parts"]] == ["m0"]
    still = content(exports.make("viewer", asked, lambda done: None).decode())
    assert len(still["state"]["cast"]["modules"]) == 2


def test_a_body_at_rest_needs_no_plots():
    still, moving = viewer._libraries(False), viewer._libraries(True)
    assert {"vue", "nicegui-scene"} <= still.keys() < moving.keys()
    assert "nicegui-echart" in moving.keys() - still.keys()
    for texts in (still, moving):  # every part that a library asks for is there
        asked = {part for text in texts.values() for part in re.findall(r'from ?"([^"./]+)"', text)}
        assert not [part for part in asked if part.endswith(".js") and part not in texts]


def test_the_time_of_a_run_of_several_parts_is_that_of_the_last():
    body = examples.snake(2)
    model, t = body.model("physical"), np.linspace(0.0, 0.5, 6)
    q = np.zeros((6, model.nq))
    parts = [BodyTrajectory("m0", model, body, s + t, q, q, q) for s in (0.0, 0.5)]
    view = viewer.stored_run_view(mr.Trajectory(tuple(parts)), {})
    assert "2 modules, 1 s" in repr(view)
    assert view.moves
    assert not body.view().moves
    drawn = view._content["run"]["parts"]
    assert [(part["t"][0], part["t"][-1]) for part in drawn] == [(0.0, 0.5), (0.5, 1.0)]
