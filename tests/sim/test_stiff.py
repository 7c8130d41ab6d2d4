"""Friction and stops that are faster than a step, against SciPy on the same accelerations."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from modurob import Ground, Organism, StateError, examples, friction, simulate
from modurob.control import PdGravity
from modurob.control.closed_loop import rehearsed
from modurob.distributed.balancing.plant import STOPS, GearedDrive, with_drives
from modurob.dynamics import implicit_step_velocity
from modurob.equations.links import SLIP_SPEED
from modurob.friction import substeps
from modurob.sim import SimulationError, Stops
from modurob.stepping import INTEGRATORS, LinearStops, StepSettings
from modurob.stepping.contact import GroundContact
from modurob.stepping.motion import LARGEST, EquationOfMotion, diverged
from modurob.stepping.scipy_methods import TOO_FAST
from modurob.stepping.stops import StopForces
from oracles import complains
from oracles.organisms import random_organism

END = 0.3  # [s]
COARSE = 0.005  # [s] some fifty times the arm's fastest decay
NEAR = {"RK4": 1e-6, "Variational": 1e-3, "SemiImplicitEuler": 1e-2}  # errors at 5 ms
DIFFERENCES = 1e-6  # of the largest slope: central differences, and forward ones of laws
SOLVED = 1e-13  # of the largest term of an equation
ADAPTED = 1e-6  # of states, at tolerances of 1e-9

fixed_step = pytest.mark.parametrize("name", NEAR)


@pytest.fixture(scope="module")
def arm():
    """The built-in arm with 10 N m s/rad, as datasheets of geared joints have it."""
    return examples.arm("babac").with_parameters(viscous=10.0).model("physical")


def start(model, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-0.5, 0.5, model.nv), rng.standard_normal(model.nv)


def exact(model, q, v, tau=0.0, end=END):
    def rates(t, x):
        q, v = np.split(x, 2)
        return np.append(v, model.forward_dynamics(q, v, tau + np.zeros(model.nv)))

    done = solve_ivp(rates, (0, end), np.append(q, v), "LSODA", rtol=1e-10, atol=1e-12)
    return np.split(done.y[:, -1], 2)


# -- the fastest rate ------------------------------------------------------------------------------


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_the_rate_is_the_fastest_eigenvalue_of_the_accelerations(base):
    organism = examples.snake(4).with_parameters(viscous=2.0, coulomb=0.3)
    model, rng = organism.model("physical", base), np.random.default_rng(3)
    rest = np.zeros(model.nv)
    slowest = []
    for _ in range(20):
        q = model.random_configuration(rng)
        slopes = model.forward_dynamics_derivatives(q, rest, rest)
        slowest.append(np.linalg.eigvals(slopes.dv).real.min())
    assert max(-np.array(slowest)) <= 1.2 * model.friction_rate.rate
    assert model.friction_rate.rate <= 1.2 * max(-np.array(slowest))
    assert model.friction_rate is model.friction_rate  # kept


@pytest.mark.parametrize(
    ("organism", "module"),
    [
        (examples.superbot_tree(branches=2, length=1, rng=np.random.default_rng(0)), "m0"),
        (examples.superbot_walker(), "m2"),  # the 32nd is the fastest
    ],
)
@pytest.mark.parametrize("friction", [{"viscous": 1.0}, {"coulomb": 0.1}])
def test_the_rate_is_the_fastest_of_the_neutral_and_31_random_configurations(
    organism, module, friction
):
    bare = organism.with_parameters(viscous=0.0, coulomb=0.0)
    model = bare.with_parameters(module, **friction).model("physical")
    rng, rest, rates = np.random.default_rng(0), np.zeros(model.nv), []
    for q in [model.neutral(), *(model.random_configuration(rng) for _ in range(31))]:
        slopes = model.forward_dynamics_derivatives(q, rest, rest)
        rates.append(-np.linalg.eigvals(slopes.dv).real.min())
    assert model.friction_rate.rate == pytest.approx(max(rates), rel=1e-6)
    assert np.ptp(rates) > 0.1 * max(rates)


def test_a_body_without_friction_has_no_rate():
    assert examples.crab().model().friction_rate == (0.0, "")


def test_the_rate_is_proportional_to_viscous_friction_however_little_there_is():
    slow, fast = (
        examples.snake(3).with_parameters(viscous=d).model("physical").friction_rate.rate
        for d in (1e-7, 1.0)
    )
    assert slow == pytest.approx(1e-7 * fast, rel=1e-9)


def test_the_joint_of_the_rate_is_the_rough_one():
    organism = examples.snake(4).with_parameters("m2", viscous=5.0)
    model = organism.model("physical")
    assert model.friction_rate.joint.startswith("m2.")


# -- fixed steps -----------------------------------------------------------------------------------


@fixed_step
def test_a_stiff_arm_moves_as_it_should_in_coarse_steps(arm, name):
    q, v = start(arm)
    found = simulate(arm, q, v, END, None, name, dt=COARSE)
    assert len(found.t) == 61  # recorded at the steps that were asked for
    expected = exact(arm, q, v)
    np.testing.assert_allclose(found.q[-1], expected[0], rtol=0, atol=NEAR[name])
    np.testing.assert_allclose(found.v[-1], expected[1], rtol=0, atol=NEAR[name])


@pytest.mark.parametrize("name", ["RK4", "SemiImplicitEuler"])
def test_a_batch_of_stiff_arms_is_many_single_runs(arm, name):
    q, v = np.array([start(arm, seed) for seed in range(3)]).transpose(1, 0, 2)
    batch = simulate(arm, q, v, 0.05, None, name, dt=COARSE)
    for k in range(3):
        single = simulate(arm, q[k], v[k], 0.05, None, name, dt=COARSE)
        np.testing.assert_allclose(batch.q[:, k], single.q, rtol=0, atol=1e-11)


@fixed_step
def test_dry_friction_brings_a_joint_to_rest_and_holds_it(name):
    """A rail of m kg that slides at 0.05 m/s against 20 N, and is pushed with 10 N."""
    model = (
        examples.arm("c")
        .with_parameters(viscous=0.0, coulomb=20.0)
        .model("physical", gravity=(0, 0, 0))
    )
    found = simulate(model, None, [0.05], 0.1, lambda t, q, v: [10.0], name, dt=1e-3)
    creep = SLIP_SPEED * 10 / np.sqrt(20**2 - 10**2)  # where rounded friction holds the push
    np.testing.assert_allclose(found.v[60:, 0], creep, rtol=0.01)


@pytest.mark.parametrize("name", ["RK4", "Variational"])
def test_steps_that_would_take_for_ever_are_refused_with_a_step_that_works(name):
    model = examples.arm("ba").with_parameters(viscous=1e5).model("physical")
    with pytest.raises(StateError, match=f"{name} with steps of 0.1 s .* substeps") as caught:
        simulate(model, None, None, 1.0, None, name, dt=0.1)
    number = float(str(caught.value).split("take dt = ")[1].split()[0])
    assert "friction of 'm" in str(caught.value)
    INTEGRATORS[name](EquationOfMotion(model), StepSettings(1e-8, 1e-8, 0.9 * number))
    simulate(model, None, None, 1.0, None, "SemiImplicitEuler", dt=0.1)


@pytest.mark.parametrize(
    ("values", "piece"),
    [((0.0, 1.0), "the stops' stiffness"), ((np.nan, 1.0), "stiffness"), ((1.0, -1.0), "damping")],
)
def test_linear_stops_are_stiff_and_do_not_push(values, piece):
    with complains(StateError, piece):
        LinearStops(*values)


def test_a_step_is_cut_into_a_thousand_parts_at_most():
    """Each part is short enough for RK4, which is stable up to 2.78 over the rate."""
    assert substeps(2000.0, "friction", 1.0, "RK4", "wait") == 1000
    assert substeps(2.0, "friction", 1.0, "RK4", "wait") == 1
    assert substeps(2.1, "friction", 1.0, "RK4", "wait") == 2
    with complains(StateError, "1,001 substeps"):
        substeps(2001.0, "friction", 1.0, "RK4", "wait")
    with complains(StateError, "dt = 8.0e-01 s or less, or wait"):
        substeps(2500.0, "friction", 1.0, "RK4", "wait")


@pytest.mark.parametrize("name", [*NEAR])
def test_hard_stops_hold_in_coarse_steps(name):
    model = examples.snake(2).model("physical")
    hard = Stops(frequency=500.0)
    found = simulate(model, [model.lower[0] + 0.05], [-2.0], 0.2, None, name, stops=hard, dt=2e-3)
    assert found.q.min() > model.lower[0] - 0.05
    assert np.abs(found.v).max() < 3.0


@pytest.mark.parametrize("name", [*NEAR])
def test_stops_that_no_step_can_follow_are_refused(name):
    with complains(StateError, name, "the stops", "1/s", "take dt ="):
        simulate(
            examples.snake(2).model("physical"), None, None, 1.0, None, name,
            stops=Stops(frequency=1e9),
        )  # fmt: skip


def test_a_rehearsal_of_a_stiff_arm_does_not_diverge(arm):
    law = PdGravity(arm, kp=20.0, kd=0.5, sample_time=COARSE)
    q, v = start(arm)
    way = rehearsed(law, np.zeros(arm.nv), q, v, 0.2)
    assert not way.diverged
    assert np.abs(way.v[-1]).max() < np.abs(v).max()


def test_balancing_takes_the_friction_of_datasheets_implicitly():
    rough = {"viscous": 10.0, "coulomb": 1.0}
    model = examples.snake(4).with_parameters(**rough).model("physical")
    plant = with_drives(model, GearedDrive(friction=0.3), np.zeros(model.nv, dtype=bool))
    q, v = model.neutral(), np.full(model.nv, 0.5)
    drives = examples.snake(4).with_parameters(viscous=10.3, coulomb=1.0).model("physical")
    expected = exact(drives, q, v, end=0.1)
    found = simulate(plant, q, v, 0.1, None, "SemiImplicitEuler", dt=1e-3, stops=STOPS)
    np.testing.assert_allclose(found.q[-1], expected[0], rtol=0, atol=2e-3)  # first order at 1 ms
    np.testing.assert_allclose(found.v[-1], expected[1], rtol=0, atol=2e-2)


# -- the implicit velocity -------------------------------------------------------------------------


def test_the_implicit_velocity_solves_its_equation_for_any_friction():
    rng = np.random.default_rng(0)
    for _ in range(300):
        n = int(rng.integers(1, 8))
        B = rng.standard_normal((n, n)) * 10 ** rng.uniform(-2, 0, (n, 1))
        A = B @ B.T + 1e-5 * np.eye(n)
        dry = 10 ** rng.uniform(-6, 0) * rng.uniform(0, 1, n)
        right = A @ rng.standard_normal(n) * 10 ** rng.uniform(-4, 1)
        u = friction.solve_with_dry_friction(A, right, dry)
        left = right - A @ u - dry * u / np.sqrt(u * u + SLIP_SPEED * SLIP_SPEED)
        assert np.abs(left).max() < SOLVED * (np.abs(right).max() + dry.max())
        rows = friction.solve_with_dry_friction(np.array([A, A]), np.array([right, -right]), dry)
        np.testing.assert_allclose(rows, [u, -u], rtol=1e-9, atol=1e-12)
        for unit in (1e8, 1e-8):
            same = friction.solve_with_dry_friction(unit * A, unit * right, unit * dry)
            np.testing.assert_allclose(same, u, rtol=1e-9, atol=1e-12)


def test_a_solution_that_was_not_found_is_no_velocity(monkeypatch):
    """Where the joint nearly sticks the first guess is off by about a percent."""
    monkeypatch.setattr(friction, "ROUNDS", 0)
    for unit in (1.0, 1e-6, 1e6):
        A, right, dry = unit * np.eye(1), unit * np.array([0.3]), unit * np.ones(1)
        assert np.isnan(friction.solve_with_dry_friction(A, right, dry)).all()


def test_the_fastest_rate_is_sought_in_32_configurations(monkeypatch):
    """The neutral one and 31 at random, the same ones each time."""
    model, asked = examples.snake(3).with_parameters(viscous=1.0).model("physical"), []
    original = type(model).mass_matrix
    monkeypatch.setattr(
        type(model), "mass_matrix", lambda self, q: asked.append(q) or original(self, q)
    )
    first, again = friction.fastest_rate(model), friction.fastest_rate(model)
    assert [q.shape for q in asked] == [(32, 2), (32, 2)]
    assert not asked[0][0].any()
    assert len(np.unique(asked[0], axis=0)) == 32
    assert first == again


def test_a_singular_equation_has_no_velocity():
    for batch in ((), (1,)):
        A, right = np.zeros((*batch, 2, 2)), np.ones((*batch, 2))
        assert np.isnan(friction.solve_with_dry_friction(A, right, np.zeros(2))).all()


def test_forces_that_act_at_the_end_of_a_step_make_it_backward_euler():
    """A slide on a spring with a damper: m (u - v) = h (-k (x + h u) - c u)."""
    model = examples.arm("c").with_parameters(viscous=0.0).model("physical", gravity=(0, 0, 0))
    x, v, h, k, c = 0.1, 0.7, 0.05, 300.0, 20.0
    q, M, none = np.array([x]), model.mass_matrix([x]), np.zeros(1)
    slopes = (np.array([-k]), np.array([-c]))
    tau = np.array([-k * x - c * v])
    u = implicit_step_velocity(model, q, np.array([v]), tau, h, M, none, None, slopes)
    m = M.item()
    assert u.item() == pytest.approx((m * v - h * k * x) / (m + h * c + h * h * k))


def test_a_body_without_joints_has_an_implicit_velocity_without_numbers():
    model, none = Organism.start("backbone").model("physical"), np.zeros(0)
    found = friction.implicit_velocity(model, np.zeros((0, 0)), none, none, 0.01)
    assert found.shape == (0,)


def test_a_step_never_turns_a_velocity_round_by_friction():
    """Explicit up to a decay of one in a step, implicit beyond."""
    model = examples.arm("c").with_parameters(viscous=2.0).model("physical", gravity=(0, 0, 0))
    for decay, left in ((0.5, 0.5), (0.95, 0.05), (1.05, 1 / 2.05), (1.9, 1 / 2.9), (9, 0.1)):
        _, v = model.step([0.0], [1.0], [0.0], decay / model.friction_rate.rate)
        assert v.item() == pytest.approx(left)


def test_force_and_slope_are_those_of_the_equations_of_motion():
    organism = examples.snake(4).with_parameters(viscous=0.3, coulomb=0.2)
    smooth = organism.with_parameters(viscous=0.0, coulomb=0.0)
    for base in ("fixed", "free"):
        model, bare = organism.model("physical", base), smooth.model("physical", base)
        rng = np.random.default_rng(2)
        q, v, a = model.random_configuration(rng), *1e-3 * rng.standard_normal((2, model.nv))
        expected = model.inverse_dynamics(q, v, a) - bare.inverse_dynamics(q, v, a)
        np.testing.assert_allclose(friction.force(model, v), expected, atol=1e-12)
        by, none = (m.inverse_dynamics_derivatives(q, v, a).dv for m in (model, bare))
        np.testing.assert_allclose(np.diag(friction.slope(model, v)), by - none, atol=1e-9)


# -- implicit methods of SciPy ---------------------------------------------------------------------


def law(t, q, v):
    tau = np.zeros(len(v))
    tau[-1] = np.cos(t) - 3.0 * q[-1] * np.abs(v[-1])
    return tau


CASES = {
    "arm": ("fixed", {}),
    "free": ("free", {}),
    "driven": ("free", {"drive": law}),
    "pushed": ("free", {"external": {"m2": [1.0, 2.0, 3.0, 0.1, 0.2, 0.3]}}),
    "driven and pushed": ("fixed", {"drive": law, "external": {"m2": lambda t: [t] * 6}}),
}


def differenced(integrator, t, y, step=1e-6):
    units = step * np.eye(len(y))
    pairs = [(integrator._rates(t, y + e), integrator._rates(t, y - e)) for e in units]
    return np.stack([(one - other) / (2 * step) for one, other in pairs], axis=-1)


@pytest.mark.parametrize("case", CASES)
def test_the_jacobian_for_scipy_is_that_of_the_rates(case):
    base, options = CASES[case]
    organism = examples.snake(4).with_parameters(viscous=0.1, coulomb=0.05)
    model, rng = organism.model("physical", base), np.random.default_rng(5)
    integrator = INTEGRATORS["Radau"](
        EquationOfMotion(model, **options), StepSettings(1e-8, 1e-8, np.inf)
    )
    y = np.append(model.random_configuration(rng), rng.standard_normal(model.nv))
    if model.free_base:
        y[3:7] *= 1.001  # on its way the quaternion is a little longer
    expected = differenced(integrator, 0.3, y)
    found = integrator._jacobian(0.3, y)
    np.testing.assert_allclose(found, expected, rtol=0, atol=DIFFERENCES * np.abs(expected).max())


def test_the_jacobian_has_the_forces_of_the_ground():
    organism = examples.snake(3)
    model = organism.model("physical", base="free")
    q, v = model.neutral(), -0.1 * np.arange(1.0, 1 + model.nv)
    q[2] = 0.049  # lower corners are about a millimeter deep, and sink
    contact = GroundContact(Ground(), model, organism, q, None)
    integrator = INTEGRATORS["Radau"](
        EquationOfMotion(model, ground=contact), StepSettings(1e-8, 1e-8, np.inf)
    )
    y = np.append(q, v)
    expected = differenced(integrator, 0.0, y, 1e-8)
    found = integrator._jacobian(0.0, y)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * np.abs(expected).max())
    assert np.abs(found[model.nq + 2, 2]) > 100  # the ground is stiff


@pytest.mark.parametrize("speed", [-3.0, 0.5])
def test_the_jacobian_holds_beyond_the_stops(speed):
    """Further out, and so fast inward that the stop lets go."""
    model = examples.snake(3).model("physical")
    stops = StopForces(Stops(damping=0.5), model, model.neutral())
    integrator = INTEGRATORS["Radau"](
        EquationOfMotion(model, stops=stops), StepSettings(1e-8, 1e-8, np.inf)
    )
    y = np.concatenate([model.upper + 0.05, [speed, -0.2]])
    expected = differenced(integrator, 0.0, y)
    found = integrator._jacobian(0.0, y)
    np.testing.assert_allclose(found, expected, rtol=0, atol=DIFFERENCES * np.abs(expected).max())


@pytest.mark.parametrize("name", ["Radau", "BDF", "LSODA"])
def test_implicit_methods_finish_calm_runs_with_dry_friction(name):
    """The first joint turns about the vertical: no force depends on its position."""
    model = examples.arm("bab").with_parameters(coulomb=0.2, viscous=0.1).model("physical")
    q, v = start(model)
    found = simulate(model, q, 0.5 * v, 0.2, None, name, rtol=1e-9, atol=1e-9)
    expected = exact(model, q, 0.5 * v, end=0.2)
    np.testing.assert_allclose(found.q[-1], expected[0], rtol=0, atol=ADAPTED)
    np.testing.assert_allclose(found.v[-1], expected[1], rtol=0, atol=ADAPTED)


@pytest.mark.parametrize("name", ["Radau", "BDF"])
def test_the_exact_jacobian_saves_evaluations(name, monkeypatch):
    arm = examples.arm("babac").model("physical")
    q, v = start(arm)
    asked = []
    original = EquationOfMotion.acceleration
    monkeypatch.setattr(
        EquationOfMotion, "acceleration", lambda self, *x: asked.append(x[0]) or original(self, *x)
    )
    counts = []
    for implicit in (True, False):
        asked.clear()
        monkeypatch.setattr(INTEGRATORS[name], "implicit", implicit)
        simulate(arm, q, v, END, None, name, rtol=1e-6, atol=1e-8)
        counts.append(len(asked))
    assert counts[0] < 0.9 * counts[1]


@pytest.mark.parametrize("name", ["RK45", "DOP853", "LSODA", "Radau", "BDF"])
def test_a_trial_state_out_of_range_is_rejected_not_fatal(name, arm):
    integrator = INTEGRATORS[name](EquationOfMotion(arm), StepSettings(1e-8, 1e-8, np.inf))
    y = np.zeros(2 * arm.nv)
    y[3] = 2 * LARGEST
    rates = integrator._rates(0.0, y)
    assert (rates == TOO_FAST).all() if name == "LSODA" else np.isnan(rates).all()
    assert "m3.joint" in str(integrator._rejected)
    assert not integrator._jacobian(0.0, y).any()


@pytest.mark.parametrize("name", ["RK45", "DOP853", "LSODA", "Radau", "BDF"])
def test_a_run_goes_on_after_a_trial_state_without_an_acceleration(name, monkeypatch):
    """As when the numbers of one trial state are too large for the compiled code."""
    model = examples.double_pendulum().model("physical")
    original, asked = EquationOfMotion.acceleration, []

    def acceleration(self, t, q, v):
        asked.append(t)
        if len(asked) == 40:
            raise StateError("the numbers are too large")
        return original(self, t, q, v)

    calm = simulate(model, [0.4, 0.1], None, 0.5, None, name)
    monkeypatch.setattr(EquationOfMotion, "acceleration", acceleration)
    found = simulate(model, [0.4, 0.1], None, 0.5, None, name)
    np.testing.assert_allclose(found.q[-1], calm.q[-1], rtol=0, atol=1e-6)


def test_a_state_has_run_away_beyond_ten_billion():
    model = examples.double_pendulum().model("physical")
    for x, found in ((np.array([0.0, -9e9]), None), (np.array([0.0, -1.1e10]), "m1.hinge")):
        for q, v in ((x, 0 * x), (0 * x, x)):
            stopped = diverged(model, 0.0, q, v)
            assert stopped is None if found is None else found in str(stopped)


@pytest.mark.parametrize("name", ["RK45", "DOP853", "LSODA", "Radau", "BDF"])
def test_a_runaway_is_said_to_have_diverged(name):
    model = examples.arm("c").with_parameters(viscous=0.05).model("physical")
    with pytest.raises(SimulationError, match=r"it diverged: .* joint 'm0.joint' is -?[1-9].*e"):
        simulate(model, None, None, 20.0, lambda t, q, v: 60.0 * v + 2.0, name)


@pytest.mark.parametrize("seed", range(2))
def test_radau_agrees_with_an_explicit_method_on_random_free_bodies(seed):
    organism = random_organism("superbot", 2, seed).with_parameters(viscous=0.5)
    model, rng = organism.model("physical", "free"), np.random.default_rng(seed)
    q, v = model.random_configuration(rng), rng.standard_normal(model.nv)
    one, other = (
        simulate(model, q, v, 0.1, None, name, rtol=1e-9, atol=1e-9) for name in ("Radau", "RK45")
    )
    np.testing.assert_allclose(one.q[-1], other.q[-1], rtol=0, atol=ADAPTED)
    np.testing.assert_allclose(one.v[-1], other.v[-1], rtol=0, atol=ADAPTED)


def test_friction_of_a_joint_that_moves_nothing_has_no_rate():
    """Its mass matrix is singular everywhere; forward dynamics says which joint that is."""
    rough = examples.double_pendulum().with_parameters(viscous=0.1)
    assert rough.model("dyad").friction_rate == (0.0, "")
    assert rough.model("physical").friction_rate.rate > 0
