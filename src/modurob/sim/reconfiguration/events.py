"""Events that change the body during a run, and reports of their effects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from modurob.checks import as_floats, is_number
from modurob.errors import StateError
from modurob.modules import ModuleType
from modurob.organism import Organism

LATCH_REACH = (5e-3, 0.1)  # [m, rad] distance and angle that a latch still closes
ROUNDING = 1e-9  # of a printed number: what is smaller than this part of the largest is zero


@dataclass(frozen=True)
class Event:
    """Change of the body at a time.

    Attributes:
        time: Within the run. [s]
    """

    time: float

    def __post_init__(self) -> None:
        if not is_number(self.time):
            raise StateError(f"an event happens at a time in seconds, got {self.time!r}")


@dataclass(frozen=True)
class Undock(Event):
    """A module lets go of its neighbor towards the base; both parts go on.

    What is let go has a free base from then on.

    Attributes:
        module: The first module of the part that is let go.
    """

    module: str

    def __str__(self) -> str:
        return f"undock {self.module}"


@dataclass(frozen=True)
class Dock(Event):
    """Two ports meet and hold: a fully inelastic impact.

    `child` is a module of another part of the run, whose port must be within `reach` by then; or it
    is new, of the given kind or part of the given organism, and appears where it docks.

    Attributes:
        parent, port: Where it docks.
        child, child_port: What docks, and with which port.
        kind: Of a new module; the parent's kind by default.
        organism: A new organism that holds `child`.
        turn: About the port's normal. [deg]
        q, v: Joints of a new organism when it docks, in the order of its model; zero by default.
            [rad, m, rad/s, m/s]
        approach: (6,) twist of what is new relative to where it docks, in the frame of its own
            port (z outward): (0, 0, 0.2, 0, 0, 0) comes straight in. [m/s, rad/s]
        reach: Gap that the latch still closes: distance and angle. [m, rad]
    """

    parent: str
    port: int | str
    child: str
    child_port: int | str
    kind: str | ModuleType | None = None
    organism: Organism | None = None
    turn: int = 0
    q: ArrayLike | None = None
    v: ArrayLike | None = None
    approach: ArrayLike = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    reach: tuple[float, float] = LATCH_REACH

    def __post_init__(self) -> None:
        super().__post_init__()
        twist = as_floats(self.approach)
        if twist.shape != (6,) or not np.isfinite(twist).all():
            raise StateError(f"approach is a twist of six finite numbers, got {self.approach!r}")
        pair = np.shape(self.reach) == (2,) and all(is_number(x) and x > 0 for x in self.reach)
        if not pair:
            raise StateError(f"reach is a distance and an angle, both positive, got {self.reach!r}")
        if self.kind is not None and self.organism is not None:
            raise StateError("a new module has a kind, or is part of a new organism; not both")

    def __str__(self) -> str:
        return f"dock {self.child} (port {self.child_port}) to {self.parent} (port {self.port})"


@dataclass(frozen=True, eq=False)
class EventReport:
    """Effect of an event on momentum and energy.

    Attributes:
        time: [s]
        what: The event in words.
        momentum_before, momentum_after: (6,) of all that took part; linear, and angular about the
            world's origin. On a fixed base the ground takes the difference. [N s, N m s]
        energy_before, energy_after: Kinetic plus potential. [J]
        energy_lost: In the impact, never negative. [J]
        latch_work: Of closing the gap: energy_after = energy_before + latch_work - energy_lost. [J]
        gap: Distance and angle that the latch closed. [m, rad]
        grounded: Whether the ground could push: its impulse is what momentum lacks.
    """

    time: float
    what: str
    momentum_before: np.ndarray
    momentum_after: np.ndarray
    energy_before: float
    energy_after: float
    energy_lost: float = 0.0
    latch_work: float = 0.0
    gap: tuple[float, float] = (0.0, 0.0)
    grounded: bool = False

    def __str__(self) -> str:
        change = self.momentum_after - self.momentum_before
        p, L = np.linalg.norm(change[:3]), np.linalg.norm(change[3:])
        before, after = (_short(m) for m in (self.momentum_before, self.momentum_after))
        ground = " (taken by the ground)" if self.grounded else ""
        latch = f", latch work {self.latch_work:.3g} J" if max(self.gap) > ROUNDING else ""
        return (
            f"{self.time:.4f} s  {self.what}: momentum {before} -> {after}, changed by "
            f"{p:.1e} N s and {L:.1e} N m s{ground}; energy lost {self.energy_lost:.6g} J{latch}"
        )


def _short(numbers: np.ndarray) -> str:
    """A vector for reading, without rounding errors."""
    kept = np.where(np.abs(numbers) < ROUNDING * np.abs(numbers).max(), 0.0, numbers) + 0.0
    return f"({', '.join(f'{x:.4g}' for x in kept)})"
