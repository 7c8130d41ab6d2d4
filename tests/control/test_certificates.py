"""Certificates: what they promise comes true, and what fails is said."""

import numpy as np
import pytest
from scipy.linalg import expm

from modurob import Organism, StateError, examples
from modurob.control import (
    CONTROLLERS,
    ComputedTorque,
    IndependentPid,
    JointImpedance,
    PdGravity,
    PidLinearized,
    PolePlacement,
)
from modurob.control.closed_loop import delay_margin, linearized, rehearsed
from oracles import complains

EIGEN = 1e-6  # double poles scatter by the root of rounding
GOAL = np.array([0.3, 0.2, 0.1])
Z = np.zeros(3)

every = pytest.mark.parametrize("law", CONTROLLERS.values(), ids=CONTROLLERS)


@pytest.fixture(scope="module")
def crab():
    return examples.crab().model()


def failed(certificate):
    return " / ".join(f"{f.assumption}: {f.why}" for f in certificate.failures)


@every
def test_default_laws_are_guaranteed_for_the_crab(law, crab):
    certificate = law(crab).certificate(GOAL)
    assert certificate.guaranteed, str(certificate)
    assert certificate.rate > 0.5
    assert "m2.hinge" in str(certificate)  # locked joints are named
    assert "guaranteed" in str(certificate)


def test_eigenvalues_are_the_poles():
    model = examples.double_pendulum().model("physical")
    found = PolePlacement(model, poles=[[-2, -3], [-5, -10]]).certificate()
    np.testing.assert_allclose(np.sort(found.eigenvalues.real), [-10, -5, -3, -2], atol=EIGEN)
    assert found.rate == pytest.approx(2.0)
    assert found.claim.startswith("from any state")


@pytest.mark.parametrize("at", [[0.0, 0.0], [0.7, -0.4]])
def test_the_linearised_loop_of_computed_torque_has_the_same_poles_everywhere(at):
    model = examples.double_pendulum().model("physical")
    law = PolePlacement(model, poles=[[-2, -3], [-5, -10]])
    found = linearized(law, np.array(at))
    np.testing.assert_allclose(np.sort(found.eigenvalues.real), [-10, -5, -3, -2], atol=EIGEN)


@every
@pytest.mark.parametrize("delay", [0.0, 0.02, 0.06])
def test_the_sampled_loop_is_the_linear_map_of_one_sample(law, delay, crab):
    """Small deviations over samples: the plant and the law themselves, against the matrix."""
    dt = 0.02
    options = {"filter_time": 0.03} if "Pid" in law.__name__ else {}
    one = law(crab, sample_time=dt, delay=delay, **options)
    A = linearized(one, GOAL).A
    n, small = 3, 1e-6
    rng = np.random.default_rng(0)
    x = np.zeros(len(A))
    x[: 2 * n] = small * rng.standard_normal(2 * n)
    gravity = crab.gravity_torque(GOAL)
    one.reset(0.0, GOAL, Z)
    if isinstance(one, IndependentPid):
        one.pid.integral = gravity.copy()
    one.command(-dt, GOAL, Z, GOAL)  # at rest before: the delayed torque is that of gravity
    q, v = GOAL + x[:n], x[n : 2 * n].copy()
    for k in range(5):
        tau = one.command(k * dt, q, v, GOAL)
        for _ in range(20):
            h = dt / 20
            a1 = crab.forward_dynamics(q, v, tau)
            a2 = crab.forward_dynamics(q + h / 2 * v, v + h / 2 * a1, tau)
            q, v = q + h * v + h * h / 2 * a1, v + h * a2
        x = A @ x
        np.testing.assert_allclose(
            np.concatenate([q - GOAL, v]), x[: 2 * n], rtol=0, atol=1e-4 * small / dt
        )


def test_a_slow_sample_or_a_delay_makes_a_fast_loop_unstable(crab):
    fast = {"k0": 400.0, "k1": 40.0}
    assert ComputedTorque(crab, **fast).certificate().guaranteed
    assert ComputedTorque(crab, **fast, sample_time=0.001).certificate().guaranteed
    assert ComputedTorque(crab, **fast, sample_time=0.001, delay=True).certificate().guaranteed
    with complains(StateError, "sample_time of 0.06 s is too long", "take 0.05 s or less"):
        ComputedTorque(crab, **fast, sample_time=0.06)  # 2 / k1: z = -1
    assert ComputedTorque(crab, **fast, sample_time=0.03).certificate().guaranteed
    late = ComputedTorque(crab, **fast, sample_time=0.03, delay=True).certificate()
    assert not late.guaranteed
    assert "they grow" in failed(late)


