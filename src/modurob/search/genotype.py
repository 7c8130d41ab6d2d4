"""Genotypes: bodies and gaits as values that can be drawn, changed and combined at random."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from modurob.checks import generator
from modurob.errors import DockingError, FileError, ModurobError, StateError, choices
from modurob.model import Model
from modurob.modules import ModuleType, catalog
from modurob.modules.datasheet import validated
from modurob.modules.files import check_document, read_document, write_document
from modurob.organism import Organism
from modurob.population import JointWaves, Population
from modurob.population.coding import BodyPlan
from modurob.search.canonical import canonical_key
from modurob.search.growth import GrowingBody
from modurob.search.space import BodySpace, Gene, Oscillation, shared_space
from modurob.search.variation import (
    SPREAD,
    Draws,
    changed_body,
    changed_waves,
    exchanged_part,
    random_body,
)

FORMAT, VERSION = "modurob-genotype", 1
BODY_CHANGES = 0.5  # share of the mutations that change the body as well
ROUNDING = 1e-12  # of the range of a number in a file


@dataclass(frozen=True)
class Genotype:
    """A body of a space, as a tree of dockings, with a sine wave for each joint.

    Attributes:
        space: That it belongs to.
        genes: The modules, each after its parent; the first is the base.
        frequency: Of all waves. [Hz]
    """

    space: BodySpace
    genes: tuple[Gene, ...]
    frequency: float

    def __post_init__(self) -> None:
        _check(self)

    @classmethod
    def random(cls, space: BodySpace, rng: np.random.Generator) -> Genotype:
        """A random genotype: a number of modules, then one random docking after the other."""
        draws = Draws(generator(rng, "a random genotype"))
        if not isinstance(space, BodySpace):
            raise StateError(f"a random genotype needs a BodySpace, got {type(space).__name__}")
        low, high = space.frequency
        genes = random_body(space, draws)
        return _trusted(space, genes, low + (high - low) * draws.number())

    def mutated(self, rng: np.random.Generator) -> Genotype:
        """A genotype with small random changes: of the waves, and of the body every second time.

        A module is added, one is removed, or a part of the body docks elsewhere.
        """
        draws = Draws(generator(rng, "a mutation"))
        genes = self.genes
        if draws.number() < BODY_CHANGES:
            genes = changed_body(self.space, genes, draws)
        low, high = self.space.frequency
        frequency = self.frequency + SPREAD * (high - low) * float(rng.normal())
        genes = changed_waves(self.space, genes, rng)
        return _trusted(self.space, genes, min(max(frequency, low), high))

    def crossed(self, other: Genotype, rng: np.random.Generator) -> Genotype:
        """This genotype with a part of another one in the place of a part of its own.

        Its body stays as it is where no part of the other one fits.
        """
        draws = Draws(generator(rng, "a crossover"))
        if not isinstance(other, Genotype) or other.space != self.space:
            raise StateError("a crossover needs two genotypes of the same body space")
        frequency = (self.frequency, other.frequency)[draws.below(2)]
        genes = exchanged_part(self.space, self.genes, other.genes, draws)
        return _trusted(self.space, genes, frequency)

    # -- what it builds ----------------------------------------------------------------------------

    def organism(self) -> Organism:
        """The organism; modules are named m0, m1, ... in the order of the genes."""
        kinds = self.space.kinds
        organism = Organism.start(kinds[self.genes[0].kind])
        for k, gene in enumerate(self.genes[1:], start=1):
            organism = organism.dock(
                f"m{gene.parent}", gene.port, f"m{k}", gene.child_port,
                kind=kinds[gene.kind], turn=gene.turn,
            )  # fmt: skip
        return organism

    def model(self) -> Model:
        """The model of the organism, with a free base."""
        return self.organism().model(self.space.hinges, base="free")

    def plan(self) -> BodyPlan:
        """Modules and dockings, as populations take them."""
        return self.space.plan(self.genes)

    def waves(self) -> JointWaves:
        """The waves of the joints that move, for a population of this body alone."""
        return joint_waves([self], Population.from_genotypes([self]))

    def canonical(self, gait: bool = True) -> str:
        """A key that genotypes of the same body and gait share, however they are written.

        Neither the order of the genes counts nor, where the body of a module is symmetric, which of
        its ports is used; the base may be turned about the vertical. Waves of joints that cannot
        move do not count.

        Args:
            gait: False for a key of the body alone.
        """
        return canonical_key(self.space, self.genes, self.frequency) if gait else self._body_key

    @cached_property
    def _body_key(self) -> str:
        return canonical_key(self.space, self.genes, None)

    def sketch(self) -> Hashable:
        """A key that takes little time: different ones mean different bodies or gaits."""
        moving = self.space.moving(self.genes)
        if moving is None:
            waves = [wave for gene in self.genes for wave in gene.waves]
        else:
            places = self.space.wave_places
            waves = [self.genes[k].waves[places[self.genes[k].kind][joint]] for k, joint in moving]
        return (self.frequency, *sorted([amplitude for amplitude, _, _ in waves]))

    def __reduce__(self) -> tuple[Any, ...]:
        """Plain tuples in the place of genes, which pickle several times as fast."""
        rows = [(*gene[:5], [*map(tuple, gene.waves)]) for gene in self.genes]
        return _restored, (self.space, rows, self.frequency)

    # -- files -------------------------------------------------------------------------------------

    def document(self) -> dict[str, Any]:
        """Content of its JSON file."""
        space, names = self.space, [kind.name for kind in self.space.kinds]
        return {
            "format": FORMAT,
            "version": VERSION,
            "space": {
                "kinds": [k.name if _listed(k) else k.document() for k in space.kinds],
                "modules": list(space.modules),
                "hinges": space.hinges,
                "amplitude": space.amplitude,
                "offset": space.offset,
                "frequency": list(space.frequency),
            },
            "frequency": self.frequency,
            "genes": [
                {**gene._asdict(), "kind": names[gene.kind], "waves": [list(w) for w in gene.waves]}
                for gene in self.genes
            ],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file, atomically."""
        write_document(path, self.document())

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Genotype:
        """Read a file that `save` wrote."""
        return cls.from_document(read_document(path, FORMAT, VERSION), str(path))

    @classmethod
    def from_document(cls, data: Any, where: str = "genotype") -> Genotype:
        """The genotype of a file's content; `where` is the file's name for error messages."""
        check_document(data, where, FORMAT, VERSION)
        record = validated(GenotypeFile, data, where)
        try:
            settings = {**dict(record.space), "kinds": tuple(record.space.kinds)}
            space = shared_space(BodySpace(**settings))
            names = [kind.name for kind in space.kinds]
            genes = []
            for k, entry in enumerate(record.genes):
                if entry.kind not in names:
                    raise FileError(
                        f"gene {k} has kind '{entry.kind}', which its space lacks: kinds are "
                        f"{choices(names)}"
                    )
                waves = tuple(Oscillation(*wave) for wave in entry.waves)
                genes.append(
                    Gene(**{**dict(entry), "kind": names.index(entry.kind), "waves": waves})
                )
            return cls(space, tuple(genes), record.frequency)
        except ModurobError as error:
            raise FileError(f"{where}: {error}") from None


