"""Section III, last paragraph: who leads, and everybody's place in the world."""

from __future__ import annotations

import numpy as np

from modurob.distributed import MassNetwork
from papers.claims import Claims
from papers.moll2006.setting import LENGTH, Tree, trees

TREES = 2  # of the four
NUMBERS = 2  # to draw: with four that draw, the best number mostly has several holders


def reproduce(claims: Claims) -> None:
    """Elections among the root and the tips of the other branches; then the leader is lifted."""
    claims.working_on("leaders")
    first, second, draws, worst = [], [], [], 0.0
    for tree in trees()[:TREES]:
        network, T = _standing(tree), tree.model.forward_kinematics(tree.configuration())
        network.settle()
        leader = _leaders(network, tree)
        first.append(leader)
        draws.append(max(state.ticket[0] for state in network.states.values()))
        for name in tree.organism:
            off = network.world_pose(name) - T[tree.model.modules[name]]
            worst = max(worst, np.abs(off).max())
        network.lift(leader[0])
        network.settle()
        second.append(_leaders(network, tree))
    claims.check("leader", sum(len(found) == 1 for found in first), f"draws needed: {draws}")
    pairs = zip(first, second, strict=True)
    claims.check("next", sum(len(new) == 1 and new != old for old, new in pairs))
    claims.check("world", worst)


def feet(tree: Tree) -> list[str]:
    """The root and the tips of its other branches, which touch the ground here."""
    names = tree.organism.modules
    return [names[0], *names[2 * LENGTH - 1 :: LENGTH]]


def _standing(tree: Tree) -> MassNetwork:
    network = MassNetwork(tree.organism, rng=np.random.default_rng(tree.seed), tickets=NUMBERS)
    q = tree.configuration()
    network.measure(q, model=tree.model)
    T = tree.model.forward_kinematics(q)
    for foot in feet(tree):
        network.touch(foot, np.zeros(3), T[tree.model.modules[foot]])
    return network


def _leaders(network: MassNetwork, tree: Tree) -> list[str]:
    """Modules on the ground that hold themselves for the leader; and others, if they do."""
    found = [name for name in network.agents if network.view(name).leads]
    return found if set(found) <= set(feet(tree)) else [*found, "one in the air"]
