"""Data of the browser's drawings: small organisms, number by number."""

import numpy as np
import pytest

from modurob import ModuleType, Organism, catalog, examples
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


@pytest.mark.parametrize(
    ("axis", "hinge"), [((1, 0, 0), 0), ((0, 1, 0), 1), ((0, 0, 1), None), ((0, -1, 0), 1)]
)
def test_hinges_lie_across_or_along_the_plan_or_stand_on_it(axis, hinge):
    data = catalog["backbone"].model_dump()
    joints = [{**joint, "axis": axis} for joint in data["joints"]]
    kind = ModuleType(**{**data, "name": "other", "joints": joints})
    (cell,) = view_data.plan(Organism.start(kind), [])["cells"]
    assert cell["hinge"] == hinge


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


def test_sliders_have_the_limits_of_their_joints_and_rates_in_units_for_people():
    model = examples.crane().model("physical")
    values, rates = {"m1.hinge": 0.3}, {"m0.slide": 0.25, "m1.hinge": np.pi / 12}
    slide, hinge, *_ = view_data.sliders(model, values, rates)
    assert (slide["name"], slide["module"], slide["slides"]) == ("m0.slide", "m0", True)
    assert (hinge["name"], hinge["module"], hinge["slides"]) == ("m1.hinge", "m1", False)
    assert (slide["lower"], slide["upper"]) == (-0.2, 0.2)  # it has no limits: 20 cm each way
    assert (hinge["lower"], hinge["upper"]) == pytest.approx((-np.pi / 2, np.pi / 2))
    assert (slide["value"], hinge["value"]) == (0.0, 0.3)
    assert (slide["rate"], hinge["rate"]) == (250.0, 15.0)  # mm/s, deg/s
    assert [each["rate"] for each in view_data.sliders(model, {})] == [0.0, 0.0]
    _, free, _ = view_data.sliders(examples.snake(2).model("dyad", ("px", "rz")), {})
    assert (free["lower"], free["upper"]) == pytest.approx((-np.pi, np.pi))


@pytest.mark.parametrize("hinges", ["dyad", "physical"])
def test_axes_of_joints_lie_where_the_model_turns_and_slides(hinges):
    """Points of an axis stay when its joint turns; all points go along it when it slides."""
    for organism in (examples.crab(), examples.arm("abc"), examples.crane()):
        model = organism.model(hinges)
        bodies = model.body_names
        for joint in view_data.scene_data(organism, model)["joints"]:
            k, body = model.joint_index(joint["name"]), joint["body"]
            assert bodies[body].startswith(joint["module"])
            q = np.stack([model.neutral(), model.neutral()])
            q[1, k] = 0.1
            before, after = model.forward_kinematics(q)[:, body]
            R, point = before[:3, :3], np.append(joint["point"], 1.0)
            along = R @ joint["direction"]
            moved = ((after - before) @ point)[:3]
            np.testing.assert_allclose(moved, 0.1 * along if joint["slides"] else 0.0, atol=1e-6)
            np.testing.assert_allclose(after[:3, :3] @ joint["direction"], along, atol=1e-6)
            ahead = before[:3, :3].T @ after[:3, :3]
            turned = np.arccos(np.clip((np.trace(ahead) - 1) / 2, -1, 1))
            assert turned == pytest.approx(0.0 if joint["slides"] else 0.1, abs=1e-6)


def test_titles_of_kinds_are_short_and_ports_are_sides_or_have_names():
    assert view_data.label(catalog["scout"]) == catalog["scout"].title.split(" (")[0]
    assert view_data.label(catalog["superbot_light"]) == "SuperBot, light"
    bare = catalog["scout"].model_copy(update={"title": "", "name": "mine"})
    assert view_data.label(bare) == "mine"
    assert [view_data.port_name(port) for port in (3, "out")] == ["side 3", "port out"]


def test_rows_of_the_tree_say_what_holds_a_module():
    body = examples.crab()
    rows = {row["name"]: row for row in view_data.tree(body, catalog["scout"], [])["modules"]}
    assert (rows["m0"]["base"], rows["m0"]["parent"], rows["m0"]["via"]) == (True, None, "")
    assert "held" not in rows["m0"]
    for entry in body.dockings:
        row = rows[entry.child]
        assert (row["base"], row["parent"], row["held"]) == (False, entry.parent, entry.port)
        assert (row["symbol"], row["color"]) == ("S", view_data.main_color(catalog["scout"]))
    arm = examples.arm("ba")
    (held,) = arm.dockings
    row = view_data.tree(arm, catalog["giusti_a"], [])["modules"][1]
    assert row["via"] == f"port {held.child_port} to {held.port}"


def test_the_plan_shows_the_plane_of_the_base_and_modules_that_lie_in_it():
    assert view_data.on_grid(examples.crab())
    assert not view_data.on_grid(examples.arm("ab"))
    crab = examples.crab()
    found = view_data.plan(crab, [])
    places = {cell["name"]: (cell["x"], cell["y"]) for cell in found["cells"]}
    assert len(set(places.values())) == len(crab) - found["hidden"]
    for link in found["links"]:
        middle = np.mean([places[link["parent"]], places[link["child"]]], axis=0)
        assert (link["x"], link["y"]) == tuple(middle)
        step = np.subtract(places[link["parent"]], places[link["child"]])
        assert np.abs(step).sum() == 1  # neighbors


def test_a_port_has_its_place_on_the_body_that_carries_it():
    organism = examples.crane()
    for hinges in ("dyad", "physical"):
        model = organism.model(hinges)
        T = model.forward_kinematics(model.neutral())
        for name in organism.modules:
            kind = organism.kind(name)
            for port in kind.docks:
                found = view_data.port_place(organism, model, name, port)
                here = T[found["body"]] @ np.append(found["pose"][:3], 1.0)
                there = organism.rest_pose(name) @ kind.port_pose(port)[:, 3]
                np.testing.assert_allclose(here, there, atol=1e-6)
