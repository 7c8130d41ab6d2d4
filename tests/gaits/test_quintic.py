"""Quintics between knots: exact where they must be, smooth where they meet, and bounded."""

import numpy as np

from modurob.gaits.chaotic import REACH, through
from modurob.quintic import Curve, between, blend

ROUNDING = 1e-12


def test_a_quintic_is_found_again():
    rng = np.random.default_rng(0)
    c = rng.standard_normal((6, 1, 3))
    h = 0.7

    def exact(t):
        w = sum(c[k] * t**k for k in range(6))
        dw = sum(k * c[k] * t ** (k - 1) for k in range(1, 6))
        ddw = sum(k * (k - 1) * c[k] * t ** (k - 2) for k in range(2, 6))
        return Curve(w, dw, ddw)

    t = np.linspace(0, h, 20)[:, None]
    ends = (Curve(*(np.broadcast_to(x, (20, 3)) for x in exact(np.array([[e]])))) for e in (0, h))
    for found, expected in zip(between(t / h, h, *ends), exact(t), strict=True):
        np.testing.assert_allclose(found, expected, atol=100 * ROUNDING)


def test_the_spline_passes_through_the_samples_with_central_differences():
    samples = np.random.default_rng(1).uniform(-1, 1, (4, 1, 5))
    for u, k in ((0.0, 1), (1.0, 2)):
        w, dw, ddw = through(samples, np.array([[u]]), 0.5)
        np.testing.assert_allclose(w, samples[k], atol=ROUNDING)
        np.testing.assert_allclose(dw, (samples[k + 1] - samples[k - 1]), atol=ROUNDING)
        second = (samples[k + 1] - 2 * samples[k] + samples[k - 1]) / 0.25
        np.testing.assert_allclose(ddw, second, atol=10 * ROUNDING)


def test_neighboring_pieces_join_in_value_slope_and_curvature():
    samples = np.random.default_rng(2).uniform(-1, 1, (5, 1, 5))
    before = through(samples[:4], np.array([[1.0]]), 0.3)
    after = through(samples[1:], np.array([[0.0]]), 0.3)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_allclose(one, other, atol=100 * ROUNDING)


def test_the_reach_of_the_spline_is_the_largest_there_is():
    """All 16 sequences of samples at the ends of their range, on a fine grid."""
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, 1, -1)
    u = np.linspace(0, 1, 1001)[:, None]
    w = through(np.broadcast_to(signs, (4, len(u), 16)), u, 1.0).x
    assert np.abs(w).max() <= REACH * (1 + ROUNDING)
    assert np.abs(w).max() >= REACH * (1 - ROUNDING)


def test_a_blend_rests_at_both_ends_and_never_turns_back():
    t = np.linspace(-1, 3, 4001)
    s, ds, dds = blend(t, 2.0)
    assert s[t <= 0].max() == 0
    assert s[t >= 2].min() == 1
    assert np.all(np.diff(s) >= 0)
    for rate in (ds, dds):
        assert not rate[(t <= 0) | (t >= 2)].any()
        assert np.abs(np.diff(rate)).max() < 0.02  # no jumps
    np.testing.assert_allclose(np.gradient(s, t), ds, atol=1e-5)
    np.testing.assert_allclose(np.gradient(ds, t), dds, atol=1e-2)


def test_a_blend_of_any_length_is_finite():
    """A ramp is a number of a file."""
    for part in blend(np.array([0.0, 1.0]), 1e300):
        np.testing.assert_allclose(part, 0, atol=1e-200)
