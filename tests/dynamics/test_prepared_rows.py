"""Prepared callables for several states at once, and for derivatives."""

import itertools

import numpy as np
import pytest

from modurob import StateError, examples
from oracles import complains

# Methods normalize quaternions once more; the inverse of a mass matrix of condition up to 1e5
# multiplies that rounding.
ROUNDING, FORWARD = 1e-12, 1e-9
STATES = (1, 2, 4, 7, 9)  # fewer and more than the lanes of a vector
MODELS = {
    (base, fused): (model.compile() if fused else model)
    for base in ("fixed", "free")
    for fused in (False, True)
    for model in [examples.crab().with_parameters(viscous=0.1).model("physical", base)]
}
NAMES = (
    "inverse_dynamics",
    "forward_dynamics",
    "mass_matrix",
    "inverse_dynamics_derivatives",
    "forward_dynamics_derivatives",
)

every_kind = pytest.mark.parametrize(
    ("which", "name"), list(itertools.product(MODELS, NAMES)), ids=str
)


def arguments(model, name, shape, seed=0):
    rng = np.random.default_rng(seed)
    q = [model.random_configuration(rng) for _ in np.ndindex(*shape)]
    v, x = rng.standard_normal((2, *shape, model.nv))
    q = np.reshape(q, (*shape, model.nq))
    return (q,) if name == "mass_matrix" else (q, v, x)


def close(name, found, expected):
    relative = FORWARD if "forward" in name else ROUNDING
    found, expected = np.array(found), np.array(expected)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=relative * np.abs(expected).max())


@every_kind
def test_rows_give_the_method_s_numbers_in_arrays_that_stay(which, name):
    model = MODELS[which]
    for states in STATES:
        call = model.prepare(name, states)
        results = []
        for seed in range(2):
            given = arguments(model, name, (states,), seed)
            results.append(call(*given))
            close(name, results[-1], getattr(model, name)(*given))
        assert results[0] is results[1]


@every_kind
def test_other_shapes_and_lists_go_the_long_way(which, name):
    model, call = MODELS[which], MODELS[which].prepare(name, 4)
    for shape in ((), (3,), (2, 2)):
        given = arguments(model, name, shape)
        close(name, call(*given), getattr(model, name)(*given))
    given = arguments(model, name, (4,))
    close(name, call(*(part.tolist() for part in given)), getattr(model, name)(*given))


@every_kind
def test_rows_that_are_wrong_are_refused_by_name(which, name):
    model, call = MODELS[which], MODELS[which].prepare(name, 4)
    given = arguments(model, name, (4,))
    for k, row in itertools.product(range(len(given)), range(4)):
        spoiled = [part.copy() for part in given]
        spoiled[k][row, -1] = np.nan
        with complains(StateError, f"[{row}, ", "finite"):
            call(*spoiled)
    with complains(StateError, "q has shape"):
        call(None, *given[1:])


@pytest.mark.parametrize("name", NAMES)
def test_quaternions_of_every_row_are_looked_at(name):
    model = MODELS["free", False]
    call, given = model.prepare(name, 4), arguments(model, name, (4,))
    expected = getattr(model, name)(*given)
    rounded, wrong = given[0].copy(), given[0].copy()
    rounded[2, 3:7] *= 1 + 1e-4
    wrong[3, 3:7] *= 2
    close(name, call(rounded, *given[1:]), expected)
    with complains(StateError, "unit quaternion"):
        call(wrong, *given[1:])


@pytest.mark.parametrize("states", [0, -1, 1.5, "two", True, np.nan])
def test_the_number_of_states_is_a_whole_number(states):
    with complains(StateError, "states"):
        MODELS["fixed", False].prepare("forward_dynamics", states)


@pytest.mark.parametrize(("kind", "by"), [("inverse", "da"), ("forward", "dtau")])
def test_prepared_derivatives_are_those_of_one_state(kind, by):
    model, name = MODELS["fixed", False], f"{kind}_dynamics_derivatives"
    call, given = model.prepare(name), arguments(model, name, ())
    found = call(*given)
    assert found._fields == ("dq", "dv", by)
    close(name, found, getattr(model, name)(*given))
    assert call(*given) is found


def test_calls_on_the_cpu_have_an_array_of_their_own_and_take_no_wrenches():
    model = MODELS["fixed", False]
    with complains(StateError, "out is for target 'cuda'", "has its own array"):
        model.prepare("mass_matrix", out=np.empty((6, 6)))
    with complains(StateError, "external is for target 'cuda'", "give wrenches to model.forward"):
        model.prepare("forward_dynamics", external=True)
