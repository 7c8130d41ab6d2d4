"""From a scene to colored pixels: shading, edges, the base's outline, the shadow on the floor."""

from __future__ import annotations

import numpy as np

from modurob.drawing.camera import Camera
from modurob.drawing.raster import NOTHING, Buffers, edges, facing_facets
from modurob.drawing.scene import SUN, Scene, on_floor

EDGE = 0.5  # brightness of edges
OUTLINE, OUTLINE_COLOR = 0.004, (0.05, 0.06, 0.08)  # of the base; thickness over the longer side
SHADOW, SOFTNESS = 0.2, 0.03  # darkness; blur over the scene's radius
FAR = 1e6  # distance of the sun over the scene's width
TEXELS = 700  # of the shadow along its longer side; it is soft anyway


def paint(scene: Scene, buffers: Buffers, fine: Camera, samples: int, base: int) -> np.ndarray:
    """(height, width, 3) the picture without lines and letters, values 0 to 1, bottom row first.

    Args:
        buffers: What `fine` sees, with `samples` x `samples` of its pixels for each of ours.
        base: Row of the base module.
    """
    surface = buffers.surface
    shade = np.where(edges(surface), EDGE * buffers.shade, buffers.shade)
    # the last color is black with nothing in it: index NOTHING
    colors = np.append(scene.colors, [[0.0, 0.0, 0.0]], axis=0).astype(np.float32)
    image = colors[surface] * shade[..., None]
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
    """Draw a line along the border of what is mine."""
    from scipy import ndimage

    if not mine.any():
        return
    reach = max(1, round(OUTLINE * longest))
    rows, columns = np.flatnonzero(mine.any(axis=1)), np.flatnonzero(mine.any(axis=0))
    window = (slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1))
    inside = np.pad(mine[window], 1)
    rim = inside & np.logical_not(ndimage.binary_erosion(inside, iterations=reach))
    image[window][rim[1:-1, 1:-1]] = OUTLINE_COLOR


def _shadow(scene: Scene, fine: Camera, samples: int) -> np.ndarray:
    """(height, width) how dark the floor is at each pixel, 0 to 1."""
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
