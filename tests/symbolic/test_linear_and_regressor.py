"""Linearisation and regressor against the numeric model and against linear algebra."""

import numpy as np
import pinocchio as pin
import pytest
import sympy

from modurob import ModuleType, Organism, SizeError, StateError, examples
from modurob.symbolic.links import SNAP, exact_rotation
from oracles.complaints import complains
from oracles.organisms import random_organism
from oracles.pinocchio_tree import PinocchioTree
from oracles.two_part_modules import any_pose, robot, rpy, turned

ROUNDING = 1e-10  # of inverses of mass matrices with entries of 0.01 kg m^2
DT = 1e-6  # s; a step this short shows the rates of change
FIRST_ORDER = 1e-3  # relative, of a difference over that step

DEPENDENT, INDEPENDENT = 1e-11, 1e-5  # singular values of unit columns; none lie between
LAST_DIGITS = 1e-12  # relative, of forces summed up from a dozen parameters
g, l1, l2, m1, m2 = sympy.symbols("g l1 l2 m1 m2")


def close(found, expected, tolerance=ROUNDING):
    expected = np.asarray(expected, dtype=float)
    scale = np.abs(expected).max(initial=1.0)
    np.testing.assert_allclose(
        np.array(found, dtype=float), expected, rtol=0, atol=tolerance * scale
    )


def test_the_hanging_pendulum_linearised_is_the_textbook():
    linear = examples.double_pendulum().equations("physical").linearize(q=[0, 0])
    own, shared = g * (l1 * m1 + l1 * m2 + l2 * m2), g * l2 * m2
    stiffness = sympy.Matrix([[sympy.expand(own), shared], [shared, shared]])
    assert stiffness == linear.K
    assert linear.D.is_zero_matrix
    lower = linear.A[2:, :2]
    assert lower[0, 0] == -g / l1
    assert sympy.expand(lower[0, 1] - g * m2 / (l1 * m1)) == 0
    values = {g: 9.81, l1: 1, l2: 1, m1: 1, m2: 1}
    found = sorted(sympy.im(x) ** 2 for x in linear.A.subs(values).eigenvals())[::2]
    close(found, 9.81 * np.array([2 - np.sqrt(2), 2 + np.sqrt(2)]))  # known frequencies


@pytest.mark.parametrize("seed", range(3))
def test_symbolic_and_numeric_linearisations_agree(seed):
    organism = random_organism("backbone", 4, seed).with_parameters(viscous=0.2, coulomb=0.1)
    equations = organism.equations("physical", symbols="none")
    model, rng = equations.model, np.random.default_rng(seed)
    q = model.random_configuration(rng)
    v, a = rng.standard_normal((2, model.nv))
    found = equations.linearize(q, v, a)
    tau = model.inverse_dynamics(q, v, a)
    expected = model.linearize(q, v, tau)
    close(found.A, expected.A)
    close(found.B, expected.B)
    slopes = model.inverse_dynamics_derivatives(q, v, a)
    close(found.K, slopes.dq)
    close(found.D, slopes.dv)


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_the_numeric_linearisation_is_the_rate_of_a_short_step(base):
    model = examples.crab().model("physical", base)
    rng = np.random.default_rng(2)
    q = model.random_configuration(rng)
    v, tau = rng.standard_normal((2, model.nv))
    found, step = model.linearize(q, v, tau), model.step_derivatives(q, v, tau, DT)
    close(found.A, (step.A - np.eye(2 * model.nv)) / DT, FIRST_ORDER)
    close(found.B, step.B / DT, FIRST_ORDER)
    many = model.linearize(np.stack([q, q]), np.stack([v, -v]), tau)
    back = model.linearize(q, -v, tau)
    close(many.A, np.stack([found.A, back.A]))
    close(many.B, np.stack([found.B, back.B]))


def test_linearising_explains_what_it_cannot_do():
    with complains(StateError, "virtual joints", "model.linearize"):
        examples.snake(3).equations("physical", "free").linearize()
    with complains(SizeError, "6 x 6", "symbols='none'"):
        examples.snake(7).equations("physical").linearize(q=0)
    with complains(StateError, "q has 3 entries", "2 joints"):
        examples.snake(3).equations("physical").linearize(q=[0, 0, 0])


# -- regressor -------------------------------------------------------------------------------------


def parameters_of(model):
    """Ten numbers for each moving link, from the model's arrays by the parallel-axis theorem."""
    found = []
    for k in range(1, len(model.mass)):
        m, c = model.mass[k], model.center[k]
        J = model.inertia[k] + m * (c @ c * np.eye(3) - np.outer(c, c))
        found += [m, *(m * c), J[0, 0], J[0, 1], J[0, 2], J[1, 1], J[1, 2], J[2, 2]]
    return np.array(found)


