"""Guards of the laws and their helpers that whole runs never meet."""

from __future__ import annotations

import dataclasses
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from modurob import Organism, StateError, examples, simulate
from modurob.control import (
    Adaptive,
    CartesianImpedance,
    ComputedTorque,
    IndependentPid,
    JointImpedance,
    Lqr,
    PartialLinearization,
    PdGravity,
    PidLinearized,
    PolePlacement,
    Reference,
    Robust,
    TrackingController,
    certificate,
    plot_closed_loop,
    promise,
    transient,
    with_payload,
)
from modurob.control.certificate import is_decaying
from modurob.control.closed_loop import (
    Rehearsal,
    delay_margin,
    linearized,
    rehearsed,
    settling_time,
)
from modurob.control.delay import MOST, DelayLine, samples_late
from modurob.control.gains import _upper_bound, settling_factor
from modurob.control.plants import side_by_side
from modurob.control.promise import _Outcome, _steps, _Trial
from modurob.control.references import Quintic, SetPoint, minimum_jerk, slowed
from modurob.control.robustness import Robustness
from modurob.drawing.charts import FAINT, INK, PALETTE
from modurob.equations.links import SLIP_SPEED
from oracles.complaints import complains
from oracles.differences import columns


@pytest.fixture(scope="module")
def pendulum():
    return examples.double_pendulum().model("physical")


@pytest.fixture(scope="module")
def crab():
    return examples.crab().model("physical")


@pytest.fixture(scope="module")
def rail():
    """A joint that slides without friction: a double integrator."""
    return examples.arm("c").with_parameters(viscous=0.0).model("physical")


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
    with complains(StateError, "3000 samples late", "6,004", "2,000 are", "longer samples"):
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
    soft = dataclasses.replace(
        pendulum, stiffness=np.array([0.0, 0.5]), organism=None, options=None
    )
    assert ComputedTorque(soft).passive == (names[1],)


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
    np.testing.assert_allclose(Lqr(old, Q=Q).rebuilt(new).R, Lqr(new).R)  # as by default


def test_weights_of_motors_and_of_pairs_of_joints_are_kept_for_the_joints_of_both_bodies():
    old, new = examples.snake(3).model("physical"), examples.snake(4).model("physical")
    Q, R = np.diag([1.0, 2.0, 3.0, 4.0]), np.array([[2.0, 0.5], [0.5, 8.0]])
    Q[0, 2] = Q[2, 0] = 0.1
    Q[0, 3] = Q[3, 0] = 0.2
    twin = Lqr(old, Q=Q, R=R).rebuilt(new)
    here = np.array([new.joint_names.index(name) for name in old.joint_names])
    (added,) = set(range(3)) - set(here.tolist())
    np.testing.assert_array_equal(twin.R[np.ix_(here, here)], R)
    assert twin.R[added].tolist() == [0, 0, 5]  # the median, and no coupling
    assert twin.Q[here[0], 3 + here[0]] == 0.1
    assert twin.Q[here[0], 3 + here[1]] == 0.2
    np.testing.assert_array_equal(twin.Q, twin.Q.T)


def test_weights_of_motors_on_a_free_base_are_those_of_its_joints():
    old, new = (examples.snake(n).model("physical", "free") for n in (3, 4))
    twin = Lqr(old, R=[2.0, 8.0]).rebuilt(new)
    here = np.array([new.joint_names.index(name) for name in old.joint_names])
    np.testing.assert_array_equal(np.diag(twin.R)[here], [2, 8])
    assert np.diag(twin.R).tolist().count(5.0) == 1


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
    assert any("diverges" in finding.why for finding in found.failures)


def test_a_late_torque_is_made_for_the_middle_of_the_sample_in_which_it_acts(pendulum):
    dt, q, v = 0.01, np.array([0.3, -0.4]), np.array([1.0, 2.0])
    prompt, late = (ComputedTorque(pendulum, 9.0, 6.0, sample_time=dt, delay=d) for d in (0, 0.02))
    a = 9.0 * (np.array([0.1, 0.2]) - q) - 6.0 * v
    for law, ahead in ((prompt, 0.5), (late, 2.5)):
        for _ in range(law._late.count + 1):
            tau = law.command(0.0, q, v, [0.1, 0.2])
        expected = pendulum.inverse_dynamics(q + ahead * dt * v, v, a)
        np.testing.assert_allclose(tau, expected, rtol=1e-12)


def test_a_pickled_law_stays_where_it_is_put(pendulum):
    law = pickle.loads(pickle.dumps(ComputedTorque(pendulum)))
    place, off, rest = np.array([0.3, 0.2]), np.array([0.31, 0.18]), np.zeros(2)
    law.reset(0.0, place, rest)
    held = law.command(0.0, off, rest)
    np.testing.assert_array_equal(held, ComputedTorque(pendulum).command(0.0, off, rest, place))


def test_a_new_run_begins_without_the_torques_of_the_last(pendulum):
    law, rest = PdGravity(pendulum, sample_time=0.01, delay=0.02), np.zeros(2)
    for _ in range(3):
        law.command(0.0, np.ones(2), rest, np.zeros(2))
    place = np.array([0.3, -0.2])
    law.reset(0.0, place, rest)
    first = law.command(0.0, place, rest, np.zeros(2))
    np.testing.assert_allclose(first, pendulum.gravity_torque(place), rtol=1e-12)


@pytest.mark.parametrize("kind", [ComputedTorque, PidLinearized])
def test_slopes_of_sampled_laws_hold_where_friction_is_looked_ahead(kind):
    """Velocities are those at which dry friction is rounded off."""
    rough = examples.arm("ba").with_parameters(viscous=0.5, coulomb=0.3).model("physical")
    law = kind(rough, sample_time=0.01)
    q, v = np.array([0.3, 0.4]), np.array([4e-4, -7e-4])
    aim = Reference(q + 1e-5, np.zeros(2), np.zeros(2))
    law.command(0.0, q, v, aim)
    found = law.slopes(q, v, aim)
    expected = columns(lambda x: law.command(0.0, q + x[:2], v + x[2:], aim), 4, 1e-5)
    np.testing.assert_allclose(
        np.hstack([found.dq, found.dv]), expected, rtol=0, atol=1e-6 * np.abs(expected).max()
    )


@pytest.mark.parametrize("coulomb", [0.0, 0.3])
def test_pd_with_gravity_is_its_formula(coulomb):
    """Friction as it will be: viscous at the velocity of the reference, dry on the way there."""
    model = examples.arm("ba").with_parameters(viscous=0.5, coulomb=coulomb).model("physical")
    kp, kd = np.array([30.0, 20.0]), np.array([4.0, 5.0])
    law, rng = PdGravity(model, kp, kd), np.random.default_rng(0)
    for size in (1.0, 1e-4):  # dry friction is rounded off below 1 mm/s
        q, v, goal, speed = rng.standard_normal((4, 2)) * [[1], [size], [1], [size]]
        goal = goal if size == 1 else q + 1e-4 * rng.standard_normal(2)
        aim = Reference(goal, speed, rng.standard_normal(2))
        soon = speed + kp / (kd + 0.5) * (goal - q)
        dry = coulomb * soon / np.hypot(soon, SLIP_SPEED)
        expected = kp * (goal - q) + kd * (speed - v) + model.gravity_torque(q) + 0.5 * speed + dry
        np.testing.assert_allclose(law.command(0.0, q, v, aim), expected, rtol=1e-12)
    found = law.slopes(q, v, aim)
    slopes = columns(lambda x: law.command(0.0, q + x[:2], v + x[2:], aim), 4, 1e-6)
    np.testing.assert_allclose(
        np.hstack([found.dq, found.dv]), slopes, rtol=0, atol=1e-6 * np.abs(slopes).max()
    )


