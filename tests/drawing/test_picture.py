"""Organisms as pictures: is the right thing visible, where it should be?"""

from __future__ import annotations

import io
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import modurob as mr
from modurob.drawing import camera, picture, raster, scene, solids

pictures = import_module("modurob.drawing.picture")  # the package has a function of that name
SMALL = 160  # pixels; enough to see whether something is there
ROUND_OFF = 1e-9

ORGANISMS = {
    "crab": mr.examples.crab(),
    "snake": mr.examples.snake(6),
    "arm": mr.examples.arm("babac"),
    "superbots": mr.examples.superbot_tree(),
    "crane": mr.examples.crane(),
    "one": mr.Organism.start("chen_link"),
}


def pixels(path) -> np.ndarray:
    return np.asarray(Image.open(path).convert("RGB"), dtype=float) / 255


@pytest.mark.parametrize("name", ORGANISMS)
def test_png_shows_colors_on_white(tmp_path, name):
    picture(ORGANISMS[name], tmp_path / "x.png", size=SMALL)
    image = pixels(tmp_path / "x.png")
    assert max(image.shape[:2]) in (SMALL, SMALL + 1)
    corners = image[[0, 0, -1, -1], [0, -1, 0, -1]]
    assert corners.min() > 0.97
    colored = np.ptp(image, axis=2) > 0.1
    assert colored.mean() > 0.05
    assert image.var() > 0.005


def test_the_picture_fits_tightly(tmp_path):
    picture(mr.examples.snake(4), tmp_path / "x.png", size=400)
    inked = pixels(tmp_path / "x.png").min(axis=2) < 0.97
    rows, columns = np.flatnonzero(inked.any(axis=1)), np.flatnonzero(inked.any(axis=0))
    assert rows[0] < 0.1 * inked.shape[0]
    assert rows[-1] > 0.9 * inked.shape[0]
    assert columns[0] < 0.1 * inked.shape[1]
    assert columns[-1] > 0.9 * inked.shape[1]


def test_posture_changes_the_picture_and_zero_is_the_default(tmp_path):
    crab = mr.examples.crab()
    n = crab.model(hinges="physical").nq
    for name, q in (("none", None), ("zero", np.zeros(n)), ("bent", np.full(n, 0.5))):
        picture(crab, tmp_path / f"{name}.png", q=q, size=SMALL)
    data = {name: (tmp_path / f"{name}.png").read_bytes() for name in ("none", "zero", "bent")}
    assert data["none"] == data["zero"]
    assert data["none"] != data["bent"]


def test_both_hinge_models_show_the_same_body_at_rest(tmp_path):
    for hinges in ("dyad", "physical"):
        picture(
            mr.examples.nine(), tmp_path / f"{hinges}.png", hinges=hinges, axes=False, size=SMALL
        )
    assert (tmp_path / "dyad.png").read_bytes() == (tmp_path / "physical.png").read_bytes()


def test_svg_is_svg_and_holds_the_names(tmp_path):
    picture(mr.examples.crab(), tmp_path / "x.SVG", size=SMALL)
    text = (tmp_path / "x.SVG").read_text()
    assert text.lstrip().startswith("<?xml")
    assert "</svg>" in text
    assert "<!-- m0 · base -->" in text


def test_matplotlib_state_is_left_alone(tmp_path):
    import matplotlib
    from matplotlib import pyplot

    before = dict(matplotlib.rcParams)
    picture(mr.Organism.start("scout"), tmp_path / "x.png", size=SMALL)
    assert dict(matplotlib.rcParams) == before
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize("name", ["x.gif", "x", "x.pngg"])
def test_unknown_ending_is_refused(tmp_path, name):
    with pytest.raises(mr.FileError, match=r"unknown ending.*\.png, \.svg"):
        picture(mr.examples.crab(), tmp_path / name)
    assert not (tmp_path / name).exists()


def test_unwritable_path_is_a_file_error(tmp_path):
    with pytest.raises(mr.FileError, match="cannot be written"):
        picture(mr.Organism.start("scout"), tmp_path / "missing" / "x.png", size=SMALL)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"q": [1.0]}, "nq = 6"),
        ({"q": np.zeros((2, 6))}, "one configuration"),
        ({"hinges": "rubber"}, "'dyad' or 'physical'"),
        ({"size": 10**6}, "pixels"),
    ],
)
def test_bad_options_are_state_errors(tmp_path, options, message):
    with pytest.raises(mr.StateError, match=message):
        picture(mr.examples.crab(), tmp_path / "x.png", **options)


def test_a_module_without_a_shape_says_so(tmp_path):
    kind = mr.ModuleType(**{**mr.catalog["scout"].model_dump(), "shapes": ()})
    with pytest.raises(mr.DatasheetError, match="shape"):
        picture(mr.Organism.start(kind), tmp_path / "x.png")


# -- the parts -------------------------------------------------------------------------------------


