"""The folder of projects and its names."""

import os
import sys
from pathlib import Path

import pytest

from modurob import FileError, WriteError, examples
from modurob.studio.folder import ENDING, Folder, fingerprint, usual_folder
from modurob.studio.project import History, Project, SavedBody, to_bytes

EMPTY = to_bytes(Project())


def test_the_folder_is_that_of_the_variable_or_the_users_own(monkeypatch, tmp_path):
    monkeypatch.setenv("MODUROB_STUDIO", str(tmp_path / "x"))
    assert usual_folder() == tmp_path / "x"
    monkeypatch.setenv("MODUROB_STUDIO", "")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for variable in ("LOCALAPPDATA", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    places = {
        "win32": ("AppData", "Local"),
        "darwin": ("Library", "Application Support"),
        "linux": (".local", "share"),
    }
    for platform, parts in places.items():
        monkeypatch.setattr(sys, "platform", platform)
        assert usual_folder() == tmp_path.joinpath(*parts, "modurob", "studio")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert usual_folder() == tmp_path / "data" / "modurob" / "studio"


def test_a_user_without_a_home_is_told_how_to_name_a_folder(monkeypatch):
    def home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)
    for variable in ("MODUROB_STUDIO", "LOCALAPPDATA", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(FileError, match=r"no home folder.*--folder or .*MODUROB_STUDIO"):
        usual_folder()


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(WriteError, match="file: cannot be written: File exists"):
        Folder(tmp_path / "file")


def test_entries_are_projects_with_names_of_ours_the_latest_first(tmp_path):
    folder = Folder(tmp_path)
    for k, name in enumerate(("old", "new", "middle")):
        folder.write(name, EMPTY)
        os.utime(folder.file(name), (0, [10, 30, 20][k]))
    (tmp_path / f"_hidden{ENDING}").touch()
    (tmp_path / f"a.b{ENDING}").touch()
    (tmp_path / f"folder{ENDING}").mkdir()
    (tmp_path / "other.json").touch()
    assert [tuple(entry) for entry in folder.entries()] == [
        ("new", 30.0), ("middle", 20.0), ("old", 10.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wish", "name"),
    [
        ("my crab", "my crab"), ("a/b\\c:d", "a b c d"), ("  __x-- ", "x"), ("...", "organism"),
        ("", "organism"), ("é" * 70, "é" * 50), ("a" * 49 + "  b", "a" * 49),
    ],
)  # fmt: skip
def test_any_wish_becomes_a_name(tmp_path, wish, name):
    folder = Folder(tmp_path)
    assert folder.clean(wish) == name
    assert folder.file(folder.clean(wish)).parent == folder.path


def test_projects_that_are_not_there_are_told(tmp_path):
    folder = Folder(tmp_path)
    with pytest.raises(FileError, match="there is no project 'x' in"):
        folder.read("x")
    assert not folder.has("x")
    assert folder.stamp("x") is None
    folder.write("x", EMPTY)
    assert folder.has("x")
    assert folder.stamp("x") is not None


def test_runs_are_copied_and_moved_with_their_project(tmp_path):
    folder = Folder(tmp_path)
    folder.write("a", to_bytes(Project(History(SavedBody(examples.snake(1))))))
    folder.copy_runs("a", "b")  # there are none
    assert not folder.runs("b").exists()
    folder.runs("a").mkdir()
    (folder.runs("a") / "1.bin").write_bytes(b"x")
    folder.copy_runs("a", "b")
    assert (folder.runs("b") / "1.bin").read_bytes() == b"x"
    folder.rename("a", "c")
    assert (folder.runs("c") / "1.bin").read_bytes() == b"x"
    assert not folder.runs("a").exists()
    assert not folder.has("a")
    assert folder.read("c").organism == examples.snake(1)


def test_what_the_disk_refuses_is_one_line_with_the_file(tmp_path, monkeypatch):
    folder = Folder(tmp_path)
    folder.write("a", EMPTY)
    folder.runs("a").mkdir()

    def refuse(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copytree", refuse)
    monkeypatch.setattr(Path, "rename", refuse)
    for act in (folder.copy_runs, folder.rename):
        with pytest.raises(WriteError, match=r"b\..*: cannot be written: No space left"):
            act("a", "b")


def test_fingerprints_tell_contents_and_places_apart(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"x")
    other.write_bytes(b"x")
    first = fingerprint(one)
    assert fingerprint(tmp_path / "." / "one") == first
    assert fingerprint(other) != first
    one.write_bytes(b"y")
    assert fingerprint(one) != first
    with pytest.raises(FileError, match="gone: cannot be read: No such file"):
        fingerprint(tmp_path / "gone")


@pytest.mark.parametrize(("name", "fits"), [("x" * 60, True), ("x" * 61, False), ("x ", False)])
def test_names_have_up_to_sixty_characters(tmp_path, name, fits):
    folder = Folder(tmp_path)
    if fits:
        assert folder.file(name).name == f"{name}{ENDING}"
    else:
        with pytest.raises(FileError, match="is no name for a project"):
            folder.file(name)


def test_deleting_what_is_not_there_makes_no_folder(tmp_path):
    folder = Folder(tmp_path)
    assert not folder.delete("x").exists()
    folder.runs("x").mkdir()
    assert [path.name for path in folder.delete("x").iterdir()] == ["x.runs"]


def test_files_of_runs_are_written_beside_those_there_are(tmp_path):
    folder = Folder(tmp_path)
    folder.write_runs("a", {"1.json": b"1"})
    folder.write_runs("a", {"2.json": b"2"})
    assert sorted(path.name for path in folder.runs("a").iterdir()) == ["1.json", "2.json"]
    folder.write_runs("b", {"3.json": b"3"})
    folder.copy_runs("a", "b")
    assert sorted(path.name for path in folder.runs("b").iterdir()) == [
        "1.json", "2.json", "3.json",
    ]  # fmt: skip


def test_stamps_change_with_every_write(tmp_path):
    folder = Folder(tmp_path)
    seen = []
    for _ in range(3):
        folder.write("a", EMPTY)
        seen.append(folder.stamp("a"))
    assert len(set(seen)) == 3
