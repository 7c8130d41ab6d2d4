"""Rehearsals and studies of laws: the times, sizes and shares that their docstrings name."""

import dataclasses
import sys
from typing import ClassVar

import numpy as np
import pytest

from modurob import StateError, examples
from modurob.control import ComputedTorque, closed_loop, robustness, with_scaled_masses
from modurob.control.robustness import Robustness, _Block, _case, _simulated, _Study
from modurob.executors import LocalExecutor
from modurob.stepping import FixedStep
from modurob.stepping.motion import Stopped
from oracles import complains

SPLIT = 0.03  # relative: sampling splits a double pole by about the root of the sample time


@pytest.fixture(scope="module")
def crab():
    return examples.crab().model("physical")


class Spy(ComputedTorque):
    """A law that keeps the times at which it or a copy of it was asked."""

    times: ClassVar[list[float]] = []

    def _torque(self, t, q, v, aim):
        self.times.append(t)
        return super()._torque(t, q, v, aim)


def rehearsed(law, duration=0.1):
    """A step of all joints by 0.1 rad."""
    Spy.times.clear()
    return closed_loop.rehearsed(law, np.full(6, 0.1), np.zeros(6), np.zeros(6), duration)


def test_a_sampled_law_is_asked_at_its_samples(crab):
    law = Spy(crab, sample_time=0.02)
    found = rehearsed(law)
    np.testing.assert_allclose(found.t, 0.02 * np.arange(6), rtol=1e-15)
    np.testing.assert_allclose(law.times, found.t, rtol=1e-15)
    assert not found.diverged
    assert found.q.shape == found.v.shape == found.tau.shape == (6, 6)


def test_a_step_of_runge_and_kutta_has_up_to_eight_parts(monkeypatch):
    """Friction makes it stiff; with more the steps are implicit."""
    model = examples.arm("b").with_parameters(viscous=1.0).model("physical")
    longest, zero = closed_loop.MOST_RATE_STEP / model.friction_rate.rate, np.zeros(1)
    chosen, method = [], closed_loop.RK4
    monkeypatch.setattr(closed_loop, "RK4", lambda *a: (chosen.append(a[1]), method(*a))[1])
    for parts in (7.5, 8.5):
        law = Spy(model, sample_time=parts * longest)
        closed_loop.rehearsed(law, zero, zero, zero, law.sample_time)
    assert len(chosen) == 1


class Chosen(Exception):
    """Instead of steps: their settings."""


@pytest.mark.parametrize(
    ("viscous", "rate", "clock", "method", "parts"),
    [
        (0.0, 100.0, None, "RK4", 1),  # of a millisecond: 100 1/s need a twentieth of it
        (0.0, 9e3, None, "RK4", 5),
        (0.0, 1e6, None, "RK4", 400),  # not 500
        (0.0, 100.0, 1e-3, "RK4", 1),
        (7.0, 100.0, 1e-3, "RK4", 4),  # friction alone: 7000 1/s
        (7.0, 9e3, None, "RK4", 5),
        (15.0, 100.0, None, "RK4", 8),
        (17.0, 100.0, None, "SemiImplicitEuler", 8),
    ],
)
def test_steps_have_as_many_parts_as_friction_and_the_loop_need(
    viscous, rate, clock, method, parts, monkeypatch
):
    """Each of two over the fastest rate at most, of which a step of Runge and Kutta takes eight."""
    slide = examples.arm("c").with_parameters(viscous=viscous).model("physical")
    slide = with_scaled_masses(slide, 1e-3 / slide.mass_matrix([0.0]).item())  # of a gram
    law, zero = ComputedTorque(slide, rate**2, 2 * rate, sample_time=clock), np.zeros(1)

    def chosen(name):
        def stepper(motion, settings):
            raise Chosen(name, settings.dt, settings.substeps)

        return stepper

    for name in ("RK4", "SemiImplicitEuler"):
        monkeypatch.setattr(closed_loop, name, chosen(name))
    with pytest.raises(Chosen) as caught:
        closed_loop.rehearsed(law, zero, zero, zero, 0.8)
    assert caught.value.args == (method, pytest.approx(1e-3), parts)


