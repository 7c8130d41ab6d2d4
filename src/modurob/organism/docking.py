"""The docking rule, for cubes on the grid and for everything else.

Two port frames meet: origins coincide, normals oppose, and the references enclose the turn:

    T_ij = T_ia Rz(turn) Rx(pi) T_jb^-1

On the cubes the reference of every side points up, so the rule turns module j about z until
``R n_b = -n_a`` and moves it by ``L_ij n_a``: the whole rotation table of gutenkunst2012
(Tab. 3.1) and the dyad classes of meister2013 (Tab. II) follow from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from modurob.modules import ModuleType
from modurob.spatial import se3, so3
from modurob.spatial.scalars import product

COLLINEAR = 1e-9  # sine of an angle, and distance over size, below which axes count as one line
CACHED_DYADS = 4096  # distinct (kind, port, kind, port, turn); an organism has tens


class Docking(NamedTuple):
    """Port `port` of module `parent` holds port `child_port` of module `child`."""

    parent: str
    port: int | str
    child: str
    child_port: int | str
    turn: int
    column: int


class Dyad(NamedTuple):
    """Geometry of a docking of two kinds.

    Attributes:
        transform: (4, 4) frame of module j in module i, joints at zero.
        name: DS, DP or DO (hinges collinear, parallel, neither), DV behind a virtual joint, DR when
            the docking itself is rigid.
        step: (dx, dy, quarter turns) on the planar grid, or None off the grid.
    """

    transform: np.ndarray
    name: str
    step: tuple[int, int, int] | None


def mated_pose(T_ia: np.ndarray, T_jb: np.ndarray, turn: int) -> np.ndarray:
    """(4, 4) T_ij when port frame b of j meets port frame a of i; `turn` in degrees."""
    T_ib = product(T_ia, mating_rotation(turn))
    T_ij = product(T_ib, se3.inverse(T_jb)) + 0.0  # + 0.0: no minus zeros
    T_ij.setflags(write=False)
    return T_ij


@lru_cache(maxsize=360)
def mating_rotation(turn: int) -> np.ndarray:
    """(4, 4) port frame b in port frame a."""
    R_ab = product(so3.from_rpy(0.0, 0.0, np.deg2rad(turn)), so3.from_rpy(np.pi, 0.0, 0.0))
    return se3.pose(R_ab, np.zeros(3))


@lru_cache(maxsize=CACHED_DYADS)
def dyad(
    kind_i: ModuleType, port_i: int | str, kind_j: ModuleType, port_j: int | str, turn: int
) -> Dyad:
    """The docking of side `port_i` of one kind to side `port_j` of another."""
    T_ij = mated_pose(kind_i.port_pose(port_i), kind_j.port_pose(port_j), turn)
    step = _grid_step(T_ij) if kind_i.grid and kind_j.grid else None
    return Dyad(T_ij, _class(kind_i, kind_j, T_ij), step)


def _class(kind_i: ModuleType, kind_j: ModuleType, T_ij: np.ndarray) -> str:
    if kind_i.virtual:
        return "DV"
    if kind_i.dyad_screw is None or kind_j.dyad_screw is None:
        return "DR"
    screw_i, screw_j = kind_i.dyad_screw, se3.transform_twist(T_ij, kind_j.dyad_screw)
    axis_i, axis_j = screw_i[3:], screw_j[3:]
    if np.linalg.norm(so3.cross(axis_i, axis_j)) > COLLINEAR:
        return "DO"
    # a line is its direction and its moment -v = p x w about the common origin
    sign = np.sign(axis_i @ axis_j)
    apart = np.linalg.norm(screw_i[:3] - sign * screw_j[:3])
    return "DS" if apart <= COLLINEAR * kind_i.size else "DP"


def _grid_step(T_ij: np.ndarray) -> tuple[int, int, int]:
    x, y = T_ij[0, 3], T_ij[1, 3]
    reach = max(abs(x), abs(y))
    quarter = round(np.arctan2(T_ij[1, 0], T_ij[0, 0]) / (np.pi / 2)) % 4
    return round(x / reach), round(y / reach), quarter


def edges_outward(edges: Sequence[tuple[Any, Any]], root: Any) -> Iterator[tuple[int, Any, Any]]:
    """(number, near end, far end) of the edges that can be reached from `root`, breadth first.

    A far end that was yielded before, or is the root, closes a loop.
    """
    touching: dict[Any, list[int]] = {}
    for number, ends in enumerate(edges):
        for end in ends:
            touching.setdefault(end, []).append(number)
    used, front = set[int](), [root]
    for here in front:  # a loop leads to an end that has no other edge left
        for number in touching.get(here, ()):
            if number in used:
                continue
            used.add(number)
            one, other = edges[number]
            there = other if one == here else one
            yield number, here, there
            front.append(there)
