"""Export formats: the right file, in the right place, of the right numbers."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import modurob as mr
from modurob.scenario import exports
from modurob.scenario.exports import FORMATS, ExportRequest, export_format
from modurob.scenario.settings import RunSettings
from oracles import complains


def exported(name, folder, **changes):
    """What a format returns, after a look at the paths that it asks for before it writes them."""
    asked = []

    def check(paths):
        assert not folder.exists() or not any(folder.iterdir())
        asked.extend(paths)

    given = {"settings": RunSettings(hinges="physical"), "check": check, **changes}
    request = ExportRequest("my crab", "leg", mr.examples.crab(), **given)
    facts = FORMATS[name].write(request, folder / f"leg{FORMATS[name].ending}", lambda _: None)
    assert sorted(asked) == sorted(folder.iterdir())
    return facts


@pytest.fixture
def run_file(tmp_path):
    """The file of a run, with its scenario beside it."""
    scenario = mr.Scenario(organism="crab", duration=0.02, integrator="RK4", dt=0.01)
    scenario.run().trajectory.save(tmp_path / "1.npz")
    scenario.save(tmp_path / "1.scenario.json")
    return tmp_path / "1.npz"


XML = {
    "urdf": ("robot", "link", 3),
    "urdf-ros2": ("robot", "ros2_control/joint/command_interface[@name='position']", 2),
    "srdf": ("robot", "group", 1),
    "mjcf": ("mujoco", "actuator/motor", 2),
    "mjcf-servo": ("mujoco", "actuator/position", 2),
}


@pytest.mark.parametrize("name", XML)
def test_files_for_other_programs_have_the_name_and_the_parts_that_are_asked_for(name, tmp_path):
    assert exported(name, tmp_path / "new") is None
    root = ET.parse(tmp_path / "new" / f"leg{FORMATS[name].ending}").getroot()
    tag, parts, least = XML[name]
    assert (root.tag, root.get("name") or root.get("model")) == (tag, "leg")
    assert len(root.findall(parts)) >= least
    assert (root.find("ros2_control") is not None) == (name == "urdf-ros2")
    assert (root.find("sensor") is not None) == (name == "mjcf-servo")


def test_an_organism_is_exported_as_it_is(tmp_path):
    exported("organism", tmp_path / "new")
    assert mr.load(tmp_path / "new" / "leg.json") == mr.examples.crab()


def test_formats_of_several_files_tell_which(tmp_path):
    facts = exported("cobra", tmp_path / "one")
    assert [path.name for path in facts["files"]] == ["leg_modules.json", "leg_assembly.json"]
    for single, real in ((False, "double"), (True, "float")):
        folder = tmp_path / real
        folder.mkdir()
        facts = exported("c", folder, single=single)
        assert sorted(facts["files"]) == sorted(folder.iterdir())
        assert f"typedef {real} leg_real;" in (folder / "leg.h").read_text()
        assert facts["operations"]["mass_matrix"]["mul"] > 10
    assert not ExportRequest("", "", mr.examples.crab(), RunSettings()).single


def test_tables_and_scenarios_are_those_of_the_run(tmp_path, run_file):
    run = mr.Trajectory.load(run_file)
    for name in ("csv", "npz", "scenario"):
        exported(name, tmp_path / name, run_file=run_file)
    assert len((tmp_path / "csv" / "leg.csv").read_text().splitlines()) == 1 + len(run.t)
    np.testing.assert_array_equal(mr.Trajectory.load(tmp_path / "npz" / "leg.npz").q, run.q)
    kept = (tmp_path / "scenario" / "leg.scenario.json").read_bytes()
    assert kept == run_file.with_suffix(".scenario.json").read_bytes()
    run_file.with_suffix(".scenario.json").unlink()
    for name, given in (("scenario", {"run_file": run_file}), ("scenario", {}), ("csv", {})):
        with complains(mr.StateError, "press Run under Move"):
            exported(name, tmp_path / "none", **given)


def test_runs_are_shown_by_the_formats_that_need_one():
    shown = {name for name, form in FORMATS.items() if form.needs_run}
    assert shown == {"plots-svg", "plots-png", "scenario", "csv", "npz", "gif", "mp4"}
    assert export_format("mp4") is FORMATS["mp4"]
    with complains(mr.StateError, "no format 'png': formats are organism, picture-svg"):
        export_format("png")
    with pytest.raises(dataclasses.FrozenInstanceError):
        ExportRequest("", "", mr.examples.crab(), RunSettings()).single = True


@pytest.mark.parametrize(("seconds", "speed"), [(30.0, 1.0), (8.0, 1.0), (45.0, 1.5)])
def test_films_take_half_a_minute_at_most(monkeypatch, tmp_path, seconds, speed):
    made = []

    def film(path, **options):
        path.touch()
        made.append(options)

    parts = [SimpleNamespace(t=np.array([0.0, 0.5, end])) for end in (seconds, 1.0)]
    run = SimpleNamespace(parts=parts, animate=film)
    monkeypatch.setattr(exports, "Trajectory", SimpleNamespace(load=lambda path: run))
    exported("gif", tmp_path / "new", run_file=tmp_path)
    assert callable(made[0].pop("progress"))
    assert made == [{"fps": 20, "speed": speed, "size": 480}]


def test_pictures_plots_and_formulas_have_their_sizes(monkeypatch, tmp_path):
    made = []

    def keep(path, **given):
        path.touch()
        made.append(given)

    run = SimpleNamespace(plot=lambda *what, path, title: keep(path, what=what, title=title))
    monkeypatch.setattr(exports, "Trajectory", SimpleNamespace(load=lambda path: run))
    monkeypatch.setattr(exports, "picture", lambda organism, path, size: keep(path, size=size))
    exported("plots-png", tmp_path / "plots", run_file=tmp_path)
    exported("picture-svg", tmp_path / "picture")
    assert made == [{"what": ("q", "v", "tau", "energy"), "title": "my crab"}, {"size": 1200}]

    def equations(organism, *options, **given):
        made[:] = options, given
        return SimpleNamespace(latex=lambda document: f"whole: {document}")

    monkeypatch.setattr(mr.Organism, "equations", equations)
    exported("latex", tmp_path / "tex")
    assert (tmp_path / "tex" / "leg.tex").read_text() == "whole: True"
    assert made == [
        ("physical", "fixed", (0.0, 0.0, -9.81), {}),
        {"symbols": "all", "limit": 30_000},
    ]


def test_a_folder_that_is_a_file_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    request = ExportRequest("", "leg", mr.examples.crab(), RunSettings())
    with complains(mr.WriteError, "file"):
        FORMATS["urdf"].write(request, tmp_path / "file" / "leg.urdf", print)
