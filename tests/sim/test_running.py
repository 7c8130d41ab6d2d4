"""Around a run: recording, dense output, stops, wrenches, progress, cancelling, runaways."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from modurob import Organism, SizeError, StateError, UnknownNameError, examples, simulate
from modurob.sim import SimulationError, Stops
from modurob.stepping.base import Integrator, IntegratorStep
from modurob.stepping.stops import StopForces
from oracles import complains

ROUNDING = 1e-12
REPEATED = 1e-9  # the same run twice, up to its accelerations: SciPy's methods go through BLAS


@pytest.fixture
def model():
    return examples.double_pendulum().model("physical")


# -- recording and dense output --------------------------------------------------------------------


@pytest.mark.parametrize("integrator", ["RK45", "RK4"])
def test_a_spacing_keeps_states_at_its_multiples_and_at_the_end(model, integrator):
    found = simulate(model, [0.5, 0], None, 1.0, None, integrator, record=0.3)
    np.testing.assert_allclose(found.t, [0, 0.3, 0.6, 0.9, 1.0], atol=ROUNDING)
    whole = simulate(model, [0.5, 0], None, 1.0, None, integrator, record=0.1)
    assert len(whole.t) == 11


def test_records_below_the_step_make_smaller_steps(model):
    found = simulate(model, [0.5, 0], None, 0.1, None, "RK4", dt=0.05, record=0.01)
    fine = simulate(model, [0.5, 0], None, 0.1, None, "RK4", dt=0.01)
    np.testing.assert_allclose(found.q, fine.q, atol=ROUNDING)


def test_dense_output_does_not_depend_on_what_is_recorded(model):
    options = {"rtol": 1e-9, "atol": 1e-9}
    every = simulate(model, [0.5, 0], None, 1.0, None, "DOP853", **options)
    few = simulate(model, [0.5, 0], None, 1.0, None, "DOP853", record=0.5, **options)
    times = np.linspace(0, 1, 37)
    np.testing.assert_allclose(few.at(times)[0], every.at(times)[0], atol=ROUNDING)
    np.testing.assert_allclose(every.at(every.t)[0], every.q, atol=ROUNDING)
    assert every.at(0.3)[0].shape == (2,)
    assert every.at([[0.1, 0.2], [0.3, 0.4]])[1].shape == (2, 2, 2)


def test_a_record_at_the_end_of_a_step_is_the_state_itself(model):
    """A method's polynomial meets it up to rounding; here it is far off."""

    class Apart(Integrator):
        def steps(self, t0, t1, q, v, stride=1):
            for t in (0.4, 1.0):
                yield IntegratorStep(t, q + t, v, lambda x, t=t: np.concatenate([q + 10 * t, v]))

    found = simulate(model, [0.5, 0], None, 1.0, None, Apart, record=[0.2, 0.4, 1.0])
    np.testing.assert_allclose(found.q[:, 1], [0.0, 4.0, 0.4, 1.0], atol=ROUNDING)


def test_dense_output_of_equal_steps_is_of_fifth_order(model):
    exact = simulate(model, [0.5, 0.2], None, 1.0, None, "DOP853", rtol=1e-13, atol=1e-13)
    times, errors = np.linspace(0.01, 0.99, 41), []
    for h in (0.1, 0.05):
        grid = np.arange(0, 1 + h / 2, h)
        kept = simulate(
            model, [0.5, 0.2], None, 1.0, None, "RK4", dt=1e-3, record=np.minimum(grid, 1)
        )
        errors.append(np.abs(kept.at(times)[0] - exact.at(times)[0]).max())
    assert np.log2(errors[0] / errors[1]) > 5.0


def test_a_time_outside_of_the_run_is_refused(model):
    found = simulate(model, None, None, 1.0)
    for t in (-0.1, 1.1, np.nan):
        with complains(StateError, "between 0 and 1 s"):
            found.at(t)


def test_recorded_arrays_cannot_be_changed(model):
    found = simulate(model, [0.1, 0.2], None, 0.1, lambda t, q, v: -q)
    for array in (found.t, found.q, found.v, found.a, found.tau, found.energy, found.momentum):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


