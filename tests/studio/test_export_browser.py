"""Every format of the export dialog is downloaded in the browser and opened by something else."""

import csv
import io
import json
import re
import shutil
import subprocess
import zipfile
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image, ImageSequence

import modurob as mr
from modurob import Trajectory, examples
from modurob.scenario import exports as formats
from modurob.studio import exports, imports, project, runs
from modurob.studio.folder import Folder
from modurob.studio.project import NEW_SETTINGS
from modurob.studio.studio import Studio

SETTINGS = {"duration": 0.2, "ramp": 0.1}
FRAMES = round(SETTINGS["duration"] * formats.FPS) + 1  # of a film
COMPILER = shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")


@pytest.fixture
def studio(tab):
    """A crab with a run, as it is after Run was pressed."""
    settings = NEW_SETTINGS.edited(**SETTINGS)
    folder = Folder(tab.server.folder)
    name = Studio(folder).free_name("my crab")
    scenario = runs.scenario_of(examples.crab(), settings, {})
    request = runs.RunRequest(scenario, settings, folder.runs(name), 1)
    record = runs.perform(request, lambda _: None)
    return tab.show("my crab", examples.crab(), [record], **SETTINGS)


def test_every_export_opens_elsewhere(studio, tmp_path):
    studio.click("export")
    rows = studio.page.locator("[data-testid^=export-]:has-text('Export')")
    rows.first.wait_for()
    found = rows.evaluate_all("rows => rows.map((row) => row.dataset.testid)")
    offered = {name.removeprefix("export-") for name in found}
    assert offered == {*exports.FORMATS, "project", "archive", "png"} == {*OPENED}
    paths = {}
    for name in OPENED:
        file, data = studio.downloaded(f"export-{name}")
        assert file == f"my crab{ENDINGS[name]}"
        paths[name] = tmp_path / name / file
        paths[name].parent.mkdir()
        paths[name].write_bytes(data)
        if name in exports.FORMATS:
            studio.reads("export-state", f"{file}: {len(data):,} bytes")
    for name, opened in OPENED.items():
        opened(paths[name], studio.page)


# -- what opens them -------------------------------------------------------------------------------


def recorded(path):
    """The run, as the trajectory that was exported beside it has it."""
    return Trajectory.load(path.parents[1] / "npz" / "my crab.npz")


def open_project(path, page):
    assert json.loads(path.read_bytes())["format"] == "modurob-project"
    assert project.read(path).organism == examples.crab()


def open_organism(path, page):
    assert mr.load(path) == examples.crab()


def open_report(path, page):
    page.goto(path.as_uri())
    assert page.locator("h1").inner_text().startswith("my crab")
    assert page.locator("math").count() > 3
    assert "computed torque, wave" in page.locator("body").inner_text()
    loaded = "images => images.map((i) => i.complete && i.naturalWidth > 0)"
    assert all(page.eval_on_selector_all("img", loaded))


def open_svg(path, page):
    page.goto(path.as_uri())
    found = page.evaluate(
        """() => { const root = document.documentElement, box = root.getBBox();
        return [root.localName, document.querySelectorAll('parsererror').length,
                box.width, box.height]; }"""
    )
    assert found[:2] == ["svg", 0]
    assert min(found[2:]) > 50
    not_blank(io.BytesIO(page.screenshot()))


def not_blank(file):
    with Image.open(file) as image:
        assert min(image.size) > 300
        assert len(image.convert("RGB").getcolors(1 << 20)) > 20


def open_image(path, page):
    not_blank(path)


def open_csv(path, page):
    rows = [*csv.reader(io.StringIO(path.read_text()))]
    assert rows[0][:2] == ["time [s]", "q m1.hinge [rad]"]
    numbers, run = np.array(rows[1:], dtype=float), recorded(path)
    assert np.array_equal(numbers[:, 0], run.t)
    assert np.array_equal(numbers[:, 1:4], run.q)


def open_npz(path, page):
    run = Trajectory.load(path)
    assert run.t[-1] == SETTINGS["duration"]
    assert np.ptp(run.q, axis=0).min() > 0


def open_gif(path, page):
    with Image.open(path) as film:
        frames = [np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(film)]
    assert len(frames) == FRAMES
    assert all(np.any(a != b) for a, b in pairwise(frames))


def open_mp4(path, page):
    page.goto(path.as_uri())  # Chromium makes a page with a player of it
    page.wait_for_function("document.querySelector('video')?.readyState >= 2")
    size, duration = page.eval_on_selector("video", "v => [v.videoWidth, v.duration]")
    assert size == formats.FILM_PX
    assert abs(duration - FRAMES / formats.FPS) < 0.5 / formats.FPS


def open_urdf(path, page):
    pin = pytest.importorskip("pinocchio")
    found, model = pin.buildModelFromUrdf(str(path)), examples.crab().model()
    assert (found.nq, found.nv) == (model.nq, model.nv) == (3, 3)
    moving = sum(found.inertias[k].mass for k in range(1, found.njoints))
    fixed = found.inertias[0].mass  # what hangs on the world
    assert moving + fixed == pytest.approx(model.mass.sum(), rel=1e-9)


