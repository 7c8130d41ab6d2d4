"""Exciting motions: within all limits, at rest at first, and worth more than others."""

import dataclasses
import inspect
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import cumulative_trapezoid

import modurob as mr
from modurob import StateError
from modurob.identification import FourierSeries, exciting_motion, identify
from modurob.identification.excitation import DATASHEET_ERROR, _Information, _share
from modurob.identification.parameters import parameter_set
from modurob.reference import Reference
from oracles.complaints import complains
from oracles.identified_runs import pinocchio_torques, recorded

ARM = mr.examples.arm("babac")
MODEL = ARM.model("physical")
SENSOR = 0.2  # [N m, N] noise of the torque sensors
TRAPEZOIDS = 1e-5  # [rad, rad/s] error of the rule on 20,000 intervals
VELOCITY, TORQUE = 4.0, 20.0  # limits that the arm would exceed


@pytest.fixture(scope="module")
def exciting():
    return exciting_motion(MODEL, 6.0, velocity=VELOCITY, torque=TORQUE, trials=100)


def test_the_motion_keeps_limits_of_joints_velocities_and_torques(exciting):
    q, v, a = exciting(np.linspace(0, exciting.duration, 5000))
    free = exciting_motion(MODEL, 6.0, trials=1)(np.linspace(0, 6, 500))
    assert np.abs(free.v).max() > VELOCITY
    assert np.abs(v).max() < VELOCITY
    tau = np.abs(pinocchio_torques(ARM, MODEL, q, v, a)).max(axis=0)
    assert 0.8 * TORQUE < tau.max() < TORQUE
    cubes = mr.examples.snake(4).model("physical")
    angles = exciting_motion(cubes, 4.0, trials=3)(np.linspace(0, 4, 5000)).q
    assert np.all((angles > cubes.lower) & (angles < cubes.upper))
    assert np.all(np.ptp(angles, axis=0) > 0.8 * (cubes.upper - cubes.lower))


def test_the_motion_begins_at_rest_and_is_smooth(exciting):
    first = exciting(0.0)
    assert not first.v.any()
    assert not first.a.any()
    t = np.linspace(0, exciting.duration, 20001)
    q, v, a = exciting(t)
    for curve, slope in ((q, v), (v, a)):
        way = cumulative_trapezoid(slope, t, axis=0, initial=0.0)
        np.testing.assert_allclose(curve - curve[0], way, atol=TRAPEZOIDS)


def test_a_series_is_its_formula_scaled_to_a_swing_of_one():
    rng = np.random.default_rng(2)
    c = rng.standard_normal((3, 2, 2))
    series = FourierSeries(("a", "b"), 1.0, coefficients=c, period=2.0, ramp=0.5)
    t = np.linspace(0.0, 2.0, 4001)
    angle = np.pi * np.arange(1, 4) * t[:, None]
    plain = np.sin(angle) @ c[:, 0] + np.cos(angle) @ c[:, 1]
    found = series.swing(t).x
    scale = found[0] / plain[0]
    np.testing.assert_allclose(found, scale * plain, atol=1e-12)
    assert (np.abs(found).max(axis=0) <= 1).all()
    assert (np.abs(found).max(axis=0) > 0.99).all()
    np.testing.assert_allclose(found[-1], found[0], atol=1e-12)
    assert (series.period, series.duration) == (2.0, 2.5)
    small = FourierSeries(("a", "b"), 1.0, coefficients=1e-3 * c, period=2.0)
    np.testing.assert_allclose(small.swing(t).x, found, atol=1e-12)
    still = FourierSeries(("a", "b"), 1.0, coefficients=0 * c, period=2.0)
    assert not still.swing(t).x.any()


