"""Presets: the papers' figures run, and their findings and pictures say what was measured."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.integrate import solve_ivp

import modurob as mr
from modurob.cli import cli
from modurob.scenario.presets import (
    PRESETS,
    TREE_LAWS,
    TREE_SEEDS,
    TreeOutcome,
    preset,
    tree_sentences,
)
from modurob.studio.folder import Folder
from modurob.studio.studio import Studio

# the twelve runs of this one are computed, judged and drawn by tests/papers
QUICK = [name for name in PRESETS if name != "moll2006-fig4"]


@pytest.mark.parametrize("name", QUICK)
def test_a_preset_runs_and_supports_its_statement(name, tmp_path):
    line = ["run", "--preset", name, "--plot", str(tmp_path / "x.svg"), "--json"]
    done = CliRunner().invoke(cli, line)
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert found["statement"] == preset(name).statement
    verdicts = [finding["holds"] for finding in found["findings"]]
    assert False not in verdicts
    assert True in verdicts or name == "giusti2015-fig7"  # whose statement is in Fig. 8
    assert "The paper states" in (tmp_path / "x.svg").read_text(encoding="utf-8")
    if name == "giusti2015-fig7":
        largest, last = (float(finding["found"]) for finding in found["findings"])
        assert (largest, last) == pytest.approx(lag_of_pd(), abs=NOISE)


NOISE = 1.0  # [% of the way] 0.03 rad and 0.3 N m at each of 20 000 samples, filtered by the arm


def lag_of_pd() -> tuple[float, float]:
    """Largest and last error of ``(Kd + F) q' = Kp (q_d - q)``, as the paper prints them. [%]

    The law has no desired velocity, and inertias are small beside damping.
    """

    def error(t: float, e: np.ndarray) -> np.ndarray:
        return 30 * (t * (1 - t)) ** 2 - 250 / (30 + 3) * e

    t = np.linspace(0, 1, 1001)
    e = 100 * solve_ivp(error, (0, 1), [0.0], t_eval=t, rtol=1e-8).y[0]
    return e.max(), e[-1]


def test_the_findings_of_a_preset_follow_its_runs():
    """Wrong gains or laws are seen."""
    poles = PRESETS["gutenkunst2012-fig6.6"]
    (name, scenario), *_ = poles.build().items()
    alike = scenario.edited(poles=(-2, -3, -2, -3), rtol=1e-6)
    assert [x.holds for x in poles.judge({name: alike.run()})] == [None, None, None, False]
    torque = PRESETS["giusti2015-fig8"]
    ways = torque.build()
    short = {law: x.edited(duration=0.1, move_time=0.1) for law, x in ways.items()}
    results = dict(zip(ways, reversed([x.run() for x in short.values()]), strict=True))
    assert torque.judge(results)[-1].holds is False


def test_sentences_about_trees_are_judged_by_the_end_of_runs():
    good, never = TreeOutcome(0.2, 0.01, 5.0), TreeOutcome(None, 0.4, 30.0)
    best = TreeOutcome(0.1, 0.001, 5.0)
    four = len(TREE_SEEDS)
    made = {"default": [never] * four, "distance": [never] * four, "momentum": [good] * four}
    assert list(tree_sentences(made).values()) == [False, True, True, True, False, False]
    made["default"] = [best, good, good, never]
    assert list(tree_sentences(made).values()) == [True, True, True, False, True, True]
    assert not any(tree_sentences(dict.fromkeys(TREE_LAWS, [never] * four)).values())


def test_a_preset_is_written_as_scenarios_and_opened_as_a_project(tmp_path):
    file = tmp_path / "fig8.json"
    line = ["run", "--preset", "meister2013-fig14", "--save-scenario", str(file), "--json"]
    done = CliRunner().invoke(cli, line)
    assert done.exit_code == 0, done.output
    written = [mr.Scenario.load(path) for path in sorted(tmp_path.iterdir(), reverse=True)]
    assert written == list(PRESETS["meister2013-fig14"].build().values())
    again = CliRunner().invoke(cli, line)
    assert (again.exit_code, "--force" in again.output) == (2, True)
    session = Studio(Folder(tmp_path / "studio")).new_from_preset("meister2013-fig15")
    known = PRESETS["meister2013-fig15"].build()["EKF"]
    mine = session.scenario().edited(record=known.record, name=known.name, pose={})
    assert np.array_equal(mine.run().trajectory.q, known.run().trajectory.q)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "give the FILE of a scenario, or --preset"),
        (("x.json", "--preset", "giusti2015-fig7"), "give the FILE of a scenario, or --preset"),
        (("--preset", "giusti2015-fig9"), "giusti2015-fig7"),
        (("--preset", "giusti2015-fig7", "--csv", "x.csv"), "--csv is for a file"),
    ],
)
def test_bad_input_is_one_line(arguments, words):
    done = CliRunner().invoke(cli, ["run", *arguments])
    assert (done.exit_code, done.output.count("\n")) == (2, 1)
    assert words in done.output
    with pytest.raises(mr.UnknownNameError, match="no preset 'x': presets are gutenkunst2012"):
        preset("x")