def test_steps_of_a_promise_are_thirty_to_a_hundred_percent_and_within_limits():
    model = examples.arm("bac").with_parameters("m1", limits=(-0.2, 0.1)).model("physical")
    goals, begin = _steps(ComputedTorque(model))
    assert goals.shape == begin.shape == (4, 3)
    assert not goals[0].any()
    for places in (goals, begin):
        assert ((places >= model.lower) & (places <= model.upper)).all()
    size = np.abs(begin - goals)[:, [0, 2]] / [0.35, 0.1]
    assert 0.3 <= size.min() < 0.6
    assert 0.7 < size.max() <= 1.0
    narrow = examples.snake(7).with_parameters(limits=(-0.4, 0.4)).model("physical")
    goals, begin = _steps(ComputedTorque(narrow))
    size = np.abs(begin - goals) / 0.35
    assert 0.3 <= size.min() < 0.5  # inward where a limit is near
    assert 0.8 < size.max() <= 1.0
    assert (np.abs(begin) <= 0.4).all()


def test_the_overshoot_asked_for_is_that_of_the_damping(pendulum):
    for damping, expected in ((1.0, 0.0), (2.0, 0.0), (0.5, np.exp(-np.pi / np.sqrt(3)))):
        law = ComputedTorque(pendulum, damping=damping, sample_time=0.01)
        trial = _Trial(law, 1.0, 1.0, np.zeros((1, 2)), np.zeros((1, 2)))
        assert trial._overshoot() == pytest.approx(expected)


@pytest.mark.parametrize(("asked", "kept"), [(0.5, False), (2.0, True)])
def test_steps_are_late_that_take_ten_percent_longer_than_asked_for(pendulum, asked, kept):
    law = ComputedTorque(pendulum, settling_time=1.0, sample_time=0.01)
    trial = _Trial(law, asked, 2.0, np.zeros((1, 2)), np.full((1, 2), 0.1))
    found = trial.run()
    assert found.settling == pytest.approx(1.0, rel=0.02)
    assert found.kept is kept


def test_a_certificate_of_pd_with_gravity_shows_that_energy_falls(pendulum):
    for matrix, holds in ((np.eye(2), True), (np.array([[2.0, 1.0], [0.0, 2.0]]), False)):
        found = PdGravity(pendulum, 5 * matrix, 3 * np.eye(2)).certificate().findings
        (energy,) = [x for x in found if x.assumption == "energy falls (Lyapunov)"]
        assert energy.holds is holds
        assert ("dV/dt = -v^T Kd v" if holds else "kp is not symmetric") in energy.why


def test_the_filter_of_a_pid_begins_with_the_first_rate(pendulum):
    law = PidLinearized(pendulum, 9.0, 0.0, 6.0, filter_time=0.5)
    plain = PidLinearized(pendulum, 9.0, 0.0, 6.0)
    q, v = np.array([0.1, 0.2]), np.array([1.0, -2.0])
    first, expected = (x.command(0.0, q, v, np.zeros(2)) for x in (law, plain))
    np.testing.assert_array_equal(first, expected)


def test_the_filter_of_a_pid_does_not_swing_in_samples_that_are_longer_than_its_time(pendulum):
    """Implicit Euler: what is left of a jump of the rate is T / (T + dt)."""
    law = IndependentPid(pendulum, 1e-9, 0.0, 1.0, filter_time=0.01, sample_time=0.1)
    rest, v = np.zeros(2), np.array([1.0, -2.0])
    law.command(0.0, rest, rest, rest)
    for k in (1, 2, 3):
        tau = law.command(0.1 * k, rest, v, rest)
        np.testing.assert_allclose(tau, -v * (1 - (0.01 / 0.11) ** k), rtol=1e-9)


def test_a_reference_with_positions_only_is_no_set_point(pendulum):
    for wrong in (SimpleNamespace(q=np.zeros(2)), SetPoint([0.1, 0.2])):
        with complains(StateError, "a reference has q, v and a", "call a function of time first"):
            ComputedTorque(pendulum).command(0.0, np.zeros(2), np.zeros(2), wrong)


def test_certificates_and_promises_are_those_of_one_state(pendulum):
    many = ComputedTorque(pendulum, sample_time=0.01).batched(2)
    for ask in (many.promise, many.certificate):
        with complains(StateError, "not of a batch"):
            ask()


def test_gains_are_judged_without_the_gravity_that_a_law_does_not_know():
    """Upright, a weak PID falls; that is for the certificate to say."""
    upright = examples.double_pendulum().model("physical", gravity=(0, 0, 9.81))
    weak = IndependentPid(upright, 1.0, 0.0, 1.0)
    assert not weak.certificate().guaranteed
    assert not IndependentPid.cancels_gravity
    with complains(StateError, "unstable: pole"):
        IndependentPid(upright, 1.0, 50.0, 1.0)


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_torques_under_way_reach_a_new_body_and_added_joints_carry_their_load(base):
    old, new = (examples.snake(n).model("physical", base, gravity=(0, 9.81, 0)) for n in (3, 5))
    law, rest = PdGravity(old, 0.3, 0.02, sample_time=0.01, delay=0.02), np.zeros(old.nv)
    q, sent = old.neutral(), PdGravity(old, 0.3, 0.02, sample_time=0.01)
    law.reset(0.0, q, rest)
    goals = np.array([[0.1, 0.2], [-0.3, 0.4], [0.5, -0.6]])
    for goal in goals:
        law.command(0.0, q, rest, goal)
    grown, begin = law.rebuilt(new), new.neutral()
    begin[new.joint_slice_q] = [0.1, -0.2, 0.3, 0.4]
    grown.reset(0.0, begin, np.zeros(new.nv))
    load = np.zeros(new.nv) if base == "free" else new.gravity_torque(begin)
    for goal in goals[1:]:
        tau = grown.command(0.0, begin, np.zeros(new.nv), np.zeros(4))[new.joint_slice_v]
        expected = sent.command(0.0, q, rest, goal)[old.joint_slice_v]
        np.testing.assert_allclose(tau, [*expected, *load[-2:]], rtol=0, atol=1e-12)


def test_gains_of_a_law_that_knows_gravity_are_judged_with_it():
    """Upright, a torque that is held for half a second lets the pendulum fall."""
    gains = {"stiffness": 0.001, "damping": 0.02, "inertia": 0.1, "sample_time": 0.5}
    JointImpedance(examples.double_pendulum().model("physical", gravity=(0, 0, 0)), **gains)
    with complains(StateError, "sample_time of 0.5 s is too long for these gains"):
        JointImpedance(examples.double_pendulum().model("physical", gravity=(0, 0, 9.81)), **gains)


