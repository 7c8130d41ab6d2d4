"""Motion of a free base, against the poses of `spatial`."""

import numpy as np
import pytest

from modurob import examples
from modurob.dynamics import stepped_state
from modurob.spatial import se3, so3
from modurob.stepping import manifold
from oracles.differences import slope

ROUNDING = 1e-14
DIFFERENCES = 1e-10  # eighth-order differences
SIZES = [0.0, 1e-9, 1e-3, 0.3, 0.499, 0.501, 2.0, 3.1]  # angles on both sides of the series


@pytest.fixture(scope="module")
def model():
    return examples.snake(3).model("physical", base="free")


def state(model, seed=0, shape=()):
    rng = np.random.default_rng(seed)
    q = np.array([model.random_configuration(rng) for _ in range(int(np.prod(shape)))])
    q = q.reshape(*shape, model.nq) if shape else model.random_configuration(rng)
    return q, rng.standard_normal((*shape, model.nv)), rng.standard_normal((*shape, model.nv))


def same_pose(model, one, other, atol=ROUNDING):
    np.testing.assert_allclose(model.base_of(one), model.base_of(other), atol=10 * atol)
    np.testing.assert_allclose(one[..., 7:], other[..., 7:], atol=atol)


@pytest.mark.parametrize("size", SIZES)
def test_a_step_is_that_of_the_model(model, size):
    q, v, _ = state(model)
    v[3:6] *= size / np.linalg.norm(v[3:6])
    found = manifold.moved(q, v)
    same_pose(model, found, model.integrate(q, v))
    assert np.linalg.norm(found[3:7]) == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("shape", [(), (3,)])
def test_semi_implicit_steps_are_those_of_the_model(model, size, shape):
    q, v, after = state(model, 6, shape)
    after[..., 3:6] *= size / np.linalg.norm(after[..., 3:6], axis=-1, keepdims=True) / 0.7
    found, expected = (step(q, v, after, 0.7) for step in (manifold.stepped, stepped(model)))
    same_pose(model, found[0], expected[0], 1e-13)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-13)


def stepped(model):
    return lambda *given: stepped_state(model, *given)


def test_a_batch_is_many_states(model):
    q, v, a = state(model, shape=(4, 2))
    v[0, 0, 3:6] = 0
    for function, *arguments in (
        (manifold.moved, q, v), (manifold.rate, q, v), (manifold.second_rate, q, v, a),
        (manifold.dexp_inv, v, a),
    ):  # fmt: skip
        batch = function(*arguments)
        for index in np.ndindex(4, 2):
            single = function(*(x[index] for x in arguments))
            np.testing.assert_allclose(batch[index], single, atol=ROUNDING)


def test_rates_are_derivatives_of_steps(model):
    q, v, a = state(model, 1)
    v, a = 0.3 * v, 0.3 * a

    def along(t):
        return manifold.moved(q, t * v)

    np.testing.assert_allclose(manifold.rate(q, v), slope(along), atol=DIFFERENCES)

    def rate(t):  # of the motion with acceleration a: v + t a, at q + t v to first order
        return manifold.rate(along(t), v + t * a)

    np.testing.assert_allclose(manifold.second_rate(q, v, a), slope(rate), atol=DIFFERENCES)


def test_coordinates_of_the_exponential_bend_with_the_velocity(model):
    """T = exp(x): what dx/dt belongs to a body twist, by differences of the logarithm."""
    rng = np.random.default_rng(2)
    x, V = 0.03 * rng.standard_normal(6), rng.standard_normal(6)
    expected = slope(lambda t: se3.log(se3.exp(x) @ se3.exp(t * V)), step=3e-3)
    joints = np.zeros(2)
    found = manifold.dexp_inv(np.concatenate([x, joints]), np.concatenate([V, joints]))[:6]
    left_out = np.linalg.norm(x) ** 4 / 720 * np.linalg.norm(V)
    np.testing.assert_allclose(found, expected, atol=10 * left_out)
    assert np.abs(se3.ad(x) @ se3.ad(x) @ V / 12).max() > 100 * left_out  # the term is seen


@pytest.mark.parametrize("size", SIZES)
def test_rotations_are_those_of_so3(size):
    rng = np.random.default_rng(3)
    w, u = rng.standard_normal((2, 3))
    w *= size / np.linalg.norm(w)
    arguments = w.tolist(), u.tolist()
    np.testing.assert_allclose(manifold.turned(*arguments), so3.exp(w) @ u, atol=ROUNDING)
    np.testing.assert_allclose(
        manifold.left_jacobian(*arguments), so3.left_jacobian(w) @ u, atol=ROUNDING
    )
    inverse = np.linalg.inv(so3.left_jacobian(-w))  # J_r(w) = J_l(-w)
    np.testing.assert_allclose(manifold.right_jacobian_inverse(*arguments), inverse @ u, atol=1e-13)


def test_turns_in_place_and_frames(model):
    q, v, _ = state(model, 4)
    R = so3.from_quaternion(q[3:7])
    np.testing.assert_allclose(manifold.to_world(q, v[:3].tolist()), R @ v[:3], atol=ROUNDING)
    np.testing.assert_allclose(manifold.to_base(q, v[:3].tolist()), R.T @ v[:3], atol=ROUNDING)
    found = manifold.moved(q, np.concatenate([np.zeros(3), v[3:]]))
    np.testing.assert_array_equal(found[:3], q[:3])
    turned = so3.from_quaternion(found[3:7])
    np.testing.assert_allclose(turned, R @ so3.exp(v[3:6]), atol=1e-13)
    np.testing.assert_allclose(found[7:], q[7:] + v[6:], atol=ROUNDING)


def test_quaternions_are_normalized_and_nothing_else(model):
    q, *_ = state(model, 5)
    longer = q.copy()
    longer[3:7] *= 1.7
    np.testing.assert_allclose(manifold.normalized(longer), q, atol=ROUNDING)
