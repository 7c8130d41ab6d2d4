"""Coupled maps: their synchronization is where theory puts it, and the joints follow them."""

import numpy as np
import pytest
from scipy.optimize import brentq

from modurob import StateError, examples
from modurob.gaits import ChaoticMaps, chaotic, lattice, neighbors
from oracles import complains

CRAB = examples.crab().model()
CHAOS = 3.9
EXPONENT = 0.015  # [1/step] error of an exponent measured over 20,000 steps
THRESHOLD = 0.008  # of a coupling: an error of the exponent over its slope
SMALL = 1e-6  # difference between maps that is linear, yet seen where the map is flat
TOGETHER, APART = 1e-9, 1e-2  # spreads after synchronization, and without it


def chain(n):
    return [(k, k + 1) for k in range(n - 1)]


def star(n):
    return [(0, k) for k in range(1, n)]


def crab():
    names = CRAB.joint_names
    return [(names.index(a), names.index(b)) for a, b in neighbors(CRAB)]


BODIES = {
    "chain of 2": (chain(2), 2),
    "chain of 3": (chain(3), 3),
    "chain of 4": (chain(4), 4),
    "star of 5": (star(5), 5),
    "star of 9": (star(9), 9),
    "crab": (crab(), 3),
}
bodies = pytest.mark.parametrize("body", BODIES)


def maps(edges, n, **settings):
    names = [f"j{k}" for k in range(n)]
    return ChaoticMaps(names, 1.0, edges=[(names[i], names[j]) for i, j in edges], **settings)


def measured_exponent(edges, n, r, eps, seed=0):
    """Growth of a small difference between nearly equal maps, kept small by shrinking it.

    Written with sums over neighbors, not with the library's matrices or modes; many lattices at
    once.
    """
    rng = np.random.default_rng(seed)
    near = [[j for e in edges if i in e for j in e if j != i] for i in range(n)]
    x = np.repeat(rng.uniform(0.3, 0.8, (200, 1)), n, axis=1)
    x += SMALL * rng.standard_normal(x.shape)
    total, steps = 0.0, 160
    for k in range(steps):
        f = r * x * (1 - x)
        x = np.stack(
            [(1 - eps) * f[:, i] + eps * f[:, near[i]].mean(axis=1) for i in range(n)], axis=1
        )
        mean = x.mean(axis=1, keepdims=True)
        away = np.linalg.norm(x - mean, axis=1, keepdims=True)
        if k >= 60:
            total += np.mean(np.log(away / SMALL))
        x = mean + (x - mean) * SMALL / away
    return total / (steps - 60)


# -- one map -------------------------------------------------------------------------------------


def test_the_lyapunov_exponent_at_four_is_the_logarithm_of_two():
    assert lattice.lyapunov_exponent(4.0) == pytest.approx(np.log(2), abs=2e-3)


@pytest.mark.parametrize("r", [3.1, 3.2, 3.4])
def test_the_lyapunov_exponent_of_a_two_cycle_is_that_of_its_multiplier(r):
    """The product of both slopes is 4 + 2 r - r^2."""
    expected = np.log(abs(4 + 2 * r - r * r)) / 2
    assert lattice.lyapunov_exponent(r) == pytest.approx(expected, abs=1e-3)


def test_the_range_of_the_map_is_kept_and_reached():
    for r in (3.0, 3.3, 3.7, 3.9, 4.0):
        low, high = lattice.invariant(r)
        y = lattice.logistic(np.linspace(low, high, 10001), r)
        assert y.min() >= low - 1e-12
        assert y.max() <= high + 1e-12
        assert high == pytest.approx(lattice.logistic(0.5, r))
        assert low == pytest.approx(lattice.logistic(high, r))


