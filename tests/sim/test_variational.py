"""The variational integrator: symplectic in (q, p), energy without a trend, momenta exact."""

import numpy as np
import pytest

from modurob import Organism, examples, simulate
from modurob.organism.examples import HANGING
from modurob.stepping import INTEGRATORS, StepSettings
from modurob.stepping.motion import EquationOfMotion, Stopped
from modurob.stepping.variational import PREDICTOR
from oracles import complains
from oracles.differences import columns

SYMPLECTIC = 1e-9  # of J^T W J - W: eighth-order differences of one step
STEP = 8e-3  # [s] of the long runs: the fastest swing of the pendulum takes about twenty
STEPS, RK4_STEPS = 100_000, 30_000  # RK4 shows its drift earlier
BOUND = 1e-3  # of the swing's energy
NO_TREND = 5e-6  # of the swing's energy, between the mean errors of the first and the last tenth
EXACT = 1e-11  # momentum after thousands of steps: rounding errors
MODULES = 6


def pendulum(modules=MODULES):
    """A chain of cubes that hangs from a fixed one."""
    return examples.snake(modules + 1).with_base_pose(HANGING).model("physical")


def one_step(model, q, p, h):
    """(q, p) -> (q, p) by the integrator's own step, from scratch."""
    method = INTEGRATORS["Variational"](EquationOfMotion(model), StepSettings(1e-8, 1e-8, h))
    method.forget(method.scheme.velocity(q, p))
    return method.step(0.0, h, q, p)


def rk4_step(model, q, p, h):
    method = INTEGRATORS["RK4"](EquationOfMotion(model), StepSettings(1e-8, 1e-8, h))
    v = np.linalg.solve(model.mass_matrix(q), p)
    q, v = method.advance(0.0, h, 1, q.copy(), v)
    return q, model.mass_matrix(q) @ v


def defect(step, model, q, p, h):
    """How far the map is from symplectic: the largest entry of J^T W J - W."""
    n = model.nv

    def mapped(change):
        return np.concatenate(step(model, q + change[:n], p + change[n:], h))

    J = columns(mapped, 2 * n, step=1e-3)
    W = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])
    return np.abs(J.T @ W @ J - W).max()


@pytest.mark.parametrize("h", [1e-3, 2e-2])
def test_a_step_is_a_symplectic_map(h):
    model, rng = pendulum(3), np.random.default_rng(1)
    q, v = 0.6 * rng.standard_normal((2, model.nv))
    p = model.mass_matrix(q) @ v
    assert defect(one_step, model, q, p, h) < SYMPLECTIC


def test_a_step_of_rk4_is_not_symplectic():
    model, rng = pendulum(3), np.random.default_rng(1)
    q, v = 0.6 * rng.standard_normal((2, model.nv))
    p = model.mass_matrix(q) @ v
    assert defect(rk4_step, model, q, p, 2e-2) > 1e3 * SYMPLECTIC


def test_a_step_there_and_a_step_back_lead_home():
    model, rng = pendulum(3), np.random.default_rng(2)
    q, v = 0.6 * rng.standard_normal((2, model.nv))
    p = model.mass_matrix(q) @ v
    there = one_step(model, q, p, 1e-2)
    back = one_step(model, *there, -1e-2)
    np.testing.assert_allclose(back[0], q, atol=1e-13)
    np.testing.assert_allclose(back[1], p, atol=1e-13)


def test_velocities_are_guessed_by_the_polynomial_through_the_last_ones():
    for n, weights in enumerate(PREDICTOR, start=1):
        for power in range(n):
            assert weights @ np.arange(n) ** power == pytest.approx(n**power)


@pytest.mark.parametrize("changed", ["q", "v"])
def test_a_run_that_goes_on_from_another_state_forgets_the_last_one(changed):
    """Momenta are kept from call to call, but only those of the state that was reached."""
    model = pendulum(2)
    methods = [
        INTEGRATORS["Variational"](EquationOfMotion(model), StepSettings(1e-8, 1e-8, 1e-2))
        for _ in range(2)
    ]
    q, v = methods[0].advance(0.0, 1e-2, 3, np.array([0.3, -0.2]), np.array([1.0, 2.0]))
    state = (-q, v) if changed == "q" else (q, -v)
    found, fresh = (method.advance(0.0, 1e-2, 1, *(x.copy() for x in state)) for method in methods)
    np.testing.assert_allclose(found, fresh, rtol=1e-12)


def test_a_step_whose_guess_leads_nowhere_begins_at_the_last_velocity(monkeypatch):
    model = pendulum(2)
    q, p = np.array([0.3, -0.2]), np.array([0.1, 0.2])
    expected = one_step(model, q, p, 1e-2)
    method = INTEGRATORS["Variational"](EquationOfMotion(model), StepSettings(1e-8, 1e-8, 1e-2))
    method.forget(method.scheme.velocity(q, p))
    solve, failures = method._solve, [True]
    monkeypatch.setattr(method, "_solve", lambda *given: not failures.pop() and solve(*given))
    failures[:] = [False, True]
    np.testing.assert_allclose(method.step(0.0, 1e-2, q, p), expected, rtol=1e-12)
    failures[:] = [True, True]
    with complains(Stopped, "no solution nearby; take a smaller dt or softer forces"):
        method.step(0.5, 1e-2, q, p)


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_the_slope_of_a_step_near_rest_is_that_of_its_friction(base):
    """Which is stiff there: rounds of Newton's method would not converge without it."""
    rough = examples.snake(3).with_parameters(coulomb=5.0, viscous=0.1)
    model = rough.model("physical", base=base, gravity=(0, 0, 0))
    method = INTEGRATORS["Variational"](EquationOfMotion(model), StepSettings(1e-8, 1e-8, 1e-4))
    q, v = model.neutral(), np.zeros(model.nv)
    p, z = method.scheme.begin(q, v)

    def missing(change):
        return method.scheme.equation(0.0, 1e-4, q, p, z + change)[1].copy()

    slope = method.scheme.equation(0.0, 1e-4, q, p, z)[0].copy()
    found = -columns(missing, len(z), step=1e-6)
    np.testing.assert_allclose(slope, found, atol=1e-5 * np.abs(found).max())
    M = model.mass_matrix(q)[-2:, -2:]
    assert slope[-1, -1] > 3 * M[-1, -1]  # friction is the largest part


