"""Inverse kinematics: reaches what can be reached, and says so when it cannot."""

import numpy as np
import pinocchio as pin
import pytest

from modurob import StateError, UnknownNameError, examples, kinematics
from modurob.kinematics import REACHED
from oracles import complains

TARGETS = 8  # random reachable targets for each organism
# Six joints with tight limits have few solutions: of 40 targets, 36 were found with 9 starts, all
# with 25. The tests ask for a solution, so they allow more starts than the default.
RESTARTS = 60
ROUNDING = 1e-12  # what the found poses may deviate beyond the residual
REPEATED = 1e-6  # [rad] the same descent twice: its steps go through LAPACK
SUPERBOTS = examples.superbot_tree(3, 3, rng=np.random.default_rng(1))

CASES = {
    "seven-joint arm": (examples.arm("bababab"), "physical", "fixed", ["m6.distal"]),
    "arm with a slide": (examples.arm("babac"), "physical", "fixed", ["m4.distal"]),
    "snake": (examples.snake(8), "physical", "fixed", ["m7"]),
    "dyad snake": (examples.snake(8), "dyad", "fixed", ["m7"]),
    "branch of a superbot tree": (SUPERBOTS, "physical", "fixed", ["m2"]),
    "two tips of a superbot tree": (SUPERBOTS, "physical", "fixed", ["m2", "m8"]),
    "free crab": (examples.crab(), "dyad", "free", ["m0", "m3", "m5"]),
    "nine": (examples.nine(), "physical", "fixed", ["m2", "m5"]),
    "crab on a plane": (examples.crab(), "dyad", ["px", "py", "rz"], ["m3", "m5"]),
}


def deviation(pose, target):
    """Largest error of a position or of a rotation vector, by Pinocchio."""
    if target.shape == (3,):
        return np.abs(pose[:3, 3] - target).max()
    turn = pin.log3(pose[:3, :3].T @ target[:3, :3])
    return max(np.abs(pose[:3, 3] - target[:3, 3]).max(), np.abs(turn).max())


def assert_reached(model, targets, result):
    assert result.reached
    assert result.residual <= REACHED
    poses = model.forward_kinematics(result.q)
    for body, target in targets.items():
        assert deviation(poses[model.body_index(body)], target) <= REACHED + ROUNDING
    assert_within_limits(model, result.q)


def assert_within_limits(model, q):
    joints = q[..., model.joint_slice_q]
    assert np.all(joints >= model.lower)
    assert np.all(joints <= model.upper)


def reachable(model, bodies, rng, position_only=False):
    """Where the bodies are in a random configuration."""
    poses = model.forward_kinematics(model.random_configuration(rng))
    found = {body: poses[model.body_index(body)] for body in bodies}
    return {body: T[:3, 3] if position_only else T for body, T in found.items()}


@pytest.mark.parametrize("position_only", [False, True], ids=["pose", "position"])
@pytest.mark.parametrize("name", CASES)
def test_random_reachable_targets_are_reached_within_the_limits(name, position_only):
    organism, hinges, base, bodies = CASES[name]
    model, rng = organism.model(hinges, base), np.random.default_rng(0)
    for _ in range(TARGETS):
        targets = reachable(model, bodies, rng, position_only)
        assert_reached(model, targets, model.inverse_kinematics(targets, restarts=RESTARTS))


def test_poses_and_positions_can_be_asked_for_together():
    model, rng = SUPERBOTS.model("physical"), np.random.default_rng(3)
    targets = reachable(model, ["m2"], rng)
    poses = model.forward_kinematics(model.random_configuration(rng))
    targets["m8"] = poses[model.body_index("m8"), :3, 3]
    assert_reached(model, targets, model.inverse_kinematics(targets, restarts=RESTARTS))


def test_a_point_of_a_body_is_brought_to_a_place():
    model, rng = examples.arm("bababab").model(), np.random.default_rng(11)
    tip, point = model.body_index("m6.distal"), np.array([0.03, -0.02, 0.08])
    T = model.forward_kinematics(model.random_configuration(rng))[tip]
    target = T[:3, :3] @ point + T[:3, 3]
    asked = {"targets": {"m6.distal": target}, "points": {"m6.distal": point}}
    result = model.inverse_kinematics(**asked, restarts=RESTARTS)
    T = model.forward_kinematics(result.q)[tip]
    assert result.reached
    np.testing.assert_allclose(T[:3, :3] @ point + T[:3, 3], target, atol=REACHED + ROUNDING)
    assert_within_limits(model, result.q)


