"""Tasks against formulas, other simulations and MuJoCo; winners as files."""

from dataclasses import replace

import numpy as np
import pytest

import modurob as mr
from modurob.interop.mujoco_model import MujocoModel
from modurob.population import Rollout
from modurob.scenario.gait_files import GaitRecord
from modurob.search import TASKS, BodySpace, Genotype, evaluate, joint_waves
from modurob.search.clearance import MOMENTS, OVERLAP_M, _body_boxes, clear
from modurob.search.evaluation import NOT_FINITE
from modurob.search.gallery import Winner
from modurob.search.strategies import MapElites, height
from modurob.search.tasks import (
    SERVO_RAD_S,
    STEP_S,
    closeness,
    distance,
    height_kept,
    way_along,
)
from modurob.search.winners import _times, evaluated_run, mujoco_score, replay, scenario_of
from modurob.walking import measured
from modurob.walking.tuning import search_space
from oracles.complaints import complains

SPACE = BodySpace(modules=(4, 8), frequency=(0.5, 0.6))
SMALL = replace(SPACE, modules=(3, 4))
SHORT_S = 0.3
SAME_RUN = 1e-9  # [m] two programs, the same law and steps: rounding, which contact lets grow
FALL = 0.03  # relative: a body that begins level turns onto the slope before it slides freely


def genotypes(space, count, seed=0):
    rng = np.random.default_rng(seed)
    return [Genotype.random(space, rng) for _ in range(count)]


@pytest.mark.parametrize("name", TASKS)
def test_the_score_is_that_of_a_simulation_by_its_scenario(name):
    """Of another program: `simulate` with a control law and the gait of a file."""
    bodies, task = genotypes(SMALL, 9), replace(TASKS[name], duration=SHORT_S)
    genotype = next(one for one in bodies if clear(one))
    (found,) = evaluate([genotype], task)
    scenario = scenario_of(genotype, task)
    run = evaluated_run(replay(scenario, task), scenario, task)
    assert run.score == pytest.approx(found.score, abs=SAME_RUN)
    if name == "walk":
        task = replace(task, begin=0.0)
        again = measured(scenario, scenario.edited(engine="mujoco").run())
        score, note = mujoco_score(scenario, task)
        assert note == ""
        assert score == pytest.approx(again.metrics.distance, abs=SAME_RUN)
        assert score != found.score


def test_a_body_on_a_slope_of_ice_slides_down_as_a_mass_does():
    still = replace(SMALL, amplitude=0.0, offset=0.0)
    a = TASKS["climb"].ground.slope[0]
    ice = replace(
        TASKS["climb"], ground=mr.Ground(0.0, (a, 0.0)), duration=1.0, start="rest", begin=0.0
    )
    (found,) = evaluate(genotypes(still, 1), ice, [height])
    # after the fall onto the slope; acceleration g sin cos along x
    expected = -0.5 * 9.81 * a / (1 + a * a)
    assert found.score == pytest.approx(expected, rel=FALL)
    assert found.measures[0] == pytest.approx(a * found.score, abs=0.06)


def test_a_payload_is_in_the_base_and_in_the_file(tmp_path):
    (genotype,) = genotypes(SMALL, 1)
    loaded, empty = TASKS["carry"].loaded(genotype.organism()), genotype.organism()
    masses = [loaded.kind(name).mass - empty.kind(name).mass for name in empty.modules]
    assert masses == [1.0] + [0.0] * (len(empty) - 1)
    scenario = scenario_of(genotype, TASKS["carry"])
    scenario.save(tmp_path / "carry.json")
    assert np.sum(mr.load(tmp_path / "carry.json").model().mass) == len(empty) + 1


def test_tasks_are_those_of_the_guide():
    assert {name: (task.duration, task.start) for name, task in TASKS.items()} == {
        "walk": (10, "gait"), "climb": (10, "gait"), "carry": (10, "gait"),
        "stand-up": (4, "rest"), "reach": (4, "rest"),
    }  # fmt: skip
    begins = {"walk": 2.5, "climb": 2.5, "carry": 2.5, "stand-up": 0, "reach": 0}
    assert {name: task.begin_time for name, task in TASKS.items()} == begins
    assert {name: task.ground.slope for name, task in TASKS.items() if any(task.ground.slope)} == {
        "climb": (0.15, 0)
    }
    assert {task.torque for task in TASKS.values()} == {10}
    assert (STEP_S, SERVO_RAD_S) == (1e-3, 80)
    assert all(task.clear for task in TASKS.values())
    assert TASKS["stand-up"].every == 0.02
    assert replace(TASKS["walk"], duration=0.0123).begin_time == pytest.approx(0.003)  # whole steps


