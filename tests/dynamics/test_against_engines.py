"""Dynamics of random organisms against Pinocchio and MuJoCo.

Both are built from the docking list and the datasheets (`oracles.rigid_tree`); of modurob's model
they take the names of the locked joints and nothing else.
"""

from itertools import count, islice, product

import numpy as np
import pytest

from modurob import examples
from oracles import GROUPS, random_organism
from oracles.rigid_tree import MujocoDynamics, PinocchioDynamics, RigidTree
from oracles.rough_organisms import STATES, case, states

RELATIVE = 1e-10  # of the largest entry: sums over up to 60 joints, and M up to condition 1e6
EACH = 11  # organisms of each of seven groups, two kinds of hinges and two bases: 308 in all
FEW = 3  # cases are left out before the one with locked joints
SOME = 15  # organisms on virtual joints
ENOUGH = 0.8  # share of the organisms with a body that MuJoCo can push: it keeps no massless ones
HINGES = ("dyad", "physical")
BASES = ("fixed", "free")
VIRTUAL = [("px", "py", "rz"), ("rz", "ry", "rx", "pz"), ("pz",)]

every_kind = pytest.mark.parametrize(
    ("kinds", "hinges", "base"), list(product(GROUPS, HINGES, BASES))
)


def cases(kinds, hinges, base):
    """`EACH` organisms that have joints, others for each kind of hinges and base."""
    first = list(product(HINGES, BASES)).index((hinges, base))
    found = (case(kinds, seed, hinges, base) for seed in count(first, len(HINGES) * len(BASES)))
    return islice((c for c in found if c.model.joint_names), EACH)


def assert_close(ours, theirs):
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=RELATIVE * np.abs(theirs).max())


def assert_same_dynamics(model, engine, q, v, x, external=None):
    """All three algorithms at each state, the batch against one call of the engine per state."""
    external = external or {}
    pushes = [{body: w[k] for body, w in external.items()} for k in range(len(q))]
    given = external or None

    def each(function, *arrays):
        return np.stack([function(*parts) for parts in zip(*arrays, strict=True)])

    assert_close(
        model.inverse_dynamics(q, v, x, given), each(engine.inverse_dynamics, q, v, x, pushes)
    )
    assert_close(
        model.forward_dynamics(q, v, x, given), each(engine.forward_dynamics, q, v, x, pushes)
    )
    assert_close(model.mass_matrix(q), each(engine.mass_matrix, q))
    assert_close(
        model.inverse_dynamics(q[0], v[0], x[0]), engine.inverse_dynamics(q[0], v[0], x[0], {})
    )
    assert_close(
        model.forward_dynamics(q[0], v[0], x[0]), engine.forward_dynamics(q[0], v[0], x[0], {})
    )


@every_kind
def test_dynamics_of_random_organisms_match_pinocchio_and_mujoco(kinds, hinges, base):
    compared = pushed = 0
    for c in cases(kinds, hinges, base):
        assert_same_dynamics(c.model, PinocchioDynamics(c.tree, c.model), c.q, c.v, c.x, c.external)
        engine = MujocoDynamics(c.tree, c.model)
        external = {body: w for body, w in c.external.items() if engine.can_push(body)}
        assert_same_dynamics(c.model, engine, c.q, c.v, c.x, external)
        compared += 1
        pushed += bool(external)
    assert compared == EACH
    assert pushed >= ENOUGH * EACH


@every_kind
def test_dynamics_with_locked_joints_match_pinocchio_and_mujoco(kinds, hinges, base):
    c, rng = next(islice(cases(kinds, hinges, base), FEW, None)), np.random.default_rng(5)
    names = c.model.joint_names[::2]
    held = c.model.random_configuration(rng)[c.model.joint_slice_q][::2].tolist()
    held = dict(zip(names, held, strict=True))
    model = c.organism.model(hinges, base, c.model.gravity, held)
    tree = RigidTree(c.organism, hinges, base, list(model.locked), held)
    for engine in (PinocchioDynamics, MujocoDynamics):
        assert_same_dynamics(model, engine(tree, model), *states(model, rng))


@pytest.mark.parametrize("hinges", HINGES)
@pytest.mark.parametrize("virtual", VIRTUAL, ids="-".join)
def test_dynamics_on_virtual_joints_match_both_engines(virtual, hinges):
    for seed in range(SOME):
        c = case("backbone and scout", seed, hinges, virtual)
        # three virtual turns at quarter turns are in gimbal lock: there only inverse dynamics
        anywhere = slice(0, 1)
        state = c.q[anywhere], c.v[anywhere], c.x[anywhere]
        pinocchio, mujoco = PinocchioDynamics(c.tree, c.model), MujocoDynamics(c.tree, c.model)
        external = {body: w[anywhere] for body, w in c.external.items()}
        assert_same_dynamics(c.model, pinocchio, *state, external)
        assert_same_dynamics(c.model, mujoco, *state)
        for k in range(STATES):
            expected = pinocchio.inverse_dynamics(c.q[k], c.v[k], c.x[k], c.pushes(k))
            ours = c.model.inverse_dynamics(c.q[k], c.v[k], c.x[k], c.pushes(k))
            assert_close(ours, expected)


@pytest.mark.parametrize("engine", [PinocchioDynamics, MujocoDynamics])
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(
    ("organism", "hinges"),
    [
        (examples.crab(), "dyad"),
        (examples.crab(), "physical"),
        (examples.nine(), "dyad"),
        (examples.nine(), "physical"),
        (examples.arm("babac"), "physical"),
        (examples.superbot_tree(4, 5, rng=np.random.default_rng(4)), "physical"),
        (examples.snake(60), "dyad"),
    ],
    ids=["crab", "physical crab", "nine", "physical nine", "arm", "superbot tree", "snake of 60"],
)
def test_the_documents_organisms_match_both_engines(organism, hinges, base, engine):
    model, rng = organism.model(hinges, base), np.random.default_rng(1)
    tree = RigidTree(organism, hinges, base, list(model.locked))
    q, v, x = states(model, rng)
    bodies = ("m0", model.body_names[-1])
    external = {
        model.body_names[model.body_index(b)]: rng.standard_normal((STATES, 6)) for b in bodies
    }
    theirs = engine(tree, model)
    if engine is MujocoDynamics:
        external = {body: w for body, w in external.items() if theirs.can_push(body)}
    assert_same_dynamics(model, theirs, q, v, x, external)


@pytest.mark.parametrize("base", BASES)
def test_external_wrenches_in_fused_code_match_pinocchio(base):
    c = next(cases("backbone and scout", "physical", base))
    assert c.external
    fused = c.model.compile()
    assert_same_dynamics(fused, PinocchioDynamics(c.tree, c.model), c.q, c.v, c.x, c.external)
    for name in ("inverse_dynamics", "forward_dynamics"):
        assert fused.dynamics.tier.routine(name, external=True)._kept[1] == {}  # reads no table


@pytest.mark.parametrize("hinges", HINGES)
def test_a_hundred_modules_match_pinocchio(hinges):
    organism = random_organism("backbone and scout", 100, seed=5)
    model, rng = organism.model(hinges), np.random.default_rng(2)
    tree = RigidTree(organism, hinges, "fixed", list(model.locked))
    q = model.random_configuration(rng)[None]
    v, x = rng.standard_normal((2, 1, model.nv))
    assert_same_dynamics(model, PinocchioDynamics(tree, model), q, v, x)