def evaluated(regressor, model, theta, values=None):
    """A function of the motion for Y and Y_base, and pi, as numbers."""
    motion = [sympy.Symbol(f"{x}{k + 1}") for x in ("q", "dq", "ddq") for k in range(model.nv)]
    values = values or {}
    whole = sympy.lambdify([*motion, *values], [regressor.Y, regressor.Y_base])
    pi = sympy.lambdify([*regressor.theta, *values], list(regressor.pi))
    return lambda *at: whole(*at, *values.values()), np.array(pi(*theta, *values.values()))


CASES = {
    "snake": examples.snake(4),
    "crab": examples.crab(),
    "arm with a slide": examples.arm("bac").with_parameters(viscous=0.0),
    "random": random_organism("backbone", 6, 3),
}


@pytest.mark.parametrize("name", CASES)
def test_the_regressor_gives_the_forces_and_all_that_can_be_identified(name):
    equations = CASES[name].equations("physical", symbols="none")
    model = equations.model
    regressor = equations.regressor()
    theta = parameters_of(model)
    both, pi = evaluated(regressor, model, theta)
    rng, rows, base_rows = np.random.default_rng(0), [], []
    for _ in range(40):
        q = model.random_configuration(rng)
        v, a = rng.standard_normal((2, model.nv))
        tau = model.inverse_dynamics(q, v, a)
        Y, Y_base = both(*q, *v, *a)
        rows.append(np.array(Y, dtype=float))
        base_rows.append(np.array(Y_base, dtype=float))
        close(rows[-1] @ theta, tau)
        close(base_rows[-1] @ pi, tau)
    whole, kept = np.concatenate(rows), np.concatenate(base_rows)
    assert np.linalg.matrix_rank(whole) == kept.shape[1] == np.linalg.matrix_rank(kept)


def test_base_parameters_of_the_pendulum_are_the_textbooks():
    regressor = examples.double_pendulum().equations("physical").regressor()
    hy1, hz1, Jxx1, hy2, hz2, Jxx2 = sympy.symbols("hy1 hz1 Jxx1 hy2 hz2 Jxx2")
    assert list(regressor.pi) == [hy1 + l1 * m2, hz1, Jxx1 + l1**2 * m2, hy2, hz2, Jxx2]


def identifiable(organism, base="fixed"):
    """Rank of Pinocchio's regressor over random motions: a gap must separate the two kinds."""
    tree, rng = PinocchioTree(organism, "physical", base), np.random.default_rng(0)
    model, rows = tree.model, []
    for _ in range(80):
        q = pin.normalize(model, 2 * rng.standard_normal(model.nq))
        v, a = rng.standard_normal((2, model.nv))
        rows.append(pin.computeJointTorqueRegressor(model, tree.data, q, v, a))
    stacked = np.concatenate(rows)
    lengths = np.linalg.norm(stacked, axis=0)
    values = np.linalg.svd(stacked / np.where(lengths > DEPENDENT, lengths, 1), compute_uv=False)
    assert not np.any((values > DEPENDENT * values[0]) & (values < INDEPENDENT * values[0]))
    return int(np.sum(values > INDEPENDENT * values[0]))


@pytest.mark.parametrize(("modules", "seed"), [(2, 1), (2, 13), (2, 37), (3, 5)])
def test_base_parameters_are_as_many_as_can_be_identified_for_any_angles(modules, seed):
    organism = robot(seed, modules).organism.with_parameters(viscous=0.0, coulomb=0.0)
    regressor = organism.equations("physical", symbols="none").regressor()
    assert len(regressor.pi) == identifiable(organism)
    forces_are_those_of_inverse_dynamics(organism.equations("physical", symbols="none"))


def forces_are_those_of_inverse_dynamics(equations):
    model, regressor = equations.model, equations.regressor()
    theta = parameters_of(model)
    both, pi = evaluated(regressor, model, theta, equations.values)
    rng = np.random.default_rng(1)
    q, (v, a) = model.random_configuration(rng), rng.standard_normal((2, model.nv))
    Y, Y_base = (np.array(each, dtype=float) for each in both(*q, *v, *a))
    tau = model.inverse_dynamics(q, v, a)
    close(Y @ theta, tau, LAST_DIGITS)
    close(Y_base @ pi, tau, LAST_DIGITS)


def test_base_parameters_of_a_tree_of_fourteen_bodies_can_be_identified():
    organism = robot(5, 7, branches=True).organism
    assert len(organism.modules) == 7
    assert len(organism.equations("physical", symbols="none").regressor().pi) == (
        identifiable(organism)
    )


def test_base_parameters_of_a_free_base_are_ten_and_seven_a_turning_link():
    organism = robot(4, 1).organism
    found = len(organism.equations("physical", "free", symbols="none").regressor().pi)
    assert found == identifiable(organism, "free") == 17  # Ayusawa et al. 2014: 10 + 7 n


