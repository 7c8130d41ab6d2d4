"""Parameters, regressor and base parameters against Pinocchio, definitions and differences."""

from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest

import modurob as mr
from modurob.identification.base import base_columns
from modurob.identification.parameters import parameter_set
from modurob.regressor import regressor
from oracles.pinocchio_tree import PinocchioTree
from oracles.rough_organisms import rough_organism

SLIP = 1e-3  # [rad/s, m/s] that rounds off dry friction: docs/theory/conventions.md
LAST_DIGITS = 1e-12  # of the largest torque
STEP, SECOND_ORDER = 1e-6, 1e-8  # of central differences in x, and their error
INDEPENDENT = 1e-9  # singular values of Pinocchio's regressor, of the largest

BODIES = {
    "arm": (mr.examples.arm("babac"), "physical", "fixed"),
    "cubes, merged": (mr.examples.crab(), "dyad", "fixed"),
    "cubes, free": (mr.examples.crab(), "physical", "free"),
    "wrists": (rough_organism("cubes and wrists", 4, 4), "physical", "fixed"),
}


def states(model, count, seed=0):
    rng = np.random.default_rng(seed)
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    return q, *rng.standard_normal((2, count, model.nv))


@pytest.fixture(params=BODIES)
def body(request):
    organism, hinges, base = BODIES[request.param]
    model = organism.model(hinges, base)
    return organism, model, parameter_set(model, organism, shared=False)


def test_torques_are_linear_in_the_parameters_of_the_datasheets(body):
    """Pinocchio's inverse dynamics of the organism, and friction by its definition."""
    organism, model, parameters = body
    hinges, base = model.options.hinges, model.options.base
    tree = PinocchioTree(organism, hinges, base)
    at = [tree.model.joints[tree.joints[name]].idx_v for name in model.joint_names]
    q, v, a = states(model, 5)
    found = parameters.columns(q, v, a) @ parameters.given
    first = model.joint_slice_v.start
    places = [*range(first), *at]
    for k in range(len(q)):
        rates = np.zeros((2, tree.model.nv))
        rates[:, places] = v[k], a[k]
        joints = dict(zip(model.joint_names, q[k, model.joint_slice_q], strict=True))
        pose = tree.configuration(joints, q[k, : model.joint_slice_q.start])
        tau = pin.rnea(tree.model, tree.data, pose, *rates)[places]
        rate = v[k, first:]
        tau[first:] += model.viscous * rate + model.coulomb * rate / np.hypot(rate, SLIP)
        np.testing.assert_allclose(found[k], tau, atol=LAST_DIGITS * np.abs(tau).max(), rtol=0)


def test_the_regressor_of_a_state_is_that_of_a_batch(body):
    _, model, _ = body
    q, v, a = states(model, 2)
    found = regressor(model, q, v, a)
    assert found.shape == (2, model.nv, model.nbodies, 4, 4)
    np.testing.assert_array_equal(found, np.swapaxes(found, -1, -2))
    for k in range(2):
        one = regressor(model, q[k], v[k], a[k])
        np.testing.assert_allclose(one, found[k], rtol=0, atol=1e-12 * np.abs(one).max())


def test_derivatives_by_the_coordinates_are_differences(body):
    _, _, parameters = body
    x = 0.3 * np.random.default_rng(1).standard_normal(parameters.size)
    for value, slope in (
        (parameters.theta, parameters.theta_derivative(x)),
        (lambda y: parameters.prior(y)[0], np.diag(parameters.prior(x)[1])),
    ):
        steps = STEP * np.eye(len(x))
        differences = np.array([(value(x + h) - value(x - h)) / (2 * STEP) for h in steps]).T
        np.testing.assert_allclose(slope, differences, atol=SECOND_ORDER, rtol=SECOND_ORDER)


def test_the_prior_is_the_divergence_from_the_datasheet():
    organism = mr.examples.arm("b")
    parameters = parameter_set(organism.model("physical"), organism, shared=False)
    rng = np.random.default_rng(2)
    x = 0.5 * rng.standard_normal(parameters.size)
    expected = x[10:] @ x[10:]
    for P, entry in zip(parameters.pseudo_inertias(x), parameters.bodies, strict=True):
        ratio = P @ np.linalg.inv(entry.P)
        expected += 2 * (np.trace(ratio) - np.linalg.slogdet(ratio)[1] - 4)
    assert np.sum(parameters.prior(x)[0] ** 2) == pytest.approx(expected, rel=1e-12)


