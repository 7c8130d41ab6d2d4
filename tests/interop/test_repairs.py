"""Flaws of published robots: refused by default, repaired with one warning each on request."""

import importlib.util
import json
import math
import warnings
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from modurob import FileError, ModelWarning, Organism, StateError, catalog, load
from modurob.interop import (
    read_cobra_modules,
    read_urdf,
    write_cobra_modules,
    write_mjcf,
    write_urdf,
)
from modurob.interop.conventions import PLACEHOLDER
from modurob.modules import record
from modurob.spatial.inertia import inertia_flaw
from oracles import ARM, complains

RELATIVE = 1e-10  # of the largest entry: far above rounding, far below any wrong inertia
TOOLS = Path(__file__).parents[2] / "tools"
UPPER_INERTIA = 'ixx="0.03" ixy="0.001" ixz="-0.002" iyy="0.04" iyz="0.003" izz="0.05"'
LOWER_INERTIAL = (
    '<inertial><mass value="1"/>'
    '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
)
SHOULDER_LIMIT = '<limit lower="-1.5" upper="2" effort="10" velocity="3"/>'
LIFT_LIMIT = '<limit upper="0.4" effort="1" velocity="1"/>'


def joint(kind, name):
    return next(j for j in kind.joints if j.name == name)


def body(kind, name):
    return kind.bodies[kind.body_index(name)]


def limits(kind, name):
    return joint(kind, name).lower, joint(kind, name).upper


@pytest.fixture
def read(tmp_path):
    """Read a text with ``strict=False``: the module, and the texts of the warnings."""

    def read(text, strict=False):
        path = tmp_path / "arm.urdf"
        path.write_text(text, encoding="utf-8")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            kind = read_urdf(path, strict=strict)
        assert all(w.category is ModelWarning and w.filename == __file__ for w in caught)
        return kind, [str(w.message) for w in caught]

    return read