def test_memory_is_asked_for_before_the_run(model):
    with complains(SizeError, "100,001 times of 100,000 states", "GB", "record="):
        simulate(model, np.zeros((100_000, 2)), None, 100.0, None, "RK4")


@pytest.mark.parametrize("record", [1e-12, 1e-320])
@pytest.mark.parametrize("name", ["RK45", "RK4"])
def test_records_that_do_not_fit_are_refused_before_they_are_made(model, name, record):
    with complains(SizeError, f"every {record:g} s", "GB", "give a larger record="):
        simulate(model, None, None, 1.0, None, name, record=record)


def test_a_clock_that_ticks_too_often_is_refused(model):
    with complains(SizeError, "sample_time = 1e-12 s", "1e+12", "give a larger sample_time="):
        simulate(model, None, None, 1.0, lambda t, q, v: 0 * v, sample_time=1e-12)


@pytest.mark.parametrize("name", ["RK45", "RK4"])
def test_steps_without_end_are_refused_with_their_number(model, name):
    with complains(StateError, "1e+12 steps", "the most is 1e+09", "or dt = 1e-09 s or more"):
        simulate(model, None, None, 1.0, None, name, dt=1e-12, record=0.5)
    if name == "RK4":
        with complains(StateError, "1e+12 steps", "dt = 0.001 s"):
            simulate(model, None, None, 1e9, None, name, record=1e8)


def test_a_run_that_outgrows_the_memory_stops_with_what_it_has(model, monkeypatch):
    """Adaptive methods do not know how many steps will come."""
    monkeypatch.setattr("modurob.checks.LARGEST_BYTES", 20_000)  # 256 rows fit, not twice as many
    with pytest.raises(SimulationError, match=r"more than 256 times .* record=") as caught:
        simulate(model, [0.3, 0.1], None, 5.0, None, dt=0.01)
    assert len(caught.value.trajectory.t) == 256


def test_a_member_of_a_batch_has_to_be_there(model):
    found = simulate(model, np.zeros((3, 4, 2)), None, 0.01, None, "RK4")
    assert found.member((2, 3)).q.shape == (11, 2)
    record = {
        "each": np.zeros((11, 3, 4, 5)),
        "all": np.zeros((11, 3, 5)),
    }  # of each state, of none
    kept = replace(found.parts[0], channels=record).member((2, 3)).channels
    assert {name: x.shape for name, x in kept.items()} == {"each": (11, 5)}
    with complains(StateError, "no member (3, 0)", "(3, 4)"):
        found.member((3, 0))
    with complains(StateError, "as many indices"):
        found.member(1)


# -- stops -----------------------------------------------------------------------------------------


def one_hinge():
    return Organism.start("backbone").dock("m0", 3, "m1", 4).model("physical")


@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, "hard", None, True])
@pytest.mark.parametrize("name", ["frequency", "rounding"])
def test_frequency_and_rounding_of_stops_are_positive(name, bad):
    with complains(StateError, f"the stops' {name} must be a positive number", repr(bad)):
        Stops(**{name: bad})


@pytest.mark.parametrize("bad", [-0.1, np.nan, np.inf, "soft", None, True])
def test_the_damping_of_stops_is_not_negative(bad):
    with complains(StateError, "the stops' damping must be zero or a positive", repr(bad)):
        Stops(damping=bad)
    assert Stops(damping=0).damping == 0


def test_a_stop_is_the_spring_that_its_docstring_says():
    model = one_hinge()
    stops = Stops(frequency=7.0, damping=0.4, rounding=0.02)
    force = StopForces(stops, model, model.neutral())
    k = (2 * np.pi * 7.0) ** 2 * model.mass_matrix([0.0])[0, 0]
    for side, limit in ((1, model.upper[0]), (-1, model.lower[0])):
        for x, speed in ((0.01, 0.0), (0.1, 0.5), (0.1, -1.0)):
            found = force(np.array([limit + side * x]), np.array([side * speed]))
            expected = -side * k * x**2 / (x + 0.02) * (1 + 0.4 * speed)
            np.testing.assert_allclose(found, expected, rtol=ROUNDING)
    assert force.rate == pytest.approx(2 * np.pi * 7.0)  # one joint: its own frequency


