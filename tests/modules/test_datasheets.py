"""Datasheets of users: read from files, edited, and refused with the name of the field."""

import copy
import json

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from modurob import (
    Body,
    DatasheetError,
    FileError,
    Joint,
    ModuleType,
    Port,
    Shape,
    UnknownNameError,
    catalog,
)
from modurob.modules.datasheet import DatasheetPart
from modurob.modules.files import parse_json
from oracles import WRIST, complains

ROUNDING = 1e-14  # a few products of numbers of size 1
NAN, INFINITY = float("nan"), float("inf")

GRIPPER = {
    "format": "modurob-module",
    "version": 1,
    "name": "gripper",
    "symbol": "G",
    "size": 0.1,
    "bodies": [
        {"name": "palm", "mass": 0.4, "inertia": [1e-3, 1e-3, 1e-3]},
        {"name": "finger", "mass": 0.1, "center_of_mass": [0, 0, 0.03], "inertia": [1e-4] * 3},
    ],
    "joints": [{"name": "close", "kind": "prismatic", "parent": "palm", "child": "finger"}],
    "ports": [
        {
            "label": 1,
            "body": "palm",
            "position": [0, 0, -0.05],
            "normal": [0, 0, -1],
            "reference": [1, 0, 0],
            "connector": "round",
            "mates": ["round"],
        }
    ],
    "shapes": [{"body": "palm", "form": "box", "size": [0.1, 0.1, 0.1]}],
}
GRIPPER_TOML = """
format = "modurob-module"
version = 1
name = "gripper"
symbol = "G"
size = 0.1
bodies = [
  {name = "palm", mass = 0.4, inertia = [1e-3, 1e-3, 1e-3]},
  {name = "finger", mass = 0.1, center_of_mass = [0, 0, 0.03], inertia = [1e-4, 1e-4, 1e-4]},
]
joints = [{name = "close", kind = "prismatic", parent = "palm", child = "finger"}]
shapes = [{body = "palm", form = "box", size = [0.1, 0.1, 0.1]}]
[[ports]]
label = 1
body = "palm"
position = [0, 0, -0.05]
normal = [0, 0, -1]
reference = [1, 0, 0]
connector = "round"
mates = ["round"]
"""


def changed(path, value):
    """GRIPPER with one field changed (``...`` removes it); path like ``bodies.0.mass``."""
    data = copy.deepcopy(GRIPPER)
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    place = data
    for part in way:
        place = place[part]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return data


def test_json_and_toml_files_give_the_same_module(tmp_path):
    (tmp_path / "gripper.json").write_text(json.dumps(GRIPPER))
    (tmp_path / "gripper.toml").write_text(GRIPPER_TOML)
    from_json = ModuleType.from_file(tmp_path / "gripper.json")
    assert from_json == ModuleType.from_file(tmp_path / "gripper.toml") == ModuleType(**GRIPPER)
    assert from_json.port(1).side == 1
    assert from_json.mass == 0.5


