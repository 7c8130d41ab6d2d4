"""Reading URDF: what is kept, what is refused, and that nobody can make it hang."""

import math
import time

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from modurob import FileError, Organism, StateError, catalog, examples
from modurob.interop import read_urdf, write_urdf
from modurob.interop.conventions import rpy_of
from modurob.spatial import so3
from oracles import ARM, complains

ROUNDING = 1e-12
ANGLES = 1e-14  # a rotation after going through three angles and back
SOON = 30.0  # seconds on a busy machine; a hostile file would take hours or all memory


@pytest.fixture
def read(tmp_path):
    """A text as the module that is read from it."""

    def read(text):
        (tmp_path / "arm.urdf").write_text(text, encoding="utf-8")
        return read_urdf(tmp_path / "arm.urdf")

    return read


def test_a_urdf_of_others_has_the_masses_and_poses_that_pinocchio_finds(read, tmp_path):
    model = Organism.start(read(ARM)).model()
    assert model.joint_names == ("m0.shoulder", "m0.elbow", "m0.lift")
    peer = pin.buildModelFromUrdf(str(tmp_path / "arm.urdf"))
    data, rng = peer.createData(), np.random.default_rng(0)
    for _ in range(5):
        q = model.random_configuration(rng)
        theirs = np.array([q[0], np.cos(q[1]), np.sin(q[1]), q[2]])
        M = pin.crba(peer, data, theirs)
        M = np.triu(M) + np.triu(M, 1).T
        np.testing.assert_allclose(model.mass_matrix(q), M, rtol=0, atol=ROUNDING)
        gravity = pin.computeGeneralizedGravity(peer, data, theirs)
        np.testing.assert_allclose(model.gravity_torque(q), gravity, rtol=0, atol=10 * ROUNDING)
        pin.framesForwardKinematics(peer, data, theirs)
        tool = data.oMf[peer.getFrameId("tool", pin.FrameType.BODY)].homogeneous
        ours = model.forward_kinematics(q)[model.body_index("m0.tool")]
        np.testing.assert_allclose(ours, tool, rtol=0, atol=ROUNDING)


def test_a_urdf_keeps_its_joints_and_looks(read):
    kind = read(ARM)
    assert (kind.name, kind.title) == ("two_link_arm", "two.link arm")
    assert kind.size == 0.4  # from upper to lower, the longest step
    assert [body.name for body in kind.bodies] == ["base_link", "upper", "lower", "slider", "tool"]
    shoulder, elbow, lift, flange = kind.joints
    assert (shoulder.lower, shoulder.upper) == (-1.5, 2)
    assert (shoulder.viscous, shoulder.coulomb) == (0.7, 0.2)
    assert shoulder.axis == pytest.approx((0, math.sqrt(0.5), math.sqrt(0.5)))
    assert (elbow.kind, elbow.axis) == ("revolute", (1, 0, 0))  # URDF's axis if none is given
    assert (elbow.lower, elbow.upper) == (None, None)
    assert (lift.kind, lift.lower, lift.upper) == ("prismatic", 0, 0.4)
    assert flange.kind == "fixed"
    looks = [(shape.body, shape.form, shape.size, shape.color) for shape in kind.shapes]
    assert looks == [
        ("upper", "cylinder", (0.05, 0.4), "#336699"),
        ("lower", "box", (0.1, 0.2, 0.3), "#8aa0b8"),
        ("slider", "sphere", (0.1,), "#ff0080"),
    ]


def test_motors_without_numbers_have_no_limits(read):
    shoulder = read(ARM).joints[0]
    assert (shoulder.max_effort, shoulder.max_velocity) == (10, 3)
    bare = read(ARM.replace(' effort="10" velocity="3"', "")).joints[0]
    assert (bare.max_effort, bare.max_velocity) == (None, None)


def test_robots_dock_base_to_tip_with_frames_coinciding(read):
    kind = read(ARM)
    assert kind.docks == ("base", "tool")
    two = Organism.start(kind).dock("m0", "tool", "m1", "base")
    model = two.model()
    q = model.random_configuration(np.random.default_rng(1))
    poses = model.forward_kinematics(q)
    tool, base = (poses[model.body_index(name)] for name in ("m0.tool", "m1.base_link"))
    np.testing.assert_allclose(base, tool, rtol=0, atol=ROUNDING)


