"""Organisms as files: they come back as they were, or with one clear line, and never half."""

import json
import os

import numpy as np
import pytest
from hypothesis import given

from modurob import (
    FileError,
    Organism,
    Scenario,
    WriteError,
    catalog,
    examples,
    load,
    simulate,
)
from modurob.modules import record
from modurob.sim import Trajectory
from oracles import complains, organisms

TEN_MEGABYTES = 10 * 1024 * 1024
TOO_LARGE = 65 * 1024 * 1024


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("organisms")


@given(organism=organisms())
def test_saved_organisms_come_back_as_they_were(folder, organism):
    path = folder / "organism.json"
    organism.save(path)
    again = load(path)
    assert again == organism
    assert hash(again) == hash(organism)
    assert again.base == organism.base
    assert again.modules == organism.modules
    assert [e._replace(column=0) for e in again.dockings] == [
        e._replace(column=0) for e in organism.dockings
    ]
    assert again.aim() == organism.aim()
    np.testing.assert_array_equal(again.base_pose, organism.base_pose)
    for name in organism:
        assert again.kind(name) == organism.kind(name)
        np.testing.assert_array_equal(again.rest_pose(name), organism.rest_pose(name))


@given(organism=organisms(least=4))
def test_rows_and_columns_come_back_after_the_body_has_changed(folder, organism):
    path = folder / "changed.json"
    changed = organism.rebase(organism.modules[-1])
    changed, _ = changed.undock(changed.dockings[-1].child)
    changed.save(path)
    again = load(path)
    assert again == changed
    assert again.modules == changed.modules
    assert again.aim() == changed.aim()


def test_saving_twice_writes_the_same_bytes(tmp_path):
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    examples.crab().save(first)
    load(first).save(second)
    assert first.read_bytes() == second.read_bytes()


def test_a_file_carries_its_own_datasheets(tmp_path):
    organism = examples.snake(3).with_parameters("m1", mass=7.5).with_parameters("m2", size=0.2)
    organism.save(tmp_path / "own.json")
    assert load(tmp_path / "own.json") == organism
    kinds = json.loads((tmp_path / "own.json").read_text())["kinds"]
    assert sorted(kinds) == ["backbone", "backbone-2", "backbone-3"]


def test_a_file_may_name_its_schema(tmp_path):
    path = tmp_path / "crab.json"
    examples.crab().save(path)
    data = json.loads(path.read_text())
    path.write_text(json.dumps({"$schema": "organism.schema.json", **data}))
    assert load(path) == examples.crab()


def test_docking_goes_on_after_loading(tmp_path):
    examples.snake(3).save(tmp_path / "snake.json")
    organism = load(tmp_path / "snake.json").dock("m2", 3, "m3", 4)
    assert organism == examples.snake(4)
    assert organism.aim() == examples.snake(4).aim()


# -- what is no organism ---------------------------------------------------------------------------


@pytest.fixture
def crab_file(tmp_path):
    path = tmp_path / "crab.json"
    examples.crab().save(path)
    return path


def edited(path, **fields):
    data = json.loads(path.read_text()) | fields
    path.write_text(json.dumps({k: v for k, v in data.items() if v is not ...}))
    return path


