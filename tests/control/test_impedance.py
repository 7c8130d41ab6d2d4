"""Impedance: what a body answers to external forces, free and against a wall."""

import numpy as np
import pytest
from scipy.optimize import root

from modurob import StateError, UnknownNameError, examples
from modurob.control import CartesianImpedance, JointImpedance, Reference, gains
from modurob.spatial import so3
from oracles import complains

DEFLECTION = 1e-5  # of the deflection: the null space leaks SINGULAR of the compliance
SAME = 1e-9  # of the largest force
K = np.diag([400.0, 600.0, 800.0, 30.0, 40.0, 50.0])  # [N/m, N m/rad] in world axes
D = np.diag([40.0, 50.0, 60.0, 3.0, 4.0, 5.0])
F = np.array([3.0, -5.0, 4.0, 0.2, 0.3, -0.1])  # [N, N m] in world axes


@pytest.fixture(scope="module")
def arm():
    """Seven revolute joints: one more than a pose has numbers."""
    return examples.arm("bababab").with_parameters(viscous=0.02).model("physical")


POSE = np.array([0.3, 0.8, -0.4, -1.1, 0.5, 0.9, 0.2])


def in_body(model, q, wrench):
    """A wrench at the origin of the last body, from world axes to its own."""
    R = model.forward_kinematics(q)[-1, :3, :3]
    return {model.body_names[-1]: np.concatenate([R.T @ wrench[:3], R.T @ wrench[3:]])}


def deflection(model, at, q):
    """(6,) of the last body from its pose at one configuration to that at another one."""
    T, T_d = model.forward_kinematics(q)[-1], model.forward_kinematics(at)[-1]
    R = T[:3, :3]
    return np.concatenate([T[:3, 3] - T_d[:3, 3], -R @ so3.log(R.T @ T_d[:3, :3])])


def at_rest(model, law, at, wrench, known):
    """Where motors, gravity and a constant wrench are in balance."""
    still = np.zeros(model.nv)

    def gap(q):
        push = in_body(model, q, wrench)
        tau = law.command(0.0, q, still, at, push if known else None)
        return tau - model.inverse_dynamics(q, still, still, push)

    found = root(gap, at, tol=1e-12)
    assert np.abs(gap(found.x)).max() < 1e-9
    return found.x


@pytest.mark.parametrize("inertia", [None, [2.0, 3.0, 4.0, 0.05, 0.06, 0.07]])
def test_a_constant_wrench_displaces_the_body_by_the_compliance_times_it(arm, inertia):
    law = CartesianImpedance(arm, stiffness=K, damping=D, inertia=inertia)
    q = at_rest(arm, law, POSE, F, known=inertia is not None)
    expected = np.linalg.solve(K, F)
    found = deflection(arm, POSE, q)
    np.testing.assert_allclose(found, expected, rtol=0, atol=DEFLECTION * np.abs(expected).max())
    assert np.abs(q - POSE).max() > 0.01


@pytest.mark.parametrize("inertia", [None, 0.1])
def test_a_constant_wrench_displaces_the_joints_by_their_compliance(arm, inertia):
    K_q = np.linspace(20.0, 60.0, 7)
    law = JointImpedance(arm, stiffness=K_q, damping=5.0, inertia=inertia)
    q = at_rest(arm, law, POSE, F, known=inertia is not None)
    body, wrench = next(iter(in_body(arm, q, F).items()))
    expected = arm.jacobian(q, body).T @ wrench / K_q
    np.testing.assert_allclose(q - POSE, expected, rtol=0, atol=SAME * np.abs(expected).max())