def test_limits_hold_where_the_middle_of_a_joint_is_not_zero():
    organism = ARM.with_parameters("m1", limits=(0.4, 2.0)).with_parameters("m3", limits=(-2, -1))
    model = organism.model("physical")
    torque = np.abs(model.gravity_torque([0, 1.2, 0, -1.5, 0])) + 2.0
    motion = exciting_motion(model, 5.0, torque=torque, trials=1)
    np.testing.assert_allclose(motion.offset, [0, 1.2, 0, -1.5, 0], atol=1e-12)
    tau = pinocchio_torques(organism, model, *motion(np.linspace(0, 5, 3000)))
    assert 0.9 < (np.abs(tau) / torque).max() < 1


def test_each_joint_is_as_fast_as_its_limit_allows():
    limits = {"m0.joint": 0.5, "m1.joint": 1.0}
    motion = exciting_motion(MODEL, 6.0, velocity=limits, trials=1)
    fastest = np.abs(motion(np.linspace(0, 6, 5000)).v).max(axis=0)
    assert 0.45 < fastest[0] <= 0.5
    assert 0.9 < fastest[1] <= 1.0
    assert (fastest[2:4] > 1.0).all()


def test_a_motion_swings_by_ninety_degrees_or_a_decimeter_for_one_period_after_a_tenth():
    motion = exciting_motion(MODEL, 5.0, harmonics=2, trials=1)
    np.testing.assert_allclose(motion.amplitude, [np.pi / 2] * 4 + [0.1])
    assert (motion.ramp, motion.period, motion.duration) == pytest.approx((0.5, 4.5, 5.0))
    assert motion.coefficients.shape == (2, 2, 5)
    same = exciting_motion(MODEL, 5.0, harmonics=2, trials=1)
    np.testing.assert_array_equal(same.coefficients, motion.coefficients)
    small = exciting_motion(MODEL, 5.0, amplitude={"m1.joint": 0.3}, trials=2)
    np.testing.assert_allclose(small.amplitude, [0, 0.3, 0, 0, 0])
    moved = np.ptp(small(np.linspace(0, 5, 200)).q, axis=0)
    assert 0.3 < moved[1] <= 0.6
    assert not moved[[0, 2, 3, 4]].any()


def standard_errors(motion):
    t = np.linspace(0, motion.duration, 300)
    q, v, a = motion(t)
    tau = pinocchio_torques(ARM, MODEL, q, v, a)
    tau += SENSOR * np.random.default_rng(0).standard_normal(tau.shape)
    fit = identify(MODEL, recorded(MODEL, t, q, v, a, tau), accelerations="recorded")
    return np.array([each.std for each in fit.parameters])


def test_parameters_are_known_better_after_an_exciting_motion_than_after_others(exciting):
    """Geometric mean of the standard errors, whose coverage test_identify checks."""
    found = standard_errors(exciting)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        other = exciting_motion(MODEL, 6.0, velocity=VELOCITY, torque=TORQUE, trials=1, rng=rng)
        assert np.exp(np.mean(np.log(found / standard_errors(other)))) < 0.9


def test_bodies_and_limits_that_allow_no_motion_are_refused():
    with complains(StateError, "to hold still", "m0.hinge", "torque limit is 1"):
        horizontal = mr.examples.double_pendulum().model("physical", gravity=(0, 9.81, 0))
        exciting_motion(horizontal, torque=1.0)
    with complains(StateError, "fixed base"):
        exciting_motion(ARM.model("physical", "free"))
    with complains(StateError, "fixed base"):
        exciting_motion(ARM.model("physical", ["px"]))
    with complains(StateError, "organism on a fixed base", "with the joints none"):
        exciting_motion(mr.Organism.start("backbone").model("physical"))
    with complains(StateError, "joints of an organism", "m4.joint"):
        exciting_motion(dataclasses.replace(MODEL, organism=None, options=None))
    with complains(StateError, "trials"):
        exciting_motion(MODEL, trials=0)
    with complains(StateError, "harmonics"):
        exciting_motion(MODEL, harmonics=0)
    with complains(StateError, "duration"):
        exciting_motion(MODEL, 0)
    with complains(StateError, "velocity"):
        exciting_motion(MODEL, velocity=-1)


