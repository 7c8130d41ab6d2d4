"""`JointWaves`: sines for the joints of every body of a population."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import real_array
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
        amplitude = _finite("amplitude", amplitude)
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
    array = real_array(name, np.nan_to_num(value) if _is_float(value) else value)
    if not _is_float(value):
        return array
    array = np.array(value, dtype=float)
    wrong = np.argwhere(~np.isfinite(array))
    if len(wrong):
        where = wrong[0].tolist()
        of = f" of body {where[0]}" + (f", joint {where[1]}" if len(where) > 1 else "")
        raise StateError(
            f"{name}{of if where else ''} is {array[tuple(where)]}: give finite numbers "
            f"({len(wrong)} are not)"
        )
    return array


def _is_float(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _as_shape(name: str, value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    try:
        return np.array(np.broadcast_to(value, shape))
    except ValueError:
        raise StateError(
            f"{name} has shape {value.shape}, expected one number or {shape} as amplitude has"
        ) from None