def test_the_body_answers_a_measured_wrench_with_the_inertia_asked_for(arm):
    """M_d x'' = K e + D e' + F, of the body's own acceleration by forward dynamics."""
    M_d = np.diag([2.0, 3.0, 4.0, 0.05, 0.06, 0.07])
    law = CartesianImpedance(arm, stiffness=K, damping=D, inertia=M_d)
    rng = np.random.default_rng(0)
    q, v = POSE + 0.1 * rng.standard_normal(7), 0.3 * rng.standard_normal(7)
    push = in_body(arm, q, F)
    a = arm.forward_dynamics(q, v, law.command(0.0, q, v, POSE, push), push)
    J = arm.jacobian(q, arm.nbodies - 1, "aligned")
    x_dd = J @ a + arm.jacobian_rate(q, v, arm.nbodies - 1, "aligned") @ v
    e = -deflection(arm, POSE, q)
    expected = K @ e - D @ J @ v + F
    np.testing.assert_allclose(
        M_d @ x_dd, expected, rtol=0, atol=DEFLECTION * np.abs(expected).max()
    )


@pytest.mark.parametrize(("rate", "acceleration"), [(0.3, 0.0), (0.0, 0.5), (0.3, 0.5)])
def test_the_body_follows_a_moving_reference_with_the_inertia_asked_for(arm, rate, acceleration):
    """M_d (x'' - x_d'') = K e + D e', x_d the pose of the body at the reference."""
    M_d = np.diag([2.0, 3.0, 4.0, 0.05, 0.06, 0.07])
    law = CartesianImpedance(arm, stiffness=K, damping=D, inertia=M_d)
    rng, body = np.random.default_rng(1), arm.nbodies - 1
    q, v = POSE + 0.1 * rng.standard_normal(7), 0.3 * rng.standard_normal(7)
    v_d, a_d = rate * rng.standard_normal(7), acceleration * rng.standard_normal(7)
    a = arm.forward_dynamics(q, v, law.command(0.0, q, v, Reference(POSE, v_d, a_d)))

    def twist(at, speed):
        return arm.jacobian(at, body, "aligned") @ speed

    def change(at, speed, faster):
        return twist(at, faster) + arm.jacobian_rate(at, speed, body, "aligned") @ speed

    e, e_rate = -deflection(arm, POSE, q), twist(POSE, v_d) - twist(q, v)
    expected = M_d @ change(POSE, v_d, a_d) + K @ e + D @ e_rate
    np.testing.assert_allclose(
        M_d @ change(q, v, a), expected, rtol=0, atol=DEFLECTION * np.abs(expected).max()
    )


def test_motions_that_the_body_does_not_feel_decay_with_the_settling_time(arm):
    law = CartesianImpedance(arm, stiffness=K, damping=D, settling_time=0.5)
    k0, k1 = gains.from_settling_time(0.5)
    J = arm.jacobian(POSE, arm.nbodies - 1, "aligned")
    free, small, rest = np.linalg.svd(J)[2][-1], 1e-4, np.zeros(7)
    for q, v, expected in ((POSE + small * free, rest, -k0), (POSE, small * free, -k1)):
        a = arm.forward_dynamics(q, v, law.command(0.0, q, v, POSE))
        assert a @ free == pytest.approx(expected * small, rel=0.01)


def test_the_null_space_of_default_gains_has_what_a_hundredth_of_the_compliance_leaves():
    """One hinge: the body's inertia is M / |J|^2 less a part of 1 / 601, 0.01 of a sixth.

    Its own force is that of the chord to the goal and of the angle, the null space's that of the
    angle alone.
    """
    model = examples.snake(2).model("physical", gravity=(0, 0, 0))
    law, goal, q, rest = CartesianImpedance(model, settling_time=2.0), 1.4, np.array([-0.6]), [0.0]
    J = model.jacobian(q, model.nbodies - 1, "aligned")[:, 0]
    arm, angle = J[:3] @ J[:3], goal - q[0]  # square of the radius
    mass, k0 = model.mass_matrix(q).item(), gains.from_settling_time(2.0)[0]
    own = (arm * np.sin(angle) + angle) / (arm + 1)
    expected = mass * k0 * (600 * own + angle) / 601
    found = law.command(0.0, q, np.array(rest), [goal]).item()
    assert found == pytest.approx(expected, rel=1e-9)
    assert abs(own / angle - 1) > 1e-3


