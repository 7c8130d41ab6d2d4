"""`JointWaves`: sines for the joints of every body of a population."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import as_floats
from modurob.errors import StateError


@dataclass(frozen=True, eq=False, init=False)
class JointWaves:
    """References ``q_j(t) = offset_j + amplitude_j sin(2 pi frequency t + phase_j)`` of joints.

    The order of a body's joints is that of its model's `joint_names`; numbers behind its last joint
    have no effect.

    Attributes:
        amplitude, phase, offset: (bodies, most joints). [rad or m, rad, rad or m]
        frequency: (bodies,) [Hz]
    """

    amplitude: np.ndarray
    phase: np.ndarray
    offset: np.ndarray
    frequency: np.ndarray

    def __init__(
        self,
        amplitude: ArrayLike,
        phase: ArrayLike = 0.0,
        offset: ArrayLike = 0.0,
        frequency: ArrayLike = 1.0,
    ) -> None:
        """Check the numbers.

        Args:
            amplitude: (bodies, most joints), padded with 0. [rad or m]
            phase, offset: Likewise, or what broadcasts to it. [rad; rad or m]
            frequency: One number, or (bodies,). [Hz]
        """
        amplitude = np.array(_finite("amplitude", amplitude))  # a copy: it becomes read-only
        if amplitude.ndim != 2:
            raise StateError(f"amplitude is (bodies, most joints), got shape {amplitude.shape}")
        parts = {"amplitude": amplitude}
        for name, value in (("phase", phase), ("offset", offset)):
            parts[name] = _as_shape(name, _finite(name, value), amplitude.shape)
        frequency = _as_shape("frequency", _finite("frequency", frequency), amplitude.shape[:1])
        if (frequency < 0).any():
            k = int(np.flatnonzero(frequency < 0)[0])
            raise StateError(f"frequencies are 0 Hz or more, got {frequency[k]:g} Hz for body {k}")
        for name, value in (*parts.items(), ("frequency", frequency)):
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.amplitude)


def _finite(name: str, value: ArrayLike) -> np.ndarray:
    """An array of numbers, or an error that names the first body with another."""
    array = as_floats(value)
    wrong = np.argwhere(~np.isfinite(array)).tolist()
    if not wrong:
        return array
    if array.ndim == 0:
        raise StateError(f"{name} must hold finite numbers, got {value!r:.60}")
    body, *joint = wrong[0]
    where = f"body {body}" + (f", joint {joint[0]}" if joint else "")
    raise StateError(
        f"{name} of {where} is {array[tuple(wrong[0])]}: give finite numbers ({len(wrong)} are not)"
    )


def _as_shape(name: str, value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    try:
        return np.array(np.broadcast_to(value, shape))
    except ValueError:
        raise StateError(
            f"{name} has shape {value.shape}, expected one number or {shape} as amplitude has"
        ) from None