def test_ports_stand_in_the_frames_of_root_and_tips(read):
    """z points down at the base and outward at a tip; x is that of the link."""
    ports = {port.label: port for port in read(ARM).ports}
    assert set(ports) == {"base", "tool"}
    for port in ports.values():
        assert (port.position, port.reference) == ((0, 0, 0), (1, 0, 0))
    assert (ports["base"].normal, ports["base"].side) == ((0, 0, -1), 1)
    assert (ports["tool"].normal, ports["tool"].side) == ((0, 0, 1), 2)
    assert (ports["base"].body, ports["tool"].body) == ("base_link", "tool")
    assert ports["base"].mates == (ports["tool"].connector,)
    assert ports["tool"].mates == (ports["base"].connector,)


def test_every_kind_of_shape_comes_back(tmp_path):
    organism = examples.arm("babac")
    write_urdf(organism, tmp_path / "it.urdf", hinges="physical", contact=True)
    back = read_urdf(tmp_path / "it.urdf")
    written = [s for name in organism for s in organism.kind(name).shapes]
    assert sorted((s.form, s.size, s.color) for s in back.shapes) == sorted(
        (s.form, s.size, s.color) for s in written
    )
    text = (tmp_path / "it.urdf").read_text()
    assert text.count("<visual>") == text.count("<collision>") == len(written)


@pytest.mark.parametrize(
    ("limits", "kind"),
    [((None, None), "prismatic"), ((None, 0.3), "prismatic"), ((-0.1, None), "prismatic")],
)
def test_unlimited_stays_unlimited(tmp_path, limits, kind):
    organism = Organism.start("chen_link").dock("m0", 1, "m1", 1, kind="chen_prismatic")
    organism = organism.dock("m1", 2, "m2", 1, kind="chen_link")
    organism = organism.with_parameters("m1", limits=limits)
    write_urdf(organism, tmp_path / "it.urdf")
    (joint,) = [j for j in read_urdf(tmp_path / "it.urdf").joints if j.kind == kind]
    assert (joint.lower, joint.upper) == limits


@given(
    angles=arrays(float, 3, elements=st.floats(-4, 4)),
    quarter=arrays(float, 3, elements=st.sampled_from([-math.pi, -math.pi / 2, 0, math.pi / 2])),
    near=st.sampled_from([0.0, 1e-16, 1e-12, 1e-8, 1e-4, 1.0]),
)
def test_angles_give_the_rotation_back_at_every_pitch(angles, quarter, near):
    R = so3.from_rpy(*(quarter + near * angles))
    np.testing.assert_allclose(so3.from_rpy(*rpy_of(R)), R, rtol=0, atol=ANGLES)