def joint_waves(genotypes: Sequence[Genotype], population: Population) -> JointWaves:
    """The waves of many genotypes, for the population that they form."""
    space = genotypes[0].space if genotypes else None
    if space is None or len(genotypes) != len(population):
        raise StateError(
            f"{len(genotypes)} genotypes for a population of {len(population)} bodies: give those "
            "that it was made from"
        )
    for k, genotype in enumerate(genotypes):
        if genotype.space is not space and genotype.space != space:
            raise StateError(f"genotype {k} is of another body space than the first one")
    tables, genes = population.tables, [gene for each in genotypes for gene in each.genes]
    waves = [wave for gene in genes for wave in gene.waves]
    numbers = np.array(list(chain.from_iterable(waves))).reshape(-1, 3)
    first_wave = np.cumsum([0, *(len(gene.waves) for gene in genes)])
    first_gene = np.cumsum([0, *(len(each.genes) for each in genotypes)])[:-1]
    moves = tables.joint[:, 1:] >= 0
    which = (first_gene[:, None] + tables.module[:, 1:])[moves]
    kinds = np.array([gene.kind for gene in genes])[which]
    rows = np.zeros((*moves.shape, 3))
    rows[moves] = numbers[first_wave[which] + space.wave_number[kinds, tables.joint[:, 1:][moves]]]
    frequency = np.array([genotype.frequency for genotype in genotypes])
    return JointWaves(*np.moveaxis(rows, -1, 0), frequency=frequency)


