"""Boxes, cylinders and balls of even density, for contact with the ground."""

from __future__ import annotations

import numpy as np

from modurob import Model, ModuleType, Organism
from modurob.spatial import so3


def block(edges: tuple[float, float, float], mass: float = 1.0) -> Organism:
    """One module that is a box."""
    x, y, z = edges
    inertia = [mass * s / 12 for s in (y * y + z * z, x * x + z * z, x * x + y * y)]
    return _solid("box", edges, mass, inertia, max(edges), z / 2)


def cylinder(radius: float, length: float, mass: float = 1.0) -> Organism:
    """One module that is a cylinder along z."""
    across = mass * (3 * radius**2 + length**2) / 12
    inertia = [across, across, mass * radius**2 / 2]
    size = max(2 * radius, length)
    return _solid("cylinder", (radius, length), mass, inertia, size, length / 2)


def ball(radius: float, mass: float = 1.0) -> Organism:
    """One module that is a ball."""
    return _solid("sphere", (radius,), mass, [0.4 * mass * radius**2] * 3, 2 * radius, radius)


def _solid(
    form: str, shape: tuple[float, ...], mass: float, inertia: list[float], size: float, top: float
) -> Organism:
    port = {"label": 1, "body": "box", "position": [0, 0, top], "normal": [0, 0, 1]}
    docks = {"reference": [1, 0, 0], "turns": [0], "connector": "k", "mates": ["k"]}
    return Organism.start(
        ModuleType(
            name="block",
            symbol="K",
            title=f"A {form} of even density",
            source="a test",
            size=size,
            bodies=[{"name": "box", "mass": mass, "inertia": inertia}],
            ports=[port | docks],
            shapes=[{"body": "box", "form": form, "size": shape}],
        )
    )


def on_slope(model: Model, height: float, angle: float = 0.0) -> np.ndarray:
    """(7,) a box whose center is at a height above a slope along x, flat on it."""
    R = so3.exp(np.array([0.0, -angle, 0.0]))
    return np.concatenate([R @ [0.0, 0.0, height], so3.to_quaternion(R)])
