"""An estimate outlives its body: surviving joints keep it, new ones start from the datasheet."""

import numpy as np
import pytest

from modurob import Organism, StateError, UnknownNameError, examples
from modurob.estimation import Ekf
from oracles import complains
from oracles.differences import columns

ROUNDING = 1e-12
UNIFORM = np.pi**2 / 12  # variance between -90 and 90 degrees


def filled(model, seed=1, **options):
    """A filter with correlations everywhere."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((2 * model.nv, 2 * model.nv))
    q = model.neutral()
    q[model.nq - len(model.joint_names) :] = 0.3 * rng.standard_normal(len(model.joint_names))
    return Ekf(model, 0.01, q=q, v=rng.standard_normal(model.nv), P=root @ root.T, **options)


def test_surviving_joints_keep_estimate_and_covariance():
    old, new = (examples.snake(n).model("physical") for n in (4, 6))
    ekf = filled(old)
    grown = ekf.rebuilt(new)
    keep, there = [0, 1, 2, 5, 6, 7], list(range(6))
    np.testing.assert_array_equal(grown.q[:3], ekf.q)
    np.testing.assert_array_equal(grown.v[:3], ekf.v)
    np.testing.assert_allclose(
        grown.P[np.ix_(keep, keep)], ekf.P[np.ix_(there, there)], atol=ROUNDING
    )
    np.testing.assert_allclose(np.diagonal(grown.P)[[3, 4, 8, 9]], [UNIFORM] * 2 + [1.0] * 2)
    assert not grown.P[np.ix_([3, 4, 8, 9], keep)].any()
    np.testing.assert_array_equal(grown.q[3:], [0, 0])


def test_a_body_that_shrinks_marginalises():
    old, new = (examples.snake(n).model("physical") for n in (6, 4))
    ekf = filled(old)
    rest = ekf.rebuilt(new)
    index = [0, 1, 2, 5, 6, 7]
    np.testing.assert_allclose(rest.P, ekf.P[np.ix_(index, index)], atol=ROUNDING)
    assert rest.measured == new.joint_names


def test_angles_known_from_docking_are_used():
    old, new = (examples.snake(n).model("physical") for n in (3, 4))
    grown = Ekf(old, 0.01, R=4e-6).rebuilt(new, known={"m2.hinge": 0.7}, rate_sigma=0.1)
    assert grown.q[2] == 0.7
    np.testing.assert_allclose(np.diagonal(grown.P)[[2, 5]], [4e-6, 0.01])
    with complains(UnknownNameError, "m0.hinge", "m2.hinge"):
        Ekf(old, 0.01).rebuilt(new, known={"m0.hinge": 0.1})
    with complains(StateError, "rate_sigma"):
        Ekf(old, 0.01).rebuilt(new, rate_sigma=0)


def test_joints_without_limits_are_unknown_by_a_turn_or_a_meter():
    old, new = (examples.arm(word).model("physical") for word in ("b", "bac"))
    grown = Ekf(old, 0.01).rebuilt(new)
    np.testing.assert_allclose(np.diagonal(grown.P)[1:3], [(2 * np.pi) ** 2 / 12, 1 / 12])


def test_noise_goes_along_and_new_joints_get_typical_noise():
    old, new = (examples.snake(n).model("physical") for n in (4, 6))
    Q, R = np.diag([1, 2, 4, 10, 20, 40.0]), np.diag([5, 6, 8.0])
    Q[0, 4] = Q[4, 0] = 0.5
    grown = Ekf(old, 0.01, Q, R, gate=0.99, substeps=3).rebuilt(new)
    np.testing.assert_array_equal(np.diagonal(grown.process), [1, 2, 4, 2, 2, 10, 20, 40, 20, 20])
    assert grown.process[0, 6] == 0.5
    np.testing.assert_array_equal(np.diagonal(grown.noise), [5, 6, 8, 6, 6])
    assert (grown.gate, grown.substeps, grown.dt) == (0.99, 3, 0.01)


def test_what_was_not_measured_stays_unmeasured_and_new_joints_bring_their_sensors():
    old, new = (examples.snake(n).model("physical") for n in (4, 5))
    ekf = Ekf(old, 0.01, measured=["m1.hinge"], measured_rates=["m0.hinge"], R=[2.0, 3.0])
    grown = ekf.rebuilt(new)
    assert grown.measured == ("m1.hinge", "m3.hinge")
    assert grown.measured_rates == ("m0.hinge",)
    np.testing.assert_array_equal(np.diagonal(grown.noise), [2, 2, 3])


def test_a_single_module_knows_its_noise_for_the_joints_to_come():
    alone = Organism.start("backbone").model("physical")
    grown = Ekf(alone, 0.01, Q=3e-5, R=2e-6).rebuilt(examples.snake(3).model("physical"))
    np.testing.assert_allclose(np.diagonal(grown.process), 3e-5)
    np.testing.assert_allclose(np.diagonal(grown.noise), 2e-6)


def test_the_part_that_comes_loose_starts_where_it_was():
    """Its free base has the pose, the twist and the uncertainty that the chain gave it."""
    organism = examples.snake(6)
    _, gone = organism.undock("m3")
    old = organism.model("physical")
    new = gone.model("physical", base="free")
    ekf = filled(old)
    ekf.P = 1e-4 * ekf.P
    loose = ekf.rebuilt(new)
    body = gone.base
    where, there = (m.forward_kinematics(x)[m.body_index(body)] for m, x in
                    ((old, ekf.q), (new, loose.q)))  # fmt: skip
    np.testing.assert_allclose(there, where, rtol=0, atol=ROUNDING)
    twists = [m.jacobian(x.q, body) @ x.v for m, x in ((old, ekf), (new, loose))]
    np.testing.assert_allclose(twists[1], twists[0], rtol=0, atol=1e-10)
    assert np.linalg.eigvalsh(loose.P).min() > -ROUNDING
    # its pose and twist are as uncertain as the Jacobian says, and correlated as it says
    J, n = old.jacobian(ekf.q, body), old.nv
    assert np.allclose(new.body_placement[new.body_index(body)], np.eye(4))
    both = np.zeros((12, 2 * n))
    both[:6, :n], both[6:, n:] = J, J
    both[6:, :n] = columns(lambda dq: old.jacobian(old.integrate(ekf.q, dq), body) @ ekf.v, n)
    assert np.abs(both[6:, :n]).max() > 0.01
    rows = np.r_[0:6, new.nv : new.nv + 6]
    scale = np.abs(loose.P).max()
    np.testing.assert_allclose(
        loose.P[np.ix_(rows, rows)], both @ ekf.P @ both.T, rtol=0, atol=1e-8 * scale
    )
    joint = old.joint_index(new.joint_names[0])
    np.testing.assert_allclose(loose.P[6, rows], both @ ekf.P[:, joint], rtol=0, atol=1e-8 * scale)


def test_a_new_base_of_which_nothing_is_known_is_uncertain():
    old = examples.snake(3).model("physical")
    strange = Organism.start("backbone", "x0").dock("x0", 3, "x1", 4).dock("x1", 3, "x2", 4)
    ekf = Ekf(old, 0.01).rebuilt(strange.model("physical", base="free"))
    expected = [*[0.09] * 6, *[UNIFORM] * 2, *[0.09] * 6, *[1.0] * 2]
    np.testing.assert_allclose(np.diagonal(ekf.P), expected)
    assert ekf.integrator == "step"


@pytest.mark.parametrize(
    ("limits", "mean", "width"),
    [((0.3, 1.0), 0.3, 0.7), ((-1.2, -0.2), -0.2, 1.0), ((-0.5, 1.0), 0.0, 1.5),
     ((0.4, None), 0.4, 2 * np.pi)],
)  # fmt: skip
def test_a_new_joint_starts_as_close_to_zero_as_its_limits_allow(limits, mean, width):
    old, new = (examples.snake(n).with_parameters(limits=limits).model("physical") for n in (3, 4))
    grown = Ekf(old, 0.01, q=[mean, mean]).rebuilt(new)
    assert grown.q[2] == mean
    assert grown.P[2, 2] == pytest.approx(width**2 / 12)


def test_a_free_base_keeps_its_noise_and_new_joints_get_that_of_joints():
    old, new = (examples.snake(n).model("physical", base="free") for n in (4, 5))
    angles, rates = [1.0, 2.0, 4.0], [10.0, 20.0, 70.0]
    Q = np.diag([*range(100, 106), *angles, *range(200, 206), *rates])
    Q[0, 13] = Q[13, 0] = 0.5
    grown = Ekf(old, 0.01, Q, density=True).rebuilt(new)
    expected = [*range(100, 106), *angles, 2, *range(200, 206), *rates, 20]
    np.testing.assert_array_equal(np.diagonal(grown.process), expected)
    assert grown.process[0, 14] == 0.5
    assert grown.density
    fixed = Ekf(old, 0.01, Q).rebuilt(examples.snake(5).model("physical"))
    np.testing.assert_array_equal(np.diagonal(fixed.process), [*angles, 2, *rates, 20])


def test_new_joints_of_a_free_body_start_from_the_datasheet():
    old, new = (examples.snake(n).model("physical", base="free") for n in (3, 4))
    ekf = filled(old)
    grown = ekf.rebuilt(new, known={"m2.hinge": 0.4}, rate_sigma=0.3)
    keep = [*range(8), *range(9, 17)]
    np.testing.assert_array_equal(grown.q, [*ekf.q, 0.4])
    np.testing.assert_array_equal(grown.v, [*ekf.v, 0.0])
    np.testing.assert_allclose(grown.P[np.ix_(keep, keep)], ekf.P, atol=ROUNDING)
    np.testing.assert_allclose(np.diagonal(grown.P)[[8, 17]], [1e-4, 0.09])


def test_a_joint_that_is_released_before_all_others_gets_the_noise_of_joints():
    snake = examples.snake(4)
    held = snake.model("physical", base="free", locked={"m0.hinge": 0.2})
    variances = np.arange(1.0, 2 * held.nv + 1)
    ekf = Ekf(held, 0.01, Q=variances, R=1.0).rebuilt(snake.model("physical", base="free"))
    found = np.diagonal(ekf.process).reshape(2, -1)
    assert found[:, 6].tolist() == [7.5, 15.5]  # medians of the two joints that there were
    assert np.delete(found, 6, axis=1).ravel().tolist() == variances.tolist()


def test_without_joints_new_ones_get_the_default_noise():
    """One number for all is taken for them; numbers of the base are not."""
    alone, body = Organism.start("backbone"), examples.snake(3)
    for base, Q in (("fixed", None), ("free", np.arange(12.0)), ("free", None)):
        grown = Ekf(alone.model("physical", base), 0.01, Q).rebuilt(body.model("physical"))
        np.testing.assert_array_equal(np.diagonal(grown.process), [1e-8] * 2 + [1e-4] * 2)
        np.testing.assert_array_equal(np.diagonal(grown.noise), [1e-4] * 2)


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_the_carried_filter_finds_the_new_joints(base):
    old, new = (examples.snake(n).model("physical", base=base) for n in (3, 5))
    rng, q, v = np.random.default_rng(2), new.neutral(), np.zeros(new.nv)
    q[-2:] = [0.5, -0.4]
    ekf = Ekf(old, 0.01, Q=1e-6, R=1e-6).rebuilt(new)
    for _ in range(60):
        tau = np.zeros(new.nv) if base == "free" else new.gravity_torque(q)
        ekf.correct(ekf.measure(q, v) + 1e-3 * rng.standard_normal(4))
        ekf.predict(tau)
        q, v = new.step(q, v, tau, 0.01)
    assert np.abs(ekf.error(q, v)[new.nv - 4 : new.nv]).max() < 5e-3
