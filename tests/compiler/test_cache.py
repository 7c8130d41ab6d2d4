"""Compiled code outlives the process, and a broken cache is never worse than none."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# What a fresh process compiles and answers. `compiled` is False for code from the disk.
SCRIPT = """
import json
import numpy as np
from modurob import examples
from modurob.compiler import jit
model = examples.crab().model()
q = np.array([0.1, -0.2, 0.3])
tau = model.inverse_dynamics(q, 2 * q, 3 * q)
made = [library.compiled for library in jit._libraries.values()]
print(json.dumps({"tau": tau.tolist(), "made": made}))
"""
SOURCE = Path(__file__).parents[2] / "src"


NO_PASSWD_ENTRY = """
import pwd
def getpwuid(uid):
    raise KeyError(f"getpwuid(): uid not found: {uid}")
pwd.getpwuid = getpwuid
"""


def start(cache, before="", cwd=None, **variables):
    environment = {**os.environ, "MODUROB_CACHE_DIR": str(cache), **variables}
    environment = {name: value for name, value in environment.items() if value is not None}
    paths = [str(SOURCE), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", before + SCRIPT],
        env=environment, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(process):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert not err
    return json.loads(out)


def fresh_process(cache, **options):
    return finish(start(cache, **options))


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A filled cache, and what the process that filled it answered."""
    cache = tmp_path_factory.mktemp("filled")
    return cache, fresh_process(cache)


def code_files(cache):
    return sorted(cache.glob("*.o"))


def copied(cache, to):
    to.mkdir()
    for path in code_files(cache):
        (to / path.name).write_bytes(path.read_bytes())
    return to


def test_the_first_process_compiles_and_the_second_does_not(first):
    cache, answer = first
    assert answer["made"]
    assert all(answer["made"])
    assert len(code_files(cache)) == len(answer["made"])
    assert [path for path in cache.iterdir() if path.suffix != ".o"] == []
    second = fresh_process(cache)
    assert second["tau"] == answer["tau"]
    assert len(second["made"]) == len(answer["made"])
    assert not any(second["made"])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda code: b"",
        lambda code: code[: len(code) // 2],
        lambda code: code[:200] + bytes([code[200] ^ 1]) + code[201:],
        lambda code: code + b"x",
    ],
    ids=["empty", "cut off", "one bit", "one byte more"],
)
def test_a_spoiled_file_is_compiled_again_and_mended(first, tmp_path, spoil):
    cache, answer = first
    broken = copied(cache, tmp_path / "broken")
    good = {path.name: path.read_bytes() for path in code_files(broken)}
    for path in code_files(broken):
        path.write_bytes(spoil(path.read_bytes()))
    again = fresh_process(broken)
    assert again["tau"] == answer["tau"]
    assert all(again["made"])
    assert {path.name: path.read_bytes() for path in code_files(broken)} == good


def test_a_folder_that_cannot_be_written_only_costs_time(first, tmp_path):
    _, answer = first
    file = tmp_path / "file"
    file.write_text("in the way")
    blocked = fresh_process(file / "cache")
    assert blocked["tau"] == answer["tau"]
    assert all(blocked["made"])
    assert file.read_text() == "in the way"


def test_files_that_cannot_be_read_only_cost_time(first, tmp_path):
    cache, answer = first
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    for path in code_files(cache):
        (blocked / path.name).mkdir()  # a folder where the code should be
    found = fresh_process(blocked)
    assert found["tau"] == answer["tau"]
    assert all(found["made"])
    assert [path for path in blocked.iterdir() if path.is_file()] == []  # nothing half written


def test_two_processes_may_fill_the_same_cache_at_once(first, tmp_path):
    _, answer = first
    cache = tmp_path / "new" / "and" / "deep"
    both = [finish(process) for process in [start(cache), start(cache)]]
    assert [found["tau"] for found in both] == [answer["tau"]] * 2
    assert len(code_files(cache)) == len(answer["made"])
    assert not any(fresh_process(cache)["made"])


def test_without_a_variable_of_its_own_the_cache_is_where_caches_are(first, tmp_path):
    _, answer = first
    home = tmp_path / "home"
    found = fresh_process(tmp_path, MODUROB_CACHE_DIR=None, XDG_CACHE_HOME=str(home))
    assert found["tau"] == answer["tau"]
    assert len(code_files(home / "modurob")) == len(answer["made"])


def test_an_empty_variable_switches_the_cache_off(first, tmp_path):
    _, answer = first
    home = tmp_path / "home"
    found = fresh_process("", cwd=tmp_path, HOME=str(home), XDG_CACHE_HOME=str(home))
    assert found["tau"] == answer["tau"]
    assert all(found["made"])
    assert list(tmp_path.iterdir()) == []


def test_a_user_without_home_or_passwd_entry_has_no_cache(first, tmp_path):
    _, answer = first
    nowhere = dict.fromkeys(("MODUROB_CACHE_DIR", "XDG_CACHE_HOME", "HOME"))
    found = fresh_process("", before=NO_PASSWD_ENTRY, cwd=tmp_path, **nowhere)
    assert found["tau"] == answer["tau"]
    assert all(found["made"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"MODUROB_CACHE_DIR": "/mine", "XDG_CACHE_HOME": "/theirs"}, "/mine"),
        ({"MODUROB_CACHE_DIR": "", "XDG_CACHE_HOME": "/theirs"}, None),
        ({"XDG_CACHE_HOME": "/theirs"}, "/theirs/modurob"),
        ({"XDG_CACHE_HOME": ""}, "/home/me/.cache/modurob"),
        ({}, "/home/me/.cache/modurob"),
    ],
)
def test_the_folder_of_the_cache_follows_the_variables(monkeypatch, variables, folder):
    from modurob.compiler.jit import cache_folder

    for name in ("MODUROB_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(Path, "home", lambda: Path("/home/me"))
    assert cache_folder() == (None if folder is None else Path(folder))


def test_without_a_home_folder_there_is_no_cache(monkeypatch):
    from modurob.compiler.jit import cache_folder

    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    for name in ("MODUROB_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    assert cache_folder() is None
