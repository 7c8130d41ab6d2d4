"""`BodyTables`: many different bodies as plain arrays, which every executor reads.

Modular bodies have few distinct links: a link is a row that all bodies share, and a body is a list
of parents and row numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from modurob.compiler.dyads import table_rows
from modurob.compiler.kernels import PATTERNS, ROW, Row
from modurob.compiler.packing import fields, size
from modurob.errors import StateError
from modurob.model import Model
from modurob.organism import Organism
from modurob.stepping.contact import largest_sides
from modurob.stepping.ground import Corners, corners

CORNER_ROW = 8  # place, axis, radius, weight
SAME_PLACE_M = 1e-9  # distance of corners of one link that are one


@dataclass(frozen=True, eq=False)
class BodyTables:
    """Many bodies in shared rows, padded to the most links of a body.

    Attributes:
        free_base: True if all bodies have a free base, False for fixed ones.
        count: (bodies,) links, the base included.
        parent: (bodies, most links) link that each link hangs on; -1 for the base and behind the
            last link.
        row: (bodies, most links) number of each link's row; 0 behind the last link.
        rows: (rows, ROW) numbers of a link as in `compiler.kernels.Row`; a base has gravity in the
            place of `p`.
        kind: (rows,) pattern of the joint's seat, and `PATTERNS` more if it slides.
        side: (rows, 6, 6) stiffness of a link that lies on a ground of 1 N/m under each corner, in
            its frame, linear part first.
        corner_start, corner_count: (rows,) corners of a link.
        corner_rows: (corners, 8) place and axis in the link, radius, and weight: the number of
            corners that are at this place. [m, 1, m, 1]
        base_pose: (bodies, 7) neutral position and quaternion of the base.
    """

    free_base: bool
    count: np.ndarray
    parent: np.ndarray
    row: np.ndarray
    rows: np.ndarray
    kind: np.ndarray
    side: np.ndarray
    corner_start: np.ndarray
    corner_count: np.ndarray
    corner_rows: np.ndarray
    base_pose: np.ndarray

    @cached_property
    def present(self) -> np.ndarray:
        """(bodies, most links) True for links, False behind the last one."""
        return np.arange(self.row.shape[1]) < self.count[:, None]

    @cached_property
    def mass(self) -> np.ndarray:
        """(bodies,) total mass. [kg]"""
        # added up in order: a sum in pairs would depend on the number of columns
        return np.cumsum(self.of_links("mass")[..., 0] * self.present, axis=1)[:, -1]

    @cached_property
    def rows_by_name(self) -> dict[str, np.ndarray]:
        """(rows, n) columns of the rows by the names of `compiler.kernels.Row`."""
        sizes = [size(kind) for _, kind in fields(Row)]
        parts = np.split(self.rows, np.cumsum(sizes)[:-1], axis=1)
        return {name: part for (name, _), part in zip(fields(Row), parts, strict=True)}

    def of_links(self, name: str) -> np.ndarray:
        """(bodies, most links, n) numbers of the links, by the names of `compiler.kernels.Row`."""
        return self.rows_by_name[name][self.row]

    def part(self, bodies: np.ndarray, most_links: int) -> BodyTables:
        """The same rows with some of the bodies, which have as many links at most."""
        links = {name: getattr(self, name)[bodies, :most_links] for name in ("parent", "row")}
        alone = {name: getattr(self, name)[bodies] for name in ("count", "base_pose")}
        return replace(self, **links, **alone)

    def base_poses(self, q: np.ndarray) -> np.ndarray:
        """(bodies, 7) position and quaternion of the bases."""
        return q[:, :7].copy() if self.free_base else self.base_pose.copy()

    def slides(self) -> np.ndarray:
        """(bodies, most links) True for links whose joint slides."""
        return (self.kind[self.row] >= PATTERNS) & self.present

    def rolls(self) -> np.ndarray:
        """(bodies,) True for bodies with circles or balls."""
        round_rows = np.zeros(len(self.rows), dtype=bool)
        of_row = np.repeat(np.arange(len(self.rows)), self.corner_count)
        round_rows[of_row[self.corner_rows[:, 6] > 0]] = True
        return np.any(round_rows[self.row] & self.present, axis=1)


class LinkRows(NamedTuple):
    """Rows of one body: those of `BodyTables`, with one list of corners for each link."""

    rows: np.ndarray
    kind: np.ndarray
    side: np.ndarray
    corner_rows: list[np.ndarray]


def link_rows(organism: Organism, model: Model) -> LinkRows:
    """Rows of the links of a model and their corners."""
    frames = model._placed_frames
    table = table_rows(frames, model.gravity)
    kind = np.concatenate([[0], table.pattern])
    if all(organism.kind(name).virtual for name in organism.modules):
        none = np.zeros(0)
        at = Corners(none.astype(int), none.reshape(0, 3), none.reshape(0, 3), none)
    else:
        at = corners(organism, model)
    R, p = frames.body_rotation, frames.body_position
    outline, side = at.outline(), np.zeros((len(table.rows), 6, 6))
    for body in np.unique(outline.body).tolist():
        own = outline.place[outline.body == body]
        weights = largest_sides(own)
        r = own @ R[body].T + p[body]
        J = np.concatenate([np.tile(np.eye(3), (len(r), 1, 1)), np.cross(np.eye(3), r[:, None])], 1)
        side[frames.body_link[body]] += np.einsum("p,pik,pjk->ij", weights, J, J)
    place = (R[at.body] @ at.place[..., None])[..., 0] + p[at.body]
    axis = (R[at.body] @ at.axis[..., None])[..., 0]
    points = np.concatenate([place, axis, at.radius[:, None]], axis=1)
    link = frames.body_link[at.body]
    found = [_merged(points[link == k]) for k in range(len(table.rows))]
    return LinkRows(table.rows, kind, side, found)


def _merged(points: np.ndarray) -> np.ndarray:
    """(k, CORNER_ROW) corners with their weights: those at one place are one, in order."""
    _, first, which = np.unique(
        np.round(points / SAME_PLACE_M), axis=0, return_index=True, return_inverse=True
    )
    weight = np.bincount(which.ravel(), minlength=len(first)).astype(float)
    order = np.argsort(first)
    return np.concatenate([points[first[order]], weight[order, None]], axis=1)


class TableBuilder:
    """Collects bodies, and the distinct rows of their links."""

    def __init__(self, free_base: bool) -> None:
        self.free_base = free_base
        self._known: dict[tuple[bytes, ...], int] = {}
        self._rows: list[tuple[np.ndarray, int, np.ndarray, np.ndarray]] = []
        self._bodies: list[tuple[np.ndarray, list[int]]] = []
        self._poses: list[np.ndarray] = []

    def add(self, parent: np.ndarray, rows: Sequence[int], base_pose: np.ndarray) -> None:
        """Add a body of known rows.

        Args:
            parent: (n,) of links 1 to n.
            rows: Of links 0 to n.
            base_pose: (7,) neutral position and quaternion.
        """
        self._bodies.append((parent, list(rows)))
        self._poses.append(base_pose)

    def row(self, numbers: np.ndarray, kind: int, side: np.ndarray, corner: np.ndarray) -> int:
        """Number of a row, which is added if it is new."""
        key = (numbers.tobytes(), bytes([kind]), side.tobytes(), corner.tobytes())
        if key not in self._known:
            self._known[key] = len(self._rows)
            self._rows.append((numbers, kind, side, corner))
        return self._known[key]

    def add_model(self, organism: Organism, model: Model) -> None:
        """Add a body by its model."""
        found = link_rows(organism, model)
        rows = [self.row(*each) for each in zip(*found, strict=True)]
        pose = model.neutral()[:7] if model.free_base else np.array([0.0, 0, 0, 0, 0, 0, 1])
        self.add(model.parent, rows, pose)

    def tables(self) -> BodyTables:
        """All that was added."""
        count = np.array([len(rows) for _, rows in self._bodies], dtype=np.int64)
        most = int(count.max(initial=1))
        parent = np.full((len(count), most), -1, dtype=np.int64)
        row = np.zeros((len(count), most), dtype=np.int64)
        for k, (above, rows) in enumerate(self._bodies):
            parent[k, 1 : len(rows)] = above
            row[k, : len(rows)] = rows
        numbers, kinds, sides, corner = zip(*self._rows, strict=True)
        corner_count = np.array([len(each) for each in corner], dtype=np.int64)
        return BodyTables(
            self.free_base,
            count,
            parent,
            row,
            np.array(numbers).reshape(-1, ROW),
            np.array(kinds, dtype=np.int64),
            np.array(sides),
            np.cumsum(corner_count) - corner_count,
            corner_count,
            np.concatenate(corner).reshape(-1, CORNER_ROW),
            np.array(self._poses),
        )


def pack(bodies: Iterable[tuple[Organism, Model]], free_base: bool) -> BodyTables:
    """Tables of organisms with their models."""
    builder = TableBuilder(free_base)
    for organism, model in bodies:
        builder.add_model(organism, model)
    if not builder._bodies:
        raise StateError("a population has one body or more, got none")
    return builder.tables()
