"""Robust and adaptive control: masses may be wrong."""

import numpy as np
import pytest

from modurob import StateError, examples, simulate
from modurob.control import Adaptive, ComputedTorque, Reference, Robust, with_scaled_masses
from modurob.control.pseudo_inertia import LinkKinematics
from modurob.control.sliding import LEFT_OVER
from modurob.spatial.inertia import pseudo_inertia
from oracles import complains
from oracles.differences import slope
from oracles.rigid_tree import PinocchioDynamics
from oracles.rough_organisms import case

SAME = 1e-10  # of the largest force: sums over up to 20 links in another order
BALANCE = 1e-9  # of the power involved
WRONG = 0.2  # of the masses


def pseudo_inertias(model):
    return pseudo_inertia(model.mass, model.center, model.inertia)


MODELS = {
    "arm": lambda: examples.arm("bac").with_parameters(viscous=0.05).model("physical"),
    "crab": lambda: examples.crab().model(),
    "snake": lambda: examples.snake(4).model("physical"),
}


def wave(model, amplitude=0.4, frequency=0.5):
    """Sines of different frequencies, so that no motion comes twice."""
    n = len(model.joint_names)
    phase, w = np.arange(n), 2 * np.pi * frequency * (1 + 0.13 * np.arange(n))
    swing = np.where(model.prismatic, 0.1, amplitude)

    def at(t):
        x = w * t + phase
        return Reference(swing * np.sin(x), swing * w * np.cos(x), -swing * w * w * np.sin(x))

    return at


def errors(true, law, motion, duration, dt):
    start = motion(0.0)
    run = simulate(true, start.q, start.v, duration, law, "RK4", dt=dt, reference=motion)
    return run, np.array([run.q[k] - motion(t).q for k, t in enumerate(run.t)])


def wrong_masses(model, seed):
    """Each link's masses wrong by 20 %, up or down."""
    sign = np.random.default_rng(seed).choice([-1.0, 1.0], len(model.mass))
    return with_scaled_masses(model, 1 + WRONG * sign)


def state(model, seed):
    rng = np.random.default_rng(seed)
    q, v = model.random_configuration(rng), rng.standard_normal(model.nv)
    return q, v, Reference(*(0.5 * rng.standard_normal((3, model.nv))))


# -- equations of motion as linear forms of pseudo-inertias ----------------------------------------


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("kinds", ["giusti", "cubes and wrists"])
def test_forces_of_pseudo_inertias_are_pinocchios_inverse_dynamics(kinds, base):
    c = case(kinds, 4, "physical", base)
    engine = PinocchioDynamics(c.tree, c.model)
    found = LinkKinematics(c.model).motions(c.q, c.v, c.v, c.x).forces(pseudo_inertias(c.model))
    expected = np.array(
        [
            engine.inverse_dynamics(q, v, a, {}) - engine.friction(v)
            for q, v, a in zip(c.q, c.v, c.x, strict=True)
        ]
    )
    assert found.size
    np.testing.assert_allclose(found, expected, rtol=0, atol=SAME * np.abs(expected).max())


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_the_reference_velocity_makes_no_power_beyond_the_change_of_inertia(base):
    """s^T C(q, v) s = s^T dM/dt s / 2, the latter by differences along the motion."""
    model = examples.snake(4).model("physical", base=base)
    rng = np.random.default_rng(1)
    q, v, s = model.random_configuration(rng), *rng.standard_normal((2, model.nv))
    links, rest = LinkKinematics(model), np.zeros(model.nv)
    P = pseudo_inertias(model)
    C_s = links.motions(q, v, s, rest).forces(P) - links.motions(q, v, rest, rest).forces(P)
    dM = slope(lambda t: model.mass_matrix(model.integrate(q, t * v)), 1e-3)
    assert s @ C_s == pytest.approx(s @ dM @ s / 2, rel=1e-7)


