"""`evolve`: the same bytes from the same seed, whatever interrupts the search."""

import gc
import json
import os
import pickle
import signal
import subprocess
import sys
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import modurob as mr
from modurob.drawing import charts
from modurob.errors import FileError, StateError, UnknownNameError, WriteError
from modurob.modules.files import LARGEST_FILE_BYTES
from modurob.search import (
    BodySpace,
    EvolutionRecord,
    Genotype,
    Individual,
    SearchTask,
    evaluate,
    evolution,
    evolve,
    gallery,
    write_gallery,
)
from modurob.search.evaluation import (
    DIVERGED,
    MEETS,
    NOT_FINITE,
    TOO_FAST,
    checked_chunks,
    evaluate_chunk,
)
from modurob.search.evolution import _blocks
from modurob.search.strategies import Evolution, MapElites, Strategy
from modurob.search.tasks import distance, way_along
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
        task=replace(TASK, name="a<b>", unit="<i>", begin=0.5), kept_out={"constraint <u>": 1}
    )
    write_gallery(named, tmp_path, bodies=0)
    assert {path.name for path in tmp_path.iterdir()} == {
        "index.html", "progress.png", "winners.json"
    }  # fmt: skip
    page = (tmp_path / "index.html").read_text()
    for text in ("a&lt;b&gt;, 0.1 s, scored from 0.05 s on", "&lt;i&gt;", "constraint &lt;u&gt;"):
        assert text in page
    for tag in ("<b>", "<i>", "<u>"):
        assert tag not in page


def test_a_chart_shows_the_scores_of_all_generations(whole_search, monkeypatch):
    result, drawn = whole_search[0]._replace(generations=5), []
    monkeypatch.setattr(charts, "write", lambda figure, path: drawn.append(figure))
    gallery.draw_progress(result, "progress.png")
    (plane,) = drawn[0].axes
    fields = {"best so far": "leader", "best of a generation": "best", "median": "median"}
    for line in plane.get_lines():
        field = fields.pop(line.get_label())
        expected = [getattr(entry, field) for entry in result.history]
        assert line.get_ydata() == pytest.approx(expected)
        assert list(line.get_xdata()) == [1, 2, 3]
    assert not fields
    widths = [line.get_linewidth() for line in plane.get_lines()]
    assert widths[0] > 2 * max(widths[1:])  # wide below narrow, so that both are seen
    marks = [line.get_markersize() for line in plane.get_lines()]
    assert all(mark > width for mark, width in zip(marks, widths, strict=True))
    sizes = {text.get_fontsize() for text in plane.get_legend().get_texts()}
    assert max(sizes) <= plane.get_xticklabels()[0].get_fontsize()
    assert widths[0] > widths[1]  # wide below narrow, so that both are seen
    assert plane.get_xlim() == (0.5, 5.5)
    assert all(x == round(x) for x in plane.get_xticks())
    assert not plane.get_legend().get_frame_on()
    assert (plane.get_xlabel(), plane.get_ylabel()) == ("generation", "score [m]")
    assert drawn[0].get_suptitle() == "walk: 18 bodies"
    few = result._replace(generations=2, history=result.history[:2])
    gallery.draw_progress(few, "progress.png")
    assert [x for x in drawn[1].axes[0].get_xticks() if 0.5 < x < 2.5] == [1, 2]  # no halves


def test_an_archive_shows_the_best_score_of_each_cell(whole_search, monkeypatch):
    result, drawn = whole_search[0], []
    record = result.record
    settings = {**record.settings, "strategy": "map-elites"}
    places = {(1.0, 0.01): 0.4, (12.0, 0.19): 0.3, (3.0, 0.06): 0.2, (99.0, -1.0): 0.1}
    best = [Individual(result.best[0].genotype, x, 0, place) for place, x in places.items()]
    best.append(best[0]._replace(score=0.05))  # worse, in the same cell
    result = result._replace(best=best, record=record.model_copy(update={"settings": settings}))
    monkeypatch.setattr(charts, "write", lambda figure, path: drawn.append(figure))
    gallery.draw_archive(result, "archive.png")
    plane = drawn[0].axes[0]
    (image,) = plane.images
    scores = np.ma.filled(image.get_array(), np.nan)
    expected = np.full((8, 12), np.nan)  # heights of 25 mm, numbers of joints
    expected[[0, 7, 2, 0], [0, 11, 2, 11]] = [0.4, 0.3, 0.2, 0.1]
    np.testing.assert_array_equal(scores, expected)
    assert image.get_extent() == [0.5, 12.5, 0.0, 0.2]
    assert image.origin == "lower"
    assert (plane.get_xlabel(), plane.get_ylabel()) == ("joints", "height [m]")
    assert drawn[0].get_suptitle() == "walk: 5 of 96 cells"


