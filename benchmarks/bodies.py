"""Organisms that several benchmarks measure."""

from __future__ import annotations

import numpy as np

from modurob import DockingError, JointWaves, Organism, Population
from modurob.search import BodySpace, Genotype

SIDES = (2, 3, 4, 5)
FEWEST, MOST = 4, 12  # modules of a body of a population
STEP = 1e-3  # of bodies on the ground [s]
KP, KD, TORQUE = 10.0, 0.1, 5.0  # of their joints [N m/rad, N m s/rad, N m]
FRICTION = 0.8  # of the ground
TRAPPED = 100  # failed dockings to the newest modules after which any module may be the parent


def grid_tree(joints: int, seed: int = 1) -> Organism:
    """A random planar tree of Backbones in which every docking bends."""
    rng, organism = np.random.default_rng(seed), Organism.start("backbone")
    tries = 0
    while len(organism) <= joints:
        count, tries = len(organism), tries + 1
        newest = max(0, count - 4) if tries < TRAPPED else 0
        parent = f"m{int(rng.integers(newest, count))}"
        side, child_side = (int(x) for x in rng.choice(SIDES, 2))
        if side in (2, 5) and child_side in (2, 5):
            continue
        try:
            organism = organism.dock(parent, side, f"m{len(organism)}", child_side)
            tries = 0
        except DockingError:  # port or cell taken
            continue
    return organism


def population_of(
    count: int, modules: tuple[int, int] = (FEWEST, MOST), seed: int = 0
) -> Population:
    """Random bodies, no two of them equal, packed from genotypes."""
    space, rng = BodySpace("backbone", modules), np.random.default_rng(seed)
    found: dict[str, Genotype] = {}
    while len(found) < count:
        genotype = Genotype.random(space, rng)
        found.setdefault(genotype.canonical(gait=False), genotype)
    return Population.from_genotypes(found.values())


def waves_of(population: Population) -> JointWaves:
    """Random waves for all joints."""
    rng, shape = np.random.default_rng(1), (len(population), int(population.joints.max()))
    return JointWaves(rng.uniform(0.2, 0.6, shape), rng.uniform(0, 2 * np.pi, shape))
