"""The equations of motion as linear forms of the links' pseudo-inertias.

A link's pseudo-inertia ``P = [[S, h], [h^T, m]]`` (4, 4) holds its second moments of mass, first
moment and mass, in the link's frame; a body has them if and only if P is positive semi-definite.
With the link's pose T and its second derivative along the motion, the generalized forces are

    tau_k = sum over links of trace(dT/dq_k P (ddT - G)^T),    G = [[0, g], [0, 0]].

For a velocity v and a reference velocity w, ``ddT = dT/dq a + d2T/dq2 (v, w)`` gives
``tau = M a + C(q, v) w + N`` with ``dM/dt - 2 C`` skew (Christoffel's C), which adaptive and robust
laws need. Friction is not in it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modurob.model import Model
from modurob.regressor import pose_derivatives
from modurob.spatial import se3


class PoseDerivatives(NamedTuple):
    """Motion of all links, upper rows of 4 x 4 matrices.

    Attributes:
        slopes: (..., links, nv, 3, 4) dT/dq_k.
        acceleration: (..., links, 3, 4) ddT - G.
        drives: (..., nv) forces of rotors and springs in the joints. [N m, N]
    """

    slopes: np.ndarray
    acceleration: np.ndarray
    drives: np.ndarray

    def forces(self, P: np.ndarray) -> np.ndarray:
        """(..., nv) generalized forces of links with pseudo-inertias (..., links, 4, 4)."""
        links = np.einsum("...lkab,...lab->...k", self.slopes, self.acceleration @ P)
        return links + self.drives

    def powers(self, root: np.ndarray, s: np.ndarray) -> np.ndarray:
        """(..., links, 4, 4) derivatives of ``s^T tau`` by X, for ``P = root X root``."""
        moved = np.einsum("...lkab,...k->...lab", self.slopes, s) @ root
        product = np.swapaxes(moved, -1, -2) @ (self.acceleration @ root)
        return (product + np.swapaxes(product, -1, -2)) / 2

    def scales(self, root: np.ndarray) -> np.ndarray:
        """(..., nv) sums of the Frobenius norms of `powers` for each unit velocity."""
        moved = self.slopes @ root[:, None]
        product = np.swapaxes(moved, -1, -2) @ (self.acceleration @ root)[..., None, :, :]
        both = product + np.swapaxes(product, -1, -2)
        return np.sqrt(np.sum(both * both, axis=(-1, -2))).sum(axis=-2) / 2


class LinkKinematics:
    """Motions of the links of one model."""

    def __init__(self, model: Model) -> None:
        self.model = model
        # links between virtual joints have no body and no mass: any pose serves
        bodies = (np.flatnonzero(model.body_link == k) for k in range(len(model.mass)))
        self._body = np.array([found[0] if len(found) else 0 for found in bodies])
        self._from_body = se3.inverse(model.body_placement[self._body])
        self._moves = model._moving_columns[:, None, :].astype(float)

    def motions(
        self, q: np.ndarray, v: np.ndarray, w: np.ndarray, a: np.ndarray
    ) -> PoseDerivatives:
        """Motions with velocity v, reference velocity w and acceleration a, (..., nv) each."""
        near, q = self.model._near_base(q)
        T = near.forward_kinematics(q)[..., self._body, :, :] @ self._from_body
        moved = pose_derivatives(near, T, self._moves, q, v, w, a)
        drives, joints = np.zeros(a.shape), near.joint_slice_v
        drives[..., joints] = near.armature * a[..., joints]
        drives[..., joints] += near.stiffness * q[..., near.joint_slice_q]
        return PoseDerivatives(*moved, drives)