def test_a_card_tells_the_body_its_gait_and_what_mujoco_found(whole_search):
    files = ("w.json", "w-gait.json", "w-scenario.json", "w.png", "w.gif")
    winner = gallery.Winner("w", 2.0, 1.5, "", 3, 2, 3.0, 0.756, 4, files)
    card = gallery._card(winner, whole_search[0])
    for text in (
        "2.000 m", "1.500 m (-25 %)", "3 modules, 2 joints, 3 kg",
        "0.76 Hz, found in generation 5", '<img src="w.png" alt="w, joints at zero"',
        '<img src="w.gif" alt="w, in motion"', "modurob run w-scenario.json",
        "modurob walk w.json --hinges dyad --gait w-gait.json",
    ):  # fmt: skip
        assert text in card
    noted = gallery._card(winner._replace(note="it overlaps", files=files[:4]), whole_search[0])
    assert "<td>it overlaps</td>" in noted
    assert "(-25 %)" not in noted
    assert "in motion" not in noted


def test_a_gallery_shows_different_bodies_and_tells_its_progress(
    whole_search, monkeypatch, tmp_path
):
    result, told = whole_search[0], []
    monkeypatch.setattr(
        gallery,
        "_write_winner",
        lambda result, one, name, *_: gallery.Winner(
            name, one.score, np.nan, "no MuJoCo", 3, 2, 3.0, 0.5, 0, ("a", "b", "c", "d")
        ),
    )
    monkeypatch.setattr(gallery, "draw_progress", lambda *_: None)
    first = result.best[0]
    twice = result._replace(best=[first, first._replace(score=0.0), *result.best[1:]])
    found = write_gallery(twice, tmp_path, bodies=2, progress=told.append)
    different = {one.genotype.canonical(gait=False) for one in twice.best}
    assert len(found) == min(2, len(different))
    assert found[0].name == "winner-1"
    assert found[0].score == first.score
    assert told == [(k + 1) / len(found) for k in range(len(found))]
    rows = json.loads((tmp_path / "winners.json").read_text())["winners"]
    assert [row["name"] for row in rows] == [one.name for one in found]
    assert rows[0]["mujoco"] is None
    assert "archive.png" not in (tmp_path / "index.html").read_text()


def test_an_archive_is_drawn_of_a_strategy_with_two_measures(whole_search, monkeypatch, tmp_path):
    result, drawn = whole_search[0], []
    monkeypatch.setattr(gallery, "draw_progress", lambda *_: None)
    monkeypatch.setattr(gallery, "draw_archive", lambda _, path: drawn.append(path.name))
    write_gallery(result, tmp_path, bodies=0)
    assert drawn == []
    settings = {**result.record.settings, "strategy": "map-elites"}
    record = result.record.model_copy(update={"settings": settings})
    write_gallery(result._replace(record=record), tmp_path, bodies=0)
    assert drawn == ["archive.png"]
    assert '<img src="archive.png"' in (tmp_path / "index.html").read_text()


def test_a_gallery_has_as_many_bodies_as_it_is_asked_for():
    rng, bodies = np.random.default_rng(0), {}
    while len(bodies) < 3:
        one = Genotype.random(SPACE, rng)
        bodies.setdefault(one.canonical(gait=False), Individual(one, -len(bodies), 0))
    first, second, third = bodies.values()
    everyone = [first, first._replace(score=-0.5), second, third]
    for count, expected in ((0, []), (1, [first]), (2, [first, second])):
        assert gallery._different(everyone, count) == expected


def test_a_killed_search_goes_on_to_the_same_bytes(whole_search, tmp_path):
    path = tmp_path / "killed.json"
    done = subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(json.loads(path.read_bytes())["history"]) == 2
    evolve(TASK, **RUN, checkpoint=path)
    assert path.read_bytes() == whole_search[1]