def chain(*joints):
    """One module whose bodies follow each other: (kind, rpy) of the joints between them."""
    solid = {"mass": 1.0, "center_of_mass": (0.1, 0.04, 0.05), "inertia": (0.01, 0.02, 0.025)}
    kind = ModuleType(
        name="chain",
        symbol="k",
        size=0.1,
        bodies=[{"name": f"b{k}", **solid} for k in range(len(joints) + 1)],
        joints=[
            {
                "name": f"j{k}",
                "kind": kind,
                "parent": f"b{k}",
                "child": f"b{k + 1}",
                "position": (0.3, 0.1 * k, 0),
                "rpy": angles,
                "axis": (0, 0, 1),
            }
            for k, (kind, angles) in enumerate(joints)
        ],
        ports=[
            {
                "label": 1,
                "body": "b0",
                "position": (0, 0, 0),
                "normal": (0, 0, -1),
                "reference": (1, 0, 0),
                "connector": "x",
                "mates": ["x"],
            }
        ],
    )  # fmt: skip
    return Organism.start(kind)


R, P, ANY = "revolute", "prismatic", (0.3, 0.2, 0.1)
BACK = tuple(rpy((turned(2, 0.1) @ turned(1, 0.2) @ turned(0, 0.3))[:3, :3].T))
EIGHTH = (np.pi / 4, 0, 0)


@pytest.mark.parametrize(
    "joints",
    [
        ((R, (0, 0, 0)), (R, ANY)),
        ((R, (0, 0, 0)), ("fixed", EIGHTH), (R, EIGHTH)),  # two eighths: at right angles
        ((R, (0, 0, 0)), ("fixed", ANY), (R, BACK)),  # there and back: parallel
        ((R, (0, 0, 0)), (P, ANY), (R, BACK)),  # parallel beyond a slide
        ((R, (0, 0, 0)), (P, (0, 0, 0.4)), (R, ANY)),
        ((P, ANY), (P, ANY), (R, ANY)),
    ],
)
def test_axes_that_angles_make_parallel_in_sum_are_parallel_to_the_regressor(joints):
    organism = chain(*joints)
    equations = organism.equations("physical")
    assert len(equations.regressor().pi) == identifiable(organism)
    forces_are_those_of_inverse_dynamics(equations)


@pytest.mark.parametrize("tilt", [0, 1e-14, 1e-9, 1e-6, 0.1, np.pi / 2])
def test_exact_rotations_are_orthogonal_and_where_the_floats_are(tilt):
    near_lock = turned(2, 0.7) @ turned(1, np.pi / 2 - tilt) @ turned(0, -2.1)
    anywhere = any_pose(np.random.default_rng(3))
    for T in (near_lock, turned(0, tilt), turned(1, -tilt), turned(2, tilt), anywhere):
        exact = exact_rotation(T[:3, :3])
        found = [[exact[i, j] for j in range(3)] for i in range(3)]
        product = exact.T @ exact
        assert all(product[i, j] == (i == j) for i in range(3) for j in range(3))
        allowed = SNAP if tilt < SNAP else 4 * np.finfo(float).eps
        np.testing.assert_allclose(np.array(found, dtype=float), T[:3, :3], rtol=0, atol=allowed)


def test_the_regressor_honors_what_was_substituted():
    equations = examples.double_pendulum().equations("physical")
    hy1, hz1, Jxx1, hy2, hz2, Jxx2 = sympy.symbols("hy1 hz1 Jxx1 hy2 hz2 Jxx2")
    length = equations.substitute(l1=3).regressor()
    assert list(length.pi) == [hy1 + 3 * m2, hz1, Jxx1 + 9 * m2, hy2, hz2, Jxx2]
    assert l1 not in length.Y.free_symbols
    w = sympy.Symbol("w")
    renamed = equations.substitute(l1="a", dq1="w").substitute(a=2).regressor()
    assert list(renamed.pi) == [hy1 + 2 * m2, hz1, Jxx1 + 4 * m2, hy2, hz2, Jxx2]
    assert w in renamed.Y.free_symbols
    weightless = equations.substitute(g=0).regressor()
    assert list(weightless.pi) == [Jxx1 + l1**2 * m2, hy2, hz2, Jxx2]
    still = equations.substitute(dq1=0, dq2=0, ddq1=0, ddq2=0).regressor()
    assert list(still.pi) == [hy1 + l1 * m2, hz1, hy2, hz2]
    assert l1 in equations.regressor().Y.free_symbols  # the first one is as it was


@pytest.mark.parametrize("values", [{"m1": 2}, {"m1": "m"}, {"l1": "hx1"}])
def test_the_regressor_refuses_what_means_something_else_there(values):
    equations = examples.double_pendulum().equations("physical").substitute(values)
    (key,) = values
    with complains(StateError, key, str(values[key]), "whole links"):
        equations.regressor()


def test_an_external_wrench_enters_the_linearisation_as_it_does_n():
    equations = examples.double_pendulum().equations("physical", external=["m2"])
    q = sympy.symbols("q1 q2")
    found = equations.linearize(q=None)
    expected = equations.N.jacobian(sympy.Matrix(q))
    assert sympy.simplify(found.K - expected).is_zero_matrix
    assert found.K.has(sympy.Symbol("F2_y"))
