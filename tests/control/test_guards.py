"""Guards of the laws and their helpers that whole runs never meet."""

from __future__ import annotations

import numpy as np
import pytest

from modurob import StateError, examples, simulate
from modurob.control import (
    ComputedTorque,
    IndependentPid,
    Lqr,
    PdGravity,
    PidLinearized,
    TrackingController,
    plot_closed_loop,
)
from modurob.control.delay import MOST, DelayLine, samples_late
from modurob.control.references import Quintic, SetPoint, minimum_jerk, slowed
from oracles.complaints import complains


@pytest.fixture(scope="module")
def pendulum():
    return examples.double_pendulum().model("physical")


@pytest.fixture(scope="module")
def crab():
    return examples.crab().model("physical")


# -- delay -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("delay", "sample_time", "count"),
    [
        (False, None, 0),
        (0, None, 0),
        (0.0, 0.01, 0),
        (True, 0.01, 1),
        (0.01, 0.01, 1),
        (0.02 * (1 + 1e-8), 0.01, 2),
        (MOST * 0.25, 0.25, MOST),
    ],
)
def test_delays_are_counted_in_samples(delay, sample_time, count):
    assert samples_late(delay, sample_time) == count


@pytest.mark.parametrize(
    ("delay", "sample_time", "pieces"),
    [
        (True, None, ["sample_time", "0.001"]),
        (0.01, None, ["sample_time"]),
        (-0.01, 0.01, ["delay"]),
        (0.025, 0.01, ["whole samples of 0.01 s", "0.025 s", "take 0.02 s"]),
        (0.001, 0.01, ["take 0.01 s"]),
        (0.02 * (1 + 1e-5), 0.01, ["whole samples"]),
        ((MOST + 1) * 0.25, 0.25, ["10,000 are the most"]),
    ],
)
def test_delays_that_are_no_samples_are_named(delay, sample_time, pieces):
    with complains(StateError, *pieces):
        samples_late(delay, sample_time)


def test_a_loop_with_too_many_late_torques_is_refused_at_once(pendulum):
    law = ComputedTorque(pendulum, sample_time=1e-3, delay=3.0)  # eigenvalues would take minutes
    with complains(StateError, "3000 samples late", "6,004", "longer samples"):
        law.certificate()


def test_torques_arrive_in_order_and_copies_are_apart():
    line = DelayLine(2)
    line.fill(np.array([9.0]))
    twin = line.__copy__()
    assert [float(line.passed(np.array([x]))[0]) for x in (1.0, 2.0, 3.0)] == [9, 9, 1]
    assert len(line.under_way) == 2
    twin.under_way[0][0] = 5.0
    assert [float(x[0]) for x in twin.under_way] == [5, 9]
    line.clear()
    assert line.under_way == []


# -- laws ------------------------------------------------------------------------------------------


def test_a_torque_that_is_not_finite_is_not_sent(pendulum):
    law = PdGravity(pendulum, 1e300, 1e300)
    with (
        np.errstate(over="ignore", invalid="ignore"),
        complains(StateError, law.name, "not finite", "gains are too large"),
    ):
        law.command(0.0, np.zeros(2), np.zeros(2), [1e300, 0.0])


@pytest.mark.parametrize("sample_time", [None, 0.01])
def test_gains_beyond_all_numbers_are_seen_in_torques(sample_time):
    heavy = examples.double_pendulum(m1=50.0, m2=50.0).model("physical")
    with np.errstate(over="ignore", invalid="ignore"):
        law = ComputedTorque(heavy, 1e308, 1e308, sample_time=sample_time)
        with complains(StateError, "too large"):
            law.command(0.0, np.zeros(2), np.zeros(2), [1.0, 0.0])


def test_laws_print_what_they_are(pendulum):
    assert repr(PdGravity(pendulum)) == "<PdGravity of 2 joints>"


def test_a_joint_is_passive_once(pendulum):
    names = pendulum.joint_names
    with complains(StateError, "passive names a joint twice"):
        ComputedTorque(pendulum, passive=[names[0], names[0]])
    assert ComputedTorque(pendulum, passive=names[1]).passive == (names[1],)
    assert ComputedTorque(pendulum, passive=names[::-1]).passive == names


def test_gains_come_in_pairs(pendulum):
    for given in ({"kp": 1.0}, {"kd": 1.0}, {"kp": 1.0, "kd": 1.0, "settling_time": 1.0}):
        with complains(StateError, "give kp and kd, or settling_time, or none of them"):
            PdGravity(pendulum, **given)


def test_a_pid_needs_a_time(pendulum):
    law = PidLinearized(pendulum)
    for wrong in (np.nan, np.inf):
        with complains(StateError, "t must be a finite number"):
            law.command(wrong, np.zeros(2), np.zeros(2), [0.0, 0.0])


def test_the_error_matrix_of_a_pid_has_the_roots_of_its_polynomial(pendulum):
    law = PidLinearized(pendulum, kp=[11.0, 31.0], ki=[6.0, 30.0], kd=[6.0, 10.0])
    found = np.sort_complex(np.linalg.eigvals(law.error_matrix()))
    expected = np.concatenate([np.roots([1, 6, 11, 6]), np.roots([1, 10, 31, 30])])
    np.testing.assert_allclose(found, np.sort_complex(expected.astype(complex)), atol=1e-9)


