"""Poses, twists and wrenches against Pinocchio and the matrix exponential."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.linalg import expm

from modurob.spatial import se3, so3

ROUNDING = 1e-14  # entries of size 1 to 10 after a few dozen operations
EXPM_ROUNDING = 1e-13  # scipy squares its matrix a few times, doubling the error each time
PI = np.pi
ANGLES = [0.0, 1e-300, 1e-12, 1e-8, 1e-4, 1.0, PI - 1e-4, PI - 1e-8, PI - 1e-12, PI]
RNG = np.random.default_rng(2)
AXES = np.vstack([np.eye(3), RNG.normal(size=(8, 3))])
AXES /= np.linalg.norm(AXES, axis=1, keepdims=True)
TWISTS = RNG.normal(size=(10, 6))
POSES = np.stack([pin.exp6(V).homogeneous for V in RNG.normal(size=(10, 6))])


def close(actual, expected, atol=ROUNDING):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)


@pytest.mark.parametrize("angle", ANGLES)
def test_exp_matches_expm_and_pinocchio_and_log_inverts_it(angle):
    for axis, v in zip(AXES, RNG.normal(size=(len(AXES), 3)), strict=True):
        V = np.concatenate([v, angle * axis])
        T = se3.exp(V)
        close(T, expm(se3.hat(V)), EXPM_ROUNDING)
        close(T, pin.exp6(V).homogeneous)
        close(se3.exp(se3.log(T)), T)
        if angle < PI - 1e-13:  # at pi the other sign of w is just as right
            close(se3.log(T), V)
        if angle < 3:  # Pinocchio's log loses digits near pi
            close(se3.log(T), pin.log6(T).vector)


def test_inverse_undoes_a_pose():
    close(se3.inverse(POSES) @ POSES, np.broadcast_to(np.eye(4), (10, 4, 4)))
    close(se3.inverse(POSES), np.linalg.inv(POSES))


def test_pose_splits_into_its_parts():
    R, p = se3.rotation_of(POSES), se3.position_of(POSES)
    np.testing.assert_array_equal(se3.pose(R, p), POSES)
    assert se3.pose(np.eye(3), p).shape == (10, 4, 4)


def test_composed_poses_are_the_product_of_their_matrices():
    for A, B in zip(POSES[:5], POSES[5:], strict=True):
        close(se3.composed(A, B), A @ B)
    np.testing.assert_array_equal(se3.composed(POSES[0], POSES[1])[3], [0, 0, 0, 1])


def test_position_and_quaternion_of_a_pose_match_pinocchio():
    found = se3.to_position_and_quaternion(POSES)
    assert found.shape == (10, 7)
    for row, T in zip(found, POSES, strict=True):
        right = pin.SE3ToXYZQUAT(pin.SE3(T))
        close(row, right * np.r_[1, 1, 1, [np.sign(right[6])] * 4])
        np.testing.assert_array_equal(se3.to_position_and_quaternion(T), row)
    rows = se3.to_position_and_quaternion(POSES.reshape(2, 5, 4, 4))
    np.testing.assert_array_equal(rows.reshape(10, 7), found)


def test_vee_inverts_hat():
    np.testing.assert_array_equal(se3.vee(se3.hat(TWISTS)), TWISTS)


def test_adjoint_matches_pinocchio_linear_part_first():
    for T, V in zip(POSES, TWISTS, strict=True):
        close(se3.Ad(T), pin.SE3(T).action)
        close(se3.ad(V), pin.Motion(V).action)


def test_adjoint_is_conjugation():
    for T, V in zip(POSES, TWISTS, strict=True):
        close(se3.hat(se3.transform_twist(T, V)), T @ se3.hat(V) @ se3.inverse(T))


def test_bracket_is_the_commutator():
    V1, V2 = TWISTS[:5], TWISTS[5:]
    X1, X2 = se3.hat(V1), se3.hat(V2)
    close(se3.bracket(V1, V2), se3.vee(X1 @ X2 - X2 @ X1))
    close(se3.bracket(V1, V2), (se3.ad(V1) @ V2[..., None])[..., 0])


def test_adjoint_commutes_with_the_bracket():
    X = se3.Ad(POSES)
    # Products of entries up to 10: two digits more than ROUNDING.
    np.testing.assert_allclose(
        X @ se3.ad(TWISTS),
        se3.ad(se3.transform_twist(POSES, TWISTS)) @ X,
        rtol=0,
        atol=100 * ROUNDING,
    )


def test_transforms_equal_their_matrices():
    X = se3.Ad(POSES)
    close(se3.transform_twist(POSES, TWISTS), (X @ TWISTS[..., None])[..., 0])
    close(se3.transform_wrench(POSES, TWISTS), (np.swapaxes(X, -1, -2) @ TWISTS[..., None])[..., 0])


def test_power_does_not_depend_on_the_frame():
    V_b, F_a = TWISTS, RNG.normal(size=(10, 6))
    V_a = se3.transform_twist(POSES, V_b)
    F_b = se3.transform_wrench(POSES, F_a)
    close((F_a * V_a).sum(axis=-1), (F_b * V_b).sum(axis=-1))


def screw(kind, axis, point, pitch):
    if kind == "prismatic":
        return np.concatenate([axis, np.zeros(3)])
    return np.concatenate([np.cross(point, axis) + pitch * axis, axis])


SCREWS = [
    screw(kind, axis, point, pitch)
    for axis, point in zip(AXES, RNG.normal(size=(len(AXES), 3)), strict=True)
    for kind, pitch in (("revolute", 0.0), ("prismatic", 0.0), ("mixed", 0.7))
] + [np.array([0, 0, 0.3, 0, 0, 1.0]), np.array([0, 0, 0, 1.0, 0, 0])]


@pytest.mark.parametrize("q", [0.0, 1e-12, 1e-4, -1.0, PI, 5.0])
def test_screw_motion_matches_expm(q):
    for s in SCREWS:
        close(se3.screw_motion(s, q), expm(se3.hat(s) * q), EXPM_ROUNDING)


def test_screw_motion_mixes_joint_kinds_in_one_batch():
    s = np.array(SCREWS)
    q = RNG.normal(size=(7, len(s)))
    T = se3.screw_motion(s, q)
    assert T.shape == (7, len(s), 4, 4)
    for i, j in np.ndindex(q.shape):
        close(T[i, j], se3.screw_motion(s[j], q[i, j]))


def test_rodrigues_formula_on_4x4_twists_is_false_for_translation_erratum_2():
    """gutenkunst2012 (2.28) holds only where the 4x4 matrix cubed is minus itself: zero pitch."""
    q = 1.2
    axis, point = AXES[5], np.array([0.3, -0.2, 0.5])

    def thesis(s):
        S = se3.hat(s)
        return np.eye(4) + np.sin(q) * S + (1 - np.cos(q)) * S @ S

    for kind, pitch in (("prismatic", 0.0), ("mixed", 0.7)):
        s = screw(kind, axis, point, pitch)
        close(thesis(s)[:3, :3], se3.screw_motion(s, q)[:3, :3])
        slide = axis * (1.0 if kind == "prismatic" else pitch)
        # It slides by sin q instead of q.
        error = se3.position_of(se3.screw_motion(s, q)) - se3.position_of(thesis(s))
        close(error, (q - np.sin(q)) * slide)
        assert np.abs(error).max() > 0.01
    revolute = screw("revolute", axis, point, 0.0)
    close(thesis(revolute), se3.screw_motion(revolute, q))


def test_prismatic_motion_is_exact():
    T = se3.screw_motion([0, 1, 0, 0, 0, 0], 0.3)
    np.testing.assert_array_equal(T, se3.pose(np.eye(3), [0, 0.3, 0]))


def test_complex_step_of_screw_motion_is_the_screw():
    step = 1e-200
    for s in SCREWS:
        dT = np.imag(se3.screw_motion(s, 0.8 + 1j * step)) / step
        close(se3.vee(se3.inverse(se3.screw_motion(s, 0.8)) @ dT), s)


@pytest.mark.parametrize("angle", [1e-12, 1e-8, 1e-4, 1.0, PI - 1e-4, PI - 1e-8])
def test_log_is_analytic(angle):
    """A complex step passes through exp and log unharmed, also where |w| is tiny."""
    step = 1e-200
    dV = np.array([0.5, 1.0, -0.2, 0.3, -1.0, 0.5])
    for axis in AXES:
        V = np.concatenate([[0.4, -0.3, 0.9], angle * axis])
        close(np.imag(se3.log(se3.exp(V + 1j * step * dV))) / step, dV)


def test_batch_equals_loop():  # up to the last bit: NumPy's vector sin differs from its scalar one
    V = TWISTS.reshape(2, 5, 6)
    T = se3.exp(V)
    for i in np.ndindex(2, 5):
        close(T[i], se3.exp(V[i]))
        close(se3.log(T)[i], se3.log(T[i]))
        close(se3.Ad(T)[i], se3.Ad(T[i]))
        close(se3.ad(V)[i], se3.ad(V[i]))
        close(se3.inverse(T)[i], se3.inverse(T[i]))


def test_one_pose_moves_many_twists():
    assert se3.transform_twist(POSES[0], TWISTS).shape == (10, 6)
    assert se3.transform_wrench(POSES, TWISTS[0]).shape == (10, 6)
    assert se3.bracket(TWISTS[0], TWISTS).shape == (10, 6)


def test_lists_are_accepted():
    T = se3.pose(np.eye(3).tolist(), (1, 2, 3))
    assert T.dtype == np.float64
    np.testing.assert_array_equal(
        se3.transform_twist(T.tolist(), [0, 0, 0, 0, 0, 1])[:3], [2, -1, 0]
    )
    assert so3.is_rotation(se3.rotation_of(T.tolist()))
    np.testing.assert_array_equal(se3.position_of(se3.inverse(T.tolist())), [-1, -2, -3])