def test_a_search_of_many_large_bodies_is_continued(whole_search, tmp_path):
    """Its checkpoint is larger than other files may be."""
    path = tmp_path / "large.json"
    path.write_bytes(whole_search[1] + b" " * LARGEST_FILE_BYTES)
    assert evolve(TASK, **RUN, checkpoint=path).record == whole_search[0].record


def test_a_checkpoint_of_more_than_128_mebibytes_is_refused(tmp_path):
    path = tmp_path / "larger.json"
    with path.open("wb") as file:
        file.truncate(2**27 + 1)
    with complains(FileError, "larger.json", "at most 134,217,728 bytes are read"):
        EvolutionRecord.load(path)


def test_settings_that_differ_are_quoted_up_to_80_characters(whole_search, tmp_path):
    path = tmp_path / "named.json"
    path.write_bytes(whole_search[1])
    with complains(FileError, f"another task: walk, not {'x' * 80};"):
        evolve(replace(TASK, name="x" * 81), **RUN, checkpoint=path)
    data = json.loads(whole_search[1])
    data["settings"]["task"] = "y" * 81
    path.write_text(json.dumps(data))
    with complains(FileError, f"another task: {'y' * 80}, not walk;"):
        evolve(TASK, **RUN, checkpoint=path)


def test_settings_tell_tasks_on_other_fields_and_with_other_arguments_apart():
    class Far:
        def __call__(self, rollout, population):
            return rollout.distance

    field = mr.Ground(height=[[0.0, 0.1], [0.2, 0.3]], cell=0.25)
    east = partial(way_along, direction=(0.0, 1.0))
    found = SearchTask("x", east, ground=field, constraints={"far": Far()}).settings()
    assert (found["heights"], found["cell"]) == ([[0.0, 0.1], [0.2, 0.3]], 0.25)
    assert found["objective"] == "modurob.search.tasks.way_along () {'direction': (0.0, 1.0)}"
    assert found["constraints"] == {"far": f"{__name__}.Far"}
    assert TASK.settings()["cell"] is None


def test_a_generation_in_numbers(whole_search):
    """Bodies whose modules meet are kept out in the place where they were made."""
    (one, *_), record = whole_search[0].best, EvolutionRecord(settings={}, kept_out={"b": 2})

    def out(number):
        return evolution._kept_out(3, number, "b", one.genotype)

    broods = [
        evolution.Brood(np.array([np.nan, 4.0, 1.0]), {}, Counter(b=1), [out(0)]),
        evolution.Brood(np.array([7.0, np.nan, 2.0]), {}, Counter(b=1), [out(4)]),
    ]
    found = evolution._extended(record, [], broods, {3: one, 1: one})
    (entry,) = found.history
    assert entry.model_dump() == {
        "evaluated": 6, "kept_out": 4, "best": 2.0, "median": 1.5, "leader": None,
    }  # fmt: skip
    assert list(found.kept_out.items()) == [("b", 4), (MEETS, 2)]
    assert [(each.number, each.reason) for each in found.named] == [
        (0, "b"), (1, MEETS), (3, MEETS), (4, "b"),
    ]  # fmt: skip
    again = evolution._extended(found, [], broods, {})
    assert (again.history[1].best, again.history[1].median) == (7.0, 3.0)
    assert list(again.kept_out.items()) == [("b", 6), (MEETS, 2)]


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
        ("every", partial(evolve, replace(TASK, every=0.05), **RUN)),
        ("stiffness", partial(evolve, replace(TASK, ground=mr.Ground(stiffness=1e3)), **RUN)),
        ("damping", partial(evolve, replace(TASK, ground=mr.Ground(damping=3.0)), **RUN)),
        ("space", partial(evolve, TASK, **{**RUN, "space": replace(SPACE, modules=(3, 6))})),
    ):
        with complains(FileError, f"another {name}", "give the same, or another file"):
            call(checkpoint=path)
    data = json.loads(whole_search[1])
    data["members"][0]["genotype"]["genes"] = []
    path.write_text(json.dumps(data))
    with complains(FileError, str(path), "genes"):
        evolve(TASK, **RUN, checkpoint=path)
    data = json.loads(whole_search[1])
    data["members"][0]["measures"] = [1.0]
    path.write_text(json.dumps(data))
    with complains(FileError, str(path), "a member has 1 measures, expected 0"):
        evolve(TASK, **RUN, checkpoint=path)
    path.write_text('{"format": "modurob-gait", "version": 1}')
    with complains(FileError, "expected 'modurob-evolution'"):
        evolve(TASK, **RUN, checkpoint=path)
    del data["settings"]["space"]
    path.write_text(json.dumps(data))
    with complains(FileError, "genotype: space"):
        EvolutionRecord.load(path).individuals()


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


