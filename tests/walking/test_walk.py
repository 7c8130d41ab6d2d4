"""`walk`, tuning and the zoo: gaits on the ground."""

import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import modurob as mr
from modurob.cli import cli
from modurob.gaits import GAITS
from modurob.scenario.gait_files import GaitRecord
from modurob.spatial import so3
from modurob.walking import evaluate, measured, started, tune, walk_metrics, walking_fields
from modurob.walking.tuning import FAILED, search_space
from modurob.walking.zoo import ZOO, zoo_walk
from oracles.complaints import complains

SNAKE = mr.examples.snake(3)
QUICK = {"duration": 0.4, "hinges": "physical"}
POPULATION = 4
ENGINES_AGREE = 1.2  # factor: the contact laws differ
CLOSE = 1e-9  # relative: a batch and one state differ by the rounding of sums


def scenario(**fields):
    return started(mr.Scenario(organism=SNAKE, **walking_fields("wave", **(QUICK | fields))))


def late_speed(run: mr.Trajectory) -> float:
    """Speed of the center of mass in the last three quarters of a run. [m/s]"""
    k = int(np.searchsorted(run.t, 0.25 * run.t[-1] - 1e-9))
    way = np.diff(run.model.center_of_mass(run.q[[k, -1]])[:, :2], axis=0)[0]
    return float(np.linalg.norm(way) / (0.75 * run.t[-1]))


def test_a_walk_has_a_trajectory_and_measures():
    found = mr.walk(SNAKE, "wave", {"lag": 1.2}, **QUICK)
    assert found.metrics == walk_metrics(found.trajectory, found.ground)
    assert found.scenario.gait == {"lag": 1.2}
    assert "raised by 0.05 m" in found.note  # half a cube
    assert found.trajectory.q[0, 2] == pytest.approx(0.05)


def test_gains_replace_the_settling_time_of_walks():
    found = mr.walk(SNAKE, duration=0.02, hinges="physical", gains={"kp": 5.0, "kd": 0.1})
    assert found.scenario.gains == {"kp": 5.0, "kd": 0.1}
    assert "settling_time" not in walking_fields(controller="robust", gains={"rate": 9.0})
    assert walking_fields()["settling_time"] == 0.1
    with complains(mr.StateError, "settling_time", "no effect with poles or gains"):
        mr.walk(SNAKE, gains={"kp": 5.0, "kd": 0.1}, settling_time=0.2)


def test_the_cross_goes_as_far_in_mujoco():
    ours, theirs = (
        zoo_walk("cross", duration=3.0, engine=engine).metrics for engine in ("modurob", "mujoco")
    )
    assert ours.distance > 0.3  # [m]
    assert 1 / ENGINES_AGREE < ours.distance / theirs.distance < ENGINES_AGREE
    assert abs(ours.heading - theirs.heading) < 0.1  # [rad]


def turns(run: mr.Trajectory, until: float) -> np.ndarray:
    """(3,) turns of the base about the axes of its own frame."""
    R = so3.from_quaternion(run.q[run.t <= until + 1e-9, 3:7])
    return so3.log(R[:-1].swapaxes(-1, -2) @ R[1:]).sum(axis=0) / (2 * np.pi)


def test_the_roller_rolls_as_in_mujoco():
    """The bend goes around the body 0.4 times a second; the body turns about its long axis."""
    ours = zoo_walk("roller", duration=6.0, record=0.02)
    x, y, z = turns(ours.trajectory, 6.0)
    assert 2.0 < z < 0.4 * 6.0  # some tenths are lost while the bend builds up
    assert max(abs(x), abs(y)) < 0.25  # a quarter turn: the ends of the bar swing
    # it rolls to its side, on less than the girth of its square section
    assert abs(abs(ours.metrics.heading) - np.pi / 2) < 0.4
    assert 0.5 < ours.metrics.distance / (z * 4 * 0.084) < 1.0
    theirs = zoo_walk("roller", duration=3.0, record=0.02, engine="mujoco")
    expected = turns(theirs.trajectory, 3.0)[2]
    assert expected > 0.9
    assert turns(ours.trajectory, 3.0)[2] == pytest.approx(expected, rel=ENGINES_AGREE - 1)


@pytest.mark.parametrize("name", ZOO)
def test_every_walker_of_the_zoo_keeps_moving(name):
    run = zoo_walk(name, duration=4.0, record=2.0).trajectory
    way = np.diff(run.model.center_of_mass(run.q[[1, 2]])[:, :2], axis=0)
    assert np.linalg.norm(way) > 0.06  # [m] in two seconds, after any fall at the start


