"""Environments of Gymnasium: its checkers, many bodies as each alone, measures against models."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb

import modurob as mr

gymnasium = pytest.importorskip("gymnasium")
env_checker = pytest.importorskip("gymnasium.utils.env_checker")

from modurob import environments  # noqa: E402
from modurob.drawing import scene  # noqa: E402
from modurob.environments import pictures  # noqa: E402
from modurob.environments.batch import TaskBatch  # noqa: E402

ROUNDING = 1e-9  # of sums over some links; float32 is in observations only
TASKS = ("Walk", "Balance", "Reach", "Dock")
ACTIONS = 12
GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "learning.md"
SNAKE = mr.examples.snake(4)
ARM = mr.examples.arm("bab")
GRIPPER = mr.ModuleType(
    name="gripper", symbol="G", size=0.1,
    bodies=[
        {"name": "palm", "mass": 0.4, "inertia": [1e-3, 1e-3, 1e-3]},
        {"name": "finger", "mass": 0.1, "inertia": [1e-4, 1e-4, 1e-4]},
    ],
    joints=[{"name": "close", "kind": "revolute", "parent": "palm", "child": "finger"}],
    ports=[
        {
            "label": 1, "body": "palm", "position": [0, 0, -0.05], "normal": [0, 0, -1],
            "reference": [1, 0, 0], "connector": "round", "mates": ["round"],
        }
    ],
    shapes=[{"body": "palm", "form": "box", "size": [0.1, 0.1, 0.1]}],
)  # fmt: skip
BODY = {"Walk": SNAKE, "Balance": SNAKE, "Reach": ARM, "Dock": ARM}


@pytest.mark.parametrize(
    ("kind", "documented"),
    [
        (TaskBatch, {"period": 0.02, "servo_rate": 100, "start_noise": 0.02, "span": np.pi / 2}),
        (environments.TASKS["walk"], {"energy_cost": 0.05, "heading": 0}),
        (environments.TASKS["balance"], {"energy_cost": 0.05, "push": 0.2, "largest_tilt": 0.7}),
        (environments.TASKS["reach"], {"tolerance": 0.01}),
        (environments.TASKS["dock"], {"reach": (0.005, 0.1)}),
        (environments.OrganismVectorEnv, {"num_envs": 1}),
    ],
)
def test_defaults_are_the_documented_ones(kind, documented):
    found = inspect.signature(kind).parameters
    assert {name: found[name].default for name in documented} == documented


def make(name, **options):
    return gymnasium.make(f"modurob/{name}-v0", **{"organism": BODY[name], **options})


def many(name, count, **options):
    options = {"organism": BODY[name], **options}
    return gymnasium.make_vec(f"modurob/{name}-v0", num_envs=count, **options)


@pytest.mark.parametrize("name", TASKS)
def test_environment_passes_the_checker_of_gymnasium(name):
    env_checker.check_env(make(name, render_mode="rgb_array").unwrapped)


@pytest.mark.parametrize("name", TASKS)
def test_many_bodies_are_the_same_environments_one_by_one(name):
    # Gymnasium's own loop over single environments: observations, rewards, ends and new starts
    options = {"max_episode_steps": 5, "organism": BODY[name]}
    together = many(name, 3, max_episode_steps=5)
    alone = gymnasium.make_vec(
        f"modurob/{name}-v0", num_envs=3, vectorization_mode="sync", **options
    )
    assert together.observation_space == alone.observation_space
    assert together.action_space == alone.action_space
    assert together.metadata["autoreset_mode"] == alone.metadata["autoreset_mode"]
    np.testing.assert_array_equal(together.reset(seed=7)[0], alone.reset(seed=7)[0])
    rng = np.random.default_rng(0)
    for _ in range(ACTIONS):
        action = rng.uniform(-1, 1, together.action_space.shape).astype(np.float32)
        ours, theirs = together.step(action), alone.step(action)
        for one, other in zip(ours[:4], theirs[:4], strict=True):
            np.testing.assert_array_equal(one, other)
        for key, value in theirs[4].items():
            there = theirs[4].get(f"_{key}", np.ones(3, dtype=bool))
            np.testing.assert_array_equal(ours[4][key][there], value[there])


def test_different_bodies_step_as_each_alone_and_repeat_by_seed():
    bodies = [SNAKE, mr.examples.crab(), mr.examples.snake(6)]
    envs = many("Walk", 3, organism=mr.Population(bodies))
    runs = []
    for _ in range(2):
        observations = [envs.reset(seed=3)[0]]
        rng = np.random.default_rng(1)
        for _ in range(5):
            action = rng.uniform(-1, 1, envs.action_space.shape)
            observations.append(envs.step(action)[0])
        runs.append(np.array(observations))
    np.testing.assert_array_equal(runs[0], runs[1])
    rng, env = np.random.default_rng(1), make("Walk", organism=SNAKE)
    n, most = env.action_space.shape[0], envs.single_action_space.shape[0]
    seen = [env.reset(seed=3)[0]]
    for _ in range(5):
        seen.append(env.step(rng.uniform(-1, 1, (3, most))[0, :n])[0])
    joints = np.concatenate([13 + k * most + np.arange(n) for k in range(3)])
    own = np.concatenate([np.arange(13), joints])
    np.testing.assert_array_equal(runs[0][:, 0, own], np.array(seen))
    others = np.setdiff1d(np.arange(runs[0].shape[2]), own)
    assert not runs[0][:, 0, others].any()


def test_a_step_is_that_of_simulate_with_a_servo():
    env = make("Walk", start_noise=0.0, servo_rate=60.0).unwrapped
    env.reset(seed=0)
    action = np.array([0.3, -0.2, 0.4])
    for _ in range(5):
        env.step(action)
    run, batch = env.trajectory(), env.batch
    kp, kd, _ = (x[0] for x in batch.stepper.law)
    reference = np.pi / 2 * action  # the range is a quarter turn each way

    def servo(t, q, v):
        return np.concatenate([np.zeros(6), kp * (reference - q[7:]) - kd * v[6:]])

    model = SNAKE.model(base="free")
    other = mr.simulate(
        model, run.q[0], run.v[0], 0.1, servo, ground=mr.Ground(), dt=1e-3, record=0.02
    )
    np.testing.assert_allclose(run.q, other.q, atol=ROUNDING)
    np.testing.assert_allclose(run.tau[1:], other.tau[1:], atol=1e-6)  # kp times the rounding


def test_rewards_of_walking_add_up_to_the_way_and_the_work():
    env = make("Walk", heading=np.pi / 2, energy_cost=0.1, torque=1.0).unwrapped
    env.reset(seed=2)
    steps = [env.step(env.action_space.sample()) for _ in range(10)]
    run, model = env.trajectory(), SNAKE.model(base="free")
    way = np.diff(model.center_of_mass(run.q[[0, -1]]), axis=0)[0, 1]
    speeds, powers = (np.array([step[4][key] for step in steps]) for key in ("speed", "power"))
    assert 0.02 * speeds.sum() == pytest.approx(way, abs=ROUNDING)
    assert [step[1] for step in steps] == pytest.approx(speeds - 0.1 * powers)
    work = powers.sum() * 0.02 * model.mass.sum() * 9.81
    assert work == pytest.approx(env.batch.stepper.work[0], rel=1e-9)


def test_a_body_that_falls_ends_the_task_balance():
    # a column of cubes on its end: pushed over, it falls
    start = np.concatenate([[0, 0, 0.5, np.sqrt(0.5), 0, 0, np.sqrt(0.5)], np.zeros(3)])
    env = make("Balance", start=start, push=0.0).unwrapped
    env.reset(seed=0)
    *_, terminated, _, info = env.step(np.zeros(3))
    assert not terminated
    assert info["tilt"] < 0.05
    for _ in range(100):
        *_, terminated, _, info = env.step(np.full(3, 0.8))
        if terminated:
            break
    assert terminated
    assert info["tilt"] > 0.7 or env.batch.now.center[0, 2] < 0.3


def test_starts_deviate_by_the_noise_and_pushes_are_horizontal():
    turned = np.concatenate([[0, 0, 0.5, 0, np.sqrt(0.5), 0, np.sqrt(0.5)], np.zeros(3)])
    envs = many("Balance", 60, start=turned)
    envs.reset(seed=0)
    now = envs.unwrapped.batch.now
    joints = now.q[:, 7:]
    assert np.abs(joints).max() <= 0.02
    assert (joints.min() < -0.018) & (joints.max() > 0.018)
    velocity = np.einsum("kij,kj->ki", now.R[:, 0], now.v[:, :3])  # in the world
    speed = np.linalg.norm(velocity, axis=1)
    assert np.abs(velocity[:, 2]).max() < ROUNDING
    assert 0.15 < speed.max() <= 0.2
    assert speed.min() < 0.05
    angle = np.arctan2(velocity[:, 1], velocity[:, 0])
    assert (np.histogram(angle, 4, (-np.pi, np.pi))[0] > 5).all()  # in all directions
    assert not now.v[:, 3:].any()


def test_pushes_go_in_all_directions_alike_and_are_evenly_strong():
    task, count = make("Balance").unwrapped.batch.task, 2000
    q, v = np.tile([0.0, 0, 0, 0, 0, 0, 1], (count, 1)), np.zeros((count, 6))
    task.begin(np.arange(count), [np.random.default_rng(k) for k in range(count)], q, v)
    sigma = np.sqrt(count) / 2  # of the number in half of a range
    for k in range(8):
        ahead = v[:, :2] @ [np.cos(k * np.pi / 4), np.sin(k * np.pi / 4)] > 0
        assert ahead.sum() == pytest.approx(count / 2, abs=5 * sigma)
    strong = np.linalg.norm(v[:, :2], axis=1) > 0.1
    assert strong.sum() == pytest.approx(count / 2, abs=5 * sigma)


@pytest.mark.parametrize(
    ("tilt", "height", "fallen"),
    [(0.0, 1.0, False), (0.69, 1.0, False), (0.71, 1.0, True), (-0.71, 1.0, True),
     (0.0, 0.71, False), (0.0, 0.7, False), (0.0, 0.69, True)],
)  # fmt: skip
def test_a_body_has_fallen_by_its_tilt_or_its_height(tilt, height, fallen):
    env = make("Balance", start_noise=0.0, push=0.0).unwrapped
    env.reset(seed=0)
    batch, R = env.batch, mr.spatial.so3.exp(np.array([tilt, 0, 0]))
    center = batch.now.center * [1, 1, height]
    later = batch.now._replace(
        center=center, R=batch.now.R @ R, work=batch.now.work + 2.0 * env.model.mass.sum() * 9.81
    )
    reward, terminated, info = batch.task.outcome(batch.now, later, 0.02)
    assert terminated[0] == fallen
    assert info["tilt"][0] == pytest.approx(abs(tilt), abs=1e-7)  # by an arc cosine
    assert info["power"][0] == pytest.approx(2.0 / 0.02)
    assert reward[0] == pytest.approx(np.cos(tilt) - 0.05 * 100)


def test_observations_of_docking_are_the_ways_to_the_target_seen_from_the_base():
    env = make("Dock", hinges="physical", base="fixed").unwrapped
    seen, _ = env.reset(seed=5)
    task, model = env.batch.task, ARM.model("physical")
    assert task.tips[0].module == ARM.modules[-1]
    assert task.tips[0].port == next(iter(ARM.free_ports(ARM.modules[-1])))
    port = ARM.kind(task.tips[0].module).port(task.tips[0].port)
    poses = model.forward_kinematics(env.batch.now.q[0])
    T = poses[model.body_index(f"{task.tips[0].module}.{port.body}")] @ port.pose
    place = np.linalg.inv(model.base_pose)
    way = mr.spatial.se3.inverse(T) @ task.target[0]
    expected = [
        (place @ T)[:3, 3],
        place[:3, :3] @ (task.target[0] - T)[:3, 3],
        mr.spatial.so3.log(way[:3, :3]),
    ]
    np.testing.assert_allclose(seen[-9:], np.concatenate(expected), atol=1e-6)  # float32
    _, reward, _, _, info = env.step(np.zeros(3))
    size = ARM.kind(task.tips[0].module).size
    assert reward == pytest.approx(-info["distance"] - size * info["angle"])


@pytest.mark.parametrize(("way", "success"), [(0.0099, True), (0.0101, False)])
def test_a_tip_within_ten_millimeters_has_reached_its_target(way, success):
    env = make("Reach").unwrapped
    env.reset(seed=0)
    task, now = env.batch.task, env.batch.now
    _, p = task.tip_poses(now.R, now.p)
    task.target[0, :3, 3] = p[0] + way * np.array([0.6, 0, 0.8])
    reward, terminated, info = task.outcome(now, now, 0.02)
    assert info["is_success"][0] == success
    assert reward[0] == pytest.approx(-way)
    assert not terminated[0]


@pytest.mark.parametrize("task", ["Reach", "Dock"])
def test_an_observation_does_not_change_when_body_and_target_are_moved(task):
    env = make(task).unwrapped
    env.reset(seed=0)
    task, now, way = env.batch.task, env.batch.now, np.array([0.3, -0.2, 0.1])
    seen = task.observation(now)
    task.target[0, :3, 3] += way
    np.testing.assert_allclose(task.observation(now._replace(p=now.p + way)), seen, atol=ROUNDING)


@pytest.mark.parametrize("task", ["Reach", "Dock"])
def test_an_arm_on_a_turned_base_sees_what_it_sees_on_a_level_one(task):
    pose, rng, seen = np.eye(4), np.random.default_rng(0), []
    pose[:3, :3], pose[:3, 3] = mr.spatial.so3.exp(np.array([0.4, -0.9, 2.0])), [0.3, -0.2, 0.1]
    action = rng.uniform(-1, 1, 3)
    for organism in (ARM, ARM.with_base_pose(pose @ ARM.base_pose)):
        env = make(task, organism=organism)
        seen.append([env.reset(seed=3)[0], env.step(0 * action)[0]])
    np.testing.assert_allclose(seen[0][0], seen[1][0], atol=1e-6)  # in single precision


def test_random_numbers_go_on_unless_a_seed_is_given():
    envs = many("Walk", 2)
    first, again = envs.reset(seed=[4, 7])[0], envs.reset(seed=[None, 7])[0]
    assert not np.array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    third = envs.reset()[0]
    assert not np.array_equal(again[1], third[1])
    np.testing.assert_array_equal(envs.reset(seed=4)[0][0], first[0])
    assert not np.array_equal(*envs.reset(seed=4)[0])  # seeds 4 and 5


def test_some_bodies_start_anew_as_in_the_loop_of_gymnasium():
    together, alone = (many("Balance", 3, vectorization_mode=mode) for mode in (None, "sync"))
    seen, rng = [], np.random.default_rng(0)
    steps = rng.uniform(-1, 1, (4, 3, 3)).astype(np.float32)
    for envs in (together, alone):
        results = [envs.reset(seed=3)[0]]
        results += [envs.step(action)[0] for action in steps[:2]]
        results.append(envs.reset(options={"reset_mask": np.array([True, False, False])})[0])
        mask = np.array([False, True, False])
        results.append(envs.reset(seed=8, options={"reset_mask": mask})[0])
        results += [envs.step(action)[0] for action in steps[2:]]
        results.append(envs.reset()[0])  # the numbers of all go on
        seen.append(np.array(results))
    np.testing.assert_array_equal(*seen)


def test_spaces_periods_and_episodes_are_those_of_the_guide():
    env = make("Walk").unwrapped
    assert gymnasium.spec("modurob/Walk-v0").max_episode_steps == 500
    for kind in (environments.OrganismEnv, environments.OrganismVectorEnv):
        assert kind.metadata["render_fps"] == 50
    for each in (env, make("Walk", period=0.1).unwrapped, many("Walk", 2, period=0.1)):
        assert each.metadata["render_fps"] * each.batch.period == 1
    assert (env.observation_space.low == -1e3).all()
    assert (env.observation_space.high == 1e3).all()
    assert (env.action_space.high == 1).all()
    assert (env.action_space.low == -1).all()
    assert many("Walk", 2).reset(seed=0)[0].shape == (2, env.batch.numbers)
    env.reset(seed=0)
    for _ in range(3):
        env.step(np.full(3, 9.0))  # clipped to 1
    np.testing.assert_array_equal(env.batch.action, np.ones((1, 3)))
    run = env.trajectory()
    np.testing.assert_allclose(run.t, [0, 0.02, 0.04, 0.06])
    np.testing.assert_allclose(run.a[1], (run.v[2] - run.v[0]) / 0.04)


def test_references_lie_within_limits_and_spans_around_the_start():
    arm = mr.examples.arm("babac")  # hinges and a slide
    env = make("Reach", organism=arm, span=0.5).unwrapped
    names = [name.split(".") for name in env.model.joint_names]
    kinds = [arm.kind(module).joint(joint).kind for module, joint in names]
    assert set(kinds) == {"revolute", "prismatic"}
    most = np.array([0.1 if kind == "prismatic" else 0.5 for kind in kinds])
    start = env.batch._start[0]
    np.testing.assert_allclose(env.batch._low[0], np.maximum(env.model.lower, start - most))
    np.testing.assert_allclose(env.batch._high[0], np.minimum(env.model.upper, start + most))
    limited = SNAKE.with_parameters(limits=(0.2, 0.4))
    batch = make("Walk", organism=limited, start_noise=0.0).unwrapped.batch
    np.testing.assert_allclose(batch._start[0, 7:], 0.2)  # the nearest to zero
    assert (batch._low.min(), batch._high.max()) == (0.2, 0.4)


def test_tip_and_target_of_reaching_are_those_of_the_model():
    env = make("Reach", tip=("m2", "out"), hinges="physical").unwrapped
    env.reset(seed=5)
    for _ in range(3):
        _, reward, _, _, info = env.step(env.action_space.sample())
    model, kind = ARM.model("physical"), ARM.kind("m2")
    port = kind.port("out")
    T = model.forward_kinematics(env.batch.now.q[0])[model.body_index(f"m2.{port.body}")]
    tip = (T @ port.pose)[:3, 3]
    target = env.batch.task.target[0, :3, 3]
    assert reward == pytest.approx(-np.linalg.norm(target - tip), abs=ROUNDING)
    assert info["is_success"] == (np.linalg.norm(target - tip) <= 0.01)


def test_the_latch_closes_in_the_posture_of_the_target():
    weightless = mr.Population([ARM], "physical", "fixed", gravity=(0, 0, 0))
    envs = many("Dock", 1, organism=weightless, start_noise=0.0)
    envs.reset(seed=4)
    task = envs.unwrapped.batch.task
    low, high = envs.unwrapped.batch._low[0], envs.unwrapped.batch._high[0]
    rng = gymnasium.utils.seeding.np_random(4)[0]
    rng.uniform(-0.0, 0.0, len(low))  # the noise of the start
    goal = rng.uniform(low, high)
    action = 2 * (goal - low) / (high - low) - 1
    for _ in range(100):
        _, _, terminated, _, info = envs.step(action[None])
        if terminated[0]:
            break
    assert info["is_success"][0]
    model = ARM.model("physical", gravity=(0, 0, 0))
    module, port = task.tips[0].module, task.tips[0].port
    body = f"{module}.{ARM.kind(module).port(port).body}"
    T = model.forward_kinematics(envs.unwrapped.batch.now.q[0])[model.body_index(body)]
    gap = mr.spatial.se3.inverse(T @ ARM.kind(module).port(port).pose) @ task.target[0]
    assert np.linalg.norm(gap[:3, 3]) <= 5e-3
    assert np.linalg.norm(mr.spatial.so3.log(gap[:3, :3])) <= 0.1


def test_a_body_that_fails_ends_its_episode_and_the_others_go_on():
    rng = np.random.default_rng(0)
    ground = mr.Ground(height=0.02 * rng.random((9, 9)))
    envs = many("Walk", 2, ground=ground)
    envs.reset(seed=0)
    batch = envs.unwrapped.batch
    q, v = batch.stepper.q.copy(), batch.stepper.v.copy()
    v[0, 6] = 1e200  # what no number can follow
    batch.stepper.restart(np.array([True, False]), q, v)
    for ended in ([True, False], [False, False]):
        observations, rewards, terminated, _, info = envs.step(np.zeros((2, 3)))
        assert envs.observation_space.contains(observations)
        assert terminated.tolist() == (info["failed"] & info["_failed"]).tolist() == ended
        assert rewards[0] == 0.0
    assert np.isfinite(batch.stepper.q).all()


def test_servos_keep_the_efforts_of_the_datasheets():
    env = make("Walk", organism=SNAKE.with_parameters(max_effort=0.5)).unwrapped
    env.reset(seed=0)
    env.step(np.ones(3))
    assert np.abs(env.trajectory().tau).max() == 0.5
    assert (make("Walk", torque=2.0).unwrapped.batch.stepper.law.torque == 2.0).all()


def test_picture_shows_the_body_and_its_target():
    env = make("Reach", render_mode="rgb_array")
    env.reset(seed=0)
    frame = env.render()
    assert frame.dtype == np.uint8
    red = (frame[..., 0] > 180) & (frame[..., 1] < 90)
    assert 20 < red.sum() < 2000  # the ball
    assert make("Walk").unwrapped.render() is None


def test_targets_are_balls_or_modules_that_wait_to_be_docked():
    env = make("Reach").unwrapped
    env.reset(seed=1)
    task = env.batch.task
    ball = pictures._target(task, task.tips[0], task.target[0], ARM)
    np.testing.assert_allclose(ball.colors, [to_rgb("#e0245e")], atol=0.005)  # as of joint axes
    radii = [np.linalg.norm(each.corners - task.target[0, :3, 3], axis=1) for each in ball.facets]
    size = ARM.kind(task.tips[0].module).size
    np.testing.assert_allclose(np.concatenate(radii), 0.15 * size)
    env = make("Dock").unwrapped
    env.reset(seed=1)
    task = env.batch.task
    (tip,), T = task.tips, task.target[0]
    partner = pictures._target(task, tip, T, ARM)
    kind = ARM.kind(tip.module)
    # its own port at the same place, the other way round
    outward = kind.port_pose(tip.port)[:3, 3]
    assert np.linalg.norm(partner.centers[0] - T[:3, 3]) == pytest.approx(np.linalg.norm(outward))
    middle = partner.points.mean(axis=0) - T[:3, 3]
    assert middle @ T[:3, 2] > 0
    alone = mr.Organism.start(kind)
    model = alone.model("physical", "free")
    own = scene.build(alone, model, model.neutral()).points
    pose = T @ np.diag([1.0, -1, -1, 1]) @ np.linalg.inv(kind.port_pose(tip.port))  # no turn
    np.testing.assert_allclose(partner.points, own @ pose[:3, :3].T + pose[:3, 3], atol=ROUNDING)


def test_marks_on_the_floor_stay_while_the_view_moves():
    def places(foot):
        marks = pictures._marks(np.array(foot), 2.0)
        return {tuple(np.round(each.corners.mean(axis=0), 9)) for each in marks.facets}

    first = places([0.0, 0.0, -0.3])
    steps = 0.5 * np.arange(-4, 5)
    assert first == {(x, y, -0.3) for x in steps for y in steps}
    assert places([0.24, -0.24, -0.3]) == first
    assert len(places([0.26, 0.0, -0.3]) & first) == 72  # one column further
    (mark, *_) = pictures._marks(np.zeros(3), 2.0).facets
    np.testing.assert_allclose(np.ptp(mark.corners, axis=0), [0.06, 0.06, 0])


def test_the_camera_follows_a_body_and_keeps_its_distance():
    env = make("Walk", render_mode="rgb_array").unwrapped
    env.reset(seed=0)
    first = env.render()
    assert first.shape[1] == 480
    batch = env.batch
    apart = 1.5 * np.ptp(scene.build(SNAKE, env.model, batch.now.q[0]).points, axis=0).max() / 4
    q = batch.now.q.copy()
    q[:, 0] += apart  # to the next mark: the same picture
    center = batch.now.center + np.array([apart, 0, 0])
    batch.now = batch.now._replace(q=q, center=center)
    close = np.abs(env.render().astype(int) - first) <= 1
    assert close.mean() > 0.999


def test_marks_are_light_gray_and_the_base_has_the_outline(monkeypatch):
    (color,) = pictures._marks(np.zeros(3), 2.0).colors
    assert np.ptp(color) == 0
    assert 0.6 < color[0] < 0.9
    drawn, paint = [], pictures.paint

    def watched(scene, buffers, camera, samples, base):
        drawn.append(scene.centers[base])
        assert (samples, max(camera.size)) == (2, 2 * 480)  # smooth edges
        return paint(scene, buffers, camera, samples, base)

    monkeypatch.setattr(pictures, "paint", watched)
    env = make("Walk", render_mode="rgb_array").unwrapped
    env.reset(seed=0)
    env.render()
    np.testing.assert_allclose(drawn, env.batch.now.q[:, :3], atol=1e-9)


def test_the_camera_stands_before_a_fixed_base_wherever_it_is():
    """Moved to the next mark on the floor, with its target: the same picture."""
    env = make("Reach", render_mode="rgb_array").unwrapped
    env.reset(seed=0)
    first, pose = env.render().astype(int), np.eye(4)
    pose[0, 3] = env._camera._sizes[0] / 4
    moved = make("Reach", render_mode="rgb_array", organism=ARM.with_base_pose(pose)).unwrapped
    moved.reset(seed=0)
    assert (np.abs(moved.render().astype(int) - first) <= 1).mean() > 0.999


@pytest.mark.parametrize("mask", [np.ones(2, dtype=int), np.ones(3, dtype=bool)])
def test_a_mask_of_bodies_to_reset_has_a_truth_value_for_each(mask):
    envs = many("Reach", 2)
    envs.reset(seed=0)
    with pytest.raises(mr.StateError, match=r"reset_mask is \(2,\) True or False, got shape"):
        envs.reset(options={"reset_mask": mask})


def test_mistakes_are_one_clear_line():
    cases = [
        (lambda: make("Walk", organism="crab"), "takes an Organism, got str"),
        (
            lambda: environments.OrganismEnv("walk", SNAKE, render_mode="ansi"),
            "no render mode 'ansi'",
        ),
        (lambda: make("Walk", period=0.0015, dt=1e-3), "no multiple of dt = 0.001 s"),
        (lambda: make("Walk", dt=0.01), "dt = 0.01 s is too long for body 0"),
        (
            lambda: make("Walk", goal=1),
            "no option 'goal' of task walk: it has energy_cost, heading",
        ),
        (lambda: make("Walk", start=np.zeros(3)), "start has shape"),
        (lambda: make("Balance", base="fixed"), "free base"),
        (
            lambda: make("Reach", tip=("m9", 1)),
            "no module 'm9' for a tip in body 0: modules are m0",
        ),
        (
            lambda: make("Reach", organism=mr.Organism.start(GRIPPER).dock("m0", 1, "m1", 1)),
            r"body 0 has no free port for a tip: give tip=\(module, port\)",
        ),
        (lambda: make("Dock", reach=0.1), "reach is a distance and an angle"),
        (lambda: many("Walk", 3, organism=[SNAKE, SNAKE]), "give num_envs=2, got 3"),
        (lambda: many("Walk", 0), "num_envs"),
        (lambda: many("Walk", 2).reset(seed=[1]), r"2 bodies take a whole number .*, got \[1\]"),
        (lambda: many("Walk", 2).reset(seed=1.5), r"2 bodies take a whole number .*, got 1\.5"),
        (lambda: many("Walk", 2, max_episode_steps=0), "max_episode_steps must be a whole number"),
        (lambda: make("Walk").reset(options={"x": 1}), r"reset\(\) takes no options, got 'x'"),
        (lambda: many("Walk", 2).reset(options={"x": 1}), r"reset\(\) takes reset_mask, got 'x'"),
        (
            lambda: many("Walk", 2).reset(options={"reset_mask": [1, 0]}),
            r"reset_mask is \(2,\) True or False, got shape \(2,\) of int64",
        ),
        (
            lambda: many("Walk", 2).reset(options={"reset_mask": np.array([True, False])}),
            r"starts with reset\(\) of all bodies",
        ),
        (
            lambda: many("Walk", 2, organism=mr.Population([SNAKE, SNAKE]), base="fixed"),
            "a Population has its hinges and base already",
        ),
        (lambda: make("Walk", ground=False), "ground is a modurob.Ground or None, got bool"),
        (lambda: make("Walk", servo_rate=np.nan), "servo_rate must be a positive number"),
        (
            lambda: make("Reach", organism=SNAKE, start=[0.0, 9.0, 0.0]),
            r"start of m2.hinge of body 0 is 9, outside its limits -1.57",
        ),
        (lambda: many("Walk", 2).step(np.zeros((2, 3))), r"starts with reset\(\)"),
        (lambda: make("Walk").unwrapped.step(np.zeros(3)), r"starts with reset\(\)"),
        (lambda: make("Walk").unwrapped.trajectory(), "no trajectory yet"),
        (lambda: environments.OrganismEnv("fly", SNAKE), "no task 'fly': tasks are walk"),
    ]
    for call, message in cases:
        with pytest.raises(mr.ModurobError, match=message):
            call()
    env = make("Walk").unwrapped
    env.reset(seed=0)
    for action in (np.zeros(2), np.full(3, np.nan), "left", np.zeros((3, 3))):
        with pytest.raises(mr.StateError, match=r"an action is \(3,\) finite numbers, got .*$"):
            env.step(action)


def test_the_guide_runs_and_its_table_is_that_of_the_observations(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope = {}
    for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL):
        exec(block, scope)
    assert scope["observations"].shape == (32, 13 + 3 * 3)
    batch = scope["env"].unwrapped.batch
    q, v = batch.now.q[0], batch.now.v[0]
    R = mr.spatial.so3.from_quaternion(q[3:7])
    axes = [R.T @ [1, 0, 0], R.T @ [0, 0, 1]]
    expected = np.concatenate([[q[2]], *axes, v[:6], q[7:], v[6:], scope["action"]])
    np.testing.assert_allclose(scope["observation"], expected, rtol=1e-6, atol=1e-6)
    assert (tmp_path / "episode.html").stat().st_size > 1e5


def test_without_gymnasium_the_error_says_how_to_install_it():
    code = "import sys; sys.modules['gymnasium'] = None; import modurob.environments"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "StateError: Gymnasium is not installed: pip install 'modurob[gymnasium]'" in done.stderr


def test_starts_lie_within_limits_up_to_rounding():
    limited = SNAKE.with_parameters(limits=(-0.3, 0.2))
    base = [0, 0, 0.5, 1, 0, 0, 0]
    for off, within in ((5e-10, True), (1e-9, True), (1e-6, False)):
        for joint in (0.2 + off, -0.3 - off):
            start = np.array([*base, 0.1, joint, 0.0])
            if within:
                batch = make("Walk", organism=limited, start=start).unwrapped.batch
                ends = np.clip(start[7:], -0.3, 0.2)
                np.testing.assert_array_equal(batch._start[0, 7:], ends)
                assert (batch._low >= -0.3).all()
                assert (batch._high <= 0.2).all()
            else:
                with pytest.raises(mr.StateError, match=r"outside its limits -0\.3 to 0\.2"):
                    make("Walk", organism=limited, start=start)


def test_one_start_is_that_of_all_bodies_and_entries_behind_their_joints_are_left_out():
    start = np.array([0, 0, 0.5, 1, 0, 0, 0, 0.1, 0.2, 0.3, 0.4, 0.5])
    batch = many("Walk", 2, organism=[SNAKE, mr.examples.snake(6)], start=start).unwrapped.batch
    np.testing.assert_array_equal(batch._start[0, 7:], [0.1, 0.2, 0.3, 0, 0])
    np.testing.assert_array_equal(batch._start[1], start)
    each = np.array([start, [0, 0, 0.5, 1, 0, 0, 0, 0.6, 0.7, 0.8, 0.9, 1.0]])
    envs = many("Walk", 2, organism=[mr.examples.snake(6)] * 2, start=each, start_noise=0.0)
    np.testing.assert_array_equal(envs.reset(seed=0)[0][:, 13:18], each[:, 7:].astype(np.float32))


def test_a_period_has_steps_of_a_millisecond_or_less_that_fit_into_it():
    for period, stiff in ((0.02, {}), (0.02005, {}), (0.02, {"servo_rate": 3000.0})):
        batch = make("Walk", period=period, **stiff).unwrapped.batch
        dt = batch.stepper._task.step
        assert batch._steps * dt == pytest.approx(period, rel=1e-12)
        assert (batch._steps == np.ceil(1e3 * period)) == (not stiff)
        assert dt <= 1e-3 * (1 + 1e-9)
    for period in (0.0204, 0.0196, 3e-4):
        with pytest.raises(mr.StateError, match=r"is no multiple of dt = 0\.001 s"):
            make("Walk", period=period, dt=1e-3)


def test_fixed_bodies_stay_where_they_are_on_a_ground():
    envs = [make("Reach", ground=ground).unwrapped for ground in (None, mr.Ground())]
    for env in envs:
        env.reset(seed=0)
        for _ in range(2):
            env.step(np.array([0.1, -0.2, 0.3]))
    np.testing.assert_allclose(envs[1].batch.now.q, envs[0].batch.now.q, atol=ROUNDING)


def test_actions_beyond_one_count_as_one():
    ends = []
    for action in (np.array([1.0, -1.0, 1.0]), np.array([2.0, -7.0, 1.5])):
        env = make("Reach").unwrapped
        env.reset(seed=0)
        ends.append(env.step(action)[0])
    np.testing.assert_array_equal(*ends)


def test_an_episode_starts_without_an_action():
    env = make("Reach", start_noise=0.0).unwrapped
    first = env.reset(seed=0)[0]
    env.step(np.ones(3))
    np.testing.assert_array_equal(env.reset(seed=0)[0], first)
    assert not env.batch.action.any()


def test_a_run_starts_with_servos_at_rest():
    env = make("Walk", start_noise=0.1).unwrapped
    env.reset(seed=3)
    env.step(np.zeros(3))
    np.testing.assert_array_equal(env.trajectory().tau[0], np.zeros(9))
    assert np.abs(env.trajectory().q[0, 7:]).max() > 0.02


def test_walking_counts_the_way_along_the_heading_and_the_power_over_the_weight():
    env = make("Walk", heading=0.7, energy_cost=0.1).unwrapped
    env.reset(seed=0)
    now, way = env.batch.now, np.array([0.03, -0.05, 0.2])
    later = now._replace(center=now.center + way, work=now.work + 3.0)
    reward, terminated, info = env.batch.task.outcome(now, later, 0.02)
    speed = (0.03 * np.cos(0.7) - 0.05 * np.sin(0.7)) / 0.02
    power = 3.0 / 0.02 / (env.model.mass.sum() * 9.81)
    assert (info["speed"][0], info["power"][0]) == pytest.approx((speed, power))
    assert reward[0] == pytest.approx(speed - 0.1 * power)
    assert not terminated[0]


def test_the_motors_of_weightless_bodies_cost_nothing():
    weightless = mr.Population([SNAKE], "dyad", "free", gravity=(0, 0, 0))
    batch = many("Walk", 1, organism=weightless).unwrapped.batch
    later = batch.now._replace(work=batch.now.work + 3.0)
    assert batch.task.outcome(batch.now, later, 0.02)[2]["power"][0] == 0.0
    light = SNAKE.with_parameters(mass=0.01)  # of less than a newton in all
    batch = make("Walk", organism=light).unwrapped.batch
    later = batch.now._replace(work=batch.now.work + 3.0)
    power = batch.task.outcome(batch.now, later, 0.02)[2]["power"][0]
    assert power == pytest.approx(3.0 / 0.02 / (0.04 * 9.81))


def test_observations_of_free_bodies_are_those_of_their_bases():
    start = np.concatenate([[0.3, -0.2, 1.0, 0.1, 0.7, -0.1, 0.7], [0.4, -0.5, 0.6]])
    start[3:7] /= np.linalg.norm(start[3:7])
    ground = mr.Ground(slope=(0.1, 0.2))
    env = make("Balance", start=start, push=0.2, ground=ground).unwrapped
    env.reset(seed=4)
    seen = env.step(np.array([0.1, -0.2, 0.3]))[0]
    q, v = env.batch.now.q[0], env.batch.now.v[0]
    R = mr.spatial.so3.from_quaternion(q[3:7])
    height = q[2] - (0.1 * q[0] + 0.2 * q[1])
    action = [0.1, -0.2, 0.3]
    expected = [[height], R.T @ [1, 0, 0], R.T @ [0, 0, 1], v[:6], q[7:], v[6:], action]
    np.testing.assert_allclose(seen, np.concatenate(expected), rtol=1e-6, atol=1e-6)
    assert np.linalg.norm(v[:6]) > 1e-3


def test_a_body_that_has_not_moved_stands_whatever_tilt_is_a_fall():
    env = make("Balance", largest_tilt=0.0, start_noise=0.0, push=0.0).unwrapped
    env.reset(seed=0)
    now = env.batch.now
    np.testing.assert_array_equal(now.R[0, 0], np.eye(3))
    assert not env.batch.task.outcome(now, now, 0.02)[1][0]


def test_tilts_are_numbers_in_spite_of_rounding():
    env = make("Balance").unwrapped
    env.reset(seed=0)
    batch, turned = env.batch, mr.spatial.so3.exp(np.array([np.pi, 0, 0]))
    for R, tilt in ((np.eye(3), 0.0), (turned, np.pi)):
        later = batch.now._replace(R=(1 + 1e-12) * batch.now.R @ R)
        assert batch.task.outcome(batch.now, later, 0.02)[2]["tilt"][0] == pytest.approx(tilt)


def test_options_reach_to_the_ends_of_their_ranges():
    for name, options in (
        ("Walk", {"heading": 2 * np.pi, "energy_cost": 0.0}),
        ("Walk", {"heading": -2 * np.pi}),
        ("Balance", {"largest_tilt": 0.05, "push": 0.0, "energy_cost": 0.0}),
        ("Dock", {"reach": [0.0, 0.0]}),
    ):
        make(name, **options)
    for name, options in (
        ("Walk", {"heading": 6.29}),
        ("Walk", {"heading": -6.29}),
        ("Walk", {"energy_cost": -0.1}),
        ("Balance", {"largest_tilt": -0.01}),
        ("Balance", {"largest_tilt": 3.15}),
        ("Balance", {"push": -0.1}),
        ("Balance", {"energy_cost": -0.1}),
        ("Reach", {"tolerance": -0.1}),
        ("Dock", {"reach": (0.1, -0.1)}),
        ("Dock", {"reach": (-0.1, 0.1)}),
        ("Dock", {"reach": (0.1, 0.1, 0.1)}),
    ):
        with pytest.raises(mr.StateError, match=next(iter(options))):
            make(name, **options)


def test_distances_up_to_the_tolerance_count():
    env = make("Reach", tolerance=0.0).unwrapped
    env.reset(seed=0)
    task, now = env.batch.task, env.batch.now
    assert task.target.shape == (1, 4, 4)
    assert not task.outcome(now, now, 0.02)[2]["is_success"][0]
    task.target[0, :3, 3] = task.tip_poses(now.R, now.p)[1][0]
    assert task.outcome(now, now, 0.02)[2]["is_success"][0]


def test_a_latch_without_reach_closes_in_the_pose_itself():
    env = make("Dock", reach=(0.0, 0.0)).unwrapped
    env.reset(seed=0)
    task, now = env.batch.task, env.batch.now
    level = now._replace(R=np.tile(np.eye(3), (*now.R.shape[:2], 1, 1)))  # without rounding
    R, p = task.tip_poses(level.R, level.p)
    task.target[0, :3, :3], task.target[0, :3, 3] = R[0], p[0]
    assert task.outcome(level, level, 0.02)[2]["is_success"][0]


@pytest.mark.parametrize(
    ("way", "angle", "docked"),
    [(0.0049, 0.099, True), (0.0051, 0.0, False), (0.0, 0.101, False), (0.0, -0.101, False)],
)
def test_a_port_docks_within_the_reach_of_the_latch_and_ends_the_task(way, angle, docked):
    env = make("Dock").unwrapped
    env.reset(seed=0)
    task, now = env.batch.task, env.batch.now
    R, p = task.tip_poses(now.R, now.p)
    task.target[0, :3, :3] = R[0] @ mr.spatial.so3.exp(np.array([0.0, angle, 0.0]))
    task.target[0, :3, 3] = p[0] + way * np.array([0.0, 0.6, -0.8])
    _, terminated, info = task.outcome(now, now, 0.02)
    assert (terminated[0], info["is_success"][0]) == (docked, docked)
    assert info["angle"][0] == pytest.approx(abs(angle), abs=ROUNDING)
    assert info["distance"][0] == pytest.approx(way, abs=ROUNDING)


def test_the_default_tip_is_the_first_free_port_of_the_module_docked_last():
    organism = mr.examples.crab()
    (tip,) = make("Reach", organism=organism).unwrapped.batch.task.tips
    last = [name for name in organism.modules if len(list(organism.free_ports(name)))][-1]
    assert (tip.module, tip.port) == (last, next(iter(organism.free_ports(last))))
    assert len(list(organism.free_ports(organism.modules[0]))) > 0
    for wrong in ("m2", ("m2",), ("m2", "out", 1)):
        with pytest.raises(mr.StateError, match="tip is a module and a port"):
            make("Reach", tip=wrong)


def test_targets_of_different_bodies_are_those_of_each_alone():
    longer = mr.examples.arm("baba")
    for order in ([ARM, longer], [longer, ARM]):
        together = many("Dock", 2, organism=order).unwrapped
        together.reset(seed=5)
        for k, organism in enumerate(order):
            alone = make("Dock", organism=organism).unwrapped
            alone.reset(seed=5 + k)
            np.testing.assert_allclose(
                together.batch.task.target[k], alone.batch.task.target[0], atol=ROUNDING
            )


def test_episodes_of_many_bodies_can_end_after_one_action():
    envs = many("Reach", 2, max_episode_steps=1)
    envs.reset(seed=0)
    assert envs.render() is None
    ends = [envs.step(np.zeros((2, 3)))[3].tolist() for _ in range(3)]
    assert ends == [[True, True], [False, False], [True, True]]  # between them, new starts
    endless = environments.OrganismVectorEnv("reach", ARM)
    endless.reset(seed=0)
    assert not endless.step(np.zeros((1, 3)))[3].any()


def test_many_bodies_have_a_picture_each():
    envs = many("Reach", 2, organism=[ARM, SNAKE], render_mode="rgb_array")
    envs.reset(seed=0)
    first, other = envs.render()
    alone = make("Reach", render_mode="rgb_array")
    alone.reset(seed=0)
    np.testing.assert_array_equal(first, alone.render())
    assert first.shape != other.shape or (first != other).any()


def test_the_camera_stands_28_degrees_beside_the_view_along_y_and_22_degrees_up():
    """Measured by targets that move along x, y and z: to the right, away and up."""
    env = make("Reach", render_mode="rgb_array").unwrapped
    env.reset(seed=0)

    def seen(place):  # (right, up) of the ball in the picture
        env.batch.task.target[0, :3, 3] = place
        frame = env.render().astype(int)
        rows, columns = np.nonzero((frame[..., 0] > 180) & (frame[..., 1] < 90))
        return np.array([columns.mean(), -rows.mean()])

    size = 1.5 * np.ptp(scene.build(ARM, env.model, env.batch.now.q[0]).points, axis=0).max()
    center = env.model.base_pose[:3, 3] + size * np.array([0.3, 0.15, 0.3])
    x, y, z = (seen(center + 0.1 * size * e) - seen(center - 0.1 * size * e) for e in np.eye(3))
    assert np.rad2deg(np.arctan2(y[0], x[0])) == pytest.approx(28, abs=6)  # a mild perspective
    assert np.rad2deg(np.arctan2(y[1] / np.sin(np.deg2rad(62)), z[1])) == pytest.approx(22, abs=3)
    assert 0.11 < z[1] / 480 < 0.14  # a fifth of the view is an eighth of its width, all of it
    assert env.render().shape[0] == pytest.approx(380, abs=8)
    assert (env.render()[[0, -1], [0, -1]] == 255).all()  # white, where nothing is


def test_marks_on_the_floor_show_that_a_body_moves():
    env = make("Walk", render_mode="rgb_array").unwrapped
    env.reset(seed=0)
    first, batch = env.render(), env.batch
    assert all(side % 2 == 0 for side in first.shape[:2])  # as films need
    shift = np.array([0.6 * env._camera._sizes[0] / 4, 0, 0])  # marks are a quarter apart
    q = batch.now.q.copy()
    q[:, :3] += shift
    batch.now = batch.now._replace(q=q, center=batch.now.center + shift)
    changed = (np.abs(env.render().astype(int) - first) > 20).any(axis=-1).mean()
    assert 0.001 < changed < 0.05
