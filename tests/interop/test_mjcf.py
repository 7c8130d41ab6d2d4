"""MJCF: nothing is altered, everything can be driven, and bad options are explained."""

import dataclasses

import mujoco
import numpy as np
import pytest

from modurob import ModuleType, Organism, StateError, catalog, examples
from modurob.interop import write_mjcf
from modurob.spatial import se3, so3
from oracles import complains

RELATIVE = 1e-9  # accelerations: M up to condition 1e4
TRIANGLE = 1e-6  # what datasheets forgive and MuJoCo does not


@pytest.fixture
def load(tmp_path):
    """An organism as MuJoCo sees it."""

    def load(organism, **options):
        write_mjcf(organism, tmp_path / "it.xml", **options)
        return mujoco.MjModel.from_xml_path(str(tmp_path / "it.xml"))

    return load


def test_motors_drive_the_joints_in_our_order(load):
    """One step of MuJoCo under ctrl = tau accelerates as our forward dynamics says."""
    organism, rng = examples.crab().with_parameters(viscous=0.3), np.random.default_rng(2)
    model = organism.model("physical", gravity=(1.0, 2.0, -3.0))
    peer = load(organism, hinges="physical", gravity=(1.0, 2.0, -3.0))
    data = mujoco.MjData(peer)
    q, v, tau = 0.3 * rng.standard_normal((3, model.nv))
    for value, rate, force, name in zip(q, v, tau, model.joint_names, strict=True):
        data.joint(name).qpos, data.joint(name).qvel = value, rate
        data.actuator(name).ctrl = force
    np.testing.assert_array_equal(data.ctrl, tau)
    mujoco.mj_forward(peer, data)
    theirs = np.array([data.joint(name).qacc[0] for name in model.joint_names])
    ours = model.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(theirs, ours, rtol=0, atol=RELATIVE * np.abs(ours).max())


def test_limits_are_ranges(load):
    organism = examples.arm("babac").with_parameters("m4", limits=(None, 0.25))
    model, peer = organism.model("physical"), load(organism, hinges="physical")
    for name, lower, upper in zip(model.joint_names, model.lower, model.upper, strict=True):
        joint = peer.joint(name)
        assert bool(joint.limited[0]) == bool(np.isfinite(lower) or np.isfinite(upper))
        if joint.limited[0]:
            np.testing.assert_array_equal(joint.range, [-1e9, 0.25])
    assert sum(peer.jnt_limited) == 1


def test_a_free_base_starts_where_the_organism_stands(load):
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]], [1, 2, 3]
    peer = load(examples.crab().with_base_pose(pose), base="free")
    root = np.sqrt(0.5)
    np.testing.assert_allclose(peer.qpos0[:7], [1, 2, 3, root, 0, 0, root], atol=1e-15)


def test_shapes_are_for_looking_at_unless_contact_is_wanted(load):
    organism = examples.crab()
    peer = load(organism, hinges="physical")
    assert peer.ngeom == sum(len(organism.kind(name).shapes) for name in organism)
    assert not peer.geom_contype.any()
    assert not peer.geom_conaffinity.any()
    assert load(organism, hinges="physical", contact=True).geom_contype.all()
    bare = load(dataclasses.replace(organism.model("physical"), organism=None, options=None))
    assert bare.ngeom == 0
    np.testing.assert_array_equal(bare.body_inertia, peer.body_inertia)


def test_the_solids_are_those_of_the_datasheet(load):
    peer = load(Organism.start("giusti_c"), hinges="physical")
    data = mujoco.MjData(peer)
    mujoco.mj_forward(peer, data)
    np.testing.assert_allclose(
        peer.geom_size[:, :2], [[0.036, 0.048], [0.02, 0.07], [0.036, 0.005]]
    )
    np.testing.assert_allclose(data.geom_xpos[:, 2], [0.05, 0.08, 0.144], atol=1e-15)
    np.testing.assert_allclose(peer.geom_rgba[0], [0x5D / 255, 0x6B / 255, 0x7A / 255, 1])


def test_integrator_and_timestep_are_set(load):
    peer = load(examples.crab(), integrator="implicit", timestep=0.01)
    assert peer.opt.timestep == 0.01
    assert peer.opt.integrator == mujoco.mjtIntegrator.mjINT_IMPLICIT
    assert load(examples.crab()).opt.integrator == mujoco.mjtIntegrator.mjINT_RK4


