"""States between the recorded ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from modurob.model import Model
from modurob.sim import manifold

Piece = tuple[float, float, Callable[[np.ndarray], Any]]


def from_pieces(
    model: Model, pieces: Sequence[Piece], t: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(n, nq) and (n, nv) from an adaptive method's own polynomials; a piece is (t0, t1, y(t))."""
    ends = np.array([end for _, end, _ in pieces])
    which = np.minimum(np.searchsorted(ends, t), len(pieces) - 1)
    y = np.empty((len(t), model.nq + model.nv))
    for k in np.unique(which).tolist():
        mine = which == k
        y[mine] = pieces[k][2](t[mine]).T
    q = y[:, : model.nq]
    return manifold.normalized(q) if model.free_base else q, y[:, model.nq :]


def from_states(
    model: Model, t: np.ndarray, q: np.ndarray, v: np.ndarray, a: np.ndarray, at: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(n, ..., nq), (n, ..., nv): degree five through q, q' and q'', degree three through v, v'."""
    k = np.clip(np.searchsorted(t, at, side="right") - 1, 0, max(len(t) - 2, 0))
    if len(t) == 1:
        return q[k], v[k]
    h = (t[k + 1] - t[k]).reshape(-1, *(1,) * (q.ndim - 1))
    s = (at - t[k]).reshape(h.shape) / h
    ends = q[k], q[k + 1]
    if model.free_base:
        rates = [manifold.rate(q[i], v[i]) for i in (k, k + 1)]
        seconds = [manifold.second_rate(q[i], v[i], a[i]) for i in (k, k + 1)]
        # q and -q are one rotation; take the one that lies near
        flip = np.sum(ends[0][..., 3:7] * ends[1][..., 3:7], axis=-1, keepdims=True) < 0
        mirror = np.ones(ends[1].shape)
        mirror[..., 3:7] = np.where(flip, -1.0, 1.0)
        ends = ends[0], ends[1] * mirror
        rates[1], seconds[1] = rates[1] * mirror, seconds[1] * mirror
    else:
        rates, seconds = [v[k], v[k + 1]], [a[k], a[k + 1]]
    found = _quintic(s, h, *ends, *rates, *seconds)
    if model.free_base:
        found = manifold.normalized(found)
    return found, _cubic(s, h, v[k], v[k + 1], a[k], a[k + 1])


def _cubic(s: Any, h: Any, x0: Any, x1: Any, d0: Any, d1: Any) -> Any:
    r = 1 - s
    return r * r * (1 + 2 * s) * x0 + s * s * (1 + 2 * r) * x1 + s * r * h * (r * d0 - s * d1)


def _quintic(s: Any, h: Any, x0: Any, x1: Any, d0: Any, d1: Any, c0: Any, c1: Any) -> Any:
    r = 1 - s
    value = r**3 * (1 + 3 * s + 6 * s * s) * x0 + s**3 * (1 + 3 * r + 6 * r * r) * x1
    slope = h * (r**3 * s * (1 + 3 * s) * d0 - s**3 * r * (1 + 3 * r) * d1)
    return value + slope + h * h / 2 * (r**3 * s * s * c0 + s**3 * r * r * c1)