def test_results_of_laws_are_values(pendulum):
    """They hold arrays, so they are compared by identity."""
    law = ComputedTorque(pendulum, sample_time=0.01)
    for found, name in (
        (law.certificate(), "claim"),
        (transient(law, np.full(2, 0.1), np.zeros(2), np.zeros(2)), "bound"),
        (_Trial(law, 1.0, 1.0, np.zeros((1, 2)), np.zeros((1, 2))), "asked"),
    ):
        assert {found} == {found}
        assert found != dataclasses.replace(found)
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(found, name, None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Robustness("law", 1.0, 0.02, ()).band = 0.05


@pytest.mark.parametrize(
    "make",
    [
        lambda m: ComputedTorque(m, 1e6, 2e3, sample_time=0.01),
        lambda m: PolePlacement(m, [-900, -1e3], sample_time=0.01),
        lambda m: PdGravity(m, 1e6, 1e4, sample_time=0.01),
        lambda m: IndependentPid(m, 1e6, 1.0, 1e4, sample_time=0.01),
        lambda m: PidLinearized(m, 1e6, 1.0, 2e3, sample_time=0.01),
        lambda m: JointImpedance(m, 1e6, 1e4, sample_time=0.01),
        lambda m: CartesianImpedance(m, None, 1e6, 1e4, sample_time=0.01),
        lambda m: Robust(m, 1e3, sample_time=0.01),
        lambda m: Adaptive(m, 1e3, sample_time=0.01),
    ],
)
def test_every_law_refuses_gains_that_are_too_fast_for_its_samples(make, pendulum):
    with complains(StateError, "sample_time of 0.01 s is too long for these gains", "or less"):
        make(pendulum)


def test_an_inertia_of_a_body_is_not_judged_in_one_pose(pendulum):
    """Stability then depends on the pose; for joints it does not."""
    fast = {"stiffness": 1e6, "damping": 1e4, "inertia": 1.0, "sample_time": 0.01}
    CartesianImpedance(pendulum, **fast)
    with complains(StateError, "too long for these gains"):
        JointImpedance(pendulum, **fast)


def test_slow_growth_is_refused_beside_fast_decay(pendulum):
    with complains(StateError, "unstable: pole 0.00999 1/s"):
        ComputedTorque(pendulum, -0.1 * np.eye(2), 10.0)


def test_given_gains_of_a_pid_are_those_of_a_plain_one(pendulum):
    assert not IndependentPid(pendulum, 9.0, 1.0, 6.0).pid.share.any()
    assert IndependentPid(pendulum).pid.share.all()


# -- promises --------------------------------------------------------------------------------------


def trial_of(law, asked=1.0, goal=0.0):
    """Steps of all joints by 0.1."""
    goals = np.broadcast_to(np.asarray(goal, dtype=float), (1, len(law.model.joint_names)))
    begin = law.model.neutral()[None].copy()
    begin[:, law.model.joint_slice_q] = goals + 0.1
    return _Trial(law, asked, 1.0, goals, begin)


def test_a_joint_without_a_step_neither_settles_late_nor_overshoots(pendulum):
    law = ComputedTorque(pendulum, 36.0, 12.0, sample_time=0.005)
    for k, name in enumerate(pendulum.joint_names):
        found = _Trial(law, 1.0, 1.5, np.zeros((1, 2)), 0.1 * np.eye(2)[[k]]).run()
        assert found.kept
        assert found.joint == name
        assert found.overshoot < 0.01


def held_double_integrator(k0, k1, dt):
    """(2, 2) map of (e, e') by a sample in which the input is held."""
    return np.array([[1, dt], [0, 1]]) - np.outer([dt * dt / 2, dt], [k0, k1])


def test_steps_of_a_promise_last_twice_the_time_that_they_take(rail, monkeypatch):
    durations = []

    def spied(law, at, q, v, duration, limited=False):
        durations.append(duration)
        return rehearsed(law, at, q, v, duration, limited)

    monkeypatch.setattr(promise, "rehearsed", spied)
    assert ComputedTorque(rail, settling_time=0.8, sample_time=0.05).promise([0.05]).kept
    assert ComputedTorque(rail, 36.0, 12.0, sample_time=0.05).promise([0.05]).kept
    slowest = np.abs(np.linalg.eigvals(held_double_integrator(36.0, 12.0, 0.05))).max()
    expected = 2 * settling_factor(1.0) / (-np.log(slowest) / 0.05)
    assert durations == pytest.approx([1.6, expected])


@pytest.mark.parametrize("dt", [0.001, 0.05])
def test_a_deadbeat_loop_settles_in_two_samples(rail, dt):
    """Poles at 0: half of the step is left after one sample, and nothing after two."""
    found = ComputedTorque(rail, 1 / dt**2, 1.5 / dt, sample_time=dt).promise([0.05])
    assert found.kept
    assert dt < found.settling <= 2 * dt


def test_errors_that_stay_as_they_are_never_settle(rail):
    law = ComputedTorque(rail, np.zeros((1, 1)), np.full((1, 1), 4.0))  # stops where it is
    assert settling_time(law, np.zeros(1)) == np.inf


@pytest.mark.parametrize(("damping", "kept"), [(0.72, True), (0.66, False)])
def test_steps_may_overshoot_by_five_percent_more_than_asked_for(rail, damping, kept):
    """exp(-pi d / sqrt(1 - d^2)) of a step: 3.8 and 6.3 %."""
    law = ComputedTorque(rail, 36.0, 12 * damping, sample_time=0.002)
    assert trial_of(law).run().kept is kept


def test_a_miss_without_another_reason_is_one_of_the_gains(rail):
    dt, k0, k1 = 0.05, 36.0, 7.2
    A = held_double_integrator(k0, k1, dt)
    rate = -np.log(np.abs(np.linalg.eigvals(A)).max()) / dt
    path = [(np.linalg.matrix_power(A, k) @ [1.0, 0.0])[0] for k in range(60)]
    (found,) = ComputedTorque(rail, k0, k1, sample_time=dt).promise([0.05]).reasons
    assert found == f"small errors decay with {rate:.3g} 1/s and overshoot by {-min(path):.0%}"


def test_a_loop_that_does_not_decay_is_simulated_for_a_second(rail, monkeypatch):
    durations = []

    def spied(law, at, q, v, duration, limited=False):
        durations.append(duration)
        return rehearsed(law, at, q, v, 0.05)._replace(diverged=True)

    monkeypatch.setattr(promise, "rehearsed", spied)
    late = ComputedTorque(rail, 36.0, 12.0, sample_time=0.05, delay=0.5)
    assert late.promise([0.05]).reasons == ("the motion diverges at 0.05 s",)
    assert durations == [1.0]


def test_joints_that_settle_in_time_alone_disturb_each_other(pendulum):
    (found,) = JointImpedance(pendulum, sample_time=0.1).promise([0.8, 0.5]).reasons
    assert found.startswith("coupling between joints: alone each settles in 1.0")


def test_what_may_be_the_reason_of_a_miss_is_left_out_by_itself(pendulum):
    pid = IndependentPid(pendulum, 9.0, 1.0, 6.0, sample_time=0.01)
    (load, light), (clock, quick) = trial_of(pid)._simpler()
    assert load == "the load changes on the way, and only the integral carries it"
    assert not light.model.gravity.any()
    assert clock == "the sample time of 0.01 s: a 4th of it would do"
    assert quick.sample_time == 0.0025
    floating = examples.snake(3).model("physical", "free")
    free = IndependentPid(floating, 0.09, 0.01, 0.006, sample_time=0.01)
    assert [words for words, _ in trial_of(free)._simpler()] == [clock]
    (learns, still), (other, _) = trial_of(Adaptive(pendulum, sample_time=0.01))._simpler()
    assert (learns, other) == ("the law learns during a step", clock)
    assert still.adaptation.max() < 1e-9
    assert list(trial_of(ComputedTorque(pendulum))._simpler()) == []


def test_friction_is_a_reason_where_it_decays_within_a_sample():
    rough = examples.arm("b").with_parameters(viscous=1.0, coulomb=0.01).model("physical")
    for share, names in ((0.9, 1), (1.1, 2)):
        clock = share / rough.friction_rate.rate
        found = list(trial_of(JointImpedance(rough, 1.0, 0.1, sample_time=clock))._simpler())
        assert len(found) == names
    words, smooth = found[-1]
    assert words == f"the friction of 'm0.joint' is faster than the samples of {clock:g} s"
    assert not smooth.model.viscous.any()
    assert not smooth.model.coulomb.any()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (0.68, ""),  # within 10 %
        (0.64, "the sample time of 0.5 s allows 0.729 s; 0.25 s would do"),
        (0.0026, "the sample time of 0.5 s allows 0.729 s; 0.002 s would do"),
        (0.0025, "the sample time of 0.5 s allows 0.729 s"),  # eight halvings are tried
    ],
)
def test_a_sample_time_that_is_too_long_is_a_reason_and_a_shorter_one_is_looked_for(
    rail, asked, words
):
    """Poles of a double integrator are at most 4 over the sample time; the factor is 5.834."""
    law = ComputedTorque(rail, settling_time=asked, sample_time=0.5)
    assert "".join(trial_of(law, asked)._too_slow()) == words


