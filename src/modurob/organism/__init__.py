"""Organisms: modules docked into a tree, their matrices, builders, examples and files."""

from modurob.organism import examples
from modurob.organism.docking import Docking
from modurob.organism.matrices import Aim
from modurob.organism.organism import Organism

__all__ = ["Aim", "Docking", "Organism", "examples"]