@pytest.mark.parametrize("unmet", [0.0, np.nan])
def test_a_constraint_keeps_bodies_out(unmet):
    narrow = {"few joints": partial(some_scores, where=unmet)}
    rng = np.random.default_rng(0)
    bodies = [Genotype.random(SPACE, rng) for _ in range(6)]
    joints = mr.Population.from_genotypes(bodies).joints
    reasons = [one.reason for one in evaluate(bodies, replace(TASK, constraints=narrow))]
    assert reasons == ["constraint few joints" if n == joints.min() else "" for n in joints]
    assert len(set(reasons)) == 2
    told = []
    with complains(StateError, "no body has a valid score: the objective is not finite (24)"):
        evolve(replace(TASK, objective=nowhere), 12, 2, 4, space=SPACE, progress=told.append)
    assert [len(result.history) for result in told] == [1, 2]
    numbers = [one.number for one in told[-1].record.named]
    assert numbers == [*range(12), *range(8)]  # the first twenty
    assert told[-1].history[-1] == told[-1].history[0]
    assert (told[0].history[0].kept_out, told[0].history[0].leader) == (12, None)
    assert gc.isenabled()  # a search pauses it


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


def test_populations_have_64_bodies_on_a_cpu_and_131072_on_a_gpu():
    assert [checked_chunks(target) for target in ("cpu", "cuda")] == [64, 131_072]


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
        (100_000, "cpu", {63, 64}),
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


def test_bodies_with_a_joint_that_moves_no_mass_are_kept_out():
    """Those that end in a wrist whose mass lies on its axis."""
    data = mr.catalog["giusti_c"].document()
    data["name"] = "wrist"
    data["bodies"][1] = {"name": "distal", "mass": 0.25, "center_of_mass": [0, 0, 0.025]}
    data["joints"][0] |= {"kind": "revolute", "viscous": 0.0}
    wrist = mr.ModuleType.from_document(data, "wrist")
    space = BodySpace(("giusti_c", wrist), (2, 3), frequency=(0.5, 1.0))
    rng = np.random.default_rng(1)
    bodies = [Genotype.random(space, rng) for _ in range(8)]
    found = evaluate(bodies, TASK)
    assert {bool(one.reason) for one in found} == {False, True}
    for genotype, evaluation in zip(bodies, found, strict=True):
        alone = mr.Population.from_genotypes([genotype])
        singular = np.linalg.cond(alone.model(0).mass_matrix(alone.model(0).neutral())) > 1e15
        assert bool(evaluation.reason) == singular
    k = [bool(one.reason) for one in found].index(True)
    with complains(StateError, f"a joint of body {k} moves no mass"):
        mr.Population.from_genotypes(bodies).rollout(0.01)


def test_functions_of_the_wrong_shape_are_refused():
    rng = np.random.default_rng(0)
    genotype = Genotype.random(SPACE, rng)
    with complains(StateError, "objective", "(1,) numbers", "(2,)"):
        evaluate([genotype], replace(TASK, objective=lambda *_: [1.0, 2.0]))
    for given in ([[1.0], [1.0, 2.0]], ["far"], [1j], [None], 1.0):
        with complains(StateError, "objective", "(1,) numbers"):
            evaluate([genotype], replace(TASK, objective=lambda *_, given=given: given))
    with complains(StateError, "measure: a function of a rollout"):
        evaluate([genotype], TASK, [lambda *_: [1.0, 2.0]])
    with complains(StateError, "constraint up: a function of a rollout"):
        evaluate([genotype], replace(TASK, constraints={"up": lambda *_: [True, True]}))
    (found,) = evaluate([genotype], replace(TASK, objective=lambda *_: [True]), [lambda *_: [3]])
    assert (found.score, found.measures) == (1.0, (3.0,))


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


def test_a_generation_is_given_up_after_200_children_for_each_body(monkeypatch):
    one, made = Genotype.random(SPACE, np.random.default_rng(0)), []
    monkeypatch.setattr(Strategy, "_child", lambda self, rng: made.append(one) or one)
    with complains(StateError, "1 of 3 bodies found that differ"):
        Evolution(SPACE, 3).children(np.random.default_rng(0), 3)
    assert len(made) == 600


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


