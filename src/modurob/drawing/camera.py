"""Cameras: perspective views of the world, and the pixels that points are projected to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

DISTANCE = 5.0  # of the eye, in radii of the scene: a mild perspective
MARGIN = 0.03  # of the longer side, left free all around


@dataclass(frozen=True, eq=False)
class Camera:
    """A perspective view of the world. Pixels count right and up from the lower left."""

    R_cw: np.ndarray  # (3, 3) rows are right, up and towards the eye, in the world
    center: np.ndarray  # (3,) point of the world that the eye looks at. [m]
    distance: float  # from the eye to the center. [m]
    scale: float  # pixels per meter at the center
    offset: np.ndarray  # (2,) pixel of the center
    size: tuple[int, int]  # (width, height) of the picture in pixels

    def project(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(..., 2) pixels and (...,) nearness (one over the depth) of points of the world."""
        seen = (points - self.center) @ self.R_cw.T  # in the camera's frame
        nearness = 1.0 / (self.distance - seen[..., 2])
        return self.focal * seen[..., :2] * nearness[..., None] + self.offset, nearness

    @property
    def focal(self) -> float:
        """Pixels per unit of tangent."""
        return self.scale * self.distance

    @property
    def eye(self) -> np.ndarray:
        """(3,) position of the eye in the world. [m]"""
        return self.center + self.distance * self.R_cw[2]

    def on_floor(self, pixels: np.ndarray, height: float) -> np.ndarray:
        """(..., 2) x and y where the rays through pixels meet the plane z = height, or NaN."""
        tangent = (pixels - self.offset) / self.focal
        ray = np.concatenate([tangent, -np.ones((*tangent.shape[:-1], 1))], axis=-1) @ self.R_cw
        with np.errstate(divide="ignore", invalid="ignore"):
            far = (height - self.eye[2]) / ray[..., 2]
        far = np.where(far > 0, far, np.nan)
        return self.eye[:2] + far[..., None] * ray[..., :2]


def fit(
    points: np.ndarray, azimuth: float, elevation: float, longest: int, multiple: int = 1
) -> Camera:
    """Return the view from a direction in which the points just fill the picture.

    Args:
        points: (n, 3) everything that must be seen. [m]
        azimuth, elevation: Direction of the eye, seen from the scene. [deg]
        longest: Pixels of the picture's longer side.
        multiple: Number that divides width and height, which are rounded up.
    """
    a, e = np.deg2rad(azimuth), np.deg2rad(elevation)
    towards = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    right = np.array([-np.sin(a), np.cos(a), 0.0])
    R_cw = np.stack([right, np.cross(towards, right), towards])
    center = (points.min(axis=0) + points.max(axis=0)) / 2
    radius = max(float(np.linalg.norm(points - center, axis=1).max()), 1e-9)
    trial = Camera(R_cw, center, DISTANCE * radius, 1.0, np.zeros(2), (1, 1))
    pixels, _ = trial.project(points)
    low, high = pixels.min(axis=0), pixels.max(axis=0)
    extent = np.maximum(high - low, 1e-3 * radius)
    scale = longest * (1 - 2 * MARGIN) / extent.max()
    border = MARGIN * longest
    sides = np.ceil((scale * extent + 2 * border) / multiple)
    width, height = (multiple * int(side) for side in sides)
    return Camera(R_cw, center, trial.distance, scale, border - scale * low, (width, height))
