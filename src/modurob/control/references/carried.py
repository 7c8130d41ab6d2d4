"""A reference that outlives its body."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from modurob.control.checks import per_joint, survivors
from modurob.control.references.shapes import Function, parts
from modurob.errors import StateError
from modurob.model import Model
from modurob.reference import Reference


class Carried:
    """A reference of one body for another: surviving joints go on, new ones stay where they are."""

    def __init__(self, reference: Function, old: Model, new: Model, hold: ArrayLike) -> None:
        self.reference = reference
        self.hold = per_joint("hold", hold, new, least=-np.inf)
        self._there, self._here = survivors(old, new)
        self._count = len(old.joint_names)

    def __call__(self, t: float) -> Reference:
        q, v, a = parts(self.reference(t))
        if not len(q) == len(v) == len(a) == self._count:
            given = f"{len(q)}, {len(v)} and {len(a)}"
            raise StateError(f"q, v and a have {given} joints, the body before had {self._count}")
        result = Reference(self.hold.copy(), np.zeros(len(self.hold)), np.zeros(len(self.hold)))
        for new, old in zip(result, (q, v, a), strict=True):
            new[self._here] = old[self._there]
        return result