def test_a_law_without_a_clock_is_rehearsed_in_800_steps(crab):
    law = Spy(crab)
    found = rehearsed(law, 0.4)
    assert len(found.t) == 801
    assert found.t[-1] == pytest.approx(0.4)
    asked = np.unique(np.round(law.times, 12))
    assert asked.min() == 0
    assert asked.max() == pytest.approx(0.4 + 0.4 / 800)
    assert len(asked) == 2 * 801 + 1  # ends and middles of the steps


def test_the_rehearsed_law_is_a_copy_without_limits(crab):
    law = ComputedTorque(crab, torque_limit=0.01, sample_time=0.02)
    found = rehearsed(law)
    assert np.abs(found.tau).max() > 1
    assert np.abs(law.command(0.0, np.zeros(6), np.zeros(6), np.full(6, 0.1))).max() <= 0.01


def test_a_rehearsal_ends_where_it_runs_away(crab):
    law = ComputedTorque(crab, sample_time=0.02, settling_time=0.1).changed(delay=0.2)
    found = rehearsed(law, 20.0)
    assert found.diverged
    assert len(found.t) < 1001
    assert np.abs(found.v[:-1]).max() < 1e6


def test_motions_faster_than_any_robot_have_run_away():
    """A step of x with two poles at -w reaches w x / e: 1000 km/s, or 1 km/s in a study."""
    rail = examples.arm("c").with_parameters(viscous=0.0).model("physical")
    law, zero = ComputedTorque(rail, 36.0, 12.0, sample_time=0.01), np.zeros(1)
    for fastest, lost in ((0.9e6, False), (1.2e6, True)):
        goal = np.array([fastest * np.e / 6])
        assert closed_loop.rehearsed(law, goal, zero, zero, 0.3).diverged is lost
    goals = np.array([[0.9e3], [1.2e3]]) * np.e / 6
    block = _Block(law, np.ones((1, len(rail.mass))), 0.0, goals, (0, 0), zero, 30, 0.02)
    assert _simulated(block).lost.tolist() == [False, True]


def test_a_long_rehearsal_is_cut(crab, monkeypatch):
    monkeypatch.setattr(closed_loop, "MOST", 7)
    assert len(rehearsed(Spy(crab, sample_time=0.01), 1.0).t) == 8
    for duration, rows in ((0.024, 3), (0.016, 3), (0.014, 2), (0.001, 2)):
        assert len(rehearsed(Spy(crab, sample_time=0.01), duration).t) == rows


# -- robustness ------------------------------------------------------------------------------------


def study(crab, runs=40, step=0.35, duration=None, sample_time=0.01, **options):
    law = ComputedTorque(crab, sample_time=sample_time, **options)
    return _Study(law, step, runs, duration, 0.02, np.random.default_rng(0))


def test_steps_are_thirty_to_a_hundred_percent_either_way(crab):
    found = study(crab, 400)
    moves = found.goals - found.start
    assert moves.shape == (400, 6)
    size = np.abs(moves)
    assert 0.3 * 0.35 <= size.min() < 0.32 * 0.35
    assert 0.98 * 0.35 < size.max() <= 0.35
    assert 0.4 < (moves > 0).mean() < 0.6


def test_steps_begin_and_end_within_the_joint_limits():
    """From the neutral pose, or from the limit that is closest to it."""
    narrow = examples.snake(4).with_parameters(limits=(0.2, 0.4)).model("physical")
    found = study(narrow, 200)
    np.testing.assert_array_equal(found.start, 0.2)
    assert (found.goals.min(), found.goals.max()) == (0.2, 0.4)


