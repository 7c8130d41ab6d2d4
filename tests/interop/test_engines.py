"""Exported organisms in the engines they are exported for.

Pinocchio reads the URDF and MuJoCo the MJCF, each with its own parser; masses, gravity and poses
must be ours, for every kind of the catalog. Joints are matched by their names.
"""

import mujoco
import numpy as np
import pinocchio as pin
import pytest

from modurob import Organism, StateError, catalog, examples
from modurob.interop import read_urdf, write_mjcf, write_urdf
from modurob.interop.mjcf import LONGEST_CHAIN
from oracles import GROUPS, complains, random_organism

RELATIVE = 1e-10  # of the largest entry: what the exchange has to keep
ROUNDING = 1e-12  # poses with entries of size 1 to 10
ORGANISMS = 50
MOST_MODULES = 8
VIRTUAL = [name for name in catalog if catalog[name].virtual]
MIXES = [*GROUPS, "superbot_light"]
CASES = [(hinges, base) for hinges in ("dyad", "physical") for base in ("fixed", "free")]

every_case = pytest.mark.parametrize(("hinges", "base"), CASES)


def organism_of(mix: str, seed: int) -> Organism:
    rng = np.random.default_rng(seed)
    modules = int(rng.integers(2, MOST_MODULES + 1))
    if mix in GROUPS:
        organism = random_organism(mix, modules, seed)
    elif mix in VIRTUAL:
        cubes = Organism.random(("backbone", "scout"), modules, rng).rename(prefix="c")
        organism = Organism.start(mix).merge("m0", 7, cubes, "cm0", 7)
    else:
        organism = Organism.random(mix, modules, rng)
    viscous, coulomb = rng.uniform(0.0, 0.5, size=2)
    return organism.with_parameters(viscous=viscous, coulomb=coulomb)


@pytest.fixture(scope="module")
def fifty() -> list[Organism]:
    """Of every kind, alone and mixed, and one on each virtual joint; the same on every run."""
    mixes = [MIXES[k % len(MIXES)] for k in range(ORGANISMS)] + VIRTUAL
    found = [organism_of(mix, k) for k, mix in enumerate(mixes)]
    kinds = {organism.kind(name).name for organism in found for name in organism}
    assert set(catalog) <= kinds
    return found


def models(organisms, hinges, base):
    """Models, and a random state of each; what stands on a virtual joint has no free base."""
    for seed, organism in enumerate(organisms):
        if base == "free" and organism.kind(organism.base).virtual:
            continue
        model = organism.model(hinges, base)
        yield organism, model, model.random_configuration(np.random.default_rng(seed))


def close(ours, theirs, tolerance=RELATIVE):
    assert ours.shape == theirs.shape
    scale = np.abs(theirs).max(initial=0.0)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * max(scale, 1e-300))


class InPinocchio:
    """A URDF file in Pinocchio, in the coordinates of our model."""

    def __init__(self, path, model):
        root = [pin.JointModelFreeFlyer()] if model.free_base else []
        self.peer = pin.buildModelFromUrdf(str(path), *root)
        self.data, self.free = self.peer.createData(), model.free_base
        names = set(self.peer.names) - {"universe", "root_joint"}
        assert names == set(model.joint_names)
        joints = [self.peer.joints[self.peer.getJointId(name)] for name in model.joint_names]
        base = list(range(6 if self.free else 0))
        self.columns = np.array([*base, *(joint.idx_v for joint in joints)], dtype=int)
        self.joints = joints

    def q(self, q):
        theirs, offset = pin.neutral(self.peer), 7 if self.free else 0
        theirs[:offset] = q[:offset]
        for joint, value in zip(self.joints, q[offset:], strict=True):
            # a continuous joint is a point on the circle there
            ends = [value] if joint.nq == 1 else [np.cos(value), np.sin(value)]
            theirs[joint.idx_q : joint.idx_q + joint.nq] = ends
        return theirs

    def mass_matrix(self, q):
        M = pin.crba(self.peer, self.data, self.q(q))
        M = np.triu(M) + np.triu(M, 1).T
        return M[np.ix_(self.columns, self.columns)]

    def gravity(self, q):
        return pin.computeGeneralizedGravity(self.peer, self.data, self.q(q))[self.columns]

    def pose(self, q, body):
        pin.framesForwardKinematics(self.peer, self.data, self.q(q))
        frame = self.peer.getFrameId(body, pin.FrameType.BODY)
        return self.data.oMf[frame].homogeneous


class InMujoco:
    """An MJCF file in MuJoCo, in the coordinates of our model."""

    def __init__(self, path, model):
        self.peer = mujoco.MjModel.from_xml_path(str(path))
        self.data, self.free = mujoco.MjData(self.peer), model.free_base
        assert self.peer.njnt == len(model.joint_names) + self.free
        joints = [self.peer.joint(name) for name in model.joint_names]
        base = list(range(6 if self.free else 0))
        self.columns = np.array([*base, *(int(j.dofadr[0]) for j in joints)], dtype=int)
        self.rows = [int(j.qposadr[0]) for j in joints]

    def set(self, q):
        if self.free:
            self.data.qpos[:3], self.data.qpos[3:7] = q[:3], q[[6, 3, 4, 5]]
        self.data.qpos[self.rows] = q[7:] if self.free else q
        mujoco.mj_forward(self.peer, self.data)
        turn = np.eye(len(self.columns))
        if self.free:  # linear velocity along the world's axes there, along the base's here
            turn[:3, :3] = pin.Quaternion(q[3:7]).toRotationMatrix()
        return turn

    def mass_matrix(self, q):
        turn = self.set(q)
        M, column = np.empty((self.peer.nv, self.peer.nv)), np.empty(self.peer.nv)
        for k, unit in enumerate(np.eye(self.peer.nv)):
            mujoco.mj_mulM(self.peer, self.data, column, unit)
            M[:, k] = column
        return turn.T @ M[np.ix_(self.columns, self.columns)] @ turn

    def gravity(self, q):
        return self.set(q).T @ self.data.qfrc_bias[self.columns]

    def pose(self, q, body):
        self.set(q)
        site, T = self.data.site(body), np.eye(4)
        T[:3, :3], T[:3, 3] = site.xmat.reshape(3, 3), site.xpos
        return T