def test_zero_friction_is_said_and_moves_nothing():
    with pytest.warns(mr.ModelWarning, match="no friction") as caught:
        found = mr.walk(SNAKE, **QUICK, ground_friction=0.0)
    assert caught[0].filename == __file__  # where the walk was asked for
    # no horizontal force: the center of mass stays, up to the error of a step
    assert found.metrics.distance < 1e-3


# -- tuning ----------------------------------------------------------------------------------------


def test_the_score_of_a_batch_is_that_of_single_walks():
    run = scenario()
    gaits = [{"amplitude": a, "frequency": f} for a, f in ((0.3, 0.5), (0.6, 1.0), (0.5, 0.8))]
    scores = evaluate(run, gaits, effort=0.0)
    for gait, score in zip(gaits, scores.tolist(), strict=True):
        single = run.edited(**gait).on_motion()
        assert late_speed(single.run().trajectory) == pytest.approx(score, rel=CLOSE)
    stopped = scenario(stops=True, ramp=0.0).edited(gait={"offset": 1.57}).on_motion()
    score = evaluate(stopped, [{}], effort=0.0)[0]
    assert score != evaluate(stopped.edited(stops=False), [{}], effort=0.0)[0]
    assert late_speed(stopped.run().trajectory) == pytest.approx(score, rel=CLOSE)
    spent = (scores - evaluate(run, gaits, effort=1.0)) * sum(run.plant().mass) * 9.81
    one = run.edited(**gaits[1], record=run.sample_time).on_motion()
    power = measured(one, one.run()).metrics.work / run.duration
    assert spent[1] == pytest.approx(power, rel=0.02)  # left sums against the trapezoidal rule


def test_a_gait_that_diverges_fails_alone(monkeypatch):
    run, original = scenario(), mr.simulate

    def fragile(model, q, v, duration, loop, *rest, **options):
        if np.abs(loop.first()[0] - 0.4).max(axis=1).min() < 1e-9:  # the offset of the bad one
            raise mr.SimulationError("diverged", 0.0, None)  # pyright: ignore
        return original(model, q, v, duration, loop, *rest, **options)

    monkeypatch.setattr("modurob.walking.tuning.simulate", fragile)
    bad = {"gait": {"offset": 0.4}}
    good = evaluate(run, [{}])
    assert evaluate(run, [{}, bad, {}]).tolist() == [good[0], FAILED, good[0]]
    assert FAILED < -100  # m/s: no walk is that bad, whatever its effort


def test_tuning_improves_a_gait_and_leaves_global_random_numbers_alone(tmp_path):
    run, before = scenario(), np.random.get_state()[1].copy()
    first = evaluate(run, [{}])[0]
    found = tune(run, 8 * POPULATION, seed=3, population=POPULATION)
    assert found.score > first
    assert found.evaluations == 8 * POPULATION
    assert (np.diff(found.best) >= 0).all()
    assert (np.random.get_state()[1] == before).all()
    found.gait.save(tmp_path / "best.json")
    again = mr.walk(SNAKE, tmp_path / "best.json", **QUICK)
    score = evaluate(run, [found.gait.fields()], effort=0.0)[0]
    assert late_speed(again.trajectory) == pytest.approx(score, rel=CLOSE)


class Killed(BaseException):
    """End of a search from outside: nothing in it may catch this."""


def test_a_tuning_that_was_killed_comes_to_the_same_bytes(tmp_path):
    whole, cut = tmp_path / "whole.tuning", tmp_path / "cut.tuning"
    run, size = scenario(duration=0.1), {"population": POPULATION}
    expected = tune(run, 4 * POPULATION, checkpoint=whole, **size)

    def kill(generation: int, *_: object) -> None:
        if generation == 2:
            raise Killed

    with pytest.raises(Killed):
        tune(run, 4 * POPULATION, checkpoint=cut, progress=kill, **size)
    assert len(json.loads(cut.read_text())["scores"]) == 2
    np.random.random()  # as another process would: its random numbers are others
    resumed = tune(run, 4 * POPULATION, checkpoint=cut, **size)
    assert cut.read_bytes() == whole.read_bytes()
    assert resumed.gait == expected.gait
    assert sorted(os.listdir(tmp_path)) == [cut.name, whole.name]


def test_a_checkpoint_tells_what_differs_from_the_defaults(tmp_path):
    """So that a version with more settings goes on with it."""
    run, path = scenario(frequency=0.3, duration=0.02), tmp_path / "a.tuning"
    tune(run, POPULATION, population=POPULATION, checkpoint=path)
    kept = json.loads(path.read_text())["scenario"]
    assert kept["frequency"] == 0.3
    default = mr.Scenario(organism=SNAKE).model_dump(mode="json")
    assert not [name for name, value in kept.items() if name in default and value == default[name]
                and name != "organism"]  # fmt: skip


