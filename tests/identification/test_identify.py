"""Identification: torques of unseen motions, confidence intervals, wrong modules, bad runs."""

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from scipy.interpolate import BSpline
from scipy.stats import multivariate_normal, norm

import modurob as mr
from modurob import StateError
from modurob.identification import BaseParameter, Suspect, identify, problem, suspects
from modurob.identification.parameters import parameter_set
from modurob.identification.runs import Samples, samples_of, smoothed
from oracles.complaints import complains
from oracles.identified_runs import motion, noisy, pinocchio_torques, recorded
from oracles.pinocchio_tree import PinocchioTree

ARM = mr.examples.arm("babac")
MODEL = ARM.model("physical")
RANK = 1e-10  # of singular values: NumPy's solution has the least norm
FLOOR = 1.1  # of the noise: on motions that were not seen


def wrong_by(organism, error, rng):
    """The organism as it really is: every field of its datasheets wrong by about `error`."""
    model = organism.model("physical")
    parameters = parameter_set(model, organism, shared=False)
    _, slope = parameters.prior(np.zeros(parameters.size))
    return parameters.organism_with(error / slope * rng.standard_normal(parameters.size))


def run_of(true, model, rng, duration=5.0, states=200):
    """A run with noise, its torques without, and the noise."""
    t, q, v, a = motion(model, duration, states, rng)
    tau = pinocchio_torques(true, true.model("physical"), q, v, a)
    measured, sigma = noisy(tau, rng)
    return recorded(model, t, q, v, a, measured), tau, sigma


def pinocchio_regressor(tree, run, at):
    """Rows of Pinocchio's regressor of a run, with viscous friction."""
    rows = []
    for q, v, a in zip(run.q, run.v, run.a, strict=True):
        full = np.zeros((3, tree.model.nv))
        full[:, at] = q, v, a
        Y = pin.computeJointTorqueRegressor(tree.model, tree.data, *full)
        rows.append(np.hstack([Y, np.diag(full[1])])[at])
    return np.concatenate(rows)


@pytest.mark.parametrize("seed", range(4))
def test_torques_of_unseen_motions_are_predicted_to_the_noise_and_better_than_by_least_squares(
    seed,
):
    rng = np.random.default_rng(seed)
    true = wrong_by(ARM, 0.2, rng)
    run, _, _ = run_of(true, MODEL, rng)
    unseen, clean, sigma = run_of(true, MODEL, rng)
    fit = identify(MODEL, run, accelerations="recorded")
    tree = PinocchioTree(ARM, "physical")
    at = [tree.model.joints[tree.joints[name]].idx_v for name in MODEL.joint_names]
    theta = np.linalg.lstsq(pinocchio_regressor(tree, run, at), run.tau.ravel(), rcond=RANK)[0]
    ordinary = (pinocchio_regressor(tree, unseen, at) @ theta).reshape(clean.shape)
    ours = fit.model.inverse_dynamics(unseen.q, unseen.v, unseen.a)

    def rmse(tau, reference):
        return np.sqrt(np.mean(((tau - reference) / sigma) ** 2))

    assert rmse(ours, unseen.tau) < FLOOR * rmse(clean, unseen.tau)
    assert rmse(ours, unseen.tau) < rmse(ordinary, unseen.tau)
    assert rmse(ours, clean) < rmse(ordinary, clean) / 1.5  # what is left beside the noise


def true_value(parameter, organism):
    """A base parameter of an organism, by the definitions of moments and friction."""
    total = 0.0
    for name, factor in parameter.terms.items():
        module, part, letter = name.split(".")
        kind = organism.kind(module)
        if letter in ("viscous", "coulomb"):
            total += factor * getattr(kind.joint(part), letter)
            continue
        body = kind.bodies[kind.body_index(part)]
        c = np.array(body.center_of_mass)
        J = np.array(body.inertia) + body.mass * (c @ c * np.eye(3) - np.outer(c, c))
        axes = ["xyz".index(axis) for axis in letter[1:]]
        moment = {"m": body.mass, "h": body.mass * c, "J": J}[letter[0]]
        total += factor * (moment[tuple(axes)] if axes else moment)
    return total


