"""A new body is a new table: no compilation once the kernels exist."""

import itertools

import numpy as np
import pytest

from modurob import examples
from modurob.compiler import jit
from modurob.model.reference import reference
from oracles import GROUPS, random_organism

BASES = ("fixed", "free")
HINGES = ("dyad", "physical")
ROUNDING = 1e-12  # relative: sums over a hundred links


def use(model):
    """Every compiled algorithm once, for one state and for a batch."""
    if model.nv == 0:
        return
    q, x = model.neutral(), np.ones(model.nv)
    for state in ((q, x, x), tuple(np.stack([part] * 3) for part in (q, x, x))):
        model.inverse_dynamics(*state)
        model.forward_dynamics(*state)
        model.mass_matrix(state[0])
        model.inverse_dynamics_derivatives(*state)
        model.forward_dynamics_derivatives(*state)
    model.inverse_dynamics(q, x, x, {0: np.ones(6)})


@pytest.fixture
def compilations(monkeypatch):
    """Kernels for everything exist; what is loaded or compiled from here on is listed."""
    for base in BASES:
        use(examples.snake(3).model("physical", base))
    found = []
    load = jit._load
    monkeypatch.setattr(jit, "_load", lambda key, ir: found.append(key) or load(key, ir))
    return found


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("kinds", GROUPS)
def test_organisms_of_any_modules_need_no_new_code(compilations, kinds, base):
    for seed, hinges in itertools.product(range(3), HINGES):
        use(random_organism(kinds, 6, seed).model(hinges, base))
    assert compilations == []


def test_docking_undocking_and_editing_compile_nothing(compilations):
    organism = examples.crab()
    organism = organism.dock("m5", 2, "tail", 5, kind="backbone")
    use(organism.model("physical"))
    organism, loose = organism.undock("m4")
    for part in (organism, loose, organism.rebase("m3"), *organism.split("m1")):
        use(part.model())
    edited = organism.with_parameters(mass=0.3, size=0.2, inertia=1e-3, viscous=0.1, coulomb=0.2)
    use(edited.model("physical", ("px", "rz")))
    use(edited.model(gravity=(1.0, 2.0, 3.0)))
    assert compilations == []


def test_a_module_docked_to_a_hundred_compiles_nothing_and_answers_right(compilations):
    model = examples.snake(100).dock("m99", 3, "new", 4).model()
    rng = np.random.default_rng(0)
    q, (v, a) = model.random_configuration(rng), rng.standard_normal((2, model.nv))
    tau = model.inverse_dynamics(q, v, a)
    assert compilations == []
    expected = reference(model, "inverse_dynamics", q, v, a)
    np.testing.assert_allclose(tau, expected, rtol=0, atol=ROUNDING * np.abs(expected).max())


def test_only_fused_code_is_compiled_for_each_body_and_only_once(compilations):
    model = examples.snake(4).with_parameters(mass=0.123).model()
    fused = model.compile()
    assert compilations == []  # nothing before it is asked for
    q = np.zeros(3)
    fused.inverse_dynamics(q, q, q)
    assert len(compilations) == 1
    fused.inverse_dynamics(q, q, q)
    model.compile().inverse_dynamics(q, q, q)
    assert len(compilations) == 1
    fused.mass_matrix(q)
    fused.forward_dynamics(q, q, q)
    assert len(compilations) == 3
