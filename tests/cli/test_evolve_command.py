"""``modurob evolve``: a folder with a search, a chart, and a gallery whose files are read back."""

import json

import pytest
from click.testing import CliRunner

import modurob as mr
from modurob.cli import cli

SMALL = ("--population", "4", "--generations", "2", "--seconds", "0.1", "--modules", "3", "4")


def call(*args):
    return CliRunner().invoke(cli, list(map(str, args)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of a search, with what was printed."""
    path = tmp_path_factory.mktemp("evolve") / "new" / "walkers"
    result = call("evolve", *SMALL, "--winners", 1, "--output", path)
    assert result.exit_code == 0, result.output
    return path, result


def test_the_folder_has_the_name_of_task_and_seed_by_default():
    result = call("evolve", "--task", "climb", "--seed", 7, "--resume")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: climb-7: holds no evolution.json")


def test_it_reports_generations_and_winners(folder):
    path, result = folder
    first, second = result.stderr.splitlines()
    assert first.startswith("generation 1 of 2: best ")
    assert second.endswith("█") or second.endswith("▁▁")
    for words in ("walk: 8 bodies in 2 generations", "winner-1", "median of random bodies"):
        assert words in result.stdout
    assert str(path / "index.html") in result.stdout.replace("\n", "")


def test_the_gallery_has_pictures_films_and_files(folder):
    path, _ = folder
    names = {"winner-1.json", "winner-1-gait.json", "winner-1-scenario.json", "winner-1.png"}
    names |= {"winner-1.gif", "progress.png", "index.html", "winners.json", "evolution.json"}
    assert {file.name for file in path.iterdir()} == names
    page = (path / "index.html").read_text()
    for name in ("winner-1.gif", "winner-1.png", "progress.png", "in MuJoCo", "modurob run"):
        assert name in page
    (winner,) = json.loads((path / "winners.json").read_text())["winners"]
    best = json.loads((path / "evolution.json").read_text())["members"][0]
    assert winner["score"] == best["score"]
    assert (winner["mujoco"] is None) == bool(winner["note"])
    assert len(mr.load(path / "winner-1.json")) == winner["modules"]
    run = call("run", path / "winner-1-scenario.json", "--json")
    assert json.loads(run.stdout)["duration"] == pytest.approx(0.1)
    gait = ("--gait", path / "winner-1-gait.json", "--seconds", 0.1)
    walked = call("walk", path / "winner-1.json", "--hinges", "dyad", *gait, "--json")
    assert json.loads(walked.stdout)["gait"] == "sine"


def test_it_goes_on_and_prints_json(folder, tmp_path):
    path, _ = folder
    (tmp_path / "evolution.json").write_bytes((path / "evolution.json").read_bytes())
    args = ("--generations", 3, "--no-films", "--winners", 1, "--output", tmp_path, "--json")
    result = call("evolve", *SMALL, *args, "--resume")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert (data["generations"], data["evaluations"]) == (3, 12)
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("--task", "fly"), "no task 'fly': tasks are walk, climb, carry, stand-up, reach"),
        (("--population", "0"), "population"),
        (("--generations", "0"), "generations"),
        (("--strategy", "x"), "strategies are evolution, map-elites"),
        (("--modules", "5", "3"), "modules"),
        (("--kind", "brick"), "brick"),
        (("--seconds", "0"), "duration"),
        (("--resume",), "holds no evolution.json"),
        (("--output", __file__), "is a file; --output needs a folder"),
        (("--output", f"{__file__}/x"), "cannot be made"),
        (("--output", ""), "--output"),
    ],
)
def test_bad_input_is_one_line(args, text, tmp_path):
    result = call("evolve", *SMALL, "--output", tmp_path / "new" / "walkers", *args)
    assert result.exit_code in (1, 2)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert text in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("target", "resources"), [("cuda", {"GPU": 1}), ("cpu", None)])
def test_searches_on_gpus_ask_a_cluster_for_workers_that_have_one(
    target, resources, monkeypatch, tmp_path
):
    asked = []

    def cluster(address, **options):
        asked.append((address, options))
        raise mr.StateError("no scheduler")

    monkeypatch.setattr("modurob.cli.executors.DaskExecutor", cluster)
    call("evolve", "--cluster", "tcp://a:1", "--target", target, "--output", tmp_path / "walkers")
    assert asked == [("tcp://a:1", {"resources": resources})]


@pytest.mark.parametrize("generation", [0, 1])
def test_an_interrupted_search_says_how_to_go_on(generation, monkeypatch, tmp_path):
    def interrupted(*args):
        raise KeyboardInterrupt

    # while the first generation is made, or while the chart after it is drawn
    name = "cli.evolve.draw_progress" if generation else "search.evolution.evaluate_chunk"
    monkeypatch.setattr(f"modurob.{name}", interrupted)
    result = call("evolve", *SMALL, "--output", tmp_path / "walkers")
    assert (result.exit_code, result.stdout) == (130, "")
    assert ("with --resume continues the search" in result.stderr) == bool(generation)
    assert [each.name for each in tmp_path.rglob("*.json")] == ["evolution.json"] * generation
    assert (tmp_path / "walkers").exists() == bool(generation)


def test_a_search_is_not_overwritten(folder):
    path, _ = folder
    before = (path / "evolution.json").read_bytes()
    result = call("evolve", *SMALL, "--output", path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--resume continues it" in result.stderr
    other = call("evolve", *SMALL, "--seed", 9, "--output", path, "--resume")
    assert "this search has another seed: 0, not 9" in other.stderr
    assert (path / "evolution.json").read_bytes() == before
