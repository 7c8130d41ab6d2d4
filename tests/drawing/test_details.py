"""Details of pictures and charts that no glance at a whole picture notices."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from matplotlib import colormaps

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


def test_cameras_are_values():
    with pytest.raises(AttributeError):
        camera.fit(CUBE, 0.0, 0.0, 100).scale = 2.0


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


@pytest.mark.parametrize("shift", [(-20, 0), (20, 0), (0, -20), (0, 20)])
def test_what_lies_beside_the_picture_covers_nothing(shift):
    rim = np.array([[1.0, 1], [4, 1], [4, 3], [1, 3]])
    assert raster.cover(rim + shift, (10, 10)) is None
    window, inside, _, _ = raster.cover(rim + np.array([7, 8]), (10, 10))  # half of it is outside
    assert window == (slice(9, 10), slice(8, 10))
    assert inside.all()


def test_edges_are_both_sides_of_a_change():
    surface = np.array([[0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 1], [2, 0, 0, 1]])
    assert raster.edges(surface).tolist() == [
        [False, False, True, True],
        [False, False, True, True],
        [True, False, True, True],
        [True, True, True, True],
    ]
    assert not raster.edges(np.zeros((3, 3), dtype=int)).any()


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


def test_of_two_facets_in_one_plane_the_first_stays():
    corners = np.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
    facets = [raster.Facet(corners, np.ones(4), k) for k in (7, 8)]
    view = camera.fit(corners, 0.0, 60.0, 60)
    assert set(np.unique(raster.rasterize(facets, view).surface)) == {raster.NOTHING, 7}


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
    assert {len(p.corners) for p in sphere} == {3, 4}
    for polygon in (*sphere, *cylinder[2:]):
        assert np.linalg.norm(polygon.normals, axis=1) == pytest.approx(1)
        edges = polygon.corners - np.roll(polygon.corners, 1, axis=0)
        assert np.linalg.norm(edges, axis=1).min() > 1e-3  # triangles at both poles
    assert [p.surface for p in solids.polygons("box", (1.0, 2.0, 3.0), 4)] == list(range(6))


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
    mine = found.owner[buffers.surface] == 0
    assert outlined[0].sum() > 1000
    assert not outlined[2].any()
    assert not (outlined[0] & outlined[1]).any()
    assert np.all(mine[outlined[0]])
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
    assert plane.spines["left"].get_visible()
    assert plane.get_axisbelow() is True
    assert any(line.get_visible() for line in plane.get_xgridlines())
    charts.headline(figure, "head")
    assert figure.get_suptitle() == "head"
    for count, size in ((8, 8.5), (9, 6.5)):
        plane.plot([0, 1], [0, 1], label="line")
        charts.legend_beside(plane, count, "joints")
        legend = plane.get_legend()
        assert legend.get_texts()[0].get_fontsize() == size
        assert legend.get_title().get_text() == "joints"
        assert not legend.get_frame_on()


@pytest.mark.parametrize("name", ["x.png", "x.SVG", "x.pdf"])
def test_the_same_chart_is_the_same_file(tmp_path, name):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        figure = charts.blank((2, 1))
        figure.subplots().plot([0, 1], [0, 1])
        charts.check_ending(tmp_path / folder / name, "plots")
        charts.write(figure, tmp_path / folder / name)
    one, two = ((tmp_path / folder / name).read_bytes() for folder in ("a", "b"))
    if name.endswith("png"):
        assert one == two
        assert int.from_bytes(one[16:20], "big") == 2 * charts.DPI
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
