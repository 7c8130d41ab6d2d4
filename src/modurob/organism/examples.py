"""Organisms from the papers, and a few common ones."""

from __future__ import annotations

from numbers import Real

import numpy as np

from modurob.checks import generator, is_whole
from modurob.errors import DatasheetError, StateError, UnknownNameError, choices
from modurob.modules import ModuleType
from modurob.organism.organism import Organism
from modurob.spatial import se3, so3

# y of the base points down, so that a chain on side 3 hangs down
HANGING = se3.pose(so3.from_rpy(-np.pi / 2, 0.0, 0.0), np.zeros(3))

EMULATED = {"conro": 0.0, "m-tran": -np.pi / 2}  # [rad] of a SuperBot's roll joint


def crab() -> Organism:
    """Six Scouts: the crab of meister2013 (Fig. 4)."""
    rows = [(0, 1, 3, 4), (1, 2, 2, 5), (2, 3, 3, 2), (1, 4, 5, 2), (4, 5, 3, 5)]
    return _from_rows("scout", rows)


def nine() -> Organism:
    """Nine Backbones on three paths: the organism of meister2012 (Fig. 4)."""
    rows = [
        (0, 1, 3, 2),
        (1, 2, 5, 3),
        (0, 3, 5, 2),
        (3, 4, 4, 3),
        (4, 5, 5, 2),
        (0, 6, 2, 5),
        (6, 7, 4, 2),
        (7, 8, 4, 5),
    ]
    return _from_rows("backbone", rows)


def snake(n: int, kind: str | ModuleType = "backbone") -> Organism:
    """`n` cubes in a row, each docked with side 4 to side 3 of the one before."""
    if not is_whole(n) or n < 1:
        raise StateError(f"the length of a snake must be a whole number, at least 1; got {n!r}")
    return _from_rows(kind, [(i, i + 1, 3, 4) for i in range(n - 1)])


def double_pendulum(l1: float = 1.0, l2: float = 1.0, m1: float = 1.0, m2: float = 1.0) -> Organism:
    """The thesis' pendulum: three Backbones hang from the first, point masses at the centers.

    In the physical model, hinge ``m0.hinge`` carries mass `m1` at distance `l1`, and ``m1.hinge``
    carries `m2` at `l2`. Both angles are zero when it hangs straight down.
    """
    if not all(isinstance(length, Real) and length > 0 for length in (l1, l2)):
        raise DatasheetError(f"lengths must be positive numbers, got l1 = {l1!r}, l2 = {l2!r}")
    s1 = min(l1, l2)
    sizes = {"m0": 2 * l1 - s1, "m1": s1, "m2": 2 * l2 - s1}
    organism = snake(3).with_base_pose(HANGING)
    for name, mass in (("m0", 1.0), ("m1", m1), ("m2", m2)):
        organism = organism.with_parameters(name, size=sizes[name], mass=mass, inertia=0.0)
    return organism


def crane(m1: float = 1.0, m2: float = 1.0, l: float = 5.0) -> Organism:  # noqa: E741
    """The thesis' crane: a wagon of mass `m1` on a virtual rail, a point mass `m2` at length `l`.

    In the physical model, ``m0.slide`` is the wagon's position and ``m1.hinge`` the angle.
    """
    organism = Organism.start("virtual_pz", "m0", pose=HANGING)
    organism = organism.dock("m0", 7, "m1", 7, kind="backbone")
    organism = organism.dock("m1", 3, "m2", 4, kind="backbone")
    for name, mass in (("m1", m1), ("m2", m2)):
        organism = organism.with_parameters(name, size=l, mass=mass, inertia=0.0)
    return organism


def arm(modules: str = "babac") -> Organism:
    """A manipulator of giusti2015's modules a, b and c, base first."""
    kinds = {letter: f"giusti_{letter}" for letter in "abc"}
    if not isinstance(modules, str) or not modules or set(modules) - set(kinds):
        raise UnknownNameError(f"an arm is a word of a, b and c such as 'babac', got {modules!r}")
    organism = Organism.start(kinds[modules[0]], "m0")
    for i, letter in enumerate(modules[1:]):
        organism = organism.dock(f"m{i}", "out", f"m{i + 1}", "in", kind=kinds[letter])
    return organism


