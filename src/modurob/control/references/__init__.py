"""References: functions of time that give a `Reference`.

A reference is anything that is called with a time and returns q, v and a, such as a gait.
"""

from modurob.control.references.changed import Carried, Clipped, Excess, Slowed, excesses, slowed
from modurob.control.references.motions import (
    Quintic,
    Recorded,
    SetPoint,
    Spline,
    Steps,
    minimum_jerk,
)

__all__ = [
    "Carried",
    "Clipped",
    "Excess",
    "Quintic",
    "Recorded",
    "SetPoint",
    "Slowed",
    "Spline",
    "Steps",
    "excesses",
    "minimum_jerk",
    "slowed",
]
