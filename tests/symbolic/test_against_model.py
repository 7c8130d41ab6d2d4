"""Formulas evaluated at numbers are the compiled model's numbers."""

import numpy as np
import pytest
import sympy

from modurob import Organism, examples
from oracles.organisms import random_organism

ROUNDING = 1e-12  # of entries of order 1 (kg, m, s): the numeric side rounds where we are exact
RANDOM = [
    (kinds, modules, seed)
    for seed in range(5)
    for kinds, modules in (
        ("backbone", 7),
        ("scout", 4),
        ("backbone and scout", 5),
        ("superbot", 1),
        ("chen", 5),
        ("giusti", 4),
    )
]
NAMED = {
    "crab": (examples.crab(), "dyad"),
    "crab, physical": (examples.crab(), "physical"),
    "nine": (examples.nine(), "dyad"),
    "nine, physical": (examples.nine(), "physical"),
    "babac": (examples.arm("babac"), "physical"),
}


def state(model, seed=0):
    rng = np.random.default_rng(seed)
    return model.random_configuration(rng), rng.standard_normal(model.nv)


def close(found, expected):
    scale = np.abs(expected).max(initial=1.0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=ROUNDING * scale)


def check(equations, seed=0):
    q, v = state(equations.model, seed)
    found, expected = equations.evaluate(q, v), equations.model.closed_form(q, v)
    assert found.M.shape == expected.M.shape
    for one, other in zip(found, expected, strict=True):
        close(one, other)
    close(found.M, equations.model.mass_matrix(q))  # compiled, by another algorithm


@pytest.mark.parametrize("name", NAMED)
def test_the_documents_organisms(name):
    organism, hinges = NAMED[name]
    check(organism.equations(hinges))


@pytest.mark.parametrize(("kinds", "modules", "seed"), RANDOM)
def test_random_organisms_of_up_to_six_joints(kinds, modules, seed):
    organism = random_organism(kinds, modules, seed)
    while len(organism.model("physical").joint_names) > 6:
        organism, _ = organism.undock(organism.modules[-1])
    check(organism.equations("physical", gravity=(1.0, -2.0, -9.0)), seed)


@pytest.mark.parametrize("symbols", ["none", "mass", ("length", "gravity"), "all"])
def test_symbols_and_numbers_give_the_same(symbols):
    check(examples.arm("bac").equations("physical", symbols=symbols))


@pytest.mark.parametrize("base", ["free", ("px", "py", "rz"), ("rx", "ry", "rz")])
def test_bases_that_move(base):
    check(examples.snake(3).equations("physical", base))
    check(random_organism("scout", 3, 1).equations("dyad", base), 1)


def test_a_skew_module_with_a_weld_and_a_slide():
    organism = random_organism("cubes and wrists", 2, 8)
    assert "wrist" in {organism.kind(name).name for name in organism.modules}
    check(organism.equations("physical", symbols="none"))


def test_a_joint_held_away_from_zero_by_its_limits():
    organism = examples.snake(3).with_parameters("m1", limits=(0.5, 0.5))
    equations = organism.equations("physical")
    assert "m1.hinge" in equations.model.locked
    check(equations)


def test_sympy_matrices_are_the_same_formulas():
    equations = random_organism("backbone", 6, 3).equations("physical")
    n = equations.model.nv
    q, v = state(equations.model)
    names = [f"q{k + 1}" for k in range(n)] + [f"dq{k + 1}" for k in range(n)]
    numbers = dict(zip(map(sympy.Symbol, names), [*q, *v], strict=True)) | equations.values
    expected = equations.model.closed_form(q, v)
    for matrix, other in zip((equations.M, equations.C, equations.N), expected, strict=True):
        found = np.array(matrix.subs(numbers).evalf(20), dtype=float)
        close(found.reshape(other.shape), other)


