"""Coupled phase oscillators: solved rightly, locked when theory says so."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from modurob import StateError, UnknownNameError, examples
from modurob.gaits import Oscillators, depths
from modurob.gaits.oscillators import PhaseTrack
from modurob.quintic import Curve
from oracles import complains

SOLVED = 3e-6  # [rad] RK4 against an adaptive method of order eight
CREEP = 1e-8  # [rad] phases that count as locked are still this far from where they end
ROUNDING = 1e-13  # of phases of some 100 rad
DECAY = 0.02  # of a rate read off between two times
NAMES = tuple(f"j{k}" for k in range(6))
GRAPHS = {
    "chain": [(f"j{k}", f"j{k + 1}") for k in range(5)],
    "star": [("j0", f"j{k}") for k in range(1, 6)],
    "fork": [("j0", "j1"), ("j1", "j2"), ("j1", "j3"), ("j3", "j4"), ("j3", "j5")],
    "ring": [(f"j{k}", f"j{(k + 1) % 6}") for k in range(6)],
}
TREES = [name for name in GRAPHS if name != "ring"]
FREQUENCIES = 1.0 + 0.05 * np.array([1.0, -0.5, 2.0, 0.0, -1.5, -1.0])


def oscillators(graph, **settings):
    return Oscillators(NAMES, 0.3, edges=GRAPHS[graph], **settings)


def laplacian(gait):
    A = np.zeros((len(gait.joints),) * 2)
    for i, j in gait.edges:
        A[i, j] = A[j, i] = 1
    return np.diag(A.sum(axis=1)) - A


def flows(gait):
    """For each edge of a tree, the surplus of speed on the side away from its first end."""
    excess = 2 * np.pi * (gait.frequency - gait.frequency.mean())
    found = []
    for edge in gait.edges.tolist():
        beyond, others = {edge[1]}, [e for e in gait.edges.tolist() if e != edge]
        for _ in NAMES:
            beyond |= {k for e in others if beyond & set(e) for k in e}
        found.append(excess[sorted(beyond)].sum())
    return np.array(found)


@pytest.mark.parametrize("graph", GRAPHS)
def test_phases_solve_the_equation(graph):
    phase = np.linspace(0, 2, 6)
    gait = oscillators(graph, frequency=FREQUENCIES, coupling=1.7, phase=phase)
    A = np.diag(np.diag(laplacian(gait))) - laplacian(gait)

    def slope(t, theta):
        lag = (theta - phase)[None, :] - (theta - phase)[:, None]
        return 2 * np.pi * FREQUENCIES + 1.7 * np.sum(A * np.sin(lag), axis=1)

    times = np.linspace(0, 8, 200)
    exact = solve_ivp(
        slope, (0, 8), gait.start, method="DOP853", rtol=1e-11, atol=1e-11, t_eval=times
    )
    np.testing.assert_allclose(gait.phases(times), exact.y.T, rtol=0, atol=SOLVED)


@pytest.mark.parametrize("graph", TREES)
def test_a_tree_locks_just_above_the_coupling_that_carries_its_differences(graph):
    """Locked, an edge carries coupling * sin(difference), so the coupling must exceed the flow."""
    least = np.abs(flows(oscillators(graph, frequency=FREQUENCIES))).max()
    strong = oscillators(graph, frequency=FREQUENCIES, coupling=1.15 * least)
    assert strong.locked is not None
    assert strong.period == pytest.approx(1 / FREQUENCIES.mean())
    weak = oscillators(graph, frequency=FREQUENCIES, coupling=0.85 * least)
    turned = weak.phases(40.0) - weak.phases(10.0)
    assert np.ptp(turned) > 2 * np.pi  # some have lapped others


@pytest.mark.parametrize("graph", TREES)
def test_locked_phases_differ_by_what_the_flows_ask_for(graph):
    coupling = 2.0
    gait = oscillators(graph, frequency=FREQUENCIES, coupling=coupling)
    late = gait.phases(gait.locked + 1.0)
    i, j = gait.edges.T
    expected = flows(gait) / coupling
    np.testing.assert_allclose(np.sin(late[j] - late[i]), expected, atol=CREEP)
    assert np.all(np.cos(late[j] - late[i]) > 0)


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_order_parameter_rises_at_the_rate_of_the_slowest_mode(graph):
    """Close to the wanted phases, deviations decay with coupling * l_2, and 1 - r twice as fast."""
    start = 0.02 * np.random.default_rng(3).standard_normal(6)
    gait = oscillators(graph, coupling=1.5, start=start)
    slowest = np.linalg.eigvalsh(laplacian(gait))[1]
    t = np.array([4.0, 5.0]) / (1.5 * slowest)
    missing = 1 - gait.order(t)
    rate = -np.diff(np.log(missing)) / np.diff(t)
    assert rate[0] == pytest.approx(2 * 1.5 * slowest, rel=DECAY)


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_mean_phase_turns_at_the_mean_frequency(graph):
    gait = oscillators(graph, frequency=FREQUENCIES, coupling=0.8)
    t = np.linspace(0, 20, 50)
    turned = gait.phases(t).mean(axis=1) - gait.start.mean()
    np.testing.assert_allclose(turned, 2 * np.pi * FREQUENCIES.mean() * t, atol=1e-9)


def test_wanted_phases_make_a_travelling_wave():
    model = examples.snake(6).model("physical")
    wanted = -0.8 * depths(model)
    gait = Oscillators.for_model(model, phase=wanted, rng=np.random.default_rng(5))
    before, after = gait.order([0.0, gait.settled])
    assert before < 0.9
    assert after == pytest.approx(1.0, abs=1e-12)
    late = gait.phases(gait.settled)
    np.testing.assert_allclose(np.diff(late), -0.8, atol=CREEP)


def test_the_crab_locks():
    model = examples.crab().model()
    gait = Oscillators.for_model(model, frequency=[1.0, 1.1, 0.95], rng=np.random.default_rng(2))
    assert gait.period == pytest.approx(1 / np.mean([1.0, 1.1, 0.95]))
    assert gait.order(gait.locked) > 0.99


def test_oscillators_lock_when_their_speeds_agree_to_a_ten_billionth():
    """Close to that, differences decay at the rate of the slowest mode."""
    gait = oscillators("chain", frequency=FREQUENCIES, coupling=3.0)
    late = gait.phases(gait.locked + 1.0)
    i, j = gait.edges.T
    pull = np.zeros((6, 6))
    pull[i, j] = pull[j, i] = 3.0 * np.cos(late[i] - late[j])
    rate = np.linalg.eigvalsh(np.diag(pull.sum(axis=1)) - pull)[1]
    before = gait.phases(gait.locked - 5 / rate) + gait.speed * (1.0 + 5 / rate)
    assert rate * np.abs(before - late).max() == pytest.approx(1e-10 * np.exp(5), rel=0.5)
    started = oscillators("chain", start=np.zeros(6), ramp=0.3)
    assert (started.locked, started.settled) == (0.0, 0.3)


def test_locking_leaves_no_trace_in_the_motion():
    gait = oscillators("chain", frequency=FREQUENCIES, coupling=3.0)
    t = gait.locked + np.linspace(-0.01, 0.01, 2001)
    a = gait(t).a
    assert np.abs(np.diff(a, axis=0)).max() < 2 * np.abs(np.diff(a[:500], axis=0)).max()


def test_locked_oscillators_can_be_asked_for_any_time():
    gait = oscillators("chain")
    assert np.isfinite(gait(1e9).q).all()
    assert gait.order(1e9) == pytest.approx(1.0)


def test_unlocked_oscillators_have_an_end(monkeypatch):
    monkeypatch.setattr("modurob.gaits.oscillators.PATIENCE", 300)
    monkeypatch.setattr("modurob.gaits.oscillators.MOST_STEPS", 1000)
    gait = oscillators("chain", frequency=FREQUENCIES, coupling=0.0)
    assert gait.period is None
    assert np.isfinite(gait(40.0).q).all()
    with complains(StateError, "do not lock", "50 s", "earlier"):
        gait(60.0)


def test_oscillators_alone_keep_their_own_time():
    gait = oscillators("chain", frequency=FREQUENCIES, coupling=0.0, start=np.arange(6.0))
    t = np.linspace(0, 10, 30)
    expected = np.arange(6) + 2 * np.pi * FREQUENCIES * t[:, None]
    np.testing.assert_allclose(gait.phases(t), expected, atol=1e-9)


@pytest.mark.parametrize(
    ("edges", "error", "pieces"),
    [
        ([("j0", "toe")], UnknownNameError, ["toe", "j0, j1"]),
        ([("j0", "j0")], StateError, ["j0", "itself"]),
        ([("j0", "j1"), ("j1", "j0")], StateError, ["j1", "twice"]),
        (["j0"], StateError, ["pair", "j0"]),
        ([3], StateError, ["pair", "3"]),
    ],
)
def test_edges_connect_two_joints_once(edges, error, pieces):
    with complains(error, *pieces):
        Oscillators(NAMES, 0.1, edges=edges)


def test_a_coupling_pulls():
    with complains(StateError, "coupling", "-1", "rad/s"):
        oscillators("chain", coupling=-1)


def test_no_oscillators_are_in_order_and_have_no_period():
    nothing = Oscillators([], 1.0, edges=[])
    assert nothing.order([0.0, 1.0]).tolist() == [1.0, 1.0]
    assert nothing.period is None


def test_phases_begin_with_the_gait():
    with complains(StateError, "begins at t = 0", "-0.5"):
        oscillators("chain", ramp=1.0).phases([-0.5, 1.0])


@pytest.mark.parametrize("graph", GRAPHS)
def test_locked_joints_swing_as_a_sine_from_then_on(graph):
    gait = oscillators(graph, frequency=FREQUENCIES, coupling=3.0)
    t = gait.locked + np.linspace(0, 0.1, 50)
    (q, v, a), theta = gait(t), gait.phases(t)
    turned, speed = np.outer(t - t[0], np.full(6, gait.speed)), gait.speed
    np.testing.assert_allclose(theta - theta[0], turned, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(q, 0.3 * np.sin(theta), rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(v, 0.3 * speed * np.cos(theta), rtol=0, atol=speed * ROUNDING)
    np.testing.assert_allclose(a, -0.3 * speed**2 * np.sin(theta), rtol=0, atol=speed**2 * ROUNDING)


def test_a_coupling_without_neighbors_does_not_shorten_the_steps(monkeypatch):
    monkeypatch.setattr("modurob.gaits.oscillators.PATIENCE", 300)
    monkeypatch.setattr("modurob.gaits.oscillators.MOST_STEPS", 1000)
    apart = Oscillators(NAMES, 0.3, edges=[], frequency=FREQUENCIES, coupling=100.0)
    assert np.isfinite(apart(50.0).q).all()  # 1000 steps of 50 ms
    with complains(StateError, "followed for 50 s"):
        apart(50.1)


def test_the_last_step_that_was_integrated_is_as_exact_as_the_others():
    """500 steps of 50 ms are integrated at once."""
    first, later = (oscillators("chain", frequency=FREQUENCIES, coupling=0.5) for _ in range(2))
    later.phases(60.0)
    t = np.linspace(24.951, 24.999, 5)
    np.testing.assert_allclose(first.phases(t), later.phases(t), rtol=0, atol=ROUNDING)


def test_oscillators_that_do_not_lock_are_followed_for_a_million_steps():
    track = PhaseTrack(np.array([[0, 1]]), np.array([1.0, -1.0]), 0.0, np.zeros(2))
    track._nodes = Curve(*[np.zeros((1_000_002, 2))] * 3)  # as if they had been
    track.extend(1_000_000)
    with complains(StateError, "do not lock are followed for 50000 s"):
        track.extend(1_000_000.5)
