"""Poses, Jacobians and mass matrices of all bodies of a population at once, with NumPy.

They set up rollouts: compiled code takes the steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modurob.compiler.packing import UPPER
from modurob.population.tables import BodyTables
from modurob.spatial import so3


class LinkPoses(NamedTuple):
    """(bodies, most links, 3, 3) rotations and (bodies, most links, 3) positions of links. [m]

    Behind the last link of a body they are those of its base.
    """

    R: np.ndarray
    p: np.ndarray


def joint_poses(tables: BodyTables, q: np.ndarray) -> LinkPoses:
    """Poses of links in their parents' frames; link 0 has its pose in the world.

    Args:
        q: (bodies, most nq) configurations.
    """
    bodies, links = tables.row.shape
    first = 7 if tables.free_base else 0
    angle = np.zeros((bodies, links))
    angle[:, 1:] = q[:, first:] * tables.of_links("sign")[:, 1:, 0]
    slides = tables.slides()
    turn, R = np.where(slides, 0.0, angle), np.zeros((bodies, links, 3, 3))
    seat = tables.of_links("R").reshape(bodies, links, 3, 3)
    c, s = np.cos(turn)[..., None], np.sin(turn)[..., None]
    R[..., 0] = seat[..., 0]
    R[..., 1] = c * seat[..., 1] + s * seat[..., 2]
    R[..., 2] = c * seat[..., 2] - s * seat[..., 1]
    p = tables.of_links("p") + np.where(slides, angle, 0.0)[..., None] * seat[..., 0]
    R[:, 0], p[:, 0] = np.eye(3), 0.0
    if tables.free_base:
        R[:, 0], p[:, 0] = so3.from_quaternion(q[:, 3:7]), q[:, :3]
    return LinkPoses(R, p)


def link_poses(tables: BodyTables, q: np.ndarray) -> LinkPoses:
    """Poses of links in the world."""
    R, p = (x.copy() for x in joint_poses(tables, q))
    body = np.arange(len(R))
    for k in range(1, R.shape[1]):
        above = np.maximum(tables.parent[:, k], 0)
        R_above, p_above = R[body, above], p[body, above]
        p[:, k] = (R_above @ p[:, k, :, None])[..., 0] + p_above
        R[:, k] = R_above @ R[:, k]
    return LinkPoses(R, p)


def centers_of_mass(
    tables: BodyTables, q: np.ndarray, links: LinkPoses | None = None
) -> np.ndarray:
    """(bodies, 3) centers of mass in the world, from the poses of the links if known. [m]"""
    R, p = link_poses(tables, q) if links is None else links
    m, h = tables.of_links("mass"), tables.of_links("moment")
    parts = (m * p + (R @ h[..., None])[..., 0]) * tables.present[..., None]
    return parts.sum(axis=1) / tables.mass[:, None]


def jacobians(tables: BodyTables, q: np.ndarray) -> np.ndarray:
    """(bodies, links, 6, nv) twist of each link in its frame, linear part first.

    All bodies have equally many links.
    """
    R, p = joint_poses(tables, q)
    bodies, links = tables.row.shape
    base = 6 if tables.free_base else 0
    J, body = np.zeros((bodies, links, 6, base + links - 1)), np.arange(bodies)
    J[:, 0, :, :base] = np.eye(6)[:, :base]
    axis = np.where(tables.slides(), 0, 3)
    sign = tables.of_links("sign")[..., 0]
    for k in range(1, links):
        above = J[body, tables.parent[:, k]]
        R_T, lever = np.swapaxes(R[:, k], 1, 2), p[:, k, :, None]
        v, w = above[:, :3], above[:, 3:]
        J[:, k, :3], J[:, k, 3:] = R_T @ (v + np.cross(w, lever, axis=1)), R_T @ w
        J[body, k, axis[:, k], base + k - 1] += sign[:, k]
    return J


def mass_matrices(tables: BodyTables, J: np.ndarray) -> np.ndarray:
    """(bodies, nv, nv) mass matrices from the `jacobians`."""
    M = _summed(J, _link_inertias(tables.rows_by_name)[tables.row])
    base = J.shape[-1] - J.shape[1] + 1
    joints = np.arange(base, J.shape[-1])
    M[:, joints, joints] += tables.of_links("armature")[:, 1:, 0]
    return M


def ground_matrices(tables: BodyTables, J: np.ndarray) -> np.ndarray:
    """(bodies, nv, nv) stiffness of bodies that lie on a ground of 1 N/m with all links.

    See `stepping.contact.GroundContact`, whose step limit it sets.
    """
    return _summed(J, tables.side[tables.row])


def _summed(J: np.ndarray, of_links: np.ndarray) -> np.ndarray:
    """Sum of J^T A J over the links."""
    AJ = of_links @ J
    nv = J.shape[-1]
    return np.swapaxes(J.reshape(len(J), -1, nv), 1, 2) @ AJ.reshape(len(J), -1, nv)


def _link_inertias(rows: dict[str, np.ndarray]) -> np.ndarray:
    """(rows, 6, 6) inertia of links about their origins, linear part first."""
    m, h, S = rows["mass"][:, 0], rows["moment"], np.zeros((len(rows["mass"]), 3, 3))
    for k, (i, j) in enumerate(UPPER):
        S[:, i, j] = S[:, j, i] = rows["second"][:, k]
    found = np.zeros((len(m), 6, 6))
    cross = np.cross(h[:, None], np.eye(3))  # rows h x e
    found[:, :3, :3] = m[:, None, None] * np.eye(3)
    found[:, :3, 3:] = cross
    found[:, 3:, :3] = np.swapaxes(cross, 1, 2)
    trace = np.trace(S, axis1=1, axis2=2)
    found[:, 3:, 3:] = trace[:, None, None] * np.eye(3) - S
    return found


def fastest_rates(M: np.ndarray, K: np.ndarray) -> np.ndarray:
    """(bodies,) fastest oscillation of masses M on springs K; 1 where nothing moves. [rad/s]"""
    L = np.linalg.cholesky(M)
    half = np.linalg.solve(L, K)
    full = np.linalg.solve(L, np.swapaxes(half, 1, 2))
    largest = np.linalg.eigvalsh(0.5 * (full + np.swapaxes(full, 1, 2)))[:, -1]
    return np.where(largest > 0, np.sqrt(np.maximum(largest, 0.0)), 1.0)
