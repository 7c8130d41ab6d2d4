"""The vector sine and cosine against arbitrary precision."""

from functools import cache

import mpmath
import numpy as np
import pytest

from modurob.compiler.sincos import write_sincos
from oracles.small_kernels import compiled

ULPS = 2.0  # of the exact result, the promise of the module
LARGEST = 1e6  # the working range
TURNS = int(LARGEST / (np.pi / 2))
HARDEST = 1500


def write(writer, slots):
    return list(write_sincos(writer, writer.load(slots[0])))


@cache
def kernel():
    return compiled(write, 1, 2)


def sincos(x):
    """(N, 2) sine and cosine."""
    return kernel()(x[:, None])


def errors(x):
    """Errors in units in the last place of the exact values: (N, 2), sine and cosine."""
    found = sincos(x)
    with mpmath.workprec(160):
        exact = [(mpmath.sin(value), mpmath.cos(value)) for value in x.tolist()]
        return np.array(
            [
                [
                    float(abs(mpmath.mpf(y) - t) / np.spacing(abs(float(t))))
                    for y, t in zip(ys, ts, strict=True)
                ]
                for ys, ts in zip(found.tolist(), exact, strict=True)
            ]
        )


def closest_to_quarter_turns(count):
    """The doubles in range that lie nearest to multiples of pi/2."""
    high = np.floor(np.pi / 2 * 2**30) / 2**30  # of pi/2: 31 bits, whose multiples are exact
    with mpmath.workprec(160):
        low = float(mpmath.pi / 2 - high)
    k = np.arange(1.0, TURNS)
    x = k * high + k * low
    apart = np.abs(k * high - x + k * low)  # to 1e-19; of 1,500 the last is 2e-14 apart
    return x[np.argsort(apart)[:count]]


def test_the_doubles_nearest_to_quarter_turns_keep_full_accuracy():
    x = closest_to_quarter_turns(HARDEST)
    # not an empty test: the remainders are far below the spacing of x itself
    assert min(abs(float(mpmath.cos(v)) * float(mpmath.sin(v))) for v in x[:10].tolist()) < 1e-14
    assert errors(np.concatenate([x, -x])).max() <= ULPS


def neighbors(x):
    below, above = np.nextafter(x, -np.inf), np.nextafter(x, np.inf)
    return np.concatenate(
        [x, below, above, np.nextafter(below, -np.inf), np.nextafter(above, np.inf)]
    )


rng = np.random.default_rng(0)
SAMPLES = {
    # next to octants the reduction changes from one multiple to the next
    "small quarter turns": neighbors(np.arange(-400, 401) * (np.pi / 2)),
    "large quarter turns": neighbors(rng.integers(-TURNS, TURNS, 500) * (np.pi / 2)),
    "small octants": neighbors((rng.integers(-2000, 2000, 500) + 0.5) * (np.pi / 2)),
    "large octants": neighbors((rng.integers(-TURNS, TURNS, 500) + 0.5) * (np.pi / 2)),
    "one turn": rng.uniform(-np.pi, np.pi, 4000),
    "the working range": rng.uniform(-LARGEST, LARGEST, 4000),
    "all sizes": 10 ** rng.uniform(-300, 6, 3000) * rng.choice([-1, 1], 3000),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_sine_and_cosine_are_within_two_ulps(name):
    assert errors(SAMPLES[name]).max() <= ULPS


def test_sine_is_odd_and_cosine_even_to_the_last_bit():
    x = np.concatenate(list(SAMPLES.values()))
    plus, minus = sincos(x), sincos(-x)
    np.testing.assert_array_equal(plus[:, 0], -minus[:, 0])
    np.testing.assert_array_equal(plus[:, 1], minus[:, 1])
    assert np.abs(plus).max() <= 1.0


def test_zero_is_exact():
    np.testing.assert_array_equal(sincos(np.array([0.0, -0.0])), [[0.0, 1.0], [0.0, 1.0]])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_so(bad):
    assert np.isnan(sincos(np.array([bad]))).all()
