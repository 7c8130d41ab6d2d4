"""Simulations against solutions that know nothing of modurob."""

import mujoco
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from modurob import examples, simulate
from oracles.rigid_tree import MujocoDynamics, PinocchioDynamics, RigidTree

TOLERANCE = 1e-12  # of our runs
AGREED = 1e-8  # with Lagrange's equations; the pendulum's own sensitivity takes four digits
FINER = 1e-13  # tolerance of the reference solutions
CONSERVED = 1e-9  # [m, N m s] of the robot that nothing holds
ENGINES = 1e-6  # [rad, rad/s] against MuJoCo and Pinocchio over a second
G = 9.81

accurate = pytest.mark.parametrize("integrator", ["RK45", "DOP853", "LSODA"])


def solved(rates, state, duration):
    return solve_ivp(
        rates, (0, duration), state, "DOP853", rtol=FINER, atol=FINER, dense_output=True
    ).sol


# -- Lagrange's equations --------------------------------------------------------------------------


def pendulum_rates(l1, l2, m1, m2):
    """gutenkunst2012 (5.11): absolute angles, point masses."""

    def rates(t, state):
        a, b, u, w = state
        c, s = np.cos(a - b), np.sin(a - b)
        M = [[(m1 + m2) * l1, m2 * l2 * c], [l1 * c, l2]]
        forces = [
            -m2 * l2 * w * w * s - (m1 + m2) * G * np.sin(a),
            l1 * u * u * s - G * np.sin(b),
        ]
        return [u, w, *np.linalg.solve(M, forces)]

    return rates


@accurate
@pytest.mark.parametrize("lengths", [(10.0, 10.0), (1.0, 1.0), (10.0, 1.0)], ids=str)
def test_the_double_pendulum_follows_lagrange_for_ten_seconds(lengths, integrator):
    l1, l2 = lengths
    exact = solved(pendulum_rates(l1, l2, 1.0, 1.0), [np.pi / 2, np.pi / 2, 0, 0], 10)
    model = examples.double_pendulum(l1=l1, l2=l2).model("physical")
    found = simulate(
        model, [np.pi / 2, 0], [0, 0], 10.0, None, integrator, rtol=TOLERANCE, atol=TOLERANCE
    )
    expected = exact(found.t)
    absolute = np.concatenate([np.cumsum(found.q, axis=1), np.cumsum(found.v, axis=1)], axis=1)
    np.testing.assert_allclose(absolute, expected.T, rtol=0, atol=AGREED)


def crane_rates(m1, m2, length):
    """The thesis' crane."""

    def rates(t, state):
        _, phi, u, w = state
        M = [[m1 + m2, m2 * length * np.cos(phi)], [np.cos(phi), length]]
        forces = [m2 * length * w * w * np.sin(phi), -G * np.sin(phi)]
        return [u, w, *np.linalg.solve(M, forces)]

    return rates


@accurate
def test_the_crane_follows_its_equations_for_twenty_seconds(integrator):
    exact = solved(crane_rates(1.0, 1.0, 5.0), [0, np.pi / 4, 0, 0], 20)
    model = examples.crane(m1=1.0, m2=1.0, l=5.0).model("physical")
    found = simulate(
        model, [0, np.pi / 4], [0, 0], 20.0, None, integrator, rtol=TOLERANCE, atol=TOLERANCE
    )
    state = np.concatenate([found.q, found.v], axis=1)
    np.testing.assert_allclose(state, exact(found.t).T, rtol=0, atol=AGREED)


# -- a robot that nothing holds --------------------------------------------------------------------


class RandomTorques:
    """Piecewise constant torques on the joints; nothing pushes the base."""

    def __init__(self, model, base, size, seed=0, sample_time=0.1):
        rng = np.random.default_rng(seed)
        self.sample_time, self.table = sample_time, size * rng.standard_normal((1000, model.nv))
        self.table[:, :base] = 0.0

    def at(self, t):
        return self.table[int(np.floor(t / self.sample_time + 1e-6))]

    def command(self, t, q, v, reference):
        return self.at(t)


