"""Bodies with gaits of their own: they crawl, walk and roll on level ground."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from modurob.errors import UnknownNameError, choices
from modurob.organism import Organism, examples
from modurob.spatial import se3, so3
from modurob.walking.runs import Walk, walk

LEGS = (2, 3, 4, 5)  # sides of the middle of a cross
LYING = se3.pose(so3.from_rpy(0.0, np.pi / 2, 0.0), np.zeros(3))  # z along the ground


class ZooBody(NamedTuple):
    """A body that walks.

    Attributes:
        title: For people.
        build: Makes the organism.
        kind: Of the gait.
        fields: Of the scenario, such as joints that are held.
    """

    title: str
    build: Callable[[], Organism]
    kind: str
    fields: Mapping[str, Any] = {}


def _cross() -> Organism:
    """Nine cubes: one in the middle, and a leg of two on each of its sides."""
    organism = Organism.start("backbone", "m0")
    for side in LEGS:
        inner, outer = f"m{len(organism)}", f"m{len(organism) + 1}"
        organism = organism.dock("m0", side, inner, 4).dock(inner, 3, outer, 4, kind="backbone")
    return organism


def _bar() -> Organism:
    """Four SuperBots end to end, on the ground."""
    organism = Organism.start("superbot", "m0", pose=LYING)
    for k in range(3):
        organism = organism.dock(f"m{k}", 4, f"m{k + 1}", 1)
    return organism


STRAIGHT = {"locked": {f"m{k}.roll": 0.0 for k in range(4)}}  # pitch and yaw at right angles
STIFF = {"settling_time": 0.03, "sample_time": 1e-3}  # joints that lift an end of the bar
HINGES = "physical"  # of all their models
ZOO: Mapping[str, ZooBody] = {
    "caterpillar": ZooBody("Caterpillar of six Backbones", lambda: examples.snake(6), "wave"),
    "crab": ZooBody("Crab of six Scouts", examples.crab, "sine"),
    "cross": ZooBody("Cross of nine Backbones", _cross, "sine"),
    "roller": ZooBody("Rolling arc of four SuperBots", _bar, "sine", STRAIGHT | STIFF),
    "sidewinder": ZooBody("Bar of four SuperBots", _bar, "sine", STRAIGHT),
}


def zoo_body(name: str) -> ZooBody:
    """A body of the zoo by its name, or an error that lists them."""
    if name not in ZOO:
        raise UnknownNameError(f"no walker {name!r}: walkers are {choices(ZOO)}")
    return ZOO[name]


def gait_file(name: str) -> Path:
    """The file of its gait."""
    zoo_body(name)
    return Path(__file__).with_name(f"{name}.json")


def zoo_walk(name: str, **fields: Any) -> Walk:
    """Walk of a body of the zoo; fields as for `walk`."""
    own = {"hinges": HINGES, **zoo_body(name).fields}
    return walk(zoo_body(name).build(), gait_file(name), **(own | fields))
