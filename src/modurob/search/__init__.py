"""Search over bodies and gaits: the space of bodies, and genotypes in it."""

from modurob.search.genotype import Genotype, joint_waves
from modurob.search.space import BodySpace, Gene, Oscillation

__all__ = ["BodySpace", "Gene", "Genotype", "Oscillation", "joint_waves"]