def test_errors_are_expected_to_decay_as_those_of_the_exact_model():
    """e'' = -rate (2 e' + rate e) until the next command, from the errors of the first."""
    model, dt = examples.crab().model(), 1e-4
    law, rng = Adaptive(model), np.random.default_rng(2)
    q, v, goal = rng.standard_normal((3, 3))
    law.command(0.0, q, v, goal)
    e, e_rate = law._expected
    np.testing.assert_allclose(np.abs([e, e_rate]), np.abs([q - goal, v]), rtol=1e-12)
    law.command(dt, q, v, goal)
    slow, decay = e_rate + law.rate * e, np.exp(-law.rate * dt)
    exact = (e + slow * dt) * decay, (e_rate - law.rate * slow * dt) * decay
    near = law.rate * dt  # the acceleration is held for a sample
    np.testing.assert_allclose(law._expected[0], exact[0], rtol=0, atol=20 * near**3)
    np.testing.assert_allclose(law._expected[1], exact[1], rtol=0, atol=20 * law.rate * near**2)


def test_powers_are_the_derivatives_by_the_inertias():
    model = MODELS["arm"]()
    q, v, aim = state(model, 2)
    law = Adaptive(model)
    s, motions = law._sliding(q, v, aim)
    slopes = motions.powers(law._root, s)
    rng = np.random.default_rng(0)
    dX = rng.standard_normal(slopes.shape)
    dX = dX + np.swapaxes(dX, -1, -2)
    expected = s @ motions.forces(law._root @ dX @ law._root)
    assert np.sum(slopes * dX) == pytest.approx(expected, rel=1e-12)


def test_inertias_go_down_the_slope_of_the_power_for_the_time_of_a_sample():
    model = MODELS["crab"]()
    law = Adaptive(model, adaptation=0.3)
    q, v, aim = state(model, 4)
    law.command(0.0, q, v, aim)
    law.command(0.001, q + 0.1, v, aim)
    now = law._sliding(q + 0.1, v, aim, law._known)
    expected = np.eye(4) - 0.001 * 0.3 * now.motions.powers(law._root, now.s)
    np.testing.assert_allclose(law.factors, expected, rtol=0, atol=1e-12)
    assert np.abs(law.factors - np.eye(4)).max() > 1e-6


def test_asked_twice_for_one_time_a_law_that_learns_answers_the_same():
    """What results for a joint without a motor follows from what was just learned."""
    model = examples.crane().with_parameters(viscous=0.5).model("physical")
    law = Adaptive(model, adaptation=5.0, passive=["m1.hinge"])
    q, v, aim = state(model, 2)
    law.command(0.0, q, v, aim)
    first = law.command(0.01, q, v, aim)
    np.testing.assert_allclose(law.command(0.01, q, v, aim), first, rtol=1e-12)
    assert np.abs(law.factors - np.eye(4)).max() > 1e-3
    assert law._sliding(q, v, aim).s[1] == 0.0


def test_typical_motions_come_back_from_a_decimeter_with_the_square_of_the_rate():
    body = examples.arm("bac").model("physical", gravity=(0, 0, 0))
    law = Robust(body, rate=3.0)
    inverse, motions = law._typical()
    found = (inverse @ motions.forces(law._pseudo_inertias())[..., None])[..., 0]
    assert found.shape == (100, 3)
    np.testing.assert_allclose(np.abs(found), 9.0 * 0.1, rtol=1e-9)
    assert {*np.sign(found[:, 0])} == {-1, 1}


def test_a_typical_motion_teaches_with_the_rate_of_the_errors():
    """adaptation tau^T M^-1 tau = rate^2 for each link, for those that hardly matter less."""
    law = Adaptive(MODELS["snake"](), sample_time=1e-6)
    speed = law.adaptation * law._typical_power()
    heavy = law._typical_power() > 0.03 * law._typical_power().sum()
    np.testing.assert_allclose(speed[heavy], law.rate**2)
    assert heavy.sum() >= 2
    assert (speed[~heavy] < law.rate**2).all()
    least = 0.03 * law._typical_power().sum()
    np.testing.assert_allclose(law.adaptation[~heavy], law.rate**2 / least)


