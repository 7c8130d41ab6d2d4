"""Properties of a body that gaits use: joint limits, neighbors, distance from the base."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np

from modurob.checks import Numbers, per_joint
from modurob.errors import StateError, UnknownNameError, choices
from modurob.model import Model

Edges: TypeAlias = Iterable[tuple[str, str]]  # pairs of joint names

SHARE = 0.5  # of the way to the next limit, where no amplitude is given
SWING = 0.5, 0.05  # [rad], [m] where there is no limit either
INSIDE = 1 - 1e-12  # keeps offset + amplitude from passing a limit by rounding


def within_limits(
    model: Model, offset: Numbers | None, amplitude: Numbers | None
) -> tuple[np.ndarray, np.ndarray]:
    """(n,) offsets and amplitudes such that offset ± amplitude lies within all limits. [rad, m]"""
    lower, upper, names = model.lower, model.upper, model.joint_names
    usual = np.where(model.prismatic, SWING[1], SWING[0])
    if offset is None:
        # joints with one limit only keep the usual swing clear of it
        with np.errstate(invalid="ignore"):
            middle = (lower + upper) / 2
        center = np.clip(0.0, lower + usual, upper - usual)
        center = np.where(np.isfinite(middle), middle, center)
    else:
        center = per_joint("offset", offset, names)
    outside = np.flatnonzero((center < lower) | (center > upper))
    if len(outside):
        k = int(outside[0])
        raise StateError(
            f"offset of joint '{names[k]}' is {center[k]:g}, "
            f"its limits are {lower[k]:g} and {upper[k]:g}"
        )
    room = INSIDE * np.minimum(center - lower, upper - center)
    if amplitude is None:
        wanted = np.where(np.isfinite(room), SHARE * room, usual)
        virtual = np.array([name.startswith("world.") for name in names], dtype=bool)
        wanted[virtual] = 0.0  # without a motor
    else:
        wanted = per_joint("amplitude", amplitude, names)
    return center, np.clip(wanted, -room, room)


def neighbors(model: Model) -> tuple[tuple[str, str], ...]:
    """Pairs of joints that meet at a link: the docking graph in terms of joints.

    Which module is the base makes no difference. Joints of a chain have two neighbors; all joints
    at one link are each other's.
    """
    meeting: dict[int, list[int]] = {}
    for joint, link in enumerate(model.parent.tolist()):
        meeting.setdefault(link, []).append(joint)
        meeting.setdefault(joint + 1, []).append(joint)
    pairs = {pair for joints in meeting.values() for pair in combinations(sorted(joints), 2)}
    return tuple((model.joint_names[i], model.joint_names[j]) for i, j in sorted(pairs))


def depths(model: Model) -> np.ndarray:
    """(n,) how many joints lie between each joint and the base."""
    found: list[int] = []
    for link in model.parent.tolist():
        found.append(0 if link == 0 else found[link - 1] + 1)
    return np.array(found, dtype=int)


def checked_edges(edges: Edges, joints: Sequence[str]) -> np.ndarray:
    """(m, 2) indices of the joints that each edge connects."""
    index = {name: k for k, name in enumerate(joints)}
    pairs: list[tuple[int, int]] = []
    for edge in edges:
        if isinstance(edge, str) or not isinstance(edge, Sequence) or len(edge) != 2:
            raise StateError(f"an edge is a pair of joint names, got {edge!r}")
        unknown = [name for name in edge if name not in index]
        if unknown:
            raise UnknownNameError(
                f"no joint {unknown[0]!r} for an edge: joints are {choices(joints)}"
            )
        i, j = sorted(index[name] for name in edge)
        if i == j or (i, j) in pairs:
            why = "leads back to itself" if i == j else "is there twice"
            raise StateError(f"the edge between '{edge[0]}' and '{edge[1]}' {why}")
        pairs.append((i, j))
    return np.array(pairs, dtype=np.intp).reshape(-1, 2)
