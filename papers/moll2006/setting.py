"""The experiment of section V: random trees, and what is ours where the document says nothing."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps

from modurob import Model, Organism, examples
from modurob.distributed.mass.base import links_of

BRANCHES, LENGTH, TREES = 4, 5, 4
OFF = 0.5  # widths that a tree's center has to be off to be worth balancing
DURATION = 0.6  # [s] of the runs of the shared law
PERIOD = 1e-3  # [s] of the control loop and of a round of messages
LEFT = 0.2  # [s] at the end of a run, over which what is left is averaged


class Tree(NamedTuple):
    """A random tree.

    Attributes:
        seed: It grew from.
        apart: (modules, modules) dockings between two modules.
    """

    seed: int
    organism: Organism
    model: Model
    apart: np.ndarray

    @property
    def diameter(self) -> int:
        """Dockings on the longest path."""
        return int(self.apart.max())

    def configuration(self) -> np.ndarray:
        """(nq,) a random posture, always the same."""
        return self.model.random_configuration(np.random.default_rng(self.seed))


@lru_cache(maxsize=1)
def trees() -> tuple[Tree, ...]:
    """The first trees whose center starts more than `OFF` from the line, by seed."""
    found: list[Tree] = []
    seed = 0
    while len(found) < TREES:
        organism = examples.superbot_tree(BRANCHES, LENGTH, np.random.default_rng(seed))
        model = organism.model("physical")
        center = model.center_of_mass(model.neutral())[:2]
        if np.linalg.norm(center) > OFF * organism.kind(organism.base).size:
            found.append(Tree(seed, organism, model, _apart(organism)))
        seed += 1
    return tuple(found)


def _apart(organism: Organism) -> np.ndarray:
    """Dockings between all pairs of modules."""
    index = {name: k for k, name in enumerate(organism.modules)}
    near = np.full((len(index), len(index)), np.inf)
    np.fill_diagonal(near, 0)
    for (a, _), (b, _) in links_of(organism):
        near[index[a], index[b]] = near[index[b], index[a]] = 1
    for k in range(len(index)):
        near = np.minimum(near, near[:, k, None] + near[k])
    return near.astype(int)


def shades(far: np.ndarray) -> dict[int, Any]:
    """A color for each number of dockings, dark for few."""
    least, most = int(far.min()), int(far.max())
    return {d: colormaps["viridis"](0.92 * (d - least) / (most - least)) for d in sorted(set(far))}