def test_stiffness_and_damping_follow_from_an_inertia_and_a_settling_time(arm):
    law = JointImpedance(arm, inertia=0.2, settling_time=0.5)
    k0, k1 = gains.from_settling_time(0.5)
    np.testing.assert_allclose(law.stiffness, 0.2 * k0 * np.eye(7))
    np.testing.assert_allclose(law.damping, 0.2 * k1 * np.eye(7))


def test_joints_answer_a_measured_wrench_with_the_inertia_asked_for(arm):
    law = JointImpedance(arm, stiffness=30.0, damping=4.0, inertia=0.2)
    rng = np.random.default_rng(0)
    q, v = POSE + 0.1 * rng.standard_normal(7), 0.3 * rng.standard_normal(7)
    aim = Reference(POSE, *(0.2 * rng.standard_normal((2, 7))))
    push = in_body(arm, q, F)
    a = arm.forward_dynamics(q, v, law.command(0.0, q, v, aim, push), push)
    f = arm.jacobian(q, arm.nbodies - 1).T @ next(iter(push.values()))
    expected = 0.2 * aim.a + 30 * (aim.q - q) + 4 * (aim.v - v) + f
    np.testing.assert_allclose(0.2 * a, expected, rtol=0, atol=SAME * np.abs(expected).max())


def test_a_driven_joint_answers_as_asked_while_one_without_a_motor_swings():
    model = examples.crane().with_parameters(viscous=0.5).model("physical")
    law = JointImpedance(model, 30.0, 4.0, 0.2, passive=["m1.hinge"])
    for seed in range(3):
        q, v, *goal = 0.4 * np.random.default_rng(seed).standard_normal((5, 2))
        aim = Reference(*goal)
        tau = law.command(0.0, q, v, aim)
        a = model.forward_dynamics(q, v, tau)
        e, rate = aim.q - q, aim.v - v
        assert a[0] == pytest.approx(aim.a[0] + (30 * e[0] + 4 * rate[0]) / 0.2)
        assert tau[1] == 0


def test_without_an_inertia_energy_falls_by_what_the_damper_takes(arm):
    """d/dt (e'M e'/2 + e K e/2) = -e' D e' along a moving reference, by forward dynamics."""
    law = JointImpedance(arm, stiffness=30.0, damping=4.0)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        q, v = arm.random_configuration(rng), rng.standard_normal(7)
        aim = Reference(*rng.standard_normal((3, 7)))
        a = arm.forward_dynamics(q, v, law.command(0.0, q, v, aim))
        e, rate = aim.q - q, aim.v - v
        M, C = arm.mass_matrix(q), arm.coriolis_matrix(q, v)
        power = rate @ M @ (aim.a - a) + rate @ C @ rate + 30 * rate @ e
        size = np.abs(rate) @ np.abs(M) @ np.abs(a) + 4 * rate @ rate
        assert power == pytest.approx(-4 * rate @ rate, abs=SAME * size)


def test_the_null_space_does_not_move_the_body(arm):
    """Another settling time of the posture: other torques, the same acceleration of the body."""
    rng = np.random.default_rng(0)
    q, v = POSE + 0.1 * rng.standard_normal(7), 0.3 * rng.standard_normal(7)
    found, torques = [], []
    for time in (1.0, 0.3):
        law = CartesianImpedance(arm, stiffness=K, damping=D, settling_time=time)
        torques.append(law.command(0.0, q, v, POSE))
        a = arm.forward_dynamics(q, v, torques[-1])
        found.append(arm.jacobian(q, arm.nbodies - 1, "aligned") @ a)
    np.testing.assert_allclose(found[1], found[0], rtol=0, atol=DEFLECTION * np.abs(found[0]).max())
    assert np.abs(torques[1] - torques[0]).max() > 0.01  # [N m]


