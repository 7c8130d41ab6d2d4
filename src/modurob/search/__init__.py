"""Search over bodies and gaits: the space of bodies, and genotypes in it."""

from modurob.search.genotype import Genotype
from modurob.search.growth import Gene, Oscillation
from modurob.search.space import BodySpace

__all__ = ["BodySpace", "Gene", "Genotype", "Oscillation"]