def test_a_run_takes_three_settling_times_and_four_seconds_at_most(crab):
    for settling, duration in ((0.5, 1.5), (1.3, 3.9), (1.4, 4.0), (2.0, 4.0)):
        found = study(crab, sample_time=1e-4, settling_time=settling)
        assert found.duration == pytest.approx(duration, rel=SPLIT)
    found = study(crab, duration=0.25)
    assert (found.duration, found.steps) == (0.25, 25)
    assert study(crab, duration=1e-9).steps == 2


def test_a_run_of_a_fast_law_takes_ten_milliseconds_at_least():
    rail = examples.arm("c").with_parameters(viscous=0.0).model("physical")
    for time, duration in ((0.001, 0.01), (0.01, 0.03)):
        found = study(rail, sample_time=1e-4, settling_time=time)
        assert (found.duration, found.steps) == (duration, round(duration / 1e-4))
    late = study(rail, sample_time=0.05, k0=400.0, k1=30.0)  # all poles at 0: two samples
    assert late.duration == 0.3


def test_fifty_bodies_share_the_runs_when_masses_are_wrong(crab):
    for runs, masses, bodies in ((40, 0.1, 40), (50, 0.1, 50), (60, 0.1, 50), (60, 0.0, 1)):
        found = study(crab, runs)._bodies(masses)
        assert found.shape == (bodies, len(crab.mass))
        assert np.all(np.abs(found - 1) <= masses)
    wide = study(crab, 50)._bodies(0.5)
    assert wide.min() < 0.52
    assert wide.max() > 1.48


def test_lighter_bodies_need_more_parts_of_a_sample():
    model = examples.arm("b").with_parameters(viscous=1.0).model("physical")
    found = study(model, 2, duration=0.1, settling_time=1.0)
    samples = model.friction_rate.rate * 0.01 / closed_loop.MOST_RATE_STEP
    for least, parts in ((1.0, np.ceil(samples)), (0.25, np.ceil(4 * samples))):
        factors = np.array([[1.0, least]])
        block = _Block(found.law, factors, 0.0, found.goals, (0, 0), found.start, 2, 0.02)
        assert block.substeps() == parts
    assert block != dataclasses.replace(block)  # they hold arrays
    with pytest.raises(dataclasses.FrozenInstanceError):
        block.noise = 1.0


def test_runs_are_computed_in_an_eighth_of_the_memory(crab, monkeypatch):
    found = study(crab, 40, duration=0.1)
    each = 8 * 8 * 11 * 6  # bytes: eight paths of eleven states of six joints
    for memory, bodies, size in ((8 * each * 10, 1, 10), (8 * each * 10 - 1, 1, 9),
                                 (8 * each * 12, 4, 12), (0, 4, 4)):  # fmt: skip
        monkeypatch.setattr(sys.modules[_Study.__module__], "LARGEST_BYTES", memory)
        blocks = list(found._blocks(bodies))
        assert [block.start for block in blocks] == list(range(0, 40, size))
        assert all(block.stop - block.start == size for block in blocks)


def test_the_default_limit_is_seventy_percent_of_what_the_design_needs(crab):
    law = ComputedTorque(crab, sample_time=0.01, settling_time=0.3)
    options = {"masses": 0, "delay": 0, "noise": 0, "runs": 5, "duration": 0.5}
    designed, limited = robustness(law, **options).cases
    assert (designed.name, limited.name) == ("as designed", "torque limits")
    assert designed.saturated == 0
    assert 0 < limited.saturated < 1


class Watched(LocalExecutor):
    """An executor that keeps what it is given."""

    def map(self, function, items, progress=None):
        items = list(items)
        self.blocks.append(items)
        return super().map(function, items, progress)