# -- adaptive --------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", MODELS)
def test_the_lyapunov_function_of_the_adaptive_law_falls_as_it_should(body):
    """dV/dt = -rate s^T M s by forward dynamics of a body with wrong masses, learning included."""
    model = MODELS[body]()
    true = wrong_masses(model, 5)
    law = Adaptive(model, sample_time=1e-12)  # the law in continuous time
    X_true = np.eye(4) * (true.mass / model.mass)[:, None, None]
    for seed in range(5):
        q, v, aim = state(model, seed)
        a = true.forward_dynamics(q, v, law._torque(0.0, q, v, aim))
        s, motions = law._sliding(q, v, aim, law._known)
        v_r_rate = aim.a + law.rate * (aim.v - v) - law.rate * law._known
        M, P = true.mass_matrix(q), pseudo_inertias(true)
        rest = np.zeros(model.nv)
        links = LinkKinematics(true)
        C_s = links.motions(q, v, s, rest).forces(P) - links.motions(q, v, rest, rest).forces(P)
        learning = -motions.powers(law._root, s)[1:]  # dX/dt / adaptation
        rate = s @ (M @ (a - v_r_rate) + C_s) + np.sum((law.factors - X_true)[1:] * learning)
        size = np.abs(s) @ np.abs(M) @ np.abs(a) + abs(rate)
        assert rate == pytest.approx(-law.rate * s @ M @ s, abs=BALANCE * size)


@pytest.mark.parametrize("body", ["snake", "crab"])
def test_after_ten_seconds_wrong_masses_cost_a_tenth_of_computed_torques_error(body):
    model = MODELS[body]()
    true, motion, dt = wrong_masses(model, 1), wave(model), 4e-3
    left = {}
    for law in (ComputedTorque(model, sample_time=dt), Adaptive(model, sample_time=dt)):
        run, e = errors(true, law, motion, 11.0, dt)
        left[law.name] = np.sqrt(np.mean(e[run.t >= 10.0] ** 2))
        if isinstance(law, Adaptive):
            masses = run.channels["mass"]
            assert (masses >= model.mass / law.spread * (1 - 1e-12)).all()
            assert (masses <= model.mass * law.spread * (1 + 1e-12)).all()
            assert np.linalg.eigvalsh(law._pseudo_inertias()).min() > 0
    assert left["adaptive control"] < left["computed torque"] / 10
    assert left["computed torque"] > 0.05  # [rad] there was something to learn


def test_with_right_masses_nothing_is_learned_and_errors_decay_as_designed():
    """e'' + 2 rate e' + rate^2 e = 0 but for C s: settled after the settling time."""
    model = MODELS["crab"]()
    law = Adaptive(model, settling_time=0.5, sample_time=1e-3)
    run = simulate(model, None, None, 0.5, law, "RK4", dt=1e-3, reference=np.array([0.2, 0.1, 0.1]))
    assert np.abs(run.q[-1] / [0.2, 0.1, 0.1] - 1).max() < 0.03  # 2 % by design
    assert (
        np.abs(run.channels["mass"] / model.mass - 1).max() < 0.01
    )  # held torques differ a little
    at_rest = Adaptive(model)
    for k in range(10):
        at_rest.command(0.1 * k, np.zeros(3), np.zeros(3), np.zeros(3))
    np.testing.assert_array_equal(at_rest.factors, np.tile(np.eye(4), (4, 1, 1)))