def test_confidence_intervals_cover_the_truth_as_often_as_they_say():
    """Monte Carlo over datasheet errors and noise; found - true over std is standard normal."""
    organism, rng, error = mr.examples.arm("ba"), np.random.default_rng(0), 0.15
    model, deviations = organism.model("physical"), []
    for _ in range(60):
        true = wrong_by(organism, error, rng)
        run, _, _ = run_of(true, model, rng, states=80)
        fit = identify(model, run, accelerations="recorded", datasheet_error=error)
        deviations.append([(p.found - true_value(p, true)) / p.std for p in fit.parameters])
        for p, row in zip(fit.parameters, fit.covariance, strict=True):
            assert row[fit.parameters.index(p)] == pytest.approx(p.std**2)
    z = np.array(deviations)
    covered = np.mean(np.abs(z) < 1.96)
    assert 0.92 < covered < 0.98


@pytest.mark.parametrize("error", [0.1, 0.4])
def test_runs_of_mere_noise_leave_the_errors_of_the_datasheets(monkeypatch, error):
    """Of the logarithm of a friction: a base parameter by itself."""
    monkeypatch.setattr(problem, "UNSEEN", 1e9)  # else they are refused
    t, q, v, a = motion(MODEL, 5.0, 60, np.random.default_rng(2))
    tau = MODEL.inverse_dynamics(q, v, a)
    size = np.sqrt(np.mean(tau**2, axis=0))
    tau += 100 * size * np.random.default_rng(3).standard_normal(tau.shape)
    run = recorded(MODEL, t, q, v, a, tau)
    fit = identify(MODEL, run, accelerations="recorded", datasheet_error=error)
    shares = [p.std / p.found for p in fit.parameters if p.name.endswith("viscous")]
    np.testing.assert_allclose(shares, error, rtol=0.02)
    assert len(shares) == 5


def with_field(organism, module, part, field, change):
    """The organism with one field of one datasheet changed by a function."""
    data = organism.kind(module).model_dump()
    for entry in (*data["bodies"], *data["joints"]):
        if entry["name"] == part:
            entry[field] = change(np.array(entry[field]))
    return organism.with_kinds({module: mr.ModuleType(**data)})


@pytest.mark.parametrize(
    ("module", "part", "field", "change"),
    [
        ("m1", "distal", "mass", lambda m: 2 * m),
        ("m2", "joint", "viscous", lambda d: 1.2 * d),
        ("m3", "distal", "mass", lambda m: 0.5 * m),
        ("m3", "distal", "center_of_mass", lambda c: c + np.array([0.03, 0, 0])),
        ("m4", "distal", "mass", lambda m: 2 * m),
    ],
)
def test_the_field_that_is_wrong_is_found_and_named(module, part, field, change):
    true = with_field(ARM, module, part, field, change)
    run, _, _ = run_of(true, MODEL, np.random.default_rng(5), states=400)
    (suspect,) = identify(MODEL, run, accelerations="recorded").suspects
    assert f"{module}.{part}.{field}" in (
        f"{suspect.module}.{suspect.field}",
        *suspect.alternatives,
    )
    assert suspect.sigmas > 4


def test_right_datasheets_are_not_suspected():
    rng = np.random.default_rng(6)
    for _ in range(10):
        run, _, _ = run_of(ARM, MODEL, rng, states=100)
        fit = identify(MODEL, run, accelerations="recorded")
        assert fit.suspects == ()
    assert repr(fit) == f"<Identification: {len(fit.parameters)} base parameters, suspects: none>"
    with pytest.raises(dataclasses.FrozenInstanceError):
        fit.delay = 0.0
    assert len({fit, fit}) == 1  # compared by identity: it holds arrays
    given = parameter_set(MODEL, ARM, shared=False)
    part = problem.reduced(given, samples_of(MODEL, run, "recorded"))
    for value, name in ((given, "shared"), (part, "delay")):
        assert value != dataclasses.replace(value)
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, name, 0.0)


