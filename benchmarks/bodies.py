"""Organisms that several benchmarks measure."""

from __future__ import annotations

import numpy as np

from modurob import DockingError, Organism

SIDES = (2, 3, 4, 5)


def grid_tree(joints: int, seed: int = 1) -> Organism:
    """A random planar tree of Backbones in which every docking bends."""
    rng, organism = np.random.default_rng(seed), Organism.start("backbone")
    while len(organism) <= joints:
        names = organism.modules
        parent = names[int(rng.integers(max(0, len(names) - 4), len(names)))]
        side, child_side = (int(x) for x in rng.choice(SIDES, 2))
        if side in (2, 5) and child_side in (2, 5):
            continue
        try:
            organism = organism.dock(parent, side, f"m{len(organism)}", child_side)
        except DockingError:  # port or cell taken
            continue
    return organism
