"""Linearisation and regressor against the numeric model and against linear algebra."""

import numpy as np
import pytest
import sympy

from modurob import SizeError, StateError, examples
from oracles.complaints import complains
from oracles.organisms import random_organism

ROUNDING = 1e-10  # of inverses of mass matrices with entries of 0.01 kg m^2
DT = 1e-6  # s; a step this short shows the rates of change
FIRST_ORDER = 1e-3  # relative, of a difference over that step

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
    motion = [sympy.Symbol(f"{x}{k + 1}") for x in ("q", "dq", "ddq") for k in range(model.nv)]
    both = sympy.lambdify([motion], [regressor.Y, regressor.Y_base], cse=True)
    theta = parameters_of(model)
    pi = np.array(regressor.pi.subs(dict(zip(regressor.theta, theta, strict=True))), dtype=float)[
        :, 0
    ]
    rng, rows, base_rows = np.random.default_rng(0), [], []
    for _ in range(40):
        q = model.random_configuration(rng)
        v, a = rng.standard_normal((2, model.nv))
        tau = model.inverse_dynamics(q, v, a)
        Y, Y_base = both([*q, *v, *a])
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
