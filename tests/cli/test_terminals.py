"""The command line on terminals that are narrow, know ASCII only, or are no terminals."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from rich.console import Console
from rich.text import Text

from modurob import ModuleType, Organism, catalog, examples
from modurob.cli import COMMANDS, cli, organisms, output
from modurob.cli.characters import ASCII, forgive_narrow_encodings
from modurob.scenario.gait_files import GaitRecord
from oracles import ARM

LIMIT = 60  # seconds; a command takes one
MARKUP = "[red]odd[/] :smile: [/]"
QUICK = {
    "show": (),
    "simulate": ("--duration", "0.1"),
    "control": (),
    "verify": ("--states", "1"),
    "balance": ("--duration", "0.1"),
}


@pytest.fixture
def odd(tmp_path, monkeypatch):
    """An organism whose title and letters look like markup, in a file of the working folder."""
    monkeypatch.chdir(tmp_path)
    kind = ModuleType.model_validate({**catalog["backbone"].model_dump(), "symbol": "["})
    organism = Organism.start(kind, "Größe").dock("Größe", 3, "m1", 4, kind=kind)
    organism.save(tmp_path / f"{MARKUP.replace('/', '')}.json")
    return f"{MARKUP.replace('/', '')}"


def run(*args: str, columns: int = 80, **env: str) -> Result:
    return CliRunner(env={"COLUMNS": str(columns), **env}).invoke(cli, list(args))


@pytest.mark.parametrize("command", QUICK)
def test_names_are_shown_as_they_are(odd, command):
    result = run(command, f"{odd}.json", *QUICK[command], columns=40)
    assert result.exit_code == 0, result.output
    assert odd in " ".join(result.stdout.split())


@pytest.mark.parametrize("name", ["[red]no[/]", "[/]", ":smile:"])
def test_errors_show_names_as_they_are(name):
    result = run("show", name)
    assert result.exit_code == 2
    assert f"'{name}' is neither a file nor an example" in result.stderr


def test_a_bar_shows_its_title_as_it_is_and_nothing_in_a_log(monkeypatch):
    told = io.StringIO()
    shown = {"file": told, "markup": False, "emoji": False, "width": 80}
    monkeypatch.setattr(output, "console", lambda stderr: Console(force_terminal=True, **shown))
    with output.bar(MARKUP, True) as done:
        done(0.5)
    assert MARKUP in told.getvalue()
    assert "50%" in told.getvalue()
    told.truncate(0)
    with output.bar(MARKUP, False) as done:
        done(0.5)
    monkeypatch.setattr(output, "console", lambda stderr: Console(force_terminal=False, **shown))
    with output.bar(MARKUP, True) as done:
        done(0.5)
    assert told.getvalue() == ""


def test_consoles_interpret_nothing():
    for stderr in (False, True):
        console = output.console(stderr)
        assert console.stderr is stderr
        assert console.render_str(MARKUP).plain == MARKUP
        assert not console.render_str("12 m, 'text', True, /tmp/x").spans  # no colors of its own
        assert console.soft_wrap is False


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("command", ["simulate", "control", "verify"])
def test_nothing_is_cut_at_any_width(command, columns):
    result = run(command, "crab", *QUICK[command], columns=columns)
    assert result.exit_code == 0, result.output
    assert "…" not in result.stdout
    wide = run(command, "crab", *QUICK[command], columns=400).stdout
    words = {word for word in wide.split() if word.isalpha()} - {"joint", "check"}  # first heading
    assert words <= set(result.stdout.replace(":", " ").split())


def test_a_drawing_fits_40_columns():
    told = run("show", "snake", "--no-matrices", columns=40).stdout
    assert "…" not in told
    assert max(map(len, told.splitlines()[:6])) <= 40


def test_a_table_in_ascii_is_as_wide_as_it_was_laid_out():
    told = run("walk", "crab", "--duration", "0.05", columns=40, LC_ALL="C").stdout
    assert "deg from x" in told
    assert max(map(len, told.splitlines())) <= 40


def table():
    made = output.plain_table()
    made.add_column("joint", no_wrap=True)
    made.add_column("to")
    made.add_column("", no_wrap=True)
    made.add_row("m1.hinge", "two words", Text("12345"))
    made.add_row("m2.hinge", "", "[b]")
    return made


def printed(columns):
    told = io.StringIO()
    console = Console(width=columns, markup=False, emoji=False, file=told)
    output.print_table(console, "title", table())
    return [line.rstrip() for line in told.getvalue().splitlines()]


def test_a_table_is_a_table_as_long_as_its_words_fit():
    assert printed(22)[1].split() == ["joint", "to"]  # 8 + 5 + 5, two between
    assert printed(21)[1:] == [
        "m1.hinge",
        "  to: two words",
        "  12345",
        "m2.hinge",
        "  [b]",
        "",
    ]


# -- encodings -------------------------------------------------------------------------------------


def process(*args: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("LC_", "LANG"))}
    command = [sys.executable, "-m", "modurob", *args]
    return subprocess.run(command, capture_output=True, timeout=LIMIT, env={**plain, **env})


@pytest.mark.parametrize("env", [{"LC_ALL": "C"}, {"LANG": "C", "PYTHONIOENCODING": "ascii"}])
def test_an_ascii_terminal_gets_ascii_boxes(env):
    done = process("show", "crab", **env)
    assert done.returncode == 0
    assert done.stderr == b""
    text = done.stdout.decode("ascii")
    assert "+===" in text
    assert "?" not in text
    assert "\\u" not in text


@pytest.mark.parametrize(
    ("env", "encoding"),
    [
        ({"LC_ALL": "C"}, "ascii"),
        ({"LC_ALL": "", "LC_CTYPE": "POSIX", "LANG": "de_DE.UTF-8"}, "ascii"),
        ({"LANG": "C"}, "ascii"),
        ({"LC_ALL": "C.UTF-8", "LANG": "C"}, "utf-8"),
        ({"LANG": "C", "PYTHONUTF8": "1"}, "utf-8"),
        ({"LANG": "C", "PYTHONIOENCODING": "utf-8"}, "utf-8"),
        ({}, "utf-8"),
    ],
)
def test_the_locale_decides_on_the_encoding_unless_python_was_told(monkeypatch, env, encoding):
    for name in ("LC_ALL", "LC_CTYPE", "LANG", "PYTHONUTF8", "PYTHONIOENCODING"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    with CliRunner().isolation():
        forgive_narrow_encodings()
        for stream in (sys.stdout, sys.stderr):
            assert stream.encoding == encoding
            assert stream.errors == "modurob"


def test_characters_that_are_missing_have_others_that_look_alike():
    with CliRunner().isolation():
        forgive_narrow_encodings()
    assert "┌─┐ ≤ 5° ±1 Größe→".encode("ascii", "modurob") == rb"+-+ <= 5 deg +-1 Gr\xf6\xdfe>"
    assert "┌ö".encode("latin-1", "modurob") == b"+\xf6"
    assert all(new.isascii() and not old.isascii() for old, new in ASCII.items())
    with pytest.raises(UnicodeDecodeError):
        b"\xff".decode("utf-8", "modurob")


def test_json_keeps_every_letter_in_any_locale(odd):
    for env in ({"LC_ALL": "C"}, {"LC_ALL": "C.UTF-8"}):
        data = json.loads(run("show", f"{odd}.json", "--json", **env).stdout)
        assert data["names"] == ["Größe", "m1"]
    assert "Größe" in run("show", f"{odd}.json", "--json", LC_ALL="C.UTF-8").stdout
    assert run("show", f"{odd}.json", "--json", LC_ALL="C").stdout.isascii()


def test_errors_are_in_the_encoding_of_the_terminal():
    result = run("show", "Größe", LC_ALL="C")
    assert result.stderr.isascii()
    assert r"Gr\xf6\xdfe" in result.stderr


# -- JSON ------------------------------------------------------------------------------------------


def test_json_has_null_for_numbers_that_it_does_not_have(capsys):
    data = {"a": [1.0, np.nan, (np.inf, "x")], "b": {"c": -np.inf, "d": True}, "e": None, "f": 3}
    output.print_json(data)
    told = capsys.readouterr().out
    assert json.loads(told, parse_constant=pytest.fail) == {
        "a": [1.0, None, [None, "x"]],
        "b": {"c": None, "d": True},
        "e": None,
        "f": 3,
    }


@pytest.mark.parametrize("command", [*QUICK, "equations", "export"])
def test_json_is_all_there_is_on_standard_output(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = {"equations": ("--entry", "M[1,1]"), "export": ("--urdf",)}
    result = run(command, "crab", *{**QUICK, **options}[command], "--json")
    assert result.exit_code == 0
    json.loads(result.stdout, parse_constant=pytest.fail)
    assert result.stderr == ""


@pytest.mark.parametrize("command", [*QUICK, "equations", "export"])
@pytest.mark.parametrize("name", ["lobster", "missing.json", "", "no/such/folder/x.json"])
def test_what_is_not_there_is_one_line_and_no_json(command, name):
    options = ("--urdf",) if command == "export" else ()
    result = run(command, name, "--json", *options)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert "neither a file nor an example" in result.stderr


# -- examples --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["crane", "double_pendulum"])
@pytest.mark.parametrize("command", ["simulate", "control", "verify", "equations", "export"])
def test_examples_of_points_run_with_the_hinges_they_are_meant_for(command, name, tmp_path):
    """Their masses lie on the axes of the dyad model, which has no forward dynamics then."""
    options = {"equations": (), "export": ("--c", "--output", str(tmp_path))}
    result = run(command, name, *{**QUICK, **options}[command])
    assert result.exit_code == 0, result.output
    if command in ("simulate", "control", "export"):
        result = run(command, name, *{**QUICK, **options}[command], "--hinges", "dyad", "--force")
        assert result.exit_code == 2
        assert "forward dynamics is singular" in result.stderr


def test_hinges_are_those_given_or_those_of_the_example():
    assert organisms.hinges_of("crane", None) == "physical"
    assert organisms.hinges_of("crane", "dyad") == "dyad"
    assert organisms.hinges_of("crab", None) == organisms.hinges_of("crane.json", None) == "dyad"
    assert organisms.hinges_of("crab", "physical") == "physical"
    assert "dyad; physical for double_pendulum, crane, arm, superbot_tree" in " ".join(
        run("simulate", "--help").stdout.split()
    )


def help_examples():
    for name in COMMANDS:
        command = import_module(f"modurob.cli.{name}").command
        for line in (command.epilog or "").splitlines():
            if line.strip().startswith("modurob "):
                yield line.strip()


SLOW = (
    "balance",
    "bus",
    "evolve",
    "identify",
    "papers",
    "studio",
    "verify",
    "--animate",
    "--film",
    "--monte-carlo",
    "--plot",
    "--picture",
    "--tune",
)


@pytest.mark.parametrize("line", list(help_examples()))
def test_examples_of_the_help_texts_run(line, tmp_path, monkeypatch):
    """Those that take seconds, or wait for a user, are only understood."""
    monkeypatch.chdir(tmp_path)
    name, *args = shlex.split(line.split(" > ")[0])[1:]
    command = import_module(f"modurob.cli.{name}").command
    assert command.make_context(name, list(args)).params
    if any(word in (name, *args) for word in SLOW):
        return
    for file in {"crab.json", "mine.json"} & set(args):
        examples.crab().save(file)
    GaitRecord(motion="wave").save("nine.json")
    if name == "run":
        assert run("simulate", "crab", *QUICK["simulate"], "--save-scenario", "fall.json")
    Path("arm.urdf").write_text(ARM, encoding="utf-8")
    Path("drawing.txt").write_text(examples.nine().to_grid(), encoding="utf-8")
    Path("my_module.json").write_text(catalog["scout"].model_dump_json(), encoding="utf-8")
    result = run(name, *args)
    assert result.exit_code == 0, result.output