def test_parameters_stay_physical_whatever_happens():
    """A body ten times as heavy and a huge gain: the bounds hold, and are the nearest ones."""
    model = MODELS["snake"]()
    law = Adaptive(model, adaptation=1e4, spread=1.5, sample_time=1e-2)
    rng = np.random.default_rng(0)
    for k in range(200):
        law.command(k * 1e-2, rng.standard_normal(3), 3 * rng.standard_normal(3), np.zeros(3))
        values = np.linalg.eigvalsh(law.factors)
        assert values.min() > 1 / 1.5 - 1e-12
        assert values.max() < 1.5 + 1e-12
        assert np.linalg.eigvalsh(law._pseudo_inertias()).min() > 0
    X = rng.standard_normal((4, 4))
    X = X + X.T
    nearest = law._projected(X[None])[0]
    for _ in range(50):  # no other matrix within the bounds is nearer
        turn, _ = np.linalg.qr(rng.standard_normal((4, 4)))
        other = turn * rng.uniform(1 / 1.5, 1.5, 4) @ turn.T
        assert np.linalg.norm(X - nearest) <= np.linalg.norm(X - other) + 1e-12


def test_nothing_is_learned_while_a_motor_is_at_its_limit():
    """For one state and for a batch, of which one row is far from the reference."""
    model, goal = examples.double_pendulum().model("physical"), np.array([0.5, 0.3])
    law = Adaptive(model, torque_limit=40.0, sample_time=5e-3)
    run = simulate(model, None, None, 0.5, law, "RK4", dt=5e-3, reference=goal)
    cut = (np.abs(run.tau[:-2]) >= 40.0).any(axis=1)  # the torque on the way to a sample
    learned = (np.diff(run.channels["mass"], axis=0)[:-1] != 0).any(axis=1)
    assert 5 < cut.sum() < 50
    assert not learned[cut].any()
    assert learned[~cut].mean() > 0.9
    pair, q = law.batched(2), np.array([[-3.0, 0.0], [0.45, 0.3]])
    pair.reset(0.0, q, 0 * q)
    for t in (0.0, 0.05):
        pair.command(t, q, 0 * q, goal)
    change = np.abs(pair.masses - model.mass).max(axis=1)
    assert change[0] < 1e-12 < 1e-3 < change[1]


def test_what_was_learned_is_kept_when_the_body_changes():
    small, large = (examples.snake(n).model("physical") for n in (3, 5))
    law = Adaptive(small, sample_time=1e-2)
    rng = np.random.default_rng(0)
    for k in range(20):
        law.command(k * 1e-2, rng.standard_normal(2), rng.standard_normal(2), np.zeros(2))
    grown = law.rebuilt(large)
    np.testing.assert_array_equal(grown.factors[1:3], law.factors[1:])
    np.testing.assert_array_equal(grown.factors[3:], np.tile(np.eye(4), (2, 1, 1)))
    assert np.abs(law.factors - np.eye(4)).max() > 1e-3
    grown.reset(0.0, np.zeros(4), np.zeros(4))
    assert np.abs(grown.factors[1:3] - np.eye(4)).max() > 1e-3
    grown.reset(0.0, np.zeros(4), np.zeros(4))  # a new run begins with the datasheets
    np.testing.assert_array_equal(grown.factors, np.tile(np.eye(4), (5, 1, 1)))


# -- robust ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", ["crab", "snake"])
def test_errors_stay_within_the_bound_of_the_robust_law(body):
    model, motion = MODELS[body](), wave(MODELS[body]())
    thin = Robust(model, mass_error=WRONG, layer=Robust(model).layer / 20)
    plain = ComputedTorque(model)
    for true in (with_scaled_masses(model, 1 - WRONG), wrong_masses(model, 1)):
        _, e = errors(true, thin, motion, 1.0, 2e-3)
        assert np.all(np.abs(e) <= thin.bound)
        _, without = errors(true, plain, motion, 1.5, 2e-3)
        assert np.abs(e).max() < 0.3 * np.abs(without).max()
    if body == "crab":  # the bound itself is less than the error without the robust term
        _, without = errors(with_scaled_masses(model, 1 + WRONG), plain, motion, 1.5, 2e-3)
        assert thin.bound[0] < 0.3 * np.abs(without[:, 0]).max()


