"""Files for builders: limits of motors, ros2_control, SRDF, servos and sensors of MuJoCo."""

import dataclasses
from types import SimpleNamespace

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from click.testing import CliRunner

import modurob as mr
from modurob.cli import cli
from modurob.interop import read_urdf, srdf, write_mjcf, write_srdf, write_urdf
from modurob.interop.conventions import motors_of, tree_of
from modurob.interop.mjcf import linked_pairs
from modurob.interop.mujoco_model import MujocoModel, _floor
from modurob.interop.xml_files import read_xml
from modurob.modules import record
from oracles import complains

SAMPLES = 60
RELATIVE = 1e-9  # accelerations: M up to condition 1e4
ARM = mr.examples.arm("bab").with_parameters(limits=(-2.0, 1.5), max_effort=40.0, max_velocity=2.5)
CRAB = mr.examples.crab()


def with_imu(kind, body):
    bodies = [{**b.model_dump(), "imu": b.name == body} for b in kind.bodies]
    return mr.ModuleType(**{**kind.model_dump(), "bodies": bodies})


def test_limits_of_motors_reach_pinocchio_and_come_back(tmp_path):
    path = tmp_path / "arm.urdf"
    write_urdf(ARM, path, hinges="physical")
    peer = pin.buildModelFromUrdf(str(path))
    np.testing.assert_array_equal(peer.effortLimit, 40.0)
    np.testing.assert_array_equal(peer.velocityLimit, 2.5)
    moving = [joint for joint in read_urdf(path).joints if joint.kind != "fixed"]
    assert len(moving) == peer.nv
    assert {(j.max_effort, j.max_velocity) for j in moving} == {(40.0, 2.5)}
    write_urdf(CRAB, path)
    assert (pin.buildModelFromUrdf(str(path)).effortLimit == 1e9).all()
    assert {joint.max_effort for joint in read_urdf(path).joints} == {None}


@pytest.mark.parametrize(
    ("interface", "ends"),
    [("position", ["-2.0", "1.5"]), ("velocity", ["-2.5", "2.5"]), ("effort", ["-40.0", "40.0"])],
)
def test_ros2_control_has_interfaces_and_a_transmission_for_each_motor(tmp_path, interface, ends):
    geared = ARM.with_parameters(rotor_inertia=1e-5, gear_ratio=100.0)
    path = tmp_path / "arm.urdf"
    with pytest.warns(mr.interop.LossWarning) as caught:
        write_urdf(geared, path, hinges="physical", ros2_control=interface, hardware="our/Bus")
    assert caught[0].filename == __file__
    names = geared.model("physical").joint_names
    (control,) = read_xml(path).findall("ros2_control")
    assert control.findtext("hardware/plugin") == "our/Bus"
    assert tuple(joint.get("name") for joint in control.findall("joint")) == names
    for joint in control.findall("joint"):
        (command,) = joint.findall("command_interface")
        assert command.get("name") == interface
        assert [param.text for param in command] == ends
        assert len(joint.findall("state_interface")) == 3
    gears = [each.findtext("joint/mechanical_reduction") for each in control.iter("transmission")]
    assert gears == ["100.0"] * len(names)
    with pytest.warns(mr.ModelWarning, match="gear ratios of the transmissions m0.joint:trans"):
        read_urdf(path)


@pytest.mark.parametrize(("effort", "limited"), [(1e9, False), (9.9e8, True)])
def test_efforts_of_1e9_are_no_limit(tmp_path, effort, limited):
    arm = ARM.with_parameters(max_effort=effort, max_velocity=effort)
    write_mjcf(arm, tmp_path / "it.xml", hinges="physical")
    for motor in read_xml(tmp_path / "it.xml").findall("actuator/motor"):
        assert ("forcerange" in motor.attrib) == limited
    for interface in ("effort", "velocity"):
        write_urdf(arm, tmp_path / "it.urdf", hinges="physical", ros2_control=interface)
        for command in read_xml(tmp_path / "it.urdf").iter("command_interface"):
            assert len(command.findall("param")) == 2 * limited
    for joint in read_urdf(tmp_path / "it.urdf").joints:
        known = limited and joint.kind != "fixed"
        assert (joint.max_effort, joint.max_velocity) == ((effort,) * 2 if known else (None,) * 2)