def test_quarter_turns_have_plain_angles():
    assert rpy_of(np.eye(3)) == (0, 0, 0)
    assert rpy_of(so3.from_rpy(0, math.pi / 2, 0)) == (0, math.pi / 2, 0)
    assert rpy_of(so3.from_rpy(0, 0, -math.pi / 2)) == (0, 0, -math.pi / 2)


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "pieces"),
    [
        ('type="continuous"', 'type="floating"', ["'elbow' is floating", "continuous", "free"]),
        ('type="continuous"', 'type="planar"', ["joint 'elbow' is planar", "revolute"]),
        ('<axis xyz="0 1 1"/>', '<mimic joint="elbow"/>', ["'shoulder' mimics", "independent"]),
        ('<axis xyz="0 1 1"/>', '<axis xyz="0 0 0"/>', ["joint 'shoulder'", "zero vector"]),
        ('<axis xyz="0 1 1"/>', '<axis xyz="0 1"/>', ["'shoulder'", "xyz", "3 numbers", "'0 1'"]),
        ('<axis xyz="0 1 1"/>', '<axis xyz="a b c"/>', ["3 numbers", "'a b c'"]),
        ('<axis xyz="0 1 1"/>', '<axis xyz="nan 0 1"/>', ["3 numbers", "'nan 0 1'"]),
        ('<axis xyz="0 1 1"/>', '<axis xyz="inf 0 1"/>', ["3 numbers", "'inf 0 1'"]),
        ('<axis xyz="0 1 1"/>', '<axis xyz="0,1 1 1"/>', ["no comma", "'0,1 1 1'"]),
        ('<axis xyz="0 1 1"/>', '<axis xyz="0 1_0 1"/>', ["3 numbers", "'0 1_0 1'"]),
        ('<axis xyz="0 1 1"/>', '<axis xyz="0 \u0661 1"/>', ["3 numbers"]),
        ('<axis xyz="0 1 1"/>', '<axis xyz="0 1e300 1"/>', ["up to 1e+30", "1e300"]),
        ('<axis xyz="0 1 1"/>', '<axis xyz="${x} 0 1"/>', ["'shoulder'", "<axis> is xacro"]),
        ('<axis xyz="0 1 1"/>', '<axis xyz="$(arg x) 0 1"/>', ["xacro", "expand it first"]),
        ('type="continuous"', 'type="revolut"', ["joint 'elbow' is revolut", "revolute"]),
        ('<mass value="2.5"/>', "", ["link 'upper'", "<mass>"]),
        ('<mass value="2.5"/>', "<mass/>", ["link 'upper'", 'value="..."']),
        ('<mass value="2.5"/>', '<mass value="-1"/>', ["link 'upper'", "mass is -1 kg"]),
        ('<mass value="2.5"/>', '<mass value="1e999"/>', ["link 'upper'", "a number", "'1e999'"]),
        ('ixx="0.03"', 'ixx="3"', ["upper", "triangle inequality"]),
        ('damping="0.7"', 'damping="-1"', ["'shoulder'", "damping is -1", "negative"]),
        ('<parent link="slider"/>', "", ["joint 'flange'", "<parent link="]),
        ('<parent link="slider"/>', '<parent link="x"/>', ["'flange' names link 'x'", "upper"]),
        ('<parent link="slider"/>', '<parent link="tool"/>', ["one tree", "no loop"]),
        ('<child link="tool"/>', '<child link="upper"/>', ["one tree", "held twice are upper"]),
        ('<link name="tool"/>', "", ["4 links need 3 joints, got 4"]),
        ('<link name="tool"/>', '<link name="upper"/>', ["same name"]),
        ('<link name="tool"/>', "<link/>", ["a link", 'name="..."']),
        ('<link name="tool"/>', '<link name="base.link"/>', ["'base link'", "'base.link'", "both"]),
        ('lower="-1.5"', 'lower="3"', ["'shoulder'", "lower limit 3", "upper limit 2"]),
        ('<sphere radius="0.1"/>', '<sphere radius="0"/>', ["link 'slider'", "<sphere>"]),
        ('<sphere radius="0.1"/>', "<sphere/>", ["link 'slider'", 'radius="..."']),
        ('<limit upper="0.4" effort="1" velocity="1"/>', "", ["'lift' is prismatic", "<limit>"]),
        ('<robot name="two.link arm">', "<robot><xacro:include/>", ["xacro", "expand it first"]),
        ("<robot", "<sdf", ["not valid XML", "line 56", "mismatched tag"]),
        ("</robot>", "", ["not valid XML", "no element found"]),
    ],
)  # fmt: skip
def test_a_mistake_is_answered_with_the_place_that_holds_it(read, old, new, pieces):
    assert old in ARM
    with complains(FileError, "arm.urdf", *pieces):
        read(ARM.replace(old, new))


@pytest.mark.parametrize(
    ("text", "piece"),
    [
        ("", "no element found"),
        ("not XML", "not valid XML"),
        ("<sdf/>", "root element is <sdf>"),
        ("<robot/>", "1 to 1,000 links, got 0"),
        ("<robot>" + "<link name='a'/>" * 1001 + "</robot>", "got 1,001"),
        ("<robot><link name='a'/>" + "<joint/>" * 100_000 + "</robot>", "got 100,000"),
        ("<a>" * 200_000, "nested more than 100 deep"),
        ('<?xml version="1.0" encoding="utf-99"?><robot/>', "encoding"),
    ],
)
def test_what_is_no_robot_is_refused(read, text, piece):
    with complains(FileError, "arm.urdf", piece):
        read(text)


LAUGHS = "".join(
    f'<!ENTITY l{k} "{f"&l{k - 1};" * 10}">' if k else '<!ENTITY l0 "laugh">' for k in range(12)
)


