"""All writers: a failed write says why and leaves the old file as it was."""

import os

import pytest

from modurob import WriteError, examples
from modurob.interop import write_cobra_assembly, write_cobra_modules, write_mjcf, write_urdf
from oracles import complains

WRITERS = [write_urdf, write_mjcf, write_cobra_modules, write_cobra_assembly]
every_writer = pytest.mark.parametrize("write", WRITERS)


@every_writer
@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, write, step):
    path = tmp_path / "it"
    write(examples.crab(), path)
    before = path.read_bytes()

    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with complains(WriteError, "it: cannot be written", "No space left on device"):
        write(examples.nine(), path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["it"]


@every_writer
def test_a_path_that_cannot_be_written_says_so(tmp_path, write):
    with complains(WriteError, "cannot be written", "there is no folder"):
        write(examples.crab(), tmp_path / "missing" / "it")
    (tmp_path / "it").mkdir()
    with complains(WriteError, "cannot be written"):
        write(examples.crab(), tmp_path / "it")
    assert [entry.name for entry in tmp_path.iterdir()] == ["it"]


@every_writer
def test_a_written_file_replaces_the_old_one(tmp_path, write):
    write(examples.nine(), tmp_path / "it")
    nine = (tmp_path / "it").read_bytes()
    write(examples.crab(), tmp_path / "it")
    assert (tmp_path / "it").read_bytes() != nine
    write(examples.nine(), str(tmp_path / "it"))
    assert (tmp_path / "it").read_bytes() == nine