@pytest.mark.parametrize(("end", "kept"), [(1e9, None), (9.9e8, 9.9e8)])
def test_positions_of_1e9_are_no_limit(tmp_path, end, kept):
    slide = mr.examples.arm("bac").with_parameters("m2", limits=(-end, end))
    write_urdf(slide, tmp_path / "it.urdf", hinges="physical", ros2_control="position")
    (joint,) = (j for j in read_urdf(tmp_path / "it.urdf").joints if j.kind == "prismatic")
    assert (joint.lower, joint.upper) == (None if kept is None else -kept, kept)
    params = [
        len(c.findall("param")) for c in read_xml(tmp_path / "it.urdf").iter("command_interface")
    ]
    assert params == [0, 0, 0 if kept is None else 2]


def test_joints_without_a_datasheet_have_motors_without_a_gear(tmp_path):
    """Those of virtual joints, and of a model without an organism."""
    geared = ARM.with_parameters(rotor_inertia=1e-5, gear_ratio=100.0).model("physical", ["px"])
    bare = dataclasses.replace(geared, organism=None, options=None)
    for model, gears in ((geared, [1.0, *[100.0] * (geared.nv - 1)]), (bare, [1.0] * bare.nv)):
        assert [motor.gear_ratio for motor in motors_of(model)] == gears
        assert motors_of(model)[0].effort == motors_of(model)[0].velocity == 1e9


@pytest.mark.parametrize("limits", [(None, 0.3), (-0.3, None)])
def test_a_hinge_with_one_limit_is_not_continuous(tmp_path, limits):
    snake = mr.examples.snake(2).with_parameters("m0", limits=limits)
    write_urdf(snake, tmp_path / "it.urdf", hinges="physical")
    (joint,) = (j for j in read_urdf(tmp_path / "it.urdf").joints if j.kind == "revolute")
    assert (joint.lower, joint.upper) == limits
    (written,) = (j for j in read_xml(tmp_path / "it.urdf").findall("joint")
                  if j.get("type") != "fixed")  # fmt: skip
    assert written.get("type") == "revolute"


def test_a_base_that_is_fixed_and_has_no_mass_needs_none_in_mujoco(tmp_path):
    pendulum = mr.examples.double_pendulum().with_parameters("m0", mass=0.0)
    for base, there in (("fixed", 0), ("free", 1)):
        write_mjcf(pendulum, tmp_path / "it.xml", hinges="physical", base=base)
        root = read_xml(tmp_path / "it.xml").find("worldbody/body")
        assert len(root.findall("inertial")) == there


