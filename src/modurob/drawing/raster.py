"""From polygons to pixels: a depth buffer, so that solids hide each other correctly everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor
from typing import NamedTuple

import numpy as np

from modurob.drawing.camera import Camera

NOTHING = -1
NEARER = 1e-6  # relative: of two surfaces in one plane, the first one drawn stays


class Facet(NamedTuple):
    """A convex, flat polygon in the world.

    Attributes:
        corners: (k, 3) counterclockwise seen from outside. [m]
        shades: (k,) brightness at the corners.
        surface: Number of the surface it is part of.
    """

    corners: np.ndarray
    shades: np.ndarray
    surface: int


@dataclass(frozen=True, eq=False)
class Buffers:
    """What each pixel sees, rows from the bottom up.

    Attributes:
        surface: (height, width) number of the surface, or NOTHING.
        nearness: (height, width) one over the depth; 0 where there is nothing. [1/m]
        shade: (height, width) brightness.
    """

    surface: np.ndarray
    nearness: np.ndarray
    shade: np.ndarray


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
