"""CoBRA files with mistakes are answered with the field that holds them."""

import copy
import datetime
import json

import numpy as np
import pytest

from modurob import FileError, StateError, catalog, examples
from modurob.interop import (
    read_cobra_assembly,
    read_cobra_modules,
    write_cobra_assembly,
    write_cobra_modules,
)
from modurob.interop.cobra_reader import _label, _sides
from modurob.interop.cobra_records import (
    AssemblyRecord,
    CobraModule,
    ConnectorRecord,
    LimitsRecord,
)
from modurob.interop.cobra_writer import label_id
from modurob.interop.conventions import to_name
from modurob.modules.datasheet import validated
from oracles import complains

HUGE = 2**70  # valid JSON, and beyond every integer type
MISSING = object()
FIRST = ("modules", 0)
BODY, JOINT = (*FIRST, "bodies", 0), (*FIRST, "joints", 0)
PORT = (*BODY, "connectors", 0)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The arm as two JSON documents."""
    folder = tmp_path_factory.mktemp("arm")
    write_cobra_modules(examples.arm("babac"), folder / "m.json")
    write_cobra_assembly(examples.arm("babac"), folder / "a.json")
    return [json.loads((folder / name).read_text()) for name in ("m.json", "a.json")]


def changed(document, place, value):
    document = copy.deepcopy(document)
    part = document
    for key in place[:-1]:
        part = part[key]
    if value is MISSING:
        del part[place[-1]]
    else:
        part[place[-1]] = value
    return document


def dump(path, data):
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("place", "value", "pieces"),
    [
        (("modules",), MISSING, ["modules: field required"]),
        (("modules",), [], ["modules", "at least 1"]),
        (("modules",), "x", ["modules", "valid list"]),
        ((*FIRST, "header"), MISSING, ["modules[0].header: field required"]),
        ((*FIRST, "header", "ID"), 7, ["modules[0].header.ID", "valid string", "given 7"]),
        ((*FIRST, "header", "ID"), "a\nb", ["modules[0].header.ID", "no control characters"]),
        ((*FIRST, "header", "name"), 7, ["modules[0].header.name", "valid string", "given 7"]),
        ((*BODY, "ID"), 7, ["modules[0].bodies[0].ID", "valid string", "given 7"]),
        (BODY, "it", ["modules[0].bodies[0]", "valid dictionary", "'it'"]),
        ((*JOINT, "parent"), 7, ["modules[0].joints[0].parent", "valid string", "given 7"]),
        ((*BODY, "mass"), HUGE, ["modules[0].bodies[0].mass", "64 bits"]),
        ((*BODY, "mass"), 1e300, ["modules[0].bodies[0].mass", "less than or equal to 1000"]),
        ((*BODY, "r_com"), [HUGE, 0, 0], ["modules[0].bodies[0].r_com[0]", "64 bits"]),
        ((*JOINT, "poseParent", 0, 3), HUGE, ["joints[0].poseParent", "64 bits"]),
        ((*JOINT, "poseParent", 0, 3), 1e300, ["joints[0].poseParent", "4x4 matrix"]),
        ((*JOINT, "limits", "positionLower"), HUGE, ["limits", "64 bits"]),
        ((*FIRST, "header", "ID"), True, ["modules[0].header.ID", "string"]),
        ((*FIRST, "header", "ID"), "giusti_a", ["module 'giusti_a' is there twice"]),
        ((*FIRST, "bodies"), [], ["modules[0].bodies", "at least 1"]),
        ((*BODY, "mass"), MISSING, ["modules[0].bodies[0].mass: field required"]),
        ((*BODY, "mass"), "1 kg", ["modules[0].bodies[0].mass", "valid number", "'1 kg'"]),
        ((*BODY, "mass"), -1.0, ["module 'giusti_b'", "body 'proximal'", "mass is -1 kg"]),
        ((*BODY, "mass"), float("nan"), ["bodies[0].mass", "finite"]),
        ((*BODY, "inertia"), [1, 2, 3], ["modules[0].bodies[0].inertia"]),
        ((*BODY, "inertia", 0, 1), 1.0, ["proximal", "symmetric"]),
        ((*BODY, "inertia", 0, 0), 1.0, ["proximal", "triangle inequality"]),
        ((*BODY, "ID"), "distal", ["body 'distal' is there twice"]),
        ((*JOINT, "type"), "spherical", ["modules[0].joints[0].type", "'revolute'", "spherical"]),
        ((*JOINT, "parent"), "nobody", ["joint 'joint' names body 'nobody'"]),
        ((*JOINT, "parent"), "distal", ["one tree", "1 joints"]),
        ((*FIRST, "joints"), [], ["one tree", "got 0 joints"]),
        ((*JOINT, "poseParent"), [[1, 0], [0, 1]], ["joints[0].poseParent", "4x4 matrix"]),
        ((*JOINT, "poseParent", 0, 0), "x", ["joints[0].poseParent", "4x4 matrix"]),
        ((*JOINT, "poseParent", 3), [0, 0, 0, 2], ["joints[0].poseParent", "last row"]),
        ((*JOINT, "poseParent", 0, 0), 2, ["poseParent of joint 'joint'", "not orthonormal"]),
        ((*JOINT, "limits", "positionLower"), "low", ["limits", "valid number", "'low'"]),
        ((*JOINT, "frictionViscous"), -1, ["joints[0].frictionViscous", "greater than or equal"]),
        ((*PORT, "gender"), "x", ["connectors[0].gender", "'f'", "'x'"]),
        ((*PORT, "pose", 0, 0), -1, ["connector 'in'", "not orthonormal"]),
        ((*PORT, "size"), "large", ["connectors[0].size"]),
        ((*PORT, "ID"), "base", ["port 'base' is there twice"]),
        ((*BODY, "visual"), [{"type": "box", "parameters": {"x": 1}}], ["box", "proximal", "x, y"]),
        ((*BODY, "visual"), [{"type": "mesh"}], ["a mesh of body 'proximal'", "parameter file"]),
        ((*BODY, "connectors"), [{"ID": f"{k}"} for k in range(1001)], ["1002 entries", "1000"]),
    ],
)  # fmt: skip
def test_a_mistake_in_a_module_set_names_its_field(files, tmp_path, place, value, pieces):
    with complains(FileError, "m.json", *pieces):
        read_cobra_modules(dump(tmp_path / "m.json", changed(files[0], place, value)))


@pytest.mark.parametrize(
    ("place", "value", "pieces"),
    [
        (("moduleOrder",), MISSING, ["moduleOrder: field required"]),
        (("moduleOrder",), [], ["moduleOrder", "at least 1"]),
        (("moduleOrder", 0), "giusti_z", ["no module 'giusti_z'", "giusti_b, giusti_a"]),
        (("moduleConnection",), MISSING, ["moduleConnection: field required"]),
        (("moduleConnection", 0, 2), 9, ["module 9 is not there", "0 to 4"]),
        (("moduleConnection", 0, 2), -1, ["module -1 is not there"]),
        (("moduleConnection", 0, 1), "top", ["no connector 'top' on a giusti_b", "in, out"]),
        (("moduleConnection", 0, 1), "in", ["port in of 'm0'", "does not mate"]),
        (("moduleConnection", 0, 2), "1", ["moduleConnection[0][2]", "valid integer", "'1'"]),
        (("moduleConnection", 0, 2), 1.0, ["moduleConnection[0][2]", "valid integer"]),
        (("moduleConnection", 0, 2), HUGE, ["moduleConnection[0][2]", "64 bits"]),
        (("moduleConnection", 0, 1), 1, ["moduleConnection[0][1]", "valid string", "given 1"]),
        (("moduleOrder", 0), 1, ["moduleOrder[0]", "valid string", "given 1"]),
        (("basePose", 0, 0, 3), HUGE, ["basePose[0]", "64 bits"]),
        (("moduleConnection", 0), [0, "out", 1], ["moduleConnection[0]"]),
        (("moduleConnection", 0), [0, "out", 0, "in"], ["closes a loop at module 0"]),
        (("moduleConnection", 1), [0, "out", 2, "in"], ["port out of 'm0' already holds 'm1'"]),
        (("moduleConnection", 3), MISSING, ["not connected to the base m0: m4"]),
        (("baseConnection", 0, 0), 7, ["module 7 is not there"]),
        (("baseConnection", 0, 1), "roof", ["no connector 'roof'"]),
        (("baseConnection",), [[0, "in"], [1, "in"]], ["several baseConnections"]),
        (("basePose", 0, 0, 0), 3, ["basePose", "not orthonormal"]),
        (("basePose", 0), 3, ["basePose[0]", "4x4"]),
    ],
)  # fmt: skip
def test_a_mistake_in_an_assembly_names_its_field(files, tmp_path, place, value, pieces):
    modules = dump(tmp_path / "m.json", files[0])
    with complains(FileError, "a.json", *pieces):
        read_cobra_assembly(dump(tmp_path / "a.json", changed(files[1], place, value)), modules)


def test_an_assembly_without_a_base_stands_at_the_origin_on_module_0(files, tmp_path):
    modules = dump(tmp_path / "m.json", files[0])
    bare = {key: files[1][key] for key in ("moduleOrder", "moduleConnection")}
    organism = read_cobra_assembly(dump(tmp_path / "a.json", bare), modules)
    assert organism == examples.arm("babac")
    np.testing.assert_array_equal(organism.base_pose, np.eye(4))


@pytest.mark.parametrize(
    ("text", "piece"),
    [
        ("", "not valid JSON at line 1"),
        ("{", "not valid JSON"),
        ("3", "valid dictionary"),
        ("null", "valid dictionary"),
        ("[]", "at least 1"),
        ("[" * 100_000, "nested more than 50 deep"),
        ('{"modules": [{"header": {"ID": "a"}, "bodies": [{"ID": "b"}]}]}', "mass: field required"),
    ],
)
def test_what_is_no_module_set_is_refused(tmp_path, text, piece):
    with complains(FileError, "m.json", piece):
        read_cobra_modules(dump(tmp_path / "m.json", text))


def test_types_that_would_look_alike_are_refused(files, tmp_path):
    data = changed(files[0], (*FIRST, "header", "affiliation"), [])
    data = changed(data, (*PORT, "type"), "a b")
    data = changed(data, (*FIRST, "bodies", 1, "connectors", 0, "type"), "a.b")
    data = changed(data, (*FIRST, "bodies", 1, "connectors", 0, "gender"), "f")
    with complains(FileError, "'a b  f'", "'a.b  f'", "both", "rename"):
        read_cobra_modules(dump(tmp_path / "m.json", data))


@pytest.mark.parametrize("strict", [True, False])
def test_bodies_and_joints_that_would_look_alike_are_always_refused(files, tmp_path, strict):
    """Other fields name them by what they are called in the file."""
    module = copy.deepcopy(files[0]["modules"][0])
    module["header"]["affiliation"] = []
    (hinge,), (near, far) = module["joints"], module["bodies"]
    bodies = [{**near, "ID": "a b"}, {**far, "ID": "a.b"}]
    ends = {**hinge, "parent": "a b", "child": "a.b"}
    with complains(FileError, "bodies 'a b' and 'a.b' would both be called 'a_b'"):
        read_cobra_modules(
            dump(tmp_path / "m.json", {**module, "bodies": bodies, "joints": [ends]}), strict=strict
        )
    tip = {**far, "ID": "tip", "connectors": [], "visual": []}
    joints = [{**hinge, "ID": "j 1"}, {**hinge, "ID": "j.1", "parent": far["ID"], "child": "tip"}]
    with complains(FileError, "joints 'j 1' and 'j.1' would both be called 'j_1'"):
        read_cobra_modules(
            dump(tmp_path / "m.json", {**module, "bodies": [near, far, tip], "joints": joints}),
            strict=strict,
        )


@pytest.mark.parametrize(("shapes", "kept"), [(1000, True), (1001, False)])
def test_a_huge_datasheet_that_travels_along_is_passed_over(files, tmp_path, shapes, kept):
    """Checking it takes the square of its size; the module's own fields say enough."""
    affiliation = (*FIRST, "header", "affiliation")
    datasheet = json.loads(files[0]["modules"][0]["header"]["affiliation"][0])
    own = datasheet["source"]
    datasheet["shapes"] = shapes * datasheet["shapes"][:1]
    text = json.dumps(datasheet, separators=(",", ":"))
    path = dump(tmp_path / "m.json", changed(files[0], affiliation, [text]))
    assert read_cobra_modules(path)["giusti_b"].source == (own if kept else "read from CoBRA")