def assert_same_robot(model, engine, q):
    close(model.mass_matrix(q), engine.mass_matrix(q))
    # gravity that nearly cancels is small next to what it is the sum of
    weight = 9.81 * model.mass.sum()
    np.testing.assert_allclose(model.gravity_torque(q), engine.gravity(q), atol=RELATIVE * weight)
    poses = model.forward_kinematics(q)
    for body in (0, model.nbodies // 2, model.nbodies - 1):
        theirs = engine.pose(q, model.body_names[body])
        np.testing.assert_allclose(poses[body], theirs, rtol=0, atol=ROUNDING)


@every_case
def test_a_written_urdf_is_the_same_robot_in_pinocchio(fifty, tmp_path, hinges, base):
    for organism, model, q in models(fifty, hinges, base):
        write_urdf(organism, tmp_path / "it.urdf", hinges=hinges, base=base)
        engine = InPinocchio(tmp_path / "it.urdf", model)
        assert_same_robot(model, engine, q)
        joints = slice(6 if model.free_base else 0, None)
        np.testing.assert_array_equal(engine.peer.damping[engine.columns][joints], model.viscous)


@every_case
def test_a_written_mjcf_is_the_same_robot_in_mujoco(fifty, tmp_path, hinges, base):
    for organism, model, q in models(fifty, hinges, base):
        write_mjcf(organism, tmp_path / "it.xml", hinges=hinges, base=base)
        engine = InMujoco(tmp_path / "it.xml", model)
        assert_same_robot(model, engine, q)
        total = engine.peer.body_mass.sum()
        assert total == pytest.approx(model.mass.sum(), rel=RELATIVE)
        joints = engine.columns[6 if model.free_base else 0 :]
        np.testing.assert_array_equal(engine.peer.dof_damping[joints], model.viscous)
        np.testing.assert_array_equal(engine.peer.dof_frictionloss[joints], model.coulomb)


@every_case
def test_a_written_urdf_is_read_back_as_the_same_robot(fifty, tmp_path, hinges, base):
    for organism, model, q in models(fifty[::4], hinges, base):
        write_urdf(organism, tmp_path / "it.urdf", hinges=hinges, base=base)
        back = Organism.start(read_urdf(tmp_path / "it.urdf")).model(base=base)
        names = [name.replace(".", "_") for name in model.joint_names]
        order = [names.index(name.partition(".")[2]) for name in back.joint_names]
        base_q, base_v = (7, 6) if model.free_base else (0, 0)
        rows = [*range(base_v), *(base_v + k for k in order)]
        there = np.concatenate([q[:base_q], q[base_q:][order]])
        close(back.mass_matrix(there), model.mass_matrix(q)[np.ix_(rows, rows)])
        for field in ("viscous", "coulomb", "lower", "upper", "prismatic"):
            np.testing.assert_array_equal(getattr(back, field), getattr(model, field)[order])
        poses, again = model.forward_kinematics(q), back.forward_kinematics(there)
        for body, name in enumerate(model.body_names):
            found = again[back.body_index("m0." + name.replace(".", "_"))]
            np.testing.assert_allclose(found, poses[body], rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("virtual", [("px", "py", "rz"), ("rz", "ry", "rx", "pz")], ids="-".join)
@pytest.mark.parametrize("hinges", ["dyad", "physical"])
def test_virtual_joints_between_world_and_base_are_exported(tmp_path, hinges, virtual):
    organism = random_organism("backbone and scout", 6, seed=5)
    model = organism.model(hinges, virtual)
    q = model.random_configuration(np.random.default_rng(1))
    write_urdf(model, tmp_path / "it.urdf")
    assert_same_robot(model, InPinocchio(tmp_path / "it.urdf", model), q)
    write_mjcf(organism, tmp_path / "it.xml", hinges=hinges, base=virtual)
    assert_same_robot(model, InMujoco(tmp_path / "it.xml", model), q)


@pytest.mark.parametrize("engine", [InPinocchio, InMujoco])
def test_point_masses_survive(tmp_path, engine):
    model = examples.double_pendulum(l1=1, l2=0.5, m1=2, m2=3).model(hinges="physical")
    assert not model.inertia.any()
    write = write_urdf if engine is InPinocchio else write_mjcf
    write(model, tmp_path / "it.xml")
    for q in ([0.3, -0.7], [0.0, 0.0], [np.pi / 2, np.pi]):
        assert_same_robot(model, engine(tmp_path / "it.xml", model), np.array(q))


def test_long_chains_are_written_as_far_as_the_engines_read_them(tmp_path):
    snake = examples.snake(LONGEST_CHAIN + 1)
    write_mjcf(snake, tmp_path / "it.xml")
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "it.xml")).nv == LONGEST_CHAIN
    longer = examples.snake(LONGEST_CHAIN + 2)
    with complains(StateError, "longest chain has 491 joints", "up to 490", "another base"):
        write_mjcf(longer, tmp_path / "it.xml")
    write_mjcf(longer.rebase("m200"), tmp_path / "it.xml")
    write_urdf(longer, tmp_path / "it.urdf")
    assert pin.buildModelFromUrdf(str(tmp_path / "it.urdf")).nv == LONGEST_CHAIN + 1