def open_srdf(path, page):
    root = ElementTree.parse(path).getroot()
    joints = [joint.get("name") for joint in root.find("group")]
    assert tuple(joints) == examples.crab().model().joint_names
    assert root.findall("disable_collisions")


def open_mjcf(path, page):
    mujoco = pytest.importorskip("mujoco")
    found, model = mujoco.MjModel.from_xml_path(str(path)), examples.crab().model()
    assert (found.nq, found.nv) == (model.nq, model.nv) == (3, 3)
    assert found.body_mass.sum() == pytest.approx(model.mass.sum(), rel=1e-9)


def open_c(path, page):
    folder = path.parent / "c"
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    assert {file.name for file in folder.iterdir()} == {
        "my_crab.c", "my_crab.h", "my_crab_test.c",
    }  # fmt: skip
    if COMPILER:
        build = [COMPILER, "-std=c99", "-o", "test", "my_crab.c", "my_crab_test.c", "-lm"]
        subprocess.run(build, cwd=folder, check=True)
        subprocess.run([folder / "test"], check=True, stdout=subprocess.DEVNULL)


def open_cobra(path, page):
    with zipfile.ZipFile(path) as archive:
        archive.extractall(path.parent)
    files = (path.parent / f"my_crab_{what}.json" for what in ("assembly", "modules"))
    assert len(mr.interop.read_cobra_assembly(*files)) == 6


def open_scenario(path, page):
    run = mr.Scenario.load(path).run().trajectory
    assert run.t[-1] == SETTINGS["duration"]


def open_latex(path, page):
    text = path.read_text()
    assert text.count("{") == text.count("}")
    begun, ended = (re.findall(rf"\\{word}{{(.*?)}}", text) for word in ("begin", "end"))
    assert sorted(begun) == sorted(ended)
    assert "document" in begun
    if shutil.which("pdflatex"):
        command = ["pdflatex", "-interaction=nonstopmode", "-draftmode", "-halt-on-error"]
        done = subprocess.run(
            [*command, path.name], cwd=path.parent, capture_output=True, encoding="latin-1"
        )
        assert done.returncode == 0, done.stdout[-2000:]


def open_archive(path, page):
    found = imports.read(path.name, path.read_bytes())
    assert found.project.organism == examples.crab()
    assert [run.number for run in found.project.runs] == [1]
    assert {"1.npz", "1.bin", "1.json"} <= {*found.runs}


def open_viewer(path, page):
    """Without the studio, from the disk."""
    page.goto(path.as_uri())
    page.wait_for_function("window.modurob?.stage?.bodies.cast?.modules.length === 6")


OPENED = {
    "project": open_project,
    "archive": open_archive,
    "organism": open_organism,
    "report": open_report,
    "picture-svg": open_svg,
    "png": open_image,
    "urdf": open_urdf,
    "urdf-ros2": open_urdf,
    "srdf": open_srdf,
    "mjcf": open_mjcf,
    "mjcf-servo": open_mjcf,
    "c": open_c,
    "cobra": open_cobra,
    "scenario": open_scenario,
    "latex": open_latex,
    "npz": open_npz,
    "csv": open_csv,
    "plots-svg": open_svg,
    "plots-png": open_image,
    "gif": open_gif,
    "mp4": open_mp4,
    "viewer": lambda path, page: None,  # the same as below, without a run
    "viewer-run": open_viewer,
}
ENDINGS = {
    "project": ".modurob.json",
    "archive": ".modurob.zip",
    "png": ".png",
    **{name: form.ending for name, form in exports.FORMATS.items()},
}


# -- beside the formulas ---------------------------------------------------------------------------


def texts(data):
    """The files of an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_equations_are_shown_copied_and_exported_and_their_symbols_light_up_the_body(tab):
    tab.show("crab", examples.crab())
    tab.click("mode-understand")
    tab.click("part-equations")
    tab.wait("document.querySelector('[data-testid=formula] math')")
    tab.wait("document.querySelector('[data-testid=formula-state]').innerText.startsWith('M[1,1]')")
    assert "M" in tab.page.locator("[data-testid=formula] math").first.text_content()
    tab.find("entry-M[2,2]").click()
    tab.wait("document.querySelector('[data-testid=formula-state]').innerText.startsWith('M[2,2]')")
    tab.page.locator("[data-testid=formula] [data-module=m3]").first.hover()
    tab.wait("window.modurob.stage.over === 'm3'")

    # all of an entry as LaTeX, all entries as C
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.click("copy-latex")
    tab.page.get_by_text("LaTeX of M[2,2] copied").wait_for()
    copied = tab.page.evaluate("navigator.clipboard.readText()")
    assert copied == "M_{2,2} = " + examples.crab().equations().latex("M[2,2]")
    file, data = tab.downloaded("export-c")
    assert file == f"{tab.name}.zip"
    name = exports.word(tab.name)
    request = exports.ExportRequest(tab.name, name, examples.crab(), NEW_SETTINGS)
    assert texts(data) == texts(exports.make("c", request, lambda _: None))

    tab.click("part-joints")
    tab.page.locator("[data-testid=joints] td[data-joint='m1.hinge']").first.hover()
    tab.wait("window.modurob.stage.axis.visible")
    tab.page.get_by_text("lie on one line").first.wait_for()  # why a hinge is locked
