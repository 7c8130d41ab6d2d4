"""Rotations against Pinocchio, SciPy and the matrix exponential."""

import numpy as np
import pinocchio as pin
import pytest
import sympy
from scipy.linalg import expm, polar
from scipy.spatial.transform import Rotation

from modurob.spatial import so3

EPS = np.finfo(float).eps
FEW = 4 * EPS  # relative, of one number after a handful of operations
ROUNDING = 8 * EPS  # entries of size 1 after a handful of operations
ANGLE_ROUNDING = 16 * EPS  # an angle up to pi from entries that carry ROUNDING/2 each
EXPM_ROUNDING = 1e-13  # scipy squares its matrix up to three times, doubling the error
SVD_ROUNDING = 64 * EPS  # LAPACK turns rows and columns some ten times
LOOP_ROUNDING = 1e-14  # entries up to 10, for axes that are not unit vectors
STEP = 1e-200  # complex step: no cancellation

ANGLES = [0.0, 1e-300, 1e-160, 1e-12, 1e-8, 1e-4, 1.0, 2.5]
ANGLES += [np.pi - 1e-4, np.pi - 1e-8, np.pi - 1e-12, np.pi]
RNG = np.random.default_rng(1)
RANDOM_AXES = RNG.normal(size=(20, 3))
RANDOM_AXES /= np.linalg.norm(RANDOM_AXES, axis=1, keepdims=True)
AXES = np.vstack([np.eye(3), -np.eye(3), RANDOM_AXES])


def assert_same_rotation_vector(actual, expected):
    error = np.abs(actual - expected).max()
    if np.linalg.norm(expected) > np.pi - 1e-9:  # +pi and -pi about one axis are one rotation
        opposite = expected * (1 - 2 * np.pi / np.linalg.norm(expected))
        error = min(error, np.abs(actual - opposite).max())
    # Relative for small angles: the log of a tiny rotation keeps its digits.
    assert error <= ANGLE_ROUNDING * np.linalg.norm(expected)


@pytest.mark.parametrize("angle", ANGLES)
def test_log_inverts_exp_at_every_angle(angle):
    for axis in AXES:
        assert_same_rotation_vector(so3.log(so3.exp(angle * axis)), angle * axis)
        assert_same_rotation_vector(so3.log(so3.rotation(axis, angle)), angle * axis)


@pytest.mark.parametrize("angle", ANGLES)
def test_exp_and_log_match_pinocchio(angle):
    for axis in AXES:
        R = so3.exp(angle * axis)
        np.testing.assert_allclose(R, pin.exp3(angle * axis), rtol=0, atol=ROUNDING)
        # Pinocchio's log loses half the digits near pi, so there its exp judges our log.
        np.testing.assert_allclose(pin.exp3(so3.log(R)), R, rtol=0, atol=ANGLE_ROUNDING)
        if angle < 3:
            np.testing.assert_allclose(so3.log(R), pin.log3(R), rtol=0, atol=ANGLE_ROUNDING)


def test_rotation_is_rodrigues_formula_erratum_1():
    for axis, q in zip(RANDOM_AXES, RNG.uniform(-6, 6, 20), strict=True):
        R = so3.rotation(axis, q)
        W = so3.hat(axis)
        np.testing.assert_allclose(R, expm(W * q), rtol=0, atol=EXPM_ROUNDING)
        assert so3.is_rotation(R, ROUNDING)
        # meister2012 (8) adds sin q instead of multiplying hat(w) by it.
        misprint = np.eye(3) + W + np.sin(q) + W @ W * (1 - np.cos(q))
        assert not so3.is_rotation(misprint, 1e-3)


def test_rotation_about_a_zero_axis_is_the_identity():
    np.testing.assert_array_equal(so3.rotation([0, 0, 0], 1.3), np.eye(3))


def test_hat_is_the_cross_product_and_vee_inverts_it():
    a, b = RNG.normal(size=(2, 5, 3))
    np.testing.assert_allclose(
        (so3.hat(a) @ b[..., None])[..., 0], np.cross(a, b), rtol=0, atol=ROUNDING
    )
    np.testing.assert_array_equal(so3.cross(a, b), np.cross(a, b))
    np.testing.assert_array_equal(so3.vee(so3.hat(a)), a)