def test_a_sample_time_is_too_long_beyond_ten_percent_of_the_time_asked_for(rail):
    law = ComputedTorque(rail, settling_time=1.0, sample_time=0.5)
    for law.attainable, misses in ((1.1, 0), (1.1 + 1e-9, 1)):
        assert len(trial_of(law)._too_slow()) == misses


def test_a_delay_that_is_too_long_is_a_reason(rail):
    """Poles are at most 0.3 over the delay, which comes on top."""
    law = ComputedTorque(rail, settling_time=1.0, sample_time=0.5, delay=0.5)
    expected = f"the sample time of 0.5 s with a delay of 0.5 s allows {5.834 * 5 / 3 + 0.5:.3g} s"
    assert trial_of(law)._too_slow() == [expected]
    for law in (ComputedTorque(rail), ComputedTorque(rail, 1.0, 2.0, sample_time=0.5)):
        assert trial_of(law, 0.1)._too_slow() == []


def test_a_motor_is_at_its_limit_up_to_rounding(pendulum):
    law = ComputedTorque(pendulum, torque_limit=[50.0, np.inf])
    rows = np.zeros((3, 1, 2))
    for tau, words in (
        (50.0, ["the torque limit is reached at m0.hinge"]),
        (-50.0 * (1 - 1e-14), ["the torque limit is reached at m0.hinge"]),
        (50.0 * (1 - 1e-9), []),
    ):
        forces = rows.copy()
        forces[1, 0] = tau, 1e9
        way = Rehearsal(np.arange(3.0), rows, rows, forces, diverged=False)
        assert trial_of(law)._at_limit(way) == words


def test_dry_friction_is_a_reason_of_motions_that_end(pendulum):
    rough = examples.double_pendulum().with_parameters(coulomb=0.1).model("physical")
    rows = np.array([[[0.0, 0.0]], [[0.25, 0.5]]])
    for model, diverged, words in (
        (rough, False, ["dry friction of 0.1 N m: 'm1.hinge' is 0.5 rad (m) short"]),
        (rough, True, []),
        (pendulum, False, []),
    ):
        way = Rehearsal(np.arange(2.0), rows, rows, rows, diverged)
        found = _Outcome(np.inf, np.inf, "m1.hinge", kept=False, way=way)
        assert trial_of(ComputedTorque(model))._dry(found) == words


def test_zero_dynamics_that_grow_are_a_reason():
    """Upright, a rigid double pendulum falls with the root of load over inertia."""
    acrobot = examples.double_pendulum(l1=1.0, l2=1.5).model("physical")
    law = PartialLinearization(acrobot, ["m1.hinge"], 9.0, 6.0, passive=["m0.hinge"])
    rate = np.sqrt(9.81 * (1.5 + 2 * 1.0) / (1.0 * 2 + 1.5**2 + 2 * 1.5))
    upright = trial_of(law, goal=[np.pi, 0.0])
    assert upright._zero_dynamics() == [f"the zero dynamics grow with {rate:.3g} 1/s"]
    assert trial_of(law)._zero_dynamics() == []
    assert trial_of(ComputedTorque(acrobot))._zero_dynamics() == []


def test_steps_alone_are_those_of_one_joint_after_the_other(crab):
    law = ComputedTorque(crab, passive=[crab.joint_names[3]])
    goals, begin = np.zeros((2, 6)), 0.1 * np.arange(12.0).reshape(2, 6)
    alone = _Trial(law, 1.0, 1.0, goals, begin)._alone()
    motors = [1, 2, 4, 5]  # the first one is at its goal
    np.testing.assert_array_equal(alone.begin, (np.eye(6) * begin[0])[motors])
    np.testing.assert_array_equal(alone.goals, np.zeros((4, 6)))


# -- certificates ----------------------------------------------------------------------------------


def test_a_way_is_rehearsed_for_eight_time_constants_and_twenty_seconds_at_most(rail, monkeypatch):
    durations = []

    def spied(law, at, q, v, duration):
        durations.append(duration)
        return rehearsed(law, at, q, v, 0.01)

    monkeypatch.setattr(certificate, "rehearsed", spied)
    for rate in (4.0, 0.5, 0.3):
        law = ComputedTorque(rail, rate**2, 2 * rate, torque_limit=1e3)
        law.certificate([0.0], start=([0.1], [0.0]))
    assert durations == pytest.approx([2.0, 16.0, 20.0], rel=1e-6)
    for rate in (0.0, -1.0):
        certificate._torques(law, np.zeros(1), (np.full(1, 0.1), np.zeros(1)), rate)
    assert durations[3:] == [20.0, 20.0]


def test_energy_is_checked_in_32_random_states(pendulum):
    found = [x.why for x in PdGravity(pendulum).certificate().findings if "Lyapunov" in x[0]]
    assert found[0].endswith("in 32 random states")


@pytest.mark.parametrize(
    ("asked", "rate", "words"),
    [(None, 19.9, ""), (None, 20.1, ", slowly: 2% of an error is left after 20.1 s"),
     (10.0, 19.9, ""),
     (9.0, 18.1, ", slowly: 2% of an error is left after 18.1 s, 9 s asked for")],
)  # fmt: skip
def test_errors_are_slow_after_twice_the_time_asked_for_or_twenty_seconds(
    pendulum, asked, rate, words
):
    """The time to 2 % of the slow pole alone."""
    law = PolePlacement(pendulum, [-np.log(50) / rate, -10.0])
    law.settling_time = asked
    claim = law.certificate().claim
    assert claim == f"from any state, {law.claim}{words}"


@pytest.mark.parametrize(
    ("options", "start", "scope"),
    [
        ({}, False, "from any state, "),
        ({"sample_time": 0.01}, False, "close to the set point, "),
        ({"torque_limit": 1e3}, False, "close to the set point, "),
        ({"torque_limit": 1e3}, True, "from the given start, "),
        ({"torque_limit": 1e3, "sample_time": 0.01}, True, "close to the set point, "),
    ],
)
def test_a_claim_is_made_for_the_states_that_were_looked_at(pendulum, options, start, scope):
    begin = (np.array([0.1, 0.2]), np.zeros(2)) if start else None
    found = ComputedTorque(pendulum, **options).certificate([0.0, 0.0], start=begin)
    assert found.claim == scope + ComputedTorque.claim


def notes(law):
    return law.certificate().notes