def test_a_spring_has_no_motor(tmp_path):
    soft = ARM.with_parameters("m1", rotor_inertia=1e-4, stiffness=50.0)
    with pytest.warns(mr.interop.LossWarning):
        write_urdf(soft, tmp_path / "a.urdf", hinges="physical", ros2_control="effort")
    control = read_xml(tmp_path / "a.urdf").find("ros2_control")
    driven = [joint.get("name") for joint in control.findall("joint")]
    assert driven == [x for x in soft.model("physical").joint_names if not x.endswith(".spring")]
    write_srdf(soft, tmp_path / "a.srdf", hinges="physical", samples=0)
    passive = read_xml(tmp_path / "a.srdf").findall("passive_joint")
    assert [joint.get("name") for joint in passive] == ["m1.joint.spring"]
    write_mjcf(soft, tmp_path / "a.xml", hinges="physical", actuators="position")
    servos = read_xml(tmp_path / "a.xml").findall("actuator/position")
    assert [servo.get("joint") for servo in servos] == driven
    write_mjcf(soft, tmp_path / "a.xml", hinges="physical")
    motors = read_xml(tmp_path / "a.xml").findall("actuator/motor")
    assert len(motors) == soft.model("physical").nv  # ctrl is our tau
    on_rails = soft.model("physical", base=["px"])
    assert [motor.name for motor in motors_of(on_rails)] == [on_rails.joint_names[0], *driven]
    assert motors_of(on_rails)[0].effort == 1e9
    softer = ARM.with_parameters("m1", rotor_inertia=1e-4, stiffness=0.5)
    assert [motor.name for motor in motors_of(softer.model("physical"))] == driven


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_default_servos_give_each_joint_thirty_radians_per_second(tmp_path, base):
    path, model = tmp_path / "it.xml", ARM.model("physical", base)
    write_mjcf(ARM, path, hinges="physical", base=base, actuators="position")
    mobility = np.linalg.inv(model.mass_matrix(model.neutral()))
    inertia = 1 / np.diagonal(mobility)[model.joint_slice_v]
    servos = read_xml(path).findall("actuator/position")
    kp, kd = ([float(servo.get(key)) for servo in servos] for key in ("kp", "kv"))
    np.testing.assert_allclose(kp, 900 * inertia)
    np.testing.assert_allclose(kd, 60 * inertia)
    write_mjcf(ARM, path, hinges="physical", actuators="position", kp=0.05, kd=0.0)
    (kp,) = {servo.get("kp") for servo in read_xml(path).findall("actuator/position")}
    assert float(kp) == 0.05


def test_links_of_one_module_are_linked_though_no_joint_joins_them():
    model = mr.examples.superbot_tree(1, 2, rng=np.random.default_rng(0)).model("physical")
    modules = {}
    for name, link in zip(model.body_names, model.body_link.tolist(), strict=True):
        modules.setdefault(name.split(".")[0], set()).add(link)
    expected = {(a, b) for own in modules.values() for a in own for b in own if a < b}
    jointed = {(parent, k + 1) for k, parent in enumerate(model.parent.tolist())}
    assert expected - jointed
    assert linked_pairs(model) == expected | jointed


def test_chains_that_are_too_long_for_mujoco_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("modurob.interop.mjcf.LONGEST_CHAIN", 3)
    write_mjcf(mr.examples.snake(4), tmp_path / "x.xml", hinges="physical")
    with complains(mr.StateError, "the longest chain has 4 joints; MuJoCo reads up to 3"):
        write_mjcf(mr.examples.snake(5), tmp_path / "x.xml", hinges="physical")


def test_random_configurations_keep_limits_and_reach_them():
    arm = mr.examples.arm("bac").with_parameters("m0", limits=(0.5, None))
    model = arm.model("physical")
    q = srdf._random(model, np.random.default_rng(0), 400)[:, model.joint_slice_q]
    low, high = model.lower.copy(), model.upper.copy()
    zero = np.clip(0.0, low, high)
    reach = np.where(model.prismatic, 1.0, np.pi)
    low, high = (np.where(np.isfinite(x), x, zero + s * reach) for x, s in ((low, -1), (high, 1)))
    np.testing.assert_allclose(q.min(axis=0), low)
    np.testing.assert_allclose(q.max(axis=0), high)
    at_ends = ((q == low) | (q == high)).mean(axis=0)
    assert at_ends == pytest.approx(0.5, abs=0.12)  # about half of them
    assert zero[0] == 0.5


def test_half_of_random_configurations_are_at_an_end_of_each_joint():
    model = ARM.model("physical")
    q, rough = srdf._random(model, np.random.default_rng(1), 20_000), 0.02  # 5 standard errors
    for end in (model.lower, model.upper):
        np.testing.assert_allclose((q == end).mean(axis=0), 0.25, atol=rough)


