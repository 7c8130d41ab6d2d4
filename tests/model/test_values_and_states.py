"""A model is a value: read-only arrays, checked states, and clear words for wrong ones."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from modurob import Model, Organism, StateError, UnknownNameError, catalog, examples
from oracles import GROUPS, complains, random_organism

ROUNDING = 1e-14  # a handful of products of numbers of size 1
NAN, INFINITY = float("nan"), float("inf")
SNAKE = examples.snake(4).model(hinges="physical")  # m0.hinge, m1.hinge, m2.hinge
FREE = examples.snake(4).model(hinges="physical", base="free")
ARRAYS = [
    field.name
    for field in dataclasses.fields(Model)
    if isinstance(getattr(FREE, field.name), np.ndarray)
]


# -- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("model", [SNAKE, FREE], ids=["fixed", "free"])
def test_arrays_of_a_model_are_read_only(model, name):
    array = getattr(model, name)
    assert not array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        array[...] = 0


def test_fields_of_a_model_cannot_be_replaced():
    with pytest.raises(dataclasses.FrozenInstanceError):
        SNAKE.mass = np.zeros(4)
    with pytest.raises(TypeError):
        SNAKE.locked["m0.hinge"] = "because"
    with pytest.raises(TypeError):
        SNAKE.modules["m0"] = 3


def test_a_model_keeps_its_own_gravity_and_leaves_the_caller_s_array_alone():
    gravity = np.array([0.0, 0.0, -1.6])
    model = examples.snake(2).model(gravity=gravity)
    gravity[2] = -3.7
    assert model.gravity.tolist() == [0.0, 0.0, -1.6]


def test_models_say_what_they_are():
    assert "nq = 10, nv = 9" in repr(FREE)
    assert "free base" in repr(FREE)
    assert (FREE.nq, FREE.nv, SNAKE.nq, SNAKE.nv) == (10, 9, 3, 3)


@pytest.mark.parametrize("kinds", GROUPS)
def test_links_come_after_their_parents_and_bodies_have_unique_names(kinds):
    model = random_organism(kinds, 15, seed=9).model("physical")
    assert all(parent <= link for link, parent in enumerate(model.parent))
    assert len(set(model.body_names)) == model.nbodies
    assert len(set(model.joint_names)) == len(model.joint_names)
    for index, name in enumerate(model.body_names):
        assert model.body_index(name) == model.body_index(index) == index
    for index, name in enumerate(model.joint_names):
        assert model.joint_index(name) == index
    for module, body in model.modules.items():
        assert model.body_index(module) == body
        assert model.body_names[body].split(".")[0] == module


@pytest.mark.parametrize("kinds", GROUPS)
@pytest.mark.parametrize("hinges", ["dyad", "physical"])
@pytest.mark.parametrize("base", ["fixed", "free"])
def test_modules_stand_at_their_rest_poses_in_the_neutral_configuration(kinds, hinges, base):
    organism = random_organism(kinds, 10, seed=4)
    model = organism.model(hinges, base)
    poses = model.forward_kinematics(model.neutral())
    for name in organism:
        np.testing.assert_allclose(
            poses[model.modules[name]], organism.rest_pose(name), rtol=0, atol=1e-13
        )


def test_a_lone_module_has_no_joints_and_still_a_pose():
    model = Organism.start("backbone").model()
    assert (model.nq, model.nv, model.nbodies) == (0, 0, 1)
    assert model.forward_kinematics([]).shape == (1, 4, 4)
    assert model.forward_kinematics(np.zeros((3, 0))).shape == (3, 1, 4, 4)
    assert model.jacobian([], "m0").shape == (6, 0)
    assert model.center_of_mass([]).tolist() == [0, 0, 0]


# -- states ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kinds", GROUPS)
@pytest.mark.parametrize("base", ["fixed", "free"])
def test_random_configurations_are_within_the_limits(kinds, base):
    model, rng = random_organism(kinds, 8, 1).model("physical", base), np.random.default_rng(0)
    for _ in range(20):
        q = model.random_configuration(rng)
        joints = q[model.joint_slice_q]
        assert np.all((model.lower <= joints) & (joints <= model.upper))
        np.testing.assert_allclose(model.check_configuration(q), q, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("limits", [(4.0, None), (None, -4.0), (None, None), (2.0, 2.5)])
def test_random_configurations_respect_limits_on_one_side_only(limits):
    kind = catalog["backbone"].with_parameters(limits=limits)
    model, rng = examples.snake(3, kind).model("physical"), np.random.default_rng(0)
    for _ in range(20):
        joints = model.random_configuration(rng)
        assert np.all((model.lower <= joints) & (joints <= model.upper))


PI = np.pi


@pytest.mark.parametrize(
    ("limits", "low", "high"),
    [((None, None), -PI, PI), ((4.0, None), 4.0, 4.0 + PI), ((None, -4.0), -4.0 - PI, -4.0),
     ((None, 1.0), -PI, 1.0), ((-1.0, None), -1.0, PI), ((2.0, 2.5), 2.0, 2.5)],
)  # fmt: skip
def test_random_joints_without_limits_are_within_one_turn_or_one_meter(limits, low, high):
    kind = catalog["backbone"].with_parameters(limits=limits)
    model = examples.snake(2, kind).model("physical", base=["px"])
    least = model.random_configuration(SimpleNamespace(uniform=lambda low, high: low))
    most = model.random_configuration(SimpleNamespace(uniform=lambda low, high: high))
    np.testing.assert_allclose([least, most], [[-0.5, low], [0.5, high]], rtol=ROUNDING)


def test_a_quaternion_is_normalised_if_it_is_nearly_of_unit_length():
    q = FREE.neutral()
    q[3:7] = 0.9995 * np.array([0.5, 0.5, 0.5, 0.5])
    np.testing.assert_allclose(FREE.check_configuration(q)[3:7], [0.5] * 4, rtol=0, atol=ROUNDING)


def test_checking_does_not_change_the_caller_s_array():
    q = FREE.neutral()
    q[6] = 1.0005
    FREE.forward_kinematics(q)
    assert q[6] == 1.0005


def with_entry(size, index, value):
    q = np.zeros(size)
    q[index] = value
    return q


def free_with_quaternion(*quaternion):
    q = FREE.neutral()
    q[3:7] = quaternion
    return q


def free_with(index, value):
    q = FREE.neutral()
    q[index] = value
    return q


WRONG_CONFIGURATIONS = {
    "too short": (SNAKE, [0.0, 0.0], "(2,)", "nq = 3", "m0.hinge, m1.hinge, m2.hinge"),
    "too long": (SNAKE, np.zeros(4), "(4,)", "nq = 3"),
    "a number": (SNAKE, 0.0, "()", "nq = 3"),
    "batch on the wrong side": (SNAKE, np.zeros((3, 5)), "(3, 5)", "nq = 3"),
    "not a number": (SNAKE, with_entry(3, 1, NAN), "q[1] is nan", "finite"),
    "infinite": (SNAKE, with_entry(3, 2, INFINITY), "q[2] is inf", "finite"),
    "not a number in a batch": (SNAKE, with_entry((2, 3), (1, 0), NAN), "q[1, 0] is nan"),
    "words": (SNAKE, ["a", "b", "c"], "q must hold real numbers"),
    "nothing": (SNAKE, None, "q"),
    "complex": (SNAKE, [1j, 0, 0], "q must hold real numbers, got complex ones"),
    "infinite quaternion": (FREE, free_with(4, INFINITY), "q[4] is inf"),
    "ragged": (SNAKE, [[1.0], [1.0, 2.0]], "q must hold numbers"),
    "free base without its place": (FREE, np.zeros(3), "(3,)", "nq = 10", "base (7 in q, 6 in v)"),
    "no quaternion": (
        FREE,
        np.zeros(10),
        "q[3:7]",
        "unit quaternion (x, y, z, w)",
        "norm must be 1, got 0",
    ),
    "long quaternion": (FREE, free_with_quaternion(0, 0, 0, 2), "q[3:7]", "norm must be 1, got 2"),
    "one bad quaternion of a batch": (
        FREE,
        np.stack([free_with_quaternion(0, 0, 0, 1), free_with_quaternion(1, 1, 0, 0)]),
        "norm must be 1, got 1.41421",
    ),
    "not a number in the quaternion": (FREE, free_with(4, NAN), "q[4] is nan"),
}


@pytest.mark.parametrize("case", WRONG_CONFIGURATIONS.values(), ids=WRONG_CONFIGURATIONS)
def test_wrong_configurations_are_refused_everywhere(case):
    model, q, *pieces = case
    for use in (
        model.forward_kinematics,
        model.center_of_mass,
        lambda q: model.jacobian(q, "m1"),
        lambda q: model.integrate(q, np.zeros(model.nv)),
    ):
        with complains(StateError, *pieces):
            use(q)
    if q is not None:  # without a first guess, inverse kinematics takes its own
        with complains(StateError, *pieces):
            model.inverse_kinematics({"m1": [0, 0, 0]}, q0=q)


def test_a_quaternion_that_is_not_finite_is_told_so_even_where_kernels_check():
    with complains(StateError, "q[4] is inf"):
        FREE.check_configuration(free_with(4, INFINITY), finite=False)


def test_wrong_velocities_are_refused():
    with complains(StateError, "v has shape (2,)", "nv = 3"):
        SNAKE.integrate(np.zeros(3), np.zeros(2))
    with complains(StateError, "v[1] is nan"):
        SNAKE.integrate(np.zeros(3), with_entry(3, 1, NAN))


@pytest.mark.parametrize("body", ["m9", "m1.C", "", -1, 99, 1.0, None, ["m0"]])
def test_unknown_bodies_are_answered_with_the_known_ones(body):
    with complains(UnknownNameError, "no body", repr(body), "m0.A, m0.B, m1.A"):
        SNAKE.jacobian(np.zeros(3), body)


def test_unknown_and_locked_joints_are_told_apart():
    with complains(UnknownNameError, "no joint 'm9.hinge'", "m0.hinge, m1.hinge, m2.hinge"):
        SNAKE.joint_index("m9.hinge")
    with complains(UnknownNameError, "joint 'm3.hinge' is locked", "nothing with mass beyond it"):
        SNAKE.joint_index("m3.hinge")
    with complains(UnknownNameError, "no joint ['m0']"):
        SNAKE.joint_index(["m0"])


WRONG_OPTIONS = {
    "hinges": ({"hinges": "real"}, "'dyad' or 'physical'", "'real'"),
    "hinges of nothing": ({"hinges": None}, "'dyad' or 'physical'", "None"),
    "base": ({"base": "loose"}, "'fixed', 'free' or a list of px, py, pz", "'loose'"),
    "base of nothing": ({"base": None}, "'fixed', 'free' or a list of px, py, pz", "None"),
    "base of a number": ({"base": 3}, "'fixed', 'free' or a list of px, py, pz", "3"),
    "unknown virtual joint": ({"base": ["px", "qx"]}, "virtual joint 'qx'", "px, py, pz, rx"),
    "virtual joint twice": ({"base": ["px", "px"]}, "'px' is unknown or repeated"),
    "gravity of one number": ({"gravity": -9.81}, "gravity must be three finite numbers", "-9.81"),
    "gravity of words": ({"gravity": "down"}, "gravity must be three finite numbers", "'down'"),
    "gravity of nothing": ({"gravity": (0, 0, NAN)}, "gravity must be three finite numbers", "nan"),
}


@pytest.mark.parametrize("case", WRONG_OPTIONS.values(), ids=WRONG_OPTIONS)
def test_wrong_options_of_a_model_are_refused(case):
    options, *pieces = case
    with complains(StateError, *pieces):
        examples.crab().model(**options)


def test_a_module_called_world_and_virtual_joints_do_not_go_together():
    organism = Organism.start("backbone", "world")
    assert organism.model(base="free").nv == 6
    with complains(StateError, "'world'", "rename"):
        organism.model(base=["px"])


def test_what_has_no_mass_has_no_center_of_mass():
    model = Organism.start("virtual_px").model()
    q, v = model.neutral(), np.zeros(model.nv)
    for ask in (
        lambda: model.center_of_mass(q),
        lambda: model.centroidal_momentum_matrix(q),
        lambda: model.centroidal_momentum_matrix_rate(q, v),
    ):
        with complains(StateError, "the organism has no mass, so it has no center of mass"):
            ask()


def test_unknown_frames_of_a_jacobian_are_answered_with_the_known_ones():
    with complains(StateError, "body, world, aligned", "'local'"):
        SNAKE.jacobian(np.zeros(3), "m1", frame="local")


@pytest.mark.parametrize("number", [-1, SNAKE.nbodies])
def test_a_number_of_no_body_is_answered_with_the_bodies(number):
    with complains(UnknownNameError, f"no body {number}", "bodies are"):
        SNAKE.body_index(number)
    assert SNAKE.body_index(SNAKE.nbodies - 1) == SNAKE.nbodies - 1


def test_truth_values_are_no_numbers():
    with complains(StateError, "q must hold real numbers"):
        SNAKE.check_configuration([True, False, True])


@pytest.mark.parametrize(("norm", "taken"), [(1.0005, True), (0.9995, True), (1.002, False)])
def test_quaternions_are_taken_up_to_a_thousandth_from_their_norm(norm, taken):
    q = FREE.neutral()
    q[3:7] *= norm
    if taken:
        assert np.linalg.norm(FREE.check_configuration(q)[3:7]) == pytest.approx(1, abs=ROUNDING)
    else:
        with complains(StateError, "unit quaternion", "1.002"):
            FREE.check_configuration(q)


def test_random_configurations_of_a_free_base_lie_about_its_pose():
    T = np.eye(4)
    T[:3, 3] = 100.0, -200.0, 300.0
    model = examples.snake(2).with_base_pose(T).model(base="free")
    rng = np.random.default_rng(0)
    places = np.array([model.random_configuration(rng)[:3] for _ in range(200)])
    np.testing.assert_allclose(places.mean(axis=0), T[:3, 3], atol=0.4)  # 5 standard errors
    assert (places.std(axis=0) > 0.5).all()


def test_a_random_place_is_that_of_the_base_and_what_was_drawn():
    T = np.eye(4)
    T[:3, 3] = 1.0, -2.0, 3.0
    model = examples.snake(2).with_base_pose(T).model("physical", base="free")
    drawn = SimpleNamespace(
        uniform=lambda low, high: low, standard_normal=lambda n: np.arange(1.0, n + 1)
    )
    q = model.random_configuration(drawn)
    np.testing.assert_allclose(q[:3], [2.0, 0.0, 6.0], rtol=ROUNDING)
    np.testing.assert_allclose(q[3:7], np.arange(1, 5) / np.sqrt(30), rtol=ROUNDING)
    np.testing.assert_array_equal(q[7:], model.lower)
