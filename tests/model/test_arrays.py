"""No road to compiled code leads around the check of a model's arrays."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

from modurob import Model, Organism, StateError, examples
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