WRONG_FIELDS = {
    "typo": ("bodies.0.weight", 3.0, "bodies[0].weight: no such field", "fields are name, mass"),
    "typo at the top": ("colour", "red", "colour: no such field", "format, version", "shapes"),
    "missing field": ("ports.0.normal", ..., "ports[0].normal", "field required"),
    "missing size": ("size", ..., "size", "field required"),
    "missing side": ("ports.0.label", "bottom", "ports[0].side", "field required"),
    "unknown body of a joint": (
        "joints.0.child", "thumb", "joint 'close' names body 'thumb'", "palm, finger",
    ),
    "unknown body of a port": (
        "ports.0.body", "thumb", "port 1 names body 'thumb'", "palm, finger",
    ),
    "unknown body of a shape": (
        "shapes.0.body", "thumb", "a shape names body 'thumb'", "palm, finger",
    ),
    "unknown kind of joint": (
        "joints.0.kind", "ball", "joints[0].kind", "'revolute', 'prismatic' or 'fixed'", "'ball'",
    ),
    "mass that is no number": ("bodies.0.mass", NAN, "bodies[0].mass", "finite", "nan"),
    "infinite mass": ("bodies.0.mass", INFINITY, "bodies[0].mass", "finite", "inf"),
    "negative mass": ("bodies.0.mass", -1.0, "bodies[0].mass", "greater than or equal to 0", "-1"),
    "mass of words": ("bodies.0.mass", "heavy", "bodies[0].mass", "valid number", "'heavy'"),
    "negative inertia": (
        "bodies.0.inertia", [-1, 1, 1], "bodies[0]: body 'palm': ", "must not be negative",
    ),
    "inertia against the triangle inequality": (
        "bodies.0.inertia", [1, 1, 3], "bodies[0]", "'palm'", "triangle inequality", "1, 1, 3",
    ),
    "inertia that is not symmetric": (
        "bodies.0.inertia", [[1, 0.5, 0], [0, 1, 0], [0, 0, 1]], "bodies[0]", "symmetric",
    ),
    "inertia that is not positive": (
        "bodies.0.inertia", [[1, 2, 0], [2, 1, 0], [0, 0, 1]], "bodies[0]", "must not be negative",
    ),
    "inertia of two numbers": ("bodies.0.inertia", [1, 1], "bodies[0].inertia"),
    "inertia without mass": ("bodies.1.mass", 0.0, "bodies[1]", "'finger'", "without mass"),
    "axis of length zero": ("joints.0.axis", [0, 0, 0], "joints[0].axis", "zero vector"),
    "limits the wrong way round": (
        "joints.0.lower", 1.0, "joints[0]",
    ),
    "reference along the normal": (
        "ports.0.reference", [0, 0, 1], "ports[0]", "not perpendicular",
    ),
    "turn of a full circle": ("ports.0.turns", [360], "ports[0].turns[0]", "less than 360"),
    "no turns": ("ports.0.turns", [], "ports[0].turns", "at least 1"),
    "no bodies": ("bodies", [], "bodies", "at least 1"),
    "no ports": ("ports", [], "ports", "at least 1"),
    "body twice": ("bodies.1.name", "palm", "'palm' is there twice"),
    "port twice": ("ports", [GRIPPER["ports"][0]] * 2, "port 1 is there twice"),
    "loose body": ("joints", [], "2 bodies into one tree", "1 joints", "got 0 joints"),
    "joint of a body with itself": ("joints.0.child", "palm", "into one tree"),
    "size zero": ("size", 0, "size", "greater than 0"),
    "long symbol": ("symbol", "GR", "symbol", "at most 1"),
    "name of two words": ("name", "big gripper", "name: a name starts with a letter", "'_' or '-'"),
    "dyad joint that slides": ("dyad_joint", "close", "dyad_joint 'close'", "revolute"),
    "dyad joint that is not there": ("dyad_joint", "open", "dyad_joint 'open'", "revolute"),
    "box of two sizes": ("shapes.0.size", [1, 2], "shapes[0]", "box needs 3 sizes, got 2"),
    "short color": ("shapes.0.color", "#12", "shapes[0].color: a color is #rrggbb", "'#12'"),
    "color by name": ("shapes.0.color", "red", "shapes[0].color: a color is #rrggbb", "'red'"),
    "mass in quotes": ("bodies.0.mass", "0.4", "bodies[0].mass", "valid number", "'0.4'"),
    "mass that is true": ("bodies.0.mass", True, "bodies[0].mass", "valid number", "True"),
    "position in quotes": ("ports.0.position", [0, 0, "1"], "ports[0].position[2]", "'1'"),
    "inertia that is true": ("bodies.0.inertia", [True] * 3, "bodies[0].inertia[0][0]", "True"),
    "limit that is true": ("joints.0.upper", True, "joints[0].upper", "True"),
    "size in quotes": ("size", "0.1", "size", "valid number", "'0.1'"),
    "label that is true": ("ports.0.label", True, "ports[0].label: a label is", "True"),
    "label of a fraction": ("ports.0.label", 1.5, "ports[0].label: a label is", "1.5"),
    "label of two words": (
        "ports.0", GRIPPER["ports"][0] | {"label": "on top", "side": 1},
        "ports[0].label: a label is a whole number or a name", "'on top'",
    ),
    "side that is true": ("ports.0.side", True, "ports[0].side", "valid integer", "True"),
    "turn that is true": ("ports.0.turns", [True], "ports[0].turns[0]", "valid integer"),
    "flag in quotes": ("grid", "yes", "grid", "valid boolean", "'yes'"),
    "blank symbol": ("symbol", " ", "symbol: a symbol is one visible character", "' '"),
    "side twice": (
        "ports", [GRIPPER["ports"][0], GRIPPER["ports"][0] | {"label": "top", "side": 1}],
        "side 1 is there twice",
    ),
    "wrong version": ("version", 2, "version"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG_FIELDS.values(), ids=WRONG_FIELDS)
def test_wrong_fields_of_a_module_file_are_named(tmp_path, case):
    path, value, *pieces = case
    data = changed(path, value)
    if path == "joints.0.lower":
        data["joints"][0]["upper"] = -1.0
        pieces += ["lower limit 1.0 is above upper limit -1.0"]
    file = tmp_path / "gripper.json"
    file.write_text(json.dumps(data))
    with complains(FileError, "gripper.json", *pieces):
        ModuleType.from_file(file)
    if path != "version":
        with complains(DatasheetError, *pieces):
            ModuleType(**data)


def test_files_that_are_no_modules_are_refused(tmp_path):
    file = tmp_path / "it.json"
    for content, *pieces in [
        ("{}", 'no "format" field'),
        (
            '{"format": "modurob-organism", "version": 1}',
            "its format is 'modurob-organism'",
            "-module",
        ),
        ('{"format": "modurob-module", "version": 9}', "newer modurob", "Update"),
        ("no json", "not valid JSON at line 1, column 1"),
    ]:
        file.write_text(content)
        with complains(FileError, "it.json", *pieces):
            ModuleType.from_file(file)
    toml = tmp_path / "it.toml"
    for content in ("a = ", "a = " + "[" * 100_000, 'format = "modurob-module"'):
        toml.write_text(content)
        with complains(FileError, "it.toml"):
            ModuleType.from_file(toml)


def test_a_joint_that_is_there_twice_is_named():
    """Bodies in a row, so that nothing else is wrong with it."""
    data = json.loads(json.dumps(GRIPPER))
    data["bodies"].append(data["bodies"][1] | {"name": "tip"})
    data["joints"].append(data["joints"][0] | {"parent": "finger", "child": "tip"})
    with complains(DatasheetError, "joint 'close' is there twice"):
        ModuleType(**data)
    data["joints"][1]["name"] = "bend"
    assert [joint.name for joint in ModuleType(**data).joints] == ["close", "bend"]


def test_long_values_are_cut_in_errors():
    cut = f"'{27 * 'x'}...{28 * 'x'}'"
    for length, shown in ((58, "'" + 58 * "x" + "'"), (59, cut), (5000, cut)):
        with pytest.raises(DatasheetError) as caught:
            ModuleType(**changed("bodies.0.mass", length * "x"))
        assert str(caught.value).endswith(f"(given {shown})")


def test_long_lists_are_cut_in_errors():
    moments = [0.125 * k for k in range(12)]
    with pytest.raises(DatasheetError) as caught:
        ModuleType(**changed("bodies.0.inertia", moments))
    shown = str(moments)[:57]
    assert len(str(moments)) > 60
    assert f"(given {shown}...)" in str(caught.value)


def test_the_first_five_mistakes_are_told():
    for mistakes in (5, 6, 8):
        wrong = {f"extra{k}": k for k in range(mistakes)}
        with pytest.raises(DatasheetError) as caught:
            ModuleType(**GRIPPER, **wrong)
        told = str(caught.value).split("; extra")
        assert len(told) == 5
        assert ("more" in told[-1]) == (mistakes > 5)
        assert mistakes == 5 or told[-1].endswith(f"; and {mistakes - 5} more")


def test_an_entry_that_is_wrong_does_not_make_its_list_too_short():
    with pytest.raises(DatasheetError) as caught:
        ModuleType(**changed("ports.0.body", 3))
    assert str(caught.value) == "ports[0].body: must be a valid string (given 3)"


def test_all_findings_of_a_file_name_their_field(tmp_path):
    data = changed("bodies.0.mass", -1.0)
    data["bodies"][0]["color"] = "red"
    data["joints"][0]["lower"] = "low"
    with complains(
        DatasheetError, "bodies[0].mass: ", "; bodies[0].color: no such", "; joints[0].lower: "
    ):
        ModuleType.model_validate(data)


@pytest.mark.parametrize("data", [3, "backbone", [GRIPPER]])
def test_what_is_no_object_is_no_datasheet(data):
    with complains(DatasheetError, "must be a valid dictionary", "given"):
        ModuleType.model_validate(data)


def test_a_file_may_name_its_schema(tmp_path):
    file = tmp_path / "gripper.json"
    file.write_text(json.dumps({"$schema": "module.schema.json", **GRIPPER}))
    assert ModuleType.from_file(file) == ModuleType(**GRIPPER)


@pytest.mark.parametrize("path", [3, None, 2.5])
def test_a_path_that_is_none_is_refused(path):
    with complains(FileError, "given by its path", repr(path)):
        ModuleType.from_file(path)


def cube(side, **fields):
    """The Backbone with other numbers at one of its ports."""
    data = catalog["backbone"].model_dump()
    next(port for port in data["ports"] if port["label"] == side).update(fields)
    return data


TOP = {"position": (0, 0, 0.05), "normal": (0, 0, 1), "reference": (1, 0, 0)}


@pytest.mark.parametrize(
    "fields",
    [
        {"position": (0, 0, 0)},
        {"position": (-0.05, 0, 0)},
        {"position": (0.05, 0.01, 0)},
        {"position": (0.05, 0, 0.01)},
        {"normal": (1, 1, 0)},
        {"reference": (0, 1, 0)},
        {"reference": (0, 0, -1)},
        TOP,
    ],
)
def test_docks_of_a_grid_module_lie_on_the_plane(fields):
    with complains(DatasheetError, "port 2", "grid module", "+x, -x, +y or -y", "+z"):
        ModuleType(**cube(2, **fields))
    ModuleType(**cube(2, **fields) | {"grid": False})
    ModuleType(**cube(7, **TOP))  # the mount of virtual joints is no dock


@pytest.mark.parametrize(("off", "taken"), [(1e-9, True), (1.1e-9, False)])
def test_docks_of_a_grid_module_may_be_off_by_a_billionth_of_its_size(off, taken):
    """A cube of one meter, so that its size times the tolerance is the tolerance."""
    data = ModuleType(**cube(2)).with_parameters(size=1.0).model_dump()
    next(port for port in data["ports"] if port["label"] == 2)["position"] = (0.5, off, 0.0)
    if taken:
        assert ModuleType(**data).port(2).position[1] == off
    else:
        with complains(DatasheetError, "port 2: a dock of a grid module lies on"):
            ModuleType(**data)


@pytest.mark.parametrize(
    ("make", "pieces"),
    [
        (lambda: Body(name="a", mass=-1), ("mass", "-1")),
        (lambda: Body(name="1a"), ("name", "'1a'")),
        (lambda: Joint(name="j", kind="revolute", parent="a"), ("child", "field required")),
        (lambda: Shape(body="a", form="sphere", size=(-1,)), ("size[0]", "greater than 0")),
        (
            lambda: Port(
                label=1, body="a", position=(0, 0, 0), normal=(0, 0, 0), reference=(1, 0, 0),
                connector="c", mates=["c"],
            ),
            ("normal", "zero vector"),
        ),
    ],
)  # fmt: skip
def test_parts_of_a_datasheet_refuse_bad_data_in_one_line(make, pieces):
    with complains(DatasheetError, *pieces):
        make()


@pytest.mark.parametrize(
    ("ask", "pieces"),
    [
        (lambda k: k.port(6), ("no port 6 on a backbone", "2, 3, 4, 5")),
        (lambda k: k.port([3]), ("no port [3] on a backbone", "2, 3, 4, 5")),
        (lambda k: k.joint("elbow"), ("no joint 'elbow' in a backbone", "hinge")),
        (lambda k: k.body_index("C"), ("no body 'C' in a backbone", "A, B")),
    ],
)
def test_unknown_parts_are_answered_with_the_known_ones(ask, pieces):
    with complains(UnknownNameError, *pieces):
        ask(catalog["backbone"])


# -- values ----------------------------------------------------------------------------------------

directions = st.tuples(*[st.floats(-10, 10)] * 3)


@given(axis=directions, normal=directions)
def test_datasheets_round_trip_through_json_whatever_their_directions(axis, normal):
    assume(np.linalg.norm(axis) > 1e-3)
    assume(np.linalg.norm(normal) > 1e-3)
    reference = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    data = copy.deepcopy(GRIPPER)
    data["joints"][0]["axis"] = axis
    data["ports"][0] |= {"normal": normal, "reference": reference.tolist()}
    kind = ModuleType(**data)
    assert np.linalg.norm(kind.joints[0].axis) == pytest.approx(1, abs=ROUNDING)
    again = ModuleType(**json.loads(kind.model_dump_json()))
    assert again == kind
    assert hash(again) == hash(kind)
    assert kind.with_parameters(mass=kind.mass).joints == kind.joints


@pytest.mark.parametrize("kind", [*catalog.values(), WRIST], ids=lambda kind: kind.name)
def test_every_kind_round_trips_through_json(kind):
    assert ModuleType(**json.loads(kind.model_dump_json())) == kind


def test_kinds_are_values():
    kind = catalog["backbone"]
    assert kind == ModuleType(**kind.model_dump())
    assert kind != catalog["scout"]
    assert kind != kind.with_parameters(mass=2.0)
    assert kind != "backbone"
    with pytest.raises(ValueError, match="frozen"):
        kind.size = 3.0


def test_a_kind_prints_as_one_short_line():
    kind = catalog["backbone"]
    assert str(kind) == repr(kind)
    assert str(kind) == "<ModuleType backbone: 1 kg, joints hinge (revolute), docks 2, 3, 4, 5>"


def test_numbers_of_numpy_become_plain_numbers():
    body = Body(
        name="a",
        mass=np.float32(2),
        center_of_mass=np.arange(3),
        inertia=1e-3 * np.ones(3),
    )
    assert [type(number) for number in (body.mass, *body.center_of_mass)] == [float] * 4
    assert body == Body(name="a", mass=2, center_of_mass=(0, 1, 2), inertia=[1e-3] * 3)
    port = GRIPPER["ports"][0] | {"label": np.int64(4), "turns": [np.int8(90)]}
    assert Port(**port) == Port(**port | {"label": 4, "turns": [90]})
    assert type(Port(**port).side) is int


def test_connectors_mate_when_both_accept_the_other():
    def port(connector, *mates):
        return Port(**GRIPPER["ports"][0] | {"connector": connector, "mates": mates})

    plug, socket, claw = port("plug", "socket"), port("socket", "plug"), port("claw", "socket")
    assert plug.mates_with(socket)
    assert socket.mates_with(plug)
    assert not claw.mates_with(socket)  # which does not accept it
    assert not socket.mates_with(claw)
    assert not plug.mates_with(plug)


def test_directions_are_normalized_and_zeros_have_no_sign():
    for length in (1e-3, 0.999, 1.0, 1.001, 70.0):
        joint = Joint(name="j", kind="revolute", parent="a", child="b", axis=(0, -length, 0))
        assert joint.axis == (0.0, -1.0, 0.0)
    body = Body(name="a", mass=1, center_of_mass=(-0.0, np.float64(-0.0), 0))
    assert not np.signbit(body.center_of_mass).any()


# -- editing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["backbone", "superbot", "giusti_c", "chen_revolute"])
def test_a_new_mass_scales_all_bodies_and_inertias(name):
    kind = catalog[name]
    heavy = kind.with_parameters(mass=3 * kind.mass)
    assert heavy.mass == pytest.approx(3 * kind.mass)
    for new, old in zip(heavy.bodies, kind.bodies, strict=True):
        assert new.mass == pytest.approx(3 * old.mass)
        assert new.center_of_mass == old.center_of_mass
        np.testing.assert_allclose(new.inertia, 3 * np.array(old.inertia), rtol=ROUNDING)


@pytest.mark.parametrize("name", ["backbone", "superbot", "giusti_c", "chen_prismatic"])
def test_a_new_size_scales_lengths_and_keeps_masses_and_angles(name):
    kind = catalog[name]
    wide = kind.with_parameters(size=2 * kind.size)
    assert wide.mass == kind.mass
    for label in kind.docks:
        T, wide_T = kind.port_pose(label), wide.port_pose(label)
        np.testing.assert_allclose(wide_T[:3, 3], 2 * T[:3, 3], rtol=0, atol=ROUNDING)
        np.testing.assert_array_equal(wide_T[:3, :3], T[:3, :3])
    for new, old in zip(wide.bodies, kind.bodies, strict=True):
        np.testing.assert_allclose(new.inertia, 4 * np.array(old.inertia), rtol=ROUNDING)
        assert new.center_of_mass == tuple(2 * x for x in old.center_of_mass)
    for new, old in zip(wide.shapes, kind.shapes, strict=True):
        assert (new.size, new.position, new.rpy) == (
            tuple(2 * x for x in old.size), tuple(2 * x for x in old.position), old.rpy
        )  # fmt: skip
    for new, old in zip(wide.joints, kind.joints, strict=True):
        stretch = 2 if old.kind == "prismatic" else 1
        assert (new.lower, new.upper) == tuple(
            None if end is None else stretch * end for end in (old.lower, old.upper)
        )


def test_a_new_size_scales_meshes():
    mesh = {"body": "palm", "file": "palm.stl", "scale": (1, -2, 3), "position": (0.1, 0, 0.2)}
    (found,) = ModuleType(**GRIPPER, meshes=[mesh]).with_parameters(size=0.3).meshes
    np.testing.assert_allclose(found.scale, (3, -6, 9), rtol=ROUNDING)
    np.testing.assert_allclose(found.position, (0.3, 0, 0.6), rtol=ROUNDING)


def test_a_kind_of_several_bodies_without_mass_may_stay_without():
    data = catalog["backbone"].model_dump()
    for body in data["bodies"]:
        body.update(mass=0.0, inertia=(0.0, 0.0, 0.0))
    empty = ModuleType(**data)
    assert empty.with_parameters(mass=0.0).mass == 0
    with complains(DatasheetError, "no mass to scale", "give the body to change"):
        empty.with_parameters(mass=1.0)


def test_a_body_without_mass_gets_one():
    kind = catalog["backbone"]
    assert kind.bodies[1].mass == 0
    heavier = kind.with_parameters(body="B", mass=0.25)
    assert [body.mass for body in heavier.bodies] == [kind.bodies[0].mass, 0.25]
    assert not np.any(heavier.bodies[1].inertia)


@pytest.mark.parametrize(("off", "taken"), [(1e-9, True), (1.1e-9, False)])
def test_a_reference_may_be_off_by_a_billionth(off, taken):
    data = changed("ports.0.reference", [1, 0, off])
    if taken:
        assert ModuleType(**data).port(1).reference == (1, 0, off)
    else:
        with complains(DatasheetError, "ports[0]", "not perpendicular"):
            ModuleType(**data)


def test_one_body_or_joint_can_be_edited_alone():
    kind = catalog["superbot"].with_parameters(mass=1.0, body="end_a")
    assert [body.mass for body in kind.bodies] == [1.0, 0.125, 0.125, 0.125]
    kind = catalog["superbot"].with_parameters(inertia=0.01, body="end_b")
    for new, old in zip(kind.bodies, catalog["superbot"].bodies, strict=True):
        moved = new.name == "end_b"
        assert new.inertia == (Body(name="x", mass=1, inertia=[0.01] * 3) if moved else old).inertia
    kind = catalog["superbot"].with_parameters(viscous=0.5, limits=(None, 1.0), joint="roll")
    assert [joint.viscous for joint in kind.joints] == [0, 0.5, 0]
    assert (kind.joint("roll").lower, kind.joint("roll").upper) == (None, 1.0)
    assert kind.joint("yaw") == catalog["superbot"].joint("yaw")


@pytest.mark.parametrize(
    "inertia",
    [
        2e-3,
        [2e-3] * 3,
        (2e-3 * np.eye(3)).tolist(),
        np.float64(2e-3),
        np.array(2e-3),
        np.full(3, 2e-3),
        2e-3 * np.eye(3),
    ],
)
def test_inertia_may_be_given_in_three_ways(inertia):
    kind = catalog["backbone"].with_parameters(inertia=inertia)
    np.testing.assert_array_equal(kind.bodies[0].inertia, 2e-3 * np.eye(3))


def test_parameters_may_be_numbers_and_arrays_of_numpy():
    kind = catalog["backbone"]
    plain = kind.with_parameters(mass=2, size=0.5, viscous=1, limits=(-1, 2))
    numpy = kind.with_parameters(
        mass=np.int64(2), size=np.float32(0.5), viscous=np.float32(1), limits=np.array([-1, 2])
    )
    assert numpy == plain
    assert kind.with_parameters(limits=(None, np.int8(1))).joint("hinge").upper == 1.0


@pytest.mark.parametrize(
    ("kind", "parameters", "error", "pieces"),
    [
        ("backbone", {"masss": 2.0}, DatasheetError, ("no parameter masss", "mass, size, inert")),
        ("backbone", {"body": "zz"}, UnknownNameError, ("no body 'zz'", "A, B")),
        ("backbone", {"body": ["A"], "mass": 1}, UnknownNameError, ("no body ['A']", "A, B")),
        ("backbone", {"body": "A"}, DatasheetError, ("body 'A'", "mass or inertia")),
        ("backbone", {"body": "A", "size": 1.0}, DatasheetError, ("body 'A'", "mass or inertia")),
        ("backbone", {"joint": "hinge", "mass": 3}, DatasheetError, ("'hinge'", "viscous")),
        ("backbone", {"body": "", "inertia": 1.0}, UnknownNameError, ("no body ''", "A, B")),
        ("backbone", {"mass": True}, DatasheetError, ("mass", "True")),
        ("backbone", {"size": True}, DatasheetError, ("size", "True")),
        ("backbone", {"limits": np.array(1.0)}, DatasheetError, ("limits are (lower, upper)",)),
        ("backbone", {"limits": np.zeros(3)}, DatasheetError, ("limits are (lower, upper)",)),
        ("backbone", {"limits": ("a", "b")}, DatasheetError, ("joints[0].lower", "'a'")),
        ("backbone", {"inertia": "round"}, DatasheetError, ("bodies[0].inertia", "'round'")),
        ("backbone", {"mass": NAN}, DatasheetError, ("mass", "nan")),
        ("backbone", {"mass": -1.0}, DatasheetError, ("mass", "-1")),
        ("backbone", {"mass": INFINITY}, DatasheetError, ("mass", "inf")),
        ("backbone", {"mass": "heavy"}, DatasheetError, ("mass", "'heavy'")),
        ("backbone", {"size": 0.0}, DatasheetError, ("size", "positive", "0")),
        ("backbone", {"size": NAN}, DatasheetError, ("size", "positive", "nan")),
        ("backbone", {"size": "wide"}, DatasheetError, ("size", "positive", "'wide'")),
        ("backbone", {"inertia": [1, 1, 3]}, DatasheetError, ("bodies[0]", "triangle")),
        ("backbone", {"inertia": -1.0}, DatasheetError, ("bodies[0]", "negative")),
        ("superbot", {"inertia": 1.0}, DatasheetError, ("give the body", "end_a", "end_b")),
        ("backbone", {"viscous": -1.0}, DatasheetError, ("joints[0].viscous", "-1")),
        ("backbone", {"coulomb": NAN}, DatasheetError, ("joints[0].coulomb", "nan")),
        ("backbone", {"limits": (1, -1)}, DatasheetError, ("lower limit 1.0", "upper limit -1.0")),
        ("backbone", {"limits": 1.0}, DatasheetError, ("limits", "1.0")),
        ("backbone", {"mass": 1.0, "body": "C"}, UnknownNameError, ("no body 'C'", "A, B")),
        ("backbone", {"viscous": 1.0, "joint": "e"}, UnknownNameError, ("no joint 'e'", "hinge")),
        ("virtual_px", {"mass": 1.0}, DatasheetError, ("no mass to scale", "give the body")),
    ],
)
def test_wrong_parameters_are_refused_in_one_line(kind, parameters, error, pieces):
    with complains(error, *pieces):
        catalog[kind].with_parameters(**parameters)


def test_a_field_that_is_not_there_is_answered_with_those_of_its_own_part():
    """Also of a part that stands alone, not in a list."""

    class Hand(DatasheetPart):
        body: Body

    with complains(DatasheetError, "body.color: no such field; fields are name, mass, center"):
        Hand(body={"name": "a", "color": "red"})


def test_a_place_in_a_file_is_cut_after_two_hundred_characters():
    long = "x" * 300
    with pytest.raises(FileError) as caught:
        parse_json(json.dumps({long: float("nan")}), "it")
    assert str(caught.value) == f"it: {long[:200]}: a number must be finite, got nan"