def test_what_is_no_kind_cannot_be_written(tmp_path):
    path = tmp_path / "m.json"
    for kinds in (3, ["scout"], {"a": "scout"}, "scout", [None]):
        with complains(StateError, "ModuleTypes", "mr.catalog"):
            write_cobra_modules(kinds, path)
    for nothing in ([], {}):
        with complains(StateError, "at least one kind"):
            write_cobra_modules(nothing, path)
    with complains(StateError, "datetime.date", "'today'"):
        write_cobra_modules(catalog["scout"], path, date="today")
    with complains(StateError, "Organism", "ModuleType"):
        write_cobra_assembly(catalog["scout"], path)
    with complains(StateError, "'m0' is a scout", "not in the module set", "it_is"):
        write_cobra_assembly(examples.crab(), path, {"it_is": catalog["backbone"]})
    with complains(StateError, "printable"):
        write_cobra_assembly(examples.crab(), path, module_set="\ud800")
    assert not path.exists()


def test_the_date_of_the_headers_can_be_set(tmp_path):
    write_cobra_modules(catalog["scout"], tmp_path / "m.json", date=datetime.date(2024, 2, 29))
    assert '"date": "2024-02-29"' in (tmp_path / "m.json").read_text()


def test_titles_are_written_as_they_are(tmp_path):
    data = catalog["scout"].model_dump() | {"title": "Gelenkwürfel, 回転"}
    write_cobra_modules(type(catalog["scout"])(**data), tmp_path / "m.json")
    assert '"name": "Gelenkwürfel, 回転"' in (tmp_path / "m.json").read_text(encoding="utf-8")