@pytest.mark.parametrize("angle", ANGLES)
def test_quaternion_matches_pinocchio_and_scipy_up_to_sign(angle):
    for axis in AXES:
        R = so3.exp(angle * axis)
        q = so3.to_quaternion(R)
        for other in (pin.Quaternion(R).coeffs(), Rotation.from_matrix(R).as_quat()):
            error = min(np.abs(q - other).max(), np.abs(q + other).max())
            assert error <= ROUNDING
        assert q[3] >= 0
        np.testing.assert_allclose(so3.from_quaternion(q), R, rtol=0, atol=ROUNDING)


def test_from_rpy_matches_urdf_convention():
    for rpy in RNG.uniform(-3, 3, (20, 3)):
        R = so3.from_rpy(*rpy)
        np.testing.assert_allclose(R, pin.rpy.rpyToMatrix(*rpy), rtol=0, atol=ROUNDING)
        oracle = Rotation.from_euler("xyz", rpy).as_matrix()
        np.testing.assert_allclose(R, oracle, rtol=0, atol=ROUNDING)


def test_right_angles_give_exact_signed_permutations():
    quarter = np.arange(-4, 5) * (np.pi / 2)
    R = so3.from_rpy(quarter[:, None, None], quarter[:, None], quarter)
    assert R.shape == (9, 9, 9, 3, 3)
    assert set(np.unique(R)) == {-1.0, 0.0, 1.0}
    assert not np.signbit(R[R == 0]).any()
    np.testing.assert_array_equal(np.abs(R).sum(axis=-1), 1)


@pytest.mark.parametrize("rpy", [(0.3, -0.7, 1.9), (np.pi / 2, 0.0, -np.pi)])
def test_from_rpy_is_analytic_also_at_right_angles(rpy):
    """Yaw turns about z of the parent, roll about x of the child."""
    R = so3.from_rpy(*rpy)
    for k, rate in ((2, so3.hat([0, 0, 1]) @ R), (0, R @ so3.hat([1, 0, 0]))):
        found = so3.from_rpy(*(np.array(rpy) + 1j * STEP * np.eye(3)[k]))
        np.testing.assert_allclose(np.imag(found) / STEP, rate, rtol=0, atol=ROUNDING)
    q = sympy.Symbol("q")
    assert so3.from_rpy(0, 0, q)[0, 1].subs(q, 0.3) == pytest.approx(-np.sin(0.3))


@pytest.mark.parametrize("angle", ANGLES)
def test_left_jacobian_matches_complex_step(angle):
    for w in angle * AXES:
        J = np.empty((3, 3))
        for k in range(3):
            dR = np.imag(so3.exp(w + 1j * STEP * np.eye(3)[k])) / STEP
            J[:, k] = so3.vee(dR @ so3.exp(w).T)
        np.testing.assert_allclose(so3.left_jacobian(w), J, rtol=0, atol=ROUNDING)
        # Pinocchio's is the right Jacobian; it truncates its series near 0.
        np.testing.assert_allclose(so3.left_jacobian(w), pin.Jexp3(-w), rtol=0, atol=1e-12)


@pytest.mark.parametrize("angle", [*ANGLES, 4.0, 6.0])
def test_left_jacobian_inverse_inverts(angle):
    for w in angle * AXES:
        inverse = so3.left_jacobian_inverse(w)
        # Near 2 pi the Jacobian is nearly singular; its condition number is 22 at 6 rad.
        np.testing.assert_allclose(
            inverse @ so3.left_jacobian(w), np.eye(3), rtol=0, atol=22 * ROUNDING
        )


@pytest.mark.parametrize("angle", [1e-12, 1e-8, 1e-4, 1.0, 2.5, np.pi - 1e-4, np.pi - 1e-8])
def test_log_is_analytic(angle):
    """Its complex-step derivative along d exp(w) = hat(J dw) exp(w) gives dw back."""
    for w in angle * RANDOM_AXES[:5]:
        dw = np.array([0.3, -1.0, 0.5])
        R = so3.exp(w + 1j * STEP * dw)
        np.testing.assert_allclose(np.imag(so3.log(R)) / STEP, dw, rtol=0, atol=1e-14)