def test_an_interval_holds_95_percent_of_a_normal_distribution():
    low, high = BaseParameter("m1.distal.Jxx", {}, 1.0, 2.0, 0.1).interval
    assert (low, high) == pytest.approx((2 + 0.1 * norm.ppf(0.025), 2 + 0.1 * norm.ppf(0.975)))


def test_numbers_that_no_run_depends_on_stay_as_they_are():
    true = ARM.with_parameters("m4", mass=1.5)
    run, _, _ = run_of(true, MODEL, np.random.default_rng(15))
    fit = identify(MODEL, run, accelerations="recorded")
    turning = fit.organism.kind("m0").bodies[1]  # about a vertical axis: its mass has no effect
    assert turning.mass == pytest.approx(ARM.kind("m0").bodies[1].mass, rel=1e-9)
    assert fit.organism.kind("m0").bodies[0] == ARM.kind("m0").bodies[0]
    assert all(fit.organism.kind(m).ports == ARM.kind(m).ports for m in ARM.modules)


def test_modules_of_one_kind_share_their_numbers_if_asked():
    arm = mr.examples.arm("bab")
    true, model = arm.with_parameters("m0", "m2", mass=1.3), arm.model("physical")
    run, _, _ = run_of(true, model, np.random.default_rng(7))
    fit = identify(model, run, accelerations="recorded", shared=True)
    assert fit.organism.kind("m0") == fit.organism.kind("m2") != arm.kind("m0")
    assert {suspect.module for suspect in fit.suspects} == {"giusti_b"}
    alone = identify(model, run, accelerations="recorded")
    assert alone.organism.kind("m0") != alone.organism.kind("m2")
    assert len(fit.parameters) < len(alone.parameters)


def test_dry_friction_and_mass_are_found_from_a_simulated_run(tmp_path):
    """Velocities with noise, accelerations estimated from them; another engine of torques."""
    given = mr.examples.double_pendulum().with_parameters(viscous=0.5, coulomb=1.0)
    true = given.with_parameters("m2", mass=1.4).with_parameters("m0", coulomb=3.0)
    model, rng = given.model("physical"), np.random.default_rng(8)
    law = mr.control.ComputedTorque(model)
    swing = mr.gaits.Sine(model.joint_names, [0.9, 0.7], frequency=[0.6, 0.9], ramp=0.5)
    run = mr.simulate(
        true.model("physical"), None, None, 8.0, law, rtol=1e-6, reference=swing, record=0.01
    )
    tau, _ = noisy(run.tau, rng)
    part = dataclasses.replace(
        run.parts[0], tau=tau, v=run.v + 0.01 * rng.standard_normal(run.v.shape)
    )
    fit = identify(model, [part])
    assert {suspect.module for suspect in fit.suspects} == {"m2", "m0"}
    sigmas = [suspect.sigmas for suspect in fit.suspects]
    assert sigmas == sorted(sigmas, reverse=True)  # worst first
    assert fit.organism.kind("m0").joints[0].coulomb == pytest.approx(3.0, rel=0.1)
    fit.organism.save(tmp_path / "new.json")
    assert mr.load(tmp_path / "new.json") == fit.organism


def test_a_free_body_is_identified_from_its_joint_torques_alone():
    """The base feels no torque: six equations without noise, which tell even the total mass."""
    given = mr.examples.crab()
    true, model = given.with_parameters("m3", mass=1.5), given.model("dyad", "free")
    phase = np.arange(len(model.joint_names))

    def swing(t, q, v):
        joints = 0.3 * np.sin(2 * np.pi * (0.7 + 0.3 * phase) * t + phase)
        return np.concatenate([np.zeros(6), joints - q[7:] - 0.1 * v[6:]])

    run = mr.simulate(true.model("dyad", "free"), None, None, 3.0, swing, rtol=1e-6, record=0.01)
    fit = identify(model, run)
    assert {suspect.module for suspect in fit.suspects} == {"m3"}
    assert fit.organism.kind("m3").mass == pytest.approx(1.5, rel=0.01)
    assert fit.organism.kind("m2").mass == pytest.approx(1.0, rel=0.01)


