"""The crab with three active hinges: how much better than its sensors the filter is.

The truth is integrated by SciPy to eight digits, with process noise added after each sample; runs
of all seeds are integrated together. Laws see the estimate, never the truth.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from modurob import examples
from modurob.control import ComputedTorque
from modurob.estimation import Ekf, consistency

GOAL = np.array([0.8, -0.5, 0.6])  # [rad] a step from zero
RUNS = 50
FORGOTTEN = 0.25  # of a run, until a filter has forgotten its start

# meister2013: (52) to (55). It prints no sample time; its Fig. 14 adds noise to measurements only.
DOCUMENT_Q, DOCUMENT_R = np.diag([0.1] * 3 + [1e-4] * 3), np.eye(3)
DOCUMENT = {"dt": 0.01, "samples": 120, "sigma": 1.0, "spread": 1e-2}

# Hinges with sensors of two degrees and unknown accelerations of 0.1 rad/s^2, held for a sample.
ANGLE, PUSH = 0.03, 0.1  # [rad, rad/s^2]


class Runs(NamedTuple):
    """(samples, runs, ...) errors of sensors and estimates, variances the filters claim, NEES."""

    raw: np.ndarray
    angles: np.ndarray
    rates: np.ndarray
    slopes: np.ndarray
    claimed: np.ndarray
    nees: np.ndarray


def moved(model, x, tau, dt):
    """(runs, 6) states a sample later under torques that are held."""

    def rates(t, flat):
        q, v = np.split(flat.reshape(len(x), 6), 2, axis=1)
        return np.hstack([v, model.forward_dynamics(q, v, tau)]).ravel()

    run = solve_ivp(rates, (0, dt), x.ravel(), "DOP853", rtol=1e-8, atol=1e-10)
    return run.y[:, -1].reshape(x.shape)


def experiment(dt, samples, sigma, walk, spread, seeds=range(RUNS), **noise):
    """Steps of the crab, one for each seed.

    Args:
        sigma: Standard deviation of measured angles. [rad]
        walk: (6, k) what unit noise does to the true state in a sample.
        spread: Variance of the first estimate's errors.
        noise: Q, R and W of the filters.
    """
    model = examples.crab().model()
    draws = [np.random.default_rng(seed) for seed in seeds]
    x = np.zeros((len(draws), 6))
    first = [np.sqrt(spread) * rng.standard_normal(6) for rng in draws]
    filters = [Ekf(model, dt, **noise, P=spread, q=e[:3], v=e[3:]) for e in first]
    laws = [ComputedTorque(model) for _ in draws]
    rows, before = [], None
    for k in range(samples):
        y = x[:, :3] + sigma * np.array([rng.standard_normal(3) for rng in draws])
        for ekf, measured in zip(filters, y, strict=True):
            ekf.correct(measured)
        q, v = (np.array([getattr(ekf, name) for ekf in filters]) for name in "qv")
        rows.append(
            Runs(
                y - x[:, :3],
                q - x[:, :3],
                v - x[:, 3:],
                (y - (y if before is None else before)) / dt - x[:, 3:],
                np.array([np.diagonal(ekf.P) for ekf in filters]),
                np.array([ekf.nees(s[:3], s[3:]) for ekf, s in zip(filters, x, strict=True)]),
            )
        )
        tau = [law.command(k * dt, f.q, f.v, GOAL) for law, f in zip(laws, filters, strict=True)]
        for ekf, torque in zip(filters, tau, strict=True):
            ekf.predict(torque)
        noise_now = np.array([rng.standard_normal(walk.shape[1]) for rng in draws])
        x, before = moved(model, x, np.array(tau), dt) + noise_now @ walk.T, y
    return Runs(*(np.array(part) for part in zip(*rows, strict=True)))


def rms(errors):
    """Of everything after the filter has settled."""
    return np.sqrt(np.mean(np.square(errors[int(FORGOTTEN * len(errors)) :])))


@cache
def matched(dt, samples, seeds=range(RUNS)):
    """Filters that know the noise of sensors and accelerations."""
    W = np.vstack([dt**2 / 2 * np.eye(3), dt * np.eye(3)])
    known = {"Q": PUSH**2, "W": W, "R": ANGLE**2}
    return experiment(dt, samples, ANGLE, PUSH * W, 1e-3, seeds, **known)


def test_with_the_documents_matrices_angles_are_twice_as_good_as_measured():
    """Sensors of one radian, as R says; the motion itself is undisturbed, as in Fig. 14."""
    runs = experiment(**DOCUMENT, walk=np.zeros((6, 1)), Q=DOCUMENT_Q, R=DOCUMENT_R)
    assert rms(runs.raw) == pytest.approx(1.0, rel=0.02)
    assert rms(runs.raw) > 2 * rms(runs.angles)


def test_no_filter_is_twice_as_good_when_the_angles_walk_as_the_documents_q_says():
    """A random walk of variance 0.1 seen with variance 1: 1.92 is the best there is."""
    runs = experiment(**DOCUMENT, walk=np.sqrt(DOCUMENT_Q), Q=DOCUMENT_Q, R=DOCUMENT_R)
    ahead = (0.1 + np.sqrt(0.1**2 + 4 * 0.1)) / 2  # P- of P- = P- / (P- + 1) + 0.1
    best = np.sqrt((ahead + 1) / ahead)
    assert best == pytest.approx(1.92, abs=0.01)
    assert rms(runs.raw) / rms(runs.angles) == pytest.approx(best, rel=0.05)


def test_with_the_true_process_noise_angles_at_1_khz_are_five_times_as_good_as_measured():
    runs = matched(1e-3, 400)
    assert rms(runs.raw) > 5 * rms(runs.angles)


def test_at_100_hz_the_gain_is_what_the_covariance_says():
    runs = matched(1e-2, 120)
    claimed = rms(np.sqrt(runs.claimed[..., :3]))
    assert rms(runs.angles) == pytest.approx(claimed, rel=0.1)
    assert rms(runs.raw) > 3 * rms(runs.angles)


def test_rates_are_found_though_only_angles_are_measured():
    """Differences of the angles are off by 42 rad/s; the filter by what it says itself."""
    runs = matched(1e-3, 400)
    assert rms(runs.slopes) == pytest.approx(np.sqrt(2) * ANGLE / 1e-3, rel=0.05)
    assert rms(runs.rates) < rms(runs.slopes) / 50
    assert rms(runs.rates) == pytest.approx(rms(np.sqrt(runs.claimed[..., 3:])), rel=0.1)


def test_nees_is_in_its_band_when_the_noise_is_the_true_one():
    """One set of 50 runs in twenty is outside a 95 % band by chance: eight sets are looked at."""
    nees = matched(1e-2, 60, range(8 * RUNS)).nees[-1]
    sets = [consistency(values, 6, 0.95) for values in nees.reshape(8, RUNS)]
    assert (sets[0].lower, sets[0].upper) == pytest.approx((5.08, 7.0), abs=0.01)  # 300 degrees
    assert sum(one.consistent for one in sets) >= 7
    assert consistency(nees, 6, 0.95).consistent


def test_nees_leaves_its_band_when_the_accelerations_are_twice_as_large():
    dt, samples = 1e-2, 60
    W = np.vstack([dt**2 / 2 * np.eye(3), dt * np.eye(3)])
    known = {"Q": PUSH**2, "W": W, "R": ANGLE**2}
    runs = experiment(dt, samples, ANGLE, 2 * PUSH * W, 1e-3, **known)
    assert "overconfident" in str(consistency(runs.nees[-1], 6, 0.95))