def test_a_limit_that_is_not_reached_leaves_the_swing_as_it_is():
    free = exciting_motion(MODEL, 6.0, trials=1)
    tau = np.abs(MODEL.inverse_dynamics(*free(np.linspace(0, 6, 500)))).max(axis=0)
    bound = exciting_motion(MODEL, 6.0, trials=1, torque=1.5 * tau, velocity=100.0)
    np.testing.assert_array_equal(bound.amplitude, free.amplitude)


def test_slow_joints_are_as_fast_as_their_limit_allows():
    motion = exciting_motion(MODEL, 60.0, velocity=0.05, trials=1)
    fastest = np.abs(motion(np.linspace(0, 60, 5000)).v).max(axis=0)
    np.testing.assert_allclose(fastest[:4], 0.0485, rtol=0.02)  # 3 % for peaks between samples
    assert fastest[4] < 0.0485


def test_without_random_numbers_the_search_is_always_the_same():
    first, same = (
        exciting_motion(MODEL, 5.0, trials=3, **given)
        for given in ({}, {"rng": np.random.default_rng(0)})
    )
    np.testing.assert_array_equal(first.coefficients, same.coefficients)


def test_the_search_assumes_the_errors_of_datasheets_that_identify_assumes():
    assert inspect.signature(identify).parameters["datasheet_error"].default == DATASHEET_ERROR


def test_the_information_is_that_of_torques_at_100_hz_with_noise_of_five_percent():
    """Log det of the information about the datasheets, by differences of inverse dynamics."""
    organism = mr.examples.arm("ba")
    model = organism.model("physical", gravity=(0, 9.81, 0))
    first = exciting_motion(model, 4.0, trials=1)(np.linspace(0.0, 4.0, 60))
    rng = np.random.default_rng(1)
    other = exciting_motion(model, 4.0, trials=1, rng=rng)(np.linspace(0.0, 4.0, 60))
    parameters = parameter_set(model, organism, shared=False)

    def torques(x):
        return (
            parameters.organism_with(x)
            .model("physical", gravity=(0, 9.81, 0))
            .inverse_dynamics(*other)
        )

    units = 1e-4 * np.eye(parameters.size)
    J = np.stack([(torques(e) - torques(-e)) / 2e-4 for e in units], axis=-1)
    sigma = 0.05 * np.sqrt(np.mean(model.inverse_dynamics(*first) ** 2, axis=0))
    J = 0.3 * J / sigma[:, None] * np.sqrt(400 / 60)  # samples
    J = J.reshape(-1, parameters.size)
    expected = np.linalg.slogdet(np.eye(len(J)) + J @ J.T)[1]
    found = _Information(model, first, 400.0)(other)
    assert found == pytest.approx(expected, rel=1e-5)


def test_steps_of_the_search_grow_by_thirty_percent_after_a_success_and_shrink_by_five_else():
    """The first is three tenths of the first motion; higher harmonics change less."""
    decay, rng = 1 / np.arange(1, 4)[:, None, None], np.random.default_rng(5)
    model = mr.examples.arm("ba").model("physical")

    def scaled(c):
        return c / np.linalg.norm(c, axis=(0, 1))

    c, step, seen = np.zeros((3, 2, 2)), 1.0, []
    for trials in range(1, 10):
        tried = c + step * rng.standard_normal((3, 2, 2)) * decay
        motion = exciting_motion(
            model, 5.0, harmonics=3, trials=trials, rng=np.random.default_rng(5)
        )
        better = not seen or np.any(motion.coefficients != seen[-1])
        if better:
            np.testing.assert_allclose(scaled(motion.coefficients), scaled(tried), atol=1e-12)
            c = tried / np.abs(tried).max()
        step = 0.3 if not seen else step * (1.3 if better else 0.95)
        seen.append(motion.coefficients)
    successes = [bool(np.any(x != y)) for x, y in pairwise(seen)]
    assert {*successes[:-1]} == {True, False}
    assert successes[-1]


