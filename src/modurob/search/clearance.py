"""Clearance of gaits: modules that never meet while the joints follow their waves."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations

import numpy as np

from modurob.interop.mjcf import linked_pairs
from modurob.model import Model
from modurob.modules import ModuleType
from modurob.search.genotype import Genotype
from modurob.spatial.boxes import Boxes, box_widths, overlaps
from modurob.spatial.scalars import matvec
from modurob.stepping.ground import CORNERS

MOMENTS = 12  # of a period at which modules are looked at
OVERLAP_M = 2.5e-3  # that is allowed: hinges of cubes side by side stick out by 1 mm each


def clear(genotype: Genotype) -> bool:
    """True if the modules of a genotype do not meet while the joints follow their waves.

    Links that share a joint or a module may overlap, as in MuJoCo.
    """
    model, waves = genotype.model(), genotype.waves()
    angle = 2 * np.pi / MOMENTS * np.arange(MOMENTS)[:, None]
    q, n = np.tile(model.neutral(), (MOMENTS, 1)), len(model.joint_names)
    swing = waves.amplitude[0, :n] * np.sin(angle + waves.phase[0, :n])
    q[:, model.joint_slice_q] = waves.offset[0, :n] + swing
    return not _meet(model, q)


def _meet(model: Model, q: np.ndarray) -> bool:
    """Return True if boxes around bodies overlap in one of (m, nq) configurations."""
    numbers, boxes = _body_boxes(model)
    near, link = linked_pairs(model), model.body_link[numbers].tolist()
    pairs = [
        (i, j)
        for i, j in combinations(range(len(numbers)), 2)
        if link[i] != link[j] and (min(link[i], link[j]), max(link[i], link[j])) not in near
    ]
    if not pairs:
        return False
    T = model.forward_kinematics(q)[:, numbers]
    R, c = T[..., :3, :3], matvec(T[..., :3, :3], boxes.center) + T[..., :3, 3]
    one, other = (Boxes(R[:, k], c[:, k], boxes.half[k]) for k in np.array(pairs).T)
    return bool(overlaps(one, other).any())


def _body_boxes(model: Model) -> tuple[np.ndarray, Boxes]:
    """Numbers of bodies with shapes, and a box around each in the frame of its body."""
    organism, numbers, rows = model.organism, [], []
    assert organism is not None
    for name in organism.modules:
        kind = organism.kind(name)
        for body, low, high in _kind_boxes(kind, model.is_merged(name)):
            numbers.append(model.body_index(f"{name}.{body}" if body else name))
            rows.append((low, high))
    low, high = np.moveaxis(np.array(rows), 1, 0)
    half = np.maximum((high - low - OVERLAP_M) / 2, 0.0)
    return np.array(numbers), Boxes(np.eye(3), (low + high) / 2, half)


@lru_cache(maxsize=256)
def _kind_boxes(
    kind: ModuleType, merged: bool
) -> tuple[tuple[str, tuple[float, ...], tuple[float, ...]], ...]:
    """Bodies of a kind ('' for all of it), with the lowest and highest corners of their boxes."""
    points: dict[str, list[np.ndarray]] = {}
    for shape in kind.shapes:
        T = kind.rest_poses[kind.body_index(shape.body)] @ shape.pose if merged else shape.pose
        corners = CORNERS * box_widths(shape.form, shape.size) @ T[:3, :3].T + T[:3, 3]
        points.setdefault("" if merged else shape.body, []).append(corners)
    if not kind.shapes:
        points[""] = [CORNERS * kind.size]
    return tuple(
        (body, tuple(np.concatenate(own).min(axis=0)), tuple(np.concatenate(own).max(axis=0)))
        for body, own in points.items()
    )
