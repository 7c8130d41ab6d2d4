"""The thesis' pendulum and crane: M, C and N are the printed formulas, term by term."""

import numpy as np
import pytest

from modurob import examples
from oracles.rigid_tree import PinocchioDynamics, RigidTree

ROUNDING = 1e-12  # sums of a dozen products of numbers up to 100
G = 9.81
PENDULA = [(1.0, 1.0, 1.0, 1.0), (1.3, 0.4, 2.0, 0.7), (0.3, 2.0, 0.5, 3.0)]  # l1, l2, m1, m2
CRANES = [(1.0, 1.0, 5.0), (2.5, 0.4, 1.5)]  # m1, m2, l
ANGLES = (0.0, 1e-9, 0.7, np.pi / 2, np.pi - 1e-9, -np.pi, 4.0)


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=ROUNDING, atol=ROUNDING)


def states(seed, count=50):
    """q at random and at special angles, with random v and a."""
    rng = np.random.default_rng(seed)
    q = np.concatenate([rng.uniform(-4, 4, (count, 2)), rng.choice(ANGLES, (count, 2))])
    return q, *(3 * rng.standard_normal((2, 2 * count, 2)))


# -- double pendulum -------------------------------------------------------------------------------


def pendulum_terms(parameters, q, v):
    """The pendulum of gutenkunst2012; C is the documents', (5.13b) there."""
    l1, l2, m1, m2 = parameters
    (q1, q2), (w1, w2) = q.T, v.T
    c2, s2, s12 = np.cos(q2), np.sin(q2), np.sin(q1 + q2)
    M = np.empty((len(q), 2, 2))
    M[:, 0, 0] = l1**2 * (m1 + m2) + l2**2 * m2 + 2 * l1 * l2 * m2 * c2
    M[:, 0, 1] = M[:, 1, 0] = l2 * m2 * (l2 + l1 * c2)
    M[:, 1, 1] = l2**2 * m2
    C = np.empty((len(q), 2, 2))
    C[:, 0, 0], C[:, 0, 1] = -2 * w2, -w2
    C[:, 1, 0], C[:, 1, 1] = w1 - w2, w1
    C *= (l1 * l2 * m2 * s2)[:, None, None]
    N = G * np.stack([l2 * m2 * s12 + l1 * (m1 + m2) * np.sin(q1), l2 * m2 * s12], axis=-1)
    return M, C, N


@pytest.mark.parametrize("parameters", PENDULA, ids=str)
def test_the_closed_form_of_the_double_pendulum_is_the_thesis(parameters):
    l1, l2, m1, m2 = parameters
    model = examples.double_pendulum(l1, l2, m1, m2).model("physical")
    assert model.joint_names == ("m0.hinge", "m1.hinge")
    q, v, a = states(0)
    M, C, N = pendulum_terms(parameters, q, v)
    found = model.closed_form(q, v)
    close(found.M, M)
    close(found.C, C)
    close(found.N, N)
    close(model.mass_matrix(q), M)
    close(model.gravity_torque(q), N)
    expected = (M @ a[..., None] + C @ v[..., None])[..., 0] + N
    close(model.inverse_dynamics(q, v, a), expected)
    close(model.compile().inverse_dynamics(q, v, a), expected)


@pytest.mark.parametrize("parameters", PENDULA, ids=str)
def test_the_double_pendulum_obeys_lagrange_in_absolute_angles(parameters):
    l1, l2, m1, m2 = parameters
    model = examples.double_pendulum(l1, l2, m1, m2).model("physical")
    q, v, _ = states(1)
    a = model.forward_dynamics(q, v, np.zeros_like(v))
    t1, t2 = q[:, 0], q[:, 0] + q[:, 1]
    w1, w2 = v[:, 0], v[:, 0] + v[:, 1]
    a1, a2 = a[:, 0], a[:, 0] + a[:, 1]
    first = (
        (m1 + m2) * l1 * a1
        + m2 * l2 * (a2 * np.cos(t1 - t2) + w2**2 * np.sin(t1 - t2))
        + (m1 + m2) * G * np.sin(t1)
    )
    second = l2 * a2 + l1 * (a1 * np.cos(t1 - t2) - w1**2 * np.sin(t1 - t2)) + G * np.sin(t2)
    scale = 1 + np.abs(a).max()
    np.testing.assert_allclose(first, 0, atol=ROUNDING * scale * (m1 + m2))
    np.testing.assert_allclose(second, 0, atol=ROUNDING * scale)