def test_a_certificate_notes_what_it_takes_for_granted(pendulum):
    known = ("the model is taken to be exact", "locked joints stay as they are: m2.hinge")
    assert notes(ComputedTorque(pendulum)) == known
    assert ComputedTorque(pendulum).mass_range == (1.0, 1.0)
    held = "torque is held for 0.01 s"
    clock = ": the eigenvalues include that, with the inertia at the set point"
    assert notes(ComputedTorque(pendulum, sample_time=0.01)) == (*known, held + clock)
    late = ComputedTorque(pendulum, sample_time=0.01, delay=0.02)
    assert notes(late) == (*known, f"{held} and comes 0.02 s late{clock}")
    motions = "for set points; motions are followed with an error that stays"
    assert notes(PdGravity(pendulum)) == (*known, motions)
    floating = notes(ComputedTorque(examples.snake(3).model("physical", "free")))
    assert [note.split(":")[0] for note in floating[:2]] == [known[0], "the base is taken to float"]
    assert (
        "inertias of links are taken to be 0.7 to 1.3 times" in notes(Robust(pendulum, 2, 0.3))[0]
    )


@pytest.mark.parametrize(("count", "words"), [
    (6, "m1.hinge, m2.hinge, m3.hinge, m4.hinge, m5.hinge, m6.hinge"),
    (7, "m1.hinge, m2.hinge, m3.hinge, m4.hinge, m5.hinge, ... (7 in all, last m7.hinge)"),
])  # fmt: skip
def test_up_to_six_locked_joints_are_named_in_a_certificate(count, words):
    held = {f"m{k}.hinge": 0.1 for k in range(1, count + 1)}
    body = examples.snake(count + 2).model("dyad", locked=held)
    assert f"locked joints stay as they are: {words}" in notes(ComputedTorque(body, 4.0, 4.0))


def test_a_certificate_names_the_friction_that_it_met():
    for values, law, words in (
        ({}, ComputedTorque, "none in the datasheets"),
        ({"viscous": 0.1}, ComputedTorque, "viscous friction only"),
        ({"coulomb": 0.1}, ComputedTorque, "is canceled by its datasheet"),
        ({"coulomb": 0.1}, PdGravity, "may hold it away from the set point"),
    ):
        model = examples.double_pendulum().with_parameters(**values).model("physical")
        (found,) = [x for x in law(model).certificate().findings if "friction" in x.assumption]
        assert words in found.why
        assert found.holds == ("coulomb" not in values)


def test_errors_that_take_longer_than_weeks_do_not_decay():
    assert is_decaying(2e-6)
    assert not is_decaying(0.5e-6)


def test_a_joint_without_a_motor_rests_where_nothing_pulls():
    crane = examples.crane().with_parameters(viscous=5.0).model("physical")
    law = ComputedTorque(crane, passive=["m1.hinge"])
    assert law.certificate([0.0, 1e-9]).guaranteed
    (found,) = law.certificate([0.0, 1e-5]).failures
    assert "no motor at m1.hinge, which cannot rest there" in found.why
    reached = Lqr(crane, passive=["m1.hinge"]).certificate().findings
    assert "no motor at m1.hinge; through coupling" in [x.why for x in reached]
    energy = PdGravity(crane, 3.0, 2.0, passive=["m1.hinge"]).certificate().failures
    assert "the argument needs a motor at every joint" in [x.why for x in energy]


def test_set_points_may_be_at_joint_limits_and_not_beyond(crab):
    law = ComputedTorque(crab)
    edge = np.where(np.arange(6) % 2, crab.lower, crab.upper)
    assert law.certificate(edge).guaranteed
    for k in (0, 1):
        far = edge * (1 + 1e-9 * (np.arange(6) == k))
        (found,) = law.certificate(far).failures
        assert found.assumption == "the set point is within the joint limits"
        assert found.why == f"not so: {crab.joint_names[k]}"


def test_a_motor_has_the_reserve_that_gravity_leaves(pendulum):
    load = np.abs(pendulum.gravity_torque([0.3, 0.2]))
    law = ComputedTorque(pendulum, torque_limit=load + np.array([0.5, 0.25]))
    held = [x for x in law.certificate([0.3, 0.2]).findings if x.assumption.startswith("motors")]
    assert [(x.holds, x.why) for x in held] == [(True, "least reserve 0.25 N m")]


def test_torques_that_a_bus_delays_come_later_than_those_of_the_law(pendulum):
    law, later = (PdGravity(pendulum, 9.0, 6.0, sample_time=1e-3, delay=d) for d in (1e-3, 3e-3))
    at = np.array([0.2, 0.3])
    np.testing.assert_allclose(
        linearized(law, at, late=2).A, linearized(later, at).A, rtol=0, atol=1e-9
    )


def test_a_promise_of_given_gains_is_judged_over_the_time_that_they_take(pendulum):
    """Two poles at -6 settle after 5.83 / 6 of a second."""
    found = ComputedTorque(pendulum, 36.0, 12.0, sample_time=1e-3).promise([0.2, -0.1])
    assert found.kept
    assert found.asked is None
    assert found.settling == pytest.approx(settling_factor(1.0) / 6, rel=0.01)
    assert str(found).startswith("computed torque: settles in 0.97")


def test_a_slow_loop_has_a_delay_margin_too(pendulum):
    law = ComputedTorque(pendulum, 0.04, 0.4, sample_time=0.1)  # e'' + 0.4 e' + 0.04 e = 0
    assert delay_margin(law, np.zeros(2)) > 0.1


def test_a_loop_that_is_stable_by_itself_stands_every_delay():
    """A hanging pendulum with friction, and gains too small to move it anywhere."""
    hanging = examples.double_pendulum().with_parameters(viscous=5.0)
    model = hanging.model("physical", gravity=(0, 0, -9.81))
    law = Lqr(model, Q=1e-3 * np.ones(4), R=1e3, sample_time=0.02)
    assert delay_margin(law, np.zeros(2)) == np.inf


@pytest.mark.parametrize(("late", "r"), [(1, 0.5), (1, 0.3), (1, 0.7)])
def test_a_delay_at_the_edge_of_stability_is_beyond_the_margin(late, r):
    """A unit mass whose held pull is one sample late has the poles r and two on the unit circle.

    Of ``z^3 - 2 z^2 + (1 + a + b) z + a - b`` with a = k0 dt^2 / 2 and b = k1 dt.
    """
    dt, a, b = 0.25, r * (1 - r) / 2, r * (3 - r) / 2
    np.testing.assert_allclose(np.sort(np.abs(np.roots([1, -2, 1 + a + b, a - b]))), [r, 1, 1])
    rail = examples.arm("c").with_parameters(viscous=0.0).model("physical")
    law = ComputedTorque(rail, 2 * a / dt**2, b / dt, sample_time=dt)
    assert delay_margin(law, np.zeros(1)) == 0.0
    less = ComputedTorque(rail, 0.99 * 2 * a / dt**2, 0.99 * b / dt, sample_time=dt)
    assert delay_margin(less, np.zeros(1)) == dt


def test_the_delay_margin_of_slow_gains_is_the_phase_margin_over_the_crossover():
    """Of (k1 s + k0) / s^2, less half a sample of holding."""
    rail = examples.arm("c").with_parameters(viscous=0.0).model("physical")
    k0, k1, dt = 0.04, 0.4, 0.01
    crossover = np.sqrt((k1**2 + np.sqrt(k1**4 + 4 * k0**2)) / 2)
    expected = np.arctan2(k1 * crossover, k0) / crossover - dt / 2
    law = ComputedTorque(rail, k0, k1, sample_time=dt)
    assert delay_margin(law, np.zeros(1)) == pytest.approx(expected, abs=2 * dt)


@pytest.mark.parametrize(("k1", "clock"), [(0.1, 30.0), (100.0, 0.03), (0.02, 390.0)])
def test_the_sample_time_that_is_advised_is_the_longest_that_works(pendulum, k1, clock):
    """Held for T, ``e'' + k1 e' + k1^2 / 4 e = 0`` decays for T < 2 / k1."""
    with pytest.raises(StateError, match=r"take .* s or less") as caught:
        ComputedTorque(pendulum, k1**2 / 4, k1, sample_time=clock)
    advised = float(str(caught.value).split("take ")[1].split()[0])
    assert 0.94 * 2 / k1 < advised <= 2 / k1
    ComputedTorque(pendulum, k1**2 / 4, k1, sample_time=advised)


