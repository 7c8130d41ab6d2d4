"""Random steps under conditions that a law does not know."""

import dataclasses
import sys

import numpy as np
import pytest

from modurob import SizeError, StateError, examples, simulate
from modurob.control import (
    CONTROLLERS,
    ComputedTorque,
    IndependentPid,
    PidLinearized,
    robustness,
    with_scaled_masses,
)
from modurob.control.closed_loop import delay_margin
from modurob.control.plants import side_by_side
from modurob.control.robustness import Robustness, RobustnessCase, _Block, _simulated, _Study
from modurob.executors import LocalExecutor
from modurob.sim import Noise
from oracles import complains

SAME = 1e-11  # [rad] over a hundred steps of the same integrator
DT = 0.005


@pytest.fixture(scope="module")
def crab():
    return examples.crab().model()


def law_of(model, **options):
    return ComputedTorque(model, settling_time=0.4, sample_time=DT, **options)


def block_of(study, law, factors):
    return _Block(law, factors, 0.0, study.goals, (0, 0), study.start, study.steps, study.band)


def by_name(table):
    return {case.name: case for case in table.cases}


# -- bodies ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [
    lambda: examples.crab().model(), lambda: examples.arm("bac").model("physical"),
    lambda: examples.crane().with_parameters(viscous=0.2).model("physical"),
    lambda: examples.snake(3).model("physical", base=("px", "rz")),
])  # fmt: skip
def test_bodies_side_by_side_move_as_each_does_alone(make):
    model, rng = make(), np.random.default_rng(0)
    factors = rng.uniform(0.5, 1.5, (4, len(model.mass)))
    together = side_by_side(model, factors)
    q = np.array([[model.random_configuration(rng) for _ in range(4)] for _ in range(3)])
    v, tau = rng.standard_normal((2, 3, 4, model.nv))
    found = together.forward_dynamics(*(x.reshape(3, -1) for x in (q, v, tau))).reshape(3, 4, -1)
    for k, factor in enumerate(factors):
        alone = with_scaled_masses(model, factor).forward_dynamics(q[:, k], v[:, k], tau[:, k])
        np.testing.assert_allclose(found[:, k], alone, rtol=1e-11, atol=1e-11)


def test_scaled_masses_scale_all_torques(crab):
    rng = np.random.default_rng(1)
    q, v, a = crab.random_configuration(rng), *rng.standard_normal((2, 3))
    np.testing.assert_allclose(
        with_scaled_masses(crab, 1.3).inverse_dynamics(q, v, a),
        1.3 * crab.inverse_dynamics(q, v, a),
        rtol=1e-12,
    )
    for wrong in (0.0, -1, [1, 2], np.nan):
        with pytest.raises(StateError):
            with_scaled_masses(crab, wrong)


def test_steps_are_at_most_as_large_as_asked_for_and_go_both_ways(crab):
    step = np.array([0.1, 0.2, 0.3])
    study = _Study(ComputedTorque(crab, sample_time=2e-3), step, 400, 0.1, 0.02,
                   np.random.default_rng(3))  # fmt: skip
    share = (study.goals - study.start) / step
    assert 0.95 < np.abs(share).max() <= 1
    assert np.abs(share).min() > 0
    assert np.all((share > 0).mean(axis=0) > 0.4)
    assert np.all((share < 0).mean(axis=0) > 0.4)


@pytest.mark.parametrize("law", CONTROLLERS.values(), ids=CONTROLLERS)
def test_many_runs_at_once_are_the_runs_of_the_simulator(law):
    """Wrong masses, a delay and limits together, each run against `simulate` by itself."""
    model = examples.arm("bac").model("physical")
    one = law(model, sample_time=2e-3, delay=4e-3, torque_limit=[3.0, 2.0, 4.0])
    study = _Study(one, 0.2, 5, 0.1, 0.02, np.random.default_rng(3))
    factors = np.random.default_rng(4).uniform(0.8, 1.2, (2, len(model.mass)))
    block = block_of(study, one, factors)
    assert block.substeps() > 1  # friction makes it stiff
    flight = _simulated(block)
    assert flight.q.shape == (51, 5, 3)
    for k in range(5):
        true = with_scaled_masses(model, factors[k % 2])
        alone = simulate(true, None, None, 0.1, one, "RK4", dt=2e-3 / block.substeps(),
                         record=2e-3, reference=study.goals[k])  # fmt: skip
        np.testing.assert_allclose(flight.q[:, k], alone.q, rtol=0, atol=SAME)


def test_noise_of_many_runs_is_that_of_the_simulator(crab):
    """The same standard deviations: errors at rest agree within their scatter."""
    law = law_of(crab)
    table = robustness(law, masses=0, delay=0, noise=0.03, runs=100, duration=1.5)
    goal = np.array([0.3, -0.2, 0.1])
    run = simulate(
        crab, None, None, 20.0, law, "RK4", dt=DT, reference=goal, noise=Noise(q=0.03, v=0.03),
        rng=np.random.default_rng(0),
    )  # fmt: skip
    rms = np.sqrt(np.mean((run.q[run.t > 2] - goal) ** 2))
    assert by_name(table)["noise 0.03"].error == pytest.approx(rms, rel=0.15)


