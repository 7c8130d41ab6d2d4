"""Poses, Jacobians and masses of random organisms against Pinocchio.

The other side is built from the docking list alone, with every joint and body kept
(`oracles.PinocchioTree`); modurob merges and locks, and must come to the same numbers.
"""

from functools import lru_cache

import numpy as np
import pinocchio as pin
import pytest

from modurob import examples
from oracles import GROUPS, PinocchioTree, group, random_organism

ROUNDING = 1e-12  # products of up to 60 poses with entries of size 1 to 10
EACH = 29  # organisms of each group: 203 in all
SOME = 6
HINGES = ("dyad", "physical")
BASES = ("fixed", "free")
FRAMES = {"body": pin.LOCAL, "world": pin.WORLD, "aligned": pin.LOCAL_WORLD_ALIGNED}

every_model = pytest.mark.parametrize(
    ("kinds", "hinges", "base"),
    [(kinds, hinges, base) for kinds in GROUPS for hinges in HINGES for base in BASES],
)


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=ROUNDING)


@lru_cache(maxsize=len(GROUPS) * len(HINGES) * len(BASES) * SOME)
def both(organism, hinges, base, seed=0):
    """Our model, the oracle, and one random configuration for each."""
    model, tree = organism.model(hinges, base), PinocchioTree(organism, hinges, base)
    q = model.random_configuration(np.random.default_rng(seed))
    joints = dict(zip(model.joint_names, q[model.joint_slice_q].tolist(), strict=True))
    return model, tree, q, tree.configuration(joints, q[:7] if model.free_base else ())


@every_model
def test_poses_of_random_organisms_match_pinocchio(kinds, hinges, base):
    for seed, organism in enumerate(group(kinds, EACH)):
        model, tree, q, q_pin = both(organism, hinges, base, seed)
        poses = tree.poses(q_pin)
        assert set(model.body_names) == set(poses)
        close(model.forward_kinematics(q), np.stack([poses[name] for name in model.body_names]))


@every_model
def test_active_and_locked_joints_are_all_joints_there_are(kinds, hinges, base):
    for seed, organism in enumerate(group(kinds, SOME)):
        model, tree, _, _ = both(organism, hinges, base, seed)
        assert sorted([*model.joint_names, *model.locked]) == sorted(tree.joints)
        assert all(model.locked.values())


@every_model
def test_jacobians_of_random_organisms_match_pinocchio(kinds, hinges, base):
    for seed, organism in enumerate(group(kinds, SOME)):
        model, tree, q, q_pin = both(organism, hinges, base, seed)
        for body in model.body_names[:: 1 + model.nbodies // 8]:
            for frame, reference in FRAMES.items():
                expected = tree.jacobian(q_pin, body, reference, model.joint_names)
                close(model.jacobian(q, body, frame), expected)


@every_model
def test_centers_of_mass_of_random_organisms_match_pinocchio(kinds, hinges, base):
    for seed, organism in enumerate(group(kinds, SOME)):
        model, tree, q, q_pin = both(organism, hinges, base, seed)
        close(model.center_of_mass(q), tree.center_of_mass(q_pin))


@every_model
def test_links_have_the_mass_and_inertia_of_the_bodies_merged_into_them(kinds, hinges, base):
    for seed, organism in enumerate(group(kinds, SOME)):
        model, tree, q, q_pin = both(organism, hinges, base, seed)
        expected = tree.link_inertias(q_pin, model.joint_names)
        T_w = _link_poses(model, q)
        for link, name in enumerate(("", *model.joint_names)):
            inertia = pin.Inertia(model.mass[link], model.center[link], model.inertia[link])
            close(pin.SE3(T_w[link]).act(inertia).matrix(), expected[name].matrix())


def _link_poses(model, q):
    """Every link's pose from any of its bodies, or from the joint where it has none."""
    poses = model.forward_kinematics(q)
    found = {
        int(link): poses[body] @ np.linalg.inv(model.body_placement[body])
        for body, link in enumerate(model.body_link)
    }
    assert len(found) == len(model.mass)
    return [found[link] for link in range(len(model.mass))]


@every_model
def test_total_mass_is_the_sum_of_the_modules(kinds, hinges, base):
    for organism in group(kinds, SOME):
        model = organism.model(hinges, base)
        total = sum(organism.kind(name).mass for name in organism)
        assert model.mass.sum() == pytest.approx(total, rel=ROUNDING)


@every_model
def test_batches_equal_a_loop_over_their_states(kinds, hinges, base):
    model, rng = random_organism(kinds, 7, seed=3).model(hinges, base), np.random.default_rng(1)
    body = model.body_names[-1]
    functions = [model.forward_kinematics, model.center_of_mass] + [
        lambda q, frame=frame: model.jacobian(q, body, frame) for frame in FRAMES
    ]
    for shape in ((), (5,), (2, 3), (0,)):
        states = [model.random_configuration(rng) for _ in np.ndindex(*shape)]
        q = np.reshape(states, (*shape, model.nq))
        for function in functions:
            batch = function(q)
            assert batch.shape[: len(shape)] == shape
            for index in np.ndindex(*shape):
                close(batch[index], function(q[index]))


@pytest.mark.parametrize("hinges", HINGES)
@pytest.mark.parametrize(
    "virtual", [("px",), ("px", "py", "rz"), ("rz", "ry", "rx", "pz"), ("ry", "px")]
)
def test_virtual_joints_stand_between_world_and_base_in_the_given_order(hinges, virtual):
    for seed, organism in enumerate(group("backbone and scout", SOME)):
        model, tree, q, q_pin = both(organism, hinges, virtual, seed)
        assert model.joint_names[: len(virtual)] == tuple(f"world.{name}" for name in virtual)
        poses = tree.poses(q_pin)
        close(model.forward_kinematics(q), np.stack([poses[name] for name in model.body_names]))
        last = model.body_names[-1]
        expected = tree.jacobian(q_pin, last, pin.LOCAL, model.joint_names)
        close(model.jacobian(q, last), expected)


@pytest.mark.parametrize("base", BASES)
def test_a_superbot_tree_of_twenty_modules_matches_pinocchio(base):
    organism = examples.superbot_tree(4, 5, rng=np.random.default_rng(4))
    model, tree, q, q_pin = both(organism, "physical", base)
    assert len(model.joint_names) == 60
    poses = tree.poses(q_pin)
    close(model.forward_kinematics(q), np.stack([poses[name] for name in model.body_names]))
    close(model.center_of_mass(q), tree.center_of_mass(q_pin))


def test_integrate_moves_a_free_base_as_pinocchio_does():
    model, tree, q, q_pin = both(random_organism("superbot", 4, 0), "physical", "free")
    rng = np.random.default_rng(2)
    for scale in (0.0, 1e-9, 1e-3, 1.0, 3.0):
        v = scale * rng.standard_normal(model.nv)
        v_pin = np.zeros(tree.model.nv)
        v_pin[:6] = v[:6]
        for name, value in zip(model.joint_names, v[6:], strict=True):
            v_pin[tree.model.joints[tree.joints[name]].idx_v] = value
        theirs = tree.poses(pin.integrate(tree.model, q_pin, v_pin))
        ours = model.forward_kinematics(model.integrate(q, v))
        close(ours, np.stack([theirs[name] for name in model.body_names]))