def test_a_body_may_stay_if_it_is_better_than_the_worst_parent():
    search, rng = Evolution(SPACE, 20), np.random.default_rng(0)
    parents = [Genotype.random(SPACE, rng) for _ in range(4)]
    search.choose([Individual(one, float(k), 0) for k, one in enumerate(parents, 1)])
    assert [one.score for one in search.members] == [4, 3, 2, 1]
    scores = np.array([0.9, 1.0, 1.1, 2.5, np.nan])
    stay = search.may_stay(scores, np.zeros((5, 0)))
    assert stay.tolist() == [False, False, True, True, False]


def test_a_body_may_stay_if_it_is_better_than_that_of_its_cell():
    search, genotype = MapElites(SPACE, 20), Genotype.random(SPACE, np.random.default_rng(0))
    place = 3.0, 0.01
    search.choose([Individual(genotype, 1.0, 0, place)])
    stay = search.may_stay(np.array([0.9, 1.0, 1.1, -5.0]), np.array([place] * 3 + [(4.0, 0.01)]))
    assert stay.tolist() == [False, False, True, True]  # the last one has a cell of its own
    asked = []
    same = Individual(genotype, 1.0, 1, place)
    assert search.choose([same], lambda one: asked.append(one) is None) == []
    assert not asked
    assert [one.generation for one in search.members] == [0]  # the older one of two that are equal


def test_a_fifth_are_parents_and_a_tenth_of_them_have_the_same_body():
    sizes = {2: 2, 10: 2, 20: 4, 200: 40, 5000: 1000, 10_000: 1000}
    assert {n: Evolution(SPACE, n)._kept for n in sizes} == sizes
    rng = np.random.default_rng(0)
    few = [Genotype.random(SPACE, rng) for _ in range(3)]
    bodies = len({one.canonical(gait=False) for one in few})
    search = Evolution(SPACE, 300)  # 60 parents
    search.choose([Individual(few[k % 3], float(k), 0) for k in range(150)])
    assert len(search.members) == 6 * bodies


class NamedGenotype(str):
    """A genotype that tells how it was made."""

    def crossed(self, other, rng):
        return NamedGenotype(f"{self} x {other}")

    def mutated(self, rng):
        return NamedGenotype(f"{self} mutated")


def test_children_are_made_in_the_shares_of_the_guide(monkeypatch):
    """Three of ten have two parents, all of them are mutated, one of twenty is random."""
    monkeypatch.setattr(Genotype, "random", lambda space, rng: "random")
    rng, search, count = np.random.default_rng(0), Evolution(SPACE, 20), 5000
    assert search._child(rng) == "random"
    search.members = [Individual(NamedGenotype(name), 0.0, 0) for name in "ab"]
    made = [search._child(rng) for _ in range(count)]
    parents = [one for one in made if one != "random"]
    assert all(one.endswith(" mutated") for one in parents)
    crossed = [one for one in parents if " x " in one]
    assert set(crossed) == {f"{a} x {b} mutated" for a in "ab" for b in "ab"}
    assert 1 - len(parents) / count == pytest.approx(0.05, abs=5 * np.sqrt(0.05 * 0.95 / count))
    assert len(crossed) / len(parents) == pytest.approx(0.3, abs=5 * np.sqrt(0.21 / count))


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


def test_wrong_arguments_are_one_line(monkeypatch, tmp_path, whole_search):
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
        (partial(SearchTask, "x", distance, payload=-1), StateError, "the payload of a task"),
        (partial(SearchTask, "x", distance, torque=0), StateError, "the torque of a task"),
        (partial(SearchTask, "x", distance, unit=3), StateError, "the unit of a task is a text"),
        (partial(SearchTask, "x", distance, constraints={"up": 1}), StateError, "up is a function"),
        (partial(evolve, TASK, 1), StateError, "population must be a whole number of 2 or more"),
        (partial(SearchTask, "x", distance, ground=1), StateError, "ground"),
        (partial(SearchTask, 3, distance), StateError, "the name of a task is a text, got 3"),
        (partial(SearchTask, "x", distance, constraints=[distance]), StateError, "by name"),
        (partial(evaluate, [], "fly"), UnknownNameError, "no task 'fly'"),
        (partial(evaluate, [], TASK, target=["cpu"]), UnknownNameError, "target is cpu, cuda"),
    ):
        with complains(error, words):
            call()
    with complains(StateError, "bodies must be a whole number of 0 or more, got -1"):
        write_gallery(whole_search[0], tmp_path, bodies=-1)
    monkeypatch.setitem(sys.modules, "ribs.archives", None)
    with complains(StateError, "pip install 'modurob[evolve]'"):
        evolve(TASK, **RUN, strategy="map-elites")


