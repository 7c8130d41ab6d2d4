"""Search over bodies and gaits: genotypes, tasks, strategies, and galleries of the best."""

from modurob.search.evaluation import Evaluation, evaluate
from modurob.search.evolution import EvolutionRecord, SearchResult, evolve
from modurob.search.gallery import Winner, write_gallery
from modurob.search.genotype import Genotype, joint_waves
from modurob.search.space import BodySpace, Gene, Oscillation
from modurob.search.strategies import Individual, Measure
from modurob.search.tasks import TASKS, SearchTask

__all__ = [
    "TASKS",
    "BodySpace",
    "Evaluation",
    "EvolutionRecord",
    "Gene",
    "Genotype",
    "Individual",
    "Measure",
    "Oscillation",
    "SearchResult",
    "SearchTask",
    "Winner",
    "evaluate",
    "evolve",
    "joint_waves",
    "write_gallery",
]