# old text, new text, what error and warning say, what only the warning says, what must hold then
FLAWS = {
    "mimic": (
        '<axis xyz="0 1 1"/>',
        '<axis xyz="0 1 1"/><mimic joint="elbow" multiplier="-2" offset="0.5"/>',
        ["joint 'shoulder' mimics 'elbow'"],
        "moves freely, and joint 'shoulder' = -2 'elbow' + 0.5 is not enforced",
        lambda kind: joint(kind, "shoulder").kind == "revolute",
    ),
    "inertia of equal entries": (
        UPPER_INERTIA,
        'ixx="1e-6" ixy="1e-6" ixz="1e-6" iyy="1e-6" iyz="1e-6" izz="1e-6"',
        ["link 'upper'", "triangle inequality"],
        "the nearest possible inertia is taken, with entries changed by up to 1e-06 kg m^2 (100 %",
        lambda kind: inertia_flaw(2.5, body(kind, "upper").inertia) is None,
    ),
    "inertia off by rounding": (
        UPPER_INERTIA,
        'ixx="0.0199" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.05"',
        ["link 'upper'", "triangle inequality"],
        "changed by up to 5e-05 kg m^2 (0.1 % of the largest)",
        lambda kind: np.linalg.eigvalsh(body(kind, "upper").inertia) == pytest.approx(
            [0.01995, 0.03005, 0.05]
        ),
    ),
    "inertia without mass": (
        '<mass value="2.5"/>',
        '<mass value="0"/>',
        ["link 'upper'", "without mass"],
        "mass is set to 1e-12 kg",
        lambda kind: body(kind, "upper").mass == PLACEHOLDER,
    ),
    "no <mass>": (
        f'<mass value="2.5"/>\n      <inertia {UPPER_INERTIA}/>',
        '<inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>',
        ["link 'upper'", "<inertial> needs <mass>"],
        "no mass",
        lambda kind: body(kind, "upper").mass == 0,
    ),
    "no <inertia>": (
        f"<inertia {UPPER_INERTIA}/>",
        "",
        ["link 'upper'", "<inertial> needs <inertia>"],
        "a point",
        lambda kind: body(kind, "upper").mass == 2.5 and not np.any(body(kind, "upper").inertia),
    ),
    "limits 0 0": (
        SHOULDER_LIMIT,
        '<limit lower="0" upper="0" effort="1" velocity="1"/>',
        ["joint 'shoulder'", "limits are 0 and 0", "fixed"],
        "it has no limits",
        lambda kind: limits(kind, "shoulder") == (None, None),
    ),
    "limits 0 0 by default": (
        LIFT_LIMIT,
        '<limit effort="1" velocity="1"/>',
        ["joint 'lift'", "limits are 0 and 0"],
        "it has no limits",
        lambda kind: limits(kind, "lift") == (None, None),
    ),
    "no <limit>": (
        SHOULDER_LIMIT,
        "",
        ["joint 'shoulder' is revolute and needs a <limit>"],
        "it has no limits",
        lambda kind: limits(kind, "shoulder") == (None, None),
    ),
    "limits in the wrong order": (
        SHOULDER_LIMIT,
        '<limit lower="2" upper="-1.5"/>',
        ["joint 'shoulder'", "lower limit 2", "upper limit -1.5"],
        "exchanged",
        lambda kind: limits(kind, "shoulder") == (-1.5, 2),
    ),
    "friction below zero": (
        'friction="0.2"',
        'friction="-0.2"',
        ["joint 'shoulder'", "friction is -0.2"],
        "taken for 0",
        lambda kind: (joint(kind, "shoulder").viscous, joint(kind, "shoulder").coulomb) == (0.7, 0),
    ),
    "floating": (
        'type="continuous"',
        'type="floating"',
        ["joint 'elbow' is floating", "base='free'"],
        "it is fixed and does not move",
        lambda kind: joint(kind, "elbow").kind == "fixed",
    ),
    "planar": (
        'type="continuous"',
        'type="planar"',
        ["joint 'elbow' is planar"],
        "it is fixed and does not move",
        lambda kind: joint(kind, "elbow").kind == "fixed",
    ),
    "zero axis": (
        '<axis xyz="0 1 1"/>',
        '<axis xyz="0 0 0"/>',
        ["joint 'shoulder'", "zero vector"],
        "it is fixed and does not move",
        lambda kind: joint(kind, "shoulder").kind == "fixed",
    ),
    "shape of size 0": (
        '<sphere radius="0.1"/>',
        '<sphere radius="0"/>',
        ["link 'slider'", "<sphere>", "size 0"],
        "left out",
        lambda kind: [shape.form for shape in kind.shapes] == ["cylinder", "box"],
    ),
    "unknown shape": (
        '<sphere radius="0.1"/>',
        '<capsule radius="0.1" length="1"/>',
        ["link 'slider'", "<capsule>", "box, cylinder, sphere, mesh"],
        "left out",
        lambda kind: len(kind.shapes) == 2,
    ),
    "no shape": (
        '<sphere radius="0.1"/>',
        "",
        ["link 'slider'", "<visual>", "<geometry>"],
        "left out",
        lambda kind: len(kind.shapes) == 2,
    ),
    "joints of one name": (
        '<joint name="elbow"',
        '<joint name="shoulder"',
        ["two joints", "'shoulder'"],
        "called 'shoulder_2'",
        lambda kind: [j.name for j in kind.joints][:2] == ["shoulder", "shoulder_2"],
    ),
    "links that would be called the same": (
        'link="tool"/>',
        'link="base.link"/>',
        ["'base link'", "'base.link'", "'base_link'"],
        "called 'base_link_2'",
        lambda kind: joint(kind, "flange").child == "base_link_2",
    ),
    "commas": (
        '<axis xyz="0 1 1"/>',
        '<axis xyz="0, 1, 1"/>',
        ["joint 'shoulder'", "xyz of <axis>", "comma", "'0, 1, 1'"],
        "taken for spaces",
        lambda kind: joint(kind, "shoulder").axis == pytest.approx((0, *2 * [math.sqrt(0.5)])),
    ),
}  # fmt: skip


def flawed(flaw):
    old, new, *_ = FLAWS[flaw]
    assert old in ARM
    text = ARM.replace(old, new)
    return (
        text.replace('<link name="tool"/>', '<link name="base.link"/>') if "links" in flaw else text
    )


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_flaw_is_refused_with_its_place_and_repaired_with_one_warning(read, flaw):
    _, _, pieces, repair, holds = FLAWS[flaw]
    with complains(FileError, "arm.urdf", *pieces):
        read(flawed(flaw), strict=True)
    kind, said = read(flawed(flaw))
    (line,) = said
    for piece in ("arm.urdf", *pieces[:1], repair):
        assert piece in line
    assert "\n" not in line
    assert holds(kind)
    assert not Organism.start(kind).model().locked


def test_a_sound_file_is_read_without_a_warning_in_both_ways(read):
    assert read(ARM) == read(ARM, strict=True)
    assert read(ARM)[1] == []


def test_every_flaw_of_a_file_has_its_own_warning(read):
    text = ARM
    chosen = ("mimic", "inertia of equal entries", "limits 0 0", "shape of size 0", "planar")
    for flaw in chosen:
        old, new, *_ = FLAWS[flaw]
        text = text.replace(old, new)
    _, said = read(text)
    assert len(said) == len(chosen)


