"""What the tests compare with, and what they run over; shared by all of them."""

from typing import TYPE_CHECKING, Any

from oracles.complaints import complains, unchanged
from oracles.foreign_robots import ARM
from oracles.organisms import GROUPS, WRIST, group, organisms, random_organism

if TYPE_CHECKING:
    from oracles.pinocchio_tree import PinocchioTree

__all__ = [
    "ARM",
    "GROUPS",
    "WRIST",
    "PinocchioTree",
    "complains",
    "group",
    "organisms",
    "random_organism",
    "unchanged",
]


def __getattr__(name: str) -> Any:
    """Load Pinocchio for the tests that ask for it; the others run without it."""
    if name == "PinocchioTree":
        from oracles.pinocchio_tree import PinocchioTree

        return PinocchioTree
    raise AttributeError(f"module 'oracles' has no attribute {name!r}")