# -- other masses ----------------------------------------------------------------------------------


@pytest.mark.parametrize("body", ["m1.proximal", "m1.distal"])
def test_a_payload_adds_the_kinetic_energy_of_a_point(body):
    model, place = examples.arm("ba").model("physical"), np.array([0.02, -0.03, 0.05])
    loaded, rng = with_payload(model, body, 1.5, place), np.random.default_rng(0)
    for _ in range(3):
        q = rng.standard_normal(2)

        def point(x, q=q):
            pose = model.forward_kinematics(q + x)[model.body_index(body)]
            return pose[:3, 3] + pose[:3, :3] @ place

        J = columns(point, 2, 1e-5)
        more = loaded.mass_matrix(q) - model.mass_matrix(q)
        np.testing.assert_allclose(more, 1.5 * J.T @ J, rtol=0, atol=1e-8)
        weight = loaded.gravity_torque(q) - model.gravity_torque(q)
        np.testing.assert_allclose(weight, 1.5 * 9.81 * J[2], rtol=0, atol=1e-8)
    for bad in (0.0, -1.0):
        with complains(StateError, "mass must be a positive number"):
            with_payload(model, body, bad)


def test_bodies_side_by_side_stand_on_a_base_that_cannot_move():
    free = examples.snake(3).model("physical", "free")
    with complains(StateError, "side by side need a fixed base"):
        side_by_side(free, np.ones((2, len(free.mass))))


def test_gains_outweigh_the_inertia_of_every_pose_the_neutral_one_included(pendulum):
    """No pose has more kinetic energy than the bound, and it is not idle."""
    poses = np.array([pendulum.mass_matrix(q) for q in ([0, 0], [0, np.pi], [0, 2.0])])
    for M in (poses, poses[::-1]):
        bound = _upper_bound(M)
        for one in M:
            assert np.linalg.eigvalsh(bound - one).min() > -1e-12
        assert np.linalg.eigvalsh(bound - 1.2 * poses[0]).min() < 0
    light = _upper_bound(np.diag([4.0, 0.0])[None])  # a joint that moves no mass has some yet
    np.testing.assert_allclose(light, np.diag([4.0, 4e-6]), rtol=1e-5)


# -- learning --------------------------------------------------------------------------------------


def test_what_is_learned_stays_within_the_spread():
    model, rng = examples.snake(4).model("physical"), np.random.default_rng(0)
    law = Adaptive(model, adaptation=1e4, spread=1.5, sample_time=0.01)
    for k in range(10):
        law.command(0.01 * k, rng.standard_normal(3), 3 * rng.standard_normal(3), np.zeros(3))
    values = np.linalg.eigvalsh(law.factors)
    assert values.min() == pytest.approx(1 / 1.5)
    assert values.max() == pytest.approx(1.5)
    np.testing.assert_allclose(law.factors, law.factors.mT, atol=1e-12)
    assert not np.allclose(law.masses, model.mass)
    law.reset(0.0, np.zeros(3), np.zeros(3))
    np.testing.assert_allclose(law.masses, model.mass, rtol=1e-12)


def test_the_memory_of_a_law_that_learns_is_the_torque_at_rest_that_it_learned():
    model = examples.arm("bab").with_parameters(viscous=0.0).model("physical")
    law, dt, at, rest = (
        Adaptive(model, adaptation=0.3),
        1e-3,
        np.array([0.3, 0.8, -0.4]),
        np.zeros(3),
    )
    e, e_rate = 1e-5 * np.array([[1.0, -2.0, 1.5], [3.0, 1.0, -2.0]])
    law.command(0.0, at, rest, at)
    before = law._links.motions(at, rest, rest, rest).forces(law._pseudo_inertias())
    law.command(dt, at + e, e_rate, at)
    after = law._links.motions(at, rest, rest, rest).forces(law._pseudo_inertias())
    kept, by_error = law.memory(dt, at)
    modes = law.slopes(at, rest, at).dmemory
    np.testing.assert_array_equal(kept, np.eye(modes.shape[1]))
    expected = modes @ by_error @ np.append(e, e_rate)
    assert np.abs(expected).max() > 0
    np.testing.assert_allclose(after - before, expected, rtol=1e-3)
    for given, same in zip(law.memory(dt), law.memory(dt, model.neutral()), strict=True):
        np.testing.assert_array_equal(given, same)


def test_known_errors_are_known_to_the_law_of_the_next_body():
    """They go on as designed, from the last command to the first of the new body."""
    old, new = (examples.snake(n).model("physical") for n in (3, 5))
    law, dt, rest = Adaptive(old, adaptation=50.0, sample_time=0.01), 0.01, np.zeros(2)
    e, goal = np.array([0.3, -0.2]), np.zeros(2)
    law.command(0.0, e, rest, goal)
    slow = law.rate * e  # both poles at -rate, from rest
    later = (e + slow * dt) * np.exp(-law.rate * dt), -law.rate * slow * dt * np.exp(-law.rate * dt)
    q, v = (np.append(x, [0.0, 0.0]) for x in later)
    kept, forgets = law.rebuilt(new), law.rebuilt(new)
    forgets._expected[:] = 0.0
    changes = []
    for twin in (kept, forgets):
        assert twin.adaptation.tolist() == [50.0] * 5
        twin.reset(dt, q, v)
        twin.command(dt, q, v, np.zeros(4))
        changes.append(np.abs(twin.factors - np.eye(4)).max())
    assert changes[0] < 0.02 * changes[1]
    near = law.rate * dt  # the acceleration is held for a sample
    np.testing.assert_allclose(kept._expected[:, :2], later, rtol=2 * near)
    assert not kept._expected[:, 2:].any()


def test_another_clock_does_not_change_how_fast_a_law_learns(pendulum):
    law = Adaptive(pendulum, sample_time=1e-3)
    slow = law.changed(sample_time=0.05)
    np.testing.assert_array_equal(slow.adaptation, law.adaptation)
    assert Adaptive(pendulum, sample_time=0.05).adaptation.max() < law.adaptation.max()
    assert law.changed(adaptation=0.25).adaptation.tolist() == [0.25] * len(pendulum.mass)


def test_slow_samples_do_not_slow_down_a_law_that_learns_still_more_slowly(pendulum):
    slow, fast = (Adaptive(pendulum, rate=0.01, sample_time=dt) for dt in (1.0, 1e-3))
    np.testing.assert_array_equal(slow.adaptation, fast.adaptation)


def test_torques_at_rest_can_be_learned_however_slowly(pendulum):
    at = np.array([0.3, -0.5])
    for adaptation in (1.0, 1e-14):
        kept, _ = Adaptive(pendulum, adaptation=adaptation).memory(1e-3, at)
        np.testing.assert_array_equal(kept, np.eye(2))


def test_without_gravity_no_torque_at_rest_is_learned():
    law = Adaptive(examples.snake(4).model("physical", gravity=(0, 0, 0)))
    kept, by_error = law.memory(1e-3)
    assert (kept.shape, by_error.shape) == ((0, 0), (0, 6))
    assert law.certificate().guaranteed


def test_a_spread_is_one_or_more(pendulum):
    assert Adaptive(pendulum, spread=1).mass_range == (1, 1)
    assert Adaptive(pendulum, spread=1.25).mass_range == (0.8, 1.25)
    with complains(StateError, "spread", "1 or more", "0.99"):
        Adaptive(pendulum, spread=0.99)


