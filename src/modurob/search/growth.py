"""Bodies that grow module by module, with the rules of docking checked in microseconds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from modurob.modules import ModuleType
from modurob.organism.organism import HEADINGS
from modurob.search.space import BodySpace, Gene, PortLabel

TOUCHING = 0.05  # of the size of a module: how far shapes that only touch may overlap
CACHED_KINDS = 256
UNIT = np.eye(4)


class GrowingBody:
    """Genes of a body so far, its free ports, and the room that it takes."""

    def __init__(self, space: BodySpace, base: Gene) -> None:
        self.space = space
        self.genes = [base]
        self.free: dict[tuple[int, PortLabel], None] = {}  # in the order of docking
        self._cells = {(0, 0)}
        self._places = [(0, 0, 0)]  # cell and quarter turn
        self._poses = [UNIT]
        self._boxes = [] if space.planar else [_boxes(space.kinds[base.kind])]
        self._open(0, base.kind)

    def copy(self) -> GrowingBody:
        """The same body, to grow in another way."""
        made = object.__new__(GrowingBody)
        made.space = self.space
        made.genes, made.free = list(self.genes), dict(self.free)
        made._cells, made._places = set(self._cells), list(self._places)
        made._poses, made._boxes = list(self._poses), list(self._boxes)
        return made

    def _open(self, number: int, kind: int) -> None:
        for label in self.space.kinds[kind].docks:
            self.free[number, label] = None

    def add(self, gene: Gene) -> bool:
        """Dock one more module; False, and nothing changed, where a rule or a module forbids it."""
        _, parent, port, child_port, turn, _ = gene
        if not 0 <= parent < len(self.genes) or (parent, port) not in self.free:
            return False
        key = (self.genes[parent].kind, port, gene.kind, child_port, turn)
        geometry = self.space.transforms.get(key)
        if geometry is None:
            return False
        if self.space.planar:
            x, y, quarter = self._places[parent]
            (ax, ay), (bx, by) = HEADINGS[quarter], HEADINGS[(quarter + 1) % 4]
            dx, dy, turned = geometry
            cell = (x + dx * ax + dy * bx, y + dx * ay + dy * by)
            if cell in self._cells:
                return False
            self._cells.add(cell)
            self._places.append((*cell, (quarter + turned) % 4))
        elif not self._has_room(parent, gene.kind, geometry):
            return False
        number = len(self.genes)
        self.genes.append(gene)
        del self.free[parent, port]
        self._open(number, gene.kind)
        del self.free[number, child_port]
        return True

    def _has_room(self, parent: int, kind: int, T_ij: np.ndarray) -> bool:
        """Place the shapes of a new module unless they overlap those of others than its parent."""
        T = self._poses[parent] @ T_ij
        own = _boxes(self.space.kinds[kind]).moved(T)
        others = [boxes for k, boxes in enumerate(self._boxes) if k != parent]
        if others:
            each = Boxes(*(x[:, None] for x in own))
            if overlaps(each, Boxes(*map(np.concatenate, zip(*others, strict=True)))).any():
                return False
        self._poses.append(T)
        self._boxes.append(own)
        return True


def subtree(genes: Sequence[Gene], root: int) -> list[int]:
    """Numbers of a gene and of all beyond it, in order."""
    found = {root}
    for number in range(root + 1, len(genes)):
        if genes[number].parent in found:
            found.add(number)
    return sorted(found)


def picked(genes: Sequence[Gene], numbers: Sequence[int]) -> list[Gene]:
    """The genes with these numbers, each after its parent, numbered anew; the first is a root."""
    new = {old: number for number, old in enumerate(numbers)}
    return [with_parent(genes[old], new.get(genes[old].parent, -1)) for old in numbers]


def with_parent(gene: Gene, parent: int) -> Gene:
    """The gene with another parent; several times as fast as `_replace`."""
    return Gene(gene[0], parent, *gene[2:])


# -- room ------------------------------------------------------------------------------------------


class Boxes(NamedTuple):
    """Boxes around the shapes of modules, smaller by what may overlap.

    Attributes:
        rotation, center: (k, 3, 3), (k, 3) of the boxes. [m]
        half: (k, 3) half their widths. [m]
    """

    rotation: np.ndarray
    center: np.ndarray
    half: np.ndarray

    def moved(self, T: np.ndarray) -> Boxes:
        """The same boxes of a module with the pose T."""
        R = T[:3, :3]
        return Boxes(R @ self.rotation, self.center @ R.T + T[:3, 3], self.half)


@lru_cache(maxsize=CACHED_KINDS)
def _boxes(kind: ModuleType) -> Boxes:
    """The boxes of a kind, joints at zero; a module without shapes is a cube of its size."""
    poses, widths = [np.eye(4)], [(kind.size,) * 3]
    if kind.shapes:
        poses = [kind.rest_poses[kind.body_index(s.body)] @ s.pose for s in kind.shapes]
        widths = [box_widths(shape.form, shape.size) for shape in kind.shapes]
    T = np.array(poses)
    half = 0.5 * (np.array(widths) - TOUCHING * kind.size)
    return Boxes(T[:, :3, :3], T[:, :3, 3], np.maximum(half, 0.0))


def box_widths(form: str, size: tuple[float, ...]) -> tuple[float, ...]:
    """Widths of the box around a shape. [m]"""
    if form == "box":
        return size
    return (2 * size[0],) * 3 if form == "sphere" else (2 * size[0], 2 * size[0], size[1])


def overlaps(a: Boxes, b: Boxes) -> np.ndarray:
    """(...) True where a box of one overlaps that of the other: none of 15 axes separates them."""
    R = np.swapaxes(a.rotation, -1, -2) @ b.rotation  # (..., 3, 3) b in a
    d = (np.swapaxes(a.rotation, -1, -2) @ (b.center - a.center)[..., None])[..., 0]
    r_a, r_b = a.half, b.half
    size = np.abs(R)
    apart = (np.abs(d) > r_a + (size @ r_b[..., None])[..., 0]).any(axis=-1)
    across = np.abs((d[..., None, :] @ R)[..., 0, :])
    apart |= (across > r_b + (r_a[..., None, :] @ size)[..., 0, :]).any(axis=-1)
    for i in range(3):  # of a x of b
        j, k = (i + 1) % 3, (i + 2) % 3
        reach = r_a[..., j, None] * size[..., k, :] + r_a[..., k, None] * size[..., j, :]
        reach = reach + r_b[..., [1, 2, 0]] * size[..., i, [2, 0, 1]]
        reach = reach + r_b[..., [2, 0, 1]] * size[..., i, [1, 2, 0]]
        along = np.abs(d[..., k, None] * R[..., j, :] - d[..., j, None] * R[..., k, :])
        apart |= (along > reach + 1e-12).any(axis=-1)
    return np.asarray(~apart)
