"""What `simulate` is given, checked once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.dynamics import CudaDynamics, common_batch
from modurob.errors import StateError
from modurob.model import Model


def generator(rng: Any, why: str) -> np.random.Generator:
    """A generator of random numbers, or a `StateError` that says what it is needed for."""
    if isinstance(rng, np.random.Generator):
        return rng
    given = "none" if rng is None else type(rng).__name__
    raise StateError(f"{why} needs rng=numpy.random.default_rng(...), got {given}")


def initial_state(
    model: Model, q0: ArrayLike | None, v0: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray]:
    """q (..., nq) and v (..., nv) of one batch shape, as contiguous arrays of our own."""
    if not isinstance(model, Model):
        raise StateError(
            f"simulate takes a model such as organism.model(), got {type(model).__name__}"
        )
    if isinstance(model.dynamics, CudaDynamics):
        raise StateError("simulations run on the CPU; pass the model that was compiled for 'cuda'")
    q = model.check_configuration(model.neutral() if q0 is None else q0)
    v = model.check_velocity(np.zeros(model.nv) if v0 is None else v0, "v0")
    batch = common_batch([q.shape[:-1], v.shape[:-1]], "q0 and v0")
    q, v = (np.array(np.broadcast_to(x, (*batch, x.shape[-1]))) for x in (q, v))
    return q, v