def energy_errors(name, steps):
    """Of the six-module pendulum, over the energy of its swing."""
    model = pendulum()
    q = np.deg2rad(30.0) * np.eye(model.nq)[0]
    swing = model.potential_energy(q) - model.potential_energy(np.zeros(model.nq))
    found = simulate(model, q, None, STEP * steps, None, name, dt=STEP, record=20 * STEP)
    return (found.energy - found.energy[0]) / swing


def test_energy_has_no_trend_over_a_hundred_thousand_steps_where_rk4_drifts():
    ours, theirs = energy_errors("Variational", STEPS), energy_errors("RK4", RK4_STEPS)
    tenth = len(ours) // 10
    assert np.abs(ours).max() < BOUND
    assert abs(ours[-tenth:].mean() - ours[:tenth].mean()) < NO_TREND
    drift = theirs[: len(theirs) // 10 * 10].reshape(10, -1).mean(axis=1)
    assert np.all(np.diff(drift) < 0)  # down, and down, and down
    assert drift[-1] - drift[0] < -10 * NO_TREND  # in a third of the steps


def test_momentum_of_a_tumbling_organism_is_exact():
    model = examples.crab().model("physical", base="free", gravity=(0, 0, 0))
    rng = np.random.default_rng(3)
    q, v = model.random_configuration(rng), rng.standard_normal(model.nv)
    found = simulate(model, q, v, 5.0, None, "Variational", dt=5e-3, record=0.5)
    assert np.abs(found.momentum - found.momentum[0]).max() < EXACT


def test_a_fall_adds_no_error():
    """Gravity moves a free body's center of mass and nothing else, at any step."""
    rng = np.random.default_rng(4)
    falling, floating = (
        examples.snake(3).model("physical", base="free", gravity=(0, 0, g)) for g in (-9.81, 0.0)
    )
    q, v = falling.random_configuration(rng), rng.standard_normal(falling.nv)
    one, other = (
        simulate(m, q, v, 1.0, None, "Variational", dt=1e-2, record=0.1)
        for m in (falling, floating)
    )
    np.testing.assert_allclose(one.q[:, 3:], other.q[:, 3:], atol=EXACT)
    fallen = falling.center_of_mass(one.q) - floating.center_of_mass(other.q)
    np.testing.assert_allclose(fallen[:, 2], -9.81 * one.t**2 / 2, atol=EXACT)


def test_a_symmetric_top_turns_as_euler_says():
    """A cube of unequal inertia: nutation of a free symmetric top in closed form."""
    top = Organism.start("backbone").with_parameters(inertia=[2e-3, 2e-3, 1e-3])
    model = top.model("physical", base="free", gravity=(0, 0, 0))
    w = np.array([0.6, 0.0, 5.0])
    v = np.concatenate([np.zeros(3), w])
    found = simulate(model, None, v, 1.0, None, "Variational", dt=1e-3)
    rate = (2e-3 - 1e-3) / 2e-3 * w[2]  # of w about the body's axis
    expected = 0.6 * np.stack([np.cos(rate * found.t), -np.sin(rate * found.t)], axis=1)
    np.testing.assert_allclose(found.v[:, 5], 5.0, atol=1e-9)
    np.testing.assert_allclose(np.abs(found.v[:, 3:5]), np.abs(expected), atol=1e-5)


def test_friction_and_torques_enter_as_forces():
    """A driven arm with friction, against a tight adaptive run."""
    model = examples.arm("ba").with_parameters(viscous=0.3, coulomb=0.1).model("physical")

    def law(t, q, v):
        return 0.5 * np.sin(4 * t) - 0.4 * q - 0.1 * v

    exact = simulate(model, [0.3, 0.5], [0.2, -1.0], 0.5, law, "DOP853", rtol=1e-11, atol=1e-11)
    found = simulate(model, [0.3, 0.5], [0.2, -1.0], 0.5, law, "Variational", dt=2.5e-4)
    np.testing.assert_allclose(found.q[-1], exact.q[-1], atol=1e-5)
    np.testing.assert_allclose(found.v[-1], exact.v[-1], atol=1e-5)


def test_a_controller_of_a_free_base_sees_its_true_velocity():
    """A thruster that damps the base's flight, at second order."""
    model = examples.snake(2).model("physical", base="free", gravity=(0, 0, -1.0))
    rng = np.random.default_rng(6)
    q, v = model.random_configuration(rng), rng.standard_normal(model.nv)

    def law(t, q, v):
        push = np.zeros(model.nv)
        push[:6] = -0.5 * v[:6]
        push[0] -= 0.3 * q[0]
        return push

    exact = simulate(model, q, v, 0.5, law, "DOP853", rtol=1e-12, atol=1e-12)
    errors = []
    for h in (4e-3, 2e-3):
        found = simulate(model, q, v, 0.5, law, "Variational", dt=h, record=0.5)
        errors.append(np.abs(found.v[-1] - exact.v[-1]).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.15)