def test_identifiers_have_up_to_two_hundred_characters(files, tmp_path):
    place = (*FIRST, "header", "ID")
    longest = validated(CobraModule, changed(files[0], place, "x" * 200)["modules"][0], "it")
    assert longest.header.id == "x" * 200
    with complains(FileError, "modules[0].header.ID", "at most 200 characters"):
        read_cobra_modules(dump(tmp_path / "m.json", changed(files[0], place, "x" * 201)))


@pytest.mark.parametrize(("off", "taken"), [(1e-9, True), (1.1e-9, False)])
def test_the_last_row_of_a_pose_may_be_off_by_rounding(files, off, taken):
    pose = np.eye(4)
    pose[3, 1] = off
    port = {"ID": "p", "pose": pose.tolist()}
    if taken:
        assert validated(ConnectorRecord, port, "it").pose[3, 1] == off
    else:
        with complains(FileError, "it: pose", "whose last row is 0, 0, 0, 1"):
            validated(ConnectorRecord, port, "it")


def test_numbers_of_a_pose_are_up_to_1e30(files):
    pose = np.eye(4)
    pose[1, 3] = -1e30
    assert validated(ConnectorRecord, {"ID": "p", "pose": pose.tolist()}, "it").pose[1, 3] == -1e30
    pose[1, 3] = -1.01e30
    with complains(FileError, "it: pose: a pose is a 4x4 matrix of numbers"):
        validated(ConnectorRecord, {"ID": "p", "pose": pose.tolist()}, "it")


