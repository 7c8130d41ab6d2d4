"""Identification: torques of unseen motions, confidence intervals, wrong modules, bad runs."""

import dataclasses

import numpy as np
import pinocchio as pin
import pytest

import modurob as mr
from modurob import StateError
from modurob.identification import identify
from modurob.identification.parameters import parameter_set
from oracles.complaints import complains
from oracles.identified_runs import motion, noisy, pinocchio_torques, recorded
from oracles.pinocchio_tree import PinocchioTree

ARM = mr.examples.arm("babac")
MODEL = ARM.model("physical")
FLOOR = 1.1  # of the noise: what the issue allows on motions that were not seen


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


def ordinary_least_squares(tree, run, at):
    """Pinocchio's regressor with viscous friction, and NumPy's solution of least norm."""
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
    theta = np.linalg.lstsq(ordinary_least_squares(tree, run, at), run.tau.ravel(), rcond=1e-10)[0]
    ordinary = (ordinary_least_squares(tree, unseen, at) @ theta).reshape(clean.shape)
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
        ("m3", "distal", "center_of_mass", lambda c: c + [0.03, 0, 0]),
        ("m4", "distal", "mass", lambda m: 2 * m),
    ],
)
def test_the_field_that_is_wrong_is_found_and_named(module, part, field, change):
    true = with_field(ARM, module, part, field, change)
    run, _, _ = run_of(true, MODEL, np.random.default_rng(5), states=400)
    (suspect,) = identify(MODEL, run, accelerations="recorded").suspects
    print(suspect)
    assert f"{module}.{part}.{field}" in (
        f"{suspect.module}.{suspect.field}",
        *suspect.alternatives,
    )
    assert suspect.sigmas > 4


def test_right_datasheets_are_not_suspected():
    rng = np.random.default_rng(6)
    for _ in range(10):
        run, _, _ = run_of(ARM, MODEL, rng, states=100)
        assert identify(MODEL, run, accelerations="recorded").suspects == ()


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
    print(*fit.suspects, sep="\n")
    assert {suspect.module for suspect in fit.suspects} == {"m2", "m0"}
    assert fit.organism.kind("m0").joints[0].coulomb == pytest.approx(3.0, rel=0.1)
    fit.organism.save(tmp_path / "new.json")
    assert mr.load(tmp_path / "new.json") == fit.organism
