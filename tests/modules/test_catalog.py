"""The built-in datasheets: complete, possible, and what the documents say."""

import json
from importlib import resources

import numpy as np
import pytest

from modurob import ModuleType, UnknownNameError, catalog
from oracles import complains

ROUNDING = 1e-15  # a few products of numbers of size 1
CUBES = ("backbone", "scout")
VIRTUAL = [f"virtual_{name}" for name in ("px", "py", "pz", "rx", "ry", "rz", "planar")]
# Sizes and masses that the documents do not give are placeholders and say so.
NOMINAL = {
    "backbone", "scout", "superbot", "superbot_light",
    "chen_link", "chen_link_large", "chen_revolute", "chen_prismatic",
}  # fmt: skip
MEASURED = {"giusti_a", "giusti_b", "giusti_c"}
FILES = sorted(
    (
        entry
        for entry in resources.files("modurob.modules.catalog").iterdir()
        if entry.name.endswith(".json")
    ),
    key=lambda entry: entry.name,
)


def test_the_catalog_holds_the_promised_kinds():
    assert set(catalog.names()) == NOMINAL | MEASURED | set(VIRTUAL)
    assert catalog.names() == sorted(catalog.names()) == list(catalog)
    assert len(catalog) == len(FILES)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_file_of_the_catalog_is_a_valid_datasheet_under_its_own_name(file):
    data = json.loads(file.read_text(encoding="utf-8"))
    kind = ModuleType(**data)
    assert kind == catalog[kind.name]
    assert file.name == f"{kind.name}.json"
    assert data["format"] == "modurob-module"
    assert kind.title
    assert kind.source


@pytest.mark.parametrize("name", catalog.names())
def test_nominal_kinds_say_so(name):
    assert catalog[name].nominal == (name in NOMINAL)
    if name in NOMINAL:
        assert "nominal" in catalog[name].source


def test_letters_name_one_kind_each_apart_from_virtual_joints():
    letters = [catalog[name].symbol for name in sorted(NOMINAL | MEASURED)]
    assert len(set(letters)) == len(letters)
    assert {catalog[name].symbol for name in VIRTUAL} == {"V"}
    assert catalog.by_symbol("B") == catalog["backbone"]


@pytest.mark.parametrize("name", ["bakbone", "", "back\nbone", None, 3])
def test_unknown_kinds_are_answered_with_the_known_ones(name):
    with complains(UnknownNameError, "no module kind", repr(name), "backbone", "virtual_rz"):
        catalog[name]


def test_superbot_light_is_a_tenth_of_a_superbot():
    light, full = catalog["superbot_light"], catalog["superbot"]
    assert light.mass == pytest.approx(0.1 * full.mass, rel=ROUNDING)
    for thin, thick in zip(light.bodies, full.bodies, strict=True):
        assert thin.mass == pytest.approx(0.1 * thick.mass, rel=ROUNDING)
        assert thin.center_of_mass == thick.center_of_mass
        np.testing.assert_allclose(thin.inertia, 0.1 * np.array(thick.inertia), rtol=1e-12)
    assert (light.joints, light.ports, light.shapes) == (full.joints, full.ports, full.shapes)


def test_a_superbot_has_three_joints_and_six_genderless_connectors_with_four_turns():
    kind = catalog["superbot"]
    assert [joint.name for joint in kind.joints] == ["pitch", "roll", "yaw"]
    assert len(kind.docks) == 6
    assert all(port.mates_with(port) for port in kind.ports)
    assert {port.turns for port in kind.ports} == {(0, 90, 180, 270)}


@pytest.mark.parametrize("name", CUBES)
def test_cubes_are_numbered_like_a_gaming_die(name):
    kind = catalog[name]
    assert sorted(kind.docks) == [2, 3, 4, 5]
    normals = {label: kind.port_pose(label)[:3, 2] for label in kind.docks}
    assert normals[2].tolist() == [1, 0, 0]
    assert normals[3].tolist() == [0, 1, 0]
    for side in kind.docks:
        np.testing.assert_array_equal(normals[side], -normals[7 - side])


@pytest.mark.parametrize("name", CUBES)
def test_cubes_bend_ninety_degrees_about_x(name):
    hinge = catalog[name].joint("hinge")
    assert hinge.axis == (1, 0, 0)
    assert (hinge.lower, hinge.upper) == (-np.pi / 2, np.pi / 2)
    assert catalog[name].dyad_screw.tolist() == [0, 0, 0, 1, 0, 0]


@pytest.mark.parametrize("name", CUBES)
def test_half_b_of_a_cube_carries_side_three_alone(name):
    kind = catalog[name]
    hinge = kind.joint("hinge")
    assert hinge.parent == "A"
    assert [port.label for port in kind.ports if port.body == "A"] == [2, 4, 5, 7]
    assert [body.name for body in kind.bodies if body.mass > 0] == ["A"]


def test_a_scout_turns_its_side_three_all_the_way_round():
    rotation = catalog["scout"].joint("rotation")
    assert rotation.axis == (0, 1, 0)
    assert (rotation.lower, rotation.upper) == (-np.pi, np.pi)
    assert catalog["scout"].port(3).body == rotation.child


@pytest.mark.parametrize("name", catalog.names())
def test_port_frames_are_right_handed_and_point_outward(name):
    kind = catalog[name]
    for port in kind.ports:
        R, p = kind.port_pose(port.label)[:3, :3], np.array(port.position)
        np.testing.assert_allclose(R.T @ R, np.eye(3), rtol=0, atol=ROUNDING)
        assert np.linalg.det(R) == pytest.approx(1)
        assert p @ port.normal >= 0 or port.label == "in"


@pytest.mark.parametrize("name", VIRTUAL)
def test_virtual_joints_are_massless_and_mount_on_every_cube(name):
    kind = catalog[name]
    assert kind.virtual
    assert kind.mass == 0
    for cube in CUBES:
        assert kind.port(7).mates_with(catalog[cube].port(7))


def test_solid_cubes_have_the_inertia_of_solid_cubes():
    for name in ("backbone", "scout", "chen_link", "chen_link_large"):
        kind = catalog[name]
        expected = kind.mass * kind.size**2 / 6 * np.eye(3)
        np.testing.assert_allclose(kind.bodies[0].inertia, expected, rtol=1e-12)


def test_a_letter_of_several_kinds_asks_for_the_name():
    letters = [kind.symbol for kind in catalog.values()]
    shared = next(letter for letter in letters if letters.count(letter) > 1)
    names = [kind.name for kind in catalog.values() if kind.symbol == shared]
    with complains(UnknownNameError, f"{shared!r} is the letter of several", *names, "name"):
        catalog.by_symbol(shared)
    with complains(UnknownNameError, "no module kind '?'", "B = backbone"):
        catalog.by_symbol("?")
    assert catalog.by_symbol("B") is catalog["backbone"]


def test_the_catalog_is_a_mapping():
    assert len(catalog) == len(catalog.names()) == len(list(catalog)) > 10
    assert catalog.names() == sorted(catalog)
    assert repr(catalog).startswith("<catalog: backbone, ")
    assert "lobster" not in catalog