def test_a_torque_that_is_held_between_samples_is_no_wrong_datasheet():
    """Half a sample of delay, which is found, would look like wrong inertias."""
    t, q, v, a = motion(MODEL, 5.0, 400, np.random.default_rng(9))
    half = (t[1] - t[0]) / 2
    ahead = q + half * v + half**2 / 2 * a, v + half * a
    later = np.gradient(a, t, axis=0) * half + a
    tau = MODEL.inverse_dynamics(*ahead, later)
    fit = identify(MODEL, recorded(MODEL, t, q, v, a, tau))
    assert fit.delay == pytest.approx(-half, rel=0.02)
    assert fit.suspects == ()


def test_velocities_with_noise_give_accelerations():
    rng = np.random.default_rng(10)
    t, _, v, a = motion(MODEL, 5.0, 1000, rng)
    noise = 0.02 * np.sqrt(np.mean(v**2, axis=0))
    rates, slopes = smoothed(t, v + noise * rng.standard_normal(v.shape))
    inside = slice(20, -20)
    assert np.all(np.std((rates - v)[inside], axis=0) < 0.5 * noise)
    errors = np.sqrt(np.mean((slopes - a)[inside] ** 2, axis=0)) / np.sqrt(np.mean(a**2, axis=0))
    differences = np.gradient(v + noise * rng.standard_normal(v.shape), t, axis=0) - a
    raw = np.sqrt(np.mean(differences**2, axis=0)) / np.sqrt(np.mean(a**2, axis=0))
    assert np.all(errors < 0.1 * raw)


def test_long_runs_are_reduced_in_pieces(monkeypatch):
    run, _, _ = run_of(ARM, MODEL, np.random.default_rng(14), states=100)
    whole = identify(MODEL, [run, run], accelerations="recorded")
    monkeypatch.setattr(problem, "CHUNK", 30 * MODEL.nv * MODEL.nbodies)
    pieces = identify(MODEL, [run, run], accelerations="recorded")
    np.testing.assert_allclose(pieces.covariance, whole.covariance, rtol=1e-6, atol=1e-15)


def edited(run, **changes):
    return dataclasses.replace(run, **changes)


def test_bad_runs_are_refused_in_one_line():
    rng = np.random.default_rng(11)
    run, _, _ = run_of(ARM, MODEL, rng, states=100)
    with complains(StateError, "run 0 has 5 states"):
        cut = {name: getattr(run, name)[:5] for name in ("t", "q", "v", "tau")}
        identify(MODEL, edited(run, **cut))
    with complains(StateError, "no torques", "driven"):
        identify(MODEL, edited(run, tau=np.zeros_like(run.tau)))
    with complains(StateError, "run 1 is of another body", "m4.joint"):
        identify(
            mr.examples.arm("bab").model("physical"),
            [run_of(mr.examples.arm("bab"), mr.examples.arm("bab").model("physical"), rng)[0], run],
        )
    with complains(StateError, "placement"):
        identify(mr.examples.arm("bbbbc").model("physical"), run)
    with complains(StateError, "gravity"):
        identify(ARM.model("physical", gravity=(0, 0, -1.6)), run)
    with complains(StateError, "at least one run"):
        identify(MODEL, [])
    with complains(StateError, "a Trajectory", "str"):
        identify(MODEL, ["run.npz"])
    with complains(StateError, "estimated, recorded"):
        identify(MODEL, run, accelerations="guessed")
    with complains(StateError, "datasheet_error"):
        identify(MODEL, run, datasheet_error=0)
    for error in (0.9e-3, 3.1):
        with complains(StateError, "datasheet_error", "0.001 to 3"):
            identify(MODEL, run, datasheet_error=error)
    for model in (dataclasses.replace(MODEL, organism=None, options=None), ARM):
        with complains(StateError, "organism.model()"):
            identify(model, run)
    with complains(StateError, "no joint that moves"):
        identify(mr.Organism.start("backbone").model("physical"), run)
    with complains(StateError, "runs are trajectories, got int"):
        identify(MODEL, 3)
    with complains(StateError, "run 0 is of a fixed base, the model has a free base"):
        identify(ARM.model("physical", "free"), run)


