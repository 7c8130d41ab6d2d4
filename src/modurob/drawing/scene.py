"""An organism in one posture as polygons in the world, with colors and joint axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from modurob.drawing import solids
from modurob.errors import DatasheetError
from modurob.model import Model
from modurob.model.shapes import placed_shapes
from modurob.organism import Organism
from modurob.spatial import se3

LIGHT = np.array([-0.28, -0.36, 0.89]) / np.linalg.norm([-0.28, -0.36, 0.89])  # gives form
SUN = np.array([-0.12, -0.1, 0.987])  # casts the shadow; nearly overhead, so that it stays near
DARKEST, BRIGHTEST = 0.58, 1.12
SMOOTH, ROUGH, MANY = 48, 16, 40  # polygons around a cylinder; ROUGH for more than MANY modules
BEYOND = 0.3  # how far an axis sticks out, over the module's size

NO_SHAPES = "none of the modules has a shape to draw; add 'shapes' to a datasheet"

Color = tuple[float, float, float]


class Facet(NamedTuple):
    """A convex, flat polygon in the world."""

    corners: np.ndarray  # (k, 3) counterclockwise seen from outside. [m]
    shades: np.ndarray  # (k,) brightness at the corners
    surface: int  # number of the surface it is part of


class Scene(NamedTuple):
    """An organism in one posture, ready to be drawn."""

    facets: list[Facet]  # everything that can be seen
    colors: np.ndarray  # (surfaces, 3) of each surface
    owner: np.ndarray  # (surfaces,) the module it belongs to, by its row
    points: np.ndarray  # (n, 3) corners of everything. [m]
    centers: np.ndarray  # (modules, 3) where the modules' frames are. [m]
    axes: np.ndarray  # (joints, 2, 3) ends of the joint axes. [m]

    @property
    def floor(self) -> float:
        """Height of the lowest point. [m]"""
        return float(self.points[:, 2].min())


def build(organism: Organism, model: Model, q: np.ndarray) -> Scene:
    """The scene of an organism whose `model` is at configuration `q`."""
    T_wb = model.forward_kinematics(q)
    facets: list[Facet] = []
    colors: list[Color] = []
    owner: list[int] = []
    points: dict[str, np.ndarray] = {}
    for row, name in enumerate(organism.modules):
        corners = [np.empty((0, 3))]
        for T_ws, skin, color in _solids(organism, name, model, T_wb):
            first, R, p = len(colors), T_ws[:3, :3], T_ws[:3, 3]
            for polygon in skin:
                placed = polygon.corners @ R.T + p
                shades = _shade(polygon.normals @ R.T)
                facets.append(Facet(placed, shades, first + polygon.surface))
                corners.append(placed)
            surfaces = 1 + max(polygon.surface for polygon in skin)
            colors.extend([color] * surfaces)
            owner.extend([row] * surfaces)
        points[name] = np.concatenate(corners)
    if not facets:
        raise DatasheetError(NO_SHAPES)
    return Scene(
        facets,
        np.array(colors),
        np.array(owner),
        np.concatenate(list(points.values())),
        T_wb[[model.modules[name] for name in organism.modules], :3, 3],
        _axes(organism, model, q, points),
    )


def merged(parts: Sequence[Scene]) -> Scene:
    """Several organisms in one scene."""
    facets, owners, surfaces, rows = [], [], 0, 0
    for scene in parts:
        facets += [f._replace(surface=f.surface + surfaces) for f in scene.facets]
        owners.append(scene.owner + rows)
        surfaces += len(scene.colors)
        rows += len(scene.centers)
    fields = ("colors", "points", "centers", "axes")
    colors, points, centers, axes = (
        np.concatenate([getattr(scene, name) for scene in parts]) for name in fields
    )
    return Scene(facets, colors, np.concatenate(owners), points, centers, axes)


def reached(organism: Organism, model: Model, q: np.ndarray) -> np.ndarray:
    """(n, 3) corners of boxes around the solids, in all configurations (k, nq). [m]"""
    T_wb = np.moveaxis(model.forward_kinematics(q), -3, 0)
    boxes = []
    for name in organism.modules:
        for T_ws, skin, _ in _solids(organism, name, model, T_wb):
            corners = np.concatenate([polygon.corners for polygon in skin])
            box = np.array([*product(*zip(corners.min(axis=0), corners.max(axis=0), strict=True))])
            placed = box @ np.swapaxes(T_ws[:, :3, :3], -1, -2) + T_ws[:, None, :3, 3]
            boxes.append(placed.reshape(-1, 3))
    if not boxes:
        raise DatasheetError(NO_SHAPES)
    return np.concatenate(boxes)


def on_floor(points: np.ndarray, floor: float) -> np.ndarray:
    """(..., 3) shadows of points."""
    return points - SUN * ((points[..., 2:] - floor) / SUN[2])


def _shade(normals: np.ndarray) -> np.ndarray:
    """Brightness of surfaces; those in the shade still show their form."""
    lit = np.maximum(0.5 + 0.5 * normals @ LIGHT, 0.0)  # rounding must not leave the range
    return DARKEST + (BRIGHTEST - DARKEST) * lit**1.4


def _solids(
    organism: Organism, name: str, model: Model, T_wb: np.ndarray
) -> Iterator[tuple[np.ndarray, tuple[solids.Polygon, ...], Color]]:
    """The solids of a module: pose in the world, skin, color."""
    around = SMOOTH if len(organism) <= MANY else ROUGH
    for body, T_bs, shape in placed_shapes(organism, model, name, organism.kind(name).shapes):
        skin = solids.polygons(shape.form, shape.size, around)
        yield T_wb[body] @ T_bs, skin, _rgb(shape.color)


def _rgb(color: str) -> Color:
    from matplotlib import colors

    try:
        return colors.to_rgb(color)
    except ValueError:
        raise DatasheetError(
            f"a shape has the color {color!r}; use #rrggbb or a color name of Matplotlib"
        ) from None


def _axes(
    organism: Organism, model: Model, q: np.ndarray, points: dict[str, np.ndarray]
) -> np.ndarray:
    """Ends of the active joints' axes: a little more than what the module spans along them."""
    T_wb, links, found = model.forward_kinematics(q), model.body_link.tolist(), []
    for link, (joint, screw) in enumerate(zip(model.joint_names, model.screw, strict=True), 1):
        owner = joint.partition(".")[0]
        # a virtual joint of the base, or the motor of an elastic joint, on the axis of its spring
        if owner not in organism or link not in links:
            continue
        body = links.index(link)
        T = T_wb[body] @ se3.inverse(model.body_placement[body])
        # a virtual joint is a mere dot: its axis runs through what it carries
        carrier = (
            next(iter(organism.children(owner)), owner) if organism.kind(owner).virtual else owner
        )
        if not len(points[carrier]):
            continue
        v, w = screw[:3], screw[3:]
        direction = T[:3, :3] @ (w if w.any() else v)
        through = T[:3, 3]  # screws go through the origins of their links
        along = (points[carrier] - through) @ direction
        beyond = BEYOND * organism.kind(carrier).size
        ends = np.array([along.min() - beyond, along.max() + beyond])
        found.append(through + ends[:, None] * direction)
    return np.array(found).reshape(-1, 2, 3)