@pytest.mark.parametrize("organism", [CRAB, ARM], ids=["crab", "arm"])
def test_pairs_that_never_collide_do_not_collide_in_pinocchio(organism, tmp_path):
    urdf, path = tmp_path / "it.urdf", tmp_path / "it.srdf"
    write_urdf(organism, urdf, hinges="physical", contact=True)
    write_srdf(organism, path, hinges="physical", samples=SAMPLES)
    root = read_xml(path)
    reasons = {
        frozenset((pair.get("link1"), pair.get("link2"))): pair.get("reason")
        for pair in root.findall("disable_collisions")
    }
    model = organism.model("physical")
    peer = pin.buildModelFromUrdf(str(urdf))
    solids = pin.buildGeomFromUrdf(peer, str(urdf), pin.GeometryType.COLLISION)
    solids.addAllCollisionPairs()
    frames = [peer.frames[solid.parentFrame].name for solid in solids.geometryObjects]
    order = [peer.joints[peer.getJointId(name)].idx_q for name in model.joint_names]
    data, contacts, met = peer.createData(), pin.GeometryData(solids), set()
    for q in srdf._random(model, np.random.default_rng(0), SAMPLES):
        theirs = np.zeros(peer.nq)
        theirs[order] = q
        pin.computeCollisions(peer, data, solids, contacts, theirs, False)
        for pair, result in zip(solids.collisionPairs, contacts.collisionResults, strict=True):
            if result.isCollision():
                met.add(frozenset((frames[pair.first], frames[pair.second])))
    never = {pair for pair, reason in reasons.items() if reason == "Never"}
    assert not never & met
    if organism is CRAB:  # two limbs that meet are left in the check
        assert never
        assert met - set(reasons)
    # Pinocchio takes exactly these pairs out
    before = {frozenset((frames[p.first], frames[p.second])) for p in solids.collisionPairs}
    pin.removeCollisionPairs(peer, solids, str(path))
    left = {frozenset((frames[p.first], frames[p.second])) for p in solids.collisionPairs}
    assert left == before - set(reasons)


def test_neighbors_are_adjacent_and_far_ends_are_not():
    model = mr.examples.snake(4).with_parameters(limits=(-2.2, 2.2)).model()
    tree = tree_of(model, model.organism, "world")
    pairs = srdf.disabled_pairs(tree, 0, 0)
    assert pairs == {("m0", "m1"): "Adjacent", ("m1", "m2"): "Adjacent", ("m2", "m3"): "Adjacent"}
    assert ("m0", "m3") not in srdf.disabled_pairs(tree, 200, 0)  # rolled up, the ends meet
    beams = mr.examples.snake(4).model(locked={"m1.hinge": 0.0, "m3.hinge": 0.0})
    assert len(beams.joint_names) == 1
    pairs = srdf.disabled_pairs(tree_of(beams, beams.organism, "world"), 0, 0)
    assert ("m1", "m2") in pairs
    assert ("m0", "m3") not in pairs


def test_configurations_looked_at_in_portions_give_the_same_pairs(monkeypatch):
    model = CRAB.model("physical")
    tree = tree_of(model, CRAB, "world")
    whole = srdf.disabled_pairs(tree, 23, 3)
    assert "Never" in whole.values()
    random = srdf._random
    for chunk in (1, 1000):
        drawn = []
        monkeypatch.setattr(srdf, "CHUNK", chunk)  # 1 configuration at a time, and a few
        monkeypatch.setattr(
            srdf, "_random", lambda m, r, n, to=drawn: (to.append(n), random(m, r, n))[1]
        )
        assert srdf.disabled_pairs(tree, 23, 3) == whole
        assert sum(drawn) == 23
        assert len(drawn) > 2