@pytest.mark.parametrize(
    ("old", "new", "pieces"),
    [
        ('<parent link="slider"/>', '<parent link="tool"/>', ["one tree", "loop", "tool"]),
        ('<parent link="slider"/>', '<parent link="x"/>', ["'flange' names link 'x'"]),
        ('<child link="tool"/>', '<child link="upper"/>', ["held twice are upper"]),
        ('<link name="tool"/>', '<link name="tool"/><link name="b"/>', ["6 links need 5 joints"]),
        ('<link name="tool"/>', '<link name="upper"/>', ["same name", "'upper'"]),
        ('<mass value="2.5"/>', '<mass value="-1"/>', ["link 'upper'", "negative"]),
        ('<mass value="2.5"/>', '<mass value="nan"/>', ["link 'upper'", "'nan'"]),
        ('<mass value="2.5"/>', '<mass value="2,5"/>', ["link 'upper'", "no comma"]),
        ('<axis xyz="0 1 1"/>', '<axis xyz="0,1 1 1"/>', ["no comma", "'0,1 1 1'"]),
        ('type="continuous"', 'type="revolut"', ["joint 'elbow' is revolut"]),
        ("<link name", "<xacro:property/><link name", ["xacro"]),
    ],
)
def test_what_breaks_the_tree_or_cannot_be_guessed_is_never_repaired(read, old, new, pieces):
    assert old in ARM
    with complains(FileError, "arm.urdf", *pieces):
        read(ARM.replace(old, new, 1))


def test_a_mimic_without_numbers_is_the_joint_itself(read):
    """URDF: the multiplier is 1 and the offset 0 where they are not given."""
    text = ARM.replace('<axis xyz="0 1 1"/>', '<axis xyz="0 1 1"/><mimic joint="elbow"/>')
    _, (line,) = read(text)
    assert "joint 'shoulder' = 1 'elbow' + 0 is not enforced" in line


@pytest.mark.parametrize(
    ("given", "friction"),
    [('damping="0.5"', (0.5, 0)), ('friction="0.25"', (0, 0.25)), ("", (0, 0))],
)
def test_friction_that_is_not_given_is_none(read, given, friction):
    old = '<dynamics damping="0.7" friction="0.2"/>'
    assert old in ARM
    kind, said = read(ARM.replace(old, f"<dynamics {given}/>"), strict=True)
    assert (joint(kind, "shoulder").viscous, joint(kind, "shoulder").coulomb) == friction
    assert not said


def test_strict_is_a_truth_value(tmp_path):
    for reader in (read_urdf, read_cobra_modules):
        with complains(StateError, "strict is True or False", "'no'"):
            reader(tmp_path / "x", strict="no")


def test_equal_limits_lock_a_joint_with_a_warning_in_both_ways(read):
    text = ARM.replace(SHOULDER_LIMIT, '<limit lower="0.5" upper="0.5"/>')
    for strict in (True, False):
        kind, (line,) = read(text, strict)
        assert "joint 'shoulder' is locked" in line
        assert "both of its limits are 0.5" in line
        assert limits(kind, "shoulder") == (0.5, 0.5)


# -- physics ---------------------------------------------------------------------------------------


def in_pinocchio(path, q):
    """Mass matrix, gravity and the tool's pose; the elbow is a point on the circle there."""
    peer = pin.buildModelFromUrdf(str(path))
    data, theirs = peer.createData(), np.array([q[0], np.cos(q[1]), np.sin(q[1]), q[2]])
    M = pin.crba(peer, data, theirs)
    gravity = pin.computeGeneralizedGravity(peer, data, theirs)
    pin.framesForwardKinematics(peer, data, theirs)
    tool = data.oMf[peer.getFrameId("tool", pin.FrameType.BODY)].homogeneous
    return np.triu(M) + np.triu(M, 1).T, gravity, tool


@pytest.mark.parametrize("flaw", ["mimic", "inertia without mass", "limits 0 0"])
def test_repairs_that_keep_the_inertias_agree_with_pinocchio(read, tmp_path, flaw):
    model = Organism.start(read(flawed(flaw))[0]).model()
    q = np.array([0.3, -2.0, 0.2])
    M, gravity, tool = in_pinocchio(tmp_path / "arm.urdf", q)
    for ours, theirs in (
        (model.mass_matrix(q), M),
        (model.gravity_torque(q), gravity),
        (model.forward_kinematics(q)[model.body_index("m0.tool")], tool),
    ):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=RELATIVE * np.abs(theirs).max())