@pytest.mark.parametrize("part", [0.3, 0.5, 0.62, 0.77, 0.9])
def test_the_swing_is_the_largest_within_torque_limits_to_a_4096th(part):
    """On a body without gravity, whose torques are those of the motion alone."""
    model = mr.examples.arm("b").model("physical", gravity=(0, 0, 0))
    t = np.linspace(0.0, 5.0, 100)
    c = np.random.default_rng(0).standard_normal((2, 2, 1))
    motion = FourierSeries(model.joint_names, 1.0, coefficients=c, period=5.0)
    largest = np.abs(model.inverse_dynamics(*motion(t))).max(axis=0)
    torque = part * largest
    (found,) = _share(model, motion, t, np.full(1, np.inf), torque)
    assert found <= part <= found + 1 / 4096
    assert 4096 * found == round(4096 * found)
    assert _share(model, motion, t, np.full(1, np.inf), largest) == 1


def test_a_sine_is_scaled_by_the_most_that_it_may_have_between_forty_samples():
    """Ehlich and Zeller: at most 1 / cos(pi / 40) of the largest sample."""
    only = np.zeros((1, 2, 1))
    only[0, 0] = 3.0
    sine = FourierSeries(("a",), 1.0, coefficients=only, period=4.0)
    peak = sine.swing(np.array([1.0])).x[0, 0]  # a quarter of a period, which is a sample
    assert peak == pytest.approx(np.cos(np.pi / 40), rel=1e-12)


def test_motions_are_compared_at_twenty_moments_of_each_harmonic(monkeypatch):
    seen = []

    class Nothing:
        def __init__(self, model, first, samples):
            seen.append((len(first.q), samples))

        def __call__(self, motion):
            seen.append(len(motion.q))
            return 1.0

    model = mr.examples.arm("ba").model("physical")
    first = exciting_motion(model, 5.0, harmonics=3, trials=1)
    monkeypatch.setattr("modurob.identification.excitation._Information", Nothing)
    found = exciting_motion(model, 5.0, harmonics=3, trials=4)
    assert seen == [(60, 500.0), 60, 60, 60, 60]
    np.testing.assert_array_equal(found.coefficients, first.coefficients)  # none told more


def test_the_joint_that_exceeds_its_limit_most_is_named():
    """Held against gravity: 3 m and 1 m of 1 kg, by joints of 25 and 1 N m."""
    lying = mr.examples.double_pendulum().model("physical", gravity=(0, 9.81, 0))
    first, second = lying.joint_names
    with complains(StateError, f"'{second}' needs 9.81 N m", "limit is 1"):
        exciting_motion(lying, torque={first: 25.0, second: 1.0})


@pytest.mark.parametrize(("tilt", "share"), [(0.0, 1.0), (0.01, None)])
def test_an_axis_that_feels_no_torque_has_the_noise_of_the_largest(tilt, share):
    """An upright one that rests; a slight tilt already gives it a noise of its own."""
    model = mr.examples.arm("ba").model("physical", gravity=(0, 9.81 * tilt, -9.81))
    rest = np.tile([0.3, 0.8], (4, 1))
    first = Reference(rest, 0 * rest, 0 * rest)
    torque = np.abs(model.gravity_torque(rest[0]))
    assert torque[0] < 0.02 * torque[1]
    found = _Information(model, first, 4.0)._scale[:, 0]
    expected = 0.05 * np.array([torque[1] * share if share else torque[0], torque[1]])
    np.testing.assert_allclose(found, 0.3 / expected)


def test_a_body_without_any_torque_has_an_information():
    model = mr.examples.arm("ba").model("physical", gravity=(0, 0, 0))
    still = exciting_motion(model, 4.0, amplitude=0.0, trials=2)
    assert not still(np.linspace(0, 4, 20)).v.any()
