"""The recursions run on plain numbers: slow, readable, what every compiled tier must equal."""

from __future__ import annotations

from typing import Any

import numpy as np

from modurob.equations import derivatives as slopes
from modurob.equations import forward_dynamics as aba
from modurob.equations import inverse_dynamics as rnea
from modurob.equations import mass_matrix as crba
from modurob.equations.inverse_dynamics import Load
from modurob.equations.vectors import Vec, packed, vec
from modurob.model.model import Model


class Reference:
    """Dynamics of a model without any compiler; takes checked states of equal batch shape."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.sign = model.frames.sign
        self.links = model.frames.links()

    def inverse_dynamics(
        self, q: np.ndarray, v: np.ndarray, a: np.ndarray, external: np.ndarray | None = None
    ) -> np.ndarray:
        """(..., nv) generalised forces; external (..., links, 6) in joint frames."""
        if self.model.free_base:
            base = rnea.base_motion(_split(v[..., :6]), _split(a[..., :6]), self._gravity(q))
        else:
            base = rnea.resting_base(self._gravity(q))
        joints = self._displacements(q), self._joints(v), self._joints(a)
        tau, wrench = rnea.inverse_dynamics(self.links, *joints, base, _loads(external))
        return self._result(tau, [*wrench.f, *wrench.n], v)

    def forward_dynamics(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, external: np.ndarray | None = None
    ) -> np.ndarray:
        """(..., nv) accelerations; external (..., links, 6) in joint frames."""
        free = self.model.free_base
        a, base = aba.forward_dynamics(
            self.links,
            self._displacements(q),
            self._joints(v),
            self._joints(tau),
            self._gravity(q),
            _split(v[..., :6]) if free else None,
            _split(tau[..., :6]) if free else None,
            _loads(external),
        )
        return self._result(a, base, v)

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        """(..., nv, nv)."""
        rows = crba.mass_matrix(self.links, self._displacements(q), self.model.free_base)
        return self._matrix(rows, q)

    def inverse_dynamics_derivatives(
        self, q: np.ndarray, v: np.ndarray, a: np.ndarray
    ) -> np.ndarray:
        """(..., 3, nv, nv) by q, v and a."""
        joints = self._displacements(q), self._joints(v), self._joints(a)
        gravity = vec(self.model.gravity)
        if self.model.free_base:
            R = rnea.base_rotation(_split(q[..., 3:7]))
            base = slopes.base_frame(R, _split(v[..., :6]), _split(a[..., :6]), gravity)
            columns = slopes.base_columns(base, gravity)
        else:
            base, columns = slopes.standing_frame(gravity), ()
        matrices = slopes.inverse_dynamics_derivatives(self.links, *joints, base, columns)
        return np.stack([self._matrix(rows, q) for rows in matrices], axis=-3)

    def forward_dynamics_derivatives(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray
    ) -> np.ndarray:
        """(..., 3, nv, nv) by q, v and tau."""
        nv, parents = self.model.nv, self.model.parent.tolist()
        base = nv - len(parents)
        above = [*range(-1, base - 1), *(base + parent - 1 for parent in parents)]
        found = self.inverse_dynamics_derivatives(q, v, self.forward_dynamics(q, v, tau))
        dq, dv, da = (found[..., k, :, :] for k in range(3))
        right = np.concatenate([dq, dv, np.broadcast_to(-np.eye(nv), dq.shape)], axis=-1)
        X = crba.solved(_rows(da), _rows(right), above)
        result = np.stack([np.stack(row, axis=-1) for row in X], axis=-2)
        return np.stack([result[..., k * nv : (k + 1) * nv] for k in range(3)], axis=-3)

    def _matrix(self, rows: list[list[Any]], q: np.ndarray) -> np.ndarray:
        sign = np.concatenate([np.ones(self.model.nv - len(self.sign)), self.sign])
        batch = np.empty(q.shape[:-1])
        M = np.stack([packed(row, batch) for row in rows], axis=-2)
        return sign[:, None] * M * sign

    def _gravity(self, q: np.ndarray) -> Vec:
        gravity = vec(self.model.gravity)
        return rnea.in_base(_split(q[..., 3:7]), gravity) if self.model.free_base else gravity

    def _displacements(self, q: np.ndarray) -> list[Any]:
        return _split(self.model.joints_of(q) * self.model.frames.travel)

    def _joints(self, x: np.ndarray) -> list[Any]:
        return _split((x[..., 6:] if self.model.free_base else x) * self.sign)

    def _result(self, joints: list[Any], base: list[Any], v: np.ndarray) -> np.ndarray:
        batch = np.empty(v.shape[:-1])
        result = packed(joints, batch) * self.sign
        if not self.model.free_base:
            return result
        return np.concatenate([packed(base, batch), result], axis=-1)


def _split(x: np.ndarray) -> list[Any]:
    """The last axis as scalars: floats without batch, arrays with one."""
    return x.tolist() if x.ndim == 1 else [x[..., k] for k in range(x.shape[-1])]


def _rows(M: np.ndarray) -> list[list[Any]]:
    """A matrix on the last two axes as rows of scalars."""
    return [_split(M[..., i, :]) for i in range(M.shape[-2])]


def _loads(external: np.ndarray | None) -> list[Load | None] | None:
    if external is None:
        return None
    return [
        Load(vec(external[..., i, :3]), vec(external[..., i, 3:]))
        for i in range(external.shape[-2])
    ]