def test_tau_with_friction_and_external_wrenches_is_inverse_dynamics():
    organism = examples.snake(4).with_parameters(viscous=0.3, coulomb=0.2)
    equations = organism.equations("physical", external=["m2", "m3"])
    model = equations.model
    q, v = state(model, 3)
    a = np.random.default_rng(4).standard_normal(model.nv)
    wrenches = {"m2": np.arange(1.0, 7.0), "m3": np.array([0.5, -1, 2, 0.1, 0.2, -0.3])}
    numbers = dict(equations.values)
    for letter, values in (("q", q), ("dq", v), ("ddq", a)):
        numbers |= {sympy.Symbol(f"{letter}{k + 1}"): x for k, x in enumerate(values)}
    for module, wrench in wrenches.items():
        names = [f"{letter}{module[1:]}_{x}" for letter in "Fn" for x in "xyz"]
        numbers |= dict(zip(map(sympy.Symbol, names), wrench, strict=True))
    found = np.array(equations.tau.subs(numbers).evalf(20), dtype=float)[:, 0]
    close(found, model.inverse_dynamics(q, v, a, wrenches))


@pytest.mark.parametrize("base", ["fixed", "free", ("px", "rz")])
def test_poses_twists_and_jacobians_of_modules(base):
    organism = random_organism("scout", 4, 5)
    equations = organism.equations("physical", base)
    model = equations.model
    q, v = state(model, 1)
    numbers = dict(equations.values)
    first_q, first_v = (7, 6) if base == "free" else (0, 0)
    if base == "free":
        names = ["r_x", "r_y", "r_z", "e_x", "e_y", "e_z", "e_w"]
        numbers |= dict(zip(map(sympy.Symbol, names), q[:7], strict=True))
        numbers |= {sympy.Symbol(f"V{k + 1}"): v[k] for k in range(6)}
    numbers |= {sympy.Symbol(f"q{k + 1}"): x for k, x in enumerate(q[first_q:])}
    numbers |= {sympy.Symbol(f"dq{k + 1}"): x for k, x in enumerate(v[first_v:])}

    def value(matrix):
        return np.array(matrix.subs(numbers).evalf(20), dtype=float)

    poses = model.forward_kinematics(q)
    for module in organism.modules:
        T = poses[model.body_index(module)]
        close(value(equations.T(None, module)), T)
        inner = poses[model.body_index(organism.modules[1])]
        close(value(equations.T(organism.modules[1], module)), np.linalg.inv(inner) @ T)
        J = model.jacobian(q, module)
        close(value(equations.J(module)), J)
        close(value(equations.V(module))[:, 0], J @ v)


def test_two_modules_on_a_free_base():
    equations = examples.snake(2).equations("physical", "free")
    check(equations)
    model = equations.model
    q, v = state(model, 2)
    names = ["r_x", "r_y", "r_z", "e_x", "e_y", "e_z", "e_w", "q1"]
    names += [f"V{k + 1}" for k in range(6)] + ["dq1"]
    numbers = equations.values | dict(zip(map(sympy.Symbol, names), [*q, *v], strict=True))

    def value(matrix):
        return np.array(matrix.subs(numbers), dtype=float)

    poses = model.forward_kinematics(q)
    first, second = (poses[model.body_index(name)] for name in ("m0", "m1"))
    close(value(equations.T(None, "m1")), second)
    close(value(equations.T("m1", "m0")), np.linalg.inv(second) @ first)
    J = model.jacobian(q, "m1")
    close(value(equations.J("m1")), J)
    close(value(equations.V("m1"))[:, 0], J @ v)


def test_an_organism_without_joints_has_empty_equations():
    equations = Organism.start("backbone").equations()
    assert equations.M.shape == (0, 0)
    assert equations.tau.shape == (0, 1)
    assert equations.text().strip()
    linear = equations.linearize()
    assert {matrix.shape for matrix in linear} == {(0, 0)}


def test_joints_of_other_branches_do_not_move_a_module():
    equations = examples.crab().equations("physical", symbols="none")
    model = equations.model
    q = model.random_configuration(np.random.default_rng(4))
    values = {sympy.Symbol(f"q{k + 1}"): x for k, x in enumerate(q)}
    for module in model.modules:
        found = np.array(equations.J(module).subs(values), dtype=float)
        body = model.body_names[model.modules[module]]
        np.testing.assert_allclose(found, model.jacobian(q, body), atol=1e-12)
