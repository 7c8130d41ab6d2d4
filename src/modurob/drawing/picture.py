"""Organisms in three dimensions, as PNG and SVG files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from modurob.drawing import camera as cameras
from modurob.drawing import charts
from modurob.drawing import scene as scenes
from modurob.drawing.charts import INK
from modurob.drawing.raster import NOTHING, Buffers, paint, rasterize
from modurob.drawing.scene import Scene
from modurob.drawing.terminal import shorten
from modurob.errors import StateError
from modurob.organism import Organism

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENDINGS = (".png", ".svg")
SAMPLES = 2  # per pixel and direction: smooth edges
DPI = 100
SMALLEST, LARGEST = 64, 4096  # pixels of the longer side
MOST_LABELS = 60  # modules; more names than that hide the organism
MOST_AXES = 24  # joints
LONGEST_NAME = 14
AXIS = "#e0245e"
ROUNDS = 200  # of pushing labels apart; crowded pictures settle after some fifty


def picture(
    organism: Organism,
    path: str | os.PathLike[str] | None = None,
    *,
    q: ArrayLike | None = None,
    hinges: str = "physical",
    labels: bool | None = None,
    axes: bool | None = None,
    view: tuple[float, float] | None = None,
    size: int = 1200,
) -> Figure:
    """Draw an organism, into a PNG or SVG file or as a figure.

    Forward kinematics places the solids of the datasheets. The base has a thick
    outline and a dark label; red lines are the axes of the joints that can move, dotted where a
    solid hides them.

    Args:
        path: Ends with ``.png`` or ``.svg``; none by default. (In an SVG the solids are an image,
            lines and letters are vectors.)
        q: (nq,) configuration of ``organism.model(hinges)``; all joints at zero by default.
        hinges: The model that `q` belongs to, ``physical`` or ``dyad``.
        labels: Whether to write the modules' names; by default up to 60 modules.
        axes: Whether to draw the axes of the active joints; by default up to 24.
        view: (azimuth, elevation) of the eye, seen from the organism; by default one that suits
            its shape. [deg]
        size: Longer side of the picture. [px]

    Returns:
        A Matplotlib figure outside of pyplot, of `DPI` pixels an inch.
    """
    if path is not None:
        charts.check_ending(path, "pictures", ENDINGS)  # before the work, not after it
    if not SMALLEST <= size <= LARGEST:
        raise StateError(f"a picture has {SMALLEST} to {LARGEST} pixels, got size {size}")
    model = organism.model(hinges=hinges)
    q = model.neutral() if q is None else model.check_configuration(q)
    if q.shape != (model.nq,):
        raise StateError(f"a picture shows one configuration of shape ({model.nq},), got {q.shape}")
    scene = scenes.build(organism, model, q)
    with_labels = len(organism) <= MOST_LABELS if labels is None else labels
    with_axes = len(scene.axes) <= MOST_AXES if axes is None else axes

    fine = _camera(scene, with_axes, view, size)
    buffers = rasterize(scene.facets, fine)
    base = organism.modules.index(organism.base)
    figure, plane = _figure(paint(scene, buffers, fine, SAMPLES, base))
    if with_axes:
        _draw_axes(plane, scene, buffers, fine)
    if with_labels:
        _draw_labels(plane, organism, scene, buffers, fine)
    if path is not None:
        charts.write(figure, path, DPI)
    return figure


def _camera(
    scene: Scene, with_axes: bool, view: tuple[float, float] | None, size: int
) -> cameras.Camera:
    """The camera for the fine picture: `SAMPLES` pixels for one, each way."""
    azimuth, elevation = _view(scene) if view is None else view
    shadow = scenes.on_floor(scene.points, scene.floor)
    axes = scene.axes.reshape(-1, 3) if with_axes else scene.points[:0]
    seen = np.concatenate([scene.points, shadow, axes])
    return cameras.fit(seen, azimuth, elevation, SAMPLES * size, SAMPLES)


def _view(scene: Scene) -> tuple[float, float]:
    """A direction in which long organisms lie across and flat ones are seen from above."""
    x, y, _ = np.std(scene.points, axis=0)
    *across, height = np.ptp(scene.points, axis=0)
    return -62.0 if x >= y else -28.0, 40.0 if height < 0.45 * max(across) else 22.0


def _figure(image: np.ndarray) -> tuple[Figure, Axes]:
    """A Matplotlib figure of the image's size, one unit a pixel."""
    height, width = image.shape[:2]
    figure = charts.blank((width / DPI, height / DPI), "none")
    plane = figure.add_axes((0, 0, 1, 1))
    plane.set_axis_off()
    plane.imshow(image, extent=(0, width, 0, height), origin="lower", interpolation="nearest")
    plane.set(xlim=(0, width), ylim=(0, height))
    return figure, plane