@pytest.mark.parametrize(("gap", "touch"), [(0.0019, True), (0.0021, False)])
def test_shapes_less_than_two_millimeters_apart_touch(gap, touch):
    """A millimeter around each: m0 and m2 stand 0.2 m apart, with m1 between."""
    bar = {"body": "A", "form": "box", "size": (0.2 - gap,) * 3}
    kind = mr.ModuleType(**mr.catalog["backbone"].model_dump() | {"shapes": [bar]})
    model = mr.examples.snake(3, kind).model("physical")
    at = model.forward_kinematics(model.neutral())[:, :3, 3]
    along = np.abs(at[model.modules["m2"]] - at[model.modules["m0"]])
    np.testing.assert_allclose(sorted(along), [0, 0, 0.2], atol=1e-12)
    pairs = srdf.disabled_pairs(tree_of(model, model.organism, "world"), 0, 0)
    assert (pairs.get(("m0.A", "m2.A")) == "Default") == touch


def test_pairs_with_a_mesh_stay_in_the_check_unless_they_are_adjacent(tmp_path):
    backbone, path = mr.catalog["backbone"], tmp_path / "it.srdf"
    seen = mr.ModuleType(**backbone.model_dump() | {"meshes": [{"body": "A", "file": "a.stl"}]})

    def pairs():
        found = read_xml(path).findall("disable_collisions")
        return {(pair.get("link1"), pair.get("link2"), pair.get("reason")) for pair in found}

    with pytest.warns(
        mr.interop.LossWarning, match=r"it\.srdf: .* pairs with m2 stay in the check"
    ) as caught:
        write_srdf(mr.examples.snake(3).with_kinds({"m2": seen}), path)
    assert caught[0].filename == __file__
    assert pairs() == {("m0", "m1", "Adjacent"), ("m1", "m2", "Adjacent")}
    write_srdf(mr.examples.snake(2).with_kinds({"m1": seen}), path)  # without a warning
    assert pairs() == {("m0", "m1", "Adjacent")}


def test_groups_and_states_of_srdf(tmp_path):
    path = tmp_path / "it.srdf"
    write_srdf(CRAB, path, hinges="physical", base="free", samples=0)
    root, model = read_xml(path), CRAB.model("physical", "free")
    every = next(group for group in root.findall("group") if group.get("name") == "all")
    assert tuple(joint.get("name") for joint in every) == model.joint_names
    (virtual,) = root.findall("virtual_joint")
    assert virtual.get("type") == "floating"
    urdf = tmp_path / "it.urdf"
    write_urdf(CRAB, urdf, hinges="physical", base="free")
    links = {link.get("name") for link in read_xml(urdf).findall("link")}
    assert virtual.get("child_link") in links
    for chain in root.iter("chain"):
        assert {chain.get("base_link"), chain.get("tip_link")} <= links
    leg = {"leg": model.joint_names[:2]}
    write_srdf(CRAB, path, hinges="physical", groups=leg, samples=0)
    assert [group.get("name") for group in read_xml(path).findall("group")] == ["leg"]


def test_servos_of_mujoco_accelerate_as_our_law(tmp_path):
    organism, rng = ARM.with_parameters(viscous=0.3, coulomb=0.0), np.random.default_rng(2)
    model, path = organism.model("physical"), tmp_path / "it.xml"
    write_mjcf(organism, path, hinges="physical", actuators="position", kp=30.0, kd=2.0)
    peer = mujoco.MjModel.from_xml_path(str(path))
    data, n = mujoco.MjData(peer), model.nv
    q, v, goal = 0.3 * rng.standard_normal((3, n))
    goal[0] = 1.5  # beyond what 40 N m reach
    wanted = 30.0 * (goal - q) - 2.0 * v
    tau = np.clip(wanted, -40.0, 40.0)
    assert (tau != wanted).any()
    for value, rate, target, name in zip(q, v, goal, model.joint_names, strict=True):
        data.joint(name).qpos, data.joint(name).qvel = value, rate
        data.actuator(name).ctrl = target
    mujoco.mj_forward(peer, data)
    theirs = np.array([data.joint(name).qacc[0] for name in model.joint_names])
    ours = model.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(theirs, ours, rtol=0, atol=RELATIVE * np.abs(ours).max())
    np.testing.assert_array_equal(peer.actuator_forcerange, [[-40.0, 40.0]] * n)
    np.testing.assert_array_equal(peer.actuator_ctrlrange, [[-2.0, 1.5]] * n)