def test_joints_that_move_no_mass_stay_movable(read, tmp_path):
    """The robot without any mass beyond its shoulder: what is left is kinematics."""
    start = ARM.index('<inertial>\n      <origin xyz="0 0 0.1"/>')
    end = ARM.index("</inertial>", start) + len("</inertial>")
    text = (ARM[:start] + ARM[end:]).replace(LOWER_INERTIAL, "")
    with complains(FileError, "joint 'lift' moves link 'slider'", "<inertial>", "strict=False"):
        read(text, strict=True)
    kind, said = read(text)
    assert [line.partition("; ")[2] for line in said] == [
        "the link gets 1e-12 kg and kg m^2, so that the joint stays movable for kinematics"
    ] * 2  # for the links that lift and elbow move
    model = Organism.start(kind).model()
    assert model.joint_names == ("m0.shoulder", "m0.elbow", "m0.lift")
    q = np.array([0.3, -2.0, 0.2])
    M, gravity, tool = in_pinocchio(tmp_path / "arm.urdf", q)
    poses = model.forward_kinematics(q)
    np.testing.assert_allclose(poses[model.body_index("m0.tool")], tool, rtol=0, atol=1e-12)
    for ours, theirs in ((model.mass_matrix(q), M), (model.gravity_torque(q), gravity)):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=RELATIVE * np.abs(theirs).max())
    a = model.forward_dynamics(q, np.zeros(3), model.gravity_torque(q))
    assert np.isfinite(a).all()