def test_a_checkpoint_must_be_of_the_same_search(tmp_path):
    path, run = tmp_path / "x.tuning", scenario()
    kept = {"population": POPULATION, "checkpoint": path}
    tune(run, POPULATION, **kept)
    good = path.read_text()
    other = mr.Scenario(organism=mr.examples.snake(4), **walking_fields("wave", **QUICK))
    with complains(mr.FileError, "another body"):
        tune(started(other), POPULATION, **kept)
    with complains(mr.FileError, "another ground_friction"):
        tune(scenario(ground_friction=0.5), POPULATION, **kept)
    with complains(mr.FileError, "another seed"):
        tune(run, POPULATION, seed=1, **kept)
    data = json.loads(good)
    for text, piece in (
        (good[:200], "not valid JSON"),
        ('{"format": "modurob-scenario", "version": 1}', "modurob-scenario"),
        (json.dumps(data | {"scores": [[1.0]]}), "4 scores each"),
        (json.dumps(data | {"scores": [["a"] * 4]}), "scores"),
        (json.dumps(data | {"scores": [data["scores"][0][::-1]]}), "same gait again"),
    ):
        path.write_text(text)
        with complains(mr.FileError, str(path), piece):
            tune(run, POPULATION, **kept)
        assert path.read_text() == text


def test_tuning_refuses_runs_that_a_batch_cannot_have(monkeypatch):
    with complains(mr.StateError, "pushes"):
        tune(scenario(pushes=[{"body": "m0", "force": (0, 0, 1)}]), 4)
    with complains(mr.StateError, "no noise:"):
        tune(scenario(noise_q=0.1), 4)
    with complains(mr.StateError, "no estimator"):
        tune(scenario(estimator="Ekf"), 4)
    with complains(mr.StateError, "takes the Scenario", "NoneType"):
        tune(None, 4)
    with complains(mr.StateError, "progress"):
        tune(scenario(), 4, progress=3)
    for fields in ({"engine": "mujoco", "dt": None}, {"integrator": "RK45", "dt": None},
                   {"sample_time": 0}):  # fmt: skip
        given = walking_fields("wave", **(QUICK | fields))
        with complains(mr.StateError, "tuning needs a law with a sample_time", "engine modurob"):
            tune(mr.Scenario(organism=SNAKE, **given), 4)
    with complains(mr.StateError, "evaluations"):
        tune(scenario(), 0)
    with complains(mr.StateError, "seed", "-1"):
        tune(scenario(), 4, seed=-1)
    with complains(mr.StateError, "population", "4 or more", "3"):
        tune(scenario(), 4, population=3)
    monkeypatch.setitem(sys.modules, "cma", None)
    with complains(mr.StateError, "pip install 'modurob[evolve]'"):
        tune(scenario(), 4)


# -- the command -----------------------------------------------------------------------------------


def call(*arguments):
    return CliRunner().invoke(cli, ["walk", *arguments])


def test_the_command_walks_tunes_and_keeps_the_gait(tmp_path):
    checkpoint, gait = str(tmp_path / "a.tuning"), str(tmp_path / "a.json")
    short = ("crab", "--gait", "sine", "--seconds", "0.2")
    done = call(*short, "--tune", "32", "--resume", checkpoint, "--save-gait", gait, "--json")
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert facts["tuning"]["evaluations"] == 32
    assert GaitRecord.load(gait).fields() == facts["tuning"]["gait"]
    shown = call("crab", "--seconds", "0.2", "--gait", gait, "--slope", "3")
    assert "cost of transport" in shown.output
    assert "slope 3°" in shown.output
    assert "Placed on the ground: raised by" in shown.output


@pytest.mark.parametrize(
    ("arguments", "pieces"),
    [
        (("crab", "--gait", "trot"), ("no gait 'trot'", "wave")),
        (("crab", "--gait", "there_is_none.json"), ("there_is_none.json",)),
        (("crab", "--friction", "nan"), ("--friction",)),
        (("crab", "--seconds", "nan"), ("--duration",)),
        (("crab", "--parameter", "lag=nan"), ("lag",)),
        (("crab", "--resume", "x.tuning"), ("--tune",)),
        (("crab", "--tune", "0"), ("0",)),
        (("crab", "--seed", "3"), ("--seed", "--tune")),
        (("crab", "--loads", "--masses", "1.2"), ("--loads", "mass of each module")),
        (("lobster",), ("lobster", "caterpillar", "snake")),
    ],
)
def test_bad_input_is_one_line(arguments, pieces):
    done = call(*arguments)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.strip().splitlines()) == 1
    assert all(piece in done.stderr for piece in pieces), done.stderr