def test_a_good_first_guess_is_taken_and_needs_one_start():
    model, rng = examples.arm("bababab").model(), np.random.default_rng(5)
    q = model.random_configuration(rng)
    targets = {"m6.distal": model.forward_kinematics(q)[model.body_index("m6.distal")]}
    result = model.inverse_kinematics(targets, q0=q + 0.01 * rng.standard_normal(7), restarts=0)
    assert_reached(model, targets, result)
    assert result.starts == 1
    np.testing.assert_allclose(result.q, q, atol=0.1)


def test_what_is_already_reached_stays():
    model = examples.snake(5).model("physical")
    q = np.array([0.1, -0.2, 0.3, -0.4])
    pose = model.forward_kinematics(q)[model.modules["m4"]]
    result = model.inverse_kinematics({"m4": pose}, q0=q)
    np.testing.assert_array_equal(result.q, q)
    assert result.reached


def test_bodies_that_cannot_move_are_where_they_are():
    """Also of a robot far from the origin, whose equations are solved near its base."""
    pose = np.eye(4)
    pose[:3, 3] = 7.0, -5.0, 3.0
    model = examples.arm("bab").with_base_pose(pose).model()
    q = np.array([0.3, -0.2, 0.5])
    poses = model.forward_kinematics(q)
    targets = {name: poses[model.body_index(name)] for name in ("m0", "m2.distal")}
    np.testing.assert_allclose(targets["m0"][:3, 3], pose[:3, 3])
    assert_reached(model, targets, model.inverse_kinematics(targets, q, restarts=0))
    away = {"m0": pose[:3, 3] + [0.0, 0.0, 0.25]}
    assert model.inverse_kinematics(away, restarts=0).residual == pytest.approx(0.25)


def test_a_start_that_is_no_better_does_not_replace_the_first_guess():
    model, q = examples.arm("bab").model(), np.array([0.3, -0.2, 0.5])
    found = model.inverse_kinematics({"m0": [0.0, 0.0, 9.0]}, q, restarts=2)  # it cannot move
    assert found.starts == 3
    np.testing.assert_array_equal(found.q, q)


def test_targets_far_from_the_origin_are_met_as_closely_as_near_it():
    """Near the base positions have digits enough for 1e-10 m; in the world 1e-9 is one digit."""
    pose = np.eye(4)
    pose[:3, 3] = 5e5, 5e6, 300.0
    model, rng = examples.arm("bababab").with_base_pose(pose).model(), np.random.default_rng(7)
    q = rng.uniform(-1, 1, (8, 7))
    goals = model.forward_kinematics(q)[:, model.body_index("m6.distal"), :3, 3]
    found = model.inverse_kinematics({"m6.distal": goals}, q + 0.05, restarts=0)
    assert found.reached.all()


def test_what_is_missed_by_exactly_the_residual_is_reached_and_stays():
    still = examples.snake(1).model()
    for miss, reached in ((1e-10, True), (np.nextafter(1e-10, 1), False)):
        found = still.inverse_kinematics({"m0": [0.0, 0.0, miss]}, restarts=2)
        assert (found.residual, found.reached) == (miss, reached)
        assert found.starts == (1 if reached else 3)
    wagon = examples.crane().model("physical")
    place = wagon.forward_kinematics([0.0, 0.0])[wagon.body_index("m1"), :3, 3]
    k = int(np.argmax(np.abs(wagon.jacobian([0.0, 0.0], "m1", "aligned")[:3, 0])))  # of the rail
    assert place[k] == 0
    goal = place.copy()
    goal[k] = 1e-10
    assert not wagon.inverse_kinematics({"m1": goal}, [0.0, 0.0]).q.any()
    goal[k] = 1e-9
    assert wagon.inverse_kinematics({"m1": goal}, [0.0, 0.0]).q.any()


def test_the_damping_falls_tenfold_with_each_good_step(monkeypatch):
    """On a rail a step with damping d leaves d / (1 + d) of the error; the first is 1e-3."""
    wagon, left = examples.crane().model("physical"), 1.0
    at = {"m1": wagon.forward_kinematics([1.0, 0.0])[wagon.body_index("m1"), :3, 3]}
    for steps, damping in enumerate((1e-3, 1e-4, 1e-5), start=1):
        monkeypatch.setattr(kinematics, "STEPS", steps)
        left *= damping / (1 + damping)
        found = wagon.inverse_kinematics(at, [0.0, 0.0], restarts=0)
        assert found.residual == pytest.approx(left, rel=1e-3)


