"""Filters of bodies whose friction is faster than a sample."""

from types import SimpleNamespace

import numpy as np
import pytest

from modurob import StateError, examples
from modurob.estimation import Ekf, consistency, ekf_for_sensors
from modurob.estimation.prediction import chosen
from modurob.friction import FrictionRate
from oracles import complains, filter_runs

SIGMA = 0.01  # [rad, m] of the sensors
CALM = 0.1  # [rad/s, m/s] an arm at rest, at most, by its estimate
LEVEL = 1 - 1e-4  # of the bands: the seeds are fixed, so they hold for good or not at all


@pytest.fixture(scope="module")
def arm():
    return examples.arm("babac").model("physical")


@pytest.mark.parametrize("dt", [0.001, 0.002, 0.005])
def test_the_filter_of_the_guide_keeps_an_arm_at_rest(arm, dt):
    ekf, rng = ekf_for_sensors(arm, dt=dt, sigma=SIGMA), np.random.default_rng(0)
    tau = arm.gravity_torque(arm.neutral())
    for _ in range(60):
        ekf.correct(SIGMA * rng.standard_normal(arm.nv))
        ekf.predict(tau)
    assert np.abs(ekf.v).max() < CALM
    assert np.linalg.eigvalsh(ekf.P).min() > 0


# one of each kind of choice: rk4 in parts, implicit steps, implicit steps on a free base
@pytest.mark.parametrize(
    ("seed", "dt", "integrator"), [(4, 0.005, "rk4"), (3, 0.005, "step"), (10, 0.002, "step")]
)
def test_errors_are_as_large_as_the_filter_says(seed, dt, integrator):
    model = filter_runs.body(seed)
    found = filter_runs.runs(model, dt, count=3, samples=6, seed=seed)
    assert found.chosen[0] == integrator
    assert found.decay > 5
    assert consistency(found.nees, found.dof, LEVEL).consistent


def test_without_friction_nothing_is_chosen_otherwise():
    model = examples.crab().model()
    assert (Ekf(model, 0.02).integrator, Ekf(model, 0.02).substeps) == ("rk4", 1)
    free = Ekf(examples.crab().model(base="free"), 0.02)
    assert (free.integrator, free.substeps) == ("step", 1)


def test_parts_of_a_sample_grow_with_friction():
    chosen = []
    for viscous in (0.01, 1.0, 3.0, 100.0):
        ekf = Ekf(examples.arm("ba").with_parameters(viscous=viscous).model("physical"), 0.005)
        chosen.append((ekf.integrator, ekf.substeps))
    assert chosen[0] == ("rk4", 1)
    assert [name for name, _ in chosen] == ["rk4", "rk4", "rk4", "step"]
    assert 1 < chosen[1][1] < chosen[2][1]


@pytest.mark.parametrize(
    ("integrator", "factor", "most", "decays"),
    [
        ("rk4", lambda x: 1 - x + x**2 / 2 - x**3 / 6 + x**4 / 24, 0.01, (0.5, 1.1, 3.0, 31.0)),
        ("step", lambda x: 1 / (1 + x), 0.03, (0.2, 0.3, 0.6, 1.9)),
    ],
)
def test_decays_by_friction_are_right_to_some_percent_in_each_part(
    integrator, factor, most, decays
):
    model = examples.arm("ba").with_parameters(viscous=1.0).model("physical")
    for decay in decays:
        parts = Ekf(model, decay / model.friction_rate.rate, integrator=integrator).substeps
        assert abs(factor(decay / parts) - np.exp(-decay / parts)) < most


def test_up_to_32_parts_of_runge_and_kutta_or_eight_implicit_ones_are_chosen():
    model = examples.arm("ba").with_parameters(viscous=1.0).model("physical")
    for decay, integrator, expected in (
        (0.9, None, ("rk4", 1)),
        (1.1, None, ("rk4", 2)),
        (31.9, None, ("rk4", 32)),
        (32.1, None, ("step", 8)),
        (1.6, "step", ("step", 7)),
        (2.9, "step", ("step", 8)),
    ):
        ekf = Ekf(model, decay / model.friction_rate.rate, integrator=integrator)
        assert (ekf.integrator, ekf.substeps) == expected, decay


