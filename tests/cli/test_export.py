"""``modurob export`` as its users see it."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

import modurob as mr
from modurob.cli import cli
from modurob.compiler import emit_c
from modurob.compiler.emit_c import c_sources

FILES = ("crab.h", "crab.c", "crab_test.c")


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Run ``modurob export`` in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*args: str) -> Result:
        return CliRunner().invoke(cli, ["export", *args])

    return run


def is_refused(result: Result, *words: str, code: int = 2) -> None:
    """One line on stderr that holds the words, nothing on stdout."""
    assert result.exit_code == code
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    for word in words:
        assert word in line


def test_export_writes_what_the_compiler_makes(call, tmp_path):
    result = call("crab", "--c")
    assert result.exit_code == 0, result.stderr
    assert "wrote crab.h, crab.c, crab_test.c" in result.output
    sources = c_sources(mr.examples.crab().model(), "crab")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == sources.files()
    assert f"inverse_dynamics: {sources.operations['inverse_dynamics']['add']} add" in result.output


def test_export_passes_its_options_on(call, tmp_path):
    mr.examples.crab().save("mine.json")
    options = ("--float", "--name", "leg", "--hinges", "physical", "--base", "free")
    assert call("mine.json", "--c", *options, "--output", "firmware").exit_code == 0
    model = mr.examples.crab().model("physical", base="free")
    expected = c_sources(model, "leg", "float32").files()
    written = {path.name: path.read_text() for path in (tmp_path / "firmware").iterdir()}
    assert written == expected


def test_export_of_a_file_takes_the_names_from_it(call):
    mr.examples.crab().rename({"m3": "claw"}).save("mine.json")
    assert call("mine.json", "--c").exit_code == 0
    with open("mine.h") as header:
        text = header.read()
    assert "claw.hinge" in text
    assert "#define MINE_NQ 3" in text


def test_export_json_is_json_only(call):
    data = json.loads(call("crab", "--c", "--json").output)
    model = mr.examples.crab().model()
    assert data["files"] == list(FILES)
    assert (data["nq"], data["nv"], data["base"], data["hinges"]) == (3, 3, "fixed", "dyad")
    assert data["operations"] == c_sources(model).operations


def test_export_overwrites_only_when_forced(call, tmp_path):
    (tmp_path / "crab.c").write_text("precious")
    is_refused(call("crab", "--c"), "crab.c", "--force")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["precious"]
    assert call("crab", "--c", "--force").exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("crab",), ["--c"]),
        (("lobster", "--c"), ["'lobster'", "crab"]),
        (("crab", "--c", "--output", ""), ["--output"]),
        (("crab", "--c", "--name", "a b"), ["'a b'", "letters", "underscores"]),
        (("crab", "--c", "--name", "x/../y"), ["'x/../y'", "letters"]),
        (("crab", "--c", "--name", ""), ["''", "letters"]),
        (("crab", "--c", "--name", "math"), ["math.h"]),
        (("crab", "--c", "--hinges", "rubber"), ["rubber", "dyad", "physical"]),
        (("crab", "--c", "--base", "wobbly"), ["wobbly", "fixed", "free"]),
        (("double_pendulum", "--c", "--hinges", "dyad"), ["singular", "m2.hinge"]),
        (("crane", "--c", "--base", "free"), ["base='free'"]),
    ],
)
def test_export_refuses_bad_input_and_writes_nothing(call, tmp_path, args, words):
    is_refused(call(*args), *words)
    assert list(tmp_path.iterdir()) == []


def test_export_of_a_file_with_an_odd_name_asks_for_another(call, tmp_path):
    mr.examples.crab().save("crab-2.json")
    is_refused(call("crab-2.json", "--c"), "'crab-2'", "--name")
    assert call("crab-2.json", "--c", "--name", "crab").exit_code == 0


def test_export_reports_what_cannot_be_written(call, tmp_path):
    (tmp_path / "file").write_text("")
    is_refused(call("crab", "--c", "-o", "file"), "file", "not a folder", code=1)
    is_refused(call("crab", "--c", "-o", "no/where"), "cannot be written", code=1)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_interrupting_an_export_is_quiet_and_leaves_nothing(call, tmp_path, monkeypatch):
    def interrupted(path, data):
        if path.suffix == ".c":
            raise KeyboardInterrupt
        path.write_bytes(data)

    monkeypatch.setattr(emit_c, "replace_file", interrupted)
    result = call("crab", "--c", "--output", "firmware")
    assert result.exit_code == 130
    assert result.output.strip() == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "names"),
    [
        ("--urdf", ["crab.urdf"]),
        ("--mjcf", ["crab.xml"]),
        ("--cobra", ["crab_assembly.json", "crab_modules.json"]),
    ],
)
def test_export_writes_for_other_programs(call, tmp_path, option, names):
    result = call("crab", option, "--hinges", "physical", "--output", "out")
    assert result.exit_code == 0, result.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    is_refused(call("crab", option, "--output", "out"), "--force")
    is_refused(call("crab", option, "--float"), "--float", option)


def test_exported_files_describe_the_same_robot(call, tmp_path):
    for option in ("--urdf", "--mjcf", "--cobra"):
        assert call("crab", option, "--hinges", "physical").exit_code == 0
    assert mr.interop.read_urdf("crab.urdf").mass == pytest.approx(6.0)
    assert mr.interop.read_cobra_assembly(
        "crab_assembly.json", "crab_modules.json"
    ).aim().classes == (mr.examples.crab().aim().classes)
    assert "<mujoco" in (tmp_path / "crab.xml").read_text("utf-8")


def test_the_runtime_is_sized_for_the_kinds_of_an_organism(call, tmp_path):
    result = call("arm", "--runtime", "own", "--modules", "5", "--joints", "6", "--float", "--json")
    assert result.exit_code == 0, result.stderr
    files = json.loads(result.stdout)["files"]
    sizes = (tmp_path / "own/include/modurob/sizes.h").read_text()
    for line in ("MR_SINGLE 1", "MR_MAX_MODULES 5", "MR_MAX_JOINTS 6", "MR_MAX_KIND_PORTS 2"):
        assert f"#define {line}\n" in sizes
    assert {"own/Makefile", "own/CMakeLists.txt", "own/src/kernels.c"} <= set(files)
    assert all((tmp_path / file).is_file() for file in files)
    is_refused(call("arm", "--runtime", "own"), "already exists", "--force")


def test_the_runtime_has_room_for_its_organism(call, tmp_path):
    long = mr.examples.snake(20)
    long.save("long.json")
    result = call("long.json", "--runtime", "long", "--json")
    assert result.exit_code == 0, result.output
    found, joints = json.loads(result.stdout), long.model("physical").nv
    assert joints > 12
    assert (found["modules"], found["joints"]) == (20, joints)
    is_refused(
        call("arm", "--runtime", "own", "--modules", "2"), "no room for arm", "has 5 modules"
    )


def test_a_runtime_that_cannot_be_made_is_refused(call, tmp_path):
    is_refused(call("--runtime", "own", "--joints", "300"), "1 to 254 joints, got 300")
    is_refused(call("crab", "--runtime", "own", "--c"), "no other format")
    is_refused(call("crab", "--c", "--joints", "3"), "add --runtime FOLDER")
    for useless in (["--base", "free"], ["--lock", "m0.joint=3"], ["--hinges", "dyad"]):
        is_refused(call("arm", "--runtime", "own", *useless), "no effect with --runtime")
    is_refused(call("--runtime", "--float"), "needs the name of a file, got '--float'")
    is_refused(call("--c"), "name the organism")
    assert not list(tmp_path.iterdir())
