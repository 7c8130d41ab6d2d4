"""Solids of datasheets as flat polygons in the solid's own frame."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np


class Polygon(NamedTuple):
    """A convex, flat piece of a solid, counterclockwise seen from outside."""

    corners: np.ndarray  # (k, 3) in the solid's frame. [m]
    normals: np.ndarray  # (k, 3) of the true surface at the corners, for smooth shading
    surface: int  # number of the surface it is part of; edges are drawn between surfaces only


@lru_cache(maxsize=256)
def polygons(form: str, size: tuple[float, ...], around: int) -> tuple[Polygon, ...]:
    """The skin of a datasheet's shape, with `around` polygons around what is round."""
    if form == "box":
        return _box(*size)
    if form == "cylinder":
        radius, length = size
        return _cylinder(radius, length, around)
    return _sphere(size[0], around)


def _box(x: float, y: float, z: float) -> tuple[Polygon, ...]:
    half = np.array([x, y, z]) / 2
    faces = []
    for axis in range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        for sign in (1.0, -1.0):
            corners = np.empty((4, 3))
            corners[:, axis] = sign
            corners[:, u] = [-1, 1, 1, -1]
            corners[:, v] = [-sign, -sign, sign, sign]
            normal = np.zeros(3)
            normal[axis] = sign
            faces.append(Polygon(corners * half, np.tile(normal, (4, 1)), len(faces)))
    return tuple(faces)


def _cylinder(radius: float, length: float, around: int) -> tuple[Polygon, ...]:
    angle = np.linspace(0.0, 2 * np.pi, around, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle), np.zeros(around)], axis=-1)
    up, down = np.array([0, 0, length / 2]), np.array([0, 0, -length / 2])
    faces = [
        Polygon(radius * ring + up, np.tile([0.0, 0.0, 1.0], (around, 1)), 0),
        Polygon((radius * ring + down)[::-1], np.tile([0.0, 0.0, -1.0], (around, 1)), 1),
    ]
    for k in range(around):
        a, b = ring[k], ring[(k + 1) % around]
        corners = np.array([radius * a + down, radius * b + down, radius * b + up, radius * a + up])
        faces.append(Polygon(corners, np.array([a, b, b, a]), 2))
    return tuple(faces)


def _sphere(radius: float, around: int) -> tuple[Polygon, ...]:
    longitude = np.linspace(0.0, 2 * np.pi, around + 1)
    latitude = np.linspace(-np.pi / 2, np.pi / 2, around // 2 + 1)
    faces = []
    for south, north in pairwise(latitude):
        for west, east in pairwise(longitude):
            rim = [(west, south), (east, south), (east, north), (west, north)]
            if south == latitude[0]:
                del rim[0]
            elif north == latitude[-1]:
                del rim[2]
            normals = np.array(
                [[np.cos(b) * np.cos(a), np.cos(b) * np.sin(a), np.sin(b)] for a, b in rim]
            )
            faces.append(Polygon(radius * normals, normals, 0))
    return tuple(faces)