def test_runs_that_excite_too_little_name_what_they_do_not_see():
    rng = np.random.default_rng(12)
    t, q, v, a = motion(MODEL, 5.0, 200, rng)
    still = np.array([1, 1, 1, 1, 0])  # the slide
    q, v, a = q * still, v * still, a * still
    tau = MODEL.inverse_dynamics(q, v, a)
    with complains(StateError, "m4.joint.viscous", "exciting_motion"):
        identify(MODEL, recorded(MODEL, t, q, v, a, tau), accelerations="recorded")
    t, q, v, a = motion(MODEL, 3e4, 200, rng)
    tau = MODEL.inverse_dynamics(q, v, a)
    with complains(StateError, "Jzz", "base parameters"):
        identify(MODEL, recorded(MODEL, t, q, v, a, tau), accelerations="recorded")


def test_a_run_at_rest_says_nothing():
    t, pose = np.linspace(0.0, 2.0, 50), np.array([0.3, 0.5, -0.2, 0.4, 0.05])
    q, rest = np.tile(pose, (50, 1)), np.zeros((50, 5))
    run = recorded(MODEL, t, q, rest, rest, np.tile(MODEL.gravity_torque(pose), (50, 1)))
    named = "m0.distal.Jzz, m1.distal.hx, m1.distal.Jxy, m1.distal.Jxz, m1.distal.Jyz, ... (26 in"
    with complains(StateError, "the runs do not excite 27 of 31", named, "last m4.joint.viscous"):
        identify(MODEL, run, accelerations="recorded")


def test_samples_are_the_states_of_all_runs_without_the_ends_of_estimates():
    rng = np.random.default_rng(13)
    short, long = (run_of(ARM, MODEL, rng, states=n)[0] for n in (20, 100))
    samples = samples_of(MODEL, [short, long], "recorded")
    np.testing.assert_array_equal(samples.q, np.concatenate([short.q, long.q]))
    np.testing.assert_array_equal(samples.tau, np.concatenate([short.tau, long.tau]))
    inner = samples_of(MODEL, long, "estimated")  # two states at either end are left out
    np.testing.assert_array_equal(inner.q, long.q[2:-2])
    np.testing.assert_allclose(inner.v, long.v[2:-2], atol=0.05)
    with complains(StateError, "run 0 has 19 states; record 20 or more"):
        samples_of(MODEL, run_of(ARM, MODEL, rng, states=19)[0], "recorded")
    moved = dataclasses.replace(MODEL, gravity=MODEL.gravity + np.array([0, 0, 1e-8]))
    with complains(StateError, "gravity differs by 1e-08"):
        samples_of(moved, short, "recorded")
    almost = dataclasses.replace(MODEL, gravity=MODEL.gravity + np.array([0, 0, 1e-10]))
    assert len(samples_of(almost, short, "recorded").q) == 20


def test_a_batch_of_runs_is_as_many_samples():
    rng = np.random.default_rng(17)
    pair = [run_of(ARM, MODEL, rng, states=60)[0] for _ in range(2)]
    both = {name: np.stack([getattr(x, name) for x in pair], axis=1) for name in ("q", "v", "tau")}
    batch = dataclasses.replace(pair[0], **both, _accelerations=None)
    for kind, kept in (("recorded", slice(None)), ("estimated", slice(1, -1))):
        samples = samples_of(MODEL, batch, kind)
        for name in ("q", "tau"):
            expected = both[name][kept].reshape(-1, 5)
            np.testing.assert_array_equal(getattr(samples, name), expected)
        alone = samples_of(MODEL, pair[1], "estimated")
        if kind == "estimated":
            np.testing.assert_allclose(samples.a[1::2], alone.a, atol=1e-9)
            np.testing.assert_allclose(samples.v[1::2], alone.v, atol=1e-12)