def rollout_of(heights, rise):
    """A rollout of one body whose base has heights at times, and whose center of mass rises."""
    trace = np.zeros((len(heights), 1, 7))
    trace[:, 0, 2] = heights
    start, end = np.array([[0.0, 0, 0.05]]), np.array([[0.0, 0, 0.05 + rise]])
    none = np.zeros((1, 1))
    times = np.linspace(0.0, 4.0, len(heights))
    return Rollout(none, none, trace[-1], trace[0], end, start, none[0], none[0] > 0, times, trace)


def test_a_height_counts_only_if_it_is_kept():
    stood = rollout_of([0.05, 0.2, 0.2, 0.2, 0.2], 0.1)
    jumped = rollout_of([0.05, 0.05, 0.05, 0.12, 0.2], 0.1)
    assert height_kept(stood, None)[0] == pytest.approx(0.1)
    assert height_kept(jumped, None)[0] == pytest.approx(0.1 - 0.08)


def test_ways_along_a_direction_are_horizontal():
    rollout = rollout_of([0.05, 0.05], 0.2)
    rollout = rollout._replace(center=rollout.start_center + np.array([0.3, 0.4, 0.2]))
    assert way_along(rollout, None) == pytest.approx([0.3])
    assert way_along(rollout, None, (0.0, 1.0)) == pytest.approx([0.4])
    assert way_along(rollout, None, (0.6, 0.8)) == pytest.approx([0.5])
    assert distance(rollout, None) == pytest.approx([0.5])


def test_the_archive_is_over_the_joints_and_the_height_at_the_end():
    bodies = genotypes(SPACE, 3)
    population, rollout = mr.Population.from_genotypes(bodies), rollout_of([0.05, 0.05], 0.2)
    joints, high = (measure.function(rollout, population) for measure in MapElites.measures)
    np.testing.assert_array_equal(joints, [len(one.model().joint_names) for one in bodies])
    assert high == pytest.approx([0.25])


def test_closeness_is_the_distance_of_the_nearest_module():
    population = mr.Population([mr.examples.snake(3)])
    q = np.zeros((1, 9))
    q[0, :7] = [0, 0, 1.0, 0, 0, 0, 1]
    rollout = rollout_of([1.0], 0.0)._replace(q=q)
    tip = population.model(0).forward_kinematics(q[0])[-1, :3, 3]
    found = closeness(rollout, population, target=tuple(tip + np.array([0.03, 0, 0.04])))
    assert found[0] == pytest.approx(-0.05)
    q[0, :3] = 0.3, 0.0, 0.3 - 0.02  # the place that the guide names is the default
    assert closeness(rollout._replace(q=q), population)[0] == pytest.approx(-0.02)
    failed = rollout._replace(q=q, failed=np.array([True]))
    assert np.isnan(closeness(failed, population)[0])


def test_modules_of_clear_gaits_do_not_meet_in_mujoco():
    bodies = genotypes(SPACE, 16)
    waves = joint_waves(bodies, mr.Population.from_genotypes(bodies))
    found, depths = [clear(one) for one in bodies], []
    for k, genotype in enumerate(bodies):
        model = genotype.model()
        n, q = len(model.joint_names), model.neutral()
        engine = MujocoModel(model, genotype.organism())
        data, deepest = engine.data(), 0.0
        for angle in 2 * np.pi / MOMENTS * np.arange(MOMENTS):
            swing = waves.amplitude[k, :n] * np.sin(angle + waves.phase[k, :n])
            q[model.joint_slice_q] = waves.offset[k, :n] + swing
            engine.put(data, q, np.zeros(model.nv))
            engine._mujoco.mj_fwdPosition(engine.peer, data)
            deepest = max([deepest, *(-data.contact.dist)])
        depths.append(deepest)
    free, deep = np.array(found), np.array(depths) > OVERLAP_M
    assert free.any()
    assert deep.any()
    np.testing.assert_array_equal(free, ~deep)  # shapes of cubes are boxes


def test_two_modules_are_always_clear():
    """They share a joint or a docking, and nothing else can meet."""
    assert all(map(clear, genotypes(replace(SPACE, modules=(2, 2)), 4)))


def test_gaits_are_looked_at_twelve_times_a_period(monkeypatch):
    (genotype,), seen = genotypes(SPACE, 1), []
    monkeypatch.setattr("modurob.search.clearance._meet", lambda model, q: seen.append((model, q)))
    assert clear(genotype)
    ((model, q),) = seen
    waves, n = genotype.waves(), len(model.joint_names)
    angle = np.deg2rad(np.arange(0, 360, 30))[:, None]
    swing = waves.amplitude[0, :n] * np.sin(angle + waves.phase[0, :n])
    np.testing.assert_allclose(q[:, 7:], waves.offset[0, :n] + swing, atol=1e-12)
    np.testing.assert_array_equal(q[:, :7], np.tile(model.neutral()[:7], (12, 1)))


