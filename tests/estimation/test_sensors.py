"""The filter for who knows the sensors' noise and nothing else."""

import numpy as np
import pytest

from modurob import StateError, examples, simulate
from modurob.control import ComputedTorque, OutputFeedback, TrackingController
from modurob.control.references import minimum_jerk
from modurob.estimation import ekf_for_sensors
from modurob.sim import Noise

SIGMA, DT = 0.01, 0.005


def errors(masses):
    """(samples, 3) estimate minus truth, if modules weigh `masses` and the filter says 1 kg."""
    crab = examples.crab()
    model, true = crab.model(), crab.with_parameters(*crab.modules, mass=masses).model()
    ekf = ekf_for_sensors(model, DT, SIGMA)
    way = minimum_jerk(np.zeros(3), np.full(3, 0.8), 1.5)
    law = TrackingController(OutputFeedback(ComputedTorque(model, sample_time=DT), ekf), way)
    run = simulate(
        true, None, None, 2.0, law, "RK4", dt=DT / 5, record=DT,
        rng=np.random.default_rng(1), noise=Noise(SIGMA, 0.0, 0.0),
    )  # fmt: skip
    return (run.parts[0].channels["estimate_q"] - run.q)[100:]


def test_estimates_are_better_than_measurements():
    assert errors(1.0).std() < 0.6 * SIGMA


def test_masses_that_are_wrong_by_a_fifth_pull_estimates_off_as_the_guide_says():
    assert SIGMA < np.abs(errors(1.2).mean(axis=0)).max() < 4 * SIGMA


def test_noise_must_be_a_number_that_is_not_negative():
    model = examples.crab().model()
    with pytest.raises(StateError, match="sigma"):
        ekf_for_sensors(model, DT, -0.1)
    assert ekf_for_sensors(model, DT, 0.0).R[0, 0] > 0  # perfect sensors: it can still be inverted
