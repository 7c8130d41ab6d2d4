"""Bodies of modules, and what is fixed to them, on the bodies of a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import numpy as np

from modurob.model.model import Model
from modurob.modules import Mesh, Shape
from modurob.organism import Organism

Part = TypeVar("Part", bound=Shape | Mesh)


def body_place(model: Model, organism: Organism, module: str, body: str) -> tuple[int, np.ndarray]:
    """A body of a module: number of the model's body that it is, and (4, 4) its frame there."""
    if not model.is_merged(module):
        return model.body_index(f"{module}.{body}"), np.eye(4)
    kind = organism.kind(module)
    return model.body_index(module), kind.rest_poses[kind.body_index(body)]


def placed_shapes(
    organism: Organism, model: Model, module: str, shapes: Iterable[Part]
) -> Iterator[tuple[int, np.ndarray, Part]]:
    """Shapes or meshes of a module: number of the body, (4, 4) pose in the body's frame, shape."""
    for shape in shapes:
        body, T = body_place(model, organism, module, shape.body)
        yield body, T @ shape.pose, shape
