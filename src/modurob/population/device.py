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


def block_slots(size: np.ndarray, blocks: int, room: int) -> tuple[np.ndarray, np.ndarray]:
    """Thread of each body, and the place of its numbers in the shared memory of its block.

    A block is one warp, whose threads wait for each other. Where there are blocks to spare they
    have fewer bodies, those of large ones the fewest: about as many numbers in each.

    Args:
        size: (bodies,) numbers of each body, about the most first.
        blocks: That the GPU runs at the same time.
        room: Numbers that fit into a block.
    """
    fill = max(float(size.max()), size.sum() / blocks)
    while True:
        fill = min(fill, room)
        slots, places = np.empty(len(size), dtype=np.int64), np.empty(len(size), dtype=np.int32)
        block, lane, used = 0, 0, 0
        for k, own in enumerate(size.tolist()):
            if lane == WARP or used + own > fill:
                block, lane, used = block + 1, 0, 0
            slots[k], places[k] = WARP * block + lane, used
            lane, used = lane + 1, used + own
        if block < blocks or fill == room:
            return slots, places
        fill *= 1.05


class DeviceTables:
    """Numbers of a population in the order of the GPU.

    Attributes:
        order: (bodies,) number of the body at each place: the largest first, alike ones together.
        joint: (bodies, most joints) joint of the tables at each place, for the bodies in `order`.
        words: (most links, bodies) words of the links.
        count: (bodies,) links.
        forks: (bodies,) most forks on a way from the base to a tip.
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
        self.forks = (ordered.forks + ordered.is_fork).max(axis=1)[self.order]

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
            forks=int(self.forks.max(initial=0)),
            masks=int(masks.sum(axis=1).max(initial=0)) if with_points else 0,
            prismatic=bool((tables.kind >= PATTERNS).any()),
            rotor=bool(rows["armature"].any()),
            friction=any(bool(rows[name].any()) for name in ("viscous", "coulomb", "stiffness")),
        )
