"""``modurob balance``: what it prints and writes, and how it complains."""

import json

import pytest
from click.testing import CliRunner

from modurob.cli import cli

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