def superbot_tree(
    branches: int = 4,
    length: int = 5,
    rng: np.random.Generator | None = None,
    kind: str | ModuleType = "superbot_light",
) -> Organism:
    """A random SuperBot tree as in moll2006: `branches` chains of `length` modules.

    The root is upright on the ground (its connector 1 at the world's origin) and is the first
    module of the first branch; the other branches grow from its free connectors. Connectors and
    turns along each chain are random; branches may pass through each other.
    """
    rng = generator(rng, "a random tree", seed=0)
    if not (is_whole(branches) and is_whole(length) and 1 <= branches <= 5 and length >= 1):
        raise StateError(
            f"a tree has 1 to 5 branches of at least 1 module, got {branches!r} of {length!r}"
        )
    lift = np.eye(4)
    organism = Organism.start(kind, "m0")
    lift[2, 3] = -organism.kind("m0").port_pose(1)[2, 3]
    organism = organism.with_base_pose(lift)
    starts = rng.permutation([2, 3, 4, 5, 6])[:branches]
    for branch, start in enumerate(starts):
        parent, port = "m0", int(start)
        for _ in range(length - 1 if branch == 0 else length):
            name = f"m{len(organism)}"
            child_port, turn = int(rng.integers(1, 7)), int(rng.choice([0, 90, 180, 270]))
            organism = organism.dock(parent, port, name, child_port, turn=turn)
            parent, port = name, int(rng.choice(organism.free_ports(name)))
    return organism


def superbot_walker(
    legs: int = 4,
    length: int = 2,
    rng: np.random.Generator | None = None,
    kind: str | ModuleType = "superbot",
) -> Organism:
    """A random SuperBot tree with legs: chains of `length` modules at the sides of the first one.

    Connectors and turns are random, but each module of a leg is docked with one end and holds the
    next one with the other: all its joints move the foot.
    """
    rng = generator(rng, "a random tree", seed=0)
    if not (is_whole(legs) and is_whole(length) and 1 <= legs <= 4 and length >= 1):
        raise StateError(
            f"a walker has 1 to 4 legs of at least 1 module, got {legs!r} of {length!r}"
        )
    organism = Organism.start(kind, "m0")
    for start in rng.permutation([2, 3, 5, 6])[:legs]:
        parent, port = "m0", int(start)
        for _ in range(length):
            name, ends = f"m{len(organism)}", rng.permutation([[1, 2, 3], [4, 5, 6]])
            near, far = (int(rng.choice(ports)) for ports in ends)
            turn = int(rng.choice([0, 90, 180, 270]))
            organism = organism.dock(parent, port, name, near, turn=turn)
            parent, port = name, far
    return organism


def emulation(organism: Organism, robot: str) -> dict[str, float]:
    """Locks for `Organism.model` with which SuperBots move as another robot's modules (moll2006).

    The position of the roll joint makes the axes of pitch and yaw perpendicular, as in CONRO, or
    parallel, as in M-TRAN.

    Args:
        organism: With SuperBots, and other modules perhaps.
        robot: ``conro`` or ``m-tran``.

    Returns:
        Position of the roll joint of each SuperBot, by joint. [rad]
    """
    if robot not in EMULATED:
        raise UnknownNameError(f"SuperBots emulate {choices(EMULATED)}, got {robot!r}")
    found = [name for name in organism.modules if organism.kind(name).name.startswith("superbot")]
    if not found:
        raise StateError(f"no module of this organism is a SuperBot, so none emulates {robot}")
    return {f"{name}.roll": EMULATED[robot] for name in found}


def _from_rows(kind: str | ModuleType, rows: list[tuple[int, int, int, int]]) -> Organism:
    organism = Organism.start(kind, "m0")
    for i, j, side_i, side_j in rows:
        organism = organism.dock(f"m{i}", side_i, f"m{j}", side_j)
    return organism