def test_sensors_of_mujoco_measure_joints_and_bodies(tmp_path):
    kind = mr.catalog["backbone"]
    tip = kind.bodies[-1].name
    organism = mr.examples.snake(2, with_imu(kind, tip))
    model, path = organism.model("physical"), tmp_path / "it.xml"
    write_mjcf(organism, path, hinges="physical", sensors=True)
    peer = mujoco.MjModel.from_xml_path(str(path))
    data, rng = mujoco.MjData(peer), np.random.default_rng(1)
    q, v, tau = rng.standard_normal((3, model.nv))
    for k, name in enumerate(model.joint_names):
        data.joint(name).qpos, data.joint(name).qvel = q[k], v[k]
        data.actuator(name).ctrl = tau[k]
    mujoco.mj_forward(peer, data)
    for k, name in enumerate(model.joint_names):
        measured = [data.sensor(f"{key}:{name}").data[0] for key in ("position", "velocity")]
        assert measured == [q[k], v[k]]
        assert data.sensor(f"effort:{name}").data[0] == pytest.approx(tau[k])
    body = f"m1.{tip}"
    T = model.forward_kinematics(q)[model.body_index(body)]
    J = model.jacobian(q, body)
    a = model.forward_dynamics(q, v, tau)
    h = 1e-6  # differences of the velocity of the body's origin
    speed = [origin_velocity(model, q + s * v, v + s * a, body) for s in (-h, h)]
    felt = T[:3, :3].T @ ((speed[1] - speed[0]) / (2 * h) - model.gravity)
    np.testing.assert_allclose(data.sensor(f"accelerometer:{body}").data, felt, atol=1e-5)
    np.testing.assert_allclose(data.sensor(f"gyro:{body}").data, (J @ v)[3:], atol=1e-9)
    w, *axis = data.sensor(f"attitude:{body}").data
    np.testing.assert_allclose(pin.Quaternion(w, *axis).matrix(), T[:3, :3], atol=1e-12)


def origin_velocity(model, q, v, body):
    """Velocity of a body's origin in the world."""
    h = 1e-6
    p = [model.forward_kinematics(q + s * v)[model.body_index(body), :3, 3] for s in (-h, h)]
    return (p[1] - p[0]) / (2 * h)


def test_records_keep_limits_of_motors_and_measurement_units():
    kind = with_imu(mr.catalog["scout"], mr.catalog["scout"].bodies[0].name)
    joint = kind.joints[0].name
    kind = kind.with_parameters(max_velocity=3.0).with_parameters(joint=joint, max_effort=2.0)
    found = record.decode(record.encode(kind, 7))
    assert found.kind == kind
    assert found.skipped == ()