def test_the_files_of_a_winner_are_those_that_commands_read(whole_search, tmp_path, monkeypatch):
    result, made = whole_search[0], []

    class Run:
        def animate(self, path, **options):
            made.append((path.name, options))

    monkeypatch.setattr(
        gallery, "picture", lambda organism, path, **options: made.append((path.name, options))
    )
    monkeypatch.setattr(gallery, "replay", lambda scenario, task: Run())
    monkeypatch.setattr(gallery, "mujoco_score", lambda scenario, task: (0.25, "a note"))
    one = result.best[0]._replace(generation=2)
    for films in (True, False):
        made.clear()
        found = gallery._write_winner(result, one, "winner-7", tmp_path, films)
        names = ["winner-7.json", "winner-7-gait.json", "winner-7-scenario.json", "winner-7.png"]
        assert list(found.files) == names + ["winner-7.gif"] * films
        options = {"hinges": "dyad", "labels": False, "size": 500}
        film = ("winner-7.gif", {"fps": 10, "size": 640})
        assert made == [("winner-7.png", options)] + [film] * films
    organism = one.genotype.organism()
    scenario = mr.load(tmp_path / "winner-7-scenario.json")
    assert mr.load(tmp_path / "winner-7.json") == scenario.organism == organism
    assert (scenario.name, scenario.frequency) == ("walk winner-7", one.genotype.frequency)
    gait = json.loads((tmp_path / "winner-7-gait.json").read_text())
    assert gait["format"] == "modurob-gait"
    mass = sum(organism.kind(name).mass for name in organism.modules)
    joints = len(one.genotype.model().joint_names)
    assert found[:9] == (
        "winner-7", one.score, 0.25, "a note", len(organism), joints, pytest.approx(mass),
        one.genotype.frequency, 2,
    )  # fmt: skip


def test_a_page_tells_what_was_searched_and_kept_out(whole_search):
    result, settings = whole_search[0], whole_search[0].record.settings
    page = gallery._page(result, [], False)
    first, best = result.history[0].median, result.best[0].score
    for name, text in (
        ("task", "walk, 0.1 s"), ("strategy", "evolution"), ("kept out", "none"),
        ("bodies", f"18 in 3 generations of 6, seed {settings['seed']}"),
        ("best score", f"{best:.3f} m"), ("median of random bodies", f"{first:.3f} m"),
    ):  # fmt: skip
        assert f"<tr><th>{name}</th><td>{text}</td></tr>" in page
    assert "archive.png" not in page
    none = result.history[0].model_copy(update={"median": None})
    other = result._replace(history=(none, *result.history[1:]), kept_out={"a": 2, "b": 1})
    page = gallery._page(other, [], True)
    assert "<th>median of random bodies</th><td>none</td>" in page
    assert "<th>kept out</th><td>2: a, 1: b</td>" in page
    assert '<img src="archive.png"' in page


def test_the_search_of_the_command_is_of_slow_waves():
    assert BodySpace(frequency=(0.3, 0.6)) == evolution.DEFAULT_SPACE


@pytest.mark.parametrize("executor", [False, True])
def test_clearance_is_asked_once_of_bodies_and_of_the_best_first(monkeypatch, executor):
    asked = []
    monkeypatch.setattr("modurob.search.evolution.clear", lambda one: asked.append(one) or one > 2)

    class Here:
        def map(self, function, items):
            return [function(item) for item in items]

    scores = {1: 5.0, 2: 4.0, 3: 9.0, 4: 1.0}
    individuals = [Individual(number, score, 0) for number, score in scores.items()]
    clearance = evolution.Clearance(individuals, Here() if executor else None)
    order = [one.genotype for one in sorted(individuals, key=lambda one: -one.score)]
    assert [clearance(number) for number in order] == [True, False, False, True]
    assert asked == order == [3, 1, 2, 4]