def test_the_bound_of_one_joint_is_that_of_its_lightest_inertia():
    """Where s^2 M / 2 no longer falls: rate s^2 M = 0.3003 layer, with the error s / rate."""
    model = examples.arm("b").model("physical")
    law = Robust(model, mass_error=0.3, layer=0.01)
    lightest = 0.7 * model.mass_matrix([0.0]).item()
    s = np.sqrt(LEFT_OVER * 0.01 / (law.rate * lightest))
    assert law.bound.item() == pytest.approx(s / law.rate)


@pytest.mark.parametrize("body", MODELS)
def test_energy_of_the_robust_law_falls_outside_the_bound_for_all_inertias_within_it(body):
    """dV/dt <= -2 rate V + 0.3003 sum(layer), by forward dynamics, for random states."""
    model = MODELS[body]()
    law = Robust(model, mass_error=WRONG, layer=0.01)
    links, rest = LinkKinematics(model), np.zeros(model.nv)
    for seed in range(10):
        true = wrong_masses(model, seed)
        P = pseudo_inertias(true)
        q, v, aim = state(model, seed)
        s, _ = law._sliding(q, v, aim)
        a = true.forward_dynamics(q, v, law._torque(0.0, q, v, aim))
        C_s = links.motions(q, v, s, rest).forces(P) - links.motions(q, v, rest, rest).forces(P)
        M = true.mass_matrix(q)
        rate = s @ (M @ (a - aim.a - law.rate * (aim.v - v)) + C_s)
        assert rate <= -law.rate * s @ M @ s + LEFT_OVER * law.layer.sum()


def test_the_robust_term_of_a_slide_is_twice_the_error_of_the_mass_times_its_acceleration():
    """The sum of singular values of a 4 x 4 matrix is at most twice its Frobenius norm."""
    rail = examples.arm("c").with_parameters(viscous=0.0).model("physical", gravity=(0, 0, 0))
    law, mass = Robust(rail, rate=2.0, mass_error=0.3, layer=1e-8), rail.mass_matrix([0.0]).item()
    for e in (-0.5, 0.5):  # both push back: -rate s with s = rate e, and rho
        found = law.command(0.0, np.array([e]), np.zeros(1), [0.0]).item()
        assert found == pytest.approx(-mass * 4.0 * e * (1 + 2 * 0.3), rel=1e-6)


def test_a_layer_by_default_is_made_again_for_another_body():
    old, new = (examples.snake(n).model("physical") for n in (3, 5))
    np.testing.assert_array_equal(Robust(old, 2.0).rebuilt(new).layer, Robust(new, 2.0).layer)
    assert Robust(old, 2.0, layer=0.5).rebuilt(new).layer.tolist() == [0.5] * 4
    assert Robust(old, 2.0, layer=[0.5, 0.7]).rebuilt(new).layer.tolist() == [0.5, 0.7, 0.6, 0.6]
    first, second = Robust(old, 2.0, passive=[old.joint_names[0]]).layer
    assert first == 0 < second


def test_for_exact_masses_the_robust_law_has_no_robust_term():
    model = MODELS["crab"]()
    (q, v, aim), law = state(model, 3), Robust(model, mass_error=0.0)
    _, motions = law._sliding(q, v, aim)
    np.testing.assert_array_equal(
        law.command(0.0, q, v, aim), motions.forces(law._pseudo_inertias())
    )
    assert Robust(model, mass_error=0.99).mass_range == pytest.approx((0.01, 1.99))
    with complains(StateError, "mass_error", "0 to 0.99", "0.9901"):
        Robust(model, mass_error=0.9901)


def test_by_default_the_robust_term_adds_ten_times_the_rate_of_damping_at_most():
    model = MODELS["arm"]()
    law = Robust(model)
    inverse, motions = law._typical()
    damping = law._roughness(motions) ** 2 / law.layer  # near s = 0
    most = (damping * np.diagonal(inverse, axis1=1, axis2=2)).max(axis=0)
    np.testing.assert_allclose(most, 10 * law.rate, rtol=1e-9)