# -- synchronization -----------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 4, 7])
def test_modes_of_known_graphs(n):
    def modes(edges):
        return lattice.laplacian_eigenvalues(np.array(edges), n)

    np.testing.assert_allclose(
        modes(chain(n)), 1 - np.cos(np.pi * np.arange(n) / (n - 1)), atol=1e-12
    )
    np.testing.assert_allclose(modes(star(n)), [0, *[1] * (n - 2), 2], atol=1e-12)
    everyone = [(i, j) for j in range(n) for i in range(j)]
    np.testing.assert_allclose(modes(everyone), [0, *[n / (n - 1)] * (n - 1)], atol=1e-12)


def test_nodes_without_neighbors_have_modes_of_their_own():
    np.testing.assert_array_equal(lattice.laplacian_eigenvalues(np.zeros((0, 2), int), 3), 0)
    pair = lattice.laplacian_eigenvalues(np.array([[0, 2]]), 4)
    np.testing.assert_allclose(pair, [0, 0, 0, 2], atol=1e-12)


@bodies
@pytest.mark.parametrize(("r", "eps"), [(3.7, 0.45), (CHAOS, 0.1), (3.98, 0.9)])
def test_differences_grow_by_the_largest_predicted_exponent(body, r, eps):
    edges, n = BODIES[body]
    predicted = maps(edges, n, r=r, coupling=eps).transverse_exponents.max()
    assert measured_exponent(edges, n, r, eps) == pytest.approx(predicted, abs=EXPONENT)


@bodies
def test_the_range_of_synchronization_is_where_it_is_measured(body):
    edges, n = BODIES[body]
    low, high = maps(edges, n, r=CHAOS).synchronization_range
    assert measured_exponent(edges, n, CHAOS, low - THRESHOLD) > 0
    assert measured_exponent(edges, n, CHAOS, low + THRESHOLD) < 0
    assert measured_exponent(edges, n, CHAOS, high - THRESHOLD) < 0
    if high < 1:
        assert measured_exponent(edges, n, CHAOS, high + THRESHOLD) > 0


@bodies
def test_maps_that_start_anywhere_find_together_within_the_range_only(body):
    edges, n = BODIES[body]
    low, high = maps(edges, n, r=CHAOS).synchronization_range

    def last_spread(eps):
        rng = np.random.default_rng(1)
        return maps(edges, n, r=CHAOS, coupling=eps, rng=rng).spread(3000)[-200:]

    assert last_spread((low + high) / 2).max() < TOGETHER
    assert last_spread(0.8 * low).max() > APART
    if high < 0.95:
        assert last_spread(high + 0.05).max() > APART


def test_long_chains_in_strong_chaos_never_move_as_one():
    assert maps(chain(3), 3, r=4.0).synchronization_range == pytest.approx((0.5, 0.75), abs=2e-3)
    assert maps(chain(4), 4, r=4.0).synchronization_range is None
    assert maps(chain(4), 4, r=3.6).synchronization_range is not None


def test_parts_that_are_not_connected_do_not_synchronize():
    assert maps([(0, 1), (2, 3)], 4).synchronization_range is None
    assert maps([], 1).synchronization_range == (0.0, 1.0)
    # in a cycle of the single map, differences decay without any coupling
    assert maps([(0, 1), (2, 3)], 4, r=3.2).synchronization_range == (0.0, 1.0)
    assert maps(chain(3), 3, r=3.2).synchronization_range.low == 0.0


# -- rhythms -------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", ["chain of 2", "chain of 3", "chain of 4", "star of 5", "crab"])
def test_maps_that_are_chaotic_alone_find_a_rhythm_together(body):
    edges, n = BODIES[body]
    alone = maps(edges, n, coupling=0.0)
    assert lattice.lyapunov_exponent(alone.r) > 0.4
    assert alone.period is None
    for seed in range(3):
        gait = maps(edges, n, coupling=0.15, rng=np.random.default_rng(seed))
        assert gait.cycle in (2, 4, 8)
        assert gait.period == gait.cycle * gait.step


