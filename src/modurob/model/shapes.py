"""Shapes of an organism on the bodies of its model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import numpy as np

from modurob.model.model import Model
from modurob.modules import Mesh, Shape
from modurob.organism import Organism

Part = TypeVar("Part", bound=Shape | Mesh)


def placed_shapes(
    organism: Organism, model: Model, module: str, shapes: Iterable[Part]
) -> Iterator[tuple[int, np.ndarray, Part]]:
    """Shapes or meshes of a module: number of the body, (4, 4) pose in the body's frame, shape."""
    kind, merged = organism.kind(module), model.is_merged(module)
    for shape in shapes:
        if merged:
            pose = kind.rest_poses[kind.body_index(shape.body)] @ shape.pose
            yield model.body_index(module), pose, shape
        else:
            yield model.body_index(f"{module}.{shape.body}"), shape.pose, shape
