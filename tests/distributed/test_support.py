"""Where the center of mass may be: against force balances solved in another way."""

import numpy as np
import pytest
from scipy.optimize import nnls

import modurob as mr
from modurob.distributed import MassNetwork
from modurob.distributed.balancing import support
from modurob.distributed.balancing.support import (
    CONE_SIDES,
    goal_of,
    pyramids,
    stability_region,
    support_polygon,
    waypoints,
)

SETS, POINTS = 40, 8  # the benchmark looks at 1,000 sets
BALANCED = 1e-8  # residual of a force balance in units of the weight
BORDER = 1e-5  # [m] points this close to the border may go either way
SIDES = 8


def random_contacts(rng, count=None):
    k = int(rng.integers(1, 6)) if count is None else count
    place = rng.uniform(-1, 1, (k, 3)) * [1, 1, 0.3]
    normal = np.array([0, 0, 1.0]) + rng.normal(0, 0.25, (k, 3))
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    return np.hstack([place, normal, rng.uniform(0, 0.6, (k, 1))])


def can_stand(contacts, place, sides=SIDES):
    """Nonnegative least squares on the six equations of rest, the center at any height."""
    columns = []
    for x, y, z, *rest in contacts:
        normal, friction = np.array(rest[:3]), rest[3]
        basis = np.linalg.svd(normal[None])[2][1:]
        if np.dot(np.cross(basis[0], basis[1]), normal) < 0:
            basis = basis[::-1]
        for k in range(sides):
            angle = 2 * np.pi * k / sides
            force = normal + friction * (np.cos(angle) * basis[0] + np.sin(angle) * basis[1])
            columns.append([*force, *np.cross([x, y, z], force)])
    center = np.array([*place, 0.7])
    wanted = [0, 0, 1, *np.cross(center, [0, 0, 1])]
    return nnls(np.array(columns).T, wanted)[1] < BALANCED


def around(contacts, sides):
    """With more friction, so that pyramids hold the cones instead of standing in them."""
    wider = contacts.copy()
    wider[:, 6] /= np.cos(np.pi / sides)
    return wider


def test_the_region_is_where_forces_can_balance_the_weight():
    """Frictionless contacts, so that both pyramids are the same: the normals alone."""
    rng = np.random.default_rng(0)
    seen = {True: 0, False: 0}
    for _ in range(SETS):
        contacts = random_contacts(rng)
        contacts[:, 3:6], contacts[:, 6] = [0, 0, 1], 0.0
        region, hull = stability_region(contacts), support_polygon(contacts)
        for place in rng.uniform(-1, 1, (POINTS, 2)):
            stands = can_stand(contacts, place)
            assert region.contains(place) == stands
            assert hull.contains(place) == stands
            seen[stands] += 1
    assert min(seen.values()) > 20


