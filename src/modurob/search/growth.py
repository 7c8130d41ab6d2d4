"""Bodies that grow module by module, with the rules of docking checked in microseconds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from modurob.modules import ModuleType
from modurob.organism.organism import HEADINGS
from modurob.search.space import BodySpace, Gene, PortLabel
from modurob.spatial.boxes import Boxes, box_widths, overlaps

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
        if (parent, port) not in self.free:
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
