"""``modurob studio`` on the command line: help, and errors of one line."""

import socket
import subprocess
import sys

import pytest
from click.testing import CliRunner

from modurob import cli, examples


def run(*arguments):
    return CliRunner().invoke(cli.cli, ["studio", *arguments])


def error_of(result):
    lines = result.stderr.splitlines()
    assert result.exit_code in (1, 2)
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    return lines[0]


def test_help_shows_examples():
    text = run("--help").stdout
    assert "modurob studio crab.json" in text
    assert "--folder" in text


def test_without_the_extra_one_line_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr("modurob.cli.studio.find_spec", lambda name: None)
    result = run()
    assert "pip install 'modurob[studio]'" in error_of(result)
    assert result.exit_code == 2


def test_the_list_of_commands_loads_no_scipy_and_importing_the_studio_no_nicegui():
    code = (
        "import sys, modurob; from modurob.cli import cli; "
        "assert 'simulate' in cli.get_help(cli.make_context('modurob', ['show'])); "
        "print('scipy' in sys.modules); "  # the list of the commands needs none of them
        "import modurob.cli.studio, modurob.studio.session; "
        "print('nicegui' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.split() == ["False", "False"], result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--host", "0.0.0.0"], "set a secret with --token"),
        (["missing.json"], "missing.json: cannot be read"),
        (["--token", "short"], "at least 8 characters"),
        ([""], "needs the name of a file"),
    ],
)
def test_bad_input_is_one_line(tmp_path, monkeypatch, options, message):
    monkeypatch.setattr("modurob.cli.studio.find_spec", lambda name: True)
    result = run("--no-browser", "--port", "0", "--folder", str(tmp_path), *options)
    assert message in error_of(result)
    assert result.exit_code == 2


def test_a_port_in_use_is_told_with_a_way_out(tmp_path, monkeypatch):
    monkeypatch.setattr("modurob.cli.studio.find_spec", lambda name: True)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = run("--no-browser", "--port", str(port), "--folder", str(tmp_path))
    assert "--port 0" in error_of(result)
    assert result.exit_code == 1


def test_a_user_without_a_home_folder_is_asked_for_one(monkeypatch):
    for name in ("HOME", "XDG_DATA_HOME", "MODUROB_STUDIO"):
        monkeypatch.delenv(name, raising=False)

    def getpwuid(uid):
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.setattr("pwd.getpwuid", getpwuid)
    line = error_of(run("--no-browser"))
    for piece in ("no home folder", "--folder", "MODUROB_STUDIO"):
        assert piece in line


def test_the_studio_is_served_as_it_was_asked_for(monkeypatch, tmp_path):
    """The browser is opened unless told otherwise; lines of the server are printed."""
    pytest.importorskip("nicegui")
    from modurob.studio import server

    served = []

    def serve(studio, door, *, show, **given):
        show(f"address {len(served)}")
        served.append((studio.folder.path, door.getsockname()[0], given))

    monkeypatch.setattr(server, "serve", serve)
    examples.crab().save(tmp_path / "my crab.json")
    for k, options in enumerate(((), ("--no-browser", "--token", "secret-secret"))):
        files = [str(tmp_path / "my crab.json")] * k
        done = run("--port", "0", "--folder", str(tmp_path / "projects"), *options, *files)
        assert (done.exit_code, done.stdout) == (0, f"address {k}\n"), done.output
    assert [given[2] for given in served] == [
        {"path": "/", "token": None, "browser": True},
        {"path": "/project/my%20crab", "token": "secret-secret", "browser": False},
    ]
    assert {given[:2] for given in served} == {(tmp_path / "projects", "127.0.0.1")}