def test_the_longest_steps_that_are_allowed_are_taken():
    """A decay of 32 in 32 steps; of 2 in each step where their number is given."""
    body = SimpleNamespace(friction_rate=FrictionRate(32.0, "hip"), free_base=False)
    assert chosen(body, 1.0, None, None) == ("rk4", 32)
    for integrator in (None, "rk4"):
        assert chosen(body, 1.0, integrator, 16) == ("rk4", 16)
        assert chosen(body, 0.5, integrator, 8) == ("rk4", 8)
    assert chosen(body, 1.001, None, 16) == ("step", 16)
    with complains(StateError, "the friction of 'hip'", "32 1/s", "substeps = 17 or more"):
        chosen(body, 1.001, "rk4", 16)


def test_too_few_substeps_are_refused_with_the_number_that_works(arm):
    with pytest.raises(StateError, match="rk4 with substeps = 2 is unstable") as caught:
        Ekf(arm, 0.005, integrator="rk4", substeps=2)
    assert "friction of 'm2.joint'" in str(caught.value)
    number = int(str(caught.value).split("give substeps = ")[1].split()[0])
    ekf, rng = Ekf(arm, 0.005, integrator="rk4", substeps=number), np.random.default_rng(0)
    with complains(StateError, f"substeps = {number}"):
        Ekf(arm, 0.005, integrator="rk4", substeps=number - 1)
    for _ in range(60):
        ekf.correct(SIGMA * rng.standard_normal(arm.nv))
        ekf.predict(arm.gravity_torque(arm.neutral()))
    assert np.abs(ekf.v).max() < 10 * CALM


def test_given_substeps_are_kept_and_only_the_method_is_chosen(arm):
    assert (Ekf(arm, 0.005, substeps=20).integrator, Ekf(arm, 0.005, substeps=20).substeps) == (
        "rk4", 20,
    )  # fmt: skip
    assert (Ekf(arm, 0.005, substeps=1).integrator, Ekf(arm, 0.005, substeps=1).substeps) == (
        "step", 1,
    )  # fmt: skip
    assert Ekf(arm, 0.005, integrator="rk4").substeps > 2


def test_rk4_that_would_take_for_ever_is_refused():
    model = examples.arm("ba").with_parameters(viscous=1e6).model("physical")
    with complains(StateError, "rk4", "substeps", "1/s", "integrator='step'"):
        Ekf(model, 0.005, integrator="rk4")
    Ekf(model, 0.005, integrator="step").predict(np.zeros(2))


def test_another_body_gets_steps_of_its_own():
    """What the filter chose for the old body is no choice of the user's."""
    light = examples.arm("ba").with_parameters(viscous=0.01).model("physical")
    stiff = examples.arm("bab").with_parameters(viscous=5.0).model("physical")
    first = Ekf(light, 0.005)
    assert first.rebuilt(stiff).substeps > first.substeps == 1
    told = Ekf(light, 0.005, integrator="step", substeps=3).rebuilt(stiff)
    assert (told.integrator, told.substeps) == ("step", 3)


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "two"])
def test_substeps_are_a_whole_number(arm, bad):
    with complains(StateError, "substeps must be a whole number", repr(bad)):
        Ekf(arm, 0.005, substeps=bad)


def test_dry_friction_at_rest_does_not_blow_the_covariance_up():
    model = examples.arm("ba").with_parameters(viscous=0.1, coulomb=0.5).model("physical")
    ekf, rng = ekf_for_sensors(model, 0.005, SIGMA), np.random.default_rng(1)
    first = np.trace(ekf.P)
    for _ in range(40):
        ekf.correct(SIGMA * rng.standard_normal(2))
        ekf.predict(model.gravity_torque(np.zeros(2)))
        assert np.trace(ekf.P) < 4 * first
    assert np.abs(ekf.q).max() < 3 * SIGMA
