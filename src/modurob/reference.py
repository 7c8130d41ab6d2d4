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