def test_modules_without_shapes_meet_as_cubes_of_their_size():
    kind = mr.catalog["backbone"]
    box = {"body": kind.bodies[0].name, "form": "box", "size": [kind.size] * 3}
    found = []
    for shapes in ([], [box]):
        other = mr.ModuleType(**{**kind.model_dump(), "shapes": shapes})
        found.append([clear(one) for one in genotypes(replace(SPACE, kinds=(other,)), 12)])
    assert found[0] == found[1]
    assert 0 < sum(found[0]) < 12


def test_boxes_move_with_their_bodies(monkeypatch):
    data = mr.catalog["backbone"].model_dump()
    half = {"body": data["bodies"][1]["name"], "form": "box", "size": [0.04] * 3}
    data["shapes"] = [{**half, "position": [0.03, 0.02, 0.01]}]
    given, seen = {"kinds": (mr.ModuleType(**data),), "modules": (7, 8)}, []
    monkeypatch.setattr(
        "modurob.search.clearance.overlaps", lambda *boxes: seen.append(boxes) or np.zeros(1)
    )
    (genotype,) = genotypes(replace(SPACE, **given, hinges="physical"), 1)
    assert clear(genotype)
    ((one, other),), model = seen, genotype.model()
    waves, n = genotype.waves(), len(model.joint_names)
    q = model.neutral()
    q[7:] = waves.offset[0, :n] + waves.amplitude[0, :n] * np.sin(waves.phase[0, :n])
    numbers, boxes = _body_boxes(model)
    T = model.forward_kinematics(q)[numbers]
    places = [pose @ [*center, 1.0] for pose, center in zip(T, boxes.center, strict=True)]
    found = np.concatenate([one.center[0], other.center[0]])  # at the first moment
    apart = np.linalg.norm(found[:, None] - np.array(places)[:, :3], axis=-1)
    assert apart.min(axis=1).max() < 1e-12
    assert len(found) > 4


@pytest.mark.parametrize(("hinges", "bodies"), [("dyad", 1), ("physical", 2)])
def test_boxes_around_bodies_are_where_their_shapes_are(hinges, bodies):
    """Of two boxes beside each other, one above the other; less 2.5 mm that may overlap."""
    data = mr.catalog["backbone"].model_dump()
    first, second = (body["name"] for body in data["bodies"])
    data["shapes"] = [
        {"body": first, "form": "box", "size": [0.02, 0.04, 0.06], "position": [-0.05, 0.01, 0]},
        {"body": second, "form": "box", "size": [0.04, 0.04, 0.02], "position": [0.03, 0, 0.08]},
    ]
    model = mr.Organism.start(mr.ModuleType(**data)).model(hinges, "free")
    numbers, boxes = _body_boxes(model)
    low = np.array([[-0.06, -0.01, -0.03], [0.01, -0.02, 0.07]])
    high = np.array([[-0.04, 0.03, 0.03], [0.05, 0.02, 0.09]])
    if bodies == 1:  # one rigid body
        low, high = low.min(axis=0, keepdims=True), high.max(axis=0, keepdims=True)
    T = model.forward_kinematics(model.neutral())[numbers]
    assert len(numbers) == bodies
    np.testing.assert_allclose(T[:, :3, :3], np.broadcast_to(np.eye(3), (bodies, 3, 3)), atol=1e-12)
    np.testing.assert_allclose(boxes.center + T[:, :3, 3], (low + high) / 2, atol=1e-12)
    np.testing.assert_allclose(boxes.half, (high - low) / 2 - 0.00125, atol=1e-12)


def test_winners_are_files_that_walk_and_tune_read(tmp_path):
    (genotype,), task = genotypes(SMALL, 1), replace(TASKS["walk"], duration=SHORT_S)
    scenario = scenario_of(genotype, task)
    GaitRecord.of(scenario).save(tmp_path / "gait.json")
    walk = mr.walk(scenario.organism, tmp_path / "gait.json", hinges="dyad", duration=SHORT_S)
    gait = walk.scenario.reference(walk.scenario.model())
    expected, waves = scenario.reference(scenario.model()), genotype.waves()
    np.testing.assert_allclose(gait(0.4).q, expected(0.4).q, rtol=1e-9)
    phase = 2 * np.pi * genotype.frequency * 0.4 + waves.phase[0]
    swing = waves.offset[0] + waves.amplitude[0] * np.sin(phase)
    np.testing.assert_allclose(expected(0.4).q, swing, rtol=1e-9)
    assert {d.name for d in search_space(scenario, scenario.model())} == {
        "amplitude", "frequency", "phase", "offset",
    }  # fmt: skip
    with complains(mr.StateError, "gait: amplitude needs joints"):
        scenario.edited(gait={"amplitude": 0.3}).reference(scenario.model())


