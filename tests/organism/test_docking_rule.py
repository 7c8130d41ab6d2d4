"""The one docking rule gives the documents' rotation table, distances and dyad classes."""

import itertools

import numpy as np
import pytest

from modurob import ModuleType, Organism, catalog
from modurob.organism.docking import dyad, mated_pose
from oracles import WRIST

SIDES = (2, 3, 4, 5)
PAIRS = list(itertools.product(SIDES, SIDES))
NORMALS = {2: (1, 0, 0), 5: (-1, 0, 0), 3: (0, 1, 0), 4: (0, -1, 0)}

# gutenkunst2012, Tab. 3.1: degrees about z for (side of i, side of j)
ROTATIONS = {
    **dict.fromkeys([(3, 4), (5, 2), (4, 3), (2, 5)], 0),
    **dict.fromkeys([(3, 5), (5, 4), (4, 2), (2, 3)], 90),
    **dict.fromkeys([(2, 2), (3, 3), (4, 4), (5, 5)], 180),
    **dict.fromkeys([(3, 2), (5, 3), (4, 5), (2, 4)], 270),
}
QUARTER_COS_SIN = {0: (1, 0), 90: (0, 1), 180: (-1, 0), 270: (0, -1)}
# meister2013, Tab. II: sides along the hinge, sides across it
AXIAL, ACROSS = {2, 5}, {3, 4}
ROUNDING = 1e-15  # products of a few numbers of size 1


def cubes(size_i=0.1, size_j=0.1) -> tuple[ModuleType, ModuleType]:
    kinds = catalog["backbone"], catalog["scout"]
    return kinds[0].with_parameters(size=size_i), kinds[1].with_parameters(size=size_j)


def test_the_documents_table_names_all_sixteen_pairs():
    assert set(ROTATIONS) == set(PAIRS)


@pytest.mark.parametrize(("a", "b"), PAIRS)
@pytest.mark.parametrize("kinds", [*itertools.product(("backbone", "scout"), repeat=2)])
def test_rotation_is_that_of_the_documents_table_with_exact_entries(a, b, kinds):
    T = dyad(catalog[kinds[0]], a, catalog[kinds[1]], b, 0).transform
    c, s = QUARTER_COS_SIN[ROTATIONS[a, b]]
    assert T[:3, :3].tolist() == [[c, -s, 0], [s, c, 0], [0, 0, 1]]
    assert T[3].tolist() == [0, 0, 0, 1]
    assert not np.signbit(T[T == 0]).any(), "minus zeros look odd in print"


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_docked_sides_face_each_other(a, b):
    T = dyad(*_interleave(cubes(), a, b), 0).transform
    assert (T[:3, :3] @ NORMALS[b]).tolist() == [-n for n in NORMALS[a]]


@pytest.mark.parametrize(("a", "b"), PAIRS)
@pytest.mark.parametrize("sizes", [(0.1, 0.1), (0.2, 0.1), (1.0, 5.0)])
def test_centers_stand_half_of_both_widths_apart_along_the_normal(a, b, sizes):
    T = dyad(*_interleave(cubes(*sizes), a, b), 0).transform
    distance = (sizes[0] + sizes[1]) / 2
    np.testing.assert_allclose(T[:3, 3], distance * np.array(NORMALS[a]), rtol=0, atol=ROUNDING)


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_dyad_class_follows_from_the_sides(a, b):
    expected = "DS" if {a, b} <= AXIAL else "DP" if {a, b} <= ACROSS else "DO"
    assert dyad(*_interleave(cubes(), a, b), 0).name == expected


def test_the_sixteen_classes_are_four_serial_four_parallel_eight_orthogonal():
    names = [dyad(*_interleave(cubes(), a, b), 0).name for a, b in PAIRS]
    assert {name: names.count(name) for name in names} == {"DS": 4, "DP": 4, "DO": 8}


