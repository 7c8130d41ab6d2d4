"""Faults of a run: links that lose messages, modules that stop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from modurob.checks import generator, is_number, not_negative
from modurob.distributed.mass.agent import GIVE_UP
from modurob.distributed.mass.lockstep import LockStep
from modurob.errors import StateError, UnknownNameError, choices

KINDS = ("freeze", "die", "reboot")


@dataclass(frozen=True)
class Fault:
    """Fault of a module at a time.

    Attributes:
        time: When. [s]
        module: Which.
        kind: ``freeze``: its program stops, its drives go on with their last torques; ``die``: its
            drives let go too; ``reboot``: it starts anew, with empty memory, whatever was before.
    """

    time: float
    module: str
    kind: str

    def __post_init__(self) -> None:
        not_negative("the time of a fault", self.time, "seconds")
        if self.kind not in KINDS:
            raise UnknownNameError(f"no fault {self.kind!r}: faults are {choices(KINDS)}")


def checked_faults(faults: Sequence[Fault], modules: Sequence[str]) -> list[Fault]:
    """Faults of these modules, in the order of their times."""
    if not isinstance(faults, Sequence):
        raise StateError(f"faults is a list of Fault(time, module, kind), got {faults!r}")
    for fault in faults:
        if not isinstance(fault, Fault):
            raise StateError(f"faults are Fault(time, module, kind), got {fault!r}")
        if fault.module not in modules:
            raise UnknownNameError(f"no module {fault.module!r}: modules are {choices(modules)}")
    return sorted(faults, key=lambda fault: fault.time)


class FaultyLinks:
    """The links of a network in lock step, with faults.

    Args:
        loss: Chance that a message does not arrive.
        faults: In any order.
        period: Of a round. [s]
    """

    def __init__(
        self,
        network: LockStep,
        loss: float,
        faults: Sequence[Fault],
        period: float,
        rng: np.random.Generator | None,
    ) -> None:
        if not (is_number(loss) and 0 <= loss < 1):
            raise StateError(f"loss must be a probability from 0 to below 1, got {loss!r}")
        w = network.wiring
        self._network = network
        self._rng = generator(rng, "a loss of messages") if loss else None
        self._loss = loss
        self._waiting = checked_faults(faults, w.modules)
        self.asleep, self.dead = np.zeros((2, len(w.modules)), dtype=bool)
        self._heard_at = np.zeros(w.slots)  # [s] when a slot's neighbor was last heard
        self._period = period
        self.rounds = self.lost = 0

    def round(self, now: float, *, think: bool) -> None:
        """Exchange the messages of a round."""
        w = self._network.wiring
        while self._waiting and self._waiting[0].time <= now:
            self._apply(self._waiting.pop(0))
        self.rounds += 1
        end = self.rounds * self._period
        if self._rng is None and not self.asleep.any():
            self._heard_at[:] = end
            self._network.round(think=think)
            return
        arrives = np.ones(w.slots, dtype=bool)
        if self._rng is not None:
            arrives = self._rng.random(w.slots) >= self._loss
        awake = ~self.asleep
        spoken = awake[w.owner[w.other]]
        self.lost += int((~arrives & spoken).sum())
        arrives &= awake[w.owner] & spoken
        self._heard_at[arrives] = end
        gone = (end >= self._heard_at + GIVE_UP) & awake[w.owner]
        if gone.any():
            self._network.forget(gone)
        self._network.round(arrives, silent=self.asleep, think=think)

    def _apply(self, fault: Fault) -> None:
        w = self._network.wiring
        module = w.modules.index(fault.module)
        self.asleep[module] = fault.kind != "reboot"
        self.dead[module] = fault.kind == "die"
        if fault.kind == "reboot":
            self._network.forget(w.owner == module)