def test_neighbors_alternate_on_a_pair():
    gait = maps(chain(2), 2, coupling=0.15)
    x = gait.samples(4000)[-2:]
    np.testing.assert_allclose(x[0], x[1, ::-1], atol=1e-9)
    assert abs(x[0, 0] - x[0, 1]) > 0.3


def test_a_periodic_map_gives_its_period_to_all():
    gait = maps(crab(), 3, r=3.83, coupling=0.5)
    assert gait.cycle == 3
    assert gait.spread(4000)[-1] < TOGETHER


def test_a_map_at_its_fixed_point_stands_still():
    gait = maps([], 1, r=4.0, start=[0.5], step=0.25)  # 3/4, without rounding
    assert (gait.cycle, gait.period) == (1, 0.25)
    assert not np.ptp(gait.samples(100))


def test_the_rhythm_begins_one_sample_after_the_last_that_is_not_repeated():
    """The motion between two samples depends on the one before them."""
    gait = maps(chain(3), 3)
    x, p = gait.samples(4000), gait.cycle
    unlike = np.abs(x[p:] - x[:-p]).max(axis=1) >= 1e-9
    first = round(gait.settled / gait.step)
    assert unlike[first - 2]
    assert not unlike[first - 1 :].any()


def test_a_warm_up_skips_the_way_to_the_rhythm():
    cold = maps(chain(3), 3)
    warm = maps(chain(3), 3, warm_up=500)
    np.testing.assert_array_equal(warm.samples(20), cold.samples(520)[500:])
    assert cold.settled > 5
    assert warm.settled == warm.step


# -- joints --------------------------------------------------------------------------------------


def test_joints_pass_through_the_samples():
    gait = ChaoticMaps.for_model(CRAB, amplitude=0.5, offset=0.1, step=0.3)
    k = np.arange(50)
    expected = 0.1 + 0.5 / 1.25 * gait.samples(49)
    np.testing.assert_allclose(gait(0.3 * k).q, expected, atol=1e-12)


def test_the_maps_begin_at_rest():
    v = ChaoticMaps.for_model(CRAB)([0.0, 0.1]).v
    assert not v[0].any()
    assert v[1].all()


def test_both_sides_of_a_sample_agree_in_everything():
    gait = ChaoticMaps.for_model(CRAB, step=0.25)  # exact in binary, so the knots are hit
    knots = 0.25 * np.arange(1, 60)
    tiny = 1e-9  # [s] times the largest jerk, some thousand, is what may change
    for before, after in zip(gait(knots - tiny), gait(knots + tiny), strict=True):
        np.testing.assert_allclose(before, after, atol=1e-5)


def test_samples_keep_to_their_range():
    for r in (3.3, 3.9, 4.0):
        x = maps(star(5), 5, r=r).samples(3000)
        assert x.min() >= -1
        assert x.max() <= 1
        assert np.ptp(x) > 1


def test_the_measures_show_the_synchronization():
    t = np.arange(0, 40, 0.5)
    together = maps(crab(), 3, coupling=0.5).synchrony(t)
    assert set(together) == {"between joints", "predicted"}
    assert together["predicted"][0] == together["between joints"][0]
    ratio = np.log(together["between joints"][:30] / together["predicted"][:30])
    assert np.abs(ratio).max() < 5  # chaos: fluctuations about a slope of -0.9 a step
    rhythm = maps(crab(), 3, coupling=0.15).synchrony(np.arange(0, 400, 0.5))
    assert set(rhythm) == {"between joints", "over 4 steps"}
    assert rhythm["over 4 steps"][-1] < TOGETHER
    assert rhythm["between joints"][-1] > APART


def test_differences_that_vanish_at_once_have_no_rate():
    for gait in (maps([], 1), maps(chain(2), 2, coupling=0.5)):  # alone, and equal from step 1 on
        measures = gait.synchrony(np.arange(0, 10, 0.5))
        assert set(measures) == {"between joints"}
        assert measures["between joints"][1:].max() < 1e-15


