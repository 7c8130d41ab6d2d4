"""The papers' claims hold, and the command that runs them says so when they do not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from modurob.cli import cli
from modurob.cli import papers as command
from modurob.verification import lagrange as printed
from papers import claims as records
from papers import lagrange

KEYS = ("giusti2015", "gutenkunst2012", "meister2012", "meister2013", "moll2006")
PAGES = Path(__file__).parents[2] / "docs" / "papers"
LAGRANGE = 1e-8  # what the papers' claims allow
FLAT = 4  # gray levels: a picture with less contrast than that is empty


def call(*args: str):
    return CliRunner().invoke(cli, ["papers", *args])


def folder_with(tmp_path: Path, monkeypatch, script: str, **expected) -> None:
    """A papers folder with one paper in the place of ours."""
    paper = tmp_path / "papers" / "smith1999"
    paper.mkdir(parents=True)
    (paper / "reproduce.py").write_text(script, encoding="utf-8")
    known = {"document": "Smith 1999", "claims": expected}
    (paper / "expected.json").write_text(json.dumps(known), encoding="utf-8")
    monkeypatch.setattr(records, "PAPERS", tmp_path / "papers")


# -- ours ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", KEYS)
def test_every_claim_of_the_paper_holds(key, tmp_path):
    result = call(key, "--output", str(tmp_path))
    failed = [line for line in result.stdout.splitlines() if "FAILED" in line]
    assert result.exit_code == 0, failed or result.stderr
    data = json.loads((tmp_path / key / "results.json").read_text(encoding="utf-8"))
    assert data["passed"] is True
    assert all(claim["passed"] is True for claim in data["claims"])
    assert all(claim["source"] and claim["name"] for claim in data["claims"])
    for name in data["pictures"]:
        gray = np.asarray(Image.open(tmp_path / key / name).convert("L"), dtype=float)
        assert gray.std() > FLAT, f"{name} shows nothing"


def test_all_papers_of_the_checkout_are_tested():
    assert tuple(command._known()) == KEYS


@pytest.mark.parametrize("key", KEYS)
def test_the_page_about_the_papers_lists_every_claim(key):
    text = (PAGES / f"{key}.md").read_text(encoding="utf-8")
    known = json.loads((records.PAPERS / key / "expected.json").read_text(encoding="utf-8"))
    for claim in known["claims"].values():
        assert f"| {claim['name']} | {claim['source']} |" in text


def test_the_comparison_with_lagrange_sees_small_mistakes(monkeypatch):
    assert max(lagrange.pendulum(1.0, 1.0, (1.5, 1.5), 2.0).deviations) < LAGRANGE
    monkeypatch.setattr(printed, "G", 9.81 * (1 + 1e-6))
    assert max(lagrange.pendulum(1.0, 1.0, (1.5, 1.5), 2.0).deviations) > LAGRANGE
    assert max(lagrange.crane(1.0, 1.0, 5.0, 0.7, 2.0).deviations) > LAGRANGE


# -- verdicts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "found", "passed"),
    [
        ({"expected": 0, "tolerance": 1e-8}, 9e-9, True),
        ({"expected": 0, "tolerance": 1e-8}, -2e-8, False),
        ({"expected": 0, "tolerance": 1e-8}, float("nan"), False),
        ({"expected": [0, 0], "tolerance": 1e-8}, np.array([0.0, 1e-9]), True),
        ({"expected": [0, 0], "tolerance": 1e-8}, np.array([0.0, 1e-7]), False),
        ({"expected": [0, 0], "tolerance": 1e-8}, [0.0, float("inf")], False),
        ({"expected": [0, 0], "tolerance": 1e-8}, 0.0, False),
        ({"expected": [[3, 0], [4, 3]]}, np.array([[3, 0], [4, 3]]), True),
        ({"expected": [[3, 0], [4, 3]]}, np.array([[3, 0], [4, 4]]), False),
        ({"expected": {"a": 1}}, {"a": 2}, False),
        ({"expected": 2, "relation": ">="}, 2.5, True),
        ({"expected": 2, "relation": ">="}, 1.5, False),
        ({"expected": 2, "relation": "<="}, float("nan"), False),
    ],
)
def test_a_claim_is_judged(tmp_path, monkeypatch, expected, found, passed):
    folder_with(tmp_path, monkeypatch, "", it={"name": "it", "source": "(1)", **expected})
    claims = records.Claims("smith1999", tmp_path / "out")
    claims.check("it", found)
    assert claims.passed is passed
    assert claims.results[0].passed is passed


def test_a_claim_nobody_computes_fails_and_one_left_out_does_not(tmp_path, monkeypatch):
    entry = {"name": "it", "source": "(1)", "expected": 0, "tolerance": 1.0}
    folder_with(tmp_path, monkeypatch, "", one=entry, two=entry)
    forgotten = records.run("smith1999", lambda claims: claims.check("one", 0.0), tmp_path / "out")
    assert [claim.passed for claim in forgotten.results] == [True, False]

    def reproduce(claims: records.Claims) -> None:
        claims.check("one", 0.0)
        claims.leave_out("two", "no engine")

    found = records.run("smith1999", reproduce, tmp_path / "out")
    assert [claim.passed for claim in found.results] == [True, None]
    assert found.passed
    assert json.loads((tmp_path / "out" / "results.json").read_text())["passed"] is True


# -- the command -----------------------------------------------------------------------------------


LENGTH = {"name": "a length", "source": "Fig. 1", "expected": 1, "tolerance": 0.1, "unit": "m"}


def claims_that_say(tmp_path: Path, monkeypatch, found, **entry) -> None:
    """One paper with one claim; the command takes it for the whole library."""
    folder_with(tmp_path, monkeypatch, "", it=entry or LENGTH)
    made = records.run("smith1999", lambda claims: claims.check("it", found), tmp_path / "out")
    monkeypatch.setattr(command, "_known", lambda: ["smith1999"])
    monkeypatch.setattr(command, "_run", lambda key, folder, executor: made)


def test_papers_exits_with_1_when_a_claim_fails(tmp_path, monkeypatch):
    claims_that_say(tmp_path, monkeypatch, 1.5)
    result = call()
    assert result.exit_code == 1
    for word in ("Smith 1999", "a length", "Fig. 1", "1.5", "1 ± 1e-01 m", "1 FAILED"):
        assert word in result.stdout


@pytest.mark.parametrize(
    ("expected", "found", "words"),
    [
        ({"expected": [[3, 0]]}, [[3, 0]], "the same"),
        ({"expected": [[3, 0]]}, [[3, 1]], "differs"),
        ({"expected": [0, 0], "tolerance": 0.1}, [0.01, -0.25], "0.25"),
        ({"expected": 2, "relation": ">="}, 2.5, "≥ 2"),
        ({"expected": 2, "relation": "<="}, 1.5, "≤ 2"),
    ],
)
def test_papers_prints_each_kind_of_finding(tmp_path, monkeypatch, expected, found, words):
    claims_that_say(tmp_path, monkeypatch, found, name="it", source="(1)", **expected)
    assert words in call().stdout


def test_papers_json_is_json_only(tmp_path, monkeypatch):
    claims_that_say(tmp_path, monkeypatch, 1.05)
    (data,) = json.loads(call("smith1999", "--json").stdout)
    assert data["passed"] is True
    assert data["claims"][0]["found"] == 1.05


def test_papers_refuses_what_is_not_there(tmp_path, monkeypatch):
    result = call("smith1999")
    assert result.exit_code == 2
    assert "no paper 'smith1999'" in result.stderr
    assert "gutenkunst2012" in result.stderr
    monkeypatch.setattr(command, "ROOT", tmp_path)
    result = call()
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "not of the installed package" in result.stderr


def test_papers_reports_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    result = call("meister2012", "--output", str(tmp_path / "file"))
    assert result.exit_code == 1
    assert "cannot be written" in result.stderr
