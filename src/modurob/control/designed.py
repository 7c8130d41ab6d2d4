"""Gains of a law: given, or designed for a settling time; and carried to another body."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from modurob.control import gains
from modurob.control.controller import Controller
from modurob.errors import StateError
from modurob.model import Model
from modurob.model.joint_map import JointMap


class DesignedLaw(Controller):
    """Base of laws with gains that are given, or follow from a settling time.

    Gains make accelerations of errors, for a law that cancels inertia and friction; or torques.
    """

    _gains_make_torques: ClassVar[bool] = False
    _design: ClassVar[Callable[..., tuple[float, ...]]] = staticmethod(gains.from_settling_time)

    def _inertias(self, model: Model) -> np.ndarray:
        """(n,) factors from accelerations of the joints to what the gains make of errors."""
        n = len(model.joint_names)
        return gains.joint_inertia(model) if self._gains_make_torques else np.ones(n)

    def _choose_gains(
        self, given: Mapping[str, ArrayLike | None], settling_time: float | None, **shape: float
    ) -> list[Any]:
        """Return gains as given, or (n,) each, designed for the joints' inertia and friction.

        Args:
            given: By name; all of them, or none.
            settling_time: Instead of them. [s]
            shape: Further arguments of the design.
        """
        *first, last = given
        some = [value is not None for value in given.values()]
        if any(some) and (not all(some) or settling_time is not None):
            raise StateError(f"give {', '.join(first)} and {last}, or a settling_time, or nothing")
        self._gain_names, self._designed_for = tuple(given), None
        self._remember(**given)
        if any(some):
            return list(given.values())
        time = gains.SETTLING_TIME if settling_time is None else settling_time
        self._designed_for = {"settling_time": time, **shape}
        design = partial(self._design, time, **shape)
        inertia = self._inertias(self.model)
        friction = self.model.viscous if self._gains_make_torques else np.zeros(len(inertia))
        return list(gains.for_joints(design, inertia, friction))

    def _gain(self, name: str) -> np.ndarray:
        return getattr(self, name)

    def _settings(self, joints: JointMap) -> dict[str, Any]:
        common = super()._settings(joints)
        if self._designed_for is not None:
            return common | self._designed_for
        return common | {
            name: self._carry(name, self._gain(name), joints) for name in self._gain_names
        }

    def _carry(self, name: str, values: np.ndarray, joints: JointMap) -> np.ndarray:
        """Numbers in the unit of the gains' output for a new body."""
        sizes = self._inertias(joints.old), self._inertias(joints.new)
        return joints.carry(values, self._given_for_all.get(name), sizes)