def test_a_moment_beyond_the_triangle_is_written_as_the_sum_of_the_others(load):
    fields = examples.crab().kind("m0").model_dump()
    plate = np.diag([1.0, 2.0, 3.0 * (1 + TRIANGLE / 2)])
    fields["bodies"][0]["inertia"] = plate.tolist()
    organism = Organism.start(ModuleType(**fields))
    peer = load(organism, base="free")
    np.testing.assert_allclose(np.sort(peer.body("m0").inertia), [1, 2, 3], rtol=1e-15)


@pytest.mark.parametrize(
    ("options", "pieces"),
    [
        ({"integrator": "rk4"}, ["integrator must be one of Euler, RK4", "'rk4'"]),
        ({"integrator": None}, ["integrator must be one of", "None"]),
        ({"timestep": 0}, ["timestep", "positive", "0"]),
        ({"timestep": float("nan")}, ["timestep", "positive", "nan"]),
        ({"timestep": "1"}, ["timestep", "positive", "'1'"]),
        ({"gravity": (0, 0)}, ["gravity must be three finite numbers"]),
        ({"base": "floating"}, ["base must be 'fixed', 'free'", "'floating'"]),
        ({"name": "\x07"}, ["printable"]),
    ],
)
def test_options_that_do_not_fit_are_explained(tmp_path, options, pieces):
    with complains(StateError, *pieces):
        write_mjcf(examples.crab(), tmp_path / "it.xml", **options)
    assert not (tmp_path / "it.xml").exists()


def test_a_model_has_its_own_gravity(tmp_path, load):
    model = examples.crab().model(gravity=(0, 0, -1.62))
    np.testing.assert_array_equal(load(model).opt.gravity, [0, 0, -1.62])
    with complains(StateError, "gravity=", "Model", "leave gravity out"):
        write_mjcf(model, tmp_path / "it.xml", gravity=(0, 0, -9.81))


@pytest.mark.parametrize("hinges", ["dyad", "physical"])
def test_sensors_and_solids_are_where_the_datasheet_has_them(load, hinges):
    """A body that is welded to a module askew, in modules that stand askew themselves."""
    fields = catalog["backbone"].model_dump()
    top = {"name": "top", "mass": 0.1, "inertia": [1e-4] * 3, "imu": True}
    weld = {"name": "weld", "kind": "fixed", "parent": "A", "child": "top",
            "position": (0.01, 0.02, 0.06), "rpy": (0.3, 0.2, -0.4)}  # fmt: skip
    horn = {"body": "top", "form": "box", "size": (0.01, 0.02, 0.03), "position": (0, 0, 0.04),
            "rpy": (0, 0.5, 0)}  # fmt: skip
    fields |= {"bodies": (*fields["bodies"], top), "joints": (*fields["joints"], weld)}
    kind = ModuleType(**fields | {"shapes": [horn]})
    organism = Organism.start(kind, pose=se3.pose(so3.from_rpy(0.1, -0.7, 0.5), np.ones(3)))
    organism = organism.dock("m0", 3, "m1", 5)
    peer = load(organism, hinges=hinges, sensors=True)
    data = mujoco.MjData(peer)
    mujoco.mj_forward(peer, data)
    for module in organism.modules:
        T = organism.rest_pose(module) @ kind.joint("weld").pose
        site, (solid,) = data.site(f"imu:{module}.top"), kind.shapes
        np.testing.assert_allclose(site.xpos, T[:3, 3], atol=1e-15)
        np.testing.assert_allclose(site.xmat.reshape(3, 3), T[:3, :3], atol=1e-15)
        (geom,) = (data.geom(k) for k in range(peer.ngeom) if module in data.geom(k).name)
        np.testing.assert_allclose(geom.xpos, (T @ solid.pose)[:3, 3], atol=1e-15)
        np.testing.assert_allclose(geom.xmat.reshape(3, 3), (T @ solid.pose)[:3, :3], atol=1e-15)


def test_the_margin_of_a_long_chain_ends(tmp_path):
    """Each level is indented by one more, up to 24: that of a thousand would be mostly margin."""
    write_mjcf(examples.snake(60), tmp_path / "it.xml", hinges="physical")
    lines = (tmp_path / "it.xml").read_text().splitlines()
    margins = [len(line) - len(line.lstrip()) for line in lines]
    assert {*margins} == {*range(25)}
