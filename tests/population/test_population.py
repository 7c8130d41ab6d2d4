"""`Population`: many different bodies step exactly as each of them does alone."""

import dataclasses

import numpy as np
import pytest

import modurob as mr
from modurob.equations.links import SLIP_SPEED
from modurob.population import lanes, rollout
from modurob.population.groups import _ordered, lane_groups
from modurob.population.poses import fastest_rates
from modurob.population.rollout import largest_step, rises, task_of
from modurob.stepping.contact import GroundContact
from modurob.stepping.ground import corner_depths, corners

ROUNDING = 1e-12  # of forces and accelerations: the same operations in another order
STEPS, AFTER_STEPS = 100, 1e-10  # rounding grows in contact; the issue demands this after 100 steps
STEP_S = 1e-3
WAVE_HZ = 2.0


@pytest.fixture(scope="module")
def cubes():
    """Bodies of several sizes and trees: more than a vector has lanes."""
    rng = np.random.default_rng(3)
    sizes = [4, 4, 5, 5, 6, 6, 6, 7, 8, 9, 9]
    bodies = [mr.Organism.random("backbone", size, rng) for size in sizes]
    return mr.Population([body for body in bodies if body.model().joint_names])


@pytest.fixture(scope="module")
def arms():
    """Bodies with slides, friction, rotors, springs, circles and boxes."""
    slide = mr.Organism.start("chen_link").dock("m0", 1, "m1", 1, kind="chen_prismatic")
    slide = slide.dock("m1", 2, "m2", 3, kind="chen_link")
    springs = mr.examples.snake(3, "scout").with_parameters(rotor_inertia=1e-4, gear_ratio=5.0)
    springs = springs.with_parameters("m1", stiffness=50.0)
    kinds = [mr.examples.arm("bab"), mr.examples.arm("aca"), slide, springs]
    return mr.Population(kinds, hinges="physical")


def waves(population, seed=0):
    rng = np.random.default_rng(seed)
    shape = (len(population), int(population.joints.max()))
    amplitude, phase = rng.uniform(0.2, 0.8, shape), rng.uniform(0, 2 * np.pi, shape)
    return mr.JointWaves(amplitude, phase, offset=0.1, frequency=WAVE_HZ)


def alone(population, task, k):
    """One body by `GroundContact.march`, one call for each step, with the law in NumPy."""
    model, ground, gaits = population.model(k), task.ground, task.waves
    n, h = int(population.joints[k]), task.step
    q, v = task.q[k, : model.nq], task.v[k, : model.nv]
    contact = GroundContact(ground, model, population.organism(k), q, h)
    A, work = gaits.amplitude[k, :n], 0.0
    for number in range(task.steps):
        rate = 2 * np.pi * WAVE_HZ
        angle = rate * number * h + gaits.phase[k, :n]
        wanted = task.law.kp[k, :n] * (gaits.offset[k, :n] + A * np.sin(angle) - q[7:])
        wanted += task.law.kd[k, :n] * (A * rate * np.cos(angle) - v[6:])
        tau = np.zeros(model.nv)
        tau[6:] = np.clip(wanted, -task.law.torque[k, :n], task.law.torque[k, :n])
        work += h * np.abs(tau * v).sum()
        q, v = contact.march(q, v, tau, h, 1)
    return q, v, work


@pytest.fixture(scope="module")
def fixed():
    """Bodies with a fixed base, some with slides, at places of their own."""
    bodies = [mr.examples.arm(modules) for modules in ("bab", "aca", "babac")]
    place = mr.spatial.se3.exp(np.array([0.3, -0.2, 0.1, 0.4, 0.5, -0.6]))
    return mr.Population([bodies[0], bodies[1].with_base_pose(place), bodies[2]], base="fixed")