def with_hinge_at(y, z):
    data = catalog["backbone"].model_dump()
    data["joints"][0]["position"] = (0.0, y, z)
    data["ports"] = [
        {**port, "position": tuple(np.subtract(port["position"], (0.0, y, z)))}
        if port["body"] == "B"
        else port
        for port in data["ports"]
    ]
    return ModuleType(**data)


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_class_looks_at_the_lines_of_the_hinges_not_at_the_centers_of_the_cubes(a, b):
    raised = with_hinge_at(0.0, 0.02)  # in all cubes alike: sides 2 and 5 still share a line
    T = dyad(raised, a, raised, b, 0)
    assert T.name == dyad(*_interleave(cubes(), a, b), 0).name
    np.testing.assert_array_equal(T.transform, dyad(*_interleave(cubes(), a, b), 0).transform)


def test_hinges_off_the_middle_are_collinear_only_when_the_cubes_are_not_turned():
    aside = with_hinge_at(0.02, 0.0)
    names = {(a, b): dyad(aside, a, aside, b, 0).name for a in AXIAL for b in AXIAL}
    assert names == {(2, 5): "DS", (5, 2): "DS", (2, 2): "DP", (5, 5): "DP"}


@pytest.mark.parametrize(
    ("aside", "tilt", "name"),
    [(0.0, 0.0, "DS"), (1e-12, 1e-12, "DS"), (1e-9, 0.0, "DP"), (0.0, 1e-8, "DO")],
)
def test_hinges_are_collinear_up_to_rounding_and_no_more(aside, tilt, name):
    """Turned by half a turn about z, the hinges are twice as far apart as each is off."""
    data = with_hinge_at(aside, 0.0).model_dump()
    data["joints"][0]["axis"] = (1.0, 0.0, tilt)
    kind = ModuleType(**data)
    assert dyad(kind, 2, kind, 2, 0).name == name


def test_class_does_not_depend_on_which_module_comes_first():
    kind = catalog["backbone"]
    for a, b in PAIRS:
        assert dyad(kind, a, kind, b, 0).name == dyad(kind, b, kind, a, 0).name


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
@pytest.mark.parametrize("kind", [catalog["superbot"], catalog["chen_link"], WRIST])
def test_ports_meet_with_opposed_normals_and_the_turn_between_their_references(kind, turn):
    labels = kind.docks
    for a, b in itertools.product(labels, labels):
        T_ia, T_jb = kind.port_pose(a), kind.port_pose(b)
        T_ib = mated_pose(T_ia, T_jb, turn) @ T_jb
        np.testing.assert_allclose(T_ib[:3, 3], T_ia[:3, 3], rtol=0, atol=ROUNDING)
        np.testing.assert_allclose(T_ib[:3, 2], -T_ia[:3, 2], rtol=0, atol=ROUNDING)
        x, y = T_ia[:3, 0], T_ia[:3, 1]
        angle = np.arctan2(T_ib[:3, 0] @ y, T_ib[:3, 0] @ x)
        assert np.cos(angle - np.deg2rad(turn)) == pytest.approx(1, abs=ROUNDING)


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
def test_docking_seen_from_the_other_module_is_the_inverse(turn):
    kind = catalog["superbot"]
    for a, b in itertools.product(kind.docks, kind.docks):
        there, back = dyad(kind, a, kind, b, turn), dyad(kind, b, kind, a, turn)
        product = there.transform @ back.transform
        np.testing.assert_allclose(product, np.eye(4), rtol=0, atol=ROUNDING)


def test_transforms_that_organisms_share_cannot_be_written_to():
    kind = catalog["superbot"]
    for T in (dyad(kind, 4, kind, 1, 90).transform, mated_pose(np.eye(4), np.eye(4), 0)):
        with pytest.raises(ValueError, match="read-only"):
            T[0, 3] = 1.0


def test_four_cubes_in_a_square_come_back_to_the_start():
    organism = Organism.start("backbone")
    for i in range(3):
        organism = organism.dock(f"m{i}", 3, f"m{i + 1}", 5)  # each turns by 90 degrees
    T = organism.rest_pose("m3")
    # the next one, docked the same way, would be the first: T_03 T_34 = 1
    step = dyad(catalog["backbone"], 3, catalog["backbone"], 5, 0).transform
    np.testing.assert_allclose(T @ step, np.eye(4), rtol=0, atol=ROUNDING)


def _interleave(kinds, a, b):
    return kinds[0], a, kinds[1], b