def test_mistakes_are_one_clear_line(tmp_path):
    path = tmp_path / "x.xml"
    with complains(mr.StateError, "ros2_control is one of position, velocity, effort", "'torque'"):
        write_urdf(CRAB, path, ros2_control="torque")
    with complains(mr.StateError, "actuators are one of motor, position", "'muscle'"):
        write_mjcf(CRAB, path, actuators="muscle")
    with complains(mr.StateError, "kp and kd are gains of servos"):
        write_mjcf(CRAB, path, kp=3.0)
    with complains(mr.UnknownNameError, "kp: no joint 'm9.hinge'"):
        write_mjcf(CRAB, path, actuators="position", kp={"m9.hinge": 1.0})
    with complains(mr.StateError, "kd must be at least 0, got -1"):
        write_mjcf(CRAB, path, actuators="position", kd=-1)
    with complains(mr.StateError, "the mass matrix is singular", "give kp and kd"):
        write_mjcf(mr.examples.crane(), path, actuators="position", kp=1.0)
    with complains(mr.UnknownNameError, "group 'leg': no joint 'm9.hinge': joints are"):
        write_srdf(CRAB, path, groups={"leg": ["m9.hinge"]})
    for joints in ("m1.hinge", None):
        with complains(mr.StateError, f"group 'leg' is a list of joints, got {joints!r}"):
            write_srdf(CRAB, path, groups={"leg": joints})
    with complains(mr.StateError, "groups are lists of joints by name, got ['m1.hinge']"):
        write_srdf(CRAB, path, groups=["m1.hinge"])
    with complains(mr.StateError, "a group's name is printable text, got 3"):
        write_srdf(CRAB, path, groups={3: ["m1.hinge"]})
    with complains(mr.StateError, "the hardware's plugin is printable text, got ''"):
        write_urdf(CRAB, path, ros2_control="effort", hardware="")
    with complains(mr.StateError, "samples"):
        write_srdf(CRAB, path, samples=-1)
    with complains(mr.DatasheetError, "max_effort", "greater than 0"):
        CRAB.with_parameters(max_effort=0.0)
    (tmp_path / "bad.urdf").write_text(
        '<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>'
        '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>'
        '<joint name="j" type="revolute"><parent link="a"/><child link="b"/>'
        '<limit lower="-1" upper="1" effort="-5" velocity="1"/></joint></robot>'
    )
    with complains(mr.FileError, "joint 'j': effort is -5 but must not be negative"):
        read_urdf(tmp_path / "bad.urdf")
    assert not path.exists()


