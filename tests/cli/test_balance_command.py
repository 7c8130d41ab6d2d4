"""``modurob balance``: what it prints and writes, and how it complains."""

import itertools
import json

import pytest
from click.testing import CliRunner

from modurob.cli import cli
from modurob.cli.balance import ROW_INTERVAL_S

SMALL = ("balance", "--modules", "4", "--duration", "0.3")


def run(*arguments):
    return CliRunner().invoke(cli, arguments)


def test_it_writes_a_plot_and_a_film_and_says_how_it_went(tmp_path):
    plot, film = tmp_path / "a.png", tmp_path / "a.gif"
    result = run(
        *SMALL[:3],
        "--duration",
        "0.08",
        "--loss",
        "0.1",
        "--plot",
        str(plot),
        "--animate",
        str(film),
    )
    assert result.exit_code == 0, result.output
    assert plot.stat().st_size > 10_000
    assert film.read_bytes()[:3] == b"GIF"
    for words in ("4 modules, 12 joints", "stays below a tenth", "lost", "messages"):
        assert words in result.output


def test_json_holds_the_same(tmp_path):
    result = run(*SMALL, "--law", "momentum", "--json")
    facts = json.loads(result.output)
    assert facts["law"] == "momentum"
    assert facts["joints"] == 12
    assert 0 <= facts["distance"]["end"] <= facts["distance"]["largest"]
    assert facts["messages"] > 0


def test_a_random_tree_is_that_of_its_seed():
    line = ("balance", "--modules", "4", "--duration", "0.05", "--json")
    found = [json.loads(run(*line, *more).output)["distance"]
             for more in ((), ("--seed", "2"), ("--seed", "0"))]  # fmt: skip
    assert found[0] == found[1] != found[2]


def test_other_organisms_and_faults():
    result = run("balance", "arm", "--duration", "0.1", "--fault", "die:m2:0.05", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["seconds"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--law", "fuzzy"), "fuzzy"),
        (("--fault", "die"), "KIND:MODULE:SECONDS"),
        (("--fault", "melt:m1:1"), "faults are freeze, die, reboot"),
        (("--fault", "die:m77:1"), "m77"),
        (("--stuck", "m1.knee"), "knee"),
        (("--duration", "-1"), "duration"),
        (("--loss", "1"), "loss"),
        (("--plot", "a.txt"), "a.txt"),
        (("--plot", ""), "--plot"),
    ],
)
def test_bad_input_is_one_line(arguments, words):
    result = run(*SMALL, *arguments)
    assert result.exit_code == 2
    assert words in result.output
    assert result.output.startswith("error: ")
    assert result.output.count("\n") == 1


def test_processes_report_the_distance_as_it_goes():
    line = ("balance", "--modules", "2", "--processes", "--duration", "0.3")
    facts = json.loads(run(*line, "--fault", "die:m1:0.05", "--json").output)
    assert facts["law"] == "shared"
    times = [row["time"] for row in facts["rows"]]
    assert times[0] == 0
    assert times == sorted(times)
    shortest = facts["speed"] * ROW_INTERVAL_S  # four rows a second, no flood
    assert len(times) > 1
    assert min(b - a for a, b in itertools.pairwise(times)) >= shortest
    assert all(row["distance"] > 0 for row in facts["rows"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--plot", "a.png", "--delay", "2"), "--processes goes without --plot, --delay"),
        (("--fault", "reboot:m1:0.1"), "--processes goes without --fault reboot"),
        (("--stuck", "m1.pitch"), "--processes goes without --stuck"),
        (("--fault", "die:plant:0.1"), "no module 'plant' in this organism: modules are m0, m1"),
        (("--fault", "die:m1:9"), "--fault at 9 s lies outside of the run of 5 s"),
        (("--duration", "1e300"), "--duration with --processes must be a number from 0 to 3600"),
    ],
)
def test_processes_name_the_options_that_they_do_not_take(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("balance", "--modules", "2", "--processes", *arguments)
    assert result.exit_code == 2
    assert words in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--ground", "--law", "momentum"], "--ground goes without --law"),
        (["--ground", "--fault", "die:m99:1"], "no module 'm99'"),
        (["--ground", "--processes", "--fault", "freeze:m2:1"], "modules of processes die"),
        (["--ground", "--step", "m2:1:x"], "--step takes FOOT:X:Y"),
        (["--push", "1"], "give --ground"),
    ],
)
def test_ground_names_the_options_that_it_does_not_take(arguments, words):
    result = CliRunner().invoke(cli, ["balance", *arguments])
    assert result.exit_code == 2
    assert words in result.output