def test_stops_are_smooth_and_push_inward_only():
    model = one_hinge()
    force = StopForces(Stops(), model, model.neutral())
    q = np.pi / 2 * np.linspace(-1.02, 1.02, 20_001)[:, None]
    push = force(q, np.zeros_like(q))[:, 0]
    inside = np.abs(q[:, 0]) <= np.pi / 2
    assert np.all(push[inside] == 0)
    assert np.all(push[q[:, 0] > np.pi / 2] < 0)
    assert np.all(push[q[:, 0] < -np.pi / 2] > 0)
    jumps = np.abs(np.diff(push, 2)).max()  # of the slope
    assert jumps < 0.05 * np.abs(np.diff(push)).max()
    assert np.all(force(q, np.full_like(q, -100.0))[q[:, 0] > np.pi / 2] <= 0)  # never pulls


def test_a_stop_without_damping_conserves_energy():
    model = one_hinge()
    stops = Stops(frequency=5.0, damping=0.0)
    found = simulate(model, [1.0], [3.0], 2.0, None, "DOP853", rtol=1e-11, atol=1e-11, stops=stops)
    force = StopForces(stops, model, found.q[0])
    assert np.abs(force.beyond(found.q)).max() > 0.01  # it was there
    total = found.energy + force.energy(found.q)
    np.testing.assert_allclose(total, total[0], atol=1e-8)


def test_a_stop_with_damping_takes_energy():
    model = one_hinge()
    found = simulate(model, [1.0], [3.0], 2.0, None, "DOP853", stops=Stops(frequency=5.0))
    inside = np.abs(found.q[:, 0]) < np.pi / 2
    assert np.all(np.diff(found.energy[inside]) < 1e-6)
    assert found.energy[inside][-1] < found.energy[0] - 0.1


def test_stops_hold_batches_too():
    model = one_hinge()
    v = np.array([[3.0], [-3.0], [0.0]])
    found = simulate(model, [1.0], v, 0.5, None, "RK4", stops=True)
    assert np.abs(found.q).max() < np.pi / 2 + 0.3
    single = simulate(model, [1.0], v[1], 0.5, None, "RK4", stops=True)
    np.testing.assert_allclose(found.q[:, 1], single.q, atol=ROUNDING)


def test_recorded_accelerations_are_those_of_the_motion_on_its_stops():
    model = one_hinge()
    t = np.linspace(0.0, 0.4, 801)
    found = simulate(
        model, [1.5], [1.0], 0.4, None, "DOP853", rtol=1e-11, atol=1e-11, stops=True, record=t
    )
    assert found.q.max() > model.upper[0] + 0.01  # it was there
    slope = np.gradient(found.v[:, 0], t)[1:-1]
    np.testing.assert_allclose(found.a[1:-1, 0], slope, atol=1e-3 * np.abs(slope).max())


# -- wrenches --------------------------------------------------------------------------------------


def test_a_force_on_a_free_body_changes_its_momentum_by_its_impulse():
    model = examples.snake(2).model("physical", base="free", gravity=(0, 0, 0))
    push = {"m0.A": lambda t: [0.0, 0.0, np.sin(np.pi * t), 0, 0, 0]}

    found = simulate(model, None, None, 1.0, None, "DOP853", external=push, rtol=1e-10, atol=1e-10)
    times = np.linspace(0, 1, 2001)
    q, v = found.at(times)
    body = model.forward_kinematics(q)[:, model.body_index("m0.A")]
    force = np.sin(np.pi * times)[:, None] * body[:, :3, 2]  # in the world
    impulse = np.trapezoid(force, times, axis=0)
    np.testing.assert_allclose(model.momentum(q, v)[-1, :3], impulse, atol=1e-6)


def test_a_constant_wrench_works_like_a_function(model):
    wrench = [0.0, 0.3, 0.1, 0.02, 0.0, 0.0]
    one = simulate(model, None, None, 0.3, external={"m2": wrench}, record=0.1)
    other = simulate(model, None, None, 0.3, external={"m2": lambda t: wrench}, record=0.1)
    np.testing.assert_allclose(one.q, other.q, rtol=0, atol=REPEATED)
    np.testing.assert_allclose(one.a, other.a, rtol=0, atol=REPEATED)


