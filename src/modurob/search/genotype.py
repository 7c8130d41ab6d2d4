"""Genotypes: bodies and gaits as values that can be drawn, changed and combined at random."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from modurob.checks import generator
from modurob.errors import DockingError, FileError, ModurobError, StateError
from modurob.model import Model
from modurob.modules import ModuleType, catalog
from modurob.modules.datasheet import validated
from modurob.modules.files import check_document, read_document, write_document
from modurob.organism import Organism
from modurob.search.growth import Gene, GrowingBody, Oscillation, picked, subtree
from modurob.search.space import BodySpace, JointRange

if TYPE_CHECKING:
    from modurob.population import JointWaves

FORMAT, VERSION = "modurob-genotype", 1
TRIES = 20  # random dockings of a change before another change is made
BODY_CHANGES = 0.5  # share of the mutations that change the body as well
WAVE_CHANGES = 0.5  # share of the numbers of a gait that a mutation changes
SPREAD = 0.15  # standard deviation of a change, of the number's range


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
        generator(rng, "a random genotype")
        least, most = space.modules
        for _ in range(TRIES):
            wanted = int(rng.integers(least, most + 1))
            body = GrowingBody(space, _base(space, rng))
            while len(body.genes) < wanted and _grow(body, rng):
                pass
            if len(body.genes) >= least:
                return _trusted(space, body.genes, _between(rng, *space.frequency))
        raise DockingError(
            f"no body of {least} modules found in {TRIES} tries: allow fewer modules"
        )

    def mutated(self, rng: np.random.Generator) -> Genotype:
        """A genotype with small random changes: of the waves, and of the body every second time.

        A module is added, one is removed, or a part of the body docks elsewhere.
        """
        generator(rng, "a mutation")
        genes = list(self.genes)
        if rng.random() < BODY_CHANGES:
            change = (_grown, _shrunk, _moved)[int(rng.integers(3))]
            genes = change(self.space, genes, rng)
        waves = [self._mutated_waves(gene, rng) for gene in genes]
        genes = [gene._replace(waves=new) for gene, new in zip(genes, waves, strict=True)]
        low, high = self.space.frequency
        f = float(np.clip(self.frequency + SPREAD * (high - low) * rng.normal(), low, high))
        return _trusted(self.space, genes, f)

    def _mutated_waves(self, gene: Gene, rng: np.random.Generator) -> tuple[Oscillation, ...]:
        waves = []
        for wave, (middle, half) in zip(gene.waves, self.space.ranges[gene.kind], strict=True):
            by = SPREAD * rng.normal(size=3) * (rng.random(3) < WAVE_CHANGES)
            most, shift = self.space.amplitude * half, self.space.offset * half
            amplitude = min(abs(wave.amplitude + float(by[0]) * most), most)
            phase = (wave.phase + 2 * np.pi * float(by[1])) % (2 * np.pi)
            offset = wave.offset + 2 * shift * float(by[2])
            offset = min(max(offset, middle - shift), middle + shift)
            waves.append(Oscillation(amplitude, phase, offset))
        return tuple(waves)

    def crossed(self, other: Genotype, rng: np.random.Generator) -> Genotype:
        """This genotype with a part of another one in the place of a part of its own."""
        generator(rng, "a crossover")
        if not isinstance(other, Genotype) or other.space != self.space:
            raise StateError("a crossover needs two genotypes of the same body space")
        frequency = (self.frequency, other.frequency)[int(rng.integers(2))]
        least, most = self.space.modules
        for _ in range(TRIES):
            if len(self.genes) == 1 or len(other.genes) == 1:
                break
            lost = subtree(self.genes, int(rng.integers(1, len(self.genes))))
            taken = subtree(other.genes, int(rng.integers(1, len(other.genes))))
            if not least <= len(self.genes) - len(lost) + len(taken) <= most:
                continue
            kept = picked(self.genes, [k for k in range(len(self.genes)) if k not in lost])
            made = _grafted(self.space, kept, picked(other.genes, taken), rng)
            if made is not None:
                return _trusted(self.space, made, frequency)
        return _trusted(self.space, self.genes, frequency)

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

    def waves(self) -> JointWaves:
        """The waves of the joints that move, as a gait of a population of this body alone."""
        from modurob.population import JointWaves

        model = self.model()
        found = {
            f"m{k}.{joint.name}": wave
            for k, gene in enumerate(self.genes)
            for joint, wave in zip(self.space.joints[gene.kind], gene.waves, strict=True)
        }
        rows = np.array([found[name] for name in model.joint_names]).reshape(1, -1, 3)
        return JointWaves(*np.moveaxis(rows, -1, 0), frequency=np.array([self.frequency]))

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
            space = BodySpace(**{**dict(record.space), "kinds": tuple(record.space.kinds)})
            names = [kind.name for kind in space.kinds]
            genes = []
            for k, entry in enumerate(record.genes):
                if entry.kind not in names:
                    raise FileError(f"gene {k} has kind '{entry.kind}', which its space lacks")
                waves = tuple(Oscillation(*wave) for wave in entry.waves)
                genes.append(
                    Gene(**{**dict(entry), "kind": names.index(entry.kind), "waves": waves})
                )
            return cls(space, tuple(genes), record.frequency)
        except ModurobError as error:
            raise FileError(f"{where}: {error}") from None


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


ROUNDING = 1e-12  # of the range of a number in a file


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


# -- random changes --------------------------------------------------------------------------------


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    return low + (high - low) * float(rng.random())


def _random_waves(
    space: BodySpace, ranges: Sequence[JointRange], rng: np.random.Generator
) -> tuple[Oscillation, ...]:
    return tuple(
        Oscillation(
            space.amplitude * half * a,
            2 * np.pi * b,
            middle + space.offset * half * (2 * c - 1),
        )
        for (middle, half), (a, b, c) in zip(
            ranges, rng.random((len(ranges), 3)).tolist(), strict=True
        )
    )


def _base(space: BodySpace, rng: np.random.Generator) -> Gene:
    kind = int(rng.integers(len(space.kinds)))
    return Gene(kind, -1, 0, 0, 0, _random_waves(space, space.ranges[kind], rng))


def _grow(body: GrowingBody, rng: np.random.Generator) -> bool:
    """Dock a random module to a random free port; False when no port takes one."""
    ports = list(body.free)
    while ports:
        parent, port = ports.pop(int(rng.random() * len(ports)))
        fitting = body.space.fits[body.genes[parent].kind, port]
        if not fitting:
            continue
        kind, child_port, turn = fitting[int(rng.random() * len(fitting))]
        waves = _random_waves(body.space, body.space.ranges[kind], rng)
        if body.add(Gene(kind, parent, port, child_port, turn, waves)):
            return True
    return False


def _regrown(space: BodySpace, genes: Sequence[Gene]) -> GrowingBody:
    body = GrowingBody(space, genes[0])
    for gene in genes[1:]:
        body.add(gene)
    return body


def _grown(space: BodySpace, genes: list[Gene], rng: np.random.Generator) -> list[Gene]:
    if len(genes) >= space.modules[1]:
        return _shrunk(space, genes, rng) if len(genes) > space.modules[0] else genes
    body = _regrown(space, genes)
    _grow(body, rng)
    return body.genes


def _shrunk(space: BodySpace, genes: list[Gene], rng: np.random.Generator) -> list[Gene]:
    if len(genes) <= space.modules[0]:
        return _grown(space, genes, rng) if len(genes) < space.modules[1] else genes
    tips = sorted(set(range(1, len(genes))) - {gene.parent for gene in genes})
    lost = tips[int(rng.random() * len(tips))]
    return picked(genes, [k for k in range(len(genes)) if k != lost])


def _moved(space: BodySpace, genes: list[Gene], rng: np.random.Generator) -> list[Gene]:
    if len(genes) == 1:
        return genes
    part = subtree(genes, int(rng.integers(1, len(genes))))
    kept = picked(genes, [k for k in range(len(genes)) if k not in part])
    return _grafted(space, kept, picked(genes, part), rng) or genes


def _grafted(
    space: BodySpace, genes: Sequence[Gene], part: Sequence[Gene], rng: np.random.Generator
) -> list[Gene] | None:
    """The genes with a part docked to a random free port; None where there is no room for it."""
    root, taken = part[0], {gene.port for gene in part[1:] if gene.parent == 0}
    for _ in range(TRIES):
        body = _regrown(space, genes)
        ports = list(body.free)
        parent, port = ports[int(rng.random() * len(ports))]
        fitting = [
            fit
            for fit in space.fits[body.genes[parent].kind, port]
            if fit[0] == root.kind and fit[1] not in taken
        ]
        if not fitting:
            continue
        _, child_port, turn = fitting[int(rng.random() * len(fitting))]
        first = len(body.genes)
        moved = [root._replace(parent=parent, port=port, child_port=child_port, turn=turn)]
        moved += [gene._replace(parent=gene.parent + first) for gene in part[1:]]
        if all(map(body.add, moved)):
            return body.genes
    return None


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
