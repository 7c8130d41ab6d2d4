"""Kinematics of a tree of links.

Link 0 is the base; link i > 0 hangs on link ``parent[i] < i`` by one joint:
``T_pi(q) = placement_i exp(screw_i q_i)``. Arrays below list the joints, so entry k belongs to
link k + 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modurob.spatial import se3

Array = np.ndarray


def link_poses(
    parent: Sequence[int], placement: Array, screw: Array, q: Array, T_w0: Array
) -> Array:
    """Poses of all links: T_wi = T_wp T_pi(0) exp(s_i q_i)  (meister2013 (13), (15)).

    Args:
        parent: Parent link of links 1..n.
        placement: (n, 4, 4) joint frames in their parents' frames at q = 0.
        screw: (n, 6) unit screws in the link frames.
        q: (..., n) displacements. [rad, m]
        T_w0: (..., 4, 4) pose of the base link.

    Returns:
        (..., n + 1, 4, 4) in the world frame.
    """
    T_pi = placement @ se3.screw_motion(screw, q)
    T_w = np.empty((*T_pi.shape[:-3], len(parent) + 1, 4, 4), dtype=T_pi.dtype)
    T_w[..., 0, :, :] = T_w0
    for i, p in enumerate(parent, start=1):
        T_w[..., i, :, :] = T_w[..., p, :, :] @ T_pi[..., i - 1, :, :]
    return T_w


def body_jacobian(
    path: Sequence[int], screw: Array, T_w: Array, T_wb: Array, free_base: bool
) -> Array:
    """Twist of a body per velocity, in the body's frame: column k is Ad(T_bk) s_k.

    Args:
        path: The links whose joints move the body.
        screw: (n, 6) unit screws in the link frames.
        T_w: (..., n + 1, 4, 4) link poses.
        T_wb: (..., 4, 4) pose of the body.
        free_base: Whether six velocities of the base (its body twist) come first.

    Returns:
        (..., 6, nv), linear part first.
    """
    nv = len(screw) + (6 if free_base else 0)
    T_bw = se3.inverse(T_wb)
    J = np.zeros((*T_wb.shape[:-2], 6, nv), dtype=T_wb.dtype)
    if free_base:
        J[..., :, :6] = se3.Ad(T_bw @ T_w[..., 0, :, :])
    if path:
        links = np.asarray(path)
        T_bk = T_bw[..., None, :, :] @ T_w[..., links, :, :]
        columns = se3.transform_twist(T_bk, screw[links - 1])
        J[..., :, nv - len(screw) + links - 1] = np.swapaxes(columns, -1, -2)
    return J