def test_wrenches_on_bodies_that_are_not_there(model):
    with complains(UnknownNameError, "no body 'm9'", "m0"):
        simulate(model, None, None, 1.0, external={"m9": np.zeros(6)})


@pytest.mark.parametrize("bad", [np.zeros(5), [np.nan] * 6, "push", lambda t: None])
def test_a_wrench_is_six_numbers(model, bad):
    with complains(StateError, "six finite numbers"):
        simulate(model, None, None, 1.0, external={"m2": bad})


# -- progress and cancelling -----------------------------------------------------------------------


@pytest.mark.parametrize("integrator", ["RK45", "RK4", "Variational"])
def test_progress_rises_to_one(model, integrator):
    seen = []
    simulate(model, [1, 1], None, 0.5, None, integrator, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1


def test_a_bar_is_drawn_on_the_terminal_only(model, capsys, monkeypatch):
    simulate(model, [1, 1], None, 0.2, progress=True)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("FORCE_COLOR", "1")  # as if standard error were a terminal
    simulate(model, [1, 1], None, 0.2, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "simulating" in err
    assert "0.20 of 0.2 s" in err
    assert err.endswith("\x1b[2K")  # the line is erased


@pytest.mark.parametrize("integrator", ["DOP853", "RK4"])
def test_a_run_can_be_canceled_and_keeps_what_it_has(model, integrator):
    stop = threading.Event()

    def watch(done):
        if done > 0:
            stop.set()

    found = simulate(model, [1, 1], None, 1e4, None, integrator, progress=watch, cancel=stop)
    assert found.status == "canceled"
    assert "canceled at t = " in found.message
    assert 0 < found.t[-1] < 1e3
    assert "canceled" in repr(found)


def test_cancel_may_be_a_function(model):
    found = simulate(model, [1, 1], None, 1.0, None, "RK4", cancel=lambda: True)
    assert found.status == "canceled"


def test_what_is_no_progress_and_no_cancel(model):
    with complains(StateError, "progress", "'yes'"):
        simulate(model, None, None, 1.0, progress="yes")
    with complains(StateError, "cancel", "3"):
        simulate(model, None, None, 1.0, cancel=3)


# -- runaways --------------------------------------------------------------------------------------


def test_a_simulation_that_diverges_says_when_and_which_joint(model):
    def spring(t, q, v):
        return -1e4 * q  # far too stiff for this step

    with pytest.raises(SimulationError) as caught:
        simulate(model, [0.1, 0.1], None, 20.0, spring, "SemiImplicitEuler", dt=0.1)
    error = caught.value
    assert "the simulation stopped at t = " in str(error)
    assert "it diverged: the velocity of joint 'm" in str(error)
    assert len(str(error).splitlines()) == 1
    assert error.trajectory.t[-1] < error.time
    assert np.isfinite(error.trajectory.q).all()
    assert np.isfinite(error.trajectory.energy).all()
    assert error.trajectory.message == str(error)


def test_a_diverging_state_of_a_batch_is_named(model):
    def spring(t, q, v):
        return np.where(np.arange(4)[:, None] == 2, -1e4, -1.0) * q

    with pytest.raises(SimulationError, match="of state 2 is"):
        simulate(model, np.full((4, 2), 0.1), None, 20.0, spring, "SemiImplicitEuler", dt=0.1)


def test_a_singular_model_is_told_before_the_run():
    point = Organism.start("backbone").dock("m0", 3, "m1", 4, kind="scout")
    point = point.dock("m1", 3, "m2", 4).with_parameters(inertia=0.0)
    with complains(StateError, "singular"):
        simulate(point.model("physical"), None, None, 1.0)


def test_a_joint_without_limits_makes_no_stop_fast():
    """Most joints of the arm turn freely: their stops push nothing, and need no short steps."""
    model = examples.arm("babac").model("physical")
    assert StopForces(Stops(), model, model.neutral()).rate == 0.0
    limited = replace(model, upper=np.where(np.arange(5) == 2, 1.0, model.upper))
    M = model.mass_matrix(model.neutral())
    alone = 2 * np.pi * 7.0 * np.sqrt(np.linalg.inv(M)[2, 2] * M[2, 2])
    assert StopForces(Stops(7.0), limited, model.neutral()).rate == pytest.approx(alone)
