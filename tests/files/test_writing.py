"""All writers: a failed write names the path, says why, and leaves nothing and no half behind."""

import errno
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

import modurob as mr
from modurob import FileError, WriteError, examples, simulate
from modurob.compiler.emit_c import c_sources
from modurob.drawing import charts
from modurob.interop import (
    write_cobra_assembly,
    write_cobra_modules,
    write_mjcf,
    write_srdf,
    write_urdf,
)
from modurob.modules import files, record
from modurob.scenario.gait_files import GaitRecord
from modurob.search import BodySpace, Genotype
from modurob.sim.output import video
from oracles import complains

ARM = examples.arm("ba")


@pytest.fixture(scope="module")
def run():
    return simulate(ARM.model("physical"), None, None, 0.01, integrator="RK4", organism=ARM)


SCOUT = mr.catalog.get("scout")
GENOTYPE = Genotype.random(BodySpace("backbone", (3, 3)), np.random.default_rng(0))
WRITERS = {  # ending of the file, and what writes it from a run
    "organism": (".json", lambda run, path: ARM.save(path)),
    "record": (".json", lambda run, path: record.write_json(record.Record(1, SCOUT), path)),
    "trajectory": (".npz", lambda run, path: run.save(path)),
    "table": (".csv", lambda run, path: run.to_csv(path)),
    "plot": (".svg", lambda run, path: run.plot("q", path=path)),
    "animation": (".gif", lambda run, path: run.animate(path, fps=2, size=120)),
    "picture of a run": (".png", lambda run, path: run.picture(path, size=120)),
    "picture": (".png", lambda run, path: mr.drawing.picture(ARM, path, size=200)),
    "drawing": (".svg", lambda run, path: mr.drawing.picture(ARM, path, size=200)),
    "urdf": (".urdf", lambda run, path: write_urdf(ARM, path)),
    "mjcf": (".xml", lambda run, path: write_mjcf(ARM, path)),
    "cobra modules": (".json", lambda run, path: write_cobra_modules(ARM, path)),
    "cobra assembly": (".json", lambda run, path: write_cobra_assembly(ARM, path)),
    "srdf": (".srdf", lambda run, path: write_srdf(ARM, path, samples=1)),
    "viewer": (".html", lambda run, path: ARM.view().save(path)),
    "scenario": (".json", lambda run, path: mr.Scenario(organism=ARM).save(path)),
    "gait": (".json", lambda run, path: GaitRecord(motion="wave").save(path)),
    "genotype": (".json", lambda run, path: GENOTYPE.save(path)),
    "code": ("", lambda run, path: c_sources(ARM.model(), "it", "float64").write(path)),
}
every_writer = pytest.mark.parametrize("writer", WRITERS.values(), ids=WRITERS)
file_writers = pytest.mark.parametrize(
    "writer", [w for w in WRITERS.values() if w[0]], ids=[n for n in WRITERS if WRITERS[n][0]]
)


@every_writer
@pytest.mark.parametrize("path", ["", "a\0b", "half of \ud800", b"bytes", 3])
def test_what_is_no_path_is_refused(writer, run, path):
    if isinstance(path, str) and path:
        path += writer[0]
    with complains(FileError, "a file is given by its path"):
        writer[1](run, path)


@file_writers
def test_a_folder_is_not_written_over(writer, run, tmp_path):
    path = tmp_path / f"it{writer[0]}"
    path.mkdir()
    with complains(WriteError, path.name, "cannot be written: it is a folder, not a file"):
        writer[1](run, path)
    assert list(tmp_path.iterdir()) == [path]
    with complains(WriteError, "cannot be written: it is a folder, not a file"):
        files.write_file(".", b"")


@file_writers
def test_a_missing_folder_is_named(writer, run, tmp_path):
    path = tmp_path / "missing" / f"it{writer[0]}"
    with complains(WriteError, path.name, "cannot be written: there is no folder", "missing"):
        writer[1](run, path)
    assert not list(tmp_path.iterdir())


@file_writers
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such files")
def test_pipes_and_devices_are_not_replaced(writer, run, tmp_path):
    path = tmp_path / f"it{writer[0]}"
    os.mkfifo(path)
    with complains(WriteError, path.name, "cannot be written: it is a named pipe, not a file"):
        writer[1](run, path)
    assert path.is_fifo()
    with complains(WriteError, "/dev/null: cannot be written: it is a device, not a file"):
        files.write_file("/dev/null", b"")


@every_writer
def test_a_folder_without_permission_is_said(writer, run, tmp_path, monkeypatch):
    def forbidden(*_args, **_options):
        raise PermissionError(errno.EACCES, "Permission denied")

    make = writer[1]
    path = tmp_path / f"it{writer[0]}"
    with complains(WriteError, path.name, "cannot be written: Permission denied"):
        monkeypatch.setattr(tempfile, "mkstemp", forbidden)
        make(run, path)
    assert not list(tmp_path.iterdir())


class HalfWritten:
    """A file on a disk that becomes full in the middle."""

    def __init__(self, handle):
        self.handle = handle

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.handle)

    def write(self, content):
        os.write(self.handle, content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")


@every_writer
@pytest.mark.parametrize("there", [False, True], ids=["new", "old"])
def test_a_full_disk_leaves_the_old_file_and_no_half_of_the_new(
    writer, run, tmp_path, monkeypatch, there
):
    path = tmp_path / f"it{writer[0]}"
    if there and writer[0]:
        path.write_bytes(b"old")
    monkeypatch.setattr(os, "fdopen", lambda handle, *_args, **_options: HalfWritten(handle))
    with complains(WriteError, path.name, "cannot be written: No space left on device"):
        writer[1](run, path)
    left = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert left == ({path.name: b"old"} if there and writer[0] else {})


def test_an_animation_without_room_for_ffmpeg_names_its_path(run, tmp_path, monkeypatch):
    def full(*_args, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(video, "ffmpeg", lambda: "ffmpeg")
    monkeypatch.setattr(tempfile, "TemporaryDirectory", full)
    with complains(WriteError, "it.mp4: cannot be written: No space left on device"):
        run.animate(tmp_path / "it.mp4", fps=2, size=120)
    assert not list(tmp_path.iterdir())


def test_a_name_as_long_as_the_system_allows_can_be_written(tmp_path):
    path = tmp_path / ("x" * 250 + ".json")
    ARM.save(path)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_charts_say_what_is_wrong_before_they_are_drawn():
    with complains(WriteError, "cannot be written: there is no folder"):
        charts.check_ending(Path("missing") / "it.svg", "plots")
