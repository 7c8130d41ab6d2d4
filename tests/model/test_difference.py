"""`Model.difference` is the inverse of `integrate`, as in Pinocchio; slices name the joints."""

import numpy as np
import pinocchio as pin
import pytest

from modurob import StateError, examples
from oracles import complains
from oracles.rough_organisms import case

ROUND_TRIP = 1e-12  # [rad, m] of angles up to pi - 1e-3
NEAR_PI = 1e-9  # closer to pi the axis of a rotation has half the digits


def peer_difference(model, q0, q1):
    """Pinocchio's `difference` of a free joint, and of the joints' displacements."""
    free = pin.Model()
    free.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "base")
    return np.concatenate([pin.difference(free, q0[:7], q1[:7]), q1[7:] - q0[7:]])


@pytest.mark.parametrize("seed", range(4))
def test_difference_matches_pinocchio(seed):
    model = examples.crab().model("physical", base="free")
    rng = np.random.default_rng(seed)
    q0, q1 = (model.random_configuration(rng) for _ in range(2))
    np.testing.assert_allclose(
        model.difference(q0, q1), peer_difference(model, q0, q1), rtol=0, atol=1e-11
    )


@pytest.mark.parametrize(
    ("angle", "exact"),
    [(0.0, ROUND_TRIP), (1e-9, ROUND_TRIP), (1.0, ROUND_TRIP), (np.pi - 1e-3, ROUND_TRIP),
     (np.pi - 1e-6, NEAR_PI)],
)  # fmt: skip
def test_difference_inverts_integrate(angle, exact):
    c = case("backbone and scout", 3, "physical", "free")
    rng = np.random.default_rng(1)
    axis = rng.standard_normal(3)
    step = rng.standard_normal(c.model.nv)
    step[3:6] = angle * axis / np.linalg.norm(axis)
    q = c.model.check_configuration(c.q).reshape(-1, c.model.nq)[0]
    there = c.model.integrate(q, step)
    np.testing.assert_allclose(c.model.difference(q, there), step, rtol=0, atol=exact)
    np.testing.assert_allclose(c.model.difference(q, q), 0, atol=1e-14)


def test_difference_broadcasts():
    model = examples.snake(3).model(base="free")
    rng = np.random.default_rng(0)
    many = np.stack([model.random_configuration(rng) for _ in range(6)]).reshape(2, 3, -1)
    found = model.difference(model.neutral(), many)
    assert found.shape == (2, 3, model.nv)
    np.testing.assert_allclose(found[1, 2], model.difference(model.neutral(), many[1, 2]))
    with complains(StateError, "q0 and q1 have batch shapes"):
        model.difference(many[0, :2], many[0])
    with complains(StateError, "q0 and q1 have batch shapes (2, 3), (2, 4)"):
        model.difference(many, many[:, [0, 1, 2, 0]])


@pytest.mark.parametrize(("base", "first_q", "first_v"), [("fixed", 0, 0), ("free", 7, 6)])
def test_slices_name_the_joints_behind_the_base(base, first_q, first_v):
    model = examples.snake(3).model("physical", base=base)
    assert model.joint_slice_q == slice(first_q, model.nq)
    assert model.joint_slice_v == slice(first_v, model.nv)
    assert len(model.neutral()[model.joint_slice_q]) == len(model.joint_names)
