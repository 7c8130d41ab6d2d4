"""Reference motion of the joints at one instant, from gaits and paths to controllers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Reference(NamedTuple):
    """Desired displacement, velocity and acceleration of the joints.

    Controllers take anything with these three attributes, and read the joints only.

    Attributes:
        q: (..., n) of the joints, or (..., nq) of the model. [rad, m]
        v: (..., n) or (..., nv), the rate of q. [rad/s, m/s]
        a: (..., n) or (..., nv), the rate of v. [rad/s^2, m/s^2]
    """

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray

    def jump(self, before: Reference, dt: float) -> np.ndarray:
        """(..., n) way since a reference dt earlier that velocity and acceleration do not explain.

        NaN where the earlier one is: there is none yet.
        """
        smooth = dt / 2 * (self.v + before.v) - dt * dt / 12 * (self.a - before.a)
        return self.q - before.q - smooth

    def spread(self, shape: tuple[int, ...]) -> Reference:
        """The same for each state of a batch (..., n)."""
        return Reference(*(np.broadcast_to(x, shape) for x in self))


def no_reference(shape: tuple[int, ...]) -> Reference:
    """NaN: a reference before the first one."""
    return Reference(*np.full((3, *shape), np.nan))
