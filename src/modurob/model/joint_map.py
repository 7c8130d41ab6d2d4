"""Joints of one body found again in another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from modurob.model.model import Model


@dataclass(frozen=True, eq=False)
class JointMap:
    """Correspondence by name between the joints of a body before a change and after it.

    Laws, references, estimators and states of a body that changes are carried over with it. The
    base is left to the caller, because the new base may be another module.
    """

    old: Model
    new: Model

    @cached_property
    def _kept(self) -> tuple[np.ndarray, np.ndarray]:
        return shared_places(self.old.joint_names, self.new.joint_names)

    @property
    def kept_old(self) -> np.ndarray:
        """(k,) indices, among the old joints, of those that both bodies have."""
        return self._kept[0]

    @property
    def kept_new(self) -> np.ndarray:
        """(k,) indices of the same joints, in the same order, among the new joints."""
        return self._kept[1]

    @cached_property
    def added(self) -> np.ndarray:
        """(m,) indices of new joints that the old body does not have."""
        return np.setdiff1d(np.arange(len(self.new.joint_names)), self.kept_new)

    @property
    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """(k,), (k,) places of the joints of both bodies in the old and in the new velocity."""
        base_old, base_new = (m.nv - len(m.joint_names) for m in (self.old, self.new))
        return base_old + self.kept_old, base_new + self.kept_new

    def carry(
        self,
        values: np.ndarray,
        fill: ArrayLike | None = None,
        sizes: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> np.ndarray:
        """Return numbers per joint for the new body: joints of both bodies keep theirs.

        Args:
            values: (n_old,) numbers, or an (n_old, n_old) matrix.
            fill: For added joints: one number or (n_new,) of which theirs are used; the median of
                the old numbers by default. In a matrix it is their diagonal entry, and they are
                not coupled to other joints.
            sizes: (n_old,), (n_new,) sizes of the joints, such as inertias. The median is then
                that of numbers per size, so that a heavy joint does not get the gain of a light
                one.

        Returns:
            (n_new,) or (n_new, n_new), in the unit of `values`.
        """
        n = len(self.new.joint_names)
        diagonal = values if values.ndim == 1 else np.diagonal(values)
        if fill is None:
            before, after = sizes or (np.ones(len(diagonal)), np.ones(n))
            fill = after * (np.median(diagonal / before) if len(diagonal) else 0.0)
        result = np.array(np.broadcast_to(fill, (n,)), dtype=float)
        result[self.kept_new] = diagonal[self.kept_old]
        if values.ndim == 1:
            return result
        result = np.diag(result)
        kept_old, kept_new = self._kept
        result[np.ix_(kept_new, kept_new)] = values[np.ix_(kept_old, kept_old)]
        return result

    def configuration(self, q: np.ndarray, fill: ArrayLike = 0.0) -> np.ndarray:
        """Return (nq,) of the new body with the old joint positions; its base is at neutral.

        Args:
            q: (nq,) configuration of the old body. [rad, m]
            fill: Positions of added joints: one number or (n_new,). [rad, m]
        """
        result = self.new.neutral()
        result[self.new.joint_slice_q] = self.carry(q[self.old.joint_slice_q], fill)
        return result

    def velocity(self, v: np.ndarray, fill: ArrayLike = 0.0) -> np.ndarray:
        """Return (nv,) of the new body with the old joint velocities (or torques); 0 at its base.

        Args:
            v: (nv,) velocity of the old body. [rad/s, m/s]
            fill: Velocities of added joints: one number or (n_new,). [rad/s, m/s]
        """
        joints = self.carry(v[self.old.joint_slice_v], fill)
        return np.concatenate([np.zeros(self.new.nv - len(joints)), joints])


def shared_places(old: Sequence[str], new: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return (k,), (k,) indices in `old` and in `new` of the names in both, ordered as in `new`."""
    place = {name: k for k, name in enumerate(old)}
    pairs = [(place[name], k) for k, name in enumerate(new) if name in place]
    index = np.array(pairs, dtype=int).reshape(-1, 2)
    return index[:, 0], index[:, 1]
