"""The equations of motion depend on no absolute position: far away they keep all their digits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import modurob as mr
from modurob.model.reference import reference

UTM = np.array([5e5, 5e6, 300.0])  # easting, northing and height of a place on Earth [m]
ROUNDING = 1e-12  # relative to the largest entry; about the world's origin 1e-3 was left
DRIVE = ["px", "py", "pz", "rz"]


def crab(place: np.ndarray, base="fixed") -> mr.Model:
    T = np.eye(4)
    T[:3, 3] = place
    return mr.examples.crab().with_base_pose(T).model(hinges="physical", base=base)


def crane(place: np.ndarray) -> mr.Model:
    """A massive slide on the world carries the rest."""
    T = np.eye(4)
    T[:3, 3] = place
    return mr.examples.crane().with_base_pose(T).model(hinges="physical")


def at_zero(model: mr.Model, q: np.ndarray) -> np.ndarray:
    return q


def free_position(model: mr.Model, q: np.ndarray) -> np.ndarray:
    return np.concatenate([UTM, q[3:]])


def driven(model: mr.Model, q: np.ndarray) -> np.ndarray:
    return np.concatenate([q[:3] + UTM, q[3:]])


def cart(model: mr.Model, q: np.ndarray) -> np.ndarray:
    return np.where(model.prismatic, q + 5e6, q)


# a robot near the origin, the same robot far away, and its configuration there
FAR: dict[str, tuple[Callable[[], mr.Model], Callable[[], mr.Model], Callable]] = {
    "fixed base": (lambda: crab(np.zeros(3)), lambda: crab(UTM), at_zero),
    "free base": (lambda: crab(np.zeros(3), "free"), lambda: crab(UTM, "free"), free_position),
    "virtual joints": (lambda: crab(np.zeros(3), DRIVE), lambda: crab(np.zeros(3), DRIVE), driven),
    "slide": (lambda: crane(np.zeros(3)), lambda: crane(UTM), cart),
}


def close(actual, expected) -> None:
    expected = np.asarray(expected)
    scale = np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=ROUNDING * scale)


@pytest.fixture(params=FAR)
def pair(request):
    near, far, moved = (part for part in FAR[request.param])
    near, far = near(), far()
    rng = np.random.default_rng(3)
    q, v, x = near.random_configuration(rng), *rng.standard_normal((2, near.nv))
    return near, q, far, moved(far, q), v, x


@pytest.mark.parametrize("name", ["inverse_dynamics_derivatives", "forward_dynamics_derivatives"])
def test_derivatives_keep_their_digits(pair, name) -> None:
    near, q, far, there, v, x = pair
    expected = getattr(near, name)(q, v, x)
    for model in (far, far.compile()):
        for found, exact in zip(getattr(model, name)(there, v, x), expected, strict=True):
            close(found, exact)
    checked = far.check_configuration(there)
    if name.startswith("forward"):
        x = reference(far, "forward_dynamics", checked, v, x)
    for found, exact in zip(reference(far, name, checked, v, x), expected, strict=True):
        close(found, exact)


def test_coriolis_matrices_keep_their_digits(pair) -> None:
    near, q, far, there, v, _ = pair
    close(far.coriolis_matrix(there, v), near.coriolis_matrix(q, v))
    for found, exact in zip(far.closed_form(there, v), near.closed_form(q, v), strict=True):
        close(found, exact)


def test_kinetic_energy_keeps_its_digits(pair) -> None:
    near, q, far, there, v, _ = pair
    close(far.kinetic_energy(there, v), near.kinetic_energy(q, v))


def test_linear_models_and_discrete_steps_keep_their_digits(pair) -> None:
    near, q, far, there, v, tau = pair
    for found, exact in zip(far.linearize(there, v, tau), near.linearize(q, v, tau), strict=True):
        close(found, exact)
    steps = far.step_derivatives(there, v, tau, 1e-3), near.step_derivatives(q, v, tau, 1e-3)
    for found, exact in zip(*steps, strict=True):
        close(found, exact)


def test_momentum_is_that_near_the_origin_carried_over(pair) -> None:
    near, q, far, there, v, _ = pair
    way = far.center_of_mass(there) - near.center_of_mass(q)
    exact = near.momentum(q, v)
    exact[3:] += np.cross(way, exact[:3])
    found = far.momentum(there, v)
    close(found[:3], exact[:3])
    # a product of a distance and a momentum is as accurate as the distance, which is in doubles
    lever = np.linalg.norm(way) * np.linalg.norm(exact[:3])
    assert np.abs(found[3:] - exact[3:]).max() < 1e-15 * max(lever, 1.0)


@pytest.mark.parametrize("frame", ["body", "aligned"])
def test_jacobians_keep_their_digits(pair, frame) -> None:
    near, q, far, there, _, _ = pair
    for body in near.body_names:
        close(far.jacobian(there, body, frame), near.jacobian(q, body, frame))


def test_inverse_kinematics_reaches_targets_far_away() -> None:
    """Positions are 1e-9 m apart there; to the ones that exist the target is met to 1e-10."""
    model = crab(UTM)
    q = model.random_configuration(np.random.default_rng(5))
    last = model.body_names[-1]
    target = model.forward_kinematics(q)[model.body_index(last), :3, 3] + 3e-4
    given = target.copy()
    found = model.inverse_kinematics({last: target}, q0=q)
    assert found.reached
    np.testing.assert_array_equal(target, given)  # the caller's array is left alone
    reached = model.forward_kinematics(found.q)[model.body_index(last), :3, 3]
    np.testing.assert_allclose(reached, target, rtol=0, atol=2e-9)


def test_inverse_kinematics_finds_a_base_that_cannot_move_where_it_stands() -> None:
    model = crab(UTM)
    poses = model.forward_kinematics(model.neutral())
    base, last = model.body_names[0], model.body_names[-1]
    targets = {base: poses[0], last: poses[-1][:3, 3]}
    found = model.inverse_kinematics(targets, restarts=0)
    assert found.residual < 2e-9  # the distance of doubles there
    away = {base: poses[0, :3, 3] + [1.0, 0.0, 0.0]}
    assert model.inverse_kinematics(away, restarts=0).residual == pytest.approx(1.0, abs=2e-9)
