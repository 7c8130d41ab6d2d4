"""Mass, center of mass and inertia of sets of bodies: joined, taken apart, seen from elsewhere.

A set is kept as its pseudo-inertia, the integral of ``r r^T dm`` over homogeneous points r:

    P = [S  h; h^T  m],      m mass,   h = m p first moment,   S = integral of x x^T dm

Sets in one frame simply add, and subtract; another frame is ``P_a = T_ab P_b T_ab^T``. The inertia
about the center of mass follows from it. (The formula of moll2006 averages the inertias instead,
which is wrong even for two points.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from modurob.spatial.inertia import from_pseudo_inertia, pseudo_inertia

NUMBERS = 10  # of a set: mass, first moment, and six of the symmetric S
_ROWS, _COLUMNS = (3, 0, 1, 2, 0, 1, 2, 0, 0, 1), (3, 3, 3, 3, 0, 1, 2, 1, 2, 2)


@dataclass(frozen=True, eq=False)
class MassProperties:
    """Mass properties of a set of bodies, in some frame.

    ``a + b`` is the union of two sets, ``a - b`` what is left of a without b, both in one frame.

    Attributes:
        mass: (...) [kg]
        center: (..., 3) center of mass; the origin if there is no mass. [m]
        inertia: (..., 3, 3) about the center of mass. [kg m^2]
    """

    mass: np.ndarray
    center: np.ndarray
    inertia: np.ndarray

    def __add__(self, other: MassProperties) -> MassProperties:
        return unpacked(self.pseudo_inertia() + other.pseudo_inertia())

    def __sub__(self, other: MassProperties) -> MassProperties:
        return unpacked(self.pseudo_inertia() - other.pseudo_inertia())

    def moved(self, T_ab: np.ndarray) -> MassProperties:
        """The same set, given in frame b, in frame a."""
        return unpacked(moved(T_ab, self.pseudo_inertia()))

    def pseudo_inertia(self) -> np.ndarray:
        """P (..., 4, 4)."""
        return pseudo_inertia(self.mass, self.center, self.inertia)


def unpacked(P: np.ndarray) -> MassProperties:
    """Mass, center and inertia of a set P (..., 4, 4)."""
    return MassProperties(*from_pseudo_inertia(P))


def moved(T_ab: np.ndarray, P_b: np.ndarray) -> np.ndarray:
    """P_a (..., 4, 4) of a set given in frame b."""
    return T_ab @ P_b @ np.swapaxes(T_ab, -1, -2)


def centers_in_world(P: np.ndarray, T_wm: np.ndarray) -> np.ndarray:
    """(..., 3) centers of mass in the world of sets P (..., 4, 4) in frames at T_wm. [m]"""
    center = P[..., :3, 3] / P[..., 3, 3, None]
    return (T_wm[..., :3, :3] @ center[..., None])[..., 0] + T_wm[..., :3, 3]


def to_numbers(P: np.ndarray) -> np.ndarray:
    """(..., 10) the numbers of P (..., 4, 4) that travel: m, h, and S without its lower half."""
    return P[..., _ROWS, _COLUMNS]


def from_numbers(numbers: np.ndarray) -> np.ndarray:
    """P (..., 4, 4) of its ten numbers."""
    P = np.empty((*numbers.shape[:-1], 4, 4))
    P[..., _ROWS, _COLUMNS] = numbers
    P[..., _COLUMNS, _ROWS] = numbers
    return P
