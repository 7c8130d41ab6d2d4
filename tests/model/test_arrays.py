"""No road to compiled code leads around the check of a model's arrays."""

import copy
import dataclasses
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from modurob import Model, Organism, StateError, examples
from modurob.model.validation import _check_masses
from oracles import complains

MODEL = examples.arm("bab").model("physical")


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
