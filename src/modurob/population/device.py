"""Tables of a population as a GPU reads them: links in depth-first order, alike bodies together."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from modurob.compiler.emit_population import (
    CHAINED,
    FIRST,
    FORK,
    LINK_WORD,
    MASK_BITS,
    PRISMATIC,
    KernelShape,
)
from modurob.compiler.kernels import PATTERNS
from modurob.population.tables import BodyTables

WARP = 32  # threads that take their steps together
ROOTS = [float(lanes) ** 0.5 for lanes in (1, 2, 4, 8, 16, 32)]


class DepthFirst(NamedTuple):
    """Bodies with their links in depth-first order.

    Attributes:
        link: (bodies, most links) link of the tables at each place; behind the last one, itself.
        parent: (bodies, most links) place of the parent; -1 for the base and behind the last link.
        forks: (bodies, most links) number of forks between a link and the base.
        is_fork: (bodies, most links) True for links with two children or more.
    """

    link: np.ndarray
    parent: np.ndarray
    forks: np.ndarray
    is_fork: np.ndarray


def depth_first(count: np.ndarray, parent: np.ndarray) -> DepthFirst:
    """Order the links of all bodies at once; parents come before their children."""
    bodies, most = parent.shape
    every, inside = np.arange(bodies), np.arange(most) < count[:, None]
    beyond, children = inside.astype(np.int64), np.zeros((bodies, most), dtype=np.int64)
    for i in range(most - 1, 0, -1):
        own = np.flatnonzero(inside[:, i])
        beyond[own, parent[own, i]] += beyond[own, i]
        children[own, parent[own, i]] += 1
    place = np.tile(np.arange(most), (bodies, 1))
    place[:, 0] = 0
    free = np.ones((bodies, most), dtype=np.int64)  # next place among the children of a link
    for i in range(1, most):
        own = np.flatnonzero(inside[:, i])
        above = parent[own, i]
        place[own, i] = free[own, above]
        free[own, above] += beyond[own, i]
        free[own, i] = place[own, i] + 1
    link = np.argsort(place, axis=1)
    hangs_on = np.full((bodies, most), -1)
    own = inside & (parent >= 0)
    hangs_on[own] = np.take_along_axis(place, np.maximum(parent, 0), axis=1)[own]
    hangs_on = np.take_along_axis(hangs_on, link, axis=1)
    is_fork = np.take_along_axis(children > 1, link, axis=1)
    forks = np.zeros((bodies, most), dtype=np.int64)
    for i in range(1, most):
        above = np.maximum(hangs_on[:, i], 0)
        forks[:, i] = forks[every, above] + is_fork[every, above]
    return DepthFirst(link, hangs_on, forks, is_fork)


def link_words(ordered: DepthFirst, row: np.ndarray, slides: np.ndarray) -> np.ndarray:
    """(bodies, most links) words of the links; see `emit_population.LINK_WORD`."""
    bodies, most = row.shape
    every, places = np.arange(bodies), np.arange(most)
    parent, above = ordered.parent, np.maximum(ordered.parent, 0)
    chained = (parent == places - 1) & (parent >= 0)
    # on the way inward the last child is the first to arrive; a link's next one stays in registers
    first = np.zeros((bodies, most), dtype=bool)
    arrived = np.zeros((bodies, most), dtype=bool)
    for i in range(most - 1, 0, -1):
        first[:, i] = ~arrived[every, above[:, i]] & (parent[:, i] >= 0)
        arrived[every, above[:, i]] |= parent[:, i] >= 0
    flags = CHAINED * chained + FORK * ordered.is_fork + FIRST * first + PRISMATIC * slides
    slot = np.where(ordered.is_fork, ordered.forks, 0)
    parent_slot = np.take_along_axis(slot, above, axis=1)
    parts = {"row": row, "flags": flags, "slot": slot, "above": parent_slot, "parent": above}
    words = np.zeros((bodies, most), dtype=np.uint64)
    for name, values in parts.items():
        words |= values.astype(np.uint64) << np.uint64(LINK_WORD[name])
    return words


def warp_slots(count: np.ndarray, warps: int) -> np.ndarray:
    """(bodies,) thread of each body, for bodies in the order of their links, the most first.

    Threads of a warp wait for each other: with more bodies all take longer, about by the root of
    their number. Where there are warps to spare they have fewer, those of large bodies the fewest,
    so that all end at about the same time.

    Args:
        count: (bodies,) links.
        warps: That the GPU runs at its full speed.
    """
    lanes = np.full(len(count), WARP)
    for longest in sorted({k * root for k in set(count.tolist()) for root in ROOTS}):
        fitting = 2 ** np.floor(2 * np.log2(longest / count) + 1e-9)
        fewer = np.clip(fitting, 1, WARP).astype(int)
        sizes, bodies = np.unique(fewer, return_counts=True)
        if (-(-bodies // sizes)).sum() <= warps:
            lanes = fewer
            break
    slots, first = np.empty(len(count), dtype=np.int64), 0
    for size in np.unique(lanes).tolist():
        some = np.flatnonzero(lanes == size)
        warp, lane = np.divmod(np.arange(len(some)), size)
        slots[some] = WARP * (first + warp) + lane
        first += int(warp[-1]) + 1
    return slots


class DeviceTables:
    """Numbers of a population in the order of the GPU.

    Attributes:
        order: (bodies,) number of the body at each place: the largest first, alike ones together.
        joint: (bodies, most joints) joint of the tables at each place, for the bodies in `order`.
        words: (most links, bodies) words of the links.
        count: (bodies,) links.
    """

    def __init__(self, tables: BodyTables) -> None:
        self.tables = tables
        ordered = depth_first(tables.count, tables.parent)
        row = np.take_along_axis(tables.row, ordered.link, axis=1)
        slides = np.take_along_axis(tables.slides(), ordered.link, axis=1)
        words = link_words(ordered, row, slides)
        self.order = np.lexsort((*words.T[::-1], -tables.count))
        self.words = np.ascontiguousarray(words[self.order].T)
        self.count = tables.count[self.order].astype(np.int32)
        self.joint = ordered.link[self.order, 1:] - 1
        self._forks = int((ordered.forks + ordered.is_fork).max(initial=0))

    @cached_property
    def points(self) -> np.ndarray:
        """(bodies,) points of the bodies in `order`."""
        of_row = self.tables.corner_count
        each = of_row[self.tables.row] * self.tables.present
        return each.sum(axis=1)[self.order]

    def shape(self, dtype: str, with_points: bool) -> KernelShape:
        """Properties that the text of a kernel depends on."""
        tables, rows = self.tables, self.tables.rows_by_name
        masks = -(-tables.corner_count // MASK_BITS)[tables.row] * tables.present
        return KernelShape(
            tables.free_base,
            dtype,
            links=tables.row.shape[1],
            forks=self._forks,
            masks=int(masks.sum(axis=1).max(initial=0)) if with_points else 0,
            prismatic=bool((tables.kind >= PATTERNS).any()),
            rotor=bool(rows["armature"].any()),
            friction=any(bool(rows[name].any()) for name in ("viscous", "coulomb", "stiffness")),
        )