def test_the_region_with_friction_lies_between_pyramids_inside_and_around_the_cones():
    """Pyramids turned differently stand for the same cones: finer ones hold coarser ones."""
    rng = np.random.default_rng(1)
    seen = {True: 0, False: 0}
    for _ in range(SETS // 3):
        contacts = random_contacts(rng, int(rng.integers(2, 5)))
        region = stability_region(contacts, SIDES)
        outer = stability_region(around(contacts, SIDES), SIDES)
        shares = rng.dirichlet(np.ones(len(contacts)), POINTS)
        for place in shares @ contacts[:, :2] + rng.normal(0, 0.2, (POINTS, 2)):
            if region.contains(place, BORDER):
                assert can_stand(around(contacts, 64), place, 64)
            truth = can_stand(contacts, place, 64)
            if truth:
                assert outer.contains(place, -BORDER)
            seen[truth] += 1
    assert min(seen.values()) > 10


def test_on_level_ground_friction_does_not_help():
    rng = np.random.default_rng(2)
    contacts = random_contacts(rng, 5)
    contacts[:, 2], contacts[:, 3:6] = 0.0, [0, 0, 1]
    region, hull = stability_region(contacts), support_polygon(contacts)
    assert len(region.corners) == len(hull.corners)
    for corner in hull.corners:
        assert np.linalg.norm(region.corners - corner, axis=1).min() < 1e-7


def test_margins_and_nearest_points():
    square = support_polygon([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0.5, 0.5, 0]])
    assert len(square.corners) == 4
    seen_twice = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [1 + 4e-13, 1 - 4e-13, 0], [0, 1, 0]]
    twice = support_polygon(seen_twice)  # one corner, apart by rounding
    assert len(twice.corners) == 4
    np.testing.assert_allclose(square.nearest([[2, 0.5], [0.4, 0.4], [-1, -1]], 0.1),
                               [[0.9, 0.5], [0.4, 0.4], [0.1, 0.1]])  # fmt: skip
    assert square.contains([0.95, 0.5])
    assert square.contains([1.0, 0.5])  # the border belongs to it
    assert square.contains([0.75, 0.5], margin=0.25)
    assert not square.contains([0.95, 0.5], margin=0.1)
    triangle = support_polygon([[0, 0, 0], [3, 0, 0], [0, 3, 0]])
    assert triangle.contains([0.5, 0.5], margin=0.4)
    assert not triangle.contains([0.5, 0.5], margin=0.6)
    np.testing.assert_allclose(square.nearest([0.9, 0.9], 0.7), [0.5, 0.5], atol=1e-9)
    np.testing.assert_allclose(support_polygon([[0, 0, 0], [1, 0, 0]]).nearest([0.3, 2]), [0.3, 0])


def test_where_nothing_carries_the_weight_it_says_so_and_heads_for_the_middle():
    steep = np.array([np.cos(0.2), 0, np.sin(0.2)])  # a wall, and hardly any friction
    region = stability_region([[0, 0, 0, *steep, 0.1], [0, 1, 0, *steep, 0.1]])
    assert not region.feasible
    assert region.contains([0, 0.5]) is False
    np.testing.assert_allclose(region.nearest([3.0, 3.0]), [0, 0.5])
    np.testing.assert_allclose(region.keep_inside(0.1)(0.0, np.ones((4, 3)))[2], [0, 0.5])


@pytest.mark.parametrize(
    ("contacts", "words"),
    [
        (np.zeros((0, 7)), "no module is in contact"),
        (np.zeros((2, 4)), "7 finite numbers"),
        ([[0, 0, 0, 0, 0, 2, 0.5]], "length 1"),
        ([[0, 0, 0, 0, 0, 1, -0.5]], "not negative"),
        ([[0, -1, 0, 0, 1, 0, 1.0], [0, 1, 0, 0, -1, 0, 1.0]], "clamp"),
    ],
)
def test_bad_contacts_get_one_clear_error(contacts, words):
    with pytest.raises(mr.StateError, match=words):
        stability_region(contacts)


def test_every_module_finds_the_same_region_from_what_it_was_told():
    organism = mr.examples.superbot_tree(4, 2, np.random.default_rng(5))
    model = organism.model("physical")
    q = model.random_configuration(np.random.default_rng(1))
    T = model.forward_kinematics(q)
    network = MassNetwork(organism)
    network.measure(q, model=model)
    feet = ("m0", "m3", "m6")
    for foot in feet:
        network.touch(foot, np.zeros(3), T[model.modules[foot]], friction=0.6)
    network.settle()
    truth = support_polygon([T[model.modules[foot]][:3, 3] for foot in feet])
    for name in organism:
        contacts = network.contacts_in_world(name)
        np.testing.assert_allclose(contacts[:, 3:6], np.tile([0, 0, 1.0], (3, 1)), atol=1e-12)
        found = support_polygon(contacts)
        np.testing.assert_allclose(found.corners, truth.corners, atol=1e-10)


def test_waypoints_stop_at_every_place():
    target = waypoints([0, 1, 3], [[0, 0], [1, 0], [1, 2]])
    for t, place in ((0, [0, 0]), (0.5, [0.5, 0]), (1, [1, 0]), (2, [1, 1]), (9, [1, 2])):
        np.testing.assert_allclose(target(t, np.zeros(3)), place, atol=1e-12)
    assert target(0.2, np.zeros((5, 3))).shape == (5, 2)
    with pytest.raises(mr.StateError, match="increase"):
        waypoints([0, 0], [[0, 0], [1, 1]])
    for times, places in (([0, 1], [[0, 0]]), ([[0]], [[0, 0]]), ([], np.zeros((0, 2)))):
        with pytest.raises(mr.StateError, match=r"k times need \(k, 2\) places"):
            waypoints(times, places)