def test_the_noise_of_few_samples_is_that_of_the_sensors():
    """Base parameters that were fitted are no samples of the noise."""
    given, ratios = parameter_set(MODEL, ARM, shared=False), []
    for seed in range(12):
        run, _, sigma = run_of(ARM, MODEL, np.random.default_rng(seed), states=25)
        found = problem.reduced(given, samples_of(MODEL, run, "recorded"))
        ratios.append(np.mean((found.noise / sigma) ** 2))
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.15)  # three standard deviations


def test_the_noise_is_that_of_three_weighted_fits_one_after_the_other():
    """The first without weights; a further one would still change it."""
    given = parameter_set(MODEL, ARM, shared=False)
    run, _, _ = run_of(ARM, MODEL, np.random.default_rng(4), states=25)
    samples = samples_of(MODEL, run, "recorded")
    found = problem.reduced(given, samples)
    Y = given.columns(samples.q, samples.v, samples.a)[..., found.base.kept]
    A = np.concatenate([samples.rate[..., None], Y], axis=-1)
    fits, sigma = [], np.ones(5)
    for _ in range(4):
        rows = (A / sigma[:, None]).reshape(-1, A.shape[-1])
        # the motors' inertia is known
        known = samples.tau - MODEL.inverse_dynamics(samples.q, samples.v, samples.a)
        b = known + given.columns(samples.q, samples.v, samples.a) @ given.given
        scale = np.linalg.norm(rows, axis=0)
        x = np.linalg.lstsq(rows / scale, (b / sigma).ravel(), rcond=None)[0] / scale
        sigma = np.sqrt(np.sum((b - A @ x) ** 2, axis=0) / (25 - A.shape[-1] / 5))
        fits.append(sigma)
    np.testing.assert_allclose(found.noise, fits[2], rtol=1e-6)
    assert np.abs(fits[3] / fits[2] - 1).max() > 1e-4


def test_splines_of_degree_five_are_smoothed_into_themselves():
    t = np.linspace(0.0, 2.0, 60)
    v = np.stack([t**5 - 2 * t**3, 3 - t], axis=1)
    rates, slopes = smoothed(t, v)
    np.testing.assert_allclose(rates, v, atol=1e-9)
    np.testing.assert_allclose(
        slopes, np.stack([5 * t**4 - 6 * t**2, -1 + 0 * t], axis=1), atol=1e-7
    )


@pytest.mark.parametrize(
    ("count", "high", "noise", "seed"),
    [*((30, 17, 0.15, seed) for seed in (0, 2, 12, 18)),
     (30, 0, 0.3, 1),  # two pieces
     (28, 27, 0.05, 1)],  # nine, with as many coefficients as half of the samples
)  # fmt: skip
def test_the_number_of_pieces_is_that_of_the_least_cross_validation(count, high, noise, seed):
    """With as many degrees of freedom as the trace of the matrix that smooths."""
    t, rng = np.linspace(0, 1, count), np.random.default_rng(seed)
    v = np.sin(7 * t) + 0.3 * np.sin(high * t) + noise * rng.standard_normal(count)
    fits = []
    for pieces in (2, 3, 4, 5, 7, 9):
        inner = np.quantile(t, np.linspace(0, 1, pieces + 1)[1:-1])
        knots = np.concatenate([np.zeros(6), inner, np.ones(6)])
        B = BSpline.design_matrix(t, knots, 5).toarray()
        smoothing = B @ np.linalg.pinv(B)
        rest = v - smoothing @ v
        fits.append((count * rest @ rest / (count - np.trace(smoothing)) ** 2, smoothing @ v))
    rates, _ = smoothed(t, v[:, None])
    np.testing.assert_allclose(rates[:, 0], min(fits, key=lambda fit: fit[0])[1], atol=1e-9)


def test_a_suspect_is_told_with_what_else_it_may_be():
    one = Suspect("m1", "distal.mass", 1.0, 2.5, 7.26, ("m2.proximal.mass",))
    text = "m1: distal.mass is 1, found 2.5 (7.3 sigma)"
    assert str(one) == f"{text}; or m2.proximal.mass"
    assert str(one._replace(alternatives=())) == text


