"""Options that a model is built with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from modurob.checks import gravity_vector, is_number
from modurob.errors import StateError, choices

if TYPE_CHECKING:
    from modurob.model.model import Model
    from modurob.organism import Organism

VIRTUAL_JOINTS = ("px", "py", "pz", "rx", "ry", "rz")


@dataclass(frozen=True, init=False)
class ModelOptions:
    """Arguments of `Organism.model`, checked.

    Attributes:
        hinges: ``dyad`` or ``physical``.
        base: ``fixed``, ``free`` or virtual joints.
        gravity: In the world frame. [m/s^2]
        locked: (name, position) of joints that are held. [rad, m]
        elastic: Whether springs of elastic joints are joints of the model.
    """

    hinges: str
    base: str | tuple[str, ...]
    gravity: tuple[float, float, float]
    locked: tuple[tuple[str, float], ...]
    elastic: bool

    def __init__(
        self,
        hinges: str = "dyad",
        base: str | Sequence[str] = "fixed",
        gravity: ArrayLike = (0.0, 0.0, -9.81),
        locked: Mapping[str, float] | None = None,
        elastic: bool = True,
    ) -> None:
        if hinges not in ("dyad", "physical"):
            raise StateError(f"hinges must be 'dyad' or 'physical', got {hinges!r}")
        object.__setattr__(self, "hinges", hinges)
        object.__setattr__(self, "base", _checked_base(base))
        object.__setattr__(self, "gravity", tuple(gravity_vector(gravity).tolist()))
        object.__setattr__(self, "locked", _checked_locks(locked))
        object.__setattr__(self, "elastic", bool(elastic))

    def build(self, organism: Organism, free: bool = False) -> Model:
        """Build the model of an organism with these options, or with a free base instead.

        Locks of modules that are not in this organism are left out.
        """
        there = {*organism.modules, "" if free else "world"}
        locked = {name: at for name, at in self.locked if name.partition(".")[0] in there}
        base = "free" if free else self.base
        return organism.model(self.hinges, base, self.gravity, locked, self.elastic)


def _checked_locks(locked: Mapping[str, float] | None) -> tuple[tuple[str, float], ...]:
    if not isinstance(locked or {}, Mapping) or not all(map(is_number, (locked or {}).values())):
        raise StateError(
            "locked takes joints with positions such as {'m1.roll': 0.5} [rad, m], "
            f"got {locked!r:.80}"
        )
    return tuple((name, float(position)) for name, position in (locked or {}).items())


def _checked_base(base: str | Sequence[str]) -> str | tuple[str, ...]:
    if isinstance(base, str) or not isinstance(base, Sequence):
        if base not in ("fixed", "free"):
            raise StateError(
                f"base must be 'fixed', 'free' or a list of {choices(VIRTUAL_JOINTS)}, got {base!r}"
            )
        return base
    for index, name in enumerate(base):
        if name not in VIRTUAL_JOINTS or name in base[:index]:
            raise StateError(
                f"virtual joint {name!r} is unknown or repeated: use each of "
                f"{choices(VIRTUAL_JOINTS)} at most once, or a base that is fixed or free"
            )
    return tuple(base)