# -- regions by themselves -------------------------------------------------------------------------

PENTAGON = np.array([[0.0, 0.0], [2.0, -0.5], [3.0, 1.0], [1.5, 2.5], [-0.5, 1.5]])


def signed_distance(corners, point):
    """From the border, positive inside: edge by edge."""
    ends = [*zip(corners, np.roll(corners, -1, axis=0), strict=True)]
    away = []
    for a, b in ends:
        share = np.clip((point - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0)
        away.append(np.linalg.norm(a + share * (b - a) - point))
    inside = all(np.linalg.det([b - a, point - a]) > 0 for a, b in ends)
    return min(away) if inside else -min(away)


def test_margins_are_distances_from_the_border_and_shrunk_regions_those_with_more():
    region = support_polygon(np.column_stack([PENTAGON, np.ones(5)]))
    np.testing.assert_allclose(region.middle, PENTAGON.mean(axis=0))
    smaller, points = region.shrunk(0.4), np.random.default_rng(3).uniform(-1, 3.5, (300, 2))
    seen = {True: 0, False: 0}
    for point in points:
        distance = signed_distance(PENTAGON, point)
        assert region.margin(point) == pytest.approx(distance)
        assert region.contains(point) == (distance >= 0)
        assert region.contains(point, 0.4) == smaller.contains(point) == (distance >= 0.4)
        nearest = region.nearest(point)
        assert np.linalg.norm(nearest - point) == pytest.approx(max(-distance, 0.0))
        assert abs(region.margin(nearest)) < 1e-12 or distance > 0
        seen[distance >= 0.4] += 1
    assert min(seen.values()) > 30
    np.testing.assert_allclose(region.nearest(np.ones((2, 3, 3))), np.ones((2, 3, 2)))
    assert region.shrunk(0.0) is region
    np.testing.assert_array_equal(smaller.middle, region.middle)
    with pytest.raises(mr.StateError, match="margin"):
        region.shrunk(-0.1)


def test_of_a_region_without_room_its_deepest_point_is_left():
    triangle = support_polygon([[0, 0, 0], [3, 0, 0], [0, 4, 0]])
    np.testing.assert_allclose(triangle.shrunk(1.01).corners, [[1.0, 1.0]])  # of the incircle
    assert len(triangle.shrunk(0.99).corners) == 3
    np.testing.assert_array_equal(triangle.nearest([0.5, 0.5]), [0.5, 0.5])  # it is inside
    np.testing.assert_allclose(triangle.nearest([5.0, 5.0], 2.0), [1.0, 1.0])
    np.testing.assert_allclose(triangle.keep_inside(2.0)(0.0, np.ones((2, 3))), np.ones((2, 2)))


def test_of_a_region_as_narrow_as_two_margins_the_middle_is_left():
    oblong = support_polygon([[0, 0, 0], [4, 0, 0], [4, 2, 0], [0, 2, 0]]).shrunk(1.0)
    assert {tuple(corner) for corner in oblong.corners.tolist()} == {(1.0, 1.0), (3.0, 1.0)}
    assert oblong.contains([2.0, 1.0])
    assert oblong.margin([2.0, 3.0]) == -2.0
    np.testing.assert_allclose(oblong.nearest([[0, 1], [9, 1], [2, 5]]), [[1, 1], [3, 1], [2, 1]])
    square = support_polygon([[0, 0, 0], [2, 0, 0], [2, 2, 0], [0, 2, 0]]).shrunk(1.0)
    assert square.corners.tolist() == [[1.0, 1.0]]
    assert square.margin([1.0, 4.0]) == -3.0


def test_segments_and_points_have_no_inside():
    segment = support_polygon([[0, 0, 0], [3, 4, 0], [1.5, 2, 1]])
    assert segment.corners.tolist() == [[0, 0], [3, 4]]
    point = support_polygon([[1, 1, 5], [1, 1, 7]])
    assert point.corners.tolist() == [[1, 1]]
    for region, place, away in (
        (segment, [1.5, 2.0], 0.0), (segment, [1.5 - 0.8, 2.0 + 0.6], 1.0),
        (segment, [6.0, 8.0], 5.0), (point, [1.0, 3.0], 2.0), (point, [1.0, 1.0], 0.0),
    ):  # fmt: skip
        assert region.margin(place) == pytest.approx(-away, abs=1e-12)
        assert region.contains(place, -away - 1e-9)
        assert not region.contains(place, -away + 1e-9)
        assert region.shrunk(1.0) is region
    assert region.contains([1.0, 1.0])
    np.testing.assert_allclose(point.nearest([[0, 0], [9, 1]]), [[1, 1], [1, 1]])


def test_edges_of_pyramids_lean_by_the_friction_all_around_the_normal():
    rng, sides = np.random.default_rng(4), 7
    contacts = random_contacts(rng, 4)
    contacts[:, 6] = [0.1, 0.2, 0.4, 0.8]
    contacts[0, 3:6], contacts[1, 3:6] = [1, 0, 0], [-1, 0, 0]  # walls
    forces, place = pyramids(contacts, sides)
    f = forces[:3].T.reshape(sides, 4, 3)
    p, n, friction = contacts[:, :3], contacts[:, 3:6], contacts[:, 6]
    np.testing.assert_allclose((f * n).sum(axis=-1), np.ones((sides, 4)))
    rim = f - n
    np.testing.assert_allclose(np.linalg.norm(rim, axis=-1), np.tile(friction, (sides, 1)))
    cosine = (rim * np.roll(rim, -1, axis=0)).sum(axis=-1) / friction**2
    np.testing.assert_allclose(cosine, np.full((sides, 4), np.cos(2 * np.pi / 7)))
    moment = np.cross(p, f).reshape(-1, 3)
    np.testing.assert_allclose(forces[3], moment[:, 2])
    # the weight at c has the moment c x (-z): together they are at rest
    np.testing.assert_allclose(np.cross(np.column_stack([place.T, 0 * place[0]]), [0, 0, 1.0]),
                               moment * [1, 1, 0], atol=1e-12)  # fmt: skip


@pytest.mark.parametrize("normal", np.vstack([np.eye(3), -np.eye(3)]).tolist())
def test_friction_along_axes_across_the_normal_counts_in_full(normal):
    """Pyramids are smaller than their cones elsewhere."""
    forces, _ = pyramids(np.array([[0.1, 0.2, 0.3, *normal, 0.5]]), CONE_SIDES)
    across = np.flatnonzero(np.array(normal) == 0)
    np.testing.assert_allclose(forces[across].max(axis=1), 0.5)
    np.testing.assert_allclose(forces[across].min(axis=1), -0.5)


def test_every_corner_of_a_round_region_is_found():
    angles = 2 * np.pi * np.arange(12) / 12 + 0.1
    feet = np.zeros((12, 7))
    feet[:, 0], feet[:, 1], feet[:, 5] = 0.3 * np.cos(angles), 0.2 * np.sin(angles), 1.0
    found = stability_region(feet)
    assert len(found.corners) == 12
    for foot in feet:
        assert np.linalg.norm(found.corners - foot[:2], axis=1).min() < 1e-9
    feet[:, 0] *= 1e-3  # also of one that is small
    assert len(stability_region(feet).corners) == 12
    alone = stability_region([[0.1, 0.2, 0.0, 0, 0, 1, 0.5]])
    np.testing.assert_allclose(alone.corners, [[0.1, 0.2]])


def test_regions_that_end_far_away_are_regions_and_endless_ones_are_not():
    """Two walls lean towards each other: the center may be high above, and far beside the feet."""
    steep = np.array([[-1, 0, 0, np.sin(1.4), 0, np.cos(1.4), 0.5], [1, 0, 0, 0, 0, 1, 0.5]])
    region = stability_region(steep)
    assert region.feasible
    assert np.abs(region.corners).max() < 100
    np.testing.assert_allclose(region.middle, [0.0, 0.0])
    for factor, words in ((1 + 9e-7, None), (1 + 2e-6, "length 1")):
        contact = np.array([[0, 0, 0, 0, 0, factor, 0.5]])
        if words is None:
            stability_region(contact)
        else:
            with pytest.raises(mr.StateError, match=words):
                stability_region(contact)
    with pytest.raises(mr.StateError, match="finite"):
        support_polygon([[0, 0, np.nan]])


def round_about(radius, count, friction=0.0):
    angles = 2 * np.pi * np.arange(count) / count
    contacts = np.zeros((count, 7))
    contacts[:, 0], contacts[:, 1] = radius * np.cos(angles), radius * np.sin(angles)
    contacts[:, 5], contacts[:, 6] = 1.0, friction
    return contacts


def test_regions_reach_up_to_a_hundred_meters():
    assert stability_region(round_about(99.9, 4)).contains([99.8, 0.0])
    with pytest.raises(mr.StateError, match="hold a center of mass 100 m away: they clamp"):
        stability_region(round_about(100.1, 4))


def test_a_round_region_has_64_corners(monkeypatch):
    monkeypatch.setattr(
        support, "_corner", lambda forces, place, direction: direction / np.linalg.norm(direction)
    )
    corners = stability_region(round_about(0.3, 4)).corners
    angles = np.sort(np.arctan2(corners[:, 1], corners[:, 0]))
    np.testing.assert_allclose(np.diff(angles), 2 * np.pi / 64, atol=1e-9)
    assert len(corners) == 64


def test_all_of_50_corners_are_found(monkeypatch):
    angles = 2 * np.pi * (np.arange(50) / 50) ** 2 + 0.03  # most of them in one arc
    corners = 0.3 * np.column_stack([np.cos(angles), np.sin(angles)])
    monkeypatch.setattr(
        support, "_corner", lambda forces, place, direction: corners[np.argmax(corners @ direction)]
    )
    found = stability_region(round_about(0.3, 4)).corners
    assert len(found) == 50
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 0.3)