def test_a_start_has_two_hundred_steps_at_most(monkeypatch):
    """As many as a search has that never seems to arrive nor to end at a minimum."""
    model = examples.double_pendulum().model("physical")
    calls = counted_errors(monkeypatch)
    monkeypatch.setattr(kinematics, "REACHED", -1.0)
    monkeypatch.setattr(kinematics, "MOST_DAMPING", np.inf)
    monkeypatch.setattr(kinematics, "STUCK", -1.0)
    model.inverse_kinematics({"m2": [3.0, 0.0, -9.0]}, restarts=0)
    assert len(calls) == 1 + 200  # the first guess and each step


def test_half_a_turn_is_reached():
    model = examples.arm("b").model()
    goal = model.forward_kinematics([np.pi - 1e-12])[model.body_index("m0.distal")]
    assert model.inverse_kinematics({"m0.distal": goal}).reached


def test_the_same_question_has_the_same_answer():
    """Also where random starts are needed, whether they find the targets (seed 7) or not (8)."""
    model = SUPERBOTS.model("physical")
    for seed, reached in ((7, True), (8, False)):
        targets = reachable(model, ["m2", "m8"], np.random.default_rng(seed))
        first, second = (model.inverse_kinematics(targets, restarts=7) for _ in range(2))
        assert first.starts > 1
        assert first.reached == reached
        np.testing.assert_allclose(first.q, second.q, rtol=0, atol=REPEATED)


# -- out of reach ----------------------------------------------------------------------------------


def test_a_point_out_of_reach_gives_the_nearest_one_and_says_so():
    model = examples.snake(4).model("physical")  # from the first hinge 0.3 m long
    far = np.array([0.0, 1.0, 0.0])
    result = model.inverse_kinematics({"m3": far})
    assert not result.reached
    assert result.residual == pytest.approx(0.7, abs=1e-6)  # stretched towards it
    np.testing.assert_allclose(result.q, 0, atol=1e-3)
    assert_within_limits(model, result.q)


def test_a_point_off_the_plane_of_a_planar_snake_leaves_its_distance():
    model = examples.snake(6).model("physical")
    result = model.inverse_kinematics({"m5": [0.05, 0.2, 0.2]})
    assert not result.reached
    assert result.residual == pytest.approx(0.05, abs=1e-6)


def test_limits_are_kept_when_they_are_what_hinders():
    organism = examples.snake(2).with_parameters(limits=(-0.5, 0.5))
    model = organism.model("physical")
    wanted = examples.snake(2).model("physical").forward_kinematics([1.2])
    result = model.inverse_kinematics({"m1": wanted[model.modules["m1"]]})
    assert not result.reached
    np.testing.assert_allclose(result.q, [0.5], rtol=0, atol=0)


def test_an_organism_without_joints_says_how_far_it_is():
    model = examples.snake(1).model()
    result = model.inverse_kinematics({"m0": [0.0, 0.0, 0.25]}, restarts=0)
    assert not result.reached
    assert result.residual == 0.25
    assert model.inverse_kinematics({"m0": np.eye(4)}).reached


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_a_batch_of_targets_is_solved_as_one_by_one(base):
    model = examples.arm("babac").model(base=base)
    rng = np.random.default_rng(4)
    q = np.stack([model.random_configuration(rng) for _ in range(6)]).reshape(2, 3, -1)
    poses = model.forward_kinematics(q)
    tip, near = poses[..., model.body_index("m4"), :, :], poses[..., model.body_index("m2"), :3, 3]
    found = model.inverse_kinematics({"m4": tip, "m2": near})
    assert found.q.shape == q.shape
    assert found.reached.shape == found.residual.shape == found.starts.shape == (2, 3)
    assert found.reached.all()
    reached = model.forward_kinematics(found.q)[..., model.body_index("m4"), :, :]
    np.testing.assert_allclose(reached, tip, atol=1e-9)
    one = model.inverse_kinematics({"m4": tip[1, 2], "m2": near[1, 2]}, restarts=0)
    many = model.inverse_kinematics({"m4": tip, "m2": near}, restarts=0)
    assert isinstance(one.reached, bool)
    assert one.reached == many.reached[1, 2]
    np.testing.assert_allclose(many.q[1, 2], one.q, atol=1e-6)


def test_one_target_may_have_many_first_guesses():
    model = examples.arm("babac").model()
    rng = np.random.default_rng(1)
    guesses = np.stack([model.random_configuration(rng) for _ in range(5)])
    tip = model.body_index("m4")
    found = model.inverse_kinematics({"m4": model.forward_kinematics(guesses[0])[tip]}, guesses)
    assert found.q.shape == guesses.shape
    assert found.starts[0] == 1
    np.testing.assert_allclose(found.q[0], guesses[0])


