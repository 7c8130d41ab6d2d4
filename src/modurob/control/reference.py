"""What a controller follows at one instant."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Reference(NamedTuple):
    """Where the joints shall be, how fast, and with which acceleration.

    Controllers take anything with these three attributes, and look at the joints only.

    Attributes:
        q: (n,) of the joints, or (nq,) of the model. [rad, m]
        v: (n,) or (nv,) [rad/s, m/s]
        a: (n,) or (nv,) [rad/s^2, m/s^2]
    """

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
