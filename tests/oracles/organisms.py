"""Random organisms of every kind of module, the same ones on every run."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from hypothesis import strategies as st

from modurob import ModuleType, Organism

SYMBRION = {"connector": "symbrion", "mates": ["symbrion"], "turns": [0, 90, 180, 270]}

WRIST = ModuleType(
    name="wrist",
    symbol="W",
    title="Everything a datasheet may hold: skew axes, a weld, a root that is a joint's child",
    size=0.12,
    bodies=[
        {
            "name": "hand",
            "mass": 0.7,
            "center_of_mass": [0.01, -0.02, 0.03],
            "inertia": [[2e-3, 2e-4, -1e-4], [2e-4, 2.5e-3, 3e-4], [-1e-4, 3e-4, 1.8e-3]],
        },
        {"name": "forearm", "mass": 0.4, "center_of_mass": [0, 0.04, 0], "inertia": [4e-4] * 3},
        {"name": "plate", "mass": 0.1, "center_of_mass": [0.02, 0, 0], "inertia": [1e-4] * 3},
        {"name": "cap", "mass": 0.05, "center_of_mass": [0, 0, -0.01], "inertia": [1e-5] * 3},
    ],
    joints=[
        {
            "name": "bend",
            "kind": "revolute",
            "parent": "forearm",
            "child": "hand",
            "position": [0.03, -0.02, 0.05],
            "rpy": [0.3, -0.7, 1.1],
            "axis": [1, 2, -2],
            "lower": -2.0,
            "upper": 1.5,
        },
        {
            "name": "push",
            "kind": "prismatic",
            "parent": "hand",
            "child": "plate",
            "position": [0, 0.05, 0],
            "rpy": [-1.2, 0.4, 0.2],
            "axis": [0, 3, 4],
            "lower": -0.1,
            "upper": 0.2,
        },
        {
            "name": "weld",
            "kind": "fixed",
            "parent": "cap",
            "child": "forearm",
            "position": [0, 0, 0.02],
            "rpy": [0.1, 0.2, 0.3],
        },
    ],
    ports=[
        {"label": 2, "body": "plate", "position": [0.05, 0, 0.01], "normal": [3, 0, 4],
         "reference": [0, 1, 0], **SYMBRION},
        {"label": 3, "body": "cap", "position": [0, 0, -0.04], "normal": [0, 0, -1],
         "reference": [1, 1, 0], **SYMBRION},
        {"label": 4, "body": "hand", "position": [0, -0.05, 0], "normal": [0, -1, 0],
         "reference": [1, 0, 0], **SYMBRION},
    ],
)  # fmt: skip

GROUPS: dict[str, tuple[str | ModuleType, ...]] = {
    "backbone": ("backbone",),
    "scout": ("scout",),
    "backbone and scout": ("backbone", "scout"),
    "superbot": ("superbot",),
    "chen": ("chen_link", "chen_link_large", "chen_revolute", "chen_prismatic"),
    "giusti": ("giusti_a", "giusti_b", "giusti_c"),
    "cubes and wrists": ("backbone", "scout", WRIST),
}
CUBES = ("backbone", "scout", "backbone and scout")
MOST_MODULES = 20


@lru_cache(maxsize=1024)
def random_organism(kinds: str, modules: int, seed: int) -> Organism:
    """A random tree of one of the `GROUPS`, its base anywhere in the world."""
    rng = np.random.default_rng(seed)
    return Organism.random(GROUPS[kinds], modules, rng).with_base_pose(random_pose(rng))


def random_pose(rng: np.random.Generator) -> np.ndarray:
    """Anywhere in the world."""
    rotation, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    pose = np.eye(4)
    pose[:3, :3] = rotation * np.sign(np.linalg.det(rotation))
    pose[:3, 3] = rng.standard_normal(3)
    return pose


def group(kinds: str, count: int) -> list[Organism]:
    """`count` organisms of a group, of 1 to 20 modules."""
    sizes = np.random.default_rng(7).integers(1, MOST_MODULES + 1, size=count)
    return [random_organism(kinds, int(n), seed) for seed, n in enumerate(sizes)]


def organisms(*kinds: str, least: int = 1, most: int = MOST_MODULES) -> st.SearchStrategy[Organism]:
    """Hypothesis strategy: random organisms of the named groups (all by default)."""
    return st.builds(
        random_organism,
        st.sampled_from(kinds or tuple(GROUPS)),
        st.integers(least, most),
        st.integers(0, 2**32 - 1),
    )
