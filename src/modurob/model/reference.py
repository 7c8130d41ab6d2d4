"""The recursions run on plain numbers: slow, readable, what every compiled tier must equal."""

from __future__ import annotations

from typing import Any

import numpy as np

from modurob.equations.passes import Base, JointState, run
from modurob.equations.quantities import QUANTITIES
from modurob.equations.vectors import Twist, Vec, Wrench, packed, vec
from modurob.model.model import Model


class Reference:
    """Dynamics of a model without any compiler; takes checked states of equal batch shape."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def inverse_dynamics(
        self, q: np.ndarray, v: np.ndarray, a: np.ndarray, external: np.ndarray | None = None
    ) -> np.ndarray:
        """(..., nv) generalised forces; external (..., links, 6) in joint frames."""
        return self.quantity("inverse_dynamics", q, v, a, external=external)

    def forward_dynamics(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, external: np.ndarray | None = None
    ) -> np.ndarray:
        """(..., nv) accelerations; external (..., links, 6) in joint frames."""
        return self.quantity("forward_dynamics", q, v, tau, external=external)

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        """(..., nv, nv)."""
        return self.quantity("mass_matrix", q)

    def inverse_dynamics_derivatives(
        self, q: np.ndarray, v: np.ndarray, a: np.ndarray
    ) -> np.ndarray:
        """(..., 3, nv, nv) by q, v and a."""
        return self.quantity("inverse_dynamics_derivatives", q, v, a)

    def forward_dynamics_derivatives(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray
    ) -> np.ndarray:
        """(..., 3, nv, nv) by q, v and tau."""
        a = self.forward_dynamics(q, v, tau)
        return self.quantity("forward_dynamics_derivatives", q, v, a)

    def quantity(
        self,
        name: str,
        q: np.ndarray,
        v: np.ndarray | None = None,
        x: np.ndarray | None = None,
        external: np.ndarray | None = None,
    ) -> np.ndarray:
        """Any quantity of the table; external (..., links, 6) in joint frames."""
        quantity, free = QUANTITIES[name], self.model.free_base
        arrays = [np.zeros((*q.shape[:-1], self.model.nv)) if y is None else y for y in (v, x)]
        base = Base(vec(self.model.gravity))
        if free:
            twist, third = (_split(y[..., :6]) for y in arrays)
            base = Base(
                base.gravity,
                Vec(_split(q[..., :3])),
                _split(q[..., 3:7]),
                Twist(Vec(twist[:3]), Vec(twist[3:])),
                third,
            )
        frames = self.model._frames if quantity.near else self.model._placed_frames
        joints = [
            JointState(*each)
            for each in zip(
                _split(q[..., self.model.joint_slice_q] * frames.travel),
                *(_split((y[..., 6:] if free else y) * frames.sign) for y in arrays),
                strict=True,
            )
        ]
        bodies = frames.placements()
        found = run(quantity, frames.links(), joints, base, _wrenches(external), bodies)
        shape = quantity.shape(len(joints), free, len(bodies))
        return packed(found, np.empty(q.shape[:-1])).reshape(*q.shape[:-1], *shape)


def _split(x: np.ndarray) -> list[Any]:
    """The last axis as scalars: floats without batch, arrays with one."""
    return x.tolist() if x.ndim == 1 else [x[..., k] for k in range(x.shape[-1])]


def _wrenches(external: np.ndarray | None) -> list[Wrench | None] | None:
    if external is None:
        return None
    return [
        Wrench(vec(external[..., i, :3]), vec(external[..., i, 3:]))
        for i in range(external.shape[-2])
    ]
