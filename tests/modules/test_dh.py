"""Denavit-Hartenberg parameters of single modules: geometry to parameters and back."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from modurob import DatasheetError, ModuleType, UnknownNameError, catalog
from modurob.modules.dh import (
    PARALLEL,
    TOUCHING_M,
    axis_frame,
    axis_pair,
    characterize,
    connector_pairs,
    link_transform,
    turn_z,
    wrapped,
)
from oracles import complains
from oracles.two_part_modules import CASES, any_pose, lying, slid, turned, two_part_module

PAGE = Path(__file__).parents[2] / "docs" / "theory" / "denavit_hartenberg.md"
ROUND_TRIP = 1e-12  # what the parameters promise for axes that are parallel or clearly not
EXACT = 1e-15  # a table typed with few digits, and quarter turns
EPSILON = np.finfo(float).eps
MODULES = 500
X, Y, Z = 0, 1, 2
NAMES = {"antiparallel": "parallel", "anti-overlapping": "overlapping"}

# giusti2015, Tab. III: (a, alpha, p, n, delta) of both parts, delta_j, kind
TABLE = {
    "a": ((0, -np.pi / 2, -0.1, 0, 0), (0, -np.pi / 2, 0, 0.1, 0), np.pi, "revolute"),
    "b": ((0, 0, -0.1, 0, 0), (0, 0, -0.1, 0, 0), 0, "revolute"),
    "c": ((0, 0, -0.1, 0, 0), (0, 0, -0.05, 0, 0), 0, "prismatic"),
}


@pytest.mark.parametrize("letter", TABLE)
def test_giusti_s_modules_have_the_numbers_of_his_table(letter):
    proximal, distal, delta_j, kind = TABLE[letter]
    found = characterize(catalog[f"giusti_{letter}"])
    np.testing.assert_allclose(found.proximal, proximal, rtol=0, atol=EXACT)
    np.testing.assert_allclose(found.distal, distal, rtol=0, atol=EXACT)
    assert (found.delta_j, found.kind) == (pytest.approx(delta_j, abs=EXACT), kind)
    light = letter == "c"
    np.testing.assert_allclose(found.proximal_mass.center, [0, 0, 0.05], atol=EXACT)
    np.testing.assert_allclose(found.distal_mass.center[2], -0.025 if light else -0.05, atol=EXACT)
    moments = (0.36e-3, 0.36e-3, 0.31e-3) if light else (2e-3, 2e-3, 0.65e-3)
    np.testing.assert_allclose(found.distal_mass.inertia, np.diag(moments), atol=EXACT)
    np.testing.assert_allclose(
        found.proximal_mass.inertia, np.diag([2e-3, 2e-3, 0.65e-3]), atol=EXACT
    )


def test_parameters_of_random_modules_give_their_geometry_back():
    seen = set()
    for seed in range(MODULES):
        known = two_part_module(seed, outputs=1 + seed % 2)
        seen.add((known.cases, known.kind.joints[0].kind))
        for output in known.T_joint_out:
            found = characterize(known.kind, "in", output)
            for q in (0.0, 0.7, -2.9):
                off = np.abs(found.transform(q) - known.transform(output, q)).max()
                assert off < ROUND_TRIP, (seed, output, q)
    assert {case for cases, _ in seen for case in cases} == set(CASES)


def test_each_case_is_recognized_and_its_parameters_come_back():
    for seed in range(120):
        rng = np.random.default_rng(seed)
        for case in CASES:
            T = lying(case, rng)
            pair = axis_pair(T)
            assert pair.case == NAMES.get(case, case)
            np.testing.assert_allclose(pair.transform, T, rtol=0, atol=ROUND_TRIP)
            again = axis_pair(pair.transform)
            turns = np.array(pair[:6]) - np.array(again[:6])
            turns[[1, 4, 5]] = np.remainder(turns[[1, 4, 5]] + np.pi, 2 * np.pi) - np.pi
            np.testing.assert_allclose(turns, 0, rtol=0, atol=ROUND_TRIP)


def test_special_cases_follow_the_extended_convention():
    overlapping = axis_pair(slid(Z, 0.3) @ turned(Z, 0.4))
    assert overlapping[:6] == pytest.approx((0, 0, -0.3, 0, 0.4, 0))
    parallel = axis_pair(slid(Y, 0.2) @ slid(Z, 0.3))
    assert parallel[:6] == pytest.approx((0.2, 0, -0.3, 0, np.pi / 2, -np.pi / 2))
    # intersecting: x along z1 x z0, so alpha is negative whichever way the second axis tilts
    for tilt, turn in ((-0.5, 0.0), (0.5, np.pi)):
        found = axis_pair(turned(X, tilt))
        assert (found.alpha, abs(found.before)) == pytest.approx((-0.5, turn))


def test_arctan_of_a_quotient_would_lose_the_quadrant():
    """Erratum 14 of giusti2015: atan2 in its place, all around the circle."""
    wrong = 0
    for angle in np.linspace(-3, 3, 25):
        T = turned(Z, angle) @ slid(X, 0.2) @ turned(X, -1.0) @ slid(Z, 0.1)
        pair = axis_pair(T)
        np.testing.assert_allclose(pair.transform, T, rtol=0, atol=ROUND_TRIP)
        by_quotient = math.atan(math.sin(pair.before) / math.cos(pair.before))
        wrong += np.abs(pair._replace(before=by_quotient).transform - T).max() > 0.1
    assert wrong == sum(abs(angle) > np.pi / 2 for angle in np.linspace(-3, 3, 25))


@pytest.mark.parametrize("exponent", np.arange(-16, 0, 0.5))
def test_near_parallel_axes_cost_what_the_documentation_says(exponent):
    sine = 10.0**exponent
    # dropping the tilt costs the sine; keeping it, n and p grow with 1/sine and cancel
    bound = 8 * min(sine, EPSILON / sine) + 8 * EPSILON
    for seed in range(50):
        rng = np.random.default_rng(seed)
        T = any_pose(rng)
        T[:3, :3] = (turned(Z, rng.uniform(-3, 3)) @ turned(X, sine) @ turned(Z, 1.0))[:3, :3]
        pair = axis_pair(T)
        assert np.abs(pair.transform - T).max() <= bound
        assert (pair.case == "parallel") == (sine <= PARALLEL)


@pytest.mark.parametrize("distance", [0.0, 1e-16, 0.9 * TOUCHING_M, 1.1 * TOUCHING_M, 1e-9])
def test_nearly_overlapping_axes_come_back(distance):
    for tilt in (0.0, np.pi):
        T = turned(Z, 0.3) @ slid(X, distance) @ slid(Z, 0.2) @ turned(X, tilt) @ turned(Z, -1.1)
        pair = axis_pair(T)
        assert pair.case == ("overlapping" if distance <= TOUCHING_M else "parallel")
        np.testing.assert_allclose(pair.transform, T, rtol=0, atol=ROUND_TRIP)


@pytest.mark.parametrize(("factor", "touching"), [(1.0, True), (1.01, False)])
def test_axes_touch_and_are_parallel_up_to_their_tolerances(factor, touching):
    apart = slid(X, factor * TOUCHING_M)
    assert axis_pair(apart).case == ("overlapping" if touching else "parallel")
    assert axis_pair(apart @ turned(X, -1.0)).case == ("intersecting" if touching else "skew")
    tilted = np.eye(4)
    tilted[1, 2] = factor * PARALLEL
    tilted[2, 1] = -factor * PARALLEL
    assert axis_pair(tilted).case == ("overlapping" if touching else "intersecting")


def test_axis_frames_have_z_along_the_screw():
    rng = np.random.default_rng(0)
    axes = [*rng.standard_normal((20, 3)), *np.eye(3), *-np.eye(3), [1e-9, 0, 1], [0, 1e-9, -1]]
    for axis in np.array(axes):
        axis = axis / np.linalg.norm(axis)
        for screw in (np.r_[np.zeros(3), axis], np.r_[axis, np.zeros(3)]):
            R = axis_frame(np.eye(4), screw)[:3, :3]
            np.testing.assert_array_equal(R[:, 2], axis)
            np.testing.assert_allclose(R.T @ R, np.eye(3), atol=4 * EPSILON)
            assert np.linalg.det(R) > 0


# -- several connectors, links -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["chen_link", "chen_link_large", "backbone", "scout", "superbot"])
def test_each_pair_of_docks_has_its_own_parameters(name):
    kind = catalog[name]
    pairs = connector_pairs(kind)
    assert pairs
    for pair in pairs:
        T_in = kind.port_pose(pair.input.label) @ turned(X, np.pi)
        T = np.linalg.inv(T_in) @ kind.port_pose(pair.output.label)
        np.testing.assert_allclose(pair.transform(0.0), T, rtol=0, atol=ROUND_TRIP)
        moving = {joint.name for joint in kind.joints}
        assert set(pair.beside) == moving - ({pair.joint.name} if pair.joint else set())


def test_a_link_keeps_its_mass_in_the_proximal_part():
    pair = characterize(catalog["chen_link"], 6, 1)
    assert (pair.kind, pair.joint, pair.distal_mass.mass) == ("fixed", None, 0)
    assert pair.proximal_mass.mass == catalog["chen_link"].mass
    np.testing.assert_allclose(pair.proximal_mass.center, [0, 0, 0.05], atol=EXACT)
    np.testing.assert_array_equal(pair.transform(1.0), pair.transform(0.0))


def test_welded_bodies_count_as_one_part():
    whole, halves = catalog["giusti_b"].model_dump(), catalog["giusti_b"].model_dump()
    half = {**whole["bodies"][1], "mass": 0.25, "inertia": [2.5e-4] * 3}
    halves["bodies"] = [whole["bodies"][0], half, {**half, "name": "other"}]
    weld = {"name": "weld", "kind": "fixed", "parent": "distal", "child": "other"}
    halves["joints"] = [*whole["joints"], {**weld, "position": [0.0, 0.0, 0.02]}]
    part = characterize(ModuleType(**halves)).distal_mass
    assert part.mass == 0.5
    np.testing.assert_allclose(part.center, [0, 0, -0.04], atol=EXACT)
    along = 2 * 2.5e-4 + 0.25 * (0.05**2 + 0.03**2)
    np.testing.assert_allclose(part.inertia, np.diag([along, along, 5e-4]), atol=EXACT)


# -- bad input -----------------------------------------------------------------------------------


def test_unknown_ports_and_joints_in_a_row_are_named():
    with complains(UnknownNameError, "no port 'top'", "in, out"):
        characterize(catalog["giusti_a"], "top", "out")
    with complains(UnknownNameError, "chen_link", "6 docks", "1, 2, 3, 4, 5, 6"):
        characterize(catalog["chen_link"])
    with complains(DatasheetError, "port in", "input and output at once"):
        characterize(catalog["giusti_a"], "in", "in")
    with complains(DatasheetError, "ports 1 and 4", "3 joints", "dh_table()"):
        characterize(catalog["superbot"], 1, 4)
    data = catalog["superbot"].model_dump()
    data["ports"][3]["body"] = "mid_b"
    with complains(DatasheetError, "ports 1 and 4", "2 joints (pitch, roll)"):
        characterize(ModuleType(**data), 1, 4)


def test_a_module_whose_output_cannot_be_reached_is_refused():
    loose = {**catalog["giusti_a"].model_dump(), "joints": ()}
    with complains(DatasheetError, "the joints must connect the 2 bodies into one tree"):
        ModuleType(**loose)


# -- the page about it -----------------------------------------------------------------------------


def test_the_example_of_the_theory_page_works():
    text = PAGE.read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names = {}
    exec(block, names)
    assert names["tau"].shape == (5,)
    assert f"{PARALLEL:g} (`PARALLEL`)".replace("e-0", "e-") in text
    assert f"{TOUCHING_M:g} m (`TOUCHING_M`)" in text


# -- digits ----------------------------------------------------------------------------------------


def test_angles_are_above_minus_pi_and_up_to_pi():
    for angle in (np.pi, -np.pi, 3 * np.pi):
        assert wrapped(angle) == np.pi
    assert wrapped(-3.0) == -3.0
    assert wrapped(3.5) == pytest.approx(3.5 - 2 * np.pi, abs=EXACT)
    assert [math.copysign(1, wrapped(zero)) for zero in (-0.0, -2 * np.pi)] == [1, 1]


@pytest.mark.parametrize("quarters", range(-5, 6))
def test_quarter_turns_are_exact(quarters):
    c, s = [(1, 0), (0, 1), (-1, 0), (0, -1)][quarters % 4]
    angle = quarters * np.pi / 2
    assert turn_z(angle)[:2, :2].tolist() == [[c, -s], [s, c]]
    found = link_transform(0.5, angle, 0.25, 2.0)
    right = [[1, 0, 0, 0.5], [0, c, -s, -2 * s], [0, s, c, 2 * c - 0.25], [0, 0, 0, 1]]
    assert found.tolist() == right


def test_tables_have_no_minus_zeros():
    flips = [turned(axis, angle) for axis in (X, Y, Z) for angle in (np.pi, np.pi / 2, -np.pi / 2)]
    pairs = [axis_pair(one @ slid(axis, 0.5) @ two) for axis in (X, Y, Z) for one in flips
             for two in flips]  # fmt: skip
    numbers = [x for pair in pairs for x in pair[:6]]
    for kind in catalog.values():
        for part in connector_pairs(kind):
            masses = (*part.proximal_mass.center, *part.distal_mass.inertia.ravel())
            numbers += [*part.proximal, *part.distal, part.delta_j, *masses]
        for body in range(len(kind.bodies)):  # also against the order of the datasheet
            for step in kind.outward(body):
                numbers += [*step.before.ravel(), *step.screw, *step.after.ravel()]
    assert not any(math.copysign(1, x) < 0 for x in numbers if x == 0)


def test_mass_properties_of_a_part_are_read_only():
    part = characterize(catalog["giusti_a"]).proximal_mass
    for array in (part.center, part.inertia):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
