"""`Part`: one body in motion."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.errors import StateError
from modurob.model import Model
from modurob.organism import Organism
from modurob.sim import dense

CHUNK = 4096  # states whose energy and momentum are computed at once, to keep memory small


@dataclass(frozen=True, eq=False, repr=False)
class Part:
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
    _pieces: Sequence[dense.Piece] = ()

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
            q, v = dense.from_pieces(self.model, self._pieces, flat)
        else:
            q, v = dense.from_states(self.model, self.t, self.q, self.v, self.a, flat)
        return q.reshape(*times.shape, *q.shape[1:]), v.reshape(*times.shape, *v.shape[1:])

    def member(self, index: int | tuple[int, ...]) -> Part:
        """One state of a batch as a part of its own."""
        chosen = (index,) if isinstance(index, int | np.integer) else tuple(index)
        try:
            rows = [x[(slice(None), *chosen)] for x in (self.q, self.v, self.tau)]
        except IndexError:
            raise StateError(f"no member {index} in a batch of shape {self.batch}") from None
        if rows[0].ndim != 2:
            raise StateError(f"a member of a batch of shape {self.batch} has as many indices")
        depth = len(self.batch)
        channels = {
            name: x[(slice(None), *chosen)]
            for name, x in self.channels.items()
            if x.shape[1 : 1 + depth] == self.batch
        }
        a = self._accelerations
        return replace(
            self,
            q=rows[0],
            v=rows[1],
            tau=rows[2],
            channels=MappingProxyType(channels),
            _accelerations=None if a is None else lambda: self.a[(slice(None), *chosen)],
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles carry the numbers; the integrator's own polynomials stay behind."""
        names = ("name", "model", "organism", "t", "q", "v", "tau")
        fields = {name: getattr(self, name) for name in names}
        return _restored, (fields, dict(self.channels), self.a)

    def __repr__(self) -> str:
        batch = f", batch {self.batch}" if self.batch else ""
        who = f" of '{self.name}'" if self.name else ""
        return f"<Part{who}: {self.t[0]:g} to {self.t[-1]:g} s, {len(self.t)} times{batch}>"


def _restored(fields: dict[str, Any], channels: dict[str, np.ndarray], a: np.ndarray) -> Part:
    return Part(**fields, channels=MappingProxyType(channels), _accelerations=lambda: a)


def _frozen(array: np.ndarray) -> np.ndarray:
    array = np.asarray(array)
    array.setflags(write=False)
    return array