@pytest.mark.parametrize("base", [("px", "py", "rz"), "free"], ids=["planar", "free"])
def test_an_unbounded_robot_keeps_its_center_of_mass_and_its_spin(base):
    upright = np.eye(4)
    upright[:3, :3] = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]  # hinges along z: it moves in the plane
    organism = examples.snake(4).with_base_pose(upright)
    model = organism.model("physical", base=base, gravity=(0, 0, 0))
    torques = RandomTorques(model, 6 if base == "free" else 3, 0.003)
    v = np.zeros(model.nv)
    v[: 3 if base != "free" else 6] = 0.1
    found = simulate(
        model, None, v, 10.0, torques, "DOP853", rtol=TOLERANCE, atol=TOLERANCE, record=0.1
    )
    moved = np.abs(found.q[-1] - found.q[0])[-3:]
    assert moved.max() > 0.3  # the torques do move the joints
    center = model.center_of_mass(found.q)
    velocity = found.momentum[0, :3] / model.mass.sum()
    drift = center - (center[0] + found.t[:, None] * velocity)
    assert np.abs(drift).max() < CONSERVED
    spin = found.momentum[:, 3:] if base == "free" else found.momentum[:, 5:]
    assert np.abs(spin - spin[0]).max() < CONSERVED
    linear = found.momentum[:, :3] if base == "free" else found.momentum[:, :2]
    assert np.abs(linear - linear[0]).max() < CONSERVED


# -- two engines -----------------------------------------------------------------------------------


def crab_case(hinges, driven):
    organism = examples.crab()
    model = organism.model(hinges)
    tree = RigidTree(organism, hinges, "fixed", list(model.locked))
    torques = RandomTorques(model, 0, 0.05 if driven else 0.0, seed=2, sample_time=0.02)
    q = 0.3 * np.random.default_rng(5).standard_normal(model.nq)
    return model, tree, torques, q


def by_mujoco(engine, torques, q, steps):
    """The crab after a second, by MuJoCo's own RK4."""
    engine.mj.opt.timestep = 1.0 / steps
    engine.mj.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    mujoco.mj_resetData(engine.mj, engine.data)
    engine.data.qpos[engine.rows_q] = q
    for k in range(steps):
        engine.data.qfrc_applied[engine.columns] = torques.at(k / steps)
        mujoco.mj_step(engine.mj, engine.data)
    return np.concatenate([engine.data.qpos[engine.rows_q], engine.data.qvel[engine.columns]])


def by_pinocchio(engine, torques, q):
    """The crab after a second: SciPy integrates Pinocchio's accelerations."""
    n = len(q)
    state = np.concatenate([q, np.zeros(n)])
    for k in range(round(1 / torques.sample_time)):
        begin, tau = k * torques.sample_time, torques.table[k]

        def rates(t, y, tau=tau):
            return np.concatenate([y[n:], engine.forward_dynamics(y[:n], y[n:], tau, {})])

        span = (begin, begin + torques.sample_time)
        state = solve_ivp(rates, span, state, "DOP853", rtol=1e-11, atol=1e-11).y[:, -1]
    return state


@pytest.mark.parametrize("driven", [False, True], ids=["gravity alone", "random torques"])
@pytest.mark.parametrize("hinges", ["dyad", "physical"])
def test_the_crab_moves_as_in_mujoco_and_as_pinocchio_says(hinges, driven):
    model, tree, torques, q = crab_case(hinges, driven)
    found = simulate(model, q, None, 1.0, torques, "DOP853", rtol=1e-11, atol=1e-11)
    ours = np.concatenate([found.q[-1], found.v[-1]])
    engine = MujocoDynamics(tree, model)
    coarse, fine = (by_mujoco(engine, torques, q, steps) for steps in (1000, 2000))
    extrapolated = fine + (fine - coarse) / 15  # of order four
    np.testing.assert_allclose(ours, extrapolated, rtol=0, atol=ENGINES)
    theirs = by_pinocchio(PinocchioDynamics(tree, model), torques, q)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=ENGINES)
    assert np.abs(ours[: model.nq] - q).max() > 0.5  # it did move