def test_a_body_without_joints_has_nothing_to_learn():
    block = Organism.start("backbone").model("physical")
    law = Adaptive(block, rate=1.0, sample_time=1.0)
    assert law.command(0.0, np.zeros(0), np.zeros(0), np.zeros(0)).shape == (0,)
    assert law._learning_speed() == 0.0


# -- states, weights and torques -------------------------------------------------------------------


@pytest.mark.parametrize(("nq", "nv"), [(3, 2), (2, 3), (1, 2), (2, 1)])
def test_states_of_another_size_are_refused(pendulum, nq, nv):
    with complains(StateError, "has shape"):
        IndependentPid(pendulum).command(0.0, np.zeros(nq), np.zeros(nv), np.zeros(2))


def test_an_lqr_promises_a_settling_time_with_its_own_weights_only(pendulum):
    assert Lqr(pendulum).settling_time == 1.0
    assert Lqr(pendulum, Q=np.ones(4)).settling_time is None
    assert Lqr(pendulum, R=1.0).settling_time is None


def test_torques_on_the_way_are_compared_with_limits_however_small_they_are():
    rails = examples.arm("cc").with_parameters(viscous=0.0).model("physical", gravity=(0, 0, 0))
    law = ComputedTorque(rails, 4.0, 4.0, torque_limit=[1.0, 0.1])
    for share, holds in ((0.9, True), (1.1, False)):
        start = share * np.linalg.solve(rails.mass_matrix([0.0, 0.0]), [0.2, 0.1]) / 4
        found = law.certificate([0.0, 0.0], start=(start, [0.0, 0.0])).findings
        (torques,) = [x for x in found if x.assumption == "torques stay within their limits"]
        assert torques.holds is holds
        assert f"{share * 0.1:.3g}" in torques.why
        assert "'m1.joint'" in torques.why


def test_motors_and_integrals_may_need_all_that_they_have(pendulum):
    load, at = np.abs(pendulum.gravity_torque([0.3, 0.2])), [0.3, 0.2]
    for more, holds in ((0.0, True), (-1e-9, False)):
        law = ComputedTorque(pendulum, torque_limit=load + more)
        (found,) = [x for x in law.certificate(at).findings if x[0].startswith("motors hold")]
        assert found.holds is holds
        assert found.why == "least reserve 0 N m" if holds else "to rest there" in found.why
        pid = IndependentPid(pendulum, integral_limit=load + more)
        short = [x for x in pid.certificate(at).findings if x[0] == "the integral carries the load"]
        assert [x.holds for x in short] == ([] if holds else [False])
    law = PdGravity(pendulum, np.eye(2), np.diag([1.0, 0.0]))
    assert "kd is not positive definite: 0" in [x.why for x in law.certificate().failures]


def test_a_way_may_need_all_that_a_motor_has(rail):
    """The most at its start below the goal, where it lifts and pulls."""
    begin = np.full(1, -0.1), np.zeros(1)
    most = np.abs(ComputedTorque(rail, 4.0, 4.0).command(0.0, *begin, np.zeros(1)))
    for share, holds in ((1.0, True), (1 - 1e-9, False)):
        law = ComputedTorque(rail, 4.0, 4.0, torque_limit=share * most)
        found = law.certificate([0.0], start=begin).findings
        (torques,) = [x for x in found if x[0].startswith("torques")]
        assert torques.holds is holds
        assert torques.why.startswith("at most" if holds else "'m0.joint' needs")


def test_a_sampled_body_that_cannot_move_has_no_slowest_rate():
    block = Organism.start("backbone").model("physical")
    assert ComputedTorque(block, sample_time=0.01).certificate().rate == np.inf


@pytest.mark.parametrize("kind", [ComputedTorque, PdGravity, Adaptive, CartesianImpedance])
def test_a_number_that_is_not_finite_is_named_by_its_place(pendulum, kind):
    rest, wrong = np.zeros(2), np.array([0.0, np.nan])
    law = kind(pendulum)
    law.command(0.0, rest, rest, rest)
    with complains(StateError, "q[1] is"):
        law.command(0.5, wrong, rest, rest)
    with complains(StateError, "v[1] is"):
        law.command(0.5, rest, wrong, rest)
    for name in "qv" if kind is PdGravity else "qva":  # which asks for no acceleration
        aim = Reference(rest, rest, rest)._replace(**{name: wrong})
        with complains(StateError, f"reference.{name} must hold finite"):
            law.command(0.5, rest, rest, aim)


def test_a_motor_that_gives_all_it_has_is_not_yet_beyond_its_limit(rail):
    """The integral grows by ki e dt = 0.25, to a force of 0.75; beyond, it is held."""
    for limit, integral in ((0.75, 0.25), (0.74, 0.0)):
        law = IndependentPid(rail, 1.0, 1.0, 1.0, torque_limit=limit, sample_time=0.1)
        for t in (0.0, 0.5):
            law.command(t, np.zeros(1), np.zeros(1), np.full(1, 0.5))
        assert law.record()["integral"].item() == integral


def test_a_way_is_rehearsed_with_an_empty_memory(pendulum):
    used, fresh = (PidLinearized(pendulum, 9.0, 5.0, 6.0, sample_time=0.01) for _ in range(2))
    goal, rest = np.array([0.3, -0.2]), np.zeros(2)
    for k in range(5):
        used.command(0.1 * k, rest, rest, np.ones(2))
    kept = used.record()["integral"].copy()
    ways = [rehearsed(law, goal, rest, rest, 0.05).tau for law in (used, fresh)]
    np.testing.assert_array_equal(*ways)
    assert kept.all()
    np.testing.assert_array_equal(used.record()["integral"], kept)


def test_twenty_seconds_of_a_way_that_never_settles_are_rehearsed():
    """Upright, a weak PID falls, ever faster."""
    upright = examples.double_pendulum().model("physical", gravity=(0, 0, 9.81))
    law = IndependentPid(upright, 1.0, 0.0, 1.0, torque_limit=1e9, sample_time=0.02)
    begin = np.array([1e-40, 1e-40]), np.zeros(2)
    findings = law.certificate([0.0, 0.0], start=begin).findings
    (found,) = [x for x in findings if x.assumption.startswith("torques")]
    way = rehearsed(law, np.zeros(2), *begin, 20.0)
    assert 0 < np.abs(way.tau).max() < 0.1  # it still falls
    assert f"at most {np.abs(way.tau).max():.3g} of 1e+09 N m" in found.why


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
    many = SimpleNamespace(q=np.zeros((5, 3, 2)))
    block = Organism.start("backbone").model("physical")
    for some, model in ((many, pendulum), (SimpleNamespace(q=np.zeros((5, 0))), block)):
        with complains(StateError, "one run of joints on a fixed base"):
            plot_closed_loop(some, ComputedTorque(model), way)


@pytest.fixture(scope="module")
def two_units():
    """A run of two joints that turn and one that slides, with numbers that differ everywhere."""
    model, rng = examples.arm("bac").model("physical"), np.random.default_rng(0)
    law = ComputedTorque(model, torque_limit=[50.0, np.inf, 30.0], sample_time=0.01)
    t = np.linspace(0.0, 1.2, 1301)
    q, v, tau, noise, off = 0.1 * rng.standard_normal((5, len(t), 3))
    sigma = rng.uniform(0.01, 0.02, (len(t), 6))
    channels = {
        "measured_q": q + noise, "estimate_q": q + off, "estimate_v": v + off, "sigma": sigma
    }  # fmt: skip
    return law, SimpleNamespace(t=t, q=q, v=v, tau=tau, channels=channels)