def test_pushing_against_a_stiff_wall_is_stable_and_presses_as_two_springs_do(arm):
    """Sampled at a kilohertz; the set point lies 2 cm inside the wall."""
    stiffness, depth, dt, still = 1e5, 0.02, 1e-3, np.zeros(7)
    soft = np.array([400.0, 600, 800, 2, 2, 2])  # the last joint moves 0.65 g m^2 only
    law = CartesianImpedance(arm, None, soft, [40.0, 50, 60, 0.2, 0.2, 0.05], sample_time=dt)
    surface = arm.forward_kinematics(POSE)[-1, 2, 3] + depth
    q, v, forces = POSE + np.array([0, -0.1, 0, 0, 0, 0, 0]), still, []
    for k in range(1000):
        tau = law.command(k * dt, q, v, POSE)
        for _ in range(2):
            force = stiffness * max(0.0, surface - arm.forward_kinematics(q)[-1, 2, 3])
            push = in_body(arm, q, np.array([0, 0, force, 0, 0, 0]))
            v = v + dt / 2 * arm.forward_dynamics(q, v, tau, push)
            q = q + dt / 2 * v
        forces.append(force)
    expected = depth / (1 / soft[2] + 1 / stiffness)
    assert forces[-1] == pytest.approx(expected, rel=0.02)
    assert np.ptp(forces[-50:]) < 0.02 * expected  # no chatter
    assert max(forces) > 0


def test_a_rebuilt_law_keeps_what_was_asked_for():
    small, large = (examples.snake(n).model("physical") for n in (3, 5))
    joints = JointImpedance(small, stiffness=[3.0, 5.0], damping=1.0, inertia=0.1).rebuilt(large)
    assert np.diagonal(joints.stiffness).tolist() == [3.0, 5.0, 4.0, 4.0]
    assert np.diagonal(joints.inertia).tolist() == [0.1] * 4
    body = small.body_names[-2]
    one = CartesianImpedance(small, body=body, stiffness=K, damping=D).rebuilt(large)
    assert one.body == body
    np.testing.assert_array_equal(one.stiffness, K)
    assert CartesianImpedance(small).rebuilt(large).body == large.body_names[-1]


def test_all_motions_are_left_to_the_null_space_of_a_body_that_no_joint_moves(arm):
    law = CartesianImpedance(arm, arm.body_names[0])
    assert not arm.jacobian(POSE, 0).any()
    (k0, k1), v, rest = gains.from_settling_time(1.0), 0.1 * POSE[::-1], np.zeros(7)
    tau = law.command(0.0, POSE, v, rest)
    expected = arm.inverse_dynamics(POSE, rest, rest) + 0.02 * v  # and friction
    expected += arm.mass_matrix(POSE) @ (-k0 * POSE - k1 * v)
    np.testing.assert_allclose(tau, expected, rtol=0, atol=SAME * np.abs(expected).max())


def test_wrong_impedances_are_named(arm):
    for law, size in ((JointImpedance, 7), (CartesianImpedance, 6)):
        with complains(StateError, "stiffness and damping, or settling_time"):
            law(arm, stiffness=3.0)
        with complains(StateError, f"({size}, {size}) matrix", "shape (3,)"):
            law(arm, stiffness=[1.0, 2.0, 3.0], damping=1.0)
        with complains(StateError, "stiffness must be symmetric and positive definite", "0"):
            law(arm, stiffness=0.0, damping=1.0)
        with complains(StateError, "inertia must be symmetric and positive definite", "-1"):
            law(arm, inertia=-1.0)
        with complains(StateError, "damping must be symmetric and positive definite"):
            law(arm, stiffness=1.0, damping=np.eye(size) + np.eye(size, k=1))
    with complains(StateError, "stiffness and damping, or settling_time"):
        JointImpedance(arm, stiffness=1.0, damping=1.0, settling_time=1.0)
    with complains(UnknownNameError, "no body 'hand'"):
        CartesianImpedance(arm, body="hand")
