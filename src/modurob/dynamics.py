"""Dynamics of a model, for users: checked input, any batch shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.equations import forward_dynamics as aba
from modurob.equations import inverse_dynamics as rnea
from modurob.equations import mass_matrix as crba
from modurob.equations.inverse_dynamics import Load
from modurob.equations.vectors import packed, vec
from modurob.errors import StateError
from modurob.model import Model
from modurob.spatial import se3

External = Mapping[str, ArrayLike]


class Reference:
    """The recursions run on plain numbers: slow, readable, and what the compiled tiers must equal."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.frames = model.frames
        self.links = self.frames.links()

    def inverse_dynamics(
        self, q: np.ndarray, v: np.ndarray, a: np.ndarray, external: np.ndarray | None
    ) -> np.ndarray:
        """(..., nv) from checked states of equal batch shape; external (..., links, 6)."""
        if self.model.free_base:
            base = rnea.base_motion(_split(v[..., :6]), _split(a[..., :6]), self._gravity(q))
        else:
            base = rnea.resting_base(self._gravity(q))
        tau, wrench = rnea.inverse_dynamics(
            self.links, self._joints(q, 7), self._joints(v, 6), self._joints(a, 6), base,
            _loads(external),
        )  # fmt: skip
        return self._result(tau, [*wrench.f, *wrench.n], q)

    def forward_dynamics(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, external: np.ndarray | None
    ) -> np.ndarray:
        """(..., nv) from checked states of equal batch shape; external (..., links, 6)."""
        free = self.model.free_base
        a, base = aba.forward_dynamics(
            self.links,
            self._joints(q, 7),
            self._joints(v, 6),
            self._joints(tau, 6),
            self._gravity(q),
            _split(v[..., :6]) if free else None,
            _split(tau[..., :6]) if free else None,
            _loads(external),
        )
        return self._result(a, base, q)

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        """(..., nv, nv) from a checked configuration."""
        rows = crba.mass_matrix(self.links, self._joints(q, 7), self.model.free_base)
        sign = np.ones(self.model.nv)
        sign[self.model.nv - len(self.frames.sign) :] = self.frames.sign
        M = np.stack([packed(row, q[..., 0] if q.shape[-1] else np.zeros(q.shape[:-1])) for row in rows], axis=-2)
        return sign[:, None] * M * sign

    def _gravity(self, q: np.ndarray) -> Any:
        if not self.model.free_base:
            return vec(self.model.gravity)
        return rnea.in_base(_split(q[..., 3:7]), vec(self.model.gravity))

    def _joints(self, x: np.ndarray, base: int) -> list[Any]:
        joints = x[..., base:] if self.model.free_base else x
        return _split(joints * self.frames.sign)

    def _result(self, joints: list[Any], base: list[Any], q: np.ndarray) -> np.ndarray:
        like = q[..., 0] if q.shape[-1] else np.zeros(q.shape[:-1])
        result = packed(joints, like) * self.frames.sign
        if not self.model.free_base:
            return result
        return np.concatenate([packed(base, like), result], axis=-1)


def _split(x: np.ndarray) -> list[Any]:
    """The last axis as scalars: floats without batch, arrays with one."""
    return x.tolist() if x.ndim == 1 else [x[..., k] for k in range(x.shape[-1])]


def _loads(external: np.ndarray | None) -> list[Load | None] | None:
    if external is None:
        return None
    return [
        Load(vec(external[..., i, :3]), vec(external[..., i, 3:]))
        for i in range(external.shape[-2])
    ]


# -- for users -------------------------------------------------------------------------------------


def inverse_dynamics(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, external: External | None = None
) -> np.ndarray:
    """See `Model.inverse_dynamics`."""
    q, v, a, wrenches = _checked(model, q, v, a, "a", external)
    return Reference(model).inverse_dynamics(q, v, a, wrenches)


def forward_dynamics(
    model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike, external: External | None = None
) -> np.ndarray:
    """See `Model.forward_dynamics`."""
    q, v, tau, wrenches = _checked(model, q, v, tau, "tau", external)
    return Reference(model).forward_dynamics(q, v, tau, wrenches)


def mass_matrix(model: Model, q: ArrayLike) -> np.ndarray:
    """See `Model.mass_matrix`."""
    return Reference(model).mass_matrix(model.check_configuration(q))


def _checked(
    model: Model, q: ArrayLike, v: ArrayLike, x: ArrayLike, name: str, external: External | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    q = model.check_configuration(q)
    v, x = model.check_velocity(v), model.check_velocity(x, name)
    wrenches = None if external is None else link_wrenches(model, external)
    shapes = [q.shape[:-1], v.shape[:-1], x.shape[:-1]]
    shapes += [] if wrenches is None else [wrenches.shape[:-2]]
    try:
        batch = np.broadcast_shapes(*shapes)
    except ValueError:
        raise StateError(f"q, v, {name} and external have batch shapes {shapes} that do not match") from None
    q, v, x = (np.broadcast_to(s, (*batch, s.shape[-1])) for s in (q, v, x))
    if wrenches is not None:
        wrenches = np.broadcast_to(wrenches, (*batch, *wrenches.shape[-2:]))
    return q, v, x, wrenches


def link_wrenches(model: Model, external: External) -> np.ndarray:
    """(..., links, 6) wrenches in the joint frames, from wrenches on bodies in their own frames."""
    given: list[tuple[int, np.ndarray]] = []
    for body, wrench in external.items():
        array = np.asarray(wrench, dtype=float)
        if array.ndim == 0 or array.shape[-1] != 6 or not np.isfinite(array).all():
            raise StateError(
                f"the external wrench on '{body}' is six finite numbers (force, torque) in the "
                f"body's frame, got shape {array.shape}"
            )
        given.append((model.body_index(body), array))
    batch = np.broadcast_shapes(*(array.shape[:-1] for _, array in given))
    result = np.zeros((*batch, len(model.mass), 6))
    for index, F_body in given:
        link = model.body_link[index]
        F = se3.transform_wrench(se3.inverse(model.body_placement[index]), F_body)
        Q = model.frames.turn[link]
        result[..., link, :3] += F[..., :3] @ Q
        result[..., link, 3:] += F[..., 3:] @ Q
    return result
