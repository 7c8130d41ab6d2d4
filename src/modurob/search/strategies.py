"""Strategies of a search over bodies: selection with elitism, and MAP-Elites."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from modurob.errors import StateError, UnknownNameError, choices
from modurob.population import Population, Rollout
from modurob.search.genotype import Genotype
from modurob.search.space import BodySpace
from modurob.search.tasks import Objective

CROSSED = 0.3  # share of children with two parents
FRESH = 0.05  # share of children that are random: new bodies throughout the search
SURVIVING = 0.2  # of a population: parents of the next generation
SAME_BODY = 0.1  # of the parents, at most
LEAST_PARENTS, MOST_PARENTS = 2, 1000
ROUNDS = 200  # of trying to complete a generation
MISSING = "map-elites needs the package ribs, which is not here: pip install 'modurob[evolve]'"


class Individual(NamedTuple):
    """A genotype with its score.

    Attributes:
        genotype: Body and gait.
        score: By the objective of the task.
        generation: In which it was evaluated, from 0.
        measures: (m,) by the functions of the strategy.
    """

    genotype: Genotype
    score: float
    generation: int
    measures: tuple[float, ...] = ()


class Measure(NamedTuple):
    """A measure of bodies, one axis of an archive.

    Attributes:
        name: For reports.
        function: Of a rollout and its population: (bodies,) numbers.
        low, high: Range of the archive; bodies outside count as at its border.
        cells: Number of cells in the range.
    """

    name: str
    function: Objective
    low: float
    high: float
    cells: int


def joints(rollout: Rollout, population: Population) -> np.ndarray:
    """(bodies,) joints that can move."""
    return population.joints


def height(rollout: Rollout, population: Population) -> np.ndarray:
    """(bodies,) height of the center of mass at the end. [m]"""
    return rollout.center[:, 2]


Accept = Callable[[Sequence[Genotype]], Sequence[bool]]


def _all(genotypes: Sequence[Genotype]) -> Sequence[bool]:
    return [True] * len(genotypes)


class Strategy(ABC):
    """A strategy: members, children of them, and the choice who stays.

    Args:
        space: That random genotypes are drawn from.
        population: Children of a generation.
        accept: Tells of genotypes which ones are evaluated; by default all.

    Attributes:
        name: Of the strategy.
        members: Individuals that stayed, best first.
        measures: Functions of a rollout and its population that the choice depends on.
    """

    name: ClassVar[str]
    measures: Sequence[Measure] = ()

    def __init__(self, space: BodySpace, population: int, accept: Accept = _all) -> None:
        self._space, self._population, self._accept = space, population, accept
        self.members: list[Individual] = []

    def children(self, rng: np.random.Generator) -> list[Genotype]:
        """Genotypes to evaluate next: accepted ones, none of which equals another or a member."""
        keys = {member.genotype.canonical() for member in self.members}
        found: list[Genotype] = []
        for _ in range(ROUNDS):
            tried = [self._child(rng) for _ in range(self._population - len(found))]
            for child, accepted in zip(tried, self._accept(tried), strict=True):
                key = child.canonical()
                if accepted and key not in keys:
                    keys.add(key)
                    found.append(child)
            if len(found) == self._population:
                return found
        raise StateError(
            f"{len(found)} of {self._population} bodies found whose modules do not meet: give the "
            "space fewer modules or smaller amplitudes"
        )

    def _child(self, rng: np.random.Generator) -> Genotype:
        if not self.members or rng.random() < FRESH:
            return Genotype.random(self._space, rng)
        child = self._parent(rng)
        if rng.random() < CROSSED:
            child = child.crossed(self._parent(rng), rng)
        return child.mutated(rng)

    def _parent(self, rng: np.random.Generator) -> Genotype:
        return self.members[int(rng.integers(len(self.members)))].genotype

    @abstractmethod
    def choose(self, evaluated: Sequence[Individual]) -> None:
        """Take evaluated individuals in, or not: new `members`."""


class Evolution(Strategy):
    """The best of parents and children are the parents of the next generation.

    They are a fifth of the population; a tenth of them, or two, have the same body at most.
    """

    name = "evolution"

    def choose(self, evaluated: Sequence[Individual]) -> None:
        kept = min(max(LEAST_PARENTS, round(SURVIVING * self._population)), MOST_PARENTS)
        most, counts, chosen = max(LEAST_PARENTS, round(SAME_BODY * kept)), Counter(), []
        for one in best_first([*self.members, *evaluated]):
            body = one.genotype.canonical(gait=False)
            if len(chosen) < kept and counts[body] < most:
                counts[body] += 1
                chosen.append(one)
        self.members = chosen


class MapElites(Strategy):
    """The best body of each cell of an archive over two measures (Mouret and Clune 2015).

    The archive is that of `ribs`; its emitters vary vectors, and children of trees are made here.
    """

    name = "map-elites"
    measures = (
        Measure("joints", joints, 0.5, 12.5, 12),
        Measure("height [m]", height, 0.0, 0.2, 8),
    )

    def __init__(self, space: BodySpace, population: int, accept: Accept = _all) -> None:
        super().__init__(space, population, accept)
        self._archive = _archive(self.measures)

    def choose(self, evaluated: Sequence[Individual]) -> None:
        everyone = [*self.members, *evaluated]
        self._archive.clear()
        if everyone:
            numbers = np.empty(len(everyone), dtype=object)
            numbers[:] = everyone
            self._archive.add(
                numbers, [one.score for one in everyone], [one.measures for one in everyone]
            )
        self.members = best_first(self._archive.data("solution").tolist())


def _archive(measures: Sequence[Measure]) -> Any:
    try:
        from ribs.archives import GridArchive
    except ImportError:
        raise StateError(MISSING) from None
    return GridArchive(
        solution_dim=(), solution_dtype=object, dims=[m.cells for m in measures],
        ranges=[(m.low, m.high) for m in measures],
    )  # fmt: skip


def best_first(individuals: Sequence[Individual]) -> list[Individual]:
    """Individuals by falling score; of equal ones the older first."""
    return sorted(individuals, key=lambda one: -one.score)


STRATEGIES: dict[str, type[Strategy]] = {kind.name: kind for kind in (Evolution, MapElites)}


def strategy_class(name: object) -> type[Strategy]:
    """Return the strategy with this name, or raise an error that lists the names."""
    if isinstance(name, str) and name in STRATEGIES:
        return STRATEGIES[name]
    raise UnknownNameError(f"no strategy {name!r}: strategies are {choices(STRATEGIES)}")