@pytest.mark.parametrize(
    ("option", "name", "tag"),
    [("--urdf-ros2", "crab.urdf", "ros2_control"), ("--srdf", "crab.srdf", "disable_collisions"),
     ("--mjcf-servo", "crab.xml", "actuator")],
)  # fmt: skip
def test_command_line_writes_each_format(option, name, tag, tmp_path):
    done = CliRunner().invoke(cli, ["export", "crab", option, "--output", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert name in done.stdout
    assert read_xml(tmp_path / name).find(tag) is not None


@pytest.mark.parametrize("write", [write_urdf, write_mjcf, write_srdf])
def test_a_model_is_written_like_the_organism_behind_it(tmp_path, write):
    snake = mr.examples.snake(3)
    options = {} if write is write_srdf else {"contact": True}
    write(snake, tmp_path / "organism", base="free", **options)
    write(snake.model(base="free"), tmp_path / "model", **options)
    assert (tmp_path / "model").read_bytes() == (tmp_path / "organism").read_bytes()


@pytest.mark.parametrize(("cell", "margin"), [(0.5, 5.0), (0.3, 5.1)])
def test_fields_of_heights_go_on_for_five_meters(cell, margin):
    """A margin of equal heights beyond the edge, which MuJoCo's fields do not have."""
    heights = np.arange(12.0).reshape(3, 4)
    floor = _floor(mr.Ground(height=heights, cell=cell))
    np.testing.assert_allclose(floor.size[:2], [margin + cell, margin + 1.5 * cell])
    cells = round(margin / cell)
    assert floor.heights.shape == (4 + 2 * cells, 3 + 2 * cells)
    inside = floor.heights[cells:-cells, cells:-cells]
    np.testing.assert_allclose(floor.pose[2, 3] + floor.size[2] * inside, heights.T)
    np.testing.assert_allclose(
        floor.heights[0], np.interp(np.arange(3 + 2 * cells) - cells, range(3), inside[0])
    )


def test_the_margin_of_a_field_of_small_cells_has_at_most_500_of_them():
    level = SimpleNamespace(
        is_plane=False, slope=(0.0, 0.0), height=np.zeros((2, 2)), cell=1e-3,
        surface=lambda x, y: (np.zeros(x.shape),),
    )  # fmt: skip
    floor = _floor(level)
    assert floor.heights.shape == (1002, 1002)
    assert floor.size[2:] == (1e-3, 1.0)  # MuJoCo refuses a rise of zero; a meter lies below


def test_a_plane_of_mujoco_is_drawn_ten_meters_wide_and_rises_with_the_slope():
    floor = _floor(mr.Ground(height=0.25, slope=(0.75, 0.0)))
    assert floor.size == (5.0, 5.0, 1.0)
    assert floor.heights is None
    np.testing.assert_allclose(floor.pose[:3, 2], [-0.6, 0, 0.8], atol=1e-15)
    np.testing.assert_allclose(floor.pose[:3, 0], [0.8, 0, 0.6], atol=1e-15)
    assert floor.pose[2, 3] == 0.25


@pytest.mark.parametrize(("overlap", "apart"), [(0.2e-6, False), (5e-6, True), (1e-3, True)])
def test_shapes_that_overlap_as_docked_by_more_than_rounding_do_not_collide(overlap, apart):
    """Boxes of m0 and m2, which share neither a joint nor a module and stand 0.2 m apart."""
    bar = {"body": "A", "form": "box", "size": (0.2 + overlap,) * 3}
    kind = mr.ModuleType(**mr.catalog["backbone"].model_dump() | {"shapes": [bar]})
    snake = mr.examples.snake(3, kind)
    model = snake.model("physical")
    peer = MujocoModel(model, snake).peer
    assert peer.nexclude - len(linked_pairs(model)) == apart


def test_modules_without_shapes_touch_as_cubes_and_virtual_ones_not_at_all():
    fields = mr.catalog["backbone"].model_dump()
    bare = mr.ModuleType(**fields | {"name": "bare", "shapes": ()})
    two = mr.Organism.start(bare).dock("m0", 3, "m1", 4)
    model = two.model("physical")
    engine = MujocoModel(model, two)
    assert [model.body_names[k] for k in engine.geom_body] == ["m0.A", "m1.A"]
    assert (engine.peer.geom_type == mujoco.mjtGeom.mjGEOM_BOX).all()
    np.testing.assert_array_equal(engine.peer.geom_size, np.full((2, 3), bare.size / 2))
    on_rail = mr.Organism.start("virtual_px").dock("m0", 7, "m1", 7, kind="backbone")
    for hinges in ("dyad", "physical"):
        model = on_rail.model(hinges)
        engine = MujocoModel(model, on_rail)
        names = [model.body_names[k].partition(".")[0] for k in engine.geom_body]
        assert names == ["m1"] * len(on_rail.kind("m1").shapes)


def test_contacts_have_the_friction_of_the_ground_against_sliding_alone():
    engine = MujocoModel(CRAB.model(), CRAB, mr.Ground(friction=0.4))
    assert engine.geom_body[0] == -1
    assert engine.peer.nsensor == 0  # those are for files
    np.testing.assert_array_equal(engine.peer.geom_friction - [0.4, 0.0, 0.0], 0.0)


def test_what_mujoco_refuses_is_told_in_one_line():
    with complains(mr.StateError, "MuJoCo refuses this model: XML Error", "'none'"):
        MujocoModel(CRAB.model(), CRAB, integrator="none")


def test_a_model_without_an_organism_has_nothing_that_collides(tmp_path):
    bare = dataclasses.replace(CRAB.model("physical"), organism=None, options=None)
    write_srdf(bare, tmp_path / "it.srdf", samples=5)
    root = read_xml(tmp_path / "it.srdf")
    assert not root.findall("disable_collisions")
    assert len(root.findall("group")[0]) == bare.nv


def test_warnings_of_mujoco_are_silent_for_a_while_only():
    engine, before = MujocoModel(CRAB.model()), mujoco.get_mju_user_warning()
    with engine.quiet():
        assert mujoco.get_mju_user_warning() is not before
    assert mujoco.get_mju_user_warning() is before
    with pytest.raises(KeyError), engine.quiet():
        raise KeyError
    assert mujoco.get_mju_user_warning() is before
