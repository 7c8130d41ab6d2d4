"""Pole placement: computed torque with gains from two poles for each joint."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import complex_array, real_array
from modurob.control import gains
from modurob.control.computed_torque import ComputedTorque
from modurob.control.laws import register
from modurob.dynamics import cpu_model
from modurob.errors import StateError
from modurob.model import Model
from modurob.model.joint_map import JointMap


@register(
    "pole-placement",
    "computed torque with two poles for each joint",
    poles="1/s",
    settling_time="s",
    damping="",
)
class PolePlacement(ComputedTorque):
    """Two poles for each joint: ``K0 = p1 p2``, ``K1 = -(p1 + p2)`` (thesis 6.36, corrected).

    Args:
        model: The body.
        poles: (2,) for all joints or (n, 2), real or conjugate pairs, in the left half-plane. [1/s]
        settling_time, damping: Instead of poles, for all joints or for each. [s]
        options: See `Controller`.
    """

    name = "pole placement"

    def __init__(
        self,
        model: Model,
        poles: ArrayLike | None = None,
        *,
        settling_time: ArrayLike | None = None,
        damping: ArrayLike = gains.DAMPING,
        **options: Any,
    ) -> None:
        n = len(cpu_model("a controller", model).joint_names)
        if poles is not None and settling_time is not None:
            raise StateError("give poles or a settling_time, not both")
        if poles is not None:
            given = complex_array("poles", poles)
            if given.shape not in ((2,), (n, 2)):
                raise StateError(
                    f"poles are two numbers, or two for each of {n} joints, got shape {given.shape}"
                )
            pair = gains.from_poles(given.tolist())
        else:
            time = gains.SETTLING_TIME if settling_time is None else settling_time
            times = real_array("settling_time", time)
            both = np.broadcast_arrays(times, real_array("damping", damping))
            each = [gains.from_settling_time(*x) for x in zip(*map(np.ravel, both), strict=True)]
            pair = tuple(np.array(each).T.reshape(2, *both[0].shape))
        if pair[0].ndim == 0:  # the same for all joints, also for those still to come
            super().__init__(model, float(pair[0]), float(pair[1]), **options)
        else:
            super().__init__(model, *pair, **options)

    @property
    def poles(self) -> np.ndarray:
        """(n, 2) complex. [1/s]"""
        return _poles(self.k0, self.k1)

    def _settings(self, joints: JointMap) -> dict[str, Any]:
        settings = super()._settings(joints)
        k0, k1 = settings.pop("k0"), settings.pop("k1")
        for_all = self._given_for_all
        if "k0" in for_all and "k1" in for_all:
            k0, k1 = for_all["k0"], for_all["k1"]
        return settings | {"poles": _poles(k0, k1)}


def _poles(k0: ArrayLike, k1: ArrayLike) -> np.ndarray:
    """(..., 2) roots of s^2 + k1 s + k0."""
    half = np.asarray(k1, dtype=float) / 2
    root = np.sqrt((half**2 - np.asarray(k0, dtype=float)).astype(complex))
    return np.stack([-half + root, -half - root], axis=-1)
