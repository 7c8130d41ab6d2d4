"""No road to compiled code leads around the check of a model's arrays."""

import copy
import dataclasses
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from modurob import Model, ModuleType, Organism, StateError, catalog, examples
from modurob.model.frames import _snapped, _whole
from modurob.model.validation import _check_masses, same_numbers
from oracles import complains

MODEL = examples.arm("bab").with_parameters("m1", limits=(-2.0, 2.0)).model("physical")


def test_a_changed_copy_is_checked():
    parent = MODEL.parent.copy()
    parent[-1] = 99
    with complains(StateError, "parent[2] of a model must be link 0 to 2, got 99"):
        dataclasses.replace(MODEL, parent=parent)


def test_a_model_of_raw_arrays_is_checked():
    fields = {field.name: getattr(MODEL, field.name) for field in dataclasses.fields(Model)}
    Model(**fields)
    with complains(StateError, "mass of a model must be an array of float64, (4,), got [1, 2]"):
        Model(**{**fields, "mass": [1, 2]})
    with complains(StateError, "joint_names of a model must be texts"):
        Model(**{**fields, "joint_names": ["a", "b", "c"]})
    with complains(StateError, "locked of a model must be a mapping"):
        Model(**{**fields, "locked": ()})
    with complains(StateError, "locked of a model must map names of joints to reasons"):
        Model(**{**fields, "locked": {"a": 1}})
    with complains(StateError, "free_base of a model must be True or False, got 1"):
        Model(**{**fields, "free_base": 1})


def test_a_pickle_is_checked():
    restore, (fields, options) = MODEL.__reduce__()
    assert np.array_equal(restore({**fields}, options).parent, MODEL.parent)
    with complains(StateError, "body_link[0]"):
        restore({**fields, "body_link": MODEL.body_link + 9}, options)
    assert pickle.loads(pickle.dumps(MODEL)).joint_names == MODEL.joint_names
    assert copy.deepcopy(MODEL).joint_names == MODEL.joint_names


@pytest.mark.parametrize(
    "kind", ["backbone", "superbot", ["chen_revolute", "chen_link"], "giusti_b"]
)
@pytest.mark.parametrize("hinges", ["dyad", "physical"])
@pytest.mark.parametrize("base", ["fixed", "free", ["px", "rz"]])
def test_models_of_organisms_pass_the_check(kind, hinges, base):
    organism = Organism.random(kind, 8, rng=np.random.default_rng(1))
    model = organism.model(hinges, base)
    again = dataclasses.replace(model)
    assert again.joint_names == model.joint_names


def test_inertias_are_taken_if_some_distribution_of_mass_has_them():
    """The integral of r r^T dm has no negative eigenvalue; random ones of every sign are tried."""
    rng, taken = np.random.default_rng(5), 0
    for _ in range(300):
        A = rng.standard_normal((3, 3))
        S = A @ np.diag(rng.choice([-0.3, 1.0], 3) * rng.random(3)) @ A.T
        inertia = np.trace(S) * np.eye(3) - S
        model = SimpleNamespace(mass=np.ones(1), inertia=inertia[None])
        least = np.linalg.eigvalsh(S)[0]
        if abs(least) < 1e-3 * np.abs(inertia).max():
            continue  # rounding of datasheets is allowed for
        if least > 0:
            _check_masses(model)
            taken += 1
        else:
            with pytest.raises(StateError, match="link 0 of a model"):
                _check_masses(model)
    assert 20 < taken < 150


def test_a_base_pose_may_lie_in_memory_in_any_order():
    T = np.array([[0, -1, 0, 0.1], [1, 0, 0, 0.2], [0, 0, 1, 0.3], [0, 0, 0, 1.0]])
    ordered, turned = (
        examples.crab().with_base_pose(pose).model("physical") for pose in (T, T.T.copy().T)
    )
    assert ordered.body_placement.tobytes() == turned.body_placement.tobytes()


def put(array, value, *index):
    changed = array.copy()
    changed[index] = value
    return changed