def test_any_coordinates_are_bodies_that_can_exist(body):
    """`Body` refuses inertias that no body has; the model of the result has its torques."""
    organism, model, parameters = body
    x = 2.0 * np.random.default_rng(3).standard_normal(parameters.size)
    assert np.linalg.eigvalsh(parameters.pseudo_inertias(x)).min() > 0
    made = parameters.organism_with(x)
    assert made.modules == organism.modules
    q, v, a = states(model, 3)
    tau = parameters.columns(q, v, a) @ parameters.theta(x)
    tau[:, model.joint_slice_v] += model.armature * a[:, model.joint_slice_v]
    same = model.options.build(made).inverse_dynamics(q, v, a)
    np.testing.assert_allclose(same, tau, atol=1e-9 * np.abs(tau).max(), rtol=0)


def test_each_field_is_changed_by_its_own_coordinates():
    organism = mr.examples.arm("b")
    parameters = parameter_set(organism.model("physical"), organism, shared=False)
    for field in parameters.fields:
        x = np.zeros(parameters.size)
        x[field.place] = 0.2
        for other in parameters.fields:
            given, found = parameters.field_values(x, other)
            same = np.allclose(given, found, rtol=1e-12, atol=1e-15)
            assert same == (other != field), (field.name, other.name)


def test_a_point_mass_gets_a_small_extent_and_no_other_mass():
    organism = mr.examples.double_pendulum()
    parameters = parameter_set(organism.model("physical"), organism, shared=False)
    zero = np.zeros(parameters.size)
    assert np.linalg.eigvalsh(parameters.pseudo_inertias(zero)).min() > 0
    for entry, P in zip(parameters.bodies, parameters.pseudo_inertias(zero), strict=True):
        np.testing.assert_allclose(P[3], entry.P[3], rtol=1e-14)
        assert np.abs(P - entry.P).max() < 0.01 * entry.kind.size**2 * P[3, 3]


def pinocchio_rank(organism, base):
    tree, rng, rows = PinocchioTree(organism, "physical", base), np.random.default_rng(0), []
    for _ in range(40):
        q = pin.normalize(tree.model, 2 * rng.standard_normal(tree.model.nq))
        v, a = rng.standard_normal((2, tree.model.nv))
        Y = pin.computeJointTorqueRegressor(tree.model, tree.data, q, v, a)
        rows.append(Y.reshape(tree.model.nv, -1))
    values = np.linalg.svd(np.concatenate(rows), compute_uv=False)
    return int(np.sum(values > INDEPENDENT * values[0]))


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("modules", ["b", "ba", "babac"])
def test_base_parameters_are_as_many_as_pinocchio_can_tell_apart(modules, base):
    organism = mr.examples.arm(modules)
    model = organism.model("physical", base)
    parameters = parameter_set(model, organism, shared=False)
    kept, mixing = base_columns(parameters)
    assert len(kept) - len(model.joint_names) == pinocchio_rank(organism, base)  # one friction each
    q, v, a = states(model, 4, seed=1)
    Y = parameters.columns(q, v, a)
    np.testing.assert_allclose(Y[..., kept] @ mixing, Y, atol=1e-9 * np.abs(Y).max(), rtol=0)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_base_parameters_do_not_depend_on_the_unit_of_torques(unit):
    model = mr.examples.arm("babac").model("physical")
    given = parameter_set(model, model.organism, shared=False)
    scaled = SimpleNamespace(
        model=model, size=given.size, names=given.names,
        columns=lambda *states: unit * given.columns(*states),
    )  # fmt: skip
    for found, expected in zip(base_columns(scaled), base_columns(given), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_only_bodies_whose_coordinates_change_get_other_numbers():
    organism = mr.examples.arm("ba")
    parameters = parameter_set(organism.model("physical"), organism, shared=False)
    places = [(entry.owner, entry.body) for entry in parameters.bodies]
    for k in range(len(places)):
        for coordinate, change in ((0, 0.2), (9, 0.2), (0, 1e-8), (0, 1e-10)):
            x = np.zeros(parameters.size)
            x[10 * k + coordinate] = change
            made = parameters.organism_with(x)
            changed = [
                (owner, body)
                for owner, body in places
                if made.kind(owner).bodies[body] != organism.kind(owner).bodies[body]
            ]
            assert changed == [places[k]] * (change > 1e-9)  # less is rounding