def test_a_body_that_cannot_walk_is_refused():
    with complains(mr.StateError, "no joint that can move"):
        mr.walk(mr.Organism.start("backbone"))
    with complains(mr.StateError, "give its modules an inertia"):  # masses on a line
        mr.walk(mr.examples.double_pendulum(), hinges="physical")
    with complains(mr.StateError, "one body", "leave events out"):
        mr.walk(SNAKE, events=[{"time": 0.1, "what": "undock", "module": "m2"}], **QUICK)
    with complains(mr.StateError, "numbers by name", "[1]"):
        mr.walk(SNAKE, "wave", [1], **QUICK)
    with complains(mr.StateError, "integrator", "no effect"):
        mr.walk(SNAKE, engine="mujoco", integrator="RK4", **QUICK)


def test_a_gait_file_holds_a_gait(tmp_path):
    path = tmp_path / "hold.json"
    GaitRecord(motion="hold").save(path)
    with complains(mr.FileError, str(path), "no gait 'hold'", "wave"):
        mr.walk(SNAKE, path, **QUICK)


def test_joints_without_limits_are_tuned_without_warnings():
    arm = mr.examples.arm().with_parameters(rotor_inertia=5e-6, gear_ratio=100, stiffness=200.0)
    run = started(mr.Scenario(organism=arm, **walking_fields("sine", hinges="physical")))
    offsets = {d.joint: d for d in search_space(run, run.model()) if d.name == "offset"}
    spring = offsets["m0.joint.spring"]
    assert (spring.low, spring.high) == (-0.5, 0.5)


@pytest.mark.parametrize(
    ("limits", "offset"),
    [((-1.0, 2.0), (-0.25, 1.25, 0.5)), ((-2.0, 1.0), (-1.25, 0.25, -0.5)),
     ((-0.4, None), (-0.2, 0.2, 0.0)),
     ((None, 0.6), (-0.3, 0.3, 0.0))],
)  # fmt: skip
def test_numbers_that_are_tuned_have_the_ranges_of_the_docstring(limits, offset):
    fields = walking_fields("wave", hinges="physical", amplitude=0.7, frequency=0.1)
    run = mr.Scenario(organism=SNAKE.with_parameters(limits=limits), **fields)
    found = {(d.name, d.joint): d[2:] for d in search_space(run, run.model())}
    expected = {
        ("amplitude", ""): (0, 0.5, 0.5),
        ("frequency", ""): (0.2, 0.5, 0.2),
        ("lag", ""): (-np.pi, np.pi, np.pi / 3),
    }
    for joint in run.model().joint_names:
        expected |= {("phase", joint): (-np.pi, np.pi, 0), ("offset", joint): offset}
    assert found.keys() == expected.keys()
    for key, numbers in expected.items():
        assert found[key] == pytest.approx(numbers), key


@pytest.mark.parametrize("motion", GAITS)
def test_numbers_that_a_gait_does_not_have_are_not_tuned(motion):
    run = mr.Scenario(organism=SNAKE, **walking_fields(motion, hinges="physical"))
    names = {"frequency", "lag", "phase", "offset"} & GAITS[motion].parameters().keys()
    assert {d.name for d in search_space(run, run.model())} == {"amplitude", *names}


def test_a_walker_keeps_its_locks_beside_those_that_are_typed(tmp_path):
    saved = tmp_path / "s.json"
    done = call(
        "sidewinder", "--seconds", "0.01", "--lock", "m0.roll=10", "--save-scenario", str(saved)
    )
    assert done.exit_code == 0, done.output
    locked = mr.Scenario.load(saved).locked
    assert locked.keys() == ZOO["sidewinder"].fields["locked"].keys()
    assert locked["m0.roll"] == pytest.approx(np.deg2rad(10))


def test_the_zoo_walks_by_one_command(tmp_path):
    done = call("zoo", "--seconds", "0.02", "--csv", str(tmp_path / "zoo.csv"))
    assert done.exit_code == 0, done.output
    assert sorted(os.listdir(tmp_path)) == sorted(f"zoo-{name}.csv" for name in ZOO)
    done = call("zoo", "--tune", "8")
    assert done.exit_code == 2
    assert "--tune is of one walk: name a walker, caterpillar" in done.output


def test_the_code_of_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2] / "docs" / "guide" / "walking.md"
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, str(page), "exec"), names)
    assert names["best"].evaluations == 8