def of_color(plane, color):
    return [line for line in plane.lines if line.get_color() == color]


def test_a_plot_has_panels_of_turning_and_of_sliding_joints_with_their_units(two_units):
    law, run = two_units
    figure = plot_closed_loop(run, law, lambda t: SetPoint([0.1, 0.2, 0.3])(t))
    assert [plane.get_ylabel() for plane in figure.axes] == [
        "position [°]", "position [m]", "velocity [°/s]", "velocity [m/s]",
        "torque [N m]", "force [N]", "error [°]", "error [m]",
    ]  # fmt: skip
    assert tuple(figure.get_size_inches()) == pytest.approx((8.4, 0.75 + 8 * 2.0))
    degrees, goal = 180 / np.pi, [0.1, 0.2, 0.3]
    for side, joints, scale in ((0, (0, 1), degrees), (1, (2,), 1.0)):
        place, speed, force, error = figure.axes[side::2]
        for k in joints:
            color = PALETTE[k]
            for plane, expected in (
                (place, scale * run.q[:, k]),
                (speed, scale * run.v[:, k]),
                (force, run.tau[:-1, k]),
                (error, scale * (run.q[:, k] - goal[k])),
            ):
                solid = [x for x in of_color(plane, color) if x.get_linestyle() == "-"]
                np.testing.assert_allclose(solid[0].get_ydata(), expected, rtol=1e-12)
        names = [text.get_text() for text in place.get_legend().get_texts()]
        joints_here = [law.model.joint_names[k] for k in joints]
        assert names == [*joints_here, "reference", "estimate, ±3σ", "measured"]
        low, high = force.get_ylim()
        values = run.tau[:-1, joints]
        room = 0.12 * np.ptp(values)
        assert (low, high) == pytest.approx((values.min() - room, values.max() + room))
        off = scale * (run.q[:, joints] - np.array(goal)[list(joints)])
        room = 0.08 * np.ptp(off)
        assert error.get_ylim() == pytest.approx((off.min() - room, off.max() + room))
        assert low < values.min() < values.max() < high
        assert high - low < 1.5 * np.ptp(values)  # limits far away do not make them flat


def test_estimates_are_drawn_with_three_standard_deviations_and_measurements_as_dots(two_units):
    law, run = two_units
    figure = plot_closed_loop(run, law, SetPoint([0.1, 0.2, 0.3]))
    for panel, channel, k, scale in (
        (0, "estimate_q", 1, 180 / np.pi), (1, "estimate_q", 2, 1.0),
        (2, "estimate_v", 0, 180 / np.pi), (3, "estimate_v", 2, 1.0),
    ):  # fmt: skip
        plane, shift = figure.axes[panel], 3 * (channel == "estimate_v")
        band = plane.collections[-1].get_paths()[0].vertices
        middle = scale * run.channels[channel][:-1, k]
        reach = scale * 3 * run.channels["sigma"][:-1, shift + k]
        if panel == 2:
            band = plane.collections[0].get_paths()[0].vertices
        assert band[:, 1].max() == pytest.approx((middle + reach).max())
        assert band[:, 1].min() == pytest.approx((middle - reach).min())
        dotted = [x for x in of_color(plane, PALETTE[k]) if x.get_linestyle() not in ("-", "None")]
        np.testing.assert_allclose(dotted[0].get_ydata(), middle)
    (dots,) = [x for x in of_color(figure.axes[1], PALETTE[2]) if x.get_marker() == "."]
    assert 600 <= len(dots.get_xdata()) <= 651  # every second one
    np.testing.assert_allclose(dots.get_ydata(), run.channels["measured_q"][:-1:2, 2])


def test_curves_of_a_plot_hide_neither_each_other_nor_the_measurements(two_units):
    law, run = two_units
    figure = plot_closed_loop(run, law, SetPoint([0.1, 0.2, 0.3]))
    for plane in figure.axes:
        lines = [line for line in plane.lines if line.get_linestyle() != "None"]
        assert all(0.8 <= line.get_linewidth() <= 1.6 for line in lines)
        assert all(line.get_markersize() <= 4 for line in plane.lines if line.get_marker() == ".")
        dots = [line for line in plane.lines if line.get_marker() == "." and len(line.get_xdata())]
        assert all(dot.get_alpha() <= 0.3 and dot.get_markersize() < 3 for dot in dots)
        assert all(band.get_alpha() <= 0.2 for band in plane.collections)
        assert all(band.get_linewidth() == 0 for band in plane.collections)
        assert not plane.spines["top"].get_visible()
    place, error = figure.axes[0], figure.axes[6]
    solid, dashed = of_color(place, PALETTE[0])[-1], of_color(place, INK)[0]
    assert dashed.get_linewidth() < solid.get_linewidth()
    (zero,) = of_color(error, FAINT)
    assert zero.get_ydata() == [0, 0]
    assert zero.get_zorder() < of_color(error, PALETTE[0])[0].get_zorder()
    figure.draw_without_rendering()
    left = [plane.yaxis.label.get_window_extent().x0 for plane in figure.axes]
    np.testing.assert_allclose(left, left[0], atol=0.01)


def test_torques_however_small_fill_their_panel(two_units):
    law, run = two_units
    small = SimpleNamespace(t=run.t, q=run.q, v=run.v, tau=1e-8 * run.tau, channels=run.channels)
    low, high = plot_closed_loop(small, law, SetPoint([0.1, 0.2, 0.3])).axes[5].get_ylim()
    assert high - low == pytest.approx(1.24e-8 * np.ptp(run.tau[:-1, 2]))


def test_a_band_is_at_most_ten_times_as_wide_as_usual(two_units):
    law, run = two_units
    sigma = np.full((1301, 6), 0.01)
    sigma[:3] = 1.0
    channels = run.channels | {"sigma": sigma, "estimate_q": 0 * run.q}
    wide = SimpleNamespace(t=run.t, q=run.q, v=run.v, tau=run.tau, channels=channels)
    plane = plot_closed_loop(wide, law, SetPoint([0.1, 0.2, 0.3])).axes[1]
    assert plane.collections[0].get_paths()[0].vertices[:, 1].max() == pytest.approx(10 * 0.03)


@pytest.mark.parametrize(("count", "names"), [(14, 14), (15, 2)])
def test_up_to_fourteen_joints_are_named_in_a_plot_and_of_more_the_ends(count, names):
    model = examples.snake(count + 1).model("physical")
    law, t = PdGravity(model, 1.0, 1.0), np.linspace(0, 1, 5)
    zeros = np.zeros((5, count))
    run = SimpleNamespace(t=t, q=zeros, v=zeros, tau=zeros, channels={})
    legend = plot_closed_loop(run, law, SetPoint(np.zeros(count))).axes[0].get_legend()
    texts = [text.get_text() for text in legend.get_texts()]
    assert len(texts) == names + 1
    assert texts[0] == model.joint_names[0]
    assert texts[-2:] == [model.joint_names[-1], "reference"]


def test_every_measurement_of_a_short_run_is_a_dot(two_units):
    law, run = two_units
    short = {name: x[:100] for name, x in run.channels.items()}
    part = SimpleNamespace(
        t=run.t[:100], q=run.q[:100], v=run.v[:100], tau=run.tau[:100], channels=short
    )
    plane = plot_closed_loop(part, law, SetPoint([0.1, 0.2, 0.3])).axes[1]
    (dots,) = [x for x in of_color(plane, PALETTE[2]) if x.get_marker() == "."]
    np.testing.assert_array_equal(dots.get_xdata(), run.t[:99])
