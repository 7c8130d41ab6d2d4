"""Rotor inertias and elastic joints, against two masses on a spring, MuJoCo and energy."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import modurob as mr
from modurob.equations.quantities import QUANTITIES
from modurob.interop import LossWarning, write_mjcf, write_urdf
from modurob.manipulator import ne_mod
from modurob.model.reference import reference
from modurob.verification import verify
from oracles import complains
from oracles.differences import columns

ROUNDING = 1e-11  # of the largest entry: M of an elastic chain has a condition of 1e4
DIFFERENCES = 1e-6  # of the largest entry: central differences
DRIFT = 1e-8  # of the largest energy, at a relative tolerance of 1e-10 over ten periods
ROTOR = {"rotor_inertia": 2e-6, "gear_ratio": 60.0}
SPRING = {**ROTOR, "stiffness": 8.0}
J, N, K = 2e-6, 60.0, 8.0


def elastic(damping: float = 0.0, modules: int = 2, **drive: float) -> mr.Organism:
    """A chain of SuperBots with elastic joints, whose springs differ between the modules."""
    organism = mr.Organism.start("superbot")
    for k in range(1, modules):
        organism = organism.dock(f"m{k - 1}", 4, f"m{k}", 2, turn=90)
    for k, name in enumerate(organism.modules):
        own = {**SPRING, "stiffness": K * (1 + k), "damping": damping, **drive}
        organism = organism.with_parameters(name, **own)
    return organism


def pendulum(**drive: float) -> mr.Organism:
    """A Backbone on the hinge of another one."""
    organism = mr.Organism.start("backbone").dock("m0", 3, "m1", 4)
    return organism.with_parameters("m0", **drive) if drive else organism


def assert_close(ours, theirs, tolerance=ROUNDING):
    scale = max(np.abs(theirs).max(), 1.0)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * scale)


def state(model: mr.Model, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    q = model.random_configuration(rng)
    q[model.joint_slice_q] = rng.uniform(-0.5, 0.5, len(model.joint_names))
    return [q, *rng.standard_normal((2, model.nv))]


def test_an_elastic_joint_oscillates_as_two_masses_on_a_spring():
    """omega^2 = k (1 / J + 1 / I): the rotor of inertia J = n^2 J_m against the link's I."""
    model = pendulum(**SPRING).model("physical", gravity=(0, 0, 0))
    assert model.joint_names == ("m0.hinge", "m0.hinge.spring")
    rigid = pendulum().model("physical", gravity=(0, 0, 0))
    inertia, armature = float(rigid.mass_matrix([0.0])[0, 0]), N**2 * J
    omega = np.sqrt(K * (1 / armature + 1 / inertia))
    # motor and link in opposite phases about their common center
    share = inertia / (inertia + armature)
    q0, periods = np.array([-0.01 * share, 0.01]), 10
    end = periods * 2 * np.pi / omega
    run = mr.simulate(model, q0, [0, 0], end, integrator="DOP853", rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(run.q[-1], q0, rtol=0, atol=1e-8)
    np.testing.assert_allclose(run.q[:, 1], 0.01 * np.cos(omega * run.t), rtol=0, atol=1e-8)
    energy = model.energy(run.q, run.v)
    assert energy[0] == pytest.approx(K * 0.01**2 / 2, rel=1e-12)
    np.testing.assert_allclose(energy, energy[0], rtol=DRIFT)


def test_a_rotor_slows_a_pendulum_down_as_its_reflected_inertia_says():
    """I + n^2 J in place of I."""
    rigid, driven = (pendulum(**x).model("physical") for x in ({}, ROTOR))
    at, rest, tau = np.array([0.4]), np.zeros(1), np.array([0.3])
    inertia = rigid.mass_matrix(at)[0, 0] + N**2 * J
    assert_close(driven.mass_matrix(at), np.array([[inertia]]))
    assert_close(driven.forward_dynamics(at, rest, tau), (tau - rigid.gravity_torque(at)) / inertia)


@pytest.mark.parametrize("base", ["fixed", "free", ("px", "rz")])
def test_elastic_joints_match_mujoco(base, tmp_path):
    organism = elastic(damping=0.05)
    model = organism.model(base=base)
    write_mjcf(organism, tmp_path / "robot.xml", base=base)
    peer = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    data = mujoco.MjData(peer)
    q, v, tau = state(model)
    v[: model.joint_slice_v.start] = 0.0  # MuJoCo's base has other axes
    tau[: model.joint_slice_v.start] = 0.0
    joints = [peer.joint(name) for name in model.joint_names]
    if model.free_base:
        data.qpos[:3], data.qpos[3:7] = q[:3], q[[6, 3, 4, 5]]
    data.qpos[[int(joint.qposadr[0]) for joint in joints]] = q[model.joint_slice_q]
    places = [int(joint.dofadr[0]) for joint in joints]
    data.qvel[places] = v[model.joint_slice_v]
    data.qfrc_applied[places] = tau[model.joint_slice_v]
    peer.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
    mujoco.mj_forward(peer, data)
    # the rotors' bodies weigh 2e-15 kg there
    found = model.forward_dynamics(q, v, tau)[model.joint_slice_v]
    assert_close(found, data.qacc[places], tolerance=1e-9)


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_every_tier_has_rotors_and_springs(base):
    model = elastic(damping=0.1, modules=1).model(base=base)
    q, v, x = state(model)
    fused = model.compile()
    for name in ("inverse_dynamics", "forward_dynamics", "mass_matrix", "energy"):
        count = len(QUANTITIES[name].inputs)
        wanted = reference(model, name, *(q, v, x)[:count])
        for each in (model, fused):
            assert_close(each.dynamics.quantity(name, *(q, v, x)[:count]), wanted, 1e-9)
    M, bias = model.mass_matrix(q), model.inverse_dynamics(q, v, np.zeros(model.nv))
    assert_close(model.inverse_dynamics(q, v, x), M @ x + bias)
    assert_close(model.closed_form(q, v).M, M)


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_derivatives_of_elastic_joints_are_those_of_differences(base):
    model = elastic(damping=0.1).model(base=base)
    q, v, a = state(model)
    exact = model.inverse_dynamics_derivatives(q, v, a)
    for found, function in (
        (exact.dq, lambda d: model.inverse_dynamics(model.integrate(q, d), v, a)),
        (exact.dv, lambda d: model.inverse_dynamics(q, v + d, a)),
        (exact.da, lambda d: model.inverse_dynamics(q, v, a + d)),
    ):
        assert_close(found, columns(function, model.nv), DIFFERENCES)
    tau = model.inverse_dynamics(q, v, a)
    forward = model.forward_dynamics_derivatives(q, v, tau)
    assert_close(forward.dq, -np.linalg.solve(exact.da, exact.dq), 1e-9)


def test_equations_have_the_reflected_inertia_and_the_spring():
    organism = pendulum(**SPRING, damping=0.02)
    equations = organism.equations("physical")
    assert {"B1", "k2", "d2"} <= set(equations.symbols)
    values = {str(symbol): value for symbol, value in equations.values.items()}
    assert (values["B1"], values["k2"]) == (pytest.approx(N**2 * J), K)
    model = organism.model("physical")
    q, v, a = state(model)
    for ours, numbers in zip(equations.evaluate(q, v), model.closed_form(q, v), strict=True):
        assert_close(ours, numbers)
    motion = {f"{letter}{k + 1}": x for letter, given in (("q", q), ("dq", v), ("ddq", a))
              for k, x in enumerate(given.tolist())}  # fmt: skip
    tau = equations.tau.subs(equations.values).subs(motion)
    assert_close(np.array(tau, dtype=float)[:, 0], model.inverse_dynamics(q, v, a))
    small = organism.equations("physical", symbols="none").linearize(q, v, a)
    derivatives = model.inverse_dynamics_derivatives(q, v, a)
    for ours, numbers in zip((small.K, small.D, small.M), derivatives, strict=True):
        assert_close(np.array(ours, dtype=float), numbers)


def test_the_variational_integrator_keeps_the_energy_of_an_elastic_body():
    model = elastic().model(gravity=(0, 0, 0))
    q = model.neutral()
    q[1::2] = 0.05
    run = mr.simulate(model, q, np.zeros(model.nv), 0.3, integrator="Variational", dt=2e-4)
    energy = model.energy(run.q, run.v)
    np.testing.assert_allclose(energy, energy[0], rtol=2e-3)  # second order, no drift


def test_a_free_elastic_body_keeps_its_momentum():
    model = elastic(damping=0.05).model(base="free", gravity=(0, 0, 0))
    q, v, _ = state(model)
    run = mr.simulate(model, q, v, 0.1, rtol=1e-9)
    momentum = model.momentum(run.q, run.v)
    np.testing.assert_allclose(momentum, np.broadcast_to(momentum[0], momentum.shape), atol=1e-7)


def test_rigid_joints_on_request_keep_the_rotor():
    organism = elastic()
    rigid = organism.model(elastic=False)
    assert rigid.joint_names == organism.model().joint_names[::2]
    assert_close(rigid.armature, np.full(6, N**2 * J))
    assert not rigid.stiffness.any()


def test_bodies_and_modules_are_those_of_the_rigid_model():
    organism = elastic()
    model, rigid = organism.model(), organism.model(elastic=False)
    assert model.body_names == rigid.body_names
    assert dict(model.modules) == dict(rigid.modules)
    q = np.linspace(-1, 1, 6)
    both = np.zeros(12)
    both[::2], both[1::2] = 0.3 * q, 0.7 * q  # motor and spring together
    assert_close(model.forward_kinematics(both), rigid.forward_kinematics(q))


def test_a_law_drives_motors_and_leaves_springs_alone():
    model = elastic().model()
    law = mr.control.PdGravity(model)
    assert law.passive == model.joint_names[1::2]
    q, v, _ = state(model)
    assert not law.command(0.0, q, v, None)[1::2].any()


def test_elastic_joints_survive_files_and_events(tmp_path):
    organism = elastic()
    organism.save(tmp_path / "two.json")
    assert mr.load(tmp_path / "two.json") == organism
    model = organism.model(gravity=(0, 0, 0))
    q = model.neutral()
    q[1] = 0.1
    run = mr.simulate(model, q, np.zeros(model.nv), 0.01, events=[mr.Undock(0.005, "m1")])
    run.save(tmp_path / "run.npz")
    again = mr.Trajectory.load(tmp_path / "run.npz")
    for part in (run.parts[-1], again.parts[-1]):
        assert part.model.stiffness.tolist() == [0.0, 2 * K] * 3
        assert_close(part.model.armature, np.array([N**2 * J, 0.0] * 3))


def test_urdf_loses_drives_with_a_warning_and_verification_does_not(tmp_path):
    organism = pendulum(**SPRING)
    with pytest.warns(LossWarning, match=r"no place for the rotor inertia .* m0\.hinge, m0\.hinge"):
        write_urdf(organism, tmp_path / "robot.urdf", hinges="physical")
    report = verify(organism, "physical", states=3)
    assert report.passed, report.checks


def test_a_table_of_datasheets_gives_the_torques_of_rotors():
    arm = mr.examples.arm("bab").with_parameters(**ROTOR)
    model = arm.model("physical")
    q, v, a = state(model)
    assert_close(ne_mod(q, v, a, arm), model.inverse_dynamics(q, v, a))


@pytest.mark.parametrize(
    ("numbers", "pieces"),
    [
        ({"stiffness": 5.0}, ("a stiffness needs a rotor_inertia",)),
        ({"gear_ratio": 5.0}, ("a gear_ratio needs a rotor_inertia",)),
        ({"rotor_inertia": 1e-6, "damping": 0.1}, ("damping is that of a spring",)),
        ({"rotor_inertia": -1e-6}, ("rotor_inertia", "greater than or equal to 0")),
        ({"rotor_inertia": 1e-6, "stiffness": 0.0}, ("stiffness", "greater than 0")),
        ({"rotor_inertia": 1e-6, "gear_ratio": 0.0}, ("gear_ratio", "greater than 0")),
    ],
)
def test_a_drive_that_cannot_be_is_refused(numbers, pieces):
    with complains(mr.DatasheetError, *pieces):
        mr.catalog["backbone"].with_parameters(**numbers)
