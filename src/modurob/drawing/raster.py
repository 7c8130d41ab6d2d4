"""From a scene to colored pixels: depth buffer, shading, edges, outline of the base, shadow.

With a depth buffer solids hide each other correctly everywhere; see decision 0011.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor

import numpy as np

from modurob.drawing.camera import Camera
from modurob.drawing.scene import SUN, Facet, Scene, on_floor

NOTHING = -1
NEARER = 1e-6  # relative: of two surfaces in one plane, the first one drawn stays
EDGE = 0.5  # brightness of edges
OUTLINE, OUTLINE_COLOR = 0.004, (0.05, 0.06, 0.08)  # of the base; thickness over the longer side
SHADOW, SOFTNESS = 0.2, 0.03  # darkness; blur over the scene's radius
FAR = 1e6  # distance of the sun over the scene's width
TEXELS = 700  # of the shadow along its longer side; it is soft anyway


@dataclass(frozen=True, eq=False)
class Buffers:
    """Surface, nearness and shade of each pixel, rows from the bottom up."""

    surface: np.ndarray  # (height, width) number of the surface, or NOTHING
    nearness: np.ndarray  # (height, width) one over the depth; 0 where there is nothing. [1/m]
    shade: np.ndarray  # (height, width) brightness


def rasterize(facets: Sequence[Facet], camera: Camera) -> Buffers:
    """Draw the facets that face the camera."""
    width, height = camera.size
    buffers = Buffers(
        np.full((height, width), NOTHING, dtype=np.int32),
        np.zeros((height, width), dtype=np.float32),
        np.zeros((height, width), dtype=np.float32),
    )
    for facet, normal, facing in facing_facets(facets, camera.eye):
        _draw(buffers, facet, camera.R_cw @ normal, facing, camera)
    return buffers


def facing_facets(
    facets: Sequence[Facet], eye: np.ndarray
) -> Iterator[tuple[Facet, np.ndarray, float]]:
    """The facets that turn their outside to the eye, with normals n and n . (eye - corner)."""
    first = np.array([facet.corners[:3] for facet in facets])
    normals = np.cross(first[:, 1] - first[:, 0], first[:, 2] - first[:, 1])
    facing = np.sum(normals * (eye - first[:, 0]), axis=1)
    for index in np.flatnonzero(facing > 0).tolist():
        yield facets[index], normals[index], float(facing[index])


def _draw(
    buffers: Buffers, facet: Facet, normal: np.ndarray, facing: float, camera: Camera
) -> None:
    pixels, _ = camera.project(facet.corners)
    covered = cover(pixels, buffers.surface.shape)
    if covered is None:
        return
    window, inside, x, y = covered
    # the facet's plane, written in pixels: one over the depth is affine in them
    along = (x - camera.offset[0]) * (normal[0] / camera.focal)
    across = (y - camera.offset[1]) * (normal[1] / camera.focal)
    nearness = (normal[2] - along - across) / facing
    inside &= nearness > buffers.nearness[window] * (1 + NEARER)
    if not inside.any():
        return
    buffers.nearness[window][inside] = nearness[inside]
    buffers.surface[window][inside] = facet.surface
    first = facet.shades[0]
    if np.all(facet.shades == first):
        buffers.shade[window][inside] = first
    else:
        fitted = np.linalg.lstsq(np.c_[pixels, np.ones(len(pixels))], facet.shades, rcond=None)[0]
        buffers.shade[window][inside] = (fitted[0] * x + fitted[1] * y + fitted[2])[inside]


def cover(
    pixels: np.ndarray, shape: tuple[int, int]
) -> tuple[tuple[slice, slice], np.ndarray, np.ndarray, np.ndarray] | None:
    """The pixels whose centers lie in a convex polygon of (k, 2) counterclockwise corners.

    Returns the window of the picture, which of its pixels are inside, and the pixels' x and y; None
    when the polygon misses the picture.
    """
    rim = pixels.tolist()  # a few corners: faster without NumPy
    right, up = zip(*rim, strict=True)
    left, bottom = max(floor(min(right)), 0), max(floor(min(up)), 0)
    width, height = min(ceil(max(right)), shape[1]) - left, min(ceil(max(up)), shape[0]) - bottom
    if width <= 0 or height <= 0:
        return None
    x = np.arange(left, left + width)[None, :] + 0.5
    y = np.arange(bottom, bottom + height)[:, None] + 0.5
    inside = np.ones((height, width), dtype=bool)
    for (ax, ay), (bx, by) in pairwise([*rim, rim[0]]):
        # >= on one side of a shared edge and > on the other would leave or draw seams twice;
        # the depth test takes care of pixels that both polygons claim
        inside &= (bx - ax) * (y - ay) >= (by - ay) * (x - ax)
    return (slice(bottom, bottom + height), slice(left, left + width)), inside, x, y


def edges(surface: np.ndarray) -> np.ndarray:
    """(height, width) whether a neighboring pixel shows another surface."""
    found = np.zeros(surface.shape, dtype=bool)
    beside = surface[:, 1:] != surface[:, :-1]
    above = surface[1:] != surface[:-1]
    found[:, 1:] |= beside
    found[:, :-1] |= beside
    found[1:] |= above
    found[:-1] |= above
    return found


# -- colors ----------------------------------------------------------------------------------------


def paint(scene: Scene, buffers: Buffers, fine: Camera, samples: int, base: int) -> np.ndarray:
    """(height, width, 3) the picture without lines and letters, values 0 to 1, bottom row first.

    Args:
        buffers: Of `fine`, with `samples` x `samples` of its pixels for each of ours.
        base: Row of the base module.
    """
    surface = buffers.surface
    shade = np.where(edges(surface), EDGE * buffers.shade, buffers.shade)
    image = scene.colors.astype(np.float32)[surface] * shade[..., None]  # 0 where nothing is
    _outline(image, np.append(scene.owner, NOTHING)[surface] == base, max(fine.size))
    solid = _coarser(np.clip(image, 0, 1), samples)
    covered = _coarser((surface != NOTHING)[..., None].astype(np.float32), samples)
    floor = 1 - SHADOW * _shadow(scene, fine, samples)
    return np.clip(solid + (1 - covered) * floor[..., None], 0, 1)


def _coarser(image: np.ndarray, samples: int) -> np.ndarray:
    height, width, channels = image.shape
    blocks = image.reshape(height // samples, samples, width // samples, samples, channels)
    return blocks.mean(axis=(1, 3))


def _outline(image: np.ndarray, mine: np.ndarray, longest: int) -> None:
    """Draw a line along the border of the pixels of the base."""
    from scipy import ndimage

    if not mine.any():
        return
    reach = max(1, round(OUTLINE * longest))
    rows, columns = np.flatnonzero(mine.any(axis=1)), np.flatnonzero(mine.any(axis=0))
    window = (slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1))
    inside = mine[window]
    rim = inside & np.logical_not(ndimage.binary_erosion(inside, iterations=reach))
    image[window][rim] = OUTLINE_COLOR


def _shadow(scene: Scene, fine: Camera, samples: int) -> np.ndarray:
    """(height, width) darkness of the floor at each pixel, 0 to 1."""
    from PIL import Image, ImageDraw
    from scipy import ndimage

    corners = on_floor(scene.points, scene.floor)[:, :2]
    low, high = corners.min(axis=0), corners.max(axis=0)
    blur = SOFTNESS * float(np.max(high - low)) / 2
    low, high = low - 3 * blur, high + 3 * blur
    texels = TEXELS / float(np.max(high - low))  # per meter
    columns, rows = (int(n) for n in np.ceil(texels * (high - low)))
    mask = Image.new("L", (columns, rows))
    fill = ImageDraw.Draw(mask).polygon
    far_sun = on_floor(scene.points[0], scene.floor) + FAR * float(np.max(high - low)) * SUN
    for facet, *_ in facing_facets(scene.facets, far_sun):
        rim = (on_floor(facet.corners, scene.floor)[:, :2] - low) * texels - 0.5
        fill(rim.ravel().tolist(), fill=1)  # Pillow's pixels have their centers at whole numbers
    dark = ndimage.gaussian_filter(np.asarray(mask, dtype=np.float32), blur * texels)
    width, height = fine.size
    y, x = np.mgrid[0:height:samples, 0:width:samples] + samples / 2
    where = (fine.on_floor(np.stack([x, y], axis=-1), scene.floor) - low) * texels - 0.5
    where = np.nan_to_num(where, nan=-1.0)
    return ndimage.map_coordinates(dark, [where[..., 1], where[..., 0]], order=1)