def _restored(space: BodySpace, rows: Sequence[Any], frequency: float) -> Genotype:
    """The genotype that was pickled."""
    genes = [
        Gene(kind, parent, port, child_port, turn, tuple([Oscillation(*wave) for wave in waves]))
        for kind, parent, port, child_port, turn, waves in rows
    ]
    return _trusted(space, genes, frequency)


# -- checks ----------------------------------------------------------------------------------------


def _trusted(space: BodySpace, genes: Sequence[Gene], frequency: float) -> Genotype:
    """A genotype whose body has grown by the rules, so that it need not be checked again."""
    made = object.__new__(Genotype)
    for name, value in (("space", space), ("genes", tuple(genes)), ("frequency", frequency)):
        object.__setattr__(made, name, value)
    return made


def _check(genotype: Genotype) -> None:
    """Refuse a genotype that cannot be built, or whose waves pass the bounds of its space."""
    space, genes = genotype.space, genotype.genes
    if not genes or genes[0].parent != -1:
        raise DockingError("a genotype starts with its base, a gene whose parent is -1")
    for k, gene in enumerate(genes):
        if not 0 <= gene.kind < len(space.kinds) or (k > 0 and not 0 <= gene.parent < k):
            raise DockingError(
                f"gene {k} has kind {gene.kind} and parent {gene.parent}: kinds are 0 to "
                f"{len(space.kinds) - 1}, and a parent comes before its children"
            )
        _check_waves(space, k, gene)
    least, most = space.modules
    if not least <= len(genes) <= most:
        raise DockingError(f"a genotype of {len(genes)} modules: its space has {least} to {most}")
    low, high = space.frequency
    if not low <= genotype.frequency <= high:
        raise StateError(
            f"frequency is {genotype.frequency!r} Hz: its space has {low:g} to {high:g}"
        )
    body = GrowingBody(space, genes[0])
    for k, gene in enumerate(genes[1:], start=1):
        if not body.add(gene):
            genotype.organism()  # says which rule of docking is broken
            raise DockingError(
                f"gene {k} at port {gene.port} of gene {gene.parent} would overlap another module"
            )
    if not space.moves(genes):
        raise DockingError("no joint of this body can move: dock a module in another direction")


def _check_waves(space: BodySpace, k: int, gene: Gene) -> None:
    joints = space.joints[gene.kind]
    if len(gene.waves) != len(joints):
        raise StateError(
            f"gene {k} has {len(gene.waves)} waves, expected {len(joints)}, one for each joint of "
            f"a {space.kinds[gene.kind].name}"
        )
    for joint, wave, (middle, half) in zip(
        joints, gene.waves, space.ranges[gene.kind], strict=True
    ):
        most, shift = space.amplitude * half, space.offset * half
        room = ROUNDING * half
        if not (0 <= wave.amplitude <= most + room and abs(wave.offset - middle) <= shift + room):
            raise StateError(
                f"gene {k}: the wave of joint '{joint.name}' has amplitude {wave.amplitude:g} and "
                f"offset {wave.offset:g}: its space has amplitudes from 0 to {most:g} and offsets "
                f"from {middle - shift:g} to {middle + shift:g}"
            )


# -- files -----------------------------------------------------------------------------------------


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


Pair = Annotated[list[FiniteFloat], Field(min_length=2, max_length=2)]


class SpaceEntry(_Record):
    """A body space; kinds are catalog names or whole datasheets."""

    kinds: list[str | ModuleType]
    modules: Annotated[list[int], Field(min_length=2, max_length=2)]
    hinges: str
    amplitude: FiniteFloat
    offset: FiniteFloat
    frequency: Pair


class GeneEntry(_Record):
    """One gene, with the name of its kind."""

    kind: str
    parent: int
    port: int | str
    child_port: int | str
    turn: int
    waves: list[Annotated[list[FiniteFloat], Field(min_length=3, max_length=3)]]


class GenotypeFile(_Record):
    """The whole file."""

    format: Literal["modurob-genotype"]
    version: Literal[1]
    space: SpaceEntry
    frequency: FiniteFloat
    genes: Annotated[list[GeneEntry], Field(min_length=1)]


def _listed(kind: ModuleType) -> bool:
    return kind.name in catalog and catalog[kind.name] == kind