def test_the_delay_margin_is_where_certificates_end(crab):
    law = ComputedTorque(crab, k0=400.0, k1=40.0, sample_time=0.005)
    longest = delay_margin(law, GOAL)
    assert law.changed(delay=longest).certificate(GOAL).guaranteed
    assert not law.changed(delay=longest + 0.005).certificate(GOAL).guaranteed
    law.k0 = -np.eye(3)
    assert delay_margin(law, GOAL) is None
    with complains(StateError, "sample_time"):
        delay_margin(ComputedTorque(crab), GOAL)


def test_the_delay_margin_is_that_of_the_continuous_loop_for_fast_samples(crab):
    """e'' + k1 e'(t - T) + k0 e(t - T) = 0: phase and modulus of (k0 + k1 s) e^-sT / s^2 at 1."""
    k0, k1 = 100.0, 20.0
    w = np.sqrt((k1**2 + np.sqrt(k1**4 + 4 * k0**2)) / 2)  # where the modulus is one
    expected = np.arctan2(k1 * w, k0) / w
    level = examples.crab().model(gravity=(0, 0, 0))  # gravity would act without the delay
    law = ComputedTorque(level, k0=k0, k1=k1, sample_time=5e-4)
    assert delay_margin(law, GOAL) == pytest.approx(expected - 2.5e-4, abs=5e-4)  # half a sample


def test_sampling_shrinks_the_claim(crab):
    assert ComputedTorque(crab).certificate().claim.startswith("from any state")
    sampled = ComputedTorque(crab, sample_time=0.01).certificate()
    assert sampled.claim.startswith("close to the set point")
    assert "0.01 s" in str(sampled)


def test_unstable_gains_are_refused_with_their_pole(crab):
    with complains(StateError, "unstable: pole 0.414 1/s", "hinge"):  # s^2 + 2 s - 1
        ComputedTorque(crab, k0=-np.eye(3), k1=2.0)
    routh = np.roots([1.0, 1.0, 1.0, 5.0])  # kp kd > ki is not so
    pole = routh[routh.real.argmax()]
    with complains(StateError, f"pole {pole.real:.3g} ± {abs(pole.imag):.3g}j 1/s"):
        PidLinearized(crab, kp=1.0, ki=5.0, kd=1.0, sample_time=1e-3)
    with complains(StateError, "unstable: pole", "'m3.hinge'"):
        PdGravity(crab, kp=1.0, kd=np.diag([0.1, -0.1, 0.1]))


def test_a_sample_time_too_long_for_the_gains_is_refused_with_the_longest():
    arm = examples.arm("babac").model("physical")  # giusti2015's gains
    lightest = np.linalg.eigvalsh(arm.mass_matrix(arm.neutral())).min()
    with complains(StateError, "sample_time of 0.001 s is too long", "take 6.8e-05 s or less"):
        PdGravity(arm, kp=250.0, kd=30.0, sample_time=1e-3)
    assert 2 * lightest / 30.0 == pytest.approx(6.8e-5, rel=0.1)  # damping alone, without friction
    PdGravity(arm, kp=250.0, kd=30.0, sample_time=6.8e-5)


def test_wrong_gains_are_not_guaranteed(crab):
    assert not ComputedTorque(crab, k0=1.0, k1=np.zeros((3, 3))).certificate().guaranteed
    wrong = PdGravity(crab, kp=np.array([[1.0, 0.9, 0], [-0.9, 1, 0], [0, 0, 1]]), kd=0.5)
    assert "kp is not symmetric" in failed(wrong.certificate())
    wrong.kd = np.diag([0.1, -0.1, 0.1])
    wrong.kp = np.eye(3)
    assert "kd is not positive definite" in failed(wrong.certificate())


# -- saturation ------------------------------------------------------------------------------------


@every
def test_a_motor_that_cannot_carry_the_load_is_named(law, crab):
    certificate = law(crab, torque_limit=[1.0, 5.0, 5.0]).certificate(GOAL)
    assert not certificate.guaranteed
    assert "'m1.hinge' needs 1.87 N m" in failed(certificate)