@pytest.mark.parametrize(
    ("gravity", "step"), [((0, 0, 0), 0.5), ((0, 0, 0), 1e-4), ((0, 0, -9.81), 1e-3)]
)
def test_the_default_limit_is_a_share_of_the_first_pull_or_what_rests(gravity, step):
    """A slide is pulled the most at the start of its largest step: by mass k0 e, and its weight."""
    rail = examples.arm("c").with_parameters(viscous=0.0).model("physical", gravity=gravity)
    law, executor = ComputedTorque(rail, 36.0, 12.0, sample_time=0.01), Watched(1)
    executor.blocks = []
    options = {"masses": 0, "delay": 0, "noise": 0, "runs": 5, "duration": 0.05}
    robustness(law, step, **options, executor=executor)
    (designed,), (limited,) = executor.blocks
    np.testing.assert_array_equal(designed.law.torque_limit, np.inf)
    mass, load = rail.mass_matrix([0.0]).item(), rail.gravity_torque([0.0]).item()
    pulls = np.abs(mass * 36.0 * designed.goals + load)
    expected = max(0.7 * pulls.max(), load)
    assert limited.law.torque_limit.item() == pytest.approx(expected)
    assert (expected == load) == (gravity[2] != 0)


def test_a_row_of_a_table_is_made_of_all_its_runs():
    """Settling times, overshoots, mean squares, lost runs and shares of saturated samples."""
    outcomes = np.array([
        [0.5, np.inf, 0.9, 0.7, np.nan],
        [0.02, 0.3, 0.0, 0.1, np.nan],
        [0.01, 0.07, 0.02, 0.02, np.nan],
        [0, 0, 0, 0, 1],
        [0.0, 0.5, 0.25, 0.25, 0.25],
    ])  # fmt: skip
    found = _case("masses", outcomes)
    assert found[:2] == ("masses", 5)
    assert found[2:] == pytest.approx((0.6, 0.7, 0.3, np.sqrt(0.03), 0.25, 0.2))
    lost = _case("lost", outcomes[:, [4]])
    np.testing.assert_array_equal(lost[2:], [0.0, np.nan, np.nan, np.nan, 0.25, 1.0])
    assert str(Robustness("a law", 1.5, 0.02, (found, lost))).splitlines() == [
        "a law, 1.5 s",
        " " * 26 + "settled     time  overshoot     error  saturated  diverged",
        "masses                      60.0%  0.700 s      30.0%   1.7e-01      25.0%     20.0%",
        "lost                         0.0%        -          -         -      25.0%    100.0%",
    ]


def test_the_default_limit_does_not_depend_on_the_other_conditions(crab):
    law = ComputedTorque(crab, sample_time=0.01, settling_time=0.3)
    options = {"delay": 0, "noise": 0, "runs": 4, "duration": 0.3}
    plain, wrong = (robustness(law, masses=m, **options).cases for m in (0, 0.5))
    assert plain[-1].name == wrong[2].name == "torque limits"
    assert plain[-1] == wrong[2]


@pytest.mark.parametrize(("delay", "name"), [(0.004, 10), (0.016, 20), (0.024, 20), (0.026, 30)])
def test_a_delay_is_rounded_to_whole_samples_and_never_to_none(crab, delay, name):
    law = ComputedTorque(crab, sample_time=0.01)
    found = robustness(law, masses=0, delay=delay, noise=0, runs=1, duration=0.05)
    assert [case.name for case in found.cases] == [
        "as designed", f"delay {name} ms", "torque limits", "all at once"
    ]  # fmt: skip


def test_masses_are_an_error_below_one(crab):
    law = ComputedTorque(crab, sample_time=0.01)
    with complains(StateError, "masses is an error below 1"):
        robustness(law, masses=1.0, runs=1)
    limit = [np.inf, 1.0, 1.0, 1.0, 1.0, 1.0]
    robustness(law, masses=0.99, delay=0, noise=0, runs=1, duration=0.02, torque_limit=limit)


def test_a_study_that_cannot_go_on_says_when_and_why(crab, monkeypatch):
    sample = FixedStep.sample

    def ended(self, t, q, v):
        if t > 0.015:
            raise Stopped(t, "the ground gave way")
        return sample(self, t, q, v)

    monkeypatch.setattr(FixedStep, "sample", ended)
    with complains(StateError, "robustness stopped at t = 0.02 s: the ground gave way"):
        robustness(ComputedTorque(crab, sample_time=0.01), runs=1)
