"""Random organisms with friction, their models, and states to compare dynamics at."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from modurob import Model, Organism
from oracles.organisms import MOST_MODULES, random_organism
from oracles.rigid_tree import RigidTree

STATES = 3  # of a case: anywhere, next to zero, at quarter turns


class Case(NamedTuple):
    """A model, its links by another way, and states with an external push on some bodies.

    Attributes:
        q, v, x: (STATES, ...) configurations, velocities, accelerations or forces.
        external: (STATES, 6) wrenches on bodies.
    """

    organism: Organism
    model: Model
    tree: RigidTree
    q: np.ndarray
    v: np.ndarray
    x: np.ndarray
    external: dict[str, np.ndarray]

    def pushes(self, state: int) -> dict[str, np.ndarray]:
        """The wrenches of one state."""
        return {body: wrenches[state] for body, wrenches in self.external.items()}


@lru_cache(maxsize=512)
def rough_organism(kinds: str, seed: int, most: int = MOST_MODULES) -> Organism:
    """A random organism of a group; every second module has other drives than the rest."""
    rng = np.random.default_rng(1000 + seed)
    organism = random_organism(kinds, int(rng.integers(1, most + 1)), seed)
    for names in (organism.modules[::2], organism.modules[1::2]):
        if names:
            viscous, coulomb = rng.uniform(0.0, 0.5, size=2)
            rotor = {"rotor_inertia": 1e-6 * (1 + seed % 3), "gear_ratio": 100 * viscous}
            organism = organism.with_parameters(*names, viscous=viscous, coulomb=coulomb, **rotor)
    return organism


def case(
    kinds: str, seed: int, hinges: str, base: str | tuple[str, ...], most: int = MOST_MODULES
) -> Case:
    """A random organism in a random field of gravity, with everything that can act on it."""
    found = _case(kinds, seed, hinges, base, most)
    external = {body: wrenches.copy() for body, wrenches in found.external.items()}
    return found._replace(q=found.q.copy(), v=found.v.copy(), x=found.x.copy(), external=external)


@lru_cache(maxsize=256)
def _case(kinds: str, seed: int, hinges: str, base: str | tuple[str, ...], most: int) -> Case:
    organism, rng = rough_organism(kinds, seed, most), np.random.default_rng(seed)
    model = organism.model(hinges, base, gravity=5 * rng.standard_normal(3))
    tree = RigidTree(organism, hinges, base, list(model.locked))
    q, v, x = states(model, rng)
    bodies = rng.choice(model.body_names, size=min(4, model.nbodies), replace=False)
    external = {str(body): rng.standard_normal((STATES, 6)) for body in bodies}
    return Case(organism, model, tree, q, v, x, external)


def states(model: Model, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Configurations, velocities and third arrays: anywhere, next to zero, at quarter turns."""
    q = np.stack([model.random_configuration(rng) for _ in range(STATES)])
    v, x = rng.standard_normal((2, STATES, model.nv))
    joints = q[:, model.nq - len(model.joint_names) :]
    joints[1] = 1e-9 * rng.standard_normal(joints.shape[1])
    v[1] *= 1e-3  # where dry friction changes its sign
    joints[2] = np.pi / 2 * rng.integers(-4, 5, size=joints.shape[1])
    v[2] *= 10
    return q, v, x