def test_what_columns_span_is_projected_away():
    A = np.random.default_rng(0).standard_normal((6, 2))
    for columns in (A, np.c_[A, A @ [1.0, -2.0]]):  # the last depends on the others
        P = suspects._beyond(columns)
        np.testing.assert_allclose(P @ columns, 0, atol=1e-12)
        np.testing.assert_allclose(P @ P, P, atol=1e-12)
        assert np.trace(P) == pytest.approx(4)
    np.testing.assert_array_equal(suspects._beyond(A[:, :0]), np.eye(6))
    for share, left in ((1e-5, 4), (1e-7, 5)):  # of the second beside the first
        nearly = np.c_[A[:, 0], A[:, 0] + share * A[:, 1]]
        assert np.trace(suspects._beyond(nearly)) == pytest.approx(left)


@pytest.mark.parametrize(("factor", "count"), [(1.12, 1), (1.03, 0)])
def test_fields_that_are_wrong_by_more_than_four_percent_are_suspects(factor, count):
    """Without noise: less may be an error of the method."""
    true = with_field(ARM, "m3", "distal", "mass", lambda m: factor * m)
    t, q, v, a = motion(MODEL, 5.0, 200, np.random.default_rng(0))
    tau = true.model("physical").inverse_dynamics(q, v, a)
    found = identify(MODEL, recorded(MODEL, t, q, v, a, tau), accelerations="recorded").suspects
    assert [f"{x.module}.{x.field}" for x in found] == ["m3.distal.mass"] * count


def test_the_noise_of_a_torque_is_a_hundredth_of_it_at_least():
    """Of the largest, where none is felt: a free base."""
    model = mr.examples.crab().model("dyad", "free")
    t, rng = np.linspace(0.0, 3.0, 60), np.random.default_rng(0)
    q = np.array([model.random_configuration(rng) for _ in t])
    v, a = rng.standard_normal((2, len(t), model.nv))
    tau = model.inverse_dynamics(q, v, a)
    base = slice(0, 6)
    a[:, base] -= np.linalg.solve(model.mass_matrix(q)[:, base, base], tau[:, base, None])[
        ..., 0
    ]  # nothing pushes the base
    tau = model.inverse_dynamics(q, v, a)
    tau[:, base] = 0.0
    given = parameter_set(model, model.organism, shared=False)
    samples = Samples(q, v, a, tau, np.zeros_like(tau))
    found = problem.reduced(given, samples).noise
    size = np.sqrt(np.mean(tau**2, axis=0))
    np.testing.assert_allclose(found[6:], 0.01 * size[6:])
    np.testing.assert_allclose(found[base], 0.01 * size.max())


def test_odds_are_those_of_gaussian_residuals_with_a_field_wrong_by_its_whole_size():
    """Twice the log of the ratio of two densities, with and without the field's own variance."""
    given = parameter_set(MODEL, ARM, shared=False)
    true = with_field(ARM, "m3", "distal", "mass", lambda m: 1.3 * m)
    run, _, _ = run_of(true, MODEL, np.random.default_rng(3), states=100)
    part = problem.reduced(given, samples_of(MODEL, run, "recorded"))
    x = np.zeros(given.size)
    found = suspects._log_odds(part, x, np.zeros(given.size, dtype=bool))
    J, r, (_, slope) = part.jacobian(x), part.residual(x), given.prior(x)
    none = np.eye(len(r))
    for field, odds in zip(given.fields, found, strict=True):
        C = J[:, field.place] / slope[field.place]  # x is one over its slope for an error of one
        whole = multivariate_normal(np.zeros(len(r)), none + C @ C.T).logpdf(r)
        assert odds == pytest.approx(
            2 * (whole - multivariate_normal(cov=none).logpdf(r)), abs=1e-6
        )