# -- wrong questions -------------------------------------------------------------------------------

ARM = examples.arm("bab").model()
WRONG_QUESTIONS = {
    "no target": (lambda: ARM.inverse_kinematics({}), StateError, "at least one target"),
    "unknown body": (
        lambda: ARM.inverse_kinematics({"hand": [0, 0, 0]}),
        UnknownNameError, "no body 'hand'", "m2.distal",
    ),
    "not a number": (
        lambda: ARM.inverse_kinematics({"m2": [0, np.nan, 0]}),
        StateError, "target of 'm2'", "not finite",
    ),
    "two numbers": (
        lambda: ARM.inverse_kinematics({"m2": [0, 0]}),
        StateError, "target of 'm2'", "(..., 3) position or a (..., 4, 4) pose", "(2,)",
    ),
    "words": (
        lambda: ARM.inverse_kinematics({"m2": "there"}),
        StateError, "target of 'm2'", "(..., 3) position or a (..., 4, 4) pose",
    ),
    "no rotation": (
        lambda: ARM.inverse_kinematics({"m2": 2 * np.eye(4)}),
        StateError, "target of 'm2'", "with a rotation",
    ),
    "pose with its position in the last row": (
        lambda: ARM.inverse_kinematics({"m2": ARM.forward_kinematics(np.zeros(3))[-1].T}),
        StateError, "target of 'm2'", "[R p; 0 1]", "(4, 4)",
    ),
    "point without target": (
        lambda: ARM.inverse_kinematics({"m2": [0, 0, 0]}, points={"m1": [0, 0, 1]}),
        StateError, "'m1' has a point but no target", "m2",
    ),
    "point of a pose": (
        lambda: ARM.inverse_kinematics({"m2": np.eye(4)}, points={"m2": [0, 0, 1]}),
        StateError, "point of 'm2'", "its target must be a position",
    ),
    "batches that do not fit": (
        lambda: ARM.inverse_kinematics({"m2": np.zeros((4, 3))}, q0=np.zeros((2, 3))),
        StateError, "q0 and the targets have batch shapes", "(2,), (4,)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG_QUESTIONS.values(), ids=WRONG_QUESTIONS)
def test_wrong_questions_are_answered_in_one_line(case):
    ask, error, *pieces = case
    with complains(error, *pieces):
        ask()


def counted_errors(monkeypatch) -> list[int]:
    """Grows with every evaluation of the targets' errors."""
    calls: list[int] = []
    original = kinematics._errors
    monkeypatch.setattr(kinematics, "_errors", lambda *a: (calls.append(1), original(*a))[1])
    return calls


def test_every_restart_is_taken_when_a_target_is_out_of_reach():
    model = examples.snake(4).model(hinges="physical")
    found = model.inverse_kinematics({"m3": [0.0, 0.0, 9.0]}, restarts=3)
    assert not found.reached
    assert found.starts == 4


def test_a_first_guess_beyond_the_limits_is_moved_to_them():
    model = examples.snake(4).model(hinges="physical")
    outside = model.upper + 0.2
    goal = model.forward_kinematics(outside)[model.body_index("m3")]
    found = model.inverse_kinematics({"m3": goal}, outside, restarts=0)
    assert (found.q <= model.upper).all()
    assert not found.reached


def test_a_search_that_gains_nothing_ends_early(monkeypatch):
    """Straight toward a target out of reach no joint helps; the damping ends the search."""
    model = examples.double_pendulum().model("physical")
    calls = counted_errors(monkeypatch)
    model.inverse_kinematics({"m2": [0.0, 0.0, -9.0]}, restarts=0)
    assert len(calls) == 1 + 12  # with dampings of 1e-3, 1e-2, ... 1e8


def test_a_search_that_gains_hardly_anything_ends_early(monkeypatch):
    model = examples.double_pendulum().model("physical")
    calls = counted_errors(monkeypatch)
    model.inverse_kinematics({"m2": [3.0, 0.0, -9.0]}, [0.4, 0.3], restarts=0)
    assert len(calls) < 40  # of 200


def test_no_targets_have_no_solutions():
    model = examples.snake(4).model("physical")
    found = model.inverse_kinematics({"m3": np.zeros((0, 4, 4))})
    assert found.q.shape == (0, model.nq)
    assert found.reached.shape == (0,)
