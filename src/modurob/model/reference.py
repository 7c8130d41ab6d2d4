"""The recursions run on plain numbers: slow, readable, what every compiled tier must equal."""

from __future__ import annotations

import numpy as np

from modurob.equations.passes import Base, JointState, run
from modurob.equations.quantities import QUANTITIES
from modurob.equations.vectors import Wrench, packed, unpacked, vec
from modurob.model.model import Model


def reference(
    model: Model,
    name: str,
    q: np.ndarray,
    v: np.ndarray | None = None,
    x: np.ndarray | None = None,
    external: np.ndarray | None = None,
) -> np.ndarray:
    """Return a quantity of the table, computed without any compiler.

    Args:
        name: Of the quantity; derivatives of forward dynamics take the acceleration as x.
        q, v, x: Checked arrays of equal batch shape, as many as the quantity reads.
        external: (..., links, 6) wrenches in joint frames.
    """
    quantity, free = QUANTITIES[name], model.free_base
    arrays = [np.zeros((*q.shape[:-1], model.nv)) if y is None else y for y in (v, x)]
    base = Base(vec(model.gravity))
    if free:
        twist, third = (unpacked(y[..., :6]) for y in arrays)
        base = Base.moving(base.gravity, unpacked(q[..., :7]), twist, third)
    frames = model._frames if quantity.near else model._placed_frames
    joints = [
        JointState(*each)
        for each in zip(
            unpacked(q[..., model.joint_slice_q] * frames.travel),
            *(unpacked(y[..., model.joint_slice_v] * frames.sign) for y in arrays),
            strict=True,
        )
    ]
    wrenches = None
    if external is not None:
        each = (external[..., i, :] for i in range(external.shape[-2]))
        wrenches = [Wrench(vec(F[..., :3]), vec(F[..., 3:])) for F in each]
    bodies = frames.placements()
    found = run(quantity, frames.links(), joints, base, wrenches, bodies)
    shape = quantity.shape(len(joints), free, len(bodies))
    return packed(found, np.empty(q.shape[:-1])).reshape(*q.shape[:-1], *shape)
