"""Details of pictures and charts that no glance at a whole picture notices."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.colors import to_hex
from scipy.spatial import ConvexHull

import modurob as mr
from modurob.drawing import camera, charts, raster, scene, solids
from oracles.complaints import complains

EXACT = 1e-12
pictures = import_module("modurob.drawing.picture")  # the package has a function of that name
CUBE = np.array([[x, y, z] for x in (-1.0, 1) for y in (-1.0, 1) for z in (-1.0, 1)])


def built(organism, hinges="physical"):
    model = organism.model(hinges=hinges)
    return scene.build(organism, model, model.neutral())


# -- camera ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("azimuth", "elevation"), [(0, 0), (90, 0), (-62, 40), (30, 90)])
def test_the_eye_stands_five_radii_away_in_its_direction(azimuth, elevation):
    view = camera.fit(CUBE + np.array([5.0, 6, 7]), azimuth, elevation, 300)
    a, e = np.deg2rad([azimuth, elevation])
    towards = [np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)]
    np.testing.assert_allclose(view.center, [5, 6, 7])
    expected = 5 * np.sqrt(3) * np.array(towards)
    np.testing.assert_allclose(view.eye - view.center, expected, atol=EXACT)
    np.testing.assert_allclose(view.R_cw @ view.R_cw.T, np.eye(3), atol=EXACT)
    assert np.linalg.det(view.R_cw) == pytest.approx(1)
    assert view.R_cw[1, 2] >= -EXACT  # up is up


@pytest.mark.parametrize("longest", [200, 1001])
def test_the_scene_fills_the_picture_up_to_a_border_of_three_percent(longest):
    view = camera.fit(CUBE * [1, 2, 3], -50.0, 20.0, longest)
    pixels, _ = view.project(CUBE * [1, 2, 3])
    low, high = pixels.min(axis=0), pixels.max(axis=0)
    np.testing.assert_allclose(low, 0.03 * longest)
    assert max(high) == pytest.approx(0.97 * longest)
    np.testing.assert_allclose(view.size, np.ceil(high + 0.03 * longest - 1e-9), atol=1)
    assert max(view.size) in (longest, longest + 1)


def test_a_point_of_the_middle_has_the_scale_of_the_camera():
    view = camera.fit(CUBE, 0.0, 0.0, 300)
    (left, right), nearness = view.project(np.array([[0.0, 0, 0], [0.0, 0.1, 0]]))
    np.testing.assert_allclose(right - left, [0.1 * view.scale, 0])
    np.testing.assert_allclose(nearness, 1 / view.distance)
    assert view.project(np.array([1.0, 0, 0]))[1] > nearness[0]  # towards the eye is nearer


def test_rays_that_rise_meet_no_floor():
    view = camera.fit(CUBE, 0.0, 10.0, 300)
    middle = view.project(view.center)[0]
    assert np.isnan(view.on_floor(middle + np.array([0, 250]), -1.0)).all()
    assert np.isfinite(view.on_floor(middle, -1.0)).all()
    assert np.isnan(view.on_floor(middle, float(view.eye[2]))).all()  # the eye is in the floor


def test_floors_of_small_scenes_are_met_and_thin_scenes_have_thin_pictures():
    tiny = camera.fit(1e-3 * CUBE, 0.0, 10.0, 300)
    np.testing.assert_allclose(tiny.on_floor(tiny.offset, 0.0), [0, 0], atol=EXACT)
    rod = camera.fit(1e-3 * np.array([[-1.0, 0, 0], [1, 0, 0]]), -90.0, 0.0, 100)
    assert rod.size == (100, 7)  # both borders and less than a pixel


def test_cameras_and_buffers_are_values_and_equal_to_themselves_alone():
    views = [camera.fit(CUBE, 0.0, 0.0, 100) for _ in range(2)]
    facets = built(mr.Organism.start("chen_link")).facets
    buffers = [raster.rasterize(facets, view) for view in views]
    with pytest.raises(AttributeError):
        views[0].scale = 2.0
    with pytest.raises(AttributeError):
        buffers[0].shade = buffers[1].shade
    for one, other in (views, buffers):
        assert one == one
        assert one != other


def test_a_scene_of_one_point_still_has_a_picture():
    view = camera.fit(np.zeros((1, 3)), 0.0, 0.0, 100)
    assert min(view.size) >= 1
    assert np.isfinite(view.scale)


# -- raster ----------------------------------------------------------------------------------------


def test_covered_pixels_are_those_whose_centers_lie_inside():
    rim = np.array([[1.2, 1.2], [4.6, 1.2], [4.6, 3.6], [1.2, 3.6]])
    window, inside, x, y = raster.cover(rim, (10, 10))
    assert window == (slice(1, 4), slice(1, 5))
    found = {(float(a), float(b)) for b in y[:, 0] for a in x[0] if 1.2 < a < 4.6 and 1.2 < b < 3.6}
    assert {(float(x[0, j]), float(y[i, 0])) for i, j in np.argwhere(inside)} == found
    assert x[0].tolist() == [1.5, 2.5, 3.5, 4.5]


@pytest.mark.parametrize(
    "shift", [(-20, 0), (20, 0), (0, -20), (0, 20), (-4, 0), (9, 0), (0, -3), (0, 9)]
)
def test_what_lies_beside_the_picture_covers_nothing(shift):
    rim = np.array([[1.0, 1], [4, 1], [4, 3], [1, 3]])
    assert raster.cover(rim + shift, (10, 10)) is None
    window, inside, _, _ = raster.cover(rim + np.array([7, 8]), (10, 10))  # half of it is outside
    assert window == (slice(9, 10), slice(8, 10))
    assert inside.all()
    window, inside, _, _ = raster.cover(rim - np.array([2, 2]), (10, 10))
    assert window == (slice(0, 1), slice(0, 2))
    assert inside.all()


def test_pictures_may_be_wide_or_high():
    rim = np.array([[1.0, 1], [4, 1], [4, 3], [1, 3]])
    wide, *_ = raster.cover(rim + np.array([20, 7]), (9, 30))
    high, *_ = raster.cover(rim + np.array([7, 20]), (30, 9))
    assert wide == (slice(8, 9), slice(21, 24))
    assert high == (slice(21, 23), slice(8, 9))


def test_each_pixel_shows_the_nearest_facet_that_its_ray_meets():
    """By the rays from the eye through the centers of pixels, cut with the planes of facets."""
    found = built(mr.examples.snake(3))
    view = camera.fit(found.points, -50.0, 30.0, 70)
    buffers = raster.rasterize(found.facets, view)
    y, x = np.mgrid[: view.size[1], : view.size[0]] + 0.5
    tangents = (np.stack([x, y], axis=-1) - view.offset) / view.focal
    rays = np.dstack([tangents, -np.ones(x.shape)]) @ view.R_cw
    nearness, surface = np.zeros(x.shape), np.full(x.shape, raster.NOTHING)
    shade = np.zeros(x.shape)
    for corners, shades, number in found.facets:
        normal = np.cross(corners[1] - corners[0], corners[2] - corners[1])
        near = rays @ normal / (normal @ (corners[0] - view.eye))
        at = view.eye + rays / near[..., None] - corners[:, None, None]
        edges = np.roll(corners, -1, axis=0) - corners
        room = np.min(np.cross(edges[:, None, None], at) @ normal, axis=0)
        first = (rays @ normal < 0) & (room > 0) & (near > nearness)
        nearness[first], surface[first], shade[first] = near[first], number, shades[0]
    certain = ~raster.edges(surface)  # rounding decides on borders
    assert certain.mean() > 0.6
    assert len(np.unique(surface[certain])) > 6
    np.testing.assert_array_equal(buffers.surface[certain], surface[certain])
    np.testing.assert_allclose(buffers.nearness[certain], nearness[certain], rtol=1e-5)
    np.testing.assert_allclose(buffers.shade[certain], shade[certain], rtol=1e-5)


def test_a_pixel_belongs_to_both_of_two_polygons_whose_edge_goes_through_its_center():
    """Else there would be a seam between them."""
    rim = np.array([[0.5, 0.5], [2.5, 0.5], [2.5, 2.5], [0.5, 2.5]])
    _, inside, _, _ = raster.cover(rim, (9, 9))
    assert inside.tolist() == [[True] * 3] * 3


def test_edges_are_both_sides_of_a_change():
    surface = np.array([[0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 1], [2, 0, 0, 1]])
    assert raster.edges(surface).tolist() == [
        [False, False, True, True],
        [False, False, True, True],
        [True, False, True, True],
        [True, True, True, True],
    ]
    assert not raster.edges(np.zeros((3, 3), dtype=int)).any()
    for two in (np.array([[0, 0], [1, 1]]), np.array([[0, 1], [0, 1]])):
        assert raster.edges(two).all()


def test_shades_of_a_facet_go_evenly_from_corner_to_corner():
    corners = np.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
    facet = raster.Facet(corners, np.array([0.0, 1, 1, 0]), 3)
    view = camera.fit(corners, -90.0, 90.0, 101)
    found = raster.rasterize([facet], view)
    row = found.surface.shape[0] // 2
    seen = found.surface[row] == 3
    assert np.ptp(np.diff(found.shade[row][seen])) < 1e-5
    assert found.shade[row][seen][[0, -1]] == pytest.approx([0, 1], abs=0.02)
    assert found.nearness[row][seen] == pytest.approx(1 / view.distance)
    assert not found.nearness[~(found.surface == 3)].any()


def test_shades_go_from_the_lower_to_the_upper_edge_as_well():
    corners = np.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
    facet = raster.Facet(corners, np.array([0.0, 0, 1, 1]), 0)
    found = raster.rasterize([facet], camera.fit(corners, -90.0, 90.0, 101))
    column = found.shade[:, found.surface.shape[1] // 2][3:-3]
    assert np.ptp(np.diff(column[1:-1])) < 1e-5
    assert column[[1, -2]] == pytest.approx([0, 1], abs=0.03)


def test_of_two_facets_in_one_plane_the_first_stays():
    corners = np.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
    facets = [raster.Facet(corners, np.ones(4), k) for k in (7, 8)]
    view = camera.fit(corners, 0.0, 60.0, 60)
    assert set(np.unique(raster.rasterize(facets, view).surface)) == {raster.NOTHING, 7}


def test_facets_are_invisible_edge_on():
    facet = raster.Facet(
        np.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]), np.ones(4), 0
    )
    assert [*raster.facing_facets([facet], np.array([9.0, 0, 0]))] == []
    ((_, _, facing),) = raster.facing_facets([facet], np.array([9.0, 0, 0.5]))
    assert facing == pytest.approx(4 * 0.5)  # its area times the height of the eye


# -- scene -----------------------------------------------------------------------------------------


def test_brightness_depends_on_the_light_between_its_limits():
    shade = scene._shade(np.stack([scene.LIGHT, -scene.LIGHT, np.cross(scene.LIGHT, [1, 0, 0])]))
    middle = 0.58 + 0.54 * 0.5**1.4
    assert shade == pytest.approx([1.12, 0.58, middle])
    assert np.linalg.norm(scene.LIGHT) == pytest.approx(1)
    assert scene.LIGHT[2] > 0


def test_shadows_lie_on_the_floor_along_the_sun():
    points = np.array([[1.0, 2, 3], [0, 0, -0.5]])
    found = scene.on_floor(points, -0.5)
    assert found[:, 2] == pytest.approx([-0.5, -0.5])
    assert np.cross(points[0] - found[0], scene.SUN) == pytest.approx(np.zeros(3))
    assert found[1] == pytest.approx(points[1])


def test_axes_stick_out_by_a_third_of_a_module():
    (start, end), *_ = built(mr.examples.snake(2)).axes
    size = mr.catalog["backbone"].size
    span = built(mr.Organism.start("backbone")).points[:, 0]
    assert np.linalg.norm(end - start) == pytest.approx(np.ptp(span) + 0.6 * size)


def test_axes_span_their_modules():
    arm = mr.examples.arm("ab")
    found = built(arm)
    for joint, (start, end) in zip(arm.model("physical").joint_names, found.axes, strict=True):
        row = arm.modules.index(joint.partition(".")[0])
        corners = [f.corners for f in found.facets if found.owner[f.surface] == row]
        way = (end - start) / np.linalg.norm(end - start)
        along = (np.concatenate(corners) - start) @ way
        beyond = 0.3 * arm.kind(arm.modules[row]).size
        assert along.min() == pytest.approx(beyond)
        assert np.linalg.norm(end - start) - along.max() == pytest.approx(beyond)


def test_the_axis_of_a_slide_points_along_it():
    crane = mr.examples.crane()
    first = built(crane).axes[0]
    way = first[1] - first[0]
    model = crane.model("physical")
    moved = (
        model.forward_kinematics([0.5, 0.0])[-1, :3, 3]
        - model.forward_kinematics([0.0, 0.0])[-1, :3, 3]
    )
    assert np.cross(way, moved) == pytest.approx(np.zeros(3), abs=EXACT)
    assert np.linalg.norm(way) > mr.catalog["backbone"].size  # through what it carries


def test_large_organisms_have_rougher_cylinders():
    assert scene.SMOOTH == 48
    few = built(mr.examples.arm("a" * 2))
    many = built(mr.examples.arm("a" * 41))
    assert len(many.facets) / 41 < 0.6 * len(few.facets) / 2
    at_most = built(mr.examples.arm("a" * 40))
    assert len(at_most.facets) == 20 * len(few.facets)
    most = [max(len(facet.corners) for facet in found.facets) for found in (few, many)]
    assert most == [48, 16]  # of a cylinder's end


def test_the_floor_is_below_everything_and_owners_are_rows():
    found = built(mr.examples.crab())
    assert found.floor == found.points[:, 2].min()
    assert set(found.owner) == set(range(6))
    assert len(found.owner) == len(found.colors) == 1 + max(f.surface for f in found.facets)


def test_a_color_that_is_none_is_named():
    with complains(mr.DatasheetError, "'colorless'", "#rrggbb"):
        scene._rgb("colorless")
    assert scene._rgb("#ff8000") == pytest.approx((1.0, 128 / 255, 0.0))


@pytest.mark.parametrize("around", [8, 16])
def test_round_solids_have_as_many_polygons_as_asked_for(around):
    cylinder = solids.polygons("cylinder", (0.5, 2.0), around)
    assert len(cylinder) == around + 2
    assert [p.surface for p in cylinder] == [0, 1] + [2] * around
    sphere = solids.polygons("sphere", (0.5,), around)
    assert len(sphere) == around * (around // 2)
    assert {p.surface for p in sphere} == {0}
    widths = [np.linalg.norm(p.corners[1] - p.corners[0]) for p in cylinder[2:]]
    assert widths == pytest.approx([2 * 0.5 * np.sin(np.pi / around)] * around)
    assert {len(p.corners) for p in sphere} == {3, 4}
    for polygon in (*sphere, *cylinder[2:]):
        assert np.linalg.norm(polygon.normals, axis=1) == pytest.approx(1)
        edges = polygon.corners - np.roll(polygon.corners, 1, axis=0)
        assert np.linalg.norm(edges, axis=1).min() > 1e-3  # triangles at both poles
    assert [p.surface for p in solids.polygons("box", (1.0, 2.0, 3.0), 4)] == list(range(6))


def test_bodies_in_one_scene_keep_their_surfaces_and_rows_apart():
    parts = [built(mr.examples.crab()), built(mr.examples.snake(2)), built(mr.examples.arm("ba"))]
    whole = scene.merged(parts)
    rows = np.cumsum([0, 6, 2])
    facets = iter(whole.facets)
    for part, row in zip(parts, rows, strict=True):
        for mine in part.facets:
            facet = next(facets)
            np.testing.assert_array_equal(facet.corners, mine.corners)
            np.testing.assert_array_equal(facet.shades, mine.shades)
            assert whole.owner[facet.surface] == part.owner[mine.surface] + row
            assert tuple(whole.colors[facet.surface]) == tuple(part.colors[mine.surface])
    assert next(facets, None) is None
    assert len(whole.owner) == len({facet.surface for facet in whole.facets})
    for name in ("points", "centers", "axes"):
        found = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(getattr(whole, name), found)


def test_boxes_of_all_configurations_hold_what_is_drawn_in_each():
    """Of SuperBots, which are boxes, to their faces."""
    tree = mr.examples.superbot_tree(2, 2)
    model = tree.model("physical")
    q = np.random.default_rng(0).uniform(-1, 1, (3, model.nq))
    points = [scene.build(tree, model, each).points for each in q]
    found = scene.reached(tree, model, q)
    whole = np.concatenate(points)
    np.testing.assert_allclose(found.min(axis=0), whole.min(axis=0), atol=EXACT)
    np.testing.assert_allclose(found.max(axis=0), whole.max(axis=0), atol=EXACT)
    bare = mr.ModuleType(**{**mr.catalog["scout"].model_dump(), "shapes": ()})
    organism = mr.Organism.start(bare)
    with complains(mr.DatasheetError, "none of the modules has a shape", "'shapes'"):
        scene.reached(organism, organism.model(), np.zeros((1, 0)))


def test_axes_are_those_of_joints_with_something_to_see():
    snake = mr.examples.snake(3)
    planar = snake.model("physical", base=("px", "py", "rz"))
    whole = scene.build(snake, planar, planar.neutral()).axes
    np.testing.assert_allclose(whole, built(snake).axes, atol=EXACT)  # none of the base's joints
    soft = snake.with_parameters(stiffness=9.0, rotor_inertia=1e-5)
    np.testing.assert_allclose(built(soft).axes, whole, atol=EXACT)  # motor and spring have one
    bare = mr.ModuleType(**{**mr.catalog["backbone"].model_dump(), "shapes": ()})
    found = built(snake.with_kinds({"m0": bare}))
    np.testing.assert_allclose(found.axes, whole[1:], atol=EXACT)
    assert set(found.owner) == {1, 2}


@pytest.mark.parametrize("kinds", ["tree", "arm", "pendulum"])
def test_an_axis_stays_where_it_is_when_its_own_joint_turns(kinds):
    organism = {
        "tree": mr.examples.superbot_tree(2, 2),
        "arm": mr.examples.arm("bab"),
        "pendulum": mr.examples.double_pendulum(),
    }[kinds]
    model = organism.model("physical")
    q = np.random.default_rng(0).uniform(-1, 1, model.nq)
    before = scene.build(organism, model, q).axes
    assert len(before) == model.nq
    for k in range(model.nq):
        after = scene.build(organism, model, q + 0.7 * np.eye(model.nq)[k]).axes
        np.testing.assert_allclose(after[k], before[k], atol=EXACT)


def test_light_comes_from_above_the_viewers_left_and_shadows_stay_near():
    for azimuth in np.deg2rad([-62.0, -28.0]):  # of the default views
        right = np.array([-np.sin(azimuth), np.cos(azimuth), 0.0])
        assert scene.LIGHT @ right < -0.1
    shadow = scene.on_floor(np.array([0.0, 0.0, 1.0]), 0.0)
    assert shadow == pytest.approx([0.12, 0.10, 0.0], abs=0.01)
    assert max(raster.OUTLINE_COLOR) < 0.1  # that of the base is nearly black


# -- paint -----------------------------------------------------------------------------------------


def test_edges_are_dark_the_base_is_outlined_and_the_floor_is_in_shadow():
    found = built(mr.examples.snake(2))
    view = pictures._camera(found, False, (-60.0, 30.0), 200)
    buffers = raster.rasterize(found.facets, view)
    image = raster.paint(found, buffers, view, pictures.SAMPLES, 0)
    assert image.shape == (view.size[1] // 2, view.size[0] // 2, 3)
    outlined = [
        np.all(
            np.abs(raster.paint(found, buffers, view, 1, row) - raster.OUTLINE_COLOR) < 1e-6, axis=2
        )
        for row in (0, 1, 99)
    ]
    owner = np.where(buffers.surface == raster.NOTHING, -1, found.owner[buffers.surface])
    assert outlined[0].sum() > 1000
    assert not outlined[2].any()
    assert not (outlined[0] & outlined[1]).any()
    assert np.all(owner[outlined[0]] == 0)
    assert np.all(owner[outlined[1]] == 1)
    assert outlined[1].sum() > 1000, outlined[1].sum()
    gray = np.ptp(image, axis=2) < 1e-6
    floor = gray & (image[..., 0] > 0.7)
    assert image[floor].min() == pytest.approx(0.8, abs=0.02)  # a fifth darker
    assert image[floor].max() == 1.0
    one = view.size[1] // 2, view.size[0] // 2
    fine = raster.paint(found, buffers, view, 1, 99)  # no averages: every pixel as it is
    edge = raster.edges(buffers.surface) & (buffers.surface != raster.NOTHING)
    shown = found.colors[buffers.surface] * buffers.shade[..., None]
    np.testing.assert_allclose(fine[edge], np.clip(0.5 * shown[edge], 0, 1), atol=1e-6)
    assert image.shape[:2] == one


@pytest.mark.parametrize(("size", "floor"), [((0.4, 0.3, 0.2), -0.3), ((0.05, 0.06, 1.0), -0.6)])
def test_the_shadow_is_that_of_parallel_light_with_soft_borders(size, floor):
    """Of a box above the floor: the convex hull of the shadows of its corners."""
    box = solids.polygons("box", size, 4)
    facets = [raster.Facet(each.corners, np.ones(4), 0) for each in box]
    corners = np.concatenate([each.corners for each in box])
    low = np.array([[0.0, 0.0, floor]])  # below the box
    none = np.zeros((0, 2, 3))
    points = np.concatenate([corners, low])
    found = scene.Scene(facets, np.ones((1, 3)), np.zeros(1, int), points, low, none)
    rim = scene.on_floor(corners, floor)[:, :2]
    view = camera.fit(np.c_[1.5 * rim, np.full(len(rim), floor)], -60.0, 50.0, 300)
    dark = raster._shadow(found, view, 2)
    y, x = np.mgrid[0 : view.size[1] : 2, 0 : view.size[0] : 2] + 1.0
    places = view.on_floor(np.dstack([x, y]), floor)
    outside = (places @ (hull := ConvexHull(rim).equations)[:, :2].T + hull[:, 2]).max(axis=-1)
    blur = 0.03 * np.ptp(rim, axis=0).max() / 2
    assert dark[outside < -3 * blur].min() > 0.99
    assert dark[outside > 3 * blur].max() < 0.01
    assert dark[np.abs(outside) < 0.2 * blur].mean() == pytest.approx(0.5, abs=0.05)
    half = (outside > 0.8 * blur) & (outside < 1.2 * blur)
    assert dark[half].mean() == pytest.approx(0.16, abs=0.03)  # beyond one standard deviation
    assert min(half.sum(), (outside > 3 * blur).sum()) > 50


def test_the_shadow_of_what_looks_the_same_from_both_sides_does_so_too():
    """At places around the middle; and there is none beyond the horizon."""
    box = solids.polygons("box", (0.4, 0.3, 0.2), 4)
    facets = [raster.Facet(each.corners, np.ones(4), 0) for each in box]
    corners = np.concatenate([each.corners for each in box])
    none = np.zeros((0, 2, 3))
    found = scene.Scene(facets, np.ones((1, 3)), np.zeros(1, int), corners, corners[:1], none)
    shadow = scene.on_floor(corners, found.floor)[:, :2]
    middle, half = shadow.mean(axis=0), np.ptp(shadow, axis=0) / 2
    around = half * np.array([[1, 0.2], [0, 1], [-0.8, 0.9], [0.5, 0.5]])
    asked = []

    def places(pixels, floor):
        asked.append(pixels)
        return np.stack([middle + around, middle - around, np.full((4, 2), np.nan)])

    view = SimpleNamespace(size=(8, 6), on_floor=places)
    one, other, beyond = raster._shadow(found, view, 2)
    np.testing.assert_allclose(one, other, atol=0.06)  # a texel is 0.04
    assert 0.2 < one[0] < 0.8  # at the border
    assert not beyond.any()
    assert asked[0][0].tolist() == [[1, 1], [3, 1], [5, 1], [7, 1]]  # middles of two by two pixels
    assert asked[0].shape == (3, 4, 2)


@pytest.mark.parametrize(("longest", "thickness"), [(500, 2), (100, 1), (1250, 5)])
def test_the_outline_is_a_border_within_the_pixels_of_the_base(longest, thickness):
    mine, image = np.zeros((20, 30), dtype=bool), np.ones((20, 30, 3))
    mine[2:17, 4:26] = True
    raster._outline(image, mine, longest)
    expected = mine.copy()
    expected[2 + thickness : 17 - thickness, 4 + thickness : 26 - thickness] = False
    np.testing.assert_array_equal(np.all(image == raster.OUTLINE_COLOR, axis=2), expected)
    assert np.all(image[~expected] == 1)


def test_samples_are_averaged():
    fine = np.arange(16.0).reshape(4, 4, 1)
    assert raster._coarser(fine, 2)[..., 0].tolist() == [[2.5, 4.5], [10.5, 12.5]]


# -- labels ----------------------------------------------------------------------------------------


def test_labels_that_do_not_touch_stay_where_they_are():
    places = np.array([[20.0, 20], [60, 20], [20, 40]])
    sizes = np.full((3, 2), [30.0, 10])
    np.testing.assert_array_equal(pictures.spread(places, sizes, (200, 200)), places)


def test_two_labels_give_way_alike_along_the_shorter_way():
    places = np.array([[50.0, 50], [54, 56]])
    spots = pictures.spread(places, np.full((2, 2), [40.0, 10]), (100, 100))
    assert spots[:, 0] == pytest.approx([50, 54])
    assert spots.mean(axis=0) == pytest.approx([52, 53])
    assert spots[1, 1] - spots[0, 1] == pytest.approx(10 - 4 / 9)  # a third each, twice
    other = pictures.spread(places[::-1], np.full((2, 2), [40.0, 10]), (100, 100))
    np.testing.assert_allclose(other, spots[::-1])


def test_labels_at_one_place_go_to_both_sides_and_half_a_pixel_is_no_overlap():
    sizes = np.full((2, 2), [40.0, 10])
    spots = pictures.spread(np.full((2, 2), 50.0), sizes, (200, 100))
    assert spots[0, 0] < 50 < spots[1, 0]
    near = np.array([[50.0, 50], [89.5, 50]])
    np.testing.assert_array_equal(pictures.spread(near, sizes, (200, 100)), near)


def test_labels_give_way_where_they_overlap_by_the_smaller_share():
    """By 9 of 40 across and 4 of 10 up."""
    places = np.array([[50.0, 50], [81, 56]])
    spots = pictures.spread(places, np.full((2, 2), [40.0, 10]), (200, 100))
    assert spots[:, 1] == pytest.approx([50, 56])
    assert 39.5 <= spots[1, 0] - spots[0, 0] <= 40


def test_labels_begin_at_the_edge_where_they_have_no_room():
    for place, size, spot in (([5, 4], (20, 60), [20, 5]), ([95, 57], (100, 60), [80, 55])):
        found = pictures.spread(np.array([place]), np.array([[40.0, 10]]), size)
        assert found.tolist() == [spot]


def test_labels_in_a_corner_stay_in_the_picture_and_in_their_order():
    sizes = np.full((2, 2), [20.0, 10])
    spots = pictures.spread(np.array([[3.0, 3], [3, 3.5]]), sizes, (100, 60))
    assert spots.min(axis=0).tolist() == [10, 5]
    assert spots[1, 1] > spots[0, 1] + 9
    beyond = pictures.spread(np.array([[99.0, 59], [99, 58.5]]), sizes, (100, 60))
    assert beyond.max(axis=0).tolist() == [90, 55]
    assert (np.abs(np.diff(beyond, axis=0)) > sizes[0] - 0.6).any()  # side by side


def test_anchors_are_the_pixels_with_the_smallest_distance_to_the_middle():
    owner = np.random.default_rng(0).integers(-1, 2, (9, 14))
    places, _ = pictures.anchors(owner, 2)
    for row in (0, 1):
        pixels = np.argwhere(owner == row)[:, ::-1]
        distance = np.linalg.norm(pixels - pixels.mean(axis=0), axis=1)
        own = np.linalg.norm(places[row] - pixels.mean(axis=0))
        assert own == pytest.approx(distance.min())


def test_an_anchor_is_a_visible_pixel_next_to_the_middle():
    owner = np.full((5, 7), -1)
    owner[1:4, 1:6] = 0
    owner[2, 3] = 1  # in the middle of the other
    places, counts = pictures.anchors(owner, 2)
    assert counts.tolist() == [14, 1]
    assert places[1].tolist() == [3, 2]
    assert owner[int(places[0, 1]), int(places[0, 0])] == 0
    assert np.abs(places[0] - [3, 2]).sum() == 1


# -- whole pictures --------------------------------------------------------------------------------


def test_pictures_have_1200_pixels_unless_told(monkeypatch):
    sizes = []

    def seen(*given):
        sizes.append(given[3])
        raise InterruptedError  # before it is drawn

    monkeypatch.setattr(pictures, "_camera", seen)
    for size in ({}, {"size": 77}):
        with pytest.raises(InterruptedError):
            mr.drawing.picture(mr.Organism.start("chen_link"), **size)
    assert sizes == [1200, 77]


@pytest.mark.parametrize("size", [63, 4097])
def test_pictures_have_64_to_4096_pixels(tmp_path, size):
    with complains(mr.StateError, "64 to 4096 pixels", str(size)):
        mr.drawing.picture(mr.Organism.start("scout"), tmp_path / "x.png", size=size)


def test_long_organisms_lie_across_and_flat_ones_are_seen_from_above():
    snake = built(mr.examples.snake(6))
    spread = np.ptp(snake.points, axis=0)
    azimuth, elevation = pictures._view(snake)
    assert elevation == 40.0
    assert azimuth == pytest.approx(-62.0 if spread[0] > spread[1] else -28.0)
    turned = snake._replace(points=snake.points[:, [1, 0, 2]])
    assert pictures._view(turned)[0] == pytest.approx(-90 - azimuth)
    assert pictures._view(snake._replace(points=snake.points * [1, 1, 9]))[1] == 22.0
    plate = np.array([[x, y, z] for x in (-1.0, 1) for y in (-2.0, 2) for z in (-1.0, 1)])
    assert pictures._view(snake._replace(points=CUBE))[0] == -62.0  # as wide as it is deep
    for height, expected in ((0.89, 40.0), (0.9, 22.0), (0.91, 22.0)):  # 0.45 of the longer side
        for points in (plate, plate[:, [1, 0, 2]]):
            flat = snake._replace(points=points * [1, 1, height])
            assert pictures._view(flat)[1] == expected


def test_names_and_axes_are_drawn_unless_there_are_too_many(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(pictures, "_draw_labels", lambda *_: drawn.append("labels"))
    monkeypatch.setattr(pictures, "_draw_axes", lambda *_: drawn.append("axes"))
    small = {"size": 64}
    crab = mr.examples.crab()

    def seen(**options):
        drawn.clear()
        pictures.picture(crab, tmp_path / "x.png", **small, **options)
        return sorted(drawn)

    assert seen() == ["axes", "labels"]
    assert seen(labels=False) == ["axes"]
    assert seen(axes=False) == ["labels"]
    for name, most in (("MOST_LABELS", 6), ("MOST_AXES", 6)):
        monkeypatch.setattr(pictures, name, most)
    joints = len(crab.model("physical").joint_names)
    monkeypatch.setattr(pictures, "MOST_AXES", joints)
    assert seen() == ["axes", "labels"]
    monkeypatch.setattr(pictures, "MOST_LABELS", 5)
    monkeypatch.setattr(pictures, "MOST_AXES", joints - 1)
    assert seen() == []
    assert seen(labels=True, axes=True) == ["axes", "labels"]


def test_names_stand_at_their_modules_and_fit_into_their_boxes(monkeypatch):
    crab, sizes = mr.examples.crab().rename({"m3": "a_long_name"}), []
    spread = pictures.spread
    monkeypatch.setattr(
        pictures, "spread", lambda *given: sizes.extend(given[1:]) or spread(*given)
    )
    figure = pictures.picture(crab, axes=False, view=(-60.0, 35.0), size=500)
    (plane,) = figure.axes
    width, height = np.round(figure.get_size_inches() * 100).astype(int)
    assert (plane.get_xlim(), plane.get_ylim()) == ((0, width), (0, height))
    (image,) = plane.images
    assert (image.get_extent(), image.origin) == ([0, width, 0, height], "lower")
    found = built(crab)
    view = pictures._camera(found, False, (-60.0, 35.0), 500)
    near = view.project(found.centers)[0] / 2
    boxes = []
    for text in plane.texts:
        row = crab.modules.index(text.get_text().split()[0])
        is_base = row == crab.modules.index(crab.base)
        assert text.get_text().endswith("· base") == is_base
        assert (text.get_color() == "white") == is_base
        assert np.linalg.norm(text.get_position() - near[row]) < 0.1 * width
        boxes.append(text.get_window_extent(figure.canvas.get_renderer()))
    figure.draw_without_rendering()
    own, whole = sizes
    assert whole == (width, height)
    assert not plane.axison
    for text, box in zip(plane.texts, own, strict=True):
        drawn = text.get_bbox_patch().get_window_extent(figure.canvas.get_renderer())
        share = box / [drawn.width, drawn.height]
        assert np.all((share > 0.9) & (share < 1.25))
    assert len(boxes) == len(crab)
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
    assert 6 <= plane.texts[0].get_fontsize() <= 13
    assert plane.texts[-1].get_color() == "white"  # the base last, on top


def test_axes_are_solid_outside_of_their_cube_and_dotted_inside():
    snake = mr.examples.snake(2)
    figure = pictures.picture(snake, labels=False, view=(-90.0, 30.0), size=300)
    dotted, seen = figure.axes[0].get_lines()
    assert dotted._unscaled_dash_pattern == (0, (1, 2))
    assert seen.get_linestyle() == "-"
    assert dotted.get_linewidth() < seen.get_linewidth() <= 2
    assert figure.axes[0].get_xlim() == (0, round(100 * figure.get_figwidth()))
    hidden = np.isfinite(dotted.get_xdata())
    assert not (hidden & np.isfinite(seen.get_xdata())).any()
    assert hidden[len(hidden) // 2]
    assert not hidden[[0, -1]].any()
    points = np.where(hidden[:, None], dotted.get_xydata(), seen.get_xydata())
    found = built(snake)
    ends = pictures._camera(found, True, (-90.0, 30.0), 300).project(found.axes[0])[0] / 2
    np.testing.assert_allclose(points[[0, -1]], ends)


def test_limits_of_names_and_axes_are_those_that_the_docstring_states():
    words = " ".join(pictures.picture.__doc__.split())
    assert f"by default up to {pictures.MOST_LABELS} modules" in words
    assert f"active joints; by default up to {pictures.MOST_AXES}." in words
    assert charts.blank((1, 1)).dpi == pictures.DPI


def test_names_that_were_pushed_away_have_a_line_to_their_module(monkeypatch):
    snake, seen = mr.examples.snake(3), []

    def pushed(places, sizes, size):
        seen[:] = places, places + sizes * [[0.71, 0], [0.69, 0.69], [0, 0]]
        return seen[1]

    monkeypatch.setattr(pictures, "spread", pushed)
    found = built(snake)
    view = pictures._camera(found, False, (0.0, 30.0), 200)
    plane = charts.blank((2, 2)).subplots()
    pictures._draw_labels(plane, snake, found, raster.rasterize(found.facets, view), view)
    line, dot = plane.get_lines()
    np.testing.assert_allclose(line.get_xydata(), [seen[0][0], seen[1][0]])
    np.testing.assert_allclose(dot.get_xydata(), [seen[0][0]])
    assert (line.get_linewidth() < 1, 2 < dot.get_markersize() < 4) == (True, True)


def test_names_have_up_to_14_letters(monkeypatch):
    pair, used = mr.examples.snake(2).rename({"m0": "n" * 14, "m1": "n" * 15}), []
    monkeypatch.setattr(pictures, "_label", lambda *given: used.append(given[2]))
    pictures.picture(pair, axes=False, size=100)
    assert used == ["n" * 7 + "…" + "n" * 6, "n" * 14 + " · base"]


@pytest.mark.parametrize(("side", "points"), [(40, 6.0), (120, 10.2), (400, 13.0)])
def test_letters_grow_with_the_modules_between_6_and_13_points(monkeypatch, side, points):
    used = []
    monkeypatch.setattr(pictures, "_label", lambda *given: used.append(given[3]))
    one = mr.examples.snake(2)  # of which the second cannot be seen
    found = built(one)
    everywhere = raster.Buffers(np.zeros((side, side), int), *np.zeros((2, side, side)))
    view = pictures._camera(found, False, (0.0, 30.0), side // 2)
    pictures._draw_labels(charts.blank((2, 2)).subplots(), one, found, everywhere, view)
    assert used == pytest.approx([points])


def test_a_hidden_base_is_named_at_its_place(monkeypatch):
    snake, placed = mr.examples.snake(2), []
    monkeypatch.setattr(pictures, "_label", lambda plane, spot, *rest: placed.append((spot, *rest)))
    found = built(snake)
    view = pictures._camera(found, False, (0.0, 30.0), 200)
    buffers = raster.rasterize(found.facets, view)
    hidden = np.where(found.owner[buffers.surface] == 0, raster.NOTHING, buffers.surface)
    buffers = raster.Buffers(hidden, buffers.nearness, buffers.shade)
    plane = charts.blank((2, 2)).subplots()
    pictures._draw_labels(plane, snake, found, buffers, view)
    spot, text, _, is_base = placed[-1]
    assert (text, is_base) == ("m0 · base", True)
    # labels push each other less than their own size
    assert np.linalg.norm(spot - view.project(found.centers[0])[0] / 2) < 60


# -- charts ----------------------------------------------------------------------------------------


def test_lines_have_the_palette_or_a_scale():
    assert charts.colors(3) == ["#0072b2", "#d55e00", "#009e73"]
    assert charts.colors(8) == list(charts.PALETTE)
    many = charts.colors(9)
    assert many[0] == colormaps["viridis"](0.0)
    assert many[-1] == colormaps["viridis"](0.92)
    assert len(set(many)) == 9


def test_charts_are_light():
    figure = charts.blank((4, 3))
    assert figure.get_size_inches().tolist() == [4, 3]
    plane = figure.subplots()
    charts.style(plane)
    assert not plane.spines["top"].get_visible()
    assert not plane.spines["right"].get_visible()
    for side in ("left", "bottom"):
        assert plane.spines[side].get_visible()
        assert to_hex(plane.spines[side].get_edgecolor()) == charts.FAINT
    grid = plane.get_xgridlines()[0]
    assert (to_hex(grid.get_color()), grid.get_linewidth() < 1) == (charts.GRID, True)
    assert plane.get_axisbelow() is True
    assert any(line.get_visible() for line in plane.get_xgridlines())
    charts.headline(figure, "head")
    assert figure.get_suptitle() == "head"
    (title,) = figure.texts
    assert (title.get_position()[0], title.get_ha(), title.get_fontsize()) == (0.01, "left", 12)
    ticks = plane.xaxis.get_tick_params()
    assert (ticks["labelsize"], ticks["color"], ticks["labelcolor"]) == (
        9, charts.FAINT, charts.INK
    )  # fmt: skip
    assert figure._repr_png_().startswith(b"\x89PNG")  # for notebooks
    for count, size in ((8, 8.5), (9, 6.5)):
        plane.plot([0, 1], [0, 1], label="line")
        charts.legend_beside(plane, count, "joints")
        legend = plane.get_legend()
        assert legend.get_texts()[0].get_fontsize() == size
        title = legend.get_title()
        assert (title.get_text(), title.get_fontsize()) == ("joints", 8.5)
        assert not legend.get_frame_on()
        assert (1.5 < legend.handlelength < 2.5, legend.borderaxespad < 0.5) == (True, True)
        corner = plane.transAxes.inverted().transform(legend.get_bbox_to_anchor().get_points()[0])
        assert corner == pytest.approx([1.005, 1.02])  # beside the axes


@pytest.mark.parametrize("name", ["x.png", "x.SVG", "x.pdf"])
def test_the_same_chart_is_the_same_file(tmp_path, name):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        figure = charts.blank((2, 1))
        figure.subplots().plot([0, 1], [0, 1])
        assert charts.check_ending(tmp_path / folder / name, "plots") == name[1:].lower()
        charts.write(figure, tmp_path / folder / name)
    one, two = ((tmp_path / folder / name).read_bytes() for folder in ("a", "b"))
    if name.endswith("png"):
        assert one == two
        assert int.from_bytes(one[16:20], "big") == 300  # two inches
    assert len(one) == len(two)
    with complains(mr.FileError, "'.bmp'", "plots are .png, .svg, .pdf"):
        charts.check_ending("x.bmp", "plots")


@pytest.mark.parametrize(
    ("form", "size"), [("box", (1.0, 2.0, 3.0)), ("cylinder", (0.5, 2.0)), ("sphere", (0.7,))]
)
def test_faces_of_solids_look_outwards(form, size):
    for face in solids.polygons(form, size, 12):
        assert np.all(np.einsum("ij,ij->i", face.corners, face.normals) > 0)
        np.testing.assert_allclose(np.linalg.norm(face.normals, axis=1), 1)
        turn = np.cross(face.corners[1] - face.corners[0], face.corners[2] - face.corners[1])
        assert turn @ face.normals.mean(axis=0) > 0
