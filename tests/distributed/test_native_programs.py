"""Programs in C: built once from the right sources, and clear words when they cannot be."""

import os
import shlex
from pathlib import Path

import pytest

from modurob import StateError
from modurob.distributed import native
from oracles import complains


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """A compiler that keeps its arguments and the sources it is given, and a cache of its own."""
    place = tmp_path / "bin"
    place.mkdir()
    gcc, here = place / "gcc", shlex.quote(str(tmp_path))
    gcc.write_text(
        f'#!/bin/sh\necho "$@" >> {here}/log\n'
        f'[ -e {here}/bad ] && echo "no room" >&2 && exit 1\n'
        'for each in "$@"; do case $each in *kernels.c) cp "$each" ' + f"{here}; esac; done\n"
        'while [ "$1" != -o ]; do shift; done\necho made > "$2"\n'
    )
    gcc.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("MODUROB_CACHE_DIR", str(tmp_path / "cache" / "deep"))
    native.runtime_kernels()  # not part of what is tested
    return tmp_path


def calls(place: Path) -> list[list[str]]:
    return [line.split() for line in (place / "log").read_text().splitlines()]


def test_a_module_is_built_once_with_the_limits_of_the_protocol(compiler):
    program = Path(native.module_program.__wrapped__())
    assert program.parent == compiler / "cache" / "deep"
    assert program.name.startswith("bus_module_")
    assert program.read_text() == "made\n"
    assert native.module_program.__wrapped__() == str(program)
    (words,) = calls(compiler)
    assert words[:3] == ["-std=c99", "-O1", "-ffp-contract=off"]  # the arithmetic of Python
    assert {"-DMR_BUS_MAX_PORTS=16", "-DMR_BUS_MAX_RECORD=1048576", "-lm"} <= {*words}
    files = [Path(word) for word in words if word.endswith(".c")]
    assert all(file.is_file() for file in files)
    names = {file.name for file in files}
    assert {"crc.c", "bus_node.c", "bus_secure.c", "module.c", "json.c", "process.c"} <= names
    assert not names & {"coordinator.c", "kernels.c", "main.c"}
    assert (native.FIRMWARE / "include").is_dir()
    assert f"-I{native.FIRMWARE / 'include'}" in words


def test_a_coordinator_has_the_kernels_and_room_for_a_robot(compiler):
    program = Path(native.coordinator_program.__wrapped__())
    assert program.name.startswith("bus_coordinator_")
    (words,) = calls(compiler)
    names = {Path(word).name for word in words}
    assert {f"{name}.c" for name in native.OF_COORDINATOR} | {"kernels.c", "coordinator.c"} <= names
    assert {"-DMR_MAX_MODULES=64", "-DMR_MAX_JOINTS=96", "-DMR_BUS_MAX_RECORD=16384"} <= {*words}
    assert (compiler / "kernels.c").read_text() == native.runtime_kernels().source


def test_other_flags_or_sources_are_another_program(compiler):
    built = {
        native._built("module", native.sources(), sizes, generated)
        for sizes, generated in (
            (native.SIZES, {}), (native.SIZES | {"MR_BUS_MAX_PORTS": 17}, {}),
            (native.SIZES, {"kernels.c": "int x;"}), (native.SIZES, {"kernels.c": "int y;"}),
        )
    }  # fmt: skip
    assert len(built) == len(calls(compiler)) == 4


def test_what_cannot_be_built_is_one_line(compiler, monkeypatch):
    (compiler / "bad").touch()
    with complains(StateError, "gcc cannot build a module: no room"):
        native.module_program.__wrapped__()
    assert not [x for x in (compiler / "cache" / "deep").iterdir() if x.is_file()]
    (compiler / "bad").unlink()
    monkeypatch.setenv("MODUROB_CACHE_DIR", str(compiler / "log" / "below"))
    with complains(StateError, "native programs cannot be built", "Not a directory"):
        native.module_program.__wrapped__()
    monkeypatch.setenv("PATH", str(compiler))
    with complains(StateError, "none of gcc, clang, cc is on the PATH", "install gcc"):
        native.compiler()


def test_without_a_cache_a_program_lies_in_a_folder_that_goes_with_this_process(
    compiler, monkeypatch
):
    monkeypatch.setenv("MODUROB_CACHE_DIR", "")
    monkeypatch.setattr("tempfile.tempdir", str(compiler))
    at_exit = []
    monkeypatch.setattr(
        "atexit.register", lambda *given, **options: at_exit.append((given, options))
    )
    program = Path(native.module_program.__wrapped__())
    assert program.parent.parent == compiler
    (((remove, folder), options),) = at_exit
    assert folder == program.parent
    remove(folder, **options)
    assert not folder.exists()
    remove(folder, **options)  # it may be gone