def test_a_repaired_robot_is_compared_with_pinocchio_by_the_tool(read, tmp_path):
    """The script that is run by hand over all robots of a folder, on one of them."""
    spec = importlib.util.spec_from_file_location("real_robots", TOOLS / "real_robots.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    read(flawed("inertia of equal entries"))
    repairs, found = tool.check(tmp_path / "arm.urdf", np.random.default_rng(0))
    assert repairs == 1
    assert len(found) == 6  # fixed and free: with our inertias, written, and read again
    assert max(max(differences) for differences in found.values()) < RELATIVE


# -- meshes ----------------------------------------------------------------------------------------


@pytest.fixture
def with_meshes(read):
    """The arm with a second mesh, turned, moved and mirrored."""
    look = '<visual><origin xyz="1 2 3" rpy="0 0.5 0"/><geometry><mesh filename="../m/a b.dae" '
    look += 'scale="1 -0.001 1"/></geometry></visual>'
    text = ARM.replace('<link name="tool"/>', f'<link name="tool">{look}</link>')
    kind, said = read(text, strict=True)
    assert not said
    return kind


def test_meshes_are_kept_as_references(with_meshes):
    upper, tool = with_meshes.meshes
    assert (upper.body, upper.file) == ("upper", "package://arm/upper.stl")
    assert (tool.body, tool.file, tool.scale) == ("tool", "../m/a b.dae", (1, -0.001, 1))
    assert (tool.position, tool.rpy) == ((1, 2, 3), (0, 0.5, 0))


def test_meshes_go_through_every_file_of_ours(with_meshes, tmp_path):
    organism = Organism.start(with_meshes)
    write_urdf(organism, tmp_path / "it.urdf")
    back = read_urdf(tmp_path / "it.urdf").meshes
    assert [(m.file, m.scale, m.position, m.rpy) for m in back] == [
        (m.file, m.scale, m.position, m.rpy) for m in with_meshes.meshes
    ]
    write_mjcf(organism, tmp_path / "it.xml")
    assert "stl" not in (tmp_path / "it.xml").read_text(encoding="utf-8")  # MuJoCo would open it
    organism.save(tmp_path / "it.json")
    assert load(tmp_path / "it.json").kind("m0") == with_meshes
    assert record.decode(record.encode(with_meshes, 7)).kind == with_meshes
    write_cobra_modules(with_meshes, tmp_path / "m.json")
    assert list(read_cobra_modules(tmp_path / "m.json").values()) == [with_meshes]


def test_meshes_scale_with_the_module(with_meshes):
    large = with_meshes.with_parameters(size=2 * with_meshes.size)
    assert large.meshes[1].scale == (2, -0.002, 2)
    assert large.meshes[1].position == (2, 4, 6)


def test_a_mesh_of_a_body_that_is_not_there_is_refused(with_meshes):
    data = with_meshes.model_dump()
    data["meshes"][0]["body"] = "x"
    with pytest.raises(ValueError, match="a mesh names body 'x'"):
        type(with_meshes)(**data)


# -- CoBRA -----------------------------------------------------------------------------------------


def cobra(tmp_path, change, strict=False):
    """A module with a change, as it is read, and the texts of the warnings."""
    write_cobra_modules(catalog["giusti_b"], tmp_path / "m.json")
    (module,) = json.loads((tmp_path / "m.json").read_text(encoding="utf-8"))["modules"]
    module["header"]["affiliation"] = []
    change(module)
    (tmp_path / "m.json").write_text(json.dumps(module), encoding="utf-8")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (kind,) = read_cobra_modules(tmp_path / "m.json", strict=strict).values()
    assert all(w.category is ModelWarning and w.filename == __file__ for w in caught)
    return kind, [str(w.message) for w in caught]


SPHERE = {"type": "sphere", "parameters": {"r": 0.0}}
NONE = np.zeros((3, 3)).tolist()


@pytest.mark.parametrize(
    ("change", "refusal", "repair", "holds"),
    [
        (
            lambda m: m["bodies"][0].update(inertia=np.diag([1.0, 1.0, 2.1]).tolist()),
            "triangle inequality",
            "changed by up to 0.05 kg m^2 (2.38 % of the largest)",
            lambda kind: np.allclose(kind.bodies[0].inertia, np.diag([1.05, 1.05, 2.1])),
        ),
        (
            lambda m: m["bodies"][0].update(inertia=[[1, 0.1, 0], [0, 1, 0], [0, 0, 1]]),
            "symmetric",
            "nearest possible inertia",
            lambda kind: kind.bodies[0].inertia[0][1] == pytest.approx(0.05),
        ),
        (
            lambda m: m["bodies"][0].pop("r_com"),
            "r_com: field required",
            "it is zero",
            lambda kind: kind.bodies[0].center_of_mass == (0, 0, 0),
        ),
        (
            lambda m: m["bodies"][0].pop("inertia"),
            "inertia: field required",
            "it is zero",
            lambda kind: not np.any(kind.bodies[0].inertia) and kind.bodies[0].mass > 0,
        ),
        (
            lambda m: [m["bodies"][0].pop("mass"), m["bodies"][0].update(inertia=NONE)],
            "mass: field required",
            "it is zero",
            lambda kind: kind.bodies[0].mass == 0,
        ),
        (
            lambda m: m["joints"][0].update(limits={"positionLower": 0.0, "positionUpper": 0.0}),
            "limits are 0 and 0",
            "it has no limits",
            lambda kind: (kind.joints[0].lower, kind.joints[0].upper) == (None, None),
        ),
        (
            lambda m: m["bodies"][0].update(visual=[SPHERE]),
            "a sphere of body 'proximal'",
            "left out",
            lambda kind: not [s for s in kind.shapes if s.body == "proximal"],
        ),
        (
            lambda m: m["bodies"][0].update(visual=[{"type": "cone"}]),
            "a cone of body 'proximal'",
            "left out",
            lambda kind: not [s for s in kind.shapes if s.body == "proximal"],
        ),
    ],
    ids=[
        "inertia",
        "asymmetric",
        "r_com",
        "no inertia",
        "no mass",
        "limits 0 0",
        "size 0",
        "unknown shape",
    ],
)
def test_a_flaw_of_a_module_set_is_refused_or_repaired(tmp_path, change, refusal, repair, holds):
    with complains(FileError, "m.json", refusal):
        cobra(tmp_path, change, strict=True)
    kind, (line,) = cobra(tmp_path, change)
    assert repair in line
    assert holds(kind)


def test_a_long_type_of_a_shape_is_cut_in_the_warning(tmp_path):
    _, (line,) = cobra(tmp_path, lambda m: m["bodies"][0].update(visual=[{"type": "x" * 30}]))
    assert f"a {'x' * 20} of body 'proximal'" in line


@pytest.mark.parametrize("numbers", ["0,1,1", "0, 1,1", "0,1, 1", "0 1,1"])
def test_commas_without_a_space_may_be_decimal_ones(tmp_path, numbers):
    path = tmp_path / "arm.urdf"
    path.write_text(ARM.replace('<axis xyz="0 1 1"/>', f'<axis xyz="{numbers}"/>'))
    with complains(FileError, "joint 'shoulder': xyz of <axis>", "a decimal point, no comma"):
        read_urdf(path, strict=False)


def test_a_single_comma_with_a_space_is_taken_for_a_space(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(ARM.replace('<axis xyz="0 1 1"/>', '<axis xyz="0, 1 1"/>'))
    with pytest.warns(ModelWarning, match="has commas: '0, 1 1'"):
        kind = read_urdf(path, strict=False)
    assert joint(kind, "shoulder").axis == pytest.approx((0, *2 * [math.sqrt(0.5)]))
