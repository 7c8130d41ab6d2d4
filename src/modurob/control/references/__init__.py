"""References: functions of time that give a `Reference`.

A reference is anything that can be called with a time and answers with q, v and a; gaits are, too.
"""

from modurob.control.references.carried import Carried
from modurob.control.references.curves import Recorded, Spline
from modurob.control.references.limits import Clipped, Excess, Slowed, excesses, slowed
from modurob.control.references.points import Quintic, SetPoint, Steps, minimum_jerk

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