def test_targets_are_points_or_functions():
    there = goal_of((0.1, -0.2))
    np.testing.assert_array_equal(there(0.0, np.zeros(3)), [0.1, -0.2])
    assert there(1.0, np.zeros((4, 5, 3))).shape == (4, 5, 2)
    follow = goal_of(lambda t, center: [t, center[0]])
    np.testing.assert_array_equal(follow(0.5, np.array([7.0, 8, 9])), [0.5, 7.0])
    assert follow(0.5, np.zeros(3)).dtype == float
    for wrong in ((1.0,), [[1.0, 2.0]], (1.0, np.inf), "ab"):
        with pytest.raises(mr.StateError, match="target is a point"):
            goal_of(wrong)


def test_between_waypoints_the_way_is_one_of_minimum_jerk():
    target = waypoints([1.0, 3.0, 3.5], [[0, 1], [4, -1], [5, 5]])
    for t, k, s in ((1.0, 0, 0.0), (1.5, 0, 0.25), (2.4, 0, 0.7), (3.1, 1, 0.2), (0.0, 0, 0.0)):
        share = 10 * s**3 - 15 * s**4 + 6 * s**5
        places = np.array([[0, 1], [4, -1], [5, 5.0]])
        wanted = places[k] + share * (places[k + 1] - places[k])
        np.testing.assert_allclose(target(t, np.zeros(3)), wanted)
    np.testing.assert_array_equal(waypoints([2.0], [[3, 4]])(7.0, np.zeros((2, 3))), [[3, 4]] * 2)
    for times, places in (([0, 2, 1], [[0, 0]] * 3), ([0, np.inf], [[0, 0]] * 2),
                          ([0, 1], [[0, 0], [0, np.nan]])):  # fmt: skip
        with pytest.raises(mr.StateError, match="increase, and all numbers must be finite"):
            waypoints(times, places)
