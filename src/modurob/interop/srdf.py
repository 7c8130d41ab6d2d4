"""`write_srdf`: groups of joints and pairs of links that need no collision check, for MoveIt."""

from __future__ import annotations

import os
import reprlib
import warnings
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from modurob.checks import whole
from modurob.errors import StateError, UnknownNameError, choices
from modurob.interop.conventions import (
    ExportTree,
    LossWarning,
    Visuals,
    checked_title,
    motors_of,
    robot_of,
)
from modurob.interop.urdf import WORLD
from modurob.interop.xml_files import XmlText
from modurob.model import Model
from modurob.modules import Mesh
from modurob.modules.files import checked_target
from modurob.organism import Organism
from modurob.spatial.boxes import Boxes, box_widths, overlaps
from modurob.spatial.scalars import matvec
from modurob.stepping.ground import CORNERS

SAMPLES = 1000  # random configurations
CHUNK = 2_000_000  # pairs times configurations that are looked at together
SLIDE_M = 1.0  # of a slide without limits, to each side
MARGIN_M = 1e-3  # around boxes: cubes that touch are a collision in other programs
ALL = "all"  # group of all joints


def write_srdf(
    robot: Organism | Model,
    path: str | os.PathLike[str],
    *,
    hinges: str | None = None,
    base: str | Sequence[str] | None = None,
    name: str = "organism",
    groups: Mapping[str, Sequence[str]] | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
) -> None:
    """Write the SRDF beside a URDF of `write_urdf` with the same options.

    Pairs of links need no collision check if they do not move against each other or share a joint
    (``Adjacent``), touch with all joints at zero, as they were docked (``Default``), or never met
    in random configurations within the limits of the joints (``Never``). Boxes 1 mm around the
    shapes stand for the links, so that pairs that come near stay in the check. Meshes are not
    opened: pairs with one stay in the check unless they are adjacent, which a `LossWarning` says.

    Args:
        robot: An organism; or a model that was built from one.
        path: The file to write; an old one stays intact if writing fails.
        hinges, base: See `Organism.model`.
        name: Of the robot, as in the URDF.
        groups: Joints by the name of their group. By default ``all``, and one for each chain from
            the root to a link at an end, named after that link.
        samples: Number of random configurations; 0 for none.
        seed: Of these.
    """
    path = checked_target(path)
    tree = robot_of(robot, WORLD, hinges, base)
    model, text = tree.model, XmlText()
    chosen = _checked_groups(model, groups)
    pairs = disabled_pairs(tree, whole("samples", samples, 0), whole("seed", seed, 0), path)
    with text.open("robot", name=checked_title(name)):
        for group, joints in chosen.items():
            with text.open("group", name=group):
                for joint in joints:
                    text.leaf("joint", name=joint)
        if groups is None:
            for tip in _tips(tree):
                with text.open("group", name=tip):
                    text.leaf("chain", base_link=tree.links[0], tip_link=tip)
            with text.open("group_state", name="zero", group=ALL):
                for joint, at in zip(model.joint_names, _clipped(model, 0.0), strict=True):
                    text.leaf("joint", name=joint, value=at)
        if model.free_base:
            text.leaf("virtual_joint", name="base", type="floating", parent_frame=WORLD,
                      child_link=tree.links[0])  # fmt: skip
        driven = {motor.name for motor in motors_of(model)}
        for joint in model.joint_names:
            if joint not in driven:
                text.leaf("passive_joint", name=joint)
        for (one, other), reason in pairs.items():
            text.leaf("disable_collisions", link1=one, link2=other, reason=reason)
    text.write(path)


def _checked_groups(
    model: Model, groups: Mapping[str, Sequence[str]] | None
) -> dict[str, Sequence[str]]:
    """The groups that were given, or that of all joints."""
    if groups is None:
        return {ALL: model.joint_names}
    if not isinstance(groups, Mapping):
        raise StateError(f"groups are lists of joints by name, got {groups!r:.60}")
    for group, joints in groups.items():
        checked_title(group, "a group's name")
        if isinstance(joints, str) or not isinstance(joints, Sequence):
            raise StateError(f"group {group!r} is a list of joints, got {reprlib.repr(joints)}")
        for joint in joints:
            if joint not in model.joint_names:
                known = choices(model.joint_names)
                raise UnknownNameError(f"group {group!r}: no joint {joint!r}: joints are {known}")
    return dict(groups)


def _tips(tree: ExportTree) -> list[str]:
    """Links of the model that carry no other."""
    carrying = set(tree.model.parent.tolist())
    return [name for link, name in enumerate(tree.links) if link and link not in carrying]