# -- the table -------------------------------------------------------------------------------------


def test_as_designed_all_steps_settle_in_the_time_asked_for(crab):
    case = robustness(law_of(crab), runs=50).cases[0]
    assert (case.name, case.runs) == ("as designed", 50)
    assert (case.settled, case.diverged, case.saturated) == (1.0, 0.0, 0.0)
    assert case.settling == pytest.approx(0.4, abs=0.01)
    assert case.overshoot < 1e-6
    assert case.error < 1e-6


def test_each_condition_has_a_row_and_all_together_the_last(crab):
    table = robustness(law_of(crab), runs=20, duration=0.5)
    assert [case.name for case in table.cases] == [
        "as designed", "masses ±10 %", "delay 20 ms", "noise 0.03", "torque limits", "all at once"
    ]  # fmt: skip
    assert all(case.name in str(table) for case in table.cases)
    few = robustness(law_of(crab), masses=0.0, delay=0.0, noise=0.0, runs=5, duration=0.2)
    assert [case.name for case in few.cases] == ["as designed", "torque limits"]


def test_wrong_masses_leave_an_error_that_an_integral_takes_away(crab):
    options = {"masses": 0.1, "delay": 0.0, "noise": 0.0, "runs": 40, "duration": 2.0}
    without = by_name(robustness(law_of(crab), **options))["masses ±10 %"]
    pid = PidLinearized(crab, settling_time=0.4, sample_time=DT)
    with_integral = by_name(robustness(pid, **options))["masses ±10 %"]
    assert without.settled < 0.8
    assert without.error > 1e-3
    assert with_integral.settled == 1.0
    assert with_integral.error < 1e-5


def test_a_sag_of_wrong_masses_is_what_statics_say(crab):
    """M k0 e = (true - believed) gravity, with one factor for all bodies' links."""
    study = _Study(law_of(crab), 0.3, 4, 2.5, 0.02, np.random.default_rng(0))
    factors = np.full((1, len(crab.mass)), 1.1)
    flight = _simulated(block_of(study, law_of(crab), factors))
    k0 = law_of(crab).k0[0]
    for q in flight.q[-1]:
        goal = study.goals[np.argmin(np.abs(study.goals - q).sum(axis=1))]
        lacking = 0.1 * crab.gravity_torque(q)
        np.testing.assert_allclose(
            crab.mass_matrix(q) @ (k0 * (goal - q)), lacking, rtol=0, atol=1e-6
        )


def test_a_delay_beyond_the_margin_diverges_and_one_within_does_not(crab):
    law = ComputedTorque(crab, settling_time=0.3, sample_time=DT)
    margin = delay_margin(law, np.zeros(3))
    options = {"masses": 0.0, "noise": 0.0, "runs": 8, "duration": 2.0, "torque_limit": 1e6}
    good, bad = (
        robustness(law, delay=d, **options).cases[1] for d in (margin - 2 * DT, margin + 3 * DT)
    )
    assert (good.settled, good.diverged) == (1.0, 0.0)
    assert (bad.settled, bad.diverged) == (0.0, 1.0)
    assert np.isnan(bad.error)


def test_limits_saturate_and_slow_down(crab):
    """Half the torque of the step is not there; the load of the set points is."""
    law = law_of(crab)
    load = np.abs(crab.gravity_torque(np.full(3, 0.0))).max()
    limit = [1.05 * load, 0.02, 0.02]
    options = {"masses": 0.0, "delay": 0.0, "noise": 0.0, "runs": 30}
    tight = by_name(robustness(law, torque_limit=limit, **options))["torque limits"]
    free = robustness(law, **options).cases[0]
    assert tight.saturated > 0.01
    assert free.saturated == 0.0
    assert tight.settling > free.settling


def test_the_law_keeps_its_own_limits_and_delay(crab):
    law = law_of(crab, torque_limit=[2.2, 0.05, 0.05], delay=DT)
    table = robustness(law, masses=0.0, delay=0.0, noise=0.0, runs=10, torque_limit=100.0)
    assert table.cases[0].saturated > 0
    assert table.cases[1].saturated == table.cases[0].saturated


def test_the_same_seed_gives_the_same_table(crab):
    one, two, other = (
        robustness(law_of(crab), runs=12, duration=0.4, rng=np.random.default_rng(seed))
        for seed in (5, 5, 6)
    )
    assert one == two
    assert dataclasses.asdict(one) != dataclasses.asdict(other)


