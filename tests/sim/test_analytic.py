"""Simulation with closed forms: the same motion as with the recursions."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import modurob as mr
from modurob.cli import cli
from oracles import complains

SAME = 1e-9  # [rad] between two runs with the same steps, whose accelerations differ by rounding
PENDULUM = mr.examples.double_pendulum()


@pytest.fixture(scope="module")
def equations():
    return PENDULUM.equations("physical")


@pytest.mark.parametrize("integrator", ["RK45", "RK4", "Radau"])
def test_closed_forms_move_as_the_recursions(equations, integrator):
    start = ([1.2, -0.4], [0.3, 0.0], 0.5)
    options = {"integrator": integrator, "controller": lambda t, q, v: -0.2 * v}
    analytic = mr.simulate(equations, *start, **options)
    numeric = mr.simulate(equations.model, *start, **options)
    np.testing.assert_allclose(analytic.q, numeric.at(analytic.t)[0], rtol=0, atol=SAME)
    assert len(analytic.t) == len(numeric.t)


def test_a_batch_moves_by_closed_forms(equations):
    q = np.random.default_rng(0).uniform(-1, 1, (4, 2))
    analytic, numeric = (
        mr.simulate(each, q, None, 0.05, integrator="RK4") for each in (equations, equations.model)
    )
    np.testing.assert_allclose(analytic.q, numeric.q, rtol=0, atol=SAME)


def test_a_free_base_with_friction_moves_by_closed_forms():
    organism = mr.Organism.start("backbone").dock("m0", 3, "m1", 4)
    organism = organism.with_parameters(viscous=0.05)
    equations = organism.equations("dyad", "free", symbols="none")
    rng = np.random.default_rng(1)
    v = rng.standard_normal(equations.model.nv)
    analytic, numeric = (mr.simulate(each, None, v, 0.02) for each in (equations, equations.model))
    np.testing.assert_allclose(analytic.q, numeric.at(analytic.t)[0], rtol=0, atol=SAME)


def test_substituted_numbers_take_the_place_of_the_organisms(equations):
    """The formulas are in use, not the twin's arrays: a pendulum without gravity stays."""
    start = ([0.5, 0.2], [0.0, 0.0], 0.2)
    still = mr.simulate(equations.substitute(g=0), *start)
    np.testing.assert_allclose(still.q, np.broadcast_to(start[0], still.q.shape), atol=1e-12)
    falls = mr.simulate(equations, *start)
    assert abs(falls.q[-1] - start[0]).max() > 0.01
    # friction that is stiff takes another way, through mass matrix and bias
    rough = PENDULUM.with_parameters(viscous=5000.0).equations("physical").substitute(g=0)
    still = mr.simulate(rough, *start, integrator="SemiImplicitEuler")
    np.testing.assert_allclose(still.q, np.broadcast_to(start[0], still.q.shape), atol=1e-12)


def test_the_twin_of_formulas_answers_as_the_model(equations):
    twin, model, rng = equations.as_model(), equations.model, np.random.default_rng(3)
    q, v, x = rng.standard_normal((3, 4, 2))
    for name, given in (
        ("forward_dynamics", (q, v, x)), ("inverse_dynamics", (q, v, x)), ("mass_matrix", (q,)),
        ("coriolis_matrix", (q, v)), ("center_of_mass", (q,)), ("momentum", (q, v)),
    ):  # fmt: skip
        ours, theirs = getattr(twin, name)(*given), getattr(model, name)(*given)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=SAME)
        prepared = twin.prepare(name)(*(each[0] for each in given))
        np.testing.assert_allclose(prepared, theirs[0], rtol=0, atol=SAME)


def test_the_twin_of_formulas_says_where_it_has_no_answer(equations):
    zero, wrench = np.zeros(2), {"m1": np.ones(6)}
    twin = equations.as_model()
    for ask in (twin.forward_dynamics, twin.inverse_dynamics):
        with complains(mr.StateError, "a run with equations has no external wrenches"):
            ask(zero, zero, zero, external=wrench)
    with complains(mr.StateError, "the formulas give no finite numbers at this state"):
        twin.forward_dynamics(np.ones(2), np.array([1e200, 0.0]), zero)
    massless = equations.substitute(m1=0, m2=0).as_model()
    with complains(mr.StateError, "the mass matrix of the formulas is singular here"):
        massless.forward_dynamics(zero, zero, zero)


def test_runs_that_formulas_cannot_make_are_refused(equations):
    start = (None, None, 0.1)
    with complains(mr.StateError, "Variational", "give it a model"):
        mr.simulate(equations, *start, integrator="Variational")
    with complains(mr.StateError, "events change", "give a model"):
        mr.simulate(equations, *start, events=[mr.Undock(0.05, "m1")])
    with complains(mr.StateError, "no external wrenches", "give it a model"):
        mr.simulate(equations, *start, external={"m1.A": np.ones(6)})
    with complains(mr.StateError, "no ground", "give a model"):
        mr.simulate(equations, *start, ground=mr.Ground(height=-3.0))
    with complains(mr.StateError, "no value for", "F1_z", "substitute"):
        mr.simulate(PENDULUM.equations("physical", external=["m1"]), *start)
    with complains(mr.StateError, "q1 was replaced", "as a symbol"):
        mr.simulate(equations.substitute(q1=0), *start)


def test_the_command_overlays_both_and_says_how_they_differ(tmp_path):
    command = ["simulate", "double_pendulum", "--start", "90,0", "--duration", "0.3", "--equations"]
    plot, saved = tmp_path / "both.svg", tmp_path / "run.json"
    result = CliRunner().invoke(
        cli, [*command, "--plot", str(plot), "--save-scenario", str(saved), "--json"]
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["difference_of_numbers"] < SAME
    assert plot.exists()
    assert mr.Scenario.load(saved).analytic
    with complains(mr.StateError, "analytic: formulas have the masses of the datasheets"):
        mr.Scenario(organism="double_pendulum", hinges="physical", analytic=True, masses=2.0).run()


def test_a_plot_draws_a_second_run_over_the_first(equations):
    run = mr.simulate(equations.model, [0.3, 0.1], None, 0.1)
    alone, both = run.plot("q"), run.plot("q", overlay=run)
    assert len(both.axes[0].lines) == len(alone.axes[0].lines) + 2
    other = mr.simulate(mr.examples.crane().model("physical"), None, None, 0.1)
    with complains(mr.StateError, "overlay must be a run of the same body"):
        run.plot("q", overlay=other)
