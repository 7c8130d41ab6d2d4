"""`evolve`: a search over bodies and gaits, with checkpoints from which it goes on exactly."""

from __future__ import annotations

import contextlib
import gc
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import Field, FiniteFloat

from modurob.checks import whole
from modurob.errors import FileError, ModurobError, StateError
from modurob.executors import Executor
from modurob.modules.files import checked_target, read_document, write_document
from modurob.scenario.settings import FrozenRecord
from modurob.search.clearance import clear
from modurob.search.evaluation import MEETS, checked_chunks, evaluate_chunk
from modurob.search.genotype import FORMAT as GENOTYPE
from modurob.search.genotype import VERSION as GENOTYPE_VERSION
from modurob.search.genotype import Genotype
from modurob.search.space import BodySpace
from modurob.search.strategies import (
    Individual,
    Strategy,
    accept_all,
    best_first,
    strategy_class,
)
from modurob.search.tasks import SearchTask, task_of

OWN_FIELDS = ("frequency", "genes")  # of a genotype: all others are those of its space
FORMAT, VERSION = "modurob-evolution", 1
LARGEST_BYTES = 2**27  # a thousand parents of 300 modules need 80 MB
# slow waves: an optimizer makes leaps of fast ones, which go as the contact law has it
DEFAULT_SPACE = BodySpace(frequency=(0.3, 0.6))
MOST_NAMED = 20  # bodies that were kept out and are named; all are counted
# bodies that one process makes and evaluates, and the most blocks: fixed, so that results do not
# depend on processes; a GPU takes about as long for fewer bodies as for so many
BLOCKS = {"cpu": (64, 10**9), "cuda": (2**12, 15)}
CLEARED = (4, 16)  # bodies that one process looks at first, and how many times so many at once


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
        write_document(path, self.model_dump_json(indent=1))

    def individuals(self) -> list[Individual]:
        """The members as values."""
        space = self.settings.get("space")
        head = {"format": GENOTYPE, "version": GENOTYPE_VERSION, "space": space}
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
            return cls(**read_document(path, FORMAT, VERSION, LARGEST_BYTES))
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
    try:
        search.members = record.individuals()
    except ModurobError as error:
        raise FileError(f"{checkpoint}: {error}") from None
    for one in search.members:
        if len(one.measures) != len(search.measures):
            raise FileError(
                f"{checkpoint}: a member has {len(one.measures)} measures, expected "
                f"{len(search.measures)}"
            )
    for generation in range(len(record.history), generations):
        function = partial(
            _brood, search=search, task=chosen, target=target, seed=seed, generation=generation
        )
        mapped = map if executor is None else executor.map
        with _no_collection():
            broods = [*mapped(function, _blocks(population, target))]
            best = {number: one for brood in broods for number, one in brood.best.items()}
            accept = Clearance(best.values(), executor) if chosen.clear else accept_all
            known = dict(zip(map(id, search.members), record.members, strict=True))
            refused = {id(one) for one in search.choose([*best.values()], accept)}
            meeting = {number: one for number, one in best.items() if id(one) in refused}
            members = [known.get(id(one)) or _member(one) for one in search.members]
            record = _extended(record, members, broods, meeting)
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
        scores: (bodies,) NaN for those that are kept out.
        best: Individuals that may stay, by their numbers in the generation.
        out: Numbers of bodies by the reason for keeping them out.
        named: The first of them.
    """

    scores: np.ndarray
    best: dict[int, Individual]
    out: Counter[str]
    named: list[KeptOutRecord]


def _blocks(population: int, target: str) -> list[range]:
    """Numbers of the bodies that are made and evaluated together."""
    size, most = BLOCKS[target]
    count = min(-(-population // size), most)
    ends = [population * k // count for k in range(count + 1)]
    return [*map(range, ends, ends[1:])]


def _brood(
    block: range, search: Strategy, task: SearchTask, target: str, seed: int, generation: int
) -> Brood:
    """Make the bodies of a block and evaluate them."""
    # a generator for each block: nothing of it has to be in a checkpoint
    rng = np.random.default_rng([seed, generation, block[0]])
    with _no_collection():
        children = search.children(rng, len(block))
        found = evaluate_chunk(children, task, [m.function for m in search.measures], target)
    scores = np.array([one.score for one in found])
    none = (np.nan,) * len(search.measures)
    measures = np.array([one.measures or none for one in found])
    best = {
        block[k]: Individual(children[k], found[k].score, generation, found[k].measures)
        for k in np.flatnonzero(search.may_stay(scores, measures)).tolist()
    }
    out = [k for k, one in enumerate(found) if one.reason]
    named = [
        _kept_out(generation, block[k], found[k].reason, children[k]) for k in out[:MOST_NAMED]
    ]
    return Brood(scores, best, Counter(found[k].reason for k in out), named)


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Pause the search for unreachable objects: bodies are many small objects, all in use."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Clearance:
    """Tells of genotypes whether their modules meet; processes look at the next best together.

    Args:
        individuals: That it will be asked of, the best first.
        executor: For processes or a cluster.
    """

    def __init__(self, individuals: Iterable[Individual], executor: Executor | None) -> None:
        self._waiting = iter([one.genotype for one in best_first([*individuals])])
        self._executor, self._together = executor, CLEARED[0]
        self._known: dict[int, bool] = {}

    def __call__(self, genotype: Genotype) -> bool:
        if self._executor is None:
            return clear(genotype)
        while id(genotype) not in self._known:
            parts = [[*islice(self._waiting, self._together)] for _ in range(CLEARED[1])]
            parts = [part for part in parts if part]
            for part, found in zip(parts, self._executor.map(_all_clear, parts), strict=True):
                self._known.update(zip(map(id, part), found, strict=True))
            self._together *= 2
        return self._known[id(genotype)]


def _all_clear(genotypes: Sequence[Genotype]) -> list[bool]:
    return [clear(genotype) for genotype in genotypes]


def _kept_out(generation: int, number: int, reason: str, genotype: Genotype) -> KeptOutRecord:
    return KeptOutRecord(
        generation=generation, number=number, reason=reason, genotype=_document(genotype)
    )


def _result(
    task: SearchTask, search: Strategy, record: EvolutionRecord, generations: int
) -> SearchResult:
    return SearchResult(
        task, tuple(search.members), record.history, record.kept_out, generations, record
    )


def _extended(
    record: EvolutionRecord,
    members: list[MemberRecord],
    broods: list[Brood],
    meeting: dict[int, Individual],
) -> EvolutionRecord:
    """The record with one more generation; `meeting` are bodies whose modules meet."""
    scores = np.concatenate([brood.scores for brood in broods])
    scores[[*meeting]] = np.nan
    valid = scores[np.isfinite(scores)]
    entry = GenerationRecord(
        evaluated=len(scores),
        kept_out=len(scores) - len(valid),
        best=float(valid.max()) if len(valid) else None,
        median=float(np.median(valid)) if len(valid) else None,
        leader=members[0].score if members else None,
    )
    counts = sum((brood.out for brood in broods), Counter(record.kept_out))
    counts += Counter({MEETS: len(meeting)})
    named = [one for brood in broods for one in brood.named]
    if len(record.named) < MOST_NAMED:
        named += [_kept_out(one.generation, k, MEETS, one.genotype) for k, one in meeting.items()]
    named.sort(key=lambda one: one.number)
    return record.model_copy(
        update={
            "history": (*record.history, entry),
            "kept_out": dict(sorted(counts.items())),
            "named": (*record.named, *named)[:MOST_NAMED],
            "members": tuple(members),
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


def _member(one: Individual) -> MemberRecord:
    return MemberRecord(**{**one._asdict(), "genotype": _document(one.genotype)})


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
