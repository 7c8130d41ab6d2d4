"""Groups of bodies that share the lanes of a vector, and their links in one order.

The children of a link are ordered by the trees beyond them, so that bodies of one shape have one
list of parents whatever order their modules were docked in.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from modurob.population.tables import BodyTables

CACHED_TREES = 65536

Shape = tuple[Any, ...]  # of a tree: number of links, then the shapes beyond its first one


@lru_cache(maxsize=CACHED_TREES)
def _ordered(parent: bytes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Links of a tree in the order of its shape, and their parents in that order."""
    above = np.frombuffer(parent, dtype=np.int64).tolist()
    children: list[list[int]] = [[] for _ in above]
    for link in range(len(above) - 1, 0, -1):
        children[above[link]].append(link)
    shape: dict[int, Shape] = {}
    for link in range(len(above) - 1, -1, -1):
        # larger trees first; of equal ones the first that was docked
        children[link].sort(key=lambda each: (shape[each], -each), reverse=True)
        inside = [shape[each] for each in children[link]]
        shape[link] = (1 + sum(each[0] for each in inside), *inside)
    order, parents, rest = [], [], [(0, -1)]
    while rest:
        link, at = rest.pop()
        rest += [(each, len(order)) for each in reversed(children[link])]
        order.append(link)
        parents.append(at)
    return tuple(order), tuple(parents)


class LaneGroups(NamedTuple):
    """Groups of bodies with equally many joints.

    Attributes:
        body: (groups, width) numbers of the bodies; a last one may be there several times.
        link: (groups, links, width) their links in the order of the tree.
        parent: (groups, links, width) in that order; -1 for the base.
        slides: (groups, links) True for links whose joint slides.
        rotor: (groups,) True for bodies of which joints have a rotor.
    """

    body: np.ndarray
    link: np.ndarray
    parent: np.ndarray
    slides: np.ndarray
    rotor: np.ndarray

    @property
    def joints(self) -> int:
        """Joints of each body."""
        return self.link.shape[1] - 1

    def of_links(self, array: np.ndarray) -> np.ndarray:
        """(groups, links, width, ...) from (bodies, most links, ...)."""
        return array[self.body[:, None, :], self.link]

    def of_joints(self, array: np.ndarray) -> np.ndarray:
        """(groups, joints, width) from (bodies, most joints)."""
        return array[self.body[:, None, :], self.link[:, 1:] - 1]


def lane_groups(tables: BodyTables, bodies: np.ndarray, width: int) -> list[LaneGroups]:
    """Groups of some bodies, sorted by the number of joints.

    Bodies of a group have equally many joints, of the same kinds, and mostly one tree.
    """
    slides, corners = tables.slides(), tables.corner_count[tables.row]
    rotor = np.any((tables.of_links("armature")[..., 0] > 0) & tables.present, axis=1)
    keyed = []
    for body in bodies.tolist():
        count = int(tables.count[body])
        order, parent = _ordered(tables.parent[body, :count].tobytes())
        link = list(order)
        same = (count, bool(rotor[body]), tuple(slides[body, link].tolist()))
        keyed.append((same, parent, tuple(corners[body, link].tolist()), body, order))
    keyed.sort()
    found: dict[int, list[tuple[Any, list[Any]]]] = {}
    for same, some in groupby(keyed, key=lambda each: each[0]):
        members = list(some)
        for first in range(0, len(members), width):
            lanes = members[first : first + width]
            lanes += lanes[-1:] * (width - len(lanes))
            found.setdefault(same[0], []).append((same, lanes))
    return [
        LaneGroups(
            np.array([[lane[3] for lane in lanes] for _, lanes in groups]),
            np.array([np.transpose([lane[4] for lane in lanes]) for _, lanes in groups]),
            np.array([np.transpose([lane[1] for lane in lanes]) for _, lanes in groups]),
            np.array([same[2] for same, _ in groups]),
            np.array([same[1] for same, _ in groups]),
        )
        for groups in found.values()
    ]
