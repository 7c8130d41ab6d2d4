"""Random bodies and waves, and random changes of them that always can be built."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi

import numpy as np

from modurob.errors import DockingError
from modurob.search.growth import GrowingBody, picked, subtree, with_parent
from modurob.search.space import BodySpace, Gene, Oscillation

TRIES = 20  # random dockings of a change before it is given up
BLOCK = 64  # random numbers that are drawn together
WAVE_CHANGES = 0.5  # share of the numbers of a gait that a mutation changes
SPREAD = 0.15  # standard deviation of a change, of the number's range


class Draws:
    """Random choices, drawn in blocks: one call of NumPy costs as much as a docking."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self._left: list[float] = []

    def number(self) -> float:
        """A number from 0 to 1."""
        if not self._left:
            self._left = self.rng.random(BLOCK).tolist()
        return self._left.pop()

    def below(self, count: int) -> int:
        """A whole number from 0 to count - 1."""
        return int(self.number() * count)


def random_body(space: BodySpace, draws: Draws) -> list[Gene]:
    """A number of modules, then one random docking after the other."""
    least, most = space.modules
    for _ in range(TRIES):
        wanted = least + draws.below(most - least + 1)
        kind = draws.below(len(space.kinds))
        body = GrowingBody(space, Gene(kind, -1, 0, 0, 0, random_waves(space, kind, draws)))
        while len(body.genes) < wanted and _grow(body, draws):
            pass
        if len(body.genes) >= least and space.moves(body.genes):
            return body.genes
    raise DockingError(
        f"no body of {least} modules or more that can move was found in {TRIES} tries: allow other "
        "numbers of modules, or other kinds"
    )


def random_waves(space: BodySpace, kind: int, draws: Draws) -> tuple[Oscillation, ...]:
    """A random wave for each joint of a kind, within the bounds of the space."""
    number = draws.number
    return tuple(
        Oscillation(
            space.amplitude * half * number(),
            2 * pi * number(),
            middle + space.offset * half * (2 * number() - 1),
        )
        for middle, half in space.ranges[kind]
    )


def _grow(body: GrowingBody, draws: Draws) -> bool:
    """Dock a random module to a random free port; False when no port takes one."""
    ports, space = list(body.free), body.space
    while ports:
        parent, port = ports.pop(draws.below(len(ports)))
        fitting = space.fits[body.genes[parent].kind, port]
        if fitting:
            kind, child_port, turn = fitting[draws.below(len(fitting))]
            waves = random_waves(space, kind, draws)
            if body.add(Gene(kind, parent, port, child_port, turn, waves)):
                return True
    return False


# -- changes of the body ---------------------------------------------------------------------------


def changed_body(space: BodySpace, genes: Sequence[Gene], draws: Draws) -> Sequence[Gene]:
    """The genes with one module more, one less, or a part of the body docked elsewhere."""
    least, most = space.modules
    changes = [_moved] * (len(genes) > 1)
    changes += [_grown] * (len(genes) < most) + [_shrunk] * (len(genes) > least)
    if not changes:
        return genes
    made = changes[draws.below(len(changes))](space, genes, draws)
    return made if made is not None and space.moves(made) else genes


def _grown(space: BodySpace, genes: Sequence[Gene], draws: Draws) -> list[Gene]:
    body = _regrown(space, genes)
    _grow(body, draws)
    return body.genes


def _shrunk(space: BodySpace, genes: Sequence[Gene], draws: Draws) -> list[Gene]:
    tips = sorted(set(range(1, len(genes))) - {gene.parent for gene in genes})
    lost = tips[draws.below(len(tips))]
    return picked(genes, [k for k in range(len(genes)) if k != lost])


def _moved(space: BodySpace, genes: Sequence[Gene], draws: Draws) -> list[Gene] | None:
    part = subtree(genes, 1 + draws.below(len(genes) - 1))
    kept = picked(genes, [k for k in range(len(genes)) if k not in part])
    return _grafted(space, kept, picked(genes, part), draws)


def exchanged_part(
    space: BodySpace, genes: Sequence[Gene], others: Sequence[Gene], draws: Draws
) -> Sequence[Gene]:
    """The genes with a random part of others in the place of a random part of their own."""
    least, most = space.modules
    for _ in range(TRIES if min(len(genes), len(others)) > 1 else 0):
        lost = set(subtree(genes, 1 + draws.below(len(genes) - 1)))
        taken = subtree(others, 1 + draws.below(len(others) - 1))
        if least <= len(genes) - len(lost) + len(taken) <= most:
            kept = picked(genes, [k for k in range(len(genes)) if k not in lost])
            made = _grafted(space, kept, picked(others, taken), draws)
            if made is not None and space.moves(made):
                return made
    return genes


def _regrown(space: BodySpace, genes: Sequence[Gene]) -> GrowingBody:
    body = GrowingBody(space, genes[0])
    for gene in genes[1:]:
        body.add(gene)
    return body


def _grafted(
    space: BodySpace, genes: Sequence[Gene], part: Sequence[Gene], draws: Draws
) -> list[Gene] | None:
    """The genes with a part docked to a random free port; None where no room was found for it."""
    root, taken = part[0], {gene.port for gene in part[1:] if gene.parent == 0}
    whole = _regrown(space, genes)
    ports, first = list(whole.free), len(genes)
    for _ in range(TRIES):
        parent, port = ports[draws.below(len(ports))]
        fitting = [
            fit
            for fit in space.fits[genes[parent].kind, port]
            if fit[0] == root.kind and fit[1] not in taken
        ]
        if not fitting:
            continue
        _, child_port, turn = fitting[draws.below(len(fitting))]
        body = whole.copy()
        if body.add(Gene(root.kind, parent, port, child_port, turn, root.waves)) and all(
            body.add(with_parent(gene, gene.parent + first)) for gene in part[1:]
        ):
            return body.genes
    return None


# -- changes of the gait ---------------------------------------------------------------------------


def changed_waves(space: BodySpace, genes: Sequence[Gene], rng: np.random.Generator) -> list[Gene]:
    """The genes with every second number of their waves changed a little."""
    count = sum(len(gene.waves) for gene in genes)
    changes = rng.normal(0.0, SPREAD, (count, 3)) * (rng.random((count, 3)) < WAVE_CHANGES)
    by, bounds = iter(changes.tolist()), space.wave_bounds
    made = []
    for gene in genes:
        kind, parent, port, child_port, turn, old = gene
        waves = []
        for (amplitude, phase, offset), (most, low, high) in zip(old, bounds[kind], strict=True):
            a, b, c = next(by)
            amplitude = min(abs(amplitude + a * most), most)
            offset = min(max(offset + c * (high - low), low), high)
            waves.append(Oscillation(amplitude, (phase + 2 * pi * b) % (2 * pi), offset))
        made.append(Gene(kind, parent, port, child_port, turn, tuple(waves)))
    return made