def test_given_gains_and_limits_of_a_pid_go_to_another_body():
    old, new = examples.snake(3).model("physical"), examples.snake(4).model("physical")
    law = IndependentPid(old, [3.0, 4.0], [1.0, 2.0], [0.5, 0.6], integral_limit=[7.0, 8.0])
    twin = law.rebuilt(new)
    here = [new.joint_names.index(name) for name in old.joint_names]
    for name, values in (("kp", [3, 4]), ("ki", [1, 2]), ("kd", [0.5, 0.6])):
        np.testing.assert_allclose(getattr(twin.pid, name)[here], values)
    np.testing.assert_allclose(twin.pid.integral_limit[here], [7, 8])
    assert np.isfinite(twin.pid.integral_limit).all()
    assert np.isinf(IndependentPid(old, 3.0, 1.0, 0.5).rebuilt(new).pid.integral_limit).all()


def test_given_weights_of_an_lqr_go_to_another_body():
    old, new = examples.snake(3).model("physical"), examples.snake(4).model("physical")
    Q = np.diag([1.0, 2.0, 3.0, 4.0])
    twin = Lqr(old, Q=Q, R=5.0).rebuilt(new)
    here = np.array([new.joint_names.index(name) for name in old.joint_names])
    np.testing.assert_allclose(np.diag(twin.Q)[here], [1, 2])
    np.testing.assert_allclose(np.diag(twin.Q)[3 + here], [3, 4])
    np.testing.assert_allclose(np.diag(twin.R), 5)
    assert np.count_nonzero(twin.Q - np.diag(np.diag(twin.Q))) == 0


def test_weights_of_motors_and_of_pairs_of_joints_are_kept_for_the_joints_of_both_bodies():
    old, new = examples.snake(3).model("physical"), examples.snake(4).model("physical")
    Q, R = np.diag([1.0, 2.0, 3.0, 4.0]), np.array([[2.0, 0.5], [0.5, 8.0]])
    Q[0, 2] = Q[2, 0] = 0.1
    twin = Lqr(old, Q=Q, R=R).rebuilt(new)
    here = np.array([new.joint_names.index(name) for name in old.joint_names])
    (added,) = set(range(3)) - set(here.tolist())
    np.testing.assert_array_equal(twin.R[np.ix_(here, here)], R)
    assert twin.R[added].tolist() == [0, 0, 5]  # the median, and no coupling
    assert twin.Q[here[0], 3 + here[0]] == 0.1


def test_a_tracking_law_is_brought_to_a_new_body_by_its_first_command():
    old, new = examples.snake(3).model("physical"), examples.snake(4).model("physical")
    law = TrackingController(ComputedTorque(old), SetPoint([0.3, -0.2]))
    law.command(0.0, np.zeros(2), np.zeros(2))
    twin = law.rebuilt(new)
    q = np.array([0.1, 0.2, 0.3])
    twin.command(0.0, q, np.zeros(3))
    here = [new.joint_names.index(name) for name in old.joint_names]
    aim = twin.reference(0.0).q
    np.testing.assert_allclose(aim[here], [0.3, -0.2])
    (fresh,) = set(range(3)) - set(here)
    assert aim[fresh] == q[fresh]


def test_a_start_from_which_the_motion_diverges_is_named(pendulum):
    law = ComputedTorque(pendulum, 4e4, 400.0, sample_time=4e-3, delay=0.04, torque_limit=1e9)
    found = law.certificate([0.1, 0.1], (np.zeros(2), np.zeros(2)))
    assert not found.guaranteed
    assert any("diverges" in finding.why for finding in found.findings)


# -- references ------------------------------------------------------------------------------------


def test_references_name_what_does_not_fit(pendulum, crab):
    for begin in ("now", None, np.nan, True):
        with complains(StateError, "begin must be a number of seconds"):
            Quintic([0.0], [1.0], 1.0, begin=begin)
    with complains(StateError, "q0 has 3 joints, the model 2"):
        minimum_jerk([0.0] * 3, [1.0] * 3, model=pendulum, rate=1.0)
    with complains(StateError, "the reference has 2 joints", "the model"):
        slowed(Quintic([0.0, 0], [1.0, 1], 1.0), crab, 1.0, rate=1.0)


def test_a_reference_is_slowed_for_each_limit_alone(pendulum):
    way = Quintic([0.0, 0.0], [1.0, 0.5], 1.0)
    peak_rate, peak_acceleration = 15 / 8, 10 / np.sqrt(3)
    by_rate = slowed(way, pendulum, 1.0, rate=peak_rate / 2)
    by_acceleration = slowed(way, pendulum, 1.0, acceleration=peak_acceleration / 4)
    for found in (by_rate, by_acceleration):  # both take twice the time
        np.testing.assert_allclose(found(1.0).q, way(0.5).q, atol=1e-3)
    free = slowed(way, pendulum, 1.0, rate=10 * peak_rate, acceleration=1e3)
    np.testing.assert_allclose(free(0.3).q, way(0.3).q)


# -- plots -----------------------------------------------------------------------------------------


def test_limits_are_drawn_beside_the_torques_and_bodies_that_float_are_not(pendulum):
    law = ComputedTorque(pendulum, torque_limit=[50.0, np.inf], sample_time=0.01)
    way = SetPoint([0.1, 0.1])
    run = simulate(pendulum, None, None, 0.05, law, "RK4", reference=way, record=0.01)
    figure = plot_closed_loop(run, law, way)
    levels = {
        float(line.get_ydata()[0])
        for plane in figure.axes
        for line in plane.lines
        if len(set(line.get_ydata())) == 1 and len(line.get_xdata()) == 2
    }
    assert {50.0, -50.0} <= levels
    assert {plane.get_xlim() for plane in figure.axes} == {(0.0, run.t[-1])}
    floating = examples.crab().model("physical", "free")
    with complains(StateError, "one run of joints on a fixed base"):
        plot_closed_loop(run, ComputedTorque(floating), way)
