"""Strategies of a search over bodies: selection with elitism, and MAP-Elites."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
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
MISSING = "map-elites needs the package ribs, which is not installed: pip install 'modurob[evolve]'"


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


Accept = Callable[[Genotype], bool]


def accept_all(genotype: Genotype) -> bool:
    """True."""
    return True


class Strategy(ABC):
    """A strategy: members, children of them, and the choice who stays.

    Args:
        space: That random genotypes are drawn from.
        population: Children of a generation.

    Attributes:
        name: Of the strategy.
        members: Individuals that stayed, best first.
        measures: Functions of a rollout and its population that the choice depends on.
    """

    name: ClassVar[str]
    measures: Sequence[Measure] = ()

    def __init__(self, space: BodySpace, population: int) -> None:
        self._space, self._population = space, population
        self.members: list[Individual] = []

    def children(self, rng: np.random.Generator, count: int) -> list[Genotype]:
        """Genotypes to evaluate next, none of which equals another or a member."""
        known: dict[Hashable, list[Genotype]] = {}
        for one in self.members:
            known.setdefault(one.genotype.sketch(), []).append(one.genotype)
        found = []
        for _ in range(ROUNDS * count):
            child = self._child(rng)
            alike = known.setdefault(child.sketch(), [])
            if all(child.canonical() != other.canonical() for other in alike):
                alike.append(child)
                found.append(child)
                if len(found) == count:
                    return found
        raise StateError(
            f"{len(found)} of {count} bodies found that differ: give the space more modules or "
            "wider ranges"
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

    def may_stay(self, scores: np.ndarray, measures: np.ndarray) -> np.ndarray:
        """(bodies,) True for bodies that `choose` may take in; others need not be shown to it.

        Args:
            scores: (bodies,) NaN for bodies that are kept out.
            measures: (bodies, m) of the bodies.
        """
        return np.isfinite(scores)

    @abstractmethod
    def choose(
        self, evaluated: Sequence[Individual], accept: Accept = accept_all
    ) -> list[Individual]:
        """Take evaluated individuals in, or not: new `members`.

        Args:
            accept: Tells of a genotype whether it may stay; asked only of those that would, the
                best first.

        Returns:
            Individuals that it did not accept.
        """


class Evolution(Strategy):
    """The best of parents and children are the parents of the next generation.

    They are a fifth of the population; a tenth of them, or two, have the same body at most.
    """

    name = "evolution"

    @property
    def _kept(self) -> int:
        return min(max(LEAST_PARENTS, round(SURVIVING * self._population)), MOST_PARENTS)

    def may_stay(self, scores: np.ndarray, measures: np.ndarray) -> np.ndarray:
        if len(self.members) < self._kept:
            return super().may_stay(scores, measures)
        return scores > self.members[-1].score

    def choose(
        self, evaluated: Sequence[Individual], accept: Accept = accept_all
    ) -> list[Individual]:
        kept = self._kept
        most, counts = max(LEAST_PARENTS, round(SAME_BODY * kept)), Counter()
        chosen, refused = [], []
        known = {id(one) for one in self.members}
        for one in best_first([*self.members, *evaluated]):
            if len(chosen) == kept:
                break
            body = one.genotype.canonical(gait=False)
            if counts[body] == most:
                continue
            if id(one) in known or accept(one.genotype):
                counts[body] += 1
                chosen.append(one)
            else:
                refused.append(one)
        self.members = chosen
        return refused


class MapElites(Strategy):
    """The best body of each cell of an archive over two measures (Mouret and Clune 2015).

    The archive is that of `ribs`; its emitters vary vectors, and children of trees are made here.
    """

    name = "map-elites"
    measures = (
        Measure("joints", joints, 0.5, 12.5, 12),
        Measure("height [m]", height, 0.0, 0.2, 8),
    )

    def may_stay(self, scores: np.ndarray, measures: np.ndarray) -> np.ndarray:
        archive = _archive(self.measures)
        best = np.full(archive.cells, -np.inf)
        if self.members:
            cells = archive.index_of([one.measures for one in self.members])
            best[cells] = [one.score for one in self.members]
        found = super().may_stay(scores, measures)
        if found.any():
            found[found] = scores[found] > best[archive.index_of(measures[found])]
        return found

    def choose(
        self, evaluated: Sequence[Individual], accept: Accept = accept_all
    ) -> list[Individual]:
        archive, accepted, refused = _archive(self.measures), [], []
        best = {int(archive.index_of_single(one.measures)): one.score for one in self.members}
        for one in best_first(evaluated):
            cell = int(archive.index_of_single(one.measures))
            if cell in best and one.score <= best[cell]:
                continue
            if accept(one.genotype):
                best[cell] = one.score
                accepted.append(one)
            else:
                refused.append(one)
        everyone = [*self.members, *accepted]
        if everyone:
            numbers = np.empty(len(everyone), dtype=object)
            numbers[:] = everyone
            archive.add(
                numbers, [one.score for one in everyone], [one.measures for one in everyone]
            )
        self.members = best_first(archive.data("solution").tolist())
        return refused


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
