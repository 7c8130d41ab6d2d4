"""What the tests compare with, and what they run over; shared by all of them."""

from oracles.complaints import complains, unchanged
from oracles.foreign_robots import ARM
from oracles.organisms import GROUPS, WRIST, group, organisms, random_organism
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
