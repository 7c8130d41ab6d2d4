"""`evolve`: a search over bodies and gaits, with checkpoints from which it goes on exactly."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import Field, FiniteFloat

from modurob.checks import whole
from modurob.errors import FileError, StateError
from modurob.executors import Executor
from modurob.modules.files import checked_target, read_document, write_document
from modurob.scenario.settings import FrozenRecord
from modurob.search.clearance import clear
from modurob.search.evaluation import MEETS, checked_chunks, evaluate_chunk
from modurob.search.genotype import FORMAT as GENOTYPE
from modurob.search.genotype import VERSION as GENOTYPE_VERSION
from modurob.search.genotype import Genotype
from modurob.search.space import BodySpace
from modurob.search.strategies import Individual, Strategy, accept_all, strategy_class
from modurob.search.tasks import SearchTask, task_of

OWN_FIELDS = ("frequency", "genes")  # of a genotype: all others are those of its space
FORMAT, VERSION = "modurob-evolution", 1
# slow waves: an optimizer makes leaps of fast ones, which go as the contact law has it
DEFAULT_SPACE = BodySpace(frequency=(0.3, 0.6))
MOST_NAMED = 20  # bodies that were kept out and are named; all are counted
# bodies that one process makes and evaluates: fixed, so that results do not depend on processes
BLOCKS = {"cpu": 64, "cuda": 2**13}


class MemberRecord(FrozenRecord):
    """An individual in a file; its genotype is that of `Genotype.document` without the space."""

    genotype: dict[str, Any]
    score: FiniteFloat
    generation: int
    measures: tuple[FiniteFloat, ...] = ()


class GenerationRecord(FrozenRecord):
    """A generation in numbers.

    Attributes:
        evaluated: Bodies.
        kept_out: Of them, those without a valid score.
        best, median: Scores of this generation alone; None if none is valid. Whether modules meet
            in a gait is checked of bodies that would stay; the median counts all others, too.
        leader: Best score so far; None if none is valid.
    """

    evaluated: int
    kept_out: int
    best: FiniteFloat | None
    median: FiniteFloat | None
    leader: FiniteFloat | None


class KeptOutRecord(FrozenRecord):
    """A body that was kept out of the search, and the reason."""

    generation: int
    number: int
    reason: str
    genotype: dict[str, Any]


class EvolutionRecord(FrozenRecord):
    """A search in a file: checkpoint after each generation, and result at the end.

    Attributes:
        settings: Task, strategy, space, population and seed.
        history: One entry for each generation.
        kept_out: Numbers of bodies by the reason for keeping them out.
        named: The first of them.
        members: Individuals of the strategy, best first.
    """

    format: Literal["modurob-evolution"] = FORMAT
    version: Literal[1] = VERSION
    settings: dict[str, Any]
    history: tuple[GenerationRecord, ...] = ()
    kept_out: dict[str, int] = Field(default_factory=dict)
    named: tuple[KeptOutRecord, ...] = ()
    members: tuple[MemberRecord, ...] = ()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a JSON file, atomically."""
        write_document(path, self.model_dump(mode="json"))

    def individuals(self) -> list[Individual]:
        """The members as values."""
        head = {"format": GENOTYPE, "version": GENOTYPE_VERSION, "space": self.settings["space"]}
        return [
            Individual(
                Genotype.from_document({**head, **one.genotype}),
                one.score, one.generation, one.measures,
            )
            for one in self.members
        ]  # fmt: skip

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> EvolutionRecord:
        """Read a search that `save` wrote."""
        try:
            return cls(**read_document(path, FORMAT, VERSION))
        except StateError as error:
            raise FileError(f"{path}: {error}") from None


class SearchResult(NamedTuple):
    """Result of `evolve`, also after each generation.

    Attributes:
        task: Of the search.
        best: Individuals of the strategy, best first.
        history: One entry for each generation.
        kept_out: Numbers of bodies by the reason for keeping them out.
        generations: That were asked for.
        record: All of it, as files hold it.
    """

    task: SearchTask
    best: Sequence[Individual]
    history: Sequence[GenerationRecord]
    kept_out: dict[str, int]
    generations: int
    record: EvolutionRecord

    @property
    def evaluations(self) -> int:
        """Bodies that were evaluated."""
        return sum(entry.evaluated for entry in self.history)