@pytest.mark.parametrize("quantity", ["inverse_dynamics", "forward_dynamics"])
@pytest.mark.parametrize("name", ["cubes", "arms", "fixed"])
def test_dynamics_of_all_bodies_are_those_of_their_models(name, quantity, request):
    population, rng = request.getfixturevalue(name), np.random.default_rng(0)
    q = np.zeros((len(population), population.nq.max()))
    v, x = np.zeros((2, len(population), population.nv.max()))
    expected = np.zeros(v.shape)
    for k in range(len(population)):
        model = population.model(k)
        q[k, : model.nq] = model.random_configuration(rng)
        v[k, : model.nv], x[k, : model.nv] = rng.standard_normal((2, model.nv))
        state = (q[k, : model.nq], v[k, : model.nv], x[k, : model.nv])
        expected[k, : model.nv] = getattr(model, quantity)(*state)
    found = getattr(population, quantity)(q, v, x)  # starts from NaN: all that is used is written
    scale = np.abs(expected).max(axis=1, keepdims=True)
    np.testing.assert_allclose(found / scale, expected / scale, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize(
    ("name", "ground", "step"),
    [
        ("cubes", mr.Ground(), STEP_S),
        ("cubes", mr.Ground(friction=0.3, slope=(0.2, -0.1)), STEP_S),
        ("arms", mr.Ground(height=0.02 * np.indices((20, 20)).sum(axis=0) % 0.03, cell=0.1), 1e-4),
    ],
    ids=["level", "slope", "field"],
)
def test_every_body_steps_as_it_does_alone(name, ground, step, request):
    population = request.getfixturevalue(name)
    gains = (None, None, 2.0) if name == "cubes" else (20.0, 0.01, 2.0)
    gaits, duration = waves(population), STEPS * step
    found = population.rollout(duration, step, gaits, ground, *gains)
    rest = (None, None, "auto", "float64")
    task = task_of(population.tables, duration, step, gaits, ground, *gains, *rest)
    assert not found.failed.any()
    for k in range(len(population)):
        nq, nv = population.nq[k], population.nv[k]
        q, v, work = alone(population, task, k)
        np.testing.assert_allclose(found.q[k, :nq], q, rtol=0, atol=AFTER_STEPS)
        np.testing.assert_allclose(found.v[k, :nv], v, rtol=0, atol=AFTER_STEPS)
        assert found.work[k] == pytest.approx(work, rel=AFTER_STEPS)
        assert not found.q[k, nq:].any()
        assert not found.v[k, nv:].any()


def test_centers_of_mass_fall_as_gravity_says(cubes):
    steps = 50
    r = cubes.rollout(steps * STEP_S, gaits=waves(cubes), torque=0.5)
    # v is added before it moves a body: h^2 g (1 + 2 + ... + n), whatever the joints do; the
    # center leaves that by the step's error, which is of order h for the moving parts
    fallen = 9.81 * STEP_S**2 * steps * (steps + 1) / 2
    np.testing.assert_allclose(r.start_center[:, 2] - r.center[:, 2], fallen, rtol=0.02)
    assert np.abs(r.v[:, 6:]).max() > 0.5
    assert (r.distance < 1e-3).all()


def test_numbers_do_not_depend_on_threads_order_or_neighbors(cubes):
    gaits, order = waves(cubes), np.random.default_rng(1).permutation(len(cubes))
    ground, one = mr.Ground(), cubes.rollout(0.05, gaits=gaits, ground=mr.Ground(), threads=1)
    two = cubes.rollout(0.05, gaits=gaits, ground=ground, threads=2, every=0.01)
    for name in ("q", "v", "work", "center", "distance"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()
    assert two.trace.shape == (6, len(cubes), 7)
    assert two.times[-1] == pytest.approx(0.05)
    assert (two.trace[0] == two.start_pose).all()
    assert (two.trace[-1] == two.base_pose).all()
    late = cubes.rollout(0.05, gaits=gaits, ground=ground, begin=0.02)
    first = cubes.rollout(0.02, gaits=gaits, ground=ground)
    assert late.q.tobytes() == one.q.tobytes()
    assert late.start_center.tobytes() == first.center.tobytes()
    assert late.start_pose.tobytes() == first.base_pose.tobytes() == two.trace[2].tobytes()
    for chosen in (order, order[:3]):
        joints = int(cubes.joints[chosen].max())
        some = mr.JointWaves(
            gaits.amplitude[chosen, :joints], gaits.phase[chosen, :joints], 0.1, WAVE_HZ
        )
        other = mr.Population([cubes.organism(k) for k in chosen.tolist()])
        found = other.rollout(0.05, gaits=some, ground=ground)
        assert found.q.tobytes() == one.q[chosen, : 7 + joints].tobytes()
        assert found.work.tobytes() == one.work[chosen].tobytes()


def test_groups_mix_trees_and_share_most(cubes):
    """The other tests rely on links with one parent in all lanes, and on links with several."""
    groups = lane_groups(cubes.tables, np.arange(len(cubes)), width=4)
    shared = np.concatenate(
        [(part.parent == part.parent[..., :1]).all(axis=-1).ravel() for part in groups]
    )
    assert shared.any()
    assert not shared.all()
    assert sorted({int(k) for part in groups for k in part.body.ravel()}) == list(range(len(cubes)))


def test_groups_know_which_bodies_have_slides_and_rotors(arms):
    """The second one has a slide by module C of Giusti, the third one by that of Chen."""
    found = {}
    for part in lane_groups(arms.tables, np.arange(4), width=4):
        assert part.joints == part.link.shape[1] - 1
        for body, slides, rotor in zip(part.body, part.slides, part.rotor, strict=True):
            found |= {int(k): (int(np.sum(slides)), bool(rotor)) for k in body}
    assert found == {0: (0, False), 1: (1, False), 2: (1, False), 3: (0, True)}


def test_bodies_below_the_ground_are_lifted_if_that_is_asked_for(cubes):
    standing = cubes.rollout(0.02, ground=mr.Ground())
    q = np.zeros(standing.q.shape)
    q[:, :7] = cubes.tables.base_pose
    q[:, 2] -= 0.3
    lifted = cubes.rollout(0.02, ground=mr.Ground(lift=True), start=q)
    np.testing.assert_allclose(lifted.q, standing.q, rtol=0, atol=ROUNDING)
    with pytest.raises(mr.errors.StateError, match="m below the ground"):
        cubes.rollout(0.02, ground=mr.Ground(), start=q)


@pytest.mark.parametrize("ground", [mr.Ground(), mr.Ground(slope=(0.2, -0.1), height=0.03)])
def test_bodies_rise_until_their_lowest_corner_touches_the_ground(cubes, ground):
    rng, q = np.random.default_rng(3), np.zeros((len(cubes), cubes.nq.max()))
    for k in range(len(cubes)):
        q[k, : cubes.nq[k]] = cubes.model(k).random_configuration(rng)
    q[:, 2] += rises(cubes.tables, ground, q)
    for k in range(len(cubes)):
        model = cubes.model(k)
        points, T = corners(cubes.organism(k), model), model.forward_kinematics(q[k, : model.nq])
        x, y, z = np.einsum("pij,pj->ip", T[points.body, :3], np.insert(points.place, 3, 1.0, 1))
        assert np.min(z - ground.surface(x, y)[0]) == pytest.approx(0.0, abs=ROUNDING)


def test_round_bodies_rise_until_their_lowest_point_touches_the_ground(arms):
    field = mr.Ground(height=0.05 * np.random.default_rng(1).random((60, 60)))
    rng, q = np.random.default_rng(3), np.zeros((len(arms), arms.nq.max()))
    for k in range(len(arms)):
        q[k, : arms.nq[k]] = arms.model(k).random_configuration(rng)
    for ground in (mr.Ground(), mr.Ground(slope=(0.2, -0.1), height=0.03), field):
        found = rises(arms.tables, ground, q)
        for k in range(len(arms)):
            model = arms.model(k)
            depths = corner_depths(ground, arms.organism(k), model, q[k, : model.nq])[2]
            assert found[k] == pytest.approx(depths.max(), abs=ROUNDING)
    assert (arms.tables.corner_rows[:, 6] > 0).any()


def test_each_step_may_be_recorded(cubes):
    run = cubes.rollout(3e-3, every=1e-3)
    np.testing.assert_allclose(run.times, [0, 1e-3, 2e-3, 3e-3])
    assert len(run.trace) == 4
    with pytest.raises(mr.StateError, match="no multiple of the step"):
        cubes.rollout(3e-3, every=4e-4)


def test_the_fastest_rate_is_that_of_the_stiffest_mode():
    M, K = np.diag([2.0, 3.0]), np.diag([8.0, 75.0])
    turn = mr.spatial.so3.exp(np.array([0, 0, 0.4]))[:2, :2]
    M, K = (turn @ x @ turn.T for x in (M, K))
    found = fastest_rates(np.array([M, M, M]), np.array([K, K / 100, 0 * K]))
    np.testing.assert_allclose(found, [5.0, 0.5, 1.0])  # 1 where nothing moves


def test_body_that_fails_is_flagged_and_leaves_the_others_alone(cubes):
    gaits, ground, failing = waves(cubes), mr.Ground(), 5
    q = cubes.rollout(1e-3, gaits=gaits, ground=ground).q
    v = np.zeros((len(cubes), cubes.nv.max()))
    q[:, 2] += 0.01
    good = cubes.rollout(0.02, gaits=gaits, ground=ground, start=(q, v))
    v[failing, 3] = 2 / STEP_S  # [rad/s] two radians in a step
    bad = cubes.rollout(0.02, gaits=gaits, ground=ground, start=(q, v))
    assert np.flatnonzero(bad.failed).tolist() == [failing]
    assert np.isnan(bad.distance[failing])
    assert np.isnan(bad.q[failing]).all()
    others = np.arange(len(cubes)) != failing
    assert good.q[others].tobytes() == bad.q[others].tobytes()


def test_base_that_turns_beyond_a_radian_in_a_step_is_a_failure(cubes):
    q = cubes.rollout(1e-3).q
    for turn, fails in ((0.9, False), (1.1, True)):
        v = np.zeros((len(cubes), cubes.nv.max()))
        v[2, 3] = turn / STEP_S
        found = cubes.rollout(2e-3, start=(q, v), kp=0.0, kd=0.0)
        assert found.failed[2] == fails
        assert np.count_nonzero(found.failed) == fails


def test_bodies_with_a_fixed_base_swing():
    """Pendulums of different lengths: the period follows from the inertia about the hinge."""
    arms = [mr.examples.double_pendulum(l1=length) for length in (0.5, 1.0)]
    population = mr.Population(arms, hinges="physical", base="fixed")
    q = np.tile([1e-3, 1e-3], (2, 1))
    r = population.rollout(0.3, dt=1e-4, kp=0.0, kd=0.0, start=q)
    for k in range(2):
        model = population.model(k)
        M = model.mass_matrix(np.zeros(2))
        K = np.column_stack([model.gravity_torque(1e-6 * e) / 1e-6 for e in np.eye(2)])
        rates, modes = np.linalg.eig(np.linalg.solve(M, K))
        expected = modes @ (np.linalg.solve(modes, q[k]) * np.cos(np.sqrt(rates) * 0.3))
        np.testing.assert_allclose(r.q[k], expected, atol=1e-3 * np.abs(q).max() * 5)
    assert (r.base_pose == r.start_pose).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"duration": 0}, "duration must be a positive number"),
        ({"dt": 2.0}, "longer than the duration"),
        ({"dt": 0.05}, "dt = 0.05 s is too long for body"),
        ({"duration": 1e12}, "are 1e.15 steps; the most is 1e.09: give a shorter duration"),
        ({"begin": 2.0}, "begin must be a number from 0 to"),
        ({"servo_rate": 0.0}, "servo_rate must be a positive number of rad/s"),
        ({"ground": 1.0}, "ground is a modurob.Ground"),
        ({"gaits": mr.JointWaves(np.zeros((2, 3)))}, "this population has"),
        ({"gaits": [0.1]}, "gaits is a modurob.JointWaves"),
        ({"kp": -1.0}, "kp must be zero or positive"),
        ({"kd": np.ones(3)}, "kd is one number"),
        ({"start": np.zeros((2, 3))}, "start q has shape"),
        ({"every": 1.5e-3}, "no multiple of the step"),
        ({"every": 2.1e-3}, "no multiple of the step"),
        ({"start": [np.zeros((2, 3))] * 3}, r"start is q or \(q, v\), got 3 arrays"),
        ({"kp": np.inf}, "kp must hold finite real numbers"),
        ({"kd": -1e-3}, "kd must be zero or positive, got -0.001"),
        ({"target": "tpu"}, "no target 'tpu'"),
        ({"dtype": "float32"}, "float32"),
        ({"ground": mr.Ground(stiffness=1e9)}, "need dt = "),
        ({"threads": 0}, "threads must be"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_rollout_says_what_is_wrong(cubes, change, message):
    given = {"duration": 0.1, "ground": mr.Ground(), **change}
    with pytest.raises(mr.ModurobError, match=message) as error:
        cubes.rollout(given.pop("duration"), **given)
    assert "\n" not in str(error.value)


def test_start_below_the_ground_names_the_body(cubes):
    q = cubes.rollout(1e-3, ground=mr.Ground()).q
    q[4, 2] -= 0.5
    with pytest.raises(mr.StateError, match=r"body 4 starts 0\.5 m below the ground"):
        cubes.rollout(0.1, ground=mr.Ground(), start=q)


def test_population_says_which_body_is_wrong(cubes):
    one = cubes.organism(0)
    for bodies, message in (
        ([], "one body or more"),
        ([one, "snake"], "got str as body 1"),
        ([one, mr.Organism.start("backbone")], "body 1 has no joint"),
        (one, "write \\[organism\\]"),
        (None, "a list of organisms, got None"),
    ):
        with pytest.raises(mr.StateError, match=message):
            mr.Population(bodies)
    with pytest.raises(mr.StateError, match="'free' or 'fixed'"):
        mr.Population([one], base=["px"])
    with pytest.raises(mr.UnknownNameError, match="bodies are 0 to"):
        cubes.model(len(cubes))
    with pytest.raises(mr.StateError, match="amplitude of body 1, joint 2 is nan"):
        mr.JointWaves(np.where(np.arange(12).reshape(3, 4) == 6, np.nan, 0.0))
    with pytest.raises(mr.StateError, match="phase must hold finite numbers, got 'left'"):
        mr.JointWaves(np.zeros((2, 3)), "left")
    with pytest.raises(mr.StateError, match="got -1 Hz for body 0"):
        mr.JointWaves(np.zeros((2, 3)), frequency=-1.0)


def test_waves_are_told_apart_as_objects():
    """Their arrays have no single answer to ==, and no hash."""
    one, other = mr.JointWaves(np.zeros((2, 3))), mr.JointWaves(np.zeros((2, 3)))
    assert one != other
    assert len({one, other}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.phase = other.phase


def test_tables_of_bodies_are_values_and_told_apart_as_objects(cubes):
    same = dataclasses.replace(cubes.tables)
    assert same != cubes.tables
    assert len({same, cubes.tables}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        same.count = 0


def test_a_stepper_takes_the_steps_of_a_rollout_and_starts_anew_as_at_first(cubes):
    ground, references = mr.Ground(friction=0.5), waves(cubes).amplitude - 0.4
    held = mr.JointWaves(0 * references, offset=references)
    result = cubes.rollout(0.1, gaits=held, ground=ground)
    stepper = cubes.stepper(ground=ground)
    start, rest = stepper.q.copy(), stepper.v.copy()
    for _ in range(4):
        stepper.advance(references, 25)
    for name in ("q", "v", "work"):
        np.testing.assert_array_equal(getattr(stepper, name), getattr(result, name))
    # half of them start anew: their anchors on the ground are forgotten, those of the others not
    anew = np.arange(len(cubes)) % 2 == 0
    stepper.restart(anew, start, rest)
    for _ in range(4):
        stepper.advance(references, 25)
    longer = cubes.rollout(0.2, gaits=held, ground=ground)
    for name in ("q", "v", "work"):
        found, first, later = (getattr(x, name) for x in (stepper, result, longer))
        np.testing.assert_array_equal(found[anew], first[anew])
        np.testing.assert_array_equal(found[~anew], later[~anew])


def test_a_body_that_fails_in_a_stepper_leaves_the_others_alone(cubes):
    references = np.zeros((len(cubes), int(cubes.joints.max())))
    stepper, other = (cubes.stepper(ground=mr.Ground()) for _ in range(2))
    start, v = stepper.q.copy(), stepper.v.copy()
    v[2, 6] = 1e200  # what no number can follow
    first = np.arange(len(cubes)) == 2
    stepper.restart(first, start, v)
    for each in (stepper, other):
        each.advance(references, 20)
    assert np.isnan(stepper.q[2]).all()
    np.testing.assert_array_equal(stepper.q[~first], other.q[~first])
    stepper.restart(first, start, 0 * v)
    stepper.advance(references, 20)
    np.testing.assert_array_equal(stepper.q[2], other.q[2])
    assert np.isfinite(stepper.work).all()
    with pytest.raises(mr.StateError, match="finite numbers"):
        stepper.restart(first, np.nan * start, v)
    with pytest.raises(mr.StateError, match="references has shape"):
        stepper.advance(references[:1], 20)


@pytest.mark.parametrize("name", ["cubes", "arms", "fixed"])
def test_default_gains_are_critical_for_the_inertia_that_joints_feel(name, request):
    population = request.getfixturevalue(name)
    stepper = population.stepper(1e-4, servo_rate=7.0)
    for k in range(len(population)):
        model, n = population.model(k), population.joints[k]
        M = model.mass_matrix(stepper.q[k, : model.nq])
        felt = 1 / np.diag(np.linalg.inv(M))[-n:]
        np.testing.assert_allclose(stepper.law.kp[k, :n], 7.0**2 * felt, rtol=1e-9)
        np.testing.assert_allclose(stepper.law.kd[k, :n], 2 * 7.0 * felt, rtol=1e-9)
        sprung = [name.endswith("spring") or rate > 0 for name, rate in zip(
            model.joint_names, model.stiffness, strict=True)]  # fmt: skip
        np.testing.assert_array_equal(stepper.law.torque[k, :n], np.where(sprung, 0.0, np.inf))


@pytest.mark.parametrize("name", ["cubes", "arms"])
def test_the_ground_of_each_body_is_as_stiff_as_in_its_simulation(name, request):
    population, ground = request.getfixturevalue(name), mr.Ground(friction=0.3)
    for step in (STEP_S, 2e-4):
        q = population.stepper(1e-4).q
        given = (ground, None, None, None, None, None, "auto", "float64")
        task = task_of(population.tables, 0.1, step, None, *given, strict=False)
        for k in range(len(population)):
            model = population.model(k)
            law = GroundContact(ground, model, population.organism(k), q[k, : model.nq], step).law
            found = [x[k] for x in task.contact]
            np.testing.assert_allclose(found, law, rtol=1e-9)


def test_a_step_may_be_as_long_as_the_fastest_rate_allows(cubes):
    """Of servos by kp and kd alone, and of a ground of a given stiffness."""
    q, joints = cubes.stepper().q, int(cubes.joints.max())
    for gains in ((50.0, 0.0), (0.0, 0.02)):
        rates = []
        for k in range(len(cubes)):
            M = cubes.model(k).mass_matrix(q[k, : cubes.nq[k]])
            fastest = np.linalg.eigvals(np.linalg.inv(M)[6:, 6:] * max(gains)).real.max()
            rates.append(np.sqrt(fastest) if gains[0] else fastest)
        longest = 1.0 / max(rates)
        assert largest_step(cubes.tables, q, *gains) == pytest.approx(longest)
        cubes.stepper(largest_step(cubes.tables, q, *gains), None, *gains)
        with pytest.raises(mr.StateError, match=f"too long for body {np.argmax(rates)} "):
            cubes.stepper(1.001 * longest, None, *gains)
    assert largest_step(cubes.tables, q, 0.0, 0.0) > 1e6  # no friction: nothing is too long
    assert cubes.stepper(kp=np.full(len(cubes), 0.5)).law.kp.shape == (len(cubes), joints)
    ground, rates = mr.Ground(stiffness=3e3), []
    for k in range(len(cubes)):
        model = cubes.model(k)
        start = q[k, : model.nq]
        rates.append(GroundContact(ground, model, cubes.organism(k), start, 1e-5).rate)
    cubes.stepper(0.999 / max(rates), ground, 0.1, 0.0)
    with pytest.raises(mr.StateError, match=f"body {np.argmax(rates)} .* a ground of 3000 N/m"):
        cubes.stepper(1.001 / max(rates), ground, 0.1, 0.0)


def test_a_body_may_start_as_deep_as_two_weights_press_one_corner(cubes):
    ground = mr.Ground(stiffness=2e3)
    q, k = cubes.stepper(ground=ground).q, 3
    depth = cubes.model(k).mass.sum() * 9.81 / 2e3
    for share, refused in ((1.99, False), (2.01, True)):
        start = q.copy()
        start[k, 2] -= share * depth
        if refused:
            with pytest.raises(mr.StateError, match=rf"body {k} starts .* \(1 bodies in all\)"):
                cubes.stepper(ground=ground, start=start)
        else:
            np.testing.assert_array_equal(cubes.stepper(ground=ground, start=start).q, start)


def test_starts_are_padded_with_zeros_and_have_unit_quaternions(cubes):
    q, v = cubes.stepper().q, np.ones(cubes.stepper().v.shape)
    shortest = int(np.argmin(cubes.joints))
    q[shortest, cubes.nq[shortest] :] = 0.7
    q[2, 3:7] *= 1.0009
    q[:, 2] += 0.05
    for ground in (None, mr.Ground(lift=True)):
        stepper = cubes.stepper(ground=ground, start=[q, v])
        assert not stepper.q[shortest, cubes.nq[shortest] :].any()
        assert not stepper.v[shortest, cubes.nv[shortest] :].any()
        np.testing.assert_array_equal(stepper.v[0], np.arange(v.shape[1]) < cubes.nv[0])
        np.testing.assert_allclose(np.linalg.norm(stepper.q[:, 3:7], axis=1), 1, rtol=1e-15)
        np.testing.assert_array_equal(stepper.q[:, :3], q[:, :3])  # above the ground: they stay
    q[4, 3:7] *= 0.9985
    with pytest.raises(mr.StateError, match=r"start q\[4, 3:7\] is a unit quaternion .*got 0.9985"):
        cubes.stepper(start=q)


def given_task(population, duration, dt, every=None, begin=0.0):
    return task_of(
        population.tables, duration, dt, *[None] * 6, every, "auto", "float64", begin, strict=False
    )


@pytest.mark.parametrize(
    ("duration", "dt", "steps"),
    [(0.3, 0.1, 3), (0.3 * (1 + 1e-13), 0.1, 3), (0.3001, 0.1, 4), (10.05, 0.1, 101), (1, 1, 1)],
)
def test_steps_of_a_rollout_are_as_few_as_dt_allows(cubes, duration, dt, steps):
    task = given_task(cubes, duration, dt)
    assert (task.steps, task.records) == (steps, 1)
    assert task.step == pytest.approx(duration / steps, rel=1e-15)
    assert task.stops == [(steps, 1)]


def test_records_and_the_begin_of_ways_are_on_whole_steps(cubes):
    for every, record in ((0.2 * (1 + 0.9e-6), 2), (0.2 * (1 - 0.9e-6), 2), (5.0, 50)):
        assert given_task(cubes, 0.5, 0.1, every).record == record
    assert given_task(cubes, 0.5, 0.1, 5.0).stops == [(5, 1)]
    for every in (0.2 * (1 + 1.1e-6), 0.2 * (1 - 1.1e-6), 0.01):
        with pytest.raises(mr.StateError, match=r"is no multiple of the step of 0\.1 s"):
            given_task(cubes, 0.5, 0.1, every)
    for begin, first in ((0.0, 0), (0.14, 1), (0.16, 2), (0.5, 5)):
        assert given_task(cubes, 0.5, 0.1, begin=begin).begin == first
    stops = given_task(cubes, 0.5, 0.1, 0.2, 0.3).stops
    assert stops == [(2, 1), (3, 0), (4, 2), (5, 3)]


def test_results_have_no_negative_zeros_and_bodies_that_fail_no_numbers(cubes):
    task = given_task(cubes, 0.5, 0.1, 0.2)
    reached = rollout.Reached.empty(cubes.tables, task)
    reached = reached._replace(q=task.q, v=-task.v, work=-np.zeros(len(cubes)))
    reached.v[1, 2] = np.inf
    found = rollout.finished(cubes.tables, task, reached)
    np.testing.assert_array_equal(found.failed, np.arange(len(cubes)) == 1)
    for array in (found.q, found.v, found.work, found.base_pose, found.center):
        np.testing.assert_array_equal(np.isnan(array).reshape(len(cubes), -1).all(1), found.failed)
        assert not (np.signbit(array) & (array == 0)).any()
    np.testing.assert_allclose(found.times, [0, 0.2, 0.4, 0.5])


def test_a_step_may_be_as_long_as_friction_and_springs_allow():
    """Of one hinge: viscous and dry friction over inertia, the latter at rest; a soft spring."""
    kind = mr.examples.snake(2)
    inertia = kind.model("physical").mass_matrix([0.0]).item()
    rough = mr.Population([kind.with_parameters(viscous=0.4, coulomb=0.03)], "physical", "fixed")
    decay = (0.4 + 0.03 / SLIP_SPEED + 0.2) / inertia
    assert largest_step(rough.tables, np.zeros((1, 1)), 0.0, 0.2) == pytest.approx(1 / decay)
    smooth = mr.Population([kind], "physical", "fixed")
    swing = np.sqrt(5.0 / inertia)
    assert largest_step(smooth.tables, np.zeros((1, 1)), 5.0, 0.0) == pytest.approx(1 / swing)
    fast = 30.0 * 2  # default gains decay with twice their rate, swing with it
    assert largest_step(smooth.tables, np.zeros((1, 1)), None, None) == pytest.approx(1 / fast)
    with pytest.raises(mr.StateError, match=r"body 0 \(1 bodies in all\): friction and kd of its"):
        rough.stepper(1.01 / decay, None, 0.0, 0.2)
    with pytest.raises(mr.StateError, match=r"body 0 \(1 bodies in all\): springs and kp of its"):
        smooth.stepper(1.01 / swing, None, 5.0, 0.0)


def test_records_are_at_multiples_of_a_time_and_at_the_end(cubes):
    run = cubes.rollout(5e-3, every=2e-3)
    np.testing.assert_allclose(run.times, [0, 2e-3, 4e-3, 5e-3])
    assert len(run.trace) == 4
    assert (run.trace[-1] == run.base_pose).all()


def test_a_body_fails_that_turns_by_more_than_a_radian_in_a_step_about_any_axis():
    """A straight snake keeps turning about its axes of inertia."""
    ways = [(axis, turn) for axis in range(3) for turn in (-1.01, -0.99, 0.99, 1.01)]
    some = mr.Population([mr.examples.snake(2)] * len(ways))
    stepper = some.stepper(STEP_S)
    for k, (axis, turn) in enumerate(ways):
        stepper.v[k, 3 + axis] = turn / STEP_S
    run = some.rollout(STEP_S, STEP_S, start=(stepper.q, stepper.v))
    np.testing.assert_array_equal(run.failed, [abs(turn) > 1 for _, turn in ways])


def test_a_body_of_virtual_modules_cannot_stand():
    table = mr.catalog["superbot"].model_dump() | {"virtual": True, "name": "ghost"}
    ghost = mr.Organism.start(mr.ModuleType(**table))
    some = mr.Population([mr.examples.snake(2), ghost], "physical", "fixed")
    q = some.stepper(1e-4).q
    with pytest.raises(mr.StateError, match="no module of body 1 can touch the ground: all are"):
        some.stepper(1e-4, ground=mr.Ground(height=-5.0), start=q)


def test_the_deepest_body_below_the_ground_is_named(cubes):
    q = cubes.stepper(ground=mr.Ground()).q
    q[[2, 5, 6], 2] -= [0.1, 0.3, 0.2]
    with pytest.raises(mr.StateError, match=r"body 5 starts 0\.3 m .* \(3 bodies in all\)"):
        cubes.stepper(ground=mr.Ground(), start=q)
    q[:, 2] += 0.4
    np.testing.assert_array_equal(cubes.stepper(start=[q]).q, q)  # velocities may be left out


@pytest.mark.parametrize(("x", "y"), [(1.0, -1.0), (-1.0, 1.0)])
def test_bodies_stand_on_the_part_of_a_field_that_they_are_above(x, y):
    heights = np.zeros((20, 20))
    heights[:, :10] = 0.5  # where y is negative
    heights[:10] = 0.0  # and x positive
    ground = mr.Ground(height=heights if x > 0 else heights.T, cell=0.2)
    body = mr.Population([mr.examples.snake(2)])
    q = body.stepper().q.copy()
    q[0, :3] = [x, y, 0.5]
    q[0, 2] += rises(body.tables, ground, q)[0]
    assert q[0, 2] > 0.5
    run = body.rollout(0.05, ground=ground, start=q)
    np.testing.assert_allclose(run.q[0, :3], q[0, :3], rtol=0, atol=2e-3)  # a fall: 12 mm


def test_a_soft_spring_has_no_motor_either():
    body = mr.examples.snake(3).with_parameters("m1", rotor_inertia=1e-5, stiffness=0.2)
    law = mr.Population([body], "physical").stepper(1e-5, torque=0.7).law
    springs = [x.endswith(".spring") for x in body.model("physical", "free").joint_names]
    assert any(springs)
    np.testing.assert_array_equal(law.torque[0], np.where(springs, 0.0, 0.7))


def test_a_joint_that_moves_no_mass_is_refused_with_the_number_of_its_body():
    """The second pendulum is a point on its own hinge."""
    bodies = [mr.examples.arm("bab"), mr.examples.double_pendulum()]
    population = mr.Population(bodies, base="fixed")
    q = np.zeros((2, int(population.nq.max())))
    with pytest.raises(mr.StateError, match="a joint of body 1 moves no mass: give its modules"):
        largest_step(population.tables, q, 1.0, 1.0)
    with pytest.raises(mr.StateError, match="a joint of body 1 moves no mass: give its modules"):
        population.stepper(1e-4, kp=0.1, kd=0.1)


def test_bodies_with_a_fixed_base_have_a_number_for_each_joint(fixed):
    stepper, joints = fixed.stepper(1e-4), int(fixed.joints.max())
    assert stepper.q.shape == stepper.v.shape == (len(fixed), joints)
    run = fixed.rollout(1e-4, 1e-4, start=stepper.q)
    assert run.q.shape == run.v.shape == stepper.q.shape


def test_parts_of_steps_and_of_bodies_make_no_difference(cubes, monkeypatch):
    given = {"gaits": waves(cubes), "ground": mr.Ground(), "begin": 7e-3, "every": 0.01}
    whole = cubes.rollout(0.03, **given)
    monkeypatch.setattr(lanes, "STEPS_AT_ONCE", 4)
    monkeypatch.setattr(lanes, "BODIES_AT_ONCE", 8)
    monkeypatch.setattr(rollout, "CHUNK", 2)
    some = mr.Population([cubes.organism(k) for k in range(len(cubes))])
    parts = some.rollout(0.03, **given)
    for name in ("q", "v", "work", "trace", "start_pose"):
        assert getattr(whole, name).tobytes() == getattr(parts, name).tobytes()
    groups = lane_groups(cubes.tables, np.arange(len(cubes)), width=4)
    portions = list(lanes._portions(groups))
    assert len(portions) > 1
    for portion in portions:
        assert sum(each.body.size for each in portion) <= 8
    assert all(sum(each.body.size for each in portion) == 8 for portion in portions[:-1])
    bodies = [each.body.ravel() for portion in portions for each in portion]
    np.testing.assert_array_equal(
        np.concatenate(bodies), np.concatenate([each.body.ravel() for each in groups])
    )


def test_groups_change_nothing_behind_their_memory(cubes, monkeypatch):
    given, memory = [], lanes.aligned

    def guarded(size):
        given.append(memory(size + 512))
        given[-1][size:] = 0xA5
        return given[-1][:size]

    monkeypatch.setattr(lanes, "aligned", guarded)
    some = mr.Population([cubes.organism(k) for k in range(len(cubes))])
    v, x = np.random.default_rng(0).standard_normal((2, len(some), some.nv.max()))
    q = np.zeros((len(some), some.nq.max()))
    q[:, 6] = 1
    some.inverse_dynamics(q, v, x, threads=1)
    some.forward_dynamics(q, v, x, threads=1)
    some.rollout(5e-3, gaits=waves(some), ground=mr.Ground(), threads=1)
    assert len(given) >= 3
    assert all((each[-512:] == 0xA5).all() for each in given)


def test_trees_of_one_shape_share_a_list_of_parents():
    """Whatever order their links were docked in; a parent comes before its children."""
    rng, trees = np.random.default_rng(2), {}
    for _ in range(40):
        parent = np.array([-1, *(int(rng.integers(0, k)) for k in range(1, 6))])
        number = np.concatenate([[0], 1 + rng.permutation(5)])
        while any(number[parent[k]] > number[k] for k in range(1, 6)):
            number = np.concatenate([[0], 1 + rng.permutation(5)])
        other = np.full(6, -1)
        other[number[1:]] = number[parent[1:]]
        found = [_ordered(each.astype(np.int64).tobytes()) for each in (parent, other)]
        assert found[0][1] == found[1][1]
        for (order, above), each in zip(found, (parent, other), strict=True):
            assert sorted(order) == list(range(6))
            assert (order[0], above[0]) == (0, -1)
            for place in range(1, 6):
                assert above[place] < place
                assert order[above[place]] == each[order[place]]
        trees.setdefault(found[0][1], []).append(parent)
    assert len(trees) > 10
    assert _ordered(np.array([-1, 0, 0, 2]).tobytes())[0] == (0, 2, 3, 1)  # larger trees first
    assert _ordered(np.array([-1, 0, 0, 0]).tobytes())[0] == (0, 1, 2, 3)  # equal ones as docked


def test_a_population_tells_its_size_and_gives_bodies_by_number(cubes):
    joints = [len(cubes.model(k).joint_names) for k in range(len(cubes))]
    links = len(cubes.tables.rows)
    text = f"{len(joints)} bodies of {min(joints)} to {max(joints)} joints, {links} distinct links"
    assert repr(cubes) == f"<Population: {text}>"
    assert cubes.organism(np.int64(2)) == cubes.organism(2)
    for wrong in (-1, 1.0, "m0"):
        with pytest.raises(mr.UnknownNameError, match="bodies are 0 to"):
            cubes.organism(wrong)


def test_waves_alone_are_sines_of_one_hertz_about_zero():
    made = mr.JointWaves(np.ones((2, 3)))
    np.testing.assert_array_equal(made.phase, np.zeros((2, 3)))
    np.testing.assert_array_equal(made.offset, np.zeros((2, 3)))
    np.testing.assert_array_equal(made.frequency, [1.0, 1.0])


def test_waves_keep_copies_that_nothing_can_change():
    amplitude = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    made = mr.JointWaves(amplitude, 0.7, amplitude, [0.0, 2.0])
    amplitude[:] = 9.0
    assert len(made) == 2
    np.testing.assert_array_equal(made.amplitude, [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    np.testing.assert_array_equal(made.phase, np.full((2, 3), 0.7))
    np.testing.assert_array_equal(made.frequency, [0.0, 2.0])
    for array in (made.amplitude, made.phase, made.offset, made.frequency):
        assert not array.flags.writeable
    for given, message in (
        ({"amplitude": [0.1]}, r"amplitude is \(bodies, most joints\), got shape \(1,\)"),
        ({"phase": np.zeros(2)}, r"phase has shape \(2,\), expected one number or \(2, 3\)"),
        ({"frequency": [1.0, np.inf]}, r"frequency of body 1 is inf: .*\(1 are not\)"),
    ):
        with pytest.raises(mr.StateError, match=message):
            mr.JointWaves(**{"amplitude": np.zeros((2, 3)), **given})


def test_bodies_with_a_fixed_base_are_not_set_down_on_the_ground(fixed):
    for ground in (mr.Ground(height=-5.0), mr.Ground(height=-5.0, lift=True)):
        stepper = fixed.stepper(1e-4, ground)
        q = stepper.q.copy()
        np.testing.assert_array_equal(q, np.zeros(q.shape))
        stepper.restart(np.ones(len(fixed), dtype=bool), q + 0.1, stepper.v)
        np.testing.assert_array_equal(stepper.q, q + 0.1)


def test_only_bodies_with_round_shapes_roll():
    """Also where a shorter one comes after a longer one in the tables."""
    arm, boxes = mr.examples.arm("babab"), mr.Organism.start("superbot")
    for bodies in ([arm, boxes], [boxes, arm]):
        tables = mr.Population(bodies, "physical", "fixed").tables
        assert tables.count.tolist() == [6 if body is arm else 4 for body in bodies]
        assert tables.rolls().tolist() == [body is arm for body in bodies]


def test_a_stepper_may_restart_none_and_takes_one_step_or_more(cubes):
    stepper = cubes.stepper(ground=mr.Ground())
    q, v = stepper.q.copy(), stepper.v.copy()
    stepper.restart(np.zeros(len(cubes), dtype=bool), q + 1.0, v + 1.0)
    np.testing.assert_array_equal(stepper.q, q)
    references = np.zeros((len(cubes), int(cubes.joints.max())))
    stepper.advance(references, 1)
    with pytest.raises(mr.StateError, match="steps must be a whole number of 1 or more"):
        stepper.advance(references, 0)
    held = cubes.rollout(STEP_S, ground=mr.Ground())
    np.testing.assert_array_equal(stepper.q, held.q)
    q[1, 2] += 0.4  # set down again
    work = np.where(np.arange(len(cubes)) == 1, 0.0, stepper.work)
    stepper.restart(np.arange(len(cubes)) == 1, q, v)
    np.testing.assert_array_equal(stepper.work, work)
    assert stepper.q[1, 2] == pytest.approx(q[1, 2] - 0.4)
