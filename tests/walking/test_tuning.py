"""The search of `tune` without runs: scores are formulas of the gait."""

import itertools
import os

import numpy as np
import pytest

import modurob as mr
from modurob.control import PdGravity
from modurob.walking import evaluate, started, tune, tuning, walking_fields
from modurob.walking.tuning import GaitPopulation, search_space

SNAKE = mr.examples.snake(3)


@pytest.fixture
def run():
    return started(mr.Scenario(organism=SNAKE, **walking_fields("wave", hinges="physical")))


def scored(monkeypatch, score):
    """Gaits of each generation of a search; each gait has a score by its fields."""
    generations = []

    def scores(scenario, gaits, effort):
        generations.append(gaits)
        return np.array([score(gait) for gait in gaits])

    monkeypatch.setattr(tuning, "evaluate", scores)
    return generations


def numbers(gait):
    """Numbers of a gait, by the names of the search."""
    parts = {("lag", ""): gait["gait"]["lag"]}
    parts |= {(name, ""): gait[name] for name in ("amplitude", "frequency")}
    for name in ("phase", "offset"):
        parts |= {(name, joint): x for joint, x in gait["gait"][name].items()}
    return parts


def test_the_search_goes_to_better_gaits_and_returns_the_best_of_all(monkeypatch, run):
    space = {(d.name, d.joint): d for d in search_space(run, run.model())}

    def score(gait):
        """The nearer to a third of all ranges, the better."""
        places = [(x - space[key].low) / (space[key].high - space[key].low)
                  for key, x in numbers(gait).items()]  # fmt: skip
        assert len(places) == len(space)
        return -sum((x - 1 / 3) ** 2 for x in places)

    generations = scored(monkeypatch, score)
    found = tune(run, 20 * 12, population=12)
    scores = np.array([[score(gait) for gait in gaits] for gaits in generations])
    assert np.median(scores[-1]) > 0.3 * np.median(scores[0])
    np.testing.assert_array_equal(found.best, np.maximum.accumulate(scores.max(axis=1)))
    assert found.score == score(found.gait.fields()) == scores.max()


def test_the_search_begins_at_the_gait_with_a_spread_of_a_quarter_of_the_ranges(monkeypatch, run):
    run = run.edited(amplitude=0.25, frequency=0.35, gait={"lag": 0.0})
    generations = scored(monkeypatch, lambda gait: 0.0)
    tune(run, 400, population=400)
    (gaits,) = generations
    found = [numbers(gait) for gait in gaits]
    spreads = []
    for d in search_space(run, run.model()):
        x = np.array([(each[d.name, d.joint] - d.low) / (d.high - d.low) for each in found])
        assert x.mean() == pytest.approx((d.start - d.low) / (d.high - d.low), abs=0.05)
        assert 0 < x.min() < 0.05  # the whole range, and nothing heaped up at its ends
        assert 0.95 < x.max() < 1
        spreads.append(x.std())
    assert np.mean(spreads) == pytest.approx(0.24, abs=0.015)  # a little less: ranges end


def test_of_equal_gaits_the_first_one_is_kept(monkeypatch, run):
    count = itertools.count()
    generations = scored(monkeypatch, lambda gait: -float(next(count) % 4))
    found = tune(run, 3 * 4, population=4)
    assert numbers(found.gait.fields()) == numbers(generations[0][0])
    assert found.best.tolist() == [0.0, 0.0, 0.0]


def test_evaluations_are_rounded_up_to_whole_generations(monkeypatch, run):
    for evaluations, generations in ((1, 1), (4, 1), (5, 2)):
        count = itertools.count()
        seen = scored(monkeypatch, lambda gait, count=count: float(next(count)))
        assert tune(run, evaluations, population=4).evaluations == 4 * generations
        assert len(seen) == generations


def test_tuning_prints_nothing_and_writes_no_files_of_its_own(monkeypatch, tmp_path, run, capfd):
    monkeypatch.chdir(tmp_path)
    scored(monkeypatch, lambda gait: -gait["amplitude"])
    tune(run, 8 * 4, population=4)
    assert capfd.readouterr() == ("", "")
    assert not os.listdir(tmp_path)


def test_a_joint_without_room_between_its_limits_has_no_offset_to_tune():
    limits = (0.3, np.nextafter(0.3, 1.0))
    fields = walking_fields("wave", hinges="physical", pose={"m0.hinge": 0.3})
    run = mr.Scenario(organism=SNAKE.with_parameters("m0", limits=limits), **fields)
    first, second = run.model().joint_names
    names = {d.joint for d in search_space(run, run.model()) if d.name == "offset"}
    assert names == {second} != {first}


def test_a_law_with_a_delay_forgets_the_last_run_of_a_population(run):
    model = SNAKE.model("physical")
    law = PdGravity(model, sample_time=0.002, delay=0.004)
    loop = GaitPopulation(law, [run.edited(amplitude=a).reference(model) for a in (0.2, 0.4)], 0.1)
    q, v = loop.first()
    for far in (0.0, 0.5):
        loop.reset(0.0, q + far, v)
        held = loop.command(0.0, q + far, v)  # as on the way at the start: what holds the body
        np.testing.assert_allclose(held, model.gravity_torque(q + far), atol=1e-12)
        loop.command(0.002, q + 0.1, v)


def test_all_gaits_that_diverge_have_the_score_of_checkpoints(monkeypatch, run):
    def diverging(*_, **__):
        raise mr.SimulationError("diverged", 0.0, None)  # pyright: ignore

    monkeypatch.setattr(tuning, "simulate", diverging)
    assert evaluate(run, [{}, {}]).tolist() == [-1000.0, -1000.0]
