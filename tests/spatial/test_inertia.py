"""Inertias against clouds of particles and Pinocchio."""

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.linalg import expm

from modurob.spatial import inertia, se3

ROUNDING = 1e-13  # sums over 50 particles with entries up to about 100
RNG = np.random.default_rng(3)


def cloud(number=50):
    return RNG.uniform(0.1, 1, number), RNG.normal(size=(number, 3)) + RNG.normal(size=3)


def summed(masses, points):
    """Mass, center and inertia about it, straight from the definition."""
    m = masses.sum()
    c = masses @ points / m
    d = points - c
    tensor = sum(
        mk * (dk @ dk * np.eye(3) - np.outer(dk, dk)) for mk, dk in zip(masses, d, strict=True)
    )
    return m, c, tensor


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=ROUNDING, atol=ROUNDING)


def body():
    return summed(*cloud())


def test_pseudo_inertia_is_the_second_moment_of_the_particles():
    clouds = [cloud(number) for number in (50, 20)]
    m, c, tensor = (np.stack(x) for x in zip(*(summed(*each) for each in clouds), strict=True))
    P = inertia.pseudo_inertia(m, c, tensor)
    for found, (masses, points) in zip(P, clouds, strict=True):
        r = np.column_stack([points, np.ones(len(points))])
        close(found, r.T @ (masses[:, None] * r))
    skewed = P + np.array([[0.0, 1e-3, 0, 0], [-1e-3, 0, 0, 0], [0] * 4, [0] * 4])
    for each in (P, skewed):  # only the symmetric part counts
        for actual, expected in zip(inertia.from_pseudo_inertia(each), (m, c, tensor), strict=True):
            close(actual, expected)


def test_a_pseudo_inertia_without_mass_has_its_center_at_the_origin():
    m, c, tensor = inertia.from_pseudo_inertia(inertia.pseudo_inertia(0.0, np.ones(3), np.eye(3)))
    assert m == 0
    np.testing.assert_array_equal(c, np.zeros(3))
    close(tensor, np.eye(3))


def test_spatial_inertia_gives_the_kinetic_energy_of_its_particles():
    masses, points = cloud()
    M = inertia.spatial_inertia(*summed(masses, points))
    V = RNG.normal(size=6)
    velocities = V[:3] + np.cross(V[3:], points)
    close(V @ M @ V, (masses * (velocities**2).sum(axis=1)).sum())


def test_spatial_inertia_matches_pinocchio():
    for _ in range(5):
        m, c, tensor = body()
        close(inertia.spatial_inertia(m, c, tensor), pin.Inertia(m, c, tensor).matrix())


def test_at_center_inverts_at_origin():
    m, c, tensor = body()
    J = inertia.at_origin(m, c, tensor)
    close(J, tensor - m * (pin.skew(c) @ pin.skew(c)))
    close(inertia.at_center(m, c, J), tensor)


def test_moved_inertia_matches_pinocchio_and_keeps_the_energy():
    T_ab = expm(se3.hat(RNG.normal(size=6)))
    m, c, tensor = body()
    M_b = inertia.spatial_inertia(m, c, tensor)
    M_a = inertia.moved(T_ab, M_b)
    close(M_a, pin.SE3(T_ab).act(pin.Inertia(m, c, tensor)).matrix())
    V_b = RNG.normal(size=6)
    V_a = se3.transform_twist(T_ab, V_b)
    close(V_a @ M_a @ V_a, V_b @ M_b @ V_b)


def test_union_equals_the_sum_over_all_particles_erratum_13():
    clouds = [cloud(number) for number in (50, 20, 5)]
    bodies = [summed(*particles) for particles in clouds]
    m, c, tensor = (np.stack(part) for part in zip(*bodies, strict=True))
    expected = summed(*(np.concatenate(part) for part in zip(*clouds, strict=True)))
    for actual, direct in zip(inertia.union(m, c, tensor), expected, strict=True):
        close(actual, direct)
    # moll2006 takes the mean, weighted by mass, of what must be added.
    mean = np.tensordot(m, inertia.at_origin(m, c - expected[1], tensor), 1) / m.sum()
    assert np.abs(mean - expected[2]).max() > 1


def test_union_of_spatial_inertias_is_their_sum():
    m, c, tensor = (np.stack(part) for part in zip(body(), body(), strict=True))
    close(
        inertia.spatial_inertia(*inertia.union(m, c, tensor)),
        inertia.spatial_inertia(m, c, tensor).sum(axis=0),
    )


def test_union_subtracts_negated_bodies():
    first, second = body(), body()
    both = inertia.union(*(np.stack(part) for part in zip(first, second, strict=True)))
    minus = (-second[0], second[1], -second[2])
    rest = inertia.union(*(np.stack(part) for part in zip(both, minus, strict=True)))
    for actual, expected in zip(rest, first, strict=True):
        close(actual, expected)


