"""Data of the browser's drawings: small organisms, number by number."""

import numpy as np
import pytest

from modurob import Organism, catalog, examples
from modurob.studio import edits, view_data
from modurob.studio.edits import Site

SIDES = [{"port": 2, "heading": 0}, {"port": 3, "heading": 1}, {"port": 4, "heading": 3},
         {"port": 5, "heading": 2}]  # fmt: skip
CUBE = {"kind": "backbone", "symbol": "B", "color": "#3b6ea5", "hinge": 0}


def test_a_pair_of_cubes_as_a_plan():
    site = Site("m1", 3, 4, 0, "")
    assert view_data.plan(examples.snake(2), [site, Site("x", 3, 4, 0, "")]) == {
        "cells": [
            {"name": "m0", "base": True, "x": 0, "y": 0, "quarter": 0, "sides": SIDES, **CUBE},
            {"name": "m1", "base": False, "x": 0, "y": 1, "quarter": 0, "sides": SIDES, **CUBE},
        ],
        "links": [{"parent": "m0", "child": "m1", "name": "DP", "x": 0.0, "y": 0.5}],
        "sites": [site._asdict()],
        "hidden": 0,
    }


def test_a_turned_cube_is_turned_in_the_plan():
    """Port 2 of the new one faces back to its host, at the host's port 3."""
    organism = Organism.start("backbone").dock("m0", 3, "m1", 2)
    cell = view_data.plan(organism, [])["cells"][1]
    assert (cell["x"], cell["y"]) == (0, 1)
    headings = {side["port"]: side["heading"] for side in cell["sides"]}
    assert headings[2] == 3  # down, towards m0
    assert cell["quarter"] == 3
    assert cell["hinge"] == 1  # a quarter turn against that of m0
    assert {headings[port] for port in (2, 3, 4, 5)} == {0, 1, 2, 3}


def test_what_does_not_lie_in_the_plane_is_counted():
    tree = examples.superbot_tree(2, 2)
    found = view_data.plan(tree, [])
    assert found == {"cells": [], "links": [], "sites": [], "hidden": 4}


def test_modules_and_joints_of_a_pair_of_cubes():
    organism = examples.snake(2)
    found = view_data.scene_data(organism, organism.model())
    assert found["bodies"] == ["m0", "m1"]
    assert found["modules"] == [
        {"name": "m0", "kind": "backbone", "base": True, "body": 0, "size": 0.1},
        {"name": "m1", "kind": "backbone", "base": False, "body": 1, "size": 0.1},
    ]
    (joint,) = found["joints"]
    assert joint.pop("half") == pytest.approx(0.075)
    assert [joint.pop("lower"), joint.pop("upper")] == pytest.approx([-np.pi / 2, np.pi / 2])
    assert joint == {
        "name": "m1.hinge", "module": "m1", "body": 1, "point": [0, 0, 0],
        "direction": [1, 0, 0], "slides": False,
    }  # fmt: skip
    assert [(solid["body"], solid["module"]) for solid in found["solids"]] == (
        [(0, 0)] * len(catalog["backbone"].shapes) + [(1, 1)] * len(catalog["backbone"].shapes)
    )


def test_joints_of_the_base_in_the_world_belong_to_the_base_module():
    organism = examples.snake(2)
    found = view_data.scene_data(organism, organism.model("dyad", ("px", "rz")))
    slide, turn, hinge = found["joints"]
    assert (slide["module"], turn["module"], hinge["module"]) == ("m0", "m0", "m1")
    assert (slide["slides"], turn["slides"]) == (True, False)
    assert (slide["direction"], turn["direction"]) == ([1, 0, 0], [0, 0, 1])
    assert slide["half"] == turn["half"] == pytest.approx(0.075)


def test_poses_are_positions_and_quaternions_to_the_micrometer():
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]], [1.23456789, -1e-9, 2]
    assert view_data.pose(T) == [1.234568, 0, 2, 0, 0, 0.707107, 0.707107]
    assert str(view_data.pose(T)[1]) == "0.0"  # no minus
    organism = examples.snake(2)
    found = view_data.poses(organism.model(), np.array([np.pi / 2]))
    assert found[0] == [0, 0, 0, 0, 0, 0, 1]
    assert np.abs(found[1][3:]).tolist() == [0.707107, 0, 0, 0.707107]


@pytest.mark.parametrize("hinges", ["dyad", "physical"])
def test_free_ports_stand_on_the_bodies_that_carry_them(hinges):
    organism = examples.snake(2)
    model = organism.model(hinges)
    sites = [Site("m0", 4, 3, 0, ""), Site("m1", 3, 4, 90, "no room")]
    found = view_data.ports(organism, model, sites)
    T = model.forward_kinematics(model.neutral())
    for site, shown, y in zip(sites, found, (-0.05, 0.15), strict=True):
        assert {key: shown[key] for key in site._fields} == site._asdict()
        assert shown["size"] == 0.1
        place = T[shown["body"]] @ np.append(shown["pose"][:3], 1)
        np.testing.assert_allclose(place[:3], [0, y, 0], atol=1e-6)


def test_a_kind_alone_has_its_letter_its_ports_and_their_sides():
    found = view_data.kind_data(catalog["scout"])
    assert (found["name"], found["symbol"], found["size"]) == ("scout", "S", 0.1)
    assert found["sides"] == {"2": 0, "3": 1, "4": 3, "5": 2}
    assert found["ports"]["2"][:3] == [0.05, 0, 0]
    assert found["color"] == catalog["scout"].shapes[0].color
    arm = view_data.kind_data(catalog["giusti_a"])
    assert arm["sides"] == {}
    bare = catalog["scout"].model_copy(update={"shapes": ()})
    assert view_data.main_color(bare) == "#8aa0b8"


def test_the_tree_lists_modules_after_their_parents_with_the_free_sides_of_each():
    crab, kind = examples.crab(), catalog["chen_link_large"]
    sites = [*edits.sites(crab, catalog["scout"], None, None)]
    found = view_data.tree(crab, kind, sites)
    assert [(row["name"], row["depth"]) for row in found["modules"]] == [
        ("m0", 0), ("m1", 1), ("m2", 2), ("m3", 3), ("m4", 2), ("m5", 3),
    ]  # fmt: skip
    assert found["modules"][2]["via"] == "side 5 to 2"
    assert found["kind"] == "Link, large"
    for name in crab.modules:
        listed = [port["label"] for port in found["sites"].get(name, [])]
        assert listed == [*crab.free_ports(name)]
    arm = Organism.start("giusti_b")
    found = view_data.tree(arm, kind, edits.sites(arm, catalog["giusti_a"], None, None))
    assert [port["label"] for port in found["sites"][arm.base]] == ["out", "in"]  # upward