@every
def test_a_start_that_would_saturate_is_named(law, crab):
    limit = 1.2 * np.abs(crab.gravity_torque(GOAL)) + 0.1
    near, far = GOAL + 1e-3, GOAL - np.array([0.9, 0.9, 0.9])
    # stiff laws without a clock take hundreds of steps a sample: one of them is enough
    clock = {} if law is JointImpedance else {"sample_time": 5e-3}
    limited = law(crab, torque_limit=limit, **clock)
    if law is not IndependentPid:  # its integral starts empty: it sags, then overshoots
        assert limited.certificate(GOAL, (near, Z)).guaranteed
    certificate = limited.certificate(GOAL, (far, Z))
    assert not certificate.guaranteed
    assert "needs" in failed(certificate)
    assert law(crab).certificate(GOAL, (far, Z)).guaranteed


def test_motors_of_a_body_without_joints_have_no_torques_to_compare():
    block = Organism.start("backbone").model("physical")
    law = ComputedTorque(block, torque_limit=1.0)
    found = law.certificate([], start=([], [])).findings
    assert not [x for x in found if x.assumption.startswith("torques")]


def test_limits_without_a_start_shrink_the_claim(crab):
    law = ComputedTorque(crab, torque_limit=3.0)
    assert law.certificate(GOAL).claim.startswith("close to the set point")
    assert law.certificate(GOAL).guaranteed  # with that claim
    assert law.certificate(GOAL, (Z, Z)).claim.startswith("from the given start")


def test_the_rehearsal_of_computed_torque_is_its_linear_equation(crab):
    law = ComputedTorque(crab, k0=30.0, k1=9.0)
    way = rehearsed(law, GOAL, Z, np.array([1.0, -1.0, 0.5]), 1.0)
    np.testing.assert_allclose(way.t, np.linspace(0.0, 1.0, len(way.t)), atol=1e-12)
    A = np.array([[0, 1], [-30.0, -9.0]])
    for k in (0, 300, 800):
        for j in range(3):
            expected = expm(A * way.t[k]) @ [-GOAL[j], [1.0, -1.0, 0.5][j]]
            assert way.q[k, j] - GOAL[j] == pytest.approx(expected[0], abs=1e-7)
    assert not way.diverged


def test_what_is_guaranteed_with_limits_comes_true(crab):
    """Run with the limits: the torque never meets them, the error follows its equation."""
    limit = np.array([3.0, 0.05, 0.05])
    law = ComputedTorque(crab, torque_limit=limit)
    assert law.certificate(GOAL, (Z, Z)).guaranteed
    q, v, dt = Z, Z, 1e-3
    for k in range(2000):
        tau = law.command(k * dt, q, v, GOAL)
        assert np.all(np.abs(tau) < limit)
        q, v = crab.step(q, v, tau, dt)
    np.testing.assert_allclose(q, GOAL, atol=1e-3)


def test_torques_below_one_newton_meter_are_compared_with_their_limits_too():
    small = examples.double_pendulum(l1=0.05, l2=0.05, m1=0.1, m2=0.02)
    law = ComputedTorque(small.model("physical", gravity=(0, 0, 0)), torque_limit=[1.0, 1e-5])
    certificate = law.certificate([0.1, 0.1], start=(np.zeros(2), np.zeros(2)))
    assert f"'{law.model.joint_names[1]}' needs" in failed(certificate)


# -- joints and friction ---------------------------------------------------------------------------


@pytest.mark.parametrize("law", [ComputedTorque, PidLinearized, PdGravity, IndependentPid])
def test_undamped_zero_dynamics_are_named(law):
    certificate = law(examples.crane().model("physical"), passive=["m1.hinge"]).certificate()
    assert not certificate.guaranteed
    assert "no motor at m1.hinge" in failed(certificate)
    assert "undamped" in failed(certificate)


def test_zero_dynamics_with_friction_decay_at_their_own_rate():
    rough = examples.crane(m2=1.0, l=5.0).with_parameters(viscous=5.0).model("physical")
    certificate = ComputedTorque(rough, passive=["m1.hinge"]).certificate()
    assert certificate.guaranteed, str(certificate)
    # l^2 m phi'' + 5 phi' + m g l phi = 0: rate 5 / (2 * 25)
    assert certificate.rate == pytest.approx(0.1, rel=1e-6)


def test_unstable_zero_dynamics_are_named():
    upright = examples.crane().model("physical", gravity=(0, 0, 9.81))
    certificate = ComputedTorque(upright, passive=["m1.hinge"]).certificate()
    assert "unstable" in failed(certificate)
    assert certificate.rate == pytest.approx(-np.sqrt(9.81 / 5), rel=1e-6)


