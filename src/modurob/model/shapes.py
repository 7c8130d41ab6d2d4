"""Shapes of an organism on the bodies of its model."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from modurob.model.model import Model
from modurob.modules import Shape
from modurob.organism import Organism


def placed_shapes(
    organism: Organism, model: Model, module: str
) -> Iterator[tuple[int, np.ndarray, Shape]]:
    """Shapes of a module: number of the body, (4, 4) pose in the body's frame, shape."""
    kind, merged = organism.kind(module), model.is_merged(module)
    for shape in kind.shapes:
        if merged:
            pose = kind.rest_poses[kind.body_index(shape.body)] @ shape.pose
            yield model.body_index(module), pose, shape
        else:
            yield model.body_index(f"{module}.{shape.body}"), shape.pose, shape