# -- suspects --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def heavy_and_stiff():
    """The problem of a run of an arm with two wrong fields, of m3; and the names of all fields."""
    given = parameter_set(MODEL, ARM, shared=False)
    true = with_field(ARM, "m3", "distal", "mass", lambda m: 1.5 * m)
    true = with_field(true, "m3", "joint", "viscous", lambda d: 1.5 * d)
    run, _, _ = run_of(true, MODEL, np.random.default_rng(3), states=100)
    part = problem.reduced(given, samples_of(MODEL, run, "recorded"))
    return part, [f"{field.owner}.{field.name}" for field in given.fields]


def with_odds(monkeypatch, names, *rounds):
    """Set twice the logarithms of the odds of some fields, round by round."""
    rows = iter([*rounds, {}])

    def odds(*_):
        row = next(rows)
        return np.array([row.get(name, -np.inf) for name in names])

    monkeypatch.setattr(suspects, "_log_odds", odds)


@pytest.mark.parametrize(("factor", "count"), [(1.01, 1), (1.0, 0), (0.99, 0)])
def test_a_field_is_suspected_where_one_wrong_field_among_all_is_no_better_guess(
    monkeypatch, heavy_and_stiff, factor, count
):
    part, names = heavy_and_stiff
    even = 2 * np.log(len(names))
    with_odds(monkeypatch, names, {"m3.distal.mass": factor * even})
    found, free = suspects.find_suspects(part)
    assert [f"{x.module}.{x.field}" for x in found] == ["m3.distal.mass"] * count
    assert np.count_nonzero(free) == count


def test_fields_with_odds_of_one_to_twenty_are_alternatives(monkeypatch, heavy_and_stiff):
    part, names = heavy_and_stiff
    within, beyond = (100 - 2 * np.log(factor) for factor in (19.9, 20.1))
    odds = {"m3.distal.mass": 100, "m2.distal.mass": within, "m1.distal.mass": beyond}
    with_odds(monkeypatch, names, odds)
    ((*_, alternatives),), _ = suspects.find_suspects(part)
    assert alternatives == ("m2.distal.mass",)


def test_of_similar_odds_those_of_a_suspected_module_come_first(monkeypatch, heavy_and_stiff):
    part, names = heavy_and_stiff
    second = {"m3.joint.viscous": 49.0, "m1.joint.viscous": 50.0}
    with_odds(monkeypatch, names, {"m3.distal.mass": 100.0}, second)
    found, free = suspects.find_suspects(part)
    fields = {f"{x.module}.{x.field}": x.alternatives for x in found}
    assert fields == {"m3.distal.mass": (), "m3.joint.viscous": ("m1.joint.viscous",)}
    assert np.count_nonzero(free) == 2


@pytest.mark.parametrize(("sigmas", "count"), [(4.01, 1), (4.0, 0), (3.99, 0)])
def test_a_suspect_deviates_by_more_than_four_standard_errors(
    monkeypatch, heavy_and_stiff, sigmas, count
):
    part, names = heavy_and_stiff
    with_odds(monkeypatch, names, {"m3.distal.mass": 100.0})
    told = suspects._suspect
    monkeypatch.setattr(suspects, "_suspect", lambda *x: told(*x)._replace(sigmas=sigmas))
    found, free = suspects.find_suspects(part)
    assert (len(found), np.count_nonzero(free)) == (count, count)


def test_directions_with_a_relative_error_of_a_thousand_are_not_excited(heavy_and_stiff):
    part, _ = heavy_and_stiff
    J = part.jacobian(np.zeros(part.parameters.size))  # by relative changes, in standard errors
    least = np.linalg.svd(J, compute_uv=False).min()
    dataclasses.replace(part, R=part.R * 1.001e-3 / least).check_excitation()
    with complains(StateError, f"do not excite 1 of {len(part.z)}"):
        dataclasses.replace(part, R=part.R * 0.999e-3 / least).check_excitation()


def test_kinds_of_one_name_with_different_numbers_do_not_share_them():
    arm = mr.examples.arm("bab").with_parameters("m2", mass=1.3)
    parameters = parameter_set(arm.model("physical"), arm, shared=True)
    assert arm.kind("m0").name == arm.kind("m2").name == "giusti_b"
    assert {body.owner for body in parameters.bodies} == {"giusti_b", "giusti_a", "giusti_b@m2"}
