"""Bodies without joints, runs without states, and errors that travel between processes."""

import pickle

import numpy as np
import pytest

import modurob as mr
from modurob.estimation import ekf_for_sensors
from modurob.verification import verify

HUGE = 10**400  # an integer that no float can hold


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_a_single_module_can_be_simulated_and_read_out(base, tmp_path):
    organism = mr.Organism.start("backbone")
    run = mr.simulate(organism.model(base=base), None, None, 0.1, organism=organism)
    assert run.energy.shape == run.t.shape
    np.testing.assert_allclose(run.energy, run.energy[0], atol=1e-9)
    assert run.momentum.shape == (len(run.t), 6)
    run.to_csv(tmp_path / "run.csv")
    assert (tmp_path / "run.csv").exists()


def test_a_fixed_module_without_joints_may_be_above_ground():
    model = mr.Organism.start("backbone").model()
    run = mr.simulate(model, None, None, 0.01, ground=mr.Ground(height=-1.0))
    assert run.q.shape == (len(run.t), 0)
    assert not run.channels["contact"].any()


def test_a_body_that_cannot_move_is_done_in_one_step():
    told, model = [], mr.Organism.start("backbone").model()
    run = mr.simulate(model, None, None, 2.0, progress=told.append)
    assert told == [1.0]
    np.testing.assert_array_equal(run.t, [0.0, 2.0])


def test_undocking_down_to_single_modules_can_be_read_out():
    organism = mr.examples.snake(2)
    events = [mr.sim.Undock(0.05, "m1")]
    run = mr.simulate(organism.model(), None, None, 0.1, events=events, organism=organism)
    assert all(np.isfinite(part.energy).all() for part in run.parts)


def test_an_empty_batch_has_empty_energies_and_matrices():
    model = mr.examples.crab().model()
    run = mr.simulate(model, np.zeros((0, 3)), None, 0.05, integrator="RK4")
    assert run.energy.shape == (len(run.t), 0)
    found = model.closed_form(np.zeros((0, 3)), np.zeros((0, 3)))
    assert [part.shape for part in found] == [(0, 3, 3), (0, 3, 3), (0, 3)]


@pytest.mark.parametrize("kind", ["backbone", "superbot"])
def test_one_module_can_balance_and_be_verified(kind):
    organism = mr.Organism.start(kind)
    assert np.isfinite(mr.distributed.balance(organism, duration=0.05).center).all()
    assert verify(organism, base="free", states=2).passed


def test_a_simulation_error_survives_pickling():
    def late(t, q, v):
        return 1 / 0 if t > 0.05 else 0 * v

    with pytest.raises(mr.sim.SimulationError) as caught:
        mr.simulate(mr.examples.crab().model(), None, None, 0.1, late)
    twin = pickle.loads(pickle.dumps(caught.value))
    assert str(twin) == str(caught.value)
    assert twin.time == caught.value.time
    assert len(twin.trajectory.t) == len(caught.value.trajectory.t)


@pytest.mark.parametrize("reading", [1e16, -1e306, np.inf])
def test_a_filter_refuses_absurd_readings_and_goes_on(reading):
    model = mr.examples.crab().model()
    filter_ = ekf_for_sensors(model, dt=0.01, sigma=0.01)
    with pytest.raises(mr.StateError, match=r"y\[0\] is"):
        filter_.correct([reading, 0.0, 0.0])
    filter_.correct([0.0, 0.0, 0.0])
    filter_.predict(model.gravity_torque(model.neutral()))
    assert np.isfinite(filter_.q).all()


@pytest.mark.parametrize("dt", ["x", None, HUGE, -1.0])
def test_a_filter_checks_its_sample_time_first(dt):
    with pytest.raises(mr.StateError, match="dt"):
        ekf_for_sensors(mr.examples.crab().model(), dt=dt, sigma=0.01)


def test_integers_that_no_float_can_hold_are_refused():
    model = mr.examples.crab().model()
    rest = np.zeros(3)
    for call in (
        lambda: model.mass_matrix([HUGE, 0, 0]),
        lambda: model.inverse_dynamics(rest, rest, rest, {"m0": [HUGE] * 6}),
        lambda: mr.examples.crab().model(gravity=(0, 0, HUGE)),
        lambda: model.inverse_kinematics({"m3": [HUGE, 0, 0]}),
    ):
        with pytest.raises(mr.StateError):
            call()