def test_only_the_other_coriolis_matrix_of_the_pendulum_is_skew():
    model = examples.double_pendulum(1.3, 0.4, 2.0, 0.7).model("physical")
    q, v = np.array([0.4, 1.1]), np.array([0.7, -1.9])
    l1, l2, m2 = 1.3, 0.4, 0.7
    rate = -l1 * l2 * m2 * np.sin(q[1]) * v[1] * np.array([[2, 1], [1, 0]])  # of M
    skew, papers = model.coriolis_matrix(q, v), model.closed_form(q, v).C
    close((rate - 2 * skew) + (rate - 2 * skew).T, np.zeros((2, 2)))
    assert np.abs((rate - 2 * papers) + (rate - 2 * papers).T).max() > 0.1
    close(skew @ v, papers @ v)


def test_masses_on_the_axis_do_not_count_in_the_pendulum():
    light, heavy = (examples.double_pendulum(m1=m).model("physical") for m in (1.0, 5.0))
    q = np.array([0.3, 0.8])
    assert light.mass_matrix(q)[1, 1] == heavy.mass_matrix(q)[1, 1]
    close(heavy.mass_matrix(q)[0, 0] - light.mass_matrix(q)[0, 0], 4.0)


# -- crane -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", CRANES, ids=str)
def test_the_crane_obeys_its_two_equations(parameters):
    m1, m2, length = parameters
    model = examples.crane(m1, m2, length).model("physical")
    assert model.joint_names == ("m0.slide", "m1.hinge")
    q, v, _ = states(2)
    for some in (model, model.compile()):
        a = some.forward_dynamics(q, v, np.zeros_like(v))
        phi, w, z2, phi2 = q[:, 1], v[:, 1], a[:, 0], a[:, 1]
        wagon = (m1 + m2) * z2 + m2 * length * (phi2 * np.cos(phi) - w**2 * np.sin(phi))
        load = length * phi2 + G * np.sin(phi) + z2 * np.cos(phi)
        scale = (m1 + m2) * np.abs(a).max()
        np.testing.assert_allclose(wagon, 0, atol=ROUNDING * scale * length)
        np.testing.assert_allclose(load, 0, atol=ROUNDING * scale * length)


@pytest.mark.parametrize("parameters", CRANES, ids=str)
def test_the_closed_form_of_the_crane(parameters):
    m1, m2, length = parameters
    model = examples.crane(m1, m2, length).model("physical")
    q, v, _ = states(3)
    phi, w = q[:, 1], v[:, 1]
    found = model.closed_form(q, v)
    close(found.M[:, 0, 0], np.full(len(q), m1 + m2))
    close(found.M[:, 0, 1], m2 * length * np.cos(phi))
    close(found.M[:, 1, 1], np.full(len(q), m2 * length**2))
    close(found.N, np.stack([0 * phi, m2 * length * G * np.sin(phi)], axis=-1))
    bias = (found.C @ v[..., None])[..., 0]
    close(bias, np.stack([-m2 * length * w**2 * np.sin(phi), 0 * phi], axis=-1))


# -- the crab, by other engines --------------------------------------------------------------------


@pytest.mark.parametrize("hinges", ["dyad", "physical"])
def test_the_closed_form_of_the_crab_matches_pinocchio(hinges):
    organism = examples.crab()
    model, rng = organism.model(hinges), np.random.default_rng(4)
    engine = PinocchioDynamics(RigidTree(organism, hinges, "fixed", list(model.locked)), model)
    rest = np.zeros(model.nv)
    for _ in range(10):
        q, v = model.random_configuration(rng), rng.standard_normal(model.nv)
        found = model.closed_form(q, v)
        N = engine.inverse_dynamics(q, rest, rest, {})
        close(found.M, engine.mass_matrix(q))
        close(found.N, N)
        close(found.C @ v, engine.inverse_dynamics(q, v, rest, {}) - N)
