"""`BodyTrajectory`: one body in motion."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob import quintic
from modurob.errors import StateError
from modurob.model import Model
from modurob.organism import Organism
from modurob.stepping import manifold

Piece = tuple[float, float, Callable[[np.ndarray], Any]]
CHUNK = 4096  # states whose energy and momentum are computed at once, to keep memory small


@dataclass(frozen=True, eq=False, repr=False)
class BodyTrajectory:
    """One body in motion: from its first state to its last, or to the event that changed it.

    Times come first: ``q[k]`` is the state at ``t[k]``, with the batch of initial states between.

    Attributes:
        name: The base module, or empty when no organism was given.
        model: The equations it moved by.
        organism: The body, if it was given.
        t: (N,) times. [s]
        q, v: (N, ..., nq), (N, ..., nv) states. [rad, m, rad/s, m/s]
        tau: (N, ..., nv) what the controller and its disturbance put on the joints. [N m, N]
        channels: What the controller recorded, by name, (N, ...) each.
    """

    name: str
    model: Model
    organism: Organism | None
    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    channels: Mapping[str, np.ndarray] = field(default_factory=lambda: MappingProxyType({}))
    _accelerations: Callable[[], np.ndarray] | None = None
    _pieces: Sequence[Piece] = ()

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the initial states."""
        return self.q.shape[1:-1]

    @cached_property
    def a(self) -> np.ndarray:
        """(N, ..., nv) accelerations. [rad/s^2, m/s^2]"""
        if self._accelerations is not None:
            return _frozen(self._accelerations())
        return _frozen(self.model.forward_dynamics(self.q, self.v, self.tau))

    @cached_property
    def kinetic_energy(self) -> np.ndarray:
        """(N, ...) [J]"""
        return self._each(self.model.kinetic_energy, self.q, self.v)

    @cached_property
    def potential_energy(self) -> np.ndarray:
        """(N, ...) zero at the height of the world's origin. [J]"""
        return self._each(self.model.potential_energy, self.q)

    @cached_property
    def energy(self) -> np.ndarray:
        """(N, ...) kinetic plus potential. [J]"""
        return _frozen(self.kinetic_energy + self.potential_energy)

    @cached_property
    def momentum(self) -> np.ndarray:
        """(N, ..., 6) linear, and angular about the world's origin. [N s, N m s]"""
        return self._each(self.model.momentum, self.q, self.v)

    def _each(self, function: Callable[..., np.ndarray], *arrays: np.ndarray) -> np.ndarray:
        states = math.prod(self.q.shape[:-1])
        flat = [x.reshape(states, x.shape[-1]) for x in arrays]  # -1 cannot tell where nv is 0
        blocks = range(0, max(states, 1), CHUNK)
        parts = [function(*(x[k : k + CHUNK] for x in flat)) for k in blocks]
        found = np.concatenate(parts)
        return _frozen(found.reshape(*self.q.shape[:-1], *found.shape[1:]))

    def at(self, t: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """(..., nq) and (..., nv) state at any time of the part.

        Adaptive integrators answer with their own dense output; otherwise with a polynomial through
        the recorded states, which is good when every step was recorded.
        """
        times = np.asarray(t, dtype=float)
        if not np.all((times >= self.t[0]) & (times <= self.t[-1])):
            raise StateError(
                f"the time must lie between {self.t[0]:g} and {self.t[-1]:g} s, got {t!r}"
            )
        flat = times.ravel()
        if self._pieces:
            q, v = _from_pieces(self.model, self._pieces, flat)
        else:
            q, v = _from_states(self.model, self.t, self.q, self.v, self.a, flat)
        return q.reshape(*times.shape, *q.shape[1:]), v.reshape(*times.shape, *v.shape[1:])

    def member(self, index: int | tuple[int, ...]) -> BodyTrajectory:
        """One state of a batch as a part of its own."""
        at = (slice(None), *((index,) if isinstance(index, int | np.integer) else index))
        try:
            q, v, tau = (x[at] for x in (self.q, self.v, self.tau))
        except IndexError:
            raise StateError(f"no member {index} in a batch of shape {self.batch}") from None
        if q.ndim != 2:
            raise StateError(f"a member of a batch of shape {self.batch} has as many indices")
        batch = slice(1, 1 + len(self.batch))
        channels = {k: x[at] for k, x in self.channels.items() if x.shape[batch] == self.batch}
        accelerations = None if self._accelerations is None else lambda: self.a[at]
        kept = MappingProxyType(channels)
        return replace(self, q=q, v=v, tau=tau, channels=kept, _accelerations=accelerations)

    def rows(self, index: np.ndarray) -> BodyTrajectory:
        """Some of the recorded states as a part of its own."""
        states = {name: getattr(self, name)[index] for name in ("t", "q", "v", "tau")}
        channels = MappingProxyType({name: x[index] for name, x in self.channels.items()})
        return replace(self, **states, channels=channels, _accelerations=lambda: self.a[index])

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles carry the numbers; the integrator's own polynomials stay behind."""
        names = ("name", "model", "organism", "t", "q", "v", "tau")
        fields = {name: getattr(self, name) for name in names}
        return _restored, (fields, dict(self.channels), self.a)

    def __repr__(self) -> str:
        batch = f", batch {self.batch}" if self.batch else ""
        who = f" of '{self.name}'" if self.name else ""
        return (
            f"<BodyTrajectory{who}: {self.t[0]:g} to {self.t[-1]:g} s, {len(self.t)} times{batch}>"
        )


def _restored(
    fields: dict[str, Any], channels: dict[str, np.ndarray], a: np.ndarray
) -> BodyTrajectory:
    return BodyTrajectory(**fields, channels=MappingProxyType(channels), _accelerations=lambda: a)


def _frozen(array: np.ndarray) -> np.ndarray:
    array = np.asarray(array)
    array.setflags(write=False)
    return array


# -- states between the recorded ones --------------------------------------------------------------


def _from_pieces(
    model: Model, pieces: Sequence[Piece], t: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(n, nq) and (n, nv) from an adaptive method's own polynomials; a piece is (t0, t1, y(t))."""
    ends = np.array([end for _, end, _ in pieces])
    which = np.minimum(np.searchsorted(ends, t), len(pieces) - 1)
    y = np.empty((len(t), model.nq + model.nv))
    for k in np.unique(which).tolist():
        mine = which == k
        y[mine] = pieces[k][2](t[mine]).T
    return manifold.split(model, y)


def _from_states(
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
    start, end = (quintic.Curve(*each) for each in zip(ends, rates, seconds, strict=True))
    found = quintic.value(quintic.coefficients(h, start, end), s)
    if model.free_base:
        found = manifold.normalized(found)
    return found, _cubic(s, h, v[k], v[k + 1], a[k], a[k + 1])


def _cubic(s: Any, h: Any, x0: Any, x1: Any, d0: Any, d1: Any) -> Any:
    r = 1 - s
    return r * r * (1 + 2 * s) * x0 + s * s * (1 + 2 * r) * x1 + s * r * h * (r * d0 - s * d1)