@pytest.mark.parametrize("what", ["connectors", "visual", "collision"])
def test_a_module_has_at_most_a_thousand_entries_of_each_kind(files, what):
    """Over all its bodies: checking a datasheet takes the square."""
    entry = {"ID": "p"} if what == "connectors" else {"type": "box"}
    module = copy.deepcopy(files[0]["modules"][0])
    one, other = module["bodies"][:2]
    one[what], other[what] = [entry] * 400, [entry] * 600
    validated(CobraModule, module, "it")
    other[what] = [entry] * 601
    with complains(FileError, f"it: 1001 entries of {what}; a module has at most 1000"):
        validated(CobraModule, module, "it")


def test_a_module_has_at_most_a_thousand_bodies_and_joints(files):
    module = files[0]["modules"][0]
    for what in ("bodies", "joints"):
        entry = {**module[what][0], "connectors": [], "visual": [], "collision": []}
        validated(CobraModule, {**module, what: [entry] * 1000}, "it")
        with complains(FileError, f"it: {what}: list should have at most 1000 items"):
            validated(CobraModule, {**module, what: [entry] * 1001}, "it")


def test_an_assembly_has_at_most_a_hundred_thousand_modules():
    order = {"moduleOrder": ["a"] * 100_000, "moduleConnection": []}
    assert len(validated(AssemblyRecord, order, "it").module_order) == 100_000
    with complains(FileError, "moduleOrder", "at most 100000 items"):
        validated(AssemblyRecord, {**order, "moduleOrder": ["a"] * 100_001}, "it")