def test_union_of_massless_bodies_sits_at_the_origin():
    m, c, tensor = inertia.union([0, 0], np.ones((2, 3)), np.zeros((2, 3, 3)))
    assert m == 0
    np.testing.assert_array_equal(c, np.zeros(3))
    np.testing.assert_array_equal(tensor, np.zeros((3, 3)))


def test_batch_equals_loop():
    bodies = [[body() for _ in range(3)] for _ in range(4)]
    m = np.array([[b[0] for b in row] for row in bodies])
    c = np.array([[b[1] for b in row] for row in bodies])
    tensor = np.array([[b[2] for b in row] for row in bodies])
    whole = inertia.union(m, c, tensor)
    for i in range(4):
        for batch, single in zip(whole, inertia.union(m[i], c[i], tensor[i]), strict=True):
            close(batch[i], single)
    M = inertia.spatial_inertia(m, c, tensor)
    T = expm(se3.hat(RNG.normal(size=6)))
    np.testing.assert_array_equal(M[2, 1], inertia.spatial_inertia(m[2, 1], c[2, 1], tensor[2, 1]))
    close(inertia.moved(T, M)[2, 1], inertia.moved(T, M[2, 1]))


@pytest.mark.parametrize(
    ("mass", "tensor"),
    [
        (1.0, np.zeros((3, 3))),  # point mass
        (1.0, np.diag([0.0, 1.0, 1.0])),  # thin rod
        (1.0, np.diag([1.0, 1.0, 2.0])),  # thin plate
        (1.0, np.diag([1.0, 1.0, 2.0 + 1e-9])),  # a plate, rounded
        (1e-12, np.diag([1e-18, 1e-18, 1e-18])),  # small is not flawed
        (0.0, np.zeros((3, 3))),  # massless frame
    ],
)
def test_real_bodies_have_no_flaw(mass, tensor):
    assert inertia.inertia_flaw(mass, tensor) is None
    R = se3.rotation_of(se3.exp([0, 0, 0, 0.3, -1.0, 2.0]))
    assert inertia.inertia_flaw(mass, R @ tensor @ R.T) is None


@pytest.mark.parametrize(
    ("mass", "tensor", "word"),
    [
        (np.nan, np.eye(3), "finite"),
        (1.0, np.diag([1.0, 1.0, np.inf]), "finite"),
        (-1.0, np.eye(3), "negative"),
        (1.0, np.full((3, 3), 1e308), "triangle"),
        (1.0, np.array([[1, 0.1, 0], [0, 1, 0], [0, 0, 1]]), "symmetric"),
        (1.0, np.diag([-0.1, 1.0, 1.0]), "negative"),
        (1.0, np.array([[1, 2, 0], [2, 1, 0], [0, 0, 1]]), "negative"),
        (1.0, np.diag([1.0, 1.0, 2.01]), "triangle"),
        (1.0, np.diag([1.0, 1.0, 2.01]), "moments are 1, 1, 2.01"),
        (1.0, np.array([[1, 2, 0], [2, 1, 0], [0, 0, 1]]), "moments are -1, 1, 3"),
        (1e-9, np.diag([1e-12, 1e-12, 3e-12]), "triangle"),
        (0.0, np.eye(3), "without mass"),
        (0.0, 1e-12 * np.eye(3), "without mass"),
    ],
)
def test_impossible_bodies_are_named(mass, tensor, word):
    flaw = inertia.inertia_flaw(mass, tensor)
    assert flaw is not None
    assert word in flaw


def test_random_bodies_have_no_flaw():
    for _ in range(20):
        m, _, tensor = body()
        assert inertia.inertia_flaw(m, tensor) is None


def second_moments(tensor):
    """(3, 3) second moments of the mass: what the nearest inertia is nearest in."""
    return np.trace(tensor) / 2 * np.eye(3) - tensor


@given(A=arrays(float, (3, 3), elements=st.floats(-1, 1)), seed=st.integers(0, 99))
def test_nearest_possible_inertia_is_possible_and_none_is_nearer(A, seed):
    given_inertia = (A + A.T) / 2
    near = inertia.nearest_possible(A)
    assert inertia.inertia_flaw(1.0, near) is None
    distance = np.linalg.norm(second_moments(near - given_inertia))
    rng = np.random.default_rng(seed)
    for share in (1.0, 0.1, 1e-3):  # other possible inertias: sums of squares, far and close by
        root = rng.normal(size=(3, 3))
        S = (1 - share) * second_moments(near) + share * root @ root.T
        assert np.linalg.norm(S - second_moments(given_inertia)) >= distance - 1e-12


def test_a_possible_inertia_is_its_own_nearest():
    tensor = np.array([[3.0, 0.1, 0.2], [0.1, 2.0, 0.3], [0.2, 0.3, 2.5]])
    close(inertia.nearest_possible(tensor), tensor)