def test_processes_change_no_number_of_the_table(crab, monkeypatch):
    """Blocks of 20 runs with noise, in this process and in two others."""
    monkeypatch.setattr(sys.modules[_Study.__module__], "BLOCK_RUNS", 20)
    options = {"runs": 50, "duration": 0.1, "noise": 0.05}
    with LocalExecutor(2) as two:
        found = robustness(law_of(crab), **options, executor=two)
    assert str(found.cases) == str(robustness(law_of(crab), **options).cases)  # NaN: not settled
    assert len({case.error for case in found.cases}) == len(found.cases)


def test_each_block_has_noise_of_its_own(crab):
    study = _Study(law_of(crab), 0.3, 3, 0.05, 0.02, np.random.default_rng(0))
    block = dataclasses.replace(block_of(study, study.law, np.ones((1, len(crab.mass)))), noise=0.1)
    one, same, other = (
        _simulated(dataclasses.replace(block, seed=(7, k))).q[-1] for k in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert np.all(one != other)


def test_progress_goes_to_the_end(crab):
    seen = []
    robustness(law_of(crab), runs=3, duration=0.1, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


@pytest.mark.parametrize(
    ("change", "pieces"),
    [
        ({"masses": 1.0}, ["masses", "0.1 for 10 %"]),
        ({"masses": -0.1}, ["masses must be zero or a positive"]),
        ({"noise": -1}, ["noise must be zero or a positive"]),
        ({"delay": np.nan}, ["delay must be zero or a positive"]),
        ({"runs": 0}, ["runs", "whole number of 1 or more"]),
        ({"step": 0.0}, ["step must be positive"]),
        ({"step": [0.1, 0.2]}, ["step has shape (2,)", "(3,)"]),
        ({"torque_limit": -1}, ["torque_limit"]),
        ({"duration": 0}, ["duration"]),
        ({"band": 3}, ["band"]),
    ],
)
def test_wrong_conditions_are_named(change, pieces, crab):
    with complains(StateError, *pieces):
        robustness(law_of(crab), **({"runs": 3, "duration": 0.1} | change))


def test_laws_that_cannot_be_tried_are_named(crab):
    with complains(StateError, "sample_time"):
        robustness(ComputedTorque(crab))
    with complains(StateError, "free base"):
        robustness(law_of(examples.snake(3).model("physical", base="free")))
    with complains(StateError, "no joint"):
        robustness(law_of(examples.snake(1).model("physical")))
    with complains(StateError, "fixed base"):
        side_by_side(examples.snake(3).model("physical", base="free"), np.ones((2, 3)))


def test_an_independent_pid_can_be_tried_too(crab):
    table = robustness(IndependentPid(crab, settling_time=0.4, sample_time=DT), runs=5)
    assert table.law == "independent PID"


def test_runs_in_blocks_are_the_runs_at_once(crab, monkeypatch):
    """Without noise the order of the runs changes nothing; each keeps its body."""
    law = law_of(crab)
    options = {"masses": 0.2, "noise": 0.0, "runs": 60, "duration": 0.1}
    whole = robustness(law, **options)
    module = sys.modules["modurob.control.robustness"]
    monkeypatch.setattr(module, "MEMORY_SHARE", 0.0)  # 50 runs at once, one a body
    for case, expected in zip(robustness(law, **options).cases, whole.cases, strict=True):
        np.testing.assert_allclose(case[2:], expected[2:], rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"runs": 10**9}, ["set points of 1000000000 runs", "192 GB", "fewer runs"]),
        ({"runs": 100, "duration": 1e6}, ["50 run(s) of 200000000 samples", "shorter duration"]),
    ],
)
def test_runs_that_do_not_fit_into_memory_are_refused(crab, options, parts):
    with pytest.raises(SizeError) as caught:
        robustness(law_of(crab), **options)
    assert all(part in str(caught.value) for part in parts), caught.value


def test_a_table_of_runs_that_all_diverge_shows_no_numbers_for_them():
    nothing = RobustnessCase("all at once", 5, 0.0, np.nan, np.nan, np.nan, 0.25, 1.0)
    lines = str(Robustness("a law", 1.0, 0.02, (nothing,))).splitlines()
    assert lines[-1].split() == ["all", "at", "once", "0.0%", "-", "-", "-", "25.0%", "100.0%"]
    assert len(lines[1]) == len(lines[2])


def test_without_random_numbers_the_table_is_always_the_same(crab):
    law = law_of(crab)
    first, same = (
        robustness(law, runs=3, duration=0.1, **given)
        for given in ({}, {"rng": np.random.default_rng(0)})
    )
    for one, other in zip(first.cases, same.cases, strict=True):
        np.testing.assert_equal(one._asdict(), other._asdict())


def test_progress_rises_evenly_to_one(crab):
    seen = []
    robustness(law_of(crab), runs=3, duration=0.1, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1.0)
    assert np.diff(seen, prepend=0).max() < 0.3  # six conditions