GARBAGE = {
    "empty": (b"", "not valid JSON at line 1"),
    "half a file": (b'{"format": "modurob-organism", "ver', "not valid JSON at line 1, column"),
    "a list": (b"[1, 2]", 'no "format" field'),
    "a number": (b"3", 'no "format" field'),
    "no format": (b'{"version": 1}', 'no "format" field'),
    "another program's": (b'{"format": "pcb", "version": 1}', "'pcb'", "'modurob-organism'"),
    "a module": (b'{"format": "modurob-module", "version": 1}', "its format is 'modurob-module'"),
    "format of the wrong type": (b'{"format": ["a"], "version": 1}', "expected"),
    "no version": (b'{"format": "modurob-organism"}', "version", "None"),
    "version of words": (b'{"format": "modurob-organism", "version": "1"}', "version", "'1'"),
    "version zero": (b'{"format": "modurob-organism", "version": 0}', "version must be 1, got 0"),
    "version true": (b'{"format": "modurob-organism", "version": true}', "version", "True"),
    "newer version": (b'{"format": "modurob-organism", "version": 2}', "newer", "Update modurob"),
    "nothing more": (b'{"format": "modurob-organism", "version": 1}', "base: field required"),
    "not text": (b"\xff\xfe\x00\x01", "not a text file"),
    "random bytes": (np.random.default_rng(0).bytes(TEN_MEGABYTES), "not a text file"),
    "brackets": (b"[" * TEN_MEGABYTES, "more than 1,000,000 objects and lists"),
    "nested objects": (b'{"a":' * (TEN_MEGABYTES // 5), "more than 1,000,000 objects and lists"),
    "a long number": (b"9" * TEN_MEGABYTES, "a whole number of more than 64 bits"),
    "a long word": (b'{"format": "' + b"x" * TEN_MEGABYTES + b'", "version": 1}', "expected"),
    "zeros": (b"\0" * TEN_MEGABYTES, "not valid JSON"),
}


@pytest.mark.parametrize("case", GARBAGE.values(), ids=GARBAGE)
def test_what_is_no_organism_file_is_refused_in_one_line(tmp_path, case):
    content, *pieces = case
    path = tmp_path / "it.json"
    path.write_bytes(content)
    with complains(FileError, "it.json", *pieces):
        Organism.from_file(path)


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    path = tmp_path / "huge.json"
    with path.open("wb") as stream:
        stream.truncate(TOO_LARGE)  # sparse: takes no room on the disk
    with complains(FileError, "huge.json", f"{TOO_LARGE:,} bytes", "at most"):
        load(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with complains(FileError, "nobody.json", "No such file"):
        load(tmp_path / "nobody.json")
    with complains(FileError, "cannot be read"):
        load(tmp_path)


DOCK = {"parent": "m0", "port": 3, "child": "m1", "child_port": 4}
WRONG_FIELDS = {
    "typo": ({"bases": "m0"}, "bases: no such field"),
    "missing": ({"dockings": ...}, "dockings: field required"),
    "unknown base": ({"base": "m9"}, "'m9'", "not among the modules"),
    "pose of three rows": ({"base_pose": [[1, 0, 0, 0]] * 3}, "base_pose"),
    "pose that is none": ({"base_pose": [[1, 0, 0, 0]] * 4}, "pose"),
    "pose of nothing": ({"base_pose": [[float("nan")] * 4] * 4}, "base_pose[0][0]", "finite"),
    "no modules": ({"modules": []}, "modules"),
    "module twice": ({"modules": [{"name": "m0", "kind": "scout"}] * 2}, "'m0' is there twice"),
    "unknown kind": ({"modules": [{"name": "m0", "kind": "spine"}]}, "'spine'", "not there"),
    "docking of a stranger": ({"dockings": [DOCK | {"child": "m9"}]}, "'m9'", "not among"),
    "docked twice": ({"dockings": [DOCK, DOCK | {"port": 2}]}, "'m1' is docked twice", "loop"),
    "base docked": ({"dockings": [DOCK | {"child": "m0", "parent": "m1"}]}, "'m0'", "loop"),
    "not connected": ({"dockings": [DOCK]}, "not connected to the base", "m2, m3, m4, m5"),
    "no such port": ({"dockings": [DOCK | {"port": 6}]}, "no port 6 on 'm0' (scout)"),
    "turn not allowed": ({"dockings": [DOCK | {"turn": 90}]}, "turn 90 is not allowed"),
    "port of the wrong type": ({"dockings": [DOCK | {"port": 3.0}]}, "dockings[0].port"),
    "many mistakes": ({"modules": [{"nam": "m0"}] * 5000}, "modules[0].name: field required"),
    "impossible datasheet": (
        {"kinds": {"scout": {"name": "scout", "symbol": "S", "size": -1}}},
        "kinds.scout",
        "size",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG_FIELDS.values(), ids=WRONG_FIELDS)
def test_wrong_fields_of_an_organism_file_are_named(crab_file, case):
    fields, *pieces = case
    with complains(FileError, "crab.json", *pieces):
        load(edited(crab_file, **fields))


# -- writing ---------------------------------------------------------------------------------------


def test_saving_into_a_missing_folder_says_so(tmp_path):
    with complains(WriteError, "crab.json", "cannot be written", "there is no folder"):
        examples.crab().save(tmp_path / "missing" / "crab.json")


def test_saving_over_a_folder_says_so_and_leaves_nothing_behind(tmp_path):
    (tmp_path / "crab.json").mkdir()
    with complains(WriteError, "crab.json", "cannot be written"):
        examples.crab().save(tmp_path / "crab.json")
    assert [entry.name for entry in tmp_path.iterdir()] == ["crab.json"]


@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(crab_file, monkeypatch, step):
    before = crab_file.read_bytes()

    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with complains(WriteError, "cannot be written", "No space left on device"):
        examples.snake(3).save(crab_file)
    assert crab_file.read_bytes() == before
    assert [entry.name for entry in crab_file.parent.iterdir()] == [crab_file.name]


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(crab_file, monkeypatch):
    before = crab_file.read_bytes()

    def interrupt(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        examples.snake(3).save(crab_file)
    assert crab_file.read_bytes() == before
    assert [entry.name for entry in crab_file.parent.iterdir()] == [crab_file.name]


def test_saved_files_follow_the_umask(tmp_path):
    old = os.umask(0o022)
    try:
        examples.snake(1).save(tmp_path / "it.json")
    finally:
        os.umask(old)
    assert (tmp_path / "it.json").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_file_is_refused_or_read_but_never_crashes(crab_file, seed):
    rng = np.random.default_rng(seed)
    content = bytearray(crab_file.read_bytes())
    for _ in range(1 + seed % 4):
        at = int(rng.integers(len(content)))
        if rng.random() < 0.5:
            content[at] = rng.integers(256)
        else:
            del content[at : at + int(rng.integers(1, 30))]
    crab_file.write_bytes(bytes(content))
    try:
        load(crab_file)
    except FileError as error:
        complaint = str(error)
    else:
        complaint = "none"
    assert len(complaint.splitlines()) == 1


# -- one function for all files --------------------------------------------------------------------


def test_load_returns_what_a_file_holds(tmp_path):
    crab, scout = examples.crab(), catalog["scout"]
    crab.save(tmp_path / "crab.json")
    (tmp_path / "scout.json").write_text(scout.model_dump_json())
    (tmp_path / "memory").write_bytes(record.encode(scout, 7))
    record.write_json(record.Record(7, scout), tmp_path / "memory.json")
    model = crab.model()
    for name in ("run.npz", "run.data"):
        simulate(model, None, None, 0.01).save(tmp_path / name)
    scenario = Scenario(organism=crab, motion="hold", controller="computed-torque")
    scenario.save(tmp_path / "hold.json")
    assert load(tmp_path / "crab.json") == crab
    assert load(tmp_path / "scout.json") == scout
    for name in ("memory", "memory.json"):
        assert (load(tmp_path / name).uid, load(tmp_path / name).kind) == (7, scout)
    for name in ("run.npz", "run.data"):
        assert isinstance(load(tmp_path / name), Trajectory)
    assert load(tmp_path / "hold.json") == scenario
    assert scenario.controller == "ComputedTorque"  # both spellings of a law name it


def test_load_refuses_other_files_and_lists_the_formats(tmp_path):
    for content, found in (
        (b"[1]", 'it has no "format" field'),
        (b'{"format": "pcb"}', "its format is 'pcb'"),
        (b'{"format": 5}', "its format is 5"),
        (b'{"format": ["modurob-organism"]}', "its format is ['modurob-organism']"),
    ):
        (tmp_path / "it.json").write_bytes(content)
        with complains(
            FileError, "it.json", f"not a modurob file: {found}; formats are modurob-organism"
        ):
            load(tmp_path / "it.json")
    (tmp_path / "it.json").write_text('{"format": "modurob-project", "version": 1}')
    with complains(FileError, "it.json", "open it with 'modurob studio"):
        load(tmp_path / "it.json")
    (tmp_path / "it.json").write_text('{"format": "modurob-record", "version": 2}')
    with complains(FileError, "it.json", "newer modurob"):
        load(tmp_path / "it.json")