@pytest.mark.parametrize(
    ("settings", "pieces"),
    [
        ({"r": 4.1}, ["r must be", "3 to 4", "4.1"]),
        ({"r": 2.0}, ["r must be", "2"]),
        ({"coupling": 1.5}, ["coupling", "0 to 1", "1.5"]),
        ({"step": 0.0}, ["step", "positive"]),
        ({"start": [0.0, 2.0]}, ["start", "-1 and 1"]),
        ({"warm_up": 0.5}, ["warm_up", "whole", "0.5"]),
    ],
)
def test_maps_refuse(settings, pieces):
    with complains(StateError, *pieces):
        maps(chain(2), 2, **settings)


def test_a_lattice_has_an_end(monkeypatch):
    with complains(StateError, "followed for 1,000,000 steps"):
        maps(chain(2), 2).samples(1_000_001)
    monkeypatch.setattr(chaotic, "MOST_STEPS", 1000)
    with complains(StateError, "1,000 steps", "500 s"):
        maps(chain(2), 2)(1e300)
    assert len(maps(chain(2), 2).samples(1000)) == 1001
    with complains(StateError, "1,000 steps"):
        maps(chain(2), 2).samples(1001)


def test_maps_may_start_at_the_ends_of_their_range_and_keep_their_samples():
    gait = maps(chain(2), 2, start=[1.0, -1.0])
    found = gait.samples(3)
    np.testing.assert_allclose(found[0], [1, -1], rtol=1e-12)
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 0.0


def test_chaos_is_settled_when_its_ramp_is_over():
    gait = ChaoticMaps(["a"], 1.0, edges=[], r=4.0, ramp=2.5)
    assert gait.cycle is None
    assert gait.period is None
    assert gait.settled == 2.5


def test_the_exponent_is_the_mean_over_a_thousand_orbits_of_two_thousand_steps():
    """At r = 3 orbits creep towards 2/3, so that each orbit and step counts."""
    low, high = 3 / 4 * 3 * (1 - 3 / 4), 3 / 4
    x = low + (high - low) * np.arange(1, 1001) / 1001
    slopes = []
    for _ in range(3000):
        slopes.append(np.log(np.abs(3 - 6 * x)).mean())
        x = 3 * x * (1 - x)
    expected = np.mean(slopes[1000:])
    assert lattice.lyapunov_exponent(3.0) == pytest.approx(expected, rel=1e-9, abs=0)


def largest_change(r, steps, cycle, longest):
    """The largest difference of a map to itself a cycle before, over the last two longest."""
    x = [0.7]
    for _ in range(steps):
        x.append(r * x[-1] * (1 - x[-1]))
    low, high = r * r / 4 * (1 - r / 4), r / 4
    tail = np.array(x[-2 * longest :]) * 2 / (high - low)
    return np.abs(tail[cycle:] - tail[:-cycle]).max()


@pytest.mark.parametrize(("change", "cycle"), [(0.998e-9, 2), (1.002e-9, None)])
def test_maps_have_a_rhythm_that_repeat_themselves_over_the_last_128_of_4000_steps(change, cycle):
    """Close to r = 3 the way to the cycle of two is that long."""
    r = brentq(
        lambda r: np.log(1e-300 + largest_change(r, 4000, 2, 64) / change), 3.0001, 3.01, xtol=1e-13
    )
    low, high = lattice.invariant(r)
    start = (0.7 - (low + high) / 2) / ((high - low) / 2)
    assert maps([], 1, r=r, start=[start]).cycle == cycle


@pytest.mark.parametrize(("r", "cycle"), [(3.5694, 32), (3.56985, 64), (3.569936, None)])
def test_rhythms_of_up_to_64_steps_are_found(r, cycle):
    """Periods double on the way to chaos."""
    assert maps([], 1, r=r).cycle == cycle


def test_rounding_does_not_lead_beyond_the_range():
    for r in np.linspace(3, 4, 101):
        for end in (-1.0, 1.0):
            assert np.abs(maps([], 1, r=r, start=[end]).samples(3)).max() <= 1