def _draw_axes(plane: Axes, scene: Scene, buffers: Buffers, fine: cameras.Camera) -> None:
    """Each axis as a line, dotted where a solid hides it."""
    steps = np.linspace(0.0, 1.0, 400)[:, None]
    for start, end in scene.axes:
        pixels, nearness = fine.project(start + steps * (end - start))
        x, y = pixels.astype(int).T  # the camera has all axes in view
        hidden = (buffers.nearness[y, x] > nearness)[:, None]
        seen, dotted = (np.where(mask, pixels / SAMPLES, np.nan) for mask in (~hidden, hidden))
        plane.plot(*dotted.T, color=AXIS, lw=1.3, ls=(0, (1, 2)), alpha=0.8)
        plane.plot(*seen.T, color=AXIS, lw=2.0, solid_capstyle="round")


def _draw_labels(
    plane: Axes, organism: Organism, scene: Scene, buffers: Buffers, fine: cameras.Camera
) -> None:
    """Names where the modules can be seen; what is hidden gets none, except the base."""
    surface = buffers.surface[::SAMPLES, ::SAMPLES]
    owner = np.append(scene.owner, NOTHING)[surface]
    places, counts = anchors(owner, len(organism))
    base = organism.modules.index(organism.base)
    if not counts[base]:
        places[base] = fine.project(scene.centers[base])[0] / SAMPLES
    points = float(np.clip(0.17 * np.sqrt(np.median(counts[counts > 0])), 6, 13))
    shown = [row for row in range(len(organism)) if np.isfinite(places[row]).all()]
    shown.sort(key=lambda row: row == base)  # the base last, on top of the others
    texts = [shorten(organism.modules[row], LONGEST_NAME) for row in shown]
    texts = [f"{t} · base" if row == base else t for row, t in zip(shown, texts, strict=True)]
    letter = points * DPI / 72
    sizes = np.array([[0.64 * letter * len(text) + 0.8 * letter, 1.9 * letter] for text in texts])
    spots = spread(places[shown], sizes, (owner.shape[1], owner.shape[0]))
    for row, text, spot, size in zip(shown, texts, spots, sizes, strict=True):
        if np.any(np.abs(spot - places[row]) > 0.7 * size):
            plane.plot(*np.stack([places[row], spot]).T, color=INK, lw=0.8)
            plane.plot(*places[row], "o", color=INK, ms=2.5)
        _label(plane, spot, text, points, row == base)


def _label(plane: Axes, spot: np.ndarray, text: str, points: float, is_base: bool) -> None:
    ink, paper, alpha = ("white", INK, 0.92) if is_base else (INK, "white", 0.82)
    box = {"boxstyle": "round,pad=0.3,rounding_size=0.6", "fc": paper, "ec": "none", "alpha": alpha}
    plane.text(
        spot[0], spot[1], text, ha="center", va="center", fontsize=points, color=ink,
        family="DejaVu Sans", bbox=box,
    )  # fmt: skip


def anchors(owner: np.ndarray, modules: int) -> tuple[np.ndarray, np.ndarray]:
    """For each module the visible pixel next to the middle of what is seen of it.

    Args:
        owner: (height, width) row of the module that a pixel shows, negative for none.

    Returns:
        (modules, 2) x and y, NaN for what is hidden, and (modules,) numbers of visible pixels.
    """
    pixels = np.flatnonzero(owner >= 0)
    rows = owner.ravel()[pixels]
    order = np.argsort(rows, kind="stable")
    counts = np.bincount(rows, minlength=modules)
    places = np.full((modules, 2), np.nan)
    for row, mine in enumerate(np.split(pixels[order], np.cumsum(counts)[:-1])):
        if len(mine):
            y, x = np.divmod(mine, owner.shape[1])
            best = np.argmin((x - x.mean()) ** 2 + (y - y.mean()) ** 2)
            places[row] = x[best], y[best]
    return places, counts


def spread(places: np.ndarray, sizes: np.ndarray, picture: tuple[int, int]) -> np.ndarray:
    """(n, 2) places of labels after those that overlap have pushed each other apart.

    Args:
        places, sizes: (n, 2) centers, and widths and heights. [px]
        picture: Width and height, which no label leaves. [px]
    """
    low, high = sizes / 2, np.maximum(np.array(picture) - sizes / 2, sizes / 2)
    places = places.astype(float)
    need = (sizes[:, None] + sizes[None, :]) / 2
    upper = np.triu(np.ones((len(places), len(places)), dtype=bool), 1)
    for _ in range(ROUNDS):
        apart = places[None, :] - places[:, None]
        lack = need - np.abs(apart)
        pairs = np.argwhere(upper & (lack > 0.5).all(axis=-1))
        if not len(pairs) and np.all((low <= places) & (places <= high)):
            break
        for i, j in pairs:
            axis = int(np.argmin(lack[i, j] / need[i, j]))
            way = 1.0 if apart[i, j, axis] >= 0 else -1.0
            places[i, axis] -= way * lack[i, j, axis] / 3
            places[j, axis] += way * lack[i, j, axis] / 3
        places = np.clip(places, low, high)
    return places
