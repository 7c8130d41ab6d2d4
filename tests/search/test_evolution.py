"""`evolve`: the same bytes from the same seed, whatever interrupts the search."""

import json
import os
import pickle
import signal
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import modurob as mr
from modurob.errors import FileError, StateError, UnknownNameError, WriteError
from modurob.search import (
    BodySpace,
    Genotype,
    Individual,
    SearchTask,
    evaluate,
    evolve,
    write_gallery,
)
from modurob.search.evaluation import DIVERGED, MEETS, NOT_FINITE, TOO_FAST, evaluate_chunk
from modurob.search.evolution import _blocks
from modurob.search.strategies import Evolution, MapElites, Strategy
from modurob.search.tasks import distance
from oracles.complaints import complains

SPACE = BodySpace(modules=(3, 5), frequency=(0.5, 1.0))
TASK = SearchTask("walk", distance, duration=0.1)
RUN = {"population": 6, "generations": 3, "seed": 4, "space": SPACE}
KILLED = """
import os, signal, sys
from modurob.search import BodySpace, SearchTask, evolve
from modurob.search.tasks import distance

def kill(result):
    if len(result.history) == 2:
        os.kill(os.getpid(), signal.SIGKILL)

evolve(SearchTask("walk", distance, duration=0.1), 6, 3, 4, progress=kill,
       space=BodySpace(modules=(3, 5), frequency=(0.5, 1.0)), checkpoint=sys.argv[1])
"""


@pytest.fixture(scope="module")
def whole_search(tmp_path_factory):
    """A search without an interruption: its result and the bytes of its file."""
    path = tmp_path_factory.mktemp("search") / "whole.json"
    return evolve(TASK, **RUN, checkpoint=path), path.read_bytes()


def test_a_search_finds_more_than_its_random_bodies(whole_search):
    result, _ = whole_search
    leaders = [entry.leader for entry in result.history]
    assert leaders == sorted(leaders)
    assert leaders[-1] > leaders[0] == result.history[0].best
    assert result.evaluations == 18
    assert result.best[0].score == leaders[-1]
    again = evaluate([one.genotype for one in result.best], TASK)
    assert [one.score for one in again] == [one.score for one in result.best]


def test_names_of_a_task_are_text_on_the_page(whole_search, tmp_path):
    result, _ = whole_search
    named = result._replace(
        task=replace(TASK, name="a<b>", unit="<i>"), kept_out={"constraint <u>": 1}
    )
    write_gallery(named, tmp_path, bodies=0)
    page = (tmp_path / "index.html").read_text()
    for text in ("a&lt;b&gt;", "&lt;i&gt;", "constraint &lt;u&gt;"):
        assert text in page
    for tag in ("<b>", "<i>", "<u>"):
        assert tag not in page


def test_a_killed_search_goes_on_to_the_same_bytes(whole_search, tmp_path):
    path = tmp_path / "killed.json"
    done = subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(json.loads(path.read_bytes())["history"]) == 2
    evolve(TASK, **RUN, checkpoint=path)
    assert path.read_bytes() == whole_search[1]