def test_a_single_field_of_limits_holds_both():
    found = validated(LimitsRecord, {"position": [-1.5, 2.0]}, "it")
    assert (found.lower, found.upper) == (-1.5, 2.0)


@pytest.mark.parametrize(
    ("names", "labels", "sides"),
    [
        (["1", "2"], [1, 2], [1, 2]),
        (["in", "out"], ["in", "out"], [1, 2]),
        (["in", "1", "out"], ["in", 1, "out"], [2, 1, 3]),  # a number keeps its own
        (["0", "-3", "7"], [0, -3, 7], [1, 2, 7]),  # sides start at 1
        (["07", "1" * 18], ["_07", int("1" * 18)], [1, int("1" * 18)]),
        (["1" * 19, "--1"], ["_" + "1" * 19, "--1"], [1, 2]),
    ],
)
def test_connectors_called_by_numbers_have_them_as_sides(names, labels, sides):
    found = [_label(name) for name in names]
    assert found == [to_name(x) if isinstance(x, str) else x for x in labels]
    assert [*_sides(found).values()] == sides


@pytest.mark.parametrize("label", [5, 12, -3, "_5", "_12", "_5a", "in"])
def test_labels_of_ports_come_back_through_names_of_connectors(label):
    assert _label(label_id(label)) == label


def test_long_types_of_connectors_leave_room_for_size_and_gender(files, tmp_path):
    document = changed(files[0], (*PORT, "type"), "t" * 60)
    document = changed(document, (*PORT, "size"), [80, 2.5])
    kinds = read_cobra_modules(dump(tmp_path / "m.json", document))
    port = kinds["giusti_b"].ports[0]
    assert port.connector == "t" * 40 + "-size80x2p5-" + port.connector[-1]
    assert (
        port.mates[0]
        == "t" * 40 + "-size80x2p5-" + {"m": "f", "f": "m", "h": "h"}[port.connector[-1]]
    )