OFF = np.eye(4)
OFF[3, 0] = 0.5  # no last row of a pose
MANY = ("m0.joint", "m1.joint", "m0.joint")
WRONG_ARRAYS = {
    "name twice": ("joint_names", lambda m: MANY, "joint_names of a model must be unique"),
    "body twice": (
        "body_names", lambda m: (*m.body_names[:-1], m.body_names[0]), "body_names of a model"
    ),
    "module nowhere": ("modules", lambda m: {"m0": m.nbodies}, "bodies 0 to 5, got 'm0': 6"),
    "module below": ("modules", lambda m: {"m0": -1}, "bodies 0 to 5, got 'm0': -1"),
    "parent beyond": ("parent", lambda m: put(m.parent, 2, 1), "parent[1]", "0 to 1, got 2"),
    "parent below": ("parent", lambda m: put(m.parent, -1, 2), "parent[2]", "0 to 2, got -1"),
    "body on no link": ("body_link", lambda m: put(m.body_link, 4, 5), "body_link[5]", "0 to 3"),
    "body below": ("body_link", lambda m: put(m.body_link, -1, 4), "body_link[4]", "got -1"),
    "nan": ("center", lambda m: put(m.center, np.nan, 2, 1), "center of a model", "finite"),
    "endless mass": ("mass", lambda m: put(m.mass, np.inf, 3), "mass of a model", "finite"),
    "limits": ("lower", lambda m: put(m.lower, 9.0, 1) , "'m1.joint'", "9 to"),
    "lower at infinity": ("lower", lambda m: np.full(3, np.inf), "'m0.joint'", "inf to"),
    "upper at infinity": ("upper", lambda m: put(m.upper, -np.inf, 2), "'m2.joint'", "-inf"),
    "viscous": ("viscous", lambda m: put(m.viscous, -0.1, 1), "viscous friction", "negative"),
    "coulomb": ("coulomb", lambda m: put(m.coulomb, -0.1, 1), "coulomb friction", "negative"),
    "armature": ("armature", lambda m: put(m.armature, -0.1, 1), "armature of a model"),
    "stiffness": ("stiffness", lambda m: put(m.stiffness, -0.1, 1), "stiffness of a model"),
    "joint askew": ("placement", lambda m: put(m.placement, 1.01, 1, 0, 0), "placement[1]"),
    "joint in a row": ("placement", lambda m: put(m.placement, OFF, 2), "placement[2]"),
    "body askew": ("body_placement", lambda m: put(m.body_placement, -OFF, 4), "body_placement[4]"),
    "first body askew": (
        "body_placement", lambda m: put(m.body_placement, -OFF, 0), "body_placement[0]"
    ),
    "base askew": ("base_pose", lambda m: OFF, "base_pose of a model is no pose"),
    "fixed base": ("base_pose", lambda m: put(np.eye(4), 1.0, 0, 3), "must be the identity"),
    "short axis": ("screw", lambda m: 0.99 * m.screw, "screw of 'm0.joint'", "unit axis"),
    "axis elsewhere": ("screw", lambda m: put(m.screw, 1e-3, 2, 1), "screw of 'm2.joint'"),
    "negative mass": ("mass", lambda m: put(m.mass, -1.0, 2), "link 2 of a model", "negative"),
    "flat inertia": (
        "inertia", lambda m: put(m.inertia, np.diag([1.0, 1.0, 3.0]), 3), "link 3", "triangle"
    ),
    "inertia without mass": ("mass", lambda m: put(m.mass, 0.0, 1), "link 1", "without mass"),
    "gravity": ("gravity", lambda m: np.zeros(2), "gravity of a model", "(3,)"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG_ARRAYS.values(), ids=WRONG_ARRAYS)
def test_arrays_that_describe_no_robot_are_named(case):
    name, change, *pieces = case
    with complains(StateError, *pieces):
        dataclasses.replace(MODEL, **{name: change(MODEL)})


def test_arrays_may_be_off_by_the_digits_of_a_file():
    """Seven digits: a turned joint, a unit axis, and inertias as datasheets are taken."""
    free = examples.arm("bab").model("physical", base="free")
    rounded = {name: np.round(getattr(free, name), 7) for name in ("placement", "screw")}
    dataclasses.replace(free, **rounded, base_pose=np.diag([1, 1 + 1e-7, 1, 1]))
    with complains(StateError, "base_pose of a model is no pose"):
        dataclasses.replace(free, base_pose=np.diag([1, 1 + 1e-5, 1, 1]))
    with complains(StateError, "screw of 'm0.joint'"):
        dataclasses.replace(free, screw=(1 + 1e-5) * free.screw)


def test_an_axis_may_miss_its_origin_by_a_millionth():
    found = dataclasses.replace(MODEL, screw=put(MODEL.screw, 1e-6, 2, 1))
    assert found.screw[2, 1] == 1e-6
    with complains(StateError, "screw of 'm2.joint' must be a unit axis through the origin"):
        dataclasses.replace(MODEL, screw=put(MODEL.screw, 1.001e-6, 2, 1))


def test_a_joint_s_axis_is_a_whole_number_in_its_frame():
    """Joints act along x of their frames: rounding would stay in the code of every body."""
    fields = catalog["backbone"].model_dump()
    for rpy in np.random.default_rng(0).uniform(-1, 1, (4, 3)):
        hinge = {**fields["joints"][0], "axis": (0, 0, 1), "rpy": rpy}
        kind = ModuleType(**{**fields, "joints": [hinge], "grid": False})
        body = {**fields["bodies"][1], "mass": 1.0}
        kind = ModuleType(**{**kind.model_dump(), "bodies": [fields["bodies"][0], body]})
        model = Organism.start(kind).model("physical")
        x_in_body = model._frames.body_rotation[model.body_index("m0.B"), 0]
        np.testing.assert_array_equal(x_in_body, [0.0, 0.0, 1.0])


@pytest.mark.parametrize(("off", "pattern"), [(0.9e-12, 2), (1e-12, 3)])
def test_axes_along_the_parent_s_are_so_up_to_a_trillionth(off, pattern):
    fields = catalog["backbone"].model_dump()
    hinge = {**fields["joints"][0], "axis": (off, 0, 1), "rpy": (0, 0, 0)}
    bodies = [fields["bodies"][0], {**fields["bodies"][1], "mass": 1.0}]
    kind = ModuleType(**{**fields, "bodies": bodies, "joints": [hinge], "grid": False})
    assert Organism.start(kind).model("physical")._frames.pattern.tolist() == [pattern]


def test_rounding_errors_of_turning_vanish_and_nothing_larger():
    """Of entries of a rotation beside 0 and 1, and of numbers beside the largest of a link."""
    assert _whole(np.array([1e-15, -1e-15, 1.1e-15, 0.5])).tolist() == [0, 0, 1.1e-15, 0.5]
    assert np.signbit(_whole(np.array([-1e-16]))).tolist() == [False]
    scale = np.array([2.0, 2.0, 2.0])
    assert _snapped(np.array([2e-15, 2.1e-15, 1.0]), scale).tolist() == [0, 2.1e-15, 1]


def test_models_are_one_if_their_names_are_and_their_numbers_up_to_rounding():
    assert same_numbers(MODEL, dataclasses.replace(MODEL))
    endless = examples.arm("bab").model("physical")  # without limits
    assert same_numbers(endless, endless)
    assert not same_numbers(endless, MODEL)
    for off, same in ((1e-12, True), (1.1e-12, False)):
        other = dataclasses.replace(MODEL, coulomb=put(MODEL.coulomb, off, 1))
        assert same_numbers(MODEL, other) is same
    for field in ("joint_names", "body_names"):
        first, *rest = getattr(MODEL, field)
        assert not same_numbers(MODEL, dataclasses.replace(MODEL, **{field: (f"{first}x", *rest)}))
    assert not same_numbers(
        examples.snake(3).model("physical"), examples.snake(2).model("physical")
    )
