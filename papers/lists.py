"""The documents' way from an organism to M, C and N, written out as they print it.

Transforms come from the two lists, the stacked matrices from the transforms. Nothing here is used
by modurob; it is what modurob is compared with. The equation numbers are those of meister2012
(corrected as docs/errata.md says) and, in brackets, of gutenkunst2012.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag, expm

from modurob import Model, ModuleType, Organism

NORMALS = {2: (1, 0, 0), 5: (-1, 0, 0), 3: (0, 1, 0), 4: (0, -1, 0)}  # outward, of the four docks
HINGE = np.array([0, 0, 0, 1.0, 0, 0])  # (11): rotation about x


class Printed(NamedTuple):
    """M, C and N of (37) to (39)."""

    M: np.ndarray
    C: np.ndarray
    N: np.ndarray


def hat(w: np.ndarray) -> np.ndarray:
    """(3): the skew matrix of a vector."""
    x, y, z = w
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0.0]])


def Ad(T: np.ndarray) -> np.ndarray:
    """(13), [2.36]."""
    R, p = T[:3, :3], T[:3, 3]
    return np.block([[R, hat(p) @ R], [np.zeros((3, 3)), R]])


def ad(V: np.ndarray) -> np.ndarray:
    """(15), [2.38]."""
    v, w = hat(V[:3]), hat(V[3:])
    return np.block([[w, v], [np.zeros((3, 3)), w]])


def exp(s: np.ndarray, q: float) -> np.ndarray:
    """(6): the series of a twist times an angle, by SciPy."""
    twist = np.zeros((4, 4))
    twist[:3, :3], twist[:3, 3] = hat(s[3:]), s[:3]
    return expm(twist * q)


def turned_by(side_i: int, side_j: int) -> int:
    """[Tab. 3.1]: degrees that j is turned about z when it docks to i."""
    angle_i, angle_j = (np.arctan2(NORMALS[s][1], NORMALS[s][0]) for s in (side_i, side_j))
    return round(np.degrees(angle_i + np.pi - angle_j)) % 360


def docked(side_i: int, side_j: int, distance: float) -> np.ndarray:
    """T_ij(0) of [3.3]: turned as the table says, moved along the normal of side i."""
    angle, T = np.radians(turned_by(side_i, side_j)), np.eye(4)
    T[:2, :2] = np.round([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    T[:3, 3] = distance * np.array(NORMALS[side_i])
    return T


def transforms(
    organism: Organism, angles: dict[int, float], distance: float
) -> dict[tuple[int, int], np.ndarray]:
    """(21), [3.6] and [3.7]: T_ij of all pairs, first by the direct, then by the indirect list.

    Args:
        angles: q_j of the joint that carries module j; locked ones are left out. [rad]
        distance: From center to center. [m]
    """
    T: dict[tuple[int, int], np.ndarray] = {}
    for i, j, side_i, side_j in organism.direct_transforms().tolist():
        T[i, j] = docked(side_i, side_j, distance) @ exp(HINGE, angles.get(j, 0.0))
    for i, j, _, x, _, _ in organism.indirect_transforms().tolist():
        T[i, j] = T[i, x] @ T[x, j]
    return T


def joints_of(model: Model) -> list[int]:
    """Numbers of the modules that the active joints carry: m3.hinge is 3."""
    return [int(name.split(".")[0][1:]) for name in model.joint_names]


def closed_form(organism: Organism, model: Model, q: np.ndarray, v: np.ndarray) -> Printed:
    """(34) to (39) with every module a link; locked joints have no column in S."""
    active, n = joints_of(model), len(organism) - 1
    kind = organism.kind(organism.base)
    T_ij = transforms(organism, dict(zip(active, q.tolist(), strict=True)), kind.size)
    T = np.zeros((6 * n, 6 * n))
    for i in range(1, n + 1):
        T[6 * i - 6 : 6 * i, 6 * i - 6 : 6 * i] = np.eye(6)
    for (i, j), pose in T_ij.items():
        if i > 0:  # (35)
            T[6 * j - 6 : 6 * j, 6 * i - 6 : 6 * i] = Ad(np.linalg.inv(pose))
    T_0 = np.vstack([Ad(np.linalg.inv(T_ij[0, j])) for j in range(1, n + 1)])  # (34)
    S, rates = np.zeros((6 * n, len(active))), np.zeros(n + 1)
    for column, j in enumerate(active):
        S[6 * j - 6 : 6 * j, column], rates[j] = HINGE, v[column]
    M = block_diag(*[_inertia(organism, j) for j in range(1, n + 1)])
    V = T @ S @ v  # (30)
    ad_S = block_diag(*[-ad(HINGE * rates[j]) for j in range(1, n + 1)])
    ad_V = block_diag(*[-ad(V[6 * j - 6 : 6 * j]).T for j in range(1, n + 1)])
    dV_0 = np.concatenate([-model.gravity, np.zeros(3)])  # (23)
    return Printed(
        M=S.T @ T.T @ M @ T @ S,  # (37)
        C=S.T @ T.T @ (M @ T @ ad_S + ad_V @ M) @ T @ S,  # (38), erratum 7
        N=S.T @ T.T @ M @ T_0 @ dV_0,  # (39), erratum 8
    )


def _inertia(organism: Organism, module: int) -> np.ndarray:
    """(29), erratum 9: mass first; the center of mass is the module's origin."""
    kind = organism.kind(f"m{module}")
    return block_diag(kind.mass * np.eye(3), _moment(kind))


def _moment(kind: ModuleType) -> np.ndarray:
    """(3, 3) of the whole module about its center, its bodies at rest. [kg m^2]"""
    total = np.zeros((3, 3))
    for body, pose in zip(kind.bodies, kind.rest_poses, strict=True):
        R, arm = pose[:3, :3], pose[:3, 3] + pose[:3, :3] @ np.array(body.center_of_mass)
        total += R @ np.array(body.inertia) @ R.T - body.mass * hat(arm) @ hat(arm)
    return total