def _clipped(model: Model, q: float) -> np.ndarray:
    return np.clip(q, model.lower, model.upper)


def disabled_pairs(
    tree: ExportTree, samples: int, seed: int, path: object = "SRDF"
) -> dict[tuple[str, str], str]:
    """Pairs of bodies, in order, that need no collision check, each with the reason."""
    model = tree.model
    joined = {(parent, child + 1) for child, parent in enumerate(model.parent.tolist())}
    bodies = [k for k, visuals in enumerate(tree.visuals) if visuals]
    meshed = {k for k in bodies if any(isinstance(v, Mesh) for _, v in tree.visuals[k])}
    link, names = model.body_link.tolist(), model.body_names
    found: dict[tuple[int, int], str] = {}
    docked = _docked(model.organism)
    for i, j in combinations(bodies, 2):
        one, other = sorted((link[i], link[j]))
        beside = frozenset((names[i].partition(".")[0], names[j].partition(".")[0])) in docked
        if one == other or ((one, other) in joined and beside):
            found[i, j] = "Adjacent"
    apart = [pair for pair in combinations(bodies, 2) if pair not in found]
    open_pairs = [pair for pair in apart if meshed.isdisjoint(pair)]
    if len(open_pairs) < len(apart):
        which = choices(names[k] for k in sorted(meshed))
        message = f"{path}: meshes are not opened: pairs with {which} stay in the check"
        warnings.warn(message, LossWarning, stacklevel=3)
    if open_pairs:
        boxes = {k: _box(tree.visuals[k]) for k in bodies if k not in meshed}
        rest = np.array(open_pairs)
        at_zero = _meeting(model, boxes, rest, model.neutral()[None])
        met = at_zero.copy()
        rng, step = np.random.default_rng(seed), max(1, CHUNK // len(rest))
        for first in range(0, samples, step):
            q = _random(model, rng, min(step, samples - first))
            met |= _meeting(model, boxes, rest, q)
        for pair, first, ever in zip(open_pairs, at_zero, met, strict=True):
            if first:
                found[pair] = "Default"
            elif samples and not ever:
                found[pair] = "Never"
    return {(names[i], names[j]): reason for (i, j), reason in sorted(found.items())}


def _docked(organism: Organism | None) -> set[frozenset[str]]:
    """Modules that are docked to each other, and each with itself."""
    if organism is None:
        return set()
    pairs = {frozenset((name, child)) for name in organism for child in organism.children(name)}
    return pairs | {frozenset((name,)) for name in organism}


def _box(visuals: Visuals) -> tuple[np.ndarray, np.ndarray]:
    """Center and half the widths of the box around shapes, along the axes of their body. [m]"""
    corners = np.concatenate(
        [
            CORNERS * box_widths(shape.form, shape.size) @ T[:3, :3].T + T[:3, 3]
            for T, shape in visuals
            if not isinstance(shape, Mesh)
        ]
    )
    low, high = corners.min(axis=0), corners.max(axis=0)
    return (low + high) / 2, (high - low) / 2 + MARGIN_M


def _random(model: Model, rng: np.random.Generator, count: int) -> np.ndarray:
    """(count, nq) configurations with joints within their limits, half of them at the ends."""
    reach = np.where(model.prismatic, SLIDE_M, np.pi)
    low = np.where(np.isfinite(model.lower), model.lower, _clipped(model, 0.0) - reach)
    high = np.where(np.isfinite(model.upper), model.upper, _clipped(model, 0.0) + reach)
    q = np.tile(model.neutral(), (count, 1))
    wide = (high - low) / 2
    drawn = rng.uniform(low - wide, high + wide, (count, len(low)))  # folded bodies meet
    q[:, model.joint_slice_q] = np.clip(drawn, low, high)
    return q


def _meeting(
    model: Model, boxes: Mapping[int, tuple[np.ndarray, np.ndarray]], pairs: np.ndarray,
    q: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """(pairs,) True for bodies whose boxes overlap in one of (m, nq) configurations."""
    T = model.forward_kinematics(q)
    center, half = np.zeros((2, model.nbodies, 3))
    for body, (c, h) in boxes.items():
        center[body], half[body] = c, h
    R, c = T[..., :3, :3], matvec(T[..., :3, :3], center) + T[..., :3, 3]
    one, other = (Boxes(R[:, k], c[:, k], half[k]) for k in pairs.T)
    return np.any(overlaps(one, other), axis=0)
