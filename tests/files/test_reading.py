"""All readers: what is no file of theirs is refused at once, in one line."""

import json
import os
import signal
import socket
import stat
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

import modurob as mr
from modurob import FileError, examples
from modurob.distributed.bus import motions
from modurob.interop import read_cobra_assembly, read_cobra_modules, read_urdf
from modurob.modules import files, record
from modurob.scenario.gait_files import GaitRecord
from modurob.search import EvolutionRecord, Genotype
from modurob.sim import Trajectory
from modurob.studio import folder, project
from oracles import complains

READERS = {
    "module": mr.ModuleType.from_file,
    "organism": mr.Organism.from_file,
    "any": mr.load,
    "trajectory": Trajectory.load,
    "project": project.read,
    "source of a project": folder.fingerprint,
    "record": record.read_json,
    "urdf": read_urdf,
    "cobra modules": read_cobra_modules,
    "cobra assembly": lambda path: read_cobra_assembly(path, {}),
    "scenario": mr.Scenario.load,
    "gait": GaitRecord.load,
    "genotype": Genotype.from_file,
    "search": EvolutionRecord.load,
    "table": lambda path: motions.read("csv", path, examples.arm("b").model("physical")),
}
every_reader = pytest.mark.parametrize("read", READERS.values(), ids=READERS)
PATIENCE_S = 5.0  # a reader that opens a pipe waits forever