def test_a_full_disk_leaves_the_old_checkpoint(whole_search, tmp_path, monkeypatch):
    path = tmp_path / "full.json"
    evolve(TASK, **{**RUN, "generations": 2}, checkpoint=path)
    old = path.read_bytes()

    def fail(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(WriteError, match="No space left"):
            evolve(TASK, **RUN, checkpoint=path)
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["full.json"]
    evolve(TASK, **RUN, checkpoint=path)
    assert path.read_bytes() == whole_search[1]


def test_a_checkpoint_of_other_settings_is_refused(whole_search, tmp_path):
    path = tmp_path / "other.json"
    path.write_bytes(whole_search[1])
    for name, call in (
        ("seed", partial(evolve, TASK, **{**RUN, "seed": 5})),
        ("duration", partial(evolve, replace(TASK, duration=0.2), **RUN)),
        ("space", partial(evolve, TASK, **{**RUN, "space": replace(SPACE, modules=(3, 6))})),
    ):
        with complains(FileError, f"another {name}", "give the same, or another file"):
            call(checkpoint=path)
    path.write_text('{"format": "modurob-gait", "version": 1}')
    with complains(FileError, "expected 'modurob-evolution'"):
        evolve(TASK, **RUN, checkpoint=path)


# -- evaluation ------------------------------------------------------------------------------------


def some_scores(rollout, population, where=np.nan):
    return np.where(population.joints == population.joints.min(), where, 1.0)


def test_bodies_without_a_finite_score_are_kept_out_counted_and_named():
    found = evolve(replace(TASK, objective=some_scores), **RUN)
    out = found.kept_out[NOT_FINITE]
    assert 0 < out < found.evaluations
    assert sum(entry.kept_out for entry in found.history) == out
    assert len(found.record.named) == out
    first = found.record.named[0]
    assert first.reason == NOT_FINITE
    assert first.genotype["genes"]
    assert {one.score for one in found.best} == {1.0}


def test_a_constraint_keeps_bodies_out():
    narrow = {"few joints": partial(some_scores, where=0.0)}
    rng = np.random.default_rng(0)
    bodies = [Genotype.random(SPACE, rng) for _ in range(6)]
    joints = mr.Population.from_genotypes(bodies).joints
    reasons = [one.reason for one in evaluate(bodies, replace(TASK, constraints=narrow))]
    assert reasons == ["constraint few joints" if n == joints.min() else "" for n in joints]
    assert len(set(reasons)) == 2
    with complains(StateError, "no body has a valid score: the objective is not finite (18)"):
        evolve(replace(TASK, objective=nowhere), **RUN)


def nowhere(rollout, population):
    return np.full(len(population), np.inf)


def test_results_do_not_depend_on_the_executor(monkeypatch):
    monkeypatch.setattr("modurob.search.evaluation.CHUNKS", {"cpu": 2})

    class Backwards:
        def map(self, function, items):
            function = pickle.loads(pickle.dumps(function))
            return [function(item) for item in reversed(items)][::-1]

    rng = np.random.default_rng(0)
    bodies = [Genotype.random(SPACE, rng) for _ in range(5)]
    expected = evaluate_chunk(bodies, TASK, (), "cpu")
    assert evaluate(bodies, TASK) == evaluate(bodies, TASK, executor=Backwards()) == expected


def test_a_search_in_blocks_does_not_depend_on_the_executor(monkeypatch):
    monkeypatch.setattr("modurob.search.evolution.BLOCKS", {"cpu": (4, 9)})

    class Backwards:
        def map(self, function, items):
            function = pickle.loads(pickle.dumps(function))
            return [function(item) for item in reversed(items)][::-1]

    found = [evolve(TASK, **RUN, executor=executor) for executor in (None, Backwards())]
    assert found[0].record == found[1].record
    assert found[0].evaluations == 18


@pytest.mark.parametrize(
    ("population", "target", "sizes"),
    [
        (200, "cpu", {50}),
        (130, "cpu", {43, 44}),
        (100_000, "cuda", {6666, 6667}),
        (6000, "cuda", {3000}),
        (2, "cuda", {2}),
    ],
)
def test_blocks_are_equally_large(population, target, sizes):
    blocks = _blocks(population, target)
    assert [number for block in blocks for number in block] == list(range(population))
    assert {len(block) for block in blocks} == sizes
    assert target == "cpu" or len(blocks) <= 15


def test_bodies_whose_modules_meet_do_not_stay(monkeypatch, whole_search):
    leader = whole_search[0].best[0]
    monkeypatch.setattr(
        "modurob.search.evolution.clear", lambda one: one.canonical() != leader.genotype.canonical()
    )
    found = evolve(TASK, **{**RUN, "generations": leader.generation + 1})
    assert found.kept_out == {MEETS: 1}
    assert found.record.named[0].generation == leader.generation
    assert found.best[0].score < leader.score
    assert found.history[-1].best < leader.score
    again = evolve(replace(TASK, clear=False), **{**RUN, "generations": leader.generation + 1})
    assert again.best[0] == leader


def test_a_body_that_diverges_is_told_from_the_others(monkeypatch):
    run = mr.Population.run

    def diverged(self, *args):
        return run(self, *args)._replace(failed=np.arange(len(self)) == 1)

    monkeypatch.setattr(mr.Population, "run", diverged)
    rng = np.random.default_rng(0)
    found = evaluate([Genotype.random(SPACE, rng) for _ in range(3)], TASK)
    assert [one.reason for one in found] == ["", DIVERGED, ""]


def test_bodies_that_steps_are_too_long_for_are_kept_out():
    """Those with a joint of Giusti's module A, whose friction decays faster than a step."""
    space = BodySpace(("giusti_a", "giusti_c"), (2, 3), frequency=(0.5, 1.0))
    rng = np.random.default_rng(1)
    bodies = [Genotype.random(space, rng) for _ in range(8)]
    reasons = [one.reason for one in evaluate(bodies, TASK)]
    for genotype, reason in zip(bodies, reasons, strict=True):
        with complains(StateError, "is too long") if reason else nullcontext():
            mr.Population.from_genotypes([genotype]).rollout(0.01, servo_rate=80.0)
    assert set(reasons) == {"", TOO_FAST}


def test_functions_of_the_wrong_shape_are_refused():
    rng = np.random.default_rng(0)
    with complains(StateError, "objective", "(1,) numbers", "(2,)"):
        evaluate([Genotype.random(SPACE, rng)], replace(TASK, objective=lambda *_: [1.0, 2.0]))


# -- strategies ------------------------------------------------------------------------------------


def test_no_body_is_evaluated_twice(monkeypatch):
    """Even if children are made of few genotypes."""
    rng = np.random.default_rng(0)
    few = [Genotype.random(SPACE, rng) for _ in range(8)]
    monkeypatch.setattr(Strategy, "_child", lambda self, rng: few[int(rng.integers(len(few)))])
    search = Evolution(SPACE, 4)
    first = search.children(rng, 4)
    search.choose([Individual(one, 0.0, 0) for one in first])
    keys = [one.canonical() for one in [*first[: len(search.members)], *search.children(rng, 4)]]
    assert len(set(keys)) == len(keys)
    with complains(StateError, "8 of 12 bodies found that differ"):
        Evolution(SPACE, 12).children(rng, 12)


def test_the_best_stay_and_a_body_is_there_twice_at_most():
    rng = np.random.default_rng(0)
    few = [Genotype.random(SPACE, rng) for _ in range(5)]
    search, everyone = Evolution(SPACE, 20), []
    for generation in range(3):
        scores = rng.normal(size=20).tolist()
        found = [
            Individual(few[k % 5], score + 3.0 * (k % 5 == 0), generation)
            for k, score in enumerate(scores)
        ]
        everyone += found
        search.choose(found)
        expected, seen = [], []
        for one in sorted(everyone, key=lambda one: -one.score):
            body = one.genotype.canonical(gait=False)
            if seen.count(body) < 2 and len(expected) < 4:
                expected.append(one.score)
            seen.append(body)
        assert [one.score for one in search.members] == expected
    assert expected != sorted((one.score for one in everyone), reverse=True)[:4]


@pytest.mark.parametrize("strategy", [Evolution, MapElites])
def test_bodies_that_may_not_stay_make_no_difference(strategy):
    rng = np.random.default_rng(1)
    few = [Genotype.random(SPACE, rng) for _ in range(6)]
    whole, some, shown = strategy(SPACE, 50), strategy(SPACE, 50), []
    for generation in range(4):
        found = [
            Individual(few[int(rng.integers(6))], float(score), generation, (float(k % 4), 0.0))
            for k, score in enumerate(rng.normal(size=50))
        ]
        whole.choose(found)
        scores, measures = np.array([one.score for one in found]), [one.measures for one in found]
        stay = some.may_stay(np.append(scores, np.nan), np.array([*measures, (0.0, 0.0)]))
        assert not stay[-1]  # without a valid score
        some.choose([one for one, may in zip(found, stay, strict=False) if may])
        shown.append(np.count_nonzero(stay))
        assert some.members == whole.members
    assert len(whole.members) > 2
    assert shown[-1] < 25 < shown[0]
    assert not some.may_stay(np.full(1, np.nan), np.zeros((1, 2))).any()


def test_map_elites_keeps_the_best_of_each_cell():
    rng = np.random.default_rng(0)
    search, best, asked = MapElites(SPACE, 20), {}, []
    genotype = Genotype.random(SPACE, rng)
    for generation in range(3):
        found = [
            Individual(genotype, float(score), generation, (float(joints), float(height)))
            for score, joints, height in zip(
                rng.normal(size=40), rng.integers(1, 5, 40), rng.uniform(0, 0.1, 40), strict=True
            )
        ]
        for one in found:
            cell = one.measures[0], int(one.measures[1] // 0.025)
            best[cell] = max(best.get(cell, -np.inf), one.score)
        assert search.choose(found, lambda one: asked.append(one) is None) == []
    assert [one.score for one in search.members] == sorted(best.values(), reverse=True)
    assert len(best) > 8
    assert len(best) <= len(asked) < 60  # of 120: only those that would stay


def test_wrong_arguments_are_one_line(monkeypatch, tmp_path):
    for call, error, words in (
        (partial(evolve, "fly"), UnknownNameError, "no task 'fly': tasks are walk, climb, carry"),
        (partial(evolve, TASK, 0), StateError, "population"),
        (partial(evolve, TASK, 6, 0), StateError, "generations"),
        (partial(evolve, TASK, 6, 1, -1), StateError, "seed"),
        (partial(evolve, TASK, strategy="best"), UnknownNameError, "strategies are evolution"),
        (partial(evolve, TASK, 6, 1, target="tpu"), UnknownNameError, "target is cpu, cuda"),
        (partial(evolve, TASK, progress=1), StateError, "progress"),
        (partial(SearchTask, "x", 3), StateError, "objective is a function"),
        (partial(SearchTask, "x", distance, duration=0), StateError, "duration"),
        (partial(SearchTask, "x", distance, begin=1), StateError, "begin of a task"),
        (partial(SearchTask, "x", distance, begin=-0.1), StateError, "begin of a task"),
        (partial(SearchTask, "x", distance, start="air"), StateError, "'gait' or 'rest'"),
        (partial(SearchTask, "x", distance, ground=1), StateError, "ground"),
        (partial(SearchTask, 3, distance), StateError, "the name of a task is a text, got 3"),
        (partial(SearchTask, "x", distance, constraints=[distance]), StateError, "by name"),
        (partial(evaluate, [], "fly"), UnknownNameError, "no task 'fly'"),
        (partial(evaluate, [], TASK, target=["cpu"]), UnknownNameError, "target is cpu, cuda"),
    ):
        with complains(error, words):
            call()
    monkeypatch.setitem(sys.modules, "ribs.archives", None)
    with complains(StateError, "pip install 'modurob[evolve]'"):
        evolve(TASK, **RUN, strategy="map-elites")
