"""The robot that the coordinator has found: its body, model and controller."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from modurob.control import Certificate, Controller
from modurob.distributed.bus.assembly import BusAssembly
from modurob.distributed.bus.messages import Address
from modurob.distributed.bus.survey import BusEntry
from modurob.model import Model
from modurob.modules import ModuleType

LARGEST_READING = 1e6  # [rad, m, rad/s, m/s] 160,000 turns; the equations are far from overflow


@dataclass(frozen=True)
class BusRobot:
    """The robot on the bus as it is now."""

    assembly: BusAssembly = field(default_factory=BusAssembly)  # organism, names, faults
    model: Model | None = None  # None without an organism
    controller: Controller | None = None  # None without joints
    certificate: Certificate | None = None  # of the controller for a constant set point
    released: frozenset[Address] = frozenset()  # modules whose last readings cannot be used

    def bad_readings(self, table: Mapping[Address, BusEntry]) -> dict[Address, str]:
        """Return one line for each module whose last reading cannot be used."""
        if self.model is None:
            return {}
        faults = {}
        for module, joints in self.joints().items():
            entry = table[module]
            why = _complaint(entry.values, 2 * len(joints)) if entry.has_reading else ""
            if why:
                faults[module] = (
                    f"reading of '{self.assembly.names[module]}': {list(entry.values)!r:.80} "
                    f"{why}; its motors are let go until a good one comes"
                )
        return faults

    def state(self, table: Mapping[Address, BusEntry]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, v (n,) of all joints as measured last, and (n,) whether they were; else they are 0.

        Joints of modules that do not answer count as at rest.
        """
        assert self.model is not None
        q, v = self.model.neutral(), np.zeros(self.model.nv)
        known = np.zeros(self.model.nv, dtype=bool)
        for module, joints in self._joints.items():
            values = table[module].values if module in table else ()
            for j, x, y in zip(joints, values[::2], values[1::2], strict=False):
                if j is not None:
                    q[j], v[j] = x, y if module in self.assembly.names else 0.0
                    known[j] = True
        return q, v, known

    def joints(self) -> dict[Address, list[int | None]]:
        """Indices in q of the joints of each module that answers; None for one that is locked."""
        return {m: joints for m, joints in self._joints.items() if m in self.assembly.names}

    @cached_property
    def _joints(self) -> dict[Address, list[int | None]]:
        """Indices in q of each module's own joints; None for one that is locked."""
        if self.model is None or self.assembly.organism is None:
            return {}
        place = {name: j for j, name in enumerate(self.model.joint_names)}
        return {
            module: [
                place.get(f"{name}.{joint}")
                for joint in moving_joints(self.assembly.organism.kind(name))
            ]
            for module, name in (*self.assembly.names.items(), *self.assembly.silent.items())
        }


def _complaint(values: tuple[float, ...], expected: int) -> str:
    """Return the reason why a reading cannot be used; nothing if it can."""
    if len(values) != expected:
        return f"has {len(values)} numbers, expected {expected}: q and v of each joint"
    if not all(map(math.isfinite, values)):
        return "is not finite"
    if any(abs(value) > LARGEST_READING for value in values):
        return f"is beyond {LARGEST_READING:g} rad, m, rad/s or m/s"
    return ""


def moving_joints(kind: ModuleType) -> tuple[str, ...]:
    """Names of a module's joints that move, in the order of its measurements and torques."""
    return tuple(joint.name for joint in kind.joints if joint.kind != "fixed")