def test_a_joint_without_a_motor_that_cannot_rest_is_named():
    law = ComputedTorque(examples.crane().model("physical"), passive=["m1.hinge"])
    assert "cannot rest there" in failed(law.certificate([0.0, 0.5]))


@every
def test_a_free_base_is_named(law):
    certificate = law(examples.snake(3).model("physical", base="free")).certificate()
    assert not certificate.guaranteed
    assert "nothing holds the base" in failed(certificate)


@every
def test_dry_friction_is_named(law):
    rough = examples.crab().with_parameters(coulomb=0.05).model()
    certificate = law(rough).certificate(GOAL)
    assert not certificate.guaranteed
    assert "dry friction at m1.hinge" in failed(certificate)


def test_dry_friction_holds_pd_within_the_distance_that_is_named():
    rough = examples.crab().with_parameters(coulomb=0.05).model()
    law = PdGravity(rough, kp=2.0, kd=0.3)
    assert "up to 0.025 rad" in failed(law.certificate(GOAL))


def test_a_set_point_beyond_the_limits_is_named(crab):
    assert "joint limits" in failed(ComputedTorque(crab).certificate([2.0, 0, 0]))


def test_an_integral_that_may_not_carry_the_load_is_named(crab):
    law = IndependentPid(crab, settling_time=1.0, integral_limit=0.5)
    assert "its limit is too low at m1.hinge" in failed(law.certificate(GOAL))


def test_energy_balance_is_checked_for_every_kind_of_body():
    for model in (
        examples.arm("bac").model("physical"),
        examples.nine().model(),
        Organism.random("scout", 6, np.random.default_rng(2)).model("physical"),
    ):
        certificate = PdGravity(model).certificate()
        energy = next(f for f in certificate.findings if "Lyapunov" in f.assumption)
        assert energy.holds, energy.why


@pytest.mark.parametrize("factor", [1.0, 1.1])
def test_a_coriolis_matrix_that_is_not_skew_is_seen(factor, monkeypatch):
    """With the documents' C, dM/dt - 2 C is not skew; with a wrong one energy is not balanced."""
    model = examples.double_pendulum().model("physical")
    law = PdGravity(model)
    assert law.certificate().guaranteed
    monkeypatch.setattr(
        type(model), "coriolis_matrix", lambda self, q, v: factor * self.closed_form(q, v).C
    )
    energy = next(f for f in law.certificate().findings if "Lyapunov" in f.assumption)
    assert not energy.holds
    assert "not so" in energy.why


def test_energy_and_skewness_are_checked_by_themselves(monkeypatch):
    """A balance that is off by a millionth; and a C that does no work and is not skew."""
    model = examples.double_pendulum().model("physical")
    law, original = PdGravity(model), type(model).coriolis_matrix

    def energy():
        return next(f for f in law.certificate().findings if "Lyapunov" in f.assumption)

    def bent(self, q, v):
        across = np.array([-v[1], v[0]])
        return original(self, q, v) + 1e-3 * np.outer(across, across)

    lyapunov = law.lyapunov
    with monkeypatch.context() as patch:
        patch.setattr(law, "lyapunov", lambda *x: (1.0, (1 + 1e-6) * lyapunov(*x)[1]))
        assert not energy().holds
    with monkeypatch.context() as patch:
        patch.setattr(type(model), "coriolis_matrix", bent)
        assert not energy().holds
    assert energy().holds


def test_a_guarantee_says_when_it_is_slow():
    """The time to 2 %, from the slowest pole, beside the settling time asked for."""
    smooth = examples.arm("ba").with_parameters(viscous=0.0, coulomb=0.0)
    body = smooth.model("physical", gravity=(0.0, 0.0, 0.0))
    slow, quick = (PdGravity(body, sample_time=dt).certificate() for dt in (0.2, 0.001))
    assert slow.guaranteed
    constant = -0.2 / np.log(np.abs(slow.eigenvalues).max())
    takes = constant * np.log(50)
    assert f"slowly: 2% of an error is left after {takes:.3g} s, 1 s asked for" in str(slow)
    given = PdGravity(body, kp=0.002, kd=1.0).certificate()  # a rate of 0.002 1/s
    assert given.guaranteed
    assert "slowly: 2% of an error is left after 1.96e+03 s" in str(given)
    assert "slowly" not in str(quick)
    assert f"time constant {1 / quick.rate:.3g} s" in str(quick)