def test_learning_is_slowed_down_where_samples_and_delay_ask_for_it():
    """L of s'' + rate s' + L s = 0 is at most the rate over twice the time of a sample."""
    model = MODELS["crab"]()
    quick = Adaptive(model, sample_time=1e-5)
    slow = Adaptive(model, sample_time=0.04, delay=0.08)
    assert slow._learning_speed() == pytest.approx(slow.rate / (2 * 0.12))
    assert quick._learning_speed() < quick.rate / (2 * 1e-5)
    np.testing.assert_allclose(np.ptp(slow.adaptation / quick.adaptation), 0, atol=1e-9)


def test_rho_bounds_the_forces_of_all_wrong_inertias_and_is_not_idle():
    model = MODELS["arm"]()
    law = Robust(model, mass_error=WRONG)
    rng, share = np.random.default_rng(0), 0.0
    for seed in range(20):
        _, motions = law._sliding(*state(model, seed))
        rho, P = law._roughness(motions), law._pseudo_inertias()
        for _ in range(20):
            turn, _ = np.linalg.qr(rng.standard_normal((len(P), 4, 4)))
            wrong = rng.choice([-WRONG, WRONG], (len(P), 1, 4))
            dX = turn * wrong @ np.swapaxes(turn, -1, -2)
            force = np.abs(motions.forces(law._root @ dX @ law._root))
            assert np.all(force <= rho)
            share = max(share, float((force / rho).max()))
    assert share > 0.3
    x = np.linspace(0, 10, 100001)
    assert (x - x**2 / np.sqrt(x**2 + 1)).max() == pytest.approx(LEFT_OVER, abs=1e-9)


# -- input -----------------------------------------------------------------------------------------


def test_claims_name_the_masses_that_they_are_made_for():
    model = MODELS["crab"]()
    assert "0.8 to 1.2 times the model's" in str(Robust(model).certificate())
    assert "0.5 to 2 times the model's" in str(Adaptive(model).certificate())
    assert "exact" not in str(Adaptive(model).certificate())


def test_wrong_options_of_these_laws_are_named():
    model, z = MODELS["crab"](), np.zeros(3)
    for law in (Robust, Adaptive):
        with complains(StateError, "rate or a settling_time, not both"):
            law(model, rate=2.0, settling_time=1.0)
        with complains(StateError, "rate must be a positive number", "-1"):
            law(model, rate=-1)
    with complains(StateError, "mass_error", "0 to 0.99", "1.5"):
        Robust(model, mass_error=1.5)
    with complains(StateError, "layer must be at least"):
        Robust(model, layer=0.0)
    Robust(model, layer=1e-9)
    with complains(StateError, "spread", "1 or more", "0.5"):
        Adaptive(model, spread=0.5)
    with complains(StateError, "adaptation must be a positive number"):
        Adaptive(model, adaptation=0.0)
    with complains(StateError, "learns needs sample_time"):
        Adaptive(model, sample_time=None)
    with complains(StateError, "t must be a finite number"):
        Adaptive(model).command(np.nan, z, z, z)


def test_links_without_a_body_between_virtual_joints_have_no_force():
    """M a + C v + N of the law's link motions are those of inverse dynamics."""
    model = examples.double_pendulum().model("physical", base=["px", "pz", "ry"])
    rng = np.random.default_rng(0)
    q, v, a = rng.standard_normal((3, model.nv))
    found = LinkKinematics(model).motions(q, v, v, a).forces(pseudo_inertias(model))
    np.testing.assert_allclose(found, model.inverse_dynamics(q, v, a), rtol=0, atol=1e-9)
    assert np.isfinite(Adaptive(model).command(0.0, q, v, np.zeros(5))).all()