def evolve(
    task: str | SearchTask = "walk",
    population: int = 200,
    generations: int = 50,
    seed: int = 0,
    *,
    strategy: str = "evolution",
    space: BodySpace | None = None,
    target: str = "cpu",
    executor: Executor | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Callable[[SearchResult], Any] | None = None,
) -> SearchResult:
    """Search for bodies and gaits that do a task well.

    The first generation is random; children of later ones are crossed and mutated members of the
    strategy. Results depend on the arguments up to `target` alone.

    Args:
        task: By name, or a `SearchTask` of your own.
        population: Bodies of a generation.
        generations: That are evaluated, the random one included.
        seed: Of the search.
        strategy: ``evolution`` or ``map-elites`` (needs the extra ``evolve``).
        space: Modules that bodies consist of, and ranges of gaits.
        target: ``cpu``, or ``cuda`` in single precision.
        executor: For processes or a cluster; see `evaluate`.
        checkpoint: File that is written after each generation. One that is there is continued; the
            result is the same as without an interruption.
        progress: Called after each generation with the result up to it.

    Raises:
        FileError: The checkpoint is of other settings, or of no search.
        StateError: No body of the search got a valid score.
    """
    chosen = task_of(task)
    whole("population", population, 2)
    whole("generations", generations, 1)
    whole("seed", seed, 0)
    if not (progress is None or callable(progress)):
        raise StateError(f"progress is a function, or None, got {progress!r}")
    space = DEFAULT_SPACE if space is None else space
    search = strategy_class(strategy)(space, population)
    checked_chunks(target)
    record = EvolutionRecord(settings=_settings(chosen, search, space, population, seed, target))
    if checkpoint is not None and os.path.exists(checked_target(checkpoint)):
        record = _continued(record, checkpoint)
    search.members = record.individuals()
    for generation in range(len(record.history), generations):
        starts = range(0, population, BLOCKS[target])
        blocks = [(k, min(BLOCKS[target], population - k)) for k in starts]
        function = partial(
            _brood, search=search, task=chosen, target=target, seed=seed, generation=generation
        )
        broods = [*(map if executor is None else executor.map)(function, blocks)]
        search.choose([one for brood in broods for one in brood.best])
        record = _extended(record, search, broods)
        if checkpoint is not None:
            record.save(checkpoint)
        if progress is not None:
            progress(_result(chosen, search, record, generations))
    if not search.members:
        reasons = ", ".join(f"{reason} ({count})" for reason, count in record.kept_out.items())
        raise StateError(f"no body has a valid score: {reasons}")
    return _result(chosen, search, record, generations)


class Brood(NamedTuple):
    """Bodies of one block of a generation.

    Attributes:
        best: New individuals that the block alone would keep beside the members.
        scores: Of all valid bodies.
        out: Bodies that are kept out.
    """

    best: list[Individual]
    scores: list[float]
    out: list[KeptOutRecord]


def _brood(
    block: tuple[int, int], search: Strategy, task: SearchTask, target: str, seed: int,
    generation: int,
) -> Brood:  # fmt: skip
    """Make the bodies of a block, number of the first and size, and evaluate them."""
    first, size = block
    # a generator for each block: nothing of it has to be in a checkpoint
    children = search.children(np.random.default_rng([seed, generation, first]), size)
    found = evaluate_chunk(children, task, [m.function for m in search.measures], target)
    valid = [
        Individual(child, one.score, generation, one.measures)
        for child, one in zip(children, found, strict=True)
        if not one.reason
    ]
    own = copy(search)
    refused = own.choose(valid, clear if task.clear else accept_all)
    reasons = {id(child): one.reason for child, one in zip(children, found, strict=True)}
    reasons |= {id(one.genotype): MEETS for one in refused}
    out = [
        KeptOutRecord(
            generation=generation, number=first + k, reason=reasons[id(child)],
            genotype=_document(child),
        )
        for k, child in enumerate(children)
        if reasons[id(child)]
    ]  # fmt: skip
    scores = [one.score for one in valid if not reasons[id(one.genotype)]]
    return Brood([one for one in own.members if one.generation == generation], scores, out)


def _result(
    task: SearchTask, search: Strategy, record: EvolutionRecord, generations: int
) -> SearchResult:
    return SearchResult(
        task, tuple(search.members), record.history, record.kept_out, generations, record
    )


def _extended(record: EvolutionRecord, search: Strategy, broods: list[Brood]) -> EvolutionRecord:
    """The record with one more generation."""
    scores = [score for brood in broods for score in brood.scores]
    out = [one for brood in broods for one in brood.out]
    entry = GenerationRecord(
        evaluated=len(scores) + len(out),
        kept_out=len(out),
        best=max(scores, default=None),
        median=float(np.median(scores)) if scores else None,
        leader=search.members[0].score if search.members else None,
    )
    counts = Counter(record.kept_out) + Counter(one.reason for one in out)
    return record.model_copy(
        update={
            "history": (*record.history, entry),
            "kept_out": dict(sorted(counts.items())),
            "named": (*record.named, *out)[:MOST_NAMED],
            "members": tuple(
                MemberRecord(**{**one._asdict(), "genotype": _document(one.genotype)})
                for one in search.members
            ),
        }
    )


def _settings(
    task: SearchTask, search: Strategy, space: BodySpace, population: int, seed: int, target: str
) -> dict[str, Any]:
    example = Genotype.random(space, np.random.default_rng(0))
    return {
        **task.settings(),
        "strategy": search.name,
        "measures": [[m.name, m.low, m.high, m.cells] for m in search.measures],
        "space": example.document()["space"],
        "population": population,
        "seed": seed,
        "target": target,
    }


def _document(genotype: Genotype) -> dict[str, Any]:
    document = genotype.document()
    return {name: document[name] for name in OWN_FIELDS}


def _continued(ours: EvolutionRecord, path: str | os.PathLike[str]) -> EvolutionRecord:
    """The checkpoint in a file, if it is one of the same search."""
    found = EvolutionRecord.load(path)
    for name in {**ours.settings, **found.settings}:
        theirs, mine = found.settings.get(name), ours.settings.get(name)
        if theirs != mine:
            raise FileError(
                f"{path}: this search has another {name}: {str(theirs)[:80]}, not "
                f"{str(mine)[:80]}; give the same, or another file"
            )
    return found
