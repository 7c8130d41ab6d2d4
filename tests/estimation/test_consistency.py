"""Statistics over many runs: the filter is as sure as it may be; an unscented one is no surer."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2

from modurob import examples
from modurob.estimation import Ekf, chi_square, consistency

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "estimation.md"
QUOTED = 3e-3  # three digits on the page
RUNS, SAMPLES, DT = 25, 40, 0.02
CONFIDENCE = 0.999  # of chi-square bounds: one false alarm in a thousand sets of seeds
Q, R, P0 = np.repeat([1e-8, 1e-4], 2), 1e-4, np.repeat([1e-3, 1e-2], 2)


@pytest.fixture(scope="module")
def model():
    return examples.double_pendulum().model("physical")


def moved(model, x, tau):
    """The state after a sample, by Runge and Kutta."""

    def rates(x):
        return np.concatenate([x[2:], model.forward_dynamics(x[:2], x[2:], tau)])

    a = rates(x)
    b = rates(x + DT / 2 * a)
    c = rates(x + DT / 2 * b)
    d = rates(x + DT * c)
    return x + DT / 6 * (a + 2 * b + 2 * c + d)


def experiment(model, seed, filters):
    """Truth with exactly the noise the filters expect; errors, NEES and NIS of each filter."""
    rng = np.random.default_rng(seed)
    x = np.array([0.8, -0.4, 0.0, 0.0])
    start = x + np.sqrt(P0) * rng.standard_normal(4)
    made = [make(model, start) for make in filters]
    rows = []
    for _ in range(SAMPLES):
        tau = 0.5 * rng.standard_normal(2)
        x = moved(model, x, tau) + np.sqrt(Q) * rng.standard_normal(4)
        y = x[:2] + np.sqrt(R) * rng.standard_normal(2)
        rows.append([one.step(tau, y, x) for one in made])
    return np.array(rows)


class AsEkf:
    def __init__(self, model, start, **wrong):
        self.ekf = Ekf(model, DT, **({"Q": Q, "R": R} | wrong), P=P0, q=start[:2], v=start[2:])

    def step(self, tau, y, x):
        self.ekf.predict(tau)
        nis = self.ekf.correct(y).nis
        e = self.ekf.error(x[:2], x[2:])
        return [e[:2] @ e[:2], e[2:] @ e[2:], self.ekf.nees(x[:2], x[2:]), nis]


class Unscented:
    """Julier and Uhlmann's filter with 2n + 1 points of equal weights but the first.

    Args:
        step: x+ = step(x, tau).
        Q, R: Covariances of additive noise.
        H: (m, n) measurement matrix.
        kappa: Weight of the center: 3 - n is usual, 0 keeps all weights positive.
    """

    def __init__(self, step, x, P, Q, R, H, kappa=0.0):
        self.step, self.x, self.P, self.Q, self.R, self.H = step, x, P, Q, R, H
        n = len(x)
        self.scale = n + kappa
        self.weights = np.full(2 * n + 1, 0.5 / self.scale)
        self.weights[0] = kappa / self.scale

    def predict(self, tau):
        root = np.linalg.cholesky(self.scale * self.P).T
        points = np.vstack([self.x, self.x + root, self.x - root])
        moved = np.array([self.step(x, tau) for x in points])
        self.x = self.weights @ moved
        d = moved - self.x
        self.P = (self.weights * d.T) @ d + self.Q

    def correct(self, y):
        S = self.H @ self.P @ self.H.T + self.R
        K = self.P @ self.H.T @ np.linalg.inv(S)
        self.x = self.x + K @ (y - self.H @ self.x)
        self.P = self.P - K @ S @ K.T


class AsUkf:
    def __init__(self, model, start):
        def step(x, tau):
            return moved(model, x, tau)

        self.ukf = Unscented(step, start, np.diag(P0), np.diag(Q), R * np.eye(2), np.eye(4)[:2])

    def step(self, tau, y, x):
        self.ukf.predict(tau)
        S = self.ukf.P[:2, :2] + self.ukf.R
        r = y - self.ukf.x[:2]
        self.ukf.correct(y)
        e = x - self.ukf.x
        nees = e @ np.linalg.solve(self.ukf.P, e)
        return [e[:2] @ e[:2], e[2:] @ e[2:], nees, r @ np.linalg.solve(S, r)]


@pytest.fixture(scope="module")
def runs(model):
    return np.array([experiment(model, seed, [AsEkf]) for seed in range(RUNS)])


def test_nees_is_chi_square_over_runs(runs):
    for sample in (0, 9, 19, SAMPLES - 1):
        found = consistency(runs[:, sample, 0, 2], 4, CONFIDENCE)
        assert found.consistent, f"sample {sample}: {found}"


def test_nis_is_chi_square_along_runs(runs):
    found = consistency(runs[:, :, 0, 3], 2, CONFIDENCE)
    assert found.consistent, str(found)


@pytest.mark.parametrize(
    ("wrong", "verdict"),
    [
        ({"R": 1e-5}, "overconfident"),
        ({"R": 1e-3}, "too cautious"),
        ({"Q": Q / 1000}, "overconfident"),
    ],
)
def test_wrong_noise_is_found_out(model, wrong, verdict):
    def make(m, start):
        return AsEkf(m, start, **wrong)

    values = np.array([experiment(model, seed, [make]) for seed in range(8)])
    found = consistency(values[:, -1, 0, 2], 4, CONFIDENCE)
    assert not found.consistent
    assert verdict in str(found)


def test_an_unscented_filter_estimates_no_better(model):
    """The numbers of docs/guide/estimation.md."""
    both = np.array([experiment(model, seed, [AsEkf, AsUkf]) for seed in range(12)])
    mean = both.mean(axis=(0, 1))  # of squared errors of two angles and two rates, NEES, NIS
    found = np.column_stack([np.sqrt(mean[:, :2] / 2), mean[:, 2]])
    np.testing.assert_allclose(found[0], found[1], rtol=0.01)
    page = PAGE.read_text(encoding="utf-8")
    rows = [re.search(rf"^\| {name} \| (\S+) rad \| (\S+) rad/s \| (\S+) \|$", page, re.MULTILINE)
            for name in ("EKF", "UKF")]  # fmt: skip
    quoted = [[float(x) for x in row.groups()] for row in rows if row]
    np.testing.assert_allclose(found, quoted, rtol=QUOTED)


def test_chi_square_quantiles_are_those_of_the_tables():
    for p in (0.025, 0.5, 0.95, 0.999):
        for dof in (1, 3, 12, 4000):
            assert chi_square(p, dof) == pytest.approx(chi2.ppf(p, dof), rel=1e-9)


def test_consistency_has_the_level_it_says():
    rng = np.random.default_rng(0)
    passed = [consistency(rng.chisquare(3, 25), 3, 0.9).consistent for _ in range(2000)]
    assert np.mean(passed) == pytest.approx(0.9, abs=0.02)  # three standard deviations