def test_a_recorded_run_is_judged_by_its_ways_its_work_and_its_poses():
    (genotype,), seen = genotypes(SMALL, 1), []
    task = replace(
        TASKS["walk"], duration=0.1, begin=0.5,
        objective=lambda rollout, population: seen.append(rollout) or [1.0],
    )  # fmt: skip
    scenario = scenario_of(genotype, task)
    run = replay(scenario, task)
    assert evaluated_run(run, scenario, task).score == 1.0
    (rollout,), half = seen, int(np.flatnonzero(np.isclose(run.t, 0.05))[0])
    joints = run.model.joint_slice_v
    power = np.abs(run.tau[:, joints] * run.v[:, joints]).sum(axis=1)
    steps = np.diff(run.t) * (power[1:] + power[:-1]) / 2
    assert rollout.work == pytest.approx([steps.sum()])
    assert steps.sum() > 0
    np.testing.assert_array_equal(rollout.start_pose, run.q[[half], :7])
    np.testing.assert_array_equal(rollout.base_pose, run.q[-1:, :7])
    np.testing.assert_array_equal(rollout.trace[:, 0], run.q[:, :7])
    center = run.model.center_of_mass(run.q[[half, -1]])
    np.testing.assert_allclose([rollout.start_center[0], rollout.center[0]], center)
    assert not rollout.failed[0]


def test_no_mujoco_is_told(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mujoco", None)
    (genotype,), task = genotypes(SMALL, 1), replace(TASKS["walk"], duration=SHORT_S)
    score, note = mujoco_score(scenario_of(genotype, task), task)
    assert np.isnan(score)
    assert "modurob[mujoco]" in note


def test_differences_of_winners_are_relative_to_the_search():
    winner = Winner("x", -2.0, -1.5, "", 3, 2, 3.0, 1.0, 0, ())
    assert winner.difference == 0.25
    assert winner._replace(score=2.0, mujoco=1.5).difference == -0.25
    assert np.isnan(winner._replace(score=0.0).difference)


def test_a_run_in_mujoco_without_a_valid_score_says_why():
    (genotype,), task = genotypes(SMALL, 1), replace(TASKS["walk"], duration=SHORT_S)
    for change, reason in (
        ({"objective": nowhere}, NOT_FINITE),
        ({"constraints": {"far": never}}, "constraint far"),
    ):
        score, note = mujoco_score(scenario_of(genotype, task), replace(task, **change))
        assert np.isnan(score)
        assert note == reason


def nowhere(rollout, population):
    return np.full(len(population), np.nan)


def never(rollout, population):
    return np.zeros(len(population), dtype=bool)


def test_ways_count_from_begin_on():
    """Of the run that goes on from there: the way of its center of mass."""
    (genotype,), task = genotypes(SMALL, 1), replace(TASKS["walk"], duration=SHORT_S, begin=0.5)
    scenario = scenario_of(genotype, task)
    model = scenario.model()
    run = mr.simulate(
        model, *scenario.start(model), SHORT_S, scenario.law(model), dt=1e-3,
        reference=scenario.reference(model), ground=mr.Ground(lift=True),
        record=[SHORT_S / 2, SHORT_S], organism=scenario.organism,
    )  # fmt: skip
    way = np.diff(model.center_of_mass(run.q[-2:])[:, :2], axis=0)[0]
    (found,) = evaluate([genotype], task)
    (whole,) = evaluate([genotype], replace(task, begin=0.0))
    assert found.score == pytest.approx(np.linalg.norm(way), abs=SAME_RUN)
    assert abs(found.score - whole.score) > 1e-4


def test_runs_of_winners_are_recorded_fifty_times_a_second_and_where_ways_begin():
    task = replace(TASKS["walk"], duration=0.11, begin=0.5)
    np.testing.assert_allclose(_times(task), [0, 0.02, 0.04, 0.055, 0.06, 0.08, 0.1, 0.11])
    task = replace(TASKS["walk"], duration=0.1, begin=0.3, every=0.05)
    np.testing.assert_allclose(_times(task), [0, 0.03, 0.05, 0.1])


def test_the_scenario_of_a_winner_has_the_servos_of_the_search():
    (genotype,), task = genotypes(SMALL, 1), TASKS["walk"]
    scenario = scenario_of(genotype, task, "w")
    model = scenario.model()
    M = model.mass_matrix(scenario.start(model)[0])
    felt = 1 / np.diag(np.linalg.inv(M))[6:]
    np.testing.assert_allclose(scenario.gains["kp"], 80.0**2 * felt)
    np.testing.assert_allclose(scenario.gains["kd"], 160.0 * felt)
    found = (scenario.name, scenario.duration, scenario.torque_limit, scenario.ramp)
    assert found == ("w", 10, 10, 0)
    assert scenario_of(genotype, task).name == "organism"
    assert (scenario.dt, scenario.sample_time, scenario.record) == (1e-3, 1e-3, 0.02)