@contextmanager
def in_time():
    """The block ends by itself."""

    def late(*_):
        raise AssertionError(f"not refused within {PATIENCE_S} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@every_reader
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
def test_pipes_devices_sockets_and_folders_are_refused_at_once(read, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as listener, in_time():
        listener.bind("socket")
        for name, piece in (
            ("pipe", "a named pipe, not a file"),
            ("socket", "a socket, not a file"),
            ("/dev/zero", "a device, not a file"),
            (str(tmp_path), "a folder, not a file"),
            ("nothing", "No such file"),
        ):
            with complains(FileError, name, "cannot be read", piece):
                read(Path(name))


@every_reader
@pytest.mark.parametrize("path", ["", "a\0b", "half of \ud800", b"bytes", None, 3])
def test_what_is_no_path_is_refused(read, path):
    with complains(FileError, "a file is given by its path"):
        read(path)


@every_reader
def test_a_file_that_is_too_large_is_not_read(read, tmp_path):
    path = tmp_path / "large"
    with path.open("wb") as stream:
        stream.truncate(8 * 10**9 + 1)  # sparse: takes no room on the disk
    with complains(FileError, "large", "8,000,000,001 bytes", "at most"):
        read(path)


def test_a_file_that_grows_while_it_is_read_is_not_read_whole(tmp_path, monkeypatch):
    path = tmp_path / "growing"
    path.write_bytes(b"x" * 100)
    small = os.stat_result((stat.S_IFREG, 0, 0, 1, 0, 0, 5, 0, 0, 0))
    monkeypatch.setattr(Path, "stat", lambda *_args, **_options: small)
    with complains(FileError, "growing", "more than 10 bytes"):
        files.read_bytes(path, largest=10)


# -- documents -------------------------------------------------------------------------------------

ODD_VALUES = {
    "NaN": "a number must be finite, got nan",
    "-Infinity": "a number must be finite, got -inf",
    "1e999": "a number must be finite, got inf",
    "9" * 30: "a whole number of more than 64 bits",
    str(2**64): "a whole number of more than 64 bits",
    "-" + "9" * 5000: "a whole number of more than 64 bits",
    "[" * 60 + "]" * 60: "nested more than 50 deep",
    "[" * 100_000 + "]" * 100_000: "nested more than 50 deep",
    '"\\ud800"': "half a character",
    '{"\\ud800": 1}': "half a character",
    '{"a": 1, "b": 2, "a": 3}': "field 'a' is there twice",
}


@pytest.mark.parametrize(("value", "piece"), ODD_VALUES.items(), ids=lambda text: text[:12])
def test_values_that_cannot_be_written_again_are_refused(tmp_path, value, piece):
    path = tmp_path / "it.json"
    path.write_text(f'{{"format": "modurob-module", "version": 1, "deep": [0, {{"x": {value}}}]}}')
    with complains(FileError, "it.json", piece):
        files.read_document(path, "modurob-module", 1)


def test_whole_numbers_of_64_bits_are_read():
    assert files.parse_json(f"[{2**64 - 1}, {1 - 2**64}]", "it") == [2**64 - 1, 1 - 2**64]


def test_the_place_of_a_refused_value_is_named(tmp_path):
    path = tmp_path / "it.json"
    path.write_text('{"format": "modurob-module", "version": 1, "deep": [0, {"x": [1, NaN]}]}')
    with complains(FileError, "it.json: deep[1].x[1]: a number must be finite, got nan"):
        files.read_document(path, "modurob-module", 1)


def test_an_object_of_very_many_fields_is_refused():
    text = json.dumps(dict.fromkeys(map(str, range(files.MOST_FIELDS + 1)), 0))
    with complains(FileError, "it: ", "100,001 fields; at most 100,000"):
        files.parse_json(text, "it")


def test_a_document_of_very_many_parts_is_refused_before_it_is_parsed(monkeypatch):
    monkeypatch.setattr(json, "loads", None)
    for part in ("[],", "{},"):
        with complains(FileError, "it: more than 1,000,000 objects and lists"):
            files.parse_json(f"[{part * files.MOST_PARTS}0]", "it")


def test_a_robot_of_very_many_elements_is_refused(tmp_path):
    path = tmp_path / "it.urdf"
    path.write_text(f"<robot>{'<a/>' * 250_000}</robot>")
    with complains(FileError, "it.urdf", "more than 200,000 elements"):
        read_urdf(path)


def test_an_organism_of_very_many_kinds_is_refused_at_once(tmp_path):
    path = tmp_path / "it.json"
    examples.crab().save(path)
    data = json.loads(path.read_text())
    data["kinds"] = {str(k): {} for k in range(10_001)}
    path.write_text(json.dumps(data))
    with complains(FileError, "it.json", "kinds: 10,001 kinds; at most 10,000"):
        mr.load(path)


@pytest.mark.parametrize("name", ["modules", "moduleOrder", "moduleConnection"])
def test_a_cobra_file_of_many_mistakes_is_refused_in_time(tmp_path, name):
    path = tmp_path / "it.json"
    path.write_text(
        json.dumps({"moduleOrder": ["a"], "moduleConnection": [], name: [{}] * 150_000})
    )
    read = read_cobra_modules if name == "modules" else lambda p: read_cobra_assembly(p, {})
    with in_time(), complains(FileError, "it.json", name):
        read(path)


ODD_TOML = {
    "x = nan": "x: a number must be finite",
    "x = 1e999": "x: a number must be finite",
    "x = 0x" + "F" * 20: "x: a whole number of more than 64 bits",
    "x = " + "9" * 5000: "a whole number of more than 64 bits",
    "x = " + "[" * 5000 + "]" * 5000: "nested more than 50 deep",
    ".".join("a" * 100_000) + " = 1": "a TOML key of more than 32 parts",
    "[a" + ' . "a b"' * 40 + "]": "a TOML key of more than 32 parts",
    "x = 1\nx = 2": "not valid TOML",
    "\ufeffx = 1": "not valid TOML",
}


@pytest.mark.parametrize(("text", "piece"), ODD_TOML.items(), ids=lambda text: text[:12])
def test_odd_toml_is_refused_in_one_line_and_at_once(tmp_path, text, piece):
    path = tmp_path / "it.toml"
    path.write_text(text, encoding="utf-8")
    with in_time(), complains(FileError, "it.toml", piece):
        files.read_document(path, "modurob-module", 1)


def test_numbers_with_points_are_no_long_keys(tmp_path):
    path = tmp_path / "it.toml"
    line = "x = [" + ", ".join(["0.5"] * 100) + "]  # " + "1.5 " * 50
    path.write_text(f'format = "modurob-module"\nversion = 1\n{line}\n')
    assert len(files.read_document(path, "modurob-module", 1)["x"]) == 100


def test_names_with_line_breaks_give_errors_of_one_line(tmp_path):
    path = tmp_path / "it.json"
    examples.crab().save(path)
    data = json.loads(path.read_text())
    data["base"] = "a\nb\u2028c" + "x" * 5000
    path.write_text(json.dumps(data))
    with complains(FileError, "it.json", "the base 'a\\nb\\u2028cxxx", "not among the modules"):
        mr.load(path)


def test_a_list_of_many_mistakes_is_refused_after_the_first(tmp_path):
    path = tmp_path / "it.json"
    examples.crab().save(path)
    data = json.loads(path.read_text())
    data["modules"] = [{}] * 50_000
    data["dockings"] = [{}] * 50_000
    path.write_text(json.dumps(data))
    with in_time(), complains(FileError, "modules[0].name: field required"):
        mr.load(path)


# -- projects --------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["NaN", "1e999", '"\\udc00"'])
def test_a_project_that_could_not_be_saved_again_is_refused(tmp_path, value):
    past = [project.HistoryStep("grow", project.SavedBody(examples.nine()))]
    whole = project.Project(history=project.History(project.SavedBody(examples.crab()), past, []))
    data = json.loads(project.to_bytes(whole))
    data["past"][0]["organism"]["base_pose"][0][0] = "@"
    path = tmp_path / "a.modurob.json"
    path.write_text(json.dumps(data).replace('"@"', value))
    with complains(FileError, "a.modurob.json", "past[0].organism.base_pose[0][0]"):
        project.read(path)