def test_batch_equals_loop():
    # Not to the last bit: NumPy's vector sin differs from its scalar one.
    def close(batch, single):
        np.testing.assert_allclose(batch, single, rtol=0, atol=LOOP_ROUNDING)

    w = RNG.normal(size=(4, 5, 3)) * np.array([1e-9, 1e-3, 1.0, 3.0])[:, None, None]
    q = RNG.normal(size=(4, 5))
    R = so3.exp(w)
    for i in np.ndindex(4, 5):
        close(R[i], so3.exp(w[i]))
        close(so3.log(R)[i], so3.log(R[i]))
        close(so3.to_quaternion(R)[i], so3.to_quaternion(R[i]))
        close(so3.left_jacobian_inverse(w)[i], so3.left_jacobian_inverse(w[i]))
        close(so3.rotation(w, q)[i], so3.rotation(w[i], q[i]))
    assert so3.rotation([0, 0, 1], q).shape == (4, 5, 3, 3)


def test_is_rotation_rejects_reflections_scalings_and_nan():
    unknown = np.where(np.eye(3) == 0, [np.nan, np.inf, 0.0], np.eye(3))
    candidates = np.stack([np.eye(3), -np.eye(3), 1.001 * np.eye(3), unknown])
    np.testing.assert_array_equal(so3.is_rotation(candidates), [True, False, False, False])
    assert so3.is_rotation(1.001 * np.eye(3), tolerance=0.01)
    assert not so3.is_rotation(np.full((3, 3), np.nan), tolerance=1.0)
    # the documented default, 1e-9: matrices written with ten decimals pass
    assert so3.is_rotation(np.eye(3) + np.diag([0, 0.49e-9, 0]))
    assert not so3.is_rotation(np.eye(3) + np.diag([0, 0.51e-9, 0]))


def test_quaternions_are_normalized_and_unit_ones_stay_as_they_are():
    q = np.array([[0.2, -0.4, 0.5, 0.7], [3.0, -1.0, 2.0, 0.5], [0.0, 0.0, -2.0, 0.0]])
    norm = np.linalg.norm(q, axis=-1, keepdims=True)
    unit = so3.unit_quaternion(q)
    np.testing.assert_allclose(unit, q / norm, rtol=FEW)
    for each, one, length in zip(q, unit, norm, strict=True):
        np.testing.assert_array_equal(so3.unit_quaternion(each), one)
        assert so3.squared_norm(each) == pytest.approx(length[0] ** 2, rel=FEW)
        assert so3.is_unit(one) is True
        assert so3.is_unit(each) is False
    np.testing.assert_allclose(so3.squared_norm(q), norm[:, 0] ** 2, rtol=FEW)
    assert so3.is_unit(unit) is True
    assert so3.is_unit(np.vstack([unit, q])) is False  # one is enough
    near = np.array([0.0, 0.6, 0.0, 0.8]) * (1 + 4e-15)  # squared: 8e-15 away
    np.testing.assert_array_equal(so3.unit_quaternion(near), near)
    far = near * (1 + 2e-14)
    assert so3.unit_quaternion(far) @ so3.unit_quaternion(far) == pytest.approx(1, abs=FEW)
    assert (so3.unit_quaternion(far) != far).any()
    assert so3.is_unit(near)
    assert not so3.is_unit(far)


@pytest.mark.parametrize("size", [0.0, 1e-12, 1e-6, 1e-2])
def test_a_repaired_rotation_is_the_polar_factor(size):
    rng = np.random.default_rng(3)
    given = so3.exp(RANDOM_AXES * 2.0) + size * rng.normal(size=(20, 3, 3))
    repaired = so3.nearest_rotation(given)
    assert so3.is_rotation(repaired, SVD_ROUNDING).all()
    for R, Q in zip(given, repaired, strict=True):
        np.testing.assert_allclose(Q, polar(R)[0], rtol=0, atol=SVD_ROUNDING)


def test_no_rotation_is_nearer_than_the_repaired_one():
    rng = np.random.default_rng(4)
    given = so3.exp(RANDOM_AXES[0]) + 1e-2 * rng.normal(size=(3, 3))
    best = so3.nearest_rotation(given)
    others = best @ so3.exp(1e-3 * rng.normal(size=(200, 3)))
    distances = np.linalg.norm(others - given, axis=(-1, -2))
    assert np.linalg.norm(best - given) < distances.min()