def build(organism, hinges="physical", q=None) -> scene.Scene:
    model = organism.model(hinges=hinges)
    return scene.build(
        organism, model, model.neutral() if q is None else np.asarray(q, dtype=float)
    )


@pytest.mark.parametrize(
    ("form", "size", "volume", "tolerance"),
    [
        ("box", (1.0, 2.0, 3.0), 6.0, 1e-12),
        ("cylinder", (0.5, 2.0), np.pi / 2, 0.01),  # 48 corners instead of a circle
        ("sphere", (0.5,), np.pi / 6, 0.02),
    ],
)
def test_skins_are_closed_and_point_outward(form, size, volume, tolerance):
    """The divergence theorem: the flux of p through a closed skin is three times its volume."""
    flux, area = 0.0, np.zeros(3)
    for polygon in solids.polygons(form, size, 48):
        a = polygon.corners[0]
        for b, c in zip(polygon.corners[1:], polygon.corners[2:], strict=False):
            patch = np.cross(b - a, c - a) / 2
            flux += float(patch @ a)
            area += patch
    assert flux / 3 == pytest.approx(volume, rel=tolerance)
    assert np.abs(area).max() < ROUND_OFF


def test_bodies_stand_where_the_cells_are():
    nine = mr.examples.nine()
    found = build(nine)
    side = mr.catalog["backbone"].size
    for row, name in enumerate(nine.modules):
        place = nine.place(name)
        assert place is not None
        assert found.centers[row] == pytest.approx([side * place.x, side * place.y, 0.0])


def test_axes_are_those_of_the_active_joints():
    organism = mr.examples.snake(2)  # physical: only the hinge of m0 carries something
    (start, end), *rest = build(organism).axes
    assert not rest
    assert np.cross(end - start, [1.0, 0.0, 0.0]) == pytest.approx(np.zeros(3))
    assert (start + end) / 2 == pytest.approx(np.zeros(3), abs=ROUND_OFF)


def square(z: float, surface: int) -> raster.Facet:
    corners = np.array([[-1, -1, z], [1, -1, z], [1, 1, z], [-1, 1, z]], dtype=float)
    return raster.Facet(corners, np.ones(4), surface)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_nearer_facet_hides_the_other_in_any_order(order):
    facets = [square(0.0, 0), square(0.5, 1)]
    view = camera.fit(np.concatenate([f.corners for f in facets]), 0.0, 90.0, 40)
    seen = raster.rasterize([facets[k] for k in order], view).surface
    assert set(np.unique(seen)) == {raster.NOTHING, 1}


def test_facets_are_invisible_from_behind():
    facet = square(0.0, 0)
    view = camera.fit(facet.corners, 0.0, -90.0, 40)
    assert np.all(raster.rasterize([facet], view).surface == raster.NOTHING)


def test_intersecting_facets_hide_each_other_along_their_line():
    tilted = square(0.0, 1)
    tilted.corners[:, 2] = tilted.corners[:, 0]  # above the other for x > 0, below for x < 0
    view = camera.fit(np.array([[-1.0, -1, -1], [1, 1, 1]]), -90.0, 90.0, 100)
    seen = raster.rasterize([square(0.0, 0), tilted], view).surface
    middle = seen[seen.shape[0] // 2]
    shown = middle[middle != raster.NOTHING]
    assert shown[0] == 0
    assert shown[-1] == 1
    assert np.count_nonzero(np.diff(shown)) == 1


def test_projection_and_floor_agree():
    view = camera.fit(np.array([[-1.0, -2, 0], [2, 1, 1]]), -50.0, 30.0, 300)
    points = np.array([[0.3, -0.4, 0.2], [1.0, 1.0, 0.2]])
    where, _ = view.project(points)
    assert view.on_floor(where, 0.2) == pytest.approx(points[:, :2])


def test_labels_move_apart_and_stay_in_the_picture():
    rng = np.random.default_rng(0)
    places, sizes = rng.uniform(80, 120, (12, 2)), np.full((12, 2), [30.0, 12.0])
    spots = pictures.spread(places, sizes, (200, 200))
    apart = np.abs(spots[:, None] - spots[None, :])
    overlap = (apart < sizes[0] - 1.0).all(axis=2) & ~np.eye(12, dtype=bool)
    assert not overlap.any()
    assert np.all((spots >= sizes / 2) & (spots <= 200 - sizes / 2))


def test_hidden_modules_have_no_anchor():
    owner = np.full((4, 6), -1)
    owner[1:3, 2:5] = 1
    places, counts = pictures.anchors(owner, 3)
    assert counts.tolist() == [0, 6, 0]
    assert np.isnan(places[[0, 2]]).all()
    assert owner[int(places[1, 1]), int(places[1, 0])] == 1


def test_the_readme_picture_is_a_small_png():
    data = (Path(__file__).parents[2] / "docs" / "images" / "crab.png").read_bytes()
    image = Image.open(io.BytesIO(data))
    assert image.format == "PNG"
    assert image.width >= 1000
    assert len(data) < 300_000