@pytest.mark.parametrize(
    "text",
    [
        f'<!DOCTYPE robot [{LAUGHS}]><robot name="&l11;"/>',
        f'<!DOCTYPE robot [<!ENTITY a "{"x" * 100_000}">]><robot>{"&a;" * 100_000}</robot>',
        '<!DOCTYPE robot [<!ENTITY a SYSTEM "file:///etc/passwd">]><robot name="&a;"/>',
    ],
    ids=["billion laughs", "quadratic blowup", "a file from elsewhere"],
)
def test_entities_are_refused_at_once(read, text):
    start = time.perf_counter()
    with complains(FileError, "arm.urdf", "entity", "write its text out"):
        read(text)
    assert time.perf_counter() - start < SOON


@pytest.mark.parametrize("text", ["1" * 1_000_000 + "x", "0," + " " * 1_000_000 + ",0"])
def test_a_long_number_is_refused_at_once(read, text):
    start = time.perf_counter()
    with complains(FileError, "arm.urdf", "'shoulder'", "3 numbers"):
        read(ARM.replace('<axis xyz="0 1 1"/>', f'<axis xyz="{text}"/>'))
    assert time.perf_counter() - start < SOON


def test_a_mistake_in_xml_is_found_by_its_line_and_column(read):
    with complains(FileError, "not valid XML at line 2, column 8: mismatched tag"):
        read("<robot>\n  <a></b>\n</robot>")  # b is the eighth character


def test_a_large_robot_is_read_soon(read):
    """The largest that is allowed, as a chain: checking it takes the square of its length."""
    links = "".join(f"<link name='l{k}'/>" for k in range(1000))
    joints = "".join(
        f"<joint name='j{k}' type='fixed'><parent link='l{k}'/><child link='l{k + 1}'/></joint>"
        for k in range(999)
    )
    start = time.perf_counter()
    assert len(read(f"<robot>{links}{joints}</robot>").bodies) == 1000
    assert time.perf_counter() - start < SOON


def test_missing_binary_and_odd_paths_are_explained(tmp_path):
    with complains(FileError, "none.urdf", "cannot be read", "No such file"):
        read_urdf(tmp_path / "none.urdf")
    with complains(FileError, "cannot be read"):
        read_urdf(tmp_path)
    (tmp_path / "noise.urdf").write_bytes(bytes(range(256)))
    with complains(FileError, "noise.urdf", "not valid XML"):
        read_urdf(tmp_path / "noise.urdf")
    for path in (None, 3, ""):
        with complains(FileError, "a file is given by its path"):
            read_urdf(path)


def test_options_that_do_not_fit_are_explained(tmp_path):
    path = tmp_path / "it.urdf"
    with complains(StateError, "hinges='dyad'", "Model", "Organism"):
        write_urdf(examples.crab().model(), path, hinges="dyad")
    with complains(StateError, "hinges must be", "'both'"):
        write_urdf(examples.crab(), path, hinges="both")
    with complains(StateError, "Organism or a Model", "ModuleType"):
        write_urdf(catalog["scout"], path)
    for name in ("", "a\nb", "\0", 3):
        with complains(StateError, "printable"):
            write_urdf(examples.crab(), path, name=name)
    assert not path.exists()


@pytest.mark.parametrize("encoding", ["shift_jis", "utf-99"])
def test_encodings_that_are_not_read_are_named(tmp_path, encoding):
    text = f'<?xml version="1.0" encoding="{encoding}"?><robot name="r"><link name="a"/></robot>'
    (tmp_path / "arm.urdf").write_text(text, encoding="ascii")
    with complains(FileError, "arm.urdf", "encoding"):
        read_urdf(tmp_path / "arm.urdf")


def test_the_reason_of_an_encoding_is_told_in_up_to_200_characters(read):
    with complains(FileError, "not readable as XML: ") as told:
        read(f'<?xml version="1.0" encoding="{"x" * 300}"?><robot/>')
    reason = told.message.partition("not readable as XML: ")[2]
    assert len(reason) == 200
    assert reason.startswith("unknown encoding: xxx")


def test_names_that_xml_must_escape_are_kept(tmp_path):
    write_urdf(examples.crab(), tmp_path / "it.urdf", name='<"A&B">')
    assert read_urdf(tmp_path / "it.urdf").title == '<"A&B">'


def test_modules_may_be_called_like_the_world(tmp_path):
    organism = Organism.start("scout", "world").dock("world", 3, "world_", 4)
    write_urdf(organism, tmp_path / "it.urdf")
    peer = pin.buildModelFromUrdf(str(tmp_path / "it.urdf"))
    assert {"world", "world_", "world__"} <= {frame.name for frame in peer.frames}
